"""What plans of whole networks have in common: proofs of several objectives, and Ctrl-C that keeps what was found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from formulations.banks.problem import BankReading
from formulations.clock import TimeUp
from formulations.fusion.part import Cuts
from formulations.mapping.board import BoardPiece
from formulations.mapping.space import Schedule
from formulations.mesh.problem import Way
from formulations.partial_engine.problem import AllChoices
from formulations.problem import Goal, Steps
from instances.errors import InputError
from solver import check, solve

ROOT = Path(__file__).parent.parent
TWO = "lenet5@5ms,lenet5@8ms"


# --- OPTIMAL is about every objective that is asked for --------------------------------------------------------------


@pytest.mark.slow(3)
def test_joint_plans_prove_bytes_and_not_time() -> None:
    with pytest.raises(InputError, match="problem joint decides bytes"):
        solve("lenet5", "scratchpad_768k", objective="bytes,time", problem="joint")
    both = solve("lenet5", "scratchpad_768k", objective="bytes,energy", problem="joint")
    assert (both.status, both.stats["proven"]) == ("OPTIMAL", "bytes,energy")
    assert solve("lenet5", "scratchpad_768k", problem="joint").status == "OPTIMAL"


def test_banks_say_if_the_tie_was_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert solve("lenet5", "midap", objective="bytes,time", engine="milp", problem="banks").status == "OPTIMAL"
    assert solve("lenet5", "midap", objective="time,bytes", problem="banks").stats["proven"] == "time,bytes"

    def late(reading: BankReading, goal: Goal, engine: str) -> None:
        raise TimeUp

    monkeypatch.setattr(BankReading, "exact", late)
    plan = solve("lenet5", "midap", objective="bytes,time", engine="milp", problem="banks")
    assert (plan.status, plan.stats["proven"], plan.bound) == ("FEASIBLE", "bytes", plan.objective.value)
    assert check(plan).ok
    assert solve("lenet5", "midap", objective="bytes", engine="milp", problem="banks").status == "OPTIMAL"


def _second_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer about a board and all after it are not proven."""
    real, calls = BoardPiece.steps, [0]

    def tired(piece: BoardPiece, goal: Goal, engine: str) -> Steps[Schedule]:
        calls[0] += 1
        schedule, bound = yield from real(piece, goal, engine)
        return schedule, (bound if calls[0] == 1 else 0)

    monkeypatch.setattr(BoardPiece, "steps", tired)


def test_mappings_name_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan() -> tuple[str, object]:
        found = solve("lenet5", "galaxy_s9", pins=["cpu_config=4"], objective="energy,period", problem="mapping")
        assert check(found).ok
        return found.status, found.stats["proven"]

    assert plan() == ("OPTIMAL", "energy,period")
    _second_unproven(monkeypatch)
    assert plan() == ("FEASIBLE", "energy")


@pytest.mark.slow(2)
def test_applications_name_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan() -> tuple[str, object]:
        found = solve(TWO, "hikey970", pins=["cpu_config=1,1,1,1"], objective="response,energy", problem="applications")
        assert check(found).ok
        return found.status, found.stats["proven"]

    assert plan() == ("OPTIMAL", "response,energy")
    _second_unproven(monkeypatch)
    assert plan() == ("FEASIBLE", "response")


@pytest.mark.slow(7)
def test_meshes_name_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan() -> tuple[str, object]:
        found = solve("lenet5", "vectormesh_128", layers=["c3"], objective="dram,time", problem="mesh")
        assert check(found).ok
        return found.status, found.stats["proven"]

    assert plan() == ("OPTIMAL", "dram,time")
    real = Way.exact

    def tired(way: Way, goal: Goal, engine: str) -> object:
        return (None, 0) if goal.measure == "time" else real(way, goal, engine)

    monkeypatch.setattr(Way, "exact", tired)
    assert plan() == ("FEASIBLE", "dram")


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def _pressed(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Ctrl-C arrives during the search of a board after so many."""
    real, calls = BoardPiece.steps, [0]

    def broken_off(piece: BoardPiece, goal: Goal, engine: str) -> Steps[Schedule]:
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return (yield from real(piece, goal, engine))

    monkeypatch.setattr(BoardPiece, "steps", broken_off)


@pytest.mark.parametrize("after", [0, 1])
def test_a_mapping_is_kept(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The first configuration is done (its plan is kept), or none is (the list schedule stands in)."""
    _pressed(monkeypatch, after)
    plan = solve("lenet5", "galaxy_s9", problem="mapping")
    assert (plan.status, plan.part.stats["interrupted"]) == ("FEASIBLE", True)
    assert plan.bound
    assert check(plan).ok


def test_applications_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    _pressed(monkeypatch, 1)
    plan = solve(TWO, "hikey970", objective="response,energy", problem="applications")
    assert (plan.status, plan.part.stats["interrupted"]) == ("FEASIBLE", True)
    assert plan.bound
    assert check(plan).ok


@pytest.mark.slow(6)
def test_layers_of_a_mesh_are_kept_and_the_others_done_in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = solve("lenet5", "vectormesh_128", problem="mesh")
    real, seen = Way.exact, set[str]()

    def broken_off(way: Way, goal: Goal, engine: str) -> object:
        seen.add(way.part.name)
        if len(seen) > 2:
            raise KeyboardInterrupt
        return real(way, goal, engine)

    monkeypatch.setattr(Way, "exact", broken_off)
    plan = solve("lenet5", "vectormesh_128", problem="mesh")
    assert [(part.status, part.schedule) for part in plan.layers[:2]] == [
        (part.status, part.schedule) for part in whole.layers[:2]
    ]
    assert [part.name for part in plan.layers] == [part.name for part in whole.layers]
    assert plan.status == "FEASIBLE"
    assert check(plan).ok


def test_layers_of_an_engine_are_kept_and_the_others_done_in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = AllChoices.exact, set[str]()

    def broken_off(piece: AllChoices, goal: Goal, engine: str) -> object:
        if piece.part.name not in seen:
            seen.add(piece.part.name)
            if len(seen) > 1:
                raise KeyboardInterrupt
        return real(piece, goal, engine)

    monkeypatch.setattr(AllChoices, "exact", broken_off)
    plan = solve("lenet5", "partial_cnn_16", layers=["c1", "c3"], problem="partial_engine")
    assert [row.status for row in plan.layers] == ["OPTIMAL", "OPTIMAL"], "the plan in haste meets its bound"
    assert check(plan).ok


@pytest.mark.slow(6)
def test_a_joint_plan_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    best = solve("lenet5", "scratchpad_768k", problem="joint")
    with monkeypatch.context() as during:
        during.setattr(Cuts, "_least", pressed)
        plan = solve("lenet5", "scratchpad_768k", problem="joint")
    assert plan.part.stats["interrupted"] is True
    assert 0 < plan.bound <= best.objective.value <= plan.objective.value
    assert (plan.status == "OPTIMAL") == (plan.bound == plan.objective.value), "nests found in haste move what must"
    assert check(plan).ok


_SCRIPT = """
import os, signal
from solver import solve
from solver import solve
from solver import solve
asked = [
    lambda: solve("lenet5@5ms,lenet5@8ms", "hikey970", pins=["cpu_config=1,1,1,1"], engine="cp-sat"),
    lambda: solve("lenet5", "galaxy_s9", pins=["cpu_config=4"], engine="cp-sat", problem="mapping"),
    lambda: solve("lenet5", "partial_cnn_16", layers=["c3"], engine="cp-sat", problem="partial_engine"),
    lambda: solve("lenet5", "vectormesh_128", layers=["c3"], engine="cp-sat", problem="mesh"),
    lambda: solve("lenet5", "scratchpad_768k", engine="cp-sat", problem="joint"),
    lambda: solve("lenet5", "midap", objective="bytes", engine="cp-sat", problem="banks"),
]
for ask in asked:
    ask()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
    except KeyboardInterrupt:
        print("heard")
"""


@pytest.mark.slow(6)
def test_after_cp_sat_ctrl_c_is_still_heard() -> None:
    """CP-SAT by its own handler leaves the default action behind: the next Ctrl-C kills without a word."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["heard"] * 6, "")
