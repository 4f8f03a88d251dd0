"""Problem placement, as the rest of `solver` sees it: how its plans are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from formulations.placement.problem import PlacementFormulation
from instances.buffers import Buffers, buffers_to_csv
from instances.errors import InputError
from instances.problems import either, nested
from solver.generic import GenericProblem
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.placement.figures import figures
from solver.placement.picture import picture
from solver.placement.rows import PlacedBuffer, memories_of, rows_of
from solver.plan import Plan
from solver.problem import Target
from solver.tables import ABSENT, Column, Sheet, name_column


class PlacementProblem(GenericProblem):
    """F9: memory and address of every buffer."""

    front_axes = ("bytes", "peak")

    def __init__(self) -> None:
        super().__init__(PlacementFormulation())

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; raises InputError unless there are buffers to place."""
        if not isinstance(target, Buffers):
            raise InputError(
                f"target {getattr(target, 'name', '')}: problem placement takes buffers: a .csv or .json file of them, "
                f"or a plan of problem {either(nested(), 'or')}"
            )
        return super().objectives(asked, target)

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def file_text(self, plan: Plan, path: str) -> str | None:
        """Return the buffers with their addresses in column `offset`, as MiniMalloc writes them, for a CSV file."""
        if not path.lower().endswith(".csv") or not plan.decided:
            return None
        return buffers_to_csv(plan.network_data, {b.buffer: (b.memory, b.address) for b in plan.schedule.places})

    def rooms(self, plan: Plan) -> Iterator[tuple[str, int, int]]:
        """Return how full memories are."""
        yield from ((memory.name, memory.peak, memory.bytes) for memory in memories_of(plan))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """The buffers."""
        return [(row.name, row) for row in rows_of(plan)]

    def names(self, plan: Plan) -> list[str]:
        """The buffers."""
        return [b.name for b in rows_of(plan)]

    def status(self, plan: Plan) -> list[str]:
        """What is known, and how full memories are."""
        parts = known_parts(plan)
        for memory in memories_of(plan):
            used = f"{memory.peak:,} of {memory.bytes:,} bytes of {memory.name}"
            parts.append(f"{used}, at most {memory.load:,} at one time")
        return [*parts, *(["replay agrees"] if plan.part.replay and plan.part.replay.ok else [])]

    def sheet(self, plan: Plan) -> Sheet:
        """A row a buffer."""
        rows = rows_of(plan)
        return Sheet(
            [
                name_column("buffer", [b.name for b in rows]),
                Column(
                    "address", [ABSENT if b.address is None else f"{b.address:,}" for b in rows], "of the first byte"
                ),
                Column("bytes", [f"{b.size:,}" for b in rows]),
                Column("from", [str(b.lower) for b in rows], "when it begins to live"),
                Column("to", [str(b.upper) for b in rows], "before when it lives"),
                Column("memory", [b.memory or "off the chip" for b in rows], words=True, spare=1),
            ]
        )

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Every memory, addresses over time."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """A map of every memory over time, and all buffers; or one buffer with those that it meets."""
        if layer is None:
            for memory in memories_of(plan):
                yield from (*picture(plan, memory), "")
        for b in rows_of(plan):
            if layer in (None, b.name):
                where = "off the chip" if b.memory is None else f"{b.memory} {b.address:,} to {_end(b):,}"
                yield f"{b.name}: {where}, {b.size:,} bytes, times {b.lower} to {b.upper}"
        if layer is not None:
            yield from _beside(plan, next(b for b in rows_of(plan) if b.name == layer))


def _end(buffer: PlacedBuffer) -> int:
    return (buffer.address or 0) + buffer.size


def _beside(plan: Plan, buffer: PlacedBuffer) -> Iterator[str]:
    """Those alive at the same time in the same memory."""
    for other in sorted(rows_of(plan), key=lambda b: b.address or 0):
        alive = other.lower < buffer.upper and buffer.lower < other.upper
        if other.name != buffer.name and other.memory == buffer.memory is not None and alive:
            yield f"  beside {other.name}: {other.address:,} to {_end(other):,}, times {other.lower} to {other.upper}"


PROBLEM = PlacementProblem
