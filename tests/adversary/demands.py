"""Whether a nest meets pins, read from the nest alone (formulations have their own reading, which is under test).

T_d        the innermost loop over d, of those that cut something and stand outside a Hold whose operand depends
           on d (n: any, where scratch depends on the tile of channels); its step, or its largest piece; the
           largest share of d if there is none. A loop inside all Holds changes no tile, so it meets no demand.
sizes      divisors: all steps divide the extent
resident   no loop that cuts what the operand depends on stands outside its Hold
output     row_major: outside Hold(OUT) loops over b stand before those over r, and these before those over c
array      filled: T_m, T_n (depthwise: T_g) at least the lanes, or the layer's extent
buffers_X  of the Hold, or the machine's
holds      uniform: one loop a dimension, in even steps, the kernel whole, all Holds inside; on several cores one of
           the dataflows: loops over g b r c m n (b r c g m n where groups count as filters) with all Holds inside,
           or over g m, Hold(W), and b r c n inside it
order      the same, and the loops in this order
partition  the cuts over clusters; one name only, though several may mean the same cuts
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hwmodels.schedule import Step
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.adversary.boxes import levels
from tests.adversary.cases import meets, parts_of
from tests.adversary.moves import Form, partitions, shares

_ORDERS = {"IS": "gbrcnm", "paper": "gbrcnm", "OS": "gbrcmn", "WS": "gmnbrc"}


def readable(pins: Sequence[str]) -> bool:
    """Whether all these demands can be read from a nest."""
    known = {"sizes", "resident", "output", "array", "holds", "order", "partition"}
    return all(
        name in known or name.startswith(("T_", "buffers_")) for name, _, _ in (parts_of(pin) for pin in pins)
    )  # fmt: skip


def tile(layer: Layer, machine: Machine, form: Form) -> dict[str, int]:
    """Return the innermost tile size of every dimension."""
    size = shares(layer, form.spread)
    found, hows = dict(size), dict[str, tuple[Step, ...]]()
    for k, (d, how) in enumerate(form.items):
        if d in RELEVANT or how is None:
            continue
        hows[d] = (*hows.get(d, ()), how)
        inside = {name for name, _ in form.items[k:] if name in RELEVANT}
        scratch = d == "n" and bool(machine.im2col_rows) and machine.im2col_channels == "tile"
        if scratch or any(d in RELEVANT[x] for x in inside):
            found[d] = max(b - a for a, b in levels(0, size[d], hows[d])[0][-1])
    return found


def broken(layer: Layer, machine: Machine, pins: Sequence[str], form: Form) -> int:
    """Count the demands that a tidy form does not meet."""
    asked = {value for name, op, value in map(parts_of, pins) if name == "partition" and op == "="}
    return sum(not _meets(layer, machine, *parts_of(pin), form) for pin in pins) + (len(asked) > 1)


def _meets(layer: Layer, machine: Machine, name: str, op: str, value: str, form: Form) -> bool:
    if name.startswith("T_"):
        return meets(op, tile(layer, machine, form)[name[2:].lower()], value)
    is_so = _is(layer, machine, name, value, form)
    return is_so if op == "=" else not is_so


def _is(layer: Layer, machine: Machine, name: str, value: str, form: Form) -> bool:
    loops = [(d, how) for d, how in form.items if d not in RELEVANT and how is not None]
    if name == "sizes":
        return value == "free" or all(isinstance(how, int) and layer.extent(d) % how == 0 for d, how in loops)
    if name == "resident":
        return value not in layer.operands or not any(d in RELEVANT[value] for d in _outside(form, value))
    if name == "output":
        raster = ["brc".index(d) for d in _outside(form, "OUT") if d in "brc"]
        return value == "any" or all(a <= b for a, b in pairwise(raster))
    if name == "array":
        return value == "any" or _filled(layer, machine, form)
    if name.startswith("buffers_"):
        chosen = next((how for x, how in form.items if x == name[8:]), None)
        number = machine.buffers(chosen if isinstance(chosen, int) else None)
        return name[8:] not in layer.operands or number == int(value)
    if name == "partition":
        return partitions(layer, machine).get(value) == form.spread
    if name == "holds":
        several = machine.tles * machine.tlts > 1
        return value != "uniform" or (_dataflow(layer, form) if several else _uniform(form))
    uniform = _uniform(form)
    order = _ORDERS.get(value, value)
    order = "".join(d for d in "gbrcmn" if d not in order) + order
    places = [order.find(d) for d, _ in loops]
    return value == "any" or (uniform and -1 not in places and places == sorted(places))


def _outside(form: Form, operand: str) -> list[str]:
    at = [name for name, _ in form.items].index(operand)
    return [name for name, _ in form.items[:at] if name in DIMS]


def _filled(layer: Layer, machine: Machine, form: Form) -> bool:
    unit, size = machine.compute, tile(layer, machine, form)
    if unit.model != "array":
        return True
    lanes = {"g": unit.cols} if layer.m == layer.n == 1 else {"m": unit.rows, "n": unit.cols}
    return all(size[d] >= min(number, layer.extent(d)) for d, number in lanes.items())


def _uniform(form: Form) -> bool:
    loops = [name for name, _ in form.items if name in DIMS]
    return _plain(form) and all(name in DIMS for name, _ in form.items[: len(loops)])


def _plain(form: Form) -> bool:
    """Whether there is one loop a dimension, in even steps, and the kernel whole."""
    loops = [(d, how) for d, how in form.items if d in DIMS]
    return len(dict(loops)) == len(loops) and all(d not in "ij" and isinstance(how, int) for d, how in loops)


def _dataflow(layer: Layer, form: Form) -> bool:
    """Whether it is a nest of IS, OS or WS, all Holds but that of W inside."""
    outside = {x: "".join(_outside(form, x)) for x in layer.operands}
    order = "".join(name for name, _ in form.items if name in DIMS)
    grouped = layer.g > 1 and layer.g >= layer.m
    if not _plain(form) or outside["IN"] != order or outside["OUT"] != order:
        return False
    if _sorted(order, "brcgmn" if grouped else "gbrcmn") and outside.get("W", order) == order:
        return True
    kept = "".join(d for d in order if d in "gm")  # the loops outside Hold(W)
    return _sorted(order, "gmbrcn") and outside.get("W", kept) == kept


def _sorted(order: str, raster: str) -> bool:
    places = [raster.index(d) for d in order]
    return places == sorted(places)
