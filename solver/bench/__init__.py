"""Benchmark suites: the optimum against heuristics, engines against each other, and the papers' figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from instances.late import late
from solver import problems

if TYPE_CHECKING:
    from solver.bench.report import Report

_compared = late("solver.bench.generic:compared")

#: Suite name -> (what it shows, its place). One is imported when it is run.
SUITES: dict[str, tuple[str, str]] = {
    "applications": ("three networks with periods on one board: least responses and energy, gaps",
        "solver.bench.applications:applications_suite"),
    "banks": ("feature maps in memory banks: bytes and delay of policies and proven optima, five networks",
        "solver.bench.banks:banks"),
    "demo": ("ResNet-50 from an ONNX file on nmp and scratchpad_64k, written to out/ and checked",
        "solver.bench.demo:demo"),
    "emit": ("SqueezeNet as C on this host, planned five ways: bytes and run times as ratios",
        "solver.bench.emit:emit"),
    "engine": ("a small fixed engine: frame rates beside the published, transfers, best sizes and their front",
        "solver.bench.partial_engine:runs"),
    "engines": ("every layer of five networks: cp-sat, milp and exhaustive must prove the same integers",
        "solver.bench.engines:engines"),
    "fusion": ("layers fused strip by strip: three networks, 128 to 768 KiB, beside layer by layer and cascades",
        "solver.bench.fusion:fusion"),
    "fusion-banks": ("what banks of 4 and 16 KiB cost layers that are fused, three networks",
        "solver.bench.fusion:fusion_banks"),
    "fusion-chains": ("seven short chains fused, beside what a mapper that fuses layers moves",
        "solver.bench.fusion:fusion_chains"),
    "fusion-depth": ("how seconds to prove fusion grow with depth: ResNet-18 to ResNet-152 on 768 KiB",
        "solver.bench.fusion:fusion_depth"),
    "heuristics": ("what optimality is worth: greedy, naive and TSO-noburst over the optimum, by network",
        "solver.bench.heuristics:heuristics"),
    "hybrid": ("fusion on banks, ResNet-50 at 512x512: published techniques by block, ratios, optimum",
        "solver.bench.hybrid:hybrid_suite"),
    "joint": ("tile plans and what stays on chip together: heuristics, proven optima, engines, growth",
        "solver.bench.joint:joint"),
    "library": ("an engine, or results of others, on the instances of the library: proven, best known, means",
        "solver.bench.library:library"),
    "mapping": (
        "tasks on cores and GPU: optimum or gap, clustering, genetic search, HEFT; fronts, latencies, divided tasks",
        "solver.bench.mapping:mapping"),
    "nests": ("free hold depths: bytes against time, whole networks, nmp, growth with layer and memory",
        "solver.bench.nests:nests"),
    "peers": ("five layers that other mappers were measured on: proven bytes, textbook tiles, heuristics",
        "solver.bench.peers:peers"),
    "placement": ("addresses of buffers: greedy orders, CP-SAT and the exact search, no byte to spare",
        "solver.bench.placement:placement"),
    "selection": ("variants of layers: the paper's steps beside optima, clocks, 200 layers by engines",
        "solver.bench.selection:selection"),
    "speed": ("ratios in one run: reduced against full search, solvers with and without bounding",
        "solver.bench.speed:speed"),
    "sweep": ("sweeps on two workers: tasks a second, bytes a task, what a million tasks would take",
        "solver.bench.sweep:sweep_suite"),
    "table2": ("Table II of the TSO paper beside plans on nmp, by what is broadcast: cell by cell, median error",
        "solver.bench.table2:table2"),
    "table42": ("Table 4.2 of the bank management thesis: five Inception blocks, policies and optimum",
        "solver.bench.banks:table42"),
    "table3": ("Table III of the VectorMesh paper beside proven optima, six machines; Fig. 3 and 4 as points",
        "solver.bench.table3:table3"),
    "tso": ("figures of the TSO paper: Fig. 1 and the fifth convolution of Inception v3", "solver.bench.tso:tso"),
    "windows": ("burst windows by address or by ceil counts: what plans lose by the latter, seconds a layer",
        "solver.bench.windows:windows"),
}  # fmt: skip


def suites() -> dict[str, tuple[str, Callable[..., Report]]]:
    """Return the suites, name -> (what it shows, how to run it); one for every formulation of a line, too."""
    own: dict[str, tuple[str, Callable[..., Report]]] = {
        name: (about, late(place)) for name, (about, place) in SUITES.items()
    }
    return own | {name: (one.summary, partial(_compared, one)) for name, one in problems.generic().items()}


def summaries() -> dict[str, str]:
    """Return what the suites show, by name."""
    return {name: about for name, (about, _) in suites().items()}
