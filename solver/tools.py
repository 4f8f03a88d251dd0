"""The small commands: list, import, new-machine, doctor, schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from instances.commons import list_instances, list_library
from instances.errors import InputError
from instances.load import dump_network, list_machines, list_networks
from instances.measured import list_measured
from instances.new_machine import machine_template
from instances.schemas import FILES, file_schema
from solver import options
from solver.console import complain, emit, emit_tables, printable, write
from solver.flags import BatchOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.generic import GenericProblem
from solver.options import AUTO
from solver.plan import version
from solver.problem import Problem
from solver.problems import PROBLEMS, pick_problem
from solver.sizes import Sizes

if TYPE_CHECKING:
    from solver.bench import Report

ROOMS = ("instances", "hwmodels", "formulations", "solver")
_PACKAGES = ("ortools", "highspy", "pulp", "numpy", "networkx", "pydantic", "onnx", "typer", "rich")


# --- list ------------------------------------------------------------------------------------------------------------


def suites() -> Mapping[str, tuple[str, Callable[..., Report]]]:
    """Return the benchmark suites: name -> (summary, function)."""
    from solver.bench import SUITES  # late: the suites import every solver
    from solver.bench.generic import compared

    generic = {name: one for name, one in PROBLEMS.items() if isinstance(one, GenericProblem)}
    return SUITES | {name: (one.summary, partial(compared, one)) for name, one in generic.items()}


def _names(kind: str, problem: str | None) -> dict[str, str]:
    """Return name -> one line for everything of a kind, of one problem or all."""
    asked = [pick_problem(problem)] if problem is not None else list(PROBLEMS.values())
    if kind in _OF_PROBLEMS:
        found: dict[str, dict[str, list[str]]] = {}
        for one in asked:
            for name, about in _OF_PROBLEMS[kind](one).items():
                found.setdefault(name, {}).setdefault(about, []).append(one.name)
        if not found:
            raise InputError(f"problem {problem} has no {kind}")
        return {
            name: "; ".join(about if problem else f"{about} ({', '.join(of)})" for about, of in said.items())
            for name, said in found.items()
        }
    if kind not in _KINDS:
        raise options.unknown("kind", kind, (*_KINDS, *_OF_PROBLEMS))
    if problem is not None:
        raise InputError(f"--problem: {kind} are for all problems; {', '.join(_OF_PROBLEMS)} are not")
    return _KINDS[kind]()


def _engines(problem: Problem[Any]) -> dict[str, str]:
    auto = {} if AUTO in problem.engines else {AUTO: f"{problem.auto}"}
    proofs = {True: "proves", False: "heuristic"}
    return auto | {name: f"{e.summary}, {proofs[e.proves]}" for name, e in problem.engines.items()}


#: Kinds that do not depend on a problem, and those that do.
_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "kinds": lambda: dict.fromkeys((*_KINDS, *_OF_PROBLEMS), "certile list KIND") | dict.fromkeys(
        _OF_PROBLEMS, "certile list KIND --problem P"
    ),
    "networks": list_networks, "machines": list_machines, "rows": list_measured, "library": list_library,
    "problems": lambda: {problem.name: problem.summary for problem in PROBLEMS.values()},
    "suites": lambda: {name: about for name, (about, _) in suites().items()},
}  # fmt: skip
_OF_PROBLEMS: dict[str, Callable[[Problem[Any]], Mapping[str, str]]] = {
    "engines": _engines,
    "objectives": lambda problem: problem.measures,
    "pins": lambda problem: problem.pins,
    "axes": lambda problem: problem.axes,
    "instances": lambda problem: list_instances(problem.name),
}


def kinds() -> tuple[str, ...]:
    """Return the kinds of names that ``certile list`` knows."""
    return tuple(_KINDS["kinds"]())


def list_(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="networks, machines, problems, engines, objectives, pins, axes, suites, rows, library, instances",
        ),
    ] = "kinds",
    problem: Annotated[
        str | None,
        typer.Option(
            "--problem", metavar="P", help="Engines, objectives, pins, axes or instances of this problem only"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object name -> description")] = False,
) -> int:
    """List what there is: networks, machines, problems, engines, objectives, pins, axes, suites, the library, ..."""
    names = _names(kind, problem)
    if as_json:
        emit(json.dumps(names, indent=1))
    else:
        from solver.tables import names_table

        emit_tables(names_table(names, ("axis" if kind == "axes" else kind.removesuffix("s"), "what it is")))
    return 0


# --- import ----------------------------------------------------------------------------------------------------------


def import_(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file: model.onnx")],
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
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="F=V", help="Override a machine field: ocm_bytes=98304")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is known as JSON, nothing else")] = False,
) -> int:
    """Say what an ONNX file holds, what can be planned of it and written as C, before any search; write a network file.

    It counts layers, multiply-accumulates and weights, names every operator that is not planned with its own and why,
    and with -m for every problem and for C all reasons why not. Weights are never written.
    """
    if out is not None:
        options.check_writable(out)
        if not out.lower().endswith(".json"):
            raise InputError(f"output {out}: a network file ends in .json, or certile solve would not find it")
    if machine is None and set_:
        raise InputError("--set: fields of a machine, and none is named (--machine)")
    from solver.preflight import preflight  # late: reading models imports onnx

    sizes = Sizes.parse(symbol, shape, value)
    real = None if machine is None else options.pick_machine(machine, set_ or ())
    found = preflight(model, real, batch=batch, symbols=sizes.symbols, shapes=sizes.shapes, values=sizes.values)
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
            help="What it is for: tiling (one scratchpad), slicing (cores), joint, fusion, banks, hybrid, mapping (a "
            "board), applications, partial_engine, mesh, placement, selection",
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
            help="network, machine, library, or a problem (certile list problems); plan: tiling and slicing",
        ),
    ] = "plan",
) -> int:
    """Print the JSON Schema of plan files, or of network, machine or library files."""
    if kind in FILES:
        emit(file_schema(kind).rstrip())
        return 0
    emit(json.dumps(pick_problem("tiling" if kind in ("plan", "layers") else kind).schema(), indent=1))
    return 0


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("list")(list_)
    app.command("import")(import_)
    app.command("new-machine")(new_machine)
    app.command("doctor")(doctor)
    app.command("schema")(schema)
