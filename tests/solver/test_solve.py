"""`solve`: what it returns, refuses and survives. Engines that misbehave are in data/fakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from formulations.tiling.part import NestPart
from formulations.tiling.search import Search
from instances.errors import InputError
from instances.load import load_network
from instances.machine.machine import Compute
from instances.measured import Profile
from instances.network.network import Network
from instances.network.workload import Layer
from solver import Plan, PlanMismatch, check, pareto, solve
from solver.calls.solve import ask, show
from tests.small import TOY as MACHINE

FAKES = Path(__file__).parents[1] / "data" / "fakes"
ROOT = Path(__file__).resolve().parents[2]

#: 2 channels of 4x4 to 2 channels: IN 32 bytes, W 4, OUT 32; together 68, so 64 bytes on chip need two tiles.
LAYER = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))


def _network(*names: str, sizes: tuple[int, ...] = ()) -> Network:
    """A chain of 1x1 convolutions of 2 channels on 4x4, with 2 filters or those given."""
    filters = sizes or (2,) * len(names)
    operators: list[dict[str, object]] = [{"op": "input", "name": "in", "shape": (1, 2, 4, 4)}]
    for name, m in zip(names, filters, strict=True):
        shape = (1, m, 4, 4)
        conv = {"op": "conv", "name": name, "inputs": ("in",), "shape": shape, "filters": m, "kernel": (1, 1)}
        operators.append(conv)
    return Network.model_validate({"name": "chain", "operators": operators})


# --- the answer ------------------------------------------------------------------------------------------------------


def test_one_layer_by_hand() -> None:
    plan = solve(LAYER, MACHINE)
    layer = plan.layers[0]
    # Two tiles of rows, weights once: 2 + 1 + 2 calls of 10 ticks and 32 + 4 + 32 bytes of 1 tick.
    assert plan.objective.value == plan.bound == 4 * 10 + 68
    # energy: 100 fJ a byte, 1 fJ for each of the 2*2*16 MACs
    assert plan.measures is not None
    assert plan.measures == {"time": 108, "bytes": 68, "energy": 68 * 100 + 64}
    assert plan.objective.terms == {"IN": 42, "W": 14, "OUT": 52, "PSUM": 0, "compute": 0, "overlap": 0}
    assert (plan.status, plan.gap, plan.engine, plan.problem) == ("OPTIMAL", 0.0, "exhaustive", "tiling")
    assert (layer.replay.ok, layer.replay.compared, layer.replay.executed) == (True, True, 1)
    assert (layer.counts.calls, layer.figures.counts["OUT"].calls, layer.counts.bytes) == (4, 2, 68)
    assert layer.occupancy_bytes["ocm"] <= 64
    assert layer.schedule.tile(LAYER)["r"] == layer.decision["T_R"] == 2


@pytest.mark.parametrize(
    ("objective", "unit", "value"), [("bytes", "bytes", 68), ("energy", "fJ", 6864), ("bytes,time", "bytes", 68)]
)
def test_objectives(objective: str, unit: str, value: int) -> None:
    plan = solve(LAYER, MACHINE, objective=objective)
    assert (plan.unit, plan.objective.unit, plan.objective.value) == (unit, unit, value)
    assert sum(plan.objective.terms.values()) == value
    # the measures not named break ties: nothing of equal bytes is faster than 108 ticks
    assert plan.measures["time"] == 108


def test_compute_is_a_term_of_time() -> None:
    machine = MACHINE.model_copy(update={"compute": Compute(model="array", cycle_ticks=3, rows=2, cols=2)})
    plan = solve(LAYER, machine)
    # 2x2 channels a cycle: 16 pixels, 16 cycles of 3 ticks
    assert plan.objective.terms["compute"] == 48
    assert plan.objective.value == 108 + 48


def test_engines_agree(engine: str) -> None:
    plan = solve(LAYER, MACHINE, engine=engine)
    assert (plan.status, plan.objective.value, plan.bound, plan.engine) == ("OPTIMAL", 108, 108, engine)


def test_pins_hold_and_may_be_a_mapping() -> None:
    one, two = solve(LAYER, MACHINE, pins=["T_R=1"]), solve(LAYER, MACHINE, pins={"T_R": 1})
    assert one.layers[0].decision == two.layers[0].decision
    assert one.layers[0].decision["T_R"] == 1
    assert one.options.pins == ("T_R=1",)


def test_settings_change_the_machine_and_stay_in_the_plan(tmp_path: Path) -> None:
    plan = solve("lenet5", "scratchpad_64k", layers="c1", settings={"ocm_bytes": 8192})
    assert plan.machine_data.ocm_bytes == 8192
    assert plan.options.settings == ("ocm_bytes=8192",)
    assert check(plan).ok


def test_infeasible_is_an_answer_with_conflicts() -> None:
    plan = solve(LAYER, MACHINE, pins=["T_R=4", "T_C=4", "T_M=2", "T_N=2"])
    layer = plan.layers[0]
    assert (plan.status, plan.objective, plan.bound, plan.gap, layer.schedule) == ("INFEASIBLE", None, None, None, None)
    # 68 bytes do not fit in 64
    assert any("68" in c and "64" in c for c in layer.conflicts)
    assert layer.replay is None
    assert check(plan).ok


def test_all_that_is_asked_is_in_the_question() -> None:
    """What decides is there as it was said; names once, and numbers as numbers."""
    given: dict[str, Any] = {
        "objective": "bytes,time", "engine": "cp-sat", "pins": {"T_M": 2}, "settings": {"ocm_bytes": 4096},
        "layers": ["c3", "c1", "c3"], "time_limit_s": 7, "memory_limit": "1GiB", "jobs": 3, "all_kinds": True,
        "full": True, "bounding": False,
    }  # fmt: skip
    problem, question = ask("lenet5", "scratchpad_24k", **given)
    usual = ask("lenet5", "scratchpad_24k")[1]
    assert (problem.name, question.machine.ocm_bytes, question.network) == ("tiling", 4096, load_network("lenet5"))
    wanted = {
        "objectives": ("bytes", "time"), "engine": "cp-sat", "pins": ("T_M=2",), "settings": ("ocm_bytes=4096",),
        "layers": ("c3", "c1"), "time_limit_s": 7, "memory_bytes": 1 << 30, "jobs": 3, "all_kinds": True, "full": True,
        "bounding": False, "machine": question.machine,
    }  # fmt: skip
    assert replace(question, progress=usual.progress) == replace(usual, **wanted)
    asked = ask("lenet5", "galaxy_s9", profile=Profile(times={"c1": {"gpu": 2.0}}))[1]
    assert asked.profile == Profile(times={"c1": {"gpu": 2.0}})
    for name, value in {"full": True, "bounding": False, "all_kinds": True, "layers": "c1"}.items():
        with pytest.raises(InputError, match="not for problem mapping"):
            ask("lenet5", "galaxy_s9", **{name: value})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: pareto("lenet5", "nmp", axes="bytes,bytes"), "axes bytes,bytes: problem slicing has fronts of"),
        (lambda: pareto("lenet5", "nmp", engine="greedy"), "--engine: the front of problem slicing has one way"),
        (lambda: pareto(LAYER, "galaxy_s9", axes="period,energy"), "plans whole networks, this is one layer"),
    ],
)
def test_what_cannot_be_asked(asked: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked()


def test_literal_machines_are_replayed_but_not_compared() -> None:
    plan = solve("lenet5", "nmp", layers="c1", settings=["reading=literal"])
    replay = plan.layers[0].replay
    assert not replay.compared
    assert "replayed, not compared (literal reading)" in show(plan)
    assert check(plan).ok


# --- networks --------------------------------------------------------------------------------------------------------


def test_a_network_is_the_sum_of_its_layers() -> None:
    network = _network("a", "b", "c", sizes=(2, 4, 2))
    plan = solve(network, MACHINE)
    alone = [solve(layer, MACHINE) for layer in network.layers]
    assert plan.objective.value == sum(p.objective.value for p in alone if p.objective)
    assert plan.bound == plan.objective.value
    assert [p.layer for p in plan.layers] == ["a", "b", "c"]


def test_identical_layers_are_solved_once(fakes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    honest = fakes.ENGINES["honest"]

    def counting(part: NestPart, *rest: object, **named: object) -> object:
        seen.append(part.name)
        return honest(part, *rest, **named)

    monkeypatch.setitem(fakes.ENGINES, "honest", counting)
    plan = solve(_network("a", "b", "c", sizes=(2, 4, 2)), MACHINE, engine="honest")
    assert seen == ["a", "b"]
    a, _, c = plan.layers
    assert (c.same_as, c.wall_s, c.workload.name) == ("a", 0.0, "c")
    assert c.schedule == a.schedule
    assert (plan.stats["parts"], plan.stats["distinct"]) == (3, 2)
    assert "3 layers, 2 distinct" in show(plan)


@pytest.mark.slow(3)
def test_layers_of_other_kinds_on_request() -> None:
    network = load_network("lenet5")
    assert [p.layer for p in solve(network, "scratchpad_64k").layers] == [x.name for x in network.conv_layers]
    every = solve(network, "scratchpad_64k", all_kinds=True)
    assert [p.layer for p in every.layers] == [x.name for x in network.layers]
    assert [p.layer for p in solve(network, "scratchpad_64k", layers=["s2", "s2", "c1"]).layers] == ["s2", "c1"]


@pytest.mark.slow(5)
def test_processes_give_the_same_plan() -> None:
    one = solve("lenet5", "scratchpad_64k", jobs=1)
    two = solve("lenet5", "scratchpad_64k", jobs=2)
    assert _timeless(one) == _timeless(two)


def _timeless(plan: Plan) -> str:
    def strip(value: object) -> object:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if not k.endswith("_s")}
        return [strip(v) for v in value] if isinstance(value, list) else value

    return json.dumps(strip(json.loads(plan.to_json())))


# --- time limits (fake engines: no clock is asserted) ----------------------------------------------------------------


def test_time_is_shared_out_and_what_is_left_over_is_handed_on(fakes: ModuleType) -> None:
    network = _network("a", "b", "c", sizes=(2, 3, 4))
    plan = solve(network, MACHINE, engine="uses_its_time", time_limit_s=1.5)
    given = [p.stats["given_s"] for p in plan.layers]
    # a third of 1.5 s each, whoever comes first; building the space is deducted
    assert all(isinstance(g, float) and g <= 0.501 for g in given)
    assert plan.status == "FEASIBLE"
    assert plan.bound == 0
    assert plan.gap == 1.0


def test_unproven_layers_get_the_time_that_others_left(fakes: ModuleType) -> None:
    network = _network("a", "hard", "c", "d", "e", sizes=(2, 3, 4, 5, 6))
    # a fifth of 20 s is not enough for "hard" (5 s), what the others leave over is
    plan = solve(network, MACHINE, engine="slow_starter", time_limit_s=20.0)
    assert plan.status == "OPTIMAL"


@pytest.mark.slow(4)
def test_when_time_is_up_the_rest_has_quick_plans(fakes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([60.0])
    monkeypatch.setattr("solver.search.workers.share_of", lambda *_: next(shares, 0.0))
    plan = solve(_network("a", "b", "c", sizes=(2, 3, 4)), MACHINE, engine="honest", time_limit_s=5)
    assert [p.status for p in plan.layers] == ["OPTIMAL", "FEASIBLE", "FEASIBLE"]
    assert [p.stats.get("stopped") for p in plan.layers] == [None, "time limit", "time limit"]
    assert plan.status == "FEASIBLE"
    assert plan.bound is not None
    assert check(plan).ok


def test_the_better_bound_stands_with_a_quick_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(search: Search, measure: str) -> Iterator[None]:
        search.bounds[measure], search.stopped = 7, True
        search.settled.append(measure)
        yield from ()

    monkeypatch.setattr(Search, "minimise", nothing)
    plan = solve(LAYER, MACHINE, jobs=1)
    layer = plan.layers[0]
    assert (layer.status, layer.bound) == ("FEASIBLE", 68), "68 bytes move at least, at a tick each; the search says 7"
    assert layer.stats["left_open"]
    assert check(plan).ok


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["interrupted", "swallows"])
def test_ctrl_c_returns_what_is_there(fakes: ModuleType, name: str) -> None:
    plan = solve(_network("a", "hard", "c", sizes=(2, 3, 4)), MACHINE, engine=name)
    assert [p.status for p in plan.layers] == ["OPTIMAL", "FEASIBLE", "FEASIBLE"]
    assert plan.layers[2].stats["stopped"] == "SIGINT"
    assert check(plan).ok
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler is put back"


@pytest.mark.slow(4)
def test_ctrl_c_with_processes(fakes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal reaches the parent, which passes it on to the worker that sleeps in its engine."""
    sign = tmp_path / "sleeping"
    monkeypatch.setenv("FAKE_SIGN", str(sign))
    script = tmp_path / "script.py"  # without a __main__ guard: none is needed
    script.write_text(_SCRIPT.format(fakes=str(FAKES), out=str(tmp_path / "plan.json")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, str(script)], env=environment, stderr=subprocess.PIPE)
    _wait_for(lambda: sign.exists() and (tmp_path / "plan.json.2").exists(), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors == b""
    plan = Plan.load(tmp_path / "plan.json")
    found = {p.layer: p.status for p in plan.layers}
    assert found["hard"] == "FEASIBLE"
    assert found["a"] == found["c"] == "OPTIMAL", "both were done before Ctrl-C"


_SCRIPT = """
import sys
sys.path.insert(0, {fakes!r})
import fake_engines, os, time
from instances.network.network import Network
from instances.machine.machine import Machine, Transfer
from solver import solve
fake_engines.install(dict.__setitem__, setattr)
machine = Machine(name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
                  transfer=Transfer(call_ticks=10, byte_ticks=1))
convs = [dict(op="conv", name=n, inputs=("in",), shape=(1, m, 4, 4), filters=m, kernel=(1, 1))
         for n, m in (("a", 2), ("c", 3), ("hard", 4))]
inputs = [dict(op="input", name="in", shape=(1, 2, 4, 4))]
network = Network.model_validate(dict(name="chain", operators=[*inputs, *convs]))
class Listener:
    done = 0
    def begin(self, total, what): pass
    def end(self): pass
    def advance(self, note):
        self.done += 1
        open({out!r} + "." + str(self.done), "w").close()
solve(network, machine, engine="sleeps", jobs=2, progress=Listener()).save({out!r})
"""


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


# --- processes that fail ---------------------------------------------------------------------------------------------


@pytest.mark.slow(4)
def test_a_dead_process_costs_its_layer_only(fakes: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    plan = solve(_network("a", "hard", "c", "d", sizes=(2, 3, 4, 5)), MACHINE, engine="dies", jobs=2)
    assert [p.status for p in plan.layers] == ["OPTIMAL", "FEASIBLE", "OPTIMAL", "OPTIMAL"]
    assert plan.layers[1].stats["note"] == "worker process ended with code 9"
    assert "layer hard: worker process ended with code 9" in caplog.text


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_engine_that_ignores_its_limit_is_ended(fakes: ModuleType, jobs: int) -> None:
    patience_s = {1: 1, 2: 8}[jobs]  # a worker starts in less on a busy machine too
    plan = solve(_network("a", "hard", sizes=(2, 3)), MACHINE, engine="sleeps", jobs=jobs, time_limit_s=patience_s)
    assert [p.status for p in plan.layers] == ["OPTIMAL", "FEASIBLE"]
    assert plan.layers[1].stats["stopped"] == "time limit"


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_defect_is_not_hidden(fakes: ModuleType, jobs: int) -> None:
    with pytest.raises(ZeroDivisionError, match="a defect") as caught:
        solve(_network("a", "b", sizes=(2, 3)), MACHINE, engine="raises", jobs=jobs)
    if jobs > 1:
        assert "in a worker process" in caught.value.__notes__[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lies_about_value", "bytes .bytes.: engine says 67, priced 68"),
        ("lies_about_bound", "bounds: time 109 is above the value 108"),
        ("lies_about_proof", "status OPTIMAL with bound 0 and value 108"),
    ],
)
def test_a_wrong_plan_is_never_handed_out(fakes: ModuleType, name: str, said: str, jobs: int) -> None:
    # with processes either layer may be refused first
    network = _network("a", "b", sizes=(2, 3))
    with pytest.raises(PlanMismatch, match=f"engine {name}: .*{said}" if jobs == 1 else f"engine {name}: "):
        solve(network, MACHINE, engine=name, jobs=jobs)


def test_price_and_replay_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    part = importlib.import_module("formulations.tiling.part")
    real = part.replay

    def wrong(*args: object) -> object:
        walked = real(*args)
        return replace(walked, outcome=replace(walked.outcome, time_ticks=1))

    monkeypatch.setattr(part, "replay", wrong)
    with pytest.raises(PlanMismatch, match=r"time .ticks.: priced 108, replayed 1"):
        solve(LAYER, MACHINE)


# --- import and progress ---------------------------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_the_function_wins_over_the_module_of_its_name() -> None:
    code = "import solver.calls.check; from solver import solve, check; assert callable(solve), callable(check)"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_importing_loads_no_solver_and_adds_no_log_handler() -> None:
    code = (
        "import logging, sys, solver; "
        "slow = {'ortools', 'highspy', 'pulp', 'onnx', 'rich', 'typer', 'networkx'} & set(sys.modules); "
        "assert not slow, slow; assert not logging.getLogger().handlers and not logging.getLogger('solver').handlers"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


class _Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def begin(self, total: int, what: str) -> None:
        self.heard.append(f"{what} {total}")

    def advance(self, note: str) -> None:
        self.heard.append(note)

    def end(self) -> None:
        self.heard.append("end")


def test_progress_counts_distinct_layers() -> None:
    listener = _Listener()
    solve(_network("a", "b", "c", sizes=(2, 4, 2)), MACHINE, progress=listener)
    assert listener.heard == ["chain 2", "a: OPTIMAL", "b: OPTIMAL", "end"]


def test_a_fault_of_the_problem_is_bad_input() -> None:
    with pytest.raises(InputError, match="slicing"):
        solve(LAYER, MACHINE, problem="slicing")
