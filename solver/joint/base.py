"""What every engine for the joint problem takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from formulations.joint.problem import Choice, Joint
from solver.joint.tables import Tables
from solver.plan import Stat, Status

__all__ = ["Decided", "Master", "Mastered"]


@dataclass(frozen=True)
class Mastered:
    """The answer for one problem with fixed tables.

    Attributes
    ----------
    bound : int
        No choice is below; `NEVER` if there is none.
    stopped : bool
        Whether Ctrl-C ended the search.
    """

    choice: Choice | None
    bound: int
    versions: str = ""
    stopped: bool = False


#: Solves one problem within some seconds, perhaps from a choice to begin with.
Master = Callable[[Joint, float | None, Choice | None], Mastered]


@dataclass(frozen=True)
class Decided:
    """An engine's answer: a choice priced with plans that exist, and their tables; or why there is none."""

    choice: Choice | None
    tables: Tables
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
    why: tuple[str, ...] = ()
