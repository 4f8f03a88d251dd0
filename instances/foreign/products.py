"""Layers as other tools write them: a sum of products over named dimensions, classified by who depends on what.

``OUT[o..] += A[a..] * B[b..]``, where every axis of an operand is a dimension, or a window ``s*p + d*k`` of two.

=======================================  ==============================================================
a dimension of                           is
=======================================  ==============================================================
OUT and the operand with windows, p      r (the first window), c (the second); s is the stride
the operand with windows and W only, k   i, j; d is the dilation
OUT, IN and W                            g
OUT and W                                m
IN and W                                 n
OUT and IN, in no window                 b if it is named B or N, else r, then c (matmul, 1x1 convolution)
=======================================  ==============================================================

IN is the operand with windows; where there is none, the other one than that named W, Weights or B, else the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from instances.errors import InputError
from instances.network.workload import DIMS, Layer

#: Terms of an axis: dimension and coefficient.
Axis = tuple[tuple[str, int], ...]
_WEIGHTS = frozenset(("w", "weight", "weights", "b", "filter", "filters", "constant"))
_BATCH = frozenset(("b", "n", "batch"))


@dataclass(frozen=True)
class Workload:
    """A layer, and what its dimensions and operands are called elsewhere."""

    layer: Layer
    dims: Mapping[str, str] = field(default_factory=dict)
    """Name elsewhere -> one of `DIMS`."""
    operands: Mapping[str, str] = field(default_factory=dict)
    """Name elsewhere -> IN, W or OUT."""
    kind: str = ""
    """What the other tool calls the kind of layer; mappings may be written for a kind."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Product:
    """A sum of products."""

    name: str
    sizes: Mapping[str, int]
    output: tuple[str, tuple[Axis, ...]]
    inputs: Mapping[str, tuple[Axis, ...]]
    pads: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By the dimension p of a window: padding before and after."""
    kind: str = ""
    notes: tuple[str, ...] = ()

    def workload(self) -> Workload:
        """Return the layer; raises InputError if it is none that certile knows."""
        if len(self.inputs) != 2:
            raise InputError(f"layer {self.name}: {len(self.inputs)} operands are multiplied, layers have two")
        for operand, axes in (self.output, *self.inputs.items()):
            for dim in _dims_of(axes):
                if dim not in self.sizes:
                    raise InputError(f"layer {self.name}: {operand} depends on {dim}, which is none of its dimensions")
        source, weights = self._roles()
        dims = dict(self._classified(source, weights))
        free = iter(dim for dim in DIMS if dim not in dims.values())
        dims |= {name: next(free) for name, size in self.sizes.items() if name not in dims and size == 1}
        known = list(dims.values())
        for dim in DIMS:
            if known.count(dim) > 1:
                twice = [name for name, one in dims.items() if one == dim]
                raise InputError(f"layer {self.name}: {' and '.join(twice)} are both {_MEANS[dim]}; a layer has one")
        for name, size in self.sizes.items():
            if name not in dims and size != 1:
                raise InputError(f"layer {self.name}: no operand depends on dimension {name}")
        operands = {source: "IN", weights: "W", self.output[0]: "OUT"}
        return Workload(self._layer(dims, source), dims, operands, self.kind, self.notes)

    def _roles(self) -> tuple[str, str]:
        """The names of IN and W."""
        names = list(self.inputs)
        windows = [name for name in names if any(len(axis) > 1 for axis in self.inputs[name])]
        if len(windows) > 1:
            raise InputError(f"layer {self.name}: {' and '.join(windows)} both slide; one operand of a layer does")
        plain = next((name for name in names if name.lower() not in _WEIGHTS), names[0])
        source = windows[0] if windows else plain
        return source, next(name for name in names if name != source)

    def _classified(self, source: str, weights: str) -> Iterator[tuple[str, str]]:
        """Every dimension with what it is."""
        out = set(_dims_of(self.output[1]))
        moving, constant = set(_dims_of(self.inputs[source])), set(_dims_of(self.inputs[weights]))
        rows = iter("rc")
        taken = set[str]()
        for axis in self.inputs[source]:
            if len(axis) == 1 and axis[0][1] == 1:
                continue
            row = next(rows, None)
            if row is None or len(axis) > 2:
                raise InputError(f"layer {self.name}: {source} slides along more than two axes, or over more than two")
            for dim, _ in axis:
                taken.add(dim)
                yield dim, row if dim in out else {"r": "i", "c": "j"}[row]
            if sum(dim in out for dim, _ in axis) != 1:
                said = " + ".join(dim for dim, _ in axis)
                raise InputError(f"layer {self.name}: window {said} needs one dimension of the output")
        classes = {
            (True, True, True): "g", (True, False, True): "m", (False, True, True): "n",
        }  # fmt: skip
        for dim in (dim for dim in self.sizes if dim not in taken):
            where = dim in out, dim in moving, dim in constant
            if where in classes:
                yield dim, classes[where]
            elif where == (True, True, False):
                yield dim, "b" if dim.lower() in _BATCH else next(rows, "b")
            elif any(where) and self.sizes[dim] > 1:
                names = [n for n, there in zip((self.output[0], source, weights), where, strict=True) if there]
                raise InputError(f"layer {self.name}: only {names[0]} depends on dimension {dim}")

    def _layer(self, dims: Mapping[str, str], source: str) -> Layer:
        """The layer, without padding unless it is stated."""
        size = dict.fromkeys(DIMS, 1) | {one: self.sizes[name] for name, one in dims.items()}
        steps = {"r": 1, "c": 1, "i": 1, "j": 1}
        pads = {"r": (0, 0), "c": (0, 0)}
        for axis in self.inputs[source]:
            steps |= {dims[dim]: coefficient for dim, coefficient in axis if dims[dim] in steps}
            pads |= {dims[dim]: self.pads[dim] for dim, _ in axis if dim in self.pads}
        if not any(one in "cij" for one in dims.values()) and size["b"] == 1 and steps["r"] == 1:
            return Layer.matmul(
                self.name, rows=size["r"], inner=size["n"], cols=size["m"], batch=size["g"], activation=size["g"] > 1
            )
        long = {}
        for d, k in (("r", "i"), ("c", "j")):
            long[d] = (size[d] - 1) * steps[d] + (size[k] - 1) * steps[k] + 1 - sum(pads[d])
        if min(long.values()) < 1:
            raise InputError(f"layer {self.name}: its padding leaves no input")
        try:
            return Layer.conv(
                self.name, channels=size["g"] * size["n"], filters=size["g"] * size["m"], size=(long["r"], long["c"]),
                kernel=(size["i"], size["j"]), stride=(steps["r"], steps["c"]), dilation=(steps["i"], steps["j"]),
                pad=(pads["r"][0], pads["c"][0], pads["r"][1], pads["c"][1]), groups=size["g"], batch=size["b"],
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"layer {self.name}: {' '.join(str(error).split())}") from None


_MEANS = {
    "b": "batch", "g": "groups", "m": "output channels", "n": "input channels", "r": "output rows",
    "c": "output columns", "i": "kernel rows", "j": "kernel columns",
}  # fmt: skip


def _dims_of(axes: Sequence[Axis]) -> Iterator[str]:
    return (dim for axis in axes for dim, _ in axis)


def size_of(value: object, where: str) -> int:
    """Return a size; raises InputError unless it is an integer of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise InputError(f"{where}: {value!r} is no size, a positive integer is needed")
    return value
