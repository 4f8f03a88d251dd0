"""What layers of a group compute, as C: products of a result, and what their sum becomes.

Inputs are read by ``map_K(b, ch, y, x)``, filters by a pointer ``w``; where both lie is another matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.uses.emit.frame import window_of
from solver.uses.emit.groups import Part
from solver.uses.emit.numbers import Numbers
from solver.uses.emit.text import block, loop
from solver.uses.emit.values import pitches


class Layers(Protocol):
    """Layers, and how each of them computes."""

    @property
    def layers(self) -> Sequence[Layer]:
        """In their order."""
        ...

    @property
    def numbers(self) -> Sequence[Numbers]:
        """In the same order."""
        ...


class Computing:
    """Writes what the layers of a group compute."""

    group: Layers
    machine: Machine

    def _functions_of(self, k: int) -> list[list[str]]:
        """The functions of a layer's numbers under names of this layer."""
        made = ["\n".join(text).replace("finished(", f"finished_{k}(") for text in self.group.numbers[k].functions]
        return [text.replace("stage_", f"stage_{k}_").replace("seen_", f"seen_{k}_").splitlines() for text in made]

    def _final(self, k: int) -> str:
        return self.group.numbers[k].final("sum").replace("finished(", f"finished_{k}(")

    def _first(self, k: int) -> str:
        """What sums begin with."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        if not layer.bias:
            return numbers.start
        if self.machine.bias_bytes:
            return numbers.read(numbers.bias, self._bias(k))
        return numbers.read(numbers.bias, f"bias_{k}.base + (ptrdiff_t)(g * {layer.m} + m) * 4")

    def _products(self, k: int, number: int, part: Part) -> list[str]:
        """Add what the channels of one map give."""
        layer, numbers = self.group.layers[k], self.group.numbers[k]
        seen = {"b": "b", "g": "g", "n": "n", "r": "at_y", "c": "at_x"} | dict.fromkeys(layer.patterns[number], "0")
        at = dict(seen)
        channel = f"ch - {part.first - part.begin}"
        if part.flat is not None:
            rows, columns = part.flat
            channel, at["r"], at["c"] = f"ch / {rows * columns}", f"ch / {columns} % {rows}", f"ch % {columns}"
        place = self._element(part, f"{at['b']}, {channel}, {at['r']}, {at['c']}")
        value = numbers.given(number, place, ", ".join(seen.values()))
        value = value.replace(f"seen_{number}(", f"seen_{k}_{number}(")
        if layer.weights != "none":
            value = f"{numbers.weight(f'w + ({self._tap(k)})')} * {value}"
        y, x = (window_of(layer, d).at(d) for d in "rc")
        step = [f"const int at_y = {y}, at_x = {x};", *block(
            f"if (at_y >= 0 && at_y < {layer.h} && at_x >= 0 && at_x < {layer.l})",
            [numbers.add("sum", value, number).replace("stage_", f"stage_{k}_")],
        )]  # fmt: skip
        body = loop("i", *self._window(k), loop("j", "0", str(layer.kw), step))
        body = [f"const int ch = {at['g']} * {layer.n} + n;",
                *block(f"if (ch >= {part.first} && ch < {part.first + part.number})", body)]  # fmt: skip
        begin, end = self._channels(k)
        return block("", block(f"for (int n = {begin}; n < {end}; n++)", body))

    def _element(self, part: Part, at: str) -> str:
        """Where an element of an input lies."""
        return f"map_{part.stream}({at})"

    def _tap(self, k: int) -> str:
        """Where in a filter a weight lies."""
        order, pitch = (
            "nij" if self.machine.w_layout == "OIHW" else "ijn",
            pitches("W", self.group.layers[k], self.machine),
        )
        return " + ".join(f"{d} * {pitch[d] * self.machine.w_bytes}" for d in reversed(order))

    def _channels(self, k: int) -> tuple[str, str]:
        """The input channels that are added up, from the first to before the last."""
        return "0", str(self.group.layers[k].n)

    def _window(self, k: int) -> tuple[str, str]:
        """The rows of the window that are added up, from the first to before the last."""
        return "0", str(self.group.layers[k].kh)

    def _bias(self, k: int) -> str:
        """Where the bias of a filter lies."""
        return f"w + {self._taps(k)}"

    def _taps(self, k: int) -> int:
        """Bytes of a filter without its bias."""
        layer = self.group.layers[k]
        return layer.n * layer.kh * layer.kw * self.machine.w_bytes
