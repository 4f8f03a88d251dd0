"""What a model computes, node by node in NumPy: for hosts without onnxruntime.

The file's graph is evaluated by the reference implementation of ONNX, on the tensors that the file has. Nothing of how
certile reads, plans or writes a network is used. Here are the operators that it does not know (quantised ones of other
opsets and of onnxruntime's domain), batch norms, whose older versions it trains, and poolings, which it computes
element by element in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

#: What evaluates.
JUDGE = f"the reference of onnx {onnx.__version__}"
_MICROSOFT = "com.microsoft"


def evaluated(path: Path, feeds: Mapping[str, np.ndarray], results: Sequence[str]) -> list[np.ndarray]:
    """Return the results of a model; raises whatever the evaluator does for an operator that it does not know."""
    evaluator: Any = ReferenceEvaluator(onnx.load(path), new_ops=_operators())
    return [np.asarray(value) for value in evaluator.run(list(results), dict(feeds))]


def _along(value: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """A scale or zero point by channel, so that it can be broadcast."""
    return (
        value.reshape([-1 if k == axis % max(rank, 1) else 1 for k in range(rank)])
        if value.size > 1
        else value.reshape(())
    )


def _real(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int = 1) -> np.ndarray:
    offset = 0 if zero is None else _along(zero, x.ndim, axis).astype(np.int64)
    made: np.ndarray = ((x.astype(np.int64) - offset).astype(np.float32) * _along(scale, x.ndim, axis)).astype(
        np.float32
    )
    return made


def _integers(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int = 1) -> np.ndarray:
    zero = np.zeros((), np.uint8) if zero is None else zero
    limits = np.iinfo(zero.dtype)
    steps = np.rint(x / _along(scale, x.ndim, axis)) + _along(zero, x.ndim, axis).astype(np.float64)
    return np.asarray(np.clip(steps, limits.min, limits.max).astype(zero.dtype))


def _windows(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
             dilations: Sequence[int], beyond: float) -> np.ndarray:  # fmt: skip
    """All windows of a map, the taps along the last axes."""
    n = len(kernel)
    room = [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)]
    padded = np.pad(x, room, constant_values=beyond)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    seen = sliding_window_view(padded, reach, axis=tuple(range(2, 2 + n)))
    every = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
    return np.asarray(seen[(*every, *(slice(None, None, d) for d in dilations))])


def _pads(x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
          pads: Sequence[int], auto_pad: str, ceil: bool) -> list[int]:  # fmt: skip
    """Pads on either side as they are meant, with what rounding up adds behind."""
    n, found = len(kernel), list(pads)
    for k in range(n):
        size, reach = x.shape[2 + k], (kernel[k] - 1) * dilations[k] + 1
        if auto_pad.startswith("SAME"):
            whole = max(0, (-(-size // strides[k]) - 1) * strides[k] + reach - size)
            found[k], found[n + k] = (
                (whole - whole // 2, whole // 2) if auto_pad == "SAME_LOWER" else (whole // 2, whole - whole // 2)
            )
        elif ceil:
            rest = (size + found[k] + found[n + k] - reach) % strides[k]
            last = size + found[k] + found[n + k] - reach + (strides[k] - rest if rest else 0)
            if rest and last < size + found[k]:  # a window that begins beyond the map is none
                found[n + k] += strides[k] - rest
    return found


def _pooled(x: np.ndarray, op: str, given: Mapping[str, Any]) -> np.ndarray:
    kernel = list(given["kernel_shape"])
    n = len(kernel)
    strides, dilations = list(given.get("strides") or [1] * n), list(given.get("dilations") or [1] * n)
    stated = list(given.get("pads") or [0] * 2 * n)
    pads = _pads(x, kernel, strides, dilations, stated, given.get("auto_pad") or "NOTSET", bool(given.get("ceil_mode")))
    taps = tuple(range(-n, 0))
    if op == "max":
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return np.asarray(_windows(x, kernel, strides, pads, dilations, least).max(axis=taps))
    counted = np.pad(np.ones(x.shape[2:], np.float32), list(zip(stated[:n], stated[n:], strict=True)),
                     constant_values=1 if given.get("count_include_pad") else 0)  # fmt: skip
    rest = [p - s for p, s in zip(pads, stated, strict=True)]
    number = _windows(counted[None, None], kernel, strides, rest, dilations, 0).sum(axis=taps)
    total = _windows(x, kernel, strides, pads, dilations, 0).astype(np.float64).sum(axis=taps)
    return np.asarray(total / number).astype(x.dtype)


def _operators() -> list[type[OpRun]]:
    """Classes by name and domain, as the evaluator takes them."""

    def made(name: str, domain: str, run: Any) -> type[OpRun]:
        return type(name, (OpRun,), {"op_domain": domain, "_run": run})

    def quantise(self: Any, x: Any, scale: Any, zero: Any = None, **given: Any) -> tuple[np.ndarray]:
        axis = given.get("axis")
        return (_integers(x, scale, zero, 1 if axis is None else axis),)

    def dequantise(self: Any, x: Any, scale: Any, zero: Any = None, **given: Any) -> tuple[np.ndarray]:
        axis = given.get("axis")
        return (_real(x, scale, zero, 1 if axis is None else axis),)

    def largest(self: Any, x: Any, **given: Any) -> tuple[np.ndarray]:
        return (_pooled(x, "max", given),)

    def average(self: Any, x: Any, **given: Any) -> tuple[np.ndarray]:
        return (_pooled(x, "mean", given),)

    def both(op: Any) -> Any:
        def run(self: Any, a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, s: Any, z: Any = None, **_: Any) -> Any:
            return (_integers(op(_real(a, sa, za), _real(b, sb, zb)), s, z),)

        return run

    def one(op: Any) -> Any:
        def run(self: Any, x: Any, sx: Any, zx: Any, s: Any, z: Any = None, **given: Any) -> Any:
            return (_integers(op(_real(x, sx, zx), given), s, z),)

        return run

    def joined(self: Any, s: Any, z: Any, *parts: Any, axis: int = 1, **_: Any) -> tuple[np.ndarray]:
        real = [_real(*parts[k : k + 3]) for k in range(0, len(parts), 3)]
        return (_integers(np.concatenate(real, axis), s, z),)

    def gemm(self: Any, a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, c: Any = None, s: Any = None, z: Any = None,
             **given: Any) -> tuple[np.ndarray]:  # fmt: skip
        left = _real(a, sa, za)
        turned = bool(given.get("transB"))
        right = _real(b, sb, zb, 0 if turned else 1)
        real = (left.T if given.get("transA") else left) @ (right.T if turned else right)
        alpha = given.get("alpha")
        real = real * np.float32(1 if alpha is None else alpha)
        if c is not None:
            real = real + c.astype(np.float32) * (sa * sb * np.float32(1 if alpha is None else alpha))
        return (real.astype(np.float32) if s is None else _integers(real, s, z),)

    def norm(self: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, **given: Any) -> tuple[np.ndarray]:
        epsilon = given.get("epsilon")
        factor = scale / np.sqrt(variance + np.float32(1e-5 if epsilon is None else epsilon))
        return ((x * _along(factor, x.ndim, 1) + _along(shift - mean * factor, x.ndim, 1)).astype(x.dtype),)

    def leaky(x: np.ndarray, given: Mapping[str, Any]) -> np.ndarray:
        return np.where(x < 0, np.float32(given.get("alpha") or 0.01) * x, x)

    plain = [("QuantizeLinear", quantise), ("DequantizeLinear", dequantise)]
    found = [made(name, domain, run) for name, run in plain for domain in ("", _MICROSOFT)]
    found += [made("MaxPool", "", largest), made("AveragePool", "", average)]
    found.append(made("BatchNormalization", "", norm))
    for name, op in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
        found.append(made(name, _MICROSOFT, both(op)))
    for name, single in (
        ("QLinearSigmoid", lambda x, _: 1 / (1 + np.exp(-x))), ("QLinearLeakyRelu", leaky),
        ("QLinearAveragePool", lambda x, given: _pooled(x, "mean", given)),
        ("QLinearGlobalAveragePool", lambda x, _: x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)),
    ):  # fmt: skip
        found.append(made(name, _MICROSOFT, one(single)))
    return [*found, made("QLinearConcat", _MICROSOFT, joined), made("QGemm", _MICROSOFT, gemm)]
