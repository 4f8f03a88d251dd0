"""What a column of a result is made of, for the replay of bank programs."""

from __future__ import annotations

from instances.feature_maps import FeatureMap, Stage
from instances.machine import Banks

__all__ = ["must_load", "taps", "windows"]


def windows(stage: Stage, target: FeatureMap, columns: int) -> list[range]:
    """For every column of the result the columns, of so many, that it is made of."""
    if stage.kind == "patches":
        return [range(x * target.rows, (x + 1) * target.rows) for x in range(target.columns)]
    if stage.kind == "whole":
        return [range(columns)] * target.columns
    first = [x * stage.stride - stage.before for x in range(target.columns)]
    return [range(max(0, f), min(columns, f + (stage.taps - 1) * stage.dilation + 1)) for f in first]


def taps(stage: Stage, result: int, columns: int) -> int:
    """Columns of the window that lie inside a map of so many."""
    if stage.kind in ("patches", "sum"):
        return 1
    first = result * stage.stride - stage.before
    return sum(0 <= first + t * stage.dilation < columns for t in range(stage.taps))


def must_load(columns: int, read: int, tile: int, banks: Banks) -> int:
    """Columns that a stage has to load if its windows read the first so many: all, or in whole tiles."""
    return columns if banks.unread == "loaded" else min(columns, -(-read // tile) * tile)
