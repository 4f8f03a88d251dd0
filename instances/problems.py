"""The problems: a line each, and no other list of them anywhere (tests/test_registry.py counts).

A line says what the rooms that know nothing of decisions need: what a machine for the problem has, and what is planned.
All else is found by the name: `PROBLEM` of ``solver/NAME/problem.py``, which says how its plans are shown, or of
``formulations/NAME/problem.py`` where nothing is shown in a way of its own (`solver.problems`), its suite in
``solver/bench/NAME.py``, its adversary in ``tests/adversary/NAME.py``, and its page ``docs/NAME.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Fields that every problem reads.
COMMON = "name description problem tick_ps sources"
_ELEMENTS = "in_bytes w_bytes out_bytes psum_bytes"
_ENERGY = "byte_fj mac_fj"
_TIME = "transfer compute"
_SHARED = "ocm_bytes reserved_bytes"
_BUFFERS = "in_buffer_bytes w_buffer_bytes out_buffer_bytes"
_NESTS = f"""
    {_ELEMENTS} {_ENERGY} {_TIME} {_SHARED}
    bias_bytes in_layout w_layout out_layout im2col_rows buffering sliding
    line snake overlap tles tlts dram layer_ticks reading edge_tiles psum_first_read off_chip homes
    transfer.segment_ticks transfer.burst_ticks transfer.burst_bytes transfer.burst_count compute.model
    compute.macs_per_cycle compute.rows compute.cols broadcast"""
_BOARD = "processors processors.cpu.busy_mhz processors.cpu.alone_mhz"


@dataclass(frozen=True)
class Line:
    """What is known of a problem without its formulation."""

    reads: str = ""
    """The fields of a machine that it reads, beside `COMMON`; a section stands for its fields that no problem names."""
    template: str = "scratchpad_64k"
    """The bundled machine whose numbers ``certile new-machine`` begins with."""
    section: str = ""
    """The section that a machine needs; "": none of them, but memories for tiles."""
    machines: bool = True
    """Whether machine files may say that they are for it."""
    target: str = "Network"
    """The class of what is planned; of a network also its layers."""
    several: str = ""
    """The problem that plans several of its targets, where there are several."""
    nests: Literal["", "layers", "network"] = ""
    """Whether its plans are nests of tiles, of layers by themselves or of the network as a whole: C is written of them,
    and their buffers can be placed.
    """
    bench: str = ""
    """What its own suite shows; "": that of all problems, which runs its examples (`Formulation.examples`)."""
    package: str = ""
    """Where its formulation is, if not in ``formulations/NAME``."""


PROBLEMS: dict[str, Line] = {
    "tiling": Line(f"{_NESTS} im2col_channels {_BUFFERS}", nests="layers"),
    "slicing": Line(f"{_NESTS} im2col_channels {_BUFFERS}", "nmp", nests="layers"),
    "joint": Line(
        f"{_NESTS} im2col_channels ocm_banks", "scratchpad_768k", nests="network",
        bench="tile plans and what stays on chip together: heuristics, proven optima, engines, growth",
    ),
    "fusion": Line(
        f"{_NESTS} ocm_banks", "scratchpad_768k", nests="network",
        bench="layers fused strip by strip: three networks, 128 to 768 KiB, beside layer by layer and cascades",
    ),
    "banks": Line(
        f"{_ENERGY} {_TIME} banks", "midap", "banks",
        bench="feature maps in memory banks: bytes and delay of policies and proven optima, five networks",
    ),
    "hybrid": Line(
        f"{_TIME} banks", "midap", "banks",
        bench="fusion on banks, ResNet-50 at 512x512: published techniques by block, ratios, optimum",
    ),
    "mapping": Line(
        f"{_BOARD} processors.split_sync_ns", "hikey970", "processors", several="applications",
        bench="tasks on cores and GPU: optimum or gap, clustering, genetic search, HEFT; fronts, latencies, "
        "divided tasks",
    ),
    "applications": Line(
        _BOARD, "hikey970", "processors", machines=False, target="Applications",
        bench="three networks with periods on one board: least responses and energy, gaps",
    ),
    "partial_engine": Line(f"{_ELEMENTS} engine", "partial_cnn_16", "engine"),
    "mesh": Line(f"{_ELEMENTS} mesh", "vectormesh_128", "mesh"),
    "placement": Line(
        f"{_SHARED} {_BUFFERS} ocm_banks", machines=False, target="Buffers",
        bench="addresses of buffers: greedy orders, CP-SAT and the exact search, no byte to spare",
    ),
    "selection": Line(
        "processors platform processors.cpu.half_scale processors.accelerators.half_scale", "jetson_tx2", "platform",
        target="Variants", bench="variants of layers: the paper's steps beside optima, clocks, 200 layers by engines",
    ),
}  # fmt: skip


def nested(kind: str = "") -> tuple[str, ...]:
    """Return the problems whose plans are nests of tiles; of one kind only (`Line.nests`)."""
    return tuple(name for name, line in PROBLEMS.items() if line.nests and kind in ("", line.nests))


def sections() -> tuple[str, ...]:
    """Return the sections of a machine that problems need."""
    return tuple(dict.fromkeys(line.section for line in PROBLEMS.values() if line.section))


def meant() -> tuple[str, ...]:
    """Return the problems that a machine file may say it is for."""
    return tuple(name for name, line in PROBLEMS.items() if line.machines)


def either(names: tuple[str, ...], word: str = "and") -> str:
    """Return names for a sentence: ``tiling, slicing, joint and fusion``."""
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
