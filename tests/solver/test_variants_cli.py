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
from solver import solve
from solver.cli.main import main
from solver.uses.variants import estimate

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


@pytest.mark.slow(1)
def test_a_machine_without_prices_of_time_is_refused() -> None:
    machine = load_machine("scratchpad_64k", {
        "transfer.call_ticks": "0", "transfer.segment_ticks": "0", "transfer.byte_ticks": "0",
        "compute.cycle_ticks": "0",
    })  # fmt: skip
    with pytest.raises(InputError, match="prices no time, only bytes"):
        estimate(ONE, machine, ())
