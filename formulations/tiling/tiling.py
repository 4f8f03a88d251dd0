"""Tiling: the nest of one layer on one core.

Sets
    op in {IN, W, OUT} operands; d in D = {b, g, m, n, r, c, i, j} dimensions, D[op] those that op depends on
Given
    E[d] extent; mem[k] bytes of memory k; prices of `instances.machine.machine`        (integers; bytes, ticks)
Variables
    X, Y, Z: the operands in the order of their Holds, outermost first
    how the (at most two) loops over d cut it: in equal steps, or in pieces of free sizes (r and c where that saves
    memory or bytes, any dimension where it saves time); slide: the loop that IN slides along
Objective
    min lexicographically any order of time [ticks], bytes, energy [fJ]; ties by the remaining ones in this order
Constraints
    (CHOOSE)    one order of Holds, one chain per dimension, one slide
    (CAPACITY)  sum over op in memory k of footprint[op] (times its buffers) + scratch + reserved <= mem[k]
    (COST)      objective >= price of the nest, a sum of products of a spatial and a channel factor
                (`hwmodels.nest.price.core`)
Nest
    loops over D[X] | Hold(X) | loops over D[Y] | Hold(Y) | loops over D[Z] | Hold(Z)
    The loop that IN slides along is the last one before Hold(IN); the other loops of a segment stand in any order.
Why these nests stand for all, in bytes
    Each step takes any nest of docs/nest.md to one that moves no more bytes in no more memory; tests try every step on
    random nests of tiny layers (tests/formulations/test_chains.py).
    (0) A loop that cuts nothing is left out.
    (1) A Hold moves outwards (over other Holds and) over the last loop outside it, if its operand does not depend on
        that: its tile is the same, it is moved no more often.
    (2) Where (1) moves nothing, a loop among those between two Holds that the inner operand does not depend on moves
        inwards over that Hold: the operand is moved less often; of every other Hold the last loop outside is one that
        its operand depends on, so that all loops outside it count, before and after. Of Holds with no loop between them
        that of IN is taken as the first: no loop gets between it and the one that it slides along.
    (3) Where (1) and (2) move nothing, two loops over a dimension with no Hold between them become one, where the inner
        one is, that cuts at the places of both: the pieces are the same, and where IN slides it slides on where it was
        fetched anew. One loop in equal steps would not do: where padding or rows on chip clip tiles, pieces of several
        sizes can be fewer.
    (4) Loops inside all Holds are left out: no transfer changes, and OUT counts no more (`max(psum_bytes, out_bytes)`
        while a reduction is cut). (A smaller tile of n takes less im2col scratch: there that loop stays. Of tiles that
        take whole cycles, Eq. 7, smaller ones may take fewer: such loops are added where bounds ask for them.)
    What is left has every Hold directly inside a loop that its operand depends on, and between two Holds only loops
    that the inner operand depends on; if such a segment mixes loops that the outer operand depends on with others, the
    others move inwards and the two Holds change places. A dimension that an operand does not depend on has two such
    segments; for groups, which all operands depend on, at most two of the three are used.
    Then every loop outside a Hold counts (`Skeleton.full`): moves = product of the trips of all loops outside that the
    operand does not depend on, times the boxes. For other members of the family this is above the price, never below,
    so its minimum is the optimum. Consequences: X is moved once; W wholly resident is X = W with an empty segment, row
    streaming X = OUT with r alone.
    Sliding moves a part of the whole tile, so in bytes it never costs more. (A slid tile of few columns may have more
    runs than a whole row; where runs are priced the nests are those that slide along the last loop of a window.)
    Which ways to cut stand for all: b, g, m, n in `formulations.tiling.chains` (`cheapest`), r and c in
    `formulations.tiling.cuts`.
Several cores (slicing)
    (1)-(4) hold for each core whose loops cut something where those of the first core do. On a core with less of some
    dimension the innermost real loop may be another one, so there bounds count the tiles of an operand that depends on
    it once each, and candidates prove nothing.
Inputs that are broadcast
    Input k of an element-wise layer depends on D_k, and is fetched by the loops outside Hold(IN) down to the innermost
    real one over a dimension of D_k. All dimensions that are cut are of OUT and of some input, so (1) and (2) move
    nothing; (3) and the order of loops in a segment are argued in `formulations.tiling.turns`, which lists the orders
    that the space has. Bytes: a full input and OUT move once, input k the product of the trips of the loops outside
    that innermost one over dimensions that it lacks, times its elements. Trips and tiles are what counts, so (t, t) and
    (t, smallest) stand for all steps where Hold(IN) is the first, which is where bytes are least: with Hold(OUT) first
    its tile is larger and no input moves less. Bounds merge the loops over a dimension outside Hold(IN): no input is
    fetched more often then (`Skeleton.visits`). They are held together: an input with a Hold of its own further
    outside, as columns beside a map that is cut along rows, is no nest of docs/nest.md.
What is not proven by candidates alone
    Time (MAC arrays, calls, runs and bursts round, so that uneven pieces of any dimension may save some; overlap),
    loops over the kernel outside the Hold of IN, uniform edge tiles, and the rare cases that `formulations.tiling.cuts`
    names. There a second search, over tables that are lower bounds for every way to cut every dimension
    (`formulations.tiling.classes`, `hwmodels.nest.price.relaxed`), says below which value no nest is: (1)-(4) lower no
    count of a transfer and no tile, and finer loops no compute time of a MAC array, so the bound holds for all nests of
    docs/nest.md. Classes that are left below the plan are told apart: channels by vectors (`formulations.tiling.
    vectors`), rows and columns where bursts count by all ways to cut them (`formulations.tiling.ways`). A bound that is
    still below the plan is a question: a nest that attains it, if one is found, is the plan.
Lines and snake order
    A nest in lines has the loops over r and c of some segment before Hold(IN) last in it, in either order, the kernel
    whole, and perhaps a second loop over the inner one of them in the same segment (strips). In snake order a nest of
    the family is priced as it runs, in the order of loops between Holds that `formulations.tiling.turns` finds.
    (1)-(4) may then cost bytes: they move loops of different dimensions past each other. So nothing is proven by
    candidates alone; bounds count what (1)-(4) never raise.
    Lines: the bounds of all other nests are those of machines without lines. A nest in lines cuts rows and columns
    outside Hold(IN). It fetches new rows times new columns along the last loop over either that cuts, again for each
    piece of the loops that IN does not depend on, and holds a window at least: the same tables, IN sliding along both.
    Snake order: every tile comes once at least, and of a window that slides what the one before it lacks
    (`hwmodels.nest.price.relaxed`, Turns); what the memory cannot hold comes again, of which each turn spares a tile at
    most (`hwmodels.nest.price.turning`, for all nests of docs/nest.md, whatever the order of their loops).
Optimal means
    No nest of docs/nest.md is better, whatever its loops and Holds, in any objective asked for. If that is not shown
    the status is FEASIBLE, with a bound that no nest is below. Where transfers overlap with compute the nests above
    are meant, in any order of the loops of a segment: what (1)-(4) do to their timelines is not proven.
    Of pinned decisions: no nest that meets the pins (`T_d` is the largest innermost piece; `T_d%k`, `sizes=divisors`
    and `pieces=even` mean equal steps, at most two loops a dimension).

A pinned order, holds=uniform and the literal reading mean the textbook's nest: one loop a dimension, the kernel whole,
all operands held inside. Orders: three stand for all 720. All operands depend on g, so g outermost never adds a
re-fetch. IN and OUT depend on b, r, c alike and W on none of them, so they may stand together: placed innermost they
spare W, else nothing. Of m and n, the inner one spares IN (m) or keeps OUT on chip (n). Hence g b r c n m ("IS", the
paper's Listing 1.1), g b r c m n ("OS"), g m n b r c ("WS").

Source: `optimal_tiling_dma` section 4 (Eq. 1-6, Listing 1.1); `reading = "literal"` prices by its printed equations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from formulations.pins import Decision, Pins
from formulations.tiling.chains import Sizes, divisors
from formulations.tiling.family import HOMES, LINES, PIECES, Restrictions, free_members, stated_cuts, stated_homes
from formulations.tiling.member import Member
from formulations.tiling.space import Space
from formulations.tiling.turns import orders_of
from hwmodels.nest.price.skeleton import Skeleton, cores, skeleton_of
from hwmodels.schedule import Hold, Nest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer, refuse_long

#: The three orders of the textbook's nest that stand for all, outermost loop first.
ORDERS: dict[str, tuple[str, ...]] = {
    "IS": ("g", "b", "r", "c", "n", "m"),
    "OS": ("g", "b", "r", "c", "m", "n"),
    "WS": ("g", "m", "n", "b", "r", "c"),
}

_OPERANDS = ("IN", "W", "OUT")
DECISIONS: dict[str, Decision] = {
    **{f"T_{d.upper()}": Decision(f"innermost tile size of dimension {d}") for d in DIMS},
    "sizes": Decision("free (any integer) or divisors (of the extent, as in the DMA paper)", ("free", "divisors")),
    "holds": Decision(
        "free (every operand at its own depth) or uniform (all inside the loops, as in textbooks)", ("free", "uniform")
    ),
    "order": Decision(
        "uniform holds with the loops in this order: any, paper (r c n m, Listing 1.1), IS, OS, WS, or loop letters "
        "outermost first such as mnrc",
        ("any", "paper", *ORDERS),
        open=True,
    ),
    "pieces": PIECES,
    "lines": LINES,
    "resident": Decision("an operand that stays on chip whole: IN, W or OUT", _OPERANDS),
    "output": Decision("any, or row_major: rows of the result are cut outside its columns", ("any", "row_major")),
    "array": Decision("any, or filled: tiles that fill the MAC array's lanes", ("any", "filled")),
    **{f"buffers_{op}": Decision(f"buffers of {op}: 1 or 2", ("1", "2")) for op in _OPERANDS},
    **HOMES,
}


def build(layer: Layer, machine: Machine, pins: Pins, *, full: bool = False) -> Space:
    """Build the space of tiling plans.

    Raises InputError if the machine has several cores, a dimension is too long, or a pinned order is no order of the
    loops.
    """
    refuse_long(layer)
    if machine.tles * machine.tlts > 1:
        raise InputError(
            f"problem tiling plans one core, machine {machine.name} has {machine.tles * machine.tlts}: use slicing"
        )
    if not pins.allows("lines", "any"):
        machine = machine.model_copy(update={"line": False})
    orders = _orders(layer, machine, pins)
    sizes = {d: _sizes(layer, machine, pins, d) for d in DIMS}
    limits = Restrictions.of(layer, machine, pins)
    if orders is None:
        members = free_members(layer, machine, (), sizes, limits, full=full)
    else:
        members = _uniform_members(layer, machine, orders, sizes, limits, full=full)
    return Space(
        "tiling", layer, machine, pins, members,
        lambda m, p: build(layer, m, p, full=full), lambda nest: read(layer, machine, nest),
    )  # fmt: skip


def _sizes(layer: Layer, machine: Machine, pins: Pins, dim: str) -> Sizes:
    """The steps that the pins allow; those of T_d are about the innermost tile."""
    extent = layer.extent(dim)
    free = pins.allows("sizes", "free")
    if not free and not pins.allows("sizes", "divisors"):
        return Sizes.of(np.zeros(0, np.int64))
    sizes = np.arange(1, extent + 1, dtype=np.int64) if free else divisors(extent)
    inner = pins.sizes(f"T_{dim.upper()}", sizes)
    if not pins.allows("array", "any"):
        inner = inner[inner >= _filled(layer, machine, dim)]
    return Sizes(sizes, inner)


def _filled(layer: Layer, machine: Machine, dim: str) -> int:
    """The smallest tile that fills the lanes along `dim`, at most the layer."""
    unit = machine.compute
    depthwise = layer.m == layer.n == 1
    lanes = {"g": unit.cols} if depthwise else {"m": unit.rows, "n": unit.cols}
    return min(lanes.get(dim, 1), layer.extent(dim)) if unit.model == "array" else 1


# ---- the textbook's nest -------------------------------------------------------------------------------------


def _uniform_members(
    layer: Layer,
    machine: Machine,
    orders: Mapping[str, tuple[str, ...]],
    sizes: Mapping[str, Sizes],
    limits: Restrictions,
    *,
    full: bool,
) -> tuple[Member, ...]:
    members = []
    uncut = limits.whole(cores(layer, ())[0], sizes)
    for name, order in orders.items():
        loops = tuple(d for d in order if layer.extent(d) > 1)
        for buffers in limits.buffers:
            skeleton = Skeleton((), loops, dict.fromkeys(layer.operands, len(loops)), buffers)
            if limits.allows_order(loops):
                label = {"order": name, **{f"buffers_{op}": str(n) for op, n in buffers.items()}}
                members.append(Member(layer, machine, label, skeleton, uncut, full=full))
    return tuple(members)


def _orders(layer: Layer, machine: Machine, pins: Pins) -> Mapping[str, tuple[str, ...]] | None:
    """The uniform orders to look at, without those that coincide for this layer; None if the Holds are free."""
    asked = {p.value for p in pins.of("order") if p.op == "=" and p.value != "any"}
    banned = [p for p in pins.of("order") if p.op == "!="]
    if any(p.value == "any" for p in banned):
        raise InputError("pin order!=any: every order is any; name the order that is banned")
    literal = machine.reading == "literal"
    uniform = literal or asked or banned or not pins.allows("holds", "free")
    if not uniform:
        return None
    if not pins.allows("holds", "uniform"):
        return {}
    orders = {name: _order(name) for name in asked} if len(asked) < 2 else {}
    if not asked:
        orders = dict(ORDERS)
        if layer.broadcast and not literal:
            cut = tuple(d for d in DIMS if layer.extent(d) > 1)
            orders = {"".join(order) or "g": order or ("g",) for order in orders_of(layer, cut)}
    if literal:
        orders = {name: order for name, order in orders.items() if order == ORDERS["IS"]}
    out = {_canonical(layer, _order(p.value)) for p in banned}
    distinct: dict[tuple[str, ...], str] = {}
    for name, order in orders.items():
        if _canonical(layer, order) not in out:
            distinct.setdefault(_canonical(layer, order), name)
    return {name: orders[name] for name in distinct.values()}


def _canonical(layer: Layer, order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(d for d in order if layer.extent(d) > 1)


def _order(name: str) -> tuple[str, ...]:
    if name == "paper":
        return ORDERS["IS"]
    if name in ORDERS:
        return ORDERS[name]
    letters = name.replace(",", "")
    if len(set(letters)) != len(letters) or not letters or set(letters) - set(DIMS):
        raise InputError(
            f"pin order={name}: expected any, paper, IS, OS, WS or distinct letters of {''.join(DIMS)}, outermost first"
        )
    missing = [d for d in ("g", "b", "r", "c", "m", "n") if d not in letters]
    return (*missing, *letters)


def read(layer: Layer, machine: Machine, nest: Nest) -> dict[str, int | str]:
    """Return the order of loops and Holds, the (largest) innermost tiles, and where loops cut at free places."""
    skeleton = skeleton_of(layer, nest)
    words = [item.operand if isinstance(item, Hold) else item.dim for item in nest.items]
    tile = nest.tile(layer)
    decision: dict[str, int | str] = {"loops": " ".join(words)}
    if nest.line:
        decision["held"] = "IN in lines"
    if machine.buffering == "choose":
        decision |= {f"buffers_{op}": machine.buffers(skeleton.buffers.get(op)) for op in layer.operands}
    decision |= {f"T_{d.upper()}": tile[d] for d in DIMS if layer.extent(d) > 1}
    return decision | stated_cuts(nest) | stated_homes(nest)
