"""LSTM, GRU and RNN: one product for the inputs of all steps, then one for the state of each step.

The inputs of all steps are known before the first, so ``X W`` is a single product with constant weights for each
direction. ``h R`` needs the state of the step before: a product for every step, with the same weights in all
(`MatMul.weights_of`). A state that is not given is zeros, which are read from nowhere. The element-wise work of a step
is one operator for each state that it writes, which reads the gates and states that it needs. A GRU that resets the
state before its product (``linear_before_reset`` 0) has two products for every step, each with its part of the weights.

**Cells** say what happens to the gates and states, element by element, as nodes of ONNX. The equations are those of the
operators LSTM, GRU and RNN of ONNX: f, g and h are the activations of the node, `x` what a gate is before them. An
example, the cell of an LSTM: ``C = f(x_forget) * C_before + f(x_input) * g(x_cell)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from instances.network.operators import Eltwise, MatMul, Shape
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.steps import Body, Means, Steps

#: The activations of a direction that a node does not name.
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
#: Activations, with the parameters that they take from `activation_alpha` and `activation_beta`, and their defaults.
_PARAMETERS: dict[str, dict[str, float]] = {
    "Sigmoid": {}, "Tanh": {}, "Relu": {}, "Softsign": {}, "Softplus": {}, "LeakyRelu": {"alpha": 0.01},
    "ThresholdedRelu": {"alpha": 1.0}, "Elu": {"alpha": 1.0}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0}, "Affine": {"alpha": 1.0, "beta": 0.0},
}  # fmt: skip


class Cell:
    """One direction of a recurrent node; operators that a body reads are named."""

    def __init__(self, steps: Steps, number: int) -> None:
        self.steps = steps
        self.clip = steps.node.number("clip", 0.0)
        self.coupled = bool(steps.node.integer("input_forget", 0))
        self.functions = self._functions(number)

    def _functions(self, number: int) -> list[tuple[str, dict[str, float]]]:
        """The activations of this direction; parameters are given in the order of those that have any."""
        node, defaults = self.steps.node, _DEFAULTS[self.steps.node.op]
        names = node.texts("activations") or defaults * (number + 1)
        given = {"alpha": list(node.numbers("activation_alpha")), "beta": list(node.numbers("activation_beta"))}
        found = []
        for name in names:
            known = next((one for one in _PARAMETERS if one.lower() == name.lower()), "")
            if not known:
                raise Unsupported(f"an activation {name!r}")
            values = {k: given[k].pop(0) if given[k] else default for k, default in _PARAMETERS[known].items()}
            found.append((known, values))
        mine = found[number * len(defaults) : (number + 1) * len(defaults)]
        if len(mine) < len(defaults):
            raise Unsupported(f"{len(names)} activations")
        return mine

    def _tensors(self, operators: Sequence[str]) -> list[str]:
        return [self.steps.graph.tensor_of[name] for name in operators]

    def _number(self, value: float) -> str:
        return self.steps.derive("number", lambda: np.asarray(value, np.float32))

    def _active(self, body: Body, which: int, x: str) -> str:
        """An activation of what is first clipped."""
        if self.clip > 0:
            x = body.add("Clip", x, self._number(-self.clip), self._number(self.clip))
        name, values = self.functions[which]
        if name == "ScaledTanh":
            scaled = body.add("Tanh", body.add("Mul", x, self._number(values["beta"])))
            return body.add("Mul", scaled, self._number(values["alpha"]))
        if name == "Affine":
            scaled = body.add("Mul", x, self._number(values["alpha"]))
            return body.add("Add", scaled, self._number(values["beta"]))
        return body.add(name, x, **values)

    def rnn(self, body: Body, read: Sequence[str]) -> None:
        """The state of a sum."""
        self._active(body, 0, self._tensors(read)[0])

    def lstm_cell(self, body: Body, read: Sequence[str]) -> None:
        """Of the gates input, forget and cell (each of state and inputs) and the cell before, the cell."""
        one, two, three, four, five, six, before = self._tensors(read)
        enters = self._active(body, 0, body.add("Add", one, two))
        if self.coupled:
            stays = body.add("Sub", self._number(1.0), enters)
        else:
            stays = self._active(body, 0, body.add("Add", three, four))
        new = self._active(body, 1, body.add("Add", five, six))
        body.add("Add", body.add("Mul", stays, before), body.add("Mul", enters, new))

    def lstm_state(self, body: Body, read: Sequence[str]) -> None:
        """Of the output gate and the cell, the state; the cell is not clipped."""
        one, two, cell = self._tensors(read)
        opens = self._active(body, 0, body.add("Add", one, two))
        clip, self.clip = self.clip, 0.0
        body.add("Mul", opens, self._active(body, 2, cell))
        self.clip = clip

    def _between(self, body: Body, update: str, new: str, before: str) -> None:
        """``(1 - z) * new + z * before``."""
        rest = body.add("Sub", self._number(1.0), update)
        body.add("Add", body.add("Mul", rest, new), body.add("Mul", update, before))

    def gru_at_once(self, body: Body, read: Sequence[str]) -> None:
        """Of all gates (update, reset, new) and the state before, the state; what comes of that is reset."""
        one, two, three, four, five, six, before = self._tensors(read)
        update = self._active(body, 0, body.add("Add", one, two))
        reset = self._active(body, 0, body.add("Add", three, four))
        new = self._active(body, 1, body.add("Add", body.add("Mul", reset, five), six))
        self._between(body, update, new, before)

    def gru_reset(self, body: Body, read: Sequence[str]) -> None:
        """Of the reset gate and the state before, the state that is multiplied."""
        one, two, before = self._tensors(read)
        body.add("Mul", self._active(body, 0, body.add("Add", one, two)), before)

    def gru(self, body: Body, read: Sequence[str]) -> None:
        """Of what is new, the update gate and the state before, the state."""
        one, two, three, four, before = self._tensors(read)
        new = self._active(body, 1, body.add("Add", one, two))
        update = self._active(body, 0, body.add("Add", three, four))
        self._between(body, update, new, before)


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Longer sequences stay opaque: a network with as many layers is of no use to a plan.
MOST_STEPS = 512
_WEIGHTS, _RECURRENT, _BIAS, _LENGTHS, _STATE, _CELL, _PEEPHOLES = range(1, 8)


class _Sizes:
    """The sizes of a node; raises Unsupported for what is not planned."""

    def __init__(self, node: Node, graph: Graph) -> None:
        self.batch_first = bool(node.integer("layout", 0))
        steps, batch, inputs = graph.shape(node.input(0))
        self.steps, self.batch = (batch, steps) if self.batch_first else (steps, batch)
        if not all(graph.is_constant(node.input(k)) for k in (_WEIGHTS, _RECURRENT)):
            raise Unsupported("weights that are not constant")
        if node.input(_LENGTHS) and set(graph.integers(node.input(_LENGTHS)) or ()) != {self.steps}:
            raise Unsupported("sequences of different lengths, or of lengths that are not known")
        if node.input(_PEEPHOLES):
            raise Unsupported("gates that see the cell (peepholes)")
        if self.steps > MOST_STEPS:
            raise Unsupported(f"{self.steps} steps; up to {MOST_STEPS} are planned")
        self.directions, rows, self.hidden = graph.shape(node.input(_RECURRENT))
        self.gates, ways = GATES[node.op], 2 if node.text("direction", "forward") == "bidirectional" else 1
        expected = (ways, self.gates * self.hidden, inputs)
        if (self.directions, rows) != expected[:2] or graph.shape(node.input(_WEIGHTS)) != expected:
            raise graph.fault(node, f"weights of shape {graph.shape(node.input(_WEIGHTS))}, {expected} are needed")
        self.state: Shape = (self.batch, self.hidden)
        self.bias = bool(node.input(_BIAS))
        self.reset_first = node.op == "GRU" and not node.integer("linear_before_reset", 0)


def recurrent(node: Node, graph: Graph) -> None:
    """Convert LSTM, GRU and RNN."""
    sizes = _Sizes(node, graph)
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
            body = self._body(at)
            self.cell.rnn(body, [total])
            return steps.add(Eltwise, [total], f"{at}.state", body, fn="tanh"), ""

        def gates(*which: int) -> list[str]:
            """Return some gates, each as what comes of the state and what comes of the inputs."""
            return [steps.cut(t, s.state, f"{at}.gate", (0, k * s.hidden)) for k in which for t in (product, mine)]

        def made(what: str, read: list[str], function: Callable[[Body, Sequence[str]], None]) -> str:
            body = self._body(f"{at}.{what}")
            function(body, read)
            return steps.add(Eltwise, read, f"{at}.{what}", body, fn="mul")

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
