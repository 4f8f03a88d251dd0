"""Problem selection, as the rest of `solver` sees it: how its plans are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import cast

from formulations.selection.figures import LayerFigures, SelectionFigures
from formulations.selection.frame import Frame
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation, part_of
from formulations.selection.rows import MEASURES
from formulations.selection.steps import Step
from hwmodels.selection.schedule import Choice, Selection
from instances.errors import InputError
from instances.network import Network
from instances.variants import PPM, Variants
from solver.generic import GenericProblem
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Plan
from solver.problem import Target
from solver.question import Question
from solver.selection.figures import figures, rows_of
from solver.selection.steps import steps_of
from solver.tables import Column, Sheet, name_column

#: Wh in a femtojoule.
_WH = 1e-15 / 3600


class SelectionProblem(GenericProblem):
    """F8: a variant for every layer, cuts, frequency and input size."""

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

    def names(self, plan: Plan) -> list[str]:
        """The layers."""
        return [row.layer for row, _ in rows_of(plan)]

    def noted(self, plan: Plan) -> dict[str, str]:
        """Frequency and input size."""
        return {"frequency": plan.schedule.frequency, "input size": plan.schedule.size}

    def status(self, plan: Plan) -> list[str]:
        """What is known; seconds, energy and accuracy in common units."""
        parts = known_parts(plan)
        if plan.measures is None:
            return parts
        made: Selection = plan.schedule
        chosen = [f"cores ({made.configuration})"] if made.configuration else []
        chosen += [f"input size {made.size}", f"frequency {made.frequency}"]
        cuts = f"cut at {', '.join(made.cuts)}" if made.cuts else "one thread"
        return [*parts, ", ".join([*chosen, cuts]), *_common(plan), "replay agrees"]

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

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Threads of the pipeline, times and losses by layer."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

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


def _us(plan: Plan, ticks: int) -> str:
    return f"{ticks * plan.machine_data.tick_ps / 1e6:,.1f}"


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
