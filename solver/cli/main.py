"""The command line: every command is one call in Python, see `solver.calls.solve` and `solver.calls.check`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from instances.late import Later
from solver.ask.names import version
from solver.cli.exits import BAD_INPUT, EXIT_CODES, MEANINGS, exit_code
from solver.show import console

__all__ = ["COMMANDS", "EXIT_CODES", "app", "main"]

#: Group -> command -> its place, and a line for ``certile --help``. It is imported when it is run.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Plan": {
        "solve": ("solver.cli.solve:solve", "Plan a network, or layers of it, and prove the optimum."),
        "compile": ("solver.cli.emit:compile_", "Plan an ONNX or TFLite model and write C11 that runs it."),
        "pareto": ("solver.cli.solve:pareto", "Print all plans that no other beats in several measures."),
        "explain": ("solver.cli.solve:explain", "Say how large a space is, or which demands conflict."),
        "sweep": ("solver.cli.sweep:app", "Solve grids of networks, machine fields and objectives."),
    },
    "Check and understand a plan": {
        "check": ("solver.cli.check:check", "Derive a plan's figures again; doubt or prove its claims."),
        "show": ("solver.cli.solve:show", "Print a plan: what is known, and a table of its layers."),
        "why": ("solver.cli.why:why", "Say where time or bytes go, what binds, what else costs."),
        "report": ("solver.cli.report:report", "Write one HTML page: proof, tables that sort, figures."),
    },
    "Use a plan, or another tool's": {
        "emit-c": ("solver.cli.emit:emit", "Write C11 that carries a plan out."),
        "price": ("solver.cli.mappings:price_", "Price your own mapping, and compare it with the optimum."),
        "import-mapping": ("solver.cli.mappings:import_mapping", "Read a mapping of Timeloop, ZigZag or DORY."),
        "export-mapping": (
            "solver.cli.mappings:export_mapping",
            "Write a plan as a mapping of Timeloop, ZigZag or DORY.",
        ),
    },
    "Models, machines, profiles": {
        "import": ("solver.cli.tools:import_", "Say what of a model file can be planned and written as C."),
        "machines": ("solver.cli.machines:machines", "Compare machines, find the nearest one, check their sources."),
        "new-machine": ("solver.cli.tools:new_machine", "Print a machine file to begin with, every field explained."),
        "calibrate": ("solver.cli.calibration:calibrate", "Fit prices of a machine to measured times."),
        "variants": ("solver.cli.variants:variants", "Estimate what variants of layers take, as a profile."),
    },
    "Measure": {
        "bench": ("solver.cli.bench:bench", "Run a suite: the optimum against heuristics and engines."),
        "library": ("solver.cli.library:app", "Instances of all problems, with the best that is known."),
    },
    "Look up": {
        "list": ("solver.cli.list:list_", "List networks, machines, problems, engines, pins and more."),
        "schema": ("solver.cli.tools:schema", "Print the JSON Schema of a kind of file."),
        "doctor": ("solver.cli.tools:doctor", "Show versions, and where the packages come from."),
        "completion": (
            "solver.cli.completion.scripts:completion",
            "Print a script that completes words in your shell.",
        ),
    },
}
COMMANDS = {name: said for commands in GROUPS.values() for name, said in commands.items()}


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
        """Write the commands of every group, as wide as the longest name of all."""
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in commands.items()])


app = typer.Typer(
    name="certile", cls=_Commands,
    help="Proven-optimal tile plans for neural-network layers on machines with small on-chip memories.",
    epilog="First steps: certile list networks; certile solve lenet5 --machine scratchpad_64k; certile solve --help. "
    f"Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in MEANINGS.items())}.",
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
