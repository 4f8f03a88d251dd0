"""Suite ``hybrid``: the published fusion on banks, block by block, beside proven optima."""

from __future__ import annotations

from functools import cache

from formulations.clock import Clock
from formulations.hybrid.problem import (
    HybridFormulation,
    HybridPart,
    HybridReading,
    blocks,
    hybrid,
    pure,
    value,
    whole,
)
from formulations.hybrid.space import Cut, Pair
from formulations.pins import Pins
from instances.load import load_machine, load_network
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.report import Cell, Report, Suite, Table, value_of

_LIMIT_S = 60.0
_TECHNIQUES = ("per-layer", "pure-fusion", "hybrid-paper")
#: Published of blocks: time against per-layer in percent.
FASTER = {(1,): -20.6, (2, 3): -23.2, (4,): -9.8}


@cache
def resnet() -> HybridPart:
    """ResNet-50 at 512x512 on 4 banks of 128 KiB."""
    network, machine = load_network("resnet50").with_size(512, 512), load_machine("midap")
    (part,) = HybridFormulation().read(network, machine, Pins(), None)
    return part


def best(reading: HybridReading, cut: Cut) -> int:
    """The fewest bytes of a block by itself, whole or in pieces of columns and rows."""
    found = []
    for one in (True, False):
        group = cut._replace(whole=one)
        pair = Pair(reading.part.costs, reading.group(cut), group, "bytes", reading.space, ())
        while pair.heap and pair.best is None:
            pair.refine(Clock())
        found.append(pair.least)
    return min(found)


def techniques(reading: HybridReading, cut: Cut, measure: str) -> list[int]:
    """A measure of a block per layer, by pure fusion, and hybrid."""
    layers = whole(reading, cut.begin, cut.end, measure)
    return [value(one, measure) for one in (layers, pure(reading, cut, measure), hybrid(reading, cut, measure))]


def block(number: int, reading: HybridReading, cut: Cut) -> list[Cell]:
    """Bytes and ticks of one block, which begins and ends with empty banks."""
    times = [ticks / 1e6 for ticks in techniques(reading, cut, "time")]
    return [number, *techniques(reading, cut, "bytes"), best(reading, cut), *times]


def totals(measure: str) -> list[Cell]:
    """A row of the whole network."""
    part = resnet()

    def plan(engine: str) -> Plan:
        limit = _LIMIT_S if measure == "time" and engine == "dynamic" else None
        return solve(part.network, part.machine, problem="hybrid", objective=measure, engine=engine,
            time_limit_s=limit,
        )  # fmt: skip

    plans = [plan(name) for name in (*_TECHNIQUES, "dynamic")]
    return [measure, *map(value_of, plans), plans[-1].bound, plans[-1].status, plans[-1].wall_s]


def _tables() -> tuple[Table, ...]:
    (reading,) = resnet().readings.values()
    cuts = [cut for cut in blocks(reading) if cut.end - cut.begin > 2]
    return (
        Table(
            "blocks by themselves (M: million ticks)",
            ["block", *(f"{name} bytes" for name in _TECHNIQUES), "optimum bytes", *(f"{n} M" for n in _TECHNIQUES)],
            [(number, reading, cut) for number, cut in enumerate(cuts, 1)], block,
            ["every block begins and ends with empty banks; bytes by MIN, time by HIDE; optimum: also rows."],
            label=lambda case: f"block {case[0]}",
        ),
        Table(
            "the whole network", ["objective", *_TECHNIQUES, "optimum", "bound", "status", "s"], ("bytes", "time"),
            totals, [f"bytes are proven; time: the best after {_LIMIT_S} s, with its bound."],
        ),
    )  # fmt: skip


def percent(one: float, two: float) -> float:
    """By how much one is more than the other, in percent."""
    return 100 * (one / two - 1)


def _ratios(report: Report) -> None:
    """What is published, and the same of the tables before.

    Fig. 4.17 of the source and its text: of the whole network, hybrid against per-layer and pure fusion.
    """
    rows, totals = (section.rows for section in report.sections)
    ratios = report.section("published and here, in percent", ["hybrid", "published", "here", "optimum"])
    moved = [float(str(cell)) for cell in totals[0][1:5]]
    delay = [float(str(cell)) - resnet().least.ticks for cell in totals[1][1:5]]
    for name, published, (_, _, paper, optimum), base in (
        ("bytes against per-layer", -16.8, moved, moved[0]), ("bytes against pure fusion", -10.6, moved, moved[1]),
        ("delay against per-layer", -25.1, delay, delay[0]),
    ):  # fmt: skip
        ratios.rows.append([name, published, percent(paper, base), percent(optimum, base)])
    for numbers, faster in FASTER.items():
        some = [row for row in rows if row[0] in numbers]
        one, two = (sum(float(str(row[at])) for row in some) for at in (7, 5))
        ratios.rows.append([f"time of blocks {', '.join(map(str, numbers))}", faster, percent(one, two), None])
    ratios.notes.append("delay: time beyond computing every number once.")


SUITE = Suite("hybrid", _tables, _ratios)
