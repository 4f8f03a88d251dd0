"""Plans of networks in a shared memory, layer by layer or group by group, for those who show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hwmodels.joint.price import RunFigures
from hwmodels.schedule import FusedRun, LayerRun
from instances.machine.machine import Machine
from instances.network.stores import Stores, stores
from instances.network.workload import Layer
from solver.plan.plan import Plan


@dataclass(frozen=True)
class Resident:
    """The first rows of a map that lie on chip: the banks that hold them; without banks the bytes that they take."""

    map: str
    rows: int
    banks: tuple[int, ...]
    bytes: int | None

    @property
    def where(self) -> str:
        """Where they lie, for people."""
        if self.bytes is not None:
            return f"take {self.bytes:,} bytes"
        return f"lie in {'bank' if len(self.banks) == 1 else 'banks'} {ranges(self.banks)}"


def residents_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Resident, ...]:
    """Return the maps on chip while a layer or a group runs, by name."""
    made = []
    for s, (rows, banks) in run.residents.items():
        store = found.stores[s]
        made.append(Resident(store.name, rows, banks, None if machine.ocm_banks else rows * store.row_bytes(machine)))
    return tuple(sorted(made, key=lambda one: one.map))


@dataclass(frozen=True)
class RunRow:
    """A layer by itself, or a group, with what the referee counts and what lies on chip meanwhile."""

    step: int
    """Its first layer, by number."""
    run: LayerRun | FusedRun
    figures: RunFigures
    found: Stores
    machine: Machine

    @property
    def name(self) -> str:
        """For people."""
        return self.figures.name

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of its layers."""
        return self.figures.layers

    @cached_property
    def on_chip(self) -> tuple[Resident, ...]:
        """Maps that lie on chip all the time that it runs."""
        return residents_of(self.found, self.machine, self.run)

    @property
    def taken(self) -> int:
        """Bytes of the shared memory that tiles and maps take while it runs."""
        if self.machine.ocm_banks:
            return (len(self.run.banks) + sum(len(one.banks) for one in self.on_chip)) * self.machine.bank_bytes
        return self.figures.occupancy_bytes + sum(one.bytes or 0 for one in self.on_chip)

    @property
    def alone(self) -> LayerRun:
        """The run of a layer by itself."""
        assert isinstance(self.run, LayerRun)
        return self.run

    @property
    def layer(self) -> Layer:
        """A layer by itself, with what it finds on chip."""
        return self.found.layer(self.step, self.alone.rows, self.alone.unwritten)


def is_shared(plan: Plan) -> bool:
    """Whether a plan is of a network in a shared memory: layers and groups, with what stays on chip."""
    return bool(plan.TYPES[plan.problem].figures == tuple[RunFigures, ...])


def rows_of(plan: Plan) -> list[RunRow]:
    """Return the layers and groups of a plan in their order; none if it has no schedule."""
    (part,) = plan.parts
    if part.schedule is None:
        return []
    found, made, step = stores(plan.network_data), list[RunRow](), 0
    for run, figures in zip(part.schedule, part.figures, strict=True):
        made.append(RunRow(step, run, figures, found, plan.machine_data))
        step += len(figures.layers)
    return made


def rooms_of(plan: Plan) -> Iterator[tuple[str, int, int]]:
    """Yield the shared memory: its name, the most bytes that are taken, and how many it has."""
    size, rows = plan.machine_data.ocm_bytes, rows_of(plan)
    if size is not None and rows:
        yield "ocm", min(max(row.taken for row in rows), size), size


def ranges(banks: Sequence[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    parts: list[list[int]] = []
    for bank in sorted(banks):
        if parts and bank == parts[-1][-1] + 1:
            parts[-1].append(bank)
        else:
            parts.append([bank])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
