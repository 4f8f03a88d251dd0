"""Problem joint, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Literal

from formulations.tiling.problem import DECISIONS
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.stores import stores
from instances.workload import Layer
from solver.joint.check import problems_of_joint, runs_in
from solver.joint.engines import JOINT_ENGINES, JointEngine
from solver.joint.plan import JointLayer, JointPlan
from solver.joint.solve import solve
from solver.network_show import measure_columns, microseconds, status_parts
from solver.problem import Derived, Problem, Target
from solver.question import Question
from solver.report import Column, Sheet, name_column
from solver.tiling.buffers import buffer_lines, buffers
from solver.tiling.pseudo_code import pseudo_code
from solver.words import decision_columns, labels, workload_text

__all__ = ["JointProblem"]

Operand = Literal["IN", "W", "OUT", "PSUM"]

#: Letters of a row of banks: maps by turns, then tiles, then free.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class JointProblem(Problem[JointPlan]):
    """F10: tile plans of all layers, and what stays on chip between them."""

    name = "joint"
    summary = "F10: tile plans of all layers and what stays in a shared memory between them"
    plan = JointPlan
    measures = {"bytes": "bytes", "energy": "fJ"}
    usual = "bytes"
    pins = {name: str(decision) for name, decision in DECISIONS.items()}
    auto = "dynamic"
    quick = ("greedy", "sequence", "no-reuse")
    others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}
    floors = True

    @property
    def engines(self) -> Mapping[str, JointEngine]:
        """The ways to decide."""
        return JOINT_ENGINES

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; of plans with the fewest bytes the fastest is not looked for."""
        if "time" in (asked.split(",") if isinstance(asked, str) else asked or ()):
            raise InputError("objective time: problem joint decides bytes (or energy); the plan says how long it takes")
        return super().objectives(asked, target)

    def solve(self, question: Question) -> JointPlan:
        """Plan all layers together."""
        return solve(question)

    def derive(self, plan: JointPlan) -> Derived:
        """Replay layer by layer and bank by bank."""
        return Derived(tuple(problems_of_joint(plan)), plan.size, plan.replay.executed)

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
                Column("tile banks", [str(len(row.banks)) for row in rows], "banks for its tiles", spare=1),
                *decision_columns([row.schedule.decision for row in rows]),
                *measures,
                moved("IN", "bytes of inputs"), moved("W", "of weights"), moved("OUT", "of results"),
                moved("PSUM", "of partial sums"),
            ]
        )  # fmt: skip

    def details(self, plan: JointPlan, layer: str | None) -> Iterable[str]:
        """A layer with its nest; or the banks layer by layer, and all layers."""
        if layer is None:
            yield from (*_banks(plan), "")
        found = stores(plan.network_data)
        runs = runs_in(plan, found)
        if isinstance(runs, str):
            raise InputError(f"plan of {plan.network}: {runs}")
        for at, row in enumerate(plan.layers):
            if layer in (None, row.layer):
                yield from _layer(plan, row, found.layer(at, runs[at].rows, runs[at].unwritten), runs[at].nest)

    def question(self, plan: JointPlan) -> Question:
        """What a stored plan was asked."""
        return Question(plan.network_data, plan.machine_data, plan.objectives, "joint", pins=plan.pins)


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
        yield f"{one.rows} rows of {one.map} ({part or 'for other layers'}) lie in banks {_ranges(one.banks)}"
    if row.unwritten:
        yield f"the first {row.unwritten} rows of the result are never written to DRAM"
    if len(set(layer.residents)) > 1:
        rows = ", ".join(map(str, layer.residents))
        yield f"inputs have {rows} rows on chip; loads name the rows of the one with the fewest"
    yield from ("", f"tiles take {row.occupancy_bytes:,} bytes in banks {_ranges(row.banks)}:")
    yield from buffer_lines(row.buffers or buffers(layer, plan.machine_data, nest))
    yield from ("", *pseudo_code(layer, plan.machine_data, nest).splitlines(), "")


def _ranges(banks: Sequence[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    parts: list[list[int]] = []
    for bank in sorted(banks):
        if parts and bank == parts[-1][-1] + 1:
            parts[-1].append(bank)
        else:
            parts.append([bank])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)
