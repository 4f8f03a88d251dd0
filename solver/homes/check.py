"""Check what a plan says about homes: everything but that no others are better."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.homes.read import weight_bytes
from formulations.pins import Pins
from instances.machine import Machine
from solver.homes.plan import HomesPlan
from solver.plan import Plan
from solver.tiling.rows import LayerRow, layer_rows
from solver.verify import unequal


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
    yield from _claims(plan)
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


def _claims(plan: Plan) -> Iterator[str]:
    """Status and bound of the network are over all homes, those of layers for the homes they have."""
    if plan.objective is None:
        return
    value = plan.objective.value
    if plan.bound is not None and plan.bound > value:
        yield f"bound {plan.bound} is above the value {value}"
    if plan.status == "OPTIMAL" and plan.bound != value:
        yield f"status OPTIMAL, but bound {plan.bound} is not the value {value}"
    if plan.status == "OPTIMAL" and len(plan.objectives) > 1 and any(one.status != "OPTIMAL" for one in plan.parts):
        yield "status OPTIMAL in several objectives, but some layer is not"
    if plan.status not in ("OPTIMAL", "FEASIBLE"):
        yield f"status {plan.status} comes with a schedule"
