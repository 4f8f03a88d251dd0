"""Steps whose tiles go through memories nearer than the shared one: the nest of every box as a table, its functions.

A step makes boxes (`hwmodels.levels.near`). certile_near.c runs the nest of each: it calls a layer's functions, which
name the pieces of a part of a tile of inputs or results, or compute on the tiles. Tiles lie where C of problem levels
has them (`solver.uses.emit.levels.nest`): each in one place, behind the reserved bytes of its memory.

What is not written is refused by name: boxes that add up parts of what results need, nests whose sums leave the nearest
memory before they are complete, boxes that begin within a group of filters and go on in the next one, samples of a map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

from formulations.fusion.near import Near
from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.work import Work
from hwmodels.levels.price import price
from hwmodels.levels.schedule import Box, layer_of, near_machine
from instances.errors import InputError
from instances.machine.levels import Levels
from instances.machine.machine import Machine
from instances.network.workload import REDUCTION, Layer
from solver.uses.emit.ahead.files import AheadFiles, RunFile
from solver.uses.emit.ahead.whole import Tensor, Whole
from solver.uses.emit.groups import Part as Channels
from solver.uses.emit.levels.nest import LayerCode, LevelsPlanned, Tile, arrays
from solver.uses.emit.text import block, function, quoted
from solver.uses.emit.values import rows_of

#: The dimensions as certile_near.h has them, and those along which loops over pixels run.
_DIMS = "bgmnrc"
_NAMES = {d: f"CERTILE_{d.upper()}" for d in _DIMS}


def near_machine_of(machine: Machine) -> tuple[Machine, Levels]:
    """The shared memory and those behind it, as a machine and as its memories."""
    near = near_machine(machine)
    assert near.levels is not None
    return near, near.levels


def declared(machine: Machine, storage: str) -> list[str]:
    """Return the declarations of the memories behind the shared one; none where there are none."""
    if machine.near is None:
        return []
    _, levels = near_machine_of(machine)
    return arrays(levels, storage, [one.name for one in levels.memories])


class NearNests:
    """The nests of all boxes of a plan, by layer. Raises InputError for what C is not written of."""

    def __init__(self, whole: Whole, machine: Machine) -> None:
        self.whole, self.machine = whole, machine
        self.layers = whole.found.layers
        self.codes: dict[int, dict[Box, LayerCode]] = {t: {} for t in range(len(self.layers))}
        for r, source in enumerate(whole.carried.sources):
            near = source.near if isinstance(source, NestSteps) else source.time.near
            if near is None or near.given is None:
                raise InputError("the plan names no nests of its steps, through memories in levels")
            self._near = near
            every = source.boxes(near)
            for work in (one for one in whole.work[r] if one.first < one.last and one.begin < one.end):
                self._add(near, work, [box for t, box in every[work.step - 1] if t == work.layer])
        for (t, _), some in whole.given.items():
            if any(one.pitch != (1, 1) for _, one in some):
                raise InputError(f"{self.layers[t].name}: only samples of a map lie on chip, its nests count all of it")

    def _add(self, near: Near, work: Work, boxes: Sequence[Box]) -> None:
        """Note the nests of the boxes of a step."""
        t, layer = work.layer, self.layers[work.layer]
        if any(box.sums for box in boxes):
            raise InputError(f"{layer.name}: its steps add up parts of sums, through memories in levels")
        if Counter((box.groups, box.filters) for box in boxes) != Counter(_boxes_of(layer, work)):
            raise InputError(f"{layer.name}: a step begins within a group of filters, and goes on in the next one")
        if _only_padding(layer, work):
            raise InputError(f"{layer.name}: all that a step reads is padding")
        for box in boxes:
            if box not in self.codes[t]:
                self.codes[t][box] = self._code(t, near, box)

    def _code(self, t: int, near: Near, box: Box) -> LayerCode:
        layer, nest = self.layers[t], near.step(t, box)[0].nest
        code = LayerCode(LevelsPlanned(layer_of(layer, box), near_machine_of(self.machine)[0], nest), "extern")
        (results,) = (one for one in code.tiles if one.operand == "OUT")
        outside = code.dims[: results.place]
        if any(d in REDUCTION for d in outside) or any(d in "ij" for d in code.dims):
            raise InputError(f"{layer.name}: its nest {nest.words} adds up more than channels of a tile of OUT")
        return code

    @cached_property
    def planned(self) -> tuple[int, int]:
        """Transfers and bytes between the shared memory and the nearer ones, as the plan has them."""
        machine, _ = near_machine_of(self.machine)
        calls = size = 0
        for one in (self._near.given or {}).values():
            moved = price(layer_of(self.layers[one.layer], one.box), machine, one.nest).moved
            calls += one.times * sum(each.calls for each in moved)
            size += one.times * sum(each.bytes for each in moved)
        return calls, size

    def checked(self) -> tuple[str, str]:
        """For main.c: what the plan moves, as a table; and what compares with it, and says it."""
        assert self.machine.near is not None
        levels = self.machine.near.memories
        calls, size = self.planned
        names = f'"off the chip", "{quoted(levels[0].name)}"'
        table = [
            "/* The memories that are the farther one of a transfer, by channel; what moves on each: calls, bytes. */",
            f"static const char *const memories[] = {{{names}}};",
            f"static const certile_channel planned[] = {{{{0, 0}}, {{{calls}, {size}}}}};",
        ]
        said = [
            'printf("channel 1, %s: %llu bytes in %llu transfers\\n", memories[1], certile_moved[1].bytes,',
            "       certile_moved[1].calls);",
            'wrong += !certile_channels_as_planned("near", memories, planned, 2);',
        ]
        return "\n".join(table), "".join(f"\n    {line}" for line in said)


def _boxes_of(layer: Layer, work: Work) -> Iterator[tuple[int, int]]:
    """Yield groups and filters of the boxes of a step as C has them (certile_run_near)."""
    f = work.first
    while f < work.last:
        left, m = work.last - f, f % layer.m
        groups = 1 if m or left < layer.m else left // layer.m
        filters = min(left, layer.m - m)
        yield groups, filters
        f += groups * filters


def _only_padding(layer: Layer, work: Work) -> bool:
    """Whether a step's window has no row or no column of the map."""
    spans = (
        (work.begin, work.end, layer.stride_h, layer.dilation_h, layer.kh, layer.pad_top, layer.h),
        (work.left, work.right, layer.stride_w, layer.dilation_w, layer.kw, layer.pad_left, layer.l),
    )
    return any(
        max(begin * stride - pad, 0) >= min((end - 1) * stride - pad + (taps - 1) * dilation + 1, size)
        for begin, end, stride, dilation, taps, pad, size in spans
    )


class NearRunFile(RunFile):
    """Writes what the layers of a run compute, tile by tile in the nearest memories."""

    def __init__(self, files: NearFiles, first: int, last: int, includes: Sequence[str]) -> None:
        super().__init__(files, first, last, ['"certile_near.h"', *includes])
        self.nests = files.nests

    def _make(self, k: int) -> list[str]:
        layer, t = self.group.layers[k], self.first + k
        loads = [self._load(k, number) for number in range(layer.inputs)]
        names = ", ".join(f"load_{k}_{number}" for number in range(layer.inputs))
        given = "const certile_near *, const certile_ranges *"
        run = [f"certile_run_near(&layer_{k}, work);"]
        parts = [
            *loads, self._compute(k), self._store(k), self._table(k),
            [f"static void (*const loads_{k}[])({given}) = {{{names}}};", *self._row(k)],
            function(f"void {self.files.name(t)}", ["const certile_work *work"], run, layer.name),
        ]  # fmt: skip
        return "\n\n".join("\n".join(part) for part in parts).splitlines()

    def _codes(self, k: int) -> list[tuple[Box, LayerCode]]:
        return list(self.nests.codes[self.first + k].items())

    def _adds(self, k: int) -> bool:
        """Whether some nest of a layer cuts its input channels."""
        return any("n" in code.dims for _, code in self._codes(k))

    # ---- tables ------------------------------------------------------------------------------------------------------

    def _table(self, k: int) -> list[str]:
        """The nests of a layer's boxes."""
        lines, rows = list[str](), list[str]()
        for number, (box, code) in enumerate(self._codes(k)):
            cuts = [f"{{{_NAMES[d]}, {step}}}" for d, step in zip(code.dims, code.steps, strict=True)]
            if cuts:
                lines.append(f"static const int cuts_{k}_{number}[][2] = {{{', '.join(cuts)}}};")
            table = f"cuts_{k}_{number}" if cuts else "NULL"
            rows += [f"    /* {code.nest.words} */", *self._nest(k, box, code, table)]
        return [*lines, f"static const certile_nest nests_{k}[] = {{", *rows, "};"]

    def _nest(self, k: int, box: Box, code: LayerCode, cuts: str) -> list[str]:
        """A nest as an initialiser."""
        layer = self.group.layers[k]
        by_operand = {one.operand: one for one in code.tiles}
        tiles = [self._tile(k, code, by_operand.get(operand)) for operand in ("IN", "W", "OUT")]
        inputs = by_operand["IN"]
        ring, extent, order = "-1", 1, code.order["IN"]
        if inputs.ring >= 0:
            ring, extent = _NAMES[order[inputs.ring]], inputs.extents[inputs.ring]
        size = prod(inputs.extents) * inputs.element
        wide = by_operand["W"].extents[code.order["W"].index("n")] if layer.weights != "none" else 0
        head = f"{box.rows}, {box.groups}, {box.filters}, {box.top}, {box.bottom}, {len(code.dims)}, {cuts}"
        return [f"    {{{head},", f"     {{{', '.join(tiles)}}},", f"     {size}, {ring}, {extent}, {wide}}},"]

    def _tile(self, k: int, code: LayerCode, tile: Tile | None) -> str:
        """Where a tile lies, and its pitches, as an initialiser."""
        if tile is None:
            return "{NULL, -1, {0}}"
        order = code.order[tile.operand]
        pitch = {d: each * tile.element for d, each in zip(order, rows_of(tile.extents), strict=True)}
        if tile.operand == "W":  # its bias lies behind each filter
            sizes = dict(zip(order, tile.extents, strict=True))
            bias = self.machine.bias_bytes if self.group.layers[k].bias else 0
            filter_bytes = sizes["n"] * sizes["i"] * sizes["j"] * tile.element + bias
            pitch = {"m": filter_bytes, "g": sizes["m"] * filter_bytes}
        each = ", ".join(str(pitch.get(d, 0)) for d in _DIMS)
        return f"{{{tile.memory} + {tile.offset}, {tile.place}, {{{each}}}}}"

    def _row(self, k: int) -> list[str]:
        """A layer, as certile_near.h has it."""
        layer, made, machine = self.group.layers[k], self.files.whole.made[self.first + k], self.machine
        rows = f"{{{layer.stride_h}, {(layer.kh - 1) * layer.dilation_h}, {layer.pad_top}, {layer.h}}}"
        columns = f"{{{layer.stride_w}, {(layer.kw - 1) * layer.dilation_w}, {layer.pad_left}, {layer.l}}}"
        weights = "0, 0, 0"
        if layer.weights != "none":
            taps = layer.kh * layer.kw
            runs, size = (1, taps) if machine.w_layout == "OIHW" else (taps, 1)
            weights = f"{runs}, {size * machine.w_bytes}, {machine.bias_bytes if layer.bias else 0}"
        head = f"{layer.b}, {layer.m}, {layer.n}, {made.left}, {made.right}, {layer.inputs}"
        tail = f"loads_{k}, compute_{k}, store_{k}, nests_{k}, {len(self._codes(k))}"
        body = [f"    {head}, {{{rows}, {columns}}}, {weights},", f"    {tail},"]
        return [f"static const certile_near_layer layer_{k} = {{", *body, "};"]

    # ---- transfers ---------------------------------------------------------------------------------------------------

    def _load(self, k: int, number: int) -> list[str]:
        """Name the pieces of a part of the tile of an input."""
        body, t = list[str](), self.first + k
        for part, one in self.files.whole.given[t, number]:
            body += self._loaded(k, number, replace(part, stream=self._number(one)), one)
        if any(one.turns > 1 for _, one in self.files.whole.given[t, number]):
            body = ["const certile_work *const work = s->work;", *body]
        given = ["const certile_near *s", "const certile_ranges *part"]
        return function(f"static void load_{k}_{number}", given, body, f"Input {number}: pieces of a part of its tile.")

    def _loaded(self, k: int, number: int, part: Channels, one: Tensor) -> list[str]:
        """The pieces of those channels that a tensor has."""
        layer, shift = self.group.layers[k], part.first - part.begin
        begin, end = f"g * {layer.n} + part->lo[CERTILE_N]", f"g * {layer.n} + part->hi[CERTILE_N]"
        ends = [f"const int first = certile_max({begin}, {part.first});",
                f"const int last = certile_min({end}, {part.first + part.number});"]  # fmt: skip
        there = f"ch - {shift}" if shift else "ch"
        at, alike = f"b, {there}, y, x", one.layout == self.machine.in_layout and part.flat is None
        if part.flat is not None:
            rows, columns = part.flat
            at = f"b, ch / {rows * columns}, ch / {columns} % {rows}, ch % {columns}"
        near, far = f"certile_near_in(s, {number}, b, g, ch - g * {layer.n}, y, x)", super()._element(part, at)
        if one.layout == "CHW":
            run = "certile_columns(s, x, part->hi[CERTILE_C])" if alike else "1"
            body = [f"run = {run};", f"certile_run({near}, {far}, (size_t)(run * {one.element}));"]
            body = block("for (int x = part->lo[CERTILE_C], run; x < part->hi[CERTILE_C]; x += run)", body)
            body = [*ends, *block("for (int ch = first; ch < last; ch++)", _over("y", body))]
            return _over("b", _over("g", body))
        size, step = str(one.element), "ch++"
        if alike and len(one.cuts) == 2:  # all channels of a pixel
            size, step = f"(size_t)((last - ch) * {one.element})", "ch = last"
        body = block(f"for (int ch = first; ch < last; {step})", [f"certile_run({near}, {far}, {size});"])
        return _over("b", _over("y", _over("x", _over("g", [*ends, *body]))))

    def _store(self, k: int) -> list[str]:
        """Name the pieces of the tile of results."""
        layer, made, size = self.group.layers[k], self.files.whole.made[self.first + k], self.machine.out_bytes
        lo, hi = ({d: f"s->tile[CERTILE_OUT].{end}[{_NAMES[d]}]" for d in _DIMS} for end in ("lo", "hi"))
        inner, order = ("c", "bgmr") if made.layout == "CHW" else ("m", "brcg")
        whole = not self._adds(k) and (inner == "c" or len(made.cuts) == 2)
        number = f"(size_t)(({hi[inner]} - {inner}) * {size})" if whole else str(size)
        there = f"map_{self._number(made)}(b, g * {layer.m} + m, r, c)"
        body = [f"certile_run({there}, certile_near_out(s, b, g, m, r, c), {number});"]
        body = block("", [f"const int {inner} = {lo[inner]};", *body]) if whole else _loop(inner, lo, hi, body)
        for d in reversed(order):
            body = _loop(d, lo, hi, body)
        return function(f"static void store_{k}", ["const certile_near *s"], body, "Pieces of the tile of results.")

    # ---- products ----------------------------------------------------------------------------------------------------

    def _compute(self, k: int) -> list[str]:
        """Compute on the tiles."""
        layer, numbers, t = self.group.layers[k], self.group.numbers[k], self.first + k
        lo, hi = ({d: f"s->now.{end}[{_NAMES[d]}]" for d in _DIMS} for end in ("lo", "hi"))
        place, adds = "certile_near_out(s, b, g, m, r, c)", self._adds(k)
        start = f"s->now.lo[CERTILE_N] == 0 ? {self._first(k)} : {numbers.read(numbers.sums, place)}"
        body = [f"{numbers.total} sum = {start if adds else self._first(k)};", *numbers.places("sum")]
        for number in range(layer.inputs):
            body += self._products(k, number, Channels(number, 0, layer.g * layer.n))
        result = numbers.write(numbers.result, place, self._final(k))
        if adds:
            kept = numbers.write(numbers.sums, place, "sum")
            ended = f"if (s->now.hi[CERTILE_N] == {layer.n})"
            result_lines = [*block(ended, [result])[:-1], "} else {", f"    {kept}", "}"]
        body += result_lines if adds else [result]
        for d in "crb":
            body = _loop(d, lo, hi, body)
        if layer.weights != "none":
            body = ["const unsigned char *w = certile_near_w(s, g, m);", *body]
        body = _loop("g", lo, hi, _loop("m", lo, hi, body))
        if layer.bias and not self.machine.bias_bytes:
            bias = self.files.places[f"bias {t}"]
            body = [f"const certile_tensor bias_{k} = {{{bias}, 1, {{0}}}};", *body]
        return function(f"static void compute_{k}", ["const certile_near *s"], body, "Compute on the tiles.")

    def _element(self, part: Channels, at: str) -> str:
        return f"certile_near_in(s, {part.stream}, b, g, n, at_y, at_x)"

    def _channels(self, k: int) -> tuple[str, str]:
        return ("s->now.lo[CERTILE_N]", "s->now.hi[CERTILE_N]") if self._adds(k) else ("0", str(self.group.layers[k].n))

    def _tap(self, k: int) -> str:
        layer, size = self.group.layers[k], self.machine.w_bytes
        if not self._adds(k):
            return super()._tap(k)
        n = "(n - s->tile[CERTILE_W].lo[CERTILE_N])"
        if self.machine.w_layout == "OIHW":
            return f"({n} * {layer.kh * layer.kw} + i * {layer.kw} + j) * {size}"
        return f"((i * {layer.kw} + j) * s->nest->wide + {n}) * {size}"

    def _bias(self, k: int) -> str:
        return f"w + s->nest->wide * {self._taps(k) // self.group.layers[k].n}"


def _loop(d: str, lo: dict[str, str], hi: dict[str, str], body: Sequence[str]) -> list[str]:
    return block(f"for (int {d} = {lo[d]}; {d} < {hi[d]}; {d}++)", body)


def _over(name: str, body: Sequence[str]) -> list[str]:
    """A loop over a part of an input."""
    d = _NAMES[{"y": "r", "x": "c"}.get(name, name)]
    return block(f"for (int {name} = part->lo[{d}]; {name} < part->hi[{d}]; {name}++)", body)


class NearFiles(AheadFiles):
    """Writes the files of a plan whose steps bring their tiles through nearer memories."""

    @cached_property
    def nests(self) -> NearNests:
        """Those of all boxes."""
        return NearNests(self.whole, self.machine)

    def _run(self, begin: int, end: int, includes: Sequence[str]) -> RunFile:
        return NearRunFile(self, begin, end - 1, includes)

    def _declared(self) -> list[str]:
        return [*declared(self.machine, "extern"), ""]
