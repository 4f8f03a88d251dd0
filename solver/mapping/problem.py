"""Problem mapping, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from instances.errors import InputError
from instances.profiles import Profile
from solver.front import Front
from solver.mapping.ask import ESTIMATED, ask
from solver.mapping.base import Engine
from solver.mapping.check import problems_of_mapping
from solver.mapping.engines import MAPPING_ENGINES
from solver.mapping.front import front
from solver.mapping.plan import MappingPlan
from solver.mapping.search import solved
from solver.mapping.show import mapping_details, mapping_status, mapping_table
from solver.problem import Derived, Problem, front_of_plans
from solver.question import Question
from solver.report import Sheet

__all__ = ["MappingProblem"]


class MappingProblem(Problem[MappingPlan]):
    """F5: tasks of a network on the processors of a board."""

    name = "mapping"
    summary = "F5: which processor of a board runs which task of a network, in a pipeline"
    plan = MappingPlan
    measures = {"period": "ticks", "energy": "fJ", "latency": "ticks"}
    usual = "period"
    pins = {
        "cpu_config": "configuration of the cores: cpu_config=1,1,1,1; by default all are tried",
        "cap": "percent of the cores that may be busy: cap=50",
        "period": "most ticks from one inference to the next: period<=20000",
        "latency": "most ticks of one inference alone: latency<=20000",
        "energy": "most fJ an inference: energy<=100000000000000",
        "split": "split=on: a task may be divided between two processors, in quarters; split=8: in eighths",
        "TASK": "the processor of a task by its name: conv1=gpu",
    }
    takes = frozenset({"profile"})
    front_engines = True
    floors = True
    axes = {"period": "ticks", "energy": "fJ"}
    quick = ("heft", "peft", "cpop", "single", "descent")
    others = {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")}

    @property
    def engines(self) -> Mapping[str, Engine]:
        """The ways to decide."""
        return MAPPING_ENGINES

    def solve(self, question: Question) -> MappingPlan:
        """Map the tasks of a network, one inference after the other; with latency asked for, of one alone."""
        return solved(ask(question), MAPPING_ENGINES[question.engine])

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of period and energy."""
        made = front(question)
        if not made.plans:
            why = "no plan keeps the pins" if made.proven else "no plan in this time, give a larger --time-limit"
            raise InputError(f"network {question.network.name}: {why}")
        return front_of_plans(self, question, made.plans, proven=made.proven, details=_details)

    def derive(self, plan: MappingPlan) -> Derived:
        """Simulate again."""
        return Derived(tuple(problems_of_mapping(plan)), plan.size)

    def status(self, plan: MappingPlan) -> list[str]:
        """What is known."""
        return mapping_status(plan)

    def sheet(self, plan: MappingPlan) -> Sheet:
        """The table."""
        return mapping_table(plan)

    def details(self, plan: MappingPlan, layer: str | None) -> Iterable[str]:
        """One period of every processor, or one task."""
        return mapping_details(plan, layer)

    def question(self, plan: MappingPlan) -> Question:
        """What a stored plan was asked; measured times are those that it has."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, "mapping", pins=plan.options.pins,
            profile=None if plan.options.profile == ESTIMATED else Profile(times=plan.profile),
        )  # fmt: skip

    def able(self, plan: MappingPlan) -> Mapping[str, bool]:
        """Those that know of latency, where it counts."""
        alone = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
        return {name: one.proves for name, one in MAPPING_ENGINES.items() if not alone or one.alone}


def _details(plan: MappingPlan) -> Mapping[str, str]:
    assert plan.measures is not None
    gap = "no bound" if plan.gap is None else f"{100 * plan.gap:.3g} %"
    energy = f"{plan.measures.energy / 1e12:,.2f}"
    return {"energy (mJ)": energy, "energy gap": gap, "cores": ",".join(map(str, plan.cpu_config))}
