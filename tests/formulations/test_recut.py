"""Places to cut for transfers that overlap: the recursion against all ways to cut one loop, and real layers."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import pytest

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from formulations.tiling.recut import Cutting, climbed, cut_anew, may_recut
from formulations.tiling.search import Search
from hwmodels.nest.price.choices import numbered
from hwmodels.nest.price.closed_form import price
from instances.load import load_machine, load_network
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.small import machine


def drawn(rng: random.Random) -> tuple[Layer, Machine]:
    """Rows of one channel, and prices of any proportion."""
    kernel = rng.choice((1, 3))
    pad = rng.choice((0, 1)) if kernel == 3 else 0
    layer = Layer.conv(
        "rows", channels=1, filters=1, size=(rng.randint(5, 7), 1), kernel=(kernel, 1), pad=(pad, 0, pad, 0)
    )
    on = machine(
        ocm_bytes=rng.choice((24, 60, 200)), buffering=rng.choice(("double", "choose")), sliding=rng.random() < 0.5,
        compute=Compute(model="array", cycle_ticks=rng.randint(1, 6)), overlap="double_buffered",
        transfer=Transfer(call_ticks=rng.randint(0, 9), segment_ticks=rng.randint(0, 3), byte_ticks=rng.randint(1, 3)),
    )  # fmt: skip
    return layer, on


def begun(layer: Layer, on: Machine) -> list[Cutting]:
    """Nests that cut nothing yet, of all members that can be cut anew."""
    members = [one for one in NESTS["tiling"].build(layer, on, Pins()).members if may_recut(one)]
    whole = [{d: (one.share(d),) * one.skeleton.levels(d) for d in "bgmnrcij"} for one in members]
    slides = [one.slides[:1] for one in members]
    return [Cutting(*x, *(s or (None,))) for *x, s in zip(members, whole, slides, strict=True)]


def time_of(cutting: Cutting) -> float:
    """Of a nest that fits, else infinite."""
    if not cutting.branch().feasible().all():
        return float("inf")
    return price(cutting.member.layer, cutting.member.machine, cutting.nest).time_ticks


def test_one_loop_in_one_pass_is_cut_best() -> None:
    rng, compared = random.Random(11), 0
    for _ in range(4):
        layer, on = drawn(rng)
        for one in begun(layer, on):
            for at, (dim, level) in enumerate(numbered(one.skeleton.order)):
                if dim != "r":
                    continue
                inner = range(1, layer.r)
                every = [one.cut("r", level, (0, layer.r), p) for n in range(layer.r) for p in combinations(inner, n)]
                least = min(map(time_of, every))
                found = cut_anew(one, at, (0, layer.r), 1)
                # a loop that cuts nothing is none: what is loaded then is told by another nest
                got = min(time_of(one), time_of(found) if found else float("inf"))
                assert got == least, (layer, on, one.skeleton, found and found.loops)
                compared += least < float("inf")
    assert compared > 40


def test_loops_are_cut_until_nothing_is_saved() -> None:
    rng = random.Random(3)
    for _ in range(5):
        layer, on = drawn(rng)
        for one in begun(layer, on)[:4]:
            seen: list[float] = []

            def note(cutting: Cutting, seen: list[float] = seen) -> float:
                seen.append(time_of(cutting))
                return seen[-1]

            climbed(one, note, lambda: False)
            assert min(seen) <= seen[0]
            before = len(seen)
            climbed(one, note, lambda: True)  # no time: only the nest itself is priced
            assert len(seen) == before + 1


def test_places_are_kept_between_groups() -> None:
    # Rows cut in groups of 3 (0 3 6): the second loop cuts at 1 and 4; what is cut anew is the first group alone.
    layer = Layer.conv("rows", channels=1, filters=1, size=(6, 1))
    on = machine(ocm_bytes=200, buffering="double", overlap="double_buffered", compute=Compute(model="array"))
    one = next(one for one in begun(layer, on) if one.member.skeleton.levels("r") == 2)
    cut = replace(one, loops={**one.loops, "r": (3, (1, 4))})
    assert cut.cut("r", 1, (0, 3), [2]).loops["r"] == (3, (2, 4))
    assert cut.cut("r", 1, (3, 6), []).loops["r"] == (3, (1,))


@pytest.mark.parametrize(("name", "least"), [("s4", 4_528), ("f6", 12_972)])
def test_small_layers_are_proven(name: str, least: int) -> None:
    # s4 in one step: 800 + 64 + 1,600 loaded, 25 pixels of 4 taps in 8 ticks each, 800 + 64 + 400 stored.
    layer = next(one for one in load_network("lenet5").layers if one.name == name)
    said = decide_space(
        NESTS["tiling"].build(layer, load_machine("scratchpad_64k", {"buffering": "double"}), Pins()), ("time",)
    )
    assert (said.status, said.values["time"]) == ("OPTIMAL", least)


@pytest.mark.slow
def test_a_layer_of_squeezenet_is_fine_at_the_ends() -> None:
    # 114,688 ticks in equal pieces; by an exact search for one loop 108,640, in other places than these.
    layer = next(one for one in load_network("squeezenet1_1").layers if one.name == "fire4/expand1x1")
    said = decide_space(
        NESTS["tiling"].build(layer, load_machine("scratchpad_64k", {"buffering": "double"}), Pins()), ("time",)
    )
    assert said.values["time"] == 108_640
    assert said.bound >= 105_000


def test_all_members_are_looked_at_before_bounds_take_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another member than that of the first plan is faster: its equal pieces are found before anything takes long.

    687,696 ticks: 171 filters at a time, their weights held, and tiles of 7 x 5 places. Cut anew it is 1 % less.
    """
    layer = next(one for one in load_network("resnet50").layers if one.name == "layer2.0.conv3")
    on = load_machine("scratchpad_64k", {"buffering": "double"})
    search = Search(NESTS["tiling"].build(layer, on, Pins()), ("time",))
    first = search.first("time")
    assert first is not None
    assert first.measures["time"] == 721_408
    monkeypatch.setattr(Search, "_recut", lambda self, measure: setattr(self, "deadline", 0.0))
    best = search.run()
    assert best is not None
    assert best.measures["time"] == 687_696
