"""Free pieces: for every way to cut a dimension a listed chain is nowhere above it; and what attacks found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.pins import parse_pins
from formulations.tiling import cuts
from formulations.tiling.cuts import Cut, complete, every_cut, free_chains, whole_windows
from formulations.tiling.problem import NESTS
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import Window, how
from hwmodels.nest.price.relaxed import part_window
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver import check, solve
from solver.problems.tiling import decide_space
from solver.search.loop import Answer
from tests.adversary.anneal import Goal
from tests.adversary.tiny import enumerated
from tests.effort import thinned, tries
from tests.small import byte_machine as machine

#: Loops outside the Holds of IN and of OUT, of all canonical nests.
LEVELS = ((0, 1), (1, 0), (1, 1), (1, 2), (2, 1))
#: Groups of pieces: the sizes of the first loop's pieces, and of the pieces that the second one cuts these in.
Groups = tuple[tuple[int, ...], ...]


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, int]:
    """A window over up to 8 outputs, of any padding below its reach, with rows on chip or without."""
    extent, stride, taps, dilation = (draw(st.integers(1, most)) for most in (8, 3, 5, 2))
    reach = (taps - 1) * dilation + 1
    pad, below = draw(st.integers(0, reach - 1)), draw(st.integers(-1, reach - 1))
    size = max(1, (extent - 1) * stride - pad + reach - below)
    first = draw(st.sampled_from([0, 0, draw(st.integers(0, size))]))
    return Window(stride, dilation, taps, pad, size, first), extent


def compositions(number: int) -> Iterator[tuple[int, ...]]:
    """All lists of positive integers with this sum."""
    for count in range(number):
        for places in combinations(range(1, number), count):
            yield tuple(b - a for a, b in pairwise((0, *places, number)))


def groupings(extent: int, depth: int) -> Iterator[Groups]:
    """All ways to cut: pieces of one loop, or pieces of two in groups."""
    for outer in compositions(extent):
        if depth == 1:
            yield tuple((size,) for size in outer)
            continue
        found: list[Groups] = [()]
        for size in outer:
            found = [(*groups, inner) for groups in found for inner in compositions(size)]
        yield from found


def made(extent: int, chain: np.ndarray) -> Groups:
    """The groups of pieces that a chain makes."""
    places, levels = [0, extent], []
    for entry in chain:
        step = how(int(entry))
        inside = [x for a, b in pairwise(places) for x in range(a, b, step)] if isinstance(step, int) else step
        places = sorted({*places, *inside})
        levels.append(places)
    groups = [[x for x in places if a <= x <= b] for a, b in pairwise(levels[0])]
    return tuple(tuple(b - a for a, b in pairwise(group)) for group in groups)


def fetched(window: Window, begin: int, end: int) -> int:
    """Rows that outputs need, but for those outside the map or on chip."""
    first = max(begin * window.stride - window.pad, window.first)
    return max(0, min((end - 1) * window.stride - window.pad + window.reach, window.size) - first)


def seen(window: Window, levels: tuple[int, int], groups: Groups) -> tuple[int, ...]:
    """What bytes and room depend on: largest tiles of IN and OUT, numbers of pieces, and rows fetched, slid and not.

    Where pieces skip rows and are cut twice, fewer groups are no gain: their number counts both ways.
    """
    outer, inner = [sum(group) for group in groups], [size for group in groups for size in group]
    of_in, of_out = (outer if level < max(levels) else inner for level in levels)

    def rows(sizes: list[int]) -> list[int]:
        return [fetched(window, a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]

    skipping = window.reach < window.stride and max(levels) > 1
    return (
        max(rows(of_in)), max(of_out) if levels[1] else 0, len(outer), len(inner), sum(rows(outer)), sum(rows(of_in)),
        -len(outer) if skipping else 0,
    )  # fmt: skip


@settings(max_examples=tries(15, 60))
@given(windows(), st.sampled_from(LEVELS))
def test_every_way_to_cut_has_a_listed_chain_nowhere_above_it(
    given_: tuple[Window, int], levels: tuple[int, int]
) -> None:
    window, extent = given_
    cut = Cut(window, ((0, extent),), levels)
    chains = free_chains(cut, np.arange(1, extent + 1, dtype=np.int64))
    assert chains.shape[1] == max(levels)
    assert len(chains)
    if levels[0] == 0 or not complete(cut):
        return
    have = np.array([seen(window, levels, made(extent, chain)) for chain in chains]).T
    for groups in groupings(extent, max(levels)):
        values = np.array(seen(window, levels, groups))
        assert (have <= values[:, None]).all(axis=0).any(), (groups, values)


@given(windows(), st.sampled_from(LEVELS[1:]))
def test_pieces_of_whole_windows_and_all_cuts_are_what_they_say(
    given_: tuple[Window, int], levels: tuple[int, int]
) -> None:
    window, extent = given_
    extent = min(extent, 5)
    cut, sizes = Cut(window, ((0, extent),), levels), np.arange(1, extent + 1, dtype=np.int64)
    everything = [made(extent, chain) for chain in every_cut(cut, sizes)]
    assert sorted(everything) == sorted(groupings(extent, max(levels)))
    for chain in whole_windows(cut, sizes):
        places = np.cumsum([0, *(sum(group) for group in made(extent, chain))]).tolist()
        assert any(fetched(window, a, b) == window.size for a, b in pairwise(places))


@settings(max_examples=tries(15, 60))
@given(windows(), st.sampled_from(LEVELS))
def test_windows_that_compare_alike_have_the_same_chains(of: tuple[Window, int], levels: tuple[int, int]) -> None:
    window, extent = of
    cut = Cut(window, ((0, extent),), levels, counted=False)
    sizes = np.arange(1, extent + 1, dtype=np.int64)
    assert cuts._listed.__wrapped__(cut, sizes.tobytes()).tolist() == free_chains(cut, sizes).tolist()


@pytest.mark.parametrize(("window", "ranges", "levels", "said"), [
    # one tap with stride 2 skips rows: complete where nothing is clipped, of two loops up to 32 outputs
    (Window(2, 1, 1, 0, 9), ((0, 5),), (1, 1), True), (Window(2, 1, 1, 0, 9), ((0, 5),), (2, 1), True),
    (Window(2, 1, 1, 0, 65), ((0, 33),), (1, 1), True), (Window(2, 1, 1, 0, 65), ((0, 33),), (2, 1), False),
    (Window(2, 1, 1, 0, 9), ((0, 5),), (1, 2), True), (Window(2, 1, 1, 0, 8), ((0, 5),), (1, 1), False),
    (Window(3, 1, 2, 1, 9), ((0, 4),), (1, 1), False), (Window(3, 1, 2, 1, 9), ((0, 4),), (0, 1), True),
    # cores: as long as each other, clipped by no more than a stride
    (Window(1, 1, 3, 1, 8), ((0, 4), (4, 8)), (1, 1), True), (Window(1, 1, 3, 1, 7), ((0, 4), (4, 7)), (1, 1), False),
    (Window(1, 1, 5, 2, 8), ((0, 4), (4, 8)), (1, 1), False),
    # 9 taps, padding 4: three places before the first whole window matter, unless IN and OUT are cut by other loops
    (Window(1, 1, 9, 4, 9), ((0, 9),), (1, 1), False), (Window(1, 1, 9, 4, 9), ((0, 9),), (2, 1), True),
    (Window(1, 1, 9, 4, 9), ((0, 9),), (1, 2), True), (Window(1, 1, 7, 3, 9), ((0, 9),), (1, 1), True),
])  # fmt: skip
def test_where_an_optimum_is_listed(
    window: Window, ranges: tuple[tuple[int, int], ...], levels: tuple[int, int], said: bool
) -> None:
    assert complete(Cut(window, ranges, levels)) == said


def test_groups_of_windows_that_lie_apart_have_as_many_pieces_each() -> None:
    """22 outputs in two groups of 11 and five pieces of at most 6: 6 + 5, 6 + 4 + 1. Once there were none of five."""
    axis = Cut(Window(2, 1, 1, 0, 43), ((0, 22),), (2, 1))
    found = [made(22, chain) for chain in free_chains(axis, np.arange(1, 23))]
    sizes = {
        (len(groups), sum(map(len, groups)), max(map(sum, groups)), max(map(max, groups))) for groups in found
    }  # fmt: skip
    assert {(2, 4, 11, 6), (2, 5, 11, 6), (2, 5, 12, 5)} <= sizes


def test_five_columns_by_hand() -> None:
    """3 taps, padding 1: 2, 1, 2 columns see 3 columns each; equal steps of 2 see 3, 4 and 2, those of 1 are five."""
    window = Window(1, 1, 3, 1, 5)
    chains = free_chains(Cut(window, ((0, 5),), (1, 1)), np.arange(1, 6, dtype=np.int64))
    found = {made(5, chain) for chain in chains}
    assert ((2,), (1,), (2,)) in found
    assert seen(window, (1, 1), ((2,), (1,), (2,)))[:4] == (3, 2, 3, 3)
    assert seen(window, (1, 1), ((2,), (2,), (1,)))[:4] == (4, 2, 3, 3)


# ---- what attacks found ----------------------------------------------------------------------------------------------


def solved(layer: Layer, on: Machine, objective: str, engine: str = "exhaustive") -> Answer[Nest]:
    formulation = NESTS["tiling"]
    found = decide_space(formulation.build(layer, on, parse_pins((), formulation.decisions)), (objective,), engine)
    assert found.schedule is not None
    walked = replay(layer, on, found.schedule, execute=layer.macs < 100_000)
    assert walked.ok
    assert walked.outcome.measures == found.values
    return found


def known(layer: Layer, on: Machine, *items: Item) -> int:
    """The bytes of a nest that replay accepts."""
    walked = replay(layer, on, Nest(items), execute=layer.macs < 100_000)
    assert walked.ok, walked.faults
    return walked.outcome.bytes


PADDED = Layer.conv("padded", channels=1, filters=1, size=(5, 5), kernel=(3, 3), pad=(1, 1, 1, 1))
COLUMN = Layer.conv("column", channels=1, filters=1, size=(5, 1), kernel=(3, 1), pad=(1, 0, 1, 0))


def test_strips_of_columns(engine: str) -> None:
    """19 bytes: `W c3 c2 r1 IN c1 OUT` has columns 2, 1, 2 and rings of 3x3; equal steps moved 99 bytes."""
    on = machine(ocm_bytes=19, sliding=True)
    loops = Loop("c", 3), Loop("c", 2), Loop("r", 1)
    assert known(PADDED, on, Hold("W"), *loops, Hold("IN"), Loop("c", 1), Hold("OUT")) == 79
    found = solved(PADDED, on, "bytes", engine)
    assert (found.status, found.bound, found.values and found.values["bytes"]) == ("OPTIMAL", 79, 79)
    even = solve(PADDED, on, objective="bytes", pins=["pieces=even"])
    assert even.objective.value == 99
    assert check(even).ok


def test_whole_tiles(engine: str) -> None:
    """7 bytes, not sliding: rows 2, 1, 2 fetch 3 each, 9 in all, with 3 weights and 5 results; equal steps moved 21."""
    on = machine(ocm_bytes=7)
    loops = Hold("W"), Loop("r", 3), Loop("r", 2), Hold("IN"), Loop("r", 1), Hold("OUT")
    assert known(COLUMN, on, *loops) == 9 + 3 + 5
    found = solved(COLUMN, on, "bytes", engine)
    assert (found.status, found.bound, found.values and found.values["bytes"]) == ("OPTIMAL", 17, 17)


def test_rows_that_are_on_chip_clip_pieces_too() -> None:
    """`m1 W r12 r10 r8 r6 c1 IN r1 OUT` moves 48,384 bytes; equal steps moved 50,432."""
    layer = Layer.conv("x", channels=4, filters=32, size=(16, 16), kernel=(3, 3))
    layer = Layer.model_validate({**layer.model_dump(), "resident_in": (4,)})
    on = machine(ocm_bytes=96, psum_bytes=4, sliding=True)
    rows = [Loop("r", step) for step in (12, 10, 8, 6)]
    moved = known(layer, on, Loop("m", 1), Hold("W"), *rows, Loop("c", 1), Hold("IN"), Loop("r", 1), Hold("OUT"))
    assert moved == 48_384
    found = solved(layer, on, "bytes")
    assert found.values
    assert found.bound <= found.values["bytes"] <= moved


@pytest.mark.slow(2)
def test_large_kernels_have_a_true_bound() -> None:
    """5x4 kernel, stride 2x3, two buffers: no nest of one step each, of the kernel too, is below the bound."""
    layer = Layer.conv("x", channels=1, filters=1, size=(12, 12), kernel=(5, 4), stride=(2, 3), pad=(2, 3, 2, 3))
    on = machine(ocm_bytes=128, buffering="double")
    found = solved(layer, on, "bytes")
    fits = 0
    for r, c, i, j in thinned(np.ndindex(layer.r, layer.c, 5, 4), 3):
        steps = [Loop(d, size + 1) for d, size in zip("rcij", (r, c, i, j), strict=True)]
        for items in (
            (*steps, Hold("IN"), Hold("W"), Hold("OUT")),
            (Hold("W"), *steps[:2], Hold("OUT"), *steps[2:], Hold("IN")),
        ):
            priced = price(layer, on, Nest(items))
            if priced.occupancy_bytes["ocm"] <= 128:
                fits += 1
                assert found.bound <= priced.bytes
    assert fits > 100


def test_partial_sums_smaller_than_results(engine: str) -> None:
    """6x2 by 2x3, results of 2 bytes, sums of 1: a loop over n inside all Holds makes no tile of OUT smaller.

    IN (12), a column of W (2) and one of OUT (12) are 26 bytes, with that loop or without; OUT row by row is 2: 16
    bytes suffice to move each byte once.
    """
    layer, on = Layer.matmul("x", rows=6, inner=2, cols=3), machine(ocm_bytes=23, out_bytes=2)
    loops = Hold("IN"), Loop("m", 1), Hold("W"), Hold("OUT")
    for items in (loops, (*loops, Loop("n", 1))):
        walked = replay(layer, on.model_copy(update={"ocm_bytes": 26}), Nest(items))
        assert walked.ok
        assert walked.outcome.occupancy_bytes["ocm"] == 12 + 2 + 6 * 2
    found = solved(layer, on, "bytes", engine)
    assert (found.status, found.values and found.values["bytes"]) == ("OPTIMAL", 12 + 6 + 36)


@pytest.mark.slow(2)
def test_time_of_partial_sums_smaller_than_results_is_bounded() -> None:
    """Calls of 8 ticks beside bytes: no nest of few loops is faster than the plan, none is below its bound."""
    layer = Layer.matmul("x", rows=6, inner=2, cols=3)
    on = machine(ocm_bytes=23, out_bytes=2, transfer=Transfer(byte_ticks=1, call_ticks=8))
    found = solved(layer, on, "time")
    best, _ = enumerated(Goal(layer, on, ("time",)), 3, 20_000)
    assert found.values
    assert found.bound <= best.vector[0]
    assert found.values["time"] <= best.vector[0]


# ---- pins that leave no chain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["bytes", "time"])
def test_pins_that_leave_few_chains_are_solved(objective: str) -> None:
    """Few rows in the innermost tile, where padding clips the first pieces: no chain of few pieces is left."""
    layer = Layer.conv("x", channels=2, filters=4, size=(8, 8), kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    on = machine(ocm_bytes=120, sliding=True)
    for pins in (["T_R=1"], ["T_C=1", "T_R=2"], ["T_M=2", "T_R=2", "T_C=4", "T_N=2"]):
        plan = solve(layer, on, objective=objective, pins=pins)
        assert 0 < plan.bound <= plan.objective.value
        asked = dict(pin.split("=") for pin in pins)
        assert {name: str(plan.layers[0].decision[name]) for name in asked} == asked
        assert check(plan).ok


def test_whole_windows_of_nothing_are_pieces() -> None:
    """Of two rows, two taps with dilation 2 leave none for one tap: pieces still end behind where they begin."""
    axis = Cut(part_window(Window(1, 2, 2, 1, 2), 1), ((0, 3),), (2, 1), counted=False)
    assert axis.window.size == 0
    for chain in whole_windows(axis, np.arange(1, 4)):
        for step in map(how, chain.tolist()):
            assert isinstance(step, int) or list(step) == sorted(set(step))


@pytest.mark.parametrize("objective", ["bytes", "time"])
@pytest.mark.parametrize("pin", ["T_R=2", "T_R>=3"])
def test_pins_say_what_pieces_of_windows_that_lie_apart_are(objective: str, pin: str) -> None:
    """One tap, stride 2: single rows skip most, but are no pieces of the pinned sizes."""
    layer = Layer.conv("x", channels=2, filters=1, size=(9, 1), kernel=(1, 1), stride=(2, 2))
    plan = solve(layer, machine(ocm_bytes=12), objective=objective, pins=[pin])
    assert plan.layers[0].decision["T_R"] in {"T_R=2": (2,), "T_R>=3": (3, 4, 5)}[pin]
    assert check(plan).ok


def test_a_tile_of_ones_own_that_does_not_fit_is_no_defect() -> None:
    """IN for 4x28 results with one tap is 7x55x128 bytes, with 32 filters (4,096) and sums (14,336) beyond 64 KiB."""
    assert 7 * 55 * 128 + 32 * 128 + 4 * 28 * 32 * 4 > 65_536
    pins = ["T_M=32", "T_R=4", "T_C=28", "T_N=128"]
    plan = solve("resnet50", "scratchpad_64k", layers="layer2.0.conv2", pins=pins, time_limit_s=60)
    assert (plan.status, plan.objective) == ("INFEASIBLE", None)
    (row,) = plan.layers
    assert row.conflicts[0].startswith("memory ocm: the smallest tile of layer2.0.conv2 needs 67,712 bytes")
    assert row.conflicts[1:] == tuple(f"pin {pin}" for pin in pins)


@pytest.mark.few(10)
@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize(("r", "c"), [(1, 1), (2, 2), (1, 4), (4, 4)])
@pytest.mark.parametrize("n", [2, 4])
def test_pins_are_decided_by_the_smallest_tiles_that_they_leave(m: int, r: int, c: int, n: int) -> None:
    """4 x 4 results of 4 channels and 3 x 3 taps, sums of 4 bytes: a tap by itself, or all of them if T_N is all.

    One tap: n*r*c bytes of IN, m*n of W, 4*m*r*c sums. All: n*(r+2)*(c+2), 9*m*n and m*r*c results. One byte less fits
    nothing, and no engine has to look; as many fit a plan.
    """
    layer = Layer.conv("x", channels=4, filters=4, size=(6, 6), kernel=(3, 3))
    need = n * r * c + m * n + 4 * m * r * c
    need = min(need, n * (r + 2) * (c + 2) + 9 * m * n + m * r * c) if n == 4 else need
    pins = parse_pins((f"T_M={m}", f"T_R={r}", f"T_C={c}", f"T_N={n}"), NESTS["tiling"].decisions)
    spaces = [NESTS["tiling"].build(layer, machine(ocm_bytes=size, psum_bytes=4), pins) for size in (need - 1, need)]
    assert [(space.crowded, space.infeasible) for space in spaces] == [(True, True), (False, False)]
    assert f"needs {need:,} bytes" in spaces[0].explain()[0]
