"""Prefetch: guards and limits of an order, orders by CP-SAT, bounds; all against every guard, limit and order."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import pytest

from formulations.prefetch.cp_sat import build
from formulations.prefetch.forward import forward
from formulations.prefetch.guards import Draft, apart, bound, earliest, quality, settled, soon, urgent
from formulations.prefetch.mending import mended
from hwmodels.compiled import PATIENCE, compiled
from hwmodels.timeline.price import occupancy, refusals, times
from hwmodels.timeline.replay import replay
from hwmodels.timeline.schedule import Load, Move, Step, Store, Timeline
from solver.search import driver_cp_sat
from tests.effort import tries
from tests.hwmodels.test_timeline import some


def ways(one: Move, steps: int) -> list[Move]:
    """Every guard, or limit."""
    if isinstance(one, Load):
        return [replace(one, guard=guard) for guard in range(1, one.due + 1)]
    return [replace(one, limit=limit) for limit in range(one.released + 1, steps + 2)]


def every(timeline: Timeline, room: int) -> Iterator[Timeline]:
    """Every guard and limit that fits, in the order of the timeline."""
    for moves in product(*(ways(one, len(timeline.steps)) for one in timeline.transfers)):
        one = replace(timeline, transfers=moves)
        if occupancy(one).max() <= room and not refusals(one):
            yield one


def least(timeline: Timeline, room: int) -> int:
    """The least latency of all orders, guards and limits."""
    orders = (replace(timeline, transfers=moves) for moves in permutations(timeline.transfers))
    return min(times(one).latency for order in orders for one in every(order, room))


def small(rng: random.Random, *, queues: int = 2) -> tuple[Timeline, int]:
    """A timeline of up to four steps and transfers, and room for it."""
    while True:
        one = some(rng)
        if len(one.steps) <= 4 and len(one.transfers) <= 4:
            moves = tuple(
                replace(move, queue=move.queue % queues, **_ready(rng, move)) for move in one.transfers
            )  # fmt: skip
            return replace(one, transfers=moves), max(s.bytes for s in one.steps) + rng.choice((0, 2, 5, 9, 14))


def _ready(rng: random.Random, one: Move) -> dict[str, int]:
    """Of some loads the step by which what they load is there."""
    return {"ready": rng.randint(1, one.due)} if isinstance(one, Load) and rng.random() < 0.3 else {}


def solved(timeline: Timeline, room: int, below: int) -> Timeline | None:
    model = build(timeline, room, below)
    said = driver_cp_sat.solve(model.model)
    return model.decode(said.solver) if said.solved else None


@pytest.mark.parametrize(("room", "latency", "guards"), [
    (6, 3 * (6 + 10), [1, 2, 3]),  # nothing lies beside a step
    (12, 6 + 30, [1, 1, 2]),  # one load beside the step before its own
    (18, 6 + 30, [1, 1, 1]),
])  # fmt: skip
def test_loads_begin_as_early_as_they_find_room(room: int, latency: int, guards: list[int]) -> None:
    loads = tuple(Load(6, 6, due, due) for due in (1, 2, 3))
    timeline, found = settled(Timeline((Step(10, 6),) * 3, loads), room)
    assert (found.latency, [one.guard for one in timeline.transfers if isinstance(one, Load)]) == (latency, guards)
    assert bound(timeline, room) <= latency
    assert solved(timeline, room, latency) is None


def test_stores_wait_for_loads_where_there_is_room() -> None:
    """A store of 20 ticks after step 1, ahead of a load of 5 that step 2 reads: 10 + 20 + 5 + 10 ticks.

    The load may lie beside step 1: ahead of the store it delays nothing, 10 + 20 ticks.
    """
    steps, store, load = (Step(10, 4), Step(10, 4)), Store(20, 4, 1, 2), Load(5, 4, 2, 2)
    stored_first, found = settled(Timeline(steps, (store, load)), 8)
    assert found.latency == 10 + 20 + 5 + 10
    timeline = solved(stored_first, 8, found.latency)
    assert timeline is not None
    assert times(timeline).latency == 10 + 20 == bound(timeline, 8)
    assert isinstance(timeline.transfers[0], Load)


def test_what_begins_behind_another_takes_no_room_before() -> None:
    """Of 8 bytes 2 are left beside steps 1 and 2: the load of 6 waits for step 3, that of 1 behind it as well."""
    steps, moves = (Step(10, 6), Step(10, 6), Step(10, 7)), (Load(1, 6, 3, 3), Load(1, 1, 3, 3))
    assert earliest(Timeline(steps, moves), 8).transfers == moves


def test_a_store_behind_a_load_ends_after_the_step_that_lets_it_begin() -> None:
    """Transfers that take no time: the load begins when step 2 has ended, the store behind it ends then, too.

    Step 3 cannot wait for the store, behind a load that has step 3 as its guard.
    """
    moves = (Load(0, 6, 3, 3), Store(0, 6, 1, 4))
    timeline = Timeline((Step(10, 6),) * 3, moves)
    settling, found = settled(timeline, 12)
    assert (found.latency, settling.transfers) == (30, moves)
    draft = Draft(timeline, 12)
    assert draft.free(draft.order, draft.given, draft.clocks(draft.order, draft.given)) == draft.given


def test_what_lies_beside_a_step_may_be_what_fits_not_what_is_best() -> None:
    """In 4 bytes beside step 1 the load of 5 ticks fits, not that of 9 and 6 bytes: at least 9 * 4 / 6 = 6 are there.

    So 8 are not, 10 + 8 ticks; 10 + 9 are the truth.
    """
    timeline = Timeline((Step(10, 6), Step(0, 10)), (Load(9, 6, 2, 2), Load(5, 4, 2, 2)))
    assert (bound(timeline, 10), least(timeline, 10)) == (18, 19)


def test_guards_of_an_order_are_the_best_there_are() -> None:
    """One queue, the limits as they are: of all guards that fit none are faster, and those that are found fit."""
    rng, compared = random.Random(2), 0
    while compared < tries(60, 2000):
        timeline, room = small(rng, queues=1)
        given = next(iter(every(timeline, room)), None)  # limits that are possible in this order
        if given is None:
            continue
        found = earliest(given, room)
        limits = [one.limit for one in given.transfers if isinstance(one, Store)]
        assert [one.limit for one in found.transfers if isinstance(one, Store)] == limits
        assert occupancy(found).max() <= room
        best = min(
            times(one).latency for one in every(timeline, room)
            if [move.limit for move in one.transfers if isinstance(move, Store)] == limits
        )  # fmt: skip
        assert times(found).latency == best, (given, room)
        compared += 1


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not there")
def test_orders_are_the_same_by_compiled_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards, limits and order of random timelines of one and two queues."""
    rng = random.Random(6)
    every = [small(rng) for _ in range(60)]
    monkeypatch.setattr(compiled, "spent", float("-inf"))
    before = [soon(*one) for one in every]
    monkeypatch.setattr(compiled, "spent", PATIENCE + 1)
    assert [soon(*one) for one in every] == before


def test_orders_by_cp_sat_are_the_best_there_are() -> None:
    """Of all orders, guards and limits; what is settled fits and is no worse than before; bounds hold."""
    rng, attained = random.Random(3), 0
    for _ in range(tries(60, 2000)):
        timeline, room = small(rng)
        start = apart(timeline)
        assert not refusals(start)
        quick, found = settled(start, room)
        assert not refusals(quick)
        assert occupancy(quick).max() <= room
        best, other = least(timeline, room), solved(timeline, room, found.latency + 1)
        assert bound(timeline, room) <= best <= found.latency <= times(start).latency
        assert other is not None
        assert occupancy(other).max() <= room
        assert times(other).latency == best, (timeline, room)
        attained += found.latency == best
    assert attained


def test_what_is_due_later_is_put_off() -> None:
    """Nine steps of 10 ticks; a load of 50 ticks for the last stands ahead of one of 2 for the second.

    So step 2 waits for 52 - 10 ticks; the other way round nothing waits but for the end of the step before.
    """
    timeline = Timeline((Step(10, 6),) * 9, (Load(50, 4, 9, 9), Load(2, 4, 2, 2)))
    draft = Draft(timeline, 18)
    when = draft.settled(draft.order, draft.given)
    assert quality(draft.clocks(draft.order, when))[0] == 52 + 80
    order, when = mended(draft, draft.order, when)
    assert (order, when, quality(draft.clocks(order, when))[0]) == ([1, 0], [1, 1], 90)


def test_loads_are_pulled_ahead_of_a_store_that_is_not_released() -> None:
    """Two steps of 10 ticks; what the first one stores in 4 stands ahead of 12 loads of 1 tick for the second.

    So step 2 begins at 10 + 4 + 12. Ten loads have time beside step 1; then the store is put off behind the others.
    """
    timeline = Timeline((Step(10, 20),) * 2, (Store(4, 4, 1, 2), *(Load(1, 1, 2, 2) for _ in range(12))))
    draft = Draft(timeline, 40)
    when = draft.settled(draft.order, draft.given)
    assert quality(draft.clocks(draft.order, when))[0] == 26 + 10
    order, when = mended(draft, draft.order, when)
    assert (quality(draft.clocks(order, when))[0], order[-1]) == (12 + 10, 0)


def test_what_is_due_later_need_not_wait_for_a_map() -> None:
    """Steps of 10, 2 and 10 ticks; step 1 stores a map in 4, step 2 loads it again in 4, step 3 loads 6 of weights.

    By due step: the map is loaded from 14 to 18, step 2 ends at 20, the weights are there at 24, and step 3 ends at 34.
    Going forward the weights are loaded beside step 1. In 6 bytes they find no room there.
    """
    moves = Store(4, 4, 1, 2), Load(4, 4, 2, 2, ready=2), Load(6, 6, 3, 3)
    draft = Draft(Timeline((Step(10, 6), Step(2, 6), Step(10, 6)), moves), 16)
    by_due = draft.settled(draft.apart(), draft.close)
    assert quality(draft.clocks(draft.apart(), by_due))[0] == 34
    order, when = forward(draft)
    assert (order, when) == ([2, 0, 1], [3, 2, 1])
    assert quality(draft.clocks(order, when))[0] == 30
    assert forward(Draft(draft.timeline, 6)) == ([0, 1, 2], [2, 2, 3])
    later = replace(draft.timeline, transfers=(Store(30, 4, 1, 2), *moves[2:]))
    assert forward(Draft(later, 16)) == ([1, 0], [4, 1])  # beside steps 2 and 3 there is room: none waits for the store


def test_what_is_no_timeline_is_not_possible() -> None:
    """As the price says, for orders, guards and limits of any kind."""
    rng, seen = random.Random(6), set[bool]()
    for _ in range(tries(200, 2000)):
        timeline, room = small(rng)
        draft = Draft(timeline, room)
        order = rng.sample(draft.order, len(draft.order))
        when = [rng.randint(1, fixed) if load else rng.randint(fixed + 1, draft.last)
                for load, fixed in zip(draft.load, draft.fixed, strict=True)]  # fmt: skip
        when = [max(at, ready) if load else at for at, ready, load in zip(when, draft.ready, draft.load, strict=True)]
        made = draft.made(order, when)
        possible = not [fault for fault in refusals(made) if "bytes, it has" not in fault]
        assert draft.possible(order, when) == possible
        seen.add(possible)
    assert seen == {False, True}


def test_settling_never_takes_longer() -> None:
    """Guards and limits that fit are changed, on many steps; nothing is later than with nothing beside a step."""
    rng = random.Random(4)
    for _ in range(tries(40, 1000)):
        one = some(rng)
        steps = len(one.steps) * 5
        moves = [
            replace(move, due=move.due * 5 - 2, guard=1) if isinstance(move, Load)
            else replace(move, released=move.released * 5 - 2, limit=steps + 1)
            for move in one.transfers
        ]  # fmt: skip
        timeline = apart(Timeline(tuple(s for s in one.steps for _ in range(5)), tuple(moves)))
        room = max(s.bytes for s in one.steps) + rng.choice((0, 3, 8))
        begun, after = times(timeline), settled(timeline, room)
        assert occupancy(after[0]).max() <= room
        assert bound(timeline, room) <= after[1].latency <= begun.latency


def test_orders_that_are_tried_are_timelines() -> None:
    """Loads just in time, or earlier: what loads wait for is stored before, all fits, and the best is no worse."""
    rng, better = random.Random(5), 0
    for _ in range(tries(40, 1000)):
        one = small(rng, queues=1)[0]
        moves = [
            replace(move, due=move.due * 5 - 2, guard=1, ready=max(1, move.ready * 5 - 7)) if isinstance(move, Load)
            else replace(move, released=move.released * 5 - 2, limit=5 * len(one.steps) + 1)
            for move in one.transfers
        ]  # fmt: skip
        timeline = Timeline(tuple(s for s in one.steps for _ in range(5)), tuple(moves))
        room = max(s.bytes for s in one.steps) + rng.choice((0, 3, 8, 20))
        begun = settled(apart(timeline), room)[1].latency
        for spare in (0, 3, 10, 99):
            tried = settled(urgent(timeline, room, spare), room)[0]
            assert occupancy(tried).max() <= room
            assert not refusals(tried)
            assert not replay(tried).faults
            draft = Draft(tried, room)
            mine = mended(draft, draft.order, draft.given)
            assert draft.possible(*mine)
            assert quality(draft.clocks(*mine)) <= quality(draft.clocks(draft.order, draft.given))
            assert occupancy(draft.made(*mine)).max() <= room
        draft = Draft(timeline, room)
        course = draft.made(*forward(draft))
        assert occupancy(course).max() <= room
        assert not refusals(course)
        assert bound(timeline, room) <= replay(course).latency
        best = soon(timeline, room)[1].latency
        assert bound(timeline, room) <= best <= begun
        better += best < begun
    assert better
