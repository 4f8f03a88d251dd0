"""The next-best decisions: the best plan if one decision has to be another one, and what that costs.

Of a nest each tile size is forbidden upwards and downwards (``T_M<=7``, ``T_M>=9`` where the plan has 8), choices are
excluded or asked for one by one. Of other plans every value of every closed choice is asked for, and heuristics are
asked what they would decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from formulations.pins import Decision
from instances.network.workload import Layer
from solver.plan.why import Known, Rival
from solver.uses.why.again import Again, Found

#: The order in which decisions of nests are tried.
_CHOICES = ("resident", "holds", "pieces", "lines", "output", "partition", "dataflow")
#: More values of one choice than this are not tried.
_MOST = 6


def of_nest(
    decisions: Mapping[str, Decision], layer: Layer, decision: Mapping[str, int | str], pins: Iterable[str]
) -> Iterator[str]:
    """Yield pins that a nest does not meet, or may not: other operands held, other ways to cut, the next tile sizes."""
    given = tuple(pins)
    for name in _CHOICES:
        if name in decisions and not any(pin.startswith(f"{name}=") for pin in given):
            own = decision.get(name)
            if own is not None:
                yield f"{name}!={own}"
            else:
                yield from (f"{name}={value}" for value in decisions[name].values if value not in ("free", "any"))
    for name, value in decision.items():
        if name in decisions and name.startswith("T_") and isinstance(value, int):
            yield from ([f"{name}<={value - 1}"] if value > 1 else [])
            yield from ([f"{name}>={value + 1}"] if value < layer.extent(name[2:].lower()) else [])
        elif name in decisions and name.startswith(("buffers_", "home_")):
            yield f"{name}!={value}"


def of_choices(decisions: Mapping[str, Decision], pins: Iterable[str]) -> Iterator[str]:
    """Yield every value of every closed choice that no pin is about."""
    asked = {pin.split("=")[0].rstrip("!<>") for pin in pins}
    for name, decision in decisions.items():
        if name not in asked and 1 < len(decision.values) <= _MOST:
            yield from (f"{name}={value}" for value in decision.values if value not in ("free", "any", "either"))


def rivals(again: Again, base: Found, demands: Iterable[str]) -> Iterator[Rival]:
    """Solve with each demand added; demands that cost nothing and are not proven to are left out."""
    for demand in demands:
        found = again.solve(pins=(*again.question.pins, demand))
        yield _rival(demand, base, found)


def engines(again: Again, base: Found, names: Iterable[str]) -> Iterator[Rival]:
    """Ask heuristics."""
    for name in names:
        yield _rival(f"as engine {name} decides", base, again.solve(engine=name), heuristic=True)


def _rival(decision: str, base: Found, found: Found, *, heuristic: bool = False) -> Rival:
    status: Known = found.status
    if found.value is None or base.value is None:
        return Rival(decision=decision, status=status)
    exact = heuristic or found.proven
    return Rival(decision=decision, status=status, value=found.value, more=found.value - base.value, exact=exact)


def best(found: Iterable[Rival], most: int = 5) -> tuple[Rival, ...]:
    """Return the cheapest rivals first; those without a plan last."""
    every = list(found)
    solved = sorted((one for one in every if one.more is not None), key=_cost)
    none = [one for one in every if one.more is None and one.status == "INFEASIBLE"]
    free = [one for one in solved if one.more == 0 and one.exact]
    return (*free, *[one for one in solved if one not in free][:most], *none)


def _cost(one: Rival) -> tuple[Any, ...]:
    return (one.more or 0, one.decision)
