"""Suite ``tso``: figures of the TSO paper (`tso_burst_slicing`) against our model."""

from __future__ import annotations

import numpy as np

from formulations.tiling.search import best_pick
from hwmodels.nest.price.boxes import box_terms
from hwmodels.nest.price.choices import Choices
from hwmodels.transfer import bursts_of_segment
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from solver.ask.progress import Progress
from solver.uses.bench.engines import space_of
from solver.uses.bench.report import Report, Section

#: The IN tiles that the paper prints for the fifth convolution of Inception v3, as pins (T_H = T_R + 2, T_L = T_C + 2).
PUBLISHED: dict[str, tuple[str, ...]] = {
    "TSO-burst 14x4x73": ("T_N=14", "T_R=2", "T_C=71"),
    "TSO-noburst 16x11x20": ("T_N=16", "T_R=9", "T_C=18"),
}
#: Every TLT loads its own inputs: the reading that the published tiles fit.
ALONE: dict[str, str] = {"broadcast.input": "none"}
#: Slice -> rows, bytes a row, number of slices.
_SLICES = {"128 x 32 B": (128, 32, 8), "128 x 64 B": (128, 64, 4), "64 x 128 B": (64, 128, 4)}
_READINGS: tuple[tuple[str, dict[str, str]], ...] = (
    ("IN once for a TLE (nmp)", {}),
    ("IN for each TLT", ALONE),
    ("IN for each TLT, uniform edges", {**ALONE, "edge_tiles": "uniform"}),
    ("IN for each TLT, T_DRAM added up", {**ALONE, "dram": "shared"}),
    ("literal Eq. 3-9", {"reading": "literal"}),
)
#: CAS x bandwidth in bytes: free bursts, Fig. 1's fit, the text's "14 ns, as long as the other 127 bytes", and more.
_CAS_BYTES = (0, 50, 128, 400)


def tile_bursts(layer: Layer, machine: Machine, tile: dict[str, int]) -> int:
    """Bursts of one IN tile at its nominal size."""
    sizes = {d: np.array([tile.get(d, 1)], np.int64) for d in DIMS}
    steps = {d: size[:, None] for d, size in sizes.items()}
    terms = box_terms(layer, machine, "IN", sizes, Choices.product(steps, sizes))["bursts"]
    return sum(int(a[0]) * int(b[0]) for a, b in terms)


def tso(progress: Progress) -> Report:
    """Fig. 1, and which reading picks the published tiles of Inception v3's fifth convolution."""
    report = Report("tso", [figure_1()], progress=progress)
    _fifth_convolution(report)
    return report


def figure_1() -> Section:
    """A 128 x 128 map of 16-bit elements read in slices (Fig. 1)."""
    machine = load_machine("nmp", None)
    price = machine.transfer
    section = Section(
        "Fig. 1: one 128x128 map in slices", ["slice", "bursts", "us", "published bursts", "published us"]
    )
    for (name, (rows, width, slices)), published in zip(
        _SLICES.items(), ((1024, 84), (512, 58), (256, 46)), strict=True
    ):
        in_row = 256 // width
        bursts = sum(
            bursts_of_segment(row * 256 + i * width, width, price.burst_bytes)
            for row in range(128)
            for i in range(in_row)
        )
        ticks = price.burst_ticks * bursts + price.byte_ticks * slices * rows * width
        section.rows.append([name, bursts, ticks * machine.tick_ps / 1e6, *published])
    return section


def _fifth_convolution(report: Report) -> None:
    layer = load_network("inception_v3").conv_layers[4]
    machine = load_machine("nmp", ALONE)
    prices = report.section(
        "Inception v3, fifth convolution (73x73x80 -> 192, 3x3): published IN tiles on nmp, IN for each TLT",
        ["plan", "bursts a tile", "partition", "dataflow", "T_M", "time (us)", "over optimum"],
    )
    optimum = _best(layer, machine, ())
    for name, pins in {"certile optimum": (), **PUBLISHED}.items():
        time, decision = _best(layer, machine, pins)
        tile = {d: int(decision.get(f"T_{d.upper()}", 1)) for d in DIMS}
        prices.rows.append([
            f"{name} ({_shape(layer, tile)})", tile_bursts(layer, machine, tile),
            decision["partition"], decision["dataflow"],
            decision["T_M"], time * machine.tick_ps / 1e6, time / optimum[0],
        ])  # fmt: skip
    prices.notes.append("Published tiles are completed with their best partition, dataflow and T_M.")
    picks = report.section(
        "which tile each reading picks (optimal: no plan is faster under that reading; else time over its optimum)",
        ["reading", "CAS x bandwidth", "certile's IN tile", "14x4x73", "16x11x20"],
    )
    for title, settings in report.each(_READINGS, lambda reading: reading[0]):
        for cas in _CAS_BYTES:
            priced = load_machine("nmp", {**settings, "transfer.burst_ticks": str(cas * machine.transfer.byte_ticks)})
            best, decision = _best(layer, priced, ())
            tile = {d: int(decision.get(f"T_{d.upper()}", 1)) for d in DIMS}
            others = [_best(layer, priced, pins)[0] / best for pins in PUBLISHED.values()]
            row = ["optimal" if r == 1 else f"{r:.3f}" for r in others]
            picks.rows.append([title, f"{cas} B", _shape(layer, tile), *row])
    picks.notes.append(
        "CAS x bandwidth 0 is the volume model (TSO-noburst); many plans tie there. "
        "Ties go to fewer bytes, then the first."
    )


def _best(layer: Layer, machine: Machine, pins: tuple[str, ...]) -> tuple[int, dict[str, int | str]]:
    space = space_of(layer, machine, "holds=uniform", *pins)
    pick, _ = best_pick(space, ("time",))
    if pick is None:
        raise RuntimeError(f"{layer.name}: no plan with pins {pins}")
    return pick.measures["time"], space.decision(pick.nest)


def _shape(layer: Layer, tile: dict[str, int]) -> str:
    rows, columns = (tile["r"] - 1) * layer.stride_h + layer.kh, (tile["c"] - 1) * layer.stride_w + layer.kw
    return f"{tile['n']}x{rows}x{columns}"
