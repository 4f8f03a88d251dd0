"""Nests of any kind as lists that a search may change, and the changes.

A form is the cuts over units and a list of items, outermost first: loops (dimension, step or places) in any number and
order, Holds (operand, buffers) anywhere between them. `tidy` makes a form legal: steps that cut nothing are no loops.
`changed` makes one random change:

    add, drop      a loop of any dimension anywhere
    move, swap     an item to any place; two neighbours
    resize         an even step by one, to the next number of pieces, or to any
    places         one place of a list moves, comes or goes; an even step becomes the list of its places
    fit            a loop over rows or columns cuts the fewest pieces whose clipped windows are at most so wide;
                   another loop over them may come further in
    split, merge   a loop becomes two tight ones; a loop takes over the cuts of one directly outside
    hold           a Hold moves to any depth
    buffers        one or two, where the machine leaves it open
    spread         another way to share the layer among the units
    line           IN held in lines or not, where the machine can
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hwmodels.schedule import Hold, Loop, Nest, Spatial, Step
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.adversary.boxes import levels
from tests.adversary.pricing import Item, Spread

#: More loops than this help no nest of the layers that are searched, and slow the search down.
MOST_LOOPS = 12
#: Longer lists of places are not made.
MOST_PLACES = 24


@dataclass(frozen=True)
class Form:
    """The cuts over units, the items of every core, whether IN is held in lines, and homes off the chip if stated."""

    spread: tuple[Spread, ...]
    items: tuple[Item, ...]
    line: bool = False
    homes: tuple[tuple[str, str], ...] = ()


def partitions(layer: Layer, machine: Machine) -> dict[str, tuple[Spread, ...]]:
    """Return the ways to share a layer among clusters and cores (TSO, Alg. 2): by filters, by both, by rows."""
    if machine.tles * machine.tlts == 1:
        return {"": ()}
    f = "g" if layer.g > 1 and layer.g >= layer.m else "m"
    found: dict[str, tuple[Spread, ...]] = {}
    for name, filters, rows in (("KS", machine.tles, 1), ("KS&OFM", machine.tles // 2, 2), ("OFM", 1, machine.tles)):
        if filters * rows != machine.tles:
            continue
        share = -(-layer.extent(f) // filters)
        cuts: list[Spread] = [(f, share, "tle")] if filters > 1 else []
        cuts += [("r", -(-layer.r // rows), "tle")] if rows > 1 else []
        found[name] = (*cuts, (f, -(-share // machine.tlts), "tlt"))
    return found


def spreads(layer: Layer, machine: Machine) -> tuple[tuple[Spread, ...], ...]:
    """Return the distinct ones of `partitions`."""
    return tuple(dict.fromkeys(partitions(layer, machine).values()))


def shares(layer: Layer, spread: Iterable[Spread]) -> dict[str, int]:
    """Return the largest share of every dimension."""
    return {d: layer.extent(d) for d in DIMS} | {d: step for d, step, _ in spread}


def tidy(layer: Layer, form: Form) -> Form:
    """Leave out loops that cut nothing and places outside the range."""
    size = shares(layer, form.spread)
    hows: dict[str, tuple[Step, ...]] = {}
    items: list[Item] = []
    for name, how in form.items:
        if name in RELEVANT or how is None:
            items.append((name, how))
            continue
        pieces = levels(0, size[name], hows.get(name, ()))[0][-1]
        if isinstance(how, int):
            step: Step = how
            counts = how < max(b - a for a, b in pieces)
        else:
            step = tuple(sorted({x for x in how if 0 < x < size[name]}))
            counts = bool(step) and len(levels(0, size[name], (*hows.get(name, ()), step))[0][-1]) > len(pieces)
        if counts:
            hows[name] = (*hows.get(name, ()), step)
            items.append((name, step))
    return replace(form, items=tuple(items))


def nest_of(layer: Layer, form: Form) -> Nest:
    """Return the nest that a tidy form stands for."""
    size = shares(layer, form.spread)
    hows: dict[str, tuple[Step, ...]] = {}
    items: list[Spatial | Loop | Hold] = [Spatial(*cut) for cut in form.spread]
    for name, how in form.items:
        if name in RELEVANT:
            items.append(Hold(name, how if isinstance(how, int) else None, form.line and name == "IN"))
        elif isinstance(how, int):
            hows[name] = (*hows.get(name, ()), how)
            items.append(Loop(name, how))
        elif how is not None:
            hows[name] = (*hows.get(name, ()), how)
            largest = max(b - a for a, b in levels(0, size[name], hows[name])[0][-1])
            items.append(Loop(name, largest, how))
    return Nest(tuple(items), form.homes)


def form_of(layer: Layer, nest: Nest) -> Form:
    """Return the form of a nest, tidied."""
    spread = tuple((one.dim, one.step, one.over) for one in nest.items if isinstance(one, Spatial))
    items: list[Item] = []
    for one in nest.items:
        if isinstance(one, Loop):
            items.append((one.dim, one.how))
        elif isinstance(one, Hold):
            items.append((one.operand, one.buffers))
    return tidy(layer, Form(spread, tuple(items), nest.line, nest.homes))


class Moves:
    """The changes that make sense for a layer on a machine."""

    def __init__(self, layer: Layer, machine: Machine, rng: random.Random) -> None:
        self.layer, self.rng = layer, rng
        self.dims = [d for d in DIMS if layer.extent(d) > 1]
        self.spreads = spreads(layer, machine)
        self.places = machine.edge_tiles == "true"
        self.buffers: tuple[int | None, ...] = (1, 2) if machine.buffering == "choose" else (None,)
        kinds: list[tuple[int, Callable[[Form], Form | None]]] = [
            (3, self._add), (3, self._drop), (3, self._move), (3, self._swap), (5, self._resize), (3, self._split),
            (2, self._merge), (4, self._hold), (5 if self.places else 0, self._places),
            (3 if self.places else 0, self._fit),
            (3 if len(self.buffers) > 1 else 0, self._buffers), (1 if len(self.spreads) > 1 else 0, self._spread),
            (4 if machine.line and not layer.broadcast else 0, self._line),
        ]  # fmt: skip
        self._kinds = [move for _, move in kinds]
        self._weights = [weight for weight, _ in kinds]

    def changed(self, form: Form) -> Form:
        """Return the form after one random change that is possible."""
        while True:
            move = self.rng.choices(self._kinds, self._weights)[0]
            made = move(form)
            if made is not None:
                kept = form.line != (move == self._line)
                return tidy(self.layer, replace(made, line=kept))

    def start(self) -> Form:
        """Return a random form: few loops, Holds anywhere."""
        form = Form(self.rng.choice(self.spreads), tuple((x, self.rng.choice(self.buffers)) for x in self._operands()))
        for _ in range(self.rng.randint(0, min(6, 2 * len(self.dims)))):
            form = tidy(self.layer, self._add(form) or form)
        for _ in self.layer.operands:
            form = self._hold(form) or form
        return form

    def _operands(self) -> list[str]:
        return self.rng.sample(self.layer.operands, len(self.layer.operands))

    def _loops(self, form: Form) -> list[int]:
        return [k for k, (name, _) in enumerate(form.items) if name not in RELEVANT]

    def _any_step(self, size: int) -> int:
        """A step below `size`: any, or the smallest for some number of pieces."""
        if self.rng.random() < 0.5:
            return self.rng.randint(1, max(1, size - 1))
        pieces = int(size ** self.rng.random()) + 1  # few pieces as often as many
        return -(-size // pieces)

    def _how(self, form: Form, d: str) -> Step:
        size = shares(self.layer, form.spread)[d]
        if self.places and size > 2 and self.rng.random() < 0.3:
            number = self.rng.randint(1, min(size - 1, 4))
            return tuple(sorted(self.rng.sample(range(1, size), number)))
        return self._any_step(size)

    def _add(self, form: Form) -> Form | None:
        if not self.dims or len(form.items) >= MOST_LOOPS + len(self.layer.operands):
            return None
        d, at = self.rng.choice(self.dims), self.rng.randint(0, len(form.items))
        return Form(form.spread, (*form.items[:at], (d, self._how(form, d)), *form.items[at:]))

    def _drop(self, form: Form) -> Form | None:
        loops = self._loops(form)
        return _with(form, self.rng.choice(loops), ()) if loops else None

    def _move(self, form: Form) -> Form | None:
        at = self.rng.randrange(len(form.items))
        rest = (*form.items[:at], *form.items[at + 1 :])
        to = self.rng.randint(0, len(rest))
        return Form(form.spread, (*rest[:to], form.items[at], *rest[to:]))

    def _swap(self, form: Form) -> Form | None:
        if len(form.items) < 2:
            return None
        at = self.rng.randrange(len(form.items) - 1)
        pair = form.items[at + 1], form.items[at]
        return Form(form.spread, (*form.items[:at], *pair, *form.items[at + 2 :]))

    def _hold(self, form: Form) -> Form | None:
        at = self.rng.choice([k for k, (name, _) in enumerate(form.items) if name in RELEVANT])
        rest = (*form.items[:at], *form.items[at + 1 :])
        to = self.rng.randint(0, len(rest))
        return Form(form.spread, (*rest[:to], form.items[at], *rest[to:]))

    def _resize(self, form: Form) -> Form | None:
        even = [k for k in self._loops(form) if isinstance(form.items[k][1], int)]
        if not even:
            return None
        at = self.rng.choice(even)
        d, step = form.items[at]
        size = shares(self.layer, form.spread)[d]
        if not isinstance(step, int):
            return None
        pieces = -(-size // step) + self.rng.choice((-1, 1))
        new = self.rng.choice((step - 1, step + 1, -(-size // max(1, pieces)), self._any_step(size)))
        return _with(form, at, ((d, min(max(new, 1), size)),))

    def _places(self, form: Form) -> Form | None:
        loops = self._loops(form)
        if not loops:
            return None
        at = self.rng.choice(loops)
        d, how = form.items[at]
        size = shares(self.layer, form.spread)[d]
        if isinstance(how, int):
            if size // how > MOST_PLACES:
                return None
            return _with(form, at, ((d, tuple(range(how, size, how))),))
        marks = set(how or ())
        kind = self.rng.randrange(4)
        if marks and kind != 0:
            x = self.rng.choice(sorted(marks))
            marks.discard(x)
            if kind != 1:
                marks.add(x + self.rng.choice((-2, -1, 1, 2)))
        elif len(marks) < MOST_PLACES:
            marks.add(self.rng.randint(1, size - 1))
        return _with(form, at, ((d, tuple(sorted(marks))),))

    def _fit(self, form: Form) -> Form | None:
        loops = [k for k in self._loops(form) if form.items[k][0] in "rc"]
        if not loops:
            return None
        at = self.rng.choice(loops)
        d = form.items[at][0]
        size = shares(self.layer, form.spread)[d]
        window = self._window(d)
        reach = window(0, size)
        pieces = self.rng.randint(2, max(2, min(size, 8)))
        most = max(1, min(reach, -(-reach // pieces) + self.rng.randint(0, 3)))
        marks, first = [], 0
        for x in range(1, size):
            if window(first, x + 1) > most:
                marks.append(x)
                first = x
        if len(marks) > MOST_PLACES:
            return None
        made = _with(form, at, ((d, tuple(marks)),))
        if self.rng.random() < 0.5:
            return made
        to = self.rng.randint(at + 1, len(made.items))
        return Form(form.spread, (*made.items[:to], (d, self.rng.choice((1, self._any_step(most)))), *made.items[to:]))

    def _window(self, d: str) -> Callable[[int, int], int]:
        """Input rows (columns) inside the map that the outputs of a range need."""
        one = self.layer
        stride, reach, pad, size = (
            (one.stride_h, (one.kh - 1) * one.dilation_h, one.pad_top, one.h) if d == "r"
            else (one.stride_w, (one.kw - 1) * one.dilation_w, one.pad_left, one.l)
        )  # fmt: skip
        begin = max(one.residents) if d == "r" else 0
        return lambda a, b: min((b - 1) * stride - pad + reach + 1, size) - max(a * stride - pad, begin)

    def _split(self, form: Form) -> Form | None:
        loops = self._loops(form)
        if not loops or len(loops) >= MOST_LOOPS:
            return None
        at = self.rng.choice(loops)
        d, how = form.items[at]
        return _with(form, at, ((d, self._how(form, d)), (d, how)))

    def _merge(self, form: Form) -> Form | None:
        found = [k for k in self._loops(form)[1:] if form.items[k - 1][0] == form.items[k][0]]
        if not found:
            return None
        at = self.rng.choice(found)
        d = form.items[at][0]
        if not self.places:
            return _with(form, at - 1, ())
        hows = tuple(h for name, h in form.items[: at + 1] if name == d and h is not None)
        pieces = levels(0, shares(self.layer, form.spread)[d], hows)[0][-1]
        if len(pieces) > MOST_PLACES:
            return _with(form, at - 1, ())
        return _with(_with(form, at, ((d, tuple(a for a, _ in pieces[1:])),)), at - 1, ())

    def _buffers(self, form: Form) -> Form | None:
        at = self.rng.choice([k for k, (name, _) in enumerate(form.items) if name in RELEVANT])
        name, number = form.items[at]
        return _with(form, at, ((name, 2 if number == 1 else 1),))

    def _line(self, form: Form) -> Form | None:
        return form

    def _spread(self, form: Form) -> Form | None:
        return Form(self.rng.choice(self.spreads), form.items)


def _with(form: Form, at: int, new: Sequence[Item]) -> Form:
    """Put items in the place of one."""
    return Form(form.spread, (*form.items[:at], *new, *form.items[at + 1 :]))
