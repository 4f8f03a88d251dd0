"""What all operators of a network share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from instances.frozen import Sparse
from instances.shape_rules import Shape, check_arity
from instances.workload import Layer

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
