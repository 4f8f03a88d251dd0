"""The list of operators in docs/onnx.md is that of the reader's own tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.onnx.control import CONTROL
from instances.onnx.ops import HANDLERS
from instances.onnx.quantised import REPLACED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="no documents beside the tests")
def test_every_operator_is_listed_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    standard, microsoft = (text.split(f"{head}: ")[1].split("\n\n")[0] for head in ("Of ONNX", "Of com.microsoft"))
    assert standard.replace("\n", " ").rstrip(".").split(", ") == sorted({*HANDLERS, *CONTROL})
    assert microsoft.replace("\n", " ").rstrip(".").split(", ") == sorted(REPLACED)
