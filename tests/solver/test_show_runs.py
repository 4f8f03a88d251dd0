"""The pseudo-code of a nest is meant literally: executed line by line, it moves what the plan counts.

An interpreter of the printed text, which knows nothing of nests: loops, conditions, what is loaded, what stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Nest
from instances.machine.machine import Machine
from instances.network.workload import RELEVANT, Layer
from solver.show.pseudo_code import pseudo_code
from tests.effort import tries
from tests.hwmodels.test_abilities import any_case

Range = tuple[int, int]
Box = dict[str, Range]
#: Loop variables with their values.
Tile = tuple[tuple[str, int], ...]
#: A line with the lines inside it.
Lines = list[tuple[str, "Lines"]]


def pieces(lo: int, hi: int, at: Sequence[int]) -> list[Range]:
    """What docs/show.md says of it."""
    marks = [lo, *(place for place in at if lo < place < hi), hi]
    return list(pairwise(marks))


def nested(lines: Sequence[str], depth: int = 0) -> Lines:
    """Lines by their indentation."""
    heads = [k for k, line in enumerate(lines) if len(line) - len(line.lstrip()) == 2 * depth]
    ends = [*heads[1:], len(lines)][: len(heads)]
    return [(lines[a].strip(), nested(lines[a + 1 : b], depth + 1)) for a, b in zip(heads, ends, strict=True)]


def parts(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        found, letter = ([*found, ""], "") if letter == "," and depth == 0 else (found, letter)
        found[-1] += letter
    return found


@dataclass
class Reader:
    """Whoever does what the text says."""

    layer: Layer
    machine: Machine
    snake: bool
    now: dict[str, int] = field(default_factory=dict)
    """Loop variables."""
    first: dict[str, bool] = field(default_factory=dict)
    last: dict[str, bool] = field(default_factory=dict)
    """`first`, `last`: whether a loop is at the piece that its pass begins, or ends with."""
    there: dict[str, tuple[Tile, Box]] = field(default_factory=dict)
    """Of every operand the tile on chip: the loops that it depends on, and its box."""
    reached: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Of rows and columns of IN: the piece of the loop that moves them, their end before it, and with it."""
    leaving: int = 0
    """Bytes of partial sums that are stored unless the next tile is the same."""
    stored: set[Tile] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    # ---- loops and conditions --------------------------------------------------------------------------------------

    def run(self, lines: Lines, odd: int = 0) -> None:
        """Execute lines; `odd` is 1 where the numbers of the pieces outside add up to an odd number."""
        met = False
        for line, inside in lines:
            if line.startswith("for "):
                self.loop(line, inside, odd)
            elif found := re.fullmatch(r"if (.+?): (.+)", line):
                met = self.holds(found[1])
                self.do(found[2] * met)
            elif line.startswith("else: "):
                self.do(line.removeprefix("else: ") * (not met))
            else:
                self.do(line)

    def value(self, text: str) -> Any:
        """An expression of loop variables."""
        return eval(text, {"pieces": pieces, "min": min, "max": max, "range": range}, dict(self.now))

    def loop(self, line: str, inside: Lines, odd: int) -> None:
        """All pieces of a pass, backwards if it has to be."""
        found = re.fullmatch(r"for (.+) in (.+):", line)
        assert found
        name, *end = found[1].split(", ")
        numbered = list(enumerate(self.value(found[2])))
        for k, (number, piece) in enumerate(numbered[::-1] if self.snake and odd else numbered):
            self.now |= {name: piece[0], end[0]: piece[1]} if end else {name: piece}
            self.first[name], self.last[name] = k == 0, k == len(numbered) - 1
            self.run(inside, (odd + number) % 2)
        for one in (name, *end):
            del self.now[one]

    def holds(self, condition: str) -> bool:
        """Whether a condition is met."""
        found = re.fullmatch(r"(.+) at the (first|last) (?:piece of its pass|pieces of their passes)", condition)
        if not found:
            return bool(self.value(condition))
        side = self.first if found[2] == "first" else self.last
        return all(side[name] for name in found[1].split(" and "))

    # ---- statements ------------------------------------------------------------------------------------------------

    def do(self, line: str) -> None:
        """One statement."""
        if line.startswith(("OUT +=", "OUT = fn(")):
            self.steps += 1
        elif found := re.fullmatch(r"(?:load|slide) (W|IN|IN1, IN2)(?: in lines)?\[(.*?)\](?: with biases)?(.*)", line):
            operand = found[1][:2]
            box = self.box(found[2])
            part = self.new(operand, box, found[3])
            self.there[operand] = self.tile(operand), box
            for _ in found[1].split(", "):
                self.count(operand, self.size(operand, part) + self.biases(part) * ("with biases" in line))
        elif found := re.fullmatch(r"OUT\[(.*)\] = (0|neutral)", line):
            self.leave()
            assert self.tile("OUT") not in self.stored, "the first visit is not the first"
            self.there["OUT"] = self.tile("OUT"), {}
        elif found := re.fullmatch(r"load partial sums OUT\[(.*)\]( unless they are there)?", line):
            stays = bool(found[2]) and self.tile("OUT") == self.there.get("OUT", (None,))[0]
            self.leave(stays=stays)
            assert stays or self.machine.psum_first_read or self.tile("OUT") in self.stored
            self.there["OUT"] = self.tile("OUT"), {}
            self.count("PSUM", 0 if stays else self.size("PSUM", self.box(found[1])))
        elif found := re.fullmatch(r"store (partial sums )?OUT\[(.*)\]( unless the next tile is the same)?", line):
            row = "PSUM" if found[1] else "OUT"
            self.leaving = self.size(row, self.box(found[2])) if found[3] else 0
            self.count(row, 0 if found[3] else self.size(row, self.box(found[2])))
            self.stored |= {self.tile("OUT")} if found[1] else set()
        else:
            assert line == "", f"nobody knows what to do with: {line}"

    def leave(self, *, stays: bool = False) -> None:
        """Store the partial sums that wait, unless the next tile is the same."""
        self.count("PSUM", 0 if stays else self.leaving)
        self.leaving = 0

    def tile(self, operand: str) -> Tile:
        """The loops outside that an operand depends on, and where they are."""
        return tuple((name, at) for name, at in self.now.items() if name[0] in RELEVANT[operand])

    def box(self, text: str) -> Box:
        """A box: what stands in the brackets."""
        found = {}
        for part in parts(text) if text != "all" and text else ():
            name, lo, hi = re.fullmatch(r" ?(\w+) (.+) to (.+)", part).groups()
            found[name] = self.value(lo), max(self.value(lo), self.value(hi))
        return found

    def size(self, row: str, box: Box) -> int:
        """Bytes of a box; what it does not name is one element long."""
        element: int = getattr(self.machine, f"{row.lower()}_bytes")
        return element * prod(hi - lo for lo, hi in box.values())

    def biases(self, box: Box) -> int:
        """Bytes of the biases that go with a tile of W."""
        return self.machine.bias_bytes * prod(hi - lo for name, (lo, hi) in box.items() if name in "gm")

    def count(self, row: str, size: int) -> None:
        """A transfer; of nothing there is no call."""
        self.calls[row] += size > 0
        self.bytes[row] += size

    # ---- what is new of a tile --------------------------------------------------------------------------------------

    def new(self, operand: str, box: Box, how: str) -> Box:
        """The part of a tile that is loaded."""
        before = self.there.get(operand)
        if self.snake and before and before[0] == self.tile(operand):
            return {"": (0, 0)}
        if found := re.fullmatch(f": where (.+) moved, load {ON_EITHER_SIDE}; else all", how):
            return self.moved(before, box, re.findall(r"only (\w)", found[1])) if before else box
        behind = re.findall(BEHIND, how)
        assert how == "" or behind, how
        return box | {what: self.beyond(what, box[what], loop) for what, loop in behind}

    def moved(self, before: tuple[Tile, Box], box: Box, letters: Sequence[str]) -> Box:
        """The part of a tile that the one before did not hold, if one of these loops alone moved."""
        changed = [name[0] for name, at in self.tile("IN") if dict(before[0]).get(name) != at]
        if len(set(changed)) != 1 or changed[0] not in letters:
            return box
        what = "rows" if changed[0] in "ri" else "columns"
        (lo, hi), (first, end) = box[what], before[1][what]
        if first >= end:
            return box
        lo, hi = (lo, min(hi, first)) if lo < first else (max(lo, end), hi)
        return box | {what: (lo, max(lo, hi))}

    def beyond(self, what: str, side: Range, loop: str) -> Range:
        """The rows or columns behind those of the pieces of a loop before this one; all at its first piece."""
        at, before, now = self.reached.get(what, (-1, 0, 0))
        if self.first[loop]:
            before = 0
        elif at != self.now[loop]:
            before = now
        self.reached[what] = self.now[loop], before, max(before, side[1]) if side[0] < side[1] else before
        lo = max(side[0], before)
        return lo, max(lo, side[1])


ON_EITHER_SIDE = "what the tile before did not hold, on either side"
BEHIND = (
    r"the (rows|columns) behind those (?:on chip, all of them|of the (?:pass|window) before) "
    r"\(?at the first piece of (\w+)"
)


# ---- the tests ---------------------------------------------------------------------------------------------------


def read(layer: Layer, machine: Machine, nest: Nest) -> Reader:
    """Execute the pseudo-code of a nest."""
    text = [line.split("  # ")[0] for line in pseudo_code(layer, machine, nest).splitlines()]
    reader = Reader(layer, machine, text[0].startswith("# Loops run to and fro (snake)"))
    reader.run(nested([line for line in text if not line.startswith("#")]))
    reader.leave()
    return reader


@pytest.mark.few(3)
@pytest.mark.parametrize(("line", "snake"), [(False, False), (True, False), (False, True), (True, True)])
@settings(max_examples=tries(10, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(dice=st.randoms(use_true_random=False))
def test_who_does_what_the_text_says_moves_what_the_plan_counts(line: bool, snake: bool, dice: Random) -> None:
    layer, machine, nest = any_case(dice, line, snake)
    layer = layer.model_copy(
        update={"resident_in": (), "resident_out": 0}
    )  # the text leaves rows on chip to joint plans
    reader, outcome = read(layer, machine, nest), price(layer, machine, nest)
    assert {row: reader.bytes[row] for row in outcome.by_operand} == {
        row: counts.bytes for row, counts in outcome.by_operand.items()
    }
    assert {row: reader.calls[row] for row in outcome.by_operand} == {
        row: counts.calls for row, counts in outcome.by_operand.items()
    }
