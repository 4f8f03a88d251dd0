"""Kinds of numbers: what C calls them (certile_tile.h), what numpy does, and whether a machine's elements hold them.

Of quantised models an integer k stands for ``(k - zero) * scale``. A layer whose inputs are dequantised with one scale
sums products of integers less their zero points, exactly: what lies beyond the border of a map adds nothing, as its
real value is 0. A complete sum is multiplied by one float, ``scale of inputs * scale of weights / scale of results``
(for every channel where weights have one), clamped, rounded half to even, and the zero point is added: as ONNX says and
onnxruntime does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.onnx.graph import Node
from instances.onnx.model import OnnxModel, Quantised

#: numpy's names.
KINDS = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16",
    "float32": "f32",
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}
BYTES = {kind: int(kind[1:]) // 8 for kind in NAMES}
C_TYPES = {kind: f"{NAMES[kind]}_t" for kind in NAMES} | {"f16": "float", "f32": "float"}
#: Of maps that are quantised.
QUANTISED = ("u8", "i8", "u16", "i16")
FLOATS = ("f32", "f16")
QUANTISERS = ("QuantizeLinear", "DequantizeLinear")


def require(condition: object, where: str, said: str) -> None:
    """Raise InputError unless a condition holds."""
    if not condition:
        raise InputError(f"{where}: {said}: no C is written")


def dtype(kind: str) -> np.dtype:
    """Return numpy's type of a kind."""
    return np.dtype(NAMES[kind])


def limits(kind: str) -> tuple[int, int]:
    """Return the smallest and the largest integer of a kind."""
    found = np.iinfo(dtype(kind))
    return int(found.min), int(found.max)


@dataclass(frozen=True)
class Elements:
    """What maps of a model are held as on a machine."""

    machine: Machine
    quantised: bool
    """Whether the model quantises its maps: real numbers are never rounded to half precision then."""
    maps: str = ""
    """The type of the model's maps, as numpy calls it."""
    rule: str = "float"
    """How sums of integers become results (`solver.uses.emit.requantise`)."""

    def held(self, kind: str) -> str:
        """The kind in which layers hold a tensor; empty if the machine's elements have other bytes."""
        size = self.machine.in_bytes
        if kind not in FLOATS:
            return kind if kind in QUANTISED and BYTES[kind] == size else ""
        if self.quantised and BYTES[kind] != size:
            return ""
        return {4: "f32", 2: "f16"}.get(size, "")

    @property
    def sums(self) -> str:
        """The kind of sums of integers."""
        return "i64" if self.machine.psum_bytes > BYTES["i32"] else "i32"

    def said(self) -> str:
        """What maps and sums are held as, where that differs from the file."""
        if self.quantised:
            by = "" if self.rule == "float" else f", requantised by whole numbers ({self.rule})"
            return f"{self.maps}, sums of {NAMES[self.sums]}{by}"
        held = NAMES[self.held("f32")]
        rounded = f" (the file: {self.maps})" if self.maps not in ("", held) else ""
        return f"{held}{rounded}, sums of float32"

    @property
    def tolerance(self) -> float:
        """How far real results may be from those of another program that rounds otherwise, of the largest one."""
        halves = self.maps == "float16" or self.machine.out_bytes == BYTES["f16"]
        return 2e-2 if self.quantised else 5e-3 if halves else 1e-4

    def grid_around(self, values: np.ndarray) -> Grid | None:
        """The grid around 0 of signed integers of in_bytes that ends at the largest value; None if C has none.

        Of constants that stay real numbers in a quantised model: each is off by half a step of its own at most.
        """
        kind = {1: "i8", 2: "i16"}.get(self.machine.in_bytes)
        if kind is None:
            return None
        largest = float(np.abs(values).max(initial=0)) or 1.0
        return Grid(kind, np.array([largest / limits(kind)[1]], np.float32))

    def grid_held(self, found: Quantised) -> Grid | None:
        """The grid of a constant that the file has quantised, in integers of in_bytes; None if none hold it.

        Integers of another size keep their values, scale and zero point where they all fit.
        """
        least, most = (int(end) for end in (found.integers.min(initial=0), found.integers.max(initial=0)))
        own = KINDS.get(str(found.integers.dtype), "")
        kinds = [kind for kind in (own, *QUANTISED) if BYTES.get(kind) == self.machine.in_bytes]
        fits = [kind for kind in kinds if limits(kind)[0] <= least and most <= limits(kind)[1]]
        if not fits or found.scale.dtype != np.float32 or not (found.scale >= np.finfo(np.float32).tiny).all():
            return None
        return Grid(fits[0], found.scale, found.zero.astype(np.int64), found.axis)

    def check(self, weights: str) -> None:
        """Raise InputError unless the machine counts elements as a quantised model has them (numpy's names)."""
        machine, maps = self.machine, self.maps
        size = {"maps": BYTES.get(KINDS.get(maps, ""), 0), "weights": BYTES.get(KINDS.get(weights, ""), 0)}
        if KINDS.get(maps) not in QUANTISED:
            raise InputError(f"the model is quantised, its maps are of {maps or 'an unknown type'}: no C is written")
        wanted: Mapping[str, tuple[int, ...]] = {
            "in_bytes": (size["maps"],), "out_bytes": (size["maps"],), "psum_bytes": (4, 8), "bias_bytes": (4, 0, 8),
            "w_bytes": (size["weights"],) if size["weights"] else (machine.w_bytes,),
        }  # fmt: skip
        has = {name: getattr(machine, name) for name in wanted}
        wrong = [name for name, accepted in wanted.items() if has[name] not in accepted]
        if wrong:
            said = ", ".join(f"{name} {has[name]}" for name in wrong)
            options = " ".join(f"--set {name}={wanted[name][0]}" for name in wrong)
            what = f"maps of {maps}, weights of {weights or 'maps'} and sums of int32 or int64"
            raise InputError(f"machine {machine.name}: for {what} it has {said}: plan with {options}")


# ---- grids of integers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grid:
    """The real numbers that the integers of a kind stand for; scales and zero points along an axis, or one of each.

    By default integers stand for themselves.
    """

    kind: str
    scale: np.ndarray = field(default_factory=lambda: np.ones(1, np.float32))
    zero: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    axis: int | None = None

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        return limits(self.kind)

    @property
    def one_zero(self) -> int:
        """The zero point, where there is one."""
        return int(self.zero[0])

    def alike(self, other: Grid) -> bool:
        """Whether integers stand for the same numbers there; both have one scale."""
        return (self.kind, self.scale[0], self.one_zero) == (other.kind, other.scale[0], other.one_zero)

    @property
    def reach(self) -> int:
        """How far integers are from the zero point at most."""
        return max(abs(end - self.one_zero) for end in self.limits)


def grid_of(model: OnnxModel, node: Node) -> Grid:
    """Return what a QuantizeLinear or DequantizeLinear says of its integers.

    Raises InputError if that depends on the data, or differs between blocks.
    """
    where = f"operator {node.label} ({node.op})"
    known = all(model.is_constant(node.input(k)) for k in (1, 2) if node.input(k))
    require(known, where, "its scale depends on the data")
    scale = model.constant(node.input(1)).astype(np.float32)
    zero = model.constant(node.input(2)) if node.input(2) else np.zeros(1, node.element("output_dtype", "uint8"))
    require(scale.ndim < 2 and not node.integer("block_size", 0), where, "a scale for every block")
    name = str(zero.dtype)
    require(name in KINDS and zero.dtype.kind in "iu", where, f"elements of {name}")
    along = node.integer("axis", 1) if scale.size > 1 else None
    zeros = np.broadcast_to(zero.reshape(-1).astype(np.int64), scale.size)
    return Grid(KINDS[name], scale.reshape(-1), zeros, along)


def rounded(values: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the integers of real numbers on a grid."""
    along = [1] * values.ndim
    if grid.axis is not None:
        along[grid.axis] = -1
    scale, zero = (x.reshape(along) if grid.axis is not None else x[0] for x in (grid.scale, grid.zero))
    found = np.rint(values.astype(np.float32) / scale) + zero
    return np.asarray(np.clip(found, *grid.limits), dtype(grid.kind))
