"""The text of a program whose transfers run ahead.

ahead.h, ahead.c   maps on chip (certile_rows), transfers, what steps compute, and the commands of the processor
run_A_to_B.c       for a group (or a layer) what its layers compute
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from formulations.fusion.work import Work
from hwmodels.timeline.schedule import Load
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.uses.emit.ahead.whole import Filters, Move, Tensor, Whole
from solver.uses.emit.computing import Computing
from solver.uses.emit.groups import Part as Channels
from solver.uses.emit.numbers import Numbers
from solver.uses.emit.text import block, comment, function, identifier, indented
from solver.uses.emit.values import pitches

#: Numbers of a table on one line.
_LINE = 20
#: As in certile_ahead.h.
_COMMANDS = "push", "wait", "run"


class Block(NamedTuple):
    """A block of a tensor's channels, as C has it."""

    tensor: Tensor
    block: int

    @property
    def channels(self) -> tuple[int, int]:
        """The first one, and before which they end."""
        k = self.block % (len(self.tensor.cuts) - 1)
        return self.tensor.cuts[k], self.tensor.cuts[k + 1]


@dataclass(frozen=True)
class OfRun:
    """Layers of a run, as far as what they compute depends on them."""

    layers: Sequence[Layer]
    numbers: Sequence[Numbers]


class RunFile(Computing):
    """Writes what the layers of a run compute."""

    def __init__(self, files: AheadFiles, first: int, last: int, includes: Sequence[str]) -> None:
        self.files, self.first, self.includes, self.machine = files, first, includes, files.machine
        found = files.whole.layers[first : last + 1]
        numbers = [files.whole.chip.numbers(t) for t in range(first, last + 1)]
        self.group = OfRun(found, numbers)

    def text(self) -> str:
        """The file."""
        names = [layer.name for layer in self.group.layers]
        said = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        head = ['"ahead.h"', '"certile_tile.h"', '"network.h"', *self.includes]
        parts = [[f"#include {file}" for file in dict.fromkeys(head)], comment(f"{said}: what steps compute")]
        parts += [self._map(one) for one in self._used]
        for k in range(len(self.group.layers)):
            parts += [*self._functions_of(k), self._make(k)]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    @cached_property
    def _used(self) -> list[Tensor]:
        """The tensors that its layers read and make."""
        whole, layers = self.files.whole, range(self.first, self.first + len(self.group.layers))
        read = [one for (t, _), some in whole.given.items() if t in layers for _, one in some]
        sums = [one for t, one in whole.sums.items() if t in layers]
        return list(dict.fromkeys([*read, *sums, *(whole.made[t] for t in layers)]))

    def _number(self, one: Tensor) -> int:
        return self.files.numbers[one]

    def _map(self, one: Tensor) -> list[str]:
        """The function that says where an element of a map lies."""
        blocks, number, width = list(pairwise(one.cuts)), self._number(one), one.right - one.left
        body, at = ["(void)b, (void)ch, (void)x;"], str(self.files.first_block(one))
        if one.turns > 1:
            at += f" + turn * {len(blocks)}"
        inner, count = "ch", str(one.channels)
        if len(blocks) > 1:
            body += [f"static const unsigned short first[] = {{{', '.join(str(a) for a, _ in blocks)}}};", "int k = 0;"]
            body += block(f"while (k < {len(blocks) - 1} && ch >= first[k + 1])", ["k++;"])
            at, inner = f"{at} + k", "(ch - first[k])"
            count = f"certile_blocks[{at}].units"
        x = f"(x - {one.left})" if one.left else "x"
        if one.layout == "HWC":
            unit, rest = f"b * {width} + {x}" if one.images > 1 else x, f"{inner} * {one.element}"
        else:
            unit, rest = f"b * ({count}) + {inner}" if one.images > 1 else inner, f"{x} * {one.element}"
        body.append(f"return certile_unit(&certile_blocks[{at}], y, {unit}) + {rest};")
        given = ["int turn"] * (one.turns > 1) + ["int b", "int ch", "int y", "int x"]
        return function(f"static inline unsigned char *map_{number}", given, body, f"Of {one.layer.name}.")

    def _make(self, k: int) -> list[str]:
        """Compute rows of some filters."""
        layer, numbers, t = self.group.layers[k], self.group.numbers[k], self.first + k
        made, at = self.files.whole.made[t], f"(b, g * {layer.m} + m, r, c)"
        pixel = [f"{numbers.total} sum = {self._first(k)};", *numbers.places("sum")]
        if sums := self._sums(k):
            value = numbers.read(numbers.sums, f"map_{self._number(sums)}{at}")
            pixel[0] = f"{numbers.total} sum = work->opens ? {self._first(k)} : {value};"
        for number in range(layer.inputs):
            for part, one in self.files.whole.given[t, number]:
                here = replace(part, stream=self._number(one))
                pixel += self._products(k, number, here)
        result = numbers.write(numbers.result, f"map_{self._number(made)}{at}", self._final(k))
        if sums:
            kept = numbers.write(numbers.sums, f"map_{self._number(sums)}{at}", "sum")
            pixel += [*block("if (work->closes)", [result])[:-1], "} else {", *indented([kept]), "}"]
        else:
            pixel.append(result)
        body = block(f"for (int c = {made.left}; c < {made.right}; c++)", pixel)
        body = block("for (int r = work->begin; r < work->end; r++)", body)
        body = block(f"for (int b = 0; b < {layer.b}; b++)", body)
        head = [f"const int g = f / {layer.m}, m = f % {layer.m};", "(void)g, (void)m;"]
        if layer.weights != "none":
            head.append("const unsigned char *w = certile_ocm + work->w[f - work->first];")
        body = block("for (int f = work->first; f < work->last; f++)", [*head, *body])
        bias = self.files.places[f"bias {t}"]
        if layer.bias and not self.machine.bias_bytes:
            body = [f"const certile_tensor bias_{k} = {{{bias}, 1, {{0}}}};", *body]
        return function(f"void {self.files.name(t)}", ["const certile_work *work"], body, layer.name)

    # ---- layers that add up step by step -----------------------------------------------------------------------------

    def _sums(self, k: int) -> Tensor | None:
        """Where a layer adds up, if it does not so at once."""
        return self.files.whole.sums.get(self.first + k)

    def _element(self, part: Channels, at: str) -> str:
        turns = self.files.whole.tensors[part.stream].turns
        return super()._element(part, f"work->turn, {at}" if turns > 1 else at)

    def _channels(self, k: int) -> tuple[str, str]:
        return ("work->low", "work->high") if self._sums(k) else super()._channels(k)

    def _window(self, k: int) -> tuple[str, str]:
        return ("work->top", "work->bottom") if self._sums(k) else super()._window(k)

    def _tap(self, k: int) -> str:
        layer, size = self.group.layers[k], self.machine.w_bytes
        if self._sums(k) is None:
            return super()._tap(k)
        if self.machine.w_layout == "OIHW":
            return f"((n - work->base) * {layer.kh * layer.kw} + i * {layer.kw} + j) * {size}"
        return f"((i * {layer.kw} + j) * work->wide + n - work->base) * {size}"

    def _bias(self, k: int) -> str:
        if self._sums(k) is None:
            return super()._bias(k)
        return f"w + work->wide * {self._taps(k) // self.group.layers[k].n}"


def run_file(begin: int, end: int) -> str:
    """Return the file of a run of layers, `end` excluded."""
    return f"run_{begin:03}_to_{end - 1:03}.c"


class AheadFiles:
    """Writes the files of a plan; `places`: where tensors of layers lie off the chip, as C."""

    def __init__(self, whole: Whole, machine: Machine, places: Mapping[str, str]) -> None:
        self.whole, self.machine, self.places = whole, machine, places
        self.numbers = {one: k for k, one in enumerate(whole.tensors)}
        self._tables: dict[tuple[int, ...], int] = {}

    def name(self, t: int) -> str:
        """The function of a layer."""
        return f"step_{t:03}_{identifier(self.whole.found.layers[t].name)}"

    # ---- maps --------------------------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks of all tensors in the order of their numbers."""
        return [Block(one, k) for one in self.numbers for k in range(len(one.unit))]

    @cached_property
    def _firsts(self) -> dict[Tensor, int]:
        return {one.tensor: k for k, one in reversed(list(enumerate(self.blocks)))}

    def first_block(self, one: Tensor) -> int:
        """The number of its first block."""
        return self._firsts[one]

    def _rows(self, k: int, one: Block) -> tuple[list[str], str]:
        """The table of a block's rows, and its initialiser."""
        tensor, units = one.tensor, self._units(one)
        owner, unit = tensor.owner, int(tensor.unit[one.block])
        apart = int(owner.unit[one.block])
        at, extents = list[int](), list[str]()
        for y in range(tensor.rows):
            parts = owner.parts[y][one.block]
            if len(parts) == 1:
                at.append(parts[0][0])
                continue
            at.append(-1 - len(extents) if parts else 0)
            u = 0
            for address, number in parts:
                extents.append(f"{{{u + number}, {address - u * apart}}}")
                u += number
        lines = _table(f"static const int at_{k}[]", [str(x) for x in at])
        lines += _table(f"static const certile_extent extents_{k}[]", extents) if extents else []
        planes = int(tensor.layout == "CHW")
        step, row, image, first = self._pitches(one)
        numbers = f"{unit}, {apart}, {units}, {tensor.images}, {planes}, {step}, {row}, {image}, {first}"
        return lines, f"    {{at_{k}, {f'extents_{k}' if extents else 'NULL'}, {numbers}}},"

    def _units(self, one: Block) -> int:
        """Units of a row in an image."""
        a, b = one.channels
        return b - a if one.tensor.layout == "CHW" else one.tensor.right - one.tensor.left

    def _pitches(self, one: Block) -> tuple[int, int, int, int]:
        """Off the chip: bytes from unit to unit, row to row, image to image, and before the first element."""
        tensor = one.tensor
        each = pitches(tensor.operand, tensor.layer, self.machine)
        pitch, inner = {d: p * tensor.element for d, p in each.items()}, {"IN": "n", "OUT": "m"}[tensor.operand]
        channel = pitch[inner] if tensor.layer.extent(inner) > 1 else pitch["g"]
        down, across = tensor.pitch[0] * pitch["r"], tensor.pitch[1] * pitch["c"]
        first = tensor.left * across + one.channels[0] * channel
        return channel if tensor.layout == "CHW" else across, down, pitch["b"], first

    # ---- transfers ---------------------------------------------------------------------------------------------------

    def _tensor(self, one: Tensor) -> str:
        """Where a tensor lies off the chip."""
        t = one.number
        if one.operand == "OUT":
            return self.places[f"out {t}"]
        count, given = self.whole.found.layers[t].inputs, self.whole.given
        return next(self.places[f"in {t} {k}"] for k in range(count) if any(x is one for _, x in given[t, k]))

    def _spans(self, move: Move) -> list[str]:
        """The rows of a transfer of maps."""
        found = []
        for some in move.tensors:
            one, rows, *_ = some
            place, first = self._tensor(one), self.first_block(one)
            for k in some.blocks:
                found.append(f"{{&certile_blocks[{first + k}], {place}, {rows[0]}, {rows[1]}}}")
        return found

    def bytes_of(self, move: Move) -> int:
        """What a transfer moves."""
        if move.filters is not None:
            return (move.filters.end - move.filters.begin) * move.filters.size
        each = ((some.tensor.sizes[slice(*some.rows)], some.blocks) for some in move.tensors)
        return sum(int(sizes[:, blocks.start : blocks.stop].sum()) for sizes, blocks in each)

    def _segments(self, move: Move, ticks: int, operand: str) -> int:
        """The segments that the plan counts; 0 where it does not say, or the map lies in several tensors."""
        price, size = self.machine.transfer_of(operand), self.bytes_of(move)
        if price.burst_ticks or not price.segment_ticks or len(move.tensors) > 1:
            return 0
        segments, rest = divmod(ticks - price.call_ticks - size * price.byte_ticks, price.segment_ticks)
        if rest:
            raise InputError(f"a transfer of {size:,} bytes takes {ticks:,} ticks, which is no number of segments")
        return int(segments)

    # ---- text --------------------------------------------------------------------------------------------------------

    def files(self, includes: Sequence[str]) -> dict[str, str]:
        """All files by name."""
        whole, made = self.whole, {"ahead.h": self._header(), "ahead.c": self._source()}
        for begin, end in pairwise(whole.chip.begins):
            made[run_file(begin, end)] = self._run(begin, end, includes).text()
        return made

    def _run(self, begin: int, end: int, includes: Sequence[str]) -> RunFile:
        return RunFile(self, begin, end - 1, includes)

    def _declared(self) -> list[str]:
        """What ahead.h declares beside maps and steps."""
        return []

    def _header(self) -> str:
        return "\n".join([
            "/* The plan's steps and transfers: see certile_ahead.h. */", "#ifndef AHEAD_H", "#define AHEAD_H", "",
            '#include "certile_ahead.h"', "", f"extern const certile_rows certile_blocks[{len(self.blocks)}];", "",
            *self._declared(),
            *(f"void {self.name(t)}(const certile_work *work);" for t in range(len(self.whole.found.layers))), "",
            "/* Run the network. */", "void certile_ahead(void);", "", "#endif", "",
        ])  # fmt: skip

    def _source(self) -> str:
        lines = ['#include "ahead.h"', "", '#include "certile_dma.h"', '#include "network.h"', ""]
        rows = [self._rows(k, one) for k, one in enumerate(self.blocks)]
        lines += [line for some, _ in rows for line in some]
        lines += ["", f"const certile_rows certile_blocks[{len(rows)}] = {{", *(text for _, text in rows), "};", ""]
        lines += [*self._weights(), "", *self._transfers(), "", *self._works(), "", *self._commands(), ""]
        given = "commands, sizeof commands / sizeof *commands, transfers, works"
        lines += function("void certile_ahead", [], [f"certile_carry_out({given});"])
        return "\n".join([*lines, ""])

    def _weights(self) -> Iterator[str]:
        """Yield the table of layers with weights, if there are any."""
        if all(move.filters is None for move in self.whole.moves):
            return
        yield f"static const certile_weights weights[{len(self.whole.found.layers)}] = {{"
        for t, layer in enumerate(self.whole.found.layers):
            bias = self.machine.bias_bytes if layer.bias else 0
            taps, runs = layer.kh * layer.kw * self.machine.w_bytes, 1
            if self.machine.w_layout == "OHWI":
                taps, runs = self.machine.w_bytes, layer.kh * layer.kw
            w, b = (self.places[f"{what} {t}"] for what in ("w", "bias"))
            yield f"    {{{w}, {b if bias else 'NULL'}, {layer.n}, {taps}, {runs}, {bias}}},"
        yield "};"

    def _transfers(self) -> list[str]:
        """The table of transfers in the order of the queue, below the rows and filters of each."""
        spans, filters, rows = list[str](), list[str](), list[str]()
        names = [name for part in self.whole.parts for name in part.names]
        for k, one in zip(self.whole.laid.order, self.whole.laid.timeline.transfers, strict=True):
            move, operand = self.whole.moves[k], names[k][0]
            tail = f"{self._segments(move, one.ticks, operand)}, {self.bytes_of(move)}"
            head = f"CERTILE_{operand}, {int(isinstance(one, Load))}"
            if move.filters is not None:
                some = self._filters(move.filters)
                channels = f"{move.filters.low}, {move.filters.high}"
                place = f"&weights[{move.filters.layer}], &filters[{len(filters)}], {channels}"
                rows.append(f"    {{{head}, NULL, {len(some)}, {place}, {tail}}},")
                filters += some
            else:
                some = self._spans(move)
                rows.append(f"    {{{head}, &spans[{len(spans)}], {len(some)}, NULL, NULL, 0, 0, {tail}}},")
                spans += some
        lines = _table("static const certile_span spans[]", spans, 1) if spans else []
        lines += _table("static const certile_filters filters[]", filters, 4) if filters else []
        return [*lines, f"static const certile_transfer transfers[{len(rows)}] = {{", *rows, "};"]

    def _filters(self, one: Filters) -> list[str]:
        """Filters that lie one behind the other."""
        found, f = list[str](), one.begin
        for address, number in one.parts:
            found.append(f"{{{address}, {f}, {number}}}")
            f += number
        return found

    @cached_property
    def _computed(self) -> list[tuple[int, int, Work]]:
        """What steps compute, each with the numbers of run and step; not of a layer that makes nothing in its turn."""
        every = ((r, one) for r, work in enumerate(self.whole.work) for one in work)
        return [(r, self.whole.begins[r] + one.step, one) for r, one in every if one.begin < one.end]

    def _works(self) -> list[str]:
        """What steps compute, and the tables of addresses of filters."""
        whole, rows = self.whole, list[str]()
        there: dict[int, list[Filters]] = {}
        for move in whole.moves:
            if move.filters is not None:
                there.setdefault(move.filters.layer, []).append(move.filters)
        for r, step, one in self._computed:
            layer, table, some = whole.found.layers[one.layer], "NULL", list[Filters]()
            if layer.weights != "none" and one.first < one.last:
                some = [part for part in there.get(one.layer, []) if part.due <= step <= part.last]
                table = f"addresses_{self._addresses(one, step, some)}"
            low, high = (some[0].low, some[0].high) if some else (0, layer.n)
            box = f"{one.begin}, {one.end}, {one.first}, {one.last}, {one.low}, {min(one.high, layer.n)}, "
            box += f"{one.top}, {min(one.bottom, layer.kh)}"
            more = f"{low}, {high - low}, {int(one.opens)}, {int(one.closes)}, {whole.turn(r, step)}"
            rows.append(f"    {{{self.name(one.layer)}, {box}, {more}, {table}}},")
        lines = []
        for numbers, k in self._tables.items():
            lines += _table(f"static const int addresses_{k}[]", [str(x) for x in numbers])
        return [*lines, f"static const certile_work works[{len(rows)}] = {{", *rows, "};"]

    def _addresses(self, work: Work, step: int, some: Sequence[Filters]) -> int:
        """The number of the table of addresses of the filters of a step, which are some of those that are there."""
        found = np.full(work.last - work.first, -1, np.int64)
        for one in some:
            for f in range(max(work.first, one.begin), min(work.last, one.end)):
                found[f - work.first] = one.address(f)
        if (found < 0).any():
            raise InputError(f"step {step}: filter {work.first + int(found.argmin())} is not on chip")
        return self._tables.setdefault(tuple(found.tolist()), len(self._tables))

    def _commands(self) -> list[str]:
        """The commands of the processor: of a step one for all that it computes."""
        found, waited = list[tuple[str, int]](), 0
        steps = [step for _, step, _ in self._computed]
        for order in self.whole.laid.timeline.orders():
            if order.do == "push":
                found.append(("push", order.at))
            elif order.do == "run":
                found += [("run", k) for k in range(bisect_left(steps, order.at), bisect(steps, order.at))]
            elif order.at >= waited:  # all before it are done, too
                waited = order.at + 1
                if found and found[-1][0] == "wait":
                    found.pop()
                found.append(("wait", waited))
        numbers = [str(len(_COMMANDS) * at + _COMMANDS.index(do)) for do, at in found]
        return _table("static const int commands[]", numbers)


def _table(head: str, numbers: Sequence[str], each: int = _LINE) -> list[str]:
    """A table of numbers."""
    lines = [f"    {', '.join(numbers[k : k + each])}," for k in range(0, len(numbers), each)]
    return [f"{head} = {{", *lines, "};"]
