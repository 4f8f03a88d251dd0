"""Skeletons: loops outside a Hold, re-visits, reading a nest back, and the cores' shares."""

from __future__ import annotations

import pytest

from hwmodels.schedule import Hold, Loop, Nest, Spatial
from hwmodels.skeleton import Skeleton, cores, skeleton_of
from instances.errors import InputError
from instances.workload import Layer

LAYER = Layer.conv("x", channels=4, filters=8, size=(5, 6), batch=2)
WS = Skeleton((Spatial("m", 4, "tle"), Spatial("m", 2, "tlt")), ("m", "r", "c", "n"), {"IN": 4, "W": 1, "OUT": 3})


def test_loops_outside_a_hold() -> None:
    assert WS.outside("W") == ("m",)
    assert WS.outside("OUT") == ("m", "r", "c")
    assert WS.outside("IN") == ("m", "r", "c", "n")


def test_nest_and_back() -> None:
    tile = {"b": 2, "g": 1, "m": 1, "n": 3, "r": 2, "c": 6}
    nest = WS.nest(tile)
    assert nest == Nest(
        (
            Spatial("m", 4, "tle"), Spatial("m", 2, "tlt"), Loop("m", 1), Hold("W"), Loop("r", 2), Loop("c", 6),
            Hold("OUT"), Loop("n", 3), Hold("IN"),
        )
    )  # fmt: skip
    again = skeleton_of(LAYER, nest)
    assert (again.spatial, again.order, dict(again.depth)) == (WS.spatial, WS.order, WS.depth)


@pytest.mark.parametrize(
    ("operand", "order", "cut", "again"),
    [
        # r c n m: m inside all that IN depends on costs nothing; n stands outside m, so OUT is re-visited
        ("IN", "rcnm", "rcnm", ""),
        ("OUT", "rcnm", "rcnm", "n"),
        ("W", "rcnm", "rcnm", "rc"),
        # r c m n: every filter step reads IN again, OUT stays over n
        ("IN", "rcmn", "rcmn", "m"),
        ("OUT", "rcmn", "rcmn", ""),
        # ... and if n is in one piece, m is the innermost loop that runs: IN stays
        ("IN", "rcmn", "rcm", ""),
        # m n r c: W stays; where r and c are whole, OUT stays too
        ("W", "mnrc", "mnrc", ""),
        ("OUT", "mnrc", "mnrc", "n"),
        ("OUT", "mnrc", "mn", ""),
        ("IN", "mnrc", "rc", ""),
        ("W", "rmc", "rmc", "r"),
        ("W", "rc", "rc", ""),
        ("W", "brcgmn", "brcn", "brc"),
        ("OUT", "ngbrcm", "nb", "n"),
    ],
)
def test_revisits(operand: str, order: str, cut: str, again: str) -> None:
    skeleton = Skeleton((), tuple(order), dict.fromkeys(("IN", "W", "OUT"), len(order)))
    assert skeleton.revisits(operand, frozenset(cut)) == frozenset(again)


def test_loops_inside_the_hold_revisit_nothing() -> None:
    assert WS.revisits("W", frozenset("mrcn")) == frozenset()
    assert WS.revisits("OUT", frozenset("mrcn")) == frozenset()
    assert WS.revisits("IN", frozenset("mrcn")) == frozenset("m")


def test_a_dimension_looped_twice_is_refused() -> None:
    holds = (Hold("IN"), Hold("W"), Hold("OUT"))
    with pytest.raises(InputError, match="dimension r is looped twice"):
        skeleton_of(LAYER, Nest((Loop("r", 4), Loop("r", 2), *holds)))


@pytest.mark.parametrize("before", [Loop("m", 4), Hold("W")])
def test_spatial_items_come_first(before: Loop | Hold) -> None:
    rest = (Hold("IN"), Hold("OUT")) if before == Hold("W") else (Hold("IN"), Hold("W"), Hold("OUT"))
    with pytest.raises(InputError, match="spatial items come first"):
        skeleton_of(LAYER, Nest((before, Spatial("r", 2, "tle"), *rest)))


def test_one_core_has_everything() -> None:
    (core,) = cores(LAYER, ())
    assert core.tle == 0
    assert [core.extent(d) for d in "bgmnrc"] == [2, 1, 8, 4, 5, 6]


def test_shares_of_a_grid_of_cores() -> None:
    # 5 rows by 3 over the TLEs: [0,3) [3,5); 8 filters by 3 over the TLTs: [0,3) [3,6) [6,8)
    share = cores(LAYER, (Spatial("r", 3, "tle"), Spatial("m", 3, "tlt")))
    assert [(c.tle, c.range("r"), c.range("m")) for c in share] == [
        (0, (0, 3), (0, 3)), (0, (0, 3), (3, 6)), (0, (0, 3), (6, 8)),
        (1, (3, 5), (0, 3)), (1, (3, 5), (3, 6)), (1, (3, 5), (6, 8)),
    ]  # fmt: skip
    assert share[-1].extent("m") == 2


def test_two_cuts_over_the_clusters_number_their_product() -> None:
    share = cores(LAYER, (Spatial("m", 4, "tle"), Spatial("r", 3, "tle")))
    assert [(c.tle, c.range("m"), c.range("r")) for c in share] == [
        (0, (0, 4), (0, 3)), (1, (0, 4), (3, 5)), (2, (4, 8), (0, 3)), (3, (4, 8), (3, 5)),
    ]  # fmt: skip


def test_a_dimension_cut_twice_is_cut_again_within_its_share() -> None:
    # 8 by 3 over the TLEs: 3 + 3 + 2; each by 2 over the TLTs: 2 + 1, 2 + 1, 2
    share = cores(LAYER, (Spatial("m", 3, "tle"), Spatial("m", 2, "tlt")))
    assert [(c.tle, c.extent("m")) for c in share] == [(0, 2), (0, 1), (1, 2), (1, 1), (2, 2)]
