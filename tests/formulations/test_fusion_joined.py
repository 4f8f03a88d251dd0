"""A convolution takes turns with the sum that joins its result with a map from outside, block of channels by block."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from formulations.fusion.groups import Group
from formulations.fusion.memory import Option, passing_of
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.pins import Pins
from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.execute import execute
from hwmodels.fusion.replay.strips import Walk
from hwmodels.schedule import Blocks, FusedRun
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.zoo.builder import Builder
from solver import check
from solver.calls.solve import solve
from tests.small import machine


def residual(channels: int = 32, size: int = 6) -> Network:
    """A map, two convolutions of it, and their sum with it: ``a``, ``b``, ``c``, ``s``; then ``e``."""
    made = Builder("residual", "a block with a shortcut")
    a = made.conv(made.input(1, 8, size, size), "a", channels)
    c = made.conv(made.conv(a, "b", 8), "c", channels)
    made.conv(made.eltwise("add", [a, c], "s"), "e", 8)
    return made.build()


def on(memory: int) -> Machine:
    """One byte an element, calls of 5 ticks, bytes of 4, an array of 4 x 4."""
    return machine(
        ocm_bytes=memory, psum_bytes=1, transfer=Transfer(call_ticks=5, byte_ticks=4), in_layout="HWC",
        out_layout="HWC", w_layout="OHWI", compute={"model": "array", "rows": 4, "cols": 4, "cycle_ticks": 8},
    )  # fmt: skip


def test_bytes_on_chip_by_hand() -> None:
    """On chip are ``a`` (32 x 36 bytes, whose place the sum takes), ``b`` (8 x 36), and a block of 4 channels of ``c``.

    With a filter of 8 bytes these are 1,152 + 288 + 144 + 8. One after the other would need all of ``c``, too: 2,592.
    """
    part = FusionPart(residual(), on(1_800), Pins(()))
    streams = streams_of(Group(part.net, 2, 3), Option(6, 6, "lead", "lead"))
    stores = {store.name: number for number, store in enumerate(part.net.stores)}
    residents = {stores[name]: (6, ()) for name in ("a", "b", "s")}
    place = {stores["s"]: stores["a"]}
    run = FusedRun(2, 3, *streams, (0, 0), residents, (6, 6), (), (Blocks(2, 3, 4),), place)
    assert part.prices.price(run).peak_bytes == 144 + 8
    plain = FusedRun(2, 3, *streams, (0, 0), residents, (6, 6), (), (), place)
    assert part.prices.price(plain).peak_bytes == 1_152 + 8


@pytest.mark.parametrize(("height", "channels"), [*product((1, 2, 6), (1, 4, 16))])
def test_price_and_referee_agree_where_the_other_map_is_loaded(height: int, channels: int) -> None:
    """The other input of the sum comes strip by strip, before the first block of each."""
    part = FusionPart(residual(), on(4_000), Pins(()))
    group = Group(part.net, 2, 3)
    assert (2, 3) in passing_of(group)
    run = FusedRun(
        2, 3, *streams_of(group, Option(height, 6, "lead", "lead")), (0, 0), {}, (6, 0), (), (Blocks(2, 3, channels),)
    )
    priced, walk = part.prices.price(run), Walk(part.net, run)
    seen = Count(part.machine, walk).run_all()
    assert not seen.faults
    assert not execute(part.net, part.machine, walk, seen.peak_bytes).faults
    assert execute(part.net, part.machine, walk, seen.peak_bytes - 1).faults
    assert (priced.bytes, priced.macs, priced.peak_bytes, priced.ticks) == (
        dict(seen.operand_bytes), seen.macs, seen.peak_bytes, seen.ticks,
    )  # fmt: skip
    strip = height * 6
    assert priced.peak_bytes == strip * (8 + channels + 32 + 32) + 8


def test_a_plan_takes_such_turns(tmp_path: Path) -> None:
    """In little memory they save time; the plan is checked and executed."""
    with_turns, without = (solve(residual(), on(1_700), problem="fusion", pins=pins) for pins in ((), "turns=no"))
    assert any(getattr(run, "blocks", ()) for run in with_turns.schedule.runs)
    assert with_turns.measures["time"] < without.measures["time"]
    with_turns.save(tmp_path / "plan.json")
    report = check(tmp_path / "plan.json")
    assert report.ok
    assert report.executed == report.layers
