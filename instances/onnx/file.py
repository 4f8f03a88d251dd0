"""A model file, ONNX or TFLite, as an ONNX model in memory."""

from __future__ import annotations

import os
from pathlib import Path

import onnx

from instances.errors import InputError
from instances.jsonfile import MODELS, read_bytes
from instances.tflite.file import ModelFile

#: The largest file that protobuf can hold.
LARGEST_MODEL = 2**31 - 1


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

        return translate(read_bytes(path, what="network", largest=LARGEST_MODEL), where)
    if not weights:
        return ModelFile(_parse(read_bytes(path, what="network", largest=LARGEST_MODEL), where))
    try:
        return ModelFile(onnx.load(os.fspath(path), load_external_data=True))
    except Exception as error:  # noqa: BLE001 - missing files, short data
        raise InputError(f"{where}: its weights cannot be read: {str(error)[:200]}") from None


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    try:
        # From bytes: nothing is said about a folder, so external data could not be found even if it were asked for.
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 - protobuf's DecodeError differs by backend
        raise InputError(f"{where}: not an ONNX file, or cut off: it cannot be decoded") from None
    return model
