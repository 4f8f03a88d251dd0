"""What plans and fronts do for people and that needs to know every problem, by name and place.

A plan is below the problems that make it, so it cannot import what knows them all: the package says where it is.
"""

from __future__ import annotations

from typing import Any

from instances.late import Later

FACES: Later[Any] = Later()
