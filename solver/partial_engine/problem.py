"""Problem partial_engine, as the rest of `solver` sees it: the rows of its plans, and fronts of engine sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from formulations.partial_engine.problem import EngineFormulation
from formulations.partial_engine.size import SECONDS
from hwmodels.partial_engine.schedule import EngineSchedule
from hwmodels.partial_engine.work import engine_of
from instances.errors import InputError
from solver.front import Front, FrontPart, FrontPoint
from solver.partial_engine.plan import EngineCounts, EngineLayer, EnginePlan, EngineReplay
from solver.partial_engine.show import engine_details, engine_status, engine_table
from solver.partial_engine.size import fits, front_engine
from solver.parts import PartsProblem
from solver.plan import Objective
from solver.question import Question
from solver.report import Sheet
from solver.search import Answer
from solver.verdict import Verdict

__all__ = ["PartialEngineProblem"]

#: Kinds of DRAM bytes, the terms of the objective.
_KINDS = ("inputs", "weights", "spilled", "reloaded", "results")


class PartialEngineProblem(PartsProblem[EnginePlan]):
    """F4: runs of layers on a small engine."""

    plan = EnginePlan
    front_engines = False

    def __init__(self) -> None:
        super().__init__(EngineFormulation())
        self.others = {"cp-sat": ("auto",), "": ("cp-sat", "auto")}
        self.axes = {"dsps": "DSPs", "rate": "frames in 1000 s"}

    def row(self, verdict: Verdict) -> EngineLayer:
        """Return the schedule with what its replay counts."""
        said, counts = verdict.said, _counts(verdict)
        ok = None if counts is None else not verdict.disagreements
        return EngineLayer(
            layer=verdict.part.name, status=said.status, objective=None if counts is None else _objective(counts),
            bound=said.bounds.get("bytes"), gap=verdict.gap, wall_s=said.wall_s, stats=dict(said.stats),
            conflicts=said.conflicts, schedule=said.schedule, counts=counts,
            replay=EngineReplay(ok=ok, faults=verdict.disagreements),
        )  # fmt: skip

    def said(self, row: EngineLayer) -> Answer[Any]:
        """Return what a row says of bytes and their bound."""
        values = {} if row.objective is None else {"bytes": row.objective.value}
        bounds = {"bytes": row.bound}
        return Answer(
            None, values, bounds, row.status, stats=row.stats, conflicts=row.conflicts, wall_s=row.wall_s
        )  # fmt: skip

    def decided(self, row: EngineLayer) -> EngineSchedule | None:
        """Return the schedule of a row."""
        return row.schedule

    def totals(self, objectives: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Sum what is counted (of a bank the most), the terms of the objective by kind, and all faults."""
        totals, counted = super().totals(objectives, verdicts), [_counts(one) for one in verdicts]
        known = [one for one in counted if one is not None]
        if len(known) < len(counted):
            return {**totals, "counts": None, "replay": EngineReplay(ok=None)}
        names = [name for name in EngineCounts.model_fields if name != "peak_bytes"]
        sums = {name: sum(getattr(one, name) for one in known) for name in names}
        counts = EngineCounts(**sums, peak_bytes=max(one.peak_bytes for one in known))
        faults = tuple(f"{one.part.name}: {fault}" for one in verdicts for fault in one.disagreements)
        replay = EngineReplay(ok=not faults, faults=faults)
        return {**totals, "objective": _objective(counts), "counts": counts, "replay": replay}

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The front of DSPs against the frame rate of a network, all sizes up to 64 x 64."""
        if question.pins:
            raise InputError(f"pin {question.pins[0]!r}: the front of engine sizes takes no pins")
        engine, network = engine_of(question.machine), question.network
        points = []
        for size in front_engine([network], question.machine):
            able = fits(size, engine)
            body = {"size": {**asdict(size), "rates": [rate / SECONDS for rate in size.rates]}, "fits": able}
            label = f"{size.e_in} x {size.e_out}, {size.brams} block RAMs{'' if able else ', does not fit'}"
            points.append(FrontPoint({"dsps": size.dsps, "rate": size.rates[0]}, body, label))
        part = FrontPart("", tuple(points), complete=True, proven=True)
        return Front(self.name, network.name, question.machine.name, self.axes, (part,))

    def status(self, plan: EnginePlan) -> list[str]:
        """What is known."""
        return engine_status(plan)

    def sheet(self, plan: EnginePlan) -> Sheet:
        """The table."""
        return engine_table(plan)

    def details(self, plan: EnginePlan, layer: str | None) -> Iterable[str]:
        """Banks and programs."""
        return engine_details(plan, layer)


def _counts(verdict: Verdict) -> EngineCounts | None:
    """What the replay counted."""
    walked = verdict.walked
    return None if walked is None else EngineCounts(**walked.counts, **walked.measures)


def _objective(counts: EngineCounts) -> Objective:
    return Objective(value=counts.bytes, unit="bytes", terms={kind: getattr(counts, kind) for kind in _KINDS})
