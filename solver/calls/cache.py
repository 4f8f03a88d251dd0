"""Proven plans that were asked for before, by what was asked: a repeated solve takes no search.

The name of a file is the digest of the question (target, machine, problem, objectives, engine, pins, layers, profile),
of certile's own source files and of the versions of its solvers; so whatever could change the answer makes another
name. Only OPTIMAL and INFEASIBLE plans are kept: others depend on the time they were given.

Nothing of a file is believed. Its seal, a digest of the file's name and of all that the plan says, finds what was cut
short, edited, or put under the name of another question: claims too, which no price can refute. Then the plan is
compared with the question, priced and replayed, as `check` does. A file that fails is set aside, ``NAME.json.bad``,
with one line on stderr, and the question is solved anew.

``CERTILE_CACHE`` names the folder, by default ``certile`` in the user's folder of caches; ``CERTILE_CACHE=off`` keeps
nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import instances
from instances.errors import InputError, OutputError
from instances.jsonfile import as_object, parse_json, read_bytes, write_atomically
from instances.late import late
from solver.ask.question import Question
from solver.plan.plan import Plan, digest
from solver.problems.problem import Problem
from solver.show.console import complain

_faults_of = late("solver.calls.check:faults_of")
#: Where a kept plan has its seal: among its statistics.
_SEAL = "kept"
_ROOMS = ("instances", "hwmodels", "formulations", "solver")
_SOLVERS = ("ortools", "highspy", "pulp")


def kept(path: Path | None, problem: Problem, question: Question) -> Plan | None:
    """Return the plan of a question that was answered before, None if there is none or it does not stand."""
    if path is None or not os.path.isfile(path):
        return None
    try:
        plan = _read(path)
        _compare(plan, problem, question)
    except InputError as error:
        _set_aside(path, str(error))
        return None
    options = plan.options.model_copy(update={"time_limit_s": question.time_limit_s, "settings": question.settings})
    return plan.model_copy(update={"options": options})


def keep(path: Path | None, plan: Plan) -> None:
    """Keep a plan if it is proven and there is a folder for it."""
    if path is None or plan.status not in ("OPTIMAL", "INFEASIBLE"):
        return
    if os.path.lexists(path) and not os.path.isfile(path):  # a folder, or a FIFO that nobody reads
        return
    fields = plan.model_dump(mode="json")
    stats = fields.get("stats", {})
    sealed = {**fields, "stats": {**stats, _SEAL: _seal(path, {**fields, "stats": stats})}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(sealed, indent=1) + "\n")
    except (InputError, OutputError, OSError):  # a full disk, a folder of somebody else's: nothing is lost but time
        return


def _seal(path: Path, fields: Mapping[str, Any]) -> str:
    """The digest of a file's name and of the fields of a plan."""
    return digest([path.name, fields])


def _read(path: Path) -> Plan:
    """Read a plan whose seal is whole; raises InputError for another one."""
    raw = read_bytes(path, what="plan")
    fields = dict(as_object(parse_json(raw, f"plan {path}"), f"plan {path}"))
    stats = fields.get("stats")
    if not isinstance(stats, dict) or _SEAL not in stats:
        raise InputError("it has no seal")
    sealed = {**fields, "stats": {name: value for name, value in stats.items() if name != _SEAL}}
    if stats[_SEAL] != _seal(path, sealed):
        raise InputError("it was changed, or is the answer to another question")
    return Plan.from_json(json.dumps(sealed), f"plan {path}")


def _compare(plan: Plan, problem: Problem, question: Question) -> None:
    """Raise InputError unless a plan is of a question, and all it says follows from its decisions."""
    pairs = {
        "problem": (plan.problem, question.problem), "objectives": (plan.objectives, question.objectives),
        "machine": (plan.machine_data, question.machine), "network": (plan.network, question.name),
        "network's data": (plan.network_data, problem.target_of(question)),
    }  # fmt: skip
    for name, (one, other) in pairs.items():
        if one != other:
            raise InputError(f"its {name} is not the one that is asked")
    found = _faults_of(plan)
    if found:
        raise InputError(found[0])


def _set_aside(path: Path, why: str) -> None:
    """Rename a file that is not believed, and say so."""
    aside = path.with_name(f"{path.name}.bad")
    try:
        os.replace(path, aside)
        done = f"set aside as {aside.name}"
    except OSError as error:
        done = f"cannot be set aside ({error.strerror})"
    complain("warning", f"kept plan {path}: {why.removeprefix(f'plan {path}: ')}; {done}, solved anew")


def path_of(question: Question) -> Path | None:
    """Return where the plan of a question is kept, None if nothing is."""
    named = os.environ.get("CERTILE_CACHE", "")
    if named.lower() == "off":
        return None
    folder = Path(named) if named else _folder()
    asked = {
        **asked_of(question), "target": question.target_json(), "machine": question.machine.model_dump(mode="json"),
        "code": _code(),
    }  # fmt: skip
    return folder / f"{digest(asked).removeprefix('sha256:')}.json"


def asked_of(question: Question) -> dict[str, object]:
    """Return as JSON data what decides an answer beside target, machine, and the limits of time and memory."""
    profile = question.profile
    return {
        "problem": question.problem, "objectives": question.objectives, "engine": question.engine,
        "pins": question.pins, "layers": question.layers, "full": question.full, "bounding": question.bounding,
        "all_kinds": question.all_kinds, "profile": profile and profile.model_dump(mode="json"),
    }  # fmt: skip


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or os.path.join(os.path.expanduser("~"), ".cache")) / "certile"


def home() -> Path:
    """Return the folder of the four rooms."""
    return Path(str(instances.__file__)).resolve().parents[1]


def files() -> list[Path]:
    """Return certile's files."""
    return sorted(path for room in _ROOMS for path in (home() / room).rglob("*.py"))


@cache
def _code() -> str:
    """The digest of certile's files, by size and time, and of the versions of its solvers."""
    stamps = [(str(path.relative_to(home())), path.stat().st_size, path.stat().st_mtime_ns) for path in files()]
    return digest([stamps, [metadata.version(name) for name in _SOLVERS]])
