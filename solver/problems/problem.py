"""What a problem is to the rest of `solver`: behind solve, check, show, pareto, list and the command line.

Every problem is a line in `instances.problems`, by which `solver.problems.registry` finds it: an object of a subclass
of `Problem`. One that implements `formulations.problem.Formulation` needs no subclass of its own:
`solver.problems.generic.GenericProblem` is it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from instances.applications import Applications
from instances.errors import InputError
from instances.network.buffers import Buffers
from instances.network.network import Network
from instances.network.variants import Variants
from instances.network.workload import Layer
from solver.ask.options import AUTO, parse_objectives, unknown
from solver.ask.question import Question
from solver.plan.claims import Claim
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.plan.plan import Plan, PlanTypes
from solver.show.tables import Sheet, percent, ratio, render

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.plan.figures import Block, Pictures

#: What may be planned.
Target = Network | Layer | Applications | Buffers | Variants


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


class Problem(ABC):
    """A decision problem."""

    name: str
    summary: str
    types: PlanTypes
    """Of what stands in its plans."""
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

    @abstractmethod
    def ready(self, question: Question) -> None:
        """Check everything that is asked, before any time is spent; raises InputError."""

    @abstractmethod
    def target_of(self, question: Question) -> Any:
        """Return what is planned, as a plan holds it."""

    # ---- what is answered --------------------------------------------------------------------------------------------

    @abstractmethod
    def solve(self, question: Question) -> Plan:
        """Return a verified plan; raises InputError for bad input, PlanMismatch for a defect of certile."""

    @abstractmethod
    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """Return the exact front; raises InputError if there is none of these axes."""

    @abstractmethod
    def explain(self, question: Question) -> Iterator[Explained]:
        """Say which demands conflict, part by part."""

    # ---- plans -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def derive(self, plan: Plan) -> Derived:
        """Derive everything in a plan but its decisions again."""

    @abstractmethod
    def claims(self, plan: Plan) -> Iterator[Claim]:
        """Yield what a plan claims, part by part: one part, all of it, unless layers are decided one by one."""

    @abstractmethod
    def figures(self, plan: Plan) -> Mapping[str, int]:
        """Return the values of all measures; none without a plan."""

    @abstractmethod
    def frame_rows(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of `Plan.to_frame`, as JSON data."""

    def file_text(self, plan: Plan, path: str) -> str | None:
        """Return what a file of this name says of a plan, if it is not JSON."""
        return None

    def rooms(self, plan: Plan) -> Iterable[tuple[str, int, int]]:
        """Return memories by name: the most bytes that lie there at a time, and how many it has."""
        return ()

    @abstractmethod
    def replays(self, plan: Plan) -> Iterator[tuple[str, bool | None, tuple[str, ...]]]:
        """Yield where, verdict and faults of every replay that a plan states."""

    @abstractmethod
    def status(self, plan: Plan) -> list[str]:
        """Return what is known, a part each.

        First network, machine, problem, engine and status, then the objective with its bound and gap, replay.
        """

    @abstractmethod
    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of a plan that decides something."""

    @abstractmethod
    def details(self, plan: Plan, layer: str | None) -> Iterable[str]:
        """Return lines about one layer, or task; without a name about all, and what shows the plan as a whole."""

    def table(self, plan: Plan, others: Mapping[str, Plan]) -> list[RenderableType]:
        """Return the table of a plan, and lines below it; beside others by engine."""
        lines = [_ratios(plan, others)] if others else []
        lines.append("; ".join(self.known(plan)))
        return [self.sheet(plan), "", *lines] if self.names(plan) else list(lines)

    def known(self, plan: Plan) -> list[str]:
        """Return the status, and what ended the search if it did not end by itself."""
        said = [plan.stats, *(row.stats for row in plan.parts)]
        open_ = plan.status not in ("OPTIMAL", "INFEASIBLE")
        reasons = dict.fromkeys(str(stats["stopped"]) for stats in said if open_ and "stopped" in stats)
        return [*self.status(plan), *(f"stopped by {reason}: the best so far" for reason in reasons)]

    @abstractmethod
    def names(self, plan: Plan) -> list[str]:
        """Return the layers of a plan, or its tasks; none if nothing is decided."""

    def show(self, plan: Plan, layer: str | None = None, *, details: bool = False) -> str:
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

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Return what a report draws of a plan, beside plans of other engines, and its parts in detail."""
        from solver.plan.figures import Pictures
        from solver.show.common import terms  # late: only reports are drawn

        return Pictures(terms(plan, others), self.blocks(plan))

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        """Return the details of a plan for a report: all together, unless a subclass has them part by part."""
        from solver.plan.figures import Block  # late: only reports are drawn

        text = "\n".join(self.details(plan, None)).strip() if self.names(plan) else ""
        return (Block("All of the plan", "", text),) if text else ()

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the plans."""

    # ---- proving again -----------------------------------------------------------------------------------------------

    @abstractmethod
    def question(self, plan: Plan) -> Question:
        """Return what a stored plan was asked."""

    def resolve(self, plan: Plan, engine: str, time_limit_s: float | None, jobs: int) -> Plan:
        """Solve what a stored plan was asked, by any engine; nothing of its decisions is used."""
        question = replace(self.question(plan), engine=engine, time_limit_s=time_limit_s, jobs=jobs)
        return self.solve(question).model_copy(update={"options": plan.options})

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Return the engines for what a plan was asked, and whether each proves."""
        return {name: engine.proves for name, engine in self.engines.items()}

    def chain(self, plan: Plan) -> tuple[str, ...]:
        """The engines to ask for a proof: another one than the plan's first, where there is one."""
        able = self.able(plan)
        return tuple(name for name in self.others.get(plan.engine, self.others[""]) if able.get(name))


def front_of_plans(
    problem: Problem,
    question: Question,
    plans: Sequence[Plan],
    *,
    proven: bool,
    details: Callable[[Plan], Mapping[str, str]],
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
