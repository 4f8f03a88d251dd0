"""Where files are written, and what is never replaced. No real device is touched: all of it in a temporary folder."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from instances.errors import InputError, OutputError
from instances.foreign.yamlfile import parse_yaml, read_yaml
from instances.jsonfile import (
    check_texts,
    csv_rows,
    csv_text,
    destination,
    escaped,
    obeyed,
    parse_json,
    write_atomically,
)
from instances.load import load_machine, load_network
from instances.measured import load_profile
from instances.network.buffers import Buffer, Buffers, buffers_from_csv, buffers_to_csv, load_buffers
from instances.network.variants import load_variants
from solver.ask.options import check_writable


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "plan.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(Path("far") / "plan.json")
    check_writable(link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["far", "link.json", "plan.json"], "no temporary file is left"


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "made.json")
    check_writable(link)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "made.json").read_text() == "new"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for act in (check_writable, lambda path: write_atomically(path, "new")):
        with pytest.raises(InputError, match="cannot be written: Too many levels"):
            act(tmp_path / "a")


@pytest.mark.parametrize("linked", [False, True])
def test_a_fifo_is_written_straight_to(tmp_path: Path, linked: bool) -> None:
    fifo = path = tmp_path / "fifo"
    os.mkfifo(fifo)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(fifo)
    check_writable(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    write_atomically(path, "a plan")
    reader.join(timeout=20)
    assert read == ["a plan"]
    assert stat.S_ISFIFO(os.lstat(fifo).st_mode), "it was not replaced"


def test_sockets_folders_and_block_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")  # relative: such paths are short
        with pytest.raises(InputError, match="output socket: cannot be written: is a socket"):
            check_writable("socket")
        assert stat.S_ISSOCK(os.lstat("socket").st_mode)
    with pytest.raises(InputError, match="is a directory"):
        write_atomically(tmp_path, "new")
    regular = tmp_path / "pretends"
    regular.write_text("disk")
    block = os.stat_result((stat.S_IFBLK | 0o600, *os.stat(regular)[1:]))
    monkeypatch.setattr(os, "stat", lambda *_, **__: block)
    with pytest.raises(InputError, match="is a block device"):
        destination("pretends")
    monkeypatch.undo()
    assert regular.read_text() == "disk"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"plan.json: cannot be written: No space left on device"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


# ---- CSV: what is no CSV is one line, and no name that is written is a formula ---------------------------------------


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


# ---- YAML of other tools: bounded in size, depth and number, and nothing is read beyond the file's own folder --------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a file beside it, and one below it."""
    folder = tmp_path / "home"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("a: 1\n")
    (folder / "below" / "part.yaml").write_text("a: 2\n")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "up").symlink_to(tmp_path)
    (folder / "inside.yaml").symlink_to(folder / "below" / "part.yaml")
    return folder


def _including(home: Path, name: str, times: int = 1) -> Path:
    path = home / "main.yaml"
    path.write_text(f"{{{{include_text('{name}')}}}}\n" * times)
    return path


@pytest.mark.parametrize("name", ["below/part.yaml", "./below/part.yaml", "below/../below/part.yaml", "inside.yaml"])
def test_files_below_are_included(home: Path, name: str) -> None:
    assert read_yaml(_including(home, name)) == {"a": 2}


@pytest.mark.parametrize(
    "name",
    ["../secret.yaml", "link.yaml", "up/secret.yaml", "/etc/passwd", "below/../../secret.yaml", "..", "a\x01b"],
)
def test_nothing_else_is(home: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"only files below its own folder|printable") as caught:
        read_yaml(_including(home, name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["none.yaml", "below", "main.yaml/x"])
def test_what_cannot_be_included_is_one_line(home: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"main\.yaml includes it"):
        read_yaml(_including(home, name))


def test_includes_are_not_nested(home: Path) -> None:
    """A file that includes itself holds its own text once, where the line is no YAML."""
    with pytest.raises(InputError, match="not plain YAML"):
        read_yaml(_including(home, "main.yaml"))


def test_a_bomb_of_includes_is_refused(home: Path) -> None:
    (home / "large.yaml").write_text("# " + "x" * 2**20 + "\n")
    with pytest.raises(InputError, match="at most"):
        read_yaml(_including(home, "large.yaml", 5))
    with pytest.raises(InputError, match="includes more than 50 files"):
        read_yaml(_including(home, "below/part.yaml", 60_000))


def _laughs(levels: int, list_of: str) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} {list_of % ', '.join([f'*a{n - 1}'] * 10)}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("levels", [6, 9, 80])
def test_aliases_that_multiply_themselves(levels: int) -> None:
    """10 ** levels values are more than 200,000; five levels are 111,110 and one value a level more."""
    with pytest.raises(InputError, match=r"more than 200,000 values|nested too deeply"):
        parse_yaml(_laughs(levels, "[%s]"), "here")
    assert parse_yaml(_laughs(4, "[%s]"), "here")


@pytest.mark.slow(1)
def test_merge_keys_that_multiply_themselves() -> None:
    """Each has the keys of the one before and one more: 800 of them have 320,400."""
    lines = ["a0: &a0 {k: 1}", *(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}" for n in range(1, 800))]
    with pytest.raises(InputError, match="merge keys repeat"):
        parse_yaml("\n".join(lines), "here")
    many = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(500))}}}\nb: {{<<: [{', '.join(['*a'] * 5000)}]}}"
    assert len(parse_yaml(many, "here")["b"]) == 500


@pytest.mark.parametrize("text", ["a: 1\na: 2", "{a: 1, a: 1}", "a: {b: 1, 'b': 2}", "1: 1\n1: 2"])
def test_keys_that_stand_twice(text: str) -> None:
    with pytest.raises(InputError, match="stands twice"):
        parse_yaml(text, "here")


@pytest.mark.few(2)
@pytest.mark.parametrize("text", ["&a [*a]", "a: &b {c: *b}", "[" * 5000, "{a: " * 5000, "- " * 3000 + "x"])
def test_endless_and_deep_data(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a: 2026-01-01", "a: 2026-99-99", ".nan", "a: [.inf]", "a: -.inf", "a: 1.0e+999", "a: 9007199254740993",
     "a: 0x" + "f" * 40, "a: !!binary aGk=", "a: !!set {x, y}", "2026-01-01: 1", "? [1, 2]\n: 3", "a: !!python/name:os",
     'a: "\\x1b[31m"', 'a: "\\u202e"', '"\\e": 1', "a: !!int x", "a: !!float x", "<<: 3", "a: 1:2:3:4:5:6:7:8:9:1:2:3"],
)  # fmt: skip
def test_what_is_no_plain_data(text: str) -> None:
    with pytest.raises(InputError, match=r"^here: ") as caught:
        parse_yaml(text, "here")
    assert str(caught.value).isprintable()


# ---- Control characters and marks of direction: refused in files of every kind, wherever they stand ------------------

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
