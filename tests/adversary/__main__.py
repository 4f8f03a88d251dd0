"""The adversary from the shell: ``make selftest``, ``python -m tests.adversary``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from instances.errors import InputError
from solver.ask.progress import progress_bar
from solver.cli.exits import DISAGREEMENT, exit_code
from solver.show import console
from tests.adversary.run import Find, Report, chosen, judge, load_case
from tests.adversary.run import selftest as run

#: Exit code: certile disagrees with itself or with its adversary.
_INTERRUPTED = 130


def selftest(
    minutes: Annotated[float, typer.Option("--minutes", metavar="N", help="How long: --minutes 10")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Other cases for another seed: --seed 7")] = 0,
    problem: Annotated[
        list[str] | None, typer.Option("--problem", metavar="P", help="Only this problem (repeatable): tiling")
    ] = None,
    case: Annotated[
        str | None, typer.Option("--case", metavar="FILE", help="Look at a written find again: --case find.json")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where finds are written: -o finds")
    ] = "certile-selftest",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else")] = False,
) -> int:
    """Attack certile: random cases, every engine against every other, against searches of its own and against rules.

    A disagreement is shrunk and written to a file. Exit code 0 none was found, 7 at least one was.
    """
    from tests.adversary.c_code import has_compiler
    from tests.adversary.registry import TESTERS

    if not math.isfinite(minutes) or minutes <= 0:
        raise InputError(f"--minutes {minutes}: a positive number is needed")
    testers = chosen(problem or (), TESTERS)
    if "c" in testers and not has_compiler():
        console.complain("selftest", "c is left out: there is no make, or no C compiler")
        del testers["c"]
    if case is not None:
        tester, one, of = load_case(case, TESTERS)
        report = Report(0, {tester.name: 1})
        report.finds += [Find(**vars(found), seed=of) for found in judge(tester, one, of)]
    else:
        report = run(testers, seed=seed, minutes=minutes, folder=out, progress=progress_bar())
    console.emit(json.dumps(report.to_json(), indent=1) if as_json else _text(report))
    if report.finds:
        return DISAGREEMENT
    return _INTERRUPTED if report.interrupted else 0


def _text(report: Report) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in report.instances.items())
    verdict = f"{len(report.finds)} DISAGREE" if report.finds else "no disagreement"
    lines = [console.printable(f"{f.problem}: {f.what}") + (f"\n  {f.file}" if f.file else "") for f in report.finds]
    stopped = ", interrupted" if report.interrupted else ""
    return "\n".join([*lines, f"{counts} cases in {report.wall_s:.0f} s{stopped}: {verdict}"])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(selftest)
    return exit_code(
        lambda: app(None if argv is None else list(argv), prog_name="python -m tests.adversary", standalone_mode=False)
    )


if __name__ == "__main__":
    sys.exit(main())
