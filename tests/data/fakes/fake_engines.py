"""Engines that misbehave on purpose. Tests put this folder on `sys.path`, so that worker processes can import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import solver.problems.tiling
from formulations.clock import Clock
from formulations.tiling.part import NestPart
from formulations.tiling.problem import NESTS, Nests
from hwmodels.schedule import Nest
from solver.problems.tiling import decide_layer, job_of
from solver.search.deciding import Job
from solver.search.loop import Answer

Objectives = tuple[str, ...]


def _nothing(objectives: Objectives) -> Answer[Nest]:
    return Answer(None, {}, dict.fromkeys(objectives), "NO_SOLUTION_FOUND")


def _loose(found: Answer[Nest], bound: int = 0, **stats: bool | float | None) -> Answer[Nest]:
    """The same with a bound that proves nothing."""
    return replace(found, status="FEASIBLE", bounds={**found.bounds, next(iter(found.bounds)): bound}, stats=stats)


def _named(part: NestPart, text: str) -> bool:
    return text in part.name


def honest(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """The real exhaustive search."""
    return decide_layer(NESTS["tiling"], "exhaustive", part, objectives, clock)


def unproven(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Finds the optimum, proves nothing better than 0."""
    return _loose(honest(part, objectives, clock))


def uses_its_time(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Finds something, at once, and waits for the end of its time; what it was given is in the stats."""
    given = clock.left
    found = decide_layer(NESTS["tiling"], "greedy", part, objectives, clock)
    time.sleep(0.0 if given is None else clock.remaining)
    return _loose(found, given_s=given)


def slow_starter(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Layers called hard need more than 5 s to be proven, all others are proven at once."""
    if _named(part, "hard") and clock.remaining < 5.0:
        return _nothing(objectives)
    return honest(part, objectives, clock)


def interrupted(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Ctrl-C arrives while a layer called hard is searched; the engine knows nothing of it."""
    if _named(part, "hard"):
        raise KeyboardInterrupt
    return honest(part, objectives, clock)


def swallows(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Ctrl-C arrives, the solver takes the signal and returns its best, as CP-SAT does by default."""
    found = honest(part, objectives, clock)
    return _loose(found, interrupted=True) if _named(part, "hard") else found


def sleeps(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Ignores its limit on layers called hard; says where it is by creating a file."""
    if _named(part, "hard"):
        if "FAKE_SIGN" in os.environ:
            open(os.environ["FAKE_SIGN"], "w").close()
        time.sleep(600)
    return honest(part, objectives, clock)


def dies(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Takes its process down on layers called hard."""
    if _named(part, "hard"):
        os._exit(9)
    return honest(part, objectives, clock)


def killed_once(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Is killed as by the kernel on the first layer called hard; FAKE_SIGN says that it was."""
    sign = os.environ["FAKE_SIGN"]
    if _named(part, "hard") and not os.path.exists(sign):
        open(sign, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return honest(part, objectives, clock)


def raises(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Has a defect."""
    raise ZeroDivisionError("a defect")


def lies_about_value(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Claims one byte less than its plan moves."""
    found = honest(part, objectives, clock)
    return replace(found, values={**found.values, "bytes": found.values["bytes"] - 1})


def lies_about_bound(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Claims a bound above the value of its plan."""
    found = honest(part, objectives, clock)
    assert found.bound is not None
    return _loose(found, found.bound + 1)


def lies_about_proof(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """Claims OPTIMAL with a bound below the value of its plan."""
    return replace(_loose(honest(part, objectives, clock)), status="OPTIMAL")


def gives_up(part: NestPart, objectives: Objectives, clock: Clock) -> Answer[Nest]:
    """A heuristic that finds no plan for layers called hard, nor for c1."""
    hopeless = _named(part, "hard") or _named(part, "c1")
    return _nothing(objectives) if hopeless else honest(part, objectives, clock)


PROVING = (honest, uses_its_time, slow_starter, interrupted, swallows, sleeps, dies, killed_once, raises,
           lies_about_value, lies_about_bound, lies_about_proof)  # fmt: skip
GUESSING = (unproven, gives_up)
ENGINES = {f.__name__: f for f in (*PROVING, *GUESSING)}


def install(set_item: Callable[..., None], set_attribute: Callable[..., None]) -> None:
    """Have problem tiling take them for engines of its own."""
    for one in PROVING:
        set_item(NESTS["tiling"].engines, one.__name__, one.__doc__)
    for one in GUESSING:
        set_item(NESTS["tiling"].heuristics, one.__name__, (one.__doc__, one))

    def made(formulation: Nests, part: NestPart, objectives: Objectives, engine: str) -> Job:
        job = job_of(formulation, part, objectives, engine)
        return replace(job, search=ENGINES[engine]) if engine in ENGINES else job

    set_attribute(solver.problems.tiling, "job_of", made)
