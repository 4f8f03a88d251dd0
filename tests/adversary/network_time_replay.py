"""A plan of certile, counted and simulated here: steps and transfers from its decisions, times from its queue.

Of a plan are believed: the layers of every run, the rows that its last layer makes by visit, maps and bytes of weights
that stay, maps that are sampled, which transfers there are (of what, for which step), and their order with the steps
they wait for. Rows, bytes, ticks, and what lies on chip are counted anew. Plans with layers by themselves, columns, or
sums in turns are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from solver.plan.plan import Plan
from tests.adversary.network_time_events import Job, Move, simulate
from tests.adversary.network_time_groups import Beside, Made, Strips, beside
from tests.adversary.network_time_nets import Tiny
from tests.adversary.network_time_turns import loaded, moved, passing, turns


def replayed(case: Tiny, plan: Plan) -> int | str | None:
    """Its time, or what is wrong with it; None if it is not read."""
    runs = plan.part.schedule.runs
    for run in runs:
        if not hasattr(run, "streams") or run.rows.halo != "retain":
            return None
        if any(
            (one.first, one.last) != (run.first, run.last) or not passing(case, one.first, one.last)
            for one in run.blocks
        ):
            return None
        if run.columns.first < run.columns.last:
            return None
    try:
        return _Replay(case, plan).time()
    except _Wrong as fault:
        return str(fault)


class _Wrong(Exception):
    pass


class _Replay:
    def __init__(self, case: Tiny, plan: Plan) -> None:
        self.case, self.plan, self.runs = case, plan, plan.part.schedule.runs
        events = plan.timeline
        self.engine = sorted((one for one in events if one.lane == "engine"), key=lambda one: one.step)
        self.moves = sorted((one for one in events if one.lane != "engine"), key=lambda one: (one.begin, one.end))
        self.number: dict[int, int] = {
            stream.store: stream.maker + 1 for run in self.runs for stream in run.streams if not stream.outside
        }
        self.steps = list[tuple[int, int]]()
        self.wanted = dict[tuple[bool, int, int], list[tuple[int, int]]]()
        self.strips = list[Strips]()
        """Of every step."""

    def time(self) -> int | str:
        """Count all runs, compare transfers, simulate."""
        stay = frozenset(self._map(store) for run in self.runs for store in run.residents)
        for run in self.runs:
            self._run(run, stay)
        if len(self.steps) != len(self.engine):
            raise _Wrong(f"{len(self.engine)} steps, {len(self.steps)} counted")
        moves = [self._move(one) for one in self.moves]
        for key in self.wanted:
            self._covered(key, [self._read(one) for one in moves if (one.load, one.store, one.step) == key])
        for one in moves:
            if one.store >= 0 and (one.load, one.store, one.step) not in self.wanted:
                raise _Wrong(f"{one} is not needed")
        job = Job(tuple(self.steps), tuple(moves))
        return simulate(job, self.case.memory, range(len(moves)), [one.when for one in self.moves])

    def _covered(self, key: tuple[bool, int, int], rows: list[tuple[int, int]]) -> None:
        left = sorted(self.wanted[key])
        for begin, end in sorted(rows):
            mine = next((one for one in left if one[0] == begin and end <= one[1]), None)
            if mine is None:
                raise _Wrong(f"rows {begin}..{end} of {key}, wanted are {left}")
            left.remove(mine)
            if end < mine[1]:
                left.append((end, mine[1]))
        if left:
            raise _Wrong(f"rows {left} of {key} are not moved")

    def _map(self, store: int) -> int:
        return self.number.get(store, 0)

    def _move(self, one: Any) -> Move:
        """A transfer, as it is counted here."""
        load = one.lane == "load"
        if one.what.startswith("weights of "):
            return Move(load, self.case.weights(one.bytes), one.bytes, one.step, queue=self.case.queues - 1)
        name, _, rest = one.what.partition(" rows ")
        k = 0 if name == "in" else int(name[1:])
        begin, end = 0, self.case.maps[k][1]
        if rest:
            low, high = rest.split("-")
            begin, end = int(low), int(high) + 1
        strips, pitch = self.strips[one.step - 1], self._pitch(load=load, step=one.step, k=k)
        number = (end - 1 - begin) // pitch + 1
        if begin % pitch or (end - 1) % pitch:
            raise _Wrong(f"{one.what} begins or ends with a row that is not read")
        size, ticks = number * self.case.row_bytes(k), self.case.box(k, number)
        if load:
            size, ticks = number * strips.row_bytes(k), strips.box(k, number)
        if size != one.bytes:
            raise _Wrong(f"{one.what} has {size} bytes, not {one.bytes}")
        return Move(load, ticks, size, one.step, k, (begin, end))

    def _pitch(self, *, load: bool, step: int, k: int) -> int:
        return self.strips[step - 1].pitch(k) if load else 1

    def _read(self, one: Move) -> tuple[int, int]:
        """The rows that are moved of those that are read."""
        pitch = self._pitch(load=one.load, step=one.step, k=one.store)
        return one.rows[0] // pitch, (one.rows[1] - 1) // pitch + 1

    # ---- runs --------------------------------------------------------------------------------------------------------

    def _run(self, run: Any, stay: frozenset[int]) -> None:
        case, first, last = self.case, run.first, run.last
        near = beside(case, first, last, stay)
        if {self._map(store) for store in run.residents} != set(near.maps):
            raise _Wrong(f"{run.residents} lie beside {first}..{last}, not {near.maps}")
        outside = [self._map(one.store) for one in run.streams if one.outside]
        twice = frozenset(k for k in outside if outside.count(k) > 1)
        height = next(one.rows.step for one in run.streams if one.maker == last and not one.outside)
        sampled = frozenset(self._map(store) for store in run.sampled)
        strips = Strips(case, first, last, height, warm=run.rows.first < 1, twice=twice, sampled=sampled)
        if not sampled <= set(strips.sampleable) - near.maps:
            raise _Wrong(f"{run.sampled} are sampled in {first}..{last}")
        self._steps_of(run, strips, near)
        self.strips += [strips] * (len(self.steps) - len(self.strips))

    def _steps_of(self, run: Any, strips: Strips, near: Beside) -> None:
        first = run.first
        if run.blocks:
            self._in_turns(strips, near, run.blocks[0].channels, run.weights)
            return
        makings = strips.makings(near.maps)
        kept, seen, begins, ends = dict[int, int](), set[int](), list[int](), list[int]()
        final = {made.layer: n for n, made in enumerate(makings)}
        for n, made in enumerate(makings):
            t = made.layer
            begins.append(len(self.steps) + 1)
            stays = run.weights[t - first]
            for filters, here in self._blocks(made, stays, kept, again=t in seen):
                held = near.bytes + made.held + sum(kept.values()) + here
                self.steps.append((self._ticks(t, filters, made.span), held))
            seen.add(t)
            ends.append(len(self.steps))
            if final[t] == n:
                kept.pop(t, None)
        for piece in strips.pieces(makings, near.maps):
            at = begins[piece.at] if piece.load else ends[piece.at]
            key = piece.load, strips.streams[piece.stream].store, at
            self.wanted.setdefault(key, []).append(piece.rows)

    def _in_turns(self, strips: Strips, near: Beside, channels: int, weights: tuple[int, ...]) -> None:
        """Steps of two layers that take turns, each with the weights of its block."""
        case, kept, begins, ends = self.case, 0, dict[int, int](), dict[int, int]()
        for n, turn in enumerate(turns(strips, channels, near.maps)):
            begins[turn.visit] = len(self.steps) + 1
            for low in range(0, case.maps[strips.last][0], channels):
                self._at(len(self.steps), strips.first)
                ticks = here = 0
                for k, t in enumerate((strips.first, strips.last)):
                    size, rows = case.made[t].filter_bytes, turn.rows[k]
                    stay = weights[k] // max(1, size)
                    block = loaded(case, turn, k, t, range(low, low + channels), stay, first=n == 0)
                    kept, here = kept + len(block[0]) * size, here + len(block[1]) * size
                    ticks += case.compute(t, rows, channels) if rows else 0
                    self._weights(len(self.steps) + 1, t, sum(map(len, block)) * size)
                self.steps.append((ticks, near.bytes + turn.held + kept + here))
            ends[turn.visit] = len(self.steps)
        for load, k, span, at in moved(strips, near.maps, begins, ends):
            self.wanted.setdefault((load, strips.streams[k].store, at), []).append(span)

    def _weights(self, step: int, t: int, size: int) -> None:
        name = f"weights of n{t + 1}"
        if (found := sum(one.bytes for one in self.moves if one.what == name and one.step == step)) != size:
            raise _Wrong(f"step {step} has {found} bytes of weights of layer {t}, not {size}")

    def _blocks(
        self, made: Made, stays: int, kept: dict[int, int], *, again: bool
    ) -> Iterator[tuple[int, int]]:  # fmt: skip
        """Filters that are computed in every step of a layer in a visit, and bytes that are there for it alone."""
        layer, t = self.case.made[made.layer], made.layer
        if not layer.filters:
            self._at(len(self.steps), t)
            yield layer.made[0], 0
            return
        there = stays if again else 0
        done, count, begin = 0, layer.filters, len(self.steps)
        while done < count:
            self._at(begin, t)
            name = f"weights of n{t + 1}"
            loaded = sum(one.bytes for one in self.moves if one.what == name and one.step == begin + 1)
            more = 0 if again else min(stays, there + loaded) - min(stays, there)
            if more:
                kept[t] = kept.get(t, 0) + more
            there += loaded
            filters = there // layer.filter_bytes - done
            if filters <= 0 or there > count * layer.filter_bytes:
                raise _Wrong(f"step {begin + 1} has {there} bytes of weights of layer {t}")
            done, begin = done + filters, begin + 1
            yield filters, loaded - more

    def _ticks(self, t: int, filters: int, rows: tuple[int, int]) -> int:
        """Ticks of a step."""
        return self.case.said(self.plan, t, {"m": (0, filters), "r": rows})

    def _at(self, step: int, t: int) -> None:
        if step >= len(self.engine) or self.engine[step].what != f"n{t + 1}":
            raise _Wrong(f"step {step + 1} is not of layer {t}")
