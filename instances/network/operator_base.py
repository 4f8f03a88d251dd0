"""What all operators of a network share, and those that move elements without computing.

The latter join maps (`Concat`), or turn, cut or pad one (`Reshape`). The functions say what operators ask of the shapes
that they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from instances.frozen import Sparse
from instances.network.workload import Layer, room_of

Shape = tuple[int, ...]


def check_arity(inputs: Sequence[Shape], least: int, most: int | None) -> None:
    """Raise ValueError if an operator has too few or too many inputs (None: as many as one likes)."""
    if len(inputs) < least or (most is not None and len(inputs) > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"has {len(inputs)} inputs, needs {wanted}")


def feature_map(shape: Shape) -> Shape:
    """Return the shape of a feature map; raises ValueError for others."""
    if len(shape) != 4:
        raise ValueError(f"needs a feature map (batch, channels, rows, columns), its input has shape {shape}")
    return shape


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the NumPy broadcast of shapes; raises ValueError if they do not fit together."""
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    out = tuple(max(axis) for axis in zip(*padded, strict=True))
    for shape in padded:
        if any(x not in (1, y) for x, y in zip(shape, out, strict=True)):
            raise ValueError(f"shapes {' and '.join(str(tuple(s)) for s in shapes)} do not fit together")
    return out


def element_wise(shapes: Sequence[Shape]) -> tuple[Shape, tuple[str, ...]]:
    """Return what an element-wise layer makes of operands: (b, g, r, c), and where each has one element only.

    Axes of the result are mapped to dimensions so that every operand is full or one along each:

    * of a feature map the four axes are b, g, r, c;
    * else the last axis (features) is g, and of the axes before it those that follow each other and are broadcast for
      the same operands are one: r if there is one such run, (b, r) if two, (b, r, c) if three. Where there are four,
      the last of them and the features must be broadcast alike and are g together.

    Returns
    -------
    tuple
        The sizes of b, g, r, c, and for every operand the letters of those along which it is broadcast.

    Raises
    ------
    ValueError
        If the shapes do not fit together, or need more than four dimensions.
    """
    out = broadcast(shapes)
    padded = [(1,) * (len(out) - len(s)) + tuple(s) for s in shapes]
    #: Of every axis the operands that are broadcast along it.
    lacking = [tuple(k for k, s in enumerate(padded) if s[axis] < size) for axis, size in enumerate(out)]
    runs: list[tuple[tuple[int, ...], int]] = []
    if len(out) == 4:
        runs, letters = list(zip(lacking, out, strict=True)), "bgrc"
    else:
        for lacks, size in zip(lacking[:-1], out[:-1], strict=True):
            if size > 1 and runs and runs[-1][0] == lacks:
                runs[-1] = lacks, runs[-1][1] * size
            elif size > 1:
                runs.append((lacks, size))
        if len(runs) == 4 and (out[-1] == 1 or runs[-1][0] == lacking[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] * out[-1]
        else:
            runs.append((lacking[-1], out[-1]))
        if len(runs) > 4:
            said = " and ".join(str(tuple(s)) for s in shapes)
            raise ValueError(f"shapes {said} are broadcast along {len(runs)} groups of axes, a layer has four")
        letters = {1: "g", 2: "rg", 3: "brg", 4: "brcg"}[len(runs)]
    sizes = dict.fromkeys("bgrc", 1) | {d: size for d, (_, size) in zip(letters, runs, strict=True)}
    lack = {d: lacks for d, (lacks, _) in zip(letters, runs, strict=True)}
    of_each = tuple("".join(d for d in "bgrc" if k in lack.get(d, ())) for k in range(len(shapes)))
    return (sizes["b"], sizes["g"], sizes["r"], sizes["c"]), of_each


def count_windows(size: int, kernel: int, stride: int, dilation: int, before: int, after: int, *, ceil: bool) -> int:
    """Return how many windows of a pooling an axis has; raises ValueError if none fits."""
    room = room_of("window", size, kernel, dilation, before, after)
    if not ceil:
        return room // stride + 1
    out = -(-room // stride) + 1
    # A window that would start in the padding behind the map is dropped (the rule of every framework).
    return out - 1 if (out - 1) * stride >= size + before else out


#: The largest size of one dimension (a signed 32-bit count, as in every deployment format).
LARGEST = 2**31 - 1
Size = Annotated[int, Field(ge=1, le=LARGEST)]


class NamedOperator(Sparse):
    """A unique name, the names of the producers of its inputs, its output shape."""

    LEFT_OUT: ClassVar = frozenset[str]()

    name: str = Field(min_length=1, max_length=500)
    inputs: tuple[str, ...] = ()
    shape: tuple[Size, ...] = Field(min_length=1, max_length=8)

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("a name holds printable characters only")
        return name

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the output shape for the given input shapes; ValueError when they do not fit."""
        check_arity(inputs, 0, None)
        return self.shape

    def layer(self, inputs: Sequence[Shape]) -> Layer | None:
        """Return the `Layer` to plan, or None for operators that move or compute nothing of their own."""
        return None

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return the trained constants in elements (as in published totals)."""
        return 0


class Concat(NamedOperator):
    """Joins its inputs along `axis` (channels by default)."""

    op: Literal["concat"] = "concat"
    axis: Annotated[int, Field(ge=0, le=7)] = 1

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the joined shape."""
        check_arity(inputs, 1, None)
        first = tuple(inputs[0])
        if self.axis >= len(first):
            raise ValueError(f"axis {self.axis} of shape {first} does not exist")
        for other in inputs[1:]:
            if len(other) != len(first) or any(
                x != y for i, (x, y) in enumerate(zip(first, other, strict=True)) if i != self.axis
            ):
                raise ValueError(f"shapes {first} and {tuple(other)} cannot be joined along axis {self.axis}")
        return (*first[: self.axis], sum(s[self.axis] for s in inputs), *first[self.axis + 1 :])


class Reshape(NamedOperator):
    """Moves elements without computing; `shape` says what comes out."""

    LEFT_OUT: ClassVar = frozenset(("starts", "steps"))

    op: Literal["reshape"] = "reshape"
    fn: Literal["reshape", "transpose", "slice", "pad", "identity"] = "reshape"
    starts: tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...] = ()
    steps: tuple[Size, ...] = ()
    """`starts`, `steps`: of a slice the first index along every axis, and from one index to the next. Empty: not known,
    and 1. Slices of one map that are known to lie apart are different elements.
    """

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the declared shape if the number of elements allows it."""
        check_arity(inputs, 1, 1)
        before, after = prod(inputs[0]), prod(self.shape)
        fits = {"slice": after <= before, "pad": after >= before}.get(self.fn, after == before)
        if self.fn == "transpose":
            fits = sorted(inputs[0]) == sorted(self.shape)
        if self.fn == "identity":
            fits = tuple(inputs[0]) == self.shape
        if not fits:
            raise ValueError(f"{self.fn} cannot turn shape {tuple(inputs[0])} into {self.shape}")
        self._check_place(inputs[0])
        return self.shape

    def _check_place(self, before: Shape) -> None:
        """Raise ValueError if a slice that says where it lies is no part of what it is cut from."""
        if not self.starts and not self.steps:
            return
        steps = self.steps or (1,) * len(before)
        if self.fn != "slice" or not len(before) == len(self.shape) == len(self.starts) == len(steps):
            raise ValueError("starts and steps are of a slice: a number for every axis of both maps")
        for first, size, step, whole in zip(self.starts, self.shape, steps, before, strict=True):
            if first + (size - 1) * step >= whole:
                raise ValueError(f"a slice of {size} from {first} in steps of {step} is no part of {whole}")
