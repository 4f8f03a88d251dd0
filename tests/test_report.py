"""Tables: what people read must not round a gap to zero or hide a missing layer."""

from __future__ import annotations

import pytest

from instances.machine import Machine, Transfer
from instances.workload import Layer
from solver import Plan, solve
from solver.report import names_table, plan_table, ratio, render, shorten, status_line
from solver.tiling.plan import LayerPlan

MACHINE = Machine(
    name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
    transfer=Transfer(call_ticks=10, byte_ticks=1), byte_fj=100, mac_fj=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Layer.conv("tiny", channels=2, filters=2, size=(4, 4)), MACHINE)


def _changed(plan: Plan, **update: object) -> Plan:
    layer = plan.layers[0].model_copy(update=update)
    shared = {k: v for k, v in update.items() if k in Plan.model_fields}
    return plan.model_copy(update={**shared, "layers": (layer,)})


def test_the_figures_of_a_layer(plan: Plan) -> None:
    # 108 ticks of 1000 ps are 0.108 us; 6864 fJ are 0.000007 uJ
    row = render(plan_table(plan)).splitlines()[2].split()
    assert row[0] == "tiny"
    assert row[-7:-1] == ["0.1", "68", "1.000", "0.0", "0.1", "0"]


@pytest.mark.parametrize(
    ("gap", "shown"), [(0.0, "0"), (None, "-"), (0.5, "50.00%"), (0.000001, "<0.01%"), (0.00012, "0.01%")]
)
def test_a_gap_is_zero_only_if_it_is(plan: Plan, gap: float | None, shown: str) -> None:
    assert render(plan_table(_changed(plan, gap=gap))).splitlines()[2].split()[-2] == shown


@pytest.mark.parametrize(
    ("value", "reference", "shown"),
    [(3, 2, "1.500"), (None, 2, "-"), (3, None, "-"), (0, 0, "1.000"), (1, 0, "inf"), (2, 2, "1.000")],
)
def test_ratio(value: int | None, reference: int | None, shown: str) -> None:
    assert ratio(value, reference) == shown


def test_decisions_in_short() -> None:
    assert shorten({"partition": "KS", "T_M": 16, "T_R": 4}) == "KS M16 R4"


def test_status_line_names_what_is_missing(plan: Plan) -> None:
    empty = dict.fromkeys(("objective", "bound", "gap", "schedule", "measures", "replay", "decision", "counts"))
    lost = LayerPlan.model_validate({**dict(plan.layers[0]), **empty, "status": "NO_SOLUTION_FOUND"})
    missing = plan.model_copy(update={"status": "NO_SOLUTION_FOUND", "objective": None, "layers": (lost,) * 5})
    line = status_line(missing)
    assert "NO_SOLUTION_FOUND; 5 of 5 layers without a schedule: tiny, tiny, tiny and 2 more" in line
    assert "NO_SOLUTION_FOUND" in render(plan_table(missing))


def test_status_line_without_a_bound(plan: Plan) -> None:
    assert "no bound" in status_line(plan.model_copy(update={"bound": None, "gap": None}))


def test_names_from_files_are_only_text(plan: Plan) -> None:
    """Neither rich's markup nor control characters of a layer's name take effect."""
    shown = render(plan_table(_changed(plan, layer="[red]a\x1b[0m\n")))
    assert "[red]a?[0m?" in shown
    assert "[x]" in render(names_table({"[x]": "y"}, ("name", "what")))


def test_bytes_and_energy_objectives_show_their_bound(plan: Plan) -> None:
    layer = plan.layers[0].workload
    assert "bound (bytes)" in render(plan_table(solve(layer, MACHINE, objective="bytes")))
    assert "bound (uJ)" in render(plan_table(solve(layer, MACHINE, objective="energy")))
