"""Random parts of random layers on random near memories, and nests that bring them there, with any loops and Stays."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.levels.schedule import Box, Cut, LevelNest, NearStep, Stay
from instances.machine.machine import Machine
from instances.network.workload import Layer
from tests.adversary.near_events import Axis, Said, Work, simulated

_OPERANDS = "IN", "W", "OUT"
_LAID = ([_OPERANDS], [_OPERANDS], [("IN", "W"), ("OUT",)], [("IN",), ("W", "OUT")], [("IN",), ("W",), ("OUT",)])


@dataclass(frozen=True)
class Near:
    """A layer, a machine, and a step."""

    layer: Layer
    machine: Machine
    step: NearStep
    size: Mapping[str, int]
    axes: tuple[Axis, Axis]

    @property
    def items(self) -> list[tuple[str, int | str]]:
        """The nest, as it is simulated."""
        return [(x.operand, "") if isinstance(x, Stay) else (x.dim, x.step) for x in self.step.nest.items]

    def counted(self) -> tuple[int, int, bool]:
        """Ticks, bytes, and whether it fits; sums of a part come one by one before it, tile by tile."""
        layer, machine, sums = self.layer, self.machine, self.step.box.sums
        assert machine.near is not None
        first, *behind = machine.near.memories
        single = self.size["m"] == self.size["n"] == 1
        out = max(machine.out_bytes, machine.psum_bytes) if sums else machine.out_bytes
        seen = simulated(
            Work(
                self.size, *self.axes, layer.inputs, layer.weights != "none",
                {"IN": machine.in_bytes, "W": machine.w_bytes, "OUT": out, "PSUM": machine.psum_bytes},
                machine.bias_bytes if layer.bias else 0, first.call_ticks, first.byte_ticks,
                machine.compute.cycle_ticks,
                {"g": machine.compute.cols} if single else {"m": machine.compute.rows, "n": machine.compute.cols},
                {operand: one.buffers for one in behind for operand in one.operands}, machine.sliding,
            ),
            self.items,
        )  # fmt: skip
        ticks, moved = seen.ticks, seen.moved
        if sums:
            size = machine.psum_bytes
            for d in "bgmrc":
                size *= self.size[d]
            ticks, moved = ticks + seen.out_calls * first.call_ticks + size * first.byte_ticks, moved + size
        return ticks, moved, self._fits(behind, seen)

    @staticmethod
    def _fits(behind: Any, seen: Said) -> bool:
        return all(
            one.reserved_bytes + one.buffers * sum(seen.held.get(operand, 0) for operand in one.operands) <= one.bytes
            for one in behind
        )


def machine_of(rng: random.Random) -> Machine:
    """Memories of one or several operands, single and double buffers, calls and bytes from none to dear."""
    memories = [
        {"name": f"n{k}", "bytes": rng.randint(20, 3000), "reserved_bytes": rng.choice((0, 0, 5)),
         "operands": operands, "buffers": rng.choice((1, 2))}
        for k, operands in enumerate(rng.choice(_LAID))
    ]  # fmt: skip
    first = {"name": "l2", "call_ticks": rng.choice((0, 7, 100)), "byte_ticks": rng.choice((0, 1, 3))}
    sizes = {name: rng.choice((1, 2)) for name in ("in_bytes", "w_bytes", "out_bytes")}
    return Machine.model_validate({
        "name": "near", "problem": "fusion", "tick_ps": 1, **sizes, "psum_bytes": rng.choice((1, 4)),
        "bias_bytes": rng.choice((0, 4)), "ocm_bytes": 5000, "sliding": rng.random() < 0.7, "transfer": {},
        "near": {"queues": "each", "memories": [first, *memories]},
        "compute": {"model": "array", "rows": rng.choice((1, 2, 4)), "cols": rng.choice((1, 3)),
                    "cycle_ticks": rng.choice((0, 1, 5))},
    })  # fmt: skip


def layer_of(rng: random.Random) -> Layer:
    """A convolution of any kind, a pool, or a sum."""
    if rng.random() < 0.25:
        high, wide = rng.randint(1, 6), rng.randint(1, 6)
        return Layer(name="x", kind="eltwise", g=rng.randint(1, 4), b=rng.randint(1, 2), m=1, n=1, r=high, c=wide,
                     h=high, l=wide, inputs=rng.randint(1, 3), weights="none")  # fmt: skip
    while True:
        kind = rng.choice(("conv", "conv", "deep", "group", "pool"))
        each, groups = rng.randint(1, 3), 1 if kind == "conv" else rng.randint(1, 3)
        channels = groups * (each if kind in ("conv", "group") else 1)
        filters = channels if kind == "pool" else groups * rng.randint(1, 4)
        kernel = rng.randint(1, 3), rng.randint(1, 3)
        top, left, bottom, right = (rng.randint(0, kernel[k % 2] - 1) for k in range(4))
        try:
            made = Layer.conv(
                "x", channels=channels, filters=filters, size=(rng.randint(1, 9), rng.randint(1, 9)), kernel=kernel,
                stride=(rng.randint(1, 3), rng.randint(1, 3)), dilation=(rng.randint(1, 2), rng.randint(1, 2)),
                pad=(top, left, bottom, right), groups=groups, batch=rng.randint(1, 2), bias=rng.random() < 0.5,
            )  # fmt: skip
        except ValueError:
            continue
        return made.model_copy(update={"kind": "pool", "weights": "none", "bias": False}) if kind == "pool" else made


def near_of(seed: int) -> Near | None:
    """A random step; None if what its box reads is padding alone."""
    rng = random.Random(seed)
    machine, layer = machine_of(rng), layer_of(rng)
    spans = {d: _span(rng, layer.extent(d)) for d in "bgmnrcij"}
    if rng.random() < 0.7:
        spans |= {d: (0, layer.extent(d)) for d in "nij"}
    pads, axes = list[int](), list[Axis]()
    for d, taps, stride, dilation, pad, there in (
        ("r", "i", layer.stride_h, layer.dilation_h, layer.pad_top, layer.h),
        ("c", "j", layer.stride_w, layer.dilation_w, layer.pad_left, layer.l),
    ):
        reads = [at * stride - pad + tap * dilation for at in range(*spans[d]) for tap in range(*spans[taps])]
        low, high = min(reads), max(reads) + 1
        if high <= 0 or low >= there:
            return None
        before, behind = max(0, -low), max(0, high - there)
        pads += [before, behind]
        axes.append(Axis(stride, dilation, before, high - low - before - behind))
    size = {d: end - begin for d, (begin, end) in spans.items()}
    parts = any(size[d] < layer.extent(d) for d in "nij")
    sides: list[Any] = [*(size[d] for d in "bgmnrcij"), *pads, parts]
    box = Box(*sides)
    return Near(layer, machine, NearStep(0, box, 1, _nest(rng, layer, size, machine)), size, (axes[0], axes[1]))


def _span(rng: random.Random, size: int) -> tuple[int, int]:
    begin = rng.randint(0, size - 1)
    return begin, rng.randint(begin + 1, size)


def _nest(rng: random.Random, layer: Layer, size: Mapping[str, int], machine: Machine) -> LevelNest:
    assert machine.near is not None
    steps, order = dict[str, list[int]](), list[str]()
    for d, left in size.items():
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            if left > 1:
                left = rng.randint(1, left)
                steps.setdefault(d, []).append(left)
                order.append(d)
    rng.shuffle(order)
    items: list[Cut | Stay] = [Cut(d, steps[d].pop(0)) for d in order]  # type: ignore[arg-type]
    holds: dict[str, str] = {operand: one.name for one in machine.near.memories[1:] for operand in one.operands}
    operands = [operand for operand in _OPERANDS if operand in layer.operands]
    rng.shuffle(operands)
    for operand in operands:
        taps = [k for k, x in enumerate(items) if isinstance(x, Cut) and x.dim in "ij" and x.step < size[x.dim]]
        last = taps[0] if operand == "IN" and taps else len(items)
        items.insert(rng.randint(0, last), Stay(operand, holds[operand]))  # type: ignore[arg-type]
    return LevelNest(tuple(items))
