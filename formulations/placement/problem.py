"""Placement as a formulation: what may be asked, by which engines, and heuristics to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from formulations.pins import Decision, Pins
from formulations.placement.greedy import GREEDY, placed
from formulations.placement.part import MemoryUse, PlacementPart
from formulations.problem import Formulation, Goal, Unable
from hwmodels.placement.schedule import Placement
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.buffers import Buffer, Buffers, Memory
from instances.network.network import Network


def _heuristic(name: str) -> Callable[[PlacementPart, Goal], Placement | None]:
    def run(part: PlacementPart, goal: Goal) -> Placement | None:
        made = placed(part.instance.buffers, part.instance.rooms, name)
        if made is None:
            raise Unable(f"heuristic {name} finds no room for a buffer that has to be on chip")
        return made

    return run


def _best(part: PlacementPart, goal: Goal) -> Placement | None:
    """The best of all heuristics."""
    made = [found for name in GREEDY if (found := placed(part.instance.buffers, part.instance.rooms, name)) is not None]
    order = (goal.measure, "bytes", "preference", "peak")
    priced = [(part.price(one).measures, one) for one in made]
    kept = [row for row in priced if all(row[0][name] <= most for name, most in goal.caps.items())]
    return min(kept, key=lambda row: [row[0][name] for name in order], default=(None, None))[1]


class PlacementFormulation(Formulation[Placement]):
    """Memory and address of every buffer."""

    name = "placement"
    summary = "memory and address of every buffer of a plan, or of a CSV file"
    schedule = Placement
    figures = tuple[MemoryUse, ...]
    target = Buffers
    whole = True
    measures = {"bytes": "bytes", "preference": "bytes", "peak": "bytes"}  # noqa: RUF012
    decisions = {  # noqa: RUF012
        "cap": Decision("cap<=65536: the most bytes of every memory that may be used"),
        "spill": Decision(
            "spill=no: all has to be on chip; spill=yes: all may lie off the chip, written and read once where the "
            "file says nothing", ("yes", "no")
        ),
    }  # fmt: skip
    engines = {  # noqa: RUF012
        "search": "a master for memories (CP-SAT), and an exact search of our own for addresses",
        "cp-sat": "CP-SAT: rectangles of times and addresses",
        "milp": "MILP with HiGHS: which of two lies below, small instances",
        "milp-cbc": "the same with CBC",
    }
    heuristics = {  # noqa: RUF012
        "greedy": ("the best of the five below", _best),
        "size": ("the largest first, at the lowest address", _heuristic("size")),
        "lifetime": ("the longest-lived first, at the lowest address", _heuristic("lifetime")),
        "area": ("bytes times lifetime, the largest first, at the lowest address", _heuristic("area")),
        "time": ("in the order of their times, at the lowest address", _heuristic("time")),
        "best-fit": ("the largest first, in the narrowest gap", _heuristic("best-fit")),
    }
    ties = ("bytes", "preference")
    starts = ("greedy",)
    quick = ("greedy",)

    def read(
        self, network: Network | Buffers, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[PlacementPart]:  # fmt: skip
        """Return all buffers as one part, in memories of their own or of the machine.

        Raises
        ------
        InputError
            For a network, a machine without memories of that kind, and pins with an operator of no meaning.
        """
        if not isinstance(network, Buffers):
            raise InputError("problem placement: buffers are expected, a .csv or .json file of them, or a plan file")
        if strange := [str(pin) for pin in pins.pins if pin.op != ("<=" if pin.name == "cap" else "=")]:
            raise InputError(f"pin {strange[0]}: write cap<=N, spill=yes or spill=no")
        return [PlacementPart(in_memories(network, machine), pins)]


def in_memories(given: Buffers, machine: Machine) -> Buffers:
    """Return buffers with memories: those of a machine, beside what is reserved there, if they bring none.

    Raises
    ------
    InputError
        If the machine has no memories with addresses.
    """
    if given.memories:
        return given
    if not machine.memories or machine.banks is not None:
        raise InputError(
            f"machine {machine.name}: problem placement needs a memory with addresses (ocm_bytes, or the three buffers)"
        )
    memories = [
        Memory(name=name, bytes=size, bank_bytes=machine.bank_bytes if machine.ocm_banks else 0)
        for name, size in machine.memories.items()
    ]
    life = {"lower": min(b.lower for b in given.buffers), "upper": max(b.upper for b in given.buffers)}
    reserved = [
        Buffer(
            name=f"reserved in {memory.name}", **life, size=machine.reserved_bytes, offset=0, memories=(memory.name,)
        )
        for memory in memories
        if machine.reserved_bytes
    ]
    try:
        return Buffers(
            name=given.name, buffers=(*given.buffers, *reserved), memories=tuple(memories), conflicts=given.conflicts
        )
    except ValueError as error:
        said = str(error).split("Value error, ")[-1].split(" [type=")[0]
        raise InputError(f"buffers {given.name} on machine {machine.name}: {said}") from None
