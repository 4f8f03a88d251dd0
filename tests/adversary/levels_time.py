"""All nests of a tiny layer on memories in levels, followed one by one where transfers overlap (queues one, each).

Every sequence of loops that cut something, every depth of every Stay in it, and every order of those at one depth:
what they take by counting (`tests.adversary.levels_nests`), their time by the referee's timeline.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

from hwmodels.levels.replay.timeline import Timeline
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.machine.machine import Machine
from instances.network.workload import Layer
from tests.adversary.levels_nests import Counter, Word, words

_OF = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}
Placed = tuple[tuple[str, int], ...]


class Follower(Counter):
    """Follows all nests of a layer on a machine."""

    def nests(self) -> Iterator[tuple[LevelNest, bool]]:
        """Yield all nests that fit; and whether no piece has a size that one loop between two Stays does not make."""
        for loops in words(self.layer):
            choices = [[*self.placed(operand, loops)] for operand in self.layer.operands]
            for chosen in product(*choices):
                stays = [
                    [(operand, name, depth) for name, depth in placed]
                    for operand, (placed, _) in zip(self.layer.operands, chosen, strict=True)
                ]
                if self.fits([taken for _, taken in chosen]):
                    plain = self.even(loops, [one for some in stays for one in some])
                    yield from ((nest, plain) for nest in ordered(loops, stays))

    def placed(self, operand: str, loops: Word) -> Iterator[tuple[Placed, tuple[int, ...]]]:
        """The memories and depths of an operand's Stays, and what they take there."""
        reach = len(loops)
        if operand == "IN":
            reach = next((k for k, (d, _) in enumerate(loops) if d in "ij"), reach)
        for names in self.held(operand):
            for depths in combinations_with_replacement(range(reach + 1), len(names)):
                made = self.stayed(operand, loops, tuple(zip(names, depths, strict=True)), ())
                if made is not None:
                    yield tuple(zip(names, depths, strict=True)), made.taken

    def fits(self, taken: Sequence[tuple[int, ...]]) -> bool:
        """Whether the memories hold all tiles, as often as there are buffers."""
        return all(
            one.reserved_bytes + one.buffers * sum(some[k] for some in taken) <= (one.bytes or 0)
            for k, one in enumerate(self.memories[1:])
        )

    @staticmethod
    def even(loops: Word, stays: Sequence[tuple[str, str, int]]) -> bool:
        """Whether between any two loops over a dimension stands a Stay of what depends on it."""
        for k, (d, _) in enumerate(loops):
            before = next((i for i in reversed(range(k)) if loops[i][0] == d), None)
            if before is not None and not any(before < at <= k and d in _OF[operand] for operand, _, at in stays):
                return False
        return True

    def time(self, nest: LevelNest) -> int:
        """When the last job ends."""
        return Timeline(self.layer, self.machine, nest).end()


def ordered(loops: Word, stays: Sequence[Sequence[tuple[str, str, int]]]) -> Iterator[LevelNest]:
    """Yield the nests with Stays at these depths, in any order of those at one depth: the far ones first."""

    def onward(done: tuple[Cut | Stay, ...], depth: int, left: tuple[int, ...]) -> Iterator[LevelNest]:
        ready = [k for k, some in enumerate(stays) if left[k] < len(some) and some[left[k]][2] == depth]
        for k in ready:
            operand, name, _ = stays[k][left[k]]
            made = Stay(operand, name)  # type: ignore[arg-type]
            yield from onward((*done, made), depth, (*left[:k], left[k] + 1, *left[k + 1 :]))
        if not ready:
            if depth == len(loops):
                yield LevelNest(done)
            else:
                d, step = loops[depth]
                yield from onward((*done, Cut(d, step)), depth + 1, left)  # type: ignore[arg-type]

    yield from onward((), 0, (0,) * len(stays))


def drawn(rng: random.Random) -> tuple[Layer, Machine] | None:
    """A layer of a few elements, and memories that hold a part of it; None: there is none of these sizes."""
    layer = _layer(rng)
    far = {"name": "dram", "call_ticks": rng.choice((0, 1, 3, 9)), "byte_ticks": rng.randint(0, 3)}
    room = layer.weight_elements + layer.h * layer.l * layer.g * layer.n + layer.r * layer.c * layer.g * layer.m
    names = rng.choice((("l1",), ("l1",), ("l2", "l1")))
    memories: list[dict[str, Any]] = [
        {"name": name, "bytes": 3 + int(room ** rng.uniform(0.5, 1.3)), "call_ticks": rng.choice((0, 1, 4)),
         "byte_ticks": rng.randint(0, 3), "buffers": rng.choice((1, 2, 2))}
        for name in names
    ]  # fmt: skip
    if len(names) > 1 and rng.random() < 0.3:
        memories[0]["passed"] = [rng.choice(layer.operands)]
    unit = {
        "model": "array",
        "rows": rng.choice((1, 2)),
        "cols": rng.choice((1, 2)),
        "cycle_ticks": rng.choice((0, 0, 1, 4, 9)),
    }
    try:
        return layer, Machine.model_validate({
            "name": "tiny", "problem": "levels", "tick_ps": 1000, "sliding": rng.random() < 0.7, "in_bytes": 1,
            "w_bytes": 1, "out_bytes": 1, "psum_bytes": rng.choice((1, 4)), "compute": unit,
            "levels": {"queues": rng.choice(("one", "each", "each")), "memories": [far, *memories]},
        })  # fmt: skip
    except ValueError:
        return None


def _layer(rng: random.Random) -> Layer:
    kind = rng.choice(("conv", "conv", "matmul", "pool"))
    if kind == "matmul":
        return Layer.matmul("x", rows=rng.randint(1, 4), inner=rng.randint(1, 3), cols=rng.randint(1, 4))
    kernel, filters = rng.choice(((1, 1), (3, 1), (2, 1), (2, 2))), rng.randint(1, 3)
    top, left, bottom, right = (rng.randint(0, k - 1) for k in (*kernel, *kernel))
    size = rng.randint(kernel[0], 5), rng.choice((1, 1, 2, 3)) if kernel[1] == 1 else 3
    if kind == "pool":
        layer = Layer.conv("x", channels=2, filters=2, groups=2, size=size, kernel=kernel)
        return layer.model_copy(update={"kind": "pool", "weights": "none"})
    return Layer.conv(
        "x", channels=rng.randint(1, 2), filters=filters, size=size, kernel=kernel, stride=(rng.randint(1, 2), 1),
        pad=(top, left, bottom, right),
    )  # fmt: skip
