"""An input of a model, and what another program makes of it, for the emitted one to compare with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from instances.onnx_evaluate import JUDGE, evaluated
from instances.onnx_model import OnnxModel
from solver.emit.states import CALLS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorded:
    """Files of an input and its results, and who computed these (empty: nobody could)."""

    files: Mapping[str, bytes]
    judge: str


#: Computes the results of a model of its inputs.
_Judge = Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]


@dataclass(frozen=True)
class _Calls:
    """A model, the inputs of every call, and which of them are what the call before has made.

    What is constant is fed as well: the file has it as an input.
    """

    model: OnnxModel
    inputs: Sequence[Mapping[str, np.ndarray]]
    states: Mapping[str, str]

    def results(self, run: _Judge) -> list[np.ndarray]:
        """The results of all calls, one after the other."""
        found, state = list[np.ndarray](), dict[str, np.ndarray]()
        for feeds in self.inputs:
            made = run({**self.model.given, **feeds, **state})
            found += made
            state = {name: made[self.model.outputs.index(result)] for name, result in self.states.items()}
        return found


def recorded(model: OnnxModel, states: Mapping[str, str] | None = None) -> Recorded:
    """Return an input from a fixed seed and the outputs for it: of onnxruntime, else of ONNX's reference.

    Real inputs are small numbers, integers any of their kind. Where the program keeps `states`, of several calls.
    """
    rng, kept = np.random.default_rng(20), states or {}
    shapes = {tensor: model.network.operator(name).shape for tensor, name in model.inputs.items()}
    inputs = [
        {o: _drawn(rng, shape, np.dtype(model.element(o))) for o, shape in shapes.items() if not (call and o in kept)}
        for call in range(CALLS if kept else 1)
    ]
    files = {"input.bin": b"".join(value.tobytes() for feeds in inputs for value in feeds.values())}
    for judge in (_by_onnxruntime, _by_reference):
        name, made = judge(_Calls(model, inputs, kept))
        if made:
            return Recorded({**files, "expected.bin": b"".join(np.asarray(value).tobytes() for value in made)}, name)
    logger.warning("%s: the program has nothing to compare with", model.where)
    return Recorded(files, "")


def _by_onnxruntime(calls: _Calls) -> tuple[str, list[np.ndarray]]:
    model = calls.model
    try:
        import onnxruntime
    except ImportError:
        logger.warning("%s: onnxruntime is not installed", model.where)
        return "", []
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
        made = calls.results(lambda feeds: session.run(list(model.outputs), dict(feeds)))
    except Exception as error:  # noqa: BLE001 - onnxruntime raises many types
        logger.warning("%s: onnxruntime does not run it (%s)", model.where, _first_line(error))
        return "", []
    return f"onnxruntime {onnxruntime.__version__}", made


def _by_reference(calls: _Calls) -> tuple[str, list[np.ndarray]]:
    model = calls.model
    try:
        made = calls.results(lambda feeds: evaluated(model.path, feeds, model.outputs))
    except Exception as error:  # noqa: BLE001 - the evaluator raises many types
        logger.warning("%s: ONNX's reference does not run it (%s)", model.where, _first_line(error))
        return "", []
    return JUDGE, made


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:150]


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], element: np.dtype) -> np.ndarray:
    if element.kind in "iu":
        limits = np.iinfo(element)
        return rng.integers(limits.min, limits.max, shape, element, endpoint=True)
    return rng.normal(size=shape).astype(element)
