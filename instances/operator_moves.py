"""Operators that move elements without computing: those that join maps, and those that turn, cut or pad one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from instances.operator_base import LARGEST, NamedOperator, Size
from instances.shape_rules import Shape, check_arity


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
