"""What no nest of a layer by itself is below: every operand is whole on chip, or moved in pieces, or again.

A nest has its largest tiles beside every step (`NestSteps`): what they leave of the memory is loaded ahead. What it
needs follows from which loops stand outside of others. Of a layer with w bytes of weights, i of its input and o of its
result (0 where a map stays on chip), in f bytes; sums of all results take s bytes while inputs are missing:

    whole       the weights are one tile: w bytes lie beside every step
    again       rows or columns stand outside of some loop that cuts the weights: these are loaded P >= 2 times, in each
                of P pieces of the map. Then the input is loaded again, or sums are stored and loaded, or a tile has the
                input of a piece of the map, or all its sums: i / P or s / P bytes, at least
    in pieces   all rows and columns lie inside of the loops that cut the weights: each is loaded once. The filters are
                cut in P pieces, before (outside of) inputs and the kernel, if these are cut at all. Then
                    the input is one tile (i bytes, and what strides skip), or is loaded P times;
                    if filters alone are cut, weights of a piece are one tile (w / P), and a tile of the result has
                    o / Q bytes, in Q <= P pieces, or less in Q = P pieces; where channels lie together every pixel is
                    stored in Q runs;
                    if not, all sums of a piece are one tile (s / P), stored in P runs a pixel; or what is added up is
                    cut in k parts, and sums are stored and loaded k - 1 times: then a tile has w / (k P) bytes of the
                    weights, or, where parts are cut again, s / P of sums that stay for all of these; and the input is
                    loaded P times, or a tile has i / k bytes of it

Lanes compute a piece of the filters in a round at least: R rounds become P, if P is more. Every piece is a transfer of
its own. Of P as many as `spans` says are looked at together: the first one for what rises with P, the last for tiles.

Two tiles of an operand find room together, or none is loaded (stored) while the engine computes: then it idles for all
of them but the first (the last), which is no larger than the room. So large P mean runs, rounds, or the input again and
again, and small ones that little is loaded ahead. An example: 256 filters of 1,024 bytes in 56 KiB, the input on chip:
5 pieces fit, with 10 the next one is loaded ahead; then 196 pixels are stored in 1,960 runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from formulations.fusion.latency.channels import Price

#: How much larger the last number of pieces is that is looked at together with the first one, in halves; from how many
#: on all are.
_WIDER, _MANY = 3, 10000
#: Weights are loaded again so many times in all, or more often.
_AGAIN = 2, 3


@dataclass(frozen=True)
class Alone:
    """A layer by itself: what it moves and computes at least, and its memory."""

    compute: int
    """Ticks."""
    filters: int
    rounds: int
    """In which lanes compute all filters."""
    weights: int
    inputs: int
    stored: int
    """`weights`, `inputs`, `stored`: bytes that are in DRAM."""
    results: int
    sums: int
    """`results`, `sums`: bytes of all of them on chip."""
    again: int
    """Bytes of weights that a further piece of the map needs at least."""
    box: int
    """Bytes of the input as one tile: what strides skip is part of it."""
    passed: int
    """Ticks of the input once, in tiles that skip what strides do or not (`passed`)."""
    run: int
    """Ticks of the runs of a result of which every pixel is one; 0 if channels do not lie together."""
    slices: int
    """Ticks of the runs of an input of which every pixel is one; 0 likewise."""
    channels: int
    """Of the input."""
    taps: int
    """Products that are added up for a result."""
    parts: tuple[int, int] | None
    """Bytes of an input that are loaded again for a second part of the kernel, and that every part reads, at least.

    None where the kernel cannot be cut.
    """
    of_inputs: Price
    of_weights: Price
    of_results: Price
    """What transfers take of the queue that is looked at: nothing, if another queue moves them."""
    room: int
    others: int = 0
    """Bytes of weights that are loaded once, in whatever pieces."""
    late: int = 0
    """Ticks of calls of weights, where those of most transfers do not count (`bare`)."""

    def bare(self, memory: int) -> Alone:
        """The same by bytes alone, and by calls for weights beyond so many bytes.

        What a layer loads may be on chip when it begins, in transfers of any size, and what it stores is yet to be
        stored then: only bytes tell how many ticks that takes at the most. Of weights no more than all memory is there;
        the others come in transfers of at most as many bytes.
        """
        x, w, y = (one._replace(call=0, segment=0) for one in (self.of_inputs, self.of_weights, self.of_results))
        calls = -(-max(0, self.weights - memory) // memory)
        return replace(
            self, of_inputs=x, of_weights=w, of_results=y, run=0, slices=0, passed=self.inputs * x.byte,
            late=calls * (self.of_weights.call + self.of_weights.segment),
        )  # fmt: skip


class Axis(NamedTuple):
    """Rows or columns of an input that are read."""

    read: int
    """How many."""
    runs: int
    """Runs of neighbours that they are."""
    gap: int
    """The most that lie between two runs."""
    span: int
    """From the first to the last one."""


class Kind(NamedTuple):
    """What some nests are not below."""

    compute: int
    """Ticks of the engine, idle ones included."""
    loads: int
    stores: int
    """`loads`, `stores`: ticks of the queue."""
    own: int = 0
    """Bytes beside every step."""
    first: int = 0
    """Ticks of loads that the first step waits for."""


def kinds(layer: Alone) -> Iterator[Kind]:
    """Yield kinds of which every nest is one; of layers without weights there is one alone.

    Of other prices of the same layer they are the same kinds, in the same order.
    """
    price = layer.of_weights
    weights = sum(size * price.byte + price.call + price.segment for size in (layer.weights, layer.others) if size)
    loads = weights + layer.passed + layer.late
    plain = Kind(layer.compute, loads, _stored(layer, 1))
    if not layer.weights:
        yield plain
        return
    if layer.weights <= layer.room:
        yield plain._replace(own=layer.weights, first=layer.weights * layer.of_weights.byte)
    yield from _again(layer, plain)
    yield from _of_filters(layer, plain)
    yield from _of_sums(layer, plain)


def _again(layer: Alone, plain: Kind) -> Iterator[Kind]:
    """Weights are loaded several times."""
    again, often = layer.again * layer.of_weights.byte, max(_AGAIN)
    for times in _AGAIN:
        own = -(-min(layer.inputs, layer.sums) // times)
        if own <= layer.room:
            yield plain._replace(loads=plain.loads + (times - 1) * again, own=own)
    yield plain._replace(loads=plain.loads + often * again)
    for more in (layer.inputs * layer.of_inputs.byte, 2 * layer.sums * layer.of_results.byte):
        yield plain._replace(loads=plain.loads + again + more)


def _of_filters(layer: Alone, plain: Kind) -> Iterator[Kind]:
    """Filters alone are cut, and weights are loaded once."""
    moved = layer.weights, layer.of_weights.byte
    for low, high in spans(2, layer.filters):
        tile = -(-layer.weights // high)
        for kind in _cut(layer, plain, low):
            yield from _fitting(kind._replace(stores=_stored(layer, low)), layer, tile, moved)
            for fewer, most in spans(1, low) if layer.stored else ():
                own = kind.own + -(-layer.results // most)
                some = kind._replace(stores=_stored(layer, fewer), own=own)
                yield from _fitting(some, layer, tile, moved)


def _of_sums(layer: Alone, plain: Kind) -> Iterator[Kind]:
    """Inputs or the kernel are cut, and weights are loaded once."""
    moved = layer.stored, layer.of_results.byte
    yield from _in_parts(layer, plain)
    for low, high in spans(1, layer.filters):
        tile = -(-layer.sums // high)
        for kind in _cut(layer, plain, low):
            kind = kind._replace(stores=_stored(layer, low))
            for some in (kind,) if kind.own or not layer.inputs else _sliced(layer, kind, low, high):
                yield from _fitting(some, layer, tile, moved)


def _in_parts(layer: Alone, plain: Kind) -> Iterator[Kind]:
    """What is added up is cut in parts, between which sums are off the chip."""
    again, each = layer.sums * layer.of_results.byte, layer.of_inputs.byte
    for parts, most in spans(2, layer.taps):
        more = (parts - 1) * again
        for low, high in spans(1, layer.filters):
            tile, compute = -(-layer.weights // (most * high)), _in_rounds(layer, low)
            kind = plain._replace(compute=compute, loads=plain.loads + more, stores=plain.stores + more)
            ways = [kind._replace(loads=kind.loads + (low - 1) * layer.inputs * each)]
            if low > 1 and layer.inputs:
                ways.append(kind._replace(own=-(-layer.inputs // most)))
            for way in ways:
                yield from _fitting(way, layer, tile, (layer.weights, layer.of_weights.byte))
                yield from _fitting(way, layer, -(-layer.sums // high), (0, 0))


def _in_rounds(layer: Alone, pieces: int) -> int:
    """Ticks of computing filters in so many pieces."""
    return -(-layer.compute * max(pieces, layer.rounds) // layer.rounds)


def _sliced(layer: Alone, kind: Kind, low: int, high: int) -> Iterator[Kind]:
    """An input that is no one tile: in slices of its channels, or for parts of the kernel.

    Of all slices a tile has the weights of one piece of the filters, if the input is not whole there.
    """
    for fewer, most in spans(2, layer.channels):
        tile = -(-min(-(-layer.weights // high), layer.inputs) // most)
        yield kind._replace(
            own=kind.own + tile, loads=kind.loads + max(0, low * fewer * layer.slices - layer.of_inputs.segment)
        )
    if layer.parts is not None:
        more, tile = layer.parts
        yield kind._replace(loads=kind.loads + low * more * layer.of_inputs.byte)
        yield kind._replace(own=kind.own + tile)


def _cut(layer: Alone, plain: Kind, pieces: int) -> Iterator[Kind]:
    """The input is one tile, or loaded for each piece of the filters."""
    compute = _in_rounds(layer, pieces)
    more = (pieces - 1) * (layer.of_weights.call + layer.of_weights.segment)
    each = layer.of_inputs.byte
    yield plain._replace(compute=compute, loads=plain.loads + more + (pieces - 1) * layer.passed)
    if layer.inputs:
        more += layer.box * each + layer.of_inputs.call + layer.of_inputs.segment - layer.passed
        yield plain._replace(compute=compute, loads=plain.loads + more, own=layer.box, first=layer.box * each)


def _stored(layer: Alone, pieces: int) -> int:
    """Ticks of a result that is stored in pieces of its channels."""
    price = layer.of_results
    run = max(price.segment, layer.run) if pieces > 1 else price.segment
    return layer.stored * price.byte + pieces * (price.call + run) if layer.stored else 0


def _fitting(kind: Kind, layer: Alone, tile: int, moved: tuple[int, int]) -> Iterator[Kind]:
    """The kind with a tile more, through which bytes are moved, in ticks each, if that fits.

    Without room for a second one the engine idles for all of them but one.
    """
    left, (size, each) = layer.room - kind.own, moved
    if tile <= left:
        idle = max(0, size - left) * each if 2 * tile > left else 0
        yield kind._replace(compute=kind.compute + idle, own=kind.own + tile)


def passed(bytes_: int, rows: Axis, columns: Axis, price: Price) -> int:
    """Ticks of loading a map of so many bytes once, at the least, in tiles of rows and columns.

    A gap between rows that are read is skipped by one more tile, alike of columns: p by q tiles take p q calls, and the
    bytes of (span - (p - 1) gap) rows by as many columns. That is linear in p and in q, so least at one of four ends.
    """
    if not bytes_:
        return 0
    least = []
    for p in (1, rows.runs):
        for q in (1, columns.runs):
            high, wide = rows.span - (p - 1) * rows.gap, columns.span - (q - 1) * columns.gap
            size = bytes_ * max(high, rows.read) * max(wide, columns.read) // (rows.read * columns.read)
            least.append(size * price.byte + p * q * (price.call + price.segment))
    return min(least)


def spans(first: int, most: int) -> Iterator[tuple[int, int]]:
    """Numbers from a first one to `most` as ranges, each from its first to its last one."""
    while first <= most:
        last = most if first > _MANY else min(most, first * _WIDER // 2)
        yield first, last
        first = last + 1
