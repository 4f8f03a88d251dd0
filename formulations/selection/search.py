"""Selection by search: a frame as a layered graph, all its paths, and labels along those that may be in an optimum.

**Graph** (`trellis`): every path from its begin to its end is a choice for each layer, with all costs on arcs.
A node after layer j holds, for every layer whose map is still to be read, the state that made the map and the types to
which it has been converted. An arc is an option of the next layer. It takes what the option takes, the conversions of
the maps that it reads and that nobody before it has read so, and the hand-overs.

Example: a chain whose options are of two types has two nodes after every layer, and 2 k arcs for k options. Where a
map is read twice, its node waits until the second reader is there.

**All choices** (`exhaustive`) of a frame, in blocks: the oracle for small instances.

**Labels** (`search`): paths through the graph, layer by layer, of which none is kept that cannot be part of an optimum.
A label is the values of all rows (objective and limited ones) along a path to a node. It is dropped if
(DOMINANCE)  another label of the node is nowhere larger: whatever completes one completes the other, for values add up;
(BOUND)      for some m >= 0, a number for each row, m @ label + (least m @ rest of any path on from the node) is above
             m @ most, where `most` is the limit of a row, and for rows of the objective what is to be undercut. For
             then no completion keeps all of them. m are the unit vectors (each row by itself) and the multipliers of
             the Lagrangian relaxation that a subgradient search finds; least rests are shortest paths.

Arcs on no path within these bounds are taken out before labels are made. Searches widen: with at most 20 labels at a
node, then more. Each may give a better schedule to undercut, and one that drops no label for want of room has proven
that there is nothing less. Bounds are in floating point and leave a margin; labels are whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock, TimeUp
from formulations.problem import Unable
from formulations.selection.frame import LARGEST, Form, Frame, Ints, Row

#: Nodes after a layer, and arcs in all.
MOST_NODES, MOST_ARCS = 2_000, 1_000_000
#: A map that is still to be read: the layer, its state, the types that it is there in.
_Open = tuple[int, int, frozenset[str]]
_Node = tuple[_Open, ...]


@dataclass(frozen=True)
class Step:
    """The arcs of a layer, those from one node next to each other."""

    source: Ints
    """Nodes before the layer."""
    option: Ints
    target: Ints
    """Nodes after it."""
    takes: Ints
    """Of shape (arcs, quantities)."""
    nodes: int
    """After the layer."""


def trellis(frame: Frame) -> list[Step]:
    """Return the layers of the graph; one node is before the first and after the last layer.

    Raises Unable if too many maps are open at a time.
    """
    nodes: dict[_Node, int] = {(): 0}
    steps, arcs = list[Step](), 0
    for j in range(len(frame.layers)):
        after: dict[_Node, int] = {}
        rows: list[tuple[int, int, int]] = []
        takes: list[Ints] = []
        for node, source in nodes.items():
            for m in range(len(frame.states[j])):
                made = _read(frame, node, j, m)
                if made is None:
                    continue
                target = after.setdefault(made[0], len(after))
                for o, state in enumerate(frame.state[j]):
                    if state == m:
                        rows.append((source, o, target))
                        takes.append(frame.takes[j][o] + made[1])
        arcs += len(rows)
        if len(after) > MOST_NODES or arcs > MOST_ARCS:
            raise Unable(
                f"too many maps are open at a time ({len(after):,} states at {frame.layers[j].name}): use cp-sat"
            )
        arcs_of = np.array(rows, np.int64).reshape(-1, 3).T
        table = np.array(takes, np.int64).reshape(-1, frame.quantities)
        steps.append(Step(arcs_of[0], arcs_of[1], arcs_of[2], table, len(after)))
        nodes = after
    return steps


def _read(frame: Frame, node: _Node, j: int, m: int) -> tuple[_Node, Ints] | None:
    """The node after a layer in some state, and what lies between; None if types do not meet."""
    kept, extra, v = list[_Open](), np.zeros(frame.quantities, np.int64), frame.states[j][m]
    for i, n, kinds in node:
        if j in frame.readers[i]:
            u = frame.states[i][n]
            ticks = 0 if v[1] in kinds else frame.convert(i, u, v[1])
            if ticks is None:
                return None
            extra[u[0]] += ticks
            for q, amount in frame.hand(i, u, v).items():
                extra[q] += amount
            kinds |= {v[1]}
        if frame.readers[i][-1] > j:
            kept.append((i, n, kinds))
    if frame.readers[j]:
        kept.append((j, m, frozenset((v[1],))))
    return tuple(kept), extra


#: Choices that are tried at most, and at a time.
MOST, _BLOCK = 4_000_000, 65_536


def exhaustive(frame: Frame, asked: Form, clock: Clock) -> list[int] | None:
    """Return the first best choice of all, None if none keeps the limits.

    Raises Unable if there are more than `MOST`, and TimeUp.
    """
    shape = tuple(len(layer.options) for layer in frame.layers)
    number = prod(shape)
    if number > MOST:
        raise Unable(f"{number:.3g} choices, at most {MOST:,} are tried")
    best, least = None, asked.below
    for begin in range(0, number, _BLOCK):
        if clock.over:
            raise TimeUp
        chosen = np.array(np.unravel_index(np.arange(begin, min(begin + _BLOCK, number)), shape))
        total, fits = totals(frame, chosen)
        for row in asked.caps:
            fits &= _values(row.const, row.weights, total) <= (frame.largest if row.most is None else row.most)
        value = np.max([_values(row.const, row.weights, total) for row in asked.objective], axis=0)
        if fits.any():
            k = int(np.flatnonzero(fits)[value[fits].argmin()])
            if least is None or value[k] < least:
                best, least = chosen[:, k].tolist(), int(value[k])
    return best


def _values(const: int, weights: tuple[int, ...], total: Ints) -> Ints:
    return const + np.array(weights, np.int64) @ total


def totals(frame: Frame, chosen: Ints) -> tuple[Ints, Ints]:
    """Return totals of shape (quantities, choices), and which choices have types that meet.

    `chosen`: options by number, of shape (layers, choices).
    """
    number = chosen.shape[1]
    total, fits = np.zeros((frame.quantities, number), np.int64), np.ones(number, bool)
    for takes, row in zip(frame.takes, chosen, strict=True):
        total += takes[row].T
    states = [np.array(of, np.int64)[row] for of, row in zip(frame.state, chosen, strict=True)]
    for i, readers in enumerate(frame.readers):
        kinds = dict.fromkeys(v[1] for j in readers for v in frame.states[j])
        for n, u in enumerate(frame.states[i]):
            mine = states[i] == n
            for kind in kinds:
                read = np.zeros(number, bool)
                for j in readers:
                    read |= np.array([v[1] == kind for v in frame.states[j]])[states[j]]
                ticks = frame.convert(i, u, kind)
                if ticks is None:
                    fits &= ~(mine & read)
                else:
                    total[u[0]] += ticks * (mine & read)
            for j in readers:
                for m, v in enumerate(frame.states[j]):
                    for q, amount in frame.hand(i, u, v).items():
                        total[q] += amount * (mine & (states[j] == m))
    return total, fits


Floats = NDArray[np.float64]
#: Labels at a node, search after search.
WIDTHS = (20, 300, 3_000, 30_000, 300_000)
#: Subgradient steps, multipliers that are kept, and relative slack of bounds for rounding.
_STEPS, _KEPT, _MARGIN = 100, 4, 1e-9
#: Up to so many labels all are compared with each other; of more each one with the first of them. More than so many
#: times the width are not compared at all.
_PAIRS, _PEERS, _CROWD = 700, 300, 3
#: Labels at the end that are improved, and options that are exchanged with each other at most.
_STARTS, _EXCHANGES = 8, 400
_NEVER = 2**62


@dataclass
class Found:
    """What a search says."""

    chosen: list[int] | None = None
    """The best choice below what was to be undercut."""
    proven: bool = False
    """Whether nothing is less than it, or than what was to be undercut."""
    bound: int | None = None
    """Nothing is less."""
    multipliers: list[Floats] = field(default_factory=list)
    """Good ones, for frames that are alike."""
    options: list[list[int]] = field(default_factory=list)
    """By layer the options that a better choice may have."""


@dataclass(frozen=True)
class _Arcs:
    """Arcs of a layer, sorted by source, with the values of rows."""

    source: Ints
    option: Ints
    target: Ints
    values: Ints
    """Of shape (arcs, rows)."""
    scaled: Floats
    """The same over the scale of each row."""

    def kept(self, alive: NDArray[np.bool_]) -> _Arcs:
        """Some of them."""
        arcs = self.source[alive], self.option[alive], self.target[alive]
        return _Arcs(*arcs, self.values[alive], self.scaled[alive])


@dataclass(frozen=True)
class _Labels:
    """Labels at the nodes after a layer, sorted by node; where each comes from."""

    node: Ints
    values: Ints
    before: Ints
    arc: Ints


def search(
    frame: Frame, asked: Form, clock: Clock, hints: Sequence[Floats] = (), widths: Sequence[int] = WIDTHS
) -> Found:  # fmt: skip
    """Look for the best choice.

    Parameters
    ----------
    hints : sequence of arrays
        Multipliers of a frame that is alike: their bounds come first.
    widths : sequence of int
        Labels at a node, search after search; without a proof at the last one the answer is what is known by then.

    Raises
    ------
    Unable
        If the trellis has too many nodes, or numbers are too large.
    """
    steps = trellis(frame)
    ends = [(takes.min(axis=0), takes.max(axis=0)) for takes in (step.takes for step in steps) if len(takes)]
    if len(ends) < len(steps):
        return Found(proven=True)
    least, most = (np.sum([pair[k] for pair in ends], axis=0).tolist() for k in (0, 1))
    rows = _that_count(asked, least, most)
    if max(row.of(most) - row.const for row in rows) > LARGEST:
        raise Unable("numbers are too large for labels: choose a larger tick_ps")
    weights = np.array([row.weights for row in rows], np.int64).T
    scale = np.array([max(1, row.of(most) - row.const) for row in rows], np.float64)
    objectives = sum(row.most is None for row in rows)
    scale[:objectives] = scale[:objectives].max()
    arcs = [_Arcs(s.source, s.option, s.target, v := s.takes @ weights, v / scale) for s in steps]
    return _Search(arcs, [1, *(step.nodes for step in steps)], rows, scale, asked, clock).run(hints, widths)


def _that_count(asked: Form, least: Sequence[int], most: Sequence[int]) -> tuple[Row, ...]:
    """Rows without those that never matter: limits that all keep, and objectives below the least of another one."""
    floor = max(row.of(least) for row in asked.objective)
    rows = [row for row in asked.objective if row.of(most) > floor] or [max(asked.objective, key=lambda r: r.of(least))]
    first = max(asked.objective, key=lambda row: row.of(least))
    kept = dict.fromkeys([replace(row, most=None) for row in (first, *rows)])
    return (*kept, *(row for row in asked.caps if row.most is not None and row.of(most) > row.most))


class _Search:
    """Searches of a form, wider and wider. Everything is less the constant of the objective, limits those of theirs."""

    def __init__(
        self, steps: list[_Arcs], nodes: list[int], rows: tuple[Row, ...], scale: Floats, asked: Form, clock: Clock
    ) -> None:
        self.steps, self.nodes, self.scale, self.clock, self.const = steps, nodes, scale, clock, asked.const
        self.number = sum(row.most is None for row in rows)
        self.limits = [row.most - row.const for row in rows if row.most is not None]
        self.below = None if asked.below is None else asked.below - asked.const
        self.chosen: list[int] | None = None
        self.bound = -1
        self.multipliers: list[Floats] = list(np.eye(len(rows)))
        self.infeasible = any(limit < 0 for limit in self.limits)

    def run(self, hints: Sequence[Floats], widths: Sequence[int]) -> Found:
        """Bound, then search."""
        good = self.subgradient([hint for hint in hints if len(hint) == len(self.scale)])
        self.multipliers += good
        proven = self.reduce()
        for width in widths:
            if proven or self.clock.over:
                break
            proven = not self.widen(width) and not self.clock.over
            proven = self.reduce() or proven
        options = [np.unique(step.option).tolist() for step in self.steps]
        return Found(self.chosen, proven, None if self.bound < 0 else self.bound + self.const, good, options)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def most(self) -> Floats:
        """What scaled rows may be."""
        top = np.inf if self.below is None else float(self.below - 1)
        return np.array([*[top] * self.number, *self.limits], np.float64) / self.scale

    def allowed(self, m: Floats) -> float:
        """What m @ scaled values may be, with a margin."""
        with np.errstate(invalid="ignore"):
            total = float(np.where(m > 0, m * self.most(), 0.0).sum())
        return total + _MARGIN * (1 + abs(total))

    def rest(self, m: Floats) -> list[Floats]:
        """By layer the least rest from every node before it; the last one is that of the end."""
        found = [np.zeros(self.nodes[-1])]
        for step, number in zip(reversed(self.steps), reversed(self.nodes[:-1]), strict=True):
            before = np.full(number, np.inf)
            np.minimum.at(before, step.source, step.scaled @ m + found[-1][step.target])
            found.append(before)
        return found[::-1]

    def path(self, m: Floats, rest: list[Floats]) -> Floats:
        """The scaled values of a shortest path."""
        node, total = 0, np.zeros(len(m))
        for step, after in zip(self.steps, rest[1:], strict=True):
            begin, end = np.searchsorted(step.source, [node, node + 1])
            k = begin + int(np.argmin(step.scaled[begin:end] @ m + after[step.target[begin:end]]))
            total, node = total + step.scaled[k], int(step.target[k])
        return total

    def subgradient(self, hints: Sequence[Floats]) -> list[Floats]:
        """Return good multipliers; those of the objective have a sum of 1."""
        k, limits = self.number, np.array(self.limits, np.float64) / self.scale[self.number :]
        m, kept, best, pace = np.zeros(len(self.scale)), list[tuple[float, Floats]](), -np.inf, 1.0
        m[:k] = 1 / k
        undercut = np.inf if self.below is None else float(self.below - 1) / self.scale[0]
        for n in range(len(hints) + _STEPS):
            asked = hints[n] if n < len(hints) else m
            rest = self.rest(asked)
            value = float(rest[0][0] - asked[k:] @ limits)
            kept.append((value, asked))
            if not np.isfinite(value) or value > undercut * (1 + _MARGIN) + _MARGIN or self.clock.over:
                break
            path = self.path(asked, rest)
            slope = path - np.concatenate([np.full(k, path[:k].max()), limits])
            slope[:k] -= slope[:k].mean()
            size = float(slope @ slope)
            if size < 1e-18:
                break
            pace = pace if value > best else pace * 0.93
            best = max(best, value)
            goal = undercut if np.isfinite(undercut) else best + 0.02 * abs(best) + 1e-3
            m = np.maximum(0.0, asked + pace * max(goal - value, 1e-4 * abs(goal)) / size * slope)
            m[:k] = m[:k] / m[:k].sum() if m[:k].sum() > 0 else 1 / k
        kept.sort(key=lambda pair: -pair[0])
        value = kept[0][0]
        if np.isfinite(value):
            slack = _MARGIN * (1 + abs(value) + float(kept[0][1][k:] @ limits))
            self.bound = max(0, int(np.ceil((value - slack) * self.scale[0])))
        else:
            self.infeasible = True
        return [m for _, m in kept[:_KEPT]]

    def reduce(self) -> bool:
        """Take out arcs on no path within the bounds; return whether nothing is left."""
        if self.infeasible or (self.below is not None and self.bound >= self.below):
            return True
        alive = [np.ones(len(step.source), bool) for step in self.steps]
        for m in self.multipliers:
            allowed = self.allowed(m)
            if not np.isfinite(allowed):
                continue
            rest, ahead = self.rest(m), np.zeros(1)
            for n, step in enumerate(self.steps):
                there = ahead[step.source] + step.scaled @ m
                alive[n] &= there + rest[n + 1][step.target] <= allowed
                ahead = np.full(self.nodes[n + 1], np.inf)
                np.minimum.at(ahead, step.target, there)
        self.steps = [step.kept(keep) for step, keep in zip(self.steps, alive, strict=True)]
        return any(not len(step.source) for step in self.steps)

    # ---- labels ------------------------------------------------------------------------------------------------------

    def widen(self, width: int) -> bool:
        """Search with so many labels at a node; return whether some were dropped for want of room."""
        useful = [(m, self.allowed(m)) for m in self.multipliers]
        bounds = [(m, allowed, self.rest(m)) for m, allowed in useful if np.isfinite(allowed)]
        guide = self.multipliers[-1] if self.multipliers else np.ones(len(self.scale))
        ahead = self.rest(guide)
        layers, dropped = [_Labels(*(np.zeros(s, np.int64) for s in (1, (1, len(self.scale)), 1, 1)))], False
        for n, step in enumerate(self.steps):
            if self.clock.over:
                return True
            made = _extended(layers[-1], step)
            scaled = made.values / self.scale
            fits = np.ones(len(made.node), bool)
            for m, allowed, rest in bounds:
                fits &= scaled @ m + rest[n + 1][made.node] <= allowed
            keys = scaled @ guide + ahead[n + 1][made.node]
            kept, cut = _thinned(made, np.flatnonzero(fits), keys, width)
            dropped |= cut
            layers.append(kept)
            if not len(kept.node):
                return dropped
        self.take(layers)
        return dropped

    def take(self, layers: list[_Labels]) -> None:
        """Keep the best of the labels at the end that keep all limits, after a look around the first of them."""
        tops = self.tops(layers[-1].values)
        for at in np.argsort(tops, kind="stable")[:_STARTS]:
            if tops[at] < _NEVER and not self.clock.over:
                self.improve(self.arcs(layers, int(at)))

    def tops(self, values: Ints) -> Ints:
        """The objective of labels at the end; of those that do not keep the limits more than anything."""
        fits = (values[:, self.number :] <= np.array(self.limits, np.int64)).all(axis=1)
        return np.where(fits, values[:, : self.number].max(axis=1), _NEVER)

    def arcs(self, layers: list[_Labels], at: int) -> list[int]:
        """The path of a label at the end."""
        found = list[int]()
        for labels in reversed(layers[1:]):
            found.append(int(labels.arc[at]))
            at = int(labels.before[at])
        return found[::-1]

    def improve(self, path: list[int]) -> None:
        """Exchange the options of one or two layers, the states of all staying as they are, while that helps."""
        total = np.sum([step.values[arc] for step, arc in zip(self.steps, path, strict=True)], axis=0)
        while True:
            value = int(self.tops(total[None])[0])
            if self.below is None or value < self.below:
                self.below, self.chosen = value, [int(s.option[arc]) for s, arc in zip(self.steps, path, strict=True)]
            layer, arcs, change = self.exchanges(path)
            if not len(layer):
                return
            pairs = total + change[:, None, :] + change[None, :, :]
            pairs[layer[:, None] == layer[None, :]] = _NEVER
            pairs[np.arange(len(layer)), np.arange(len(layer))] = total + change
            tops = self.tops(pairs.reshape(-1, pairs.shape[-1]))
            best = int(tops.argmin())
            if tops[best] >= value:
                return
            for k in {best // len(layer), best % len(layer)}:
                path[int(layer[k])] = int(arcs[k])
            total = pairs.reshape(-1, pairs.shape[-1])[best]

    def exchanges(self, path: list[int]) -> tuple[Ints, Ints, Ints]:
        """Layers, arcs beside those of a path that join the same nodes, and the change of rows; the least changes."""
        layers, arcs, change = list[int](), list[int](), list[Ints]()
        for n, (step, arc) in enumerate(zip(self.steps, path, strict=True)):
            alike = (step.source == step.source[arc]) & (step.target == step.target[arc])
            alike[arc] = False
            for other in np.flatnonzero(alike):
                layers.append(n)
                arcs.append(int(other))
                change.append(step.values[other] - step.values[arc])
        table = np.array(change, np.int64).reshape(-1, len(self.scale))
        kept = np.argsort(np.abs(table / self.scale).sum(axis=1), kind="stable")[:_EXCHANGES]
        return np.array(layers, np.int64)[kept], np.array(arcs, np.int64)[kept], table[kept]


def _extended(labels: _Labels, step: _Arcs) -> _Labels:
    """All labels one layer on."""
    begin, end = np.searchsorted(labels.node, step.source), np.searchsorted(labels.node, step.source, side="right")
    number = end - begin
    arc = np.repeat(np.arange(len(step.source)), number)
    offset = np.arange(len(arc)) - np.repeat(np.cumsum(number) - number, number)
    before = begin[arc] + offset
    return _Labels(step.target[arc], labels.values[before] + step.values[arc], before, arc)


def _thinned(labels: _Labels, fits: Ints, keys: Floats, width: int) -> tuple[_Labels, bool]:
    """Labels that fit and are not dominated, at most `width` a node, sorted by node; and whether some were cut."""
    kept, cut = list[Ints](), False
    for node in np.unique(labels.node[fits]):
        mine = fits[labels.node[fits] == node]
        mine = mine[np.argsort(keys[mine], kind="stable")]
        cut |= len(mine) > _CROWD * width
        mine = mine[: _CROWD * width]
        mine = mine[_undominated(labels.values[mine])]
        cut |= len(mine) > width
        kept.append(mine[:width])
    rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    return _Labels(labels.node[rows], labels.values[rows], labels.before[rows], labels.arc[rows]), cut


def _undominated(values: Ints) -> NDArray[np.bool_]:
    """Which labels no other one that stays is nowhere larger than; of equal ones the first stays."""
    number = len(values)
    if values.shape[1] <= 2:
        order = np.lexsort(values.T[::-1])
        last = values[order, -1]
        least = np.minimum.accumulate(last)
        found = np.zeros(number, bool)
        found[order[:1]] = True
        if values.shape[1] == 2:
            found[order[1:][last[1:] < least[:-1]]] = True
        return found
    peers = values if number <= _PAIRS else values[:_PEERS]
    above: NDArray[np.bool_] = np.ones((number, len(peers)), bool)
    equal: NDArray[np.bool_] = np.ones((number, len(peers)), bool)
    for column in range(values.shape[1]):
        above &= values[:, column, None] >= peers[None, :, column]
        equal &= values[:, column, None] == peers[None, :, column]
    earlier = np.arange(len(peers))[None, :] < np.arange(number)[:, None]
    dominated: NDArray[np.bool_] = np.logical_or.reduce(above & (~equal | earlier), axis=1)
    return np.logical_not(dominated)
