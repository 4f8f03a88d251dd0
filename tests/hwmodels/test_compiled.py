"""Functions of rows of numbers: the same before and after they are compiled."""

from __future__ import annotations

import importlib.util
import random
import sys

import numpy as np
import pytest

from hwmodels.compiled import PATIENCE, compiled
from hwmodels.timeline.price import refusals, times
from tests.hwmodels.test_timeline import some

compiles = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not there")


def halved(rows: np.ndarray, times: int) -> int:
    """Halve all numbers, rounded down; how many there are."""
    for k in range(len(rows)):
        rows[k] = rows[k] // 2**times
    return len(rows)


def test_rows_are_written_back() -> None:
    """Lists take the place of rows at first."""
    row = np.array([8, 5, 2])
    assert compiled(halved)(row, 1) == 3
    assert row.tolist() == [4, 2, 1]


@compiles
def test_functions_are_compiled_when_all_have_taken_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once; then those that have taken nothing as well."""
    function, row = compiled(halved), np.array([-8, 5])
    monkeypatch.setattr(compiled, "spent", 0.0)
    function(row, 1)
    assert function.made is None
    monkeypatch.setattr(compiled, "spent", PATIENCE + 1)
    assert function(row, 1) == 2
    assert function.made is not None
    assert row.tolist() == [-2, 1]


def test_without_numba_they_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for once."""
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(compiled, "spent", PATIENCE + 1)
    function, row = compiled(halved), np.array([8])
    assert (function(row, 1), function(row, 1), row.tolist(), function.made) == (1, 1, [2], None)


@compiles
def test_timelines_take_as_long_by_compiled_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random timelines all that happens is at the same time."""
    rng = random.Random(5)
    every = [one for one in (some(rng) for _ in range(200)) if not refusals(one)]
    assert len(every) > 20
    monkeypatch.setattr(compiled, "spent", float("-inf"))
    before = [times(one) for one in every]
    monkeypatch.setattr(compiled, "spent", PATIENCE + 1)
    assert [times(one) for one in every] == before
