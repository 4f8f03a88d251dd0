"""The exact search of one order: branch and bound over boxes of chains, one set of chains for every dimension.

The chains of a dimension are the leaves of a binary tree (`Tree`), halved where their factors differ most, as far as
the search comes. A box is a
node of each tree: with the least factor of all chains below a node in every product, rows are lower bounds for the box
(`formulations.levels.terms`). Boxes above a capacity, a cap or the best value are dropped, the others are halved along
the tree whose chains differ most in what counts.

`descend` finds good plans: from the chains with the smallest tiles on, pairs of dimensions are exchanged for the best
pair that fits, until nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock
from formulations.levels.terms import Extreme, Guess, Row, Terms
from hwmodels.nest.price.bilinear import Ints

#: Boxes that are halved at a time; pairs of chains that are looked at together.
_BATCH, _PAIRS = 2048, 1_000_000
#: The value of what does not fit.
NOTHING = int(np.iinfo(np.int64).max)


class Tree:
    """The chains of an axis: node 0 holds all; halves of a node are made when they are asked for."""

    def __init__(self, table: Ints) -> None:
        self.table, self.logs = table, np.log(np.maximum(table, 1))
        self.rows = [np.arange(len(table))]
        self.least, self.spread = np.zeros((16, table.shape[1]), np.int64), np.zeros((16, table.shape[1]))
        """By node (N, Q): the least factors below it; the logarithm of the largest over the least."""
        self.halves = np.zeros((16, 2), np.int64)
        """By node the numbers of its halves, 0 if they are not made yet."""
        self.pick = np.zeros(16, np.int64)
        """By node its chain if it has one alone, else -1."""
        self._enter(0)

    def _enter(self, node: int) -> None:
        """Note what is known of a node."""
        if node == len(self.pick):
            for name in ("least", "spread", "halves", "pick"):
                known = getattr(self, name)
                setattr(self, name, np.concatenate([known, np.zeros_like(known)]))
        rows = self.rows[node]
        mine = self.logs[rows]
        self.least[node] = self.table[rows].min(axis=0)
        self.spread[node] = mine.max(axis=0) - mine.min(axis=0)
        self.pick[node] = rows[0] if len(rows) == 1 else -1

    def halve(self, nodes: Ints) -> Ints:
        """The halves of nodes (B,), (B, 2): at the median of the factor that differs most."""
        for node in np.unique(nodes[self.halves[nodes, 0] == 0]):
            rows = self.rows[node]
            along = int(self.spread[node].argmax()) if self.spread.shape[1] else 0
            order = rows[np.argsort(self.logs[rows, along], kind="stable")] if self.spread.shape[1] else rows
            for side, part in enumerate((order[: len(order) // 2], order[len(order) // 2 :])):
                self.rows.append(part)
                self._enter(len(self.rows) - 1)
                self.halves[node, side] = len(self.rows) - 1
        made: Ints = self.halves[nodes]
        return made


#: What picks cost, beside what rows say of them.
Judge = Callable[[tuple[int, ...]], int | None]


@dataclass
class _Best:
    """The best picks so far, and what is left open."""

    most: int
    """Only less is of interest."""
    picks: tuple[int, ...] | None = None
    open: int = NOTHING
    """The least bound of picks whose rows are bounds alone: other nests, with chains that are not listed or loops in
    another order, may come closer to it than what was looked at.
    """
    ended: bool = False
    """Whether nothing more is looked at."""

    @property
    def limit(self) -> int:
        """From which bound on picks are of no interest."""
        return min(self.most, self.open) if self.ended else self.most

    @property
    def known(self) -> list[int]:
        """What bounds follow from."""
        return [*([self.most] if self.picks is not None else []), *([self.open] if self.open < self.most else [])]

    def take(self, value: int, picks: tuple[int, ...], judge: Judge | None) -> bool:
        """Look at picks by their bound; False if none that are worse by it can be of interest."""
        if value >= self.limit:
            return False
        cost = value if judge is None else judge(picks)
        if judge is not None:
            self.open, self.ended = min(self.open, value), self.ended or cost is None
        if cost is not None and cost < self.most:
            self.most, self.picks = cost, picks
        return cost is not None


class Searched:
    """The search of one order for one goal: `row` is minimised, `caps` are rows with the most they may be."""

    def __init__(self, terms: Terms, measure: str, most: Mapping[str, int]) -> None:
        self.terms, self.row = terms, terms.measures[measure]
        self.caps: list[tuple[Row | Extreme, int]] = [*terms.memories.values()]
        self.caps += [(terms.measures[name], cap) for name, cap in most.items()]
        self.nodes = 0

    def fits(self, products: Ints) -> NDArray[np.bool_]:
        """Which of some products keep to all caps."""
        good = np.ones(products.shape[:-1], np.bool_)
        for row, most in self.caps:
            good &= row.value(products) <= most
        return good

    def floor(self) -> int | None:
        """A lower bound of the order without a search; None if nothing fits."""
        least = np.ones(len(self.terms.tables[0][0]) if self.terms.tables else 0, np.int64)
        for table in self.terms.tables:
            least = least * table.min(axis=0)
        return int(self.row.value(least)) if bool(self.fits(least)) else None

    # ---- plans -------------------------------------------------------------------------------------------------------

    def descend(self, pairs: int = 0, start: list[int] | None = None) -> tuple[int, tuple[int, ...]] | None:
        """A plan, by value and picks; None if none is found. Caps are met one after the other, then the row falls.

        `pairs`: the most pairs of chains of two axes that are looked at together; else one axis is by itself. `start`:
        picks that keep to all caps.
        """
        tables, caps = self.terms.tables, self.caps
        memories, asked = caps[: len(self.terms.memories)], caps[len(self.terms.memories) :]
        picks = [self._smallest(a) for a in range(len(tables))] if start is None else [*start]
        try:
            self.caps = list(memories) if start is None else list(caps)
            for row, most in asked if start is None else ():
                if self._falls(picks, row, pairs) > most:
                    return None
                self.caps.append((row, most))
            guess = self.terms.guess if self.row is self.terms.measures.get("time") else None
            value = self._falls(picks, guess or self.row, pairs)
            return None if value == NOTHING else (value, tuple(picks))
        finally:
            self.caps = caps

    def _falls(self, picks: list[int], row: Row | Extreme | Guess, pairs: int) -> int:
        """Exchange chains for better ones by a row until nothing is gained; its value, `NOTHING` if nothing fits."""
        axes, best = range(len(picks)), self._value(picks, row)
        size = [len(table) for table in self.terms.tables]
        together = [pair for pair in combinations(axes, 2) if size[pair[0]] * size[pair[1]] <= pairs]
        while best < NOTHING:
            before = best
            for pair in [*((a,) for a in axes), *together]:
                found, chosen = self._exchanged(picks, pair, row)
                if found < best:
                    best = found
                    for a, pick in zip(pair, chosen, strict=True):
                        picks[a] = pick
            if best >= before:
                break
        return best

    def _smallest(self, a: int) -> int:
        """The chain with the smallest tiles."""
        table = self.terms.tables[a]
        tiles = sorted({term for row, _ in self.terms.memories.values() for term in row.factors})
        return int(np.log(table[:, tiles]).sum(axis=1).argmin()) if tiles else 0

    def _value(self, picks: Sequence[int], row: Row | Extreme | Guess) -> int:
        products = self.terms.products([np.array([pick]) for pick in picks])
        return int(row.value(products)[0]) if self.fits(products)[0] else NOTHING

    def _exchanged(
        self, picks: Sequence[int], pair: Sequence[int], row: Row | Extreme | Guess
    ) -> tuple[int, tuple[int, ...]]:  # fmt: skip
        """The best chains of one or two axes beside the others, and their value."""
        tables = self.terms.tables
        rest = np.ones((1, tables[0].shape[1]), np.int64)
        for a, table in enumerate(tables):
            if a not in pair:
                rest = rest * table[picks[a]]
        one = rest * tables[pair[0]]
        two = tables[pair[1]] if len(pair) > 1 else np.ones_like(rest)
        best, chosen, size = NOTHING, (0,) * len(pair), max(1, _PAIRS // len(two))
        for at in range(0, len(one), size):
            products = one[at : at + size, None, :] * two[None, :, :]
            values = np.where(self.fits(products), row.value(products), NOTHING)
            i, j = np.unravel_index(int(values.argmin()), values.shape)
            if values[i, j] < best:
                best, chosen = int(values[i, j]), (at + int(i), int(j))[: len(pair)]
        return best, chosen

    def ranked(self, picks: Sequence[int], a: int) -> list[int]:
        """The chains of an axis that fit beside others, those with the best guess first."""
        tables = self.terms.tables
        products = np.ones((1, tables[0].shape[1]), np.int64)
        for k, table in enumerate(tables):
            products = products * (table if k == a else table[picks[k]])
        values = np.where(self.fits(products), (self.terms.guess or self.row).value(products), NOTHING)
        return [int(k) for k in np.argsort(values, kind="stable") if values[k] < NOTHING]

    # ---- proof -------------------------------------------------------------------------------------------------------

    def best(
        self, below: int | None, clock: Clock, judge: Judge | None = None
    ) -> tuple[tuple[int, ...] | None, int | None]:
        """The picks of the least value below `below`, if there are any, and a bound: None if there is nothing below.

        When the time is up the bound is the least one of the boxes that are left. `judge` says what picks cost where
        rows are bounds alone: NOTHING if they do not keep to the caps, None if it does not look at more; those picks
        are left open.
        """
        trees = [Tree(table) for table in self.terms.tables]
        found = _Best(NOTHING if below is None else below)
        stack, weigh = [(self.floor() or 0, np.zeros((1, len(trees)), np.int64))], self._weights()
        while stack:
            if clock.over:
                return found.picks, min([least for least, _ in stack] + found.known)
            boxes = self._taken(stack)
            boxes, values = self._bounded(trees, boxes, found.limit)
            open_ = np.stack([tree.pick[boxes[:, a]] < 0 for a, tree in enumerate(trees)], axis=1)
            done = ~open_.any(axis=1)
            for at in np.flatnonzero(done)[np.argsort(values[done], kind="stable")]:
                picks = tuple(int(tree.pick[boxes[at, a]]) for a, tree in enumerate(trees))
                if not found.take(int(values[at]), picks, judge):
                    break
            going = ~done & (values < found.limit)
            boxes, values, open_ = boxes[going], values[going], open_[going]
            if not len(boxes):
                continue
            score = np.stack([tree.spread[boxes[:, a]] @ weigh for a, tree in enumerate(trees)], axis=1)
            along = np.where(open_, score, -1.0).argmax(axis=1)
            halves = np.repeat(boxes[:, None, :], 2, axis=1)
            for a, tree in enumerate(trees):
                mine = np.flatnonzero(along == a)
                halves[mine, :, a] = tree.halve(boxes[mine, a])
            order = np.argsort(values, kind="stable")
            stack.append((int(values.min()), halves[order].reshape(-1, len(trees))))
        return found.picks, min(found.known, default=None)

    @staticmethod
    def _taken(stack: list[tuple[int, Ints]]) -> Ints:
        """Take boxes off a stack of parts with their least bounds, the last ones first."""
        least, boxes = stack.pop()
        some, number = [boxes], len(boxes)
        while stack and number < _BATCH:
            least, boxes = stack.pop()
            some.append(boxes)
            number += len(boxes)
        made = np.concatenate(some)
        if number > _BATCH:
            stack.append((least, made[_BATCH:]))
        return made[:_BATCH]

    def _weights(self) -> NDArray[np.float64]:
        """How much the spread of a product counts: those of the objective twice."""
        found = np.zeros(self.terms.tables[0].shape[1] if self.terms.tables else 0)
        for row, _ in self.caps:
            for term in row.factors:
                found[term] += 1.0
        for term in {*self.row.factors, *(term for pair in self.row.pairs for term in pair)}:
            found[term] += 2.0
        return found

    def _bounded(self, trees: Sequence[Tree], boxes: Ints, most: int) -> tuple[Ints, Ints]:
        """The boxes that may hold something better, and their bounds."""
        self.nodes += len(boxes)
        least = trees[0].least[boxes[:, 0]]
        for a, tree in enumerate(trees[1:], 1):
            least = least * tree.least[boxes[:, a]]
        values = self.row.value(least)
        good = (values < most) & self.fits(least)
        return boxes[good], values[good]
