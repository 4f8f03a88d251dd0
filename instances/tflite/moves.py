"""Operators that move elements: other shapes and orders of axes, parts, joins, pads, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import tflite

from instances.tflite.model import Operator
from instances.tflite.pointwise import activated
from instances.tflite.scope import Converters, Scope, Untranslatable, channels_first

CONVERTERS = Converters()


#: The most that a Slice ends at: beyond any size.
_END = 2**31 - 1


def moved(scope: Scope, x: int, y: int, held: str, *, first: bool = False) -> None:
    """Say which ONNX tensor has the elements of a result that are those of an input, moved.

    Integers stay integers if both have the same scale; else they are made again.
    """
    one, other = scope.tensor(x), scope.tensor(y)
    becomes_real = one.quantised and other.kind.startswith("float")
    if not becomes_real and (not other.quantised or _same_scale(scope, x, y)):
        scope.put_stored(y, held, first=first)
    elif one.quantised:
        scope.put(y, scope.meant(held, x), first=first)
    else:
        raise Untranslatable("its result has other scales than its input")


@CONVERTERS.of("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    before, after = scope.shape(x), scope.shape(y)
    if prod(before) != prod(after):
        raise Untranslatable(f"{list(before)} becomes {list(after)}")
    first = scope.is_first((x,), len(before)) and len(before) >= 4
    plain = scope.tensor(y).scale.size <= 1
    if first and plain and len(after) >= 4 and (before[0], before[-1]) == (after[0], after[-1]):
        shape = [after[k] for k in channels_first(len(after))]
        moved(scope, x, y, scope.shaped(scope.stored(x, first=True), shape, label), first=True)
    elif first and len(after) == 2 and after[0] == before[0] and _same_scale(scope, x, y):
        scope.flatten(y, x)
    else:
        moved(scope, x, y, scope.shaped(scope.stored(x), after, label))


def _same_scale(scope: Scope, x: int, y: int) -> bool:
    one, other = scope.tensor(x), scope.tensor(y)
    return one.kind == other.kind and np.array_equal(one.scale, other.scale) and np.array_equal(one.zero, other.zero)


@CONVERTERS.of("TRANSPOSE")
def _transpose(scope: Scope, operator: Operator) -> None:
    x, y = operator.input(0), operator.outputs[0]
    order = scope.numbers(operator.input(1), "axes")
    rank = len(scope.shape(x))
    if sorted(order) != list(range(rank)):
        raise Untranslatable(f"its axes {list(order)} are not those of its input")
    first = scope.is_first((x,), rank)
    if first:  # from the order in which the input is held
        order = tuple(channels_first(rank).index(axis) for axis in order)
    if order == tuple(range(rank)):
        moved(scope, x, y, scope.stored(x, first=first))
        return
    if rank >= 4 and tuple(order[k] for k in channels_first(rank)) == tuple(range(rank)):
        moved(scope, x, y, scope.stored(x, first=first), first=True)  # what it makes is there, channels first
        return
    held = scope.node("Transpose", scope.stored(x, first=first), name=scope.label(operator), perm=order)
    moved(scope, x, y, held)


def _axis(axis: int, rank: int) -> int:
    """An axis counted from the first one; raises Untranslatable if the tensor has none of that number."""
    if not -rank <= axis < rank:
        raise Untranslatable(f"axis {axis} of a tensor with {rank} axes")
    return axis % rank


@CONVERTERS.of("CONCATENATION")
def _concat(scope: Scope, operator: Operator) -> None:
    y, label = operator.outputs[0], scope.label(operator)
    rank = len(scope.shape(y))
    axis = _axis(operator.option("Axis"), max(1, rank))
    read = [k for k in operator.inputs if prod(scope.shape(k))]
    first = scope.is_first(read, rank)
    along = channels_first(rank).index(axis) if first else axis
    if all(_same_scale(scope, k, y) for k in read) and not operator.option("FusedActivationFunction"):
        held = (scope.stored(k, first=first) for k in read)
        scope.put_stored(y, scope.node("Concat", *held, name=label, axis=along), first=first)
        return
    made = scope.node("Concat", *(scope.value(k, first=first) for k in read), name=label, axis=along)
    scope.put(y, activated(scope, made, operator.option("FusedActivationFunction"), label), first=first)


@CONVERTERS.of("PACK")
def _pack(scope: Scope, operator: Operator) -> None:
    y, label = operator.outputs[0], scope.label(operator)
    rank = len(scope.shape(y))
    axis = _axis(operator.option("Axis"), rank)
    shape = [1 if k == axis else size for k, size in enumerate(scope.shape(y))]
    read = [scope.shaped(scope.value(k), shape, scope.tensor(k).name) for k in operator.inputs]
    scope.put(y, scope.node("Concat", *read, name=label, axis=axis))


@CONVERTERS.of("UNPACK")
def _unpack(scope: Scope, operator: Operator) -> None:
    x, label = operator.input(0), scope.label(operator)
    axis, number = _axis(operator.option("Axis"), len(scope.shape(x))), len(operator.outputs)
    parts = _parts(scope, scope.stored(x), [1] * number, axis, label)
    for y, held in zip(operator.outputs, parts, strict=True):
        moved(scope, x, y, scope.shaped(held, scope.shape(y), label))


def _parts(scope: Scope, held: str, sizes: Sequence[int], axis: int, label: str) -> list[str]:
    if len(sizes) == 1:
        return [held]
    return scope.several("Split", (held, scope.literal(sizes)), len(sizes), name=label, axis=axis)


@CONVERTERS.of("SPLIT", "SPLIT_V")
def _split(scope: Scope, operator: Operator) -> None:
    even = operator.name == "SPLIT"
    x, axes = (operator.input(1), operator.input(0)) if even else (operator.input(0), operator.input(2))
    rank = len(scope.shape(x))
    axis = _axis(int(scope.numbers(axes, "axes")[0]), rank)
    first = scope.is_first((x,), rank)
    along = channels_first(rank).index(axis) if first else axis
    sizes = [scope.shape(y)[axis] for y in operator.outputs]
    if sum(sizes) != scope.shape(x)[axis]:
        raise Untranslatable(f"{scope.shape(x)[axis]} elements become {sizes}")
    parts = _parts(scope, scope.stored(x, first=first), sizes, along, scope.label(operator))
    for y, held in zip(operator.outputs, parts, strict=True):
        moved(scope, x, y, held, first=first)


@CONVERTERS.of("SLICE")
def _slice(scope: Scope, operator: Operator) -> None:
    x, y = operator.input(0), operator.outputs[0]
    begins, made = scope.numbers(operator.input(1), "begins"), scope.shape(y)
    ends = [begin + size for begin, size in zip(begins, made, strict=True)]
    _cut(scope, operator, x, y, begins, ends, [1] * len(begins))


def _cut(
    scope: Scope, operator: Operator, x: int, y: int, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> None:  # fmt: skip
    """Take elements along all axes of an input that the result has, too, or less of length 1."""
    shape, rank, label = scope.shape(x), len(scope.shape(x)), scope.label(operator)
    parts = [*zip(begins, ends, steps, strict=True)]
    stays = tuple(len(range(*part)) for part in parts) == scope.shape(y)
    first = stays and scope.is_first((x,), rank)
    held = scope.stored(x, first=first)
    if parts != [(0, size, 1) for size in shape]:
        order = channels_first(rank) if first else range(rank)
        # A step backwards ends before the first element, which no index says but one far below.
        lists = [[some[k] for k in order] for some in (begins, ends, steps)]
        lists[1] = [-_END if end < 0 else end for end in lists[1]]
        read = (scope.literal(numbers) for numbers in (lists[0], lists[1], [*range(rank)], lists[2]))
        held = scope.node("Slice", held, *read, name=label)
    if not stays:
        held = scope.shaped(held, scope.shape(y), label)
    moved(scope, x, y, held, first=first)


@CONVERTERS.of("STRIDED_SLICE")
def _strided_slice(scope: Scope, operator: Operator) -> None:
    """As NumPy takes parts; masks say which begins and ends are not meant, and which axes are new or vanish."""
    x, y = operator.input(0), operator.outputs[0]
    shape = scope.shape(x)
    begins, ends, steps = (
        scope.numbers(operator.input(k), what) for k, what in ((1, "begins"), (2, "ends"), (3, "steps"))
    )
    masks = [operator.option(f"{name}Mask") for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")]
    taken, axis = list[tuple[int, int, int]](), 0
    for k, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        no_begin, no_end, ellipsis, new, shrink = (bool(mask >> k & 1) for mask in masks)
        if ellipsis:
            behind = sum(not (masks[3] >> j & 1) for j in range(k + 1, len(begins)))
            taken += [(0, size, 1) for size in shape[axis : len(shape) - behind]]
            axis = len(shape) - behind
        elif not new:
            if axis >= len(shape) or not step:
                raise Untranslatable(f"{len(begins)} parts of {list(shape)}")
            size = shape[axis]
            if shrink:
                begin = 0 if no_begin else begin
                at = begin % size if -size <= begin < size else begin
                taken.append((at, at + 1, 1))
            else:
                end = begin + end if operator.option("Offset", False) else end
                taken.append(slice(None if no_begin else begin, None if no_end else end, step).indices(size))
            axis += 1
    taken += [(0, size, 1) for size in shape[axis:]]
    if prod(len(range(*part)) for part in taken) != prod(scope.shape(y)):
        raise Untranslatable(f"its parts of {list(shape)} are no {list(scope.shape(y))}")
    _cut(scope, operator, x, y, *([part[k] for part in taken] for k in range(3)))


@CONVERTERS.of("PAD", "PADV2", "MIRROR_PAD")
def _pad(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    rank = len(scope.shape(x))
    pads = scope.numbers(operator.input(1), "pads")
    if operator.name == "PAD" and _around_windows(scope, x, y, pads):
        scope.padded[y] = x, (pads[2], pads[4], pads[3], pads[5])
        return
    first = scope.is_first((x,), rank)
    order = channels_first(rank) if first else range(rank)
    both = [pads[2 * k] for k in order] + [pads[2 * k + 1] for k in order]
    value, mode = scope.value(x, first=first), "constant"
    beyond = list[str]()
    if operator.name == "MIRROR_PAD":
        if operator.option("Mode"):
            raise Untranslatable("it mirrors the border, too")
        mode = "reflect"
    elif operator.name == "PADV2":
        beyond.append(scope.value(operator.input(2)))
    scope.put(y, scope.node("Pad", value, scope.literal(both), *beyond, name=label, mode=mode), first=first)


def _around_windows(scope: Scope, x: int, y: int, pads: Sequence[int]) -> bool:
    """Whether zeros around rows and columns are read by the windows of convolutions alone, which have none."""
    readers = scope.readers(y)
    if len(pads) != 8 or any(pads[:2]) or any(pads[6:]) or min(pads) < 0 or not _same_scale(scope, x, y):
        return False
    windows = ("CONV_2D", "DEPTHWISE_CONV_2D")
    return bool(readers) and all(
        one.name in windows and not one.custom and one.inputs.count(y) == 1 and one.input(0) == y
        and one.option("Padding") == tflite.Padding.VALID
        for one in readers or ()
    )  # fmt: skip


@CONVERTERS.of("TILE", "BROADCAST_TO")
def _repeated(scope: Scope, operator: Operator) -> None:
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    before, after = scope.shape(x), scope.shape(y)
    first = len(before) == len(after) and scope.is_first((x,), len(before))
    order = channels_first(len(after)) if first else range(len(after))
    if operator.name == "TILE":
        times = [after[k] // max(1, before[k]) for k in order]
        held = scope.node("Tile", scope.stored(x, first=first), scope.literal(times), name=label)
    else:
        held = scope.node(
            "Expand", scope.stored(x, first=first), scope.literal([after[k] for k in order]), name=label
        )  # fmt: skip
    moved(scope, x, y, held, first=first)


@CONVERTERS.of("GATHER", "EMBEDDING_LOOKUP")
def _gather(scope: Scope, operator: Operator) -> None:
    table = operator.name == "EMBEDDING_LOOKUP"
    x, at = (operator.input(1), operator.input(0)) if table else (operator.input(0), operator.input(1))
    y = operator.outputs[0]
    if operator.option("BatchDims"):
        raise Untranslatable("its indices have a batch")
    axis = 0 if table else _axis(operator.option("Axis"), max(1, len(scope.shape(x))))
    held = scope.node("Gather", scope.stored(x), scope.stored(at), name=scope.label(operator), axis=axis)
    moved(scope, x, y, held)


@CONVERTERS.of("GATHER_ND")
def _gather_nd(scope: Scope, operator: Operator) -> None:
    x, at, y = operator.input(0), operator.input(1), operator.outputs[0]
    indices = scope.node("Cast", scope.stored(at), name=f"{scope.label(operator)}/indices", to=7)
    moved(scope, x, y, scope.node("GatherND", scope.stored(x), indices, name=scope.label(operator)))


@CONVERTERS.of("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def _blocks(scope: Scope, operator: Operator) -> None:
    x, y, size = operator.input(0), operator.outputs[0], operator.option("BlockSize")
    deep = operator.name == "DEPTH_TO_SPACE"
    held = scope.node(
        "DepthToSpace" if deep else "SpaceToDepth", scope.stored(x, first=True), name=scope.label(operator),
        blocksize=size, mode="DCR" if deep else None,
    )  # fmt: skip
    moved(scope, x, y, held, first=True)


@CONVERTERS.of("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def _batches(scope: Scope, operator: Operator) -> None:
    """Blocks of rows and columns are images of a batch of their own (the offset in a block outermost), or back."""
    x, y, label = operator.input(0), operator.outputs[0], scope.label(operator)
    blocks = scope.numbers(operator.input(1), "blocks")
    ends = scope.numbers(operator.input(2), "pads or crops")
    shape, number = scope.shape(x), len(blocks)
    rest = shape[1 + number :]
    if operator.name == "SPACE_TO_BATCH_ND":
        pads = [0, *ends[::2], *(0 for _ in rest), 0, *ends[1::2], *(0 for _ in rest)]
        value = scope.value(x)
        if any(ends):
            value = scope.node("Pad", value, scope.literal(pads), name=f"{label}/pad", mode="constant")
        sizes = [size + ends[2 * k] + ends[2 * k + 1] for k, size in enumerate(shape[1 : 1 + number])]
        cut = [part for size, block in zip(sizes, blocks, strict=True) for part in (size // block, block)]
        value = scope.shaped(value, (shape[0], *cut, *rest), label)
        order = (
            *range(2, 2 * number + 1, 2),
            0,
            *range(1, 2 * number, 2),
            *range(2 * number + 1, 2 * number + 1 + len(rest)),
        )
    else:
        value = scope.shaped(scope.value(x), (*blocks, shape[0] // prod(blocks), *shape[1:]), label)
        pairs = [axis for k in range(number) for axis in (number + 1 + k, k)]
        order = (number, *pairs, *range(2 * number + 1, 2 * number + 1 + len(rest)))
    value = scope.node("Transpose", value, name=f"{label}/transpose", perm=order)
    if operator.name == "SPACE_TO_BATCH_ND":
        value = scope.shaped(value, scope.shape(y), f"{label}/batches")
    else:
        sizes = [size * block for size, block in zip(shape[1 : 1 + number], blocks, strict=True)]
        value = scope.shaped(value, (shape[0] // prod(blocks), *sizes, *rest), f"{label}/space")
        if any(ends):
            begins, upto = ends[::2], [size - end for size, end in zip(sizes, ends[1::2], strict=True)]
            parts = (scope.literal(some) for some in (begins, upto, range(1, 1 + number)))
            value = scope.node("Slice", value, *parts, name=f"{label}/crop")
    scope.put(y, value)


@CONVERTERS.of("SHAPE", "RANK")
def _sizes(scope: Scope, operator: Operator) -> None:
    """Sizes are those of the file."""
    shape, y = scope.shape(operator.input(0)), operator.outputs[0]
    found = np.array(shape if operator.name == "SHAPE" else len(shape), scope.tensor(y).kind)
    scope.put_stored(y, scope.literal(found, scope.label(operator)))


@CONVERTERS.of("FILL", "ZEROS_LIKE")
def _filled(scope: Scope, operator: Operator) -> None:
    y, label = operator.outputs[0], scope.label(operator)
    if operator.name == "ZEROS_LIKE":
        tensor = scope.tensor(y)
        value = np.full(tensor.shape, tensor.zero[0] if tensor.quantised else 0, tensor.kind)
        scope.put_stored(y, scope.literal(value, label))
        return
    held = scope.node("Expand", scope.stored(operator.input(1)), scope.literal(scope.shape(y)), name=label)
    moved(scope, operator.input(1), y, held)


@CONVERTERS.of("RANGE")
def _range(scope: Scope, operator: Operator) -> None:
    ends = [scope.constant(k) for k in operator.inputs]
    if all(end is not None and end.size == 1 for end in ends):
        begin, end, step = (one.reshape(-1)[0] for one in ends if one is not None)
        if not step or max(0, int(np.ceil((end - begin) / step))) != prod(scope.shape(operator.outputs[0])):
            raise Untranslatable(f"its numbers are not as many as {list(scope.shape(operator.outputs[0]))} has")
    read = [scope.stored(k) for k in operator.inputs]
    scope.put_stored(operator.outputs[0], scope.node("Range", *read, name=scope.label(operator)))
