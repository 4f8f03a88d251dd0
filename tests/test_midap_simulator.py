"""Plans of `midap` in the public simulator of the published chip (cap-lab/MidapSim), where it is on this machine.

CERTILE_MIDAPSIM names the folder of its clone, CERTILE_MIDAPSIM_PYTHON a Python that has what it needs (torch, numpy,
future, pillow, scikit-image; by default the one that runs the tests). Without it the figures that were measured there
are what is tested (`tests.formulations.test_bank_published`, `tests.formulations.test_banks`). Every cycle is
simulated, data included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from solver import solve
from solver.plan.plan import Plan
from solver.problems.banks import FUSED, stage_rows
from tests.midapsim.networks import Case, forked, plain

FOLDER = os.environ.get("CERTILE_MIDAPSIM", "")
PYTHON = os.environ.get("CERTILE_MIDAPSIM_PYTHON", sys.executable)
DRIVER = Path(__file__).parent / "midapsim" / "driver.py"

if not FOLDER:
    pytest.skip("CERTILE_MIDAPSIM does not say where the public simulator is", allow_module_level=True)

#: By how much cycles may differ: what the clock leaves out is listed in docs/banks.md.
CYCLES = 0.002
#: Seconds to prove a plan; some networks of nested forks have more states.
LIMIT_S = 60
#: And an optimum from a run of its own: single cycles of some stages.
BELOW = 0.0002
#: Share of a layer's data that may be off by rounding; wrong columns are more.
ROUNDED = 0.005
#: Answers of the simulator to networks whose weights do not fit in its banks.
NO_ROOM = "Wrong Address"

FEW = [("plain", 4), ("plain", 12), ("plain", 33), ("forked", 2), ("forked", 34)]
MANY = [("plain", seed) for seed in range(100)] + [("forked", seed) for seed in range(40)]
SEEDS = [*FEW, *(pytest.param(*one, marks=pytest.mark.slow(every=True)) for one in MANY if one not in FEW)]
random_networks = pytest.mark.parametrize(("kind", "seed"), SEEDS)
Answers = dict[str, dict[str, Any]]


@cache
def ran(kind: str, seed: int) -> tuple[dict[str, Plan], Answers]:
    """Our plans of a random network, and what the simulator says of them and of its own policies."""
    case: Case = {"plain": plain, "forked": forked}[kind](seed)
    with tempfile.TemporaryDirectory() as folder:
        file, question, answer = (Path(folder) / name for name in ("network.json", "question.json", "answer.json"))
        file.write_text(json.dumps({"format": "certile-network/1", **case.network}), encoding="utf-8")
        plans = {
            name: solve(file, "midap", settings=case.settings, objective=name, time_limit_s=LIMIT_S, problem="banks")
            for name in ("time", "bytes")
        }
        plans["min"] = solve(file, "midap", settings=case.settings, engine="min", objective="bytes", problem="banks")
        runs: list[dict[str, object]] = [{"plan": told(plan)} for plan in plans.values()]
        machine = {"banks": case.banks, "bank_kib": case.bank_kib, "weight_kib": case.weight_kib}
        asked = {"network": case.network, **machine, "level": 0, "runs": [*runs, {"own": "MIN"}, {"own": "HIDE"}]}
        question.write_text(json.dumps(asked), encoding="utf-8")
        python = str(Path(PYTHON).absolute()) if os.sep in PYTHON else PYTHON  # not resolved: an environment's
        command = [python, DRIVER.resolve(), question, answer]
        known = {**os.environ, "CERTILE_MIDAPSIM": str(Path(FOLDER).resolve())}  # it writes a log where it runs
        done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        answers = json.loads(answer.read_text(encoding="utf-8"))
    return plans, dict(zip((*plans, "MIN", "HIDE"), answers, strict=True))


def run(answers: Answers, name: str) -> dict[str, Any]:
    """One answer, if there is one; what has no place in the simulator's banks of weights is skipped."""
    refused = str(answers[name].get("refused", ""))
    if NO_ROOM in refused:
        pytest.skip("weights do not fit in the banks of the simulator")
    if "is read from both ends" in refused:
        pytest.skip(refused)
    assert not refused
    return answers[name]


def told(plan: Plan) -> dict[str, Any]:
    """What the simulator's side reads of a plan: layers with their program, and the network."""
    layers = []
    for row in stage_rows(plan):
        run, fused = row.run, row.kind == FUSED
        tiles = [vars(tile) for tile in run.tiles]
        actions = [{"do": do, "tiles": number} for do, number in run.actions]
        others = [name for name in (row.stage.source, *row.stage.streamed) if name != run.source]
        layers.append({
            "layer": row.name, "kind": row.kind, "target": row.stage.target, "backwards": run.backwards,
            "results": [vars(tile) for tile in run.results], "source": row.stage.name if fused else run.source,
            **({"tiles": [], "actions": [], "streamed": [], "initial": 0, "retain": 0} if fused else {
                "tiles": tiles, "actions": actions, "streamed": others, "initial": row.initial, "retain": run.retain,
            }),
        })  # fmt: skip
    return {"layers": layers, "network_data": plan.network_data.model_dump(mode="json")}


def measures(plan: Plan) -> dict[str, int]:
    """What a plan says; all of these have one."""
    assert plan.measures is not None
    return plan.measures


def cycles(plan: Plan) -> float:
    """Cycles of a nanosecond, as the simulator counts."""
    return measures(plan)["time"] * plan.machine_data.tick_ps / 1000


@random_networks
@pytest.mark.parametrize("name", ["time", "bytes", "min"])
def test_a_plan_computes_the_network_and_moves_what_it_says(kind: str, seed: int, name: str) -> None:
    plans, answers = ran(kind, seed)
    found = run(answers, name)
    assert found["checked"] > 0
    assert found["wrong"] <= ROUNDED
    assert found["bytes"] == measures(plans[name])["bytes"]


@random_networks
@pytest.mark.parametrize("name", ["time", "bytes", "min"])
def test_a_plan_takes_the_cycles_that_it_says(kind: str, seed: int, name: str) -> None:
    plans, answers = ran(kind, seed)
    found = run(answers, name)["cycles"]
    assert abs(found - cycles(plans[name])) <= CYCLES * found


@random_networks
def test_its_own_policy_moves_what_ours_of_that_name_does(kind: str, seed: int) -> None:
    plans, answers = ran(kind, seed)
    if "refused" in answers["MIN"]:
        pytest.skip(f"no run of its own: {answers['MIN']['refused']}")
    assert answers["MIN"]["bytes"] == measures(plans["min"])["bytes"]


@random_networks
@pytest.mark.parametrize("policy", ["MIN", "HIDE"])
def test_its_own_policies_are_never_below_an_optimum(kind: str, seed: int, policy: str) -> None:
    """Least bytes to the byte; least time as far as the clocks agree. Its wrong data are no plan."""
    plans, answers = ran(kind, seed)
    if "refused" in answers[policy]:
        pytest.skip(f"no run of its own: {answers[policy]['refused']}")
    own = answers[policy]
    if own["wrong"] > ROUNDED:
        pytest.skip("its own program computes something else")
    assert plans["bytes"].status != "OPTIMAL" or own["bytes"] >= measures(plans["bytes"])["bytes"]
    assert plans["time"].status != "OPTIMAL" or own["cycles"] >= (1 - BELOW) * cycles(plans["time"])
