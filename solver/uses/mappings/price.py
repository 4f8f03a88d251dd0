"""`price`: a mapping that a person wrote, or another tool found, priced, replayed, and compared with the optimum.

`told` says in words and tables what is known of it, and what keeping a part of it costs: the best tile in its loop
order (`best_tile`), the best order of its tile (`best_order`), and the optimum.

Loop order kept
    one member of the space of problem tiling (slicing): the order of loops and Holds as given, every step open, pieces
    of equal size. (Free pieces are argued for orders that the problem looks at: a given order need not be one.)
Tile kept
    the innermost size of every dimension pinned (``T_M=24``), order and Holds open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.tiling import tiling
from formulations.tiling.chains import Sizes
from formulations.tiling.member import Member
from formulations.tiling.space import Space
from hwmodels.nest.homes import machine_with_homes
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Loop, Nest, Spatial
from instances.errors import InputError, PlanMismatch
from instances.foreign.foreign import is_foreign, read_workloads
from instances.foreign.products import Workload
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import DIMS, Layer
from instances.problems import nested
from solver.ask.options import as_texts, check_time_limit, pick_layers, pick_machine, pick_target
from solver.calls.solve import Texts, ask, solve
from solver.plan.plan import Plan, Status
from solver.problems.layers import LayerRow, is_layers
from solver.problems.tiling import decide_space
from solver.search.verdict import price_and_replay
from solver.show.tables import Column, Sheet, ratio, render
from solver.uses.mappings import in_levels
from solver.uses.mappings.compare import reasons
from solver.uses.mappings.files import Mappings, read
from solver.uses.mappings.given import Mapped, Remedy, housed, overflows, part_of, plan_of, problem_for, remedies
from solver.uses.mappings.in_levels import LevelPrice
from solver.uses.mappings.text import text_of

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
    space = _space(
        layer, machine_with_homes(layer, machine, dict(mapped.nest.homes)), _without_idle(layer, mapped.nest)
    )
    found = decide_space(space, objectives, clock=Clock.of(limit_s))
    if found.schedule is None:
        return Improvement(kept, None, None, found.status, found.bound)
    better = replace(mapped, nest=found.schedule.at(dict(mapped.nest.homes)))
    part = part_of(better, machine)
    judged = price_and_replay(part, better.nest)
    if judged.disagreements or judged.faults:
        raise PlanMismatch(f"{layer.name}: {'; '.join((*judged.disagreements, *judged.faults)[:3])}")
    measures, own = part.outcome(better.nest).measures, part_of(mapped, machine).outcome(mapped.nest).measures
    first = objectives[0]
    if overflows(mapped, machine) or own[first] >= measures[first]:
        return Improvement(kept, better.nest, measures, found.status, found.bound)
    # free pieces that are not searched, or a time limit
    bound = None if found.bound is None else min(found.bound, own[first])
    return Improvement(kept, mapped.nest, own, "FEASIBLE", bound, "the given steps: none that were searched are better")


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
    tile = mapped.nest.tile(mapped.layer)
    pins = [f"T_{d.upper()}={size}" for d, size in tile.items() if mapped.layer.extent(d) > 1]
    try:
        plan = solve(mapped.layer, machine, problem=problem_for(machine), objective=objectives, pins=pins,
                     time_limit_s=limit_s, jobs=1)  # fmt: skip
    except InputError as error:
        return Improvement("tile", None, None, "NO_SOLUTION_FOUND", None, str(error))
    return of_plan("tile", plan)


def of_plan(kept: str, plan: Plan) -> Improvement:
    """Return what the plan of a layer has for it."""
    row = plan.layers[0]
    measures = None if row.measures is None else row.measures.model_dump()
    return Improvement(kept, row.schedule, measures, row.status, row.bound, "; ".join(row.conflicts))


def told(priced: PricedMapping) -> Iterator[str]:
    """Lines about every layer."""
    for k, one in enumerate(priced.layers):
        yield from ([""] if k else [])
        if isinstance(one, LevelPrice):
            yield from one.told()
            continue
        yield f"{one.name} on {one.machine.name}: {text_of(one.mapped.nest)}"
        if one.mapped.source not in ("text", "a nest"):
            yield f"read as {one.mapped.source}"
        yield from (f"note: {note}" for note in one.mapped.notes)
        yield from _unfit(one) if one.overflows else _figures(one)
        if one.improved:
            yield from ("", render(_improvements(one)).rstrip("\n"))


def _unfit(one: LayerPrice) -> Iterator[str]:
    for memory, (taken, size) in one.overflows.items():
        yield f"does not fit: memory {memory}: {taken:,} bytes are taken, there are {size:,}: {taken - size:,} too many"
    mine = [str(change) for change in one.remedies if change.loop is not None]
    new = [f"{change.dim} {change.step}" for change in one.remedies if change.loop is None]
    if mine:
        yield f"would fit with one of its loops in pieces of at most: {', '.join(mine)}"
    if new:
        yield f"would fit with one more loop outside all others, in pieces of at most: {', '.join(new)}"
    if not one.remedies:
        yield "no single loop with smaller pieces makes it fit"
    if one.best is not None and one.best.schedule is not None and one.best.objective is not None:
        value = one.best.objective
        nest = text_of(one.best.schedule)
        said = "the optimum" if _least(one.best) else "the best known"
        yield f"{said} has {value.value:,} {value.unit}: {nest}"


def _figures(one: LayerPrice) -> Iterator[str]:
    row, best = one.row, one.best
    if row is None or row.measures is None or row.counts is None or row.objective is None:
        return
    yield from ("", render(_sheet(row, best)).rstrip("\n"), "")
    taken = ", ".join(f"{name} {size:,} of {one.machine.memories[name]:,}"
                      for name, size in (row.occupancy_bytes or {}).items())  # fmt: skip
    yield f"on chip, bytes: {taken}; replay agrees" + (
        ", computed on integers too" if row.replay and row.replay.executed else ""
    )
    if best is not None:
        yield from _compared(one, row, best)


def _compared(one: LayerPrice, row: LayerRow, best: LayerRow) -> Iterator[str]:
    """The mapping against the optimum, and why it is worse."""
    if row.objective is None or best.objective is None or one.times is None:
        yield "there is no optimum to compare with: none was found in time"
        return
    first = one.objectives[0]
    proven = _least(best)
    known = "the minimum, proven" if proven else f"the best known; no mapping is below {best.bound:,}"
    verb = {"bytes": "moves", "time": "takes", "energy": "needs"}[first]
    what = {"bytes": "bytes", "time": "ticks", "energy": "fJ"}[first]
    value, least = row.objective.value, best.objective.value
    if value <= least:
        yield f"Your mapping {verb} {value:,} {what}: {known}."
        return
    yield f"Your mapping {verb} {one.times:.2f} times {known}: {value:,} {what} against {least:,}."
    yield f"The {'optimum' if proven else 'best known'}: {text_of(best.schedule) if best.schedule else ''}"
    nest = one.mapped.nest
    yield from (
        f"  {line}" for line in reasons(one.mapped.layer, one.machine, nest, _bytes(row), _bytes(best), known="it")
    )


def _least(best: LayerRow) -> bool:
    """Whether nothing has less of the first objective; of several, the others may be open."""
    return best.status == "OPTIMAL" or (best.objective is not None and best.objective.value == best.bound)


def _bytes(row: LayerRow) -> dict[str, int]:
    return {} if row.figures is None else {name: one.bytes for name, one in row.figures.counts.items()}


def _sheet(row: LayerRow, best: LayerRow | None) -> Sheet:
    """The mapping beside the optimum: bytes by operand, then all measures."""
    rows = [(f"{name} bytes", value, _bytes(best).get(name) if best else None) for name, value in _bytes(row).items()
            if value or (best and _bytes(best).get(name))]  # fmt: skip
    units = {"bytes": "all bytes", "time": "time, ticks", "energy": "energy, fJ"}
    mine = row.measures.model_dump() if row.measures else {}
    its = best.measures.model_dump() if best and best.measures else {}
    rows += [(said, mine[name], its.get(name)) for name, said in units.items()]
    columns = [
        Column("", [name for name, _, _ in rows], words=True),
        Column("yours", [f"{value:,}" for _, value, _ in rows]),
    ]
    if best is not None:
        known = "optimum" if _least(best) else "best known"
        columns += [
            Column(known, ["-" if other is None else f"{other:,}" for _, _, other in rows]),
            Column("x", [ratio(value, other) for _, value, other in rows]),
        ]  # fmt: skip
    return Sheet(columns)


def _improvements(one: LayerPrice) -> Sheet:
    """What keeping a part of a mapping costs."""
    first = one.objectives[0]
    own = one.row.objective.value if one.row and one.row.objective else None
    rows: list[tuple[str, int | None, Nest | None, str]]
    rows = [("all: your mapping", own, one.mapped.nest, "does not fit" if own is None else "")]
    for better in one.improved:
        value = better.measures[first] if better.measures else None
        rows.append((better.kept, value, better.nest, better.note or better.status))
    least = rows[-1][1]
    return Sheet([
        Column("kept", [row[0] for row in rows], "what stays as given, the rest is the best there is", words=True),
        Column(first, ["-" if row[1] is None else f"{row[1]:,}" for row in rows]),
        Column("x", [ratio(row[1], least) for row in rows], "over the last row"),
        Column("status", [row[3] for row in rows], words=True),
        Column("mapping", ["-" if row[2] is None else text_of(row[2]) for row in rows], words=True),
    ])  # fmt: skip


#: Seconds for each optimum that a mapping is compared with, if nothing else is asked for.
LIMIT_S = 30.0


@dataclass(frozen=True)
class LayerPrice:
    """What is known of the mapping of one layer."""

    mapped: Mapped
    machine: Machine
    objectives: tuple[str, ...]
    overflows: dict[str, tuple[int, int]]
    """Memories that are too small: bytes that are taken, bytes that there are. Empty: it fits."""
    remedies: tuple[Remedy, ...]
    """Where it does not fit, single changes with which it does."""
    row: LayerRow | None
    """What the plan says of it; None where it does not fit."""
    best: LayerRow | None
    """The optimum that it is compared with; None if none was asked for, or found."""
    improved: tuple[Improvement, ...] = ()

    @property
    def name(self) -> str:
        """Of the layer."""
        return self.mapped.layer.name

    @property
    def times(self) -> float | None:
        """The first objective over that of the optimum; None without both."""
        if self.row is None or self.best is None or self.row.objective is None or self.best.objective is None:
            return None
        return self.row.objective.value / self.best.objective.value if self.best.objective.value else 1.0


@dataclass(frozen=True)
class PricedMapping:
    """A mapping with its price; `str` of it is what the command line prints."""

    layers: tuple[LayerPrice | LevelPrice, ...]
    """`LevelPrice` on machines with memories in levels."""
    plan: Plan | None
    """Of engine `given`, verified like every plan; None if a layer does not fit."""
    optimum: Plan | None

    @property
    def fits(self) -> bool:
        """Whether every layer fits."""
        return all(not one.overflows for one in self.layers)

    @property
    def status(self) -> Status:
        """FEASIBLE, or INFEASIBLE where it does not fit."""
        return "FEASIBLE" if self.fits else "INFEASIBLE"

    def __str__(self) -> str:
        return "\n".join(told(self))


def price(
    target: Layer | Network | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str] | None,
    mapping: Mappings,
    *,
    layers: str | Iterable[str] | None = None,
    level: str | None = None,
    objective: str | Sequence[str] = "bytes",
    settings: Texts = (),
    compare: bool = True,
    improve: bool = False,
    time_limit_s: float | None = LIMIT_S,
) -> PricedMapping:
    """Price mappings of layers, replay them, and compare them with the optimum.

    Parameters
    ----------
    target : Layer, Network, str or path
        As of `solve`; also a problem of Timeloop, a workload of ZigZag (.yaml) or a graph of DORY (.json).
    mapping : Nest, str, path or mapping
        A nest, a text such as ``"W | m 24 | c 23 c 12 r 1 | IN | OUT"``, a file of certile, Timeloop, ZigZag or DORY,
        or a nest or text for each layer by its name. On machines with memories in levels a LevelNest, a text such as
        ``"IN@l2 | m 64 | W@l2 | OUT@l2 | IN@l1 | W@l1 | OUT@l1"``, a file of Timeloop, ZigZag or AccelForge.
    layers : names, optional
        The layers that it is for; by default all that it names.
    level : str, optional
        Of another tool's mapping, the memory whose traffic is priced; by default the outermost on the chip with tiles.
    compare, improve : bool
        Whether to look for the optimum; and for the best mappings with the same loop order, and with the same tile.
    objective : str or sequence of str
        What is compared; on memories in levels bytes means those of all memories, the far ones first.
    time_limit_s : float, optional
        Seconds for each of these searches.

    Returns
    -------
    PricedMapping
        A mapping that does not fit has no plan: it says by how much, and what would make it fit.

    Raises
    ------
    InputError
        For bad input: no mapping of the layer, an unknown level, a machine without nests.
    """
    mine = pick_machine(machine, as_texts("settings", settings))
    if mine.channel_block > 1:
        said = f"has channels in blocks of {mine.channel_block}; mappings are of layers as they are"
        raise InputError(f"machine {mine.name}: {said}: --set channel_block=1")
    if mine.levels is not None:
        if level is not None or improve:
            option = f"--level {level}" if level is not None else "--improve"
            raise InputError(f"{option}: not on machine {mine.name}: all its levels are priced, beside the optimum")
        return _in_levels(target, mine, mapping, layers, objective, as_texts("settings", settings),
                          check_time_limit(time_limit_s) if compare else 0)  # fmt: skip
    _, question = ask(pick_target(target), mine, problem=problem_for(mine), objective=objective)
    objectives, limit = question.objectives, check_time_limit(time_limit_s)
    if mine.problem not in nested():
        raise InputError(
            f"machine {mine.name}: it is meant for problem {mine.problem}; mappings are nests on a scratchpad"
        )
    if mine.reading == "literal":
        raise InputError(f"machine {mine.name}: its literal reading prices tiles of a paper's equations, not nests")
    known = workloads_of(target, layers)
    given = [housed(one, mine, objectives) for one in read(mapping, known, mine, level)]
    over = [overflows(one, mine) for one in given]
    name = target.name if isinstance(target, Layer | Network) else pick_target(target).name
    plan = None if any(over) else plan_of(given, mine, objectives, name, as_texts("settings", settings))
    best = _optimum(given, mine, objectives, limit) if compare or improve else {}
    found = []
    for k, one in enumerate(given):
        optimum = best.get(one.layer.name)
        better: tuple[Improvement, ...] = ()
        if improve and optimum:
            kept = (best_tile, best_order)
            better = (*(by(one, mine, objectives, limit) for by in kept), of_plan("nothing", optimum))
        changes = tuple(remedies(one, mine)) if over[k] else ()
        row = plan.layers[k] if plan else None
        if plan is None and not over[k]:  # it fits, another one does not
            row = plan_of([one], mine, objectives, one.layer.name).layers[0]
        found.append(
            LayerPrice(one, mine, objectives, over[k], changes, row, optimum.layers[0] if optimum else None, better)
        )
    whole = next(iter(best.values())) if len(best) == 1 else None
    return PricedMapping(tuple(found), plan, whole)


def _in_levels(
    target: Layer | Network | str | os.PathLike[str], machine: Machine, mapping: Mappings,
    layers: str | Iterable[str] | None, objective: str | Sequence[str], settings: tuple[str, ...], limit: float | None,
) -> PricedMapping:  # fmt: skip
    """Price mappings on memories in levels; without seconds for the optimum not compared with it."""
    network = pick_target(target)
    if isinstance(network, Layer):
        raise InputError(f"target {network.name}: problem levels plans layers of networks: give the network")
    others = [f"bytes@{one.name}" for one in machine.levels.memories[1:-1]] if machine.levels else []
    asked = ["bytes", *others] if objective in ("bytes", ["bytes"], ("bytes",)) else objective
    _, question = ask(network, machine, problem="levels", objective=asked)
    given = in_levels.read(mapping, workloads_of(target, layers), machine)
    over = [in_levels.overflows(one, machine) for one in given]
    fits = [one for one, many in zip(given, over, strict=True) if not many]
    plan = in_levels.plan_of(fits, network, machine, question.objectives, settings) if fits else None
    rows = {row.name: row for row in plan.parts} if plan else {}
    best = dict[object, Plan]()
    for one in given if limit != 0 else ():
        if (key := one.layer.signature()) not in best:
            best[key] = solve(network, machine, problem="levels", objective=question.objectives, jobs=1,
                              layers=one.layer.name, time_limit_s=limit)  # fmt: skip
    found = [
        LevelPrice(one, machine, question.objectives, many, rows.get(one.layer.name),
                   best[one.layer.signature()].parts[0] if best else None)
        for one, many in zip(given, over, strict=True)
    ]  # fmt: skip
    whole = next(iter(best.values())) if len(best) == 1 else None
    return PricedMapping(tuple(found), plan if len(fits) == len(given) else None, whole)


def workloads_of(
    target: Layer | Network | str | os.PathLike[str], layers: str | Iterable[str] | None
) -> list[Workload]:  # fmt: skip
    """Return the layers that are meant, with the names of their file; raises InputError if there are none."""
    if isinstance(target, str | os.PathLike) and is_foreign(target):
        found, _ = read_workloads(target)
        names = None if layers is None else as_texts("layers", layers)
        by_name = {one.layer.name: one for one in found}
        if missing := [name for name in names or () if name not in by_name]:
            raise InputError(f"network {os.fspath(target)}: no layer {missing[0]!r}; it has {', '.join(by_name)}")
        return found if names is None else [by_name[name] for name in names]
    return [Workload(layer) for layer in pick_layers(pick_target(target), layers, all_kinds=layers is None)]


def _optimum(
    given: Sequence[Mapped], machine: Machine, objectives: tuple[str, ...], limit: float | None
) -> dict[str, Plan]:
    """The optimum of every layer, those that are alike once."""
    known: dict[object, Plan] = {}
    for one in given:
        key = one.layer.signature()
        if key not in known:
            plan = solve(
                one.layer, machine, problem=problem_for(machine), objective=objectives, time_limit_s=limit, jobs=1
            )
            if is_layers(plan):
                known[key] = plan
    return {one.layer.name: known[one.layer.signature()] for one in given}
