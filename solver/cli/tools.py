"""The small commands: import, new-machine, doctor, schema."""

from __future__ import annotations

import json
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated

import typer

from instances.errors import InputError
from instances.late import late
from instances.library_format import FILES, file_schema
from instances.load import dump_network, machine_template
from instances.problems import PROBLEMS, either, nested
from solver.ask import options
from solver.ask.names import version
from solver.ask.sizes import Sizes
from solver.cli.flags import BatchOpt, SetOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.problems.registry import pick_problem
from solver.show.console import complain, emit, printable, write

ROOMS = ("instances", "hwmodels", "formulations", "solver")
_preflight = late("solver.uses.emit.preflight:preflight")
_PACKAGES = ("ortools", "highspy", "pulp", "numpy", "networkx", "pydantic", "onnx", "typer", "rich")


# --- import ----------------------------------------------------------------------------------------------------------


def import_(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX or TFLite file: model.onnx")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write it as a network file: -o net.json")
    ] = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a model with operators that are not planned")
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option("--machine", "-m", metavar="NAME", help="Say what is planned, and written as C, on a machine"),
    ] = None,
    set_: SetOpt = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is known as JSON, nothing else")] = False,
) -> int:
    """Say what an ONNX or TFLite file holds, and what can be planned of it and written as C; write a network file.

    It counts layers, multiply-accumulates and weights, names every operator that is not planned with its own and why,
    and with -m for every problem and for C all reasons why not. Weights are never written.
    """
    if out is not None:
        options.check_writable(out)
        if not out.lower().endswith(".json"):
            raise InputError(f"output {out}: a network file ends in .json, or certile solve would not find it")
    if machine is None and set_:
        raise InputError("--set: fields of a machine, and none is named (--machine)")
    sizes = Sizes.parse(symbol, shape, value)
    real = None if machine is None else options.pick_machine(machine, set_ or ())
    found = _preflight(model, real, batch=batch, symbols=sizes.symbols, shapes=sizes.shapes, values=sizes.values)
    network = found.network
    if strict and network.opaque:
        raise InputError(f"network {model}: not planned: {'; '.join(network.warnings)}")
    if out is not None:
        dump_network(network, out)
    if as_json:
        emit(found.to_json())
        return 0
    for kind, said in (("warning", network.warnings), ("note", found.notes)):
        for line in said:
            complain(kind, line)
    for line in [*found.lines(), *([f"written to {out}"] if out else [])]:
        emit(printable(line))
    return 0


# --- new-machine -----------------------------------------------------------------------------------------------------


def new_machine(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM",
            help=f"What it is for: {either(tuple(PROBLEMS), 'or')}",
        ),
    ] = "tiling",
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="A new file: -o my_npu.json")] = None,
) -> int:
    """Print a machine file to begin with: every field that the problem reads, with its unit, default and meaning."""
    text = machine_template(problem)
    if out is None:
        emit(text.rstrip())
        return 0
    if not out.lower().endswith(".json"):
        raise InputError(f"output {out}: a machine file ends in .json, or certile solve would not find it")
    if Path(out).is_file():
        raise InputError(f"output {out}: is there already; new-machine replaces no file")
    write(out, text)
    emit(printable(f"written to {out}"))
    return 0


# --- doctor, schema --------------------------------------------------------------------------------------------------


def doctor() -> int:
    """Show versions and where the four packages come from; exit code 2 if something shadows one of them."""
    emit(f"certile {version()}")
    emit(f"python {sys.version.split()[0]} ({sys.executable})")
    folders = {}
    for room in ROOMS:
        file = import_module(room).__file__
        folders[room] = Path(file).resolve().parent if file else Path()
        emit(f"{room}: {folders[room]}")
    for package in _PACKAGES:
        try:
            emit(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            emit(f"{package} MISSING: install certile with its dependencies")
    home = {folder.parent for folder in folders.values()}
    if len(home) > 1:
        emit(f"the four packages come from {len(home)} folders: another package or folder shadows one of them")
        return 2
    return 0


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"network, machine, library, or a problem (certile list problems); plan: {either(nested('layers'))}",
        ),
    ] = "plan",
) -> int:
    """Print the JSON Schema of plan files, or of network, machine or library files."""
    if kind in FILES:
        emit(file_schema(kind).rstrip())
        return 0
    emit(json.dumps(pick_problem("tiling" if kind in ("plan", "layers") else kind).schema(), indent=1))
    return 0
