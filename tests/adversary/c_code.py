"""The adversary of C code: plans of random networks are written, built, run, and compared with naive loop nests.

A program checks itself (docs/emit.md): results element by element, calls, segments and bytes of every transfer. Here
it is built with the compiler's sanitizers where it has them, and with a DMA that copies as late as it may. What cannot
be written is refused in one line; that is no find.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Self

from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from solver.calls.solve import solve
from solver.uses.emit.emit import TRANSFERS, files_of
from tests.adversary import fusion
from tests.adversary.base import Disagreement
from tests.adversary.cases import frozen

#: Seconds for the search of a plan, for a build and for a run.
_SEARCH_S, _BUILD_S, _RUN_S = 20.0, 300, 120
_LATE = "-O1 -DCERTILE_DMA_LATE"
_SANITIZED = f"{_LATE} -fsanitize=address,undefined -fno-sanitize-recover=all"


@dataclass(frozen=True)
class Case:
    """A network, a memory, and how tensors lie."""

    base: fusion.Case
    problem: str
    layout: str = "CHW"
    w_layout: str = "OIHW"
    bias_bytes: int = 0
    pins: tuple[str, ...] = field(default=())

    @property
    def network(self) -> Network | None:
        """The operators; None if a layer does not fit its operands."""
        return self.base.network if self.base.possible else None

    @property
    def machine(self) -> Machine:
        """One core with a shared memory."""
        told = {"in_layout": self.layout, "out_layout": self.layout, "w_layout": self.w_layout}
        return self.base.machine.model_copy(update={**told, "bias_bytes": self.bias_bytes})

    def smaller(self) -> Iterator[Self]:
        """Yield simpler cases."""
        plain = {"layout": "CHW", "w_layout": "OIHW", "bias_bytes": 0, "pins": ()}
        for name, value in plain.items():
            if getattr(self, name) != value:
                yield replace(self, **{name: value})  # type: ignore[arg-type]
        yield from (replace(self, base=base) for base in self.base.smaller())


class _CCode:
    name = "c"

    def case(self, rng: random.Random) -> Case:
        """A network of one to five small layers, as problem fusion draws it."""
        base = replace(fusion.Case.drawn(rng), energy=False)
        problem = rng.choice(("tiling", "joint", "fusion", "fusion"))
        return Case(
            replace(base, pins=()), problem, rng.choice(("CHW", "HWC")), rng.choice(("OIHW", "OHWI")),
            rng.choice((0, 1, 4)), base.pins if problem == "fusion" else (),
        )  # fmt: skip

    def run(self, case: Case, rng: random.Random) -> list[Disagreement]:
        """Plan, write, build, run; nothing is left to chance."""
        network = case.network
        if network is None:
            return []
        plan = solve(
            network, case.machine, problem=case.problem, pins=case.pins, time_limit_s=_SEARCH_S,
            all_kinds=case.problem == "tiling",
        )  # fmt: skip
        if not plan.decided:
            return []
        found = list[Disagreement]()
        for transfers in TRANSFERS:
            try:
                files = files_of(plan, transfers=transfers)
            except InputError:  # not every plan is written both ways
                continue
            if said := fault_of(files):
                found.append(Disagreement(self.name, f"{case.problem}, {transfers}: {said}", self.to_json(case)))
        return found

    def smaller(self, case: Case) -> Iterator[Case]:
        """Yield simpler cases."""
        return case.smaller()

    def to_json(self, case: Case) -> dict[str, object]:
        """Return the fields, those of the network and the memory as an object."""
        own = {one.name: getattr(case, one.name) for one in fields(case)}
        return {**own, "base": fusion.TESTER.to_json(case.base)}

    def from_json(self, data: Mapping[str, object]) -> Case:
        """Return what `to_json` gave."""
        base = data["base"]
        if not isinstance(base, Mapping):
            raise InputError("case: 'base' must be an object")
        own = {name: frozen(value) for name, value in data.items()}
        return Case(**{**own, "base": fusion.TESTER.from_json(base)})


def has_compiler() -> bool:
    """Return whether programs can be built here."""
    return shutil.which("make") is not None and shutil.which(os.environ.get("CC") or "cc") is not None


@cache
def _flags() -> str:
    """The flags of all builds: with sanitizers if the compiler has them."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        command = [os.environ.get("CC") or "cc", *_SANITIZED.split(), str(source), "-o", str(source.with_suffix(""))]
        made = subprocess.run(command, capture_output=True, check=False, timeout=_BUILD_S)
    return _SANITIZED if made.returncode == 0 else _LATE


def fault_of(files: Mapping[str, str | bytes]) -> str:
    """Return what a program says that does not build or finds a fault; empty if all is well."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in files.items():
            (Path(name) / file).write_bytes(text.encode() if isinstance(text, str) else text)
        for command, seconds in ((["make", "-s", f"CFLAGS={_flags()}"], _BUILD_S), (["./certile"], _RUN_S)):
            done = subprocess.run(command, cwd=name, capture_output=True, check=False, timeout=seconds, text=True)
            if done.returncode:
                lines = (done.stderr + done.stdout).split("\n")
                return f"{' '.join(command[:1])} ends with {done.returncode}: {' / '.join(lines[:4])[:400]}"
    return ""


TESTER = _CCode()
