"""Re-verify a plan of a mesh from its decisions alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.mesh.pins import check_pins
from formulations.mesh.price import price
from formulations.mesh.problem import DECISIONS, Choice
from formulations.pins import Pins, parse_pins
from instances.errors import InputError
from instances.machine import Machine
from solver.mesh.plan import Aim, MeshLayer, MeshMeasures, MeshPlan
from solver.mesh.solve import (
    above,
    choice_of,
    compulsory,
    mesh_layers,
    replay_of,
    replayed,
    status_by,
    summed,
    summed_bounds,
)
from solver.mesh.why import conflicts
from solver.network_check import head_of, status_of
from solver.verify import gap_of, unequal

__all__ = ["keeps", "problems_of_mesh"]


def problems_of_mesh(plan: MeshPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_layers(plan)]))


def _layers(plan: MeshPlan) -> Iterator[str]:
    try:
        pins = parse_pins(plan.options.pins, DECISIONS)
        check_pins(pins, plan.machine_data)
        wanted = mesh_layers(plan.network_data, plan.options.layers)
        if plan.status == "INFEASIBLE" and not plan.layers:
            known = {line for layer in wanted for line in conflicts(layer, plan.machine_data, pins)}
            yield from (f"conflicts: {line!r} is not so" for line in plan.conflicts if line not in known)
    except InputError as error:
        yield str(error)
        return
    if not plan.layers:
        if plan.measures is not None or plan.bound is not None or plan.bounds:
            yield "a plan without layers has no measures and no bound"
        if bool(plan.conflicts) != (plan.status == "INFEASIBLE"):
            yield f"status {plan.status} with {len(plan.conflicts)} conflicts"
        return
    yield from unequal("layers", tuple(part.workload for part in plan.layers), wanted)
    for part in plan.layers:
        where = f"layer {part.layer}"
        yield from unequal(f"{where}: workload.name", part.workload.name, part.layer)
        try:
            for line in _layer(part, plan.machine_data, pins, plan.objectives):
                yield f"{where}: {line}"
        except InputError as error:
            yield str(error)
    yield from unequal("measures", plan.measures, summed(plan.layers))
    value = sum(getattr(part.measures, plan.objectives[0]) for part in plan.layers)
    yield from unequal("objective.value", plan.objective and plan.objective.value, value)
    terms = {part.layer: getattr(part.measures, plan.objectives[0]) for part in plan.layers}
    yield from unequal("objective.terms", plan.objective and plan.objective.terms, terms)
    bounds = summed_bounds(plan.layers, plan.objectives)
    yield from unequal("bounds", plan.bounds, bounds)
    yield from unequal("bound", plan.bound, bounds[plan.objectives[0]])
    proven = all(part.status == "OPTIMAL" for part in plan.layers)
    yield from unequal("status", plan.status, "OPTIMAL" if proven else "FEASIBLE")


def _layer(part: MeshLayer, machine: Machine, pins: Pins, aims: tuple[Aim, ...]) -> Iterator[str]:
    choice = choice_of(part)
    cost, over = price(part.workload, machine, choice)
    yield from (f"{name}: {by} bytes too many" for name, by in over.items() if by > 0)
    made = MeshMeasures(dram=cost.dram, glb=cost.glb, cycles=cost.cycles, time=cost.time)
    yield from unequal("measures", part.measures, made)
    yield from unequal("compulsory_bytes", part.compulsory_bytes, compulsory(part.workload, machine))
    yield from unequal("bounds: objectives", list(part.bounds), list(aims))
    yield from unequal("gap", part.gap, gap_of(cost.of(aims[0]), part.bounds.get(aims[0])))
    bounds = {str(aim): bound for aim, bound in part.bounds.items()}
    yield from above(cost, bounds)
    yield from unequal("status", part.status, status_by(cost, bounds))
    yield from _banks(part, machine, choice)
    if not keeps(choice, pins):
        yield f"pins {', '.join(map(str, pins.pins))} are not kept"
    seen, faults = replayed(part.workload, machine, choice, part.banks)
    if (seen.dram, seen.glb, seen.cycles) != (cost.dram, cost.glb, cost.cycles):
        faults.append(f"priced {cost}, simulated dram {seen.dram}, glb {seen.glb}, cycles {seen.cycles}")
    yield from faults
    yield from unequal("replay", part.replay, replay_of(seen, faults))


def _banks(part: MeshLayer, machine: Machine, choice: Choice) -> Iterator[str]:
    """What a layout takes and says; that it has no conflicts is the simulation's."""
    mesh = machine.mesh
    if mesh is None or (mesh.kind == "teu") != (part.banks is not None):
        yield "banks: only tile units have them, and all have"
    if mesh is None or part.banks is None:
        return
    for one, size in zip(part.banks.operands, (machine.in_bytes, machine.w_bytes), strict=True):
        taken = one.words * size * mesh.copies
        if taken > mesh.input_buffer_bytes:
            yield f"banks: {one.operand} takes {taken} bytes with padding, there are {mesh.input_buffer_bytes}"
        elements = 1
        for axis in one.axes:
            elements *= axis.extent
        yield from unequal(f"banks: padding of {one.operand}", one.padding, one.words - elements)
    if [one.operand for one in part.banks.operands] != ["IN", "W"]:
        yield "banks: the operands are IN and W"
    bits = [f"{d}{q}" for d, lanes in part.vector.items() for q in range(lanes.bit_length() - 1)]
    if sorted(part.banks.bits) != sorted(bits):
        yield f"banks: bits {', '.join(part.banks.bits)} are not those of the PE vector"


def keeps(choice: Choice, pins: Pins) -> bool:
    """Whether a choice keeps the pins."""
    import numpy as np

    from instances.workload import DIMS

    sizes = {f"T_{d.upper()}": t for d, t in zip(DIMS, choice.tile, strict=True)}
    sizes |= {f"P_{d.upper()}": p for d, p in zip(DIMS, choice.vector, strict=True)}
    sizes |= {"filters": choice.filters, "channels": choice.channels}
    words = {"rows": choice.rows, "cols": choice.cols, "share": choice.share, "keep": choice.keep}
    return all(len(pins.sizes(name, np.array([value], dtype=np.int64))) for name, value in sizes.items()) and all(
        pins.allows(name, value) for name, value in words.items()
    )
