"""From an ONNX file to C in one call: import, plan the network as a whole, find addresses, write the program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.stores import stores
from instances.onnx.model import is_onnx, read_model
from instances.onnx.reader import read_onnx
from instances.problems import nested
from solver.ask.options import as_texts, pick_machine
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.joint import is_shared, rows_of
from solver.problems.layers import is_layers, layer_rows
from solver.problems.registry import PROBLEMS
from solver.uses.emit.emit import check_folder, emit_c
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.preflight import check_model, reasons_of


@dataclass(frozen=True)
class Compiled:
    """A program and what is known of it."""

    plan: Plan
    files: tuple[str, ...]
    bytes: int
    """To and from the memory off the chip."""
    peak_bytes: int
    """The most that tiles and maps take on chip at one time."""
    time_ticks: int
    macs: int
    """Multiply-accumulates of the plan, those that are computed again included."""
    elements: str = ""
    """What maps and sums are held as."""
    note: str = ""
    """Which maps lie in memory for the host, or why it was planned layer by layer."""

    def lines(self) -> list[str]:
        """The report, a line each."""
        machine, plan = self.plan.machine_data, self.plan
        gap = "" if plan.bound is None or plan.objective is None else f", bound {plan.bound:,}"
        room, value = sum(machine.memories.values()), 0 if plan.objective is None else plan.objective.value
        return [
            f"plan: {plan.problem}, {plan.status}, {plan.objectives[0]} {value:,}{gap}",
            f"bytes: {self.bytes:,} to and from memory",
            f"peak: {self.peak_bytes:,} of {room:,} bytes on chip",
            f"time: {self.time_ticks * machine.tick_ps / 1e6:,.1f} us; {self.macs:,} MACs",
            f"elements: {self.elements}",
            *([self.note] if self.note else []),
        ]


def compile_model(
    model: str | os.PathLike[str], machine: str | os.PathLike[str] | Machine, out: str | os.PathLike[str], *,
    objective: str | None = None, pins: Sequence[str] | None = None,
    settings: Sequence[str] | Mapping[str, str | int] | None = None,
    problem: str | None = None, time_limit_s: float | None = None, memory_limit: int | str | None = None,
    batch: int | None = None,
    symbols: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
    requantise: str | None = None, states: Mapping[str, str] | None = None, progress: Progress | None = None,
) -> Compiled:  # fmt: skip
    """Plan an ONNX model and write C that runs it.

    Parameters
    ----------
    problem : str, optional
        By default joint where the machine's memory has banks (`ocm_banks`), else, or where no C of it can be written,
        tiling or slicing, layer by layer; "joint" and "fusion" can be asked for wherever all operands share a memory
        (`ocm_bytes`).
    batch, symbols, shapes, values
        Open sizes and constant inputs, as of `instances.load.load_network`.
    requantise, states
        As of `solver.uses.emit.emit.emit_c`.
    out : str or path
        A folder that does not exist yet, or is empty.

    Raises
    ------
    InputError
        If the model cannot be planned, or C of it cannot be written: names what and why, and nothing is written.
    """
    if not is_onnx(model):
        raise InputError(f"model {os.fspath(model)}: an .onnx file is expected")
    given: Any = {"batch": batch, "symbols": symbols, "shapes": shapes, "values": values}
    how: Any = {"requantise": requantise, "states": states}
    network = read_onnx(model, **given)
    fields = as_texts("settings", settings)
    found = pick_machine(machine, fields)
    if problem not in (None, *nested()):
        raise InputError(f"problem {problem}: C is written of {', '.join(nested())}")
    alone = nested("layers")
    single = found.problem if found.problem in alone else alone[0]
    read = read_model(model, **given)
    asked = problem or ("joint" if found.ocm_banks else single)
    kinds = asked in alone
    why_not = reasons_of(PROBLEMS[asked], network, found, objective=objective, pins=pins, all_kinds=kinds)
    refused = check_model(read, found, why_not, requantise)  # before a plan takes its time
    elements = Meaning(read, found, rule=requantise, states=states or {}).check()
    check_folder(out)
    network, note = in_dram(network, refused.in_dram(asked), found)
    cuts = [f"cut={network.layers[t - 1].name}" for t in sorted(refused.cuts) if t] if asked == "fusion" else []

    def planned(asked: str) -> Plan:
        plan = solve(
            network, machine, problem=asked, objective=objective, pins=[*(pins or ()), *cuts] or None,
            settings=fields,
            time_limit_s=time_limit_s, memory_limit=memory_limit, all_kinds=asked in alone,
            progress=progress,
        )  # fmt: skip
        if plan.status not in ("OPTIMAL", "FEASIBLE"):
            raise InputError(f"model {os.fspath(model)}: {plan.status}: {'; '.join(plan.conflicts[:3]) or 'no plan'}")
        return plan

    plan = planned(asked)
    try:
        names = emit_c(plan, out, read, **how)
    except InputError as error:
        if problem is not None or not found.ocm_banks:
            raise
        plan, note = planned(single), f"planned layer by layer, as no C is written of the joint plan: {error}"
        names = emit_c(plan, out, read, **how)
    return Compiled(plan, names, *_figures(plan), elements.said(), note)


def _figures(plan: Plan) -> tuple[int, int, int, int]:
    """Of a plan what `Compiled` says: bytes, the most on chip at one time, ticks, multiply-accumulates."""
    if is_shared(plan):
        figures = [row.figures for row in rows_of(plan)]
        moved, ticks, macs = (sum(getattr(one, name) for one in figures) for name in ("moved", "ticks", "macs"))
        return moved, max(one.occupancy_bytes + sum(one.on_chip.values()) for one in figures), ticks, macs
    rows, measures = layer_rows(plan) if is_layers(plan) else (), plan.measures or {}
    peak = max(sum(row.occupancy_bytes.values()) for row in rows if row.occupancy_bytes)
    return measures["bytes"], peak, measures["time"], sum(row.workload.macs for row in rows)


def in_dram(network: Network, reasons: Mapping[int, str], machine: Machine) -> tuple[Network, str]:
    """Return a network whose maps with these numbers lie in DRAM, and what that may cost, in one line."""
    if not reasons:
        return network, ""
    found, size, read, names = stores(network), 0, 0, list[str]()
    for s in reasons:
        store, makers = found.stores[s], [found.layers[t] for t, _ in found.stores[s].parts]
        names.append(makers[0].name if makers else store.name)
        size += sum(one.b * one.g * one.m * one.r * one.c for one in makers) * machine.out_bytes
        read += (found.shared.count(s) - 1) * store.row_bytes(machine) if store.weights else 0
        for layer, of in zip(found.layers, found.reads, strict=True):
            read += sum(layer.input_elements(k) * machine.in_bytes for k, one in enumerate(of) if one == s)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    said = f"in memory, as the host moves them or computes with them: maps of {shown}; {size:,} bytes written"
    note = f"{said}, {read:,} read (once each)"
    return network.model_copy(update={"in_dram": tuple(names)}), note
