"""Native code that can be stopped, and the progress bar."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from solver import solve
from solver.ask.progress import Bar, Silent, interruptible, progress_bar


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


# --- native code -----------------------------------------------------------------------------------------------------


def test_native_code_is_stopped() -> None:
    stop = threading.Event()
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    assert interruptible(lambda: stop.wait(30), stop.set) == (True, True)


def test_native_code_that_ends_by_itself() -> None:
    assert interruptible(lambda: 7, lambda: None) == (7, False)


def test_an_error_of_native_code_is_raised() -> None:
    def fails() -> int:
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        interruptible(fails, lambda: None)


def test_native_code_that_does_not_stop_is_left_behind() -> None:
    end = threading.Event()

    def press_twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.1, press_twice).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: end.wait(30), lambda: None)
    end.set()


def test_in_other_threads_it_is_a_plain_call() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(interruptible(threading.current_thread, lambda: None)))
    thread.start()
    thread.join()
    assert found == [(thread, False)]


# --- the bar ---------------------------------------------------------------------------------------------------------


def test_a_bar_for_people_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress_bar(), Silent)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(progress_bar(), Bar)


@pytest.mark.parametrize("kind", [Silent, Bar])
def test_bars_write_nothing_to_stdout(kind: type[Silent] | type[Bar], capsys: pytest.CaptureFixture[str]) -> None:
    bar = kind()
    bar.advance("too early")
    bar.begin(2, "net")
    bar.advance("a")
    bar.begin(2, "again")
    bar.advance("b")
    bar.end()
    bar.end()
    assert capsys.readouterr().out == ""


# --- whoever solves ---------------------------------------------------------------------------------------------------


class Listener(Silent):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.total, self.notes, self.open = 0, list[str](), False

    def begin(self, total: int, what: str) -> None:
        assert what == "lenet5"
        self.total, self.open = total, True

    def advance(self, note: str) -> None:
        self.notes.append(note)

    def end(self) -> None:
        self.open = False


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("machine", "parts"),
    [("scratchpad_64k", 5), ("nmp", 5), ("vectormesh_128", 5), ("midap", 1), ("hikey970", 1), ("galaxy_s9", 1)],
)
def test_every_problem_says_how_far_it_is(machine: str, parts: int) -> None:
    listener = Listener()
    engine = {"hikey970": "heft", "galaxy_s9": "clustering"}.get(machine, "auto")
    solve("lenet5", machine, engine=engine, progress=listener)
    assert (listener.total, len(listener.notes), listener.open) == (parts, parts, False)


@pytest.mark.slow(4)
def test_processes_give_the_same_plan_of_a_mesh() -> None:
    clocks: Any = {"wall_s": True, "parts": {"__all__": {"wall_s"}}}
    one, two = (solve("lenet5", "vectormesh_128", jobs=jobs).model_dump(exclude=clocks) for jobs in (1, 2))
    assert one == two
