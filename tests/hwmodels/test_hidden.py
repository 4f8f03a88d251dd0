"""What transfers hide at most: bounds on classes of nests against the times of nests, and by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from hwmodels.nest.price.choices import KERNELS, Tree, fetching, numbered, trees_of
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.hidden import Hidden
from hwmodels.nest.price.ranges import Ranges
from hwmodels.nest.price.skeleton import cores, skeleton_of
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer, depends
from tests.adversary.layers import random_layer
from tests.adversary.moves import Moves, nest_of
from tests.hwmodels.test_pipeline import CASES
from tests.small import machine

W, IN, OUT = Hold("W"), Hold("IN"), Hold("OUT")
ARRAY = {"compute": {"model": "array", "rows": 1, "cols": 1, "cycle_ticks": 1}}


def hidden_of(layer: Layer, on: Machine, nest: Nest) -> tuple[Hidden, dict[str, Tree]]:
    """The bounds of a nest's skeleton, and how its loops cut."""
    skeleton = skeleton_of(layer, nest)
    (core,) = cores(layer, skeleton.spatial)
    trees, slide = trees_of(core, nest.loops()), None
    order = numbered(skeleton.outside("IN"))
    last = fetching(order, trees, "IN")
    if on.sliding and last and order[last[-1]][0] in ("r", "c", "i", "j"):
        taps = layer.kh if order[last[-1]][0] in ("r", "i") else layer.kw
        slide = order[last[-1]] if taps > 1 else None
    return Hidden(layer, on, replace(skeleton, full=True), core, slide), trees


def point(hidden: Hidden, trees: dict[str, Tree]) -> Ranges:
    """The class of one nest; of a kernel that of all cuts whose largest part makes as many."""
    rows = []
    for d, level in hidden.loops:
        sizes = trees[d].stop[level] - trees[d].start[level]
        number, most = len(sizes), int(sizes.max())
        row = [number, number, most, most, int(sizes[0]), int(sizes[0]), int(sizes[-1]), int(sizes[-1])]
        if d in KERNELS.values():
            taps, fewest = hidden.extent[d], -(-hidden.extent[d] // most)
            low, high = -(-taps // fewest), (taps - 1) // (fewest - 1) if fewest > 1 else taps
            row = [fewest, taps - low + 1, low, high, 1, taps, 1, taps]
        rows.append(row)
    table = np.array(rows, np.int64).reshape(-1, 8)
    return Ranges.of(*(table[:, k : k + 1].copy() for k in range(8)))


def widened(rng: random.Random, hidden: Hidden, one: Ranges) -> Ranges:
    """A class that holds it; now and then of all ways to cut."""
    found, whole = Ranges(*(getattr(one, f.name).copy() for f in fields(one))), rng.random() < 0.3
    for number, (d, _) in enumerate(hidden.loops):
        for below, above in found.pairs if d not in KERNELS.values() else ():
            below[number] = 1 if whole else rng.randint(1, int(below[number, 0]))
            above[number] = hidden.extent[d] if whole else rng.randint(int(above[number, 0]), hidden.extent[d])
    return found


def proper(nest: Nest) -> bool:
    """Whether every Hold stands directly inside a loop that its operand depends on, or behind a Hold, or outside."""
    last = ""
    for item in nest.items:
        if isinstance(item, Loop):
            last = item.dim
        elif isinstance(item, Hold) and last and last not in depends(item.operand):
            return False
    return True


def drawn(rng: random.Random, layer: Layer) -> Machine:
    """A machine with two buffers, or with a choice."""
    fields_: dict[str, Any] = {
        "ocm_bytes": rng.randint(20, 40 + layer.macs // 2), "buffering": rng.choice(("double", "double", "choose")),
        "in_layout": rng.choice(("HWC", "CHW")), "out_layout": rng.choice(("HWC", "CHW")),
        "sliding": rng.random() < 0.5, "bias_bytes": rng.choice((0, 4)), "psum_first_read": rng.random() < 0.1,
    }  # fmt: skip
    bursts = {"burst_ticks": rng.randint(1, 9), "burst_bytes": rng.randint(2, 8)} if rng.random() < 0.3 else {}
    transfer = Transfer(
        call_ticks=rng.choice((0, rng.randint(1, 60))), segment_ticks=rng.choice((0, 5)), byte_ticks=rng.randint(1, 3),
        burst_count=rng.choice(("aligned", "address")), **bursts,
    )  # fmt: skip
    compute = rng.choice((Compute(model="none"), Compute(model="array", rows=2, cols=3, cycle_ticks=rng.randint(1, 9))))
    return machine(overlap="double_buffered", transfer=transfer, compute=compute, **fields_)


def one_by_one(hidden: Hidden, nest: Nest) -> int:
    """The ticks of all that a nest loads, computes and stores."""
    single = hidden.machine.model_copy(update={"buffering": "single", "ocm_bytes": 1 << 20})
    items = (replace(item, buffers=None) if isinstance(item, Hold) else item for item in nest.items)
    return price(hidden.layer, single, Nest(tuple(items))).time_ticks


def nests(rng: random.Random, moved: int) -> Iterator[tuple[Nest, int, Hidden, Ranges]]:
    """Yield random nests without end, so many of each layer at most: time, bounds of the skeleton, and class."""
    while True:
        layer = random_layer(rng, tiny=True)
        if any(one != (0, "") for one in layer.loaded) or layer.resident_out:
            continue
        on = drawn(rng, layer)
        moves = Moves(layer, on, rng)
        form = moves.start()
        for _ in range(moved):
            form = moves.changed(form)
            nest = nest_of(layer, form)
            outcome = price(layer, on, nest)
            if proper(nest) and all(outcome.occupancy_bytes[k] <= size for k, size in on.memories.items()):
                hidden, trees = hidden_of(layer, on, nest)
                yield nest, outcome.time_ticks, hidden, point(hidden, trees)


def test_no_class_has_a_bound_above_the_time_of_a_nest_in_it() -> None:
    # Classes of one nest, whose bound is its time mostly, and larger ones around it; together and by themselves.
    rng, met = random.Random(41), 0
    for nest, time, hidden, one in islice(nests(rng, 30), 400):
        alone, *others = (widened(rng, hidden, one) for _ in range(3))
        _, bounds = hidden.bound(Ranges.joined([one, *others]))
        _, (bound,) = hidden.bound(alone)
        assert max(bound, *bounds) <= time, (hidden.layer, hidden.machine, nest, bound, bounds, time)
        least = sum(int(ticks[0]) for ticks in hidden.sums(hidden.tightened(alone)[0]).values())
        assert least <= one_by_one(hidden, nest), (hidden.layer, hidden.machine, nest, least)
        met += int(bounds[0] == time)
    assert met > 0.6 * 400


@pytest.mark.parametrize(
    ("layer", "changes", "items", "time"),
    [
        *CASES,
        # the last row needs nothing new of the whole kernel, but something of a part
        (
            Layer.model_validate(
                {"name": "idle", "m": 1, "n": 1, "r": 2, "c": 3, "kh": 2, "kw": 4, "stride_w": 2, "pad_top": 1}
                | {"pad_left": 2, "h": 1, "l": 5}
            ),
            {"ocm_bytes": 90, "w_bytes": 2, "out_bytes": 2, "psum_bytes": 2, "sliding": True}
            | {"compute": {"model": "array", "rows": 4, "cols": 2, "cycle_ticks": 7}},
            (Loop("i", 1), W, Loop("r", 1), OUT, IN), 350,
        ),
        # a tile of one column has more runs than its share of a larger one
        (
            Layer.model_validate(
                {"name": "narrow", "kind": "eltwise", "b": 2, "g": 2, "m": 1, "n": 1, "h": 1, "l": 5, "r": 1, "c": 5}
                | {"weights": "none"}
            ),
            {"ocm_bytes": 60, "call": 56, "segment": 5, "byte": 3, "in_layout": "HWC", "out_layout": "HWC"},
            (Loop("c", 2, (2, 4)), IN, Loop("g", 1, (1,)), OUT), 588,
        ),
        # biases of two groups are two runs
        (
            Layer.model_validate(
                {"name": "bias", "kind": "matmul", "g": 2, "m": 3, "n": 1, "r": 5, "c": 1, "h": 5, "l": 1, "bias": True}
            ),
            {"ocm_bytes": 54, "segment": 6, "byte": 2, "bias_bytes": 4},
            (IN, Loop("r", 1, (1, 2, 3, 4)), OUT, Loop("m", 1), W), 750,
        ),
        # a store (18) is hidden behind the first step of the next tile (27), which is longer than its last one (9)
        (
            Layer.conv("host", channels=4, filters=2, size=(3, 3)), {"byte": 2, **ARRAY},
            (IN, Loop("m", 1), OUT, Loop("n", 3), W), 72 + 6 + 2 * (27 + 9) + 18,
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Layer) else None,
)  # fmt: skip
def test_what_is_not_hidden_is_not_counted(
    layer: Layer, changes: dict[str, Any], items: tuple[Item, ...], time: int
) -> None:
    fields_ = {"psum_bytes": 1, "ocm_bytes": 4000, "buffering": "double", "overlap": "double_buffered"} | changes
    transfer = {"call_ticks": fields_.pop("call", 0), "segment_ticks": fields_.pop("segment", 0)}
    transfer["byte_ticks"] = fields_.pop("byte", 1)
    on = Machine.model_validate(
        {"name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, **fields_}
        | {"transfer": {"model": "dma", **transfer}}
    )
    nest = Nest(items)
    hidden, trees = hidden_of(layer, on, nest)
    found, bound = price(layer, on, nest).time_ticks, int(hidden.bound(point(hidden, trees))[1][0])
    assert (found, bound <= found) == (time, True)


def test_tiles_of_a_class_of_all_ways_to_cut_may_be_small() -> None:
    """9 channels of 3 rows of 2 bytes, each a run: 6 bytes and 2 bursts of 4, 2 + 2*8 + 6 = 24 ticks.

    Cut in rows, each is a burst of its own: 3*(2 + 8 + 2). No more fits if all else is whole, which it need not be.
    """
    layer = Layer(name="x", kind="pool", b=3, g=3, m=1, n=1, r=3, c=1, kw=2, h=4, l=2, weights="none")
    on = machine(
        ocm_bytes=30, buffering="double", overlap="double_buffered", in_layout="CHW",
        transfer=Transfer(segment_ticks=2, burst_ticks=8, burst_bytes=4, byte_ticks=1),
    )  # fmt: skip
    hidden, _ = hidden_of(layer, on, Nest((Loop("b", 1), Loop("r", 2), OUT, Loop("g", 1), IN)))
    assert hidden.sums(hidden.classes([{}]))["IN"] == [9 * 24]


def test_runs_are_known_where_channels_are_cut() -> None:
    """3 rows of 4 channels, cut in two both: 3 runs for each piece of channels, whatever rows a window has.

    A window of two outputs spans the map, so what is sure by rows alone is no more than a run a fetch.
    """
    layer = Layer(name="x", kind="pool", g=4, m=1, n=1, r=3, c=1, kh=3, pad_top=1, h=3, l=1, weights="none")
    on = machine(
        ocm_bytes=60, buffering="double", overlap="double_buffered", sliding=True, in_layout="HWC",
        transfer=Transfer(segment_ticks=5, byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("g", 2), Loop("r", 2), IN, OUT))
    hidden, trees = hidden_of(layer, on, nest)
    assert hidden.sums(point(hidden, trees))["IN"] == [2 * 3 * 5 + 4 * 3]
