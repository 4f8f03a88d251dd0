"""Readings of a network on a machine with memory banks: its first layer as a product over patches, or as it is.

Both are possible where the machine lays its inputs out as patches (`Banks.patch_channels`). The machine says which it
is (`Banks.first_layer`), or a pin; with ``either`` engines that optimise choose, each reading being a piece of what is
searched. The published policies read patches, as their compiler does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from formulations.banks.network import Point
from formulations.problem import Goal, Model, Part, Piece
from formulations.rows import Build
from hwmodels.banks.steps import DramClock
from instances.errors import InputError
from instances.machine.machine import Banks, Machine
from instances.network.feature_maps import Stages, stages
from instances.network.network import Network
from instances.network.workload import refuse_long

FirstLayer = Literal["patches", "plain"]
FirstPin = Literal["patches", "plain", "either"]
FIRST_LAYERS: tuple[FirstPin, ...] = ("patches", "plain", "either")
S = TypeVar("S")


class Reading(Piece[S]):
    """The plans of one reading; what none of them can do without, and models of rows."""

    least: Point

    def cp_sat(self, goal: Goal) -> Model[S] | None:
        """Return the rows."""
        from formulations.rows_cp_sat import cp_sat  # late: it imports its solver

        return self.model(goal, cp_sat)

    def milp(self, goal: Goal) -> Model[S] | None:
        """Return the rows."""
        from formulations.rows_milp import milp  # late: it imports its solver

        return self.model(goal, milp)

    @abstractmethod
    def model(self, goal: Goal, build: Build[S]) -> Model[S] | None:
        """Return the rows as `build` makes a model of them."""


R = TypeVar("R", bound=Reading[Any])


class Readings(Part[S], Generic[S, R]):
    """A network, and its readings by name."""

    readings: Mapping[str, R]

    @cached_property
    def least(self) -> Point:
        """What no plan of any reading can do without."""
        floors = [reading.least for reading in self.readings.values()]
        return Point(min(point.bytes for point in floors), min(point.ticks for point in floors))

    @property
    def must(self) -> dict[str, int]:
        """Every weight, and every input and result of the network once."""
        return {"bytes": self.least.bytes}

    def reading(self, first_layer: str) -> R:
        """Return the reading of a schedule; raises InputError if there is none."""
        if first_layer not in self.readings:
            raise InputError(f"the first layer is {first_layer}, it may be {' or '.join(self.readings)}")
        return self.readings[first_layer]


def readings(network: Network, machine: Machine, pin: FirstPin | None = None) -> dict[FirstLayer, Stages]:
    """Return the stages of a network by reading: what the machine and a pin allow, patches first.

    Raises InputError if the machine has no banks, the network has no bank program, or patches are asked for that it
    cannot have.
    """
    if machine.banks is None:
        raise InputError(f"machine {machine.name} has no banks: problem banks needs one that has, such as midap")
    for layer in network.layers:
        refuse_long(layer)
    found: dict[FirstLayer, Stages] = {}
    laid = stages(network, machine.banks)
    if any(stage.kind == "patches" for stage in laid.stages):
        found["patches"] = laid
        found["plain"] = stages(network, machine.banks, patches=False)
    else:
        found["plain"] = laid
    wanted = pin or machine.banks.first_layer
    if wanted == "either" or (pin is None and wanted not in found):
        return found
    if wanted not in found:
        raise InputError(
            f"network {network.name}: no first layer on machine {machine.name} is a product over patches "
            f"(a convolution of at most {machine.banks.patch_channels} channels that alone reads the input)"
        )
    return {wanted: found[wanted]}


def clock_of(machine: Machine) -> DramClock:
    """Return the clock of a machine with banks."""
    assert machine.banks is not None
    cycle = machine.compute.cycle_ticks
    return DramClock(machine.transfer, cycle, machine.banks.stage_cycles * cycle, machine.banks.by_cycle)


def may_wait(machine: Machine, waiting: bool | None) -> bool:
    """Return whether results may wait on chip for a sum: what is asked for, or what the machine says.

    Raises InputError if it is asked for, and the machine cannot.
    """
    able = machine.banks is not None and machine.banks.residuals == "chip"
    if waiting and not able:
        raise InputError(
            f"machine {machine.name}: the second operand of a sum cannot wait on chip (banks.residuals is dram); "
            "--set banks.residuals=chip for a chip that can"
        )
    return able if waiting is None else waiting


def floor_of(found: Stages, banks: Banks, clock: DramClock) -> Point:
    """Return what no plan of a reading can do without: bytes that must move once, ticks of computing."""
    work = sum(stage.cycles for stage in found.stages) * clock.cycle + clock.fixed * len(found.stages)
    return Point(_compulsory(found, banks), work)


def _compulsory(found: Stages, banks: Banks) -> int:
    """Bytes of every weight, bias, input and result once; of inputs without what may stay unread."""
    made = {stage.target for stage in found.stages}
    inputs = sum(_read(found, banks, name) * m.column_bytes for name, m in found.maps.items() if name not in made)
    return once(found) + inputs


def once(found: Stages) -> int:
    """Bytes of every weight, bias and result once."""
    weights = sum(stage.weight_bytes + stage.bias_bytes for stage in found.stages)
    results = sum(s.written * found.maps[s.target].columns for s in found.stages if found.lasting(s.target))
    return weights + results


def _read(found: Stages, banks: Banks, name: str) -> int:
    """Columns of a map that have to be loaded."""
    columns, users = found.maps[name].columns, [stage for stage in found.stages if stage.name in found.users[name]]
    if users and (banks.unread == "loaded" or any(stage.kind == "patches" for stage in users)):
        return columns
    return min(columns, max((stage.ends(found.computed(stage)[0]) for stage in users), default=0))
