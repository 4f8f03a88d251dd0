"""Machines one can buy: a network planned and replayed on each, and what its file states."""

from __future__ import annotations

import pytest

from instances.errors import InfeasibleError
from instances.jsonfile import list_machines
from instances.load import load_machine
from instances.machine.glance import glance
from solver import check, solve

#: Family -> its machines, each with MACs a cycle, and 10**9 MACs a second, as its maker states them.
CHIPS = {
    "ESP32": {"esp32_s3": (16, 3.84)},
    "Ethos-U": {
        "ethos_u55_256": (256, 128), "ethos_u65_512": (512, 512), "ethos_u65_levels": (512, 512),
        "ethos_u85_512": (512, 512),
    },
    "Eyeriss": {"eyeriss_v1": (168, 33.6)},
    "FPGA": {"vta_pynq": (256, 25.6)},
    "MAX7800x": {"max78002": (576, 115.2)},
    "NVDLA": {"nvdla_levels": (64, 64), "nvdla_small": (64, 64), "rk3588_npu": (1024, 1024)},
    "PULP": {"gap8": (32, 5.6), "gap8_levels": (32, 5.6), "gap9": (32, 11.84), "gap9_levels": (32, 11.84)},
    "RISC-V": {"gemmini": (256, 128), "gemmini_levels": (256, 128)},
    "STM32": {"stm32h743": (2, 0.96), "stm32n6": (288, 288)},
    "TPU": {"tpu_v1": (65536, 45875)},
}  # fmt: skip
EACH = [(name, *numbers) for chips in CHIPS.values() for name, numbers in chips.items()]
#: Files that say more of a chip than another one, which has its memories in one level.
LEVELS = {
    "ethos_u65_levels": "ethos_u65_512", "gap8_levels": "gap8", "gap9_levels": "gap9", "gemmini_levels": "gemmini",
    "nvdla_levels": "nvdla_small",
}  # fmt: skip
#: Of the memories in levels those that have another name there, or are two.
SAME = {
    "ethos_u65_levels": {"sram": "ocm"}, "gap8_levels": {"l1": "ocm"}, "gap9_levels": {"l1": "ocm"},
    "gemmini_levels": {"acc": "out"}, "nvdla_levels": {"cbuf": "ocm"},
}  # fmt: skip


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
    """Layers on memories in levels, whose time is not always proven: the fewest bytes."""
    problem = load_machine(name).problem
    problem = problem if problem in ("levels", "mesh") else "tiling"
    plan = solve("lenet5", name, problem=problem, objective="bytes" if problem == "levels" else "time")
    assert plan.status == "OPTIMAL"
    assert check(plan).ok


@pytest.mark.parametrize("name", LEVELS)
def test_both_files_of_a_chip_say_the_same(name: str) -> None:
    """Elements, ticks, blocks, MACs; bytes of the memories and prices of the way from the farthest one."""
    levels, one = load_machine(name), load_machine(LEVELS[name])
    assert levels.levels is not None
    for field in ("tick_ps", "in_bytes", "w_bytes", "psum_bytes", "channel_block", "compute", "mac_fj"):
        assert getattr(levels, field) == getattr(one, field), field
    memories = levels.memories | {memory.name: memory.bytes or 0 for memory in one.off_chip}
    for near, known in SAME[name].items():
        assert memories[near] == one.memories[known]
    far = levels.levels.memories[0]
    price = next((memory.transfer for memory in one.off_chip if memory.name == far.name), one.transfer)
    assert (far.call_ticks, far.byte_ticks) == (price.call_ticks, price.byte_ticks)


@pytest.mark.slow(5)
def test_maps_stay_on_max78002() -> None:
    """MobileNet 0.25 fits: image, weights and 1,000 classes move, and nothing else."""
    plan = solve("mobilenet_v1_025", "max78002", objective="bytes")
    weights = sum(layer.weight_elements for layer in plan.network_data.layers)
    assert plan.measures["bytes"] == weights + 3 * 224 * 224 + 1000


def test_what_max78002_has_no_room_for() -> None:
    """ResNet-50 has 25 MB of weights, and there are 2,340 KiB for them."""
    with pytest.raises(InfeasibleError, match=r"max78002: memory kernels off the chip: [\d,]+ bytes of 2,396,160"):
        solve("resnet50", "max78002", objective="bytes")
