"""A network as tasks for several processors: what each one computes, and what it hands to which others.

Every operator is a task, the network's inputs and its last softmax included; element-wise operators of one tensor are
part of the task before them, unless they normalise over several elements. So SqueezeNet has 40 tasks, MobileNet v1 31,
v2 67 and DenseNet-40 64 (`heterogeneous_mapping_and_banks` Table 3.13).

A result of the network is what no operator reads. If it is part of a task whose map other tasks read as well, it is
handed to a task of its own that takes no time: a last one, as every result is. An example: convolutions a, b(a) and a
ReLU of a that nobody reads are the tasks a, b and the ReLU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from instances.errors import InputError
from instances.network import Network
from instances.operators import UNARY, Conv, Correlation, Eltwise, Input, MatMul, Operator, Reshape

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
        found: list[list[int]] = [[] for _ in self.tasks]
        for i, j in self.edges:
            found[j].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """By task those that read its result."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for i, j in self.edges:
            found[i].append(j)
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
    """Return the tasks of a network.

    Raises
    ------
    InputError
        If it has an operator that is not understood.
    """
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
