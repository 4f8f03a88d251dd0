"""The time of strips in closed form: by hand, and as the referee counts it."""

from __future__ import annotations

import pytest

from formulations.fusion.groups import Group
from formulations.fusion.options import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import call_ticks, streams_of
from formulations.fusion.strips import Mode
from formulations.pins import Pins
from hwmodels.schedule import FusedRun
from instances.load import load_machine
from instances.machine.machine import Compute, Machine, Transfer
from tests.golden_plans import chain

DMA = Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1)
BURSTS = Transfer(call_ticks=3, burst_ticks=7, burst_bytes=16, byte_ticks=1)
ADDRESSES = BURSTS.model_copy(update={"burst_count": "address"})


def test_a_call_by_hand() -> None:
    """Two rows of 4 channels, 8 x 8 pixels: 4 runs of 16 bytes, or one of 64; with bursts of 16 bytes 4 windows."""
    apart, together = [(16, 16, ((4, 64),))], [(64, 64, ())]
    assert (call_ticks(DMA, apart), call_ticks(DMA, together)) == (5 + 8 + 64, 5 + 2 + 64)
    assert (call_ticks(BURSTS, apart), call_ticks(ADDRESSES, apart)) == (3 + 28 + 64, 3 + 28 + 64)
    assert call_ticks(BURSTS, [(8, 16, ((4, 64),))]) == 3 + 28 + 64  # as if every run began a window
    assert call_ticks(ADDRESSES, [(8, 16, ((4, 64),))]) == 3 + 56 + 64  # each touches two
    assert call_ticks(DMA, [(0, 0, ())]) == 0


def run_of(machine: Machine, mode: Mode, width: int, kept: tuple[int, int]) -> tuple[FusionPart, FusedRun]:
    """Two layers of 4 channels on 8 x 8 pixels, in strips of 2 rows, halos as `mode` says."""
    part = FusionPart(chain(4, 4, size=8), machine, Pins(()))
    steps = streams_of(Group(part.net, 0, 1), Option(2, width, mode, "lead" if width == 8 else mode))
    return part, FusedRun(0, 1, *steps, kept, {}, (8, 0), tuple(range(40)))


@pytest.mark.few(16)
@pytest.mark.parametrize("transfer", [DMA, BURSTS, ADDRESSES], ids=["dma", "bursts", "addresses"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize(("mode", "width"), [("lead", 8), ("retain", 3), ("recompute", 8), ("recompute", 3)])
def test_price_and_replay_count_alike(transfer: Transfer, layout: str, mode: Mode, width: int) -> None:
    """Whole rows and parts of them, with weights that stay whole, in part and not at all."""
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "1024", "ocm_banks": "40"})
    unit = Compute(model="array", rows=3, cols=2, cycle_ticks=1)
    machine = machine.model_copy(
        update={"transfer": transfer, "in_layout": layout, "out_layout": layout, "compute": unit}
    )
    for kept in ((144, 144), (100, 0)):
        part, run = run_of(machine, mode, width, kept)
        (seen,) = part.walked((run,)).runs
        assert part.figures.price(run).ticks == seen.ticks
