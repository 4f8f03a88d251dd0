"""The front of bytes and MACs of fusion, against all schedules of small networks with weights of both."""

from __future__ import annotations

import pytest

from formulations.compulsory import compulsory_bytes
from formulations.fusion.groups import Net
from formulations.fusion.part import FusionPart
from formulations.pins import parse_pins
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.stores import stores
from solver import check, pareto
from solver.problems.fusion import FUSION
from tests.adversary.fusion import Case
from tests.adversary.fusion_paths import Paths
from tests.effort import thinned

AGAIN = ("recompute=any",)


def _case(rows: int, columns: int, channels: int, banks: int, bank: int, *layers: tuple[str, tuple[int, ...], int],
          bytes: tuple[int, int, int, int] = (1, 2, 1, 4), bytewise: bool = False) -> Case:  # fmt: skip
    """A small network in which what strips need again may be computed again."""
    return Case(
        engines=("dynamic",), rule="", rows=rows, columns=columns, channels=channels, layers=layers, banks=banks,
        bank=bank, bytes=bytes, pins=AGAIN, energy=False, every=False, bytewise=bytewise,
    )  # fmt: skip


#: Drawn once, as their fronts have several points.
CASES = {
    "readers": _case(7, 2, 3, 16, 6, ("conv", (0,), 1), ("jump", (1,), 3), ("stride", (2,), 8), ("conv", (2,), 3)),
    "one column": _case(8, 1, 3, 12, 8, ("conv", (0,), 4), ("jump", (1,), 3)),
    "jump": _case(10, 6, 3, 4, 80, ("conv", (0,), 8), ("jump", (1,), 3)),
    "even": _case(
        7, 4, 4, 6, 68, ("conv", (0,), 3), ("even", (0,), 3), ("point", (2,), 3), ("even", (3,), 2), ("wide", (4,), 3),
        bytes=(1, 2, 1, 1),
    ),
    "in bytes": _case(
        9, 1, 4, 4, 21, ("point", (0,), 4), ("even", (1,), 8), ("conv", (2,), 1), ("stride", (3,), 1),
        bytes=(1, 1, 1, 1), bytewise=True,
    ),
}  # fmt: skip
QUICK = ("readers", "one column")


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in QUICK)]
)
def test_no_schedule_is_below_the_front(name: str) -> None:
    case = CASES[name]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion")
    points = [(point.values["bytes"], point.values["macs"]) for point in front.parts[0].points]
    assert front.proven
    assert len(points) > 1
    assert points == sorted(points)
    assert [macs for _, macs in points] == sorted({macs for _, macs in points}, reverse=True)
    assert all(check(plan).ok for plan in front.plans)
    part = FusionPart(case.network, case.machine, parse_pins(AGAIN, FUSION.decisions))
    for factors in thinned(((1, 0), (10, 1), (3, 1), (1, 1), (1, 3), (1, 10)), 2):
        paths = Paths(case.network, stores(case.network), case.machine, part.tables.nests, case.demanded, factors)
        best = paths.best()
        assert best[0] == min(factors[0] * moved + factors[1] * macs for moved, macs in points)


@pytest.mark.slow(2)
def test_strips_that_compute_again_may_leave_out_what_nobody_reads() -> None:
    """Of 10 x 6 pixels the last layer reads every other one of every other row, 15: 15 x (216 + 24) MACs at least."""
    case = CASES["jump"]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion")
    assert front.parts[0].points[-1].values == {"bytes": 4347, "macs": 15 * (216 + 24)}


def test_compulsory_bytes_leave_out_what_nobody_reads() -> None:
    """Two 1 x 1 layers with stride 2: of 9 x 9 pixels 3 x 3 are read by somebody; 9 x 4 + 16 + 16 + 9 x 4 bytes."""
    shape, half = (1, 4, 9, 9), (1, 4, 5, 5)
    one = {"filters": 4, "kernel": (1, 1), "stride": (2, 2)}
    network = Network(name="jumps", operators=(
        Input(name="in", shape=shape), Conv(name="a", inputs=("in",), shape=half, **one),
        Conv(name="b", inputs=("a",), shape=(1, 4, 3, 3), **one),
    ))  # fmt: skip
    machine = load_machine("scratchpad_768k")
    assert compulsory_bytes(Net.read(network, machine), machine) == 36 + 16 + 16 + 36


def test_without_recomputation_the_front_is_one_plan() -> None:
    case = CASES["one column"]
    assert case.network is not None
    front = pareto(case.network, case.machine, problem="fusion", pins=["recompute=no"])
    assert (front.proven, len(front.parts[0].points)) == (True, 1)
