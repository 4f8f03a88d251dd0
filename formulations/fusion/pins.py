"""What may be pinned of fusion: cuts, groups, strips and recomputation; other pins are those of layers' nests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from formulations.fusion.groups import Group, Net, window
from formulations.fusion.memory import Option, Turns, passing_of, turns_of
from formulations.fusion.orders import OrderDemands
from formulations.pins import Decision, Pin, Pins
from formulations.tiling.tiling import DECISIONS as NEST_DECISIONS
from instances.errors import InputError

#: Of the order of transfers.
ORDER: dict[str, Decision] = {
    "prefetch": Decision(
        "any (if nothing is said): transfers run beside steps; no; or how many groups ahead of its own a load may "
        "begin, such as prefetch<=1",
        ("no", "any"),
        least=0,
    ),
    "transfer": Decision(
        "the most bytes of a transfer of a group (a row or a filter may have more), such as transfer<=16KiB", sized=True
    ),
    "queue": Decision(
        "any (if nothing is said): loads may come before others that are due earlier; due: in the order of the steps "
        "that read them",
        ("any", "due"),
    ),
}
#: Of maps on chip.
PLACE: dict[str, Decision] = {
    "in_place": Decision(
        "any (if nothing is said): a sum may take the place of a map on chip that it is the last to read; no",
        ("no", "any"),
    )
}
#: Every layer by itself.
APART = Pin("length", "=", "1")
DECISIONS: dict[str, Decision] = {
    "fuse": Decision("layers that run in one group, FIRST..LAST, such as conv1..conv3", ("FIRST..LAST",), open=True),
    "cut": Decision("a layer after which a group ends", ("LAYER",), open=True),
    "length": Decision("layers of every group"),
    "strip": Decision("rows of the last map of a group in a step"),
    "recompute": Decision(
        "any: rows and columns that later strips need may be computed again; no (if nothing is said): they are kept",
        ("no", "any"),
    ),
    "turns": Decision(
        "any (if nothing is said): layers of a group may take turns for some channels of the maps between them; no",
        ("no", "any"),
    ),
    **PLACE,
    **ORDER,
    "macs": Decision("the most MACs, of those of all layers computed once, such as macs<=1.05", decimal=True),
    **NEST_DECISIONS,
}


def without_turns(pins: Pins) -> Pins:
    """Pins on machines with nearer memories: sums of turns would go through these in parts.

    Raises InputError if turns are asked for.
    """
    if asked := [pin for pin in pins.of("turns") if pin.value == "any"]:
        raise InputError(f"pin {asked[0]}: layers take no turns on memories in levels; turns=no is accepted")
    return Pins((*pins.pins, Pin("turns", "=", "no")))


@dataclass(frozen=True, eq=False)
class Demands:
    """Pins of a network's groups; raises InputError for layers that it does not have."""

    pins: Pins
    net: Net

    def __post_init__(self) -> None:
        _ = self._fused, self._cuts, self.macs, self.order

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {layer.name: t for t, layer in enumerate(self.net.layers)}

    def _layer(self, pin: Pin, name: str) -> int:
        if name not in self._numbers:
            raise InputError(f"pin {pin}: {self.net.network} has no layer {name!r}")
        return self._numbers[name]

    @cached_property
    def _fused(self) -> tuple[tuple[Pin, int, int], ...]:
        made = []
        for pin in self.pins.of("fuse"):
            first, dots, last = pin.value.partition("..")
            if not dots:
                raise InputError(f"pin {pin}: expected FIRST..LAST, such as conv1..conv3")
            made.append((pin, self._layer(pin, first), self._layer(pin, last)))
            if made[-1][1] >= made[-1][2]:
                raise InputError(f"pin {pin}: {first} must come before {last}")
        return tuple(made)

    @cached_property
    def _cuts(self) -> tuple[tuple[Pin, int], ...]:
        return tuple((pin, self._layer(pin, pin.value)) for pin in self.pins.of("cut"))

    @cached_property
    def macs(self) -> int | None:
        """The most MACs of a schedule, None if nothing is asked."""
        total = sum(layer.macs for layer in self.net.layers)
        most = [int(Fraction(pin.value) * total) for pin in self.pins.of("macs")]
        if wrong := [pin for pin in self.pins.of("macs") if pin.op != "<="]:
            raise InputError(f"pin {wrong[0]}: only macs<=N applies")
        return min(most, default=None)

    @cached_property
    def order(self) -> OrderDemands:
        """What is asked of the order of transfers."""
        numbers = [pin for pin in self.pins.of("prefetch") if pin.value.isdigit()]
        if wrong := [pin for pin in (*numbers, *self.pins.of("transfer")) if pin.op != "<="]:
            raise InputError(f"pin {wrong[0]}: only {wrong[0].name}<=N applies")
        words = Pins(tuple(pin for pin in self.pins.of("prefetch") if pin not in numbers))
        return OrderDemands(
            words.allows("prefetch", "any") or not words.allows("prefetch", "no"),
            min((int(pin.value) for pin in numbers), default=None),
            min((int(pin.value) for pin in self.pins.of("transfer")), default=None),
            not self.pins.allows("queue", "any"),
        )

    @property
    def recompute(self) -> bool:
        """Whether anything may be computed again: if a pin says so, or how many MACs there may be."""
        asked = bool(self.pins.of("recompute") or self.pins.of("macs"))
        return asked and self.pins.allows("recompute", "any")

    def turns(self, group: Group) -> tuple[Turns, ...]:
        """Layers of a group that may take turns."""
        return turns_of(group) if self.pins.allows("turns", "any") else ()

    def passing(self, group: Group) -> tuple[Turns, ...]:
        """Neighbours that may take turns and add nothing up, of which the first has weights."""
        found = passing_of(group) if self.pins.allows("turns", "any") else ()
        return tuple(pair for pair in found if group.net.layers[pair[0]].weights != "none")

    def places(self, step: int) -> tuple[int, ...]:
        """The maps in whose place a layer may put its result."""
        return self.net.in_place(step) if self.pins.allows("in_place", "any") else ()

    def heights(self, group: Group) -> list[int]:
        """Strip heights that are allowed, the highest first."""
        extent = window(group.net.layers[group.last], "rows").outputs
        return [int(h) for h in self.pins.sizes("strip", np.arange(extent, 0, -1))]

    def allows(self, first: int, last: int) -> bool:
        """Whether layers first..last may be a group."""
        return not list(self._broken(first, last))

    def over(self, first: int, last: int) -> bool:
        """Whether no longer group that begins alike is allowed."""
        cut = any(pin.op == "=" and first <= t < last for pin, t in self._cuts)
        return cut or not self.pins.sizes("length", np.arange(last - first + 1, len(self.net.layers) + 1)).size

    def broken(self, first: int, last: int, option: Option | None) -> Iterator[str]:
        """Yield the demands that a group does not keep."""
        yield from self._broken(first, last)
        if option is not None:
            height = min(option.height, window(self.net.layers[last], "rows").outputs)
            if not self.pins.sizes("strip", np.array([height])).size:
                yield f"strips of {height} rows are not {self._said('strip')}"
            if option.recomputes and not self.recompute:
                yield "recomputes, which needs pin recompute=any"

    def _broken(self, first: int, last: int) -> Iterator[str]:
        if not self.pins.sizes("length", np.array([last - first + 1])).size:
            yield f"{last - first + 1} layers are not {self._said('length')}"
        for pin, begin, end in self._fused:
            together, apart = first <= begin and end <= last, last < begin or end < first
            if (pin.op == "=" and not (together or apart)) or (pin.op == "!=" and together):
                yield f"breaks {pin}"
        for pin, t in self._cuts:
            if (pin.op == "=" and first <= t < last) or (pin.op == "!=" and last == t):
                yield f"breaks {pin}"

    def explain(self) -> tuple[str, ...]:
        """Return pins that contradict each other, as far as that is plain."""
        if self.macs is not None and self.macs < sum(layer.macs for layer in self.net.layers):
            return (f"{self._said('macs')}: every layer must be computed once",)
        return tuple(
            f"{pin} and {other} contradict each other"
            for pin, begin, end in self._fused
            for other, t in self._cuts
            if pin.op == other.op == "=" and begin <= t < end
        )

    def _said(self, name: str) -> str:
        return ", ".join(str(pin) for pin in self.pins.of(name))
