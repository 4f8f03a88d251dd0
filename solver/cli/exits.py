"""Exit codes of the command line, and what is said with them: one line on stderr."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from instances.errors import InfeasibleError, InputError, OutputError, PlanMismatch
from solver.show import console

if TYPE_CHECKING:
    from solver.plan.plan import Status

EXIT_CODES: dict[Status, int] = {"OPTIMAL": 0, "FEASIBLE": 0, "INFEASIBLE": 3, "NO_SOLUTION_FOUND": 4}
CHECK_FAILED, BAD_INPUT, UNDECIDED = 1, 2, 4
_OUTPUT_LOST, _DEFECT, DISAGREEMENT, _INTERRUPTED = 5, 6, 7, 130
#: All exit codes; docs/files.md says more of each.
MEANINGS = {
    EXIT_CODES["OPTIMAL"]: "solved",
    CHECK_FAILED: "check failed",
    BAD_INPUT: "bad input",
    EXIT_CODES["INFEASIBLE"]: "infeasible",
    UNDECIDED: "no solution (or proof) in time",
    _OUTPUT_LOST: "output lost",
    _DEFECT: "defect of certile",
    DISAGREEMENT: "disagreement with the library",
    _INTERRUPTED: "interrupted",
}
#: typer carries its own click since 0.24 and used the package before: reach its base error through a class both have.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def exit_code(run: Callable[[], object]) -> int:
    """Run a command and return its exit code, whatever it raises; not at all if nobody can take its output."""
    if sys.stdout is None:  # closed before certile began, and whatever is opened next would take its place
        return _failed(_OUTPUT_LOST, "output", "standard output is closed; > /dev/null throws it away")
    if sys.stderr is None:  # likewise; nobody reads what is said there
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    try:
        code = run()
    except OutputError as error:
        return _failed(_OUTPUT_LOST, "output", str(error))
    except PlanMismatch as error:
        return _failed(_DEFECT, "plan refused, please report this", str(error))
    except InfeasibleError as error:
        return _failed(EXIT_CODES["INFEASIBLE"], "infeasible", str(error))
    except InputError as error:
        return _failed(BAD_INPUT, "error", str(error))
    except _ClickError as error:
        said = getattr(error, "format_message", error.__str__)()
        hint = " (see certile --help)" if isinstance(error, _UsageError) else ""
        return _failed(BAD_INPUT, "error", f"{said}{hint}")
    except (KeyboardInterrupt, typer.Abort):  # depending on its version
        return _failed(_INTERRUPTED, "interrupted", "nothing was written")
    except SystemExit:  # how typer says that the reader of --help left
        return _failed(_OUTPUT_LOST, "output", str(console.lost_output(BrokenPipeError())))
    except OSError as error:
        return _failed(_OUTPUT_LOST, "output", str(console.lost_output(error)))
    except MemoryError:
        return _failed(UNDECIDED, "no plan", "out of memory")
    except Exception as error:  # noqa: BLE001 - Python's own exit code would be that of a failed check
        traceback.print_exc()
        return _failed(_DEFECT, "a defect, please report this", f"{type(error).__name__}: {error}")
    if code == _INTERRUPTED:  # how typer says that Ctrl-C came through
        return _failed(_INTERRUPTED, "interrupted", "nothing was written")
    return code if isinstance(code, int) else 0


def _failed(code: int, what: str, text: str) -> int:
    console.complain(what, text)
    return code
