"""The problems, by name: a line each. One is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from formulations.registry import FORMULATIONS, NESTS
from instances.late import Later, late
from solver.names import unknown

if TYPE_CHECKING:
    from solver.claims import Claim
    from solver.plan import Plan
    from solver.problem import Problem

_generic = late("solver.generic:GenericProblem")


def _made(name: str, found: Any) -> Problem[Any]:
    """Return a problem: of a class of its own, of the class and a space of nests, or of a formulation alone."""
    made: Problem[Any] = (
        found(NESTS[name]) if name in NESTS else _generic(found()) if name in FORMULATIONS else found()
    )  # fmt: skip
    return made


_OWN = {
    "tiling": "solver.tiling.problem:LayersProblem",
    "slicing": "solver.tiling.problem:LayersProblem",
    "mesh": "solver.mesh.problem:Mesh",
    "partial_engine": "solver.partial_engine.problem:PartialEngineProblem",
    "mapping": "solver.mapping.problem:MappingProblem",
    "applications": "solver.applications.problem:ApplicationsProblem",
    "banks": "solver.banks.problem:BanksProblem",
    "joint": "solver.joint.problem:JointProblem",
    "hybrid": "solver.hybrid.problem:HybridProblem",
    "fusion": "solver.fusion.problem:FusionProblem",
    "placement": "solver.placement.problem:PlacementProblem",
    "selection": "solver.selection.problem:SelectionProblem",
}
PROBLEMS: Later[Problem[Any]] = Later({**_OWN, **FORMULATIONS}, _made)


class _Kinds(Mapping[str, "type[Plan]"]):
    """By problem the class of its plans."""

    def __getitem__(self, name: str) -> type[Plan]:
        return PROBLEMS[name].plan

    def __iter__(self) -> Iterator[str]:
        return iter(PROBLEMS)

    def __len__(self) -> int:
        return len(PROBLEMS)


KINDS = _Kinds()


def generic() -> dict[str, Problem[Any]]:
    """Return the problems that are a formulation and nothing else."""
    return {name: PROBLEMS[name] for name in PROBLEMS if name not in _OWN}


def pick_problem(name: str) -> Problem[Any]:
    """Return a problem by its name; raises InputError with the known ones."""
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    return PROBLEMS[name]


def problem_of(plan: Plan) -> Problem[Any]:
    """Return the problem of a plan; raises InputError if there is none of that name."""
    return pick_problem(plan.problem)


def claims_of(plan: Plan) -> tuple[Claim, ...]:
    """Return what a plan claims, part by part."""
    claims: Iterator[Claim] = problem_of(plan).claims(plan)
    return tuple(claims)


def rows_of(plan: Plan) -> tuple[Any, ...]:
    """Return the rows of `plan.layers`."""
    problem: Any = problem_of(plan)
    return tuple(problem.layer_rows(plan))
