"""Readings of a network on a machine with memory banks: its first layer as a product over patches, or as it is.

Both are possible where the machine lays its inputs out as patches (`Banks.patch_channels`). The machine says which it
is (`Banks.first_layer`), or a pin; with ``either`` engines that optimise choose: the reading that promises more is
solved first, the other one is asked only for what beats that plan, and not at all if its floor is above it. The
published policies read patches, as their compiler does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from formulations.banks.bounds import Point, lowest
from formulations.banks.front import Found
from formulations.banks.states import BankPlan
from formulations.clock import Clock as Limit
from hwmodels.banks.clock import Clock
from instances.errors import InputError
from instances.feature_maps import Stages, stages
from instances.machine import Banks, Machine
from instances.network import Network
from instances.workload import refuse_long
from solver.banks.base import Asked, Decided
from solver.banks.engines import BankEngine
from solver.plan import Stat, Status

__all__ = ["FIRST_LAYERS", "FirstLayer", "FirstPin", "answered", "compulsory", "floor_of", "front_of", "readings"]

FirstLayer = Literal["patches", "plain"]
FirstPin = Literal["patches", "plain", "either"]
FIRST_LAYERS: tuple[FirstPin, ...] = ("patches", "plain", "either")


def readings(network: Network, machine: Machine, pin: FirstPin | None = None) -> dict[FirstLayer, Stages]:
    """Return the stages of a network by reading: what the machine and a pin allow, patches first.

    Raises
    ------
    InputError
        If the machine has no banks, the network has no bank program, or patches are asked for that it cannot have.
    """
    if machine.banks is None:
        raise InputError(f"machine {machine.name} has no banks: problem banks needs one that has, such as midap")
    for layer in network.layers:
        refuse_long(layer, "banks")
    found: dict[FirstLayer, Stages] = {}
    laid = stages(network, machine.banks)
    if any(stage.kind == "patches" for stage in laid.stages):
        found["patches"] = laid
        found["plain"] = stages(network, machine.banks, patches=False)
    else:
        found["plain"] = laid
    wanted = pin or machine.banks.first_layer
    if wanted == "either" or (pin is None and wanted not in found):
        return found
    if wanted not in found:
        raise InputError(
            f"network {network.name}: no first layer on machine {machine.name} is a product over patches "
            f"(a convolution of at most {machine.banks.patch_channels} channels that alone reads the input)"
        )
    return {wanted: found[wanted]}


def compulsory(found: Stages, banks: Banks) -> int:
    """Bytes of every weight, bias, input and result once; of inputs without what may stay unread."""
    made = {stage.target for stage in found.stages}
    weights = sum(stage.weight_bytes + stage.bias_bytes for stage in found.stages)
    inputs = sum(_read(found, banks, name) * m.column_bytes for name, m in found.maps.items() if name not in made)
    results = sum(s.written * found.maps[s.target].columns for s in found.stages if not found.users[s.target])
    return weights + inputs + results


def _read(found: Stages, banks: Banks, name: str) -> int:
    """Columns of a map that have to be loaded."""
    columns, users = found.maps[name].columns, [stage for stage in found.stages if stage.name in found.users[name]]
    if banks.unread == "loaded" or any(stage.kind == "patches" for stage in users):
        return columns
    return min(columns, max((stage.ends(found.computed(stage)[0]) for stage in users), default=0))


def floor_of(allowed: Mapping[FirstLayer, Stages], banks: Banks, clock: Clock) -> Point:
    """What no plan of any reading can do without: bytes that must move once, ticks of computing."""
    points = [_floor(found, banks, clock) for found in allowed.values()]
    return Point(min(point.bytes for point in points), min(point.ticks for point in points))


def _floor(found: Stages, banks: Banks, clock: Clock) -> Point:
    work = sum(stage.cycles for stage in found.stages) * clock.cycle + clock.fixed * len(found.stages)
    return Point(compulsory(found, banks), work)


# ---- one plan --------------------------------------------------------------------------------------------------------


@dataclass
class _Choice:
    """The answers of the readings that are solved so far, and the best plan among them."""

    asked: Asked
    known: Point | None = None
    best: FirstLayer | None = None

    def rank(self, point: Point) -> tuple[int, int]:
        """Smaller is better."""
        return (point.ticks, point.bytes) if self.asked.objective == "time" else (point.bytes, point.ticks)

    def learn(self, name: FirstLayer, found: Stages, plan: BankPlan) -> None:
        """Compare a plan."""
        point = Point(plan.volume.total, replace(self.asked, found=found).times.of(plan))
        if self.known is None or self.rank(point) < self.rank(self.known):
            self.known, self.best = point, name


def answered(engine: BankEngine, asked: Asked, allowed: Mapping[FirstLayer, Stages]) -> tuple[Decided, FirstLayer]:
    """Return an engine's answer about all readings that it may choose from, and the reading of its plan.

    Raises
    ------
    InputError
        If every reading is refused.
    """
    names = list(allowed) if engine.chooses else list(allowed)[:1]
    if len(names) == 1:
        return engine.run(replace(asked, found=allowed[names[0]])), names[0]
    choice, first = _Choice(asked), asked.objective == "time"
    floors = {name: _floor(allowed[name], asked.banks, asked.clock) for name in names}
    names.sort(key=lambda name: choice.rank(floors[name]))
    clock, said, refused = Limit.of(asked.time_limit_s), dict[FirstLayer, Decided](), list[InputError]()
    for number, name in enumerate(names):
        if choice.known is not None and floors[name][first] > choice.known[first]:
            said[name] = Decided(None, floors[name][first], "OPTIMAL")  # nothing there is as good
            continue
        rivals = () if choice.known is None else (choice.known,)
        left = clock.share(len(names) - number).left
        try:
            one = engine.run(replace(asked, found=allowed[name], rivals=rivals, time_limit_s=left))
        except InputError as error:  # a column that fits in no bank
            refused.append(error)
            one = Decided(None, None, "INFEASIBLE", stats={"note": str(error)})
        if one.plan is not None:
            choice.learn(name, allowed[name], one.plan)
        said[name] = one
    if len(refused) == len(names):
        raise refused[0]
    return _joined(said, choice, {name: floors[name][first] for name in names}), choice.best or names[0]


def _joined(said: Mapping[FirstLayer, Decided], choice: _Choice, floors: Mapping[FirstLayer, int]) -> Decided:
    """One answer of several: proven if all are, with the least of their bounds."""
    open_ = [name for name, one in said.items() if one.status not in ("OPTIMAL", "INFEASIBLE")]
    bounds = [floors[name] if one.bound is None else one.bound for name, one in said.items()
              if one.status != "INFEASIBLE"]  # fmt: skip
    best = said[choice.best] if choice.best else None
    status: Status = "FEASIBLE" if best and open_ else "OPTIMAL" if best else "NO_SOLUTION_FOUND"
    if not bounds:
        status = "INFEASIBLE"
    stats: dict[str, Stat] = {}
    for one in said.values():
        for key, value in one.stats.items():
            known = stats.get(key, 0)
            whole = isinstance(value, int) and isinstance(known, int)
            stats[key] = known + value if whole else value  # type: ignore[operator]
    if status != "INFEASIBLE":
        stats.pop("note", None)
    bound = min(bounds) if bounds and any(one.bound is not None for one in said.values()) else None
    return Decided(
        best.plan if best else None, bound, status, next((one.versions for one in said.values() if one.versions), ""),
        stats, all(one.tied for one in said.values() if one.plan is not None),
    )  # fmt: skip


# ---- the front -------------------------------------------------------------------------------------------------------


def front_of(asked: Asked, allowed: Mapping[FirstLayer, Stages]) -> tuple[Found, tuple[FirstLayer, ...]]:
    """Return the front of all readings together, and the reading of each of its plans.

    Raises
    ------
    InputError
        If every reading is refused, or has no program in these banks.
    """
    clock, known = Limit.of(asked.time_limit_s), dict[Point, tuple[BankPlan, FirstLayer]]()
    said, refused = list[Found](), list[InputError]()
    for number, (name, found) in enumerate(allowed.items()):
        left = clock.share(len(allowed) - number).left
        try:
            one = replace(asked, found=found, rivals=tuple(known)).front("front", left)
        except InputError as error:
            refused.append(error)
            continue
        said.append(one)
        known |= {Point(plan.volume.total, ticks): (plan, name) for plan, ticks in one.plans}
    if not said:
        raise refused[0]
    points = lowest(known)
    front = Found(
        tuple((known[point][0], point.ticks) for point in points), min(one.bytes_bound for one in said),
        min(one.ticks_bound for one in said), all(one.proven for one in said),
        sum(one.labels for one in said), sum(one.states for one in said),
    )  # fmt: skip
    return front, tuple(known[point][1] for point in points)
