"""The list of faults is true: every place is in its file once, and its tests are there."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.planted import FAULTS, ROOT, Fault, named

if not (ROOT / "solver").is_dir():
    pytest.skip("no source tree beside the tests", allow_module_level=True)


@pytest.mark.parametrize("file", sorted({fault.file for fault in FAULTS}))
def test_every_place_is_there_once(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    for fault in FAULTS:
        if fault.file == file:
            wrong = fault.planted(text)
            if file.endswith(".py"):
                ast.parse(wrong)  # it fails because of what it says


def test_names_differ_and_tests_are_there() -> None:
    assert not [name for name, number in Counter(fault.name for fault in FAULTS).items() if number > 1]
    assert not [test for fault in FAULTS for test in fault.tests if not (ROOT / test.split("::")[0]).is_file()]


@pytest.mark.parametrize(("text", "new"), [("b", "c"), ("a a", "c"), ("a", "a")])
def test_a_place_that_is_not_there_once_is_refused(text: str, new: str) -> None:
    with pytest.raises(ValueError, match="its place is there"):
        Fault("x", "f.py", "a", new, ()).planted(text)


def test_names_choose_faults() -> None:
    assert list(named([])) == list(FAULTS)
    assert {fault.file for fault in named(["formulations/fusion/linear.py"])} == {"formulations/fusion/linear.py"}
    with pytest.raises(ValueError, match="'nobody'"):
        list(named(["nobody"]))
