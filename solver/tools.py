"""The small commands: list, import, new-machine, doctor, schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instances.errors import InputError
from instances.load import dump_network, list_machines, list_networks, load_network
from instances.measured import list_measured
from instances.new_machine import machine_template
from solver import options
from solver.console import complain, emit, emit_tables, printable, write
from solver.plan import plan_schema, version
from solver.progress import Progress

if TYPE_CHECKING:
    from solver.bench import Report

__all__ = ["register", "suites"]

ROOMS = ("instances", "hwmodels", "formulations", "solver")
_PACKAGES = ("ortools", "highspy", "pulp", "numpy", "networkx", "pydantic", "onnx", "typer", "rich")
_KINDS = ("networks", "machines", "problems", "engines", "suites", "rows")


# --- list ------------------------------------------------------------------------------------------------------------


def suites() -> Mapping[str, tuple[str, Callable[[Progress], Report]]]:
    """Return the benchmark suites: name -> (summary, function)."""
    from solver.bench import SUITES  # late: the suites import every solver

    return SUITES


def _names(kind: str) -> dict[str, str]:
    """Return name -> one line for everything of a kind."""
    if kind == "networks":
        return list_networks()
    if kind == "machines":
        return list_machines()
    if kind == "rows":
        return list_measured()
    if kind == "problems":
        from formulations.registry import FORMULATIONS

        networks = {
            "banks": "F6: which tiles of feature maps stay in which memory bank, over a whole network",
            "joint": "F10: tile plans of all layers and what stays in a shared memory between them",
            "engine": "F4: runs of layers on a small engine, and where maps lie in its banks; how large it should be",
            "mapping": "F5: which processor of a board runs which task of a network, in a pipeline",
            "applications": "F5: the same for several networks with periods, deadlines and priorities",
            "mesh": "F3: tiles, sides, PE vectors and bank layouts of layers on a mesh of tile units, or an array",
        }
        return {f.name: f.summary for f in FORMULATIONS.values()} | networks
    if kind == "engines":
        from solver.applications.engines import APPLICATION_ENGINES
        from solver.banks.engines import BANK_ENGINES
        from solver.engines import ENGINES
        from solver.joint.engines import JOINT_ENGINES
        from solver.mapping.engines import MAPPING_ENGINES
        from solver.mesh.engines import MESH_ENGINES
        from solver.partial_engine.engines import RUNS_ENGINES

        proofs = {True: "proves", False: "heuristic"}
        found = {e.name: f"{e.summary} ({proofs[e.proves]}; {', '.join(sorted(e.problems))})" for e in ENGINES.values()}
        whole = [("banks", e.name, e.summary, e.proves) for e in BANK_ENGINES.values()]
        whole += [("joint", e.name, e.summary, e.proves) for e in JOINT_ENGINES.values()]
        whole += [("mapping", e.name, e.summary, e.proves) for e in MAPPING_ENGINES.values()]
        whole += [("applications", e.name, e.summary, e.proves) for e in APPLICATION_ENGINES.values()]
        whole += [("engine", e.name, e.summary, e.proves) for e in RUNS_ENGINES.values()]
        whole += [("mesh", e.name, e.summary, e.proves) for e in MESH_ENGINES.values()]
        for problem, name, summary, proves in whole:
            about = f"{summary} ({proofs[proves]}; {problem})"
            found[name] = f"{found[name]}; {about}" if name in found else about
        return found
    if kind == "suites":
        return {name: about for name, (about, _) in suites().items()}
    raise options.unknown("kind", kind, _KINDS)


def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="networks, machines, problems, engines, suites or rows")],
    as_json: Annotated[bool, typer.Option("--json", help="Print an object name -> description")] = False,
) -> int:
    """List what there is: networks, machines, problems, engines, suites, or measured rows."""
    names = _names(kind)
    if as_json:
        emit(json.dumps(names, indent=1))
    else:
        from solver.report import names_table

        emit_tables(names_table(names, (kind.removesuffix("s"), "what it is")))
    return 0


# --- import ----------------------------------------------------------------------------------------------------------


def import_(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file: model.onnx")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The network file to write: -o net.json")],
    batch: Annotated[int | None, typer.Option("--batch", metavar="N", help="Batch size: --batch 4")] = None,
    symbol: Annotated[
        list[str] | None, typer.Option("--symbol", metavar="NAME=N", help="Size of a symbolic dimension: sequence=128")
    ] = None,
) -> int:
    """Read an ONNX file (weights are never loaded) and write it as a network file."""
    options.check_writable(out)
    if not out.lower().endswith(".json"):
        raise InputError(f"output {out}: a network file ends in .json, or certile solve would not find it")
    network = load_network(model, batch=batch, symbols=options.parse_symbols(symbol or ()) or None)
    dump_network(network, out)
    for line in network.warnings:
        complain("warning", line)
    left_out = f"; not planned: {network.unplanned}" if network.opaque else ""
    emit(
        printable(
            f"{network.name}: {len(network.operators)} operators, {len(network.layers)} layers "
            f"({len(network.conv_layers)} conv or matmul), {network.macs:,} MACs, {network.parameters:,} parameters"
            f"{left_out}; written to {out}"
        )
    )
    emit(printable(network.description))
    return 0


# --- new-machine -----------------------------------------------------------------------------------------------------


def new_machine(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM",
            help="What it is for: tiling (one scratchpad), slicing (cores), joint, banks, mapping (a board), "
            "applications, engine, mesh",
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
        typer.Argument(metavar="KIND", help="layers, or a problem: banks, joint, mapping, applications, engine, mesh"),
    ] = "layers",
) -> int:
    """Print the JSON Schema of plan files."""
    from solver.applications.plan import applications_schema
    from solver.banks.plan import bank_schema
    from solver.joint.plan import joint_schema
    from solver.mapping.plan import mapping_schema
    from solver.mesh.plan import mesh_schema
    from solver.partial_engine.plan import engine_schema

    schemas = {
        "layers": plan_schema, "banks": bank_schema, "joint": joint_schema, "mapping": mapping_schema,
        "applications": applications_schema, "engine": engine_schema, "mesh": mesh_schema,
    }  # fmt: skip
    if kind not in schemas:
        raise options.unknown("schema", kind, schemas)
    emit(schemas[kind]().rstrip())
    return 0


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("list")(list_)
    app.command("import")(import_)
    app.command("new-machine")(new_machine)
    app.command("doctor")(doctor)
    app.command("schema")(schema)
