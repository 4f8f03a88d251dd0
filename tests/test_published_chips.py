"""Chips whose figures are published: what their files say of them, and how far that is from what was measured.

docs/machines.md has these figures in a table, with what the files leave out. None of the files was fitted to them but
the flash of `stm32n6`, which says so.
"""

from __future__ import annotations

import pytest

from instances.load import load_machine, load_network
from instances.machine.glance import Glance, glance
from instances.network.network import Network
from instances.network.workload import Layer
from instances.zoo.builder import Builder
from solver import check, solve
from solver.uses.why.relax import lanes_ticks

#: AlexNet as Krizhevsky had it: channels, pixels, filters, kernel, stride, padding, groups.
ALEXNET = (
    (3, 227, 96, 11, 4, 0, 1), (96, 27, 256, 5, 1, 2, 2), (256, 13, 384, 3, 1, 1, 1), (384, 13, 384, 3, 1, 1, 2),
    (384, 13, 256, 3, 1, 1, 2),
)  # fmt: skip


def alexnet(batch: int) -> Network:
    """Its five convolutions, each by itself."""
    net = Builder("alexnet", "AlexNet with groups, 3x227x227")
    for k, (channels, size, filters, kernel, stride, pad, groups) in enumerate(ALEXNET, 1):
        x = net.input(batch, channels, size, size, name=f"in{k}")
        net.conv(x, f"conv{k}", filters, kernel, stride=stride, pad=pad, groups=groups, batch_norm=False, act="")
    return net.build()


def test_eyeriss_computes_alexnet_as_measured() -> None:
    """Chen et al., JSSC 52(1), 2017, Table V and section VI-A: batch 4, 2.66 G MACs, 88 % of the PEs active.

    115.3 ms (34.7 frames/s), 103.5 ms if transfers were hidden. The file makes 90.2 ms, 13 % less than the latter: what
    is left out is that a pass begins with filling the PEs. Where PEs are active they work in all cycles here.
    """
    network, machine = alexnet(4), load_machine("eyeriss_v1")
    plan = solve(network, machine, objective="time", jobs=1)
    assert plan.status == "OPTIMAL"
    macs, cycles = sum(layer.macs for layer in network.layers), plan.measures["cycles"]
    assert macs == pytest.approx(2.66e9, rel=0.002)
    assert macs / cycles / (12 * 14) == pytest.approx(0.88, abs=0.005)
    assert 0.85 * 103.5 <= cycles * machine.tick_ps / 1e9 <= 103.5
    assert check(plan).ok


def test_eyeriss_moves_no_more_of_alexnet_than_measured() -> None:
    """Table V: 15.4 MB for four images, maps run-length coded, which makes 1.2 to 1.9 times of it (Fig. 9).

    The least without a code has to be below what the chip would move without it, and above what it moves with it.
    """
    plan = solve(alexnet(4), "eyeriss_v1", objective="dram", jobs=1)
    assert plan.status == "OPTIMAL"
    assert 15.4e6 <= plan.measures["dram"] <= 1.2 * 15.4e6


@pytest.mark.parametrize(
    ("intensity", "measured", "most"),
    [
        # MLP0, MLP1, LSTM0: the memory is the roof, and is reached to 85 to 90 %
        (200, 12.3, 1.2), (168, 9.7, 1.2), (64, 3.7, 1.2),
        # LSTM1: matrices of 600 x 600 fill tiles of 256 x 256 to 61 % (section 8)
        (96, 2.8, 2.4),
        # CNN0: the array is the roof
        (2888, 86.0, 1.1),
    ],
)  # fmt: skip
def test_tpu_v1_has_the_roofs_of_its_paper(intensity: int, measured: float, most: float) -> None:
    """Jouppi et al., ISCA 2017, Table 1 (operations per byte of weights) and Table 3 (TeraOps/s measured).

    A MAC is two operations, and each byte of weights makes so many of them: 200 * 34 GB/s * 2 are 13.6 TeraOps/s.
    """
    one = glance(load_machine("tpu_v1"))
    assert one.peak is not None
    roof = 2 * min(one.peak, intensity * speeds(one)["ddr3"])
    assert measured <= roof / 1e12 <= most * measured


def speeds(one: Glance) -> dict[str, float]:
    """Bytes/s of every memory off the chip."""
    return {name: speed for name, _, speed in one.off_chip}


@pytest.mark.parametrize(
    ("channels", "filters", "gigabytes", "frames", "least", "most"),
    [
        (64, 32, 20, 269, 0.95, 1.3), (32, 32, 15, 153, 0.95, 1.3), (32, 16, 10, 93, 0.95, 1.3),
        (32, 8, 5, 46, 0.95, 1.3), (16, 8, 2, 20, 0.95, 1.3), (8, 8, 1, 7.3, 1, 2), (8, 4, 0.5, 3.6, 1, 2),
    ],
)  # fmt: skip
def test_nvdla_computes_resnet50_as_its_primer_says(
    channels: int, filters: int, gigabytes: float, frames: float, least: float, most: float
) -> None:
    """nvdla.org, primer, "Example Area and Performance": frames/s of int8 ResNet-50 at 1 GHz by MACs and bandwidth.

    By its own rule, the sum over layers of the longer of MACs and transfers, on lanes as `nvdla_small` has them; sums
    and pools are fused. The shapes of the arrays are ours, with as many MACs. Its first layer runs in image mode (the
    largest array is slower here, by 4 %); the two with 128 KiB, half the buffer of the others, read maps again.
    """
    machine = load_machine(
        "nvdla_small", {"compute.rows": str(filters), "compute.cols": str(channels), "channel_block": "1"}
    )
    cycle = machine.compute.cycle_ticks * machine.tick_ps * 1e-12
    longer = sum(
        max(lanes_ticks(layer, filters, channels) * cycle, moved(layer) / (gigabytes * 1e9))
        for layer in load_network("resnet50_v1").conv_layers
    )
    assert least * frames <= 1 / longer <= most * frames


def moved(layer: Layer) -> int:
    """Bytes of int8 maps and weights, each once."""
    maps = layer.b * layer.g * (layer.n * layer.h * layer.l + layer.m * layer.r * layer.c)
    return maps + layer.weight_elements


@pytest.mark.parametrize(
    ("large", "small", "milliseconds"),
    [(549.88, 321.66, 3.57 - 2.83), (1478.58, 1025.63, 7.38 - 6.06), (4552.42, 3649.97, 19.41 - 16.94)],
)
def test_stm32n6_reads_weights_as_fast_as_measured(large: float, small: float, milliseconds: float) -> None:
    """STMicroelectronics/stm32ai-modelzoo, image_classification/mobilenetv1/README.md: KiB of weights, ms.

    MobileNet v1 of three widths with 1,000 classes and with 101 differ by what the flash takes for the last layer, and
    by its MACs: 0.32, 0.35 and 0.37 GB/s, of the 0.4 that the file says.
    """
    flash = speeds(glance(load_machine("stm32n6")))["flash"]
    assert 0.75 * flash <= (large - small) * 1024 / milliseconds * 1e3 <= flash


@pytest.mark.slow(20)
def test_stm32n6_runs_mobilenet_no_slower_than_measured() -> None:
    """The same page: 3.57 ms for MobileNet v1 0.25 with 1,000 classes.

    The file makes 1.16 ms of it: how its MACs are used, which layers the core computes, and what stands between them is
    not public. A file by which the least were more than what was measured would be wrong, as it was with 0.167 GB/s.
    """
    plan = solve("mobilenet_v1_025", "stm32n6", problem="fusion", objective="time", time_limit_s=20)
    assert plan.measures["time"] * plan.machine_data.tick_ps / 1e9 <= 3.57
    assert check(plan).ok
