"""What the command line does for problems with plans of their own: banks, joint, mapping, engine, mesh."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from instances.applications import Applications
from instances.errors import InputError
from instances.network import Network
from solver import console, options
from solver.applications.ask import goals_of
from solver.applications.plan import ApplicationsPlan
from solver.applications.show import applications_rows, applications_status, show_applications
from solver.applications.solve import pick_application_engine, solve_applications
from solver.banks.plan import BankPlan
from solver.banks.readings import FIRST_LAYERS, FirstPin
from solver.banks.show import bank_rows, bank_status, show_banks
from solver.banks.solve import front_network, pick_bank_engine, solve_network
from solver.joint.plan import JointPlan
from solver.joint.show import joint_rows, joint_status, show_joint
from solver.joint.solve import pick_joint_engine, solve_joint
from solver.mapping.ask import mapping_aims
from solver.mapping.front import front_mapping
from solver.mapping.plan import MappingPlan
from solver.mapping.show import mapping_rows, mapping_status, show_mapping
from solver.mapping.solve import pick_mapping_engine, solve_mapping
from solver.mesh.plan import MeshPlan
from solver.mesh.show import mesh_rows, mesh_status, show_mesh
from solver.mesh.solve import mesh_aims, pick_mesh_engine, solve_mesh
from solver.network_plan import WholePlan
from solver.partial_engine.front import print_size_front
from solver.partial_engine.plan import EnginePlan
from solver.partial_engine.show import engine_rows, engine_status, show_engine
from solver.partial_engine.solve import engine_aims, pick_runs_engine, solve_engine
from solver.plan import Status
from solver.report import ratio, rows_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Wanted", "print_front", "refuse", "shown", "solve_whole", "whole"]


@dataclass(frozen=True)
class Wanted:
    """What was asked for."""

    network: Network
    machine: str
    engine: str
    objective: str | None
    pins: Sequence[str]
    settings: Sequence[str]
    time_limit_s: float | None
    profile: str | None = None
    applications: Applications | None = None
    layers: Sequence[str] | None = None

    def aims(self, usual: str) -> str:
        """The objectives, or the usual one of the problem."""
        return usual if self.objective is None else self.objective


def whole(
    machine: str, problem: str | None, settings: Sequence[str] | None, *, several: bool = False
) -> str | None:  # fmt: skip
    """Return the problem that is asked for if it plans whole networks.

    Raises
    ------
    InputError
        If it plans several applications and there is one network, or the other way round.
    """
    if several:
        if problem not in (None, "mapping", "applications"):
            raise InputError(f"problem {problem} plans one network; several applications are of problem applications")
        return "applications"
    if problem == "applications":
        raise InputError(
            "problem applications: name networks with their periods, such as squeezenet1_1@33ms,mobilenet_v1@40ms"
        )
    asked = problem or options.pick_machine(machine, tuple(settings or ())).problem
    return asked if asked in _PROBLEMS else None


def refuse(problem: str, **given: object) -> None:
    """Raise InputError for options that do not apply to whole networks; engine and mesh plan layers by name, too."""
    if problem in ("engine", "mesh"):
        given.pop("layer", None)
    wrong = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not for problem {problem}, which plans whole networks")


@dataclass(frozen=True)
class BankPins:
    """What pins fix: whether results may wait on chip for a sum, how the first layer is read; None: not by a pin."""

    waiting: bool | None = None
    first_layer: FirstPin | None = None


def bank_pins(pins: Sequence[str]) -> BankPins:
    """Return what pins of problem banks fix; raises InputError for others."""
    found = BankPins()
    for pin in pins:
        name, _, value = (part.strip() for part in pin.partition("="))
        if name == "residuals" and value in ("chip", "dram"):
            found = replace(found, waiting=value == "chip")
        elif name == "first_layer" and value in FIRST_LAYERS:
            found = replace(found, first_layer=value)
        else:
            raise InputError(
                f"pin {pin!r}: problem banks knows residuals=chip and residuals=dram, first_layer=patches, "
                "first_layer=plain and first_layer=either"
            )
    return found


P = TypeVar("P", bound=WholePlan)


@dataclass(frozen=True)
class _Problem(Generic[P]):
    """What differs from problem to problem.

    Attributes
    ----------
    check : callable
        Raises InputError for an engine that cannot do what is wanted.
    """

    check: Callable[[Wanted, str], object]
    solve: Callable[[Wanted, str], P]
    rows: Callable[[P], tuple[Sequence[str], list[list[str]]]]
    status: Callable[[P], str]

    def deliver(self, wanted: Wanted, rivals: Sequence[str], out: str | None, *, as_json: bool) -> Status:
        """Solve, write the plan, and print its table."""
        for name in (wanted.engine, *rivals):
            self.check(wanted, name)
        plan = self.solve(wanted, wanted.engine)
        saved = [] if out is None else [console.save(plan, out)]
        if as_json:
            console.emit(plan.to_json().rstrip())
            return plan.status
        lines = [_ratios(plan, {name: self.solve(wanted, name) for name in rivals})] if rivals else []
        lines += [self.status(plan), *saved]
        if plan.decided:
            console.emit_tables(rows_table(*self.rows(plan)), "", *lines)
        else:
            console.emit_tables(*lines)
        return plan.status


def _check_banks(wanted: Wanted, engine: str) -> None:
    aim = options.parse_objectives(wanted.aims("time"))[0]
    pick_bank_engine(engine, "time" if aim == "time" else "bytes")


def _check_mapping(wanted: Wanted, engine: str) -> None:
    mapping_aims(wanted.aims("period"))
    pick_mapping_engine(engine)


def _banks(wanted: Wanted, engine: str) -> BankPlan:
    pins = bank_pins(wanted.pins)
    return solve_network(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("time"),
        settings=wanted.settings, waiting=pins.waiting, first_layer=pins.first_layer, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _joint(wanted: Wanted, engine: str) -> JointPlan:
    return solve_joint(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("bytes"), pins=wanted.pins,
        settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _mapping(wanted: Wanted, engine: str) -> MappingPlan:
    return solve_mapping(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("period"), pins=wanted.pins,
        profile=wanted.profile, settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _check_applications(wanted: Wanted, engine: str) -> None:
    assert wanted.applications is not None
    goals_of(wanted.aims("response"), [one.name for one in wanted.applications.applications])
    pick_application_engine(engine)


def _applications(wanted: Wanted, engine: str) -> ApplicationsPlan:
    assert wanted.applications is not None
    return solve_applications(
        wanted.applications, wanted.machine, engine=engine, objective=wanted.aims("response"), pins=wanted.pins,
        profile=wanted.profile, settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _check_engine(wanted: Wanted, engine: str) -> None:
    engine_aims(wanted.aims("bytes"))
    pick_runs_engine(engine)


def _engine(wanted: Wanted, engine: str) -> EnginePlan:
    return solve_engine(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("bytes"), pins=wanted.pins,
        layers=wanted.layers, settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _check_mesh(wanted: Wanted, engine: str) -> None:
    mesh_aims(wanted.aims("dram"))
    pick_mesh_engine(engine)


def _mesh(wanted: Wanted, engine: str) -> MeshPlan:
    return solve_mesh(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("dram"), pins=wanted.pins,
        layers=wanted.layers, settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


_PROBLEMS: dict[
    str,
    _Problem[BankPlan]
    | _Problem[JointPlan]
    | _Problem[MappingPlan]
    | _Problem[ApplicationsPlan]
    | _Problem[EnginePlan]
    | _Problem[MeshPlan],
] = {
    "applications": _Problem(_check_applications, _applications, applications_rows, applications_status),
    "banks": _Problem(_check_banks, _banks, bank_rows, bank_status),
    "joint": _Problem(lambda _, engine: pick_joint_engine(engine), _joint, joint_rows, joint_status),
    "mapping": _Problem(_check_mapping, _mapping, mapping_rows, mapping_status),
    "engine": _Problem(_check_engine, _engine, engine_rows, engine_status),
    "mesh": _Problem(_check_mesh, _mesh, mesh_rows, mesh_status),
}


def solve_whole(problem: str, wanted: Wanted, *, compare: str, out: str | None, as_json: bool) -> Status:
    """Plan a network, print the table of its layers, and write the plan."""
    if wanted.profile is not None and problem not in ("mapping", "applications"):
        raise InputError(f"--profile: not for problem {problem}, only mapping takes measured times")
    rivals = list(dict.fromkeys(name.strip() for name in compare.split(",") if name.strip()))
    return _PROBLEMS[problem].deliver(wanted, rivals, out, as_json=as_json)


def shown(plan: WholePlan, layer: str | None) -> str:
    """Return a plan of a whole network for people, or one layer or task of it."""
    if isinstance(plan, ApplicationsPlan):
        return show_applications(plan, layer)
    if isinstance(plan, MappingPlan):
        return show_mapping(plan, layer)
    if isinstance(plan, JointPlan):
        return show_joint(plan, layer)
    if isinstance(plan, EnginePlan):
        return show_engine(plan, layer)
    if isinstance(plan, MeshPlan):
        return show_mesh(plan, layer)
    assert isinstance(plan, BankPlan)
    return show_banks(plan, layer)


def _ratios(plan: WholePlan, others: dict[str, P]) -> str:
    """One line that compares other engines."""
    parts = []
    for name, other in others.items():
        if other.objective is None or plan.objective is None:
            parts.append(f"{name} has no plan")
        else:
            parts.append(f"{name} {ratio(other.objective.value, plan.objective.value)}")
    return f"{plan.objectives[0]} of others over {plan.engine}: {', '.join(parts)}"


def print_front(problem: str, wanted: Wanted, axes: str, *, out: str | None, as_json: bool) -> None:
    """Print the exact front of a network, and write its plans.

    Raises
    ------
    InputError
        If the problem has no front of these axes.
    """
    if problem == "engine":
        print_size_front(wanted.network, wanted.machine, axes, wanted.pins, wanted.settings, out=out, as_json=as_json)
        return
    known = {"banks": "bytes,time", "mapping": "period,energy"}
    if problem not in known:
        raise InputError(f"problem {problem} has no front; fronts of tiling are layer by layer")
    if axes not in (known[problem], ""):
        raise InputError(f"axes {axes!r}: problem {problem} has the front {known[problem]}")
    plans: Sequence[BankPlan] | Sequence[MappingPlan]
    if problem == "banks" and wanted.engine != options.AUTO:
        raise InputError("--engine: the front of problem banks has one; only problem mapping has a choice")
    if problem == "banks":
        pins = bank_pins(wanted.pins)
        plans = front_network(
            wanted.network, wanted.machine, settings=wanted.settings, waiting=pins.waiting,
            first_layer=pins.first_layer, time_limit_s=wanted.time_limit_s,
        )  # fmt: skip
        proven = all(plan.status == "OPTIMAL" for plan in plans)
    else:
        front = front_mapping(
            wanted.network, wanted.machine, engine=wanted.engine, pins=wanted.pins, profile=wanted.profile,
            settings=wanted.settings, time_limit_s=wanted.time_limit_s,
        )  # fmt: skip
        plans, proven = front.plans, front.proven
    if not plans:
        why = "no plan keeps the pins" if proven else "no plan in this time, give a larger --time-limit"
        raise InputError(f"network {wanted.network.name}: {why}")
    kind = {"banks": "certile-bank-front/1", "mapping": "certile-mapping-front/1"}[problem]
    text = json.dumps(
        {"format": kind, "proven": proven, "plans": [plan.model_dump(mode="json") for plan in plans]}, indent=1
    )
    if out is not None:
        console.write(out, text + "\n")
    if as_json:
        console.emit(text)
        return
    said = "proven: no other plan is on the front" if proven else "not all of the front is proven in this time"
    console.emit_tables(_front_table(plans), "", f"{len(plans)} plans, {said}; each replayed")
    if out is not None:
        console.emit(f"written to {out}")


def _front_table(plans: Sequence[BankPlan] | Sequence[MappingPlan]) -> Table:
    """The measures of every plan."""
    scale, rows = plans[0].machine_data.tick_ps / 1e6, []
    for number, plan in enumerate(plans, 1):
        if isinstance(plan, MappingPlan) and plan.measures is not None:
            cells = [f"{plan.measures.period * scale:,.0f}", f"{plan.measures.energy / 1e12:,.2f}"]
            cells += [
                "no bound" if plan.gap is None else f"{100 * plan.gap:.3g} %",
                ",".join(map(str, plan.cpu_config)),
            ]
        elif isinstance(plan, BankPlan) and plan.measures is not None:
            cells = [f"{plan.measures.bytes:,}", f"{plan.measures.time * scale:,.1f}"]
            cells.append(f"{(plan.pe_delay_ticks or 0) * scale:,.1f}")
        rows.append([str(number), *cells, ""])
    mapped = isinstance(plans[0], MappingPlan)
    heads = ("period (us)", "energy (mJ)", "energy gap", "cores") if mapped else ("bytes", "time (us)", "waits (us)")
    return rows_table(("plan", *heads, ""), rows)
