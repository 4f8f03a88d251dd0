"""A file as an ONNX model: what it holds beside that, and in another order of axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx


@dataclass(frozen=True)
class ModelFile:
    """An ONNX model, and what the file that it is of has otherwise."""

    model: onnx.ModelProto
    about: str = ""
    """Its format, for descriptions, where that is another one."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Inputs that the file keeps between calls -> the results that they hold next."""
    begins: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What they hold before the first call, as the file has it, where it says so."""
    turned: frozenset[str] = frozenset()
    """Inputs and results that have their channels last in the file, and first in the model."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """Such results -> the number of the tensor in the file."""
    rule: str = ""
    """How whoever runs such files makes integers of sums (`solver.uses.emit.requantise`)."""

    def shape(self, tensor: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an input or a result in the file, of that in the model."""
        return (shape[0], *shape[2:], shape[1]) if tensor in self.turned else shape

    def to_model(self, tensor: str, value: np.ndarray) -> np.ndarray:
        """An input or a result of the file as the model has it."""
        return np.moveaxis(value, -1, 1) if tensor in self.turned else value

    def to_file(self, tensor: str, value: np.ndarray) -> np.ndarray:
        """An input or a result of the model as the file has it."""
        return np.moveaxis(value, 1, -1) if tensor in self.turned else value
