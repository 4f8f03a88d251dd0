"""YAML of other tools: bounded in size, depth and number, and nothing is read beyond the file's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
from instances.foreign.yamlfile import parse_yaml, read_yaml


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
