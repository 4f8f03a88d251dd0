"""Problems tiling and slicing, as the rest of `solver` sees them: layers, each by itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from formulations.tiling.nests import Nests
from formulations.tiling.part import NestPart
from hwmodels.nest.buffers import buffer_lines, buffers
from hwmodels.nest.homes import assignments
from hwmodels.nest.limits import lower_bound_bytes
from hwmodels.outcome import MEASURES
from solver.claims import Claim, bounds_of, picked
from solver.front import Front, FrontPart, FrontPoint
from solver.network_show import measure_columns
from solver.options import pick_pins
from solver.pages.data import Pictures
from solver.problem import Derived, Explained
from solver.question import Question
from solver.tables import GAP, Column, Sheet, conflicts_of, few, name_column, percent, ratio
from solver.tiling.check import problems_of_layers
from solver.tiling.figures import pictures
from solver.tiling.plan import GIVEN, LayerPlan, LayersPlan
from solver.tiling.pseudo_code import pseudo_code
from solver.tiling.solve import NestsProblem, Request, prepare
from solver.words import decision_columns, decision_text, label, workload_text

if TYPE_CHECKING:
    from rich.console import RenderableType


class LayersProblem(NestsProblem):
    """A formulation of the nest of one layer."""

    formulation: Nests
    plan = LayersPlan
    measures = MEASURES
    usual = "time"
    takes = frozenset({"layers", "all_kinds", "full", "bounding"})
    single = True
    axes = {"bytes": "bytes", "time": "ticks", "ocm": "bytes on chip"}  # of solver.tiling.front.AXES
    auto = "exhaustive"
    others = {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}
    explains = True
    front_engines = False

    def __init__(self, formulation: Nests) -> None:
        self.formulation = formulation
        self.name, self.summary = formulation.name, formulation.summary
        self.pins = {name: str(decision) for name, decision in formulation.decisions.items()}

    def able(self, plan: LayersPlan) -> Mapping[str, bool]:
        """The engines, and that mappings may be given, which proves nothing."""
        return {**super().able(plan), GIVEN: False}

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of every layer; axes: two or three."""
        from solver.tiling.front import fronts  # late: the engines' package imports every solver

        wanted = axes or ("bytes", "time")
        request = prepare(question)
        by_name = {layer.name: layer for layer in request.layers}
        parts = []
        for name, found in fronts(request, wanted, time_limit_s=question.time_limit_s).items():
            points, housed = [], dict[object, NestPart]()
            for point in found.points:
                part = housed.setdefault(point.nest.homes, request.part(by_name[name], point.nest.homes))
                decision = part.space.decision(point.nest)
                body = {"measures": point.measures, "nest": point.nest.to_json(), "decision": decision}
                details = {
                    "x limit": ratio(point.measures["bytes"], lower_bound_bytes(by_name[name], request.asked.machine)),
                    "time (us)": f"{point.measures['time'] * request.asked.machine.tick_ps / 1e6:,.1f}",
                    "on chip": f"{point.ocm:,}",
                }
                values = dict(zip(found.axes, point.values, strict=True))
                points.append(FrontPoint(values, body, decision_text(decision), details=details))
            parts.append(FrontPart(name, tuple(points), found.complete, found.proven))
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, request.name, request.asked.machine.name, units, tuple(parts))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Layer by layer, exactly."""
        request = prepare(question)
        for layer in request.layers:
            part = request.part(layer, tuple(assignments(layer, question.machine)[0].items()))
            yield Explained(layer.name, part.explain(), part.space.size)

    def derive(self, plan: LayersPlan) -> Derived:
        """Replay layer by layer."""
        return problems_of_layers(plan)

    def claims(self, plan: LayersPlan) -> Iterator[Claim]:
        """Layer by layer; layers that share memories off the chip are one part: homes are decided for all together."""
        yield from layer_claims(plan) if plan.homes is None else super().claims(plan)

    def status(self, plan: LayersPlan) -> list[str]:
        """What is known, a part each: status, value, bound, gap and replay."""
        parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
        if plan.objective is not None:
            said = f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}"
            bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}, gap {percent(plan.gap)} %"
            parts.append(f"{said}, {bound}")
        missing = [p.layer for p in plan.layers if p.schedule is None]
        asked = ",".join(plan.objectives)
        half = [p.layer for p in plan.layers if p.schedule and p.stats.get("proven", asked) not in (asked, "")]
        if half:
            parts.append(f"only some of {asked} proven in {len(half)} of {len(plan.layers)} layers: {few(half)}")
        if missing:
            parts.append(f"{len(missing)} of {len(plan.layers)} layers without a schedule: {few(missing)}")
        if plan.replay.ok is not None:
            verdict = "replayed, not compared (literal reading)" if plan.replay.note else "replay agrees"
            failed = [p.layer for p in plan.layers if p.replay is not None and not p.replay.ok]
            reading = " by the paper's literal equations" if plan.replay.note else ""
            refused = f"replay is not ok: {few(failed)} cannot run as priced{reading}, certile check refuses this plan"
            parts.append(refused if failed else verdict)
        return parts

    def sheet(self, plan: LayersPlan) -> Sheet:
        """Layers and their sum."""
        return nest_table(plan, {})

    def table(self, plan: LayersPlan, others: Mapping[str, LayersPlan]) -> list[RenderableType]:
        """The same, with a column for every other engine."""
        return [nest_table(plan, others), "", "; ".join(self.known(plan))]

    def details(self, plan: LayersPlan, layer: str | None) -> Iterable[str]:
        """The buffers and the loops of one layer or all, line by line."""
        for row in plan.layers:
            if layer in (None, row.layer):
                yield from _layer(plan, row)

    def pictures(self, plan: LayersPlan, others: Mapping[str, LayersPlan]) -> Pictures:
        """Roofline, times, memories, and every layer with its tile and its nest as code."""
        texts = {row.layer: "\n".join(_layer(plan, row)).strip() for row in plan.layers if not row.same_as}
        return pictures(plan, others, texts)

    def question(self, plan: LayersPlan) -> Question:
        """What a stored plan was asked, but for its layers, which `again` takes as they are."""
        return Question(
            plan.layers[0].workload, plan.machine_data, plan.objectives, self.name, pins=plan.pins,
            settings=plan.options.settings,
        )  # fmt: skip

    def again(self, plan: LayersPlan, engine: str, time_limit_s: float | None, jobs: int) -> LayersPlan:
        """Plan the layers again."""
        rooms = {one.name: one.bytes for one in plan.machine_data.off_chip if one.bytes is not None}
        asked = replace(self.question(plan), engine=engine, time_limit_s=time_limit_s, jobs=jobs)
        layers = tuple(row.workload for row in plan.layers)
        places = plan.homes.places(rooms) if plan.homes else None
        demands = pick_pins(list(plan.pins), self.formulation)
        request = Request(asked, plan.network, layers, self.formulation, demands, places)
        return self.planned(request, time.monotonic())


def layer_claims(plan: LayersPlan) -> Iterator[Claim]:
    """What a plan claims of every layer; where the plan says homes, of all nests with the homes that the layer has."""
    for row in plan.layers:
        names = plan.objectives
        values = picked(names, row.measures.model_dump()) if row.measures else ()
        yield Claim(row.layer, row.status, names, values, bounds_of(row.status, row.bound, values, len(names)))


def nest_table(plan: LayersPlan, others: Mapping[str, LayersPlan]) -> Sheet:
    """Return the table of a plan: one row a layer and one for the sum.

    Parameters
    ----------
    others : mapping of engine name to LayersPlan
        Plans of the same layers by other engines: each adds a column with its objective over ours.
    """
    rows, first = plan.layers, plan.objectives[0]
    copied = sum(row.same_as is not None for row in rows)
    distinct = f", {len(rows) - copied} distinct" * (copied > 0)
    ratios = [
        Column(
            name,
            [ratio(_value(a), _value(b)) for a, b in zip(other.layers, rows, strict=True)],
            f"its {first} over that of {plan.engine}", ratio(_value(other), _value(plan)),
        )
        for name, other in others.items()
    ]  # fmt: skip
    objective, *measures = measure_columns(plan, [_measures(row) for row in rows], _measures(plan))
    return Sheet(
        [
            name_column("layer", [label(row.layer, row.workload) for row in rows], distinct),
            objective,
            Column("gap (%)", [_gap(row) for row in rows],
                   GAP, percent(plan.gap)),
            *ratios,
            *measures,
            Column("x limit", [ratio(_bytes(row), _limit([row])) for row in rows],
                   "bytes over the least that any plan moves", ratio(_bytes(plan), _limit(rows)), spare=2),
            *decision_columns([row.decision for row in rows]),
            Column("wall (s)", ["same" if row.same_as else f"{row.wall_s:.2f}" for row in rows],
                   "search, same: as an equal layer above", f"{plan.wall_s:.2f}", spare=4),
        ],
        [*conflicts_of(rows), *_buffering_of(plan)],
    )  # fmt: skip


def _buffering_of(plan: LayersPlan) -> list[str]:
    """Return why a demand for buffers cannot be met, if there is one: the machine decides their number."""
    machine = plan.machine_data
    asked = any(line.startswith("pin buffers_") for row in plan.layers for line in row.conflicts)
    said = f"machine {machine.name} has buffering={machine.buffering}; to choose: --set buffering=choose"
    return [said] if asked and machine.buffering != "choose" else []


def _gap(row: LayerPlan) -> str:
    """The gap; or why there is none."""
    return row.status if row.schedule is None else percent(row.gap)


def _limit(rows: Sequence[LayerPlan]) -> int | None:
    """The bytes that no plan of these layers can do without."""
    limits = [row.limits for row in rows]
    return sum(limit.lower_bound_bytes for limit in limits if limit) if all(limits) else None


def _measures(row: LayersPlan | LayerPlan) -> dict[str, int] | None:
    return row.measures.model_dump() if row.measures else None


def _bytes(row: LayersPlan | LayerPlan) -> int | None:
    return row.measures.bytes if row.measures else None


def _value(row: LayersPlan | LayerPlan) -> int | None:
    return row.objective.value if row.objective else None


def _layer(plan: LayersPlan, row: LayerPlan) -> Iterable[str]:
    yield f"{row.layer}: {workload_text(row.workload)}, on {plan.machine}"
    if row.schedule is None or row.objective is None or row.measures is None:
        why = f": {'; '.join(row.conflicts)}" if row.conflicts else ""
        yield from (f"{row.status}, there is no schedule{why}", "")
        return
    known = "no bound" if row.bound is None else f"bound {row.bound:,}"
    yield f"{plan.objectives[0]} {row.objective.value:,} {row.objective.unit} ({row.status}, {known})"
    if row.limits is not None:
        limit = row.limits.lower_bound_bytes
        yield f"{row.measures.bytes:,} bytes move; no plan moves fewer than {limit:,}"
    machine, nest = plan.machine_data, row.schedule.to_nest()
    if nest.homes:
        yield f"off the chip: {', '.join(f'{operand} in {name}' for operand, name in nest.homes)}"
    placed = row.buffers or buffers(row.workload, machine, nest)
    for memory, size in machine.memories.items():
        mine = [b for b in placed if b.memory == memory]
        left = size - sum(b.copies * b.bytes for b in mine)
        yield from ("", f"memory {memory}, {size:,} bytes of a core, {left:,} free:")
        yield from buffer_lines(mine)
    yield from ("", *pseudo_code(row.workload, machine, nest).splitlines(), "")
    if machine.timing == "double_buffered":
        yield (
            "time = loads of the first step + sum over the steps of max(compute, loads of the next, stores of the one "
            "before) + stores of the last;"
        )
        yield from ("operands with one buffer are loaded and stored between the steps", "")
