"""The only list of problems is `instances.problems`: no other collection, chain of cases or text names two of them.

A list elsewhere is a second one, which somebody who adds a problem would have to find. Of names that are also sections
of a machine file (banks, mesh) a third has to be there: fields of machines are listed too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from instances.machine.machine import Machine
from instances.problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "formulations").is_dir():
    pytest.skip("no source tree beside the tests", allow_module_level=True)

REGISTRY = "instances/problems.py"
#: Where code is that serves all problems; tests name what they try.
CODE = ("certile.py", "instances", "hwmodels", "formulations", "solver", "docs/_ext", "docs/conf.py")
SHARED = ("tests/adversary/registry.py", "tests/adversary/run.py", "tests/adversary/__main__.py")
BUILD = ("Makefile", "pyproject.toml", ".pre-commit-config.yaml", ".ci/run")
LISTS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BoolOp, ast.Compare, ast.Match)
_NAME = rf"\b(?:{'|'.join(PROBLEMS)})\b"
NAME = re.compile(_NAME)
ENUMERATION = re.compile(rf"{_NAME}(?:,|,? and|,? or|/|\|) *{_NAME}")


def texts(node: ast.AST, depth: int) -> set[str]:
    """The names of problems that are a text by themselves, in what a node holds, what that holds, so many times."""
    if isinstance(node, ast.Constant):
        return {node.value} & set(PROBLEMS) if isinstance(node.value, str) else set()
    inner = [texts(child, depth - 1) for child in ast.iter_child_nodes(node)] if depth else []
    return {name for names in inner for name in names}


def chain(node: ast.If | ast.IfExp) -> Iterator[ast.expr]:
    """The conditions of an ``if`` and of what follows it by ``elif``, or in a conditional expression by ``else``."""
    yield node.test
    after = node.orelse if isinstance(node.orelse, list) else [node.orelse]
    if len(after) == 1 and isinstance(after[0], ast.If | ast.IfExp):
        yield from chain(after[0])


def lists(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """Line and names of every list of problems in a file."""
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, LISTS):
            names = texts(node, 3 if isinstance(node, ast.Match) else 2)  # of an element, or an argument in it
        elif isinstance(node, ast.If | ast.IfExp):
            names = {name for test in chain(node) for name in texts(test, 2)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            names = {name for found in ENUMERATION.finditer(node.value) for name in re.findall(_NAME, found.group())}
        else:
            continue
        if len(names) > 1 and not names <= set(Machine.model_fields):
            yield getattr(node, "lineno", 1), names


def said(file: str, found: Iterator[tuple[int, set[str]]]) -> list[str]:
    return [f"{file}:{line} lists {', '.join(sorted(names))}" for line, names in sorted(found, key=lambda one: one[0])]


def files() -> list[str]:
    """Every Python file that is looked at."""
    found = (path for name in CODE for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py")))
    return [*sorted(str(path.relative_to(ROOT)) for path in found if path.is_file()), *SHARED]


def test_code_lists_no_problems() -> None:
    everything = files()
    assert REGISTRY in everything
    wrong = [
        line
        for name in everything
        if name != REGISTRY and len(NAME.findall(text := (ROOT / name).read_text(encoding="utf-8"))) > 1
        for line in said(name, lists(ast.parse(text)))
    ]
    assert not wrong, "\n".join(wrong)


def test_build_files_list_no_problems() -> None:
    wrong = [
        f"{name}:{number} lists {', '.join(sorted(set(names)))}"
        for name in BUILD
        if (ROOT / name).is_file()
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if len(set(names := re.findall(rf"(?<![\w.-]){_NAME}(?![\w-])", line))) > 1
    ]
    assert not wrong, "\n".join(wrong)


PLANTED = {
    "a tuple": 'KNOWN = ("tiling", "joint")',
    "a set of cases": 'CASES = {Case("mesh", 1), Case("fusion", 2)}',
    "keys of a dict": 'MAKERS = {"banks": 1, "hybrid": 2}',
    "a comparison": 'if name in ("joint", "fusion"):\n    pass',
    "either of two": 'able = name == "joint" or name == "fusion"',
    "a chain": 'if name == "joint":\n    a = 1\nelif name == "fusion":\n    a = 2',
    "a conditional expression": 'a = 1 if name == "joint" else 2 if name == "fusion" else 3',
    "match": 'match name:\n    case "joint":\n        a = 1\n    case "fusion":\n        a = 2',
    "a text": 'option = Option(help="tiling, slicing or joint")',
}
HARMLESS = {
    "one": 'a = ("joint", "bytes")',
    "fields of a machine": 'SECTIONS = {"banks": Banks, "mesh": Mesh}',
    "a docstring": '"""Of problems tiling, slicing and joint."""',
    "two questions": 'a, b = solve(problem="joint"), 1\nc = solve(problem="fusion")',
}  # fmt: skip


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED)
def test_a_list_is_found(text: str) -> None:
    assert said("x.py", lists(ast.parse(text)))[0].startswith("x.py:1 lists ")


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_list(text: str) -> None:
    assert not said("x.py", lists(ast.parse(text)))
