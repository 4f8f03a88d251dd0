"""The transfers of a plan in the order of its queue, each with the runs of addresses that it reads or writes.

Of groups a transfer moves rows of a strip, or weights that follow each other; of layers by themselves what of a tile is
fetched or written, as `hwmodels.nest.price.overlap` lays tiles out. Where layers take turns for weights that find no
room together one transfer brings those of all of them, filter by filter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, product

import numpy as np

from formulations.fusion.groups import Net
from formulations.fusion.latency.timelines import Carried
from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.part import FusionPart
from formulations.fusion.steps import GroupSteps, Part
from formulations.fusion.work import rows_of
from hwmodels.nest.price.overlap import Part as Operand
from hwmodels.outcome import Counts
from hwmodels.schedule import FusedRun, LayerRun, NetworkRun
from hwmodels.timeline.schedule import Load, Move, Timeline, awaits
from hwmodels.transfer import ticks
from instances.errors import InputError
from instances.machine.machine import Machine
from solver.plan.plan import Plan
from solver.problems.registry import PROBLEMS
from tests.referees.dram.layout import Box, Dram, Ints, Span

#: Operand, layer, runs and calls.
Moved = tuple[str, int, Ints, int]


@dataclass(frozen=True)
class Transfer:
    """A transfer of a plan's timeline."""

    move: Move
    operand: str
    """IN, W, OUT or PSUM."""
    layer: int
    runs: Ints
    """(N, 2) first byte and bytes each, in the order in which they are moved."""
    calls: int = 1
    """How often the DMA starts for it: for every filter where layers take turns."""

    @property
    def bytes(self) -> int:
        """That are moved.

        A plan counts of a layer by itself the largest tile instead, and where layers take turns what finds room.
        """
        return int(self.runs[:, 1].sum())


@dataclass(frozen=True)
class Trace:
    """What a plan does."""

    dram: Dram
    timeline: Timeline
    transfers: list[Transfer]
    """Those of the timeline, in its order."""
    latency: int
    """As planned, in ticks."""

    def by_operand(self) -> Counter[str]:
        """Bytes that are moved."""
        moved = Counter[str]()
        for one in self.transfers:
            moved[one.operand] += one.bytes
        return +moved


def trace_of(plan: Plan) -> Trace:
    """Return the transfers of a plan.

    Raises InputError if the plan has no queue, has several, or if other bytes are moved than it says.
    """
    part = PROBLEMS[plan.problem].parts_of(plan)[0]
    if not isinstance(part, FusionPart):
        raise InputError(f"a plan of problem fusion or joint has transfers, this one is of {plan.problem}")
    trace, said = traced(part, plan.part.schedule), Counter[str]()
    for row in plan.part.figures:
        said.update(row.bytes)
    if (seen := trace.by_operand()) != +said:
        raise InputError(f"the trace moves {dict(seen)} bytes, the plan {dict(+said)}")
    return trace


def traced(part: FusionPart, runs: NetworkRun[FusedRun | LayerRun]) -> Trace:
    """Return the transfers of a schedule; raises InputError if it has no queue, or several."""
    if (carried := part.carried(runs)) is None:
        raise InputError("the plan has too many transfers for a queue")
    laid = carried.laid
    if any(one.queue for one in laid.timeline.transfers):
        raise InputError("the plan has several DMA queues")
    dram = Dram(part.net, part.machine)
    moved = list(_moved(dram, carried))
    made = [Transfer(one, *moved[k]) for k, one in zip(laid.order, laid.timeline.transfers, strict=True)]
    return Trace(dram, laid.timeline, made, laid.ticks)


def _moved(dram: Dram, carried: Carried) -> Iterator[Moved]:
    """Yield all transfers, in the order of their numbers."""
    for source, part in zip(carried.sources, carried.laid.parts, strict=True):
        made = list(_of_nest(dram, source) if isinstance(source, NestSteps) else _of_group(dram, source, part))
        yield from made
        for (operand, t), one in list(zip(part.names, part.moves, strict=True))[len(made) :]:  # weights that stay
            yield operand, t, dram.weight_bytes(t, 0, 0, one.bytes), 1


# ---- groups ----------------------------------------------------------------------------------------------------------


def _of_group(dram: Dram, source: GroupSteps, part: Part) -> Iterator[Moved]:
    streams = source.group.streams
    which = chain.from_iterable(np.repeat(one.stream, one.number).tolist() for one in (source.loads, source.stores))
    pieces, weights = {k: _pieces(source, k) for k in range(len(streams))}, _weights(dram, source, part)
    for n, ((operand, t), k, rows) in enumerate(zip(part.names, which, rows_of(source), strict=True)):
        if k < 0:
            yield weights[n]
            continue
        box = Box(rows, _columns(pieces[k], rows))
        yield operand, t, dram.read(t, streams[k].store, box) if streams[k].outside else dram.made(t, box), 1


def _weights(dram: Dram, source: GroupSteps, part: Part) -> dict[int, Moved]:
    """Transfers of weights, by their numbers in the part.

    The first bytes of a layer's weights stay, those behind them come again, step by step.
    """
    mine, found = defaultdict[int, list[int]](list), dict[int, Moved]()
    tight = source.tight.tolist() if source.together.any() else []
    turns = {step + 1: int(source.layer[step]) for step in tight}
    for n, ((operand, t), one) in enumerate(zip(part.names, part.moves, strict=True)):
        if operand != "W" or not isinstance(one, Load):
            continue
        if one.due in turns:  # ahead of what comes to stay
            runs = _in_turns(dram, source, turns.pop(one.due))
            found[n] = "W", t, runs, len(runs)
        else:
            mine[t].append(n)
    for t, some in mine.items():
        k = t - source.group.first
        kept, ends = _kept(source, k), list(accumulate(part.moves[n].bytes for n in some))
        number = bisect_right(ends, ends[-1] - kept * int(source.owners[k] == k))
        for first, few in ((kept, some[:number]), (0, some[number:])):
            at = 0
            for n in sorted(few, key=lambda n: awaits(part.moves[n])):
                found[n] = "W", t, dram.weight_bytes(t, first, at, part.moves[n].bytes), 1
                at += part.moves[n].bytes
    return found


def _kept(source: GroupSteps, k: int) -> int:
    """Bytes of a layer's weights that stay."""
    return int(source.kept[0, source.owners[k]])


def _in_turns(dram: Dram, source: GroupSteps, first: int) -> Ints:
    """What does not stay of the filters of layers that take turns, layer by layer."""
    found = []
    for k in np.flatnonzero(source.runs == first).tolist():
        size, kept = int(source.size[k]), _kept(source, k)
        for f in range(kept // max(1, size), int(source.number[k])):
            begin = max(kept, f * size)
            found.append(dram.weight_bytes(source.group.first + k, 0, begin, (f + 1) * size - begin))
    return np.concatenate(found)


def _pieces(source: GroupSteps, k: int) -> list[tuple[Span, Span]]:
    """Rows and columns of a stream that every visit loads or stores, the last first."""
    spans = source.time.spans(k)
    rows, columns = spans if source.group.streams[k].outside else source.time.new(k, *spans)
    every = [(r, c) for r, c in product(rows.T.tolist(), columns.T.tolist()) if r[0] < r[1] and c[0] < c[1]]
    return [((r[0], r[1]), (c[0], c[1])) for r, c in reversed(every)]


def _columns(pieces: list[tuple[Span, Span]], rows: Span) -> Span:
    """The columns of a transfer of some rows, which are all or the next ones of the last piece."""
    (_, end), columns = pieces[-1]
    if rows[1] == end:
        pieces.pop()
    return columns


# ---- layers by themselves --------------------------------------------------------------------------------------------


def _of_nest(dram: Dram, source: NestSteps) -> Iterator[Moved]:
    t, inputs = source.number, iter(_loaded(dram.net, source))
    for one, size, load, store in source.moved:
        operand, _, lacks = one
        s = next(inputs) if operand == "IN" else -1
        if not size:
            continue
        boxes = _boxes(source, one)
        for k in np.flatnonzero(load).tolist():
            if operand == "W":
                yield "W", t, dram.weights(t, boxes(k)), 1
            elif operand == "IN":
                yield "IN", t, dram.read(t, s, _box(source, boxes(k), "n", lacks)), 1
            else:
                yield "PSUM", t, dram.sums(t, _box(source, boxes(k), "m")), 1
        if operand == "OUT":
            final = _boxes(source, ("OUT", source.layer.resident_out, ""))
            for k in np.flatnonzero(store).tolist():
                runs = dram.made(t, _box(source, final(k), "m"))
                if taken(dram.machine, "OUT", runs) == store[k]:
                    yield "OUT", t, runs, 1
                else:
                    yield "PSUM", t, dram.sums(t, _box(source, boxes(k), "m")), 1


def _loaded(net: Net, source: NestSteps) -> list[int]:
    """The maps of the inputs that are loaded."""
    layer, reads = source.layer, net.reads[source.number]
    each = zip(reads, layer.residents, layer.patterns, strict=True)
    return [s for s, resident, lacks in each if not (resident and "r" in lacks)]


class _boxes:
    """By step the box of an operand, begin and end along every dimension."""

    def __init__(self, source: NestSteps, one: Operand) -> None:
        self.found = source.tiled.boxes(*one)

    def __call__(self, k: int) -> dict[str, Span]:
        return {d: (int(first[k]), int(first[k] + size[k])) for d, (first, size) in self.found.items()}


def _box(source: NestSteps, spans: dict[str, Span], channel: str, lacks: str = "") -> Box:
    """A box of a map; of what it has one of there is one."""
    spans = {**spans, **dict.fromkeys(lacks, (0, 1))}
    (first, last), (lo, hi), each = spans["g"], spans[channel], source.layer.extent(channel)
    if hi - lo == each:
        channels: tuple[Span, ...] = ((first * each, last * each),)
    else:
        channels = tuple((g * each + lo, g * each + hi) for g in range(first, last))
    return Box(spans["r"], spans["c"], channels, spans["b"])


def taken(machine: Machine, operand: str, runs: Ints, calls: int = 1) -> int:
    """The ticks that a plan counts for these runs."""
    price = machine.transfer_of(operand)
    return ticks(price, Counts(calls=calls, segments=len(runs), bytes=int(runs[:, 1].sum()))) if len(runs) else 0
