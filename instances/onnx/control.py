"""If, Loop and Scan whose conditions and counts follow from shapes or constants, as the nodes that they run.

The branch that is taken stands in place of an If. A Loop or a Scan is its body, once for every pass, up to
`MOST_PASSES`. What depends on the data stays as it is, and is an opaque operator later. Graphs within graphs are
inlined from the outside inwards, so shapes and values of all that is outside are known by the time an inner condition
is asked for. Values inside a node get its name in front; what a body takes from outside keeps its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from instances.errors import InputError
from instances.onnx.asked import Asked, bind
from instances.onnx.graph import Node, Unsupported
from instances.onnx.shapes import (
    STANDARD,
    Inferred,
    fold,
    infer,
    opset_of,
    refill,
    sort_nodes,
    strip_weights,
    used_tensors,
)

#: A loop of more passes stays opaque: a network with as many layers is of no use to a plan.
MOST_PASSES = 512
#: Rounds, each of which replaces at least one node; and nodes.
_MOST_ROUNDS, _MOST_NODES = 256, 100_000
#: From this opset on axes of Unsqueeze are an input; before it a Scan has a batch.
_AXES_ARE_INPUTS, _SCANS_ALONE = 13, 9


def unroll(model: onnx.ModelProto, asked: Asked, where: str) -> bool:
    """Replace control flow that is known in a model; return whether there was any.

    Raises InputError if sizes are open, or shape inference refuses the model.
    """
    changed = False
    for _ in range(_MOST_ROUNDS):
        if not any(node.op_type in CONTROL and node.domain in STANDARD for node in model.graph.node):
            break
        sort_nodes(model.graph, where)
        if not _Unroller(model, _known(model, asked, where)).run():
            break
        changed = True
    return changed


def _known(model: onnx.ModelProto, asked: Asked, where: str) -> Inferred:
    """Shapes and small values of a model as it is."""
    seen = onnx.ModelProto()
    seen.CopyFrom(model)
    known = strip_weights(seen.graph, where)
    bind(seen.graph, known.constants, asked, where)
    infer(seen, known, where)
    return known


class _Unroller:
    """Goes through the nodes of a graph once."""

    def __init__(self, model: onnx.ModelProto, known: Inferred) -> None:
        self.graph, self.known, self.opsets = model.graph, known, list(model.opset_import)
        self.opset = opset_of(self.opsets)
        self.nodes: list[onnx.NodeProto] = []
        self.own: dict[str, str] = {}
        """What inlined nodes make -> what that is called now."""

    def run(self) -> bool:
        """Replace what is known; return whether anything was."""
        replaced = False
        for proto in self.graph.node:
            before, tensors = len(self.nodes), len(self.graph.initializer)
            make = CONTROL.get(proto.op_type) if proto.domain in STANDARD else None
            try:
                if make is None:
                    raise Unsupported("no control flow")
                make(self, Node(proto))
                replaced = True
            except Unsupported:
                del self.nodes[before:], self.graph.initializer[tensors:]
                self.nodes.append(deepcopy(proto))
        if replaced:
            refill(self.graph.node, self.nodes)
        return replaced

    # ---- the three kinds -------------------------------------------------------------------------------------------

    def branch(self, node: Node) -> None:
        """If: the branch that is taken."""
        taken = self._value(node.input(0))
        if taken is None:
            raise Unsupported("a condition that depends on the data")
        body = _graph(node, "then_branch" if taken.any() else "else_branch")
        results = self._inline(body, node.label, {})
        for name, result in zip(node.proto.output, results, strict=False):
            self._same(name, result)

    def loop(self, node: Node) -> None:
        """Loop: passes as long as the count and the condition say; scanned results are stacked."""
        body = _graph(node, "body")
        count, go_on = self._value(node.input(0)), self._value(node.input(1))
        if node.input(1) and go_on is None:
            raise Unsupported("a condition that depends on the data")
        if node.input(0) and count is None:
            raise Unsupported("a count that depends on the data")
        most = MOST_PASSES + 1 if count is None else int(count.reshape(-1)[0])
        going, carried = go_on is None or bool(go_on.any()), [*node.proto.input[2:]]
        scanned: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
        passes = 0
        while going and passes < most:
            if passes == MOST_PASSES:
                raise Unsupported(f"more than {MOST_PASSES} passes")
            label = f"{node.label}/{passes}"
            number, there = f"{label}/number", f"{label}/condition"
            given = [self._constant(number, np.array(passes, np.int64)), self._constant(there, np.array(True))]
            names = dict(zip([one.name for one in body.input], [*given, *carried], strict=True))
            made = self._inline(body, label, names)
            after = self._value(made[0])
            if after is None:
                raise Unsupported("a condition that depends on the data")
            going, carried = bool(after.any()), made[1 : 1 + len(carried)]
            for results, one in zip(scanned, made[1 + len(carried) :], strict=True):
                results.append(one)
            passes += 1
        if scanned and not passes:
            raise Unsupported("a loop of no pass that stacks its results")
        for name, value in zip(node.proto.output, carried, strict=False):
            self._same(name, value)
        for name, results in zip(node.proto.output[len(carried) :], scanned, strict=False):
            self._stack(name, results, 0)

    def scan(self, node: Node) -> None:
        """Scan: a pass for every part of what is scanned."""
        body, number = _graph(node, "body"), node.integer("num_scan_inputs", 0)
        if self.opset < _SCANS_ALONE or not number:
            raise Unsupported("a scan of a batch")
        states = len(node.proto.input) - number
        carried, read = [*node.proto.input[:states]], [*node.proto.input[states:]]
        shapes = [self.known.shapes.get(name) for name in read]
        results = len(body.output) - states
        axes, ways = self._axes(node, "input", number), node.integers("scan_input_directions") or (0,) * number
        if any(shape is None for shape in shapes):
            raise Unsupported("a scan of what has no known size")
        lengths = {shape[axis % len(shape)] for shape, axis in zip(shapes, axes, strict=True) if shape}
        length = lengths.pop() if len(lengths) == 1 else 0
        if not 0 < length <= MOST_PASSES:
            raise Unsupported(f"a scan of {length or 'unlike'} parts; up to {MOST_PASSES} are planned")
        scanned: list[list[str]] = [[] for _ in range(results)]
        for k in range(length):
            label = f"{node.label}/{k}"
            parts = []
            for j, name in enumerate(read):
                at = self._constant(f"{label}/at{j}", np.array(length - 1 - k if ways[j] else k, np.int64))
                parts.append(self._add("Gather", [name, at], f"{label}/part{j}", axis=axes[j]))
            names = dict(zip([one.name for one in body.input], [*carried, *parts], strict=True))
            made = self._inline(body, label, names)
            carried = made[:states]
            for found, one in zip(scanned, made[states:], strict=True):
                found.append(one)
        backwards = node.integers("scan_output_directions") or (0,) * results
        for name, value in zip(node.proto.output, carried, strict=False):
            self._same(name, value)
        out = self._axes(node, "output", results)
        for j, name in enumerate(node.proto.output[states:]):
            if name:
                self._stack(name, scanned[j][:: -1 if backwards[j] else 1], out[j])

    def _axes(self, node: Node, which: str, number: int) -> tuple[int, ...]:
        return node.integers(f"scan_{which}_axes") or (0,) * number

    # ---- nodes -----------------------------------------------------------------------------------------------------

    def _inline(self, body: onnx.GraphProto, label: str, given: Mapping[str, str]) -> list[str]:
        """Add the nodes of a graph; `given`: its inputs -> what they are. Return what its results are called."""
        names = dict(given)
        own = [tensor.name for tensor in body.initializer if tensor.name not in given]
        own += [name for node in body.node for name in node.output if name]
        names |= {name: f"{label}/{name}" for name in own}
        for tensor in body.initializer:
            if tensor.name not in given:
                self.graph.initializer.append(tensor)
                self.graph.initializer[-1].name = names[tensor.name]
                self._learn_constant(self.graph.initializer[-1])
        added = []
        for node in body.node:
            new = _renamed(node, names)
            new.name = f"{label}/{node.name or next(iter(node.output), node.op_type)}"
            added.append(new)
            self.own |= {name: name for name in new.output if name}
        self.nodes += added
        if len(self.nodes) > _MOST_NODES:
            raise Unsupported(f"more than {_MOST_NODES:,} nodes")
        self.known.values.update(fold(added, self.known, self.opsets))
        return [names.get(one.name, one.name) for one in body.output]

    def _add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def _same(self, name: str, value: str) -> None:
        """Let a result of the node be what its graph made."""
        if not name:
            return
        now = self.own.get(value, value)
        free = value in self.own and now == value and not any(value in used_tensors(node) for node in self.nodes)
        if not free:
            self._add("Identity", [now], name)
            return
        maker = next(node for node in self.nodes if value in node.output)
        maker.output[list(maker.output).index(value)] = name
        self.own[value] = name

    def _stack(self, name: str, parts: Sequence[str], axis: int) -> None:
        """Join results along a new axis."""
        lifted: list[str] = []
        for part in parts:
            if self.opset >= _AXES_ARE_INPUTS:
                axes = self._constant(f"{name}/axis", np.array([axis], np.int64))
                lifted.append(self._add("Unsqueeze", [part, axes], f"{name}/{len(lifted)}"))
            else:
                lifted.append(self._add("Unsqueeze", [part], f"{name}/{len(lifted)}", axes=[axis]))
        self._add("Concat", lifted, name, axis=axis)

    # ---- values ----------------------------------------------------------------------------------------------------

    def _value(self, tensor: str) -> np.ndarray | None:
        return self.known.values.get(tensor) if tensor else None

    def _constant(self, name: str, value: np.ndarray) -> str:
        if name not in self.known.values:
            self.graph.initializer.append(numpy_helper.from_array(value, name))
            self._learn_constant(self.graph.initializer[-1])
        return name

    def _learn_constant(self, tensor: onnx.TensorProto) -> None:
        one = onnx.GraphProto(initializer=[tensor])
        found = strip_weights(one, "")
        self.known.constants |= found.constants
        self.known.shapes.update(found.shapes)
        self.known.values.update(found.values)


def _graph(node: Node, name: str) -> onnx.GraphProto:
    found: onnx.GraphProto | None = next(
        (a.g for a in node.proto.attribute if a.name == name and a.HasField("g")), None
    )
    if found is None:
        raise InputError(f"operator {node.label!r} ({node.op}): its {name} is missing")
    return found


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of a node with other names of tensors, in the graphs that it holds too."""
    new = deepcopy(node)
    new.input[:] = [names.get(name, name) for name in node.input]
    new.output[:] = [names.get(name, name) for name in node.output]
    for attribute in new.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            _rename(graph, names)
    return new


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a graph takes from outside."""
    inner = {one.name for one in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
    outer = {name: new for name, new in names.items() if name not in inner}
    refill(graph.node, [_renamed(node, outer) for node in graph.node])
    for one in graph.output:
        one.name = outer.get(one.name, one.name)


#: Operators that run graphs.
CONTROL: Mapping[str, Callable[[_Unroller, Node], None]] = {
    "If": _Unroller.branch, "Loop": _Unroller.loop, "Scan": _Unroller.scan,
}  # fmt: skip
