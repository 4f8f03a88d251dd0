"""Plans on machines with lines or snake order: by hand, between engines, against random nests, in joint plans."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from formulations.pins import parse_pins
from formulations.tiling import tiling
from formulations.tiling.turns import _swapped, _traded, coarser
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.nest.price.tables import nest_tables
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
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


@pytest.mark.parametrize(("rows", "columns", "pin", "moved", "loops", "engine"), [
    # Lines for a window take 5 bytes, and 6 hold its result, too: all once. Without, every pass moves its inputs anew.
    *((3, 3, "lines=any", 9 + 4, "r c IN OUT", engine) for engine in EXACT),
    (3, 3, "lines=no", 2 * 2 * 3 + 4, "r c IN OUT", "exhaustive"),
    (5, 3, "lines=any", 15 + 8, "r c IN OUT", "exhaustive"), (3, 5, "lines=any", 15 + 8, "c r IN OUT", "exhaustive"),
    # Lines of 4 or 5 are too long: two strips of 4 x 3; if rows must be cut outside columns one of 3 x 5, one of 2 x 5.
    (4, 5, "lines=any", 2 * 4 * 3 + 12, "c r c IN OUT", "exhaustive"),
    (4, 5, "output=row_major", 3 * 5 + 2 * 5 + 12, "r c r IN OUT", "cp-sat"),
    (4, 5, "lines=no", 3 * 2 * 5 + 12, "r c IN OUT", "exhaustive"),
])  # fmt: skip
def test_lines_by_hand(rows: int, columns: int, pin: str, moved: int, loops: str, engine: str) -> None:
    window = Layer.conv("window", channels=1, filters=1, size=(rows, columns), kernel=(2, 2))
    pool = window.model_copy(update={"kind": "pool", "weights": "none"})
    plan = solve(pool, on(6, line=True), objective="bytes", engine=engine, pins=[pin])
    once = rows * columns + (rows - 1) * (columns - 1)
    bound = moved if pin == "lines=no" else once
    assert (plan.objective.value, plan.bound, plan.status) == (moved, bound, ("OPTIMAL", "FEASIBLE")[moved > bound])
    assert planned(plan).line == (pin != "lines=no")
    assert plan.layers[0].decision["loops"] == loops
    assert check(plan).ok


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


@pytest.mark.parametrize(("inner", "ocm", "moved", "forwards"), [
    # m OUT n IN W, 2 rows of IN at a time: m turns once, and a tile of IN stays: 3 * 2 + 2 * 2, W 6, OUT 4
    (3, 5, 10 + 6 + 4, 12 + 6 + 4),
    # m r OUT n IN W, element by element: W stays where r turns (8 - 2), IN where m does (8 - 1), OUT 4
    (2, 3, 6 + 7 + 4, 8 + 8 + 4),
])  # fmt: skip
def test_turns_of_loops_that_are_not_the_best_forwards(inner: int, ocm: int, moved: int, forwards: int) -> None:
    layer = Layer.matmul("x", rows=2, inner=inner, cols=2)
    found = [solve(layer, on(ocm, psum_bytes=1, **fields), objective="bytes") for fields in ({"snake": True}, {})]
    assert [(plan.objective.value, plan.status) for plan in found] == [(moved, "OPTIMAL"), (forwards, "OPTIMAL")]


def test_changes_that_are_tried_on_a_nest() -> None:
    """Neighbouring loops over different dimensions swapped; a loop left out, or its step doubled or larger by one."""
    layer = Layer.conv("x", channels=1, filters=3, size=(5, 4))
    nest = Nest((Loop("r", 2), Loop("c", 1), Hold("IN"), Loop("m", 1), Hold("W"), Loop("r", 1), Hold("OUT")))

    def said(found: Iterator[Nest]) -> list[str]:
        return [" ".join(f"{x.dim}{x.step}" if isinstance(x, Loop) else x.operand for x in one.items) for one in found]

    assert said(_swapped(layer, nest)) == ["c1 r2 IN m1 W r1 OUT"]
    assert said(coarser(layer, nest)) == [
        "c1 IN m1 W r1 OUT", "r4 c1 IN m1 W r1 OUT", "r3 c1 IN m1 W r1 OUT",
        "r2 IN m1 W r1 OUT", *["r2 c2 IN m1 W r1 OUT"] * 2,
        "r2 c1 IN W r1 OUT", *["r2 c1 IN m2 W r1 OUT"] * 2, "r2 c1 IN m1 W OUT",
    ]  # fmt: skip


def test_memory_that_goes_from_one_tile_to_another() -> None:
    """Rows in fives make as many pieces as in threes; filters in twos, then; and results may be made one by one."""
    layer = Layer.matmul("x", rows=6, inner=1, cols=4)
    nest = Nest((Loop("r", 5), Hold("IN"), Loop("m", 1), Hold("W"), Loop("r", 2), Hold("OUT")))
    said = [" ".join(f"{x.dim}{x.step}" if isinstance(x, Loop) else x.operand for x in one.items)
            for one in _traded(layer, nest)]  # fmt: skip
    assert said[:4] == [
        "r3 IN m2 W r2 OUT", "r3 IN m2 W m1 r1 OUT", "r3 IN m2 W r2 OUT", "r3 IN m2 W m1 r1 OUT",
    ]  # fmt: skip


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


@pytest.mark.parametrize("inner", [2, 1])
def test_bounds_know_lines_on_either_side_of_a_hold(inner: int) -> None:
    """Rows in twos, OUT, columns, IN in lines: it slides along rows by the loop outside OUT, where none inside cuts."""
    layer = Layer.conv("x", channels=1, filters=2, size=(8, 6), kernel=(3, 3))
    able = on(1, line=True, transfer={"call_ticks": 5, "segment_ticks": 1, "byte_ticks": 1})
    rows = [Loop("r", 1)] if inner == 1 else []
    nest = Nest((Loop("r", 2), Hold("OUT"), *rows, Loop("c", 1), Hold("IN", line=True), Loop("m", 1), Hold("W")))
    skeleton = Skeleton((), ("r", "r", "c", "m"), {"OUT": 1, "IN": 3, "W": 4}, full=True)
    steps = {"r": [[2, inner]], "c": [[1]], "m": [[1]]}
    chains = {d: np.array(steps.get(d, [[]]), np.int64) for d in DIMS}
    tiles = {d: np.array([{"r": inner, "c": 1, "m": 1}.get(d, layer.extent(d))]) for d in DIMS}
    ideal = {"m": "steps", "r": "listed", "c": "listed", "IN": "lines"}
    tables = nest_tables(layer, able, skeleton, replace(Choices.product(chains, tiles), ideal=ideal))
    outcome = price(layer, able, nest)
    assert (tables.bytes.at(0, 0), tables.time[0].at(0, 0)) <= (outcome.bytes, outcome.time_ticks)
    if inner == 2:  # each row of the map comes once: 8 rows of 6, W for every window, all results
        assert tables.bytes.at(0, 0) == outcome.bytes == 8 * 6 + 12 * 18 + 48


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
