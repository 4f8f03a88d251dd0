"""What a plan says of a layer, and of all layers together: made of verdicts, by `solve` and by `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from formulations.tiling.part import NestPart
from hwmodels.nest.buffers import buffers
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.jsonfile import LARGEST_INTEGER
from instances.machine import Machine
from solver.plan import Measures, Objective, Schedule, Status, worst
from solver.tiling.plan import LayerPlan, LayerReplay, PlanReplay
from solver.verdict import Verdict, sum_of
from solver.verify import LITERAL_NOTE, counts_of, gap_of, limits_of, measures_of, objective_of


def rows(verdicts: Iterable[Verdict]) -> tuple[LayerPlan, ...]:
    """Return what is said of layers; of those that are alike the first one is worked out."""
    firsts: dict[Hashable, LayerPlan] = {}
    made = []
    for one in verdicts:
        assert isinstance(one.part, NestPart)
        first = firsts.get(one.part.key)
        if first is None:
            first = firsts[one.part.key] = row(one)
            made.append(first)
        else:
            named = {"layer": one.part.name, "workload": one.part.layer, "wall_s": 0.0, "same_as": first.layer}
            made.append(first.model_copy(update=named))
    return tuple(made)


def row(verdict: Verdict) -> LayerPlan:
    """Return what is said of a layer."""
    part, said = verdict.part, verdict.said
    assert isinstance(part, NestPart)
    decided = _decided(part, verdict, said.schedule) if said.schedule is not None else dict.fromkeys(
        ("objective", "schedule", "decision", "measures", "counts", "occupancy_bytes", "replay")
    )  # fmt: skip
    size = part.size if part.given or said.status == "NO_SOLUTION_FOUND" else part.space.size
    # Plan files carry no integer beyond 2**53; a space that large is "at least that".
    return LayerPlan.model_validate({
        "layer": part.name, "workload": part.layer, "status": said.status, "bound": said.bound, "gap": verdict.gap,
        "wall_s": said.wall_s, "conflicts": said.conflicts, "stats": said.stats, "same_as": None,
        "size": {name: min(int(count), LARGEST_INTEGER) for name, count in size.items()}, **decided,
    })  # fmt: skip


def _decided(part: NestPart, verdict: Verdict, nest: Nest) -> dict[str, object]:
    """What follows from a nest."""
    walked, outcome, layer, machine = verdict.walked, part.outcome(nest), part.layer, part.machine
    assert walked is not None
    first = next(iter(verdict.said.bounds))
    decision = {name: v if isinstance(v, str) else int(v) for name, v in part.space.decision(nest).items()}
    return {
        "objective": objective_of(first, layer, machine, outcome, dict(part.homes)),
        "schedule": Schedule.of(nest, decision), "decision": decision, "limits": limits_of(layer, machine),
        "measures": measures_of(outcome), "counts": counts_of(outcome), "occupancy_bytes": outcome.occupancy_bytes,
        "replay": LayerReplay(
            ok=not (walked.faults or verdict.disagreements), compared=walked.compared, steps=walked.counts["steps"],
            executed=bool(walked.counts["executed"]), faults=walked.faults,
            measures=Measures(**{name: walked.measures[name] for name in MEASURES}),
            note="" if walked.compared else LITERAL_NOTE,
        ),
        "buffers": buffers(layer, machine, nest),
    }  # fmt: skip


def totals(
    layers: Sequence[LayerPlan], machine: Machine, housed: tuple[Status, int | None] | None = None
) -> dict[str, Any]:
    """Sum over the layers; None where a layer has nothing to add.

    Parameters
    ----------
    housed : (status, bound), optional
        What is known of all homes; it stands in place of the layers' where every one has a plan.
    """
    objectives = [p.objective for p in layers if p.objective is not None]
    measures = [p.measures for p in layers if p.measures is not None]
    status, bound = worst(p.status for p in layers), sum_of(p.bound for p in layers)
    objective = summed = None
    if len(objectives) == len(measures) == len(layers):
        terms = Counter[str]()
        for one in objectives:
            terms.update(one.terms)
        objective = Objective(value=sum(o.value for o in objectives), unit=objectives[0].unit, terms=dict(terms))
        summed = Measures(**{name: sum(getattr(one, name) for one in measures) for name in MEASURES})
    if housed is not None:
        status, bound = (status, None) if objective is None else housed
    replays = [p.replay for p in layers if p.replay is not None]
    replay = PlanReplay(
        ok=all(r.ok for r in replays) if replays else None, layers=len(replays),
        executed=sum(r.executed for r in replays), note=LITERAL_NOTE if machine.reading == "literal" else "",
    )  # fmt: skip
    return {
        "status": status, "objective": objective, "bound": bound, "measures": summed, "replay": replay,
        "gap": gap_of(objective.value if objective else None, bound),
    }  # fmt: skip
