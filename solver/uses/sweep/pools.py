"""Workers of a sweep: processes that outlive their tasks, each behind a seat that starts it anew when it dies.

A task whose process dies (out of memory, `kill -9`) is tried once more in a new one, then it is recorded; no other task
notices. A process that has not ended long after its time limit is ended. Why not `solver.search.workers.run`: that
shares one time limit among jobs that are all known, and gives up after some deaths; a sweep has a limit for every task,
more tasks than memory, and goes on. The processes are the same.

**On a Dask cluster** (`ClusterPool`) every thread of a Dask worker has a seat. So what holds for processes here holds
there: a task that kills its process costs only itself, time limits and memory are kept although Dask runs tasks in
threads, and a Dask worker that dies has its tasks run elsewhere by the scheduler. The main process alone writes the
file; workers need certile of the same version, and no file system in common.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from instances.errors import InputError
from solver.ask.names import version
from solver.ask.options import processors
from solver.ask.watch import SHARE, free_bytes
from solver.search.workers import Work, WorkerProcess
from solver.uses.sweep.tasks import Solved, Task

#: Seconds for a connection, and for a first worker.
_CONNECT_S = 30.0
#: Seconds between two looks at how large the cluster is.
_LOOK_S = 2.0
#: Seconds after which a process that has nothing to do on a Dask worker ends.
_IDLE_S = 60.0
#: How often a task is given to a process, and to a cluster whose workers died of it by its own count and Dask's.
TRIES = 2
#: Starts in a row without one process that comes to be ready.
_STARTS = 3


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
                return replace(value, tries=tries)
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


# --- a Dask cluster: on its workers, and here -------------------------------------------------------------------------


@dataclass
class _Seats:
    """The seats of a Dask worker that are free; they end when nobody needs them for a while."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    free: list[tuple[float, Seat]] = field(default_factory=list)
    taken: set[Seat] = field(default_factory=set)

    @contextlib.contextmanager
    def one(self, count: int) -> Iterator[Seat]:
        """A seat that is free, or a new one: one of so many on this computer; free again afterwards."""
        with self.lock:
            seat = self.free.pop()[1] if self.free else Seat(int(SHARE * free_bytes()) // max(1, count))
            self.taken.add(seat)
        try:
            yield seat
        finally:
            with self.lock:
                self.taken.discard(seat)
                self.free.append((time.monotonic(), seat))
            timer = threading.Timer(_IDLE_S + 1.0, self.sweep)
            timer.daemon = True
            timer.start()

    def sweep(self) -> None:
        """End those that were free for long."""
        with self.lock:
            until = time.monotonic() - _IDLE_S
            old = [seat for since, seat in self.free if since <= until]
            self.free = [(since, seat) for since, seat in self.free if since > until]
        for seat in old:
            seat.close()

    def end(self) -> None:
        """End all of them, what they do included."""
        with self.lock:
            seats, self.free, self.taken = [*self.taken, *(s for _, s in self.free)], [], set()
        for seat in seats:
            seat.close()


#: By the name of the run that uses them.
_SEATS: dict[str, _Seats] = {}


def run_on_worker(task: Task, threads: int, run: str) -> Solved:
    """Do a task of a run on a Dask worker of so many threads."""
    with _SEATS.setdefault(run, _Seats()).one(threads) as seat:
        return seat.run(task.number, task, task.patience_s)


def end_on_worker(run: str) -> None:
    """End what a Dask worker still does for a run that is over."""
    if (seats := _SEATS.pop(run, None)) is not None:
        seats.end()


class ClusterPool:
    """A Dask cluster.

    Parameters
    ----------
    address : str
        Of a scheduler, ``tcp://host:8786``, or the path of a scheduler file.

    Raises
    ------
    InputError
        If there is no such cluster, it has no workers, or another version of certile.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = _client(address)
        self._run = f"certile-sweep-{uuid.uuid4().hex}"
        self._results: queue.SimpleQueue[tuple[Task, Any, int]] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._looked, self._threads, self._per_worker = -_LOOK_S, 1, 1
        try:
            self._ask_versions()
        except BaseException:
            self._client.close()
            raise

    def _ask_versions(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            raise InputError(f"--dask {self.address}: no worker within {_CONNECT_S:g} s") from None
        try:
            found: dict[str, str] = self._client.run(version)
        except Exception as error:  # whatever a worker that cannot import certile raises  # noqa: BLE001
            raise InputError(f"--dask {self.address}: certile cannot be used on its workers: {error}") from None
        others = {name: said for name, said in found.items() if said != version()}
        if others:
            first = next(iter(others))
            raise InputError(f"--dask {self.address}: worker {first} has certile {others[first]}, here is {version()}")

    @property
    def room(self) -> int:
        """One task a thread waits."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            threads: dict[str, int] = self._client.nthreads()
            self._threads = sum(threads.values())
            self._per_worker = max(threads.values(), default=1)
        return max(2, 2 * self._threads)

    def put(self, task: Task, tries: int = 1) -> None:
        """Take a task, for the first time or once more."""
        key = f"{self._run}-{task.number}-{tries}"
        future = self._client.submit(run_on_worker, task, self._per_worker, self._run, key=key, pure=False)
        self._futures[task.number] = future
        future.add_done_callback(lambda done: self._results.put((task, done, tries)))

    def get(self, seconds: float) -> Solved | None:
        """Return a result, None if there is none in time; raises PoolLost if the cluster is gone."""
        try:
            task, future, tries = self._results.get(timeout=seconds)
        except queue.Empty:
            if self._client.status not in ("running", "connecting"):
                raise PoolLost(f"the cluster at {self.address} is gone") from None
            return None
        self._futures.pop(task.number, None)
        if future.status == "finished":
            said: Solved = future.result()
            return said
        if future.status in ("cancelled", "lost") or self._client.status != "running":
            raise PoolLost(f"the cluster at {self.address} is gone")
        error: Any = future.exception()
        if type(error).__name__ == "KilledWorker" and tries < TRIES:
            self.put(task, tries + 1)
            return None
        if type(error).__name__ == "PoolLost":
            raise PoolLost(f"on a worker at {self.address}: {error}")
        status = "WORKER_DIED" if type(error).__name__ == "KilledWorker" else "DEFECT"
        return Solved(task.number, status, error=" ".join(f"{type(error).__name__}: {error}".split()), tries=tries)

    def close(self) -> None:
        """End everything at once; what runs is lost."""
        running = list(self._futures.values())
        try:
            if self._client.status == "running":
                if running:
                    self._client.cancel(running, force=True)
                self._client.run(end_on_worker, self._run, on_error="ignore", wait=False)
        finally:
            self._client.close(timeout=5)


def _client(address: str) -> Any:
    try:
        from distributed import Client  # it has types for some of its methods only
    except ImportError:
        raise InputError("--dask needs dask and distributed: pip install certile[dask]") from None
    client: Any = Client
    is_file = not re.match(r"[a-z]+://", address)
    if is_file and not Path(address).is_file():
        raise InputError(f"--dask {address}: write an address such as tcp://host:8786, or an existing scheduler file")
    try:
        where = {"scheduler_file": address} if is_file else {"address": address}
        return client(**where, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"--dask {address}: no scheduler there: {said[:200]}") from None
