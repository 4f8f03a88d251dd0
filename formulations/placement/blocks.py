"""Buffers that live for some time, and greedy orders in which they are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A buffer: bytes by time, one after the other from `begin` on, at one address all the time."""

    name: str
    begin: int
    sizes: tuple[int, ...]

    @property
    def end(self) -> int:
        """The time after the last one."""
        return self.begin + len(self.sizes)

    @property
    def area(self) -> int:
        """Bytes times time."""
        return sum(self.sizes)


#: Orders in which buffers are placed one by one: by size, by lifetime, by both, by time.
ORDERS: Mapping[str, Callable[[Block], tuple[int, ...]]] = {
    "size": lambda block: (-max(block.sizes), block.begin),
    "lifetime": lambda block: (-len(block.sizes), -max(block.sizes)),
    "area": lambda block: (-block.area, block.begin),
    "time": lambda block: (block.begin, -max(block.sizes)),
}


def first_fit(blocks: Sequence[Block], capacity: int, order: str) -> dict[str, int] | None:
    """Place every buffer at the lowest address where it meets none of those before; None if one has no room."""
    found: dict[str, int] = {}
    done: list[Block] = []
    for block in sorted(blocks, key=ORDERS[order]):
        address = next(a for a in sorted({0, *_tops(block, done, found)}) if not _meets(block, a, done, found))
        if address + max(block.sizes) > capacity:
            return None
        found[block.name] = address
        done.append(block)
    return found


def together(one: Block, two: Block) -> Iterator[tuple[int, int]]:
    """Yield the sizes of two buffers at every time at which both live."""
    for t in range(max(one.begin, two.begin), min(one.end, two.end)):
        yield one.sizes[t - one.begin], two.sizes[t - two.begin]


def _tops(block: Block, done: Sequence[Block], found: Mapping[str, int]) -> Iterator[int]:
    for other in done:
        for _, size in together(block, other):
            yield found[other.name] + size


def _meets(block: Block, address: int, done: Sequence[Block], found: Mapping[str, int]) -> bool:
    return any(
        address < found[other.name] + its and found[other.name] < address + mine
        for other in done
        for mine, its in together(block, other)
    )
