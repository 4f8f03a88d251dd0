"""What keeping a part of a mapping costs: the best tile in its loop order, the best order of its tile, and the optimum.

Loop order kept
    one member of the space of problem tiling (slicing): the order of loops and Holds as given, every step open, pieces
    of equal size. (Free pieces are argued for orders that the problem looks at: a given order need not be one.)
Tile kept
    the innermost size of every dimension pinned (``T_M=24``), order and Holds open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.tiling import problem as tiling
from formulations.tiling.chains import Sizes
from formulations.tiling.member import Member
from formulations.tiling.part import NestPart
from formulations.tiling.space import Space
from hwmodels.nest.homes import settled
from hwmodels.nest.skeleton import cores, skeleton_of
from hwmodels.schedule import Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine import Machine
from instances.workload import DIMS, Layer
from solver.mappings.given import Mapped, part_of, problem_for
from solver.plan import Plan, Status
from solver.tiling.search import decide
from solver.verdict import judgement
from solver.verify import PlanMismatch

#: A dimension with more loops than these keeps its steps.
_LOOPS = 2


@dataclass(frozen=True)
class Improvement:
    """The best mapping that keeps something."""

    kept: str
    nest: Nest | None
    measures: dict[str, int] | None
    status: Status
    bound: int | None
    """No mapping that keeps this is below it, in the first objective."""
    note: str = ""


def best_tile(mapped: Mapped, machine: Machine, objectives: tuple[str, ...], limit_s: float | None) -> Improvement:
    """Return the best mapping in the loop order of a given one."""
    kept, layer = "loop order", mapped.layer
    loops = mapped.nest.loops()
    if mapped.nest.line:
        return Improvement(kept, None, None, "NO_SOLUTION_FOUND", None, "IN is held in lines: not searched")
    if many := [d for d in DIMS if len(loops[d]) > _LOOPS]:
        said = f"{many[0]} has {len(loops[many[0]])} loops: orders of at most {_LOOPS} a dimension are searched"
        return Improvement(kept, None, None, "NO_SOLUTION_FOUND", None, said)
    space = _space(layer, settled(layer, machine, dict(mapped.nest.homes)), _without_idle(layer, mapped.nest))
    found = decide(space, objectives, clock=Clock.of(limit_s))
    if found.schedule is None:
        return Improvement(kept, None, None, found.status, found.bound)
    nest = found.schedule.at(dict(mapped.nest.homes))
    judged = judgement(part_of(replace(mapped, nest=nest), machine), nest)
    if judged.disagreements or judged.faults:
        raise PlanMismatch(f"{layer.name}: {'; '.join((*judged.disagreements, *judged.faults)[:3])}")
    return _better(
        mapped,
        machine,
        objectives,
        Improvement(
            kept, nest, part_of(replace(mapped, nest=nest), machine).outcome(nest).measures, found.status, found.bound
        ),
    )


def _better(mapped: Mapped, machine: Machine, objectives: tuple[str, ...], found: Improvement) -> Improvement:
    """The given mapping itself, if what was found is no better: free pieces that are not searched, or a time limit."""
    part = NestPart(mapped.layer, machine, part_of(mapped, machine).build, Pins(), homes=mapped.nest.homes, given=True)
    own = part.outcome(mapped.nest)
    fits = all(own.occupancy_bytes.get(name, 0) <= size for name, size in machine.memories.items())
    if not fits or found.measures is None or own.measures[objectives[0]] >= found.measures[objectives[0]]:
        return found
    bound = None if found.bound is None else min(found.bound, own.measures[objectives[0]])
    return replace(found, nest=mapped.nest, measures=own.measures, status="FEASIBLE", bound=bound,
                   note="the given steps: none that were searched are better")  # fmt: skip


def _without_idle(layer: Layer, nest: Nest) -> Nest:
    """The nest without loops over dimensions (of a core) that have one element."""
    core = cores(layer, tuple(item for item in nest.items if isinstance(item, Spatial)))[0]
    return Nest(
        tuple(item for item in nest.items if not isinstance(item, Loop) or core.extent(item.dim) > 1), nest.homes
    )


def _space(layer: Layer, machine: Machine, nest: Nest) -> Space:
    """The nests of one order."""
    skeleton = skeleton_of(layer, nest)
    core = cores(layer, skeleton.spatial)[0]
    sizes = {d: Sizes.of(np.arange(1, core.extent(d) + 1, dtype=np.int64)) for d in DIMS}
    member = Member(layer, machine, {}, skeleton, sizes, even=frozenset(DIMS))

    def build(other: Machine, _: Pins) -> Space:
        return _space(layer, other, nest)

    def read(found: Nest) -> dict[str, int | str]:
        return tiling.read(layer, machine, found)

    return Space(problem_for(machine), layer, machine, Pins(), (member,), build, read)


def best_order(mapped: Mapped, machine: Machine, objectives: tuple[str, ...], limit_s: float | None) -> Improvement:
    """Return the best mapping with the innermost tile of a given one."""
    from solver.solve import solve

    tile = mapped.nest.tile(mapped.layer)
    pins = [f"T_{d.upper()}={size}" for d, size in tile.items() if mapped.layer.extent(d) > 1]
    try:
        plan = solve(mapped.layer, machine, problem=problem_for(machine), objective=objectives, pins=pins,
                     time_limit_s=limit_s, jobs=1)  # fmt: skip
    except InputError as error:
        return Improvement("tile", None, None, "NO_SOLUTION_FOUND", None, str(error))
    return of_plan("tile", plan)


def of_plan(kept: str, plan: Plan, name: str | None = None) -> Improvement:
    """Return what a plan has for a layer."""
    row = plan.layers[0] if name is None else plan.layer(name)
    nest = None if row.schedule is None else row.schedule
    measures = None if row.measures is None else row.measures.model_dump()
    return Improvement(kept, nest, measures, row.status, row.bound, "; ".join(row.conflicts))


def options(
    mapped: Mapped, machine: Machine, objectives: tuple[str, ...], optimum: Plan, limit_s: float | None
) -> Iterator[Improvement]:  # fmt: skip
    """Yield the best mappings: with the loop order kept, with the tile kept, and of all."""
    yield best_tile(mapped, machine, objectives, limit_s)
    yield best_order(mapped, machine, objectives, limit_s)
    yield of_plan("nothing", optimum, mapped.layer.name)
