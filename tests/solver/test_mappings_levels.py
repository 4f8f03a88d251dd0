"""Mappings on machines with memories in levels: of Timeloop, ZigZag, AccelForge and as text, counted by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from certile import check, price
from hwmodels.levels.price import price as closed_form
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.errors import InputError
from instances.foreign.foreign import read_workloads
from instances.foreign.products import Workload
from instances.foreign.yamlfile import parse_yaml
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.uses.mappings import accelforge, stays, timeloop, zigzag
from solver.uses.mappings.in_levels import read, written
from solver.uses.mappings.stays import nest_of, text_of


def on(*memories: dict[str, object], **fields: object) -> Machine:
    """One byte an element everywhere, unless stated; the memory off the chip first."""
    sizes = dict.fromkeys(("tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 1)
    said = {"name": "m", "problem": "levels", "compute": {"model": "none"}, **sizes, **fields}
    return Machine.model_validate({**said, "levels": {"memories": [{"name": "dram", "byte_ticks": 1}, *memories]}})


L2, L1 = {"name": "l2", "bytes": 8192}, {"name": "l1", "bytes": 1024}
TWO = on(L2, L1)
PASSED = on({**L2, "passed": ["W"]}, L1)
# sums lie in a memory of their own, and pass the other one on the chip
ACC = on({"name": "pad", "bytes": 4096, "operands": ["IN", "W"]}, {"name": "acc", "bytes": 1024, "operands": ["OUT"]})

# Z[64][64] += A[64][64] * B[64][64]: A is IN (rows r, n inside), B is W (n, m), Z is OUT; 4,096 elements each
PRODUCT = """
problem:
  shape:
    name: product
    dimensions: [M, N, K]
    data_spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read_write: True}
  instance: {M: 64, N: 64, K: 64}
"""
TIMELOOP = """
mapping:
  - {target: DRAM, type: temporal, factors: M=2 N=2 K=1, permutation: KNM}
  - {target: L2, type: temporal, factors: M=2 N=2 K=4, permutation: KNM}
  - {target: L1, type: temporal, factors: M=16 N=16 K=16, permutation: KNM}
"""
NEST = "r 32 m 32 | IN@l2 | W@l2 | OUT@l2 | r 16 m 16 n 16 | IN@l1 | W@l1 | OUT@l1"
# 3 taps over 16 positions, 2 channels, 4 filters: 18 rows of input, 1 column; |IN| 36, |W| 24, |OUT| 64
TAPS = Layer.conv("taps", channels=2, filters=4, size=(18, 1), kernel=(3, 1))


@pytest.fixture
def product(tmp_path: Path) -> Workload:
    (tmp_path / "product.yaml").write_text(PRODUCT)
    (found,), _ = read_workloads(tmp_path / "product.yaml")
    return found


def file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def moved(layer: Layer, machine: Machine, nest: LevelNest) -> dict[str, int]:
    """Bytes by operand and memory, as the closed form says; the referee walks the same."""
    cost, seen = closed_form(layer, machine, nest), walk(layer, machine, nest)
    assert not seen.faults
    assert {f"bytes@{name}": seen.bytes[name] for name in seen.bytes if f"bytes@{name}" in cost.measures} == {
        name: value for name, value in cost.measures.items() if "@" in name
    }
    return {f"{one.operand} {one.source} {one.memory}": one.bytes for one in cost.moved}


# ---- reading, counted by hand ----------------------------------------------------------------------------------------


def test_timeloop(product: Workload, tmp_path: Path) -> None:
    """Two blocks of 32 rows, in each two of 32 columns; in these 2 x 2 x 4 tiles of 16 x 16 x 16.

    DRAM to L2: A does not depend on N inside M: 4,096 once. B comes for each of 2 blocks of rows: 8,192.
    Z once: 4,096. L2 to L1: A for each of 2 x 2 blocks of columns: 16,384; B for each of 2 x 2 of rows: 16,384; the 4
    steps of K are innermost, so Z once: 4,096. In L2 lie 32*64 + 64*32 + 32*32 = 5,120, in L1 3 * 256 = 768.
    """
    (found,) = read(file(tmp_path, "a.yaml", TIMELOOP), [product], TWO)
    assert text_of(found.nest) == NEST
    assert moved(product.layer, TWO, found.nest) == {
        "IN dram l2": 4_096, "W dram l2": 8_192, "OUT dram l2": 4_096,
        "IN l2 l1": 16_384, "W l2 l1": 16_384, "OUT l2 l1": 4_096,
    }  # fmt: skip
    assert closed_form(product.layer, TWO, found.nest).occupancy_bytes == {"l2": 5_120, "l1": 768}
    assert "levels, outermost first: DRAM > L2 > L1" in found.notes


def test_timeloop_bypass(product: Workload, tmp_path: Path) -> None:
    """B passes L2: all it moves, 16,384 as above, comes from DRAM; with A 4,096 and Z 4,096 that is 24,576."""
    path = file(tmp_path, "a.yaml", TIMELOOP + "  - {target: L2, type: bypass, keep: [A, Z], bypass: [B]}\n")
    (found,) = read(path, [product], PASSED)
    counts = moved(product.layer, PASSED, found.nest)
    assert counts["W dram l1"] == 16_384
    assert sum(value for name, value in counts.items() if "dram" in name) == 24_576
    with pytest.raises(InputError, match="W must stay in l2: it may not pass that memory"):
        read(path, [product], TWO)


def test_timeloop_other_names_and_nearer_levels(product: Workload, tmp_path: Path) -> None:
    """Levels in their order; registers inside the last memory, and units side by side, are part of its tile.

    4 units of 4 rows: the tile in L1 is 16 rows, as in NEST; what registers run over was folded before too.
    """
    text = TIMELOOP.replace("L2", "Global").replace("L1", "Shared").replace("M=16 N=16", "M=4 N=16")
    text += "  - {target: Shared, type: spatial, factors: M=4}\n  - {target: Reg, type: temporal, factors: K=1}\n"
    (found,) = read(file(tmp_path, "a.yaml", text), [product], TWO)
    assert text_of(found.nest) == NEST
    assert "memories in their order: DRAM is dram, Global is l2, Shared is l1" in found.notes
    assert "folded into the tile: r 4 side by side" in found.notes
    assert "folded into the tile: Reg, nearer than l1" in found.notes


def test_timeloop_level_without_directive(product: Workload, tmp_path: Path) -> None:
    """L1 is not named: a tile of one element of each inside all loops, here M 32, N 32, K 64 of L2."""
    text = "mapping:\n  - {target: DRAM, type: temporal, factors: M=2 N=2, permutation: NM}\n"
    text += "  - {target: L2, type: temporal, factors: M=32 N=32 K=64, permutation: KNM}\n"
    (found,) = read(file(tmp_path, "a.yaml", text), [product], TWO)
    assert text_of(found.nest) == "r 32 m 32 | IN@l2 | W@l2 | OUT@l2 | r 1 m 1 n 1 | IN@l1 | W@l1 | OUT@l1"


def test_sums_in_a_memory_of_their_own(product: Workload, tmp_path: Path) -> None:
    """Tiles of 32 x 32 sums in acc, K in 4 steps of 16 around the pad: A 2 times, B 2 times, Z once: 20,480 bytes."""
    text = """mapping:
  - {target: dram, type: temporal, factors: M=2 N=2 K=4, permutation: KNM}
  - {target: pad, type: temporal, factors: M=32 N=32 K=16, permutation: KNM}
  - {target: pad, type: bypass, bypass: [Z]}
  - {target: acc, type: temporal, factors: M=1 N=1 K=1}
"""
    path = file(tmp_path, "a.yaml", text)
    with pytest.raises(InputError, match=r"acc keeps IN; acc of machine m may hold OUT: bypass the others"):
        read(path, [product], ACC)
    path = file(tmp_path, "a.yaml", text + "  - {target: acc, type: bypass, bypass: [A, B]}\n")
    (found,) = read(path, [product], ACC)  # acc is nearest: all loops are outside it
    assert text_of(found.nest) == "r 32 m 32 n 16 | IN@pad | W@pad | r 1 m 1 n 1 | OUT@acc"
    nest = nest_of("r 32 m 32 | OUT@acc | n 16 | IN@pad | W@pad", product.layer, ACC)
    assert moved(product.layer, ACC, nest) == {"OUT dram acc": 4_096, "IN dram pad": 8_192, "W dram pad": 8_192}
    # acc stands inside the pad, and OUT moves over n, which it does not depend on: the same moves
    again = back("timeloop", nest, product, ACC)
    assert text_of(again) == "r 32 m 32 n 16 | IN@pad | W@pad | OUT@acc"
    assert moved(product.layer, ACC, again) == moved(product.layer, ACC, nest)


FOUND = {
    "spatial_mapping": {},
    "temporal_mapping": {
        "I": [["(FY, 3)", "(OY, 4)", "(K, 2)"], ["(K, 2)"], ["(OY, 4)", "(C, 2)"]],
        "W": [["(FY, 3)", "(OY, 4)"], ["(K, 2)", "(K, 2)", "(OY, 4)"], ["(C, 2)"]],
        "O": [["(FY, 3)", "(OY, 4)"], ["(K, 2)", "(K, 2)"], ["(OY, 4)", "(C, 2)"]],
    },
}


def test_zigzag(tmp_path: Path) -> None:
    """Outermost first: C 2, OY 4, K 2, K 2, OY 4, FY 3; W stands in L2 outside OY, I and O inside; L1 differs as well.

    W: each of 2 channels once, 24 bytes; to L1 again for each of 4 strips of 4 rows: 96. I: strips of 6 rows, 4 * 6 for
    each of 2 channels: 48; to L1 the loops over K outside it come back twice: I stands inside the first of them, but OY
    is the last loop that it depends on: 48. O: 64, and read and written back for the second channel: 64 + 2 * 64 = 192;
    to L1 the same.
    """
    (found,) = read(file(tmp_path, "a.json", json.dumps(FOUND)), [Workload(TAPS)], TWO)
    assert text_of(found.nest) == "n 1 | W@l2 | r 4 | IN@l2 | OUT@l2 | m 2 | IN@l1 | m 1 | W@l1 | OUT@l1"
    assert moved(TAPS, TWO, found.nest) == {
        "W dram l2": 24, "IN dram l2": 48, "OUT dram l2": 192, "IN l2 l1": 48, "W l2 l1": 96, "OUT l2 l1": 192,
    }  # fmt: skip
    lists = FOUND["temporal_mapping"]
    fewer = {"temporal_mapping": {**lists, "W": [["(FY, 3)", "(OY, 4)", "(K, 2)", "(K, 2)", "(OY, 4)"], ["(C, 2)"]]}}
    path = file(tmp_path, "b.json", json.dumps(fewer))
    (passing,) = read(path, [Workload(TAPS)], PASSED)
    assert text_of(passing.nest) == "n 1 | W@l1 | r 4 | IN@l2 | OUT@l2 | m 2 | IN@l1 | m 1 | OUT@l1"
    assert "W passes l2 by" in passing.notes
    with pytest.raises(InputError, match=r"W has 2 lists of loops; machine m needs 3 \(dram, l2, l1\)"):
        read(path, [Workload(TAPS)], TWO)


NODES = """
mapping:
  nodes:
  - !Storage {tensors: [Inputs, Weights, Outputs], component: dram}
  - !Storage
    tensors: [Weights]
    component: l2
  - !Temporal {rank_variable: p, tile_shape: 5}
  - !Storage {tensors: [Inputs, Outputs], component: l2}
  - !Temporal {rank_variable: k, tile_shape: 2}
  - !Storage {tensors: [Inputs, Weights, Outputs], component: l1}
  - !Compute {einsum: taps, component: MAC}
"""


def test_accelforge(tmp_path: Path) -> None:
    """Rows in strips of 5, 5, 5, 1: windows of 7, 7, 7, 3 rows, 24 in all, of 2 channels.

    W once into L2, 24; to L1 for each of 4 strips: 96. IN 48, to L1 too: filters come inside the strips, and
    IN does not depend on them. OUT 64 everywhere. In L2: 24 + 2 * 7 + 4 * 5 = 58; in L1: 14 + 2 * 2 * 3 + 2 * 5 = 36.
    With `sliding` the 2 rows that strips share stay: 36 into L2. Into L1 as well: the strips are what it slides along.
    """
    path = file(tmp_path, "a.yaml", NODES)
    (found,) = read(path, [Workload(TAPS)], TWO)
    assert text_of(found.nest) == "W@l2 | r 5 | IN@l2 | OUT@l2 | m 2 | IN@l1 | W@l1 | OUT@l1"
    counts = {"W dram l2": 24, "IN dram l2": 48, "OUT dram l2": 64, "IN l2 l1": 48, "W l2 l1": 96, "OUT l2 l1": 64}
    assert moved(TAPS, TWO, found.nest) == counts
    assert closed_form(TAPS, TWO, found.nest).occupancy_bytes == {"l2": 58, "l1": 36}
    slides = TWO.model_copy(update={"sliding": True})
    assert moved(TAPS, slides, found.nest) == {**counts, "IN dram l2": 36, "IN l2 l1": 36}


# ---- writing ---------------------------------------------------------------------------------------------------------


def back(form: str, nest: LevelNest, one: Workload, machine: Machine) -> LevelNest:
    """Written in a form and read again."""
    layer = one.layer
    if form == "accelforge":
        text, _ = accelforge.write(nest, one, machine)
        return accelforge.read(parse_yaml(text, "written", accelforge.NODES), one, machine, "written")[0]
    if form == "timeloop":
        text = timeloop.write_levels(stays.to_levels(nest, layer, machine, "a Timeloop mapping"), one)
        return stays.from_levels(timeloop.levels_in(parse_yaml(text, "written"), one)[0], layer, machine, "written")[0]
    turns, outside = stays.turns_of(nest, layer, "a ZigZag mapping")
    loops, depths, _ = zigzag.loops_in(json.loads(zigzag.written(turns, outside, one)), one, 1, "written")
    return stays.from_lists(loops, depths, layer, machine, "written")[0]


def test_the_same_nest_comes_back(product: Workload) -> None:
    nest = nest_of(NEST, product.layer, TWO)
    assert nest_of(text_of(nest), product.layer, TWO) == nest
    for form in ("timeloop", "zigzag-json", "accelforge"):
        assert back(form, nest, product, TWO) == nest


def test_stays_move_over_loops_that_do_not_matter(product: Workload) -> None:
    """IN does not depend on m, W not on r: one place outside both is the same; a level of Timeloop has one."""
    nest = nest_of("IN@l2 | m 32 | W@l2 | OUT@l2 | r 16 | IN@l1 | OUT@l1 | n 16 | W@l1", product.layer, TWO)
    assert back("zigzag-json", nest, product, TWO) == back("accelforge", nest, product, TWO) == nest
    with pytest.raises(InputError) as caught:
        back("timeloop", nest, product, TWO)
    said = "a Timeloop mapping: IN@l1 stays outside n 16, W@l1 inside it: what a level keeps has one place"
    assert str(caught.value).startswith(said)
    nest = nest_of("IN@l2 | m 32 | W@l2 | OUT@l2 | n 16 | IN@l1 | r 16 | W@l1 | OUT@l1", product.layer, TWO)
    with pytest.raises(InputError, match="IN@l1 stays outside r 16, OUT@l1 inside it"):
        back("timeloop", nest, product, TWO)
    nest = nest_of("IN@l2 | m 32 | W@l2 | OUT@l2 | m 8 n 4 | IN@l1 | W@l1 | OUT@l1", product.layer, TWO)
    again = back("timeloop", nest, product, TWO)
    assert text_of(again) == "m 32 | IN@l2 | W@l2 | OUT@l2 | m 8 n 4 | IN@l1 | W@l1 | OUT@l1"
    assert moved(product.layer, TWO, again) == moved(product.layer, TWO, nest)


def test_random_nests_move_the_same_after_writing_and_reading() -> None:
    """All that a form can say comes back at the same price, whatever memories it passes."""
    rng, done = random.Random(5), dict.fromkeys(("timeloop", "zigzag-json", "accelforge"), 0)
    layer = Layer.conv("a", channels=4, filters=6, size=(9, 8), kernel=(2, 1))
    machine = on({**L2, "passed": ["IN", "W"]}, L1, psum_bytes=4)
    while min(done.values()) < 25:
        nest = _random_nest(rng, layer)
        try:
            nest.validate_for(layer, stays.memories_of(machine))
        except InputError:
            continue
        for form in done:
            try:
                again = back(form, nest, Workload(layer), machine)
            except InputError:
                continue
            before, after = (closed_form(layer, machine, one) for one in (nest, again))
            assert all(after.measures[name] == value for name, value in before.measures.items() if "@" in name)
            assert all(after.occupancy_bytes[name] <= taken for name, taken in before.occupancy_bytes.items())
            done[form] += 1


def _random_nest(rng: random.Random, layer: Layer) -> LevelNest:
    known = [Stay(x, name) for name in ("l2", "l1") for x in ("IN", "W", "OUT")]
    must = (Stay("OUT", "l2"), *known[3:])
    items: list[Cut | Stay] = [one for one in known if one in must or rng.random() < 0.6]
    if rng.random() < 0.6:  # else evenly: all tiles of a memory at one place
        rng.shuffle(items)
    size = {d: layer.extent(d) for d in "mnrc"}
    for d in (*rng.sample("mnrc", 3), rng.choice("mr")):
        size[d] = rng.randint(1, size[d])
        items.insert(rng.choice((0, 3, len(items) - 3)), Cut(d, size[d]))
    return LevelNest(tuple(items))


# ---- prices, and what commands say -----------------------------------------------------------------------------------


def test_beside_the_optimum(product: Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """16,384 bytes of DRAM against 12,288: each operand once, which is least."""
    network, mapping = str(tmp_path / "product.yaml"), file(tmp_path, "a.yaml", TIMELOOP)
    found = price(network, TWO, mapping)
    (layer,) = found.layers
    assert (found.status, found.plan.engine, found.plan.objectives) == ("FEASIBLE", "given", ("bytes", "bytes@l2"))
    assert layer.row.measures == {**layer.row.measures, "bytes": 16_384, "bytes@dram": 16_384, "bytes@l2": 36_864}
    assert (layer.best.measures["bytes@dram"], layer.proven, layer.times) == (12_288, True, 16_384 / 12_288)
    assert layer.best.measures["bytes@l2"] < 36_864
    said = " ".join(str(found).split())
    assert "bytes@dram 16,384 12,288 1.333" in said
    assert "Your mapping has 1.33 times the bytes of the optimum, proven: 16,384 bytes against 12,288." in said
    found.plan.save(tmp_path / "mine.json")
    assert check(tmp_path / "mine.json").ok
    assert price(network, TWO, str(tmp_path / "mine.json"), compare=False).plan.measures == found.plan.measures
    machine = file(tmp_path, "m.json", TWO.model_dump_json(exclude_defaults=True))
    assert main(["price", network, "-m", machine, "--mapping", mapping, "--json", "--alone"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"][0]["measures"]["bytes@l2"] == 36_864
    assert main(["import-mapping", network, "-m", machine, "--mapping", mapping]) == 0
    assert capsys.readouterr().out == f"{NEST}\n"
    for form in ("text", "timeloop", "zigzag-json", "accelforge"):
        out = str(tmp_path / {"text": "b.txt", "zigzag-json": "b.json"}.get(form, "b.yaml"))
        asked = ["export-mapping", str(tmp_path / "mine.json"), "-f", form, "--names-of", network, "-o", out]
        assert main(asked) == 0
        assert price(network, TWO, out, compare=False).plan.measures == found.plan.measures


def test_what_does_not_fit(product: Workload, tmp_path: Path) -> None:
    """Tiles of 5,120 bytes in 4,000: 1,120 too many; there is a plan in less."""
    small = on({**L2, "bytes": 4_000}, L1)
    found = price(str(tmp_path / "product.yaml"), small, nest_of(NEST, product.layer, small), compare=False)
    assert (found.status, found.plan) == ("INFEASIBLE", None)
    assert "memory l2: 5,120 bytes are taken, there are 4,000: 1,120 too many" in str(found)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", TIMELOOP.replace("M=2 N=2 K=4", "M=2 N=2 K=2"), "make 32, layer product has 64"),
        ("a.yaml", TIMELOOP.replace("L2", "GLB"), "memories DRAM, GLB, L1; machine m has dram, l2, l1: GLB is none"),
        ("a.yaml", TIMELOOP.replace("L2", "x").replace("L1", "l2"), "x is none of them, and others are"),
        ("a.yaml", TIMELOOP.replace("L2", "x").replace("L1", "L2").replace("x,", "L1,"), "they stand in another order"),
        ("a.yaml", NODES.replace("p,", "z,"), "node 3 (Temporal): unknown rank variable 'z', expected one of"),
        ("a.yaml", NODES.replace("shape: 5", "shape: x"), "node 3 (Temporal): tile_shape 'x' is no positive integer"),
        ("a.yaml", NODES.replace("!Temporal", "!Spatial"), "node 3 (Spatial): expected Storage, Temporal, Compute"),
        ("a.yaml", NODES.replace("!Temporal", "!Tempral"), "line 8: not plain YAML"),
        ("a.yaml", NODES.replace("[Inputs, Outputs]", "[Input]"), "unknown tensor 'Input', expected one of"),
        ("a.json", json.dumps({"temporal_mapping": {"I": []}}), "temporal_mapping.I has no 2 levels"),
        ("a.yaml", "- {name: default, temporal_ordering: [[K, 4]]}", "an order of loops names no memories"),
        ("a.yaml", "a: 1", "machine m has levels: expected a mapping of Timeloop"),
        ("a.txt", "IN@l2 | q 4", "'q': expected a loop (m 24) or where an operand stays (IN@MEMORY)"),
        ("a.txt", "IN@l3 | W@l2", "IN does not stay in l3; it may in l2, l1 (machine m)"),
        ("a.txt", "IN@l2 W@l2 OUT@l2 W@l1 OUT@l1 n 1 IN@l1 m 99", "step 99 of m must be 1..4"),
        ("a.txt", "IN@l2 | W@l2 | OUT@l2 | i 1 | IN@l1 | W@l1 | OUT@l1", "loops over the kernel (i) stand inside"),
    ],
)  # fmt: skip
def test_bad_files(name: str, text: str, said: str, product: Workload, tmp_path: Path) -> None:
    one = product if "DRAM" in text else Workload(TAPS)
    with pytest.raises(InputError) as caught:
        read(file(tmp_path, name, text), [one], TWO)
    assert said in str(caught.value)
    assert str(caught.value).startswith("mapping")
    assert "\n" not in str(caught.value)


def test_what_is_not_written(tmp_path: Path, product: Workload) -> None:
    network = str(tmp_path / "product.yaml")

    def plan(line: str, machine: Machine = TWO) -> Plan:
        return price(network, machine, line, compare=False).plan

    tail = "| IN@l1 | W@l1 | OUT@l1"
    rest = plan(f"IN@l2 | m 24 | W@l2 | r 24 | OUT@l2 | m 7 r 8 n 8 {tail}")
    three = on({**L2, "passed": ["W"]}, {"name": "l1b", "bytes": 2048, "passed": ["W"]}, L1)
    one_of_two = plan("n 16 r 16 m 16 | IN@l2 | W@l2 | OUT@l2 | IN@l1b | OUT@l1b | IN@l1 | W@l1 | OUT@l1", three)
    for mine, form, said in (
        (
            rest,
            "zigzag-json",
            "m in pieces of 24, cut again in pieces of 7: a ZigZag mapping has counts, and 7 does not",
        ),
        (rest, "accelforge", "m 7 leaves a rest of 24: only the outermost loop over a rank variable has one"),
        (
            plan(f"r 24 n 32 m 32 | IN@l2 W@l2 OUT@l2 | r 8 n 8 m 8 {tail}"),
            "zigzag-json",
            "r of 64 is cut in pieces that do",
        ),
        (one_of_two, "zigzag-json", "W passes l1b of l2, l1b: lists of loops do not say which"),
        (rest, "zigzag", "format zigzag: it has no word for what stays in which memory"),
        (rest, "dory", "format dory: it has no word"),
        (rest, "gamma", "unknown format"),
    ):
        with pytest.raises(InputError) as caught:
            written(mine, form, None, [product])
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_other_machines_and_options(tmp_path: Path) -> None:
    network, path = file(tmp_path, "product.yaml", PRODUCT), file(tmp_path, "a.yaml", NODES)
    with pytest.raises(InputError, match="mappings of AccelForge are read for machines with section levels"):
        price(network, "scratchpad_64k", path)
    for options, said in (({"level": "L2"}, "--level L2: not on machine m"), ({"improve": True}, "--improve: not on")):
        with pytest.raises(InputError, match=said):
            price(network, TWO, path, **options)
    with pytest.raises(InputError, match="problem levels plans layers of networks"):
        price(TAPS, TWO, path)
