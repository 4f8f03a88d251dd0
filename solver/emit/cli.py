"""The command `certile emit-c`."""

from __future__ import annotations

from typing import Annotated

import typer

from solver import console
from solver.emit.emit import emit_c
from solver.plan import load_plan


def emit(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file: plan.json")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder for the files: -o out/")],
) -> int:
    """Write C11 that carries a plan out: loops, transfers and tiles as planned, memories as static arrays.

    `make run` in the folder builds it with gcc, runs every layer on integers, and compares results with a naive loop
    nest and what was moved with the plan. docs/emit.md says how the files are used.
    """
    names = emit_c(load_plan(plan), out)
    console.emit(f"{len(names)} files written to {out}; build and check them: make -C {out} run")
    return 0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("emit-c")(emit)
