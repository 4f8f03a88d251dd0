"""When everything happens in a nest whose transfers overlap: a graph of jobs, made by running the loops one by one.

A job begins when all jobs are done that it waits for, and the job before it in its queue. The loops are run as the
machine would: entering a tile asks for the next ones as far as there are buffers, leaving one asks for its store. It
shares nothing with `hwmodels.levels.pipeline`, whose text has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer

Ranges = Mapping[str, tuple[int, int]]
_DIMS = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}
#: Steps that are followed, beyond them a fault.
MOST = 300_000


@dataclass(eq=False)
class _Job:
    ticks: int
    after: list[_Job] = field(default_factory=list)
    end: int | None = None

    def done(self) -> int:
        """When it ends; all that it waits for was asked for before."""
        if self.end is None:
            self.end = max((job.done() for job in self.after), default=0) + self.ticks
        return self.end


@dataclass(eq=False)
class _Visit:
    """One tile of a Stay, while it lies there."""

    first: int
    """The step that it is needed at first."""
    ranges: Ranges
    beyond: _Visit | None
    load: _Job | None = None
    store: _Job | None = None
    uses: list[_Job] = field(default_factory=list)
    last: int = 0


class Timeline:
    """The jobs of a nest."""

    def __init__(self, layer: Layer, machine: Machine, nest: LevelNest) -> None:
        assert machine.levels is not None
        self.layer, self.machine, self.nest, self.levels = layer, machine, nest, machine.levels
        self.stays = [item for item in nest.items if isinstance(item, Stay)]
        self.visits: dict[Stay, list[_Visit]] = {stay: [] for stay in self.stays}
        self.steps: list[tuple[Ranges, dict[str, _Visit]]] = []
        self.stamps: dict[Stay, tuple[tuple[int, int], ...]] = {}
        self.tails: dict[str, _Job] = {}

    def end(self) -> int:
        """When the last job ends; raises OverflowError for too many steps."""
        last = max(k for k, item in enumerate(self.nest.items) if isinstance(item, Stay))
        self._run(0, last, {d: (0, self.layer.extent(d)) for d in DIMS}, ())
        asked = sorted(self._asked(), key=lambda one: one[:4])
        by_step: dict[int, list[tuple[int, Stay, _Visit]]] = {}
        for step, kind, _, _, stay, visit in asked:
            by_step.setdefault(step, []).append((kind, stay, visit))
        before: _Job | None = None
        for s in range(len(self.steps) + 1):
            for kind, stay, visit in by_step.get(s, ()):
                (self._load if kind else self._store)(stay, visit)
            if s < len(self.steps):
                ranges, near = self.steps[s]
                tiles = [visit.load for visit in near.values() if visit.load is not None]
                ticks = self._cycles(s, ranges) * self.machine.compute.cycle_ticks
                job = _Job(ticks, tiles + ([before] if before else []))
                job.done()
                for visit in near.values():
                    visit.uses.append(job)
                before = job
        ends = [visit.store for visits in self.visits.values() for visit in visits if visit.store is not None]
        return max([job.done() for job in ends] + ([before.done()] if before else []))

    # ---- running the loops -------------------------------------------------------------------------------------------

    def _run(self, place: int, last: int, ranges: Ranges, loops: tuple[tuple[int, int], ...]) -> None:
        item = self.nest.items[place]
        if isinstance(item, Stay):
            self._enter(item, ranges, loops)
            if place == last:
                if len(self.steps) >= MOST:
                    raise OverflowError
                near: dict[str, _Visit] = {one.operand: self.visits[one][-1] for one in self.stays}
                self.steps.append((ranges, near))
                for one in self.stays:
                    self.visits[one][-1].last = len(self.steps)
            else:
                self._run(place + 1, last, ranges, loops)
            return
        low, high = ranges[item.dim]
        outer = [one.step for one in self.nest.items[:place] if isinstance(one, Cut) and one.dim == item.dim]
        cuts = item.step < min([self.layer.extent(item.dim), *outer])
        for piece, begin in enumerate(range(low, high, item.step)):
            inner = {**ranges, item.dim: (begin, min(begin + item.step, high))}
            self._run(place + 1, last, inner, (*loops, (place, piece)) if cuts else loops)

    def _enter(self, stay: Stay, ranges: Ranges, loops: tuple[tuple[int, int], ...]) -> None:
        """Come to a Stay: a new visit, if its tile is not the one that is there."""
        moving = list(loops)
        while moving and self._dim(moving[-1][0]) not in _DIMS[stay.operand]:
            moving.pop()
        if self.visits[stay] and self.stamps[stay] == tuple(moving):
            return
        self.stamps[stay] = tuple(moving)
        mine = [one for one in self.stays if one.operand == stay.operand]
        at = mine.index(stay)
        beyond = self.visits[mine[at - 1]][-1] if at else None
        visit = _Visit(len(self.steps), ranges, beyond)
        visit.load = _Job(self._load_ticks(stay, ranges, moving))
        self.visits[stay].append(visit)

    def _dim(self, place: int) -> str:
        item = self.nest.items[place]
        return item.dim if isinstance(item, Cut) else ""

    # ---- what is asked for, and when ---------------------------------------------------------------------------------

    def _asked(self) -> Iterator[tuple[int, int, int, int, Stay, _Visit]]:
        """Loads and stores: the step at which they are asked for, 0 (store) or 1, an order, the Stay and the visit."""
        asked: dict[int, int] = {}
        for k, stay in enumerate(self.stays):
            latest = 0
            for i, visit in enumerate(self.visits[stay]):
                early = max(0, i - (self.levels.memory(stay.memory).buffers - 1))
                step = self.visits[stay][early].first
                if visit.beyond is not None:
                    step = max(step, asked[id(visit.beyond)])
                latest = asked[id(visit)] = max(latest, step)
                yield latest, 1, visit.first, k, stay, visit
                if stay.operand == "OUT":
                    yield visit.last, 0, 0, -k, stay, visit

    def _source(self, stay: Stay) -> str:
        mine = [one.memory for one in self.stays if one.operand == stay.operand]
        at = mine.index(stay.memory)
        return mine[at - 1] if at else self.levels.memories[0].name

    def _queued(self, stay: Stay, job: _Job) -> None:
        """Put a transfer behind the one before it in its queue."""
        queue = self._source(stay) if self.levels.queues == "each" else ""
        if queue in self.tails:
            job.after.append(self.tails[queue])
        self.tails[queue] = job
        job.done()

    def _load(self, stay: Stay, visit: _Visit) -> None:
        job, visits = visit.load, self.visits[stay]
        assert job is not None
        i = visits.index(visit) if len(visits) < 64 else self._place(stay, visit)
        buffers = self.levels.memory(stay.memory).buffers
        if i >= buffers:
            old = visits[i - buffers]
            job.after += [old.store] if old.store is not None else old.uses
        if visit.beyond is not None and visit.beyond.load is not None:
            job.after.append(visit.beyond.load)
        if job.ticks < 0:
            job.ticks = 0
            job.done()
        else:
            self._queued(stay, job)
        if visit.beyond is not None and stay.operand != "OUT":
            visit.beyond.uses.append(job)

    def _place(self, stay: Stay, visit: _Visit) -> int:
        low, high, visits = 0, len(self.visits[stay]) - 1, self.visits[stay]
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if visits[middle].first < visit.first else (low, middle)
        return low

    def _store(self, stay: Stay, visit: _Visit) -> None:
        job = visit.store = _Job(self._store_ticks(stay, visit), list(visit.uses))
        if visit.beyond is not None:
            if visit.beyond.load is not None:
                job.after.append(visit.beyond.load)
            visit.beyond.uses.append(job)
        self._queued(stay, job)

    # ---- ticks -------------------------------------------------------------------------------------------------------

    def _size(self, ranges: Ranges, dims: str) -> int:
        total = 1
        for d in dims:
            total *= ranges[d][1] - ranges[d][0]
        return total

    def _load_ticks(self, stay: Stay, ranges: Ranges, moving: list[tuple[int, int]]) -> int:
        """Ticks of the load of a visit, -1 if there is none."""
        price, machine = self.levels.memory(self._source(stay)), self.machine
        if stay.operand == "OUT":
            if all(ranges[d][0] == 0 for d in "nij"):
                return -1
            return price.call_ticks + self._size(ranges, "bgmrc") * machine.psum_bytes * price.byte_ticks
        if stay.operand == "W":
            size = self._size(ranges, "gmnij") * machine.w_bytes
            size += self._size(ranges, "gm") * machine.bias_bytes * self.layer.bias
            return price.call_ticks + size * price.byte_ticks
        before = self.visits[stay][-1].ranges if self.visits[stay] and moving and moving[-1][1] > 0 else None
        along = self._dim(moving[-1][0]) if moving and machine.sliding else ""
        elements = self._size(ranges, "bgn")
        for d in "rc":
            low, high = self._window(d, ranges[d])
            if before is not None and d == along:
                low = max(low, self._window(d, before[d])[1])
            elements *= max(0, high - low)
        moved = elements * self.layer.inputs * machine.in_bytes
        return price.call_ticks * self.layer.inputs + moved * price.byte_ticks if elements else -1

    def _window(self, d: str, outputs: tuple[int, int]) -> tuple[int, int]:
        layer = self.layer
        stride, dilation, pad, taps, size = (
            (layer.stride_h, layer.dilation_h, layer.pad_top, layer.kh, layer.h) if d == "r"
            else (layer.stride_w, layer.dilation_w, layer.pad_left, layer.kw, layer.l)
        )  # fmt: skip
        low, high = outputs
        return max(0, low * stride - pad), min(size, (high - 1) * stride - pad + (taps - 1) * dilation + 1)

    def _store_ticks(self, stay: Stay, visit: _Visit) -> int:
        """Ticks of the store of a visit: of results, if its last step has added the last products."""
        price, machine, ranges = self.levels.memory(self._source(stay)), self.machine, visit.ranges
        done = self.steps[visit.last - 1][0]
        whole = all(done[d][1] == self.layer.extent(d) for d in "nij")
        size = machine.out_bytes if whole else machine.psum_bytes
        return price.call_ticks + self._size(ranges, "bgmrc") * size * price.byte_ticks

    def _cycles(self, step: int, ranges: Ranges) -> int:
        """Cycles of a step: rounds of lanes over the pieces that the loops inside all Stays make."""
        unit, layer = self.machine.compute, self.layer
        if unit.model == "none":
            number = len(self.steps)
            return layer.cycles // number + (step < layer.cycles % number)
        deep = layer.m == layer.n == 1
        lanes = {"g": unit.cols} if deep else {"m": unit.rows, "n": unit.cols}
        last = max(k for k, item in enumerate(self.nest.items) if isinstance(item, Stay))
        total = layer.inputs
        for d in DIMS:
            pieces = [ranges[d][1] - ranges[d][0]]
            for item in self.nest.items[last:]:
                if isinstance(item, Cut) and item.dim == d:
                    pieces = [min(item.step, size - x) for size in pieces for x in range(0, size, item.step)]
            total *= sum(-(-size // lanes.get(d, 1)) for size in pieces)
        return total
