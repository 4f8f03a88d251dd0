"""F7 hybrid: which groups there may be, whole and in pieces, as pins have it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.banks.graph import NEVER
from formulations.hybrid.blocks import blocks_of
from formulations.pins import Decision, Pins
from instances.errors import InputError
from instances.stage import Stages

#: Stages of a group in pieces, at most, unless a pin says otherwise.
LENGTH = 8

DECISIONS = {
    "length": Decision(f"length<=4: stages of a group in pieces; <= {LENGTH} unless said"),
    "pieces": Decision("pieces<=16: pieces of a group; pieces=1: every stage runs whole"),
    "rows": Decision("rows=no: pieces are whole columns, as published", ("yes", "no")),
    "blocks": Decision(
        "blocks=branches: groups in pieces are blocks (a residual branch each), others whole ones; or the last stages "
        "of blocks, with slashes between; free: any stages", ("free", "branches"), open=True,
    ),
}  # fmt: skip


class Cut(NamedTuple):
    """The stages [begin, end) as a group, in one piece or in several."""

    begin: int
    end: int
    whole: bool


class Space:
    """What may be chosen; raises InputError for blocks that are none."""

    def __init__(self, found: Stages, pins: Pins) -> None:
        self.pins, self.stages = pins, len(found.stages)
        wanted = pins.of("blocks")
        if any(pin.op != "=" for pin in wanted) or len(wanted) > 1:
            raise InputError(f"pin {wanted[-1]}: blocks are said once, by =")
        said = wanted[0].value if wanted else "free"
        #: The blocks, or None if groups may be any stages.
        self.blocks = None if said == "free" else blocks_of(found, said)
        self.rows = pins.allows("rows", "yes")
        self._ends = {0, *(end for _, end in self.blocks or ())}

    def pieces(self, number: int) -> bool:
        """Whether a group may have so many pieces."""
        return self._keeps("pieces", number)

    @property
    def most(self) -> int:
        """Pieces that a group may have, at most."""
        return min((int(pin.value) for pin in self.pins.of("pieces") if pin.op in ("<=", "=")), default=NEVER)

    def allows(self, cut: Cut) -> bool:
        """Whether stages may be a group: in pieces blocks, if there are any, in one piece several ones."""
        if cut.whole:
            return self._keeps("pieces", 1) and (self.blocks is None or {cut.begin, cut.end} <= self._ends)
        length = cut.end - cut.begin
        if not (self._keeps("length", length) if self.pins.of("length") or self.blocks else length <= LENGTH):
            return False
        return self.most > 1 and (self.blocks is None or (cut.begin, cut.end) in self.blocks)

    def groups(self) -> list[Cut]:
        """All that there may be, by where they begin and end."""
        ends = range(self.stages + 1)
        cuts = (Cut(begin, end, whole) for begin in ends for end in ends[begin + 1 :] for whole in (True, False))
        return list(filter(self.allows, cuts))

    def _keeps(self, name: str, value: int) -> bool:
        return all(bool(pin.keeps(np.array([value]))[0]) for pin in self.pins.of(name))
