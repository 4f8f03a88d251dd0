"""Problem placement, as the rest of `solver` sees it: what its plans say, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from formulations.pins import parse_pins
from formulations.placement.part import PlacementPart
from formulations.placement.problem import PlacementFormulation
from hwmodels.placement.schedule import Place, Placement
from instances.buffers import Buffers
from instances.errors import InputError
from solver.front import Front, FrontPart
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.placement.figures import figures
from solver.placement.picture import picture
from solver.placement.plan import (
    MemoryUse,
    PlacedBuffer,
    PlacementMeasures,
    PlacementOptions,
    PlacementPlan,
    PlacementReplay,
)
from solver.plan import Objective
from solver.problem import Target, front_of_plans
from solver.question import Question
from solver.tables import ABSENT, Column, Sheet, name_column
from solver.verdict import Verdict
from solver.whole import WholeProblem


class PlacementProblem(WholeProblem[PlacementPlan]):
    """F9: memory and address of every buffer."""

    plan = PlacementPlan

    def __init__(self) -> None:
        super().__init__(PlacementFormulation())

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; raises InputError unless there are buffers to place."""
        if not isinstance(target, Buffers):
            raise InputError(
                f"target {getattr(target, 'name', '')}: problem placement takes buffers: a .csv or .json file of them, "
                "or a plan of problem tiling, slicing, joint or fusion"
            )
        return super().objectives(asked, target)

    def parts(self, question: Question) -> Sequence[PlacementPart]:
        """The buffers; raises InputError for bad pins, and machines without addresses."""
        pins = parse_pins(question.pins, self.formulation.decisions)
        formulation = cast(PlacementFormulation, self.formulation)
        return formulation.read(cast(Buffers, question.subject), question.machine, pins, question.layers)

    def options(self, question: Question) -> PlacementOptions:
        """Pins."""
        return PlacementOptions(
            time_limit_s=question.time_limit_s, settings=question.settings, pins=question.pins
        )  # fmt: skip

    def question(self, plan: PlacementPlan) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, self.name, self.auto, pins=plan.options.pins
        )  # fmt: skip

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Measures, memories, and a row for every buffer."""
        instance, priced = cast(PlacementPart, verdict.part).instance, verdict.priced
        if priced is None:
            none = PlacementReplay(ok=None, faults=())
            return {
                "unit": "bytes", "measures": None, "objective": None, "replay": none, "memories": (), "places": (),
            }  # fmt: skip
        first, schedule = question.objectives[0], cast(Placement, verdict.said.schedule)
        where = {place.buffer: place for place in schedule.places}
        terms = {name: value for name, value in priced.terms.get(first, {}).items() if value}
        value, tops = priced.measures[first], priced.terms["peak"]
        rows = []
        for b in instance.buffers:
            place = where.get(b.name)
            rows.append(
                PlacedBuffer(
                    buffer=b.name, lower=b.lower, upper=b.upper, size=b.size, memory=place and place.memory,
                    address=None if place is None else place.address,
                )
            )  # fmt: skip
        memories = []
        for memory in instance.memories:
            inside = [b.buffer for b in rows if b.memory == memory.name]
            load = instance.packing(inside, memory).load.max(initial=0) if inside else 0
            memories.append(
                MemoryUse(
                    name=memory.name, bytes=instance.capacity[memory.name], peak=tops[memory.name], load=int(load)
                )
            )
        return {
            "unit": "bytes", "measures": PlacementMeasures(**priced.measures),
            "objective": Objective(value=value, unit="bytes", terms=terms or {first: value}),
            "replay": PlacementReplay(ok=True, faults=()), "memories": tuple(memories), "places": tuple(rows),
        }  # fmt: skip

    def decided(self, plan: PlacementPlan, part: Any) -> Placement | None:
        """The schedule of the rows; raises InputError for names that are not those of the buffers."""
        if not plan.places:
            return None
        instance = cast(PlacementPart, part).instance
        stated = [(b.buffer, b.lower, b.upper, b.size) for b in plan.places]
        if stated != [(b.name, b.lower, b.upper, b.size) for b in instance.buffers]:
            raise InputError(f"buffers: the plan has {len(stated)}, {len(instance.buffers)} were given, or other ones")
        if half := [b.buffer for b in plan.places if (b.memory is None) != (b.address is None)]:
            raise InputError(f"buffer {half[0]}: memory and address are given, or neither")
        return Placement(
            tuple(
                Place(b.buffer, b.memory, b.address)
                for b in plan.places
                if b.memory is not None and b.address is not None
            )
        )

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of two measures: what room is worth, for instance."""
        wanted = axes or ("bytes", "peak")
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} have two")
        (part,) = self.parts(question)
        verdicts, proven = self.lowest(part, question, (wanted[0], wanted[1]))
        plans = [self.made(question, part, verdict.said, 0.0) for verdict in verdicts]
        front = front_of_plans(self, question, plans, proven=proven, details=lambda plan: {})
        units = {axis: self.axes[axis] for axis in wanted}
        points = tuple(
            type(point)(
                {axis: point.values[axis] for axis in wanted}, point.body, point.label, point.plan, point.details
            )
            for point in front.parts[0].points
        )
        return Front(self.name, front.network, front.machine, units, (FrontPart("", points, proven, proven),))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def names(self, plan: PlacementPlan) -> list[str]:
        """The buffers."""
        return [b.buffer for b in plan.places]

    def status(self, plan: PlacementPlan) -> list[str]:
        """What is known, and how full memories are."""
        parts = known_parts(plan)
        for memory in plan.memories:
            used = f"{memory.peak:,} of {memory.bytes:,} bytes of {memory.name}"
            parts.append(f"{used}, at most {memory.load:,} at one time")
        return [*parts, *(["replay agrees"] if plan.replay.ok else [])]

    def sheet(self, plan: PlacementPlan) -> Sheet:
        """A row a buffer."""
        rows = plan.places
        return Sheet(
            [
                name_column("buffer", [b.buffer for b in rows]),
                Column(
                    "address", [ABSENT if b.address is None else f"{b.address:,}" for b in rows], "of the first byte"
                ),
                Column("bytes", [f"{b.size:,}" for b in rows]),
                Column("from", [str(b.lower) for b in rows], "when it begins to live"),
                Column("to", [str(b.upper) for b in rows], "before when it lives"),
                Column("memory", [b.memory or "off the chip" for b in rows], words=True, spare=1),
            ]
        )

    def pictures(self, plan: PlacementPlan, others: Mapping[str, PlacementPlan]) -> Pictures:
        """Every memory, addresses over time."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: PlacementPlan, layer: str | None) -> Iterator[str]:
        """A map of every memory over time, and all buffers; or one buffer with those that it meets."""
        if layer is None:
            for memory in plan.memories:
                yield from (*picture(plan, memory), "")
        for b in plan.places:
            if layer in (None, b.buffer):
                where = "off the chip" if b.memory is None else f"{b.memory} {b.address:,} to {_end(b):,}"
                yield f"{b.buffer}: {where}, {b.size:,} bytes, times {b.lower} to {b.upper}"
        if layer is not None:
            yield from _beside(plan, next(b for b in plan.places if b.buffer == layer))


def _end(buffer: PlacedBuffer) -> int:
    return (buffer.address or 0) + buffer.size


def _beside(plan: PlacementPlan, buffer: PlacedBuffer) -> Iterator[str]:
    """Those alive at the same time in the same memory."""
    for other in sorted(plan.places, key=lambda b: b.address or 0):
        alive = other.lower < buffer.upper and buffer.lower < other.upper
        if other.buffer != buffer.buffer and other.memory == buffer.memory is not None and alive:
            yield f"  beside {other.buffer}: {other.address:,} to {_end(other):,}, times {other.lower} to {other.upper}"
