"""The command `certile bench`; exit code 7 if a suite finds a disagreement."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import solver.uses.bench as benchmarks
from instances.errors import InputError
from instances.problems import either
from solver.ask import options
from solver.ask.progress import progress_bar
from solver.cli.exits import DISAGREEMENT
from solver.cli.flags import JsonOpt
from solver.show import console

#: Suites whose rows can be chosen.
_ROWS = "fusion", "fusion-time", "library"


def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="See certile list suites")],
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="TEXT", help="Suites fusion, fusion-time, library: rows with this text: --only resnet50"
        ),
    ] = "",
    engine: Annotated[
        str | None, typer.Option("--engine", "-e", metavar="E", help="Suite library: by this engine: -e cp-sat")
    ] = None,
    problem: Annotated[
        str | None, typer.Option("--problem", metavar="P", help="Suite library: of this problem: --problem placement")
    ] = None,
    class_: Annotated[
        str | None, typer.Option("--class", metavar="C", help="Suite library: easy, medium, hard or open: --class easy")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="S", help="Suite library: seconds an instance, default 20: 60"),
    ] = None,
    results: Annotated[
        str | None, typer.Option("--results", metavar="FILE", help="Suite library: CSV instance,value,seconds,status")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the result: -o bench.json")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Run a benchmark suite: the optimum against heuristics and engines against each other.

    Suite library measures an engine, or the results of another program, on the instances of docs/library.md; it ends
    with exit code 7 if an answer contradicts what is proven of an instance.
    """
    suites = benchmarks.suites()
    if suite not in suites:
        raise options.unknown("suite", suite, suites)
    options.check_writable(out)
    report = suites[suite][1](progress_bar(), **_more(suite, only, {
        "engine": engine, "problem": problem, "difficulty": class_, "time_limit_s": time_limit, "results": results,
    }))  # fmt: skip
    text = json.dumps(report.to_json(), indent=1)
    if out is not None:
        console.write(out, text + "\n")
    if as_json:
        console.emit(text)
    else:
        console.emit_tables(report.table)
    figures: Any = getattr(report, "figures", {})
    for what in ("improvements", "contradictions"):
        for line in figures.get(what, ()):
            console.complain(what.removesuffix("s"), line)
    return DISAGREEMENT if figures.get("contradictions") else 0


def _more(suite: str, only: str, asked: dict[str, object]) -> dict[str, object]:
    """Options of suites that not all have; raises InputError for those of other suites."""
    given = {name: value for name, value in asked.items() if value is not None}
    if given and suite != "library":
        names = ", ".join(
            f"--{ {'difficulty': 'class', 'time_limit_s': 'time-limit'}.get(name, name) }" for name in given
        )
        raise InputError(f"{names}: for suite library, not for {suite}")
    if only and suite not in _ROWS:
        raise InputError(f"--only: rows of suites {either(_ROWS)} can be chosen, not of {suite}")
    options.check_time_limit(given.get("time_limit_s"))  # type: ignore[arg-type]
    return {**given, **({"only": only} if only else {})}
