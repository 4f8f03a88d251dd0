"""Homes off the chip, of whole networks: how they are chosen, what joint plans ask of them, what a plan says of them.

**Chosen** (`choose`): every layer is planned for all homes that its operands may have, then every item has one. The
model is `formulations.homes.problem`; here its tables are filled with the plans of the layers, and an engine chooses.
The bound is the optimum of the same model with the bounds of the layers in place of their values.

**Joint plans, and of fusion** (`narrowed`, `check_homes`): one home for each operand, said by machine and pins. Bytes
are the same wherever they come from: there is nothing to choose; the time of fusion is that of the homes that are said.
What is refused in one line: homes that are open, energy that is not that of the bytes alone, and maps and weights that
do not fit (all maps are counted, also those whose rows stay on chip).

**In a plan** (`HomesPlan`): every map and all weights of the network, with the memory where each lies.
`problems_of_homes` checks all of it but that no other homes are better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from formulations.clock import ENDLESS, Clock
from formulations.homes.problem import Homes, Housing, rows_of
from formulations.homes.space import TASTE, Chosen, Item, Places, Table, check_home_pins, places_of, weight_bytes
from formulations.pins import Pins
from formulations.tiling.part import Assignment
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.errors import InfeasibleError, InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from solver.plan.claims import unequal
from solver.plan.plan import Frozen, Natural, Plan, Status
from solver.problems.layers import LayerRow, layer_rows
from solver.search.loop import Answer, decide_part

_HOMES = Homes()
#: Seconds that a choice takes at least if it has to; after Ctrl-C.
_LEAST_S, _HASTE_S = 0.5, 1.0


@dataclass(frozen=True)
class Choice:
    """The homes that are chosen."""

    chosen: Chosen | None
    layers: Mapping[str, Assignment]
    """The homes of the operands of every planned layer."""
    status: Status
    bound: int | None
    """`status`, `bound`: of the network: over all homes and all plans."""


def homes_of(places: Places, table: Table) -> Iterator[Assignment]:
    """The homes that the operands of a layer may have."""
    return (tuple(one.items()) for one in places.assignments(table.operands))


def assigned(places: Places, chosen: Chosen) -> dict[str, Assignment]:
    """The homes of the operands of every planned layer."""
    return {t.layer: tuple((operand, chosen[x]) for operand, x in t.operands.items()) for t in places.tables}


def fitting(places: Places, machine: Machine) -> Chosen:
    """Return homes that fit the memories, the preferred ones as far as they do.

    Raises InfeasibleError if nothing fits, wherever it lies: in one line, which memory and how far.
    """
    free = replace(places, tables=())
    if not places.rooms and not places.ties:
        return tuple(item.homes[0] for item in places.items)
    said = decide_part(_HOMES, Housing(free), (TASTE,), "cp-sat")
    if said.stats.get("interrupted"):  # before anything is planned
        raise KeyboardInterrupt
    if said.schedule is None:
        raise InfeasibleError(f"machine {machine.name}: {next(places.faults(_least_overflow(free)))}")
    return said.schedule


def _least_overflow(places: Places) -> Chosen:
    """Homes that exceed the memories by the fewest bytes."""
    from formulations.rows_cp_sat import cp_sat  # late: ortools
    from solver.search.driver_cp_sat import solve

    built = cp_sat(*rows_of(places, None))
    chosen = built.decode(solve(built.model, 10.0).solver)
    assert chosen is not None
    return chosen


def choose(
    places: Places,
    plans: Mapping[tuple[str, Assignment], Answer[Nest]],
    objectives: tuple[str, ...],
    engine: str,
    clock: Clock = ENDLESS,
    known: Chosen | None = None,
) -> Choice:
    """Choose homes for the least sum of the layers' plans, lexicographically; ties by the other measures.

    `plans` are by layer and homes; for engines that are no solvers CP-SAT stands in; `known` are homes that fit.
    """
    engine = engine if engine in _HOMES.engines else "cp-sat"
    measures, first = tuple(dict.fromkeys((*objectives, *MEASURES))), objectives[0]
    filled = replace(places, measures=measures, tables=tuple(_tables(places, plans, measures, bounds=False)))
    start = {} if known is None else assigned(places, known)
    if any(plans[one].schedule is None for one in start.items()):
        known = None
    clock = clock if clock.remaining > _LEAST_S else Clock.of(_LEAST_S)
    said = decide_part(_HOMES, Housing(filled, known), (*measures, TASTE), engine, clock)
    if said.schedule is None:
        return Choice(None, {}, "NO_SOLUTION_FOUND", None)
    value, bound, stopped = said.values[first], None, bool(said.stats.get("interrupted"))
    if all(plan.bound is not None for plan in plans.values() if plan.status == "FEASIBLE"):
        least = replace(places, measures=(first,), tables=tuple(_tables(places, plans, (first,), bounds=True)))
        if least.costs(first) == filled.costs(first):
            bound = said.bounds[first]
        else:  # after Ctrl-C in haste
            clock = Clock.of(_HASTE_S) if stopped else clock
            bound = decide_part(_HOMES, Housing(least), (first,), engine, clock).bounds[first]
        bound = value if bound is None else min(bound, value)
    sure = not stopped and all(said.bounds[name] == said.values[name] for name in objectives)
    every = all(plan.status in ("OPTIMAL", "INFEASIBLE") for plan in plans.values())
    optimal = sure and (every or (len(objectives) == 1 and bound == value))
    return Choice(said.schedule, assigned(places, said.schedule), "OPTIMAL" if optimal else "FEASIBLE", bound)


def _tables(
    places: Places, plans: Mapping[tuple[str, Assignment], Answer[Nest]], measures: tuple[str, ...], *, bounds: bool
) -> Iterator[Table]:
    """The tables of the layers that have plans: their measures, or (`bounds`) what none is below in the first."""
    for table in places.tables:
        values: dict[tuple[str, ...], tuple[int, ...]] = {}
        for homes in homes_of(places, table):
            plan, names = plans[table.layer, homes], tuple(name for _, name in homes)
            if bounds and plan.status != "INFEASIBLE":
                values[names] = (plan.bound or 0,)
            elif not bounds and plan.schedule is not None:
                values[names] = tuple(plan.values[m] for m in measures)
        if values:
            yield replace(table, values=values)


def narrowed(machine: Machine, pins: Pins) -> Machine:
    """The machine with the homes that pins leave; raises InputError for those that it does not have."""
    check_home_pins(machine, pins)
    homes = {op: tuple(n for n in names if pins.allows(f"home_{op}", n)) for op, names in machine.homes.items()}
    for operand, names in homes.items():
        if not names:
            said = ", ".join(str(pin) for pin in pins.of(f"home_{operand}"))
            raise InputError(f"pin {said}: {operand} may lie in {' or '.join(machine.homes[operand])} only")
    return machine.model_copy(update={"homes": homes}) if homes else machine


def check_homes(network: Network, machine: Machine, objectives: Sequence[str]) -> None:
    """Raise InputError unless the homes are settled, fit, and do not matter to the objectives."""
    if not machine.off_chip:
        return
    for operand, names in machine.homes.items():
        if len(names) > 1:
            raise InputError(
                f"machine {machine.name}: this problem needs one home for each operand, {operand} may lie in "
                f"{' or '.join(names)}: pin home_{operand}={names[0]}, for example"
            )
    if "energy" in objectives and len({machine.byte_fj_of(operand) for operand in machine.homes}) > 1:
        raise InputError(f"machine {machine.name}: bytes are decided, which take unlike energy here")
    products = [layer.name for layer in network.layers if layer.weights == "activation"]
    if products and machine.homes["W"] != machine.homes["IN"]:
        raise InputError(f"layer {products[0]}: both inputs are maps, which are planned with W and IN in one home")
    fitting(places_of(network, network.layers, machine, Pins()), machine)


class HomeItem(Frozen):
    """A map, or the weights of a layer."""

    name: str
    bytes: Natural
    first: Natural
    last: Natural
    """`first`, `last`: the operators between which it is there."""
    weights: bool
    homes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Where it may lie, by the machine and the pins."""
    home: str | None
    """Where it lies; None where there is no plan."""


class LayerHomes(Frozen):
    """The items (by number) that the operands of a layer are."""

    layer: str
    operands: dict[str, Natural]


class HomesPlan(Frozen):
    """Homes of a whole network."""

    items: tuple[HomeItem, ...]
    ties: tuple[tuple[Natural, Natural], ...]
    """Items that are read together, as inputs of one sum."""
    layers: tuple[LayerHomes, ...]
    peaks: dict[str, Natural]
    """The most bytes at a time in every memory off the chip."""

    @classmethod
    def of(cls, places: Places, chosen: Chosen | None) -> HomesPlan:
        """What a plan says of these homes."""
        homes: Sequence[str | None] = chosen or [None] * len(places.items)
        return cls(
            items=tuple(HomeItem(**vars(item), home=home) for item, home in zip(places.items, homes, strict=True)),
            ties=places.ties,
            layers=tuple(LayerHomes(layer=t.layer, operands=dict(t.operands)) for t in places.tables),
            peaks={name: size for name, (size, _) in places.peaks(chosen).items()} if chosen else {},
        )  # fmt: skip

    def places(self, rooms: dict[str, int]) -> Places:
        """The instance that was solved, without values."""
        items = [Item(**one.model_dump(exclude={"home"})) for one in self.items]
        tables = [Table(one.layer, one.operands, {}) for one in self.layers]
        return Places(tuple(items), self.ties, rooms, tuple(tables))

    @property
    def chosen(self) -> Chosen | None:
        """The homes, None where there is no plan."""
        found = tuple(item.home for item in self.items if item.home is not None)
        return found if len(found) == len(self.items) else None


def problems_of_homes(plan: Plan, pins: Pins) -> Iterator[str]:
    """Yield every mismatch, one line each; nothing for machines with one memory off the chip."""
    machine, homes = plan.machine_data, plan.shared
    if homes is None or not machine.off_chip:
        if (homes is None) == bool(machine.off_chip):
            said = "has" if machine.off_chip else "has not"
            yield f"homes: machine {machine.name} {said} several memories off the chip, the plan says otherwise"
        return
    count = len(homes.items)
    numbers = [x for one in homes.layers for x in one.operands.values()] + [x for pair in homes.ties for x in pair]
    if any(x >= count for x in numbers):
        yield f"homes: items are numbered 0 to {count - 1}, got {max(numbers)}"
        return
    yield from _items(homes, machine)
    yield from _layers(plan, homes, machine, pins)
    open_ = plan.objective is not None and any(one.status != "OPTIMAL" for one in plan.parts)
    if plan.status == "OPTIMAL" and len(plan.objectives) > 1 and open_:
        yield "status OPTIMAL in several objectives, but some layer is not"
    chosen = homes.chosen
    if chosen is None:
        if any(row.schedule is not None for row in plan.parts) or any(item.home for item in homes.items):
            yield "homes: some items have no home, although there is a schedule"
        return
    places = homes.places({memory.name: memory.bytes for memory in machine.off_chip if memory.bytes is not None})
    for fault in places.faults(chosen):
        yield f"homes: {fault}"
    yield from unequal("homes.peaks", homes.peaks, {name: size for name, (size, _) in places.peaks(chosen).items()})


def _items(homes: HomesPlan, machine: Machine) -> Iterator[str]:
    known = {memory.name for memory in machine.off_chip}
    for item in homes.items:
        if item.first > item.last:
            yield f"homes: {item.name} is there from {item.first} to {item.last}"
        if unknown := sorted({*item.homes, *([item.home] if item.home else [])} - known):
            yield f"homes: {item.name}: machine {machine.name} has no memory {', '.join(unknown)} off the chip"


def _layers(plan: Plan, homes: HomesPlan, machine: Machine, pins: Pins) -> Iterator[str]:
    yield from unequal("homes.layers", [one.layer for one in homes.layers], [row.name for row in plan.parts])
    for one, layer in zip(homes.layers, layer_rows(plan), strict=False):
        where, workload = f"homes of layer {layer.layer}", layer.workload
        if tuple(one.operands) != workload.operands:
            yield f"{where}: operands {', '.join(one.operands)}, it has {', '.join(workload.operands)}"
            continue
        for operand, number in one.operands.items():
            item = homes.items[number]
            role = "IN" if operand == "W" and workload.weights == "activation" else operand
            for name in item.homes:
                if name not in machine.homes[role] or not pins.allows(f"home_{operand}", name):
                    yield f"{where}: {operand} may not lie in {name} by the machine and the pins"
            constant = operand == "W" and workload.weights == "constant"
            if item.weights != constant:
                yield f"{where}: {item.name} {'is no' if constant else 'is'} weights, but {operand}"
            least = workload.b * workload.g * workload.m * workload.r * workload.c * machine.out_bytes
            if constant:
                yield from unequal(f"{where}: bytes of {item.name}", item.bytes, weight_bytes(workload, machine))
            elif operand == "OUT" and item.bytes < least:
                yield f"{where}: {item.name} has {item.bytes} bytes, the result {least}"
        yield from _same(where, layer, homes, one.operands)


def _same(where: str, layer: LayerRow, homes: HomesPlan, operands: dict[str, int]) -> Iterator[str]:
    """The schedule says the homes of the items."""
    if layer.schedule is not None:
        stated = {operand: homes.items[number].home for operand, number in operands.items()}
        yield from unequal(where, dict(layer.schedule.homes), stated)
