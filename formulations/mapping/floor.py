"""What no assignment of mapping undercuts, without any search; for limits that pass before a bound is proven.

Example: tasks that take at least 3 and 5 ticks wherever they run, on two processors. No period is below 5, the longest
task, nor below 4, half of all work. Copies count nothing, each task is where it costs the least.
"""

from __future__ import annotations

from formulations.mapping.latency import least_latency
from formulations.mapping.space import Aim, Mapping


def floor(mapping: Mapping, aim: Aim) -> int:
    """Return a bound on the period or the latency in ticks, or on the energy in fJ."""
    if aim == "latency":
        return least_latency(mapping)
    ways = [[mapping.work(i, a) for a in able] for i, able in enumerate(mapping.able)]
    if aim == "energy":
        return sum(min(sum(mapping.watts[p] * t for p, t in way) for way in of) for of in ways)
    longest = max((min(max(t for _, t in way) for way in of) for of in ways), default=0)
    work = sum(min(sum(t for _, t in way) for way in of) for of in ways)
    return max(1, longest, -(-work // len(mapping.processors)))
