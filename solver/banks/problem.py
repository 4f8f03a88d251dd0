"""Problem banks, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from instances.errors import InputError
from solver.banks.check import problems_of
from solver.banks.engines import BANK_ENGINES, BankEngine
from solver.banks.plan import BankPlan
from solver.banks.show import bank_details, bank_status, bank_table
from solver.banks.solve import front, solve
from solver.front import Front
from solver.problem import Derived, Problem, front_of_plans
from solver.question import Question
from solver.report import Sheet

__all__ = ["BanksProblem"]


class BanksProblem(Problem[BankPlan]):
    """F6: feature maps of a whole network in memory banks."""

    name = "banks"
    summary = "F6: which tiles of feature maps stay in which memory bank, over a whole network"
    plan = BankPlan
    measures = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}
    usual = "time"
    pins = {
        "residuals": "residuals=chip or residuals=dram: where the second operand of a sum may wait",
        "first_layer": "first_layer=patches, plain or either: how the first convolution is read",
    }
    axes = {"bytes": "bytes", "time": "ticks"}
    auto = "dynamic"
    quick = ("no-reuse", "double-buffer", "min", "min-all", "dls", "hide", "beam")
    others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}
    floors = True

    @property
    def engines(self) -> Mapping[str, BankEngine]:
        """The ways to decide."""
        return BANK_ENGINES

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """An engine that minimises the first objective."""
        chosen = super().engine(name, objectives)
        if _aim(objectives) not in BANK_ENGINES[chosen].objectives:
            raise InputError(f"engine {chosen} minimises bytes only: use dynamic for objective {_aim(objectives)}")
        return chosen

    def solve(self, question: Question) -> BankPlan:
        """Plan a network."""
        return solve(question)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time."""
        plans = front(question)
        proven = all(plan.status == "OPTIMAL" for plan in plans)
        return front_of_plans(self, question, plans, proven=proven, details=_details)

    def derive(self, plan: BankPlan) -> Derived:
        """Replay bank by bank and in time."""
        return Derived(tuple(problems_of(plan)), plan.size)

    def status(self, plan: BankPlan) -> list[str]:
        """What is known."""
        return bank_status(plan)

    def sheet(self, plan: BankPlan) -> Sheet:
        """The table."""
        return bank_table(plan)

    def details(self, plan: BankPlan, layer: str | None) -> Iterable[str]:
        """Banks over time."""
        return bank_details(plan, layer)

    def question(self, plan: BankPlan) -> Question:
        """What a stored plan was asked."""
        first = plan.options.first_layer
        pins = [f"residuals={'chip' if plan.options.waiting else 'dram'}", *([f"first_layer={first}"] if first else [])]
        return Question(plan.network_data, plan.machine_data, plan.objectives, "banks", pins=tuple(pins))

    def again(self, plan: BankPlan, engine: str, time_limit_s: float | None, jobs: int) -> BankPlan:
        """Solve again; a plan of a front is the one with the fewest bytes of all that take no more time."""
        most = plan.options.time_at_most
        if most is None:
            return super().again(plan, engine, time_limit_s, jobs)
        if engine == "dynamic":
            plans = front(replace(self.question(plan), time_limit_s=time_limit_s))
        else:
            plans = (super().again(plan, engine, time_limit_s, jobs),)
        kept = (one for one in plans if one.measures is not None and one.measures.time <= most)
        return next(kept, _none(plan)).model_copy(update={"options": plan.options})

    def able(self, plan: BankPlan) -> Mapping[str, bool]:
        """Those that minimise the first objective."""
        return {name: one.proves for name, one in BANK_ENGINES.items() if _aim(plan.objectives) in one.objectives}


def _aim(objectives: Sequence[str]) -> str:
    return "time" if objectives[0] == "time" else "bytes"


def _details(plan: BankPlan) -> Mapping[str, str]:
    scale = plan.machine_data.tick_ps / 1e6
    time = plan.measures.time if plan.measures else 0
    return {"time (us)": f"{time * scale:,.1f}", "waits (us)": f"{(plan.pe_delay_ticks or 0) * scale:,.1f}"}


def _none(plan: BankPlan) -> BankPlan:
    """An answer that says nothing."""
    empty = {"objective": None, "bound": None, "gap": None, "measures": None, "pe_delay_ticks": None, "layers": ()}
    return plan.model_copy(update={**empty, "status": "NO_SOLUTION_FOUND"})
