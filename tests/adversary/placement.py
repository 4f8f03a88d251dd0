"""Brute force for placement: every memory and every address of every buffer, judged by the referee alone.

A case is a few buffers in memories of a few bytes: sizes, lives, alignments, gaps with and without windows, fixed
addresses, memories by preference, what may lie off the chip, and pairs that share no bank. Buffers are placed one after
the other; where the referee finds a fault with two of them, no placement that has both is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from formulations.pins import Pins
from formulations.placement.problem import PlacementFormulation, PlacementPart
from hwmodels.placement.replay import replay
from hwmodels.schedule import Place, Placement
from instances.network.buffers import Buffer, Buffers, Gap, Memory
from tests.adversary import cases
from tests.adversary.cases import BruteForce, Known, claimed, without
from tests.adversary.claims import Claim


class Row(NamedTuple):
    """A buffer; -1: no fixed address, or it has to be on chip. A gap's window is from `low` to `high`, 0 to 0: none."""

    lower: int
    upper: int
    size: int
    alignment: int
    gap: tuple[int, ...]
    offset: int
    memories: tuple[int, ...]
    spill: int


@dataclass(frozen=True)
class Case(cases.Case):
    """Buffers, memories as bytes and bytes of banks, pairs that share no bank, and what is minimised."""

    quick: ClassVar = ("search",)
    slow: ClassVar = ("cp-sat", "milp", "milp-cbc", "greedy")
    rules: ClassVar = ("", "room", "scale", "later", "spill")
    proves: ClassVar = False

    rows: tuple[Row, ...]
    memories: tuple[tuple[int, int], ...]
    conflicts: tuple[tuple[int, int], ...]
    aim: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(Row(*row) for row in self.rows))

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """One to five buffers in up to three memories; tops are even sometimes, windows begin anywhere."""
        unit = rng.choice((1, 1, 2))
        memories = tuple((rng.randint(2, 7), rng.choice((0, 0, 1, 2, 3))) for _ in range(rng.choice((1, 1, 2, 2, 3))))
        rows = tuple(_row(rng, memories, unit) for _ in range(rng.randint(1, 5)))
        aim = rng.choice(("bytes", "bytes", "peak", "peak", "preference"))
        if aim == "peak" and rng.randrange(4):  # else nothing on chip is the least
            rows = tuple(row._replace(spill=-1) for row in rows)
        pairs = [(i, j) for j in range(len(rows)) for i in range(j)]
        some = rng.randrange(5) < 2
        conflicts = tuple(pair for pair in pairs if some and rng.randrange(5) < 2)
        return Case(rows, memories, conflicts, aim)

    @property
    def given(self) -> Buffers:
        """The same as certile is asked."""
        buffers = []
        for number, row in enumerate(self.rows):
            gaps = []
            if row.gap:
                lower, upper, low, high = row.gap
                gaps = [Gap(lower=lower, upper=upper, window=(low, high) if high else None)]
            buffers.append(
                Buffer(
                    name=f"b{number}", lower=row.lower, upper=row.upper, size=row.size, alignment=row.alignment,
                    gaps=tuple(gaps), offset=None if row.offset < 0 else row.offset,
                    memories=tuple(f"m{k}" for k in row.memories), spill=None if row.spill < 0 else row.spill,
                )
            )  # fmt: skip
        memories = tuple(
            Memory(name=f"m{k}", bytes=size, bank_bytes=bank) for k, (size, bank) in enumerate(self.memories)
        )
        conflicts = tuple((f"b{i}", f"b{j}") for i, j in self.conflicts)
        return Buffers(name="case", buffers=tuple(buffers), memories=memories, conflicts=conflicts)

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """More room, everything three times as large, later, or free to lie off the chip."""
        if self.rule == "room" and not self.conflicts:
            return replace(self, memories=tuple((size + 1, bank) for size, bank in self.memories)), None
        if self.rule == "scale":
            return replace(self, rows=tuple(_scaled(row) for row in self.rows),
                           memories=tuple((3 * size, 3 * bank) for size, bank in self.memories)), 3 * value  # fmt: skip
        if self.rule == "later":
            return replace(self, rows=tuple(_later(row) for row in self.rows)), value
        if self.rule == "spill" and self.aim == "peak":
            return replace(self, rows=tuple(row._replace(spill=max(0, row.spill)) for row in self.rows)), 0
        return None

    def simpler(self) -> Iterator[Self]:
        """Fewer conflicts; buffers without gap, alignment, address or memories; fewer buffers without conflicts."""
        for conflicts in without(self.conflicts):
            yield replace(self, conflicts=conflicts)
        for k, row in enumerate(self.rows):
            for change in ({"gap": ()}, {"alignment": 1}, {"offset": -1}, {"memories": ()}, {"spill": -1}):
                made = row._replace(**change)
                if made != row:
                    yield replace(self, rows=(*self.rows[:k], made, *self.rows[k + 1 :]))
        if not self.conflicts and len(self.rows) > 1:
            yield from (replace(self, rows=rows) for rows in without(self.rows))


def _row(rng: random.Random, memories: Sequence[tuple[int, int]], unit: int) -> Row:
    lower, most = rng.randrange(5), max(unit, *(size for size, _ in memories))
    upper, size = rng.randint(lower + 1, 5), unit * rng.randint(1, max(1, most * 2 // 3 // unit))
    alignment = rng.choice((1, 1, 1, 2, 3)) if unit == 1 else 1
    gap: tuple[int, ...] = ()
    if rng.randrange(3) == 0 and upper - lower > 1:
        first = rng.randrange(lower, upper)
        after = rng.randint(first + 1, upper - (first == lower))
        low, high = rng.randrange(size), unit * rng.randint(1, size // unit)
        gap = (first, after, *rng.choice(((0, 0), (min(low, high - 1), high), (0, high))))
    offset = rng.randint(0, most - size) // alignment * alignment if rng.randrange(10) == 0 else -1
    named = rng.sample(range(len(memories)), rng.randint(1, len(memories))) if rng.randrange(2) else []
    return Row(lower, upper, size, alignment, gap, offset, tuple(named), rng.choice((-1, -1, 0, size, 2 * size)))


def _scaled(row: Row) -> Row:
    gap = row.gap and (*row.gap[:2], 3 * row.gap[2], 3 * row.gap[3])
    offset, spill = (value if value < 0 else 3 * value for value in (row.offset, row.spill))
    return row._replace(size=3 * row.size, alignment=3 * row.alignment, gap=gap, offset=offset, spill=spill)


def _later(row: Row) -> Row:
    gap = row.gap and (row.gap[0] + 7, row.gap[1] + 7, *row.gap[2:])
    return row._replace(lower=row.lower + 7, upper=row.upper + 7, gap=gap)


class PlacementTester(BruteForce[Case]):
    """The adversary of problem placement."""

    name = "placement"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """What an engine says."""
        part = PlacementPart(case.given, Pins())

        def judged(schedule: Placement) -> tuple[int | None, tuple[str, ...]]:
            walked = part.replay(schedule)
            return walked.measures.get(case.aim), (*walked.faults, *part.contains(schedule))

        return claimed(PlacementFormulation(), part, case.aim, engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """Look at all placements; the referee walks through the best one."""
        best = least_of(case)
        if best is None:
            return Known(None)
        walked = PlacementPart(case.given, Pins()).replay(best[1])
        return Known.replayed(best[0], walked.measures[case.aim], walked.faults)


def least_of(case: Case) -> tuple[int, Placement] | None:
    """Return the least measure of all placements in which the referee has no fault to find with any two buffers."""
    table = _Table(case)
    best: tuple[int, Placement] | None = None
    for places in table.all(()):
        value = table.value(places)
        if best is None or value < best[0]:
            best = value, Placement(tuple(place for place in places if place is not None))
    return best


class _Table:
    """Which places two buffers can have at once: the referee is asked once for every pair of places."""

    def __init__(self, case: Case) -> None:
        self.case, self.given = case, case.given
        self.alone = [
            [p for p in self._places(number) if self._legal((number,), (p,))] for number in range(len(case.rows))
        ]
        self.pairs: dict[tuple[int, Place, int, Place], bool] = {}

    def _places(self, number: int) -> Iterator[Place]:
        row = self.case.rows[number]
        for memory in row.memories or range(len(self.case.memories)):
            addresses = range(self.case.memories[memory][0]) if row.offset < 0 else (row.offset,)
            yield from (Place(f"b{number}", f"m{memory}", address) for address in addresses)

    def _legal(self, numbers: Sequence[int], places: Sequence[Place]) -> bool:
        names = {f"b{number}" for number in numbers}
        some = Buffers.model_construct(
            name="some", buffers=tuple(self.given.buffers[number] for number in numbers), memories=self.given.memories,
            conflicts=tuple(pair for pair in self.given.conflicts if names >= set(pair)),
        )  # fmt: skip
        return not replay(some, Placement(tuple(places))).faults

    def _together(self, one: Place, other: Place) -> bool:
        if one.memory != other.memory:
            return True
        key = int(one.buffer[1:]), one, int(other.buffer[1:]), other
        if key not in self.pairs:
            self.pairs[key] = self._legal((key[0], key[2]), (one, other))
        return self.pairs[key]

    def all(self, places: tuple[Place | None, ...]) -> Iterator[tuple[Place | None, ...]]:
        """Yield places of all buffers, None off the chip, that begin with some."""
        number = len(places)
        if number == len(self.case.rows):
            yield places
            return
        if self.case.rows[number].spill >= 0:
            yield from self.all((*places, None))
        for place in self.alone[number]:
            if all(other is None or self._together(other, place) for other in places):
                yield from self.all((*places, place))

    def value(self, places: Sequence[Place | None]) -> int:
        """The measure."""
        rows = self.case.rows
        if self.case.aim == "bytes":
            return sum(row.spill for row, place in zip(rows, places, strict=True) if place is None)
        if self.case.aim == "preference":
            return sum(
                row.size * row.memories.index(int(place.memory[1:]))
                for row, place in zip(rows, places, strict=True)
                if place is not None and row.memories
            )
        tops = dict[str, int]()
        for row, place in zip(rows, places, strict=True):
            if place is not None:
                tops[place.memory] = max(tops.get(place.memory, 0), place.address + row.size)
        return sum(tops.values())


TESTER = PlacementTester()
