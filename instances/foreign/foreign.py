"""Layers in files of other tools, as a network: problems of Timeloop, workloads of ZigZag, graphs of DORY.

Only the layers are read, side by side: how they follow each other is not said in these files, or not needed to plan
them one by one.

**Timeloop** (version 0.3 and 0.4): a shape with projections, and an instance with sizes. Source:
``problem-shapes/cnn_layer.yaml`` and ``src/workload/shape-models`` of NVlabs/timeloop at 4cf6d4c. `Hpad`, `Wpad`, `H`
and `W` of an instance are read by no projection, and so are ignored there and here: the input is as large as the
windows are, without padding.

**ZigZag**: a list of layers, each an equation with sizes, ``O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]`` with
``ix=2*ox+1*fx``. Source: ``docs/source/workload.rst`` and ``zigzag/parser/workload_validator.py`` of
KULeuven-MICAS/zigzag at 3d12a96. Layers that add or pool are left out and named. Padding is that of `padding` with
`pr_loop_dims` beside it, else none.

**DORY**: the nodes of its graphs in JSON, with the tile of every memory level. A node is what `HW_node.export_to_dict`
makes (``dory/Parsers/HW_node.py`` of pulp-platform/dory at be3d6dd): keys `Layer_node_parameters` (kernel, strides,
pads, channels, dimensions) and `Tiling_parameters`. Pads are top, left, bottom, right, as its tiler adds them
(``p[0] + p[2]`` for rows). A file has one node, a list of them, or a mapping.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from instances.errors import InputError
from instances.foreign.products import Axis, Product, Workload, size_of
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
        return bool(nodes_of(parse_json(read_bytes(text), text, comments=True)))
    except InputError:  # whoever reads it says what is wrong
        return False


def read_workloads(path: str | os.PathLike[str]) -> tuple[list[Workload], list[str]]:
    """Return the layers of a file, and what of it was left out.

    Raises InputError if it is none of these files, or has no layer that certile knows.
    """
    text = os.fspath(path)
    where, name = f"network {text}", Path(text).name.split(".")[0] or "layer"
    if not text.lower().endswith(_SUFFIXES):
        return _of_dory(parse_json(read_bytes(text, what="network"), where, comments=True), where)
    data: Json = read_yaml(text, "network")
    if isinstance(data, dict) and isinstance(problem := data.get("problem"), dict):
        workload = _of_timeloop(problem, name, where)
        return [workload], list(workload.notes)
    layers = [one for one in data if isinstance(one, dict) and "equation" in one] if isinstance(data, list) else []
    if layers and isinstance(data, list) and len(layers) == len(data):
        return _of_zigzag(layers, where)
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


# --- Timeloop ---------------------------------------------------------------------------------------------------------

_CNN = "cnn-layer"
#: What Timeloop has built in under this name.
_CNN_SHAPE: dict[str, Json] = {
    "name": "CNN-Layer", "dimensions": list("RSPQCKN"),
    "coefficients": [{"name": f"{side}{what}", "default": 1} for side in "WH" for what in ("stride", "dilation")],
    "data_spaces": [
        {"name": "Weights", "projection": [[["C"]], [["K"]], [["R"]], [["S"]]]},
        {
            "name": "Inputs",
            "projection": [
                [["N"]], [["C"]], [["R", "Wdilation"], ["P", "Wstride"]], [["S", "Hdilation"], ["Q", "Hstride"]],
            ],
        },
        {"name": "Outputs", "projection": [[["N"]], [["K"]], [["Q"]], [["P"]]], "read_write": True},
    ],
}  # fmt: skip


def _of_timeloop(problem: Mapping[str, Json], name: str, where: str) -> Workload:
    """Return the layer of a problem; raises InputError if what it computes is none."""
    shape, instance = problem.get("shape", _CNN), problem.get("instance")
    if not isinstance(instance, dict):  # older files have the sizes beside the shape
        instance = {key: value for key, value in problem.items() if key not in ("shape", "version")}
    if isinstance(shape, str):
        if shape.lower() != _CNN:
            raise InputError(f"{where}: shape {shape!r} is a name, only CNN-Layer is known; write the shape itself")
        shape = _CNN_SHAPE
    if not isinstance(shape, dict):
        raise InputError(f"{where}: shape is no mapping")
    values = _coefficients(shape, instance)
    spaces = dict(_spaces(shape, values, where))
    dims = shape.get("dimensions")
    if not isinstance(dims, list) or not all(isinstance(dim, str) for dim in dims):
        raise InputError(f"{where}: shape.dimensions is no list of names")
    sizes = {str(dim): size_of(instance.get(str(dim)), f"{where}: instance.{dim}") for dim in dims}
    outputs = [name for name, (_, written) in spaces.items() if written]
    if len(outputs) != 1:
        raise InputError(f"{where}: {len(outputs)} data spaces are read_write, one is needed: the output")
    inputs = {space: axes for space, (axes, written) in spaces.items() if not written}
    ignored = [key for key in ("Hpad", "Wpad") if instance.get(key)]
    notes = (
        (f"{', '.join(ignored)} of the instance: no projection reads them, no padding is assumed",) if ignored else ()
    )
    return Product(name, sizes, (outputs[0], spaces[outputs[0]][0]), inputs, notes=notes).workload()


def _list(fields: Mapping[str, Json], *names: str) -> list[Json]:
    for name in names:
        if isinstance(found := fields.get(name), list):
            return found
    return []


def _coefficients(shape: Mapping[str, Json], instance: Mapping[str, Json]) -> dict[str, int]:
    """The strides and dilations: of the instance, or their default."""
    found = {}
    for one in _list(shape, "coefficients"):
        if isinstance(one, dict) and isinstance(name := one.get("name"), str):
            value = instance.get(name, one.get("default", 1))
            found[name] = size_of(value, f"coefficient {name}")
    return found


def _spaces(
    shape: Mapping[str, Json], values: Mapping[str, int], where: str
) -> Iterator[tuple[str, tuple[tuple[Axis, ...], bool]]]:
    """Every data space: its axes, and whether it is written."""
    for space in _list(shape, "data_spaces", "data-spaces", "dataspaces"):
        if not isinstance(space, dict) or not isinstance(name := space.get("name"), str):
            raise InputError(f"{where}: a data space has no name")
        axes = tuple(_axis(axis, values, f"{where}: data space {name}") for axis in _list(space, "projection"))
        yield name, (axes, bool(space.get("read_write", space.get("read-write", False))))


def _axis(axis: Json, values: Mapping[str, int], where: str) -> Axis:
    """A sum of terms ``[dim]`` or ``[dim, coefficient]``."""
    terms = []
    for term in axis if isinstance(axis, list) else [axis]:
        names = term if isinstance(term, list) else [term]
        if not 1 <= len(names) <= 2 or not isinstance(names[0], str):
            raise InputError(f"{where}: projection term {term!r} is no [dimension] or [dimension, coefficient]")
        factor = names[1] if len(names) > 1 else 1
        if isinstance(factor, str):
            if factor not in values:
                raise InputError(f"{where}: coefficient {factor} is not declared")
            factor = values[factor]
        terms.append((names[0], size_of(factor, where)))
    return tuple(terms)


# --- ZigZag -----------------------------------------------------------------------------------------------------------

_EQUATION = re.compile(r"\s*(O)((?:\[\w+\])+)\s*\+?\s*=\s*(\w)((?:\[\w+\])+)\s*([*+])\s*(\w)((?:\[\w*\])+)\s*")
_RELATION = re.compile(r"\s*(\w+)\s*=\s*(?:(\d+)\s*\*\s*)?(\w+)\s*\+\s*(?:(\d+)\s*\*\s*)?(\w+)\s*")


def _of_zigzag(data: Sequence[Mapping[str, Json]], where: str) -> tuple[list[Workload], list[str]]:
    """Return the layers of a workload file, and why others are left out; raises InputError if none multiplies."""
    found, left = list[Workload](), list[str]()
    for number, fields in enumerate(data):
        name = str(fields.get("name") or f"layer{fields.get('id', number)}")
        equation = str(fields.get("equation"))
        match = _EQUATION.fullmatch(equation)
        if match is None:
            raise InputError(f"{where}: layer {name}: equation {equation!r} is not O[..]+=A[..]*B[..]")
        kind = str(fields.get("operator_type", ""))
        if match[5] == "+" or "pool" in kind.lower():
            left.append(f"{name} ({kind or 'sum'}): only products of two operands are read")
            continue
        found.append(_product(match, fields, name, kind, f"{where}: layer {name}").workload())
    if not found:
        raise InputError(f"{where}: no layer multiplies: {'; '.join(left)}")
    return found, left


def _product(match: re.Match[str], fields: Mapping[str, Json], name: str, kind: str, where: str) -> Product:
    dims, numbers = fields.get("loop_dims"), fields.get("loop_sizes")
    if not isinstance(dims, list) or not isinstance(numbers, list) or len(dims) != len(numbers):
        raise InputError(f"{where}: loop_dims and loop_sizes are lists of one length")
    sizes = {str(dim).upper(): size_of(size, f"{where}: {dim}") for dim, size in zip(dims, numbers, strict=True)}
    windows = dict(_windows(fields, where))

    def axes(text: str) -> tuple[Axis, ...]:
        names = [part.upper() for part in re.findall(r"\[(\w+)\]", text)]
        for one in names:
            if one not in windows and one not in sizes:
                raise InputError(f"{where}: {one.lower()} of the equation has no size in loop_dims")
        return tuple(windows.get(one, ((one, 1),)) for one in names)

    pads = dict(_pads(fields, windows, where))
    return Product(name, sizes, (match[1], axes(match[2])), {match[3]: axes(match[4]), match[6]: axes(match[7])},
                   pads, kind)  # fmt: skip


def _windows(fields: Mapping[str, Json], where: str) -> Iterator[tuple[str, Axis]]:
    relations = fields.get("dimension_relations") or []
    for text in relations if isinstance(relations, list) else []:
        match = _RELATION.fullmatch(str(text))
        if match is None:
            raise InputError(f"{where}: dimension relation {text!r} is not ix=2*ox+1*fx")
        yield match[1].upper(), ((match[3].upper(), int(match[2] or 1)), (match[5].upper(), int(match[4] or 1)))


def _pads(
    fields: Mapping[str, Json], windows: Mapping[str, Axis], where: str
) -> Iterator[tuple[str, tuple[int, int]]]:  # fmt: skip
    """Padding by the output's dimension of a window, which stands first in its relation."""
    pads, dims = fields.get("padding"), fields.get("pr_loop_dims")
    if not isinstance(pads, list) or not isinstance(dims, list):
        return
    for dim, pair in zip(dims, pads, strict=False):
        axis = windows.get(str(dim).upper())
        if axis is None or not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"{where}: padding {pair!r} of {dim} is no pair beside a dimension of dimension_relations")
        before, after = (size_of(int(str(one)) + 1, where) - 1 for one in pair)
        yield axis[0][0], (before, after)


# --- DORY -------------------------------------------------------------------------------------------------------------

_NAMES = {"nof": "m", "nif": "n", "h": "r", "w": "c"}


def nodes_of(data: Json) -> list[Mapping[str, Json]]:
    """Return the nodes in parsed JSON; none if it has none."""
    return [node for node in _candidates(data) if "Layer_node_parameters" in node]


def _candidates(data: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(data, dict):
        yield data
        yield from (node for node in data.values() if isinstance(node, dict))
    elif isinstance(data, list):
        yield from (node for node in data if isinstance(node, dict))


def _of_dory(data: Json, where: str) -> tuple[list[Workload], list[str]]:
    """Return the layers of a graph with weights, and why others are left out; raises InputError if there are none."""
    found, left = list[Workload](), list[str]()
    for number, node in enumerate(nodes_of(data)):
        kind = str(node.get("name", ""))
        name = str(node.get("layer_name") or f"{kind or 'layer'}{number}")
        if not any(word in kind for word in ("Conv", "FullyConnected", "Gemm")):
            left.append(f"{name}: only convolutions and fully connected layers are read")
            continue
        found.append(Workload(_layer_of(node, name, f"{where}: node {name}"), _NAMES, {}, kind))
    if not found:
        raise InputError(f"{where}: no convolution with Layer_node_parameters; {'; '.join(left)}")
    return found, left


def _layer_of(node: Mapping[str, Json], name: str, where: str) -> Layer:
    fields = node["Layer_node_parameters"]
    if not isinstance(fields, dict):
        raise InputError(f"{where}: Layer_node_parameters is no object")

    def numbers(key: str, count: int, least: int = 1, default: list[int] | None = None) -> list[int]:
        value = fields.get(key, default)
        if not isinstance(value, list) or len(value) != count:
            raise InputError(f"{where}: {key} {value!r} is no list of {count} integers")
        return [size_of(one if least else _shifted(one), f"{where}: {key}") - (1 - least) for one in value]

    channels, filters = (size_of(fields.get(key), f"{where}: {key}") for key in ("input_channels", "output_channels"))
    groups = size_of(fields.get("group", 1) or 1, f"{where}: group")
    if "FullyConnected" in str(node.get("name", "")):
        return Layer.matmul(name, rows=1, inner=channels, cols=filters)
    size, kernel = numbers("input_dimensions", 2), numbers("kernel_shape", 2)
    stride, pads = numbers("strides", 2, default=[1, 1]), numbers("pads", 4, 0, [0, 0, 0, 0])
    try:
        return Layer.conv(
            name, channels=channels, filters=filters, size=(size[0], size[1]), kernel=(kernel[0], kernel[1]),
            stride=(stride[0], stride[1]), pad=(pads[0], pads[1], pads[2], pads[3]), groups=groups,
        )  # fmt: skip
    except ValueError as error:
        raise InputError(f"{where}: {' '.join(str(error).split())}") from None


def _shifted(value: Json) -> Json:
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else value
