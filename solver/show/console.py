"""How the command line writes: lines and tables to stdout, warnings to stderr, and files."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from instances.errors import InputError, OutputError
from instances.jsonfile import write_atomically
from solver.show.tables import printable, render

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.plan.plan import Plan

__all__ = ["complain", "emit", "emit_tables", "lost_output", "printable", "write", "write_plan"]


def complain(what: str, text: str) -> None:
    """Print one line to stderr, if somebody reads it."""
    line = printable(" ".join(text.split()))
    with contextlib.suppress(AttributeError, OSError):  # None where it was closed before certile began
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(f"certile: {what}: {line}\n".encode(encoding, "backslashreplace").decode(encoding))


def emit(text: str) -> None:
    """Print a text to stdout, without characters that a terminal would obey.

    Raises OutputError if its reader left (``| head``), or a disk is full.
    """
    _put("\n".join(map(printable, text.split("\n"))))


def _put(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        raise lost_output(error) from None


def lost_output(error: OSError) -> OutputError:
    """Return what to say when output fails: of a file if it has a name, else of standard output.

    To that nothing more is written then, not even at the end.
    """
    if error.filename is not None:
        return OutputError(f"file {error.filename}: {error.strerror}")
    with contextlib.suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    left = isinstance(error, BrokenPipeError)
    return OutputError(f"standard output: {'its reader left early' if left else error.strerror}")


def emit_tables(*things: RenderableType) -> None:
    """Print tables and texts to stdout."""
    _put(render(*things).rstrip("\n"))


def write(path: str, data: str | bytes, *, shown: bool = False) -> None:
    """Write a result to a file, atomically; one that cannot be is saved elsewhere, or (unless `shown` anyway) printed.

    Raises OutputError, which says where the result is, if the file could not be written: a full disk, a lost folder.
    """
    try:
        write_atomically(path, data)
    except (InputError, OutputError) as error:
        place = _rescued(Path(path), data)
        if place is None and isinstance(data, str) and not shown:
            emit(data.rstrip("\n"))
        raise OutputError(f"{error}; the result is in {place} instead" if place else str(error)) from None


def _rescued(path: Path, data: str | bytes) -> Path | None:
    """Save a result among temporary files; return where it is, None if there is no room for it either."""
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix="certile_")
        place = Path(folder) / (path.name if path.suffix else "result.json")
        write_atomically(place, data)
    except (OSError, InputError, OutputError):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return place


def write_plan(plan: Plan, out: str, *, shown: bool = False) -> str:
    """Write a plan, and return a line that says so. One without a solution never takes the place of one that has.

    Raises OutputError as `write`. What an interrupted run did get done is written beside it then, as ``OUT.partial``.
    """
    if plan.status in ("OPTIMAL", "FEASIBLE") or not _solved(out):
        write(out, plan.file_text(out), shown=shown)
        return f"written to {out}"
    aside = f"{out}.partial"
    if not any(part.status in ("OPTIMAL", "FEASIBLE") for part in plan.parts):
        return f"{out} is left as it is: it holds a plan, this run found none"
    write(aside, plan.file_text(aside), shown=shown)
    return f"{out} is left as it is: it holds a plan, this run has none for some layers; the others are in {aside}"


def _solved(path: str) -> bool:
    """Whether a file is there that holds a plan with a solution."""
    from solver.plan.plan import Plan  # late: not every command reads plans

    try:
        return Plan.load(path).status in ("OPTIMAL", "FEASIBLE")
    except InputError:
        return False
