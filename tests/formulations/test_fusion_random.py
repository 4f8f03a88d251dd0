"""Random groups of layers: their price, what the referee counts of them, and their steps and transfers."""

from __future__ import annotations

import random

import pytest

from formulations.fusion.orders import WHOLE
from formulations.fusion.part import FusionPart
from formulations.pins import Pins
from hwmodels.schedule import FusedRun
from instances.machine.machine import Transfer
from tests.effort import tries
from tests.emitted import random_group

#: Seeds that were wrong once, of groups as they come, with turns that add nothing up, and with broadcast operands:
#: strips of a broken number of rows; pieces that nobody reads before they come again; weights of turns for nothing. And
#: some of which pixels are left out: of both axes or one, with another reader, in either layout, along bursts.
KNOWN = {"": (49, 117, 14), "passing": (26, 28, 3), "broadcast": (66, 9, 71), "sampled": (1, 9, 14, 16, 20)}
#: What transfers cost: calls and runs, also of windows by their addresses.
PRICES = (
    Transfer(byte_ticks=1, call_ticks=7, segment_ticks=3),
    Transfer(model="burst", byte_ticks=1, burst_ticks=5, burst_bytes=8, burst_count="address"),
)


def check(kind: str, seed: int) -> None:
    """Hold price, referee and timeline of a random group against each other."""
    rng = random.Random(seed)
    one = random_group(rng, **{kind: True} if kind else {})
    machine = one.machine.model_copy(update={"transfer": rng.choice(PRICES)})
    part = FusionPart(one.network, machine, Pins(()))
    priced, replayed = part.price(one.runs), part.replay(one.runs)
    assert replayed.faults == ()
    assert replayed.executed == 1
    assert (priced.counts, priced.measures["time"]) == (replayed.counts, replayed.measures["time"])
    (run,) = one.runs
    assert isinstance(run, FusedRun)
    price = part.prices.price(run).bytes
    for most in (WHOLE, 8):
        moved = dict.fromkeys(price, 0)
        (made,) = part.timelines.parts(part.numbered(one.runs), most)
        for (operand, _), move in zip(made.names, made.moves, strict=True):
            moved[operand] += move.bytes
        if run.blocks and moved["W"] < price["W"]:  # of layers that take turns, where all of them find no room together
            moved["W"] = price["W"]
        assert moved == price


@pytest.mark.parametrize("kind", KNOWN)
def test_groups_that_were_wrong_once(kind: str) -> None:
    for seed in KNOWN[kind]:
        check(kind, seed)


@pytest.mark.slow(4)
@pytest.mark.parametrize("kind", KNOWN)
def test_random_groups(kind: str) -> None:
    for seed in range(tries(4, 300)):
        check(kind, seed)
