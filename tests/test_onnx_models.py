"""Small models of the kinds that people deploy, from the file to plans: what is counted is what the file holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.onnx_models import MODELS, saved


@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_valid(name: str, tmp_path: Path) -> None:
    """onnx's checker takes each, and onnxruntime makes finite numbers with it."""
    runtime = pytest.importorskip("onnxruntime")
    path = saved(name, tmp_path)
    onnx.checker.check_model(str(path))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    feeds = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in session.get_inputs()}
    assert all(np.isfinite(made).all() for made in session.run(None, feeds))
