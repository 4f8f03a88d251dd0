"""Joint: tile plans of all layers and the rows of every feature map that stay on chip between them.

Sets
    t in 0..T-1: the layers (steps) in the network's order; s: the stores that may stay (`instances.network.stores`)
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

These are the groups of one layer of fusion (`formulations.fusion.space`), whose paths and models solve it; heuristics
choose levels here. Source: none; docs/joint.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
#: More bytes than anything moves.
NEVER = 2**60
#: Levels of weights.
NOT, LOADED, KEPT = range(3)


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
