"""How the command line writes: lines and tables to stdout, warnings to stderr, plans and other files."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from instances.errors import InputError, OutputError
from instances.jsonfile import write_atomically
from solver.plan import Plan
from solver.tables import printable, render

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["complain", "emit", "emit_tables", "lost_output", "printable", "save", "write"]


def complain(what: str, text: str) -> None:
    """Print one line to stderr, if somebody reads it."""
    line = printable(" ".join(text.split()))
    with contextlib.suppress(AttributeError, OSError):  # None where it was closed before certile began
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(f"certile: {what}: {line}\n".encode(encoding, "backslashreplace").decode(encoding))


def emit(text: str) -> None:
    """Print a text to stdout; raises OutputError if its reader left (``| head``), or a disk is full."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        raise lost_output(error) from None


def lost_output(error: OSError) -> OutputError:
    """Return what to say when standard output fails; nothing more is written to it, not even at the end."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    left = isinstance(error, BrokenPipeError)
    return OutputError(f"standard output: {'its reader left early' if left else error.strerror}")


def emit_tables(*things: RenderableType) -> None:
    """Print tables and texts to stdout."""
    emit(render(*things).rstrip("\n"))


def write(path: str, text: str) -> None:
    """Write a file atomically; raises InputError if that is impossible, OutputError if the disk is full."""
    write_atomically(path, text)


def save(plan: Plan, out: str) -> str:
    """Write a plan, and return a line that says so. One without a solution never takes the place of one that has.

    What an interrupted run did get done is written beside it then, as ``OUT.partial``.
    """
    if plan.status in ("OPTIMAL", "FEASIBLE") or not _solved(out):
        plan.save(out)
        return f"written to {out}"
    aside = f"{out}.partial"
    if not any(getattr(part, "status", "") in ("OPTIMAL", "FEASIBLE") for part in getattr(plan, "layers", ())):
        return f"{out} is left as it is: it holds a plan, this run found none"
    plan.save(aside)
    return f"{out} is left as it is: it holds a plan, this run has none for some layers; the others are in {aside}"


def _solved(path: str) -> bool:
    """Whether a file is there that holds a plan with a solution."""
    try:
        return Plan.load(path).status in ("OPTIMAL", "FEASIBLE")
    except InputError:
        return False
