"""What an engine says of homes: `formulations.homes.problem` with one measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formulations.homes.problem import Chosen, Places

__all__ = ["Housed", "Houser"]


@dataclass(frozen=True)
class Housed:
    """The best homes found (None: none), the bound of the measure, whether both are the optimum, or that none fits.

    `stopped` if Ctrl-C ended the search.
    """

    chosen: Chosen | None
    bound: int
    proven: bool
    infeasible: bool = False
    stopped: bool = False


#: Places, measure (None: the places of the homes), what the measures before may be at most, seconds.
Houser = Callable[[Places, int | None, Sequence[int], float | None], Housed]
