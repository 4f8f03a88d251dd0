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

from collections.abc import Sequence
from itertools import pairwise

from hwmodels.nest.homes import housed, repriced
from hwmodels.nest.price.closed_form import PRICES, sensitivity
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.plan.why import Curve, Point
from solver.problems.layers import is_layers
from solver.uses.why.again import SKIPPED, Again, Found
from solver.uses.why.relax import FieldOf, field_of, finer, with_field

#: The grid of a memory or a count, as parts of what the machine has; the rest is found by halving.
_SIZES = (1.0, 2.0, 0.5, 1.25, 0.75, 4.0, 0.25, 1.5)
#: The grid of prices, in quarters of what the machine has.
_QUARTERS = (4, 2, 8, 3, 6, 1, 5, 16)
_FINER = 4
#: From this many bytes on sizes are in KiB.
_IN_KIB = 8192
#: Points of a curve at most.
_MOST = 60


def curve(again: Again, layer: str, name: str) -> Curve:
    """Return the objective over a field; raises InputError if the machine has none of this name."""
    question = again.question
    field = field_of(question.machine, again.problem.name, name)
    objective = question.objectives[0]
    unit = again.problem.measures.get(objective, "")
    if isinstance(question.target, Layer) and field.path in PRICES and field.path != "transfer.row_ticks":
        return _priced(again, layer, field, objective, unit)
    return _stepped(again, layer, field, objective, unit)


# ---- memories and counts -----------------------------------------------------------------------------------------


def _stepped(again: Again, layer: str, field: FieldOf, objective: str, unit: str) -> Curve:
    whole = isinstance(field.value, int)
    grid = [field.value * part for part in _SIZES]
    sizes = [max(1, round(x)) for x in grid] if whole else [max(1, round(1000 * x)) for x in grid]
    found: dict[int, Found] = {}
    now, scale = sizes[0], 1 if whole else 1000
    for size in dict.fromkeys(sizes):
        _at(again, field, size, scale, found)
    complete = field.more and whole and _halve(again, field, now, found)
    points = [
        Point(x=x, shown=_shown(field, x / scale, again.question.machine), value=one.value, status=one.status,
              exact=one.proven)
        for x, one in sorted(found.items()) if one.status != "SKIPPED"
    ]  # fmt: skip
    knees = _knees(points) if field.more and whole else ()
    return Curve(
        layer=layer, field=field.path, unit=_unit(field), objective=objective, objective_unit=unit, now=now,
        points=tuple(points), knees=knees, complete=complete,
    )  # fmt: skip


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
        pairs = pairwise(ends)
        open_ = [pair for pair in pairs if pair[1] - pair[0] > 1 and not _alike(*map(found.__getitem__, pair))]
        if not open_:
            return all(one.proven or one.status == "INFEASIBLE" for one in found.values())
        low, high = min(open_, key=lambda pair: max(pair[0] - now, now - pair[1], 0) / now)
        if _at(again, field, (low + high) // 2, 1, found) is SKIPPED:
            return False
    return False


def _alike(one: Found, two: Found) -> bool:
    """Whether nothing changes between two points: the value falls as the memory grows, so equal ends are enough."""
    return one.value == two.value


def _knees(points: Sequence[Point]) -> tuple[int, ...]:
    """The sizes at which the value is another one than a byte below."""
    return tuple(high.x for low, high in pairwise(points) if high.x == low.x + 1 and high.value != low.value)


# ---- prices ------------------------------------------------------------------------------------------------------


def _priced(again: Again, layer: str, field: FieldOf, objective: str, unit: str) -> Curve:
    factor = _FINER if objective == "time" else 1
    base = finer(again.question.machine, factor)
    now = int(field.value) * factor
    found: dict[int, Found] = {}
    for quarter in _QUARTERS:
        price = now * quarter // 4
        one = again.solve(_priced_at(base, field.path, price))
        if one.status != "SKIPPED":
            found[price] = one
    lines = objective == "time" and base.timing != "double_buffered"
    knees, complete = _meetings(again, base, field.path, found) if lines else ((), False)
    slopes = {x: _slope(_priced_at(base, field.path, x), one, field.path) for x, one in found.items()} if lines else {}
    points = [
        Point(x=x, shown=_shown(field, x / factor, again.question.machine), value=one.value, status=one.status,
              exact=one.proven, slope=slopes.get(x))
        for x, one in sorted(found.items())
    ]  # fmt: skip
    return Curve(
        layer=layer, field=field.path, unit=_unit(field), objective=objective, objective_unit=unit, finer=factor,
        now=now, points=tuple(points), knees=knees, complete=complete,
    )  # fmt: skip


def _priced_at(machine: Machine, path: str, price: int) -> Machine:
    section, _, name = path.rpartition(".")
    if section == "transfer":
        return repriced(machine, **{name: price})
    if section == "compute":
        return machine.model_copy(update={"compute": machine.compute.model_copy(update={name: price})})
    return machine.model_copy(update={name: price})


def _slope(machine: Machine, found: Found, path: str) -> int | None:
    """How often the plan pays the price; None where it cannot be told."""
    plan = found.plan
    if plan is None or not is_layers(plan) or plan.layers[0].schedule is None:
        return None
    layer, nest = plan.layers[0].workload, plan.layers[0].schedule
    if machine.off_chip:
        return None
    try:
        return sensitivity(layer, housed(layer, machine, nest), nest, [path]).counts[0]
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
        meeting = _meeting(base, path, found, low, high)
        if meeting is None:
            complete = False
        elif meeting in (low, high):
            knees.update({meeting} if _bends(base, path, found, low, high) else ())
        else:
            one = again.solve(_priced_at(base, path, meeting))
            if one.status == "SKIPPED" or len(found) >= _MOST:
                return tuple(sorted(knees)), False
            found[meeting] = one
            todo += [(low, meeting), (meeting, high)]
    return tuple(sorted(knees)), complete and all(one.proven for one in found.values())


def _bends(base: Machine, path: str, found: dict[int, Found], low: int, high: int) -> bool:
    slopes = [_slope(_priced_at(base, path, x), found[x], path) for x in (low, high)]
    return slopes[0] != slopes[1]


def _meeting(base: Machine, path: str, found: dict[int, Found], low: int, high: int) -> int | None:
    """The price at which the plans of two points take equally long; `low` if it is one plan; None if unknown."""
    first, last = found[low].value, found[high].value
    below, above = (_slope(_priced_at(base, path, x), found[x], path) for x in (low, high))
    if first is None or last is None or below is None or above is None:
        return None
    if below <= above:
        return low
    # first + below * (x - low) = last - above * (high - x)
    number = last - above * high - first + below * low
    return min(max(number // (below - above), low), high)


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
