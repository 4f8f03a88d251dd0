"""Orders of the runs of a layer, and programs: an order with what is loaded, stored and dropped between its runs.

Passes. Cut the output groups in k batches, all of y but the first, which takes the rest. Every batch is a pass over the
inputs, back and forth in turn, so that x inputs stay at every turn. A batch of at most y output groups keeps them all;
a larger one (k < ceil(O/y)) goes through the inputs in blocks of x, and through its outputs back and forth in every
block, so that y of them stay at every turn. The bytes, with nb' = ceil(I/x) and all loads and swaps alike:

    load*(I + (k - 1)*(I - x)) + swap*(nb' - 1)*max(0, O - k*y)

k = ceil(O/y) stores no partial maps, k = 1 loads every input once. With the sides exchanged there are the passes over
the outputs, l = 1..ceil(I/x). The bytes are linear in k up to ceil(O/y) - 1, so that and both ends are tried. A smaller
last group is tried at both ends of a pass, and where it is not among those that stay.

Places. In a given order a full set of places gives up the group that is needed again last (Belady): the fewest entries.

All orders (`best_order`) of the runs of a small grid, and whatever may lie in the places: the oracle. A
state is what lies in the places and which runs are done; every run whose groups are both in places is done at once,
which costs nothing and forbids nothing. An entry of a group into a place, free or of any other group, leads to the next
state; the cheapest way to the end is found by Dijkstra's algorithm. States that differ only in the names of groups that
move the same bytes count as one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Literal, NamedTuple

from formulations.clock import ENDLESS, Clock
from formulations.partial_engine.space import Game

#: Runs between two looks at the clock.
_ROUND = 1_024
#: Runs (i, o), one after the other.
Order = Sequence[tuple[int, int]]
Verb = Literal["load", "back", "run", "add", "spill", "store"]


class Step(NamedTuple):
    """A step of a program.

    load i to an input place; back: o to a partial place; run (i, o), the result to a partial place, -1 the fresh one,
    or added in that place where additions are hidden; add the fresh maps to o; spill o to DRAM, to come back; store o.
    """

    verb: Verb
    i: int
    o: int
    place: int


def passes(game: Game) -> Iterator[Order]:
    """Yield the orders in passes, the one with the fewest bytes first (if all groups were alike)."""
    inputs, outputs, x, y = game.inputs, game.outputs, game.x, game.y
    many, many_in = -(-outputs // y), -(-inputs // x)
    load, swap = max(game.loads), max(game.swaps)
    found = [
        (load * (k - 1) * (inputs - x) + swap * (many_in - 1) * max(0, outputs - k * y), 0, k)
        for k in {1, max(1, many - 1), many}
    ]
    found += [
        (swap * (k - 1) * (outputs - y) + load * (many - 1) * max(0, inputs - k * x), 1, k)
        for k in {1, max(1, many_in - 1), many_in}
    ]
    found.sort()
    for _, side, k in found:
        for ins in _lines(game.loads, x):
            for outs in _lines(game.swaps, y):
                if side == 0:
                    yield list(_passes(ins, outs, x, y, k))
                else:
                    yield [(i, o) for o, i in _passes(outs, ins, y, x, k)]


def _lines(bytes_: Sequence[int], stay: int) -> list[list[int]]:
    """Groups in the order of a pass; a cheaper last one first where it does not stay at a turn, then at both ends."""
    *line, last = range(len(bytes_))
    if bytes_[-1] == bytes_[0]:
        return [[*line, last]]
    places = dict.fromkeys((min(stay, len(line)), 0, len(line)))
    return [[*line[:at], last, *line[at:]] for at in places]


def _passes(streamed: list[int], batched: list[int], a: int, b: int, k: int) -> Iterator[tuple[int, int]]:
    """Runs (streamed, batched) of k passes."""
    cut = len(batched) - (k - 1) * b
    batches = [batched[:cut], *(batched[n : n + b] for n in range(cut, len(batched), b))]
    for batch in batches:
        if len(batch) <= b:
            yield from ((one, other) for one in streamed for other in batch)
        else:
            for first in range(0, len(streamed), a):
                yield from ((one, other) for other in batch for one in streamed[first : first + a])
                batch = batch[::-1]
        streamed = streamed[::-1]


def plain(game: Game, clock: Clock = ENDLESS) -> Order:
    """Return the source's order: one output group after the other, its inputs from the first one on."""
    return [(i, o) for o in range(game.outputs) for i in range(game.inputs)]


def greedy(game: Game, clock: Clock = ENDLESS) -> Order:
    """Return the order that next does what is in the places, else brings the group with the most runs a byte.

    Raises TimeUp by the clock.
    """
    undone = {(i, o) for i in range(game.inputs) for o in range(game.outputs)}
    here: tuple[list[int], list[int]] = ([], [])
    begun: set[int] = set()
    order: list[tuple[int, int]] = []
    while undone:
        clock.tick()
        for i, o in ((i, o) for i in here[0] for o in here[1] if (i, o) in undone):
            order.append((i, o))
            undone.discard((i, o))
            begun.add(o)
        here[1][:] = [o for o in here[1] if any((i, o) in undone for i in range(game.inputs))]
        best: tuple[float, int, int] | None = None
        for side, number in ((0, game.inputs), (1, game.outputs)):
            for n in (n for n in range(number) if n not in here[side]):
                gain = sum(((n, m) if side == 0 else (m, n)) in undone for m in here[1 - side])
                left = any(
                    ((n, m) if side == 0 else (m, n)) in undone for m in range((game.outputs, game.inputs)[side])
                )
                cost = game.loads[n] if side == 0 else game.swaps[n] if n in begun else 0
                if left and (best is None or (-gain / (cost + 1), side, n) < best):
                    best = -gain / (cost + 1), side, n
        if best is not None:
            _, side, n = best
            here[side].append(n)
            if len(here[side]) > (game.x, game.y)[side]:
                here[side].pop(0)
    return order


# --- programs --------------------------------------------------------------------------------------------------------


class _Places:
    """Places of one side; a full set gives up the group that is needed again last."""

    def __init__(self, number: int, uses: Iterable[int], *, recent: bool) -> None:
        self.at: dict[int, int] = {}
        self.free = list(range(number))[::-1]
        self.recent = recent
        self.needed: dict[int, list[int]] = {}
        for time, group in enumerate(uses):
            self.needed.setdefault(group, []).append(time)
        for times in self.needed.values():
            times.reverse()
        self.used: dict[int, int] = {}

    def use(self, group: int, time: int) -> None:
        """Note a use."""
        self.needed[group].pop()
        self.used[group] = time

    def enter(self, group: int) -> int | None:
        """Give a group a place; return the group that has to leave, if any."""
        gone = None
        if not self.free:
            if self.recent:
                gone = min(self.at, key=lambda g: (self.used[g], g))
            else:
                gone = max(self.at, key=lambda g: (self.needed[g][-1] if self.needed[g] else 1 << 60, -g))
            self.leave(gone)
        self.at[group] = self.free.pop()
        return gone

    def leave(self, group: int) -> None:
        """Free the place of a group."""
        self.free.append(self.at.pop(group))


def program(
    game: Game, order: Order, *, fresh: int, recent: bool = False, before: bool = False, after: bool = False,
    clock: Clock = ENDLESS,
) -> list[Step]:  # fmt: skip
    """Return the steps of an order; raises TimeUp by the clock.

    Parameters
    ----------
    fresh : int
        1 if partial maps are added in steps of their own.
    recent : bool
        The group used longest ago leaves, instead of the one that is needed again last.
    before, after : bool
        Input group i lies in place i before; results stay in their places.
    """
    ins = _Places(game.x, (i for i, _ in order), recent=recent)
    outs = _Places(game.y, (o for _, o in order), recent=recent)
    if before:
        ins.at, ins.free = {i: i for i in range(game.inputs)}, []
    steps: list[Step] = []
    begun: set[int] = set()
    for time, (i, o) in enumerate(order):
        if not time % _ROUND:
            clock.tick()
        if i not in ins.at:
            ins.enter(i)
            steps.append(Step("load", i, -1, ins.at[i]))
        if o not in outs.at:
            gone = outs.enter(o)
            if gone is not None:
                steps.append(Step("spill", -1, gone, outs.at[o]))
            if o in begun:
                steps.append(Step("back", -1, o, outs.at[o]))
        ins.use(i, time)
        outs.use(o, time)
        if o not in begun or not fresh:
            steps.append(Step("run", i, o, outs.at[o]))
        else:
            steps += [Step("run", i, o, -1), Step("add", -1, o, outs.at[o])]
        begun.add(o)
        if not outs.needed[o] and not after:
            steps.append(Step("store", -1, o, outs.at[o]))
            outs.leave(o)
    return steps


def price(game: Game, steps: Iterable[Step]) -> int:
    """Return the bytes of inputs and partial maps that a program moves."""
    return sum(priced(game, steps))


def priced(game: Game, steps: Iterable[Step]) -> tuple[int, int]:
    """Return the bytes of inputs that a program moves, and those of partial maps, out and in."""
    inputs, swapped = 0, 0
    for step in steps:
        if step.verb == "load":
            inputs += game.loads[step.i]
        elif step.verb == "back":
            swapped += game.swaps[step.o]
    return inputs, swapped


_LETTERS: dict[Verb, str] = {"load": "L", "back": "B", "run": "R", "add": "A", "spill": "P", "store": "S"}
_VERBS = {letter: verb for verb, letter in _LETTERS.items()}


def as_text(steps: Iterable[Step]) -> str:
    """Return a program as text: ``L0@0 R0.3@1 S3@1``, group and place; ``@f`` is the fresh place."""
    words = []
    for step in steps:
        groups = {"load": f"{step.i}", "run": f"{step.i}.{step.o}"}.get(step.verb, f"{step.o}")
        words.append(f"{_LETTERS[step.verb]}{groups}@{'f' if step.place < 0 else step.place}")
    return " ".join(words)


def from_text(text: str) -> list[Step]:
    """Read a program; raises ValueError for a word that is none."""
    steps = []
    for word in text.split():
        groups, at, place = word[1:].partition("@")
        if word[0] not in _VERBS or not at:
            raise ValueError(f"{word!r} is no step: write L0@0, B1@0, R0.1@0, R0.1@f, A1@0, P1@0 or S1@0")
        verb = _VERBS[word[0]]
        try:
            numbers = [int(part) for part in groups.split(".")]
            where = -1 if place == "f" else int(place)
        except ValueError:
            raise ValueError(f"{word!r} is no step: groups and places are whole numbers") from None
        if len(numbers) != (2 if verb == "run" else 1) or min(numbers) < 0 or where < -1:
            raise ValueError(f"{word!r} is no step: {verb} takes {'two groups' if verb == 'run' else 'one group'}")
        i = numbers[0] if verb in ("load", "run") else -1
        steps.append(Step(verb, i, -1 if verb == "load" else numbers[-1], where))
    return steps


#: Runs of a grid up to which all orders are searched.
MOST_RUNS = 12
#: Inputs in places (a mask); by output group its done runs (a mask) and whether it is in a place.
_State = tuple[int, tuple[tuple[int, bool], ...]]


def best_order(game: Game, *, stay: bool = False, clock: Clock = ENDLESS) -> tuple[int, Order] | None:
    """Return the fewest bytes of inputs and partial maps, and an order that moves no more; None if it is too large.

    Raises TimeUp by the clock.

    Parameters
    ----------
    stay : bool
        Partial maps may not be stored.
    """
    if game.inputs * game.outputs > MOST_RUNS:
        return None
    start: _State = (0, ((0, False),) * game.outputs)
    number, full = count(), (1 << game.inputs) - 1
    heap: list[tuple[int, int, _State, tuple[object, ...]]] = [(0, next(number), start, ())]
    seen: dict[_State, int] = {}
    while heap:
        clock.tick()
        cost, _, state, path = heapq.heappop(heap)
        key = _alike(game, state)
        if seen.get(key, cost + 1) <= cost:
            continue
        seen[key] = cost
        if all(done == full for done, _ in state[1]):
            return cost, _unwound(path)
        for more, entered in _entries(game, state, stay, full):
            after, runs = _run(entered, full)
            heapq.heappush(heap, (cost + more, next(number), after, (path, runs)))
    raise AssertionError("some order always ends")


def _unwound(path: tuple[object, ...]) -> Order:
    parts: list[list[tuple[int, int]]] = []
    while path:
        path, runs = path  # type: ignore[assignment]
        parts.append(runs)  # type: ignore[arg-type]
    return [run for part in reversed(parts) for run in part]


def _entries(game: Game, state: _State, stay: bool, full: int) -> Iterator[tuple[int, _State]]:
    """The bytes of every entry, and the places after it."""
    here, outs = state
    inside = [i for i in range(game.inputs) if here >> i & 1]
    for i in range(game.inputs):
        if here >> i & 1:
            continue
        for gone in [None] if len(inside) < game.x else inside:
            yield game.loads[i], ((here | 1 << i) & ~(0 if gone is None else 1 << gone), outs)
    placed = [o for o, (_, there) in enumerate(outs) if there]
    for o, (done, there) in enumerate(outs):
        if there or done == full or (stay and done):
            continue
        for gone in [None] if len(placed) < game.y else placed:
            if stay and gone is not None and outs[gone][0]:
                continue
            rows = list(outs)
            if gone is not None:
                rows[gone] = outs[gone][0], False
            rows[o] = done, True
            yield game.swaps[o] if done else 0, (here, tuple(rows))


def _run(state: _State, full: int) -> tuple[_State, list[tuple[int, int]]]:
    """Do all runs whose groups are in places; finished outputs leave."""
    here, outs = state
    runs, rows = [], []
    for o, (done, there) in enumerate(outs):
        if there:
            runs += [(i, o) for i in range(full.bit_length()) if (here & ~done) >> i & 1]
            done |= here
        rows.append((done, there and done != full))
    return (here, tuple(rows)), runs


def _alike(game: Game, state: _State) -> _State:
    """Name the groups by what lies where, those that move other bytes apart."""
    here, outs = state
    columns = [(game.loads[i], here >> i & 1, sorted((d >> i & 1, t) for d, t in outs), i) for i in range(game.inputs)]
    place = {i: n for n, (*_, i) in enumerate(sorted(columns))}
    renamed = [
        (game.swaps[o], sum(1 << place[i] for i in range(game.inputs) if done >> i & 1), there)
        for o, (done, there) in enumerate(outs)
    ]
    mask = sum(1 << place[i] for i in range(game.inputs) if here >> i & 1)
    return mask, tuple((done, there) for _, done, there in sorted(renamed))
