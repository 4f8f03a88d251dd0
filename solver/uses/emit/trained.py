"""The constant weights and biases of a model's layers, as the machine's layout and elements have them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.operators import Conv, MatMul, Operator
from instances.network.workload import Layer
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel, Quantised
from solver.uses.emit.kinds import BYTES, KINDS, Elements, Grid, dtype, limits
from solver.uses.emit.pointwise import by_channel, require
from solver.uses.emit.values import storage_order


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


@dataclass(frozen=True)
class Training:
    """The constants of a layer in the file."""

    model: OnnxModel
    elements: Elements
    operator: Operator
    layer: Layer

    @property
    def where(self) -> str:
        """Which layer."""
        return f"layer {self.layer.name}"

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.elements.machine

    def read(self, grid: Grid | None, bias: str) -> Trained:
        """Return them; `grid` is that of the input of a layer that computes exactly, `bias` the kind of biases.

        Raises InputError if they are not known, or not as the layer needs them.
        """
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
            return self._integers(quantised, swapped, times, real, grid, bias)
        require(grid is None, self.where, "its input is quantised, its weights are not: quantise them, too (as QDQ)")
        weights = self.model.constant(node.input(1))
        weights = (weights.T if swapped else weights).reshape(channels, -1)
        if (times != 1).any():  # double precision takes twice the room of weights, which may be all there is
            weights = weights.astype(np.float64) * times[:, None]
        kind = {2: "f16", 4: "f32"}.get(self.machine.w_bytes, "")
        require(kind, self.where, f"weights of float32, and the machine has w_bytes {self.machine.w_bytes}")
        return Trained(self._laid_out(weights, dtype(kind)), real.astype(dtype(bias)))

    def _laid_out(self, weights: np.ndarray, element: np.dtype) -> np.ndarray:
        """Weights by channel in the machine's layout."""
        layer = self.layer
        shaped = weights.reshape(layer.g, layer.m, layer.n, layer.kh, layer.kw)
        order = ["gmnij".index(d) for d in storage_order("W", self.machine)]
        return shaped.transpose(order).astype(element).ravel()

    def _integers(
        self, found: Quantised, swapped: bool, times: np.ndarray, real: np.ndarray, grid: Grid | None,
        bias: str,
    ) -> Trained:  # fmt: skip
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
        unit = scale.astype(np.float64) * (float(grid.scale[0]) if grid is not None else 1.0)
        if grid is None:
            return Trained(laid_out, (real / unit).astype(dtype(bias)), kind, scale, zero)
        addend = np.rint(real / unit)
        self._fits(weights.astype(np.float64) - zero[:, None], addend, grid, bias)
        return Trained(laid_out, addend.astype(dtype(bias)), kind, scale, zero)

    def _fits(self, weights: np.ndarray, addend: np.ndarray, grid: Grid, bias: str) -> None:
        """Refuse a layer whose sums may leave the integers in which they are taken."""
        lo, hi = limits(grid.kind)
        reach = max(abs(lo - grid.one_zero), abs(hi - grid.one_zero))
        most = float((np.abs(weights).sum(axis=1) * reach + np.abs(addend)).max())
        largest = limits(self.elements.sums)[1]
        if most > largest or (np.abs(addend) > limits(bias)[1]).any():
            said = f"sums may reach {most:,.0f}, integers of psum_bytes {self.machine.psum_bytes} {largest:,}"
            raise InputError(f"{self.where}: {said}: plan with --set psum_bytes=8, or scales that are larger")
