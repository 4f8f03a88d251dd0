"""The time of networks: schedules of tiny ones, a hand-worked example, and the search of orders against all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product

import pytest

from formulations.fusion.group_time import GroupTime
from formulations.fusion.groups import Group
from formulations.fusion.steps import GroupSteps, Piece
from instances.errors import PlanMismatch
from solver.calls.solve import solve
from tests.adversary.network_time import Brute, attacked, compared, joined, planned
from tests.adversary.network_time_events import Job, Move, Search, simulate
from tests.adversary.network_time_groups import Beside, Groups, Strips
from tests.adversary.network_time_nets import Tiny, drawn, pinned, split
from tests.adversary.network_time_replay import replayed
from tests.adversary.network_time_turns import passing


def test_two_steps_by_hand() -> None:
    """Two steps of 10 ticks and 4 bytes, each with a load of 2 bytes in 5 ticks, and a store of 1 byte in 3 ticks.

    In 6 bytes the second load lies beside the first step: 5 + 10 + 10 + 3. In 5 bytes it comes behind it: 5 more; there
    the store of the first step may be ahead of it (3 more) or behind it, beside the second step.
    """
    moves = Move(True, 5, 2, 1), Move(True, 5, 2, 2), Move(False, 3, 1, 1), Move(False, 3, 1, 2)
    job = Job(((10, 4), (10, 4)), moves)
    assert simulate(job, 6, (0, 1, 2, 3), (1, 1, 3, 3)) == 28
    assert simulate(job, 5, (0, 1, 2, 3), (1, 2, 3, 3)) == 33
    assert simulate(job, 5, (0, 2, 1, 3), (1, 2, 2, 3)) == 36
    assert simulate(job, 5, (0, 1, 2, 3), (1, 1, 3, 3)) == "step 1 has 6 bytes, there are 5"
    assert simulate(job, 6, (1, 0, 2, 3), (1, 2, 3, 3)) == "step 1 waits for ever"
    assert [Search(job, room, 99).run() for room in (3, 4, 5, 6)] == [None, 36, 33, 28]


def test_what_is_stored_is_loaded_behind_that() -> None:
    """Step 1 stores rows 0-1 of map 1, step 2 loads row 1; it waits for both."""
    moves = Move(False, 4, 2, 1, 1, (0, 2)), Move(True, 2, 1, 2, 1, (1, 2)), Move(True, 2, 1, 2, 0)
    job = Job(((1, 9), (1, 9)), moves)
    assert simulate(job, 20, (2, 0, 1), (3, 2, 1)) == 2 + 4 + 2 + 1
    assert simulate(job, 20, (1, 0, 2), (3, 2, 1)) == "transfer 1 loads what is not stored yet"
    assert Search(job, 20, 99).run() == 2 + 4 + 2 + 1


def _job(rng: random.Random, queues: int) -> Job:
    steps = tuple((rng.randint(0, 5), rng.randint(0, 3)) for _ in range(rng.randint(1, 3)))

    def move() -> Move:
        load, ticks, size, step = rng.random() < 0.6, rng.randint(0, 5), rng.randint(1, 3), rng.randint(1, len(steps))
        store = rng.randint(-1, 1)
        return Move(load, ticks, size, step, store, (0, 1), queue=queues - 1 if load and store < 0 else 0)

    return Job(steps, tuple(move() for _ in range(rng.randint(1, 4))))


def _least(job: Job, room: int) -> int | None:
    number, found = len(job.steps), list[int]()
    steps = [range(1, one.step + 1) if one.load else range(one.step + 1, number + 2) for one in job.moves]
    for when in product(*steps):
        for order in permutations(range(len(job.moves))):
            ticks = simulate(job, room, order, when)
            if isinstance(ticks, int):
                found.append(ticks)
    return min(found, default=None)


@pytest.mark.parametrize("queues", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_orders_are_all_tried(seed: int, queues: int) -> None:
    """Random steps and transfers: all queues, and all steps that they begin beside or are waited for by."""
    rng = random.Random(seed)
    for _ in range(8):
        job = _job(rng, queues)
        room = rng.randint(3, 9)
        assert Search(job, room, 2**40).run() == _least(job, room)


def test_two_queues_by_hand() -> None:
    """A step of 10 ticks waits for weights of 8 and a map of 5; then it is stored in 3. By one queue 13, by two 8."""
    for queue, ticks in ((0, 13 + 10 + 3), (1, 8 + 10 + 3)):
        moves = Move(True, 8, 1, 1, queue=queue), Move(True, 5, 1, 1, 0, (0, 1)), Move(False, 3, 1, 1, 1, (0, 1))
        job = Job(((10, 3),), moves)
        assert simulate(job, 3, (0, 1, 2), (1, 1, 2)) == Search(job, 3, 99).run() == ticks


TWO = Tiny((1, 3, 1), (("conv", (0,), 2, 3, 1, 1), ("conv", (1,), 1, 1, 1, 0)), 100)


def test_strips_by_hand() -> None:
    """3 rows of a pixel; 3 taps and padding 1, 2 filters; then 1 tap. In strips of a row of the last map:

    rows 0-1 of the input make row 0; row 2 makes row 1, of rows 0-2 that are there; row 2 is made of rows 1-2. While
    the second layer runs, rows that the first one has yet to see lie there: 0-1, 1-2, none.
    """
    strips = Strips(TWO, 0, 1, 1, warm=False)
    assert [one.ends for one in strips.streams] == [(0, 1, 2, 3), (0, 1, 2, 3), (0, 2, 3, 3)]
    makings = strips.makings(())
    assert [(one.layer, one.rows) for one in makings] == [(0, 1), (1, 1)] * 3
    assert [one.held for one in makings] == [2 + 2, 2 + 2 + 1, 3 + 2, 2 + 2 + 1, 2 + 2, 2 + 1]
    assert [piece.rows for piece in strips.pieces(makings, ()) if piece.load] == [(0, 2), (2, 3)]


#: A tap with stride 2 reads 3 x 2 of 5 x 3 pixels, each of 2 channels.
THIN = Tiny((2, 5, 3), (("conv", (0,), 1, 1, 2, 0), ("pool", (1,), 0, 2, 1, 0)), 40, segment=3)


def test_pixels_that_are_sampled_by_hand() -> None:
    """Rows 0, 2, 4 and columns 0, 2: two pixels of 2 bytes a row. Rows 1 and 2 of these are rows 2 to 4 of the map.

    Channels together each pixel is a run of addresses. Apart a channel is 0, 2, 6, 8, 12, 14, and the next one begins
    at 15: 11 runs of all, 4 of a row.
    """
    strips = Strips(THIN, 0, 1, 1, warm=False, sampled=frozenset((0,)))
    assert strips.sampleable == [0]
    assert [one.ends for one in strips.streams] == [(0, 2, 3), (0, 1, 2), (0, 2, 3)]
    assert (strips.row_bytes(0), strips.dense(0, 1, 3)) == (4, (2, 5))
    assert [strips.box(0, rows) for rows in (1, 2, 3)] == [2 * 3 + 4, 4 * 3 + 8, 6 * 3 + 12]
    apart = Strips(replace(THIN, channels_last=False), 0, 1, 1, warm=False, sampled=frozenset((0,)))
    assert [apart.box(0, rows) for rows in (1, 3)] == [4 * 3 + 4, 11 * 3 + 12]
    whole = Strips(THIN, 0, 1, 1, warm=False)
    assert [one.ends for one in whole.streams] == [(0, 2, 3), (0, 1, 2), (0, 3, 5)]


def test_strips_of_more_rows_than_there_are() -> None:
    """A map of a row, and its pool with stride 2: strips of all are of 2 rows, of which there is one."""
    case = Tiny((1, 2, 5), (("global", (0,), 1, 2, 1, 0), ("pool", (1,), 1, 1, 2, 0), ("full", (1,), 1, 3, 1, 1)), 16)
    strips = Strips(case, 0, 2, 1, warm=False)
    assert (strips.good, strips.height, strips.visits) == (True, 2, 1)


def test_least_time_by_hand() -> None:
    """9 cycles of each of 2 filters for the first map, 2 of each of 3 pixels for the second one: 24.

    In one strip the first step waits for 3 rows and both filters of 3 bytes, the result takes 3. In strips of a row it
    waits for 2 rows and a filter, and the last row takes 1: less is loaded ahead, and more is stored meanwhile.
    """
    (part, *_) = Groups(TWO).parts(0, 1, Beside(frozenset(), 0))
    assert part.computing == 18 + 6
    found = Brute(replace(TWO, memory=30), 99).run()
    assert found is not None
    assert found.ticks == (2 + 3) + 24 + 1
    part = next(one for one in Groups(TWO, coarse=True).parts(0, 1, Beside(frozenset(), 0)) if len(one.steps) == 2)
    assert Search(joined((part,)), 30, 99).run() == (3 + 6) + 24 + 3


@pytest.mark.parametrize(("memory", "ticks"), [(48, 212), (56, 188)])
def test_turns_by_hand(memory: int, ticks: int) -> None:
    """8 channels of 4 pixels, 4 filters of one tap, a pool of all pixels: 32 cycles a filter, then 4.

    In turns of a channel 32 bytes of the input, 4 of the map between, 4 of the result and a filter of 8 are 48. The
    first block waits for 32 + 8 bytes, each takes 36, the result of 4 is stored. In 56 bytes the next filter is loaded
    meanwhile: 40 + 4 * 36 + 4. In 48 each block waits for its own: 3 * 8 more. One after the other the layers have a
    map of 16 between them: 56 bytes with one filter, which waits for the one before; in 48 there is no plan.
    """
    case = Tiny((8, 1, 4), (("conv", (0,), 4, 1, 1, 0), ("global", (1,), 0, 1, 1, 0)), memory, fused=(0, 1))
    found = compared(case)
    assert not found.faults
    assert (found.time, found.brute.best and found.brute.best.ticks, found.brute.complete) == (ticks, ticks, True)
    plan = planned(case)
    assert [(one.first, one.last, one.channels) for one in plan.part.schedule.runs[0].blocks] == [(0, 1, 1)]
    assert replayed(case, plan) == ticks
    apart = solve(case.network, case.machine, problem="fusion", objective="time", pins=[*case.pins, "turns=no"])
    assert apart.part.measures.get("time") == (None if memory == 48 else 40 + 4 * 32 + 3 * 8 + 16 + 4)


@pytest.mark.parametrize("seed", range(8))
def test_no_schedule_in_turns_is_below_its_bound(seed: int) -> None:
    """Up to three layers, two of which may take turns."""
    rng = random.Random(seed)
    pairs = list[tuple[int, int]]()
    while not pairs:
        case = drawn(rng, 3, 3, 4)
        pairs = [(t - 1, t) for t in range(1, len(case.made)) if passing(case, t - 1, t)]
    assert not compared(replace(case, fused=pairs[0]), 0.1).faults


@pytest.mark.parametrize("seed", [*range(101, 137, 2), 102, 106, 120, 144])
def test_no_schedule_of_a_tiny_network_is_below_its_bound(seed: int) -> None:
    """Up to three layers, all schedules; plans take what they take here, and none is better than all schedules."""
    rng = random.Random(seed)
    case = drawn(rng, 2, 3, 2)
    found = compared(pinned(case, rng) if seed % 2 else case, 0.1)
    assert not found.faults


@pytest.mark.parametrize("seed", range(301, 317))
def test_no_schedule_with_weights_in_flash_is_below_its_bound(seed: int) -> None:
    """Weights in a memory of their own, every other time with a queue of their own: up to two layers."""
    rng = random.Random(seed)
    case = drawn(rng, 2, 3, 2)
    found = compared(split(pinned(case, rng) if seed % 4 < 2 else case, rng, each=seed % 2 == 0), 0.1)
    assert not found.faults


@pytest.mark.parametrize("seed", [401, 402, 403, 405, 407, 409, 411])
def test_no_schedule_with_sampled_maps_is_below_its_bound(seed: int) -> None:
    """Layers that leave out rows and columns: maps of one or several readers, read again behind others, with pins."""
    rng = random.Random(seed)
    case = drawn(rng, 2, 5, 2, 2, skips=True)
    assert not compared(pinned(case, rng) if seed % 2 else case, 0.1).faults


def _a_run_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns that are read of a row are one run of addresses."""
    real = GroupTime._sampled
    monkeypatch.setattr(
        GroupTime, "_sampled", lambda self, pitch, planes, each: real(self, pitch._replace(across=1), planes, each)
    )


def _rows_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a transfer are counted in those that are read."""
    real = GroupSteps._piece

    def piece(self: GroupSteps, k: int, begin: int, end: int) -> Piece:
        stream = self.group.streams[k]
        thin = stream.outside and stream.maker in self.group.net.pitch
        return Piece(stream.store, begin, end) if thin else real(self, k, begin, end)

    monkeypatch.setattr(GroupSteps, "_piece", piece)


def _any_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps are sampled of which readers skip different pixels."""

    def sampleable(self: Group) -> frozenset[int]:
        readers = {s: [t for t in self.layers if s in self.net.reads[t]] for s in self.outside}
        return frozenset(s for s, some in readers.items() if all(self.net.skips(t) for t in some))

    monkeypatch.setattr(Group, "sampleable", property(sampleable))


def _told(case: Tiny) -> str:
    """What is said of a plan, by its referee or here."""
    try:
        return "; ".join(compared(case, 0.5).faults)
    except PlanMismatch as fault:
        return str(fault)


#: Two maps of which one tap with stride 2 and one with stride 3 read different pixels.
UNLIKE = Tiny((1, 4, 1), (("conv", (0,), 1, 1, 2, 0), ("conv", (0,), 1, 1, 3, 0)), 12, fused=(0, 1))


@pytest.mark.parametrize(
    ("fault", "case", "said"),
    [
        (_a_run_each_row, replace(THIN, layers=THIN.layers[:1]), "ticks: priced"),
        (_rows_that_are_read, replace(THIN, fused=(0, 1), height=1), "not read"),
        (_any_reader, UNLIKE, ""),
    ],
)
def test_faults_of_sampled_maps_are_told(
    fault: Callable[[pytest.MonkeyPatch], None], case: Tiny, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Each is told in a case by hand, which is right without it."""
    assert not _told(case)
    fault(monkeypatch)
    assert said in _told(case) != ""


@pytest.mark.parametrize("seed", range(201, 213))
def test_no_schedule_of_layers_in_one_group_is_below_its_bound(seed: int) -> None:
    """Up to four layers that run in one group, mostly."""
    rng = random.Random(seed)
    case = pinned(drawn(rng, 4, 6, 4), rng)
    plan, brute = attacked(case, 0.1)
    assert brute.best is None
    if plan.part.measures:
        assert replayed(case, plan) in (None, plan.part.measures["time"])


def test_a_plan_that_is_changed_is_seen() -> None:
    """The same plan on a slower machine."""
    case = replace(TWO, memory=30, call=20)
    plan = planned(case)
    assert replayed(case, plan) == plan.part.measures["time"]
    assert replayed(replace(case, cycle=2), plan) != plan.part.measures["time"]
