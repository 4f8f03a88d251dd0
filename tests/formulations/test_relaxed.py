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
from formulations.pins import parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from formulations.tiling.space import Space, least_of
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.pieces import Window
from hwmodels.nest.price.relaxed import ideal_cut, ideal_windows, part_window
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.adversary.anneal import Goal, searched
from tests.adversary.layers import random_layer, random_machine
from tests.adversary.moves import Moves, nest_of
from tests.effort import tries
from tests.formulations.test_cuts import compositions, fetched
from tests.formulations.test_cuts import windows as some_windows

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


def bound(space: Space, measure: str) -> int | None:
    """The least of the tables of bounds of all members, whether or not their candidates are exact."""
    least: list[int] = []
    for member in space.members:
        branch = member.branch((measure,), ideal=True)
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
        least = bound(space, measure)
        assert least <= value
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
