"""How the command line writes plans to files."""

from __future__ import annotations

from instances.errors import InputError
from solver.console import write
from solver.plan import Plan


def save(plan: Plan, out: str, *, shown: bool = False) -> str:
    """Write a plan, and return a line that says so. One without a solution never takes the place of one that has.

    Raises OutputError as `write`. What an interrupted run did get done is written beside it then, as ``OUT.partial``.
    """
    if plan.status in ("OPTIMAL", "FEASIBLE") or not _solved(out):
        write(out, plan.file_text(out), shown=shown)
        return f"written to {out}"
    aside = f"{out}.partial"
    if not any(part.status in ("OPTIMAL", "FEASIBLE") for part in plan.parts):
        return f"{out} is left as it is: it holds a plan, this run found none"
    write(aside, plan.file_text(aside), shown=shown)
    return f"{out} is left as it is: it holds a plan, this run has none for some layers; the others are in {aside}"


def _solved(path: str) -> bool:
    """Whether a file is there that holds a plan with a solution."""
    try:
        return Plan.load(path).status in ("OPTIMAL", "FEASIBLE")
    except InputError:
        return False
