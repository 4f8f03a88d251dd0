"""Time of levels where transfers overlap: bounds and plans against every nest of tiny layers, followed one by one."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from formulations.clock import ENDLESS, Clock
from formulations.levels.orders import fed, orders
from formulations.levels.overlap import AllOrders, hunted
from formulations.levels.problem import LevelPart, LevelsFormulation
from formulations.levels.search import Searched
from formulations.levels.terms import Terms
from formulations.problem import Goal
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.search.loop import decide_part
from tests.adversary.levels_nests import number
from tests.adversary.levels_time import Follower, drawn
from tests.effort import tries

#: Nests of a case at most.
MOST = 1000


class _Untied(LevelsFormulation):
    ties = ()  # type: ignore[assignment]


def unaided(layer: Layer, machine: Machine) -> int:
    """The bound, of rows alone: a search that knows a plan goes no higher than its time."""
    every, bounds = [*orders(layer, machine)], list[int]()
    assert machine.levels is not None
    for some in (every, *(fed(every, one.name) for one in machine.levels.memories[:-1])):
        found = [Searched(Terms(layer, machine, one, ("time",)), "time", {}).best(None, ENDLESS)[1] for one in some]
        bounds += [min(bound for bound in found if bound is not None)] if some else []
    return max(bounds)


@pytest.mark.parametrize("chunk", range(4))
def test_no_nest_of_a_tiny_layer_is_below_a_bound(chunk: int) -> None:
    """Plans are no better than the best nest; bounds at or below all in which no two loops make pieces of free sizes,

    and what is OPTIMAL no worse than these: of four rows with padding, two loops, of 3 and 2, may be better than one.
    """
    held = 0
    for k in range(tries(16, 1500)):
        made = drawn(random.Random(f"time/{chunk}/{k}"))
        if made is None or number(made[0]) > 60:
            continue
        layer, machine = made
        follower = Follower(layer, machine)
        nests = [*islice(follower.nests(), MOST + 1)]
        if len(nests) > MOST:
            continue
        said = decide_part(_Untied(), LevelPart(layer, machine), ("time",), "search", Clock.of(30.0))
        assert (said.schedule is None) == (not nests), (chunk, k)
        if said.schedule is None:
            continue
        held += 1
        least = min(follower.time(nest) for nest, _ in nests)
        space = min(follower.time(nest) for nest, even in nests if even)
        assert said.values["time"] == follower.time(said.schedule) >= least, (chunk, k)
        assert space >= unaided(layer, machine), (chunk, k)
        assert said.status != "OPTIMAL" or said.values["time"] <= space, (chunk, k)
    assert held


def test_a_bound_of_a_queue_is_below_those_of_the_orders_that_it_feeds() -> None:
    machine = load_machine("gap9_levels")
    layer = load_network("lenet5").layer("c3")
    every = [*orders(layer, machine)]
    least = {}
    for name, some in (("l3", fed(every, "l3")), ("l2", fed(every, "l2"))):
        assert all(set(one.sources) == {name} for one in some)
        assert len(some) < len(every) / 10
        found = [Searched(Terms(layer, machine, one, ("time",)), "time", {}).best(None, ENDLESS)[1] for one in some]
        least[name] = min(bound for bound in found if bound is not None)
    for one in every[::90]:
        bound = Searched(Terms(layer, machine, one, ("time",)), "time", {}).best(None, ENDLESS)[1]
        assert bound is not None
        assert bound >= max(least.values()), one.name


def test_a_bound_is_known_when_the_time_is_up() -> None:
    """After so many looks at the clock; whenever that is, the bound holds, and more time makes it no worse."""
    machine, layer = load_machine("gemmini_levels"), load_network("lenet5").layer("c1")
    part = LevelPart(layer, machine)
    plan = hunted(part, Goal("time"))
    assert plan is not None
    value = part.price(plan).measures["time"]
    bounds = []
    for looks in (1, 10, 10**6):
        left = iter(range(looks))
        clock = Clock(1.0, lambda left=left: 0.0 if next(left, None) is not None else 1.0)  # type: ignore[misc]
        piece = AllOrders(part)
        _, bound = piece.exact(Goal("time", below=value, clock=clock), "search")
        bounds.append(bound)
        assert bound is not None
        assert part.least("time") <= bound <= value
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
