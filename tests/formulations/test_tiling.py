"""Tiling by hand, its candidates against the unreduced space, its orders against all 720, and the users' pins."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from formulations.pins import Pins, parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.space import Space, in_unit
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import chain_of
from hwmodels.nest.price.skeleton import skeleton_of
from hwmodels.nest.price.tables import nest_tables
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.small import byte_machine

TILING = NESTS["tiling"]
#: One layer to read by eye: 4x4 map, 2 channels, 2 filters, 1x1 kernel. IN 32, W 4, OUT 32 bytes.
TINY = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))


def machine(ocm_bytes: int, **changes: object) -> Machine:
    """One byte an element, one tick a byte."""
    return byte_machine(**{"ocm_bytes": ocm_bytes, "byte_fj": 2, "mac_fj": 1} | changes)


def build(layer: Layer, on: Machine, *pins: str, full: bool = False) -> Space:
    return TILING.build(layer, on, parse_pins(pins, TILING.decisions), full=full)


def textbook(layer: Layer, on: Machine, *pins: str, full: bool = False) -> Space:
    """The plans that hold all operands inside all loops."""
    return build(layer, on, "holds=uniform", *pins, full=full)


def best(space: Space, objective: str = "bytes", engine: str = "exhaustive") -> dict[str, int] | None:
    return decide_space(space, (objective,), engine).values


def test_everything_fits_so_everything_moves_once(engine: str) -> None:
    # 32 + 4 + 32 bytes on chip, each moved once; energy 2 fJ * 68 + 1 fJ * 64 MACs
    assert best(build(TINY, machine(68)), engine=engine) == {"time": 68, "bytes": 68, "energy": 200}
    assert in_unit(TINY, machine(68), "energy", 68) == 200


def test_one_byte_less_and_the_map_is_cut(engine: str) -> None:
    # With T_M = T_N = 2 any cut of the map keeps the weights (no loop over m or n): still 68 bytes
    assert best(build(TINY, machine(67)), engine=engine) == {"time": 68, "bytes": 68, "energy": 200}


def test_weights_stationary_wins_when_a_filter_fits_and_pixels_are_many(engine: str) -> None:
    # 5 bytes: IN 2 + W 2 + OUT 1 (one pixel, T_N = 2, T_M = 1). WS loads W once (4) and IN twice (64), OUT once (32):
    # 100. OS (r c m) reads IN once (32) and W for each of 16 pixels (64), OUT 32: 128.
    space = textbook(TINY, machine(5))
    assert best(space, engine=engine) == {"time": 100, "bytes": 100, "energy": 264}
    assert best(textbook(TINY, machine(5), "order=OS"), engine=engine) == {"time": 128, "bytes": 128, "energy": 320}


def test_smallest_tile_by_hand(engine: str) -> None:
    # 3 bytes: one element of each. Three orders: WS (m n r c): IN 64, W 4, OUT written and read back once more,
    # 32 * 3 = 96: 164. OS (r c m n): IN 64, W 64, OUT 32: 160. IS (r c n m): IN 32, W 64, OUT 96: 192. OS wins.
    assert best(textbook(TINY, machine(3)), engine=engine) == {"time": 160, "bytes": 160, "energy": 384}
    for order, moved in {"WS": 164, "IS": 192, "OS": 160}.items():
        found = best(textbook(TINY, machine(3), f"order={order}"), engine=engine)
        assert found["bytes"] == moved


def test_input_stationary_wins_when_the_input_is_wide(engine: str) -> None:
    # 1 pixel, N = 8, M = 8. 17 bytes hold T_N = 8, T_M = 1 (IN 8 + W 8 + OUT 1): everything once, 8 + 64 + 8 = 80.
    # 3 bytes hold one element of each: OS (m n) moves IN 64, W 64, OUT 8: 136; IS (n m) IN 8, W 64, OUT 8 * 15: 192.
    layer = Layer.matmul("fc", rows=1, inner=8, cols=8)
    assert best(textbook(layer, machine(17)), engine=engine) == {"time": 80, "bytes": 80, "energy": 2 * 80 + 64}
    assert best(textbook(layer, machine(3)), engine=engine) == {"time": 136, "bytes": 136, "energy": 2 * 136 + 64}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "layer",
    [
        Layer.conv("a", channels=3, filters=4, size=(4, 5), kernel=(3, 3), pad=(1, 1, 1, 1)),
        Layer.conv("b", channels=4, filters=4, groups=2, size=(3, 4), batch=2),
        Layer.matmul("c", rows=3, inner=4, cols=3, batch=2),
    ],
    ids=lambda layer: layer.name,
)
def test_no_order_of_720_beats_the_three(layer: Layer) -> None:
    """Every loop order, priced with the same tile: some canonical order is no worse in bytes, time and energy.

    Loops over one index are the same anywhere: they stay outermost. In layer b every loop has two or more.
    """
    outside = [d for d in "bgmnrc" if layer.extent(d) == 1]
    on = machine(10_000, psum_bytes=4, transfer=Transfer(byte_ticks=1, call_ticks=3, segment_ticks=2))
    for pick in range(3):
        tile = {d: 1 + (pick * 7 + i * 3) % layer.extent(d) for i, d in enumerate("bgmnrc")}

        def cost(order: str | tuple[str, ...], tile: dict[str, int] = tile) -> tuple[int, int]:
            holds = [Hold(o) for o in layer.operands]
            measures = price(layer, on, Nest((*(Loop(d, tile[d]) for d in order), *holds))).measures
            return measures["bytes"], measures["time"]

        three = [cost(order) for order in ("gbrcnm", "gbrcmn", "gmnbrc")]
        for order in permutations(sorted({*"bgmnrc"} - {*outside})):
            bytes_, time = cost((*outside, *order))
            assert any(b <= bytes_ and t <= time for b, t in three)


@pytest.mark.few(3)
@pytest.mark.parametrize("buffering", ["single", "double"])
@pytest.mark.parametrize("layout", [("CHW", "OIHW"), ("HWC", "OHWI")])
@pytest.mark.parametrize(
    "layer",
    [
        Layer.conv("7x7", channels=2, filters=3, size=(9, 8), kernel=(7, 7), pad=(3, 3, 3, 3)),
        Layer.conv("gaps", channels=3, filters=2, size=(9, 9), stride=(3, 2)),
        Layer.conv("dilated", channels=2, filters=2, size=(9, 7), kernel=(3, 2), dilation=(2, 3), pad=(2, 1, 2, 1)),
        Layer.conv("depthwise", channels=5, filters=5, groups=5, size=(6, 6), kernel=(3, 3), pad=(1, 1, 1, 1)),
        Layer.conv("1x3", channels=3, filters=4, size=(5, 7), kernel=(1, 3), pad=(0, 1, 0, 1)),
    ],
    ids=lambda layer: layer.name if isinstance(layer, Layer) else None,
)
def test_reduced_space_loses_nothing(layer: Layer, layout: tuple[str, str], buffering: str) -> None:
    for ocm in (60, 150, 400):
        on = machine(
            ocm, in_layout=layout[0], out_layout=layout[0], w_layout=layout[1], psum_bytes=2, buffering=buffering,
            transfer=Transfer(byte_ticks=1, call_ticks=5, segment_ticks=3, burst_ticks=2, burst_bytes=4),
            compute=Compute(model="array", cycle_ticks=1, rows=2, cols=2),
        )  # fmt: skip
        for objective in ("time", "bytes"):
            reduced = best(textbook(layer, on), objective)
            whole = textbook(layer, on, full=True)
            assert reduced == decide_space(whole, (objective,), bounding=False).values


@pytest.mark.slow(2)
def test_more_memory_never_costs_more() -> None:
    layer = Layer.conv("x", channels=6, filters=8, size=(9, 9), kernel=(3, 3), pad=(1, 1, 1, 1))
    costs = [best(build(layer, machine(size)))["bytes"] for size in (40, 80, 160, 320, 1280)]
    assert costs == sorted(costs, reverse=True)


def test_reserved_bytes_and_im2col_scratch_count() -> None:
    # tiny needs 68 bytes whole; 16*K*K*C_in = 16*1*1*2 = 32 bytes of scratch and 3 reserved bytes make it 103
    on = {"reserved_bytes": 3, "im2col_rows": 16}
    whole = ("T_R=4", "T_C=4", "T_M=2", "T_N=2")
    assert best(build(TINY, machine(103, **on), *whole)) == {"time": 68, "bytes": 68, "energy": 200}
    assert build(TINY, machine(102, **on), *whole).infeasible
    assert (
        build(TINY, machine(102, reserved_bytes=3, im2col_rows=16), *whole)
        .explain()[0]
        .startswith("memory ocm: the smallest tile of tiny needs 103 bytes, m has 102")
    )
    # the tile's own channels instead of the layer's: 16 rows of one channel
    tile = machine(3 + 16 + 3, im2col_channels="tile", **on)
    assert not build(TINY, tile, "T_N=1", "T_M=1", "T_R=1", "T_C=1").infeasible


# ---- free hold depths ------------------------------------------------------------------------------------------------


def test_every_operand_at_its_own_depth(engine: str) -> None:
    # 12 bytes beside TINY. Uniform: a tile of r x c pixels takes r*c*(T_N + T_M) + T_N*T_M. Free: W (4) stays on chip
    # whole, IN (2) and OUT (1) pass pixel by pixel and filter by filter: 7 bytes suffice to move everything once.
    assert best(build(TINY, machine(7)), engine=engine) == {"time": 68, "bytes": 68, "energy": 200}
    assert best(textbook(TINY, machine(7)), engine=engine) != {"time": 68, "bytes": 68, "energy": 200}
    found = decide_space(build(TINY, machine(7)), ("bytes",), engine).schedule
    assert next(item for item in found.items if isinstance(item, Hold)).operand == "W"


def test_rows_slide_through_a_ring(engine: str) -> None:
    # 6 rows of 2 pixels, 3x1 kernel, one channel and filter: IN 12, W 3, OUT 4 x 2 = 8 bytes. Row by row: 3 rows of IN
    # (6), W 3 and a row of OUT (2) are on chip. Sliding moves every row of IN once: 23 bytes in all. Not sliding, the
    # rows between are moved again: 4 tiles of 3 rows of 2 = 24 + 3 + 8 = 35; 11 bytes fit no larger tile.
    layer = Layer.conv("x", channels=1, filters=1, size=(6, 2), kernel=(3, 1))
    sliding = build(layer, machine(11, sliding=True), "T_R=1", "T_C=2", "T_I=3")
    whole = build(layer, machine(11), "T_R=1", "T_C=2", "T_I=3")
    assert best(sliding, engine=engine) == {"time": 23, "bytes": 23, "energy": 46 + 24}
    assert best(whole, engine=engine) == {"time": 35, "bytes": 35, "energy": 70 + 24}


def test_the_kernel_may_be_cut(engine: str) -> None:
    # one pixel, 3x1 kernel, two channels: IN 6, W 6, OUT 1. Tap by tap and channel by channel 1 + 1 + 1 bytes suffice.
    layer = Layer.conv("x", channels=2, filters=1, size=(3, 1), kernel=(3, 1))
    assert best(build(layer, machine(3)), engine=engine) == {"time": 13, "bytes": 13, "energy": 26 + 6}
    assert build(layer, machine(3), "T_I>=2").infeasible


def test_fewest_bytes_and_then_fewest_calls(engine: str) -> None:
    # 67 bytes: not all of 32 + 4 + 32 at a time, but IN and W whole and half of OUT. 2 + 2 calls of 10 ticks, 68 bytes.
    on = machine(67, transfer=Transfer(byte_ticks=1, call_ticks=10))
    found = decide_space(build(TINY, on), ("bytes", "time"), engine)
    assert (found.values["bytes"], found.values["time"]) == (68, 108)


@pytest.mark.parametrize(("size", "status"), [(50, "OPTIMAL"), (49, "INFEASIBLE")])
def test_what_fits_whole_may_not_fit_in_parts(size: int, status: str) -> None:
    # one filter, sums of 4 bytes: cut over channels IN 16 + W 1 + sums 64, whole IN 32 + W 2 + OUT 16
    layer = Layer.conv("x", channels=2, filters=1, size=(4, 4))
    found = decide_space(build(layer, machine(size, psum_bytes=4), "T_R=4", "T_C=4"), ("bytes",))
    assert (found.status, found.values.get("bytes", 50)) == (status, 50)


def test_a_smaller_tile_of_channels_takes_less_scratch() -> None:
    # IN 8 x 4, W 8 x 4, OUT 8 x 8. W whole, a pixel of 4 channels, a result, and scratch for a row of a channel are 38
    # bytes, with a loop over n inside all Holds; for four channels 41. Outside of Hold(IN) it wants 8 sums: 32 + 8 + 2.
    layer = Layer.conv("x", channels=4, filters=8, size=(8, 1))
    on = machine(38, im2col_rows=1, im2col_channels="tile")
    assert best(build(layer, on)) == {"time": 128, "bytes": 128, "energy": 256 + 256}


@pytest.mark.slow(1)
@pytest.mark.parametrize("engine", ["exhaustive", "cp-sat", "milp"])
@pytest.mark.parametrize(
    ("pin", "met"),
    [
        ("resident=W", lambda nest: _outside(nest, "W") == ""),
        ("resident=OUT", lambda nest: _outside(nest, "OUT") == ""),
        ("T_C%2", lambda nest: nest.tile(WIDE)["c"] % 2 == 0),
        ("T_M>=3", lambda nest: nest.tile(WIDE)["m"] >= 3),
        ("output=row_major", lambda nest: _raster(_outside(nest, "OUT"))),
        ("array=filled", lambda nest: nest.tile(WIDE)["m"] >= 2 and nest.tile(WIDE)["n"] == 3),
        ("order=WS", lambda nest: _raster(_outside(nest, "OUT"))),
        ("holds=uniform", lambda nest: len({_outside(nest, op) for op in ("IN", "W", "OUT")}) == 1),
    ],
)
def test_pins_are_met_by_every_engine(pin: str, met: Callable[[Nest], bool], engine: str) -> None:
    size = 600 if "resident" in pin else 120
    on = machine(size, psum_bytes=2, sliding=True, compute=Compute(model="array", rows=2, cols=4))
    free, space = best(build(WIDE, on)), build(WIDE, on, pin)
    found = decide_space(space, ("bytes",), engine)
    assert found.schedule is not None
    assert met(found.schedule)
    assert space.contains(found.schedule)
    assert found.values == best(space)
    assert found.values
    assert found.values["bytes"] >= free["bytes"]


#: 6x6 map, 3 channels, 6 filters, 3x3 kernel.
WIDE = Layer.conv("wide", channels=3, filters=6, size=(6, 6), kernel=(3, 3), pad=(1, 1, 1, 1))


def _outside(nest: Nest, operand: str) -> str:
    """The loops outside a Hold."""
    loops = ""
    for item in nest.items:
        if isinstance(item, Hold) and item.operand == operand:
            return loops
        loops += item.dim if isinstance(item, Loop) else ""
    raise AssertionError(operand)


def _raster(loops: str) -> bool:
    places = [loops.index(d) for d in "brc" if d in loops]
    return places == sorted(places) and loops.rfind("r") <= max(loops.find("c"), loops.rfind("r") * ("c" not in loops))


@pytest.mark.slow(2)
def test_buffers_are_chosen_or_pinned() -> None:
    # 4 pixels in a row as in `test_double_buffering_by_hand`: with a choice of buffers the plan is no slower, with all
    # of them pinned it is the same.
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 4))
    unit = Compute(model="array", cycle_ticks=2)
    double = best(build(layer, machine(100, buffering="double", compute=unit)), "time")
    choose = machine(100, buffering="choose", compute=unit)
    assert best(build(layer, choose), "time")["time"] <= double["time"]
    both = ("buffers_IN=2", "buffers_W=2", "buffers_OUT=2")
    assert best(build(layer, choose, *both), "time") == double
    # the double-buffered line needs 2 * (1 + 1 + 1) bytes at least; with single buffers 3 suffice
    assert build(layer, machine(5, buffering="double")).infeasible
    assert not build(layer, machine(5, buffering="choose")).infeasible
    assert build(layer, machine(5, buffering="choose"), *both).infeasible
    assert build(layer, machine(100), "buffers_IN=2").explain() == ("pin buffers_IN=2",)


def test_only_equality_of_resident_is_understood() -> None:
    with pytest.raises(InputError, match="only resident=IN, resident=W and resident=OUT apply"):
        build(TINY, machine(100), "resident!=W")


def test_every_listed_nest_is_in_its_space_and_no_other() -> None:
    space = build(WIDE, machine(200, sliding=True))
    found = decide_space(space, ("bytes",)).schedule
    assert found is not None
    assert space.contains(found)
    # OUT stands inside a loop that it does not depend on
    swapped = Nest((Loop("n", 1), Hold("OUT"), Hold("IN"), Hold("W")))
    assert not space.contains(swapped)
    assert not build(WIDE, machine(200, sliding=True), "T_M=5").contains(found)


@pytest.mark.parametrize(("engine", "size", "tile", "moved"), [
    # Of steps 1, 2, 4 a tile takes rc (n + m) + nm bytes: of 39 the most MACs are 8 pixels with n = m = 2, in 36 bytes,
    ("greedy", 39, "2 4 2 2", 68),
    # of 35 the most bytes 16 pixels with n = m = 1, in 33, and the first order is r c n m: IN 32, W 4, OUT 3 * 32.
    ("naive", 35, "4 4 1 1", 132),
])  # fmt: skip
def test_heuristics_by_hand(engine: str, size: int, tile: str, moved: int) -> None:
    space = build(TINY, machine(size))
    found = decide_space(space, ("bytes",), engine)
    said = space.decision(found.schedule)
    assert " ".join(str(said[f"T_{d}"]) for d in "RCMN") == tile
    assert (found.status, found.values["bytes"]) == ("FEASIBLE", moved)


@pytest.mark.parametrize(("pins", "has"), [
    ((), True), (("T_C<=1",), True), (("T_C=2",), False), (("sizes=divisors",), False), (("pieces=even",), True),
])  # fmt: skip
def test_pins_are_about_the_innermost_tile(pins: tuple[str, ...], has: bool) -> None:
    # columns in pieces of 3 and 1, and these by 1: 3 is no divisor of 4
    nest = Nest((Hold("W"), Loop("c", 3), Hold("IN"), Loop("c", 1), Hold("OUT")))
    assert build(TINY, machine(100), *pins).contains(nest) == has


def test_what_is_resident_is_not_cut() -> None:
    pins = ("holds=uniform", "resident=IN", "T_R=2")
    assert build(TINY, machine(100), *pins).explain() == tuple(f"pin {pin}" for pin in pins)


def test_conflicting_pins_are_named_and_each_is_needed() -> None:
    space = build(TINY, machine(20), "T_R=4", "T_C=4", "T_M=1", "order=OS")
    conflict = space.explain()
    # 4x4 pixels of one channel (16) + W 1 + OUT 16 = 33 bytes; the order and T_M have no part in it
    assert conflict == ("memory ocm: the smallest tile of tiny needs 33 bytes, m has 20", "pin T_R=4", "pin T_C=4")
    assert not build(TINY, machine(33), "T_R=4", "T_C=4", "T_M=1", "order=OS").infeasible
    assert not build(TINY, machine(20), "T_R=4", "T_M=1", "order=OS").infeasible
    assert not build(TINY, machine(20), "T_C=4", "T_M=1", "order=OS").infeasible


def test_the_least_of_what_plans_need_is_named() -> None:
    # one pixel of one channel: a byte for each operand, and as much again for each that has two buffers
    choose = machine(2, buffering="choose", compute=Compute(model="array", cycle_ticks=2))
    space = build(Layer.conv("line", channels=1, filters=1, size=(1, 4)), choose)
    assert {buffers for member in space.members for buffers in member.skeleton.buffers.values()} == {1, 2}
    assert space.explain() == ("memory ocm: the smallest tile of line needs 3 bytes, m has 2",)


@pytest.mark.parametrize(
    ("pin", "dim", "allowed"),
    [
        ("T_C=3", "c", {3}), ("T_C<=2", "c", {1, 2}), ("T_C>=3", "c", {3, 4}), ("T_C!=4", "c", {1, 2, 3}),
        ("T_C%2", "c", {2, 4}), ("sizes=divisors", "c", {1, 2, 4}),
    ],
)  # fmt: skip
def test_pins_bound_the_sizes(pin: str, dim: str, allowed: set[int]) -> None:
    space = build(TINY, machine(500), pin, full=True)
    assert {int(v) for b in space.branches for v in b.choices.values(dim)} == allowed


@pytest.mark.parametrize(
    "pin", ["T_C", "T_C=", "T_C=x", "T_C=0", "T_C=-1", "T_Q=3", "order<3", "sizes=both", "=3", "T_C==3", "T_C=1.5"]
)
def test_bad_pins_are_one_clear_line(pin: str) -> None:
    with pytest.raises(InputError, match="pin") as caught:
        parse_pins([pin], TILING.decisions)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("pin", "orders"), [
    ("order=paper", ["brcnm"]), ("order=WS", ["mnbrc"]), ("order=cm", ["brncm"]), ("order=m,n", ["brcmn"]),
    ("order!=OS", ["brcnm", "mnbrc"]), ("order!=mnbrc", ["brcnm", "brcmn"]), ("order=any", None),
])  # fmt: skip
def test_orders_that_pins_leave(pin: str, orders: list[str] | None) -> None:
    """Of 1 group; letters that are not named stand outermost."""
    layer = Layer.conv("x", channels=2, filters=2, size=(2, 2), batch=2)
    found = ["".join(one.skeleton.order) for one in build(layer, machine(100), pin).members]
    assert found == orders if orders else len(found) > 3


@pytest.mark.parametrize("pins", [("order=IS", "order=OS"), ("order=IS", "holds!=uniform")])
def test_orders_that_contradict_each_other(pins: tuple[str, str]) -> None:
    assert build(TINY, machine(100), *pins).explain() == tuple(f"pin {pin}" for pin in pins)


@pytest.mark.parametrize("pin", ["order=rcx", "order=rr", "order!=any"])
def test_an_order_that_is_none_is_refused(pin: str) -> None:
    with pytest.raises(InputError, match=pin):
        build(TINY, machine(100), pin)


@pytest.mark.parametrize(("layer", "tiles"), [
    (Layer.conv("x", channels=3, filters=6, size=(2, 2)), {"m": [2, 3, 4, 5, 6], "n": [3], "g": [1], "r": [1, 2]}),
    (Layer.conv("x", channels=5, filters=5, groups=5, size=(2, 2)), {"m": [1], "n": [1], "g": [4, 5], "c": [1, 2]}),
])  # fmt: skip
def test_tiles_that_fill_the_array(layer: Layer, tiles: dict[str, list[int]]) -> None:
    """Filters in 2 rows, channels (depthwise: groups) in 4 columns of lanes, as far as there are so many."""
    for model, of in (("array", tiles), ("tile", {d: [*range(1, layer.extent(d) + 1)] for d in tiles})):
        on = machine(1000, compute=Compute(model=model, rows=2, cols=4))
        sizes = build(layer, on, "array=filled").members[0].sizes
        assert {d: sizes[d].inner.tolist() for d in tiles} == of


def test_filters_fill_the_rows_of_the_array() -> None:
    """A pixel of 1 channel, 9 filters: 19 bytes, memory for 18. IN and OUT whole (10), weights in pieces of 6 and 3.

    That is 2 + 1 passes of 20 ticks on 3 rows, 4 transfers of 5 ticks, 19 bytes. 5 and 4 are 2 + 2 passes.
    """
    on = machine(
        18, psum_bytes=1, transfer=Transfer(call_ticks=5, byte_ticks=1),
        compute=Compute(model="array", rows=3, cols=1, cycle_ticks=20),
    )  # fmt: skip
    said = decide_space(build(Layer.conv("x", channels=1, filters=9, size=(1, 1)), on), ("time",))
    assert (said.status, said.values["time"]) == ("OPTIMAL", 3 * 20 + 4 * 5 + 19)


def test_many_cores_are_refused() -> None:
    with pytest.raises(InputError, match="use slicing"):
        TILING.build(TINY, load_machine("nmp"), Pins())


def test_double_buffering_by_hand() -> None:
    # 4 pixels in a row, 1 channel, 1 filter; T_C = 2: two steps. L(0) = IN 2 + W 1 = 3, L(1) = 2, S = 2 each;
    # C = 2 pixels * 2 ticks = 4 each. time = L(0) + max(C0, L1) + max(C1, S0) + S1 = 3 + 4 + 4 + 2 = 13.
    layer = Layer.conv("line", channels=1, filters=1, size=(1, 4))
    on = machine(100, buffering="double", compute=Compute(model="array", cycle_ticks=2))
    nest = Nest((Loop("c", 2), Hold("IN"), Hold("W"), Hold("OUT")))
    assert price(layer, on, nest).time_ticks == 13
    # one step: 5 + 8 + 4 = 17; four steps: 2 + 4 * 2 + 1 = 11, the best; the footprints count twice
    found = decide_space(textbook(layer, on), ("time",))
    assert found.values
    assert found.values["time"] == 11
    for engine in ("cp-sat", "milp"):  # asked for a bound of the time until no timeline may be below the best
        found = decide_space(textbook(layer, on), ("time",), engine, bounding=False)
        assert (found.status, found.bound, found.values["time"]) == ("OPTIMAL", 11, 11)


def test_a_first_load_and_a_last_store_are_bounded() -> None:
    # One MAC: IN and W in a call (10) with a run (2) and a byte each, 3 ticks of compute, the result back: 26 + 3 + 13.
    on = machine(
        100, buffering="double", compute=Compute(model="array", cycle_ticks=3),
        transfer=Transfer(call_ticks=10, segment_ticks=2, byte_ticks=1),
    )  # fmt: skip
    said = decide_space(build(Layer.conv("mac", channels=1, filters=1, size=(1, 1)), on), ("time",))
    assert (said.status, said.values["time"]) == ("OPTIMAL", 42)


@pytest.mark.parametrize("pad", [0, 1])
def test_a_first_tile_may_lie_in_the_padding(pad: int) -> None:
    # A 2x2 kernel: with padding the first tap of the first output reads nothing. Tables that are bounds of the time
    # are not above it, of any order of loops in steps of 1 with everything held inside them; compute hides the rest.
    layer = Layer.conv("edge", channels=1, filters=1, size=(2, 2), kernel=(2, 2), pad=(pad,) * 4)
    on = machine(
        100, buffering="double", compute=Compute(model="array", cycle_ticks=1_000), sliding=False,
        transfer=Transfer(call_ticks=10, segment_ticks=0, byte_ticks=1),
    )  # fmt: skip
    held, loose = (Hold("IN"), Hold("W"), Hold("OUT")), []
    for order in permutations("rcij"):
        for number in range(5):
            nest = Nest((*(Loop(d, 1) for d in order[:number]), *held))
            chains = chain_of(nest.loops())
            choices = Choices.product(
                chains, {d: row[:, -1] if row.size else row.sum(axis=1) for d, row in chains.items()}
            )
            tables = nest_tables(layer, on, skeleton_of(layer, nest), choices, measures=("time",))
            bound, taken = max(int(t.matrix().max()) for t in tables.time), price(layer, on, nest).time_ticks
            assert bound <= taken
            loose.append(taken - bound)
    assert min(loose) == 0


def test_literal_dma_paper_by_hand() -> None:
    # Eq. 2-6 with C = 10, p = 2, t = 1 a byte on 4x4, stride 1, sigma = (2, 4, 1, 1), N = M = 2, no bias:
    # D_in = 32/8 = 4, D_wb = D_out = 4 * 2 = 8; T_in = 10 + 2*1*2 + 8 = 22; T_out = 2 * (10 + 2*1*2 + 8) = 44;
    # T_wb = 10 + 1*2 + 1 = 13 (no bias: neither the extra jump nor sigma_z). Total 4*22 + 8*(44 + 13) = 544.
    on = machine(
        100, reading="literal", overlap="transfer_only", transfer=Transfer(call_ticks=10, segment_ticks=2, byte_ticks=1)
    )
    space = textbook(TINY, on, "T_R=2", "T_C=4", "T_N=1", "T_M=1")
    assert best(space, "time") == {"time": 544, "bytes": 4 * 8 + 8 * 16 + 8 * 1, "energy": 2 * 168 + 64}
