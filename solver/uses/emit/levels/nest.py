"""C of layers on memories in levels: a nest of loops, a static array for every memory, transfers by channel.

A plan's memories are arrays, and every tile has one place in its array all the time: the tiles of a memory lie one
behind the other, in the order of the Stays, and take the bytes that the plan counts. Transfers stand directly inside
the innermost loop that moves the tile of their Stay (docs/nest.md), the farther memories first; results go out at the
end of that loop, the nearest memories first.

Sliding
    Along the axis that IN slides along, its tile is a ring: element x lies at x modulo the tile's extent. What the tile
    before does not hold is fetched, in two pieces where the ring turns, which are one transfer.
Sums
    An element of a tile of OUT has the place of a sum where sums come there, else that of a result. A result is the low
    bytes of its sum, at the begin of its place; it moves as `out_bytes` bytes, sums as `psum_bytes`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from textwrap import wrap

import numpy as np

from formulations.levels.problem import LevelPart
from hwmodels.levels.price import Cost, Moved, price, windowed
from hwmodels.levels.schedule import Cut, LevelNest, Stay, real
from hwmodels.nest.price.pieces import cut
from instances.machine.levels import Levels
from instances.machine.machine import Machine
from instances.network.workload import DIMS, REDUCTION, RELEVANT, Layer
from solver.uses.emit.numbers import Numbers, integers
from solver.uses.emit.text import INDENT, WIDTH, block, call, comment, function, identifier, loop, total
from solver.uses.emit.values import rows_of, sizes_of, storage_order


@dataclass(frozen=True)
class LevelsPlanned:
    """A layer, the machine that it runs on, and its nest."""

    layer: Layer
    machine: Machine
    nest: LevelNest

    @property
    def levels(self) -> Levels:
        """The memories of the machine."""
        assert self.machine.levels is not None
        return self.machine.levels


def identifiers(levels: Levels) -> list[str]:
    """A C name for every memory."""
    names = [identifier(one.name) for one in levels.memories]
    return names if len(set(names)) == len(names) else [f"{name}_{k}" for k, name in enumerate(names)]


def arrays(levels: Levels, storage: str, used: Container[str]) -> list[str]:
    """Return the declarations of those memories on the chip that are used."""
    pairs = zip(identifiers(levels)[1:], levels.memories[1:], strict=True)
    return [f"{storage} unsigned char memory_{name}[{one.bytes}];".strip() for name, one in pairs if one.name in used]


def _behind(text: str, size: int) -> str:
    return f"{text} + {size}" if size else text


def _long(line: str) -> list[str]:
    """A statement, folded between terms."""
    whole = re.sub(r"\([^()]*\)", lambda found: found[0].replace(" ", "~"), line)
    folded = wrap(whole, WIDTH - 20, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
    return [one.replace("~", " ") for one in folded]


def _either(condition: str, one: str, other: str) -> list[str]:
    """One statement or another; if they are the same just that."""
    return [one] if one == other else [f"if ({condition}) {{", f"    {one}", "} else {", f"    {other}", "}"]


def _times(text: str, pitch: int) -> str:
    """A place of elements so far apart."""
    found = text if text.isidentifier() else f"({text})"
    return f"(ptrdiff_t){found} * {pitch}" if pitch > 1 else found


@dataclass(frozen=True)
class Tile:
    """Where the tile of a Stay lies, and where it comes from."""

    operand: str
    name: str
    """Of the C variable."""
    source: str
    """The C variable of the tile, or of the tensor, that it comes from."""
    channel: int
    memory: str
    """Of the C array."""
    offset: int
    place: int
    """The number of real loops outside its transfers."""
    extents: tuple[int, ...]
    """By axes in storage order."""
    element: int
    ring: int = -1
    """The axis that it slides along."""
    biases: tuple[int, int] | None = None
    """Groups and filters whose biases lie behind it."""


@dataclass
class LayerCode:
    """The C file of a layer."""

    planned_layer: LevelsPlanned
    storage: str

    def __post_init__(self) -> None:
        one = self.planned_layer
        self.layer, self.machine, self.nest = one.layer, one.machine, one.nest
        self.levels, self.names = one.levels, identifiers(one.levels)
        self.numbers: Numbers = integers(one.machine)
        self.cost: Cost = price(one.layer, one.machine, one.nest)
        cuts = real(self.layer, self.nest.items)
        self.loops = [k for k, cutting in enumerate(cuts) if cutting]
        self.dims = [self._cut(k).dim for k in self.loops]
        self.order = {operand: storage_order(operand, self.machine) for operand in ("IN", "W", "OUT")}
        self.bias_bytes = self.machine.bias_bytes if self.layer.bias else 0
        self.ranges = [self._ranges(place) for place in range(len(self.loops) + 1)]

    def _cut(self, k: int) -> Cut:
        item = self.nest.items[k]
        assert isinstance(item, Cut)
        return item

    @property
    def steps(self) -> list[int]:
        """Of every loop."""
        return [self._cut(k).step for k in self.loops]

    def planned(self) -> str:
        """What the plan moves by channel, as an initialiser."""
        rows = []
        for one in self.levels.memories[:-1]:
            moved = [m for m in self.cost.moved if m.source == one.name]
            rows.append(f"{{{sum(m.calls for m in moved)}, {sum(m.bytes for m in moved)}}}")
        return f"    {{{', '.join(rows)}}},"

    # ---- tiles -------------------------------------------------------------------------------------------------------

    def _ranges(self, place: int) -> dict[str, tuple[str, str]]:
        """Begin and end of every dimension inside so many loops, as C texts."""
        found = {d: ("0", str(self.layer.extent(d))) for d in DIMS}
        for number, d in enumerate(self.dims[:place]):
            name = self._variable(number)
            found[d] = name, f"{name}_end"
        return found

    def _variable(self, number: int) -> str:
        return f"{self.dims[number]}{self.dims[:number].count(self.dims[number])}"

    @cached_property
    def tiles(self) -> list[Tile]:
        """Those of all Stays, in their order."""
        number = {one.name: k for k, one in enumerate(self.levels.memories)}
        offsets = {one.name: one.reserved_bytes for one in self.levels.memories}
        found = list[Tile]()
        for (at, stay), moved in zip(self.nest.stays(), self.cost.moved, strict=True):
            found.append(self._tile(at, stay, moved, offsets[stay.memory], number))
            offsets[stay.memory] += moved.tile_bytes
        return found

    def _tile(self, at: int, stay: Stay, moved: Moved, offset: int, number: Mapping[str, int]) -> Tile:
        operand, order = stay.operand, self.order[stay.operand]
        steps = {d: np.array([row], np.int64).reshape(1, -1) for d, row in self.nest.steps(at).items()}
        sizes = {d: int(cut(self.layer.extent(d), steps[d]).largest[0]) for d in DIMS}
        outside = [k for k, d in zip(self.loops, self.dims, strict=True) if k < at and d in RELEVANT[operand]]
        place, ring = (self.loops.index(outside[-1]) + 1 if outside else 0), -1
        groups = sizes["g"], sizes["m"]
        if operand == "IN":
            sizes |= {d: int(windowed(self.layer, d, steps[d]).largest[0]) for d in "rc"}
            if self.machine.sliding and place and self.dims[place - 1] in "rc":
                ring = order.index(self.dims[place - 1])
        extents = tuple(sizes[d] for d in order)
        element = {"IN": self.machine.in_bytes, "W": self.machine.w_bytes}.get(operand, 0)
        name, source = (f"{operand.lower()}_{self.names[number[m]]}" for m in (stay.memory, moved.source))
        return Tile(
            operand, name, source, number[moved.source], f"memory_{self.names[number[stay.memory]]}", offset, place,
            extents, element or moved.tile_bytes // prod(extents), ring,
            groups if operand == "W" and self.bias_bytes else None,
        )  # fmt: skip

    def _nearest(self, operand: str) -> Tile:
        return [one for one in self.tiles if one.operand == operand][-1]

    @staticmethod
    def _initial(base: str, element: int, extents: Sequence[int]) -> str:
        return f"{{{base}, {element}, {{{', '.join(map(str, extents))}}}, {{0}}}}"

    def _tensors(self) -> list[str]:
        """The variables of tensors off the chip."""
        first, number, lines = self.names[0], self.layer.inputs, list[str]()
        for operand in self.layer.operands:
            sizes = sizes_of(operand, self.layer)
            extents = [sizes[d] for d in self.order[operand]]
            element = getattr(self.machine, f"{operand.lower()}_bytes")
            each, name = self._initial("0", element, extents), f"{operand.lower()}_{first}"
            if operand == "IN":
                lines.append(f"static certile_tile {name}[{number}] = {{{', '.join([each] * number)}}};")
                continue
            lines.append(f"static certile_tile {name} = {each};")
            if operand == "OUT" and self._spilled:
                sums = self._initial("0", self.machine.psum_bytes, extents)
                lines.append(f"static certile_tile sums_{first} = {sums};")
        if self.bias_bytes:
            extents = [1, 1, 1, self.layer.g, self.layer.m]
            lines.append(f"static certile_tile bias_{first} = {self._initial('0', self.bias_bytes, extents)};")
        elif self.layer.bias:
            lines.append("static const unsigned char *all_biases;")
        return lines

    @cached_property
    def _spilled(self) -> bool:
        """Whether partial sums go off the chip."""
        return any(one.channel == 0 and self._cutting(one.place) for one in self.tiles if one.operand == "OUT")

    def _tile_lines(self) -> list[str]:
        """The variables of tiles."""
        lines = list[str]()
        for one in self.tiles:
            begin, size = one.offset, one.element * prod(one.extents)
            if one.operand == "IN":
                bases = (f"{one.memory} + {begin + k * size}" for k in range(self.layer.inputs))
                each = ", ".join(self._initial(base, one.element, one.extents) for base in bases)
                lines.append(f"static certile_tile {one.name}[{self.layer.inputs}] = {{{each}}};")
                lines += [f"static int end_{one.name};"] if one.ring >= 0 else []
                continue
            said = self._initial(f"{one.memory} + {begin}", one.element, one.extents)
            lines.append(f"static certile_tile {one.name} = {said};")
            if one.biases:
                said = self._initial(f"{one.memory} + {begin + size}", self.bias_bytes, (1, 1, 1, *one.biases))
                lines.append(f"static certile_tile bias_{one.name[2:]} = {said};")
        return lines

    # ---- transfers ---------------------------------------------------------------------------------------------------

    def _box(self, tile: Tile) -> str:
        """The box of a tile, as an initialiser."""
        found = dict(self.ranges[tile.place])
        if tile.operand == "IN":
            found |= {d: self._window(d, found[d]) for d in "rc"}
        lows, highs = ([found[d][end] for d in self.order[tile.operand]] for end in (0, 1))
        return f"{{{{{', '.join(lows)}}}, {{{', '.join(highs)}}}}}"

    def _axis(self, d: str) -> tuple[int, int, int, int, str]:
        """Stride, dilation, padding and size of the map along rows or columns, and the tap's dimension."""
        layer = self.layer
        if d == "r":
            return layer.stride_h, layer.dilation_h, layer.pad_top, layer.h, "i"
        return layer.stride_w, layer.dilation_w, layer.pad_left, layer.l, "j"

    def _window(self, d: str, outputs: tuple[str, str]) -> tuple[str, str]:
        """The rows or columns that outputs read, clipped to the map."""
        stride, dilation, pad, size, tap = self._axis(d)
        reach = (self.layer.extent(tap) - 1) * dilation
        low = total((outputs[0], stride), ("1", -pad))
        high = total((outputs[1], stride), ("1", reach + 1 - stride - pad))
        low = str(max(int(low), 0)) if low.lstrip("-").isdigit() else f"certile_max({low}, 0)" if pad else low
        return low, str(min(int(high), size)) if high.lstrip("-").isdigit() else f"certile_min({high}, {size})"

    def _cutting(self, place: int) -> list[int]:
        """The loops outside a place that cut what is summed over."""
        return [k for k, d in enumerate(self.dims[:place]) if d in REDUCTION]

    def _ends(self, place: int, last: bool) -> str:
        """Whether it is the first (last) visit of sums there, as C text; nothing if it is the only one."""
        dims = dict.fromkeys(self.dims[k] for k in self._cutting(place))
        found = self.ranges[place]
        ends = (f"{found[d][1]} == {self.layer.extent(d)}" if last else f"{found[d][0]} == 0" for d in dims)
        return " && ".join(ends)

    def _fetch(self, tile: Tile) -> list[str]:
        """Bring a tile of IN or W, or begin one of OUT."""
        body = [f"const certile_box box = {self._box(tile)};"]
        if tile.operand == "OUT":
            body += [f"certile_begin(&{tile.name}, &box, -1);"]
            if first := self._ends(tile.place, last=False):
                source = f"sums_{self.names[0]}" if tile.channel == 0 else tile.source
                moved = f"certile_pass({tile.channel}, &{tile.name}, &{source}, &box, {self.machine.psum_bytes});"
                body += block(f"if (!({first}))", [moved])
            said = f"; sums come back from {tile.source}" if first else ""
            return block("", [f"/* {tile.name} begins{said} */", *body])
        said, to, source, part = f"{tile.name} from {tile.source}", f"&{tile.name}", f"&{tile.source}", "box"
        if tile.operand == "IN":
            to, source = f"{to}[k]", f"{source}[k]"
        if tile.ring >= 0:
            d, part = self.dims[tile.place - 1], "part"
            begin, before = self.ranges[tile.place][d][0], self.ranges[tile.place - 1][d][0]
            lo = f"part.lo[{tile.ring}]"
            body += ["certile_box part = box;",
                     *block(f"if ({begin} > {before})", [f"{lo} = certile_max({lo}, end_{tile.name});"]),
                     f"end_{tile.name} = box.hi[{tile.ring}];"]  # fmt: skip
            said += ", what the tile before does not hold"
        moving = [f"certile_begin({to}, &box, {tile.ring});"]
        given = f"{to}, {source}, &{part}, {tile.element}"
        if tile.biases:
            found = self.ranges[tile.place]
            lows, highs = (", ".join(found[d][end] for d in "gm") for end in (0, 1))
            near, far = (f"&bias_{name[2:]}" for name in (tile.name, tile.source))
            moving += [
                f"const certile_box filters = {{{{0, 0, 0, {lows}}}, {{1, 1, 1, {highs}}}}};",
                f"certile_begin({near}, &filters, -1);",
                f"certile_part({tile.channel}, {near}, {far}, &filters, {self.bias_bytes});",
            ]
        moving += [f"certile_pass({tile.channel}, {given});"]
        body += loop("k", "0", str(self.layer.inputs), moving) if tile.operand == "IN" else moving
        return block("", [f"/* {said} */", *body])

    def _store(self, tile: Tile) -> list[str]:
        """Write a tile of OUT: results if its sums are complete, else sums."""

        def moved(to: str, size: int) -> str:
            return f"certile_pass({tile.channel}, &{to}, &{tile.name}, &box, {size});"

        result, body = moved(tile.source, self.machine.out_bytes), [f"const certile_box box = {self._box(tile)};"]
        if last := self._ends(tile.place, last=True):
            sums = f"sums_{self.names[0]}" if tile.channel == 0 else tile.source
            body += _either(last, result, moved(sums, self.machine.psum_bytes))
        else:
            body.append(result)
        return block("", [f"/* {tile.name} to {tile.source} */", *body])

    # ---- loops -------------------------------------------------------------------------------------------------------

    def _body(self, place: int) -> list[str]:
        here = [one for one in self.tiles if one.place == place]
        lines = [line for one in here for line in self._fetch(one)]
        if place == len(self.loops):
            lines += call("compute", [end for d in self._moving for end in self.ranges[place][d]])
        else:
            name, (lo, hi) = self._variable(place), self.ranges[place][self.dims[place]]
            step = self._cut(self.loops[place]).step
            end = f"const int {name}_end = certile_min({name} + {step}, {hi});"
            head = f"for (int {name} = {lo}; {name} < {hi}; {name} += {step})"
            lines += block(head, [end, *self._body(place + 1)])
        return lines + [line for one in reversed(here) if one.operand == "OUT" for line in self._store(one)]

    @property
    def _moving(self) -> list[str]:
        """The dimensions that loops cut."""
        return [d for d in DIMS if d in self.dims]

    def file(self, name: str) -> list[str]:
        """All of it."""
        part = LevelPart(self.layer, self.machine)
        bases = [f"in_{self.names[0]}[{k}].base = maps[{k}];" for k in range(self.layer.inputs)]
        bases += [f"w_{self.names[0]}.base = w;"] if "W" in self.layer.operands else ["(void)w;"]
        bases += [f"bias_{self.names[0]}.base = bias;"] if self.bias_bytes else []
        bases += ["all_biases = bias;" if self.layer.bias else "(void)bias;"] if not self.bias_bytes else []
        bases += [f"out_{self.names[0]}.base = out;"]
        bases += [f"sums_{self.names[0]}.base = psum;"] if self._spilled else ["(void)psum;"]
        given = ["unsigned char *const maps[]", *(f"unsigned char *{x}" for x in ("w", "bias", "out", "psum"))]
        return [
            *comment(f"Layer {self.layer.name} on {self.machine.name}.\n\n{part.show(self.nest)}"),
            '#include "certile_levels.h"', "", f"certile_function {name};", "",
            "/* The memories on the chip, and which bytes of them tiles take. */",
            *arrays(self.levels, self.storage, [stay.memory for _, stay in self.nest.stays()]), "",
            *self._tile_lines(), "",
            "/* The tensors off the chip. */", *self._tensors(), "", *self._compute(), "",
            *function(f"void {name}", given, [*bases, *self._body(0)], "All loops, with transfers by channel."),
        ]  # fmt: skip

    # ---- products ----------------------------------------------------------------------------------------------------

    def _place(self, tile: Tile, names: Mapping[str, str], which: str = "") -> tuple[str, dict[str, int]]:
        """Where an element lies, as C text, and the pitches in bytes."""
        order, base = self.order[tile.operand], tile.offset
        pitch = {d: step * tile.element for d, step in zip(order, rows_of(tile.extents), strict=True)}
        terms = [_behind(tile.memory, base)]
        if which and self.layer.inputs > 1:
            terms.append(f"k * {tile.element * prod(tile.extents)}")
        for axis, d in enumerate(order):
            if tile.extents[axis] == 1 or names[d] == "0" == self.ranges[tile.place][d][0]:
                continue
            if axis == tile.ring:
                found = f"{names[d]} % {tile.extents[axis]}"
            elif d in self.dims[: tile.place]:
                found = f"{names[d]} - {tile.name}{which}.first[{axis}]"
            else:
                found = names[d]
            terms.append(_times(found, pitch[d]))
        return " + ".join(terms), pitch

    def _compute(self) -> list[str]:
        """The function that computes on the tiles in the nearest memories."""
        numbers, place = self.numbers, len(self.loops)
        box = {d: (f"{d}_lo", f"{d}_hi") if d in self.dims else pair for d, pair in self.ranges[place].items()}
        cutting = list(dict.fromkeys(d for d in self.dims if d in REDUCTION))
        target = self._nearest("OUT")
        to, _ = self._place(target, {d: d for d in "bgmrc"})
        start = self._bias()
        body, write = _long(f"unsigned char *to = {to};"), numbers.write(numbers.result, "to", "sum")
        if cutting:
            start = f"first ? {start} : {numbers.read(numbers.sums, 'to')}"
        written = _either("last", write, numbers.write(numbers.sums, "to", "sum")) if cutting else [write]
        body += [f"{numbers.total} sum = {start};", *self._taps(box), *written]
        for d in reversed("bgrcm"):
            body = loop(d, *box[d], body)
        ends = [f"const int first = {' && '.join(f'{d}_lo == 0' for d in cutting)};"] if cutting else []
        if len(written) > 1:
            ends.append(f"const int last = {' && '.join(f'{d}_hi == {self.layer.extent(d)}' for d in cutting)};")
        given = [f"int {end}" for d in self._moving for end in box[d]]
        said = "Compute on the tiles in the nearest memories."
        return function("static void compute", given, [*ends, *body], said)

    def _bias(self) -> str:
        """What sums begin with."""
        numbers = self.numbers
        if not self.layer.bias:
            return "0"
        if not self.bias_bytes:
            return numbers.read(numbers.bias, f"all_biases + ((ptrdiff_t)g * {self.layer.m} + m) * 4")
        tile = self._nearest("W")
        assert tile.biases is not None
        firsts = f"bias_{tile.name[2:]}.first"
        at = f"((ptrdiff_t)(g - {firsts}[3]) * {tile.biases[1]} + m - {firsts}[4])"
        base = f"{tile.memory} + {tile.offset + tile.element * prod(tile.extents)}"
        return numbers.read(numbers.bias, f"{base} + {at} * {self.bias_bytes}")

    def _taps(self, box: Mapping[str, tuple[str, str]]) -> list[str]:
        """Add all products of a result, tap by tap, those on the map."""
        numbers, maps, begin = self.numbers, self._nearest("IN"), box["n"][0]
        tile = {"b": "b", "g": "g", "n": begin, "r": "y", "c": "x"}
        found, pitch = self._place(maps, tile, "[k]")
        step = "" if box["n"] == ("0", "1") else total(("n", 1), (begin, -1))
        value = numbers.read(numbers.inputs, f"from + {_times(step, pitch['n'])}" if step else "from")
        body = _long(f"const unsigned char *from = {found};")
        if "W" in self.layer.operands:
            found, pitch = self._place(self._nearest("W"), {d: d for d in "gmij"} | {"n": begin})
            body += _long(f"const unsigned char *by = {found};")
            place = f"by + {_times(step, pitch['n'])}" if step else "by"
            value += f" * {numbers.read(numbers.weights, place)}"
        body += loop("n", *box["n"], _long(f"sum += {value};"))
        body = loop("k", "0", str(self.layer.inputs), body)
        for name, d in (("x", "c"), ("y", "r")):
            stride, dilation, pad, size, tap = self._axis(d)
            at = total((d, stride), (tap, dilation), ("1", -pad))
            outside = block(f"if ({name} < 0 || {name} >= {size})", ["continue;"])
            inside = [f"const int {name} = {at};", *outside, *body]
            body = block(f"for (int {tap} = {box[tap][0]}; {tap} < {box[tap][1]}; {tap}++)", inside)
        return body
