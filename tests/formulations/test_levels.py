"""Levels: nests over several memories against sums by hand, walks, executions, peers' figures and unreduced lists."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations.clock import ENDLESS
from formulations.levels import chains
from formulations.levels.orders import orders
from formulations.levels.problem import LevelPart, LevelsFormulation
from formulations.levels.search import Searched
from formulations.levels.terms import Terms
from formulations.pins import parse_pins
from hwmodels.levels.price import price
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from instances.validation import validate
from solver import check, solve
from solver.cli.main import main
from solver.search.loop import decide_part
from tests.effort import tries

FORMULATION = LevelsFormulation()


def machine(*memories: dict[str, Any], queues: str = "serial", **fields: Any) -> Machine:
    """A machine with these memories on the chip, one byte for everything."""
    far = {"name": "dram", "call_ticks": 3, "byte_ticks": 2, "byte_fj": 5}
    return Machine.model_validate({
        "name": "tiny", "problem": "levels", "tick_ps": 1000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1,
        "psum_bytes": 1, "levels": {"queues": queues, "memories": [far, *memories]}, **fields,
    })  # fmt: skip


def two(l2: int, l1: int, **fields: Any) -> Machine:
    """L2 and L1 of so many bytes."""
    return machine({"name": "l2", "bytes": l2, "call_ticks": 1, "byte_ticks": 1}, {"name": "l1", "bytes": l1}, **fields)


def nest(text: str) -> LevelNest:
    """``"IN@l2 r1 IN@l1"``: Stays, and loops with their step."""
    items: list[Cut | Stay] = []
    for word in text.split():
        operand, at, memory = word.partition("@")
        items.append(Stay(operand, memory) if at else Cut(word[0], int(word[1:])))  # type: ignore[arg-type]
    return LevelNest(tuple(items))


def drawn(rng: random.Random) -> Layer:
    """A layer of a few elements."""
    kind = rng.choice(("conv", "conv", "deep", "matmul", "pool", "add"))
    if kind == "matmul":
        sizes = {"rows": rng.randint(1, 5), "inner": rng.randint(1, 5), "cols": rng.randint(1, 5)}
        return Layer.matmul("x", **sizes, batch=rng.randint(1, 2), bias=rng.random() < 0.3)
    if kind == "add":
        size = {"g": rng.randint(1, 3), "r": rng.randint(1, 4), "c": rng.randint(1, 4)}
        return Layer(name="x", kind="eltwise", m=1, n=1, h=size["r"], l=size["c"], inputs=2, weights="none", **size)
    kernel = rng.choice(((1, 1), (3, 3), (2, 2), (3, 1), (1, 2), (5, 1)))
    pad = tuple(rng.randint(0, k - 1) for k in (*kernel, *kernel))
    groups = rng.randint(1, 4) if kind != "conv" else rng.choice((1, 1, 1, 2))
    per = 1 if kind != "conv" else rng.randint(1, 3)
    layer = Layer.conv(
        "x", channels=groups * per, filters=groups * (rng.randint(1, 3) if kind == "conv" else 1),
        size=(rng.randint(kernel[0], 6), rng.randint(kernel[1], 6)), kernel=kernel,
        stride=(rng.randint(1, 2), rng.randint(1, 2)), pad=(pad[0], pad[1], pad[2], pad[3]), groups=groups,
        batch=rng.choice((1, 1, 2)), bias=rng.random() < 0.3,
    )  # fmt: skip
    return layer if kind != "pool" else layer.model_copy(update={"kind": "pool", "weights": "none", "bias": False})


def nested(rng: random.Random, layer: Layer, memories: tuple[str, ...]) -> LevelNest:
    """Any nest, with loops that cut nothing, and several over one dimension."""
    left = {operand: [Stay(operand, m) for m in memories] for operand in layer.operands}  # type: ignore[arg-type]
    stays = [left[rng.choice([x for x in left if left[x]])].pop(0) for _ in range(len(left) * len(memories))]
    last = max(k for k, one in enumerate(stays) if one.operand == "IN")
    size, items = {d: layer.extent(d) for d in "bgmnrcij"}, list[Cut | Stay]()
    for k, stay in enumerate([*stays, None]):
        for _ in range(rng.choice((0, 1, 1, 2))):
            d = rng.choice("bgmnrcij" if k > last else "bgmnrc")
            size[d] = rng.randint(1, size[d])
            items.append(Cut(d, size[d]))  # type: ignore[arg-type]
        items += [stay] if stay is not None else []
    return LevelNest(tuple(items))


# ---- the price -------------------------------------------------------------------------------------------------------


def test_a_nest_by_hand() -> None:
    """4 x 4 pixels of 2 channels, 3x3 kernel with padding, 4 filters; strips of 2 rows in L2, single rows in L1.

    IN in L2: rows 0-2 and 1-3 without sliding, 2 strips of 3 x 4 x 2 = 24 bytes; sliding the second one brings row 3
    alone, 8 bytes. IN in L1: by row 2, 3, 3, 2 rows of 8 bytes; sliding within a strip 2 + 1 and 3 + 0. W (72 bytes)
    once to L2 and for each of two filters at a time, in every row, to L1: 4 * 72. OUT (64 bytes): once each.
    """
    layer = Layer.conv("x", channels=2, filters=4, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
    made = nest("W@l2 r2 IN@l2 OUT@l2 r1 IN@l1 m2 W@l1 OUT@l1")
    for sliding, far, near in ((False, 24 + 24, 8 * (2 + 3 + 3 + 2)), (True, 24 + 8, 8 * (2 + 1 + 3 + 0))):
        on = two(200, 100, sliding=sliding)
        cost = price(layer, on, made)
        assert cost.measures["bytes"] == cost.measures["bytes@dram"] == far + 72 + 64
        assert cost.measures["bytes@l2"] == near + 4 * 72 + 64
        assert cost.occupancy_bytes == {"l2": 72 + 24 + 32, "l1": 24 + 36 + 8}
        seen = walk(layer, on, made)
        assert seen.executed
        assert not seen.faults
        assert seen.time == cost.measures["time"]


@pytest.mark.parametrize("queues", ["serial", "one", "each"])
def test_price_walk_and_execution_agree(queues: str) -> None:
    """Any nest on any machine: bytes, transfers (in time), energy and tiles; and transfers that overlap."""
    rng = random.Random(f"levels {queues}")
    for _ in range(tries(60, 3000)):
        layer, names = drawn(rng), rng.choice((("l1",), ("l2", "l1"), ("l2", "mid", "l1")))
        memories = [
            {"name": name, "bytes": 10**9, "call_ticks": rng.randint(0, 5), "byte_ticks": rng.randint(0, 3),
             "byte_fj": rng.randint(0, 3), "buffers": rng.choice((1, 2)) if queues != "serial" else 1}
            for name in names
        ]  # fmt: skip
        on = machine(
            *memories, queues=queues, sliding=rng.random() < 0.7, psum_bytes=rng.choice((1, 4)),
            in_bytes=rng.choice((1, 2)), bias_bytes=rng.choice((0, 4)), mac_fj=3,
            compute={"model": rng.choice(("array", "none")), "rows": 2, "cols": 2, "cycle_ticks": rng.randint(1, 20)},
        )  # fmt: skip
        made = nested(rng, layer, names)
        cost, seen = price(layer, on, made), walk(layer, on, made)
        assert seen.faults == []
        assert seen.executed
        known = {"time": seen.time, "bytes": seen.bytes["dram"], "energy": seen.energy}
        known |= {f"bytes@{name}": seen.bytes[name] for name in ("dram", *names[:-1])}
        assert (cost.measures, cost.occupancy_bytes) == (known, seen.taken)


def test_transfers_that_overlap_by_hand() -> None:
    """4 x 1 results of one product each, a row at a time, DRAM and one memory, 2 ticks a byte and 3 a transfer.

    A load of a row of IN takes 5, of W 5, a step 10, a store 5. With two buffers, one queue: IN 0-5, W 5-10, IN 10-15;
    step 1 10-20; IN 20-25 and 25-30 for steps 3 and 4 wait for a buffer: step 2 20-30, the store of row 1 and the third
    load are asked for at 20: 20-25, 25-30; step 3 30-40: store 2, load 4 30-40; step 4 40-50; last store 50-55.
    With one buffer row by row: load 5, step 10, store 5, and W once: 5 + 4 * 20.
    """
    layer, made = Layer.matmul("x", rows=4, inner=1, cols=1), nest("r1 IN@l1 W@l1 OUT@l1")
    for buffers, ticks in ((2, 55), (1, 5 + 4 * 20)):
        on = machine(
            {"name": "l1", "bytes": 99, "buffers": buffers}, queues="one", compute={"model": "array", "cycle_ticks": 10}
        )
        assert price(layer, on, nest("W@l1 r1 IN@l1 OUT@l1")).measures["time"] == ticks
        assert walk(layer, on, nest("W@l1 r1 IN@l1 OUT@l1")).time == ticks
    assert made.stays()[0][1] == Stay("IN", "l1")


# ---- the space -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("extent", "depth"), [(5, 1), (7, 2), (9, 2), (6, 3), (8, 3), (5, 4)])
@pytest.mark.parametrize("lanes", [0, 2])
def test_a_chain_that_is_left_out_has_another_one_below(extent: int, depth: int, lanes: int) -> None:
    """The claim of `formulations.levels.chains`, over all chains."""
    every = chains.every(np.arange(1, extent + 1), depth)

    def features(some: Any) -> Any:
        made = [some.T, chains.pieces(extent, some).T]
        return np.concatenate([*made, chains.cut(extent, some).ceil_sum(lanes)[None, :]] if lanes else made)

    kept, table = features(chains.steps(extent, depth, lanes)), features(every)
    assert all((kept <= column[:, None]).all(axis=0).any() for column in table.T)
    assert kept.shape[1] < table.shape[1] or extent * depth <= 5


@pytest.mark.parametrize(("extent", "depth"), [(9, 1), (9, 3), (7, 4), (11, 4), (300, 2)])
def test_pieces_are_counted_as_they_are_cut(extent: int, depth: int) -> None:
    """One by one, of few chains and of so many that pairs of steps stand in a table."""

    def cut(ranges: list[int], step: int) -> list[int]:
        return [min(step, size - at) for size in ranges for at in range(0, size, step)]

    some = chains.every(np.arange(1, extent + 1), depth)
    made = chains.pieces(extent, some)
    for k in range(0, len(some), max(1, len(some) // 400)):
        ranges = [extent]
        for step, number in zip(some[k], made[k], strict=True):
            ranges = cut(ranges, int(step))
            assert number == len(ranges), some[k]


def test_bounds_where_chains_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every order: relaxed chains are at or below the least of all chains, whatever the windows."""
    rng = random.Random("relaxed")
    for _ in range(tries(12, 300)):
        layer, on = drawn(rng), two(rng.randint(20, 60), rng.randint(10, 30), sliding=rng.random() < 0.7)
        picked = rng.sample([*orders(layer, on)], 3)
        exact = [_least(layer, on, order, relax=False) for order in picked]
        with monkeypatch.context() as small:
            small.setattr(chains, "SOME", rng.choice((1, 20)))
            for made in (chains.few, chains.relaxed):
                made.cache_clear()
            loose = [_least(layer, on, order, relax=True) for order in picked]
        for made in (chains.few, chains.relaxed):
            made.cache_clear()
        assert all(b is None or (a is not None and a <= b) for a, b in zip(loose, exact, strict=True))


def _least(layer: Layer, on: Machine, order: Any, *, relax: bool) -> int | None:
    from formulations.levels import axes

    axes._table.cache_clear()
    terms = Terms(layer, on, order, ("bytes@l2",), how="cells" if relax else "")
    return Searched(terms, "bytes@l2", {}).best(None, ENDLESS)[1]


@pytest.mark.parametrize("queues", ["one", "each"])
def test_no_nest_is_below_the_bounds_of_overlapping_time(queues: str) -> None:
    """The least of all orders, and `least`, are at or below the time of any nest; what is followed closes no bound."""
    rng = random.Random(f"busy {queues}")
    for _ in range(tries(1, 100)):
        layer = drawn(rng)
        memories = [
            {"name": name, "bytes": 10**9, "call_ticks": rng.randint(0, 9), "byte_ticks": rng.randint(0, 3),
             "buffers": rng.choice((1, 2))}
            for name in ("l2", "l1")
        ]  # fmt: skip
        compute = {"model": "array", "rows": 2, "cols": 2, "cycle_ticks": rng.randint(1, 9)}
        on = machine(
            *memories, queues=queues, sliding=rng.random() < 0.7, psum_bytes=rng.choice((1, 4)), compute=compute
        )
        part = LevelPart(layer, on)
        searches = [Searched(Terms(layer, on, order, ("time",)), "time", {}) for order in part.orders]
        bounds = [one.best(None, ENDLESS)[1] for one in searches]
        least = min(bound for bound in bounds if bound is not None)
        for one, bound in rng.sample([*zip(searches, bounds, strict=True)], 3):
            assert one.best(None, ENDLESS, lambda _: 10**9)[1] == bound
        for _ in range(60):
            assert price(layer, on, nested(rng, layer, ("l2", "l1"))).measures["time"] >= max(least, part.least("time"))


# ---- plans -----------------------------------------------------------------------------------------------------------

#: Peers' layers on 512 KiB and 64 KiB: bytes of DRAM, then of L2, as the best nests that a local search had found.
PEERS = {
    "a": (438_272, 438_272), "b": (513_024, 513_024), "c": (1_532_432, 2_385_072), "d": (6_459_392, 6_660_096),
    "e": (1_506_144, 1_506_144),
}  # fmt: skip


@pytest.mark.parametrize("name", ["a", "b", "e", pytest.param("c", marks=pytest.mark.slow),
                                  pytest.param("d", marks=pytest.mark.slow)])  # fmt: skip
def test_layers_that_peers_were_compared_on(name: str) -> None:
    """Proven at the figures of a search that knew no bound; AccelForge moves 2.6 times the bytes of L2 of layer c."""
    part = LevelPart(load_network("peer_layers").layer(name), load_machine("dram_l2_l1"))
    formulation = LevelsFormulation()
    formulation.ties = ()
    found = decide_part(formulation, part, ("bytes", "bytes@l2"), "search")
    assert found.status == "OPTIMAL"
    assert (found.values["bytes"], found.values["bytes@l2"]) == PEERS[name]


def test_engines_agree_and_one_level_is_tiling() -> None:
    """cp-sat finds what the search proves; with one memory on the chip no nest of problem tiling moves more."""
    rng = random.Random("engines")
    formulation = LevelsFormulation()
    formulation.ties = ()
    for _ in range(tries(4, 200)):
        layer = drawn(rng)
        room = rng.randint(12, 40)
        part = LevelPart(layer, two(room, rng.randint(8, room), sliding=True))
        values = [decide_part(formulation, part, ("bytes", "bytes@l2"), engine) for engine in ("search", "cp-sat")]
        assert values[0].status == values[1].status
        assert values[0].bounds == values[1].bounds
        level = decide_part(formulation, LevelPart(layer, machine({"name": "l1", "bytes": room}, sliding=True)),
                            ("bytes",), "search")  # fmt: skip
        one = Machine.model_validate({
            "name": "one", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
            "ocm_bytes": room, "sliding": True, "transfer": {"byte_ticks": 1},
        })  # fmt: skip
        plan = solve(layer, one, problem="tiling", objective="bytes")
        assert (plan.status == "INFEASIBLE") == (level.status == "INFEASIBLE")
        if plan.measures is not None:  # pieces of free sizes are in the space of tiling alone
            assert plan.measures["bytes"] <= level.values["bytes"]


def test_accumulators_and_memories_that_are_passed() -> None:
    """Sums in a memory of their own; W passes L2, where its 36 bytes leave room for the input.

    8 rows of 4 channels, 9 filters: IN 32, W 36, OUT 72 bytes. L2 has 40, L1 20, the accumulators 9. With W in L2 (36
    bytes) no row of IN fits beside it whole, so IN or W moves again; where W may pass, all of IN lies in L2.
    """
    layer = Layer.matmul("x", rows=8, inner=4, cols=9)
    memories = [
        {"name": "l2", "bytes": 40, "operands": ["IN", "W"]}, {"name": "l1", "bytes": 20, "operands": ["IN", "W"]},
        {"name": "acc", "bytes": 9, "operands": ["OUT"]},
    ]  # fmt: skip
    plans = []
    for passed in ([], ["W"]):
        on = machine(memories[0] | {"passed": passed}, *memories[1:])
        plan = solve(layer, on, objective="bytes,bytes@l2")
        assert plan.status == "OPTIMAL"
        assert check(plan).ok
        plans.append(plan)
    assert plans[0].measures["bytes"] >= plans[1].measures["bytes"] == 32 + 36 + 72
    stays = {(one.operand, one.memory) for one in plans[1].parts[0].figures.moved}
    assert ("OUT", "acc") in stays
    assert ("OUT", "l2") not in stays


def test_pins_and_conflicts() -> None:
    """All of W stays in L2; where it has no room there is no plan, and the pin is named."""
    layer = Layer.matmul("x", rows=8, inner=4, cols=9)
    plan = solve(layer, two(60, 12), objective="bytes@l2", pins=["resident=W@l2"])
    assert plan.status == "OPTIMAL"
    moved = {(one.operand, one.memory): one for one in plan.parts[0].figures.moved}
    assert moved["W", "l2"].tile_bytes == 36 == moved["W", "l2"].bytes
    none = solve(layer, two(30, 12), objective="bytes", pins=["resident=W@l2"])
    assert none.status == "INFEASIBLE"
    assert none.parts[0].conflicts == ("without pin resident=W@l2 there is a plan",)
    small = solve(layer, two(30, 2), objective="bytes")
    assert small.parts[0].conflicts == ("l1: the smallest tiles of IN, W, OUT take 3 bytes, it has 2",)
    with pytest.raises(InputError, match="expected resident=X@MEMORY"):
        LevelPart(layer, two(60, 12), parse_pins(["resident=W@l3"], FORMULATION.decisions))


@pytest.mark.parametrize(("memories", "said"), [
    ([{"name": "l1"}], "give its bytes"),
    ([{"name": "dram", "bytes": 9}], "a name of its own"),
    ([{"name": "l1", "bytes": 9, "operands": ["IN", "W"]}], "OUT lies in no memory"),
    ([{"name": "l1", "bytes": 9, "passed": ["W"]}], "cannot pass the last memory"),
    ([{"name": "l1", "bytes": 9, "buffers": 2}], "buffers 2 needs queues"),
    ([{"name": "l1", "bytes": 9, "reserved_bytes": 9}], "leaves nothing"),
])  # fmt: skip
def test_memories_that_make_no_sense(memories: list[dict[str, Any]], said: str) -> None:
    """One line that says which memory, and what would be accepted."""
    data = two(9, 9).model_dump(mode="json")
    data["levels"]["memories"] = [data["levels"]["memories"][0], *memories]
    with pytest.raises(InputError, match=said):
        validate(Machine, data, "machine")


@pytest.mark.parametrize(("text", "said"), [
    ("IN@l2 W@l2 OUT@l2 IN@l1 W@l1", "OUT must stay in l1"),
    ("IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l3", "W does not stay in l3"),
    ("IN@l1 W@l2 OUT@l2 IN@l2 OUT@l1 W@l1", "from far to near"),
    ("i1 IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l1", "loops over the kernel"),
    ("m0 IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l1", "step must be a positive integer, got 0"),
        ("q2 IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l1", "no dimension 'q'"),
        ("BIAS@l2 IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l1", "no operand 'BIAS'"),
        ("m9 IN@l2 W@l2 OUT@l2 IN@l1 OUT@l1 W@l1", "step 9 of m must be 1..2"),
])  # fmt: skip
def test_nests_that_are_none(text: str, said: str) -> None:
    """A schedule from a file is refused where it goes wrong."""
    layer = Layer.conv("x", channels=2, filters=2, size=(4, 4), kernel=(3, 3))
    with pytest.raises(InputError, match=said):
        price(layer, two(99, 99), nest(text))


def test_what_is_not_planned_is_refused() -> None:
    """Broadcast inputs, nominal tiles, and machines without levels."""
    gate = Layer(
        name="gate", kind="eltwise", g=4, m=1, n=1, r=6, c=5, h=6, l=5, inputs=2, weights="none", broadcast=("", "rc")
    )
    for layer, on, said in (
        (gate, two(99, 99), "broadcast"),
        (Layer.matmul("x", rows=1, inner=1, cols=1), load_machine("scratchpad_64k"), "needs section levels"),
        (Layer.matmul("x", rows=1, inner=1, cols=1), two(9, 9, compute={"model": "tile"}), "compute.model 'tile'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            LevelPart(layer, on)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Solve, show, check; a measure of a memory that the machine does not have."""
    plan = tmp_path / "plan.json"
    asked = ["solve", "lenet5", "-m", "dram_l2_l1", "--layer", "c3", "--objective", "bytes,bytes@l2", "-o", str(plan)]
    assert main(asked) == 0
    assert "OPTIMAL" in capsys.readouterr().out
    assert main(["show", str(plan), "--layer", "c3"]) == 0
    assert "IN in l2 from dram" in capsys.readouterr().out
    assert main(["check", str(plan)]) == 0
    data = json.loads(plan.read_text())
    data["parts"][0]["measures"]["bytes@l2"] -= 1
    plan.write_text(json.dumps(data))
    assert main(["check", str(plan)]) == 1
    capsys.readouterr()
    assert main(["solve", "lenet5", "-m", "dram_l2_l1", "--objective", "bytes@l3"]) == 2
    assert "bytes@l3" in capsys.readouterr().err
