"""What of every stream lies on chip while a group runs: rows of its columns, in every state, as sums of products.

A stream is *before* its piece is made (or loaded) in a visit, *made* while that happens, and from then on in the state
of how many of its readers have run in the visit. A reader of a column x needs the rows

    from `first` on    if it has yet to see x in this step of rows: x is behind `left`, the first column that it needs
    from `later` on    if not

(`formulations.fusion.strips`), and the piece of the visit counts as a reader while it is made. So with S the readers
that have yet to see x, a column of the stream takes the rows

    min(end, first of S, later of the others) .. end      what is new in this step of rows ends before `high`:
                                                          behind it `before` stands for `end`
    recompute: the least first .. the greatest until of S that is not done with x, before `high`

where `high` is the front of columns; if columns are computed again, behind what readers in this visit still need and
where the next piece begins. Columns that are alike in S and in this are a **class**: rows by step of rows times columns
by step of columns, so the bytes of all streams are a product of matrices. Of one reader there are three: columns behind
the window, those of it, and those ahead. An example: a map with two readers, 3 x 3 windows and a sum, in strips of 2
rows. When the windows have run, columns that they are done with keep rows for the sum, those behind also for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.fusion.groups import Group
from formulations.fusion.strips import FAR, Ints, Strips

Floats = npt.NDArray[np.float64]
#: States of a stream; `DONE` and further: so many of its readers have run.
BEFORE, MADE, DONE = range(3)


def states_of(group: Group) -> int:
    """Return how many states the streams of a group have."""
    return DONE + 1 + max(len(stream.readers) for stream in group.streams)


@dataclass(frozen=True, eq=False)
class Columns:
    """The classes of all streams.

    Attributes
    ----------
    stream : ndarray of int (classes,)
    waiting, running : ndarray of bool (readers + 1, classes)
        The readers that have yet to see a column; of columns that are computed again in this visit. The piece is last.
    new : ndarray of bool (classes,)
        Whether what is new in this step of rows is there.
    columns : ndarray (classes, states, steps)
        How many columns there are.
    """

    stream: Ints
    waiting: npt.NDArray[np.bool_]
    running: npt.NDArray[np.bool_]
    new: npt.NDArray[np.bool_]
    columns: Floats


def columns_of(group: Group, across: Strips) -> Columns:
    """Return the classes of columns of a group's streams in all steps along columns."""
    codes, widths = [], []
    for state in range(states_of(group)):
        code, width = _segments(across, state)
        codes.append(code)
        widths.append(width)
    every, wide = np.stack(codes), np.stack(widths)  # (states, bits, streams, segments, steps)
    bits = np.moveaxis(every, 1, 0)
    some = wide > 0
    keys, place = np.unique(np.packbits(bits[:, some], axis=0), axis=1, return_inverse=True)
    stream = np.broadcast_to(np.arange(wide.shape[1])[:, None, None], wide.shape)[some]
    both, number = np.unique(np.stack([stream, place.ravel()]), axis=1, return_inverse=True)
    columns = np.zeros((both.shape[1], wide.shape[0], wide.shape[-1]))
    states, _, _, steps = np.nonzero(some)
    np.add.at(columns, (number.ravel(), states, steps), wide[some])
    known = np.unpackbits(keys[:, both[1]], axis=0, count=len(bits)).astype(np.bool_)
    readers = across.first_seen.shape[1] + 1
    return Columns(both[0], known[:readers], known[readers : 2 * readers], known[-1], columns)


def _segments(across: Strips, state: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Runs of columns that are alike: which class, (bits, streams, segments, steps), and how wide they are."""
    count, readers, steps = across.first_seen.shape
    done = np.arange(readers)[:, None] < state - DONE
    left = np.where(done, across.later_seen, across.first_seen)
    right = np.where(done | (state == BEFORE), 0, across.until_seen)
    high = np.where(
        across.again,
        np.maximum(across.begin if state == BEFORE else across.next, right.max(axis=1, initial=0)),
        across.begin if state == BEFORE else across.end,
    )
    piece = np.full((count, 1, steps), FAR), np.zeros((count, 1, steps), np.int64)
    if state == MADE:
        piece, high = (across.begin[:, None], across.end[:, None]), across.end
    left, right = np.concatenate([left, piece[0]], axis=1), np.concatenate([right, piece[1]], axis=1)
    extent = np.broadcast_to(across.extent[:, None], high.shape)
    ends = right.max(axis=1), high, extent, np.zeros_like(high)
    places = np.concatenate([left, *(one[:, None] for one in ends)], axis=1)
    places = np.sort(np.minimum(places, extent[:, None]), axis=1)
    at = places[:, :-1]
    waiting = left[:, :, None] <= at[:, None]
    mine = np.append(~done, [[True]], axis=0)[:, None] & (at < right.max(axis=1)[:, None])[:, None]
    running = waiting & (~across.again | mine)
    new = at < high[:, None]
    code = np.concatenate([waiting, running, new[:, None]], axis=1)
    return np.moveaxis(code, 1, 0), np.diff(places, axis=1)


def rows_of(down: Strips, classes: Columns) -> Floats:
    """Return the rows of every class in all steps along rows, (classes, steps)."""
    rows = np.empty((len(classes.stream), len(down.again)))
    for at, k in enumerate(classes.stream):
        first = np.concatenate([down.first_seen[k], down.begin[None, k]])
        later, until = down.later_seen[k], np.concatenate([down.until_seen[k], down.end[None, k]])
        waiting, running = classes.waiting[:, at], classes.running[:, at]
        top = down.end[k] if classes.new[at] else down.begin[k]
        low = np.minimum(first[waiting].min(axis=0, initial=FAR), later[~waiting[:-1]].min(axis=0, initial=FAR))
        kept = np.maximum(top - low, 0)
        again = np.maximum(until[running].max(axis=0, initial=0) - first[running].min(axis=0, initial=FAR), 0)
        rows[at] = np.where(down.again, again if classes.new[at] else 0, kept)
    return rows
