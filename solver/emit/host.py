"""Functions of a model that no plan has: element by element behind what several read, and those of whole rows, in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from instances.onnx_graph import Node
from instances.onnx_model import OnnxModel
from instances.operators import Eltwise, Shape
from solver.emit.kinds import BYTES, C_TYPES, FLOATS
from solver.emit.moves import Picked
from solver.emit.pointwise import Stage, require, stage
from solver.emit.text import block, literal
from solver.emit.values import Value

#: Functions of whole rows.
OF_ROWS = (
    "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization", "LogSoftmax", "LpNormalization",
    "RMSNormalization", "Softmax",
)  # fmt: skip


def element_by_element(
    to: Value, source: Value, made: Stage, place: Callable[[Value], str], kinds: tuple[str, str]
) -> list[str]:  # fmt: skip
    """Return loops that apply a stage to every element of a tensor; `kinds`: of the result, and of what is read."""
    names = [f"i{k}" for k in range(len(to.shape))]

    def at(value: Value, kind: str) -> str:
        terms = [
            f"{name} * {pitch}" for name, pitch, size in zip(names, value.pitch, to.shape, strict=True) if size > 1
        ]
        return f"{place(value)} + ({' + '.join(terms) or '0'}) * {BYTES[kind]}"

    wanted, kind = kinds
    cast = "" if wanted in FLOATS else f"({C_TYPES[wanted]})"
    body = [f"float x = certile_get_{kind}({at(source, kind)});", *made.statements,
            f"certile_put_{wanted}({at(to, wanted)}, {cast}x);"]  # fmt: skip
    for name, size in zip(reversed(names), reversed(to.shape), strict=True):
        body = block(f"for (long {name} = 0; {name} < {size}; {name}++)", body)
    return block("", [*made.lines(), *body])


def picked_in_c(to: Value, source: Value, picked: Picked, place: Callable[[Value], str], kind: str) -> list[str]:
    """Return the call that copies those elements of a tensor along every axis that stand in lists."""
    lead = len(to.shape) - len(source.shape)
    tables, names = [], []
    for k, axis in enumerate(picked.axes):
        if k < lead or (len(axis) == source.shape[k - lead] and (axis == np.arange(len(axis))).all()):
            names.append("NULL")
            continue
        tables.append(f"static const long axis{k}[] = {{{', '.join(map(str, axis))}}};")
        names.append(f"axis{k}")

    def numbers(values: Sequence[int]) -> str:
        return "(const long[]){" + ", ".join(map(str, values)) + "}"

    value = int(picked.fill) if kind not in FLOATS else literal(picked.fill)
    fill = [f"unsigned char fill[{BYTES[kind]}];", f"certile_put_{kind}(fill, {value});"]
    call = [
        f"certile_pick({place(to)}, {numbers(to.pitch)}, {place(source)}, {numbers((0,) * lead + source.pitch)},",
        f"             {numbers(to.shape)}, (const long *const[]){{{', '.join(names)}}}, {len(names)},",
        f"             {BYTES[kind]}, fill);",
    ]
    return block("", [*tables, *fill, *call])


def of_rows(model: OnnxModel, operator: Eltwise, to: str, source: str) -> list[str]:
    """Return the call of a function of whole rows, on arrays whose elements lie one after the other.

    Raises
    ------
    InputError
        For a function that is not known.
    """
    node, shape = model.node(operator.name), operator.shape
    if node.op in ("Softmax", "LogSoftmax"):
        outer, size, inner = _along(node, shape, _softmax_axis(model, node, len(shape)))
        return [f"certile_softmax({to}, {source}, {outer}, {size}, {inner}, {int(node.op == 'LogSoftmax')});"]
    if node.op == "LRN":
        numbers = (node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0))
        outer, size, inner = shape[0], shape[1], prod(shape[2:])
        values = ", ".join(map(literal, numbers))
        return [f"certile_lrn({to}, {source}, {outer}, {size}, {inner}, {node.integer('size', 1)}, {values});"]
    if node.op == "LayerNormalization":
        axis = node.integer("axis", -1) % len(shape)
        return _normalised(model, node, to, source, (prod(shape[:axis]), prod(shape[axis:])), shape[axis:], (1, 1))
    if node.op == "RMSNormalization":
        axis = node.integer("axis", -1) % len(shape)
        epsilon, outer, size = literal(node.number("epsilon", 1e-5)), prod(shape[:axis]), prod(shape[axis:])
        scale = np.broadcast_to(model.constant(node.input(1)), shape[axis:]).ravel()
        table = f"static const float scale[] = {{{', '.join(literal(float(v)) for v in scale)}}};"
        return block("", [table, f"certile_rms({to}, {source}, {outer}, {size}, {epsilon}, scale);"])
    if node.op == "LpNormalization":
        axis = node.integer("axis", -1) % len(shape)
        sizes = f"{prod(shape[:axis])}, {shape[axis]}, {prod(shape[axis + 1 :])}"
        return [f"certile_lp({to}, {source}, {sizes}, {node.integer('p', 2)});"]
    require(node.op in OF_ROWS, f"operator {operator.name} ({node.op})", "its function is not known")
    groups = node.integer("num_groups", 1) if node.op == "GroupNormalization" else shape[1]
    held = model.constant(node.input(1)).shape
    rows = (shape[0] * groups, prod(shape[1:]) // groups)
    return _normalised(model, node, to, source, rows, held, (groups, prod(shape[1:]) // held[0]))


def _softmax_axis(model: OnnxModel, node: Node, rank: int) -> tuple[int, int]:
    """The axes that are taken together: up to opset 12 all from one on, since then one."""
    if model.opset < 13:
        return node.integer("axis", 1) % rank, rank
    axis = node.integer("axis", -1) % rank
    return axis, axis + 1


def _along(node: Node, shape: tuple[int, ...], axes: tuple[int, int]) -> tuple[int, int, int]:
    return prod(shape[: axes[0]]), prod(shape[axes[0] : axes[1]]), prod(shape[axes[1] :])


def _normalised(
    model: OnnxModel, node: Node, to: str, source: str, rows: tuple[int, int], held: Shape, places: tuple[int, int]
) -> list[str]:  # fmt: skip
    """Rows (their number and size) with mean 0 and variance 1, scaled and shifted by numbers of the shape `held`.

    `places`: how many rows have numbers of their own, and how many elements beside each other share one.
    """
    tables, names = [], []
    for k, name in ((1, "scale"), (2, "shift")):
        if node.input(k):
            numbers = np.broadcast_to(model.constant(node.input(k)), held).ravel()
            tables.append(f"static const float {name}[] = {{{', '.join(literal(float(v)) for v in numbers)}}};")
        names.append(name if node.input(k) else "NULL")
    given = ", ".join(map(str, (*rows, literal(node.number("epsilon", 1e-5)), *names, *places)))
    return block("", [*tables, f"certile_normalise({to}, {source}, {given});"])


def stage_of(model: OnnxModel, operator: Eltwise, name: str) -> Stage | None:
    """Return what an operator does to every element, by loop variables i0, i1, ...; None if it is no such operator."""
    return stage(model, operator, name, [f"i{k}" for k in range(len(operator.shape))])
