"""Problem joint, as the rest of `solver` sees it: what its plans say, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any, Literal, cast

from formulations.joint.part import JointFormulation, JointPart, Runs
from formulations.pins import parse_pins
from formulations.tiling.problem import DECISIONS, read
from hwmodels.nest.replay import Replay
from hwmodels.schedule import LayerRun, Nest
from instances.errors import InputError
from instances.stores import stores
from instances.workload import Layer
from solver.joint.figures import figures
from solver.joint.homes import check_homes, narrowed
from solver.joint.plan import JointLayer, JointPlan, JointReplay, Resident, residents_of
from solver.network_check import undecided_of
from solver.network_show import measure_columns, microseconds, status_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Measures, Objective, Options, Schedule
from solver.problem import Derived, Target
from solver.question import Question
from solver.tables import Column, Sheet, name_column
from solver.tiling.buffers import buffer_lines, buffers
from solver.tiling.pseudo_code import pseudo_code
from solver.verdict import Verdict
from solver.verify import counts_of, measures_of
from solver.whole import WholeProblem
from solver.words import decision_columns, labels, workload_text

Operand = Literal["IN", "W", "OUT", "PSUM"]

#: Letters of a row of banks: maps by turns, then tiles, then free.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


JOINT = JointFormulation()


class JointProblem(WholeProblem[JointPlan]):
    """F10: tile plans of all layers, and what stays on chip between them."""

    plan = JointPlan

    def __init__(self) -> None:
        super().__init__(JOINT)
        self.others, self.axes = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}, {}

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; of plans with the fewest bytes the fastest is not looked for."""
        if "time" in (asked.split(",") if isinstance(asked, str) else asked or ()):
            raise InputError("objective time: problem joint decides bytes (or energy); the plan says how long it takes")
        return super().objectives(asked, target)

    def solve(self, question: Question) -> JointPlan:
        """Plan all layers together, with the homes that pins leave."""
        return super().solve(
            replace(question, machine=narrowed(question.machine, parse_pins(question.pins, DECISIONS)))
        )

    def parts(self, question: Question) -> Sequence[JointPart]:
        """The network; raises InputError unless its homes are settled."""
        parts = cast(Sequence[JointPart], super().parts(question))
        check_homes(question.network, question.machine, question.objectives)
        return parts

    # ---- what a plan says --------------------------------------------------------------------------------------------

    def options(self, question: Question) -> Options:
        """Nothing else."""
        return Options(time_limit_s=question.time_limit_s, settings=question.settings)

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Sums, replay and a row a layer: figures are what the replay counts."""
        part, priced = cast(JointPart, verdict.part), verdict.priced
        fields = {"pins": tuple(part.pins.to_json()), "compulsory_bytes": part.tables.compulsory_bytes}
        if priced is None:
            none = JointReplay(ok=None, executed=0, faults=())
            return {**fields, "measures": None, "objective": None, "replay": none, "layers": ()}
        first, runs = question.objectives[0], cast(Runs, verdict.said.schedule)
        walked = part.walked(runs).layers
        objective = Objective(value=priced.measures[first], unit=self.measures[first], terms=dict(priced.terms[first]))
        return {
            **fields, "measures": Measures(**priced.measures), "objective": objective,
            "replay": JointReplay(ok=True, executed=sum(one.executed for one in walked), faults=()),
            "layers": tuple(_row(part, t, *one) for t, one in enumerate(zip(runs, walked, strict=True))),
        }  # fmt: skip

    def decided(self, plan: JointPlan, part: Any) -> Runs | None:
        """The schedule of the rows; raises InputError for one that the referee refuses."""
        if not plan.layers:
            return None
        runs = runs_in(plan)
        if faults := part.walked(runs).faults:
            raise InputError("; ".join(faults))
        return runs

    def question(self, plan: JointPlan) -> Question:
        """What a stored plan was asked."""
        return Question(plan.network_data, plan.machine_data, plan.objectives, self.name, pins=plan.pins)

    def derive(self, plan: JointPlan) -> Derived:
        """Replay layer by layer and bank by bank."""
        return replace(super().derive(plan), executed=plan.replay.executed)

    def faults(self, plan: JointPlan) -> Iterator[str]:
        """Also what a plan without layers may not say, and objectives that are not proven."""
        if "time" in plan.objectives:
            yield "objectives: problem joint decides bytes or energy, the plan says time"
            return
        if not plan.layers:
            yield from undecided_of(plan, plan.replay.ok)
        yield from super().faults(plan)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def status(self, plan: JointPlan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = status_parts(plan)
        if plan.measures is None:
            return parts
        parts.append(f"{microseconds(plan, plan.measures.time)} us one layer after the other")
        parts.append("replay agrees" if plan.replay.ok else "replay does not agree")
        return parts

    def sheet(self, plan: JointPlan) -> Sheet:
        """The table of layers."""
        rows = plan.layers
        objective, *measures = measure_columns(plan, rows)

        def moved(operand: Operand, means: str) -> Column:
            return Column(operand, [f"{row.counts.by_operand[operand].bytes:,}" for row in rows], means, spare=4)

        return Sheet(
            [
                name_column("layer", labels([row.layer for row in rows], plan.network_data.layers)),
                objective,
                Column("on chip (rows)", [", ".join(f"{one.map} {one.rows}" for one in row.on_chip) for row in rows],
                       "maps that lie on chip while the layer runs, and how many of their rows", words=True),
                _tiles(plan),
                *decision_columns([row.schedule.decision for row in rows]),
                *measures,
                moved("IN", "bytes of inputs"), moved("W", "of weights"), moved("OUT", "of results"),
                moved("PSUM", "of partial sums"),
            ]
        )  # fmt: skip

    def pictures(self, plan: JointPlan, others: Mapping[str, JointPlan]) -> Pictures:
        """What stays on chip, bytes, times, roofline."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: JointPlan, layer: str | None) -> Iterable[str]:
        """A layer with its nest; or what is on chip layer by layer, and all layers."""
        if layer is None:
            yield from (*(_banks(plan) if plan.machine_data.ocm_banks else _bytes(plan)), "")
        found, runs = stores(plan.network_data), runs_in(plan)
        for at, row in enumerate(plan.layers):
            if layer in (None, row.layer):
                yield from _layer(plan, row, found.layer(at, runs[at].rows, runs[at].unwritten), runs[at].nest)


def runs_in(plan: JointPlan) -> Runs:
    """Return the schedule of a plan; raises InputError for names that are not the network's."""
    found = stores(plan.network_data)
    names, made = [row.layer for row in plan.layers], [layer.name for layer in found.layers]
    if names != made:
        wrong = next((f"{a!r} for {b!r}" for a, b in zip(names, made, strict=False) if a != b), "a different number")
        raise InputError(f"layers: the plan has {len(names)}, the network {len(made)}; the first that differs: {wrong}")
    number = {store.name: at for at, store in enumerate(found.stores)}
    runs = []
    for row in plan.layers:
        if unknown := [one.map for one in row.on_chip if one.map not in number]:
            raise InputError(f"layer {row.layer}: on_chip: no map is called {', '.join(unknown)}")
        residents = {number[one.map]: (one.rows, one.banks) for one in row.on_chip}
        runs.append(LayerRun(row.schedule.to_nest(), residents, row.unwritten, row.banks))
    return tuple(runs)


def _row(part: JointPart, step: int, run: LayerRun, one: Replay) -> JointLayer:
    """A layer with its figures."""
    found, layer, outcome = part.found, part.layer(step, run), one.outcome
    return JointLayer(
        layer=layer.name, reads=tuple(found.stores[s].name for s in found.reads[step]),
        writes=found.stores[found.writes[step]].name,
        on_chip=residents_of(found, part.machine, run),
        unwritten=run.unwritten, banks=run.banks,
        schedule=Schedule.of(run.nest, read(layer, part.machine, run.nest)), measures=measures_of(outcome),
        counts=counts_of(outcome), occupancy_bytes=outcome.occupancy_bytes["ocm"],
        buffers=buffers(layer, part.machine, run.nest),
    )  # fmt: skip


def _tiles(plan: JointPlan) -> Column:
    """What tiles take."""
    if plan.machine_data.ocm_banks:
        return Column("tile banks", [str(len(row.banks)) for row in plan.layers], "banks for its tiles", spare=1)
    return Column("tile bytes", [f"{row.occupancy_bytes:,}" for row in plan.layers], "on chip for its tiles", spare=1)


def _bytes(plan: JointPlan) -> list[str]:
    """One line a layer: the bytes of tiles, of every map that is on chip, and those that are free."""
    width = max((len(row.layer) for row in plan.layers), default=0)
    whole = plan.machine_data.memories["ocm"]
    digits = len(f"{whole:,}")
    lines = [f"bytes on chip, of {whole:,}: those that are free, those of tiles, those of maps", ""]
    for row in plan.layers:
        free = whole - row.occupancy_bytes - sum(one.bytes or 0 for one in row.on_chip)
        said = ", ".join(f"{one.map} {one.bytes:,} ({one.rows} rows)" for one in row.on_chip)
        lines.append(f"{row.layer:<{width}}  {free:>{digits},}  {row.occupancy_bytes:>{digits},}  {said}".rstrip())
    return lines


def _banks(plan: JointPlan) -> list[str]:
    """One line a layer: a letter for every bank, and what the letters stand for."""
    width = max((len(row.layer) for row in plan.layers), default=0)
    letters: dict[str, str] = {}
    turns = cycle(_LETTERS)
    lines = ["a letter is a map that is on chip, # a tile, . a free bank", ""]
    for row in plan.layers:
        there = {one.map for one in row.on_chip}
        letters = {name: letter for name, letter in letters.items() if name in there}
        for name in (one.map for one in row.on_chip if one.map not in letters):
            letters[name] = next((x for x in islice(turns, len(_LETTERS)) if x not in letters.values()), "?")
        said = ", ".join(f"{letters[one.map]} {one.map} ({one.rows} rows)" for one in row.on_chip)
        lines.append(f"{row.layer:<{width}}  {_line(row, letters, plan.machine_data.ocm_banks)}  {said}".rstrip())
    return lines


def _line(row: JointLayer, letters: dict[str, str], number: int) -> str:
    owner = {bank: letters[one.map] for one in row.on_chip for bank in one.banks} | dict.fromkeys(row.banks, "#")
    return "".join(owner.get(bank, ".") for bank in range(number))


def _layer(plan: JointPlan, row: JointLayer, layer: Layer, nest: Nest) -> Iterable[str]:
    yield f"{row.layer}: {workload_text(layer)}, on {plan.machine}"
    yield f"{row.counts.bytes:,} bytes move, {microseconds(plan, row.measures.time)} us"
    for one in row.on_chip:
        part = " and ".join(
            [f"input {k + 1}" for k, name in enumerate(row.reads) if name == one.map]
            + ["the result"] * (row.writes == one.map)
        )
        yield f"{one.rows} rows of {one.map} ({part or 'for other layers'}) {lie_in(one)}"
    if row.unwritten:
        yield f"the first {row.unwritten} rows of the result are never written to DRAM"
    if len(set(layer.residents)) > 1:
        rows = ", ".join(map(str, layer.residents))
        yield f"inputs have {rows} rows on chip; loads name the rows of the one with the fewest"
    where = f" in banks {ranges(row.banks)}" if plan.machine_data.ocm_banks else ""
    yield from ("", f"tiles take {row.occupancy_bytes:,} bytes{where}:")
    yield from buffer_lines(row.buffers)
    yield from ("", *pseudo_code(layer, plan.machine_data, nest).splitlines(), "")


def lie_in(one: Resident) -> str:
    """Where rows are, for people."""
    if one.bytes is not None:
        return f"take {one.bytes:,} bytes"
    return f"lie in {'bank' if len(one.banks) == 1 else 'banks'} {ranges(one.banks)}"


def ranges(banks: Sequence[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    parts: list[list[int]] = []
    for bank in sorted(banks):
        if parts and bank == parts[-1][-1] + 1:
            parts[-1].append(bank)
        else:
            parts.append([bank])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
