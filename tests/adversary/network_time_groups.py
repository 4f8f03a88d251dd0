"""All ways to run some layers of a tiny network together: rows by visit, bytes by step, transfers.

An example: a layer of 3 taps and padding 1 behind another one, in strips of a row of its 3 rows. Its row 0 needs rows 0
and 1 of the map between, which need rows 0 to 2 of the input. Visit 1 makes all of that; or, with warm-up, visit 0
makes row 0 of the map between, what that is ahead.

Rows of a map lie on chip from when they come up to the last reader that has yet to see them, reader by reader. Filters
that stay do so from their first step to the last one of their layer; others come again in every visit.

A map from outside of which all its readers read single pixels, with as many others between, is loaded whole or
`sampled`: those pixels alone, in as many segments as there are runs of addresses; a transfer waits for all rows from
its first to its last one.

Left out: bytes of a filter that stays in part but for what is left of the room; blocks of filters that differ from
visit to visit behind the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product
from math import lcm
from typing import NamedTuple

from tests.adversary.network_time_events import Move
from tests.adversary.network_time_nets import Layer, Tiny, pieces

NEVER = 2**30


@dataclass(frozen=True)
class Stream:
    """A map on its way through a group."""

    store: int
    maker: int
    """The layer that makes it, or the first one that reads what is loaded."""
    readers: tuple[int, ...]
    outside: bool
    ends: tuple[int, ...] = ()
    """How many rows have been made or loaded after every visit; 0 first."""


class Made(NamedTuple):
    """What a layer makes in a visit, the rows that are loaded for it, and the bytes of strips meanwhile."""

    layer: int
    visit: int
    rows: int
    held: int
    begin: int = 0
    """The first of its rows."""

    @property
    def span(self) -> tuple[int, int]:
        """Its rows."""
        return self.begin, self.begin + self.rows


class Piece(NamedTuple):
    """Rows of a map that are moved for a layer in a visit, or behind it; which of the makings that is."""

    load: bool
    stream: int
    rows: tuple[int, int]
    at: int


@dataclass
class Part:
    """Steps of a run with their bytes, and its transfers; steps count from 1."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    says: str = ""

    @cached_property
    def moving(self) -> int:
        """Ticks of all transfers."""
        return sum(one.ticks for one in self.moves)

    @cached_property
    def opening(self) -> int:
        """Ticks of loads before the first step, the most of all queues."""
        first = [one for one in self.moves if one.load and one.step == 1]
        return max(sum(one.ticks for one in first if one.queue == queue) for queue in (0, 1))

    @cached_property
    def closing(self) -> int:
        """Ticks of stores behind the last step."""
        return sum(one.ticks for one in self.moves if not one.load and one.step == len(self.steps))

    @cached_property
    def computing(self) -> int:
        """Ticks of all steps."""
        return sum(ticks for ticks, _ in self.steps)


class Beside(NamedTuple):
    """Maps that lie on chip as a whole while a run goes on, and all bytes that these take."""

    maps: frozenset[int]
    bytes: int


def beside(case: Tiny, first: int, last: int, stay: frozenset[int]) -> Beside:
    """What lies beside layers, if these maps stay from the run that makes them to the last one that reads them.

    A sum, or whatever else has no window, takes the place of a map that nobody else reads then.
    """
    maps = frozenset(
        k for k in stay
        if k - 1 <= last and case.readers[k][-1] >= first and (k - 1 < first or case.readers[k][-1] > last)
    )  # fmt: skip
    taken = sum(case.map_bytes(k) for k in maps)
    given = set[int]()
    for t in range(first, last + 1):
        layer, made = case.made[t], t + 1
        if layer.elementwise and made in maps and case.readers[made][-1] > last:
            free = [
                k for k in layer.reads
                if k in maps - given and 0 < k <= first and [u for u in case.readers[k] if u >= first] == [t]
            ]  # fmt: skip
            if free:
                given.add(free[0])
                taken -= case.map_bytes(made)
    return Beside(maps, taken)


class Strips:
    """A group in strips of so many rows of its last layer's map, with warm-up or without, maps `twice` loaded twice.

    Of maps that are `sampled` the rows are counted that are read.
    """

    def __init__(
        self, case: Tiny, first: int, last: int, height: int, *, warm: bool, twice: frozenset[int] = frozenset(),
        sampled: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.case, self.first, self.last, self.height, self.sampled = case, first, last, height, sampled
        self.layers = range(first, last + 1)
        self.streams, self.good, self.visits = list[Stream](), False, 0
        steps = self._advance()
        if steps is None:
            return
        streams = list(self._streams(twice))
        ahead, end = dict[int, int](), dict[int, int]()
        for k in sorted(range(len(streams)), key=lambda k: (streams[k].outside, -streams[k].maker)):
            mine, fronts, ends = streams[k], list[int](), list[int]()
            for u in mine.readers:
                layer, out = self.layer(u), u - first
                fronts.append((ahead[out] - 1) * layer.moves - layer.pad + layer.taps[0])
                ends.append(layer.needed(end[out]))
            if self._is_result(mine):
                fronts.append(0)
                ends.append(case.maps[mine.store][1])
            ahead[k], end[k] = max(fronts), max(ends)
        each = [steps[one.store] for one in streams]
        begin = 1 - max(0, *(-(-ahead[k] // each[k]) for k in range(len(streams)))) if warm else 1
        stop = max(-(-(end[k] - ahead[k]) // each[k]) for k, one in enumerate(streams) if self._is_result(one))
        self.streams = [
            Stream(one.store, one.maker, one.readers, one.outside, tuple(
                0 if n < begin else min(end[k], max(0, each[k] * n + ahead[k])) for n in range(begin - 1, stop + 1)
            ))
            for k, one in enumerate(streams)
        ]  # fmt: skip
        self.visits, self.good, self.warm = stop - begin + 1, True, begin < 1

    def _streams(self, twice: frozenset[int]) -> Iterator[Stream]:
        for t in self.layers:
            yield Stream(t + 1, t, tuple(u for u in self.case.readers[t + 1] if u <= self.last), False)
        for k in self.outside:
            readers = tuple(u for u in self.case.readers[k] if u in self.layers)
            for some in [(u,) for u in readers] if k in twice else [readers]:
                yield Stream(k, some[0], some, True)

    @property
    def outside(self) -> list[int]:
        """Maps that are read and not made here."""
        reads = dict.fromkeys(k for t in self.layers for k in self.case.made[t].reads)
        return [k for k in reads if k - 1 < self.first]

    @property
    def sampleable(self) -> list[int]:
        """Those of them of which all readers skip the same pixels."""
        readers = {k: [self.case.made[t] for t in self.layers if k in self.case.made[t].reads] for k in self.outside}
        return [
            k for k, some in readers.items() if all(one.skips for one in some) and len({x.stride for x in some}) == 1
        ]  # fmt: skip

    def layer(self, t: int) -> Layer:
        """A layer, on what is loaded of its map."""
        mine = self.case.made[t]
        return mine.sampled if self.sampled.intersection(mine.reads) else mine

    def pitch(self, k: int) -> int:
        """Rows (and columns, if there are several) of a map from one that is loaded to the next."""
        return self._reader(k).stride if k in self.sampled else 1

    def row_bytes(self, k: int) -> int:
        """Of a row of what lies on chip of a map."""
        return self.case.maps[k][0] * self._reader(k).made[2] if k in self.sampled else self.case.row_bytes(k)

    def box(self, k: int, rows: int) -> int:
        """Ticks of moving so many rows of a map."""
        if k not in self.sampled:
            return self.case.box(k, rows)
        there = self._addresses(k, rows)
        return self.case.moved(len(there), sum(at - 1 not in there for at in there))

    def _addresses(self, k: int, rows: int) -> set[int]:
        """Where the first rows of a map lie that is sampled."""
        (channels, high, wide), pitch = self.case.maps[k], self.pitch(k)
        places = product(range(0, rows * pitch, pitch), range(0, wide, pitch), range(channels))
        if self.case.channels_last:
            return {(row * wide + column) * channels + channel for row, column, channel in places}
        return {(channel * high + row) * wide + column for row, column, channel in places}

    def dense(self, k: int, begin: int, end: int) -> tuple[int, int]:
        """The rows of a map between the first one that is moved and the last one."""
        return begin * self.pitch(k), (end - 1) * self.pitch(k) + 1

    def _reader(self, k: int) -> Layer:
        return next(self.case.made[t] for t in self.case.readers[k] if t in self.layers)

    def _is_result(self, one: Stream) -> bool:
        return not one.outside and (not one.readers or self.case.readers[one.store][-1] > self.last)

    def _advance(self) -> dict[int, int] | None:
        """Rows of every map by visit; None if strides do not agree. What is all of the last map may be more rows."""
        known = {self.last + 1: Fraction(1)}
        for _ in self.layers:
            for t in reversed(self.layers):
                moves = self.layer(t).moves
                for k in self.case.made[t].reads:
                    if t + 1 in known and known.setdefault(k, known[t + 1] * moves) != known[t + 1] * moves:
                        return None
                    if k in known:
                        known.setdefault(t + 1, known[k] / moves)
        every = {t + 1 for t in self.layers} | set(self.outside)
        if not every <= set(known):
            return None
        whole = lcm(*(rows.denominator for rows in known.values()))
        if self.height % whole and self.height < self.case.maps[self.last + 1][1]:
            return None
        self.height = -(-self.height // whole) * whole
        return {k: int(rows * self.height) for k, rows in known.items()}

    # ---- what happens ------------------------------------------------------------------------------------------------

    def makings(self, maps: Iterable[int]) -> list[Made]:
        """What layers make, visit by visit, with the bytes of strips of all maps that do not stay as a whole."""
        moving = [one for one in self.streams if one.store not in maps]
        made = list[Made]()
        for v in range(1, self.visits + 1):
            for t in self.layers:
                ends = self.streams[t - self.first].ends
                if ends[v] > ends[v - 1]:
                    held = sum(self._held(one, v, t) * self.row_bytes(one.store) for one in moving)
                    made.append(Made(t, v, ends[v] - ends[v - 1], held, ends[v - 1]))
        return made

    def _held(self, one: Stream, v: int, t: int) -> int:
        """Rows of a map on chip while layer t runs in visit v."""
        there = one.maker <= t
        front = one.ends[v if there else v - 1]
        low = [front, self._seen(one, v, t), *([one.ends[v - 1]] if one.maker == t else [])]
        return front - min(low)

    def _seen(self, one: Stream, v: int, t: int) -> int:
        """The first row that a reader has yet to see."""
        rows = [NEVER]
        for u in one.readers:
            out = self.streams[u - self.first]
            before = out.ends[v - 1 if u >= t else v]
            if before < out.ends[-1]:
                rows.append(max(0, self.layer(u).first(before)))
        return min(rows)

    def pieces(self, makings: Sequence[Made], maps: Iterable[int]) -> list[Piece]:
        """Rows that are loaded and stored."""
        found = list[Piece]()
        for k, one in enumerate(self.streams):
            for v, (begin, end) in enumerate(pairwise(one.ends), 1):
                if begin == end or one.store in maps:
                    continue
                if one.outside:
                    later = [n for n, made in enumerate(makings) if (made.visit, made.layer) >= (v, one.maker)]
                    found.append(Piece(True, k, (begin, end), later[0] if later else len(makings) - 1))
                elif self._is_result(one):
                    at = next(n for n, made in enumerate(makings) if (made.visit, made.layer) == (v, one.maker))
                    found.append(Piece(False, k, (begin, end), at))
        return found


class Filters(NamedTuple):
    """How the filters of a layer come: bytes that stay; blocks of the first visit and of later ones, by transfers."""

    stay: int
    first: tuple[tuple[int, ...], ...]
    later: tuple[tuple[int, ...], ...]
    apart: bool = False
    """Whether what stays of a filter is a transfer of its own."""


class Groups:
    """All ways to run groups of a network; `coarse`: maps are moved whole, filters in blocks of one size."""

    def __init__(self, case: Tiny, *, coarse: bool = False) -> None:
        self.case, self.coarse = case, coarse
        self.free_calls = case.free_calls and not coarse

    def strips(self, first: int, last: int, near: Beside) -> Iterator[Strips]:
        """Yield strips of the least height for each number of them, with warm-up or without."""
        rows = self.case.maps[last + 1][1]
        probe = Strips(self.case, first, last, rows, warm=False)
        shared = [k for k in probe.outside if sum(k in self.case.made[t].reads for t in range(first, last + 1)) > 1]
        thin = [k for k in probe.sampleable if k not in near.maps]
        for twice, sampled in product(_subsets(shared), _subsets(thin)):
            for height in (
                [self.case.height] if self.case.height else sorted({-(-rows // n) for n in range(1, rows + 1)})
            ):
                seen = set[tuple[tuple[int, ...], ...]]()
                for warm in (False, True):
                    made = Strips(self.case, first, last, height, warm=warm, twice=twice, sampled=sampled)
                    if made.good and (key := tuple(one.ends for one in made.streams)) not in seen:
                        seen.add(key)
                        yield made

    def parts(self, first: int, last: int, near: Beside) -> Iterator[Part]:
        """Yield all ways in strips that find room."""
        for strips in self.strips(first, last, near):
            makings = strips.makings(near.maps)
            left = self.case.memory - near.bytes - max(made.held for made in makings)
            if left >= 0:
                for filters in self._filters(makings, left):
                    for sizes in self._sizes(strips, makings, near):
                        part = laid(self.case, strips, makings, near, filters, sizes)
                        if max(size for _, size in part.steps) <= self.case.memory:
                            yield part

    def _sizes(self, strips: Strips, makings: Sequence[Made], near: Beside) -> Iterator[dict[int, int]]:
        """Yield the most rows of a transfer of every stream."""
        most = dict[int, int]()
        for piece in strips.pieces(makings, near.maps):
            most[piece.stream] = max(most.get(piece.stream, 0), piece.rows[1] - piece.rows[0])
        every = [
            [1] if self.free_calls else [n] if self.coarse else sorted({-(-n // m) for m in range(1, n + 1)})[::-1]
            for n in most.values()
        ]  # fmt: skip
        for chosen in product(*every):
            yield dict(zip(most, chosen, strict=True))

    def _filters(self, makings: Sequence[Made], left: int) -> Iterator[dict[int, Filters]]:
        """Yield how weights stay and come."""
        layers = {made.layer: self.case.made[made.layer] for made in makings if self.case.made[made.layer].filters}
        visits = {t: sum(made.layer == t for made in makings) for t in layers}
        for stay in self._staying(layers, visits, left):
            options = list[list[Filters]]()
            for t, layer in layers.items():
                number, kept = layer.filters, stay[t] // layer.filter_bytes
                later = self._later(number, kept, t) if visits[t] > 1 else [()]
                aparts = (True,) if self.free_calls else (False, True) if stay[t] % layer.filter_bytes else (False,)
                options.append([
                    Filters(stay[t], one, two, apart)
                    for one in self._blocks(number, t) for two in later for apart in aparts
                ])  # fmt: skip
            for chosen in product(*options):
                yield dict(zip(layers, chosen, strict=True))

    def _staying(self, layers: dict[int, Layer], visits: dict[int, int], left: int) -> Iterator[dict[int, int]]:
        """Yield bytes of weights that stay: whole filters, and of one more what room is left."""
        choices = [range(layer.filters, -1, -1) if visits[t] > 1 else range(1) for t, layer in layers.items()]
        for numbers in product(*choices):
            stay = {t: n * layers[t].filter_bytes for t, n in zip(layers, numbers, strict=True)}

            gone = [one.filter_bytes for t, one in layers.items() if stay[t] < one.filters * one.filter_bytes]
            room = left - sum(stay.values()) - max(gone, default=0)
            if room < 0:
                continue
            yield stay
            for t, layer in layers.items():
                more = min(room, layer.filter_bytes - 1)
                if visits[t] > 1 and stay[t] < layer.filters * layer.filter_bytes and more:
                    yield stay | {t: stay[t] + more}

    def _blocks(self, number: int, t: int) -> list[tuple[tuple[int, ...], ...]]:
        """All ways to cut filters in blocks, and these in transfers; where more cost nothing the finest ones."""
        case = self.case
        if self.coarse:
            each = range(number, 0, -1)
            return [tuple((min(n, number - at),) for at in range(0, number, n)) for n in each]
        if self.free_calls:
            lanes = case.lanes[1] if case.made[t].kind == "deep" else case.lanes[0]
            if lanes == 1:
                return [((1,),) * number]
            return [tuple((1,) * n for n in cut) for cut in pieces(number)]
        return [
            blocks for cut in pieces(number) for blocks in product(*(tuple(map(tuple, pieces(n))) for n in cut))
        ]  # fmt: skip

    def _later(self, number: int, kept: int, t: int) -> list[tuple[tuple[int, ...], ...]]:
        """The same of filters that do not stay; those that do are a first block, or computed with the next one."""
        if kept == number:
            return [()]
        some = self._blocks(number - kept, t)
        return some if not kept else [*some, *(((0,), *one) for one in some)]


def _subsets(maps: Sequence[int]) -> list[frozenset[int]]:
    return [frozenset(some) for n in range(len(maps) + 1) for some in combinations(maps, n)]


def laid(
    case: Tiny, strips: Strips, makings: Sequence[Made], near: Beside, filters: dict[int, Filters],
    sizes: dict[int, int],
) -> Part:  # fmt: skip
    """The steps and transfers of a way."""
    part, begins, ends = Part(), list[int](), list[int]()
    final = {made.layer: n for n, made in enumerate(makings)}
    kept, seen = dict[int, int](), set[int]()
    for n, made in enumerate(makings):
        t = made.layer
        begins.append(len(part.steps) + 1)
        if t not in filters:
            ticks = case.step(t, {"r": made.span})
            part.steps.append((ticks, near.bytes + made.held + sum(kept.values())))
        else:
            _blocks(case, part, made, filters[t], kept, near.bytes, again=t in seen)
        seen.add(t)
        ends.append(len(part.steps))
        if final[t] == n:
            kept.pop(t, None)
    for piece in strips.pieces(makings, near.maps):
        k = strips.streams[piece.stream].store
        at = begins[piece.at] if piece.load else ends[piece.at]
        number = -(-(piece.rows[1] - piece.rows[0]) // sizes[piece.stream])
        each = -(-(piece.rows[1] - piece.rows[0]) // number)
        for begin in range(*piece.rows, each):
            end = min(piece.rows[1], begin + each)
            size = (end - begin) * strips.row_bytes(k)
            part.moves.append(Move(piece.load, strips.box(k, end - begin), size, at, k, strips.dense(k, begin, end)))
    part.says = f"{strips.first}..{strips.last} by {strips.height}{' warm' * strips.warm} {filters} {sizes}"
    part.says += f" sampled {sorted(strips.sampled)}" * bool(strips.sampled)
    return part


def _blocks(
    case: Tiny, part: Part, made: Made, mine: Filters, kept: dict[int, int], beside: int, *, again: bool
) -> None:  # fmt: skip
    """Add the steps of a layer in a visit, and the transfers of its weights."""
    t, size = made.layer, case.made[made.layer].filter_bytes
    whole, there = divmod(mine.stay, size)
    done = 0
    for n, block in enumerate((mine.later or ((),)) if again else mine.first):
        loaded, step, computed = 0, len(part.steps) + 1, sum(block)
        for some in block:
            if some:
                moved = some * size - there * again
                begin = done * size + loaded
                cuts = (begin, mine.stay, begin + moved) if mine.apart and not again else (begin, begin + moved)
                for low, high in pairwise(sorted(cuts)):
                    if begin <= low < high <= begin + moved:
                        part.moves.append(Move(True, case.weights(high - low), high - low, step, queue=case.queues - 1))
                loaded, there = loaded + moved, there * (not again)
        if again:
            computed += whole * (n == 0)
        else:
            new = min(mine.stay, (done + computed) * size) - min(mine.stay, done * size)
            kept[t] = kept.get(t, 0) + new
            loaded, done = loaded - new, done + computed
        held = beside + made.held + sum(kept.values()) + loaded
        part.steps.append((case.step(t, {"m": (0, computed), "r": made.span}), held))
