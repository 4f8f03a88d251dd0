"""The driver of the adversary: cases by seed, finds shrunk, written, read again; exit codes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.cli.exits import DISAGREEMENT
from solver.uses.emit import strips
from tests.adversary import base, c_code, fusion, registry
from tests.adversary.__main__ import main
from tests.adversary.base import Disagreement
from tests.adversary.c_code import TESTER, Case
from tests.adversary.run import FORMAT, MOST_FINDS, chosen, load_case, selftest
from tests.effort import tries


class Numbers:
    """Cases are numbers up to 1,000; those from `wrong` on disagree; smaller ones are one or a half less."""

    name = "numbers"

    def __init__(self, wrong: int) -> None:
        self.wrong, self.seen = wrong, list[int]()

    def case(self, rng: random.Random) -> int:
        return rng.randint(1, 1000)

    def run(self, case: object, rng: random.Random) -> list[Disagreement]:
        assert isinstance(case, int)
        self.seen.append(case)
        wrong = case >= self.wrong
        return [Disagreement(self.name, f"{case} is {self.wrong} or more", self.to_json(case))] if wrong else []

    def smaller(self, case: object) -> Iterator[int]:
        assert isinstance(case, int)
        yield from (case // 2, case - 1)

    def to_json(self, case: object) -> dict[str, object]:
        return {"number": case}

    def from_json(self, data: Mapping[str, object]) -> int:
        assert isinstance(data["number"], int)
        return data["number"]


def test_cases_follow_from_the_seed() -> None:
    runs = []
    for seed in (1, 1, 2):
        tester = Numbers(wrong=2000)
        report = selftest({"numbers": tester}, seed=seed, minutes=None, most=20)
        assert (report.instances, report.finds) == ({"numbers": 20}, [])
        runs.append(tester.seen)
    assert runs[0] == runs[1] != runs[2]
    assert len(set(runs[0])) > 10


def test_a_find_is_shrunk_and_written(tmp_path: Path) -> None:
    """1,000 numbers, those from 137 on disagree: halves and steps of one end at 137."""
    tester = Numbers(wrong=137)
    report = selftest({"numbers": tester}, minutes=None, most=3, folder=tmp_path / "finds")
    assert report.finds
    assert {find.what for find in report.finds} == {"137 is 137 or more"}
    assert sorted(find.file for find in report.finds) == sorted(map(str, (tmp_path / "finds").iterdir()))
    written = json.loads(Path(report.finds[0].file).read_text())
    assert written["format"] == FORMAT
    assert {"certile", "versions", "seed"} < set(written)
    assert (written["problem"], written["instance"]) == ("numbers", {"number": 137})
    again, case, _ = load_case(report.finds[0].file, {"numbers": tester})
    assert again.run(case, random.Random(0))


def test_a_problem_with_many_finds_is_left_alone() -> None:
    tester, other = Numbers(wrong=1), Numbers(wrong=2000)
    other.name = "others"
    report = selftest({"numbers": tester, "others": other}, minutes=None, most=30, shrink_s=0)
    assert report.instances == {"numbers": MOST_FINDS, "others": 30}


def test_time_ends_a_run() -> None:
    report = selftest({"numbers": Numbers(wrong=2000)}, minutes=0.002)
    assert report.instances["numbers"] > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "object"),
        ('{"format": "certile/1"}', "format 'certile/1'"),
        (f'{{"format": "{FORMAT}", "problem": "x"}}', "problem 'x'"),
        (f'{{"format": "{FORMAT}", "problem": "numbers"}}', "'instance' must be an object"),
    ],
)
def test_files_that_are_no_finds_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        load_case(str(file), {"numbers": Numbers(wrong=1)})


def test_problems_are_chosen_by_name() -> None:
    testers: dict[str, base.Tester] = {"numbers": Numbers(1), "more": Numbers(2)}
    assert list(chosen((), testers)) == ["numbers", "more"]
    assert list(chosen(("more",), testers)) == ["more"]
    with pytest.raises(InputError, match="unknown problem 'less': expected one of numbers, more"):
        chosen(("less",), testers)


# ---- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Numbers:
    tester = Numbers(wrong=2000)
    monkeypatch.setattr(registry, "TESTERS", {"numbers": tester})
    return tester


def test_no_find_is_exit_code_0(numbers: Numbers, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--minutes", "0.002", "-o", str(tmp_path / "finds")]) == 0
    assert "no disagreement" in capsys.readouterr().out
    assert not (tmp_path / "finds").exists()


def test_a_find_is_exit_code_5(numbers: Numbers, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    numbers.wrong = 137
    folder = tmp_path / "finds"
    assert main(["--minutes", "0.002", "--json", "--seed", "3", "-o", str(folder)]) == DISAGREEMENT == 7
    said = json.loads(capsys.readouterr().out)
    assert said["seed"] == 3
    file = said["finds"][0]["file"]
    assert main(["--case", file]) == 7
    assert "137 is 137 or more" in capsys.readouterr().out
    numbers.wrong = 138
    assert main(["--case", file]) == 0


@pytest.mark.parametrize("bad", [["--minutes", "0"], ["--minutes", "nan"], ["--problem", "x"], ["--case", "no.json"]])
def test_bad_options_are_exit_code_2(bad: list[str], numbers: Numbers, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(bad) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_bad_input(numbers: Numbers, tmp_path: Path) -> None:
    numbers.wrong = 1
    (tmp_path / "file").write_text("")
    assert main(["--minutes", "0.002", "-o", str(tmp_path / "file" / "finds")]) == 2


# ---- The adversary of C code: what it does with a compiler and without, and that it finds a fault --------------------

TWO = fusion.Case(
    6, 4, 2, (("conv", (0,), 4), ("point", (1,), 3)), banks=8, bank=64, pins=()
)  # two layers, which run strip by strip


@pytest.mark.slow(2)
def test_no_disagreement() -> None:
    report = selftest({"c": TESTER}, seed=1, minutes=None, most=tries(1, 25), shrink_s=0)
    assert (report.instances, report.finds) == ({"c": tries(1, 25)}, [])


@pytest.mark.slow(4)
def test_a_wrong_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of groups are one too large: the program says so, and the find is read again."""
    case = Case(TWO, "fusion", "HWC", "OHWI", 4, ("fuse=n1..n2",))
    assert TESTER.run(case, random.Random(0)) == []
    monkeypatch.setattr(strips.GroupFile, "_final", lambda *_: "sum + 1")
    (found,) = TESTER.run(case, random.Random(0))
    assert "results differ from the naive loop nest" in found.what
    again = TESTER.from_json(json.loads(json.dumps(found.instance)))
    assert again == case
    assert replace(case, layout="CHW") in list(TESTER.smaller(case))


def test_c_that_does_not_build_is_found() -> None:
    assert "make ends with 2" in c_code.fault_of({"Makefile": "all:\n\tcc no.c\n"})


def test_without_a_compiler_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:  # fmt: skip
    monkeypatch.setattr(shutil, "which", lambda _: None)
    command = ["--problem", "c", "--problem", "mapping", "--minutes", "0.01", "-o", str(tmp_path)]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.err == "certile: selftest: c is left out: there is no make, or no C compiler\n"
    assert said.out.startswith("mapping ")
