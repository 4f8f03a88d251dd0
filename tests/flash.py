"""Machines whose weights lie in a memory of their own, with a DMA queue for both memories or one for each."""

from __future__ import annotations

from typing import Literal

from instances.machine.machine import Machine


def with_flash(
    machine: Machine, call: int = 0, segment: int = 0, byte: int = 4, channels: Literal["one", "each"] = "each"
) -> Machine:
    """The same machine, which loads weights from flash: ticks of a call, of a segment and of a byte."""
    fields = machine.model_dump()
    near, each = fields.pop("transfer"), fields.pop("byte_fj")
    far = {"model": "dma", "call_ticks": call, "segment_ticks": segment, "byte_ticks": byte}
    return Machine.model_validate({
        **fields, "channels": channels, "homes": {"IN": ["ram"], "W": ["flash"], "OUT": ["ram"]},
        "off_chip": [{"name": "ram", "transfer": near, "byte_fj": each},
                     {"name": "flash", "transfer": far, "byte_fj": each, "writable": False}],
    })  # fmt: skip
