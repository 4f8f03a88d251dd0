"""The problems: a line each, and no other list of them anywhere (tests/test_registry.py counts).

A line says what the rooms that know nothing of decisions need: what a machine for the problem has, and what is planned.
All else is found by the name: `PROBLEM` of ``solver/problems/NAME.py``, which says how its plans are shown, or of
``formulations/NAME/problem.py`` where nothing is shown in a way of its own (`solver.problems.registry`), its suite in
``solver/uses/bench/NAME.py``, its adversary in ``tests/adversary/NAME.py``, and its page ``docs/NAME.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Fields that every problem reads.
COMMON = "name description family problem tick_ps sources compute.pixels"
_ELEMENTS = "in_bytes w_bytes out_bytes psum_bytes"
_ENERGY = "byte_fj mac_fj"
_TIME = "transfer compute"
_SHARED = "ocm_bytes reserved_bytes"
_BUFFERS = "in_buffer_bytes w_buffer_bytes out_buffer_bytes"
_NESTS = f"""
    {_ELEMENTS} {_ENERGY} {_TIME} {_SHARED}
    bias_bytes channel_block in_layout w_layout out_layout im2col_rows buffering sliding
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
    code: bool = False
    """Whether C is written of its plans, though they are no such nests."""
    bench: str = ""
    """What its own suite shows; "": that of all problems, which runs its examples (`Formulation.examples`)."""
    gallery: tuple[str, str] = ("", "")
    """What a plan in the gallery of the documents shows, and what ``certile solve`` is asked for it."""
    package: str = ""
    """Where its formulation is, if not in ``formulations/NAME``."""

    @property
    def in_blocks(self) -> bool:
        """Whether it plans the channels of maps in whole blocks, where a machine has them (`Machine.channel_block`)."""
        return "channel_block" in self.reads.split()


PROBLEMS: dict[str, Line] = {
    "tiling": Line(
        f"{_NESTS} im2col_channels {_BUFFERS}", nests="layers",
        gallery=("SqueezeNet layer by layer on 64 KiB: bytes, proven",
                 "squeezenet1_1 --machine scratchpad_64k --objective bytes"),
    ),
    "slicing": Line(
        f"{_NESTS} im2col_channels {_BUFFERS}", "nmp", nests="layers",
        gallery=("LeNet-5 on four clusters of eight cores: time", "lenet5 --machine nmp"),
    ),
    "joint": Line(
        f"{_NESTS} im2col_channels ocm_banks channels near levels", "scratchpad_768k", nests="network",
        bench="tile plans and what stays on chip together: heuristics, proven optima, engines, growth",
        gallery=("LeNet-5, tiles and what stays on chip together, on 24 KiB",
                 "lenet5 --machine scratchpad_24k --problem joint"),
    ),
    "fusion": Line(
        f"{_NESTS} ocm_banks channels near levels", "scratchpad_768k", nests="network",
        bench="layers fused strip by strip: three networks, 128 to 768 KiB, beside layer by layer and cascades",
        gallery=("LeNet-5 fused strip by strip, on 24 KiB", "lenet5 --machine scratchpad_24k --problem fusion"),
    ),
    "levels": Line(
        f"{_ELEMENTS} bias_bytes channel_block mac_fj sliding compute compute.model compute.rows compute.cols levels",
        "dram_l2_l1", "levels", code=True,
        gallery=("Layers on DRAM, L2 and L1: bytes of both channels",
                 "peer_layers --machine dram_l2_l1 --objective bytes,bytes@l2"),
    ),
    "banks": Line(
        f"{_ENERGY} {_TIME} banks", "midap", "banks",
        bench="feature maps in memory banks: bytes and delay of policies and proven optima, five networks",
        gallery=("SqueezeNet in the memory banks of MIDAP", "squeezenet1_1 --machine midap"),
    ),
    "hybrid": Line(
        f"{_TIME} banks", "midap", "banks",
        bench="fusion on banks, ResNet-50 at 512x512: published techniques by block, ratios, optimum",
    ),
    "mapping": Line(
        f"{_BOARD} processors.split_sync_ns", "hikey970", "processors", several="applications",
        bench="tasks on cores and GPU: optimum or gap, clustering, genetic search, HEFT; fronts, latencies, "
        "divided tasks",
        gallery=("SqueezeNet on the cores and the GPU of a phone",
                 "squeezenet1_1 --machine galaxy_s9 --pin cpu_config=4"),
    ),
    "applications": Line(
        _BOARD, "hikey970", "processors", machines=False, target="Applications",
        bench="three networks with periods on one board: least responses and energy, gaps",
        gallery=("Two networks with periods on a board with an NPU",
                 "lenet5@5ms,lenet5@8ms/6ms --machine hikey970 --pin cpu_config=1,1,1,1"),
    ),
    "partial_engine": Line(f"{_ELEMENTS} engine", "partial_cnn_16", "engine"),
    "mesh": Line(f"{_ELEMENTS} channel_block mesh", "vectormesh_128", "mesh"),
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


def written() -> tuple[str, ...]:
    """Return the problems that C is written of."""
    return tuple(name for name, line in PROBLEMS.items() if line.nests or line.code)


def needing(section: str) -> tuple[str, ...]:
    """Return the problems that need a section of a machine."""
    return tuple(name for name, line in PROBLEMS.items() if line.section == section)


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
