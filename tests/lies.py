"""Plans that say something else than they did, as their files would."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from solver.plan.plan import Plan

#: Where in a plan, and what stands there then: a value, or a function of what stood there.
Lie = tuple[tuple[str | int, ...], Any]


def changed(plan: Plan, *lies: Lie) -> Plan:
    """Read a plan again with other values in some places; raises InputError if it is none any more."""
    data = json.loads(plan.to_json())
    for place, value in lies:
        at = data
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value(at[place[-1]]) if isinstance(value, Callable) else value  # type: ignore[arg-type]
    return Plan.from_json(json.dumps(data))
