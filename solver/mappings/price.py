"""`price`: a mapping that a person wrote, or another tool found, priced, replayed, and compared with the optimum."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from instances.errors import InputError
from instances.foreign import is_foreign, read_workloads
from instances.machine import Machine
from instances.network import Network
from instances.products import Workload
from instances.workload import Layer
from solver.mappings.compare import reasons
from solver.mappings.given import Mapped, Remedy, housed, overflows, plan_of, problem_for, remedies
from solver.mappings.improve import Improvement, options
from solver.mappings.read import Mappings, read
from solver.mappings.text import text_of
from solver.options import as_texts, check_time_limit, pick_layers, pick_machine, pick_target
from solver.plan import Status
from solver.solve import Texts, ask, solve
from solver.tables import Column, Sheet, ratio, render
from solver.tiling.plan import LayerPlan, LayersPlan

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
    row: LayerPlan | None
    """What the plan says of it; None where it does not fit."""
    best: LayerPlan | None
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
    plan: LayersPlan | None
    """Of engine `given`, verified like every plan; None if a layer does not fit."""
    optimum: LayersPlan | None

    @property
    def fits(self) -> bool:
        """Whether every layer fits."""
        return all(not one.overflows for one in self.layers)

    @property
    def status(self) -> Status:
        """FEASIBLE, or INFEASIBLE where it does not fit."""
        return "FEASIBLE" if self.fits else "INFEASIBLE"

    def __str__(self) -> str:
        return "\n".join(_told(self))


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
    asked, question = ask(pick_target(target), mine, problem=problem_for(mine), objective=objective)
    objectives, limit = question.objectives, check_time_limit(time_limit_s)
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
        found.append(LayerPrice(one, mine, objectives, over[k], changes, row, optimum and optimum.layers[0], better))
    whole = next(iter(best.values())) if len(best) == 1 else None
    return PricedMapping(tuple(found), plan, whole)


def _alone(
    one: Mapped, machine: Machine, objectives: tuple[str, ...], over: dict[str, tuple[int, int]]
) -> LayerPlan | None:
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
) -> dict[str, LayersPlan]:
    """The optimum of every layer, those that are alike once."""
    known: dict[object, LayersPlan] = {}
    for one in given:
        key = one.layer.signature()
        if key not in known:
            plan = solve(
                one.layer, machine, problem=problem_for(machine), objective=objectives, time_limit_s=limit, jobs=1
            )
            if isinstance(plan, LayersPlan):
                known[key] = plan
    return {one.layer.name: known[one.layer.signature()] for one in given}


# ---- in words --------------------------------------------------------------------------------------------------------


def _told(priced: PricedMapping) -> Iterator[str]:
    """Lines about every layer."""
    for k, one in enumerate(priced.layers):
        yield from ([""] if k else [])
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
    if best is None:
        return
    if best.objective is None or best.measures is None or best.counts is None or one.times is None:
        yield "there is no optimum to compare with: none was found in time"
        return
    first = one.objectives[0]
    known = "the minimum, proven" if best.status == "OPTIMAL" else f"the best known; no mapping is below {best.bound:,}"
    verb = {"bytes": "moves", "time": "takes", "energy": "needs"}[first]
    what = {"bytes": "bytes", "time": "ticks", "energy": "fJ"}[first]
    value, least = row.objective.value, best.objective.value
    if value <= least:
        yield f"Your mapping {verb} {value:,} {what}: {known}."
        return
    yield f"Your mapping {verb} {one.times:.2f} times {known}: {value:,} {what} against {least:,}."
    yield f"The optimum: {text_of(best.schedule.to_nest()) if best.schedule else ''}"
    nest = one.mapped.nest
    yield from (
        f"  {line}" for line in reasons(one.mapped.layer, one.machine, nest, _bytes(row), _bytes(best), known="it")
    )


def _bytes(row: LayerPlan) -> dict[str, int]:
    return {} if row.counts is None else {str(name): one.bytes for name, one in row.counts.by_operand.items()}


def _sheet(row: LayerPlan, best: LayerPlan | None) -> Sheet:
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
        columns += [
            Column("optimum", ["-" if other is None else f"{other:,}" for _, _, other in rows]),
            Column("x", [ratio(value, other) for _, value, other in rows]),
        ]  # fmt: skip
    return Sheet(columns)


def _improvements(one: LayerPrice) -> Sheet:
    """What keeping a part of a mapping costs."""
    first = one.objectives[0]
    own = one.row.objective.value if one.row and one.row.objective else None
    rows = [("all: your mapping", own, one.mapped.nest, "" if own else "does not fit", None)]
    rows += [
        (better.kept, better.measures[first] if better.measures else None, better.nest,
         better.status if not better.note else better.note if better.nest is None else better.note, better.bound)
        for better in one.improved
    ]  # fmt: skip
    least = rows[-1][1]
    return Sheet([
        Column("kept", [row[0] for row in rows], "what stays as you gave it; the rest is the best there is", words=True),
        Column(first, ["-" if row[1] is None else f"{row[1]:,}" for row in rows]),
        Column("x", [ratio(row[1], least) for row in rows], "over the optimum"),
        Column("status", [row[3] for row in rows], words=True),
        Column("mapping", ["-" if row[2] is None else text_of(row[2]) for row in rows], words=True),
    ])  # fmt: skip
