"""One process writes a file at a time: a lock that the system lets go of when its holder ends, however it ends.

The lock is on ``FILE.lock`` beside the file: locks on the file itself are SQLite's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import IO

from instances.errors import InputError, OutputError


class Lock:
    """Holds the lock of a file until `free`.

    Raises
    ------
    InputError
        If another process holds it, or none can be made.
    OutputError
        If the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._place = path.with_name(f"{path.name}.lock")
        while True:
            self._file = self._open()
            if not _take(self._file):
                said = self._file.read(40).strip()
                self._file.close()
                who = f"process {said}" if said else "another process"
                raise InputError(f"sweep file {path}: {who} is writing it; wait for it, or choose another file with -o")
            with contextlib.suppress(OSError):
                if os.stat(self._place).st_ino == os.fstat(self._file.fileno()).st_ino:
                    break
            self._file.close()  # the holder before us removed it in between
        try:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
        except OSError as error:
            self.free()
            raise OutputError(f"file {self._place}: cannot be written: {error.strerror}") from None

    def _open(self) -> IO[str]:
        try:
            return open(self._place, "a+", encoding="utf-8")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OutputError(f"file {self._place}: cannot be written: {error.strerror}") from None
            raise InputError(f"file {self._place}: cannot be written: {error.strerror}") from None

    def free(self) -> None:
        """Let go of it."""
        if not self._file.closed:
            with contextlib.suppress(OSError):
                self._place.unlink()
            with contextlib.suppress(OSError):  # what could not be written stays unwritten
                self._file.close()


def _take(file: IO[str]) -> bool:
    """Whether the lock is ours now."""
    file.seek(0)
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
