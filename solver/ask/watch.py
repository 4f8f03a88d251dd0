"""One rule for limits and signals: a search that has to end gets one exception, keeps its best, and says why it ended.

Example: with a limit of 20 s cooperating code ends by itself after 20 s (`Watch.clock`). What does not is interrupted
`slack` later: inside ``with watch.armed():`` the main thread gets `Stopped` between two of its instructions, as it does
after Ctrl-C (SIGINT), after SIGTERM and SIGHUP, and when the process takes more memory than `memory_bytes`. `Stopped`
is a KeyboardInterrupt, so code that keeps its best after Ctrl-C keeps it after every other stop.

Outside `armed`, while plans are verified and written, a stop is remembered: the next `armed` raises it at once. A
second signal raises wherever the program is. A handler that the caller's program has set stays as it is, and threads
other than the main one get no exception: there only `clock` and `reason` tell.
"""

from __future__ import annotations

import _thread
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, TypeVar

import psutil

from formulations.clock import Clock

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Reason = Literal["time limit", "memory", "SIGINT", "SIGTERM", "SIGHUP"]
#: Of the memory that is free at the start, what a search may take if nobody says how much.
SHARE = 0.8
#: Seconds between two looks at the memory, and after which a search that does not heed a limit, or a signal, is told
#: again: it may have been lost in a library.
_POLL_S, _AGAIN_S, _LOST_S = 0.1, 5.0, 20.0
#: What ends a search; the last one is that of a terminal that is closed.
SIGNALS = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if sys.platform != "win32" else []))
#: By what a watch interrupts the main thread: nobody else sends it, and if it comes late nothing happens.
_OWN = getattr(signal, "SIGURG", None)
#: What they are called.
_NAMES: dict[int, Reason] = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}
if sys.platform != "win32":
    _NAMES[signal.SIGHUP] = "SIGHUP"
#: Modules in which no exception is raised: `_fragile`.
_FRAGILE = ("importlib._bootstrap", "numpy._core._internal", "numpy.core._internal")
#: Functions in which none is: PuLP's, and two of the garbage collector (the last one is what hypothesis has called).
_DEAF = ("buildSolverModel", "__del__", "gc_callback")
#: More memory than there is.
NO_LIMIT = 2**62


class Stopped(KeyboardInterrupt):
    """The search has to end, for this reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def used_bytes() -> int:
    """Resident memory of this process."""
    return int(psutil.Process().memory_info().rss)


def free_bytes() -> int:
    """Memory that this process may still take: what the machine has, and what its control group (v2) is allowed."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):  # no such group, or no limit ("max")
        group = Path("/sys/fs/cgroup")
        most, now = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, max(0, most - now))
    return free


def slack_of(time_limit_s: float) -> float:
    """Seconds after a time limit in which cooperating code ends by itself."""
    return 0.3 + 0.03 * time_limit_s


class Watch:
    """Ends a search at its limits and at signals, as the module says.

    Parameters
    ----------
    time_limit_s : float, optional
        Counted from now on.
    memory_bytes : int, optional
        Resident memory of this process; by default what it takes now and `SHARE` of what is free.
    slack_s : float, optional
        By default `slack_of` the time limit.
    now, used : callable, optional
        The time in seconds, and the memory in bytes; for tests.
    outer : Watch, optional
        What ends that one ends this one too; of what ends this one it hears signals only.

    Attributes
    ----------
    clock : Clock
        The time limit, for cooperating code.
    reason : str or None
        Why the search had to end; None as long as it need not. The first reason stays.
    """

    def __init__(
        self, time_limit_s: float | None = None, memory_bytes: int | None = None, *, slack_s: float | None = None,
        now: Callable[[], float] = time.monotonic, used: Callable[[], int] = used_bytes, outer: Watch | None = None,
    ) -> None:  # fmt: skip
        self.clock = Clock.of(time_limit_s, now)
        self._late = self.clock.later(slack_of(time_limit_s or 0.0) if slack_s is None else slack_s)
        self.memory_bytes = used() + int(SHARE * free_bytes()) if memory_bytes is None else memory_bytes
        self._used = used
        self.reason: Reason | None = None
        self._due: Reason | None = None
        self._signals, self._warned = 0, False
        self._armed, self._again, self._raised = False, 0.0, False
        self._kept: dict[signal.Signals, Any] = {}
        self._outer, self._inherits = outer, outer is not None
        self._end = threading.Event()

    # ---- beginning and end ---------------------------------------------------------------------------------------

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():
            for number in (*SIGNALS, *filter(None, (_OWN,))):
                handler = signal.getsignal(number)
                outer = getattr(handler, "__self__", None)
                if isinstance(outer, Watch):
                    self._outer = self._outer or outer
                if isinstance(outer, Watch) or handler in (signal.default_int_handler, signal.SIG_DFL):
                    self._kept[number] = handler
        self._install()
        if self._inherits and self._outer is not None and self._outer.reason is not None:
            self.stop(self._outer.reason)
        self._thread = threading.Thread(target=self._look, name="certile-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join(timeout=1)  # no signal of its own after the handlers below are back
        for number, handler in self._kept.items():
            signal.signal(number, handler)
        if self._outer is not None and self.reason is not None and self.signalled:  # as heard in `armed`
            self._outer.stop(self.reason)

    def _install(self) -> None:
        """Set the handlers, again after native code: CP-SAT may leave the default action (death) behind."""
        for number in self._kept:
            signal.signal(number, self._handle)

    # ---- what is told --------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether the search had to end."""
        return self.reason is not None

    @property
    def signalled(self) -> bool:
        """Whether that was a signal."""
        return self.reason in _NAMES.values()

    def run(self, work: Callable[[], Result], instead: Callable[[], Result]) -> Result:
        """Return what `work` does, armed; what `instead` does if that was stopped, unless by a second signal."""
        try:
            with self.armed():
                return work()
        except KeyboardInterrupt:
            if self.urgent:
                raise
        return instead()

    @property
    def urgent(self) -> bool:
        """Whether a second signal came: nothing more is done."""
        return self._signals > 1 or (self._outer is not None and self._outer.urgent)

    def stop(self, reason: Reason) -> None:
        """Remember a reason to end; the first one stays."""
        self.reason = self.reason or reason

    def part(self, seconds: float | None) -> Watch:
        """A watch over a part of the work, of so many seconds: what ends it by time or memory ends nothing else."""
        return Watch(seconds, self.memory_bytes, now=self.clock.now, used=self._used, outer=self)

    @property
    def end_s(self) -> float | None:
        """Seconds in which cooperating code has to have ended, figures for what it leaves open included."""
        late = self._late.remaining
        return None if self.clock.until == inf else (late + self.clock.remaining) / 2

    def heard(self, stats: Mapping[str, object]) -> None:
        """Remember a signal that a solver took, and not us: its answer says so (``interrupted``)."""
        if self.reason is None and stats.get("interrupted"):
            self.stop("SIGINT")

    @contextmanager
    def armed(self) -> Iterator[None]:
        """While this lasts a reason to end raises `Stopped`, as it does if there is one already.

        A MemoryError becomes one, and so does any error after it was raised: native code (highspy, ortools) may answer
        a signal that comes while it reads its arguments by an error of its own.
        """
        self._armed, self._again, self._raised = True, 0.0, False
        try:
            if self.reason is not None:
                raise Stopped(self.reason)
            yield
        except MemoryError as error:
            self._told("memory")
            raise Stopped("memory") from error
        except Stopped:
            raise
        except KeyboardInterrupt:  # of a handler that was there before
            self.stop("SIGINT")
            raise
        except Exception as error:
            if not self._raised or self.reason is None:
                raise
            logger.warning("stopped by %s, and then by %s: %s", self.reason, type(error).__name__, _line(error))
            raise Stopped(self.reason) from error
        finally:
            self._armed = False
            self._install()

    # ---- the watch -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Wait for a limit to pass; runs in a thread of its own."""
        while not self._end.wait(min(_POLL_S, max(0.001, self._late.remaining)) if self.reason is None else _POLL_S):
            if self.reason is None and self._late.over:
                self._told("time limit")
            elif self.reason is None and self._used() > self.memory_bytes:
                self._told("memory")
            if self._armed and self.reason is not None and time.monotonic() > self._again:
                self._interrupt()

    def _told(self, reason: Reason) -> None:
        root = self._chain()[-1]
        if reason == "memory" and not root._warned:
            root._warned = True
            logger.warning("memory limit of %d MiB: the search ends, its best is kept", self.memory_bytes >> 20)
        self.stop(reason)

    def _interrupt(self) -> None:
        """Have the main thread run our handler, which knows by `_due` why."""
        number = _OWN if _OWN in self._kept else next(iter(self._kept), None)
        if number is None:
            return
        self._due, main = self.reason, threading.main_thread().ident
        if sys.platform != "win32" and main is not None:
            signal.pthread_kill(main, number)  # what the main thread waits for in the system is interrupted too
        else:
            _thread.interrupt_main(number)

    def _chain(self) -> list[Watch]:
        """All watches from here outwards."""
        chain = [self]
        while chain[-1]._outer is not None:
            chain.append(chain[-1]._outer)
        return chain

    def _handle(self, number: int, frame: FrameType | None) -> None:
        chain = self._chain()
        due = [watch for watch in chain if watch._due is not None]
        if due:
            self.stop(due[0]._due or "time limit")
        elif number == _OWN:  # sent twice before the first was heard
            return
        else:
            for watch in chain:
                watch._signals += 1
                watch.stop(_NAMES[number])
        for watch in due:
            watch._due = None
        if self.reason is not None and (self._armed or (self.urgent and not due)) and not _fragile(frame):
            self._again = time.monotonic() + (_AGAIN_S if self.reason in ("time limit", "memory") else _LOST_S)
            self._raised = self._armed
            raise Stopped(self.reason)


def _line(error: Exception) -> str:
    """The beginning of what an error says."""
    return " ".join(str(error).split())[:200]


def _fragile(frame: FrameType | None) -> bool:
    """Whether an exception would do harm here; we are told again soon.

    A module that is being imported would be left half done, and NumPy answers any exception of its Python helpers by
    one of its own: of a signal while structured arrays are compared it makes "no common dtype". So does highspy while
    PuLP builds a model. What is raised while garbage is collected Python prints and forgets.
    """
    while frame is not None:
        if frame.f_globals.get("__name__") in _FRAGILE or frame.f_code.co_name in _DEAF:
            return True
        frame = frame.f_back
    return False
