"""What a model's layers compute: weights in the machine's layout, biases, poolings, and what becomes of a result.

`solver.uses.emit.passing` says which functions between layers they apply, `solver.uses.emit.arithmetic` how one layer
computes. Batch norms and sums with a constant for every channel that the reader of the file has folded into a
convolution or product are in its weights and bias.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.blocks import in_blocks
from instances.network.operators import Eltwise, Operator, Pool, Resample
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel
from solver.uses.emit.arithmetic import Arithmetic, Trained
from solver.uses.emit.kinds import KINDS, NAMES, QUANTISED, QUANTISERS, Elements, grid_of, require
from solver.uses.emit.numbers import Numbers, floats
from solver.uses.emit.passing import Passing
from solver.uses.emit.pointwise import BINARY
from solver.uses.emit.requantise import check_rule
from solver.uses.emit.several import Gridded, cell, is_cell, is_gridded
from solver.uses.emit.states import paired

LAYERS = frozenset(
    """Conv Gemm MatMul Einsum MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax ReduceSum
    ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum Add Sum Mul Sub
    Div Max Min Mean GridSample certile.Resample""".split()
)
#: Reductions that are no means: what a sum begins with, how it goes on, and what becomes of it.
_SUMS: dict[str, tuple[str, str, list[str]]] = {
    "ReduceSum": ("0", "{row} += {value};", []),
    "ReduceMin": ("INFINITY", "{row} = certile_fmin({row}, {value});", []),
    "ReduceL1": ("0", "{row} += fabsf({value});", []),
    "ReduceL2": ("0", "{{ const float seen = {value}; {row} += seen * seen; }}", ["x = sqrtf(x);"]),
    "ReduceSumSquare": ("0", "{{ const float seen = {value}; {row} += seen * seen; }}", []),
    "ReduceLogSum": ("0", "{row} += {value};", ["x = logf(x);"]),
}


@dataclass
class Meaning:
    """A model on a machine."""

    model: OnnxModel
    machine: Machine
    rule: str | None = None
    """How sums of integers become results (`solver.uses.emit.requantise`); by default as the machine says, or, if that
    has floats, as those do who run such files."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Inputs that are results of the call before (`solver.uses.emit.states`)."""
    _trained: dict[str, Trained] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.states = self.states or self.model.file.states

    @cached_property
    def elements(self) -> Elements:
        """What maps are held as; raises InputError as `counted`, or if scales depend on the data."""
        for node in self.model.origin.values():
            check_scale(Node(node))
        return self.counted()

    def counted(self) -> Elements:
        """The same, whatever scales depend on."""
        quantised = any(node.op_type in QUANTISERS for node in self.model.origin.values())
        rule = check_rule(self.rule or (self._rule() if quantised else "float"))
        found = Elements(self.machine, quantised, self._maps() if quantised else self.model.network.map_type, rule)
        require(quantised or rule == "float", f"requantise {rule}", "the model is not quantised")
        if quantised:
            found.check(self.model.network.weight_type)
        else:
            floats(self.machine)
        return found

    def _rule(self) -> str:
        stated = self.machine.requantise
        return (stated if stated != "float" else self.model.file.rule) or stated

    def _maps(self) -> str:
        """The type of a quantised model's maps: of most products, or if these read none, of what is quantised first."""
        stated = self.model.network.map_type
        if KINDS.get(stated) in QUANTISED:
            return stated
        nodes = (Node(node) for node in self.model.origin.values() if node.op_type == "QuantizeLinear")
        return next((NAMES[grid_of(self.model, node).kind] for node in nodes), stated)

    def check(self) -> Elements:
        """Raise InputError if the machine's elements cannot hold the model's, or its maps, or its states are none."""
        paired(self.model, self.states)
        if (block := self.machine.channel_block) > 1 and in_blocks(self.model.network, block) != self.model.network:
            raise InputError(
                f"machine {self.machine.name}: channels in blocks of {block}, which C of a model does not have: "
                "plan with --set channel_block=1"
            )
        return self.elements

    @cached_property
    def passing(self) -> Passing:
        """The functions between layers."""
        return Passing(self.model, self.elements)

    @property
    def result_kinds(self) -> list[str]:
        """The kinds of the model's results that operators make."""
        return [KINDS[self.model.element(tensor)] for tensor in self.model.outputs if tensor in self.model.results]

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def trained(self, operator: Operator, layer: Layer) -> Trained:
        """The constant weights and biases of a layer."""
        if layer.name not in self._trained:
            self._trained[layer.name] = Arithmetic(self.passing, operator, layer).constants()
        return self._trained[layer.name]

    def numbers(self, operator: Operator, layer: Layer) -> Numbers:
        """How a layer computes; raises InputError for an operator that C is not written of."""
        node = self.model.node(operator.name)
        where = f"layer {layer.name} ({node.op})"
        require(node.op in LAYERS, where, "its arithmetic is not known")
        trained = self.trained(operator, layer) if layer.weights == "constant" else None
        made = Arithmetic(self.passing, operator, layer, trained)
        made.require_held()
        if isinstance(operator, Resample) and not is_gridded(operator) and made.interpolates:
            return made.interpolated()
        base = made.single() if made.grid is None else made.whole()
        lines: list[str] = []
        divisor = 1
        if isinstance(operator, Pool):
            base, lines, divisor = _pool(operator, layer, node, base)
        elif isinstance(operator, Resample) and is_gridded(operator):
            base = Gridded(operator, node).numbers(base)
        elif isinstance(operator, Resample):
            base = made.resized.scattered(base) if layer.kind == "eltwise" else made.resized.numbers(base)
        elif is_cell(self.model, operator):
            base = cell(self.model, operator, layer, base)
        elif isinstance(operator, Eltwise) and made.elements.rule != "float":
            return made.of_maps(node.op)
        elif isinstance(operator, Eltwise):
            base, lines = self._eltwise(layer, node, base)
        return made.reading(made.finished(base, lines, divisor))

    def _eltwise(self, layer: Layer, node: Node, numbers: Numbers) -> tuple[Numbers, list[str]]:
        """A function of several inputs: the first one, then each with what came of those before."""
        op = {"Mean": "Sum"}.get(node.op, node.op)
        require(op in BINARY, f"layer {layer.name}", f"{node.op} of several tensors")
        both = re.sub(r"\by\b", "seen", re.sub(r"\bx\b", "{row}", BINARY[op]))
        combine = f"{{{{ const float seen = {{value}}; {{row}} = {both}; }}}}"
        numbers = replace(numbers, combine=combine, combine_first="{row} = {value};")
        names = [t for t in node.proto.input if t]
        known = all(t in self.model.makers for t in names)
        require(known, f"layer {layer.name}", "several tensors and a constant")
        return numbers, [f"x /= {len(names)};"] if node.op == "Mean" else []


def check_scale(node: Node) -> None:
    """Raise InputError for a node whose scale depends on the data."""
    require("Dynamic" not in node.op, f"operator {node.label} ({node.op})", "its scale depends on the data")


def _pool(operator: Pool, layer: Layer, node: Node, numbers: Numbers) -> tuple[Numbers, list[str], int]:
    """Numbers of a pooling, lines that make a mean of a sum, and a constant that a sum is divided by."""
    if node.op in _SUMS:
        start, combine, lines = _SUMS[node.op]
        plain = node.op == "ReduceSum" or numbers.total == "float"
        require(plain, f"layer {layer.name} ({node.op})", "a reduction of integers")
        return replace(numbers, start=start, combine=combine), lines, 1
    if operator.fn in ("max", "global_max"):
        if numbers.total == "float":
            return replace(numbers, start="-INFINITY", combine="{row} = certile_fmax({row}, {value});"), [], 1
        combine = f"{{{{ const {numbers.total} seen = {{value}}; {{row}} = {{row}} < seen ? seen : {{row}}; }}}}"
        return replace(numbers, start="INT32_MIN", combine=combine), [], 1
    if operator.fn == "global_avg":
        taps = layer.kh * layer.kw
        return (numbers, [f"x /= {taps};"], 1) if numbers.total == "float" else (numbers, [], taps)
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
    return numbers, [*lines, "x /= (float)(rows * columns);"], 1
