"""What would have hidden a wait: by hand, and priced again on random networks."""

from __future__ import annotations

import random
from contextlib import suppress
from fractions import Fraction

import pytest

from formulations.fusion.part import FusionPart
from formulations.pins import Pins
from formulations.prefetch.guards import Draft
from formulations.prefetch.stalls import Stall, quicker, sooner, stalls
from formulations.problem import Unable
from hwmodels.timeline.price import occupancy, times
from hwmodels.timeline.schedule import Load, Step, Store, Timeline
from tests.adversary.network_time_nets import drawn
from tests.effort import tries


def only(timeline: Timeline, room: int, byte_ticks: int = 2) -> Stall:
    (one,) = stalls(timeline, times(timeline), room, [byte_ticks] * len(timeline.transfers), 5)
    return one


def test_a_load_that_is_too_late_by_hand() -> None:
    """It takes 14 ticks, 12 of them for its 6 bytes, and begins with a step of 10: 4 too late.

    Nothing runs before; bytes in 8 ticks are there in time. Behind another step it might begin 4 ticks before, beside
    that step, which has all 12 bytes: 6 more.
    """
    late = Timeline((Step(10, 6), Step(10, 6)), (Load(14, 6, 2, 1),))
    assert (only(late, 12).bytes, only(late, 12).faster) == (None, Fraction(12, 8))
    assert only(late, 12, byte_ticks=0).faster is None
    more = Timeline((Step(10, 12), Step(10, 6), Step(10, 6)), (Load(14, 6, 3, 2),))
    assert (only(more, 12).bytes, only(more, 18).bytes) == (6, 0)
    assert sooner(more, times(more), only(more, 12).wait) == ([0], [1])
    before = Timeline(more.steps, (Load(4, 2, 1, 1), *more.transfers))  # it ends long before, and counts for nothing
    assert [
        one.faster for one in stalls(before, times(before), 12, [2] * len(before.transfers), 5) if one.wait.step == 3
    ] == [Fraction(12, 8)]


def test_what_stands_ahead_goes_ahead_too_by_hand() -> None:
    """Two loads of 10 ticks for steps 3 and 4 from step 2 on: the second one is 10 late, if step 3 takes nothing.

    The first one begins with step 1, which has all 12 bytes: 4 more.
    """
    line = Timeline((Step(10, 12), Step(10, 4), Step(0, 4), Step(10, 4)), (Load(10, 4, 3, 2), Load(10, 4, 4, 2)))
    found = only(line, 12)
    assert (found.wait.step, found.wait.ticks, found.bytes) == (4, 10, 4)
    assert sooner(line, times(line), found.wait) == ([0, 1], [1, 2])
    assert found.faster == Fraction(16, 6)


def test_a_store_that_is_waited_for_by_hand() -> None:
    """Step 2 waits 14 ticks for the bytes of a store; it takes 10, so the store lies beside it, and 4 bytes more."""
    line = Timeline((Step(10, 8), Step(10, 8)), (Store(14, 4, 1, 2),))
    found = only(line, 8)
    assert (found.wait.ticks, found.bytes, found.faster) == (14, 4, None)
    assert sooner(line, times(line), found.wait) == ([0], [3])


def test_a_map_that_is_stored_too_late_by_hand() -> None:
    """It is stored until 14 and loaded until 24, 4 too late for step 3, which ends at 26. Nothing hides that.

    Weights behind it are loaded until 32, 6 too late: they take 8 ticks, and find room ahead of the store, from 2 on.
    """
    steps = Step(10, 10), Step(10, 10), Step(2, 10), Step(10, 10)
    line = Timeline(steps, (Store(4, 2, 1, 5), Load(10, 2, 3, 2, ready=2), Load(8, 4, 4, 3)))
    early, late = times(line).waits
    assert (early.step, early.ticks, sooner(line, times(line), early)) == (3, 4, None)
    assert (late.step, late.ticks, sooner(line, times(line), late)) == (4, 6, ([2, 0, 1], [5, 2, 1]))


@pytest.mark.slow(20)
@pytest.mark.parametrize("first", range(1, 1 + tries(30, 400), 10))
def test_steps_begin_in_time_and_nothing_is_later(first: int) -> None:
    """All waits of plans by rules: with the order that is found, and with bytes that are as much faster."""
    for seed in range(first, first + 10):
        case = drawn(random.Random(seed), 4, 6, 4, 1)
        part = FusionPart(case.network, case.machine, Pins(()))
        for rule in (part.rules.double_buffered, part.rules.greedy_prefetch):
            with suppress(Unable):
                _check(part.laid(rule()).timeline, part.machine.transfer.byte_ticks)


def _check(line: Timeline, byte_ticks: int) -> None:
    now = times(line)
    for wait in now.waits:
        before = now.end[wait.step - 2] if wait.step > 1 else 0
        if (found := sooner(line, now, wait)) is not None:
            then = times(Draft(line, 0).made(*found))
            assert then.begin[wait.step - 1] <= before
            assert all(a <= b for a, b in zip(then.end, now.end, strict=True))
            assert then.latency <= now.latency
        if (factor := quicker(line, now, wait, [byte_ticks] * len(line.transfers))) is not None:
            back = [
                k for k in range(wait.transfer + 1) if _joined(now.transfer_begin, now.transfer_end, k, wait.transfer)
            ]
            saved = sum(min(line.transfers[k].ticks, line.transfers[k].bytes * byte_ticks) for k in back)
            assert saved - Fraction(saved) / factor == wait.ticks


def _joined(begin: tuple[int, ...], end: tuple[int, ...], first: int, last: int) -> bool:
    """Whether transfers run back to back."""
    return all(end[k] == begin[k + 1] for k in range(first, last))


def test_what_is_needed_is_what_lies_on_chip() -> None:
    line = Timeline((Step(10, 12), Step(10, 6), Step(10, 6)), (Load(14, 6, 3, 2),))
    found = sooner(line, times(line), times(line).waits[0])
    assert found is not None
    assert occupancy(Draft(line, 0).made(*found)).tolist() == [18, 12, 6]
