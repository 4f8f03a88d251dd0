"""What tests of several rooms share: small layers, machines and a replay that must have no fault."""

from __future__ import annotations

from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Nest
from instances.machine.machine import Machine, Transfer
from instances.network.operators import Conv
from instances.network.workload import Layer

#: All operands are held at once.
ALL = (Hold("IN"), Hold("W"), Hold("OUT"))
# 2 channels of 4x4, 3 filters of 3x3, padding 1: output 3x4x4
TINY = Layer.conv("tiny", channels=2, filters=3, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
# 1x1, 4 channels to 4 channels on a 2x2 map
POINT = Layer.conv("point", channels=4, filters=4, size=(2, 2))


def machine(**fields: object) -> Machine:
    """One core, one-byte elements, four-byte partial sums, a large memory, a price of one tick per byte."""
    base: dict[str, object] = {
        "name": "test", "tick_ps": 1000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4,
        "ocm_bytes": 1 << 16, "transfer": Transfer(byte_ticks=1),
    }  # fmt: skip
    if "in_buffer_bytes" in fields:
        del base["ocm_bytes"]
    return Machine.model_validate({**base, **fields})


def byte_machine(**fields: object) -> Machine:
    """One byte an element, one tick a byte."""
    sizes = dict.fromkeys(("tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 1)
    return Machine.model_validate({"name": "m", **sizes, "transfer": Transfer(byte_ticks=1), **fields})


def conv(
    name: str, before: str, shape: tuple[int, ...], filters: int, taps: int = 1, stride: int = 1, groups: int = 1
) -> Conv:
    """A convolution of a map of this shape, as large as its results times the stride."""
    size = tuple((s - 1) // stride + 1 for s in shape[2:])
    return Conv(
        name=name, inputs=(before,), shape=(shape[0], filters, *size), filters=filters, kernel=(taps, taps),
        stride=(stride, stride), pad=(taps // 2,) * 4, groups=groups,
    )  # fmt: skip


def rows_of(layer: Layer, on: Machine, *items: Item) -> dict[str, Counts]:
    result = replay(layer, on, Nest(items))
    assert result.faults == ()
    assert result.executed
    return result.outcome.by_operand


#: 64 bytes on chip, 10 ticks a transfer and one a byte.
TOY = Machine(
    name="toy", tick_ps=1000, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64,
    transfer=Transfer(call_ticks=10, byte_ticks=1), byte_fj=100, mac_fj=1,
)  # fmt: skip
