"""The schedule of a layer on a small engine: strips, places in the banks, and the program of a strip."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt


class EngineSchedule(BaseModel):
    """How a layer runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: PositiveInt
    strips: PositiveInt
    """`rows`, `strips`: output rows of a strip, and how many there are; all run the same program, one after the other.
    """
    grids: PositiveInt
    """Grids of runs, one after the other: the groups of a grouped convolution, or of the maps of a depthwise one."""
    inputs: PositiveInt
    outputs: PositiveInt
    """`inputs`, `outputs`: groups of input and of output maps of a grid."""
    in_places: PositiveInt
    part_places: PositiveInt
    fresh_places: NonNegativeInt
    """`in_places`, `part_places`, `fresh_places`: places in every bank, at addresses one after the other: for input
    groups, for partial groups, and for partial maps that are not added yet. Map k of a group lies in bank k.
    """
    in_place_bytes: PositiveInt
    part_place_bytes: PositiveInt
    """`in_place_bytes`, `part_place_bytes`: of a bank."""
    inputs_at: Literal["dram", "banks"]
    results_at: Literal["dram", "banks"]
    """`inputs_at`, `results_at`: where inputs are before, and results afterwards. In the banks every grid has places of
    its own: input group i of grid n is in place ``n*inputs + i``.
    """
    program: str
    """Steps ``L0@1`` (load input group 0 to input place 1), ``R0.3@2`` (run of input group 0 and output group 3, the
    result to partial place 2, ``@f`` the fresh place), ``A3@2`` (add the fresh maps to those in place 2), ``P3@2``
    (store partial maps, to come back), ``B3@1`` (load them again), ``S3@2`` (store the result).
    """
