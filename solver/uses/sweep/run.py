"""Run a sweep: points in, tasks out to workers, results into the file; stopped and continued at any moment."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from instances.errors import InputError, choices
from solver.ask.options import check_jobs
from solver.ask.watch import SIGNALS
from solver.show.console import complain
from solver.uses.sweep.pools import ClusterPool, LocalPool, PoolLost
from solver.uses.sweep.rows import Sweep, duration, load_sweep
from solver.uses.sweep.spec import Spec, read_spec
from solver.uses.sweep.store import RETRIES, Store
from solver.uses.sweep.tasks import ANSWERED, Expansion, Solved

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

#: Seconds for which a result is waited for, and between two lines of progress.
_POLL_S, _LINE_S = 0.1, 30.0


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


class SweepProgress:
    """How far a sweep is, on stderr: a bar where a person looks, else a line now and then; `silent` shows nothing."""

    def __init__(self, total: int, *, silent: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._total, self._silent = total, silent
        self._begin = time.monotonic()
        self._said = self._begin
        self._bar: RichProgress | None = None
        self._id: TaskID | None = None
        if silent or sys.stderr is None or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._id = self._bar.add_task("sweep", total=total, note="")
        self._bar.start()

    @property
    def failed(self) -> int:
        """Tasks without an answer."""
        return sum(number for status, number in self.counts.items() if status not in ANSWERED)

    @property
    def line(self) -> str:
        """How far it is."""
        done, seconds = sum(self.counts.values()), max(1e-9, time.monotonic() - self._begin)
        left = duration((self._total - done) * seconds / done) if done else "time not known"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{done:,} of {self._total:,} tasks{failed}, {done / seconds:.1f} tasks/s, about {left} left"

    def advance(self, said: Solved) -> None:
        """One more has ended."""
        self.counts[said.status] += 1
        if self._bar is not None and self._id is not None:
            note = f"{self.failed:,} failed" if self.failed else ""
            self._bar.update(self._id, advance=1, note=note)

    def tick(self) -> None:
        """Say how far it is, if it is time."""
        now = time.monotonic()
        if self._bar is None and not self._silent and now - self._said >= _LINE_S:
            self._said = now
            complain("sweep", self.line)

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = None


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
        pool: LocalPool | ClusterPool | None = None
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


def drive(store: Store, pool: LocalPool | ClusterPool, progress: SweepProgress, stop: Stop) -> None:
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
