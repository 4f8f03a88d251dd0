"""The nodes of `formulations.placement.search`, compiled by numba where that is installed.

`formulations.placement.packing` has the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from formulations.placement.packing import (
    AFTER,
    ALIGN,
    BANK,
    BEGIN,
    CAPACITY,
    END,
    FIRST,
    FIXED,
    MOST,
    NODES,
    SIZE,
    START,
    Ints,
)
from hwmodels.compiled import Function, jit


def _compiled(*arguments: str, kind: str = "number") -> Callable[[Function], Function]:
    """Compile a function of whole numbers, rows of them or tables, that returns a `kind`, if that can be done."""

    def compile_it(function: Function) -> Function:
        try:
            import numba
        except ImportError:
            return function
        kinds = {"number": numba.int64, "row": numba.int64[::1], "table": numba.int64[:, ::1]}
        return jit(function, kinds[kind](*(kinds[name] for name in arguments)))

    return compile_it


@_compiled("number", "table", "row", "table", "row", "row", "row")
def lowest(b: int, boxes: Ints, high: Ints, links: Ints, limits: Ints, address: Ints, floor: Ints) -> int:
    """Return where a buffer comes to lie if it is the next one; -1 if there is no room, or it had to lie lower."""
    own = 0
    for s in range(boxes[b, BEGIN], boxes[b, END]):
        if high[boxes[b, START] + s - boxes[b, BEGIN]]:
            own = max(own, floor[s])
    bank = limits[BANK]
    for k in range(boxes[b, FIRST], boxes[b, AFTER]):
        other = address[links[k, 0]]
        if other >= 0:
            own = max(own, (other + links[k, 1] + bank - 1) // bank * bank)
    if boxes[b, FIXED] >= 0:
        return int(boxes[b, FIXED]) if own <= boxes[b, FIXED] else -1
    own = (own + boxes[b, ALIGN] - 1) // boxes[b, ALIGN] * boxes[b, ALIGN]
    return own if own + boxes[b, SIZE] <= limits[CAPACITY] else -1


@_compiled("number", "number", "table", "row", "row", "row", "row")
def put(b: int, where: int, boxes: Ints, high: Ints, address: Ints, floor: Ints, waiting: Ints) -> int:
    """Place a buffer; return whether none waits in its sections any more."""
    address[b] = where
    alone = 1
    for s in range(boxes[b, BEGIN], boxes[b, END]):
        mine = high[boxes[b, START] + s - boxes[b, BEGIN]]
        if mine:
            floor[s] = where + mine
            waiting[s] -= mine
            if waiting[s]:
                alone = 0
    return alone


@_compiled("number", "table", "row", "row", "row")
def take(b: int, boxes: Ints, high: Ints, address: Ints, waiting: Ints) -> int:
    """Let a buffer wait again, the floor aside."""
    address[b] = -1
    for s in range(boxes[b, BEGIN], boxes[b, END]):
        waiting[s] += high[boxes[b, START] + s - boxes[b, BEGIN]]
    return 0


@_compiled("row", "number", kind="row")
def grown(row: Ints, need: int) -> Ints:
    """Return a row that is long enough, with the same begin."""
    if need <= len(row):
        return row
    longer = np.zeros(max(need, 2 * len(row)), np.int64)
    longer[: len(row)] = row
    return longer


@_compiled("row", "number", "table", "row", "table", "row", "row", "row", "row", "row", "row", "row")
def judge(
    members: Ints, last: int, boxes: Ints, high: Ints, links: Ints, limits: Ints, address: Ints, floor: Ints,
    waiting: Ints, low: Ints, under: Ints, crossed: Ints,
) -> int:  # fmt: skip
    """Look at a node: -1 if it cannot be completed, else the address at which a buffer lies too high.

    It writes where each member comes to lie (`low`), and how many live on both sides of the begin of every section
    (`crossed`).
    """
    early, after = boxes[members[0], BEGIN], boxes[members[0], END]
    for b in members:
        early, after = min(early, boxes[b, BEGIN]), max(after, boxes[b, END])
    under[early:after] = limits[CAPACITY] + 1  # the lowest address of those that wait
    crossed[early : after + 1] = 0
    beneath = limits[CAPACITY] + 1
    for k in range(len(members)):
        b = members[k]
        own = lowest(b, boxes, high, links, limits, address, floor)
        if own < 0 or (boxes[b, FIXED] >= 0 and own < last):
            return -1
        low[k] = own
        top = own + 1 if boxes[b, FIXED] >= 0 else own + boxes[b, SIZE]
        if boxes[b, FIXED] < 0 and boxes[b, AFTER] > boxes[b, FIRST]:
            top = (top + limits[BANK] - 1) // limits[BANK] * limits[BANK]
        beneath = min(beneath, top)
        least = max(own, last)
        for s in range(boxes[b, BEGIN], boxes[b, END]):
            if high[boxes[b, START] + s - boxes[b, BEGIN]] and least < under[s]:
                under[s] = least
        crossed[boxes[b, BEGIN] + 1] += 1
        crossed[boxes[b, END]] -= 1
    for s in range(early, after):
        if waiting[s] and under[s] + waiting[s] > limits[CAPACITY]:
            return -1
    for s in range(early + 1, after + 1):
        crossed[s] += crossed[s - 1]
    return int(beneath)


@_compiled("row", "table", "row", "table", "row", "row", "row")
def sides(members: Ints, boxes: Ints, waiting: Ints, keys: Ints, crossed: Ints, found: Ints, ends: Ints) -> int:
    """Write the members side by side, each side in its order, and where each one ends; return how many sides there are.

    One if no time has everybody on one side of it.
    """
    early, after = boxes[members[0], BEGIN], boxes[members[0], END]
    for b in members:
        early, after = min(early, boxes[b, BEGIN]), max(after, boxes[b, END])
    cuts = 0
    for s in range(early + 1, after):
        cuts += crossed[s] == 0
    number, count, left = 0 if cuts else 1, 0, early
    for s in range(early + 1, after + 1):
        if cuts == 0 or (crossed[s] and s < after):
            continue
        begun = count
        for b in members:
            if boxes[b, BEGIN] >= left and boxes[b, END] <= s:
                found[count] = b
                count += 1
        left = s
        if count == begun:
            continue
        ends[number] = count
        number += 1
        side = found[begun:count].copy()
        for letter in range(len(keys) - 1, -1, -1):
            worth = np.zeros(len(side), np.int64)
            for k in range(len(side)):
                b = side[k]
                if keys[letter, b] >= 0:
                    worth[k] = -keys[letter, b]
                else:
                    for place in range(boxes[b, BEGIN], boxes[b, END]):
                        worth[k] = min(worth[k], -waiting[place])
            side = side[np.argsort(worth, kind="mergesort")]
        found[begun:count] = side
    return number


@_compiled("row", "row", "number", "number", "number", "row", "row")
def choices(members: Ints, low: Ints, last: int, passed: int, beneath: int, picked: Ints, where: Ints) -> int:
    """Write which members may be the next one, the lowest first, and where they lie; return how many."""
    number = 0
    for k in range(len(members)):
        if low[k] < last or low[k] >= beneath or (low[k] == last and k < passed):
            continue
        place = number
        while place > 0 and where[place - 1] > low[k]:
            picked[place], where[place] = picked[place - 1], where[place - 1]
            place -= 1
        picked[place], where[place] = k, low[k]
        number += 1
    return number


#: What a frame of the stack says: its kind (0: one of several is next, 1: sides one after the other), where its members
#: begin, how many they are, the last address, where its choices begin, how many, which is next, where what it may
#: have to undo begins, from where on members may be written, and whether what it has placed stands in nobody's way.
_KIND: Final = 0
_BASE: Final = 1
_MANY: Final = 2
_LAST: Final = 3
_OPTIONS: Final = 4
_COUNT: Final = 5
_NEXT: Final = 6
_UNDO: Final = 7
_FREE: Final = 8
_ALONE: Final = 9


@_compiled("row", "table", "row", "table", "row", "table", "row", "row", "row", "row")
def explore(  # noqa: PLR0915 - one loop over one stack
    order: Ints, boxes: Ints, high: Ints, links: Ints, limits: Ints, keys: Ints, address: Ints, floor: Ints,
    waiting: Ints, stop: Ints,
) -> int:  # fmt: skip
    """Place all buffers of an order; a stack takes the place of recursion, which numba cannot keep for the next run.

    Parameters
    ----------
    keys : (letters, buffers)
        What buffers are tried by, the larger first, the most important one first; -1 for the sum of their sections.
    address : (buffers,)
        -1 for those that wait: at first all.
    floor, waiting : (sections,)
        The highest top, and the bytes that wait.
    stop : (1,)
        Not 0 if the search has to end.

    Returns
    -------
    1 if all are placed, 0 if they cannot be, 2 if the search was stopped.
    """
    number, sections = len(order), len(floor)
    low, under, crossed = np.zeros(number, np.int64), np.zeros(sections, np.int64), np.zeros(sections + 2, np.int64)
    frames = np.zeros((2 * number + 2, 10), np.int64)
    arena, options = np.zeros(8 * number, np.int64), np.zeros(8 * number, np.int64)
    wheres, undo = np.zeros(8 * number, np.int64), np.zeros(8 * (sections + 1), np.int64)
    arena[:number] = order
    base, many, last, passed, free = 0, number, 0, 0, number  # of the node that is entered
    depth, option, undone, said = -1, 0, 0, -1  # frames; choices and undos that are kept; -1: enter a node
    while True:
        if said < 0:
            if many == 0:
                said = 1
                continue
            limits[NODES] += 1
            if limits[NODES] > limits[MOST] or stop[0]:
                said = 2
                continue
            members = arena[base : base + many]
            beneath = judge(
                members, last, boxes, high, links, limits, address, floor, waiting, low, under, crossed
            )  # fmt: skip
            if beneath < 0:
                said = 0
                continue
            arena, options, wheres = (
                grown(arena, free + 2 * many), grown(options, option + many), grown(wheres, option + many)
            )  # fmt: skip
            members = arena[base : base + many]
            count = sides(members, boxes, waiting, keys, crossed, arena[free : free + many], options[option:])
            depth += 1
            kind = 1 if count > 1 else 0
            if kind == 0:
                count = choices(members, low, last, passed, beneath, options[option:], wheres[option:])
            frame = frames[depth]
            frame[_KIND], frame[_BASE], frame[_MANY], frame[_LAST] = kind, base, many, last
            frame[_OPTIONS], frame[_COUNT], frame[_NEXT], frame[_UNDO] = option, count, 0, undone
            frame[_FREE], frame[_ALONE] = free, 0
            option += count
            if kind == 1:
                undo = grown(undo, undone + sections)
                undo[undone : undone + sections] = floor
                undone += sections
            said = 3  # no child yet
        if depth < 0:
            return int(said)
        frame = frames[depth]
        base, many, last, free = frame[_BASE], frame[_MANY], frame[_LAST], frame[_FREE]
        at, leaves = frame[_NEXT], said == 1 or said == 2
        if frame[_KIND] == 1:
            leaves = said == 0 or said == 2 or (said == 1 and at == frame[_COUNT])
            if leaves and said != 1:
                for b in arena[base : base + many]:
                    if address[b] >= 0:
                        take(b, boxes, high, address, waiting)
                floor[:] = undo[frame[_UNDO] : frame[_UNDO] + sections]
        elif at > 0 and said != 1:  # what it has placed comes back
            b = arena[base + options[frame[_OPTIONS] + at - 1]]
            take(b, boxes, high, address, waiting)
            for s in range(boxes[b, BEGIN], boxes[b, END]):
                floor[s] = undo[frame[_UNDO] + s - boxes[b, BEGIN]]
        if frame[_KIND] == 0 and said != 1 and said != 2 and (at == frame[_COUNT] or (said == 0 and frame[_ALONE])):
            said, leaves = 0, True
        if leaves:
            option, undone = frame[_OPTIONS], frame[_UNDO]
            depth -= 1
            continue
        frame[_NEXT] = at + 1
        if frame[_KIND] == 1:
            begun = options[frame[_OPTIONS] + at - 1] if at else 0
            base, many, passed = free + begun, options[frame[_OPTIONS] + at] - begun, 0
            free += frame[_MANY]
        else:
            k, lies = options[frame[_OPTIONS] + at], wheres[frame[_OPTIONS] + at]
            b = arena[base + k]
            undone = frame[_UNDO] + boxes[b, END] - boxes[b, BEGIN]
            undo = grown(undo, undone)
            undo[frame[_UNDO] : undone] = floor[boxes[b, BEGIN] : boxes[b, END]]
            frame[_ALONE] = put(b, lies, boxes, high, address, floor, waiting)
            arena = grown(arena, free + many)
            arena[free : free + k] = arena[base : base + k]
            arena[free + k : free + many - 1] = arena[base + k + 1 : base + many]
            base, many, last, passed, free = free, many - 1, lies, k, free + many - 1
        said = -1
