"""One layer as an affine loop nest: the workload that every formulation plans.

Every layer kind is the same seven-line loop (sizes are per group):

    for b, g, m, n, r, c, i, j in B x G x M x N x R x C x K_h x K_w:
        OUT[b, g, m, r, c] += W[g, m, n, i, j] * IN[b, g, n, S_h*r + D_h*i - P_h, S_w*c + D_w*j - P_w]

=============  ==========================================================================
kind           how it fits
=============  ==========================================================================
conv           as written; depthwise is ``m = n = 1`` with ``g`` channels
matmul         OUT[r, m] = IN[r, n] * W[n, m] with ``c = kh = kw = 1``; a batched product of
               two activations has one group per product and ``weights = "activation"``
pool           depthwise without weights
resample       a pool with ``m`` results for every window: a map of another size
eltwise        a 1x1 pool over ``inputs`` operands; one that is `broadcast` along a dimension has one element
               there: OUT[b, g, r, c] += IN_k[b, g, r, c] with 0 in the place of these indices
correlation    OUT[b, r, c, i, j] += W[b, n, r, c] * IN[b, n, S_h*r + D_h*i - P_h, S_w*c + D_w*j - P_w]: every
               pixel of one map against its neighbours in the other; the displacements i, j are not summed over
=============  ==========================================================================

Only problem mesh plans a correlation (`instances.network.ndrange` has its operands).

Letters follow the source papers (`tso_burst_slicing` section II; `optimal_tiling_dma` section 2):
N input channels, M output channels, R x C output map, H x L input map, K kernel, S stride.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from instances.errors import InputError
from instances.frozen import Sparse

#: The largest extent that problems list sizes of: more would take gigabytes, and no layer of a network comes near.
LONGEST = 2**20

#: The dimensions that a nest may tile, in the canonical order of reports.
DIMS: tuple[str, ...] = ("b", "g", "m", "n", "r", "c", "i", "j")
#: The dimensions that are summed over.
REDUCTION: frozenset[str] = frozenset({"n", "i", "j"})
#: The dimensions along which an input may have one element only.
BROADCAST = "bgrc"
#: Where the extents of a dimension stand that are not called alike.
_FIELDS = {"i": "kh", "j": "kw"}
#: The dimensions that each operand depends on.
RELEVANT: dict[str, frozenset[str]] = {
    "IN": frozenset({"b", "g", "n", "r", "c", "i", "j"}),
    "W": frozenset({"g", "m", "n", "i", "j"}),
    "OUT": frozenset({"b", "g", "m", "r", "c"}),
}


def depends(operand: str, lacks: str = "") -> frozenset[str]:
    """Return the dimensions that an operand depends on; of an input that is broadcast along some, without these."""
    return RELEVANT[operand].difference(lacks)


Size = PositiveInt
NonNegative = Field(default=0, ge=0)


class Layer(Sparse):
    """One affine layer, which stands for this loop (sizes per group; i and j run over kernel rows and columns).

    ``OUT[b, g, m, r, c] += W[g, m, n, i, j] * IN[b, g, n, stride_h*r + dilation_h*i - pad_top,
    stride_w*c + dilation_w*j - pad_left]``. A matmul has rows r and c = kh = kw = 1. Pools and element-wise layers have
    no W; their function stands in the network file (`fn`).
    """

    LEFT_OUT: ClassVar = frozenset(("resident_in", "resident_out", "broadcast", "resident_w", "copies", "cycles"))

    name: str = Field(min_length=1)
    kind: Literal["conv", "matmul", "pool", "resample", "eltwise", "correlation"] = "conv"
    b: Size = 1
    g: Size = 1
    m: Size
    n: Size
    r: Size
    c: Size
    kh: Size = 1
    kw: Size = 1
    """`b`, `g`, `m`, `n`, `r`, `c`, `kh`, `kw`: batch, groups, output and input channels *per group*, output rows and
    columns, kernel.
    """
    stride_h: Size = 1
    stride_w: Size = 1
    dilation_h: Size = 1
    dilation_w: Size = 1
    pad_top: int = NonNegative
    pad_left: int = NonNegative
    """`stride_h`, `stride_w`, `dilation_h`, `dilation_w`, `pad_top`, `pad_left`: of the sliding window. Padding at the
    bottom and right is whatever the last window needs beyond `h` and `l`; padding is never fetched.
    """
    h: Size
    l: Size  # noqa: E741 - the papers' letter for the input width
    """`h`, `l`: rows and columns of the input map."""
    inputs: Size = 1
    """Number of input operands (more than one only for ``eltwise``)."""
    broadcast: tuple[str, ...] = ()
    """Of every input the loop dimensions, letters of ``bgrc`` in this order, along which it has one element only
    (``eltwise``; "" for an input of the result's shape). Empty: all inputs have that shape.
    """
    weights: Literal["constant", "activation", "none"] = "constant"
    """What the W operand is. Constants count as parameters, activations do not."""
    bias: bool = False
    """Whether ``g * m`` biases are added."""
    resident_in: tuple[int, ...] = ()
    """Of every input, how many of its first rows lie on chip already: they are read where they are. Empty: none."""
    resident_out: int = NonNegative
    """How many of the first rows of the result stay on chip: they are never written to DRAM."""
    resident_w: bool = False
    """Whether all of W, biases included, lies on chip already: it is read where it is."""
    copies: tuple[int, ...] = ()
    """Of every input, and of W last where it is an activation, how many elements are padding, or copies of others that
    the layer reads: they lie off the chip and nests load them, but a plan need not. Empty: none.
    """
    cycles: int = NonNegative
    """Cycles of computing all of it on a machine that counts none itself (compute model "none"): what was measured."""

    @model_validator(mode="after")
    def _copies_are_elements(self) -> Layer:
        if not self.copies:
            return self
        sizes = [self.input_elements(k) for k in range(self.inputs)]
        sizes += [self.weight_elements] * (self.weights == "activation")
        if len(self.copies) != len(sizes) or any(
            not 0 <= some <= n for some, n in zip(self.copies, sizes, strict=True)
        ):
            raise ValueError(f"copies {self.copies}: the operands that are no constants have {sizes} elements")
        return self

    @model_validator(mode="after")
    def _residents_exist(self) -> Layer:
        if self.resident_in and len(self.resident_in) != self.inputs:
            raise ValueError(f"resident_in {self.resident_in} must name the rows of each of {self.inputs} inputs")
        rows = [1 if "r" in lacks else self.h for lacks in self.patterns]
        beyond = any(not 0 <= some <= most for some, most in zip(self.resident_in, rows, strict=False))
        if beyond or self.resident_out > self.r:
            have = " and ".join(map(str, dict.fromkeys(rows)))
            raise ValueError(
                f"resident rows {self.resident_in}, {self.resident_out}: inputs have {have} rows, the result {self.r}"
            )
        return self

    @field_validator("broadcast")
    @classmethod
    def _letters_of_dimensions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for lacks in value:
            if lacks != "".join(d for d in BROADCAST if d in lacks):
                raise ValueError(
                    f"broadcast {lacks!r}: expected the letters of {BROADCAST} along which an input has one element, "
                    'in this order, such as "rc"; "" for an input of the result\'s shape'
                )
        return value

    @model_validator(mode="after")
    def _broadcasts_fit(self) -> Layer:
        if not self.broadcast:
            return self
        if self.kind != "eltwise":
            raise ValueError(f"broadcast {self.broadcast}: only inputs of an eltwise layer are, not of a {self.kind}")
        if len(self.broadcast) != self.inputs:
            raise ValueError(f"broadcast {self.broadcast} must say something of each of {self.inputs} inputs")
        if not any(self.broadcast):
            raise ValueError("broadcast: all inputs have the result's shape, leave it out")
        for lacks in self.broadcast:
            if whole := [d for d in lacks if self.extent(d) == 1]:
                raise ValueError(f"broadcast {lacks!r}: dimension {whole[0]} of the result is 1, no input is smaller")
        if missing := [d for d in BROADCAST if all(d in lacks for lacks in self.broadcast)]:
            raise ValueError(f"broadcast: no input has dimension {missing[0]}, which is {self.extent(missing[0])}")
        window = (self.h, self.l, self.stride_h, self.stride_w, self.kh, self.kw)
        if window != (self.r, self.c, 1, 1, 1, 1):
            raise ValueError(
                "broadcast: inputs are read element by element, with h = r, l = c, strides and kernel of 1"
            )
        return self

    @model_validator(mode="after")
    def _windows_touch_the_map(self) -> Layer:
        axes = (
            ("rows", self.r, self.stride_h, self.dilation_h, self.kh, self.pad_top, self.h),
            ("columns", self.c, self.stride_w, self.dilation_w, self.kw, self.pad_left, self.l),
        )
        for what, out, stride, dilation, kernel, pad, size in axes:
            if pad > (kernel - 1) * dilation:
                raise ValueError(
                    f"padding {pad} exceeds the kernel's reach {(kernel - 1) * dilation} along {what}: "
                    "the first window would hold padding only"
                )
            if (out - 1) * stride - pad >= size:
                raise ValueError(f"{out} output {what} with stride {stride} start beyond the {size} input {what}")
        if self.kind in ("pool", "eltwise") and (self.m, self.n, self.weights) != (1, 1, "none"):
            raise ValueError(f"a {self.kind} layer has m = n = 1 per group and weights 'none'")
        if self.kind == "resample" and (self.n, self.weights) != (1, "none"):
            raise ValueError("a resample layer has n = 1 and weights 'none'")
        if self.kind == "correlation" and (self.g, self.m, self.weights) != (1, 1, "activation"):
            raise ValueError("a correlation layer has g = m = 1 and weights 'activation', its other map")
        if self.resident_w and self.weights == "none":
            raise ValueError(f"resident_w: a {self.kind} layer without weights has none on chip")
        if self.kind != "eltwise" and self.inputs != 1:
            raise ValueError("only an eltwise layer has more than one input operand")
        return self

    @classmethod
    def conv(
        cls,
        name: str,
        *,
        channels: int,
        filters: int,
        size: tuple[int, int],
        kernel: tuple[int, int] = (1, 1),
        stride: tuple[int, int] = (1, 1),
        pad: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        batch: int = 1,
        bias: bool = False,
    ) -> Layer:
        """Make a convolution from what model files state.

        Parameters
        ----------
        channels, filters : int
            Input and output channels of the whole layer (both multiples of `groups`).
        size : (int, int)
            Rows and columns of the input map.
        pad : (int, int, int, int)
            Top, left, bottom, right.

        Raises
        ------
        ValueError
            If groups do not divide the channels or the kernel exceeds the padded map.
        """
        if groups < 1 or channels % groups or filters % groups:
            raise ValueError(f"groups {groups} must divide channels {channels} and filters {filters}")
        axes = zip(size, kernel, dilation, pad[:2], pad[2:], strict=True)
        out = [room_of("kernel", *axis) // step + 1 for axis, step in zip(axes, stride, strict=True)]
        return cls(
            name=name, b=batch, g=groups, m=filters // groups, n=channels // groups, r=out[0], c=out[1],
            kh=kernel[0], kw=kernel[1], stride_h=stride[0], stride_w=stride[1],
            dilation_h=dilation[0], dilation_w=dilation[1], pad_top=pad[0], pad_left=pad[1],
            h=size[0], l=size[1], bias=bias,
        )  # fmt: skip

    @classmethod
    def matmul(
        cls,
        name: str,
        *,
        rows: int,
        inner: int,
        cols: int,
        batch: int = 1,
        activation: bool = False,
        bias: bool = False,
    ) -> Layer:
        """Make ``OUT[rows, cols] = IN[rows, inner] * W[inner, cols]``, `batch` independent ones as groups."""
        return cls(
            name=name, kind="matmul", g=batch, m=cols, n=inner, r=rows, c=1, h=rows, l=1,
            weights="activation" if activation else "constant", bias=bias,
        )  # fmt: skip

    def extent(self, dim: str) -> int:
        """Return the size of loop dimension `dim` (one of `DIMS`; i and j are the kernel's rows and columns)."""
        value: int = getattr(self, _FIELDS.get(dim, dim))
        return value

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands that move: IN, W (when there is one, and it does not lie on chip), OUT."""
        return ("IN", "OUT") if self.weights == "none" or self.resident_w else ("IN", "W", "OUT")

    @property
    def residents(self) -> tuple[int, ...]:
        """`resident_in`, written out."""
        return self.resident_in or (0,) * self.inputs

    @property
    def patterns(self) -> tuple[str, ...]:
        """`broadcast`, written out: of every input the dimensions along which it has one element only."""
        return self.broadcast or ("",) * self.inputs

    @property
    def loaded(self) -> tuple[tuple[int, str], ...]:
        """Of every input its resident rows and its pattern; those of one row that is on chip are left out."""
        pairs = zip(self.residents, self.patterns, strict=True)
        return tuple((resident, lacks) for resident, lacks in pairs if not (resident and "r" in lacks))

    def input_rows(self, number: int) -> int:
        """Rows of an input (the first is 0)."""
        return 1 if "r" in self.patterns[number] else self.h

    def input_elements(self, number: int) -> int:
        """Elements of an input (the first is 0)."""
        sizes = {"b": self.b, "g": self.g * self.n, "r": self.h, "c": self.l}
        return prod(size for d, size in sizes.items() if d not in self.patterns[number])

    @property
    def macs(self) -> int:
        """Multiply-accumulates (taps in the padding count, as in published totals; 0 without weights)."""
        if self.weights == "none":
            return 0
        return self.b * self.g * self.m * self.n * self.r * self.c * self.kh * self.kw

    @property
    def parameters(self) -> int:
        """Constant weights plus biases, in elements."""
        weights = self.weight_elements if self.weights == "constant" else 0
        return weights + (self.g * self.m if self.bias else 0)

    @property
    def weight_elements(self) -> int:
        """Elements of the W operand, without biases; 0 where there is none."""
        return 0 if self.weights == "none" else self.g * self.m * self.n * self.kh * self.kw

    def signature(self) -> tuple[object, ...]:
        """Everything but the name: layers with equal signatures have equal plans."""
        return tuple(v for k, v in self if k != "name")


def room_of(what: str, size: int, kernel: int, dilation: int, before: int, after: int) -> int:
    """Return how far a window moves along an axis with padding at both ends; raises ValueError if it does not fit."""
    reach = (kernel - 1) * dilation + 1
    if size + before + after < reach:
        raise ValueError(f"the {what} reaches over {reach} elements, the padded map has {size + before + after}")
    return size + before + after - reach


def refuse_long(layer: Layer) -> None:
    """Raise InputError if a dimension of a layer is above `LONGEST`."""
    for dim in DIMS:
        if layer.extent(dim) > LONGEST:
            said = f"dimension {dim} is {layer.extent(dim):,}, at most {LONGEST:,} is counted"
            raise InputError(f"layer {layer.name}: {said}")
