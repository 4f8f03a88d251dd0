"""A model file, ONNX or TFLite, as an ONNX model in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from instances.errors import InputError
from instances.jsonfile import MODELS, read_bytes

#: The largest file that protobuf can hold.
LARGEST_MODEL = 2**31 - 1


@dataclass(frozen=True)
class ModelFile:
    """What a file holds."""

    model: onnx.ModelProto
    about: str
    """Its format, for descriptions."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Inputs that the file keeps between calls -> the results that they hold next."""
    begins: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What they hold before the first call, as the file has it, where it says so."""
    turned: frozenset[str] = frozenset()
    """Inputs and results that have their channels last in the file, and first in the model."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """Such results -> the number of the tensor in the file."""
    notes: tuple[str, ...] = ()
    """What is not computed as the file says."""
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


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a model file."""
    return Path(path).suffix.lower() in MODELS


def is_tflite(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a TFLite file."""
    return Path(path).suffix.lower() == ".tflite"


def open_model(path: str | os.PathLike[str], where: str, *, weights: bool = False) -> ModelFile:
    """Read a model file; with `weights` also data that lie in other files.

    Raises
    ------
    InputError
        If it is no model, is cut off, or lacks data.
    """
    if is_tflite(path):
        from instances.tflite.translate import translate  # late: the schema has a module for every table

        made = translate(read_bytes(path, what="network", largest=LARGEST_MODEL), where)
        about = f"TFLite schema {made.version}"
        return ModelFile(
            made.model, about, made.states, made.begins, made.turned, made.kept, made.notes, rule="double"
        )  # fmt: skip
    if not weights:
        return ModelFile(_parse(read_bytes(path, what="network", largest=LARGEST_MODEL), where), "")
    try:
        return ModelFile(onnx.load(os.fspath(path), load_external_data=True), "")
    except Exception as error:  # noqa: BLE001 - missing files, short data
        raise InputError(f"{where}: its weights cannot be read: {str(error)[:200]}") from None


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    try:
        # From bytes: nothing is said about a folder, so external data could not be found even if it were asked for.
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 - protobuf's DecodeError differs by backend
        raise InputError(f"{where}: not an ONNX file, or cut off: it cannot be decoded") from None
    return model
