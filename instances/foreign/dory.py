"""Layers as DORY writes them: the nodes of its graphs in JSON, with the tile of every memory level.

A node is what `HW_node.export_to_dict` makes (``dory/Parsers/HW_node.py`` of pulp-platform/dory at be3d6dd): keys
`Layer_node_parameters` (kernel, strides, pads, channels, dimensions) and `Tiling_parameters`. Pads are top, left,
bottom, right, as its tiler adds them (``p[0] + p[2]`` for rows). A file has one node, a list of them, or a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from instances.errors import InputError
from instances.foreign.products import Workload, size_of
from instances.jsonfile import Json
from instances.network.workload import Layer

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


def workloads_of(data: Json, where: str) -> tuple[list[Workload], list[str]]:
    """Return the layers of a graph with weights, and why others are left out; raises InputError if there are none."""
    found, left = list[Workload](), list[str]()
    for number, node in enumerate(nodes_of(data)):
        kind = str(node.get("name", ""))
        name = str(node.get("layer_name") or f"{kind or 'layer'}{number}")
        if not any(word in kind for word in ("Conv", "FullyConnected", "Gemm")):
            left.append(f"{name}: only convolutions and fully connected layers are read")
            continue
        found.append(Workload(_layer(node, name, f"{where}: node {name}"), _NAMES, {}, kind))
    if not found:
        raise InputError(f"{where}: no convolution with Layer_node_parameters; {'; '.join(left)}")
    return found, left


def _layer(node: Mapping[str, Json], name: str, where: str) -> Layer:
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
