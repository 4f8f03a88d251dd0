"""What a model's layers compute: weights in the machine's layout, biases, poolings, and what becomes of a result.

Element-wise functions behind a layer belong to it as long as nobody else reads what lies between: the layer applies
them when a result is complete. Those that layers alone read are applied by their readers. Batch norms and sums with a
constant for every channel that the reader of the file has folded into a convolution or product are in its weights and
bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from instances.errors import InputError
from instances.machine import Machine
from instances.onnx_graph import Node
from instances.onnx_model import OnnxModel
from instances.operators import Conv, Eltwise, MatMul, Operator, Pool
from instances.stores import inputs_of
from instances.workload import Layer
from solver.emit.frame import storage_order
from solver.emit.numbers import Numbers, floats
from solver.emit.pointwise import BINARY, by_channel, require, stage
from solver.emit.text import function, identifier
from solver.emit.values import Value

_LAYERS = frozenset(
    """Conv Gemm MatMul MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax Add Sum Mul Sub Div
    Max Min Mean""".split()
)


@dataclass
class Meaning:
    """A model on a machine."""

    model: OnnxModel
    machine: Machine
    values: Mapping[str, Value] = field(default_factory=dict)
    """Where operators' tensors lie off the chip; filled while they are arranged."""

    @cached_property
    def results(self) -> frozenset[str]:
        """Operators whose tensors are results of the model."""
        return frozenset(self.model.makers[t] for t in self.model.outputs if t in self.model.makers)

    @cached_property
    def behind(self) -> Mapping[str, tuple[Eltwise, ...]]:
        """By layer the element-wise operators that it applies to its results."""
        network = self.model.network
        readers: dict[str, list[Operator]] = {o.name: [] for o in network.operators}
        for operator in network.operators:
            for name in operator.inputs:
                readers[name].append(operator)
        chains: dict[str, tuple[Eltwise, ...]] = {}
        for operator in network.operators:
            if operator.layer(network.input_shapes(operator)) is None:
                continue
            chain: list[Eltwise] = []
            last: Operator = operator
            while len(readers[last.name]) == 1 and last.name not in self.results:
                follower = readers[last.name][0]
                alone = isinstance(follower, Eltwise) and len(follower.inputs) == 1
                coordinates = ["0"] * len(follower.shape)
                if not alone or stage(self.model, follower, "t", coordinates) is None:  # type: ignore[arg-type]
                    break
                chain.append(follower)  # type: ignore[arg-type]
                last = follower
            chains[operator.name] = tuple(chain)
        return chains

    @cached_property
    def applied(self) -> frozenset[str]:
        """All operators that layers apply."""
        return frozenset(o.name for chain in self.behind.values() for o in chain)

    @cached_property
    def read(self) -> frozenset[str]:
        """Element-wise operators that their readers apply: all of them are layers, or such operators themselves."""
        network, found = self.model.network, set[str]()
        readers: dict[str, list[Operator]] = {o.name: [] for o in network.operators}
        for operator in network.operators:
            for name in operator.inputs:
                readers[name].append(operator)
        for operator in reversed(network.operators):
            if not isinstance(operator, Eltwise) or len(operator.inputs) != 1 or not readers[operator.name]:
                continue
            if operator.name in self.applied | self.results or not all(
                reader.name in found or self._takes(reader, operator.name) for reader in readers[operator.name]
            ):
                continue
            if stage(self.model, operator, "t", ["0"] * len(operator.shape)) is not None:
                found.add(operator.name)
        return frozenset(found)

    def _takes(self, reader: Operator, name: str) -> bool:
        """Whether a layer reads an operator's result as an input."""
        layer = reader.layer(self.model.network.input_shapes(reader))
        return layer is not None and name in inputs_of(self.model.network, reader, layer)

    def before(self, name: str) -> tuple[Eltwise, ...]:
        """The operators that a reader of `name` applies, in their order."""
        chain: list[Eltwise] = []
        while name in self.read:
            operator = self.model.network.operator(name)
            assert isinstance(operator, Eltwise)
            chain.insert(0, operator)
            name = operator.inputs[0]
        return tuple(chain)

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def numbers(self, operator: Operator, layer: Layer) -> Numbers:
        """How a layer computes.

        Raises
        ------
        InputError
            For an operator that C is not written of.
        """
        node = self.model.node(operator.name)
        where = f"layer {layer.name} ({node.op})"
        require(node.op in _LAYERS, where, "its arithmetic is not known")
        made = floats(self.machine)
        lines: list[str] = []
        if isinstance(operator, Pool):
            made, lines = self._pool(operator, layer, node, made)
        elif isinstance(operator, Eltwise):
            made, lines = self._eltwise(operator, layer, node, made)
        tables, statements = self._behind(operator, layer)
        body = [*lines, *statements]
        made = made.with_meaning(seen=self._seen(operator, layer))
        if not body:
            return made
        unused = ["(void)b, (void)g, (void)m, (void)r, (void)c;"]
        given = ["float x", *(f"int {d}" for d in "bgmrc")]
        text = [*tables, "/* What a complete sum becomes. */",
                *function("static inline float finished", given, [*unused, *body, "return x;"])]  # fmt: skip
        return made.with_meaning(finished=tuple(text))

    def _seen(self, operator: Operator, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """By input the function that the layer applies to what it reads; empty where there is none."""
        found: list[tuple[str, ...]] = []
        for k, name in enumerate(inputs_of(self.model.network, operator, layer)):
            tables, statements = [], []
            for number, one in enumerate(self.before(name)):
                made = stage(self.model, one, f"seen_{k}_{number}", coordinates_in(operator, one, layer))
                assert made is not None
                tables += made.lines()
                statements += [f"/* {identifier(one.name)} */", *made.statements]
            given = ["float x", "int b", "int g", "int n", "int row", "int column"]
            body = ["(void)b, (void)g, (void)n, (void)row, (void)column;", *statements, "return x;"]
            text = [
                *tables,
                "/* What an input is taken as. */",
                *function(f"static inline float seen_{k}", given, body),
            ]
            found.append(tuple(text) if statements else ())
        return tuple(found) if any(found) else ()

    def _behind(self, operator: Operator, layer: Layer) -> tuple[list[str], list[str]]:
        tables, statements = [], []
        for k, follower in enumerate(self.behind[operator.name]):
            made = stage(self.model, follower, f"stage_{k}", coordinates_of(follower, layer))
            assert made is not None
            tables += made.lines()
            statements += [f"/* {identifier(follower.name)} */", *made.statements]
        return tables, statements

    def _pool(self, operator: Pool, layer: Layer, node: Node, numbers: Numbers) -> tuple[Numbers, list[str]]:
        if operator.fn in ("max", "global_max"):
            return numbers.with_meaning(start="-INFINITY", combine="{row} = certile_fmax({row}, {value});"), []
        if operator.fn == "global_avg":
            return numbers, [f"x /= {layer.kh * layer.kw};"]
        ends = "+ {pad}" if node.integer("count_include_pad", 0) else ""
        first = "{start}" if node.integer("count_include_pad", 0) else "certile_max({start}, 0)"
        require(layer.dilation_h == layer.dilation_w == 1, f"layer {layer.name}", "an average over a dilated window")
        lines = []
        for name, d, stride, pad, taps, size, behind in (
            ("rows", "r", layer.stride_h, layer.pad_top, layer.kh, layer.h, operator.pad[2]),
            ("columns", "c", layer.stride_w, layer.pad_left, layer.kw, layer.l, operator.pad[3]),
        ):
            start = f"{d} * {stride} - {pad}"
            end = f"certile_min({start} + {taps}, {size} {ends.format(pad=behind)})"
            lines.append(f"const int {name} = {end} - ({first.format(start=start)});")
        return numbers, [*lines, "x /= (float)(rows * columns);"]

    def _eltwise(self, operator: Eltwise, layer: Layer, node: Node, numbers: Numbers) -> tuple[Numbers, list[str]]:
        """Operands of the full shape are inputs of the layer; others are read where they lie off the chip."""
        op = {"Mean": "Sum"}.get(node.op, node.op)
        require(op in BINARY, f"layer {layer.name}", f"{node.op} of several tensors")
        combine = "{{ const float x = {row}, y = {value}; {row} = " + BINARY[op] + "; }}"
        made = numbers.with_meaning(combine=combine, combine_first="{row} = {value};")
        full = inputs_of(self.model.network, operator, layer)
        names = [t for t in node.proto.input if t]
        sources = [self.model.makers.get(t, "") for t in names]
        lines = []
        coordinates = coordinates_of(operator, layer)
        for tensor, source in zip(names, sources, strict=True):
            if source in full:
                continue
            swapped = op in ("Sub", "Div") and names.index(tensor) == 0
            expression = BINARY[op].translate(str.maketrans("xy", "yx")) if swapped else BINARY[op]
            if not source:
                raise InputError(f"layer {layer.name}: several tensors and a constant: no C is written")
            value = self.values[source].broadcast(operator.shape)
            terms = [f"({at}) * {pitch}" for at, pitch in zip(coordinates, value.pitch, strict=True) if pitch]
            place = f"({' + '.join([*terms, str(value.offset)])})"
            lines.append(f"{{ const float y = certile_get_f32({value.array} + {place} * 4); x = {expression}; }}")
        if node.op == "Mean":
            lines.append(f"x /= {len(names)};")
        return made, lines

    # ---- weights ---------------------------------------------------------------------------------------------------

    def weights(self, operator: Operator, layer: Layer) -> np.ndarray:
        """The weights of a layer, one after the other as the machine's layout has them."""
        return self._trained(operator, layer)[0]

    def bias(self, operator: Operator, layer: Layer) -> np.ndarray:
        """The biases of a layer by group and channel."""
        return self._trained(operator, layer)[1]

    def _trained(self, operator: Operator, layer: Layer) -> tuple[np.ndarray, np.ndarray]:
        node, channels = self.model.node(operator.name), layer.g * layer.m
        if isinstance(operator, Conv) and node.op == "Conv":
            weights = self.model.constant(node.input(1)).astype(np.float64)
            bias = self.model.constant(node.input(2)).astype(np.float64) if node.input(2) else np.zeros(channels)
        elif isinstance(operator, MatMul) and node.op in ("Gemm", "MatMul"):
            weights, bias = self._matrix(node, channels)
        else:
            raise InputError(f"layer {layer.name} ({node.op}): its weights are not known: no C is written")
        weights = weights.reshape(channels, -1)
        factor = np.ones(channels)
        for behind in self.model.folded.get(operator.name, ()):
            factor, bias = by_channel(self.model, Node(behind), factor, bias)
        weights = weights * factor[:, None]
        shaped = weights.reshape(layer.g, layer.m, layer.n, layer.kh, layer.kw)
        order = ["gmnij".index(d) for d in storage_order("W", self.machine)]
        return shaped.transpose(order).astype(np.float32).ravel(), bias.astype(np.float32).ravel()

    def _matrix(self, node: Node, channels: int) -> tuple[np.ndarray, np.ndarray]:
        right = self.model.constant(node.input(1)).astype(np.float64)
        bias = np.zeros(channels)
        if node.op == "MatMul":
            return right.T, bias
        right = right if node.integer("transB", 0) else right.T
        if node.input(2):
            added = self.model.constant(node.input(2)).astype(np.float64)
            bias = np.broadcast_to(added.reshape(-1), channels) * node.number("beta", 1.0)
        return right * node.number("alpha", 1.0), bias


def coordinates_of(operator: Operator, layer: Layer) -> Sequence[str]:
    """Return the place of the result b, g, m, r, c along every axis of an operator's tensor, as C texts."""
    shape = operator.shape
    if len(shape) == 4 and layer.kind != "matmul":
        return "b", f"g * {layer.m} + m" if layer.m > 1 else "g", "r", "c"
    last = "g" if layer.kind == "eltwise" else "m"
    lead = shape[:-1]
    if layer.kind == "matmul" and layer.g > 1:
        found = [f"g / {prod(shape[k + 1 : -2])} % {size}" for k, size in enumerate(shape[:-2])]
        return *found, "r", last
    return *(f"r / {prod(lead[k + 1 :])} % {size}" for k, size in enumerate(lead)), last


def coordinates_in(operator: Operator, source: Operator, layer: Layer) -> Sequence[str]:
    """Return the place of the input b, g, n, row, column along every axis of the tensor that a layer reads."""
    shape = source.shape
    if layer.kind != "matmul" and len(shape) == 4:
        return "b", f"g * {layer.n} + n" if layer.n > 1 else "g", "row", "column"
    if layer.kind == "matmul" and len(operator.inputs) > 1:
        lead = [f"g / {prod(shape[k + 1 : -2])} % {size}" for k, size in enumerate(shape[:-2])]
        swapped = isinstance(operator, MatMul) and operator.transpose_a
        return *lead, *(("n", "row") if swapped else ("row", "n"))
    last = "g" if layer.kind == "eltwise" else "n"
    return *(f"row / {prod(shape[k + 1 : -1])} % {size}" for k, size in enumerate(shape[:-1])), last
