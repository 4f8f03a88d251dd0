"""Brute force for partial_engine: every height of strips, every division of a bank, every program.

The referee (`hwmodels.partial_engine.replay`) says whether strips and places fit the banks, and what a load of an input
group and a way of partial maps to DRAM and back cost: by how much a whole program grows with one more of them. For
given places the programs are paths of states

    inputs in places; sums (o, which inputs) in places; sums in DRAM; outputs that are whole

along loads, spills, returns and first runs into a free place. A run whose input and sum are both in places is done at
once, for it costs what it always costs and makes no place less; a whole sum is stored at once. The cheapest path by
Dijkstra's algorithm is then run by the referee, which must count the same. So (EQUAL) holds both ways.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple, Self

from formulations.partial_engine.orders import from_text
from formulations.partial_engine.problem import DECISIONS, EngineFormulation, EnginePart
from formulations.pins import parse_pins
from hwmodels.partial_engine.replay import replay_engine
from hwmodels.partial_engine.schedule import EngineSchedule
from instances.machine.machine import Machine
from instances.network.workload import Layer
from tests.adversary import cases
from tests.adversary.cases import BruteForce, Known, claimed, kept, times, widths
from tests.adversary.claims import Claim

_LARGE = 10**6
#: The engine: maps a run reads and makes.
_IN, _OUT = 2, 2
_PINS = ("spill=no", "strips=1", "strips<=2", "strips>=2", "in_places=1", "in_places<=1", "part_places<=1",
         "part_places>=2", "inputs=banks", "results=banks")  # fmt: skip
Steps = list[tuple[str, int, int, int]]


@dataclass(frozen=True)
class Case(cases.Case):
    """A layer on an engine of 2 x 2 maps."""

    quick: ClassVar = ("auto", "exhaustive", "greedy", "paper")
    slow: ClassVar = ("cp-sat", "milp", "milp-cbc")
    rules: ClassVar = ("", "bank", "pin", "scale")
    least: ClassVar = {"rows": 1, "columns": 1, "stride": 1, "pad": 0, "beyond": 0}

    maps: tuple[int, int, int]
    """(input maps, output maps, groups)."""
    rows: int
    columns: int
    """`rows`, `columns`: of the result."""
    kernel: int
    stride: int
    pad: int
    """`kernel`, `stride`, `pad`: of its rows, pad at the top; columns have a 1-wide kernel."""
    beyond: int
    """Rows of the input that no window reads, at the bottom."""
    bank: int
    bytes: tuple[int, int, int, int]
    """Of an element of inputs, weights, results and partial sums."""
    hidden: bool
    pins: tuple[str, ...] = ()

    @property
    def layer(self) -> Layer:
        """The convolution; of one map a group, with a kernel for every map."""
        n, m, g = self.maps
        high = max(1, (self.rows - 1) * self.stride + self.kernel - self.pad + self.beyond)
        return Layer.model_validate({
            "name": "c", "n": n, "m": m, "g": g, "r": self.rows, "c": self.columns, "kh": self.kernel, "kw": 1,
            "stride_h": self.stride, "pad_top": self.pad, "h": high, "l": self.columns,
        })  # fmt: skip

    def machine(self, bank: int | None = None) -> Machine:
        """The engine, with banks of another size if wanted."""
        engine = {
            "e_in": _IN, "e_out": _OUT, "banks": 2, "bank_bytes": bank or self.bank, "window_taps": 9, "pair_taps": 1,
            "adds": "hidden" if self.hidden else "steps", "clock_hz": 1000, "dsp_macs": 2, "dsps": 220, "brams": 140,
            "bram_bytes": 4096,
        }  # fmt: skip
        return Machine.model_validate({
            "name": "toy", "problem": "partial_engine", "tick_ps": 1, "transfer": {"byte_ticks": 1}, "engine": engine,
            **widths(self.bytes),
        })  # fmt: skip

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether pins hold inputs, and results, in the banks."""
        return "inputs=banks" in self.pins, "results=banks" in self.pins

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """Up to six runs of 2 x 2 maps, up to five rows; banks that hold a little."""
        maps = rng.choice(((4, 4, 1), (3, 4, 1), (6, 4, 1), (4, 6, 1), (5, 3, 1), (3, 5, 1), (3, 3, 1), (2, 5, 1),
                           (4, 3, 2), (1, 1, 5), (2, 2, 2)))  # fmt: skip
        kernel = rng.choice((1, 1, 2, 3))
        case = Case(
            maps, rng.randint(1, 5), rng.randint(1, 3), kernel, rng.choice((1, 1, 2)), rng.randint(0, kernel - 1),
            rng.randint(0, 1), 1, (1, rng.choice((1, 2)), rng.choice((1, 1, 2)), rng.choice((1, 2, 4))),
            hidden=rng.randrange(2) == 0,
        )  # fmt: skip
        if rng.randrange(3) == 0:
            case = replace(case, pins=tuple(rng.sample(_PINS, rng.choice((1, 1, 2)))))
        if rng.randrange(25) == 0:  # nine runs, a place or two for either side
            maps = rng.choice(((6, 6, 1), (5, 6, 1), (6, 5, 1)))
            case = replace(case, maps=maps, rows=rng.choice((1, 1, 2)), kernel=1, pad=0)
            return replace(case, bank=case.rows * case.columns * rng.randint(3, 5) * max(case.bytes[2:]))
        row = case.columns * (case.bytes[0] + max(case.bytes[2:]))
        return replace(case, bank=rng.randint(1, 3 * case.rows + 6) * row + rng.randint(0, row))

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Larger banks or elements, or the optimum pinned."""
        if self.rule == "bank":
            return replace(self, bank=self.bank + self.columns), None
        if self.rule == "scale":
            return replace(self, bytes=times(self.bytes, 3), bank=3 * self.bank), 3 * value
        pins = f"strips={schedule.strips}", f"in_places={schedule.in_places}", f"part_places={schedule.part_places}"
        return replace(self, pins=(*self.pins, *pins)), value

    def simpler(self) -> Iterator[Self]:
        """With fewer maps, taps or bytes."""
        for k in range(3):
            if self.maps[k] > 1:
                yield replace(self, maps=tuple(x - (k == n) for n, x in enumerate(self.maps)))  # type: ignore[arg-type]
        if self.kernel > 1 and self.pad < self.kernel - 1:
            yield replace(self, kernel=self.kernel - 1)
        for less in sorted({self.bank // 2, self.bank - 1}) if self.bank > 1 else ():
            yield replace(self, bank=less)


# ---- brute force -----------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A schedule: bytes, rows of strips, places, program."""

    bytes: int
    rows: int
    places: tuple[int, int]
    steps: Steps


class _State(NamedTuple):
    ins: frozenset[int]
    sums: frozenset[tuple[int, frozenset[int]]]
    away: frozenset[tuple[int, frozenset[int]]]
    done: frozenset[int]


class _Programs:
    """Programs for one height of strips."""

    def __init__(self, case: Case, rows: int) -> None:
        self.layer, self.large = case.layer, case.machine(_LARGE)
        n, m, _ = case.maps
        self.rows, apart = rows, n == m == 1
        self.inputs, self.outputs = (1, 1) if apart else (-(-n // _IN), -(-m // _OUT))
        self.fresh = not case.hidden and self.inputs > 1
        self.held, self.stay = case.held, "spill=no" in case.pins
        plain = self._whole()
        self.base = self._bytes(plain)
        loads, swaps = range(self.inputs), range(self.outputs)
        again: list[Steps] = [[*plain[: i + 1], ("load", i, 0, i), *plain[i + 1 :]] for i in loads]
        self.load = [0 if self.held[0] else self._bytes(steps) - self.base for steps in again]
        self.swap = [self._bytes(self._whole(o)) - self.base if self.inputs > 1 else 0 for o in swaps]

    def _bytes(self, steps: Steps) -> int:
        places = self.inputs, self.outputs
        seen = replay_engine(self.layer, self.large, self.rows, places, steps, held=self.held)
        if seen.faults:
            raise AssertionError(f"the program that prices steps is at fault: {seen.faults[0]}")
        return seen.bytes

    def _whole(self, swapped: int | None = None) -> Steps:
        """Everything has a place; one sum goes to DRAM and comes back."""
        steps: Steps = [] if self.held[0] else [("load", i, 0, i) for i in range(self.inputs)]
        for o in range(self.outputs):
            for i in range(self.inputs):
                steps += self._run(i, o, o, first=i == 0)
                if (i, o) == (0, swapped):
                    steps += [("spill", 0, o, o), ("back", 0, o, o)]
            steps += [] if self.held[1] else [("store", 0, o, o)]
        return steps

    def _run(self, i: int, o: int, place: int, *, first: bool) -> Steps:
        if first or not self.fresh:
            return [("run", i, o, place)]
        return [("run", i, o, -1), ("add", 0, o, place)]

    def least(self, places: tuple[int, int]) -> tuple[int, list[tuple[str, int]]] | None:
        """The fewest bytes with so many places, and the way there; None if no program ends."""
        every = frozenset(range(self.inputs))
        start = _State(every if self.held[0] else frozenset(), frozenset(), frozenset(), frozenset())
        number, seen = count(), set[_State]()
        heap: list[tuple[int, int, _State, tuple[object, ...]]] = [
            (self.base - sum(self.load), next(number), start, ())
        ]
        while heap:
            cost, _, state, path = heapq.heappop(heap)
            if state in seen:
                continue
            seen.add(state)
            whole = {o for o, sums in state.sums if len(sums) == self.inputs}
            if len(state.done | whole) == self.outputs:
                return cost, _unwound(path)
            for word, more, after in self._onward(state, places):
                if after not in seen:
                    heapq.heappush(heap, (cost + more, next(number), after, (path, word)))
        return None

    def _onward(self, state: _State, places: tuple[int, int]) -> Iterator[tuple[tuple[str, int], int, _State]]:
        ins, sums, away, done = state
        known = {o for o, _ in (*sums, *away)} | done
        for i in range(self.inputs) if not self.held[0] else ():
            if i not in ins:
                for gone in ins if len(ins) == places[0] else (-1,):
                    after = ins - {gone} | {i}
                    yield (f"load {gone}", i), self.load[i], self._closed(state._replace(ins=after))
        for one in sums:
            if not self.stay and len(one[1]) < self.inputs:
                yield ("spill", one[0]), 0, state._replace(sums=sums - {one}, away=away | {one})
        if len(sums) < places[1]:
            for one in away:
                swapped = state._replace(sums=sums | {one}, away=away - {one})
                yield ("back", one[0]), self.swap[one[0]], self._closed(swapped)
            for o in range(self.outputs):
                for i in ins if o not in known else ():
                    yield (f"run {i}", o), 0, self._closed(state._replace(sums=sums | {(o, frozenset({i}))}))

    def _closed(self, state: _State) -> _State:
        sums, done = set[tuple[int, frozenset[int]]](), set(state.done)
        for o, added in state.sums:
            both = added | state.ins
            if len(both) == self.inputs and not self.held[1]:
                done.add(o)
            else:
                sums.add((o, both))
        return state._replace(sums=frozenset(sums), done=frozenset(done))

    def written(self, words: list[tuple[str, int]], places: tuple[int, int]) -> Steps:
        """The way as a program, with numbers for the places."""
        free: tuple[list[int], list[int]] = (list(range(places[0])), list(range(places[1])))
        ins = {i: i for i in range(self.inputs)} if self.held[0] else {}
        sums, had, steps = dict[int, int](), dict[int, set[int]](), list[tuple[str, int, int, int]]()

        def rest() -> None:
            for o, place in list(sums.items()):
                for i in ins:
                    if i not in had[o]:
                        steps.extend(self._run(i, o, place, first=not had[o]))
                        had[o].add(i)
                if len(had[o]) == self.inputs and not self.held[1]:
                    steps.append(("store", 0, o, place))
                    free[1].append(sums.pop(o))

        for word, one in words:
            if word.startswith("load"):
                gone = int(word.split()[1])
                ins[one] = ins.pop(gone) if gone >= 0 else free[0].pop()
                steps.append(("load", one, 0, ins[one]))
            elif word == "spill":
                steps.append(("spill", 0, one, sums[one]))
                free[1].append(sums.pop(one))
                continue
            else:
                sums[one] = free[1].pop()
                if word == "back":
                    steps.append(("back", 0, one, sums[one]))
                else:
                    had[one] = {int(word.split()[1])}
                    steps.extend(self._run(int(word.split()[1]), one, sums[one], first=True))
            rest()
        return steps


def _unwound(path: tuple[object, ...]) -> list[tuple[str, int]]:
    words = []
    while path:
        path, word = path  # type: ignore[assignment]
        words.append(word)
    return words[::-1]  # type: ignore[return-value]


def best(case: Case) -> Found | None:
    """The schedule with the fewest bytes of all there are; None if nothing fits."""
    layer, machine, least = case.layer, case.machine(), None
    for rows in range(1, layer.r + 1):
        strips = -(-layer.r // rows)
        if not kept(case.pins, "strips", strips) or (any(case.held) and rows < layer.r):
            continue
        made = _Programs(case, rows)
        for x in range(1, made.inputs + 1):
            for y in range(1, made.outputs + 1):
                faults = replay_engine(layer, machine, rows, (x, y), [], held=made.held).faults
                full = (not made.held[0] or x == made.inputs) and (not made.held[1] or y == made.outputs)
                fits = full and not any("the places take" in fault for fault in faults)
                if not (fits and kept(case.pins, "in_places", x) and kept(case.pins, "part_places", y)):
                    continue
                found = made.least((x, y))
                if found is not None and (least is None or found[0] < least.bytes):
                    least = Found(found[0], rows, (x, y), made.written(found[1], (x, y)))
    return least


class _PartialEngine(BruteForce[Case]):
    name = "partial_engine"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """Its program is run by the referee."""
        part = EnginePart(case.layer, case.machine(), parse_pins(case.pins, DECISIONS))

        def judged(made: EngineSchedule) -> tuple[int, Sequence[str]]:
            places, steps = (made.in_places, made.part_places), [tuple(step) for step in from_text(made.program)]
            seen = replay_engine(case.layer, case.machine(), made.rows, places, steps, held=case.held)  # type: ignore[arg-type]
            return seen.bytes, seen.faults

        return claimed(EngineFormulation(), part, "bytes", engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All programs; the best one is run by the referee."""
        found = best(case)
        if found is None:
            return Known(None)
        seen = replay_engine(case.layer, case.machine(), found.rows, found.places, found.steps, held=case.held)
        return Known.replayed(found.bytes, seen.bytes, seen.faults)


TESTER = _PartialEngine()
