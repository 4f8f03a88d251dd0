"""Brute force for hybrid: every chain of groups, whole and in pieces of every size, every program of every piece.

Pieces cost what their programs do, and begin and end with empty banks: `tests.adversary.banks.Programs` looks at all
programs of each, action by action; a chain is the sum of its pieces. An example: two stages on four columns are one
group, whole or in pieces of 1, 2 columns, or two groups, each in pieces or whole. What a plan moves is no less than the
elements that the network reads and makes (`tests.adversary.elements`), whatever pieces there are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from instances.network.feature_maps import Stages
from instances.network.pieces import Group, Piece
from tests.adversary import banks_cases
from tests.adversary.banks import InBanks, Programs


@dataclass(frozen=True)
class Case(banks_cases.Case):
    """A small network and banks."""

    slow: ClassVar = ("milp", "cp-sat", "per-layer", "pure-fusion", "hybrid-paper")

    @property
    def least_bytes(self) -> int:
        """Where pieces may leave out what no result needs, nothing is said."""
        counted = self.counted
        return counted.least if counted.plain else 0

    def takes(self, engine: str) -> bool:
        """Whether an engine can be asked: each can."""
        return True


class _Chains:
    """All chains of groups of one reading that cost less than a plan that is known."""

    def __init__(self, found: Stages, case: Case, known: int | None) -> None:
        self.found, self.case, self.known, self.complete = found, case, known, True
        self._costs: dict[Piece, int | None] = {}

    def least(self) -> int | None:
        """The least cost of a chain, `known` if none is less."""
        costs: list[int | None] = [0]
        for end in range(1, len(self.found.stages) + 1):
            ways = (
                before + cost
                for begin, before in enumerate(costs)
                for cost in self._groups(begin, end) if before is not None
            )  # fmt: skip
            costs.append(min(ways, default=None))
        return costs[-1]

    def _groups(self, begin: int, end: int) -> Iterator[int]:
        """What a group costs, in pieces of every size."""
        group = Group(self.found, begin, end)
        for columns in {-(-group.last.columns // number) for number in range(1, group.last.columns + 1)}:
            costs = [(self._cost(one), many) for one, many in (group.pieces(columns, group.last.rows) or {}).items()]
            if costs and all(cost is not None for cost, _ in costs):
                yield sum((cost or 0) * many for cost, many in costs)

    def _cost(self, piece: Piece) -> int | None:
        """The least of all programs of a piece; None if none fits."""
        if piece not in self._costs:
            search = Programs(piece.found, self.case.machine, self.case.objective, self.known, random.Random(0))
            self._costs[piece] = None
            if all(one.column_bytes <= self.case.banks[1] for one in piece.found.maps.values()):
                self.complete &= search.search()
                self._costs[piece] = search.least
        return self._costs[piece]


class _Hybrid(InBanks[Case]):
    name = "hybrid"
    kind = Case

    def least(self, case: Case, found: Stages, known: int | None) -> tuple[int | None, bool]:
        """All chains of groups."""
        chains = _Chains(found, case, known)
        return min((value for value in (known, chains.least()) if value is not None), default=None), chains.complete


TESTER = _Hybrid()
