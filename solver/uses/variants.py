"""Variants of a network's layers with estimated times: on a board, or on a machine that tiles.

Example: `squeezenet1_1` on galaxy_s9. In configuration (2,2) there are stages cpu0, cpu1 and gpu, and every task has a
time on each. On scratchpad_64k there is one stage, npu; a layer takes the time of its best plan, a Tucker decomposition
what the best plans of its convolutions take together. Where the machine's elements have an even number of bytes, a
variant has half of them.

Nothing here is measured. Losses of accuracy are assumed (`formulations.selection.boards`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from formulations.selection.boards import RANKS, board_settings, check_ranks, lost_ppm, platform_of
from hwmodels.selection.price import decompositions, pieces, weights
from instances.errors import InputError, choices
from instances.machine.boards import ElementType, Platform, Stage
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.tasks import Task, tasks
from instances.network.variants import Option, VariantLayer, Variants
from instances.network.workload import Layer
from instances.problems import nested
from solver.calls.solve import solve

_STAGE = "npu"
#: Element types of a chip: those of the machine file, and half of their bytes.
_TYPES = ("full", "half")


@dataclass(frozen=True)
class Estimated:
    """Variants, and the machine with the platform that they are for."""

    variants: Variants
    machine: Machine


def estimate(
    network: Network, machine: Machine, ranks: Sequence[float] = RANKS, sensitivity_ppm: int = 0,
    cpu_config: tuple[int, ...] | None = None,
) -> Estimated:  # fmt: skip
    """Return a network's layers in variants.

    Parameters
    ----------
    ranks : sequence of float
        Shares of the channels that Tucker decompositions try on each side; none: no decompositions.
    sensitivity_ppm : int
        Accuracy that a layer would lose without all of its weights, in millionths; assumed.
    cpu_config : tuple of int, optional
        Groups of the cores of a board; by default all cores in one.

    Raises
    ------
    InputError
        If the machine has no times for layers, or no plan for one of them.
    """
    check_ranks(ranks)
    if machine.processors is not None:
        configuration = machine.processors.configurations[0] if cpu_config is None else cpu_config
        (setting,) = board_settings(network, machine, ranks, sensitivity_ppm, [configuration])
        said = f"{machine.name}, cores in groups of {setting.configuration}"
        platform = platform_of(machine.processors, configuration)
        return Estimated(setting.variants, _platformed(machine, platform, said))
    if machine.problem not in nested("layers"):
        raise InputError(
            f"machine {machine.name}: variants have times on boards, such as galaxy_s9, and on machines for problems "
            f"{choices(nested('layers'))}, such as scratchpad_64k; this one is for problem {machine.problem}"
        )
    if cpu_config is not None:
        raise InputError(f"machine {machine.name}: --cpu-config groups the cores of a board, it has none")
    return _Chip(machine).estimated(network, ranks, sensitivity_ppm)


def _platformed(machine: Machine, platform: Platform, said: str) -> Machine:
    """A machine for problem selection with the ticks and elements of another one."""
    return Machine.model_validate({
        "name": f"{machine.name}_platform", "description": f"stages of {said}", "problem": "selection",
        "tick_ps": machine.tick_ps, "in_bytes": machine.in_bytes, "w_bytes": machine.w_bytes,
        "out_bytes": machine.out_bytes, "psum_bytes": machine.psum_bytes, "transfer": {},
        "platform": platform.model_dump(), "sources": {"platform": f"estimated from machine {machine.name}"},
    })  # fmt: skip


class _Chip:
    """A machine that tiles: what layers take there by their best plans."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.known: dict[object, int | None] = {}
        self.gap = 0.0

    @cached_property
    def halved(self) -> Machine | None:
        """The machine with half of the bytes of its elements; None if one of them has an odd number."""
        sizes = {name: getattr(self.machine, name) for name in ("in_bytes", "w_bytes", "out_bytes")}
        if any(size % 2 for size in sizes.values()):
            return None
        halves = {name: size // 2 for name, size in sizes.items()}
        return Machine.model_validate({**self.machine.model_dump(), **halves})

    def estimated(self, network: Network, ranks: Sequence[float], sensitivity_ppm: int) -> Estimated:
        """Variants in one stage."""
        graph, layers = tasks(network), {layer.name: layer for layer in network.layers}
        made = []
        for i, task in enumerate(graph.tasks):
            options = tuple(self.options(task, layers.get(task.name), ranks, sensitivity_ppm))
            reads = tuple(graph.tasks[k].name for k in graph.before[i])
            made.append(VariantLayer(name=task.name, options=options, reads=reads, elements=task.results))
        if not any(option.time for layer in made for option in layer.options):
            raise InputError(f"machine {self.machine.name}: it prices no time, only bytes: variants need times")
        variants = Variants(
            name=network.name, machine=self.machine.name, layers=tuple(made),
            description=f"estimated for {self.machine.name} by best plans of problem {self.machine.problem}",
            sources={
                "time": f"best plans of problem {self.machine.problem}, {self.said}; fused operators take none",
                "loss_ppm": "assumed: linear in the share of a layer's weights left out; half elements cost none",
            },
        )  # fmt: skip
        types = [ElementType(name=_TYPES[0], bytes=self.machine.in_bytes)]
        types += [] if self.halved is None else [ElementType(name=_TYPES[1], bytes=self.halved.in_bytes)]
        platform = Platform(stages=(Stage(name=_STAGE),), pipeline="never", types=tuple(types))
        return Estimated(variants, _platformed(self.machine, platform, self.machine.name))

    @property
    def said(self) -> str:
        """How good the plans are."""
        return f"at most {self.gap:.2%} above a proven bound" if self.gap else "all proven"

    def options(
        self, task: Task, layer: Layer | None, ranks: Sequence[float], sensitivity_ppm: int
    ) -> Iterator[Option]:
        """The base, its decompositions, and these with half of the bytes of elements."""
        made: list[tuple[str, tuple[str, ...], tuple[Layer, ...], int]] = [("base", (), (), 0)]
        if layer is not None:
            made = [("base", (), (layer,), 0)]
            for one in decompositions(layer, ranks):
                parts = pieces(layer, one)
                made.append((one.name(layer), ("tucker",), parts, lost_ppm(layer, parts, sensitivity_ppm)))
        for kind, machine in zip(_TYPES, (self.machine, self.halved), strict=True):
            for name, techniques, parts, loss in made if machine is not None else ():
                us = self.us(parts, machine or self.machine)
                half = kind == _TYPES[1]
                if us is None and not (techniques or half):
                    raise InputError(f"layer {task.name}: it has no plan on machine {self.machine.name}")
                if us is not None:
                    yield Option(
                        variant=("half" if name == "base" else f"{name}_half") if half else name, stage=_STAGE, time=us,
                        techniques=(*techniques, "half") if half else techniques, type=kind, loss_ppm=loss,
                        bytes=weights(parts) * (machine or self.machine).w_bytes,
                    )  # fmt: skip

    def us(self, parts: Sequence[Layer], machine: Machine) -> float | None:
        """Microseconds of layers one after the other; None if one has no plan."""
        ticks = [self.ticks(part, machine) for part in parts]
        known = [number for number in ticks if number is not None]
        return sum(known) * machine.tick_ps / 1e6 if len(known) == len(ticks) else None

    def ticks(self, layer: Layer, machine: Machine) -> int | None:
        """The time of a best plan; None if there is none."""
        key = (layer.signature(), machine is self.machine)
        if key not in self.known:
            plan = solve(layer, machine, objective="time")
            stopped = any(row.stats.get("interrupted") or row.stats.get("stopped") for row in plan.parts)
            if stopped or plan.status == "NO_SOLUTION_FOUND":
                raise InputError(f"layer {layer.name}: its search was stopped, and no time is known")
            objective = plan.objective
            self.known[key] = None if objective is None else objective.value
            self.gap = max(self.gap, plan.gap or 0.0)
        return self.known[key]
