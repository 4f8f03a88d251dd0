"""What plans and fronts do for people and that needs to know every problem, by name; who does it puts it here.

A plan is below the problems that make it, so it cannot import what knows them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FACES: dict[str, Callable[..., Any]] = {}
