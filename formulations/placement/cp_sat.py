"""F9 placement for CP-SAT: a rectangle of times and addresses for every time in which a buffer keeps its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.placement.blocks import Block


@dataclass(frozen=True)
class PlacementModel:
    """The model, and the addresses of a solution."""

    model: cp_model.CpModel
    address: Mapping[str, cp_model.IntVar]

    def decode(self, solver: cp_model.CpSolver) -> dict[str, int]:
        """The address of every buffer."""
        return {name: solver.value(variable) for name, variable in self.address.items()}


def build(blocks: Sequence[Block], capacity: int) -> PlacementModel | None:
    """Return the model; None if a buffer is larger than the memory."""
    if any(max(block.sizes) > capacity for block in blocks):
        return None
    model = cp_model.CpModel()
    address = {b.name: model.new_int_var(0, capacity - max(b.sizes), b.name) for b in blocks}
    times, places = [], []
    for block in blocks:
        for begin, end, size in _stretches(block):
            times.append(model.new_fixed_size_interval_var(begin, end - begin, ""))
            places.append(model.new_fixed_size_interval_var(address[block.name], size, ""))
    model.add_no_overlap_2d(times, places)
    return PlacementModel(model, address)


def _stretches(block: Block) -> Iterator[tuple[int, int, int]]:
    """Times in which a buffer keeps one size that is not zero."""
    begin = block.begin
    for k, size in enumerate(block.sizes):
        end = block.begin + k + 1
        if k + 1 == len(block.sizes) or block.sizes[k + 1] != size:
            if size:
                yield begin, end, size
            begin = end
