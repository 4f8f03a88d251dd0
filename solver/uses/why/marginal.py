"""What more or less of a machine is worth: the objective over one field, by solving again.

Memories (and counts). The optimum is a step function of the size s that falls as s grows. A plan for s that takes o
bytes is a plan for every size from o on, so one solve settles the whole stretch [o, s]. Where two neighbouring points
differ the stretch between them is halved, the nearest to the machine's own size first, until they are one byte apart
(that is a knee) or time is up: then `complete` is False.

Prices. The optimum over a price x is the least of straight lines, one for each plan (its time at x = 0, and how often
it pays x), so it is concave. The slope at a point is what the plan there pays (`hwmodels.nest.price.closed_form`).
Between two points with different slopes the lines meet in a point; it is a knee if solving there gives just that value.
Prices are whole numbers: all ticks are divided in `finer` ones first. Where transfers overlap with computing, a plan's
time is no line but convex, and nothing is said of knees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from hwmodels.nest.homes import housed
from hwmodels.nest.price.closed_form import PRICE_FIELDS, sensitivity
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.plan.why import Curve, Point
from solver.problems.layers import is_layers
from solver.uses.why.again import SKIPPED, Again, Found
from solver.uses.why.relax import FieldOf, at_price, field_of, finer, with_field

#: The grid of a memory or a count, as parts of what the machine has; the rest is found by halving.
_SIZES = (1.0, 2.0, 0.5, 1.25, 0.75, 4.0, 0.25, 1.5)
#: The grid of prices, in quarters of what the machine has.
_QUARTERS = (4, 2, 8, 3, 6, 1, 5, 16)
_FINER = 4
#: From this many bytes on sizes are in KiB.
_IN_KIB = 8192
#: Points of a curve at most.
_MOST = 60


@dataclass(frozen=True)
class _Found:
    """What was solved, by the value of the field."""

    points: dict[int, Found]
    now: int
    scale: int
    """The values are so many times as large as the field's."""
    knees: tuple[int, ...] = ()
    complete: bool = False
    slopes: Mapping[int, int | None] = field(default_factory=dict)


def curve(again: Again, layer: str, name: str) -> Curve:
    """Return the objective over a field; raises InputError if the machine has none of this name."""
    question = again.question
    over = field_of(question.machine, again.problem.name, name)
    objective = question.objectives[0]
    priced = isinstance(question.target, Layer) and over.path in PRICE_FIELDS and over.path != "transfer.row_ticks"
    made = _priced(again, over, objective) if priced else _stepped(again, over)
    points = [
        Point(x=x, shown=_shown(over, x / made.scale, question.machine), value=one.value, status=one.status,
              exact=one.proven, slope=made.slopes.get(x))
        for x, one in sorted(made.points.items())
    ]  # fmt: skip
    return Curve(
        layer=layer, field=over.path, unit=_unit(over), objective=objective,
        objective_unit=again.problem.measures.get(objective, ""), finer=made.scale if priced else 1, now=made.now,
        points=tuple(points), knees=made.knees, complete=made.complete,
    )  # fmt: skip


# ---- memories and counts -----------------------------------------------------------------------------------------


def _stepped(again: Again, over: FieldOf) -> _Found:
    whole = isinstance(over.value, int)
    scale = 1 if whole else 1000
    sizes = [max(1, round(scale * (over.value * part))) for part in _SIZES]
    found: dict[int, Found] = {}
    for size in dict.fromkeys(sizes):
        _at(again, over, size, scale, found)
    if not (over.more and whole):
        return _Found(found, sizes[0], scale)
    complete = _halve(again, over, sizes[0], found)
    steps = pairwise(sorted(found))
    knees = tuple(high for low, high in steps if high == low + 1 and found[high].value != found[low].value)
    return _Found(found, sizes[0], scale, knees, complete)


def _at(again: Again, field: FieldOf, size: int, scale: int, found: dict[int, Found]) -> Found:
    """Solve with a size; what the plan takes of it is a point as well."""
    machine = with_field(again.question.machine, field.path, size if scale == 1 else size / scale)
    one = Found("INFEASIBLE") if machine is None else again.solve(machine)
    if one.status != "SKIPPED":
        found[size] = one
        taken = _taken(one, field)
        if taken is not None and one.proven and taken < size:
            found.setdefault(taken, one)
    return one


def _taken(found: Found, field: FieldOf) -> int | None:
    """What a layer's plan takes of a memory on chip; None of other fields and plans."""
    memory = "ocm" if field.path == "ocm_bytes" else field.path.removesuffix("_buffer_bytes")
    plan = found.plan
    if plan is None or not is_layers(plan) or field.cause != "memory" or len(plan.layers) > 1:
        return None
    taken = plan.layers[0].occupancy_bytes or {}
    return taken.get(memory) or None


def _halve(again: Again, field: FieldOf, now: int, found: dict[int, Found]) -> bool:
    """Halve stretches whose ends differ, the nearest to `now` first; whether all are one apart in the end."""
    while not again.over and len(found) < _MOST:
        ends = sorted(found)
        # the value falls as the memory grows: where ends are equal nothing changes in between
        open_ = [
            (low, high) for low, high in pairwise(ends) if high - low > 1 and found[low].value != found[high].value
        ]
        if not open_:
            return all(one.proven or one.status == "INFEASIBLE" for one in found.values())
        low, high = min(open_, key=lambda pair: max(pair[0] - now, now - pair[1], 0) / now)
        if _at(again, field, (low + high) // 2, 1, found) is SKIPPED:
            return False
    return False


# ---- prices ------------------------------------------------------------------------------------------------------


def _priced(again: Again, over: FieldOf, objective: str) -> _Found:
    factor = _FINER if objective == "time" else 1
    base = finer(again.question.machine, factor)
    now = int(over.value) * factor
    found: dict[int, Found] = {}
    for quarter in _QUARTERS:
        price = now * quarter // 4
        one = again.solve(at_price(base, over.path, price))
        if one.status != "SKIPPED":
            found[price] = one
    if objective != "time" or base.timing == "double_buffered":
        return _Found(found, now, factor)
    knees, complete = _meetings(again, base, over.path, found)
    return _Found(found, now, factor, knees, complete, {x: _slope(base, over.path, found, x) for x in found})


def _slope(base: Machine, path: str, found: Mapping[int, Found], price: int) -> int | None:
    """How often the plan at a price pays it; None where it cannot be told."""
    plan = found[price].plan
    if plan is None or not is_layers(plan) or plan.layers[0].schedule is None or base.off_chip:
        return None
    layer, nest = plan.layers[0].workload, plan.layers[0].schedule
    try:
        return sensitivity(layer, housed(layer, at_price(base, path, price), nest), nest, [path]).counts[0]
    except InputError:
        return None


def _meetings(again: Again, base: Machine, path: str, found: dict[int, Found]) -> tuple[tuple[int, ...], bool]:
    """Where lines of neighbouring points meet, solved there: until they are the optimum, or time is up.

    Returns
    -------
    knees : tuple of int
        Rounded down to whole (finer) ticks.
    complete : bool
        Whether these are all, each proven.
    """
    knees, complete = set[int](), True
    todo = list(pairwise(sorted(found)))
    while todo:
        low, high = todo.pop()
        first, last = found[low].value, found[high].value
        below, above = (_slope(base, path, found, x) for x in (low, high))
        if first is None or last is None or below is None or above is None:
            complete = False
            continue
        meeting = low
        if below > above:  # first + below * (x - low) = last - above * (high - x)
            meeting = (last - above * high - first + below * low) // (below - above)
            meeting = min(max(meeting, low), high)
        if meeting in (low, high):
            knees.update({meeting} if below != above else ())
            continue
        one = again.solve(at_price(base, path, meeting))
        if one.status == "SKIPPED" or len(found) >= _MOST:
            return tuple(sorted(knees)), False
        found[meeting] = one
        todo += [(low, meeting), (meeting, high)]
    return tuple(sorted(knees)), complete and all(one.proven for one in found.values())


# ---- for people --------------------------------------------------------------------------------------------------


def _shown(field: FieldOf, value: float, machine: Machine) -> str:
    """A value with what it means: KiB, GB/s, MHz."""
    if _unit(field) == "KiB":
        return f"{value / 1024:,.4f}".rstrip("0") if value % 1024 else f"{int(value) // 1024:,}"
    if field.unit == "bytes":
        return f"{int(value):,}"
    if field.path == "transfer.byte_ticks":
        return f"{1000 / (value * machine.tick_ps):.4g}" if value else "endless"
    if field.path == "compute.cycle_ticks":
        return f"{1e6 / (value * machine.tick_ps):.4g}" if value else "endless"
    return f"{value:g}"


def _unit(field: FieldOf) -> str:
    own = {"transfer.byte_ticks": "GB/s", "compute.cycle_ticks": "MHz"}.get(field.path, field.unit)
    return "KiB" if field.unit == "bytes" and field.value >= _IN_KIB else own
