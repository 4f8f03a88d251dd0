"""Programs without an operating system: on a Cortex-M7 that QEMU emulates, where it and a compiler are there.

Debian: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from certile import emit_c, solve

HERE = Path(__file__).parent / "cortex_m"
COMPILER = "arm-none-eabi-gcc"
CORE = "-mcpu=cortex-m7 -mthumb"

if not shutil.which(COMPILER):
    pytest.skip(f"{COMPILER} is not there", allow_module_level=True)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def lenet5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of LeNet-5 as one network, on integers."""
    folder = tmp_path_factory.mktemp("bare") / "c"
    emit_c(solve("lenet5", "scratchpad_768k", problem="joint"), folder)
    return folder


def test_it_links_without_a_c_library(lenet5: Path) -> None:
    done = run("make", "-s", "-C", lenet5, "bare", f"CC={COMPILER}", f"CFLAGS=-Os {CORE}")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n *\d+\t *0\t *\d+\t", done.stdout)  # code, and no data but what is zero at first


@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not there")
@pytest.mark.parametrize(("planned", "ends", "said"), [
    ("{1, 1, 150}", 0, "7 layers as one network: results and transfers as planned"),
    ("{1, 1, 151}", 1, "W moved by 1 calls, 1 segments, 150 bytes; planned 1, 1, 151"),
])  # fmt: skip
def test_an_emulated_core_computes_and_moves_what_is_planned(
    lenet5: Path, tmp_path: Path, planned: str, ends: int, said: str
) -> None:  # fmt: skip
    """With its check, which prints and ends through the emulator."""
    shutil.copytree(lenet5, tmp_path / "c")
    main = tmp_path / "c" / "main.c"
    main.write_text(main.read_text().replace("{1, 1, 150}", planned, 1))
    flags = [*CORE.split(), "-std=c11", "-O2", "-DCERTILE_CHECK", "--specs=rdimon.specs", "-T", HERE / "mps2_an500.ld"]
    program, sources = tmp_path / "lenet5.elf", sorted((tmp_path / "c").glob("*.c"))
    built = run(COMPILER, *flags, "-o", program, HERE / "start.c", *sources, "-lm")
    assert built.returncode == 0, built.stderr
    ran = run("qemu-system-arm", "-M", "mps2-an500", "-nographic", "-semihosting", "-kernel", program)
    assert (ran.returncode, said in ran.stdout) == (ends, True), ran.stdout + ran.stderr
