"""What elements are in C: their types on and off the chip, and how products are summed.

Integers
    An element of k bytes is a signed integer; sums are taken modulo 2^(8 k), k the bytes of a partial sum, and a result
    is the sum's low bytes. So the order of additions does not matter, and a sum that is spilled loses nothing that the
    result needs. Layers without weights add.
"""

from __future__ import annotations

from dataclasses import dataclass

from instances.errors import InputError
from instances.machine import Machine

#: Names of integers by their bytes, as in certile_tile.h.
_INTEGERS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


@dataclass(frozen=True)
class Numbers:
    """How a layer computes; names of numbers are those of certile_tile.h."""

    inputs: str
    weights: str
    result: str
    sums: str
    """On chip and off the chip, while a reduction is not complete."""
    bias: str
    total: str
    """The C type that sums are taken in."""

    def read(self, kind: str, place: str) -> str:
        """Read a number, as a total."""
        return f"({self.total})certile_get_{kind}({place})"

    def write(self, kind: str, place: str, value: str) -> str:
        """Write a total as a number."""
        c_type = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "f32": "float"}[kind]
        return f"certile_put_{kind}({place}, ({c_type}){value});"


def integers(machine: Machine) -> Numbers:
    """Return the numbers of a machine as integers.

    Raises
    ------
    InputError
        If C has no integers of these sizes, or partial sums are smaller than results.
    """
    sizes = {"in_bytes": machine.in_bytes, "w_bytes": machine.w_bytes, "out_bytes": machine.out_bytes,
             "psum_bytes": machine.psum_bytes, "bias_bytes": machine.bias_bytes or 4}  # fmt: skip
    for name, size in sizes.items():
        if size not in _INTEGERS:
            raise InputError(f"machine {machine.name}: {name} is {size}, C has integers of 1, 2, 4 and 8 bytes")
    if machine.psum_bytes < machine.out_bytes:
        said = f"psum_bytes is {machine.psum_bytes}, less than out_bytes, {machine.out_bytes}"
        raise InputError(f"machine {machine.name}: {said}: partial sums would lose what results need")
    names = {name: _INTEGERS[size] for name, size in sizes.items()}
    wide = max(sizes.values()) > 4
    return Numbers(
        names["in_bytes"], names["w_bytes"], names["out_bytes"], names["psum_bytes"], names["bias_bytes"],
        "uint64_t" if wide else "uint32_t",
    )  # fmt: skip
