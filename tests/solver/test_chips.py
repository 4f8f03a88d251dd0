"""Machines one can buy: a network planned and replayed on each, and what its file states."""

from __future__ import annotations

import pytest

from instances.jsonfile import list_machines
from instances.load import load_machine
from instances.machine.glance import glance
from solver import check, solve

#: Family -> its machines, each with MACs a cycle, and 10**9 MACs a second, as its maker states them.
CHIPS = {
    "ESP32": {"esp32_s3": (16, 3.84)},
    "Ethos-U": {"ethos_u55_256": (256, 128), "ethos_u65_512": (512, 512), "ethos_u85_512": (512, 512)},
    "FPGA": {"vta_pynq": (256, 25.6)},
    "NVDLA": {"nvdla_small": (64, 64), "rk3588_npu": (1024, 1024)},
    "PULP": {"gap8": (32, 5.6), "gap9": (32, 11.84)},
    "RISC-V": {"gemmini": (256, 128)},
    "STM32": {"stm32h743": (2, 0.96), "stm32n6": (288, 288)},
    "TPU": {"tpu_v1": (65536, 45875)},
}
EACH = [(name, *numbers) for chips in CHIPS.values() for name, numbers in chips.items()]


@pytest.mark.parametrize(("name", "macs", "peak"), EACH)
def test_macs_and_clock_are_those_of_the_chip(name: str, macs: int, peak: float) -> None:
    """To the picosecond that a tick is rounded to: 0.5 % at the most."""
    found = glance(load_machine(name))
    assert found.macs == macs
    assert found.peak is not None
    assert found.peak / 1e9 == pytest.approx(peak, rel=5e-3)


def test_every_chip_is_here() -> None:
    found = {name: load_machine(name).family for name in list_machines()}
    assert {name: family for name, family in found.items() if family} == {
        name: family for family, chips in CHIPS.items() for name in chips
    }


@pytest.mark.slow(2, every=True)
@pytest.mark.parametrize("name", [name for name, _, _ in EACH])
def test_a_network_is_planned_and_replayed(name: str) -> None:
    plan = solve("lenet5", name, problem="tiling", objective="time")
    assert plan.status == "OPTIMAL"
    assert check(plan).ok
