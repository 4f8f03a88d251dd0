"""Element-wise functions of ONNX in C: each changes a float x where it stands, by constants of its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from instances.network.operators import Operator, Shape
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.kinds import QUANTISERS, Grid, grid_of, require
from solver.uses.emit.text import floats_of, literal
from solver.uses.emit.values import rows_of

#: Functions without parameters, of x.
PLAIN = {
    "Relu": "x > 0 ? x : 0", "Sigmoid": "1 / (1 + expf(-x))", "Tanh": "tanhf(x)", "Exp": "expf(x)", "Log": "logf(x)",
    "Sqrt": "sqrtf(x)", "Abs": "fabsf(x)", "Neg": "-x", "Reciprocal": "1 / x", "Erf": "erff(x)", "Floor": "floorf(x)",
    "Ceil": "ceilf(x)", "Round": "rintf(x)", "Sin": "sinf(x)", "Cos": "cosf(x)", "Tan": "tanf(x)",
    "Softplus": "logf(1 + expf(x))", "Softsign": "x / (1 + fabsf(x))", "Sign": "(x > 0) - (x < 0)",
    "HardSwish": "x * certile_fmin(certile_fmax(x / 6 + 0.5f, 0), 1)",
    "Mish": "x * tanhf(logf(1 + expf(x)))", "Identity": "x",
    "Dropout": "x", "Cast": "x", "CastLike": "x",
}  # fmt: skip
#: Functions with numbers as attributes: their defaults, and the expression.
WITH_NUMBERS: dict[str, tuple[dict[str, float], str]] = {
    "LeakyRelu": ({"alpha": 0.01}, "x < 0 ? {alpha} * x : x"),
    "Elu": ({"alpha": 1.0}, "x < 0 ? {alpha} * (expf(x) - 1) : x"),
    "Celu": ({"alpha": 1.0}, "certile_fmax(0, x) + certile_fmin(0, {alpha} * (expf(x / {alpha}) - 1))"),
    "Selu": (
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
        "{gamma} * (x > 0 ? x : {alpha} * (expf(x) - 1))",
    ),
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, "certile_fmin(certile_fmax({alpha} * x + {beta}, 0), 1)"),
    "Shrink": ({"lambd": 0.5, "bias": 0.0}, "x < -{lambd} ? x + {bias} : x > {lambd} ? x - {bias} : 0"),
    "ThresholdedRelu": ({"alpha": 1.0}, "x > {alpha} ? x : 0"),
    "Swish": ({"alpha": 1.0}, "x / (1 + expf(-{alpha} * x))"),
}
#: Functions of a form of their own (`stage`).
OTHERS = ("BatchNormalization", "Clip", "Gelu", *QUANTISERS)
#: Functions of x and another operand y.
BINARY = {
    "Add": "x + y", "Sum": "x + y", "Sub": "x - y", "Mul": "x * y", "Div": "x / y", "Max": "certile_fmax(x, y)",
    "Min": "certile_fmin(x, y)", "Pow": "powf(x, y)", "PRelu": "x < 0 ? y * x : x",
}  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """What becomes of an element: tables of constants (name, values), and statements that change x."""

    tables: tuple[tuple[str, np.ndarray], ...]
    statements: tuple[str, ...]

    def lines(self) -> list[str]:
        """The tables as C."""
        return [floats_of(name, values) for name, values in self.tables]


def stage(model: OnnxModel, operator: Operator, name: str, coordinates: Sequence[str]) -> Stage | None:
    """Return what an element-wise operator of one input does; None if it looks at more than one element.

    Tables' names begin with `name`; `coordinates` are C texts of the element's place along every axis of its tensor.
    """
    node = model.node(operator.name)
    if nodes := model.body(operator.name):
        made = body(model, nodes, {model.tensor_of[operator.inputs[0]]: "given"}, operator.shape, name, coordinates)
        return Stage(made.tables, ("{ const float given = x;", *made.statements, "}"))
    if node.op in QUANTISERS:
        return quantiser(grid_of(model, node), name, coordinates, rounds=node.op == "QuantizeLinear")
    if (text := _formula(model, node)) is not None:
        return Stage((), (f"x = {text};",))
    if node.op == "BatchNormalization":
        factor, addend = norm_of(model, node)
        for behind in model.folded.get(operator.name, ()):
            factor, addend = by_channel(model, Node(behind), factor, addend)
        channel = coordinates[1]
        tables = (f"{name}_factor", factor), (f"{name}_addend", addend)
        return Stage(tables, (f"x = x * {name}_factor[{channel}] + {name}_addend[{channel}];",))
    if node.op in BINARY:
        return _with_constants(model, node, operator.shape, name, coordinates)
    return None


def _formula(model: OnnxModel, node: Node) -> str | None:
    """A function of one element, of x."""
    if node.op in PLAIN:
        return PLAIN[node.op]
    if node.op in WITH_NUMBERS:
        numbers, text = WITH_NUMBERS[node.op]
        return text.format(**{key: literal(node.number(key, default)) for key, default in numbers.items()})
    if node.op == "Gelu":
        if node.text("approximate", "none") == "tanh":
            return "0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)))"
        return "0.5f * x * (1 + erff(x * 0.70710678f))"
    if (ends := clip_of(model, node)) is not None:
        return f"certile_fmin(certile_fmax(x, {literal(ends[0])}), {literal(ends[1])})"
    return None


def body(
    model: OnnxModel, nodes: Sequence[Node], operands: Mapping[str, str], shape: Shape, name: str,
    coordinates: Sequence[str],
) -> Stage:  # fmt: skip
    """Return what several element-wise nodes do to an element, one after the other; their last result becomes x.

    `operands`: by tensor that they read the C text of its element, which is neither x nor y; `name`, `coordinates` as
    of `stage`. Raises InputError for a function that is not known.
    """
    known, tables, lines = dict(operands), list[tuple[str, np.ndarray]](), list[str]()
    for number, node in enumerate(nodes):
        text = BINARY.get(node.op) or _formula(model, node)
        require(text, f"operator {node.label} ({node.op})", "its function is not known")
        given = [node.input(k) for k in range(2 if node.op in BINARY else 1)]
        for tensor in given:
            if tensor not in known:
                table, known[tensor] = _constant(model, tensor, f"{name}_{len(tables)}", shape, coordinates)
                tables += table
        values = ", ".join(f"{letter} = {known[tensor]}" for letter, tensor in zip("xy", given, strict=False))
        made = f"made_{number}"
        lines += [f"float {made};", f"{{ const float {values}; {made} = {text}; }}"]
        known[node.output] = made
    return Stage(tuple(tables), ("{", *lines, f"x = {known[nodes[-1].output]};", "}"))


def quantiser(grid: Grid, name: str, coordinates: Sequence[str], *, rounds: bool = False) -> Stage:
    """Return how an integer becomes what it stands for, or (`rounds`) a real number an integer (as a float).

    Scales and zero points along an axis are in tables; `name`, `coordinates` as of `stage`.
    """
    tables: tuple[tuple[str, np.ndarray], ...] = ()
    scale, zero = literal(float(grid.scale[0])), literal(grid.one_zero)
    if grid.axis is not None:
        tables = (f"{name}_scale", grid.scale), (f"{name}_zero", grid.zero)
        scale, zero = (f"{table}[{coordinates[grid.axis]}]" for table, _ in tables)
    if not rounds:
        return Stage(tables, (f"x = (x - {zero}) * {scale};",))
    lo, hi = (f"{literal(end)} - {zero}" for end in grid.limits)
    return Stage(tables, (f"x = certile_round(x / {scale}, {lo}, {hi}) + {zero};",))


def clip_of(model: OnnxModel, node: Node) -> tuple[float, float] | None:
    """Return the limits of a Relu or Clip; None for other functions."""
    if node.op != "Clip":
        return (0.0, np.inf) if node.op == "Relu" else None
    lo, hi = node.number("min", -np.inf), node.number("max", np.inf)
    lo = float(model.constant(node.input(1)).ravel()[0]) if node.input(1) else lo
    return lo, float(model.constant(node.input(2)).ravel()[0]) if node.input(2) else hi


def norm_of(model: OnnxModel, node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Return factor and addend of a batch norm by channel."""
    scale, shift, mean, variance = (model.constant(node.input(k)).astype(np.float64) for k in range(1, 5))
    factor = scale / np.sqrt(variance + node.number("epsilon", 1e-5))
    return factor, shift - mean * factor


def by_channel(model: OnnxModel, node: Node, factor: np.ndarray, addend: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return factor and addend by channel of what stands before a node, with the node: a norm, or a constant."""
    if node.op == "BatchNormalization":
        mine = norm_of(model, node)
        return factor * mine[0], addend * mine[0] + mine[1]
    tensor = next(t for t in node.proto.input if model.is_constant(t))
    value = np.broadcast_to(model.constant(tensor).astype(np.float64).reshape(-1), len(addend))
    if node.op in ("Add", "Sub"):
        return factor, addend + (value if node.op == "Add" else -value)
    times = value if node.op == "Mul" else 1 / value
    return factor * times, addend * times


def _with_constants(model: OnnxModel, node: Node, shape: Shape, name: str, coordinates: Sequence[str]) -> Stage:
    """A sum, product and the like of a tensor and constants."""
    tables, statements = list[tuple[str, np.ndarray]](), list[str]()
    names = [t for t in node.proto.input if t]
    constants = [t for t in names if model.is_constant(t)]
    for k, tensor in enumerate(constants):
        table, text = _constant(model, tensor, f"{name}_{k}", shape, coordinates)
        tables += table
        swapped = node.op in ("Sub", "Div", "Pow") and names.index(tensor) == 0
        expression = BINARY[node.op].translate(str.maketrans("xy", "yx") if swapped else {})
        statements.append(f"{{ const float y = {text}; x = {expression}; }}")
    return Stage(tuple(tables), tuple(statements))


def _constant(
    model: OnnxModel, tensor: str, table: str, shape: Shape, coordinates: Sequence[str]
) -> tuple[list[tuple[str, np.ndarray]], str]:  # fmt: skip
    """An element of a constant that is broadcast to a shape, as C, and a table of this name if it has several."""
    value = model.constant(tensor).astype(np.float64)
    if value.size == 1:
        return [], literal(float(value.ravel()[0]))
    padded = (1,) * (len(shape) - value.ndim) + value.shape
    axes = zip(padded, rows_of(padded), coordinates, strict=True)
    terms = [f"({at}) * {pitch}" if pitch > 1 else at for size, pitch, at in axes if size > 1]
    return [(table, value)], f"{table}[{' + '.join(terms)}]"
