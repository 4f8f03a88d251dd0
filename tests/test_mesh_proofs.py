"""F3 mesh: what plans claim: a bound for every objective."""

from __future__ import annotations

import json
from math import prod

import numpy as np
import pytest

from formulations.mesh_search import halves
from formulations.mesh_space import members
from formulations.pins import Pins
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.workload import Layer
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


# ---- sums that do not fit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (Layer.matmul("mm", rows=2000, inner=2000, cols=2000), None),
        (Layer.matmul("mm", rows=2, inner=1, cols=3).model_copy(update={"b": 200_000, "g": 200_000, "n": 200_000}),
         "could come to"),
        (Layer.matmul("mm", rows=2, inner=1, cols=3).model_copy(update={"pad_top": 2**60}), "indices r and i"),
        (Layer.matmul("mm", rows=2, inner=1, cols=3).model_copy(update={"dilation_h": 2**62}), "indices r and i"),
    ],
)  # fmt: skip
def test_sums_beyond_64_bits_are_refused(layer: Layer, said: str | None) -> None:
    """200,000 ** 3 products of 200,000 ** 3 elements would come to 2 ** 106: no group alone is that long."""
    machine, needs = load_machine("vectormesh_128"), frozenset({"dram", "cycles"})
    found = members(layer, machine, Pins(), needs=needs, lanes=False, thin=True, full=True)
    if said is None:
        assert list(found)
        return
    with pytest.raises(InputError, match=f"layer mm: .*{said}"):
        list(found)


def test_the_guard_is_above_every_sum() -> None:
    """What any pair of options comes to is below what the guard reckons with: the largest entries of all groups."""
    layer = load_network("vectormesh_classic").layer("al_conv1")
    for name in ("vectormesh_128", "tpu_128", "eyeriss_128"):
        needs = frozenset({"dram", "glb", "cycles"})
        for member in members(layer, load_machine(name), Pins(), needs=needs, lanes=False, thin=True):
            found = halves(member, {})
            for what in member.measures.values():
                most = what.constant + sum(
                    factor * prod(int(g.terms[:, member.names.index(term)].max(initial=1)) for g in member.groups)
                    for term, factor in what.factors.items()
                )
                rows = np.arange(len(found.left))[:2000]
                values = found.values(what, rows, np.arange(len(found.right)))
                assert 0 < int(values.max(initial=1)) <= most < 2**53


def test_machines_are_bounded() -> None:
    with pytest.raises(InputError, match=r"mesh\.dram_bytes_per_cycle"):
        solve_mesh("lenet5", "vectormesh_128", layers=["c1"], settings=[f"mesh.dram_bytes_per_cycle={2**70}"])
