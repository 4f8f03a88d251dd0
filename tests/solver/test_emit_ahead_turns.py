"""C whose transfers run ahead, of layers that take turns: a step for every block of channels, of both layers.

Every program compares results with naive loop nests, each transfer with the segments and bytes of the plan, and what
groups move with what the plan counts. `Whole` refuses a step with more bytes than the plan counts.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from certile import Plan, solve
from formulations.clock import ENDLESS
from formulations.fusion.groups import Group
from formulations.fusion.memory import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.fusion.strips import Mode
from formulations.fusion.work import work_of
from formulations.pins import Pins
from hwmodels.schedule import Blocks, FusedRun, NetworkRun
from instances.errors import InputError
from instances.machine.machine import Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Input, Pool
from solver.calls.check import faults_of
from solver.uses.emit.ahead import whole
from solver.uses.emit.ahead.addressed import addressed, carried, said_of
from solver.uses.emit.ahead.placing import NoAddresses
from solver.uses.emit.ahead.program import AheadPlanned
from solver.uses.emit.emit import files_of
from tests.effort import tries
from tests.emitted import BUILDS, built_both_ways, needs_gcc, random_group
from tests.solver.test_emit_ahead_nests import Alone, machine


def pooled_plan(ocm_bytes: int) -> Plan:
    """8 channels of 4 pixels, a 1x1 layer of 4 filters, a pool of all pixels, in turns of a channel (docs/fusion.md).

    On a core of one product a tick, at a byte a tick.
    """
    settings = {"transfer.call_ticks": "0", "transfer.segment_ticks": "0", "transfer.byte_ticks": "1"}
    settings |= {"compute.rows": "1", "compute.cols": "1", "compute.cycle_ticks": "1"}
    settings |= {"ocm_bytes": str(ocm_bytes), "ocm_banks": "0"}
    network = Network(name="pooled", operators=(
        Input(name="in", shape=(1, 8, 1, 4)),
        Conv(name="a", inputs=("in",), shape=(1, 4, 1, 4), filters=4, kernel=(1, 1)),
        Pool(name="b", inputs=("a",), shape=(1, 4, 1, 1), fn="global_avg"),
    ))  # fmt: skip
    return solve(network, "scratchpad_768k", problem="fusion", pins=["fuse=a..b"], settings=settings)


@needs_gcc
def test_turns_by_hand(tmp_path: Path) -> None:
    """Four steps: filter k of `a`, then channel k of `b`; 48 bytes in each, which are all that there are.

    32 of the input and 4 of the result are there all the time, 4 of the map between and a filter of 8 for one step.
    """
    plan = pooled_plan(48)
    source = carried(plan)
    work = work_of(source.sources[0])
    assert [(one.step, one.layer, one.first, one.last) for one in work] == [
        (k + 1, layer, k, k + 1) for k in range(4) for layer in (0, 1)
    ]  # fmt: skip
    made = AheadPlanned(plan.network_data, plan.machine_data, plan.schedule.runs, None, carried=source).whole
    between, result = made.made[0], made.made[1]
    assert (between.first.tolist(), between.last.tolist()) == ([[1, 2, 3, 4]], [[1, 2, 3, 4]])
    assert (result.first.tolist(), result.last.tolist()) == ([[1]], [[4]])
    filters = [move.filters for move in made.moves if move.filters is not None]
    assert [(one.begin, one.end, one.due, one.last) for one in filters] == [(k, k + 1, k + 1, k + 1) for k in range(4)]
    for said in built_both_ways(files_of(plan, transfers="ahead"), tmp_path).values():
        assert "results and transfers as planned" in said


def test_transfers_of_turns_in_another_order_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 56 bytes the next filter lies beside each step; where addresses are found with 8 free alone, none does."""
    plan, placed = pooled_plan(56), whole.placed
    monkeypatch.setattr(whole, "placed", lambda *args: placed(*args[:-1], args[-1] - 8))
    made = addressed(plan, plan.network_data, None, ENDLESS)
    assert [max(step.bytes for step in one.timeline if step.lane == "engine") for one in (plan, made)] == [56, 48]
    assert faults_of(made) == []
    assert [one.measures and one.measures["time"] for one in (plan, made)] == [188, 212]
    assert said_of(plan, made).endswith("addresses: 12.77 % more time")


def in_turns(
    network: Network, height: int, stay: int = 0, rows: Mode = "lead", more: float = 1, **fields: Any
) -> Alone:
    """Two layers in turns of two blocks of channels, so many rows a visit; bytes of weights of the first stay.

    In so many times the memory that its steps need.
    """
    on = machine(**fields)
    part = FusionPart(network, on, Pins(()))
    made, last = part.net.layers
    streams = streams_of(Group(part.net, 0, 1), Option(height, last.c, rows, "lead"))
    turns = (Blocks(0, 1, made.g * made.m // 2),)
    run = FusedRun(0, 1, *streams, (stay, 0), {}, (made.r, 0), (), turns)
    return Alone.of(network, on, NetworkRun((run,)), more)


def sliding(kind: type[Conv | Pool] = Pool, images: int = 1) -> Network:
    """Four filters on five rows, then three rows of each channel, one by one."""
    shape, kernel = (images, 2, 5, 3), (3, 2)
    fields: dict[str, Any] = {"fn": "max"} if kind is Pool else {"filters": 4, "groups": 4, "bias": True}
    return Network(name="sliding", operators=(
        Input(name="in", shape=shape),
        Conv(name="a", inputs=("in",), shape=(images, 4, 5, 3), filters=4, kernel=(1, 1), bias=True),
        kind.model_validate({"name": "b", "inputs": ("a",), "shape": (images, 4, 3, 2), "kernel": kernel, **fields}),
    ))  # fmt: skip


def test_rows_of_a_block_stay_until_its_turn_has_read_them() -> None:
    """Three visits of two blocks, one step each; rows 0 to 2 are made in the first, 3 and 4 in the others.

    Row 1 of block 0 is read in visits 1 and 2, so it lies in steps 1 to 3, that of block 1 in steps 2 to 4.
    """
    one = in_turns(sliding(), 1)
    between, result = one.whole.made[0], one.whole.made[1]
    assert between.cuts == (0, 2, 4)
    assert between.first.tolist() == [[1, 2], [1, 2], [1, 2], [3, 4], [5, 6]]
    assert between.last.tolist() == [[1, 2], [3, 4], [5, 6], [5, 6], [5, 6]]
    assert result.first.tolist() == [[1], [3], [5]]


@needs_gcc
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize(("kind", "images"), [(Pool, 2), (Conv, 1)])
def test_pools_and_depthwise_layers(kind: type[Conv | Pool], images: int, layout: str, tmp_path: Path) -> None:
    """Three of four filters stay, one of them of the second block; `b` makes nothing in its first two turns."""
    fields = {"in_layout": layout, "out_layout": layout, "w_layout": "OIHW" if layout == "CHW" else "OHWI"}
    one = in_turns(sliding(kind, images), 1, 3 * (2 + 4), "retain", 1.6, **fields)
    for said in built_both_ways(one.files, tmp_path).values():
        assert "results and transfers as planned" in said


def test_all_turns_in_one_step_are_not_written() -> None:
    """Where the weights of a block find no room all come in turns, in one step; so do turns that add up."""
    one = in_turns(sliding(), 3)
    (run,), source = one.runs.runs, one.part.carried(one.runs)
    assert source is not None
    tight = max(step.bytes for step in source.laid.parts[0].steps) - 1
    with pytest.raises(InputError, match=r"^a..b: layers take all their turns in one step$"):
        _ = Alone(one.network, on := one.machine.model_copy(update={"ocm_bytes": tight}), NetworkRun((run,)),
                  FusionPart(one.network, on, Pins(()))).files  # fmt: skip


def random_ahead(seed: int, **kinds: bool) -> Alone:
    """A random group of some kinds (`random_group`), in about as much memory as its steps need."""
    rng = random.Random(seed)
    planned = random_group(rng, ahead=True, **kinds)
    price = Transfer(byte_ticks=1, segment_ticks=1, call_ticks=2)
    on = planned.machine.model_copy(update={"ocm_bytes": 2**20, "transfer": price})
    return Alone.of(planned.network, on, NetworkRun(planned.runs), rng.choice((1, 1.2, 1.6, 3)))


#: What of random groups is refused, by kind, but for addresses.
REFUSED = {"passing": "all their turns in one step", "sampled": "samples columns of a map whose channels lie apart"}


def run_ahead(kind: str, seed: int, folder: Path, flags: str = "-O0") -> bool:
    """Write, build and run a random group; returns whether it is written."""
    try:
        files = random_ahead(seed, **{kind: True}).files
    except NoAddresses:
        return False
    except InputError as error:
        assert REFUSED[kind] in str(error)  # noqa: PT017
        return False
    for said in built_both_ways(files, folder / str(seed), flags).values():
        assert "results and transfers as planned" in said, seed
    return True


@needs_gcc
@pytest.mark.parametrize("seed", [6, 18, 24])
def test_groups_with_turns(seed: int, tmp_path: Path) -> None:
    """A layer that makes nothing in its turn, rows in two pieces, two pairs of layers; two images each."""
    assert run_ahead("passing", seed, tmp_path)


@needs_gcc
@pytest.mark.parametrize("seed", [9, 10, 2])
def test_groups_whose_input_is_sampled(seed: int, tmp_path: Path) -> None:
    """Columns whose last one adjoins the next row; rows where channels lie apart; both of two images."""
    assert run_ahead("sampled", seed, tmp_path)


@needs_gcc
@pytest.mark.slow(20)
@pytest.mark.parametrize("kind", REFUSED)
def test_random_groups(kind: str, tmp_path: Path) -> None:
    written = sum(run_ahead(kind, seed, tmp_path, BUILDS[2]) for seed in range(100, 100 + tries(10, 400)))
    assert written > 2
