"""Suite ``hybrid``: the published fusion on banks, block by block, beside proven optima."""

from __future__ import annotations

from functools import partial

from formulations.clock import Clock
from formulations.hybrid.options import Pair
from formulations.hybrid.part import FirstLayerMode, HybridPart
from formulations.hybrid.problem import HybridFormulation, blocks, hybrid, pure, value, whole
from formulations.hybrid.search import Chosen
from formulations.hybrid.space import Cut
from formulations.pins import Pins
from instances.load import load_machine, load_network
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.report import Cell, Report, Table

_LIMIT_S = 60.0
_TECHNIQUES = ("per-layer", "pure-fusion", "hybrid-paper")
#: Fig. 4.17 of the source and its text: of the whole network, hybrid against per-layer and pure fusion, in percent.
PUBLISHED = {"bytes against per-layer": -16.8, "bytes against pure fusion": -10.6, "delay against per-layer": -25.1}
#: By blocks, time against per-layer in percent.
FASTER = {(1,): -20.6, (2, 3): -23.2, (4,): -9.8}


def resnet() -> HybridPart:
    """ResNet-50 at 512x512 on 4 banks of 128 KiB."""
    network, machine = load_network("resnet50").with_size(512, 512), load_machine("midap")
    (part,) = HybridFormulation().read(network, machine, Pins(), None)
    return part


def best(reading: FirstLayerMode, cut: Cut) -> int:
    """The fewest bytes of a block by itself, whole or in pieces of columns and rows."""
    found = []
    for one in (True, False):
        group = cut._replace(whole=one)
        pair = Pair(reading.part.costs, reading.group(cut), group, "bytes", reading.space, ())
        while pair.heap and pair.best is None:
            pair.refine(Clock())
        found.append(pair.least)
    return min(found)


def techniques(reading: FirstLayerMode, cut: Cut, measure: str) -> list[Chosen | None]:
    """A block per layer, by pure fusion, and hybrid."""
    layers = whole(reading, cut.begin, cut.end, measure)
    return [layers, pure(reading, cut, measure), hybrid(reading, cut, measure)]


def block(reading: FirstLayerMode, number: int, cut: Cut) -> list[Cell]:
    """Bytes and ticks of one block, which begins and ends with empty banks."""
    moved = [value(one, "bytes") for one in techniques(reading, cut, "bytes")]
    timed = [value(one, "time") for one in techniques(reading, cut, "time")]
    return [number, *moved, best(reading, cut), *(ticks / 1e6 for ticks in timed)]


def percent(one: float, two: float) -> float:
    """By how much one is more than the other, in percent."""
    return 100 * (one / two - 1)


def hybrid_suite(progress: Progress) -> Report:
    """ResNet-50 at 512x512: three techniques for each block, published ratios, and the optimum."""
    report, part = Report("hybrid", progress=progress), resnet()
    (reading,) = part.readings.values()
    cuts = [cut for cut in blocks(reading) if cut.end - cut.begin > 2]
    heads = [
        "block",
        *(f"{name} bytes" for name in _TECHNIQUES),
        "optimum bytes",
        *(f"{name} M" for name in _TECHNIQUES),
    ]
    rows = Table(
        "blocks by themselves (M: million ticks)", heads, list(enumerate(cuts, 1)), partial(block, reading),
        label=lambda case: f"block {case[0]}",
    ).fill(report)  # fmt: skip
    heads = ["objective", *_TECHNIQUES, "optimum", "bound", "status", "s"]
    totals = Table("the whole network", heads, ("bytes", "time"), partial(_totals, part)).fill(report)
    ratios = report.section("published and here, in percent", ["hybrid", "published", "here", "optimum"])
    sums = dict(zip(("bytes", "time"), totals.rows, strict=True))
    least = part.least.ticks
    layers, pure_bytes, paper, optimum = (float(str(cell)) for cell in sums["bytes"][1:5])
    ratios.rows.append(_ratio("bytes against per-layer", paper, optimum, layers))
    ratios.rows.append(_ratio("bytes against pure fusion", paper, optimum, pure_bytes))
    layers, _, paper, optimum = (float(str(cell)) - least for cell in sums["time"][1:5])
    ratios.rows.append(_ratio("delay against per-layer", paper, optimum, layers))
    for numbers, published in FASTER.items():
        some = [row for row in rows.rows if row[0] in numbers]
        one, two = (sum(float(str(row[at])) for row in some) for at in (7, 5))
        ratios.rows.append([f"time of blocks {', '.join(map(str, numbers))}", published, percent(one, two), None])
    rows.notes.append("every block begins and ends with empty banks; bytes by MIN, time by HIDE; optimum: also rows.")
    totals.notes.append(f"bytes are proven; time: the best after {_LIMIT_S} s, with its bound.")
    ratios.notes.append("delay: time beyond computing every number once.")
    return report


def _ratio(name: str, paper: float, optimum: float, base: float) -> list[Cell]:
    return [name, PUBLISHED[name], percent(paper, base), percent(optimum, base)]


def _totals(part: HybridPart, measure: str) -> list[Cell]:
    """A row of the whole network."""

    def plan(engine: str) -> Plan:
        limit = _LIMIT_S if measure == "time" and engine == "dynamic" else None
        return solve(part.network, part.machine, problem="hybrid", objective=measure, engine=engine,
            time_limit_s=limit,
        )  # fmt: skip

    plans = [plan(name) for name in (*_TECHNIQUES, "dynamic")]
    values: list[Cell] = [None if one.objective is None else one.objective.value for one in plans]
    return [measure, *values, plans[-1].bound, plans[-1].status, plans[-1].wall_s]


SUITE = hybrid_suite
