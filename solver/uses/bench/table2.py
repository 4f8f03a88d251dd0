"""Suite ``table2``: Table II of the TSO paper beside plans on `nmp`, by what is broadcast; nothing is fitted.

Every column is what the paper fixes: the best plan of its space (``holds=uniform``), TSO-noburst, one partition, one
dataflow. A network takes the sum of its convolutions and fully connected layers, each as often as it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from formulations.tiling.problem import noburst_ties
from formulations.tiling.search import Search
from formulations.tiling.slicing import DATAFLOWS, PARTITIONS
from formulations.tiling.space import Space
from hwmodels.nest.price.closed_form import price
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.ask.progress import Progress
from solver.uses.bench.engines import space_of
from solver.uses.bench.report import Cell, Report

#: `tso_burst_slicing` Table II [us]; the rows of the other networks are withheld.
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
#: The space of the paper.
_UNIFORM = "holds=uniform"
#: What one load serves.
READINGS: dict[str, dict[str, str]] = {
    "every TLT loads its own inputs": {"broadcast.input": "none"},
    "inputs once for a TLE (nmp)": {},
}


@dataclass(frozen=True)
class Row:
    """Times of a network in us by column, None where a layer has no plan; and of the slowest tie of "no burst"."""

    times: tuple[float | None, ...]
    worst_tie: float


def modelled(network: str, machine: Machine) -> Row:
    """Price the columns of a network."""
    count: dict[object, tuple[Layer, int]] = {}
    for layer in load_network(network).conv_layers:
        first, number = count.get(layer.signature(), (layer, 0))
        count[layer.signature()] = first, number + 1
    us = machine.tick_ps / 1e6
    leasts = [(_leasts(layer, machine), number) for layer, number in count.values()]
    totals: list[float | None] = []
    slowest = 0.0
    for column, pin in COLUMNS.items():
        if column == "no burst":
            ties = [(*_ties(space_of(layer, machine, _UNIFORM)), number) for layer, number in count.values()]
            times: list[int | None] = [number * best for best, _, number in ties]
            slowest = sum(number * worst for _, worst, number in ties) * us
        else:
            times = [_column(least, pin, number) for least, number in leasts]
        totals.append(None if None in times else sum(t for t in times if t is not None) * us)
    return Row(tuple(totals), slowest)


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


def table2(progress: Progress) -> Report:
    """The visible rows of Table II by every reading, and the error of every cell."""
    report, figures = Report("table2", progress=progress), dict[str, object]()
    for title, settings in READINGS.items():
        section = report.section(f"Table II, {title}: us, and over published", ["network", "", *COLUMNS])
        machine, errors, ties = load_machine("nmp", settings), list[float](), list[str]()
        for network in report.each(PUBLISHED):
            row, published = modelled(network, machine), PUBLISHED[network]
            over = [None if t is None else t / p - 1 for t, p in zip(row.times, published, strict=True)]
            errors += [abs(e) for e in over if e is not None]
            section.rows += _cells(network, published, row, over)
            ties.append(f"{network} {row.worst_tie:,.0f}")
        figures[title] = median(errors)
        section.notes += [
            f"Median error of {len(errors)} cells: {median(errors):.0%}.",
            f"no burst: the quickest of the plans that tie if bursts are free; the slowest take {', '.join(ties)} us.",
        ]
    report.sections[0].notes.append(
        "WS of ResNet-50: a filter of the last 3x3 layers has 9,216 bytes, a buffer 8,192: no plan."
    )
    report.figures = {"median_error": figures}
    return report


def _cells(network: str, published: Sequence[int], row: Row, over: Sequence[float | None]) -> list[Sequence[Cell]]:
    return [
        [network, "published", *(f"{p:,}" for p in published)],
        ["", "nmp", *("-" if t is None else f"{t:,.0f}" for t in row.times)],
        ["", "over", *("-" if e is None else f"{e:+.0%}" for e in over)],
    ]
