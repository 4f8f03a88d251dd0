"""What transfers with two buffers hide behind each other at most: a lower bound on the time of classes of nests.

Sets
    steps k = 0..N-1: C_k is computed, L_(k+1) loaded ahead and S_(k-1) stored behind meanwhile, so that
    ``T = L_0 + sum_k max(C_k, L_(k+1), S_(k-1)) + S_(N-1)``; C, L, S without an index are sums
    kinds of loads, those of outer Holds first: where a kind is loaded, all behind it are. Of an input that slides
    those that begin a pass are a kind, and those that slide another one; partial sums that come back are one too
Known of a class (`hwmodels.nest.price.ranges`, and tables of as many pieces at least)
    sums of each kind and of stores and compute at least; the most ticks of one load of a kind with all behind it
    (cap), of a store (s), of the compute of a step that one comes beside: of loads the last step of an iteration of
    their loops (c_i), of stores the first one (c_h); the least compute c' of a step; numbers of loads and of stores
    F  what the first step loads; F' >= F  all loads of the first tile of OUT, ahead of its last step
    D  the last store; D_X >= D  all stores of the last iteration of the loops outside Hold(X), behind all loads of X
Claims, for kinds i from any one to any other, loaded n_i times beside F, at h = stores - 1 hosts (steps that store)
    1. T >= F + C + D;  F' + c' + S;  A + c' + D_X for all loads A, X innermost (D, if partial sums come back);
       F + S + C' with all compute C' of the first tile of OUT, which is ahead of all stores
    2. max(x, y) = x + y - min(x, y): T >= F' + S + max(0, sum (A_i - F'_i) - hidden), the least of a load and a store
       being hidden where a step has both; and T >= F + S + max(0, sum (A_i - F_i) - hidden) + c'*(N - h - sum n_i)
    3. T >= F + C + D + max(0, sum (A_i - F_i) - sum n_i min(cap_i, c_i))
    4. T >= F + D + sum (A_i - F_i) + C(n) with C(n) = max(C - sum n_i c_i, (N - n)*c'), the compute of all but n steps,
       or with that of the last iteration of the loops outside the innermost Hold of these, behind all of them; and
       T >= F + S + C(h);  T >= F + C + max(D, S - h*min(s, c_h))
    The other operands of F and F' come on top each time; what one buffer moves stands between the steps.
Hidden
    With as many loads of outer kinds as there may be, ``sum p_i min(cap_i, s)``, ``sum p_i <= h``; where every step
    loads, at most N - 2 steps have both. Or kind by kind, with as few loads of outer kinds as there are:
    none if each iteration of its loops, or of those of OUT, has two steps, and the former are inside or outside the
    latter: a host is the first step of a tile of OUT, and loads no other kind than those inside;
    no more than S - D_X, stores behind all its loads; outside OUT no more than the stores of one tile an iteration,
    the last but one, whose pieces add up to the range where OUT is not cut further. The first of them is in the first
    iteration, and the last load of a kind in the last one.
Every claim takes for each step one of the three, or two of them less what both have, so each is a path at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from hwmodels.nest.homes import repriced
from hwmodels.nest.price.bilinear import Ints
from hwmodels.nest.price.boxes import shape_of
from hwmodels.nest.price.choices import AXIS, KERNELS, Choices, Term
from hwmodels.nest.price.core import CoreTables
from hwmodels.nest.price.pieces import ended_rounds
from hwmodels.nest.price.ranges import Mask, Ranges, Sizes, first_rows
from hwmodels.nest.price.relaxed import smallest_windows, used_rows
from hwmodels.nest.price.tables import priced_kinds, ticks_of
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, REDUCTION, RELEVANT

#: More than any time; of classes that hold no nest.
FAR = 2**62
#: Numbers and bytes are counted up to here: nests of so many steps take more ticks (`Hidden.bound`).
MOST = 2**36


@dataclass(frozen=True, eq=False)
class Kind:
    """Loads that come together; all are arrays (N,)."""

    operand: str
    place: int
    """Loops outside what it belongs to."""
    number: Ints
    """At most; `fewest` at least."""
    fewest: Ints
    steps: Ints
    """Of every iteration of those loops, at least."""
    every: Mask
    """Whether every step loads it for sure."""
    cap: Ints
    """Ticks of one at most."""
    total: Ints
    """Of all at least."""
    first: Ints
    """Of these in the first step; `begun`: ahead of the last step of the first tile of OUT."""
    begun: Ints
    kept: Ints
    """Ticks of stores behind all loads of this kind."""
    late: Ints
    """Of the last one at most, with all behind it."""
    store: Ints
    """Ticks of a store that one comes beside, at most; `FAR` where nothing more is known of it."""
    early: Ints
    """Of the one that the first load but F comes beside, at most."""
    turns: Ints
    """The most ticks of stores that its loads come beside, one an iteration; `FAR` where nothing is known."""
    busy: Ints
    """Compute of a step that one comes beside, at most: the last one of an iteration."""


class Hidden(Sizes):
    """Bounds on the time of classes of one core's nests."""

    @cached_property
    def priced(self) -> Machine:
        """Bursts of pieces without places are counted aligned, which is never more."""
        machine = self.machine
        return repriced(machine, burst_count="aligned") if machine.by_address else machine

    @cached_property
    def doubled(self) -> tuple[str, ...]:
        """Operands with two buffers."""
        return tuple(op for op in self.ops if self.buffers[op] == 2)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Those of them that are loaded."""
        return tuple(op for op in self.doubled if op != "OUT")

    def bound(self, some: Ranges) -> tuple[Ranges, Ints]:
        """The classes with tighter ranges, and what no time of their nests is below (N,); `FAR` where nothing fits."""
        some, fits = self.tightened(some)
        time = np.full(len(some), FAR)
        if fits.any():
            time[fits] = _Bound(self, some.take(fits)).time
        return some, time

    # ---- sums ------------------------------------------------------------------------------------------------------

    def sums(self, some: Ranges) -> dict[str, Ints]:
        """Ticks (N,) at least of all loads of IN, W and partial sums ("PSUM"), of all stores ("OUT") and "compute"."""
        known = np.ones(len(some), np.bool_)
        for number, (d, _) in enumerate(self.loops):
            known &= (d not in KERNELS) | (some.fewest[number] == some.most[number])
        found: dict[str, Ints] = {}
        for at, how in ((np.flatnonzero(known), "counts"), (np.flatnonzero(~known), "numbers")):
            for name, values in self._summed(some.take(at), how).items() if len(at) else ():
                found.setdefault(name, np.zeros(len(some), np.int64))[at] = values
        return found

    def _summed(self, some: Ranges, how: str) -> dict[str, Ints]:
        machine, shape = self.priced, len(some)
        tables = CoreTables(self.layer, machine, self.skeleton, self.core, self._choices(some, how))
        rows = tables.transfers(priced_kinds(machine))
        ticks = {row: _total(ticks_of(machine, {row: kinds}), shape) for row, kinds in rows.items()}
        cycle = machine.compute.cycle_ticks
        return {
            "IN": ticks["IN"], "W": ticks["W"], "PSUM": ticks["PSUM_READ"], "OUT": ticks["OUT"] + ticks["PSUM_WRITE"],
            "compute": _total([(a * cycle, b) for a, b in tables.compute_cycles()], shape),
        }  # fmt: skip

    def _choices(self, some: Ranges, how: str) -> Choices:
        """One choice for each class: as many pieces as it has at least; of the kernel parts as large as they may be."""
        steps, tiles, index = dict[str, Ints](), dict[str, Ints](), dict[str, Ints]()
        for axis in dict.fromkeys(AXIS.values()):
            dims = [d for d in DIMS if AXIS[d] == axis]
            sizes = [(some.high if d in KERNELS.values() else some.fewest) for d in dims]
            columns = [
                [self.sized(x, d, k + 1) for k in range(self.levels[d])] for d, x in zip(dims, sizes, strict=True)
            ]
            rows = np.array([row for part in columns for row in part], np.int64).reshape(-1, len(some))
            chains, index[axis] = (
                np.unique(rows, axis=1, return_inverse=True)
                if len(rows)
                else (rows[:, :1], np.zeros(len(some), np.int64))
            )
            for d, part in zip(dims, columns, strict=True):
                steps[d], chains = np.ascontiguousarray(chains[: len(part)].T), chains[len(part) :]
                tiles[d] = steps[d][:, -1] if part else np.full(len(steps[d]), self.extent[d])
        index = {axis: at.ravel() for axis, at in index.items()} | {"slide": np.zeros(len(some), np.int64)}
        ideal = {d: "steps" if d in KERNELS.values() else how for d in DIMS if self.levels[d]}
        return Choices(steps, tiles, index, (self.slide,) if self.slide else (), ideal=ideal, more=True)

    # ---- ticks of tiles --------------------------------------------------------------------------------------------

    def price(self, op: str) -> tuple[Transfer, int]:
        """The prices of an operand, and of a burst."""
        transfer = self.priced.transfer_of(op)
        return transfer, transfer.burst_ticks if transfer.burst_bytes else 0

    def runs(self, some: Ranges, op: str, elements: Ints, along: str = "") -> Ints:
        """Contiguous runs (N,) of any tile of an operand, of which the largest has so many elements, at most.

        As many as the product of its extents outside the axis that it breaks at, the largest of which have at least
        their least sizes. `along`: of IN with few rows (columns), as slides fetch them.
        """
        tile, width, whole = self.tile(some, op), np.ones(len(some), np.int64), np.ones(len(some), np.bool_)
        for d, extent in reversed(shape_of(self.layer, self.machine, op)):
            if d != along:
                width = np.where(whole, width * np.maximum(tile[d], 1), width)
            uncut = self.counted(some.most, d, self.level[op][d]) == 1
            if op == "IN" and d in KERNELS:
                uncut &= self.sized(some.low, KERNELS[d], self.level[op][KERNELS[d]]) == self.extent[KERNELS[d]]
            whole &= (tile[d] == extent) & uncut & (d != along)
        most: Ints = np.maximum(1, elements // width)
        return most

    def ticks(self, op: str, number: Ints | int, size: Ints, runs: Ints) -> Ints:
        """Ticks (N,) of so many tiles of an operand with so many bytes, and runs of each input, together, at most."""
        (transfer, burst), copies = self.price(op), len(self.layer.loaded) if op == "IN" else 1
        if op == "W" and self.layer.bias and self.machine.bias_bytes:  # no more elements or runs than the weights have
            runs = 2 * runs
            size = size + size // self.machine.w_bytes * self.machine.bias_bytes
        bursts = -(-size // transfer.burst_bytes) + 2 * copies * runs if burst else 0
        calls = copies * (transfer.call_ticks * number + transfer.segment_ticks * runs)
        return calls + transfer.byte_ticks * size + burst * bursts

    def least_ticks(self, op: str, elements: Ints) -> Ints:
        """Ticks (N,) of a tile of so many elements, of each input, in one run; none of nothing."""
        (transfer, burst), copies = self.price(op), len(self.layer.loaded) if op == "IN" else 1
        one = copies * (transfer.call_ticks + transfer.segment_ticks + burst)
        return np.where(elements > 0, one + transfer.byte_ticks * elements * self.element[op], 0)

    def edge_ticks(self, some: Ranges, op: str, within: str = "") -> Ints:
        """Ticks (N,) of the first tile of IN or W, or the last one of OUT, at least.

        `within`: of all of it in the first (last) iteration of the loops outside the Hold of another operand.
        """
        level, ends = self.level[op], some.last if op == "OUT" else some.first
        if within:
            level = {d: min(level[d], self.level[within][d]) for d in DIMS}
        dims = [d for d in self.axes[op] if op != "IN" or d not in KERNELS]
        sizes = [self.edge(some, ends, d, level[d]) for d in dims]
        for d, kernel in KERNELS.items() if op == "IN" else ():
            (lo, hi), window = self.core.range(d), self.windows[d]
            stop = np.arange(lo + 1, hi + 1)[:, None]
            first, end = window.rows(np.array(lo), stop, 0, np.arange(1, window.taps + 1))
            rows = np.minimum(np.maximum(end - first, 0), first_rows(lo, hi, window)) if within else end - first
            outputs, taps = (self.edge(some, ends, x, level[x]) for x in (d, kernel))
            sizes.append(np.maximum(rows, 0)[outputs - 1, taps - 1])
        return self.least_ticks(op, np.prod(sizes, axis=0))

    # ---- compute ---------------------------------------------------------------------------------------------------

    def worked(self, some: Ranges, size: Mapping[str, Ints], results: Ints | None = None) -> Ints:
        """Compute (N,) of pieces of these sizes at least, however they are cut; with the most `results`, at most."""
        unit, layer, one = self.machine.compute, self.layer, np.ones(len(some), np.int64)
        if unit.model == "none":
            return one * 0
        if unit.model != "array":  # a tile takes a cycle at least, and one an element at most
            return one * (1 if results is None else prod(self.extent.values()) * layer.inputs * unit.cycle_ticks)
        dim, lanes = ("g", unit.cols) if layer.m == layer.n == 1 else ("m", unit.rows)
        places = size["b"] * size["r"] * size["c"] * (size["g"] if dim == "m" else 1)
        work = places * -(-size[dim] // lanes)
        if results is not None:  # ceil(m/l) is at most (m + l - 1)/l
            work = np.minimum(work, (results + (lanes - 1) * places) // lanes)
        taps = size["i"] * size["j"] * (-(-size["n"] // unit.cols) if dim == "m" else 1)
        ticks: Ints = one * work * taps * layer.inputs * unit.cycle_ticks
        return ticks

    def iteration(self, some: Ranges, op: str) -> Ints:
        """Compute (N,) of the first iteration of the loops outside Hold(OUT), or the last one of others, at least."""
        ends = some.first if op == "OUT" else some.last
        return self.worked(some, {d: self.edge(some, ends, d, self.level[op][d]) for d in DIMS})

    def all_compute(self, some: Ranges, total: Ints) -> Ints:
        """Compute (N,) of all steps, `total` by tables, where no piece is larger than fits: it fills fewer lanes."""
        unit, depthwise = self.machine.compute, self.layer.m == self.layer.n == 1
        lanes = {"g": unit.cols} if depthwise else {"m": unit.rows, "n": unit.cols}
        for d, wide in lanes.items():
            if unit.model != "array" or not self.levels[d]:
                continue
            ways = [[[self.sized(x, d, k + 1) for x in pair] for pair in some.pairs] for k in range(self.levels[d])]
            least = np.maximum.reduce([ended_rounds(self.extent[d], wide, *one) for one in ways])  # inner: no fewer
            total = total // np.maximum(ways[-1][0][0], -(-self.extent[d] // wide)) * least
        return total

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def visits(self, numbers: Ints, op: str = "") -> Ints:
        """Iterations (N,) of the loops outside a Hold; of all loops without one."""
        return _product(self.counted(numbers, d, self.level[op][d] if op else self.levels[d]) for d in DIMS)

    def steps(self, some: Ranges, op: str) -> Ints:
        """Steps (N,) of every iteration of the loops outside a Hold, at least: dimensions are cut inside it alone."""
        inside = [d for d in DIMS if not self.level[op][d]]
        return _product([np.ones(len(some), np.int64), *(self.counted(some.fewest, d, self.levels[d]) for d in inside)])

    def every(self, some: Ranges, op: str) -> Mask:
        """Whether every step begins a tile: no loop inside the Hold cuts anything (N,)."""
        sure = np.ones(len(some), np.bool_)
        for d in DIMS:
            before, behind = self.level[op][d], self.levels[d]
            if behind > before:
                sure &= self.counted(some.most, d, behind) == self.counted(some.fewest, d, before)
        return sure


class _Bound:
    """The bound of some classes, by the claims of the module's docstring."""

    def __init__(self, of: Hidden, some: Ranges) -> None:
        self.of, self.some, self.sums = of, some, of.sums(some)
        self.zero = np.zeros(len(some), np.int64)
        room, _ = of.room(some)
        self.elements = {op: np.minimum(prod(of.tile(some, op, most=True).values()), room[op]) for op in of.ops}
        self.runs = {op: of.runs(some, op, self.elements[op]) for op in of.ops}
        self.moved = {op: self._moved(op) for op in of.ops}
        self.least_compute = of.worked(some, {d: of.least(some, d, of.levels[d]) for d in DIMS})
        self.behind = {op: of.iteration(some, op) for op in of.loaded} | {"OUT": self.least_compute}
        self.several = of.steps(some, "OUT") >= 2
        self.steps, self.fewest_steps = of.visits(some.most), of.visits(some.fewest)
        self.compute = of.all_compute(some, self.sums["compute"])
        self.host_compute = self._busy(of.level["OUT"], some.first_most)
        self.stores, self.hosts, self.store_cap, self.last = self.zero, self.zero, self.zero, self.zero
        if "OUT" in of.doubled:
            self.stores, self.hosts = self.sums["OUT"], of.visits(some.most, "OUT") - 1
            self.store_cap, self.last = self._most("OUT"), of.edge_ticks(some, "OUT")
        loads = of.loaded
        self.first = {op: of.edge_ticks(some, op) for op in loads}
        self.begun = {op: of.edge_ticks(some, op, "OUT") for op in loads}
        self.kept = {op: of.edge_ticks(some, "OUT", op) if "OUT" in of.doubled else self.zero for op in loads}
        self.kinds = self._kinds()

    @property
    def time(self) -> Ints:
        """What no time is below (N,)."""
        first, begun = sum(self.first.values(), self.zero), sum(self.begun.values(), self.zero)
        found = [first + self.compute + self.last, begun + self.least_compute + self.stores]
        found.append(first + self.of.iteration(self.some, "OUT") + self.stores)
        loads = sum((self.sums[op] for op in self.first), self.zero)
        found.append(loads + self.least_compute + self._behind())
        found.append(first + self.stores + self._left(self.hosts, self.hosts * self.host_compute))
        beyond = self.stores - self.hosts * np.minimum(self.store_cap, self.host_compute)
        found.append(first + self.compute + np.maximum(self.last, beyond))
        for start, kind in enumerate(self.kinds):
            if start and kind.operand == self.kinds[start - 1].operand:
                continue  # what slides is known beside what passes begin with only
            for end in range(start, len(self.kinds)):
                found += self._hiding(self.kinds[start : end + 1], first, begun)
        alone = sum((self.sums[op] for op in self.of.ops if op not in self.of.doubled), self.zero)
        alone = alone + (self.zero if "OUT" in self.of.doubled else self.sums["PSUM"])
        time: Ints = np.maximum.reduce(found) + alone + self.of.machine.layer_ticks
        return time

    def _behind(self) -> Ints:
        """What is stored behind all loads, and behind a step (and the partial sums that are loaded)."""
        if "OUT" not in self.of.doubled:
            return self.zero
        partial, loads = self.sums["PSUM"] + self.last, self.of.loaded
        return np.where(self.sums["PSUM"] > 0, partial, self.kept[loads[-1]]) if loads else partial

    def _left(self, steps: Ints, busy: Ints) -> Ints:
        """Compute of all but so many steps, at least, which take no more than `busy`."""
        least = np.maximum(0, self.fewest_steps - steps) * self.least_compute
        left: Ints = np.maximum(self.compute - busy, least)
        return left

    def _hiding(self, kinds: list[Kind], first: Ints, begun: Ints) -> Iterator[Ints]:
        """Yield what the loads of some kinds add that stores, or compute, do not hide."""
        loads = _apart([kind.number for kind in kinds])
        count = sum(loads, self.zero)
        total = sum((kind.total - kind.first for kind in kinds), self.zero)
        hidden = np.minimum(self._together(kinds, loads), self._each(kinds))
        yield begun + self.stores + np.maximum(0, sum((k.total - k.begun for k in kinds), self.zero) - hidden)
        alone = np.maximum(0, self.fewest_steps - self.hosts - count) * self.least_compute
        yield first + self.stores + np.maximum(0, total - hidden) + alone
        busy = sum((n * np.minimum(k.cap, k.busy) for n, k in zip(loads, kinds, strict=True)), self.zero)
        yield first + self.compute + self.last + np.maximum(0, total - busy)
        left = self._left(count, sum((n * k.busy for n, k in zip(loads, kinds, strict=True)), self.zero))
        yield first + self.last + total + np.maximum(left, self.behind[kinds[-1].operand])

    def _together(self, kinds: list[Kind], loads: list[Ints]) -> Ints:
        """Hidden behind stores: as many loads of outer kinds as there may be, each with the most that it hides."""
        left, hidden = np.where(kinds[-1].every, np.minimum(self.hosts, np.maximum(self.steps - 2, 0)), self.hosts), []
        for kind, number in zip(kinds, loads, strict=True):
            pairs = np.minimum(number, left)
            hidden.append(pairs * np.minimum(kind.cap, self.store_cap))
            left = left - pairs
        return sum(hidden, self.zero)

    def _each(self, kinds: list[Kind]) -> Ints:
        """The same kind by kind, with as few loads of outer kinds as there are."""
        hidden, before, inside = self.zero, self.zero, np.ones(len(self.some), np.bool_)
        for kind in kinds:
            pairs = np.minimum(np.maximum(kind.number - 1 - before, 0), self.hosts)
            if kind is kinds[-1]:
                pairs = np.where(kind.every & inside, np.minimum(pairs, np.maximum(self.steps - 2 - before, 0)), pairs)
            most = np.minimum(kind.cap, np.minimum(kind.store, self.store_cap))
            some = np.where(pairs == kind.number - 1, self._ended(kind, pairs, most), pairs * most)
            some = np.where(self._barred(kind), 0, np.minimum(some, np.maximum(self.stores - kind.kept, 0)))
            hidden = hidden + np.minimum(some, kind.turns)
            before, inside = kind.fewest - 1, inside & (kind.steps >= 2)
        return hidden

    @staticmethod
    def _ended(kind: Kind, pairs: Ints, most: Ints) -> Ints:
        """Hidden of all loads but F, so many, `most` of each: the first and the last one are known better."""
        early, late = np.minimum(most, kind.early), np.minimum(most, kind.late)
        one = np.where(pairs == 1, np.minimum(early, late), 0)
        return np.where(pairs >= 2, np.maximum(pairs - 2, 0) * most + early + late, one)

    def _barred(self, kind: Kind) -> Mask:
        """Whether no host loads this kind: the first step of a tile of OUT is not the last one of an iteration."""
        outs = self.of.skeleton.depth["OUT"]
        inside = (kind.steps >= 2) & (kind.place >= outs)
        outside: Mask = self.several & (kind.place <= outs)
        return inside | outside

    # ---- kinds -----------------------------------------------------------------------------------------------------

    def _most(self, op: str, elements: Ints | None = None) -> Ints:
        """Ticks (N,) of a tile of so many elements, or the largest, at most; of OUT as partial sums, if any."""
        size = self.elements[op] if elements is None else elements
        return self.of.ticks(op, 1, size * self.moved[op], np.minimum(self.runs[op], size))

    def _moved(self, op: str) -> Ints:
        """Bytes (N,) of an element that is moved, at most."""
        machine, reduced = self.of.machine, self.zero > 0
        if op != "OUT":
            return self.zero + self.of.element[op]
        for d in REDUCTION:
            reduced = reduced | (self.of.counted(self.some.most, d, self.of.level["OUT"][d]) > 1)
        partial = reduced | machine.psum_first_read
        return np.where(partial, max(machine.psum_bytes, machine.out_bytes), machine.out_bytes)

    def _kinds(self) -> list[Kind]:
        """All kinds of loads, outer ones first, with the caps of those behind."""
        found, behind = list[Kind](), dict[str, Ints]()
        for op in self.of.doubled:
            slides = op == "IN" and self.of.slide is not None and self.of.slide[0] in KERNELS
            if op != "OUT":
                found += self._sliding() if slides else [self._kind(op)]
            elif self.sums["PSUM"].any():
                found.append(self._kind("OUT"))
        for number, kind in reversed(list(enumerate(found))):
            more = sum((most for op, most in behind.items() if op != kind.operand), self.zero)
            behind[kind.operand] = kind.cap
            found[number] = replace(kind, cap=kind.cap + more, late=kind.late + more)
        return found

    def _kind(self, op: str) -> Kind:
        """The loads of an operand; of OUT partial sums."""
        kind = self._plain(op)
        told = self._told(kind, self.of.level[op])
        return told if op != "OUT" else replace(told, late=kind.late, early=kind.early)  # some visits load nothing

    def _plain(self, op: str) -> Kind:
        """The same without what is known of single loads and stores."""
        of, some, psum, far = self.of, self.some, op == "OUT", self.zero + FAR
        return Kind(
            op, of.skeleton.depth[op], of.visits(some.most, op), of.visits(some.fewest, op), of.steps(some, op),
            of.every(some, op), self._most(op), self.sums["PSUM" if psum else op],
            self.zero if psum else self.first[op], self.zero if psum else self.begun[op],
            self.last if psum else self.kept[op], far, far, far, far, self._busy(of.level[op]),
        )  # fmt: skip

    def _busy(self, level: Mapping[str, int], ends: Ints | None = None) -> Ints:
        """Compute (N,) at most of the last step of an iteration of the loops up to a level, or the first (`ends`)."""
        of, ends, high = self.of, self.some.last_most if ends is None else ends, self.some.high
        size = {d: of.sized(high if level[d] or d in KERNELS.values() else ends, d, of.levels[d]) for d in DIMS}
        return of.worked(self.some, size, results=self.elements["OUT"])

    def _told(self, kind: Kind, level: Mapping[str, int], along: str = "") -> Kind:
        """With it, of loads behind iterations of the loops up to a level; of passes along a dimension."""
        return replace(
            kind, late=self._final(kind.operand, along), store=self._beside(level, kind.steps),
            early=self._early(level), turns=self._turns(level, kind.number, kind.steps),
        )  # fmt: skip

    def _sliding(self) -> list[Kind]:
        """The loads of IN that begin a pass of the loop along which it slides, and those of the slides."""
        of, some, (dim, at) = self.of, self.some, self.of.slide or ("", 0)
        window, whole = of.windows[dim], self._plain("IN")
        level = {**of.level["IN"], dim: at}
        passes, fewest = (_product(of.counted(x, d, k) for d, k in level.items()) for x in (some.most, some.fewest))
        begin = np.minimum(self._begins(dim, at, fewest), whole.total)
        first = replace(
            whole, place=[number for number, d in enumerate(of.skeleton.order) if d == dim][at], number=passes,
            fewest=fewest, steps=whole.steps * (of.counted(some.fewest, dim, at + 1) if not at else 1),
            every=whole.every & (whole.number == passes), total=begin, busy=self._busy(level),
        )  # fmt: skip
        fresh = of.tile(some, "IN", most=True)
        rows = of.sized(some.high, dim, at + 1) * window.stride
        fresh[dim] = np.minimum(fresh[dim], rows) if window.reach >= window.stride else fresh[dim]
        elements = np.minimum(prod(fresh.values()), self.elements["IN"])
        cap = of.ticks("IN", 1, elements * self.moved["IN"], of.runs(some, "IN", self.elements["IN"], dim))
        slid = replace(
            whole, number=whole.number - self._idle(dim, at) * passes, fewest=fewest, cap=cap,
            total=whole.total - begin, first=self.zero, begun=self.zero,
        )  # fmt: skip
        return [self._told(first, level, dim), slid]

    def _idle(self, dim: str, at: int) -> Mask:
        """Whether the last piece of every pass fetches nothing for sure: all it needs is there, or behind the map."""
        if at:
            return self.zero > 0
        window, place = self.of.windows[dim], self.of.core.range(dim)
        clipped = window.clipping(*place)[1] // window.stride
        several = self.of.counted(self.some.fewest, dim, 1) > 1
        return self._whole(dim) & several & (self.of.sized(self.some.high, dim, 1) <= clipped)

    def _whole(self, dim: str) -> Mask:
        """Whether the kernel is whole along a dimension where IN is held, for sure."""
        kernel = KERNELS[dim]
        taps = self.of.sized(self.some.low, kernel, self.of.level["IN"][kernel])
        whole: Mask = taps == self.of.extent[kernel]
        return whole

    def _begins(self, dim: str, at: int, passes: Ints) -> Ints:
        """Ticks (N,) of the first windows of all passes at least; nothing where the kernel is in parts."""
        of, some = self.of, self.some
        (other,) = set(KERNELS) - {dim}
        rows = smallest_windows(*of.core.range(dim), of.windows[dim])[of.least(some, dim, at + 1) - 1, -1]
        again = prod(
            of.counted(some.fewest, d, of.level["IN"][d]) for d in DIMS if d not in RELEVANT["IN"] | {"i", "j"}
        )
        groups = of.counted(some.fewest, dim, at)
        elements = prod(of.extent[d] for d in "bgn") * used_rows(*of.core.range(other), of.windows[other])
        transfer, burst = of.price("IN")
        calls = len(of.layer.loaded) * (transfer.call_ticks + transfer.segment_ticks + burst)
        size = elements * rows * groups * again * of.element["IN"]
        return np.where(self._whole(dim) & (rows > 0), passes * calls + transfer.byte_ticks * size, 0)

    def _beside(self, level: Mapping[str, int], steps: Ints) -> Ints:
        """The most ticks of a store beside a load behind an iteration of the loops up to a level.

        It is of the tile before the last one of the iteration: of the dimensions that are cut in it, one has its last
        piece but one, all others their last one.
        """
        of, some = self.of, self.some
        inner = {d: of.level["OUT"][d] for d in of.axes["OUT"] if of.level["OUT"][d] > level[d]}
        if not inner or any(level[d] > of.level["OUT"][d] for d in DIMS):
            return self.zero + FAR
        high = {d: of.sized(some.high, d, k) for d, k in inner.items()}
        last = {d: high[d] if level[d] else of.sized(some.last_most, d, k) for d, k in inner.items()}
        others = prod((of.sized(some.high, d, of.level["OUT"][d]) for d in of.axes["OUT"] if d not in inner), start=1)
        most = self.zero
        for d, k in inner.items():
            rest = of.extent[d] - of.sized(some.last, d, k) - (of.counted(some.fewest, d, k) - 2)
            before = high[d] if level[d] else np.clip(rest, 0, high[d])
            most = np.maximum(most, before * others * prod((x for e, x in last.items() if e != d), start=1))
        elements = np.minimum(most, self.elements["OUT"])
        return np.where(steps >= 2, self._most("OUT", elements), FAR)

    def _early(self, level: Mapping[str, int]) -> Ints:
        """The most ticks of a store in the first iteration of the loops up to a level."""
        of, some, sizes = self.of, self.some, list[Ints]()
        for d in of.axes["OUT"]:
            inner = of.level["OUT"][d]
            if level[d] > inner:
                return self.zero + FAR
            most = of.sized(some.first_most, d, level[d])
            sizes.append(np.minimum(of.sized(some.high, d, inner), most) if inner > level[d] else most)
        elements = np.minimum(np.prod(sizes, axis=0), self.elements["OUT"])
        return self._most("OUT", elements)

    def _final(self, op: str, along: str = "") -> Ints:
        """The most ticks of the last load of an operand; of the first one of the last pass along a dimension."""
        of, some, level, tile = self.of, self.some, self.of.level[op], self.of.tile(self.some, op, most=True)
        for d in tile:
            if d == along or d in KERNELS.values():
                continue
            last = of.sized(some.last_most, d, level[d])
            if op == "IN" and d in KERNELS:
                last = of.windows[d].nominal(last, of.sized(some.high, KERNELS[d], level[KERNELS[d]]))
            tile[d] = np.minimum(tile[d], last)
        return self._most(op, np.minimum(np.prod(list(tile.values()), axis=0), self.elements[op]))

    def _turns(self, level: Mapping[str, int], number: Ints, steps: Ints) -> Ints:
        """The most ticks of the stores beside loads behind iterations of the loops up to a level, one each.

        Where OUT is cut further inside, an iteration of one step loads beside a tile of the one before.
        """
        of, some, sizes, further = self.of, self.some, list[Ints](), False
        for d in DIMS:
            outer, inner = level[d], of.level["OUT"][d]
            count = of.counted(some.most, d, outer)
            if outer > inner:
                return self.zero + FAR
            further |= inner > outer
            most = np.minimum(count * of.sized(some.high, d, inner), of.extent[d]) if inner > outer else of.extent[d]
            sizes.append(self.zero + most if d in RELEVANT["OUT"] else count)
        every, last = _product(sizes), prod(of.edge(some, some.last, d, of.level["OUT"][d]) for d in of.axes["OUT"])
        size = np.maximum(every - last, 0) * self.moved["OUT"]
        runs = number * self.runs["OUT"]
        known = (every < MOST) & ((steps >= 2) | (not further))
        return np.where(known, of.ticks("OUT", number, size, runs), FAR)


def _apart(numbers: list[Ints]) -> list[Ints]:
    """Loads of each kind beside the first one, and beside those of the kinds before."""
    found, before = list[Ints](), np.zeros_like(numbers[0])
    for number in numbers:
        found.append(np.maximum(number - 1 - before, 0))
        before = before + found[-1]
    return found


def _product(numbers: Iterable[Ints]) -> Ints:
    """Their product, up to `MOST`."""
    found: Ints | None = None
    for number in numbers:
        found = number if found is None else np.where(found > MOST // np.maximum(number, 1), MOST, found * number)
    assert found is not None
    return found


def _total(terms: list[Term], count: int) -> Ints:
    """The values of the choices that have the same number on both sides."""
    total: Ints = np.zeros(count, np.int64)
    for a, b in terms:
        total += a * b
    return total
