"""The functions that methods of plans and fronts call but may not import: a table of names, empty here.

`Plan.why`, `Front.report` and their like need what knows every problem, and plans are below the problems that make
them. So `solver/__init__.py` fills the table with the places of these functions (`instances.late`).
"""

from __future__ import annotations

from typing import Any

from instances.late import Later

FACES: Later[Any] = Later()
