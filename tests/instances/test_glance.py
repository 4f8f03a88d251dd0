"""Machines at a glance: figures worked out by hand, and the nearest ones."""

from __future__ import annotations

import json
import re

import pytest

from instances.errors import InputError
from instances.load import load_machine
from instances.machine.glance import distance, glance, wanted
from solver.cli.main import main


def test_figures_by_hand() -> None:
    """16 x 64 MACs of 8 ticks of 125 ps: 1,024 at 1 GHz; a byte a tick: 8 GB/s."""
    one = glance(load_machine("scratchpad_768k"))
    assert (one.on_chip, one.macs, one.clock_hz, one.peak) == (786432, 1024, 1e9, 1.024e12)
    assert one.off_chip == (("DRAM", None, 8e9),)


def test_bursts_and_clusters_count() -> None:
    """128 bytes take 400 + 128 * 8 ticks of 125 ps, 178 ns, and four clusters load at once: 2.88 GB/s."""
    one = glance(load_machine("nmp"))
    assert one.on_chip == 4 * 8 * 3 * 8192
    assert one.macs == 4 * 8 * 32
    assert one.bandwidth == pytest.approx(4 * 128 / 178e-9)


def test_pixels_side_by_side_share_a_cycle() -> None:
    """8 x 8 MACs for four pixels, 8 ticks of 250 ps each: 256 MACs at 125 MHz."""
    machine = load_machine("u256_flash")
    unit = machine.compute.model_copy(update={"rows": 8, "cols": 8, "pixels": 4})
    one = glance(machine.model_copy(update={"compute": unit}))
    assert (one.macs, one.clock_hz) == (256, 125e6)
    assert one.peak == 64 * 500e6
    assert [name for name, _, _ in one.off_chip] == ["sram", "flash"]


def test_doublings_away() -> None:
    """Twice the memory and a quarter of the MACs are three doublings."""
    goals = wanted("1536 KiB, 256 MACs")
    assert goals == {"on_chip": 1536 * 1024, "macs": 256}
    assert distance(glance(load_machine("scratchpad_768k")), goals) == pytest.approx(3)
    assert distance(glance(load_machine("galaxy_s9")), goals) is None
    assert wanted("2 TOPS, 0.5 GHz, 16 bit, 2.5 MB/s") == {
        "peak": 1e12, "clock_hz": 5e8, "element": 2, "bandwidth": 2.5e6,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "fast", "12", "0 KiB", "3 parsecs", "1 KiB, 2 KiB", "KiB 3"])
def test_what_is_no_number_with_a_unit(text: str) -> None:
    with pytest.raises(InputError, match=f"^--like {re.escape(repr(text))}"):
        wanted(text)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "--like", "512 KiB, 1024 MACs, 8 GB/s"]) == 0
    said = capsys.readouterr().out
    assert said.index("scratchpad_512k") < said.index("scratchpad_768k")
    assert "begin with it: certile solve NETWORK -m scratchpad_512k" in said
    assert main(["machines", "--json", "nmp"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["macs"] == 1024
    assert main(["machines", "--check", "--like", "1 KiB"]) == 2
