"""Workers of a sweep: processes that outlive their tasks, each behind a seat that starts it anew when it dies.

A task whose process dies (out of memory, `kill -9`) is tried once more in a new one, then it is recorded; no other task
notices. A process that has not ended long after its time limit is ended. Why not `solver.search.workers.run`: that
shares one time limit among jobs that are all known, and gives up after some deaths; a sweep has a limit for every task,
more tasks than memory, and goes on. The processes are the same.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Protocol

from solver.ask.options import processors
from solver.ask.watch import SHARE, free_bytes
from solver.search.jobs import Work
from solver.search.workers import WorkerProcess
from solver.uses.sweep.work import Solved, Task

#: How often a task is given to a process.
TRIES = 2
#: Starts in a row without one process that comes to be ready.
_STARTS = 3


class Pool(Protocol):
    """Whoever takes tasks and hands back results, in any order."""

    @property
    def room(self) -> int:
        """How many tasks may be on their way at a time."""

    def put(self, task: Task) -> None:
        """Take a task."""

    def get(self, seconds: float) -> Solved | None:
        """Return a result, None if there is none in time; raises PoolLost if there will be no more."""

    def close(self) -> None:
        """End everything at once; what runs is lost."""


class PoolLost(Exception):
    """There are no workers any more; what was on its way is waiting still."""


class Seat:
    """A worker process, started when it is needed and again when it died."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory = memory_bytes
        self._process: WorkerProcess | None = None
        self._lock = threading.Lock()
        self._closed = self._late = False

    def run(self, number: int, work: Work[Solved], patience_s: float | None) -> Solved:
        """Return what comes of a task; raises PoolLost if no process comes to be ready, or the seat is closed."""
        said = ""
        for tries in range(1, TRIES + 1):
            process = self._ready()
            timer = self._timer(patience_s, process)
            try:
                kind, value = process.ask((work, None, None, self._memory))
            except EOFError as error:
                self.drop()
                if self._closed:
                    raise PoolLost("closed") from None
                if self._late:
                    text = f"the process did not end within {patience_s:g} s" if patience_s else ""
                    return Solved(number, "TIME_OUT", error=text, stopped="time limit", tries=tries)
                said = str(error)
                continue
            finally:
                if timer is not None:
                    timer.cancel()
            if kind == "done" and isinstance(value, Solved):
                return value if tries == 1 else _again(value, tries)
            return Solved(number, "DEFECT", error=f"{type(value).__name__}: {value}", tries=tries)
        return Solved(number, "WORKER_DIED", error=f"{said}, {TRIES} times", tries=TRIES)

    def _timer(self, seconds: float | None, process: WorkerProcess) -> threading.Timer | None:
        self._late = False
        if seconds is None:
            return None

        def end() -> None:
            self._late = True
            process.end()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        return timer

    def _ready(self) -> WorkerProcess:
        """The process, or a new one."""
        for _ in range(_STARTS):
            with self._lock:
                if self._closed:
                    raise PoolLost("closed")
                process = self._process = self._process or WorkerProcess()
            with contextlib.suppress(EOFError, OSError):
                process.wait()
                return process
            self.drop()
        raise PoolLost(f"no worker process comes to be ready ({_STARTS} tries)")

    def drop(self) -> None:
        """End the process; the next task starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        self.drop()


def _again(said: Solved, tries: int) -> Solved:
    from dataclasses import replace

    return replace(said, tries=tries)


class LocalPool:
    """Worker processes on this computer.

    Parameters
    ----------
    jobs : int
        How many; 0: as many as there are processors.
    """

    def __init__(self, jobs: int) -> None:
        count = jobs or processors()
        share = int(SHARE * free_bytes()) // count
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Solved | PoolLost] = queue.SimpleQueue()
        self._seats = [Seat(share) for _ in range(count)]
        self._threads = [threading.Thread(target=self._serve, args=(seat,), daemon=True) for seat in self._seats]
        for thread in self._threads:
            thread.start()

    @property
    def room(self) -> int:
        """One task a process waits, so that none is idle."""
        return 2 * len(self._seats)

    def put(self, task: Task) -> None:
        """Take a task."""
        self._tasks.put(task)

    def get(self, seconds: float) -> Solved | None:
        """Return a result, None if there is none in time; raises PoolLost if there will be no more."""
        try:
            said = self._results.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(said, PoolLost):
            raise said
        return said

    def _serve(self, seat: Seat) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._results.put(seat.run(task.number, task, task.patience_s))
            except PoolLost as lost:
                self._results.put(lost)
                return
            except Exception as error:  # noqa: BLE001 - a task that cannot be sent is recorded
                self._results.put(Solved(task.number, "DEFECT", error=f"{type(error).__name__}: {error}"))

    def close(self) -> None:
        """End everything at once; what runs is lost."""
        for seat in self._seats:
            self._tasks.put(None)
            seat.close()
        for thread in self._threads:
            thread.join(timeout=5)
