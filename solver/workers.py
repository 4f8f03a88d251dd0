"""Runs jobs, here one after the other or side by side in worker processes, until done, out of time or interrupted.

A worker process is a fresh interpreter that reads pickled jobs from stdin and writes pickled answers to a private
copy of stdout: nothing of the caller's program is imported again (no ``if __name__ == "__main__"`` is needed), and
solvers that print cannot disturb the answers. A worker ends itself when its stdin closes, so none outlives us.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from solver.progress import Interrupts
from solver.tiling.job import Answer, Job, decide, unanswered

__all__ = ["Clock", "OnDone", "Outcome", "run_here", "run_in_processes", "worker_main"]

logger = logging.getLogger(__name__)

#: Seconds after the time limit or Ctrl-C in which running jobs may still verify and return what they found, and those
#: that have not begun take their first pass, so that there is some plan.
GRACE_S = 10.0
#: How often a job is given to a worker before it counts as what kills workers.
_TRIES = 2
_POLL_S = 0.1
_BOOT = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from solver.workers import worker_main; worker_main(sys.stdin.buffer)"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

OnDone = Callable[[int, Answer], None]


@dataclass(frozen=True)
class Clock:
    """The time limit of a whole call."""

    deadline: float | None = None

    @classmethod
    def of(cls, time_limit_s: float | None) -> Clock:
        """Start the clock."""
        return cls(None if time_limit_s is None else time.monotonic() + time_limit_s)

    def share(self, waiting: int, workers: int) -> float | None:
        """Return the seconds for a job that starts now while `waiting` jobs (it included) have not: an equal share.

        What a job leaves over goes to those after it. None without a limit; 0 when time is up.
        """
        if self.deadline is None:
            return None
        left = max(0.0, self.deadline - time.monotonic())
        return left * min(1.0, workers / max(1, waiting))

    @property
    def over(self) -> bool:
        """Whether nothing more may begin: time is up, and so is the grace for first passes."""
        return self.deadline is not None and time.monotonic() > self.deadline + GRACE_S


@dataclass
class Outcome:
    """What came of a batch of jobs: answers and shares of time by index, and whether Ctrl-C stopped it."""

    answers: dict[int, Answer] = field(default_factory=dict)
    shares_s: dict[int, float] = field(default_factory=dict)
    stopped: bool = False


def run_here(
    jobs: Mapping[int, Job], clock: Clock, interrupts: Interrupts, on_done: OnDone, seconds: float = math.inf
) -> Outcome:
    """Run jobs one after the other in this process, until `seconds` have passed."""
    outcome, start = Outcome(), time.monotonic()
    for done, (index, job) in enumerate(jobs.items()):
        if clock.over or time.monotonic() - start > seconds:
            break
        share = clock.share(len(jobs) - done, 1)
        outcome.shares_s[index] = share or 0.0
        try:
            answer = decide(job, share, interrupts)
        except KeyboardInterrupt:  # the second one, during verification: this layer is lost, the others are not
            outcome.stopped = True
            break
        outcome.answers[index] = answer
        on_done(index, answer)
        if answer.interrupted:
            outcome.stopped = True
            break
    return outcome


class _Process:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        # A session of its own: the terminal's Ctrl-C reaches only us, and we pass it on once.
        # One process per processor is enough: no threads inside.
        single = {name: os.environ.get(name, "1") for name in _THREADS}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True, env={**os.environ, **single},
        )  # fmt: skip
        self._ready = False
        self._send([os.path.abspath(p) for p in sys.path])

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None  # Popen was given a pipe
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def ask(self, job: Job, share: float | None) -> tuple[str, object]:
        """Send a job and wait for its answer; raises EOFError if the process dies."""
        try:
            if not self._ready:
                self._receive()
                self._ready = True
            self._send((job, share))
            kind, value = self._receive()
        except (EOFError, OSError, pickle.UnpicklingError):
            raise EOFError(f"worker process ended with code {self._process.wait()}") from None
        return kind, value

    def _receive(self) -> tuple[str, object]:
        assert self._process.stdout is not None
        kind, value = pickle.load(self._process.stdout)  # noqa: S301 - our own child wrote it
        return str(kind), value

    def interrupt(self) -> None:
        """Pass Ctrl-C on; a process that has not set its handler yet has nothing to lose."""
        if self._ready and os.name == "posix":
            self._process.send_signal(signal.SIGINT)
        else:
            self._process.kill()

    def end(self) -> None:
        """End the process at once and collect it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Crew:
    """Threads that each feed one worker process from a common list."""

    def __init__(self, jobs: Mapping[int, Job], count: int, clock: Clock) -> None:
        self.results: queue.Queue[tuple[int, str, object]] = queue.Queue()
        self.shares_s: dict[int, float] = {}
        self._jobs = dict(jobs)
        self._waiting = list(jobs)
        self._deaths: Counter[int] = Counter()
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = self._stopped = False
        self._processes: list[_Process] = []
        self._threads = [threading.Thread(target=self._feed, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _next(self) -> tuple[int, float | None] | None:
        with self._lock:
            if self._closed or not self._waiting or self._clock.over:
                return None
            share = self._clock.share(len(self._waiting), self._count)
            index = self._waiting.pop(0)
            self.shares_s[index] = share or 0.0
            return index, share

    def _start(self) -> _Process | None:
        with self._lock:
            if self._closed:
                return None
            process = _Process()
            self._processes.append(process)
            return process

    def _feed(self) -> None:
        process: _Process | None = None
        while (task := self._next()) is not None:
            index, share = task
            process = process or self._start()
            if process is None:
                break
            try:
                kind, value = process.ask(self._jobs[index], share)
            except EOFError as error:
                kind, value, process = self._died(index), str(error), None
            except Exception as error:  # noqa: BLE001 - a job that cannot be sent is the caller's to see
                kind, value = "error", error
            self.results.put((index, kind, value))
        self.results.put((-1, "idle", None))

    def _died(self, index: int) -> str:
        """A worker was killed (by the kernel, say, for want of memory): its job is run again behind all others."""
        with self._lock:
            self._deaths[index] += 1
            if self._closed or self._stopped or self._deaths[index] >= _TRIES:
                return "died"
            self._waiting.append(index)
            return "again"

    @property
    def idle(self) -> bool:
        """Whether all threads have ended."""
        return not any(t.is_alive() for t in self._threads)

    def stop(self) -> None:
        """Start nothing more and pass Ctrl-C on to what runs."""
        with self._lock:
            self._stopped = True
            self._waiting.clear()
        for process in self._processes:
            process.interrupt()

    def end(self) -> None:
        """End all processes and threads."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
        for process in self._processes:
            process.end()
        for thread in self._threads:
            thread.join(timeout=GRACE_S)


def run_in_processes(
    jobs: Mapping[int, Job], count: int, clock: Clock, interrupts: Interrupts, on_done: OnDone
) -> Outcome:
    """Run jobs in `count` worker processes.

    After Ctrl-C running jobs have `GRACE_S` seconds to return their best; a second Ctrl-C does not wait. The job of a
    worker that dies (out of memory, say) is run again by another one; if that dies too the layer stays unanswered, with
    a note in its stats. So does one whose worker does not answer in time.
    """
    outcome = Outcome()
    crew = _Crew(jobs, count, clock)
    try:
        _collect(crew, jobs, clock, interrupts, outcome, on_done)
    except KeyboardInterrupt:  # the second one
        outcome.stopped = True
    finally:
        crew.end()
        outcome.shares_s.update(crew.shares_s)
    for index in crew.shares_s.keys() - outcome.answers.keys() if not outcome.stopped else ():
        note = f"no answer within {GRACE_S:g} s after the time limit"
        _accept(outcome, jobs, index, "died", note, on_done)
    return outcome


def _collect(
    crew: _Crew, jobs: Mapping[int, Job], clock: Clock, interrupts: Interrupts, outcome: Outcome, on_done: OnDone
) -> None:
    """Take answers until there are no more to come."""
    last = None if clock.deadline is None else clock.deadline + GRACE_S
    while True:
        try:
            index, kind, value = crew.results.get(timeout=_POLL_S)
        except queue.Empty:
            if crew.idle and crew.results.empty():
                return
        except KeyboardInterrupt:
            if outcome.stopped:
                return
            interrupts.pressed = True
        else:
            _accept(outcome, jobs, index, kind, value, on_done)
        if interrupts.pressed and not outcome.stopped:
            outcome.stopped = True
            crew.stop()
            last = time.monotonic() + GRACE_S
        if last is not None and time.monotonic() > last:
            return


def _accept(outcome: Outcome, jobs: Mapping[int, Job], index: int, kind: str, value: object, on_done: OnDone) -> None:
    if kind == "error" and isinstance(value, BaseException):
        raise value
    if kind == "again" and not outcome.stopped:
        logger.warning("layer %s: %s, it is run again", jobs[index].layer.name, value)
    if kind == "died" and not outcome.stopped:
        logger.warning("layer %s: %s", jobs[index].layer.name, value)
        value = Answer(unanswered(jobs[index].layer, note=str(value)), "", interrupted=False)
    if isinstance(value, Answer):
        outcome.answers[index] = value
        on_done(index, value)


def worker_main(stream: BinaryIO) -> None:
    """Answer jobs from `stream` until it ends. Runs in the worker process."""
    with os.fdopen(os.dup(1), "wb") as answers, Interrupts() as interrupts:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        jobs: queue.SimpleQueue[tuple[Job, float | None]] = queue.SimpleQueue()
        threading.Thread(target=_read_jobs, args=(stream, jobs.put), daemon=True).start()
        reply: tuple[str, object] = ("ready", None)
        while True:
            try:
                pickle.dump(reply, answers)
                answers.flush()
            except BrokenPipeError:
                os._exit(0)
            job, share = jobs.get()
            reply = answer(job, share, interrupts)


def _read_jobs(stream: BinaryIO, put: Callable[[tuple[Job, float | None]], None]) -> None:
    """Pass jobs on; end the process, whatever it is computing, when the parent is gone."""
    try:
        while True:
            put(pickle.load(stream))  # noqa: S301 - our own parent wrote it
    except EOFError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a job that cannot be read: say why and go
        traceback.print_exc()
        os._exit(1)


def answer(job: Job, share: float | None, interrupts: Interrupts) -> tuple[str, object]:
    """Decide a job; an exception becomes an answer, with its traceback as a note."""
    try:
        return "done", decide(job, share, interrupts)
    except Exception as error:  # noqa: BLE001 - it is raised again in the parent
        note = f"in a worker process, layer {job.layer.name}:\n{traceback.format_exc()}"
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        except Exception:  # noqa: BLE001 - some exceptions do not survive pickling
            error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(note)
        return "error", error
