"""How one ONNX node becomes several operators: steps by name, and the last one that makes the node's result.

Every operator that is made here stands for a node of ONNX that the file would have in its place: a Transpose with its
order, a Conv with the weights of one phase, and so on. `Graph.origin` has these nodes. What they read is named by the
tensors of operators, or by constants that are computed of those of the file (`Graph.derive`) when somebody asks for
numbers. So whoever needs to know what a network computes (`instances.onnx.model`, and the C that is written of it)
sees standard operators alone.

An example: an LSTM becomes a MatMul with constant weights, of every step a Slice, a MatMul of two inputs and two
operators of several element-wise nodes (`Graph.bodies`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple

import numpy as np
import onnx
from onnx import helper
from pydantic import BaseModel

from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Pool, Resample, Reshape, Shape
from instances.onnx.graph import Graph, Node, Unsupported

Move = Literal["reshape", "transpose", "slice", "pad", "identity"]
Step = Conv | MatMul | Pool | Resample | Eltwise | Concat

#: The largest number of dimensions of a tensor.
MOST_DIMENSIONS = 8
#: Operators that are not of ONNX.
OWN = "certile"


@dataclass(frozen=True)
class Means:
    """What an operator is in ONNX: it reads the tensors of its inputs, then constants."""

    op: str
    constants: Sequence[str] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    domain: str = ""


class Window(NamedTuple):
    """What windows do along an axis of a map, and the padding on either side of it."""

    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0


#: Along rows and columns.
Windows = tuple[Window, Window]


def fields_of(windows: Windows) -> dict[str, tuple[int, ...]]:
    """Return windows as a convolution or a pooling has them."""
    kernel, stride, dilation, before, after = zip(*windows, strict=True)
    return {"kernel": kernel, "stride": stride, "dilation": dilation, "pad": (*before, *after)}


def attributes_of(windows: Windows) -> dict[str, object]:
    """Return windows as attributes of ONNX."""
    names = ("kernel_shape", "strides", "dilations", "pads")
    return dict(zip(names, map(list, fields_of(windows).values()), strict=True))


class Body:
    """Element-wise nodes, one after the other, that one operator applies at once; tensors are named."""

    def __init__(self, name: str) -> None:
        self.name, self.nodes = name, list[onnx.NodeProto]()

    def add(self, op: str, *tensors: str, **attributes: object) -> str:
        """Add a node; return the tensor that it makes."""
        made = f"{self.name}:{len(self.nodes)} (inner)"
        self.nodes.append(helper.make_node(op, tensors, [made], name=made, **attributes))  # type: ignore[arg-type]
        return made


class Steps:
    """Adds the operators of one node. Operators are named, not their tensors."""

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node = node
        self.graph = graph

    def source(self, tensor: str, *, operand: bool = False) -> str:
        """Return the operator that makes a tensor; a map of constants lies in DRAM as an input does.

        `operand`: of an element-wise operator; constants are read from where they lie.
        """
        if self.graph.is_constant(tensor) and tensor not in self.graph.makers:
            return self.given(tensor, self.graph.shape(tensor), tensor, constant=operand)
        return self.graph.maker(tensor)

    def given(
        self, name: str, shape: Shape, tensor: str = "", *, zeros: bool = False, constant: bool = False
    ) -> str:  # fmt: skip
        """Add a tensor that lies in DRAM before anything runs, or that is all zeros."""
        made = Input(name=self.graph.unique(name), shape=shape, zeros=zeros, constant=constant)
        return self._emit(made, tensor)

    def shape(self, name: str) -> Shape:
        """Return the shape of what an operator makes."""
        return self.graph.operators[name].shape

    def derive(self, suffix: str, function: Callable[..., np.ndarray], *tensors: str) -> str:
        """Return a constant that is computed of others."""
        return self.graph.derive(f"{self.node.label}:{suffix} (constant)", function, *tensors)

    def numbers(self, suffix: str, values: Sequence[int] | np.ndarray) -> str:
        """Return a constant of integers, such as the sizes of a Reshape."""
        return self.derive(suffix, lambda: np.asarray(values, np.int64))

    def _name(self, suffix: str) -> str:
        return self.graph.unique(f"{self.node.label}:{suffix}" if suffix else self.node.label)

    def _emit(self, operator: Step | Input | Reshape, tensor: str = "", means: Means | None = None) -> str:
        name = self.graph.emit(operator, tensor or f"{operator.name} (tensor)")
        if means is not None:
            given = [self.graph.tensor_of[source] for source in operator.inputs]
            self.graph.origin[name] = helper.make_node(
                means.op, [*given, *means.constants], [self.graph.tensor_of[name]], name=name, domain=means.domain,
                **means.attributes,  # type: ignore[arg-type]
            )  # fmt: skip
        return name

    def move(self, source: str, shape: Sequence[int], suffix: str) -> str:
        """Give what an operator makes another shape; nothing where it has the shape already."""
        if self.shape(source) == tuple(shape):
            return source
        return self._moved(source, shape, suffix, "reshape", Means("Reshape", [self.numbers(f"{suffix}.size", shape)]))

    def _moved(
        self, source: str, shape: Sequence[int], suffix: str, fn: Move, means: Means, *, starts: Shape = (),
        steps: Shape = (),
    ) -> str:  # fmt: skip
        if len(shape) > MOST_DIMENSIONS:
            raise Unsupported(f"{len(shape)} dimensions on the way")
        name, whole = self._name(suffix), tuple(shape)
        made = Reshape(name=name, inputs=(source,), shape=whole, fn=fn, starts=starts, steps=steps)
        return self._emit(made, means=means)

    def permute(self, source: str, order: Sequence[int], suffix: str) -> str:
        """Transpose what an operator makes; a plain reshape where no elements change places."""
        before = self.shape(source)
        shape = [before[axis] for axis in order]
        moving = [axis for axis in order if before[axis] > 1]
        if moving == sorted(moving):
            return self.move(source, shape, suffix)
        return self._moved(source, shape, suffix, "transpose", Means("Transpose", (), {"perm": list(order)}))

    def cut(
        self, source: str, shape: Sequence[int], suffix: str, starts: Sequence[int] = (), steps: Sequence[int] = ()
    ) -> str:  # fmt: skip
        """Take a part of what an operator makes, by default from the first elements on; nothing if that is all."""
        if self.shape(source) == tuple(shape):
            return source
        starts, steps = tuple(starts) or (0,) * len(shape), tuple(steps) or (1,) * len(shape)
        ends = [start + (size - 1) * step + 1 for start, size, step in zip(starts, shape, steps, strict=True)]
        values = (starts, ends, range(len(shape)), steps)
        names = [self.numbers(f"{suffix}.{what}", list(v)) for what, v in zip("seat", values, strict=True)]
        given = steps if max(steps) > 1 else ()
        return self._moved(source, shape, suffix, "slice", Means("Slice", names), starts=starts, steps=given)

    def pick(self, source: str, picked: Sequence[int] | np.ndarray, axis: int, suffix: str) -> str:
        """Take some elements of an axis of what an operator makes."""
        shape = [len(picked) if k == axis else size for k, size in enumerate(self.shape(source))]
        means = Means("Gather", [self.numbers(f"{suffix}.picked", picked)], {"axis": axis})
        return self._moved(source, shape, suffix, "slice", means)

    def pad(self, source: str, shape: Sequence[int], suffix: str, starts: Sequence[int] = ()) -> str:
        """Lay zeros around what an operator makes, which begins at `starts`; nothing if it has the shape already."""
        before = self.shape(source)
        if before == tuple(shape):
            return source
        starts = starts or [0] * len(shape)
        ends = [after - start - size for start, size, after in zip(starts, before, shape, strict=True)]
        means = Means("Pad", [self.numbers(f"{suffix}.pads", [*starts, *ends])])
        return self._moved(source, shape, suffix, "pad", means)

    def add(
        self, kind: type[BaseModel], sources: Sequence[str], suffix: str = "", means: Means | Body | None = None,
        **fields: object,
    ) -> str:  # fmt: skip
        """Add an operator that computes; its shape is inferred. The one without a suffix has the node's name.

        `means`: what it is in ONNX, where it is not the node itself.
        """
        made = kind.model_validate({"name": self._name(suffix), "inputs": tuple(sources), "shape": (1,), **fields})
        assert isinstance(made, Step)
        try:
            shape = tuple(made.infer([self.shape(name) for name in sources]))
        except ValueError as error:
            raise Unsupported(str(error)) from None
        name = self._emit(made.model_copy(update={"shape": shape}), means=None if isinstance(means, Body) else means)
        if isinstance(means, Body):
            means.nodes[-1].output[0] = self.graph.tensor_of[name]
            self.graph.bodies[name], self.graph.origin[name] = tuple(means.nodes), means.nodes[-1]
        return name

    def conv(
        self, source: str, arranged: str, weights: str, windows: Windows, filters: int, groups: int, *,
        suffix: str = "", part: str = "", bias: str = "",
    ) -> str:  # fmt: skip
        """Add a convolution; `arranged` is what it multiplies by, made of (a part of) the constant `weights`."""
        means = Means("Conv", [arranged, *([bias] if bias else [])], attributes_of(windows) | {"group": groups})
        made = self.add(
            Conv, [source], suffix, means, filters=filters, groups=groups, bias=bool(bias), **fields_of(windows)
        )  # fmt: skip
        return self.graph.weigh(made, weights, part, bias)

    def concat(self, sources: Sequence[str], suffix: str, axis: int) -> str:
        """Join what operators make; nothing where it is one."""
        if len(sources) == 1:
            return sources[0]
        return self.add(Concat, sources, suffix, Means("Concat", (), {"axis": axis}), axis=axis)

    def bias(self, source: str, tensor: str, function: Callable[..., np.ndarray] | None = None) -> str:
        """Add a constant, or another tensor, to what an operator makes (nothing if there is none).

        `function` is what becomes of a constant first, so that its axes are those of the result.
        """
        if not tensor:
            return source
        if not self.graph.is_constant(tensor):
            return self.add(Eltwise, [source, self.source(tensor)], "sum", Means("Add"), fn="add")
        addend = tensor if function is None else self.derive("bias", function, tensor)
        parameters = self.graph.count([tensor])
        return self.add(Eltwise, [source], "bias", Means("Add", [addend]), fn="add", parameters=parameters)

    def times(self, source: str, factor: float, suffix: str) -> str:
        """Multiply what an operator makes by a number; nothing where that is one."""
        if factor == 1:
            return source
        number = self.derive(suffix, lambda: np.asarray(factor, np.float32))
        return self.add(Eltwise, [source], suffix, Means("Mul", [number]), fn="mul")

    def finish(self, source: str, shape: Sequence[int] = (), tensor: str = "", inner: str = "") -> None:
        """Let an operator make a tensor (the node's first result), reshaped to `shape`.

        Constants may be folded into the operator `inner`.
        """
        tensor = tensor or self.node.output
        said = self.graph.shape(tensor) if self.graph.has_shape(tensor) else None
        wanted = tuple(shape) or said or self.shape(source)
        if said not in (None, wanted) or prod(wanted) != prod(self.shape(source)):
            raise self.graph.fault(self.node, f"the file's shapes give {said}, its inputs give {self.shape(source)}")
        self.graph.makers[tensor] = self.move(source, wanted, "out")
        self.graph.known.shapes[tensor] = wanted
        if inner:
            self.graph.foldable[tensor] = inner
