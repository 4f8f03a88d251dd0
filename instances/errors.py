"""The exceptions certile raises for input it cannot use, and for output that nobody takes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class _OneLine(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))


class InputError(_OneLine, ValueError):
    """Bad input: what is wrong, where, and what would be accepted, in one line.

    The command line prints the message after ``certile: error:`` and exits with code 2.
    """


class InfeasibleError(InputError):
    """Demands of a whole network that nothing meets, found before any layer is planned: exit code 3."""


class OutputError(_OneLine):
    """Output that could not be written although the place for it is right: a full disk, a reader that left.

    The command line prints the message after ``certile: output:`` and exits with code 5.
    """


class PlanMismatch(RuntimeError):
    """A plan whose price, replay and engine do not agree: a defect of certile, so the plan is not handed out."""


def choices(names: Iterable[str]) -> str:
    """Return ``a, b or c`` for an error message that lists what is accepted."""
    items = sorted(names)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} or {items[-1]}"


def did_you_mean(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> str:
    """Return ``did you mean a or b? `` for an error message, empty if nothing known is like a name."""
    near = dict.fromkeys(get_close_matches(name, list(known), n=most, cutoff=cutoff))
    return f"did you mean {' or '.join(near)}? " if near else ""
