"""The referee of groups that run strip by strip: figures worked by hand, every fault, and random groups on integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hwmodels.fusion.replay import execute as execute_module
from hwmodels.fusion.replay.referee import FusedReplay, FusionReplay, replay_fusion
from hwmodels.nest.replay.execute import direct
from hwmodels.schedule import Blocks, FusedRun, Hold, LayerRun, Loop, Nest, Pace, Steps, Stream
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import Stores, stores
from instances.network.workload import Layer
from tests.effort import thinned, tries

MACHINE = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=4096, ocm_banks=16, sliding=True,
    in_layout="HWC", out_layout="HWC", w_layout="OHWI", byte_fj=10, mac_fj=1,
    transfer=Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1),
)  # fmt: skip
ALL = tuple(range(16))


def conv(name: str, before: str, shape: tuple[int, ...], filters: int, taps: int = 3, **more: Any) -> Conv:
    stride = more.pop("stride", 1)
    size = tuple((s - 1) // stride + 1 for s in shape[2:])
    return Conv(
        name=name, inputs=(before,), shape=(shape[0], filters, *size), filters=filters, kernel=(taps, taps),
        stride=(stride, stride), pad=(taps // 2,) * 4, **more,
    )  # fmt: skip


def read(*operators: Operator) -> Stores:
    return stores(Network(name="net", operators=operators))


def pair() -> Stores:
    """Two 3x3 convolutions with padding on 8 rows of 4 pixels: 2, 3 and 4 channels."""
    return read(
        Input(name="in", shape=(1, 2, 8, 4)), conv("a", "in", (1, 2, 8, 4), 3), conv("b", "a", (1, 3, 8, 4), 4)
    )  # fmt: skip


def residual(other: str = "in") -> Stores:
    """A sum of the input (or another map) and of two 3x3 convolutions of it, 2 channels everywhere."""
    shape = (1, 2, 8, 4)
    return read(
        Input(name="in", shape=shape), conv("a", "in", shape, 2), conv("b", "a", shape, 2),
        Eltwise(name="sum", inputs=(other, "b"), shape=shape, fn="add"),
    )  # fmt: skip


# ---- a naive maker of runs ----------------------------------------------------------------------------------------


def weights_of(layer: Layer) -> int:
    if layer.weights == "none":
        return 0
    return layer.g * layer.m * (layer.n * layer.kh * layer.kw + (MACHINE.bias_bytes if layer.bias else 0))


def sizes(layer: Layer, axis: str) -> tuple[int, int, int, int, int]:
    """Reach, stride, padding, inputs, outputs; a layer with one output moves by the whole map."""
    if axis == "rows":
        reach, stride, pad = (layer.kh - 1) * layer.dilation_h + 1, layer.stride_h, layer.pad_top
        inputs, outputs = layer.h, layer.r
    else:
        reach, stride, pad = (layer.kw - 1) * layer.dilation_w + 1, layer.stride_w, layer.pad_left
        inputs, outputs = layer.l, layer.c
    return reach, max(stride, inputs) if outputs == 1 else stride, pad, inputs, outputs


def used_after(found: Stores, store: int, last: int) -> bool:
    mine = found.stores[store]
    return mine.dram or mine.results > 0 or any(t > last for t in mine.readers)


def plain_streams(found: Stores, first: int, last: int, twice: bool) -> list[Stream]:
    """The streams of a group without paces."""
    none = Pace(1, 0, 0, 0)
    layers = range(first, last + 1)
    made = {found.writes[t] for t in layers}
    result = []
    for t in layers:
        readers = tuple(u for u in range(t + 1, last + 1) if found.writes[t] in found.reads[u])
        result.append(Stream(found.writes[t], t, readers, False, none, none))
    for s in dict.fromkeys(s for t in layers for s in found.reads[t] if s not in made):
        readers = tuple(u for u in layers if s in found.reads[u])
        for some in [(u,) for u in readers] if twice else [readers]:
            result.append(Stream(s, some[0], some, True, none, none))
    return result


class Unlike(Exception):
    """Maps of a group advance at unlike rates."""


def paces(found: Stores, run: FusedRun, axis: str, strip: int) -> list[Pace] | None:
    """The lines of all streams, from the last map back; None if maps advance at unlike rates."""
    lines: dict[int, Pace] = {}
    order = sorted(range(len(run.streams)), key=lambda k: (run.streams[k].outside, -run.streams[k].maker))
    for k in order:
        stream, seen = run.streams[k], []
        for u in stream.readers:
            reach, stride, pad, inputs, _ = sizes(found.layers[u], axis)
            out = lines[u - run.first]
            ahead, behind = (out.ahead - 1) * stride - pad + reach, out.behind * stride - pad
            seen.append((stride * out.step, ahead, behind, min(inputs, (out.end - 1) * stride - pad + reach)))
        if not stream.outside and used_after(found, stream.store, run.last):
            seen.append((seen[0][0] if seen else strip, 0, 0, sizes(found.layers[stream.maker], axis)[4]))
        if len({one[0] for one in seen}) != 1:
            return None
        lines[k] = Pace(seen[0][0], max(x[1] for x in seen), min(x[2] for x in seen), max(x[3] for x in seen))
    return [lines[k] for k in range(len(run.streams))]


def steps_of(found: Stores, run: FusedRun, lines: Sequence[Pace], halo: str, warm: bool) -> tuple[Steps, list[Pace]]:
    """The steps of an axis, and paces as schedules state them."""
    results = [
        pace for stream, pace in zip(run.streams, lines, strict=True)
        if not stream.outside and (used_after(found, stream.store, run.last) or not stream.readers)
    ]  # fmt: skip
    if halo == "recompute":
        again = [replace(pace, ahead=pace.ahead + pace.step) for pace in lines]
        return Steps(halo, 0, max(-(-pace.end // pace.step) for pace in results) - 1), again
    first = 1 - max(0, max(-(-pace.ahead // pace.step) for pace in lines)) if warm else 1
    return Steps(halo, first, max(-(-(pace.end - pace.ahead) // pace.step) for pace in results)), list(lines)


def fused(
    found: Stores, first: int = 0, last: int | None = None, strip: tuple[int, int] = (2, 99),
    halo: tuple[str, str] = ("retain", "retain"), warm: bool = True, twice: bool = False,
) -> FusedRun:  # fmt: skip
    """A group with all weights on chip, nothing else on chip, results written whole; refuses unlike rates."""
    last = len(found.layers) - 1 if last is None else last
    layers = found.layers[first : last + 1]
    run = FusedRun(
        first, last, Steps("retain", 1, 1), Steps("retain", 1, 1), tuple(plain_streams(found, first, last, twice)),
        tuple(map(weights_of, layers)), {},
        tuple(
            0 if used_after(found, found.writes[t], last) else found.stores[found.writes[t]].rows
            for t in range(first, last + 1)
        ),
        ALL,
    )  # fmt: skip
    over = min(strip[1], layers[-1].c)
    rows, columns = paces(found, run, "rows", strip[0]), paces(found, run, "columns", over)
    if rows is None or columns is None:
        raise Unlike
    row_steps, rows = steps_of(found, run, rows, halo[0], warm)
    column_steps, columns = steps_of(found, run, columns, halo[1], warm and over < layers[-1].c)
    placed = zip(run.streams, rows, columns, strict=True)
    streams = tuple(replace(s, rows=down, columns=across) for s, down, across in placed)
    return replace(run, rows=row_steps, columns=column_steps, streams=streams)


def walked(found: Stores, *runs: LayerRun | FusedRun) -> FusedReplay:
    result = replay_fusion(found, MACHINE, runs)
    assert not result.faults
    (only,) = result.runs
    return only


def faults(found: Stores, *runs: LayerRun | FusedRun, on: Machine = MACHINE) -> str:
    return "; ".join(replay_fusion(found, on, runs).faults)


# ---- by hand ------------------------------------------------------------------------------------------------------


def test_two_convolutions_in_strips_of_two_rows() -> None:
    # fronts after steps 0..4:  b 0 2 4 6 8,  a 1 3 5 7 8,  in 2 4 6 8 8;   a row: in 8 bytes, a 12, b 16
    # step 0: in 0..1, a 0            a runs: 2*8 + 1*12 = 28
    # step 1: in 0..3, a 0..2         a runs: 4*8 + 3*12 = 68;   then in 2..3 stay, b runs: 2*8 + 3*12 + 2*16 = 84
    # step 2: in 2..5, a 1..4         a runs: 4*8 + 4*12 = 80;   then in 4..5 stay, b runs: 2*8 + 4*12 + 2*16 = 96
    # step 3: as step 2;  step 4: in 6..7, a 5..7: 2*8 + 3*12 = 52, then nothing of in: 3*12 + 2*16 = 68
    # weights 3*2*9 = 54 and 4*3*9 = 108
    run = fused(pair())
    assert (run.rows, run.columns) == (Steps("retain", 0, 4), Steps("retain", 1, 1))
    assert [s.rows for s in run.streams] == [Pace(2, 1, -1, 8), Pace(2, 0, 0, 8), Pace(2, 2, -2, 8)]
    seen = walked(pair(), run)
    assert seen.operand_bytes == {"IN": 8 * 8, "W": 54 + 108, "OUT": 8 * 16}
    assert seen.macs == 8 * 4 * 54 + 8 * 4 * 108
    assert seen.peak_bytes == 96 + 162
    assert seen.visits == 5
    assert seen.executed


def test_the_longer_of_computing_and_moving_in_every_visit() -> None:
    # 16 MACs a tick; a row of a takes 216 MACs (13.5 cycles), two rows of b 864 (54); a byte takes a tick, a call 5 and
    # a segment 2: whole rows are one segment where channels lie innermost, so 7 each
    # step 0: weights 162 + 2 * 7, in 16 + 7, a one row 14: 199; steps 1..3: in 23, b 32 + 7; a two rows 27 and b 54: 81
    # step 4: b 39; a one row 14 and b 54: 68
    machine = MACHINE.model_copy(update={"compute": Compute(model="tile", macs_per_cycle=16, cycle_ticks=1)})
    (seen,) = replay_fusion(pair(), machine, [fused(pair())]).runs
    assert seen.ticks == 199 + 3 * 81 + 68
    assert walked(pair(), fused(pair())).ticks == 199 + 3 * (23 + 39) + 39  # nothing computes


def test_pieces_have_a_segment_for_every_run_of_addresses() -> None:
    # channels outermost: 2 rows of a map of 2 channels are 2 segments, of 4 channels 4, so in 16 + 5 + 4 = 25 and
    # b 32 + 5 + 8 = 45; weights as before: 162 + 14, of which 1 byte stays away from the second layer's last filter of
    # 27 bytes: that filter is a call of a byte in each of 4 visits, beside the 107 bytes that stay
    apart = MACHINE.model_copy(update={"in_layout": "CHW", "out_layout": "CHW", "w_layout": "OIHW"})
    (seen,) = replay_fusion(pair(), apart, [fused(pair())]).runs
    assert seen.ticks == (176 + 25) + 3 * (25 + 45) + 45
    (seen,) = replay_fusion(pair(), apart, [replace(fused(pair()), weights=(54, 107))]).runs
    assert seen.ticks == (175 + 25) + 3 * (25 + 45 + 8) + 45 + 8


def test_without_warm_up_the_first_step_makes_all_that_maps_are_ahead() -> None:
    # step 1 loads in 0..3 and makes a 0..2, as with warm-up: nothing was made by then that it does not make now
    seen = walked(pair(), fused(pair(), warm=False))
    assert (seen.visits, seen.peak_bytes) == (4, 96 + 162)
    assert seen.operand_bytes == {"IN": 64, "W": 162, "OUT": 128}


def test_two_convolutions_that_recompute_their_halo() -> None:
    # steps 0..3:  b 2k..2k+1;  a 0..2, 1..4, 3..6, 5..7 = 14 rows;  in 0..3, 0..5, 2..7, 4..7 = 20 rows
    # step 1, a runs: 6*8 + 4*12 = 96;  b runs: 4*12 + 2*16 = 80
    run = fused(pair(), halo=("recompute", "retain"))
    assert run.rows == Steps("recompute", 0, 3)
    assert [s.rows for s in run.streams] == [Pace(2, 3, -1, 8), Pace(2, 2, 0, 8), Pace(2, 4, -2, 8)]
    seen = walked(pair(), run)
    assert seen.operand_bytes == {"IN": 20 * 8, "W": 162, "OUT": 128}
    assert seen.macs == 14 * 4 * 54 + 8 * 4 * 108
    assert seen.peak_bytes == 96 + 162
    assert (seen.visits, seen.executed) == (4, True)


def test_streamed_weights_are_loaded_in_every_visit_that_needs_them() -> None:
    # b runs in 4 of 5 visits; 8 of its 108 bytes stay; a filter of b has 27 bytes
    seen = walked(pair(), replace(fused(pair()), weights=(54, 8)))
    assert seen.operand_bytes["W"] == 54 + 8 + 4 * 100
    assert seen.peak_bytes == 96 + 54 + 8 + 27
    # a runs in all 5: a filter of it has 18
    seen = walked(pair(), replace(fused(pair()), weights=(0, 108)))
    assert seen.operand_bytes["W"] == 5 * 54 + 108
    assert seen.peak_bytes == 96 + 108 + 18


def test_columns_in_two_tiles() -> None:
    # columns, steps 0..2:  b 0 2 4,  a 1 3 4,  in 2 4 4.  The most bytes in rows step 2, columns step 1, while b runs:
    # in: columns 0..1 with rows 4..5, columns 2..3 with rows 2..5                     12 pixels of 2 bytes
    # a:  columns 0..2 with rows 1..4, column 3 with rows 1..2 of the step before      14 pixels of 3 bytes
    # b:  columns 0..1 with rows 2..3                                                   4 pixels of 4 bytes
    run = fused(pair(), strip=(2, 2))
    assert run.columns == Steps("retain", 0, 2)
    seen = walked(pair(), run)
    assert seen.visits == 15
    assert seen.peak_bytes == 24 + 42 + 16 + 162
    assert seen.operand_bytes == {"IN": 64, "W": 162, "OUT": 128}
    assert seen.macs == 8 * 4 * 162
    assert seen.executed


def test_columns_in_two_tiles_that_are_recomputed() -> None:
    # columns: b 0..1, 2..3;  a 0..2, 1..3 = 6 of 4;  in 0..3, 0..3 = 8 of 4.   Rows once: in 8, a 8.
    seen = walked(pair(), fused(pair(), strip=(2, 2), halo=("retain", "recompute")))
    assert seen.operand_bytes == {"IN": 8 * 8 * 2, "W": 162, "OUT": 128}
    assert seen.macs == 8 * 6 * 54 + 8 * 4 * 108
    assert seen.executed
    # both axes: 14 rows and 6 columns of a, 20 rows and 8 columns of in
    seen = walked(pair(), fused(pair(), strip=(2, 2), halo=("recompute", "recompute")))
    assert seen.operand_bytes == {"IN": 20 * 8 * 2, "W": 162, "OUT": 128}
    assert seen.macs == 14 * 6 * 54 + 8 * 4 * 108


def test_a_skip_is_kept_until_the_sum() -> None:
    # a row of every map has 8 bytes.  fronts, steps 0..4:  sum and b 0 2 4 6 8,  a 1 3 5 7 8,  in 2 4 6 8 8
    # step 2: the sum has yet to see rows 2..; in 2..5, a 1..4, b 2..3, sum 2..3
    # a runs: 4 + 4 = 8 rows;  b runs: in 2..5, a 1..4, b 2..3: 10;  sum runs: in 2..5, a 3..4, b, sum: 4 + 2 + 2 + 2
    seen = walked(residual(), fused(residual()))
    assert seen.operand_bytes == {"IN": 64, "W": 72, "OUT": 64}
    assert seen.peak_bytes == 10 * 8 + 72
    assert seen.macs == 2 * 8 * 4 * 36
    assert seen.executed


def test_a_skip_that_is_read_twice() -> None:
    # the second stream of in is loaded before the sum: rows 2..3 in step 2; the first keeps 4..5 once a has run
    # b runs: 2 + 4 + 2 = 8 rows;  sum runs: 2 + 2 + 2 + 2 + 2 = 10
    run = fused(residual(), twice=True)
    assert [(s.maker, s.readers) for s in run.streams if s.outside] == [(0, (0,)), (2, (2,))]
    seen = walked(residual(), run)
    assert seen.operand_bytes == {"IN": 128, "W": 72, "OUT": 64}
    assert seen.peak_bytes == 10 * 8 + 72
    assert seen.executed


def test_rows_on_chip_are_not_moved() -> None:
    found = two_groups()[0]
    first, second = two_groups()[1]
    result = replay_fusion(found, MACHINE, (first, second))
    assert not result.faults
    one, two = result.runs
    # rows 0..4 of b (8 bytes a row) stay, rows 5..7 go through DRAM
    assert one.operand_bytes["OUT"] == two.operand_bytes["IN"] == 3 * 8
    assert one.executed
    assert two.executed


def test_a_map_that_stays_whole_takes_no_room_in_strips() -> None:
    found, (first, second) = two_groups()
    b = found.writes[1]
    kept = {b: (8, (0,))}
    seen = replay_fusion(found, MACHINE, (
        replace(first, residents=kept, unwritten=(8, 8), banks=ALL[1:]),
        replace(second, residents=kept, banks=ALL[1:]),
    ))  # fmt: skip
    assert not seen.faults
    one, two = seen.runs
    assert one.operand_bytes["OUT"] == two.operand_bytes["IN"] == 0
    # without b: in 2..5, a 1..4 while a runs = 8 rows of 8 bytes;  without b: c 1..4, d 2..3 = 6 rows
    assert (one.peak_bytes, two.peak_bytes) == (8 * 8 + 72, 6 * 8 + 72)


def two_groups() -> tuple[Stores, tuple[FusedRun, FusedRun]]:
    """Four 3x3 convolutions of 2 channels, in two groups; five rows of the map between stay on chip, in bank 0."""
    shape = (1, 2, 8, 4)
    found = read(
        Input(name="in", shape=shape),
        *(conv(name, before, shape, 2) for before, name in [("in", "a"), ("a", "b"), ("b", "c"), ("c", "d")]),
    )
    b = found.writes[1]
    first = replace(fused(found, 0, 1), residents={b: (5, (0,))}, unwritten=(8, 5), banks=ALL[1:])
    second = replace(fused(found, 2, 3), residents={b: (5, (0,))}, banks=ALL[1:])
    return found, (first, second)


def alone(layer: Layer) -> LayerRun:
    """A layer in tiles of one row."""
    holds = tuple(Hold(operand) for operand in layer.operands)
    return LayerRun(Nest((Loop("r", 1), *holds)), {}, 0, ALL)


def test_layers_and_groups_in_turn() -> None:
    found, _ = two_groups()
    runs = alone(found.layers[0]), fused(found, 1, 2), alone(found.layers[3])
    seen = replay_fusion(found, MACHINE, runs)
    assert not seen.faults
    assert [type(run).__name__ for run in seen.runs] == ["Replay", "FusedReplay", "Replay"]


def test_concatenations_pooling_and_a_pool_of_the_whole_map() -> None:
    shape = (1, 4, 6, 6)
    found = read(
        Input(name="in", shape=shape), conv("a", "in", shape, 2), conv("b", "in", shape, 6, 1),
        Concat(name="join", inputs=("a", "b"), shape=(1, 8, 6, 6)),
        conv("deep", "join", (1, 8, 6, 6), 8, groups=8, bias=True),
        Pool(name="half", inputs=("deep",), shape=(1, 8, 3, 3), fn="max", kernel=(2, 2), stride=(2, 2)),
        conv("c", "half", (1, 8, 3, 3), 4, dilation=(1, 1), groups=2),
        Pool(name="all", inputs=("c",), shape=(1, 4, 1, 1), fn="global_avg"),
    )  # fmt: skip
    seen = walked(found, fused(found, strip=(1, 1)))
    assert seen.executed
    found = read(*_heads(found))
    assert walked(found, fused(found, strip=(1, 2))).executed


def _heads(found: Stores) -> tuple[Operator, ...]:
    """The same without the pooling of the whole map, in strips of one row."""
    shape = (1, 4, 6, 6)
    return (
        Input(name="in", shape=shape), conv("a", "in", shape, 2), conv("b", "in", shape, 6, 1),
        Concat(name="join", inputs=("a", "b"), shape=(1, 8, 6, 6)),
        Pool(name="half", inputs=("join",), shape=(1, 8, 3, 3), fn="max", kernel=(2, 2), stride=(2, 2)),
    )  # fmt: skip


def test_products_by_rows() -> None:
    found = read(
        Input(name="in", shape=(12, 6)), MatMul(name="up", inputs=("in",), shape=(12, 16), out_features=16),
        MatMul(name="down", inputs=("up",), shape=(12, 6), out_features=6),
        Eltwise(name="sum", inputs=("in", "down"), shape=(12, 6), fn="add"),
    )  # fmt: skip
    seen = walked(found, fused(found, strip=(5, 1)))
    assert seen.executed
    assert seen.operand_bytes == {"IN": 72, "W": 192, "OUT": 72}
    # the sum runs: in 5 rows of 6, down and sum 5 rows of 6;  down runs: in, up 5 rows of 16, down
    assert seen.peak_bytes == 30 + 80 + 30 + 192


# ---- faults -------------------------------------------------------------------------------------------------------


def edited(run: FusedRun, stream: int, **changes: Any) -> FusedRun:
    streams = list(run.streams)
    streams[stream] = replace(streams[stream], **changes)
    return replace(run, streams=tuple(streams))


def slower(run: FusedRun, stream: int, axis: str = "rows", **changes: Any) -> FusedRun:
    return edited(run, stream, **{axis: replace(getattr(run.streams[stream], axis), **changes)})


def test_what_is_read_must_be_on_chip() -> None:
    run = fused(pair())
    said = faults(pair(), slower(run, 2, ahead=1))
    assert (
        "layers a to b: layer a: rows 0 to 1, columns 0 to 3 of in are not all on chip when it makes its rows 0 to 0"
        in said
    )
    assert "of a are not all on chip" in faults(pair(), slower(run, 0, ahead=0))
    assert "of a are not all on chip" in faults(pair(), slower(fused(pair(), strip=(2, 2)), 0, "columns", ahead=0))
    again = fused(pair(), halo=("recompute", "retain"))
    assert "of a are not all on chip" in faults(pair(), slower(again, 0, behind=0))


def test_every_pixel_that_is_needed_is_made() -> None:
    run = fused(pair())
    assert "layer b: 8 of 32 pixels are never made" in faults(pair(), replace(run, rows=Steps("retain", 0, 3)))
    assert "layer b: 4 of 32 pixels are never made" in faults(pair(), slower(run, 1, end=7))
    # a, read later: all of it, not only what the group needs
    found, (first, second) = two_groups()
    assert "layer b: 4 of 32 pixels are never made" in faults(found, slower(first, 1, end=7), second)


def test_strips_and_weights_fit_their_banks() -> None:
    on = MACHINE.model_copy(update={"ocm_bytes": 16 * 258, "ocm_banks": 16})
    assert faults(pair(), replace(fused(pair()), banks=(3,)), on=on) == ""
    on = MACHINE.model_copy(update={"ocm_bytes": 16 * 257, "ocm_banks": 16})
    said = faults(pair(), replace(fused(pair()), banks=(3,)), on=on)
    assert said == "layers a to b: strips and weights take 258 bytes, 1 banks hold 257"


def test_streams_fit_the_layers() -> None:
    run = fused(residual())
    assert "it has 3 layers: as many streams come first" in faults(residual(), replace(run, streams=run.streams[1:]))
    assert "sum reads in from 0 streams" in faults(residual(), edited(run, 3, readers=(0,)))
    assert "sum reads in from 0 streams" in faults(residual(), replace(run, streams=run.streams[:3]))
    assert "a reads in from 2 streams" in faults(residual(), replace(run, streams=(*run.streams, run.streams[3])))
    for changes in ({"store": 1}, {"maker": 1}, {"readers": ()}, {"readers": (1, 2)}):
        assert "the stream of a: its map, maker or readers" in faults(residual(), edited(run, 0, **changes))
    for changes in ({"maker": 1}, {"readers": (2, 0)}, {"readers": (0, 2, 2)}):
        assert "in from outside comes before its first reader" in faults(residual(), edited(run, 3, **changes))
    for changes in ({"store": 99}, {"readers": (0, 1, 2)}, {"readers": ()}, {"readers": (0, 77)}, {"store": 1}):
        assert "from outside has readers that do not read it so" in faults(residual(), edited(run, 3, **changes))


def bare(found: Stores, first: int, last: int) -> FusedRun:
    """A group in one step whose paces say nothing."""
    pace, steps, layers = Pace(1, 0, 0, 1), Steps("retain", 1, 1), found.layers[first : last + 1]
    streams = tuple(replace(s, rows=pace, columns=pace) for s in plain_streams(found, first, last, False))
    weights = tuple(map(weights_of, layers))
    return FusedRun(first, last, steps, steps, streams, weights, {}, (0,) * len(layers), ALL)


def test_maps_pass_whole_or_in_rows() -> None:
    shape = (1, 4, 4, 4)
    first = Input(name="in", shape=shape), conv("a", "in", shape, 4)
    join = Concat(name="join", inputs=("in", "a"), shape=(1, 8, 4, 4))
    flat = read(*first, Reshape(name="flat", inputs=("a",), shape=(1, 64)),
                MatMul(name="fc", inputs=("flat",), shape=(1, 5), out_features=5))  # fmt: skip
    assert "fc sees a with other rows or columns" in faults(flat, bare(flat, 0, 1))
    # a concatenation of the input and a map: nobody in the group makes the input's channels
    mixed = read(*first, join, conv("b", "join", (1, 8, 4, 4), 4))
    assert "b reads 8 elements a pixel of join, layers before it make 4" in faults(mixed, bare(mixed, 0, 1))
    # one of which a part was made before
    parted = read(*first, conv("b", "in", shape, 4), join.model_copy(update={"inputs": ("a", "b")}),
                  conv("c", "join", (1, 8, 4, 4), 4))  # fmt: skip
    said = faults(parted, alone(parted.layers[0]), bare(parted, 1, 2))
    assert "c reads join, a part of it was made before the group" in said
    # a sum of both parts of a concatenation, which lie in one store
    both = read(*first, Eltwise(name="sum", inputs=("a", "in"), shape=shape, fn="add"), conv("b", "sum", shape, 4),
                join, conv("c", "join", (1, 8, 4, 4), 4))  # fmt: skip
    said = faults(both, alone(both.layers[0]), bare(both, 1, 2))
    assert "sum reads 2 parts of join from outside: it runs by itself" in said
    # two that read the input, and a product that does so twice, in its rows and as one row
    turned = Reshape(name="t", inputs=("in",), shape=(1, 4, 1, 16))
    two = read(*first, turned, conv("b", "t", (1, 4, 1, 16), 4, 1))
    assert "readers of a stream of in see other rows or columns of it" in faults(two, bare(two, 0, 1))
    tall = Input(name="in", shape=(1, 4, 8, 1)), conv("a", "in", (1, 4, 8, 1), 4, 1)
    outer = read(*tall, turned.model_copy(update={"shape": (1, 4, 1, 8)}),
                 Eltwise(name="m", inputs=("in", "t"), shape=(1, 4, 8, 8), fn="mul"))  # fmt: skip
    said = faults(outer, bare(outer, 0, 1))
    assert "m reads one map twice, broadcast along different dimensions: it runs by itself" in said


def test_shared_weights_stay_with_the_first_that_reads_them() -> None:
    shape = (1, 2, 8, 4)
    found = read(Input(name="in", shape=shape), conv("a", "in", shape, 2), conv("b", "a", shape, 2, weights_of="a"))
    run = fused(found)
    assert faults(found, run) == "layers a to b: weights of b stay with a's"
    assert faults(found, replace(run, weights=(36, 0))) == ""


@pytest.mark.parametrize("names", [("a", "right"), ("right", "a")])
def test_what_must_be_complete_is_made_before_the_group(names: tuple[str, str]) -> None:
    shape = (1, 4, 4, 4)
    found = read(
        Input(name="in", shape=shape), *(conv(name, "in", shape, 4) for name in names),
        MatMul(name="all", inputs=("a", "right"), shape=shape),
    )  # fmt: skip
    assert "all begins when right is complete, both are in the group" in faults(found, bare(found, 0, 2))


def test_rows_that_are_never_written_stay_on_chip() -> None:
    found, (first, second) = two_groups()
    said = faults(found, replace(first, unwritten=(8, 6)), second)
    assert said == "layers a to b: 6 rows of b are not written, 5 stay on chip"
    assert "9 rows are not written, the result has 8" in faults(found, replace(first, unwritten=(9, 5)), second)
    assert "9 rows are not written" in faults(found, replace(first, unwritten=(8, 9)), second)


def test_what_is_read_from_dram_was_written() -> None:
    found, (first, second) = two_groups()
    said = faults(found, first, replace(second, residents={found.writes[1]: (4, (0,))}))
    assert said == "layers c to d: rows 4 to 4 of b are read from DRAM, b never wrote them"
    # a is not needed after the first group as planned; a second group that reads it finds nothing
    assert "rows 0 to 4 of b are read from DRAM" in faults(found, first, replace(second, residents={}))


def test_rows_do_not_come_back_and_banks_have_one_owner() -> None:
    found, (first, second) = two_groups()
    b = found.writes[1]
    assert "6 rows of b are on chip, in the layer before 5 were" in faults(
        found, first, replace(second, residents={b: (6, (0,))})
    )
    assert "in other banks" in faults(found, first, replace(second, residents={b: (5, (1,))}, banks=ALL[2:]))
    assert "bank 0 belongs to strips and weights and to b" in faults(found, replace(first, banks=ALL), second)
    assert "bank 16 of strips and weights does not exist" in faults(found, replace(first, banks=(1, 16)), second)
    assert "9 rows of b take 72 bytes" in faults(found, replace(first, residents={b: (9, (0,))}), second)
    assert "-1 rows of b" in faults(found, replace(first, residents={b: (-1, (0,))}), second)
    on = MACHINE.model_copy(update={"ocm_bytes": 16 * 32})
    assert "5 rows of b take 40 bytes, 1 banks hold 32" in faults(found, first, second, on=on)


def test_results_are_written() -> None:
    found, (first, second) = two_groups()
    kept = {found.writes[1]: (5, (0,)), found.writes[3]: (2, (1,))}
    said = faults(found, first, replace(second, residents=kept, unwritten=(8, 2), banks=ALL[2:]))
    assert said == "d: the result must be in DRAM, some rows are not written"


def test_weights_paces_and_steps_are_within_their_bounds() -> None:
    run = fused(pair())
    assert "55 bytes of weights of a stay, it has 54" in faults(pair(), replace(run, weights=(55, 108)))
    assert "-1 bytes of weights of b stay" in faults(pair(), replace(run, weights=(54, -1)))
    assert "weights for 1 and unwritten rows for 2" in faults(pair(), replace(run, weights=(54,)))
    assert "a advances by 0 rows to 8" in faults(pair(), slower(run, 0, step=0))
    assert "b advances by 2 rows to 9, it has 8" in faults(pair(), slower(run, 1, end=9))
    assert "in advances by 4 columns to -1" in faults(pair(), slower(run, 2, "columns", end=-1))
    assert "steps of rows go from 3 to 2" in faults(pair(), replace(run, rows=Steps("retain", 3, 2)))
    assert "not 'kept'" in faults(pair(), replace(run, columns=Steps("kept", 1, 1)))
    assert "too many to walk" in faults(pair(), replace(run, rows=Steps("retain", 0, 10**9)))


def test_runs_follow_the_network() -> None:
    found, (first, second) = two_groups()
    assert faults(found, first) == "the plan has 2 layers, the network 4"
    assert "after 0 of 4 it runs layers 2 to 3" in faults(found, second)
    assert "after 2 of 4 it runs layers 2 to 1" in faults(found, first, replace(second, last=1))
    assert "after 2 of 4 it runs layers 2 to 4" in faults(found, first, replace(second, last=4))
    assert "after 4 of 4 it runs layers 4 to 4" in faults(found, first, second, alone(found.layers[3]))
    assert "the network 4" in faults(found)


def test_a_difference_on_integers_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute_module, "direct", lambda layer, data: direct(layer, data) + (layer.name == "b"))
    result = replay_fusion(pair(), MACHINE, (fused(pair()),))
    assert result.faults == ("layers a to b: layer b: computed strip by strip, its result differs",)
    (run,) = result.runs
    assert not run.executed


# ---- layers that take turns ---------------------------------------------------------------------------------------


def inverted(batch: int = 1, middle: str = "dw") -> Stores:
    """4 channels, 6, a depthwise convolution with stride 2 or a pool, 2: and one more layer on the result."""
    wide = (batch, 6, 8, 6)
    half = (batch, 6, 4, 3)
    between: Operator = conv("dw", "a", wide, 6, groups=6, stride=2, bias=True)
    if middle == "pool":
        between = Pool(name="dw", inputs=("a",), shape=half, fn="max", kernel=(2, 2), pad=(0,) * 4, stride=(2, 2))
    return read(
        Input(name="in", shape=(batch, 4, 8, 6)), conv("a", "in", (batch, 4, 8, 6), 6, bias=True), between,
        conv("b", "dw", half, 2, bias=True), conv("c", "b", (batch, 2, 4, 3), 3),
    )  # fmt: skip


def test_turns_by_hand() -> None:
    # as in two strips of two rows above; a channel of a row of a has 4 bytes, sums of b 4 pixels * 4 * 2 bytes a row
    # step 1: in 0..3 32; the last channel of a 0..2 12, of the others rows 1..2 stay 2*8; sums of b 0..1 64: 124
    # step 2: in 2..5 32; a channel of a 1..4 16; of the others rows 1..2 (or 3..4) 2*8; sums 64:             128
    run = replace(fused(pair()), blocks=(Blocks(0, 1, 1),))
    seen = walked(pair(), run)
    assert seen.peak_bytes == 128 + 162
    assert seen.operand_bytes == {"IN": 8 * 8, "W": 54 + 108, "OUT": 8 * 16}
    assert (seen.macs, seen.visits, seen.executed) == (8 * 4 * 54 + 8 * 4 * 108, 5, True)


@pytest.mark.few(3)
@pytest.mark.parametrize("blocks", [(0, 2, 1), (0, 2, 2), (0, 2, 3), (1, 2, 2), (2, 3, 1), (0, 1, 1), (0, 1, 3)])
@pytest.mark.parametrize("middle", ["dw", "pool"])
@pytest.mark.parametrize(("halo", "streamed"), thinned(product(("retain", "recompute"), (True, False)), 3))
def test_turns_move_and_compute_what_layers_one_after_the_other_do(
    blocks: tuple[int, int, int], middle: str, halo: str, streamed: bool
) -> None:
    for batch, strip in thinned(((2, (2, 1)), (1, (1, 3)), (1, (2, 2)), (1, (4, 3))), 2):
        found = inverted(batch, middle)
        plain = fused(found, strip=strip, halo=(halo, halo))
        plain = replace(plain, weights=(0,) * 4 if streamed else plain.weights)
        turned = walked(found, replace(plain, blocks=(Blocks(*blocks),)))
        whole = walked(found, plain)
        assert turned.executed
        assert (turned.operand_bytes, turned.macs, turned.visits) == (whole.operand_bytes, whole.macs, whole.visits)


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ((Blocks(0, 2, 4),), "a takes turns for 4 of 6 channels: a divisor, not all"),
        ((Blocks(0, 2, 6),), "a takes turns for 6 of 6 channels"),
        ((Blocks(0, 2, 0),), "a takes turns for 0 of 6 channels"),
        ((Blocks(0, 3, 1),), "their maps do not go through them channel by channel"),
        ((Blocks(1, 2, 1), Blocks(2, 3, 1)), "layers 2 to 3 do not take turns after 2, up to 3"),
        ((Blocks(2, 4, 1),), "layers 2 to 4 do not take turns after -1, up to 3"),
        ((Blocks(2, 2, 1),), "layers 2 to 2 do not take turns"),
    ],
)
def test_turns_that_cannot_be(blocks: tuple[Blocks, ...], said: str) -> None:
    assert said in faults(inverted(), replace(fused(inverted(), strip=(2, 2)), blocks=blocks))


def test_turns_end_with_a_layer_that_adds_all_channels_up_or_none() -> None:
    """A layer of 3 groups adds up 2 channels."""
    found = inverted()
    a, dw, *others = found.layers
    two = replace(found, layers=(a, dw.model_copy(update={"g": 3, "m": 2, "n": 2}), *others))
    run = replace(fused(found, strip=(2, 2)), blocks=(Blocks(0, 1, 1),))
    assert "dw does not add up the 6 channels of a, nor takes them one by one" in faults(two, run)


def test_a_map_that_others_read_too_is_not_for_turns() -> None:
    run = replace(fused(residual()), blocks=(Blocks(1, 2, 1),))
    assert faults(residual(), run) == ""  # the other map comes from outside
    found = residual("a")
    run = replace(fused(found), blocks=(Blocks(1, 2, 1),))
    assert "sum takes turns with b: its map is not for it alone" in faults(found, run)


def test_turns_that_are_too_many_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    run = replace(fused(pair()), blocks=(Blocks(0, 1, 1),))
    monkeypatch.setattr("hwmodels.fusion.replay.referee.MAX_MOMENTS", 5 * 3)
    assert faults(pair(), run) == ""
    monkeypatch.setattr("hwmodels.fusion.replay.referee.MAX_MOMENTS", 5 * 3 - 1)
    assert "15 turns of a to b are too many to walk" in faults(pair(), replace(run, streams=run.streams))


# ---- random groups ------------------------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A chain of convolutions, depthwise ones and pooling, with sums and concatenations of earlier maps."""
    shape = (draw(st.integers(1, 2)), 2 * draw(st.integers(1, 2)), draw(st.integers(4, 9)), draw(st.integers(3, 8)))
    operators: list[Operator] = [Input(name="in", shape=shape)]
    for number in range(draw(st.integers(2, 5))):
        name, before = f"n{number}", operators[-1]
        alike = [o.name for o in operators[:-1] if o.shape == before.shape]
        kind = draw(st.sampled_from(["conv", "conv", "deep", "pool", "sum", "sum", "join"]))
        if kind == "sum" and alike:
            pair = (draw(st.sampled_from(alike)), before.name)
            operators.append(Eltwise(name=name, inputs=pair, shape=before.shape, fn="add"))
        elif kind == "join" and alike and draw(st.sampled_from(alike)) != "in":
            other = draw(st.sampled_from([a for a in alike if a != "in"] or ["in"]))
            wide = (before.shape[0], 2 * before.shape[1], *before.shape[2:])
            operators.append(Concat(name=f"{name}j", inputs=(other, before.name), shape=wide))
            operators.append(conv(name, f"{name}j", wide, 2))
        elif kind == "pool" and min(before.shape[2:]) > 2:
            stride = draw(st.sampled_from([1, 2]))
            size = tuple((s - 2) // stride + 1 for s in before.shape[2:])
            operators.append(Pool(
                name=name, inputs=(before.name,), shape=(*before.shape[:2], *size), fn="avg", kernel=(2, 2),
                stride=(stride, stride),
            ))  # fmt: skip
        else:
            taps, stride = draw(st.sampled_from([(1, 1), (3, 1), (3, 1), (3, 2), (1, 2), (5, 1)]))
            filters = before.shape[1] if kind == "deep" else 2 * draw(st.integers(1, 2))
            groups = before.shape[1] if kind == "deep" else 1
            operators.append(conv(name, before.name, before.shape, filters, taps, stride=stride, groups=groups))
    return Network(name="random", operators=tuple(operators))


def legal(found: Stores, first: int, last: int) -> bool:
    """Whether all parts of what is read in a group are made in it or all before it, and no layer sums a map twice."""
    made = {found.writes[t] for t in range(first, last + 1)}
    for t in range(first, last + 1):
        for s in set(found.reads[t]) & made:
            makers = [p for p, _ in found.stores[s].parts if p < t]
            layer, elements = found.layers[t], sum(found.layers[p].g * found.layers[p].m for p in makers)
            if found.stores[s].whole or any(p < first for p in makers) or layer.g * layer.n > elements:
                return False
    return True


@settings(
    max_examples=tries(15, 60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(data=st.data())
def test_random_groups_are_executed_equal_to_layer_by_layer(data: st.DataObject) -> None:
    found = stores(data.draw(networks()))
    count = len(found.layers)
    cut = data.draw(st.integers(0, count - 1))
    halo = st.sampled_from(["retain", "recompute"])
    runs = []
    for first, last in [(0, cut), (cut + 1, count - 1)] if cut < count - 1 else [(0, cut)]:
        assume(legal(found, first, last))
        out = found.layers[last]
        strip = data.draw(st.integers(1, out.r)), data.draw(st.integers(1, out.c))
        halos, warm, twice = (data.draw(halo), data.draw(halo)), data.draw(st.booleans()), data.draw(st.booleans())
        try:
            runs.append(fused(found, first, last, strip, halos, warm, twice))
        except Unlike:
            assume(False)
    on = MACHINE.model_copy(update={"ocm_bytes": 2**20})
    result: FusionReplay = replay_fusion(found, on, runs)
    assert result.faults == ()
    assert all(isinstance(run, FusedReplay) and run.executed for run in result.runs)
