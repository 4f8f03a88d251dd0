"""The public simulator DRAMsim3 (umd-memsys/DRAMsim3, ISPASS 2020 letter "DRAMsim3"), driven by `driver.cpp`.

Its folder has `src`, `configs` and the built library (`cmake -B build && cmake --build build --target dramsim3`).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hwmodels.timeline.schedule import Store, awaits, begins
from instances.errors import InputError
from tests.referees.dram.trace import Trace

#: 64 bits of LPDDR3-1333 in two chips: 10.67 GB/s at the most, lines of 64 bytes.
CONFIG = "LPDDR3_8Gb_x32_1333"
_DRIVER = Path(__file__).with_name("driver.cpp")


@dataclass(frozen=True)
class Simulated:
    """What a plan takes."""

    latency_ps: int
    moving_ps: int
    """The sum of all transfers."""
    read_lines: int
    written_lines: int


class Simulator:
    """The driver, compiled for a folder of DRAMsim3 and one of its memories, with another width of its bus or not.

    `into` is where the driver is written. Raises InputError if the folder has no library or no such memory.
    """

    def __init__(self, folder: Path, into: Path, config: str = CONFIG, bus_bits: int = 0) -> None:
        folder = folder.resolve()
        given = folder / "configs" / f"{config}.ini"
        if not (folder / "libdramsim3.so").exists():
            raise InputError(f"{folder} has no libdramsim3.so: build DRAMsim3 there (CONTRIBUTING.md)")
        if not given.exists():
            raise InputError(f"{folder / 'configs'} has no {config}.ini")
        self.driver, self.config = into / "driver", into / "memory.ini"
        text = given.read_text(encoding="utf-8")
        if bus_bits:
            text = re.sub(r"(?m)^bus_width *=.*$", f"bus_width = {bus_bits}", text)
        self.config.write_text(text, encoding="utf-8")
        library = f"-L{folder}", "-ldramsim3", f"-Wl,-rpath,{folder}"
        command = ["g++", "-std=c++11", "-O2", f"-I{folder / 'src'}", str(_DRIVER), "-o", str(self.driver), *library]
        subprocess.run(command, check=True)

    def run(self, trace: Trace, mode: str = "whole", *, calls: bool = True) -> Simulated:
        """Carry a plan out (`driver.cpp` says how): `whole`, its transfers `alone`, or as `planned`.

        Without `calls` a transfer requests its first line when it begins.
        """
        told = "\n".join(events(trace, calls=calls))
        with tempfile.TemporaryDirectory() as folder:
            command = [str(self.driver), str(self.config), folder, mode]
            done = subprocess.run(command, input=told, capture_output=True, text=True, check=True)
        return Simulated(*map(int, done.stdout.split()))


def events(trace: Trace, *, calls: bool = True) -> Iterator[str]:
    """Yield the events of a plan as the driver reads them."""
    machine, steps = trace.dram.machine, trace.timeline.steps
    yield f"{machine.tick_ps}\n{len(steps)}"
    yield " ".join(str(one.ticks) for one in steps)
    yield str(len(trace.transfers))
    for one in trace.transfers:
        move, call = one.move, machine.transfer_of(one.operand).call_ticks * one.calls * calls
        head = begins(move), awaits(move), int(isinstance(move, Store)), move.ticks, call, len(one.runs)
        yield " ".join(map(str, chain(head, one.runs.ravel().tolist())))
