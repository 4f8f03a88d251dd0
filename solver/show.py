"""Plans of all problems for people, alike: one line of what is known, a table, and the layers or tasks in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from instances.errors import InputError
from solver.applications.plan import ApplicationsPlan
from solver.applications.show import applications_details, applications_status, applications_table
from solver.banks.plan import BankPlan
from solver.banks.show import bank_details, bank_status, bank_table
from solver.joint.plan import JointPlan
from solver.joint.show import joint_details, joint_status, joint_table
from solver.mapping.plan import MappingPlan
from solver.mapping.show import mapping_details, mapping_status, mapping_table
from solver.mesh.plan import MeshPlan
from solver.mesh.show import mesh_details, mesh_status, mesh_table
from solver.nest_show import nest_details, nest_status, nest_table
from solver.network_plan import WholePlan
from solver.partial_engine.plan import EnginePlan
from solver.partial_engine.show import engine_details, engine_status, engine_table
from solver.plan import Plan
from solver.report import Sheet, render

__all__ = ["plan_table", "show", "status_line"]

P = TypeVar("P")


@dataclass(frozen=True)
class _View(Generic[P]):
    """How the plans of a problem are shown.

    Attributes
    ----------
    status : callable
        What is known: first network, machine, problem, engine and status, then the objective with bound and gap.
    details : callable
        Lines about one layer, or task; without a name about all, and what shows the plan as a whole.
    """

    status: Callable[[P], Sequence[str]]
    table: Callable[[P], Sheet]
    details: Callable[[P, str | None], Iterable[str]]


_VIEWS: dict[type, _View[Any]] = {
    Plan: _View(nest_status, nest_table, nest_details),
    ApplicationsPlan: _View(applications_status, applications_table, applications_details),
    BankPlan: _View(bank_status, bank_table, bank_details),
    EnginePlan: _View(engine_status, engine_table, engine_details),
    JointPlan: _View(joint_status, joint_table, joint_details),
    MappingPlan: _View(mapping_status, mapping_table, mapping_details),
    MeshPlan: _View(mesh_status, mesh_table, mesh_details),
}


def status_line(plan: Plan | WholePlan) -> str:
    """Return one line that says what is known: status, value, bound, gap and replay."""
    return "; ".join(_VIEWS[type(plan)].status(plan))


def plan_table(plan: Plan | WholePlan) -> Sheet | str:
    """Return the table of a plan's layers, tasks or applications; empty if nothing is decided."""
    return _VIEWS[type(plan)].table(plan) if _names(plan) else ""


def show(plan: Plan | WholePlan, layer: str | None = None, *, details: bool = False) -> str:
    """Return a summary of a plan: what is known, a line each, and the table.

    Parameters
    ----------
    layer : str, optional
        In its place this layer, or task, with its loops and buffers, bank program or neighbours.
    details : bool
        In its place all layers like this.

    Raises
    ------
    InputError
        If the plan has no such layer.
    """
    view, names = _VIEWS[type(plan)], _names(plan)
    if layer is not None and layer not in names:
        what = "task" if hasattr(plan, "tasks") else "layer"
        raise InputError(f"plan of {plan.network} has no {what} {layer!r}; it has {', '.join(names) or 'none'}")
    if layer is None and not (details and names):
        return render(*view.status(plan), "", plan_table(plan))
    return "\n".join(view.details(plan, layer))


def _names(plan: Plan | WholePlan) -> list[str]:
    """The layers, or tasks."""
    if isinstance(plan, ApplicationsPlan | MappingPlan):
        return list(dict.fromkeys(row.task for row in plan.tasks))
    return [row.layer for row in getattr(plan, "layers", ())]
