"""Problems joint and fusion in a memory without banks: by hand, beside banks of any size, and by the referee."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from formulations.fusion.groups import Group
from formulations.fusion.schedule import BankBook, left_of
from formulations.pins import Pins
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.schedule import LayerRun, NetworkRun
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Eltwise, Input
from instances.network.stores import Stores, stores
from solver import check, show, solve
from solver.plan.plan import Plan
from solver.problems.fusion import FUSION
from solver.problems.joint import rows_of
from tests.formulations.test_joint import chain as chain_of_two
from tests.formulations.test_joint import conv, with_skip
from tests.golden_plans import chain
from tests.lies import problems

MACHINE = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=104, sliding=True,
    in_layout="HWC", out_layout="HWC", w_layout="OHWI", byte_fj=10, mac_fj=1,
    transfer=Transfer(call_ticks=5, segment_ticks=2, byte_ticks=1),
)  # fmt: skip


def memory(size: int, banks: int = 0) -> Machine:
    return MACHINE.model_copy(update={"ocm_bytes": size, "ocm_banks": banks})


def moved(plan: Plan) -> int | None:
    return None if plan.objective is None else plan.objective.value


def joint(network: Network, machine: Machine, engine: str = "dynamic") -> Plan:
    return solve(network, machine, problem="joint", engine=engine)


def fused(network: Network, machine: Machine, **options: Any) -> Plan:
    return solve(network, machine, problem="fusion", objective="bytes", **options)


# ---- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("size", "rows", "engine"), [(100, 4, "dynamic"), (101, 5, "milp"), (148, 7, "cp-sat"), (149, 8, "dynamic")]
)
def test_rows_take_their_bytes(size: int, rows: int, engine: str) -> None:
    # Layer a needs a pixel of its input, its weights and a result: 4 + 16 + 1 = 21 bytes; layer b no more.
    # A row of a takes 16, so size - 21 bytes hold `rows` of its 8 rows; each of the others is written and read again.
    # Bytes: in 128, weights 2 * 16, b 128, and 2 * 16 for each of the others.
    plan = joint(chain_of_two(), memory(size), engine)
    assert (plan.status, moved(plan)) == ("OPTIMAL", 288 + 32 * (8 - rows))
    assert [(one.rows, one.banks, one.bytes) for one in rows_of(plan)[1].on_chip] == [(rows, (), 16 * rows)]
    assert {row.banks for row in plan.schedule} == {()}
    assert check(plan).ok


def test_strips_take_their_bytes() -> None:
    """The example of docs/fusion.md: strips of two rows and all weights take 544 bytes."""
    pins = ["fuse=c0..c1", "strip=2", "turns=no"]
    two, on = chain(4, 4, size=8), load_machine("scratchpad_768k", {"ocm_bytes": "544", "ocm_banks": "0"})
    whole = fused(two, on, pins=pins)
    assert (whole.status, moved(whole), whole.part.figures[0].occupancy_bytes) == ("OPTIMAL", 800, 544)
    # with a byte less the strips are parts of rows, in two steps of columns or more
    less = fused(two, on.model_copy(update={"ocm_bytes": 543}), pins=pins)
    assert (less.status, moved(less)) == ("OPTIMAL", 800)
    assert less.part.figures[0].occupancy_bytes <= 543
    assert less.schedule[0].columns.last > 1
    assert check(whole).ok
    assert check(less).ok


# ---- banks -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("network", "size"),
    [(chain_of_two(), 60), (chain_of_two(), 104), pytest.param(with_skip(), 100, marks=pytest.mark.slow(60))],
)
def test_banks_of_any_size_move_no_less(network: Network, size: int) -> None:
    least, strips = moved(joint(network, memory(size))), moved(fused(network, memory(size)))
    assert strips <= least
    for banks in (1, 3, 7):
        on = memory(size, banks)
        for found, plan in ((least, joint(network, on)), (strips, fused(network, on))):
            value = moved(plan)
            assert value is None or value >= found


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("network", "size"), [(chain_of_two(), 60), pytest.param(with_skip(), 100, marks=pytest.mark.slow(60))]
)
def test_banks_of_one_byte_are_the_same(network: Network, size: int) -> None:
    assert moved(joint(network, memory(size, size))) == moved(joint(network, memory(size)))
    assert moved(fused(network, memory(size, size))) == moved(fused(network, memory(size)))


@cache
def strips() -> Plan:
    return fused(with_skip(), memory(160))


def test_rooms_are_all_that_maps_may_leave() -> None:
    """Two layers of 1x1 after a: a has 2 rows of 6 bytes, b 2 of 4; before b's reader both may be on chip."""
    shape = (1, 1, 2, 6)
    network = Network(name="two", operators=(
        Input(name="in", shape=shape), conv("a", "in", shape, 1), conv("b", "a", shape, 2),
        conv("c", "a", shape, 2), Eltwise(name="s", inputs=("b", "c"), shape=(1, 2, 2, 6), fn="add"),
    ))  # fmt: skip
    part = FUSION.read(network, memory(41), Pins(()), None)[0]
    # a group of a and b leaves a (6 bytes a row) and b (12 a row): 0, 6, 12 and 0, 12, 24 together
    taken = {one + other for one in (0, 6, 12) for other in (0, 12, 24)}
    assert list(part.groups.rooms(Group(part.net, 0, 1))) == sorted({0, *(41 - bytes_ for bytes_ in taken)})
    (banked,) = FUSION.read(network, memory(41, 3), Pins(()), None)
    assert list(banked.groups.rooms(Group(part.net, 0, 1))) == [0, 1, 2, 3]


# ---- the referee -----------------------------------------------------------------------------------------------------


def planned() -> tuple[Stores, tuple[LayerRun, ...]]:
    return stores(chain_of_two()), joint(chain_of_two(), MACHINE).schedule


def faults(changed: LayerRun, step: int = 1) -> str:
    found, runs = planned()
    return "; ".join(replay_fusion(found, MACHINE, (*runs[:step], changed, *runs[step + 1 :])).faults)


@pytest.mark.slow(4)
def test_maps_and_tiles_take_no_more_than_there_is() -> None:
    found, runs = planned()
    (store,) = runs[1].residents
    assert not replay_fusion(found, MACHINE, runs).faults
    more = replace(runs[0], residents={store: (6, ())})  # 96 bytes, 8 are left of 104
    assert "tiles take 24 bytes, maps on chip leave 8" in faults(more, 0)
    most = replace(runs[0], residents={store: (8, ())})
    assert "maps on chip take 24 bytes more than m has" in faults(most, 0)
    assert "9 rows of a are on chip, it has 8" in faults(replace(runs[0], residents={store: (9, ())}), 0)
    assert "-1 rows of a are on chip" in faults(replace(runs[0], residents={store: (-1, ())}), 0)


@pytest.mark.slow(2)
def test_there_is_no_bank() -> None:
    _, runs = planned()
    (store,) = runs[1].residents
    assert "bank 3 does not exist, m has no banks" in faults(replace(runs[1], banks=(3,)))
    assert "bank 0 does not exist" in faults(replace(runs[1], residents={store: (5, (0, 1))}))


def test_strips_that_do_not_fit_beside_maps() -> None:
    two = chain(4, 4, size=8)
    on = load_machine("scratchpad_768k", {"ocm_bytes": "544", "ocm_banks": "0"})
    (run,) = fused(two, on, pins=["fuse=c0..c1", "strip=2", "turns=no"]).schedule
    found, tight = stores(two), on.model_copy(update={"ocm_bytes": 543})
    assert not replay_fusion(found, on, (run,)).faults
    assert (
        replay_fusion(found, tight, (run,))
        .faults[0]
        .endswith("strips and weights take 544 bytes, maps on chip leave 543")
    )
    (part,) = FUSION.read(two, tight, Pins(()), None)
    assert "544 bytes on chip, there is room for 543" in part.contains(NetworkRun((run,)))[0]


def test_places_of_maps() -> None:
    in_banks, in_bytes = BankBook(memory(104, 4)), BankBook(MACHINE)
    assert in_banks.given({7: 2}) == ({7: (0, 1)}, (2, 3))
    assert in_banks.given({7: 1, 8: 2}) == ({7: (0,), 8: (1, 2)}, (3,))
    assert in_banks.given({8: 2}) == ({8: (1, 2)}, (0, 3))
    assert in_bytes.given({7: 32, 8: 16}) == ({7: (), 8: ()}, ())
    found, runs = planned()
    assert left_of(found, MACHINE, runs[1]) == ((), 104 - 5 * 16)
    (store,) = runs[1].residents
    banked = replace(runs[1], residents={store: (1, (0, 2))})
    assert left_of(found, memory(104, 4), banked) == ((1, 3), 2 * 26)


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_says_bytes_and_no_banks() -> None:
    plan = joint(chain_of_two(), MACHINE)
    (part,) = json.loads(plan.to_json())["parts"]
    (number,) = part["schedule"]["runs"][1]["residents"]
    assert (part["schedule"]["runs"][1]["residents"][number], part["figures"][1]["on_chip"]) == ([5, []], {"a": 80})
    assert Plan.from_json(plan.to_json()) == plan
    (banked,) = rows_of(joint(chain_of_two(), memory(104, 4)))[1].on_chip
    assert banked.banks
    assert banked.bytes is None


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("figures.1.on_chip", {"a": 79}, "figures[1].on_chip.a"),
        ("schedule.1.residents", lambda rows: {s: [5, [0]] for s in rows}, "m has no banks"),
        ("schedule.1.residents", lambda rows: {s: [6, []] for s in rows}, "in the layer before 5 were"),
    ],
)
def test_a_plan_that_lies_is_found_out(place: str, value: object, message: str) -> None:
    found = problems(joint(chain_of_two(), MACHINE), (f"parts.0.{place}", value))
    assert any(message in line for line in found), found


@pytest.mark.slow(3)
def test_what_is_shown() -> None:
    plan, strips = joint(chain_of_two(), MACHINE), fused(with_skip(), memory(160), pins=["cut=a"])
    table, everything = show(plan), show(plan, details=True)
    assert "tile bytes" in table
    assert "tile banks" not in table
    # 104 bytes: layer b has 80 of a and its tiles
    assert "bytes on chip, of 104" in everything
    assert "a 80 (5 rows)" in everything
    assert "5 rows of a (input 1) take 80 bytes" in everything
    assert "in banks" not in everything
    assert "rows of a take " in show(strips, details=True)
    assert "bank" not in show(strips, details=True)
