"""`certile variants`, and the files that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulations.selection.boards import board_settings
from formulations.selection.problem import settings_of
from hwmodels.selection.price import Tucker, pieces
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.variants import (
    Option,
    Size,
    VariantLayer,
    Variants,
    load_variants,
    variants_to_csv,
    write_variants,
)
from solver import check, explain, pareto, solve
from solver.cli.main import main
from solver.uses.variants import estimate
from tests.lies import changed

ONE = Network(
    name="one",
    operators=(
        Input(name="x", shape=(1, 32, 8, 8)),
        Conv(name="a", inputs=("x",), shape=(1, 32, 8, 8), filters=32, kernel=(3, 3), pad=(1, 1, 1, 1)),
    ),
)


def test_a_profile_of_a_board_is_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files give the period of problem mapping, 1,020 us for lenet5 on (2,2): it has no decompositions."""
    profile, machine = str(tmp_path / "p.json"), str(tmp_path / "m.json")
    words = ["variants", "lenet5", "-m", "galaxy_s9", "--cpu-config", "2,2", "-o", profile, "--platform-to", machine]
    assert main(words) == 0
    assert "estimated, not measured" in capsys.readouterr().out
    (setting,) = board_settings(load_network("lenet5"), load_machine("galaxy_s9"), configurations=[(2, 2)])
    (read,) = settings_of(load_variants(profile), load_machine(machine))
    assert read.variants == setting.variants
    assert read.platform == setting.platform
    plan = solve(profile, machine, objective="period")
    assert plan.status == "OPTIMAL", plan.stats  # a run that is stopped (SIGTERM, memory) ends with 2,024 and says why
    assert plan.objective.value == 1_020


def test_half_of_the_bytes_have_times_of_their_own() -> None:
    """As solved on a machine of one byte where the base has two."""
    two, one = (
        load_machine("scratchpad_64k", dict.fromkeys(("in_bytes", "w_bytes", "out_bytes"), n)) for n in ("2", "1")
    )
    conv = Conv(name="a", inputs=("x",), shape=(1, 4, 4, 4), filters=4, kernel=(3, 3), pad=(1, 1, 1, 1))
    tiny = Network(name="tiny", operators=(Input(name="x", shape=(1, 4, 4, 4)), conv))
    layer = next(one for one in estimate(tiny, two, (), 0).variants.layers if one.name == "a")
    took = {option.variant: option.time for option in layer.options}
    for name, on in (("base", two), ("half", one)):
        assert took[name] == solve(tiny.layers[0], on, objective="time", jobs=1).objective.value * 125 / 1e6
    assert took["half"] < took["base"]
    assert {option.variant: option.bytes for option in layer.options} == {"base": 288, "half": 144}


def test_tables_hold_the_same(tmp_path: Path) -> None:
    made = estimate(load_network("squeezenet1_1"), load_machine("galaxy_s9"), (0.25, 0.5), 20_000).variants
    write_variants(made, tmp_path / "p.csv")
    write_variants(made, tmp_path / "p.json")
    read = load_variants(tmp_path / "p.csv")
    assert load_variants(tmp_path / "p.json") == made
    assert read.edges == made.edges
    assert [(layer.name, layer.options, layer.elements) for layer in read.layers] == [
        (layer.name, layer.options, layer.elements) for layer in made.layers
    ]


def test_what_a_table_cannot_say() -> None:
    layers = [
        VariantLayer(name=name, options=(Option(variant="base", stage="s", time=1.5),)) for name in ("a b", "c", "d")
    ]
    made = Variants(name="v", unit="ms", layers=tuple(layers))
    assert "a b,,0,base,,s,f32,1500.0,0,0," in variants_to_csv(made).splitlines()
    with pytest.raises(InputError, match="input sizes"):
        variants_to_csv(made.model_copy(update={"sizes": (Size(name="416", accuracy=0.3),)}))
    for reads, said in (((), "reads nothing"), (("a b", "c"), "names with spaces")):
        other = layers[2].model_copy(update={"reads": reads})
        with pytest.raises(InputError, match=said):
            variants_to_csv(made.model_copy(update={"layers": (*layers[:2], other)}))


@pytest.mark.slow(4)
def test_a_chip_takes_what_its_best_plans_take() -> None:
    """A decomposition is the sum of its pieces; two bytes are halved, one is not."""
    machine = load_machine("scratchpad_64k", {"in_bytes": "2", "w_bytes": "2", "out_bytes": "2"})
    made = estimate(ONE, machine, (0.5,), 10_000)
    options = {o.variant: o for o in made.variants.layers[1].options}
    assert list(options) == ["base", "tucker_16_16", "half", "tucker_16_16_half"]
    layer = ONE.layer("a")

    def us(*layers: object) -> float:
        return sum(solve(one, machine, objective="time").objective.value for one in layers) * machine.tick_ps / 1e6  # type: ignore

    assert options["base"].time == us(layer)
    assert options["tucker_16_16"].time == us(*pieces(layer, Tucker(16, 16)))
    assert options["half"].bytes * 2 == options["base"].bytes == 2 * 9 * 32 * 32
    assert options["tucker_16_16"].loss_ppm == round(10_000 * (1 - (2 * 32 * 16 + 9 * 16 * 16) / 9_216))
    assert len(settings_of(made.variants, made.machine)) == 1
    whole = estimate(ONE, load_machine("scratchpad_64k"), ())
    assert [o.variant for o in whole.variants.layers[1].options] == ["base"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "midap", "-o", "p.json"], "this one is for problem banks"),
        (["-m", "galaxy_s9", "-o", "p.txt"], ".json or a .csv"),
        (["-m", "galaxy_s9", "-o", "p.json", "--ranks", "2"], "share of the channels"),
        (["-m", "galaxy_s9", "-o", "p.json", "--ranks", "half"], "or none"),
        (["-m", "galaxy_s9", "-o", "p.json", "--cpu-config", "5"], "known are 4 3,1"),
        (["-m", "galaxy_s9", "-o", "p.json", "--cpu-config", "x"], "such as 2,2"),
        (["-m", "galaxy_s9", "-o", "p.json", "--sensitivity", "-1"], "0 to 1000000"),
        (["-m", "galaxy_s9", "-o", "p.json", "--platform-to", "m"], "ends in .json"),
        (["-m", "scratchpad_64k", "-o", "p.json", "--cpu-config", "2,2"], "it has none"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["variants", "lenet5", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_prices_of_time_is_refused() -> None:
    machine = load_machine("scratchpad_64k", {
        "transfer.call_ticks": "0", "transfer.segment_ticks": "0", "transfer.byte_ticks": "0",
        "compute.cycle_ticks": "0",
    })  # fmt: skip
    with pytest.raises(InputError, match="prices no time, only bytes"):
        estimate(ONE, machine, ())


# ---- Plans of problem selection: by Python and the command line, checked, shown, as fronts, and refused --------------

TINY = "tiny_yolo_tx2"


def test_a_profile_brings_its_machine() -> None:
    plan = solve(TINY, pins=["frequency=default"])
    assert (plan.problem, plan.machine, plan.status, plan.unit) == ("selection", "jetson_tx2", "OPTIMAL", "ticks")
    assert plan.objective.value == 23_000 == sum(plan.objective.terms.values())
    assert {thread.stages: thread.load for thread in plan.part.figures.threads} == {
        ("front",): 9000, ("inference",): 23_000, ("back",): 10_030,
    }  # fmt: skip
    assert check(plan).ok
    assert solve(load_variants(TINY), "jetson_tx2", pins=["frequency=default"]).objective == plan.objective


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


def test_fields_of_the_platform_are_overridden() -> None:
    plan = solve(TINY, "jetson_tx2", settings=["platform.memory_bytes=14500000"], pins=["frequency=default"])
    assert plan.measures["memory"] <= 14_500_000
    tight = solve(TINY, "jetson_tx2", settings=["platform.memory_bytes=1000"])
    assert (tight.status, tight.conflicts) == ("INFEASIBLE", ("limit of the platform: memory_bytes 1000",))
