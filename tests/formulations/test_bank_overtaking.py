"""Weights that overtake loads: by hand, against the replay, and the search against all programs there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from formulations.banks.bounds import Alone
from formulations.banks.front import decide
from formulations.banks.labels import along
from formulations.banks.network import BankPlan, Walk
from formulations.banks.overtaking import Complete, by_wait
from formulations.banks.policies import double_buffer, hide, minimise
from formulations.banks.search import Programs
from formulations.banks.tasks import Action, Prices, Program, Task
from formulations.banks.times import Times
from formulations.banks.timing import First, Timed, Timing
from hwmodels.banks.replay.time import Column, Unit, clocked_by_cycle
from hwmodels.banks.steps import Columns, DramClock, Pass, TileGoal
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Banks, Transfer
from instances.network.feature_maps import stages
from instances.network.network import Network
from tests.effort import tries
from tests.formulations.test_bank_time import (
    CLOCK,
    CLOCKS,
    any_plan,
    costs,
    everything,
    expected,
    programs,
    same_time,
    tasks,
    tiny_banks,
)
from tests.formulations.test_banks import agrees, networks

FIRST = replace(CLOCK, overtakes=True)
#: A bus without latency too: then loads and weights meet more often.
BUSES = (*(replace(clock, overtakes=True) for clock in CLOCKS), DramClock(Transfer(byte_ticks=3), 4, 0, overtakes=True))
NEVER = 2**60

# ---- by hand -------------------------------------------------------------------------------------------------------

#: A latency of two cycles of 4 ticks; a byte takes a tick.
PLAIN = DramClock(Transfer(call_ticks=8, byte_ticks=1), 4, 8, overtakes=True)


def columns(
    *cycles: int, touched: tuple[tuple[tuple[int, int], ...], ...] | None = None, pixel: int = 0
) -> dict[str, object]:
    """Ticks of columns; each reads the map's column at its place, if nothing else is said."""
    touched = touched or tuple(((x, 0),) for x in range(len(cycles)))
    ticks = tuple(accumulate((n * PLAIN.cycle for n in cycles), initial=0))
    return {"ticks": ticks, "columns": Columns(tuple(cycles), touched, pixel)}


def replayed(units: list[Unit], loads: list[int]) -> list[int]:
    """Ticks of stages."""
    found = clocked_by_cycle(units, loads, PLAIN.dram, PLAIN.cycle, PLAIN.fixed // PLAIN.cycle)
    return [one.ticks for one in found.values()]


def test_loads_are_asked_for_cycle_by_cycle_by_hand() -> None:
    """Two tiles of a column to load, of 4 bytes; no weights; a column takes 3 cycles, 12 ticks.

    After a cycle of nothing the loads are asked for at 4 and 8: there at 4 + 8 + 4 = 16, and at 20. The step begins at
    12; the first cycle of its first column is over at 16, when its tile is there: it ends at 24, the second one at 36.
    8 more: 44. Of 8 bytes the tiles are there at 20 and 28: the first column waits 4 ticks and ends at 28; the first
    cycle of the second one is over at 32: it ends at 40. 48.
    """
    task = Task(Pass(2, 1, 2), 3, 0, TileGoal(2, 1, 0, mirrored=False))
    program = Program((Action("load", 2), Action("process", 2)), 2, 0, 1)
    timing = Timing(PLAIN, **columns(3, 3))
    unit = Unit("s", 0, opening=[0, 1], script=[Column(3, None, ((0, 0),)), Column(3, None, ((1, 0),))])
    for size, ticks in ((4, 44), (8, 48)):
        assert along(task, Prices(size), timing, program) == Timed(program, 2 * size, ticks, 0)
        assert replayed([unit], [size, size]) == [ticks]


def test_a_column_waits_where_it_reads_a_tile_by_hand() -> None:
    """Two tiles of a column, the first one on chip; one column of 6 cycles reads both, the second one after 2 cycles.

    The load is asked for at 4; 20 bytes: there at 4 + 8 + 20 = 32. The step begins at 8. The second tile's first cycle
    is the third one: over at 20, it waits until 32. Three cycles are left: it ends at 44, 8 more: 52.
    """
    task = Task(Pass(2, 1, 1, reach=1), 3, 1, TileGoal(1, 1, 0, mirrored=False))
    program = Program((Action("load", 1), Action("process", 2)), 1, 0, 1)
    timing = Timing(PLAIN, **columns(6, touched=(((0, 0), (1, 2)),)))
    assert along(task, Prices(20), timing, program) == Timed(program, 20, 52, 0)
    assert replayed([Unit("s", 0, opening=[0], script=[Column(6, None, ((0, 2),))])], [20]) == [52]


def test_weights_overtake_a_load_by_hand() -> None:
    """One tile on chip, one of 8 bytes to load; two steps of one group, whose 8 bytes of weights come anew; 3 cycles.

    The first weights are asked for as the stage begins, at 0: on the bus from 8 to 16. The load is asked for at 4: from
    16 to 24. The first step begins at 8 and asks for the second one's weights: from 16 to 24, so the load, which is not
    over at 16, is there at 32. The first step's first cycle is over at 12, it waits for its weights until 16, and ends
    at 24. The second step's first cycle is over at 28; it waits for the tile until 32, and ends at 40. 8 more: 48.
    The bound leaves out what the weights asked for last delay as a column waits; the second step asks for none, so the
    load is there at 32 as well.
    """
    task = Task(Pass(2, 1, 2), 3, 1, TileGoal(2, 1, 0, mirrored=False))
    program = Program((Action("load", 1), Action("process", 1), Action("process", 1)), 1, 0, 2)
    timing = Timing(PLAIN, **columns(3, 3), share=8, anew=True)
    assert along(task, Prices(8, 8), timing, program, wait=16) == Timed(program, 24, 48, 0)
    one, two = Column(3, None, ()), Column(3, None, ((0, 0),))
    assert replayed([Unit("s", 8, opening=[0], script=[one]), Unit("s", 8, script=[two])], [8]) == [48]


@pytest.mark.parametrize("cycles", range(1, 11))
def test_a_cycle_may_be_over_as_weights_come_by_hand(cycles: int) -> None:
    """A column of n rows of one word, one group, on chip; its 8 bytes of weights are there at 16.

    The first cycle waits for nothing and is over at 8; the others follow from 16 on: 16 + 4 (n - 1), and 8 more. So the
    bound from when the weights are there is 4 (n - 1) + 8, which that program takes. Where weights do not overtake,
    work begins as they come: 4 n + 8. Of two such stages each is bounded so.
    """
    task = Task(Pass(1, 1, 1), 2, 1, TileGoal(1, 1, 0, mirrored=False))
    program = Program((Action("process", 1),), 1, 0, 1)
    ticks = 16 + 4 * (cycles - 1) + 8
    assert along(task, Prices(8), Timing(PLAIN, **columns(cycles)), program, wait=16).ticks == ticks
    assert replayed([Unit("s", 8, script=[Column(cycles, None, ())])], []) == [ticks]
    shape = (1, 4, cycles, 1)
    convs = [
        {"op": "conv", "name": name, "inputs": [of], "shape": shape, "filters": 4, "kernel": (1, 1)}
        for name, of in (("a", "x"), ("b", "a"))
    ]
    network = Network.model_validate({"name": "n", "operators": [{"op": "input", "name": "x", "shape": shape}, *convs]})
    for bus, left in (("weights_first", ticks - 16), ("first_come", ticks - 12)):
        banks = Banks(count=4, map_bytes=4096, weight_bytes=4096, filters=4, lanes=4, patch_channels=0, bus=bus)
        walk = Walk(stages(network, banks), banks)
        bound = Alone(Times(walk, PLAIN.bound() if bus == "weights_first" else replace(PLAIN, overtakes=False)))
        assert [(stage.cycles, stage.groups) for stage in walk.stages] == [(cycles, 1)] * 2
        assert [bound.ticks(done) for done in (0b00, 0b01, 0b10, 0b11)] == [2 * left, left, left, 0]


def test_what_is_asked_for_last_delays_what_is_not_over_by_hand() -> None:
    """One group, two tiles of a column to load, of 4 bytes; the next stage's weights of 30 bytes; columns of 3 cycles.

    The tiles are there at 16 and 20. In one step, which begins at 12, the 30 bytes are asked for at 12: from 20 to 52.
    No tile ends after 20: the columns end at 24 and 36, the stage at 44, and the weights come 8 ticks later. Tiles of 8
    bytes are there at 20 and 28: the second one is not over at 20, and there at 60. The first column ends at 28, the
    second one at 60 + 8, the stage at 76: the weights are there. The bound leaves the delay out: 40 + 8, 4 early.
    """
    task = Task(Pass(2, 1, 2), 3, 0, TileGoal(2, 1, 0, mirrored=False))
    program = Program((Action("load", 2), Action("process", 2)), 2, 0, 1)
    timing = Timing(PLAIN, **columns(3, 3), following=First(30))
    assert along(task, Prices(4), timing, program) == Timed(program, 8, 44, 8)
    assert along(task, Prices(8), timing, program) == Timed(program, 16, 76, 0)
    assert along(task, Prices(8), replace(timing, clock=PLAIN.bound()), program) == Timed(program, 16, 48, 4)


def test_a_sum_loads_while_it_streams_by_hand() -> None:
    """Four tiles of a column of 3 cycles and 8 bytes, three on chip; each column has 8 bytes that are streamed.

    The first column's are there at 16. It begins at 4, asks for the second one's (from 16 to 24), and ends at 24. The
    second column asks for the third one's at 24 (from 32 to 40); its first cycle is over at 28: the first tile's bank
    is free, and the fourth one asked for: from 40 to 48. It ends at 36. The third column asks then for the fourth one's
    8 bytes: from 44 to 52. The load is not over at 44, and there at 56. The third column waits at 40 for nothing, and
    ends at 48; the fourth one has its bytes at 52, its tile at 56, and ends at 64. 8 more: 72.
    """
    task = Task(Pass(4, 1, 4), 3, 3, TileGoal(4, 1, 0, mirrored=False))
    program = Program((Action("process", 3), Action("load", 1), Action("process", 1)), 1, 0, 2)
    timing = Timing(PLAIN, **columns(3, 3, 3, 3), streams=(8, 8, 8, 8))
    assert along(task, Prices(8), timing, program, wait=16) == Timed(program, 8, 72, 0)
    own, last = Column(3, None), Column(3, None, ((0, 0),))
    assert replayed([Unit("s", 8, script=list(one)) for one in ([own], [0, own], [own], [last])], [8]) == [72]


def test_late_biases_by_hand() -> None:
    """A stage of a column of 3 cycles, then one of 12 whose first pixel takes 2 and finds its biases late.

    The first stage's 8 bytes of weights are there at 16, the next one's 20 bytes of biases at 16 + 20. It begins to
    work at 4, and asks for the next one's 8 bytes of weights: from 16 to 24, so the biases, which are not over at 16,
    are there at 44. It waits until 16, ends at 24, and at 32: the weights are there, the biases 12 ticks later. The
    next stage begins to work at 4; its first pixel is at the adder when 2 + 4 cycles are over, at 28: 52, and 60.
    With 60 bytes of biases they are there 52 ticks late: the next stage waits for them from 28 to 52, and ends at 84.
    If it has two groups, it asks at 4 for the second one's 8 bytes: from 12 to 20. The biases, not over at 12, are
    there at 60; the first group ends at 84, the second one at 132. 8 more: 140.
    If it has a cycle of work only, which is over at 8, it needs the biases 4 cycles later: it ends 16 ticks before they
    are there, at 36. 44.
    """
    one, two = [Task(Pass(1, 1, 1), 2, 1, TileGoal(1, 1, 0, mirrored=False)) for _ in range(2)]
    program = Program((Action("process", 1),), 1, 0, 1)
    first = Timing(PLAIN, **columns(3), following=First(8, 20), biases=(0, 20))
    assert along(one, Prices(8), first, program, wait=16) == Timed(program, 0, 32, 0, 12)
    second = Timing(PLAIN, **columns(12, pixel=2), biases=(0, 0))
    assert along(two, Prices(8), replace(second, owed=12), program) == Timed(program, 0, 60, 0)
    ends, begins = Column(3, None, (), 1), Column(12, None, (), 2)
    units = [Unit("a", 8, script=[ends]), Unit("b", 8, script=[begins], bias=20)]
    assert replayed(units, []) == [32, 60]
    late = replace(first, following=First(8, 60), biases=(0, 60))
    assert along(one, Prices(8), late, program, wait=16) == Timed(program, 0, 32, 0, 52)
    assert along(two, Prices(8), replace(second, owed=52), program) == Timed(program, 0, 84, 0)
    assert replayed([units[0], replace(units[1], bias=60)], []) == [32, 84]
    groups = replace(second, owed=52, groups=2, share=8)
    assert along(two, Prices(8), groups, program) == Timed(program, 0, 140, 0)
    assert replayed([units[0], replace(units[1], bias=60), Unit("b", 8, script=[begins])], []) == [32, 140]
    short = replace(second, **columns(1, pixel=1), owed=52, scripts={})
    assert along(two, Prices(8), short, program) == Timed(program, 0, 52 - 16 + 8, 0)
    assert replayed([units[0], Unit("b", 8, script=[Column(1, None, (), 1)], bias=60)], []) == [32, 52 - 16 + 8]


def test_pooling_hands_on_late_biases_by_hand() -> None:
    """The first stage of the test above, a pool of 3 cycles, then its second stage: 60 bytes of biases.

    They are there 52 ticks after the first stage. The pool begins to work at 4 and ends at 24: 28 ticks are left. The
    last stage needs them after 4 + 24, just in time; with 61 bytes a cycle later.
    """
    ends, begins = Column(3, None, (), 1), Column(12, None, (), 2)
    for bias, late, more in ((60, 52, 0), (61, 56, 4)):
        units = [Unit("a", 8, script=[ends]), Unit("p", 0, script=[ends], asks="never")]
        assert replayed([*units, Unit("b", 8, script=[begins], bias=bias)], []) == [32, 24, 60 + more]
        task = Task(Pass(1, 1, 1), 2, 1, TileGoal(1, 1, 0, mirrored=False))
        program = Program((Action("process", 1),), 1, 0, 1)
        pool = Timing(PLAIN, **columns(3), following=First(8, bias, waits=False), asks="never", owed=late)
        assert along(task, Prices(8), pool, program) == Timed(program, 0, 24, 0, late - 24)


def test_banks_become_free_when_a_cycle_of_the_next_column_is_over_by_hand() -> None:
    """Three tiles of a column of 3 cycles, two on chip; both are processed, and the third one loaded meanwhile.

    The step begins at 4. The first tile's bank is free when the first cycle of the second column is over, at 20: the
    load is there at 20 + 8 + 4 = 32. The step ends at 28; the third column's first cycle is over at 32: 40, and 48.
    Had the load waited for the step's end, it would have taken a cycle there, and been there at 40.
    """
    task = Task(Pass(3, 1, 3), 2, 2, TileGoal(3, 1, 0, mirrored=False))
    program = Program((Action("process", 2), Action("load", 1), Action("process", 1)), 1, 0, 2)
    timing = Timing(PLAIN, **columns(3, 3, 3))
    assert along(task, Prices(4), timing, program).ticks == 48
    assert along(task, Prices(4), replace(timing, late=True), program).ticks == 56
    own, last = Column(3, None), Column(3, None, ((0, 0),))
    assert replayed([Unit("s", 0, script=[own, 0, own]), Unit("s", 0, script=[last])], [4]) == [48]
    assert replayed([Unit("s", 0, script=[own, own, 0]), Unit("s", 0, script=[last])], [4]) == [56]


def test_pooling_hands_on_what_was_asked_for_by_hand() -> None:
    """A convolution, a pool, a convolution with 4 bytes of biases and 40 of weights; one unit of 3 cycles each.

    The first weights, 8 bytes, are there at 16; biases at 16 + 4. The first unit begins at 4 and asks for the weights
    behind the pool: from 16 to 56. It waits until 16, ends at 24, the stage at 32. The pool, 4 + 12 + 8: at 56. The
    last stage begins when its weights are there: 4 + 12 + 8 again. A depthwise stage asks with its first unit too.
    """
    ends = Column(3, None)
    conv, pool = Unit("a", 8, script=[ends]), Unit("p", 0, script=[ends], asks="never")
    last = Unit("b", 40, script=[ends], bias=4)
    assert replayed([conv, pool, last], []) == [32, 24, 24]
    first, more = Unit("d", 8, script=[ends], asks="first"), Unit("d", 0, script=[ends], asks="first")
    assert replayed([first, more, pool, last], []) == [44, 24, 24]
    assert replayed([first, replace(last, weights=200)], []) == [32, 216 - 32 + 8 + 8]


# ---- against the replay --------------------------------------------------------------------------------------------


@settings(max_examples=tries(60, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    networks(),
    tiny_banks((2, 5), (16, 24, 40), (1, 16, 1000), ("free",), "weights_first"),
    st.sampled_from(BUSES),
    st.data(),
)
def test_any_plan_takes_what_the_replay_finds(
    network: Network, banks: Banks, clock: DramClock, data: st.DataObject
) -> None:
    """Plans drawn at random, good or not."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    plan = any_plan(Walk(found, banks), data)
    agrees(found, banks, plan)
    assert same_time(found, banks, plan, clock) >= same_time_bound(plan, Walk(found, banks), clock)


def same_time_bound(plan: BankPlan, walk: Walk, clock: DramClock) -> int:
    """Ticks of the bound."""
    from formulations.banks.times import Times

    return Times(walk, clock.bound()).of(plan)


# ---- the search against all programs -------------------------------------------------------------------------------


@st.composite
def by_cycle(draw: st.DrawFn, clocks: st.SearchStrategy[DramClock]) -> tuple[Task, Prices, Timing, int]:
    """A stage in cycles: columns whose first pixels read the map bit by bit, all kinds of asking for weights."""
    task, prices, timing, wait = draw(tasks())
    clock, stage = draw(clocks), task.stage
    patches = draw(st.sampled_from([0, 0, 0, 2, 3])) if not timing.streams else 0
    if patches:
        results = -(-stage.columns // patches)
        stage = Pass(results * patches, stage.tile, results, patches=patches)
        goal = replace(task.goal, columns=stage.results, keep=min(task.goal.keep, -(-stage.results // task.goal.tile)))
        pixel = draw(st.integers(1, 4))
        task, cycles, touched = (
            replace(task, stage=stage, goal=goal),
            [patches * pixel] * stage.results,
            [()] * stage.results,
        )
    else:
        cycles, touched = [], []
        for x in range(stage.results):
            first = x * stage.stride - stage.before
            places = [p for p in range(first, first + stage.reach + 1) if 0 <= p < stage.columns]
            each = draw(st.integers(0, 2))
            touched.append(tuple((p, at * each) for at, p in enumerate(places)))
            cycles.append(draw(st.integers(each * (len(places) - 1) + 1, 8)) if places else 0)
    columns = Columns(tuple(cycles), tuple(touched), draw(st.integers(0, 4)))
    ticks = tuple(accumulate((n * clock.cycle for n in cycles), initial=0))
    following, biases = (
        First(draw(st.integers(0, 20)), waits=draw(st.booleans()), lead=draw(st.sampled_from([0, 8, 24]))),
        draw(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 9, 40]))),
    )
    asks = "each" if timing.streams else draw(st.sampled_from(["each", "each", "first", "never"]))
    if asks != "each":
        timing, prices = replace(timing, share=0, anew=False), prices._replace(step=0)
    streams = timing.streams[: stage.results] + (0,) * (stage.results - len(timing.streams)) if timing.streams else ()
    return task, prices, replace(
        timing, clock=clock, ticks=ticks, columns=columns, following=following,
        biases=biases if asks != "never" else (), owed=draw(st.sampled_from([0, 0, wait + 3, wait + 40])), asks=asks,
        streams=streams, writes=None, scripts={},
    ), wait  # fmt: skip


@pytest.mark.slow(1)
@settings(max_examples=tries(100, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)), st.booleans())
def test_all_programs_of_a_stage_are_found(drawn: tuple[Task, Prices, Timing, int], fastest: bool) -> None:
    """For all waits that are left, for weights and biases, the quickest programs; with a limit all that keep to it."""
    task, prices, timing, wait = drawn
    every = [along(task, prices, timing, program, wait) for program in programs(task)]
    best = {_all(one) for one in by_wait(every, fastest=fastest)}
    quick = Programs(prices, timing, wait).of(task)
    for known in ((), quick):
        found = Complete(fastest, NEVER).of(task, prices, timing, wait, NEVER, known)
        assert {_all(one) for one in found} == best
    ends = sorted({one.ticks + one.wait for one in every})
    for latest in ends[: len(ends) // 2 + 1]:
        known = Complete(fastest, NEVER).of(task, prices, timing, wait, latest)
        within = {cost for cost in best if cost[0] + cost[1] <= latest}
        assert within <= {_all(one) for one in known}


def _all(one: Timed) -> tuple[int, int, int, int]:
    return one.wait, one.ticks, one.bytes, one.late


def between(found: list[Timed], task: Task, prices: Prices, timing: Timing, wait: int) -> None:
    """What is found by the clock of bounds is what all programs take by it; of sums it may be nearer to what they take.

    By the clock of bounds a step forgets what its last stream delays, the column of one long step does not: streams 9
    and 5 bytes, tiles there at 40, 44, 48, streams from 36 on. All tiles in one step: 80; four steps by that clock: 76,
    in truth: 88. So 80 is a bound (`Search.least`), though four steps seem to be quicker.
    """
    lower = replace(timing, clock=timing.clock.bound(), owed=0)
    if not timing.streams:
        assert costs(found) == expected(task, prices, lower, wait)
        return
    least, real = (
        [along(task, prices, one, program, wait) for program in programs(task)]
        for one in (lower, replace(timing, owed=0))
    )
    assert bool(found) == bool(least)
    assert all(any(_covers(timing, bound, one) for bound in found) for one in real)
    assert all(any(_covers(timing, bound, one) for bound in least) for one in found)


def _covers(timing: Timing, bound: Timed, one: Timed) -> bool:
    ready = timing.ready(bound.ticks, bound.wait) <= timing.ready(one.ticks, one.wait, one.late)
    return bound.bytes <= one.bytes and bound.ticks <= one.ticks and ready


@settings(max_examples=tries(40, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)))
def test_bounds_are_those_of_all_programs_and_below_them(drawn: tuple[Task, Prices, Timing, int]) -> None:
    task, prices, timing, wait = drawn
    lower = replace(timing, clock=timing.clock.bound(), owed=0)
    between(Programs(prices, lower, wait).of(task), task, prices, timing, wait)
    for program in programs(task):
        least, real = (along(task, prices, one, program, wait) for one in (lower, timing))
        assert least.ticks <= real.ticks
        assert timing.ready(least.ticks, least.wait) <= timing.ready(real.ticks, real.wait, real.late)


@settings(max_examples=tries(20, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)), st.data())
def test_bounds_that_share_what_they_know_are_those_of_each_alone(
    drawn: tuple[Task, Prices, Timing, int], data: st.DataObject
) -> None:
    task, prices, timing, wait = drawn
    if timing.asks == "never":
        reject()
    real, timing = timing, replace(timing, clock=timing.clock.bound(), owed=0)
    sizes = [timing.share, timing.following.weights, task.stage.tile * prices.column, *timing.streams, *timing.biases]
    cheap, latest = prices._replace(reload=0), max(map(timing.clock.latency, sizes)) + 7 * timing.clock.cycle
    cheaper = Programs(cheap, timing, latest)
    hidden = Programs(prices, timing, latest, cheaper=cheaper)
    some = Programs(prices, timing, wait, hidden, Programs(cheap, timing, wait, cheaper))
    for _ in range(6):
        goal = replace(task.goal, keep=data.draw(st.integers(0, task.goal.tiles)), mirrored=data.draw(st.booleans()))
        other = replace(task, banks=data.draw(st.integers(1, 5)), goal=goal, retain=data.draw(st.integers(0, 2)))
        for known in data.draw(st.permutations([hidden, some])):
            between(known.of(other), other, prices, real, known.wait)


@settings(max_examples=tries(4, 18), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    networks(stages=2, columns=4),
    tiny_banks((2, 3), (16, 24), (1, 64), ("free",), "weights_first"),
    st.sampled_from(BUSES),
)
def test_the_best_of_a_network_are_those_of_everything(network: Network, banks: Banks, clock: DramClock) -> None:
    """Time, bytes and front against all walks with all programs: no dominance, no bounds."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    best = everything(found, banks, clock)
    if not best:
        with pytest.raises(InputError, match="has no program"):
            decide(Walk(found, banks), clock, "time")
        return
    for aim, points in (("time", best[-1:]), ("bytes", best[:1]), ("front", best)):
        said = decide(Walk(found, banks), clock, aim)
        assert said.proven
        assert [(plan.volume.total, ticks) for plan, ticks in said.plans] == points
        for plan, ticks in said.plans:
            assert same_time(found, banks, plan, clock) == ticks


@pytest.mark.slow(5)
@settings(max_examples=tries(8, 28), deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), tiny_banks((1, 5), (24, 40, 64), (1, 64, 1000), ("free",), "weights_first"), st.sampled_from(BUSES))
def test_no_policy_is_quicker(network: Network, banks: Banks, clock: DramClock) -> None:
    found = stages(network, banks)
    try:
        said = decide(Walk(found, banks), clock, "time")
    except InputError:
        return
    (plan, fastest) = said.plans[0]
    assert said.proven
    assert same_time(found, banks, plan, clock) == fastest
    for policy in (minimise, double_buffer, lambda walk: hide(walk, clock)):
        try:
            other = policy(Walk(found, banks))
        except InputError:
            continue
        assert fastest <= same_time(found, banks, other, clock)


# ---- the field -----------------------------------------------------------------------------------------------------


def test_the_bus_is_a_field_of_the_machine() -> None:
    published = load_machine("midap").banks
    assert published.bus == "weights_first"
    assert "bus" not in published.model_copy(update={"bus": "first_come"}).model_dump()
    with pytest.raises(InputError, match="bus 'weights_first' needs writes 'free'"):
        load_machine("midap", {"banks.writes": "bus"})
    with pytest.raises(InputError, match=r"counts time by cycles, and compute\.cycle_ticks is 0"):
        load_machine("midap", {"compute.cycle_ticks": "0"})
    assert load_machine("midap", {"banks.writes": "bus", "banks.bus": "first_come"}).banks is not None
