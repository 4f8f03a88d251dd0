"""Tasks of a sweep that misbehave on purpose; worker processes import this folder, as they do fake_engines."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from solver.ask.watch import Watch
from solver.uses.sweep.tasks import Solved


@dataclass(frozen=True)
class FakeTask:
    """Does what `kind` says."""

    number: int
    kind: str
    folder: str = ""
    patience_s: float | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"fake {self.number}"

    def decide(self, time_limit_s: float | None, watch: Watch) -> Solved:
        """Answer, die, or never end."""
        marks = Path(self.folder)
        (marks / f"{self.number}-{time.time_ns()}").touch()
        if self.kind == "dies" or (self.kind == "dies once" and len(list(marks.glob(f"{self.number}-*"))) == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "sleeps":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
            time.sleep(600)
        if self.kind == "raises":
            raise RuntimeError("a fault of its own")
        return Solved(self.number, "OPTIMAL", self.number, seconds=0.1)
