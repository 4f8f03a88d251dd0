"""What follows from a selection beside its measures: what layers take, and how busy threads are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.selection.frame import Frame


@dataclass(frozen=True)
class LayerFigures:
    """What is chosen for a layer takes."""

    layer: str
    type: str
    """Element type that it reads and writes."""
    techniques: tuple[str, ...]
    time: int
    """Ticks, at the chosen frequency and size."""
    between: int
    """Ticks of its stage for conversions and hand-overs of its map, and for maps that it is handed."""
    loss_ppm: int
    bytes: int


@dataclass(frozen=True)
class ThreadLoad:
    """A thread of the pipeline: stages that work on one image, one after the other."""

    stages: tuple[str, ...]
    load: int
    """Busy ticks of a period."""


@dataclass(frozen=True)
class SelectionFigures:
    """All layers, in their order, and all threads."""

    layers: tuple[LayerFigures, ...]
    threads: tuple[ThreadLoad, ...]


def figures_of(frame: Frame, chosen: Sequence[int], total: Sequence[int]) -> SelectionFigures:
    """Return the figures of options by number, and of what they take by quantity."""
    return SelectionFigures(tuple(_layers(frame, chosen)), tuple(_threads(frame, total)))


def _threads(frame: Frame, total: Sequence[int]) -> Iterator[ThreadLoad]:
    for thread in range(max(frame.threads) + 1):
        mine = [s for s, number in enumerate(frame.threads) if number == thread]
        yield ThreadLoad(tuple(frame.stages[s] for s in mine), sum(total[s] for s in mine))


def _layers(frame: Frame, chosen: Sequence[int]) -> Iterator[LayerFigures]:
    """Conversions and sends belong to the layer that made a map, receives to its reader."""
    states = [frame.states[i][frame.state[i][o]] for i, o in enumerate(chosen)]
    between = [0] * len(chosen)
    for i, readers in enumerate(frame.readers):
        for kind in dict.fromkeys(states[j][1] for j in readers):
            between[i] += frame.convert(i, states[i], kind) or 0
        for j in readers:
            hand = frame.hand(i, states[i], states[j])
            between[i] += hand.get(states[i][0], 0)
            between[j] += hand.get(states[j][0], 0) if states[i][0] != states[j][0] else 0
    for i, (layer, o) in enumerate(zip(frame.layers, chosen, strict=True)):
        option, stage = layer.options[o], states[i][0]
        yield LayerFigures(
            layer=layer.name, type=option.type, techniques=option.techniques, time=int(frame.takes[i][o][stage]),
            between=between[i], loss_ppm=option.loss_ppm, bytes=option.bytes,
        )  # fmt: skip
