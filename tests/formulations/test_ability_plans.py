"""Plans on machines with lines or snake order: by hand, between engines, against random nests, in joint plans."""

from __future__ import annotations

import random

import pytest

from formulations.pins import parse_pins
from formulations.tiling import tiling
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver import Plan, check, solve
from tests.adversary.anneal import Goal, searched
from tests.adversary.layers import random_layer, random_machine
from tests.adversary.moves import Moves
from tests.formulations.test_joint import FOUR, chain
from tests.hwmodels.test_replay_walk import machine

EXACT = ("exhaustive", "cp-sat", "milp")
#: 4x4, a 3x3 kernel without padding: 2x2 results.
SQUARE = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))


def planned(plan: Plan) -> Nest:
    """The nest of a plan of one layer."""
    nest: Nest = plan.layers[0].schedule
    return nest


def on(ocm: int, **fields: object) -> Machine:
    """A machine that counts bytes of one each in a shared memory."""
    return machine(ocm_bytes=ocm, sliding=True, **fields)


@pytest.mark.slow(2)
@pytest.mark.parametrize("engine", EXACT)
def test_lines_by_hand(engine: str) -> None:
    # docs/nest.md: in lines IN takes 11 bytes and moves 16; 9 weights and one result beside them are 21 bytes.
    # Without, IN needs three whole rows for that, 12 bytes; each column twice are 24 (window by window).
    for fields, moved, status in (({"line": True}, 16 + 9 + 4, "OPTIMAL"), ({}, 24 + 9 + 4, "OPTIMAL")):
        plan = solve(SQUARE, on(21, **fields), objective="bytes", engine=engine)
        assert (plan.objective.value if plan.objective else None, plan.status) == (moved, status)
        assert planned(plan).line == bool(fields)
        assert check(plan).ok
    kept = solve(SQUARE, on(21, line=True), objective="bytes", engine=engine, pins=["lines=no"])
    assert (kept.objective.value, kept.status) == (37, "OPTIMAL")


@pytest.mark.parametrize("engine", EXACT)
def test_turns_by_hand(engine: str) -> None:
    # Two rows of a pixel, two filters, a byte for each operand. Rows outside: IN 2, W 2 and 2, results 4;
    # in snake order the last filter stays while the row changes: W 3. Filters outside spare one input instead.
    # The bound is everything once: 2 + 2 + 4.
    rows = Layer.conv("rows", channels=1, filters=2, size=(2, 1))
    plan = solve(rows, on(3, snake=True), objective="bytes", engine=engine)
    assert (plan.objective.value, plan.bound, plan.status) == (9, 8, "FEASIBLE")
    forward = solve(rows, on(3), objective="bytes", engine=engine)
    assert (forward.objective.value, forward.status) == (10, "OPTIMAL")


def case(seed: int) -> tuple[Layer, Machine, random.Random] | None:
    """A tiny layer and a machine with some ability."""
    rng = random.Random(seed)
    layer = random_layer(rng, tiny=True)
    found = random_machine(rng, layer, cores=False)
    if found.edge_tiles == "uniform":
        return None
    fields = {"snake": rng.random() < 0.5, "sliding": True, "line": rng.random() < 0.7}
    return layer, found.model_copy(update=fields), rng


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
def test_no_nest_is_below_the_bound(seed: int) -> None:
    given = case(seed)
    if given is None or not (given[1].snake or given[1].line):
        return
    layer, able, rng = given
    for measure in ("bytes", "time"):
        try:
            plan = solve(layer, able, objective=measure)
        except InputError:
            return
        best = searched(Goal(layer, able, (measure,)), [], 2, rng, tries=120)
        if plan.objective is None:
            assert best is None or plan.status == "NO_SOLUTION_FOUND"
            continue
        assert best is None or plan.bound <= best.vector[0]
        assert plan.status != "OPTIMAL" or plan.bound == plan.objective.value
        assert check(plan).ok
        space = tiling.build(layer, able, parse_pins((), tiling.DECISIONS))
        nest = planned(plan)
        assert space.contains(nest)
        if measure == "bytes":  # abilities never cost bytes
            without = able.model_copy(update={"line": False, "snake": False})
            plain = solve(layer, without, objective=measure)
            assert plan.objective.value <= plain.objective.value
            assert price(layer, able, nest).bytes == plan.objective.value


@pytest.mark.slow(2)
@pytest.mark.parametrize("fields", [{"line": True, "sliding": True}, {"snake": True}])
def test_joint_plans_have_them_too(fields: dict[str, object]) -> None:
    plain, able = (solve(chain(), FOUR.model_copy(update=more), problem="joint") for more in ({}, fields))
    assert able.objective.value <= plain.objective.value
    assert able.bound <= able.objective.value
    assert check(able).ok


@pytest.mark.slow(5)
def test_moves_reach_lines() -> None:
    rng = random.Random(0)
    able = on(21, line=True)
    moves = Moves(SQUARE, able, rng)
    assert {moves.changed(moves.start()).line for _ in range(60)} == {True, False}
    best = searched(Goal(SQUARE, able, ("bytes",)), [], 2, rng, tries=700)
    assert best.vector == (29,)
