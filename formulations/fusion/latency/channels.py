"""The DMA queues of a machine (`Machine.channels`) as clocks count them: which operands each one moves, at which price.

Results are stored by the last channel; partial sums are loaded by it, too. A machine with one queue for several
memories has one channel, in which a byte that is loaded ahead takes as long as the dearest. What it does is also done
by a queue for each of its memories (`apart`), which run at the same time: no later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from instances.machine.machine import Machine


class Price(NamedTuple):
    """Ticks."""

    byte: int
    call: int
    """Of a transfer, beside its runs of addresses."""
    segment: int
    """Of a run."""

    @property
    def least(self) -> int:
        """Of a transfer of a byte."""
        return self.byte + self.call + self.segment


@dataclass(frozen=True)
class Channels:
    """Channels of operands, and what they take."""

    queues: tuple[int, ...]
    """Of every channel a number of its own; with the queues of the machine as channels that of the queue."""
    inputs: int
    weights: int
    """`inputs`, `weights`: the channel that loads them; results have the last one."""
    of_inputs: Price
    of_weights: Price
    of_results: Price

    @classmethod
    def of(cls, machine: Machine, *, apart: bool = False) -> Channels:
        """Those of a machine; `apart`: as if each memory off the chip had one."""
        w, x, y = (machine.memory_number(op) if apart else machine.channel_of(op) for op in ("W", "IN", "OUT"))
        queues = (*(queue for queue in dict.fromkeys((w, x)) if queue != y), y)
        prices = (
            Price(one.byte_ticks, one.call_ticks, one.segment_ticks)
            for one in (machine.transfer_of(op) for op in ("IN", "W", "OUT"))
        )
        return cls(queues, queues.index(x), queues.index(w), *prices)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.queues)

    @property
    def results(self) -> int:
        """The channel of results."""
        return len(self.queues) - 1

    @property
    def alike(self) -> bool:
        """Whether it does not matter which bytes are of an input and which of weights."""
        return self.inputs == self.weights and self.of_inputs == self.of_weights

    @property
    def ahead(self) -> tuple[int, ...]:
        """Of every channel the most ticks of a byte, without calls."""
        return tuple(max(each) for each in self._bytes)

    @property
    def least(self) -> tuple[int, ...]:
        """Of every channel the fewest ticks of a byte, without calls."""
        return tuple(min(each) for each in self._bytes)

    @property
    def _bytes(self) -> list[list[int]]:
        each = (self.inputs, self.of_inputs), (self.weights, self.of_weights), (self.results, self.of_results)
        return [[price.byte for at, price in each if at == c] for c in range(self.number)]
