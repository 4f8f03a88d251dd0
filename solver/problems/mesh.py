"""Problem mesh, as the rest of `solver` sees it: how its plans are shown.

Drawn are bytes of both memories by layer, and the roofline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from formulations.mesh.problem import MeshFormulation
from hwmodels.outcome import UNITS
from hwmodels.schedule import Choice
from instances.machine.machine import Machine
from instances.network.ndrange import ndrange
from instances.network.workload import DIMS, Layer
from solver.plan.claims import gap_of
from solver.plan.figures import Figure
from solver.plan.plan import PartPlan, Plan
from solver.problems.problem import Problem, Target
from solver.show.common import by_row, stacked
from solver.show.roofline import Rate, roofline
from solver.show.tables import ABSENT, GAP, Column, Sheet, name_column, percent, ratio
from solver.show.words import agreement, label

_AIMS = {"dram": "to and from DRAM", "glb": "to and from the global buffer", "time": "of the mesh"}


class Mesh(Problem):
    """Layers on a mesh of tile units, or an array."""

    def __init__(self) -> None:
        super().__init__(MeshFormulation())
        proof = ("exhaustive",)
        self.others = {"milp": proof, "milp-cbc": proof, "cp-sat": proof, "": ("milp", *proof)}

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; bytes are those of DRAM, as everywhere."""
        texts = [asked] if isinstance(asked, str) else asked
        names = None if texts is None else [part.strip() for text in texts for part in str(text).split(",")]
        return super().objectives(names and ["dram" if name == "bytes" else name for name in names], target)

    def status(self, plan: Plan) -> list[str]:
        """Return what is known, a part each: status, value, bound, gap, bytes, and simulation."""
        parts = [f"{plan.network} on {plan.machine} (mesh, {plan.engine}): {plan.status}"]
        if plan.objective is None or plan.measures is None:
            note = plan.stats.get("note")
            return [*parts, *plan.conflicts, *([str(note)] if note else [])]
        must = sum(row.must["dram"] for row in plan.parts)
        found, bounds = plan.measures, plan.bounds
        parts += [
            *(_aim(aim, found[aim], bounds[aim]) for aim in plan.objectives),
            f"DRAM {found['dram']:,} bytes, {ratio(found['dram'], must)} times what must ({must:,}), "
            f"global buffer {found['glb']:,} bytes, {found['time']:,} cycles",
            agreement(plan, "simulation"),
        ]  # fmt: skip
        return parts

    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of layers."""
        rows, layers = plan.parts, [plan.network_data.layer(row.name) for row in plan.parts]

        def said(of: Callable[[Layer, Choice], str]) -> list[str]:
            return [of(layer, row.schedule.choice) if row.schedule else ABSENT
                    for layer, row in zip(layers, rows, strict=True)]  # fmt: skip

        return Sheet(
            [
                name_column("layer", [label(layer.name, layer) for layer in layers]),
                *(column for aim in plan.objectives for column in _aimed(plan, aim)),
                Column("tile", said(lambda layer, one: _sizes(layer, one.tile)), "of a unit, sizes of the dimensions",
                       words=True),
                Column("sides", said(lambda _, one: f"{one.rows or ABSENT} x {one.cols or ABSENT}"),
                       "dimensions along the rows and the columns of the mesh", words=True),
                Column("PEs", said(lambda layer, one: _sizes(layer, one.vector) or ABSENT),
                       "how the PEs of a unit share a tile", words=True),
                Column("keep", said(lambda _, one: one.keep), "the operand whose tile stays", words=True, spare=1),
                *_per_mac(plan, layers),
            ]
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Bytes of both memories, roofline."""
        decided = {engine: [row for row in one.parts if row.schedule] for engine, one in plans.items()}
        macs = {layer.name: layer.macs for layer in plan.network_data.layers}
        rates = {
            engine: [Rate(row.name, macs[row.name], row.measures["dram"], row.measures["time"]) for row in rows]
            for engine, rows in decided.items()
        }
        dram = by_row(decided, lambda row: {
            "what must move": min(row.must["dram"], row.measures["dram"]),
            "moved again": max(0, row.measures["dram"] - row.must["dram"]),
        })  # fmt: skip
        caption = "Every input, weight and result once, and what moves again."
        buffer = by_row(decided, lambda row: {"bytes": row.measures["glb"]})
        return [
            stacked("dram", "DRAM bytes by layer", caption, "bytes", dram),
            stacked("buffer", "Global buffer by layer", "Bytes to and from the global buffer.", "bytes", buffer),
            roofline(plan.machine_data, rates),
        ]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Return the loops, units, PEs and banks of one layer or all, line by line."""
        for row in plan.parts:
            if layer in (None, row.name):
                yield from (*_lines(plan, row), "")


# ---- for people ------------------------------------------------------------------------------------------------------


def _aimed(plan: Plan, aim: str) -> list[Column]:
    """An objective and its gap."""
    rows = plan.parts
    gaps = [percent(gap_of(row.measures.get(aim), row.bounds.get(aim))) for row in rows]
    bound, total = plan.bounds[aim], plan.measures[aim] if plan.measures else None
    values = [f"{row.measures[aim]:,}" if row.measures else row.status for row in rows]
    return [
        Column(f"{aim} ({UNITS[aim]})", values, _AIMS.get(aim, ""), ABSENT if total is None else f"{total:,}"),
        Column("gap (%)", gaps, GAP, percent(gap_of(total, bound))),
    ]


def _per_mac(plan: Plan, layers: Sequence[Layer]) -> list[Column]:
    """Rates that layers of any size can be compared by."""

    def rate(head: str, means: str, of: Callable[[Layer, Mapping[str, int]], float], spare: int) -> Column:
        cells = [f"{of(layer, row.measures):.1f}" if row.measures else ABSENT
                 for layer, row in zip(layers, plan.parts, strict=True)]  # fmt: skip
        return Column(head, cells, means, spare=spare)

    return [
        rate("dram/kMAC", "bytes of DRAM for 1000 multiplications",
             lambda layer, cost: 1000 * cost["dram"] / layer.macs, 2),
        rate("glb/kMAC", "bytes of the global buffer for 1000 multiplications",
             lambda layer, cost: 1000 * cost["glb"] / layer.macs, 3),
        rate("GMAC/s", "1e9 multiplications a second",
             lambda layer, cost: layer.macs / (cost["time"] * plan.machine_data.tick_ps / 1e3), 2),
    ]  # fmt: skip


def _sizes(layer: Layer, sizes: Sequence[int]) -> str:
    """Sizes that say something: of indices with more than one element."""
    return " ".join(f"{d}={size}" for d, size in zip(DIMS, sizes, strict=True) if layer.extent(d) > 1 and size > 1)


def _aim(aim: str, value: int, bound: int | None) -> str:
    """An objective with what is proven of it."""
    gap = gap_of(value, bound)
    said = "no bound" if gap is None else f"bound {bound:,}, gap {percent(gap)} %"
    return f"{aim} {value:,} {UNITS[aim]}, {said}"


def _lines(plan: Plan, row: PartPlan) -> list[str]:
    """The loops of a layer, and the layout of its banks."""
    layer, cost = plan.network_data.layer(row.name), row.measures
    if row.schedule is None:
        return [f"{row.name} on {plan.machine}: {row.status}", *row.conflicts]
    choice, layout = row.schedule.choice, row.schedule.layout
    lines = [
        f"{row.name} on {plan.machine}: {row.status}, dram {cost['dram']:,} glb {cost['glb']:,} bytes, "
        f"{cost['time']:,} cycles ({cost['cycles']:,} of the PEs)"
    ]
    indent = "  "

    def loops(dims: Sequence[str]) -> None:
        nonlocal indent
        for d in dims:
            if text := _loop(layer, choice, d):
                lines.append(indent + text)
                indent += "  "

    loops(_order(layer, choice))
    if layout is not None:
        lines.append(f"{indent}# each unit: partial sums of its tile stay here")
    loops(_summed(layer))
    lines += [f"{indent}load {op}: {how}" for op, how in _loads(layer, plan.machine_data, choice)]
    if layout is None:
        many = choice.channels * choice.filters > 1
        more = f", {choice.filters} filters x {choice.channels} channels in a PE" if many else ""
        return [*lines, f"{indent}run the array on the tile{more}"]
    bits = " ".join(f"{d}{q}" for d, q in layout.bits)
    lines.append(f"{indent}32 PEs at a time: {_sizes(layer, choice.vector) or 'one'}; PE bits 0..: {bits}")
    for one in layout.operands:
        axes = ", ".join(f"axis {a.axis}: {a.extent} at pitch {a.pitch}" for a in one.axes if a.extent > 1) or "a word"
        padding = max(0, one.words - one.elements)
        lines.append(f"{indent}banks {one.operand}: {axes}; {one.words} words, {padding} of them padding")
    return lines


def _loads(layer: Layer, machine: Machine, choice: Choice) -> Iterator[tuple[str, str]]:
    """How both operands come to the units."""
    assert machine.mesh is not None
    needed = {operand.name: operand for operand in ndrange(layer).inputs}
    for op in ("IN", "W"):
        along = [
            side for side, d in (("rows", choice.rows), ("columns", choice.cols)) if d and not needed[op].depends(d)
        ]
        if op == choice.keep:
            yield op, "stays while it is the same"
        elif machine.mesh.kind != "teu":
            yield op, "from DRAM into the global buffer"
        elif along and choice.share in ("both", op):
            sides = " and ".join(along)
            yield op, f"from the global buffer, once for all units along {sides}, which pass it on through FIFOs"
        else:
            yield op, "from the global buffer"


def _summed(layer: Layer) -> tuple[str, ...]:
    """The dimensions that products are summed over."""
    return ("n",) if layer.kind == "correlation" else ("n", "i", "j")


def _order(layer: Layer, choice: Choice) -> list[str]:
    """The other dimensions, those of the operand that stays outermost."""
    parallel = [d for d in DIMS if d not in _summed(layer)]
    own = {"IN": "bgrcij", "W": "bnrc" if layer.kind == "correlation" else "gm"}
    first = own.get(choice.keep, "".join(parallel))
    return [d for d in parallel if d in first] + [d for d in parallel if d not in first]


def _loop(layer: Layer, choice: Choice, d: str) -> str:
    """The loop over a dimension, nothing if the tile has all of it."""
    tile, size = choice.tile[DIMS.index(d)], layer.extent(d)
    if tile >= size:
        return ""
    sides = [name for name, index in (("rows", choice.rows), ("columns", choice.cols)) if index == d]
    where = f"  # tiles side by side along {' and '.join(sides)}" if sides else ""
    return f"for {d} in 0..{size} step {tile}:{where}"


PROBLEM = Mesh
