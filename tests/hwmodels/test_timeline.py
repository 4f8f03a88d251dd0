"""Timelines: times by hand, the longest path against the referee, bytes by step against bytes by the clock."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.timeline.price import Wait, occupancy, refusals, times
from hwmodels.timeline.replay import replay
from hwmodels.timeline.schedule import Load, Move, Step, Store, Timeline
from instances.errors import InputError
from tests.effort import tries


def made(steps: tuple[tuple[int, int], ...], *transfers: Move) -> Timeline:
    return Timeline(tuple(Step(*one) for one in steps), transfers)


def some(rng: random.Random) -> Timeline:
    """A small timeline, often one that waits for ever."""
    last, transfers = rng.randint(1, 6), list[Move]()
    for _ in range(rng.randint(0, 8)):
        ticks, size, queue, at = rng.randint(0, 9), rng.randint(0, 9), rng.choice((0, 0, 1)), rng.randint(1, last)
        if rng.random() < 0.6:
            transfers.append(Load(ticks, size, at, rng.randint(1, at), queue))
        else:
            transfers.append(Store(ticks, size, at, rng.randint(at + 1, last + 1), queue))
    steps = []
    for t in range(1, last + 1):
        due = sum(one.bytes for one in transfers if isinstance(one, Load) and one.due == t)
        freed = sum(one.bytes for one in transfers if isinstance(one, Store) and one.released == t)
        steps.append((rng.randint(0, 9), max(due, freed) + rng.choice((0, 3))))
    return made(tuple(steps), *transfers)


THREE = ((10, 6), (10, 6), (10, 6))


@pytest.mark.parametrize(("guards", "latency", "waits", "most"), [
    # only the first load is waited for; loads of the next step lie beside the one before it
    ((1, 1, 2), 6 + 30 + 4, (Wait(1, 0, 6),), [12, 12, 6]),
    # every load begins when the step before its reader has ended
    ((1, 2, 3), 3 * 16 + 4, (Wait(1, 0, 6), Wait(2, 1, 6), Wait(3, 2, 6)), [6, 6, 6]),
    # all at once: the first is waited for
    ((1, 1, 1), 6 + 30 + 4, (Wait(1, 0, 6),), [18, 12, 6]),
])  # fmt: skip
def test_loads_begin_at_their_guards(
    guards: tuple[int, ...], latency: int, waits: tuple[Wait, ...], most: list[int]
) -> None:
    loads = (Load(6, 6, due, guard) for due, guard in enumerate(guards, 1))
    timeline = made(THREE, *loads, Store(4, 5, 3, 4))
    found = times(timeline)
    assert (found.latency, found.waits, found.drain) == (latency, waits, 4)
    assert occupancy(timeline).tolist() == most
    seen = replay(timeline)
    assert (seen.latency, seen.peak_bytes) == (latency, max(most))


def test_a_step_waits_for_the_bytes_of_a_store() -> None:
    """A store of 25 ticks after step 1 has its bytes in step 2 still: step 3 waits 15 ticks for them."""
    timeline = made(THREE, Store(25, 6, 1, 3))
    found = times(timeline)
    assert (found.room, found.begin, found.end) == ((0, 10, 35), (0, 10, 35), (10, 20, 45))
    assert found.waits == (Wait(3, 0, 15),)
    assert occupancy(timeline).tolist() == [6, 12, 6]
    assert replay(timeline).peak_bytes == 12


def test_queues_go_on_side_by_side() -> None:
    """Weights of 8 ticks by one queue, a map of 5 by another: step 1 waits for the longer; by one queue for both."""
    assert times(made(((10, 6),), Load(8, 3, 1, 1, 0), Load(5, 3, 1, 1, 1))).latency == 18
    assert times(made(((10, 6),), Load(8, 3, 1, 1, 0), Load(5, 3, 1, 1, 0))).latency == 23


def test_queues_do_not_wait_for_each_other_in_a_circle() -> None:
    """A load for step 1 behind one that may begin in step 2 waits for ever; by a queue of its own it does not.

    Steps wait for both queues, and a queue for its own transfers and for steps. So what is refused is refused of one
    queue by itself.
    """
    first, other = Load(5, 1, 2, 2), Load(7, 1, 1, 1)
    assert refusals(made(THREE, first, other))
    two = made(THREE, first, replace(other, queue=1))
    assert (times(two).latency, replay(two).latency) == (7 + 10 + 5 + 20,) * 2
    rng, seen = random.Random(3), {True: 0, False: 0}
    for _ in range(tries(300, 5000)):
        timeline = some(rng)
        alone = [
            replace(timeline, transfers=tuple(one for one in timeline.transfers if one.queue == queue))
            for queue in (0, 1)
        ]
        faulty = any(refusals(one) for one in alone)
        assert bool(refusals(timeline)) == faulty == bool(replay(timeline).faults)
        seen[faulty] += 1
    assert min(seen.values()) > 0


def test_two_queues_are_no_slower_than_one() -> None:
    """With the same order, guards and limits: a transfer waits for fewer others."""
    rng, faster = random.Random(5), 0
    for _ in range(tries(300, 5000)):
        timeline = some(rng)
        one = replace(timeline, transfers=tuple(replace(each, queue=0) for each in timeline.transfers))
        if not refusals(one):
            assert not refusals(timeline)
            assert times(timeline).latency == replay(timeline).latency <= times(one).latency
            faster += times(timeline).latency < times(one).latency
    assert faster > 0


@pytest.mark.parametrize(("transfers", "fault"), [
    ((Load(1, 1, 2, 2), Load(1, 1, 1, 1)), "transfer 1: step 1 waits for it, transfer 0 ahead of it waits"),
    ((Load(1, 1, 2, 2), Store(1, 1, 1, 2)), "transfer 1: step 2 waits for it, transfer 0 ahead of it waits"),
    ((Store(1, 1, 2, 4), Load(1, 1, 2, 1)), "transfer 1: step 2 waits for it, transfer 0 ahead of it waits"),
    ((Load(1, 1, 1, 2),), "transfer 0: 1 <= guard 2 <= due 1 <= 3 does not hold"),
    ((Store(1, 1, 3, 5),), "transfer 0: 1 <= released 3 < limit 5 <= 4 does not hold"),
    ((Load(-1, 1, 1, 1),), "transfer 0: its ticks and bytes are 0 or more"),
    ((Load(1, 4, 2, 1), Load(1, 3, 2, 1)), "step 2: loads that are due in it have 7 bytes, it has 6"),
    ((Store(1, 7, 2, 3),), "step 2: stores that it releases have 7 bytes, it has 6"),
])  # fmt: skip
def test_what_is_no_timeline_is_refused(transfers: tuple[Move, ...], fault: str) -> None:
    timeline = made(THREE, *transfers)
    assert refusals(timeline)[0].startswith(fault)
    with pytest.raises(InputError, match=r"transfer|step"):
        times(timeline)


def test_all_reasons_are_given_at_once() -> None:
    assert len(refusals(made(THREE, Load(1, 1, 1, 2), Store(1, -1, 1, 1), Load(1, 1, 4, 1)))) == 4


def test_the_longest_path_is_what_the_referee_sees() -> None:
    """Every begin and end, with what waits for ever, and no more bytes at any time than in a step."""
    rng, compared, refused, met = random.Random(0), 0, 0, 0
    for _ in range(tries(1000, 20_000)):
        timeline = some(rng)
        seen = replay(timeline)
        faults = refusals(timeline)
        assert bool(faults) == bool(seen.faults), (timeline, faults, seen)
        refused += bool(faults)
        if faults:
            continue
        found, most = times(timeline), int(occupancy(timeline).max())
        assert found.latency == seen.latency
        assert list(found.begin) == [seen.begin[t] for t in range(1, len(timeline.steps) + 1)]
        moved = zip(found.transfer_begin, found.transfer_end, strict=True)
        assert dict(enumerate(moved)) == seen.moved
        assert seen.peak_bytes <= most
        compared, met = compared + 1, met + (seen.peak_bytes == most)
    assert min(compared, refused, met) > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 20), st.integers(1, 9))
def test_nothing_that_is_faster_makes_it_longer(seed: int, at: int, saved: int) -> None:
    """Claim 1: of a step or a transfer that takes less, nothing begins later."""
    timeline = some(random.Random(seed))
    if refusals(timeline):
        return
    parts = [*timeline.steps, *timeline.transfers]
    one = parts[at % len(parts)]
    parts[at % len(parts)] = type(one)(**{**vars(one), "ticks": max(0, one.ticks - saved)})
    count = len(timeline.steps)
    before, after = times(timeline), times(Timeline(tuple(parts[:count]), tuple(parts[count:])))
    for kind in ("room", "begin", "end", "transfer_begin", "transfer_end"):
        assert all(x <= y for x, y in zip(getattr(after, kind), getattr(before, kind), strict=True)), kind
