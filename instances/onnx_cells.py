"""What happens to the gates and states of recurrent cells, element by element, as nodes of ONNX.

The equations are those of the operators LSTM, GRU and RNN of ONNX: f, g and h are the activations of the node, `x` what
a gate is before them. An example, the cell of an LSTM: ``C = f(x_forget) * C_before + f(x_input) * g(x_cell)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from instances.onnx_graph import Unsupported
from instances.onnx_steps import Body, Steps

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

    def rnn(self, body: Body, read: Sequence[str]) -> Body:
        """The state of a sum."""
        self._active(body, 0, self._tensors(read)[0])
        return body

    def lstm_cell(self, body: Body, read: Sequence[str]) -> Body:
        """Of the gates input, forget and cell (each of state and inputs) and the cell before, the cell."""
        one, two, three, four, five, six, before = self._tensors(read)
        enters = self._active(body, 0, body.add("Add", one, two))
        if self.coupled:
            stays = body.add("Sub", self._number(1.0), enters)
        else:
            stays = self._active(body, 0, body.add("Add", three, four))
        new = self._active(body, 1, body.add("Add", five, six))
        body.add("Add", body.add("Mul", stays, before), body.add("Mul", enters, new))
        return body

    def lstm_state(self, body: Body, read: Sequence[str]) -> Body:
        """Of the output gate and the cell, the state; the cell is not clipped."""
        one, two, cell = self._tensors(read)
        opens = self._active(body, 0, body.add("Add", one, two))
        clip, self.clip = self.clip, 0.0
        body.add("Mul", opens, self._active(body, 2, cell))
        self.clip = clip
        return body

    def _between(self, body: Body, update: str, new: str, before: str) -> Body:
        """``(1 - z) * new + z * before``."""
        rest = body.add("Sub", self._number(1.0), update)
        body.add("Add", body.add("Mul", rest, new), body.add("Mul", update, before))
        return body

    def gru_at_once(self, body: Body, read: Sequence[str]) -> Body:
        """Of all gates (update, reset, new) and the state before, the state; what comes of that is reset."""
        one, two, three, four, five, six, before = self._tensors(read)
        update = self._active(body, 0, body.add("Add", one, two))
        reset = self._active(body, 0, body.add("Add", three, four))
        new = self._active(body, 1, body.add("Add", body.add("Mul", reset, five), six))
        return self._between(body, update, new, before)

    def gru_reset(self, body: Body, read: Sequence[str]) -> Body:
        """Of the reset gate and the state before, the state that is multiplied."""
        one, two, before = self._tensors(read)
        body.add("Mul", self._active(body, 0, body.add("Add", one, two)), before)
        return body

    def gru(self, body: Body, read: Sequence[str]) -> Body:
        """Of what is new, the update gate and the state before, the state."""
        one, two, three, four, before = self._tensors(read)
        new = self._active(body, 1, body.add("Add", one, two))
        update = self._active(body, 0, body.add("Add", three, four))
        return self._between(body, update, new, before)
