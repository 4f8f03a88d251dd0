"""Control characters and marks of direction: refused in files of every kind, wherever they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.errors import InputError
from instances.jsonfile import check_texts, escaped, obeyed, parse_json
from instances.load import load_machine, load_network
from instances.measured import load_profile
from instances.network.buffers import load_buffers
from instances.network.variants import load_variants

BAD = ("\x00", "\x07", "\x1b", "\x7f", "\x85", "\xad", "\u200b", "\u200f", "\u2028", "\u202e", "\u2066", "\ufeff", "\r")
FINE = ("a b", "é", "日本", "a\u0301", "\u00a0", "😀", "µs", "x/y:0")


@pytest.mark.parametrize("text", BAD)
def test_what_a_terminal_obeys(text: str) -> None:
    assert obeyed(f"a{text}b") == text
    assert not obeyed(f"a{text}b", text)
    assert escaped(f"a{text}b").isascii()


@pytest.mark.parametrize("text", FINE)
def test_what_it_shows(text: str) -> None:
    assert not obeyed(text)


@pytest.mark.parametrize("bad", [*BAD, "\n", "\t"])
@pytest.mark.parametrize("make", [lambda t: {"name": t}, lambda t: {t: 1}, lambda t: {"a": [{"b": [t]}]}])
def test_names_in_json_are_refused_with_their_place(make: object, bad: str) -> None:
    data = make(f"x{bad}y")
    with pytest.raises(InputError, match="printable") as caught:
        parse_json(json.dumps(data), "here")
    assert str(caught.value).isprintable()
    with pytest.raises(InputError, match="printable"):
        parse_json(json.dumps(data, ensure_ascii=False).encode(), "here") if bad >= " " else check_texts(data, "here")


def test_lines_of_texts_for_people_may_break() -> None:
    text = json.dumps({"description": "a\nb", "sources": {"x": "c\td"}})
    assert parse_json(text, "here") == json.loads(text)
    with pytest.raises(InputError, match=r"here: sources\.x: a name holds printable characters only, not \\x1b"):
        parse_json(json.dumps({"sources": {"x": "\x1b[0m"}}), "here")


def test_every_reader(tmp_path: Path) -> None:
    machine = load_machine("scratchpad_24k").model_dump(mode="json")
    network = {"format": "certile-network/1", "name": "a\u202eb", "operators": []}
    files = {
        "machine.json": (json.dumps({**machine, "name": "a\u202eb"}), load_machine),
        "network.json": (json.dumps(network), load_network),
        "buffers.csv": ("id,lower,upper,size\na\u202eb,0,1,4\n", load_buffers),
        "times.csv": ("task,1\nc\x1b1,5\n", load_profile),
        "variants.csv": ("layer,variant,stage,time\nc\u202e1,base,cpu,1\n", load_variants),
    }
    for name, (text, load) in files.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="printable") as caught:
            load(str(path))
        assert str(caught.value).isprintable(), name
