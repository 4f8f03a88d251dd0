"""Bounds on all nests: none is above what a nest costs that fits, whatever its loops, pieces and Holds."""

from __future__ import annotations

import os
import random
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from formulations.clock import Clock
from formulations.pins import Pins, parse_pins
from formulations.tiling import classes
from formulations.tiling.classes import classes_of
from formulations.tiling.member import Member
from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from formulations.tiling.space import Space, least_of
from hwmodels.nest.price.choices import AXIS
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import Window
from hwmodels.nest.price.relaxed import ideal_cut, ideal_windows, part_window
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.adversary.anneal import Goal, searched
from tests.adversary.layers import random_layer, random_machine
from tests.adversary.moves import Moves, nest_of
from tests.effort import tries
from tests.formulations.test_cuts import compositions, fetched
from tests.formulations.test_cuts import windows as some_windows
from tests.small import byte_machine

#: Prices of the walk that makes a random nest a good one.
TRIES = 150
#: Cases of the slow property.
MANY = int(os.environ.get("CERTILE_EXAMPLES", tries(4, 10)))


def near(rng: random.Random, *, cores: bool) -> tuple[Layer, Machine, dict[str, int]]:
    """A tiny layer, a machine whose memories are full with some nest, and what the best nests found there cost."""
    while True:
        layer = random_layer(rng, tiny=True)
        machine = random_machine(rng, layer, cores=cores)
        moves = Moves(layer, machine, rng)
        form = moves.start()
        for _ in range(rng.randint(0, 6)):
            form = moves.changed(form)
        try:
            needs = price(layer, machine, nest_of(layer, form)).occupancy_bytes
        except InputError:  # resident rows on several cores, or beside tiles of one size
            continue
        names = {name: f"{name}_bytes" if name == "ocm" else f"{name}_buffer_bytes" for name in needs}
        machine = machine.model_copy(update={names[name]: max(1, need) for name, need in needs.items()})
        found = {}
        for measure in ("bytes", "time"):
            best = searched(Goal(layer, machine, (measure,)), [form], 0, rng, tries=TRIES)
            if best is not None:
                found[measure] = best.vector[0]
        if found:
            return layer, machine, found


def bound(space: Space, measure: str, *, finer: bool = False) -> int | None:
    """The least of the tables of bounds of all members, whether or not their candidates are exact."""
    least: list[int] = []
    for member in space.members:
        rough = [branch for branch in member.bounds((measure,)) if not branch.empty]
        for branch in [one for b in rough for one in member.finer(b, (measure,), {})] if finer else rough:
            if not branch.empty:
                values = np.max([table.matrix() for table in branch.tables(measure)], axis=0)[branch.feasible()]
                least += [int(values.min())] if values.size else []
    return min(least, default=None)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_pieces_are_at_least_as_many_and_as_long(extent: int, burst: int, lanes: int) -> None:
    for sizes in compositions(extent):
        ideal = ideal_cut(extent, np.array([max(sizes)]))
        assert ideal.number[0] <= len(sizes)
        assert ideal.sum[0] == extent
        assert ideal.largest[0] <= max(sizes)
        assert ideal.ceil_sum(lanes)[0] <= sum(-(-size // lanes) for size in sizes)
        partial = [size for size in sizes if size < extent]
        assert ideal.full(extent)[0] == len(sizes) - len(partial)
        assert ideal.partial_windows(extent, 3, burst)[0] <= sum(-(-size * 3 // burst) for size in partial)


@settings(max_examples=tries(15, 60))
@given(some_windows())
def test_windows_fetch_at_least_what_is_bounded(given_: tuple[Window, int]) -> None:
    """Every way to cut up to 6 outputs, and the kernel: calls, rows and the largest tile."""
    window, extent = given_[0], min(given_[1], 6)
    for sizes, taps in product(compositions(extent), compositions(window.taps)):
        parts = [window.part(a, b) for a, b in pairwise(np.cumsum([0, *taps]).tolist())]
        spans = list(pairwise(np.cumsum([0, *sizes]).tolist()))
        rows = [fetched(part, a, b) for part in parts for a, b in spans]
        ideal = ideal_windows(0, extent, np.array([max(sizes)]), np.array([max(taps)]), window, "")
        assert ideal.number[0] <= sum(map(bool, rows))
        assert ideal.sum[0] <= sum(rows)
        assert ideal.largest[0] <= max(rows)


@given(some_windows())
def test_no_part_of_a_kernel_sees_less_than_its_window(given_: tuple[Window, int]) -> None:
    window, extent = given_
    for size in range(1, window.taps + 1):
        least = part_window(window, size)
        for first, begin in product(range(window.taps - size + 1), range(extent)):
            part = window.part(first, first + size)
            for end in range(begin + 1, extent + 1):
                assert fetched(least, begin, end) <= fetched(part, begin, end)


def bounded(seed: int, cores: bool) -> None:
    """Tables of bounds, bounds that price nothing, and those of plans, on one random case."""
    layer, machine, known = near(random.Random(seed), cores=cores)
    formulation = NESTS[machine.problem]
    space = formulation.build(layer, machine, parse_pins((), formulation.decisions))
    for measure, value in known.items():
        assert bound(space, measure) <= value
        assert bound(space, measure, finer=True) <= value
        assert min(least_of(member, measure) for member in space.members) <= value
        search = Search(space, (measure,))
        for one in space.members:
            search.open(one, measure)
        beyond = search._open
        exact = any(member.exact((measure,)) for member in space.members)  # what they miss is no nest beyond
        assert exact or beyond is None or beyond <= value
        found = decide_space(space, (measure,), clock=Clock.of(20))
        assert found.values
        assert found.bound <= min(value, found.values[measure])
        assert found.status != "OPTIMAL" or found.bound == found.values[measure]


@pytest.mark.slow(60)
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
@example(5000045, False)  # larger steps in snake order were larger than the layer
@example(2000084, False)  # all rows that are used lie on chip: no call for them
@example(8314, True)  # one core has fewer filters: its innermost real loop is another one
@example(86450, True)  # what cuts nothing, where IN may slide along several loops, was left out
@given(st.integers(0, 2**32), st.booleans())
def test_no_bound_is_above_a_nest_that_fits(seed: int, cores: bool) -> None:
    """Cases that were wrong once and others; CERTILE_EXAMPLES says how many."""
    bounded(seed, cores)


def test_vectors_are_no_bounds_on_cores_of_several_sizes() -> None:
    """Five filters of one byte on two clusters, a byte of memory for them: 3 + 2 loads of W, and not 3 each."""
    rooms = {"ocm_bytes": None, "in_buffer_bytes": 9, "w_buffer_bytes": 1, "out_buffer_bytes": 9}
    machine = byte_machine(**rooms, tles=2, problem="slicing", overlap="serial", transfer=Transfer(call_ticks=1))
    layer = Layer.conv("x", channels=1, filters=5, size=(2, 1))
    space = NESTS["slicing"].build(layer, machine, Pins())
    assert decide_space(space, ("time",)).values["time"] == 2 + 5 + 2
    assert bound(space, "time") <= bound(space, "time", finer=True) <= 2 + 5 + 2


@pytest.mark.parametrize(("layer", "rooms", "bursts", "least"), [
    # IN of 2 rows of 5 bytes: parts of 2, 2 and 1 taps are 3 + 3 + 2 bursts, for 4 outputs of 2 filters; W takes 3
    (Layer.conv("x", channels=1, filters=2, size=(11, 1), kernel=(5, 1), stride=(2, 1)), (5, 10, 100, 2), 4, 43),
    # IN of 4 rows: with one tap two outputs fit, with all three only one does
    (Layer.conv("x", channels=1, filters=2, size=(9, 1), kernel=(3, 1), stride=(2, 1)), (2, 8, 4, 3), 2, 30),
])  # fmt: skip
def test_bursts_where_kernels_are_cut(layer: Layer, rooms: tuple[int, int, int, int], bursts: int, least: int) -> None:
    """Chains of bounds replace others, and pieces are too large, only as parts of the kernel say."""
    names = ("in_bytes", "in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes")
    transfer = Transfer(burst_ticks=1, burst_bytes=bursts)
    machine = byte_machine(ocm_bytes=None, overlap="serial", transfer=transfer, **dict(zip(names, rooms, strict=True)))
    found = decide_space(NESTS["tiling"].build(layer, machine, Pins()), ("time",))
    assert (found.status, found.values["time"]) == ("OPTIMAL", least)


def test_numbers_of_pieces_begin_with_one() -> None:
    """Single taps with stride 2 leave out rows: loops over both are counted, and those over rows may cut nothing."""
    layer = Layer.conv("x", channels=1, filters=1, size=(7, 1), kernel=(2, 1), stride=(2, 1))
    counted = 0
    for member in NESTS["tiling"].build(layer, byte_machine(ocm_bytes=9), Pins()).members:
        for one in classes_of(member, ("time",)):
            if one.ideal.get("r") == "counts":
                ways = set(map(tuple, one.steps["r"].tolist()))
                depth = one.steps["r"].shape[1]
                assert ways == {x for x in product(range(1, 4), repeat=depth) if list(x) == sorted(x)}
                counted += 1
    assert counted


def test_bounds_that_no_nest_is_made_of_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven filters on two lanes: results of 3, 2, 2, weights of 2, 1, 2, 2, are 1 + 3 + 4 calls and four rounds."""
    layer = Layer.conv("x", channels=1, filters=7, size=(1, 1))
    array = {"compute": Compute(model="array", rows=2, cols=1, cycle_ticks=9), "overlap": "serial"}
    machine = byte_machine(ocm_bytes=6, transfer=Transfer(call_ticks=1), **array)
    found = decide_space(NESTS["tiling"].build(layer, machine, Pins()), ("time",))
    assert (found.status, found.values["time"], found.bound) == ("OPTIMAL", 4 * 9 + 8, 44)
    monkeypatch.setattr(Member, "made", lambda *_: ())
    found = decide_space(NESTS["tiling"].build(layer, machine, Pins()), ("time",))
    assert (found.status, found.values["time"], found.bound) == ("FEASIBLE", 45, 44)


def test_a_nest_that_attains_a_bound_and_exceeds_what_is_settled_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One result of 3 taps with dilation 2: 3 + 3 + 1 bytes tap by tap, in 5 runs. Fewer runs move more.

    Bounds of nests with fewer runs may seem to move 7 bytes, and nests that are made of them move more: they stay open,
    until all ways to cut the kernel are looked at.
    """
    layer = Layer.conv("x", channels=1, filters=1, size=(5, 1), kernel=(3, 1), dilation=(2, 1))
    machine = byte_machine(ocm_bytes=9, sliding=True, in_layout="HWC", transfer=Transfer(segment_ticks=1))
    every = Search(NESTS["tiling"].build(layer, machine, Pins()), ("bytes", "time"))
    assert every.run() is not None
    assert every.proven == ("bytes", "time")
    monkeypatch.setattr(classes, "_EVERY", 0)
    found = Search(NESTS["tiling"].build(layer, machine, Pins()), ("bytes", "time"))
    best = found.run()
    assert best is not None
    assert (best.measures["bytes"], best.measures["time"]) == (7, 5)
    assert found.bounds["time"] < 5
    assert found.proven == ("bytes",)


def test_bounds_of_bytes_below_the_plan_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three results of rows -1 and 1, 1 and 3, 3 and 5 of two channels: rows 1 to 5, 4 weights, 3 results are 17 bytes.

    Parts of the kernel might leave out rows 2 and 4, by classes: 13 bytes. No way to cut it does.
    """
    layer = Layer.conv(
        "x", channels=2, filters=1, size=(6, 1), kernel=(2, 1), stride=(2, 1), dilation=(2, 1), pad=(1, 0, 1, 0),
    )  # fmt: skip
    space = NESTS["tiling"].build(layer, byte_machine(ocm_bytes=14, sliding=True), Pins())
    found = decide_space(space, ("bytes",))
    assert (found.status, found.values["bytes"]) == ("OPTIMAL", 17)
    monkeypatch.setattr(classes, "_EVERY", 0)
    found = decide_space(space, ("bytes",))
    assert (found.status, found.values["bytes"], found.bound) == ("FEASIBLE", 17, 13)


@pytest.mark.parametrize(("channels", "filters", "rows", "room", "least"), [
    (2, 3, 5, 9, (144, 93)), (3, 4, 6, 14, (160, 132)),
])  # fmt: skip
def test_few_ways_to_cut_a_kernel_are_all_looked_at(
    channels: int, filters: int, rows: int, room: int, least: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which parts of a kernel lie in the padding, and fetch nothing, no class tells: bounds are less."""
    layer = Layer.conv("x", channels=channels, filters=filters, size=(rows, 1), kernel=(3, 1), pad=(1, 0, 1, 0))
    transfer = Transfer(call_ticks=1, segment_ticks=3)
    machine = byte_machine(ocm_bytes=room, sliding=True, transfer=transfer, overlap="serial")
    space = NESTS["tiling"].build(layer, machine, Pins())
    found = decide_space(space, ("time", "bytes"))
    assert (found.status, found.values["time"], found.values["bytes"]) == ("OPTIMAL", *least)
    monkeypatch.setattr(classes, "_EVERY", 0)
    found = decide_space(space, ("time", "bytes"))
    assert found.status == "FEASIBLE"
    assert found.bound < least[0]


def test_all_ways_to_cut_rows_and_kernel_rows_are_listed_once() -> None:
    """One loop can cut E outputs in 2 to the power of E - 1 ways, two loops in 3 to the power of it."""
    layer = Layer.conv("x", channels=1, filters=1, size=(4, 3), kernel=(3, 2), pad=(1, 1, 1, 0))
    compared = 0
    for member in NESTS["tiling"].build(layer, byte_machine(ocm_bytes=40), Pins()).members:
        for rough in member.bounds(("time",)):
            one = classes.finer(member, rough.choices, ("time",))
            for d, kernel in (("r", "i"), ("c", "j")):
                if one.ideal.get(kernel) == "exact":
                    found = np.concatenate([one.steps[d], one.steps[kernel]], axis=1)
                    ways = [(member.skeleton.levels(x) + 1) ** (layer.extent(x) - 1) for x in (d, kernel)]
                    assert len(found) == len(np.unique(found, axis=0)) == ways[0] * ways[1]
                    compared += 1
    assert compared > 10


@pytest.mark.parametrize("sliding", [False, True])
def test_ways_to_cut_rows_and_kernel_rows_have_their_price(sliding: bool) -> None:
    """Where all ways are listed a table is the time of a nest, or above it where a loop that counts moves nothing."""
    layer = Layer.conv("x", channels=1, filters=1, size=(4, 3), kernel=(3, 2), pad=(1, 1, 1, 0), stride=(1, 2))
    transfer = Transfer(call_ticks=5, segment_ticks=3, byte_ticks=1)
    machine = byte_machine(ocm_bytes=40, sliding=sliding, transfer=transfer, overlap="serial")
    rng, measures, compared, equal = random.Random(0), ("time", "bytes"), 0, 0
    for member in NESTS["tiling"].build(layer, machine, Pins()).members:
        for rough in member.bounds(measures):
            for one in () if rough.empty else member.finer(rough, measures, {}):
                if one.empty or set((one.choices.ideal or {}).values()) != {"exact"}:
                    continue
                for s in rng.sample(range(one.choices.shape[0]), min(30, one.choices.shape[0])):
                    d, level = one.choices.slide(s) or ("", 0)
                    if d and not member.chains_cut(one.choices, d, level)[one.choices.index[AXIS[d]][s]]:
                        continue  # it slides along another loop, as a nest of another order
                    for nest in member.made(one, s, 0):
                        values = {m: max(table.at(s, 0) for table in one.tables(m)) for m in measures}
                        priced = nest.measures(0, 0)
                        assert all(priced[m] <= values[m] for m in measures), nest.nest(0, 0)
                        compared += 1
                        equal += {m: priced[m] for m in measures} == values
    assert 2 * equal > compared > 100


def test_pins_that_no_step_of_a_kernel_meets_leave_a_bound() -> None:
    """Three taps are never cut in parts of 5: nothing is left, and a bound of nothing is asked for when time is up."""
    formulation = NESTS["tiling"]
    layer = Layer.conv("x", channels=2, filters=4, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
    space = formulation.build(layer, load_machine("scratchpad_64k"), parse_pins(["T_I=5"], formulation.decisions))
    assert {least_of(member, "time") for member in space.members} == {0}
