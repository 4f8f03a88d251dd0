"""One task of a sweep as a worker process does it: plain data in, plain data out, whatever happens.

How a task may end:

=================  ====================================================================================
OPTIMAL, ...       the status of its plan (also FEASIBLE, INFEASIBLE, NO_SOLUTION_FOUND)
BAD_INPUT          the combination means nothing: an engine of another problem, a pin that nobody knows
DEFECT             certile refused its own plan, or failed: please report it
WORKER_DIED        the process was killed, for want of memory say, and so was the one that tried again
TIME_OUT           the process did not end long after the time limit
=================  ====================================================================================

Tasks bypass the cache of proven plans: the file of the sweep is one.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from instances.errors import InfeasibleError, InputError, PlanMismatch
from instances.machine.machine import Machine
from solver.ask.watch import Watch
from solver.calls.solve import ask
from solver.plan.plan import Plan
from solver.problems.registry import problem_of
from solver.uses.sweep.tasks import target_of

#: How tasks end without an answer; `--retry failed` runs them again.
FAILED: Final = ("BAD_INPUT", "DEFECT", "WORKER_DIED", "TIME_OUT", "NO_SOLUTION_FOUND")
ANSWERED: Final = ("OPTIMAL", "FEASIBLE", "INFEASIBLE")
#: Of the time limit, and seconds, after which a process that has not ended is ended.
_LATE, _LATE_S = 1.5, 30.0


@dataclass(frozen=True)
class Solved:
    """What came of a task."""

    number: int
    status: str
    value: int | None = None
    unit: str = ""
    bound: int | None = None
    gap: float | None = None
    measures: Mapping[str, int] = field(default_factory=dict)
    stopped: str = ""
    """What ended the search if it did not end by itself: another run may find more, or less."""
    error: str = ""
    """Why there is no plan, in a line."""
    trace: str = ""
    """Of a defect."""
    seconds: float = 0.0
    tries: int = 1
    plan: str = field(default="", repr=False)
    """As JSON."""

    def noted(self, note: str) -> Solved:
        """Return the same with what happened on the way."""
        return replace(self, error=f"{self.error}; {note}" if self.error else note)


@dataclass(frozen=True)
class Task:
    """A question that is self-contained: it can be sent to another computer."""

    number: int
    single: bool
    """Whether the target is a layer, or else a network."""
    target: str = field(repr=False)
    machine: str = field(repr=False)
    problem: str
    objectives: str
    engine: str
    pins: tuple[str, ...] = ()
    layers: tuple[str, ...] | None = None
    all_kinds: bool = False
    time_limit_s: float | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"task {self.number}"

    @property
    def patience_s(self) -> float | None:
        """Seconds after which the process is ended; None: never."""
        return None if self.time_limit_s is None else self.time_limit_s * _LATE + _LATE_S

    def decide(self, time_limit_s: float | None, watch: Watch) -> Solved:
        """Solve it; the shares of time that `solver.search.workers` gives are not needed."""
        start = time.monotonic()
        try:
            said = self._solved(watch)
        except InfeasibleError as error:
            said = Solved(self.number, "INFEASIBLE", error=_line(str(error)))
        except InputError as error:
            said = Solved(self.number, "BAD_INPUT", error=_line(str(error)))
        except PlanMismatch as error:
            said = Solved(self.number, "DEFECT", error=_line(str(error)), trace=traceback.format_exc())
        except MemoryError:
            said = Solved(self.number, "NO_SOLUTION_FOUND", error="out of memory", stopped="memory")
        except Exception as error:  # noqa: BLE001 - a defect is recorded, and the others go on
            text = f"{type(error).__name__}: {error}"
            said = Solved(self.number, "DEFECT", error=_line(text), trace=traceback.format_exc())
        return replace(said, seconds=time.monotonic() - start)

    def _solved(self, watch: Watch) -> Solved:
        problem, question = ask(
            target_of(self.target, single=self.single), _machine(self.machine), problem=self.problem,
            objective=self.objectives, engine=self.engine, pins=list(self.pins), layers=self.layers,
            all_kinds=self.all_kinds, time_limit_s=self.time_limit_s, jobs=1, memory_limit=watch.memory_bytes,
        )  # fmt: skip
        plan: Plan = problem.solve(question)
        return solved(self.number, plan)


@lru_cache(maxsize=64)
def _machine(text: str) -> Machine:
    return Machine.model_validate_json(text)


def _line(text: str) -> str:
    return " ".join(text.split())[:1000]


def solved(number: int, plan: Plan) -> Solved:
    """Return what a sweep keeps of a plan."""
    found = plan.objective
    conflicts = plan.conflicts or [line for row in plan.parts for line in row.conflicts]
    return Solved(
        number, plan.status, None if found is None else found.value, plan.unit, plan.bound, plan.gap,
        {} if found is None else dict(problem_of(plan).figures(plan)), _stopped(plan),
        _line("; ".join(dict.fromkeys(conflicts))) if found is None else "",
        plan=json.dumps(plan.model_dump(mode="json"), separators=(",", ":")),
    )  # fmt: skip


def _stopped(plan: Plan) -> str:
    """What ended the search of an unproven plan."""
    if plan.status in ("OPTIMAL", "INFEASIBLE"):
        return ""
    said = [plan.stats, *(row.stats for row in plan.parts)]
    reasons = sorted({str(stats["stopped"]) for stats in said if "stopped" in stats})
    limit = plan.options.time_limit_s
    if not reasons and limit is not None and plan.wall_s >= 0.9 * limit:
        reasons = ["time limit"]
    return ", ".join(reasons)
