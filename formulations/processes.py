"""Work in copies of this process, side by side with what is done here.

Example: a network has ways from 72 cuts to find, and two processors may be used. A copy of this process finds those
from every second cut and sends them here, cut by cut, while the others are found here.

A copy (`fork`) begins with all that is known here, so nothing is handed over. It is for work of seconds that needs much
of what is known, and changes nothing: jobs are for `solver.search.workers`. There is one process where copies are not
safe (anywhere but on Linux), and where nobody said that there may be any (`allowed`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")

_ALLOWED: ContextVar[int] = ContextVar("processes", default=1)


@contextmanager
def allowed(number: int) -> Iterator[None]:
    """Let work inside have so many processes, this one included."""
    token = _ALLOWED.set(number)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def processes() -> int:
    """How many there may be, this one included."""
    none = multiprocessing.current_process().daemon or sys.platform != "linux"
    return 1 if none else _ALLOWED.get()


@contextmanager
def elsewhere(work: Callable[[], Iterable[T]]) -> Iterator[Iterator[T]]:
    """What `work` yields in a copy of this process, in its order; that ends at the latest when the block does.

    The iterator raises EOFError where the copy died, or something was raised in it.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    copy: Any = multiprocessing.get_context("fork").Process(target=_sent, args=(work, there), daemon=True)
    copy.start()
    there.close()
    received = queue.SimpleQueue[bytes | None]()
    reader = threading.Thread(target=_received, args=(here, received), daemon=True)
    reader.start()
    try:
        yield _unpacked(received)
    finally:
        copy.kill()
        copy.join()
        reader.join()
        here.close()


def _sent(work: Callable[[], Iterable[object]], there: Connection) -> None:
    """The copy: it hears no Ctrl-C, which is for the process that it came from."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(Exception):  # it ends before its last value: EOFError where that is waited for
        for one in work():
            there.send((True, one))
        there.send((False, None))


def _received(here: Connection, received: queue.SimpleQueue[bytes | None]) -> None:
    """Take what is sent, so that the copy need not wait."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            received.put(here.recv_bytes())
    received.put(None)


def _unpacked(received: queue.SimpleQueue[bytes | None]) -> Iterator[Any]:
    while True:
        sent = received.get()
        if sent is None:
            raise EOFError("a copy of this process ended before its work")
        more, one = pickle.loads(sent)  # noqa: S301 - our own copy wrote it
        if not more:
            return
        yield one
