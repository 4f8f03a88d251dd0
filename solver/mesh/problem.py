"""Problem mesh, as the rest of `solver` sees it: the rows of its plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, get_args

from formulations.mesh.part import MeshPart
from formulations.mesh.problem import MeshFormulation
from hwmodels.outcome import UNITS
from hwmodels.schedule import AxisLayout, Choice, Layout, MeshLayout, OperandLayout
from instances.ndrange import ndrange
from instances.workload import DIMS, Layer
from solver.mesh.figures import figures
from solver.mesh.plan import Aim, MeshAxis, MeshBanks, MeshLayer, MeshMeasures, MeshOperand, MeshPlan, MeshReplay
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.parts import PartsProblem
from solver.plan import Dim
from solver.problem import Target
from solver.search import Answer
from solver.tables import ABSENT, GAP, Column, Sheet, name_column, percent, ratio
from solver.verdict import Verdict, sum_of
from solver.verify import gap_of
from solver.words import label

_AIMS = {"dram": "to and from DRAM", "glb": "to and from the global buffer", "time": "of the mesh"}


class Mesh(PartsProblem[MeshPlan]):
    """F3: layers on a mesh of tile units, or an array."""

    plan = MeshPlan

    def __init__(self) -> None:
        super().__init__(MeshFormulation())
        proof = ("exhaustive",)
        self.others = {"milp": proof, "milp-cbc": proof, "cp-sat": proof, "": ("milp", *proof)}

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
        """Return what is known, a part each: status, value, bound, gap, bytes, and simulation."""
        parts = [f"{plan.network} on {plan.machine} (mesh, {plan.engine}): {plan.status}"]
        if plan.objective is None or plan.measures is None:
            note = plan.stats.get("note")
            return [*parts, *plan.conflicts, *([str(note)] if note else [])]
        must = sum(part.compulsory_bytes for part in plan.layers)
        parts += [
            *(_aim(aim, getattr(plan.measures, aim), plan.bounds.get(aim)) for aim in plan.objectives),
            f"DRAM {plan.measures.dram:,} bytes, {ratio(plan.measures.dram, must)} times what must ({must:,}), "
            f"global buffer {plan.measures.glb:,} bytes, {plan.measures.time:,} cycles",
            "simulation agrees" if all(part.replay.ok for part in plan.layers) else "simulation does not agree",
        ]
        return parts

    def sheet(self, plan: MeshPlan) -> Sheet:
        """Return the table of layers."""
        rows = plan.layers
        return Sheet(
            [
                name_column("layer", [label(row.layer, row.workload) for row in rows]),
                *(column for aim in plan.objectives for column in _aimed(plan, aim)),
                Column("tile", [_sizes(row, "tile") for row in rows], "of a unit, sizes of the dimensions", words=True),
                Column("sides", [f"{row.rows or ABSENT} x {row.cols or ABSENT}" for row in rows],
                       "dimensions along the rows and the columns of the mesh", words=True),
                Column("PEs", [_sizes(row, "vector") or ABSENT for row in rows], "how the PEs of a unit share a tile",
                       words=True),
                Column("keep", [row.keep for row in rows], "the operand whose tile stays", words=True, spare=1),
                *_per_mac(plan),
            ]
        )  # fmt: skip

    def pictures(self, plan: MeshPlan, others: Mapping[str, MeshPlan]) -> Pictures:
        """Bytes of both memories, roofline."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: MeshPlan, layer: str | None) -> Iterator[str]:
        """Return the loops, units, PEs and banks of one layer or all, line by line."""
        for part in plan.layers:
            if layer in (None, part.layer):
                yield from (*_lines(plan, part), "")


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


# ---- for people ------------------------------------------------------------------------------------------------------


def _aimed(plan: MeshPlan, aim: Aim) -> list[Column]:
    """An objective and its gap."""
    values = [getattr(row.measures, aim) for row in plan.layers]
    gaps = [percent(gap_of(v, row.bounds.get(aim))) for v, row in zip(values, plan.layers, strict=True)]
    total = getattr(plan.measures, aim) if plan.measures else 0
    return [
        Column(f"{aim} ({UNITS[aim]})", [f"{value:,}" for value in values], _AIMS.get(aim, ""), f"{total:,}"),
        Column("gap (%)", gaps, GAP, percent(gap_of(total, plan.bounds.get(aim)))),
    ]


def _per_mac(plan: MeshPlan) -> list[Column]:
    """Rates that layers of any size can be compared by."""

    def rate(head: str, means: str, of: Callable[[MeshLayer], float], spare: int) -> Column:
        return Column(head, [f"{of(row):.1f}" for row in plan.layers], means, spare=spare)

    return [
        rate("dram/kMAC", "bytes of DRAM for 1000 multiplications",
             lambda row: 1000 * row.measures.dram / row.workload.macs, 2),
        rate("glb/kMAC", "bytes of the global buffer for 1000 multiplications",
             lambda row: 1000 * row.measures.glb / row.workload.macs, 3),
        rate("GMAC/s", "1e9 multiplications a second",
             lambda row: row.workload.macs / (row.measures.time * plan.machine_data.tick_ps / 1e3), 2),
    ]  # fmt: skip


def _gap(value: int, bound: int | None) -> str:
    gap = gap_of(value, bound)
    return "no bound" if gap is None else f"{percent(gap)} %"


def _sizes(part: MeshLayer, what: str) -> str:
    """Sizes that say something: of indices with more than one element."""
    found: dict[Dim, int] = getattr(part, what)
    return " ".join(f"{d}={found[d]}" for d in get_args(Dim) if part.workload.extent(d) > 1 and found.get(d, 1) > 1)


def _aim(aim: str, value: int, bound: int | None) -> str:
    """An objective with what is proven of it."""
    said = "no bound" if bound is None else f"bound {bound:,}, gap {_gap(value, bound)}"
    return f"{aim} {value:,} {UNITS[aim]}, {said}"


def _lines(plan: MeshPlan, part: MeshLayer) -> list[str]:
    layer, cost, machine = part.workload, part.measures, plan.machine_data
    lines = [
        f"{part.layer} on {plan.machine}: {part.status}, dram {cost.dram:,} glb {cost.glb:,} bytes, "
        f"{cost.time:,} cycles ({cost.cycles:,} of the PEs)"
    ]
    summed = ("n",) if layer.kind == "correlation" else ("n", "i", "j")
    indent = "  "
    for d in _order(layer, part):
        lines.append(_loop(layer, part, d, indent))
        indent += "  " if lines[-1] else ""
    lines = [line for line in lines if line]
    if part.banks is not None:
        lines.append(f"{indent}# each unit: partial sums of its tile stay here")
    for d in summed:
        text = _loop(layer, part, d, indent)
        if text:
            lines.append(text)
            indent += "  "
    needed = {operand.name: operand for operand in ndrange(layer).inputs}
    kept = dict.fromkeys((part.keep,), "stays while it is the same")
    for op in ("IN", "W"):
        how = kept.get(op) or "from the global buffer"
        along = [side for side, d in (("rows", part.rows), ("columns", part.cols)) if d and not needed[op].depends(d)]
        if op not in kept and along and part.share in ("both", op):
            how += f", once for all units along {' and '.join(along)}, which pass it on through FIFOs"
        if machine.mesh is not None and machine.mesh.kind != "teu":
            how = kept.get(op) or "from DRAM into the global buffer"
        lines.append(f"{indent}load {op}: {how}")
    if part.banks is None:
        more = (
            f", {part.filters} filters x {part.channels} channels in a PE" if part.channels * part.filters > 1 else ""
        )
        lines.append(f"{indent}run the array on the tile{more}")
        return lines
    lines.append(
        f"{indent}32 PEs at a time: {_sizes(part, 'vector') or 'one'}; PE bits 0..: {' '.join(part.banks.bits)}"
    )
    for one in part.banks.operands:
        axes = ", ".join(f"axis {a.axis}: {a.extent} at pitch {a.pitch}" for a in one.axes if a.extent > 1) or "a word"
        lines.append(f"{indent}banks {one.operand}: {axes}; {one.words} words, {one.padding} of them padding")
    return lines


def _order(layer: Layer, part: MeshLayer) -> list[str]:
    parallel = [d for d in DIMS if d not in (("n",) if layer.kind == "correlation" else ("n", "i", "j"))]
    first = {"IN": "bgrcij", "W": "bnrc" if layer.kind == "correlation" else "gm"}.get(part.keep, "".join(parallel))
    return [d for d in parallel if d in first] + [d for d in parallel if d not in first]


def _loop(layer: Layer, part: MeshLayer, d: str, indent: str) -> str:
    tile, size = {str(k): v for k, v in part.tile.items()}[d], layer.extent(d)
    if tile >= size:
        return ""
    sides = [name for name, index in (("rows", part.rows), ("columns", part.cols)) if index == d]
    where = f"  # tiles side by side along {' and '.join(sides)}" if sides else ""
    return f"{indent}for {d} in 0..{size} step {tile}:{where}"
