"""A bank plan of certile as control fields of the public MIDAP simulator, in place of what its compiler decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model import NotExecutableError  # a neighbour: this runs beside the simulator, not beside the tests

__all__ = ["Program", "install", "translated"]

Layer = dict[str, Any]
#: What a plan decides of the simulator's control info of a layer.
FIELDS = (
    "input_mapping", "output_mapping", "action", "num_initial_fragments", "reverse_write", "flip", "input_flip",
)  # fmt: skip


@dataclass
class Program:
    """Layers in order, control fields by layer, and which maps lie from their last column on."""

    layers: list[Layer]
    control: dict[str, dict[str, Any]]
    flip: dict[str, bool]


def translated(plan: dict[str, Any]) -> Program:
    """Return the control fields of all layers of a plan."""
    layers = plan["layers"]
    width, flip = _widths(plan), _flips(layers)
    execute = {layer["layer"]: flip[layer["source"]] for layer in layers}
    for layer in layers:
        flip.setdefault(layer["target"], execute[layer["layer"]])
    control = {layer["layer"]: _control(layer, width, flip, backwards=execute[layer["layer"]]) for layer in layers}
    return Program(layers, control, flip)


def _widths(plan: dict[str, Any]) -> dict[str, int]:
    """Columns of every map; a map of patches has one for every pixel of its result."""
    width = {one["name"]: (one["shape"] + [1, 1])[3] for one in plan["network_data"]["operators"]}
    shapes = {one["name"]: one["shape"] for one in plan["network_data"]["operators"]}
    for layer in plan["layers"]:
        if layer["kind"] == "patches":
            width[layer["source"]] = shapes[layer["layer"]][2] * shapes[layer["layer"]][3]
    return width


def _flips(layers: list[Layer]) -> dict[str, bool]:
    """Which maps are read from their last column on: the simulator knows one direction of a map."""
    readers: dict[str, list[Layer]] = {}
    for layer in layers:
        readers.setdefault(layer["source"], []).append(layer)
    flip = {}
    for name, found in readers.items():
        ways = {layer["backwards"] for layer in found if not _either_way(layer)}
        if len(ways) > 1:
            raise NotExecutableError(f"map {name} is read from both ends")
        flip[name] = ways.pop() if ways else found[0]["backwards"]
    return flip


def _either_way(layer: Layer) -> bool:
    """Whether a layer may run from the other end: one step, with all tiles there before it."""
    does = [action["do"] for action in layer["actions"]]
    return does.count("process") == 1 and does[-1] == "process" and layer["retain"] in (0, len(layer["tiles"]))


def _control(layer: Layer, width: dict[str, int], flip: dict[str, bool], *, backwards: bool) -> dict[str, Any]:
    """The control fields of one layer."""
    tiles = layer["tiles"] if backwards == layer["backwards"] else layer["tiles"][::-1]
    read = [[tile["bank"], _columns(tile, width[layer["source"]], flip[layer["source"]]), False] for tile in tiles]
    made = [(tile["bank"], _columns(tile, width[layer["target"]], flip[layer["target"]])) for tile in layer["results"]]
    return {
        "input_mapping": read,
        "output_mapping": sorted(made, key=lambda one: one[1][0]),
        "action": _actions(layer, read),
        "num_initial_fragments": layer["initial"],
        "reverse_write": flip[layer["target"]] != backwards,
        "flip": flip[layer["target"]],
        "input_flip": backwards,
    }


def _columns(tile: dict[str, int], width: int, flipped: bool) -> list[int]:
    return [width - tile["end"], width - tile["first"]] if flipped else [tile["first"], tile["end"]]


def _actions(layer: Layer, read: list[list[Any]]) -> list[tuple[str, int]]:
    """Loads and process steps up to a tile; tiles whose bank a step frees are marked for the load after it."""
    actions: list[tuple[str, int]] = []
    loaded, done, step = layer["initial"], 0, range(0)
    for number, action in enumerate(layer["actions"]):
        if action["do"] == "load":
            again = number and layer["actions"][number - 1]["do"] == "load"
            first, loaded = loaded, loaded + action["tiles"]
            if step and not again:
                _mark(read, step, range(first, loaded))
            if again:
                actions.pop()
            actions.append(("LOAD", loaded))
        else:
            step = range(done, done + action["tiles"])
            done = step.stop
            actions.append(("PROCESS", done))
    return actions


def _mark(read: list[list[Any]], step: range, loads: range) -> None:
    """Mark the tiles of a step that the loads behind it wait for."""
    before = step.start - 1
    for load in loads:
        own = [tile for tile in step if read[tile][0] == read[load][0]]
        at = max(before + 1, own[-1] if own else step.start)
        if at >= step.stop:
            return
        read[at][2] = True
        before = at


# ---- in the simulator ------------------------------------------------------------------------------------------------


def install(wrapper: Any, program: Program) -> None:
    """Let the program take the place of the compiler's decisions; before it compiles."""
    compiler = wrapper.cm.subnet_compiler
    compiler.determine_path_and_stationary = lambda: _order(wrapper, program)
    compiler.generate_control_info = lambda: _fill(compiler, program)


def _order(wrapper: Any, program: Program) -> None:
    """Layers in order, concatenations behind their last part; which operands sums stream; inputs that are flipped."""
    model = wrapper.midap_model
    last = {layer["target"]: layer["layer"] for layer in program.layers}
    order = []
    for layer in program.layers:
        name, target = layer["layer"], layer["target"]
        order.append(model[name])
        if target != name and last[target] == name:
            order.append(model[target])
        if layer["kind"] == "sum":
            if len(layer["streamed"]) != 1:
                raise NotExecutableError(f"{name}: {len(layer['streamed'])} streamed operands")
            streamed = model[layer["streamed"][0]]
            model[name].input = [model[layer["source"]], streamed]
            streamed.write_on_dram = True
    wrapper.cm.subnet_compiler.processing_order = order
    write_parts(order)
    for name in model.init_layer:
        if program.flip.get(name):
            _flip_input(model[name])


def write_parts(order: list[Any]) -> None:
    """Write concatenations that sums stream: the simulator's own compiler forgets their parts."""
    from generic_op import ArithmeticOp, ConcatOp

    for layer in order:
        if isinstance(layer.main_op, ArithmeticOp):
            for part in (part for one in layer.input[1:] if isinstance(one.main_op, ConcatOp) for part in one.input):
                part.write_on_dram = True


def _flip_input(head: Any) -> None:
    import numpy as np

    head.control_info.flip = True
    tensor, reader = head.output_tensor, head.next[0]
    if reader.main_op.type == "Gemm":
        columns, rows = reader.output_tensor.shape[:2]
        flipped = tensor.reshape(columns, rows, *tensor.shape[1:])[::-1].reshape(tensor.shape)
    else:
        flipped = np.flip(tensor, axis=0)
    head.output_tensor = np.ascontiguousarray(flipped)


def _fill(compiler: Any, program: Program) -> None:
    """Fill in the control fields."""
    from generic_op import ConcatOp

    for layer in compiler.processing_order:
        info = layer.control_info
        if isinstance(layer.main_op, ConcatOp):
            info.flip = program.flip[layer.name]
            continue
        said = program.control[layer.name]
        if layer.reduction:  # folded into the layer before
            info.output_mapping = said["output_mapping"]
            info.flip = info.reverse_write = info.input_flip = False
            continue
        for field in FIELDS:
            info[field] = said[field]
        if layer.have_reduction_layer:
            info.output_mapping, info.reverse_write, info.flip = [], False, info.input_flip
        if info.input_flip and layer.main_op.type != "Gemm":
            layer.main_op.flip_operation()
            if layer.sub_op is not None:
                layer.sub_op.flip_operation()
