"""Proven plans that were asked for before, by what was asked: a repeated solve takes no search.

The name of a file is the digest of the question (target, machine, problem, objectives, engine, pins, layers, profile),
of certile's own source files and of the versions of its solvers; so whatever could change the answer makes another
name. Only OPTIMAL and INFEASIBLE plans are kept: others depend on the time they were given.

``CERTILE_CACHE`` names the folder, by default ``certile`` in the user's folder of caches; ``CERTILE_CACHE=off`` keeps
nothing.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata
from pathlib import Path

from instances.errors import InputError
from instances.jsonfile import write_atomically
from instances.profiles import Profile, load_profile
from solver.plan import Plan, digest
from solver.question import Question

_ROOMS = ("instances", "hwmodels", "formulations", "solver")
_SOLVERS = ("ortools", "highspy", "pulp")


def kept(path: Path | None, question: Question) -> Plan | None:
    """Return the plan of a question that was answered before, None if there is none."""
    if path is None or not path.is_file():
        return None
    try:
        plan = Plan.load(path)
    except InputError:  # cut short by somebody; it is written anew
        return None
    options = plan.options.model_copy(update={"time_limit_s": question.time_limit_s, "settings": question.settings})
    return plan.model_copy(update={"options": options})


def keep(path: Path | None, plan: Plan) -> None:
    """Keep a plan if it is proven and there is a folder for it."""
    if path is None or plan.status not in ("OPTIMAL", "INFEASIBLE"):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, plan.to_json())
    except (InputError, OSError):  # a full disk, a folder of somebody else's: nothing is lost but time
        return


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
    table = profile if isinstance(profile, Profile | None) else load_profile(profile)
    return {
        "problem": question.problem, "objectives": question.objectives, "engine": question.engine,
        "pins": question.pins, "layers": question.layers, "full": question.full, "bounding": question.bounding,
        "all_kinds": question.all_kinds, "profile": table and [table.model_dump(mode="json"), str(profile)],
    }  # fmt: skip


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "certile"


@cache
def _code() -> str:
    """The digest of certile's files, by size and time, and of the versions of its solvers."""
    here = Path(__file__).resolve().parents[1]
    files = sorted(path for room in _ROOMS for path in (here / room).rglob("*.py"))
    stamps = [(str(path.relative_to(here)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return digest([stamps, [metadata.version(name) for name in _SOLVERS]])
