"""Progress on stderr, and calls into native code that can be stopped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

Result = TypeVar("Result")


class Progress:
    """Whoever wants to know how far a search is; this one shows nothing: a library prints nothing unless asked."""

    def begin(self, total: int, what: str) -> None:
        """Start counting to `total`."""

    def advance(self, note: str) -> None:
        """Count one more; `note` says which."""

    def end(self) -> None:
        """Stop, finished or not."""


Silent = Progress


class Bar(Progress):
    """A progress bar on stderr that disappears when done."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def begin(self, total: int, what: str) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self.end()
        self._bar = RichProgress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._task = self._bar.add_task(what, total=total, note="")
        self._bar.start()

    def advance(self, note: str) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, note=note)

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


def progress_bar() -> Progress:
    """Return a bar if a person watches stderr, else nothing that shows."""
    return Bar() if sys.stderr.isatty() else Silent()


def interruptible(work: Callable[[], Result], stop: Callable[[], None]) -> tuple[Result, bool]:
    """Run a call into a solver's native code so that it can be stopped; return its result and whether it was.

    Python hears signals between its own instructions only, so in the main thread native code would delay Ctrl-C and
    every limit (`solver.ask.watch`) until it returns. The call runs in a thread, the main thread listens, and the first
    KeyboardInterrupt calls `stop`, which must make the native code return soon with what it has; the second leaves it
    behind. From other threads `work` is simply called.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(), False
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            errors.append(error)
        finally:
            done.set()

    # Not Thread.join: before Python 3.13 an interrupted join takes the thread for ended.
    done = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    stopped = False
    while not done.is_set():
        try:
            done.wait(0.05)
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            stop()
    if errors:
        raise errors[0]
    return results[0], stopped
