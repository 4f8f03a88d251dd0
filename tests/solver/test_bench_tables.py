"""Numbers of benchmark tables by hand: ratios, means, agreement, gaps, and which rows are asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hwmodels.schedule import Nest
from instances.errors import InputError
from solver.ask.progress import Silent
from solver.plan.claims import Status
from solver.search.loop import Answer
from solver.uses.bench import report
from solver.uses.bench.layers import _agree, _gap, distinct_layers
from solver.uses.bench.report import Suite, Table, agreed, geomean, over, shown


def answer(status: Status, value: int | None, bound: int | None) -> Answer[Nest]:
    return Answer(None, {} if value is None else {"time": value}, {"time": bound}, status)


def test_figures_by_hand() -> None:
    assert (over(30, 20), over(None, 20), over(30, None), over(0, 5)) == (1.5, None, None, 0.0)
    assert geomean([]) is None
    assert geomean([2.0, 8.0]) == pytest.approx(4.0)
    assert [shown(cell) for cell in (True, False, 1.23456, 12345, None)] == ["yes", "no", "1.235", "12,345", "-"]
    agreed("same", [5, 5])
    with pytest.raises(RuntimeError, match="optima"):
        agreed("others", [5, 6])
    assert len(distinct_layers("resnet50")) == 24


def test_engines_agree_on_a_value_that_no_bound_is_above() -> None:
    ten, lower = answer("OPTIMAL", 10, 10), answer("FEASIBLE", 10, 8)
    assert _agree([ten, lower], "time")
    assert not _agree([ten, answer("FEASIBLE", 11, 8)], "time")
    assert not _agree([ten, answer("FEASIBLE", 10, 11)], "time")
    assert not _agree([ten, answer("INFEASIBLE", None, None)], "time")
    assert (_gap(ten, "time"), _gap(lower, "time")) == (0.0, pytest.approx(0.2))
    assert _gap(answer("INFEASIBLE", None, None), "time") == 0.0
    assert _gap(answer("NO_SOLUTION_FOUND", None, 8), "time") == _gap(answer("FEASIBLE", 10, None), "time") == 1.0


def test_which_rows_are_run() -> None:
    """A tuple is the arguments of a row; `more` is run where it is asked for alone; empty tables are left out."""
    pairs = Table("pairs", ["a", "b"], [("x", 1), ("y", 2)], lambda name, k: [name, 10 * k], more=[("z", 3)])
    lists = Table("lists", ["k"], ["x", "w"], lambda name: [[name], [name]], several=True, notes=["said"])
    suite = Suite("s", [pairs, lists])

    def rows(only: str = "") -> list[object]:
        return [(one.title, one.rows, list(one.notes)) for one in suite(Silent(), only).sections]

    assert rows() == [
        ("pairs", [["x", 10], ["y", 20]], []), ("lists", [["x"], ["x"], ["w"], ["w"]], ["said"]),
    ]  # fmt: skip
    assert rows("z") == [("pairs", [["z", 30]], [])]
    with pytest.raises(InputError, match="--only q: no row; there are x 1, y 2, z 3, x, w"):
        suite(Silent(), "q")


def test_engines_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 by one engine is 1.2 times the 10 of the others; of none there is no ratio; two optima are a defect."""
    found = {"a": ("OPTIMAL", 10), "b": ("FEASIBLE", 12), "c": ("NO_SOLUTION_FOUND", None), "d": ("OPTIMAL", 10)}

    def plan(*_: object, engine: str, **__: object) -> SimpleNamespace:
        status, value = found[engine]
        objective = None if value is None else SimpleNamespace(value=value)
        return SimpleNamespace(engine=engine, status=status, objective=objective, wall_s=0.5)

    monkeypatch.setattr(report, "solve", plan)
    monkeypatch.setattr(report, "PROBLEMS", {"p": SimpleNamespace(engines=tuple(found))})
    rows = report._compared("p", "net", "chip")
    assert [row[2:] for row in rows] == [
        ["a", "OPTIMAL", 10, 1.0, 0.5], ["b", "FEASIBLE", 12, 1.2, 0.5], ["c", "NO_SOLUTION_FOUND", None, None, 0.5],
        ["d", "OPTIMAL", 10, 1.0, 0.5],
    ]  # fmt: skip
    found["d"] = "OPTIMAL", 11
    with pytest.raises(RuntimeError, match="net on chip: optima"):
        report._compared("p", "net", "chip")
