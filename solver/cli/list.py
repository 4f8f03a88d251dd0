"""The command `certile list`. What it lists is imported when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from instances.errors import InputError
from instances.late import late
from solver.ask.names import AUTO, unknown
from solver.problems.registry import PROBLEMS, pick_problem
from solver.show.console import emit, emit_tables
from solver.show.tables import names_table

if TYPE_CHECKING:
    from solver.problems.problem import Problem

_instances = late("instances.library_format:list_instances")


def _names(kind: str, problem: str | None) -> dict[str, str]:
    """Return name -> one line for everything of a kind, of one problem or all."""
    if kind in _OF_PROBLEMS:
        asked = [pick_problem(problem)] if problem is not None else list(PROBLEMS.values())
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
        raise unknown("kind", kind, (*_KINDS, *_OF_PROBLEMS))
    if problem is not None:
        raise InputError(f"--problem: {kind} are for all problems; {', '.join(_OF_PROBLEMS)} are not")
    return _KINDS[kind]()


def _engines(problem: Problem) -> dict[str, str]:
    auto = {} if AUTO in problem.engines else {AUTO: f"{problem.auto}"}
    proofs = {True: "proves", False: "heuristic"}
    return auto | {name: f"{e.summary}, {proofs[e.proves]}" for name, e in problem.engines.items()}


#: Kinds that do not depend on a problem, and those that do.
_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "kinds": lambda: dict.fromkeys((*_KINDS, *_OF_PROBLEMS), "certile list KIND") | dict.fromkeys(
        _OF_PROBLEMS, "certile list KIND --problem P"
    ),
    "networks": late("instances.jsonfile:list_networks"), "machines": late("instances.jsonfile:list_machines"),
    "rows": late("instances.measured:list_measured"), "library": late("instances.library_format:list_library"),
    "problems": lambda: {problem.name: problem.summary for problem in PROBLEMS.values()},
    "suites": late("solver.uses.bench:summaries"),
}  # fmt: skip
_OF_PROBLEMS: dict[str, Callable[[Problem], Mapping[str, str]]] = {
    "engines": _engines,
    "objectives": lambda problem: problem.measures,
    "pins": lambda problem: problem.pins,
    "axes": lambda problem: problem.axes,
    "instances": lambda problem: _instances(problem.name),
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
        emit_tables(names_table(names, ("axis" if kind == "axes" else kind.removesuffix("s"), "what it is")))
    return 0
