"""Suite ``peers``: DRAM bytes of five layers on which other mappers were measured, beside what no plan can beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from formulations.tiling.space import Space
from hwmodels.nest.price.limits import compulsory_bytes, lower_bound_bytes
from hwmodels.nest.replay.referee import replay
from instances.load import load_machine, load_network
from instances.network.workload import Layer
from solver.problems.layers_search import decide
from solver.show.words import decision_text
from solver.uses.bench.engines import agree, space_of
from solver.uses.bench.report import Cell, Suite, Table

_SIZES = ("24k", "64k", "128k")
_SOLVERS = ("cp-sat", "milp")


@dataclass(frozen=True)
class _Setting:
    """One table: machine settings, pins, and whether the solvers prove it too."""

    title: str
    settings: Mapping[str, str]
    pins: tuple[str, ...] = ()
    solvers: bool = False


_TABLES = (
    _Setting("8-bit partial sums", {"psum_bytes": "1"}, solvers=True),
    _Setting("8-bit partial sums, double buffered", {"psum_bytes": "1", "buffering": "double", "overlap": "serial"}),
    _Setting("32-bit partial sums", {}),
    _Setting("32-bit partial sums, tiles that fill the 16 x 64 array", {}, ("array=filled",)),
)


def _row(table: _Setting, layer: Layer, size: str) -> list[Cell]:
    machine = load_machine(f"scratchpad_{size}", dict(table.settings))
    space = space_of(layer, machine, *table.pins)
    best = decide(space, ("bytes",))
    least, limit = compulsory_bytes(layer, machine), lower_bound_bytes(layer, machine)
    head: list[Cell] = [layer.name, int(size.removesuffix("k")), least, limit]
    if best.schedule is None or not best.values:
        return [*head, None, None, None, *[None] * 6, *[None] * (len(_SOLVERS) * table.solvers), "infeasible"]
    moved = best.values["bytes"]
    walked = replay(layer, machine, best.schedule, execute=False)
    if not walked.ok or walked.outcome.measures != best.values:
        raise RuntimeError(f"{layer.name}: replay does not agree")
    whole = space_of(layer, machine.model_copy(update={"sliding": False}), *table.pins)
    others = [_bytes(whole.uniform(), "exhaustive"), _bytes(whole, "greedy"), _bytes(whole, "naive")]
    proofs: list[Cell] = []
    for engine in _SOLVERS if table.solvers else ():
        found = decide(space, ("bytes",), engine)
        if not agree((best, found), "bytes"):
            raise RuntimeError(f"{layer.name}: {engine} says {found.status} {found.values}, not {best.values}")
        proofs.append(found.wall_s)
    looked, gap = int(str(best.stats["looked_at"])), 1 - (best.bound or 0) / moved
    return [
        *head, moved, gap, moved / limit, *others, space.size["points"], looked, best.wall_s, *proofs,
        decision_text(space.decision(best.schedule)),
    ]  # fmt: skip


def _bytes(space: Space, engine: str) -> int | None:
    found = decide(space, ("bytes",), engine).values
    return found["bytes"] if found else None


_NOTES = (
    "limit: the larger of compulsory traffic and the I/O lower bound for this memory; no plan moves less.",
    "textbook: best plan with one hold depth and whole tiles (no sliding); greedy and naive choose among those.",
    "looked at: combinations of chains whose price was computed; every optimum is replayed.",
    "gap: what the bound on all nests leaves open below the optimum of all candidates; 0: proven.",
)


def _table(number: int, setting: _Setting) -> Table:
    solvers = [f"{e} s" for e in _SOLVERS if setting.solvers]
    return Table(
        f"DRAM bytes: int8, {setting.title}",
        ["layer", "KiB", "compulsory", "limit", "optimum", "gap", "/limit", "textbook", "greedy", "naive", "nests",
         "looked at", "s", *solvers, "plan"],
        lambda: [(layer, size) for layer in load_network("peer_layers").conv_layers for size in _SIZES],
        partial(_row, setting), () if number else _NOTES, label=lambda case: f"{case[0].name} {case[1]}",
    )  # fmt: skip


peers = Suite("peers", [_table(number, setting) for number, setting in enumerate(_TABLES)])
