"""Two layers of a tiny network that take turns, the second of which makes each channel from one of the first.

It may be a sum with maps from outside, which are there as a whole before the first block.

A step is a block of c of K channels: both layers compute them, the weights of these channels are loaded for it. In all
blocks of a visit as much room is taken as in the fullest one: while block i is on, c channels of the map between have
the rows that are made of it, i c those that are left behind the second layer, and the others those of the visit before.
The piece of the result is there from the first block on, and is stored behind the last one.

An example: 8 channels of 4 pixels, 4 filters of one tap, a pool of all pixels. In blocks of a channel 32 bytes of the
input, 4 of the map between, 4 of the result and a filter of 8 lie there: 48.

Filters that stay come block by block in the first visit; the others in each visit in which their layer makes something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

from tests.adversary.network_time_events import Move
from tests.adversary.network_time_groups import Beside, Groups, Part, Stream, Strips
from tests.adversary.network_time_nets import Tiny


class Turn(NamedTuple):
    """A visit: rows that both layers make, and bytes of strips in every block."""

    visit: int
    rows: tuple[int, int]
    held: int


def passing(case: Tiny, first: int, last: int) -> bool:
    """Whether two layers may take turns so, of which the first has weights."""
    if last != first + 1:
        return False
    made, reads = case.made[first], case.made[last]
    if case.readers[last] != [last] or not made.filters or made.made[0] == 1:
        return False
    if reads.kind == "add":
        return reads.reads.count(last) == 1
    return reads.reads == (last,) and reads.kind in ("deep", "pool", "global")


def blocks_of(channels: int) -> Iterator[int]:
    """Yield the channels that a block may have."""
    return (size for size in range(1, channels) if channels % size == 0)


def turns(strips: Strips, channels: int, maps: Iterable[int]) -> list[Turn]:
    """The visits in which something is made, in blocks of so many channels."""
    case, first, last = strips.case, strips.first, strips.last
    between, result, *outside = strips.streams
    every, _, width = case.maps[last]
    found = list[Turn]()
    for v in range(1, strips.visits + 1):
        rows = tuple(one.ends[v] - one.ends[v - 1] for one in (between, result))
        if not any(rows):
            continue
        held = sum(_bytes(strips, one, v, max(first, one.maker)) for one in outside if one.store not in maps)
        held += _bytes(strips, result, v, last) if result.store not in maps else 0
        before, made, after = (strips._held(between, v, t) for t in (first - 1, first, last + 1))
        taken = [
            width * (channels * made + low * after + (every - low - channels) * before)
            for low in range(0, every, channels)
        ]
        found.append(Turn(v, (rows[0], rows[1]), held + max(taken)))
    return found


def _bytes(strips: Strips, one: Stream, v: int, t: int) -> int:
    return strips._held(one, v, t) * strips.row_bytes(one.store)


def parts(groups: Groups, first: int, last: int, near: Beside) -> Iterator[Part]:
    """Yield all ways in turns that find room."""
    case = groups.case
    for strips in groups.strips(first, last, near) if passing(case, first, last) else ():
        for channels in blocks_of(case.maps[last][0]):
            visits = turns(strips, channels, near.maps)
            if case.memory < near.bytes + max(one.held for one in visits):
                continue
            again = [sum(one.rows[k] > 0 for one in visits) > 1 for k in (0, 1)]
            filters = [case.made[t].filters if more else 0 for t, more in zip((first, last), again, strict=True)]
            for stay in product(*(range(number + 1) for number in filters)):
                for each in {channels, 1}:
                    for sizes in groups._sizes(strips, strips.makings(near.maps), near):
                        part = laid(case, strips, visits, near, channels, stay, each, sizes)
                        if max(size for _, size in part.steps) <= case.memory:
                            yield part


def laid(
    case: Tiny, strips: Strips, visits: list[Turn], near: Beside, channels: int, stay: tuple[int, ...], each: int,
    sizes: dict[int, int],
) -> Part:  # fmt: skip
    """The steps and transfers of a way."""
    part, kept, begins, ends = Part(), 0, dict[int, int](), dict[int, int]()
    for n, turn in enumerate(visits):
        begins[turn.visit] = len(part.steps) + 1
        for low in range(0, case.maps[strips.last][0], channels):
            ticks = here = 0
            for k, t in enumerate((strips.first, strips.last)):
                size = case.made[t].filter_bytes
                ticks += case.compute(t, turn.rows[k], channels) if turn.rows[k] else 0
                stays, comes = loaded(case, turn, k, t, range(low, low + channels), stay[k], first=n == 0)
                kept, here = kept + len(stays) * size, here + len(comes) * size
                for some in (stays, comes):
                    for at in range(0, len(some), each):
                        number = len(some[at : at + each])
                        part.moves.append(Move(True, case.moved(number * size), number * size, len(part.steps) + 1))
            part.steps.append((ticks, near.bytes + turn.held + kept + here))
        ends[turn.visit] = len(part.steps)
    for load, k, rows, at in moved(strips, near.maps, begins, ends):
        number = -(-(rows[1] - rows[0]) // sizes[k])
        height, store = -(-(rows[1] - rows[0]) // number), strips.streams[k].store
        for begin in range(*rows, height):
            end = min(rows[1], begin + height)
            size = (end - begin) * strips.row_bytes(store)
            part.moves.append(
                Move(load, strips.box(store, end - begin), size, at, store, strips.dense(store, begin, end))
            )
    part.says = f"{strips.first}, {strips.last} by {strips.height} in turns of {channels}, {stay} stay, by {each}"
    return part


def loaded(case: Tiny, turn: Turn, k: int, t: int, block: range, stay: int, *, first: bool) -> tuple[range, range]:
    """Filters of a block that are loaded to stay, and for this step alone."""
    if not case.made[t].filters:
        return range(0), range(0)
    cut = min(max(block.start, stay), block.stop)
    return range(block.start, cut if first else block.start), range(cut, block.stop if turn.rows[k] else cut)


def moved(
    strips: Strips, maps: Iterable[int], begins: dict[int, int], ends: dict[int, int]
) -> Iterator[tuple[bool, int, tuple[int, int], int]]:
    """Yield the rows of every stream that are loaded and stored, with the step."""
    for k, one in enumerate(strips.streams):
        for v, rows in enumerate(pairwise(one.ends), 1):
            if rows[0] == rows[1] or one.store in maps:
                continue
            if one.outside:
                yield True, k, rows, min((step for n, step in begins.items() if n >= v), default=max(ends.values()))
            elif one.maker == strips.last:
                yield False, k, rows, ends[v]
