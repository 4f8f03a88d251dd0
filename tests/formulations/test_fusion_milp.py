"""The bound of time by clocks and transfers together: by hand, against all paths, and of plans."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from formulations.clock import ENDLESS
from formulations.fusion.latency import search
from formulations.fusion.latency.bounds import Floors, through
from formulations.fusion.latency.milp import build
from formulations.fusion.latency.options import Options
from formulations.fusion.latency.paths import Move, Paths, State
from formulations.fusion.latency.products import BEFORE
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import DECISIONS
from formulations.pins import parse_pins
from solver import check, show
from solver.search import driver_milp
from tests.adversary.network_time import planned
from tests.adversary.network_time_nets import Tiny
from tests.effort import tries
from tests.formulations.test_fusion_whole import drawn_case

FIRST: State = (0, frozenset(), False)
LAST: State = (1, frozenset(), False)


def way(before: State, after: State, *each: tuple[list[list[int]], int]) -> Move:
    matrices, ticks = (np.array(some, np.int64) for some in zip(*each, strict=True))
    none = np.zeros_like(ticks)
    return Move(before, after, matrices, none, none, ticks[:, None], [None] * len(each))  # type: ignore[list-item]


def solved(moves: Sequence[Move], count: int, most: int) -> int | None:
    said = driver_milp.solve("highs", build(moves, count, most, (0, 2), lambda _: None).model)
    assert said.status in ("OPTIMAL", "INFEASIBLE")
    return said.bound


def alike(ticks: int) -> list[list[int]]:
    return [[ticks, BEFORE, BEFORE], [BEFORE, 0, BEFORE], [BEFORE, BEFORE, 0]]


def test_clocks_and_transfers_are_of_one_path() -> None:
    """10 ticks by clocks and 20 by transfers, or the other way round: 20, each by itself 10; in 15 there is none."""
    moves = [way(FIRST, LAST, (alike(10), 20), (alike(20), 10))]
    assert solved(moves, 1, 100) == 20
    assert solved(moves, 1, 15) is None
    assert solved([way(FIRST, LAST, (alike(10), 20), (alike(20), 10), (alike(14), 13))], 1, 100) == 14


def paths_of(moves: Sequence[Move], count: int, state: State = FIRST) -> Iterator[list[tuple[np.ndarray, int]]]:  # type: ignore[type-arg]
    if state[0] == count:
        yield []
        return
    for move in moves:
        if move.state == state:
            for matrix, (ticks,) in zip(move.matrix, move.moving, strict=True):
                yield from ([(matrix, int(ticks)), *rest] for rest in paths_of(moves, count, move.after))


def value(path: Sequence[tuple[np.ndarray, int]]) -> int:  # type: ignore[type-arg]
    """Step by step: the larger of the clocks at the end, and of the sum of transfers."""
    clocks = [0, 0, 0]
    for matrix, _ in path:
        clocks = [max(int(matrix[i][j]) + clocks[j] for j in range(3)) for i in range(3)]
    return max(clocks[0], clocks[2], sum(ticks for _, ticks in path))


def test_the_bound_is_the_least_of_all_paths() -> None:
    """Random matrices, as ways between states with and without a map."""
    rng = random.Random(4)
    for _ in range(tries(12, 200)):
        count = rng.randint(1, 3)
        states: list[State] = [(cut, frozenset(some), False) for cut in range(count + 1) for some in ((), (1,))]
        states = [state for state in states if not (state[1] and state[0] in (0, count))]
        moves = []
        for before in states:
            for after in states:
                if before[0] < after[0] and (rng.random() < 0.7 or after[0] - before[0] == 1):
                    each = [
                        ([[rng.choice((BEFORE, rng.randint(-9, 20))) if i != j else rng.randint(0, 20)
                           for j in range(3)] for i in range(3)], rng.randint(0, 25)) for _ in range(2)
                    ]  # fmt: skip
                    moves.append(way(before, after, *each))
        assert solved(moves, count, 500) == min(value(path) for path in paths_of(moves, count))


def floors_of(case: Tiny) -> tuple[Paths, FusionPart]:
    part = FusionPart(case.network, case.machine, parse_pins(case.pins, DECISIONS))
    suited = Options(part.groups, part.demands.order.largest, part._fastest.alone).suited
    return Paths(Floors(part.groups, part._fastest.nests, suited), ENDLESS, 10), part


@pytest.mark.parametrize("seed", [4, 14, 26, 30])
def test_the_bound_of_a_network_is_the_least_of_all_its_paths(seed: int) -> None:
    """And no less than the bounds by clocks and by transfers, each by itself; ways that are left out are of no use."""
    case = drawn_case(seed)
    paths, _ = floors_of(case)
    moves = [move for some in paths.moves for move in some]
    least = min(value(path) for path in paths_of(moves, paths.count))
    assert max(paths.ends()[0][0], paths.moving) <= least
    assert solved(moves, paths.count, 10_000) == least
    assert solved([*through(paths, least + 1)], paths.count, least) == least
    few = [*through(paths, least)]
    assert not few or solved(few, paths.count, least - 1) is None


@pytest.mark.parametrize(("seed", "engine"), [(15, "milp-cbc"), (26, "milp")])
def test_plans_are_those_of_dynamic_programming(seed: int, engine: str) -> None:
    case = drawn_case(seed)
    first, second = (planned(case, name) for name in ("dynamic", engine))
    assert second.part.measures == first.part.measures
    bounds = [plan.part.bounds["time"] or 0 for plan in (first, second)]
    assert bounds[0] <= bounds[1] <= second.part.measures["time"]
    assert check(second).ok
    assert "no order of its transfers is below" in show(second)


def test_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WAYS", 1)
    plan = planned(drawn_case(14), "milp")
    assert str(plan.part.stats["note"]).startswith("engine milp looks at 1 ways of groups at the most, here are ")
    assert plan.part.measures == planned(drawn_case(14)).part.measures
