"""Fronts of time, or bytes, and memory: against every memory by itself, and by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from formulations.clock import ENDLESS, Clock
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.zoo.chains import chain
from solver import check, pareto, solve
from solver.plan.plan import Plan
from solver.problems.memory import memories, staircase

SETTINGS = {"ocm_bytes": "1024", "ocm_banks": "4"}


def plan_of(value: int | None, status: str = "OPTIMAL") -> Plan:
    objective = None if value is None else SimpleNamespace(value=value)
    return cast(Plan, SimpleNamespace(objective=objective, status=status))


def asked_of(values: list[int | None], clock: Clock = ENDLESS, status: str = "OPTIMAL") -> tuple[list[int], Any]:
    """Memories in the order in which they are solved, of which these are the least values, and what is found."""
    asked = list[int]()

    def solved(machine: Machine, seconds: float | None) -> Plan:
        asked.append(cast(int, machine))
        value = values[asked[-1] - 1]
        return plan_of(value, "INFEASIBLE" if value is None else status)

    return asked, staircase(cast(list[Machine], [*range(1, len(values) + 1)]), solved, clock)


def test_memories_between_two_with_the_same_value_are_not_solved() -> None:
    """The example of the module: 7 banks lie between 8 and 6, which move 900."""
    asked, found = asked_of([None, 1500, 1200, 1200, 900, 900, 900, 900])
    assert asked == [8, 4, 2, 6, 1, 3, 5]
    assert [plan.objective.value for plan in found.plans] == [900, 1200, 1500]
    assert (found.complete, found.proven) == (True, True)


def test_a_slower_plan_for_more_memory_is_left_out() -> None:
    """With heuristic plans 3 banks take longer than 2: they have the plan of 2."""
    _, found = asked_of([9, 7, 8, 5], status="FEASIBLE")
    assert [plan.objective.value for plan in found.plans] == [5, 7, 9]
    assert (found.complete, found.proven) == (True, False)


def test_without_time_it_is_not_complete() -> None:
    asked, found = asked_of([4, 3, 2, 1], Clock(until=0, now=lambda: 1))
    assert asked == [4]
    assert ([plan.objective.value for plan in found.plans], found.complete, found.proven) == ([1], False, False)


def test_memories_of_a_machine() -> None:
    banked = memories(load_machine("scratchpad_64k", {"ocm_bytes": "96", "ocm_banks": "3"}))
    assert [(one.ocm_bytes, one.ocm_banks, one.bank_bytes) for one in banked] == [(32, 1, 32), (64, 2, 32), (96, 3, 32)]
    assert [one.ocm_bytes for one in memories(load_machine("scratchpad_64k", {"ocm_bytes": "4"}))] == [1, 2, 3, 4]
    assert len(memories(load_machine("scratchpad_64k"))) == 64
    some = {"ocm_bytes": "96", "ocm_banks": "3", "reserved_bytes": "33"}
    assert [one.ocm_banks for one in memories(load_machine("scratchpad_64k", some))] == [3]  # two have what is reserved
    assert memories(load_machine("scratchpad_64k", some | {"ocm_banks": "0"}))[0].ocm_bytes == 34


@pytest.mark.parametrize("problem", ["fusion", "joint"])
def test_bytes_are_the_fewest_of_every_memory(problem: str) -> None:
    """Four memories, one by one, have what the front says: the best plan of those with no more memory."""
    net = chain(4, 4, size=8)
    front = pareto(net, "scratchpad_64k", problem=problem, axes="bytes,memory", settings=SETTINGS)
    points = [(plan.measures["bytes"], plan.machine_data.memories["ocm"]) for plan in front.plans if plan.measures]
    assert front.proven
    assert [(point.values["bytes"], point.values["memory"]) for point in front.parts[0].points] == points
    assert len(points) > 1
    for banks in range(1, 5):
        alone = solve(net, "scratchpad_64k", problem=problem, objective="bytes",
                      settings={"ocm_bytes": str(256 * banks), "ocm_banks": str(banks)})  # fmt: skip
        known = min((moved for moved, size in points if size <= 256 * banks), default=None)
        assert (alone.measures or {}).get("bytes") == known
    assert [check(plan).problems for plan in front.plans] == [()] * len(points)


def test_times_rise_as_memory_falls() -> None:
    front = pareto(chain(4, 4, size=8), "scratchpad_64k", problem="fusion", axes="memory,time", settings=SETTINGS)
    points = [(point.values["memory"], point.values["time"]) for point in front.parts[0].points]
    assert points == sorted(points)
    assert [ticks for _, ticks in points] == sorted((ticks for _, ticks in points), reverse=True)
    assert front.axes == ("memory", "time")


def test_other_axes_are_refused() -> None:
    with pytest.raises(InputError, match="time,memory or bytes,memory"):
        pareto(chain(4), "scratchpad_64k", problem="fusion", axes="macs,memory")
    with pytest.raises(InputError, match="axes memory: fronts of problem joint are of bytes,memory"):
        pareto(chain(4), "scratchpad_64k", problem="joint", axes="memory", settings=SETTINGS)
