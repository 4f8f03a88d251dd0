"""Plans of problem fusion as a reader meets them: what is shown and said; the hand example of docs/fusion.md."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from formulations.fusion.groups import Group
from formulations.fusion.memory import Option
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.fusion.strips import Mode
from formulations.pins import Pins
from hwmodels.schedule import FusedRun, NetworkRun
from instances.errors import InputError
from instances.load import load_machine
from instances.network.network import Network
from instances.network.operators import Conv, Input, MatMul, Resample, Reshape
from instances.zoo.chains import CHAINS
from solver import check, pareto, show
from solver.ask.progress import Silent
from solver.calls.solve import solve
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.problems import fusion as front
from solver.search.loop import Answer
from solver.search.verdict import verdicts_of
from solver.uses.bench.fusion import HEADS, bank_row, convolutions, fusion_banks, fusion_chains
from solver.uses.bench.fusion import SUITE as fusion
from solver.uses.bench.report import Suite
from tests.golden_plans import chain

TWO = chain(4, 4, size=8)
BOTH = "fuse=c0..c1"


@cache
def two(banks: int, *pins: str, reserved: int = 0) -> Plan:
    """The hand example in so many banks of 16 bytes, of which some are reserved."""
    settings = {"ocm_bytes": 16 * banks, "ocm_banks": banks, "reserved_bytes": reserved}
    return solve(TWO, "scratchpad_768k", problem="fusion", objective="bytes", pins=pins, settings=settings)


# ---- the hand example ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "moved", "macs", "peak"),
    [("lead", 800, 18_432, 544), ("retain", 800, 18_432, 544), ("recompute", 1_184, 25_344, 608)],
)
def test_hand_figures_are_priced_replayed_and_executed(mode: Mode, moved: int, macs: int, peak: int) -> None:
    machine = load_machine("scratchpad_768k", {"ocm_bytes": "640", "ocm_banks": "40"})
    part = FusionPart(TWO, machine, Pins(()))
    steps = streams_of(Group(part.net, 0, 1), Option(2, 8, mode, "lead"))
    run = FusedRun(0, 1, *steps, (144, 144), {}, (8, 0), tuple(range(40)))
    price = part.prices.price(run)
    assert (sum(price.bytes.values()), price.macs, price.peak_bytes) == (moved, macs, peak)
    walked = part.walked(NetworkRun((run,)))
    (seen,) = walked.runs
    assert (walked.faults, seen.executed) == ((), True)
    assert (sum(seen.operand_bytes.values()), seen.macs, seen.peak_bytes) == (moved, macs, peak)


@pytest.mark.slow(4)
def test_hand_figures_are_planned() -> None:
    kept, again, alone = two(34, BOTH, "strip=2"), two(28, BOTH, "strip=2", "recompute=any"), two(28, "cut=c0")
    assert all(check(plan).ok and plan.status == "OPTIMAL" for plan in (kept, again, alone))
    assert [plan.measures and plan.measures["bytes"] for plan in (kept, again, alone)] == [800, 1_184, 928]
    assert kept.part.figures[0].occupancy_bytes == 544
    assert [rows for rows, _ in alone.schedule[0].residents.values()] == [6]


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_a_front_states_the_fewest_macs_only_if_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips of 2 rows of two layers of 9,216 MACs, in 448 bytes: halos are computed again, or 12 bytes more move."""
    settings = {"ocm_bytes": 448, "ocm_banks": 28, "psum_bytes": 1}
    asked = partial(pareto, TWO, "scratchpad_768k", problem="fusion", settings=settings, pins=[BOTH, "strip=2"])
    whole = asked()
    assert [dict(one.values) for one in whole.parts[0].points] == [
        {"bytes": 1_184, "macs": 25_344}, {"bytes": 1_196, "macs": 18_432},
    ]  # fmt: skip
    assert (whole.proven, *(plan.part.bounds for plan in whole.plans)) == (True, *[{"bytes": 800, "macs": 18_432}] * 2)
    assert [one.label for one in whole.parts[0].points] == ["", ""]
    found = [one.part.schedule for one in whole.plans]
    monkeypatch.setattr(front, "lowest", lambda _, part, *__: (verdicts_of((part, _said(one)) for one in found), False))
    cut = asked()
    assert (cut.proven, *(plan.part.bounds for plan in cut.plans)) == (False, *[{"bytes": 800, "macs": None}] * 2)
    assert [one.label for one in cut.parts[0].points] == ["gap 32.43 %", "gap 33.11 %"]  # 384 of 1,184, 396 of 1,196


def _said(schedule: object) -> Answer[Any]:
    return Answer(schedule, {}, {"bytes": None, "macs": None}, "FEASIBLE")


def test_a_plan_that_moves_what_must_is_optimal_for_every_schedule() -> None:
    said = show(two(34, BOTH, "strip=2"))
    assert "800 bytes move, what must: optimal for every schedule" in said
    assert "c0..c1" in said
    assert "rows that two strips read" in said


def test_one_that_moves_more_says_how_much() -> None:
    said = show(two(28, BOTH, "strip=2", "recompute=any"))
    assert "optimal for every schedule" not in said
    assert "1.480 times what must (800)" in said
    assert "1.375 times the MACs of every layer once" in said
    assert "computed again" in said


@pytest.mark.parametrize("layer", ["c0", "c1", "c0..c1"])
def test_a_group_is_drawn_step_by_step(layer: str) -> None:
    lines = show(two(34, BOTH, "strip=2"), layer=layer).splitlines()
    assert lines[1] == "  strips and weights take at most 544 bytes in banks 0-33"
    cells = [line.split() for line in lines[2:6]]
    assert cells[0] == ["rows", "in", "step", "1", "2", "3", "4", "kept", "weights"]
    assert cells[1] == ["load", "in", "0-3", "4-5", "6-7", "-", "2"]
    assert cells[2] == ["c0", "0-2", "3-4", "5-6", "7", "2", "144", "of", "144"]
    assert cells[3] == ["c1", "0-1", "2-3", "4-5", "6-7", "0", "144", "of", "144"]


@pytest.mark.slow(2)
def test_a_layer_by_itself_is_drawn_as_a_nest() -> None:
    said = show(two(28, "cut=c0"), layer="c1")
    assert "6 of 8 rows of c0 lie in banks" in said
    assert "OUT += W * IN" in said


def test_of_many_steps_first_and_last_are_drawn() -> None:
    (head,) = [s for s in show(two(40, BOTH, "strip=1"), layer="c0").splitlines() if "rows in step" in s]
    assert "..." in head
    assert head.split()[-3:] == ["8", "kept", "weights"]


def test_pieces_of_rows_are_named() -> None:
    plan = two(28, BOTH, "strip=2", "recompute=any")
    assert "2 x" in show(plan)
    assert "of columns" in show(plan, layer="c0")


# ---- what is refused, in a line --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("fuse=c0", "expected FIRST..LAST"),
        ("fuse=c0..c9", "has no layer 'c9'"),
        ("fuse=c1..c0", "c1 must come before c0"),
        ("cut=nothing", "has no layer 'nothing'"),
        ("macs=1.05", "only macs<=N applies"),
        ("recompute=yes", "recompute"),
        ("strip=tall", "strip"),
    ],
)
def test_wrong_pins(pin: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    network = tmp_path / "two.json"
    network.write_text(json.dumps({"format": "certile-network/1", **TWO.model_dump(mode="json")}))
    asked = ["solve", str(network), "-m", "scratchpad_768k", "--problem", "fusion", "--pin", pin]
    assert main(asked) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_pins_that_contradict_each_other() -> None:
    plan = two(34, BOTH, "cut=c0")
    assert plan.status == "INFEASIBLE"
    assert "fuse=c0..c1 and cut=c0 contradict each other" in show(plan)


def test_room_that_strips_do_not_leave_is_refused() -> None:
    with pytest.raises(InputError, match="keeps no room for im2col_rows beside strips"):
        solve(TWO, "scratchpad_768k", problem="fusion", objective="bytes", settings=["im2col_rows=1"])


@pytest.mark.parametrize(("reserved", "left"), [(1, 29), (16, 29), (17, 28)])
def test_what_is_reserved_no_plan_has(reserved: int, left: int) -> None:
    """A byte that is reserved of 30 banks of 16 takes a bank, 17 take two: 29 hold strips of 2 rows, 28 do not."""
    plan, less = two(30, BOTH, "strip=2", reserved=reserved), two(left, BOTH, "strip=2")
    assert plan.measures == less.measures
    assert {True: 800, False: 1_196}[left == 29] == (plan.measures or {})["bytes"]
    assert max(bank for run in plan.part.schedule for bank in run.banks) < left
    assert check(plan).ok


def test_what_is_reserved_without_banks() -> None:
    """Of 481 bytes 17 are reserved: as 464 bytes."""
    one, other = (
        solve(TWO, "scratchpad_768k", problem="fusion", objective="bytes", pins=[BOTH, "strip=2"], settings=settings)
        for settings in ({"ocm_bytes": 481, "ocm_banks": 0, "reserved_bytes": 17}, {"ocm_bytes": 464, "ocm_banks": 0})
    )
    assert one.measures == other.measures
    assert one.part.figures[0].occupancy_bytes <= 464


def test_more_is_reserved_than_there_are_banks() -> None:
    """Of two banks of 16 bytes 17 bytes take both."""
    settings = {"ocm_bytes": 32, "ocm_banks": 2, "reserved_bytes": 17}
    with pytest.raises(InputError, match="reserved_bytes 17 leaves none of 2 banks of 16 bytes"):
        solve(TWO, "scratchpad_768k", problem="fusion", settings=settings)


def test_a_network_with_weights_in_flash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The homes are those of the pin, and what is decided is checked with them; without a pin they are open."""
    path = str(tmp_path / "plan.json")
    asked = ["solve", "lenet5", "-m", "u256_flash", "--problem", "fusion", "--objective", "bytes", "--pin", "length=1"]
    assert main([*asked, "--pin", "home_W=flash", "-o", path]) == 0
    assert main(["check", path]) == 0
    assert json.loads(Path(path).read_text())["machine_data"]["homes"]["W"] == ["flash"]
    capsys.readouterr()
    assert main(asked) == 2
    assert "W may lie in flash or sram: pin home_W=flash" in capsys.readouterr().err


# ---- benches ---------------------------------------------------------------------------------------------------------


def test_the_chains_move_what_they_must() -> None:
    least = {
        "convs_3": 471_296, "inverted": 153_456, "bottleneck": 1_618_944, "bottleneck_sum": 1_562_624,
        "convs_2": 6_382_592, "products": 131_072,
    }  # fmt: skip
    for name, build in CHAINS.items():
        network = build()
        maps = [network.operators[0].shape, network.operators[-1].shape]
        weights = sum(layer.g * layer.m * layer.n * layer.kh * layer.kw for layer in network.conv_layers)
        assert weights + sum(c * h * w for _, c, h, w in maps) == least[name]


def test_convolutions_of_vgg16() -> None:
    network = convolutions("vgg16")
    assert len(network.conv_layers) == 13
    assert network.operators[-1].shape == (1, 512, 7, 7)


@pytest.mark.slow(7)
def test_rows_of_the_benches() -> None:
    (row,), (other,) = rows_of(few(fusion, ("lenet5", 64))), rows_of(few(fusion_chains, ("products", 64, 196_608, 10)))
    heads = {"network", "KiB", "joint", "fused", "bound", "status", "compulsory", "macs_ratio", "seconds"}
    assert heads | {"nest_seconds"} <= set(row)
    assert 0 <= row["nest_seconds"] < row["seconds"]
    assert row["compulsory"] <= row["bound"] <= row["fused"] <= row["joint"]
    assert (other["chain"], other["accelforge"]) == ("products", 196_608)
    assert other["fused"] >= other["bound"] >= 131_072


@pytest.mark.slow(10)
def test_rows_that_say_what_banks_cost() -> None:
    (fused,) = rows_of(few(fusion_banks, ("lenet5", 16)))
    alone = dict(zip(HEADS, bank_row("joint", "lenet5", 16), strict=True))
    assert fused["bytes"] == alone["bytes"] == alone["in banks of 4 KiB"] == 62_504  # compulsory
    assert 62_504 < fused["in banks of 16 KiB"] < alone["in banks of 16 KiB"]
    # one bank of 16 KiB: no map stays beside a tile
    dram = solve("lenet5", "scratchpad_768k", settings={"ocm_bytes": 16384}, problem="joint", engine="no-reuse")
    assert alone["in banks of 16 KiB"] == dram.measures["bytes"]
    assert alone["cost of 16 KiB %"] == 100 * (alone["in banks of 16 KiB"] / alone["bytes"] - 1)


def test_a_plan_in_banks_that_is_below_the_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = import_module("solver.uses.bench.fusion")

    def lies(*args: object, settings: dict[str, int], **others: object) -> SimpleNamespace:
        return SimpleNamespace(objective=SimpleNamespace(value=9 if settings["ocm_banks"] else 10), bound=10, gap=0.0)

    monkeypatch.setattr(bench, "solve", lies)
    with pytest.raises(RuntimeError, match="9 bytes in banks, at least 10 without"):
        bank_row("joint", "lenet5", 64)


def test_rows_that_are_asked_for() -> None:
    bench = import_module("solver.uses.bench.fusion")
    (table,) = fusion.tables
    quick = replace(table, row=lambda name, kib: [name, kib, *[None] * (len(table.heads) - 2)])
    suite = replace(fusion, tables=[quick])
    large = [f"{name}@512x512 {kib}" for name in ("resnet50", "mobilenet_v2") for kib in (128, 512, 768)]
    for only, asked in (("512x512", large), ("vgg16_convs 5", ["vgg16_convs 512"])):
        rows = rows_of(suite(Silent(), only=only).to_json())
        assert [f"{row['network']} {row['KiB']}" for row in rows] == asked
    assert len(rows_of(suite(Silent()).to_json())) == 9  # those of 512x512 only if they are asked for
    assert bench.network_of("resnet50@512x512").operators[0].shape == (1, 3, 512, 512)
    with pytest.raises(InputError, match=r"resnet51: no row; there are resnet50 128, .*, mobilenet_v2@512x512 768"):
        fusion(Silent(), only="resnet51")


@pytest.mark.slow(2)
def test_growth_with_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = import_module("solver.uses.bench.fusion")
    monkeypatch.setattr(bench, "resnet", lambda depth: CHAINS["convs_3"]())
    (row,) = rows_of(few(bench.fusion_depth, 18))
    assert (row["network"], row["layers"], row["status"]) == ("resnet18", 3, "OPTIMAL")


def few(suite: Suite, *cases: object) -> object:
    """What a suite of one table says of these cases."""
    (table,) = suite.tables
    return replace(suite, tables=[replace(table, cases=cases)])(Silent()).to_json()


def rows_of(report: object) -> list[dict[str, int]]:
    return report["rows"]


def test_readers_that_see_a_map_unlike_load_it_each() -> None:
    """a goes as 3 x 3 pixels to a convolution and flattened to a product: one stream cannot be both."""
    shape, fields = (1, 4, 3, 3), {"kernel": (1, 1), "stride": (1, 1), "pad": (0, 0, 0, 0)}
    network = Network(name="unlike", operators=(
        Input(name="in", shape=shape), Conv(name="a", inputs=("in",), shape=shape, filters=4, **fields),
        Conv(name="b", inputs=("a",), shape=(1, 3, 3, 3), filters=3, **fields),
        Reshape(name="flat", inputs=("a",), shape=(1, 36)),
        MatMul(name="c", inputs=("flat",), shape=(1, 1), out_features=1),
    ))  # fmt: skip
    settings = {"ocm_bytes": 128, "ocm_banks": 8}
    part = FusionPart(network, load_machine("scratchpad_768k", {"ocm_bytes": "128", "ocm_banks": "8"}), Pins(()))
    group = Group(part.net, 1, 2)
    assert (group.legal, group.alike) == (True, False)
    assert Group(part.net, 1, 2, group.shared).alike
    plan = solve(
        network, "scratchpad_768k", problem="fusion", objective="bytes", settings=settings, pins=("fuse=b..c",)
    )
    assert plan.status == "OPTIMAL"
    assert [one.readers for one in plan.schedule[-1].streams if one.outside] == [(1,), (2,)]  # b and c
    assert check(plan).ok


def test_a_layer_whose_elements_read_several_neighbours_runs_by_itself() -> None:
    """A group would load one of them; of each of 4 * 10 * 17 elements 4 neighbours are read, 2,720 bytes.

    Nearest reads one, 680: then a group may begin with it. Beside these come 8 weights and 340 results.
    """
    for fn, moved, together in (("linear", 2720, "INFEASIBLE"), ("nearest", 680, "OPTIMAL")):
        sized = Resample(name="r", inputs=("x",), shape=(1, 4, 10, 17), fn=fn, size=(10, 17))
        last = Conv(name="c", inputs=("r",), shape=(1, 2, 10, 17), filters=2, kernel=(1, 1))
        network = Network(name="n", operators=(Input(name="x", shape=(1, 4, 13, 11)), sized, last))
        plan = solve(network, "scratchpad_768k", problem="fusion", objective="bytes")
        assert (plan.status, plan.objective.value) == ("OPTIMAL", moved + 8 + 340)
        assert (
            solve(network, "scratchpad_768k", problem="fusion", objective="bytes", pins=["fuse=r..c"]).status
            == together
        )
