"""`solve_network`: plan a whole network on a machine with memory banks, and verify the plan."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.banks.network import Walk
from formulations.banks.numbers import numbered
from formulations.banks.states import BankPlan as Decisions
from formulations.banks.times import Times
from hwmodels.banks.clock import Clock
from hwmodels.banks.replay import replay_banks
from hwmodels.banks.replay_cycles import spent_on
from hwmodels.banks.replay_moved import Moved
from hwmodels.banks.replay_time import Spent
from hwmodels.outcome import MEASURES
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks, Machine
from instances.network import Network
from solver.banks.base import Asked, Decided
from solver.banks.engines import BANK_ENGINES, HASTE, BankEngine
from solver.banks.plan import (
    BANKS_FORMAT,
    FRONT,
    BankAction,
    BankOptions,
    BankPlan,
    BankReplay,
    BankTile,
    StagePlan,
    Volume,
)
from solver.banks.readings import FirstPin, answered, floor_of, front_of, readings
from solver.options import (
    AUTO,
    as_texts,
    check_time_limit,
    parse_objectives,
    pick_machine,
    pick_network,
    unknown,
)
from solver.plan import Measures, Objective, Status, digest, proof, version
from solver.verify import PlanMismatch, gap_of
from solver.watch import Watch

__all__ = [
    "Figures", "clock_of", "figures", "front_network", "may_wait", "pick_bank_engine", "setting_of", "solve_network",
]  # fmt: skip


class _Setting(NamedTuple):
    """The stages of a plan as they are read, banks and clock, and what no plan of any reading can do without."""

    found: Stages
    banks: Banks
    clock: Clock
    floor: Point


@dataclass(frozen=True)
class Figures:
    """What the replay of a bank program finds."""

    moved: Moved
    spent: dict[str, Spent]

    @property
    def ticks(self) -> int:
        """Until the last stage ends."""
        return sum(one.ticks for one in self.spent.values())

    @property
    def delay(self) -> int:
        """What of it the processing elements wait."""
        return sum(s.waits_for_maps + s.waits_for_weights + s.waits_for_writes for s in self.spent.values())


def setting_of(network: Network, machine: Machine, first_layer: FirstPin | None = None) -> tuple[Stages, Banks, Clock]:
    """Return the stages of a network on a machine, its banks and its clock.

    Parameters
    ----------
    first_layer : {"patches", "plain", "either"}, optional
        How the first layer is read; over patches by default, if the machine may.

    Raises
    ------
    InputError
        If the machine has no banks, the network has no bank program, or no first layer that may be read like that.
    """
    found = readings(network, machine, first_layer)
    assert machine.banks is not None
    return next(iter(found.values())), machine.banks, clock_of(machine)


def clock_of(machine: Machine) -> Clock:
    """Return the clock of a machine with banks."""
    assert machine.banks is not None
    cycle = machine.compute.cycle_ticks
    return Clock(machine.transfer, cycle, machine.banks.stage_cycles * cycle, machine.banks.by_cycle)


def may_wait(machine: Machine, waiting: bool | None) -> bool:
    """Return whether results may wait on chip for a sum: what is asked for, or what the machine says.

    Raises
    ------
    InputError
        If it is asked for, and the machine cannot.
    """
    able = machine.banks is not None and machine.banks.residuals == "chip"
    if waiting and not able:
        raise InputError(
            f"machine {machine.name}: the second operand of a sum cannot wait on chip (banks.residuals is dram); "
            "--set banks.residuals=chip for a chip that can"
        )
    return able if waiting is None else waiting


def figures(found: Stages, machine: Machine, runs: Sequence[StageRun]) -> Figures:
    """Replay a bank program, bank by bank and in time."""
    assert machine.banks is not None
    moved = replay_banks(found, machine.banks, runs)
    if moved.faults:
        return Figures(moved, {})
    writing, cycle = machine.banks.writes == "bus", machine.compute.cycle_ticks
    return Figures(moved, spent_on(machine.banks, moved, machine.transfer, cycle, writing=writing))


def pick_bank_engine(name: str, objective: str) -> BankEngine:
    """Return an engine for banks; raises InputError with the known ones."""
    name = "dynamic" if name == AUTO else name
    if name not in BANK_ENGINES:
        raise unknown("engine for banks", name, [AUTO, *BANK_ENGINES])
    engine = BANK_ENGINES[name]
    if objective not in engine.objectives:
        raise InputError(f"engine {name} minimises bytes only: use dynamic for objective {objective}")
    return engine


def solve_network(
    target: Network | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str],
    *,
    engine: str = AUTO,
    objective: str | Sequence[str] = "time",
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
    waiting: bool | None = None,
    first_layer: FirstPin | None = None,
    time_limit_s: float | None = None,
) -> BankPlan:
    """Plan a network on a machine with memory banks: which tiles stay in which bank, and every control step.

    The plan has been replayed bank by bank and in time; bytes and ticks must agree with the formulation's.

    Parameters
    ----------
    target : Network, str or path
    machine : Machine, str or path
        One with banks, such as ``midap``.
    engine : str
        ``auto`` (dynamic programming), or a name from ``certile list engines``.
    objective : str or sequence of str
        ``time``, ``bytes`` or ``energy`` first; ties are broken by bytes, or by time.
    settings : texts or mapping
        Machine fields to override: ``["banks.count=8"]``.
    waiting : bool, optional
        Whether results may wait on chip for a sum (the published compiler streams them from DRAM); by default what the
        machine says (`Banks.residuals`).
    first_layer : {"patches", "plain", "either"}, optional
        Whether the first convolution is a product over patches, where the machine may (`Banks.patch_channels`); with
        ``either`` engines that optimise choose. By default what the machine says (`Banks.first_layer`).
    time_limit_s : float, optional
        Then the best plan so far is returned with its bound.

    Raises
    ------
    InputError
        For bad input, and if no plan fits in the banks.
    PlanMismatch
        If engine, formulation and replay disagree: a defect of certile.
    """
    start = time.monotonic()
    objectives, limit = parse_objectives(objective), check_time_limit(time_limit_s)
    set_fields = as_texts("settings", settings)
    real, network = pick_machine(machine, set_fields), pick_network(target, "banks")
    aim = "time" if objectives[0] == "time" else "bytes"
    chosen = pick_bank_engine(engine, aim)
    allowed = readings(network, real, first_layer)
    assert real.banks is not None
    waits = may_wait(real, waiting)
    options = BankOptions(waiting=waits, time_limit_s=limit, settings=set_fields, first_layer=first_layer)
    asked = Asked(next(iter(allowed.values())), real.banks, clock_of(real), aim, waits, limit)
    with Watch(limit) as watch:
        said, name = watch.run(
            lambda: answered(chosen, asked, allowed),
            lambda: answered(HASTE, replace(asked, time_limit_s=None), allowed),
        )
        if said.plan is None and said.status == "NO_SOLUTION_FOUND" and chosen.proves:
            said, name = answered(HASTE, replace(asked, time_limit_s=None), allowed)
        setting = _Setting(allowed[name], real.banks, asked.clock, floor_of(allowed, real.banks, asked.clock))
        wall_s = time.monotonic() - start
        return _plan(network, real, chosen, objectives, options, _lexicographic(said, objectives), setting, wall_s)


def _lexicographic(said: Decided, objectives: tuple[str, ...]) -> Decided:
    """OPTIMAL if every objective asked for is proven; energy rises with bytes and nothing else."""
    proven = objectives if said.status == "OPTIMAL" else ()
    if not said.tied:
        first = objectives[0] == "time"
        proven = tuple(m for m in proven if (m == "time") == first)
    status = said.status if len(proven) in (0, len(objectives)) else "FEASIBLE"
    return replace(said, status=status, stats={**said.stats, **proof(objectives, proven)})


def front_network(
    target: Network | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str],
    *,
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
    waiting: bool | None = None,
    first_layer: FirstPin | None = None,
    time_limit_s: float | None = None,
) -> tuple[BankPlan, ...]:
    """Return the exact front of bytes and time of a network, by bytes: all plans that no other beats in both.

    Parameters, errors and checks as in `solve_network`. A plan's status is OPTIMAL if the whole front is proven: it
    moves the fewest bytes of all that take no more time (`BankOptions.time_at_most`).
    """
    start = time.monotonic()
    limit, set_fields = check_time_limit(time_limit_s), as_texts("settings", settings)
    real, network = pick_machine(machine, set_fields), pick_network(target, "banks")
    allowed = readings(network, real, first_layer)
    assert real.banks is not None
    clock, waits = clock_of(real), may_wait(real, waiting)
    floor = floor_of(allowed, real.banks, clock)
    said, names = front_of(Asked(next(iter(allowed.values())), real.banks, clock, "bytes", waits, limit), allowed)
    plans = []
    for (plan, ticks), name in zip(said.plans, names, strict=True):
        setting = _Setting(allowed[name], real.banks, clock, floor)
        options = BankOptions(
            waiting=waits, time_limit_s=limit, settings=set_fields, time_at_most=ticks, first_layer=first_layer
        )
        status: Status = "OPTIMAL" if said.proven else "FEASIBLE"
        bound = plan.volume.total if said.proven else said.bytes_bound
        decided = Decided(plan, bound, status, stats={"labels": said.labels, "states": said.states})
        wall_s = time.monotonic() - start
        engine = BANK_ENGINES["dynamic"]
        plans.append(_plan(network, real, engine, FRONT, options, decided, setting, wall_s))
    return tuple(plans)


def _plan(
    network: Network, machine: Machine, engine: BankEngine, objectives: tuple[str, ...], options: BankOptions,
    said: Decided, setting: _Setting, wall_s: float,
) -> BankPlan:  # fmt: skip
    found = setting.found
    fields: dict[str, object] = {
        "format": BANKS_FORMAT, "certile": version(), "problem": "banks", "network": network.name,
        "machine": machine.name, "engine": engine.name, "engine_version": said.versions, "objectives": objectives,
        "unit": MEASURES[objectives[0]], "options": options, "status": said.status, "objective": None,
        "bound": None, "gap": None, "measures": None, "pe_delay_ticks": None,
        "compulsory_bytes": setting.floor.bytes, "wall_s": wall_s, "stats": said.stats, "layers": (),
        "replay": BankReplay(ok=None, faults=()),
        "network_digest": digest(network.model_dump(mode="json")),
        "machine_digest": digest(machine.model_dump(mode="json")), "network_data": network, "machine_data": machine,
    }  # fmt: skip
    if said.plan is None:
        if said.status == "NO_SOLUTION_FOUND":
            fields["bound"] = _bound(network, machine, objectives[0], said, setting.floor)
        note = said.stats.get("note")
        return BankPlan.model_validate({**fields, "conflicts": (str(note),) if note else ()})
    runs = numbered(said.plan, setting.banks)
    seen = figures(found, machine, runs)
    _refuse(engine, said.plan, seen, setting, options)
    measures = measures_of(network, machine, seen)
    value = getattr(measures, objectives[0])
    bound = _bound(network, machine, objectives[0], said, setting.floor)
    fields |= {
        "measures": measures, "pe_delay_ticks": seen.delay, "replay": BankReplay(ok=True, faults=()),
        "objective": objective_of(objectives[0], network, machine, seen),
        "bound": bound, "gap": gap_of(value, bound), "layers": stage_plans(found, machine, runs, seen),
    }  # fmt: skip
    if said.status == "OPTIMAL" and bound != value:
        raise PlanMismatch(f"network {network.name}, engine {engine.name}: OPTIMAL at {value} with bound {bound}")
    return BankPlan.model_validate(fields)


def _refuse(engine: BankEngine, plan: Decisions, seen: Figures, setting: _Setting, options: BankOptions) -> None:
    """Raise PlanMismatch unless formulation and replay say the same."""
    found, banks, clock, _ = setting
    faults = list(seen.moved.faults)
    volume = plan.volume
    for name, one, two in zip(volume._fields, volume, seen.moved.parts, strict=True):
        if one != two:
            faults.append(f"{name} [bytes]: priced {one}, replayed {two}")
    if not faults:
        ticks = Times(Walk(found, banks, waiting=options.waiting), clock).of(plan)
        if ticks != seen.ticks:
            faults.append(f"time [ticks]: priced {ticks}, replayed {seen.ticks}")
    if faults:
        raise PlanMismatch(f"network {found.network}, engine {engine.name}: {'; '.join(faults[:5])}")


def _bound(network: Network, machine: Machine, objective: str, said: Decided, floor: Point) -> int:
    """The engine's bound in the unit of the objective; for a policy what no plan can do without."""
    if objective == "time":
        return said.bound or floor.ticks
    fewest = said.bound or floor.bytes
    return machine.byte_fj * fewest + machine.mac_fj * network.macs if objective == "energy" else fewest


def measures_of(network: Network, machine: Machine, seen: Figures) -> Measures:
    """Return ticks, bytes and energy."""
    energy = machine.byte_fj * seen.moved.total + machine.mac_fj * network.macs
    return Measures(time=seen.ticks, bytes=seen.moved.total, energy=energy)


def objective_of(measure: str, network: Network, machine: Machine, seen: Figures) -> Objective:
    """Return the objective with the terms that sum to it."""
    kinds = ("load", "weight", "streamed", "bias", "write")
    if measure == "time":
        waits = {
            "wait_maps": sum(one.waits_for_maps for one in seen.spent.values()),
            "wait_weights": sum(one.waits_for_weights for one in seen.spent.values()),
        }
        if machine.banks is not None and machine.banks.writes == "bus":
            waits["wait_writes"] = sum(one.waits_for_writes for one in seen.spent.values())
        terms = {"compute": seen.ticks - sum(waits.values()), **waits}
    else:
        price = machine.byte_fj if measure == "energy" else 1
        terms = {kind: price * part for kind, part in zip(kinds, seen.moved.parts, strict=True)}
        if measure == "energy":
            terms["MAC"] = machine.mac_fj * network.macs
    return Objective.model_validate({"value": sum(terms.values()), "unit": MEASURES[measure], "terms": terms})


def stage_plans(found: Stages, machine: Machine, runs: Sequence[StageRun], seen: Figures) -> tuple[StagePlan, ...]:
    """Return every stage with its program and its figures."""
    assert machine.banks is not None
    plans = []
    for run in runs:
        stage, spent, parts = run.stage, seen.spent[run.stage.name], seen.moved.stages[run.stage.name]
        anew = stage.anew(machine.banks)
        others = [name for name in (stage.source, *stage.streamed) if name != run.source]
        plans.append(
            StagePlan(
                layer=stage.name, kind=stage.kind, source=run.source, target=stage.target, streamed=tuple(others),
                backwards=run.backwards, initial=sum(not tile.loaded for tile in run.tiles),
                tiles=tuple(BankTile(bank=t.bank, first=t.first, end=t.end, loaded=t.loaded) for t in run.tiles),
                actions=tuple(BankAction.model_validate({"do": do, "tiles": tiles}) for do, tiles in run.actions),
                results=tuple(BankTile(bank=t.bank, first=t.first, end=t.end) for t in run.results),
                mirrored=run.last, keep=run.keep, retain=run.retain,
                weights="none" if not stage.weight_bytes else "each_step" if anew else "once",
                volume=Volume(
                    load=parts[0], weight=parts[1], streamed=parts[2], bias=parts[3], write=parts[4], total=sum(parts)
                ),
                ticks=spent.ticks, wait_maps_ticks=spent.waits_for_maps, wait_weights_ticks=spent.waits_for_weights,
                wait_writes_ticks=spent.waits_for_writes,
            )
        )  # fmt: skip
        if stage.pooled is not None:
            plans.append(plans[-1].average())
    return tuple(plans)
