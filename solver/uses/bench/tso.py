"""Suites of the TSO paper (`tso_burst_slicing`): ``tso``, its figures against our model, and ``table2``, its Table II.

Every column of ``table2`` is what the paper fixes: the best plan of its space (``holds=uniform``), TSO-noburst, one
partition, one dataflow; nothing is fitted. A network takes the sum of its convolutions and fully connected layers, each
as often as it occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from statistics import median

import numpy as np

from formulations.tiling.problem import noburst_ties
from formulations.tiling.search import Search, best_pick
from formulations.tiling.slicing import DATAFLOWS, PARTITIONS
from formulations.tiling.space import Space
from hwmodels.nest.price.boxes import box_terms
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.transfer import bursts_of_segment
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from solver.uses.bench.layers import distinct_layers, space_of
from solver.uses.bench.report import Cell, Report, Suite, Table

#: The space of the paper.
_UNIFORM = "holds=uniform"
#: The IN tiles that the paper prints for the fifth convolution of Inception v3, as pins (T_H = T_R + 2, T_L = T_C + 2).
TILES: dict[str, tuple[str, ...]] = {
    "TSO-burst 14x4x73": ("T_N=14", "T_R=2", "T_C=71"),
    "TSO-noburst 16x11x20": ("T_N=16", "T_R=9", "T_C=18"),
}
#: Every TLT loads its own inputs: the reading that the published tiles fit.
ALONE: dict[str, str] = {"broadcast.input": "none"}
#: Slice, rows, bytes a row, number of slices; bursts and us that are published.
SLICES = (
    ("128 x 32 B", 128, 32, 8, 1024, 84), ("128 x 64 B", 128, 64, 4, 512, 58), ("64 x 128 B", 64, 128, 4, 256, 46),
)  # fmt: skip
_ALONE = "IN for each TLT"
_READINGS: dict[str, dict[str, str]] = {
    "IN once for a TLE (nmp)": {},
    _ALONE: ALONE,
    "IN for each TLT, uniform edges": {**ALONE, "edge_tiles": "uniform"},
    "IN for each TLT, T_DRAM added up": {**ALONE, "dram": "shared"},
    "literal Eq. 3-9": {"reading": "literal"},
}
#: CAS x bandwidth in bytes: free bursts, Fig. 1's fit, the text's "14 ns, as long as the other 127 bytes", and more.
_CAS_BYTES = (0, 50, 128, 400)


def tile_bursts(layer: Layer, machine: Machine, tile: Mapping[str, int]) -> int:
    """Bursts of one IN tile at its nominal size."""
    sizes = {d: np.array([tile.get(d, 1)], np.int64) for d in DIMS}
    steps = {d: size[:, None] for d, size in sizes.items()}
    terms = box_terms(layer, machine, "IN", sizes, Choices.product(steps, sizes))["bursts"]
    return sum(int(a[0]) * int(b[0]) for a, b in terms)


def figure_1(name: str, rows: int, width: int, slices: int, *published: int) -> list[Cell]:
    """A 128 x 128 map of 16-bit elements read in slices (Fig. 1)."""
    machine = load_machine("nmp")
    on = machine.transfer
    places = [row * 256 + i * width for row in range(128) for i in range(256 // width)]
    bursts = sum(bursts_of_segment(place, width, on.burst_bytes) for place in places)
    ticks = on.burst_ticks * bursts + on.byte_ticks * slices * rows * width
    return [name, bursts, ticks * machine.tick_ps / 1e6, *published]


def _fifth() -> Layer:
    return load_network("inception_v3").conv_layers[4]


@cache
def _best(reading: str, pins: tuple[str, ...], cas: int | None = None) -> tuple[int, dict[str, int | str]]:
    """The least time of the fifth convolution and its decisions; `cas`: with bursts at the price of so many bytes."""
    layer, machine = _fifth(), load_machine("nmp", _READINGS[reading])
    if cas is not None:
        burst = {"transfer.burst_ticks": str(cas * machine.transfer.byte_ticks)}
        machine = load_machine("nmp", {**_READINGS[reading], **burst})
    pick, _ = best_pick(space := space_of(layer, machine, _UNIFORM, *pins), ("time",))
    if pick is None:
        raise RuntimeError(f"{layer.name}: no plan with pins {pins}")
    return pick.measures["time"], space.decision(pick.nest)


def _tile(decision: Mapping[str, int | str]) -> dict[str, int]:
    return {d: int(decision.get(f"T_{d.upper()}", 1)) for d in DIMS}


def _shape(decision: Mapping[str, int | str]) -> str:
    layer, tile = _fifth(), _tile(decision)
    rows, columns = (tile["r"] - 1) * layer.stride_h + layer.kh, (tile["c"] - 1) * layer.stride_w + layer.kw
    return f"{tile['n']}x{rows}x{columns}"


def _planned(name: str) -> list[Cell]:
    """A published tile, completed, on nmp."""
    machine = load_machine("nmp", ALONE)
    time, decision = _best(_ALONE, TILES.get(name, ()))
    return [
        f"{name} ({_shape(decision)})", tile_bursts(_fifth(), machine, _tile(decision)), decision["partition"],
        decision["dataflow"], decision["T_M"], time * machine.tick_ps / 1e6, time / _best(_ALONE, ())[0],
    ]  # fmt: skip


def _picked(title: str) -> list[list[Cell]]:
    """The tile that a reading picks, for every price of a burst."""
    rows = list[list[Cell]]()
    for cas in _CAS_BYTES:
        best, decision = _best(title, (), cas)
        others = [_best(title, pins, cas)[0] / best for pins in TILES.values()]
        said = ["optimal" if r == 1 else f"{r:.3f}" for r in others]
        rows.append([title, f"{cas} B", _shape(decision), *said])
    return rows


tso = Suite("tso", (
    Table(
        "Fig. 1: one 128x128 map in slices", ["slice", "bursts", "us", "published bursts", "published us"], SLICES,
        figure_1,
    ),
    Table(
        "Inception v3, fifth convolution (73x73x80 -> 192, 3x3): published IN tiles on nmp, IN for each TLT",
        ["plan", "bursts a tile", "partition", "dataflow", "T_M", "time (us)", "over optimum"],
        ("certile optimum", *TILES), _planned,
        ["Published tiles are completed with their best partition, dataflow and T_M."],
    ),
    Table(
        "which tile each reading picks (optimal: no plan is faster under that reading; else time over its optimum)",
        ["reading", "CAS x bandwidth", "certile's IN tile", "14x4x73", "16x11x20"], tuple(_READINGS), _picked,
        ["CAS x bandwidth 0 is the volume model (TSO-noburst); many plans tie there. Ties go to fewer bytes, then the"
         " first."], several=True,
    ),
))  # fmt: skip


# ---- Table II --------------------------------------------------------------------------------------------------------

#: Table II [us]; the rows of the other networks are withheld.
PUBLISHED: dict[str, tuple[int, ...]] = {
    "inception_v3": (72686, 88478, 82370, 81367, 91408, 73706, 93731, 101641),
    "lenet5": (199, 231, 202, 224, 231, 199, 233, 228),
    "resnet50": (55927, 62375, 62077, 63118, 78844, 59714, 71905, 77535),
}
#: The columns of the table, with the pins that they mean.
COLUMNS: dict[str, str] = {
    "burst": "", "no burst": "", "KS": "partition=KS", "KS&OFM": "partition=KS&OFM", "OFM": "partition=OFM",
    "IS": "dataflow=IS", "OS": "dataflow=OS", "WS": "dataflow=WS",
}  # fmt: skip
#: What one load serves.
READINGS: dict[str, dict[str, str]] = {
    "every TLT loads its own inputs": ALONE,
    "inputs once for a TLE (nmp)": {},
}


@dataclass(frozen=True)
class Row:
    """Times of a network in us by column, None where a layer has no plan; and of the slowest tie of "no burst"."""

    times: tuple[float | None, ...]
    worst_tie: float
    over: tuple[float | None, ...]
    """What the times are over the published ones."""


@cache
def modelled(network: str, reading: str) -> Row:
    """Price the columns of a network by one of `READINGS`."""
    machine = load_machine("nmp", READINGS[reading])
    count = Counter(layer.signature() for layer in load_network(network).conv_layers)
    layers = [(layer, count[layer.signature()]) for layer in distinct_layers(network)]
    us = machine.tick_ps / 1e6
    leasts = [(_leasts(layer, machine), number) for layer, number in layers]
    totals: list[float | None] = []
    slowest = 0.0
    for column, pin in COLUMNS.items():
        if column == "no burst":
            ties = [(*_ties(space_of(layer, machine, _UNIFORM)), number) for layer, number in layers]
            times: list[int | None] = [number * best for best, _, number in ties]
            slowest = sum(number * worst for _, worst, number in ties) * us
        else:
            times = [_column(least, pin, number) for least, number in leasts]
        totals.append(None if None in times else sum(t for t in times if t is not None) * us)
    over = [None if t is None else t / p - 1 for t, p in zip(totals, PUBLISHED[network], strict=True)]
    return Row(tuple(totals), slowest, tuple(over))


def _leasts(layer: Layer, machine: Machine) -> dict[tuple[str, str], int | None]:
    """Proven least ticks by partition and dataflow, of which every column but "no burst" takes the least of some."""
    pairs = [(f"partition={p}", f"dataflow={d}") for p in PARTITIONS for d in DATAFLOWS]
    return {pair: _least(space_of(layer, machine, _UNIFORM, *pair)) for pair in pairs}


def _column(least: Mapping[tuple[str, str], int | None], pin: str, number: int) -> int | None:
    """Ticks of so many layers where the pin is given, None if there is no plan."""
    possible = [ticks for pins, ticks in least.items() if ticks is not None and (not pin or pin in pins)]
    return number * min(possible) if possible else None


def _least(space: Space) -> int | None:
    """The least time; ties are not broken, which would take as long again."""
    search = Search(space, ("time",), polishing=False)
    search.run()
    if not search.whole:
        raise RuntimeError(f"{space.layer.name}: the least time is not proven")
    return None if search.best is None else search.best.measures["time"]


def _ties(space: Space) -> tuple[int, int]:
    """Ticks of the quickest and of the slowest plan that are best if bursts are free."""
    found = noburst_ties(space, worst=True)
    if found is None or found[1] is None:
        raise RuntimeError(f"{space.layer.name}: no plan without bursts")
    quickest, slowest = (price(space.layer, space.machine, nest).time_ticks for nest in (found[0], found[1]))
    return quickest, slowest


def _cells(reading: str, network: str) -> list[list[Cell]]:
    row = modelled(network, reading)
    return [
        [network, "published", *(f"{p:,}" for p in PUBLISHED[network])],
        ["", "nmp", *("-" if t is None else f"{t:,.0f}" for t in row.times)],
        ["", "over", *("-" if e is None else f"{e:+.0%}" for e in row.over)],
    ]


def _errors(report: Report) -> None:
    """The median error of every reading."""
    figures = dict[str, object]()
    for section, reading in zip(report.sections, READINGS, strict=True):
        rows = {network: modelled(network, reading) for network in PUBLISHED}
        errors = [abs(e) for row in rows.values() for e in row.over if e is not None]
        ties = ", ".join(f"{network} {row.worst_tie:,.0f}" for network, row in rows.items())
        figures[reading] = median(errors)
        section.notes += [
            f"Median error of {len(errors)} cells: {median(errors):.0%}.",
            f"no burst: the quickest of the plans that tie if bursts are free; the slowest take {ties} us.",
        ]
    report.sections[0].notes.append(
        "WS of ResNet-50: a filter of the last 3x3 layers has 9,216 bytes, a buffer 8,192: no plan."
    )
    report.figures = {"median_error": figures}


table2 = Suite("table2", [
    Table(
        f"Table II, {reading}: us, and over published", ["network", "", *COLUMNS], tuple(PUBLISHED),
        partial(_cells, reading), several=True,
    )
    for reading in READINGS
], _errors)  # fmt: skip
