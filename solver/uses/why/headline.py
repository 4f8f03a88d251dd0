"""The one cause: which of all that was relaxed says best why the plan takes what it takes.

Prices that are paid (bytes, calls, cycles ..) say what the objective consists of; relaxed to nothing, the one that
saves most is the *price cause*. Pins, memories, the array's shape and the engine can be changed. The *changeable
cause* is the one that saves most; it is named if it saves at least a quarter of what the price cause saves (of bytes:
a quarter of the compulsory bytes). Else the price cause is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hwmodels.outcome import Counts
from solver.plan.plan import Plan, Status
from solver.plan.why import About, Cause, Knee, Limit, Rival, Trial
from solver.show.tables import percent
from solver.uses.why.again import Again, cheapest

#: What can be changed without another machine price; at a tie the first.
CHANGEABLE: tuple[Cause, ...] = ("engine", "pin", "memory", "array", "together")
#: A changeable cause is named if it saves at least 1 / this of what the price cause saves.
QUARTER = 4
#: Below 1 / this of the value a price cause says nothing.
_SOME = 20


@dataclass(frozen=True)
class Facts:
    """What a headline is about."""

    objective: str
    unit: str
    value: int
    trials: Sequence[Trial]
    limits: Sequence[Limit]
    knee: Knee | None = None
    enough: Knee | None = None
    busy: str = ""
    counts: Counts = Counts()  # noqa: RUF009 - it is frozen
    moved: int = 0
    """`counts`, `moved`: of a nest; all bytes."""


def limit_of(facts: Facts, name: str) -> int | None:
    """Return the value of a lower bound."""
    return next((one.value for one in facts.limits if one.name == name), None)


def chosen(facts: Facts) -> tuple[Cause, Trial | None]:
    """Return the cause by the rule above, and the relaxation that shows it."""
    saving = [one for one in facts.trials if one.saves and one.binds is not False]
    prices = [one for one in saving if one.cause not in CHANGEABLE]
    changes = [one for one in saving if one.cause in CHANGEABLE]
    price = max(prices, key=_saves, default=None)
    change = max(changes, key=lambda one: (_saves(one), -CHANGEABLE.index(one.cause)), default=None)
    against = _saves(price) if price is not None else limit_of(facts, "compulsory")
    against = facts.value if against is None else against
    if change is not None and QUARTER * _saves(change) >= against:
        alike = (one for one in changes if one.cause == change.cause and _saves(one) == _saves(change))
        return change.cause, next(alike)  # the first that saves as much: one memory, not all of them
    left = any(one.status == "SKIPPED" for one in facts.trials)
    if facts.objective == "bytes" and facts.value == limit_of(facts, "compulsory"):
        return "compulsory", change
    if facts.objective == "bytes":
        return ("unsolved" if left else "traffic"), change
    if price is None or _SOME * _saves(price) < facts.value:
        return ("unsolved" if left else "balanced"), price
    return price.cause, price


def _saves(one: Trial | None) -> int:
    return 0 if one is None or one.saves is None else one.saves


def sentence(facts: Facts, cause: Cause, shown: Trial | None) -> str:
    """Return the cause in one sentence with its numbers; "so far" where not all was solved again."""
    left = sum(one.status == "SKIPPED" for one in facts.trials)
    said = _sentence(facts, cause, shown)
    return f"so far, with {left} of {len(facts.trials)} things not solved again: {said}" if left else said


def _sentence(facts: Facts, cause: Cause, shown: Trial | None) -> str:
    share = f"{percent(_saves(shown) / facts.value)} %" if facts.value else "nothing"
    plain: dict[Cause, str] = {
        "bandwidth": f"bound by off-chip bandwidth: without the price of {facts.moved:,} bytes {share} less",
        "startup": f"start-up of {facts.counts.calls:,} calls: without it {share} less",
        "runs": f"scattered transfers: {facts.counts.segments:,} runs of addresses take {share}",
        "bursts": f"latency of {facts.counts.bursts:,} bursts: without it {share} less",
        "compute": f"bound by computing: without it {share} less{f' ({facts.busy})' if facts.busy else ''}",
        "layer": f"what the layer takes beside transfers and computing: {share}",
        "arithmetic": f"energy of the MACs: {share}",
        "array": f"array shape: {facts.busy}; with all lanes full {share} less{_shape(facts)}",
        "balanced": "balanced: transfers and computing hide each other, no single price is worth "
        f"{100 // _SOME} % of the time",
        "engine": f"not the best plan: {shown.change if shown else 'an exact engine'} takes {share} less",
        "together": f"memories and pins together: without both {share} less, without one alone nothing",
        "unsolved": "nothing that was relaxed is worth naming yet; more time is needed",
        "compulsory": "compulsory traffic: each needed element moves once, nothing on this machine's memory can help",
    }
    if cause == "pin" and shown is not None:
        return f"pin {shown.name}: without it {_least(shown)}{share} less ({_saves(shown):,} {facts.unit})"
    if cause == "memory" and shown is not None:
        return _memory(facts, shown, share)
    if cause == "traffic":
        return _traffic(facts, shown, share)
    return plain.get(cause, cause)


def _shape(facts: Facts) -> str:
    """What another shape of the array would save, if one does."""
    shapes = [one for one in facts.trials if one.cause == "array" and one.change.startswith("as many") and one.saves]
    return f"; {shapes[0].change}: {percent(_saves(shapes[0]) / facts.value)} % less" if shapes else ""


def _least(shown: Trial) -> str:
    return "" if shown.exact else "at least "


def _memory(facts: Facts, shown: Trial, share: str) -> str:
    knee, enough = facts.knee, facts.enough
    said = f"{shown.name} too small: without limit {_least(shown)}{share} less"
    if knee is None or enough is None or knee.field != shown.name or not facts.value:
        return said
    said = f"{said}, for which {enough.at:,} bytes are {'needed' if enough.exact else 'enough'}"
    if knee.at == enough.at:
        return said
    much = percent(knee.saves / facts.value)
    return (
        f"{said}; {'the next size that helps: ' if knee.exact else ''}{knee.at:,} ({knee.more:,} more), {much} % less"
    )


def _traffic(facts: Facts, shown: Trial | None, share: str) -> str:
    least = limit_of(facts, "compulsory")
    if facts.objective == "energy":
        return f"energy of {facts.moved:,} bytes that cross the border: without it {share} less"
    why = f"; {shown.change} would save {share}" if shown is not None and shown.saves else ""
    if least is None:
        return f"traffic of {facts.value:,} bytes{why}"
    over = percent((facts.value - least) / facts.value)
    return f"mostly compulsory traffic: {least:,} of {facts.value:,} bytes, {over} % more than each element once{why}"


# ---- all that is known -----------------------------------------------------------------------------------------------


def without(plan: Plan, layer: str, status: Status, conflicts: Sequence[str]) -> About:
    """Return why there is no plan, of a layer or of the whole."""
    cause: Cause = "infeasible" if conflicts or status == "INFEASIBLE" else "unsolved"
    said = f"no plan exists: {'; '.join(conflicts) or 'no reason is stated'}"
    return About(
        layer=layer, cause=cause, headline=said if cause == "infeasible" else "no plan was found in time",
        objective=plan.objectives[0], unit=plan.unit, value=None, status=status, conflicts=tuple(conflicts),
    )  # fmt: skip


def completed(
    base: About, again: Again, facts: Facts, cause: Cause, headline: str, rivals: Sequence[Rival]
) -> About:  # fmt: skip
    """Return what is known of a plan with what solving again has shown."""
    skipped = [one.change for one in facts.trials if one.status == "SKIPPED"]
    skipped += [one.decision for one in rivals if one.status == "SKIPPED"]
    return base.model_copy(update={
        "cause": cause, "headline": headline, "trials": tuple(facts.trials), "knee": facts.knee,
        "enough": facts.enough, "rivals": cheapest(rivals), "limits": tuple(facts.limits), "left_out": tuple(skipped),
        "solves": again.solves, "wall_s": time.monotonic() - again.begin,
    })  # fmt: skip
