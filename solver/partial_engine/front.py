"""The front of DSPs against the frame rate of a network, for the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from formulations.partial_engine.size import SECONDS, Size
from hwmodels.partial_engine.work import engine_of
from instances.errors import InputError
from instances.network import Network
from instances.partial_engine import PartialEngine
from solver import console, options
from solver.partial_engine.size import front_engine
from solver.report import rows_table

__all__ = ["fits", "print_size_front", "size_row"]

_AXES = "dsps,rate"
_HEADS = ("e_in x e_out", "DSPs", "block RAMs", "cycles", "frames a second", "fits")


def fits(size: Size, engine: PartialEngine) -> bool:
    """Whether a size keeps the budget of the machine's FPGA."""
    return size.dsps <= engine.dsps and size.brams <= engine.brams


def size_row(size: Size, engine: PartialEngine) -> dict[str, object]:
    """Return a size as JSON."""
    return {**asdict(size), "rates": [rate / SECONDS for rate in size.rates], "fits": fits(size, engine)}


def print_size_front(
    network: Network, machine: str, axes: str, pins: Sequence[str], settings: Sequence[str], *, out: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print the exact front of a network, all sizes up to 64 x 64.

    Raises
    ------
    InputError
        For other axes, and for pins.
    """
    if axes not in (_AXES, ""):
        raise InputError(f"axes {axes!r}: problem engine has the front {_AXES}")
    if pins:
        raise InputError(f"pin {pins[0]!r}: the front of engine sizes takes no pins")
    engine = engine_of(options.pick_machine(machine, tuple(settings)))
    found = front_engine([network], machine, settings=settings)
    rows = [size_row(size, engine) for size in found]
    text = json.dumps(
        {"format": "certile-engine-front/1", "network": network.name, "machine": machine, "sizes": rows}, indent=1
    )
    if out is not None:
        console.write(out, text + "\n")
    if as_json:
        console.emit(text)
        return
    cells = [
        [f"{s.e_in} x {s.e_out}", str(s.dsps), str(s.brams), f"{s.cycles[0]:,}", f"{s.rates[0] / SECONDS:,.1f}",
         "yes" if fits(s, engine) else "no"] for s in found
    ]  # fmt: skip
    said = f"{len(found)} sizes, no other is on the front; fits: {engine.dsps} DSPs and {engine.brams} block RAMs"
    console.emit_tables(rows_table(_HEADS, cells), "", said, *([f"written to {out}"] if out else []))
