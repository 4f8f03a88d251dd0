"""What a formulation needs to know about one skeleton: time, bytes, capacity and counts as bilinear tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hwmodels import literal
from hwmodels.bilinear import Bilinear
from hwmodels.core import KINDS, Q_DIMS, S_DIMS, Choices, CoreTables, Term, input_windows
from hwmodels.pieces import windows
from hwmodels.skeleton import Core, Skeleton, cores
from hwmodels.transfer import COUNTS
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["NestTables", "nest_tables"]

Rows = dict[str, dict[str, list[Term]]]


Key = tuple[object, ...]


@dataclass(frozen=True)
class NestTables:
    """Tables over the choices of tile sizes under one skeleton.

    Attributes
    ----------
    time : tuple of Bilinear
        Time in ticks is the largest of these. With double buffering that largest is only a lower
        bound and `exact` is False (`hwmodels.overlap` has the exact time of one nest).
    bytes : Bilinear
        Bytes that cross the DRAM interface.
    capacity : dict of str to tuple of Bilinear
        Bytes taken in each memory, per kind of core.
    counts : dict
        With `detail`: ``counts[row][kind]``, summed over all cores, with rows IN, W, OUT, PSUM.
    transfer, compute : Bilinear
        With `detail`: ticks of all transfers; ticks of every kind of core.
    """

    time: tuple[Bilinear, ...]
    bytes: Bilinear
    capacity: Mapping[str, tuple[Bilinear, ...]]
    exact: bool
    counts: dict[str, dict[str, Bilinear]]
    transfer: Bilinear | None
    compute: tuple[Bilinear, ...]


def nest_tables(
    layer: Layer, machine: Machine, skeleton: Skeleton, choices: Choices, *, detail: bool = False
) -> NestTables:
    """Build the tables of one skeleton, by the machine's reading; counts other than bytes only with `detail`.

    Raises
    ------
    InputError
        If the machine prices or counts what no bilinear table can hold, or the skeleton needs more
        clusters or cores than the machine has.
    """
    _refuse(machine)
    share = cores(layer, skeleton.spatial)
    _check_units(machine, share)
    if machine.reading == "literal":
        return _literal(layer, machine, skeleton, share[0], choices)
    kinds: dict[Key, CoreTables] = {}
    clusters: dict[int, Counter[Key]] = {}
    for core, numbers in _alike(share):
        key = tables_key(layer, core, choices)
        if key not in kinds:
            kinds[key] = CoreTables(layer, machine, skeleton, core, choices)
        for tle, number in numbers:
            clusters.setdefault(tle, Counter())[key] += number
    counted = KINDS if detail else frozenset({"bytes", *(k for k in KINDS if getattr(machine.transfer, COUNTS[k]))})
    rows: dict[Key, Rows] = {}
    parts = []
    alike: dict[Key, tuple[Rows, dict[str, list[Term]]]] = {}
    for key, tables in kinds.items():
        known_rows, known_sizes = alike.get(key[2:], (None, None))
        rows[key], sizes = tables.transfers(counted, known_rows), tables.footprints(known_sizes)
        alike[key[2:]] = rows[key], sizes
        parts.append(tables.capacity(sizes))
    every: Counter[Key] = sum(clusters.values(), Counter())
    shape = choices.shape
    moved = {key: _ticks(machine, r) for key, r in rows.items()}
    cycle = machine.compute.cycle_ticks
    busy = {key: [(a * cycle, b) for a, b in t.compute_cycles()] for key, t in kinds.items()}
    capacity = {name: _distinct([p[name] for p in parts]) for name in machine.memories}
    if machine.timing == "double_buffered":
        if len(share) > 1:
            raise InputError(f"machine {machine.name}: double buffering is modelled for a single core only")
        time = [*busy.values(), *_directions(machine, next(iter(rows.values())))]
    else:
        time = _serial(machine, clusters, every, moved, busy)
    return NestTables(
        time=_distinct([Bilinear.of(t, shape) for t in time]),
        bytes=Bilinear.of(
            [(a * n, b) for k, n in every.items() for r in rows[k].values() for a, b in r["bytes"]], shape
        ),
        capacity=capacity,
        exact=machine.timing != "double_buffered",
        counts=_counts(every, rows, shape) if detail else {},
        transfer=Bilinear.of([(a * n, b) for k, n in every.items() for a, b in moved[k]], shape) if detail else None,
        compute=_distinct([Bilinear.of(t, shape) for t in busy.values()]) if detail else (),
    )


@lru_cache(maxsize=1024)
def _alike(share: tuple[Core, ...]) -> tuple[tuple[Core, tuple[tuple[int, int], ...]], ...]:
    """One core for all with the same rows and columns and equal extents, and how many of them each cluster has."""
    first: dict[Key, Core] = {}
    count: dict[Key, Counter[int]] = {}
    for core in share:
        place = tuple(r if d in ("r", "c") else r[1] - r[0] for d, r in core.ranges)
        first.setdefault(place, core)
        count.setdefault(place, Counter())[core.tle] += 1
    return tuple((core, tuple(count[place].items())) for place, core in first.items())


def tables_key(layer: Layer, core: Core, choices: Choices) -> Key:
    """Cores with equal keys have equal tables: equal extents, and equal input pieces under their rows and columns."""
    window = input_windows(layer)
    pieces = [
        windows(*core.range(d), np.minimum(choices.steps[d], core.extent(d)), window[d]).length.tobytes()
        for d in ("r", "c")
    ]
    return (*pieces, *(core.extent(d) for d in (*S_DIMS, *Q_DIMS)))


def _serial(
    machine: Machine,
    clusters: dict[int, Counter[Key]],
    every: Counter[Key],
    moved: dict[Key, list[Term]],
    busy: dict[Key, list[Term]],
) -> list[list[Term]]:
    """One function per kind of cluster and of core in it: the transfers plus that core's compute."""
    time = []
    for signature in {frozenset(c.items()) for c in clusters.values()}:
        served = signature if machine.dram == "per_tle" else every.items()
        loads = [(a * n, b) for key, n in served for a, b in moved[key]]
        time += [[*loads, *([] if machine.timing == "transfer_only" else busy[key])] for key, _ in signature]
    return time


def _ticks(machine: Machine, rows: Rows) -> list[Term]:
    prices = {kind: int(getattr(machine.transfer, field)) for kind, field in COUNTS.items()}
    return [
        (a * prices[kind], b)
        for kinds in rows.values()
        for kind, terms in kinds.items()
        if prices[kind]
        for a, b in terms
    ]


def _directions(machine: Machine, rows: Rows) -> tuple[list[Term], list[Term]]:
    """Read and write ticks; partial sums are read at least as often as half their calls."""
    reads = {op: rows[op] for op in ("IN", "W")}
    writes = {"OUT": rows["OUT"]}
    return _ticks(machine, reads), _ticks(machine, writes)


def _counts(every: Counter[Key], rows: dict[Key, Rows], shape: tuple[int, int]) -> dict[str, dict[str, Bilinear]]:
    first = next(iter(rows.values()))
    return {
        row: {
            k: Bilinear.of([(a * n, b) for key, n in every.items() for a, b in rows[key][row][k]], shape) for k in kinds
        }
        for row, kinds in first.items()
    }


def _distinct(tables: list[Bilinear]) -> tuple[Bilinear, ...]:
    """Drop functions that another one is never below, factor by factor."""
    if len(tables) == 1:
        return (tables[0],)
    kept: list[Bilinear] = []
    for i, one in enumerate(tables):
        if not any(_below(one, two) and (i > j or not _below(two, one)) for j, two in enumerate(tables) if i != j):
            kept.append(one)
    return tuple(kept)


def _below(one: Bilinear, two: Bilinear) -> bool:
    """Whether `one` <= `two` everywhere, as far as equal factors on one side with larger ones on the other show."""
    for mine, fixed in (("a", "b"), ("b", "a")):
        other = {k.tobytes(): v for k, v in zip(getattr(two, fixed), getattr(two, mine), strict=True)}
        if all(
            (match := other.get(k.tobytes())) is not None and bool(np.all(v <= match))
            for k, v in zip(getattr(one, fixed), getattr(one, mine), strict=True)
        ):
            return True
    return False


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
    ticks = _ticks(machine, rows)
    work = [] if machine.timing == "transfer_only" else compute
    return NestTables(
        time=(Bilinear.of([*ticks, *work], shape),),
        bytes=Bilinear.of([t for kinds in rows.values() for t in kinds["bytes"]], shape),
        capacity=capacity,
        exact=True,
        counts={r: {k: Bilinear.of(t, shape) for k, t in kinds.items()} for r, kinds in rows.items()},
        transfer=Bilinear.of(ticks, shape),
        compute=(Bilinear.of(compute, shape),),
    )


def _refuse(machine: Machine) -> None:
    price = machine.transfer
    if price.row_bytes or price.refresh_bytes:
        raise InputError(
            f"machine {machine.name}: DRAM rows and refreshes are prices of whole requests (LPDDR4 regression), "
            "which tile plans do not support; set transfer.row_bytes and refresh_bytes (and their ticks) to 0"
        )
    if price.burst_count == "address" and price.burst_ticks:
        raise InputError(f"machine {machine.name}: tile plans count aligned bursts; set transfer.burst_count=aligned")
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
