"""Layers in files of other tools, as a network: problems of Timeloop, workloads of ZigZag, graphs of DORY.

Only the layers are read, side by side: how they follow each other is not said in these files, or not needed to plan
them one by one.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from instances.errors import InputError
from instances.foreign import dory, timeloop, zigzag
from instances.foreign.products import Workload
from instances.foreign.yamlfile import read_yaml
from instances.jsonfile import Json, parse_json, read_bytes
from instances.network.network import Network
from instances.network.operators import Conv, Input, MatMul, Operator
from instances.network.workload import Layer

_SUFFIXES = (".yaml", ".yml")


def is_foreign(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a file of another tool: YAML, or JSON with nodes of DORY."""
    text = os.fspath(path)
    if text.lower().endswith(_SUFFIXES):
        return True
    if not text.lower().endswith(".json") or not os.path.isfile(text):
        return False
    try:
        return bool(dory.nodes_of(parse_json(read_bytes(text), text, comments=True)))
    except InputError:  # whoever reads it says what is wrong
        return False


def read_workloads(path: str | os.PathLike[str]) -> tuple[list[Workload], list[str]]:
    """Return the layers of a file, and what of it was left out.

    Raises
    ------
    InputError
        If it is none of these files, or has no layer that certile knows.
    """
    text = os.fspath(path)
    where, name = f"network {text}", Path(text).name.split(".")[0] or "layer"
    if not text.lower().endswith(_SUFFIXES):
        return dory.workloads_of(parse_json(read_bytes(text, what="network"), where, comments=True), where)
    data: Json = read_yaml(text, "network")
    if timeloop.is_problem(data):
        workload = timeloop.problem_of(data, name, where)
        return [workload], list(workload.notes)
    if zigzag.is_workload(data):
        return zigzag.workloads_of(data, where)
    raise InputError(f"{where}: neither a problem of Timeloop (problem: shape, instance) nor a workload of ZigZag")


def read_foreign(path: str | os.PathLike[str]) -> Network:
    """Return the layers of a file as a network; raises InputError as `read_workloads`."""
    found, _ = read_workloads(path)
    name = Path(os.fspath(path)).name.split(".")[0] or "network"
    about = f"layers of {Path(os.fspath(path)).name}"
    try:
        operators = tuple(operator for one in found for operator in _operators(one.layer))
        return Network(name=name, description=about, operators=operators)
    except ValidationError as error:
        said = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors()[:3])
        raise InputError(f"network {os.fspath(path)}: {said}") from None


def _operators(layer: Layer) -> list[Operator]:
    """Operators that make a layer, from inputs of their own."""
    name = f"{layer.name}.in"
    if layer.kind == "matmul":
        if layer.weights == "activation":
            left = Input(name=name, shape=(layer.g, layer.r, layer.n))
            right = Input(name=f"{layer.name}.w", shape=(layer.g, layer.n, layer.m))
            product = MatMul(name=layer.name, inputs=(left.name, right.name), shape=(layer.g, layer.r, layer.m))
            return [left, right, product]
        made = MatMul(name=layer.name, inputs=(name,), shape=(layer.r, layer.m), out_features=layer.m)
        return [Input(name=name, shape=(layer.r, layer.n)), made]
    below = (layer.r - 1) * layer.stride_h + (layer.kh - 1) * layer.dilation_h + 1 - layer.pad_top - layer.h
    right_pad = (layer.c - 1) * layer.stride_w + (layer.kw - 1) * layer.dilation_w + 1 - layer.pad_left - layer.l
    conv = Conv(
        name=layer.name, inputs=(name,), shape=(layer.b, layer.g * layer.m, layer.r, layer.c),
        filters=layer.g * layer.m, kernel=(layer.kh, layer.kw), stride=(layer.stride_h, layer.stride_w),
        pad=(layer.pad_top, layer.pad_left, max(0, below), max(0, right_pad)),
        dilation=(layer.dilation_h, layer.dilation_w), groups=layer.g,
    )  # fmt: skip
    return [Input(name=name, shape=(layer.b, layer.g * layer.n, layer.h, layer.l)), conv]
