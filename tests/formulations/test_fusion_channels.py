"""Networks whose weights have a DMA queue of their own: times by hand, bounds, and orders of two queues."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from formulations.fusion.groups import Group
from formulations.fusion.latency.bounds import Floors
from formulations.fusion.latency.channels import Channels, Price
from formulations.fusion.latency.options import Options
from formulations.fusion.latency.paths import Paths
from formulations.fusion.memory import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import DECISIONS
from formulations.fusion.schedule import streams_of
from formulations.pins import Pins, parse_pins
from formulations.prefetch.stalls import stalls
from hwmodels.schedule import FusedRun, NetworkRun
from hwmodels.timeline.price import times
from hwmodels.timeline.schedule import Load, Step, Timeline
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine
from solver import check, show
from solver.calls.solve import solve
from solver.problems.registry import PROBLEMS
from solver.uses.emit.emit import emit_c
from tests.adversary.network_time import planned
from tests.adversary.network_time_nets import drawn, pinned, split
from tests.effort import tries
from tests.flash import with_flash
from tests.golden_plans import chain

#: A tick a byte, no calls; 4 x 4 lanes, a tick a cycle.
PLAIN = {
    "ocm_bytes": "2048", "ocm_banks": "0", "transfer.call_ticks": "0", "transfer.segment_ticks": "0",
    "transfer.byte_ticks": "1", "compute.rows": "4", "compute.cols": "4", "compute.cycle_ticks": "1",
}  # fmt: skip
TWO = chain(4, 4, size=8)


def machine(channels: str, **settings: object) -> Machine:
    """Maps at a tick a byte, weights at four."""
    asked = PLAIN | {name: str(value) for name, value in settings.items()}
    on = with_flash(load_machine("scratchpad_768k", asked))
    return on.model_copy(update={"channels": channels})


def part_of(channels: str, *pins: str, **settings: object) -> FusionPart:
    return FusionPart(TWO, machine(channels, **settings), parse_pins(pins, DECISIONS))


# ---- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("channels", "ticks"), [("one", 2240), ("each", 1984)])
def test_two_layers_in_one_strip_by_hand(channels: str, ticks: int) -> None:
    """64 pixels of 9 taps take 576 ticks a layer, its 144 bytes of weights 4 * 144 = 576, input and result 256 each.

    By one queue the first layer waits until 256 + 576 = 832 and ends at 1408, when the second one's weights are there:
    1984, and the result. By two queues it waits for its weights alone, until 576, and ends at 1152, when the others are
    there: 1728, and the result.
    """
    part = part_of(channels)
    steps = streams_of(Group(part.net, 0, 1), Option(8, 8, "lead", "lead"))
    runs = NetworkRun((FusedRun(0, 1, *steps, (144, 144), {}, (8, 0), ()),))
    assert part.price(runs).measures["time"] == part.replay(runs).measures["time"] == ticks
    assert not part.replay(runs).faults
    laid = part.laid(runs)
    assert {(name[0], one.queue) for name, one in zip(laid.parts[0].names, laid.parts[0].moves, strict=True)} == {
        ("IN", 0), ("W", int(channels == "each")), ("OUT", 0),
    }  # fmt: skip
    assert part.least_time(runs) <= ticks


def test_what_must_be_moved_by_two_queues() -> None:
    """Weights take 4 * 288 = 1152 ticks, input and result 512, computing 2 * 576: by one queue 1664, by two 1152."""
    assert part_of("one").compulsory_ticks == 1152 + 512
    assert part_of("each").compulsory_ticks == 1152


def test_channels_of_a_machine() -> None:
    """Results have the last channel, also where their memory is the first; one queue takes the dearest byte ahead."""
    near, far = Price(1, 0, 0), Price(4, 0, 0)
    each, one = Channels.of(machine("each")), Channels.of(machine("one"))
    assert each == Channels((1, 0), 1, 0, near, far, near)
    assert (each.number, each.results, each.ahead, each.least) == (2, 1, (4, 1), (4, 1))
    assert one == Channels((0,), 0, 0, near, far, near)
    assert (one.ahead, one.least, one.alike, each.alike) == ((4,), (1,), False, False)
    assert Channels.of(machine("one"), apart=True) == each
    assert Channels.of(load_machine("scratchpad_768k")).alike


@pytest.mark.parametrize("channels", ["one", "each"])
def test_a_network_is_planned_with_two_queues(channels: str) -> None:
    """In time and in bytes; what is shown has a lane for each memory."""
    plan = solve(TWO, machine(channels), problem="fusion", objective="time", pins=["fuse=c0..c1", "strip>=4"])
    assert check(plan).ok
    assert plan.part.bounds["time"] <= plan.part.measures["time"] <= {"one": 2240, "each": 1984}[channels]
    lines = show(plan)
    assert ("flash loads" in lines) == ("ram stores" in lines) == (channels == "each")
    heads = [column.head for column in PROBLEMS["fusion"].timeline(plan).sheet().columns]
    assert ("memory" in heads) == (channels == "each")
    seen = {one.memory for one in plan.timeline if one.lane == "load"}
    assert seen == ({"ram", "flash"} if channels == "each" else {""})
    (figure, *_) = PROBLEMS["fusion"].timeline(plan).figures()
    assert figure.y.limits == (0, 4 if channels == "each" else 3)


def test_two_queues_are_no_slower() -> None:
    """The same runs and order of transfers, of random networks: the queue of the maps does not wait for weights."""
    rng, faster = random.Random(7), 0
    for _ in range(tries(12, 100)):
        case = split(drawn(rng, 2, 4, 3), rng, each=False)
        plan = planned(pinned(case, rng), "greedy-prefetch")
        if not plan.decided:
            continue
        part = FusionPart(plan.network_data, replace(case, each=True).machine, Pins(()))
        replayed = part.replay(plan.part.schedule)
        ticks = replayed.measures["time"]
        assert not replayed.faults
        assert ticks == part.price(plan.part.schedule).measures["time"] <= plan.part.measures["time"]
        faster += ticks < plan.part.measures["time"]
    assert faster > 3


# ---- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", ["one", "each"])
@pytest.mark.parametrize("bytes_", [700, 1200, 4096])
def test_no_plan_of_two_memories_is_below_the_bounds(channels: str, bytes_: int) -> None:
    """Random paths of options: by the queues of the machine, and as if both memories had one."""
    part, rng = part_of(channels, ocm_bytes=bytes_, **{"transfer.call_ticks": 20}), random.Random(bytes_)
    options = Options(part.groups, 128, part._nest_in)
    floors = [Floors(part.groups, part.tables.nests.arcs("proven"), options.suited, apart=one) for one in (False, True)]
    every = [Paths(one) for one in floors]
    least = max(max(one.ends()[0][0], one.moving) for one in every)
    best, ticks = Paths(options), list[int]()
    ends = [end for _, end in best.ends()]
    for end in rng.sample(ends, min(len(ends), tries(12, 100))):
        ticks.append(part.laid(options.runs(best.path(end))).ticks)
    assert least <= min(ticks)


def test_bounds_of_a_machine_with_one_queue_know_its_memories() -> None:
    """All transfers by themselves: 4 * 288 ticks of weights and 512 of maps. By two queues the longer of both."""
    for channels, moved in (("one", [1664, 1152]), ("each", [1152, 1152])):
        part = part_of(channels)
        suited = Options(part.groups, 128).suited
        floors = (Floors(part.groups, part.tables.nests.arcs("proven"), suited, apart=one) for one in (False, True))
        assert [Paths(one).moving for one in floors] == moved


@pytest.mark.parametrize(("channels", "begin"), [("one", 64 + 216), ("each", 216)])
def test_what_the_first_step_waits_for_by_hand(channels: str, begin: int) -> None:
    """4 filters of 36 bytes, 8 x 8 pixels, in strips of a row: 72 ticks for each of 8, the first needs 64 bytes.

    It waits for all filters, 576 ticks, or for one, 144, and then takes a round more, 72. By two queues for the longer.
    """
    net = chain(4, size=8)
    part = FusionPart(net, machine(channels), Pins(()))
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    place = frozenset[int](), floors.room
    found = [way.matrix[0, 0] for way in Options.ways(floors, 0, 0, [place])[place] if way.option.height == 1]
    assert min(found) == 8 * 72 + begin


# ---- what is explained, and refused ----------------------------------------------------------------------------------


def test_a_wait_is_hidden_by_a_rate_of_its_own_memory() -> None:
    """Three steps of 10 ticks; the last one waits for 20 bytes in 40 ticks that begin with the first: 20 too long.

    These are two ticks a byte, all of the 40, and have to be 40 / 20 times as fast. A transfer of the other queue, at a
    tick a byte, is in nobody's way.
    """
    moves = Load(20, 20, 3, 1), Load(40, 20, 3, 1, 1)
    timeline = Timeline((Step(10, 40),) * 3, moves)
    (wait,) = stalls(timeline, times(timeline), 99, (1, 2), 5)
    assert (wait.wait.step, wait.wait.ticks, wait.faster) == (3, 20, Fraction(40, 20))


def test_c_ahead_has_one_queue(tmp_path: Path) -> None:
    plan = solve(TWO, machine("each"), problem="fusion", objective="bytes")
    with pytest.raises(InputError, match="C has one queue for transfers ahead, channels 'each' has one for every"):
        emit_c(plan, tmp_path / "ahead", transfers="ahead")
    emit_c(plan, tmp_path / "steps")
    assert "ahead.c" not in {one.name for one in (tmp_path / "steps").iterdir()}


def test_channels_need_memories() -> None:
    with pytest.raises(InputError, match="channels 'each' needs off_chip"):
        load_machine("scratchpad_768k", {"channels": "each"})


def test_a_machine_that_says_nothing_of_channels_has_one() -> None:
    """It is written without them, as machines were before."""
    text = machine("one").model_dump_json()
    assert '"channels"' not in text
    assert Machine.model_validate_json(text).channels == "one"
    assert Machine.model_validate_json(machine("each").model_dump_json()).channels == "each"
