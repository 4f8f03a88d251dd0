"""The adversary of C code: what it does with a compiler and without, and that it finds a fault."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from solver.uses.emit import strips
from tests.adversary import c_code, fusion
from tests.adversary.__main__ import main
from tests.adversary.c_code import TESTER, Case
from tests.adversary.run import selftest
from tests.effort import tries

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


@pytest.mark.slow(1)
def test_without_a_compiler_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:  # fmt: skip
    monkeypatch.setattr(shutil, "which", lambda _: None)
    command = ["--problem", "c", "--problem", "mapping", "--minutes", "0.01", "-o", str(tmp_path)]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.err == "certile: selftest: c is left out: there is no make, or no C compiler\n"
    assert said.out.startswith("mapping ")
