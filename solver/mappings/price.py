"""`price`: a mapping that a person wrote, or another tool found, priced, replayed, and compared with the optimum."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from instances.errors import InputError
from instances.foreign import is_foreign, read_workloads
from instances.machine import Machine
from instances.network import Network
from instances.problems import nested
from instances.products import Workload
from instances.workload import Layer
from solver.mappings.given import Mapped, Remedy, housed, overflows, plan_of, problem_for, remedies
from solver.mappings.improve import Improvement, options
from solver.mappings.read import Mappings, read
from solver.mappings.told import told
from solver.options import as_texts, check_time_limit, pick_layers, pick_machine, pick_target
from solver.plan import Plan, Status
from solver.solve import Texts, ask, solve
from solver.tiling.rows import LayerRow, is_layers

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

    layers: tuple[LayerPrice, ...]
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
        or a nest or text for each layer by its name.
    layers : names, optional
        The layers that it is for; by default all that it names.
    level : str, optional
        Of another tool's mapping, the memory whose traffic is priced; by default the outermost on the chip with tiles.
    compare, improve : bool
        Whether to look for the optimum; and for the best mappings with the same loop order, and with the same tile.
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
        better = tuple(options(one, mine, objectives, optimum, limit)) if improve and optimum else ()
        changes = tuple(remedies(one, mine)) if over[k] else ()
        row = plan.layers[k] if plan else _alone(one, mine, objectives, over[k])
        found.append(
            LayerPrice(one, mine, objectives, over[k], changes, row, optimum.layers[0] if optimum else None, better)
        )
    whole = next(iter(best.values())) if len(best) == 1 else None
    return PricedMapping(tuple(found), plan, whole)


def _alone(
    one: Mapped, machine: Machine, objectives: tuple[str, ...], over: dict[str, tuple[int, int]]
) -> LayerRow | None:
    """What a plan would say of a layer that fits, where another one does not."""
    return None if over else plan_of([one], machine, objectives, one.layer.name).layers[0]


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
