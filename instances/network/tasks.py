"""A network as tasks for several processors, and as the tensors that lie off the chip.

**Tasks** say what each one computes, and what it hands to which others. Every operator is a task, the network's inputs
and its last softmax included; element-wise operators of one tensor are part of the task before them, unless they
normalise over several elements. So SqueezeNet has 40 tasks, MobileNet v1 31, v2 67 and DenseNet-40 64
(`heterogeneous_mapping_and_banks` Table 3.13).

A result of the network is what no operator reads. If it is part of a task whose map other tasks read as well, it is
handed to a task of its own that takes no time: a last one, as every result is. An example: convolutions a, b(a) and a
ReLU of a that nobody reads are the tasks a, b and the ReLU.

**Tensors** are feature maps with the time they are needed, and the weights. Time is the number of the operator that
runs. A map is there from the operator that makes it (inputs of the network: from the begin) until the last one that
reads it (results of the network: until the end). Element-wise operators of one input and reshapes leave a map where it
is; what is concatenated shares one place, which is there from its first part on. Weights are there all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from instances.errors import InputError
from instances.network.network import Network
from instances.network.operators import UNARY, Concat, Conv, Correlation, Eltwise, Input, MatMul, Operator, Reshape
from instances.network.stores import Groups
from instances.network.workload import Layer

#: Functions of one tensor that need more than the element: tasks of their own.
_NORMALISING = frozenset("group_norm instance_norm layer_norm log_softmax lp_norm lrn rms_norm softmax".split())
FUSED = UNARY - _NORMALISING


@dataclass(frozen=True)
class Task:
    """What a task computes."""

    name: str
    op: str
    """As in the network's file; of an element-wise operator its function."""
    macs: int
    results: int
    """Elements of its result."""
    reduction: int
    """Products that are summed for one result; 0 if it does not multiply."""
    moved: int
    """Elements that it reads and writes, if it does not multiply; 0 if it moves nothing (inputs, reshapes)."""
    fused: tuple[str, ...] = ()
    """Functions that are part of it."""

    @property
    def divisible(self) -> bool:
        """Whether parts of its result can be computed apart from each other."""
        return bool(self.macs or self.moved) and self.op not in _NORMALISING


@dataclass(frozen=True)
class TaskGraph:
    """Tasks in topological order, and edges (i, j): task j reads the result of task i."""

    network: str
    tasks: tuple[Task, ...]
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """By task those whose results it reads."""
        return self._beside((j, i) for i, j in self.edges)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """By task those that read its result."""
        return self._beside(self.edges)

    def _beside(self, pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.tasks]
        for task, other in pairs:
            found[task].append(other)
        return tuple(map(tuple, found))

    def picked(self, key: Callable[[int], Any]) -> Iterator[int]:
        """Yield the tasks, none before those it reads from: of those that may come next the one with the least key."""
        waiting = [len(few) for few in self.before]
        ready = [i for i, few in enumerate(waiting) if not few]
        while ready:
            i = min(ready, key=lambda i: (key(i), i))
            yield i
            ready.remove(i)
            for j in self.after[i]:
                waiting[j] -= 1
                if not waiting[j]:
                    ready.append(j)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The tasks that no other comes before."""
        return tuple(i for i, few in enumerate(self.before) if not few)

    @cached_property
    def last(self) -> tuple[int, ...]:
        """The tasks whose results no other reads."""
        return tuple(i for i, few in enumerate(self.after) if not few)


def tasks(network: Network) -> TaskGraph:
    """Return the tasks of a network; raises InputError if it has an operator that is not understood."""
    number: dict[str, int] = {}
    found: list[Task] = []
    edges: dict[tuple[int, int], None] = {}
    read = {name for operator in network.operators for name in operator.inputs}
    for operator in network.operators:
        if isinstance(operator, Eltwise) and len(operator.inputs) == 1 and operator.fn in FUSED:
            number[operator.name] = at = number[operator.inputs[0]]
            found[at] = replace(found[at], fused=(*found[at].fused, operator.fn))
            continue
        number[operator.name] = at = len(found)
        found.append(_task(network, operator))
        edges.update(((number[name], at), None) for name in operator.inputs)
    handed = {i for i, _ in edges}
    for name, i in number.items():
        if name not in read and i in handed and found[i].name != name:
            edges[i, len(found)] = None
            found.append(Task(name, "reshape", 0, found[i].results, 0, 0))
    return TaskGraph(network.name, tuple(found), tuple(edges))


def _task(network: Network, operator: Operator) -> Task:
    results, shapes = prod(operator.shape), network.input_shapes(operator)
    op = operator.fn if isinstance(operator, Eltwise) else operator.op
    if op == "opaque":
        raise InputError(f"network {network.name}: operator {operator.name} is of an unknown kind: no time is known")
    if isinstance(operator, Conv | Correlation | MatMul):
        layer = operator.layer(shapes)
        return Task(operator.name, op, layer.macs, results, layer.macs // results, 0)
    moves = not isinstance(operator, Input | Reshape)
    return Task(operator.name, op, 0, results, 0, results + sum(map(prod, shapes)) if moves else 0)


@dataclass(frozen=True)
class Tensor:
    """One map."""

    name: str
    """The operator that makes it, or the concatenation that it is part of."""
    elements: int
    """Of what layers make."""
    outside: int
    """Elements of what comes from outside the network."""
    first: int
    """The operator from which on it is there."""
    last: int
    """The last operator at which it is there."""


@dataclass(frozen=True)
class Use:
    """A layer with the numbers of the maps that it reads as IN and as W (None: constant weights), and writes."""

    layer: Layer
    reads: tuple[int, ...]
    weights: int | None
    writes: int


@dataclass(frozen=True)
class Tensors:
    """All maps and layers of a network; operators are numbered 0 to `last`."""

    maps: tuple[Tensor, ...]
    uses: tuple[Use, ...]
    last: int


def alone(layer: Layer) -> Tensors:
    """A layer by itself: its inputs, its result and, for a product of activations, its other input."""
    maps = [Tensor(f"input {k + 1} of {layer.name}", 0, layer.input_elements(k), 0, 0) for k in range(layer.inputs)]
    weights = None
    if layer.weights == "activation":
        weights = len(maps)
        maps.append(Tensor(f"weights of {layer.name}", 0, layer.g * layer.m * layer.n * layer.kh * layer.kw, 0, 0))
    maps.append(Tensor(layer.name, layer.b * layer.g * layer.m * layer.r * layer.c, 0, 0, 0))
    use = Use(layer, tuple(range(layer.inputs)), weights, len(maps) - 1)
    return Tensors(tuple(maps), (use,), 0)


def tensors(network: Network) -> Tensors:
    """Return the maps of a network, and which layer reads and writes which."""
    groups = Groups([o.name for o in network.operators])
    for operator in network.operators:
        if _in_place(operator):
            groups.join(operator.name, operator.inputs[0])
        elif isinstance(operator, Concat):
            for name in operator.inputs:
                groups.join(name, operator.name)
    roots = list(dict.fromkeys(groups.find(o.name) for o in network.operators))
    number = {o.name: roots.index(groups.find(o.name)) for o in network.operators}
    read = {name for o in network.operators for name in o.inputs}
    last = len(network.operators) - 1
    made, outside = [0] * len(roots), [0] * len(roots)
    begin, end = [last] * len(roots), [0] * len(roots)
    for time, operator in enumerate(network.operators):
        mine = number[operator.name]
        if isinstance(operator, Input):
            outside[mine] += prod(operator.shape)
        elif not (_in_place(operator) or isinstance(operator, Concat)):
            made[mine] += prod(operator.shape)
        begin[mine] = min(begin[mine], 0 if isinstance(operator, Input) else time)
        for at in (mine, *(number[name] for name in operator.inputs)):
            end[at] = max(end[at], time)
        if operator.name not in read:
            end[mine] = last
    maps = map(Tensor, roots, made, outside, begin, end)
    return Tensors(tuple(maps), tuple(_uses(network, number)), last)


def _in_place(operator: Operator) -> bool:
    return isinstance(operator, Reshape) or (isinstance(operator, Eltwise) and len(operator.inputs) == 1)


def _uses(network: Network, number: dict[str, int]) -> list[Use]:
    found = []
    for operator in network.operators:
        layer = operator.layer(network.input_shapes(operator))
        if layer is None:
            continue
        names: tuple[str, ...] = operator.inputs
        weights = None
        if isinstance(operator, MatMul) and len(names) == 2:
            weights = number[operator.inputs[1]]
            names = names[:1]
        found.append(Use(layer, tuple(dict.fromkeys(number[n] for n in names)), weights, number[operator.name]))
    return found
