"""The command `certile check`; exit code 1 if the check fails, 4 if a proof was asked for and takes longer."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from instances.errors import InputError
from solver.ask import options
from solver.calls.check import CheckReport
from solver.calls.check import check as check_plan
from solver.cli.exits import CHECK_FAILED, UNDECIDED
from solver.cli.flags import JsonOpt, PlanArg
from solver.show import console


def check(
    plan: PlanArg,
    prove: Annotated[
        bool, typer.Option("--prove", help="Solve the stored request again, by another engine where there is one")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds for --prove in all: 60")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Processes for --prove, 0 = all processors: -j 4")
    ] = 0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the better plan, if --prove finds one")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Re-price and replay a plan from its decisions alone, and doubt its claims by heuristics.

    Exit code 1 and one line for every mismatch and every claim that is refuted; 4 if --prove is undecided.
    """
    if not prove and (time_limit is not None or out is not None):
        raise InputError("--time-limit, --out: only for check --prove")
    options.check_writable(out)
    report = check_plan(plan, prove=prove, time_limit_s=time_limit, jobs=jobs)
    written = out is not None and report.better is not None
    if out is not None and report.better is not None:
        console.write(out, report.better.file_text(out))
    if as_json:
        console.emit(json.dumps(report.to_json(), indent=1))
    else:
        for line in report.problems:
            console.emit(f"mismatch: {console.printable(line)}")
        console.emit(f"{console.printable(plan)}: {_said(report)}")
        if out is not None:
            console.emit(f"written to {out}" if written else "no better plan is known: nothing is written")
    return _code(report)


def _said(report: CheckReport) -> str:
    verdict = "ok" if report.ok else f"FAILED, {len(report.problems)} mismatches"
    executed = f", {report.executed} of them executed on integers" if report.executed else ""
    counted = f"{report.layers} schedules re-priced and replayed{executed}"
    return f"{verdict}; {counted}; {console.printable(report.verdict)}"


def _code(report: CheckReport) -> int:
    if not report.ok:
        return CHECK_FAILED
    return UNDECIDED if report.proof == "undecided" else 0
