"""Suite ``peers``: DRAM bytes of five layers on which other mappers were measured."""

from __future__ import annotations

from formulations.pins import Pins
from formulations.registry import FORMULATIONS
from hwmodels.replay import replay
from instances.load import load_machine, load_network
from instances.workload import Layer
from solver.bench.report import Report, Section
from solver.engines import ENGINES, Limits
from solver.progress import Progress

__all__ = ["compulsory_bytes", "peers"]

_ENGINES = ("exhaustive", "cp-sat", "milp")


def compulsory_bytes(layer: Layer) -> int:
    """Every input, weight and output byte once, at one byte an element."""
    weights = 0 if layer.weights == "none" else layer.g * layer.m * layer.n * layer.kh * layer.kw
    return layer.b * layer.g * (layer.n * layer.h * layer.l * layer.inputs + layer.m * layer.r * layer.c) + weights


def peers(progress: Progress) -> Report:
    """Prove the fewest bytes at 24, 64 and 128 KiB with every engine; 8-bit partial sums, single buffered."""
    layers = load_network("peer_layers").conv_layers
    sizes = ("24k", "64k", "128k")
    sections = []
    progress.begin(len(sizes) * len(layers), "peers")
    for size in sizes:
        machine = load_machine(f"scratchpad_{size}", {"psum_bytes": "1"})
        columns = ["layer", "compulsory", "bytes", "over compulsory", "decision", "engines prove it", "replay agrees"]
        section = Section(f"DRAM bytes on scratchpad_{size}, one common hold depth, --set psum_bytes=1", columns)
        for layer in layers:
            space = FORMULATIONS["tiling"].build(layer, machine, Pins())
            results = {e: ENGINES[e].run(space, ("bytes",), Limits()) for e in _ENGINES}
            best = results["exhaustive"]
            proven = [e for e, r in results.items() if r.status == "OPTIMAL" and r.measures == best.measures]
            if best.nest is None or best.measures is None:
                section.rows.append(
                    [layer.name, compulsory_bytes(layer), None, None, "infeasible", ", ".join(proven), None]
                )
                continue
            decision = " ".join(f"{k}={v}" for k, v in space.decision(best.nest).items())
            moved, least = best.measures["bytes"], compulsory_bytes(layer)
            walked = replay(layer, machine, best.nest, execute=False)
            agrees = walked.ok and walked.outcome.measures == best.measures
            section.rows.append([layer.name, least, moved, moved / least, decision, ", ".join(proven), agrees])
            progress.advance(f"{layer.name} {size}")
        sections.append(section)
    progress.end()
    return Report("peers", sections)
