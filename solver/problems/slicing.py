"""Problem slicing, as the rest of `solver` sees it: as tiling, in another space of nests."""

from __future__ import annotations

from functools import partial

from formulations.tiling.problem import SLICING
from solver.problems.tiling import LayersProblem

PROBLEM = partial(LayersProblem, SLICING)
