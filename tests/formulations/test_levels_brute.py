"""Levels: search and CP-SAT against every nest of equal steps of tiny layers; rules; pins; what may not hang."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from formulations.clock import Clock
from formulations.levels import axes, chains
from formulations.levels.orders import orders
from formulations.levels.problem import DECISIONS, LevelPart, LevelsFormulation
from formulations.levels.search import Searched
from formulations.levels.terms import Terms
from formulations.pins import parse_pins
from hwmodels.levels.price import price
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from solver.search.loop import decide_part
from tests.adversary.levels import TESTER, Case, counter
from tests.effort import THOROUGH, tries

NEAR = (("l1", 13, ("IN", "W", "OUT"), (), 0, (0, 0, 0)),)
PLAIN = Case(
    layer=(("kh", 3), ("kw", 3), ("h", 3), ("l", 3), ("r", 1), ("c", 1)), memories=NEAR, outside=(0, 1, 1),
    bytes=(1, 1, 1, 1, 0), unit=(0, 0, 0), mac_fj=0, sliding=False, objectives=("bytes",), engines=("search",),
)  # fmt: skip
#: Two levels, and long axes: a stride below the kernel, one above it with dilation, wide padding; a matrix.
TWO = (("l2", 70, *NEAR[0][2:5], (1, 1, 1)), ("l1", 30, *NEAR[0][2:]))
LESS = (("l2", 24, *TWO[0][2:]), ("l1", 11, *TWO[1][2:]))
STRETCHED: tuple[tuple[tuple[str, int], ...], ...] = (
    (("r", 11), ("kh", 3), ("pad_top", 1), ("h", 11), ("c", 1), ("l", 1), ("m", 7)),
    (("r", 9), ("kh", 2), ("dilation_h", 2), ("stride_h", 4), ("h", 35), ("c", 1), ("l", 1), ("n", 5)),
    (("r", 10), ("kh", 5), ("pad_top", 3), ("h", 8), ("c", 1), ("l", 1), ("m", 5)),
    (("r", 13), ("h", 13), ("c", 1), ("l", 1), ("m", 13), ("n", 2)),
)


def part_of(case: Case) -> LevelPart:
    assert case.workload is not None
    return LevelPart(case.workload, case.machine, parse_pins(case.pins, DECISIONS))


@pytest.mark.parametrize("chunk", range(4))
def test_no_nest_of_a_tiny_layer_is_better(chunk: int) -> None:
    for k in range(tries(6, 300)):
        rng = random.Random(f"brute/{chunk}/{k}")
        case = TESTER.case(rng)
        case = case if k % 2 else replace(case, rule="")
        found = TESTER.run(case, rng)
        assert not found, (found[0].what, found[0].instance)


@pytest.mark.parametrize("engine", ["cp-sat", "descend", "halving"])
def test_other_engines_agree(engine: str) -> None:
    for k in range(tries(3, 100)):
        rng = random.Random(f"{engine}/{k}")
        case = replace(TESTER.case(rng), engines=("search", engine), rule="")
        found = TESTER.run(case, rng)
        assert not found, (found[0].what, found[0].instance)


def test_counts_walks_and_executions_of_random_nests_agree() -> None:
    for k in range(tries(200, 5000)):
        rng = random.Random(f"nests/{k}")
        case = Case.drawn(rng)
        layer, machine = case.workload, case.machine
        assert layer is not None
        assert machine.levels is not None
        nest = random_nest(rng, layer, machine)
        names = ("time", "energy", *(f"bytes@{one.name}" for one in machine.levels.memories[:-1]))
        told, seen = price(layer, machine, nest), walk(layer, machine, nest)
        values, _ = counter(replace(case, pins=())).counted(nest, names)
        assert tuple(told.measures[name] for name in names) == values, (case, nest)
        assert (seen.time, seen.energy, seen.taken) == (values[0], values[1], told.occupancy_bytes), (case, nest)
        assert not [fault for fault in seen.faults if "bytes are taken" not in fault], (case, nest)


def random_nest(rng: random.Random, layer: Layer, machine: Machine) -> LevelNest:
    """Any nest that is well formed: loops of any step before and inside Stays in any order."""
    assert machine.levels is not None
    left = {
        operand: [one.name for one in machine.levels.memories[1:]
                  if operand in one.operands and (operand not in one.passed or rng.random() < 0.5)]
        for operand in layer.operands
    }  # fmt: skip
    items, size = list[Cut | Stay](), {d: layer.extent(d) for d in DIMS}
    while True:
        for _ in range(rng.choice((0, 1, 1, 2))):
            d = rng.choice([d for d in DIMS if d not in "ij" or not left["IN"]])
            size[d] = rng.randint(1, size[d])
            items.append(Cut(d, size[d]))  # type: ignore[arg-type]
        operands = [operand for operand, names in left.items() if names]
        if not operands:
            return LevelNest(tuple(items))
        operand = rng.choice(operands)
        items.append(Stay(operand, left[operand].pop(0)))  # type: ignore[arg-type]


def test_rows_of_the_search_are_what_nests_cost() -> None:
    """Where every Stay has loops that cut before it, so that no loop outside is idle."""
    equal = 0
    for k in range(tries(150, 3000)):
        rng = random.Random(f"rows/{k}")
        case = Case.drawn(rng)
        part = part_of(replace(case, pins=()))
        order, names = rng.choice(part.orders), case.objectives
        terms = Terms(part.layer, part.machine, order, names)
        picks = [rng.randrange(len(one.steps)) for one in terms.axes]
        nest, products = terms.nest(picks), terms.products([np.array([pick]) for pick in picks])
        told = price(part.layer, part.machine, nest)
        items = [None, *nest.items]
        real = all(isinstance(items[at], Cut) for at, _ in nest.stays())
        equal += real
        for name in names:
            row = int(terms.measures[name].value(products)[0])
            assert told.measures[name] == row if real else told.measures[name] <= row, (case, order.name, name)
        for name, (taken, _) in terms.memories.items():
            assert told.occupancy_bytes[name] <= int(taken.value(products)[0]), (case, order.name, name)
    assert equal


@pytest.mark.parametrize(
    "layer",
    [
        (("kh", 2), ("kw", 2), ("r", 2), ("c", 3), ("h", 3), ("l", 4)),
        (("n", 4), ("m", 3), ("r", 1), ("c", 1), ("h", 1), ("l", 1)),
    ],
)
@pytest.mark.parametrize("sizes", [(14, 12)])
def test_some_layers_in_some_memories(layer: tuple[tuple[str, int], ...], sizes: tuple[int, int]) -> None:
    memories = (("l2", sizes[0], *TWO[0][2:]), ("l1", sizes[1], *TWO[1][2:]))
    case = replace(PLAIN, layer=layer, memories=memories, sliding=True, objectives=("bytes@l2", "bytes"))
    wide = replace(case, bytes=(1, 1, 1, 3, 0), objectives=("bytes",))
    assert not [one.what for asked in (case, wide) for one in TESTER.run(asked, random.Random(0))]


def test_relaxed_chains_bound_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def least(part: LevelPart, case: Case, most: int, *, relax: bool) -> list[int | None]:
        for name in ("MANY", "MANY_WINDOWS", "SOME"):
            monkeypatch.setattr(chains, name, most)
        for made in (chains.steps, chains.few, chains.relaxed, axes._table):
            made.cache_clear()
        found = list[int | None]()
        for order in [*orders(part.layer, part.machine)][:: 7 - 6 * THOROUGH]:
            terms = Terms(
                part.layer, part.machine, order, case.objectives, residents=part.residents, how="cells" if relax else ""
            )
            found.append(Searched(terms, case.objectives[0], {}).best(None, Clock.of(None))[1])
        return found

    for k, layer in enumerate(STRETCHED):
        case = replace(PLAIN, layer=layer, memories=TWO if k < 3 else LESS, sliding=True)
        case = replace(case, objectives=(("bytes", "bytes@l2", "time", "bytes")[k],))
        part = part_of(case)
        exact, bounds = least(part, case, 10**6, relax=False), least(part, case, 4, relax=True)
        for one, bound in zip(exact, bounds, strict=True):
            assert one is None or (bound is not None and bound <= one), case
    for made in (chains.steps, chains.few, chains.relaxed, axes._table):
        made.cache_clear()


def test_pins_say_what_lies_whole_where() -> None:
    pins = parse_pins(["resident=W@l1"], DECISIONS)
    assert pins.to_json() == ["resident=W@l1"]
    roomy = replace(PLAIN, memories=(("l1", 19, *NEAR[0][2:]),), pins=("resident=W@l1",))
    assert not TESTER.run(roomy, random.Random(0))
    assert TESTER.claim(roomy, "search").value == 9 + 9 + 1
    assert TESTER.claim(replace(roomy, memories=NEAR), "search").status == "INFEASIBLE"
    assert TESTER.claim(replace(roomy, memories=NEAR, pins=()), "search").value == 9 + 9 + 1


def test_halving_goes_on_with_the_kernel() -> None:
    part = part_of(PLAIN)  # a window of 9, one result, and room for 3 of 9 weights
    said = decide_part(LevelsFormulation(), part, ("bytes",), "halving", Clock.of(5.0))
    assert said.schedule is not None
    assert not part.contains(said.schedule)


@pytest.mark.parametrize(
    ("name", "value"),
    [("snake", True), ("buffering", "double"), ("edge_tiles", "uniform"), ("psum_first_read", True), ("tles", 2),
     ("reserved_bytes", 1), ("im2col_rows", 2), ("byte_fj", 3), ("ocm_bytes", 64)],
)  # fmt: skip
def test_settings_that_are_not_counted_are_refused(name: str, value: object) -> None:
    machine = Machine.model_validate(
        {**PLAIN.machine.model_dump(exclude={"transfer"}, exclude_unset=True), name: value}
    )
    assert PLAIN.workload is not None
    with pytest.raises(InputError, match=f"{name} {value} is not counted in levels"):
        LevelPart(PLAIN.workload, machine)


def test_a_fault_in_a_memory_is_all_that_is_said() -> None:
    data = PLAIN.machine.model_dump(exclude={"transfer"}, exclude_unset=True)
    data["levels"] = {"memories": [{"name": "dram"}, {"name": "l1"}]}
    with pytest.raises(ValueError, match="give its bytes") as said:
        Machine.model_validate(data)
    assert "Field required" not in str(said.value)


def test_pieces_of_free_sizes_are_left_out() -> None:
    """Eight rows, a kernel of three, padding of one: pieces of 3, 2 and 3 rows need windows of 4, equal ones of 5."""
    layer = (("kh", 3), ("pad_top", 1), ("h", 8), ("l", 1), ("r", 8), ("c", 1))
    case = replace(PLAIN, layer=layer, memories=(("l1", 8, *NEAR[0][2:]),))
    free = counter(case).best(("bytes",))
    assert free is not None
    assert free[0] == (23,)
    assert [item.step for item in free[1].items if isinstance(item, Cut)][:2] == [5, 3]
    assert TESTER.claim(case, "search").value == 25
    assert not TESTER.run(case, random.Random(0))


def test_sums_that_are_cut_inside_the_nearer_memory_take_no_room_in_the_farther_one() -> None:
    """Four results of a byte lie in L2, while sums of three bytes come to L1, one channel after the other."""
    layer = (("n", 3), ("m", 2), ("r", 2), ("c", 1), ("h", 2), ("l", 1))
    memories = (("l2", 10, *TWO[0][2:]), ("l1", 5, *TWO[1][2:]))
    case = replace(PLAIN, layer=layer, memories=memories, bytes=(1, 1, 1, 3, 0))
    assert not TESTER.run(case, random.Random(0))
    assert TESTER.claim(case, "search").value == 6 + 6 + 4
