"""Problem selection, as the rest of `solver` sees it: how its plans are shown.

Drawn are threads of the pipeline over an image, times by layer, and loss of accuracy by layer. `steps_of` and
`with_optima` have the paper's order step by step, and beside each step the optimum of what had been allowed by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple, cast

from formulations.clock import Clock
from formulations.problem import Goal, Unable
from formulations.selection.frame import MEASURES, Frame
from formulations.selection.part import LayerFigures, SelectionFigures, SelectionPart
from formulations.selection.problem import SelectionFormulation, Step, default_order, part_of
from hwmodels.selection.schedule import Choice, Selection
from instances.errors import InputError
from instances.network.network import Network
from instances.network.variants import PPM, Variants
from solver.ask.question import Question
from solver.plan.figures import Axis, Box, Boxes, Figure
from solver.plan.plan import Plan
from solver.problems.problem import Problem, Target
from solver.search.loop import Answer, decide_part
from solver.show.common import stacked, us
from solver.show.tables import Column, Sheet, name_column
from solver.show.words import agreement
from solver.show.words import microseconds as _us


class StepRow(NamedTuple):
    """A step and the optimum beside it."""

    step: Step
    optimum: Answer[Selection] | None
    """None for the baseline, where nothing is chosen."""


def steps_of(part: SelectionPart, measure: str) -> list[Step]:
    """Return the steps of the default order; none if there is no way to begin."""
    try:
        return default_order(part, Goal(measure))
    except Unable:
        return []


def with_optima(part: SelectionPart, measure: str, time_limit_s: float | None = None) -> Iterator[StepRow]:
    """Yield the steps, each with the optimum of the techniques, frequencies and sizes that had been tried by then.

    Example: beside "selected tucker" stands the best choice of cuts and layers to decompose, at the first frequency.
    """
    variants, made = part.settings[0].variants, steps_of(part, measure)
    tried = list[str]()
    for step in made:
        if step.name == "baseline":
            yield StepRow(step, None)
            continue
        tried.append(step.name.removeprefix("selected "))
        pins = [*part.pins, *(f"technique!={name}" for name in variants.techniques if name not in tried)]
        pins += _fixed(part, made[0], "frequency", tried) + _fixed(part, made[0], "input size", tried)
        asked = SelectionPart(part.settings, pins)
        yield StepRow(step, decide_part(SelectionFormulation(), asked, (measure,), "search", Clock.of(time_limit_s)))


def _fixed(part: SelectionPart, first: Step, what: str, tried: Sequence[str]) -> list[str]:
    """The pin that keeps frequency, or input size, as the baseline has it, until its turn has come."""
    if what in tried:
        return []
    name = "frequency" if what == "frequency" else "size"
    return [f"{name}={getattr(first.frame, name).name}"]


def rows_of(plan: Plan) -> list[tuple[Choice, LayerFigures]]:
    """Return what is chosen for every layer, and what it takes; nothing without a schedule."""
    return list(zip(plan.schedule.choices, plan.part.figures.layers, strict=True)) if plan.decided else []


def _threads(plan: Plan) -> Boxes:
    """Every thread with the layers of its stages, one after the other as the network has them."""
    groups, boxes, lanes = ("computes", "converts and hands over"), list[Box](), list[tuple[float, str]]()
    for y, thread in enumerate(plan.part.figures.threads):
        lanes.append((float(y), f"thread {y + 1}: {', '.join(thread.stages)}"))
        now = 0.0
        for one, row in (pair for pair in rows_of(plan) if pair[0].stage in thread.stages):
            for group, ticks in enumerate((row.time, row.between)):
                if ticks:
                    end, said = now + us(plan, ticks), f"{one.variant} on {one.stage}, {us(plan, ticks):,.1f} us"
                    boxes.append(Box(now, end, y - 0.4, y + 0.4, row.layer, group, said))
                    now = end
    caption = (
        "What a thread does for one image; threads work on different images at the same time, so the longest one "
        "decides the period."
    )
    axis = Axis("", ticks=tuple(lanes), downwards=True, limits=(-0.6, len(lanes) - 0.4))
    return Boxes(
        "threads", "Threads of the pipeline", caption, Axis("time (us)"), axis, groups, tuple(boxes), len(lanes)
    )


#: Wh in a femtojoule.
_WH = 1e-15 / 3600


class SelectionProblem(Problem):
    """A variant for every layer, cuts, frequency and input size."""

    front_axes = ("period", "error")

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

    # ---- showing -----------------------------------------------------------------------------------------------------

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The layers."""
        return [(row.layer, {**asdict(one), **asdict(row)}) for one, row in rows_of(plan)]

    def noted(self, plan: Plan) -> dict[str, str]:
        """Frequency and input size."""
        return {"frequency": plan.schedule.frequency, "input size": plan.schedule.size}

    def said(self, plan: Plan) -> list[str]:
        """What is chosen; seconds, energy and accuracy in common units."""
        made: Selection = plan.schedule
        chosen = [f"cores ({made.configuration})"] if made.configuration else []
        chosen += [f"input size {made.size}", f"frequency {made.frequency}"]
        cuts = f"cut at {', '.join(made.cuts)}" if made.cuts else "one thread"
        return [", ".join([*chosen, cuts]), *_common(plan), agreement(plan)]

    def sheet(self, plan: Plan) -> Sheet:
        """A row a layer."""
        chosen, rows = [one for one, _ in rows_of(plan)], [row for _, row in rows_of(plan)]
        return Sheet(
            [
                name_column("layer", [row.layer for row in rows]),
                Column("variant", [one.variant for one in chosen], words=True),
                Column("stage", [one.stage for one in chosen], words=True),
                Column("type", [row.type for row in rows], words=True, spare=3),
                Column("time (us)", [_us(plan, row.time) for row in rows], total=_us(plan, sum(r.time for r in rows))),
                Column("between (us)", [_us(plan, row.between) for row in rows], "conversions, hand-overs",
                       _us(plan, sum(row.between for row in rows))),
                Column("loss (ppm)", [f"{row.loss_ppm:,}" for row in rows], "of accuracy",
                       f"{sum(row.loss_ppm for row in rows):,}", spare=1),
                Column("bytes", [f"{row.bytes:,}" for row in rows], "", f"{sum(row.bytes for row in rows):,}", spare=2),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Threads of the pipeline, times and losses by layer."""
        if plan.measures is None:
            return []
        times = {
            engine: {
                row.layer: {"computes": us(plan, row.time), "converts and hands over": us(plan, row.between)}
                for _, row in rows_of(one)
            }
            for engine, one in plans.items()
        }  # fmt: skip
        made: list[Figure] = [
            _threads(plan),
            stacked(
                "time-by-layer", "Time by layer", "Of an image; conversions and hand-overs beside.", "time (us)", times
            ),
        ]
        if any(row.loss_ppm for _, row in rows_of(plan)):
            loss = {
                engine: {row.layer: {"loss": row.loss_ppm} for _, row in rows_of(one)} for engine, one in plans.items()
            }
            caption = "Millionths of accuracy that the variant of a layer costs."
            made.append(stacked("loss-by-layer", "Loss by layer", caption, "loss of accuracy (ppm)", loss))
        return made

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """All options of a layer; or threads, the steps of the paper's order beside the plan, and all layers."""
        (part,) = self.parts(self.question(plan))
        if plan.schedule is None:
            return
        frame, found = part.frame(plan.schedule), cast(SelectionFigures, plan.part.figures)
        if layer is None:
            for thread in found.threads:
                yield f"thread {' + '.join(thread.stages)}: busy {_us(plan, thread.load)} us an image"
            yield ""
            yield from _steps(plan, steps_of(part, plan.objectives[0]))
            yield ""
        for i, (one, row) in enumerate(rows_of(plan)):
            if layer in (None, row.layer):
                yield from _options(plan, frame, i, one, row)


# ---- for people ------------------------------------------------------------------------------------------------------


def _images(plan: Plan) -> int:
    return plan.network_data.images if isinstance(plan.network_data, Variants) else 1


def _common(plan: Plan) -> Iterator[str]:
    """Images a second, energy and accuracy."""
    measures, images = plan.measures, _images(plan)
    if measures is None:
        return
    seconds = measures["period"] * plan.machine_data.tick_ps / 1e12
    accuracy = (PPM - measures["error"]) / PPM
    yield f"{1 / seconds:,.1f} images a second" if seconds else "no time"
    if images > 1:
        yield f"{images:,} images in {seconds * images:,.1f} s"
    if measures["energy"]:
        energy = measures["energy"] * images
        yield f"{energy * _WH:,.6g} Wh" if images > 1 else f"{energy / 1e12:,.2f} mJ an image"
        yield f"accuracy {accuracy:.4f}, {accuracy / (energy * _WH):,.4g} a Wh"
    else:
        yield f"accuracy {accuracy:.4f}"


def _options(plan: Plan, frame: Frame, i: int, one: Choice, row: LayerFigures) -> Iterator[str]:
    """A layer and what it might be."""
    yield f"{row.layer}: {one.variant} on {one.stage}, {_us(plan, row.time)} us and {_us(plan, row.between)} us between"
    for option, takes in zip(frame.layers[i].options, frame.takes[i].tolist(), strict=True):
        time = sum(takes[: frame.loss])
        used = "".join(f", {name} {amount:,}" for name, amount in option.uses.items())
        yield (
            f"  {'*' if (option.variant, option.stage) == (one.variant, one.stage) else ' '} {option.variant} on "
            f"{option.stage}, {option.type}: {_us(plan, time)} us, loss {option.loss_ppm:,} ppm, "
            f"{option.bytes:,} bytes{used}"
        )


def _steps(plan: Plan, made: Sequence[Step]) -> Iterator[str]:
    """What the paper's order gives, step by step, and the plan."""
    first = plan.objectives[0]
    yield f"the paper's order, {first} ({MEASURES[first]}):"
    for step in made:
        yield f"  {step.name}: {step.measures[first]:,}{'' if step.kept else ' (not kept)'}"
    if plan.objective is not None:
        yield f"  this plan: {plan.objective.value:,} ({plan.status})"


PROBLEM = SelectionProblem
