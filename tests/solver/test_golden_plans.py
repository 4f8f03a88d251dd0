"""Plans of all problems are those that were recorded (tests/golden_plans.py), and the comparison sees every change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

import pytest

from solver import Plan, check
from solver.cli.exits import EXIT_CODES
from solver.problems.registry import claims_of
from tests.effort import THOROUGH
from tests.golden_plans import CASES, FOLDER, SOLVERS, Case, Json, differences, golden, main, shown, shown_file

PROBLEMS = tuple(dict.fromkeys(one.problem for one in CASES))
#: By problem the request whose record is edited, and a decision in it.
DECISIONS = {
    "tiling": ("bytes, exhaustive", "schedules.c0.nest[0].step"),
    "slicing": ("time, exhaustive", "schedules.c0.nest[0].over"),
    "homes": ("time", "schedules.c0.homes.W"),
    "banks": ("time, dynamic", "schedules.network.runs[0].tiles[0].bank"),
    "hybrid": ("bytes, dynamic", "schedules.network.groups[0].pieces[0][0].stages[0].tiles[0].bank"),
    "joint": ("bytes, dynamic", "schedules.network.runs[0].residents[0][1][0]"),
    "fusion": ("bytes, dynamic", "schedules.network.runs[0].rows.last"),
    "mapping": ("latency, exhaustive", "schedules.network.at[1]"),
    "applications": ("response, exhaustive", "schedules.network.at[1]"),
    "mesh": ("dram, exhaustive", "schedules.c0.choice.share"),
    "levels": ("time", "schedules.c0.items[0].step"),
    "partial_engine": ("bytes, exhaustive", "schedules.c0.program"),
    "placement": ("bytes, search", "schedules.network.places[0].address"),
    "selection": ("period, search", "schedules.network.choices[0].variant"),
}


def names(one: Case) -> str:
    return f"{one.problem}: {one.name}"


#: The first request of every problem, which is made twice, and some others; all are made at every change that lands.
AGAIN = frozenset(names(next(one for one in CASES if one.problem == problem)) for problem in PROBLEMS)
QUICK = AGAIN | {names(one) for one in CASES if CASES.index(one) % 12 == 0 or shown_file(one)}


@pytest.mark.parametrize("one", [
    pytest.param(one, id=names(one), marks=() if names(one) in QUICK else pytest.mark.slow(1, every=True))
    for one in CASES
])  # fmt: skip
def test_plans_are_as_recorded_and_keep_the_contract(one: Case) -> None:
    """For every problem and engine: what was recorded, and what every plan promises.

    OPTIMAL only if every objective reaches its bound; bounds below values; a plan that check accepts, so that price and
    replay agree; and the same plan for the same request.
    """
    answer = one.solve()
    assert list(differences(golden(one.problem)[one.name], one.record(answer))) == []
    if not isinstance(answer, Plan):
        return
    for claim in claims_of(answer):
        assert (claim.status == "OPTIMAL") == (bool(claim.values) and claim.bounds == claim.values), claim
        pairs = zip(claim.bounds, claim.values, strict=False)
        assert all(bound is None or bound <= value for bound, value in pairs), claim
    assert EXIT_CODES[answer.status] == {"INFEASIBLE": 3, "NO_SOLUTION_FOUND": 4}.get(answer.status, 0)
    report = check(answer)
    assert report.ok, report.problems
    if (path := shown_file(one)) is not None:  # seen: every figure of tables, details and drawings
        assert shown(answer) == path.read_text(encoding="utf-8")
    if names(one) in AGAIN or (THOROUGH and one.options.get("engine") not in SLOW):
        assert decisions(one.solve()) == decisions(answer)


#: Engines that take seconds here; that they repeat themselves is tested with the driver of the solver.
SLOW = frozenset({"milp-cbc", "milp", "ga", "ga-unseeded"})


def decisions(plan: Plan) -> Json:
    """A plan but for seconds."""
    data = json.loads(plan.to_json())
    return {key: _untimed(value) for key, value in data.items() if not key.endswith("_s")}


def _untimed(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _untimed(one) for key, one in value.items() if not key.endswith("_s") and key != "seconds"}
    return [_untimed(one) for one in value] if isinstance(value, list) else value


def test_every_request_has_one_record() -> None:
    assert len({(one.problem, one.name) for one in CASES}) == len(CASES)
    assert sorted(PROBLEMS) == sorted(path.stem for path in FOLDER.glob("*.json"))
    for problem in PROBLEMS:
        assert list(golden(problem)) == [one.name for one in CASES if one.problem == problem]


def leaves(record: Json, where: str = "") -> Iterator[str]:
    """The place of every value, as `differences` writes it."""
    if isinstance(record, dict) and record:
        for key, value in record.items():
            yield from leaves(value, f"{where}.{key}" if where else key)
    elif isinstance(record, list) and record:
        for n, value in enumerate(record):
            yield from leaves(value, f"{where}[{n}]")
    else:
        yield where


def edited(record: Json, place: str) -> Json:
    """A copy of a record with another value at a place."""
    made = copy.deepcopy(record)
    at, steps = made, [step for part in place.split(".") for step in part.replace("[", "\0[").split("\0") if step]
    keys = [int(step[1:-1]) if step.startswith("[") else step for step in steps]
    for key in keys[:-1]:
        at = at[key]
    old = at[keys[-1]]
    at[keys[-1]] = old + 1 if isinstance(old, int) and not isinstance(old, bool) else f"not {old}"
    return made


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_edited_record_is_found(problem: str) -> None:
    """Another status, value, bound or schedule in the record, and no other place, is named."""
    name, decision = DECISIONS[problem]
    found = golden(problem)[name]  # as the request is answered: the first test
    part = next(iter(found["parts"]))
    measure = next(iter(found["parts"][part]["values"]))
    for place in ("status", f"parts.{part}.values.{measure}", f"parts.{part}.bounds.{measure}", decision):
        (line,) = differences(edited(golden(problem)[name], place), found)
        assert line.startswith(f"{place}: ")


@pytest.mark.parametrize("problem", ["tiling", "banks", "mapping", "mesh", "partial_engine"])
def test_nothing_recorded_is_overlooked(problem: str) -> None:
    record = golden(problem)[DECISIONS[problem][0]]
    for place in leaves(record):
        (line,) = differences(edited(record, place), record)
        assert line.startswith(f"{place}: ")


def test_what_is_gone_or_new_is_a_difference() -> None:
    assert list(differences({"bound": 1}, {})) == ["bound: is gone"]
    assert list(differences({}, {"bound": 1})) == ["bound: is new"]
    assert list(differences([1], [1, 2])) == [": [1] was recorded, [1, 2] is found"]
    assert list(differences({"tasks": []}, {"tasks": None})) == ["tasks: [] was recorded, None is found"]


def test_every_problem_has_an_optimum_a_heuristic_a_pin_and_a_conflict() -> None:
    for problem in PROBLEMS:
        records = [record for record in golden(problem).values() if isinstance(record, dict)]
        assert {"OPTIMAL", "FEASIBLE", "INFEASIBLE"} <= {record.get("status") for record in records}, problem
        assert any({"pins", "waiting", "first_layer"} & set(one.options) for one in CASES if one.problem == problem)


def test_of_solvers_only_figures_are_recorded() -> None:
    for one in CASES:
        if one.options.get("engine") in SOLVERS:
            record = golden(one.problem)[one.name]
            assert set(record) == {"status", "parts", "conflicts"}


def test_the_script_names_differences(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    one = next(one for one in CASES if one.problem == "partial_engine")
    monkeypatch.setattr("tests.golden_plans.CASES", (one,))
    assert main([]) == 0
    record = edited(golden("partial_engine")[one.name], "status")
    monkeypatch.setattr("tests.golden_plans.golden", lambda _: {one.name: record})
    assert main([]) == 1
    assert "partial_engine, bytes, exhaustive: status: " in capsys.readouterr().out
