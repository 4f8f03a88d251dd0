"""Orders of Stays, and which loops may stand before each of them.

Claim
    Of all nests, those suffice in which directly outside every Stay of X, outside of the next Stay, stand loops over
    dimensions that X depends on, one a dimension at most, the one that IN slides along last.
Proof
    Three moves change no price for the worse (docs/tiling.md has them for one memory; they hold for each Stay alone):
    a Stay moves outwards over loops that its operand does not depend on (its fetches, its tile and its source stay as
    they are, as long as it remains inside the Stay of its source); a loop moves inwards over a Stay whose operand does
    not depend on it (that Stay is visited less often); two loops over a dimension without a Stay between them are one
    (but for pieces of free sizes, which two loops make: `formulations.levels` says which it leaves out).
    A Stay with no loops before it changes places with the Stay before it, which changes nothing, unless that is its
    source. Then the tiles of both are equal, and so is what they fetch: they are `tied`. For W and OUT that is a chain
    with equal steps; for IN it is told apart, as both slide along the loop that stands before the first of them.
An `Order` further says along what IN slides at each Stay, and for OUT whether partial sums come there: where none do,
no reduction is cut outside the next nearer Stay of OUT, and the tile takes `out_bytes` an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from hwmodels.levels.schedule import Stay, source
from instances.machine.machine import Machine
from instances.network.workload import REDUCTION, RELEVANT, Layer


@dataclass(frozen=True)
class Order:
    """Stays, outermost first, and for each: whether it is tied, along what it slides, whether sums come there."""

    stays: tuple[Stay, ...]
    tied: tuple[bool, ...]
    slides: tuple[str, ...]
    """"r", "c" or ""; "" for W and OUT."""
    sums: tuple[bool, ...]
    """Of Stays of OUT; False for others."""
    sources: tuple[str, ...]
    """The memories that their tiles come from."""
    part: bool = False
    """Whether there are other Stays, too: loops may stand wherever one of them asks for it (`fed`)."""

    @property
    def name(self) -> str:
        """For people: ``IN.l2 W.l2 ..``."""
        marks = zip(self.stays, self.tied, self.slides, strict=True)
        return " ".join(f"{one.operand}.{one.memory}{'=' * tie}{along}" for one, tie, along in marks)

    @cached_property
    def inputs(self) -> int:
        """Where the last Stay of IN stands."""
        return max((k for k, one in enumerate(self.stays) if one.operand == "IN"), default=-1)

    @cached_property
    def whole(self) -> int:
        """Before which Stay on no reduction is cut; loops stand before it, 0: none is."""
        uncut = [k for k, one in enumerate(self.stays) if one.operand == "OUT" and not self.sums[k]]
        if not uncut or self.part:
            return 0
        inner = [k for k, one in enumerate(self.stays) if one.operand == "OUT" and k > max(uncut)]
        return inner[0] + 1 if inner else len(self.stays) + 1

    def may_cut(self, k: int, dim: str) -> bool:
        """Whether a loop over `dim` may stand before Stay `k`."""
        if self.tied[k] or dim not in RELEVANT[self.stays[k].operand]:
            return False
        if dim in ("i", "j") and k <= self.inputs:
            return False
        return dim not in REDUCTION or k >= self.whole


def fed(every: Sequence[Order], memory: str) -> list[Order]:
    """The orders of those Stays alone whose tiles come from a memory: whoever leaves out the others has one of them."""
    found = dict[Order, None]()
    for one in every:
        kept = [k for k, name in enumerate(one.sources) if name == memory]
        stays, slides, sums, sources = (
            tuple(row[k] for k in kept) for row in (one.stays, one.slides, one.sums, one.sources)
        )
        if kept:
            found[Order(stays, (False,) * len(kept), slides, sums, sources, part=True)] = None  # type: ignore[arg-type]
    return [*found]


def orders(layer: Layer, machine: Machine) -> Iterator[Order]:
    """Yield all orders of a layer on a machine with section `levels`."""
    levels = machine.levels
    assert levels is not None
    slid = machine.sliding and (layer.r > 1 or layer.c > 1) and max(layer.kh, layer.kw) > 1
    narrow = machine.psum_bytes > machine.out_bytes
    for held in _held(layer, machine):
        for stays in _merged({operand: tuple(Stay(operand, m) for m in names) for operand, names in held.items()}):  # type: ignore[arg-type]
            sources = tuple(source(stays, levels, one).name for one in stays)
            for tied in _ties(stays):
                for slides in _slides(layer, stays, tied, slid):
                    for sums in _sums(stays, narrow):
                        yield Order(stays, tied, slides, sums, sources)


def _held(layer: Layer, machine: Machine) -> Iterator[dict[str, tuple[str, ...]]]:
    """By operand the memories where it stays, from far to near: all that hold it, less what it may pass."""
    assert machine.levels is not None
    ways = []
    for operand in layer.operands:
        levels = [one for one in machine.levels.memories[1:] if operand in one.operands]
        names = [[one.name, None] if operand in one.passed else [one.name] for one in levels]
        ways.append([tuple(name for name in way if name is not None) for way in product(*names)])
    for way in product(*ways):
        yield dict(zip(layer.operands, way, strict=True))


def _merged(left: dict[str, tuple[Stay, ...]]) -> Iterator[tuple[Stay, ...]]:
    """All ways to merge the Stays of the operands, each from far to near."""
    if not any(left.values()):
        yield ()
        return
    for operand, (first, *others) in ((operand, stays) for operand, stays in left.items() if stays):
        for rest in _merged({**left, operand: tuple(others)}):
            yield (first, *rest)


def _ties(stays: tuple[Stay, ...]) -> Iterator[tuple[bool, ...]]:
    """Ways to tie Stays of IN to the one directly before."""
    may = [k > 0 and one.operand == "IN" == stays[k - 1].operand for k, one in enumerate(stays)]
    yield from product(*([False, True] if able else [False] for able in may))


def _square(layer: Layer) -> bool:
    """Whether rows and columns are alike, so that nests with both exchanged cost the same."""
    rows = layer.r, layer.h, layer.kh, layer.stride_h, layer.dilation_h, layer.pad_top
    return rows == (layer.c, layer.l, layer.kw, layer.stride_w, layer.dilation_w, layer.pad_left)


def _slides(layer: Layer, stays: tuple[Stay, ...], tied: tuple[bool, ...], slid: bool) -> Iterator[tuple[str, ...]]:
    """Along what IN slides; where it is tied as the Stay before it; of a square layer first along rows."""
    along = [d for d, taps in (("r", layer.kh), ("c", layer.kw)) if taps > 1 and layer.extent(d) > 1]
    ways = [along if slid and along and one.operand == "IN" and not tie else [""]
            for one, tie in zip(stays, tied, strict=True)]  # fmt: skip
    for way in product(*ways):
        made = list(way)
        for k in range(1, len(made)):
            if tied[k]:
                made[k] = made[k - 1]
        if next((d for d in made if d), "r") == "r" or not _square(layer):
            yield tuple(made)


def _sums(stays: tuple[Stay, ...], narrow: bool) -> Iterator[tuple[bool, ...]]:
    """Whether partial sums come to the Stays of OUT: if they come to one, then to all nearer ones."""
    places = [k for k, one in enumerate(stays) if one.operand == "OUT"]
    for first in range(len(places) + 1) if narrow else (0,):
        yield tuple(k in places[first:] for k in range(len(stays)))
