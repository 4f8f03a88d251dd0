"""Schedules of problem selection: a variant and a stage for every layer, input size, frequency, and where to cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """What a layer is."""

    layer: str
    variant: str
    stage: str
    """Where it runs."""


@dataclass(frozen=True)
class Selection:
    """All that is chosen."""

    size: str
    frequency: str
    cuts: tuple[str, ...]
    """Stages that begin a thread of their own, beside the first one; in the order of the pipeline."""
    choices: tuple[Choice, ...]
    """By layer."""
    configuration: str = ""
    """Of a board how its cores are grouped, such as "2,2"."""
