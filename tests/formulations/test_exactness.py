"""Exactness as properties: on random layers and machines all routes to the optimum give the same integers.

reduced exhaustive = full exhaustive = CP-SAT = MILP in the objective asked for, and closed form = replay (with the
convolution executed), for every layer kind, layout, reuse pattern and machine option that tile plans know; and no nest
at all moves fewer bytes. Where a plan is FEASIBLE, its bound is at or below the unreduced optimum.
"""

from __future__ import annotations

import os
from itertools import pairwise
from math import prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.pins import parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.space import Space
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import lower_bound_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from hwmodels.transfer import PRICES, WINDOWS
from instances.machine.machine import Compute, Machine
from instances.network.workload import DIMS, Layer
from solver.problems.tiling import decide_space
from solver.search.loop import Answer
from tests.effort import tries

SOLVERS = ("cp-sat", "milp")
#: Larger spaces, in combinations of chains, are not searched unreduced (by solvers: not without bounds).
MOST_POINTS, MOST_SOLVED = 200_000, 20_000
#: Cases of the slow property; 100 take some minutes.
MANY = int(os.environ.get("CERTILE_EXAMPLES", tries(4, 24)))


@st.composite
def layers(draw: st.DrawFn, *, tiny: bool = False) -> Layer:
    """A small layer of any kind."""
    kind = draw(st.sampled_from(["conv", "conv", "depthwise", "grouped", "matmul", "pool", "eltwise"]))
    kernel = draw(st.integers(1, 3 if tiny else 4)), draw(st.integers(1, 3))
    size = draw(st.integers(kernel[0], 5 if tiny else 9)), draw(st.integers(kernel[1], 5 if tiny else 9))
    pad = tuple(draw(st.integers(0, kernel[i % 2] - 1)) for i in range(4))
    window = {
        "size": size,
        "kernel": kernel,
        "pad": (pad[0], pad[1], pad[2], pad[3]),
        "stride": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
    }
    few = st.integers(1, 3 if tiny else 6)
    bias = draw(st.booleans())
    if kind == "matmul":
        return Layer.matmul("x", rows=draw(few), inner=draw(few), cols=draw(few), batch=draw(st.integers(1, 2)))
    if kind == "eltwise":
        g, inputs = draw(few), draw(st.integers(1, 3))
        r, c = size
        return Layer(name="x", kind="eltwise", g=g, m=1, n=1, r=r, c=c, h=r, l=c, inputs=inputs, weights="none")
    if kind == "pool":
        one = Layer.conv("x", channels=1, filters=1, **window)
        return one.model_copy(update={"kind": "pool", "g": draw(few), "weights": "none"})
    if kind == "depthwise":
        g = draw(few)
        return Layer.conv("x", channels=g, filters=g, groups=g, bias=bias, **window)
    if kind == "grouped":
        return Layer.conv(
            "x", channels=2 * draw(st.integers(1, 2)), filters=2 * draw(st.integers(1, 2)), groups=2, **window
        )
    return Layer.conv("x", channels=draw(few), filters=draw(few), batch=draw(st.integers(1, 2)), bias=bias, **window)


@st.composite
def machines(draw: st.DrawFn, *, cores: bool, serial: bool = False) -> Machine:
    """A machine with any mix of the options that tile plans know."""
    word, edges = st.sampled_from([1, 2]), draw(st.sampled_from(["true", "true", "uniform"]))
    fields: dict[str, object] = {
        "in_bytes": draw(word),
        "w_bytes": draw(word),
        "out_bytes": draw(word),
        "psum_bytes": draw(st.sampled_from([1, 4])),
        "bias_bytes": draw(st.sampled_from([0, 4])),
        "in_layout": draw(st.sampled_from(["CHW", "HWC"])),
        "out_layout": draw(st.sampled_from(["CHW", "HWC"])),
        "w_layout": draw(st.sampled_from(["OIHW", "OHWI"])),
        "edge_tiles": edges,
        "psum_first_read": draw(st.booleans()),
        "reserved_bytes": draw(st.sampled_from([0, 5])),
        "overlap": draw(st.sampled_from(["auto", "serial", "transfer_only"])),
        "transfer": {
            **{one.field: draw(st.integers(0, 9)) for one in PRICES.values() if not one.size},
            **{one.field: draw(st.sampled_from([0, 3])) for one in WINDOWS},
            **{one.size: draw(st.sampled_from([4, 8, 16])) for one in WINDOWS},
            "burst_count": "aligned" if edges == "uniform" else draw(st.sampled_from(["aligned", "address"])),
        },
        "compute": draw(
            st.sampled_from(
                [
                    Compute(),
                    Compute(model="tile", cycle_ticks=4, macs_per_cycle=3),
                    Compute(model="array", cycle_ticks=2, rows=2, cols=4),
                ]
            )
        ),
    }
    buffer = st.integers(20, 200)
    if cores:
        fields |= {"tles": draw(st.sampled_from([2, 4])), "tlts": draw(st.integers(1, 3))}
        fields |= {f"{b}_buffer_bytes": draw(buffer) for b in ("in", "w", "out")}
        fields |= {"dram": draw(st.sampled_from(["shared", "per_tle"])), "problem": "slicing"}
        level = st.sampled_from(["none", "none", "tle", "chip"])
        fields |= {"broadcast": {"input": draw(level), "weights": draw(level)}, "layer_ticks": draw(st.integers(0, 5))}
    else:
        buffering = "single" if serial else draw(st.sampled_from(["single", "double"]))
        fields |= {"ocm_bytes": draw(st.integers(20 if serial else 40, 600)), "buffering": buffering}
        fields |= {"sliding": fields["edge_tiles"] == "true" and draw(st.booleans())}
        fields |= {"im2col_rows": draw(st.sampled_from([0, 2]))}
        fields |= {"im2col_channels": draw(st.sampled_from(["layer", "tile"]))}
    return Machine.model_validate({"name": "m", "tick_ps": 1, "byte_fj": 7, "mac_fj": 3, **fields})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layer, Machine, str, tuple[str, ...]]:
    """A layer, a machine, the first objective and the pins that keep the holds uniform."""
    machine = draw(machines(cores=draw(st.booleans())))
    return draw(layers()), machine, draw(st.sampled_from(["time", "bytes", "energy"])), ("holds=uniform",)


@st.composite
def free_cases(draw: st.DrawFn) -> tuple[Layer, Machine, str, tuple[str, ...]]:
    """A tiny layer with free hold depths and pieces, on a machine whose time is a table and counts no bursts."""
    machine = draw(machines(cores=draw(st.booleans()), serial=True))
    transfer = machine.transfer.model_copy(update=dict.fromkeys((one.field for one in WINDOWS), 0))
    return draw(layers(tiny=True)), machine.model_copy(update={"transfer": transfer}), draw(
        st.sampled_from(["time", "bytes", "energy"])
    ), draw(st.sampled_from([(), (), ("pieces=even",)]))  # fmt: skip


def space(layer: Layer, machine: Machine, pins: tuple[str, ...], *, full: bool = False) -> Space:
    """The space of the machine's problem."""
    formulation = NESTS[machine.problem]
    return formulation.build(layer, machine, parse_pins(pins, formulation.decisions), full=full)


def points(of: Space) -> int:
    """Combinations of the chains that are listed."""
    total = 0
    for member in of.members:
        _, tiles = member.chains(("time", "bytes"))
        total += prod(len(tiles[d]) for d in "brcgmn") * max(1, len(member.slides))
    return total


def agree(case: tuple[Layer, Machine, str, tuple[str, ...]]) -> None:
    """All engines, the unreduced space and the replay give one answer."""
    layer, machine, objective, pins = case
    reduced = space(layer, machine, pins)
    best = decide_space(reduced, (objective,))
    unreduced(case, best)
    known = points(reduced) <= MOST_SOLVED
    for engine in SOLVERS:
        for bounding in (True, False) if known else (True,):
            found = decide_space(reduced, (objective,), engine, bounding=bounding)
            if not best.values or not found.values:
                assert (found.status, found.values) == (best.status, best.values)
                continue
            assert found.bound <= best.values[objective] <= found.values[objective]
            if machine.timing != "double_buffered":
                # The solvers may end with a gap in double-buffered time, never with a wrong bound.
                assert (found.status, found.values[objective]) == (best.status, best.values[objective])
            assert (found.status == "OPTIMAL") <= (found.values[objective] == best.values[objective])
    if best.schedule is None:
        assert best.status == "INFEASIBLE"
        assert reduced.explain()
        return
    closed, walked = price(layer, machine, best.schedule), replay(layer, machine, best.schedule)
    assert closed.measures == best.values
    assert walked.outcome == closed
    assert walked.ok
    assert walked.executed
    assert reduced.contains(best.schedule)
    assert lower_bound_bytes(layer, machine) <= closed.bytes or machine.edge_tiles == "uniform"


def unreduced(case: tuple[Layer, Machine, str, tuple[str, ...]], best: Answer[Nest]) -> None:
    """The unreduced space has the same optimum; in time cut freely it may have a lower one, not below the bound."""
    layer, machine, objective, pins = case
    whole = space(layer, machine, pins, full=True)
    if points(whole) > MOST_POINTS:
        return
    full = decide_space(whole, (objective,), bounding=False)
    if not best.values or not full.values:
        assert (full.status, full.values) == (best.status, best.values)
        return
    assert best.bound <= full.values[objective] <= best.values[objective]
    if best.status == "OPTIMAL" or objective != "time" or pins:
        assert full.values[objective] == best.values[objective]


@pytest.mark.slow(3)
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_every_route_to_the_optimum_agrees(case: tuple[Layer, Machine, str, tuple[str, ...]]) -> None:
    agree(case)


@settings(max_examples=tries(1, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(free_cases())
def test_every_route_agrees_with_free_holds(case: tuple[Layer, Machine, str, tuple[str, ...]]) -> None:

    agree(case)


def any_nest(draw: st.DrawFn, layer: Layer, machine: Machine, loops: int = 2) -> Nest:
    """Any order of up to `loops` loops over every dimension, any steps or places, Holds at any depth and buffers."""
    items: list[Item] = []
    ends = {d: {0, layer.extent(d)} for d in DIMS}
    for d in draw(st.permutations(DIMS * loops)):
        if draw(st.booleans()):
            cuts: tuple[int, ...] = ()
            most = max(b - a for a, b in pairwise(sorted(ends[d])))
            step = draw(st.integers(1, most))
            places = range(1, layer.extent(d))
            if d in "rc" and places and machine.edge_tiles == "true" and draw(st.integers(0, 2)) == 0:
                cuts = tuple(sorted(draw(st.sets(st.sampled_from(places), min_size=1))))
                ends[d] |= set(cuts)
                step = max(b - a for a, b in pairwise(sorted(ends[d])))
            else:
                ends[d] |= {x for a, b in pairwise(sorted(ends[d])) for x in range(a, b, step)}
            items.append(Loop(d, step, cuts))
    for operand in layer.operands:
        buffers = draw(st.sampled_from([None, 1, 2])) if machine.buffering == "choose" else None
        items.insert(draw(st.integers(0, len(items))), Hold(operand, buffers))
    return Nest(tuple(items))


@pytest.mark.slow(3)
@settings(max_examples=tries(8, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(layers(tiny=True), machines(cores=False, serial=True), st.data())
def test_no_nest_whatsoever_moves_fewer_bytes(layer: Layer, machine: Machine, data: st.DataObject) -> None:
    """The optimum of the canonical nests is at or below every nest that fits in what it needs: 40 cases."""
    nest = any_nest(data.draw, layer, machine)
    moved = price(layer, machine, nest)
    exactly = machine.model_copy(update={"ocm_bytes": moved.occupancy_bytes["ocm"]})
    best = decide_space(space(layer, exactly, ()), ("bytes",))
    assert best.bound <= moved.bytes
    if best.status == "OPTIMAL" or all(item.cuts == () for item in nest.items if isinstance(item, Loop)):
        assert best.values
        assert best.values["bytes"] <= moved.bytes


@settings(max_examples=tries(37, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(layers(), machines(cores=False), st.data())
def test_closed_form_is_the_replay_of_any_nest(layer: Layer, machine: Machine, data: st.DataObject) -> None:
    """Any order of the loops, any sizes, holds at any depth: price and replay agree in every count."""
    nest = any_nest(data.draw, layer, machine)
    assert replay(layer, machine, nest, execute=False).outcome == price(layer, machine, nest)
