"""`why` names the true cause of every constructed layer, its parts are the whole, and what it says binds does bind."""

from __future__ import annotations

import random

import pytest

from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver import InputError, solve, why
from solver.plan.plan import Plan
from solver.plan.why import About
from solver.uses.why.relax import ENDLESS
from tests.small import machine
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


# ---- Random layers, machines and pins: parts are the whole, and what is said to bind is solved again by a

PINS = ("T_R<=2", "T_M=1", "T_N<=2", "holds=uniform", "sizes=divisors", "resident=W", "pieces=even", "T_C<=1")


def case(seed: int) -> tuple[Layer, Machine, tuple[str, ...], str]:
    """A small layer on a small machine, with up to two pins."""
    rng = random.Random(seed)
    taps = rng.choice([1, 1, 2, 3])
    layer = Layer.conv(
        f"l{seed}", channels=rng.randint(1, 5), filters=rng.randint(1, 5),
        size=(rng.randint(taps, 6), rng.randint(taps, 4)), kernel=(taps, taps), bias=rng.random() < 0.3,
    )  # fmt: skip
    lanes = {name: rng.choice([1, 4]) for name in ("rows", "cols")}
    fields: dict[str, object] = {
        "psum_bytes": rng.choice([1, 4]), "sliding": rng.random() < 0.4, "ocm_bytes": rng.randint(4, 120),
        "bias_bytes": rng.choice([0, 4]), "mac_fj": 3, "byte_fj": rng.choice([1, 20]),
        "transfer": {"byte_ticks": rng.choice([1, 8]), "call_ticks": rng.choice([0, 20])},
        "compute": {"model": "array", "cycle_ticks": rng.choice([1, 9]), **lanes},
    }  # fmt: skip
    if rng.random() < 0.25:
        fields |= {name: rng.randint(2, 40) for name in ("in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes")}
        del fields["ocm_bytes"]
    pins = tuple(rng.sample(PINS, rng.choice([0, 0, 1, 2])))
    return layer, machine(**fields), pins, rng.choice(["bytes", "bytes", "time", "energy"])


def explained_case(seed: int) -> tuple[Plan, About] | None:
    layer, on, pins, objective = case(seed)
    try:
        plan = solve(layer, on, objective=objective, pins=pins, jobs=1, time_limit_s=10)
    except InputError:
        return None
    return plan, why(plan, time_limit_s=12).parts[0]


def other(plan: Plan, on: Machine, pins: tuple[str, ...]) -> tuple[int | None, int | None]:
    """Value and bound by another engine; pins are the plan's unless others are given."""
    found = solve(
        plan.layers[0].workload, on, objective=plan.objectives[0], pins=pins, engine="cp-sat", jobs=1, time_limit_s=20
    )
    return found.objective.value if found.objective else None, found.bound


def attack(seed: int) -> int:
    """Return how many claims were verified."""
    known = explained_case(seed)
    if known is None:
        return 0
    plan, about = known
    verified = 0
    for split in about.splits:
        assert sum(part.value for part in split.parts) == split.value
    if plan.objective is None:
        assert about.cause in ("infeasible", "unsolved")
        return 0
    base = other(plan, plan.machine_data, plan.options.pins)
    for one in about.trials:
        relaxed = conditions(plan, one.cause, one.name)
        if relaxed is None or one.binds is None:
            continue
        value, bound = other(plan, *relaxed)
        if one.binds:
            assert one.value is not None, (seed, one)
            assert bound is None or bound <= one.value, (seed, one)
            assert base[0] is None or one.value < base[0], (seed, one)
        else:
            assert value is None or value >= plan.objective.value, (seed, one)
        verified += 1
    knee = about.knee
    if knee is not None and knee.exact:
        at = plan.machine_data.model_copy(update={knee.field: knee.at})
        below = plan.machine_data.model_copy(update={knee.field: knee.at - 1})
        value, bound = other(plan, at, plan.options.pins)
        assert bound is None or bound <= knee.value
        value, _ = other(plan, below, plan.options.pins)
        assert value is None or value >= plan.objective.value, (seed, knee)
        verified += 1
    return verified


def conditions(plan: Plan, cause: str, name: str) -> tuple[Machine, tuple[str, ...]] | None:
    """What `why` says that it relaxed, made anew."""
    on = plan.machine_data
    if cause == "pin":
        return on, tuple(pin for pin in plan.options.pins if pin != name) if name != "all pins" else ()
    if cause == "memory" and name.endswith("_bytes"):
        return on.model_copy(update={name: ENDLESS}), plan.options.pins
    if cause == "bandwidth":
        return on.model_copy(update={"transfer": on.transfer.model_copy(update={"byte_ticks": 0})}), plan.options.pins
    if cause == "compute":
        return on.model_copy(update={"compute": on.compute.model_copy(update={"cycle_ticks": 0})}), plan.options.pins
    return None


@pytest.mark.slow(40)
@pytest.mark.parametrize("seed", range(8))
def test_what_binds_binds(seed: int) -> None:
    attack(seed)
