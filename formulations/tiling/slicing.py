"""Slicing: how clusters and cores share a layer, which operand stays, and the tile sizes (TSO).

Sets
    p in P = {KS, KS&OFM, OFM} partitions over the TLEs; q in Q = {IS, OS, WS} dataflows; d tiled dimensions
Given
    #TLE, #TLT; MB0, MB1, MB2 bytes of a core's buffers; prices of `instances.machine.machine`   (integers; bytes,
    ticks)
Variables
    p; the nest of a core as in `formulations.tiling.tiling`: order of Holds, steps of at most two loops a dimension,
    slide
Objective
    min lexicographically any order of time [ticks], bytes, energy [fJ]; ties by the remaining ones in this order
Constraints
    (CHOOSE)    one partition, one order of Holds, one chain of steps per dimension
    (CAPACITY)  IN <= MB0, W <= MB1, OUT <= MB2 (Eq. 2)
    (COST)      time >= time of every cluster; each a sum of products of a spatial and a channel factor
Nest
    Spatial cuts over TLEs (Alg. 2): KS filters by ceil(F/#TLE); KS&OFM filters by ceil(F/(#TLE/2)) and rows by
    ceil(R/2); OFM rows by ceil(R/#TLE). Then filters over the TLTs by ceil(slice/#TLT). Inside, the nests of
    `formulations.tiling.tiling` (which says why they stand for all). The filters F are M, or the groups where these
    outnumber M (depthwise).
The paper's space
    holds=uniform, a pinned dataflow and the literal reading mean the paper's three dataflows with one loop a dimension
        IS  r c n       (all filters of the core at once)        Eq. 3
        OS  r c f n                                              Eq. 4
        WS  f | Hold(W) with all N | r c n                       Eq. 5
    In the consistent reading IS is left to OS, which contains it: with T_F = all filters of the core its filter loop
    has one trip, which is no loop, and the nests are the same.
Readings (`reading` of the machine)
    consistent  every core moves what its nest needs: true edge tiles, operands stay when no relevant loop changes
                them, IN and W are loaded for each core or once for several (`broadcast`); T_DRAM of the clusters side
                by side (`dram = per_tle`, one DMA engine a TLE) or added (`shared`); Eq. 7 for the nominal tile
    literal     Eq. 3-9 as printed (`hwmodels.nest.price.literal`); Eq. 3 lacks the filter trips in alpha_out, Eq. 8
                divides by #TLTs only, T_DRAM adds up over the TLEs
Assumes
    operands of a core lie in its own buffers; one pass per tile.
Optimal means
    of the three partitions and all nests in the cores, as in `formulations.tiling.tiling`, or of the paper's space,
    none is better under the stated reading and objective; else FEASIBLE with a bound that none is below. All cores run
    one program: places where loops cut count from the begin of a core's range, the same on every core.

Source: `tso_burst_slicing` section IV, Alg. 1-4, Eq. 2-9.
"""

from __future__ import annotations

import numpy as np

from formulations.pins import Decision, Pins
from formulations.tiling.chains import Sizes
from formulations.tiling.family import HOMES, PIECES, Restrictions, free_members, stated_cuts, stated_homes
from formulations.tiling.member import Member
from formulations.tiling.space import Space
from hwmodels.nest.price.literal import tso_dataflow
from hwmodels.nest.price.skeleton import Skeleton, cores, skeleton_of
from hwmodels.schedule import Hold, Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer, refuse_long

PARTITIONS = ("KS", "KS&OFM", "OFM")
DATAFLOWS = ("IS", "OS", "WS")
_OPERANDS = ("IN", "W", "OUT")

DECISIONS: dict[str, Decision] = {
    "partition": Decision("how the TLEs share the layer: KS (filters), KS&OFM (both) or OFM (rows)", PARTITIONS),
    "holds": Decision("free (every operand at its own depth) or uniform (the paper's dataflows)", ("free", "uniform")),
    "dataflow": Decision("the paper's nest in which IS (input), OS (output) or WS (weights) stay", DATAFLOWS),
    **{f"T_{d.upper()}": Decision(f"innermost tile size of dimension {d} in one core") for d in DIMS},
    "pieces": PIECES,
    "resident": Decision("an operand of which a core keeps all it needs on chip: IN, W or OUT", _OPERANDS),
    "output": Decision("any, or row_major: rows of the result are cut outside its columns", ("any", "row_major")),
    **{f"buffers_{op}": Decision(f"buffers of {op}: 1 or 2", ("1", "2")) for op in _OPERANDS},
    **HOMES,
}


def filter_dim(layer: Layer) -> str:
    """The dimension that counts as filters: m, or g where the groups outnumber the filters of a group."""
    return "g" if layer.g > 1 and layer.g >= layer.m else "m"


def partition_cuts(layer: Layer, machine: Machine, partition: str) -> tuple[Spatial, ...] | None:
    """Alg. 2: the spatial cuts of a partition, or None where the number of TLEs does not allow it."""
    f, tles = filter_dim(layer), machine.tles
    parts = {"KS": (tles, 1), "OFM": (1, tles), "KS&OFM": (tles // 2, 2) if tles % 2 == 0 else None}[partition]
    if parts is None:
        return None
    filters, rows = -(-layer.extent(f) // parts[0]), -(-layer.r // parts[1])
    cuts = [Spatial(d, s, "tle") for d, s, n in ((f, filters, parts[0]), ("r", rows, parts[1])) if n > 1]
    return (*cuts, Spatial(f, -(-filters // machine.tlts), "tlt"))


def _skeleton(layer: Layer, spatial: tuple[Spatial, ...], dataflow: str) -> Skeleton:
    """The paper's nest."""
    f = filter_dim(layer)
    other = "g" if f == "m" else "m"
    filters = {"m": ("m",), "g": ("g", "m")}[f]
    orders = {
        "IS": (*([] if f == "g" else [other]), "b", "r", "c", *([other] if f == "g" else []), "n"),
        "OS": (*([] if f == "g" else [other]), "b", "r", "c", *filters, "n"),
        "WS": ("g", "m", "b", "r", "c", "n"),
    }
    order = tuple(d for d in orders[dataflow] if layer.extent(d) > 1)
    depth = dict.fromkeys(layer.operands, len(order))
    if dataflow == "WS" and "W" in depth:
        depth["W"] = sum(d in order for d in ("g", "m"))
    return Skeleton(spatial, order, depth)


def build(layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
    """Build the space of slicing plans.

    Raises InputError if the machine has a single core (use ``tiling``), or a dimension is too long.
    """
    refuse_long(layer)
    if machine.tles * machine.tlts == 1:
        raise InputError(f"problem slicing shares a layer among cores, machine {machine.name} has one: use tiling")
    limits = Restrictions.of(layer, machine, pins)
    uniform = _uniform(machine, pins)
    members: list[Member] = []
    for partition in PARTITIONS:
        spatial = partition_cuts(layer, machine, partition)
        if spatial is None or not pins.allows("partition", partition):
            continue
        sizes = _sizes(layer, pins, spatial)
        if uniform:
            uncut = limits.whole(cores(layer, spatial)[0], sizes)
            members += _paper_members(layer, machine, pins, partition, spatial, uncut, full=full)
        elif pins.allows("holds", "free"):
            label = {"partition": partition}
            members += free_members(layer, machine, spatial, sizes, limits, label, full=full)
    return Space(
        "slicing", layer, machine, pins, tuple(members),
        lambda m, p: build(layer, m, p, full=full), lambda nest: read(layer, nest, paper=uniform),
    )  # fmt: skip


def _uniform(machine: Machine, pins: Pins) -> bool:
    """Whether the paper's dataflows are asked for."""
    asked = machine.reading == "literal" or pins.of("dataflow") or not pins.allows("holds", "free")
    return bool(asked and pins.allows("holds", "uniform"))


def _sizes(layer: Layer, pins: Pins, spatial: tuple[Spatial, ...]) -> dict[str, Sizes]:
    """The steps that the pins allow in a core's share."""
    result = {}
    for dim in DIMS:
        sizes = np.arange(1, cores(layer, spatial)[0].extent(dim) + 1, dtype=np.int64)
        result[dim] = Sizes(sizes, pins.sizes(f"T_{dim.upper()}", sizes))
    return result


def _paper_members(
    layer: Layer,
    machine: Machine,
    pins: Pins,
    partition: str,
    spatial: tuple[Spatial, ...],
    sizes: dict[str, Sizes],
    *,
    full: bool,
) -> list[Member]:
    f = filter_dim(layer)
    members = []
    for dataflow in DATAFLOWS:
        contained = dataflow == "IS" and machine.reading == "consistent" and pins.allows("dataflow", "OS")
        if not pins.allows("dataflow", dataflow) or (contained and not full):
            continue
        label = {"partition": partition, "dataflow": dataflow}
        own = dict(sizes)
        if dataflow == "IS":
            share = cores(layer, spatial)[0].extent(f)
            own[f] = Sizes.of(sizes[f].inner[sizes[f].inner == share])
        members.append(Member(layer, machine, label, _skeleton(layer, spatial, dataflow), own, full=full))
    return members


def read(layer: Layer, nest: Nest, *, paper: bool) -> dict[str, int | str]:
    """Return the partition, the dataflow (or the order of loops and Holds) and the tile sizes of one core."""
    skeleton = skeleton_of(layer, nest)
    over_tle = {i.dim for i in skeleton.spatial if i.over == "tle"}
    partition = "OFM" if over_tle == {"r"} else "KS&OFM" if "r" in over_tle else "KS"
    tile = nest.tile(layer)
    sizes = {f"T_{d.upper()}": tile[d] for d in DIMS if layer.extent(d) > 1}
    if paper:
        return {"partition": partition, "dataflow": tso_dataflow(skeleton), **sizes, **stated_homes(nest)}
    words = [i.operand if isinstance(i, Hold) else i.dim for i in nest.items if not isinstance(i, Spatial)]
    return {"partition": partition, "loops": " ".join(words), **sizes, **stated_cuts(nest), **stated_homes(nest)}
