"""All choices of a frame, in blocks: the oracle for small instances."""

from __future__ import annotations

from math import prod

import numpy as np

from formulations.clock import Clock, TimeUp
from formulations.problem import Unable
from formulations.selection.frame import Frame, Ints
from formulations.selection.rows import Form

#: Choices that are tried at most, and at a time.
MOST, _BLOCK = 4_000_000, 65_536


def exhaustive(frame: Frame, asked: Form, clock: Clock) -> list[int] | None:
    """Return the first best choice of all, None if none keeps the limits.

    Raises
    ------
    Unable
        If there are more than `MOST`.
    TimeUp
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

    Parameters
    ----------
    chosen : int array
        Options by number, of shape (layers, choices).
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
