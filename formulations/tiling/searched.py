"""One search of a layer's nests, for problems that have nests as a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from formulations.clock import Clock
from formulations.tiling.search import Search, Values
from formulations.tiling.space import Space
from hwmodels.schedule import Nest


@dataclass(frozen=True)
class Searched:
    """What a search of a layer's nests says."""

    nest: Nest | None
    measures: Mapping[str, int] = field(default_factory=dict)
    """Of the nest; none without one."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """What no nest is below, where the nest is not proven."""
    whole: bool = True
    """Whether it was not cut short, but where ties are broken."""


def search_nests(
    space: Space, objectives: tuple[str, ...], clock: Clock, *, most: Values | None = None,
    proving: tuple[str, ...] | None = None, known: Values | None = None, polishing: bool = True, first: bool = False,
) -> Searched:  # fmt: skip
    """Search nests for a problem that has them as a part: for a good one (`first`), or the best one (`Search`).

    `most` of some measures; `proving`, `known` and `polishing` as in `Search`.
    """
    search = Search(
        space, objectives, deadline=None if clock.until == inf else clock.until, kept=dict(most or {}),
        proving=proving, known=known or {}, polishing=polishing,
    )  # fmt: skip
    pick = search.first(objectives[0]) if first else search.run()
    whole = not (search.stopped and search.ties)  # what breaks ties may stop
    nest, measures = (None, {}) if pick is None else (pick.nest, pick.measures)
    return Searched(nest, measures, search.bounds, whole)
