"""The weights of a group of layers in C: those that stay, and the buffer that the others pass through.

A filter (with its bias) that stays is loaded before the first visit. The others are loaded filter by filter, in every
visit in which their layer makes something. Of a layer that adds up blocks of channels only the part of a filter that
belongs to a block is loaded for it, the bias with the first one.
"""

from __future__ import annotations

from collections.abc import Callable

from hwmodels.fusion.replay_count import weight_bytes
from solver.emit.groups import Group
from solver.emit.text import block, comment, function


class Filters:
    """Writes what a group's file has for weights. `at`: the address of a buffer as C."""

    def __init__(self, group: Group, at: Callable[[str], str]) -> None:
        self.group, self.machine, self.at = group, group.machine, at

    def functions(self, k: int) -> list[str]:
        """The functions of a layer: bytes of a filter, and a filter where it stays or in the buffer."""
        layer, stay = self.group.layers[k], self.group.stay_bytes(k)
        if layer.weights == "none":
            return []
        size, taps = self.size(k), self.taps(k)
        body: list[str] = []
        if stay:
            kept = f"{self.at(f'weights {k}')} + (ptrdiff_t)f * {size}"
            body += block(f"if ((f + 1) * {size} <= {stay})", [f"return {kept};"])
        if stay == weight_bytes(layer, self.machine):
            return [*self._bytes(k), "", *self._said(k, [*body, "return NULL;"])]
        through = self.at("filter")
        body += [f"const int there = {f'certile_max(0, {stay} - f * {size})' if stay else '0'};"]
        body += [f"memcpy({through}, {kept}, (size_t)there);"] if stay % size else []
        load = f"filter_bytes_{k}({through}, f, %s, %s);"
        if k not in self.group.adding:
            calls = [load % ("there", size)]
        else:
            calls = self._part(k, load)
            if size > taps:
                calls += block("if (turn == 0)", [load % (f"certile_max(there, {taps})", size)])
        body += ["certile_dma_begin(CERTILE_W, 1);", *calls, "certile_dma_start();", "certile_dma_wait();"]
        return [*self._bytes(k), "", *self._said(k, [*body, f"return {through};"])]

    def _said(self, k: int, body: list[str]) -> list[str]:
        what = ", the part of a block of channels" if k in self.group.adding else ""
        return [*comment(f"A filter of {self.group.layers[k].name}{what}."),
                *function(f"static const unsigned char *filter_{k}", ["int f"], body)]  # fmt: skip

    def _part(self, k: int, load: str) -> list[str]:
        """Load what a filter has for the channels of a block, of that what is not there."""
        layer, channels, element = self.group.layers[k], self.group.adding[k].channels, self.machine.w_bytes
        if self.machine.w_layout == "OIHW":
            part = channels * layer.kh * layer.kw * element
            return [load % (f"certile_max(there, turn * {part})", f"(turn + 1) * {part}")]
        first = f"tap * {layer.n * element} + turn * {channels * element}"
        return block(f"for (int tap = 0; tap < {layer.kh * layer.kw}; tap++)",
                     [load % (f"certile_max(there, {first})", f"{first} + {channels * element}")])  # fmt: skip

    def _bytes(self, k: int) -> list[str]:
        size, taps = self.size(k), self.taps(k)
        bias = size - taps
        body = [
            f"const int taps = certile_min(end, {taps}) - first;",
            *block("if (taps > 0)", [
                f"unsigned char *from = w_{k}.base + (ptrdiff_t)f * {taps} + first;",
                "certile_dma_2d(to + first, from, (size_t)taps, 1, 0, 0);",
            ]),
            *(block(f"if (end > certile_max(first, {taps}))", [
                f"const int begin = certile_max(first, {taps});",
                f"unsigned char *from = bias_{k}.base + (ptrdiff_t)f * {bias} + begin - {taps};",
                "certile_dma_2d(to + begin, from, (size_t)(end - begin), 1, 0, 0);",
            ]) if bias else []),
        ]  # fmt: skip
        given = ["unsigned char *to", "int f", "int first", "int end"]
        return ["/* Bytes `first` to `end` of filter f (with its bias), to a place that begins with the filter. */",
                *function(f"static void filter_bytes_{k}", given, body)]  # fmt: skip

    def size(self, k: int) -> int:
        """Bytes of a filter with its bias."""
        layer = self.group.layers[k]
        return weight_bytes(layer, self.machine) // (layer.g * layer.m)

    def taps(self, k: int) -> int:
        """Bytes of a filter without its bias."""
        layer = self.group.layers[k]
        return layer.n * layer.kh * layer.kw * self.machine.w_bytes

    def load(self) -> list[str]:
        """Load the weights that stay."""
        lines = []
        for k, layer in enumerate(self.group.layers):
            if layer.weights == "none" or not (stay := self.group.stay_bytes(k)):
                continue
            size = self.size(k)
            lines += ["certile_dma_begin(CERTILE_W, 1);", *block(f"for (int f = 0; f * {size} < {stay}; f++)", [
                f"unsigned char *to = {self.at(f'weights {k}')} + (ptrdiff_t)f * {size};",
                f"filter_bytes_{k}(to, f, 0, certile_min({size}, {stay} - f * {size}));",
            ]), "certile_dma_start();"]  # fmt: skip
        return [*lines, "certile_dma_wait();"] if lines else []
