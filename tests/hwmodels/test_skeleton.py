"""Skeletons: loops outside a Hold, re-visits, reading a nest back, and the cores' shares."""

from __future__ import annotations

import pytest

from hwmodels.nest.price.skeleton import Skeleton, cores, skeleton_of
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.network.workload import Layer

LAYER = Layer.conv("x", channels=4, filters=8, size=(5, 6), batch=2)
WS = Skeleton((Spatial("m", 4, "tle"), Spatial("m", 2, "tlt")), ("m", "r", "c", "n"), {"IN": 4, "W": 1, "OUT": 3})


def test_loops_outside_a_hold() -> None:
    assert WS.outside("W") == ("m",)
    assert WS.outside("OUT") == ("m", "r", "c")
    assert WS.outside("IN") == ("m", "r", "c", "n")


def test_nest_and_back() -> None:
    # the loop over c cuts nothing, so it is left out
    nest = WS.nest({"m": (1,), "n": (3,), "r": (2,), "c": (6,)}, LAYER)
    assert nest == Nest(
        (
            Spatial("m", 4, "tle"), Spatial("m", 2, "tlt"), Loop("m", 1), Hold("W"), Loop("r", 2),
            Hold("OUT"), Loop("n", 3), Hold("IN"),
        )
    )  # fmt: skip
    again = skeleton_of(LAYER, nest)
    assert (again.spatial, again.order, dict(again.depth)) == (WS.spatial, tuple("mrn"), {"IN": 3, "W": 1, "OUT": 2})


def groups(skeleton: Skeleton, operand: str, sliding: str = "") -> list[tuple[str, str, str]]:
    """Per group of loops, innermost last: the loops, what re-fetches the operand, and along what it slides."""

    def words(loops: object) -> str:
        return " ".join(f"{d}{k}" for d, k in loops)

    found = skeleton.visits(operand, frozenset(sliding))
    return [(words(loops), words(v.again), words([v.slide] if v.slide else [])) for loops, v in found]


def at_once(order: str) -> Skeleton:
    """All operands held inside all loops."""
    return Skeleton((), tuple(order), dict.fromkeys(("IN", "W", "OUT"), len(order)))


def test_loops_that_fetch_again() -> None:
    # r c n m: m inside all that IN depends on costs nothing; n stands outside m, so OUT is visited again by it
    assert groups(at_once("rcnm"), "IN") == [("r0 c0 n0", "", "")]
    assert groups(at_once("rcnm"), "OUT") == [("r0 c0", "", ""), ("m0", "n1", "")]
    assert groups(at_once("rcnm"), "W") == [("n0 m0", "c1 r1", "")]
    # r c m n: every filter step reads IN again where n is cut; else r and c are its innermost loops
    assert groups(at_once("rcmn"), "IN") == [("r0 c0", "", ""), ("n0", "m1", "")]
    assert groups(at_once("rmc"), "W") == [("m0", "r1", "")]


def test_loops_inside_the_hold_fetch_nothing() -> None:
    assert groups(WS, "W") == [("m0", "", "")]
    assert groups(WS, "OUT") == [("m0 r0 c0", "", "")]
    assert groups(WS, "IN") == [("r0 c0 n0", "m1", "")]


def test_a_dimension_looped_twice_counts_at_both_levels() -> None:
    skeleton = Skeleton((), tuple("mrmr"), {"IN": 4, "W": 3, "OUT": 4})
    assert groups(skeleton, "IN") == [("r0", "m1", ""), ("r1", "m2", "")]
    assert groups(skeleton, "W") == [("m0", "", ""), ("m1", "r1", "")]
    assert skeleton.every("IN") == (("m", 2),)


def test_only_the_input_slides_and_only_along_windows() -> None:
    assert groups(at_once("nrc"), "IN", "rc") == [("n0", "", ""), ("r0", "", "r0"), ("c0", "", "c0")]
    assert groups(at_once("nrc"), "OUT", "rc") == [("r0 c0", "n1", "")]


def test_a_loop_may_be_moved_last_before_the_input() -> None:
    skeleton = Skeleton((), tuple("rmrcn"), {"OUT": 1, "IN": 4, "W": 5})
    assert skeleton.last(("r", 1)).order == tuple("rmcrn")
    assert skeleton.last(("c", 0)).order == tuple("rmrcn")


def test_steps_of_two_loops_are_read_back() -> None:
    skeleton = Skeleton((), ("r", "c", "r"), {"IN": 2, "W": 0, "OUT": 3}, {"IN": 2})
    nest = skeleton.nest({"r": (4, 2), "c": (3,)}, LAYER)
    assert nest == Nest((Hold("W"), Loop("r", 4), Loop("c", 3), Hold("IN", 2), Loop("r", 2), Hold("OUT")))
    again = skeleton_of(LAYER, nest)
    assert (again.order, dict(again.depth), dict(again.buffers)) == (skeleton.order, skeleton.depth, {"IN": 2})


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
