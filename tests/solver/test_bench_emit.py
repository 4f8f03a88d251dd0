"""The suite that runs programs: rows, the host's cache, and hosts without a compiler."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.ask.progress import Silent
from tests.emitted import residual_model

bench = import_module("solver.uses.bench.emit")


@pytest.mark.slow(8)
def test_a_row_for_every_way_to_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused, weights, input and result move once; joint, three banks of 16 KiB hold few of the maps of 8 KiB."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(bench, "l2_bytes", lambda: 48 * 1024)
    residual_model(tmp_path / "model.onnx")
    (section,) = bench.emit(Silent(), tmp_path / "model.onnx", 1).sections
    rows = {row[0]: dict(zip(section.columns, row, strict=True)) for row in section.rows}
    assert list(rows) == ["naive", "greedy", "optimum of each layer", "joint", "fusion"]
    moved = {name: row["bytes"] for name, row in rows.items()}
    # every layer reads its maps, of 8 * 16 * 16, and writes one: two each, the sum of two maps three
    assert moved["optimum of each layer"] == 4 * (9 * 8 * 16 * 16 + 3 * 8 * 8 * 9)
    assert moved["fusion"] == 4 * (2 * 8 * 16 * 16 + 3 * 8 * 8 * 9) < moved["joint"] < moved["optimum of each layer"]
    assert (rows["naive"]["bytes ratio"], rows["naive"]["time ratio"]) == (1, 1)
    assert all(row["least ms"] == row["CPU ms"] == row["most ms"] > 0 for row in rows.values())


def test_the_second_cache_of_the_host(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([("1", "32K"), ("2", "512K"), ("3", "8192K")]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "level").write_text(f"{level}\n")
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert bench.l2_bytes(tmp_path) == 512 * 1024
    assert bench.l2_bytes(tmp_path / "nothing") == 1 << 20


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(InputError, match="no C compiler: no-such-compiler is not there; CC names another"):
        bench.emit(Silent())


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "certile").write_text("#!/bin/sh\necho 1 layers as one network: transfers NOT as planned\nexit 1\n")
    (tmp_path / "certile").chmod(0o755)
    with pytest.raises(RuntimeError, match="NOT as planned"):
        bench._cpu_s(tmp_path)
