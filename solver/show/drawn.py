"""Tasks on a processor as a line of letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

#: Characters of a line.
WIDTH = 96
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Drawn(Protocol):
    """What `drawn` needs of a task."""

    @property
    def start(self) -> int:
        """When it begins."""

    @property
    def time(self) -> int:
        """What it computes."""

    @property
    def copies(self) -> int:
        """What it copies then."""


def drawn(rows: Sequence[Drawn], length: int) -> str:
    """Return a line of what runs from 0 to `length`: a character is what runs in the middle of its part."""
    line = ["."] * WIDTH
    for column in range(WIDTH):
        now = (2 * column + 1) * length // (2 * WIDTH)
        for number, row in enumerate(rows):
            if row.start <= now < row.start + row.time:
                line[column] = LETTERS[number % len(LETTERS)]
            elif row.start + row.time <= now < row.start + row.time + row.copies:
                line[column] = "="
    return "".join(line)
