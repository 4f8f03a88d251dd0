"""`why` names the true cause of every constructed layer, its parts are the whole, and what it says binds does bind."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from hwmodels.nest.price.closed_form import with_prices
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver import InputError, Plan, Why, solve, why
from solver.cli.main import main
from solver.plan.why import About, Curve
from solver.uses.why.relax import ENDLESS, fields_of, with_field
from tests.golden_plans import CASES as GOLDEN
from tests.golden_plans import chain
from tests.small import machine
from tests.solver.why_cases import CASES, EIGHT, FLAT, Case


def explained(case: Case) -> About:
    plan = solve(
        case.layer, case.machine, objective=case.objective, pins=case.pins, engine=case.engine, jobs=1, time_limit_s=60
    )
    if case.value is not None:
        assert plan.objective.value == case.value
    return why(plan, time_limit_s=case.limit_s, rivals=False).parts[0]


@pytest.mark.few(3)
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


# ---- `why` on plans of every problem, its curves, what it says when time is short, and the command line --------------

#: The first request of every problem that has a plan, beside layers.
WHOLE = {
    case.problem: case
    for case in reversed(GOLDEN)
    if case.ask is solve and case.problem not in ("tiling", "slicing", "homes") and "engine" in case.options
    and "conflict" not in case.name
}  # fmt: skip


def first(problem: str) -> Plan:
    return WHOLE[problem].solve()


# ---- other plans -----------------------------------------------------------------------------------------------------


@pytest.mark.slow(10)
@pytest.mark.parametrize("problem", WHOLE)
def test_plans_of_every_problem(problem: str) -> None:
    plan = first(problem)
    (about,) = why(plan, time_limit_s=20, rivals=False).parts
    assert about.value == plan.objective.value
    assert about.splits[0].measure == plan.objectives[0]
    assert about.headline
    for split in about.splits:
        assert sum(part.value for part in split.parts) == split.value
    for one in about.trials:  # a doubled field, solved again here
        assert one.binds is None or one.binds == (one.value is not None and one.value < plan.objective.value)


@pytest.mark.slow(1)
def test_several_layers_add_up() -> None:
    plan = solve(chain(4, 2), machine(ocm_bytes=100), problem="tiling", objective="bytes", jobs=1)
    whole, *layers = why(plan, rivals=False).parts
    assert (whole.layer, [one.layer for one in layers]) == ("", ["c0", "c1"])
    assert whole.value == sum(one.value or 0 for one in layers)
    for split in whole.splits:
        assert sum(part.value for part in split.parts) == split.value
    assert why(plan, "c1", rivals=False).parts[0].layer == "c1"


@pytest.mark.parametrize(("field", "more"), [("latency", "mac_ps"), ("period", "mac_ps")])
def test_a_slow_processor(field: str, more: str) -> None:
    """All that the board does is computing: a tenth of the speed of its cores, nothing else costs."""
    from instances.load import load_machine

    data = load_machine("hikey970", {}).model_dump(mode="json")
    data["processors"]["accelerators"] = []
    data["processors"]["cpu"].update(mac_ps=100_000.0, call_ns=0.0, result_ps=0.0)
    for threads in data["processors"]["cpu"]["threads"]:
        threads["sync_ns"] = 0.0
    board = type(load_machine("hikey970", {})).model_validate(data)
    plan = solve(chain(64, size=14, channels=32), board, problem="mapping", objective=field, pins=["cpu_config=4"])
    (about,) = why(plan, rivals=False).parts
    assert about.cause == "processor"
    assert f"processors.cpu.{more}" in about.headline


def test_no_plan() -> None:
    plan = solve(chain(4), machine(ocm_bytes=2), problem="tiling", objective="bytes", jobs=1)
    (about,) = why(plan).parts
    assert about.cause == "infeasible"
    assert about.conflicts
    assert "memory ocm" in about.headline


def test_no_time() -> None:
    plan = solve(EIGHT, machine(ocm_bytes=16), objective="bytes", jobs=1)
    (about,) = why(plan, time_limit_s=0.01).parts
    assert "everything" in about.left_out or "ocm_bytes without limit" in about.left_out
    assert about.cause == "unsolved"
    assert about.splits


def test_a_part_of_the_time() -> None:
    plan = solve(EIGHT, machine(ocm_bytes=16), objective="bytes", jobs=1)
    (about,) = why(plan, time_limit_s=1.2).parts
    claimed = {one.change for one in about.trials if one.status != "SKIPPED"} | {one.decision for one in about.rivals}
    assert not claimed & set(about.left_out)
    skipped = [one for one in about.trials if one.status == "SKIPPED"]
    assert about.headline.startswith("so far") == bool(skipped) or about.cause == "unsolved"


# ---- curves ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(13)
def test_a_memory_curve_is_exact() -> None:
    """Every size from a quarter to four times, solved one by one."""
    layer = Layer.matmul("tiny", rows=3, inner=3, cols=2)
    on = machine(psum_bytes=1, ocm_bytes=8)
    plan = solve(layer, on, objective="bytes", jobs=1)
    (curve,) = why(plan, marginal="ocm_bytes", time_limit_s=60).curves
    assert curve.complete
    assert curve.now == 8
    assert curve.objective == "bytes"
    values = {}
    for size in range(2, 33):
        found = solve(layer, on.model_copy(update={"ocm_bytes": size}), objective="bytes", jobs=1)
        values[size] = found.objective.value if found.objective else None
    assert curve.knees == tuple(size for size in range(3, 33) if values[size] != values[size - 1])
    for point in curve.points:
        assert point.value == values[point.x] if point.x in values else point.x > 32


def test_a_price_curve_is_a_line_where_the_plan_stays() -> None:
    plan = solve(FLAT, machine(), objective="time", jobs=1)
    (curve,) = why(plan, marginal="bandwidth", time_limit_s=20).curves
    assert curve.field == "transfer.byte_ticks"
    assert curve.finer == 4
    assert curve.complete
    assert curve.knees == ()
    # 68 bytes whatever a byte costs
    assert all(point.value == 68 * point.x and point.slope == 68 for point in curve.points)
    assert curve.origin.shown == "1"


@pytest.mark.slow(2)
def test_a_price_curve_bends_where_plans_change() -> None:
    """Few calls or few bytes: at some price of a byte one takes the place of the other."""
    on = machine(psum_bytes=1, ocm_bytes=40, transfer={"byte_ticks": 4, "call_ticks": 40})
    layer = Layer.matmul("swap", rows=6, inner=4, cols=6)
    plan = solve(layer, on, objective="time", jobs=1)
    (curve,) = why(plan, marginal="transfer.byte_ticks", time_limit_s=90).curves
    _concave(curve)
    for point in curve.points[::3]:
        price = {name: 4 * x for name, x in {"transfer.call_ticks": 40}.items()} | {"transfer.byte_ticks": point.x}
        found = solve(layer, with_prices(on, price), objective="time", jobs=1, time_limit_s=20)
        assert not point.exact or found.objective.value >= point.value


def _concave(curve: Curve) -> None:
    points = [(point.x, point.value) for point in curve.points if point.exact and point.value is not None]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)]
    assert all(one >= two for one, two in itertools.pairwise(slopes))


def test_a_curve_of_a_network() -> None:
    plan = first("partial_engine")
    (curve,) = why(plan, marginal="memory", time_limit_s=10).curves
    assert curve.field == "engine.bank_bytes"
    assert curve.origin.value == plan.objective.value
    values = [point.value for point in curve.points if point.exact and point.value is not None]
    assert values == sorted(values, reverse=True)


def test_fields_get_better() -> None:
    on = machine(layer_ticks=8)
    names = {one.path: one.more for one in fields_of(on, "tiling")}
    assert names["ocm_bytes"]
    assert not names["transfer.byte_ticks"]
    assert not names["layer_ticks"]
    assert "in_bytes" not in names
    assert "transfer.call_ticks" not in names
    better = with_field(on, "ocm_bytes", 7)
    assert better.ocm_bytes == 7
    assert with_field(on, "ocm_bytes", -1) is None


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    solve(EIGHT, machine(psum_bytes=1, ocm_bytes=16), objective="bytes", jobs=1).save(path)
    return str(path)


@pytest.mark.slow(2)
def test_the_command(plan_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", plan_file, "--no-rivals"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("eight: ocm_bytes too small: without limit")
    assert "fetched again: in each of" in said
    assert "ocm_bytes without limit: 192 bytes" in said


@pytest.mark.slow(2)
def test_json_can_be_read_again(plan_file: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    assert main(["why", plan_file, "--no-rivals", "--json", "-o", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["format"] == "certile-why/1"
    assert Why.model_validate_json(out.read_text()).to_json() == out.read_text()
    assert printed == json.loads(out.read_text())


@pytest.mark.slow(3)
def test_curves_on_the_command_line(plan_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", plan_file, "--marginal", "memory", "--time-limit", "8"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("eight: bytes (bytes) over ocm_bytes:")
    assert "now" in said
    assert "changes here" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layer", "nothing"], "has no layer 'nothing'; it has eight"),
        (["--marginal", "nothing"], "--marginal nothing: problem tiling has bandwidth, cols, compute.cols"),
        (["--marginal", "ocm_byte"], "did you mean ocm_bytes"),
        (["--time-limit", "-1"], "time limit -1"),
    ],
)
def test_bad_input(plan_file: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", plan_file, *arguments]) == 2
    assert said in capsys.readouterr().err.replace("or ", "")


@pytest.mark.parametrize(
    ("problem", "rooms"),
    [
        ("joint", {"ocm": (128, 128)}),  # all four banks of 32 bytes
        ("partial_engine", {"bank": (48, 48)}),  # 2 inputs, 3 sums and a fresh place of 8 bytes
        ("placement", {"fast": (12, 12), "slow": (5, 8)}),
    ],
)
def test_how_full_memories_are(problem: str, rooms: dict[str, tuple[int, int]]) -> None:
    about = first(problem).why(time_limit_s=1, rivals=False).parts[0]
    assert {one.memory: (one.used, one.capacity) for one in about.rooms} == rooms


@pytest.mark.slow(2)
def test_a_plan_explains_itself(plan_file: str) -> None:
    plan = Plan.load(plan_file)
    assert plan.why(rivals=False).about("eight").cause == "memory"
    with pytest.raises(InputError, match="as a whole"):
        first("placement").why("b0")
