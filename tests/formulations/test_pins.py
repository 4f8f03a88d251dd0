"""Pins: every operator on every decision, what is refused, and conflicts that are named and minimal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.pins import Decision, Pin, Pins, parse_pins
from formulations.tiling.family import Restrictions
from formulations.tiling.problem import NESTS
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from tests.effort import tries
from tests.small import byte_machine

DECISIONS = {
    "T_C": Decision("columns"),
    "kind": Decision("a choice", ("alpha", "Beta")),
    "way": Decision("an open choice", ("any",), open=True),
    "share": Decision("a number", decimal=True),
}
#: Every dimension has an extent above 1: batch 2, 2 groups of 3 -> 3 channels, 4x4, kernel 2x2.
LAYER = Layer.conv(
    "x", channels=6, filters=6, groups=2, batch=2, size=(4, 4), kernel=(2, 2), pad=(0, 0, 1, 1)
)  # fmt: skip
OPERATORS = {
    "=2": lambda v: v == 2, "!=2": lambda v: v != 2, "<=2": lambda v: v <= 2, ">=2": lambda v: v >= 2,
    "%2": lambda v: v % 2 == 0,
}  # fmt: skip


def machine(problem: str, size: int = 10**6) -> Machine:
    three = dict.fromkeys(("in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes"), size)
    buffers = {"ocm_bytes": size} if problem == "tiling" else {**three, "tles": 2, "tlts": 1}
    return byte_machine(problem=problem, **buffers)


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("T_C=73", Pin("T_C", "=", "73")),
        (" T_C >= 073 ", Pin("T_C", ">=", "73")),
        ("T_C!=1", Pin("T_C", "!=", "1")),
        ("T_C%16", Pin("T_C", "%", "16")),
        ("kind=ALPHA", Pin("kind", "=", "alpha")),
        ("kind!=beta", Pin("kind", "!=", "Beta")),
        ("way=ANY", Pin("way", "=", "any")),
        ("way=some new way", Pin("way", "=", "some new way")),
        ("share<=1.05", Pin("share", "<=", "1.05")),
        ("share>=020", Pin("share", ">=", "020")),
    ],
)
def test_reading(text: str, pin: Pin) -> None:
    assert parse_pins([text], DECISIONS) == Pins((pin,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T_C", "expected NAME=VALUE"),
        ("=3", "expected NAME=VALUE"),
        ("T_C<3", "expected NAME=VALUE"),
        ("T_c=3", r"unknown decision 'T_c' \(did you mean T_C\?\), expected T_C, kind, share or way"),
        ("zzz=3", "unknown decision 'zzz', expected"),
        ("T_C=0", "T_C takes a positive integer, got '0'"),
        ("T_C=-4", "positive integer"),
        ("T_C=1e3", "positive integer"),
        ("T_C=1234567890", "positive integer"),
        ("T_C%0", "positive integer"),
        ("kind=gamma", "kind takes Beta or alpha, got 'gamma'"),
        ("kind<=alpha", "only = and != apply"),
        ("way%2", "only = and != apply"),
        *[(f"share<={text}", "takes a number such as 1.05") for text in ("-1", ".5", "1.", "1e3", "1.0000001", "x")],
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_pins([text], DECISIONS)


def test_several_demands_hold_together() -> None:
    pins = parse_pins(["T_C>=3", "T_C%2", "kind!=alpha", "T_C!=6"], DECISIONS)
    assert pins.sizes("T_C", np.arange(1, 11)).tolist() == [4, 8, 10]
    assert pins.sizes("T_R", np.arange(1, 4)).tolist() == [1, 2, 3]
    assert not pins.allows("kind", "alpha")
    assert pins.allows("kind", "Beta")
    assert pins.allows("other", "anything")
    assert [str(p) for p in pins.of("T_C")] == ["T_C>=3", "T_C%2", "T_C!=6"]
    assert pins.without(Pin("T_C", "%", "2")).to_json() == ["T_C>=3", "kind!=alpha", "T_C!=6"]


def test_a_demand_stated_twice_counts_once() -> None:
    assert parse_pins(["T_C=3", "T_C = 03", "T_C<=3"], DECISIONS).to_json() == ["T_C=3", "T_C<=3"]


def test_what_is_written_is_read_again() -> None:
    pins = parse_pins(["T_C>=3", "kind!=alpha", "way=x y"], DECISIONS)
    assert parse_pins(pins.to_json(), DECISIONS) == pins


# ---- on the formulations -----------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("problem", ["tiling", "slicing"])
@pytest.mark.parametrize("full", [False, True])
def test_every_operator_on_every_tile_size(problem: str, dim: str, op: str, full: bool) -> None:
    formulation = NESTS[problem]
    pins = parse_pins([f"T_{dim.upper()}{op}"], formulation.decisions)
    space = formulation.build(LAYER, machine(problem), pins, full=full)
    sizes = {int(v) for b in space.branches for v in b.choices.values(dim)}
    # slicing cuts the rows or the filters among 2 TLEs, so a core's share is half of 4 rows or ceil(3/2) filters
    extent = {"m": 3, "r": 4}.get(dim, LAYER.extent(dim))
    allowed = {v for v in range(1, extent + 1) if OPERATORS[op](v)}
    assert sizes
    assert sizes <= allowed
    if full:
        assert sizes == allowed


@pytest.mark.parametrize(("pin", "even"), [
    ("T_R%2", "r"), ("T_R=2", ""), ("T_R!=2", ""), ("T_R<=2", ""), ("pieces=even", DIMS), ("pieces=free", ""),
    ("sizes=divisors", DIMS), ("sizes=free", ""),
])  # fmt: skip
def test_pins_that_ask_for_equal_steps(pin: str, even: str) -> None:
    pins = parse_pins([pin], NESTS["tiling"].decisions)
    assert Restrictions.of(LAYER, machine("tiling"), pins).even == set(even)
    uniform = machine("tiling").model_copy(update={"edge_tiles": "uniform"})
    assert Restrictions.of(LAYER, uniform, pins).even == set(DIMS)


@pytest.mark.parametrize(
    ("problem", "name", "values"),
    [
        ("tiling", "order", {"IS", "OS", "WS"}),
        ("slicing", "dataflow", {"IS", "OS", "WS"}),
        ("slicing", "partition", {"KS", "KS&OFM", "OFM"}),
    ],
)
def test_every_choice_can_be_asked_for_or_left_out(problem: str, name: str, values: set[str]) -> None:
    formulation = NESTS[problem]

    def left(*pins: str) -> set[str]:
        pinned = parse_pins(("holds=uniform", *pins), formulation.decisions)
        space = formulation.build(LAYER, machine(problem), pinned, full=True)
        return {b.label[name] for b in space.branches}

    assert left() == values
    for value in values:
        assert left(f"{name}={value}") == {value}
        assert left(f"{name}!={value}") == values - {value}
    assert left(*(f"{name}!={v}" for v in values)) == set()


def test_pins_never_help() -> None:
    formulation = NESTS["tiling"]
    on = machine("tiling", 40)
    free = _least_bytes(formulation.build(LAYER, on, Pins()).branches)
    for text in ("T_C=3", "T_R<=2", "T_M>=2", "T_N%2", "T_G!=1", "order=WS", "order!=OS", "sizes=divisors"):
        space = formulation.build(LAYER, on, parse_pins([text], formulation.decisions))
        assert not space.infeasible
        assert _least_bytes(space.branches) >= free


def _least_bytes(branches: tuple[object, ...]) -> int:
    best = []
    for b in branches:
        table = b.bytes.matrix()
        best.append(int(table[b.feasible()].min()) if b.feasible().any() else 2**60)
    return min(best)


@settings(max_examples=tries(6, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_conflict_is_minimal(data: st.DataObject) -> None:
    """All that is named conflicts; take away any one of it, a pin or the memory's size, and a plan fits."""
    problem = data.draw(st.sampled_from(["tiling", "slicing"]))
    formulation = NESTS[problem]
    size = st.builds(
        "T_{}{}{}".format, st.sampled_from("MNRCG"), st.sampled_from(["=", "<=", ">=", "%", "!="]), st.integers(1, 5)
    )
    names = ["order", "sizes"] if problem == "tiling" else ["dataflow", "partition"]
    choice = st.sampled_from(names).flatmap(
        lambda n: st.builds(f"{n}{{}}{{}}".format, st.sampled_from(["=", "!="]), st.sampled_from(_values(problem, n)))
    )
    pins = parse_pins(data.draw(st.lists(st.one_of(size, choice), max_size=5)), formulation.decisions)
    on = machine(problem, data.draw(st.sampled_from([1, 2, 6, 20, 60])))
    space = formulation.build(LAYER, on, pins)
    conflict = space.explain()
    assert bool(conflict) == space.infeasible
    memories = [c.split(":")[0].removeprefix("memory ") for c in conflict if c.startswith("memory")]
    named = Pins(tuple(p for p in pins.pins if f"pin {p}" in conflict))
    assert len(memories) + len(named.pins) == len(conflict)
    if not conflict:
        return
    fields = {m: ("ocm_bytes" if m == "ocm" else f"{m}_buffer_bytes") for m in on.memories}
    relaxed = on.model_copy(update={fields[m]: 2**40 for m in fields if m not in memories})
    assert formulation.build(LAYER, relaxed, named).infeasible
    for pin in named.pins:
        assert not formulation.build(LAYER, relaxed, named.without(pin)).infeasible
    for memory in memories:
        wider = relaxed.model_copy(update={fields[memory]: 2**40})
        assert not formulation.build(LAYER, wider, named).infeasible


def _values(problem: str, name: str) -> tuple[str, ...]:
    values = NESTS[problem].decisions[name].values
    return values[1:] if name == "order" else values
