"""The paper's order step by step, and beside each step the optimum of what had been allowed by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from formulations.clock import Clock
from formulations.problem import Goal, Unable
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation, default_order
from formulations.selection.steps import Step
from hwmodels.selection.schedule import Selection
from solver.search import Answer, settled


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
        yield StepRow(step, settled(SelectionFormulation(), asked, (measure,), "search", Clock.of(time_limit_s)))


def _fixed(part: SelectionPart, first: Step, what: str, tried: Sequence[str]) -> list[str]:
    """The pin that keeps frequency, or input size, as the baseline has it, until its turn has come."""
    if what in tried:
        return []
    name = "frequency" if what == "frequency" else "size"
    return [f"{name}={getattr(first.frame, name).name}"]
