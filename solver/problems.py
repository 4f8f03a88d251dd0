"""The problems, by name: a line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from formulations import registry
from solver.applications.problem import ApplicationsProblem
from solver.banks.problem import BanksProblem
from solver.claims import Claim
from solver.fusion.problem import FusionProblem
from solver.generic import GenericProblem
from solver.hybrid.problem import HybridProblem
from solver.joint.problem import JointProblem
from solver.mapping.problem import MappingProblem
from solver.mesh.problem import Mesh
from solver.options import unknown
from solver.partial_engine.problem import PartialEngineProblem
from solver.placement.problem import PlacementProblem
from solver.plan import Plan
from solver.problem import Problem
from solver.selection.problem import SelectionProblem
from solver.tiling.problem import LayersProblem

_ALL: tuple[Problem[Any], ...] = (
    LayersProblem(registry.NESTS["tiling"]),
    LayersProblem(registry.NESTS["slicing"]),
    Mesh(),
    PartialEngineProblem(),
    MappingProblem(),
    ApplicationsProblem(),
    BanksProblem(),
    JointProblem(),
    HybridProblem(),
    FusionProblem(),
    PlacementProblem(),
    SelectionProblem(),
    *map(GenericProblem, registry.FORMULATIONS),
)
PROBLEMS: dict[str, Problem[Any]] = {problem.name: problem for problem in _ALL}


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
