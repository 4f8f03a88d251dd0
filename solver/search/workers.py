"""Runs jobs, until all are done, out of time or interrupted: here, or side by side in worker processes.

Why no library: a job that runs has to be told of Ctrl-C and of the time limit, and then to hand in its best so far with
a bound; a worker that the kernel kills for want of memory may cost its own job and no other; CBC, which a worker has
started, must end with it. `concurrent.futures` and loky cancel only what has not begun, fail every job of the pool when
a worker dies (BrokenProcessPool, TerminatedWorkerError), and end workers but not what these have started; joblib runs
on loky. So there is a pool of our own here, and nothing else: no queue of results on disk, no clusters of machines.

A worker process is a fresh interpreter that reads pickled jobs from stdin and writes pickled answers to a private
copy of stdout: nothing of the caller's program is imported again (no ``if __name__ == "__main__"`` is needed), and
solvers that print cannot disturb the answers. A worker ends itself when its stdin closes, so none outlives us.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from formulations.clock import Clock
from formulations.processes import allowed
from solver.ask.options import processors
from solver.ask.watch import NO_LIMIT, Watch, used_bytes

logger = logging.getLogger(__name__)

#: Seconds after a signal in which running jobs may still verify and return what they found, and after the time limit in
#: which jobs may begin that only make a quick plan.
GRACE_S = 10.0
#: Seconds after the time limit in which workers may still verify; then a quick plan is made here.
LATE_S = 1.5
#: Seconds after which what is left goes to other processes, and that must be left: they take one or two to start.
_HERE_S, _START_S = 2.0, 4.0
#: How often a job is given to a worker before it counts as what kills workers.
_TRIES = 2
_POLL_S = 0.1
_BOOT = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from solver.search.workers import worker_main; worker_main(sys.stdin.buffer)"
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Done(Protocol):
    """What comes of a job, and can be pickled."""

    def noted(self: D, note: str) -> D:
        """The same with a note for people: why no more came of it."""


D = TypeVar("D", bound=Done)
C = TypeVar("C", bound=Done, covariant=True)


class Work(Protocol[C]):
    """A job, that can be pickled."""

    @property
    def name(self) -> str:
        """Of what it decides, for messages."""

    def decide(self, time_limit_s: float | None, watch: Watch) -> C:
        """Do it in this share of the time of `watch`, or quickly; raises KeyboardInterrupt if that is urgent."""


OnDone = Callable[[int, D], None]


def share_of(clock: Clock, waiting: int, workers: int) -> float | None:
    """Return the seconds for a job that starts now while `waiting` jobs (it included) have not: an equal share.

    What a job leaves over goes to those after it. None without a limit; 0 when time is up.
    """
    if clock.left is None:
        return None
    return clock.remaining * min(1.0, workers / max(1, waiting))


@dataclass
class Outcome(Generic[D]):
    """What came of a batch of jobs: answers and shares of time by index, and whether Ctrl-C stopped it."""

    answers: dict[int, D] = field(default_factory=dict)
    shares_s: dict[int, float] = field(default_factory=dict)
    stopped: bool = False


def run(
    jobs: Mapping[int, Work[D]], processes: int, watch: Watch, on_done: OnDone[D], *, here_first: bool = False
) -> Outcome[D]:
    """Run jobs here, or side by side in so many processes.

    `processes` is 0 if nobody says how many: as starting one costs more than most jobs, that is put off for `_HERE_S`;
    `here_first`: in any case. A job by itself may have them all (`formulations.processes`).
    """
    most = processes or processors()
    count = min(most, len(jobs))
    if count <= 1 or watch.clock.remaining < _START_S:
        with allowed(most // max(1, len(jobs))):
            return run_here(jobs, watch, on_done)
    if processes and not here_first:
        return run_in_processes(jobs, count, watch, on_done)
    outcome = run_here(jobs, watch, on_done, seconds=_HERE_S)
    rest = {index: job for index, job in jobs.items() if index not in outcome.shares_s}
    if rest and not outcome.stopped:
        more = run_in_processes(rest, min(count, len(rest)), watch, on_done)
        outcome = Outcome(
            {**outcome.answers, **more.answers}, {**outcome.shares_s, **more.shares_s}, stopped=more.stopped
        )
    return outcome


def run_here(
    jobs: Mapping[int, Work[D]], watch: Watch, on_done: OnDone[D], *, notes: Mapping[int, str] | None = None,
    seconds: float | None = None,
) -> Outcome[D]:  # fmt: skip
    """Run jobs one after the other in this process; after a signal, and when time is up, quickly (`Work.decide`).

    With `notes` for the answers of some of them all are run quickly; after `seconds` no more begin.
    """
    outcome, last, end = Outcome[D](), watch.clock.later(GRACE_S), Clock.of(seconds)
    for done, (index, job) in enumerate(jobs.items()):
        if last.over or end.over:
            break
        share = share_of(watch.clock, len(jobs) - done, 1) if notes is None else 0.0
        outcome.shares_s[index] = share or 0.0
        try:
            answer = job.decide(share, watch)
        except KeyboardInterrupt:  # the second one, during verification: this layer is lost, the others are not
            outcome.stopped = True
            break
        if notes and index in notes:
            answer = answer.noted(notes[index])
        outcome.answers[index] = answer
        outcome.stopped = watch.signalled
        on_done(index, answer)
    return outcome


# ---- in other processes ----------------------------------------------------------------------------------------------

#: A job, its share of the time, the seconds left for all jobs, and the memory that it may take.
_Task = tuple[Work[Any], float | None, float | None, int]


class WorkerProcess:
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

    def wait(self) -> None:
        """Wait until it is ready; raises EOFError if it dies before."""
        if not self._ready:
            self._heard()
            self._ready = True

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None  # Popen was given a pipe
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def ask(self, task: _Task) -> tuple[str, object]:
        """Send a job and wait for its answer; raises EOFError if the process dies."""
        with contextlib.suppress(OSError):  # a dead one is heard of below
            self._send(task)
        return self._heard()

    def _heard(self) -> tuple[str, object]:
        assert self._process.stdout is not None
        try:
            kind, value = pickle.load(self._process.stdout)  # noqa: S301 - our own child wrote it
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # ValueError: `end` has closed the pipe
            raise EOFError(f"worker process ended with code {self._process.wait()}") from None
        return str(kind), value

    def interrupt(self) -> None:
        """Pass a signal on; a process that has not set its handler yet has nothing to lose."""
        if self._ready and os.name == "posix":
            self._process.send_signal(signal.SIGINT)
        else:
            self._process.kill()

    def end(self) -> None:
        """End the process at once, with what it started (CBC), and collect it."""
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Crew:
    """Threads that each feed one worker process from a common list."""

    def __init__(self, jobs: Mapping[int, Work[Any]], count: int, watch: Watch) -> None:
        self.results: queue.Queue[tuple[int, str, object]] = queue.Queue()
        self.shares_s: dict[int, float] = {}
        self._jobs = dict(jobs)
        self._waiting = list(jobs)
        self._deaths: Counter[int] = Counter()
        self._count, self._boots = count, count + _TRIES
        self._clock, self._end_s = watch.clock, watch.end_s
        self._memory = max(1, watch.memory_bytes - used_bytes()) // count
        self._lock = threading.Lock()
        self._closed = self._stopped = False
        self._processes: list[WorkerProcess] = []
        #: Why jobs have no answer.
        self.notes: dict[int, str] = {}
        self._threads = [threading.Thread(target=self._feed, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _next(self) -> tuple[int, _Task] | None:
        with self._lock:
            if self._closed or not self._waiting or self._clock.over:
                return None
            share = share_of(self._clock, len(self._waiting), self._count)
            index = self._waiting.pop(0)
            self.shares_s[index] = share or 0.0
            return index, (self._jobs[index], share, self._clock.left, self._memory)

    def _start(self) -> WorkerProcess | None:
        """A new process that is ready; None if none is needed, or none comes to be ready."""
        while True:
            with self._lock:
                if self._closed or not self._waiting or not self._boots:
                    return None
                self._boots -= 1
                process = WorkerProcess()
                self._processes.append(process)
            with contextlib.suppress(EOFError):
                process.wait()
                return process

    def _feed(self) -> None:
        process: WorkerProcess | None = None
        while (process := process or self._start()) is not None and (task := self._next()) is not None:
            index, job = task
            try:
                kind, value = process.ask(job)
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
            self._boots += 1
            return "again"

    @property
    def idle(self) -> bool:
        """Whether all threads have ended."""
        return not any(t.is_alive() for t in self._threads)

    def stop(self) -> None:
        """Start nothing more and pass the signal on to what runs."""
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


def run_in_processes(jobs: Mapping[int, Work[D]], count: int, watch: Watch, on_done: OnDone[D]) -> Outcome[D]:
    """Run jobs in `count` worker processes.

    After a signal running jobs have `GRACE_S` seconds to return their best, after the time limit `LATE_S`; a second
    signal does not wait. The job of a worker that dies (out of memory, say) is run again by another one. What is
    unanswered in the end gets a quick plan here, with a note of why in its stats.
    """
    outcome = Outcome[D]()
    crew = _Crew(jobs, count, watch)
    try:
        _collect(crew, jobs, watch, outcome, on_done)
    except KeyboardInterrupt:  # the second one
        outcome.stopped = True
        return outcome
    finally:
        crew.end()
        outcome.shares_s.update(crew.shares_s)
    rest = {index: job for index, job in jobs.items() if index not in outcome.answers}
    for index in rest.keys() & crew.shares_s.keys() if not outcome.stopped else ():
        crew.notes.setdefault(index, f"no answer within {LATE_S:g} s after the time limit")
    for index, note in crew.notes.items():
        logger.warning("%s: %s", jobs[index].name, note)
    outcome.answers.update(run_here(rest, watch, on_done, notes=crew.notes).answers)
    return outcome


def _collect(crew: _Crew, jobs: Mapping[int, Work[D]], watch: Watch, outcome: Outcome[D], on_done: OnDone[D]) -> None:
    """Take answers until there are no more to come."""
    last = watch.clock.later(LATE_S)
    while True:
        try:
            index, kind, value = crew.results.get(timeout=_POLL_S)
        except queue.Empty:
            if crew.idle and crew.results.empty():
                return
        else:
            _accept(crew, outcome, jobs, index, kind, value, on_done)
        if (watch.signalled or watch.reason == "memory") and not outcome.stopped:
            outcome.stopped = True
            crew.stop()
            last = Clock.of(GRACE_S)
        if last.over:
            return


def _accept(
    crew: _Crew, outcome: Outcome[D], jobs: Mapping[int, Work[D]], index: int, kind: str, value: Any, on_done: OnDone[D]
) -> None:
    if kind == "error" and isinstance(value, BaseException):
        raise value
    if kind == "again" and not outcome.stopped:
        logger.warning("%s: %s, it is run again", jobs[index].name, value)
    if kind == "died" and not outcome.stopped:
        crew.notes[index] = str(value)
    if kind == "done":
        outcome.answers[index] = value
        on_done(index, value)


def worker_main(stream: BinaryIO) -> None:
    """Answer jobs from `stream` until it ends. Runs in the worker process."""
    with os.fdopen(os.dup(1), "wb") as answers, Watch(memory_bytes=NO_LIMIT) as watch:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        jobs: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        threading.Thread(target=_read_jobs, args=(stream, jobs.put), daemon=True).start()
        reply: tuple[str, object] = ("ready", None)
        while True:
            try:
                pickle.dump(reply, answers)
                answers.flush()
            except BrokenPipeError:
                os._exit(0)
            job, share, left, memory = jobs.get()
            with Watch(left, memory, outer=watch) as whole:
                reply = answer(job, share, whole)


def _read_jobs(stream: BinaryIO, put: Callable[[_Task], None]) -> None:
    """Pass jobs on; end the process, whatever it is computing, when the parent is gone."""
    try:
        while True:
            put(pickle.load(stream))  # noqa: S301 - our own parent wrote it
    except EOFError:
        _leave(0)
    except BaseException:  # noqa: BLE001 - a job that cannot be read: say why and go
        traceback.print_exc()
        _leave(1)


def _leave(code: int) -> None:
    """End this process, and with it what it started (CBC)."""
    if os.name == "posix" and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(code)


def answer(job: Work[Any], share: float | None, watch: Watch) -> tuple[str, object]:
    """Decide a job; an exception becomes an answer, with its traceback as a note."""
    try:
        return "done", job.decide(share, watch)
    except Exception as error:  # noqa: BLE001 - it is raised again in the parent
        note = f"in a worker process, {job.name}:\n{traceback.format_exc()}"
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        except Exception:  # noqa: BLE001 - some exceptions do not survive pickling
            error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(note)
        return "error", error
