"""Hybrid: which groups there may be, whole and in pieces, as pins have it; and the blocks of a network.

**Blocks**, as a user or the published technique gives them (`heterogeneous_mapping_and_banks` 4.4.5).

Example: ResNet-50 has the 16 residual blocks of the source, of four and five stages; what is before them is a block
(the first convolution and its pool), what is behind them another one.

Branches
    A network parts where a single map is alive. What lies between two such places and has several stages is a block; so
    are stages that follow each other between these, ended by each pool, and ahead of maps of one column.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from formulations.banks.graph import NEVER
from formulations.pins import Decision, Pins
from instances.errors import InputError
from instances.network.feature_maps import Stages
from instances.network.pieces import operands


def branches(found: Stages) -> list[tuple[int, int]]:
    """Return the blocks of a network, as first stages and those behind the last ones."""
    blocks: list[tuple[int, int]] = []
    begin = 0
    for at, end in sections(found):
        stage = found.stages[at]
        if end - at > 1:
            blocks += [(begin, at)] * (begin < at)
            blocks.append((at, end))
            begin = end
        elif found.maps[stage.target].columns == 1 and begin < at:
            blocks.append((begin, at))
            begin = at
        elif stage.kind == "pool":
            blocks.append((begin, end))
            begin = end
    last = len(found.stages)
    return [*blocks, (begin, last)] if begin < last else blocks


def sections(found: Stages) -> list[tuple[int, int]]:
    """Return the stages between two places where a single map is alive."""
    last_use = dict.fromkeys(found.maps, -1)
    for at, stage in enumerate(found.stages):
        last_use |= dict.fromkeys(operands(stage), at)
        last_use[stage.target] = max(last_use[stage.target], at)
    made: list[tuple[int, int]] = []
    begin = 0
    for at, stage in enumerate(found.stages):
        alive = {one.target for one in found.stages[: at + 1] if last_use[one.target] > at}
        alive |= {name for one in found.stages[: at + 1] for name in operands(one) if last_use[name] > at}
        if alive <= {stage.target}:
            made.append((begin, at + 1))
            begin = at + 1
    return made


def blocks_of(found: Stages, said: str) -> list[tuple[int, int]]:
    """Read blocks: ``branches``, or the last stages of all blocks but the last one, with slashes between.

    Raises
    ------
    InputError
        If a name is no stage, or they are not in order.
    """
    if said == "branches":
        return branches(found)
    number = {stage.name: at + 1 for at, stage in enumerate(found.stages)}
    names = said.split("/") if said in number or "/" not in said else _split(said, number)
    if unknown := [name for name in names if name not in number]:
        raise InputError(f"pin blocks={said}: no stage is called {unknown[0]}; branches, or the last stages of blocks")
    ends = list(dict.fromkeys((0, *(number[name] for name in names), len(found.stages))))
    if ends != sorted(ends):
        raise InputError(f"pin blocks={said}: the stages are not in the network's order")
    return list(pairwise(ends))


def _split(said: str, number: dict[str, int]) -> list[str]:
    """Names with slashes between, which may have slashes themselves: the longest ones."""
    names, parts = list[str](), said.split("/")
    while parts:
        ends = [end for end in range(len(parts), 0, -1) if "/".join(parts[:end]) in number] or [1]
        names.append("/".join(parts[: ends[0]]))
        parts = parts[ends[0] :]
    return names


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
