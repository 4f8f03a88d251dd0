"""The worker's side of the pipe, in this process; whole worker processes are tested in test_solve.py."""

from __future__ import annotations

import importlib
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from formulations.clock import Clock
from formulations.pins import Pins
from formulations.tiling.part import NestPart
from formulations.tiling.problem import NESTS
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver.ask.watch import Watch, used_bytes
from solver.problems.tiling import job_of
from solver.search import workers
from solver.search.deciding import Job
from solver.search.workers import GRACE_S, answer, run, run_here, run_in_processes, share_of

FAKES = Path(__file__).parents[1] / "data" / "fakes"
MACHINE = Machine(
    name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
    transfer=Transfer(call_ticks=10, byte_ticks=1),
)  # fmt: skip


def _job(fakes: ModuleType, engine: str, name: str = "tiny") -> Job:
    layer = Layer.conv(name, channels=2, filters=2, size=(4, 4))
    part = NestPart(layer, MACHINE, NESTS["tiling"].build, Pins())
    return replace(job_of(NESTS["tiling"], part, ("time",), "exhaustive"), search=fakes.ENGINES[engine])


def test_jobs_and_answers_survive_the_pipe(fakes: ModuleType) -> None:
    job = pickle.loads(pickle.dumps(_job(fakes, "honest")))  # noqa: S301 - our own bytes
    kind, found = answer(job, None, Watch())
    assert kind == "done"
    assert found.bound == 108
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own bytes


def test_an_error_becomes_an_answer(fakes: ModuleType) -> None:
    kind, error = answer(_job(fakes, "raises"), None, Watch())
    assert kind == "error"
    assert isinstance(error, ZeroDivisionError)
    assert "layer tiny" in error.__notes__[0]


def test_an_error_that_cannot_be_pickled_is_described(fakes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(Exception):  # local classes do not survive pickling
        pass

    def raises(*_: object) -> None:
        raise Local("odd")

    monkeypatch.setattr(Job, "decide", raises)
    kind, error = answer(_job(fakes, "honest"), None, Watch())
    assert kind == "error"
    assert isinstance(error, RuntimeError)
    assert str(error) == "Local: odd"


def test_after_ctrl_c_plans_are_quick(fakes: ModuleType) -> None:
    watch = Watch()
    watch.stop("SIGINT")
    _, found = answer(_job(fakes, "honest"), None, watch)
    assert (found.status, found.stats["stopped"]) == ("FEASIBLE", "SIGINT")


def test_a_second_ctrl_c_during_verification_costs_that_layer_only(
    fakes: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("solver.search.deciding")
    real = module.price_and_replay

    def pressed_twice(part: NestPart, *rest: object) -> object:
        if part.name == "hard":
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return real(part, *rest)

    monkeypatch.setattr(module, "price_and_replay", pressed_twice)
    jobs = {i: _job(fakes, "honest", name) for i, name in enumerate(("a", "hard", "c"))}
    with Watch() as watch:
        outcome = run_here(jobs, watch, lambda index, found: None)
    assert outcome.stopped
    assert list(outcome.answers) == [0]


def test_one_ctrl_c_during_verification_loses_nothing(fakes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("solver.search.deciding")
    real = module.price_and_replay

    def pressed(part: NestPart, *rest: object) -> object:
        if part.name == "a":
            signal.raise_signal(signal.SIGINT)
        return real(part, *rest)

    monkeypatch.setattr(module, "price_and_replay", pressed)
    jobs = {i: _job(fakes, "honest", name) for i, name in enumerate(("a", "b"))}
    with Watch() as watch:
        outcome = run_here(jobs, watch, lambda index, found: None)
    assert outcome.stopped
    assert [a.status for a in outcome.answers.values()] == ["OPTIMAL", "FEASIBLE"]


def test_shares_of_time() -> None:
    def clock(seconds: float | None) -> Clock:
        return Clock.of(seconds, lambda: 0.0)

    assert share_of(clock(None), 10, 1) is None
    for waiting, number, expected in ((10, 1, 100), (10, 2, 200), (1, 1, 1000), (1, 4, 1000), (0, 1, 1000)):
        assert share_of(clock(1000), waiting, number) == expected
    assert share_of(clock(0), 1, 1) == 0


def test_when_time_is_up_layers_have_quick_plans_for_a_while(fakes: ModuleType) -> None:
    jobs = {i: _job(fakes, "honest", name) for i, name in enumerate(("a", "b"))}
    now = [0.0]
    watch = Watch(1.0, now=lambda: now[0])
    now[0] = 2.0
    outcome = run_here(jobs, watch, lambda index, found: None)
    assert [a.stats["stopped"] for a in outcome.answers.values()] == ["time limit", "time limit"]
    assert [a.status for a in outcome.answers.values()] == ["FEASIBLE", "FEASIBLE"]
    now[0] = 2.0 + GRACE_S
    assert run_here(jobs, watch, lambda index, found: None).answers == {}


@dataclass(frozen=True)
class _Told:
    """What comes of a job, and where."""

    where: str
    note: str = ""

    def noted(self, note: str) -> _Told:
        return replace(self, note=note)


@dataclass(frozen=True)
class _Named:
    """A job that is done at once, here in no time; workers do with it what stands in `said`, one after the other."""

    name: str
    said: tuple[str, ...]

    def decide(self, time_limit_s: float | None, watch: Watch) -> _Told:
        assert time_limit_s == 0.0
        return _Told("here")


class _Worker:
    """A worker without a process."""

    asked: ClassVar[list[tuple[Any, ...]]] = []
    told = threading.Event()
    press: Callable[[], None]
    """What happens while a job waits for `interrupt`."""

    def wait(self) -> None:
        """It is ready."""

    def ask(self, task: tuple[Any, ...]) -> tuple[str, object]:
        job = task[0]
        said = job.said[sum(one[0] == job.name for one in self.asked)]
        self.asked.append((job.name, *task[1:]))
        if said == "dies":
            raise EOFError("ended with code -9")
        if said == "waits":
            type(self).press()
            assert self.told.wait(10)
        return ("error", ZeroDivisionError(job.name)) if said == "fails" else ("done", _Told("there"))

    def interrupt(self) -> None:
        self.told.set()

    def end(self) -> None:
        """Nothing runs."""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[_Worker]:
    monkeypatch.setattr(workers, "WorkerProcess", _Worker)
    _Worker.asked.clear()
    _Worker.told.clear()
    return _Worker


def _jobs(**said: str) -> dict[int, Any]:
    return {number: _Named(name, tuple(text.split())) for number, (name, text) in enumerate(said.items())}


def test_what_kills_workers_is_done_here(worker: type[_Worker], caplog: pytest.LogCaptureFixture) -> None:
    """Once may be by chance: then another worker has it. Of 90 seconds each has an equal share of what is left."""
    jobs, done = _jobs(a="done", b="dies done", c="dies dies", d="done"), list[int]()
    with Watch(90.0, now=lambda: 0.0, memory_bytes=used_bytes() + (1 << 30)) as watch:
        outcome = run_in_processes(jobs, 2, watch, lambda index, _: done.append(index))
    died = _Told("here", "ended with code -9")
    assert outcome.answers == {0: _Told("there"), 1: _Told("there"), 2: died, 3: _Told("there")}
    assert (sorted(done), outcome.stopped) == ([0, 1, 2, 3], False)
    assert "b: ended with code -9, it is run again" in caplog.text
    assert caplog.text.count("c: ended with code -9") == 2
    assert Counter(name for name, *_ in worker.asked) == {"a": 1, "b": 2, "c": 2, "d": 1}
    first, second = (next(task for name, *task in worker.asked if name == one) for one in "ab")
    assert (first[:2], second[:2]) == ([45.0, 90.0], [60.0, 90.0])  # two of four, two of three at a time
    assert 0 < first[2] <= 1 << 29  # half of what may be taken


def test_a_defect_in_a_worker_is_raised_here(worker: type[_Worker]) -> None:
    with Watch() as watch, pytest.raises(ZeroDivisionError, match="b"):
        run_in_processes(_jobs(a="done", b="fails"), 2, watch, lambda *_: None)


@pytest.mark.parametrize("reason", ["SIGINT", "memory"])
def test_workers_are_told_to_stop_and_hand_in_what_they_have(reason: str, worker: type[_Worker]) -> None:
    """What has not begun is done here; a limit of time is each worker's own."""
    with Watch() as watch:
        worker.press = staticmethod(partial(watch.stop, reason))
        outcome = run_in_processes(_jobs(a="waits", b="done"), 1, watch, lambda *_: None)
    assert outcome.answers[0] == _Told("there")
    assert outcome.answers[1] == _Told("here")
    assert outcome.stopped


@pytest.mark.slow(3)
def test_the_layer_of_a_killed_worker_is_run_again(
    fakes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FAKE_SIGN", str(tmp_path / "killed"))
    jobs = {i: _job(fakes, "killed_once", name) for i, name in enumerate(("a", "hard", "c"))}
    with Watch() as watch:
        outcome = run_in_processes(jobs, 2, watch, lambda index, found: None)
    assert (tmp_path / "killed").exists()
    assert {i: a.status for i, a in outcome.answers.items()} == dict.fromkeys(range(3), "OPTIMAL")
    assert "layer hard: worker process ended with code -9, it is run again" in caplog.text


@pytest.mark.slow(4)
def test_processes_are_put_off_until_they_pay(fakes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody says how many: what the first seconds leave goes to one process for each processor."""
    seen: list[tuple[list[int], int]] = []

    def processes(jobs: Mapping[int, Job], count: int, *rest: object) -> object:
        seen.append((list(jobs), count))
        return run_in_processes(jobs, count, *rest)

    monkeypatch.setattr("solver.search.workers.processors", lambda: 2)
    monkeypatch.setattr("solver.search.workers.run_in_processes", processes)
    jobs = {i: _job(fakes, "honest", name) for i, name in enumerate(("a", "b", "c"))}
    for seconds, left in ((60.0, []), (0.0, [([0, 1, 2], 2)])):
        monkeypatch.setattr("solver.search.workers._HERE_S", seconds)
        with Watch() as watch:
            outcome = run(jobs, 0, watch, lambda index, found: None)
        assert {i: found.status for i, found in outcome.answers.items()} == dict.fromkeys(range(3), "OPTIMAL")
        assert seen == left


class _Late:
    """A job whose search was cut short, by no signal."""

    name, interrupted = "late", True

    def decide(self, time_limit_s: float | None, watch: Watch) -> _Late:
        return self

    def noted(self, note: str) -> _Late:
        return self


def test_a_job_that_the_time_cut_short_stops_no_other() -> None:
    with Watch(60.0) as watch:
        outcome = run_here({0: _Late(), 1: _Late()}, watch, lambda index, found: None)
    assert (list(outcome.answers), outcome.stopped) == ([0, 1], False)
