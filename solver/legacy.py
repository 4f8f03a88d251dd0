"""The calls of version 0.1, one release longer: each is `certile.solve` or `pareto` with a problem, and warns."""

from __future__ import annotations

import warnings
from typing import Any, cast

from solver.applications.plan import ApplicationsPlan
from solver.banks.plan import BankPlan
from solver.joint.plan import JointPlan
from solver.mapping.front import MappingFront
from solver.mapping.plan import MappingPlan
from solver.mesh.plan import MeshPlan
from solver.options import as_texts
from solver.partial_engine.plan import EnginePlan
from solver.solve import pareto, solve_as


def _warn(name: str, problem: str, call: str = "solve") -> None:
    said = f"{name} goes with the next version: certile.{call}(..., problem={problem!r})"
    warnings.warn(said, DeprecationWarning, stacklevel=3)


def _bank_pins(options: dict[str, Any]) -> dict[str, Any]:
    """Turn the keywords `waiting` and `first_layer` into pins."""
    waiting, first = options.pop("waiting", None), options.pop("first_layer", None)
    pins = [*as_texts("pins", options.pop("pins", ()))]
    pins += [] if waiting is None else [f"residuals={'chip' if waiting else 'dram'}"]
    pins += [] if first is None else [f"first_layer={first}"]
    return {**options, "pins": pins}


def solve_network(target: Any, machine: Any, **options: Any) -> BankPlan:
    """Plan a network in memory banks: ``certile.solve(..., problem="banks")``."""
    _warn("solve_network", "banks")
    return solve_as(BankPlan, target, machine, **_bank_pins(options))


def front_network(target: Any, machine: Any, **options: Any) -> tuple[BankPlan, ...]:
    """Return the front of bytes and time: ``certile.pareto(..., problem="banks")``."""
    _warn("front_network", "banks", "pareto")
    return cast(tuple[BankPlan, ...], pareto(target, machine, problem="banks", **_bank_pins(options)).plans)


def solve_joint(target: Any, machine: Any, **options: Any) -> JointPlan:
    """Plan a network in a shared memory: ``certile.solve(..., problem="joint")``."""
    _warn("solve_joint", "joint")
    return solve_as(JointPlan, target, machine, **options)


def solve_mapping(target: Any, machine: Any, **options: Any) -> MappingPlan:
    """Map a network to processors: ``certile.solve(..., problem="mapping")``."""
    _warn("solve_mapping", "mapping")
    return solve_as(MappingPlan, target, machine, **options)


def front_mapping(target: Any, machine: Any, **options: Any) -> MappingFront:
    """Return the front of period and energy: ``certile.pareto(..., problem="mapping")``."""
    _warn("front_mapping", "mapping", "pareto")
    front = pareto(target, machine, problem="mapping", **options)
    return MappingFront(cast(tuple[MappingPlan, ...], front.plans), front.proven)


def solve_applications(target: Any, machine: Any, **options: Any) -> ApplicationsPlan:
    """Map several networks to processors: ``certile.solve(...)``."""
    _warn("solve_applications", "applications")
    return solve_as(ApplicationsPlan, target, machine, **options)


def solve_engine(target: Any, machine: Any, **options: Any) -> EnginePlan:
    """Plan layers on a small engine: ``certile.solve(..., problem="partial_engine")``."""
    _warn("solve_engine", "partial_engine")
    return solve_as(EnginePlan, target, machine, **options)


def solve_mesh(target: Any, machine: Any, **options: Any) -> MeshPlan:
    """Plan layers on a mesh: ``certile.solve(..., problem="mesh")``."""
    _warn("solve_mesh", "mesh")
    return solve_as(MeshPlan, target, machine, **options)
