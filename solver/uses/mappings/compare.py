"""Why a mapping moves more than another one: operand by operand, and by which loops.

``bytes of X = its elements * times * overlap``: `times` counts how often the loops outside the Hold of X that X
does not depend on come back to it (down to the innermost loop that X depends on), `overlap` is what neighbouring tiles
share, with what sliding and turns save. Partial sums come back through the loops over n, i and j outside the Hold of
OUT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hwmodels.nest.price.limits import operand_bytes
from hwmodels.nest.price.skeleton import cores
from hwmodels.outcome import OPERANDS
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.jsonfile import many
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer

_NAMES = {"IN": "inputs", "W": "weights", "OUT": "results", "PSUM": "partial sums"}


@dataclass(frozen=True)
class Again:
    """Loops outside a Hold that come back to the operand."""

    dims: tuple[str, ...]
    """Those that it does not depend on and that cut something, outermost first."""
    times: int
    """How many pieces they make together."""


def again(layer: Layer, nest: Nest, operand: str) -> Again:
    """Return what comes back to an operand, on the largest core."""
    core = cores(layer, tuple(item for item in nest.items if isinstance(item, Spatial)))[0]
    pieces = {d: [(0, core.extent(d))] for d in DIMS}
    outside, waiting, times = list[str](), list[tuple[str, int, int]](), dict.fromkeys(DIMS, 1)
    for item in nest.items:
        if isinstance(item, Hold) and item.operand == operand:
            break
        if not isinstance(item, Loop):
            continue
        before = pieces[item.dim]
        pieces[item.dim] = [piece for lo, hi in before for piece in item.pieces(lo, hi, 0)]
        if len(pieces[item.dim]) == len(before):
            continue
        if item.dim in RELEVANT[operand]:  # the loops before it count
            for dim, _, now in waiting:
                times[dim] = now
                outside += [dim] if dim not in outside else []
            waiting = []
        else:
            waiting.append((item.dim, len(before), len(pieces[item.dim])))
    product = 1
    for dim in outside:
        product *= times[dim]
    return Again(tuple(outside), product)


def reasons(
    layer: Layer, machine: Machine, nest: Nest, mine: Mapping[str, int], other: Mapping[str, int], *, known: str
) -> Iterator[str]:
    """Yield a sentence for every row of bytes in which a mapping moves more than another one, the worst first.

    Parameters
    ----------
    mine, other : mapping of row (`hwmodels.outcome.OPERANDS`) to bytes
    known : str
        What the other one is called.
    """
    more = [row for row in OPERANDS if mine.get(row, 0) > other.get(row, 0)]
    for row in sorted(more, key=lambda row: other.get(row, 0) - mine.get(row, 0)):
        over = mine[row] - other.get(row, 0)
        yield f"{_NAMES[row]} {over:,} bytes more than {known}: {_cause(layer, machine, nest, row, mine[row])}"


def _cause(layer: Layer, machine: Machine, nest: Nest, row: str, moved: int) -> str:
    operand = "OUT" if row == "PSUM" else row
    found = again(layer, nest, operand)
    loops = f"loop{'s' * (len(found.dims) > 1)} {' and '.join(found.dims)} outside the hold of {operand}"
    if row == "PSUM":
        return (
            f"sums are written and read back {many(found.times - 1, 'time')}, by {loops} (cut before a sum is complete)"
        )
    whole = operand_bytes(layer, machine)[operand]
    times = moved / whole
    if found.times == 1:
        return f"{times:.2f} times all of them, as neighbouring tiles share windows" if row == "IN" else "once each"
    said = f"all of them up to {found.times} times, by {loops}"
    overlap = times / found.times
    if row == "IN" and overlap > 1.005:
        said += f", and {overlap:.2f} times in each, as neighbouring tiles share windows"
    elif times < found.times * 0.995:
        said += f" ({times:.2f} times in all: some stay on chip at turns, or are not used again)"
    return said
