"""Where tensors lie off the chip in C: shared addresses, homes, sections, constants; and who may touch them."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from solver.calls.solve import solve
from solver.uses.emit.emit import compile_model, emit_c
from solver.uses.emit.offchip import OffChip
from solver.uses.emit.program import runtime
from tests.effort import tries
from tests.emitted import (
    FLOATS,
    build_and_run,
    needs_gcc,
    random_network,
    random_scratchpad,
    residual_model,
    small_model,
)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "-s", *arguments], cwd=folder, capture_output=True, text=True, check=False)


# ---- addresses ---------------------------------------------------------------------------------------------------


def test_maps_share_addresses_by_hand() -> None:
    """conv1 (112 bytes) at steps 0, 1; conv2 (64) at 1, 2; conv3 (80) at 2, 3: at the most 112 + 64, and no more."""
    found = OffChip(4)
    for name, size, begin in (("one", 112, 0), ("two", 64, 1), ("three", 80, 2)):
        found.add(name, size, "dram")
        found.touch([name], begin)
        found.touch([name], begin + 1)
    assert found.regions == {"certile_maps_dram": 176}
    places = found.places
    assert places["one"] + 112 <= places["two"] or places["two"] + 64 <= places["one"]
    assert places["two"] + 64 <= places["three"] or places["three"] + 80 <= places["two"]


def test_homes_have_arrays_of_their_own() -> None:
    """Constants follow each other from multiples of 16 on: 20 bytes, then from 32 on 5; other memories apart."""
    found = OffChip(2)
    found.add("w1", 20, "flash", constant=True)
    found.add("w2", 5, "flash", constant=True)
    found.add("w3", 7, "sram", constant=True)
    found.add("map", 9, "sram")
    found.touch(["map"], 1)
    assert found.regions == {"certile_weights_flash": 37, "certile_weights_sram": 7, "certile_maps_sram": 9}
    assert (found.places["w1"], found.places["w2"]) == (0, 32)
    image = found.image({"w1": bytes(range(20)), "w2": b"abcde", "w3": b"1234567"})
    assert image == bytes(range(20)) + bytes(12) + b"abcde" + b"1234567"
    assert '.incbin "weights.bin", 37, 7' in found.assembly()


def test_a_group_is_one_step() -> None:
    """What is read in step 1 and what is made in step 3 meet, as 1 to 3 run together."""
    found = OffChip(5, [(1, 3)])
    for name, step in (("read", 1), ("made", 3)):
        found.add(name, 16, "dram")
        found.touch([name], step)
    assert [(t.first, t.last) for t in found.tensors.values()] == [(1, 3), (1, 3)]
    assert found.regions == {"certile_maps_dram": 32}


@pytest.mark.parametrize("seed", range(tries(4, 12)))
def test_no_two_tensors_meet(seed: int) -> None:
    """Random lifetimes: those that are there together lie apart, in at most 1/8 more than what is there at one time."""
    rng = random.Random(seed)
    steps, found = rng.randint(3, 30), OffChip(30)
    for k in range(rng.randint(4, 15)):
        found.add(f"t{k}", rng.randint(1, 999), "dram")
        for _ in range(2):
            found.touch([f"t{k}"], rng.randrange(steps))
    ones = list(found.tensors.values())
    for k, a in enumerate(ones):
        for b in ones[:k]:
            apart = found.places[a.name] + a.bytes <= found.places[b.name]
            apart = apart or found.places[b.name] + b.bytes <= found.places[a.name]
            assert apart or a.last < b.first or b.last < a.first
    most = max(sum(-(-t.bytes // 16) * 16 for t in ones if t.first <= s <= t.last) for s in range(steps))
    assert found.regions["certile_maps_dram"] <= most * 9 / 8


# ---- programs ----------------------------------------------------------------------------------------------------


def maps_of(folder: Path) -> tuple[int, int]:
    """Bytes of the arrays of maps, and of all maps together."""
    header = (folder / "network.h").read_text()
    arrays = re.findall(r"extern unsigned char certile_maps_\w+\[CERTILE_ROOM\((\d+)\)\]", header)
    maps = re.findall(r"#define \w+ \(certile_maps_\w+ \+ \d+\) /\* (\d+) bytes", header)
    return sum(map(int, arrays)), sum(map(int, maps))


@pytest.mark.slow(4)
@needs_gcc
def test_a_model_in_shared_addresses(tmp_path: Path) -> None:
    """The small model as a program: right, guarded, and linked without a C library, with its constants inside."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=FLOATS, problem="tiling")
    room, together = maps_of(tmp_path / "c")
    assert room < 0.6 * together
    build_and_run(tmp_path / "c", "-O0")
    bare = make(tmp_path / "c", "bare")
    assert bare.returncode == 0, bare.stderr
    program, weights = (tmp_path / "c" / "network.bare").read_bytes(), (tmp_path / "c" / "weights.bin").read_bytes()
    assert weights[:64] in program


@pytest.mark.slow(4)
@needs_gcc
def test_own_mathematics_in_a_model(tmp_path: Path) -> None:
    """A softmax behind it: as onnxruntime, by polynomials."""
    pytest.importorskip("onnxruntime")
    small_model(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_64k", tmp_path / "c", settings=FLOATS, problem="tiling")
    built = make(tmp_path / "c", "run", "MATH=own")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "transfers as planned" in built.stdout


@pytest.mark.slow(3)
@needs_gcc
def test_each_home_has_its_section(tmp_path: Path) -> None:
    """Weights in flash, maps in SRAM: arrays in sections of these names."""
    residual_model(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "u256_flash", tmp_path / "c", settings=FLOATS, pins=["home_W=flash"])
    header = (tmp_path / "c" / "network.h").read_text()
    assert '#define CERTILE_IN_WEIGHTS_FLASH CERTILE_IN(".bss.certile_weights_flash")' in header
    assert '#define CERTILE_IN_MAPS_SRAM CERTILE_IN(".bss.certile_maps_sram")' in header
    assert ".rodata.certile_weights_flash" in (tmp_path / "c" / "weights.S").read_text()
    build_and_run(tmp_path / "c", "-O0 -DCERTILE_IN_MAPS_SRAM=")
    assert make(tmp_path / "c", "bare").returncode == 0


# ---- nothing but transfers ---------------------------------------------------------------------------------------


@pytest.mark.slow(2)
@needs_gcc
def test_what_is_no_transfer_is_caught(tmp_path: Path) -> None:
    """A group and layers by themselves pass; one read of an input in a layer's function does not."""
    pytest.importorskip("onnxruntime")
    residual_model(tmp_path / "m.onnx")
    compile_model(tmp_path / "m.onnx", "scratchpad_768k", tmp_path / "c", settings=FLOATS, problem="tiling")
    good = make(tmp_path / "c", "guard", "CFLAGS=-O0")
    assert good.returncode == 0, good.stdout + good.stderr
    assert re.search(r"guard: \d+ arrays off the chip were touched by certile_dma alone", good.stdout)
    layer = next((tmp_path / "c").glob("layer_001_*.c"))
    text = layer.read_text()
    layer.write_text(text.replace("    in_dram[0] =", "    if (in[0][5] == 3) { return; }\n    in_dram[0] =", 1))
    assert layer.read_text() != text
    bad = make(tmp_path / "c", "guard", "CFLAGS=-O0")
    assert bad.returncode != 0
    assert re.search(r"FAILED: byte \d+ of certile_maps_dram is touched past certile_dma", bad.stderr)


@pytest.mark.slow(9)
@needs_gcc
@pytest.mark.parametrize("problem", ["joint", "fusion"])
def test_random_networks_touch_nothing_else(tmp_path: Path, problem: str) -> None:
    """Maps on chip, groups, copies of the host: on integers, with a DMA that copies as late as it may."""
    rng = random.Random(1000)
    network = random_network(rng)
    plan = solve(network, random_scratchpad(rng, network), problem=problem, time_limit_s=20)
    assert plan.decided
    emit_c(plan, tmp_path / "c")
    ran = make(tmp_path / "c", "guard", "CFLAGS=-O1 -DCERTILE_DMA_LATE")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "results and transfers as planned" in ran.stdout
    assert make(tmp_path / "c", "bare").returncode == 0


# ---- mathematics -------------------------------------------------------------------------------------------------

_TRIED = """
#include <math.h>
#include <stdio.h>
#include <string.h>
float own_expf(float), own_logf(float), own_sqrtf(float), own_tanhf(float), own_erff(float), own_sinf(float);
float own_cosf(float), own_tanf(float), own_floorf(float), own_ceilf(float), own_rintf(float), own_powf(float, float);
static void each(const char *name, float (*own)(float), double (*right)(double), double lo, double hi, int absolute)
{
    double worst = 0;
    for (int k = 0; k <= 200000; k++) {
        const float x = (float)(lo + (hi - lo) * k / 200000);
        const double want = right((double)x), apart = fabs((double)own(x) - want);
        const double far = apart == 0 ? 0 : absolute ? apart : apart / fabs(want);
        worst = fmax(worst, isnan(far) ? INFINITY : far);
    }
    printf("%s %.3g\\n", name, worst);
}
int main(void)
{
    each("expf", own_expf, exp, -87, 88, 0);
    each("logf", own_logf, log, 1e-30, 4, 0);
    each("logf", own_logf, log, 0.9, 1.1, 0);
    each("sqrtf", own_sqrtf, sqrt, 0, 1e6, 0);
    each("tanhf", own_tanhf, tanh, -12, 12, 0);
    each("tanhf", own_tanhf, tanh, -0.1, 0.1, 0);
    each("erff", own_erff, erf, -7, 7, 0);
    each("erff", own_erff, erf, -0.01, 0.01, 0);
    each("sinf", own_sinf, sin, -1e6, 1e6, 1);
    each("cosf", own_cosf, cos, -1000, 1000, 1);
    each("tanf", own_tanf, tan, -1.5, 1.5, 0);
    each("floorf", own_floorf, floor, -50, 50, 0);
    each("ceilf", own_ceilf, ceil, -50, 50, 0);
    each("rintf", own_rintf, rint, -50, 50, 0);
    double worst = 0;
    for (int a = 1; a < 400; a++) {
        for (int b = -80; b <= 80; b++) {
            const float x = (float)(a * 0.05), y = (float)(b * 0.25);
            const double want = pow((double)x, (double)y), far = fabs((double)own_powf(x, y) - want) / want;
            worst = want < 3e38 && want > 1e-37 ? fmax(worst, isnan(far) ? INFINITY : far) : worst;
        }
    }
    printf("powf %.3g\\n", worst);
    const float few[] = {own_powf(-2, 3), own_powf(-2, 2), own_powf(0, 2), own_powf(0, -1), own_powf(5, 0),
                         own_powf(-2, 0.5f),
                         own_expf(1000), own_expf(-1000), own_logf(0), own_logf(-1), own_tanhf(50), own_erff(-9),
                         own_sqrtf(-1),
                         own_rintf(2.5f), own_rintf(-3.5f), own_floorf(-2.5f), own_ceilf(2.0f)};
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        printf("%g ", (double)few[k]);
    }
    return 0;
}
"""


@needs_gcc
def test_own_mathematics(tmp_path: Path) -> None:
    """Against the library's in double precision, and at the ends."""
    (tmp_path / "certile_math.c").write_text(runtime("certile_math.c")["certile_math.c"])
    (tmp_path / "main.c").write_text(_TRIED)
    flags = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", "-DCERTILE_OWN_MATH", "-DCERTILE_MATH(x)=own_##x"]
    subprocess.run(["gcc", *flags, "-o", "tried", "certile_math.c", "main.c", "-lm"], cwd=tmp_path, check=True)
    *lines, few = subprocess.run([tmp_path / "tried"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 15
    for line in lines:
        assert float(line.split()[1]) < 1e-6, line
    want = [-8, 4, 0, np.inf, 1, np.nan, np.inf, 0, -np.inf, np.nan, 1, -1, np.nan, 2, -4, -3, 2]
    assert np.array_equal(np.array(few.split(), float), np.array(want, float), equal_nan=True)
