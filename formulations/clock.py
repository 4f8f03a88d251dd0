"""The one clock of a search: when it has to stop, and how it shares out the time until then.

Example: ``clock = Clock.of(20)``; a long loop calls ``clock.tick()`` in every round, which raises `TimeUp` after 20
seconds; whoever catches it keeps what is known and claims no more. Loops that can keep their best themselves ask
``clock.over``. Tests give a `now` of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf


class TimeUp(Exception):
    """The time limit is over; whoever catches it keeps what is known and claims no more."""


@dataclass(frozen=True)
class Clock:
    """When a search has to stop, by `now`, in seconds."""

    until: float = inf
    now: Callable[[], float] = time.monotonic
    end: float = inf
    """When nothing may take time any more, bounds of what is left open included."""

    @classmethod
    def of(cls, seconds: float | None, now: Callable[[], float] = time.monotonic) -> Clock:
        """A clock that stops in so many seconds; never if None."""
        return cls(inf if seconds is None else now() + seconds, now)

    def tick(self) -> None:
        """Raise TimeUp if it is time."""
        if self.over:
            raise TimeUp

    @property
    def over(self) -> bool:
        """Whether it is time."""
        return self.until < inf and self.now() >= self.until

    @property
    def remaining(self) -> float:
        """Seconds left, 0 if it is time, infinite without a limit."""
        return max(0.0, self.until - self.now()) if self.until < inf else inf

    @property
    def left(self) -> float | None:
        """Seconds left for a solver, which takes 0 for no limit: at least a tenth; None without a limit."""
        return None if self.until == inf else max(0.1, self.remaining)

    def half(self) -> Clock:
        """A clock with half of the time that is left."""
        return self.share(2)

    def share(self, parts: float) -> Clock:
        """A clock with one of so many equal parts of the time that is left."""
        return self if self.until == inf else replace(self, until=self.now() + self.remaining / parts)

    def most(self, seconds: float) -> Clock:
        """A clock that stops in so many seconds, or when this one does."""
        return replace(self, until=min(self.until, self.now() + seconds))

    def later(self, seconds: float) -> Clock:
        """A clock that stops so many seconds later."""
        return replace(self, until=self.until + seconds)


#: No limit.
ENDLESS = Clock()
