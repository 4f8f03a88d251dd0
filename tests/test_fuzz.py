"""Changed files of every kind: one line and a documented exit code, never a traceback (tests/fuzz.py).

What was found this way and mended has a case by hand below.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from instances.jsonfile import LARGEST_FILE, bundled
from tests.effort import in_turn, thinned
from tests.fuzz import KINDS, Said, beside, run, said
from tests.golden_plans import CASES

#: Kinds whose commands take no search, or hardly any; the others are slow.
QUICK = ("front", "table", "spec", "sweep", "library")
MANY = int(os.environ.get("CERTILE_FUZZ", "30"))


def test_changed_files_are_told_in_a_line() -> None:
    assert run(20, seed=1, kinds=QUICK) == []


@pytest.mark.slow(40)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_many_changed_files_are_told_in_a_line(kind: str) -> None:
    assert run(MANY, seed=2, kinds=(kind,)) == []


# ---- plans ----------------------------------------------------------------------------------------------------------


@cache
def _plan(problem: str, name: str) -> str:
    (case,) = (one for one in CASES if (one.problem, one.name) == (problem, name))
    return str(case.solve().to_json())


COMMANDS = ("show", "why --time-limit 1", "report", "report -o OUT.html", "emit-c -o OUT.c", "export-mapping -f text")


def _refused(path: Path, data: Any, commands: Sequence[str] = COMMANDS) -> None:
    """No command that uses a plan takes this one; `check` names what is wrong, or it cannot be read either."""
    path.write_text(json.dumps(data))
    for command in commands:
        first, *others = command.replace("OUT", str(path)).split()
        answer = said([first, str(path), *others])
        assert (answer.code, answer.fault) == (2, ""), (command, answer)
        assert str(path) in answer.err
    judged = said(["check", str(path)])
    assert judged.code in (1, 2), judged
    assert not judged.fault
    assert not list(path.parent.glob(f"{path.name}.*"))


@pytest.mark.parametrize(("change", "command"), in_turn([
    (change,) for change in [
        {"objectives": []}, {"objectives": ["bytes", "bytes"]}, {"bound": 10**9}, {"bound": 0}, {"status": "FEASIBLE"},
        {"status": "INFEASIBLE"}, {"gap": 0.5}, {"engine": "oracle"}, {"engine": "greedy"},
        {"network_digest": "sha256:0"}, {"machine_digest": "sha256:0"},
        {"measures": None}, {"layers": []}, {"unit": "ticks"}, {"problem": "joint"},
        {"format": "certile-plan/2"}, {"machine": "other"}, {"pins": ["T_Q=1"]}, {"x": 1},
        {"bound": 1e308}, {"wall_s": -1}, {"network": "a\x1bb"}, {"engine": "\u202eoracle"}, {"replay": None},
    ]
], COMMANDS), ids=str)  # fmt: skip
def test_an_edited_plan_is_refused(change: dict[str, Any], command: str, tmp_path: Path) -> None:
    _refused(tmp_path / "plan.json", {**json.loads(_plan("tiling", "bytes, exhaustive")), **change}, [command])


@pytest.mark.parametrize("name", ["W", "1", "", "cpu9", "gpu", "cpu1"])
def test_renamed_processors(name: str, tmp_path: Path) -> None:
    data = json.loads(_plan("mapping", "period, exhaustive"))
    data["parts"][0]["figures"]["processors"][0]["name"] = name
    _refused(tmp_path / "plan.json", data)


@pytest.mark.parametrize("name", ["W", "1", "", "npu"])
def test_tasks_of_no_processor(name: str, tmp_path: Path) -> None:
    data = json.loads(_plan("mapping", "period, exhaustive"))
    data["parts"][0]["schedule"]["tasks"][0]["processor"] = name
    _refused(tmp_path / "plan.json", data)


# ---- machines -------------------------------------------------------------------------------------------------------


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [] if isinstance(value, bool) or not isinstance(value, int | float) else [path]
    return found + [place for key, item in items for place in _places(item, (*path, key))]


@pytest.mark.parametrize("number", ["1e308", "Infinity", "1" * 400, "true"])
def test_numbers_of_a_board_that_are_none(number: str, tmp_path: Path) -> None:
    """Every number of a board in turn, `explain` reads them all: one line, or a plan where it is no number of use."""
    beside(tmp_path)
    data = json.loads(bundled("machines", ".json")["galaxy_s9"].read_bytes())
    for place in thinned(_places(data["processors"]), 4):
        machine = json.loads(json.dumps(data))
        at = machine["processors"]
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = "@@"
        file = tmp_path / "machine.json"
        file.write_text(json.dumps(machine).replace('"@@"', number))
        answer = said(["explain", "lenet5", "-m", str(file), "--problem", "mapping"])
        assert (answer.code, answer.fault) == (2, ""), (place, answer)


# ---- sweeps ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> bytes:
    """A file of results."""
    return KINDS["sweep"]()["a.sqlite"][0]


def _asked(path: Path) -> Said:
    return said(["sweep", "plan", str(path), "-w", "ocm_bytes=512"])


@pytest.mark.parametrize(
    "packed",
    [zlib.compress(b" " * (LARGEST_FILE + 1)), zlib.compress(b"[" * 10**6), zlib.compress(b"{}"),
     zlib.compress(b"\xff"), zlib.compress(b"{}")[:-1], b"", b"x",
     zlib.compress(b'{"layers": 1}'), zlib.compress(b"1e400")],
    ids=len,
)  # fmt: skip
def test_packed_plans_are_bounded(packed: bytes, results: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(results)
    data = sqlite3.connect(path)
    data.execute("UPDATE plans SET dictionary = NULL, data = ?", (packed,))
    data.commit()
    data.close()
    answer = _asked(path)
    assert (answer.code, answer.fault) == (2, ""), answer


@pytest.mark.parametrize(
    "change", ["value = 1", "bound = 1", "status = 'INFEASIBLE'", "status = 'FEASIBLE'", "value = 'x'"]
)
def test_a_row_and_its_plan_say_the_same(change: str, results: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(results)
    data = sqlite3.connect(path)
    data.execute(f"UPDATE tasks SET {change}")
    data.commit()
    data.close()
    answer = _asked(path)
    assert (answer.code, answer.fault) == (2, ""), answer
