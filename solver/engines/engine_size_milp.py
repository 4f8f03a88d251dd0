"""Engine ``milp`` for engine sizes, by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.partial_engine.size import Rates, Size
from formulations.partial_engine.size_milp import size_model
from instances.errors import InputError
from instances.partial_engine import PartialEngine
from solver.engines.driver_milp import solve

__all__ = ["run"]

#: Ranks up to which HiGHS tells one from the next: a millionth of it, a variable's tolerance, is below a quarter.
_LARGEST = 200_000


def run(sizes: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    """Return a rate that no size exceeds.

    Raises
    ------
    InputError
        If there are too many different rates.
    """
    problem, levels = size_model(sizes, aim, engine.dsps, engine.brams)
    if len(levels) > _LARGEST:
        raise InputError(f"engine milp: {len(levels):,} different rates, it tells {_LARGEST:,} apart; auto takes all")
    bound = solve("highs", problem).bound
    highest = len(levels) - 1
    return levels[highest if bound is None else min(highest, -bound)]
