"""A network on a board as selection: every task is a layer, and an option is a processor with a variant of the task.

Example: `squeezenet1_1` on a Galaxy S9 in configuration (2,2). Stages are cpu0, cpu1 and gpu, each a thread of its own;
fire2.expand3x3 is 3 x 3, 16 -> 64 channels. Its options are the base and ``tucker_16_32``, on three processors; the
decomposition takes what its convolutions take there, one after the other.

Times are those of `hwmodels.board.price`, copies between processors those of 3.3.3.2, so that with base variants
alone period and energy are those of problem `mapping` (Eq. 3.7, 3.8), where power by core is a whole number of
milliwatts. What it asks for holds here too: the first and the last tasks run on cores. They are in 32 bits, as what
comes in and goes out is.

Losses of accuracy are not known before somebody measures them. They are ASSUMED to be `sensitivity_ppm` times the
share of its weights that a layer does without; 16 bits are assumed to cost none. The default, 0, says that nothing is
known: budgets of accuracy then do nothing, and decompositions cost only what they take.

Source: `heterogeneous_mapping_and_banks` 3.1.3.2, 3.1.3.4, 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from formulations.mapping.space import run_as
from formulations.selection.frame import Setting
from hwmodels.board.price import ALONE, estimated, polynomial
from hwmodels.selection.price import decompositions, pieces, weights
from instances.errors import InputError
from instances.machine.boards import Conversion, ElementType, Group, Handover, Platform, Processors, Stage
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, MatMul
from instances.network.tasks import Task, TaskGraph, tasks
from instances.network.variants import Option, VariantLayer, Variants
from instances.network.workload import Layer

#: Shares of the channels that decompositions have: the rule of thumb of 3.1.3.2.
RANKS = (0.5,)
#: Processors that a platform has room for.
_MOST = 16
_HALF = "f16"


@dataclass(frozen=True)
class _Variant:
    """A variant of a task, before a processor is chosen."""

    name: str
    techniques: tuple[str, ...]
    type: str
    loss_ppm: int
    bytes: int
    us: dict[str, float | None]
    """By how processors run tasks (`hwmodels.board.price.options`); None where it cannot run."""


def board_settings(
    network: Network, machine: Machine, ranks: Sequence[float] = RANKS, sensitivity_ppm: int = 0,
    configurations: Sequence[tuple[int, ...]] | None = None,
) -> list[Setting]:  # fmt: skip
    """Return a network on a board, one setting for each configuration of the cores that can run it.

    Parameters
    ----------
    ranks : sequence of float
        Shares of the channels, above 0 and below 1, that Tucker decompositions try on each side; none: no
        decompositions.
    sensitivity_ppm : int
        Accuracy that a layer would lose without all of its weights, in millionths; assumed, and linear.
    configurations : sequence of tuple of int
        Of the cores; by default all.

    Raises
    ------
    InputError
        If the machine has no processors or too many, a task is not understood, or none of them can run it.
    """
    board = machine.processors
    if board is None:
        raise InputError(f"machine {machine.name}: it has no processors, such as galaxy_s9 has")
    check_ranks(ranks)
    graph = tasks(network)
    variants = _variants(network, graph, board, ranks, sensitivity_ppm)
    found, faults = list[Setting](), list[InputError]()
    for configuration in _asked(board, configurations):
        try:
            found.append(_setting(graph, variants, machine, board, configuration))
        except InputError as error:
            faults.append(error)
    if not found:
        raise faults[0]
    return found


def check_ranks(ranks: Sequence[float]) -> None:
    """Raise InputError if they are not shares of channels."""
    if any(not 0 < share < 1 for share in ranks):
        raise InputError(f"ranks {', '.join(map(str, ranks))}: each is a share of the channels, such as 0.5")


def _asked(board: Processors, wanted: Sequence[tuple[int, ...]] | None) -> Sequence[tuple[int, ...]]:
    for one in wanted or ():
        if one not in board.configurations:
            known = " ".join(",".join(map(str, config)) for config in board.configurations)
            raise InputError(f"cpu_config {','.join(map(str, one))}: known are {known}")
    return board.configurations if wanted is None else wanted


def _setting(
    graph: TaskGraph, variants: Sequence[Sequence[_Variant]], machine: Machine, board: Processors,
    configuration: tuple[int, ...],
) -> Setting:  # fmt: skip
    groups, name = board.groups(configuration), ",".join(map(str, configuration))
    if len(groups) > _MOST:
        raise InputError(
            f"machine {machine.name}: cpu_config {name} has {len(groups)} processors, at most {_MOST} are taken"
        )
    ends = {*graph.first, *graph.last}
    layers = []
    for i, task in enumerate(graph.tasks):
        options = tuple(_options(variants[i], groups, i in ends))
        if not options:
            where = "the cores, where first and last tasks run" if i in ends else "any processor"
            raise InputError(f"network {graph.network}: task {task.name} cannot run on {where}")
        reads = tuple(graph.tasks[k].name for k in graph.before[i])
        layers.append(VariantLayer(name=task.name, options=options, reads=reads, elements=task.results))
    made = Variants(
        name=graph.network, machine=machine.name, layers=tuple(layers),
        description=f"estimated for {machine.name}, cores in groups of {name}", sources=_SOURCES,
    )  # fmt: skip
    return Setting(made, platform_of(board, configuration), machine.tick_ps, name)


_SOURCES = {
    "time": "estimated by the profile of the processors (docs/mapping.md), not measured",
    "loss_ppm": "assumed: linear in the share of a layer's weights that is left out; 16 bits cost none",
}


def _options(variants: Sequence[_Variant], groups: Sequence[Group], is_end: bool) -> Iterator[Option]:
    """Options of a task on all processors that may run it."""
    for variant in variants:
        if is_end and variant.type == _HALF:
            continue
        for group, option in zip(groups, run_as(groups), strict=True):
            us = variant.us.get(option)
            if us is not None and (group.cores or not is_end):
                yield Option(
                    variant=variant.name, stage=group.name, time=us, techniques=variant.techniques, type=variant.type,
                    loss_ppm=variant.loss_ppm, bytes=variant.bytes,
                )  # fmt: skip


# ---- variants of tasks -----------------------------------------------------------------------------------------------


def _variants(
    network: Network, graph: TaskGraph, board: Processors, ranks: Sequence[float], sensitivity_ppm: int
) -> list[list[_Variant]]:  # fmt: skip
    """All variants of every task, the base first."""
    found = []
    for task, us in zip(graph.tasks, estimated(graph, board), strict=True):
        layer = _weighted(network, task.name)
        number = 0 if layer is None else layer.parameters
        made = [_Variant("base", (), "f32", 0, number * board.element_bytes, us)]
        if layer is not None:
            made += _decomposed(task, layer, board, ranks, sensitivity_ppm)
        found.append([*made, *(half for variant in made if (half := _halved(variant, board)) is not None)])
    return found


def _decomposed(
    task: Task, layer: Layer, board: Processors, ranks: Sequence[float], sensitivity_ppm: int
) -> Iterator[_Variant]:
    """Decompositions of a convolution."""
    for one in decompositions(layer, ranks):
        parts = pieces(layer, one)
        loss, size = lost_ppm(layer, parts, sensitivity_ppm), weights(parts) * board.element_bytes
        yield _Variant(one.name(layer), ("tucker",), "f32", loss, size, _in_turn(task, parts, board))


def lost_ppm(layer: Layer, parts: Sequence[Layer], sensitivity_ppm: int) -> int:
    """Return the accuracy that a decomposition is assumed to cost: linear in the share of weights left out."""
    return round(sensitivity_ppm * (1 - weights(parts) / layer.parameters))


def _weighted(network: Network, name: str) -> Layer | None:
    """The layer of a task with constant weights; None of others."""
    operator = network.operator(name)
    if not isinstance(operator, Conv | MatMul):
        return None
    layer = operator.layer(network.input_shapes(operator))
    return layer if layer.weights == "constant" else None


def _in_turn(task: Task, parts: Sequence[Layer], board: Processors) -> dict[str, float | None]:
    """What convolutions take one after the other; the last one has the functions that are part of the task."""
    made = []
    for part in parts:
        results = prod((part.b, part.m, part.r, part.c))
        fused = task.fused if part is parts[-1] else ()
        made.append(Task(part.name, "conv", part.macs, results, part.macs // results, 0, fused))
    rows = estimated(TaskGraph(task.name, tuple(made), ()), board)
    return {option: _sum([row[option] for row in rows]) for option in rows[0]}


def _sum(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _halved(variant: _Variant, board: Processors) -> _Variant | None:
    """The same in 16 bits, where processors say how fast they are in them."""
    scales = {one.name: one.half_scale for one in board.accelerators}
    scales |= dict.fromkeys((ALONE, *(str(n + 1) for n in range(board.cpu.cores))), board.cpu.half_scale)
    us = {
        option: None if time is None or (scale := scales[option]) is None else time * scale
        for option, time in variant.us.items()
    }
    if all(time is None for time in us.values()):
        return None
    name = _HALF if variant.name == "base" else f"{variant.name}_{_HALF}"
    return _Variant(name, (*variant.techniques, _HALF), _HALF, variant.loss_ppm, variant.bytes // 2, us)


# ---- the board -------------------------------------------------------------------------------------------------------


def platform_of(board: Processors, configuration: tuple[int, ...]) -> Platform:
    """Return the processors of a configuration as stages, each one a thread of its own."""
    groups = board.groups(configuration)
    powers = {one.name: one.power_mw for one in board.accelerators}
    stages = tuple(
        Stage(name=g.name, power_mw=board.cpu.power_mw * g.cores // board.cpu.cores if g.cores else powers[g.name])
        for g in groups
    )
    handovers = tuple(_handover(p, q, board) for p in groups for q in groups if p != q)
    scales = [board.cpu.half_scale, *(one.half_scale for one in board.accelerators)]
    halves = any(scale is not None for scale in scales)
    sizes = {"f32": board.element_bytes, **({_HALF: board.element_bytes // 2} if halves else {})}
    types = tuple(ElementType(name=name, bytes=size) for name, size in sizes.items())
    conversions = tuple(_conversions(board, groups)) if halves else ()
    return Platform(stages=stages, pipeline="always", types=types, handovers=handovers, conversions=conversions)


def _handover(source: Group, target: Group, board: Processors) -> Handover:
    """What the copies of 3.3.3.2 take; the sender is busy (Eq. 3.7)."""
    constant, byte, square = polynomial(board.copying, out=not source.cores, into=not target.cores)
    return Handover(source=source.name, target=target.name, send_ns=constant, byte_ps=byte, square_fs=square)


def _conversions(board: Processors, groups: Sequence[Group]) -> Iterator[Conversion]:
    """A conversion is a task that reads and writes every element once, on the processor that made the map."""
    moves = [Task("conversion", "cast", 0, elements, 0, 2 * elements) for elements in (_FEW, _MANY)]
    few, many = estimated(TaskGraph("conversions", tuple(moves), ()), board)
    for group, option in zip(groups, run_as(groups), strict=True):
        one, other = few[option], many[option]
        if one is None or other is None:
            continue
        element_us = (other - one) / (_MANY - _FEW)
        for source, target in (("f32", _HALF), (_HALF, "f32")):
            yield Conversion(
                source=source, target=target, stage=group.name, element_ps=element_us * 1_000_000,
                call_ns=max(0.0, one - element_us * _FEW) * 1000,
            )  # fmt: skip


#: Elements of two conversions, whose times are on the line of all others.
_FEW, _MANY = 1_000, 1_001_000
