"""Suite ``joint``: tile plans and what stays on chip, decided together for whole networks."""

from __future__ import annotations

from functools import partial

from formulations.clock import Clock
from formulations.fusion.linear import Linear
from formulations.fusion.part import FusionPart
from formulations.fusion.paths import Paths
from formulations.fusion.schedule import Runs
from formulations.pins import Pins
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.network import Network
from solver.calls.solve import solve
from solver.plan.claims import gap_of
from solver.plan.plan import Plan
from solver.problems.joint import JOINT
from solver.search.loop import Answer, decide_part
from solver.uses.bench.banks import chain
from solver.uses.bench.fusion import HEADS, NOTE, bank_row
from solver.uses.bench.report import Cell, Suite, Table, timed, value_of

_HEURISTICS = ("no-reuse", "greedy", "sequence")
_SOLVERS = ("milp", "cp-sat")
_LIMIT_S = 60.0
#: Network and KiB of the rows that say what banks cost.
_SIZES = (
    ("squeezenet1_1", 768), ("mobilenet_v2", 768), ("resnet50", 64), ("resnet50", 256), ("resnet50", 512),
    ("resnet50", 768),
)  # fmt: skip


def _solved(name: str, kib: int = 768) -> list[Plan]:
    """Plans of the heuristics and of the optimum on so much shared memory, in banks of 16 KiB."""
    settings = {"ocm_bytes": kib * 1024, "ocm_banks": kib // 16}
    engines = (*_HEURISTICS, "dynamic")
    return [solve(name, "scratchpad_768k", problem="joint", engine=e, settings=settings) for e in engines]


def network_row(name: str) -> list[Cell]:
    """Bytes of heuristics and of the optimum on 768 KiB, and what every engine takes to prove it."""
    plans, whole = _solved(name), load_network(name)
    best, machine = plans[-1], load_machine("scratchpad_768k")
    moved: list[Cell] = [value_of(plan) for plan in plans]
    said = [best.gap, best.part.must["bytes"], best.stats["searches"], best.wall_s]
    return [name, len(best.schedule or ()), *moved, *said, *_solvers(whole, machine)]


def _solvers(network: Network, machine: Machine) -> list[Cell]:
    """Seconds of dynamic programming with all searches; then of each solver with the same tables, and its gap."""
    (part,) = JOINT.read(network, machine, Pins(()), None)
    expected, wall = _asked(part, "dynamic", None)
    cells: list[Cell] = [wall]
    for name in _SOLVERS:
        said, wall = _proof(name, part, expected.values.get("bytes"))
        cells += [wall, gap_of(said.values.get("bytes"), said.bounds["bytes"])]
    return cells


def _asked(part: FusionPart, engine: str, limit_s: float | None) -> tuple[Answer[Runs], float]:
    """Answer and seconds of an engine, with the searches of single layers that were made before."""
    return timed(lambda: decide_part(JOINT, part, ("bytes",), engine, Clock.of(limit_s)))


def _proof(name: str, part: FusionPart, expected: int | None) -> tuple[Answer[Runs], float]:
    """What a solver says and its seconds; RuntimeError if it proves another value than dynamic programming."""
    said, wall = _asked(part, name, _LIMIT_S)
    if said.status == "OPTIMAL" and said.values["bytes"] != expected:
        raise RuntimeError(f"{part.name}: {name} proves {said.values['bytes']}, dynamic {expected}")
    return said, wall


def memory(kib: int) -> list[Cell]:
    """ResNet-50 on so much shared memory."""
    plans = _solved("resnet50", kib)
    best = plans[-1]
    return [kib, *(value_of(plan) for plan in plans), best.gap, best.stats["searches"], best.wall_s]


def grown(network: Network, banks: int) -> list[Cell]:
    """Seconds of the problem alone, with all plans known: 768 KiB in so many banks."""
    machine = load_machine("scratchpad_768k", {"ocm_banks": str(banks)})
    (part,) = JOINT.read(network, machine, Pins(()), None)
    said, searches_s = _asked(part, "dynamic", None)
    problem = part.tables.instance((1, 0), "found", ())
    least, alone_s = timed(lambda: Paths(problem).least)
    if least != said.values.get("bytes"):
        raise RuntimeError(f"{network.name}, {banks} banks: {least} and {said.values}")
    variables = Linear(problem).size
    seconds = [_proof(name, part, least)[1] for name in _SOLVERS]
    return [network.name, len(part.net.layers), banks, searches_s, alone_s, variables, *seconds]


_NOTES = (
    "once: every weight, and the network's inputs and results once. s: with replay and the fastest of equal nests.",
    "Solvers start from the searches that dynamic programming needed; equal optima are checked.",
)


SUITE = Suite("joint", lambda: (
    Table(
        "DRAM bytes, 768 KiB in 48 banks",
        ["network", "layers", *_HEURISTICS, "optimum", "gap", "once", "searches", "s", "dynamic s",
         *(head for name in _SOLVERS for head in (f"{name} s", f"{name} gap"))],
        ("squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3"), network_row, _NOTES,
    ),
    Table(
        "ResNet-50, banks of 16 KiB", ["KiB", *_HEURISTICS, "optimum", "gap", "searches", "s"], (64, 256, 512), memory,
    ),
    Table(
        "What banks cost: DRAM bytes without, and in banks of 4 and 16 KiB", HEADS, _SIZES, partial(bank_row, "joint"),
        [NOTE],
    ),
    Table(
        "Growth, 768 KiB",
        ["network", "layers", "banks", "searches and dynamic s", "dynamic s", "variables", "milp s", "cp-sat s"],
        [*((load_network("resnet50"), banks) for banks in (4, 8, 16, 32, 48, 96)),  # it has 72 layers
         *((chain(layers), 48) for layers in (10, 50, 100, 200, 500))], grown,
    ),
))  # fmt: skip
