"""Mesh: what plans claim: a bound for every objective."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from formulations.clock import ENDLESS, Clock
from formulations.mesh.finish import complete, doubled, fits
from formulations.mesh.price import DECISIONS, price
from formulations.mesh.problem import MeshPart, keeps
from formulations.mesh.search import best_pair, halves, leading
from formulations.mesh.space import members
from formulations.pins import Pins, parse_pins
from formulations.problem import Goal
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.workload import DIMS, Layer
from solver import check, solve
from solver.calls.solve import show
from solver.plan.plan import Plan
from solver.problems.mesh import Mesh
from tests.lies import problems
from tests.mesh_answers import answer

# ---- a bound for every objective -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both() -> Plan:
    return solve("lenet5", "vectormesh_128", layers=["c1", "c3"], objective="dram,time", problem="mesh")


@pytest.mark.slow(11)
def test_every_objective_has_a_bound(both: Plan) -> None:
    assert both.status == "OPTIMAL"
    assert both.bounds == {"dram": both.measures["dram"], "time": both.measures["time"]}
    assert both.bound == both.measures["dram"]
    for part in both.parts:
        assert part.bounds == {"dram": part.measures["dram"], "time": part.measures["time"]}
    again = Plan.from_json(both.to_json())
    assert list(again.bounds) == ["dram", "time"]
    assert check(again).ok


def gaps(plan: Plan) -> list[list[str]]:
    """What the table says, by objective and layer."""
    return [list(column.cells) for column in Mesh().sheet(plan).columns if column.head == "gap (%)"]


@pytest.mark.slow(4)
def test_every_bound_is_shown(both: Plan) -> None:
    assert f"time {both.measures['time']:,} ticks, bound {both.measures['time']:,}, gap 0 %" in show(both)
    assert gaps(both) == [["0", "0"], ["0", "0"]]
    greedy = solve("lenet5", "vectormesh_128", layers=["c1"], objective="dram,time", engine="greedy", problem="mesh")
    assert greedy.bounds == {"dram": None, "time": None}
    assert gaps(greedy) == [["-"], ["-"]]


@pytest.mark.slow(6)
@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("parts", 0, "bounds", "time"), 10**9, "bounds: time 1000000000 is above the value"),
        (("parts", 0, "bounds", "time"), 1, "the plan says OPTIMAL, it is FEASIBLE"),
        (("parts", 0, "bounds", "time"), None, "the plan says OPTIMAL, it is FEASIBLE"),
        (("parts", 0, "bounds"), {"dram": 1}, "bounds: objectives"),
        (("parts", 0, "bounds"), {"time": 1, "dram": 1}, "bounds: objectives"),
        (("objectives",), ["dram"], "bounds: objectives"),
    ],
)
def test_lies_on_any_objective_are_found(
    both: Plan, where: tuple[str | int, ...], value: object, said: str
) -> None:  # fmt: skip
    found = problems(both, (where, value))
    assert any(said in line for line in found), found


# ---- pins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pin", ["P_C=3", "P_M=64", "P_C>=33", "P_R%3"])
def test_pes_along_an_index_are_a_power_of_two(pin: str) -> None:
    with pytest.raises(InputError, match=f"pin {pin}.* a power of two.* one of 1, 2, 4, 8, 16, 32 on vectormesh_128"):
        solve("lenet5", "vectormesh_128", layers=["c1"], pins=[pin], problem="mesh")


def test_check_reads_pins_alike() -> None:
    plan = solve("lenet5", "vectormesh_128", layers=["c1"], pins=["P_C<=3", "P_M!=3"], engine="greedy", problem="mesh")
    assert check(plan).ok
    assert plan.parts[0].schedule.choice.vector[DIMS.index("c")] <= 2
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


@pytest.mark.slow(4)
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
        solve(
            "lenet5", "vectormesh_128", layers=["c1"], settings=[f"mesh.dram_bytes_per_cycle={2**70}"], problem="mesh"
        )


# ---- time limits -----------------------------------------------------------------------------------------------------


class Ticks:
    """A clock that moves on by one whenever it is read."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self) -> float:
        self.read += 1
        return float(self.read)


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["exhaustive", "milp", "greedy"])
@pytest.mark.parametrize("measure", ["dram", "time"])
@pytest.mark.parametrize("name", [pytest.param("vectormesh_128", marks=pytest.mark.slow), "eyeriss_128"])
def test_time_may_be_up_at_any_moment(engine: str, measure: str, name: str) -> None:
    """Then the search stops soon, claims nothing false and has a plan: one made by doubling at least."""
    layer, machine = Layer.conv("c", channels=4, filters=6, size=(7, 6), kernel=(3, 2)), load_machine(name)
    if machine.mesh is not None and machine.mesh.kind == "teu":
        machine = machine.model_copy(update={"mesh": machine.mesh.model_copy(update={"pes": 4, "banks": 4})})
    best = answer("exhaustive", layer, machine, measure).value
    endless = Ticks()
    done = answer(engine, layer, machine, measure, clock=Clock.of(1e9, endless))
    assert (done.value == best) == (engine != "greedy") or done.value is not None
    stopped = 0
    for limit in np.unique(np.geomspace(1, 2 * endless.read, 15).astype(int)):
        now = Ticks()
        said = answer(engine, layer, machine, measure, clock=Clock.of(float(limit), now))
        assert said.status in ("OPTIMAL", "FEASIBLE")
        assert said.value >= best
        assert said.bound is None or said.bound <= best
        assert (said.status == "OPTIMAL") == (said.bound == said.value)
        assert now.read <= limit + 30
        stopped += said.status == "FEASIBLE"
    assert stopped > 3


def test_no_time_is_no_proof() -> None:
    """Without a plan in time nothing is called infeasible: the greedy start and doubling fail for a stride of 16."""
    layer = Layer.conv("c", channels=2, filters=3, size=(64, 64), kernel=(1, 1), stride=(16, 16))
    machine = load_machine("vectormesh_128")
    pins = ("T_R=4", "T_C=4", "P_R=4", "P_C=4")

    def status(clock: Clock) -> str:
        return answer("exhaustive", layer, machine, "dram", pins, clock).status

    assert status(ENDLESS) == "INFEASIBLE"
    for limit in range(1, 40, 3):
        assert status(Clock.of(float(limit), Ticks())) in ("NO_SOLUTION_FOUND", "INFEASIBLE")
    assert status(Clock.of(1.0, Ticks())) == "NO_SOLUTION_FOUND"


@pytest.mark.slow(8)
def test_limits_hold_for_all_objectives() -> None:
    plan = solve("vectormesh_classic", "vectormesh_128", layers=["sr_conv1"], objective="time,dram",
                      time_limit_s=0.05, problem="mesh")  # fmt: skip
    assert plan.status == "FEASIBLE"
    assert check(plan).ok
    assert plan.wall_s < 60


@pytest.mark.parametrize("pins", [(), ("T_M=2", "keep=W"), ("filters=2", "channels=2"), ("T_R>=3",)])
@pytest.mark.parametrize("name", ["vectormesh_128", "tpu_128", "eyeriss_128"])
def test_doubling_keeps_pins(pins: tuple[str, ...], name: str) -> None:
    parsed, machine = parse_pins(pins, DECISIONS), load_machine(name)
    layer = Layer.conv("c", channels=4, filters=6, size=(9, 8), kernel=(3, 2))
    if "filters=2" in pins and name != "eyeriss_128":
        pytest.skip("a decision of row-stationary PEs")
    found = doubled(layer, machine, parsed)
    assert len(found) > 3
    for choice in found:
        made = complete(layer, machine, choice, parsed, chosen=False)
        assert keeps(made.choice, parsed)
        assert fits(layer, machine, made.choice)
    assert [prod(choice.tile) for choice in found] == sorted(prod(choice.tile) for choice in found)
    assert doubled(layer, machine, parse_pins(["T_M>=7"], DECISIONS)) == []


# ---- fewer options ---------------------------------------------------------------------------------------------------


def test_options_that_lead_are_enough() -> None:
    """Far fewer options, the same best pair; as soon as a pair is forbidden all options are back."""
    layer, machine = load_network("vectormesh_classic").layer("al_conv2"), load_machine("vectormesh_128")
    for member in MeshPart(layer, machine).members(Goal("dram")):
        found = halves(member, {"dram": 1_900_000})
        if not len(found.left) or not len(found.right):
            continue
        few, whole = leading(found)
        pair, value, _ = best_pair(few, "dram")
        assert value == best_pair(found, "dram")[1]
        if pair is None:
            continue
        vector = (32, *(1 for _ in range(7)))
        assert price(layer, machine, replace(found.choice(whole(pair)), vector=vector))[0]["dram"] == value
        assert len(few.left) < len(found.left)
        found.forbidden.add(whole(pair))
        again, same = leading(found)
        assert (again, same(pair)) == (found, pair)


@pytest.mark.slow
def test_cp_sat_proves_the_largest_workload() -> None:
    """Products of variables left it unproven after 40 s; 52,713 options of one half, 15 of the other."""
    layer, machine = load_network("vectormesh_classic").layer("sr_conv1"), load_machine("vectormesh_128")
    said = answer("cp-sat", layer, machine, "dram", clock=Clock.of(120))
    assert (said.status, said.value, said.bound) == ("OPTIMAL", 10_477_184, 10_477_184)
    assert answer("exhaustive", layer, machine, "dram").value == said.value
