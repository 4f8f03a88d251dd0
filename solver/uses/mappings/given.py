"""A mapping as a plan: engine `given`, priced by closed forms, replayed, and FEASIBLE if it fits; it proves nothing.

Any nest of docs/nest.md may be given, whether or not a problem would look at it. One that takes more memory than there
is has no plan; `overflows` says how much too much, and `remedies` which single change would do:

    largest step s of one loop (all others as they are) such that every memory fits       (monotone: found by bisection)
    the largest step of a new loop outside all others, over any dimension that no cores share
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from formulations.homes.space import places_of
from formulations.pins import Pins
from formulations.tiling.part import NestPart
from hwmodels.nest.homes import assignments
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from solver.ask.names import version
from solver.ask.options import pick_nests
from solver.ask.question import Question
from solver.plan.plan import Plan, Stat
from solver.problems.homes import HomesPlan
from solver.problems.layers import GIVEN
from solver.problems.tiling import LayersProblem
from solver.search.deciding import accepted
from solver.search.loop import Answer
from solver.search.verdict import Verdict


@dataclass(frozen=True)
class Mapped:
    """A layer with the nest that was given for it."""

    layer: Layer
    nest: Nest
    source: str = ""
    """Where it was read, and in which form."""
    notes: tuple[str, ...] = ()
    """What was folded, left out or assumed in reading it."""


@dataclass(frozen=True)
class Remedy:
    """A single change with which a mapping fits."""

    dim: str
    step: int
    """The largest step that fits."""
    loop: int | None
    """The item of the nest that would have this step; None for a new loop outside all others."""

    def __str__(self) -> str:
        return f"{self.dim} {self.step}" if self.loop is not None else f"a loop {self.dim} {self.step} outside all"


def problem_for(machine: Machine) -> str:
    """Return the problem whose plans a machine runs nests by: tiling on one core, slicing on several."""
    return "tiling" if machine.tles * machine.tlts == 1 else "slicing"


def part_of(mapped: Mapped, machine: Machine) -> NestPart:
    """Return a layer that is decided already; on machines with several memories off the chip with the nest's homes."""
    build = pick_nests(problem_for(machine)).build
    return NestPart(mapped.layer, machine, build, Pins(), homes=mapped.nest.homes, given=True)


def housed(mapped: Mapped, machine: Machine, objectives: Sequence[str]) -> Mapped:
    """Return the mapping with homes for its operands, where a machine has several memories off the chip: the best."""
    if mapped.nest.homes or not machine.off_chip:
        return mapped
    options = [replace(mapped, nest=mapped.nest.at(homes)) for homes in assignments(mapped.layer, machine)]

    def cost(one: Mapped) -> tuple[int, ...]:
        measures = part_of(one, machine).outcome(one.nest).measures
        return tuple(measures[name] for name in (*objectives, *MEASURES))

    best = min(options, key=cost)
    said = ", ".join(f"{operand} in {name}" for operand, name in best.nest.homes)
    return replace(best, notes=(*best.notes, f"homes were not said: {said}, which is best for this nest"))


# ---- what fits -------------------------------------------------------------------------------------------------------


def overflows(mapped: Mapped, machine: Machine) -> dict[str, tuple[int, int]]:
    """Return the memories that are too small, each with the bytes that are taken and those that it has."""
    taken = part_of(mapped, machine).outcome(mapped.nest).occupancy_bytes
    return {name: (taken[name], size) for name, size in machine.memories.items() if taken.get(name, 0) > size}


def remedies(mapped: Mapped, machine: Machine) -> Iterator[Remedy]:
    """Yield every single change of a step with which a mapping fits, in the order of its loops."""
    items = mapped.nest.items
    for k, item in enumerate(items):
        if isinstance(item, Loop) and not item.cuts:
            step = _largest(item.step - 1, _fits_with(mapped, machine, k, item.dim))
            if step:
                yield Remedy(item.dim, step, k)
    first = next((k for k, item in enumerate(items) if not isinstance(item, Spatial)), len(items))
    for dim in DIMS:
        if mapped.layer.extent(dim) > 1 and not any(isinstance(item, Spatial) and item.dim == dim for item in items):
            step = _largest(mapped.layer.extent(dim) - 1, _fits_with(mapped, machine, None, dim, first))
            if step:
                yield Remedy(dim, step, None)


def _fits_with(
    mapped: Mapped, machine: Machine, loop: int | None, dim: str, first: int = 0
) -> Callable[[int], bool]:  # fmt: skip
    def fits(step: int) -> bool:
        items = mapped.nest.items
        begin = first if loop is None else loop
        inner = tuple(_at_most(item, dim, step) for item in items[begin:])  # loops inside it have no larger steps
        changed = (*items[:begin], *((Loop(dim, step),) if loop is None else ()), *inner)
        return not overflows(replace(mapped, nest=Nest(changed, mapped.nest.homes)), machine)

    return fits


def _at_most(item: Item, dim: str, step: int) -> Item:
    if isinstance(item, Hold) or item.dim != dim or item.step <= step or (isinstance(item, Loop) and item.cuts):
        return item
    return replace(item, step=step)


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, 0 if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            ok = fits(middle)
        except InputError:  # cuts inside this loop no longer make what they state
            ok = False
        low, high = (middle, high) if ok else (low, middle - 1)
    return low


# ---- plans -----------------------------------------------------------------------------------------------------------


def plan_of(
    given: Sequence[Mapped], machine: Machine, objectives: tuple[str, ...], network: str, settings: tuple[str, ...] = ()
) -> Plan:
    """Return the plan of mappings that fit.

    Raises
    ------
    InputError
        If a mapping is not one of the machine: it spreads over more units than there are, or holds IN in lines where
        there are none; also for several layers on a machine with several memories off the chip.
    PlanMismatch
        If price and replay disagree: a defect of certile.
    """
    start, problem = time.monotonic(), LayersProblem(pick_nests(problem_for(machine)))
    parts = [part_of(one, machine) for one in given]
    answers = [_answer(one, part, objectives) for one, part in zip(given, parts, strict=True)]
    layers = tuple(part.layer for part in parts)
    question = Question(layers, machine, objectives, problem.name, GIVEN, settings=settings, title=network)
    verdicts = accepted(zip(parts, answers, strict=True), question.where)
    homes = _homes(layers[0], verdicts, machine) if machine.off_chip else None
    return problem.housed(
        question, verdicts, start, engine_version=version(), shared=homes, status="FEASIBLE", bound=None
    )


def _answer(one: Mapped, part: NestPart, objectives: tuple[str, ...]) -> Answer[Nest]:
    said = {"source": one.source, "notes": "; ".join(one.notes)}
    stats: dict[str, Stat] = {name: text for name, text in said.items() if text}
    return Answer(one.nest, part.outcome(one.nest).measures, dict.fromkeys(objectives), "FEASIBLE", stats=stats)


def _homes(layer: Layer, verdicts: Sequence[Verdict], machine: Machine) -> HomesPlan:
    """What a plan says of the memories off the chip."""
    if len(verdicts) > 1:
        said = f"machine {machine.name} has several memories off the chip"
        raise InputError(f"mappings of {len(verdicts)} layers: {said}, where layers are priced one by one: --layer")
    places = places_of(layer, (layer,), machine, Pins())
    nest = verdicts[0].said.schedule
    stated = dict(nest.homes) if isinstance(nest, Nest) else {}
    operands = places.tables[0].operands
    chosen = {number: stated[operand] for operand, number in operands.items()}
    return HomesPlan.of(places, tuple(chosen[number] for number in range(len(places.items))))
