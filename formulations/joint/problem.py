"""F10 joint: tile plans of all layers and the rows of every feature map that stay on chip between them.

Sets
    t in 0..T-1: the layers (steps) in the network's order; s: the stores that may stay (`instances.stores`)
    U[s]: the steps that read s, ascending; born[s]: the first step that writes it
    V[s]: levels of s, each a number of banks and the rows that they hold; level 0 is none
    O[t, v]: plans of layer t whose inputs have the levels v, undominated in (banks, bytes)
Given
    B banks, each a byte where the machine has none; once[t, x, v]: bytes of the rows of input x beyond level v, read
    once; extra[t, v, o]: what plan o moves beyond that and beyond `fixed[t]`, and banks[t, v, o] what its tiles take;
    write[s, v]: bytes of the rows of s beyond level v                                    (integers; bytes, banks)
Variables
    level[s, u] for u in U[s]: what of s is on chip from its birth, or the use before u, until u has read it
    plan[t] in O[t, v]
Objective
    min sum_t (fixed[t] + sum_x once[t, x, level] + extra[t, levels, plan[t]]) + sum_s write[s, level[s, last use]]
Constraints
    (SHRINK)    level[s, u] >= level[s, u'] for uses u before u': what has left the chip is read from DRAM
    (CAPACITY)  sum over s on chip during t of banks of its level + banks[t, v, plan[t]] <= B for every t
Weights that several layers read
    are a store, too, whole or not at all: at a use not on chip, loaded (whole, before the layer, into banks of their
    own) or kept since the use before, which had them loaded or kept. Instead of SHRINK:
    (KEEP)      level[s, u] is kept only if level[s, u'] is loaded or kept for the use u' before; never at the first
    A layer whose weights are on chip has plans that read them there; weights that are not kept are loaded once more.
Why these rows
    Rows that leave before the last use are read from DRAM by then, so they are written once, when they are made: the
    last level says which. Which rows stay does not matter for their number; the first ones stay.
Assumes
    One layer runs after the other, in the network's order; results are made in a tile of their own and then laid where
    they stay; a store's banks are its own from its birth on (a concatenation's from its first part's).
Bytes
    Without banks k rows take k times the bytes of a row: B is all bytes, a bank one of them. Then B is large, but the
    bytes of a layer fall only where a plan of it fits (`Step.rooms` says where), and levels are numbers of rows.

`least` solves it by dynamic programming over the levels of all stores on chip, one array axis for each: exact, and
reasonable for up to four stores at a time. Source: none; docs/joint.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from formulations.problem import Unable

Ints = npt.NDArray[np.int64]
#: More bytes than anything moves.
NEVER = 2**60
#: Levels of weights.
NOT, LOADED, KEPT = range(3)
#: Numbers that dynamic programming may hold, of 8 bytes each: 512 MiB. It keeps the combinations of levels of all
#: steps, and works on so many times those of one.
MOST_STATES, AT_A_TIME = 2**26, 4
#: Combinations whose costs are found together.
_SLAB = 2**18


class TooLarge(Unable):
    """Too many stores are on chip at a time for dynamic programming."""


@dataclass(frozen=True)
class Residence:
    """A store that may stay on chip: a map, or weights that several layers read.

    Weights have three levels: `NOT`, `LOADED` (before the layer, for it) and `KEPT` (from the use before on).
    """

    store: int
    """Its number in the network."""
    born: int
    uses: tuple[int, ...]
    banks: tuple[int, ...]
    rows: tuple[int, ...]
    write: tuple[int, ...]
    """`banks`, `rows`, `write`: of every level."""
    weights: bool = False

    def taken(self, step: int) -> tuple[int, ...]:
        """Banks of every level during a step: weights that a later layer loads take none yet."""
        early = self.weights and step not in self.uses
        return tuple(0 if early and level == LOADED else banks for level, banks in enumerate(self.banks))

    def before(self, level: int) -> range:
        """The levels at a use that this level at the next one allows."""
        if self.weights:
            return range(LOADED if level == KEPT else NOT, len(self.banks))
        return range(level, len(self.banks))

    @property
    def first(self) -> int:
        """How many levels there are at the first use: weights were not there before."""
        return KEPT if self.weights else len(self.banks)

    def all_along(self, level: int) -> tuple[int, ...]:
        """The same level at all uses; weights are loaded for the first."""
        return (min(level, self.first - 1), *(level,) * (len(self.uses) - 1))

    def settled(self, levels: Sequence[int]) -> tuple[int, ...]:
        """The same levels; weights that are on chip until the next layer reads them are not loaded again."""
        made = list(levels)
        for at in range(1, len(made)) if self.weights else ():
            if made[at] == LOADED and made[at - 1] != NOT and self.uses[at] == self.uses[at - 1] + 1:
                made[at] = KEPT
        return tuple(made)

    def use(self, step: int) -> int:
        """Which use decides what is on chip during a step."""
        return next(k for k, use in enumerate(self.uses) if step <= use)


@dataclass(frozen=True, eq=False)
class Step:
    """A layer."""

    fixed: int
    """Bytes that every plan moves besides inputs and results: weights once, unless they may stay."""
    inputs: tuple[int, ...]
    """The residence of every input, and of weights that may stay; -1 for an input that lies in DRAM."""
    once: tuple[tuple[int, ...], ...]
    """Per input and level the bytes of reading what is not on chip once."""
    extra: Ints
    """Ndarray (levels of each of `axes`, rooms). Per level of the inputs and room for tiles the least bytes beyond
    that; `NEVER`: no plan.
    """
    rooms: Ints
    """The rooms: numbers of banks, ascending from 0. With f banks the bytes are those of the largest room up to f."""

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The residences among the inputs, each once."""
        return tuple(dict.fromkeys(k for k in self.inputs if k >= 0))

    def plans(self, levels: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The undominated (banks, extra bytes) for levels of the axes, fewest banks first."""
        row = self.extra[levels]
        first = np.flatnonzero(np.append(True, row[1:] < row[:-1]) & (row < NEVER))
        return tuple((int(self.rooms[at]), int(row[at])) for at in first)

    def at(self, levels: tuple[Ints, ...] | tuple[int, ...], free: Ints) -> Ints:
        """The table for levels of the axes and free banks; `NEVER` where fewer than none are free."""
        found: Ints = self.extra[(*levels, np.searchsorted(self.rooms, np.maximum(free, 0), side="right") - 1)]
        return np.where(free >= 0, found, NEVER)

    def classes(self, axis: int) -> tuple[tuple[int, ...], ...]:
        """The levels of an axis, those together that have the same plans whatever the other levels are."""
        found: dict[bytes, tuple[int, ...]] = {}
        for level in range(self.extra.shape[axis]):
            key = self.extra.take(level, axis).tobytes()
            found[key] = (*found.get(key, ()), level)
        return tuple(found.values())

    def choices(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Every plan of every combination of classes: the number of each class, banks, extra bytes."""
        classes = [self.classes(axis) for axis in range(len(self.axes))]
        for numbers in product(*(range(len(one)) for one in classes)):
            levels = tuple(one[number][0] for one, number in zip(classes, numbers, strict=True))
            for banks, extra in self.plans(levels):
                yield numbers, banks, extra


@dataclass(frozen=True)
class Choice:
    """A decision: for every residence the level at each of its uses, and the bytes of all layers together."""

    levels: tuple[tuple[int, ...], ...]
    bytes: int


@dataclass(frozen=True, eq=False)
class Joint:
    """One instance."""

    banks: int
    steps: tuple[Step, ...]
    residences: tuple[Residence, ...]
    constant: int
    """Bytes of writing all that never stays."""

    @cached_property
    def live(self) -> tuple[tuple[int, ...], ...]:
        """The residences that may be on chip during every step, by number."""
        lasting = [(k, r.born, r.uses[-1]) for k, r in enumerate(self.residences)]
        return tuple(tuple(k for k, born, last in lasting if born <= t <= last) for t in range(len(self.steps)))

    def grain(self, step: int) -> int:
        """What the banks of all levels of the maps on chip during a step are multiples of: CAPACITY counts in it."""
        return gcd(*(banks for k in self.live[step] for banks in self.residences[k].banks)) or self.banks

    def grains(self, need: int, grain: int) -> int:
        """Of all grains those that maps cannot have beside tiles of so many banks."""
        return self.banks // grain - (self.banks - need) // grain

    def level(self, choice: Choice, residence: int, step: int) -> int:
        """The level of a residence during a step."""
        return choice.levels[residence][self.residences[residence].use(step)]

    def free(self, choice: Choice, step: int) -> int:
        """Banks that are left for tiles during a step."""
        taken = (self.residences[k].taken(step)[self.level(choice, k, step)] for k in self.live[step])
        return self.banks - sum(taken)

    def levels(self, choice: Choice, step: int) -> tuple[int, ...]:
        """The levels of a step's axes."""
        return tuple(self.level(choice, k, step) for k in self.steps[step].axes)

    def price(self, levels: Sequence[Sequence[int]]) -> Choice:
        """Price levels with the best plans that fit; `NEVER` bytes if none do."""
        choice = Choice(tuple(r.settled(row) for r, row in zip(self.residences, levels, strict=True)), 0)
        total = self.constant + sum(self.moved(choice, t) for t in range(len(self.steps)))
        total += sum(r.write[row[-1]] for r, row in zip(self.residences, choice.levels, strict=True))
        return Choice(choice.levels, min(total, NEVER))

    def moved(self, choice: Choice, step: int) -> int:
        """What a step moves with the best plan that fits, but for writing maps; at least `NEVER` if none does."""
        here, free = self.steps[step], np.array(self.free(choice, step))
        total = here.fixed + int(here.at(self.levels(choice, step), free))
        for once, k in zip(here.once, here.inputs, strict=True):
            total += once[self.level(choice, k, step) if k >= 0 else 0]
        return total


# ---- dynamic programming ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """The states of a step: one axis for each live residence; only those that a plan exists for are kept."""

    live: tuple[int, ...]
    shape: tuple[int, ...]
    place: Ints | None
    """None: all of them are."""
    value: Ints

    @classmethod
    def of(cls, live: tuple[int, ...], values: Ints) -> _Layout:
        some = values < NEVER
        if 2 * np.count_nonzero(some) >= values.size:  # a place takes as much as a value
            return cls(live, values.shape, None, values)
        place = np.flatnonzero(some)
        return cls(live, values.shape, place, values.ravel()[place])

    def dense(self) -> Ints:
        """All states."""
        if self.place is None:
            return self.value
        values = np.full(prod(self.shape), NEVER, np.int64)
        values[self.place] = self.value
        return values.reshape(self.shape)


def _along(vector: Sequence[int] | Ints, axis: int, axes: int) -> Ints:
    """A vector along one of several axes."""
    return np.asarray(vector, np.int64).reshape([-1 if a == axis else 1 for a in range(axes)])


def _cost(joint: Joint, t: int, levels: Sequence[Ints]) -> Ints:
    """What step t moves, for every combination of some levels of the live residences."""
    live, step = joint.live[t], joint.steps[t]
    free = np.full(tuple(len(some) for some in levels), joint.banks, np.int64)
    for axis, k in enumerate(live):
        free -= _along(np.array(joint.residences[k].taken(t), np.int64)[levels[axis]], axis, free.ndim)
    places = [live.index(k) for k in step.axes]
    cost = step.at(tuple(_along(levels[axis], axis, free.ndim) for axis in places), free) + step.fixed
    for once, k in zip(step.once, step.inputs, strict=True):
        axis = live.index(k) if k >= 0 else 0
        cost += _along(np.array(once, np.int64)[levels[axis]], axis, free.ndim) if k >= 0 else once[0]
    return np.minimum(cost, NEVER)


def _moved(joint: Joint, t: int, values: Ints) -> Ints:
    """Least bytes up to step t and with it; `values` has one level where a residence is new. In slabs."""
    shape = tuple(len(joint.residences[k].banks) for k in joint.live[t])
    levels = [np.arange(size) for size in shape]
    total = np.empty(shape, np.int64)
    if prod(shape) <= _SLAB:
        np.minimum(values + _cost(joint, t, levels), NEVER, out=total)
        return total
    axis = int(np.argmax(shape))
    for part in np.array_split(levels[axis], -(-prod(shape) // _SLAB)):
        cut = (slice(None),) * axis + (part,)
        before = values[cut] if values.shape[axis] > 1 else values
        total[cut] = np.minimum(before + _cost(joint, t, [*levels[:axis], part, *levels[axis + 1 :]]), NEVER)
    return total


def least(joint: Joint) -> Choice | None:
    """Return the choice that moves the fewest bytes, or None if nothing fits.

    Raises
    ------
    TooLarge
        If it would take more than `MOST_STATES` numbers.
    """
    layouts: list[_Layout] = []
    values, live = np.array(joint.constant, np.int64), tuple[int, ...]()
    _refuse_many(joint)
    for t, now in enumerate(joint.live):
        order = [live.index(k) for k in now if k in live]
        values = np.expand_dims(values.transpose(order), tuple(a for a, k in enumerate(now) if k not in live))
        values = _moved(joint, t, values)
        for axis, k in enumerate(now):
            if t == joint.residences[k].born:
                values[(slice(None),) * axis + (slice(joint.residences[k].first, None),)] = NEVER
        layouts.append(_Layout.of(now, values))
        values, live = _onward(joint, t, now, values)
    return _back(joint, layouts) if int(values) < NEVER else None


def _refuse_many(joint: Joint) -> None:
    sizes = [prod(len(joint.residences[k].banks) for k in now) for now in joint.live]
    largest = max(sizes, default=0)
    if AT_A_TIME * largest + sum(sizes) > MOST_STATES:
        t = sizes.index(largest)
        raise TooLarge(
            f"{len(joint.live[t])} maps may be on chip during layer {t + 1}, {largest:,} combinations of their rows, "
            f"{sum(sizes):,} with those of other layers: more than dynamic programming takes; use engine milp or cp-sat"
        )


def _onward(joint: Joint, t: int, live: tuple[int, ...], values: Ints) -> tuple[Ints, tuple[int, ...]]:
    """Let levels fall after step t, and stores go that it read last."""
    for axis in range(len(live) - 1, -1, -1):
        residence = joint.residences[live[axis]]
        if t == residence.uses[-1]:
            values = (values + _along(residence.write, axis, values.ndim)).min(axis=axis)
            live = live[:axis] + live[axis + 1 :]
        elif t in residence.uses:
            if residence.weights:
                before = [residence.before(level) for level in range(values.shape[axis])]
                values = np.stack([values.take(levels, axis).min(axis=axis) for levels in before], axis)
            else:
                values = np.flip(np.minimum.accumulate(np.flip(values, axis), axis=axis), axis)
    return np.minimum(values, NEVER, out=values) if values.ndim else np.minimum(values, NEVER), live


def _back(joint: Joint, layouts: Sequence[_Layout]) -> Choice:
    """Follow the least values back from the last step."""
    found: list[list[int]] = [[0] * len(r.uses) for r in joint.residences]
    after: dict[int, int] = {}
    for t in range(len(layouts) - 1, -1, -1):
        layout = layouts[t]
        values, index = layout.dense(), []
        for axis, k in enumerate(layout.live):
            residence = joint.residences[k]
            if t == residence.uses[-1]:
                values = values + _along(residence.write, axis, values.ndim)
                index.append(slice(None))
            else:
                levels = residence.before(after[k])
                index.append(slice(levels.start, None) if t in residence.uses else slice(after[k], after[k] + 1))
        part = values[tuple(index)]
        place = np.unravel_index(int(part.argmin()), part.shape)
        after = {k: int(at) + (cut.start or 0) for k, at, cut in zip(layout.live, place, index, strict=True)}
        for k, level in after.items():
            found[k][joint.residences[k].use(t)] = level
    return joint.price(found)
