"""Exact fronts: all plans that no other plan beats in every axis, against brute force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from formulations.pins import Pins, parse_pins
from formulations.tiling import front
from formulations.tiling.front import Point, front_of_space
from formulations.tiling.problem import NESTS
from formulations.tiling.search import Search
from formulations.tiling.space import Pick, Space
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver.cli.main import main
from tests.formulations.test_exactness import MOST_POINTS, free_cases, space

LAYER = Layer.conv("x", channels=3, filters=4, size=(5, 5), kernel=(3, 3), pad=(1, 1, 1, 1))
MACHINE = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=140, sliding=True,
    transfer=Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1),
)  # fmt: skip


def brute(found: Space, axes: tuple[str, ...]) -> set[tuple[int, ...]]:
    """The values of every choice of every member of an unreduced space, without those that others beat."""
    values = set()
    for member in found.members:
        branch = member.branch(("time", "bytes"))
        if branch.empty:
            continue
        tables = {"time": branch.time, "bytes": (branch.bytes,), "ocm": branch.tables("ocm")}
        fits = branch.feasible()
        columns = [max_of(tables[a])[fits].tolist() for a in axes]
        values |= set(zip(*columns, strict=True))
    return {v for v in values if not any(w != v and all(x <= y for x, y in zip(w, v, strict=True)) for w in values)}


def max_of(tables):
    """The largest of some tables, choice by choice."""
    first, *rest = [t.matrix().astype(int) for t in tables]
    for table in rest:
        first = first.clip(min=table)
    return first


def tiling(layer: Layer, machine: Machine, *, full: bool = False) -> Space:
    """The tiling space."""
    return NESTS["tiling"].build(layer, machine, Pins(), full=full)


@pytest.mark.parametrize(("axes", "rows"), [
    (("bytes", "time"), 4), (("time", "bytes"), 4), (("ocm", "bytes"), 4), (("time", "ocm", "bytes"), 3),
])  # fmt: skip
def test_fronts_are_brute_force(axes: tuple[str, ...], rows: int) -> None:
    layer = Layer.conv("y", channels=1, filters=1, size=(rows, 3), kernel=(2, 2))
    layer = layer.model_copy(update={"kind": "pool", "weights": "none"})
    machine = MACHINE.model_copy(update={"ocm_bytes": 12, "sliding": False})
    found = front_of_space(tiling(layer, machine), axes)
    assert (found.complete, found.proven) == (True, True)
    assert len(found.points) > 1
    assert [p.values for p in found.points] == sorted(brute(tiling(layer, machine, full=True), axes))
    for point in found.points:
        outcome = price(layer, machine, point.nest)
        values = {"bytes": outcome.bytes, "time": outcome.time_ticks, "ocm": outcome.occupancy_bytes["ocm"]}
        assert (tuple(values[axis] for axis in axes), values["ocm"]) == (point.values, point.ocm)


def test_a_front_ends_with_the_least_room() -> None:
    """Every output has one tap, all others lie in the padding: 1 + 3 * 3 * 2 + 9 bytes move at least.

    The smallest tiles take 1 + 2 + 4 bytes with partial sums; bounds of kernels in parts say that less might do.
    """
    layer = Layer.conv("x", channels=1, filters=3, size=(1, 1), kernel=(1, 3), pad=(0, 2, 0, 2))
    machine = MACHINE.model_copy(update={"w_bytes": 2, "psum_bytes": 4, "ocm_bytes": 33, "sliding": False})
    found = front_of_space(tiling(layer, machine), ("bytes", "ocm"))
    assert ([p.values for p in found.points], found.complete, found.proven) == ([(28, 8), (64, 7)], True, True)


def test_a_front_ends_with_the_fewest_bytes_that_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search is made for fewer bytes than the proven least, and no point is left out above it."""
    searched = list[dict[str, int]]()

    class Told(Search):
        def run(self) -> Pick | None:
            searched.append(dict(self.kept))
            return super().run()

    monkeypatch.setattr(front, "Search", Told)
    layer, update = Layer.conv("x", channels=3, filters=7, size=(2, 5)), {"ocm_bytes": 20, "sliding": False}
    machine = MACHINE.model_copy(update={**update, "psum_bytes": 4, "transfer": Transfer(call_ticks=5)})
    found = front_of_space(tiling(layer, machine), ("time", "bytes"))
    assert found.proven
    assert [p.values for p in found.points] == [(175, 205), (190, 181), (210, 151), (290, 142)]
    assert searched == [{}, {}, {"bytes": 204}, {"bytes": 180}, {"bytes": 150}]
    assert front._least(tiling(layer, machine), "bytes", {}, None) == 142
    assert front._least(tiling(layer, machine), "bytes", {}, 0.0) is None, "it is not proven"


def test_three_axes_leave_out_no_size_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all of the memory (10, 20) and (12, 10) beat (11, 25), which takes 8 bytes: fewer than 9 and more than 6."""
    plans = {(10, 20, 9), (12, 10, 6), (11, 25, 8), (30, 30, 3)}

    def two(*asked: Any) -> tuple[list[Point], bool, bool]:
        fits = [one for one in plans if one[2] <= asked[3].get("ocm", 99)]
        best = [one for one in fits if not any(x != one and x[0] <= one[0] and x[1] <= one[1] for x in fits)]
        return [Point(one, {}, one[2], Nest(())) for one in best], True, True

    monkeypatch.setattr(front, "_two", two)
    found = front_of_space(
        tiling(Layer.conv("y", channels=1, filters=1, size=(1, 1)), MACHINE), ("bytes", "time", "ocm")
    )
    assert [point.values for point in found.points] == sorted(plans)


@pytest.mark.slow(7)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(free_cases())
def test_any_front_is_brute_force(case: tuple[Layer, Machine, str, tuple[str, ...]]) -> None:
    layer, machine, _, pins = case
    own = space(layer, machine, pins)
    if own.size["points"] > MOST_POINTS // 4:
        return
    found = front_of_space(own, ("bytes", "time"))
    assert {p.values for p in found.points} == brute(space(layer, machine, pins, full=True), ("bytes", "time"))
    for point in found.points:
        closed = price(layer, machine, point.nest)
        assert (closed.bytes, closed.time_ticks) == point.values
        assert replay(layer, machine, point.nest).outcome == closed
        assert point.ocm == max(closed.occupancy_bytes.values())


def test_pins_and_infeasible_layers_have_their_front() -> None:
    decisions = NESTS["tiling"].decisions
    pinned = NESTS["tiling"].build(LAYER, MACHINE, parse_pins(("resident=W",), decisions))
    assert front_of_space(pinned).points[0].values[0] >= front_of_space(tiling(LAYER, MACHINE)).points[0].values[0]
    nothing = front_of_space(tiling(LAYER, MACHINE.model_copy(update={"ocm_bytes": 1})))
    assert (nothing.points, nothing.complete) == ((), True)


@pytest.mark.slow(5)
def test_ties_that_are_cut_short_end_no_front(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a long proof left no work for ties by other measures, and the front was empty."""
    machine = MACHINE.model_copy(update={"ocm_bytes": 40})
    small = tiling(Layer.conv("y", channels=2, filters=3, size=(4, 2), kernel=(2, 1)), machine)
    whole = front_of_space(small, ("bytes", "ocm"))
    monkeypatch.setattr("formulations.tiling.search.TIES", -1)
    cut = front_of_space(small, ("bytes", "ocm"))
    assert len(whole.points) > 1
    assert ([p.values for p in cut.points], cut.complete) == ([p.values for p in whole.points], True)


def test_no_time_no_front() -> None:
    found = front_of_space(tiling(LAYER, MACHINE), time_limit_s=0)
    assert not found.complete


@pytest.mark.parametrize(
    ("axes", "machine", "message"),
    [
        (("bytes",), MACHINE, "expected two or three of"),
        (("bytes", "bytes"), MACHINE, "expected two or three of"),
        (("bytes", "speed"), MACHINE, "expected two or three of"),
        (("bytes", "ocm"), "nmp", "needs a shared memory"),
        (("bytes", "time"), "doubled", "no exact front"),
    ],
)
def test_bad_axes(axes: tuple[str, ...], machine: Machine | str, message: str) -> None:
    from instances.load import load_machine
    from instances.machine.machine import Compute

    if machine == "doubled":
        update = {"buffering": "double", "compute": Compute(model="tile", cycle_ticks=1, macs_per_cycle=1)}
        machine = MACHINE.model_copy(update=update)
    elif isinstance(machine, str):
        machine = load_machine(machine)
    found = NESTS[machine.problem].build(LAYER, machine, Pins())
    with pytest.raises(InputError, match=message):
        front_of_space(found, axes)


def test_the_command_prints_and_writes_fronts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["pareto", "lenet5", "--layer", "c1", "--machine", "scratchpad_64k"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "c1" in shown
    assert "on chip" in shown
    path = tmp_path / "front.json"
    assert main([*arguments, "--axes", "time,bytes", "--json", "-o", str(path)]) == 0
    capsys.readouterr()
    data = json.loads(path.read_text())
    assert (data["format"], data["axes"]) == ("certile-front/2", ["time", "bytes"])
    (layer,) = data["parts"]
    assert layer["complete"] is True
    values = [(p["values"]["time"], p["values"]["bytes"]) for p in layer["points"]]
    assert values == sorted(values)
    assert [o for _, o in values] == sorted((o for _, o in values), reverse=True)


def test_the_command_refuses_unknown_axes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pareto", "lenet5", "--machine", "scratchpad_64k", "--axes", "bytes,speed"]) == 2
    error = capsys.readouterr().err
    assert "speed" in error
    assert len(error.splitlines()) == 1
