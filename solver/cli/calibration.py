"""The command `certile calibrate`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from instances.errors import InputError
from solver.ask import options
from solver.ask.progress import progress_bar
from solver.cli.flags import JobsOpt, JsonOpt
from solver.show import console
from solver.uses.calibration.calibrate import calibrate as run


def calibrate(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="Bundled name or .json file: nmp")],
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="Measured rows: a .csv file, or bundled: tso_table2, dma_table1")
    ],
    fit: Annotated[
        list[str] | None,
        typer.Option(
            "--fit",
            "-f",
            metavar="F=A..B",
            help="Fit this price within bounds (repeatable): transfer.burst_ticks=0..500ns; default: all it has",
        ),
    ] = None,
    force: Annotated[
        list[str] | None, typer.Option("--force", metavar="F", help="Fit this field though the rows do not identify it")
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out", metavar="KEY", help="Predict these rows by the others (repeatable); each: all in turn"
        ),
    ] = None,
    weights: Annotated[
        str, typer.Option("--weights", metavar="W", help="Squares of relative or absolute residuals")
    ] = "relative",
    fixed_plans: Annotated[
        bool, typer.Option("--fixed-plans", help="Keep the plans that are best before; else they are made anew")
    ] = False,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Make plans anew at most so often")] = 10,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="F=V", help="Override a machine field first: reading=literal")
    ] = None,
    tick_ps: Annotated[
        int | None, typer.Option("--tick-ps", metavar="N", help="Finer ticks first, against rounding: --tick-ps 25")
    ] = None,
    jobs: JobsOpt = 0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the calibrated machine: -o mine.json")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Fit prices of a machine to measured times by bounded least squares; say which the rows cannot identify.

    Rows are plans that were measured, or networks and layers whose best plans were. docs/calibrate.md has the columns.
    Exit codes: 0 calibrated, 2 bad input; what is not identified keeps the machine's value and is said.
    """
    if out is not None:
        options.check_writable(out)
        if not out.lower().endswith(".json"):
            raise InputError(f"output {out}: a machine file ends in .json, or certile solve would not find it")
    result = run(
        machine, rows, fit=fit or (), force=force or (), leave_out=leave_out or (), weights=weights,
        fixed_plans=fixed_plans, rounds=rounds, settings=set_, tick_ps=tick_ps, jobs=jobs, progress=progress_bar(),
    )  # fmt: skip
    if out is not None:
        console.write(out, result.machine_text())
    if as_json:
        console.emit(json.dumps(result.to_json(), indent=1))
        return 0
    from solver.uses.calibration.result import calibration_tables

    console.emit_tables(*calibration_tables(result), *([f"written to {out}"] if out else []))
    return 0
