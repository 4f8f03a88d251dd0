"""Simulated annealing of groups, then of the order of transfers, after SoMa; what is found is never proven.

**State**, as far as SoMa's has a place here: where groups end, of every group how high its strips are and how much of
its weights stays, which maps stay between groups, the sizes of transfers; then the order of all transfers, guards of
loads and limits of stores. Layers keep their order.

**Two stages.** The first one changes groups, and transfers have two buffers (`Draft.doubled`); the second one changes
the order, guards and limits of the best groups. Both price the timeline (`hwmodels.timeline.price`): what does not fit
is refused. They run again with a tenth less of the memory for the steps of the first stage, so that the second one has
it for prefetch, until twice nothing better was found.

**Moves of the first stage**: cut a group in two, or join two (they keep the strips of one of them, of each with the
share of its layers); halve or double the steps of a group; another share of its weights; a map stays, or does not;
other sizes. **Of the second**: another place in the queue, or another guard or limit, of a transfer, the more likely
the more bytes it has, so many places or steps away at the most (`FAR`).

**Temperature.** What costs c' after c is taken if c' <= c, else with probability exp((c - c') / (c T_n)) in move n of
N, T_n = T_0 (1 - n/N) / (1 + alpha n/N).

An example: two layers by themselves, the map between goes through DRAM. To join them saves its transfers, and is taken;
to cut them again costs 5 %, and is taken with probability exp(-0.05 / T_n): 0.6 at first, hardly ever in the end.

Source: SoMa (Cai et al., HPCA 2025), sections IV-A (notation), V-B (less memory for the first stage) and V-C (moves,
cooling, begin from layers by themselves). Its N are 100 a layer and 1,000 a tensor; these are `MOVES` here, and it
minimises energy times delay, moves tensors whole, and changes the order of layers, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise
from math import exp, log2
from typing import TypeVar

from formulations.clock import ENDLESS, Clock
from formulations.fusion.latency.options import Passed, Place, Way
from formulations.fusion.latency.rules import Rules
from formulations.fusion.latency.search import LONGEST
from formulations.fusion.orders import queued
from formulations.fusion.schedule import Runs
from formulations.fusion.steps import Part, joined
from formulations.prefetch.guards import Draft, Order, When, quality
from formulations.problem import Unable

T = TypeVar("T")
#: Moves of the stages: for each layer, for each transfer; the most of each.
MOVES, MOST = (40, 20), (600, 2_000)
#: Temperature at first, and how fast it falls.
HOT, COOLING = 0.1, 4.0
#: How far a transfer goes, in places or steps; how much less memory each round has, and rounds without a better plan.
FAR, LESS, IN_VAIN = 16, 0.1, 2


@dataclass(frozen=True)
class State:
    """What the first stage decides."""

    ends: tuple[int, ...]
    """Behind the last layer of every group."""
    wishes: tuple[tuple[int, int], ...]
    """Of every group the height of its strips (0: a nest), and the bytes of weights that stay, as near as there is."""
    stay: frozenset[int]
    """Maps that stay, by the number of their residence."""
    sizes: int = 0
    """Of transfers: which of those that are tried."""


@dataclass
class Annealer:
    """Anneals; the same seed and number of moves find the same plan."""

    rules: Rules
    seed: int = 0
    moves: tuple[int, int] = MOVES
    clock: Clock = ENDLESS
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng, self.options, self.timelines = random.Random(self.seed), self.rules.options, self.rules.timelines
        self.sizes = self.timelines.demands.sizes(self.timelines.room)
        self._ways, self._parts = cache(self._of), dict[tuple[Passed, int], Part]()
        self.room = self.timelines.room

    def best(self) -> Runs:
        """The best plan of all rounds; raises Unable if layers by themselves find no place, TimeUp before that."""
        path = self.rules.layer_by_layer(self.clock)
        first, best, vain = self._alone(path), None, 0
        while vain < IN_VAIN and not (best and self.clock.over) and (one := self._round(first)) is not None:
            better = best is None or one[0] < best[0]
            best, vain = (one, 0) if better else (best, vain + 1)
            self.room -= int(LESS * self.timelines.room)
        if best is None:
            raise Unable("annealing begins with layers by themselves, whose strips find no room")
        return best[1]

    def _alone(self, path: Sequence[Passed]) -> State:
        """Every layer by itself."""
        return State(
            tuple(way.last + 1 for way, *_ in path), tuple((way.option.height, sum(way.kept)) for way, *_ in path),
            frozenset(),
        )  # fmt: skip

    def _round(self, first: State) -> tuple[int, Runs] | None:
        """Both stages; None if what they begin with does not fit."""
        if (begun := self._priced(first)) is None:
            return None
        number = min(MOST[0], self.moves[0] * len(first.ends))
        state, ticks = self._cooled((first, begun), self._changed, self._priced, number)
        path = self._path(state)
        draft = self._draft(path, state.sizes)
        order, when = self._first_order(draft)
        if not self.timelines.demands.fixed:
            number = min(MOST[1], self.moves[1] * len(order))
            changed, cost = _Moves(draft, self.rng).changed, partial(ticks_of, draft)
            (order, when), ticks = self._cooled(((order, when), ticks), changed, cost, number)
        return ticks, replace(self.options.runs(path), queue=queued([self.sizes[state.sizes]] * len(path), order, when))

    def _cooled(
        self, begun: tuple[T, int], change: Callable[[T], T | None], cost: Callable[[T], int | None], number: int
    ) -> tuple[T, int]:  # fmt: skip
        """The best of so many moves, with its cost."""
        now = best = begun
        for n in range(number):
            if self.clock.over:
                break
            other = change(now[0])
            price = None if other is None else cost(other)
            if other is None or price is None:
                continue
            heat = HOT * (1 - n / number) / (1 + COOLING * n / number)
            if price <= now[1] or self.rng.random() < exp((now[1] - price) / (now[1] * heat)):
                now = other, price
                best = min(best, now, key=lambda one: one[1])
        return best

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _changed(self, state: State) -> State | None:
        """A move of the first stage."""
        move = self.rng.choice((self._cut, self._tiled, self._tiled, self._weighed, self._kept, self._sized))
        return move(state)

    def _cut(self, state: State) -> State | None:
        """A cut more, or one less."""
        at, ends, wishes = self.rng.randrange(1, max(2, state.ends[-1])), state.ends, state.wishes
        if at in ends[:-1]:
            k = ends.index(at)
            first, last = ends[k] - (ends[k - 1] if k else 0), ends[k + 1] - ends[k]
            wish = wishes[k] if self.rng.random() * (first + last) < first else wishes[k + 1]
            return replace(state, ends=(*ends[:k], *ends[k + 1 :]), wishes=(*wishes[:k], wish, *wishes[k + 2 :]))
        k = sum(end <= at for end in ends)
        if at >= ends[-1]:
            return None
        return replace(state, ends=(*ends[:k], at, *ends[k:]), wishes=(*wishes[:k], wishes[k], *wishes[k:]))

    def _tiled(self, state: State) -> State | None:
        """Half the rows in a step of a group, or twice as many."""
        k = self.rng.randrange(len(state.ends))
        height, stay = state.wishes[k]
        rows = self.options.net.layers[state.ends[k] - 1].r
        wish = max(1, height // 2) if self.rng.random() < 0.5 else min(rows, 2 * height)
        return self._wished(state, k, (wish if height else rows, stay))

    def _weighed(self, state: State) -> State | None:
        """As many bytes of weights as another way of a group keeps, in strips or by a nest."""
        k = self.rng.randrange(len(state.ends))
        path = self._path(state, only=k)
        ways = self._ways(path[0].way.first, path[0].way.last, path[0].way.place) if path else ()
        way = self.rng.choice(ways) if ways else None
        return None if way is None else self._wished(state, k, (way.option.height, sum(way.kept)))

    def _kept(self, state: State) -> State | None:
        """A map stays, or does not."""
        maps = self.options.groups.maps
        return replace(state, stay=state.stay ^ {self.rng.choice(maps)}) if maps else None

    def _sized(self, state: State) -> State | None:
        """Other sizes of transfers."""
        return replace(state, sizes=self.rng.randrange(len(self.sizes)))

    def _wished(self, state: State, k: int, wish: tuple[int, int]) -> State:
        return replace(state, wishes=(*state.wishes[:k], wish, *state.wishes[k + 1 :]))

    def _priced(self, state: State) -> int | None:
        """Ticks with two buffers; None if there is no such plan, or its steps have more than there is for them."""
        path = self._path(state)
        if not path:
            return None
        draft = self._draft(path, state.sizes)
        if draft.room - min(draft.beside[1:-1]) > self.room:
            return None
        return ticks_of(draft, self._first_order(draft))

    def _path(self, state: State, only: int | None = None) -> list[Passed]:
        """The groups of a state, or one of them; none if one has no way."""
        path = list[Passed]()
        for k, (first, end) in enumerate(pairwise((0, *state.ends))):
            if only not in (None, k):
                continue
            there, after = (frozenset(state.stay.intersection(self.options.alive(cut))) for cut in (first, end))
            place = self.options.near(first, end - 1, there, after)
            ways = self._ways(first, end - 1, place) if place[1] >= 0 and end - first <= LONGEST else ()
            if not ways:
                return []
            far = [_far(way, state.wishes[k]) for way in ways]
            path.append(Passed(ways[far.index(min(far))], there, after))
        return path

    def _of(self, first: int, last: int, place: Place) -> Sequence[Way]:
        return self.options.ways(first, last, [place])[place]

    def _draft(self, path: Sequence[Passed], sizes: int) -> Draft:
        """Steps and transfers of a path."""
        parts = list[Part]()
        runs = self.options.runs(path)
        for passed, run in zip(path, runs, strict=True):
            if (passed, sizes) not in self._parts:
                numbered = [(passed.way.first, passed.way.last, run)]
                (self._parts[passed, sizes],) = self.timelines.parts(numbered, *self.sizes[sizes])
            parts.append(self._parts[passed, sizes])
        return Draft(joined(parts, self.timelines.demands.groups), self.timelines.room)

    def _first_order(self, draft: Draft) -> tuple[Order, When]:
        """Two buffers, unless another order is asked for."""
        demands = self.timelines.demands
        return demands.order(draft) if demands.fixed else draft.doubled()


def ticks_of(draft: Draft, plan: tuple[Order, When]) -> int | None:
    """The latency of an order with guards and limits; None if it is none, or does not fit."""
    if not draft.possible(*plan) or min(draft.left(*plan)[1:-1]) < 0:
        return None
    return quality(draft.clocks(*plan))[0]


def _far(way: Way, wish: tuple[int, int]) -> tuple[float, int]:
    """How far a way is from what is wished."""
    height = way.option.height
    far = abs(log2(height / wish[0])) if height and wish[0] else float(bool(height) != bool(wish[0])) * 64
    return far, abs(sum(way.kept) - wish[1])


class _Moves:
    """Moves of the second stage."""

    def __init__(self, draft: Draft, rng: random.Random) -> None:
        self.draft, self.rng, self.weights = draft, rng, [*_sums(draft.bytes)]

    def changed(self, plan: tuple[Order, When]) -> tuple[Order, When] | None:
        """Another place in the queue of a transfer, or another guard or limit."""
        (order, when), draft = plan, self.draft
        if not order:
            return None
        (k,) = self.rng.choices(draft.order, cum_weights=self.weights)
        by = self.rng.choice((-1, 1)) * self.rng.randint(1, FAR)
        if self.rng.random() < 0.5:
            at = order.index(k)
            rest = [*order[:at], *order[at + 1 :]]
            return [*rest[: max(0, at + by)], k, *rest[max(0, at + by) :]], when
        fixed = draft.fixed[k]
        low, high = (draft.ready[k], fixed) if draft.load[k] else (fixed + 1, draft.last)
        when = when.copy()
        when[k] = min(high, max(low, when[k] + by))
        return order, when


def _sums(sizes: Sequence[int]) -> Iterator[int]:
    """Sums of sizes, of which each counts a byte at least."""
    total = 0
    for size in sizes:
        total += max(1, size)
        yield total
