"""Weights that overtake loads: by hand, against the replay, and the search against all programs there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from formulations.bank_front import decide
from formulations.bank_labels import along
from formulations.bank_network import Walk
from formulations.bank_overtaking import Complete, by_wait
from formulations.bank_policies import double_buffer, hide, minimise
from formulations.bank_states import BankPlan
from formulations.bank_tasks import Action, Prices, Program, Task
from formulations.bank_time import Programs
from formulations.bank_timing import Timed, Timing
from hwmodels.bank_clock import Clock
from hwmodels.bank_steps import Goal, Pass
from hwmodels.replay_bank_time import Column, Unit, clocked
from instances.errors import InputError
from instances.feature_maps import stages
from instances.load import load_machine
from instances.machine import Banks, Transfer
from instances.network import Network
from tests.test_bank_time import (
    CLOCK,
    CLOCKS,
    DRAM,
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

# ---- by hand -------------------------------------------------------------------------------------------------------


def test_weights_overtake_a_load_by_hand() -> None:
    """One tile on chip, one to load; two steps of one group; weights of 8 bytes come anew, the first after 20 ticks.

    A load of 4 bytes: latency 3 + 5, 4 on the bus; 8 bytes of weights: latency 8, 8 on the bus. The load that opens the
    stage is asked for first, at 0: the bus is free at 20, it would be there at 24. The second step's weights, asked for
    at 0 too, come from 20, when the first ones are there, to 28: the load is there at 32. First come, first served, the
    load is there at 24, the weights at 32. The first step ends at 20 + 10 = 30; the second one begins when weights and
    tile are there: at 32, either way. It ends at 42, 8 more: 50.
    In the replay the first weights are asked for at 0 and there at 16: the load would be there at 20, the second ones
    are at 24, so it is there at 28. The first step ends at 26: the second one waits 2 ticks, for the map, or first
    come, first served, for the weights.
    """
    task = Task(Pass(2, 1, 2), 3, 1, Goal(2, 1, 0, mirrored=False))
    program = Program((Action("load", 1), Action("process", 1), Action("process", 1)), 1, 0, 2)
    timing = Timing(FIRST, (0, 10, 20), share=8, anew=True)
    assert along(task, Prices(4, 8), timing, program, wait=20).ticks == 50
    assert along(task, Prices(4, 8), replace(timing, clock=CLOCK), program, wait=20).ticks == 50
    units = [Unit("s", 8, opening=[0], script=[Column(10, None)]), Unit("s", 8, script=[Column(10, 0)])]
    for overtaking, waits in ((True, (2, 16)), (False, (0, 18))):
        (one,) = clocked(units, [4], DRAM, 1, overtaking=overtaking).values()
        assert (one.waits_for_maps, one.waits_for_weights) == waits


def test_what_is_asked_for_last_delays_what_is_not_over_by_hand() -> None:
    """One group, two tiles of a column to load, both asked for at 0; the next stage's weights of 30 bytes.

    A tile of 4 bytes: there at 3 + 5 + 4 = 12, the second one at 16. The first step waits until 12 and ends at 22; the
    second one asks for the 30 bytes at 22, when both tiles are there: latency 3 + 2 + 5, from 32 to 62. It ends at 32.
    In one step of both tiles the weights are asked for at 0: on the bus from 10 to 40. Both tiles end after 10, so they
    are there at 42 and 46. The columns end at 52 and 62, and the weights are there before.
    The bound leaves that delay out: 12 + 10, and 32.
    """
    task = Task(Pass(2, 1, 2), 3, 0, Goal(2, 1, 0, mirrored=False))
    two = Program((Action("load", 2), Action("process", 1), Action("process", 1)), 2, 0, 2)
    one = Program((Action("load", 2), Action("process", 2)), 2, 0, 1)
    timing = Timing(replace(FIRST, fixed=0), (0, 10, 20), following=30)
    assert along(task, Prices(4), timing, two) == Timed(two, 8, 32, 30)
    assert along(task, Prices(4), timing, one) == Timed(one, 8, 62, 0)
    assert along(task, Prices(4), replace(timing, clock=timing.clock.bound()), one) == Timed(one, 8, 32, 8)
    assert along(task, Prices(4), replace(timing, clock=replace(CLOCK, fixed=0)), one) == Timed(one, 8, 32, 14)


def test_a_later_request_may_delay_less_by_hand() -> None:
    """A load of 4 bytes is there at 12. Weights of 8 bytes asked for at 3 begin at 11 and delay it to 20; at 4 not.

    Units of 3 or 4 ticks, then one that needs the tile; its own weights are none, the last unit's are asked for as it
    begins. With 3 ticks it waits until 20, with 4 until 12: the slower unit leads to the earlier end.
    """
    ends = []
    for cycles in (3, 4):
        units = [
            Unit("s", 0, opening=[0], script=[Column(cycles, None)]), Unit("s", 0, script=[Column(1, 0)]), Unit("s", 8),
        ]  # fmt: skip
        (spent,) = clocked(units[:2], [4], DRAM, 1).values()
        assert spent.ticks == 13
        whole = clocked(units, [4], DRAM, 1, overtaking=True)
        ends.append(whole["s"].waits_for_maps)
    assert ends == [20 - 3, 12 - 4]


# ---- against the replay --------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), tiny_banks((2, 5), (16, 24, 40), (1, 16, 1000), ("free",)), st.sampled_from(BUSES), st.data())
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


def overtaken(drawn: tuple[Task, Prices, Timing, int], clock: Clock) -> tuple[Task, Prices, Timing, int]:
    """The same on another bus, without writes."""
    task, prices, timing, wait = drawn
    return task, prices, replace(timing, clock=clock, writes=None), wait


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(tasks(), st.sampled_from(BUSES), st.booleans())
def test_all_programs_of_a_stage_are_found(
    drawn: tuple[Task, Prices, Timing, int], clock: Clock, fastest: bool
) -> None:
    """For every wait that is left the quickest programs; with a limit all that keep to it."""
    task, prices, timing, wait = overtaken(drawn, clock)
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
@given(tasks(), st.sampled_from(BUSES))
def test_bounds_are_those_of_all_programs_and_below_them(drawn: tuple[Task, Prices, Timing, int], clock: Clock) -> None:
    task, prices, timing, wait = overtaken(drawn, clock)
    lower = replace(timing, clock=clock.bound())
    assert costs(Programs(prices, lower, wait).of(task)) == expected(task, prices, lower, wait)
    for program in programs(task):
        least, real = (along(task, prices, one, program, wait) for one in (lower, timing))
        assert least.ticks <= real.ticks
        assert least.ticks + least.wait <= real.ticks + real.wait


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tasks(), st.sampled_from(BUSES), st.data())
def test_bounds_that_share_what_they_know_are_those_of_each_alone(
    drawn: tuple[Task, Prices, Timing, int], clock: Clock, data: st.DataObject
) -> None:
    task, prices, timing, wait = overtaken(drawn, clock)
    timing = replace(timing, clock=clock.bound())
    sizes = [timing.share, timing.following, task.stage.tile * prices.column, *timing.streams]
    cheap, latest = prices._replace(reload=0), max(map(clock.latency, sizes))
    cheaper = Programs(cheap, timing, latest)
    hidden = Programs(prices, timing, latest, cheaper=cheaper)
    some = Programs(prices, timing, wait, hidden, Programs(cheap, timing, wait, cheaper))
    for _ in range(6):
        goal = replace(task.goal, keep=data.draw(st.integers(0, task.goal.tiles)), mirrored=data.draw(st.booleans()))
        other = replace(task, banks=data.draw(st.integers(1, 5)), goal=goal, retain=data.draw(st.integers(0, 2)))
        for known in data.draw(st.permutations([hidden, some])):
            assert costs(known.of(other)) == expected(other, prices, timing, known.wait)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(stages=2, columns=4), tiny_banks((2, 3), (16, 24), (1, 64), ("free",)), st.sampled_from(BUSES))
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
@given(networks(), tiny_banks((1, 5), (24, 40, 64), (1, 64, 1000), ("free",)), st.sampled_from(BUSES))
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
