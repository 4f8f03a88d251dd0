"""The commands `certile library check`, `show` and `export`; exit code 1 if a check fails."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from instances.errors import InputError
from instances.library_format import LIBRARY_FORMAT, Family, Instance, Proof, chosen, instance, load_family
from solver.ask import options
from solver.cli.exits import CHECK_FAILED
from solver.cli.flags import JsonOpt
from solver.show import console
from solver.show.tables import Column, Sheet

app = typer.Typer(help="Instances of all problems with the best that is known of them (docs/library.md).")

FileOpt = Annotated[
    str | None, typer.Option("--file", "-f", metavar="FILE", help="Not the instances of certile: -f mine.json")
]
NameArg = Annotated[str, typer.Argument(metavar="NAME", help="An instance: tiling-corners/pad-5x5")]
NamesArg = Annotated[
    list[str] | None, typer.Argument(metavar="NAME..", help="Instances or families, all by default: tiling-corners")
]
ProblemOpt = Annotated[
    str | None, typer.Option("--problem", metavar="P", help="Only instances of this problem: --problem placement")
]
ClassOpt = Annotated[
    str | None, typer.Option("--class", metavar="C", help="Only easy, medium, hard or open ones: --class open")
]
SolutionsOpt = Annotated[
    str | None,
    typer.Option("--solutions", metavar="PATH", help="Instead judge plans or decisions, a file or folder: found.json"),
]


@app.command()
def check(
    names: NamesArg = None, problem: ProblemOpt = None, class_: ClassOpt = None, file: FileOpt = None,
    solutions: SolutionsOpt = None, as_json: JsonOpt = False,
) -> int:  # fmt: skip
    """Price and replay what the library claims, or solutions of others: without a solver, from decisions alone.

    Exit code 1 and one line for everything that is not as it is claimed.
    """
    among = load_family(file).instances if file is not None else None
    found = chosen(names or (), problem=problem, difficulty=class_, among=among)
    return _solutions(solutions, found, as_json) if solutions is not None else _check(found, as_json)


def _check(found: list[Instance], as_json: bool) -> int:
    from solver.uses.library.check import check_instance

    checked = [check_instance(one) for one in found]
    failed = [one for one in checked if not one.ok]
    if as_json:
        shown = ("ok", "problems", "schedules", "note")
        rows = [{"instance": one.name, **{name: getattr(one, name) for name in shown}} for one in checked]
        console.emit(json.dumps(rows, indent=1))
    else:
        for one in failed:
            for line in one.problems:
                console.emit(f"mismatch: {one.name}: {console.printable(line)}")
        noted = [one for one in checked if one.note]
        console.emit(f"{len(checked)} instances: {len(checked) - len(failed)} ok, {len(failed)} failed; "
                     f"{sum(one.schedules for one in checked)} schedules re-priced and replayed")  # fmt: skip
        for text in dict.fromkeys(one.note for one in noted):
            console.emit(f"{sum(one.note == text for one in noted)} infeasible ones: {text}")
    return CHECK_FAILED if failed else 0


def _solutions(path: str, among: list[Instance], as_json: bool) -> int:
    from solver.uses.library.check import Solution
    from solver.uses.library.check import solutions as judge_all

    found = judge_all(path, among)
    if as_json:
        console.emit(json.dumps([one.to_json() for one in found], indent=1))
    else:

        def said(one: Solution) -> str:
            verdict = "BETTER THAN KNOWN" if one.improves else "best reached" if one.gap == 0 else "valid"
            if one.refutes:
                return f"{verdict}, refutes {one.refutes}"
            return verdict if one.valid else "; ".join(one.faults[:3])

        def first(values: dict[str, int]) -> str:
            return next((f"{value:,}" for value in values.values()), "-")

        gaps = ["-" if one.gap is None else f"{100 * one.gap:.2f}" for one in found]
        columns = [
            Column("instance", [one.name for one in found], words=True),
            Column("value", [first(one.values) for one in found]),
            Column("best known", [first(one.best) for one in found]),
            Column("gap (%)", gaps, "of the value, above the best known"),
            Column("verdict", [said(one) for one in found], words=True),
        ]
        console.emit_tables(Sheet(columns))
    for one in found:
        if one.improves:
            console.complain(
                "better than known",
                f"{one.name}: {one.values}, known {one.best}; docs/library.md says how to report it",
            )
    return 0 if all(one.valid for one in found) else CHECK_FAILED


@app.command()
def show(name: NameArg, file: FileOpt = None, as_json: JsonOpt = False) -> int:
    """Say what an instance asks, what is known of it, and who proved it."""
    one = _one(name, file)
    if as_json:
        console.emit(json.dumps(one.model_dump(mode="json"), indent=1))
        return 0
    known = one.known
    machine = one.machine.load()
    lines = [
        f"{one.name}: problem {one.problem}, minimise {','.join(one.objectives)}",
        f"target: {_target(one)}",
        f"machine: {machine.name}{''.join(f', {text}' for text in one.machine.settings)}",
        *([f"pins: {', '.join(one.pins)}"] if one.pins else []),
        f"known: {known.status}" + "".join(f", {name} {value:,}" for name, value in known.values.items())
        + (f"; bound {known.bound:,}" if known.bound is not None else ""),
        *(f"conflict: {line}" for line in one.certificate.conflicts),
        *map(_proof, one.certificate.proofs),
        f"class {one.difficulty}; source: {one.source}; licence: {one.licence}",
        *([one.note] if one.note else []),
    ]  # fmt: skip
    for line in lines:
        console.emit(console.printable(line))
    return 0


def _proof(proof: Proof) -> str:
    """What an engine said."""
    figures = [f", {name} {value:,}" for name in ("value", "bound") if (value := getattr(proof, name)) is not None]
    return f"{proof.by}: {proof.status}{''.join(figures)}, {proof.seconds:g} s ({proof.version})"


def _target(one: Instance) -> str:
    """What is planned, in a few words."""
    target = one.target
    if target.layer is not None:
        return f"layer {target.layer.name}" + (f" of {target.part_of}" if target.part_of else "")
    if target.buffers is not None:
        return f"{len(target.buffers.buffers)} buffers"
    given = target.applications or target.network or target.variants
    text = given if isinstance(given, str) else str((given or {}).get("name", "network"))
    more = f" at {target.size[0]}x{target.size[1]}" if target.size else ""
    return f"{text}{more}" + (f", layers {', '.join(target.layers)}" if target.layers else "")


@app.command()
def export(
    name: NameArg,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The library file to write: -o one.json")],
    file: FileOpt = None,
) -> int:
    """Write an instance with all of its target and machine: a file that needs nothing else of certile."""
    options.check_writable(out)
    if not out.lower().endswith(".json"):
        raise InputError(f"output {out}: a library file ends in .json")
    one = _one(name, file).whole()
    head = {"family": one.family, "title": one.name, "source": one.source, "licence": one.licence}
    console.write(out, Family(format=LIBRARY_FORMAT, instances=(one,), **head).to_json())
    console.emit(f"written to {out}")
    return 0


def _one(name: str, file: str | None) -> Instance:
    return instance(name) if file is None else chosen([name], among=load_family(file).instances)[0]
