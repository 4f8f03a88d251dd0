"""Plans in banks as files and on the command line: written, checked, shown, refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator, Reshape
from instances.network.workload import Layer
from solver import check, pareto, solve
from solver.calls.solve import show
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.problems.banks import BanksProblem, stage_rows
from tests.effort import tries
from tests.lies import Lie, problems

ENGINES = ("dynamic", "milp", "cp-sat", "min", "dls", "hide", "double-buffer", "no-reuse", "beam")


def first(name: str, number: int) -> Network:
    """The first operators of a network."""
    return Network(name=name, operators=load_network(name).operators[:number])


#: Up to the first fire module of SqueezeNet, where two maps lie in one.
SMALL = first("squeezenet1_1", 8)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve("squeezenet1_1", "midap", objective="bytes", problem="banks")


@pytest.fixture(scope="module")
def small() -> Plan:
    return solve(SMALL, "midap", objective="bytes", problem="banks")


@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_a_plan_that_checks(engine: str, small: Plan, tmp_path: Path) -> None:
    """Engines that prove agree in all measures; bounds are never above the plan."""
    other = solve(SMALL, "midap", engine=engine, objective="bytes", problem="banks")
    other.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == other
    report = check(tmp_path / "plan.json")
    assert report.problems == ()
    assert report.layers == 1
    assert small.bound == small.measures["bytes"] <= other.measures["bytes"]
    assert other.bound <= other.measures["bytes"]
    if engine in ("dynamic", "milp", "cp-sat"):
        assert (other.status, other.measures, other.gap) == ("OPTIMAL", small.measures, 0.0)
    else:
        assert other.status == "FEASIBLE"


def test_objectives_and_energy(small: Plan) -> None:
    fast = solve(SMALL, "midap", problem="banks")
    energy = solve(SMALL, "midap", objective="energy", problem="banks")
    assert fast.measures["time"] <= small.measures["time"]
    assert fast.measures["bytes"] >= small.measures["bytes"]
    machine, macs = load_machine("midap"), SMALL.macs
    assert energy.objective.value == machine.byte_fj * small.measures["bytes"] + machine.mac_fj * macs
    assert energy.bound == energy.objective.value
    for one in (fast, small, energy):
        assert sum(one.objective.terms.values()) == one.objective.value


@pytest.mark.slow(1)
def test_writes_on_the_bus_only_take_time(small: Plan, tmp_path: Path) -> None:
    """The same bytes, all engines agree, nothing gets faster, and a check knows what it waits for."""
    on = {"banks.writes": "bus", "banks.bus": "first_come"}
    made = {engine: solve(SMALL, "midap", engine=engine, settings=on, objective="bytes", problem="banks")
            for engine in ENGINES}  # fmt: skip
    fast = solve(SMALL, "midap", settings=on, problem="banks")
    free = solve(SMALL, "midap", settings={"banks.bus": "first_come"}, problem="banks")
    assert fast.measures and free.measures and fast.objective and small.measures  # noqa: PT018
    assert fast.status == "OPTIMAL"
    assert fast.measures["time"] > free.measures["time"]
    assert fast.objective.terms["wait_writes"] == sum(one.waits_for_writes for one in fast.part.figures.values()) > 0
    for engine, one in made.items():
        assert one.measures["time"] >= fast.measures["time"]
        if engine in ("dynamic", "milp", "cp-sat"):
            assert one.measures["bytes"] == small.measures["bytes"]
            assert one.measures["time"] == made["dynamic"].measures["time"]
    fast.save(tmp_path / "plan.json")
    assert check(tmp_path / "plan.json").problems == ()
    name, first = next(iter(fast.part.figures.items()))
    later = {**fast.part.figures, name: replace(first, waits_for_writes=first.waits_for_writes + 1)}
    fast.model_copy(update={"parts": (fast.part.model_copy(update={"figures": later}),)}).save(tmp_path / "plan.json")
    [said] = check(tmp_path / "plan.json").problems
    assert said.startswith(f"figures.{name}.waits_for_writes: the plan says {first.waits_for_writes + 1}")


@pytest.mark.slow(3)
def test_the_front_holds_both_optima(small: Plan) -> None:
    front = pareto(SMALL, "midap", problem="banks").plans
    assert front[0].measures == small.measures
    assert front[-1].measures == solve(SMALL, "midap", problem="banks").measures
    assert all(check(one).ok for one in front)


_RUNS = "parts.0.schedule.runs"


def _came(data: Any) -> None:
    next(run for run in data["parts"][0]["schedule"]["runs"] if run["results"])["results"][0]["loaded"] = True


def _load(data: Any) -> None:
    (part,) = data["parts"]
    part["figures"][part["schedule"]["runs"][3]["stage"]]["load"] += 1


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ((f"{_RUNS}.3.tiles.0.bank", lambda bank: (bank + 1) % 4), "banks hold"),
        ((f"{_RUNS}.3.actions", lambda rows: rows[:-1]), "no choice of this problem"),
        (_load, ".load: the plan says"),
        ((_RUNS, lambda rows: [rows[1], rows[0], *rows[2:]]), "no choice of this problem"),
        (("parts.0.bounds.bytes", 1), "the plan says OPTIMAL, it is FEASIBLE"),
        (("parts.0.must.bytes", lambda must: must - 1), "must.bytes"),
        (_came, "of the result, the plan says"),
        (("parts.0.terms.time.wait_maps", lambda ticks: ticks + 1), "terms.time.wait_maps"),
        ((f"{_RUNS}.3.stage", "nobody"), "no such stage"),
        (("engine", "min"), "engine min proves nothing"),
        (("engine", "x"), "engine x: there is none of this name"),
        (("objectives", ["bytes", "bytes"]), "one stands twice"),
        ((f"{_RUNS}.0.tiles", []), "no tiles"),
        ((f"{_RUNS}.0.source", "x"), "reads x from the banks, its operands are input"),
        ((f"{_RUNS}.0.actions.0.1", 10**12), "no choice of this problem is like that; conv1: bank 0 is taken"),
        ((f"{_RUNS}.0.keep", 10**12), "keeps 1000000000000 tiles"),
    ],
)
def test_a_plan_that_lies_is_found_out(plan: Plan, lie: Lie, said: str) -> None:
    found = problems(plan, lie)
    assert any(said in line for line in found), found


def test_a_plan_that_only_says_it_is_infeasible_is_found_out() -> None:
    found = solve("lenet5", "midap", problem="banks")
    none = {"objective": None, "gap": None, "measures": None, "status": "INFEASIBLE", "conflicts": ("x",)}
    part = found.part.model_copy(update={"schedule": None, "status": "INFEASIBLE", "conflicts": ("x",), "gap": None})
    said = check(found.model_copy(update={**none, "parts": (part,)})).problems
    assert any("engine no-reuse has a schedule" in line for line in said)
    assert any(line.startswith("measures: the plan says") for line in said)
    assert any(line.startswith("replay: the plan says") for line in said)
    assert any(line.startswith("status: the plan says INFEASIBLE") for line in said)
    assert any(line.startswith("figures: the plan says") for line in said)


def test_an_input_that_others_read_lies_in_pixels() -> None:
    """A sum of the input and its convolution: patches are no pixels, so there are none."""
    shape = (1, 3, 8, 8)
    conv = Conv(name="c", inputs=("in",), shape=shape, filters=3, kernel=(3, 3), pad=(1, 1, 1, 1))
    alone = Network(name="alone", operators=(Input(name="in", shape=shape), conv))
    both = Network(
        name="both", operators=(*alone.operators, Eltwise(name="s", inputs=("in", "c"), shape=shape, fn="add"))
    )
    assert [row.kind for row in stage_rows(solve(alone, "midap", problem="banks"))] == ["patches"]
    plan = solve(both, "midap", problem="banks")
    assert [row.kind for row in stage_rows(plan)] == ["conv", "sum"]
    assert plan.part.figures["c"].load == 8 * 8 * 64
    assert check(plan).ok


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ((), "no operator computes"),
        ((Conv(name="b", inputs=("a",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1)),
          Concat(name="ab", inputs=("a", "b"), shape=(1, 16, 4, 4))), "read by others too"),
        ((Concat(name="ab", inputs=("a", "a"), shape=(1, 16, 4, 4)),), "read by others too"),
        ((Conv(name="b", inputs=("in",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1)),
          Concat(name="ab", inputs=("a", "b"), shape=(1, 8, 4, 8), axis=3)), "joins along axis 3"),
        ((Reshape(name="flat", inputs=("a",), shape=(1, 128)),
          Reshape(name="half", inputs=("flat",), shape=(1, 64), fn="slice")), "moves columns"),
    ],
)  # fmt: skip
def test_networks_without_a_bank_program_are_refused(operators: tuple[Operator, ...], message: str) -> None:
    first = Conv(name="a", inputs=("in",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1))
    network = Network(
        name="n", operators=(Input(name="in", shape=(1, 8, 4, 4)), *([first] if operators else []), *operators)
    )
    with pytest.raises(InputError, match=message):
        solve(network, "midap", problem="banks")


def test_a_residual_on_chip_is_none_that_is_streamed() -> None:
    on_chip, streamed = (
        solve(skip(), "midap", objective="bytes", settings={"banks.residuals": where}, problem="banks")
        for where in ("chip", "dram")
    )
    assert on_chip.measures
    assert streamed.measures
    assert on_chip.measures["bytes"] < streamed.measures["bytes"]
    assert check(streamed).ok
    claimed = on_chip.model_copy(update={"options": on_chip.options.model_copy(update={"pins": ("residuals=dram",)})})
    assert any("waits on chip for a sum" in line for line in check(claimed).problems)
    published = on_chip.model_copy(update={"machine_data": streamed.machine_data})
    assert any("waits on chip for a sum, residuals say dram" in line for line in check(published).problems)
    assert solve(skip(), "midap", objective="bytes", problem="banks").measures == streamed.measures


def test_a_stage_reads_a_concatenation_once_it_is_made() -> None:
    """Both parts stay on chip, so nothing is loaded that could be missing."""
    shape = (1, 64, 8, 8)
    halves = [Conv(name=name, inputs=("in",), shape=(1, 32, 8, 8), filters=32, kernel=(1, 1)) for name in "ab"]
    network = Network(name="parts", operators=(
        Input(name="in", shape=shape), *halves, Concat(name="ab", inputs=("a", "b"), shape=shape),
        Conv(name="c", inputs=("ab",), shape=shape, filters=64, kernel=(1, 1)),
    ))  # fmt: skip
    found = solve(network, "midap", objective="bytes", problem="banks")
    one, two, last = found.schedule.runs
    early = with_runs(found, one, last, two)
    assert any(f"c: reads ab before {two.stage} has run" in line for line in check(early).problems)


@pytest.mark.parametrize(("unread", "load"), [("loaded", 64), ("left", 32)])
@pytest.mark.parametrize("engine", ["dynamic", "milp", "min"])
def test_nothing_compulsory_stays_unread(unread: str, load: int, engine: str) -> None:
    """Two columns of 32 bytes, a tile each, a stride of 2 reads one; 16 x 64 bytes of weights, 32 of result."""
    operators = (
        Input(name="in", shape=(1, 16, 2, 2)),
        Conv(name="a", inputs=("in",), shape=(1, 16, 2, 1), filters=16, kernel=(1, 1), stride=(1, 2), bias=False),
    )
    settings = {"banks.map_bytes": 128, "banks.unread": unread}
    tiny = Network(name="n", operators=operators)
    plan = solve(tiny, "midap", engine=engine, objective="bytes", settings=settings, problem="banks")
    assert plan.measures["bytes"] == plan.part.must["bytes"] == plan.bound == load + 1024 + 32
    assert check(plan).ok


@pytest.mark.parametrize("unread", ["loaded", "left"])
@pytest.mark.parametrize("objective", ["bytes", "time"])
def test_stages_of_one_map_may_read_more_or_less_of_it(unread: str, objective: str) -> None:
    """The first stage may leave a column unread, or load it for the other one: programs of both kinds are known."""
    operators = (
        Input(name="in", shape=(1, 16, 2, 2)),
        Conv(name="z", inputs=("in",), shape=(1, 16, 2, 2), filters=16, kernel=(1, 1), bias=False),
        Conv(name="a", inputs=("z",), shape=(1, 16, 2, 1), filters=16, kernel=(1, 1), stride=(1, 2), bias=False),
        Conv(name="b", inputs=("z",), shape=(1, 16, 2, 2), filters=16, kernel=(1, 1), bias=False),
    )
    settings = {"banks.count": 2, "banks.map_bytes": 64, "banks.unread": unread}
    plan = solve(
        Network(name="n", operators=operators), "midap", objective=objective, settings=settings, problem="banks"
    )
    assert plan.status == "OPTIMAL"
    assert check(plan).ok


@pytest.mark.parametrize("engine", ["dynamic", "min"])
def test_loads_go_on_behind_the_last_window(engine: str) -> None:
    """Six columns, three taps, stride 2, in tiles of five: the last column, which no window reads, is loaded alone."""
    operators = (
        Input(name="in", shape=(1, 16, 1, 6)),
        Conv(name="a", inputs=("in",), shape=(1, 16, 1, 2), filters=16, kernel=(1, 3), stride=(1, 2), bias=False),
    )
    settings = {"banks.count": 1, "banks.map_bytes": 80}
    plan = solve(Network(name="n", operators=operators), "midap", engine=engine, settings=settings, problem="banks")
    assert plan.part.figures["a"].load == 6 * 16


def test_all_of_a_patch_must_be_loaded() -> None:
    """Two patches for each column, three in a bank: a column is made from its first patch on, the other must come."""
    network = Network(name="patches", operators=(
        Input(name="in", shape=(1, 3, 2, 2)),
        Conv(name="c", inputs=("in",), shape=(1, 16, 2, 2), filters=16, kernel=(1, 1)),
    ))  # fmt: skip
    small = {"banks.count": 2, "banks.map_bytes": 2 * 3 * 64}
    found = solve(network, "midap", settings=small, pins=["first_layer=patches"], problem="banks")
    (run,) = found.schedule.runs
    assert [tile.end for tile in run.tiles] == [3, 4]
    short = replace(run, tiles=run.tiles[:1], actions=(("load", 1), ("process", 1)))
    assert any(
        "c: columns that its result needs are never loaded" in line for line in check(with_runs(found, short)).problems
    )


def with_runs(plan: Plan, *runs: StageRun) -> Plan:
    """The plan with other stages, and all its figures."""
    schedule = replace(plan.schedule, runs=runs)
    return plan.model_copy(update={"parts": (plan.part.model_copy(update={"schedule": schedule}),)})


def skip() -> Network:
    """A map that a sum reads after two convolutions."""
    shape = (1, 64, 8, 8)
    return Network(name="skip", operators=(
        Input(name="in", shape=shape),
        *(
            Conv(name=name, inputs=(before,), shape=shape, filters=64, kernel=(1, 1))
            for before, name in (("in", "a"), ("a", "b"), ("b", "c"))
        ),
        Eltwise(name="sum", inputs=("a", "c"), shape=shape, fn="add"),
    ))  # fmt: skip


def test_the_map_of_banks_by_time(plan: Plan) -> None:
    text = show(plan, details=True)
    for row in stage_rows(plan):
        assert f"{row.name}: {row.kind}" in text
    assert BanksProblem().sheet(plan).columns[0].cells == [*(run.stage for run in plan.schedule.runs), "pool10"]
    with pytest.raises(InputError, match="has no layer 'x'"):
        show(plan, "x")
    lost = with_runs(plan, *(replace(run, source="x") for run in plan.schedule.runs))
    with pytest.raises(InputError, match="do not fit its network"):
        show(lost)


def test_what_does_not_fit_is_said() -> None:
    found = solve("lenet5", "midap", settings={"banks.count": 2, "banks.map_bytes": 4096}, problem="banks")
    assert (found.status, found.schedule) == ("INFEASIBLE", None)
    assert found.conflicts == ("network lenet5: stage c3 has no program in 2 banks of 2048 bytes",)
    assert check(found).ok
    stuck = solve(
        "lenet5", "midap", engine="min", settings={"banks.count": 2, "banks.map_bytes": 4096}, problem="banks"
    )
    assert stuck.status == "NO_SOLUTION_FOUND"


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("network", "limit"), [(first("mobilenet_v2", 12), 1e-9), (SMALL, 1e-9), ("mobilenet_v2", 0.01)][: tries(2, 3)]
)
def test_a_time_limit_gives_a_plan_with_a_gap(network: str | Network, limit: float) -> None:
    """That of HIDE, or where paths join the best of few labels: both are better than double buffering."""
    found = solve(network, "midap", time_limit_s=limit, problem="banks")
    assert found.status == "FEASIBLE"
    assert 0 < found.gap < 1
    assert check(found).ok
    other = solve(network, "midap", engine="double-buffer", problem="banks")
    assert found.measures["time"] < other.measures["time"]


def test_bad_requests_get_one_line() -> None:
    with pytest.raises(InputError, match="has no banks"):
        solve("lenet5", "nmp", problem="banks")
    with pytest.raises(InputError, match="this is one layer"):
        solve(Layer.conv("c", channels=3, filters=3, size=(8, 8)), "midap", problem="banks")
    with pytest.raises(InputError, match="minimises bytes only"):
        solve("lenet5", "midap", engine="milp", problem="banks")
    with pytest.raises(InputError, match="unknown engine for problem banks"):
        solve("lenet5", "midap", engine="ga", problem="banks")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--pin", "x=1"], 2, "unknown decision 'x', expected first_layer or residuals"),
        (["--full", "--layer", "c1"], 2, "layers (--layer), full (--full): not for problem banks"),
        (["--engine", "cp-sat"], 2, "minimises bytes only"),
        (["--compare", "nobody"], 2, "unknown engine"),
        (["--size", "0x3"], 2, "write rows and columns"),
        (["--set", "banks.count=0"], 2, "banks.count"),
        (["--set", "banks.map_bytes=4096", "--set", "banks.count=2"], 3, ""),
        (["--pin", "residuals=dram", "--compare", "min"], 0, ""),
        (["--pin", "first_layer=corners"], 2, "first_layer takes either, patches or plain"),
        (["--pin", "first_layer=plain", "--pin", "residuals=dram"], 0, ""),
        (["--pin", "residuals=chip"], 2, "--set banks.residuals=chip for a chip that can"),
        (["--pin", "residuals=chip", "--set", "banks.residuals=chip"], 0, ""),
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
    assert json.loads(Path(front).read_text())["format"] == "certile-front/2"
    assert main(["pareto", "lenet5", "--machine", "midap", "--axes", "bytes,ocm"]) == 2
    Path(path).write_text(Path(path).read_text()[:-40])
    assert main(["check", path]) == 2
