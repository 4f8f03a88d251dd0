"""All families, by name."""

from __future__ import annotations

from solver.library.case import Cases
from solver.library.layers import LAYERS

FAMILIES: dict[str, Cases] = {one.family: one for one in LAYERS}
