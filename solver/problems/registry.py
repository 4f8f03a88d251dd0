"""The problems, by name: what each line of `instances.problems` leads to. One is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from instances.late import load
from instances.problems import PROBLEMS as LINES
from instances.problems import Line
from solver.ask.names import unknown

if TYPE_CHECKING:
    from solver.plan.claims import Claim
    from solver.plan.plan import Plan
    from solver.problems.problem import Problem


class _Problems(Mapping[str, "Problem"]):
    """Those of the registry, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, Problem] = {}

    def __getitem__(self, name: str) -> Problem:
        if name not in self._made:
            self._made[name] = _made(name, LINES[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in LINES

    def __iter__(self) -> Iterator[str]:
        return iter(LINES)

    def __len__(self) -> int:
        return len(LINES)


def _made(name: str, line: Line) -> Problem:
    """Return a problem: of a class of its own in `solver`, or of a formulation alone."""
    if not line.package and find_spec(f"solver.problems.{name}"):
        made: Problem = load(f"solver.problems.{name}:PROBLEM")()
        return made
    package = line.package or f"formulations.{name}"
    generic: Problem = load("solver.problems.problem:Problem")(load(f"{package}.problem:PROBLEM")())
    return generic


PROBLEMS = _Problems()


def pick_problem(name: str) -> Problem:
    """Return a problem by its name; raises InputError with the known ones."""
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    return PROBLEMS[name]


def problem_of(plan: Plan) -> Problem:
    """Return the problem of a plan; raises InputError if there is none of that name."""
    return pick_problem(plan.problem)


def claims_of(plan: Plan) -> tuple[Claim, ...]:
    """Return what a plan claims, part by part."""
    claims: Iterator[Claim] = problem_of(plan).claims(plan)
    return tuple(claims)
