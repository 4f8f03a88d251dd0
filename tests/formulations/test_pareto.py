"""Undominated columns, by passes over all columns and on a grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from formulations import pareto as module
from formulations.pareto import pareto


def by_definition(features: NDArray[np.int64]) -> list[int]:
    """The columns that no other one is at or below; the first of equal ones."""
    columns = features.T.tolist()

    def falls(mine: int) -> bool:
        for other, column in enumerate(columns):
            below = all(x <= y for x, y in zip(column, columns[mine], strict=True))
            if other != mine and below and (column != columns[mine] or other < mine):
                return True
        return False

    return [at for at in range(len(columns)) if not falls(at)]


@pytest.mark.parametrize("grid", [False, True])
def test_columns_that_no_other_one_is_below(grid: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MANY", 0 if grid else 10**9)
    monkeypatch.setattr(module, "_CELLS", 10**9)
    rng = np.random.default_rng(1)
    for _ in range(150):
        most = rng.integers(1, 7, size=rng.integers(1, 6))
        number = int(rng.integers(1, 40))
        features = np.stack([rng.integers(0, high + 1, size=number) for high in most])
        module._pareto.cache_clear()
        assert pareto(features).tolist() == by_definition(features), features
