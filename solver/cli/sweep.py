"""The commands `certile sweep run|show|table|plan|example`; ``certile sweep SPEC`` is ``certile sweep run SPEC``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from instances.errors import InputError
from solver.ask import options
from solver.cli.exits import EXIT_CODES, UNDECIDED
from solver.cli.flags import JobsOpt
from solver.show import console
from solver.uses.sweep.front import machine_fronts
from solver.uses.sweep.rows import Sweep, load_sweep
from solver.uses.sweep.spec import examples, read_spec
from solver.uses.sweep.tasks import Expansion, default_path

_DEFECT = 6


class _Commands(TyperGroup):
    """Takes ``sweep SPEC`` for ``sweep run SPEC``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command before a spec."""
        first = next((k for k, arg in enumerate(args) if arg not in ("-h", "--help")), None)
        if first == 0 and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands, name="sweep", no_args_is_help=False, add_completion=False, rich_markup_mode=None,
    help="Solve grids of networks, layers, machine fields, objectives, problems: thousands of tasks, into one file.",
    epilog="certile sweep SPEC is certile sweep run SPEC. First steps: certile sweep example memory > memory.yaml; "
    "certile sweep memory.yaml --dry-run; certile sweep memory.yaml; certile sweep show memory.sqlite",
)  # fmt: skip

FileArg = Annotated[str, typer.Argument(metavar="FILE", help="A file of results: memory.sqlite")]
WhereOpt = Annotated[
    list[str] | None,
    typer.Option("--where", "-w", metavar="K=V", help="Only rows that are so (repeatable): ocm_bytes>=64KiB"),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON, nothing else")]


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        console.emit(context.get_help())
        raise typer.Exit(2)


@app.command()
def run(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A YAML file, or a bundled example: memory.yaml")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Results; default: NAME.sqlite: -o mine.sqlite")
    ] = None,
    jobs: JobsOpt = 0,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="A", help="Instead a Dask cluster: tcp://host:8786, or a scheduler file"),
    ] = None,
    retry: Annotated[
        str | None,
        typer.Option("--retry", metavar="WHAT", help="Again what failed; open: also what is not proven: failed"),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Keep points that the spec does not ask for any more")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count tasks, and try some for an estimate")] = False,
    as_json: JsonOpt = False,
) -> int:
    """Solve every point of a sweep; the same command continues after Ctrl-C, kill -9 or a power cut.

    What is done is never done again; equal tasks are solved once. Exit codes: 0 every task has a plan or a proof that
    there is none, 4 some failed or wait, 6 a defect; certile sweep show says which.
    """
    from solver.uses.sweep.run import run_sweep

    path = str(default_path(spec)) if out is None else out
    if dry_run:
        return _dry_run(spec, path, jobs, as_json=as_json)
    options.check_writable(path)
    done = run_sweep(spec, path, jobs=jobs, dask=dask, retry=retry, add=add)
    if done.stopped:
        console.complain("sweep", f"stopped by {done.stopped}: {done.left:,} tasks wait, the same command continues")
    found = load_sweep(path)
    if as_json:
        said = {"new": done.new, "done": done.done, "waiting": done.left, "stopped": done.stopped}
        console.emit(json.dumps({"file": path, **said, "tasks_by_status": dict(found.tasks)}, indent=1))
    else:
        from solver.uses.sweep.show import summary

        console.emit_tables(*map(console.printable, summary(found)), f"certile sweep show {path}")
    return _code(found)


def _code(sweep: Sweep) -> int:
    """The exit code of what is in a file."""
    failed = {"WAITING", "NO_SOLUTION_FOUND", "WORKER_DIED", "TIME_OUT", "BAD_INPUT"}
    if "DEFECT" in sweep.tasks:
        return _DEFECT
    return UNDECIDED if failed & set(sweep.tasks) else 0


def _dry_run(spec: str, path: str, jobs: int, *, as_json: bool) -> int:
    from solver.uses.sweep.estimate import estimate

    points = Expansion(read_spec(spec))
    known: frozenset[str] = frozenset()
    if Path(path).exists():
        known = frozenset(str(row["task"]) for row in load_sweep(path).rows if row["status"] != "WAITING")
    found = estimate(points, jobs=options.check_jobs(jobs), known=known)
    if as_json:
        console.emit(json.dumps(found.to_json(), indent=1))
    else:
        for line in found.lines():
            console.emit(console.printable(line))
    return 0


@app.command()
def show(
    file: FileArg,
    where: WhereOpt = None,
    axes: Annotated[
        str, typer.Option("--axes", metavar="A,B", help="Compare machines by these: bytes,time,memory,energy")
    ] = "",
    group: Annotated[
        str, typer.Option("--group", metavar="C,D", help="Compare within equal values of columns: network,pins")
    ] = "",
    all_: Annotated[bool, typer.Option("--all", help="All machines, not only those that no other beats")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the machines as CSV, nothing else")] = False,
    as_json: JsonOpt = False,
) -> int:
    """Print what is known of a sweep, and the machines that no other beats in bytes, time, memory, energy.

    A machine's figures are sums over the layers of a network, each times its repeats. Works while a sweep runs.
    """
    from solver.uses.sweep.show import group_table, machines_csv, summary, summary_json

    if as_csv and as_json:
        raise InputError("--csv, --json: one of them")
    sweep = load_sweep(file).where(where or ())
    groups = machine_fronts(sweep, axes=_names(axes), group=_names(group))
    if as_json:
        console.emit(json.dumps(summary_json(sweep, groups, everything=all_), indent=1))
    elif as_csv:
        console.emit(machines_csv(groups, everything=all_).rstrip("\n"))
    else:
        tables = [part for one in groups for part in group_table(one, everything=all_)]
        console.emit_tables(*map(console.printable, summary(sweep)), *tables)
    return 0


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@app.command()
def table(
    file: FileArg,
    where: WhereOpt = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV (the default)")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, a line a row")] = False,
    parquet: Annotated[
        str | None, typer.Option("--parquet", metavar="FILE", help="Write Parquet (needs pandas): rows.parquet")
    ] = None,
    seconds: Annotated[bool, typer.Option("--seconds", help="Also seconds and tries, which differ by run")] = False,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write to a file: -o rows.csv")] = None,
) -> int:
    """Print every row, in the order of the spec: byte for byte the same for any number of workers.

    Only what a time or memory limit stopped (column stopped) depends on the computer.
    """
    from solver.uses.sweep.show import table_csv, table_json, table_parquet

    if as_csv + as_json + (parquet is not None) > 1:
        raise InputError("--csv, --json, --parquet: one of them")
    sweep = load_sweep(file).where(where or ())
    if parquet is not None:
        options.check_writable(parquet)
        console.write(parquet, table_parquet(sweep, seconds=seconds))
        console.emit(f"written to {parquet}")
        return 0
    text = table_json(sweep, seconds=seconds) if as_json else table_csv(sweep, seconds=seconds)
    if out is not None:
        console.write(out, text)
        console.emit(f"written to {out}")
    else:
        console.emit(text.rstrip("\n"))
    return 0


@app.command()
def plan(
    file: FileArg,
    where: WhereOpt = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the plan: -o plan.json")] = None,
    as_json: JsonOpt = False,
) -> int:
    """Take the plan of one row out of a file: as certile solve would have written it. --where has to name one row."""
    sweep = load_sweep(file).where(where or ())
    if len(sweep.rows) != 1:
        differ = [name for name in sweep.columns if len({row[name] for row in sweep.rows}) > 1][:6]
        hint = f"; they differ in {', '.join(differ)}" if differ else ""
        raise InputError(f"--where {' '.join(where or ()) or '(none)'}: {len(sweep.rows):,} rows, one is needed{hint}")
    found = sweep.plan(sweep.rows[0])
    saved = [] if out is None else [console.write_plan(found, out)]
    if as_json:
        console.emit(found.to_json().rstrip())
    else:
        from solver.calls.solve import show as show_plan

        console.emit("\n".join([show_plan(found).rstrip("\n"), *saved]))
    return EXIT_CODES[found.status]


@app.command()
def example(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which one; without: their names: memory")] = None,
) -> int:
    """Print a bundled spec to begin with."""
    known = examples()
    if name is None:
        for one, text in known.items():
            console.emit(f"{one}: {text.splitlines()[0].lstrip('# ')}")
        return 0
    if name not in known:
        raise options.unknown("example", name, known)
    console.emit(known[name].rstrip("\n"))
    return 0
