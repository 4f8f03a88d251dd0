"""Problems tiling and slicing, as the rest of `solver` sees them: layers, each by itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from formulations.registry import Nests
from formulations.tiling.space import Space
from hwmodels.nest.homes import machine_for
from hwmodels.nest.limits import lower_bound_bytes
from hwmodels.outcome import MEASURES
from solver.claims import Claim, bounds_of, picked
from solver.front import Front, FrontPart, FrontPoint
from solver.options import AUTO, Request, pick_engine, pick_pins
from solver.problem import Derived, EngineInfo, Explained, Problem
from solver.progress import Silent
from solver.question import Question
from solver.report import Sheet, ratio
from solver.tiling.check import problems_of_layers
from solver.tiling.plan import LayersPlan
from solver.tiling.show import nest_details, nest_status, nest_table
from solver.tiling.solve import planned, prepare, solve
from solver.words import decision_text

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["LayersProblem", "layer_claims"]


class LayersProblem(Problem[LayersPlan]):
    """A formulation of the nest of one layer."""

    plan = LayersPlan
    measures = MEASURES
    usual = "time"
    takes = frozenset({"layers", "all_kinds", "full", "bounding"})
    single, by_layer = True, True
    axes = {"bytes": "bytes", "time": "ticks", "ocm": "bytes on chip"}  # of solver.tiling.front.AXES
    auto = "exhaustive"
    others = {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}
    explains = True

    def __init__(self, formulation: Nests) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}

    @property
    def engines(self) -> Mapping[str, EngineInfo]:
        """The ways to decide."""
        from solver.engines import ENGINES  # late: importing the engines imports every solver

        return {name: engine for name, engine in ENGINES.items() if self.name in engine.problems}

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """An engine that handles the problem."""
        chosen = self.auto if name == AUTO else name
        pick_engine(chosen, self.name)
        return chosen

    def solve(self, question: Question) -> LayersPlan:
        """Plan the layers."""
        return solve(question)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of every layer; axes: two or three."""
        from solver.tiling.front import fronts  # late: the engines' package imports every solver

        wanted = axes or ("bytes", "time")
        request = prepare(question)
        by_name = {layer.name: layer for layer in request.layers}
        parts = []
        for name, found in fronts(request, wanted, time_limit_s=question.time_limit_s).items():
            points, spaces = [], dict[object, Space]()
            for point in found.points:
                homes = point.nest.homes
                if homes not in spaces:
                    machine = machine_for(by_name[name], request.machine, dict(homes) or None)
                    spaces[homes] = self.formulation.build(by_name[name], machine, request.pins)
                decision = spaces[homes].decision(point.nest)
                body = {"measures": point.measures, "nest": point.nest.to_json(), "decision": decision}
                details = {
                    "x limit": ratio(point.measures["bytes"], lower_bound_bytes(by_name[name], request.machine)),
                    "time (us)": f"{point.measures['time'] * request.machine.tick_ps / 1e6:,.1f}",
                    "on chip": f"{point.ocm:,}",
                }
                values = dict(zip(found.axes, point.values, strict=True))
                points.append(FrontPoint(values, body, decision_text(decision), details=details))
            parts.append(FrontPart(name, tuple(points), found.complete, found.proven))
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, request.name, request.machine.name, units, tuple(parts))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Layer by layer, exactly."""
        request = prepare(question)
        for layer in request.layers:
            machine = machine_for(layer, request.machine, None)
            space = request.formulation.build(layer, machine, request.pins, full=request.full)
            yield Explained(layer.name, tuple(space.explain()), space.size)

    def derive(self, plan: LayersPlan) -> Derived:
        """Replay layer by layer."""
        return problems_of_layers(plan)

    def claims(self, plan: LayersPlan) -> Iterator[Claim]:
        """Layer by layer; layers that share memories off the chip are one part: homes are decided for all together."""
        yield from layer_claims(plan) if plan.homes is None else super().claims(plan)

    def status(self, plan: LayersPlan) -> list[str]:
        """What is known."""
        return nest_status(plan)

    def sheet(self, plan: LayersPlan) -> Sheet:
        """Layers and their sum."""
        return nest_table(plan, {})

    def table(self, plan: LayersPlan, others: Mapping[str, LayersPlan]) -> list[RenderableType]:
        """The same, with a column for every other engine."""
        return [nest_table(plan, others), "", "; ".join(self.status(plan))]

    def details(self, plan: LayersPlan, layer: str | None) -> Iterable[str]:
        """Nests as pseudo-code."""
        return nest_details(plan, layer)

    def question(self, plan: LayersPlan) -> Question:
        """What a stored plan was asked, but for its layers, which `again` takes as they are."""
        return Question(
            plan.layers[0].workload, plan.machine_data, plan.objectives, self.name, pins=plan.pins,
            settings=plan.options.settings,
        )  # fmt: skip

    def again(self, plan: LayersPlan, engine: str, time_limit_s: float | None, jobs: int) -> LayersPlan:
        """Plan the layers again."""
        rooms = {one.name: one.bytes for one in plan.machine_data.off_chip if one.bytes is not None}
        request = Request(
            name=plan.network, layers=tuple(row.workload for row in plan.layers), machine=plan.machine_data,
            formulation=self.formulation, engine=pick_engine(engine, self.name), objectives=plan.objectives,
            pins=pick_pins(list(plan.pins), self.formulation), settings=plan.options.settings,
            time_limit_s=time_limit_s, jobs=jobs, full=False, bounding=True,
            places=plan.homes.places(rooms) if plan.homes else None,
        )  # fmt: skip
        return planned(request, Silent(), time.monotonic())


def layer_claims(plan: LayersPlan) -> Iterator[Claim]:
    """What a plan claims of every layer; where the plan says homes, of all nests with the homes that the layer has."""
    for row in plan.layers:
        names = plan.objectives
        values = picked(names, row.measures.model_dump()) if row.measures else ()
        yield Claim(row.layer, row.status, names, values, bounds_of(row.status, row.bound, values, len(names)))
