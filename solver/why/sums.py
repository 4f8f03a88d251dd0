"""All layers of a plan together: sums of their parts, and which cause costs how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from solver.plan import Plan
from solver.tables import few, percent
from solver.why.model import About, Limit, Part, Split


def whole(plan: Plan, layers: Sequence[About]) -> About:
    """Return what is known of all layers: parts add up, and the cause is the one with most of the objective."""
    objective = plan.objectives[0]
    weights = Counter[str]()
    for one in layers:
        weights[one.cause] += one.value or 0
    cause = max(layers, key=lambda one: (weights[one.cause], one.value or 0)).cause
    splits = [
        _summed(name, unit, [split for one in layers for split in one.splits if split.measure == name])
        for name, unit in dict.fromkeys((split.measure, split.unit) for one in layers for split in one.splits)
    ]
    total = sum(weights.values())
    bounds = {name: _limit(name, layers) for name in dict.fromkeys(x.name for one in layers for x in one.limits)}
    return About(
        layer="", cause=cause, headline=_headline(plan, layers, weights, total), objective=objective, unit=plan.unit,
        value=plan.objective.value if plan.objective else None, status=plan.status, splits=tuple(splits), rooms=(),
        busy="", trials=(), knee=None, rivals=(), limits=tuple(one for one in bounds.values() if one is not None),
        left_out=(), conflicts=plan.conflicts, solves=sum(one.solves for one in layers),
        wall_s=sum(one.wall_s for one in layers),
    )  # fmt: skip


def _headline(plan: Plan, layers: Sequence[About], weights: Counter[str], total: int) -> str:
    """Which causes, in how many layers, with what share of the objective."""
    said = []
    for cause, value in weights.most_common():
        names = [one.layer for one in layers if one.cause == cause]
        share = percent(value / total) if total else "0"
        number = f"{len(names)} layer{'s' * (len(names) > 1)}"
        said.append(f"{cause} in {number} ({few(names)}; {share} % of {plan.objectives[0]})")
    return "; ".join(said)


def _summed(measure: str, unit: str, splits: Sequence[Split]) -> Split:
    parts = Counter[tuple[str, str]]()
    for split in splits:
        for part in split.parts:
            parts[part.what, part.cause] += part.value
    made = tuple(Part(what=what, cause=cause, value=value) for (what, cause), value in parts.items() if value)
    return Split(measure=measure, unit=unit, value=sum(split.value for split in splits), parts=made)


def _limit(name: str, layers: Sequence[About]) -> Limit | None:
    """The sum of a bound over all layers, None if one has none."""
    found = [limit for one in layers for limit in one.limits if limit.name == name]
    if len(found) < len(layers):
        return None
    return Limit(name=name, value=sum(limit.value for limit in found), means=f"{found[0].means}, summed")
