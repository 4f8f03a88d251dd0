"""The CP-SAT and MILP models: their tags, what each constraint is for, dominance, levels, cuts and honest answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pulp
import pytest
from ortools.sat.python import cp_model

from formulations.clock import Clock
from formulations.pareto import pareto
from formulations.pins import Pins, parse_pins
from formulations.tiling import cp_sat, milp
from formulations.tiling.branch import Branch, undominated
from formulations.tiling.problem import NESTS
from hwmodels.nest.price.bilinear import Bilinear
from instances.errors import InputError
from instances.machine.machine import Compute, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.small import byte_machine

LAYER = Layer.conv("x", channels=6, filters=7, size=(9, 8), kernel=(3, 3), pad=(1, 1, 1, 1))


machine = partial(
    byte_machine, psum_bytes=2, ocm_bytes=150, byte_fj=5,
    transfer=Transfer(byte_ticks=2, call_ticks=9, segment_ticks=3),
    compute=Compute(model="array", cycle_ticks=3, rows=2, cols=4),
)  # fmt: skip


def branch() -> Branch:
    formulation = NESTS["tiling"]
    return formulation.build(LAYER, machine(), parse_pins(["order=OS"], formulation.decisions)).branches[0]


def solve_cp(built: cp_sat.CpSatModel) -> int | None:
    solver = cp_model.CpSolver()
    status = solver.status_name(solver.solve(built.model))
    return round(solver.objective_value) if status == "OPTIMAL" else None


def solve_milp(built: milp.MilpModel) -> int | None:
    built.problem.solve(pulp.HiGHS(msg=False, gapRel=0, threads=1))
    return round(pulp.value(built.problem.objective) * built.unit) if built.problem.sol_status == 1 else None


def oracle(objective: str) -> int:
    b = branch()
    values = np.max([t.matrix() for t in b.tables(objective)], axis=0)
    return int(values[b.feasible()].min())


@pytest.mark.parametrize("objective", ["time", "bytes"])
def test_models_find_the_optimum_of_the_branch(objective: str) -> None:
    assert solve_cp(cp_sat.build_cp_sat(branch(), objective)) == oracle(objective)
    assert solve_milp(milp.build_milp(branch(), objective)) == oracle(objective)


def test_docstrings_and_models_have_the_same_tags() -> None:
    for module in (cp_sat, milp):
        documented = {word.strip("()") for word in (module.__doc__ or "").split() if word.strip("()").isupper()}
        assert set(module.TAGS) <= documented
    levels = {"bytes": oracle("bytes")}
    assert cp_sat.build_cp_sat(branch(), "time", levels=levels, cuts=[(0, 0)]).tags == set(cp_sat.TAGS)
    assert milp.build_milp(branch(), "time", levels=levels, cuts=[(0, 0)]).tags == set(milp.TAGS)


def test_without_capacity_a_plan_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, build, solve in (
        (cp_sat, cp_sat.build_cp_sat, solve_cp),
        (milp, milp.build_milp, solve_milp),
    ):
        monkeypatch.setattr(module, "_capacity", lambda *_: None)
        if module is cp_sat:
            monkeypatch.setattr(module, "_fit", lambda *_: None)
        else:
            monkeypatch.setattr(Branch, "feasible", lambda self: np.ones(self.choices.shape, np.bool_))
        value = solve(build(branch(), "bytes"))
        monkeypatch.undo()
        assert value < oracle("bytes")


def test_levels_cuts_and_cut_offs_bind() -> None:
    """The fastest plan moves more bytes than the least; keeping the bytes costs time; a cut plan is not found again."""
    b = branch()
    fewest, fastest = oracle("bytes"), oracle("time")
    kept_cp = solve_cp(cp_sat.build_cp_sat(b, "time", levels={"bytes": fewest}))
    kept_milp = solve_milp(milp.build_milp(b, "time", levels={"bytes": fewest}))
    assert kept_cp == kept_milp
    assert kept_cp >= fastest
    for most, found in ((fastest, fastest), (fastest - 1, None)):
        assert solve_cp(cp_sat.build_cp_sat(b, "time", at_most=most)) == found
        assert solve_milp(milp.build_milp(b, "time", at_most=most)) == found
    values = np.where(b.feasible(), np.max([t.matrix() for t in b.time], axis=0), np.inf)
    cuts = [(int(s), int(q)) for s, q in np.argwhere(values == fastest)]
    second = int(np.min(values[values > fastest]))
    assert solve_cp(cp_sat.build_cp_sat(b, "time", cuts=cuts)) == second
    assert solve_milp(milp.build_milp(b, "time", cuts=cuts)) == second


def test_every_table_of_an_earlier_objective_binds() -> None:
    """Times s and q (two buffers: the slower one counts), of both at most 1, 2 or 3; bytes (S + 1 - s) + (Q + 1 - q).

    With a time of t the fewest bytes have s = q = t: S + Q + 2 - 2 t. If one table alone were kept the other number
    would be the greatest, and the bytes S + 2 - t or Q + 2 - t.
    """
    b = branch()
    high, wide = b.choices.shape
    s, q = np.arange(1, high + 1, dtype=np.int64), np.arange(1, wide + 1, dtype=np.int64)
    one = [np.ones_like(q), np.ones_like(s)]
    time = Bilinear(s[None], one[0][None]), Bilinear(one[1][None], q[None])
    moved = Bilinear(np.stack([high + 1 - s, one[1]]), np.stack([one[0], wide + 1 - q]))
    made = Branch(b.layer, b.machine, b.label, b.skeleton, b.choices, time, moved, (), True, b.energy)
    assert min(high, wide) > 3
    for tables in (time, time[::-1]):
        made = replace(made, time=tables)
        for t in (1, 2, 3):
            assert solve_cp(cp_sat.build_cp_sat(made, "bytes", levels={"time": t})) == high + wide + 2 - 2 * t
            assert solve_milp(milp.build_milp(made, "bytes", levels={"time": t})) == high + wide + 2 - 2 * t


def tables_of(*tables: Bilinear) -> Branch:
    """The branch with other times, and nothing that does not fit."""
    return replace(branch(), time=tables, capacity=())


def test_the_slower_of_two_buffers_counts() -> None:
    """Times s and S + 1 - s: one of both is at least half of S + 1, rounded up; alone either would be 1."""
    s, one = np.arange(1, branch().choices.shape[0] + 1, dtype=np.int64), np.ones(branch().choices.shape[1], np.int64)
    made = tables_of(Bilinear(s[None], one[None]), Bilinear(s[None, ::-1].copy(), one[None]))
    assert len(s) > 3
    assert solve_cp(cp_sat.build_cp_sat(made, "time")) == (len(s) + 2) // 2
    assert solve_milp(milp.build_milp(made, "time")) == (len(s) + 2) // 2


@pytest.mark.parametrize(("of_s", "of_q"), [(100, 1), (1, 100)])
def test_a_cut_leaves_out_one_pair(of_s: int, of_q: int) -> None:
    """Of 100 s + q, with s and q from 1 on, 101 is the least, and without that pair 102; 100 s would be 201 at best."""
    high, wide = branch().choices.shape
    s, q = of_s * np.arange(1, high + 1, dtype=np.int64), of_q * np.arange(1, wide + 1, dtype=np.int64)
    made = tables_of(Bilinear(np.stack([s, np.ones_like(s)]), np.stack([np.ones_like(q), q])))
    for cuts, least in (((), 101), (((0, 0),), 102)):
        assert solve_cp(cp_sat.build_cp_sat(made, "time", cuts=cuts)) == least
        assert solve_milp(milp.build_milp(made, "time", cuts=cuts)) == least


@pytest.mark.parametrize("first", [1, 2, 3])
def test_what_does_not_fit_is_not_taken(first: int) -> None:
    """A time of s, whatever q: S + 1 - s bytes of S + 1 - first leave s = first, the least that fits."""
    b = branch()
    s, one = np.arange(1, b.choices.shape[0] + 1, dtype=np.int64), np.ones(b.choices.shape[1], np.int64)
    room = "ocm", Bilinear(len(s) + 1 - s[None], one[None]), len(s) + 1 - first
    made = replace(b, time=(Bilinear(s[None], one[None]),), capacity=(room,))
    assert solve_cp(cp_sat.build_cp_sat(made, "time")) == first
    assert solve_milp(milp.build_milp(made, "time")) == first


def test_factors_that_are_multiples_share_variables_and_add_up() -> None:
    """Bug met: b and 2b have the same factor after division by their gcd; the second term replaced the first."""
    b = branch()
    q = np.arange(1, b.choices.shape[1] + 1, dtype=np.int64)
    s = np.arange(1, b.choices.shape[0] + 1, dtype=np.int64)
    table = Bilinear(np.stack([s, s]), np.stack([q * 3, q * 6]))
    odd = Branch(b.layer, b.machine, b.label, b.skeleton, b.choices, (table,), b.bytes, (), True, b.energy)
    # the least is s = q = 1: 1*3 + 1*6
    assert solve_milp(milp.build_milp(odd, "time")) == 9
    assert solve_cp(cp_sat.build_cp_sat(odd, "time")) == 9


def test_dominance_keeps_the_optimum_and_drops_choices() -> None:
    b = branch()
    small = undominated(b, ["time"])
    assert small.choices.shape[0] < b.choices.shape[0]
    values = np.where(small.feasible(), np.max([t.matrix() for t in small.time], axis=0), np.inf)
    assert int(values.min()) == oracle("time")


def test_pareto_by_hand() -> None:
    # columns (1,4) (2,2) (2,3) (4,1) (2,2): (2,3) is above (2,2), the second (2,2) equals the first
    assert pareto(np.array([[1, 2, 2, 4, 2], [4, 2, 3, 1, 2]], np.int64)).tolist() == [0, 1, 3]
    every = np.arange(33_000, dtype=np.int64)  # more values than 16 bits have
    assert pareto(np.stack([every, every])).tolist() == [0]


def test_bilinear_merges_and_refuses_what_overflows() -> None:
    ones = np.ones(2, np.int64)
    merged = Bilinear.of([(ones, ones * 2), (ones * 3, ones * 2), (ones, ones * 5), (ones * 0, ones)], (2, 2))
    # (1 + 3) x 2 and 1 x 5, and 0: the spatial factors 4 and 1 stay apart
    assert len(merged.a) == 2
    assert merged.at(0, 0) == 13
    big = Bilinear(np.full((1, 1), 2**40, np.int64), np.full((1, 1), 2**30, np.int64))
    with pytest.raises(InputError, match="larger tick_ps"):
        big.matrix()
    exact = Bilinear(np.full((1, 1), 2**30 + 1, np.int64), np.full((1, 1), 2**30 + 1, np.int64))
    assert int(exact.matrix()[0, 0]) == (2**30 + 1) ** 2


@pytest.mark.few(5)
@pytest.mark.parametrize("objectives", [("time",), ("bytes",), ("energy",), ("bytes", "time"), ("energy", "time")])
@pytest.mark.parametrize("name", ["cp-sat", "milp", "milp-cbc"])
def test_full_objective_vectors_are_equal(name: str, objectives: tuple[str, ...]) -> None:
    space = NESTS["tiling"].build(LAYER, machine(), Pins())
    best = decide_space(space, objectives)
    found = decide_space(space, objectives, name)
    assert (found.status, found.values, found.bound) == (best.status, best.values, best.bound)
    assert found.stats.get("proven") == best.stats.get("proven")
    least = {"time": 31_026, "bytes": 4_134, "energy": 20_670}[objectives[0]]
    assert (best.status, best.bound, best.values[objectives[0]]) == ("OPTIMAL", least, least)


@pytest.mark.parametrize("name", ["cp-sat", "milp", "milp-cbc", "exhaustive"])
def test_infeasible_is_proven(name: str) -> None:
    space = NESTS["tiling"].build(LAYER, machine(ocm_bytes=3), Pins())
    found = decide_space(space, ("time",), name)
    assert (found.status, found.schedule, found.values, found.bound) == ("INFEASIBLE", None, {}, None)


@pytest.mark.parametrize("name", ["cp-sat", "milp", "exhaustive"])
def test_no_time_is_no_proof(name: str) -> None:
    space = NESTS["tiling"].build(LAYER, machine(), Pins())
    found = decide_space(space, ("time",), name, clock=Clock.of(0.0), bounding=False)
    assert found.status in ("FEASIBLE", "NO_SOLUTION_FOUND")
    best = decide_space(space, ("time",)).values
    assert found.bound is None or found.bound <= best["time"]


def test_a_milp_answer_that_floats_made_up_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver reports a value that the decoded plan does not have: FEASIBLE, with a bound that still holds."""
    real = milp.build_milp

    def cheaper(*args: object, **kwargs: object) -> milp.MilpModel:
        built = real(*args, **kwargs)
        built.unit *= 2
        return built

    space = NESTS["tiling"].build(LAYER, machine(), Pins().plus("holds", "uniform"))
    monkeypatch.setattr(milp, "build_milp", cheaper)
    found = decide_space(space, ("time",), "milp", bounding=False)
    assert found.status == "FEASIBLE"
