"""Plans in banks as files and on the command line: written, checked, shown, refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.workload import Layer
from solver import BankPlan, check, front_network, solve, solve_network
from solver.bank_show import bank_rows, show_banks
from solver.cli import main

ENGINES = ("dynamic", "milp", "cp-sat", "min", "dls", "hide", "double-buffer", "no-reuse")


@pytest.fixture(scope="module")
def plan() -> BankPlan:
    return solve_network("squeezenet1_1", "midap", objective="bytes")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_a_plan_that_checks(engine: str, plan: BankPlan, tmp_path: Path) -> None:
    """Engines that prove agree in all measures; bounds are never above the plan."""
    other = solve_network("squeezenet1_1", "midap", engine=engine, objective="bytes")
    other.save(tmp_path / "plan.json")
    assert BankPlan.load(tmp_path / "plan.json") == other
    report = check(tmp_path / "plan.json")
    assert report.problems == ()
    assert report.layers == len(plan.layers)
    assert plan.measures is not None
    assert other.measures is not None
    assert other.bound is not None
    assert plan.bound == plan.measures.bytes <= other.measures.bytes
    assert other.bound <= other.measures.bytes
    if engine in ("dynamic", "milp", "cp-sat"):
        assert (other.status, other.measures, other.gap) == ("OPTIMAL", plan.measures, 0.0)
    else:
        assert other.status == "FEASIBLE"


def test_objectives_and_energy(plan: BankPlan) -> None:
    fast = solve_network("squeezenet1_1", "midap")
    energy = solve_network("squeezenet1_1", "midap", objective="energy")
    assert fast.measures is not None
    assert plan.measures is not None
    assert energy.objective is not None
    assert fast.measures.time <= plan.measures.time
    assert fast.measures.bytes >= plan.measures.bytes
    machine, macs = load_machine("midap"), load_network("squeezenet1_1").macs
    assert energy.objective.value == machine.byte_fj * plan.measures.bytes + machine.mac_fj * macs
    assert energy.bound == energy.objective.value
    for one in (fast, plan, energy):
        assert one.objective is not None
        assert sum(one.objective.terms.values()) == one.objective.value


def test_writes_on_the_bus_only_take_time(plan: BankPlan, tmp_path: Path) -> None:
    """The same bytes, all engines agree, nothing gets faster, and a check knows what it waits for."""
    on = {"banks.writes": "bus"}
    made = {engine: solve_network("squeezenet1_1", "midap", engine=engine, settings=on, objective="bytes")
            for engine in ENGINES}  # fmt: skip
    fast = solve_network("squeezenet1_1", "midap", settings=on)
    free = solve_network("squeezenet1_1", "midap")
    assert fast.measures and free.measures and fast.objective and plan.measures  # noqa: PT018
    assert fast.status == "OPTIMAL"
    assert fast.measures.time > free.measures.time
    assert fast.objective.terms["wait_writes"] == sum(row.wait_writes_ticks for row in fast.layers) > 0
    for engine, one in made.items():
        assert one.measures is not None
        assert one.measures.time >= fast.measures.time
        if engine in ("dynamic", "milp", "cp-sat"):
            assert one.measures.bytes == plan.measures.bytes
            assert one.measures.time == made["dynamic"].measures.time  # type: ignore[union-attr]
    fast.save(tmp_path / "plan.json")
    assert check(tmp_path / "plan.json").problems == ()
    late = fast.layers[0].model_copy(update={"wait_writes_ticks": fast.layers[0].wait_writes_ticks + 1})
    fast.model_copy(update={"layers": (late, *fast.layers[1:])}).save(tmp_path / "plan.json")
    assert check(tmp_path / "plan.json").problems != ()


def test_the_front_holds_both_optima(plan: BankPlan) -> None:
    front = front_network("squeezenet1_1", "midap")
    assert front[0].measures == plan.measures
    assert front[-1].measures == solve_network("squeezenet1_1", "midap").measures
    assert all(check(one).ok for one in front)


def altered(plan: BankPlan, change: Callable[[dict[str, object]], None]) -> tuple[str, ...]:
    data = plan.model_dump(mode="json")
    change(data)
    return check(BankPlan.from_json(json.dumps(data))).problems


def _layer(data: dict[str, object], at: int = 3) -> dict[str, object]:
    layers = data["layers"]
    assert isinstance(layers, list)
    found = layers[at]
    assert isinstance(found, dict)
    return found


def test_a_plan_that_lies_is_found_out(plan: BankPlan) -> None:
    def bank(data: dict[str, object]) -> None:
        tiles = _layer(data)["tiles"]
        assert isinstance(tiles, list)
        tiles[0]["bank"] = (tiles[0]["bank"] + 1) % 4

    def actions(data: dict[str, object]) -> None:
        found = _layer(data)["actions"]
        assert isinstance(found, list)
        found.pop()

    def total(data: dict[str, object]) -> None:
        volume = _layer(data)["volume"]
        assert isinstance(volume, dict)
        volume["total"] += 1

    def order(data: dict[str, object]) -> None:
        layers = data["layers"]
        assert isinstance(layers, list)
        layers[0], layers[1] = layers[1], layers[0]

    def bound(data: dict[str, object]) -> None:
        data["bound"] = 1

    def unknown(data: dict[str, object]) -> None:
        _layer(data)["layer"] = "nobody"

    for change in (bank, actions, total, order, bound, unknown):
        assert altered(plan, change), change.__name__
    assert any("banks hold" in line for line in altered(plan, bank))
    assert any("no such stage" in line for line in altered(plan, unknown))


def test_the_map_of_banks_by_time(plan: BankPlan) -> None:
    text = show_banks(plan)
    for row in plan.layers:
        assert f"{row.layer}: {row.kind}" in text
    heads, rows = bank_rows(plan)
    assert [row[0] for row in rows] == [row.layer for row in plan.layers]
    assert all(len(row) == len(heads) for row in rows)
    with pytest.raises(InputError, match="has no layer 'x'"):
        show_banks(plan, "x")


def test_what_does_not_fit_is_said() -> None:
    found = solve_network("lenet5", "midap", settings={"banks.count": 2, "banks.map_bytes": 4096})
    assert (found.status, found.layers) == ("INFEASIBLE", ())
    assert found.conflicts == ("network lenet5: stage c3 has no program in 2 banks of 2048 bytes",)
    assert check(found).ok
    stuck = solve_network("lenet5", "midap", engine="min", settings={"banks.count": 2, "banks.map_bytes": 4096})
    assert stuck.status == "NO_SOLUTION_FOUND"


@pytest.mark.parametrize("limit", [0.01, 1e-9])
def test_a_time_limit_gives_a_plan_with_a_gap(limit: float) -> None:
    found = solve_network("mobilenet_v2", "midap", time_limit_s=limit)
    assert found.status == "FEASIBLE"
    assert found.gap is not None
    assert 0 < found.gap < 1
    assert check(found).ok


def test_bad_requests_get_one_line() -> None:
    with pytest.raises(InputError, match="has no banks"):
        solve_network("lenet5", "nmp")
    with pytest.raises(InputError, match="whole networks are planned"):
        solve("lenet5", "midap")
    with pytest.raises(InputError, match="this is one layer"):
        solve_network(Layer.conv("c", channels=3, filters=3, size=(8, 8)), "midap")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="minimises bytes only"):
        solve_network("lenet5", "midap", engine="milp")
    with pytest.raises(InputError, match="unknown engine for banks"):
        solve_network("lenet5", "midap", engine="ga")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--pin", "x=1"], 2, "residuals=chip and residuals=dram"),
        (["--full", "--layer", "c1"], 2, "--layer, --full: not for problem banks"),
        (["--engine", "cp-sat"], 2, "minimises bytes only"),
        (["--compare", "nobody"], 2, "unknown engine"),
        (["--size", "0x3"], 2, "write rows and columns"),
        (["--set", "banks.count=0"], 2, "banks.count"),
        (["--set", "banks.map_bytes=4096", "--set", "banks.count=2"], 3, ""),
        (["--pin", "residuals=dram", "--compare", "min"], 0, ""),
    ],
)
def test_the_command_line(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "lenet5", "--machine", "midap", *words]) == code
    assert said in capsys.readouterr().err


def test_solve_check_show_pareto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, front = str(tmp_path / "plan.json"), str(tmp_path / "front.json")
    assert main(["solve", "lenet5", "--machine", "midap", "--size", "64", "-o", path]) == 0
    assert main(["check", path]) == 0
    assert main(["show", path, "--layer", "c3"]) == 0
    assert main(["pareto", "lenet5", "--machine", "midap", "-o", front]) == 0
    out = capsys.readouterr().out
    assert "replay agrees" in out
    assert "bank 3" in out
    assert json.loads(Path(front).read_text())["format"] == "certile-bank-front/1"
    assert main(["pareto", "lenet5", "--machine", "midap", "--axes", "bytes,ocm"]) == 2
    Path(path).write_text(Path(path).read_text()[:-40])
    assert main(["check", path]) == 2
