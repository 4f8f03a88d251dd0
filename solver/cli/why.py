"""The command `certile why`."""

from __future__ import annotations

from typing import Annotated

import typer

from solver.ask import options
from solver.calls.check import sound_plan
from solver.cli.exits import EXIT_CODES
from solver.cli.flags import JsonOpt, PlanArg
from solver.show import console
from solver.uses.why.ask import why as explain


def why(
    plan: PlanArg,
    layer: Annotated[
        str | None, typer.Option("--layer", "-l", metavar="NAME", help="Only this layer: -l conv1")
    ] = None,
    marginal: Annotated[
        list[str] | None,
        typer.Option(
            "--marginal",
            metavar="FIELD",
            help="Instead the objective over a machine field (repeatable): memory, bandwidth, clock, rows, cols, or its"
            " path",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds for solving again, default 60: 10")
    ] = None,
    no_rivals: Annotated[bool, typer.Option("--no-rivals", help="Leave out the next-best decisions")] = False,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write it as JSON: -o why.json")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Say in sentences where a plan's time or bytes go, what hides waits, what binds, what other decisions cost.

    What binds is solved again without it (a pin, a memory's size, a price); what there was no time for is named.
    Causes are explained in docs/why.md.
    """
    options.check_writable(out)
    found = sound_plan(plan)
    said = explain(found, layer, marginal=marginal or (), time_limit_s=time_limit, rivals=not no_rivals)
    if out is not None:
        console.write(out, said.to_json())
    if as_json:
        console.emit(said.to_json().rstrip())
    else:
        console.emit("\n".join(console.printable(line) for line in str(said).split("\n")))
    return EXIT_CODES["INFEASIBLE"] if found.status == "INFEASIBLE" and not marginal else 0
