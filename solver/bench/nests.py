"""Suite ``nests``: what free hold depths are worth, where bytes and time disagree, and how the search grows."""

from __future__ import annotations

from statistics import median

from formulations.tiling.space import Space
from hwmodels.nest.price import price
from hwmodels.outcome import Outcome
from hwmodels.schedule import Nest
from instances.load import load_machine, load_network
from instances.machine import Machine
from instances.workload import Layer
from solver.bench.engines import distinct_layers, space_of
from solver.bench.report import Cell, Report, Section, geomean
from solver.engines import ENGINES, EngineResult, Limits
from solver.progress import Progress
from solver.words import decision_text

__all__ = ["nests"]

_NETWORKS = ("resnet50", "inception_v3", "mobilenet_v2")
#: Burst windows are counted, though not priced.
_COUNTED = {"transfer.burst_bytes": "128"}


def nests(progress: Progress) -> Report:
    """Byte- against time-optimal nests, the networks' layers, nmp with free holds, and growth."""
    progress.begin(4, "nests")
    sections = [_bytes_and_time()]
    progress.advance("bytes and time")
    sections.append(_networks())
    progress.advance("networks")
    sections.append(_free_on_nmp())
    progress.advance("nmp")
    sections += _growth()
    progress.advance("growth")
    progress.end()
    return Report("nests", sections)


def _run(space: Space, objective: str, engine: str = "exhaustive") -> EngineResult:
    return ENGINES[engine].run(space, (objective,), Limits())


def _bytes_and_time() -> Section:
    machine = load_machine("scratchpad_64k", _COUNTED)
    columns = ["layer", "plan", "bytes", "us", "/fastest", "calls", "runs", "bytes a run", "bursts of 128", "nest"]
    section = Section("fewest bytes against least time on scratchpad_64k (PL330 transfers)", columns)
    for layer in load_network("peer_layers").conv_layers:
        space = space_of(layer, machine)
        found = {
            "fewest bytes": _run(space, "bytes"), "least time": _run(space, "time"),
            "textbook, time": _run(space.uniform(), "time"), "greedy": _run(space, "time", "greedy"),
            "naive": _run(space, "time", "naive"),
        }  # fmt: skip
        fastest = found["least time"].measures
        for name, result in found.items():
            if result.nest is None or fastest is None:
                section.rows.append([layer.name, name, *[None] * 7, result.status])
                continue
            outcome = price(layer, machine, result.nest)
            section.rows.append(
                [layer.name, name, *_counts(outcome, machine, fastest["time"]), _words(space, result.nest)]
            )
    return section


def _counts(outcome: Outcome, machine: Machine, fastest: int) -> list[Cell]:
    total, time = outcome.total, outcome.time_ticks
    return [
        outcome.bytes, time * machine.tick_ps / 1e6, time / fastest, total.calls, total.segments,
        round(total.bytes / total.segments), total.bursts,
    ]  # fmt: skip


def _words(space: Space, nest: Nest) -> str:
    return decision_text(space.decision(nest))


def _networks() -> Section:
    machine = load_machine("scratchpad_64k", None)
    columns = [
        "network",
        "objective",
        "layers",
        "proven",
        "worst gap",
        "median s",
        "worst s",
        "worst layer",
        "textbook/optimum",
        "worst of it",
    ]
    section = Section(
        "every distinct conv and FC layer on scratchpad_64k by exhaustive search, proven or with a gap", columns
    )
    for network in _NETWORKS:
        layers = distinct_layers(network)
        for objective in ("bytes", "time"):
            seconds: dict[str, float] = {}
            ratios = []
            proven, gap = 0, 0.0
            for layer in layers:
                space = space_of(layer, machine)
                best, textbook = _run(space, objective), _run(space.uniform(), objective)
                seconds[layer.name] = best.wall_s
                proven += best.status == "OPTIMAL"
                if best.measures and textbook.measures:
                    ratios.append(textbook.measures[objective] / best.measures[objective])
                    gap = max(gap, 1 - (best.bound or 0) / best.measures[objective])
            worst = max(seconds, key=lambda name: seconds[name])
            times = list(seconds.values())
            section.rows.append(
                [
                    network, objective, len(layers), proven, gap, median(times), max(times), worst, geomean(ratios),
                    max(ratios),
                ]
            )  # fmt: skip
    return section


def _free_on_nmp() -> Section:
    machine = load_machine("nmp", None)
    columns = ["network", "layers", "objective", "F2/free mean", "F2/free worst", "layers better", "never worse"]
    section = Section("nmp: TSO's dataflows (F2) over free hold depths in the same partitions", columns)
    for objective in ("time", "bytes"):
        layers = distinct_layers("resnet50")
        ratios = []
        for layer in layers:
            space = space_of(layer, machine)
            free, own = _run(space, objective).measures, _run(space.uniform(), objective).measures
            if free is not None and own is not None:
                ratios.append(own[objective] / free[objective])
        better = sum(r > 1 for r in ratios)
        section.rows.append(
            ["resnet50", len(layers), objective, geomean(ratios), max(ratios), better, min(ratios) >= 1]
        )
    return section


def _growth() -> list[Section]:
    columns = ["layer", "KiB", "bytes", "nests", "looked at", "s"]
    memory = Section("growth with the memory: 3x3, 73x73, 80 -> 192, fewest bytes", columns)
    layer = next(x for x in load_network("peer_layers").conv_layers if x.name == "c")
    for kib in (16, 32, 64, 128, 256, 512):
        memory.rows.append(_grown(layer, kib))
    size = Section("growth with the layer: 3x3, 64 KiB, fewest bytes", columns)
    for side, channels in ((14, 32), (28, 64), (56, 64), (112, 64), (112, 128), (224, 128), (224, 256)):
        larger = Layer.conv(
            f"{side}x{side}, {channels} -> {channels}", channels=channels, filters=channels, size=(side, side),
            kernel=(3, 3), pad=(1, 1, 1, 1),
        )  # fmt: skip
        size.rows.append(_grown(larger, 64))
    return [memory, size]


def _grown(layer: Layer, kib: int) -> list[Cell]:
    machine = load_machine("scratchpad_64k", {"ocm_bytes": str(kib * 1024), "psum_bytes": "1"})
    space = space_of(layer, machine)
    found = _run(space, "bytes")
    moved = found.measures["bytes"] if found.measures else None
    return [layer.name, kib, moved, space.size["points"], int(str(found.stats["looked_at"])), found.wall_s]
