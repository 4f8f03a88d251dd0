"""The referee of placements: every rule that a placement may break, by hand."""

from __future__ import annotations

import pytest

from hwmodels.placement.replay import replay
from hwmodels.schedule import Place, Placement
from instances.network.buffers import Buffer, Buffers, Gap, Memory

#: a: times 0 and 1; b: times 1 and 2, of its 6 bytes the last two at time 2; c: times 1 and 2, has to be on chip.
FEW = Buffers(
    name="few",
    buffers=(
        Buffer(name="a", lower=0, upper=2, size=4, memories=("fast", "slow"), spill=9),
        Buffer(name="b", lower=1, upper=3, size=6, gaps=(Gap(lower=2, upper=3, window=(4, 6)),), spill=20),
        Buffer(name="c", lower=1, upper=3, size=2, alignment=2),
    ),
    memories=(Memory(name="fast", bytes=12, bank_bytes=4), Memory(name="slow", bytes=8)),
    conflicts=(("a", "c"),),
)


def walked(*places: tuple[str, str, int]) -> tuple[str, ...]:
    return replay(FEW, Placement(tuple(Place(*place) for place in places))).faults


def test_what_is_counted() -> None:
    """a lies where it would rather not (4 bytes), b off the chip (20 bytes), c up to byte 2 of fast."""
    said = replay(FEW, Placement((Place("a", "slow", 1), Place("c", "fast", 0))))
    assert (said.faults, said.spilled_bytes, said.displaced_bytes, said.peaks) == ((), 20, 4, {"fast": 2, "slow": 5})


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([("a", "fast", 0)], "buffer c is not on chip, where it has to be"),
        ([("a", "fast", 0), ("b", "fast", 3), ("c", "slow", 0)], "time 1: buffers a and b share bytes of fast"),
        ([("b", "fast", 7), ("c", "slow", 0)], "buffer b takes bytes 7 to 13 of 12 in fast"),
        ([("c", "fast", 1)], "buffer c lies at 1, no multiple of 2"),
        ([("a", "fast", 2), ("c", "fast", 6)], "time 1: buffers a and c share a bank of fast"),  # bytes 4, 5 and 6, 7
        ([("a", "slow", 0), ("c", "slow", 4)], "time 1: buffers a and c share a bank of slow"),  # it is one bank
        ([("c", "fast", 0), ("c", "slow", 0)], "a buffer is placed twice"),
        ([("b", "fast", 0), ("c", "fast", 4)], "time 1: buffers b and c share bytes of fast"),
    ],
)
def test_what_is_wrong(places: list[tuple[str, str, int]], said: str) -> None:
    assert said in walked(*places)


@pytest.mark.parametrize(
    "places",
    [
        [("a", "fast", 0), ("b", "fast", 4), ("c", "slow", 0)],
        [("a", "fast", 0), ("c", "fast", 4)],  # the next bank
        [("b", "fast", 2), ("c", "fast", 0)],
    ],
)
def test_what_is_right(places: list[tuple[str, str, int]]) -> None:
    assert walked(*places) == ()


def test_bytes_below_a_window_are_free() -> None:
    """At time 2 b takes bytes 4 and 5 of its own only, so c may begin there below them."""
    late = FEW.model_copy(
        update={"buffers": (FEW.buffers[1], Buffer(name="c", lower=2, upper=3, size=4)), "conflicts": ()}
    )
    assert replay(late, Placement((Place("b", "fast", 0), Place("c", "fast", 0)))).faults == ()
    assert replay(late, Placement((Place("b", "fast", 0), Place("c", "fast", 1)))).faults == (
        "time 2: buffers c and b share bytes of fast",
    )


def test_bytes_are_taken_again_at_the_end_of_a_gap() -> None:
    """a is away from 4 to 6; b may have its bytes then, from 4 to 6 and no longer."""
    a = Buffer(name="a", lower=0, upper=10, size=4, gaps=(Gap(lower=4, upper=6),))
    said = {}
    for lower, upper in ((4, 6), (4, 8), (3, 6)):
        both = FEW.model_copy(update={"buffers": (a, Buffer(name="b", lower=lower, upper=upper, size=4))})
        said[lower, upper] = replay(both, Placement((Place("a", "fast", 0), Place("b", "fast", 0)))).faults
    share = "buffers a and b share bytes of fast"
    assert said == {(4, 6): (), (4, 8): (f"time 6: {share}",), (3, 6): (f"time 3: {share}",)}
