"""What may stand where on the command line of certile, as plain tables: read once, when a script is written.

A *kind* of words is a set of names (``machines``), for some kinds another one for every problem (``engines``). Which
kind an option or an argument takes follows from its name, so a new command with the usual options is completed too.
A kind that ends in ``/`` takes files as well; one that ends in ``+`` takes several words, with commas between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from instances.errors import InputError
from instances.library_format import FILES, families, library
from instances.load import list_machines, list_networks, load_machine
from instances.measured import list_measured
from solver.ask.options import AUTO
from solver.cli.list import kinds
from solver.problems.problem import Problem
from solver.problems.registry import PROBLEMS
from solver.uses.bench import suites

#: Parameter -> the kind of words it takes. Others take a text.
_KINDS = {
    "network": "networks/", "machine": "machines/", "problem": "problems", "engine": "engines", "compare": "engines+",
    "objective": "objectives+", "axes": "axes+", "pin": "pins", "layer": "layers", "suite": "suites", "rows": "rows/",
    **dict.fromkeys(("plan", "model", "profile", "out", "case", "platform_to", "file", "spec", "mapping"), "/"),
    "solutions": "/",
}  # fmt: skip
#: Arguments called alike that mean something else.
_SPECIAL = {("list", "kind"): "kinds", ("schema", "kind"): "schemas", ("completion", "shell"): "shells"}
#: Commands of their own commands -> the kinds of the first and the second word after them.
_GROUPS = {"sweep": ("sweeps/", "/"), "library": ("libraries", "instances")}
SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option, or an argument (without names)."""

    names: tuple[str, ...]
    kind: str
    """Of its value: ``text`` if nothing is known of it; empty for a flag."""
    about: str


@dataclass(frozen=True)
class Words:
    """Everything that scripts are made of."""

    commands: Mapping[str, str]
    """Name -> one line."""
    options: Mapping[str, tuple[Option, ...]]
    """Of every command; of "" those of certile itself."""
    arguments: Mapping[str, tuple[Option, ...]]
    kinds: Mapping[tuple[str, str], tuple[str, ...]]
    """(kind, problem) -> words; problem "" for all."""
    problems: Mapping[str, str]
    """Bundled machine -> the problem that it is for."""


def words_of(group: Any) -> Words:
    """Read the commands of certile, as typer has them, and all names."""
    commands = dict(group.commands)
    return Words(
        commands={name: _about(command) for name, command in commands.items()},
        options={"": _options("", group)} | {name: _options(name, command) for name, command in commands.items()},
        arguments={name: _arguments(name, command) for name, command in commands.items()},
        kinds=_names(commands),
        problems=_machine_problems(),
    )


def _about(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return str(command.help or "").strip().splitlines()[0].partition(". ")[0].rstrip(".")


def _options(command: str, group: Any) -> tuple[Option, ...]:
    """Return the options of a command; of a group those of all its commands."""
    params = list(group.params)
    if command in _GROUPS:
        params += [param for each in group.commands.values() for param in each.params]
    found = [
        Option(tuple(param.opts), "" if param.is_flag else _kind(command, param.name), str(param.help or ""))
        for param in {param.name: param for param in reversed(params) if param.param_type_name == "option"}.values()
    ][::-1]  # fmt: skip
    return (*found, Option(("--help", "-h"), "", "Show this message and exit"))


def _arguments(name: str, command: Any) -> tuple[Option, ...]:
    if name in _GROUPS:
        return tuple(Option((), kind, "") for kind in _GROUPS[name])
    return tuple(
        Option((), _kind(name, param.name), str(param.help or ""))
        for param in command.params if param.param_type_name == "argument"
    )  # fmt: skip


def _kind(command: str, parameter: str) -> str:
    return _SPECIAL.get((command, parameter)) or _KINDS.get(parameter, "text")


def _names(commands: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the words of every kind."""
    found: dict[tuple[str, str], tuple[str, ...]] = {
        ("commands", ""): tuple(commands), ("networks", ""): tuple(list_networks()),
        ("machines", ""): tuple(list_machines()), ("problems", ""): tuple(PROBLEMS), ("suites", ""): tuple(suites()),
        ("rows", ""): tuple(list_measured()), ("kinds", ""): tuple(kinds()), ("shells", ""): SHELLS,
        ("schemas", ""): ("plan", *FILES, *PROBLEMS),
        ("sweeps", ""): tuple(commands["sweep"].commands), ("libraries", ""): tuple(commands["library"].commands),
        ("instances", ""): (*families(), *(one.name for one in library())),
    }  # fmt: skip
    for kind, of in _OF_PROBLEMS.items():
        by_problem = {problem.name: of(problem) for problem in PROBLEMS.values()}
        found |= {(kind, name): words for name, words in by_problem.items()}
        found[kind, ""] = tuple(dict.fromkeys(word for words in by_problem.values() for word in words))
    return found


_OF_PROBLEMS: dict[str, Callable[[Problem], tuple[str, ...]]] = {
    "engines": lambda problem: tuple(dict.fromkeys((AUTO, *problem.engines))),
    "objectives": lambda problem: tuple(problem.measures),
    # a name in capitals stands for those of a network: TASK=gpu
    "pins": lambda problem: tuple(name for name in problem.pins if not (name.isupper() and name.isalpha())),
    "axes": lambda problem: tuple(problem.axes),
}


def _machine_problems() -> dict[str, str]:
    """Return what the bundled machines are for; one that cannot be read is left out."""
    found: dict[str, str] = {}
    for name in list_machines():
        try:
            found[name] = load_machine(name).problem
        except InputError:
            continue
    return found
