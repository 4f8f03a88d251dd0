"""Benchmark suites: the optimum against heuristics, engines against each other, and the papers' figures."""

from __future__ import annotations

from collections.abc import Callable

from solver.bench.applications import applications_suite
from solver.bench.banks import banks, table42
from solver.bench.demo import demo
from solver.bench.emit import emit
from solver.bench.engines import engines
from solver.bench.fusion import fusion, fusion_banks, fusion_chains, fusion_depth
from solver.bench.heuristics import heuristics
from solver.bench.hybrid import hybrid_suite
from solver.bench.joint import joint
from solver.bench.library import library
from solver.bench.mapping import mapping
from solver.bench.nests import nests
from solver.bench.partial_engine import runs
from solver.bench.peers import peers
from solver.bench.placement import placement
from solver.bench.report import Report
from solver.bench.selection import selection
from solver.bench.speed import speed
from solver.bench.sweep import sweep_suite
from solver.bench.table2 import table2
from solver.bench.table3 import table3
from solver.bench.tso import tso
from solver.bench.windows import windows

__all__ = ["SUITES", "Report"]

#: Suite name -> (what it shows, how to run it).
SUITES: dict[str, tuple[str, Callable[..., Report]]] = {
    "applications": ("three networks with periods on one board: least responses and energy, gaps", applications_suite),
    "banks": ("feature maps in memory banks: bytes and delay of policies and proven optima, five networks", banks),
    "demo": ("ResNet-50 from an ONNX file on nmp and scratchpad_64k, written to out/ and checked", demo),
    "emit": ("SqueezeNet as C on this host, planned five ways: bytes and run times as ratios", emit),
    "engine": ("a small fixed engine: frame rates beside the published, transfers, best sizes and their front", runs),
    "engines": ("every layer of five networks: cp-sat, milp and exhaustive must prove the same integers", engines),
    "fusion": (
        "layers fused strip by strip: three networks, 128 to 768 KiB, beside layer by layer and cascades",
        fusion,
    ),
    "fusion-banks": ("what banks of 4 and 16 KiB cost layers that are fused, three networks", fusion_banks),
    "fusion-chains": ("seven short chains fused, beside what a mapper that fuses layers moves", fusion_chains),
    "fusion-depth": ("how seconds to prove fusion grow with depth: ResNet-18 to ResNet-152 on 768 KiB", fusion_depth),
    "heuristics": ("what optimality is worth: greedy, naive and TSO-noburst over the optimum, by network", heuristics),
    "hybrid": ("fusion on banks, ResNet-50 at 512x512: published techniques by block, ratios, optimum", hybrid_suite),
    "joint": ("tile plans and what stays on chip together: heuristics, proven optima, engines, growth", joint),
    "library": ("an engine, or results of others, on the instances of the library: proven, best known, means", library),
    "mapping": (
        "tasks on cores and GPU: optimum or gap, clustering, genetic search, HEFT; fronts, latencies, divided tasks",
        mapping,
    ),
    "nests": ("free hold depths: bytes against time, whole networks, nmp, growth with layer and memory", nests),
    "peers": ("five layers that other mappers were measured on: proven bytes, textbook tiles, heuristics", peers),
    "placement": ("addresses of buffers: greedy orders, CP-SAT and the exact search, no byte to spare", placement),
    "selection": ("variants of layers: the paper's steps beside optima, clocks, 200 layers by engines", selection),
    "speed": ("ratios in one run: reduced against full search, solvers with and without bounding", speed),
    "sweep": ("sweeps on two workers: tasks a second, bytes a task, what a million tasks would take", sweep_suite),
    "table2": (
        "Table II of the TSO paper beside plans on nmp, by what is broadcast: cell by cell, median error",
        table2,
    ),
    "table42": ("Table 4.2 of the bank management thesis: five Inception blocks, policies and optimum", table42),
    "table3": ("Table III of the VectorMesh paper beside proven optima, six machines; Fig. 3 and 4 as points", table3),
    "tso": ("figures of the TSO paper: Fig. 1 and the fifth convolution of Inception v3", tso),
    "windows": (
        "burst windows by address or by ceil counts: what plans lose by the latter, seconds a layer",
        windows,
    ),
}
