"""The transfer model: its four published instances by hand, burst windows, requests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodels.nest.price.bilinear import Bilinear, Ints
from hwmodels.nest.price.boxes import Box, Stored, _product, _sums, box_bursts, burst_products, windows_touched
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import cut, nominal
from hwmodels.nest.price.skeleton import Skeleton
from hwmodels.nest.price.tables import _distinct, nest_tables
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from hwmodels.transfer import COUNTS, PRICES, bursts_of_segment, lpddr4, request, ticks
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Transfer
from instances.network.workload import DIMS, RELEVANT, Layer
from solver import solve
from tests.effort import tries
from tests.hwmodels.test_replay_walk import layers, machines, nests
from tests.small import byte_machine


def test_every_count_has_its_price() -> None:
    price = Transfer(
        call_ticks=1, segment_ticks=10, burst_ticks=100, burst_bytes=8, row_ticks=1_000, row_bytes=8,
        refresh_ticks=10_000, refresh_bytes=8, byte_ticks=100_000,
    )  # fmt: skip
    assert ticks(price, Counts(1, 2, 3, 4, 5, 6)) == 654_321
    assert set(COUNTS.values()) == {f for f in Transfer.model_fields if f.endswith("_ticks")}
    assert {count: one.cause for count, one in PRICES.items()} == {
        "calls": "startup", "segments": "runs", "bursts": "bursts", "rows": "bandwidth", "refreshes": "bandwidth",
        "bytes": "bandwidth",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("address", "length", "touched"),
    [
        # bursts of 128 bytes: windows [0,128), [128,256), ...
        (0, 0, 0),
        (100, 0, 0),
        (0, 1, 1),
        (0, 128, 1),
        (0, 129, 2),
        (127, 1, 1),
        (127, 2, 2),  # bytes 127 and 128
        (100, 56, 2),  # 100..155
        (100, 28, 1),  # 100..127
        (128, 128, 1),
        (129, 128, 2),  # 129..256
        (200, 300, 3),  # 200..499: windows 1, 2, 3
        (127, 258, 4),  # 127..384: windows 0, 1, 2, 3
    ],
)
def test_burst_windows_by_hand(address: int, length: int, touched: int) -> None:
    assert bursts_of_segment(address, length, 128) == touched


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_burst_windows_are_what_a_loop_finds(address: int, length: int, size: int) -> None:
    windows = {byte // size for byte in range(address, address + length)}
    assert bursts_of_segment(address, length, size) == len(windows)
    aligned = -(-length // size)
    # an unaligned start costs at most one more window; a start on a window none
    assert aligned <= len(windows) <= aligned + 1
    assert bursts_of_segment(address * size, length, size) == aligned


def test_volume_is_bytes_over_bandwidth() -> None:
    price = Transfer(byte_ticks=3)
    assert ticks(price, request(price, 1_000, segments=50)) == 3_000


def test_burst_adds_a_latency_for_every_window() -> None:
    # 4 segments of 100 bytes are 4 bursts: 4*40 + 400*2
    price = Transfer(model="burst", burst_ticks=40, burst_bytes=128, byte_ticks=2)
    assert ticks(price, request(price, 400, segments=4, bursts=4)) == 960


def test_pl330_equation_1() -> None:
    # T = C + s*p + n*t with C = 400, p = 40, t = 4 ticks an element of 4 bytes: 12 runs of 25 elements, 300 in all
    price = Transfer(model="dma", call_ticks=400, segment_ticks=40, byte_ticks=1)
    assert ticks(price, request(price, 300 * 4, segments=12)) == 400 + 12 * 40 + 300 * 4


@pytest.mark.parametrize(("bursts", "published_us"), [(1024, 84), (512, 58), (256, 46)])
def test_tso_figure_1_with_the_constants_of_nmp(bursts: int, published_us: int) -> None:
    # 16 channels of 32x32 16-bit elements, 32,768 bytes, cut in runs of 32, 64 and 128 bytes: one burst a run.
    # 1 ns a byte and 50 ns a burst: 32.768 us + bursts * 0.050 us = 83.97, 58.37, 45.57 us
    machine = load_machine("nmp")
    run = 32_768 // bursts
    count = bursts * bursts_of_segment(0, run, machine.transfer.burst_bytes)
    picoseconds = ticks(machine.transfer, request(machine.transfer, 32_768, bursts, count)) * machine.tick_ps
    assert picoseconds == 32_768_000 + bursts * 50_000
    assert abs(picoseconds / 1e6 - published_us) <= 1


@pytest.mark.parametrize(
    ("size", "rows", "refreshes"),
    [(0, 0, 0), (1, 0, 1), (8_191, 0, 1), (8_192, 1, 1), (89_856, 10, 1), (89_857, 10, 2), (1_000_000, 122, 12)],
)
def test_lpddr4_equations_4_1_and_4_2(size: int, rows: int, refreshes: int) -> None:
    # latency(B) = 41.25 + 14.625*floor(B/8192) + 235*ceil(B/89856) ns and 25 B/ns, here in femtoseconds
    price = lpddr4()
    counts = request(price, size)
    assert (counts.rows, counts.refreshes) == (rows, refreshes)
    femtoseconds = 41_250_000 + 14_625_000 * rows + 235_000_000 * refreshes + 40_000 * size
    assert ticks(price, counts) * 5_000 == femtoseconds


def test_lpddr4_needs_a_tick_that_divides_its_constants() -> None:
    assert lpddr4(1).byte_ticks == 40
    with pytest.raises(ValueError, match="tick_ps 3 does not divide"):
        lpddr4(3)


def test_requests_count_rows_and_refreshes_only_where_priced() -> None:
    assert request(Transfer(byte_ticks=1), 10**6) == Counts(calls=1, segments=1, bytes=10**6)


# ---- Bilinear tables: collecting terms, restricting, exact values, and the limits of integer arithmetic --------------


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


#: f(s, q) = [1 2 3] x [10 20] + [1 0 1] x [0 5]
TABLE = Bilinear(np.array([[1, 2, 3], [1, 0, 1]]), np.array([[10, 20], [0, 5]]))


def test_values_by_hand() -> None:
    # f(0, 0) = 1*10 + 1*0, f(0, 1) = 1*20 + 1*5, f(1, 1) = 2*20 + 0*5, f(2, 1) = 3*20 + 1*5
    assert TABLE.matrix().tolist() == [[10, 25], [20, 40], [30, 65]]
    assert [TABLE.at(0, 0), TABLE.at(0, 1), TABLE.at(1, 1), TABLE.at(2, 1)] == [10, 25, 40, 65]
    assert TABLE.shape == (3, 2)


def test_ceiling_bounds_every_value_row_by_row() -> None:
    # 3*20 + 1*5; here it is reached, in general the largest factors need not meet
    assert TABLE.ceiling() == 65
    assert Bilinear(np.array([[1, 0], [0, 1]]), np.array([[1], [1]])).ceiling() == 2
    assert Bilinear.of([], (3, 2)).ceiling() == 0


def test_no_terms_are_the_zero_function() -> None:
    nothing = Bilinear.of([], (3, 2))
    assert nothing.shape == (3, 2)
    assert nothing.matrix().tolist() == [[0, 0]] * 3
    assert nothing.at(2, 1) == 0
    assert nothing.terms == []


def test_terms_that_share_a_factor_are_added() -> None:
    a, b, c = ints(1, 2), ints(3, 4), ints(5, 6)
    # same channel factor: (a + b) x c; same spatial factor: a x (b + c); a zero factor vanishes
    assert [t.tolist() for t in Bilinear.of([(a, c), (b, c)], (2, 2)).terms[0]] == [[4, 6], [5, 6]]
    assert [t.tolist() for t in Bilinear.of([(a, b), (a, c)], (2, 2)).terms[0]] == [[1, 2], [8, 10]]
    assert Bilinear.of([(a, b * 0)], (2, 2)).terms == []


def test_scaling_by_zero_leaves_no_terms() -> None:
    assert TABLE.times(0) == []
    assert Bilinear.of(TABLE.times(3), TABLE.shape).at(2, 1) == 3 * 65


def test_take_keeps_the_chosen_rows_and_columns() -> None:
    assert TABLE.take(s=ints(2, 0)).matrix().tolist() == [[30, 65], [10, 25]]
    assert TABLE.take(q=ints(1)).matrix().tolist() == [[25], [40], [65]]
    assert TABLE.take().matrix().tolist() == TABLE.matrix().tolist()
    assert TABLE.take(s=ints()).ceiling() == 0


@pytest.mark.parametrize(("a", "kind"), [(2**26, np.float64), (2**27, np.int64)])
def test_matrix_is_exact_on_both_sides_of_float64(a: int, kind: type) -> None:
    # (2**26 + 1) * (2**26 - 1) = 2**52 - 1 is exact in float64; (2**27 + 1) * (2**27 - 1) = 2**54 - 1 is not
    table = Bilinear(np.array([[a + 1]]), np.array([[a - 1]]))
    matrix = table.matrix()
    assert matrix.dtype == kind
    assert int(matrix[0, 0]) == a * a - 1 == table.at(0, 0)


def test_values_beyond_the_integer_limit_are_refused_but_known_exactly() -> None:
    table = Bilinear(np.array([[2**31, 1]]), np.array([[2**31, 1]]))
    assert table.at(0, 0) == table.ceiling() == 2**62
    with pytest.raises(InputError, match=r"2\*\*62: choose a larger tick_ps"):
        table.matrix()
    assert table.take(s=ints(1)).matrix().tolist() == [[2**31, 1]]


@given(
    st.lists(
        st.tuples(st.tuples(*[st.integers(0, 3)] * 3), st.tuples(*[st.integers(0, 3)] * 2)),
        max_size=6,
    )
)
def test_collecting_never_changes_the_function(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    table = Bilinear.of([(ints(*a), ints(*b)) for a, b in rows], (3, 2))
    plain = [[sum(a[s] * b[q] for a, b in rows) for q in range(2)] for s in range(3)]
    assert table.matrix().tolist() == plain
    assert len(table.a) <= len(rows)
    assert all(a.any() and b.any() for a, b in table.terms)


# ---- Burst windows by address: by hand, against a count of every byte, and in plans that ceil counts cann

HOLDS = (Hold("IN"), Hold("W"), Hold("OUT"))
#: One channel of 4 rows and 6 columns, a byte each.
ROWS = Layer.conv("rows", channels=1, filters=1, size=(4, 6))


machine = partial(byte_machine, ocm_bytes=999, transfer=Transfer(burst_ticks=1, burst_bytes=4, burst_count="address"))


def chains(*steps: int) -> np.ndarray:
    return np.array(steps, np.int64)[:, None]


def test_windows_of_a_run() -> None:
    # bytes 3 and 4 lie in two windows of 4, bytes 4 to 7 in one, 2 to 8 in three
    touched = windows_touched(np.array([3, 0, 2]), np.array([2, 4, 7]), 4)
    assert touched.tolist() == [2, 1, 3]


def test_the_example_of_the_docstring() -> None:
    # rows begin at 0, 6, 12 and 18: 0, 2, 0, 2 (mod 4). By 3: 0-2 is one window, 3-5 two; 6-8 two, 9-11 one: 3 a row.
    # By 4: 0-3 and 4-5 one each; 6-9 two, 10-11 one: 2 and 3. By 5: 0-4 two, 5 one; 6-10 two, 11 one: 3 and 3.
    rows = Stored("g", 6, 4, cut(4, chains(1)))
    (factors,) = burst_products((rows,), Stored("c", 1, 6, cut(6, chains(3, 4, 5))), 4)
    assert factors["c"].tolist() == [12, 10, 12]


def test_tiles_that_ceil_counts_cannot_tell_apart() -> None:
    # as above: by 3 each row takes 1 + 1 windows if every run began one, and so by 4; in truth 3, and 2 or 3
    for step, windows in ((3, 12), (4, 10)):
        nest = Nest((Loop("c", step), *HOLDS))
        assert price(ROWS, machine(), nest).by_operand["IN"].bursts == windows
        assert replay(ROWS, machine(), nest).outcome.by_operand["IN"].bursts == windows
        aligned = machine(transfer=Transfer(burst_ticks=1, burst_bytes=4))
        assert price(ROWS, aligned, nest).by_operand["IN"].bursts == 8


def test_windows_that_slide_over_rows_depend_on_rows_and_columns_together() -> None:
    # 3x3 over 5x6 without padding: outputs 3x4. T_R = 1 fetches rows 0-2, 1-3, 2-4: rows 0..4 come 1, 2, 3, 2, 1 times.
    # T_C = 2 fetches columns 0-3 and 2-5. Rows begin at 0, 2, 0, 2, 0 (mod 4). At 0: 0-3 one, 2-5 two: 3 windows;
    # at 2: 2-5 two, 4-7 one: 3. 9 rows of 3 = 27. T_C = 3: columns 0-4 and 3-5: at 0 2 + 2, at 2 (2-6, 5-7) 2 + 1:
    # rows 0, 2, 4 come 5 times and rows 1, 3 come 4 times: 5*4 + 4*3 = 32
    layer = Layer.conv("x", channels=1, filters=1, size=(5, 6), kernel=(3, 3))
    for step, windows in ((2, 27), (3, 32)):
        nest = Nest((Loop("r", 1), Loop("c", step), *HOLDS))
        assert price(layer, machine(), nest).by_operand["IN"].bursts == windows
        assert replay(layer, machine(), nest).outcome.by_operand["IN"].bursts == windows


def test_cores_begin_at_different_addresses() -> None:
    # 2 filters of 3 weights of a byte on two cores: bytes 0-2 are one window of 4, bytes 3-5 two
    layer = Layer.matmul("x", rows=1, inner=3, cols=2)
    on = machine(tles=2, dram="per_tle", ocm_bytes=None, in_buffer_bytes=9, w_buffer_bytes=9, out_buffer_bytes=9)
    outcome = price(layer, on, Nest((Spatial("m", 1, "tle"), *HOLDS)))
    assert outcome.by_operand["W"].bursts == 3
    # the slower cluster: IN 1 window, W 2, OUT 1
    assert outcome.time_ticks == 4
    assert replay(layer, on, Nest((Spatial("m", 1, "tle"), *HOLDS))).outcome == outcome


def test_a_function_with_two_terms_of_one_factor_is_not_below_each_of_them() -> None:
    # 3*8 + 2*8 = 40 exceeds 4*8 = 32, though 3*8 and 2*8 do not
    one = Bilinear(np.array([[3], [2]]), np.array([[8], [8]]))
    two = Bilinear(np.array([[4]]), np.array([[8]]))
    (left,) = _distinct([one, two])
    assert left.at(0, 0) == 40


def test_the_optimum_is_of_windows_as_they_lie() -> None:
    # rows in two pieces of columns, IN and OUT alike: by 4, 10 windows each, is less than by 3 and by 5 (12 each)
    found = solve(ROWS, machine(), objective="time", pins=["holds=uniform", "T_R=4", "T_C>=3", "T_C<=5", "order=OS"])
    assert found.layers[0].decision["T_C"] == 4
    # padded 3x3 on 5 rows of 7, tiles of at most 40 bytes: the best of all sizes, one order
    layer = Layer.conv("x", channels=1, filters=1, size=(5, 7), kernel=(3, 3), pad=(1, 1, 1, 1))
    times = []
    for rows, columns in product(range(1, 6), range(1, 8)):
        one = price(layer, machine(ocm_bytes=40), Nest((Loop("r", rows), Loop("c", columns), *HOLDS)))
        times += [one.time_ticks] if one.occupancy_bytes["ocm"] <= 40 else []
    best = solve(layer, machine(ocm_bytes=40), objective="time", pins=["holds=uniform", "order=OS"])
    assert (best.status, best.objective.value) == ("OPTIMAL", min(times))


def test_too_many_ways_to_cut_rows_and_columns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwmodels.nest.price.boxes._TABLE", 10)
    layer = Layer.conv("big", channels=1, filters=1, size=(9, 13), kernel=(3, 3))
    with pytest.raises(InputError, match=r"cut in 4 x 5 ways, too many for bursts by address: set transfer"):
        solve(layer, machine(), pins=["holds=uniform"])


def test_nominal_tiles_have_no_addresses() -> None:
    with pytest.raises(InputError, match="edge_tiles 'uniform' has no addresses"):
        solve(ROWS, machine(edge_tiles="uniform"))
    with pytest.raises(TypeError, match="no places"):
        _ = nominal(np.array([2]), np.array([3])).placed


@settings(max_examples=tries(15, 60), deadline=None)
@given(st.data())
def test_boxes_touch_the_windows_that_their_bytes_lie_in(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    element, burst = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    first = [data.draw(st.integers(0, s - 1)) for s in sizes]
    length = [data.draw(st.integers(0, s - f)) for s, f in zip(sizes, first, strict=True)]
    axes = [Box(s, np.array([f]), np.array([n])) for s, f, n in zip(sizes, first, length, strict=True)]
    place = np.zeros(sizes, np.bool_)
    place[tuple(slice(f, f + n) for f, n in zip(first, length, strict=True))] = True
    taken = np.flatnonzero(np.repeat(place.ravel(), element))
    runs = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1) if len(taken) else []
    # a run ends where its axis does, even if the next one begins at the next byte
    if [n for n, s in zip(length, sizes, strict=True)] == sizes or all(len(r) for r in runs):
        inner = element
        for n, s in reversed(list(zip(length, sizes, strict=True))):
            inner *= n
            if n < s:
                break
        parts = [r[k : k + inner] for r in runs for k in range(0, len(r), inner)] if inner else []
        assert box_bursts(axes, element, burst).tolist() == [
            sum(len({b // burst for b in part.tolist()}) for part in parts)
        ]


@settings(max_examples=tries(40, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_closed_form_counts_what_the_walk_does(data: st.DataObject) -> None:
    layer, on = data.draw(layers()), data.draw(machines())
    transfer = on.transfer.model_copy(
        update={name: 0 for one in PRICES.values() if one.whole for name in (one.field, one.size)}
    )
    if on.edge_tiles == "true":
        transfer = transfer.model_copy(update={"burst_count": "address"})
    on = on.model_copy(update={"transfer": transfer})
    nest = data.draw(nests(layer, on.tles > 1, on.buffering == "choose", on.line))
    assert price(layer, on, nest) == replay(layer, on, nest, execute=False).outcome


@pytest.mark.parametrize("seed", range(tries(40, 300)))
def test_tables_of_many_nests_have_the_price_of_each(seed: int) -> None:
    """Nests that differ in steps, by address and not, on one core or more; overlapping, time is at most the price.

    Bounds are at most it, too: for any pieces as large as these, and for any steps of the other dimensions (`floor`).
    """
    dice = Random(seed)
    stride, taps, groups, layout = dice.choice([1, 1, 2]), dice.choice([2, 3]), dice.choice([1, 1, 2]), seed % 2
    layer = Layer.conv(
        "x", channels=3 * groups, filters=4 * groups, size=(5, 6), kernel=(taps, taps), pad=(1, 1, 1, 0),
        stride=(stride, 1), groups=groups, batch=dice.choice([1, 2]), bias=seed % 3 == 0,
    )  # fmt: skip
    shared = dice.choice("rcm")
    over = (Spatial(shared, layer.extent(shared) - 1, "tle"),) if seed % 3 == 0 else ()
    on = machine(
        ocm_bytes=9999, psum_bytes=16, bias_bytes=2, in_bytes=dice.choice([1, 3]), byte_fj=3, mac_fj=1,
        in_layout=("CHW", "HWC")[layout], out_layout=("HWC", "CHW")[layout], tles=2 if over else 1,
        buffering="single" if over else dice.choice(["single", "double", "choose"]), sliding=dice.random() < 0.4,
        transfer={"call_ticks": 5, "segment_ticks": 2, "burst_ticks": 3, "burst_bytes": dice.choice([4, 6, 8]),
                  "burst_count": dice.choice(["address", "address", "aligned"]), "byte_ticks": 1},
        compute={"model": dice.choice(["none", "tile", "array"]), "cycle_ticks": 3, "macs_per_cycle": 4, "rows": 2},
    )  # fmt: skip
    order = dice.sample(["r", "c", "m", "n", *dice.sample("bgij", 1), *dice.sample("rcmn", 1)], 6)
    if over:  # what is shared innermost: the last core may not cut it
        order.append(order.pop(order.index(shared)))
    share = {d: layer.extent(d) for d in DIMS} | {item.dim: item.step for item in over}
    chains = {d: [_falling(dice, share[d], order.count(d)) for _ in range(3)] for d in DIMS}
    tiles = {d: np.array([(share[d], *chain)[-1] for chain in few]) for d, few in chains.items()}
    depths = {op: [k for k in (6, 5, 4) if order[k - 1] in RELEVANT[op]] for op in layer.operands}
    full = seed % 2 == 0 and all(depths.values()) and all(share[d] > order.count(d) for d in order)
    depth = {operand: dice.choice(few if full else [4, 5, 6]) for operand, few in depths.items()}
    skeleton = Skeleton(over, tuple(order), depth, {"IN": 1} if on.buffering == "choose" else {}, full)
    last = order[depth["IN"] - 1]
    slides = ((last, order[: depth["IN"] - 1].count(last)),) if full and on.sliding and last in "rcij" else ()
    choices = Choices.product({d: np.array(few, np.int64).reshape(3, -1) for d, few in chains.items()}, tiles, slides)
    free = replace(choices, ideal=dict.fromkeys(dice.choice([DIMS, "ricj", "mn"]), "steps"))
    floor = Choices.floor(choices.steps, tiles, slides)
    found, least, lowest = (
        nest_tables(layer, on, skeleton, some, measures=("time", "bytes", "energy"), detail=True)
        for some in (choices, free, floor)
    )
    for _ in range(4):
        s, q = (dice.randrange(size) for size in choices.shape)
        places = [3 * k + int(choices.index[d][s if d in "brc" else q]) for k, d in enumerate("brcgmn")]
        bounds = [(lowest, place, place) for place in places] + [(least, s, q)] * (full or not on.sliding)
        one = price(layer, on, skeleton.nest(choices.chain(s, q), layer))
        if full and over:  # smaller cores may have loops that cut nothing, which tables count all the same
            bounds = bounds[-1:]
        else:
            time = max(table.at(s, q) for table in found.time)
            assert time == one.time_ticks if found.exact else time <= one.time_ticks
            counts = {row: Counts(**{k: t.at(s, q) for k, t in kinds.items()}) for row, kinds in found.counts.items()}
            assert (counts, found.bytes.at(s, q), found.energy.at(s, q)) == (one.by_operand, one.bytes, one.energy_fj)
        assert {m: max(t.at(s, q) for t in parts) for m, parts in found.capacity.items()} == one.occupancy_bytes
        for few, *at in bounds:
            assert max(table.at(*at) for table in few.time) <= one.time_ticks
            assert few.bytes.at(*at) <= one.bytes
            assert few.energy.at(*at) <= one.energy_fj
            assert all(t.at(*at) <= one.occupancy_bytes[m] for m, parts in few.capacity.items() for t in parts)


def _falling(dice: Random, share: int, loops: int) -> list[int]:
    """Steps of so many loops, each smaller than the one before if they can be."""
    if share > loops:
        return sorted(dice.sample(range(1, share), loops), reverse=True)
    return sorted((dice.randint(1, share) for _ in range(loops)), reverse=True)


def test_sums_beyond_floating_point_are_exact() -> None:
    """(2**26 + 1) * (2**26 + 1 + 2**26) is odd and above 2**53; no factor of its two products is, nor their largest."""
    one, two = np.array([[2**26 + 1, 2**26]]), np.array([[2**26 + 1, 2**26 + 1]])
    exact = (2**26 + 1) * (2**27 + 1)
    assert _product(one, two).tolist() == Bilinear(one.T, two.T).matrix().tolist() == [[exact]]
    assert Bilinear(one.T, two.T).at(0, 0) == Bilinear(one.T, two.T).ceiling() == exact
    assert _sums(np.array([0, 0, 1]), np.array([2**53, 1, 3]), 2).tolist() == [2**53 + 1, 3]
    with pytest.raises(InputError, match="exceeds 2"):
        Bilinear(np.array([[2**31]]), np.array([[2**31]])).matrix()
