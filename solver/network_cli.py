"""What the command line does for the problems of whole networks: ``banks`` and ``joint``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from instances.errors import InputError
from instances.network import Network
from solver import options, tools
from solver.bank_plan import BankPlan
from solver.bank_show import bank_rows, bank_status
from solver.bank_solve import front_network, pick_bank_engine, solve_network
from solver.joint_plan import JointPlan
from solver.joint_show import joint_rows, joint_status
from solver.joint_solve import pick_joint_engine, solve_joint
from solver.network_plan import NetworkPlan
from solver.plan import Status
from solver.report import ratio, rows_table

__all__ = ["Wanted", "print_front", "refuse", "residuals", "solve_whole", "whole"]

_WHOLE = ("banks", "joint")


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

    def aims(self, usual: str) -> str:
        """The objectives, or the usual one of the problem."""
        return usual if self.objective is None else self.objective


def whole(machine: str, problem: str | None, settings: Sequence[str] | None) -> str | None:
    """Return the problem that is asked for if it plans whole networks."""
    asked = problem or options.pick_machine(machine, tuple(settings or ())).problem
    return asked if asked in _WHOLE else None


def refuse(problem: str, **given: object) -> None:
    """Raise InputError for options that do not apply to whole networks."""
    wrong = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not for problem {problem}, which plans whole networks")


def residuals(pins: Sequence[str]) -> bool:
    """Return whether results may wait on chip for a sum; raises InputError for other pins."""
    waiting = True
    for pin in pins:
        name, _, value = (part.strip() for part in pin.partition("="))
        if name != "residuals" or value not in ("chip", "dram"):
            raise InputError(f"pin {pin!r}: problem banks knows residuals=chip and residuals=dram")
        waiting = value == "chip"
    return waiting


def _banks(wanted: Wanted, engine: str) -> BankPlan:
    return solve_network(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("time"),
        settings=wanted.settings, waiting=residuals(wanted.pins), time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def _joint(wanted: Wanted, engine: str) -> JointPlan:
    return solve_joint(
        wanted.network, wanted.machine, engine=engine, objective=wanted.aims("bytes"), pins=wanted.pins,
        settings=wanted.settings, time_limit_s=wanted.time_limit_s,
    )  # fmt: skip


def solve_whole(problem: str, wanted: Wanted, *, compare: str, out: str | None, as_json: bool) -> Status:
    """Plan a network, print the table of its layers, and write the plan."""
    rivals = list(dict.fromkeys(name.strip() for name in compare.split(",") if name.strip()))
    for name in (wanted.engine, *rivals):
        if problem == "joint":
            pick_joint_engine(name)
        else:
            aim = options.parse_objectives(wanted.aims("time"))[0]
            pick_bank_engine(name, "time" if aim == "time" else "bytes")
    if problem == "joint":
        joint = _joint(wanted, wanted.engine)
        return _deliver(
            joint, lambda: joint_rows(joint), joint_status(joint), lambda name: _joint(wanted, name), rivals, out,
            as_json=as_json,
        )  # fmt: skip
    plan = _banks(wanted, wanted.engine)
    return _deliver(
        plan,
        lambda: bank_rows(plan),
        bank_status(plan),
        lambda name: _banks(wanted, name),
        rivals,
        out,
        as_json=as_json,
    )


def _deliver(
    plan: NetworkPlan, rows: Callable[[], tuple[Sequence[str], list[list[str]]]], status: str,
    other: Callable[[str], NetworkPlan], rivals: Sequence[str], out: str | None, *, as_json: bool,
) -> Status:  # fmt: skip
    if out is not None:
        plan.save(out)
    if as_json:
        tools.emit(plan.to_json().rstrip())
        return plan.status
    lines = [_ratios(plan, {name: other(name) for name in rivals})] if rivals else []
    lines += [status, *([f"written to {out}"] if out else [])]
    if plan.decided:
        lines.insert(0, "")
        tools.emit_tables(rows_table(*rows()), *lines)
    else:
        tools.emit_tables(*lines)
    return plan.status


def _ratios(plan: NetworkPlan, others: dict[str, NetworkPlan]) -> str:
    """One line that compares other engines."""
    parts = []
    for name, other in others.items():
        if other.objective is None or plan.objective is None:
            parts.append(f"{name} has no plan")
        else:
            parts.append(f"{name} {ratio(other.objective.value, plan.objective.value)}")
    return f"{plan.objectives[0]} of others over {plan.engine}: {', '.join(parts)}"


def print_front(
    network: Network, machine: str, *, settings: list[str] | None, waiting: bool, time_limit_s: float | None,
    out: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Print the exact front of bytes and time, and write its plans."""
    plans = front_network(network, machine, settings=settings, waiting=waiting, time_limit_s=time_limit_s)
    if not plans:
        raise InputError(f"network {network.name}: no plan in this time, give a larger --time-limit")
    found = {"format": "certile-bank-front/1", "plans": [plan.model_dump(mode="json") for plan in plans]}
    text = json.dumps(found, indent=1)
    if out is not None:
        tools.write(out, text + "\n")
    if as_json:
        tools.emit(text)
        return
    scale = plans[0].machine_data.tick_ps / 1e6
    rows = [
        [str(k + 1), f"{p.measures.bytes:,}", f"{p.measures.time * scale:,.1f}", f"{p.pe_delay_ticks * scale:,.1f}", ""]
        for k, p in enumerate(plans)
        if p.measures is not None and p.pe_delay_ticks is not None
    ]
    heads = ("plan", "bytes", "time (us)", "waits (us)", "")
    proven = "proven: no other plan is on the front" if plans[0].status == "OPTIMAL" else "not proven in this time"
    tools.emit_tables(rows_table(heads, rows), "", f"{len(plans)} plans, {proven}; each replayed")
    if out is not None:
        tools.emit(f"written to {out}")
