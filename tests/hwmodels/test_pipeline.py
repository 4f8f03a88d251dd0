"""Bounds on how tiles of OUT follow each other: the recursion against every way to cut, and against timelines."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil
from typing import Any

import numpy as np
import pytest

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from hwmodels.nest.price.bilinear import Bilinear
from hwmodels.nest.price.choices import Choices
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import chain_of
from hwmodels.nest.price.pipeline import Need, Pipeline, Room
from hwmodels.nest.price.skeleton import skeleton_of
from hwmodels.nest.price.tables import nest_tables
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from tests.small import machine

ONE = np.array([0])


def table(value: int) -> Bilinear:
    """A table of one choice."""
    return Bilinear.of([(np.array([value]), np.array([1]))], (1, 1))


def drawn(rng: random.Random) -> Pipeline:
    """Any numbers: the recursion knows nothing else of them."""
    unit, count = rng.choice((1, 1, 2)), rng.randint(1, 4)
    need = Need(
        elements=rng.randint(0, 3), share=rng.randint(1, 2), byte=rng.randint(1, 3), call=rng.randint(0, 6),
        copies=rng.randint(1, 2), idle=rng.randint(0, 1), largest=rng.randint(1, 9), rooms=(),
        first=table(rng.randint(0, 9)), own=table(rng.randint(0, 1)), ready=table(rng.randint(0, 1)),
        whole=table(rng.randint(0, 1)), held=table(rng.randint(0, 1)),
    )  # fmt: skip
    return Pipeline(
        elements=unit * count * rng.randint(1, 2), call=rng.randint(0, 6), byte=rng.randint(1, 3),
        lanes=rng.randint(1, 3), level=rng.choice((0, 0, -1, 1)), together=rng.random() < 0.5,
        tile=table(rng.randint(1, 9)), tiles=(), largest=table(unit * rng.randint(1, count)), rooms=(),
        unit=table(unit), fewest=table(rng.randint(1, 2)),
        work=table(rng.choice((0, rng.randint(1, 40)))), step=table(rng.randint(0, 5)), last=table(rng.randint(0, 5)),
        fill=table(rng.randint(0, 9)), drain=table(rng.randint(0, 5)), reads=table(rng.randint(0, 30)),
        alone=table(rng.randint(0, 3)), once=table(rng.randint(0, 1)), needs=(need,),
    )  # fmt: skip


def loads(one: Pipeline, count: int, tile: int, done: int, loops: int, *, first: bool = False) -> Fraction:
    """Lam, as the docstring of the module says it."""
    need = one.needs[0]
    at = {name: t.at(0, 0) for name, t in vars(need).items() if isinstance(t, Bilinear)}
    some, every = (-(-x * need.elements // need.share) for x in (done, one.elements))
    calls = max(
        -(-some // need.largest), at["own"] * min(tile - (first and not at["ready"]), max(count - need.idle, 0))
    )
    whole = need.byte * every + need.call * max(1, -(-every // need.largest))
    return Fraction(
        max(
            need.copies * (need.byte * some + need.call * calls),
            need.copies * whole * at["whole"] * (1 if at["held"] else loops), at["first"],
        )
    )  # fmt: skip


def taken(one: Pipeline, tiles: list[int]) -> Fraction:
    """The largest of all paths of one way to cut."""
    at = {name: t.at(0, 0) for name, t in vars(one).items() if isinstance(t, Bilinear)}
    total, count, paths = one.elements, len(tiles), list[Fraction]()
    for q in range(1, count + 1):
        done, behind = sum(tiles[:q]), sum(tiles[q - 1 :])
        calls = max(Fraction(count - q + 1), Fraction(behind, at["tile"])) if one.level <= 0 else Fraction(0)
        stores = one.call * calls + one.byte * behind
        begun = loads(one, count, q, *((done, q) if one.together else (0, q - 1)), first=not one.together)
        computed = Fraction(at["work"], one.lanes * total)
        if at["once"] and at["work"]:
            paths.append(begun + computed * behind + at["drain"])
        if one.level > 0:
            continue
        if one.level < 0:
            ahead = max(begun, at["reads"]) if q == count and one.together else begun
            paths += [at["fill"] + stores, ahead + at["step"] + stores]
            continue
        ended = loads(one, count, q, done, q)
        paths += [at["fill"] + int(computed * done) + stores, ended + at["step"] + stores]
        if q == count:
            paths.append(max(ended, Fraction(at["reads"])) + at["last"] + stores)
        else:
            whole = one.together and at["once"]
            known = (sum(tiles[: q + 1]), q + 1) if whole else (done, q)
            paths.append(loads(one, count, q + 1, *known, first=not whole) + stores)
    return at["alone"] + max(paths, default=Fraction(0))


def ways(one: Pipeline) -> list[list[int]]:
    """All ways to cut: tiles of whole units, none too large, as many as there have to be."""
    unit, most, fewest = (t.at(0, 0) for t in (one.unit, one.largest, one.fewest))
    count = one.elements // unit
    found = []
    for number in range(count):
        for cuts in combinations(range(1, count), number):
            ends = (0, *cuts, count)
            tiles = [unit * (b - a) for a, b in pairwise(ends)]
            found += [tiles] if max(tiles) <= most and len(tiles) >= fewest else []
    return found


def test_the_recursion_finds_the_least_of_all_ways_to_cut() -> None:
    # Never above it; below it only where a tile would have to be empty, which the recursion does not exclude.
    rng, exact, number = random.Random(5), 0, 0
    for _ in range(400):
        one = drawn(rng)
        every = [taken(one, tiles) for tiles in ways(one)]
        if not every:
            continue
        least = max(0, ceil(min(every)))
        found = int(one.raised(ONE, ONE, np.array([0]), least + rng.randint(1, 50), searching=True)[0])
        assert found <= least, one
        exact, number = exact + (found == least), number + 1
    assert number > 300
    assert exact > 0.8 * number


def test_room_is_what_the_others_leave() -> None:
    # 100 bytes, 70 taken, 20 of them by these: 50 for tiles of 3 / 2 bytes an element: 33.
    assert Room(100, table(70), table(20), Fraction(3, 2), table(1)).most(ONE, ONE) == [33]


LAYERS = (
    Layer.conv("plain", channels=3, filters=4, size=(6, 4)),
    Layer.conv("padded", channels=2, filters=3, size=(6, 5), kernel=(3, 3), pad=(1, 1, 1, 1)),
    Layer.conv("strided", channels=2, filters=3, size=(7, 6), kernel=(2, 3), stride=(2, 2), pad=(0, 1, 0, 1)),
    Layer.model_validate(
        {"name": "add", "kind": "eltwise", "b": 1, "g": 4, "m": 1, "n": 1, "h": 5, "l": 4, "r": 5, "c": 4}
        | {"weights": "none", "inputs": 2}
    ),
)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("buffering", ["double", "choose"])
def test_no_bound_is_above_the_time_of_a_nest(layer: Layer, buffering: str) -> None:
    # Every nest of the first pass: its tables and what its tiles need are bounds on its own time.
    on = machine(
        ocm_bytes=400, buffering=buffering, compute=Compute(model="array", rows=2, cols=2, cycle_ticks=3),
        transfer=Transfer(call_ticks=20, segment_ticks=2, byte_ticks=1), overlap="double_buffered",
    )  # fmt: skip
    compared = 0
    for member in NESTS["tiling"].build(layer, on, Pins()).members[:: 1 if buffering == "double" else 5]:
        branch = member.branch(("time",), coarse=True)
        fits = np.argwhere(branch.feasible())
        for s, q in fits[:: max(1, len(fits) // 6)]:
            time = branch.measures(s, q)["time"]
            if max(t.at(s, q) for t in branch.time) > time:
                continue  # loops that cut nothing count there: another member has the nest
            for pipeline in branch.pipelines:
                at = np.array([s]), np.array([q])
                assert pipeline.raised(*at, np.array([0]), time + 1, searching=True) <= time, branch.nest(s, q)
                compared += 1
    assert compared > 10


def told(layer: Layer, on: Machine, nest: Nest) -> tuple[int, int]:
    """The time of a nest, and the largest bound on it."""
    skeleton, loops = skeleton_of(layer, nest), nest.loops()
    tiles = {d: np.array([size], np.int64) for d, size in nest.tile(layer).items()}
    tables = nest_tables(layer, on, skeleton, Choices.product(chain_of(loops), tiles))
    time = price(layer, on, nest).time_ticks
    none = np.array([0])
    bounds = [int(one.raised(ONE, ONE, none, 2 * time + 10, searching=True)[0]) for one in tables.pipelines]
    return time, max(bounds)


W, IN, OUT = Hold("W"), Hold("IN"), Hold("OUT")
ARRAY = {"compute": {"model": "array", "rows": 1, "cols": 1, "cycle_ticks": 1}}


#: Layers, machines and nests whose tiles need less than others like them, and their times.
CASES: list[tuple[Layer, dict[str, Any], tuple[Item, ...], int]] = [
    # no compute: load of 2 and 1, store of 2
    (Layer.conv("none", channels=1, filters=1, size=(2, 1)), {}, (IN, W, OUT), 5),
    # rows of OUT share the tile of IN, though the columns are whole
    (
        Layer.conv("shared", channels=2, filters=1, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1)),
        {"sliding": True, "call": 20},
        (W, IN, Loop("r", 1), OUT),
        186,
    ),
    # partial sums come back behind the first step of their group
    (
        Layer.conv("first", channels=1, filters=1, size=(3, 1)),
        {"psum_first_read": True, **ARRAY},
        (W, IN, Loop("r", 1), OUT),
        9,
    ),
    # the first part of the kernel lies in the padding: no load for it
    (
        Layer.conv("empty", channels=1, filters=1, size=(1, 3), kernel=(3, 1), pad=(1, 0, 1, 0)),
        {"call": 8},
        (W, Loop("c", 1), OUT, Loop("i", 1), IN),
        47,
    ),
    # channels are cut outside OUT: the second half comes behind the first step of its tile
    (
        Layer.conv("parts", channels=8, filters=1, size=(3, 1)),
        {"in_bytes": 2, "out_bytes": 8},
        (W, Loop("r", 2, (2,)), Loop("n", 4), Loop("r", 1), IN, OUT),
        68,
    ),
]


@pytest.mark.parametrize(
    ("layer", "changes", "items", "time"), CASES,
    ids=lambda value: value.name if isinstance(value, Layer) else None,
)  # fmt: skip
def test_what_tiles_do_not_need_is_not_counted(
    layer: Layer, changes: dict[str, Any], items: tuple[Item, ...], time: int
) -> None:
    fields = {"psum_bytes": 1, "ocm_bytes": 4000, "buffering": "double", "overlap": "double_buffered"} | changes
    call = fields.pop("call", 0)
    on = Machine.model_validate(
        {"name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, **fields}
        | {"transfer": {"model": "dma", "call_ticks": call, "byte_ticks": 1}}
    )
    found, bound = told(layer, on, Nest(items))
    assert (found, bound <= found) == (time, True)
