"""Read a plan file of any format."""

from __future__ import annotations

import os

from instances.jsonfile import as_object, parse_json, read_bytes
from solver.applications.plan import ApplicationsPlan
from solver.banks.plan import BankPlan
from solver.joint.plan import JointPlan
from solver.mapping.plan import MappingPlan
from solver.mesh.plan import MeshPlan
from solver.partial_engine.plan import EnginePlan
from solver.plan import Plan

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
