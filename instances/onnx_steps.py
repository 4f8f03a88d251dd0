"""How one ONNX node becomes several operators: steps by name, and the last one that makes the node's result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from pydantic import BaseModel

from instances.onnx_graph import Graph, Node, Unsupported
from instances.operators import Concat, Conv, Eltwise, Input, MatMul, Pool, Resample, Reshape, Shape

Move = Literal["reshape", "transpose", "slice", "pad", "identity"]
Step = Conv | MatMul | Pool | Resample | Eltwise | Concat

#: The largest number of dimensions of a tensor.
MOST_DIMENSIONS = 8


class Steps:
    """Adds the operators of one node. Operators are named, not their tensors."""

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node = node
        self.graph = graph

    def source(self, tensor: str) -> str:
        """Return the operator that makes a tensor; a map of constants lies in DRAM as an input does."""
        if self.graph.is_constant(tensor) and tensor not in self.graph.makers:
            return self.given(tensor, self.graph.shape(tensor), tensor)
        return self.graph.maker(tensor)

    def given(self, name: str, shape: Shape, tensor: str = "", *, zeros: bool = False) -> str:
        """Add a tensor that lies in DRAM before anything runs, or that is all zeros."""
        return self._emit(Input(name=self.graph.unique(name), shape=shape, zeros=zeros), tensor)

    def shape(self, name: str) -> Shape:
        """Return the shape of what an operator makes."""
        return self.graph.operators[name].shape

    def _name(self, suffix: str) -> str:
        return self.graph.unique(f"{self.node.label}:{suffix}" if suffix else self.node.label)

    def _emit(self, operator: Step | Input | Reshape, tensor: str = "") -> str:
        return self.graph.emit(operator, tensor or f"{operator.name} (tensor)")

    def move(self, source: str, shape: Sequence[int], suffix: str, fn: Move = "reshape") -> str:
        """Move the elements of what an operator makes; nothing where it has the shape already."""
        if fn != "transpose" and self.shape(source) == tuple(shape):
            return source
        if len(shape) > MOST_DIMENSIONS:
            raise Unsupported(f"{len(shape)} dimensions on the way")
        return self._emit(Reshape(name=self._name(suffix), inputs=(source,), shape=tuple(shape), fn=fn))

    def permute(self, source: str, order: Sequence[int], suffix: str) -> str:
        """Transpose what an operator makes; a plain reshape where no elements change places."""
        before = self.shape(source)
        shape = [before[axis] for axis in order]
        moving = [axis for axis in order if before[axis] > 1]
        return self.move(source, shape, suffix, "reshape" if moving == sorted(moving) else "transpose")

    def add(self, kind: type[BaseModel], sources: Sequence[str], suffix: str = "", **fields: object) -> str:
        """Add an operator that computes; its shape is inferred. The one without a suffix has the node's name."""
        made = kind.model_validate({"name": self._name(suffix), "inputs": tuple(sources), "shape": (1,), **fields})
        assert isinstance(made, Step)
        try:
            shape = tuple(made.infer([self.shape(name) for name in sources]))
        except ValueError as error:
            raise Unsupported(str(error)) from None
        return self._emit(made.model_copy(update={"shape": shape}))

    def bias(self, source: str, tensor: str) -> str:
        """Add a constant, or another tensor, to what an operator makes (nothing if there is none)."""
        if not tensor:
            return source
        if not self.graph.is_constant(tensor):
            return self.add(Eltwise, [source, self.source(tensor)], "sum", fn="add")
        return self.add(Eltwise, [source], "bias", fn="add", parameters=self.graph.count([tensor]))

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
