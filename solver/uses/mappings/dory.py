"""Tiles of DORY: the `Tiling_parameters` of a node, with the loops that its code runs over them.

::

    "Tiling_parameters": {"L1": {"weights_dimensions": [88, 128], "input_dimensions": [128, 8, 2],
                                 "output_dimensions": [88, 8, 2]}, "L2": {...}, "L3": {...}}

Dimensions are [outputs, inputs], [channels, rows, columns]. From L2 to L1 the code runs over output channels, rows,
columns and input channels, the last one innermost, and loads an operand when its tile changes
(``layer_L2_c_conv_template.c`` of pulp-platform/dory at be3d6dd); from L3 to L2 over rows, then output channels
(``layer_L3_c_template.c``). So all operands are held inside the loops. Two buffers each, where DORY has them, are a
property of its target: here of the machine.

Priced is the outermost level that has tiles: L2 where it is smaller than the layer, else L1; `level` names the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.errors import InputError, choices
from instances.foreign.foreign import nodes_of
from instances.foreign.products import size_of
from instances.jsonfile import Json
from instances.network.workload import Layer

#: Outermost first: L3 to L2, and L2 to L1; groups stand in the place of output channels where channels are groups.
_ORDERS = {"L2": ("r", "m"), "L1": ("m", "r", "c", "n")}
_KEYS = ("weights_dimensions", "input_dimensions", "output_dimensions")


def is_mapping(data: Json) -> bool:
    """Whether data have tiles of DORY."""
    return any("Tiling_parameters" in node for node in nodes_of(data))


def read(data: Json, layer: Layer, level: str | None = None, where: str = "mapping") -> tuple[Nest, tuple[str, ...]]:
    """Return the nest of a node for its layer, and what was assumed.

    Raises InputError if there is no node of the layer, or its tiles are none of the layer.
    """
    node = _node(data, layer, where)
    tiles = node.get("Tiling_parameters")
    here = f"{where}: Tiling_parameters"
    if not isinstance(tiles, dict):
        raise InputError(f"{here}: no object")
    sizes = {
        name: _tile(one, layer, f"{here}.{name}")
        for name in ("L2", "L1")
        if isinstance(one := tiles.get(name), dict) and one.get("output_dimensions")
    }
    if not sizes:
        raise InputError(f"{here}: no tiles of L1 or L2")
    cut = [name for name, tile in sizes.items() if any(tile[d] < layer.extent(d) for d in tile)]
    chosen = level or (cut[0] if cut else next(reversed(sizes)))
    if chosen not in sizes:
        raise InputError(f"{where}: no level {chosen}; it has tiles of {choices(sizes)}")
    items, size = list[Item](), {d: layer.extent(d) for d in "bgmnrcij"}
    for name in sizes if chosen == "L1" else ("L2",):
        for d in _order(name, layer):
            step = min(size[d], sizes[name][d])
            if step < size[d]:
                items.append(Loop(d, step))
                size[d] = step
    nest = Nest((*items, *(Hold(operand) for operand in layer.operands)))
    outside = {"L1": "L2", "L2": "L3"}[chosen]
    return nest, (f"priced: what moves between {outside} and {chosen}",)


def _node(data: Json, layer: Layer, where: str) -> Mapping[str, Json]:
    nodes = nodes_of(data)
    named = [node for k, node in enumerate(nodes) if layer.name in (node.get("layer_name"), f"{node.get('name')}{k}")]
    if named or len(nodes) == 1:
        return (named or nodes)[0]
    raise InputError(f"{where}: no node is called {layer.name}")


def _order(level: str, layer: Layer) -> tuple[str, ...]:
    """The loops of a level; a layer of groups has no channels to sum over."""
    order = _ORDERS[level]
    return tuple("g" if d == "m" else d for d in order if d != "n") if layer.g > 1 else order


def _tile(fields: Mapping[str, Json], layer: Layer, where: str) -> dict[str, int]:
    """The tile of a level by dimension."""
    weights, source, result = (_sizes(fields.get(key), f"{where}.{key}") for key in _KEYS)
    if len(result) != 3 or (source and len(source) != 3):
        raise InputError(f"{where}: dimensions are [channels, rows, columns]")
    grouped = layer.g > 1
    if grouped and (layer.m, layer.n) != (1, 1):
        raise InputError(f"{where}: tiles of layers with groups of several channels are not read")
    whole = {"g": layer.g, "m": layer.m, "n": layer.n, "r": layer.r, "c": layer.c}
    tile = {**whole, "r": result[1], "c": result[2], ("g" if grouped else "m"): weights[0] if weights else result[0]}
    if not grouped:
        tile["n"] = source[0] if source else layer.n
    rows = (source[1] - (layer.kh - 1) * layer.dilation_h - 1) // layer.stride_h + 1 if source else layer.r
    if source and source[1] < layer.h and tile["r"] == layer.r > rows >= 1:
        tile["r"] = rows  # only the input is cut
    for d, size in tile.items():
        if size > whole[d]:
            raise InputError(f"{where}: {d} of certile: a tile of {size}, layer {layer.name} has {whole[d]}")
    return tile


def _sizes(value: Json, where: str) -> list[int]:
    return [size_of(one, where) for one in value] if isinstance(value, list) else []


# ---- export ----------------------------------------------------------------------------------------------------------


def write(nest: Nest, layer: Layer) -> tuple[str, tuple[str, ...]]:
    """Return a node with the tile of level L1 as JSON, and what it does not say.

    Raises InputError for nests that are not DORY's: several loops over a dimension, another order that matters, other
    Holds.
    """
    if layer.kind not in ("conv", "matmul") or layer.b > 1:
        raise InputError(
            f"a DORY tile: layer {layer.name} is {layer.kind} of batch {layer.b}; it has convolutions of one"
        )
    tile = _expressible(nest, layer)
    top, left = layer.pad_top, layer.pad_left
    below = max(0, (layer.r - 1) * layer.stride_h + (layer.kh - 1) * layer.dilation_h + 1 - top - layer.h)
    right = max(0, (layer.c - 1) * layer.stride_w + (layer.kw - 1) * layer.dilation_w + 1 - left - layer.l)
    channels, filters = layer.g * layer.n, layer.g * layer.m
    rows = min(layer.h, (tile["r"] - 1) * layer.stride_h + layer.kh)
    columns = min(layer.l, (tile["c"] - 1) * layer.stride_w + layer.kw)
    outputs, inputs = tile["g"] * tile["m"], tile["g"] * tile["n"]
    whole = {"weights_dimensions": [filters, layer.n], "input_dimensions": [channels, layer.h, layer.l],
             "output_dimensions": [filters, layer.r, layer.c]}  # fmt: skip
    small = {
        "weights_dimensions": [outputs, layer.n if layer.g > 1 else tile["n"]],
        "input_dimensions": [inputs, rows, columns], "output_dimensions": [outputs, tile["r"], tile["c"]],
    }  # fmt: skip
    node = {
        "name": "Convolution", "layer_name": layer.name,
        "Layer_node_parameters": {
            "kernel_shape": [layer.kh, layer.kw], "strides": [layer.stride_h, layer.stride_w],
            "pads": [top, left, below, right], "group": layer.g, "input_channels": channels,
            "output_channels": filters, "input_dimensions": [layer.h, layer.l],
            "output_dimensions": [layer.r, layer.c],
        },
        "Tiling_parameters": {"L1": small, "L2": whole, "L3": whole},
    }  # fmt: skip
    lost = [f"not said: {item.operand} has {item.buffers} buffers" for item in nest.items
            if isinstance(item, Hold) and item.buffers == 2]  # fmt: skip
    return json.dumps(node, indent=1) + "\n", tuple(lost)


def _expressible(nest: Nest, layer: Layer) -> dict[str, int]:
    """The tile of a nest that DORY's loops run; raises InputError for others."""
    loops = [item for item in nest.items if not isinstance(item, Hold)]
    dims = [loop.dim for loop in loops]
    order = [d for d in _order("L1", layer) if d in dims]
    if any(not isinstance(loop, Loop) or loop.cuts for loop in loops):
        raise InputError("a DORY tile: cores side by side and pieces of free sizes are not written")
    if len(set(dims)) < len(dims) or set(dims) - set(order):
        raise InputError(f"a DORY tile: loops {' '.join(dims)}: each of {' '.join(_order('L1', layer))} once at most")
    if dims != order:
        raise InputError(f"a DORY tile: loops {' '.join(dims)}: its code runs {' '.join(order)}, outermost first")
    holds = [k for k, item in enumerate(nest.items) if isinstance(item, Hold)]
    if holds and holds[0] < len(loops):
        raise InputError("a DORY tile: all operands are held inside all loops there; solve with --pin holds=uniform")
    if nest.line:
        raise InputError("a DORY tile: IN is held in lines, which it has no word for")
    if (layer.dilation_h, layer.dilation_w) != (1, 1) or (layer.g > 1 and (layer.m, layer.n) != (1, 1)):
        raise InputError(f"a DORY tile: layer {layer.name} is dilated, or has groups of several channels")
    return nest.tile(layer)
