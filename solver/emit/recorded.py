"""An input of a model, and what onnxruntime makes of it, for the program to compare with."""

from __future__ import annotations

import logging

import numpy as np

from instances.onnx_model import OnnxModel

logger = logging.getLogger(__name__)


def recorded(model: OnnxModel) -> dict[str, bytes]:
    """Return an input of small numbers from a fixed seed and, if onnxruntime is installed, the outputs for it."""
    rng = np.random.default_rng(20)
    feeds = {
        o: rng.normal(size=model.network.operator(name).shape).astype(np.float32) for o, name in model.inputs.items()
    }
    files = {"input.bin": b"".join(value.tobytes() for value in feeds.values())}
    try:
        import onnxruntime
    except ImportError:
        logger.warning("%s: onnxruntime is not installed: the program has nothing to compare with", model.where)
        return files
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    made = session.run(list(model.outputs), feeds)
    return {**files, "expected.bin": b"".join(np.asarray(value, np.float32).tobytes() for value in made)}
