"""Bad options and plan files, written by hand: each gives one clear line on stderr, exit code 2, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver import solve
from solver.cli.main import main

SOLVE = ["solve", "lenet5", "-m", "scratchpad_64k", "-j", "1"]
C1 = [*SOLVE, "--layer", "c1"]

#: The command, and what the line must say.
OPTIONS: list[tuple[list[str], str]] = [
    # networks and layers
    (["solve", "lenet", "-m", "nmp"], "unknown network 'lenet': did you mean lenet5"),
    (["solve", "absent.json", "-m", "nmp"], "network absent.json: no such file"),
    (["solve", "absent.onnx", "-m", "nmp"], "no such file"),
    (["solve", "", "-m", "nmp"], "network: an empty name"),
    (["solve", ".", "-m", "nmp"], "is a directory"),
    ([*SOLVE, "--layer", "conv1"], "network lenet5 has no layer 'conv1'; did you mean"),
    ([*SOLVE, "--layer", "c1.tanh"], "operator 'c1.tanh' (eltwise) is not a layer"),
    ([*SOLVE, "--layer", ""], "has no layer ''"),
    ([*SOLVE, "--batch", "0"], "batch 0: a positive number is needed"),
    ([*SOLVE, "--batch", "two"], "'--batch'"),
    ([*SOLVE, "--symbol", "n=1"], "only ONNX files have symbolic dimensions"),
    ([*SOLVE, "--symbol", "n=0"], "symbol 'n=0': write NAME=SIZE"),
    ([*SOLVE, "--symbol", "n=1", "--symbol", "n=2"], "n is set twice"),
    # machines and settings
    (["solve", "lenet5", "-m", "scratchpad64k"], "unknown machine 'scratchpad64k': did you mean scratchpad_64k"),
    (["solve", "lenet5", "-m", "absent.json"], "machine absent.json: no such file"),
    (["solve", "lenet5"], "machine: a bundled name or a .json file is needed (--machine)"),
    ([*C1, "--set", "ocm_bytes"], "override 'ocm_bytes': write FIELD=VALUE"),
    ([*C1, "--set", "ocm_byte=1"], "unknown machine field 'ocm_byte': did you mean ocm_bytes"),
    ([*C1, "--set", "ocm_bytes=-1"], "ocm_bytes: Input should be greater than 0 (got -1)"),
    ([*C1, "--set", "ocm_bytes=1.5"], "ocm_bytes"),
    ([*C1, "--set", "ocm_bytes=nan"], "ocm_bytes"),
    ([*C1, "--set", "ocm_bytes=1", "--set", "ocm_bytes=2"], "is set twice"),
    ([*C1, "--set", "ocm_bytes=" + "9" * 30], "beyond 2**53"),
    ([*C1, "--set", "reserved_bytes=65536"], "leaves nothing of memory ocm"),
    ([*C1, "--set", "in_layout=WHC"], "in_layout"),
    # problem, engine, objective
    ([*C1, "--problem", "tilling"], "unknown problem 'tilling': did you mean tiling"),
    ([*C1, "--problem", "slicing"], "slicing"),
    (["solve", "lenet5", "-m", "nmp", "--problem", "tiling"], "tiling plans one core, machine nmp has 32"),
    ([*C1, "--engine", "cpsat"], "unknown engine for problem tiling 'cpsat': did you mean cp-sat"),
    ([*C1, "--engine", ""], "unknown engine for problem tiling ''"),
    ([*C1, "--engine", "tso-noburst"], "unknown engine for problem tiling 'tso-noburst'"),
    ([*C1, "--compare", "gredy"], "unknown engine for problem tiling 'gredy': did you mean greedy"),
    ([*C1, "--compare", "tso-noburst"], "unknown engine for problem tiling 'tso-noburst'"),
    ([*C1, "--objective", "latency"], "unknown objective 'latency': expected bytes, energy or time"),
    ([*C1, "--objective", "time,time"], "objective time,time: each of"),
    ([*C1, "--objective", "time,"], "unknown objective ''"),
    ([*C1, "--objective", ""], "objective is empty"),
    # pins
    ([*C1, "--pin", "T_M"], "pin 'T_M': expected NAME=VALUE"),
    ([*C1, "--pin", "T_MM=3"], "unknown decision 'T_MM' (did you mean T_M?)"),
    (
        [*C1, "--pin", "cuts_R=3"],
        "unknown decision 'cuts_R' (where loops cut cannot be pinned; pieces=even wants equal steps)",
    ),
    ([*C1, "--pin", "T_M=0"], "T_M takes a positive integer"),
    ([*C1, "--pin", "T_M=-4"], "T_M takes a positive integer"),
    ([*C1, "--pin", "T_M=1.5"], "T_M takes a positive integer"),
    ([*C1, "--pin", "T_M=99999999999"], "T_M takes a positive integer"),
    ([*C1, "--pin", "T_M=x"], "T_M takes a positive integer"),
    ([*C1, "--pin", "dataflow=OS"], "unknown decision 'dataflow'"),
    ([*C1, "--pin", "order=zz"], "order"),
    ([*C1, "--pin", "sizes<=3"], "only = and != apply"),
    # time, jobs, output
    ([*C1, "--time-limit", "-1"], "time limit -1.0: a positive number of seconds"),
    ([*C1, "--time-limit", "0"], "time limit 0.0: a positive number of seconds"),
    ([*C1, "--time-limit", "nan"], "time limit nan: a positive number of seconds"),
    ([*C1, "--time-limit", "inf"], "time limit inf: a positive number of seconds"),
    ([*C1, "--time-limit", "soon"], "'--time-limit'"),
    ([*C1, "--jobs", "-1"], "jobs -1: 0 (all processors) to 1024"),
    ([*C1, "--jobs", "1000000"], "jobs 1000000: 0 (all processors) to 1024"),
    ([*C1, "--jobs", "two"], "'--jobs'"),
    ([*C1, "-o", "/"], "is a directory"),
    ([*C1, "-o", "/no/such/folder/plan.json"], "output /no/such/folder/plan.json: cannot be written: No such file"),
    ([*C1, "-o", ""], "is a directory"),
    ([*C1, "-o", "a\0b"], "cannot be written"),
    ([*C1, "-o", "a" * 300], "cannot be written: File name too long"),
    # commands
    (["sovle", "lenet5"], "No such command 'sovle'"),
    ([*C1, "--objectve", "time"], "No such option"),
    ([*C1, "more"], "more"),
    (["check"], "Missing argument"),
    (["check", "absent.json"], "plan absent.json: no such file"),
    (["check", "."], "is a directory"),
    (["list", "network"], "unknown kind 'network': did you mean networks"),
    (["explain", "lenet5", "-m", "nmp", "--layer", "c9"], "has no layer 'c9'"),
    (["explain", "lenet5", "-m", "nmp", "--pin", "T_Q=1"], "unknown decision 'T_Q'"),
    (["import", "absent.onnx", "-o", "net.json"], "no such file"),
    (["import", "absent.onnx", "-o", "net.txt"], "a network file ends in .json"),
]


def _one_line(err: str) -> str:
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("certile: error: ")
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize(("args", "said"), OPTIONS, ids=[" ".join(args)[-50:] for args, _ in OPTIONS])
def test_bad_options(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert said in _one_line(err)
    assert out == ""
    assert list(tmp_path.iterdir()) == [], "nothing is written"


# --- plan files ------------------------------------------------------------------------------------------------------

Json = Any  # a parsed plan, edited freely


@pytest.fixture(scope="module")
def good() -> str:
    layer = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))
    machine = Machine(
        name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
        transfer=Transfer(call_ticks=10, byte_ticks=1),
    )  # fmt: skip
    return solve(layer, machine).to_json()


#: What is done to the text of a plan, and what the line must say.
TEXTS: list[tuple[Callable[[str], str], str]] = [
    (lambda text: "", "is empty"),
    (lambda text: text[: len(text) // 2], "not valid JSON at line"),
    (lambda text: "[]", "a JSON object is needed, found an array"),
    (lambda text: "null", "a JSON object is needed, found null"),
    (lambda text: "{}", "field format is missing"),
    (lambda text: text.replace("certile-plan/3", "certile-plan/2"), "field format is 'certile-plan/2'"),
    (lambda text: text.replace('"gap": 0.0', '"gap": NaN'), "NaN is not a number that JSON allows"),
    (lambda text: text.replace('"gap": 0.0', '"gap": 1e999'), "is too large"),
    (lambda text: text.replace('"status"', '"format": "certile-plan/3", "status"', 1), "key 'format' appears twice"),
    (lambda text: text.replace('"bound": 108', '"bound": ' + "1" * 40, 1), "beyond 2**53"),
    (lambda text: "[" * 100_000, "nested too deeply"),
    (lambda text: text + "{}", "not valid JSON"),
]


def _set(*path: str | int, value: object) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


def _without(*path: str | int) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for part in path[:-1]:
            data = data[part]
        del data[path[-1]]

    return change


P0, L0 = ("parts", 0), ("network_data", 0)
#: What is done to the parsed plan, and what the line must say.
FIELDS: list[tuple[Callable[[Json], None], str]] = [
    (_without("objective"), "field objective is missing"),
    (_without(*P0, "schedule"), "field parts[0].schedule is missing"),
    (_set("colour", value="red"), "unknown field colour"),
    (_set(*P0, "statuss", value="OPTIMAL"), "unknown field parts[0].statuss: did you mean status?"),
    (_set("status", value="GREAT"), "status: Input should be 'OPTIMAL', 'FEASIBLE', 'INFEASIBLE'"),
    (_set("objective", "value", value="118"), "objective.value: Input should be a valid integer (got '118')"),
    (_set("objective", "value", value=True), "objective.value: Input should be a valid integer (got True)"),
    (_set("objective", "value", value=1.5), "objective.value"),
    (_set("objective", "value", value=-1), "objective.value: Input should be greater than or equal to 0 (got -1)"),
    (_set("objectives", value=[]), "objectives"),
    (_set("parts", value={}), "parts: Input should be a valid array"),
    (_set("network_data", value={}), "network_data: "),
    (_set("gap", value=2.0), "gap: Input should be less than or equal to 1 (got 2.0)"),
    (_set("wall_s", value=-1.0), "wall_s"),
    (_set("options", "time_limit_s", value=0), "options.time_limit_s"),
    (_set("machine_data", "ocm_bytes", value=None), "machine_data: give ocm_bytes, or all of"),
    (_set("machine_data", "tick_ps", value=0), "machine_data.tick_ps"),
    (_set("machine_data", "speed", value=1), "unknown field machine_data.speed"),
    (_set(*L0, "m", value=0), "network_data[0].m: Input should be greater than 0 (got 0)"),
    (_set(*L0, "r", value=9), "network_data[0]: 9 output rows with stride 1 start beyond"),
    (_set(*L0, "speed", value=1), "unknown field network_data[0].speed: known fields"),
    (_set(*P0, "schedule", "nest", value="r"), "parts[0].schedule: nest: expected a list of items, got str"),
    (_set(*P0, "schedule", "nest", 0, value={"loop": "r"}), "schedule: nest[0]: keys ['loop'] are none of"),
    (_set(*P0, "schedule", "nest", 0, value={"loop": "k", "step": 1}), "nest[0]: unknown dimension 'k', expected"),
    (_set(*P0, "schedule", "nest", 0, value={}), "nest[0]: keys [] are none of hold, buffers, line | loop, step, cuts"),
    (_set(*P0, "schedule", "nest", 0, value=7), "nest[0]: expected an object, got int"),
    (_set(*P0, "schedule", "T_R", value=1), "parts[0].schedule: a schedule is an object with nest, and homes"),
    (_set(*P0, "figures", "decision", "T_R", value=[1]), "parts[0].figures.decision.T_R"),
    (_set(*P0, "figures", "counts", "IN", "X", value={}), "unknown field parts[0].figures.counts.IN.X"),
    (_without(*P0, "figures", "buffers"), "field parts[0].figures.buffers is missing"),
    (_without(*P0, "figures", "counts"), "field parts[0].figures.counts is missing"),
]
#: What has the form of a plan, but says what cannot be.
LIES: list[tuple[Callable[[Json], None], str]] = [
    (_set("objectives", value=["speed"]), "objectives: speed: problem tiling minimises time and bytes and energy"),
    (_set("parts", value=[]), "parts: the plan has 0, there are 1 layers"),
    (_set("network_data", value=[]), "parts: the plan has 1, there are 0 layers"),
    (_set(*P0, "figures", "counts", "X", value={}), "layer tiny: figures.counts: the plan says"),
    (_without(*P0, "figures", "counts", "IN"), "layer tiny: figures.counts: the plan says"),
    (_without(*P0, "figures", "counts", "IN", "calls"), "tiny: figures.counts.IN.calls: the plan says 0, it is 1"),
]


def _check(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "plan.json"
    path.write_text(text)
    assert main(["check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return _one_line(err)


@pytest.mark.parametrize(("change", "said"), TEXTS, ids=[said for _, said in TEXTS])
def test_bad_plan_texts(
    change: Callable[[str], str], said: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert change(good) != good
    assert said in _check(change(good), tmp_path, capsys)


@pytest.mark.parametrize(("change", "said"), FIELDS, ids=[f"{i}-{said}" for i, (_, said) in enumerate(FIELDS)])
def test_bad_plan_fields(
    change: Callable[[Json], None], said: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(good)
    change(data)
    assert said in _check(json.dumps(data), tmp_path, capsys)


@pytest.mark.parametrize(("change", "said"), LIES, ids=[f"{i}-{said}" for i, (_, said) in enumerate(LIES)])
def test_plans_that_say_what_cannot_be(
    change: Callable[[Json], None], said: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(good)
    change(data)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert said in out
    assert err == ""


def test_a_plan_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["check", str(path)]) == 2
    assert "not UTF-8 text" in _one_line(capsys.readouterr().err)


def test_names_cannot_smuggle_lines_or_colours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "a\nb\x1b[31m", "-m", "nmp"]) == 2
    line = _one_line(capsys.readouterr().err)
    assert "\x1b" not in line


# --- the same from Python --------------------------------------------------------------------------------------------

TOY = Machine(
    name="toy", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
    transfer=Transfer(byte_ticks=1),
)  # fmt: skip
TINY = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"target": 7}, "target: expected a Layer, a Network, or a name or path, got int"),
        ({"machine": None}, "machine: a bundled name or a .json file is needed"),
        ({"machine": 7}, "machine: expected a Machine, or a name or path, got int"),
        ({"settings": ["ocm_bytes=1"]}, "settings apply to a machine given by name or path"),
        ({"jobs": True}, "jobs True"),
        ({"jobs": 1.5}, "jobs 1.5"),
        ({"time_limit_s": "10"}, "time limit '10'"),
        ({"time_limit_s": True}, "time limit True"),
        ({"objective": ["time", 3]}, "objective: expected texts, got 3"),
        ({"objective": []}, "objective is empty"),
        ({"pins": [3]}, "pins: expected texts, got 3"),
        ({"pins": {"T_M": 0}}, "T_M takes a positive integer"),
        ({"layers": ["other"]}, "the target is the one layer tiny"),
        ({"target": "lenet5", "layers": []}, "network lenet5: no layers were named to plan"),
        ({"engine": "auto "}, "unknown engine for problem tiling 'auto '"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(**{"target": TINY, "machine": TOY, **arguments})
    assert said in str(caught.value)
