"""What is not used is not imported: the light commands, and importing the face, stay light.

Seconds differ by machine, so the tests look at what is imported instead. `instances.late` is the mechanism.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import certile
import solver
from instances.late import Later, late, load
from instances.problems import PROBLEMS as LINES
from solver.cli.main import COMMANDS, main
from solver.problems.registry import PROBLEMS

SOLVERS = ("ortools", "highspy", "pulp", "networkx", "onnx", "onnxruntime", "numba", "deap", "scipy", "pandas")
DRAWING = ("plotly", "matplotlib", "dask", "distributed", "yaml")
#: What only a search needs, and records, tables of rich.
HEAVY = (
    *SOLVERS,
    *DRAWING,
    "numpy",
    "psutil",
    "formulations.problem",
    "hwmodels",
    "solver.plan.plan",
    "solver.problems.problem",
)
RECORDS = ("pydantic", "rich")
#: Only problems that are asked for.
OTHERS = tuple(
    place.format(name) for place in ("formulations.{}", "solver.{}.problem")
    for name in ("mesh", "partial_engine", "mapping", "applications", "banks", "joint", "hybrid", "fusion", "placement",
                 "selection")
)  # fmt: skip

#: What a solve does without: checking, reports.
UNASKED = ("solver.calls.check", "solver.plan.figures", "solver.uses.report", "solver.uses.emit")

#: What is done, one after the other in one process, and what must not have been imported by then.
LIGHT = {
    "import certile": ("import certile", (*HEAVY, *RECORDS, "typer")),
    "import solver": ("import solver", (*HEAVY, *RECORDS, "typer")),
    "--version": ("run('--version')", (*HEAVY, *RECORDS)),
    "--help": ("run('--help')", (*HEAVY, *RECORDS)),
    "list networks --json": ("run('list', 'networks', '--json')", HEAVY),
    "list machines": ("run('list', 'machines')", HEAVY),
    "list": ("run('list')", HEAVY),
    "doctor": ("run('doctor')", (*SOLVERS, *DRAWING, *OTHERS, *UNASKED)),
    "solve --help": ("run('solve', '--help')", (*SOLVERS, *DRAWING, *OTHERS, *UNASKED)),
    "solve": (
        "run('solve', 'lenet5', '-m', 'scratchpad_64k', '-l', 'output', '-j', '1')",
        (*SOLVERS, *DRAWING, *OTHERS, *UNASKED),
    ),
}  # fmt: skip
RUN = """
import json, sys
def run(*args):
    from solver.cli.main import main
    code = main(args)
    assert not code, code
def tell():
    print("\\n@", json.dumps(sorted(sys.modules)))
"""


def modules_after(*codes: str) -> list[set[str]]:
    """What a new Python has imported after each of some pieces of code, whatever they print."""
    program = "\n".join([RUN, *(f"{code}\ntell()" for code in codes)])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300, env=_environment()
    )
    return [set(json.loads(line[1:])) for line in done.stdout.splitlines() if line.startswith("@")]


def _environment() -> dict[str, str]:
    return {**os.environ, "CERTILE_CACHE": "off"}


def test_nothing_heavy_is_imported() -> None:
    """Each step keeps what the steps before it imported, so the lists get no longer."""
    found = modules_after(*(code for code, _ in LIGHT.values()))
    wrong = {
        name: sorted(there & set(heavy))
        for (name, (_, heavy)), there in zip(LIGHT.items(), found, strict=True) if there & set(heavy)
    }  # fmt: skip
    assert wrong == {}
    assert {"solver.calls.solve", "solver.plan.plan", "pydantic", "numpy"} <= found[-1]  # so it sees what is imported


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LIGHT)
def test_nothing_heavy_is_imported_by_a_step_alone(name: str) -> None:
    code, heavy = LIGHT[name]
    (found,) = modules_after(code)
    assert "instances" in found
    assert sorted(found & set(heavy)) == []


# --- the faces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [certile, solver], ids=lambda module: module.__name__)
def test_a_face_offers_what_the_type_checker_sees(module: object) -> None:
    """The imports under TYPE_CHECKING, `__all__` and the table are the same names from the same places."""
    file = Path(getattr(module, "__file__"))  # noqa: B009
    names = {
        alias.name: f"{node.module}:{alias.name}"
        for block in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    later: Later[object] = vars(module)["_later"]
    assert names == {name: later.places[name] for name in later}
    assert sorted(vars(module)["__all__"]) == sorted(names)
    assert set(names) <= set(dir(module))
    for name, place in names.items():
        assert getattr(module, name) is load(place)


def test_a_face_says_what_it_has_not() -> None:
    with pytest.raises(AttributeError, match="module 'certile' has no attribute 'solv'"):
        getattr(certile, "solv")  # noqa: B009
    with pytest.raises(ImportError, match="cannot import name 'solv'"):
        exec("from certile import solv")  # noqa: S102


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", ["", "import solver.calls.solve, solver.calls.check, solver.uses.why.ask", "from solver import solve"]
)
def test_functions_are_not_replaced_by_modules_of_their_names(first: str) -> None:
    """`solver.calls.solve`, `solver.calls.check` and `solver.uses.why` are modules, too, whenever they are imported."""
    code = (
        f"{first}\nimport solver\nfrom solver import solve, check, why\n"
        "import solver.calls.solve, solver.calls.check, solver.uses.why\n"
        "assert all(callable(one) for one in (solve, check, why, solver.solve, solver.check, solver.why))"
    )
    assert "solver.calls.solve" in modules_after(code)[0]


# --- tables ----------------------------------------------------------------------------------------------------------


def test_a_table_loads_what_is_asked_for_once() -> None:
    made: list[str] = []

    def make(name: str, found: object) -> str:
        made.append(name)
        return f"{name}: {found}"

    table = Later({"pi": "math:pi", "none": "nowhere.at_all:x"}, make)
    assert list(table) == ["pi", "none"]
    assert "none" in table
    assert made == []
    assert table["pi"] == table["pi"] == "pi: 3.141592653589793"
    assert made == ["pi"]
    with pytest.raises(ModuleNotFoundError):
        table["none"]
    table["mine"] = "set"
    assert (table["mine"], len(table)) == ("set", 3)
    del table["mine"]
    assert (table.get("mine"), len(table)) == (None, 2)
    assert late("math:hypot")(3, 4) == 5


def test_every_problem_has_the_name_of_its_line() -> None:
    assert {name: problem.name for name, problem in PROBLEMS.items()} == {name: name for name in PROBLEMS}


def test_an_unknown_command_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slove"]) == 2
    assert "No such command 'slove'" in capsys.readouterr().err


def test_every_place_is_there() -> None:
    """The table of commands and that of suites name what exists."""
    from solver.uses.bench import SUITES

    places = [place for place, _ in COMMANDS.values()] + [place for _, place in SUITES.values()]
    places += [f"solver.uses.bench.{name}:SUITE" for name, line in LINES.items() if line.bench]
    for place in places:
        module, _, name = place.partition(":")
        assert hasattr(import_module(module), name), place
