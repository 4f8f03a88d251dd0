"""Maps that are read where a grid says (GridSample), in C.

The host finds the neighbours of every place, and how far the place lies behind the first of them along each axis
(certile_neighbours of certile_rows.h): columns first, as in a grid. The layer reads both parts of a pixel, then one
neighbour after the other, and adds what is taken of each, a product of what is taken along columns and along rows.

An example: 0.25 behind column 3 and 0.5 behind row 1, ``linear`` takes 0.75 * 0.5 of the pixel of row 1 and column 3,
0.25 * 0.5 of the one beside it, and as much of those below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from instances.network.operators import GRID, Operator, Resample
from instances.onnx.graph import Node
from solver.uses.emit.kinds import FLOATS
from solver.uses.emit.numbers import Numbers
from solver.uses.emit.pointwise import require
from solver.uses.emit.values import Value

#: What lies beyond the border, as certile_rows.h numbers it.
_PADDING = ("zeros", "border", "reflection")
#: What is taken of neighbour k of a place that lies x behind neighbour 0 (cubic: 1), by interpolation.
_TAKEN = {
    "nearest": ["return 1;"],
    "linear": ["return k ? x : 1 - x;"],
    "cubic": [
        "const float d = k < 2 ? x + (float)(1 - k) : (float)(k - 1) - x;",
        "return k == 1 || k == 2 ? (1.25f * d - 2.25f) * d * d + 1 : ((-0.75f * d + 3.75f) * d - 6) * d + 3;",
    ],
}  # fmt: skip


def is_gridded(operator: Operator) -> bool:
    """Whether it reads a map where a grid says."""
    return isinstance(operator, Resample) and len(operator.inputs) > 1


@dataclass(frozen=True)
class Gridded:
    """A map that is read where a grid says."""

    operator: Resample
    node: Node

    def check(self, kinds: Sequence[str]) -> None:
        """Raise InputError unless C has the mode, and map and grid are of single precision."""
        where = f"layer {self.operator.name} ({self.node.op})"
        said = f"places in a map of {' and '.join(sorted(set(kinds)))} elements: in_bytes 4 and real numbers are needed"
        require(all(kind == FLOATS[0] for kind in kinds), where, said)
        require(self._padding in _PADDING, where, f"padding_mode {self._padding}")

    @property
    def _padding(self) -> str:
        return self.node.text("padding_mode", _PADDING[0])

    def numbers(self, base: Numbers) -> Numbers:
        """A sum over neighbours, each with what is taken of it; the parts of a pixel come first."""
        taps = self.operator.taps
        each = [f"{{at_{k}}} = {{value}};" for k in range(GRID)]
        each += [
            f"{{row}} += stage_taken({k % taps}, {{at_0}}) * stage_taken({k // taps}, {{at_1}}) * {{value}};"
            for k in range(taps * taps)
        ]
        head = "static inline float stage_taken(int k, float x)"
        body = ["(void)k, (void)x;", *_TAKEN[self.operator.fn]]
        return base.with_meaning(
            each=tuple(each), tables=(*base.tables, head, "{", *(f"    {line}" for line in body), "}")
        )

    def found(
        self, near: Sequence[Value], parts: Sequence[Value], source: Value, grid: Value, place: Callable[[Value], str]
    ) -> list[str]:
        """The call that finds all neighbours and parts; neighbours have one pitch, parts lie one after the other."""

        def numbers(values: Sequence[int]) -> str:
            return f"(const long[]){{{', '.join(map(str, values))}}}"

        size = (*source.shape, *self.operator.size)
        corners = int(bool(self.node.integer("align_corners", 0)))
        return [
            f"certile_neighbours((unsigned char *const[]){{{', '.join(map(place, near))}}}, {numbers(near[0].pitch)},",
            f"                   (unsigned char *const[]){{{', '.join(map(place, parts))}}},",
            f"                   {place(source)}, {numbers(source.pitch)}, {place(grid)}, {numbers(grid.pitch)},",
            f"                   {numbers(size)}, {self.operator.taps}, {_PADDING.index(self._padding)}, {corners});",
        ]
