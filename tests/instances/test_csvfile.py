"""CSV: what is no CSV is one line, and no name that is written is a formula."""

from __future__ import annotations

import pytest

from instances.errors import InputError
from instances.jsonfile import csv_rows, csv_text
from instances.network.buffers import Buffer, Buffers, buffers_from_csv, buffers_to_csv


@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("-a", "'-a"), ("@SUM(A1)", "'@SUM(A1)"),
     ("\tx", "'\tx"), ("=", "="), ("-", "-"), ("-1", "-1"), ("+1.5e-3", "+1.5e-3"), ("-.5", "-.5"), ("a=b", "a=b"),
     ("'=x", "'=x"), ("-1-2", "'-1-2"), ("", "")],
)  # fmt: skip
def test_names_are_no_formulas(cell: str, written: str) -> None:
    assert csv_text([[cell, 1]]) == f"{written},1\n"


@pytest.mark.parametrize("cell", ["=1+1", "+a", "-a", "@x", "\tx", "-1", "x", "=", 'a"b', "a,b", "=a,b"])
def test_names_come_back(cell: str) -> None:
    assert csv_rows([csv_text([[cell, "y"]])], "here") == [[cell, "y"]]


def test_numbers_and_nothing() -> None:
    assert csv_text([[-1, None, -0.5, True]]) == "-1,,-0.5,True\n"


@pytest.mark.parametrize("text", ["a,b\n" + "x" * 200_000, "a\x00b,c"])
def test_what_is_no_csv_is_one_line(text: str) -> None:
    if "\x00" in text:
        assert csv_rows([text], "here")  # a reader of files refuses the character before
        return
    with pytest.raises(InputError, match=r"^here: not CSV: field larger"):
        csv_rows(text.splitlines(), "here")


def test_buffers_with_such_names_come_back() -> None:
    buffers = tuple(Buffer(name=name, lower=0, upper=2, size=4) for name in ("=a", "-b", "+1", "c"))
    text = buffers_to_csv(Buffers(name="x", buffers=buffers))
    assert text.splitlines()[1:] == ["'=a,0,2,4", "'-b,0,2,4", "+1,0,2,4", "c,0,2,4"]
    assert buffers_from_csv(text, "x").buffers == buffers
