"""Steps and transfers of plans of fusion: by hand, and as many bytes and ticks as their prices say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from formulations.fusion.arcs import MODES
from formulations.fusion.group_time import Around, GroupTime
from formulations.fusion.groups import Group
from formulations.fusion.memory import Option
from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.orders import WHOLE
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import option_of, streams_of
from formulations.fusion.steps import GroupSteps, joined
from formulations.fusion.strips import Mode
from formulations.pins import Pins
from formulations.prefetch.guards import apart, bound, settled
from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.strips import Moment, Walk
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Blocks, FusedRun, Hold, LayerRun, Loop, Nest, NetworkRun
from hwmodels.timeline.price import occupancy, refusals, times
from hwmodels.timeline.replay import replay
from hwmodels.timeline.schedule import Load, Step, Store
from instances.load import load_machine
from instances.machine.machine import Compute, Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Input, Pool
from instances.network.workload import Layer
from instances.zoo.builder import Builder
from instances.zoo.chains import CHAINS, chain, skip
from solver import show
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.registry import PROBLEMS
from tests.small import byte_machine


def part_of(plan: Plan) -> FusionPart:
    (part,) = PROBLEMS[plan.problem].parts_of(plan)
    assert isinstance(part, FusionPart)
    return part


def two(banks: int, *pins: str) -> tuple[FusionPart, Plan]:
    """Two 3x3 layers of 4 channels on 8 x 8 pixels (docs/fusion.md), with so many banks of 16 bytes."""
    memory = {"ocm_bytes": 16 * banks, "ocm_banks": banks}
    plan = solve(
        chain(4, 4, size=8), "scratchpad_768k", problem="fusion", objective="bytes", pins=pins, settings=memory
    )
    return part_of(plan), plan


def test_strips_by_hand() -> None:
    """Three visits of two layers: rows 0-3, 4-5 and 6-7 are loaded, 0-1, 2-3, 4-5 and 6-7 stored, weights twice 144.

    A row is 32 bytes. The first visit makes rows 0-2 and 0-1, so that there are four visits; nothing is loaded in the
    last one.
    """
    part, plan = two(34, "fuse=c0..c1", "strip=2")
    timeline = part.timelines.timeline(part.numbered(plan.part.schedule), WHOLE)
    loads = [(one.bytes, one.due) for one in timeline.transfers if isinstance(one, Load)]
    assert sorted(loads) == sorted([(4 * 32, 1), (2 * 32, 3), (2 * 32, 5), (144, 1), (144, 2)])
    assert [(one.bytes, one.released) for one in timeline.transfers if isinstance(one, Store)] == [
        (64, 2), (64, 4), (64, 6), (64, 8)]  # fmt: skip
    # 3, 2, 2 and 1 rows of c0, 2 of c1: a row is 8 pixels of 9 taps, in 8 ticks each
    assert [step.ticks for step in timeline.steps] == [rows * 8 * 9 * 8 for rows in (3, 2, 2, 2, 2, 2, 1, 2)]
    assert max(step.bytes for step in timeline.steps) == 8 * 32 + 288 == plan.part.figures[0].occupancy_bytes
    assert timeline.steps[0].bytes == (4 + 3) * 32 + 144  # weights of c1 are not there before it reads them
    (run,) = plan.part.schedule
    laid = part.prices.laid_out(0, 1, option_of(run))
    time = GroupTime(laid.group, part.machine, Around.of(run), laid.down, laid.across)
    beside = GroupSteps(time, laid.memory({}).held(()) + 7, np.array([run.weights]), 34 * 16).part()
    assert [one.bytes - 7 for one in beside.steps] == [one.bytes for one in timeline.steps]


def test_turns_that_add_nothing_up_are_steps_of_blocks() -> None:
    """4 filters of 2 bytes on 4 rows of a pixel, then the larger of two rows each, in two visits of two blocks.

    A block of 2 channels takes 2 cycles of 2 pixels and 2 of 2 rows of one, of 8 ticks. 4 bytes of the input, 4 of the
    map between and 4 of the result lie there. Three filters stay: two from the first block on, one from the second one,
    which has the last filter beside them.
    """
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "64", "ocm_banks": "0"})
    network = Network(name="turns", operators=(
        Input(name="in", shape=(1, 2, 4, 1)),
        Conv(name="a", inputs=("in",), shape=(1, 4, 4, 1), filters=4, kernel=(1, 1)),
        Pool(name="b", inputs=("a",), shape=(1, 4, 2, 1), fn="max", kernel=(2, 1), stride=(2, 1)),
    ))  # fmt: skip
    part = FusionPart(network, machine, Pins(()))
    made = streams_of(Group(part.net, 0, 1), Option(1, 1, "retain", "retain"))
    run = FusedRun(0, 1, *made, (6, 0), {}, (4, 0), (), (Blocks(0, 1, 2),))
    assert not part.walked(NetworkRun((run,))).faults
    assert not part.replay(NetworkRun((run,))).faults
    timeline = part.timelines.timeline(part.numbered(NetworkRun((run,))), WHOLE)
    assert [(step.ticks, step.bytes) for step in timeline.steps] == [(32, 12 + bytes_) for bytes_ in (4, 8, 6, 8)]
    loads = [(one.bytes, one.due) for one in timeline.transfers if isinstance(one, Load)]
    assert sorted(loads) == sorted([(4, 1), (4, 3), (4, 1), (2, 2), (2, 2), (2, 4)])
    assert [(one.bytes, one.released) for one in timeline.transfers if isinstance(one, Store)] == [(4, 2), (4, 4)]
    assert part.prices.price(run).peak_bytes == 12 + 6 + 2
    tight = FusionPart(network, machine.model_copy(update={"ocm_bytes": 17}), Pins(()))  # all blocks in one step
    one = NetworkRun((replace(run, weights=(2, 0)),))
    steps = tight.timelines.timeline(tight.numbered(one), WHOLE).steps
    assert [(step.ticks, step.bytes) for step in steps] == [(4 * 8, 17)] * 2


def test_the_last_visit_of_layers_in_turns_is_a_step() -> None:
    """Two 3x3 layers of 4 channels on 8 x 8 pixels take turns, in strips of a row: the first is done a visit before.

    It makes 2 rows in the first visit, then one in each, none in the last one: 8 pixels of 9 taps, in 8 ticks each.
    """
    part = FusionPart(chain(4, 4, size=8), load_machine("scratchpad_768k"), Pins(()))
    streams = streams_of(Group(part.net, 0, 1), Option(1, 8, "lead", "lead"))
    run = FusedRun(0, 1, *streams, (0, 0), {}, (8, 0), tuple(range(40)), (Blocks(0, 1, 1),))
    laid = part.laid(NetworkRun((run,)))
    rows = (2, 1, 1, 1, 1, 1, 1, 0)
    assert [step.ticks for step in laid.timeline.steps] == [(made + 1) * 8 * 9 * 8 for made in rows]
    assert not part.replay(NetworkRun((run,))).faults


@pytest.mark.parametrize(("room", "ticks"), [(4096, [800 + 64 + 144] * 15), (236, [8 * 900] * 7 + [4 * 900])])
def test_weights_of_turns_come_for_those_that_make_something(room: int, ticks: list[int]) -> None:
    """As before, with room for all weights and without: of the 8 visits the first layer has no part in the last one.

    Its 144 bytes of weights come in 7 visits, those of the other one in 8, in a call each. Where they find no room
    all of a visit are one transfer, with a call of 800 + 64 + 36 ticks for each of the 4 filters of a layer.
    """
    memory = {"ocm_bytes": str(room), "ocm_banks": "1", "psum_bytes": "1"}
    part = FusionPart(chain(4, 4, size=8), load_machine("scratchpad_768k", memory), Pins(()))
    streams = streams_of(Group(part.net, 0, 1), Option(1, 8, "lead", "lead"))
    run = FusedRun(0, 1, *streams, (0, 0), {}, (8, 0), (0,), (Blocks(0, 1, 1),))
    (made,) = part.timelines.parts(part.numbered(NetworkRun((run,))), WHOLE)
    weights = [one for name, one in zip(made.names, made.moves, strict=True) if name[0] == "W"]
    assert [one.ticks for one in weights] == ticks
    if room > 400:
        assert sum(one.bytes for one in weights) == part.prices.price(run).bytes["W"] == (7 + 8) * 144


def test_what_is_loaded_for_nothing_is_there_for_a_step_of_no_ticks() -> None:
    """A 3x3 layer of one channel on 4 x 4 pixels makes two columns a visit, of rows that stay; columns come again.

    In the first step of rows row 0 comes, columns 0..2 and then 1..3 beside column 0: 3 and 4 bytes, for no result.
    Then with 9 bytes of weights and 2 of the result 4 + 3, 4 + 4, 8 + 3, and 3 + 4 + 4: column 0 of row 0 has gone.
    """
    part = FusionPart(chain(1, size=4, channels=1), load_machine("scratchpad_768k"), Pins(()))
    streams = streams_of(Group(part.net, 0, 0), Option(1, 2, "retain", "recompute"))
    runs = NetworkRun((FusedRun(0, 0, *streams, (9,), {}, (0,), tuple(range(40))),))
    timeline = part.timelines.timeline(part.numbered(runs), WHOLE)
    assert [step.ticks for step in timeline.steps] == [0, 0] + [2 * 9 * 8] * 8
    assert [step.bytes for step in timeline.steps][:6] == [3, 4, 11 + 7, 11 + 8, 11 + 11, 11 + 11]
    loads = [(one.bytes, one.due) for one in timeline.transfers if isinstance(one, Load)]
    assert loads == [(3, due) for due in range(1, 9)] + [(9, 3)]
    assert not part.replay(runs).faults


def later() -> Network:
    """A convolution, and a sum of it with another input, which comes for the second layer only."""
    net = Builder("later", "")
    x, y = (net.input(1, 4, 8, 8, name=name) for name in "xy")
    net.eltwise("add", (net.conv(x, "c0", 4, 3, batch_norm=False, act=""), y), "sum")
    return net.build()


class Held(Count):
    """The referee of strips, which notes what lies on chip when a layer makes a piece, and what was loaded by then."""

    def __init__(self, part: FusionPart, run: FusedRun) -> None:
        super().__init__(part.machine, Walk(part.net, run))
        self.seen = list[tuple[int, int, int]]()

    def _take(self, moment: Moment) -> None:
        super()._take(moment)
        if moment.kind == "make" and moment.rows[0] < moment.rows[1] and moment.columns[0] < moment.columns[1]:
            self.seen.append((moment.stream, self.total, self.bytes["IN"]))


@pytest.mark.few(7)
@pytest.mark.parametrize(("mode", "width"), list(product(MODES, (8, 3))))
@pytest.mark.parametrize("net", [chain(4, 4, size=8), skip(4, 8), later()], ids=["chain", "skip", "later"])
def test_steps_hold_what_the_referee_sees(net: Network, mode: Mode, width: int) -> None:
    """Layer by layer, in every visit; what comes from outside is there for the layer that reads it first."""
    part = FusionPart(net, load_machine("scratchpad_768k"), Pins(()))
    last = len(part.net.layers) - 1
    group = Group(part.net, 0, last)
    streams = streams_of(group, Option(2, width, mode, "lead" if width == 8 else mode))
    unwritten = (*(8 for _ in range(last)), 0)
    run = FusedRun(0, last, *streams, (0,) * (last + 1), {}, unwritten, tuple(range(40)))
    laid = part.prices.laid_out(0, last, option_of(run))
    time = GroupTime(laid.group, part.machine, Around.of(run), laid.down, laid.across)
    made = GroupSteps(time, laid.memory({}).held(()), np.array([run.weights]), 10**9).part()
    referee = Held(part, run)
    counted = referee.run_all()
    weights = [part.groups.weight_bytes[k] for k, *_ in referee.seen]
    held = [one.bytes - size for one, size in zip(made.steps, weights, strict=True)]
    assert held == [total for _, total, _ in referee.seen]
    due = np.zeros(len(made.steps), np.int64)
    for one in made.moves:
        if isinstance(one, Load):
            due[one.due - 1] += one.bytes
    assert np.cumsum(due - weights).tolist() == [loaded for *_, loaded in referee.seen]
    assert sum(one.bytes for one in made.moves) == sum(counted.operand_bytes.values())


def test_blocks_of_filters_by_hand() -> None:
    """LeNet-5 in 8 KiB: filters of c5 have 400 bytes, of f6 120, and of two blocks each finds room beside the strips.

    Of c5 (8,192 - 912 - 150) / 2 / 400 = 8 filters, less than a round of 16 lanes; of f6 31, a round of 16.
    """
    plan = solve(
        "lenet5",
        "scratchpad_64k",
        problem="fusion",
        objective="bytes",
        settings={"ocm_bytes": "8192", "ocm_banks": "16"},
    )
    part = part_of(plan)
    timeline = part.timelines.timeline(part.numbered(plan.part.schedule), WHOLE)
    late = len(timeline.steps) - 22
    loads = [one.bytes for one in timeline.transfers if isinstance(one, Load) and one.due > late]
    assert loads == [8 * 400] * 15 + [16 * 120] * 5 + [4 * 120, 10 * 84]
    assert [step.bytes for step in timeline.steps[-22:-7]] == [912 + 8 * 400] * 15


def test_weights_that_stay_come_block_by_block_in_the_first_visit() -> None:
    """40 filters of 36 bytes in blocks of 16, a round of lanes: 16, 16 and 8 are due in the steps of visit one.

    Each is a third of the 3 rounds of the visit; then a visit is a step, and all 1,440 bytes are there.
    """
    part = FusionPart(chain(40, size=8, channels=4), load_machine("scratchpad_768k"), Pins(()))
    streams = streams_of(Group(part.net, 0, 0), Option(4, 8, "lead", "lead"))
    run = FusedRun(0, 0, *streams, (1440,), {}, (0,), tuple(range(40)))
    laid = part.prices.laid_out(0, 0, option_of(run))
    time = GroupTime(laid.group, part.machine, Around.of(run), laid.down, laid.across)
    held = laid.memory({}).held(())
    made = GroupSteps(time, held, np.array([run.weights]), 10**9, 16 * 36).part()
    assert [one.ticks for one in made.steps] == [4 * 8 * 9 * 8] * 3 + [4 * 8 * 9 * 3 * 8]
    assert [one.bytes for one in made.steps] == [held[0, 0, 0] + size for size in (576, 1152, 1440)] + [
        held[1, 0, 0] + 1440]  # fmt: skip
    weights = [(one.bytes, one.due) for one, maps in zip(made.moves, made.pieces, strict=True)
               if isinstance(one, Load) and not maps]  # fmt: skip
    assert sorted(weights) == [(288, 3), (576, 1), (576, 2)]


def test_pieces_of_maps_in_several_transfers() -> None:
    """4 rows of 8 pixels of 4 bytes in at most 70 bytes: 2 rows, a call each, due together."""
    part, plan = two(34, "fuse=c0..c1", "strip=2")
    (run,) = plan.part.schedule
    whole, cut = (part.timelines.timeline(part.numbered(NetworkRun((run,))), WHOLE, maps) for maps in (WHOLE, 70))
    first = [(one.bytes, one.ticks) for one in cut.transfers if isinstance(one, Load) and one.due == 1]
    assert (64, 800 + 64 + 64) in first
    assert first.count((64, 800 + 64 + 64)) == 2
    for kind in (Load, Store):
        moved = [sum(one.bytes for one in each.transfers if isinstance(one, kind)) for each in (whole, cut)]
        assert moved[0] == moved[1]


def test_tiles_that_load_nothing_are_steps() -> None:
    """Four rows of one channel, input and weights there: four tiles are stored one by one, each while the next is made.

    A call takes 5 ticks, a row of 4 bytes 4, a product 3: 5 + 16 and 5 + 1 ticks of loading, then 4 x 12 of computing.
    """
    layer = Layer.conv("x", channels=1, filters=1, size=(4, 4), kernel=(1, 1))
    array = Compute(model="array", rows=1, cols=1, cycle_ticks=3)
    machine = byte_machine(ocm_bytes=99, overlap="serial", compute=array, transfer=Transfer(call_ticks=5, byte_ticks=1))
    nest = Nest((Hold("IN"), Hold("W"), Loop("r", 1), Hold("OUT")))
    part = NestSteps(layer, machine, nest, 2).part()
    assert part.steps == [Step(12, 2 + 16 + 1 + 4)] * 4
    assert [(one.ticks, one.bytes) for one in part.moves] == [(21, 16), (6, 1)] + [(9, 4)] * 4
    timeline, found = settled(apart(joined([part])), 99)
    assert found.latency == 21 + 6 + 4 * 12 + 9
    assert times(apart(timeline)).latency == price(layer, machine, nest).time_ticks == 27 + 4 * (12 + 9)


def test_loads_lie_beside_the_visit_before() -> None:
    """544 bytes have room for the next two rows beside every visit but the fullest."""
    part, plan = two(34, "fuse=c0..c1", "strip=2")
    begin, room = part.timelines.timeline(part.numbered(plan.part.schedule), WHOLE), 34 * 16
    timeline, found = settled(apart(begin), room)
    assert int(occupancy(timeline).max()) <= room
    assert replay(timeline).latency == found.latency >= part.laid(plan.part.schedule).ticks
    assert part.least_time(plan.part.schedule) == bound(timeline, room) <= found.latency < times(apart(begin)).latency
    took = part.laid(plan.part.schedule).ticks
    assert plan.part.measures["time"] == took == part.replay(plan.part.schedule).measures["time"]
    assert f"{took * 125e-6:,.1f} us with prefetch" in show(plan)


def test_plans_of_many_transfers_are_not_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more transfers than are looked at nothing lies beside a step, and the plan says so."""
    sooner = two(34, "fuse=c0..c1", "strip=2")[1].part.measures["time"]
    monkeypatch.setattr("formulations.fusion.latency.timelines.MOST_MOVES", 3)
    plan = two(34, "fuse=c0..c1", "strip=2")[1]
    assert plan.part.schedule.queue is None
    laid = part_of(plan).laid(plan.part.schedule)
    assert laid.ticks == times(apart(laid.timeline)).latency == plan.part.measures["time"] > sooner
    assert "each step after its transfers" in show(plan)


@pytest.mark.parametrize(("network", "machine", "problem", "settings"), [
    ("lenet5", "scratchpad_64k", "fusion", {"ocm_banks": "16"}),
    ("lenet5", "scratchpad_64k", "joint", {"ocm_banks": "16"}),
    ("lenet5", "scratchpad_64k", "fusion", {"ocm_bytes": "8192", "ocm_banks": "16"}),  # blocks of filters
    (CHAINS["products"](), "scratchpad_768k", "fusion", {"ocm_bytes": "65536", "ocm_banks": "16"}),  # turns
    pytest.param("squeezenet1_1", "scratchpad_768k", "fusion", {"ocm_bytes": "262144", "ocm_banks": "16"},
                 marks=pytest.mark.slow(20)),
])  # fmt: skip
def test_networks_move_and_compute_what_their_prices_say(
    network: str | Network, machine: str, problem: str, settings: dict[str, str]
) -> None:
    plan = solve(network, machine, problem=problem, settings=settings)
    part, runs, moved = part_of(plan), plan.part.schedule, 0
    for first, last, run in part.numbered(runs):
        if isinstance(run, FusedRun):
            laid = part.prices.laid_out(first, last, option_of(run))
            time = GroupTime(laid.group, part.machine, Around.of(run), laid.down, laid.across)
            held = laid.memory(run.residents).held(run.blocks)
            group = GroupSteps(time, held, np.array([run.weights]), 2**30)  # all weights of turns fit
            moved += sum(one.bytes for one in group.part().moves)
            assert int(held.max()) == laid.memory(run.residents).peak(run.blocks)
    price = part.price(runs)
    fused = sum(sum(part.prices.price(run).bytes.values()) for run in runs if isinstance(run, FusedRun))
    assert moved == fused
    timeline, room = (
        part.timelines.timeline(part.numbered(runs), WHOLE),
        part.machine.bank_count * part.machine.bank_bytes,
    )
    if all(isinstance(run, LayerRun) for run in runs):  # one layer after the other: as serial nests take
        outcomes = (price.counts[f"layer {layer.name}: ticks"] for layer in part.net.layers)
        assert times(apart(timeline)).latency == sum(outcomes)
    made, found = settled(apart(timeline), room)
    assert not refusals(made)
    assert int(occupancy(made).max()) <= room
    seen = replay(made)
    assert (seen.latency, seen.faults) == (found.latency, [])
    assert seen.peak_bytes <= room
