"""How far a sweep is, on stderr: a bar for people, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from solver.show.console import complain
from solver.uses.sweep.work import ANSWERED, Solved

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

#: Seconds between two lines.
_LINE_S = 30.0


def duration(seconds: float) -> str:
    """Return ``42 s``, ``3 min 20 s``, ``5 h 10 min``."""
    whole = round(seconds)
    if whole < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


class SweepProgress:
    """Counts tasks that end; `silent` shows nothing, and a bar only appears where a person looks."""

    def __init__(self, total: int, *, silent: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._total, self._silent = total, silent
        self._begin = time.monotonic()
        self._said = self._begin
        self._bar: RichProgress | None = None
        self._id: TaskID | None = None
        if not silent and sys.stderr is not None and sys.stderr.isatty():
            self._start_bar()

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._id = self._bar.add_task("sweep", total=self._total, note="")
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
