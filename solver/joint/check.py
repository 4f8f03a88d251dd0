"""Re-verify a plan in a shared memory from its nests and residents alone, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulations.pins import Pins
from formulations.tiling import problem as tiling
from hwmodels.joint.replay import replay_joint
from hwmodels.schedule import LayerRun
from instances.errors import InputError
from instances.stores import Stores, stores
from solver.joint.homes import check_homes
from solver.joint.plan import JointPlan
from solver.joint.solve import (
    check_machine,
    compulsory,
    conflicts,
    derived,
)
from solver.network_check import fields_of, head_of, status_of, undecided_of
from solver.options import pick_nests, pick_pins
from solver.verify import unequal

__all__ = ["problems_of_joint", "runs_in"]


def problems_of_joint(plan: JointPlan) -> list[str]:
    """Return every mismatch of a plan, one line each: all is derived again but optimality, which is the engine's."""
    return list(dict.fromkeys([*head_of(plan), *status_of(plan), *_layers(plan)]))


def _layers(plan: JointPlan) -> Iterator[str]:
    try:
        found, machine = stores(plan.network_data), plan.machine_data
        check_machine(machine)
        check_homes(plan.network_data, machine, plan.objectives)
        pins = pick_pins(list(plan.pins), pick_nests("tiling"))
    except InputError as error:
        yield str(error)
        return
    yield from unequal("compulsory_bytes", plan.compulsory_bytes, compulsory(found, machine))
    if "time" in plan.objectives:
        yield "objectives: problem joint decides bytes or energy, the plan says time"
        return
    if not plan.layers:
        yield from undecided_of(plan, plan.replay.ok)
        if plan.status == "INFEASIBLE":
            yield from unequal("conflicts", plan.conflicts, conflicts(found, machine, pins))
        return
    runs = runs_in(plan, found)
    if isinstance(runs, str):
        yield runs
        return
    try:
        walked = replay_joint(found, machine, runs)
    except InputError as error:
        yield str(error)
        return
    yield from walked.faults
    if walked.faults:
        return
    yield from _demands(plan, found, runs, pins)
    # earlier versions wrote no buffers
    yield from fields_of(plan, derived(found, machine, runs, walked, plan.objectives[0]), later=("buffers",))


def _demands(plan: JointPlan, found: Stores, runs: Sequence[LayerRun], pins: Pins) -> Iterator[str]:
    """Every nest is a plan of problem tiling, with the pins."""
    try:
        for t, run in enumerate(runs):
            if not tiling.build(found.layer(t, run.rows, run.unwritten), plan.machine_data, pins).contains(run.nest):
                demands = f" with {', '.join(plan.pins)}" if plan.pins else ""
                yield f"layer {plan.layers[t].layer}: the schedule is no plan of problem tiling{demands}"
    except InputError as error:
        yield str(error)


def runs_in(plan: JointPlan, found: Stores) -> tuple[LayerRun, ...] | str:
    """Return the schedule of a plan, or what is wrong with its names."""
    names, made = [row.layer for row in plan.layers], [layer.name for layer in found.layers]
    if names != made:
        wrong = next((f"{a!r} for {b!r}" for a, b in zip(names, made, strict=False) if a != b), "a different number")
        return f"layers: the plan has {len(names)}, the network {len(made)}; the first that differs: {wrong}"
    number = {store.name: at for at, store in enumerate(found.stores)}
    runs = []
    for row in plan.layers:
        unknown = [one.map for one in row.on_chip if one.map not in number]
        if unknown:
            return f"layer {row.layer}: on_chip: no map is called {', '.join(unknown)}"
        residents = {number[one.map]: (one.rows, one.banks) for one in row.on_chip}
        runs.append(LayerRun(row.schedule.to_nest(), residents, row.unwritten, row.banks))
    return tuple(runs)
