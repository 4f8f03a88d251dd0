"""What is true of an answer: its price, what a replay counts, what does not agree, and what a plan says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from formulations.problem import Part, Priced, Replayed
from hwmodels.outcome import UNITS
from instances.jsonfile import LARGEST_INTEGER
from solver.plan.claims import gap_of
from solver.plan.plan import Objective, PartPlan, PartReplay, worst
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


def verdicts_of(answers: Iterable[tuple[Part[Any], Answer[Any]]]) -> list[Verdict]:
    """Price and replay every schedule, equal ones of parts that are alike once; raises InputError for bad ones."""
    done: dict[Hashable, Judged] = {}
    found = []
    for part, said in answers:
        if said.schedule is None:
            found.append(Verdict(part, said))
            continue
        key = part.key, said.schedule
        if key not in done:
            done[key] = said.judged or price_and_replay(part, said.schedule)
        known = done[key]
        faults = (*known.faults, *_above(said, known.priced))
        found.append(Verdict(part, said, known.priced, known.walked, known.disagreements, faults))
    return found


def price_and_replay(part: Part[Any], schedule: Any) -> Judged:
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


# ---- what a plan says ------------------------------------------------------------------------------------------------


def rows_of(verdicts: Sequence[Verdict]) -> tuple[PartPlan, ...]:
    """Return what is said of parts; those that equal one before them with its schedule say so."""
    made: list[PartPlan] = []
    firsts: dict[Any, PartPlan] = {}
    for one in verdicts:
        first = firsts.get(one.part.key)
        if first is None or first.schedule != one.said.schedule:
            made.append(row_of(one))
            firsts.setdefault(one.part.key, made[-1])
        else:
            made.append(first.model_copy(update={"name": one.part.name, "wall_s": 0.0, "same_as": first.name}))
    return tuple(made)


def row_of(verdict: Verdict) -> PartPlan:
    """Return what follows from the schedule of a part, or that there is none."""
    part, said, priced, walked = verdict.part, verdict.said, verdict.priced, verdict.walked
    faults = verdict.disagreements
    return PartPlan(
        name=part.name, status=said.status, measures=dict(priced.measures) if priced else {},
        terms={name: dict(terms) for one in (walked, priced) if one for name, terms in one.terms.items()},
        bounds=dict(said.bounds), gap=verdict.gap, must=dict(part.must), schedule=said.schedule,
        figures=None if walked is None else part.figures_of(said.schedule, walked),
        replay=None if priced is None or walked is None else PartReplay(
            ok=not (faults or walked.faults), faults=faults or walked.faults, measures=dict(walked.measures),
            compared=walked.compared, executed=walked.executed,
            counts={**{name: n for name, n in walked.counts.items() if name not in priced.counts}, **walked.tally},
        ),
        conflicts=said.conflicts, stats=dict(said.stats), wall_s=said.wall_s,
        size={name: min(int(count), LARGEST_INTEGER) for name, count in part.size.items()},
    )  # fmt: skip


def totals_of(
    objectives: Sequence[str], rows: Sequence[PartPlan], unit: str, where: Callable[[PartPlan], str]
) -> dict[str, Any]:
    """Return what a plan says of all parts together: the first objective in its unit, conflicts with where they are."""
    first, solved = objectives[0], all(row.measures for row in rows)
    status = worst(row.status for row in rows)
    bound = None if status == "INFEASIBLE" else sum_of(row.bounds.get(first) for row in rows)
    values = {row.name: row.measures[first] for row in rows if row.measures}
    value = sum(values.values()) if solved else None
    terms = Counter[str]()
    for row in rows:
        terms.update(row.terms.get(first, {}))
    names = rows[0].measures if solved else ()
    return {
        "status": status, "bound": bound, "gap": gap_of(value, bound),
        "objective": None if value is None else Objective(
            value=value, unit=unit, terms=dict(terms) or values
        ),
        "conflicts": tuple(f"{where(row)}{line}" for row in rows for line in row.conflicts),
        "measures": {name: sum(row.measures[name] for row in rows) for name in names} if solved else None,
    }  # fmt: skip
