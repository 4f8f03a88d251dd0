"""C whose transfers run ahead of their steps: at the earliest and at the latest that the plan allows."""

from __future__ import annotations

import random
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certile import InputError, Plan, emit_c, solve
from formulations.clock import ENDLESS
from formulations.fusion.part import FusionPart
from hwmodels.timeline.price import occupancy
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Input, Reshape
from instances.zoo.chains import chain
from solver.calls.check import faults_of
from solver.problems.registry import problem_of
from solver.uses.emit.ahead import whole
from solver.uses.emit.ahead.addressed import addressed, said_of
from solver.uses.emit.ahead.placing import most, placed
from solver.uses.emit.emit import files_of
from tests.emitted import built_both_ways, random_network, random_scratchpad


def runs(plan: Plan, folder: Path, flags: str = "-O0", memory_bytes: int | None = None) -> dict[str, str]:
    """Build a plan's program with transfers ahead and run it, both ways; returns what it prints."""
    return built_both_ways(files_of(plan, None, memory_bytes, transfers="ahead"), folder, flags)


def random_plan(seed: int) -> Plan:
    """A random network in a small memory, mostly in the least time that is found."""
    rng = random.Random(seed)
    network = random_network(rng, broadcast=rng.random() < 0.2)
    machine = random_scratchpad(rng, network)
    problem = rng.choice(["fusion"] * 4 + ["joint"])
    room = rng.choice((300, 600, 1200, 2500, 6000, 20000))
    machine = machine.model_copy(
        update={"ocm_bytes": room, "ocm_banks": rng.choice((1, 1, 4)), "buffering": "single",
                "reserved_bytes": rng.choice((0, 0, 16))}
    )  # fmt: skip
    objective = rng.choice(["time"] * 4 + ["bytes"])
    pins = ["turns=no"] * (problem == "fusion" and objective == "bytes")  # which add sums up
    return solve(network, machine, problem=problem, objective=objective, pins=pins)


def three_layers() -> Network:
    """Three 3x3 layers of 4 channels on 8 x 8 pixels (docs/fusion.md)."""
    shape, names = (1, 4, 8, 8), ("a", "b", "c")
    pad, kernel = (1, 1, 1, 1), (3, 3)
    layers = [
        Conv(name=name, inputs=(source,), shape=shape, filters=4, kernel=kernel, pad=pad)
        for name, source in zip(names, ("in", *names), strict=False)
    ]
    return Network(name="three", operators=(Input(name="in", shape=shape), *layers))


def test_weights_are_loaded_while_the_first_layer_runs(tmp_path: Path) -> None:
    """Commands: 3 k queues transfer k, 3 k + 1 waits until k are done, 3 k + 2 runs step k.

    In one step each (docs/fusion.md) input and weights of `a` are transfers 0 and 1. Before step 0 all five loads are
    queued (input, three weights: 4 here), two are waited for; the weights of `b` and `c` are waited for before their
    own steps, and the result (transfer 4) is queued behind the last one.
    """
    settings = {"ocm_bytes": "2048", "ocm_banks": "1"}
    plan = solve(three_layers(), "scratchpad_768k", problem="fusion", settings=settings, pins=["strip=8", "fuse=a..c"])
    files = files_of(plan, transfers="ahead")
    commands = re.search(r"commands\[\] = \{([^}]*)\}", str(files["ahead.c"]))
    assert commands is not None
    numbers = [int(x) for x in commands[1].replace("\n", " ").split(",") if x.strip()]
    assert numbers == [0, 3, 6, 9, 3 * 2 + 1, 2, 3 * 3 + 1, 5, 3 * 4 + 1, 8, 12, 3 * 5 + 1]
    assert "results and transfers as planned" in runs(plan, tmp_path)["late"]


def test_transfers_of_sizes_run_by_run(tmp_path: Path) -> None:
    """Weights of the last layer in smaller blocks than those before it."""
    settings = {"ocm_bytes": str(2**14), "ocm_banks": "64"}
    plan = solve(chain(16, 64, 64, 16, size=8), "scratchpad_768k", problem="fusion", settings=settings)
    assert plan.part.schedule.queue.by_run
    for said in runs(plan, tmp_path).values():
        assert "results and transfers as planned" in said


@pytest.mark.parametrize("seed", [77, 240, 295])
def test_random_networks(seed: int, tmp_path: Path) -> None:
    """Flattened maps, inputs that the host joins, filters of two visits."""
    for said in runs(random_plan(seed), tmp_path).values():
        assert "results and transfers as planned" in said


def test_joined_maps_that_are_reshaped_to_their_own_shape(tmp_path: Path) -> None:
    """As a Dropout leaves it: its batch of one has another pitch, which no element depends on."""
    shape, joined = (1, 1, 4, 4), (1, 2, 4, 4)
    parts = [Conv(name=name, inputs=("in",), shape=shape, filters=1, kernel=(1, 1)) for name in "ab"]
    network = Network(name="joined", operators=(
        Input(name="in", shape=joined), *parts, Concat(name="ab", inputs=("a", "b"), shape=joined),
        Reshape(name="same", inputs=("ab",), shape=joined),
        Conv(name="c", inputs=("same",), shape=joined, filters=2, kernel=(1, 1)),
    ))  # fmt: skip
    settings = {"ocm_bytes": "2048", "ocm_banks": "1"}
    plan = solve(network, "scratchpad_768k", problem="fusion", settings=settings, pins=["fuse=a..c"])
    assert "results and transfers as planned" in runs(plan, tmp_path)["early"]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "kib", "pins", "anew"), [
    ("squeezenet1_1", 256, [], False), ("squeezenet1_1", 256, ["turns=no"], True),
    ("mobilenet_v2", 512, [], False), ("resnet50", 512, [], False),
])  # fmt: skip
def test_real_networks(network: str, kib: int, pins: list[str], anew: bool, tmp_path: Path) -> None:
    """Plans of the least time: every transfer has the segments and bytes of the plan, results are right both ways.

    Those of SqueezeNet and MobileNetV2 have two layers that take turns. Without, that of SqueezeNet leaves 107 bytes
    free in a step, and finds no addresses; with 512 free they are found, in as much time.
    """
    settings = {"ocm_bytes": str(kib * 1024), "ocm_banks": str(kib // 8)}
    plan = solve(network, "scratchpad_768k", problem="fusion", objective="time", settings=settings, pins=pins)
    made = addressed(plan, plan.network_data, None, ENDLESS)
    assert (made is not plan) == anew
    assert made.measures == plan.measures
    for said in runs(made, tmp_path, "-O2").values():
        assert "results and transfers as planned" in said


@pytest.mark.parametrize(("free", "most", "ticks", "said"), [
    (0, 944, 17_072, ""), (1, 800, 17_072, "0.00 % more time"), (150, 656, 19_088, "11.81 % more time"),
    (300, 944, 17_072, ""),
])  # fmt: skip
def test_transfers_in_another_order_leave_room_for_addresses(
    free: int, most: int, ticks: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Addresses are found only where so many bytes are free in every step.

    Three layers (docs/fusion.md) in 944 bytes: step `a` has 256 that it reads, 256 that it makes, 144 of weights, and
    the weights of `b` and `c` beside it. With a byte to spare those of `c` lie beside step `b`, which hides them as
    well. With 150 (256 are tried) nothing lies beside a step, and each waits: 19,088. 300 are never free: 656 + 300.
    """
    settings, placed_at_all = {"ocm_bytes": "944", "ocm_banks": "0"}, whole.placed
    plan = solve(three_layers(), "scratchpad_768k", problem="fusion", settings=settings, pins=["strip=8", "fuse=a..c"])

    def with_less(*args: Any) -> Any:
        return placed_at_all(*args[:-1], args[-1] - free)

    monkeypatch.setattr(whole, "placed", with_less)
    made = addressed(plan, plan.network_data, None, ENDLESS)
    assert max(step.bytes for step in made.timeline if step.lane == "engine") == most
    assert made.measures is not None
    assert made.measures["time"] == ticks
    assert said_of(plan, made).endswith(said)
    assert bool(said_of(plan, made)) == bool(said) == (made is not plan)
    assert faults_of(made) == []


@pytest.mark.parametrize("run", [0, 1, 2])
def test_bytes_stay_free_while_one_group_runs(run: int) -> None:
    """Three layers, each a group: with all memory to spare nothing lies beside the steps of one, but of the others."""
    settings = {"ocm_bytes": "2048", "ocm_banks": "0"}
    plan = solve(three_layers(), "scratchpad_768k", problem="fusion", settings=settings, pins=["cut=a", "cut=b"])
    (part,) = problem_of(plan).parts_of(plan)
    assert isinstance(part, FusionPart)
    laid = part.laid(part.spared(plan.schedule, {run: 2048}))
    own = [[step.bytes for step in one.steps] for one in laid.parts]
    there, begins = occupancy(laid.timeline), [0, *accumulate(map(len, own))]
    beside = [[int(there[begins[r] + k]) - size for k, size in enumerate(sizes)] for r, sizes in enumerate(own)]
    assert [any(sizes) for sizes in beside] == [r != run for r in range(3)]


@given(st.data())
def test_objects_never_meet(data: st.DataObject) -> None:
    """No two objects share a byte in a step; all units have a place; without room for a step there are no places."""
    number = data.draw(st.integers(1, 12))
    units = np.array([data.draw(st.integers(1, 4)) for _ in range(number)])
    size = units * np.array([data.draw(st.integers(1, 5)) for _ in range(number)])
    first = np.array([data.draw(st.integers(1, 8)) for _ in range(number)])
    last = first + np.array([data.draw(st.integers(0, 4)) for _ in range(number)])
    need = int(most(size, first, last).max())
    step = placed(size, units, first, last, need - 1)
    assert isinstance(step, int)
    assert step in first
    ample = placed(size, units, first, last, int(size.sum()))
    tight = placed(size, units, first, last, need)
    assert isinstance(ample, list)
    assert all(len(parts) == 1 for parts in ample)
    for found, capacity in ((ample, int(size.sum())), (tight, need)):
        for step in range(1, 13) if isinstance(found, list) else ():
            there = [i for i in range(number) if first[i] <= step <= last[i]]
            used = [byte for i in there for at, some in found[i] for byte in range(at, at + some * int(units[i]))]
            assert len(used) == len(set(used)) == int(size[there].sum())
            assert all(0 <= byte < capacity for byte in used)


def test_objects_of_single_bytes_always_fit() -> None:
    """Units of a byte fill any gap: 2 of 3 bytes are free when the third object comes, at 0 and 2."""
    size, ones = np.array([1, 1, 1, 2]), np.ones(4, np.int64)
    found = placed(size, ones, np.array([1, 1, 1, 2]), np.array([1, 2, 1, 2]), 3)
    assert isinstance(found, list)
    assert sorted(byte for at, some in found[3] for byte in range(at, at + some)) != [found[1][0][0]]
    assert sum(some for _, some in found[3]) == 2


def test_what_is_not_written(tmp_path: Path) -> None:
    """One line says why; without --transfers the program is written as before."""
    single = solve("lenet5", "scratchpad_64k")
    with pytest.raises(InputError, match=r"transfers ahead: of plans of problems joint and fusion, not of tiling"):
        emit_c(single, tmp_path / "a", transfers="ahead")
    with pytest.raises(InputError, match=r"transfers now: ahead or steps is accepted"):
        emit_c(single, tmp_path / "a", transfers="now")
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "16384", "ocm_banks": "4"})
    plan = solve("lenet5", machine, problem="joint")
    with pytest.raises(InputError, match=r"its nest cuts c: more than rows, filters and input channels"):
        emit_c(plan, tmp_path / "a", transfers="ahead")
    assert not (tmp_path / "a").exists()
    assert "ahead.c" not in emit_c(plan, tmp_path / "a")


@pytest.mark.parametrize("reads", [False, True])
def test_an_input_that_is_joined_with_what_a_layer_makes_of_it(reads: bool, tmp_path: Path) -> None:
    """The layer found none of its channels where the joined map lies, and added nothing up: refused now."""
    shape, joined = (1, 4, 6, 6), (1, 8, 6, 6)
    made = Conv(name="a", inputs=("in",), shape=shape, filters=4, kernel=(3, 3), pad=(1, 1, 1, 1))
    last = Conv(name="b", inputs=("ab",), shape=joined, filters=8, kernel=(1, 1))
    whole = Concat(name="ab", inputs=("a", "in"), shape=joined)
    network = Network(name="n", operators=(Input(name="in", shape=shape), made, whole, *([last] if reads else [])))
    plan = solve(network, "scratchpad_768k", problem="fusion")
    with pytest.raises(InputError, match="in: a map from outside is joined with what layers make"):
        runs(plan, tmp_path)
