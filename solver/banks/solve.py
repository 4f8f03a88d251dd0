"""Plan a whole network on a machine with memory banks, and verify the plan."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from formulations.banks.bounds import Point
from formulations.banks.numbers import numbered
from formulations.banks.states import BankPlan as Decisions
from formulations.pins import Decision, parse_pins
from hwmodels.banks.clock import Clock
from hwmodels.banks.replay import replay_banks
from hwmodels.banks.replay_cycles import spent_on
from hwmodels.banks.replay_time import Moved, Spent
from hwmodels.outcome import MEASURES
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks, Machine
from instances.network import Network
from solver.banks.base import Asked, Decided
from solver.banks.engines import BANK_ENGINES, HASTE, BankEngine
from solver.banks.plan import (
    FRONT,
    BankAction,
    BankOptions,
    BankPlan,
    BankReplay,
    BankTile,
    StagePlan,
    Volume,
)
from solver.banks.readings import FIRST_LAYERS, FirstLayer, FirstPin, answered, floor_of, front_of, readings
from solver.network_plan import head
from solver.plan import Measures, Objective, Status, proof
from solver.question import Question
from solver.verify import PlanMismatch, gap_of

__all__ = [
    "DECISIONS", "Figures", "clock_of", "derived", "figures", "front", "may_wait", "setting_of", "solve",
]  # fmt: skip


DECISIONS = {
    "residuals": Decision(
        "residuals=chip or residuals=dram: where the second operand of a sum may wait", ("chip", "dram")
    ),
    "first_layer": Decision("first_layer=patches, plain or either: how the first convolution is read", FIRST_LAYERS),
}


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


@dataclass(frozen=True)
class _Posed:
    """A question in the terms of engines: what they are asked of the first reading, all readings, and the floor."""

    asked: Asked
    allowed: Mapping[FirstLayer, Stages]
    floor: Point
    options: BankOptions


def _posed(question: Question, aim: str) -> _Posed:
    """Return what is asked; raises InputError."""
    machine, pins = question.machine, {pin.name: pin for pin in parse_pins(question.pins, DECISIONS).pins}
    if strange := [str(pin) for pin in pins.values() if pin.op != "="]:
        raise InputError(f"pin {strange[0]}: only = applies")
    first = cast(FirstPin, pins["first_layer"].value) if "first_layer" in pins else None
    allowed = readings(question.network, machine, first)
    assert machine.banks is not None
    waits = may_wait(machine, pins["residuals"].value == "chip" if "residuals" in pins else None)
    found, clock = next(iter(allowed.values())), clock_of(machine)
    options = BankOptions(
        waiting=waits, time_limit_s=question.time_limit_s, settings=question.settings, first_layer=first
    )
    asked = Asked(found, machine.banks, clock, aim, waits, question.time_limit_s)
    return _Posed(asked, allowed, floor_of(allowed, machine.banks, clock), options)


def solve(question: Question) -> BankPlan:
    """Plan a network on a machine with memory banks: which tiles stay in which bank, and every control step.

    The plan has been replayed bank by bank and in time; bytes and ticks must agree with the formulation's.

    Raises
    ------
    InputError
        For bad input, and if no plan fits in the banks.
    PlanMismatch
        If engine, formulation and replay disagree: a defect of certile.
    """
    start, chosen = time.monotonic(), BANK_ENGINES[question.engine]
    posed = _posed(question, "time" if question.objectives[0] == "time" else "bytes")
    asked, allowed = posed.asked, posed.allowed
    hasty = replace(asked, time_limit_s=None)
    with question.watch() as watch:
        said, name = watch.run(lambda: answered(chosen, asked, allowed), lambda: answered(HASTE, hasty, allowed))
        if said.plan is None and said.status == "NO_SOLUTION_FOUND" and chosen.proves:
            said, name = answered(HASTE, hasty, allowed)
        return _plan(question, chosen, posed, _lexicographic(said, question.objectives), name, start)


def _lexicographic(said: Decided, objectives: tuple[str, ...]) -> Decided:
    """OPTIMAL if every objective asked for is proven; energy rises with bytes and nothing else."""
    proven = objectives if said.status == "OPTIMAL" else ()
    if not said.tied:
        first = objectives[0] == "time"
        proven = tuple(m for m in proven if (m == "time") == first)
    status = said.status if len(proven) in (0, len(objectives)) else "FEASIBLE"
    return replace(said, status=status, stats={**said.stats, **proof(objectives, proven)})


def front(question: Question) -> tuple[BankPlan, ...]:
    """Return the exact front of bytes and time of a network, by bytes: all plans that no other beats in both.

    Errors and checks as in `solve`. A plan's status is OPTIMAL if the whole front is proven: it moves the fewest bytes
    of all that take no more time (`BankOptions.time_at_most`).
    """
    start, posed = time.monotonic(), _posed(question, "bytes")
    said, names = front_of(posed.asked, posed.allowed)
    on_front, plans = replace(question, objectives=FRONT), []
    for (plan, ticks), name in zip(said.plans, names, strict=True):
        status: Status = "OPTIMAL" if said.proven else "FEASIBLE"
        bound = plan.volume.total if said.proven else said.bytes_bound
        decided = Decided(plan, bound, status, stats={"labels": said.labels, "states": said.states})
        here = replace(posed, options=posed.options.model_copy(update={"time_at_most": ticks}))
        plans.append(_plan(on_front, BANK_ENGINES["dynamic"], here, decided, name, start))
    return tuple(plans)


def _plan(
    question: Question, engine: BankEngine, posed: _Posed, said: Decided, name: FirstLayer, start: float
) -> BankPlan:
    """The plan of an engine's answer for a reading of the first layer; raises PlanMismatch if it is wrong."""
    network, machine, objectives, floor = question.network, question.machine, question.objectives, posed.floor
    asked = replace(posed.asked, found=posed.allowed[name])
    fields = head(
        question, "banks", engine.name, status=said.status, start=start, engine_version=said.versions, stats=said.stats
    )
    fields |= {
        "options": posed.options, "measures": None, "pe_delay_ticks": None, "compulsory_bytes": floor.bytes,
        "layers": (), "replay": BankReplay(ok=None, faults=()),
    }  # fmt: skip
    if said.plan is None:
        if said.status == "NO_SOLUTION_FOUND" and (engine.proves or said.stats.get("interrupted")):
            fields["bound"] = _bound(network, machine, objectives[0], said, floor)
        note = said.stats.get("note")
        return BankPlan.model_validate({**fields, "conflicts": (str(note),) if note else ()})
    runs = numbered(said.plan, asked.banks)
    seen = figures(asked.found, machine, runs)
    _refuse(engine, said.plan, seen, asked)
    fields |= derived(asked.found, network, machine, runs, seen, objectives[0])
    value, bound = getattr(fields["measures"], objectives[0]), _bound(network, machine, objectives[0], said, floor)
    if said.status == "OPTIMAL" and bound != value:
        raise PlanMismatch(f"network {network.name}, engine {engine.name}: OPTIMAL at {value} with bound {bound}")
    return BankPlan.model_validate({**fields, "bound": bound, "gap": gap_of(value, bound)})


def _refuse(engine: BankEngine, plan: Decisions, seen: Figures, asked: Asked) -> None:
    """Raise PlanMismatch unless formulation and replay say the same."""
    faults = list(seen.moved.faults)
    volume = plan.volume
    for name, one, two in zip(volume._fields, volume, seen.moved.parts, strict=True):
        if one != two:
            faults.append(f"{name} [bytes]: priced {one}, replayed {two}")
    if not faults:
        ticks = asked.times.of(plan)
        if ticks != seen.ticks:
            faults.append(f"time [ticks]: priced {ticks}, replayed {seen.ticks}")
    if faults:
        raise PlanMismatch(f"network {asked.found.network}, engine {engine.name}: {'; '.join(faults[:5])}")


def _bound(network: Network, machine: Machine, objective: str, said: Decided, floor: Point) -> int:
    """The engine's bound in the unit of the objective; for a policy what no plan can do without."""
    if objective == "time":
        return said.bound or floor.ticks
    fewest = said.bound or floor.bytes
    return machine.byte_fj * fewest + machine.mac_fj * network.macs if objective == "energy" else fewest


def derived(
    found: Stages, network: Network, machine: Machine, runs: Sequence[StageRun], seen: Figures, objective: str
) -> dict[str, object]:
    """Return the fields of a plan that follow from its program and the replay of it."""
    energy = machine.byte_fj * seen.moved.total + machine.mac_fj * network.macs
    return {
        "measures": Measures(time=seen.ticks, bytes=seen.moved.total, energy=energy), "pe_delay_ticks": seen.delay,
        "objective": _objective(objective, network, machine, seen), "replay": BankReplay(ok=True, faults=()),
        "layers": _layers(found, machine, runs, seen),
    }  # fmt: skip


def _objective(measure: str, network: Network, machine: Machine, seen: Figures) -> Objective:
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


def _layers(found: Stages, machine: Machine, runs: Sequence[StageRun], seen: Figures) -> tuple[StagePlan, ...]:
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
