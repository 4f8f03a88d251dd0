"""LSTM, GRU and RNN: one product for the inputs of all steps, then one for the state of each step.

The inputs of all steps are known before the first, so ``X W`` is a single product with constant weights for each
direction. ``h R`` needs the state of the step before: a product for every step, with the same weights in all
(`MatMul.weights_of`). A state that is not given is zeros, which are read from nowhere. The element-wise work of a step
is one operator for each state that it writes, which reads the gates and states that it needs. A GRU that resets the
state before its product (``linear_before_reset`` 0) has two products for every step, each with its part of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from instances.onnx_cells import Cell
from instances.onnx_graph import Graph, Node, Unsupported
from instances.onnx_steps import Body, Means, Steps
from instances.operators import Eltwise, MatMul, Shape

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Longer sequences stay opaque: a network with as many layers is of no use to a plan.
MOST_STEPS = 512
_WEIGHTS, _RECURRENT, _BIAS, _LENGTHS, _STATE, _CELL, _PEEPHOLES = range(1, 8)


@dataclass(frozen=True)
class _Sizes:
    steps: int
    batch: int
    hidden: int
    gates: int
    bias: bool
    directions: int
    batch_first: bool
    reset_first: bool

    @property
    def state(self) -> Shape:
        return (self.batch, self.hidden)


def recurrent(node: Node, graph: Graph) -> None:
    """Convert LSTM, GRU and RNN."""
    sizes = _sizes(node, graph)
    steps = Steps(node, graph)
    source = steps.source(node.input(0))
    if sizes.batch_first:
        source = steps.permute(source, (1, 0, 2), "in")
    lanes = [_Lane(steps, sizes, number).run(source) for number in range(sizes.directions)]
    for k, tensor in enumerate(node.proto.output):
        if not tensor:
            continue
        # all states: steps, directions, batch, features; the last one: directions, batch, features
        shape, axis = ((sizes.steps, 1, *sizes.state), 1) if k == 0 else ((1, *sizes.state), 0)
        parts = [steps.move(lane[k], shape, f"result{k}") for lane in lanes]
        whole = steps.concat(parts, f"both{k}", axis=axis)
        if sizes.batch_first:
            whole = steps.permute(whole, (2, 0, 1, 3) if k == 0 else (1, 0, 2), f"result{k}")
        steps.finish(whole, tensor=tensor)


def _sizes(node: Node, graph: Graph) -> _Sizes:
    batch_first = bool(node.integer("layout", 0))
    steps, batch, inputs = graph.shape(node.input(0))
    steps, batch = (batch, steps) if batch_first else (steps, batch)
    if not all(graph.is_constant(node.input(k)) for k in (_WEIGHTS, _RECURRENT)):
        raise Unsupported("weights that are not constant")
    if node.input(_LENGTHS) and set(graph.integers(node.input(_LENGTHS)) or ()) != {steps}:
        raise Unsupported("sequences of different lengths, or of lengths that are not known")
    if node.input(_PEEPHOLES):
        raise Unsupported("gates that see the cell (peepholes)")
    if steps > MOST_STEPS:
        raise Unsupported(f"{steps} steps; up to {MOST_STEPS} are planned")
    directions, rows, hidden = graph.shape(node.input(_RECURRENT))
    gates = GATES[node.op]
    expected = (2 if node.text("direction", "forward") == "bidirectional" else 1, gates * hidden, inputs)
    if (directions, rows) != expected[:2] or graph.shape(node.input(_WEIGHTS)) != expected:
        raise graph.fault(node, f"weights of shape {graph.shape(node.input(_WEIGHTS))}, {expected} are needed")
    reset_first = gates == GATES["GRU"] and not node.integer("linear_before_reset", 0)
    bias = bool(node.input(_BIAS))
    return _Sizes(steps, batch, hidden, gates, bias, directions, batch_first, reset_first)


class _Lane:
    """One direction."""

    def __init__(self, steps: Steps, sizes: _Sizes, number: int) -> None:
        self.steps, self.sizes, self.number = steps, sizes, number
        self.prefix = "back." if number else ""
        backwards = number == 1 or steps.node.text("direction", "forward") == "reverse"
        self.order = range(sizes.steps)[:: -1 if backwards else 1]
        self.cell = Cell(steps, number)
        self.constants: dict[tuple[str, int, int], str] = {}

    def run(self, source: str) -> tuple[str, str, str]:
        """Add the operators; return those of all states, of the last one, and of the last cell."""
        s, steps = self.sizes, self.steps
        features = s.gates * s.hidden
        given = self._product(source, "x", _WEIGHTS, (0, features))
        state, cell = self._initial(_STATE), self._initial(_CELL) if s.gates == GATES["LSTM"] else ""
        made: dict[int, str] = {}
        for at in self.order:
            state, cell = self._step(at, given, state, cell)
            made[at] = steps.move(state, (1, *s.state), f"{self.prefix}t{at}.h")
        whole = steps.concat([made[at] for at in range(s.steps)], f"{self.prefix}steps", axis=0)
        return whole, state, cell

    def _product(self, source: str, suffix: str, which: int, rows: tuple[int, int], part: str = "") -> str:
        """Multiply inputs or a state by some rows of the weights, and add biases: the first half is of the inputs."""
        node, graph, features = self.steps.node, self.steps.graph, rows[1] - rows[0]
        constants = [self._rows(node.input(which), *rows)]
        if self.sizes.bias:
            half = 0 if which == _WEIGHTS else self.sizes.gates * self.sizes.hidden
            constants.append(self._rows(node.input(_BIAS), *(half + at for at in rows)))
        means = Means("Gemm", constants, {"transB": 1})
        made = self.steps.add(
            MatMul, [source], f"{self.prefix}{suffix}", means, out_features=features, bias=self.sizes.bias
        )  # fmt: skip
        bias = f"{node.input(_BIAS)}{which}" if self.sizes.bias else ""
        return graph.weigh(made, node.input(which), f"{self.prefix}{part}", bias)

    def _rows(self, tensor: str, first: int, end: int) -> str:
        """Some rows of this direction's part of an input of the node."""
        number, key = self.number, (tensor, first, end)
        if key not in self.constants:
            self.constants[key] = self.steps.derive("rows", lambda x: x[number, first:end], tensor)
        return self.constants[key]

    def _initial(self, which: int) -> str:
        """Return the state before the first step: given, constants in DRAM, or zeros."""
        steps, tensor, shape = self.steps, self.steps.node.input(which), self.sizes.state
        name = f"{self.prefix}{'hc'[which - _STATE]}0"
        if not tensor or steps.graph.is_constant(tensor):
            value = steps.graph.value(tensor) if tensor else None
            zeros = not tensor or (value is not None and not value.any())
            number, axis = self.number, 1 if self.sizes.batch_first else 0
            mine = steps.derive(name, lambda x: x.take(number, axis), tensor) if tensor else ""
            mine = mine or steps.derive(name, lambda x: np.zeros(shape, x.dtype), steps.node.input(_WEIGHTS))
            return steps.given(f"{steps.node.label}:{name}", shape, mine, zeros=zeros)
        source = steps.source(tensor)
        if self.sizes.batch_first:
            source = steps.permute(source, (1, 0, 2), name)
        return steps.move(steps.cut(source, (1, *shape), name, (self.number, 0, 0)), shape, name)

    def _step(self, number: int, given: str, state: str, cell: str) -> tuple[str, str]:
        """Return the state and the cell after a step."""
        s, steps, at = self.sizes, self.steps, f"{self.prefix}t{number}"
        mine = steps.cut(given, (1, s.batch, s.gates * s.hidden), f"{at}.x", (number, 0, 0))
        mine = steps.move(mine, (s.batch, s.gates * s.hidden), f"{at}.x")
        last = (s.gates if not s.reset_first else 2) * s.hidden
        product = self._product(state, f"t{number}.R", _RECURRENT, (0, last))
        if s.gates == GATES["RNN"]:
            total = steps.add(Eltwise, [product, mine], f"{at}.sum", Means("Add"), fn="add")
            return steps.add(Eltwise, [total], f"{at}.state", self.cell.rnn(self._body(at), [total]), fn="tanh"), ""

        def gates(*which: int) -> list[str]:
            """Return some gates, each as what comes of the state and what comes of the inputs."""
            return [steps.cut(t, s.state, f"{at}.gate", (0, k * s.hidden)) for k in which for t in (product, mine)]

        def made(what: str, read: list[str], function: Callable[[Body, Sequence[str]], Body]) -> str:
            return steps.add(Eltwise, read, f"{at}.{what}", function(self._body(f"{at}.{what}"), read), fn="mul")

        if s.gates == GATES["LSTM"]:
            cell = made("cell", [*gates(0, 2, 3), cell], self.cell.lstm_cell)
            return made("state", [*gates(1), cell], self.cell.lstm_state), cell
        if not s.reset_first:
            return made("state", [*gates(0, 1, 2), state], self.cell.gru_at_once), ""
        kept = made("reset", [*gates(1), state], self.cell.gru_reset)
        new = self._product(kept, f"t{number}.Rh", _RECURRENT, (last, s.gates * s.hidden), "candidate")
        of_inputs = steps.cut(mine, s.state, f"{at}.gate", (0, last))
        return made("state", [new, of_inputs, *gates(0), state], self.cell.gru), ""

    def _body(self, at: str) -> Body:
        return Body(f"{self.steps.node.label}:{at}")
