"""LSTM and RNN, in one direction or both: the operator of ONNX where that computes the same, else step by step.

Step by step are LSTMs that ONNX has no word for: those that clip cells or have a projection, one gate for input and
forgetting (CIFG: the input takes what is left of 1), gates that see the cell (peepholes), or another activation.
The inputs of all steps are one product then, and the state of each step one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tflite

from instances.tflite.layers import bias_of, weights_of
from instances.tflite.model import Operator
from instances.tflite.pointwise import activated
from instances.tflite.recurrent import kept
from instances.tflite.scope import Converters, Scope, Untranslatable

CONVERTERS = Converters()

#: Gates in the order of TFLite.
_IN, _FORGET, _CELL, _OUT = range(4)
#: The same in that of ONNX.
_GATES = (_IN, _OUT, _FORGET, _CELL)
_ACTIVATIONS = {
    tflite.ActivationFunctionType.TANH: "Tanh", tflite.ActivationFunctionType.RELU: "Relu",
}  # fmt: skip
#: Longer sequences are no steps of a plan.
_MOST_STEPS = 512


@dataclass(frozen=True)
class _Lane:
    """A direction of an operator: its tensors, -1 for those that are not given."""

    x: int
    weights: tuple[int, ...]
    recurrent: tuple[int, ...]
    biases: tuple[int, ...]
    """`weights`, `recurrent`, `biases`: by gate."""
    states: tuple[int, ...]
    """The state, and that of the cells."""
    peepholes: tuple[int, ...] = ()
    projection: tuple[int, ...] = (-1, -1)
    """Weights and biases."""
    label: str = ""
    backwards: bool = False

    @property
    def direction(self) -> str:
        """As ONNX calls it."""
        return "reverse" if self.backwards else "forward"


def _lanes(operator: Operator, label: str) -> list[_Lane]:
    """The directions of an LSTM."""
    both = operator.name.startswith("BI")

    def lane(first: int, states: tuple[int, int], *, backwards: bool = False) -> _Lane:
        given = [operator.input(first + k) for k in range(17)]
        return _Lane(
            operator.input(0), tuple(given[:4]), tuple(given[4:8]), tuple(given[11:15]),
            tuple(operator.input(k) for k in states), tuple(given[8:11]), tuple(given[15:17]),
            f"{label}/back" if backwards else label, backwards,
        )  # fmt: skip

    return [lane(1, (35, 36)), lane(18, (37, 38), backwards=True)] if both else [lane(1, (18, 19))]


@CONVERTERS.of("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(scope: Scope, operator: Operator) -> None:
    both, label = operator.name.startswith("BI"), scope.label(operator)
    if any(operator.input(k) >= 0 for k in (range(39, 48) if both else range(20, 24))):
        raise Untranslatable("it has an auxiliary input" if both else "it has norms")
    read, made = _by_time(scope, operator, scope.value(operator.input(0)), label), list[str]()
    for lane in _lanes(operator, label):
        if any(k >= 0 and len(scope.shape(k)) != 2 for k in (*lane.weights, *lane.recurrent)):
            raise Untranslatable("its weights are diagonals")
        tanh = operator.option("FusedActivationFunction") == tflite.ActivationFunctionType.TANH
        others = lane.weights[_IN] < 0 or max(*lane.peepholes, *lane.projection) >= 0 or operator.option("CellClip") > 0
        made.append((_by_steps if others or not tanh else _at_once)(scope, operator, lane, read))
    _results(scope, operator, made, label)


def _at_once(scope: Scope, operator: Operator, lane: _Lane, read: str) -> str:
    """An LSTM as ONNX has it."""
    label, (batch, units) = lane.label, scope.shape(lane.states[0])
    weights, recurrent = (
        scope.shaped(_joined(scope, [some[k] for k in _GATES], label), (1, 4 * units, -1), label)
        for some in (lane.weights, lane.recurrent)
    )
    begins = [scope.shaped(scope.value(k), (1, batch, units), f"{label}/begin") for k in lane.states]
    biases = _biases(scope, lane, _GATES, units)
    made, *lasts = scope.several(
        "LSTM", (read, weights, recurrent, biases, "", *begins), 3, name=label, hidden_size=units,
        direction=lane.direction,
    )  # fmt: skip
    for k, last in zip(lane.states, lasts, strict=True):
        kept(scope, k, scope.shaped(last, scope.shape(k), f"{label}/state"))
    return scope.shaped(made, (-1, batch, units), f"{label}/steps")


def _by_steps(scope: Scope, operator: Operator, lane: _Lane, read: str) -> str:
    """An LSTM as TFLite has it."""
    label, (state, cell) = lane.label, map(scope.value, lane.states)
    gates = [k for k in range(4) if lane.weights[k] >= 0]
    (batch, units), channels = scope.shape(lane.states[1]), scope.shape(lane.weights[_CELL])[1]
    steps = int(np.prod(scope.shape(lane.x))) // (batch * channels)
    if steps > _MOST_STEPS:
        raise Untranslatable(f"{steps} steps; up to {_MOST_STEPS} are planned")
    weights, recurrent = (_joined(scope, [some[k] for k in gates], label) for some in (lane.weights, lane.recurrent))
    biases = [one for k in gates for one in bias_of(scope, lane.biases[k], lane.x, lane.weights[k])]
    bias = [scope.node("Concat", *biases, name=f"{label}/bias", axis=0)] if len(biases) == len(gates) else []
    rows = scope.shaped(read, (steps * batch, channels), f"{label}/rows")
    whole = scope.node("Gemm", rows, weights, *bias, name=f"{label}/inputs", transB=1)
    given = _parts(scope, whole, [batch] * steps, 0, f"{label}/step")
    made, one = dict[int, str](), _Step(scope, operator, lane, gates, recurrent, units)
    for at in range(steps)[:: -1 if lane.backwards else 1]:
        state, cell = one.run(given[at], state, cell)
        made[at] = scope.shaped(state, (1, batch, scope.shape(lane.states[0])[1]), f"{label}/{at}")
    for k, last in zip(lane.states, (state, cell), strict=True):
        kept(scope, k, last)
    return scope.node("Concat", *(made[at] for at in range(steps)), name=f"{label}/steps", axis=0)


@dataclass(frozen=True)
class _Step:
    """What a step of such an LSTM does."""

    scope: Scope
    operator: Operator
    lane: _Lane
    gates: Sequence[int]
    recurrent: str
    units: int

    def run(self, given: str, state: str, cell: str) -> tuple[str, str]:
        """Return the state and the cells behind a step, of what its inputs give and those before it."""
        scope, label = self.scope, self.lane.label
        product = scope.node("Gemm", state, self.recurrent, name=f"{label}/state", transB=1)
        total = scope.node("Add", given, product, name=f"{label}/sum")
        parts = dict(zip(self.gates, _parts(scope, total, [self.units] * len(self.gates), 1, label), strict=True))
        stays = self._gate(parts[_FORGET], _FORGET, cell)
        if _IN in parts:
            enters = self._gate(parts[_IN], _IN, cell)
        else:
            one = scope.literal(np.array(1, np.float32))
            enters = scope.node("Sub", one, stays, name=f"{label}/enters")
        new = self._active(parts[_CELL])
        old = scope.node("Mul", stays, cell, name=f"{label}/old")
        cell = scope.node("Add", old, scope.node("Mul", enters, new, name=f"{label}/new"), name=f"{label}/cell")
        cell = self._clipped(cell, "CellClip")
        opens = self._gate(parts[_OUT], _OUT, cell)
        state = scope.node("Mul", opens, self._active(cell), name=f"{label}/opened")
        weights, bias = self.lane.projection
        if weights >= 0:
            held = weights_of(scope, weights, (0, 1)), *bias_of(scope, bias, self.lane.states[0], weights)
            state = scope.node("Gemm", state, *held, name=f"{label}/projection", transB=1)
            state = self._clipped(state, "ProjClip")
        return state, cell

    def _gate(self, value: str, gate: int, cell: str) -> str:
        scope, label = self.scope, self.lane.label
        sees = self.lane.peepholes[{_IN: 0, _FORGET: 1, _OUT: 2}[gate]]
        if sees >= 0:
            seen = scope.node("Mul", cell, weights_of(scope, sees, (0,)), name=f"{label}/seen")
            value = scope.node("Add", value, seen, name=f"{label}/sees")
        return scope.node("Sigmoid", value, name=f"{label}/gate")

    def _active(self, value: str) -> str:
        return activated(self.scope, value, self.operator.option("FusedActivationFunction"), self.lane.label)

    def _clipped(self, value: str, option: str) -> str:
        if (most := float(self.operator.option(option))) <= 0:
            return value
        ends = (self.scope.literal(np.array(end, np.float32)) for end in (-most, most))
        return self.scope.node("Clip", value, *ends, name=f"{self.lane.label}/clip")


def _parts(scope: Scope, held: str, sizes: Sequence[int], axis: int, label: str) -> list[str]:
    if len(sizes) == 1:
        return [held]
    return scope.several("Split", (held, scope.literal(sizes)), len(sizes), name=f"{label}/split", axis=axis)


@CONVERTERS.of("UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN")
def _rnn(scope: Scope, operator: Operator) -> None:
    both, label = operator.name.startswith("BI"), scope.label(operator)
    activation = _ACTIVATIONS.get(operator.option("FusedActivationFunction"))
    if activation is None:
        raise Untranslatable("its activation is neither tanh nor relu")
    if both and any(operator.input(k) >= 0 for k in range(9, 12)):
        raise Untranslatable("it has an auxiliary input")
    read, made = _by_time(scope, operator, scope.value(operator.input(0)), label), list[str]()
    for number in range(1 + both):
        w, r, b, state = (operator.input(4 * number + k) for k in range(1, 5))
        lane = _Lane(operator.input(0), (w,), (r,), (b,), (state,), label=label, backwards=number == 1)
        batch, units = scope.shape(state)
        weights, recurrent = (scope.shaped(weights_of(scope, k, (0, 1)), (1, units, -1), label) for k in (w, r))
        begin = scope.shaped(scope.value(state), (1, batch, units), f"{label}/begin")
        biases = _biases(scope, lane, (0,), units)
        whole, last = scope.several(
            "RNN", (read, weights, recurrent, biases, "", begin), 2, name=label, hidden_size=units,
            activations=[activation], direction=lane.direction,
        )  # fmt: skip
        kept(scope, state, scope.shaped(last, (batch, units), f"{label}/state"))
        made.append(scope.shaped(whole, (-1, batch, units), f"{label}/steps"))
    _results(scope, operator, made, label)


def _joined(scope: Scope, numbers: Sequence[int], label: str) -> str:
    """Weights of all gates, one behind the other."""
    return scope.node("Concat", *(weights_of(scope, k, (0, 1)) for k in numbers), name=f"{label}/weights", axis=0)


def _biases(scope: Scope, lane: _Lane, gates: Sequence[int], units: int) -> str:
    """Biases of all gates for the inputs, and none for the state."""
    label, none = f"{lane.label}/bias", np.zeros(units, np.float32)
    parts = [
        one for k in gates for one in bias_of(scope, lane.biases[k], lane.x, lane.weights[k])
        or (scope.literal(none, label),)
    ]  # fmt: skip
    zeros = scope.literal(np.zeros(units * len(gates), np.float32), label)
    return scope.shaped(scope.node("Concat", *parts, zeros, name=label, axis=0), (1, -1), label)


def _by_time(scope: Scope, operator: Operator, value: str, label: str) -> str:
    """The input as [steps, batch, channels]."""
    if operator.option("TimeMajor"):
        return value
    return scope.node("Transpose", value, name=f"{label}/steps", perm=(1, 0, 2))


def _results(scope: Scope, operator: Operator, made: Sequence[str], label: str) -> None:
    """Say what all directions made, each [steps, batch, units]: joined, if the file says so."""
    if len(made) > 1 and operator.option("MergeOutputs"):
        made = [scope.node("Concat", *made, name=f"{label}/both", axis=2)]
    for y, one in zip(operator.outputs, made, strict=True):
        turned = operator.option("TimeMajor")
        scope.put(y, one if turned else scope.node("Transpose", one, name=f"{label}/rows", perm=(1, 0, 2)))
