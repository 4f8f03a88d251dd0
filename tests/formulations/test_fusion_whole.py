"""The search of all options of small networks: by hand, against all paths, beside dynamic programming, refusals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import cast

import numpy as np
import pytest

from formulations.clock import ENDLESS
from formulations.fusion.latency import whole
from formulations.fusion.latency.channels import Channels, Price
from formulations.fusion.latency.options import Options, Passed, There
from formulations.fusion.latency.paths import Paths
from formulations.fusion.latency.whole import Whole, last_of, matrix_of, ratio_of, sizes_of
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import DECISIONS
from formulations.fusion.steps import Part, joined
from formulations.pins import parse_pins
from hwmodels.timeline.schedule import Load, Step, Timeline
from solver import check, show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from tests.adversary.network_time import planned
from tests.adversary.network_time_events import Job, Move, Search
from tests.adversary.network_time_nets import Tiny, drawn, pinned
from tests.adversary.network_time_replay import replayed
from tests.effort import tries
from tests.formulations.test_prefetch import least, small

#: The most layers of a group.
LONGEST = 10


def drawn_case(seed: int) -> Tiny:
    rng = random.Random(seed)
    case = drawn(rng)
    return pinned(case, rng) if seed % 2 else case


#: A queue, and two of which the first one loads weights; a tick a byte.
ONE, TWO = (Channels(queues, len(queues) - 1, 0, *[Price(1, 0, 0)] * 3) for queues in ((0,), (1, 0)))


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_clocks_by_hand() -> None:
    """A step of 10 ticks and 12 bytes behind loads of 6 and 4, ahead of a store of 5 ticks; nothing has calls.

    In 12 bytes: it begins at 10, ends at 20, the store ends at 25; the queue is busy for 15. In 15 bytes 3 bytes of the
    next loads may be there when it ends: A1 is 17, and what is stored may be behind these: A2 is 22.
    """
    part = Part([Step(10, 12)])
    part.load(("W", 0), 6, 6, 1)
    part.load(("W", 0), 4, 4, 1)
    part.store(("OUT", 0), 5, 5, 1)
    for room, clocks in ((12, [20, 20, 25]), (15, [20, 17, 22])):
        after = (matrix_of(part, room, [1], ONE) + np.zeros(7, np.int64)).max(axis=1)
        assert after.tolist() == [*clocks, *clocks, 15]


def test_calls_ahead_by_hand() -> None:
    """The same with calls of 20 ticks: loads of 26 and 24, a store of 25; a byte takes up to 6 ticks (24 of 4).

    Of 3 bytes ahead 18 ticks may be gone: A1 is 60 - 18 where calls count; where bytes count it is as before.
    """
    part = Part([Step(10, 12)])
    part.load(("W", 0), 26, 6, 1)
    part.load(("W", 0), 24, 4, 1)
    part.store(("OUT", 0), 25, 5, 1)
    after = (matrix_of(part, 15, [6], ONE) + np.zeros(7, np.int64)).max(axis=1)
    assert after.tolist() == [60, 50, 75, 20, 17, 22, 75]


def test_clocks_of_two_queues_by_hand() -> None:
    """The load of 4 ticks by another queue, which ends before that of 6: the step begins at 6 and ends at 16.

    In 15 bytes 3 bytes of each queue's next loads may be there by then; the store ends at 21. Queues are busy for 4
    ticks, and for 11.
    """
    part = Part([Step(10, 12)], queues={"W": 1})
    part.load(("IN", 0), 6, 6, 1)
    part.load(("W", 0), 4, 4, 1)
    part.store(("OUT", 0), 5, 5, 1)
    for room, clocks in ((12, [16, 16, 16, 21]), (15, [16, 13, 13, 18])):
        after = (matrix_of(part, room, [1, 1], TWO) + np.zeros(10, np.int64)).max(axis=1)
        assert after.tolist() == [*clocks, *clocks, 4, 11]


@pytest.mark.parametrize("queues", [1, 2])
def test_clocks_are_not_above_the_best_order(queues: int) -> None:
    """Random steps and transfers with calls, in two parts: beside all orders, guards and limits.

    Of two queues one loads alone.
    """
    rng, channels = random.Random(12), (ONE, TWO)[queues - 1]
    last = np.array(last_of(channels)) == 0
    for _ in range(tries(150, 3000)):
        timeline, room = small(rng, queues=1)
        moves = [
            replace(
                one, ticks=one.ticks + rng.choice((one.bytes, one.bytes, 9)),
                queue=rng.randrange(queues) if isinstance(one, Load) and one.ready == 1 else 0,
            )
            for one in timeline.transfers
        ]  # fmt: skip
        timeline, cut = replace(timeline, transfers=tuple(moves)), rng.randint(0, len(timeline.steps))
        parts = [Part([*some], queues={"W": 1}) for some in (timeline.steps[:cut], timeline.steps[cut:])]
        for one in moves:
            fixed = one.due if isinstance(one, Load) else one.released
            part, step = parts[fixed > cut], fixed - cut * (fixed > cut)
            add = part.load if isinstance(one, Load) else part.store
            add(("W" if one.queue else "OUT", 0), one.ticks, one.bytes, step)
        clocks = np.zeros(len(last), np.int64)
        for part in (part for part in parts if part.steps):
            clocks = (matrix_of(part, room, ratio_of(parts, channels), channels) + clocks).max(axis=1)
        assert max(clocks[last].tolist()) <= least(timeline, room)


def test_finer_blocks_by_hand() -> None:
    """3 rows of a pixel, 9 cycles for each of 2 filters, then 2 for each of 3 pixels, in one strip (24 ticks).

    In blocks of a filter the first step waits for 3 rows and 3 bytes, and 3 rows are stored at the end: 3 + 3 + 24 + 3.
    In strips of a row 2 + 3 + 24 + 1, which is the best there is (`test_network_time`).
    """
    case = Tiny((1, 3, 1), (("conv", (0,), 2, 3, 1, 1), ("conv", (1,), 1, 1, 1, 0)), 30)
    plan = planned(case, "cp-sat")
    assert plan.part.measures["time"] == (2 + 3) + 24 + 1
    assert plan.part.stats["least_of_options"] == 30
    assert check(plan).ok


# ---- against all paths -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given(Job):
    """A timeline for the adversary's search of orders; each load behind all stores that it waits for."""

    ready: tuple[int, ...] = ()

    def needs(self) -> list[list[int]]:
        return [
            [k for k, one in enumerate(self.moves) if mine.load and not one.load and one.step < ready]
            for mine, ready in zip(self.moves, self.ready, strict=True)
        ]


def job_of(timeline: Timeline) -> Given:
    moves = tuple(
        Move(isinstance(one, Load), one.ticks, one.bytes, one.due if isinstance(one, Load) else one.released)
        for one in timeline.transfers
    )
    ready = tuple(one.ready if isinstance(one, Load) else 0 for one in timeline.transfers)
    return Given(tuple((step.ticks, step.bytes) for step in timeline.steps), moves, ready)


def every_path(options: Options, cut: int = 0, there: There = frozenset()) -> Iterator[list[Passed]]:
    """All paths of options, without any bound."""
    count = len(options.net.layers)
    if cut == count:
        yield []
        return
    for last in range(cut, min(count, cut + LONGEST)):
        for after in Paths._after(cast(Paths, _Only(options)), cut, last, there):
            place = options.near(cut, last, there, after)
            for way in options.ways(cut, last, [place])[place]:
                for rest in every_path(options, last + 1, after):
                    yield [Passed(way, there, after), *rest]


@dataclass
class _Only:
    options: Options


def least_of_all(case: Tiny, below: float) -> float:
    """The least time of all paths in all sizes, by the adversary's search of orders, if it is below something."""
    part = FusionPart(case.network, case.machine, parse_pins(case.pins, DECISIONS))
    demands, seen = part.demands.order, set[Timeline]()
    sizes = sizes_of(part.groups, demands)
    for most in dict.fromkeys((demands.largest, *(weights for weights, _ in sizes))):
        options = Options(part.groups, most, part._fastest.alone)
        for path in every_path(options):
            runs = options.runs(path)
            for size in sizes:
                timeline = joined(part.timelines.parts(part.numbered(runs), *size), demands.groups)
                if timeline not in seen:
                    seen.add(timeline)
                    search = Search(job_of(timeline), part.timelines.room, 2**40 if below == inf else int(below))
                    found = search.run()
                    below = below if found is None else found
    return below


@pytest.mark.parametrize("seed", [5, 16, 36])
def test_the_best_of_all_paths_is_found(seed: int) -> None:
    """No path in any size, with any order, is below what is proven of them; the plan is as fast as the best."""
    the_best_is_found(drawn_case(seed))


@pytest.mark.slow(12)
@pytest.mark.parametrize("seed", [13, 15, 19, 20, 24, 25, 28, 32, 38])
def test_the_best_of_all_paths_is_found_of_more_networks(seed: int) -> None:
    the_best_is_found(drawn_case(seed))


def the_best_is_found(case: Tiny) -> None:
    plan = planned(case, "cp-sat")
    ticks = plan.part.measures["time"]
    assert plan.part.stats["least_of_options"] == ticks
    assert least_of_all(case, ticks) == ticks
    assert least_of_all(case, ticks + 1) in (ticks, ticks + 1)


def test_paths_come_in_the_order_of_what_they_are_not_below() -> None:
    """Of all paths of a network without a limit: each once, and none is below what was said to be left."""
    case = drawn_case(40)
    part = FusionPart(case.network, case.machine, parse_pins(case.pins, DECISIONS))
    options = Options(part.groups, part.demands.order.largest, part._fastest.alone)
    search = Whole([options], part.demands.order, part.timelines.part, ENDLESS, LONGEST)
    left, seen = 0.0, list[Timeline]()
    for made in search.candidates(lambda: inf):
        assert made.least >= search.left >= left
        left = search.left
        seen.append(made.timeline)
    expected = {
        joined(part.timelines.parts(part.numbered(options.runs(path)), *size))
        for path in every_path(options) for size in search.sizes
    }  # fmt: skip
    assert len(seen) == len(set(seen))
    assert set(seen) == {one for one in expected if max(step.bytes for step in one.steps) <= part.timelines.room}


# ---- beside dynamic programming --------------------------------------------------------------------------------------


def compared(case: Tiny) -> tuple[Plan, Plan]:
    """Plans of dynamic programming and of cp-sat; what the second one says holds beside the first one."""
    first, second = (planned(case, engine) for engine in ("dynamic", "cp-sat"))
    ticks, other = (plan.part.measures.get("time", inf) for plan in (first, second))
    bound = first.part.bounds["time"] or 0
    assert bound <= other <= ticks
    assert second.part.bounds == first.part.bounds
    if ticks < inf:
        assert bound <= int(str(second.part.stats["least_of_options"])) <= other
        assert replayed(case, second) in (None, other)
    if first.status == "OPTIMAL":
        assert (second.status, other) == ("OPTIMAL", ticks)
    return first, second


@pytest.mark.parametrize("seed", [305, 314, 333])
def test_no_plan_is_above_that_of_dynamic_programming(seed: int) -> None:
    compared(drawn_case(seed))


@pytest.mark.slow(200)
def test_no_plan_of_many_networks_is_above_that_of_dynamic_programming() -> None:
    """Of 300 networks (where everything is asked for) 22 have no plan; 258 are equal, 20 take less."""
    found = Counter[str]()
    for seed in range(2001, 2001 + tries(60, 300)):
        first, second = (plan.part.measures.get("time") for plan in compared(drawn_case(seed)))
        found["none" if first is None else "equal" if first == second else "below"] += 1
    assert found["equal"] > 5 * found["below"] > 0


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_too_many_options_are_refused_and_the_order_is_decided_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MOST_OPTIONS", 1)
    first, second = (planned(drawn_case(14), engine) for engine in ("dynamic", "cp-sat"))
    assert second.part.measures["time"] <= first.part.measures["time"]
    assert "windows" in second.part.stats
    assert check(second).ok
    said = "engine cp-sat looks at 1 options of groups at the most, here are "
    assert str(second.part.stats["note"]).startswith(said)
    assert said in show(second)


@pytest.mark.parametrize("pins", [["prefetch=no"], ["prefetch<=1"], ["queue=due"], ["transfer<=8"]])
def test_demands_on_the_order_are_kept(pins: list[str]) -> None:
    """With each of them the plan is no better than without, and is as it should be."""
    case = drawn_case(16)
    free = planned(case, "cp-sat")
    plan = solve(case.network, case.machine, problem="fusion", objective="time", pins=pins, engine="cp-sat")
    assert check(plan).ok
    assert free.part.measures["time"] <= plan.part.measures["time"]
    assert plan.part.stats["least_of_options"] == plan.part.measures["time"]


def test_caps_are_kept() -> None:
    """The fastest of the plans with the fewest bytes."""
    case = drawn_case(16)
    first, second = (
        solve(case.network, case.machine, problem="fusion", objective="bytes,time", engine=engine)
        for engine in ("dynamic", "cp-sat")
    )
    assert check(second).ok
    assert second.part.measures["bytes"] == first.part.measures["bytes"]
    assert second.part.measures["time"] <= first.part.measures["time"]
