"""Free pieces: the cuts of rows (or columns) of the result that an optimum may need where windows slide over an input.

Sets
    [a, b) with 0 <= a < b <= E a piece of the outputs; L(a, b) the rows of IN that its window fetches: from
    ``a*S - P`` to ``(b-1)*S - P + reach``, clipped to the map and to the rows that are not on chip (`first`)
Candidates
    A loop cuts E in pieces; a second one cuts them again. What a nest's price sees of them, for bytes, is: the numbers
    of pieces n_1, n_2, the largest L at the Hold of IN (w), the largest piece at the Hold of OUT (t), and sum L.
    `free_chains` lists, for every way to cut, one that is nowhere above it in these.
Why these suffice
    (a) If [a, b) fits under w and t, so does all that lies in it: pieces that are each as large as possible are the
    fewest. (b) ``sum L = const + sum of ov(x) over the places x where pieces meet``, ov(x) the overlap of the windows
    before and behind x. Away from clipped borders ov is ``reach - S``, so there sum L counts pieces. (c) A place x so
    near the begin that the window behind it is clipped there (`x*S - P < first`) is no place to cut IN alone: without
    it, the piece behind it has the same window, and there is one piece less. So such places matter only where the
    largest piece of OUT is what cuts, and if its size t reaches beyond them at most one of them: each is tried (`z`),
    and likewise those before the end (`y`). (d) Cut in q groups and these in pieces, the fewest pieces are found by
    adding pieces to groups, the largest gain first: the gain of one more piece in a group never rises.
Assumes
    One range of outputs, or several (cores) of the same extent without places as in (c); windows that overlap or touch
    (reach >= S), or no clipping and sum L counted at the first loop; t = 1 or t at least the number of places of (c)
    with part of an overlap. Elsewhere `complete` is False: what is listed may miss an optimum, and a bound has to
    prove it (`hwmodels.nest.relaxed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from formulations.pareto import pareto
from formulations.tiling.cut_axis import Cut, chain, complete, ends_of, entry, even
from formulations.tiling.cut_groups import two_loops
from hwmodels.nest.bilinear import Ints
from hwmodels.nest.relaxed import part_window

__all__ = ["Cut", "complete", "every_cut", "free_chains", "whole_windows"]

_NONE = np.zeros(0, np.int64)


# ---- one loop ------------------------------------------------------------------------------------------------


def _one_loop(cut: Cut, inner: Ints) -> Ints:
    """Chains of one loop outside the Hold of IN, and of OUT if that depends on it."""
    extent, every = cut.extent, len(inner) == cut.extent
    if cut.skips:
        return _balanced(extent, inner)
    ws = cut.windows
    ends = cut.ends(ws)
    longest = (ends - np.arange(extent)).max(axis=1)
    sizes = inner if cut.levels[1] or not every else inner[-1:]
    w, t = (x.ravel() for x in np.meshgrid(np.arange(len(ws)), sizes, indexing="ij"))
    # a window that is no limit beside t, or a t that is none beside the window, is listed once
    shortest = np.maximum((ws - cut.window.reach) // cut.window.stride + 1, 0)
    keep = (t >= shortest[w]) & (
        (t <= longest[w]) | (t == sizes[np.minimum(np.searchsorted(sizes, longest[w]), len(sizes) - 1)])
    )
    w, t = w[keep], t[keep]
    early, late = cut.places if cut.levels[1] else (_NONE, _NONE)
    cases = [_forced(w, t, z, y) for z in (0, *early) for y in (extent, *late) if z < y]
    w, t, z, y = (np.concatenate(x) for x in zip(*cases, strict=True))
    made, fits = _filled(cut, ends, w, t, z, y)
    made = made[fits]
    features = _features(cut, made)
    allowed = np.isin(features[1], inner)
    made, features = made[allowed], features[:, allowed]
    best = pareto(features) if len(made) else _NONE
    return np.array([[entry(ends_of(row))] for row in made[best]], np.int64).reshape(-1, 1)


def _forced(w: Ints, t: Ints, z: int, y: int) -> tuple[Ints, Ints, Ints, Ints]:
    return w, t, np.full_like(w, z), np.full_like(w, y)


def _filled(cut: Cut, ends: Ints, w: Ints, t: Ints, z: Ints, y: Ints) -> tuple[Ints, np.ndarray]:
    """Ends of the pieces (P, N) under limits w (index of `ends`) and t, that meet at z and y; which cases have one."""
    extent = cut.extent
    at = np.zeros(len(w), np.int64)
    first = np.where(z > 0, z - (-(-z // t) - 1) * t, 0)  # the shorter piece first: those before z end far from it
    steps = []
    while (at < extent).any():
        open_ = at < extent
        place = np.minimum(at, extent - 1)
        bound = np.where(at < z, z, np.where(at < y, y, extent))
        reach = np.minimum(np.minimum(ends[w, place], at + t), bound)
        reach = np.where((at == 0) & (z > 0), np.minimum(first, ends[w, 0]), reach)
        stuck = open_ & (reach <= at)
        at = np.where(open_, np.where(stuck, 2 * extent + 1, reach), at)
        steps.append(np.where(open_, at, extent))
        if len(steps) > extent:
            break
    made = np.stack(steps, axis=1) if steps else np.zeros((len(w), 0), np.int64)
    return made, (made <= extent).all(axis=1) & (at == extent)


def _features(cut: Cut, made: Ints) -> Ints:
    """Largest window, largest piece, number of pieces, sum of overlaps; shape (4, P)."""
    begin = np.concatenate([np.zeros((len(made), 1), np.int64), made[:, :-1]], axis=1)
    size = made - begin
    here = np.minimum(begin, cut.extent - 1)
    return np.stack([
        np.where(size > 0, cut.length[here, made], 0).max(axis=1), size.max(axis=1), (size > 0).sum(axis=1),
        cut.overlap[made].sum(axis=1),
    ])  # fmt: skip


def _balanced(extent: int, inner: Ints) -> Ints:
    """For every number of pieces some of equal size: where more pieces skip more rows."""
    rows = []
    for number in range(1, extent + 1):
        size = -(-extent // number)
        if size in inner:
            rows.append(entry(tuple(-(-extent * k // number) for k in range(1, number + 1))))
    return np.array(rows, np.int64).reshape(-1, 1)


@lru_cache(maxsize=512)
def _listed(cut: Cut, inner: bytes) -> Ints:
    sizes = np.frombuffer(inner, np.int64)
    if not len(sizes):
        return np.zeros((0, cut.depth), np.int64)
    if cut.levels[0] == 0:
        return even(cut.extent, sizes)
    return _one_loop(cut, sizes) if cut.depth == 1 else two_loops(cut, sizes, _one_loop)


def free_chains(cut: Cut, inner: Ints) -> Ints:
    """The chains (T, depth) that an optimum may need: steps, or lists of places (`hwmodels.nest.spans`).

    Parameters
    ----------
    inner : ndarray of int64, ascending
        What the largest piece of all may be.
    """
    return _listed(_shorter(cut), inner.tobytes())


def _shorter(cut: Cut) -> Cut:
    """A cut with the same chains, the same for as many windows as can be told.

    Where sum L does not count, only how windows compare matters. With k taps less, of a map that is as much smaller,
    every window is shorter by ``k*dilation``, as long as none is shorter than that: so they compare as before.
    """
    window = cut.window
    if cut.counted:
        return cut
    least = int(cut.length[np.arange(cut.extent), np.arange(1, cut.extent + 1)].min())
    taps = max(1, window.taps - least // window.dilation)
    return replace(cut, window=part_window(window, taps))


def whole_windows(cut: Cut, inner: Ints) -> Ints:
    """Chains with a piece that is not all outputs but has all rows of the map in its window.

    Whole tiles of a map are fewer runs of addresses, which is worth time.
    """
    made = []
    for begin, end in zip(*np.nonzero(cut.length == cut.window.size), strict=True):
        sizes = [int(x) for x in (begin, end - begin, cut.extent - end) if x]
        if len(sizes) > 1 and max(sizes) in inner:
            made.append(sizes)
    ends = [tuple(int(x) for x in np.cumsum(sizes)) for sizes in made]
    if cut.depth == 1:
        return np.array([[entry(e)] for e in ends], np.int64).reshape(-1, 1)
    rows = [(entry(e), entry(e)) for e in ends]
    if cut.levels[0] == 1:
        rows += [(entry(e), int(x)) for e in ends for x in even(cut.extent, inner)[:, 0]]
    return np.array(rows, np.int64).reshape(-1, 2)


def every_cut(cut: Cut, inner: Ints) -> Ints:
    """All chains there are: every way to cut in pieces, and to gather these in groups (small extents only)."""
    rows = []
    for pieces in _compositions(cut.extent):
        if max(pieces) not in inner:
            continue
        if cut.depth == 1:
            rows.append([entry(tuple(int(x) for x in np.cumsum(pieces)))])
            continue
        for sizes in _compositions(len(pieces)):
            marks = np.cumsum([0, *sizes])
            rows.append(list(chain([pieces[a:b] for a, b in pairwise(marks)])))
    return np.array(rows, np.int64).reshape(-1, cut.depth)


def _compositions(number: int) -> Iterator[list[int]]:
    """All lists of positive integers with this sum."""
    if not number:
        yield []
    for first in range(1, number + 1):
        for rest in _compositions(number - first):
            yield [first, *rest]
