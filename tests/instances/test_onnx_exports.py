"""Small models as torch exports them today (tests/data/onnx/make.py): MACs against those that torch counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.load import load_network

FOLDER = Path(__file__).resolve().parents[1] / "data" / "onnx"
WANTED = json.loads((FOLDER / "macs.json").read_text(encoding="utf-8"))
#: What the exporter has multiplied itself, so that the file holds no product of it.
FOLDED = {
    "detr_dynamo.onnx": 4 * 5 * 8 * 8
    + 2 * 5 * 5 * 8,  # five queries of 8 attend to themselves: 4 linear layers, 2 products
    "rnn_dynamo.onnx": 4 * 8 * 8,  # the zero state before the first step, in two directions of two layers
}


@pytest.mark.few(41)
@pytest.mark.parametrize("name", sorted(WANTED))
def test_every_multiply_accumulate_is_planned(name: str) -> None:
    network = load_network(str(FOLDER / name))
    assert network.opaque == ()
    assert network.macs == WANTED[name] - FOLDED.get(name, 0)
