"""Weights that overtake loads: by hand, against the replay, and the search against all programs there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from formulations.bank_front import decide
from formulations.bank_labels import along
from formulations.bank_network import Walk
from formulations.bank_overtaking import Complete, by_wait
from formulations.bank_policies import double_buffer, hide, minimise
from formulations.bank_states import BankPlan
from formulations.bank_tasks import Prices, Task
from formulations.bank_time import Programs
from formulations.bank_timing import First, Timing
from hwmodels.bank_clock import Clock
from hwmodels.bank_columns import Columns
from hwmodels.bank_steps import Pass
from instances.errors import InputError
from instances.feature_maps import stages
from instances.load import load_machine
from instances.machine import Banks, Transfer
from instances.network import Network
from tests.test_bank_time import (
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
from tests.test_banks import agrees, networks

FIRST = replace(CLOCK, overtakes=True)
#: A bus without latency too: then loads and weights meet more often.
BUSES = (*(replace(clock, overtakes=True) for clock in CLOCKS), Clock(Transfer(byte_ticks=3), 4, 0, overtakes=True))
NEVER = 2**60

# ---- against the replay --------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    networks(),
    tiny_banks((2, 5), (16, 24, 40), (1, 16, 1000), ("free",), "weights_first"),
    st.sampled_from(BUSES),
    st.data(),
)
def test_any_plan_takes_what_the_replay_finds(
    network: Network, banks: Banks, clock: Clock, data: st.DataObject
) -> None:
    """Plans drawn at random, good or not."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    plan = any_plan(Walk(found, banks), data)
    agrees(found, banks, plan)
    assert same_time(found, banks, plan, clock) >= same_time_bound(plan, Walk(found, banks), clock)


def same_time_bound(plan: BankPlan, walk: Walk, clock: Clock) -> int:
    """Ticks of the bound."""
    from formulations.bank_times import Times

    return Times(walk, clock.bound()).of(plan)


# ---- the search against all programs -------------------------------------------------------------------------------


@st.composite
def by_cycle(draw: st.DrawFn, clocks: st.SearchStrategy[Clock]) -> tuple[Task, Prices, Timing, int]:
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
    columns = Columns(tuple(cycles), tuple(touched))
    ticks = tuple(accumulate((n * clock.cycle for n in cycles), initial=0))
    following, biases = (
        First(draw(st.integers(0, 20)), waits=draw(st.booleans())),
        draw(st.tuples(*[st.integers(0, 9)] * 2)),
    )
    asks = "each" if timing.streams else draw(st.sampled_from(["each", "each", "first", "never"]))
    if asks != "each":
        timing, prices = replace(timing, share=0, anew=False), prices._replace(step=0)
    streams = timing.streams[: stage.results] + (0,) * (stage.results - len(timing.streams)) if timing.streams else ()
    return task, prices, replace(
        timing, clock=clock, ticks=ticks, columns=columns, following=following, biases=biases if asks != "never" else (),
        asks=asks, streams=streams, writes=None, scripts={},
    ), wait  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)), st.booleans())
def test_all_programs_of_a_stage_are_found(drawn: tuple[Task, Prices, Timing, int], fastest: bool) -> None:
    """For every wait that is left the quickest programs; with a limit all that keep to it."""
    task, prices, timing, wait = drawn
    every = [along(task, prices, timing, program, wait) for program in programs(task)]
    best = {(one.wait, one.ticks, one.bytes) for one in by_wait(every, fastest=fastest)}
    quick = Programs(prices, timing, wait).of(task)
    for known in ((), quick):
        found = Complete(fastest, NEVER).of(task, prices, timing, wait, NEVER, known)
        assert {(one.wait, one.ticks, one.bytes) for one in found} == best
    ends = sorted({one.ticks + one.wait for one in every})
    for latest in ends[: len(ends) // 2 + 1]:
        known = Complete(fastest, NEVER).of(task, prices, timing, wait, latest)
        within = {cost for cost in best if cost[0] + cost[1] <= latest}
        assert within <= {(one.wait, one.ticks, one.bytes) for one in known}


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)))
def test_bounds_are_those_of_all_programs_and_below_them(drawn: tuple[Task, Prices, Timing, int]) -> None:
    task, prices, timing, wait = drawn
    lower = replace(timing, clock=timing.clock.bound())
    assert costs(Programs(prices, lower, wait).of(task)) == expected(task, prices, lower, wait)
    for program in programs(task):
        least, real = (along(task, prices, one, program, wait) for one in (lower, timing))
        assert least.ticks <= real.ticks
        assert timing.ready(least.ticks, least.wait) <= timing.ready(real.ticks, real.wait)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(by_cycle(st.sampled_from(BUSES)), st.data())
def test_bounds_that_share_what_they_know_are_those_of_each_alone(
    drawn: tuple[Task, Prices, Timing, int], data: st.DataObject
) -> None:
    task, prices, timing, wait = drawn
    if timing.asks == "never":
        reject()
    timing = replace(timing, clock=timing.clock.bound())
    sizes = [timing.share, timing.following.weights, task.stage.tile * prices.column, *timing.streams, *timing.biases]
    cheap, latest = prices._replace(reload=0), max(map(timing.clock.latency, sizes)) + 7 * timing.clock.cycle
    cheaper = Programs(cheap, timing, latest)
    hidden = Programs(prices, timing, latest, cheaper=cheaper)
    some = Programs(prices, timing, wait, hidden, Programs(cheap, timing, wait, cheaper))
    for _ in range(6):
        goal = replace(task.goal, keep=data.draw(st.integers(0, task.goal.tiles)), mirrored=data.draw(st.booleans()))
        other = replace(task, banks=data.draw(st.integers(1, 5)), goal=goal, retain=data.draw(st.integers(0, 2)))
        for known in data.draw(st.permutations([hidden, some])):
            assert costs(known.of(other)) == expected(other, prices, timing, known.wait)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    networks(stages=2, columns=4),
    tiny_banks((2, 3), (16, 24), (1, 64), ("free",), "weights_first"),
    st.sampled_from(BUSES),
)
def test_the_best_of_a_network_are_those_of_everything(network: Network, banks: Banks, clock: Clock) -> None:
    """Time, bytes and front against all walks with all programs: no dominance, no bounds."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    best = everything(found, banks, clock)
    if not best:
        with pytest.raises(InputError, match="has no program"):
            decide(found, banks, clock, "time")
        return
    for aim, points in (("time", best[-1:]), ("bytes", best[:1]), ("front", best)):
        said = decide(found, banks, clock, aim)  # type: ignore[arg-type]
        assert said.proven
        assert [(plan.volume.total, ticks) for plan, ticks in said.plans] == points
        for plan, ticks in said.plans:
            assert same_time(found, banks, plan, clock) == ticks


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), tiny_banks((1, 5), (24, 40, 64), (1, 64, 1000), ("free",), "weights_first"), st.sampled_from(BUSES))
def test_no_policy_is_quicker(network: Network, banks: Banks, clock: Clock) -> None:
    found = stages(network, banks)
    try:
        said = decide(found, banks, clock, "time")
    except InputError:
        return
    (plan, fastest) = said.plans[0]
    assert said.proven
    assert same_time(found, banks, plan, clock) == fastest
    for policy in (minimise, double_buffer, lambda f, b: hide(f, b, clock)):
        try:
            other = policy(found, banks)
        except InputError:
            continue
        assert fastest <= same_time(found, banks, other, clock)


# ---- the field -----------------------------------------------------------------------------------------------------


def test_the_bus_is_a_field_of_the_machine() -> None:
    published = load_machine("midap").banks
    assert published is not None
    assert published.bus == "weights_first"
    assert "bus" not in published.model_copy(update={"bus": "first_come"}).model_dump()
    with pytest.raises(InputError, match="bus 'weights_first' needs writes 'free'"):
        load_machine("midap", {"banks.writes": "bus"})
    assert load_machine("midap", {"banks.writes": "bus", "banks.bus": "first_come"}).banks is not None
