"""Kinds of numbers: what C calls them (certile_tile.h), what numpy does, and whether a machine's elements hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from instances.errors import InputError
from instances.machine.machine import Machine

#: numpy's names.
KINDS = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16",
    "float32": "f32",
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}
BYTES = {kind: int(kind[1:]) // 8 for kind in NAMES}
C_TYPES = {kind: f"{NAMES[kind]}_t" for kind in NAMES} | {"f16": "float", "f32": "float"}
#: Of maps that are quantised.
QUANTISED = ("u8", "i8", "u16", "i16")
FLOATS = ("f32", "f16")


def dtype(kind: str) -> np.dtype:
    """Return numpy's type of a kind."""
    return np.dtype(NAMES[kind])


def limits(kind: str) -> tuple[int, int]:
    """Return the smallest and the largest integer of a kind."""
    found = np.iinfo(dtype(kind))
    return int(found.min), int(found.max)


@dataclass(frozen=True)
class Elements:
    """What maps of a model are held as on a machine."""

    machine: Machine
    quantised: bool
    """Whether the model quantises its maps: real numbers are never rounded to half precision then."""
    maps: str = ""
    """The type of the model's maps, as numpy calls it."""
    rule: str = "float"
    """How sums of integers become results (`solver.uses.emit.requantise`)."""

    def held(self, kind: str) -> str:
        """The kind in which layers hold a tensor; empty if the machine's elements have other bytes."""
        size = self.machine.in_bytes
        if kind not in FLOATS:
            return kind if kind in QUANTISED and BYTES[kind] == size else ""
        if self.quantised and BYTES[kind] != size:
            return ""
        return {4: "f32", 2: "f16"}.get(size, "")

    @property
    def sums(self) -> str:
        """The kind of sums of integers."""
        return "i64" if self.machine.psum_bytes > BYTES["i32"] else "i32"

    def said(self) -> str:
        """What maps and sums are held as, where that differs from the file."""
        if self.quantised:
            by = "" if self.rule == "float" else f", requantised by whole numbers ({self.rule})"
            return f"{self.maps}, sums of {NAMES[self.sums]}{by}"
        held = NAMES[self.held("f32")]
        rounded = f" (the file: {self.maps})" if self.maps not in ("", held) else ""
        return f"{held}{rounded}, sums of float32"

    @property
    def tolerance(self) -> float:
        """How far real results may be from those of another program that rounds otherwise, of the largest one."""
        halves = self.maps == "float16" or self.machine.out_bytes == BYTES["f16"]
        return 2e-2 if self.quantised else 5e-3 if halves else 1e-4

    def check(self, weights: str) -> None:
        """Raise InputError unless the machine counts elements as a quantised model has them (numpy's names)."""
        machine, maps = self.machine, self.maps
        size = {"maps": BYTES.get(KINDS.get(maps, ""), 0), "weights": BYTES.get(KINDS.get(weights, ""), 0)}
        if KINDS.get(maps) not in QUANTISED:
            raise InputError(f"the model is quantised, its maps are of {maps or 'an unknown type'}: no C is written")
        wanted: Mapping[str, tuple[int, ...]] = {
            "in_bytes": (size["maps"],), "out_bytes": (size["maps"],), "psum_bytes": (4, 8), "bias_bytes": (4, 0, 8),
            "w_bytes": (size["weights"],) if size["weights"] else (machine.w_bytes,),
        }  # fmt: skip
        has = {name: getattr(machine, name) for name in wanted}
        wrong = [name for name, accepted in wanted.items() if has[name] not in accepted]
        if wrong:
            said = ", ".join(f"{name} {has[name]}" for name in wrong)
            options = " ".join(f"--set {name}={wanted[name][0]}" for name in wrong)
            what = f"maps of {maps}, weights of {weights or 'maps'} and sums of int32 or int64"
            raise InputError(f"machine {machine.name}: for {what} it has {said}: plan with {options}")
