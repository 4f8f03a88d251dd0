"""Tables: what people read must not round a gap to zero or hide a missing layer."""

from __future__ import annotations

import pytest

from instances.network.workload import Layer
from solver import Plan, solve
from solver.calls.solve import show
from solver.problems.tiling import nest_table
from solver.show.tables import Column, Sheet, names_table, percent, ratio, render
from solver.show.words import decision_columns, decision_text, label
from tests.small import TOY as MACHINE


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Layer.conv("tiny", channels=2, filters=2, size=(4, 4)), MACHINE)


def _changed(plan: Plan, **update: object) -> Plan:
    part = plan.parts[0].model_copy(update=update)
    shared = {k: v for k, v in update.items() if k in Plan.model_fields}
    return plan.model_copy(update={**shared, "parts": (part,)})


def test_the_figures_of_a_layer(plan: Plan) -> None:
    # 108 ticks of 1000 ps are 0.108 us; 6864 fJ are 0.000007 uJ
    row = render(nest_table(plan, {})).splitlines()[2].split()
    assert row[:6] == ["tiny", "0.1", "0", "68", "0.0", "1.000"]


@pytest.mark.parametrize(
    ("gap", "shown"), [(0.0, "0"), (None, "-"), (0.5, "50.00"), (0.000001, "<0.01"), (0.00012, "0.01")]
)
def test_a_gap_is_zero_only_if_it_is(plan: Plan, gap: float | None, shown: str) -> None:
    assert percent(gap) == shown
    assert render(nest_table(_changed(plan, gap=gap), {})).splitlines()[2].split()[2] == shown


@pytest.mark.parametrize(
    ("value", "reference", "shown"),
    [(3, 2, "1.500"), (None, 2, "-"), (3, None, "-"), (0, 0, "1.000"), (1, 0, "inf"), (2, 2, "1.000")],
)
def test_ratio(value: int | None, reference: int | None, shown: str) -> None:
    assert ratio(value, reference) == shown


def test_decisions_in_short() -> None:
    decision = {"partition": "KS", "loops": "W r c OUT n IN", "T_M": 16, "T_R": 4, "cuts_R": "2 4", "home_W": "flash"}
    assert decision_text(decision) == "KS; W | r c | OUT | n | IN; M=16 R<=4; W in flash"
    assert [column.head for column in decision_columns([decision, None])] == [
        "partition", "loop order", "tile", "off chip",
    ]  # fmt: skip
    assert decision_columns([None, {"T_M": 2, "buffers_IN": 2, "buffers_W": 1}])[1].cells == ["-", "two for IN"]


def test_status_line_names_what_is_missing(plan: Plan) -> None:
    empty = {**dict.fromkeys(("gap", "schedule", "replay", "figures")), "measures": {}, "terms": {}}
    lost = plan.parts[0].model_copy(update={**empty, "bounds": {"time": None}, "status": "NO_SOLUTION_FOUND"})
    missing = plan.model_copy(
        update={"status": "NO_SOLUTION_FOUND", "objective": None, "measures": None, "parts": (lost,) * 5,
                "network_data": plan.network_data * 5}
    )  # fmt: skip
    line = show(missing)
    assert "NO_SOLUTION_FOUND\n5 of 5 layers without a schedule: tiny, tiny, tiny and 2 more" in line
    assert "NO_SOLUTION_FOUND" in render(nest_table(missing, {}))


def test_status_line_without_a_bound(plan: Plan) -> None:
    assert "no bound" in show(plan.model_copy(update={"bound": None, "gap": None}))


def test_names_from_files_are_only_text(plan: Plan) -> None:
    """Neither rich's markup nor control characters of a layer's name take effect."""
    shown = render(nest_table(_changed(plan, name="[red]a\x1b[0m\n"), {}))
    assert "[red]a?[0m?" in shown
    assert "[x]" in render(names_table({"[x]": "y"}, ("name", "what")))


def test_the_objective_stands_first(plan: Plan) -> None:
    layer = plan.layers[0].workload
    assert nest_table(solve(layer, MACHINE, objective="bytes"), {}).columns[1].head == "bytes"
    assert nest_table(solve(layer, MACHINE, objective="energy"), {}).columns[1].head == "energy (uJ)"


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_nothing_is_cut_off_silently(plan: Plan, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and numbers are folded, columns that are left out are named."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = show(plan)
    assert max(map(len, text.splitlines())) <= columns
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    words = " ".join(text.split())
    shown = [column.head for column in nest_table(plan, {}).columns if column.head.split()[0] in words]
    assert len(shown) == len(nest_table(plan, {}).columns)
    assert ("left out in" in words) == (columns < 80)


def test_a_narrow_table_keeps_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    name = Column("name", ["alpha beta gamma", "x"], words=True)
    lines = render(Sheet([name, Column("value (us)", ["1,234", "5"], "a time")])).splitlines()
    assert [line.split() for line in lines if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" not in line] == [
        ["value"], ["name", "(us)"], ["alpha", "beta", "1,234"], ["gamma"], ["x", "5"], [], ["value:", "a", "time"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("321", "321 conv 3x3 64>128 56x56"), ("", "conv 3x3 64>128 56x56"), ("n12", "n12 conv 3x3 64>128 56x56"),
        ("conv1", "conv1"),
        ("node_conv2d_12", "node_conv2d_12 conv 3x3 64>128 56x56"), ("Conv_12", "Conv_12 conv 3x3 64>128 56x56"),
        ("/features/0/Conv", "/features/0/Conv"), ("layer1.0.conv2", "layer1.0.conv2"),
    ],
)  # fmt: skip
def test_names_that_say_nothing_have_kind_and_shape_beside(name: str, shown: str) -> None:
    layer = Layer.conv("x", channels=64, filters=128, size=(56, 56), kernel=(3, 3), pad=(1, 1, 1, 1))
    assert label(name, layer) == shown
    assert label(name, None) == name
