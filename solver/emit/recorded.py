"""An input of a model, and what onnxruntime makes of it, for the program to compare with."""

from __future__ import annotations

import logging

import numpy as np

from instances.onnx_model import OnnxModel

logger = logging.getLogger(__name__)


def recorded(model: OnnxModel) -> dict[str, bytes]:
    """Return an input from a fixed seed and, if onnxruntime is installed and runs the model, the outputs for it.

    Real inputs are small numbers, integers any of their kind.
    """
    rng = np.random.default_rng(20)
    feeds = {
        o: _drawn(rng, model.network.operator(name).shape, np.dtype(model.element(o)))
        for o, name in model.inputs.items()
    }
    files = {"input.bin": b"".join(value.tobytes() for value in feeds.values())}
    try:
        import onnxruntime
    except ImportError:
        logger.warning("%s: onnxruntime is not installed: the program has nothing to compare with", model.where)
        return files
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if model.network.map_type.endswith("int16"):
        # It has no kernels for integers of 16 bits, and what it fuses instead quantises to 8 bits on the way.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Sums of 8-bit products that do not saturate. Of signed maps both sides have to be read as integers: by default
    # their quantisation is left as operators on floats. Of unsigned ones the exact kernel is asked for.
    exact = "session.qdqisint8allowed" if model.network.map_type == "int8" else "session.x64quantprecision"
    options.add_session_config_entry(exact, "1")
    try:
        session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
        made = session.run(list(model.outputs), feeds)
    except Exception as error:  # noqa: BLE001 - onnxruntime raises many types
        said = f"onnxruntime does not run it ({str(error).splitlines()[0][:150]})"
        logger.warning("%s: %s: the program has nothing to compare with", model.where, said)
        return files
    return {**files, "expected.bin": b"".join(np.asarray(value).tobytes() for value in made)}


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], element: np.dtype) -> np.ndarray:
    if element.kind in "iu":
        limits = np.iinfo(element)
        return rng.integers(limits.min, limits.max, shape, element, endpoint=True)
    return rng.normal(size=shape).astype(element)
