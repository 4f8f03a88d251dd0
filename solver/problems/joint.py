"""Problem joint, as the rest of `solver` sees it: what its plans say, and how they are shown.

Drawn are what stays on chip layer by layer, bytes and times by layer, and the roofline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import cycle, islice
from typing import cast

from formulations.clock import Clock
from formulations.fusion.latency.events import events, memories_of
from formulations.fusion.latency.timelines import MOST_MOVES, Carried
from formulations.fusion.part import FusionPart
from formulations.fusion.problem import FusionFormulation, JointFormulation
from formulations.fusion.schedule import Runs
from formulations.pins import Pins, parse_pins
from formulations.prefetch.stalls import stalls
from formulations.tiling.tiling import read
from hwmodels.joint.price import RunFigures, ran
from hwmodels.levels.near import near_price
from hwmodels.nest.buffers import buffer_lines, buffers
from hwmodels.nest.homes import operand_of
from hwmodels.nest.price.causes import terms_of
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import FusedRun, LayerRun
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.measured import measured, timed
from instances.network.stores import Stores, stores
from instances.network.workload import Layer
from solver.ask.question import Question
from solver.plan.figures import Axis, Bars, Boxes, Figure, Points
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.plan.why import Stall
from solver.problems.homes import check_homes, narrowed
from solver.problems.layers_figures import time_figures
from solver.problems.memory import SIZES, memories, staircase
from solver.problems.problem import Explained, Problem, Target
from solver.problems.timeline import Timetable
from solver.search.deciding import accepted
from solver.search.loop import Answer, status_of
from solver.show.common import Stay, by_row, residency, stacked, us
from solver.show.pseudo_code import pseudo_code
from solver.show.roofline import Rate, roofline
from solver.show.tables import Column, Sheet, name_column
from solver.show.words import (
    agreement,
    bytes_moved,
    decision_columns,
    labels,
    measure_columns,
    microseconds,
    workload_text,
)

#: Waits that are explained.
_STALLS = 5
#: What fronts of problem joint are of.
_AXES = {"bytes": "bytes", "memory": "bytes on chip"}


@dataclass(frozen=True)
class Resident:
    """The first rows of a map that lie on chip: the banks that hold them; without banks the bytes that they take."""

    map: str
    rows: int
    banks: tuple[int, ...]
    bytes: int | None
    place: str = ""
    """The map whose place they take, if they do."""

    @property
    def where(self) -> str:
        """Where they lie, for people."""
        instead = f", in place of {self.place}" if self.place else ""
        if self.bytes is not None:
            return f"take {self.bytes:,} bytes{instead}"
        return f"lie in {'bank' if len(self.banks) == 1 else 'banks'} {ranges(self.banks)}{instead}"

    @property
    def brief(self) -> str:
        """The map with its rows, for a table."""
        return f"{self.map} {self.rows}" + (f" in place of {self.place}" if self.place else "")


def residents_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Resident, ...]:
    """Return the maps on chip while a layer or a group runs, by name."""
    made = []
    for s, (rows, banks) in run.residents.items():
        store, size = found.stores[s], None if machine.ocm_banks else rows * found.stores[s].row_bytes(machine)
        place = found.stores[run.in_place[s]].name if s in run.in_place else ""
        made.append(Resident(store.name, rows, banks, size, place))
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

    @cached_property
    def apart(self) -> tuple[Resident, ...]:
        """Those of them that take room of their own."""
        return tuple(one for one in self.on_chip if not one.place)

    @property
    def taken(self) -> int:
        """Bytes of the shared memory that tiles and maps take while it runs."""
        if self.machine.ocm_banks:
            return (len(self.run.banks) + sum(len(one.banks) for one in self.apart)) * self.machine.bank_bytes
        return self.figures.occupancy_bytes + sum(one.bytes or 0 for one in self.apart)

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
    return bool(plan.types.figures == tuple[RunFigures, ...])


def machine_of(plan: Plan) -> Machine:
    """Return the machine of a plan as it computes: where its layers were measured, nothing by itself."""
    return plan.machine_data if plan.options.profile is None else measured(plan.machine_data)


def rows_of(plan: Plan) -> list[RunRow]:
    """Return the layers and groups of a plan in their order; none if it has no schedule."""
    (part,) = plan.parts
    if part.schedule is None:
        return []
    found = timed(stores(plan.network_data), plan.machine_data, plan.options.profile)
    machine, made, step = machine_of(plan), list[RunRow](), 0
    for run, figures in zip(part.schedule, part.figures, strict=True):
        made.append(RunRow(step, run, figures, found, machine))
        step += len(figures.layers)
    return made


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges, the end excluded."""
    made: list[tuple[int, int]] = []
    for number in sorted(numbers):
        first = made.pop()[0] if made and made[-1][1] == number else number
        made.append((first, number + 1))
    return made


def ranges(banks: Iterable[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    return ", ".join(f"{first}-{end - 1}" if end - first > 1 else str(first) for first, end in runs_of(banks))


#: What moves, by operand.
MOVED = {"IN": "inputs", "W": "weights", "PSUM": "partial sums", "OUT": "results"}


def _times(plan: Plan, rows: Sequence[RunRow]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield every layer with the terms of its time in microseconds."""
    before: LayerRun | None = None
    for row in rows:
        run = row.run
        assert isinstance(run, LayerRun)
        layer, nest = ran(row.found, row.step, run, before)
        outcome = price(layer, row.machine, nest)
        terms = terms_of("time", layer, row.machine, outcome, dict(run.nest.homes))
        yield row.name, {term: us(plan, ticks) for term, ticks in terms.items()}
        before = run


def on_chip(machine: Machine, rows: Sequence[RunRow], what: str = "layer", tiles: str = "tiles") -> Boxes:
    """Return what lies in the shared memory while each layer runs: in its banks; or, without banks, how much of it."""
    stays = list(_in_banks(rows, tiles) if machine.ocm_banks else _in_bytes(rows, tiles))
    names = [row.name for row in rows]
    size = machine.memories["ocm"]
    if machine.ocm_banks:
        axis, limit = Axis(f"bank of {machine.bank_bytes:,} bytes"), machine.ocm_banks
        how = f"Banks upwards, a {what} after the other to the right."
    else:
        axis, limit = Axis("bytes on chip"), size
        how = (
            f"Bytes, one on the other, a {what} after the other to the right: the plan has no addresses, problem "
            "placement gives them."
        )
    caption = f"{how} Maps that stay, {tiles}, and (blank) what is free; the line is the end of the memory."
    return residency("memory-ocm", "What lies on chip", caption, names, stays, axis, limit)


def moved_figures(plan: Plan, rows: Mapping[str, Sequence[RunRow]], what: str) -> tuple[Bars, Points]:
    """Return what every row moves, by engine, and the roofline."""
    moved = by_row(rows, lambda row: {words: row.figures.bytes.get(o, 0) for o, words in MOVED.items()})
    rates = {
        engine: [Rate(row.name, row.figures.macs, row.figures.moved, row.figures.ticks) for row in mine]
        for engine, mine in rows.items()
    }
    caption = "To and from DRAM, by what moves."
    bars = stacked(f"bytes-by-{what}", f"Bytes by {what}", caption, "bytes", moved)
    return bars, roofline(machine_of(plan), rates, what)


def moved_column(rows: Sequence[RunRow], operand: str, means: str) -> Column:
    """Return the bytes of an operand."""
    return Column(operand, [f"{row.figures.bytes.get(operand, 0):,}" for row in rows], means, spare=4)


def _in_banks(rows: Sequence[RunRow], tiles: str) -> Iterator[Stay]:
    for step, row in enumerate(rows):
        name, taken = row.name, row.figures.occupancy_bytes
        held = [(one.map, "maps that stay", one.banks, f"{one.rows} rows") for one in row.apart]
        held.append((tiles, tiles, row.run.banks, f"{taken:,} bytes"))
        for what, kind, mine, note in held:
            for low, high in runs_of(mine):
                yield Stay(step, low, high, what, kind, f"{name}: {what}, {note}")


def _in_bytes(rows: Sequence[RunRow], tiles: str) -> Iterator[Stay]:
    for step, row in enumerate(rows):
        name, taken, top = row.name, row.figures.occupancy_bytes, 0
        for one in row.apart:
            size = one.bytes or 0
            yield Stay(
                step, top, top + size, one.map, "maps that stay", f"{name}: {one.map}, {one.rows} rows, {size:,} bytes"
            )
            top += size
        if taken:
            yield Stay(step, top, top + taken, tiles, tiles, f"{name}: {tiles}, {taken:,} bytes")


#: Letters of a row of banks: maps by turns, then tiles, then free.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


JOINT = JointFormulation()


class SharedProblem(Problem):
    """Networks in a shared memory: layers and groups, and what stays on chip between them."""

    formulation: FusionFormulation

    def __init__(self, formulation: FusionFormulation) -> None:
        super().__init__(formulation)
        self.takes = frozenset({"profile"})

    def read(self, question: Question, pins: Pins) -> Sequence[FusionPart]:
        """The network, with times of its layers."""
        return self.formulation.read(question.network, question.machine, pins, None, question.profile)

    def through(self, plan: Plan) -> Iterator[str]:
        """What moves between the shared memory and nearer ones, where there are any."""
        if plan.machine_data.near is None or plan.part.schedule is None:
            return
        layers, name = rows_of(plan)[0].found.layers, plan.machine_data.near.memories[0].name
        each = (near_price(layers[one.layer], plan.machine_data, one).bytes * one.times for one in plan.schedule.near)
        yield f"{name} {sum(each):,} bytes"

    def parts(self, question: Question) -> Sequence[FusionPart]:
        """The network; raises InputError unless its homes are settled."""
        parts = cast(Sequence[FusionPart], super().parts(question))
        check_homes(question.network, question.machine, question.objectives)
        if question.machine.near is not None and "energy" in question.objectives:
            said = "on memories in levels the energy of networks is counted, not minimised: ask for time or bytes"
            raise InputError(f"machine {question.machine.name}: {said}")
        return parts

    def settled(self, question: Question) -> Question:
        """The question with the homes that pins leave; raises InputError for those that the machine does not have."""
        pins = parse_pins(question.pins, self.formulation.decisions)
        return replace(question, machine=narrowed(question.machine, pins))

    def ready(self, question: Question) -> None:
        """Make what a solve makes before it decides, with the homes that pins leave."""
        super().ready(self.settled(question))

    def solve(self, question: Question) -> Plan:
        """Plan all layers together, with the homes that pins leave."""
        return super().solve(self.settled(question))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Say which demands conflict, with the homes that pins leave."""
        return super().explain(self.settled(question))

    def over_memory(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The front of a measure and the memory: of bytes exact, of time of the plans that are found."""
        (measure,), question = (axis for axis in axes if axis != "memory"), self.settled(question)
        self.parts(question)  # refuses before anything is searched

        def solved(machine: Machine, seconds: float | None) -> Plan:
            settings = (*question.settings, *(f"{name}={getattr(machine, name)}" for name in SIZES))
            last = {text.partition("=")[0].strip(): text for text in settings}
            return self.solve(replace(question, machine=machine, objectives=(measure,), time_limit_s=seconds,
                                      settings=tuple(last.values())))  # fmt: skip

        found = staircase(memories(question.machine), solved, Clock.of(question.time_limit_s))
        plans = found.plans if axes[0] == measure else found.plans[::-1]
        front, points = self.front_of(question, plans, found.proven, {measure: self.axes[measure]}), []
        for point, plan in zip(front.parts[0].points, plans, strict=True):
            known = {**point.values, "memory": plan.machine_data.memories["ocm"]}
            points.append(replace(point, values={axis: known[axis] for axis in axes}))
        part = replace(front.parts[0], points=tuple(points), complete=found.complete)
        return replace(front, units={axis: self.axes[axis] for axis in axes}, parts=(part,))

    def prefetched(self, plan: Plan) -> Iterator[str]:
        """The time with prefetch, or without if there are too many transfers."""
        (part,), took = cast(Sequence[FusionPart], self.parts_of(plan)), microseconds(plan, plan.part.measures["time"])
        if part.laid(plan.part.schedule).queue is None:
            yield f"{took} us, each step after its transfers: more than {MOST_MOVES:,} are not prefetched"
        elif part.demands.order.ahead:
            least = microseconds(plan, part.least_time(plan.part.schedule))
            yield f"{took} us with prefetch, no order of its transfers is below {least} us"
        else:
            yield f"{took} us, each step after its transfers, as pin prefetch=no demands"
        if plan.engine == "cp-sat" and "time" in plan.objectives:
            yield from _of_options(plan)

    def carried(self, plan: Plan) -> Carried | None:
        """The steps and transfers of a plan, as its queue has them; None if each step waits for its own."""
        (part,) = cast(Sequence[FusionPart], self.parts_of(plan))
        return part.carried(plan.part.schedule)

    def reordered(self, plan: Plan, part: FusionPart, runs: Runs) -> Plan:
        """A plan with another order of its transfers, which has its own time."""
        (row,), values = plan.parts, part.price(runs).measures
        status = status_of({name: values[name] for name in plan.objectives}, row.bounds, empty=False)
        said = Answer(runs, values, row.bounds, status, stats=row.stats, wall_s=row.wall_s)
        kept = {name: getattr(plan, name) for name in ("engine", "engine_version", "options", "wall_s")}
        return self.planned(self.question(plan), accepted([(part, said)]), 0.0, **kept)

    def stalls(self, plan: Plan) -> Sequence[Stall]:
        """The longest waits of steps for transfers, and what would have hidden each."""
        (part,), machine = cast(Sequence[FusionPart], self.parts_of(plan)), plan.machine_data
        laid = part.laid(plan.part.schedule)
        names = [name for one in laid.parts for name, _ in one.names]
        prices = [machine.transfer_of(operand_of(names[k])).byte_ticks for k in laid.order]
        steps = {one.step: one for one in self.timetable(plan).steps}
        return [
            Stall(step=one.wait.step, layer=steps[one.wait.step].what, what=steps[one.wait.step].waits_for,
                  ticks=one.wait.ticks, bytes=one.bytes,
                  gbps=one.faster and float(one.faster) * 1000 / (prices[one.wait.transfer] * machine.tick_ps))
            for one in stalls(laid.timeline, laid.times, part.timelines.room, prices, _STALLS)
        ]  # fmt: skip

    def timetable(self, plan: Plan) -> Timetable:
        """When everything happens in a plan that has a schedule."""
        (part,) = cast(Sequence[FusionPart], self.parts_of(plan))
        found = tuple(events(part.net, part.laid(plan.part.schedule), memories_of(plan.machine_data)))
        return Timetable(plan, found, tuple(row.name for row in rows_of(plan)))

    def timeline(self, plan: Plan) -> Timetable:
        """The same; raises InputError without a schedule."""
        return self.timetable(plan) if plan.decided else super().timeline(plan)

    def show(self, plan: Plan, layer: str | None = None, *, details: bool = False) -> str:
        """Beneath the table: engine, DMA and memory over time."""
        said = super().show(plan, layer, details=details)
        if layer is not None or details or not plan.decided:
            return said
        return "\n".join([said.rstrip("\n"), "", *self.timetable(plan).lines(), ""])

    def timed(self, plan: Plan) -> tuple[Column, Column]:
        """When the last step of each layer or group ends, and how long its steps wait for transfers."""
        table = self.timetable(plan)
        runs = range(len(table.names))
        ends, waits = [table.ends(run) for run in runs], [table.waits(run) for run in runs]
        return (
            Column("ends (us)", [microseconds(plan, end) for end in ends], "with prefetch, from the begin of the plan",
                   microseconds(plan, table.latency), spare=1),
            Column("waits (us)", [microseconds(plan, wait) for wait in waits],
                   "time that steps wait for transfers: `certile show --timeline` says for which",
                   microseconds(plan, sum(waits)), spare=1),
        )  # fmt: skip

    def layer_rows(self, plan: Plan) -> tuple[RunRow, ...]:
        """Layers and groups."""
        return tuple(rows_of(plan))

    def items(self, plan: Plan) -> list[tuple[str, object]]:
        """Layers and groups."""
        return [(row.name, row.figures) for row in rows_of(plan)]

    def rooms(self, plan: Plan) -> Iterator[tuple[str, int, int]]:
        """The shared memory: its name, the most bytes that are taken, and how many it has."""
        size, rows = plan.machine_data.ocm_bytes, rows_of(plan)
        if size is not None and rows:
            yield "ocm", min(max(row.taken for row in rows), size), size


class JointProblem(SharedProblem):
    """Tile plans of all layers, and what stays on chip between them."""

    def __init__(self) -> None:
        super().__init__(JOINT)
        self.others, self.axes = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}, _AXES

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The fewest bytes of memories up to the machine's; raises InputError for other axes."""
        wanted = axes or tuple(self.axes)
        if len(wanted) != 2:
            raise InputError(f"axes {','.join(wanted)}: fronts of problem {self.name} are of bytes,memory")
        return self.over_memory(question, wanted)

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; of plans with the fewest bytes the fastest is not looked for."""
        if "time" in (asked.split(",") if isinstance(asked, str) else asked or ()):
            raise InputError("objective time: problem joint decides bytes (or energy); problem fusion decides time")
        return super().objectives(asked, target)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def said(self, plan: Plan) -> list[str]:
        """What is left to win, and replay."""
        return [bytes_moved(plan), *self.through(plan), *self.prefetched(plan), agreement(plan)]

    def sheet(self, plan: Plan) -> Sheet:
        """The table of layers."""
        rows, machine = rows_of(plan), plan.machine_data
        each = [{"time": row.figures.ticks, "bytes": row.figures.moved, "energy": row.figures.energy} for row in rows]
        moved = partial(moved_column, rows)
        objective, *measures = measure_columns(plan, each, plan.measures)

        return Sheet(
            [
                name_column("layer", labels([row.name for row in rows], plan.network_data.layers)),
                objective,
                Column("on chip (rows)", [", ".join(one.brief for one in row.on_chip) for row in rows],
                       "maps that lie on chip while the layer runs, and how many of their rows", words=True),
                _tiles(plan, rows),
                *decision_columns([read(row.layer, machine, row.alone.nest) for row in rows]),
                *measures, *self.timed(plan),
                moved("IN", "bytes of inputs"), moved("W", "of weights"), moved("OUT", "of results"),
                moved("PSUM", "of partial sums"),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """What stays on chip, bytes, times, roofline."""
        rows = {engine: rows_of(one) for engine, one in plans.items()}
        times = {engine: dict(_times(plan, mine)) for engine, mine in rows.items()}
        bars, roof = moved_figures(plan, rows, "layer")
        over_time = self.timetable(plan).figures()
        return [*over_time, on_chip(plan.machine_data, rows[plan.engine]), bars, *time_figures(times), roof]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """A layer with its nest; or what is on chip layer by layer, and all layers."""
        rows = rows_of(plan)
        if layer is None:
            yield from (*(_banks(plan, rows) if plan.machine_data.ocm_banks else _bytes(plan, rows)), "")
        for row in rows:
            if layer in (None, row.name):
                yield from _layer(plan, row)


def _tiles(plan: Plan, rows: Sequence[RunRow]) -> Column:
    """What tiles take."""
    if plan.machine_data.ocm_banks:
        return Column("tile banks", [str(len(row.run.banks)) for row in rows], "banks for its tiles", spare=1)
    return Column("tile bytes", [f"{row.figures.occupancy_bytes:,}" for row in rows], "on chip for its tiles", spare=1)


def _bytes(plan: Plan, rows: Sequence[RunRow]) -> list[str]:
    """One line a layer: the bytes of tiles, of every map that is on chip, and those that are free."""
    width = max((len(row.name) for row in rows), default=0)
    whole = plan.machine_data.memories["ocm"]
    digits = len(f"{whole:,}")
    lines = [f"bytes on chip, of {whole:,}: those that are free, those of tiles, those of maps", ""]
    for row in rows:
        free = whole - row.figures.occupancy_bytes - sum(one.bytes or 0 for one in row.apart)
        said = ", ".join(f"{one.map} {one.bytes:,} ({one.rows} rows)" for one in row.on_chip)
        lines.append(
            f"{row.name:<{width}}  {free:>{digits},}  {row.figures.occupancy_bytes:>{digits},}  {said}".rstrip()
        )
    return lines


def _banks(plan: Plan, rows: Sequence[RunRow]) -> list[str]:
    """One line a layer: a letter for every bank, and what the letters stand for."""
    width = max((len(row.name) for row in rows), default=0)
    letters: dict[str, str] = {}
    turns = cycle(_LETTERS)
    lines = ["a letter is a map that is on chip, # a tile, . a free bank", ""]
    for row in rows:
        there = {one.map for one in row.on_chip}
        letters = {name: letter for name, letter in letters.items() if name in there}
        for name in (one.map for one in row.on_chip if one.map not in letters):
            letters[name] = next((x for x in islice(turns, len(_LETTERS)) if x not in letters.values()), "?")
        said = ", ".join(f"{letters[one.map]} {one.map} ({one.rows} rows)" for one in row.on_chip)
        lines.append(f"{row.name:<{width}}  {_line(row, letters, plan.machine_data.ocm_banks)}  {said}".rstrip())
    return lines


def _line(row: RunRow, letters: dict[str, str], number: int) -> str:
    owner = {bank: letters[one.map] for one in row.on_chip for bank in one.banks} | dict.fromkeys(row.run.banks, "#")
    return "".join(owner.get(bank, ".") for bank in range(number))


def _layer(plan: Plan, row: RunRow) -> Iterable[str]:
    layer, run, found = row.layer, row.alone, row.found
    yield f"{row.name}: {workload_text(layer)}, on {plan.machine}"
    yield f"{row.figures.moved:,} bytes move, {microseconds(plan, row.figures.ticks)} us"
    reads, writes = [found.stores[s].name for s in found.reads[row.step]], found.stores[found.writes[row.step]].name
    for one in row.on_chip:
        part = " and ".join(
            [f"input {k + 1}" for k, name in enumerate(reads) if name == one.map] + ["the result"] * (writes == one.map)
        )
        yield f"{one.rows} rows of {one.map} ({part or 'for other layers'}) {one.where}"
    if run.unwritten:
        yield f"the first {run.unwritten} rows of the result are never written to DRAM"
    if len(set(layer.residents)) > 1:
        rows = ", ".join(map(str, layer.residents))
        yield f"inputs have {rows} rows on chip; loads name the rows of the one with the fewest"
    where = f" in banks {ranges(run.banks)}" if plan.machine_data.ocm_banks else ""
    yield from ("", f"tiles take {row.figures.occupancy_bytes:,} bytes{where}:")
    yield from buffer_lines(buffers(layer, plan.machine_data, run.nest))
    yield from ("", *pseudo_code(layer, plan.machine_data, run.nest).splitlines(), "")


def _of_options(plan: Plan) -> Iterator[str]:
    """What engine cp-sat has proven of the options of groups that it looked at; why it did not look at them."""
    stats = plan.part.stats
    if (least := stats.get("least_of_options")) is not None:
        yield f"no plan of the options that engine cp-sat looks at is below {microseconds(plan, int(least))} us"
    if "note" in stats:
        yield str(stats["note"])


PROBLEM = JointProblem
