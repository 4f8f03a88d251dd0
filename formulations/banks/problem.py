"""Banks as a formulation: what may be asked, by which engines, and policies to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from formulations.banks.front import few_labels
from formulations.banks.part import BankPart, BankProgram, FirstLayerMode
from formulations.banks.policies import double_buffer, hide, minimise, no_reuse
from formulations.banks.published import published
from formulations.banks.readings import FIRST_LAYERS, FirstPin
from formulations.banks.states import BankPlan
from formulations.clock import Clock, TimeUp
from formulations.pins import Decision, Pins
from formulations.problem import Formulation, Goal, Unable
from hwmodels.banks.replay.time import StageFigures
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network

Heuristic = Callable[[BankPart, Goal], BankProgram | None]
Policy = Callable[[FirstLayerMode, Clock], BankPlan | None]
#: Seconds that a policy may take once the time is up; after so many no further one is tried.
_HASTE_S, _SOON_S = 1.0, 0.25

_POLICIES: dict[str, tuple[str, Policy]] = {
    "min": ("MIN as published: fewest bytes stage by stage, a tile of each result stays",
            lambda one, limit: published(one.free, limit)),
    "min-all": ("MIN with all orders of paths, also where nothing of a result stays",
                lambda one, limit: minimise(one.free, limit=limit)),
    "dls": ("MIN with DRAM-last storing", lambda one, limit: minimise(one.free, dram_first=False, limit=limit)),
    "hide": ("HIDE: least delay stage by stage", lambda one, limit: hide(one.free, one.part.clock, limit)),
    "double-buffer": ("naive reuse: half of the banks for tiles read, half for results, one tile a step",
                      lambda one, limit: double_buffer(one.free, limit)),
    "no-reuse": ("nothing stays between stages, all banks for tiles read",
                 lambda one, limit: no_reuse(one.free, limit)),
    "beam": ("the first pass of dynamic: of every stage the few plans with the least time are followed",
             lambda one, limit: few_labels(one.walk, one.part.clock, limit)),
}  # fmt: skip
_OTHER_NAMES = {
    "naive-reuse": ("another name of double-buffer, as the source calls it", "double-buffer"),
    "greedy-multipath": ("another name of min-all: shared tiles are chosen path after path", "min-all"),
}


def _heuristic(name: str) -> Heuristic:
    """A policy for the first reading; `beam` tries all."""
    policy = _POLICIES[name][1]

    def run(part: BankPart, goal: Goal) -> BankProgram | None:
        limit, plans = Clock.of(_HASTE_S) if goal.clock.over else goal.clock, list[BankProgram]()
        for reading in part.pieces(goal) if name == "beam" else list(part.readings.values())[:1]:
            with suppress(InputError, TimeUp):
                plan = policy(reading, limit)
                plans += [reading.program(plan)] if plan else []
        if not plans:
            raise Unable(f"policy {name} {'is not done in time' if limit.over else 'gets stuck in these banks'}")
        second = "bytes" if goal.measure == "time" else "time"
        return min(plans, key=lambda one: [part.price(one).measures[measure] for measure in (goal.measure, second)])

    return run


def _best(part: BankPart, goal: Goal) -> BankProgram | None:
    """The best plan of some policies; once the time is up the later ones are tried only if there is none soon."""
    plans, soon = list[BankProgram](), Clock.of(_SOON_S if goal.clock.over else None)
    for name in ("min", "no-reuse", "hide", "double-buffer", "beam"):
        if plans and soon.over:
            break
        with suppress(Unable):
            made = _heuristic(name)(part, goal)
            plans += [made] if made and not part.contains(made) else []
    return min(plans, key=lambda one: part.price(one).measures[goal.measure], default=None)


class BankFormulation(Formulation[BankProgram]):
    """Which tiles of feature maps stay in which memory bank, over a whole network."""

    name = "banks"
    summary = "which tiles of feature maps stay in which memory bank, over a whole network"
    schedule = BankProgram
    figures = dict[str, StageFigures]
    whole = True
    measures = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}  # noqa: RUF012
    ties = ("time", "bytes")
    decisions = {  # noqa: RUF012
        "residuals": Decision(
            "residuals=chip or residuals=dram: where the second operand of a sum may wait", ("chip", "dram")
        ),
        "first_layer": Decision(
            "first_layer=patches, plain or either: how the first convolution is read", FIRST_LAYERS
        ),
    }  # fmt: skip
    engines = {  # noqa: RUF012
        "dynamic": "dynamic programming over what is on chip: exact in bytes and in time",
        "milp": "state arcs with HiGHS: exact in bytes",
        "cp-sat": "state arcs with CP-SAT: exact in bytes",
    }
    heuristics = {  # noqa: RUF012
        **{name: (about, _heuristic(name)) for name, (about, _) in _POLICIES.items()},
        **{name: (about, _heuristic(same)) for name, (about, same) in _OTHER_NAMES.items()},
        "policies": ("the best of min, no-reuse, hide, double-buffer and beam", _best),
    }
    quick = ("policies",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[BankPart]:  # fmt: skip
        """Return the network."""
        stated = {pin.name: pin for pin in pins.pins}
        if strange := [str(pin) for pin in stated.values() if pin.op != "="]:
            raise InputError(f"pin {strange[0]}: only = applies")
        first = cast(FirstPin, stated["first_layer"].value) if "first_layer" in stated else None
        waiting = stated["residuals"].value == "chip" if "residuals" in stated else None
        return [BankPart(network, machine, first, waiting)]
