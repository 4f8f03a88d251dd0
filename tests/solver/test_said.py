"""What `why`, `calibrate` and `sweep show` say of data made by hand: every number of every line."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import RenderableType

from formulations.calibration import Estimate, Identified, Price
from instances.load import load_machine
from solver.plan.why import About, Curve, Knee, Limit, Part, Point, Rival, Room, Split, Trial, Why
from solver.show.tables import Sheet
from solver.uses.calibration.result import Calibration, Cross, Probe, RowResult, calibration_tables, lines
from solver.uses.sweep.front import Group, MachineSum
from solver.uses.sweep.rows import Row, Sweep
from solver.uses.sweep.show import group_table, machines_csv, summary, summary_json, table_csv
from solver.uses.why.again import Found, _binds, _coarser, cheapest, saves
from solver.uses.why.relax import best_lanes, finer, lanes_ticks
from solver.uses.why.text import lines_of, split_sentences
from tests.small import POINT, machine


def squeezed(found: list[str]) -> list[str]:
    """Lines with one space where a table has several, without borders."""
    return [" ".join(line.replace("|", " ").split()) for line in found]


# ---- why -------------------------------------------------------------------------------------------------------------

ABOUT = About(
    layer="c1", cause="memory", headline="so it is", objective="time", unit="ticks", value=1_000, status="OPTIMAL",
    splits=(
        Split(measure="time", unit="ticks", value=1_000, parts=(
            Part(what="IN", cause="again", value=300), Part(what="compute", cause="lanes", value=750, why="3 of 4"),
            Part(what="both", cause="overlap", value=-50))),
        Split(measure="bytes", unit="bytes", value=150, parts=tuple(
            Part(what=f"p{k}", cause="", value=10 * k) for k in range(6))),
    ),
    rooms=(Room(memory="ocm", used=900, capacity=1_024),), busy="half of all lanes",
    trials=(
        Trial(cause="memory", name="m", change="no limit", status="OPTIMAL", value=600, saves=400, binds=True,
              exact=True),
        Trial(cause="pin", name="p", change="no pin", status="FEASIBLE", value=900, saves=100, binds=True),
        Trial(cause="compute", name="c", change="free MACs", status="FEASIBLE", value=990, saves=10),
        Trial(cause="layer", name="l", change="no layer", status="FEASIBLE", value=1_000, saves=0),
        Trial(cause="runs", name="r", change="no runs", status="OPTIMAL", value=1_000, saves=0, binds=False),
        Trial(cause="bursts", name="b", change="no bursts", status="SKIPPED"),
    ),
    knee=Knee(field="ocm_bytes", at=1_100, more=76, value=800, saves=200, exact=True),
    enough=Knee(field="ocm_bytes", at=4_000, more=2_976, value=600, saves=400, exact=False),
    rivals=(
        Rival(decision="T_M<=7", status="OPTIMAL", value=1_000, more=0, exact=True),
        Rival(decision="T_N>=2", status="OPTIMAL", value=1_250, more=250, exact=True),
        Rival(decision="greedy", status="FEASIBLE", value=980, more=-20),
        Rival(decision="T_R=1", status="INFEASIBLE"),
    ),
    limits=(Limit(name="traffic", value=500, means="bytes alone"), Limit(name="all", value=1_000, means="both")),
    left_out=("a", "b", "c", "d", "e", "f"),
)  # fmt: skip
SAID = """c1: so it is
Where the 1,000 ticks of time go:
750 75.0 % compute lanes without work: 3 of 4
300 30.0 % IN fetched again
-50 -5.0 % both hidden
Where the 150 bytes go:
50 33.3 % p5
40 26.7 % p4
30 20.0 % p3
20 13.3 % p2
10 6.7 % 2 more parts
What binds:
ocm 900 of 1,024 bytes, 124 free
half of all lanes
no limit: 600 ticks, 40.00 % less: binds
no pin: 900 ticks, at least 10.00 % less: binds
free MACs: 990 ticks, 1.00 % less; whether it binds is not proven
no layer: nothing better was found; whether it binds is not proven
proven not to bind (nothing is better without it): no runs
ocm_bytes=1,100 (76 more) is the next size that helps: 800 ticks, 20.00 % less
ocm_bytes=4,000 (2,976 more) is as good as no limit: 600 ticks, 40.00 % less
Next-best decisions:
as good: T_M<=7
T_N>=2: 1,250 ticks, 25.00 % more (250 ticks)
greedy: 980 ticks, 2.00 % less (20 ticks) (not proven)
no plan: T_R=1
Distance to lower bounds:
traffic 500 ticks, 2.000 times: bytes alone
all 1,000 ticks, reached: both
Not solved again, for lack of time: a, b, c, d and 2 more."""
POINTS = tuple(
    Point(x=1024 * k, shown=str(k), value=value, status="OPTIMAL" if value else "NO_SOLUTION_FOUND", exact=exact)
    for k, value, exact in ((1, None, True), (2, 3_000, True), (3, 3_000, True), (4, 2_000, True), (6, 1_500, False),
                            (7, 1_500, True), (8, 1_500, True))
)  # fmt: skip
CURVE = Curve(layer="c1", field="ocm_bytes", unit="KiB", objective="bytes", objective_unit="bytes", now=4_096,
              points=POINTS, knees=(2_048, 4_096), complete=False)  # fmt: skip
DRAWN = """c1: bytes (bytes) over ocm_bytes:
KiB bytes change per KiB
1 no solution found - -
2 3,000 +50.00 % -500.0 changes here
3 3,000 +50.00 % -1,000.0
4 2,000 +0.00 % - now, changes here
6 <= 1,500 -25.00 % -250.0
8 1,500 -25.00 % -125.0
some changes of the curve are marked, 2 in all
<=: the best found, not proven to be the least"""
FINER = Curve(layer="", field="transfer.byte_ticks", unit="GB/s", objective="time", objective_unit="us", finer=4, now=4,
              points=(Point(x=4, shown="1", value=272, status="OPTIMAL", exact=True, slope=68),), knees=(),
              complete=True)  # fmt: skip


def test_why_is_said() -> None:
    why = Why(
        certile="0", engine="e", network="net", problem="tiling", machine="m", parts=(ABOUT,), curves=(CURVE, FINER)
    )
    found = "\n".join(squeezed(list(lines_of(why))))
    finer_lines = "time (us) over transfer.byte_ticks (in 1/4 ticks):\nGB/s us change per tick\n1 68.00 +0.00 % +68 now"
    assert found == f"{SAID}\n\n{DRAWN}\n\n{finer_lines}"
    assert list(split_sentences(ABOUT.splits[0]))[1] == "300 ticks, 30.0 %: IN fetched again"


def test_what_binds_by_hand() -> None:
    """A plan of 100, proven or with the bound 90: only what is below its bound binds, only a bound of 100 does not."""
    proven, open_ = Found("OPTIMAL", 100, 100), Found("FEASIBLE", 100, 90)
    for base, value, bound, binds, saved in (
        (proven, 99, 10, True, 1), (proven, 100, 100, False, 0), (proven, 100, 99, None, 0),
        (proven, 120, None, None, 0),
        (proven, 120, 100, False, 0), (open_, 95, 95, None, 5), (open_, 90, 90, None, 10), (open_, 89, 50, True, 11),
        (proven, None, 50, None, None),
    ):  # fmt: skip
        found = Found("FEASIBLE", value, bound)
        assert (_binds(base, found), saves(base, found)) == (binds, saved), found
    assert _coarser(Found("OPTIMAL", 33, 32), 16) == Found("OPTIMAL", 3, 2)  # whole ticks of the plan
    rows = [Rival(decision=str(more), status="OPTIMAL", value=9, more=more, exact=more > 0) for more in range(7)]
    rows += [Rival(decision="x", status="INFEASIBLE"), Rival(decision="y", status="SKIPPED")]
    rows += [Rival(decision="free", status="OPTIMAL", value=9, more=0, exact=True)]
    assert [one.decision for one in cheapest(rows, 3)] == ["free", "0", "1", "2", "x"]


def test_finer_ticks_are_the_same_machine() -> None:
    on = machine(
        layer_ticks=7, transfer={"byte_ticks": 2, "call_ticks": 3}, compute={"model": "array", "cycle_ticks": 5}
    )
    made = finer(on, 4)
    assert (made.layer_ticks, made.transfer.byte_ticks, made.transfer.call_ticks, made.compute.cycle_ticks) == (
        28, 8, 12, 20,
    )  # fmt: skip
    # 4 channels to 4 on 2 x 2 pixels: 8 lanes as 2 x 4 take 2 * 1 turns of 4 pixels, as 8 x 1 take 1 * 4
    assert (lanes_ticks(POINT, 2, 4), lanes_ticks(POINT, 8, 1), lanes_ticks(POINT, 3, 3)) == (8, 16, 16)
    wide = on.model_copy(update={"compute": on.compute.model_copy(update={"rows": 8, "cols": 1})})
    assert best_lanes(POINT, wide) == (4, 2)  # as fast as 2 x 4, and nearer to 8 rows
    assert best_lanes(POINT, machine(compute={"model": "array", "cycle_ticks": 5, "rows": 2, "cols": 4})) is None


# ---- calibrate -------------------------------------------------------------------------------------------------------

PRICES = (Price("layer_ticks", 0, 5_000, 900), Price("transfer.byte_ticks", 1, 60, 4))
RESULT = Calibration(
    source="rows.csv", digest="abc", relative=True, fixed_plans=False, machine_before=load_machine("scratchpad_64k"),
    machine_after=load_machine("scratchpad_64k"), prices=PRICES, ticks=(1_200, 4),
    rounds=3, settled=False, note="cycle",
    fit=Identified(
        estimates=(
            Estimate("layer_ticks", 1_200.4, 1_100.0, 1_300.0, 0.2, "identified", "", ()),
            Estimate("transfer.byte_ticks", 4.0, 1.0, 60.0, 0.004, "not identified", "too flat", ("layer_ticks",)),
        ),
        rank=1, freedom=0, singular=(1.0, 0.0), pairs=(("layer_ticks", "transfer.byte_ticks", 0.99987),), rms=0.05,
    ),
    rows=(
        RowResult("a", "g", 2, "us", 100.0, 150.0, 110.0, (1, 2), ""),
        RowResult("b", "g", 3, "us", 2_000.0, 1_000.0, 1_900.0, (3, 4), ""),
        RowResult("c", "h", 4, "%ocm", 50.0, None, None, (0, 0), "no plan of c"),
    ),
    rms=0.075, anew={"transfer.byte_ticks": (0.1, 0.2)},
    cross=(Cross("g", (1_150, 5), False, (RowResult("b", "g", 3, "us", 100.0, 130.0, 80.0, (3, 4), ""),), "few",
                 0.03),),
    probe=Probe(9, 5, 2, 8.0, 3.5, 20.25, 4, {"layer_ticks": (10, 2_000)}),
)  # fmt: skip
#: A tick is 125 ps: 1,200 are 0.15 us. Errors before: +50 %, -50 %; after: +10 %, -5 %.
TABLES = """field before after after (us) bounds interval verdict
layer_ticks 900 1,200 0.15 0..5,000 1,100.0..1,300.0 identified
transfer.byte_ticks 4 4 0.0005 1..60 1.0..60.0 not identified
row measured before after error before error after
a 100.0 150.0 110.0 +50.0% +10.0% us
b 2,000 1,000 1,900 -50.0% -5.0% us
c 50.0 - - - - %ocm, no plan
median 50.0% 7.5%
left out rows error of the others before after prices (ticks)
g 1 3.0% 30.0% 20.0% layer 1,150, byte 5"""
LINES = [
    "cannot be identified from these rows: transfer.byte_ticks (too flat; with the plans of now any value between "
    "1 ticks (0.000125 us) and 60 ticks (0.0075 us), along with layer_ticks, changes the root mean square residual "
    "by at most 0.4%); transfer.byte_ticks stays at 4 ticks (0.0005 us)",
    "  with plans made anew at the ends of transfer.byte_ticks: 10.00% and 20.00% root mean square, 7.50% as fitted",
    "layer_ticks and transfer.byte_ticks are paid for together in all rows (cosine 0.9999)",
    "as many prices as rows are free: residuals say nothing about errors, intervals are those of arithmetic",
    "rows that measure memory have no slope; of 9 settings within the bounds none has more than 2 of 5 rows within one "
    "point; their mean distance is 3.5 to 20.2 points (8.0 before), within a point of the best are 4 settings with "
    "layer_ticks 10..2,000 ticks",
    "left aside: row c: no plan of c", "without g: few; prices did not settle", "NOT SETTLED after 3 rounds: cycle",
    "scratchpad_64k on rows.csv: 2 rows, median error 50.0% before, 7.5% after",
]  # fmt: skip


def texts_of(parts: list[RenderableType]) -> list[str]:
    """Lines of tables and texts."""
    made: list[str] = []
    for part in parts:
        if isinstance(part, Sheet):
            made += ["  ".join(column.head for column in part.columns)]
            made += ["  ".join(cells) for cells in zip(*(column.cells for column in part.columns), strict=True)]
        else:
            made.append(str(part))
    return squeezed(made)


def test_a_calibration_is_said() -> None:
    assert list(lines(RESULT)) == LINES
    found = texts_of(calibration_tables(RESULT))
    assert [line for line in found if line][: len(TABLES.splitlines())] == TABLES.splitlines()
    forced = replace(RESULT.fit.estimates[1], verdict="forced")
    at_bound = replace(RESULT.fit.estimates[0], verdict="at its lower bound")
    fit = replace(RESULT.fit, estimates=(at_bound, forced), freedom=1, pairs=())
    said = list(lines(replace(RESULT, fit=fit, settled=True, note="", probe=None, cross=())))
    assert said[0] == "layer_ticks is at its lower bound: other bounds would give another value"
    assert said[1].startswith("forced although it cannot be identified from these rows: transfer.byte_ticks (too flat")
    assert said[2:4] == ["left aside: row c: no plan of c", "settled after 3 rounds"]


def test_a_calibration_is_written() -> None:
    made = RESULT.to_machine()
    assert made.name == "scratchpad_64k_calibrated"
    assert "prices calibrated on rows.csv (not identified there: transfer.byte_ticks)" in made.description
    assert made.sources["transfer.byte_ticks"] == RESULT.machine_before.sources["transfer.byte_ticks"]
    assert made.sources["layer_ticks"] == (
        "certile calibrate, from rows.csv (abc): bounded least squares of relative residuals of 2 rows in 0..5000 "
        "ticks, plans made anew at every change; median error 50.0% before, 7.5% after; not settled; identified, "
        "interval 1,100.0..1,300.0 ticks"
    )
    data = RESULT.to_json()
    assert (data["rms_residual"], data["median_error_before"]) == (0.075, 0.5)
    assert data["median_error"] == pytest.approx(0.075)
    assert data["fields"][0] == {  # type: ignore[index]
        "field": "layer_ticks", "before": 900, "after": 1_200, "bounds": [0, 5_000], "estimate": 1_200.4,
        "interval": [1_100.0, 1_300.0], "rise": 0.2, "verdict": "identified", "reason": "", "along": [],
    }  # fmt: skip
    assert data["rows"][1]["counts"] == {"layer_ticks": 3, "transfer.byte_ticks": 4}  # type: ignore[index]


# ---- sweep show ------------------------------------------------------------------------------------------------------


def row(**more: object) -> Row:
    empty: Row = dict.fromkeys(Sweep(Path("a"), (), ("ocm_bytes",), ("bytes",), {}).columns)
    return {**empty, "network": "n", "status": "OPTIMAL", "seconds": 1.5, "task": "t1", **more}  # type: ignore[dict-item]


ROWS = [row(), row(), row(task="t2", seconds=2.0, stopped="time limit", status="NO_SOLUTION_FOUND"),
        row(task="t3", seconds=None, status="WAITING"), row(task="t4", status="DEFECT", error="broken"),
        row(task="t5", status="DEFECT", error="broken")]  # fmt: skip
SWEEP = Sweep(Path("/x/a.sqlite"), ROWS, ("ocm_bytes",), ("bytes",), {"OPTIMAL": 1, "WAITING": 1, "DEFECT": 2})
GROUP = Group({"network": "n", "pins": ""}, {"bytes": "bytes", "time": "ps"}, (
    MachineSum("m1", {"ocm_bytes": 2_048}, {"bytes": 5_000, "time": 3_456_000}, 3, 0, True, 0, True),
    MachineSum("m2", {"ocm_bytes": None}, {"bytes": 9_000, "time": 4_000_000}, 3, 0, False, 2),
    MachineSum("m3", {}, {}, 2, 1, False, 0),
))  # fmt: skip


def test_a_sweep_is_said() -> None:
    """Seconds of a task count once: 1.5 + 2 + 1.5 + 1.5; what waits has failed at nothing."""
    assert summary(SWEEP) == [
        "a.sqlite: 6 rows, 4 distinct tasks: 1 OPTIMAL, 1 WAITING, 2 DEFECT; 6.5 s of search",
        "1 tasks wait: certile sweep run with the same spec continues",
        "1 tasks were stopped (time limit): their figures depend on the computer and its load",
        "2 rows DEFECT: broken", "1 rows NO_SOLUTION_FOUND: time limit",
    ]  # fmt: skip
    data = summary_json(SWEEP, [GROUP], everything=False)
    assert (data["rows"], data["seconds"], data["stopped"]) == (6, 6.5, 1)
    assert data["rows_by_status"] == {"OPTIMAL": 2, "NO_SOLUTION_FOUND": 1, "WAITING": 1, "DEFECT": 2}
    assert [one["rows"] for one in data["failures"]] == [2, 1]
    assert [one["machine"] for one in data["groups"][0]["points"]] == ["m1"]
    assert table_csv(SWEEP).splitlines()[0].endswith(",stopped,error,task")
    assert table_csv(SWEEP, seconds=True).splitlines()[3].endswith(",time limit,,t2,2.0,")


def test_machines_of_a_sweep_are_said() -> None:
    found = texts_of(group_table(GROUP, everything=True))
    assert found[1:] == [
        "network n: 1 of 3 machines no other beats in bytes, time; 1 lack a plan of some layer",
        "machine ocm_bytes bytes time (us) front known", "m1 2,048 5,000 3.5 yes proven",
        "m2 - 9,000 4.0 not proven, 2 stopped", "m3 - - - 1 layers lack a plan",
    ]  # fmt: skip
    assert len(texts_of(group_table(GROUP, everything=False))) == 4
    none = replace(GROUP, units={})
    assert texts_of(group_table(none, everything=True))[1] == "network n: no plan of 3 machines"
    heads, *rows = csv.reader(io.StringIO(machines_csv([GROUP], everything=True)))
    assert dict(zip(heads, rows[1], strict=True)) == {
        "network": "n", "pins": "", "machine": "m2", "ocm_bytes": "", "bytes (bytes)": "9000", "time (ps)": "4000000",
        "layers": "3", "lacking": "0", "proven": "0", "stopped": "2", "front": "0",
    }  # fmt: skip
    assert len(machines_csv([GROUP], everything=False).splitlines()) == 2
