"""How a layer of a model computes: its constants, what it takes of inputs, how that is summed, what becomes of a sum.

Two ways:

* single precision: what is read becomes a float (real), and the functions of a layer follow on the sum;
* exact: the input is dequantised with one scale, and the layer is a product, a pooling, or a largest element. Then it
  takes integers less their zero point, sums are integers, and a factor makes the real number of a complete sum.

Real sums of quantised maps (element-wise layers, and what is read through another function) are of the first way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import TypeAlias

import numpy as np

from instances.errors import InputError
from instances.network.operators import Conv, MatMul, Operator, Pool, Resample
from instances.network.stores import inputs_of
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import Quantised
from solver.uses.emit.kinds import BYTES, C_TYPES, FLOATS, KINDS, NAMES, Grid, dtype, grid_of, limits, require
from solver.uses.emit.numbers import Numbers, floats
from solver.uses.emit.passing import Chain, Passing, statements
from solver.uses.emit.pointwise import by_channel, clip_of, quantiser
from solver.uses.emit.requantise import scaled, shares
from solver.uses.emit.several import PARTS, Resized, is_gridded
from solver.uses.emit.text import floats_of, function, literal
from solver.uses.emit.values import coordinates_in, coordinates_of, storage_order

#: Tables, statements, and the functions that are left.
_Made: TypeAlias = tuple[list[str], list[str], tuple[Operator, ...]]
#: The larger and the smaller of whole numbers, as one after the other comes.
_EXTREMES = {
    op: f"{{{{ const int32_t seen = {{value}}; {{row}} = seen {sign} {{row}} ? seen : {{row}}; }}}}"
    for op, sign in (("Max", ">"), ("Min", "<"))
}
#: Bytes of biases that are added to sums of integers.
BIAS = {0: "i32", 4: "i32", 8: "i64"}


@dataclass(frozen=True, eq=False)
class Trained:
    """Weights, one after the other, and biases by group and channel.

    Of quantised weights `kind` says what integers they are, `scale` (one, or by channel) and `zero` what they stand
    for; a complete sum is multiplied by the scale.
    """

    weights: np.ndarray
    bias: np.ndarray
    kind: str = ""
    scale: np.ndarray = field(default_factory=lambda: np.ones(1, np.float32))
    zero: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))


@dataclass
class Arithmetic:
    """A layer of a model."""

    passing: Passing
    operator: Operator
    layer: Layer
    trained: Trained | None = None
    """Its constant weights."""

    def __post_init__(self) -> None:
        self.model, self.elements = self.passing.model, self.passing.elements
        self.machine = self.elements.machine
        self.where = f"layer {self.layer.name}"
        #: The operators whose results are its inputs.
        self.names = inputs_of(self.model.network, self.operator, self.layer)

    @cached_property
    def grid(self) -> Grid | None:
        """The scale and zero point of its input, if it computes exactly."""
        if not self.elements.quantised or not isinstance(self.operator, Conv | MatMul | Pool):
            return None
        return self._grid(self.names[0])

    def _grid(self, name: str) -> Grid | None:
        """Of a tensor that holds integers or that one scale has dequantised."""
        kind, chain = self.passing.kinds[name], self.passing.before(name)
        if name in self.passing.constants:
            return self.passing.constants[name]
        if kind not in FLOATS:
            return Grid(kind)
        if chain.operators and self.passing.per_tensor(chain.operators[-1]):
            last = chain.operators[-1]
            found, read = grid_of(self.model, self.model.node(last.name)), self.passing.kinds[last.inputs[0]]
            return replace(found, kind=found.kind if read in FLOATS else read)  # without zero point it says no kind
        return None

    @cached_property
    def right(self) -> Grid | None:
        """The scale and zero point of the right operand of a product of two inputs."""
        found = self._grid(self.operator.inputs[1]) if self.layer.weights == "activation" else None
        real = self.elements.quantised and self.layer.weights == "activation" and found is None
        require(not real, self.where, "its right operand holds real numbers")
        return found

    # ---- constants -------------------------------------------------------------------------------------------------

    def constants(self) -> Trained:
        """The constant weights and biases; raises InputError if they are not known, or not as the layer needs them."""
        node, channels = self.model.node(self.operator.name), self.layer.g * self.layer.m
        quantised, swapped = None, False
        if isinstance(self.operator, Conv) and node.op == "Conv":
            added, factor = node.input(2), 1.0
        elif isinstance(self.operator, MatMul) and node.op in ("Gemm", "MatMul"):
            swapped = not node.integer("transB", 0)
            added = node.input(2) if node.op == "Gemm" else ""
            factor = node.number("alpha", 1.0) if node.op == "Gemm" else 1.0
        else:
            raise InputError(f"{self.where} ({node.op}): its weights are not known: no C is written")
        if self.elements.quantised:
            quantised = self.model.quantised(node.input(1))
        beta = node.number("beta", 1.0) if node.op == "Gemm" else 1.0
        real = np.zeros(channels)
        if added:
            real = np.broadcast_to(self.model.constant(added).astype(np.float64).reshape(-1), channels) * beta
        times = np.full(channels, factor)
        for behind in self.model.folded.get(self.operator.name, ()):
            times, real = by_channel(self.model, Node(behind), times, real)
        if quantised is not None:
            return self._integers(quantised, swapped, times, real)
        require(
            self.grid is None, self.where, "its input is quantised, its weights are not: quantise them, too (as QDQ)"
        )
        weights = self.model.constant(node.input(1))
        weights = (weights.T if swapped else weights).reshape(channels, -1)
        if (times != 1).any():  # double precision takes twice the room of weights, which may be all there is
            weights = weights.astype(np.float64) * times[:, None]
        kind = {2: "f16", 4: "f32"}.get(self.machine.w_bytes, "")
        require(kind, self.where, f"weights of float32, and the machine has w_bytes {self.machine.w_bytes}")
        return Trained(self._laid_out(weights, dtype(kind)), real.astype(self._bias))

    def _laid_out(self, weights: np.ndarray, element: np.dtype) -> np.ndarray:
        """Weights by channel in the machine's layout."""
        layer = self.layer
        shaped = weights.reshape(layer.g, layer.m, layer.n, layer.kh, layer.kw)
        order = ["gmnij".index(d) for d in storage_order("W", self.machine)]
        return shaped.transpose(order).astype(element).ravel()

    def _integers(self, found: Quantised, swapped: bool, times: np.ndarray, real: np.ndarray) -> Trained:
        kind, channels = KINDS.get(str(found.integers.dtype), ""), len(times)
        has = self.machine.w_bytes
        fits = kind and BYTES[kind] == has
        require(fits, self.where, f"weights of {found.integers.dtype}, and the machine has w_bytes {has}")
        require(found.axis in (None, int(swapped)), self.where, "weights with scales along an axis that is summed")
        single = found.scale.size == 1 and (times == times[0]).all()
        scale = (found.scale * (times[0] if single else times)).astype(np.float32)
        require((scale != 0).all(), self.where, "weights with the scale 0")
        zero = np.broadcast_to(found.zero.astype(np.int64), channels)
        weights = (found.integers.T if swapped else found.integers).reshape(channels, -1)
        laid_out = self._laid_out(weights, dtype(kind))
        unit = scale.astype(np.float64) * (float(self.grid.scale[0]) if self.grid is not None else 1.0)
        addend = real / unit
        if self.grid is not None:
            addend = np.rint(addend)
            self._check_reach(weights.astype(np.float64) - zero[:, None], addend, self.grid)
        return Trained(laid_out, addend.astype(self._bias), kind, scale, zero)

    @property
    def _bias(self) -> np.dtype:
        """The type of biases."""
        size = self.machine.bias_bytes
        return dtype(BIAS[size] if self.grid is not None else {2: "f16"}.get(size, "f32"))

    def _check_reach(self, weights: np.ndarray, addend: np.ndarray, grid: Grid) -> None:
        """Refuse a layer whose sums may leave the integers in which they are taken."""
        most = float((np.abs(weights).sum(axis=1) * grid.reach + np.abs(addend)).max())
        largest = limits(self.elements.sums)[1]
        if most > largest or (np.abs(addend) > np.iinfo(self._bias).max).any():
            said = f"sums may reach {most:,.0f}, integers of psum_bytes {self.machine.psum_bytes} {largest:,}"
            raise InputError(f"{self.where}: {said}: plan with --set psum_bytes=8, or scales that are larger")

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def reading(self, base: Numbers) -> Numbers:
        """Return the layer's numbers with what it takes of its inputs."""
        lines = self._read_functions(exact=self.grid is not None)
        return replace(base, seen=tuple(lines) if any(lines) else (), taken=self._taken(lines))

    def require_held(self) -> None:
        """Raise InputError unless the machine's elements hold what the layer reads."""
        read = [*self.names, *self.operator.inputs[1:]] if self.layer.weights == "activation" else self.names
        for name in read:
            kind, size = self.passing.stored(name), self.machine.in_bytes
            said = f"it reads maps of {self.passing.said(name, kind)}, and the machine has in_bytes {size}"
            said += ": quantise what it reads and makes" if self.elements.quantised else ""
            require(self.elements.held(kind) == kind, self.where, said)
            has = self.machine.w_bytes
            said = f"its right operand is of {NAMES[kind]}, and the machine has w_bytes {has}"
            require(name in self.names or has == BYTES[kind], self.where, said)

    def single(self) -> Numbers:
        """Single precision."""
        machine, result = self.machine, self.passing.stored(self.operator.name)
        if not self.elements.quantised:
            made = floats(machine)
        else:
            spills = self.layer.kind != "eltwise"
            require(not spills or machine.psum_bytes == 4, self.where, "sums of real numbers take psum_bytes 4")
            made = Numbers(self.passing.stored(self.names[0]), "f32", result, "f32", "f32", "float")
        kinds = {self.passing.kinds[name] for name in self.names}
        copies = isinstance(self.operator, Resample) and not is_gridded(self.operator) and self.resized.copies
        op = self.model.node(self.operator.name).op.removeprefix("certile.")
        said = f"{op} of integers, which no scale dequantises: quantise it as QDQ"
        require(copies or kinds <= set(FLOATS), self.where, said)
        if self.trained is not None and self.trained.kind:
            made = replace(made, weights=self.trained.kind, weight_zero=self._weight_zero(self.trained.zero))
        return replace(made, result=result)

    def whole(self) -> Numbers:
        """Sums of integers."""
        weights, zero = "i8", ""
        if self.right is not None:
            weights, zero = self.passing.stored(self.operator.inputs[1]), self._weight_zero(self.right.zero)
        elif self.trained is not None:
            weights, zero = self.trained.kind, self._weight_zero(self.trained.zero)
        sums = self.elements.sums
        return Numbers(
            self.passing.stored(self.names[0]), weights, self.passing.stored(self.operator.name), sums,
            BIAS[self.machine.bias_bytes], C_TYPES[sums], weight_zero=zero,
        )  # fmt: skip

    def _weight_zero(self, zero: np.ndarray) -> str:
        if (zero == zero[0]).all():
            return str(int(zero[0])) if zero[0] else ""
        return f"stage_weight_zero[{self._channel}]"

    @property
    def _channel(self) -> str:
        """The number of a result's channel."""
        layer = self.layer
        return f"g * {layer.m} + m" if layer.g > 1 and layer.m > 1 else "g" if layer.g > 1 else "m"

    # ---- inputs ----------------------------------------------------------------------------------------------------

    def _read_functions(self, *, exact: bool) -> list[tuple[str, ...]]:
        """By input the function that the layer applies to what it reads; empty where there is none.

        `exact`: it takes integers that are dequantised last.
        """
        found: list[tuple[str, ...]] = []
        for k, name in enumerate(self.names):
            chain = self.passing.before(name)
            real = exact and chain.operators and self.passing.kinds[name] in FLOATS
            chain = replace(chain, operators=chain.operators[:-1]) if real else chain
            tables, changes = statements(self.model, chain, self._place_in, f"seen_{k}_", rule=self.elements.rule)
            if not exact and name in self.passing.constants:
                place = self._place_in(self.model.network.operator(name))
                made = quantiser(self.passing.constants[name], f"seen_{k}", place)
                tables, changes = made.lines(), list(made.statements)
            given = ["float x", "int b", "int g", "int n", "int row", "int column"]
            body = ["(void)b, (void)g, (void)n, (void)row, (void)column;", *changes, "return x;"]
            text = function(f"static inline float seen_{k}", given, body)
            found.append((*tables, "/* What an input is taken as. */", *text) if changes else ())
        return found

    def _place_in(self, source: Operator) -> Sequence[str]:
        return coordinates_in(self.operator, source, self.layer)

    def _taken(self, lines: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """By input how an element is read."""
        found = []
        for k, (name, text) in enumerate(zip(self.names, lines, strict=True)):
            value = f"certile_get_{self.passing.stored(name)}({{place}})"
            value = f"seen_{k}({value}, {{names}})" if text else value
            if self.grid is None:
                found.append(value if text else f"(float){value}")
            else:
                zero = f" - {self.grid.one_zero}" if self.grid.one_zero else ""
                value = f"({C_TYPES[self.elements.sums]}){value}"
                found.append(f"({value}{zero})" if zero else value)
        return tuple(found)

    # ---- results ---------------------------------------------------------------------------------------------------

    def finished(self, base: Numbers, lines: Sequence[str], divisor: int = 1) -> Numbers:
        """Return numbers with the function that makes a result of a complete sum, if one is needed.

        `lines` are changes of the real sum x that come first, and of an exact one its division by a constant.
        """
        behind = self.passing.behind[self.operator.name]
        tables, body = list[str](), list(lines)
        if self.grid is not None:
            tables, body, behind = self._rounded(lines, divisor)
        elif self.trained is not None and self.trained.kind:
            tables, scale = self._by_channel("stage_scale", self.trained.scale)
            body = [f"x *= {scale};", *body]
        zero = self.trained.zero if self.trained is not None else np.zeros(1)
        zeros = ", ".join(str(int(z)) for z in zero)
        table = [f"static const int stage_weight_zero[] = {{{zeros}}};"] if (zero != zero[0]).any() else []
        base = replace(base, tables=(*base.tables, *table))
        total = f"{base.total} {'x' if self.grid is None else 'sum'}"
        return replace(base, finished=self._finished(total, tables, body, behind))

    def _finished(
        self, total: str, tables: Sequence[str], body: Sequence[str], behind: tuple[Operator, ...]
    ) -> tuple[str, ...]:  # fmt: skip
        """The function that makes a result of a complete sum; empty where nothing is done."""
        place, rule = partial(coordinates_of, layer=self.layer), self.elements.rule
        more, changes = statements(self.model, Chain(behind), place, "stage_", rule=rule)
        if not (body or changes):
            return ()
        text = ["(void)b, (void)g, (void)m, (void)r, (void)c;", *body, *changes, "return x;"]
        made = function("static inline float finished", [total, *(f"int {d}" for d in "bgmrc")], text)
        return (*tables, *more, "/* What a complete sum becomes. */", *made)

    def _factor(self, one: type[np.floating]) -> np.ndarray:
        """What the sums of integers are multiples of, by channel or for all, in numbers of a precision."""
        assert self.grid is not None
        factor = self.grid.scale.astype(one) * (self.right.scale if self.right is not None else one(1))
        return np.asarray(factor * (self.trained.scale if self.trained is not None else one(1)))

    def _rounded(self, lines: Sequence[str], divisor: int) -> _Made:
        """The real number of a sum of integers, or at once an integer of the result."""
        if self.elements.rule != "float":
            return self._whole_numbers(lines, divisor)
        factor, (rest, target, (lo, hi)) = self._factor(np.float32), self._target()
        if target is None or lines:
            tables, text = self._by_channel("stage_factor", factor / np.float32(divisor))
        else:
            tables, text = self._by_channel("stage_ratio", factor / (target.scale * np.float32(divisor)))
        body = ["float x = (float)sum;" if text == "1.0f" else f"float x = (float)sum * {text};", *lines]
        if target is None:
            return tables, body, self.passing.behind[self.operator.name]
        value = f"x / {literal(float(target.scale[0]))}" if lines else "x"
        zero = target.one_zero
        ends = ", ".join(literal(end - zero) for end in self._clipped(target, lo, hi))
        body.append(f"x = certile_round({value}, {ends}){f' + {literal(zero)}' if zero else ''};")
        return tables, body, rest

    def _whole_numbers(self, lines: Sequence[str], divisor: int) -> _Made:
        """The integer of a result from a sum of integers, by a multiplier and a shift."""
        mean = list(lines)
        if lines and isinstance(self.operator, Pool):
            zero = self._raw_zero()  # what is rounded is the mean of the integers as they are
            value, less = ("sum", "") if not zero else (f"sum + {zero} * rows * columns", f" - {zero}")
            mean[-1] = f"sum = ({C_TYPES[self.elements.sums]})certile_mean({value}, rows * columns){less};"
        else:
            require(not lines, self.where, "computes in real numbers: use requantise float")
        factor = self._factor(np.float32 if self._in_floats() else np.float64).astype(np.float64)
        short = divisor > 1 and self.grid is not None and divisor * self.grid.reach < 2**31
        tables, body, rest = self._by_multiplier(factor, "i32" if short else self.elements.sums, divisor)
        return tables, [*mean, *body], rest

    def _in_floats(self) -> bool:
        """Whether scales are multiplied in single precision: where all is of one scale, as TFLite does."""
        one = self.trained is None or self.trained.scale.size == 1
        return one and (isinstance(self.operator, MatMul) or self.passing.stored(self.names[0]) == "u8")

    def _raw_zero(self) -> int:
        """The zero point of an average whose results have the scale of what it reads; 0 if they have another one."""
        grid, (_, target, _) = self.grid, self._target()
        if grid is None or target is None:
            return 0
        same = grid.scale[0] == target.scale[0] and grid.one_zero == target.one_zero
        return int(grid.one_zero) if same else 0

    def _by_multiplier(self, factor: np.ndarray, sums: str, divisor: int = 1) -> _Made:
        """A sum times a factor (one, or by channel) and through a divisor, in steps of the result.

        A factor of single precision is divided by the scale of the result as such, as TFLite does.
        """
        rest, target, (lo, hi) = self._target()
        require(target is not None, self.where, "what follows on its sums takes real numbers: use requantise float")
        assert target is not None
        ratio = [float(one) for one in factor / target.scale.astype(factor.dtype)]
        value = "(int32_t)sum" if divisor > 1 and sums == "i32" else "sum"
        tables, text = scaled(self.elements.rule, sums, value, ratio, self._channel, divisor)
        zero, (least, most) = target.one_zero, self._clipped(target, lo, hi)
        return tables, [f"float x = (float)certile_limit({text} + {zero}, {least}, {most});"], rest

    @cached_property
    def resized(self) -> Resized:
        """The layer as a map of another size."""
        operator = self.operator
        assert isinstance(operator, Resample)
        return Resized(self.model, operator, self.layer, self._kept in ("i8", "i16"))

    @cached_property
    def _kept(self) -> str:
        """The kind of integers that it makes of others of the same scale by whole numbers; empty if it does not."""
        read, chain = self._grid(self.names[0]), self.passing.before(self.names[0])
        _, made, ends = self._target()
        if self.elements.rule == "float" or read is None or made is None or not read.alike(made):
            return ""
        wide = self.elements.sums == "i64"  # sums of 16 bits need that, real ones have 32
        fits = self.layer.kind == "eltwise" or {"i16": wide, "u8": not wide}.get(made.kind, True)
        plain = len(chain.operators) == (self.passing.kinds[self.names[0]] in FLOATS)  # no function but a dequantiser
        return made.kind if fits and plain and ends == (-np.inf, np.inf) else ""

    @property
    def interpolates(self) -> bool:
        """Whether it is a map of another size with the integers that it reads, or some between these."""
        return self.resized.integral or (self._kept == "u8" and self.resized.linear)

    def interpolated(self) -> Numbers:
        """Integers between those of a map; of unsigned ones sums are real numbers, which TFLite rounds a half up."""
        stored, eltwise, rest = self._kept, self.layer.kind == "eltwise", self._target()[0]
        sums = ("i64" if stored == "i16" else "i32") if eltwise else self.elements.sums
        sums = sums if self.resized.counts else "f32"
        nearest = {"double": "away", "single": "up", "even": "even"}[self.elements.rule]
        text = (
            f"certile_half_{nearest}(sum, {2 * int(np.log2(PARTS))})" if self.resized.counts else "floorf(sum + 0.5f)"
        )
        base = Numbers(
            stored, "i8", self.passing.stored(self.operator.name), sums, "i32", C_TYPES[sums],
            taken=(f"({C_TYPES[sums]})certile_get_{stored}({{place}})",) * len(self.names),
            finished=self._finished(f"{C_TYPES[sums]} sum", [], [f"float x = (float){text};"], rest),
        )  # fmt: skip
        return self.resized.scattered(base) if eltwise else self.resized.numbers(base)

    def of_maps(self, op: str) -> Numbers:
        """A function of quantised maps by whole numbers; of a sum, or the largest of unlike scales, by shares.

        Raises InputError for other functions, and maps that are no integers with one scale.
        """
        rule, product, extreme = self.elements.rule, op == "Mul", _EXTREMES.get(op)
        grids = [self._grid(name) for name in self.names]
        chains = [self.passing.before(name) for name in self.names]
        whole = all(g is not None for g in grids) and all(c.joined is None for c in chains)
        known = op in ("Add", "Sum", "Sub") or extreme or (product and len(grids) == 2)
        require(bool(known) and whole and len(grids) == len(self.operator.inputs), self.where,
                f"{op} of these operands computes in real numbers: use requantise float")  # fmt: skip
        found = [grid for grid in grids if grid is not None]
        scales, reaches, taken = [float(g.scale[0]) for g in found], [g.reach for g in found], list[str]()
        fits = not product or prod(reaches) <= limits("i32")[1]
        require(fits, self.where, "products of its operands may leave 32 bits: use requantise float")
        added = () if product or extreme else reaches
        kept, left = shares(scales, BYTES[self.passing.stored(self.names[0])], added)
        apart = product or (extreme is not None and len(set(scales)) == 1)
        seen = self._read_functions(exact=True)
        for k, (grid, name, (multiplier, shift)) in enumerate(zip(found, self.names, kept, strict=True)):
            value = f"certile_get_{self.passing.stored(name)}({{place}})"
            value = f"(int32_t)seen_{k}({value}, {{names}})" if seen[k] else value
            value = f"({value} - {grid.one_zero})"
            less = "-" if op == "Sub" and taken else ""
            shared = f"{less}(int32_t)certile_requantise_{rule}({value} * {1 << left}, {multiplier}, {shift})"
            taken.append(value if apart else shared)
        factor = np.array([scales[0] if apart else 2 * max(scales) / (1 << left)])
        factor = np.prod(np.array(scales, np.float32), keepdims=True) if product else factor
        tables, body, rest = self._by_multiplier(factor, "i32")
        return Numbers(
            self.passing.stored(self.names[0]), "i8", self.passing.stored(self.operator.name), "i32", "i32", "int32_t",
            combine=extreme or ("{row} *= {value};" if product else "{row} += {value};"),
            combine_first="{row} = {value};",
            finished=self._finished("int32_t sum", tables, body, rest), taken=tuple(taken), seen=tuple(seen),
        )  # fmt: skip

    def _target(self) -> tuple[tuple[Operator, ...], Grid | None, tuple[float, float]]:
        """The integers that a sum becomes, after functions that cut numbers off (their limits); what is left."""
        rest, lo, hi = self.passing.behind[self.operator.name], -np.inf, np.inf
        if (kind := self.passing.kinds[self.operator.name]) not in FLOATS:
            return rest, Grid(kind), (lo, hi)
        while rest and (ends := clip_of(self.model, self.model.node(rest[0].name))) is not None:
            lo, hi = (min(max(end, ends[0]), ends[1]) for end in (lo, hi))
            rest = rest[1:]
        node = self.model.node(rest[0].name) if rest else None
        target = grid_of(self.model, node) if node is not None and node.op == "QuantizeLinear" else None
        if target is None or target.axis is not None:
            return rest, None, (lo, hi)
        return rest[1:], target, (lo, hi)

    def _clipped(self, target: Grid, lo: float, hi: float) -> tuple[int, int]:
        """The smallest and the largest integer of a result that is cut off."""
        least, most = target.limits
        ends = [np.rint(np.float32(end) / target.scale[0]) + target.one_zero for end in (lo, hi)]
        return int(min(max(ends[0], least), most)), int(min(max(ends[1], least), most))

    def _by_channel(self, name: str, values: np.ndarray) -> tuple[list[str], str]:
        """One number, or a table by channel and the place in it."""
        if (values == values[0]).all():
            return [], literal(float(values[0]))
        return [floats_of(name, values)], f"{name}[{self._channel}]"
