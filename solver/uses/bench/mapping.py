"""Suite ``mapping``: tasks on a board's processors, the optimum against clustering, a genetic search and HEFT.

Periods under caps, fronts of period and energy, latencies of one inference, and what it is worth to divide tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from formulations.clock import Clock
from formulations.mapping.problem import MappingFormulation, MappingPart
from formulations.mapping.space import Configuration, Limits, Schedule
from formulations.problem import Goal
from hwmodels.board.schedule import MappingSchedule
from solver.calls.solve import ask as question_of
from solver.calls.solve import pareto
from solver.plan.claims import gap_of
from solver.problems.mapping import MappingProblem
from solver.search.loop import Answer, decide_part
from solver.uses.bench.report import Cell, Report, Suite, Table, timed

_NETWORKS = ("squeezenet1_1", "mobilenet_v1", "mobilenet_v2", "densenet40")
#: With branches side by side, or many tasks.
_WIDE = ("inception_v3", "densenet121", "shufflenet_1x")
_MACHINE = "galaxy_s9"
#: Of the cores, where there are no caps.
_CONFIGURATIONS = ((4,), (2, 2), (1, 1, 1, 1))
_CAPS = (40, 50, 60, 70, 100)
_LIMIT_S = 30.0
#: Seconds for a latency, and for whole or divided tasks.
_ALONE_S, _SPLIT_S = 60.0, 20.0
_QUICK = MappingFormulation.quick
_SEEDS = 10
#: What counts as good as proven.
_NEAR = 0.01


def case(whole: MappingPart, configuration: Configuration, cap: int, limit: float = _LIMIT_S) -> list[Cell]:
    """A row: the periods of all, the optimum's bound and gap; the genetic search has as long as the optimum, in all."""
    part = MappingPart(whole.name, {configuration: whole.instances[configuration]}, Limits(cap))
    free, wall = timed(lambda: _answer(part, "period", "auto", limit))
    clustered = _answer(part, "period", "clustering", limit)
    rivals = sorted(_genetic(part, wall / _SEEDS))
    period, bound = free.values.get("period"), free.bounds["period"]
    proven, heft = bool(clustered.stats.get("clustering_proven")), _answer(part, "period", "heft", limit)
    return [
        whole.name, ",".join(map(str, configuration)), cap, clustered.values.get("period"), proven, period, bound,
        gap_of(period, bound), rivals[0], median(rivals), heft.values.get("period"), wall,
    ]  # fmt: skip


def _answer(part: MappingPart, aim: str, engine: str, limit: float) -> Answer[MappingSchedule]:
    return decide_part(MappingFormulation(), part, (aim,), engine, Clock.of(limit))


def _genetic(part: MappingPart, seconds: float) -> list[int]:
    from formulations.mapping.genetic import evolve  # late: DEAP

    (piece,) = part.pieces(Goal("period"))
    asked = piece.asked(Goal("period"))
    clocked = (replace(asked, clock=Clock.of(seconds)) for _ in range(_SEEDS))
    return [one.value(Schedule(evolve(one, seed=seed))) for seed, one in enumerate(clocked)]


def front_row(name: str) -> list[Cell]:
    """The exact front of period and energy with all cores in one group."""
    front, wall = timed(lambda: pareto(name, _MACHINE, problem="mapping", pins=["cpu_config=4"]))
    (part,) = front.parts
    first, last = part.points[0].values, part.points[-1].values
    ends = [first["period"], last["period"], first["energy"] / 1e12, last["energy"] / 1e12]
    return [name, len(part.points), front.proven, *ends, wall]


def part_of(name: str, objective: str, pins: Sequence[str] = ()) -> MappingPart:
    """A network on the board, on all configurations."""
    question = question_of(name, _MACHINE, problem="mapping", objective=objective, pins=list(pins))[1]
    (part,) = MappingProblem().parts(question)
    return part


def latency_row(whole: MappingPart, configuration: Configuration, limit: float = _ALONE_S) -> list[Cell]:
    """A row: the latency of one inference by HEFT, by the best of the quick heuristics, and the optimum's bound."""
    part = MappingPart(whole.name, {configuration: whole.instances[configuration]}, alone=True)
    quick = {name: _answer(part, "latency", name, limit).values["latency"] for name in _QUICK}
    found, wall = timed(lambda: _answer(part, "latency", "auto", limit))
    latency, bound = found.values.get("latency"), found.bounds["latency"]
    cores = ",".join(map(str, configuration))
    return [whole.name, cores, quick["heft"], min(quick.values()), latency, bound, gap_of(latency, bound), wall]


def split_row(name: str, configuration: Configuration, aim: str, limit: float = _SPLIT_S) -> list[Cell]:
    """A row: the optimum of whole tasks, and that of tasks that two processors may share in quarters."""
    instance = part_of(name, aim, ["split=on"]).instances[configuration]
    row: list[Cell] = [name, ",".join(map(str, configuration)), aim]
    for one in (instance.whole, instance):
        part = MappingPart(name, {configuration: one}, alone=aim == "latency")
        found, wall = timed(partial(_answer, part, aim, "auto", limit))
        value, bound = found.values.get(aim), found.bounds[aim]
        row += [value, bound, gap_of(value, bound), wall]
    return row


def _tables() -> tuple[Table, ...]:
    """Periods of networks on every configuration, fronts of period and energy, latencies, and divided tasks."""
    parts = [part_of(name, "period") for name in _NETWORKS]
    alone = [part_of(name, "latency") for name in (*_NETWORKS, *_WIDE)]
    return (
        Table(
            f"Periods on {_MACHINE} (us)",
            ["network", "cores", "cap %", "clustering", "proven", "free", "bound", "gap", "ga best", "ga median",
             "heft", "s"],
            [(one, few, cap) for one in parts for few in one.instances for cap in _CAPS], case,
        ),
        Table(
            "Fronts, cores in one group",
            ["network", "plans", "proven", "least us", "most us", "most mJ", "least mJ", "s"], _NETWORKS, front_row,
        ),
        Table(
            f"Latency of one inference on {_MACHINE} (us)",
            ["network", "cores", "heft", "best heuristic", "latency", "bound", "gap", "s"],
            [(one, few) for one in alone for few in _CONFIGURATIONS], latency_row,
            [f"best heuristic: of {', '.join(_QUICK)}; at most {_ALONE_S:.0f} s."],
        ),
        Table(
            f"Tasks divided between two processors in quarters, {_MACHINE} (us)",
            ["network", "cores", "aim", "whole", "bound", "gap", "s", "divided", "its bound", "its gap", "its s"],
            [(name, few, aim) for name in _NETWORKS for few in _CONFIGURATIONS for aim in ("period", "latency")],
            split_row, [f"Each in at most {_SPLIT_S:.0f} s."],
        ),
    )  # fmt: skip


def _proven(report: Report) -> None:
    """How many rows are proven."""
    periods, _, alone, split = report.sections
    gaps = [row[7] for row in periods.rows]
    near = sum(isinstance(gap, float) and gap <= _NEAR for gap in gaps)
    proven = sum(gap == 0 for gap in gaps)
    periods.notes += [
        f"{proven} of {len(gaps)} proven, {near} within 1 %, each in at most {_LIMIT_S:.0f} s.",
        f"ga: {_SEEDS} seeded runs that take as long together as the optimum; clustering: the best of all clusterings.",
    ]
    report.figures = {
        "proven": proven, "near": near, "cases": len(gaps),
        "latencies_proven": sum(row[6] == 0 for row in alone.rows), "latencies": len(alone.rows),
        "divided_proven": sum(row[9] == 0 for row in split.rows), "divided": len(split.rows),
    }  # fmt: skip


SUITE = Suite("mapping", _tables, _proven)
