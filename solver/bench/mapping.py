"""Suite ``mapping``: tasks on a board's processors, the optimum against clustering, a genetic search and HEFT (F5)."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from formulations.clock import Clock
from formulations.mapping.formulation import MappingFormulation
from formulations.mapping.part import MappingPart
from formulations.mapping.problem import Configuration, Limits, Schedule
from formulations.problem import Goal
from solver.bench.report import Cell, Report, timed
from solver.mapping.plan import MappingPlan
from solver.mapping.problem import MappingProblem
from solver.progress import Progress
from solver.search import Answer, settled
from solver.solve import ask as question_of
from solver.solve import pareto
from solver.verify import gap_of

_NETWORKS = ("squeezenet1_1", "mobilenet_v1", "mobilenet_v2", "densenet40")
_MACHINE = "galaxy_s9"
_CAPS = (40, 50, 60, 70, 100)
_LIMIT_S = 30.0
_SEEDS = 10
#: What counts as good as proven.
_NEAR = 0.01


def case(whole: MappingPart, configuration: Configuration, cap: int, limit: float = _LIMIT_S) -> list[Cell]:
    """A row: the periods of all, the optimum's bound and gap; the genetic search has as long as the optimum, in all."""
    part = MappingPart(whole.name, {configuration: whole.instances[configuration]}, Limits(cap))

    def asked(engine: str) -> Answer[Schedule]:
        return settled(MappingFormulation(), part, ("period",), engine, Clock.of(limit))

    free, wall = timed(lambda: asked("auto"))
    clustered = asked("clustering")
    rivals = sorted(_genetic(part, wall / _SEEDS))
    period, bound = free.values.get("period"), free.bounds["period"]
    proven = bool(clustered.stats.get("clustering_proven"))
    return [
        whole.name, ",".join(map(str, configuration)), cap, clustered.values.get("period"), proven, period, bound,
        gap_of(period, bound), rivals[0], median(rivals), asked("heft").values.get("period"), wall,
    ]  # fmt: skip


def _genetic(part: MappingPart, seconds: float) -> list[int]:
    from formulations.mapping.genetic import evolve  # late: DEAP

    (piece,) = part.pieces(Goal("period"))
    asked = piece.asked(Goal("period"))
    clocked = (replace(asked, clock=Clock.of(seconds)) for _ in range(_SEEDS))
    return [one.value(Schedule(evolve(one, seed=seed))) for seed, one in enumerate(clocked)]


def front_row(name: str) -> list[Cell]:
    """The exact front of period and energy with all cores in one group."""
    front, wall = timed(lambda: pareto(name, _MACHINE, problem="mapping", pins=["cpu_config=4"]))
    plans = [plan for plan in front.plans if isinstance(plan, MappingPlan)]
    found = [plan.measures for plan in plans if plan.measures is not None]
    ends = [found[0].period, found[-1].period, found[0].energy / 1e12, found[-1].energy / 1e12]
    return [name, len(found), front.proven, *ends, wall]


def mapping(progress: Progress) -> Report:
    """Periods of four networks on every configuration of the cores, and the fronts of period and energy."""
    asked = (question_of(name, _MACHINE, problem="mapping", objective="period")[1] for name in _NETWORKS)
    parts = [part for question in asked for part in MappingProblem().parts(question)]
    report = Report("mapping", progress=progress)
    cases = [(one, few, cap) for one in parts for few in one.instances for cap in _CAPS]
    heads = [
        "network", "cores", "cap %", "clustering", "proven", "free", "bound", "gap", "ga best", "ga median", "heft",
        "s",
    ]  # fmt: skip
    periods = report.fill(f"Periods on {_MACHINE} (us)", heads, cases, lambda one: case(*one), _label)
    heads = ["network", "plans", "proven", "least us", "most us", "most mJ", "least mJ", "s"]
    report.fill("Fronts, cores in one group", heads, _NETWORKS, front_row)
    gaps = [row[7] for row in periods.rows]
    near = sum(isinstance(gap, float) and gap <= _NEAR for gap in gaps)
    proven = sum(gap == 0 for gap in gaps)
    periods.notes += [
        f"{proven} of {len(gaps)} proven, {near} within 1 %, each in at most {_LIMIT_S:.0f} s.",
        f"ga: {_SEEDS} seeded runs that take as long together as the optimum; clustering: the best of all clusterings.",
    ]
    report.figures = {"proven": proven, "near": near, "cases": len(gaps)}
    return report


def _label(one: tuple[MappingPart, Configuration, int]) -> str:
    return f"{one[0].name} {one[1]} {one[2]} %"
