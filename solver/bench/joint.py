"""Suite ``joint``: tile plans and what stays on chip, decided together for whole networks (F10)."""

from __future__ import annotations

import time

from formulations.clock import Clock
from formulations.joint.milp import milp
from formulations.joint.part import JointPart, Runs
from formulations.joint.problem import least
from formulations.pins import Pins
from instances.load import load_machine, load_network
from instances.machine import Machine
from instances.network import Network
from solver.bench.banks import chain
from solver.bench.report import Cell, Report
from solver.joint.plan import JointPlan
from solver.joint.problem import JOINT
from solver.progress import Progress
from solver.search import Answer, settled
from solver.solve import solve_as
from solver.verify import gap_of

__all__ = ["grown", "joint", "memory", "network_row"]

_NETWORKS = ("squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3")
_HEURISTICS = ("no-reuse", "greedy", "sequence")
_SOLVERS = ("milp", "cp-sat")
_LIMIT_S = 60.0
_KIB = (64, 256, 512)
#: Layers and banks; ResNet-50 has 72 layers.
_BANKS = (4, 8, 16, 32, 48, 96)
_LAYERS = (10, 50, 100, 200, 500)


def _bytes(plan: JointPlan) -> int | None:
    return plan.measures.bytes if plan.measures else None


def network_row(name: str) -> list[Cell]:
    """Bytes of heuristics and of the optimum on scratchpad_768k, and what every engine takes to prove it."""
    plan = solve_as(JointPlan, name, "scratchpad_768k")
    heuristics: list[Cell] = [_bytes(solve_as(JointPlan, name, "scratchpad_768k", engine=e)) for e in _HEURISTICS]
    row: list[Cell] = [name, len(plan.layers), *heuristics, _bytes(plan), plan.gap, plan.compulsory_bytes]
    return [*row, plan.stats["searches"], plan.wall_s, *_solvers(load_network(name), load_machine("scratchpad_768k"))]


def _timed(part: JointPart, engine: str, limit_s: float | None) -> tuple[float, Answer[Runs]]:
    """Seconds and answer of an engine, with the searches of single layers that were made before."""
    start = time.monotonic()
    said = settled(JOINT, part, ("bytes",), engine, Clock.of(limit_s))
    return time.monotonic() - start, said


def _solvers(network: Network, machine: Machine) -> list[Cell]:
    """Seconds of dynamic programming with all searches; then of each solver with the same tables, and its gap."""
    (part,) = JOINT.read(network, machine, Pins(()), None)
    wall, expected = _timed(part, "dynamic", None)
    cells: list[Cell] = [wall]
    for name in _SOLVERS:
        wall, said = _timed(part, name, _LIMIT_S)
        value, best = said.values.get("bytes"), expected.values.get("bytes")
        if said.status == "OPTIMAL" and value != best:
            raise RuntimeError(f"{network.name}: {name} proves {value}, dynamic {best}")
        cells += [wall, gap_of(value, said.bounds["bytes"])]
    return cells


def memory(kib: int) -> list[Cell]:
    """ResNet-50 on so much shared memory in banks of 16 KiB."""
    settings = {"ocm_bytes": kib * 1024, "ocm_banks": kib // 16}
    plans = [
        solve_as(JointPlan, "resnet50", "scratchpad_768k", engine=e, settings=settings)
        for e in (*_HEURISTICS, "dynamic")
    ]
    best = plans[-1]
    return [kib, *(_bytes(plan) for plan in plans), best.gap, best.stats["searches"], best.wall_s]


def grown(network: Network, banks: int) -> list[Cell]:
    """Seconds of the problem alone, with all plans known: 768 KiB in so many banks."""
    machine = load_machine("scratchpad_768k", {"ocm_banks": str(banks)})
    (part,) = JOINT.read(network, machine, Pins(()), None)
    wall, said = _timed(part, "dynamic", None)
    row: list[Cell] = [network.name, len(part.found.layers), banks, wall]
    problem = part.tables.joint(bound="found")
    start = time.monotonic()
    found = least(problem)
    row.append(time.monotonic() - start)
    if found is None or found.bytes != said.values.get("bytes"):
        raise RuntimeError(f"{network.name}, {banks} banks: {found} and {said.values}")
    row.append(len(milp(problem).model.variables()))
    for name in _SOLVERS:
        wall, other = _timed(part, name, _LIMIT_S)
        row.append(wall)
        if other.status == "OPTIMAL" and other.values["bytes"] != found.bytes:
            raise RuntimeError(f"{network.name}, {banks} banks: {name} proves {other.values}, not {found.bytes}")
    return row


def joint(progress: Progress) -> Report:
    """Whole networks on a shared scratchpad: heuristics, optimum, engines, and how time grows."""
    report = Report("joint", progress=progress)
    solvers = [head for name in _SOLVERS for head in (f"{name} s", f"{name} gap")]
    heads = ["network", "layers", *_HEURISTICS, "optimum", "gap", "once", "searches", "s", "dynamic s", *solvers]
    networks = report.fill("DRAM bytes, 768 KiB in 48 banks", heads, _NETWORKS, network_row)
    heads = ["KiB", *_HEURISTICS, "optimum", "gap", "searches", "s"]
    report.fill("ResNet-50, banks of 16 KiB", heads, _KIB, memory)
    heads = ["network", "layers", "banks", "searches and dynamic s", "dynamic s", "variables", "milp s", "cp-sat s"]
    cases = [(load_network("resnet50"), banks) for banks in _BANKS] + [(chain(layers), 48) for layers in _LAYERS]
    report.fill("Growth, 768 KiB", heads, cases, lambda case: grown(*case), lambda case: f"{case[0].name}, {case[1]}")
    networks.notes += [
        "once: every weight, and the network's inputs and results once. s: with replay and the fastest of equal nests.",
        "Solvers start from the searches that dynamic programming needed; equal optima are checked.",
    ]
    return report
