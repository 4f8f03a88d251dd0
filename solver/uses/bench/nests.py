"""Suite ``nests``: what free hold depths are worth, where bytes and time disagree, and how the search grows."""

from __future__ import annotations

from statistics import median

from formulations.tiling.space import Space
from hwmodels.nest.price.closed_form import price
from hwmodels.outcome import Outcome
from hwmodels.schedule import Nest
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.problems.layers_search import decide
from solver.search.loop import Answer
from solver.show.words import decision_text
from solver.uses.bench.engines import distinct_layers, space_of
from solver.uses.bench.report import Cell, Suite, Table, geomean

_NETWORKS = ("resnet50", "inception_v3", "mobilenet_v2")
#: Burst windows are counted, though not priced.
_COUNTED = {"transfer.burst_bytes": "128"}


def _square(side: int, channels: int) -> Layer:
    return Layer.conv(
        f"{side}x{side}, {channels} -> {channels}", channels=channels, filters=channels, size=(side, side),
        kernel=(3, 3), pad=(1, 1, 1, 1),
    )  # fmt: skip


def _run(space: Space, objective: str, engine: str = "exhaustive") -> Answer[Nest]:
    return decide(space, (objective,), engine)


def _bytes_and_time(layer: Layer) -> list[list[Cell]]:
    machine = load_machine("scratchpad_64k", _COUNTED)
    space = space_of(layer, machine)
    found = {
        "fewest bytes": _run(space, "bytes"), "least time": _run(space, "time"),
        "textbook, time": _run(space.uniform(), "time"), "greedy": _run(space, "time", "greedy"),
        "naive": _run(space, "time", "naive"),
    }  # fmt: skip
    fastest, rows = found["least time"].values, list[list[Cell]]()
    for name, result in found.items():
        if result.schedule is None or not fastest:
            rows.append([layer.name, name, *[None] * 7, result.status])
            continue
        counts = _counts(price(layer, machine, result.schedule), machine, fastest["time"])
        rows.append([layer.name, name, *counts, decision_text(space.decision(result.schedule))])
    return rows


def _counts(outcome: Outcome, machine: Machine, fastest: int) -> list[Cell]:
    total, time = outcome.total, outcome.time_ticks
    return [
        outcome.bytes, time * machine.tick_ps / 1e6, time / fastest, total.calls, total.segments,
        round(total.bytes / total.segments), total.bursts,
    ]  # fmt: skip


def _network(network: str, objective: str) -> list[Cell]:
    machine, layers = load_machine("scratchpad_64k", None), distinct_layers(network)
    seconds: dict[str, float] = {}
    ratios = []
    proven, gap = 0, 0.0
    for layer in layers:
        space = space_of(layer, machine)
        best, textbook = _run(space, objective), _run(space.uniform(), objective)
        seconds[layer.name] = best.wall_s
        proven += best.status == "OPTIMAL"
        if best.values and textbook.values:
            ratios.append(textbook.values[objective] / best.values[objective])
            gap = max(gap, 1 - (best.bound or 0) / best.values[objective])
    worst = max(seconds, key=lambda name: seconds[name])
    return [
        network, objective, len(layers), proven, gap, median(seconds.values()), seconds[worst], worst, geomean(ratios),
        max(ratios),
    ]  # fmt: skip


def _free_on_nmp(objective: str) -> list[Cell]:
    machine, layers, ratios = load_machine("nmp", None), distinct_layers("resnet50"), []
    for layer in layers:
        space = space_of(layer, machine)
        free, own = _run(space, objective).values, _run(space.uniform(), objective).values
        if free and own:
            ratios.append(own[objective] / free[objective])
    better = sum(r > 1 for r in ratios)
    return ["resnet50", len(layers), objective, geomean(ratios), max(ratios), better, min(ratios) >= 1]


def _grown(layer: Layer, kib: int) -> list[Cell]:
    machine = load_machine("scratchpad_64k", {"ocm_bytes": str(kib * 1024), "psum_bytes": "1"})
    space = space_of(layer, machine)
    found = _run(space, "bytes")
    moved = found.values["bytes"] if found.values else None
    return [layer.name, kib, moved, space.size["points"], int(str(found.stats["looked_at"])), found.wall_s]


_GROWTH = ("layer", "KiB", "bytes", "nests", "looked at", "s")
nests = Suite("nests", (
    Table(
        "fewest bytes against least time on scratchpad_64k (PL330 transfers)",
        ["layer", "plan", "bytes", "us", "/fastest", "calls", "runs", "bytes a run", "bursts of 128", "nest"],
        lambda: load_network("peer_layers").conv_layers, _bytes_and_time, several=True, label=lambda layer: layer.name,
    ),
    Table(
        "every distinct conv and FC layer on scratchpad_64k by exhaustive search, proven or with a gap",
        ["network", "objective", "layers", "proven", "worst gap", "median s", "worst s", "worst layer",
         "textbook/optimum", "worst of it"],
        [(network, objective) for network in _NETWORKS for objective in ("bytes", "time")], _network,
    ),
    Table(
        "nmp: TSO's dataflows over free hold depths in the same partitions",
        ["network", "layers", "objective", "slicing/free mean", "slicing/free worst", "layers better", "never worse"],
        ("time", "bytes"), _free_on_nmp,
    ),
    Table(
        "growth with the memory: 3x3, 73x73, 80 -> 192, fewest bytes", _GROWTH, (16, 32, 64, 128, 256, 512),
        lambda kib: _grown(next(x for x in load_network("peer_layers").conv_layers if x.name == "c"), kib),
    ),
    Table(
        "growth with the layer: 3x3, 64 KiB, fewest bytes", _GROWTH,
        ((14, 32), (28, 64), (56, 64), (112, 64), (112, 128), (224, 128), (224, 256)),
        lambda side, channels: _grown(_square(side, channels), 64),
    ),
))  # fmt: skip
