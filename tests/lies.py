"""Plans that say something else than they did, as their files would, and what a check finds in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from solver import check
from solver.plan.plan import Plan

#: Where in a plan (keys, or one text with points between them), and what stands there then: a value, or a function of
#: what stood there. A function alone changes all of the plan's JSON in its place.
Lie = tuple[tuple[str | int, ...] | str, Any] | Callable[[Any], object]


def changed(plan: Plan, *lies: Lie) -> Plan:
    """Read a plan again with other values in some places; raises InputError if it is none any more."""
    data = json.loads(plan.to_json())
    for lie in lies:
        if callable(lie):
            lie(data)
            continue
        place, value = lie
        if isinstance(place, str):
            place = tuple(int(key) if key.lstrip("-").isdigit() else key for key in place.split("."))
        at = data
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value(at[place[-1]]) if callable(value) else value
    return Plan.from_json(json.dumps(data))


def problems(plan: Plan, *lies: Lie) -> tuple[str, ...]:
    """What a check finds in such a plan."""
    return check(changed(plan, *lies)).problems
