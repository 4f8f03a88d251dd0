"""Read a plan file of either format."""

from __future__ import annotations

import os

from instances.jsonfile import as_object, parse_json, read_bytes
from solver.bank_plan import BANKS_FORMAT, BankPlan
from solver.plan import Plan

__all__ = ["load_plan"]


def load_plan(path: str | os.PathLike[str]) -> Plan | BankPlan:
    """Read a plan of layers or a plan in banks; raises InputError if the file is missing or neither."""
    data, where = read_bytes(path, what="plan"), f"plan {os.fspath(path)}"
    if as_object(parse_json(data, where), where).get("format") == BANKS_FORMAT:
        return BankPlan.from_json(data, where)
    return Plan.from_json(data, where)
