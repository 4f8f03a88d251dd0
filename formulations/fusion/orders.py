"""Demands on the order of a plan's transfers, and the sizes of transfers that are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.prefetch.forward import forward
from formulations.prefetch.guards import Draft, Order, When
from hwmodels.schedule import Queue
from hwmodels.timeline.schedule import Load, Timeline

#: The most bytes of a transfer of weights.
MOST_BYTES = 2**16
#: More bytes than a transfer has.
WHOLE = 2**62
#: The most bytes of a block of weights, and of a transfer of a map.
Size = tuple[int, int]


@dataclass(frozen=True)
class OrderDemands:
    """What is asked of the order of transfers."""

    ahead: bool = True
    """Whether a transfer may run beside a step."""
    groups: int | None = None
    """How many groups ahead of its own a load may begin."""
    transfer: int | None = None
    """The most bytes of a transfer of a group."""
    due: bool = False
    """Whether loads are in the order of the steps that they are due in."""

    @property
    def fixed(self) -> bool:
        """Whether transfers may not be put off."""
        return self.due or not self.ahead

    @property
    def largest(self) -> int:
        """The most bytes of a block of weights, in memories of any size."""
        return MOST_BYTES if self.transfer is None else min(MOST_BYTES, self.transfer)

    def sizes(self, room: int) -> list[Size]:
        """The most bytes of blocks of weights, and of transfers of maps, that are tried."""
        first, *others = sizes_of(room)
        every = [(first, first), (first, WHOLE), *((most, most) for most in others)]
        most = WHOLE if self.transfer is None else self.transfer
        return list(dict.fromkeys((min(most, weights), min(most, maps)) for weights, maps in every))

    def order(self, draft: Draft) -> tuple[Order, When]:
        """The best order that is found."""
        if not self.ahead:
            return draft.apart(), draft.close
        return draft.soon(due=True) if self.due else draft.soon(forward(draft))

    def broken(self, queue: Queue, timeline: Timeline) -> Iterator[str]:
        """Yield the demands that a queue does not keep."""
        if not self.ahead and any(
            one.guard < one.due if isinstance(one, Load) else one.limit > one.released + 1 for one in timeline.transfers
        ):
            yield "transfers run beside steps, which pin prefetch=no forbids"
        if self.transfer is not None and max(queue.weights, queue.maps or WHOLE) > self.transfer:
            yield f"transfers of more than {self.transfer:,} bytes, which pin transfer<={self.transfer} forbids"
        if self.due:
            due = dict[int, int]()
            for one in timeline.transfers:
                if isinstance(one, Load) and one.due < due.get(one.queue, 0):
                    yield "loads are not in the order of their steps, as pin queue=due demands"
                    break
                if isinstance(one, Load):
                    due[one.queue] = one.due


def queued(sizes: Sequence[Size], order: Order, when: When) -> Queue:
    """An order as a plan has it, with blocks of weights and transfers of maps of at most so many bytes, by run."""
    made = tuple((weights, None if maps == WHOLE else maps) for weights, maps in sizes)
    weights, maps = (max(one) for one in zip(*sizes, strict=True))
    by_run = made if len(set(made)) > 1 else ()
    return Queue(weights, None if maps == WHOLE else maps, tuple(order), tuple(when[k] for k in order), by_run)


def sizes_of(room: int) -> tuple[int, ...]:
    """The most bytes of blocks and transfers of weights that are tried, the most first.

    A quarter of the memory, but 8 KiB to 128 KiB, and a half, a quarter and an eighth of that; of a memory of less than
    8 KiB an eighth and a sixteenth, too.
    """
    most = min(2 * MOST_BYTES, 2 ** max(13, (room // 4).bit_length() - 1))
    small = (max(1, room // 8), max(1, room // 16)) if room < 2**13 else ()
    return (most, most // 2, most // 4, most // 8, *small)
