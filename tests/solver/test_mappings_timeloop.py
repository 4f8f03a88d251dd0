"""Mappings and problems that Timeloop ships: read, priced as Timeloop counts them, written and read again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Loop, Nest
from instances.errors import InputError
from instances.foreign.foreign import read_workloads
from instances.foreign.products import Workload
from instances.foreign.yamlfile import parse_yaml, read_yaml
from instances.load import load_network
from instances.network.workload import Layer
from solver.uses.mappings import timeloop
from solver.uses.mappings.text import nest_of, text_of
from tests.emitted import random_case
from tests.small import machine

FILES = Path(__file__).parents[1] / "data" / "mappings" / "timeloop"
#: Elements as Timeloop counts them: a byte each, partial sums too; memory without end.
WORDS = machine(psum_bytes=1, ocm_bytes=1 << 40)


def workload(name: str) -> Workload:
    (found,), _ = read_workloads(FILES / name)
    return found


# What Timeloop itself counts off the chip (Scalar reads of Weights and Inputs, updates of Outputs of the outermost
# level in its stats.txt). Where the innermost loop of that level slides the window Timeloop moves only what is new, as
# machines do that slide; where a loop inside it comes back to the window (M in the first and fourth) it moves all.
#   eyeriss_like: P 8, Q 2, M 4 outside the buffer; its tile has 14 rows and 56 columns of stride 2 and 3 taps:
#   (13*2+3) * (55*2+3) * 3 = 29*113*3 = 9,831 inputs, 8*2 times 157,296. Weights pass the buffer by: a tile of
#   3*3*3*8 = 216 (C, S side by side, R 3, M 8), once for each of 8*2*4 iterations: 13,824. Results once: 112*112*32.
SHIPPED = [
    ("eyeriss_like", "default_problem", False, "r 14 c 56 m 8 | IN | OUT | r 1 c 14 | W", (157_296, 13_824, 401_408)),
    ("simple_weight_stationary", "default_problem", True, "c 8 | IN | W | OUT", (151_875, 864, 401_408)),
    ("simba_like", "default_problem", True, "c 4 | IN | OUT | r 28 c 1 | W", (151_875, 864, 401_408)),
    (
        "simple_output_stationary", "default_problem", False, "r 56 c 14 m 16 | IN | W | c 1 i 1 | OUT",
        (157_296, 13_824, 401_408),
    ),
    ("conv1d_oc", "conv1d_oc.problem", True, "m 1 r 1 | IN | W | OUT", (576, 96, 512)),
    ("conv1d_oc_tiled", "conv1d_oc.problem", True, "m 2 r 1 | IN | W | OUT", (288, 96, 512)),
    ("conv1d_oc_bypass", "conv1d_oc.problem", True, "IN | W | m 2 r 1 | OUT", (18, 96, 512)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "problem", "sliding", "text", "counts"), SHIPPED, ids=[row[0] for row in SHIPPED])
def test_shipped_mappings_move_what_timeloop_counts(
    name: str, problem: str, sliding: bool, text: str, counts: tuple[int, ...]
) -> None:
    found = workload(f"{problem}.yaml")
    nest, notes = timeloop.read(read_yaml(FILES / f"{name}.map.yaml"), found)
    assert text_of(nest) == text
    walked = replay(found.layer, WORDS.model_copy(update={"sliding": sliding}), nest)
    assert walked.ok
    rows = walked.outcome.by_operand
    assert tuple(rows[row].bytes for row in ("IN", "W", "OUT")) == counts
    assert rows["PSUM"].bytes == 0
    assert notes[0].startswith("levels, outermost first: ")


@pytest.mark.parametrize("name", [row[0] for row in SHIPPED])
def test_shipped_mappings_come_back(name: str) -> None:
    found = workload(f"{next(row[1] for row in SHIPPED if row[0] == name)}.yaml")
    nest, _ = timeloop.read(read_yaml(FILES / f"{name}.map.yaml"), found)
    text, _ = timeloop.write(nest, found)
    again, _ = timeloop.read(parse_yaml(text, "written"), found)
    assert again == nest


def test_bypass_and_units_side_by_side() -> None:
    """04.2.1: Q=0 is all of Q, 13; weights pass the shared buffer by."""
    found = workload("eyeriss_gating.problem.yaml")
    nest, notes = timeloop.read(read_yaml(FILES / "eyeriss_gating.map.yaml"), found)
    assert text_of(nest) == "m 64 n 4 | IN | OUT | b 1 r 1 | W"
    assert "W passes shared_glb by and lies in weights_spad: counted in the same memory" in notes
    assert "folded into the tile: c 13 m 4 j 3 side by side" in notes


def test_what_a_permutation_lacks_stands_outside() -> None:
    """Two blocks of filters are not named: outside the rows, of which there are 2, then 1 in the last pass."""
    layer = Layer.conv("a", channels=2, filters=4, size=(5, 1))
    rows = [{"target": "DRAM", "type": "temporal", "factors": "K=2 P=3", "permutation": "P"},
            {"target": "Buffer", "type": "temporal", "factors": "C=2 K=2 P=2,1", "permutation": "CKP"}]  # fmt: skip
    nest, notes = timeloop.read({"mapping": rows}, Workload(layer))
    assert text_of(nest) == "m 2 r 2 | IN | W | OUT"
    assert any("does not name K: taken as outermost" in note for note in notes)


def test_another_level() -> None:
    """What moves into the buffers of the PEs: all loops outside them count, N 3 and K 4 x 4 stay side by side."""
    found = workload("default_problem.yaml")
    data = read_yaml(FILES / "simba_like.map.yaml")
    nest, notes = timeloop.read(data, found, "PEInputBuffer")
    assert text_of(nest) == "c 4 r 28 | IN | c 1 | W | i 1 r 7 j 1 | OUT"
    assert "priced: what moves between DRAM > GlobalBuffer > inter_PE_spatial and PEInputBuffer" in notes
    with pytest.raises(
        InputError, match="no level from PEWeightBuffer inwards keeps IN; from PEInputBuffer all are kept"
    ):
        timeloop.read(data, found, "PEWeightBuffer")
    with pytest.raises(InputError, match="no level L9; it has"):
        timeloop.read(data, found, "L9")
    with pytest.raises(InputError, match="level DRAM is the outermost, off the chip"):
        timeloop.read(data, found, "DRAM")


def test_problems() -> None:
    layer = workload("default_problem.yaml").layer
    assert (layer.m, layer.n, layer.r, layer.c, layer.kh, layer.stride_h, layer.h) == (32, 3, 112, 112, 3, 2, 225)
    # AlexNet's second layer by its front end's include and merge: 64 channels, 192 filters of 5x5, 27x27
    alexnet = workload("alexnet_1.yaml").layer
    assert (alexnet.n, alexnet.m, alexnet.r, alexnet.c, alexnet.kh, alexnet.g) == (64, 192, 27, 27, 5, 1)
    network = load_network(FILES / "default_problem.yaml")
    assert network.conv_layers[0].signature() == layer.signature()


# 10 rows in 3 iterations of at most 4, the last of 2: P=3 of the outer level, P=4,2 of the inner one.
TWO = Workload(Layer.conv("two", channels=4, filters=8, size=(10, 6)))


def test_remainders() -> None:
    nest = nest_of("r 4 | IN | m 3 | W | OUT", TWO.layer)
    text, lost = timeloop.write(nest, TWO)
    assert "P=3" in text
    assert "P=4,2" in text
    assert "K=3 " in text
    assert "K=3,2" in text
    assert lost == ("OCM_1, OCM_2 are parts of one memory: the architecture needs a level for each",)
    assert timeloop.read(parse_yaml(text, "written"), TWO)[0] == nest


def test_remainders_of_three_levels() -> None:
    """10 rows in pieces of 6, in pieces of 2: 2 x 3 x 2, the last pass 2 of 3: ((2-1)*3 + 2-1)*2 + 2 = 10."""
    nest = nest_of("r 6 | IN | r 2 | W | OUT", TWO.layer)
    text, _ = timeloop.write(nest, TWO)
    assert [part for part in text.split() if part.startswith("P=")] == ["P=2", "P=3,2", "P=2"]
    assert timeloop.read(parse_yaml(text, "written"), TWO)[0] == nest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r 6 | IN | r 4", "r in pieces of 6, cut again in pieces of 4: a Timeloop mapping has counts, and 4 does not"),
        ("r@3,4 | IN", "r is cut at free places (3, 4): only pieces of equal size have a count"),
        ("r 2/tle | IN", "r 2/tle: cores side by side are not written"),
        ("r 1 c 1 | IN:lines", "IN is held in lines, which it has no word for"),
        ("r 4 r 2 | IN", "r is cut 2 times in level DRAM, with nothing held between"),
    ],
)
def test_what_it_cannot_say(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        timeloop.write(nest_of(text, TWO.layer), TWO)
    assert said in str(caught.value)


def _bad(**changes: str) -> str:
    rows = {"dram": "factors: C=1 K=2 P=10, permutation: KPC", "buffer": "factors: C=4 K=4 Q=6"} | changes
    return (
        f"mapping:\n  - {{target: DRAM, type: temporal, {rows['dram']}}}\n"
        f"  - {{target: Buffer, type: temporal, {rows['buffer']}}}\n"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dram": "factors: C=1 K=2 P=5, permutation: KPC"}, "P (r of certile): DRAM 5 make 5, layer two has 10"),
        ({"dram": "factors: C=1 K=3 P=10, permutation: KPC"}, "DRAM 3 x Buffer 4 make 12, layer two has 8"),
        ({"dram": "factors: Z=1 K=2, permutation: KPC"}, "directive 1 (DRAM, temporal): unknown dimension 'Z'"),
        ({"dram": "factors: K=2 P=10, permutation: KPY"}, "unknown dimension 'Y' in permutation"),
        ({"dram": "factors: K=2 P=10, permutation: KPK"}, "names a dimension twice"),
        ({"dram": "factors: K<=2 P=10"}, "'K<=2' is not P=4 or P=4,2"),
        ({"dram": "factors: 'K=2,3 P=10'"}, "the last pass has more iterations"),
    ],
)
def test_bad_mappings(changes: dict[str, str], said: str) -> None:
    data = parse_yaml(_bad(**changes), "bad")
    with pytest.raises(InputError) as caught:
        timeloop.read(data, TWO)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_data_spaces_and_types() -> None:
    good = _bad()
    timeloop.read(parse_yaml(good, "good"), TWO)
    for line, said in (
        ("  - {target: Buffer, type: dataspace, bypass: [Wights]}", "unknown data space 'Wights'"),
        ("  - {target: Buffer, type: temparal}", "unknown type, expected temporal, spatial or dataspace"),
        ("  - {target: Buffer, type: bypass, bypass: [Weights]}", "no level from Buffer inwards keeps W"),
    ):
        with pytest.raises(InputError, match=said):
            timeloop.read(parse_yaml(good + line + "\n", "bad"), TWO)


@pytest.mark.slow(4)
def test_random_nests_move_the_same_after_export_and_import() -> None:
    """All that counts can say comes back: the same bytes, and the same time where no loop is inside all holds."""
    rng, written, timed = random.Random(7), 0, 0
    while written < 150:
        case = random_case(rng, "random")
        if case.layer.kind not in ("conv", "matmul"):
            continue
        one = Workload(case.layer)
        try:
            text, lost = timeloop.write(case.nest, one)
        except InputError:
            continue
        nest, _ = timeloop.read(parse_yaml(text, "written"), one)
        on = case.machine.model_copy(update={"buffering": "single", "snake": False, "line": False})
        plain = Nest(tuple(_plain(case.nest)))
        before, after = (replay(case.layer, on, each, execute=False).outcome for each in (plain, nest))
        assert {k: v.bytes for k, v in before.by_operand.items()} == {k: v.bytes for k, v in after.by_operand.items()}
        if not any("inside all holds" in line for line in lost):
            assert before.measures == after.measures
            timed += 1
        written += 1
    assert timed > 30


def _plain(nest: Nest) -> list[object]:
    """The items with the buffers left to the machine."""
    return [item if isinstance(item, Loop) else type(item)(item.operand) for item in nest.items]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("problem: {shape: {dimensions: [P], data_spaces: []}, instance: {P: 4}}", "0 data spaces are read_write"),
        ("problem: {shape: conv, instance: {P: 4}}", "shape 'conv' is a name, only CNN-Layer is known"),
        ("problem: {shape: cnn-layer, instance: {P: 4}}", "instance.R: None is no size"),
        ("problem: [", "line 1: not plain YAML"),
        ("layers: 3", "neither a problem of Timeloop"),
        ("problem: !!python/object:os.system {}", "not plain YAML"),
    ],
)
def test_bad_problems(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shape_that_timeloop_has_built_in(tmp_path: Path) -> None:
    """R=S=3, P=Q=8 with strides 2: 17 rows and columns of input."""
    sizes = "{R: 3, S: 3, P: 8, Q: 8, C: 4, K: 6, N: 1, Wstride: 2, Hstride: 2}"
    (tmp_path / "old.yaml").write_text(f"problem: {{shape: cnn-layer, instance: {sizes}}}")
    layer = load_network(tmp_path / "old.yaml").conv_layers[0]
    assert (layer.m, layer.n, layer.r, layer.h, layer.stride_h) == (6, 4, 8, 17, 2)
