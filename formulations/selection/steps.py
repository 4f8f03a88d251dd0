"""Heuristics of F8: the paper's default order, one technique after the other (Fig. 3.8), all techniques, none.

Example: Tiny YOLO on a Jetson TX2, seconds for 20,000 images (Table 3.4): baseline 1,150, pipelining 660, Tucker
decomposition everywhere 540, only where a layer gains 530, threads on the CPU 502, 16 bits everywhere 502, only where a
layer gains 460. The order ends there; what other orders, and fewer or more layers, would give is not asked.

Source: `heterogeneous_mapping_and_banks` 3.1.3 (Fig. 3.1, Table 3.4), 3.2.1.2 (Fig. 3.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from formulations.selection.frame import Frame
from formulations.selection.rows import caps, measured
from instances.variants import VariantLayer


@dataclass(frozen=True)
class Step:
    """A step of an order."""

    name: str
    frame: Frame
    chosen: tuple[int, ...]
    measures: Mapping[str, int]
    kept: bool
    """Whether later steps build on it."""


def steps(frames: Sequence[Frame], measure: str, most: Mapping[str, int]) -> list[Step]:
    """Return the steps of the default order, the baseline first; none if its element types do not meet.

    Each is kept if it makes `measure` less and keeps the limits (software steps count by period where energy or score
    is asked for: clocks come last).

    Parameters
    ----------
    frames : sequence of Frame
        At least one.
    most : mapping
        Limits of measures.
    """
    made = _Order(frames, measure, most)
    if not made.begin():
        return []
    made.frames("pipelining", lambda frame, now: (frame.size, frame.frequency) == (now.size, now.frequency))
    for technique in frames[0].setting.variants.techniques:
        made.technique(technique)
    made.frames("frequency", lambda frame, now: (frame.size, frame.cuts) == (now.size, now.cuts), last=True)
    made.frames("input size", lambda frame, now: (frame.frequency, frame.cuts) == (now.frequency, now.cuts), last=True)
    return made.steps


class _Order:
    def __init__(self, frames: Sequence[Frame], measure: str, most: Mapping[str, int]) -> None:
        self.all, self.measure, self.most = frames, measure, most
        self.steps: list[Step] = []

    @property
    def now(self) -> Step:
        """The last step that was kept."""
        return next(step for step in reversed(self.steps) if step.kept)

    def begin(self) -> bool:
        """The baseline: as it comes, or the first frame in which its types meet; return whether there is one."""
        first = self.all[0]
        wanted = tuple(name for name in first.stages if name in first.setting.variants.baseline_cuts)
        frames = sorted(self.all, key=lambda frame: frame.cuts != wanted)
        return any(self.add("baseline", frame, bases(frame), kept=True) for frame in frames)

    def add(
        self, name: str, frame: Frame, chosen: Sequence[int], *, kept: bool | None = None, last: bool = False
    ) -> bool:
        """Price a step; return whether there is one."""
        total = frame.total(chosen)
        if total is None:
            return False
        measures = measured(frame, total)
        if kept is None:
            kept = self.worth(frame, total, last=last) < self.worth(self.now.frame, self.total(self.now), last=last)
        self.steps.append(Step(name, frame, tuple(chosen), measures, kept))
        return True

    def total(self, step: Step) -> list[int]:
        """What it takes."""
        return step.frame.total(step.chosen) or []

    def worth(self, frame: Frame, total: Sequence[int], *, last: bool) -> tuple[int, int]:
        """How far limits are not kept, then what is minimised."""
        measure = self.measure if last or self.measure not in ("energy", "score") else "period"
        over = sum(max(0, row.of(total) - (row.most or 0)) for row in caps(frame, self.most) if row.most is not None)
        return over, measured(frame, total)[measure]

    def technique(self, technique: str) -> None:
        """A technique at all layers that have it; then only where the layer is faster."""
        now = self.now
        everywhere, selected = list(now.chosen), list(now.chosen)
        for i, layer in enumerate(now.frame.layers):
            other = _switched(now.frame, layer, i, now.chosen[i], technique)
            if other is not None:
                everywhere[i] = other
                times = now.frame.takes[i][:, : now.frame.loss].sum(axis=1)
                selected[i] = other if times[other] < times[now.chosen[i]] else now.chosen[i]
        self.add(technique, now.frame, everywhere)
        if selected != everywhere:
            self.add(f"selected {technique}", now.frame, selected)

    def frames(self, name: str, alike: object, *, last: bool = False) -> None:
        """Another frame for the same options, the best of some."""
        now = self.now
        others = [f for f in self.all if f.setting is now.frame.setting and f is not now.frame and alike(f, now.frame)]  # type: ignore[operator]
        made = [(self.worth(f, total, last=last), k) for k, f in enumerate(others) if (total := f.total(now.chosen))]
        if made:
            self.add(name, others[min(made)[1]], now.chosen, last=last)


def _switched(frame: Frame, layer: VariantLayer, i: int, o: int, technique: str) -> int | None:
    """The fastest option that has one technique more than option o, on its stage; None if there is none."""
    mine = layer.options[o]
    wanted = {*mine.techniques, technique}
    there = [
        k for k, option in enumerate(layer.options) if option.stage == mine.stage and {*option.techniques} == wanted
    ]
    times = frame.takes[i][:, : frame.loss].sum(axis=1)
    return min((k for k in there if k != o), key=lambda k: int(times[k]), default=None)


def everywhere(frames: Sequence[Frame]) -> Iterator[tuple[Frame, list[int]]]:
    """Yield all techniques at all layers, in every frame, those with the most cuts first."""
    for frame in sorted(frames, key=lambda frame: -len(frame.cuts)):
        chosen = bases(frame)
        for technique in frame.setting.variants.techniques:
            for i, layer in enumerate(frame.layers):
                other = _switched(frame, layer, i, chosen[i], technique)
                chosen[i] = chosen[i] if other is None else other
        yield frame, chosen


def nowhere(frames: Sequence[Frame]) -> Iterator[tuple[Frame, list[int]]]:
    """Yield the base of all layers, in every frame."""
    for frame in frames:
        yield frame, bases(frame)


def bases(frame: Frame) -> list[int]:
    """Return the base option of every layer."""
    return [layer.options.index(layer.base) for layer in frame.layers]
