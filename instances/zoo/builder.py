"""A small builder: adds operators one by one and infers every shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from instances.network.network import Network
from instances.network.operators import (
    Concat,
    Conv,
    Correlation,
    Eltwise,
    Input,
    MatMul,
    Operator,
    Pool,
    Reshape,
    Shape,
)

__all__ = ["Builder"]

OneOrTwo = int | tuple[int, int]
OneToFour = int | tuple[int, int] | tuple[int, int, int, int]


def _pair(value: OneOrTwo) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _pads(value: OneToFour | None, kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return (top, left, bottom, right); None keeps the size of the map for odd kernels at stride 1."""
    if value is None:
        value = (dilation[0] * (kernel[0] - 1) // 2, dilation[1] * (kernel[1] - 1) // 2)
    if isinstance(value, int):
        value = (value, value)
    return (*value, *value) if len(value) == 2 else value


class Builder:
    """Collects the operators of one network; every method returns the name of the tensor it makes."""

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self.operators: dict[str, Operator] = {}

    def add(self, operator: Operator) -> str:
        """Append `operator` with its shape inferred from its inputs."""
        if operator.name in self.operators:
            raise ValueError(f"operator {operator.name!r} exists already")
        shape = operator.infer([self.shape(x) for x in operator.inputs])
        self.operators[operator.name] = operator.model_copy(update={"shape": shape})
        return operator.name

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor."""
        return self.operators[name].shape

    def build(self) -> Network:
        """Return the validated network."""
        return Network(name=self.name, description=self.description, operators=tuple(self.operators.values()))

    def input(self, *shape: int, name: str = "input") -> str:
        """Add an input."""
        return self.add(Input(name=name, shape=shape))

    def conv(
        self, x: str, name: str, filters: int, kernel: OneOrTwo = 1, *, stride: OneOrTwo = 1,
        pad: OneToFour | None = None, dilation: OneOrTwo = 1, groups: int = 1, bias: bool = False,
        batch_norm: bool = True, act: str = "relu",
    ) -> str:  # fmt: skip
        """Add a convolution (batch norm folded) and its activation, if any."""
        operator = Conv(
            name=name, inputs=(x,), shape=(1,), filters=filters, kernel=_pair(kernel), stride=_pair(stride),
            pad=_pads(pad, _pair(kernel), _pair(dilation)), dilation=_pair(dilation), groups=groups, bias=bias,
            batch_norm=batch_norm,
        )  # fmt: skip
        return self.unary(self.add(operator), act)

    def unary(self, x: str, fn: str, name: str = "", parameters: int = 0) -> str:
        """Add an element-wise function of one tensor (nothing for an empty `fn`)."""
        if not fn:
            return x
        return self.add(Eltwise(name=name or f"{x}.{fn}", inputs=(x,), shape=(1,), fn=fn, parameters=parameters))

    def norm(self, x: str, name: str) -> str:
        """Add a batch norm that no convolution can absorb (pre-activation) and its relu."""
        return self.unary(self.unary(x, "batch_norm", name, parameters=2 * self.shape(x)[1]), "relu")

    def pool(
        self, x: str, name: str, fn: str, kernel: OneOrTwo, stride: OneOrTwo | None = None, *, pad: OneToFour = 0,
        ceil_mode: bool = False,
    ) -> str:  # fmt: skip
        """Add a "max" or "avg" pooling."""
        pads = _pads(pad, _pair(kernel), (1, 1))
        window = {"kernel": _pair(kernel), "stride": _pair(stride or kernel), "pad": pads, "ceil_mode": ceil_mode}
        return self.add(Pool.model_validate({"name": name, "inputs": (x,), "shape": (1,), "fn": fn} | window))

    def global_avg(self, x: str, name: str = "avgpool") -> str:
        """Add a global average pooling."""
        return self.add(Pool(name=name, inputs=(x,), shape=(1,), fn="global_avg"))

    def fc(self, x: str, name: str, features: int, *, act: str = "") -> str:
        """Add a fully connected layer with biases and its activation, if any."""
        fully = MatMul(name=name, inputs=(x,), shape=(1,), out_features=features, bias=True)
        return self.unary(self.add(fully), act)

    def matmul(self, a: str, b: str, name: str, *, transpose_b: bool = False) -> str:
        """Add a batched product of two tensors."""
        return self.add(MatMul(name=name, inputs=(a, b), shape=(1,), transpose_b=transpose_b))

    def correlation(self, a: str, b: str, name: str, displacement: OneOrTwo, stride: OneOrTwo = 1) -> str:
        """Add products of every pixel of `a` with its neighbours in `b`."""
        reach, step = _pair(displacement), _pair(stride)
        return self.add(Correlation(name=name, inputs=(a, b), shape=(1,), displacement=reach, stride=step))

    def eltwise(self, fn: str, xs: Sequence[str], name: str, *, act: str = "") -> str:
        """Add an element-wise function of several tensors and its activation, if any."""
        return self.unary(self.add(Eltwise(name=name, inputs=tuple(xs), shape=(1,), fn=fn)), act)

    def concat(self, xs: Sequence[str], name: str) -> str:
        """Join the channels of maps."""
        return self.add(Concat(name=name, inputs=tuple(xs), shape=(1,)))

    def reshape(self, x: str, name: str, shape: Shape, fn: str = "reshape") -> str:
        """Add a reshape-like operator."""
        return self.add(Reshape.model_validate({"name": name, "inputs": (x,), "shape": shape, "fn": fn}))

    def flatten(self, x: str) -> str:
        """Join all dimensions but the first."""
        batch, *sizes = self.shape(x)
        return self.reshape(x, "flatten", (batch, prod(sizes)))

    def classified(self, x: str, classes: int = 1000) -> Network:
        """Add global pooling, a fully connected layer and softmax; return the network."""
        self.unary(self.fc(self.flatten(self.global_avg(x)), "fc", classes), "softmax")
        return self.build()
