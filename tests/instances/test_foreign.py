"""Layers as Timeloop, ZigZag and DORY write them: each field by hand, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.foreign.foreign import is_foreign, read_workloads
from instances.load import load_network
from instances.network.workload import Layer

EQUATION = "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]"
#: 6 rows of windows of 3, 2 apart, 2 rows of padding before and 1 behind: (6-1)*2 + 3 - 3 = 10; along columns
#: 7 windows of 2 taps that lie 2 apart, 3 apart, and one column of padding behind: (7-1)*3 + 2 + 1 - 1 = 20.
ZIGZAG: dict[str, Any] = {
    "id": 3, "equation": EQUATION, "operator_type": "Conv", "dimension_relations": ["ix=3*ox+2*fx", "iy=2*oy + fy"],
    "loop_dims": ["B", "G", "K", "C", "OY", "OX", "FY", "FX"], "loop_sizes": [2, 3, 4, 5, 6, 7, 3, 2],
    "pr_loop_dims": ["IX", "IY"], "padding": [[0, 1], [2, 1]],
}  # fmt: skip
CONV = Layer.conv("layer3", channels=15, filters=12, size=(10, 20), kernel=(3, 2), stride=(2, 3), dilation=(1, 2),
                  pad=(2, 0, 1, 1), groups=3, batch=2)  # fmt: skip


def zigzag(equation: str, relations: list[str], **sizes: int) -> dict[str, Any]:
    return {"name": "a", "equation": equation, "dimension_relations": relations, "loop_dims": [*sizes],
            "loop_sizes": [*sizes.values()]}  # fmt: skip


def dory(name: str, **fields: object) -> dict[str, Any]:
    sizes = {"input_channels": 4, "output_channels": 6, "input_dimensions": [9, 8], "kernel_shape": [3, 2]}
    return {"name": name, "layer_name": "n", "Layer_node_parameters": sizes | fields}


def timeloop(instance: dict[str, int], **shape: object) -> dict[str, Any]:
    spaces = [{"name": "W", "projection": [[["A"]], [["Z"]]]}, {"name": "I", "projection": [[["A"]], [["X", "s"]]]},
              {"name": "O", "projection": [[["X"]], [["Z"]]], "read_write": True}]  # fmt: skip
    whole = {"dimensions": ["A", "X", "Z"], "data_spaces": spaces, "coefficients": [{"name": "s", "default": 1}]}
    return {"problem": {"shape": whole | shape, "instance": instance}}


def written(folder: Path, data: Any) -> Path:
    """JSON is YAML, too; DORY writes JSON."""
    path = folder / ("node.json" if "Layer_node_parameters" in str(data) else "file.yaml")
    path.write_text(json.dumps(data))
    return path


CNN = {"R": 3, "S": 2, "P": 5, "Q": 4, "C": 6, "K": 7, "N": 2, "Wstride": 2, "Hstride": 3, "Wdilation": 2}


@pytest.mark.parametrize(("data", "layer"), [
    ([ZIGZAG], CONV),
    # no channels of their own: groups of one
    ([zigzag("O[g][oy][ox]+=W[g][fy][fx]*I[g][iy][ix]", ["ix=1*ox+1*fx", "iy=oy+2*fy"], G=4, OY=5, OX=6, FY=2, FX=3)],
     Layer.conv("a", channels=4, filters=4, size=(7, 8), kernel=(2, 3), dilation=(2, 1), pad=(0, 0, 0, 0), groups=4)),
    ([zigzag("O[d0][d1]+=A[d0][d2]*B[d2][d1]", [], D0=3, D1=4, D2=5)], Layer.matmul("a", rows=3, inner=5, cols=4)),
    # heads: a product of two maps for each
    ([zigzag("O[h][i][j]+=A[h][i][k]*B[h][k][j]", [], H=2, I=3, J=4, K=5)],
     Layer.matmul("a", rows=3, inner=5, cols=4, batch=2, activation=True)),
    # B and N are a batch, one that is not is rows
    ([zigzag("O[b][k][y]+=W[k][c]*I[b][c][y]", [], B=2, K=3, C=4, Y=5)],
     Layer.conv("a", channels=4, filters=3, size=(5, 1), kernel=(1, 1), batch=2)),
    # (5-1)*2 + (3-1)*2 + 1 = 13 rows, (4-1)*3 + (2-1) + 1 = 11 columns; sizes beside the shape, as older files have
    ({"problem": {"shape": "CNN-Layer", **CNN}}, Layer.conv(
        "file", channels=6, filters=7, size=(13, 11), kernel=(3, 2), stride=(2, 3), dilation=(2, 1), pad=(0, 0, 0, 0),
        batch=2)),
    (timeloop({"A": 3, "X": 4, "Z": 5}), Layer.matmul("file", rows=4, inner=3, cols=5)),
    # top, left, bottom, right: (9+1+2-3)//2+1 = 5 rows, 8+1-2+1 = 8 columns
    (dory("BNReluConv", pads=[1, 0, 2, 1], strides=[2, 1], group=2), Layer.conv(
        "n", channels=4, filters=6, size=(9, 8), kernel=(3, 2), stride=(2, 1), pad=(1, 0, 2, 1), groups=2)),
    ({"one": dory("FullyConnected"), "two": dory("Pooling")}, Layer.matmul("n", rows=1, inner=4, cols=6)),
    ([dory("Pooling"), dory("Convolution")], Layer.conv(
        "n", channels=4, filters=6, size=(9, 8), kernel=(3, 2), pad=(0, 0, 0, 0))),
])  # fmt: skip
def test_layers(tmp_path: Path, data: Any, layer: Layer) -> None:
    """Read as it stands, and as a network."""
    path = written(tmp_path, data)
    assert is_foreign(path)
    assert read_workloads(path)[0][0].layer == layer
    assert [one.signature() for one in load_network(path).layers] == [layer.signature()]


@pytest.mark.parametrize(("data", "said"), [
    ([ZIGZAG | {"padding": [[0, 1], [9, 9]]}], "layer3: its padding leaves no input"),
    ([ZIGZAG | {"padding": [[0, 1], [2]]}], "padding [2] of IY is no pair"),
    ([ZIGZAG | {"pr_loop_dims": ["OX", "IY"]}], "padding [0, 1] of OX is no pair beside a dimension"),
    ([ZIGZAG | {"padding": [[0, 1], [-1, 1]]}], "0 is no size"), ([ZIGZAG | {"loop_sizes": [2]}], "of one length"),
    ([ZIGZAG | {"equation": "O[k]+=W[k]"}], "is not O[..]+=A[..]*B[..]"),
    ([ZIGZAG | {"dimension_relations": ["ix=ox"]}], "'ix=ox' is not ix=2*ox+1*fx"),
    ([ZIGZAG | {"dimension_relations": ["ix=3*ox+2*fx"], "padding": None}], "iy of the equation has no size"),
    ([ZIGZAG | {"loop_sizes": [2, 3, 4, 5, 6, 7, 3, True]}], "True is no size"),
    ([ZIGZAG | {"dimension_relations": ["ix=ox+ox", "iy=oy+fy"]}], "window OX + OX needs one dimension of the output"),
    ([ZIGZAG | {"dimension_relations": ["ix=c+fx", "iy=oy+fy"]}], "window C + FX needs one dimension of the output"),
    ([ZIGZAG | {"equation": EQUATION.replace("W[g][k][c]", "W[g][k][ix]")}], "W and I both slide"),
    ([zigzag("O[a][b]+=I[x][y][z][a]*W[b]", ["x=a+c", "y=d+e", "z=f+h"], A=2, B=2, C=2, D=2, E=2, F=2, H=2)],
     "window D + E needs one dimension of the output"),
    ([zigzag("O[m][n]+=I[a][k]*W[k][n]", [], M=2, N=3, A=4, K=5)], "only O depends on dimension M"),
    ([zigzag("O[m][n]+=I[m][k]*W[k][n]", [], M=2, N=3, K=5, A=4)], "no operand depends on dimension A"),
    ([zigzag("O[m][n][j]+=I[m][k]*W[k][n][j]", [], M=2, N=3, K=5, J=4)], "N and J are both output channels"),
    ([zigzag("O[m]+=I[m]+W[m]", [], M=2)], "no layer multiplies: a (sum): only products"),
    ([zigzag("O[m]+=I[m]*W[m]", [], M=2) | {"operator_type": "AvgPool"}], "a (AvgPool): only products"),
    (timeloop({"A": 3, "X": 4, "Z": 5}, coefficients=[]), "coefficient s is not declared"),
    (timeloop({"A": 3, "X": 4}), "instance.Z: None is no size"),
    (timeloop({"A": 3, "X": 4, "Z": 5}, dimensions=["X", "Z"]), "W depends on A, which is none of its dimensions"),
    (timeloop({"A": 3, "X": 4, "Z": 5}, dimensions="AXZ"), "shape.dimensions is no list of names"),
    (timeloop({"A": 3, "X": 4, "Z": 5}, data_spaces=[{"name": "O", "projection": [[["X"]]], "read_write": True}]),
     "0 operands are multiplied"),
    (timeloop({"A": 3}, data_spaces=[{"projection": []}]), "a data space has no name"),
    (timeloop({"A": 3}, data_spaces=[{"name": "W", "projection": [[[1]]]}]), "projection term [1] is no [dimension]"),
    (timeloop({"A": 3}, data_spaces=[{"name": "W", "projection": [[["A", 1, 2]]]}]), "is no [dimension] or"),
    ({"problem": {"shape": 3, "instance": {}}}, "shape is no mapping"), ([dory("Pooling")], "only convolutions"),
    ([dory("Conv", kernel_shape=[10, 2])], "node n"), ([dory("Conv", pads=[1, 1])], "pads [1, 1] is no list of 4"),
    ([dory("Conv", pads=[1, 1, 1, -1])], "pads: 0 is no size"), ([dory("Conv", group=3)], "node n"),
    ([dory("Conv") | {"Layer_node_parameters": 3}], "Layer_node_parameters is no object"),
    ([dory("Conv", input_channels=0)], "input_channels: 0 is no size"),
])  # fmt: skip
def test_what_is_refused(tmp_path: Path, data: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_workloads(written(tmp_path, data))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
