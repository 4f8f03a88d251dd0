"""C code of plans: built with warnings as errors and with sanitizers, run, compared with NumPy and with the plan."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from formulations.placement.packing import Block
from hwmodels.nest.replay.execute import Operands, direct
from hwmodels.schedule import FusedRun, Hold, Loop, Nest
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Input
from instances.network.workload import Layer
from solver.calls.solve import solve
from solver.uses.emit.chip import _tensor
from solver.uses.emit.emit import compile_model, emit_c, files_of
from solver.uses.emit.offchip import placed
from solver.uses.emit.program import Planned, single_layers
from solver.uses.emit.text import comment, function, identifier, literal, total
from tests.effort import in_turn, tries
from tests.emitted import (
    BUILDS,
    build_and_run,
    light_model,
    needs_gcc,
    random_case,
    random_network,
    random_scratchpad,
    residual_model,
    small_model,
    write,
)
from tests.onnx_models import model_of
from tests.written import built

pytestmark = needs_gcc


def random_program(seed: int, number: int) -> dict[str, str]:
    rng = random.Random(seed)
    return single_layers([random_case(rng, f"case{k}") for k in range(number)])


def test_layers_compute_and_move_what_is_planned(tmp_path: Path) -> None:
    """Cores, snakes, lines, double buffers, free cuts, first reads, spilled sums: seeds that run nearly every line."""
    cases = [random_case(random.Random(seed), f"case{seed}") for seed in (48, 25, 32, 27, 139, 1, 38, 58)]
    # by turns in three loops: the pixel at which a filter ends is the one at which the next begins, and stays
    layer = Layer.conv("snake", channels=1, filters=2, size=(2, 2), kernel=(1, 1))
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=4, ocm_bytes=99, snake=True,
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("m", 1), Loop("r", 1), Loop("c", 1), Hold("IN"), Hold("W"), Hold("OUT")))
    assert "9 of 9 layers" in built(single_layers([*cases, Planned(layer, machine, nest)]), tmp_path / "c")


def test_kept_rows_of_images_lie_apart() -> None:
    """Row by row, in each the images; every element has a place of its own, and all of them are as many as places."""
    network, shape = Network(name="n", operators=(Input(name="x", shape=(2, 3, 4, 5)),)), (2, 3, 4, 5)
    for layout in ("CHW", "HWC"):
        machine = load_machine("scratchpad_64k").model_copy(update={"out_layout": layout})
        made = _tensor(network.operators[0], SimpleNamespace(whole=False), machine)  # type: ignore[arg-type]
        at = sum(np.indices(shape)[k] * made.pitch[k] for k in range(4))
        assert sorted(at.ravel()) == list(range(120))
        assert [set(at[:, :, r].ravel() // 30) for r in range(4)] == [{0}, {1}, {2}, {3}]


@pytest.mark.slow(3)
def test_random_layers_compute_and_move_what_is_planned(tmp_path: Path) -> None:
    number = tries(12, 300)
    write(random_program(1, number), tmp_path / "c")
    assert f"{number} of {number}" in build_and_run(tmp_path / "c", BUILDS[3])


def numbers(count: int, state: int) -> tuple[np.ndarray, int]:
    """Bytes as certile_check.c makes them, and the state after them."""
    made = np.zeros(count, np.int8)
    for k in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        made[k] = np.uint8(state >> 24).astype(np.int8)
    return made, state


@pytest.mark.slow(1)
def test_results_are_those_of_numpy(tmp_path: Path) -> None:
    """A convolution with bias, stride and padding whose sums are spilled, against the direct one on the same data."""
    layer = Layer.conv(
        "a", channels=4, filters=6, size=(9, 8), kernel=(3, 3), stride=(2, 1), pad=(1, 1, 1, 1), bias=True
    )
    machine = Machine(
        name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=4, bias_bytes=1, ocm_bytes=4096,
        transfer=Transfer(byte_ticks=1), sliding=True,
    )  # fmt: skip
    nest = Nest((Loop("n", 3), Loop("r", 2), Hold("IN"), Loop("m", 4), Hold("W"), Hold("OUT")))
    write(single_layers([Planned(layer, machine, nest)]), tmp_path / "c")
    build_and_run(tmp_path / "c", "-O0", "results.bin")
    maps, state = numbers(4 * 9 * 8, 20)
    weights, state = numbers(6 * 4 * 9, state)
    bias, _ = numbers(6, state)
    data = Operands(
        (maps.astype(np.int64).reshape(1, 1, 4, 9, 8),), weights.astype(np.int64).reshape(1, 6, 4, 3, 3),
        bias.astype(np.int64).reshape(1, 6),
    )  # fmt: skip
    results = np.fromfile(tmp_path / "c" / "results.bin", np.int8)
    assert (results == direct(layer, data).ravel().astype(np.int8)).all()
    assert len(set(results.tolist())) > 50  # they say something


#: Two maps of 3 rows of 2: one result at a time is wrong, as written and as a layer of its own writes it.
EVERY_RESULT = """
#include "certile_check.h"
certile_counts certile_counted[CERTILE_OPERANDS];
static int wrong;
static const certile_layer *now;
static void run(unsigned char *const in[], unsigned char *w, unsigned char *bias, unsigned char *out,
                unsigned char *psum)
{
    certile_tensors t = {{in[0]}, w, bias, out};
    (void)psum;
    certile_naive(now, &t);
    if (wrong >= 0) out[wrong] ^= 1;
}
int main(void)
{
    certile_layer a = {.name = "a", .run = run, .b = 1, .g = 1, .m = 2, .n = 1, .r = 3, .c = 2, .kh = 1, .kw = 1,
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .h = 3, .l = 2, .inputs = 1, .in_bytes = 1,
        .w_bytes = 1, .out_bytes = 1, .in_pitch = {6, 6, 6, 2, 1}, .w_pitch = {2, 2, 1, 1, 1},
        .out_pitch = {12, 12, 6, 2, 1}};
    int faults = 0;
    now = &a;
    for (wrong = -1; wrong < 12; wrong++) {
        unsigned char is[12] = {0}, want[12] = {0};
        if (wrong >= 0) is[wrong] = 1;
        for (a.unwritten = 0; a.unwritten <= 3; a.unwritten++) {
            faults += certile_differ(&a, is, want) != (size_t)(wrong >= 0 && wrong % 6 / 2 >= a.unwritten);
        }
        a.unwritten = 0;
        faults += certile_check(&a, 0) != (wrong < 0);
    }
    return faults;
}
"""


def test_every_result_is_compared(tmp_path: Path) -> None:
    """Each of 12 by itself, the first row and the last too; rows that never leave the chip are not."""
    runtime = Path(__file__).resolve().parents[2] / "solver" / "uses" / "emit" / "runtime"
    (tmp_path / "main.c").write_text(EVERY_RESULT)
    made = ["gcc", "-std=c99", f"-I{runtime}", "main.c", str(runtime / "certile_check.c"), "-o", "main"]
    subprocess.run(made, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_what_differs_is_said(tmp_path: Path) -> None:
    """One segment more in the plan, and one pixel more in a tile: the program ends with 1 and says what."""
    files = random_program(5, 3)
    row = re.search(r"\{\{(\d+), (\d+), (\d+)\}, \{\d+, \d+, \d+\}, \{\d+", files["main.c"])
    wrong = files["main.c"].replace(
        row.group(0), row.group(0).replace(f"{row[1]}, {row[2]}", f"{row[1]}, {int(row[2]) + 1}", 1)
    )
    write({**files, "main.c": wrong}, tmp_path / "counts")
    with pytest.raises(AssertionError, match=r"IN moved by .* segments"):
        build_and_run(tmp_path / "counts", "-O0")
    name = next(name for name in files if name.startswith("layer_000"))
    wrong = re.sub(r"(certile_get_i\d+\(line)", r"1 + \1", files[name])
    write({**files, name: wrong}, tmp_path / "results")
    with pytest.raises(AssertionError, match="results differ from the naive loop nest"):
        build_and_run(tmp_path / "results", "-O0")


@pytest.mark.slow(3)
@pytest.mark.parametrize(("machine", "kinds"), [("scratchpad_64k", False), ("nmp", True), ("zynq7020", True)])
def test_a_network_layer_by_layer(tmp_path: Path, machine: str, kinds: bool) -> None:
    """On one core, on 32 cores that broadcast, and on buffers of their own; pools too."""
    plan = solve("lenet5", machine, all_kinds=kinds)
    names = emit_c(plan, tmp_path / "c")
    assert "main.c" in names
    layers = len(plan.layers)
    assert f"{layers} of {layers} layers" in build_and_run(tmp_path / "c", "-O2")


def test_buffers_hold_the_tiles_of_every_core() -> None:
    """Padding clips the tile of the first core, so that another one has more rows of IN: 3 by 3 windows on 6 rows."""
    layer = Layer.conv("a", channels=1, filters=1, size=(6, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
    machine = load_machine("nmp").model_copy(update={"sliding": False})
    plan = solve(layer, machine, problem="slicing", pins=["partition=OFM"])
    one = plan.layers[0]
    held = {buffer.name: buffer.bytes for buffer in one.figures.buffers}
    assert held["IN"] == one.occupancy_bytes["in"] // one.figures.buffers[0].copies


def test_nothing_is_written_where_something_cannot_be(tmp_path: Path) -> None:
    plan = solve("lenet5", "scratchpad_64k", layers="c3")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        emit_c(plan, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="not of mapping"):
        emit_c(solve("lenet5", "galaxy_s9"), tmp_path / "new")
    small = plan.machine_data.model_copy(update={"psum_bytes": 1, "out_bytes": 2})
    with pytest.raises(InputError, match="partial sums would lose"):
        emit_c(plan.model_copy(update={"machine_data": small}), tmp_path / "new")
    lost = plan.parts[0].model_copy(update={"schedule": None})
    with pytest.raises(InputError, match="no schedule for c3"):
        files_of(plan.model_copy(update={"parts": (lost,)}))
    assert not (tmp_path / "new").exists()


def test_text_of_c() -> None:
    assert identifier("block1/dw*3-a") == "block1_dw_3_a"
    assert identifier("***") == "layer"
    assert comment("a */ b\nü") == ["/*", " * a * / b", " * ?", " */"]
    assert total(("r", 2), ("i", 1), ("1", -1)) == "r * 2 + i - 1"
    assert total(("3", 2), ("1", -1)) == "5"
    assert total(("j", -2), ("1", 3)) == "3 - j * 2"
    drawn = np.random.default_rng(1).normal(size=200).astype(np.float32)
    assert all(np.float32(literal(float(x)).removesuffix("f")) == x for x in drawn)  # to the last bit
    assert function("void f", [], ["return;"]) == ["void f(void)", "{", "    return;", "}"]


def test_layers_of_one_name_are_told_apart() -> None:
    case = random_case(random.Random(3), "same")
    files = single_layers([case, replace(case)])
    assert {"layer_000_same.c", "layer_001_same.c"} <= set(files)


def test_sums_of_a_tile_that_is_taken_again_at_once(tmp_path: Path) -> None:
    """Columns 0 and 1, then 2 alone: its sums are stored one step late, and the next input channel reads them back."""
    layer = Layer.conv("a", channels=3, filters=2, size=(1, 3), kernel=(1, 1))
    machine = Machine(
        name="double", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=4, ocm_bytes=1000, buffering="double",
        transfer=Transfer(byte_ticks=1),
    )  # fmt: skip
    nest = Nest((Loop("c", 2, (2,)), Loop("n", 1), Hold("W"), Loop("c", 1), Hold("IN"), Hold("OUT")))
    write(single_layers([Planned(layer, machine, nest)]), tmp_path / "c")
    assert "1 of 1 layers" in build_and_run(tmp_path / "c", "-O0")


# ---- networks ----------------------------------------------------------------------------------------------------


def emitted_networks(problem: str, seeds: Iterable[int], folder: Path, flags: str) -> int:
    """Emit, build and run plans of random networks; returns how many keep a map on chip or run layers in groups.

    Without flags as fast as may be.
    """
    kept = 0
    for seed in seeds:
        rng = random.Random(seed)
        network = random_network(rng)
        plan = solve(network, random_scratchpad(rng, network), problem=problem)
        if not plan.decided:  # a layer that does not fit
            continue
        if flags:
            emit_c(plan, folder / str(seed))
        printed = build_and_run(folder / str(seed), flags) if flags else built(files_of(plan), folder / str(seed))
        assert "results and transfers as planned" in printed
        fused = any(isinstance(run, FusedRun) for run in plan.schedule)
        kept += fused if problem == "fusion" else any(run.residents for run in plan.schedule)
    return kept


def test_networks_with_maps_on_chip(tmp_path: Path) -> None:
    """Two images and one, maps that are joined, gated, pooled: seeds that run nearly every line."""
    assert emitted_networks("joint", (20, 21), tmp_path, "") == 2


@pytest.mark.slow(8)
def test_random_networks_with_maps_on_chip(tmp_path: Path) -> None:
    assert emitted_networks("joint", range(1000, 1001), tmp_path, BUILDS[2]) >= 1
    bare = subprocess.run(["make", "-s", "bare"], cwd=tmp_path / "1000", capture_output=True, text=True, check=True)
    assert "network.bare" in bare.stdout  # linked without a C library: no malloc, nothing but memcpy and the like


def test_a_map_without_room_in_one_piece() -> None:
    """Of 10 bytes 4 and 4 are free beside a map in the middle, which no order of buffers moves: b has to move."""
    blocks = [Block("a", 0, (4, 4)), Block("b", 0, (6, 2)), Block("c", 1, (4,))]
    found = placed(blocks, 10)
    assert placed([*blocks, Block("d", 1, (1,))], 10) is None
    lies = [(found[b.name], found[b.name] + b.sizes[1 - b.begin]) for b in blocks]
    assert all(a[1] <= b[0] or b[1] <= a[0] for k, a in enumerate(lies) for b in lies[:k])


# ---- models ------------------------------------------------------------------------------------------------------

FLOATS = ["in_bytes=4", "w_bytes=4", "out_bytes=4", "psum_bytes=4"]


def difference(printed: str) -> float:
    """How far results are from those of onnxruntime."""
    found = re.search(r"differ from those expected by (\S+)", printed)
    return float(found.group(1))


@pytest.mark.slow(6)
@pytest.mark.parametrize(("machine", "settings", "layout"), in_turn([
    ("scratchpad_64k", ["ocm_bytes=4096"]), ("scratchpad_768k", ["ocm_bytes=9600", "bias_bytes=4"]),
], ["CHW", "HWC"]))  # fmt: skip
def test_a_model_computes_what_onnxruntime_does(
    tmp_path: Path, machine: str, settings: list[str], layout: str
) -> None:  # fmt: skip
    """Norms, activations before one reader and before two, a shuffle, a gate, slices, averages; banks or not."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "small.onnx")
    fields = [*FLOATS, *settings, f"in_layout={layout}", f"out_layout={layout}"]
    made = compile_model(tmp_path / "small.onnx", machine, tmp_path / "c", settings=fields)
    assert made.plan.problem == "fusion"
    assert made.peak_bytes <= 9600
    assert difference(build_and_run(tmp_path / "c", BUILDS[3])) < 1e-5


@pytest.mark.slow(20)
@pytest.mark.parametrize(("name", "machine", "problem"), [
    ("squeezenet", "scratchpad_768k", "joint"), ("shufflenet", "scratchpad_768k", "joint"),
    ("resnet50", "scratchpad_512k", "tiling"),
])  # fmt: skip
def test_networks_compute_what_onnxruntime_does(tmp_path: Path, name: str, machine: str, problem: str) -> None:
    """Single precision within 1e-4 of the largest result, random weights; transfers as planned."""
    pytest.importorskip("onnxruntime")
    light_model(name, tmp_path / "model.onnx")
    made = compile_model(
        tmp_path / "model.onnx", machine, tmp_path / "c", settings=FLOATS, problem=problem, objective="bytes"
    )
    assert made.bytes > 0
    printed = build_and_run(tmp_path / "c", "-O2")
    assert "transfers as planned" in printed
    assert difference(printed) < 1e-4


@pytest.mark.slow(2)
def test_a_group_adds_maps(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    residual_model(tmp_path / "model.onnx")
    made = compile_model(
        tmp_path / "model.onnx", "scratchpad_768k", tmp_path / "c", settings=[*FLOATS, "ocm_bytes=20000"],
        problem="fusion", objective="bytes",
    )  # fmt: skip
    assert [row.layers for row in made.plan.part.figures if "e" in row.layers] == [("a", "c", "d", "e")]
    assert difference(build_and_run(tmp_path / "c", BUILDS[3])) < 1e-5


@pytest.mark.slow(1)
def test_a_model_without_weights(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    nodes = [onnx.helper.make_node("Relu", ["x"], ["r"]), onnx.helper.make_node("Sub", ["x", "r"], ["y"])]
    onnx.save(model_of(nodes, {"x": (1, 4, 6, 5)}), tmp_path / "model.onnx")
    compile_model(tmp_path / "model.onnx", "scratchpad_64k", tmp_path / "c", settings=FLOATS)
    assert difference(build_and_run(tmp_path / "c", "-O0")) == 0


@pytest.mark.slow(4)
def test_a_wrong_weight_shows(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "small.onnx")
    compile_model(tmp_path / "small.onnx", "scratchpad_64k", tmp_path / "c", settings=FLOATS, problem="tiling")
    weights = bytearray((tmp_path / "c" / "weights.bin").read_bytes())
    weights[3] ^= 0x80  # the sign of the first one
    (tmp_path / "c" / "weights.bin").write_bytes(bytes(weights))
    with pytest.raises(AssertionError, match="results differ"):
        build_and_run(tmp_path / "c", "-O0")


@pytest.mark.slow(3)
def test_models_that_cannot_be_written(tmp_path: Path) -> None:
    small_model(tmp_path / "small.onnx")
    with pytest.raises(InputError, match=r"float32 takes 4 bytes, it has in_bytes 1.*--set in_bytes=4"):
        compile_model(tmp_path / "small.onnx", "scratchpad_64k", tmp_path / "c")
    with pytest.raises(InputError, match="C is written of tiling, slicing, joint, fusion"):
        compile_model(tmp_path / "small.onnx", "scratchpad_64k", tmp_path / "c", settings=FLOATS, problem="mesh")
    with pytest.raises(InputError, match=r"memory_bytes 5: the plan needs 786,432"):
        emit_c(solve("lenet5", "scratchpad_768k", problem="joint"), tmp_path / "c", memory_bytes=5)
    with pytest.raises(InputError, match=r"an \.onnx or \.tflite file is expected"):
        compile_model("lenet5", "scratchpad_64k", tmp_path / "c")
    with pytest.raises(InputError, match="its layers are not those of the plan"):
        emit_c(solve("lenet5", "scratchpad_64k"), tmp_path / "c", tmp_path / "small.onnx")
    assert not (tmp_path / "c").exists()
