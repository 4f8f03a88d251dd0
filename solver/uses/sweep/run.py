"""Run a sweep: points in, tasks out to workers, results into the file; stopped and continued at any moment.

**On a Dask cluster** (`ClusterPool`) every thread of a Dask worker has a seat (`solver.uses.sweep.local`). So what
holds for processes here holds there: a task that kills its process costs only itself, time limits and memory are kept
although Dask runs tasks in threads, and a Dask worker that dies has its tasks run elsewhere by the scheduler. The main
process alone writes the file; workers need certile of the same version, and no file system in common.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from instances.errors import InputError, choices
from solver.ask.names import version
from solver.ask.options import check_jobs
from solver.ask.watch import SHARE, SIGNALS, free_bytes
from solver.uses.sweep.local import LocalPool, Pool, PoolLost, Seat
from solver.uses.sweep.progress import SweepProgress
from solver.uses.sweep.rows import Sweep, load_sweep
from solver.uses.sweep.spec import Spec, read_spec
from solver.uses.sweep.store import RETRIES, Store
from solver.uses.sweep.tasks import Expansion
from solver.uses.sweep.work import Solved, Task

#: Seconds for a connection, and for a first worker.
_CONNECT_S = 30.0
#: Seconds between two looks at how large the cluster is.
_LOOK_S = 2.0
#: Seconds after which a process that has nothing to do on a Dask worker ends.
_IDLE_S = 60.0
#: How often a task is given to the cluster whose Dask workers died of it, by its own count and Dask's.
_TRIES = 2


# --- on the workers --------------------------------------------------------------------------------------------------


@dataclass
class _Seats:
    """The seats of a Dask worker that are free; they end when nobody needs them for a while."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    free: list[tuple[float, Seat]] = field(default_factory=list)
    taken: set[Seat] = field(default_factory=set)

    def take(self, count: int) -> Seat:
        """A seat that is free, or a new one: one of so many on this computer."""
        with self.lock:
            seat = self.free.pop()[1] if self.free else Seat(int(SHARE * free_bytes()) // max(1, count))
            self.taken.add(seat)
        return seat

    def give(self, seat: Seat) -> None:
        """A seat is free again."""
        with self.lock:
            self.taken.discard(seat)
            self.free.append((time.monotonic(), seat))
        timer = threading.Timer(_IDLE_S + 1.0, self.sweep)
        timer.daemon = True
        timer.start()

    def sweep(self, idle_s: float = _IDLE_S) -> None:
        """End those that were free for long."""
        with self.lock:
            until = time.monotonic() - idle_s
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
    seats = _SEATS.setdefault(run, _Seats())
    seat = seats.take(threads)
    try:
        return seat.run(task.number, task, task.patience_s)
    finally:
        seats.give(seat)


def end_on_worker(run: str) -> None:
    """End what a Dask worker still does for a run that is over."""
    seats = _SEATS.pop(run, None)
    if seats is not None:
        seats.end()


def about_worker() -> str:
    """The version of certile on a Dask worker."""
    return version()


# --- here ------------------------------------------------------------------------------------------------------------


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
            found: dict[str, str] = self._client.run(about_worker)
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

    def put(self, task: Task) -> None:
        """Take a task."""
        self._submit(task, 1)

    def _submit(self, task: Task, tries: int) -> None:
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
        if type(error).__name__ == "KilledWorker" and tries < _TRIES:
            self._submit(task, tries + 1)
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


_POLL_S = 0.1


@dataclass
class Stop:
    """Whether somebody wants the sweep to stop: what is done is kept, what runs is not."""

    reason: str = ""
    _before: dict[int, Any] = field(default_factory=dict)

    @contextmanager
    def heard(self) -> Iterator[Stop]:
        """While this lasts the first Ctrl-C, SIGTERM or SIGHUP is remembered, a second one raises KeyboardInterrupt."""
        main = threading.current_thread() is threading.main_thread()
        for number in (n for n in SIGNALS if main and signal.getsignal(n) is not signal.SIG_IGN):
            self._before[number] = signal.signal(number, self._hear)
        try:
            yield self
        finally:
            for known, handler in self._before.items():
                signal.signal(known, handler)
            self._before.clear()

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.reason:
            raise KeyboardInterrupt
        self.reason = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@dataclass(frozen=True)
class Outcome:
    """What one run of a sweep did."""

    new: int
    """Tasks that were not in the file before."""
    done: int
    """Tasks that ended in this run."""
    left: int
    """Tasks that wait still: the same call continues."""
    stopped: str
    """What ended it early; empty if nothing did."""


def sweep(
    spec: Spec | Mapping[str, Any] | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    jobs: int = 0,
    dask: str | None = None,
    retry: str | None = None,
    add: bool = False,
) -> Sweep:
    """Run a sweep, or continue one, and return its results.

    Parameters
    ----------
    spec : Spec, mapping, str or path
        The grids (docs/sweep.md): data, a YAML file, or the name of a bundled example.
    path : str or path
        The file of results (SQLite). What it holds already is not done again.
    jobs : int
        Processes on this computer; 0: as many as there are processors.
    dask : str, optional
        Instead a Dask cluster: the address of its scheduler, or a scheduler file.
    retry : str, optional
        Run tasks again that ``"failed"``, or are ``"open"``: those and the ones that are not proven.
    add : bool
        Keep points of the file that `spec` does not ask for; else they are refused.

    Returns
    -------
    Sweep
        All rows of the file; those of tasks that have not run have the status WAITING.

    Raises
    ------
    InputError
        For a bad spec, a file that another process writes or that is damaged, a cluster that cannot be reached.
    """
    run_sweep(spec, path, jobs=jobs, dask=dask, retry=retry, add=add, silent=True)
    return load_sweep(path)


def run_sweep(
    spec: Spec | Mapping[str, Any] | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    jobs: int = 0,
    dask: str | None = None,
    retry: str | None = None,
    add: bool = False,
    silent: bool = False,
) -> Outcome:
    """Run or continue a sweep, and return what was done; parameters and errors as in `sweep`."""
    count = check_jobs(jobs)
    if retry is not None and retry not in RETRIES:
        raise InputError(f"--retry {retry}: expected {choices(RETRIES)}")
    points = Expansion(read_spec(spec))
    with Store(path) as store, Stop().heard() as stop:
        new = store.add(points, keep=add)
        if retry is not None:
            store.retry(retry)
        waiting = store.counts.get("WAITING", 0)
        if not waiting or stop.reason:
            return Outcome(new, 0, waiting, stop.reason)
        progress = SweepProgress(waiting, silent=silent)
        pool: Pool | None = None
        try:
            pool = LocalPool(min(count, waiting)) if dask is None else ClusterPool(dask)
            drive(store, pool, progress, stop)
        except PoolLost as lost:
            stop.reason = stop.reason or str(lost)
        finally:
            progress.end()
            if pool is not None:
                pool.close()
            store.commit()
        return Outcome(new, sum(progress.counts.values()), store.counts.get("WAITING", 0), stop.reason)


def drive(store: Store, pool: Pool, progress: SweepProgress, stop: Stop) -> None:
    """Keep the workers busy until nothing waits, or `stop`; raises PoolLost if there are no workers any more."""
    tasks, on_their_way, more = store.waiting(), 0, True
    while not stop.reason:
        while more and on_their_way < pool.room:
            task = next(tasks, None)
            more = task is not None
            if task is not None:
                pool.put(task)
                on_their_way += 1
        if not on_their_way:
            return
        said = pool.get(_POLL_S)
        if said is not None:
            on_their_way -= 1
            store.record(said)
            progress.advance(said)
        store.tick()
        progress.tick()
