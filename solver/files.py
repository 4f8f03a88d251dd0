"""Read a plan file of any format."""

from __future__ import annotations

import os

from instances.jsonfile import as_object, parse_json, read_bytes
from solver.applications_plan import ApplicationsPlan
from solver.banks.plan import BankPlan
from solver.joint_plan import JointPlan
from solver.mapping_plan import MappingPlan
from solver.mesh_plan import MeshPlan
from solver.plan import Plan
from solver.runs_plan import EnginePlan

__all__ = ["AnyPlan", "load_plan"]

AnyPlan = Plan | BankPlan | JointPlan | MappingPlan | ApplicationsPlan | EnginePlan | MeshPlan
_WHOLE: tuple[type[BankPlan | JointPlan | MappingPlan | ApplicationsPlan | EnginePlan | MeshPlan], ...] = (
    BankPlan, JointPlan, MappingPlan, ApplicationsPlan, EnginePlan, MeshPlan,
)  # fmt: skip


def load_plan(path: str | os.PathLike[str]) -> AnyPlan:
    """Read a plan of any format; raises InputError if the file is missing or has none of them."""
    data, where = read_bytes(path, what="plan"), f"plan {os.fspath(path)}"
    found = as_object(parse_json(data, where), where).get("format")
    kind: type[AnyPlan] = next((one for one in _WHOLE if found == one.FORMAT), Plan)
    return kind.from_json(data, where)
