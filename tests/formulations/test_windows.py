"""Windows of timelines: tails by hand, and windows that are decided against all orders."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from formulations.prefetch.guards import Draft, Order, When, quality
from formulations.prefetch.window_cp_sat import build
from formulations.prefetch.windows import tails, window, windows
from hwmodels.timeline.price import occupancy, refusals, times
from hwmodels.timeline.schedule import Load, Step, Store, Timeline
from solver.search import driver_cp_sat
from tests.effort import tries
from tests.formulations.test_prefetch import least, small


def drawn(rng: random.Random, queues: int) -> tuple[Timeline, int]:
    """A timeline of some queues, and the room that it has."""
    timeline, room = small(rng)
    return replace(
        timeline, transfers=tuple(replace(one, queue=one.queue % queues) for one in timeline.transfers)
    ), room


def settled(timeline: Timeline, room: int) -> tuple[Draft, Order, When]:
    draft = Draft(timeline, room)
    order = draft.apart()
    return draft, order, draft.settled(order, draft.close)


def test_tails_by_hand() -> None:
    """Three steps of 10 ticks, a load of 5 for the first, one of 25 for the last that may begin beside step 2.

    From the begin of step 3 it is 10, from the end of step 1 it is 25 + 10 by the load, 10 + 10 by step 2. The first
    load begins 5 + 10 + 35 before the end: 50 in all.
    """
    timeline = Timeline((Step(10, 4),) * 3, (Load(5, 4, 1, 1), Load(25, 4, 3, 2)))
    found = tails(Draft(timeline, 8), [0, 1], [1, 2])
    assert (found.step[3], found.end[1], found.step[1], found.transfer) == (10, 35, 45, [50, 35])
    assert times(timeline).latency == 50


def test_tails_of_two_queues_by_hand() -> None:
    """As above, the last load by another queue behind one of 3: it begins behind that, 35 before the end.

    Of what begins behind step 1 the longest tail counts: the load of 3 that nobody waits for has the other behind it.
    """
    moves = Load(5, 4, 1, 1), Load(3, 0, 3, 2, 1), Load(25, 4, 3, 2, 1), Load(1, 0, 3, 2)
    found = tails(Draft(Timeline((Step(10, 4),) * 3, moves), 8), [1, 0, 2, 3], [1, 2, 2, 2])
    assert (found.begins, found.transfer) == ([3, 5, 5, 5], [5 + 10 + 38, 38, 35, 11])
    assert (found.end[1], found.step[1]) == (38, 48)


@pytest.mark.parametrize("queues", [1, 2])
def test_tails_are_longest_paths(queues: int) -> None:
    """From the first transfer of every queue, and from room for the first step, to the latency."""
    rng = random.Random(8)
    for _ in range(tries(100, 2000)):
        timeline, room = drawn(rng, queues)
        draft, order, when = settled(timeline, room)
        found = tails(draft, order, when)
        first = [tail for tail, event in zip(found.transfer, found.begins, strict=True) if event <= 3]
        assert max([found.room[1], *first]) == quality(draft.clocks(order, when))[0]


@pytest.mark.parametrize("queues", [1, 2])
def test_a_window_of_all_steps_is_the_best_order(queues: int) -> None:
    """Against all orders, guards and limits; what is smaller is a timeline in its bytes and takes what is said."""
    rng, found = random.Random(9), {False: 0, True: 0}
    for _ in range(tries(60, 1000)):
        timeline, room = drawn(rng, queues)
        draft, order, when = settled(timeline, room)
        known = quality(draft.clocks(order, when))[0]
        for steps in (1, 2, draft.last):
            for first in windows(draft, steps):
                now = window(draft, order, when, first, steps)
                assert now.latency == known
                model = build(now)
                said = driver_cp_sat.solve(model.model)
                assert said.status in ("OPTIMAL", "INFEASIBLE")
                if steps == draft.last and first == 1:
                    assert (said.status == "OPTIMAL") == (least(timeline, room) < known)
                if said.solved:
                    made = model.decode(said.solver)
                    assert made is not None
                    other = draft.made(*made)
                    assert not refusals(other)
                    assert occupancy(other).max() <= room
                    assert times(other).latency <= round(said.solver.objective_value) < known
                    if steps == draft.last and first == 1:
                        assert times(other).latency == least(timeline, room)
                found[said.solved] += 1
    assert min(found.values())


def test_a_window_of_two_queues_moves_both() -> None:
    """Two steps of 10 ticks; loads of 10 for both stand the wrong way round, 5 ticks for the first in another queue.

    The first step waits until 20, 40 in all; the other way round until 10, meanwhile the 5 are there: 30.
    """
    moves = Load(10, 1, 2, 1), Load(10, 1, 1, 1), Load(5, 1, 1, 1, 1)
    draft = Draft(Timeline((Step(10, 2),) * 2, moves), 9)
    assert quality(draft.clocks([0, 1, 2], draft.given))[0] == 40
    model = build(window(draft, [0, 1, 2], draft.given, 1, 2))
    said = driver_cp_sat.solve(model.model)
    made = model.decode(said.solver)
    assert made is not None
    assert round(said.solver.objective_value) == quality(draft.clocks(*made))[0] == 30


def test_a_window_that_begins_later_leaves_what_is_before() -> None:
    """Steps of 10 ticks; the second half waits for a load of 2 behind one of 50 for the last step: exchanged there."""
    timeline = Timeline((Step(10, 6),) * 9, (Load(1, 4, 1, 1), Load(50, 4, 9, 4), Load(2, 4, 5, 4)))
    draft = Draft(timeline, 18)
    order, when = [0, 1, 2], draft.given.copy()
    assert quality(draft.clocks(order, when))[0] == 1 + 30 + 52 + 50
    early = driver_cp_sat.solve(build(window(draft, order, when, 1, 3)).model)
    assert early.status == "INFEASIBLE"
    model = build(window(draft, order, when, 4, 3))
    said = driver_cp_sat.solve(model.model)
    made = model.decode(said.solver)
    assert made is not None
    assert made[0] == [0, 2, 1]
    assert quality(draft.clocks(*made))[0] == 1 + 30 + 52 + 10


def test_what_lies_there_from_before_takes_room() -> None:
    """A load of before the window lies beside step 2 in 8 bytes, so that another one for step 3 finds no room there."""
    timeline = Timeline((Step(10, 4), Step(10, 4), Step(10, 8)), (Load(5, 4, 3, 1), Load(10, 4, 3, 3)))
    draft = Draft(timeline, 8)
    now = window(draft, [0, 1], draft.given, 2, 2)
    assert (now.latency, now.free, now.left) == (40, [1], {2: 0, 3: 0})
    assert driver_cp_sat.solve(build(now).model).status == "INFEASIBLE"


def test_limits_behind_a_window_stay() -> None:
    """Loads of 50 ticks for step 4 and of 2 for step 2, a store of 5 behind step 1 that lies beside step 2, not 3.

    In a window of step 1: the short load, the store from 10 to 15, the long one until 65; step 2 runs from 10 to 40,
    as it waits for nothing; step 3 ends at 70, step 4 at 80. Beside step 3 the store finds no room.
    """
    steps = Step(10, 4), Step(30, 4), Step(30, 8), Step(10, 4)
    draft = Draft(Timeline(steps, (Load(50, 1, 4, 1), Load(2, 1, 2, 1), Store(5, 4, 1, 3))), 10)
    model = build(window(draft, [0, 1, 2], draft.given, 1, 1))
    said = driver_cp_sat.solve(model.model)
    made = model.decode(said.solver)
    assert made == ([1, 2, 0], [1, 1, 3])
    assert quality(draft.clocks(*made))[0] == 80
    assert occupancy(draft.made(*made)).max() <= 10


@pytest.mark.parametrize(("steps", "begins"), [(4, [1, 3, 5, 7]), (20, [1])])
def test_windows_overlap_by_half(steps: int, begins: list[int]) -> None:
    """Of nine steps; the last window has all that are left."""
    assert [*windows(Draft(Timeline((Step(1, 1),) * 9, ()), 1), steps)] == begins
