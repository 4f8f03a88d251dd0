"""Mappings and workloads that ZigZag ships, tiles of DORY: read, written, and read again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.foreign.foreign import read_workloads
from instances.foreign.products import Workload
from instances.foreign.yamlfile import parse_yaml, read_yaml
from instances.load import load_machine, load_network
from instances.network.workload import Layer
from solver.uses.mappings import dory, zigzag
from solver.uses.mappings.text import nest_of, text_of
from solver.uses.mappings.zigzag import at, held
from tests.emitted import random_case
from tests.small import machine

FILES = Path(__file__).parents[1] / "data" / "mappings"
PAD = load_machine("scratchpad_64k")


def workloads(name: str) -> dict[str, Workload]:
    found, _ = read_workloads(FILES / name)
    return {one.layer.name: one for one in found}


def loops(text: str, layer: Layer) -> list[Loop]:
    return [item for item in nest_of(text, layer).items if isinstance(item, Loop)]


# ---- ZigZag ----------------------------------------------------------------------------------------------------------


def test_workloads() -> None:
    found, left = read_workloads(FILES / "zigzag" / "resnet18.yaml")
    assert len(found) == 21
    assert "layer1 (Pooling): only products of two operands are read" in left
    first = found[0].layer
    assert (first.m, first.n, first.r, first.c, first.kh, first.stride_h, first.h) == (64, 3, 112, 112, 7, 2, 229)
    (gemm,) = workloads("zigzag/gemm_layer.yaml").values()
    assert (gemm.layer.kind, gemm.layer.r, gemm.layer.m, gemm.layer.n) == ("matmul", 128, 128, 128)
    assert len(load_network(FILES / "zigzag" / "resnet18.yaml").conv_layers) == 21


def test_shipped_mapping_of_a_layer() -> None:
    """K 2 x 32 side by side is 64; C 32 side by side holds all 3; kernel rows and columns outside, one by one."""
    one = workloads("zigzag/resnet18.yaml")["example_name_of_layer0"]
    nest, notes = zigzag.read(read_yaml(FILES / "zigzag" / "tpu_like.yaml"), one, PAD)
    order = [item.dim for item in nest.items if isinstance(item, Loop)]
    assert order == ["m", "i", "j", "r", "c"]
    assert nest.tile(one.layer) == {"b": 1, "g": 1, "m": 32, "n": 3, "r": 1, "c": 1, "i": 1, "j": 1}
    assert "folded into the tile: m 32 n 32 side by side" in notes


def test_shipped_mapping_with_stars() -> None:
    """D0 = r, D1 = m, D2 = n, 8 side by side each; stars: 16 times each, r outermost (innermost first)."""
    (one,) = workloads("zigzag/gemm_layer.yaml").values()
    nest, _ = zigzag.read(read_yaml(FILES / "zigzag" / "gemm_l1.yaml"), one, PAD)
    assert text_of(nest) == "W | r 8 | OUT | n 8 | IN"


@pytest.mark.parametrize(
    ("workload", "mapping"), [("resnet18", "tpu_like"), ("gemm_layer", "gemm_l1")], ids=["tpu_like", "gemm_l1"]
)
def test_shipped_mappings_come_back(workload: str, mapping: str) -> None:
    one = next(iter(workloads(f"zigzag/{workload}.yaml").values()))
    nest, _ = zigzag.read(read_yaml(FILES / "zigzag" / f"{mapping}.yaml"), one, PAD)
    found, lost = zigzag.write(nest, one, as_json=True)
    assert lost == ()
    assert zigzag.read(json.loads(found), one, PAD)[0] == nest
    ordering, lost = zigzag.write(nest, one, as_json=False)
    assert lost[-1].startswith("not said: what the memory holds")
    again, _ = zigzag.read(parse_yaml(ordering, "written"), one, PAD)
    # what runs side by side is written as loops too, so more depths are open to the holds
    assert price(one.layer, PAD, again).bytes <= price(one.layer, PAD, nest).bytes


def test_layers_without_an_order() -> None:
    one = workloads("zigzag/resnet18.yaml")["layer2"]
    with pytest.raises(InputError, match="default: no temporal_ordering: ZigZag searches for one"):
        zigzag.read(read_yaml(FILES / "zigzag" / "tpu_like.yaml"), one, PAD)


LAYER = Layer.conv("conv", channels=4, filters=8, size=(8, 6))
ONE = Workload(LAYER)


def entry(ordering: object, spatial: object = None) -> Any:
    return [{"name": "default", "spatial_mapping": spatial, "temporal_ordering": ordering}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (entry([["K", 8], ["OY", 8], ["OX", 6], ["C", 2]]), "C runs 2 times, layer conv needs 4: 4 in all"),
        (entry([["K", 3], ["OY", 8], ["OX", 6], ["C", 4]], {"D1": ["K, 4"]}),
         "K runs 3 times beside 4 side by side, layer conv needs 2"),
        (entry([["Z", 8]]), "unknown dimension 'Z', layer conv has B, C, FX, FY, G, K, OX or OY"),
        (entry([["K"]]), "is not [OX, 4]"),
        (entry([["K", -1]]), "the size is a positive integer"),
        (entry([["K", True]]), "the size is a positive integer"),
        ([{"name": "other", "temporal_ordering": [["K", 8]]}], "no entry for layer conv and no default; it has other"),
        ({"temporal_mapping": {"O": [["(K, 8)"]], "I": [[]], "W": [[]]}}, "has no 2 levels"),
    ],
)  # fmt: skip
def test_bad_mappings(data: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        zigzag.read(data, ONE, PAD)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_found_mapping() -> None:
    """Innermost first: the last list is off the chip. Levels of I: 3, so the second one can be asked for."""
    order = ["(C, 4)", "(OX, 6)", "(OY, 2)", "(K, 8)", "(OY, 4)"]
    data: Any = {"inputs": {"temporal_mapping": {
        "O": [order[:4], order[4:]], "W": [order[:3], order[3:]], "I": [order[:1], order[1:4], order[4:]],
    }}}  # fmt: skip
    assert text_of(zigzag.read(data, ONE, PAD)[0]) == "r 2 | IN | OUT | m 1 | W"
    with pytest.raises(InputError, match=r"temporal_mapping.W has no 3 levels"):
        zigzag.read(data, ONE, PAD, "2")
    data["inputs"]["temporal_mapping"]["O"] = [order[1::-1] + order[2:4], order[4:]]
    with pytest.raises(InputError, match="loops of O are in another order"):
        zigzag.read(data, ONE, PAD)


def test_what_it_cannot_say() -> None:
    with pytest.raises(InputError, match="r of 8 is cut in pieces that do not divide it; solve with --pin sizes=divis"):
        zigzag.write(nest_of("r 3 | IN", LAYER), ONE, as_json=True)


def test_sums_are_held_outside_what_they_add_up() -> None:
    """Two halves of the channels outside, rows inside: held inside them, 8 results would go out and in as sums."""
    layer = Layer.matmul("a", rows=4, inner=4, cols=2)
    nest = held([Loop("n", 2), Loop("r", 1)], layer, machine())
    assert {row: counts.bytes for row, counts in price(layer, machine(), nest).by_operand.items()} == {
        "IN": 16, "W": 8, "OUT": 8, "PSUM": 0,
    }  # fmt: skip


@pytest.mark.slow(5)
def test_the_holds_that_move_least() -> None:
    """Brute force over all depths: what is taken moves as little as the best that fits."""
    rng, looked = random.Random(3), 0
    while looked < 25:
        case = random_case(rng, "random")
        own = [item for item in case.nest.items if isinstance(item, Loop)]
        if case.nest.line or not 1 <= len(own) <= 4 or case.machine.tles > 1:
            continue
        on = case.machine.model_copy(update={"line": False})
        best = None
        options = [
            at(own, dict(zip(case.layer.operands, depths, strict=True)), case.layer)
            for depths in _depths(len(own), len(case.layer.operands))
        ]
        for nest in options:
            found = price(case.layer, on, nest)
            if all(found.occupancy_bytes.get(name, 0) <= size for name, size in on.memories.items()):
                best = found.bytes if best is None else min(best, found.bytes)
        if best is None:
            continue
        assert price(case.layer, on, held(own, case.layer, on)).bytes == best
        looked += 1


def _depths(number: int, operands: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for _ in range(operands):
        found = [(*one, depth) for one in found for depth in range(number + 1)]
    return found


@pytest.mark.slow(2)
def test_random_nests_move_the_same_after_export_and_import() -> None:
    rng, written = random.Random(9), 0
    while written < 60:
        case = random_case(rng, "random")
        if case.layer.kind not in ("conv", "matmul"):
            continue
        one = Workload(case.layer)
        try:
            text, _ = zigzag.write(case.nest, one, as_json=True)
        except InputError:
            continue
        nest, _ = zigzag.read(json.loads(text), one, case.machine)
        on = case.machine.model_copy(update={"buffering": "single", "snake": False, "line": False})
        plain = Nest(tuple(Hold(i.operand) if isinstance(i, Hold) else i for i in case.nest.items))
        before, after = (price(case.layer, on, each).by_operand for each in (plain, nest))
        assert {k: v.bytes for k, v in before.items()} == {k: v.bytes for k, v in after.items()}
        written += 1


# ---- DORY ------------------------------------------------------------------------------------------------------------
NODES = FILES / "dory" / "mobilenet.json"


@pytest.mark.parametrize(
    ("name", "level", "text"),
    [
        # 32x56x6 of 32x64x64 results; weights whole
        ("conv0", None, "r 56 c 6 | IN | W | OUT"),
        # 8 of 32 channels, 15 rows: depthwise channels are groups
        ("dw1", None, "g 8 r 15 | IN | W | OUT"),
        # 88 of 256 filters, 8x2 of 16x16
        ("pw8", None, "m 88 r 8 c 2 | IN | W | OUT"),
        # L3 to L2: 128 of 512 filters; L2 to L1 inside it: 8, and two columns
        ("pw14", None, "m 128 | IN | W | OUT"),
        ("pw14", "L1", "m 128 m 8 c 2 | IN | W | OUT"),
    ],
)
def test_dory_tiles(name: str, level: str | None, text: str) -> None:
    layer = workloads("dory/mobilenet.json")[name].layer
    nest, _ = dory.read(json.loads(NODES.read_text()), layer, level)
    assert text_of(nest) == text


def test_dory_counts() -> None:
    """pw8 by hand: 3 blocks of filters x 2 x 8 tiles. Inputs 3 times (weights do not slide), weights and results once.

    Loops m r c: IN depends on r and c, so each of the 3 blocks of filters reads all 128*16*16 inputs: 98,304 bytes.
    """
    layer = workloads("dory/mobilenet.json")["pw8"].layer
    nest, _ = dory.read(json.loads(NODES.read_text()), layer)
    rows = price(layer, machine(), nest).by_operand
    assert {k: v.bytes for k, v in rows.items()} == {"IN": 3 * 32_768, "W": 32_768, "OUT": 65_536, "PSUM": 0}


@pytest.mark.parametrize("name", ["conv0", "dw1", "pw8"])
def test_dory_comes_back(name: str) -> None:
    layer = workloads("dory/mobilenet.json")[name].layer
    nest, _ = dory.read(json.loads(NODES.read_text()), layer)
    text, lost = dory.write(nest, layer)
    assert lost == ()
    assert dory.read(json.loads(text), layer)[0] == nest
    node = json.loads(text)
    stated = next(node for node in json.loads(NODES.read_text()) if node["layer_name"] == name)
    assert (
        node["Tiling_parameters"]["L1"]["output_dimensions"] == stated["Tiling_parameters"]["L1"]["output_dimensions"]
    )


def test_dory_tiles_see_what_their_windows_see() -> None:
    """A kernel of 1 x 7, strides of 1 and 2: results of 3 x 4 see 3 rows and 3 * 2 + 7 = 13 columns of 2 channels."""
    layer = Layer.conv("w", channels=4, filters=6, size=(9, 29), kernel=(1, 7), stride=(1, 2), pad=(0, 3, 0, 3))
    node = json.loads(dory.write(nest_of("m 2 r 3 c 4 n 2 | IN W OUT", layer), layer)[0])
    assert node["Tiling_parameters"]["L1"] == {
        "weights_dimensions": [2, 2], "input_dimensions": [2, 3, 13], "output_dimensions": [2, 3, 4],
    }  # fmt: skip
    assert node["Tiling_parameters"]["L2"] == {
        "weights_dimensions": [6, 4], "input_dimensions": [4, 9, 29], "output_dimensions": [6, 9, 15],
    }  # fmt: skip
    assert node["Layer_node_parameters"]["pads"] == [0, 3, 0, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r 4 m 2", "loops r m: its code runs m r, outermost first"),
        ("m 4 | W | r 2", "all operands are held inside all loops there"),
        ("m 4 m 2", "each of m r c n once at most"),
        ("r@3", "cores side by side and pieces of free sizes are not written"),
    ],
)
def test_what_dory_cannot_say(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        dory.write(nest_of(text, LAYER), LAYER)
    assert said in str(caught.value)


def test_bad_dory_nodes() -> None:
    layer = workloads("dory/mobilenet.json")["pw8"].layer
    node = json.loads(NODES.read_text())[2]
    node["Tiling_parameters"]["L1"]["output_dimensions"] = [88, 99, 2]
    with pytest.raises(InputError, match="r of certile: a tile of 99, layer pw8 has 16"):
        dory.read(node, layer)
    node["Tiling_parameters"] = {"L1": {}}
    with pytest.raises(InputError, match="no tiles of L1 or L2"):
        dory.read(node, layer)
