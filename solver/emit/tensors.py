"""The tensors of a network off the chip: in which memory each lies, and which steps of the program touch it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from instances.machine import Machine
from solver.emit.arrange import Arranged, Copy, Host, Run
from solver.emit.frame import Frame
from solver.emit.offchip import BIASES, OffChip
from solver.emit.onchip import OnChip


def off_chip(arranged: Arranged, chip: OnChip, data: Collection[str]) -> OffChip:
    """Return where all tensors lie; `data` are the arrays that are filled before the network runs."""
    steps, machine = arranged.steps, chip.machine
    numbers = [k for k, step in enumerate(steps) if isinstance(step, Run)]
    runs = [step for step in steps if isinstance(step, Run)]
    found = OffChip(len(steps), [(numbers[run.first], numbers[run.last]) for run in chip.grouped.values()])
    homes = _homes(runs, chip)
    for name, (elements, size) in arranged.arrays.items():
        constant = name in data and (chip.meaning is not None or name.startswith("w_"))
        found.add(name, elements * size, homes.get(name, _home(machine, "IN")), constant=constant)
    for t, step in enumerate(runs):
        if step.bias and step.bias not in found.tensors:
            loaded = homes.get(step.weights.array if step.weights else "", _home(machine, "W"))
            size = arranged.biases[step.bias]
            found.add(step.bias, size, loaded if machine.bias_bytes else BIASES, constant=True)
        if (size := _sums(chip, t)) > 0:
            found.add(f"sums_{t:03}", size, homes.get(step.result.array, _home(machine, "OUT")))
            found.touch([f"sums_{t:03}"], numbers[t])
    for k, one in enumerate(steps):
        found.touch(_touched(found, one, chip, numbers.index(k) if k in numbers else 0), k)
    last = max(0, len(steps) - 1)
    found.touch(arranged.inputs, 0)
    found.touch(arranged.results, last)
    for at in (0, last):  # what is filled once is there all the time
        found.touch(data, at)
    return found


def _touched(found: OffChip, step: Copy | Host | Run, chip: OnChip, t: int) -> set[str]:
    """The tensors that a step reads or writes."""
    if isinstance(step, Copy):
        return {step.to.array, step.source.array}
    if isinstance(step, Host):
        return found.named_in(step.lines)
    values = (*step.inputs, step.weights, step.result)
    return {value.array for value in values if value} | found.named_in(chip.numbers(t).finished)


def _sums(chip: OnChip, t: int) -> int:
    """Bytes of partial sums that a layer by itself may move."""
    layer, run = chip.layer(t), chip.alone.get(t)
    if run is None or not Frame(layer, chip.machine, run.nest, chip.numbers(t)).sums:
        return 0
    return layer.b * layer.g * layer.m * layer.r * layer.c * chip.machine.psum_bytes


def _home(machine: Machine, operand: str) -> str:
    """The memory in which an operand lies if no plan says so."""
    return machine.homes[operand][0] if machine.homes.get(operand) else "dram"


def _homes(runs: Sequence[Run], chip: OnChip) -> dict[str, str]:
    """By array the memory that the plan says."""
    found: dict[str, str] = {}
    for t, step in enumerate(runs):
        run = chip.alone.get(t)
        mine = dict(run.nest.homes) if run is not None else {}
        for operand, values in (("OUT", [step.result]), ("IN", step.inputs), ("W", [step.weights])):
            for value in values:
                if value is not None:
                    found.setdefault(value.array, mine.get(operand, _home(chip.machine, operand)))
    return found
