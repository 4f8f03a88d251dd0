"""Mappings on machines with memories in levels: read, priced, replayed, beside the optimum, and written.

What other tools say of several memories becomes a `LevelNest` (stays.py), and that a plan of engine `given`, which
proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formulations.levels.problem import LevelPart
from hwmodels.levels.price import Cost
from hwmodels.levels.price import price as cost_of
from hwmodels.levels.schedule import LevelNest
from instances.errors import InputError, choices
from instances.foreign.products import Workload
from instances.jsonfile import shown
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer
from solver.ask.names import version
from solver.ask.options import unknown
from solver.ask.question import Question
from solver.plan.plan import PartPlan, Plan
from solver.problems.layers import GIVEN
from solver.problems.levels import LevelsProblem
from solver.search.deciding import accepted
from solver.search.loop import Answer
from solver.show.tables import Column, Sheet, ratio, render
from solver.uses.mappings import accelforge, stays, timeloop, zigzag
from solver.uses.mappings.files import FORMATS, Mappings, data_of, named_lines, only
from solver.uses.mappings.stays import text_of

#: Forms that are written of nests over memories in levels.
SAID = ("text", "timeloop", "zigzag-json", "accelforge")


@dataclass(frozen=True)
class Levelled:
    """A layer with the nest over memories in levels that was given for it."""

    layer: Layer
    nest: LevelNest
    source: str = ""
    """Where it was read, and in which form."""
    notes: tuple[str, ...] = ()
    """What was folded or assumed in reading it."""


# ---- reading and writing ---------------------------------------------------------------------------------------------


def read(source: Mappings, workloads: Sequence[Workload], machine: Machine) -> list[Levelled]:
    """Return the layers that a mapping is for, each with its nest; raises InputError if it is no mapping of them."""
    if isinstance(source, LevelNest):
        layer = only(workloads, "a nest").layer
        return [Levelled(layer, stays.valid(source, layer, machine, "mapping"), "a nest")]
    if isinstance(source, Mapping):
        known = {one.layer.name: one for one in workloads}
        if strange := [name for name in source if name not in known]:
            raise InputError(f"mapping: no layer {shown(strange[0])}; layers: {choices(known)}")
        return [read(source[name], [known[name]], machine)[0] for name in source]
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"mapping: a nest on one memory; machine {machine.name} has levels: a LevelNest is")
    where, (data, text, path) = f"mapping {os.fspath(source)}", data_of(source)
    if text is not None:
        said = "text" if path is None else f"text, {path}"
        pairs = named_lines(text, workloads)
        return [Levelled(layer, stays.nest_of(words, layer, machine), said) for layer, words in pairs]
    if isinstance(data, Plan):
        return _of_plan(data, workloads, machine, where)
    if timeloop.is_mapping(data):
        one, form = only(workloads, "a mapping of Timeloop"), "timeloop"
        levels, notes = timeloop.levels_in(data, one, where)
        found = stays.from_levels(levels, one.layer, machine, where)
    elif accelforge.is_mapping(data):
        one, form, notes = only(workloads, "a mapping of AccelForge"), "accelforge", ()
        found = accelforge.read(data, one, machine, where)
    elif zigzag.is_mapping(data):
        one, form = only(workloads, "a mapping of ZigZag"), "zigzag"
        loops, outside, notes = zigzag.loops_in(data, one, 1, where)
        found = stays.from_lists(loops, outside, one.layer, machine, where)
    else:
        raise InputError(f"{where}: machine {machine.name} has levels: expected a mapping of Timeloop (mapping: "
                         "target, type, factors), of ZigZag as found (temporal_mapping), of AccelForge (mapping: nodes "
                         "with !Storage) or a plan of problem levels")  # fmt: skip
    return [Levelled(one.layer, found[0], f"{form}, {path}", (*notes, *found[1]))]


def _of_plan(plan: Plan, workloads: Sequence[Workload], machine: Machine, where: str) -> list[Levelled]:
    nests = {row.name: row.schedule for row in plan.parts if isinstance(row.schedule, LevelNest)}
    layers = [one.layer for one in workloads if one.layer.name in nests]
    if not layers:
        said = (
            f"has nests in levels of {choices(nests)}, not of the layers asked for" if nests else "has none in levels"
        )
        raise InputError(f"{where}: machine {machine.name} has levels; this plan of problem {plan.problem} {said}")
    return [Levelled(one, stays.valid(nests[one.name], one, machine, where), "plan") for one in layers]


def written(
    plan: Plan, form: str, layers: Sequence[str] | None, workloads: Sequence[Workload] = ()
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """Return the text of a file with the nests of a plan of problem levels, and what it does not say, a line each.

    Raises InputError if the form cannot say a nest: which Stays, and why.
    """
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    if form not in SAID:
        raise InputError(f"format {form}: it has no word for what stays in which memory; {', '.join(SAID)} do")
    nests = {row.name: row.schedule for row in plan.parts if row.schedule is not None}
    names = list(nests) if layers is None else layers
    if strange := [name for name in names if name not in nests]:
        raise unknown("layer", strange[0], nests)
    if not names or (len(names) > 1 and form != "text"):
        raise InputError(f"a mapping of {form} is for one layer, there are {len(names)}: name one with --layer")
    if form == "text":
        lines = [f"{f'{name}: ' if len(names) > 1 else ''}{text_of(nests[name])}" for name in names]
        return "\n".join(lines) + "\n", ()
    known = {one.layer.name: one for one in workloads}
    its = {layer.name: layer for layer in plan.network_data}
    one = known.get(names[0], Workload(its[names[0]]))
    nest, machine = nests[names[0]], plan.machine_data
    if form == "accelforge":
        return accelforge.write(nest, one, machine)
    if form == "timeloop":
        return timeloop.write_levels(stays.to_levels(nest, one.layer, machine, "a Timeloop mapping"), one), ()
    turns, outside = stays.turns_of(nest, one.layer, "a ZigZag mapping")
    return zigzag.written(turns, outside, one), tuple(_passes(nest, one.layer, machine))


def _passes(nest: LevelNest, layer: Layer, machine: Machine) -> Iterator[str]:
    """What lists of loops do not say: which memories an operand passes, where it passes all that it may."""
    lies = {(one.operand, one.memory) for _, one in nest.stays()}
    for operand in layer.operands:
        may = [one.name for one in stays.memories_of(machine).memories[1:] if operand in one.passed]
        passed = [name for name in may if (operand, name) not in lies]
        if passed and passed != may:
            raise InputError(f"a ZigZag mapping: {operand} passes {', '.join(passed)} of {', '.join(may)}: lists of "
                             "loops do not say which; accelforge and timeloop do")  # fmt: skip
        if passed:
            yield f"not said: {operand} passes {', '.join(passed)}: the accelerator has it not there"


# ---- prices ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LevelPrice:
    """What is known of the mapping of one layer."""

    mapped: Levelled
    machine: Machine
    objectives: tuple[str, ...]
    overflows: dict[str, tuple[int, int]]
    """Memories that are too small: bytes that are taken, bytes that there are. Empty: it fits."""
    row: PartPlan | None
    """What the plan says of it; None where it does not fit."""
    best: PartPlan | None
    """The optimum that it is compared with; None if none was asked for, or found."""

    @property
    def name(self) -> str:
        """Of the layer."""
        return self.mapped.layer.name

    @property
    def proven(self) -> bool:
        """Whether nothing has less of the first objective than `best`."""
        first = self.objectives[0]
        return self.best is not None and self.best.measures.get(first) == self.best.bounds.get(first)

    @property
    def times(self) -> float | None:
        """The first objective over that of the optimum; None without both."""
        if not (self.row and self.best and self.best.measures):
            return None
        mine, least = (one.measures[self.objectives[0]] for one in (self.row, self.best))
        return mine / least if least else 1.0

    def as_json(self) -> dict[str, Any]:
        """What is known, for programs."""
        best = self.best
        return {
            "layer": self.name, "mapping": text_of(self.mapped.nest), "source": self.mapped.source,
            "notes": list(self.mapped.notes),
            "overflows": {name: {"taken": taken, "bytes": size} for name, (taken, size) in self.overflows.items()},
            "measures": dict(self.row.measures) if self.row else None, "times": self.times,
            "optimum": None if best is None else {
                "status": best.status, "bounds": dict(best.bounds), "measures": dict(best.measures),
                "mapping": text_of(best.schedule) if best.schedule else None,
            },
        }  # fmt: skip

    def told(self) -> Iterator[str]:
        """Lines about it."""
        yield f"{self.name} on {self.machine.name}: {text_of(self.mapped.nest)}"
        if self.mapped.source not in ("text", "a nest"):
            yield f"read as {self.mapped.source}"
        yield from (f"note: {note}" for note in self.mapped.notes)
        for memory, (taken, size) in self.overflows.items():
            over = f"{taken - size:,} too many"
            yield f"does not fit: memory {memory}: {taken:,} bytes are taken, there are {size:,}: {over}"
        known = "the optimum" if self.proven else "the best known"
        if self.row is not None:
            yield from ("", render(self._sheet(known)).rstrip("\n"), "")
            taken_of, memories = self.row.figures.occupancy_bytes, stays.memories_of(self.machine).memories[1:]
            taken_said = ", ".join(f"{one.name} {taken_of[one.name]:,} of {one.bytes:,}" for one in memories)
            executed = ", computed on integers too" if self.row.replay and self.row.replay.executed else ""
            yield f"on chip, bytes: {taken_said}; replay agrees{executed}"
        if self.best is not None and self.best.measures:
            yield from self._compared(known, self.best)
        elif self.best is not None:
            yield "there is no optimum to compare with: none was found in time"

    def _compared(self, known: str, best: PartPlan) -> Iterator[str]:
        """The first objective beside that of the optimum."""
        first = self.objectives[0]
        least, unit = best.measures[first], LevelsProblem().unit(first)
        if self.row is not None:
            bound = best.bounds.get(first)
            said = "proven" if self.proven else "no bound" if bound is None else f"no mapping is below {bound:,}"
            beside = f"{self.row.measures[first]:,} {unit} against {least:,}"
            yield f"Your mapping has {self.times:.2f} times the {first} of {known}, {said}: {beside}."
        yield f"{known.capitalize()}: {text_of(best.schedule)}"

    def _sheet(self, known: str) -> Sheet:
        """The mapping beside the optimum: what moves between memories by operand, then all measures."""
        columns = [self._rows(one) for one in (self.row, self.best) if one is not None and one.measures]
        names = [*dict.fromkeys(name for one in columns for name in one)]
        memories = [one.name for one in stays.memories_of(self.machine).memories]
        names.sort(key=lambda name: memories.index(name.split()[1]) if " to " in name else len(memories))
        shown = [[f"{one[name]:,}" if name in one else "-" for name in names] for one in columns]
        found = [Column("", names, words=True), Column("yours", shown[0])]
        if len(columns) > 1:
            mine, its = columns
            times = [ratio(mine[name], its[name]) if name in mine and name in its else "-" for name in names]
            found += [Column(known.removeprefix("the "), shown[1]), Column("x", times)]
        return Sheet(found)

    def _rows(self, row: PartPlan) -> dict[str, int]:
        units = {name: f"{name}, {unit}" for name, unit in (("time", "ticks"), ("energy", "fJ"))}
        moved = {f"{one.operand} {one.source} to {one.memory}": one.bytes for one in row.figures.moved}
        total = {name: value for name, value in row.measures.items() if name != "bytes"}
        order = sorted(total, key=lambda name: name in units)
        return moved | {units.get(name, name): total[name] for name in order}


def overflows(mapped: Levelled, machine: Machine) -> dict[str, tuple[int, int]]:
    """Return the memories that are too small, each with the bytes that are taken and those that it has."""
    taken = _cost(mapped, machine).occupancy_bytes
    sizes = {one.name: one.bytes for one in stays.memories_of(machine).memories}
    return {name: (much, size) for name, much in taken.items() if (size := sizes[name]) is not None and much > size}


def _cost(mapped: Levelled, machine: Machine) -> Cost:
    return cost_of(mapped.layer, machine, mapped.nest)


def plan_of(
    given: Sequence[Levelled], network: Network, machine: Machine, objectives: tuple[str, ...],
    settings: tuple[str, ...] = (),
) -> Plan:  # fmt: skip
    """Return the plan of mappings that fit: priced, replayed, FEASIBLE; raises PlanMismatch if the two disagree."""
    start, problem, answers = time.monotonic(), LevelsProblem(), list[tuple[LevelPart, Answer[LevelNest]]]()
    for one in given:
        part, said = LevelPart(one.layer, machine), {"source": one.source, "notes": "; ".join(one.notes)}
        measures, bounds = _cost(one, machine).measures, dict.fromkeys(objectives)
        stats = {name: text for name, text in said.items() if text}
        answers.append((part, Answer(one.nest, measures, bounds, "FEASIBLE", stats=stats)))
    layers = tuple(one.layer for one in given)
    question = Question(layers, machine, objectives, problem.name, GIVEN, settings=settings, title=network.name)
    return problem.planned(question, accepted(answers, question.where), start, engine_version=version())
