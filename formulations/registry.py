"""Spaces of nests, by name, and the formulations whose plans need no form of their own: a line each.

A line is a name and its place (`instances.late`), so a formulation is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from instances.late import Later

if TYPE_CHECKING:
    from formulations.tiling.nests import Nests

NESTS: Later[Nests] = Later(
    {"tiling": "formulations.tiling.nests:TILING", "slicing": "formulations.tiling.nests:SLICING"}
)

#: Those that are a folder and a line here, and nothing else: "NAME": "formulations.NAME.problem:CLASS".
FORMULATIONS: Mapping[str, str] = {}
