"""F8 selection as a formulation: what may be asked, by which engines, and heuristics to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Unable
from formulations.selection.boards import board_settings
from formulations.selection.figures import SelectionFigures
from formulations.selection.frame import LARGEST, Frame, Setting
from formulations.selection.part import SelectionPart
from formulations.selection.pins import strangers
from formulations.selection.rows import MEASURES
from formulations.selection.steps import Step, everywhere, nowhere, steps
from hwmodels.selection.schedule import Selection
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.variants import Variants


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
    summary = "F8: variant of every layer, pipeline cuts, frequencies and input size"
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

    Raises
    ------
    InputError
        If the machine has no platform, the variants name what it does not have, or a pin is bad.
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
