"""What is true of an answer: its price, what a replay counts, and everything that does not agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from formulations.problem import Part, Priced, Replayed
from hwmodels.outcome import UNITS
from solver.plan.claims import gap_of
from solver.search.loop import Answer, Judged


@dataclass(frozen=True)
class Verdict:
    """The answer for a part, judged; without a schedule there is neither price nor replay."""

    part: Part[Any]
    said: Answer[Any]
    priced: Priced | None = None
    walked: Replayed | None = None
    disagreements: tuple[str, ...] = ()
    """What the replay finds wrong, and in what it differs from the price."""
    faults: tuple[str, ...] = ()
    """These, and demands of the space, pins and bounds that are not kept."""

    @property
    def values(self) -> dict[str, int]:
        """The objectives' values, none without a schedule."""
        return {} if self.priced is None else {name: self.priced.measures[name] for name in self.said.bounds}

    @property
    def gap(self) -> float | None:
        """Of the first objective; 0 where the bound is above the value, which is a fault."""
        first = next(iter(self.said.bounds), "")
        value, bound = self.values.get(first), self.said.bounds.get(first)
        return gap_of(value, bound) if value is None or bound is None else gap_of(value, min(value, bound))


def judged(answers: Iterable[tuple[Part[Any], Answer[Any]]]) -> list[Verdict]:
    """Price and replay every schedule, equal ones of parts that are alike once; raises InputError for bad ones."""
    done: dict[Hashable, Judged] = {}
    found = []
    for part, said in answers:
        if said.schedule is None:
            found.append(Verdict(part, said))
            continue
        key = part.key, said.schedule
        if key not in done:
            done[key] = said.judged or judgement(part, said.schedule)
        known = done[key]
        faults = (*known.faults, *_above(said, known.priced))
        found.append(Verdict(part, said, known.priced, known.walked, known.disagreements, faults))
    return found


def judgement(part: Part[Any], schedule: Any) -> Judged:
    """Price and replay a schedule; raises InputError if it is malformed."""
    priced, walked = part.price(schedule), part.replay(schedule)
    unequal = (walked.faults or tuple(_differences(priced, walked))) if walked.compared else ()
    return Judged(priced, walked, unequal, part.contains(schedule))


def _differences(priced: Priced, walked: Replayed) -> Iterator[str]:
    """In what price and replay differ, and terms that do not sum to their measure."""
    figures, counted = {**priced.counts, **priced.measures}, {**walked.counts, **walked.measures}
    for name in sorted({*figures, *walked.measures, *(walked.counts if priced.counts else ())}):
        one, two = figures.get(name), counted.get(name)
        if one != two:
            yield f"{in_unit(name)}: priced {one}, replayed {two}"
    for name, terms in {**walked.terms, **priced.terms}.items():
        if sum(terms.values()) != priced.measures.get(name):
            yield f"{name}: {priced.measures.get(name)}, but its terms sum to {sum(terms.values())}"


def in_unit(name: str) -> str:
    """Name a measure with its unit, where it has one everywhere."""
    return f"{name} [{UNITS[name]}]" if name in UNITS else name


def _above(said: Answer[Any], priced: Priced) -> Iterator[str]:
    """Bounds that are no bounds."""
    for name, bound in said.bounds.items():
        value = priced.measures.get(name)
        if bound is not None and value is not None and bound > value:
            yield f"bounds: {name} {bound} is above the value {value}"


def proven_of(objectives: Sequence[str], verdicts: Sequence[Verdict]) -> list[str]:
    """Return the objectives, from the first one on, whose bounds are reached in every part."""
    found = []
    for name in objectives:
        if not all(one.values and one.said.bounds.get(name) == one.values[name] for one in verdicts):
            break
        found.append(name)
    return found


def sum_of(bounds: Iterable[int | None]) -> int | None:
    """Return a sum, None if something is not known."""
    known = list(bounds)
    return None if None in known else sum(one for one in known if one is not None)
