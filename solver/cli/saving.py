"""What several commands share: how they write plans to files, and flags.

Of the sizes and constants of a model an example: ``--batch 4 --symbol H=48 --value sr=16000``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from instances.errors import InputError
from solver.plan.plan import Plan
from solver.show.console import write


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


BatchOpt = Annotated[int | None, typer.Option("--batch", metavar="N", help="Batch size of the network: --batch 4")]
SymbolOpt = Annotated[
    list[str] | None, typer.Option("--symbol", metavar="NAME=N", help="Size of a symbolic ONNX dimension: sequence=128")
]
ShapeOpt = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=N,..", help="Shape of an ONNX input with open sizes: x=1,3,48,320"),
]
ValueOpt = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="NAME=V", help="Value of an ONNX input that is constant: sr=16000"),
]
SetOpt = Annotated[
    list[str] | None, typer.Option("--set", metavar="F=V", help="Override a machine field: ocm_bytes=98304")
]
PlanArg = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file: plan.json")]
JobsOpt = Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Processes, 0 = all processors: -j 4")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else")]
LimitOpt = Annotated[
    float | None, typer.Option("--time-limit", metavar="S", help="Seconds in all; best so far is kept: 60")
]
