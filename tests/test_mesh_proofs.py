"""F3 mesh: what plans claim: a bound for every objective."""

from __future__ import annotations

import json

import pytest

from instances.errors import InputError
from solver import check, solve_mesh
from solver.mesh_plan import MeshPlan
from solver.mesh_show import mesh_rows, mesh_status

# ---- a bound for every objective -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both() -> MeshPlan:
    return solve_mesh("lenet5", "vectormesh_128", layers=["c1", "c3"], objective="dram,time")


def test_every_objective_has_a_bound(both: MeshPlan) -> None:
    assert both.measures is not None
    assert both.status == "OPTIMAL"
    assert both.bounds == {"dram": both.measures.dram, "time": both.measures.time}
    assert both.bound == both.measures.dram
    for part in both.layers:
        assert part.bounds == {"dram": part.measures.dram, "time": part.measures.time}
    again = MeshPlan.model_validate_json(both.to_json())
    assert list(again.bounds) == ["dram", "time"]
    assert check(again).ok


def test_every_bound_is_shown(both: MeshPlan) -> None:
    assert both.measures is not None
    assert f"time {both.measures.time:,} ticks, bound {both.measures.time:,}, gap 0 %" in mesh_status(both)
    assert [row[-2] for row in mesh_rows(both)[1]] == ["0 %, 0 %"] * 2
    greedy = solve_mesh("lenet5", "vectormesh_128", layers=["c1"], objective="dram,time", engine="greedy")
    assert greedy.bounds == {"dram": None, "time": None}
    assert [row[-2] for row in mesh_rows(greedy)[1]] == ["no bound, no bound"]


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("layers", 0, "bounds", "time"), 10**9, "bounds: time 1000000000 is above the value"),
        (("layers", 0, "bounds", "time"), 1, "the plan says OPTIMAL, it is FEASIBLE"),
        (("layers", 0, "bounds", "time"), None, "the plan says OPTIMAL, it is FEASIBLE"),
        (("layers", 0, "bounds"), {"dram": 1}, "bounds: objectives"),
        (("layers", 0, "bounds"), {"time": 1, "dram": 1}, "bounds: objectives"),
        (("bounds", "time"), 1, "bounds: the plan says"),
        (("objectives",), ["dram"], "bounds: objectives"),
    ],
)
def test_lies_on_any_objective_are_found(
    both: MeshPlan, where: tuple[str | int, ...], value: object, said: str
) -> None:  # fmt: skip
    data = json.loads(both.to_json())
    at = data
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    problems = check(MeshPlan.model_validate(data)).problems
    assert any(said in line for line in problems), problems


# ---- pins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pin", ["P_C=3", "P_M=64", "P_C>=33", "P_R%3"])
def test_pes_along_an_index_are_a_power_of_two(pin: str) -> None:
    with pytest.raises(InputError, match=f"pin {pin}.* a power of two.* one of 1, 2, 4, 8, 16, 32 on vectormesh_128"):
        solve_mesh("lenet5", "vectormesh_128", layers=["c1"], pins=[pin])


def test_check_reads_pins_alike() -> None:
    plan = solve_mesh("lenet5", "vectormesh_128", layers=["c1"], pins=["P_C<=3", "P_M!=3"], engine="greedy")
    assert check(plan).ok
    assert plan.layers[0].vector["c"] <= 2
    lie = plan.model_copy(update={"options": plan.options.model_copy(update={"pins": ("P_C=3",)})})
    assert any("a power of two" in line for line in check(lie).problems)
