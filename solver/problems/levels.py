"""Problem levels, as the rest of `solver` sees it: how its plans are shown.

Drawn are the bytes between memories by layer, and a roofline for every memory that tiles come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from formulations.levels.problem import LevelPart, LevelsFormulation
from formulations.pins import parse_pins
from formulations.problem import Part
from instances.machine.levels import Levels
from instances.network.workload import Layer
from solver.ask.names import unknown
from solver.ask.options import pick_layers
from solver.ask.question import Question
from solver.plan.claims import gap_of
from solver.plan.figures import Figure
from solver.plan.plan import Asked, PartPlan, Plan
from solver.problems.layers import GIVEN
from solver.problems.problem import Problem
from solver.show.common import by_row, stacked
from solver.show.roofline import Rate, roofline
from solver.show.tables import ABSENT, GAP, Column, Sheet, name_column, percent, ratio
from solver.show.words import agreement, label


class LevelsProblem(Problem):
    """Layers on memories in levels."""

    def __init__(self) -> None:
        super().__init__(LevelsFormulation())
        self.axes, self.single = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}, True
        self.takes = frozenset({"layers", "all_kinds"})

    def unit(self, objective: str) -> str | None:
        """The unit of a measure, of bytes@MEMORY whatever the memory; None if there is no such measure."""
        return self.measures.get(objective)

    def parts(self, question: Question) -> Sequence[Part[Any]]:
        """The layers; raises InputError for bad pins and layers, and for bytes of a memory that there is not."""
        levels, pins = question.machine.levels, parse_pins(question.pins, self.formulation.decisions)
        known = [] if levels is None else [f"bytes@{one.name}" for one in levels.memories[:-1]]
        for name in question.objectives:
            if levels is not None and "@" in name and name not in known:
                raise unknown("objective", name, [*self.measures, *known])
        return [LevelPart(layer, question.machine, pins) for layer in self.target_of(question)]

    def target_of(self, question: Question) -> tuple[Layer, ...]:
        """The layers that are planned."""
        if isinstance(question.target, tuple):
            return question.target
        target = question.target if isinstance(question.target, Layer) else question.network
        return pick_layers(target, question.layers, all_kinds=question.all_kinds)

    def solve(self, question: Question) -> Plan:
        """Plan a layer, or the layers of a network: every conv and matmul layer, those named, or all kinds."""
        if not isinstance(question.target, tuple):
            question = replace(question, target=self.target_of(question), title=question.name)
        return super().solve(question)

    def question(self, plan: Plan) -> Question:
        """What a stored plan was asked: its layers, or the only one."""
        question, layers = super().question(plan), plan.network_data
        return replace(question, target=layers[0]) if len(layers) == 1 else question

    def options_of(self, question: Question) -> Asked:
        """What was asked beside the layers, which a plan holds."""
        return super().options_of(question).model_copy(update={"layers": (), "all_kinds": False})

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """The engines, and that mappings may be given, which proves nothing."""
        return {**super().able(plan), GIVEN: False}

    def rooms(self, plan: Plan) -> Iterable[tuple[str, int, int]]:
        """The most that any layer takes of every memory."""
        for one in _levels(plan).memories[1:]:
            taken = [row.figures.occupancy_bytes[one.name] for row in plan.parts if row.figures is not None]
            if taken and one.bytes is not None:
                yield one.name, max(taken), one.bytes

    def said(self, plan: Plan) -> list[str]:
        """Bytes of every memory beside what must move, and whether replay agrees."""
        found = plan.measures or {}
        must = sum(row.must["bytes"] for row in plan.parts)
        first, *others = (one.name for one in _levels(plan).memories[:-1])
        said = [f"{first} {found['bytes']:,} bytes, {ratio(found['bytes'], must)} times what must ({must:,})"]
        said += [f"{name} {found[f'bytes@{name}']:,} bytes" for name in others]
        return [*said, f"{found['time']:,} ticks", agreement(plan)]

    def sheet(self, plan: Plan) -> Sheet:
        """A row a layer: what is asked with its gap, the bytes of every memory, and what lies in each on the chip."""
        rows, levels = plan.parts, _levels(plan)
        layers = plan.network_data
        others = [f"bytes@{one.name}" for one in levels.memories[:-1]]
        shown = [name for name in dict.fromkeys(("time", *others)) if name not in plan.objectives]
        if "bytes" in plan.objectives:
            shown.remove(others[0])
        return Sheet(
            [
                name_column("layer", [label(layer.name, layer) for layer in layers]),
                *(column for aim in plan.objectives for column in self._aimed(plan, aim)),
                *(self._column(plan, name) for name in shown),
                *(_taken(rows, one.name, one.bytes or 1) for one in levels.memories[1:]),
                Column("nest", [row.schedule.words if row.schedule else ABSENT for row in rows],
                       "loops with their steps, and what stays where", words=True, spare=1),
            ]
        )  # fmt: skip

    def _column(self, plan: Plan, name: str) -> Column:
        values = [f"{row.measures[name]:,}" if row.measures else row.status for row in plan.parts]
        total = f"{plan.measures[name]:,}" if plan.measures else ABSENT
        means = f"between {name.partition('@')[2]} and nearer memories" if "@" in name else ""
        return Column(f"{name} ({self.unit(name)})", values, means, total)

    def _aimed(self, plan: Plan, aim: str) -> list[Column]:
        """An objective and its gap."""
        gaps = [percent(gap_of(row.measures.get(aim), row.bounds.get(aim))) for row in plan.parts]
        total = plan.measures[aim] if plan.measures else None
        return [self._column(plan, aim), Column("gap (%)", gaps, GAP, percent(gap_of(total, plan.bounds[aim])))]

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> Sequence[Figure]:
        """Bytes of every memory by layer, and a roofline of each."""
        decided = {engine: [row for row in one.parts if row.schedule] for engine, one in plans.items()}
        drawn = list[Figure]()
        for one in _levels(plan).memories[:-1]:

            def operands(row: PartPlan, name: str = one.name) -> dict[str, int]:
                return {
                    operand: sum(m.bytes for m in row.figures.moved if m.operand == operand and m.source == name)
                    for operand in ("IN", "W", "OUT")
                }

            caption = f"Between {one.name} and nearer memories, by operand."
            title = f"Bytes of {one.name} by layer"
            drawn.append(stacked(f"bytes-{one.name}", title, caption, "bytes", by_row(decided, operands)))
        macs = {layer.name: layer.macs for layer in plan.network_data}
        for one in _levels(plan).memories[:-1]:
            rates = {
                engine: [
                    Rate(row.name, macs[row.name], row.measures[f"bytes@{one.name}"], row.measures["time"])
                    for row in rows
                ]
                for engine, rows in decided.items()
            }
            drawn.append(roofline(plan.machine_data, rates, memory=one.name))
        return drawn

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """The nest of one layer or all, line by line, and what the memories take."""
        levels = _levels(plan)
        parts = {part.name: part for part in self.parts(self.question(plan))}
        for row in plan.parts:
            if layer not in (None, row.name):
                continue
            if row.schedule is None:
                yield from (f"{row.name} on {plan.machine}: {row.status}", *row.conflicts, "")
                continue
            moved = ", ".join(f"{one.name} {row.measures[f'bytes@{one.name}']:,}" for one in levels.memories[:-1])
            yield f"{row.name} on {plan.machine}: {row.status}, bytes {moved}; {row.measures['time']:,} ticks"
            yield parts[row.name].show(row.schedule)
            taken = row.figures.occupancy_bytes
            yield "  " + ", ".join(f"{one.name} {taken[one.name]:,} of {one.bytes:,}" for one in levels.memories[1:])
            yield ""


def _levels(plan: Plan) -> Levels:
    levels = plan.machine_data.levels
    assert levels is not None
    return levels


def _taken(rows: Sequence[PartPlan], name: str, size: int) -> Column:
    """How full a memory is."""
    taken = [percent(row.figures.occupancy_bytes[name] / size) if row.figures else ABSENT for row in rows]
    return Column(f"{name} (%)", taken, f"of {size:,} bytes taken", spare=2)


PROBLEM = LevelsProblem
