"""What happens in a timeline of fusion, one event after the other: steps of the engine, loads and stores of the DMA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from formulations.fusion.groups import Net
from formulations.fusion.latency.timelines import Laid
from formulations.fusion.orders import WHOLE
from formulations.fusion.steps import Piece
from hwmodels.timeline.price import occupancy
from hwmodels.timeline.schedule import Load, Move
from instances.machine.machine import Machine

#: What an operand is called.
_NAMES = {"W": "weights", "PSUM": "partial sums"}


@dataclass(frozen=True)
class Event:
    """A step of the engine, or a transfer."""

    lane: Literal["engine", "load", "store"]
    run: int
    """The layer or group, by number, that it is part of."""
    what: str
    """The layer that is computed, or what is moved, for people."""
    bytes: int
    """On chip in a step, what is prefetched and yet to be stored included; or that are moved."""
    begin: int
    end: int
    """`begin`, `end`: ticks."""
    step: int
    """The number of a step, from 1; the step that reads a load; the step that makes what is stored."""
    when: int = 0
    """Of a load the first step that it may lie beside; of a store the step that waits for it."""
    waits: int = 0
    """Ticks that a step waits for transfers."""
    waits_for: str = ""
    """The last one that it waits for."""
    waits_lane: Literal["", "load", "store"] = ""
    """Whether that is a load or a store."""
    memory: str = ""
    """The memory off the chip whose DMA queue a transfer is in, where several have one each."""


def memories_of(machine: Machine) -> tuple[str, ...]:
    """The memories off the chip that have a DMA queue each, by the numbers of these; none where one queue moves all."""
    return tuple(one.name for one in machine.off_chip) if machine.channels == "each" else ()


def events(net: Net, laid: Laid, memories: Sequence[str] = ()) -> Iterator[Event]:
    """Yield steps, then transfers in the order of their queues; `memories`: the names of these, where each has one."""
    found, moves = laid.times, laid.timeline.transfers
    named = [(run, *one) for run, part in enumerate(laid.parts) for one in zip(part.names, part.pieces, strict=True)]
    said = [(named[k][0], words(net, named[k][1], named[k][2])) for k in laid.order]
    waits = {one.step: one for one in found.waits}
    steps = chain.from_iterable(((run, t) for t in part.layers) for run, part in enumerate(laid.parts))
    for step, ((run, t), size) in enumerate(zip(steps, occupancy(laid.timeline).tolist(), strict=True), 1):
        wait, span = waits.get(step), (found.begin[step - 1], found.end[step - 1])
        late = (wait.ticks, said[wait.transfer][1], _lane(moves[wait.transfer])) if wait else (0, "")
        yield Event("engine", run, net.layers[t].name, size, *span, step, 0, *late)
    for k, one in enumerate(moves):
        step, when = (one.due, one.guard) if isinstance(one, Load) else (one.released, one.limit)
        span = found.transfer_begin[k], found.transfer_end[k]
        memory = memories[one.queue] if memories else ""
        yield Event(_lane(one), said[k][0], said[k][1], one.bytes, *span, step, when, memory=memory)


def _lane(one: Move) -> Literal["load", "store"]:
    return "load" if isinstance(one, Load) else "store"


def words(net: Net, name: tuple[str, int], pieces: tuple[Piece, ...]) -> str:
    """What a transfer moves, for people."""
    operand, layer = name
    if operand in _NAMES:
        return f"{_NAMES[operand]} of {net.layers[layer].name}"
    return ", ".join(_piece(net, piece) for piece in pieces) or f"inputs of {net.layers[layer].name}"


def _piece(net: Net, piece: Piece) -> str:
    store = net.stores[piece.store]
    part = [f"rows {piece.begin}-{piece.end - 1}"] if piece.end - piece.begin < store.rows else []
    if piece.last < WHOLE and (piece.first or not part):
        part.append(f"channels {piece.first}-{piece.last - 1}")
    return f"{store.name} {', '.join(part)}".strip()
