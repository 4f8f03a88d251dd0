"""The command line: every command is one call in Python, see `solver.calls.solve` and `solver.calls.check`.

Exit codes: 0 solved, 1 check failed, 2 bad input (one line on stderr), 3 infeasible, 4 no solution in time,
5 output could not be written (full disk, closed pipe), 6 a defect of certile, 7 a disagreement (`solver.cli.exits`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from instances.late import Later
from solver.ask.names import version
from solver.cli.exits import BAD_INPUT, EXIT_CODES, exit_code
from solver.show import console

__all__ = ["COMMANDS", "EXIT_CODES", "app", "main"]

#: Command -> its place, and its first sentence for ``certile --help``. It is imported when it is run.
COMMANDS: dict[str, tuple[str, str]] = {
    "solve": (
        "solver.cli.solve:solve",
        "Plan every conv and matmul layer of a network, or those named; problems of whole networks: all of it.",
    ),
    "check": (
        "solver.cli.check:check",
        "Re-price and replay a plan from its decisions alone, and doubt its claims by heuristics.",
    ),
    "bench": (
        "solver.cli.bench:bench",
        "Run a benchmark suite: the optimum against heuristics and engines against each other.",
    ),
    "calibrate": (
        "solver.cli.calibration:calibrate",
        "Fit prices of a machine to measured times by bounded least squares; say which the rows cannot identify.",
    ),
    "emit-c": (
        "solver.cli.emit:emit",
        "Write C11 that carries a plan out: loops, transfers and tiles as planned, memories as static arrays.",
    ),
    "compile": (
        "solver.cli.emit:compile_",
        "Plan an ONNX model as a whole and write C11 that runs it: import, plan, addresses, code, report.",
    ),
    "variants": (
        "solver.cli.variants:variants",
        "Estimate what variants of layers take, and write a profile for problem selection.",
    ),
    "price": (
        "solver.cli.mappings:price_",
        "Price your own mapping, or another tool's: replay it, and compare it with the optimum.",
    ),
    "import-mapping": (
        "solver.cli.mappings:import_mapping",
        "Read a mapping of Timeloop, ZigZag or DORY and print it as a line of certile, with what was folded or "
        "assumed.",
    ),
    "export-mapping": (
        "solver.cli.mappings:export_mapping",
        "Write the nests of a plan as a mapping of Timeloop, ZigZag or DORY, or as text.",
    ),
    "report": (
        "solver.cli.report:report",
        "Write one HTML page that needs no network: proof, tables that sort, and figures of what was decided.",
    ),
    "why": (
        "solver.cli.why:why",
        "Say in sentences where a plan's time or bytes go, what binds, and what the next-best decisions cost.",
    ),
    "show": ("solver.cli.solve:show", "Print a summary of a plan: what is known, and the table of its layers."),
    "pareto": (
        "solver.cli.solve:pareto",
        "Print the exact Pareto front of each layer, with banks of the network: plans that no other beats in all axes.",
    ),
    "explain": (
        "solver.cli.solve:explain",
        "Say how large a layer's search space is or, if nothing fits, which demands conflict (exit code 3).",
    ),
    "list": (
        "solver.cli.list:list_",
        "List what there is: networks, machines, problems, engines, objectives, pins, axes, suites, the library, ...",
    ),
    "import": (
        "solver.cli.tools:import_",
        "Say what an ONNX file holds, what can be planned of it and written as C, before any search; "
        "write a network file.",
    ),
    "new-machine": (
        "solver.cli.tools:new_machine",
        "Print a machine file to begin with: every field that the problem reads, with its unit, default and meaning.",
    ),
    "doctor": (
        "solver.cli.tools:doctor",
        "Show versions and where the four packages come from; exit code 2 if something shadows one of them.",
    ),
    "schema": (
        "solver.cli.tools:schema",
        "Print the JSON Schema of plan files, or of network, machine or library files.",
    ),
    "completion": (
        "solver.cli.completion.cli:completion",
        "Print a script that completes commands, options and names in your shell.",
    ),
    "sweep": (
        "solver.cli.sweep:app",
        "Solve grids of networks, layers, machine fields, objectives, problems: thousands of tasks, into one file.",
    ),
    "library": (
        "solver.cli.library:app",
        "Instances of all problems with the best that is known of them (docs/library.md).",
    ),
}


def _command(name: str, found: Any) -> Any:
    """Return a command, or a group of commands, as the command line runs it: of a function, or of a `typer.Typer`."""
    around = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name)(found)
    return typer.main.get_group(around).commands[name]


class _Commands(TyperGroup):
    """Lists commands by their first sentences, and imports the one that is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Later({name: place for name, (place, _) in COMMANDS.items()}, _command)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, as it would be if all were here."""
        lines: Any = {name: TyperCommand(name, help=about) for name, (_, about) in COMMANDS.items()}
        TyperGroup(name="certile", commands=lines).format_commands(ctx, formatter)


app = typer.Typer(
    name="certile", cls=_Commands,
    help="Proven-optimal tile plans for neural-network layers on machines with small on-chip memories.",
    epilog="First steps: certile list networks; certile solve lenet5 --machine scratchpad_64k; certile solve --help. "
    "Exit codes: 0 solved, 1 check failed, 2 bad input, 3 infeasible, 4 no solution in time, 5 output lost, 6 defect.",
    no_args_is_help=False, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 118},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        console.emit(f"certile {version()}")
        raise typer.Exit(0)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        console.emit(context.get_help())
        raise typer.Exit(BAD_INPUT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: bad input is one line, never a traceback."""
    log = logging.getLogger("instances")
    if not log.handlers:  # what a reader warns of is said by the commands, a line each
        log.addHandler(logging.NullHandler())
    return exit_code(lambda: app(None if argv is None else list(argv), prog_name="certile", standalone_mode=False))
