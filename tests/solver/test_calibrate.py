"""`calibrate` from end to end: known machines come back, what is not identified is said, nothing is half done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instances
from hwmodels.nest.price.closed_form import price, with_prices
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Input
from instances.network.workload import Layer
from solver import Plan, calibrate, solve
from solver.cli.main import main
from solver.uses.calibration.calibrate import finer, pick_prices
from tests.effort import tries

#: Layers that pay the prices in different proportions: large maps, many channels, 1x1, strides, few bytes.
WORDS = (
    "channels=3 filters=8 size=20x20 kernel=3x3 pad=1",
    "channels=16 filters=32 size=7x7",
    "channels=64 filters=64 size=3x3 kernel=3x3 pad=1",
    "channels=8 filters=8 size=12x12 kernel=5x5 stride=2 pad=2",
    "channels=1 filters=4 size=30x30 kernel=3x3",
    "channels=256 filters=16 size=2x2",
    "channels=4 filters=128 size=5x5",
)
FIELDS = ("layer_ticks", "transfer.burst_ticks", "transfer.byte_ticks", "compute.cycle_ticks")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Plan]]:
    """A plan of every layer, by two dataflows, chosen on `nmp` as it is."""
    from instances.measured import parse_layer

    folder, made = tmp_path_factory.mktemp("plans"), []
    for number, words in enumerate(WORDS):
        for flow in ("OS", "WS"):
            plan = solve(parse_layer(words, ""), "nmp", pins=["holds=uniform", f"dataflow={flow}"])
            path = folder / f"{number}{flow}.json"
            plan.save(path)
            made.append((path, plan))
    return made


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def measured(folder: Path, plans: list[tuple[Path, Plan]], truth: Machine) -> Path:
    """What these plans take on the true machine."""
    lines = ["plan,ticks"]
    for path, plan in plans:
        ticks = sum(price(p.workload, truth, p.schedule).time_ticks for p in plan.layers)
        lines.append(f"{path},{ticks}")
    return write(folder / "rows.csv", "\n".join(lines) + "\n")


# --- known machines come back ----------------------------------------------------------------------------------------


@pytest.mark.slow(3)
@settings(max_examples=tries(2, 8), deadline=None)
@given(st.tuples(st.integers(0, 4000), st.integers(1, 2000), st.integers(1, 60), st.integers(1, 200)))
def test_plans_measured_on_a_known_machine_give_it_back(plans, tmp_path_factory, truth: tuple[int, ...]) -> None:
    machine = with_prices(load_machine("nmp"), dict(zip(FIELDS, truth, strict=True)))
    path = measured(tmp_path_factory.mktemp("rows"), plans, machine)
    bounds = ["layer_ticks=0..5000", "burst_ticks=0..4000", "byte_ticks=0..80", "cycle_ticks=0..400"]
    result = calibrate("nmp", path, fit=bounds)
    assert result.unidentified == ()
    assert result.settled
    assert result.ticks == truth
    assert result.median_error() == 0
    assert result.machine_after == machine


def test_a_layer_in_words() -> None:
    """Pairs are rows x columns; pads are above, left, below, right."""
    from instances.measured import parse_layer

    words = "channels=8 filters=4 size=16x12 kernel=3x1 stride=2x3 pad=1x0 dilation=2x1 groups=2 batch=5"
    assert parse_layer(words, "") == Layer.conv(
        words, channels=8, filters=4, size=(16, 12), kernel=(3, 1), stride=(2, 3), pad=(1, 0, 1, 0), dilation=(2, 1),
        groups=2, batch=5,
    )  # fmt: skip


@pytest.mark.slow(5)
def test_networks_measured_on_a_known_machine_give_it_back(tmp_path: Path) -> None:
    """Rows of best plans: they are made anew until they are the best ones of the true machine."""
    truth = {"layer_ticks": 900, "transfer.burst_ticks": 650, "transfer.byte_ticks": 5, "compute.cycle_ticks": 70}
    machine = with_prices(load_machine("nmp"), truth)
    lines = ["layer,pins,ticks"]
    from instances.measured import parse_layer

    for words in WORDS:
        for pins in (["holds=uniform"], ["holds=uniform", "partition=OFM"]):
            ticks = solve(parse_layer(words, ""), machine, pins=pins).objective.value
            lines.append(f"{words},{';'.join(pins)},{ticks}")
    result = calibrate("nmp", write(tmp_path / "rows.csv", "\n".join(lines)))
    assert dict(zip((p.name for p in result.prices), result.ticks, strict=True)) == truth
    assert result.rounds > 1
    assert result.median_error() == 0


def test_by_hand(tmp_path: Path) -> None:
    # docs/slicing.md: KS moves 136 bytes a cluster, OFM 112. With 290 and 242 ticks measured, 24 bytes take 48 ticks:
    # 2 a byte, and 290 - 272 = 18 for the layer.
    machine = Machine(
        name="m", problem="slicing", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, tles=2, tlts=2,
        in_buffer_bytes=64, w_buffer_bytes=64, out_buffer_bytes=64, dram="per_tle", transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    words = "channels=2 filters=8 size=4x4"
    path = write(tmp_path / "rows.csv", f"layer,pins,ticks\n{words},partition=KS,290\n{words},partition=OFM,242\n")
    result = calibrate(machine, path, fit=["byte_ticks=0..9", "layer_ticks=0..99"])
    assert result.ticks == (2, 18)
    assert [row.counts for row in result.rows] == [(136, 1), (112, 1)]
    assert [row.before for row in result.rows] == pytest.approx([136e-6, 112e-6])
    assert result.fit.freedom == 0


def test_layers_are_measured_in_blocks(tmp_path: Path) -> None:
    """6 filters are 8 in blocks of 4, an image of 2 channels stays: 16 * (2 + 8) + 16 bytes at 3 ticks."""
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=999, channel_block=4,
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    path = write(tmp_path / "rows.csv", "layer,ticks\nchannels=2 filters=6 size=4x4,528\n")
    assert calibrate(machine, path, fit=["byte_ticks=0..9"]).ticks == (3,)


def test_equal_layers_of_a_network_are_counted_each(tmp_path: Path) -> None:
    """The layer of `test_by_hand` twice: 2 * 136 bytes, and the time of two layers."""
    x = Input(name="x", shape=(1, 2, 4, 4))
    convs = [Conv(name=name, inputs=("x",), shape=(1, 8, 4, 4), filters=8, kernel=(1, 1)) for name in "ab"]
    path = tmp_path / "net.json"
    data = Network(name="net", operators=(x, *convs)).model_dump(mode="json")
    write(path, json.dumps({"format": "certile-network/1", **data}))
    machine = Machine(
        name="m", problem="slicing", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, tles=2, tlts=2,
        in_buffer_bytes=64, w_buffer_bytes=64, out_buffer_bytes=64, dram="per_tle", transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    rows = write(tmp_path / "rows.csv", f"network,pins,ticks\n{path},partition=KS,580\n{path},partition=OFM,484\n")
    result = calibrate(machine, rows, fit=["byte_ticks=0..9", "layer_ticks=0..99"])
    assert [row.counts for row in result.rows] == [(272, 2), (224, 2)]
    assert result.ticks == (2, 18)


def test_weights_by_hand(tmp_path: Path) -> None:
    # 136 bytes take 136,000 ticks and 112 take 134,400. Relative: A = (1/1000, 1/1200), b = (1, 1), so
    # x = (1/1000 + 1/1200) / (1/1000^2 + 1/1200^2) = 1081.97. Absolute: x = (136*136000 + 112*134400) / (136^2 + 112^2)
    # = 33,548,800 / 31,040 = 1080.82.
    machine = Machine(
        name="m", problem="slicing", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, tles=2, tlts=2,
        in_buffer_bytes=64, w_buffer_bytes=64, out_buffer_bytes=64, dram="per_tle", transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    words = "channels=2 filters=8 size=4x4"
    path = write(
        tmp_path / "rows.csv", f"layer,pins,ticks\n{words},partition=KS,136000\n{words},partition=OFM,134400\n"
    )
    assert calibrate(machine, path, fit="byte_ticks=0..9999", force="byte_ticks").ticks == (1082,)
    absolute = calibrate(machine, path, fit="byte_ticks=0..9999", force="byte_ticks", weights="absolute")
    assert absolute.ticks == (1081,)
    # Residuals 136*1081 - 136000 = 11,016 and 112*1081 - 134400 = -13,328 ticks of 1 ps: 12,227 ps root mean square.
    assert absolute.rms == pytest.approx(12_227e-6, rel=1e-4)


# --- what is not identified is said ----------------------------------------------------------------------------------


@pytest.mark.slow(2)
def test_what_occurs_together_is_said_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One layer at four sizes of nothing but layer time and calls: always 3 calls a core."""
    words = "channels=2 filters=8 size=4x4"
    path = write(tmp_path / "rows.csv", f"layer,pins,us\n{words},partition=KS,1\n{words},partition=OFM,0.9\n")
    code = main(["calibrate", "nmp", str(path), "-f", "layer_ticks=0..1us", "-f", "call_ticks=0..1us", "-j", "1"])
    said = capsys.readouterr().out
    assert code == 0
    assert "cannot be identified from these rows" in said
    assert "any value between" in said


@pytest.mark.slow(2)
def test_what_is_open_is_shown_by_plans_made_anew(plans, tmp_path: Path) -> None:
    """Two rows, three prices: at both ends of what is open the rows are explained as well, by plans priced there."""
    truth = with_prices(load_machine("nmp"), {"transfer.burst_ticks": 700, "compute.cycle_ticks": 55})
    path = measured(tmp_path, plans[:4:2], truth)
    result = calibrate("nmp", path, fit=["burst_ticks=0..4000", "byte_ticks=0..80", "cycle_ticks=0..400"])
    (name,) = result.unidentified
    low, high = result.anew[name]
    assert max(low, high) < 1e-3  # of the measured times: what rounding to 1/64 tick leaves
    estimate = next(e for e in result.estimates if e.name == name)
    assert estimate.high > 3 * estimate.low
    assert len(estimate.ends) == 2


@pytest.mark.slow(25)
def test_memory_rows_identify_no_price(capsys: pytest.CaptureFixture[str]) -> None:
    """Table 1 of the DMA paper: occupancy has no slope, and no setting comes near."""
    arguments = ["calibrate", "zynq7020", "dma_table1", "--set", "reading=literal", "-j", "1", "--json"]
    fit = ["-f", "call_ticks=0..4000", "-f", "segment_ticks=0..400", "-f", "byte_ticks=1..20"]
    assert main([*arguments, *fit]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["unidentified"] == ["transfer.call_ticks", "transfer.segment_ticks", "transfer.byte_ticks"]
    assert [f["after"] for f in result["fields"]] == [400, 40, 1]
    assert all("measure memory" in f["reason"] for f in result["fields"])
    assert result["probe"]["hits"] == 0
    assert result["probe"]["rows"] == 5
    assert main([*arguments[:-1], *fit[:2]]) == 0
    said = capsys.readouterr().out
    assert "none has more than 0 of 5 rows within one point" in said
    assert said.count("cannot be identified from these rows") == 1
    assert "any value" not in said  # memory does change with prices, by jumps


@pytest.mark.slow(105)
def test_table_2_cannot_tell_bursts_from_bytes(tmp_path: Path) -> None:
    """CAS of the TSO paper: from nothing to more than Fig. 1's 50 ns is as good; time per layer and cycle are told.

    With 11 of the 24 rows, which say the same in a third of the time: some of those of one partition or one dataflow.
    """
    rows = (Path(instances.__file__).parent / "measured_rows" / "tso_table2.csv").read_text().splitlines(keepends=True)
    left_out = (" burst,", " no burst,", " KS&OFM,", " OS,", "inception_v3 OFM,")
    table = write(tmp_path / "rows.csv", "".join(row for row in rows if not any(name in row for name in left_out)))
    result = calibrate("nmp", table, jobs=0)
    verdicts = {e.name: e for e in result.estimates}
    cas = verdicts["transfer.burst_ticks"]
    assert result.unidentified == ("transfer.burst_ticks",)
    assert cas.low == 0
    assert cas.high > 400
    assert result.machine_after.transfer.burst_ticks == load_machine("nmp").transfer.burst_ticks
    assert verdicts["layer_ticks"].verdict == verdicts["compute.cycle_ticks"].verdict == "identified"
    assert {frozenset(p[:2]) for p in result.fit.pairs} == {frozenset(("transfer.burst_ticks", "transfer.byte_ticks"))}
    before, after = result.median_error(after=False), result.median_error()
    assert after < 0.1 < 0.2 < before < 0.3
    (missing,) = [row.name for row in result.rows if row.missing]
    assert missing == "resnet50 WS"


@pytest.mark.slow(2)
def test_forced_fields_are_fitted(plans, tmp_path: Path) -> None:
    truth = with_prices(load_machine("nmp"), {"transfer.call_ticks": 30, "transfer.segment_ticks": 20})
    few = plans[:2]
    path = measured(tmp_path, few, truth)
    free = calibrate("nmp", path, fit=["call_ticks=0..900", "segment_ticks=0..900", "burst_ticks", "byte_ticks"])
    assert free.unidentified
    name = free.unidentified[0]
    forced = calibrate(
        "nmp", path, fit=["call_ticks=0..900", "segment_ticks=0..900", "burst_ticks", "byte_ticks"], force=[name]
    )
    assert name not in forced.unidentified
    # Forced as it is, or identified beside another one that is held instead.
    assert next(e for e in forced.estimates if e.name == name).verdict in ("forced", "identified")
    assert forced.ticks != free.ticks


@pytest.mark.slow(2)
def test_rows_without_a_plan_are_said(tmp_path: Path) -> None:
    words = "channels=2 filters=8 size=4x4"
    text = f"layer,pins,us\n{words},T_N=1,1\n{words},T_N=2,1\n{words},T_M=9999,1\n"
    result = calibrate("nmp", write(tmp_path / "rows.csv", text), fit=["layer_ticks=0..9us"])
    assert [bool(row.missing) for row in result.rows] == [False, False, True]
    assert result.rows[2].after is None
    assert "T_M=9999" in result.rows[2].missing
    with pytest.raises(InputError, match="no row has a plan"):
        calibrate("nmp", write(tmp_path / "rows.csv", f"layer,pins,us\n{words},T_M=9999,1\n"))


def test_too_few_rounds_are_said(plans, tmp_path: Path) -> None:
    truth = with_prices(load_machine("nmp"), {"transfer.burst_ticks": 900})
    path = measured(tmp_path, plans, truth)
    result = calibrate("nmp", path, rounds=1)
    assert not result.settled
    assert "still change after 1 rounds" in result.note
    assert "not settled" in result.to_machine().sources["transfer.burst_ticks"]


# --- rows that are left out ------------------------------------------------------------------------------------------


@pytest.mark.slow(4)
def test_rows_left_out_are_predicted(plans, tmp_path: Path) -> None:
    truth = with_prices(load_machine("nmp"), {"transfer.burst_ticks": 700, "compute.cycle_ticks": 55})
    path = measured(tmp_path, plans, truth)
    name = plans[0][0].name
    result = calibrate("nmp", path, leave_out=[name])
    (cross,) = result.cross
    assert [row.name for row in cross.rows] == [name]
    assert cross.rows[0].error_after == 0
    assert cross.rows[0].error_before != 0
    assert cross.ticks == result.ticks
    every = calibrate("nmp", path, leave_out="each")
    assert [c.name for c in every.cross] == [p.name for p, _ in plans]
    with pytest.raises(InputError, match="no such rows; expected each"):
        calibrate("nmp", path, leave_out="alexnet")


def test_all_rows_cannot_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "layer,group,us\nchannels=2 filters=8 size=4x4,g,1\n")
    with pytest.raises(InputError, match="these are all rows"):
        calibrate("nmp", path, leave_out="g")


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(3)
def test_the_machine_file_names_its_source_loads_and_solves(plans, tmp_path: Path) -> None:
    truth = with_prices(load_machine("nmp"), {"transfer.burst_ticks": 700, "compute.cycle_ticks": 55})
    path, out = measured(tmp_path, plans, truth), tmp_path / "mine.json"
    assert main(["calibrate", "nmp", str(path), "-o", str(out), "-j", "1"]) == 0
    mine = load_machine(out)
    assert (mine.transfer.burst_ticks, mine.compute.cycle_ticks, mine.layer_ticks) == (700, 55, 0)
    assert mine.name == "nmp_calibrated"
    source = mine.sources["transfer.burst_ticks"]
    assert "rows.csv" in source
    assert "sha256:" in source
    assert "median error" in source
    assert mine.sources["tles"] == load_machine("nmp").sources["tles"]
    layer = Layer.conv("x", channels=2, filters=8, size=(4, 4))
    assert solve(layer, str(out)).status == solve(layer, truth).status
    assert solve(layer, str(out)).objective.value == solve(layer, truth).objective.value


def test_nothing_is_written_where_nothing_was_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write(tmp_path / "mine.json", "old")
    bad = write(tmp_path / "rows.csv", "layer,us\nchannels=2 filters=8 size=4x4,soon\n")
    assert main(["calibrate", "nmp", str(bad), "-o", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert out.read_text() == "old"
    assert main(["calibrate", "nmp", str(bad), "-o", str(tmp_path / "none" / "mine.json")]) == 2
    assert main(["calibrate", "nmp", str(bad), "-o", str(tmp_path / "mine.txt")]) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.json", "rows.csv"]


def test_bundled_machines_do_not_change(plans, tmp_path: Path) -> None:
    before = load_machine("nmp")
    calibrate("nmp", measured(tmp_path, plans[:3], with_prices(before, {"transfer.byte_ticks": 30})))
    assert load_machine("nmp") == before


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fit": "bytes_ticks=0..1"}, "did you mean byte_ticks"),
        ({"fit": "tles=1..4"}, "expected layer_ticks, transfer.call_ticks"),
        ({"fit": "byte_ticks=5"}, "write LOW..HIGH"),
        ({"fit": "byte_ticks=9..5"}, "9 is above 5"),
        ({"fit": "byte_ticks=-1..5"}, "a price is not negative"),
        ({"fit": "byte_ticks=0..5min"}, "unknown unit 'min'"),
        ({"fit": "byte_ticks=a..5"}, "unknown unit 'a'"),
        ({"fit": "byte_ticks=..5"}, "a number is missing"),
        ({"fit": "byte_ticks=1.2.3..5"}, "not a number"),
        ({"fit": "byte_ticks=0..1e3us e"}, "not a number"),
        ({"fit": "byte_ticks=10..100ps"}, "no whole number of ticks (125 ps) is inside"),
        ({"fit": "byte_ticks=0..1s"}, "at most 1000000000"),
        ({"fit": ("byte_ticks", "transfer.byte_ticks=0..5")}, "named twice"),
        ({"fit": "row_ticks=0..5"}, "count no DRAM rows"),
        ({"fit": "segment_ticks"}, "is 0 on nmp, so give bounds"),
        ({"fit": "byte_ticks", "force": "cycle_ticks"}, "only fields that are fitted can be forced"),
        ({"weights": "equal"}, "expected relative or absolute"),
        ({"rounds": 0}, "a number from 1 to"),
        ({"tick_ps": 50}, "a divisor is needed"),
    ],
)
def test_bad_options_are_one_clear_line(tmp_path: Path, options: dict[str, object], said: str) -> None:
    path = write(tmp_path / "rows.csv", "layer,us\nchannels=2 filters=8 size=4x4,1\n")
    with pytest.raises(InputError) as caught:
        calibrate("nmp", path, **options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("machine", "row", "said"),
    [
        ("nmp", "network,us\nlenet6,1", "line 2: unknown network"),
        ("nmp", "network,layer,us\nlenet5,conv9,1", "line 2: "),
        ("nmp", "network,pins,us\nlenet5,T_Q=1,1", "line 2: pin 'T_Q=1'"),
        ("nmp", "network,engine,us\nlenet5,fast,1", "line 2: unknown engine"),
        ("nmp", "network,objective,us\nlenet5,speed,1", "line 2: unknown objective"),
        ("nmp", "plan,us\nnone.json,1", "line 2: plan none.json: no such file"),
        ("nmp", "network,layer,%ocm\nlenet5,conv1,50", "line 2: column unit: %ocm needs a machine with one shared"),
        ("zynq7020", "network,%ocm\nlenet5,50", "line 2, column layer: %ocm is of one layer"),
        ("zynq7020", "network,cycles\nlenet5,50", "compute.cycle_ticks of zynq7020 is 0"),
        ("nmp", "network,cycles\nlenet5,50", "a row in cycles says nothing about the length of a cycle"),
        ("midap", "network,us\nlenet5,50", "not banks"),
    ],
)
def test_rows_that_the_machine_cannot_have_run(tmp_path: Path, machine: str, row: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        calibrate(machine, write(tmp_path / "rows.csv", row + "\n"))
    assert said in str(caught.value)


@pytest.mark.slow(2)
def test_a_plan_of_a_larger_machine_is_refused(tmp_path: Path) -> None:
    layer = Layer.conv("x", channels=64, filters=64, size=(28, 28), kernel=(3, 3), pad=(1, 1, 1, 1))
    plan = solve(layer, "nmp", settings={"in_buffer_bytes": 2**20, "out_buffer_bytes": 2**20, "w_buffer_bytes": 2**20})
    plan.save(tmp_path / "p.json")
    with pytest.raises(InputError, match="line 2: column plan: layer x does not run on nmp"):
        calibrate("nmp", write(tmp_path / "rows.csv", "plan,us\np.json,5\n"))


# --- bounds and ticks ------------------------------------------------------------------------------------------------


def test_bounds_in_units_by_hand() -> None:
    # Ticks of 125 ps: 50 ns are 400; 0.3 ns are 2.4, so at least 3 whole ticks; 1.1 us are 8,800.
    nmp = load_machine("nmp")
    prices = pick_prices(nmp, ["burst_ticks=0.3..50ns", "byte_ticks=1ns..1.1us", "call_ticks=3..7"], [])
    assert [(p.low, p.high, p.value) for p in prices] == [(3, 400, 400), (8, 8800, 8), (3, 7, 0)]
    # By default: all that has a price up to ten times it, and 100 us a layer.
    assert {p.name: (p.low, p.high) for p in pick_prices(nmp, [], [])} == {
        "layer_ticks": (0, 800_000), "transfer.burst_ticks": (0, 4000), "transfer.byte_ticks": (0, 80),
        "compute.cycle_ticks": (0, 400),
    }  # fmt: skip


def test_finer_ticks_are_the_same_machine() -> None:
    nmp = load_machine("nmp")
    fine = finer(nmp, 25)
    layer = Layer.conv("x", channels=2, filters=8, size=(4, 4))
    assert solve(layer, fine).objective.value == 5 * solve(layer, nmp).objective.value
    assert fine.tick_ps * fine.transfer.byte_ticks == nmp.tick_ps * nmp.transfer.byte_ticks
