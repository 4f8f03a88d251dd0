"""How Resize interpolates along an axis, as a matrix: by element of the result what it takes of those of the map.

An example: 2 elements become 4, linear, half_pixel. The centres of the result lie at -0.25, 0.25, 0.75 and 1.25 of the
map, which is continued at its ends: rows (1, 0), (0.75, 0.25), (0.25, 0.75), (0, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from instances.onnx_graph import Node, Unsupported

#: Inputs of the first version of Resize: the map and the scales.
OLD_INPUTS = 2


@dataclass(frozen=True)
class Interpolation:
    """The attributes of a Resize, or what an Upsample does."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude: bool

    def matrix(self, before: int, after: int, scale: float) -> np.ndarray:
        """The elements of the result by those of the map; in single precision, as onnxruntime rounds."""
        x = self._places(before, after, np.float32(scale))
        if self.mode == "nearest":
            return _rows(before, [(self._rounded(x), np.ones(after))])
        if self.mode == "linear":
            x = np.clip(x, 0, before - 1)
            low = np.floor(x)
            return _rows(before, [(low, 1 - (x - low)), (low + 1, x - low)])
        low = np.floor(x)
        taps = [(low + k, _cubic(np.abs(x - low - k), self.cubic)) for k in range(-1, 3)]
        if self.exclude:
            taps = [(at, np.where((at >= 0) & (at < before), weight, 0)) for at, weight in taps]
            total = sum(weight for _, weight in taps)
            taps = [(at, weight / total) for at, weight in taps]
        return _rows(before, taps)

    def _places(self, before: int, after: int, scale: np.float32) -> np.ndarray:
        """Where elements of the result lie in the map."""
        x, half = np.arange(after, dtype=np.float32), np.float32(0.5)
        if self.coordinates == "align_corners":
            return x * np.float32(before - 1) / np.float32(after - 1) if after > 1 else x * 0
        if self.coordinates == "asymmetric":
            return x / scale
        if self.coordinates == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if self.coordinates == "pytorch_half_pixel" and after == 1:
            return x * 0
        if self.coordinates in ("half_pixel", "pytorch_half_pixel"):
            return (x + half) / scale - half
        if self.coordinates == "half_pixel_symmetric":
            offset = before / 2 * (1 - after / (float(scale) * before))
            return np.float32(offset) + (x + half) / scale - half
        raise Unsupported(f"coordinates {self.coordinates!r}")

    def _rounded(self, x: np.ndarray) -> np.ndarray:
        rounded: dict[str, Callable[[], np.ndarray]] = {
            "round_prefer_floor": lambda: np.ceil(x - np.float32(0.5)),
            "round_prefer_ceil": lambda: np.floor(x + np.float32(0.5)), "floor": lambda: np.floor(x),
            "ceil": lambda: np.ceil(x), "simple": lambda: np.floor(x),
        }  # fmt: skip
        if self.nearest not in rounded:
            raise Unsupported(f"the nearest element by {self.nearest!r}")
        return rounded[self.nearest]()


def interpolation(node: Node, mode: str) -> Interpolation:
    """Return how a node interpolates; `mode` is nearest, linear or cubic.

    Upsample, and Resize of opset 10 (which has no region as an input), take the first corners of elements.
    """
    old = node.op == "Upsample" or len(node.proto.input) <= OLD_INPUTS
    return Interpolation(
        mode, "asymmetric" if old else node.text("coordinate_transformation_mode", "half_pixel"),
        "simple" if old else node.text("nearest_mode", "round_prefer_floor"), node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside", 0)),
    )  # fmt: skip


def _rows(before: int, taps: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Add up what elements of the result take; beyond its ends a map is continued by its last elements."""
    made = np.zeros((len(taps[0][0]), before), np.float32)
    for at, weight in taps:
        np.add.at(made, (np.arange(len(made)), np.clip(at, 0, before - 1).astype(int)), weight.astype(np.float32))
    return made


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """The weight of an element at a distance (Keys, 1981)."""
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
