"""Snake order and inputs held in lines: by hand, closed form against replay, execution, and what is refused."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay import tiles as replay_tiles
from hwmodels.nest.replay.referee import Replay, replay
from hwmodels.outcome import Outcome
from hwmodels.schedule import Hold, Item, Loop, Nest
from hwmodels.transfer import PRICES, WINDOWS
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.effort import tries
from tests.hwmodels.test_replay_walk import Naive, machine

HOLDS = (Hold("W"), Hold("OUT"))
randoms = st.randoms(use_true_random=True)
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


# ---- random cases in which loops cut and windows overlap -----------------------------------------------------------


def any_layer(dice: Random) -> Layer:
    kind = dice.choice(["conv"] * 5 + ["pool", "eltwise"])
    fields: dict[str, object] = {
        "name": "random", "kind": kind, "b": dice.choice([1, 1, 2]), "g": dice.choice([1, 1, 2]),
        "m": dice.randint(1, 5), "n": dice.randint(1, 5), "bias": dice.random() < 0.3,
    }  # fmt: skip
    if kind != "conv":
        fields |= {"m": 1, "n": 1, "weights": "none", "bias": False, "inputs": 2 if kind == "eltwise" else 1}
    for out, kernel, stride, dilation, pad, size in (
        ("r", "kh", "stride_h", "dilation_h", "pad_top", "h"), ("c", "kw", "stride_w", "dilation_w", "pad_left", "l"),
    ):  # fmt: skip
        windows = kind != "eltwise"
        number, taps = dice.randint(1, 8), dice.choice([1, 2, 3, 3]) if windows else 1
        step, spread = (dice.choice([1, 1, 2, 3]), dice.choice([1, 1, 2])) if windows else (1, 1)
        reach = (taps - 1) * spread
        before, after = dice.randint(0, reach), dice.randint(0, reach)
        fields |= {out: number, kernel: taps, stride: step, dilation: spread, pad: before}
        fields[size] = max(1, (number - 1) * step + reach + 1 - before - after)
    if dice.random() < 0.3:
        rows, inputs = int(str(fields["h"])), int(str(fields.get("inputs", 1)))
        fields["resident_in"] = tuple(dice.randint(0, rows) for _ in range(inputs))
        fields["resident_out"] = dice.randint(0, int(str(fields["r"])))
    try:
        return Layer.model_validate(fields)
    except ValidationError:
        assume(False)
        raise


def any_loops(dice: Random, layer: Layer, line: bool) -> list[Loop]:
    """Up to seven loops in equal steps or at places, often rows and columns last."""
    dims = [d for d in DIMS if layer.extent(d) > 1] or ["r"]
    order = [dice.choice(dims) for _ in range(dice.randint(0, 7))]
    if line and dice.random() < 0.8:
        order = order[:4] + dice.sample(["r", "c"], 2)
    pieces = {d: [(0, layer.extent(d))] for d in DIMS}
    loops = []
    for dim in order:
        extent, longest = layer.extent(dim), max(hi - lo for lo, hi in pieces[dim])
        loop = Loop(dim, dice.randint(1, max(1, longest - (dice.random() < 0.8))))
        if extent > 1 and dice.random() < 0.25:
            loop = Loop(dim, 1, tuple(sorted(dice.sample(range(1, extent), dice.randint(1, min(4, extent - 1))))))
        pieces[dim] = [piece for lo, hi in pieces[dim] for piece in loop.pieces(lo, hi, 0)]
        step = max(hi - lo for lo, hi in pieces[dim]) if loop.cuts else loop.step
        if all(hi - lo <= step for lo, hi in pieces[dim]) and step <= longest:
            loops.append(Loop(dim, step, loop.cuts))
    return loops


def any_nest(dice: Random, layer: Layer, on: Machine) -> Nest:
    line = on.line and dice.random() < 0.85
    loops = any_loops(dice, layer, line)
    at = {op: dice.randint(0, len(loops)) for op in layer.operands}
    if line:
        at["IN"] = max(0, len(loops) - dice.choice([0, 0, 0, 1]))
    items: list[Item] = []
    for position in range(len(loops) + 1):
        for op in dice.sample(list(layer.operands), len(layer.operands)):
            if at[op] == position:
                buffers = dice.choice([None, 1, 2]) if on.buffering == "choose" else None
                items.append(Hold(op, buffers, line and op == "IN"))
        items += loops[position : position + 1]
    nest = Nest(tuple(items))
    try:
        nest.validate_for(layer)
    except InputError:
        assume(False)
    return nest


def any_machine(dice: Random, line: bool, snake: bool) -> Machine:
    return machine(
        line=line, snake=snake, sliding=line or dice.random() < 0.6, in_bytes=dice.choice([1, 2]),
        buffering=dice.choice(["single", "double", "choose"]), psum_first_read=dice.random() < 0.3,
        in_layout=dice.choice(["CHW", "HWC"]), out_layout=dice.choice(["CHW", "HWC"]), w_bytes=dice.choice([1, 2]),
        w_layout=dice.choice(["OIHW", "OHWI"]), out_bytes=dice.choice([1, 2, 3]), psum_bytes=dice.choice([1, 2, 4]),
        bias_bytes=dice.choice([0, 2]),
        transfer={
            **{one.field: dice.randint(0, 5) for one in PRICES.values() if not one.whole},
            **{one.size: dice.choice([2, 4, 8]) for one in WINDOWS},
        },
        compute={"model": dice.choice(["none", "array", "tile"]), "rows": 2, "cols": 2,
                 "cycle_ticks": dice.randint(0, 9)},
    )  # fmt: skip


def any_case(dice: Random, line: bool, snake: bool) -> tuple[Layer, Machine, Nest]:
    layer, on = any_layer(dice), any_machine(dice, line, snake)
    nest = any_nest(dice, layer, on)
    assume(math.prod(-(-layer.extent(d) // nest.tile(layer)[d]) for d in DIMS) <= 2000)
    return layer, on, nest


abilities = pytest.mark.parametrize(("line", "snake"), [(True, False), (False, True), (True, True)])


def both(layer: Layer, on: Machine, nest: Nest) -> Replay:
    """The replay, after checking that it is executed and that the closed form agrees."""
    walked = replay(layer, on, nest, execute=True)
    assert walked.executed, walked.faults
    assert not [fault for fault in walked.faults if not fault.startswith("memory")]
    assert price(layer, on, nest) == walked.outcome
    return walked


@pytest.mark.few(1)
@abilities
@settings(quick, max_examples=tries(12, 50))
@given(dice=randoms)
def test_price_replay_and_execution_agree(line: bool, snake: bool, dice: Random) -> None:
    layer, on, nest = any_case(dice, line, snake)
    outcome = both(layer, on, nest).outcome
    plain = replay(layer, without(on), unlined(nest), execute=False).outcome
    assert outcome.bytes <= plain.bytes
    if not nest.line:
        assert outcome.occupancy_bytes == plain.occupancy_bytes


@pytest.mark.few(2)
@abilities
@settings(quick, max_examples=tries(12, 40))
@given(dice=randoms)
def test_the_element_by_element_walker_agrees(line: bool, snake: bool, dice: Random) -> None:
    layer, on, nest = any_case(dice, line, snake)
    layer = layer.model_copy(update={"resident_in": (), "resident_out": 0})
    walked = replay(layer, on, nest, execute=False)
    assume(walked.steps <= 250 and nest.even)
    naive, outcome = Naive(layer, on, nest), walked.outcome
    assert (outcome.by_operand, outcome.occupancy_bytes) == (naive.rows, naive.occupancy)
    assert outcome.time_ticks == naive.time


def without(on: Machine) -> Machine:
    return on.model_copy(update={"line": False, "snake": False})


def unlined(nest: Nest) -> Nest:
    return Nest(tuple(Hold(i.operand, i.buffers) if isinstance(i, Hold) else i for i in nest.items))


# ---- the sum of products, for nests that cut every dimension once --------------------------------------------------


def spans(layer: Layer, operand: str, dim: str, pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What the pieces of a dimension span along an axis of an operand (the kernel is whole)."""
    if operand != "IN" or dim not in "rc":
        return pieces
    stride, dilation, taps, pad, size = (
        (layer.stride_h, layer.dilation_h, layer.kh, layer.pad_top, layer.h)
        if dim == "r"
        else (layer.stride_w, layer.dilation_w, layer.kw, layer.pad_left, layer.l)
    )
    ends = [
        (max(0, a * stride - pad), min(size, (b - 1) * stride - pad + (taps - 1) * dilation + 1)) for a, b in pieces
    ]
    return [(a, max(a, b)) for a, b in ends]


def visited(layer: Layer, operand: str, loops: list[tuple[str, int]], sliding: bool) -> int:
    """Elements fetched in snake order: the tiles of all visits, less what stays or overlaps at each advance."""
    pieces = {
        d: [(x, min(x + step, layer.extent(d))) for x in range(0, layer.extent(d), step)]
        for d, step in {**{d: layer.extent(d) for d in DIMS}, **dict(loops)}.items()
    }
    order = [d for d, _ in loops]
    axes = {d: spans(layer, operand, d, pieces[d]) for d in RELEVANT[operand]}
    axes = {d: axis for d, axis in axes.items() if operand != "IN" or d not in "ij"}
    sizes = {d: [b - a for a, b in axis] for d, axis in axes.items()}
    sums = {d: sum(size) for d, size in sizes.items()}
    last = max((k for k, d in enumerate(order) if d in axes), default=-1)
    repeats = [len(pieces[d]) if d not in axes else 1 for d in order]
    total = math.prod(sums.values()) * math.prod(repeats[: last + 1])
    for k in range(last + 1):
        dim, inner = order[k], order[k + 1 :]
        if dim in axes and not (sliding and operand == "IN" and dim in "rc"):
            continue
        even = next((i for i, d in enumerate(inner) if len(pieces[d]) % 2 == 0), len(inner))
        ends = {True: math.prod(sizes[d][0] for d in inner if d in axes)}
        ends[False] = math.prod(sizes[d][-1 if i <= even else 0] for i, d in enumerate(inner) if d in axes)
        outer = math.prod(sum_ for d, sum_ in sums.items() if d not in (dim, *inner)) * math.prod(repeats[:k])
        for x in range(len(pieces[dim]) - 1):
            shared = max(0, axes[dim][x][1] - axes[dim][x + 1][0]) if dim in axes else 1
            total -= outer * shared * ends[x % 2 == 1]
    return total


@settings(quick, max_examples=tries(15, 40))
@given(dice=randoms)
def test_bytes_are_all_visits_less_what_stays(dice: Random) -> None:
    layer = any_layer(dice).model_copy(update={"resident_in": (), "resident_out": 0, "bias": False})
    dims = [d for d in "bgmnrc" if layer.extent(d) > 1]
    loops = [(d, dice.randint(1, layer.extent(d) - 1)) for d in dice.sample(dims, len(dims))]
    sliding = dice.random() < 0.7
    nest = Nest((*(Loop(*loop) for loop in loops), *(Hold(op) for op in layer.operands)))
    rows = price(layer, machine(snake=True, sliding=sliding), nest).by_operand
    assert rows["IN"].bytes == visited(layer, "IN", loops, sliding) * layer.inputs
    if "W" in layer.operands:
        assert rows["W"].bytes == visited(layer, "W", loops, sliding)
    results = layer.b * layer.g * layer.m * layer.r * layer.c
    assert rows["PSUM"].bytes == 2 * 4 * (visited(layer, "OUT", loops, sliding) - results)


# ---- by hand -------------------------------------------------------------------------------------------------------


def moved(outcome: Outcome) -> dict[str, tuple[int, int]]:
    return {row: (counts.calls, counts.bytes) for row, counts in outcome.by_operand.items()}


def test_a_window_turns() -> None:
    # 4 output rows of 2 pixels, 3 rows of 2 bytes a window: down 6 + 3 * 2, then up 3 * 2; the turn costs nothing
    layer = Layer.conv("rows", channels=1, filters=2, size=(6, 2), kernel=(3, 1))
    nest = Nest((Loop("m", 1), Loop("r", 1), Hold("IN"), *HOLDS))
    assert moved(both(layer, machine(sliding=True, snake=True), nest).outcome)["IN"] == (7, 18)
    assert moved(both(layer, machine(sliding=True), nest).outcome)["IN"] == (8, 24)
    # without sliding a turn saves one tile of 8
    assert moved(both(layer, machine(snake=True), nest).outcome)["IN"] == (7, 42)


def test_a_window_slides_round_the_corner() -> None:
    # 4x4 map, 3x3 window, 2x2 outputs: 9, then 3 to the right, 3 new at the bottom of the right window, 3 to the left
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("r", 1), Loop("c", 1), Hold("IN")))
    on = machine(sliding=True, snake=True)
    walked = both(layer, on, nest).outcome
    assert moved(walked)["IN"] == (4, 18)
    # IN 9, W 9, OUT 4
    assert walked.occupancy_bytes == {"ocm": 9 + 9 + 4}


def test_a_tile_that_is_kept_is_the_ragged_one_or_the_first() -> None:
    # 5 pixels in 2 + 2 + 1, 3 filters one by one: passes 2 2 1 | 1 2 2 | 2 2 1, kept at the turns 1 and 2
    layer = Layer.conv("line", channels=1, filters=3, size=(1, 5))
    nest = Nest((Loop("m", 1), Loop("c", 2), Hold("IN"), *HOLDS))
    assert moved(both(layer, machine(snake=True), nest).outcome)["IN"] == (9 - 2, 15 - 1 - 2)


def test_partial_sums_stay_at_the_turn() -> None:
    # n cut in 3, m in 2: visits m0 m1 | m1 m0 | m0 m1; m0 is visited twice, m1 twice, instead of three times each
    layer = Layer.matmul("fc", rows=1, inner=3, cols=2)
    nest = Nest((Loop("n", 1), Loop("m", 1), Hold("IN"), *HOLDS))
    # one partial write and one read for each, 4 bytes
    assert moved(both(layer, machine(snake=True), nest).outcome)["PSUM"] == (4, 16)
    # the first visit of either reads, too
    assert moved(both(layer, machine(snake=True, psum_first_read=True), nest).outcome)["PSUM"] == (6, 24)
    assert moved(both(layer, machine(), nest).outcome)["PSUM"] == (8, 32)


def test_lines_hold_two_rows_and_three_pixels() -> None:
    # 4x4 map, 3x3 window, 2x2 outputs: 9, 3 to the right, then of the fourth row 3 and 1: 16 bytes in 4 calls
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("r", 1), Loop("c", 1), Hold("IN", None, line=True)))
    for snake in (False, True):
        walked = both(layer, machine(sliding=True, line=True, snake=snake), nest).outcome
        assert moved(walked)["IN"] == (4, 16)
        # IN 2 rows of 4 and one of 3, W 9, OUT 4
        assert walked.occupancy_bytes == {"ocm": 2 * 4 + 3 + 9 + 4}


def test_lines_of_columns() -> None:
    # the same, columns outside: 2 columns of 5 rows and one of 3
    layer = Layer.conv("tall", channels=1, filters=1, size=(5, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("c", 1), Loop("r", 1), Hold("IN", None, line=True)))
    walked = both(layer, machine(sliding=True, line=True), nest).outcome
    assert moved(walked)["IN"] == (6, 20)
    assert walked.occupancy_bytes == {"ocm": 2 * 5 + 3 + 9 + 6}


def test_lines_need_two_loops_that_are_neighbours() -> None:
    # filters between rows and columns: the window slides along columns only, as without lines
    layer = Layer.conv("square", channels=1, filters=2, size=(4, 4), kernel=(3, 3))
    loops = (Loop("r", 1), Loop("m", 1), Loop("c", 1))
    on = machine(sliding=True, line=True)
    lined = both(layer, on, Nest((*HOLDS, *loops, Hold("IN", None, line=True)))).outcome
    assert lined == both(layer, on, Nest((*HOLDS, *loops, Hold("IN")))).outcome
    assert moved(lined)["IN"] == (8, 4 * (9 + 3))


# ---- faults are found ----------------------------------------------------------------------------------------------


def test_execution_needs_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("r", 1), Loop("c", 1), Hold("IN", None, line=True)))
    on = machine(sliding=True, line=True)
    measured = replay_tiles.Passes.__init__
    for at in range(4):

        def small(self: replay_tiles.Passes, *given: object, at: int = at) -> None:
            measured(self, *given)
            self.sizes = tuple(size - (k == at) for k, size in enumerate(self.sizes))

        monkeypatch.setattr(replay_tiles.Passes, "__init__", small)
        assert not replay(layer, on, nest).executed


def test_rows_that_are_not_kept_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("r", 1), Loop("c", 1), Hold("IN", None, line=True)))
    enter = replay_tiles.Lines.enter

    def forget(self: replay_tiles.Lines, rows: object, columns: object, kept: object, *, turns: bool) -> None:
        enter(self, rows, columns, (0, 0), turns=turns)

    monkeypatch.setattr(replay_tiles.Lines, "enter", forget)
    result = replay(layer, machine(sliding=True, line=True), nest)
    assert not result.executed
    # the first window of the second pass reads the third row of the first pass, which lay in no line
    assert result.faults[0].startswith("execution: rows 1..2 of columns 0..")


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"line": True}, "line needs sliding"),
        ({"snake": True, "edge_tiles": "uniform"}, "snake needs edge_tiles 'true'"),
        ({"snake": True, "reading": "literal"}, "snake needs edge_tiles 'true' and reading 'consistent'"),
        ({"line": True, "sliding": True, "tles": 2}, "defined for one core, not 2 x 1"),
        ({"snake": True, "tlts": 3}, "defined for one core, not 1 x 3"),
    ],
)
def test_machines_without_meaning_are_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        machine(**fields)


def test_nests_in_lines_need_a_machine_with_lines() -> None:
    layer = Layer.conv("square", channels=1, filters=1, size=(4, 4), kernel=(3, 3))
    nest = Nest((*HOLDS, Loop("r", 1), Hold("IN", None, line=True)))
    for judge in (price, replay):
        with pytest.raises(InputError, match=r"holds IN in lines, machine test has none \(line\)"):
            judge(layer, machine(sliding=True), nest)
    with pytest.raises(InputError, match=r"nest\[0\]: only IN is held in lines, not W"):
        replay(layer, machine(sliding=True, line=True), Nest((Hold("W", None, line=True), Hold("IN"), Hold("OUT"))))


def test_files_say_so() -> None:
    nest = Nest((*HOLDS, Loop("r", 1), Hold("IN", 2, line=True)))
    assert nest.to_json()[-1] == {"hold": "IN", "buffers": 2, "line": True}
    assert Nest.from_json(nest.to_json()) == nest
    with pytest.raises(InputError, match=r"nest\[0\]: line must be true or false, got 1"):
        Nest.from_json([{"hold": "IN", "line": 1}])
    assert not {"line", "snake"} & set(machine().model_dump())  # other machines keep their digests
    assert machine(snake=True).model_dump()["snake"] is True
