"""Some ways in which a layer of a tiny network runs by itself: rows, filters, channels or input channels in pieces.

Pieces are of any sizes. Every operand takes what its largest piece does, in every step. Rows slide: a piece loads those
that the one before it has not. Left out: columns in pieces, three dimensions at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from tests.adversary.network_time_events import Move
from tests.adversary.network_time_groups import Beside, Part
from tests.adversary.network_time_nets import Layer, Tiny, pieces


def alone(case: Tiny, t: int, near: Beside) -> Iterator[Part]:
    """Yield ways that find room beside what stays."""
    layer = case.made[t]
    made = [*_by_rows(case, t, near)]
    if layer.kind in ("conv", "full"):
        made += _by_inputs(case, t, near)
    for part in made:
        if part.steps[0][1] <= case.memory:
            yield part


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return [*pairwise(accumulate(sizes, initial=0))]


def _window(layer: Layer, rows: tuple[int, int]) -> tuple[int, int]:
    """Rows of an operand for rows of the result."""
    return max(0, layer.first(rows[0])), layer.needed(rows[1])


def _by_rows(case: Tiny, t: int, near: Beside) -> Iterator[Part]:
    """Rows in pieces, for each all blocks of filters or channels; or blocks, for each all rows."""
    layer = case.made[t]
    channels, high, wide = layer.made
    for rows in pieces(high):
        for blocks in pieces(channels):
            orders = (True, False) if len(rows) > 1 < len(blocks) else (True,)
            for outer in orders:
                yield _tiled(case, t, near, _spans(rows), _spans(blocks), outer=outer, wide=wide)


def _tiled(
    case: Tiny, t: int, near: Beside, rows: list[tuple[int, int]], blocks: list[tuple[int, int]], *, outer: bool,
    wide: int,
) -> Part:  # fmt: skip
    """Rows outside if `outer`; of layers that add up their inputs every block needs all of these."""
    layer, sums = case.made[t], case.made[t].kind in ("conv", "full")
    loaded = [k for k in layer.reads if k not in near.maps]
    part, most, before = Part(), {"in": 0, "w": 0, "out": 0}, (-1, -1)
    tiles = [(r, b) for r in rows for b in blocks] if outer else [(r, b) for b in blocks for r in rows]
    weighted = None
    window = (0, 0)
    for step, (row, block) in enumerate(tiles, 1):
        again = before[1] != block[0] and not (sums and outer and before[0] == row[0])
        new = _window(layer, row)
        if sums and outer and before[0] == row[0]:
            begin = new[1]
        else:
            begin = new[0] if again and not (sums and outer) else max(new[0], window[1])
        window, before = new, (row[0], block[0])
        some = (0, layer.shape[0]) if sums else block
        for k in loaded:
            if begin < new[1]:
                size = (new[1] - begin) * layer.shape[2] * (some[1] - some[0])
                ticks = case.box(k, new[1] - begin, some[1] - some[0])
                part.moves.append(Move(True, ticks, size, step, k, (begin, new[1]), some))
        most["in"] = max(most["in"], len(loaded) * (new[1] - new[0]) * layer.shape[2] * (some[1] - some[0]))
        number = block[1] - block[0]
        if layer.filters:
            size = number * layer.filter_bytes
            if weighted != block:
                part.moves.append(Move(True, case.weights(size), size, step, queue=case.queues - 1))
            weighted, most["w"] = block, max(most["w"], size)
        ticks = case.step(t, {"m": block, "r": row})
        if t + 1 not in near.maps:
            size = (row[1] - row[0]) * wide * number
            most["out"] = max(most["out"], size)
            part.moves.append(Move(False, case.box(t + 1, row[1] - row[0], number), size, step, t + 1, row, block))
        part.steps.append((ticks, 0))
    held = near.bytes + sum(most.values())
    part.steps = [(ticks, held) for ticks, _ in part.steps]
    part.says = f"{t} alone, rows {rows}, blocks {blocks}, rows outside {outer}"
    return part


def _by_inputs(case: Tiny, t: int, near: Beside) -> Iterator[Part]:
    """Input channels in pieces, all rows; sums stay on chip."""
    layer = case.made[t]
    (k,), taps = layer.reads, layer.taps[0] * layer.taps[1]
    _, high, wide = layer.made
    rows = layer.needed(high)
    for sizes in pieces(layer.shape[0]):
        if len(sizes) == 1:
            continue
        part, most = Part(), [0, 0]
        for step, (begin, end) in enumerate(_spans(sizes), 1):
            number = end - begin
            if k not in near.maps:
                size = rows * layer.shape[2] * number
                most[0] = max(most[0], size)
                part.moves.append(Move(True, case.box(k, rows, number), size, step, k, (0, rows), (begin, end)))
            size = layer.filters * taps * number
            most[1] = max(most[1], size)
            runs = layer.filters * (taps if case.channels_last else 1)
            part.moves.append(Move(True, case.weights(size, runs), size, step, queue=case.queues - 1))
            part.steps.append((case.step(t, {"n": (begin, end)}), 0))
        made = high * wide * layer.made[0]
        held = near.bytes + sum(most) + (0 if t + 1 in near.maps else made)
        if t + 1 not in near.maps:
            last = len(part.steps)
            part.moves.append(Move(False, case.box(t + 1, high), made, last, t + 1, (0, high), (0, layer.made[0])))
        part.steps = [(ticks, held) for ticks, _ in part.steps]
        part.says = f"{t} alone, inputs {sizes}"
        yield part
