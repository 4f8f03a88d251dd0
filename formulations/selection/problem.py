"""Selection as a formulation: what may be asked, by which engines, and heuristics to compare with.

**Heuristics**: the paper's default order, one technique after the other (Fig. 3.8), all techniques, none.

Example: Tiny YOLO on a Jetson TX2, seconds for 20,000 images (Table 3.4): baseline 1,150, pipelining 660, Tucker
decomposition everywhere 540, only where a layer gains 530, threads on the CPU 502, 16 bits everywhere 502, only where a
layer gains 460. The order ends there; what other orders, and fewer or more layers, would give is not asked.

Source: `heterogeneous_mapping_and_banks` 3.1.3 (Fig. 3.1, Table 3.4), 3.2.1.2 (Fig. 3.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Unable
from formulations.selection.boards import board_settings
from formulations.selection.frame import LARGEST, MEASURES, Frame, Setting, caps, measured
from formulations.selection.part import SelectionFigures, SelectionPart
from formulations.selection.pins import strangers
from hwmodels.selection.schedule import Selection
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.variants import VariantLayer, Variants


@dataclass(frozen=True)
class Step:
    """A step of an order."""

    name: str
    frame: Frame
    chosen: tuple[int, ...]
    measures: Mapping[str, int]
    kept: bool
    """Whether later steps build on it."""


def steps(frames: Sequence[Frame], measure: str, most: Mapping[str, int]) -> list[Step]:
    """Return the steps of the default order, the baseline first; none if its element types do not meet.

    Each is kept if it makes `measure` less and keeps the limits (software steps count by period where energy or score
    is asked for: clocks come last). There is a frame at least; `most` are limits of measures.
    """
    made = _Order(frames, measure, most)
    if not made.begin():
        return []
    made.frames("pipelining", lambda frame, now: (frame.size, frame.frequency) == (now.size, now.frequency))
    for technique in frames[0].setting.variants.techniques:
        made.technique(technique)
    made.frames("frequency", lambda frame, now: (frame.size, frame.cuts) == (now.size, now.cuts), last=True)
    made.frames("input size", lambda frame, now: (frame.frequency, frame.cuts) == (now.frequency, now.cuts), last=True)
    return made.steps


class _Order:
    def __init__(self, frames: Sequence[Frame], measure: str, most: Mapping[str, int]) -> None:
        self.all, self.measure, self.most = frames, measure, most
        self.steps: list[Step] = []

    @property
    def now(self) -> Step:
        """The last step that was kept."""
        return next(step for step in reversed(self.steps) if step.kept)

    def begin(self) -> bool:
        """The baseline: as it comes, or the first frame in which its types meet; return whether there is one."""
        first = self.all[0]
        wanted = tuple(name for name in first.stages if name in first.setting.variants.baseline_cuts)
        frames = sorted(self.all, key=lambda frame: frame.cuts != wanted)
        return any(self.add("baseline", frame, bases(frame), kept=True) for frame in frames)

    def add(
        self, name: str, frame: Frame, chosen: Sequence[int], *, kept: bool | None = None, last: bool = False
    ) -> bool:
        """Price a step; return whether there is one."""
        total = frame.total(chosen)
        if total is None:
            return False
        measures = measured(frame, total)
        if kept is None:
            kept = self.worth(frame, total, last=last) < self.worth(self.now.frame, self.total(self.now), last=last)
        self.steps.append(Step(name, frame, tuple(chosen), measures, kept))
        return True

    def total(self, step: Step) -> list[int]:
        """What it takes."""
        return step.frame.total(step.chosen) or []

    def worth(self, frame: Frame, total: Sequence[int], *, last: bool) -> tuple[int, int]:
        """How far limits are not kept, then what is minimised."""
        measure = self.measure if last or self.measure not in ("energy", "score") else "period"
        over = sum(max(0, row.of(total) - (row.most or 0)) for row in caps(frame, self.most) if row.most is not None)
        return over, measured(frame, total)[measure]

    def technique(self, technique: str) -> None:
        """A technique at all layers that have it; then only where the layer is faster."""
        now = self.now
        everywhere, selected = list(now.chosen), list(now.chosen)
        for i, layer in enumerate(now.frame.layers):
            other = _switched(now.frame, layer, i, now.chosen[i], technique)
            if other is not None:
                everywhere[i] = other
                times = now.frame.takes[i][:, : now.frame.loss].sum(axis=1)
                selected[i] = other if times[other] < times[now.chosen[i]] else now.chosen[i]
        self.add(technique, now.frame, everywhere)
        if selected != everywhere:
            self.add(f"selected {technique}", now.frame, selected)

    def frames(self, name: str, alike: object, *, last: bool = False) -> None:
        """Another frame for the same options, the best of some."""
        now = self.now
        others = [f for f in self.all if f.setting is now.frame.setting and f is not now.frame and alike(f, now.frame)]  # type: ignore[operator]
        made = [(self.worth(f, total, last=last), k) for k, f in enumerate(others) if (total := f.total(now.chosen))]
        if made:
            self.add(name, others[min(made)[1]], now.chosen, last=last)


def _switched(frame: Frame, layer: VariantLayer, i: int, o: int, technique: str) -> int | None:
    """The fastest option that has one technique more than option o, on its stage; None if there is none."""
    mine = layer.options[o]
    wanted = {*mine.techniques, technique}
    there = [
        k for k, option in enumerate(layer.options) if option.stage == mine.stage and {*option.techniques} == wanted
    ]
    times = frame.takes[i][:, : frame.loss].sum(axis=1)
    return min((k for k in there if k != o), key=lambda k: int(times[k]), default=None)


def everywhere(frames: Sequence[Frame]) -> Iterator[tuple[Frame, list[int]]]:
    """Yield all techniques at all layers, in every frame, those with the most cuts first."""
    for frame in sorted(frames, key=lambda frame: -len(frame.cuts)):
        chosen = bases(frame)
        for technique in frame.setting.variants.techniques:
            for i, layer in enumerate(frame.layers):
                other = _switched(frame, layer, i, chosen[i], technique)
                chosen[i] = chosen[i] if other is None else other
        yield frame, chosen


def nowhere(frames: Sequence[Frame]) -> Iterator[tuple[Frame, list[int]]]:
    """Yield the base of all layers, in every frame."""
    for frame in frames:
        yield frame, bases(frame)


def bases(frame: Frame) -> list[int]:
    """Return the base option of every layer."""
    return [layer.options.index(layer.base) for layer in frame.layers]


def default_order(part: SelectionPart, goal: Goal) -> list[Step]:
    """Return the steps of the default order for a goal; raises Unable if pins leave nothing."""
    if not part.frames:
        raise Unable("the pins leave nothing to choose")
    return steps(part.frames, goal.measure, {**part.demands.limits, **goal.caps})


def _stepped(part: SelectionPart, goal: Goal) -> Selection | None:
    made = default_order(part, goal)
    kept = [step for step in made if step.kept]
    return kept[-1].frame.schedule(kept[-1].chosen) if kept else None


def _priced(
    make: Callable[[Sequence[Frame]], Iterator[tuple[Frame, list[int]]]],
) -> Callable[[SelectionPart, Goal], Selection | None]:
    """A heuristic that makes one choice for every frame: the best of these that keeps the limits."""

    def run(part: SelectionPart, goal: Goal) -> Selection | None:
        best: tuple[int, Selection] | None = None
        for frame, chosen in make(part.frames):
            if frame.total(chosen) is None:
                continue
            schedule = frame.schedule(chosen)
            measures = part.price(schedule).measures
            fits = all(measures[name] <= most for name, most in goal.caps.items()) and not part.contains(schedule)
            if fits and (best is None or measures[goal.measure] < best[0]):
                best = measures[goal.measure], schedule
        if best is None:
            raise Unable("no frame of it keeps the limits")
        return best[1]

    return run


class SelectionFormulation(Formulation[Selection]):
    """A variant for every layer, cuts, clocks, and input size."""

    name = "selection"
    summary = "variant of every layer, pipeline cuts, frequencies and input size"
    schedule = Selection
    figures = SelectionFigures
    target = Variants | Network
    whole = True
    measures = MEASURES
    decisions = {  # noqa: RUF012
        "LAYER": Decision("conv3=base, conv3!=tucker: variant, technique or stage of a layer", open=True),
        "technique": Decision("technique!=f16: no layer takes it; technique=f16: all that offer it do", open=True),
        "size": Decision("size=416: input size", open=True),
        "frequency": Decision("frequency=nominal: clocks", open=True),
        "cut": Decision("cut=inference,back: stages that begin a thread; cut=none, cut=all, cut!=back", open=True),
        "cpu_config": Decision("cpu_config=2,2: groups of the cores of a board", open=True),
        "accuracy": Decision("accuracy>=0.31", decimal=True),
        "seconds": Decision("seconds<=600: for all images", decimal=True),
        **{name: Decision(f"{name}<=N: in {unit}") for name, unit in MEASURES.items()},
    }
    engines = {  # noqa: RUF012
        "search": "labels through the network, bounds by Lagrange multipliers; CP-SAT if labels grow too many",
        "dynamic": "the same, labels alone",
        "cp-sat": "CP-SAT: a Boolean an option",
        "milp": "MILP with HiGHS: flows between element types and stages",
        "milp-cbc": "the same with CBC",
        "exhaustive": "all choices, small instances",
    }
    heuristics = {  # noqa: RUF012
        "steps": ("the paper's order: pipelining, technique after technique, frequency, input size", _stepped),
        "all": ("every technique at every layer that offers it", _priced(everywhere)),
        "none": ("the base of every layer", _priced(nowhere)),
    }
    ties = ("period", "time", "energy", "error", "memory")
    tie_share = 0.1
    starts = ("steps",)
    quick = ("steps", "all", "none")

    def read(
        self, network: Network | Variants, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[SelectionPart]:  # fmt: skip
        """Return the network in variants as one part; raises InputError if target, machine or pins do not fit."""
        return [part_of(network, machine, pins.to_json())]


def part_of(target: Network | Variants, machine: Machine, pins: Sequence[str]) -> SelectionPart:
    """Return what is decided.

    Raises InputError if the machine has no platform, the variants name what it does not have, or a pin is bad.
    """
    settings = settings_of(target, machine)
    for setting in settings:
        for frame in setting.frames:
            power = max((frame.frequency.power_mw, *(s.power_mw for s in setting.platform.stages), 1))
            if frame.longest * machine.tick_ps * power * (len(frame.stages) + 1) > 2 * LARGEST:
                raise InputError(
                    f"variants {setting.variants.name}: times or powers are too large, choose a larger tick_ps "
                    f"(it is {machine.tick_ps})"
                )
            break
    return SelectionPart(settings, pins)


def settings_of(target: Network | Variants, machine: Machine) -> list[Setting]:
    """Return variants on the platform of a machine, or a network on a board; raises InputError if they do not fit."""
    if isinstance(target, Network) and machine.processors is not None:
        return board_settings(target, machine)
    if not isinstance(target, Variants):
        raise InputError(
            f"network {target.name}: problem selection takes variants of its layers with their times: a bundled "
            "profile such as tiny_yolo_tx2, or a .json or .csv file (certile variants makes one); of a network itself "
            "they are estimated on a board, such as galaxy_s9"
        )
    if machine.platform is None:
        raise InputError(f"machine {machine.name}: problem selection needs a platform, such as jetson_tx2 has")
    strangers(target, machine.platform, f"variants {target.name} on machine {machine.name}")
    return [Setting(target, machine.platform, machine.tick_ps)]
