"""Plans of problem selection: by Python and the command line, checked, shown, as fronts, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
from instances.network.variants import load_variants
from solver import check, explain, pareto, solve
from solver.cli.main import main
from tests.lies import changed

TINY = "tiny_yolo_tx2"


@pytest.mark.slow(1)
def test_a_profile_brings_its_machine() -> None:
    plan = solve(TINY, pins=["frequency=default"])
    assert (plan.problem, plan.machine, plan.status, plan.unit) == ("selection", "jetson_tx2", "OPTIMAL", "ticks")
    assert plan.objective.value == 23_000 == sum(plan.objective.terms.values())
    assert {thread.stages: thread.load for thread in plan.part.figures.threads} == {
        ("front",): 9000, ("inference",): 23_000, ("back",): 10_030,
    }  # fmt: skip
    assert check(plan).ok
    assert solve(load_variants(TINY), "jetson_tx2", pins=["frequency=default"]).objective == plan.objective


@pytest.mark.slow(1)
def test_times_between_layers_sum_to_the_loads() -> None:
    plan = solve(TINY, objective="score")
    assert sum(row.time + row.between for row in plan.part.figures.layers) == sum(
        thread.load for thread in plan.part.figures.threads
    )


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("measures.error", 1), ("parts.0.measures.error", 1), ("parts.0.figures.threads.0.load", 1),
        ("parts.0.figures.layers.1.time", 1), ("parts.0.figures.layers.1.between", 1), ("parts.0.schedule.cuts", []),
        ("parts.0.schedule.frequency", "1114/1122"), ("parts.0.schedule.choices.7.variant", "base"), ("bound", 24_000),
        ("parts.0.figures.layers.7.bytes", 3), ("parts.0.schedule.size", "9"), ("objective.value", 22_000),
        ("parts.0.schedule.choices.7.stage", "back"), ("parts.0.figures.layers.7.type", "f32"),
        ("parts.0.schedule.configuration", "2,2"), ("parts.0.schedule.choices.7.layer", "conv7"),
    ],
)  # fmt: skip
def test_check_finds_what_was_changed(path: str, value: object, tmp_path: Path) -> None:
    plan = solve(TINY, pins=["frequency=default"])
    lie = changed(plan, (path, value))
    assert lie != plan
    lie.save(tmp_path / "plan.json")
    assert main(["check", str(tmp_path / "plan.json")]) == 1


@pytest.mark.slow(2)
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "plan.json")
    pins = ["--pin", "seconds<=600", "--pin", "frequency!=default"]
    assert main(["solve", TINY, "--objective", "energy", *pins, "-o", file]) == 0
    out = capsys.readouterr().out
    for said in ("OPTIMAL", "frequency 1114/1122", "20,000 images in 580.0 s", "1.80686 Wh", "cut at inference, back"):
        assert said in " ".join(out.split())
    assert main(["check", file, "--prove"]) == 0
    capsys.readouterr()
    assert main(["show", file, "--all"]) == 0
    out = capsys.readouterr().out
    assert "the paper's order, energy (fJ):" in out
    assert "selected tucker" in out
    assert main(["show", file, "--layer", "conv8"]) == 0
    assert "* Tucker 512x512 in 16 bits on inference" in capsys.readouterr().out
    assert main(["solve", TINY, "--compare", "steps,all,none"]) == 0
    assert "none" in capsys.readouterr().out


@pytest.mark.slow(11)
def test_a_front_is_exact() -> None:
    """Period against error: every number of layers with Tucker or 16 bits that pays."""
    front = pareto(TINY, axes="period,error", pins=["frequency=default", "cut=all"])
    values = [point.values for point in front.parts[0].points]
    assert front.proven
    assert [value["period"] for value in values] == sorted(value["period"] for value in values)
    assert values[0]["period"] == 23_000
    assert values[-1]["error"] == 680_000  # nothing lost
    assert len(values) > 5


def test_conflicts_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    pins = ["--pin", "seconds<=450", "--pin", "accuracy>=0.2", "--pin", "conv8!=tucker"]
    assert main(["solve", TINY, *pins]) == 3
    out = capsys.readouterr().out
    assert "pin seconds<=450 (period is at least" in out
    assert "accuracy" not in out
    (said,) = explain(TINY, pins=["seconds<=470", "technique!=tucker", "technique!=f16"])
    assert len(said.conflicts) == 2  # either technique would do


def test_targets_and_machines_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="these are variants of layers"):
        solve(TINY, "jetson_tx2", problem="tiling")
    with pytest.raises(InputError, match="needs a platform, such as jetson_tx2 has"):
        solve(TINY, "scratchpad_64k")
    file = tmp_path / "own.csv"
    file.write_text("layer,variant,stage,time\nconv,base,gpu,3\n")
    with pytest.raises(InputError, match="machine: a bundled name"):
        solve(file)
    with pytest.raises(InputError, match="stage 'gpu' is not known, the platform has back, front or inference"):
        solve(file, "jetson_tx2")
    file.write_text("layer,variant,stage,time,type\nconv,base,inference,3,int8\n")
    with pytest.raises(InputError, match="type 'int8' is not known"):
        solve(file, "jetson_tx2")
    with pytest.raises(InputError, match="problem selection takes variants"):
        solve("lenet5", "jetson_tx2")


@pytest.mark.slow(1)
def test_fields_of_the_platform_are_overridden() -> None:
    plan = solve(TINY, "jetson_tx2", settings=["platform.memory_bytes=14500000"], pins=["frequency=default"])
    assert plan.measures["memory"] <= 14_500_000
    tight = solve(TINY, "jetson_tx2", settings=["platform.memory_bytes=1000"])
    assert (tight.status, tight.conflicts) == ("INFEASIBLE", ("limit of the platform: memory_bytes 1000",))
