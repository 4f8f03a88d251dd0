"""Jobs that are decided in their share of the time, one after the other; workers.py runs them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from formulations.clock import Clock
from solver.ask.watch import Watch

#: Seconds after a signal in which running jobs may still verify and return what they found, and after the time limit in
#: which jobs may begin that only make a quick plan.
GRACE_S = 10.0


class Done(Protocol):
    """What comes of a job, and can be pickled."""

    def noted(self: D, note: str) -> D:
        """The same with a note for people: why no more came of it."""


D = TypeVar("D", bound=Done)
C = TypeVar("C", bound=Done, covariant=True)


class Work(Protocol[C]):
    """A job, that can be pickled."""

    @property
    def name(self) -> str:
        """Of what it decides, for messages."""

    def decide(self, time_limit_s: float | None, watch: Watch) -> C:
        """Do it in this share of the time of `watch`, or quickly; raises KeyboardInterrupt if that is urgent."""


OnDone = Callable[[int, D], None]


def share_of(clock: Clock, waiting: int, workers: int) -> float | None:
    """Return the seconds for a job that starts now while `waiting` jobs (it included) have not: an equal share.

    What a job leaves over goes to those after it. None without a limit; 0 when time is up.
    """
    if clock.left is None:
        return None
    return clock.remaining * min(1.0, workers / max(1, waiting))


@dataclass
class Outcome(Generic[D]):
    """What came of a batch of jobs: answers and shares of time by index, and whether Ctrl-C stopped it."""

    answers: dict[int, D] = field(default_factory=dict)
    shares_s: dict[int, float] = field(default_factory=dict)
    stopped: bool = False


def run_here(
    jobs: Mapping[int, Work[D]], watch: Watch, on_done: OnDone[D], *, notes: Mapping[int, str] | None = None,
    seconds: float | None = None,
) -> Outcome[D]:  # fmt: skip
    """Run jobs one after the other in this process; after a signal, and when time is up, quickly (`Work.decide`).

    With `notes` for the answers of some of them all are run quickly; after `seconds` no more begin.
    """
    outcome, last, end = Outcome[D](), watch.clock.later(GRACE_S), Clock.of(seconds)
    for done, (index, job) in enumerate(jobs.items()):
        if last.over or end.over:
            break
        share = share_of(watch.clock, len(jobs) - done, 1) if notes is None else 0.0
        outcome.shares_s[index] = share or 0.0
        try:
            answer = job.decide(share, watch)
        except KeyboardInterrupt:  # the second one, during verification: this layer is lost, the others are not
            outcome.stopped = True
            break
        if notes and index in notes:
            answer = answer.noted(notes[index])
        outcome.answers[index] = answer
        outcome.stopped = watch.signalled
        on_done(index, answer)
    return outcome
