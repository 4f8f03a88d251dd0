"""Functions of integers that make integers, without real numbers: by multipliers, by tables, of whole rows.

What a file says is a chain: DequantizeLinear, functions, QuantizeLinear. Whoever computes it without floats has one
step from integers to integers: a multiplier where scales change alone, numbers are cut off, or those below 0 take a
factor; of 16 bits a table and the line between two of its places (`solver.uses.emit.fixed`); of a softmax a table of
exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, log2, pi, prod, sqrt

import numpy as np

from instances.network.operators import Operator
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.fixed import exponentials, hard_swish, interpolated, listed, sigmoids, softmax_tables
from solver.uses.emit.kinds import BYTES, C_TYPES, QUANTISED, Grid, grid_of
from solver.uses.emit.pointwise import clip_of
from solver.uses.emit.requantise import multiplier_of, shares
from solver.uses.emit.text import block, whole_numbers

#: Sums of so many exponentials at the most stay in 32 bits.
_LONGEST = 2**12 - 1


def rescaled(
    model: OnnxModel, some: Sequence[Operator], rule: str, name: str, coordinates: Sequence[str]
) -> tuple[int, list[str], list[str]] | None:
    """How integers of a scale become those of another one: nodes behind the first, tables, C. None if they do not.

    Between the two there may be functions that cut numbers off, or before these one of `_function` or `_between`.
    """
    nodes = [model.node(one.name) for one in some]
    last = next((k for k, node in enumerate(nodes) if node.op == "QuantizeLinear"), 0)
    if not last or nodes[0].op != "DequantizeLinear":
        return None
    before, behind = (grid_of(model, nodes[k]) for k in (0, last))
    if before.axis is not None or behind.axis is not None or any(model.body(one.name) for one in some[: last + 1]):
        return None
    if not {before.kind, behind.kind} <= set(QUANTISED):
        return None
    if (found := _between(nodes[1:last], before, behind, name)) is not None:
        return last, *found
    ratio, (lo, hi), first = _ratio(before, behind, single=last > 1), behind.limits, 1
    made, tables = by(rule, ratio, f"((int32_t)x - {before.one_zero})"), list[str]()
    if last > 1 and (one := _function(model, nodes[1], some[1], (before, behind), rule, name, coordinates)) is not None:
        (tables, made), first = one, 2
    for node in nodes[first:last]:
        if (ends := clip_of(model, node)) is None:
            return None
        least, most = (np.rint(np.float32(end) / behind.scale[0]) + behind.one_zero for end in ends)
        lo, hi = int(min(max(lo, least), hi)), int(max(min(hi, most), lo))
    return last, tables, [f"x = (float)certile_limit({made} + {behind.one_zero}, {lo}, {hi});"]


def by(rule: str, factor: float, value: str) -> str:
    """Return an integer times a factor, as C."""
    multiplier, shift = multiplier_of(factor)
    return f"certile_requantise_{rule}({value}, {multiplier}, {shift})"


def _ratio(before: Grid, behind: Grid, times: float = 1.0, *, single: bool = True) -> float:
    """What integers are multiplied by; TFLite divides in double precision only where nothing but scales changes."""
    one = np.float32 if single else np.float64
    return float(one(before.scale[0]) * one(times) / one(behind.scale[0]))


def _function(
    model: OnnxModel, node: Node, operator: Operator, grids: tuple[Grid, Grid], rule: str, name: str,
    coordinates: Sequence[str],
) -> tuple[list[str], str] | None:  # fmt: skip
    """A function that is no clip, before limits and zero point of its result: tables, C. None for others."""
    before, behind = grids
    centred, tables = f"((int32_t)x - {before.one_zero})", list[str]()
    plain = by(rule, _ratio(before, behind), centred)
    match node.op:
        case "Abs":
            return [], by(rule, _ratio(before, behind), f"({centred} < 0 ? -{centred} : {centred})")
        case "LeakyRelu":
            below = by(rule, _ratio(before, behind, node.number("alpha", 0.01)), centred)
            return [], f"({centred} < 0 ? {below} : {plain})"
        case "PRelu" if (slopes := _slopes(model, node, operator)) is not None:
            tables.append(whole_numbers(f"{name}_slope", "int32_t", slopes[0]))
            below = by(rule, _ratio(before, behind, slopes[1]), f"{centred} * {name}_slope[{coordinates[1]}]")
            return tables, f"({centred} < 0 ? {below} : {plain})"
        case "Add" | "Sub" | "Mul":
            return _with_constant(model, node, grids, rule)
    return None


def _with_constant(model: OnnxModel, node: Node, grids: tuple[Grid, Grid], rule: str) -> tuple[list[str], str] | None:
    """A sum or a product of a map and one quantised number, as of two maps (`Arithmetic.of_maps`)."""
    swapped = model.is_constant(node.input(0))
    found, (before, behind) = model.quantised(node.input(1 - swapped)), grids
    if found is None or found.integers.size > 1 or found.integers.dtype.itemsize > BYTES[before.kind]:
        return None
    number, scale = int(found.integers.ravel()[0]) - int(found.zero.ravel()[0]), float(found.scale.ravel()[0])
    centred = f"((int32_t)x - {before.one_zero})"
    if node.op == "Mul":
        fits = before.reach * abs(number) < 2**31
        return ([], by(rule, _ratio(before, behind, scale), f"{centred} * {number}")) if fits else None
    scales = [float(before.scale[0]), scale]
    (one, two), left = shares(scales, BYTES[before.kind], (before.reach, abs(number)))
    first, second = (
        f"certile_requantise_{rule}({value} * {1 << left}, {pair[0]}, {pair[1]})"
        for value, pair in ((centred, one), (number, two))
    )
    total = f"{second} - {first}" if swapped and node.op == "Sub" else f"{first} {'-+'[node.op == 'Add']} {second}"
    return [], by(rule, 2 * max(scales) / (1 << left) / float(behind.scale[0]), f"(int32_t)({total})")


def _slopes(model: OnnxModel, node: Node, operator: Operator) -> tuple[list[int], float] | None:
    """The integers, by channel, and the scale of what numbers below 0 are multiplied by; None if they are not such."""
    found = model.quantised(node.input(1))
    if found is None or found.scale.size > 1:
        return None
    channels = operator.shape[1]
    if found.integers.size not in (1, channels) or found.integers.shape[-3:-2] not in ((), (found.integers.size,)):
        return None
    integers = found.integers.astype(np.int64).reshape(-1) - int(found.zero.reshape(-1)[0])
    return np.broadcast_to(integers, channels).tolist(), float(found.scale.reshape(-1)[0])


def _between(nodes: Sequence[Node], before: Grid, behind: Grid, name: str) -> tuple[list[str], list[str]] | None:
    """A function of integers that a table has: all of 8 bits, or of 16 places with lines between. The table, C."""
    ops, (low, _) = [node.op for node in nodes], behind.limits
    scales = float(before.scale[0]), before.one_zero, float(behind.scale[0]), behind.one_zero
    if before.kind != behind.kind or before.kind == "u16" or (before.kind == "i16" and (scales[1] or scales[3])):
        return None
    if before.kind == "i16" and ops in (["Sigmoid"], ["Tanh"]) and behind.scale[0] == np.float32(2.0**-15):
        multiplier, shift = _steps(scales[0], 1 + (ops == ["Tanh"]))
        table = whole_numbers(f"{name}_sigmoid", "uint16_t", sigmoids())
        called = "logistic" if ops == ["Sigmoid"] else "tanh"
        return [table], [f"x = (float)certile_{called}((int32_t)x, {multiplier}, {shift}, {name}_sigmoid);"]
    function = _real(nodes, *((np.float32(end) - behind.one_zero) * behind.scale[0] for end in behind.limits))
    if before.kind == "i16":
        if function is None or ops[0] in _BYTES_ALONE:
            return None
        table = whole_numbers(f"{name}_line", "int16_t", interpolated(function, *scales))
        return [table], [f"x = (float)certile_between((int32_t)x, {name}_line);"]
    found = hard_swish(*scales, low) if ops == ["HardSwish"] else None
    if found is None and function is not None:
        found = listed(function, *scales, low)
    if found is None:
        return None
    return [whole_numbers(f"{name}_table", C_TYPES[before.kind], found)], [f"x = {name}_table[(int32_t)x - {low}];"]


#: Functions that TFLite has of integers of 8 bits, and not of 16 by such tables.
_BYTES_ALONE = ("Elu", "HardSwish", "Sigmoid", "Tanh")


def _real(nodes: Sequence[Node], low: np.floating, high: np.floating) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function of real numbers that TFLite has in a table, with results up to an end where it has none; else None."""
    match [node.op for node in nodes]:
        case ["Exp"]:
            return np.exp
        case ["Tanh"]:
            return np.tanh
        case ["Sigmoid"]:
            return lambda x: 1 / (1 + np.exp(-x))
        case ["Elu"] if nodes[0].number("alpha", 1.0) == 1:
            return lambda x: np.where(x < 0, np.expm1(x), x)
        case ["HardSwish"]:
            return lambda x: x * np.clip(x / 6 + 0.5, 0, 1)
        case ["Log"]:
            return lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), low)
        case ["Sqrt", "Reciprocal"]:
            return lambda x: np.where(x > 0, 1 / np.sqrt(np.where(x > 0, x, 1)), high)
        case ["Gelu"] if nodes[0].text("approximate", "none") == "tanh":
            return lambda x: 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
        case ["Gelu"]:
            return lambda x: np.array([0.5 * one * erfc(-one * sqrt(0.5)) for one in x.tolist()])
    return None


def _steps(scale: float, shifts: int) -> tuple[int, int]:
    """What integers are multiplied by, and shifted right then, to count 3 * 4096ths.

    Scales of 2^-12 (and 2^-11, if `shifts` is 2) take whole numbers.
    """
    power = round(log2(scale))
    if abs(log2(scale) - power) < 1e-3 and 0 <= 12 + power < shifts:
        return 3 << 12 + power, 0
    factor, shift = scale * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(factor), shift


def softmax(model: OnnxModel, some: Sequence[Operator], to: str, source: str) -> list[str]:
    """Return the call of a softmax of integers, on arrays whose elements lie one after the other; none for others.

    `some`: from the dequantiser to the quantiser, maybe with a factor in front of the softmax. Results are parts of 256
    (of 32768 where they are of 16 bits) from the smallest integer on, as TFLite has them.
    """
    nodes = [model.node(one.name) for one in some]
    ops = [node.op for node in nodes]
    if ops not in (["DequantizeLinear", *factor, "Softmax", "QuantizeLinear"] for factor in ([], ["Mul"])):
        return []
    before, behind = grid_of(model, nodes[0]), grid_of(model, nodes[-1])
    beta = _factor(model, nodes[1]) if len(nodes) > 3 else 1.0
    if before.axis is not None or behind.axis is not None or before.kind != behind.kind or beta is None:
        return []
    shape, at = some[-2].shape, nodes[-2].integer("axis", -1) % len(some[-2].shape)
    wide = before.kind == "i16"
    parts, zero = (2**15, 0) if wide else (2**8, behind.limits[0])
    fits = model.opset >= 13 and shape[at] <= _LONGEST and before.kind in ("i8", "u8", "i16")
    if not fits or behind.one_zero != zero or abs(float(behind.scale[0]) * parts - 1) > 1e-3:
        return []
    given = f"{to}, {source}, {prod(shape[:at])}, {shape[at]}, {prod(shape[at + 1 :])}"
    if not wide:
        tables = [whole_numbers("exps", "int32_t", exponentials(float(before.scale[0]) * beta))]
        return block("", [*tables, f"certile_softmax8({given}, {zero}, exps);"])
    exps, shares = softmax_tables()
    tables = [whole_numbers("exps", "int16_t", exps), whole_numbers("parts", "int16_t", shares)]
    multiplier, shift = multiplier_of(float(before.scale[0] * np.float32(beta)) / (10 / 65535))
    return block("", [*tables, f"certile_softmax16({given}, {multiplier}, {shift}, exps, parts);"])


def _factor(model: OnnxModel, node: Node) -> float | None:
    """What a node multiplies all elements by; None if that is not one constant."""
    constants = [model.constant(tensor) for tensor in node.proto.input if model.is_constant(tensor)]
    return float(constants[0].ravel()[0]) if len(constants) == 1 and constants[0].size == 1 else None
