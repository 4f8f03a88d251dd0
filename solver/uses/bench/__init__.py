"""Benchmark suites: the optimum against heuristics, engines against each other, and the papers' figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from instances.late import late
from instances.problems import PROBLEMS

if TYPE_CHECKING:
    from solver.uses.bench.report import Report

_compared = late("solver.uses.bench.report:compared")

#: Suites beside those of problems, name -> (what it shows, its place). One is imported when it is run.
SUITES: dict[str, tuple[str, str]] = {
    "demo": ("ResNet-50 from an ONNX file on nmp and scratchpad_64k, written to out/ and checked",
        "solver.uses.bench.demo:demo"),
    "emit": ("SqueezeNet as C on this host, planned five ways: bytes and run times as ratios",
        "solver.uses.bench.emit:emit"),
    "engine": ("a small fixed engine: frame rates beside the published, transfers, best sizes and their front",
        "solver.uses.bench.partial_engine:runs"),
    "engines": ("every layer of five networks: cp-sat, milp and exhaustive must prove the same integers",
        "solver.uses.bench.layers:engines"),
    "fusion-banks": ("what banks of 4 and 16 KiB cost layers that are fused, three networks",
        "solver.uses.bench.fusion:fusion_banks"),
    "fusion-chains": ("seven short chains fused, beside what a mapper that fuses layers moves",
        "solver.uses.bench.fusion:fusion_chains"),
    "fusion-depth": ("how seconds to prove fusion grow with depth: ResNet-18 to ResNet-152 on 768 KiB",
        "solver.uses.bench.fusion:fusion_depth"),
    "fusion-time": ("the least time of networks with prefetch, beside heuristics and others; rows: --only inception",
        "solver.uses.bench.fusion_time:SUITE"),
    "heuristics": ("what optimality is worth: greedy, naive and TSO-noburst over the optimum, by network",
        "solver.uses.bench.layers:heuristics"),
    "library": ("an engine, or results of others, on the instances of the library: proven, best known, means",
        "solver.uses.bench.library:library"),
    "nests": ("free hold depths: bytes against time, whole networks, nmp, growth with layer and memory",
        "solver.uses.bench.layers:nests"),
    "peers": ("five layers that other mappers were measured on: proven bytes, textbook tiles, heuristics",
        "solver.uses.bench.layers:peers"),
    "proofs": ("the least time of 150 layers on three machines: how many are proven, gaps, seconds",
        "solver.uses.bench.layers:proofs"),
    "speed": ("ratios in one run: reduced against full search, solvers with and without bounding",
        "solver.uses.bench.layers:speed"),
    "sweep": ("sweeps on two workers: tasks a second, bytes a task, what a million tasks would take",
        "solver.uses.bench.sweep:sweep_suite"),
    "table2": ("Table II of the TSO paper beside plans on nmp, by what is broadcast: cell by cell, median error",
        "solver.uses.bench.tso:table2"),
    "table42": ("Table 4.2 of the bank management thesis: five Inception blocks, policies and optimum",
        "solver.uses.bench.banks:table42"),
    "table3": ("Table III of the VectorMesh paper beside proven optima, six machines; Fig. 3 and 4 as points",
        "solver.uses.bench.table3:table3"),
    "tso": ("figures of the TSO paper: Fig. 1 and the fifth convolution of Inception v3", "solver.uses.bench.tso:tso"),
    "windows": ("burst windows by address or by ceil counts: what plans lose by the latter, seconds a layer",
        "solver.uses.bench.layers:windows"),
}  # fmt: skip


def suites() -> dict[str, tuple[str, Callable[..., Report]]]:
    """Return the suites by name, name -> (what it shows, how to run it); every problem has one."""
    own = {name: (line.bench, f"solver.uses.bench.{name}:SUITE") for name, line in PROBLEMS.items() if line.bench}
    made = {name: (about, late(place)) for name, (about, place) in sorted({**SUITES, **own}.items())}
    return made | {name: _general(name) for name in PROBLEMS if name not in made}


def _general(name: str) -> tuple[str, Callable[..., Report]]:
    """The suite of a problem that has none of its own."""
    return f"examples of problem {name} by all its engines", lambda *asked: _compared(name)(*asked)


def summaries() -> dict[str, str]:
    """Return what the suites show, by name."""
    return {name: about for name, (about, _) in suites().items()}
