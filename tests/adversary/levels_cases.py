"""Cases for the adversary of levels: a layer of a few elements on a machine with one or two levels on the chip."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from hwmodels.levels.schedule import LevelNest
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from tests.adversary import cases
from tests.adversary.cases import without
from tests.adversary.levels_nests import number

#: Sequences of loops of a layer that are all looked at.
MOST = 800
_AXES = (("r", "c"), ("kh", "kw"), ("stride_h", "stride_w"), ("dilation_h", "dilation_w"), ("pad_top", "pad_left"),
         ("h", "l"))  # fmt: skip
_OTHER = {one: two for pair in _AXES for one, two in (pair, pair[::-1])}


@dataclass(frozen=True)
class Memory:
    """A memory on the chip, and the prices of transfers between it and nearer ones."""

    name: str
    bytes: int
    operands: tuple[str, ...] = ("IN", "W", "OUT")
    passed: tuple[str, ...] = ()
    reserved: int = 0
    prices: tuple[int, int, int] = (0, 0, 0)
    """Ticks of a call and of a byte, fJ of a byte."""

    def to_json(self) -> dict[str, object]:
        """The memory as a machine file says it."""
        return {
            "name": self.name, "bytes": self.bytes, "operands": self.operands, "passed": self.passed,
            "reserved_bytes": self.reserved, **_priced(self.prices),
        }  # fmt: skip


@dataclass(frozen=True)
class Case(cases.Case):
    """A layer on memories in levels."""

    quick: ClassVar = ("search",)
    slow: ClassVar = ("cp-sat", "descend", "halving")
    rules: ClassVar = ("", "", "byte", "slide", "narrow", "free", "pass", "turned", "twice", "pinned", "tiling")
    least: ClassVar = {"sliding": 0, "mac_fj": 0}

    layer: tuple[tuple[str, Any], ...]
    """Pairs of names and values; what is not named is as in `Layer`."""
    memories: tuple[tuple[Any, ...], ...]
    """The fields of every `Memory`."""
    outside: tuple[int, int, int]
    """Prices of the first memory."""
    bytes: tuple[int, int, int, int, int]
    """Of an element of IN, W, OUT, of a partial sum, and of a bias."""
    unit: tuple[int, int, int]
    """Rows and columns of the MAC array, and ticks of a cycle; 0 rows: none."""
    mac_fj: int
    sliding: bool
    objectives: tuple[str, ...]
    pins: tuple[str, ...] = ()

    @cached_property
    def workload(self) -> Layer | None:
        """The layer, None if there is none of these sizes."""
        try:
            return Layer.model_validate({"name": "x", "m": 1, "n": 1, **dict(self.layer)})
        except ValueError:
            return None

    @cached_property
    def machine(self) -> Machine:
        """The machine; raises InputError if memories are not as they should be."""
        memories = [{"name": "dram", **_priced(self.outside)}, *(Memory(*one).to_json() for one in self.memories)]
        rows, cols, ticks = self.unit
        compute = {"model": "array", "rows": rows, "cols": cols, "cycle_ticks": ticks} if rows else {}
        names = ("in_bytes", "w_bytes", "out_bytes", "psum_bytes", "bias_bytes")
        return Machine.model_validate({
            "name": "tiny", "problem": "levels", "tick_ps": 1000, "sliding": self.sliding, "mac_fj": self.mac_fj,
            **dict(zip(names, self.bytes, strict=True)), "levels": {"memories": memories}, "compute": compute,
        })  # fmt: skip

    @property
    def possible(self) -> bool:
        """Whether there is such a layer, and such a machine."""
        if self.workload is None:
            return False
        try:
            names = {one.name for one in (self.machine.levels.memories if self.machine.levels else ())}
        except (ValueError, InputError):
            return False
        return all(name in names for pin in self.pins for name in [pin.partition("@")[2]])

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """A layer of a few elements, and memories that hold a part of it."""
        while True:
            made = cls._tried(rng)
            if made.possible and made.workload is not None and number(made.workload) <= MOST:
                return made

    @classmethod
    def _tried(cls, rng: random.Random) -> Case:
        layer = _layer(rng)
        sizes = (rng.choice((1, 1, 2)), rng.choice((1, 1, 2)), rng.choice((1, 1, 2)), rng.choice((1, 2, 4)),
                 rng.choice((0, 0, 2)))  # fmt: skip
        room = _room(dict(layer), sizes)
        memories = _memories(rng, room)
        names = ["dram", *(one.name for one in memories[:-1])]
        measures = ["bytes", "energy", "time", *(f"bytes@{name}" for name in names)]
        objectives = tuple(rng.sample(measures, rng.choice((1, 1, 1, 2))))
        pins = list[str]()
        if rng.randrange(6) == 0:
            one = rng.choice(memories)
            pins = [f"resident={rng.choice(one.operands)}@{one.name}"]
        unit = rng.choice(((0, 0, 0), (2, 2, 1), (1, 3, 2), (3, 2, 5)))
        return cls(
            layer, tuple(_fields(one) for one in memories), (rng.choice((0, 3)), rng.choice((0, 2)), 5), sizes, unit,
            rng.choice((0, 3)), rng.random() < 0.7, objectives, tuple(pins),
        )  # fmt: skip

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Another question of which the answer is known."""
        memories = [Memory(*one) for one in self.memories]
        if self.rule == "byte":
            at = value % len(memories)
            memories[at] = replace(memories[at], bytes=memories[at].bytes + 1)
        elif self.rule == "pass":
            memories = [replace(one, passed=_may_pass(memories, k)) for k, one in enumerate(memories)]
        made = replace(self, rule="", memories=tuple(_fields(one) for one in memories))
        if self.rule == "slide":
            return replace(made, sliding=True), None
        if self.rule == "narrow":
            return replace(made, bytes=(*self.bytes[:3], 1, self.bytes[4])), None
        if self.rule == "free":
            return replace(made, pins=()), None
        if self.rule == "turned":
            given = dict(self.layer)
            return replace(made, layer=tuple((_OTHER.get(name, name), given[name]) for name in given)), value
        if self.rule == "twice":
            twice = tuple(replace(one, bytes=2 * one.bytes, reserved=2 * one.reserved) for one in memories)
            sizes: Any = tuple(2 * size for size in self.bytes)
            if any(not name.startswith("bytes") for name in self.objectives):
                return None
            return replace(made, memories=tuple(_fields(one) for one in twice), bytes=sizes), 2 * value
        if self.rule == "pinned" and isinstance(schedule, LevelNest):
            return replace(made, pins=tuple(self._whole(schedule))), value
        return (made, None) if self.rule in ("byte", "pass") else None

    def _whole(self, nest: LevelNest) -> Iterator[str]:
        """Pins on what lies whole in a memory."""
        loops = set[str]()
        of = {"IN": "bgnrcij", "W": "gmnij", "OUT": "bgmrc"}
        for item in nest.items:
            if hasattr(item, "dim"):
                loops.add(item.dim)
            elif not loops.intersection(of[item.operand]):
                yield f"resident={item.operand}@{item.memory}"

    def simpler(self) -> Iterator[Self]:
        """With fewer elements, bytes, prices, memories."""
        for k, (name, value) in enumerate(self.layer):
            changes = [False] if value is True else [value - 1, 1] if isinstance(value, int) and value > 0 else []
            for less in changes:
                if less != value:
                    yield replace(self, layer=(*self.layer[:k], (name, less), *self.layer[k + 1 :]))
        for k, fields in enumerate(self.memories):
            one = Memory(*fields)
            smaller = replace(one, bytes=one.bytes // 2), replace(one, bytes=one.bytes - 1)
            free = replace(one, reserved=0, bytes=max(1, one.bytes - one.reserved))
            for other in (*smaller, replace(one, prices=(0, 0, 0)), replace(one, passed=()), free):
                if other != one and other.bytes > 0:
                    yield replace(self, memories=(*self.memories[:k], _fields(other), *self.memories[k + 1 :]))
        yield from (replace(self, memories=some) for some in without(self.memories) if some)
        yield from (replace(self, objectives=some) for some in without(self.objectives) if some)
        plain: dict[str, Any] = {"outside": (0, 0, 0), "bytes": (1, 1, 1, 1, 0), "unit": (0, 0, 0)}
        yield from (replace(self, **{name: value}) for name, value in plain.items() if getattr(self, name) != value)


def _priced(prices: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("call_ticks", "byte_ticks", "byte_fj"), prices, strict=True))


def _fields(one: Memory) -> tuple[Any, ...]:
    return one.name, one.bytes, one.operands, one.passed, one.reserved, one.prices


def _layer(rng: random.Random) -> tuple[tuple[str, Any], ...]:
    """The fields of a layer of any kind with up to four dimensions; it need not be one that there is."""
    kind = rng.choice(("conv", "conv", "conv", "depthwise", "matmul", "pool", "eltwise", "line"))
    made: dict[str, Any] = {"kind": {"depthwise": "conv", "line": "conv"}.get(kind, kind)}
    thin = {"depthwise": "bgrc", "pool": "bgrc", "eltwise": "bgrc", "matmul": "gmnr", "line": "r"}.get(kind, "bgmnrc")
    for d in rng.sample(thin, min(len(thin), rng.choice((1, 2, 3, 3, 4)))):
        made[d] = rng.choice((2, 2, 3, 3, 4, 5)) if d in "mnrc" else rng.choice((2, 2, 3))
    if kind == "line":
        made["r"] = rng.randint(3, 8)
    if kind in ("pool", "eltwise"):
        made["weights"] = "none"
    if kind == "eltwise":
        made["inputs"] = rng.randint(1, 3)
    if kind in ("conv", "depthwise", "matmul", "line"):
        made["bias"] = rng.random() < 0.3
    for d, tap, stride, dilation, pad, size in (
        ("r", "kh", "stride_h", "dilation_h", "pad_top", "h"), ("c", "kw", "stride_w", "dilation_w", "pad_left", "l"),
    ):  # fmt: skip
        out = made.get(d, 1)
        if kind in ("matmul", "eltwise"):
            made[size] = out
            continue
        made[tap] = rng.choice((1, 1, 2, 3, 3)) if d == "r" or rng.random() < 0.6 else 1
        made[stride] = rng.choice((1, 1, 1, 2, 3))
        made[dilation] = rng.choice((1, 1, 1, 2))
        reach = (made[tap] - 1) * made[dilation] + 1
        made[pad] = rng.randint(0, reach - 1)
        whole = (out - 1) * made[stride] - made[pad] + reach
        made[size] = max(1, whole - rng.randint(0, reach - 1) + rng.choice((0, 0, 0, 1)))
    return tuple(made.items())


def _room(layer: dict[str, Any], sizes: tuple[int, ...]) -> int:
    """Bytes of all operands, about."""
    size: dict[str, int] = {d: layer.get(d, 1) for d in (*DIMS, "h", "l", "kh", "kw", "inputs")}
    maps = size["b"] * size["g"]
    given = maps * size["n"] * size["h"] * size["l"] * size["inputs"] * sizes[0]
    weights = size["g"] * size["m"] * size["n"] * size["kh"] * size["kw"] * sizes[1]
    return given + weights + maps * size["m"] * size["r"] * size["c"] * sizes[2]


def _memories(rng: random.Random, room: int) -> list[Memory]:
    """One memory on the chip; two; two and one of sums beside the second; operands that may pass."""

    def one(name: str, most: float, operands: tuple[str, ...] = ("IN", "W", "OUT")) -> Memory:
        reserved = rng.choice((0, 0, 0, 2))
        size = reserved + max(1 + len(operands), int((room + 2) ** rng.uniform(0.4, 1.05) * most))
        prices = rng.choice((0, 1)), rng.choice((0, 1)), rng.choice((0, 1, 2))
        return Memory(name, size, operands, (), reserved, prices)

    way = rng.choice(("one", "two", "two", "two", "acc", "acc only"))
    if way == "one":
        return [one("l1", 0.9)]
    if way == "acc only":
        return [one("spad", 0.8, ("IN", "W")), one("acc", 0.6, ("OUT",))]
    found = [one("l2", 1.0)]
    found += [one("l1", 0.6)] if way == "two" else [one("spad", 0.5, ("IN", "W")), one("acc", 0.4, ("OUT",))]
    if rng.randrange(3) == 0:
        found[0] = replace(found[0], passed=tuple(rng.sample(("IN", "W", "OUT"), rng.randint(1, 2))))
    return found


def _may_pass(memories: list[Memory], at: int) -> tuple[str, ...]:
    """The operands that may pass a memory: those that a nearer one may hold."""
    return tuple(x for x in memories[at].operands if any(x in one.operands for one in memories[at + 1 :]))
