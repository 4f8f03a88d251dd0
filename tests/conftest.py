"""What every test may use: the `--engines` option, the hypothesis profiles, and long tests first."""

from __future__ import annotations

import importlib
import os
import signal
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import typer.main
from hypothesis import settings

from tests.effort import THOROUGH, tries

ENGINES = "cp-sat,milp,exhaustive"
#: Cases of a slow test that are run, and the most seconds of one (`slow(SECONDS)`); a thorough run has all of them.
FEW, LONGEST_S = 1, 4

# Processes of pytest-xdist are told of 80 columns; tables of tests are as wide as those that go to a pipe.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COLUMNS", None)

# Commands are built once in a process, not for each call of `main`: that is nine tenths of one that is refused.
typer.main.get_command = cache(typer.main.get_command)

# A test that solves means to solve.
os.environ["CERTILE_CACHE"] = "off"

# Solving is slow now and then, which is no fault; in CI a run must be repeatable.
settings.register_profile("certile", deadline=None, print_blob=True, max_examples=tries(25, 100))
settings.register_profile("certile-ci", settings.get_profile("certile"), derandomize=True, database=None)
settings.load_profile("certile-ci" if os.environ.get("CI") else "certile")


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> None:
    """Python's own handler of Ctrl-C for every test.

    A solver that an earlier test asked by itself may have left the system's behind, which ends the process; and a
    run in the background of a shell ignores the signal.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_processes_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tests run side by side already, a solve takes more processes only if the test says how many."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        monkeypatch.setattr("solver.search.workers.processors", lambda: 1)
        monkeypatch.setattr("solver.search.deciding.processors", lambda: 1)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The misbehaving engines, registered under their names."""
    monkeypatch.syspath_prepend(str(Path(__file__).with_name("data") / "fakes"))
    module = importlib.import_module("fake_engines")
    module.install(monkeypatch.setitem, monkeypatch.setattr)
    return module


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--engines cp-sat,milp`: the engines that tests with an `engine` argument run with."""
    parser.addoption(
        "--engines",
        default=ENGINES,
        metavar="NAME,NAME",
        help=f"engines for every test that takes an `engine` (default: {ENGINES})",
    )


def _seconds(item: pytest.Item) -> float:
    """Return how long it says that it takes."""
    return float(max((mark.args[0] for mark in item.iter_markers("slow") if mark.args), default=0))


def _every(item: pytest.Item) -> bool:
    """Whether it says that it is run however long it takes, in all of its cases."""
    return any(mark.kwargs.get("every") for mark in item.iter_markers("slow"))


def _more_cases(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases beyond a few of a test, which are spread over all: of slow ones, and as ``few(N)`` says."""
    cases: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        slow, few = item.get_closest_marker("slow"), item.get_closest_marker("few")
        if few or (slow and not _every(item)):
            cases.setdefault((item.nodeid.split("[")[0], few.args[0] if few else FEW), []).append(item)
    return {item for (_, most), found in cases.items() for item in {*found} - {*found[:: -(-len(found) // most)]}}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a thorough run has; the longest of those marked ``slow(SECONDS)`` first.

    So none of the long ones is left to one process at the end.
    """
    if not THOROUGH:
        left = {item for item in items if item.get_closest_marker("thorough")}
        if "::" not in "".join(config.args) and not config.option.keyword:  # who names a test means all of its cases
            left |= {item for item in items if _seconds(item) > LONGEST_S and not _every(item)}
            left |= _more_cases([item for item in items if item not in left])
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    items.sort(key=_seconds, reverse=True)


def _parametrised(metafunc: pytest.Metafunc) -> bool:
    """Whether the test says itself which engines it wants."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if "engine" in ([name.strip() for name in names.split(",")] if isinstance(names, str) else names):
            return True
    return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes an `engine` once per engine asked for."""
    if "engine" in metafunc.fixturenames and not _parametrised(metafunc):
        names = [name.strip() for name in metafunc.config.getoption("--engines").split(",") if name.strip()]
        metafunc.parametrize("engine", names)
