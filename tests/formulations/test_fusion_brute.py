"""Fusion against all schedules of small networks: every cut, strip height, halo and row on chip."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from formulations.compulsory import compulsory_bytes
from formulations.fusion.arcs import _dominates, parts_of
from formulations.fusion.groups import Group, Net, Window, window
from formulations.fusion.memory import Memory, Option, Weights
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import Demands
from formulations.fusion.schedule import streams_of
from formulations.fusion.space import Arc
from formulations.fusion.strips import DONE, FAR, Way, paces, strips
from formulations.pins import Pins, parse_pins
from hwmodels.fusion.replay.strips import ALL, _Visit
from hwmodels.schedule import FusedRun, NetworkRun
from instances.errors import InputError
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, Reshape
from instances.network.stores import stores
from instances.network.workload import Layer
from instances.zoo.builder import Builder
from solver import check, pareto, solve
from solver.problems.fusion import FUSION
from tests.adversary.fusion import TESTER, Case
from tests.adversary.fusion_paths import Paths
from tests.effort import thinned
from tests.small import conv

Layers = tuple[tuple[str, tuple[int, ...], int], ...]


def case(rows: int, columns: int, channels: int, layers: Layers, **more: Any) -> Case:
    given: dict[str, Any] = {"banks": 4, "bank": 32, "engines": ("dynamic",), **more}
    return Case(rows, columns, channels, layers, **given)


def said(one: Case) -> list[str]:
    return [found.what for found in TESTER.run(one, random.Random(0))]


#: Cases that were wrong once, and the fewest bytes of each.
KNOWN: dict[str, tuple[Case, int | None]] = {
    # two convolutions on 9 rows: strips of 4 as of 3 are 3 steps, but the first one runs in 2 of them only
    "higher strips of as many steps may load fewer weights": (
        case(9, 3, 2, (("wide", (0,), 4), ("conv", (1,), 2)), banks=2, bank=79), None
    ),
    # 2 x 2 windows with stride 2, twice: of 7 rows 4 are needed, and strips load no more
    "rows that nobody reads are not compulsory": (
        case(7, 1, 3, (("even", (0,), 1), ("pool", (1,), 4), ("point", (2,), 8)), banks=12, bank=128,
             bytes=(2, 2, 2, 2), engines=("dynamic", "per-layer")), 68
    ),
    # of three layers two read the input, and the last reads the first: together they read it once
    "a group may have a layer that only shares its input": (
        case(3, 3, 1, (("conv", (0,), 7), ("conv", (0,), 1), ("point", (1,), 1)), banks=8, bank=23,
             bytes=(2, 2, 2, 2)), 212
    ),
    # of three columns one at a time; with two at a time 223
    "parts of rows go down to one column": (
        case(4, 5, 1, (("conv", (0,), 4), ("deep2", (1,), 1), ("conv", (2,), 1)), banks=9, bank=24,
             bytes=(2, 1, 2, 2), pins=("turns=no",)), 208
    ),
    # all three layers need one pixel of the first map, two of them need it whole: in pairs 25
    "a longer group may fit where a shorter one does not": (
        case(3, 2, 1, (("deep", (0,), 1), ("jump", (1,), 1), ("jump", (2,), 1)), banks=14, bank=1), 16
    ),
    # all 7 rows stay while two layers run, as strips beside 6 of them find no room; then 6 do: else 175
    "a map may shrink as soon as the group that makes it is done": (
        case(7, 2, 1, (("conv", (0,), 2), ("global", (0,), 1), ("deep", (1,), 1), ("deep", (3,), 1)), banks=12, bank=6,
             bytes=(1, 2, 1, 2), engines=("dynamic", "milp")), 167
    ),
}  # fmt: skip


@pytest.mark.slow(5, every=True)
@pytest.mark.parametrize("name", KNOWN)
def test_what_was_wrong_once(name: str) -> None:
    one, least = KNOWN[name]
    assert said(one) == []
    for engine in {*one.engines} - {"per-layer"} if least else ():
        claim = TESTER.claim(one, engine)
        assert (claim.status, claim.value) == ("OPTIMAL", least)


def test_a_bound_that_no_nest_reaches_is_no_plan() -> None:
    """The least path has a layer by itself in two banks, where no search finds a nest."""
    layers = (("pool", (0,), 1), ("even", (1,), 3), ("conv", (2,), 1))
    one = case(8, 1, 1, layers, banks=8, bank=2, bytes=(2, 1, 2, 2))
    assert said(one) == []
    assert TESTER.claim(one, "dynamic").faults == ()


@pytest.mark.parametrize(("width", "parts"), [(1, []), (2, [1]), (3, [2, 1]), (7, [4, 2, 1]), (8, [4, 2, 1])])
def test_parts_of_rows(width: int, parts: list[int]) -> None:
    assert parts_of(width) == parts


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "pin", thinned(["strip>=4", "fuse!=n2..n3", "cut=n2", "strip<=2", "length=2", "cut!=n2", "fuse=n1..n2"], 2)
)
def test_pins_keep_what_they_say(pin: str) -> None:
    layers = (("conv", (0,), 2), ("stride", (1,), 3), ("point", (2,), 2), ("global", (3,), 1))
    assert said(case(6, 2, 2, layers, pins=(pin,))) == []


def demands(*pins: str) -> Demands:
    """Of a chain of four layers, the first of 6 x 2 pixels."""
    layers = (("conv", (0,), 2), ("point", (1,), 3), ("point", (2,), 2), ("point", (3,), 1))
    one = case(6, 2, 2, layers)
    return Demands(parse_pins(pins, FUSION.decisions), Net.read(one.network, one.machine))


#: By pin the groups of layers 0..3 that it leaves, as their first and last layers.
GROUPS: dict[str, Callable[[int, int], bool]] = {
    "cut=n1": lambda first, last: not (first <= 0 < last), "cut=n2": lambda first, last: not (first <= 1 < last),
    "cut!=n2": lambda _, last: last != 1, "length=2": lambda first, last: last - first == 1,
    "length<=2": lambda first, last: last - first <= 1, "length>=3": lambda first, last: last - first >= 2,
    "fuse=n2..n3": lambda first, last: (first <= 1 and last >= 2) or last < 1 or first > 2,
    "fuse!=n2..n3": lambda first, last: not (first <= 1 and last >= 2),
}  # fmt: skip


@pytest.mark.parametrize("pin", GROUPS)
def test_groups_that_pins_leave(pin: str) -> None:
    pinned = demands(pin)
    left = {(first, last) for last in range(4) for first in range(last + 1) if pinned.allows(first, last)}
    assert left == {(first, last) for last in range(4) for first in range(last + 1) if GROUPS[pin](first, last)}
    over = {(first, last) for last in range(4) for first in range(last + 1) if pinned.over(first, last)}
    assert not any(one == first and end > last for first, last in over for one, end in left)


@pytest.mark.parametrize(("pins", "said"), [
    (("macs<=0.99",), "macs<=0.99: every layer must be computed once"), (("macs<=1",), ""), (("macs<=1.2",), ""),
    (("fuse=n1..n2", "cut=n1"), "fuse=n1..n2 and cut=n1 contradict each other"), (("fuse=n1..n2", "cut=n2"), ""),
    (("fuse=n2..n3", "cut=n1"), ""), (("fuse!=n1..n2", "cut=n1"), ""), (("fuse=n1..n2", "cut!=n1"), ""),
])  # fmt: skip
def test_demands_that_contradict_each_other(pins: tuple[str, ...], said: str) -> None:
    assert demands(*pins).explain() == ((said,) if said else ())


@pytest.mark.parametrize("pin", ["macs>=1", "fuse=n1", "fuse=n2..n1", "fuse=n1..n1", "cut=n9", "fuse=n1..n9"])
def test_demands_that_are_none(pin: str) -> None:
    with pytest.raises(InputError, match=f"pin {pin}"):
        demands(pin)


def test_what_demands_say_of_strips() -> None:
    total = sum(layer.macs for layer in demands().net.layers)
    assert [demands(*pins).macs for pins in ((), ("macs<=1.05", "macs<=2"))] == [None, int(total * 1.05)]
    for pins, may in (
        ((), False),
        (("recompute=any",), True),
        (("macs<=2",), True),
        (("macs<=2", "recompute=no"), False),
    ):
        again = Option(4, 2, "recompute", "lead", frozenset())
        assert demands(*pins).recompute == may
        assert list(demands(*pins).broken(0, 1, again)) == (
            [] if may else ["recomputes, which needs pin recompute=any"]
        )
    pinned = demands("strip>=4", "strip!=5")
    assert pinned.heights(Group(pinned.net, 0, 1)) == [6, 4]
    heights = [h for h in range(1, 7) if not list(pinned.broken(0, 1, Option(h, 2, "lead", "lead", frozenset())))]
    assert heights == [4, 6]


@pytest.mark.parametrize(
    ("fn", "legal"), [("identity", True), ("reshape", True), ("transpose", False), ("slice", False)]
)
def test_what_is_moved_between_layers_is_in_no_group(fn: str, legal: bool) -> None:
    shape = (1, 4, 8, 8)
    moved = Reshape.model_validate({"name": "t", "inputs": ("a",), "shape": shape, "fn": fn})
    operators = (Input(name="x", shape=shape), conv("a", "x", shape, 4), moved, conv("b", "t", shape, 4))
    net = Net.read(Network(name="n", operators=operators), load_machine("scratchpad_768k"))
    assert Group(net, 0, 1).legal == legal


def test_windows_of_rows_and_columns() -> None:
    """Reach (taps - 1) * dilation + 1; a layer of one row moves by the map; an operand of one column stands still."""
    layer = Layer.conv(
        "x", channels=1, filters=1, size=(9, 11), kernel=(2, 3), stride=(3, 1), dilation=(3, 2), pad=(2, 1, 0, 0)
    )
    assert window(layer, "rows") == Window(4, 3, 2, 9, 3)
    assert window(layer, "columns") == Window(5, 1, 1, 11, 8)
    assert window(layer, "columns", "c") == Window(1, 0, 0, 1, 8)
    assert window(Layer.conv("y", channels=1, filters=1, size=(5, 3), kernel=(5, 1)), "rows") == Window(5, 5, 0, 5, 1)


def test_strips_by_hand() -> None:
    """a of 3 rows, c of 5 rows of a, s = c + a, d every second row of s; c is read outside, too.

    Rates 2, and 1 of d. In front of it are s -1 (every second row), c 0 (a result), a 2 (c reads two rows beyond), x 3;
    behind c, s, d begin 0, a -2, x -3. Of c all 8 rows are needed, of s 7.
    """
    shape = (1, 1, 8, 8)
    net = Net.read(Network(name="n", operators=(
        Input(name="x", shape=shape), conv("a", "x", shape, 1, 3), conv("c", "a", shape, 1, 5),
        Eltwise(name="s", inputs=("c", "a"), shape=shape, fn="add"), conv("d", "s", shape, 1, 1, 2),
        conv("e", "c", shape, 1),
    )), load_machine("scratchpad_768k"))  # fmt: skip
    group = Group(net, 0, 3)
    ways: list[Way] = [("retain", 1), ("lead", 2), ("recompute", 2), ("lead", 4)]  # 6, 2, 2 and 1 steps
    made = strips(group, "rows", ways)
    assert made is not None
    assert made.end.tolist() == [
        [0, 2, 4, 6, 8, 8, 6, 8, 6, 8, 8], [0, 0, 2, 4, 6, 8, 4, 8, 4, 8, 8], [0, 0, 1, 3, 5, 7, 3, 7, 3, 7, 7],
        [0, 0, 1, 2, 3, 4, 2, 4, 2, 4, 4], [1, 3, 5, 7, 8, 8, 7, 8, 7, 8, 8],
    ]  # fmt: skip
    assert made.begin.tolist() == [
        [0, 0, 2, 4, 6, 8, 0, 6, 0, 2, 0], [0, 0, 0, 2, 4, 6, 0, 4, 0, 4, 0], [0, 0, 0, 1, 3, 5, 0, 3, 0, 4, 0],
        [0, 0, 0, 1, 2, 3, 0, 2, 0, 2, 0], [0, 1, 3, 5, 7, 8, 0, 7, 0, 1, 0],
    ]  # fmt: skip
    assert made.next[0].tolist() == [0, 2, 4, 6, 8, 8, 6, 8, 2, 8, 8]
    # c reads a from two rows before its own on, a reads x from one; when a is complete nothing more is read of x
    assert made.first_seen[0, 0].tolist() == [0, 0, 0, 0, 2, 4, 0, 2, 0, 2, 0]
    assert made.later_seen[0, 0].tolist() == [0, 0, 0, 2, 4, FAR, 2, FAR, 2, FAR, FAR]
    assert made.first_seen[4, 0].tolist() == [0, 0, 1, 3, 5, FAR, 0, 5, 0, 1, 0]
    assert made.later_seen[4, 0].tolist() == [0, 1, 3, 5, FAR, FAR, 5, FAR, 1, FAR, FAR]
    assert made.until_seen[4, 0].tolist() == [1, 3, 5, 7, 8, 0, 7, 8, 7, 8, 8]
    assert made.computed.T.tolist() == [[8, 8, 7, 4, 8], [8, 8, 7, 4, 8], [12, 8, 6, 4, 14], [8, 8, 7, 4, 8]]
    assert made.active[0].tolist() == [4, 2, 2, 1]
    assert made.skips.tolist() == [False, False, True, False]  # row 3 of s is not made
    assert made.beyond(4, np.array([0, 5])).tolist() == [[8, 3], [8, 3], [14, 5], [8, 3]]
    for mode, size in ways:
        steps, pace = paces(group, "rows", mode, size)
        (first, last), back = {"retain": ((-1, 4), 0), "recompute": ((0, 1), 1)}.get(mode, ((1, 4 // size), 0))
        assert (steps.first, steps.last) == (first, last)
        assert [(p.step, p.ahead - back * p.step, p.behind, p.end) for p in pace] == [
            (2 * size, 2, -2, 8), (2 * size, 0, 0, 8), (2 * size, -1, 0, 7), (size, 0, 0, 4), (2 * size, 3, -3, 8),
        ]  # fmt: skip
    few = strips(group, "rows", [ways[0], ways[3], ways[3], ways[3]])  # 6, 1, 1 and 1 steps
    assert few is not None
    assert few.most(np.arange(9.0), 0).tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("shape", "stride", "kernel", "steps"), [((7, 7), 2, (1, 1), (4, 8)), ((2, 8), 4, (2, 1), (1, 2))]
)
def test_one_step_has_no_broken_numbers(
    shape: tuple[int, int], stride: int, kernel: tuple[int, int], steps: tuple[int, int]
) -> None:
    """Two results: one of every second row, 4 of 7, and one of all: a strip of 7 would have 3.5, one of 8 has 4.

    Of 2 rows one is made by a stride of 4, and one of both: in a strip of one row by half a row.
    """
    map_, rows = (1, 1, *shape), shape[0] - kernel[0] + 1
    every = Conv(name="b", inputs=("x",), shape=(1, 1, rows, shape[1]), filters=1, kernel=kernel)
    network = Network(name="n", operators=(Input(name="x", shape=map_), conv("a", "x", map_, 1, 1, stride), every))
    part = FusionPart(network, load_machine("scratchpad_768k"), Pins(()))
    group = Group(part.net, 0, 1)
    down, pace = paces(group, "rows", "lead", rows)
    assert (tuple(one.step for one in pace[:2]), down.first, down.last) == (steps, 1, 1)
    assert (down, pace) == paces(group, "rows", "lead", steps[1])
    made = streams_of(group, Option(rows, shape[1], "lead", "lead"))
    runs = NetworkRun((FusedRun(0, 1, *made, (0, 0), {}, (0, 0), tuple(range(40))),))
    assert part.walked(runs).faults == ()
    assert part.price(runs).counts == part.replay(runs).counts
    if rows > 2:
        with pytest.raises(InputError, match="strips of 3 rows do not suit layers 0 to 1"):
            paces(group, "rows", "lead", 3)


def test_an_arc_dominates_where_it_is_never_worse() -> None:
    """One residence whose levels 0 and 1 are of a class: what is read more there is not more with what is loaded."""

    def arc(fixed: int, reads: tuple[int, ...], table: tuple[tuple[int, ...], ...], macs: int = 1) -> Arc:
        kinds = (np.array([0, 0, 1]),)
        return Arc(0, 1, (0,), kinds, (np.array(reads),), fixed, macs, np.arange(2), np.array(table))

    one, table = arc(5, (9, 6, 0), ((9, 4), (7, 3))), ((9, 4), (7, 3))
    assert _dominates(one, one)
    assert not _dominates(one, arc(4, (9, 6, 0), table))
    assert not _dominates(arc(5, (9, 6, 0), table, macs=2), one)
    assert not _dominates(one, arc(6, (9, 4, 0), table))  # 2 less are read at level 1
    assert _dominates(one, arc(6, (9, 4, 0), ((10, 5), (6, 2))))
    assert not _dominates(one, arc(6, (9, 4, 0), ((10, 5), (6, 1))))


def test_pins_that_leave_no_strip_leave_no_group() -> None:
    """Maps of one row with strip>=4: every layer runs by itself."""
    one = case(8, 4, 4, (("global", (0,), 1), ("point", (1,), 1), ("point", (2,), 2)), pins=("strip>=4",), bank=64)
    assert said(one) == []


def test_weights_that_stay_are_the_best_of_all_splits() -> None:
    """Every split on a grid of bytes, whatever sizes, filters and visits."""
    rng = random.Random(1)
    for _ in range(150):
        count = rng.randint(1, 3)
        filters = [rng.randint(1, 4) for _ in range(count)]
        sizes = [one * rng.randint(1, 3) for one in filters]
        visits, room = [rng.randint(1, 4) for _ in range(count)], rng.randint(0, 20)
        least = None
        for stay in product(*(range(size + 1) for size in sizes)):
            parts = list(zip(sizes, filters, stay, visits, strict=True))
            taken = sum(stay) + max((one for size, one, kept, _ in parts if kept < size), default=0)
            if taken <= room:
                moved = sum(kept + n * (size - kept) for size, _, kept, n in parts)
                least = moved if least is None else min(least, moved)
        resident = Weights(tuple(sizes), tuple(filters)).resident(visits, room)
        moved = sum(kept + n * (size - kept) for size, kept, n in zip(sizes, resident, visits, strict=True))
        buffer = max((one for size, one, kept in zip(sizes, filters, resident, strict=True) if kept < size), default=0)
        assert least is None or (moved == least and sum(resident) + buffer <= room)


def skip_case() -> Case:
    """A map of 3-row windows that a sum reads, too, and every second row of the sum: 14 bytes in 13 bytes."""
    layers = (("slide", (0,), 1), ("conv", (1,), 1), ("sum", (2, 1), 1), ("jump", (3,), 1))
    return case(7, 1, 1, layers, banks=13, bank=1, bytewise=True)


def test_rows_of_a_skip_go_back_reader_by_reader() -> None:
    assert said(skip_case()) == []


def test_rows_that_stay_until_the_last_reader_has_run_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted in prices and in the referee, which then agree: what lies in a memory does not."""
    alone, moment = Memory._alone.func, _Visit.moment

    def late(memory: Memory) -> Any:
        table = alone(memory)
        for k, stream in enumerate(memory.group.streams):
            made = table[:, k, DONE : DONE + len(stream.readers)]
            table[:, k, DONE] = made.sum(axis=1)
            table[:, k, DONE + 1 : DONE + len(stream.readers)] = 0
        return table

    def later(visit: Any, kind: Any, k: int, when: Any, block: int = ALL) -> Any:
        readers = len(visit.walk.run.streams[k].readers)
        return moment(visit, kind, k, 0 if isinstance(when, int) and when < readers else when, block)

    monkeypatch.setattr(Memory, "_alone", property(late))
    monkeypatch.setattr(_Visit, "moment", later)
    assert "dynamic says OPTIMAL 21 with bound 21, brute force finds 15" in said(skip_case())


# ---- The front of bytes and MACs of fusion, against all schedules of small networks with weights of both -------------

AGAIN = ("recompute=any",)


def _case(rows: int, columns: int, channels: int, banks: int, bank: int, *layers: tuple[str, tuple[int, ...], int],
          bytes: tuple[int, int, int, int] = (1, 2, 1, 4), bytewise: bool = False) -> Case:  # fmt: skip
    """A small network in which what strips need again may be computed again."""
    return Case(
        engines=("dynamic",), rule="", rows=rows, columns=columns, channels=channels, layers=layers, banks=banks,
        bank=bank, bytes=bytes, pins=AGAIN, energy=False, every=False, bytewise=bytewise,
    )  # fmt: skip


#: Drawn once, as their fronts have several points.
CASES = {
    "readers": _case(7, 2, 3, 16, 6, ("conv", (0,), 1), ("jump", (1,), 3), ("stride", (2,), 8), ("conv", (2,), 3)),
    "one column": _case(8, 1, 3, 12, 8, ("conv", (0,), 4), ("jump", (1,), 3)),
    "jump": _case(10, 6, 3, 4, 80, ("conv", (0,), 8), ("jump", (1,), 3)),
    "even": _case(
        7, 4, 4, 6, 68, ("conv", (0,), 3), ("even", (0,), 3), ("point", (2,), 3), ("even", (3,), 2), ("wide", (4,), 3),
        bytes=(1, 2, 1, 1),
    ),
    "in bytes": _case(
        9, 1, 4, 4, 21, ("point", (0,), 4), ("even", (1,), 8), ("conv", (2,), 1), ("stride", (3,), 1),
        bytes=(1, 1, 1, 1), bytewise=True,
    ),
}  # fmt: skip
QUICK = ("readers", "one column")


@pytest.mark.slow(14)
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in QUICK)]
)
def test_no_schedule_is_below_the_front(name: str) -> None:
    case = CASES[name]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion")
    points = [(point.values["bytes"], point.values["macs"]) for point in front.parts[0].points]
    assert front.proven
    assert len(points) > 1
    assert points == sorted(points)
    assert [macs for _, macs in points] == sorted({macs for _, macs in points}, reverse=True)
    assert all(check(plan).ok for plan in front.plans)
    part = FusionPart(case.network, case.machine, parse_pins(AGAIN, FUSION.decisions))
    for factors in thinned(((1, 0), (10, 1), (3, 1), (1, 1), (1, 3), (1, 10)), 2):
        paths = Paths(case.network, stores(case.network), case.machine, part.tables.nests, case.demanded, factors)
        best = paths.best()
        assert best[0] == min(factors[0] * moved + factors[1] * macs for moved, macs in points)


@pytest.mark.slow(2)
def test_strips_that_compute_again_may_leave_out_what_nobody_reads() -> None:
    """Of 10 x 6 pixels the last layer reads every other one of every other row, 15: 15 x (216 + 24) MACs at least."""
    case = CASES["jump"]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion")
    assert front.parts[0].points[-1].values == {"bytes": 4347, "macs": 15 * (216 + 24)}


def test_compulsory_bytes_leave_out_what_nobody_reads() -> None:
    """Two 1 x 1 layers with stride 2: of 9 x 9 pixels 3 x 3 are read by somebody; 9 x 4 + 16 + 16 + 9 x 4 bytes."""
    shape, half = (1, 4, 9, 9), (1, 4, 5, 5)
    one = {"filters": 4, "kernel": (1, 1), "stride": (2, 2)}
    network = Network(name="jumps", operators=(
        Input(name="in", shape=shape), Conv(name="a", inputs=("in",), shape=half, **one),
        Conv(name="b", inputs=("a",), shape=(1, 4, 3, 3), **one),
    ))  # fmt: skip
    machine = load_machine("scratchpad_768k")
    assert compulsory_bytes(Net.read(network, machine), machine) == 36 + 16 + 16 + 36


def test_without_recomputation_the_front_is_one_plan() -> None:
    case = CASES["one column"]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion", pins=["recompute=no"])
    assert (front.proven, len(front.parts[0].points)) == (True, 1)


def test_all_of_a_group_in_one_step_needs_no_whole_numbers() -> None:
    """A 3x3 layer of stride 2 beside one whose map is pooled: a step of the pool's row is one and a half rows of `a`.

    All four in one step move what must: 9 of the input, 9 weights each, 2 x 2 and one result.
    """
    net = Builder("unlike", "")
    x = net.input(1, 1, 3, 3, name="in")
    net.conv(x, "a", 1, 3, stride=2, batch_norm=False, act="")
    net.pool(net.conv(x, "b", 1, 3, batch_norm=False, act=""), "pool", "avg", 3)
    settings = {"ocm_bytes": "256", "ocm_banks": "16"}
    for objective in ("bytes", "time"):
        plan = solve(net.build(), "scratchpad_64k", problem="fusion", objective=objective, settings=settings,
                     pins=["fuse=a..pool", "strip<=1"])  # fmt: skip
        assert (plan.measures or {})["bytes"] == 9 + 9 + 9 + 4 + 1
        assert check(plan).executed == 1
