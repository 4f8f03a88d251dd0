"""Plan layers on a mesh of tile units or an array, and verify every plan by simulation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import get_args

from formulations.mesh.finish import fewer_steps
from formulations.mesh.layout import Layout
from formulations.mesh.pins import check_pins
from formulations.mesh.price import price, setup_of
from formulations.mesh.problem import DECISIONS, SHARES, Choice, Price
from formulations.pins import Pins, parse_pins
from hwmodels.mesh.replay import Given, Seen, replay_mesh
from hwmodels.mesh.replay_arrays import replay_array
from hwmodels.mesh.replay_lanes import replay_lanes
from hwmodels.outcome import UNITS
from instances.errors import InputError
from instances.machine import Machine
from instances.ndrange import ndrange
from instances.network import Network
from instances.workload import DIMS, Layer
from solver.mesh.base import Asked, Decided
from solver.mesh.engines import HASTE, MESH_ENGINES, MeshEngine
from solver.mesh.plan import (
    Aim,
    MeshAxis,
    MeshBanks,
    MeshLayer,
    MeshMeasures,
    MeshOperand,
    MeshOptions,
    MeshPlan,
    MeshReplay,
)
from solver.mesh.why import conflicts
from solver.network_plan import head
from solver.plan import Objective, Stat, Status, proof
from solver.question import Question
from solver.verify import PlanMismatch, gap_of
from solver.watch import Watch

__all__ = [
    "above", "aims_of", "choice_of", "compulsory", "mesh_layers", "part_of", "replayed", "solve",
    "status_by", "summed", "summed_bounds",
]  # fmt: skip

#: Seconds below which a layer is planned in haste.
_WORTH_S = 0.05


def mesh_layers(network: Network, names: Sequence[str]) -> tuple[Layer, ...]:
    """Return the layers that multiply, or those named; raises InputError if there are none."""
    found = tuple(network.layer(name) for name in dict.fromkeys(names))
    found = found or tuple(layer for layer in network.layers if layer.weights != "none")
    if not found:
        raise InputError(f"network {network.name}: no layers that multiply")
    return found


def solve(question: Question) -> MeshPlan:
    """Plan every layer of a network that multiplies, matching of maps too, or those named.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, formulation and simulation disagree: a defect of certile.
    """
    start, chosen, aims = time.monotonic(), MESH_ENGINES[question.engine], aims_of(question)
    network, real = question.network, question.machine
    parsed = parse_pins(question.pins, DECISIONS)
    check_pins(parsed, real)
    wanted = mesh_layers(network, question.layers or ())
    made: dict[tuple[object, ...], MeshLayer] = {}
    parts: list[MeshLayer] = []
    failed: dict[str, Decided] = {}
    done: dict[tuple[object, ...], Decided] = {}
    distinct = len({layer.signature() for layer in wanted})
    with question.watch() as watch:
        for layer in wanted:
            setup_of(layer, real)
            if layer.signature() not in done:
                asked = Asked(layer, real, aims[0], parsed, clock=watch.clock.share(distinct - len(done)))
                done[layer.signature()] = _stopped_or(asked, aims, chosen, watch)
            said = done[layer.signature()]
            if said.choice is None:
                failed[layer.name] = said
                continue
            if layer.signature() not in made:
                made[layer.signature()] = part_of(layer, real, said, said.choice, aims)
            parts.append(made[layer.signature()].model_copy(update={"layer": layer.name, "workload": layer}))
        return _plan(question, aims, tuple(parts), failed, done, start, parsed, wanted)


def _stopped_or(asked: Asked, aims: Sequence[str], engine: MeshEngine, watch: Watch) -> Decided:
    """The answer of an engine; in haste if it is stopped, or if there is hardly time."""
    hasty = asked.clock.remaining < _WORTH_S
    with watch.part(None if asked.clock.left is None or hasty else asked.clock.remaining) as part:
        said = part.run(lambda: _decide(asked, aims, HASTE if hasty else engine), lambda: _decide(asked, aims, HASTE))
        part.heard(said.stats)
    return said


def _decide(asked: Asked, aims: Sequence[str], engine: MeshEngine) -> Decided:
    """The first objective, then the others among what is as good; with a bound for each."""
    leasts = {aim: replace(asked, measure=aim).least for aim in aims}
    said = engine.run(replace(asked, clock=asked.clock.share(len(aims))))
    bounds: dict[str, int | None] = {aims[0]: said.bound}
    if engine.proves and said.choice is None and said.status == "NO_SOLUTION_FOUND":
        said = HASTE.run(asked)
    if engine is HASTE or said.choice is None:
        return replace(said, bounds=leasts)
    limits: dict[str, int] = {}
    for number, (before, aim) in enumerate(pairwise(aims), 1):
        assert said.choice is not None
        if said.stats.get("interrupted"):
            bounds[aim] = leasts[aim]
            continue
        limits[before] = price(asked.layer, asked.machine, said.choice)[0].of(before)
        wanted = replace(asked, measure=aim, limits=dict(limits), known=(said.choice,))
        then = engine.run(replace(wanted, clock=asked.clock.share(len(aims) - number)))
        bounds[aim] = then.bound
        if then.stats.get("interrupted"):
            said = replace(said, stats={**said.stats, "interrupted": True})
        if then.choice is not None:
            said = replace(said, choice=then.choice, layout=then.layout)
    assert said.choice is not None
    choice, layout = fewer_steps(asked.layer, asked.machine, said.choice, asked.pins, said.layout, asked.clock)
    return replace(said, choice=choice, layout=layout, bounds=bounds)


# ---- the plan --------------------------------------------------------------------------------------------------------


def part_of(layer: Layer, machine: Machine, said: Decided, choice: Choice, aims: Sequence[str]) -> MeshLayer:
    """Return the plan of a layer, simulated; raises PlanMismatch if the simulation or the proof disagrees."""
    cost, over = price(layer, machine, choice)
    banks = None if said.layout is None else _banks(said.layout)
    seen, faults = replayed(layer, machine, choice, banks)
    faults += [f"{name}: {by} bytes too many" for name, by in over.items() if by > 0]
    if (seen.dram, seen.glb, seen.cycles) != (cost.dram, cost.glb, cost.cycles):
        faults.append(f"priced {cost}, simulated dram {seen.dram}, glb {seen.glb}, cycles {seen.cycles}")
    faults += above(cost, said.bounds)
    if faults:
        raise PlanMismatch(f"layer {layer.name} on {machine.name}: {'; '.join(faults[:5])}")
    return MeshLayer(
        layer=layer.name, workload=layer, tile=_by_index(choice.tile), rows=choice.rows or "", cols=choice.cols or "",
        vector=_by_index(choice.vector), share=choice.share, keep=choice.keep, filters=choice.filters,
        channels=choice.channels, banks=banks, status=status_by(cost, said.bounds),
        measures=MeshMeasures(dram=cost.dram, glb=cost.glb, cycles=cost.cycles, time=cost.time),
        bounds={aim: said.bounds[aim] for aim in aims}, gap=gap_of(cost.of(aims[0]), said.bounds[aims[0]]),
        compulsory_bytes=compulsory(layer, machine),
        replay=replay_of(seen, faults), stats=said.stats,
    )  # fmt: skip


def status_by(cost: Price, bounds: Mapping[str, int | None]) -> Status:
    """OPTIMAL if every objective reaches its bound."""
    return "OPTIMAL" if all(bound == cost.of(aim) for aim, bound in bounds.items()) else "FEASIBLE"


def above(cost: Price, bounds: Mapping[str, int | None]) -> list[str]:
    """One line for every bound that is above the plan's own value."""
    found = [(aim, bound) for aim, bound in bounds.items() if bound is not None and bound > cost.of(aim)]
    return [f"bounds: {aim} {bound} is above the value {cost.of(aim)}" for aim, bound in found]


def replay_of(seen: Seen, faults: Sequence[str]) -> MeshReplay:
    """What a simulation found, as it stands in a plan."""
    return MeshReplay(
        ok=not faults, dram=seen.dram, glb=seen.glb, cycles=seen.cycles, fetches=seen.fetches,
        fifo_words=seen.fifo_words, steps=seen.steps, faults=tuple(faults),
    )  # fmt: skip


def _by_index(values: Sequence[int]) -> dict[str, int]:
    return dict(zip(DIMS, values, strict=True))


def _banks(layout: Layout) -> MeshBanks:
    operands = tuple(
        MeshOperand.model_validate({
            "operand": one.operand, "words": one.words, "padding": one.words - one.elements,
            "axes": tuple(MeshAxis(axis=a.axis, extent=a.extent, pitch=a.pitch) for a in one.axes),
        })
        for one in layout.operands
    )  # fmt: skip
    return MeshBanks(bits=tuple(f"{d}{q}" for d, q in layout.bits), operands=(operands[0], operands[1]))


def choice_of(part: MeshLayer) -> Choice:
    """The decisions that a plan states."""
    tile, vector = ({str(d): size for d, size in of.items()} for of in (part.tile, part.vector))
    return Choice(
        tuple(tile.get(d, 0) for d in DIMS), part.rows, part.cols, tuple(vector.get(d, 1) for d in DIMS),
        part.share, part.keep, part.filters, part.channels,
    )  # fmt: skip


def replayed(layer: Layer, machine: Machine, choice: Choice, banks: MeshBanks | None) -> tuple[Seen, list[str]]:
    """Run the simulation of a choice and of its banks."""
    mesh = machine.mesh
    if mesh is None:
        raise InputError(f"machine {machine.name} has no mesh")
    given = Given(
        _by_index(choice.tile), choice.rows, choice.cols, _by_index(choice.vector), SHARES[choice.share], choice.keep,
        choice.filters, choice.channels,
    )  # fmt: skip
    if mesh.kind != "teu":
        seen = replay_array(layer, machine, given)
        return seen, list(seen.faults)
    seen = replay_mesh(layer, machine, given)
    if banks is None:
        return seen, [*seen.faults, "a mesh needs a layout of its banks"]
    bits = [(bit[0], int(bit[1:])) for bit in banks.bits]
    placed: dict[str, tuple[list[tuple[int, int, int]], int]] = {
        str(one.operand): ([(axis.axis, axis.extent, axis.pitch) for axis in one.axes], one.words)
        for one in banks.operands
    }
    return seen, [*seen.faults, *replay_lanes(layer, _by_index(choice.tile), bits, placed, mesh.banks)]


def compulsory(layer: Layer, machine: Machine) -> int:
    """Every element of the operands and the results once (operands whole, though strides may skip some)."""
    workload, total = ndrange(layer), 0
    for operand, size in zip(workload.inputs, (machine.in_bytes, machine.w_bytes), strict=True):
        elements = 1
        for axis in operand.axes:
            elements *= axis.size
        total += size * elements
    return total + workload.results * machine.out_bytes


def summed(parts: Sequence[MeshLayer]) -> MeshMeasures:
    """All layers together."""
    return MeshMeasures(
        dram=sum(p.measures.dram for p in parts), glb=sum(p.measures.glb for p in parts),
        cycles=sum(p.measures.cycles for p in parts), time=sum(p.measures.time for p in parts),
    )  # fmt: skip


def summed_bounds(parts: Sequence[MeshLayer], aims: Sequence[Aim]) -> dict[Aim, int | None]:
    """Of all layers together, by objective; None where a layer has none."""
    found: dict[Aim, int | None] = {}
    for aim in aims if parts else ():
        bounds = [part.bounds.get(aim) for part in parts]
        found[aim] = None if None in bounds else sum(bound for bound in bounds if bound is not None)
    return found


def aims_of(question: Question) -> tuple[Aim, ...]:
    """The objectives."""
    return tuple(aim for name in question.objectives for aim in get_args(Aim) if aim == name)


def _plan(
    question: Question, aims: tuple[Aim, ...],
    parts: tuple[MeshLayer, ...], failed: Mapping[str, Decided], done: Mapping[tuple[object, ...], Decided],
    start: float, pins: Pins, wanted: Sequence[Layer],
) -> MeshPlan:  # fmt: skip
    said, stats = list(done.values()), dict[str, Stat](layers=len(wanted), distinct=len(done))
    why: list[str] = []
    status: Status = "OPTIMAL"
    value = None
    if failed:
        infeasible = [name for name, one in failed.items() if one.status == "INFEASIBLE"]
        status, parts = "INFEASIBLE" if infeasible else "NO_SOLUTION_FOUND", ()
        by_name = {layer.name: layer for layer in wanted}
        for name in infeasible:
            why += conflicts(by_name[name], question.machine, pins)
        notes = {f"{name}: {one.stats['note']}" for name, one in failed.items() if "note" in one.stats}
        if notes:
            stats["note"] = "; ".join(sorted(notes)[:3])
    else:
        if any(part.status != "OPTIMAL" for part in parts):
            status = "FEASIBLE"
        value = sum(getattr(part.measures, aims[0]) for part in parts)
    bounds = summed_bounds(parts, aims)
    if status == "NO_SOLUTION_FOUND":
        bounds = {aim: sum(done[layer.signature()].bounds.get(aim) or 0 for layer in wanted) for aim in aims}
    bound = bounds.get(aims[0])
    if parts:
        reached = [bounds[aim] == getattr(summed(parts), aim) for aim in aims]
        stats |= proof(aims, [aim for number, aim in enumerate(aims, 1) if all(reached[:number])])
    terms = {part.layer: getattr(part.measures, aims[0]) for part in parts}
    objective = (
        None if value is None else Objective.model_validate({"value": value, "unit": UNITS[aims[0]], "terms": terms})
    )
    asked = MeshOptions(
        layers=question.layers or (), pins=question.pins, time_limit_s=question.time_limit_s, settings=question.settings
    )
    fields = head(
        question, "mesh", question.engine, status=status, start=start, objective=objective, bound=bound,
        gap=gap_of(value, bound), engine_version=said[0].versions if said else "", conflicts=tuple(why), stats=stats,
    )  # fmt: skip
    summary = {"options": asked, "measures": summed(parts) if parts else None, "bounds": bounds, "layers": parts}
    return MeshPlan.model_validate({**fields, **summary})
