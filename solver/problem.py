"""What a problem is to the rest of `solver`: behind solve, check, show, pareto, list and the command line.

Every problem is an object of a subclass of `Problem`, in its folder, and a line in `solver.problems`. One that
implements `formulations.problem.Formulation` needs no subclass of its own: `solver.generic.Generic` is it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from instances.applications import Applications
from instances.buffers import Buffers
from instances.errors import InputError
from instances.network import Network
from instances.variants import Variants
from instances.workload import Layer
from solver.claims import Claim, bounds_of, picked
from solver.front import Front, FrontPart, FrontPoint
from solver.options import AUTO, parse_objectives, unknown
from solver.plan import Plan
from solver.question import Question
from solver.tables import Sheet, percent, ratio, render

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.pages.data import Block, Pictures

#: What may be planned.
Target = Network | Layer | Applications | Buffers | Variants

P = TypeVar("P", bound=Plan)


class EngineInfo(Protocol):
    """What is known of an engine without running it."""

    @property
    def name(self) -> str:
        """As asked for."""

    @property
    def summary(self) -> str:
        """One line."""

    @property
    def proves(self) -> bool:
        """Whether its bounds count."""


@dataclass(frozen=True)
class Derived:
    """What does not follow from the decisions of a plan, and how many schedules were replayed, and executed."""

    problems: tuple[str, ...]
    schedules: int
    executed: int = 0


@dataclass(frozen=True)
class Explained:
    """Whether a layer, or (`part` is empty) all of it, can be planned."""

    part: str
    conflicts: tuple[str, ...]
    """A minimal set of demands that cannot be met together; none if a plan exists."""
    size: Mapping[str, int]
    """Of the search space, where it is known without searching."""


class Problem(ABC, Generic[P]):
    """A decision problem."""

    name: str
    summary: str
    plan: type[P]
    """Of its plans."""
    measures: Mapping[str, str]
    """What may be minimised, with units; `usual` if nothing is asked for."""
    usual: str
    pins: Mapping[str, str]
    """What may be pinned, with a line about each."""
    takes: frozenset[str] = frozenset()
    """Options that not all problems take: layers, all_kinds, full, bounding, profile."""
    item: str = "layer"
    """What plans have a row for, in a word."""
    single: bool = False
    """Whether a single layer may be the target."""
    front_engines: bool = False
    axes: Mapping[str, str] = {}
    """What fronts may be about, with units; `front_engines`: whether engines find it in different ways."""
    auto: str = AUTO
    """The engine that is asked if none is named."""
    quick: tuple[str, ...] = ()
    """Engines that take no search, or little: they doubt claims, and answer when the time is up."""
    others: Mapping[str, tuple[str, ...]] = {}
    """By engine of a plan the ones to ask for a proof, the best first; "" for engines that are not named."""
    floors: bool = False
    """Whether engines that prove nothing state bounds that need no search."""
    explains: bool = False
    """Whether a check derives itself, exactly, that nothing fits."""

    # ---- what is asked -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def engines(self) -> Mapping[str, EngineInfo]:
        """The ways to decide, by name."""

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """Return the name of an engine that can minimise the objectives, `auto` resolved; raises InputError."""
        chosen = self.auto if name == AUTO else name
        if chosen not in self.engines:
            raise unknown(f"engine for problem {self.name}", name, {AUTO, *self.engines})
        return chosen

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """Return the measures to minimise, the first one first.

        Raises
        ------
        InputError
            If a name is unknown or stands twice.
        """
        return parse_objectives(self.usual if asked is None else asked, self.measures, self.name)

    def unit(self, objective: str) -> str | None:
        """Return the unit of a measure, of response:NAME whatever the name; None if there is no such measure."""
        kind, named, _ = objective.partition(":")
        return self.measures.get(f"{kind}:NAME" if named else kind)

    def ready(self, question: Question) -> None:
        """Check everything that is asked, before any time is spent; raises InputError."""

    def target_of(self, question: Question) -> object:
        """Return what is planned, as a plan holds it."""
        return question.subject

    # ---- what is answered --------------------------------------------------------------------------------------------

    @abstractmethod
    def solve(self, question: Question) -> P:
        """Return a verified plan; raises InputError for bad input, PlanMismatch for a defect of certile."""

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """Return the exact front; raises InputError if there is none of these axes."""
        raise InputError(f"problem {self.name} has no front; see certile list axes")

    def explain(self, question: Question) -> Iterator[Explained]:
        """Say which demands conflict, part by part: the quickest engine has a plan, or one that proves has none."""
        plan = self.solve(replace(question, engine=self.quick[0]))
        if plan.objective is None:
            plan = self.solve(question)
        none = () if plan.objective is not None else ("no plan was found",)
        yield Explained("", plan.conflicts or none, {})

    # ---- plans -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def derive(self, plan: P) -> Derived:
        """Derive everything in a plan but its decisions again."""

    def claims(self, plan: P) -> Iterator[Claim]:
        """Yield what a plan claims, part by part: one part, all of it, unless layers are decided one by one."""
        values = picked(plan.objectives, self.figures(plan))
        bounds = bounds_of(plan.status, plan.bound, values, len(plan.objectives))
        yield Claim("", plan.status, plan.objectives, values, bounds)

    def figures(self, plan: P) -> Mapping[str, int]:
        """Return the values of all measures; none without a plan."""
        measures = getattr(plan, "measures", None)
        return {} if measures is None else measures.model_dump()

    def frame_rows(self, plan: P) -> list[dict[str, Any]]:
        """Return the rows of `Plan.to_frame`, as JSON data."""
        return [row.model_dump(mode="json") for row in getattr(plan, "tasks", ())]

    def file_text(self, plan: P, path: str) -> str | None:
        """Return what a file of this name says of a plan, if it is not JSON."""
        return None

    def rooms(self, plan: P) -> Iterable[tuple[str, int, int]]:
        """Return memories by name: the most bytes that lie there at a time, and how many it has."""
        return ()

    def replays(self, plan: P) -> Iterator[tuple[str, bool | None, tuple[str, ...]]]:
        """Yield where, verdict and faults of every replay that a plan states."""
        replay = getattr(plan, "replay", None)
        if replay is not None:
            yield "", replay.ok, getattr(replay, "faults", ())
        for row in getattr(plan, "layers", ()):
            if getattr(row, "replay", None) is not None:
                yield f"layer {row.layer}: ", row.replay.ok, row.replay.faults

    @abstractmethod
    def status(self, plan: P) -> list[str]:
        """Return what is known, a part each.

        First network, machine, problem, engine and status, then the objective with its bound and gap, replay.
        """

    @abstractmethod
    def sheet(self, plan: P) -> Sheet:
        """Return the table of a plan that decides something."""

    @abstractmethod
    def details(self, plan: P, layer: str | None) -> Iterable[str]:
        """Return lines about one layer, or task; without a name about all, and what shows the plan as a whole."""

    def table(self, plan: P, others: Mapping[str, P]) -> list[RenderableType]:
        """Return the table of a plan, and lines below it; beside others by engine."""
        lines = [_ratios(plan, others)] if others else []
        lines.append("; ".join(self.known(plan)))
        return [self.sheet(plan), "", *lines] if self.names(plan) else list(lines)

    def known(self, plan: P) -> list[str]:
        """Return the status, and what ended the search if it did not end by itself."""
        said = [plan.stats, *(getattr(row, "stats", {}) for row in plan.rows)]
        open_ = plan.status not in ("OPTIMAL", "INFEASIBLE")
        reasons = dict.fromkeys(str(stats["stopped"]) for stats in said if open_ and "stopped" in stats)
        return [*self.status(plan), *(f"stopped by {reason}: the best so far" for reason in reasons)]

    def names(self, plan: P) -> list[str]:
        """Return the layers of a plan, or its tasks."""
        rows = getattr(plan, "tasks", ()) or getattr(plan, "layers", ())
        return list(dict.fromkeys(getattr(row, "task", "") or row.layer for row in rows))

    def show(self, plan: P, layer: str | None = None, *, details: bool = False) -> str:
        """Return a summary of a plan: what is known, a line each, and the table; or a layer or task, or all, in detail.

        Raises
        ------
        InputError
            If the plan has no such layer.
        """
        names = self.names(plan)
        if layer is not None and layer not in names:
            raise InputError(
                f"plan of {plan.network} has no {self.item} {layer!r}; it has {', '.join(names) or 'none'}"
            )
        if names and (details or layer is not None):
            return "\n".join(self.details(plan, layer))
        table: list[RenderableType] = ["", self.sheet(plan)] if names else []
        return render(*self.known(plan), *table)

    def pictures(self, plan: P, others: Mapping[str, P]) -> Pictures:
        """Return what a report draws of a plan, beside plans of other engines, and its parts in detail."""
        from solver.pages.common import terms  # late: only reports are drawn
        from solver.pages.data import Pictures

        return Pictures(terms(plan, others), self.blocks(plan))

    def blocks(self, plan: P) -> tuple[Block, ...]:
        """Return the details of a plan for a report: all together, unless a subclass has them part by part."""
        from solver.pages.data import Block  # late: only reports are drawn

        text = "\n".join(self.details(plan, None)).strip() if self.names(plan) else ""
        return (Block("All of the plan", "", text),) if text else ()

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the plans."""
        return self.plan.model_json_schema()

    # ---- proving again -----------------------------------------------------------------------------------------------

    @abstractmethod
    def question(self, plan: P) -> Question:
        """Return what a stored plan was asked."""

    def again(self, plan: P, engine: str, time_limit_s: float | None, jobs: int) -> P:
        """Solve what a stored plan was asked, by any engine; nothing of its decisions is used."""
        question = replace(self.question(plan), engine=engine, time_limit_s=time_limit_s, jobs=jobs)
        return self.solve(question).model_copy(update={"options": plan.options})

    def able(self, plan: P) -> Mapping[str, bool]:
        """Return the engines for what a plan was asked, and whether each proves."""
        return {name: engine.proves for name, engine in self.engines.items()}

    def chain(self, plan: P) -> tuple[str, ...]:
        """The engines to ask for a proof: another one than the plan's first, where there is one."""
        able = self.able(plan)
        return tuple(name for name in self.others.get(plan.engine, self.others[""]) if able.get(name))


def front_of_plans(
    problem: Problem[P],
    question: Question,
    plans: Sequence[P],
    *,
    proven: bool,
    details: Callable[[P], Mapping[str, str]],
) -> Front:
    """Return a front of whole plans."""
    points = [
        FrontPoint(
            {axis: problem.figures(plan)[axis] for axis in problem.axes}, {"plan": plan.model_dump(mode="json")},
            "" if plan.gap is None or proven else f"gap {percent(plan.gap)} %", plan, details(plan),
        )
        for plan in plans
    ]  # fmt: skip
    part = FrontPart("", tuple(points), complete=proven, proven=proven)
    return Front(problem.name, question.subject.name, question.machine.name, problem.axes, (part,))


def _ratios(plan: Plan, others: Mapping[str, Plan]) -> str:
    """One line that compares other engines."""
    parts = []
    for name, other in others.items():
        if other.objective is None or plan.objective is None:
            parts.append(f"{name} has no plan")
        else:
            parts.append(f"{name} {ratio(other.objective.value, plan.objective.value)}")
    return f"{plan.objectives[0]} of others over {plan.engine}: {', '.join(parts)}"
