"""Boxes of chains: what bounds leave out is never a better plan, however finely boxes are cut."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from formulations.pins import Pins
from formulations.tiling import bounding, member
from formulations.tiling.bounding import AXES, Bounds, size
from formulations.tiling.branch import Branch
from formulations.tiling.member import Member
from formulations.tiling.tiling import build
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from tests.effort import tries
from tests.small import byte_machine

LAYER = Layer.conv("x", channels=4, filters=6, size=(9, 7), kernel=(3, 3), pad=(1, 1, 1, 1))


def bounds(machine: Machine) -> Bounds:
    """Of the first member of the tiling space of `LAYER`."""
    one = build(LAYER, machine, Pins()).members[0]
    steps, tiles = one.chains(("bytes",))
    return Bounds(LAYER, machine, one.skeleton, steps, tiles, one.slides)


def test_a_box_is_all_its_combinations() -> None:
    found = bounds(load_machine("scratchpad_64k", {"ocm_bytes": "400"}))
    whole = found.whole()
    choices = found.choices([whole])
    assert size(whole) == choices.shape[0] // max(1, len(found.slides)) * choices.shape[1]
    one = {**whole, "r": whole["r"][:1], "m": whole["m"][1:2]}
    two = {**whole, "c": whole["c"][:1]}
    both = found.choices([one, two])
    rows = {tuple(int(both.index[d][s]) for d in "brc") for s in range(both.shape[0])}
    expected = {(0, r, c) for r in whole["r"] for c in whole["c"] if r == whole["r"][0] or c == whole["c"][0]}
    assert rows == {tuple(map(int, e)) for e in expected}
    assert both.shape[0] == len(rows) * max(1, len(found.slides))  # none twice
    assert both.shape[1] == choices.shape[1]


@pytest.mark.parametrize(("measure", "most"), [("bytes", 4_000), ("bytes", None), ("ocm", None)])
def test_the_leaves_of_a_box_keep_every_choice_that_fits(
    monkeypatch: pytest.MonkeyPatch, measure: str, most: int | None
) -> None:
    """Brute force over the whole box: each choice within capacity and limit is in some leaf; None is the least."""
    monkeypatch.setattr(bounding, "_LAID", 10)
    machine = load_machine("scratchpad_64k", {"ocm_bytes": "300", "psum_bytes": "1"})
    found = bounds(machine)
    one = build(LAYER, machine, Pins()).members[0]
    everything = one.priced(found.choices([found.whole()]), ("bytes",))
    (table,) = everything.tables(measure)
    most = most or int(table.matrix()[everything.feasible()].min())
    good = everything.feasible() & (table.matrix() <= most)
    assert good.any()
    assert not good.all()
    leaves = list(found.leaves(found.whole(), {measure: most}))
    assert len(leaves) > 1 or measure == "ocm"
    left = found.choices(leaves)
    assert left.shape[0] < everything.choices.shape[0]

    def names(index: dict[str, np.ndarray], dims: tuple[str, ...], keep: np.ndarray) -> set[tuple[int, ...]]:
        return set(zip(*(index[d][keep].tolist() for d in dims), strict=True))

    s_dims, q_dims = ("b", "r", "c", "slide"), ("g", "m", "n")
    whole = dict(everything.choices.index)
    kept = dict(left.index)
    assert names(whole, s_dims, good.any(axis=1)) <= names(kept, s_dims, np.ones(left.shape[0], bool))
    assert names(whole, q_dims, good.any(axis=0)) <= names(kept, q_dims, np.ones(left.shape[1], bool))
    assert set(AXES) == {*s_dims, *q_dims} - {"slide"}


def test_slides_that_are_left_out_are_no_better() -> None:
    """For every way to cut rows and columns the fewest bytes of all slides are those of the slides that are kept."""
    on = load_machine("scratchpad_64k", {"ocm_bytes": "300", "sliding": "true"})
    one = next(one for one in build(LAYER, on, Pins()).members if len(one.slides) > 1)
    steps, tiles = one.chains(("bytes",), coarse=True)
    found = Bounds(LAYER, on, one.skeleton, steps, tiles, one.slides)
    every = one.priced(found.choices([found.whole()]), ("bytes",))
    few, dims = every.sliding(), ("b", "r", "c")
    assert few.choices.shape[0] < every.choices.shape[0]

    def least(branch: Branch) -> dict[tuple[int, ...], int]:
        of: dict[tuple[int, ...], int] = {}
        places = zip(*(branch.choices.index[d].tolist() for d in dims), strict=True)
        for place, moved in zip(places, branch.bytes.matrix()[:, 0].tolist(), strict=True):
            of[place] = min(of.get(place, moved), moved)
        return of

    assert least(few) == least(every)


def branches(one: Member, limits: dict[str, int], *, ideal: bool) -> Iterator[Branch]:
    """Of bounds or of candidates."""
    return (one.bounds if ideal else one.branches)(tuple(limits), limits)


def fitting(some: Iterable[Branch], limits: dict[str, int]) -> set[tuple[object, ...]]:
    """The combinations that fit and stay within the limits, each once."""
    found: list[tuple[object, ...]] = []
    for branch in some:
        fits = branch.feasible()
        for measure, most in limits.items():
            fits &= np.all([table.matrix() <= most for table in branch.tables(measure)], axis=0)
        index, kind = branch.choices.index, tuple(map(len, branch.choices.steps.values()))
        pairs = zip(*np.nonzero(fits), strict=True)
        found += [(kind, *(int(index[d][q if d in "gmn" else s]) for d in sorted(index))) for s, q in pairs]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("worth", [0.0, 1.0])
def test_sifting_in_blocks_drops_nothing_that_fits(monkeypatch: pytest.MonkeyPatch, worth: float) -> None:
    """Of bounds and of candidates: the same combinations within capacities and limits are left, in the same order."""
    on = load_machine("scratchpad_64k", {"ocm_bytes": "300"})
    limits = {"bytes": 3_000, "time": 5_000_000}

    def good(ideal: bool) -> list[set[tuple[object, ...]]]:
        return [fitting(branches(one, limits, ideal=ideal), limits) for one in build(LAYER, on, Pins()).members[::7]]

    whole = [good(ideal) for ideal in (False, True)]
    assert all(any(found) for found in whole)
    monkeypatch.setattr(member, "_BLOCK", 100)
    monkeypatch.setattr(member, "_WORTH", worth)
    assert [good(ideal) for ideal in (False, True)] == whole


@pytest.mark.slow(3)
@pytest.mark.parametrize(("at_once", "together"), [(60, 100), (200, 10**6)])
def test_parts_of_large_boxes_leave_what_fits(monkeypatch: pytest.MonkeyPatch, at_once: int, together: int) -> None:
    """Of bounds and of candidates: the same combinations, each once; and the least of every branch is that of all."""
    on = load_machine("scratchpad_64k", {"ocm_bytes": "300"})
    limits = {"bytes": 3_000, "time": 5_000_000}
    members = build(LAYER, on, Pins()).members[:: tries(80, 40)]

    def every(*, ideal: bool) -> list[set[tuple[object, ...]]]:
        return [fitting(branches(one, limits, ideal=ideal), limits) for one in members]

    whole = [every(ideal=ideal) for ideal in (False, True)]
    assert all(any(found) for found in whole)
    monkeypatch.setattr(bounding, "_AT_ONCE", at_once)
    monkeypatch.setattr(member, "_TOGETHER", together)
    number = 0
    for ideal, wanted in zip((False, True), whole, strict=True):
        assert every(ideal=ideal) == wanted
        number = max(number, *(len([*branches(one, limits, ideal=ideal)]) for one in members))
    assert number > 1 or together == 10**6


def test_blocks_of_which_nothing_fits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on chip has a price only where something fits: such a block was a traceback."""
    monkeypatch.setattr(member, "_BLOCK", 1)
    monkeypatch.setattr(member, "_WORTH", 2.0)  # every block is sifted
    on = load_machine("scratchpad_64k", {"ocm_bytes": "16"})
    for one in build(LAYER, on, Pins()).members:
        fits = one.branch(("ocm",), {"ocm": 15}).feasible()
        with monkeypatch.context() as patch:
            patch.setattr(member, "_BLOCK", 10**6)
            assert one.branch(("ocm",), {"ocm": 15}).feasible().sum() == fits.sum()


def test_a_box_that_nothing_of_fits_has_no_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "_LAID", 10)
    found = bounds(load_machine("scratchpad_64k", {"ocm_bytes": "3"}))
    assert found.choices(found.leaves(found.whole(), {})).shape == (0, 0)


@pytest.mark.parametrize(("layer", "ocm", "objectives", "bounded"), [
    (Layer.conv("x", channels=1, filters=1, size=(5, 4), kernel=(3, 2)), 9, ("bytes", "time"), True),
    (Layer.conv("x", channels=1, filters=1, size=(4, 5), kernel=(2, 2), pad=(0, 1, 0, 0)), 8, ("time",), False),
])  # fmt: skip
def test_no_block_loses_the_optimum(layer: Layer, ocm: int, objectives: tuple[str, ...], bounded: bool) -> None:
    """What is laid out, bounded and searched at a time does not matter."""
    pool = layer.model_copy(update={"kind": "pool", "weights": "none"})
    on = byte_machine(ocm_bytes=ocm, sliding=True, transfer=Transfer(call_ticks=3, segment_ticks=2, byte_ticks=1))
    whole = decide_space(build(pool, on, Pins()), objectives)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (member, "_LARGE", 3), (member, "_BLOCK", 7), (member, "_TOGETHER", 60), (bounding, "_LAID", 4),
            (bounding, "_AT_ONCE", 40), (sys.modules[Branch.__module__], "_CHUNK", 50),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        found = decide_space(build(pool, on, Pins()), objectives, bounding=bounded)
    assert (found.values, found.bounds, found.status) == (whole.values, whole.bounds, whole.status)
