"""Measured rows as cases with plans, and what these take at any prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from formulations.pins import Pins, parse_pins
from formulations.tiling.part import NestPart
from hwmodels.nest.price.closed_form import Sensitivity, price, sensitivity, with_prices
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.load import load_network
from instances.machine.machine import Machine
from instances.measured import UNITS_PS, Measured, parse_layer
from instances.network.blocks import in_blocks
from instances.network.workload import Layer
from solver.ask.options import AUTO, parse_objectives, pick_layers, pick_nests
from solver.ask.progress import Progress
from solver.ask.watch import Watch
from solver.plan.plan import Plan
from solver.problems.registry import pick_problem
from solver.problems.tiling import job_of
from solver.search.deciding import Job, accepted
from solver.search.loop import Answer
from solver.search.verdict import price_and_replay
from solver.search.workers import run


@dataclass(frozen=True)
class Piece:
    """A layer that a row ran `number` times; with the nest that was measured, where a plan file says it."""

    layer: Layer
    number: int
    nest: Nest | None = None


@dataclass(frozen=True)
class Case:
    """A measured row with its layers; `measured` in ticks (exactly, not rounded), or in per cent of the memory."""

    row: Measured
    measured: Fraction
    pieces: tuple[Piece, ...]
    objectives: tuple[str, ...]


@dataclass(frozen=True)
class Priced:
    """What a row takes on the machine at hand."""

    case: Case
    value: float | None
    """Ticks (whole) or per cent; None if it has no plan."""
    counts: tuple[int, ...]
    """How often it pays each of the fitted prices."""
    missing: str = ""
    """Why there is no plan."""

    @property
    def residual(self) -> float:
        """How much more it takes than was measured."""
        return (self.value or 0) - float(self.case.measured)


def cases_of(rows: Iterable[Measured], machine: Machine, where: str) -> tuple[Case, ...]:
    """Load what the rows name; raises InputError with the line of the first row that the machine cannot have run."""
    return tuple(_case(row, machine, f"{where}: line {row.line}") for row in rows)


def _case(row: Measured, machine: Machine, where: str) -> Case:
    try:
        measured = _ticks(row, machine)
        formulation = pick_nests(machine.problem)
        objectives = parse_objectives(row.objective or "time", MEASURES, formulation.name)
        pick_problem(machine.problem).engine(row.engine or AUTO, objectives)
        parse_pins(row.pins, formulation.decisions)
        if row.plan:
            pieces = _of_plan(row, machine)
        elif row.network:
            network = in_blocks(load_network(row.network), machine.channel_block)
            pieces = _counted((layer, None) for layer in pick_layers(network, row.layer or None))
        else:
            layer = in_blocks(parse_layer(row.layer, "column layer"), machine.channel_block)
            pieces = _counted([(layer, None)])
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if row.occupancy and sum(piece.number for piece in pieces) > 1:
        raise InputError(f"{where}, column layer: %ocm is of one layer, name it")
    return Case(row, measured, pieces, objectives)


def _ticks(row: Measured, machine: Machine) -> Fraction:
    if row.occupancy:
        if machine.ocm_bytes is None:
            raise InputError(f"column unit: %ocm needs a machine with one shared memory, {machine.name} has none")
        return row.value
    if row.unit == "cycles":
        if not machine.compute.cycle_ticks:
            raise InputError(f"column unit: cycles: compute.cycle_ticks of {machine.name} is 0, write a unit of time")
        return row.value * machine.compute.cycle_ticks
    return row.value if row.unit == "ticks" else row.value * UNITS_PS[row.unit] / machine.tick_ps


def _of_plan(row: Measured, machine: Machine) -> tuple[Piece, ...]:
    plan = Plan.load(row.plan)
    if plan.problem != machine.problem:
        raise InputError(f"column plan: a plan of problem {plan.problem}, {machine.name} is for {machine.problem}")
    parts = [p for p in plan.layers if row.layer in ("", p.layer)]
    if not parts:
        raise InputError(
            f"column layer: the plan has no layer {row.layer!r}; it has {', '.join(p.layer for p in plan.layers)}"
        )
    nests: list[tuple[Layer, Nest | None]] = []
    for part in parts:
        if part.schedule is None:
            raise InputError(f"column plan: layer {part.layer} has no schedule ({part.status})")
        nest = part.schedule
        run = NestPart(part.workload, machine, pick_nests(plan.problem).build, Pins(), homes=nest.homes)
        faults = [*price_and_replay(run, nest).disagreements, *run.overflows(nest)]
        if faults:
            raise InputError(f"column plan: layer {part.layer} does not run on {machine.name}: {faults[0]}")
        nests.append((part.workload, nest))
    return _counted(nests)


def _counted(layers: Iterable[tuple[Layer, Nest | None]]) -> tuple[Piece, ...]:
    """Layers that differ in name only stand once, with their number."""
    pieces: dict[object, Piece] = {}
    for layer, nest in layers:
        key = layer.signature(), nest
        number = pieces[key].number if key in pieces else 0
        pieces[key] = Piece(layer, number + 1, nest)
    return tuple(pieces.values())


class Pricing:
    """Prices cases on a machine at any prices; what was decided once is remembered.

    Parameters
    ----------
    fields : sequence of str
        The fitted prices, of `hwmodels.nest.price.closed_form.PRICE_FIELDS`.
    fixed : bool
        Whether the plans of the first prices stay.
    jobs : int
        Processes.
    """

    def __init__(self, machine: Machine, fields: Sequence[str], *, fixed: bool, jobs: int, progress: Progress) -> None:
        self.machine, self.fields = machine, tuple(fields)
        self.fixed, self.jobs, self.progress = fixed, jobs, progress
        self._nests: dict[object, tuple[Nest | None, str]] = {}
        self._counts: dict[object, Sensitivity] = {}

    def at(self, prices: Sequence[int], cases: Sequence[Case], note: str) -> list[Priced]:
        """Return what the cases take at prices of `fields`, in ticks; raises KeyboardInterrupt after Ctrl-C."""
        return self.at_all([prices], cases, note)[0]

    def at_all(self, settings: Sequence[Sequence[int]], cases: Sequence[Case], note: str) -> list[list[Priced]]:
        """The same for several settings of the prices, planned together."""
        machines = {tuple(x): with_prices(self.machine, dict(zip(self.fields, x, strict=True))) for x in settings}
        eras = {x: () if self.fixed else x for x in machines}
        self._solve([(machine, eras[x]) for x, machine in machines.items()], cases, note)
        return [[self._priced(machines[x], x, eras[x], case) for case in cases] for x in (tuple(y) for y in settings)]

    def _key(self, case: Case, piece: Piece, era: tuple[int, ...]) -> object:
        row = case.row
        return piece.layer.signature(), row.pins, row.engine or AUTO, case.objectives, era

    def _solve(self, eras: Sequence[tuple[Machine, tuple[int, ...]]], cases: Sequence[Case], note: str) -> None:
        """Decide whatever these cases need at the prices of these machines."""
        keys: dict[object, int] = {}
        jobs: dict[int, Job] = {}
        for machine, era in eras:
            for case in cases:
                for piece in case.pieces:
                    key = self._key(case, piece, era)
                    if piece.nest is None and key not in self._nests and key not in keys:
                        keys[key] = len(jobs)
                        jobs[len(jobs)] = _job(case, piece.layer, machine)
        if not jobs:
            return
        answers = self._run(jobs, note)
        for key, index in keys.items():
            said, name = answers[index], jobs[index].part.name
            self._nests[key] = said.schedule, "" if said.schedule else f"no plan of {name}: {'; '.join(said.conflicts)}"

    def _run(self, jobs: Mapping[int, Job], note: str) -> dict[int, Answer[Nest]]:
        """Decide jobs here, or in processes if that takes longer than to start them."""
        answers: dict[int, Answer[Nest]] = {}

        def on_done(index: int, answer: Answer[Nest]) -> None:
            if index not in answers:
                self.progress.advance(jobs[index].part.name)
            answers[index] = answer

        self.progress.begin(len(jobs), note)
        try:
            with Watch() as watch:
                outcome = run(jobs, self.jobs, watch, on_done, here_first=True)
        finally:
            self.progress.end()
        if outcome.stopped:
            raise KeyboardInterrupt
        for index, said in answers.items():  # one by one: parts of several machines have the same keys
            accepted([(jobs[index].part, said)])
        return answers

    def _priced(self, machine: Machine, prices: tuple[int, ...], era: tuple[int, ...], case: Case) -> Priced:
        ticks, counts = 0, [0] * len(self.fields)
        for piece in case.pieces:
            nest, missing = piece.nest, ""
            if nest is None:
                nest, missing = self._nests[self._key(case, piece, era)]
            if nest is None:
                return Priced(case, None, tuple(counts), missing)
            if case.row.occupancy:
                taken = price(piece.layer, machine, nest).occupancy_bytes["ocm"]
                return Priced(case, 100 * taken / (machine.ocm_bytes or 1), tuple(counts))
            key = piece.layer.signature(), nest, prices
            if key not in self._counts:
                self._counts[key] = sensitivity(piece.layer, machine, nest, self.fields)
            paid = self._counts[key]
            ticks += piece.number * paid.ticks
            counts = [total + piece.number * count for total, count in zip(counts, paid.counts, strict=True)]
        return Priced(case, ticks, tuple(counts))


def _job(case: Case, layer: Layer, machine: Machine) -> Job:
    formulation = pick_nests(machine.problem)
    part = NestPart(layer, machine, formulation.build, parse_pins(case.row.pins, formulation.decisions))
    engine = pick_problem(machine.problem).engine(case.row.engine or AUTO, case.objectives)
    return job_of(formulation, part, case.objectives, engine)
