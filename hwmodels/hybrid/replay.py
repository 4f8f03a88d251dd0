"""Replay of a hybrid plan: every piece bank by bank and in time, and the numbers that the pieces compute.

Nothing of the price's arithmetic is used. `hwmodels.banks.replay.referee` follows the program of every kind of piece,
which begins and ends with empty banks, and finds every byte, every cycle and whatever the banks do not allow. That the
pieces compute the network is found by computing it: every stage becomes a sum over its window with weights of its own,
in one channel of integers; once layer by layer, once piece by piece from what the groups before have written. Both have
to be equal wherever a group leaves a number, and every number is left once.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodels.banks.replay.referee import replay_banks
from hwmodels.banks.replay.time import Moved, Spent, StageFigures, spent_on
from hwmodels.hybrid.schedule import GroupRun, PieceRun
from instances.machine.machine import Machine
from instances.network.feature_maps import FeatureMap, Stage, Stages
from instances.network.pieces import Box, Group, Key, Piece, operands

Ints = NDArray[np.int64]
#: Numbers are counted modulo this prime, so that products stay in 64 bits.
_PRIME = 2_147_483_647
#: By group, kind of piece and program (as in `GroupRun.pieces`) what every stage of one piece moves and takes.
HybridFigures = tuple[tuple[tuple[dict[str, StageFigures], ...], ...], ...]


class PieceReplay(NamedTuple):
    """What the pieces do that run one program."""

    pieces: int
    moved: Moved
    spent: dict[str, Spent]

    @property
    def bytes(self) -> int:
        """What all of them move."""
        return self.pieces * self.moved.total

    @property
    def ticks(self) -> int:
        """What all of them take."""
        return self.pieces * sum(one.ticks for one in self.spent.values())


@dataclass
class HybridReplay:
    """What the replay finds."""

    groups: list[list[list[PieceReplay]]] = field(default_factory=list)
    """By group and kind of piece the programs."""
    faults: list[str] = field(default_factory=list)

    @property
    def figures(self) -> HybridFigures:
        """What every stage of a piece moves and takes."""
        return tuple(
            tuple(tuple(one.moved.figures(one.spent) for one in kind) for kind in kinds) for kinds in self.groups
        )

    @property
    def pieces(self) -> Iterator[PieceReplay]:
        """All of them."""
        yield from (one for group in self.groups for kind in group for one in kind)


def replay_hybrid(found: Stages, machine: Machine, groups: tuple[GroupRun, ...]) -> HybridReplay:
    """Follow all groups; faults say what is wrong."""
    seen, begin = HybridReplay(), 0
    numbers = Numbers(found)
    for run in groups:
        group = Group(found, begin, begin + run.length)
        begin += run.length
        name = f"group {group.stages[0].name if group.stages else begin}"
        pieces = group.pieces(run.columns, run.rows) if group.stages and min(run.columns, run.rows) > 0 else None
        if pieces is None:
            seen.faults.append(f"{name}: it cannot run in pieces of {run.columns} x {run.rows}")
            return seen
        counts = [sum(one.count for one in kind) for kind in run.pieces]
        if counts != list(pieces.values()):
            seen.faults.append(f"{name}: {counts} pieces are planned, there are {list(pieces.values())}")
            return seen
        seen.groups.append([
            [_follow(piece, machine, one, seen.faults) for one in kind]
            for piece, kind in zip(pieces, run.pieces, strict=True)
        ])  # fmt: skip
        seen.faults += [f"{name}: {fault}" for fault in numbers.run(group, run.columns, run.rows)]
    if begin != len(found.stages):
        seen.faults.append(f"{begin} stages are planned, there are {len(found.stages)}")
    return seen


def _follow(piece: Piece, machine: Machine, run: PieceRun, faults: list[str]) -> PieceReplay:
    """The banks of a piece, and its time."""
    banks = machine.banks
    assert banks is not None
    moved = replay_banks(piece.found, banks, run.stages)
    faults += moved.faults
    if moved.faults:
        return PieceReplay(run.count, moved, {})
    spent = spent_on(banks, moved, machine.transfer, machine.compute.cycle_ticks, writing=banks.writes == "bus")
    return PieceReplay(run.count, moved, spent)


# ---- numbers -----------------------------------------------------------------------------------------------------


class Numbers:
    """What DRAM holds of every map, and what layer by layer is made."""

    def __init__(self, found: Stages) -> None:
        self.found, self.right = found, dict[str, Ints]()
        made = {stage.target for stage in found.stages}
        for name, one in found.maps.items():
            if name not in made:
                self.right[name] = self._random(name, *self._shape(name, one))
        for stage in found.stages:
            result = self._compute(stage, found, [self.right[name] for name in operands(stage)])
            self.right[stage.target] = (self.right.get(stage.target, np.int64(0)) + result) % _PRIME
        #: Parts of maps by the stages that make them: concatenations have several.
        self.dram: dict[str, Ints] = {name: self.right[name] for name in found.maps if name not in made}
        self.parts = {name: sum(stage.target == name for stage in found.stages) for name in made}
        self.left: dict[str, int] = {}

    def _shape(self, name: str, one: FeatureMap) -> tuple[int, int]:
        """Columns and rows; patches lie as the pixels of the result do."""
        patched = [s for s in self.found.stages if s.kind == "patches" and s.source == name and s.pooled is None]
        return self.found.computed(patched[0]) if patched else (one.columns, one.rows)

    @staticmethod
    def _random(name: str, *shape: int) -> Ints:
        """Numbers that belong to a name."""
        return np.random.default_rng(zlib.crc32(name.encode())).integers(1, _PRIME, shape)

    def _compute(self, stage: Stage, found: Stages, given: list[Ints], name: str = "") -> Ints:
        """A stage: of every window the sum of its numbers, each times a weight; what lies outside of the map is 0."""
        name = name or stage.name
        if stage.pooled is not None or stage.kind == "whole":
            weights = self._random(name, *given[0].shape)
            return np.array([[int((given[0] * weights % _PRIME).sum()) % _PRIME]], dtype=np.int64)
        if stage.kind in ("sum", "patches"):
            weights = self._random(name, len(given))
            terms = [a * w % _PRIME for a, w in zip(given, weights, strict=True)]
            return np.asarray(sum(terms), np.int64) % _PRIME
        high, target = found.heights[stage.name], found.maps[stage.target]
        weights = self._random(name, stage.taps, high.taps)
        result = np.zeros((target.columns, target.rows), np.int64)
        x, y = np.arange(target.columns) * stage.stride, np.arange(target.rows) * high.stride
        for i in range(stage.taps):
            for j in range(high.taps):
                at, to = x - stage.before + i * stage.dilation, y - high.before + j * high.dilation
                inside = (at >= 0) & (at < given[0].shape[0]), (to >= 0) & (to < given[0].shape[1])
                cell = given[0][np.ix_(at[inside[0]], to[inside[1]])] * int(weights[i, j]) % _PRIME
                result[np.ix_(*inside)] += cell
        return result % _PRIME

    def run(self, group: Group, columns: int, rows: int) -> list[str]:
        """Compute a group piece by piece; returns what is wrong with it."""
        faults, whole = list[str](), (group.last.columns, group.last.rows)
        made = {name: np.zeros(self.right[name].shape, np.int64) for name in group.leaving}
        times = {name: np.zeros(self.right[name].shape, np.int64) for name in group.leaving}
        kinds = Counter[Piece]()
        for left in range(0, whole[0], columns):
            for top in range(0, whole[1], rows):
                piece = group.piece(left, top, columns, rows)
                kinds[piece] += 1
                faults += self._piece(group, piece, made, times)
        if kinds != group.pieces(columns, rows):
            faults.append("pieces that count as alike differ")
        for name in group.leaving:
            mine = sum(stage.target == name for stage in group.stages)
            if (times[name] != 1).any():
                faults.append(f"{name}: {int((times[name] != 1).sum())} numbers are not left once")
            self.dram[name] = (self.dram.get(name, np.int64(0)) + made[name]) % _PRIME
            self.left[name] = self.left.get(name, 0) + mine
            if self.left[name] == self.parts[name] and (self.dram[name] != self.right[name]).any():
                faults.append(f"{name}: its numbers differ from those of layer by layer")
        return list(dict.fromkeys(faults))

    def _piece(
        self, group: Group, piece: Piece, made: dict[str, Ints], times: dict[str, Ints]
    ) -> list[str]:  # fmt: skip
        """One piece."""
        local: dict[str, Ints] = {}
        names = dict(zip(piece.found.maps, piece.views, strict=True))
        for own, (key, box) in names.items():
            if key.map in group.made:
                continue
            if key.map not in self.dram or self.left.get(key.map, 0) != self.parts.get(key.map, 0):
                return [f"{key.map} is read before it is made"]
            local[own] = self.dram[key.map][_part(box)]
        for stage, original in zip(piece.found.stages, group.stages, strict=True):
            given = [local[name] for name in operands(stage)]
            result = self._compute(stage, piece.found, given, original.name)
            local[stage.target] = (local.get(stage.target, np.int64(0)) + result) % _PRIME
        for own, (key, box) in names.items():
            if key.map in group.leaving and key == Key(key.map):
                made[key.map][_part(box)] += local[own]
                times[key.map][_part(box)] += 1
        return []


def _part(box: Box) -> tuple[slice, slice]:
    return slice(*box.columns), slice(*box.rows)
