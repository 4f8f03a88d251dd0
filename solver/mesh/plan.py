"""Plans of layers on meshes and arrays: tiles, sides, PE vectors and bank layouts.

Bytes are bytes, times are cycles (ticks of the machine); names and letters as in docs/mesh.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from instances.workload import Layer
from solver.parts import PartsPlan
from solver.plan import Dim, Frozen, Gap, Natural, Stat, Status

Side = Literal["", "b", "g", "m", "n", "r", "c", "i", "j"]


Aim = Literal["dram", "glb", "time"]
Bounds = dict[Aim, Natural | None]


class MeshMeasures(Frozen):
    """Bytes from and to DRAM and the global buffer, cycles of the PEs, and the time under the roofline."""

    dram: Natural
    glb: Natural
    cycles: Natural
    time: Natural


class MeshReplay(Frozen):
    """What the simulation counted; `fetches` of tiles, words that went through FIFOs, and steps."""

    ok: bool
    dram: Natural
    glb: Natural
    cycles: Natural
    fetches: Natural
    fifo_words: Natural
    steps: Natural
    faults: tuple[str, ...]


class MeshAxis(Frozen):
    """An axis of an operand (by number, as in `instances.ndrange`): elements of the tile, words between them."""

    axis: Annotated[int, Field(ge=0, le=4)]
    extent: PositiveInt
    pitch: PositiveInt


class MeshOperand(Frozen):
    """The tile of an operand in its banks, innermost axis first; `padding` words hold nothing."""

    operand: Literal["IN", "W"]
    axes: tuple[MeshAxis, ...]
    words: PositiveInt
    padding: Natural


class MeshBanks(Frozen):
    """The layout of both operands; `bits`: what each bit of the PE number is, lowest first (``c0``, ``c1``, ``m0``)."""

    bits: tuple[Annotated[str, Field(pattern=r"^[bgmnrcij][0-9]{1,2}$")], ...]
    operands: tuple[MeshOperand, MeshOperand]


class MeshLayer(Frozen):
    """One layer; `vector`, `share` and `banks` are of a mesh, `filters` and `channels` of row-stationary PEs.

    `bounds`: for each objective a lower bound over all plans of the layer whose objectives before it are at most those
    here;
    None if nothing is known. OPTIMAL: each is reached. `gap` is that of the first.
    """

    layer: str
    workload: Layer
    tile: dict[Dim, PositiveInt]
    rows: Side
    cols: Side
    vector: dict[Dim, PositiveInt]
    share: Literal["both", "IN", "W", "none"]
    keep: Literal["none", "IN", "W"]
    filters: PositiveInt
    channels: PositiveInt
    banks: MeshBanks | None
    status: Status
    measures: MeshMeasures
    bounds: Bounds
    gap: Gap | None
    compulsory_bytes: Natural
    replay: MeshReplay
    stats: dict[str, Stat]


class MeshPlan(PartsPlan):
    """A plan of layers on a machine with mesh; `measures` and `bounds` are sums over them, `bound` is the first one."""

    PROBLEMS = ("mesh",)

    problem: Literal["mesh"]
    objectives: Annotated[tuple[Aim, ...], Field(min_length=1)]
    unit: Literal["ticks", "bytes"]
    measures: MeshMeasures | None
    bounds: Bounds
    layers: tuple[MeshLayer, ...]
