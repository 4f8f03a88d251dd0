"""A network in variants on a platform, as the part that is decided; a frame is a piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.clock import Clock
from formulations.problem import Goal, Model, Part, Piece, Priced, Replayed, Steps, Unable
from formulations.selection import search as labels
from formulations.selection.frame import (
    Form,
    Frame,
    Ints,
    Row,
    Setting,
    caps,
    form,
    measure_rows,
    measured,
    score_rows,
    stage_powers,
    tighter,
)
from formulations.selection.pins import Demands, demands
from formulations.selection.search import Floats, Found, exhaustive
from hwmodels.selection.replay import replay
from hwmodels.selection.schedule import Selection
from instances.errors import InputError
from instances.network.variants import PPM


@dataclass(frozen=True)
class LayerFigures:
    """What is chosen for a layer takes."""

    layer: str
    type: str
    """Element type that it reads and writes."""
    techniques: tuple[str, ...]
    time: int
    """Ticks, at the chosen frequency and size."""
    between: int
    """Ticks of its stage for conversions and hand-overs of its map, and for maps that it is handed."""
    loss_ppm: int
    bytes: int


@dataclass(frozen=True)
class ThreadLoad:
    """A thread of the pipeline: stages that work on one image, one after the other."""

    stages: tuple[str, ...]
    load: int
    """Busy ticks of a period."""


@dataclass(frozen=True)
class SelectionFigures:
    """All layers, in their order, and all threads."""

    layers: tuple[LayerFigures, ...]
    threads: tuple[ThreadLoad, ...]


def _layers(frame: Frame, chosen: Sequence[int]) -> Iterator[LayerFigures]:
    """Conversions and sends belong to the layer that made a map, receives to its reader."""
    states = [frame.states[i][frame.state[i][o]] for i, o in enumerate(chosen)]
    between = [0] * len(chosen)
    for i, readers in enumerate(frame.readers):
        for kind in dict.fromkeys(states[j][1] for j in readers):
            between[i] += frame.convert(i, states[i], kind) or 0
        for j in readers:
            hand = frame.hand(i, states[i], states[j])
            between[i] += hand.get(states[i][0], 0)
            between[j] += hand.get(states[j][0], 0) if states[i][0] != states[j][0] else 0
    for i, (layer, o) in enumerate(zip(frame.layers, chosen, strict=True)):
        option, stage = layer.options[o], states[i][0]
        yield LayerFigures(
            layer=layer.name, type=option.type, techniques=option.techniques, time=int(frame.takes[i][o][stage]),
            between=between[i], loss_ppm=option.loss_ppm, bytes=option.bytes,
        )  # fmt: skip


#: Seconds for each question of what makes an instance infeasible.
_EXPLAIN_S = 2.0
#: Of engine search the widths that labels have before CP-SAT goes on, and the parts of the gap that it is asked for.
_SHORT, _WINDOWS = 2, (4, 2, 1)


class SelectionPart(Part[Selection]):
    """All frames that pins leave.

    Parameters
    ----------
    settings : sequence of Setting
        One; of a board one for each configuration of its cores.
    pins : sequence of str
        What is demanded; raises InputError for bad ones.
    """

    def __init__(self, settings: Sequence[Setting], pins: Sequence[str] = ()) -> None:
        self.name, self.settings, self.pins = settings[0].variants.name, tuple(settings), tuple(pins)
        self.demands = demands(pins, settings)
        self.hints: dict[str, Sequence[Floats]] = {}

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Those that are left; none if pins leave a layer nothing."""
        return tuple(_frames(self.settings, self.demands))

    @cached_property
    def _pieces(self) -> tuple[Whole, ...]:
        return tuple(Whole(self, frame) for frame in self.frames)

    def pieces(self, goal: Goal) -> Iterator[Piece[Selection]]:
        """The frames, those with the least floor first."""
        limits = tighter(self.demands.limits, goal.caps)
        floors = [(piece.floor(goal), n) for n, piece in enumerate(self._pieces) if piece.may_keep(limits)]
        return (self._pieces[n] for _, n in sorted(floors))

    def frame(self, schedule: Selection) -> Frame:
        """The frame of a schedule; raises InputError if pins, or the platform, do not leave it."""
        for frame in self.frames:
            if frame.is_of(schedule):
                return frame
        cuts = ",".join(schedule.cuts) or "none"
        said = f"size {schedule.size}, frequency {schedule.frequency}, cut={cuts}"
        raise InputError(
            f"selection: {said} {schedule.configuration} is not among what is asked for".replace("  ", " ")
        )

    def total(self, schedule: Selection) -> tuple[Frame, list[int]]:
        """The frame of a schedule, and what it takes by quantity; raises InputError if it is none."""
        frame = self.frame(schedule)
        total = frame.total(frame.chosen(schedule))
        if total is None:
            raise InputError("selection: a layer reads a type that its map cannot be converted to")
        return frame, total

    def price(self, schedule: Selection) -> Priced:
        """All measures; the terms of each."""
        frame, total = self.total(schedule)
        return Priced(measured(frame, total), _terms(frame, frame.chosen(schedule), total))

    def replay(self, schedule: Selection) -> Replayed:
        """What the referee sees."""
        setting = next(one for one in self.settings if one.configuration == schedule.configuration)
        walked = replay(setting.variants, setting.platform, setting.tick_ps, schedule)
        return Replayed(walked.measures, tuple(walked.faults))

    def figures_of(self, schedule: Selection, walked: Replayed) -> SelectionFigures:
        """What layers take, and how busy threads are."""
        frame, total = self.total(schedule)
        threads = []
        for thread in range(max(frame.threads) + 1):
            mine = [s for s, number in enumerate(frame.threads) if number == thread]
            threads.append(ThreadLoad(tuple(frame.stages[s] for s in mine), sum(total[s] for s in mine)))
        return SelectionFigures(tuple(_layers(frame, frame.chosen(schedule))), tuple(threads))

    def contains(self, schedule: Selection) -> tuple[str, ...]:
        """Pins, limits and budgets that are not kept."""
        try:
            frame, total = self.total(schedule)
        except InputError as error:
            return (str(error),)
        rows = caps(frame, self.demands.limits)
        return tuple(dict.fromkeys(
            f"{row.name} {row.of(total)} is above {row.most}" for row in rows
            if row.most is not None and row.of(total) > row.most
        ))  # fmt: skip

    # ---- why there is none -------------------------------------------------------------------------------------------

    def explain(self) -> tuple[str, ...]:
        """A smallest set of pins and limits of the platform that cannot be kept together."""
        kept = [*self.pins, *_limits(self.settings[0])]
        if self._possible(kept):
            return ()
        for text in tuple(kept):
            less = [one for one in kept if one != text]
            if not self._possible(less):
                kept = less
        return tuple(self._said(text) for text in kept) or ("no choice has types that meet",)

    def _possible(self, kept: Sequence[str]) -> bool:
        """Whether some schedule keeps these demands, or it is not known."""
        names = set(kept)
        settings = [_without(setting, names) for setting in self.settings]
        asked = demands([pin for pin in self.pins if pin in names], settings)
        for frame in _frames(settings, asked):
            piece = Whole(self, frame)
            goal = Goal("error", dict(asked.limits), clock=Clock.of(_EXPLAIN_S))
            try:
                if piece.may_keep(asked.limits):
                    found = labels.search(frame, form(frame, goal, {}), goal.clock)
                    if found.chosen is not None or not found.proven:
                        return True
            except Unable:
                return True
        return False

    def _said(self, text: str) -> str:
        """A demand with the least that there is."""
        if text in self.pins:
            name = demands([text], self.settings).limits
            return f"pin {text}{self._least(next(iter(name)))}" if name else f"pin {text}"
        return f"limit of the platform: {text}"

    def _least(self, measure: str) -> str:
        floors = [Whole(self, frame).floor(Goal(measure)) for setting in self.settings for frame in setting.frames]
        return f" ({measure} is at least {min(floors):,} without any other demand)" if floors else ""

    # ---- for people --------------------------------------------------------------------------------------------------

    def label(self, schedule: Selection) -> str:
        """Size, frequency, cuts, and how many layers are of which variant."""
        counts: dict[str, int] = {}
        for choice in schedule.choices:
            counts[choice.variant] = counts.get(choice.variant, 0) + 1
        made = ", ".join(f"{number} {variant}" for variant, number in counts.items())
        return f"{self.frame(schedule).name}: {made}"


class Whole(Piece[Selection]):
    """A frame."""

    def __init__(self, part: SelectionPart, frame: Frame) -> None:
        self.part, self.frame = part, frame
        self.name = frame.name if len(part.settings[0].frames) > 1 else ""

    def may_keep(self, limits: Mapping[str, int]) -> bool:
        """Whether every limit leaves something, each by itself."""
        rows = caps(self.frame, limits)
        return all(row.most is None or row.of(self._least) <= row.most for row in rows)

    @cached_property
    def _least(self) -> list[int]:
        """The least of every quantity."""
        return self._lowest(np.eye(self.frame.quantities, dtype=np.int64))

    def _lowest(self, weights: Ints) -> list[int]:
        """The least of weighted quantities, each by itself, of shape (quantities, number)."""
        table = self.frame.table @ weights
        lowest: list[int] = np.minimum.reduceat(table, self.frame.setting.begins).sum(axis=0).tolist()
        return lowest

    def floor(self, goal: Goal) -> int:
        """The largest of the rows, each where it is least."""
        if goal.measure == "score":
            return self._floor(measure_rows(self.frame, "energy")) // self.frame.size.accuracy_ppm
        return self._floor(measure_rows(self.frame, goal.measure))

    def _floor(self, rows: Sequence[Row]) -> int:
        weights = np.array([row.weights for row in rows], np.int64).T
        return max(c + row.const for c, row in zip(self._lowest(weights), rows, strict=True))

    # ---- searches ----------------------------------------------------------------------------------------------------

    def steps(self, goal: Goal, engine: str) -> Steps[Selection]:
        """By the form of a goal; of score by forms of energy - factor * accuracy until nothing is negative."""
        if goal.measure != "score":
            return self._asked(form(self.frame, goal, self.part.demands.limits), goal, engine)
        return self._score(goal, engine)

    def _score(self, goal: Goal, engine: str) -> Steps[Selection]:
        best, below, limits = None, goal.below, self.part.demands.limits
        kept = tuple(caps(self.frame, tighter(limits, goal.caps)))
        if below is None:
            energy = form(self.frame, replace(goal, measure="energy"), limits)
            best, bound = yield from self._asked(energy, goal, engine)
            if best is None:
                return None, None if bound is None else self.floor(goal)
            below = self._value(best)
        while True:
            asked = Form(score_rows(self.frame, below), kept, below=0)  # negative: a score below that value
            better, bound = yield from self._asked(asked, goal, engine)
            if bound is None:
                return best, None if best is None else below
            value = below if better is None else self._value(better)
            if better is None or value >= below:
                return best, self.floor(goal)
            best, below = better, value
            goal.stats["factors"] = int(goal.stats.get("factors") or 0) + 1

    def _value(self, schedule: Selection) -> int:
        return self.part.price(schedule).measures["score"]

    def _asked(self, asked: Form, goal: Goal, engine: str) -> Steps[Selection]:
        """Decide a form; the bound is None if there is nothing below."""
        if engine == "exhaustive":
            chosen = exhaustive(self.frame, asked, goal.clock)
            return self._told(chosen, asked)
        if engine in ("search", "dynamic"):
            return (yield from self._labelled(asked, goal, engine))
        told = yield self._model(asked, goal, engine)
        return told.schedule, told.bound

    def _labelled(self, asked: Form, goal: Goal, engine: str) -> Steps[Selection]:
        """Labels; engine search has CP-SAT decide among what they leave."""
        short = engine == "search"
        try:
            found = labels.search(
                self.frame, asked, goal.clock, self.part.hints.get(goal.measure, ()),
                labels.WIDTHS[:_SHORT] if short else labels.WIDTHS,
            )  # fmt: skip
        except Unable as error:
            if not short:
                raise
            goal.stats["note"] = f"cp-sat alone: {error}"
            told = yield self._model(asked, goal, engine)
            return told.schedule, told.bound
        self.part.hints[goal.measure] = found.multipliers
        if found.proven:
            return self._told(found.chosen, asked)
        least = max(self._floor(asked.objective), -(2**62) if found.bound is None else found.bound)
        if not short or goal.clock.over:
            return (None if found.chosen is None else self.frame.schedule(found.chosen)), least
        return (yield from self._windows(asked, goal, found, least))

    def _windows(self, asked: Form, goal: Goal, found: Found, least: int) -> Steps[Selection]:
        """CP-SAT below a quarter of what lies between bound and value, below half of it, then below the value.

        The less room there is, the fewer options labels leave; where a window is empty the bound rises to its end.
        """
        from formulations.selection import cp_sat

        best, value = found.chosen, asked.below
        value = value if best is None else asked.value(self.frame.total(best) or [])
        for parts in _WINDOWS if value is not None else (1,):
            end = value if value is None or parts == 1 else min(value, least + (value - least) // parts + 1)
            asked = replace(asked, below=end)
            if end != value or parts < _WINDOWS[0]:
                found = labels.search(self.frame, asked, goal.clock, found.multipliers, labels.WIDTHS[:1])
            if found.chosen is not None and end is not None:
                best, value = found.chosen, asked.value(self.frame.total(found.chosen) or [])
                end = value
            schedule = None if best is None else self.frame.schedule(best)
            if not found.proven:
                hint = schedule or goal.known
                told = yield cp_sat.build(self.frame, replace(asked, below=end), hint, found.options)
                if told.bound is not None:
                    return (schedule, least) if told.schedule is None else (told.schedule, max(least, told.bound))
            if end == value:
                return schedule, (None if schedule is None else value)
            least = max(least, end or least)
        return None, None

    def _told(self, chosen: Sequence[int] | None, asked: Form) -> tuple[Selection | None, int | None]:
        """A proven answer."""
        if chosen is None:
            return None, None
        return self.frame.schedule(chosen), asked.value(self.frame.total(chosen) or [])

    def _model(self, asked: Form, goal: Goal, engine: str) -> Model[Selection]:
        if engine in ("milp", "milp-cbc"):
            from formulations.selection import milp  # late: solvers are slow to import

            return milp.build(self.frame, asked)
        from formulations.selection import cp_sat

        return cp_sat.build(self.frame, asked, goal.known)


def _frames(settings: Sequence[Setting], asked: Demands) -> Iterator[Frame]:
    for setting in settings:
        left = asked.restrict(setting)
        if left is not None:
            yield from (frame for frame in left.frames if asked.allows(frame))


def _limits(setting: Setting) -> list[str]:
    """Limits of the platform, by name."""
    memory = [] if setting.platform.memory_bytes is None else [f"memory_bytes {setting.platform.memory_bytes}"]
    return [*memory, *(f"{budget.name} {budget.most}" for budget in setting.platform.budgets)]


def _without(setting: Setting, names: set[str]) -> Setting:
    """The same without limits of the platform that are not named."""
    platform = setting.platform
    budgets = tuple(
        budget if f"{budget.name} {budget.most}" in names else budget.model_copy(update={"most": 2**50})
        for budget in platform.budgets
    )
    memory = platform.memory_bytes if f"memory_bytes {platform.memory_bytes}" in names else None
    return replace(setting, platform=platform.model_copy(update={"budgets": budgets, "memory_bytes": memory}))


def _terms(frame: Frame, chosen: Sequence[int], total: Sequence[int]) -> dict[str, dict[str, int]]:
    """What sums to each measure."""
    layers = [
        sum(column) for column in zip(*(t[o].tolist() for t, o in zip(frame.takes, chosen, strict=True)), strict=True)
    ]
    busiest = max(measure_rows(frame, "period"), key=lambda row: row.of(total))
    terms = dict[str, dict[str, int]]()
    for name, row in zip(("period", "time"), (busiest, *measure_rows(frame, "time")), strict=True):
        mine = [s for s in range(len(frame.stages)) if row.weights[s]]
        terms[name] = {f"{frame.stages[s]} layers": layers[s] for s in mine if layers[s]}
        terms[name]["conversions and hand-overs"] = sum(total[s] - layers[s] for s in mine)
    tick_ps = frame.setting.tick_ps
    terms["energy"] = {"board": frame.frequency.power_mw * tick_ps * busiest.of(total)}
    drawn = {
        stage: mw * tick_ps * total[s]
        for s, (stage, mw) in enumerate(zip(frame.stages, stage_powers(frame), strict=True))
    }
    terms["energy"] |= {stage: fj for stage, fj in drawn.items() if fj}
    terms["error"] = {"size": PPM - frame.size.accuracy_ppm, "variants": total[frame.loss]}
    terms["memory"] = {"layers": layers[frame.memory], "buffers": total[frame.memory] - layers[frame.memory]}
    return {**terms, "score": {"score": measured(frame, total)["score"]}}
