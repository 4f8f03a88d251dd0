"""Problem mesh, as the rest of `solver` sees it: the rows of its plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from formulations.mesh.choice import Choice
from formulations.mesh.layout import AxisLayout, Layout, OperandLayout
from formulations.mesh.problem import MeshFormulation, MeshLayout, MeshPart
from instances.workload import DIMS
from solver.mesh.plan import MeshAxis, MeshBanks, MeshLayer, MeshMeasures, MeshOperand, MeshPlan, MeshReplay
from solver.mesh.show import mesh_details, mesh_status, mesh_table
from solver.parts import PartsProblem
from solver.problem import Target
from solver.report import Sheet
from solver.search import Answer
from solver.verdict import Verdict, sum_of

__all__ = ["Mesh"]


class Mesh(PartsProblem[MeshPlan]):
    """F3: layers on a mesh of tile units, or an array."""

    plan = MeshPlan

    def __init__(self) -> None:
        super().__init__(MeshFormulation())
        proof = ("exhaustive",)
        self.others = {"milp": proof, "milp-cbc": proof, "cp-sat": proof, "": ("milp", *proof)}
        self.axes = {}

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; bytes are those of DRAM, as everywhere."""
        texts = [asked] if isinstance(asked, str) else asked
        names = None if texts is None else [part.strip() for text in texts for part in str(text).split(",")]
        return super().objectives(names and ["dram" if name == "bytes" else name for name in names], target)

    def row(self, verdict: Verdict) -> MeshLayer | None:
        """Return the decisions with their figures; a layer that is not planned has no row."""
        part, said, schedule = verdict.part, verdict.said, verdict.said.schedule
        if schedule is None or verdict.priced is None or verdict.walked is None:
            return None
        assert isinstance(part, MeshPart)
        assert isinstance(schedule, MeshLayout)
        choice, walked, wrong = schedule.choice, verdict.walked, verdict.disagreements
        counted = {name: walked.measures[name] for name in ("dram", "glb", "cycles")}
        return MeshLayer.model_validate({
            "layer": part.name, "workload": part.layer, "tile": dict(zip(DIMS, choice.tile, strict=True)),
            "rows": choice.rows or "", "cols": choice.cols or "", "vector": dict(zip(DIMS, choice.vector, strict=True)),
            "share": choice.share, "keep": choice.keep, "filters": choice.filters, "channels": choice.channels,
            "banks": None if schedule.layout is None else _banks(schedule.layout), "status": said.status,
            "measures": MeshMeasures(**verdict.priced.measures), "bounds": dict(said.bounds), "gap": verdict.gap,
            "compulsory_bytes": part.compulsory_bytes, "stats": dict(said.stats),
            "replay": MeshReplay(ok=not wrong, **counted, **walked.counts, faults=wrong),
        })  # fmt: skip

    def said(self, row: MeshLayer) -> Answer[Any]:
        """Return what a row says of measures and bounds."""
        bounds = {str(name): bound for name, bound in row.bounds.items()}
        return Answer(None, row.measures.model_dump(), bounds, row.status, stats=row.stats)

    def decided(self, row: MeshLayer) -> MeshLayout:
        """Return the schedule of a row."""
        tile, vector = ({str(d): size for d, size in of.items()} for of in (row.tile, row.vector))
        choice = Choice(
            tuple(tile.get(d, 0) for d in DIMS), row.rows, row.cols, tuple(vector.get(d, 1) for d in DIMS), row.share,
            row.keep, row.filters, row.channels,
        )  # fmt: skip
        return MeshLayout(choice, None if row.banks is None else _layout(row.banks))

    def totals(self, objectives: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Sum measures and bounds."""
        totals, priced = super().totals(objectives, verdicts), [one.priced.measures for one in verdicts if one.priced]
        sums = {name: sum(one[name] for one in priced) for name in MeshMeasures.model_fields}
        bounds = {name: sum_of(one.said.bounds.get(name) for one in verdicts) for name in objectives}
        return {
            **totals, "measures": MeshMeasures(**sums) if len(priced) == len(verdicts) else None,
            "bounds": {} if totals["status"] == "INFEASIBLE" else bounds,
        }  # fmt: skip

    def status(self, plan: MeshPlan) -> list[str]:
        """What is known."""
        return mesh_status(plan)

    def sheet(self, plan: MeshPlan) -> Sheet:
        """The table."""
        return mesh_table(plan)

    def details(self, plan: MeshPlan, layer: str | None) -> Iterable[str]:
        """Loops, units, PEs and banks."""
        return mesh_details(plan, layer)


def _banks(layout: Layout) -> MeshBanks:
    """A layout as a plan says it."""
    operands = tuple(
        MeshOperand.model_validate({
            "operand": one.operand, "words": one.words, "padding": max(0, one.words - one.elements),
            "axes": tuple(MeshAxis(axis=a.axis, extent=a.extent, pitch=a.pitch) for a in one.axes),
        })
        for one in layout.operands
    )  # fmt: skip
    return MeshBanks(bits=tuple(f"{d}{q}" for d, q in layout.bits), operands=(operands[0], operands[1]))


def _layout(banks: MeshBanks) -> Layout:
    """What a plan says as a layout; elements are those of the axes."""
    operands = []
    for one in banks.operands:
        axes = tuple(AxisLayout(axis.axis, axis.extent, axis.pitch) for axis in one.axes)
        operands.append(OperandLayout(one.operand, axes, one.words, prod(axis.extent for axis in axes)))
    return Layout(tuple((bit[0], int(bit[1:])) for bit in banks.bits), tuple(operands))
