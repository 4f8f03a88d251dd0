"""One clock and one watch: limits and signals end every search alike, and leave a plan with a bound.

Clocks are fake where a time is asserted; signals are real, sent to `certile solve` in a process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import psutil
import pytest

from formulations.clock import ENDLESS, Clock, TimeUp
from formulations.mapping.latency import floor
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.network import Network
from solver import check, solve
from solver.ask.question import Question
from solver.ask.watch import NO_LIMIT, SIGNALS, Stopped, Watch, free_bytes, used_bytes
from solver.plan.plan import Plan
from solver.problems.mapping import MappingProblem

ROOT = Path(__file__).resolve().parents[2]


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)  # the handler runs between two instructions of the main thread


def _wait() -> None:
    """Compute until something is raised."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(0.001)


# --- the clock -------------------------------------------------------------------------------------------------------


def test_a_clock_ticks_until_it_is_time() -> None:
    now = Now()
    clock = Clock.of(10, now)
    clock.tick()
    assert (clock.left, clock.remaining, clock.over) == (10, 10, False)
    now.time += 9.99
    assert clock.left == pytest.approx(0.1), "a solver takes 0 for no limit"
    now.time += 0.01
    assert (clock.remaining, clock.over) == (0, True)
    with pytest.raises(TimeUp):
        clock.tick()


def test_shares_are_of_what_is_left() -> None:
    now = Now()
    clock = Clock.of(10, now)
    assert clock.half().remaining == 5
    now.time += 4
    assert clock.share(3).remaining == 2
    assert clock.later(1).remaining == 7
    now.time += 20
    assert clock.share(3).remaining == 0


def test_without_a_limit_it_is_never_time() -> None:
    assert (ENDLESS.left, ENDLESS.remaining, ENDLESS.over) == (None, inf, False)
    assert ENDLESS.half() is ENDLESS.share(3) is ENDLESS
    assert Clock.of(None).over is False


# --- the watch: signals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_armed(number: signal.Signals) -> None:
    with Watch() as watch, pytest.raises(Stopped) as stopped, watch.armed():
        _press(number)
    assert stopped.value.reason == watch.reason == number.name
    assert isinstance(stopped.value, KeyboardInterrupt)


def test_a_signal_waits_for_the_helpers_of_numpy() -> None:
    """NumPy turns what is raised in them into an error of its own: "no common dtype" for a signal."""
    helper = {"__name__": "numpy._core._internal", "press": _press, "after": list[int]()}
    exec("def helped():\n press(); after.append(1)", helper)  # noqa: S102 - code of a module of that name
    with Watch() as watch, pytest.raises(Stopped), watch.armed():
        _both(helper["helped"], _wait)
    assert helper["after"] == [1]


class _Collected:
    """Something that presses Ctrl-C when it goes."""

    def __del__(self) -> None:
        _press()


def test_a_signal_is_not_lost_with_the_garbage() -> None:
    with Watch() as watch, pytest.raises(Stopped), watch.armed():
        _both(_Collected, _wait)
    assert watch.reason == "SIGINT"


def _both(*works: Any) -> None:
    for work in works:
        work()


def _renamed() -> None:
    try:
        _press()
    except KeyboardInterrupt:
        raise TypeError("incompatible function arguments") from None


def test_a_stop_that_a_library_renames_is_a_stop(caplog: pytest.LogCaptureFixture) -> None:
    with Watch() as watch, pytest.raises(Stopped), watch.armed():
        _renamed()
    assert watch.reason == "SIGINT"
    assert "stopped by SIGINT, and then by TypeError: incompatible function arguments" in caplog.text


def test_an_error_before_any_stop_is_a_defect() -> None:
    with Watch() as watch, pytest.raises(TypeError), watch.armed():
        raise TypeError("a defect")


def test_elsewhere_it_is_remembered_until_something_is_armed() -> None:
    with Watch() as watch:
        _press()
        assert watch.reason == "SIGINT"
        with pytest.raises(Stopped), watch.armed():
            pytest.fail("nothing begins")


def test_the_first_reason_stays() -> None:
    """An exit by a limit is no exit by a signal, and the other way round."""
    watch = Watch()
    watch.stop("memory")
    watch.stop("SIGINT")
    assert (watch.reason, watch.signalled) == ("memory", False)
    with Watch() as outer:
        outer.stop("time limit")
        _press()
        assert (outer.reason, outer.signalled) == ("time limit", False)
    with Watch() as heard:
        _press(signal.SIGTERM)
        heard.heard({"interrupted": True})
        heard.stop("time limit")
        assert (heard.reason, heard.signalled) == ("SIGTERM", True)


def test_a_second_signal_ends_everything() -> None:
    with Watch() as watch:
        _press()
        with pytest.raises(Stopped):
            _press(signal.SIGTERM)
        assert watch.urgent
        with pytest.raises(Stopped):
            watch.run(lambda: 1, lambda: 2)


def test_after_one_there_is_something_instead() -> None:
    with Watch() as watch:
        assert watch.run(lambda: 1, lambda: 2) == 1
        assert watch.run(lambda: _press(), lambda: None) is None
        assert watch.run(lambda: 1, lambda: 2) == 2


def test_native_code_that_resets_the_handler_does_no_harm() -> None:
    """CP-SAT may leave SIG_DFL behind: the next Ctrl-C would end the process."""
    with Watch() as watch:
        with watch.armed():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _press()
        assert watch.reason == "SIGINT"


def test_handlers_of_the_program_stay() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with Watch() as watch, watch.armed():
        _press()
        assert watch.reason is None
    assert heard == [signal.SIGINT]


def test_other_threads_change_nothing() -> None:
    seen: list[object] = []

    def run() -> None:
        with Watch(0.5, slack_s=0.0) as watch, watch.armed():  # the limit comes when it is armed
            end = time.monotonic() + 30
            while watch.reason is None and time.monotonic() < end:
                time.sleep(0.01)
            seen.extend([signal.getsignal(signal.SIGINT), watch.reason])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler, "time limit"]


def test_a_watch_inside_another_tells_it_of_signals_only() -> None:
    with Watch() as outer:
        with Watch(0.0, slack_s=0.0) as inner, pytest.raises(Stopped), inner.armed():
            _wait()
        assert (inner.reason, outer.reason) == ("time limit", None)
        with outer.part(None) as inner, pytest.raises(Stopped), inner.armed():
            _press()
        assert (inner.reason, outer.reason) == ("SIGINT", "SIGINT")
        with outer.part(None) as inner, pytest.raises(Stopped), inner.armed():
            pytest.fail("nothing begins")


# --- the watch: limits -----------------------------------------------------------------------------------------------


def test_the_time_limit_has_a_slack_for_those_who_heed_it() -> None:
    now = Now()
    with Watch(10, NO_LIMIT, slack_s=1, now=now) as watch:
        now.time += 10.5
        time.sleep(0.25)  # it looks several times
        assert (watch.clock.over, watch.reason) == (True, None)
        now.time += 1
        with pytest.raises(Stopped) as stopped, watch.armed():
            _wait()
    assert stopped.value.reason == "time limit"


def test_who_does_not_end_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.ask.watch._AGAIN_S", 0.1)
    times = 0
    with Watch(0.0, slack_s=0.0) as watch, watch.armed():
        while times < 3:
            try:
                _wait()
            except Stopped:
                times += 1


def test_what_a_watch_sent_twice_is_no_second_signal() -> None:
    """The first of both is heard late, on a busy machine, and leaves nothing for the other."""
    with Watch(0.0, slack_s=0.0) as watch:
        with pytest.raises(Stopped), watch.armed():
            _wait()
        for _ in range(2):
            signal.raise_signal(signal.SIGURG)
        assert (watch.reason, watch.urgent) == ("time limit", False)
    signal.raise_signal(signal.SIGURG)  # late, with the handlers of before


def test_too_much_memory_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    with Watch(memory_bytes=5 << 20, used=lambda: 6 << 20) as watch, pytest.raises(Stopped), watch.armed():
        _wait()
    assert watch.reason == "memory"
    assert [record.getMessage() for record in caplog.records] == [
        "memory limit of 5 MiB: the search ends, its best is kept"
    ]


def test_a_memory_error_is_the_same() -> None:
    with Watch() as watch, pytest.raises(Stopped), watch.armed():
        raise MemoryError
    assert watch.reason == "memory"


def test_by_default_most_of_what_is_free_may_be_taken() -> None:
    before = used_bytes()
    assert before < Watch().memory_bytes < before + free_bytes()


def test_imports_are_not_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_module.py").write_text("import time\nfor _ in range(60):\n    time.sleep(0.01)\nDONE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported() -> None:
        importlib.import_module("slow_module")
        _wait()

    with Watch(0.2, slack_s=0.0) as watch:
        watch.run(imported, lambda: None)
    assert watch.reason == "time limit"
    assert sys.modules["slow_module"].DONE


# --- every problem ---------------------------------------------------------------------------------------------------

SOLVES = {
    "tiling": ("resnet50", "-m", "scratchpad_24k", "-j", "2"),
    "tiling cp-sat": ("resnet50", "-m", "scratchpad_24k", "-e", "cp-sat", "-j", "1"),
    "tiling milp-cbc": ("resnet50", "-m", "scratchpad_24k", "-e", "milp-cbc", "-j", "1", "--no-bounding"),
    "slicing": ("inception_v3", "-m", "nmp", "-j", "1"),
    "banks": ("resnet50", "-m", "midap"),
    "joint": ("inception_v3", "-m", "scratchpad_768k", "--problem", "joint", "-e", "milp"),
    "mapping": ("inception_v3", "-m", "galaxy_s9"),
    "latency": ("inception_v3", "-m", "galaxy_s9", "--objective", "latency"),
    "applications": ("inception_v3@900ms,resnet50@900ms", "-m", "hikey970"),
    "mesh": ("resnet50", "-m", "vectormesh_128"),
    "engine": ("inception_v3", "-m", "partial_cnn_16", "-e", "cp-sat"),
}


def _started(arguments: tuple[str, ...], out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "solver", "solve", *arguments, "-o", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _heeds(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has been told what to do at SIGTERM: before, while it imports, a signal ends it."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return True
    caught = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def _busy(process: subprocess.Popen[bytes], cpu_s: float) -> list[psutil.Process]:
    """Wait until a process and its workers have computed so long after it heeds signals; return them."""
    before = None
    while True:
        assert process.poll() is None, process.communicate()
        whole = psutil.Process(process.pid)
        family = [whole, *whole.children(recursive=True)]
        spent = 0.0
        for one in family:
            try:
                spent += sum(one.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
        if before is None and _heeds(process):
            before = spent
        if before is not None and spent > before + cpu_s:
            return family
        time.sleep(0.05)


def _gone(family: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(family, timeout=20)
    return not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow(150)
@pytest.mark.parametrize(
    ("name", "number"),
    [
        (name, number)
        for n, name in enumerate(SOLVES)
        for number in (signal.SIGINT, signal.SIGTERM)
        if "CERTILE_SIGNALS" in os.environ or number == (signal.SIGINT, signal.SIGTERM)[n % 2]
    ],
)  # every search gets one of the two signals, with CERTILE_SIGNALS set both: minutes
def test_a_signal_leaves_a_plan(name: str, number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    process = _started(SOLVES[name], out)
    family = _busy(process, 2.0)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 4), errors
    assert b"Traceback" not in errors
    plan = Plan.load(out)
    if process.returncode == 0:
        assert plan.bound is not None
        assert check(plan).ok
    assert _gone(family)


@pytest.mark.slow(4)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    process = _started(SOLVES["tiling"], tmp_path / "plan.json")
    family = _busy(process, 1.0)
    process.send_signal(number)
    if number == signal.SIGTERM:  # twice: at once
        time.sleep(0.2)
        process.send_signal(number)
    process.communicate(timeout=60)
    assert _gone(family)


# --- limits in every problem -----------------------------------------------------------------------------------------


def test_with_no_time_at_all_there_is_a_plan_with_a_bound() -> None:
    plan = solve("lenet5", "scratchpad_24k", time_limit_s=0.001)
    assert plan.status in ("FEASIBLE", "OPTIMAL")
    assert plan.bound is not None
    assert all(layer.bound is not None for layer in plan.layers)
    assert check(plan).ok


@pytest.mark.slow(5)
def test_with_no_time_at_all_a_joint_plan_goes_through_dram() -> None:
    plan = solve("lenet5", "scratchpad_768k", problem="joint", time_limit_s=0.001)
    assert plan.bound <= plan.objective.value
    assert check(plan).ok


def _tall() -> Network:
    shape = (1, 1, 2**31 - 1, 1)
    return Network.model_validate(
        {
            "name": "tall",
            "operators": [
                {"op": "input", "name": "in", "shape": shape},
                {"op": "conv", "name": "x", "inputs": ("in",), "shape": shape, "filters": 1, "kernel": (1, 1)},
            ],
        }
    )


@pytest.mark.slow(2)
def test_dimensions_that_no_list_holds_are_refused(tmp_path: Path) -> None:
    """In a process that is given up after a while: nobody knows what would be tried in their place."""
    path = tmp_path / "tall.json"
    path.write_text(json.dumps({**_tall().model_dump(mode="json"), "format": "certile-network/1"}))
    machines = ["scratchpad_64k", "nmp", "midap", "vectormesh_128", "partial_cnn_16", "scratchpad_768k --problem joint"]
    asked = [["solve", str(path), "-m", *machine.split()] for machine in machines]
    text = f"from solver.cli.main import main\nprint([main(one) for one in {asked!r}])"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.strip() == str([2] * len(asked))
    assert done.stderr.count("dimension r is 2,147,483,647") == len(asked)
    assert len(done.stderr.splitlines()) <= 3 * len(asked)


def test_a_long_layer_is_bad_input_in_python() -> None:
    with pytest.raises(InputError, match="at most 1,048,576 is counted"):
        solve(_tall(), "scratchpad_64k")


@pytest.mark.parametrize("aim", ["period", "energy", "latency"])
@pytest.mark.parametrize("pins", [["cpu_config=1,1,1,1"], ["cpu_config=2,2"], ["cpu_config=4", "split=on"]])
def test_floors_of_mappings_are_below_what_is_best(aim: str, pins: list[str]) -> None:
    best = solve("lenet5", "galaxy_s9", problem="mapping", objective=aim, pins=pins)
    question = Question(load_network("lenet5"), load_machine("galaxy_s9"), (aim,), "mapping", pins=tuple(pins))
    (part,) = MappingProblem().parts(question)
    (instance,) = part.instances.values()
    assert 0 < floor(instance, aim) <= best.objective.value
