"""Plans of problem placement: from files and plans, checked, shown, as CSV, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import certile
from instances.network.buffers import Buffer, Buffers, Memory
from instances.network.network import Network
from instances.network.operators import Conv, Input
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.problems.placement import memories_of, rows_of
from solver.uses.emit.onchip import buffers_of
from tests.lies import changed, problems

#: The example of MiniMalloc's README.
CSV = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
MACHINE = ["--machine", "scratchpad_64k", "--set", "ocm_bytes=12", "--set", "reserved_bytes=0"]
PAIR = Network(
    name="pair",
    operators=(
        Input(name="in", shape=(1, 4, 8, 8)),
        Conv(name="c1", inputs=("in",), shape=(1, 4, 8, 8), filters=4, kernel=(3, 3), pad=(1, 1, 1, 1)),
        Conv(name="c2", inputs=("c1",), shape=(1, 4, 8, 8), filters=4, kernel=(3, 3), pad=(1, 1, 1, 1)),
    ),
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "few.csv"
    path.write_text(CSV)
    return str(path)


def placed(*buffers: Buffer, size: int = 10, **options: object) -> Plan:
    given = Buffers(name="few", buffers=buffers, memories=(Memory(name="m", bytes=size),))
    return certile.solve(given, "scratchpad_24k", **options)


def test_from_a_csv_file_to_addresses(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, again = str(tmp_path / "plan.json"), str(tmp_path / "placed.csv")
    assert main(["solve", table, *MACHINE, "--objective", "peak", "--compare", "size,best-fit", "-o", plan]) == 0
    said = capsys.readouterr().out
    assert "12 of 12 bytes of ocm, at most 12 at one time" in said
    assert main(["check", plan, "--prove"]) == 0
    assert main(["show", plan]) == 0
    assert main(["show", plan, "--all"]) == 0
    said = capsys.readouterr().out
    assert "ocm: 12 of 12 bytes; addresses upwards" in said  # the map
    assert main(["show", plan, "--layer", "b4"]) == 0
    assert "beside b5:" in capsys.readouterr().out
    assert main(["solve", table, *MACHINE, "-o", again]) == 0
    text = Path(again).read_text()
    assert text.splitlines()[0] == "id,lower,upper,size,offset"
    # What is placed is an instance with fixed addresses: certile checks another tool's placement.
    assert main(["solve", again, *MACHINE]) == 0
    Path(again).write_text(text.replace("b5,0,21,4,8", "b5,0,21,4,7"))
    capsys.readouterr()
    assert main(["solve", again, *MACHINE]) == 3
    assert "INFEASIBLE; no addresses for 5 buffers in 12 bytes" in capsys.readouterr().out


def test_the_front_says_what_room_is_worth(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three 4-byte buffers at a time fit in 8 bytes: the cheapest to leave out is b1 (8 bytes moved)."""
    assert main(["pareto", table, *MACHINE, "--pin", "spill=yes", "--axes", "bytes,peak", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["parts"][0]["points"]
    assert [tuple(point["values"].values()) for point in points] == [(0, 12), (8, 8), (16, 4), (40, 0)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "ocm_bytes=11"], "12 bytes are alive at time 0, there are 11: b1 4, b3 4, b5 4"),
        (["--set", "ocm_bytes=100", "--pin", "cap<=11"], "12 bytes are alive at time 0, there are 11"),
    ],
)
def test_a_hard_cap(table: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", table, "--machine", "scratchpad_64k", "--set", "reserved_bytes=0", *arguments]) == 3
    assert said in capsys.readouterr().out
    assert main(["explain", table, "--machine", "scratchpad_64k", "--set", "reserved_bytes=0", *arguments]) == 3
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["solve", "{table}"], "machine: a bundled name or a .json file is needed (--machine)"),
        (["solve", "{table}", "--machine", "midap"], "machine midap: problem placement needs a memory with addresses"),
        (["solve", "{table}", *MACHINE, "--problem", "tiling"], "problem tiling plans networks, these are buffers"),
        (["solve", "lenet5", *MACHINE, "--problem", "placement"], "problem placement takes buffers"),
        (["solve", "{table}", *MACHINE, "--batch", "2"], "--batch: not for buffers"),
        (["solve", "{table}", *MACHINE, "--objective", "time"], "expected bytes, peak or preference"),
        (["solve", "{table}", *MACHINE, "--pin", "spill=maybe"], "spill takes no or yes, got 'maybe'"),
        (["solve", "missing.csv", *MACHINE], "buffers missing.csv: no such file"),
    ],
)
def test_one_line_for_bad_input(
    arguments: list[str], said: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main([part.format(table=table) for part in arguments]) == 2
    assert said in capsys.readouterr().err


# ---- plans as targets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["tiling", "joint", "fusion"])
def test_the_buffers_of_a_plan(problem: str, tmp_path: Path) -> None:
    """A plan brings its machine; what it counts on chip is alive at one time, and has addresses in its memory."""
    settings = {"ocm_bytes": 640, "ocm_banks": 40}
    plan = certile.solve(PAIR, "scratchpad_768k", problem=problem, settings=settings)
    path = tmp_path / "plan.json"
    plan.save(path)
    made = certile.solve(path, objective="peak")
    assert made.status == "OPTIMAL"
    assert made.machine == "scratchpad_768k"
    assert memories_of(made)[0].load <= made.measures["peak"] <= 640
    assert certile.check(made).ok
    assert certile.solve(plan, objective="peak").measures == made.measures
    if problem == "tiling":
        assert {b.name for b in rows_of(made)} == {f"{c}: {o}" for c in ("c1", "c2") for o in ("IN", "W", "OUT")}
        assert memories_of(made)[0].load == max(sum(row.occupancy_bytes.values()) for row in plan.layers)


def test_buffers_of_several_memories() -> None:
    plan = certile.solve(PAIR, "nmp")
    given = buffers_of(plan)
    assert {b.memories for b in given.buffers} == {("in",), ("w",), ("out",)}
    made = certile.solve(plan)
    assert [memory.name for memory in memories_of(made)] == ["in", "w", "out"]
    assert made.status == "OPTIMAL"


def test_plans_without_buffers_are_refused() -> None:
    plan = certile.solve("lenet5", "galaxy_s9", engine="single")
    with pytest.raises(certile.InputError, match="problem placement takes plans of tiling, slicing, joint and fusion"):
        certile.solve(plan)


# ---- checks ----------------------------------------------------------------------------------------------------------

A, B = Buffer(name="a", lower=0, upper=2, size=6), Buffer(name="b", lower=1, upper=3, size=4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"address": 3}, "share bytes of m"),
        ({"address": 7}, "takes bytes 7 to 11 of 10"),
        (None, "buffer b is not on chip, where it has to be"),
        ({"memory": "n"}, "there are memories m"),
        ({"buffer": "c"}, "there are memories m and no such buffer"),
        ({"buffer": "a"}, "a buffer is placed twice"),
    ],
)
def test_edited_plans_are_refused(change: dict[str, object] | None, said: str) -> None:
    plan = placed(A, B)
    assert certile.check(plan).ok
    report = certile.check(edited(plan, change))
    assert not report.ok
    assert any(said in problem for problem in report.problems), report.problems


def edited(plan: Plan, change: dict[str, object] | None) -> Plan:
    """A plan whose second buffer lies elsewhere, None: off the chip."""
    return changed(
        plan, ("parts.0.schedule.places", lambda rows: [rows[0], *([] if change is None else [{**rows[1], **change}])])
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory": None}, "places[1].memory"),
        ({"address": -1}, "places[1].address"),
        ({"size": 3}, "unknown field"),
    ],
)
def test_plans_that_say_no_place_are_not_read(change: dict[str, object], said: str) -> None:
    with pytest.raises(certile.InputError) as caught:
        edited(placed(A, B), change)
    assert said in str(caught.value)


def test_figures_of_memories_follow_from_the_places() -> None:
    """a and b live together in time 1: 6 + 4 bytes."""
    plan = placed(A, B)
    assert [(one.name, one.bytes, one.peak, one.load) for one in memories_of(plan)] == [("m", 10, 10, 10)]
    assert problems(plan, ("parts.0.figures.0.load", 9)) == ("figures[0].load: the plan says 9, it is 10",)


def test_a_worse_plan_that_claims_to_be_optimal_is_refuted() -> None:
    """b above a in 10 bytes; with b at 6 and a at 0 the peak is 10, and 10 is the load. In 20 bytes a lie says 11."""
    plan = placed(A, B, size=20, objective="peak")
    assert plan.objective.value == 10
    peaks = (
        *(f"parts.0.{name}" for name in ("replay.measures.peak", "figures.0.peak", "terms.peak.m", "measures.peak")),
        "parts.0.bounds.peak", "measures.peak", "objective.value", "objective.terms.m", "bound",
    )  # fmt: skip
    lies = [(f"parts.0.schedule.places.{n}.address", address) for n, address in enumerate((5, 1))]
    report = certile.check(changed(plan, *lies, *((place, 11) for place in peaks)), prove=True)
    assert (report.ok, report.proof) == (False, "refuted")


def test_plans_are_files(tmp_path: Path) -> None:
    plan = placed(A, B, pins=["cap<=10"], objective="bytes,peak")
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path) == plan
    plan.save(tmp_path / "plan.csv")
    assert (tmp_path / "plan.csv").read_text() == "id,lower,upper,size,offset\na,0,2,6,0\nb,1,3,4,6\n"


@pytest.mark.few(3)
@pytest.mark.parametrize("problem", ["tiling", "joint"])
@pytest.mark.parametrize("edit", ["none", "occupancy", "bytes", "digest", "rows"])
def test_a_plan_file_is_checked_before_its_buffers_are_placed(
    problem: str, edit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One number that does not follow from the decisions: one line, exit code 2."""
    path = tmp_path / "plan.json"
    certile.solve(PAIR, "scratchpad_768k", problem=problem).save(path)
    data = json.loads(path.read_text())
    figures = data["parts"][0]["figures"]
    row = figures[0] if problem == "joint" else figures
    if edit == "occupancy":
        taken = row["occupancy_bytes"]
        row["occupancy_bytes"] = taken + 1 if isinstance(taken, int) else {name: n + 1 for name, n in taken.items()}
    elif edit == "bytes":
        data["objective"]["value"] += 1
    elif edit == "digest":
        data["network_digest"] = "sha256:" + "0" * 64
    elif edit == "rows":
        if problem == "joint":
            schedule = data["parts"][0]["schedule"]
            schedule["runs"] = schedule["runs"][:1]
        else:
            data["parts"] = data["parts"][:1]
    path.write_text(json.dumps(data))
    code = main(["solve", str(path), "--problem", "placement"])
    lines = capsys.readouterr().err.splitlines()
    assert code == (0 if edit == "none" else 2), lines
    assert [line for line in lines if "error" in line] == (lines if edit != "none" else [])
    assert edit == "none" or len(lines) == 1


# ---- public hard instances -------------------------------------------------------------------------------------------

MINIMALLOC = os.environ.get("CERTILE_MINIMALLOC", "")


@pytest.mark.slow(60, every=True)
@pytest.mark.skipif(not MINIMALLOC, reason="CERTILE_MINIMALLOC names no folder of the challenging instances")
@pytest.mark.parametrize("name", "ABCDEFGHIJK")
def test_the_challenging_instances_of_minimalloc(name: str) -> None:
    """benchmarks/challenging of google/minimalloc: 154 to 454 buffers, hardly a byte to spare; all fit in 1 MiB."""
    plan = certile.solve(
        str(Path(MINIMALLOC) / f"{name}.1048576.csv"), "scratchpad_768k", time_limit_s=300,
        settings={"ocm_bytes": 1_048_576, "ocm_banks": 0},
    )  # fmt: skip
    assert (plan.status, plan.objective.value) == ("OPTIMAL", 0)
    assert certile.check(plan).ok
