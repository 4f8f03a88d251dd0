"""What plans for a board say of a schedule beside its measures; times are in ticks."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.outcome import Natural


@dataclass(frozen=True)
class TaskTimes:
    """What a task takes where it runs, in the order of the schedule's rows."""

    time: Natural
    """What it computes."""
    copies: Natural
    """What it copies to other processors then."""


@dataclass(frozen=True)
class ProcessorLoad:
    """A logical processor, and how long one inference keeps it busy."""

    name: str
    cores: Natural
    """0 of an accelerator."""
    loads: tuple[Natural, ...]
    """Of every application; of one network alone it is one number."""


@dataclass(frozen=True)
class BoardFigures:
    """Of any schedule."""

    tasks: tuple[TaskTimes, ...]
    processors: tuple[ProcessorLoad, ...]


@dataclass(frozen=True)
class MappingFigures(BoardFigures):
    """Of one network."""

    latency: Natural
    """From the release of an inference to its end."""
    waiting_bytes: tuple[Natural, ...]
    """What the buffers of every edge take."""


@dataclass(frozen=True)
class ApplicationsFigures(BoardFigures):
    """Of several."""

    starts: tuple[Natural, ...]
    """When every task begins after the release, if nothing else delays its application."""
    alone: tuple[Natural, ...]
    """What an inference of every application takes that nothing else delays."""
