"""Problem partial_engine, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from formulations.partial_engine.size import SECONDS
from hwmodels.partial_engine.work import engine_of
from instances.errors import InputError
from solver.claims import Claim
from solver.front import Front, FrontPart, FrontPoint
from solver.partial_engine.check import problems_of_engine
from solver.partial_engine.engines import RUNS_ENGINES, RunsEngine
from solver.partial_engine.plan import EnginePlan
from solver.partial_engine.show import engine_details, engine_status, engine_table
from solver.partial_engine.size import fits, front_engine
from solver.partial_engine.solve import solve
from solver.problem import Derived, Problem
from solver.question import Question
from solver.report import Sheet

__all__ = ["PartialEngineProblem"]


class PartialEngineProblem(Problem[EnginePlan]):
    """F4: runs of layers on a small engine."""

    name = "partial_engine"
    summary = "F4: runs of layers on a small engine, and where maps lie in its banks; how large it should be"
    plan = EnginePlan
    measures = {"bytes": "bytes"}
    usual = "bytes"
    pins = {
        "strips": "strips of rows that a layer is cut in: strips=1, strips<=4",
        "in_places": "places for input groups in every bank: in_places<=4",
        "part_places": "places for partial maps in every bank: part_places>=2",
        "spill": "spill=no: partial maps never go to DRAM",
        "inputs": "inputs=banks: the maps read are on chip before",
        "results": "results=banks: the results stay on chip",
    }
    takes = frozenset({"layers"})
    axes = {"dsps": "DSPs", "rate": "frames in 1000 s"}
    quick = ("greedy", "paper")
    others = {"cp-sat": ("auto",), "": ("cp-sat", "auto")}
    explains = True

    @property
    def engines(self) -> Mapping[str, RunsEngine]:
        """The ways to decide."""
        return RUNS_ENGINES

    def solve(self, question: Question) -> EnginePlan:
        """Plan every convolution."""
        return solve(question)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The front of DSPs against the frame rate of a network, all sizes up to 64 x 64."""
        if question.pins:
            raise InputError(f"pin {question.pins[0]!r}: the front of engine sizes takes no pins")
        engine, network = engine_of(question.machine), question.network
        points = []
        for size in front_engine([network], question.machine):
            able = fits(size, engine)
            body = {"size": {**asdict(size), "rates": [rate / SECONDS for rate in size.rates]}, "fits": able}
            label = f"{size.e_in} x {size.e_out}, {size.brams} block RAMs{'' if able else ', does not fit'}"
            points.append(FrontPoint({"dsps": size.dsps, "rate": size.rates[0]}, body, label))
        part = FrontPart("", tuple(points), complete=True, proven=True)
        return Front(self.name, network.name, question.machine.name, self.axes, (part,))

    def derive(self, plan: EnginePlan) -> Derived:
        """Run every program again."""
        found, replayed = problems_of_engine(plan)
        return Derived(tuple(found), replayed)

    def claims(self, plan: EnginePlan) -> Iterator[Claim]:
        """Layer by layer."""
        for row in plan.layers:
            values = (row.objective.value,) if row.objective else ()
            yield Claim(row.layer, row.status, plan.objectives, values, (row.bound,))

    def status(self, plan: EnginePlan) -> list[str]:
        """What is known."""
        return engine_status(plan)

    def sheet(self, plan: EnginePlan) -> Sheet:
        """The table."""
        return engine_table(plan)

    def details(self, plan: EnginePlan, layer: str | None) -> Iterable[str]:
        """Banks and programs."""
        return engine_details(plan, layer)

    def question(self, plan: EnginePlan) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, "partial_engine", pins=plan.options.pins,
            layers=plan.options.layers or None,
        )  # fmt: skip
