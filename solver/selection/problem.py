"""Problem selection, as the rest of `solver` sees it: what its plans say, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from formulations.selection.frame import Frame
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation, part_of
from formulations.selection.rows import MEASURES
from formulations.selection.steps import Step
from hwmodels.selection.schedule import Choice, Selection
from instances.errors import InputError
from instances.network import Network
from instances.variants import PPM, Variants
from solver.front import Front, FrontPart
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Objective
from solver.problem import Target, front_of_plans
from solver.question import Question
from solver.selection.figures import figures
from solver.selection.plan import (
    SelectedLayer,
    SelectionMeasures,
    SelectionOptions,
    SelectionPlan,
    SelectionReplay,
    ThreadLoad,
)
from solver.selection.steps import steps_of
from solver.tables import Column, Sheet, name_column
from solver.verdict import Verdict
from solver.whole import WholeProblem

#: Wh in a femtojoule.
_WH = 1e-15 / 3600


class SelectionProblem(WholeProblem[SelectionPlan]):
    """F8: a variant for every layer, cuts, frequency and input size."""

    plan = SelectionPlan

    def __init__(self) -> None:
        super().__init__(SelectionFormulation())
        self.others = {"search": ("cp-sat", "milp"), "": ("search", "cp-sat")}

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; raises InputError for targets that have no variants."""
        if not isinstance(target, Variants | Network):
            raise InputError(
                f"target {getattr(target, 'name', '')}: problem selection takes variants of layers: a bundled profile "
                "such as tiny_yolo_tx2, a .csv or .json file, or a network on a board"
            )
        return super().objectives(asked, target)

    def parts(self, question: Question) -> Sequence[SelectionPart]:
        """The network; raises InputError for bad pins, and machines without stages."""
        return [part_of(cast("Network | Variants", question.subject), question.machine, question.pins)]

    def options(self, question: Question) -> SelectionOptions:
        """Pins."""
        return SelectionOptions(
            time_limit_s=question.time_limit_s, settings=question.settings, pins=question.pins
        )  # fmt: skip

    def question(self, plan: SelectionPlan) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, self.name, self.auto, pins=plan.options.pins
        )  # fmt: skip

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Measures, threads, and a row for every layer."""
        first, priced = question.objectives[0], verdict.priced
        fields: dict[str, Any] = {
            "unit": MEASURES[first], "measures": None, "objective": None,
            "replay": SelectionReplay(ok=None, faults=()), "cpu_config": "", "input_size": "", "frequency": "",
            "cuts": (), "threads": (), "layers": (),
        }  # fmt: skip
        if priced is None:
            return fields
        part, schedule = cast(SelectionPart, verdict.part), cast(Selection, verdict.said.schedule)
        frame = part.frame(schedule)
        chosen, value = frame.chosen(schedule), priced.measures[first]
        total = frame.total(chosen) or []
        terms = {name: some for name, some in priced.terms[first].items() if some}
        return {
            **fields, "measures": SelectionMeasures(**priced.measures),
            "objective": Objective(value=value, unit=MEASURES[first], terms=terms or {first: value}),
            "replay": SelectionReplay(ok=True, faults=()), "cpu_config": schedule.configuration,
            "input_size": schedule.size, "frequency": schedule.frequency, "cuts": schedule.cuts,
            "threads": tuple(_threads(frame, total)), "layers": tuple(_layers(frame, chosen)),
        }  # fmt: skip

    def decided(self, plan: SelectionPlan, part: Any) -> Selection | None:
        """The schedule of the rows."""
        if not plan.layers:
            return None
        choices = tuple(Choice(row.layer, row.variant, row.stage) for row in plan.layers)
        return Selection(plan.input_size, plan.frequency, plan.cuts, choices, plan.cpu_config)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures."""
        wanted = axes or ("period", "error")
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        (part,) = self.parts(question)
        verdicts, proven = self.lowest(part, question, (wanted[0], wanted[1]))
        plans = [self.made(question, part, verdict.said, 0.0) for verdict in verdicts]
        front = front_of_plans(self, question, plans, proven=proven, details=_details)
        points = tuple(
            type(point)(
                {axis: point.values[axis] for axis in wanted}, point.body, point.label, point.plan, point.details
            )
            for point in front.parts[0].points
        )
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, front.network, front.machine, units, (FrontPart("", points, proven, proven),))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def names(self, plan: SelectionPlan) -> list[str]:
        """The layers."""
        return [row.layer for row in plan.layers]

    def status(self, plan: SelectionPlan) -> list[str]:
        """What is known; seconds, energy and accuracy in common units."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        chosen = [f"cores ({plan.cpu_config})"] if plan.cpu_config else []
        chosen += [f"input size {plan.input_size}", f"frequency {plan.frequency}"]
        cuts = f"cut at {', '.join(plan.cuts)}" if plan.cuts else "one thread"
        return [*parts, ", ".join([*chosen, cuts]), *_common(plan), "replay agrees"]

    def sheet(self, plan: SelectionPlan) -> Sheet:
        """A row a layer."""
        rows = plan.layers
        return Sheet(
            [
                name_column("layer", [row.layer for row in rows]),
                Column("variant", [row.variant for row in rows], words=True),
                Column("stage", [row.stage for row in rows], words=True),
                Column("type", [row.type for row in rows], words=True, spare=3),
                Column("time (us)", [_us(plan, row.time) for row in rows], total=_us(plan, sum(r.time for r in rows))),
                Column("between (us)", [_us(plan, row.between) for row in rows], "conversions, hand-overs",
                       _us(plan, sum(row.between for row in rows))),
                Column("loss (ppm)", [f"{row.loss_ppm:,}" for row in rows], "of accuracy",
                       f"{sum(row.loss_ppm for row in rows):,}", spare=1),
                Column("bytes", [f"{row.bytes:,}" for row in rows], "", f"{sum(row.bytes for row in rows):,}", spare=2),
            ]
        )  # fmt: skip

    def pictures(self, plan: SelectionPlan, others: Mapping[str, SelectionPlan]) -> Pictures:
        """Threads of the pipeline, times and losses by layer."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: SelectionPlan, layer: str | None) -> Iterator[str]:
        """All options of a layer; or threads, the steps of the paper's order beside the plan, and all layers."""
        (part,) = self.parts(self.question(plan))
        schedule = self.decided(plan, part)
        if schedule is None:
            return
        frame = part.frame(schedule)
        if layer is None:
            for thread in plan.threads:
                yield f"thread {' + '.join(thread.stages)}: busy {_us(plan, thread.load)} us an image"
            yield ""
            yield from _steps(plan, steps_of(part, plan.objectives[0]))
            yield ""
        for i, row in enumerate(plan.layers):
            if layer in (None, row.layer):
                yield from _options(plan, frame, i, row)


def _threads(frame: Frame, total: Sequence[int]) -> Iterator[ThreadLoad]:
    for thread in range(max(frame.threads) + 1):
        mine = [s for s, number in enumerate(frame.threads) if number == thread]
        yield ThreadLoad(stages=tuple(frame.stages[s] for s in mine), load=sum(total[s] for s in mine))


def _layers(frame: Frame, chosen: Sequence[int]) -> Iterator[SelectedLayer]:
    """A row a layer: conversions and sends belong to the layer that made a map, receives to its reader."""
    states = [frame.states[i][frame.state[i][o]] for i, o in enumerate(chosen)]
    between = [0] * len(chosen)
    for i, readers in enumerate(frame.readers):
        for kind in dict.fromkeys(states[j][1] for j in readers):
            between[i] += frame.convert(i, states[i], kind) or 0
        for j in readers:
            hand = frame.hand(i, states[i], states[j])
            between[i] += hand.get(states[i][0], 0)
            between[j] += hand.get(states[j][0], 0) if states[i][0] != states[j][0] else 0
    for i, (layer, o) in enumerate(zip(frame.layers, chosen, strict=True)):
        option, stage = layer.options[o], states[i][0]
        yield SelectedLayer(
            layer=layer.name, variant=option.variant, stage=option.stage, type=option.type,
            techniques=option.techniques, time=int(frame.takes[i][o][stage]), between=between[i],
            loss_ppm=option.loss_ppm, bytes=option.bytes,
        )  # fmt: skip


# ---- for people ------------------------------------------------------------------------------------------------------


def _us(plan: SelectionPlan, ticks: int) -> str:
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.1f}"


def _images(plan: SelectionPlan) -> int:
    return plan.network_data.images if isinstance(plan.network_data, Variants) else 1


def _common(plan: SelectionPlan) -> Iterator[str]:
    """Images a second, energy and accuracy."""
    measures, images = plan.measures, _images(plan)
    if measures is None:
        return
    seconds = measures.period * plan.machine_data.tick_ps / 1e12
    accuracy = (PPM - measures.error) / PPM
    yield f"{1 / seconds:,.1f} images a second" if seconds else "no time"
    if images > 1:
        yield f"{images:,} images in {seconds * images:,.1f} s"
    if measures.energy:
        energy = measures.energy * images
        yield f"{energy * _WH:,.6g} Wh" if images > 1 else f"{energy / 1e12:,.2f} mJ an image"
        yield f"accuracy {accuracy:.4f}, {accuracy / (energy * _WH):,.4g} a Wh"
    else:
        yield f"accuracy {accuracy:.4f}"


def _details(plan: SelectionPlan) -> dict[str, str]:
    return {"frequency": plan.frequency, "input size": plan.input_size}


def _options(plan: SelectionPlan, frame: Frame, i: int, row: SelectedLayer) -> Iterator[str]:
    """A layer and what it might be."""
    yield f"{row.layer}: {row.variant} on {row.stage}, {_us(plan, row.time)} us and {_us(plan, row.between)} us between"
    for option, takes in zip(frame.layers[i].options, frame.takes[i].tolist(), strict=True):
        time = sum(takes[: frame.loss])
        used = "".join(f", {name} {amount:,}" for name, amount in option.uses.items())
        yield (
            f"  {'*' if (option.variant, option.stage) == (row.variant, row.stage) else ' '} {option.variant} on "
            f"{option.stage}, {option.type}: {_us(plan, time)} us, loss {option.loss_ppm:,} ppm, "
            f"{option.bytes:,} bytes{used}"
        )


def _steps(plan: SelectionPlan, made: Sequence[Step]) -> Iterator[str]:
    """What the paper's order gives, step by step, and the plan."""
    first = plan.objectives[0]
    yield f"the paper's order, {first} ({MEASURES[first]}):"
    for step in made:
        yield f"  {step.name}: {step.measures[first]:,}{'' if step.kept else ' (not kept)'}"
    if plan.objective is not None:
        yield f"  this plan: {plan.objective.value:,} ({plan.status})"
