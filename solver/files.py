"""Read a plan file of any format."""

from __future__ import annotations

import os

from instances.jsonfile import as_object, parse_json, read_bytes
from solver.bank_plan import BANKS_FORMAT, BankPlan
from solver.joint_plan import JOINT_FORMAT, JointPlan
from solver.mapping_plan import MAPPING_FORMAT, MappingPlan
from solver.mesh_plan import MESH_FORMAT, MeshPlan
from solver.plan import Plan

__all__ = ["AnyPlan", "load_plan"]

AnyPlan = Plan | BankPlan | JointPlan | MappingPlan | MeshPlan


def load_plan(path: str | os.PathLike[str]) -> AnyPlan:
    """Read a plan of any format; raises InputError if the file is missing or has none of them."""
    data, where = read_bytes(path, what="plan"), f"plan {os.fspath(path)}"
    found = as_object(parse_json(data, where), where).get("format")
    if found == BANKS_FORMAT:
        return BankPlan.from_json(data, where)
    if found == JOINT_FORMAT:
        return JointPlan.from_json(data, where)
    if found == MAPPING_FORMAT:
        return MappingPlan.from_json(data, where)
    if found == MESH_FORMAT:
        return MeshPlan.from_json(data, where)
    return Plan.from_json(data, where)
