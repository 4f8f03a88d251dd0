"""What a formulation needs to know about one skeleton: time, bytes, capacity and counts as bilinear tables.

**Which cores are alike**: of each kind one is priced, for all that move and hold the same. Cores differ in the extents
of their ranges and in how far their windows lie beyond the map. Where something is counted by address
(`hwmodels.nest.price.boxes`), they differ in where their ranges begin too, modulo `Transfer.window_bytes`.

On machines with `broadcast` a core may load an operand for others. Cores of a cluster (or of the chip) with the same
ranges of all dimensions that an operand depends on form a group, and its first core loads for all of it. Ranges are cut
from their begins and the last piece is the smallest, so the first core has the largest ranges of the other dimensions
too; the others run its program without the last iterations of some loops. What they need in an iteration is what the
first core needs there. It was on chip before the iteration for the first core exactly if it was for them: the
iterations that they leave out are passes over the same tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hwmodels.nest.homes import operand_of, repriced
from hwmodels.nest.price import literal
from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.boxes import KINDS, input_windows, pitches_of
from hwmodels.nest.price.choices import Choices, Term
from hwmodels.nest.price.core import CoreTables
from hwmodels.nest.price.ends import Ends, Taken
from hwmodels.nest.price.pipeline import Pipeline
from hwmodels.nest.price.skeleton import Core, Skeleton, cores
from hwmodels.nest.price.turning import moved_again
from hwmodels.transfer import COUNTS
from instances.errors import InputError
from instances.machine.machine import Broadcast, Machine
from instances.network.workload import DIMS, RELEVANT, Layer

OPERANDS = ("IN", "W", "OUT")
#: The rows of counts that a core moves by itself, or loads for its group; "" stands for all rows.
ROWS: Mapping[str, frozenset[str]] = {
    "IN": frozenset({"IN"}),
    "W": frozenset({"W"}),
    "OUT": frozenset({"OUT", "PSUM_READ", "PSUM_WRITE"}),
    "": frozenset({"IN", "W", "OUT", "PSUM_READ", "PSUM_WRITE"}),
}
#: Dimensions and bytes from one index to the next; what addresses matter modulo.
Pitches = tuple[tuple[tuple[str, int], ...], int]


class Key(NamedTuple):
    """What the tables of a core depend on: cores with equal keys have equal tables."""

    extents: tuple[int, ...]
    """Of its ranges."""
    clipped: tuple[tuple[int, int], ...]
    """Rows and columns of its windows beyond the map."""
    places: tuple[tuple[int, ...], ...]
    """By operand where its ranges begin, in bytes modulo a window; empty unless addresses matter."""

    def of(self, operand: str) -> tuple[object, ...]:
        """What the rows of one operand depend on."""
        place = self.places[OPERANDS.index(operand)] if self.places else ()
        return (operand, self.extents, place, self.clipped if operand == "IN" else ())


#: A core's key, and which rows it moves (`ROWS`).
Load = tuple[Key, str]


def loads_of(
    layer: Layer, machine: Machine, share: tuple[Core, ...]
) -> tuple[dict[Key, Core], dict[int, Counter[Load]], Counter[Load]]:
    """Return a core of every kind, and how often each kind moves what, on the bus of every cluster and for the chip."""
    first: dict[Key, Core] = {}
    clusters: dict[int, Counter[Load]] = {}
    every: Counter[Load] = Counter()
    pitches = _pitches(layer, machine)
    for core, inside, once in _alike(share, machine.broadcast, bool(pitches)):
        key = _key(layer, core, pitches)
        first.setdefault(key, core)
        for (tle, group), number in inside.items():
            clusters.setdefault(tle, Counter())[key, group] += number
        for group, number in once.items():
            every[key, group] += number
    return first, clusters, every


@lru_cache(maxsize=1024)
def _alike(
    share: tuple[Core, ...], broadcast: Broadcast, by_address: bool
) -> tuple[tuple[Core, Mapping[tuple[int, str], int], Mapping[str, int]], ...]:
    """One core for all with the same rows and columns and equal extents (by address: each for itself).

    With how many of them move what (`loads`) on the bus of each cluster, and how many count for the
    chip.
    """
    first: dict[object, Core] = {}
    inside: dict[object, Counter[tuple[int, str]]] = {}
    once: dict[object, Counter[str]] = {}
    for core, (on_bus, on_chip) in zip(share, loads(share, broadcast), strict=True):
        place = tuple(r if by_address or d in ("r", "c") else r[1] - r[0] for d, r in core.ranges)
        first.setdefault(place, core)
        inside.setdefault(place, Counter()).update((core.tle, group) for group in on_bus)
        once.setdefault(place, Counter()).update(on_chip)
    return tuple((core, inside[place], once[place]) for place, core in first.items())


def _key(layer: Layer, core: Core, pitches: tuple[Pitches, ...]) -> Key:
    """Tell what a core's tables depend on."""
    clipped = tuple(w.clipping(*core.range(d)) for d, w in input_windows(layer).items())
    places = tuple(tuple(core.range(d)[0] * pitch % window for d, pitch in of) for of, window in pitches)
    return Key(tuple(core.extent(d) for d in DIMS), clipped, places)


def _pitches(layer: Layer, machine: Machine) -> tuple[Pitches, ...]:
    """By operand the bytes from one index of each dimension to the next in its tensors, and their window.

    Empty where addresses do not matter.
    """
    if not machine.by_address:
        return ()
    stride = {"r": layer.stride_h, "c": layer.stride_w}
    result = []
    for operand in OPERANDS:
        transfer = machine.transfer_of(operand)
        tensors = {"W": ("W", "BIAS"), "OUT": ("OUT", "PSUM")}.get(operand, (operand,))
        ways = dict.fromkeys(layer.patterns) if operand == "IN" else ("",)
        steps = [pair for tensor in tensors for lacks in ways for pair in pitches_of(layer, machine, tensor, lacks)]
        if operand == "IN":
            steps = [(d, pitch * stride.get(d, 1)) for d, pitch in steps]
        result.append((tuple(steps) if transfer.by_address else (), transfer.window_bytes))
    return tuple(result)


@lru_cache(maxsize=1024)
def loads(share: tuple[Core, ...], broadcast: Broadcast) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """By core which of `ROWS` it moves on its cluster's bus, and which of these count once for the chip."""
    if broadcast.none:
        return ((("",), ("",)),) * len(share)
    on_bus, on_chip = {}, {}
    for operand, level in broadcast.levels.items():
        on_bus[operand] = _first(share, operand, "tle" if level == "chip" else level)
        on_chip[operand] = _first(share, operand, level)
    return tuple((_moved(k, on_bus), _moved(k, on_chip)) for k in range(len(share)))


def _first(share: tuple[Core, ...], operand: str, level: str) -> set[int]:
    """The numbers of the cores that load an operand, for themselves or for their group."""
    first: dict[object, int] = {}
    for number, core in enumerate(share):
        place = {"none": number, "tle": core.tle, "chip": None}[level]
        first.setdefault((place, *(core.range(d) for d in RELEVANT[operand])), number)
    return set(first.values())


def _moved(core: int, loading: Mapping[str, set[int]]) -> tuple[str, ...]:
    return (*(operand for operand, cores in loading.items() if core in cores), "OUT")


Rows = dict[str, dict[str, list[Term]]]


#: By a factor the sum of what it is multiplied by.
Factored = dict[bytes, Ints]


@dataclass(frozen=True)
class NestTables:
    """Tables over the choices of tile sizes under one skeleton."""

    time: tuple[Bilinear, ...]
    """Time in ticks is the largest of these. With transfers that overlap that largest is only a lower bound and `exact`
    is False (`hwmodels.nest.price.overlap` has the exact time of one nest).
    """
    bytes: Bilinear
    """Bytes that cross the DRAM interface."""
    capacity: Mapping[str, tuple[Bilinear, ...]]
    """Bytes taken in each memory, per kind of core."""
    exact: bool
    counts: dict[str, dict[str, Bilinear]]
    """With `detail`: ``counts[row][kind]``, summed over all cores, with rows IN, W, OUT, PSUM."""
    compute: tuple[Bilinear, ...]
    """With `detail`: ticks of every kind of core."""
    energy: Bilinear
    """Femtojoules, that of the MACs included; empty unless "energy" is among the measures."""
    pipelines: tuple[Pipeline, ...] = ()
    """With transfers that overlap, what is known of how tiles follow each other: a bound on time beside the tables."""


def nest_tables(
    layer: Layer,
    machine: Machine,
    skeleton: Skeleton,
    choices: Choices,
    *,
    measures: Collection[str] = ("time", "bytes"),
    detail: bool = False,
) -> NestTables:
    """Build the tables of one skeleton, by the machine's reading.

    Time and bytes are empty unless they are among the `measures`; other counts are given only with `detail`. Raises
    InputError if the machine prices or counts what no bilinear table can hold, or the skeleton needs more clusters or
    cores than the machine has.
    """
    _refuse(layer, machine)
    if choices.ideal is not None and machine.by_address:
        # the pieces of bounds have no places: what is counted by address is counted aligned, which is never more
        machine = repriced(machine, burst_count="aligned")
    share = cores(layer, skeleton.spatial)
    _check_units(machine, share)
    if machine.reading == "literal":
        return _literal(layer, machine, skeleton, share[0], choices)
    first, clusters, every = loads_of(layer, machine, share)
    kinds = {key: CoreTables(layer, machine, skeleton, core, choices) for key, core in first.items()}
    timed = detail or "time" in measures
    counted = (
        KINDS
        if detail
        else frozenset(
            (priced_kinds(machine) if timed else frozenset())
            | ({"bytes"} if {"bytes", "energy"} & set(measures) else set())
        )
    )
    rows = _rows(kinds, counted) if counted else {key: {} for key in kinds}
    parts = _capacities(kinds)
    served = {load: _part(rows[load[0]], load[1]) for counter in (every, *clusters.values()) for load in counter}
    shape = choices.shape
    capacity = {name: _distinct([p[name] for p in parts]) for name in machine.memories}
    overlaps = machine.timing == "double_buffered"
    if overlaps and len(share) > 1:
        raise InputError(f"machine {machine.name}: double buffering is modelled for a single core only")
    turning = choices.ideal is not None and machine.snake
    again = {m: moved_again(layer, machine, m) if turning else 0 for m in ("bytes", *measures)}
    moved: dict[Load, list[Term]] = {}
    busy: dict[tuple[int, ...], list[Term]] = {}
    time: list[list[Term]] = []
    pipelines: tuple[Pipeline, ...] = ()
    if timed:
        moved = {load: ticks_of(machine, r) for load, r in served.items()}
        cycle = machine.compute.cycle_ticks
        work = {key.extents: t for key, t in kinds.items()}
        busy = {extents: _times(t.compute_cycles(), cycle) for extents, t in work.items()}
        if overlaps:
            (only,) = rows
            ends = Ends(layer, machine, skeleton, share[0], choices)
            time, reads, inputs, alone = _overlapping(machine, skeleton, rows[only], busy[only.extents], ends)
            if not detail:
                taken = Taken(machine, capacity, _each(kinds[only]))
                pipelines = ends.pipelines(reads, inputs, [*alone, _constant(machine.layer_ticks, shape)], taken)
        else:
            time = _serial(machine, clusters, every, moved, busy)
        if fixed := machine.layer_ticks + (0 if overlaps else again.get("time", 0)):
            time = [[*terms, _constant(fixed, shape)] for terms in time]
    energy: list[Term] = []
    if "energy" in measures:
        energy = [_constant(machine.mac_fj * layer.macs + again["energy"], shape), *_energy(machine, every, served)]
    return NestTables(
        time=_distinct([Bilinear.of(t, shape) for t in time]) if time else (),
        bytes=Bilinear.of([*_bytes(every, served), *_constants(again["bytes"] if served else 0, shape)], shape),
        capacity=capacity,
        exact=not (overlaps and any(machine.buffers(skeleton.buffers.get(op)) == 2 for op in layer.operands)),
        counts=_counts(every, served, shape) if detail else {},
        compute=_distinct([Bilinear.of(t, shape) for t in busy.values()]) if detail else (),
        energy=Bilinear.of(energy, shape),
        pipelines=pipelines,
    )


def _bytes(every: Counter[Load], served: dict[Load, Rows]) -> list[Term]:
    """Bytes of all rows."""
    rows = ((kinds, number) for load, number in every.items() for kinds in served[load].values())
    return [term for kinds, number in rows for term in _times(kinds.get("bytes", []), number)]


def _energy(machine: Machine, every: Counter[Load], served: dict[Load, Rows]) -> list[Term]:
    """Femtojoules of the bytes of every row, by its home."""
    terms = list[Term]()
    for load, number in every.items():
        for row, kinds in served[load].items():
            terms += _times(kinds.get("bytes", []), number * machine.byte_fj_of(operand_of(row)))
    return terms


def _part(rows: Rows, group: str) -> Rows:
    """Those of the rows that a core moves."""
    return {row: kinds for row, kinds in rows.items() if row in ROWS[group]}


def _constants(value: int, shape: tuple[int, int]) -> list[Term]:
    """A term of the same value everywhere, if it is not 0."""
    return [_constant(value, shape)] if value else []


def _constant(value: int, shape: tuple[int, int]) -> Term:
    return np.full(shape[0], value, np.int64), np.ones(shape[1], np.int64)


def _rows(kinds: Mapping[Key, CoreTables], counted: frozenset[str]) -> dict[Key, Rows]:
    """The rows that every kind of core moves; each operand once for all that move the same of it."""
    alike: dict[object, Rows] = {}
    rows: dict[Key, Rows] = {}
    for key, tables in kinds.items():
        known = {row: terms for op in OPERANDS for row, terms in alike.get(key.of(op), {}).items()}
        rows[key] = tables.transfers(counted, known)
        for operand in OPERANDS:
            alike[key.of(operand)] = _part(rows[key], operand)
    return rows


def _capacities(kinds: Mapping[Key, CoreTables]) -> list[dict[str, Bilinear]]:
    """What the kinds of cores hold in each memory, wherever their ranges begin."""
    alike: dict[object, dict[str, list[Term]]] = {}
    parts = []
    for key, tables in {key._replace(places=()): t for key, t in kinds.items()}.items():
        sizes = tables.footprints(alike.get(key.extents))
        alike[key.extents] = {op: terms for op, terms in sizes.items() if op != "IN"}
        parts.append(tables.capacity(sizes))
    return parts


def _serial(
    machine: Machine,
    clusters: dict[int, Counter[Load]],
    every: Counter[Load],
    moved: dict[Load, list[Term]],
    busy: dict[tuple[int, ...], list[Term]],
) -> list[list[Term]]:
    """One function per kind of cluster and of core in it: the transfers plus that core's compute."""
    time = []
    for signature in {frozenset(c.items()) for c in clusters.values()}:
        served = signature if machine.dram == "per_tle" else every.items()
        moving = [term for load, n in served for term in _times(moved[load], n)]
        work = {key.extents for (key, _), _ in signature}
        time += [[*moving, *([] if machine.timing == "transfer_only" else busy[extents])] for extents in work]
    return time


def priced_kinds(machine: Machine) -> frozenset[str]:
    """The counts that cost ticks."""
    return frozenset(kind for kind in KINDS if any(getattr(one, COUNTS[kind]) for one in machine.transfers))


def ticks_of(machine: Machine, rows: Rows) -> list[Term]:
    """The price of all rows, each by the transfer of its home."""
    found: list[Term] = []
    for row, kinds in rows.items():
        transfer = machine.transfer_of(operand_of(row))
        for kind, terms in kinds.items():
            if ticks := int(getattr(transfer, COUNTS[kind])):
                found += _times(terms, ticks)
    return found


def _times(terms: list[Term], factor: int) -> list[Term]:
    """The terms so many times."""
    return terms if factor == 1 else [(a * factor, b) for a, b in terms]


def _overlapping(
    machine: Machine, skeleton: Skeleton, rows: Rows, busy: list[Term], ends: Ends
) -> tuple[list[list[Term]], list[Term], list[Term], list[Term]]:
    """Lower bounds of the time where transfers overlap: compute, reads or writes, beside what cannot overlap.

    Transfers of operands with one buffer stand between the steps (docs/machines.md). The time of
    `hwmodels.nest.price.overlap`, ``L2(0) + sum_k max(C(k), L2(k+1), S2(k-1)) + S2(last)``, is no less than with any of
    the three in the place of each maximum: ``L2(0) + sum C + S2(last)``; ``sum L2 + C(last) + S2(last)``; ``L2(0) +
    C(0) + sum S2``. Returned with the ticks of all loads ahead of steps, of those of IN and W, and of what stands
    between steps.
    """
    parts: dict[str, Rows] = {"reads": {}, "writes": {}, "alone": {}}
    for row, kinds in rows.items():
        operand = row if row in ("IN", "W") else "OUT"
        direction = "writes" if row in ("OUT", "PSUM_WRITE") else "reads"
        parts["alone" if machine.buffers(skeleton.buffers.get(operand)) == 1 else direction][row] = kinds
    reads, writes, alone = (ticks_of(machine, part) for part in parts.values())
    fill, drain = [*ends.loaded("IN"), *ends.loaded("W")], ends.stored()
    paths = [[*fill, *busy, *drain, *alone]]
    paths += [[*reads, *ends.computed("last"), *drain, *alone]] if parts["reads"] else []
    paths += [[*fill, *ends.computed("first"), *writes, *alone]] if parts["writes"] else []
    inputs = ticks_of(machine, {row: kinds for row, kinds in parts["reads"].items() if row in ("IN", "W")})
    return paths, reads, inputs, alone


def _each(tables: CoreTables) -> dict[str, Bilinear]:
    """What the tiles of every operand take in all their buffers."""
    buffers, shape = tables.skeleton.buffers, tables.choices.shape
    return {
        op: Bilinear.of(_times(terms, tables.machine.buffers(buffers.get(op))), shape)
        for op, terms in tables.footprints().items()
    }


def _counts(every: Counter[Load], served: dict[Load, Rows], shape: tuple[int, int]) -> dict[str, dict[str, Bilinear]]:
    """Counts of all cores by row, partial sums read and written together."""
    total: Rows = {}
    for load, number in every.items():
        for row, kinds in served[load].items():
            into = total.setdefault(row.partition("_")[0], {})
            for kind, terms in kinds.items():
                into.setdefault(kind, []).extend((a * number, b) for a, b in terms)
    return {row: {kind: Bilinear.of(terms, shape) for kind, terms in kinds.items()} for row, kinds in total.items()}


def _distinct(tables: list[Bilinear]) -> tuple[Bilinear, ...]:
    """Drop functions that another one is never below, factor by factor."""
    if len(tables) == 1:
        return (tables[0],)
    sides = [(_by_factor(t.b, t.a), _by_factor(t.a, t.b)) for t in tables]
    kept: list[int] = []
    for i, one in enumerate(sides):
        if not any(_below(one, sides[k]) for k in kept):
            kept = [k for k in kept if not _below(sides[k], one)] + [i]
    return tuple(tables[k] for k in kept)


def _below(one: tuple[Factored, Factored], two: tuple[Factored, Factored]) -> bool:
    """Whether `one` <= `two` everywhere, as far as equal factors on one side with larger ones on the other show."""
    return any(
        all(key in more and bool(np.all(value <= more[key])) for key, value in less.items())
        for less, more in zip(one, two, strict=True)
    )


def _by_factor(fixed: Ints, other: Ints) -> Factored:
    """The sum of the other factors of all terms that share one."""
    total: Factored = {}
    for key, value in zip(map(np.ndarray.tobytes, fixed), other, strict=True):
        total[key] = total[key] + value if key in total else value
    return total


def _literal(layer: Layer, machine: Machine, skeleton: Skeleton, core: Core, choices: Choices) -> NestTables:
    tables = CoreTables(layer, machine.model_copy(update={"edge_tiles": "uniform"}), skeleton, core, choices)
    shape = choices.shape
    if skeleton.spatial:
        rows = literal.tso_rows(layer, machine, skeleton, core, choices)
        compute = literal.tso_compute(layer, machine, skeleton, core, choices)
        sizes = tables.footprints()
    else:
        rows = literal.dma_rows(layer, machine, choices)
        compute = literal.dma_compute(tables)
        sizes = literal.dma_footprints(layer, machine, choices)
    capacity = {name: (table,) for name, table in tables.capacity(sizes).items()}
    work = [] if machine.timing == "transfer_only" else compute
    return NestTables(
        time=(Bilinear.of([*ticks_of(machine, rows), *work, _constant(machine.layer_ticks, shape)], shape),),
        bytes=Bilinear.of([t for kinds in rows.values() for t in kinds["bytes"]], shape),
        capacity=capacity,
        exact=True,
        counts={r: {k: Bilinear.of(t, shape) for k, t in kinds.items()} for r, kinds in rows.items()},
        compute=(Bilinear.of(compute, shape),),
        energy=Bilinear.of([], shape),  # the literal reading knows one memory: energy rises with bytes
    )


def _refuse(layer: Layer, machine: Machine) -> None:
    whole = machine.edge_tiles == "uniform" or machine.reading == "literal" or machine.tles * machine.tlts > 1
    if whole and (any(layer.residents) or layer.resident_out):
        raise InputError(
            f"layer {layer.name}: resident rows need one core, edge_tiles 'true' and reading 'consistent'; "
            f"machine {machine.name} has other settings"
        )
    if any(price.row_bytes or price.refresh_bytes for price in machine.transfers):
        raise InputError(
            f"machine {machine.name}: DRAM rows and refreshes are prices of whole requests (LPDDR4 regression), "
            "which tile plans do not support; set transfer.row_bytes and refresh_bytes (and their ticks) to 0"
        )
    if machine.by_address and machine.edge_tiles == "uniform":
        raise InputError(
            f"machine {machine.name}: edge_tiles 'uniform' has no addresses; "
            "use transfer.burst_count=aligned or edge_tiles=true"
        )
    if machine.reading == "literal" and machine.timing == "double_buffered":
        raise InputError(
            f"machine {machine.name}: the literal reading has no double-buffered time; "
            "set overlap=transfer_only or serial"
        )


@lru_cache(maxsize=1024)
def _units(share: tuple[Core, ...]) -> tuple[int, int]:
    """Clusters in use, and the most cores in use in one."""
    clusters = Counter(core.tle for core in share)
    return len(clusters), max(clusters.values())


def _check_units(machine: Machine, share: tuple[Core, ...]) -> None:
    clusters, most = _units(share)
    if clusters > machine.tles or most > machine.tlts:
        raise InputError(
            f"nest: uses {clusters} clusters of up to {most} cores, "
            f"machine {machine.name} has {machine.tles} of {machine.tlts}"
        )
