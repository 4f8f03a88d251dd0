"""What the command line does for the problem ``banks``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from instances.errors import InputError
from instances.network import Network
from solver import options, tools
from solver.bank_plan import BankPlan
from solver.bank_show import bank_rows, bank_status, ratios
from solver.bank_solve import front_network, pick_bank_engine, solve_network
from solver.plan import Status

__all__ = ["in_banks", "print_front", "solve_banks"]


def in_banks(machine: str, problem: str | None, settings: Sequence[str] | None) -> bool:
    """Return whether the problem that is asked for is ``banks``."""
    return (problem or options.pick_machine(machine, tuple(settings or ())).problem) == "banks"


def residuals(pins: Sequence[str] | None, **given: object) -> bool:
    """Return whether results may wait on chip for a sum; raises InputError for options that do not apply."""
    wrong = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not for problem banks, which plans whole networks")
    waiting = True
    for pin in pins or ():
        name, _, value = (part.strip() for part in pin.partition("="))
        if name != "residuals" or value not in ("chip", "dram"):
            raise InputError(f"pin {pin!r}: problem banks knows residuals=chip and residuals=dram")
        waiting = value == "chip"
    return waiting


def solve_banks(
    network: Network, machine: str, *, engine: str, objective: str, settings: list[str] | None, waiting: bool,
    time_limit_s: float | None, compare: str, out: str | None, as_json: bool,
) -> Status:  # fmt: skip
    """Plan a network, print the table of its stages, and write the plan."""
    aim = "time" if options.parse_objectives(objective)[0] == "time" else "bytes"
    rivals = list(dict.fromkeys(name.strip() for name in compare.split(",") if name.strip()))
    for name in rivals:
        pick_bank_engine(name, aim)

    def run(name: str) -> BankPlan:
        return solve_network(
            network, machine, engine=name, objective=objective, settings=settings, waiting=waiting,
            time_limit_s=time_limit_s,
        )  # fmt: skip

    plan = run(engine)
    if out is not None:
        plan.save(out)
    if as_json:
        tools.emit(plan.to_json().rstrip())
        return plan.status
    from solver.report import rows_table

    lines = [ratios(plan, {name: run(name) for name in rivals})] if rivals else []
    lines += [bank_status(plan), *([f"written to {out}"] if out else [])]
    if plan.layers:
        lines.insert(0, "")
        tools.emit_tables(rows_table(*bank_rows(plan)), *lines)
    else:
        tools.emit_tables(*lines)
    return plan.status


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
    from solver.report import rows_table

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
