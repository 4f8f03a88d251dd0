"""`why` names the true cause of every constructed layer, its parts are the whole, and what it says binds does bind."""

from __future__ import annotations

import pytest

from solver import solve, why
from solver.plan.why import About
from tests.solver.why_cases import CASES, Case


def explained(case: Case) -> About:
    plan = solve(
        case.layer, case.machine, objective=case.objective, pins=case.pins, engine=case.engine, jobs=1, time_limit_s=60
    )
    if case.value is not None:
        assert plan.objective.value == case.value
    return why(plan, time_limit_s=case.limit_s, rivals=False).parts[0]


@pytest.mark.slow(10)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_true_cause(case: Case) -> None:
    about = explained(case)
    assert about.cause == case.cause, about.headline
    assert case.said in about.headline
    shown = [one for one in about.trials if one.cause == case.cause and (not case.relaxed or one.name == case.relaxed)]
    if case.relaxed:
        assert shown
        assert shown[0].binds
    if case.without is not None:
        assert case.without in [one.value for one in shown]
    for split in about.splits:
        assert sum(part.value for part in split.parts) == split.value


def test_every_cause_of_layers_has_two_cases() -> None:
    from typing import get_args

    from solver.plan.why import Cause

    for cause in set(get_args(Cause)) - {"processor", "unsolved"}:
        assert sum(case.cause == cause for case in CASES) >= 2, cause
