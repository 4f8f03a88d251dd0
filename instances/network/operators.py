"""Operators of a network: what each one computes, its output shape, its parameters and its `Layer`.

========  ===================================================================================
op        what it is
========  ===================================================================================
input     a tensor that comes from outside
conv      2-D convolution with constant weights (groups, dilation, asymmetric padding)
matmul    ``[..., K] x K x out_features`` with constant weights, or a (batched) product of two inputs
correlation  products of every pixel with its neighbours in another map, over the channels
pool      max or average pooling over a window, or over the whole map
eltwise   element-wise operation of one or more inputs, and row-wise ones (softmax, layer_norm)
resample  a map of another size, or one that is read where a grid says: moves data, without weights
concat    joins inputs along one axis
reshape   moves or drops elements without computing (reshape, transpose, slice, pad)
opaque    anything else: kept in the graph, reported, never planned
========  ===================================================================================

Feature maps are (batch, channels, rows, columns); sequences are (batch, tokens, features).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from instances.frozen import Sparse
from instances.network.workload import Layer, room_of

#: The largest size of one dimension (a signed 32-bit count, as in every deployment format).
LARGEST = 2**31 - 1
Size = Annotated[int, Field(ge=1, le=LARGEST)]
Pad = Annotated[int, Field(ge=0, le=LARGEST)]
Pair = tuple[Size, Size]
Pads = tuple[Pad, Pad, Pad, Pad]
Shape = tuple[int, ...]
#: Blocks of more elements of a map are not taken as one window.
LARGEST_BLOCK = 8
#: Numbers of a grid for every pixel.
GRID = 2
Count = Annotated[int, Field(ge=0, le=2**53)]

#: Element-wise functions of one tensor (some row-wise), and of several tensors.
UNARY = frozenset(
    """abs batch_norm cast ceil celu clip cos dequantize elu erf exp floor gelu group_norm hard_sigmoid hard_swish
    instance_norm is_inf is_nan layer_norm leaky_relu log log_softmax lp_norm lrn mish neg not prelu quantize reciprocal
    relu relu6 rms_norm round selu shrink sigmoid sign sin softmax softplus softsign sqrt swish tan tanh
    thresholded_relu""".split()
)
NARY = frozenset("add and div equal greater less max mean min mod mul or pow sub where xor".split())


def check_arity(inputs: Sequence[Shape], least: int, most: int | None) -> None:
    """Raise ValueError if an operator has too few or too many inputs (None: as many as one likes)."""
    if len(inputs) < least or (most is not None and len(inputs) > most):
        wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"has {len(inputs)} inputs, needs {wanted}")


def feature_map(shape: Shape) -> Shape:
    """Return the shape of a feature map; raises ValueError for others."""
    if len(shape) != 4:
        raise ValueError(f"needs a feature map (batch, channels, rows, columns), its input has shape {shape}")
    return shape


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the NumPy broadcast of shapes; raises ValueError if they do not fit together."""
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    out = tuple(max(axis) for axis in zip(*padded, strict=True))
    for shape in padded:
        if any(x not in (1, y) for x, y in zip(shape, out, strict=True)):
            raise ValueError(f"shapes {' and '.join(str(tuple(s)) for s in shapes)} do not fit together")
    return out


def element_wise(shapes: Sequence[Shape]) -> tuple[Shape, tuple[str, ...]]:
    """Return what an element-wise layer makes of operands: (b, g, r, c), and where each has one element only.

    Axes of the result are mapped to dimensions so that every operand is full or one along each:

    * of a feature map the four axes are b, g, r, c;
    * else the last axis (features) is g, and of the axes before it those that follow each other and are broadcast for
      the same operands are one: r if there is one such run, (b, r) if two, (b, r, c) if three. Where there are four,
      the last of them and the features must be broadcast alike and are g together.

    Raises ValueError if the shapes do not fit together, or need more than four dimensions.

    Returns
    -------
    tuple
        The sizes of b, g, r, c, and for every operand the letters of those along which it is broadcast.
    """
    out = broadcast(shapes)
    padded = [(1,) * (len(out) - len(s)) + tuple(s) for s in shapes]
    #: Of every axis the operands that are broadcast along it.
    lacking = [tuple(k for k, s in enumerate(padded) if s[axis] < size) for axis, size in enumerate(out)]
    runs: list[tuple[tuple[int, ...], int]] = []
    if len(out) == 4:
        runs, letters = list(zip(lacking, out, strict=True)), "bgrc"
    else:
        for lacks, size in zip(lacking[:-1], out[:-1], strict=True):
            if size > 1 and runs and runs[-1][0] == lacks:
                runs[-1] = lacks, runs[-1][1] * size
            elif size > 1:
                runs.append((lacks, size))
        if len(runs) == 4 and (out[-1] == 1 or runs[-1][0] == lacking[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] * out[-1]
        else:
            runs.append((lacking[-1], out[-1]))
        if len(runs) > 4:
            said = " and ".join(str(tuple(s)) for s in shapes)
            raise ValueError(f"shapes {said} are broadcast along {len(runs)} groups of axes, a layer has four")
        letters = {1: "g", 2: "rg", 3: "brg", 4: "brcg"}[len(runs)]
    sizes = dict.fromkeys("bgrc", 1) | {d: size for d, (_, size) in zip(letters, runs, strict=True)}
    lack = {d: lacks for d, (lacks, _) in zip(letters, runs, strict=True)}
    of_each = tuple("".join(d for d in "bgrc" if k in lack.get(d, ())) for k in range(len(shapes)))
    return (sizes["b"], sizes["g"], sizes["r"], sizes["c"]), of_each


def count_windows(size: int, kernel: int, stride: int, dilation: int, before: int, after: int, *, ceil: bool) -> int:
    """Return how many windows of a pooling an axis has; raises ValueError if none fits."""
    room = room_of("window", size, kernel, dilation, before, after)
    if not ceil:
        return room // stride + 1
    out = -(-room // stride) + 1
    # A window that would start in the padding behind the map is dropped (the rule of every framework).
    return out - 1 if (out - 1) * stride >= size + before else out


class NamedOperator(Sparse):
    """A unique name, the names of the producers of its inputs, its output shape."""

    LEFT_OUT: ClassVar = frozenset[str]()

    name: str = Field(min_length=1, max_length=500)
    inputs: tuple[str, ...] = ()
    shape: tuple[Size, ...] = Field(min_length=1, max_length=8)

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("a name holds printable characters only")
        return name

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the output shape for the given input shapes; ValueError when they do not fit."""
        check_arity(inputs, 0, None)
        return self.shape

    def layer(self, inputs: Sequence[Shape]) -> Layer | None:
        """Return the `Layer` to plan, or None for operators that move or compute nothing of their own."""
        return None

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return the trained constants in elements (as in published totals)."""
        return 0


class Input(NamedOperator):
    """A tensor from outside the network."""

    LEFT_OUT: ClassVar = frozenset(("zeros", "constant"))

    op: Literal["input"] = "input"
    constant: bool = False
    """Whether it is numbers of the model, the same for every batch and size; who reads it counts them as parameters."""
    zeros: bool = False
    """Whether it is all zeros, as the state before the first step: like padding it is never fetched."""

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the declared shape."""
        check_arity(inputs, 0, 0)
        return self.shape


class Conv(NamedOperator):
    """A 2-D convolution with constant weights."""

    LEFT_OUT: ClassVar = frozenset(("weights_of", "own_bias"))

    op: Literal["conv"] = "conv"
    filters: Size
    kernel: Pair
    stride: Pair = (1, 1)
    pad: Pads = (0, 0, 0, 0)
    """Top, left, bottom, right."""
    dilation: Pair = (1, 1)
    groups: Size = 1
    bias: bool = False
    batch_norm: bool = False
    """A folded batch normalisation: two published parameters per filter, a bias at inference."""
    weights_of: str = ""
    """The earlier operator whose weights these are, and its biases: one tensor, which counts once. Empty: none."""
    own_bias: bool = False
    """Whether the biases are other ones, where the weights are shared."""

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return (batch, filters, rows, columns)."""
        layer = self.layer(inputs)
        return (layer.b, self.filters, layer.r, layer.c)

    def layer(self, inputs: Sequence[Shape]) -> Layer:
        """Return the convolution; a folded batch norm is a bias."""
        check_arity(inputs, 1, 1)
        batch, channels, rows, columns = feature_map(inputs[0])
        return Layer.conv(
            self.name, channels=channels, filters=self.filters, size=(rows, columns), kernel=self.kernel,
            stride=self.stride, pad=self.pad, dilation=self.dilation, groups=self.groups, batch=batch,
            bias=self.bias or self.batch_norm,
        )  # fmt: skip

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return weights, biases, and two per filter for a batch norm (running statistics are not trained)."""
        weights = self.filters * (inputs[0][1] // self.groups) * prod(self.kernel)
        biases = self.filters * (self.bias + 2 * self.batch_norm)
        if self.weights_of:
            return biases * self.own_bias
        return weights + biases


class MatMul(NamedOperator):
    """A fully connected layer (one input, constant weights) or a batched product of two inputs."""

    LEFT_OUT: ClassVar = frozenset(("weights_of", "own_bias"))

    op: Literal["matmul"] = "matmul"
    out_features: Size | None = None
    bias: bool = False
    transpose_a: bool = False
    transpose_b: bool = False
    weights_of: str = ""
    """The earlier operator whose weights these are, and its biases: one tensor, which counts once. Empty: none."""
    own_bias: bool = False
    """Whether the biases are other ones, where the weights are shared."""

    @model_validator(mode="after")
    def _one_kind(self) -> MatMul:
        if len(self.inputs) == 1 and self.out_features is None:
            raise ValueError("a matmul with one input needs out_features")
        if len(self.inputs) == 2 and self.out_features is not None:
            raise ValueError("a matmul of two inputs takes its output features from them: drop out_features")
        if len(self.inputs) == 1 and (self.transpose_a or self.transpose_b):
            raise ValueError("transpose_a and transpose_b are for a matmul of two inputs")
        if len(self.inputs) == 2 and self.weights_of:
            raise ValueError("a matmul of two inputs has no constant weights: drop weights_of")
        return self

    def _operands(self, inputs: Sequence[Shape]) -> tuple[Shape, int, int, int]:
        """Return the leading dimensions, rows, inner size and columns of the product of two inputs."""
        a, b = (tuple(shape) for shape in inputs)
        if len(a) < 2 or len(b) < 2:
            raise ValueError(f"needs matrices, its inputs have shapes {a} and {b}")
        a = (*a[:-2], a[-1], a[-2]) if self.transpose_a else a
        b = (*b[:-2], b[-1], b[-2]) if self.transpose_b else b
        if a[-1] != b[-2]:
            raise ValueError(f"inner sizes differ: {a[-1]} in {a} and {b[-2]} in {b}")
        return broadcast([a[:-2], b[:-2]]), a[-2], a[-1], b[-1]

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the product's shape."""
        check_arity(inputs, 1, 2)
        if len(inputs) == 2:
            lead, rows, _, cols = self._operands(inputs)
            return (*lead, rows, cols)
        if len(inputs[0]) < 2:
            raise ValueError(f"needs (rows, features), its input has shape {inputs[0]}")
        return (*inputs[0][:-1], self.out_features or 1)

    def layer(self, inputs: Sequence[Shape]) -> Layer:
        """Return the product: constant weights see all tokens as rows; each activation product is a group."""
        if len(inputs) == 1:
            return Layer.matmul(
                self.name, rows=prod(inputs[0][:-1]), inner=inputs[0][-1], cols=self.out_features or 1, bias=self.bias
            )
        lead, rows, inner, cols = self._operands(inputs)
        # A right operand without leading dimensions is shared: its products are one taller product.
        shared = len(inputs[1]) == 2 and not self.transpose_a
        groups, rows = (1, prod(lead) * rows) if shared else (prod(lead), rows)
        return Layer.matmul(
            self.name, rows=rows, inner=inner, cols=cols, batch=groups, activation=True, bias=self.bias
        )  # fmt: skip

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return weights (none for two inputs) and biases."""
        features = self.infer(inputs)[-1]
        if self.weights_of:
            return features * self.own_bias
        return (inputs[0][-1] * features if len(inputs) == 1 else 0) + features * self.bias


class Correlation(NamedOperator):
    """Spatial matching: each pixel of the first map times its neighbours in the second (`vectormesh` Eq. 3)."""

    op: Literal["correlation"] = "correlation"
    displacement: Pair
    stride: Pair = (1, 1)

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return a map with one channel for every displacement, -displacement to displacement in steps of stride."""
        check_arity(inputs, 2, 2)
        first, second = (feature_map(shape) for shape in inputs)
        if first != second:
            raise ValueError(f"the maps differ: {first} and {second}")
        channels = prod(2 * (d // s) + 1 for d, s in zip(self.displacement, self.stride, strict=True))
        return (first[0], channels, *first[2:])

    def layer(self, inputs: Sequence[Shape]) -> Layer:
        """Return the layer: rows and columns of displacements are its kernel, their steps its dilation."""
        b, n, h, w = inputs[0]
        (dh, dw), (sh, sw) = self.displacement, self.stride
        return Layer(
            name=self.name, kind="correlation", b=b, m=1, n=n, r=h, c=w, kh=2 * (dh // sh) + 1, kw=2 * (dw // sw) + 1,
            dilation_h=sh, dilation_w=sw, pad_top=dh // sh * sh, pad_left=dw // sw * sw, h=h, l=w, weights="activation",
        )  # fmt: skip


class Pool(NamedOperator):
    """Max or average pooling, over a window or (``global_*``) over the whole map."""

    op: Literal["pool"] = "pool"
    fn: Literal["max", "avg", "global_avg", "global_max"]
    kernel: Pair | None = None
    stride: Pair = (1, 1)
    pad: Pads = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    ceil_mode: bool = False

    @model_validator(mode="after")
    def _window(self) -> Pool:
        if self.fn.startswith("global") and self.kernel is not None:
            raise ValueError(f"{self.fn} pools the whole map: drop kernel")
        if not self.fn.startswith("global") and self.kernel is None:
            raise ValueError(f"{self.fn} pooling needs a kernel")
        return self

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return (batch, channels, rows, columns)."""
        layer = self.layer(inputs)
        return (layer.b, layer.g, layer.r, layer.c)

    def layer(self, inputs: Sequence[Shape]) -> Layer:
        """Return the pooling as a depthwise layer without weights."""
        check_arity(inputs, 1, 1)
        batch, channels, *size = feature_map(inputs[0])
        kernel = self.kernel or (size[0], size[1])
        axes = zip(size, kernel, self.stride, self.dilation, self.pad[:2], self.pad[2:], strict=True)
        out = [count_windows(*axis, ceil=self.ceil_mode) for axis in axes]
        return Layer(
            name=self.name, kind="pool", b=batch, g=channels, m=1, n=1, r=out[0], c=out[1], kh=kernel[0], kw=kernel[1],
            stride_h=self.stride[0], stride_w=self.stride[1], dilation_h=self.dilation[0], dilation_w=self.dilation[1],
            pad_top=self.pad[0], pad_left=self.pad[1], h=size[0], l=size[1], weights="none",
        )  # fmt: skip


def _reach(fn: str, up: int, down: int) -> int:
    """How many elements beside a block an interpolation may look at."""
    if up == 1:  # of half the size, the four elements of a cubic one are those of a block and one on each side
        return int(fn == "cubic" and down > 1)
    return {"nearest": 0, "linear": 1, "cubic": 2}[fn]


class Resample(NamedOperator):
    """A feature map of another size, or (two inputs) one that is read where a grid says: data that moves.

    The ``blocks`` of an axis are as many parts as both sizes have in common; of each the result has ``up`` elements
    of ``down`` of the map and the neighbours that an interpolation looks at. Where `down` exceeds `LARGEST_BLOCK`, and
    by a grid (batch, rows, columns, 2), every element of the result is taken to read its neighbours by itself. Of a
    grid each number is an operand, which all channels of a pixel share.
    """

    LEFT_OUT: ClassVar = frozenset(("anywhere",))

    op: Literal["resample"] = "resample"
    fn: Literal["nearest", "linear", "cubic"] = "nearest"
    size: Pair
    """Rows and columns of the result."""
    anywhere: bool = False
    """Whether elements of the result are any of the map, those that indices say: no windows follow them."""

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return (batch, channels, rows, columns)."""
        check_arity(inputs, 1, 2)
        batch, channels, *_ = feature_map(inputs[0])
        if len(inputs) == 2 and tuple(inputs[1]) != (batch, *self.size, 2):
            raise ValueError(f"needs a grid of shape {(batch, *self.size, 2)}, its second input has {tuple(inputs[1])}")
        return (batch, channels, *self.size)

    @property
    def taps(self) -> int:
        """Neighbours along an axis of one that is interpolated, where elements read them by themselves."""
        return {"nearest": 1, "linear": 2, "cubic": 4}[self.fn]

    def scattered(self, inputs: Sequence[Shape]) -> bool:
        """Whether every element of the result reads its neighbours by itself."""
        if self.anywhere or len(inputs) == 2:
            return True
        axes = zip(inputs[0][2:], self.size, strict=True)
        return any(before // gcd(before, after) > LARGEST_BLOCK for before, after in axes)

    def layer(self, inputs: Sequence[Shape]) -> Layer:
        """Return a layer without weights: a filter for each element of a block, or an operand for each neighbour."""
        batch, channels, rows, columns = self.infer(inputs)
        shape: dict[str, Any] = {"name": self.name, "b": batch, "g": channels, "n": 1, "weights": "none"}
        if self.scattered(inputs):
            moved = zip(inputs[0][2:], self.size, strict=True)
            reads = prod(self.taps if len(inputs) == 2 or 1 != one != other else 1 for one, other in moved)
            if len(inputs) == 2:
                shape["broadcast"] = ("g",) * GRID + ("",) * reads if channels > 1 else ()
                reads += GRID
            return Layer(kind="eltwise", m=1, r=rows, c=columns, h=rows, l=columns, inputs=reads, **shape)
        before = inputs[0][2:]
        blocks = [gcd(*sizes) for sizes in zip(before, self.size, strict=True)]
        up, down = ([size // n for size, n in zip(sizes, blocks, strict=True)] for sizes in (self.size, before))
        reach = [_reach(self.fn, u, d) for u, d in zip(up, down, strict=True)]
        return Layer(
            kind="resample", m=prod(up), r=blocks[0], c=blocks[1], kh=down[0] + 2 * reach[0], kw=down[1] + 2 * reach[1],
            stride_h=down[0], stride_w=down[1], pad_top=reach[0], pad_left=reach[1], h=before[0], l=before[1], **shape,
        )  # fmt: skip


class Eltwise(NamedOperator):
    """An element-wise function; row-wise ones such as softmax count here too. One input means fused, no layer."""

    op: Literal["eltwise"] = "eltwise"
    fn: str
    parameters: Count = 0

    @field_validator("fn")
    @classmethod
    def _known(cls, fn: str) -> str:
        if fn not in UNARY | NARY:
            raise ValueError(f"known functions: {', '.join(sorted(UNARY | NARY))}")
        return fn

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the broadcast shape of the inputs."""
        check_arity(inputs, 1, 1 if self.fn in UNARY else None)
        element_wise(inputs)
        return broadcast(inputs)

    def layer(self, inputs: Sequence[Shape]) -> Layer | None:
        """Return a layer for two or more inputs, which are its operands in this order; one given twice is two."""
        if len(inputs) < 2:
            return None
        (batch, channels, rows, columns), lacks = element_wise(inputs)
        return Layer(
            name=self.name, kind="eltwise", b=batch, g=channels, m=1, n=1, r=rows, c=columns, h=rows, l=columns,
            inputs=len(inputs), weights="none", broadcast=lacks if any(lacks) else (),
        )  # fmt: skip

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return the declared parameters."""
        return self.parameters


class Concat(NamedOperator):
    """Joins its inputs along `axis` (channels by default)."""

    op: Literal["concat"] = "concat"
    axis: Annotated[int, Field(ge=0, le=7)] = 1

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the joined shape."""
        check_arity(inputs, 1, None)
        first = tuple(inputs[0])
        if self.axis >= len(first):
            raise ValueError(f"axis {self.axis} of shape {first} does not exist")
        for other in inputs[1:]:
            if len(other) != len(first) or any(
                x != y for i, (x, y) in enumerate(zip(first, other, strict=True)) if i != self.axis
            ):
                raise ValueError(f"shapes {first} and {tuple(other)} cannot be joined along axis {self.axis}")
        return (*first[: self.axis], sum(s[self.axis] for s in inputs), *first[self.axis + 1 :])


class Reshape(NamedOperator):
    """Moves elements without computing; `shape` says what comes out."""

    LEFT_OUT: ClassVar = frozenset(("starts", "steps"))

    op: Literal["reshape"] = "reshape"
    fn: Literal["reshape", "transpose", "slice", "pad", "identity"] = "reshape"
    starts: tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...] = ()
    steps: tuple[Size, ...] = ()
    """`starts`, `steps`: of a slice the first index along every axis, and from one index to the next. Empty: not known,
    and 1. Slices of one map that are known to lie apart are different elements.
    """

    def infer(self, inputs: Sequence[Shape]) -> Shape:
        """Return the declared shape if the number of elements allows it."""
        check_arity(inputs, 1, 1)
        before, after = prod(inputs[0]), prod(self.shape)
        fits = {"slice": after <= before, "pad": after >= before}.get(self.fn, after == before)
        if self.fn == "transpose":
            fits = sorted(inputs[0]) == sorted(self.shape)
        if self.fn == "identity":
            fits = tuple(inputs[0]) == self.shape
        if not fits:
            raise ValueError(f"{self.fn} cannot turn shape {tuple(inputs[0])} into {self.shape}")
        self._check_place(inputs[0])
        return self.shape

    def _check_place(self, before: Shape) -> None:
        """Raise ValueError if a slice that says where it lies is no part of what it is cut from."""
        if not self.starts and not self.steps:
            return
        steps = self.steps or (1,) * len(before)
        if self.fn != "slice" or not len(before) == len(self.shape) == len(self.starts) == len(steps):
            raise ValueError("starts and steps are of a slice: a number for every axis of both maps")
        for first, size, step, whole in zip(self.starts, self.shape, steps, before, strict=True):
            if first + (size - 1) * step >= whole:
                raise ValueError(f"a slice of {size} from {first} in steps of {step} is no part of {whole}")


class Opaque(NamedOperator):
    """An operator that certile keeps but does not plan."""

    LEFT_OUT: ClassVar = frozenset(("result_of",))

    op: Literal["opaque"] = "opaque"
    kind: str = Field(min_length=1, max_length=200)
    """Its name in the source."""
    parameters: Count = 0
    dynamic: bool = False
    """Its output size depends on the data or could not be inferred; `shape` then says nothing."""
    reason: str = Field("", max_length=500)
    """Why it is not planned."""
    macs: Count | None = None
    """Its multiply-accumulates, which no total holds (None: not known)."""
    result_of: str = Field("", max_length=500)
    """Of an operator with several results the first one, which is reported for all of them."""

    def count_parameters(self, inputs: Sequence[Shape]) -> int:
        """Return the declared parameters."""
        return self.parameters


_Any = Input | Conv | MatMul | Correlation | Pool | Resample | Eltwise | Concat | Reshape | Opaque
Operator = Annotated[_Any, Field(discriminator="op")]
