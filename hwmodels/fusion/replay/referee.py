"""Replay of a network of which groups of layers run strip by strip: every byte, every pixel on chip, and every fault.

Layers that run alone are walked by `hwmodels.nest.replay.referee`; a group is walked visit by visit
(`hwmodels.fusion.replay.strips` says what a visit is), with a mask of what lies on chip of every map. Around both,
`Account` keeps track of banks, of rows that stay and of rows in DRAM. Small groups are also executed on integers in a
memory of the bytes that were counted, and compared with their layers run whole. It shares no arithmetic with prices:
they may only agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hwmodels.fusion.replay.count import Count, extent, weight_bytes, weight_owners
from hwmodels.fusion.replay.execute import execute
from hwmodels.fusion.replay.strips import Walk, as_seen, channels
from hwmodels.joint.replay import Account, SingleLayers, room_of
from hwmodels.nest.replay.referee import Replay
from hwmodels.schedule import FusedRun, LayerRun, Steps, Stream
from instances.machine.machine import Machine
from instances.network.stores import Stores

#: Groups of at most this many multiply-accumulates and additions are executed on integers, ...
EXECUTE_WORK = 2_000_000
#: ... if that takes at most so many shifted copies of pieces.
EXECUTE_TAPS = 40_000
#: Groups with more visits times maps are refused: each takes about 10 us.
MAX_MOMENTS = 10_000_000


@dataclass(frozen=True)
class FusedReplay:
    """What happened in a group."""

    operand_bytes: dict[str, int]
    """What DRAM moves, by operand: IN, W, OUT."""
    macs: int
    """Multiply-accumulates, with those that are computed again."""
    peak_bytes: int
    """The most bytes of strips, resident weights and the buffer for filters on chip at once."""
    visits: int
    """Steps of rows times steps of columns."""
    ticks: int
    """Visit by visit the longer of computing and of moving, with calls and segments of transfers."""
    compute_ticks: int
    """Of all that it computes, one after the other."""
    executed: bool
    """Whether the group was computed on integers, strip by strip in the bytes that are counted, and equals its layers
    run whole.
    """
    faults: tuple[str, ...]


@dataclass(frozen=True)
class FusionReplay:
    """What happened: the walk of every run, and everything that is wrong."""

    runs: tuple[Replay | FusedReplay, ...]
    faults: tuple[str, ...]


def replay_fusion(found: Stores, machine: Machine, runs: Sequence[LayerRun | FusedRun]) -> FusionReplay:
    """Walk all runs in their order; a run's residents are numbers of stores.

    Where the runs do not fit the network, or banks and rows do not add up, nothing is walked beyond: `runs` is empty.
    Raises InputError if the nest of a layer that runs alone is malformed.
    """
    faults: list[str] = []
    walked: list[Replay | FusedReplay] = []
    account, single = Account(found, machine), SingleLayers(found, machine)
    t = 0
    for run in runs:
        layers = range(t, t + 1) if isinstance(run, LayerRun) else range(run.first, run.last + 1)
        if not t == layers.start < layers.stop <= len(found.layers):
            said = f"after {t} of {len(found.layers)} it runs layers {layers.start} to {layers.stop - 1}"
            return FusionReplay((), (f"the plan does not run the layers in their order: {said}",))
        name = _name(found, layers)
        wrong = [] if isinstance(run, LayerRun) else list(_shape(found, machine, run))
        wrong = wrong or list(account.faults_before(run, layers))
        if wrong:
            return FusionReplay((), tuple(f"{name}: {fault}" for fault in wrong))
        if isinstance(run, LayerRun):
            alone = single.replay(t, run, loads=account.loads(run, t))
            walked.append(alone)
            said_now = list(single.faults(run, alone))
        else:
            group = _group(found, machine, run)
            walked.append(group)
            said_now = list(group.faults)
        faults += [f"{name}: {fault}" for fault in said_now]
        account.after(run, layers)
        t = layers.stop
    if t != len(found.layers):
        return FusionReplay((), (f"the plan has {t} layers, the network {len(found.layers)}",))
    faults += account.faults_of_results()
    return FusionReplay(tuple(walked), tuple(dict.fromkeys(faults)))


def _name(found: Stores, layers: range) -> str:
    first, last = found.layers[layers[0]].name, found.layers[layers[-1]].name
    return f"layer {first}" if len(layers) == 1 else f"layers {first} to {last}"


def _group(found: Stores, machine: Machine, run: FusedRun) -> FusedReplay:
    """Walk a group, and execute it if it is small and free of faults."""
    walk = Walk(found, run)
    counted = Count(machine, walk).run_all()
    faults, executed = list(counted.faults), False
    room, whose = room_of(found, machine, run)
    if counted.peak_bytes > room:
        faults.append(f"strips and weights take {counted.peak_bytes:,} bytes, {whose} {room:,}")
    if not counted.faults and counted.work <= EXECUTE_WORK and counted.taps <= EXECUTE_TAPS:
        done = execute(found, machine, walk, counted.peak_bytes)
        faults += done.faults
        executed = not done.faults
    return FusedReplay(
        counted.operand_bytes, counted.macs, counted.peak_bytes, walk.visits, counted.ticks, counted.compute_ticks,
        executed, tuple(faults),
    )  # fmt: skip


# ---- whether a run fits the network ----------------------------------------------------------------------------------


def _shape(found: Stores, machine: Machine, run: FusedRun) -> Iterator[str]:
    """What is malformed: steps, weights, maps that do not pass strip by strip, streams, paces."""
    count = run.last - run.first + 1
    yield from _steps("rows", run.rows)
    yield from _steps("columns", run.columns)
    if (visits := _visits(run)) * len(run.streams) > MAX_MOMENTS:
        yield f"{visits:,} visits of {len(run.streams)} maps are too many to walk"
    if (len(run.weights), len(run.unwritten)) != (count, count):
        yield f"it has {count} layers, weights for {len(run.weights)} and unwritten rows for {len(run.unwritten)}"
        return
    owners = weight_owners(found, run)
    for k, (owner, stay) in enumerate(zip(owners, run.weights, strict=True)):
        if stay and owner != k:
            yield f"weights of {found.layers[run.first + k].name} stay with {found.layers[run.first + owner].name}'s"
    for layer, stay in zip(found.layers[run.first : run.last + 1], run.weights, strict=True):
        if not 0 <= stay <= weight_bytes(layer, machine):
            yield f"{stay:,} bytes of weights of {layer.name} stay, it has {weight_bytes(layer, machine):,}"
    yield from _passing(found, run)
    yield from _turns(found, run)
    wrong = [*_sampled(found, run)] or [*_streams(as_seen(found, run), run)]
    yield from wrong or _paces(as_seen(found, run), run)


def _visits(run: FusedRun) -> int:
    return (run.rows.last - run.rows.first + 1) * (run.columns.last - run.columns.first + 1)


def _steps(axis: str, steps: Steps) -> Iterator[str]:
    if steps.halo not in ("retain", "recompute"):
        yield f"the halo of {axis} is retained or recomputed, not {steps.halo!r}"
    if steps.first > steps.last:
        yield f"steps of {axis} go from {steps.first} to {steps.last}"


def _passing(found: Stores, run: FusedRun) -> Iterator[str]:
    """Maps that are written and read in the group are complete in it, and both see the same rows and columns."""
    made = {found.writes[t] for t in range(run.first, run.last + 1)}
    for t in range(run.first, run.last + 1):
        layer = found.layers[t]
        if found.unlike(t):
            yield f"{layer.name} reads one map twice, broadcast along different dimensions: it runs by itself"
            continue
        if found.barriers and found.barriers[t] >= run.first:
            yield f"{layer.name} begins when {found.layers[found.barriers[t]].name} is complete, both are in the group"
        for s in dict.fromkeys(found.reads[t]):
            store, several = found.stores[s], found.apart.get((t, s), 1)
            if s not in made:
                if several > 1:
                    yield f"{layer.name} reads {several} parts of {store.name} from outside: it runs by itself"
                continue
            parts = [p for p, _ in store.parts if p < t]
            makers = [found.layers[p] for p in parts]
            elements = sum(x.b * x.g * x.m for x in makers)
            if any(p < run.first for p in parts):
                yield f"{layer.name} reads {store.name}, a part of it was made before the group"
            elif (wanted := found.operand(t, s).elements * several) > elements:
                yield f"{layer.name} reads {wanted} elements a pixel of {store.name}, layers before it make {elements}"
            if store.whole or any((x.r, x.c) != found.operand(t, s)[2:] for x in makers):
                yield f"{layer.name} sees {store.name} with other rows or columns than it is made with"


def _turns(found: Stores, run: FusedRun) -> Iterator[str]:
    """Layers that take turns follow each other, alone, channel by channel; the last one may add all channels up."""
    end = run.first - 1
    for blocks in run.blocks:
        if not end < blocks.first < blocks.last <= run.last:
            yield f"layers {blocks.first} to {blocks.last} do not take turns after {end}, up to {run.last}"
            return
        end = blocks.last
        first, *middle, last = found.layers[blocks.first : blocks.last + 1]
        count = channels(first)
        for t in range(blocks.first + 1, blocks.last + 1):
            store = found.stores[found.writes[t - 1]]
            apart = store.results or store.dram or found.writes[t - 1] in run.residents
            alone = (t,) == store.readers and [t - 1] == [p for p, _ in store.parts]
            joins = t == blocks.last and _joins(found, run, t)
            if apart or not alone or not (joins or found.reads[t] == (found.writes[t - 1],)):
                yield f"{found.layers[t].name} takes turns with {found.layers[t - 1].name}: its map is not for it alone"
        if 1 not in (first.g, first.m) or any((x.g, x.m, x.n) != (count, 1, 1) for x in middle):
            yield f"{first.name} to {last.name} take turns: their maps do not go through them channel by channel"
        if (last.g, last.n) != (1, count) and (last.g, last.m, last.n) != (count, 1, 1):
            yield f"{last.name} does not add up the {count} channels of {first.name}, nor takes them one by one"
        if not 0 < blocks.channels < count or count % blocks.channels:
            yield f"{first.name} takes turns for {blocks.channels} of {count} channels: a divisor, not all"
        elif (turns := _visits(run) * (blocks.last - blocks.first) * count // blocks.channels) > MAX_MOMENTS:
            yield f"{turns:,} turns of {first.name} to {last.name} are too many to walk"


def _joins(found: Stores, run: FusedRun, t: int) -> bool:
    """Whether a layer joins the map of the one before with others that no layer of the group makes."""
    mine, layer = {found.writes[u] for u in range(run.first, run.last + 1)}, found.layers[t]
    within = [s for s in found.reads[t] if s in mine]
    return layer.kind == "eltwise" and not any(layer.patterns) and within == [found.writes[t - 1]]


def _sampled(found: Stores, run: FusedRun) -> Iterator[str]:
    """Of a map that is sampled nothing is made in the group or on chip, and no reader needs other pixels."""
    layers = range(run.first, run.last + 1)
    if list(run.sampled) != sorted(set(run.sampled)):
        yield f"maps {list(run.sampled)} are sampled: they ascend"
    for s in run.sampled:
        readers = [t for t in layers if s in found.reads[t]]
        if not readers or s in run.residents or any(found.writes[t] == s for t in layers):
            yield f"map {s} is sampled: it is not what is loaded from outside"
            return
        name = found.stores[s].name
        for t in readers:
            if not found.skips(t):
                yield f"{name} is sampled, {found.layers[t].name} reads pixels beside each other"


def _streams(found: Stores, run: FusedRun) -> Iterator[str]:
    """One stream for every layer, in their order; then those from outside, which share the readers of their stores."""
    layers = range(run.first, run.last + 1)
    own, outside = run.streams[: len(layers)], run.streams[len(layers) :]
    if len(own) < len(layers) or any(s.outside for s in own) or not all(s.outside for s in outside):
        yield f"it has {len(layers)} layers: as many streams come first, then those from outside"
        return
    for t, stream in zip(layers, own, strict=True):
        store = found.writes[t]
        readers = tuple(u for u in range(t + 1, run.last + 1) if store in found.reads[u])
        if (stream.store, stream.maker, stream.readers) != (store, t, readers):
            yield f"the stream of {found.layers[t].name}: its map, maker or readers are not those of the network"
    made = {found.writes[t] for t in layers}
    read = [(s, t) for t in layers for s in dict.fromkeys(found.reads[t]) if s not in made]
    for s, t in read:
        times = sum(stream.store == s and t in stream.readers for stream in outside)
        if times != 1:
            yield f"{found.layers[t].name} reads {found.stores[s].name} from {times} streams, not one"
    for stream in outside:
        yield from _outside(found, stream, set(read))


def _outside(found: Stores, stream: Stream, read: set[tuple[int, int]]) -> Iterator[str]:
    """A stream from outside has readers that read its map, and see it alike."""
    readers = stream.readers
    if not readers or any((stream.store, u) not in read for u in readers):
        yield f"a stream of map {stream.store} from outside has readers that do not read it so: {list(readers)}"
    elif list(readers) != sorted(set(readers)) or stream.maker != readers[0]:
        yield f"{found.stores[stream.store].name} from outside comes before its first reader; readers ascend"
    elif len({(found.operand(u, stream.store)[2:], found.pitch.get(u)) for u in readers}) > 1:
        yield f"readers of a stream of {found.stores[stream.store].name} see other rows or columns of it"


def _paces(found: Stores, run: FusedRun) -> Iterator[str]:
    """Maps advance, and not beyond their ends."""
    walk = Walk(found, run)
    for k, stream in enumerate(run.streams):
        lacks = "" if not stream.outside else found.operand(stream.maker, stream.store).lacks
        for axis, pace, size in zip(("rows", "columns"), (stream.rows, stream.columns), extent(walk, k), strict=True):
            if pace.step < (axis[0] not in lacks) or not 0 <= pace.end <= size:
                yield (
                    f"{found.stores[stream.store].name} advances by {pace.step} {axis} to {pace.end}, "
                    f"it has {size}; a step is at least 1, 0 where it is broadcast"
                )
