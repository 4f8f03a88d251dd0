"""Engines that misbehave on purpose. Tests put this folder on `sys.path`, so that worker processes can import it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from formulations.tiling.space import Space
from solver.engines import exhaustive, greedy
from solver.engines.base import Engine, EngineResult, Limits


def _nothing(status: str = "NO_SOLUTION_FOUND", **stats: object) -> EngineResult:
    return EngineResult(status=status, nest=None, measures=None, bound=None, wall_s=0.0, stats=dict(stats))  # type: ignore[arg-type]


def _named(space: Space, text: str) -> bool:
    return text in space.layer.name


def honest(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """The real exhaustive search."""
    return exhaustive.run(space, objectives, limits)


def unproven(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Finds the optimum, proves nothing better than 0."""
    return replace(exhaustive.run(space, objectives, limits), status="FEASIBLE", bound=0)


def uses_its_time(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Finds something, at once, and waits for the end of its time; what it was given is in the stats."""
    end = time.monotonic() + (limits.time_limit_s or 0.0)
    found = greedy.run_greedy(space, objectives, limits)
    time.sleep(max(0.0, end - time.monotonic()))
    return replace(found, status="FEASIBLE", bound=0, stats={"given_s": limits.time_limit_s})


def slow_starter(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Layers called hard need more than 5 s to be proven, all others are proven at once."""
    if _named(space, "hard") and (limits.time_limit_s or 9.0) < 5.0:
        return _nothing()
    return exhaustive.run(space, objectives, limits)


def interrupted(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Ctrl-C arrives while a layer called hard is searched; the engine knows nothing of it."""
    if _named(space, "hard"):
        raise KeyboardInterrupt
    return exhaustive.run(space, objectives, limits)


def swallows(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Ctrl-C arrives, the solver takes the signal and returns its best, as CP-SAT does by default."""
    result = exhaustive.run(space, objectives, limits)
    return replace(result, status="FEASIBLE", bound=0, stats={"interrupted": True}) if _named(space, "hard") else result


def sleeps(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Ignores its limit on layers called hard; says where it is by creating a file."""
    if _named(space, "hard"):
        if "FAKE_SIGN" in os.environ:
            open(os.environ["FAKE_SIGN"], "w").close()
        time.sleep(600)
    return exhaustive.run(space, objectives, limits)


def dies(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Takes its process down on layers called hard."""
    if _named(space, "hard"):
        os._exit(9)
    return exhaustive.run(space, objectives, limits)


def killed_once(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Is killed as by the kernel on the first layer called hard; FAKE_SIGN says that it was."""
    sign = os.environ["FAKE_SIGN"]
    if _named(space, "hard") and not os.path.exists(sign):
        open(sign, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return exhaustive.run(space, objectives, limits)


def raises(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Has a defect."""
    raise ZeroDivisionError("a defect")


def lies_about_value(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Claims one byte less than its plan moves."""
    result = exhaustive.run(space, objectives, limits)
    assert result.measures is not None
    return replace(result, measures={**result.measures, "bytes": result.measures["bytes"] - 1})


def lies_about_bound(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Claims a bound above the value of its plan."""
    result = exhaustive.run(space, objectives, limits)
    assert result.bound is not None
    return replace(result, status="FEASIBLE", bound=result.bound + 1)


def lies_about_proof(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Claims OPTIMAL with a bound below the value of its plan."""
    return replace(exhaustive.run(space, objectives, limits), bound=0)


def finds_nothing(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """Runs out of time with a bound."""
    return replace(_nothing(odd=float("nan"), more=[1]), bound=7)


def gives_up(space: Space, objectives: tuple[str, ...], limits: Limits) -> EngineResult:
    """A heuristic that finds no plan for layers called hard, nor for c1."""
    hopeless = _named(space, "hard") or _named(space, "c1")
    return _nothing() if hopeless else exhaustive.run(space, objectives, limits)


PROVING = (honest, uses_its_time, slow_starter, interrupted, swallows, sleeps, dies, killed_once, raises,
           lies_about_value, lies_about_bound, lies_about_proof, finds_nothing)  # fmt: skip
ENGINES = {f.__name__: Engine(f.__name__, (f.__doc__ or "").strip(), True, f) for f in PROVING}
ENGINES["gives_up"] = Engine("gives_up", "a heuristic", False, gives_up)
ENGINES["unproven"] = Engine("unproven", "a heuristic", False, unproven)
