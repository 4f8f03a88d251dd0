"""Mesh: the search space of a layer, as options of groups of indices of which a plan takes one each.

An example: index m of 64 filters alone is a group. Its options are T_m = 1 .. 64, each with the sides of the mesh along
m and PEs P_m. T_m = 33 .. 63 make two tiles as T_m = 32 does, and take more room: they are dominated.

Sets
    g in G      groups of indices: (r, i), (c, j), b, g, m, n; indices that share an axis are in one group
    o in O[g]   options: tile, sides and PEs of the indices of g (class `Group`, a row each)
    k in K      terms, such as "IN", "tile W", "cycles" (`formulations.mesh.price`)
Given
    t[g, o, k] >= 1     what an option adds to a term (0: nothing is there)
    key[g, o]           sides of the mesh that the option takes, and log2 of its PEs
    factors f[k], constants c of every measure and buffer; total, what the keys of a plan sum up to
Variables
    one option o[g] for every group
Objective
    a measure ``c + sum_k f[k] * product_g t[g, o[g], k]``: dram and glb in bytes, cycles in cycles
Constraints
    (BUFFER)  the same sums for every buffer are at most its bytes
    (KEYS)    ``sum_g key[g, o[g]] = total``: every side has one index, and P multiplies to the PEs of a unit
Candidates
    Sums rise with every t. So an option is left out where another one with the same key (and the same PEs) is at most
    as large in every t and in the extents of its tile (`undominated`), or where it exceeds a buffer or the incumbent
    with the least of every other group (`_possible`). Extents count because a layout of a larger tile is one of a
    smaller tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.mesh.price import KEEPS, Cap, Ints, Linear, Setup, caps_of, linear_of, setup_of, terms_of
from formulations.pins import Pins
from hwmodels.schedule import SHARES, Choice
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import LARGEST
from instances.network.workload import DIMS, Layer

_FREE = Pins()


@dataclass(frozen=True)
class Group:
    """Options of one or more groups of indices."""

    columns: tuple[str, ...]
    """Names of `values`."""
    values: Ints
    """Array, shape (options, columns). What each option decides."""
    terms: Ints
    """Array, shape (options, terms of the member)."""
    shape: Ints
    """Array, shape (options, extents). Elements of the tile along each index (teu; else no columns). A bank layout
    depends on these and on the PEs.
    """
    keys: Ints
    """Array, shape (options, keys). Sides of the mesh that the option takes, and log2 of its PEs. Over all groups they
    sum up to `Member.total`.
    """

    def __len__(self) -> int:
        return len(self.values)

    def take(self, which: Ints) -> Group:
        """Some of the options."""
        return replace(
            self, values=self.values[which], terms=self.terms[which], shape=self.shape[which], keys=self.keys[which]
        )


@dataclass(frozen=True)
class Member:
    """The options of one way to keep operands; a plan takes one option of every group."""

    setup: Setup
    groups: tuple[Group, ...]
    names: tuple[str, ...]
    """Names of the terms, the columns of `Group.terms`."""
    measures: dict[str, Linear]
    """Dram and glb [bytes], cycles, as sums of products of terms."""
    caps: tuple[Cap, ...]
    """The same for buffers, each with its limit in bytes."""
    total: tuple[int, ...]
    """What the keys of a plan sum up to: (2,) sides of a square mesh or (1, 1) of others, (1,) of a systolic array;
    then log2 of the PEs of a unit, if PEs are decided.
    """

    def demands(self, limits: Mapping[str, int]) -> list[tuple[Linear, int]]:
        """All that has a most: buffers, and measures with limits."""
        limited = [(what, limits[name]) for name, what in self.measures.items() if name in limits]
        return [*((cap.what, cap.limit) for cap in self.caps), *limited]

    def vector(self, what: Linear) -> Ints:
        """The factors of a sum, by term."""
        return np.array([what.factors.get(name, 0) for name in self.names], dtype=np.int64)

    def choice(self, picked: Sequence[tuple[Group, int]]) -> Choice:
        """The choice that options of groups stand for."""
        values = {name: int(v) for group, at in picked for name, v in zip(group.columns, group.values[at], strict=True)}
        tile = tuple(values[f"T_{d.upper()}"] for d in DIMS)
        vector = tuple(values.get(f"P_{d.upper()}", 1) for d in DIMS)
        rows = [d for d in DIMS if values.get(f"S_{d.upper()}", 0) & 1]
        cols = [d for d in DIMS if values.get(f"S_{d.upper()}", 0) & 2]
        if len(rows) == 2:  # a square mesh, searched without names for its sides
            rows, cols = rows[:1], rows[1:]
        kept = self.setup
        systolic = kept.mesh.kind == "systolic"
        return Choice(
            tile, rows[0] if rows else "", "m" if systolic else cols[0] if cols else "", vector, kept.share, kept.keep,
            values.get("filters", 1), values.get("channels", 1),
        )  # fmt: skip


# ---- options ---------------------------------------------------------------------------------------------------------


def members(
    layer: Layer, machine: Machine, pins: Pins, *, needs: frozenset[str], lanes: bool,
    limits: Mapping[str, int] | None = None, full: bool = False, thin: bool = False, clock: Clock = ENDLESS,
) -> Iterator[Member]:  # fmt: skip
    """Yield the members of a layer's space.

    Parameters
    ----------
    needs : set of str
        Of dram, glb, cycles: what an objective or a limit is made of. Options that differ in nothing else are one.
    lanes : bool
        Whether the PE vector matters; without, options have none (its best shape is found for a given tile).
    limits : dict
        The most of dram, glb and cycles: options that exceed it with anything else are left out.
    full : bool
        Keep every option, those that overflow a buffer by themselves too.
    thin : bool
        Only the smallest tile for every number of trips: enough for a heuristic, not for a proof.
    clock : Clock
        When to raise TimeUp.
    """
    for share, keep in ways(pins, full=full):
        space = _Space(setup_of(layer, machine, share, keep, clock), pins, lanes, thin)
        made = space.member(needs)
        if not full:
            made = replace(made, groups=tuple(_fitting(made, group) for group in made.groups))
        if not full and all(len(group) for group in made.groups):
            groups = _possible(made, made.demands(limits or {}))
            groups = [undominated(g, [n for n in g.columns if n.startswith("P_")], clock) for g in groups]
            made = replace(made, groups=tuple(groups))
        yield made


def ways(pins: Pins, *, full: bool = False) -> list[tuple[str, str]]:
    """Return the ways to share and to keep: what is shared is never fetched more often, so less is only for pins."""
    shares = [s for s in SHARES if pins.allows("share", s)]
    shares = [s for s in shares if full or not any(set(SHARES[s]) < set(SHARES[o]) for o in shares)]
    return [(share, keep) for share, keep in product(shares, KEEPS) if pins.allows("keep", keep)]


def _countable(member: Member, used: Sequence[Linear]) -> None:
    """Raise InputError if a sum of products might reach `LARGEST`, whatever is chosen; in Python's integers.

    Products of some groups' terms only, and with the least of the others, are not above those with the largest of all.
    """
    largest = [[max(1, int(most)) for most in group.terms.max(axis=0, initial=0)] for group in member.groups]
    products = {name: prod(of[at] for of in largest) for at, name in enumerate(member.names)}
    for what in used:
        most = abs(what.constant) + sum(abs(factor) * products[name] for name, factor in what.factors.items())
        if most >= LARGEST:
            raise InputError(
                f"layer {member.setup.layer.name}: {' + '.join(what.factors)} could come to {most:,}; the problem mesh "
                f"counts up to 2**53"
            )


def _possible(member: Member, demands: Sequence[tuple[Linear, int]]) -> list[Group]:
    """The options that keep every demand with the least of each term in the other groups, keys that fit given."""
    groups, total = list(member.groups), np.array(member.total, dtype=np.int64)
    for _ in range(2):
        for at in sorted(range(len(groups)), key=lambda k: len(groups[k])):
            group, rest = groups[at], _least_by_key([g for k, g in enumerate(groups) if k != at])
            kept = np.zeros(len(group), dtype=bool)
            for key in np.unique(group.keys, axis=0):
                member.setup.clock.tick()
                which = np.flatnonzero((group.keys == key).all(axis=1))
                others = rest.get(tuple(int(k) for k in total - key))
                if others is None:
                    continue
                fits = np.ones(len(which), dtype=bool)
                for what, most in demands:
                    fits &= group.terms[which] @ (member.vector(what) * others) + what.constant <= most
                kept[which] = fits
            groups[at] = group.take(np.flatnonzero(kept))
            if not len(groups[at]):
                return [group.take(np.zeros(0, dtype=np.int64)) for group in groups]
    return groups


def _least_by_key(groups: Sequence[Group]) -> dict[tuple[int, ...], Ints]:
    """For every sum of keys the least of each term that groups together can have."""
    found: dict[tuple[int, ...], Ints] = {}
    for group in groups:
        own = {}
        for key in np.unique(group.keys, axis=0):
            which = (group.keys == key).all(axis=1)
            own[tuple(int(k) for k in key)] = group.terms[which].min(axis=0)
        if not found:
            found = own
            continue
        joined: dict[tuple[int, ...], Ints] = {}
        for one, least in found.items():
            for two, more in own.items():
                key = tuple(a + b for a, b in zip(one, two, strict=True))
                both = least * more
                joined[key] = both if key not in joined else np.minimum(joined[key], both)
        found = joined
    return found


def movable(setup: Setup, pins: Pins = _FREE) -> tuple[str, ...]:
    """Indices that units and PEs of a mesh may lie along: those above 1, and the first of size 1.

    All units and PEs but one idle along the latter: that spares banks where every other vector hits one twice, and a
    side where tiles that stay would be fetched more often. One such index is enough. Say d and e have size 1. Then
    T[d] = trips[d] = 1, whatever side[d] and P[d] are, so often[d] = 1, the factor of d in the cycles is 1 and axes
    have the extent 1 along d; no bit of lane[d] is active (`formulations.mesh.finish`), and bits that are not active
    are alike. The same holds for e. So moving a side, or PEs, from e to d (P[d]*P[e], P[e] = 1) changes no price, no
    demand and no layout. Only pins tell d from e: where one names PEs or sides, all parallel indices may move.
    """
    workload = setup.ndrange
    if any(pin.name.startswith("P_") or pin.name in ("rows", "cols") for pin in pins.pins):
        return workload.parallel
    idle = [d for d in workload.parallel if workload.sizes[d] == 1][:1]
    return tuple(d for d in workload.parallel if workload.sizes[d] > 1 or d in idle)


class _Space:
    """The options of one way to share and to keep, with the PE vector (`lanes`) or without, all tiles or few (`thin`).

    `movable`: indices that may lie along sides of the mesh. `total`: what the keys sum up to.
    """

    def __init__(self, setup: Setup, pins: Pins, lanes: bool, thin: bool) -> None:
        self.setup, self.pins, self.lanes, self.thin = setup, pins, lanes and setup.mesh.kind == "teu", thin
        workload, mesh = setup.ndrange, setup.mesh
        self.kind = mesh.kind
        self.square = mesh.rows == mesh.cols and not (pins.of("rows") or pins.of("cols"))
        self.movable = movable(setup, pins) if mesh.kind == "teu" else tuple(sorted(workload.temporal))
        sides = {"teu": (2,) if self.square else (1, 1), "systolic": (1,), "row_stationary": ()}[mesh.kind]
        self.total = (*sides, *((mesh.pes.bit_length() - 1,) if self.lanes else ()))

    def member(self, needs: frozenset[str]) -> Member:
        """All options; `needs` as in `members`."""
        measures, caps = {k: v for k, v in linear_of(self.setup).items() if k in needs}, caps_of(self.setup)
        used = [*measures.values(), *(cap.what for cap in caps)]
        names = tuple(dict.fromkeys(name for what in used for name in what.factors))
        groups = tuple(self._group(group, names) for group in self.setup.ndrange.groups)
        made = Member(self.setup, groups, names, measures, caps, self.total)
        _countable(made, used)
        return made

    def _sides(self, d: str) -> list[int]:
        """The sides that an index may have."""
        if self.kind == "row_stationary" or d not in self.movable:
            return [0]
        if self.kind == "systolic":
            return [0, 1] if self.pins.allows("rows", d) else [0]
        if self.square:
            return [0, 1, 3]
        rows, cols = self.pins.allows("rows", d), self.pins.allows("cols", d)
        return [s for s in range(4) if (rows or not s & 1) and (cols or not s & 2)]

    def _keys(self, sides: Ints) -> list[Ints]:
        """What the sides of an index add to the keys."""
        if self.kind != "teu":
            return [sides] if self.kind == "systolic" else []
        rows, cols = sides & 1, sides >> 1
        return [rows + cols] if self.square else [rows, cols]

    def _group(self, group: tuple[str, ...], names: tuple[str, ...]) -> Group:
        """The options of one group of indices."""
        axes: dict[str, list[int]] = {}
        self.setup.clock.tick()
        for d in group:
            axes |= self._ranges(d)
        grid = np.meshgrid(*(np.array(a, dtype=np.int64) for a in axes.values()), indexing="ij")
        columns = {name: entries.reshape(-1) for name, entries in zip(axes, grid, strict=True)}
        for held, d in (("filters", "T_M"), ("channels", "T_N")):
            if held in columns:
                fits = columns[held] <= columns[d]
                columns = {name: entries[fits] for name, entries in columns.items()}
        tiles = [columns[f"T_{d.upper()}"] for d in group]
        made = {f"P_{d.upper()}": np.ones_like(tiles[0]) for d in group} | columns
        terms = terms_of(self.setup, group, made)
        keys = [sum(parts) for parts in zip(*(self._keys(columns[f"S_{d.upper()}"]) for d in group), strict=True)]
        if self.lanes:
            keys.append(sum(np.log2(made[f"P_{d.upper()}"]).astype(np.int64) for d in group))
        none = np.zeros((len(tiles[0]), 0), dtype=np.int64)
        return Group(
            tuple(columns), np.stack(list(columns.values()), axis=1), np.stack([terms[n] for n in names], axis=1),
            np.stack(tiles, axis=1) if self.kind == "teu" else none, np.stack(keys, axis=1) if keys else none,
        )  # fmt: skip

    def _ranges(self, d: str) -> dict[str, list[int]]:
        """The values of the columns of an index."""
        setup, pins, size, name = self.setup, self.pins, self.setup.ndrange.sizes[d], d.upper()
        whole = d in setup.ndrange.temporal and (setup.keep != "none" or (self.kind == "row_stationary" and d in "ij"))
        tiles = np.arange(size if whole else 1, size + 1, dtype=np.int64)
        if self.thin and not whole:
            tiles = np.unique(-(-size // tiles))
        found = {f"T_{name}": [int(t) for t in pins.sizes(f"T_{name}", tiles)], f"S_{name}": self._sides(d)}
        if self.lanes:
            powers = np.array([2**k for k in range(setup.mesh.pes.bit_length())], dtype=np.int64)
            powers = powers if d in self.movable else powers[:1]
            found[f"P_{name}"] = [int(p) for p in pins.sizes(f"P_{name}", powers)]
        if self.kind == "row_stationary" and d in "mn":
            held = "filters" if d == "m" else "channels"
            most = np.arange(1, min(size, setup.mesh.local_bytes) + 1, dtype=np.int64)
            found[held] = [int(p) for p in pins.sizes(held, most)]
        return found


def _fitting(member: Member, group: Group) -> Group:
    """The options that break no demand by themselves: every term of every group is at least one, or not there."""
    kept = np.ones(len(group), dtype=bool)
    for what, most in member.demands({}):
        kept &= group.terms @ member.vector(what) + what.constant <= most
    return group.take(np.flatnonzero(kept))


def undominated(group: Group, fixed: Sequence[str] = (), clock: Clock = ENDLESS) -> Group:
    """Leave out options that are dominated by, or equal to, one with the same keys and the same columns `fixed`."""
    if not len(group):
        return group
    at = [group.columns.index(name) for name in fixed]
    classes = np.concatenate([group.keys, group.values[:, at]], axis=1)
    costs = np.concatenate([group.terms, group.shape], axis=1)
    _, which = np.unique(classes, axis=0, return_inverse=True) if classes.size else (None, np.zeros(len(group)))
    kept = [_front(np.flatnonzero(which.reshape(-1) == label), costs, clock) for label in np.unique(which)]
    return group.take(np.sort(np.concatenate(kept)))


def _front(rows: Ints, costs: Ints, clock: Clock) -> Ints:
    """The undominated rows; a row comes before those that it dominates."""
    rows = rows[np.argsort(costs[rows].sum(axis=1, dtype=np.float64), kind="stable")]
    found = []
    while len(rows):
        clock.tick()
        first = rows[0]
        found.append(first)
        rows = rows[1:][(costs[rows[1:]] < costs[first]).any(axis=1)]
    return np.array(found, dtype=np.int64)
