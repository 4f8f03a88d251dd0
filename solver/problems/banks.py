"""Problem banks, as the rest of `solver` sees it: its fronts, and how its plans are shown.

A row (`StageRow`) says of a stage what is decided, what the network says, and what was counted. Drawn are banks step by
step, times and bytes by stage, and the roofline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from formulations.banks.problem import BankFormulation, BankPart
from formulations.banks.readings import readings
from formulations.clock import Clock
from hwmodels.banks.replay.time import Held, StageFigures
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.network.feature_maps import FeatureMap, Stage
from solver.ask.question import Question
from solver.plan.figures import Axis, Bars, Box, Boxes, Figure
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.problem import Problem
from solver.search.loop import Answer
from solver.search.verdict import Verdict
from solver.show.common import by_row, stacked, us
from solver.show.roofline import Rate, roofline, unpadded
from solver.show.tables import Column, Sheet, name_column
from solver.show.words import agreement, bytes_moved, labels, microseconds

Row = TypeVar("Row")
#: The kind of a layer whose work the layer before it does: an average.
FUSED = "fused"
_NOTHING = StageFigures(0, 0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class StageRow:
    """A stage, or the pool that is fused with it, which moves nothing and takes no time of its own."""

    name: str
    kind: str
    run: StageRun
    stage: Stage
    source: FeatureMap
    target: FeatureMap
    seen: StageFigures

    @property
    def initial(self) -> int:
        """Tiles of the source on chip when the stage begins."""
        return sum(not tile.loaded for tile in self.run.tiles)

    @property
    def code(self) -> str:
        """The control code as the source writes it, and what stays."""
        if self.kind == FUSED:
            return f"fused with {self.stage.name}"
        run = self.run
        stays = f", {len(run.results)} stay" + (" mirrored" if run.last else "") if run.results else ""
        return f"{self.initial} there: {actions(run)}{stays}"


def actions(run: StageRun) -> str:
    """The control code of a stage: L loads, P processes so many tiles."""
    return " ".join(f"{do[0].upper()}{tiles}" for do, tiles in run.actions)


def fitting(rows: Callable[[Plan], Iterable[Row]], plan: Plan) -> list[Row]:
    """Return the rows of a plan, none without a schedule; raises InputError if it does not fit what it is for."""
    try:
        return [] if plan.schedule is None else list(rows(plan))
    except (LookupError, TypeError, ValueError):
        raise InputError("schedule and figures of the plan do not fit its network: check the plan") from None


def stage_rows(plan: Plan) -> list[StageRow]:
    """Return the stages of a plan in the order that they run, fused pools behind theirs (`fitting`)."""
    return fitting(_rows, plan)


def _rows(plan: Plan) -> Iterator[StageRow]:
    program, seen = plan.schedule, plan.part.figures
    found = readings(plan.network_data, plan.machine_data, program.first_layer)[program.first_layer]
    for run in program.runs:
        stage = found.named(run.stage)
        maps = found.maps[run.source], found.maps[stage.target]
        yield StageRow(stage.name, stage.kind, run, stage, *maps, seen[stage.name])
        if stage.pooled is not None:
            yield StageRow(stage.target, FUSED, run, stage, *maps, _NOTHING)


def waits_of(plan: Plan) -> int:
    """Return the delay of the processing elements: ticks in which they wait for DRAM."""
    return sum(one.waits for one in (plan.part.figures or {}).values())


#: Stage, action, and what every bank holds after it.
History = Sequence[tuple[str, str, Mapping[int, Held]]]

#: What a letter of the replay means.
_STATES = {
    "I": "input that is there", "L": "being loaded", "P": "being read", "O": "result", "R": "waits for another stage",
}  # fmt: skip
_NOTE = "MACs of padding are left out, which the machine skips."
_BYTES = {"load": "maps in", "weight": "weights", "streamed": "other operands", "bias": "biases", "write": "maps out"}


def stage_bars(plan: Plan, rows: Mapping[str, Sequence[StageRow]]) -> list[Bars]:
    """Return time and bytes of every stage by what they are, beside those of other engines."""

    def time(row: StageRow) -> dict[str, float]:
        waits = {f"waits for {what}": getattr(row.seen, f"waits_for_{what}") for what in ("maps", "weights", "writes")}
        ticks = {"computes": row.seen.ticks - row.seen.waits, **waits}
        return {name: us(plan, number) for name, number in ticks.items()}

    stages = {engine: [row for row in mine if row.kind != FUSED] for engine, mine in rows.items()}
    moved = by_row(stages, lambda row: {words: getattr(row.seen, name) for name, words in _BYTES.items()})
    caption = "From the end of the stage before; waiting is for DRAM."
    return [
        stacked("time-by-stage", "Time by stage", caption, "time (us)", by_row(stages, time)),
        stacked("bytes-by-stage", "Bytes by stage", "What moves between DRAM and the chip.", "bytes", moved),
    ]


def banks_by_step(stages: Sequence[StageRow], history: History, count: int) -> Boxes:
    """Return what every bank holds after every action of every stage; what stays is one box."""
    rows = {row.name: row for row in stages}
    groups, boxes = tuple(_STATES.values()), list[Box]()
    open_: dict[int, tuple[int, int, str, str]] = {}  # of a bank: since when, what state, map, stage
    lines, before, step = list[float](), "", 0

    def close(bank: int, end: int) -> None:
        since, state, name, stage = open_.pop(bank)
        boxes.append(
            Box(since, end, bank - 0.45, bank + 0.45, name, state, f"{stage}: bank {bank}, steps {since} to {end}")
        )

    for step, (stage, _, held) in enumerate(history):
        if stage != before:
            lines += [step] if before else []
            before = stage
        for bank in range(count):
            now = _state(held.get(bank), rows.get(stage))
            if bank in open_ and (now is None or open_[bank][1:] != (*now, stage)):
                close(bank, step)
            if now is not None and bank not in open_:
                open_[bank] = (step, *now, stage)
    for bank in sorted(open_):
        close(bank, step + 1)
    lanes = tuple((float(k), f"bank {k}") for k in range(count))
    caption = (
        "What each bank holds, action after action (a load of tiles, or a process step; all steps are as wide). Dotted "
        "lines part stages; blank is free. Times of stages are in the next figure."
    )
    lanes_axis = Axis("", ticks=lanes, downwards=True, limits=(-0.6, count - 0.4))
    return Boxes(
        "banks", "Banks over time", caption, Axis("step"), lanes_axis, groups, tuple(boxes), count, tuple(lines)
    )


def _state(held: Held | None, row: StageRow | None) -> tuple[int, str] | None:
    """The state of a bank by its number, and whose map it holds."""
    if held is None:
        return None
    return list(_STATES).index(_letter(held, row)), held[1]


def _letter(held: Held, row: StageRow | None) -> str:
    """What a bank holds, as a stage sees it: the replay calls all maps that are there inputs."""
    letter, name, _ = held
    if letter == "I" and row is not None and name != row.source.name:
        return "O" if name == row.target.name else "R"
    return letter


def _rates(plan: Plan, rows: Sequence[StageRow]) -> list[Rate]:
    macs = {layer.name: unpadded(layer) for layer in plan.network_data.layers}
    return [Rate(row.name, macs.get(row.name, 0), row.seen.bytes, row.seen.ticks) for row in rows]


#: The objectives of the plans of a front, each with the most ticks (`Asked.most`) that it may take.
FRONT = ("bytes", "time")
_PROGRAM = (
    "tiles that are there when the stage begins, steps that load (L) or process (P) so many tiles, tiles of the result "
    "that stay on chip"
)
_LEGEND = "I input there, L being loaded, P processed, O output, R waits for another stage, . free"


class BanksProblem(Problem):
    """Feature maps of a whole network in memory banks."""

    front_engines = False

    def __init__(self) -> None:
        super().__init__(BankFormulation())
        self.axes = {"bytes": "bytes", "time": "ticks"}
        self.doubting_engines = ("no-reuse", "double-buffer", "min", "min-all", "dls", "hide", "beam")
        self.others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """An engine that minimises the first objective."""
        chosen = super().engine(name, objectives)
        if not self._able(chosen, objectives):
            raise InputError(f"engine {chosen} minimises bytes only: use dynamic for objective {objectives[0]}")
        return chosen

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Those that minimise the first objective."""
        return {name: proves for name, proves in super().able(plan).items() if self._able(name, plan.objectives)}

    @staticmethod
    def _able(engine: str, objectives: Sequence[str]) -> bool:
        return objectives[0] != "time" or engine not in ("cp-sat", "milp")

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time."""
        plans = self._front(question)
        proven = all(plan.status == "OPTIMAL" for plan in plans)
        return self.front_of(question, plans, proven)

    def _front(self, question: Question) -> tuple[Plan, ...]:
        """The plans on the front, by bytes: each moves the fewest of all that take no more time.

        If the whole front is proven they are OPTIMAL; raises InputError if there is no plan.
        """
        start, question = time.monotonic(), replace(question, objectives=FRONT, engine="dynamic")
        (part,) = self.parts(question)
        programs, whole = cast(BankPart, part).front(Clock.of(question.time_limit_s))
        plans = []
        for program in programs:
            values = part.price(program).measures
            bounds = (
                {name: values[name] for name in FRONT} if whole.proven else {"bytes": whole.bytes_bound, "time": None}
            )
            said = Answer(
                program, values, bounds, "OPTIMAL" if whole.proven else "FEASIBLE",
                stats={"labels": whole.labels, "states": whole.states},
            )  # fmt: skip
            plan = self.made(question, [(part, said)], start)
            options = plan.options.model_copy(update={"most": {"time": values["time"]}})
            plans.append(plan.model_copy(update={"options": options}))
        return tuple(plans)

    def resolve(self, plan: Plan, engine: str, time_limit_s: float | None, jobs: int) -> Plan:
        """Solve again; a plan of a front is the one with the fewest bytes of all that take no more time."""
        most = plan.options.most.get("time")
        if most is None:
            return super().resolve(plan, engine, time_limit_s, jobs)
        if engine == "dynamic":
            plans = self._front(replace(self.question(plan), time_limit_s=time_limit_s))
        else:
            plans = (super().resolve(plan, engine, time_limit_s, jobs),)
        kept = (one for one in plans if one.measures is not None and one.measures["time"] <= most)
        return next(kept, _none(plan)).model_copy(update={"options": plan.options})

    def faults(self, plan: Plan, verdicts: list[Verdict]) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan, and what a front promises."""
        yield from super().faults(plan, verdicts)
        most = plan.options.most
        for name, value in most.items():
            if name not in FRONT or (plan.measures is not None and plan.measures.get(name, 0) > value):
                yield f"options.most: {name} is more than {value}"
        if most and plan.objectives != FRONT:
            yield f"objectives: {','.join(plan.objectives)}; a plan of a front (options.most) has {','.join(FRONT)}"

    # ---- for people --------------------------------------------------------------------------------------------------

    def noted(self, plan: Plan) -> Mapping[str, str]:
        """Time, and how much of it is waiting."""
        time = plan.measures["time"] if plan.measures else 0
        return {"time (us)": microseconds(plan, time), "waits (us)": microseconds(plan, waits_of(plan))}

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The stages."""
        return [(row.name, row.seen) for row in stage_rows(plan)]

    def said(self, plan: Plan) -> Iterator[str]:
        """What is left to win, and replay."""
        ticks, waits = plan.part.measures["time"], waits_of(plan)
        yield bytes_moved(plan)
        yield f"{microseconds(plan, ticks)} us, {microseconds(plan, waits)} us of them waiting ({waits / ticks:.1%})"
        if len(readings(plan.network_data, plan.machine_data)) > 1:
            patches = plan.schedule.first_layer == "patches"
            yield "first layer over patches" if patches else "first layer plain, not patches"
        yield agreement(plan)

    def sheet(self, plan: Plan) -> Sheet:
        """The table of stages."""
        rows, total = stage_rows(plan), plan.measures

        def volume(head: str, name: str, means: str, spare: int) -> Column:
            found = [getattr(row.seen, name) for row in rows]
            return Column(head, [f"{number:,}" for number in found], means, f"{sum(found):,}", spare=spare)

        ticks = [microseconds(plan, row.seen.ticks) for row in rows]
        time = Column("time (us)", ticks, "from the end of the stage before",
                      microseconds(plan, total["time"]) if total else "")  # fmt: skip
        moved = volume("bytes", "bytes", "to and from DRAM", 0)
        return Sheet(
            [
                name_column("stage", labels([row.name for row in rows], plan.network_data.layers)),
                *((moved, time) if plan.objectives[0] == "bytes" else (time, moved)),
                Column("waits (us)", [microseconds(plan, row.seen.waits) for row in rows], "of the time, for DRAM",
                       microseconds(plan, waits_of(plan)), spare=1),
                Column("program", [row.code for row in rows], _PROGRAM, words=True),
                volume("load", "load", "bytes of the map that is read tile by tile", 2),
                volume("weights", "weight", "bytes of weights", 2),
                volume("streamed", "streamed", "bytes of other operands", 3),
                volume("write", "write", "bytes of the result", 2),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Banks step by step, times and bytes by stage, roofline."""
        if plan.schedule is None:
            return []
        rows = {engine: stage_rows(one) for engine, one in plans.items()}
        banks = plan.machine_data.banks
        assert banks is not None
        return [
            banks_by_step(rows[plan.engine], self._history(plan), banks.count),
            *stage_bars(plan, rows),
            roofline(plan.machine_data, {name: _rates(plan, mine) for name, mine in rows.items()}, "stage", _NOTE),
        ]

    def _history(self, plan: Plan) -> History:
        """What banks hold after every action."""
        (part,) = self.parts(self.question(plan))
        return cast(BankPart, part).replay(plan.schedule).moved.history

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """The map of banks by time, as in Fig. 4.9 and 4.10 of its source, of one stage or all."""
        yield from (_LEGEND, "")
        history = [] if plan.schedule is None else self._history(plan)
        for row in stage_rows(plan):
            if layer in (None, row.name):
                yield from _bank_lines(plan, row, history)


def _none(plan: Plan) -> Plan:
    """An answer that says nothing."""
    nothing = {"status": "NO_SOLUTION_FOUND", "measures": {}, "schedule": None, "bounds": dict.fromkeys(FRONT)}
    empty = {"objective": None, "bound": None, "gap": None, "measures": None, "status": "NO_SOLUTION_FOUND"}
    return plan.model_copy(update={**empty, "parts": (plan.part.model_copy(update=nothing),)})


def _bank_lines(plan: Plan, row: StageRow, history: History) -> list[str]:
    """The lines of a stage."""
    if row.kind == FUSED:
        return [f"{row.name}: fused with {row.stage.name}, which ends with it", ""]
    banks, pooled, source, target = plan.machine_data.banks, row.stage.pooled, row.source, row.target
    assert banks is not None
    way = "last column first" if row.run.backwards else "first column first"
    kind = f"{row.kind} of {pooled.columns} columns, averaged at its end" if pooled else row.kind
    head = (
        f"{row.name}: {kind}, {source.name} ({source.columns} columns of {source.column_bytes:,} bytes, "
        f"{source.tile(banks)} a bank, {way}) -> {target.name} ({target.columns} columns, {target.tile(banks)} a bank)"
    )
    steps = [(action, held) for name, action, held in history if name == row.name]
    cells = [[action, *(_cell(held.get(k), row) for k in range(banks.count))] for action, held in steps]
    time, waits = microseconds(plan, row.seen.ticks), microseconds(plan, row.seen.waits)
    last = f"  {row.seen.bytes:,} bytes, {time} us, {waits} us of them waiting"
    return [head, _line(["", *(f"bank {k}" for k in range(banks.count))]), *map(_line, cells), last, ""]


def _cell(held: Held | None, row: StageRow) -> str:
    """What a bank holds: a letter and the first column."""
    return "." if held is None else f"{_letter(held, row)}{held[2]}"


def _line(cells: Sequence[str]) -> str:
    return "  " + f"{cells[0]:<10}" + "".join(f"{cell:>8}" for cell in cells[1:])


PROBLEM = BanksProblem
