"""All families, by name."""

from __future__ import annotations

from solver.library.boards import BOARDS
from solver.library.case import Cases
from solver.library.layers import LAYERS
from solver.library.networks import NETWORKS

FAMILIES: dict[str, Cases] = {one.family: one for one in (*LAYERS, *NETWORKS, *BOARDS)}
