"""Problem partial_engine, as the rest of `solver` sees it: the rows of its plans, and fronts of engine sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from formulations.partial_engine.orders import from_text
from formulations.partial_engine.problem import EngineFormulation
from formulations.partial_engine.size import SECONDS
from hwmodels.partial_engine.schedule import EngineSchedule
from hwmodels.partial_engine.work import engine_of
from instances.errors import InputError
from solver.front import Front, FrontPart, FrontPoint
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.partial_engine.figures import figures
from solver.partial_engine.plan import EngineCounts, EngineLayer, EnginePlan, EngineReplay
from solver.partial_engine.size import fits, front_engine
from solver.parts import PartsProblem
from solver.plan import Objective
from solver.question import Question
from solver.search import Answer
from solver.tables import ABSENT, GAP, Column, Sheet, conflicts_of, few, name_column, percent
from solver.verdict import Verdict
from solver.words import labels

#: Steps of a program that are shown.
_MOST = 200
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
        """Return what is known, a part each: status, value, bound, gap, runs, additions, time of them, replay."""
        parts = [f"{plan.network} on {plan.machine} (partial_engine, {plan.engine}): {plan.status}"]
        bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
        if plan.objective is None or plan.counts is None:
            missing = [row.layer for row in plan.layers if row.schedule is None]
            said = f"{len(missing)} of {len(plan.layers)} layers without a schedule: {few(missing)}"
            return [*parts, said, *plan.conflicts[:1]]
        gap = "no gap" if plan.gap is None else f"gap {percent(plan.gap)} %"
        hertz = plan.machine_data.engine.clock_hz if plan.machine_data.engine else 1
        parts += [
            f"bytes {plan.objective.value:,}, {bound}, {gap}",
            f"{plan.counts.runs:,} runs and {plan.counts.adds:,} additions, "
            f"{plan.counts.cycles:,} cycles or {1e3 * plan.counts.cycles / hertz:,.2f} ms of the engine",
            "replay agrees" if plan.replay.ok else "replay does not agree",
        ]
        return parts

    def sheet(self, plan: EnginePlan) -> Sheet:
        """Return the table of layers."""
        rows, named = plan.layers, labels([row.layer for row in plan.layers], plan.network_data.layers)

        def count(head: str, names: str, means: str, spare: int) -> Column:
            def of(counts: EngineCounts | None) -> str:
                return ABSENT if counts is None else f"{sum(getattr(counts, name) for name in names.split()):,}"

            return Column(head, [of(row.counts) for row in rows], means, of(plan.counts), spare=spare)

        def decided(head: str, text: Callable[[EngineSchedule], str], means: str, spare: int) -> Column:
            cells = [ABSENT if row.schedule is None else text(row.schedule) for row in rows]
            return Column(head, cells, means, spare=spare)

        return Sheet(
            [
                name_column("layer", named),
                count("bytes", "bytes", "to and from DRAM", 0),
                Column("gap (%)", [row.status if row.schedule is None else percent(row.gap) for row in rows], GAP,
                       percent(plan.gap)),
                decided("strips", lambda made: f"{made.strips}", "of rows, one after the other", 0),
                decided("groups", _groups, "of input x of output maps, in so many grids", 0),
                decided("places", _places, "for input + partial maps in a bank, + 1 for a fresh one", 0),
                count("cycles", "cycles", "of the engine", 1),
                count("runs", "runs", "of the engine", 2),
                count("adds", "adds", "of partial maps", 2),
                count("inputs", "inputs", "their bytes", 3),
                count("weights", "weights", "their bytes", 3),
                count("partial maps", "spilled reloaded", "their bytes, out and in", 3),
                count("results", "results", "their bytes", 3),
            ],
            conflicts_of(rows),
        )  # fmt: skip

    def pictures(self, plan: EnginePlan, others: Mapping[str, EnginePlan]) -> Pictures:
        """Bytes and runs by layer, room in the banks."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: EnginePlan, layer: str | None) -> Iterator[str]:
        """Return the banks and the program of one layer or all, line by line."""
        for row in plan.layers:
            if layer in (None, row.layer):
                yield from (*_layer(row), "")


def _counts(verdict: Verdict) -> EngineCounts | None:
    """What the replay counted."""
    walked = verdict.walked
    return None if walked is None else EngineCounts(**walked.counts, **walked.measures)


def _objective(counts: EngineCounts) -> Objective:
    return Objective(value=counts.bytes, unit="bytes", terms={kind: getattr(counts, kind) for kind in _KINDS})


# ---- for people ------------------------------------------------------------------------------------------------------


def _groups(made: EngineSchedule) -> str:
    return f"{made.inputs} x {made.outputs}" + (f" ({made.grids})" if made.grids > 1 else "")


def _places(made: EngineSchedule) -> str:
    return f"{made.in_places} + {made.part_places}" + (" + 1" if made.fresh_places else "")


def _line(row: EngineLayer) -> str:
    if row.schedule is None or row.counts is None:
        return f"{row.status}: {'; '.join(row.conflicts)}"
    plan, counts = row.schedule, row.counts
    fresh = f" + 1 fresh x {plan.part_place_bytes:,}" if plan.fresh_places else ""
    return (
        f"{plan.strips} strips of {plan.rows} rows, {plan.inputs} x {plan.outputs} groups; a bank: {plan.in_places} "
        f"inputs x {plan.in_place_bytes:,} + {plan.part_places} partial x {plan.part_place_bytes:,}{fresh} = "
        f"{counts.peak_bytes:,} bytes; {counts.runs:,} runs, {counts.adds:,} adds"
    )


def _layer(row: EngineLayer) -> Iterable[str]:
    yield f"{row.layer}: {_line(row)}"
    if row.schedule is None or row.counts is None:
        return
    counts, plan = row.counts, row.schedule
    yield (
        f"moves {counts.bytes:,} bytes: inputs {counts.inputs:,}, weights {counts.weights:,}, partial maps "
        f"{counts.spilled:,} out and {counts.reloaded:,} in, results {counts.results:,}; {counts.cycles:,} cycles"
    )
    if plan.grids > 1:
        yield f"the program runs for each of {plan.grids} grids, one after the other"
    yield "addresses in every bank: " + ", ".join(_addresses(row))
    yield "program of a strip:"
    steps = from_text(plan.program)
    for verb, i, o, place in steps[:_MOST]:
        where = "the fresh place" if place < 0 else f"{'input' if verb == 'load' else 'partial'} place {place}"
        yield "  " + {
            "load": f"load input group {i} to {where}", "back": f"load partial maps {o} again to {where}",
            "run": f"run {i} x {o}, result to {where}", "add": f"add the fresh maps to output group {o} in {where}",
            "spill": f"store partial maps {o} of {where}", "store": f"store result {o} of {where}",
        }[verb]  # fmt: skip
    if len(steps) > _MOST:
        yield f"  and {len(steps) - _MOST:,} more steps"


def _addresses(row: EngineLayer) -> Iterable[str]:
    plan, at = row.schedule, 0
    assert plan is not None
    ins = plan.in_places * (plan.grids if plan.inputs_at == "banks" else 1)
    parts = plan.part_places * (plan.grids if plan.results_at == "banks" else 1)
    for kind, number, size in (
        ("input", ins, plan.in_place_bytes), ("partial", parts, plan.part_place_bytes),
        ("fresh", plan.fresh_places, plan.part_place_bytes),
    ):  # fmt: skip
        if number:
            names = f"{kind} places 0 to {number - 1}" if number > 1 else f"{kind} place"
            yield f"{names} from {at:,}, {size:,} each"
        at += number * size
