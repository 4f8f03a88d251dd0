"""All families, by name."""

from __future__ import annotations

from tests.library.boards import BOARDS
from tests.library.case import Cases
from tests.library.layers import LAYERS
from tests.library.networks import NETWORKS

FAMILIES: dict[str, Cases] = {one.family: one for one in (*LAYERS, *NETWORKS, *BOARDS)}
