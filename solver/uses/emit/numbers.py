"""What elements are in C: their types on and off the chip, how products are summed, and what becomes of a sum.

Integers
    An element of k bytes is a signed integer; sums are taken modulo 2^(8 k), k the bytes of a partial sum, and a result
    is the sum's low bytes. So the order of additions does not matter, and a sum that is spilled loses nothing that the
    result needs. Layers without weights add.
Floats
    Elements of 4 bytes are IEEE single precision, those of 2 half precision. Sums are single, taken in the order of the
    plan.
Quantised models
    `solver.uses.emit.arithmetic` says how their layers compute.
"""

from __future__ import annotations

from dataclasses import dataclass

from instances.errors import InputError
from instances.machine.machine import Machine
from solver.uses.emit.kinds import C_TYPES

#: The sizes of a machine's elements: inputs, weights, results, sums and biases.
_SIZES = ("in_bytes", "w_bytes", "out_bytes", "psum_bytes", "bias_bytes")
#: Names of integers by their bytes, as in certile_tile.h.
_INTEGERS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
#: Floats by their bytes.
_FLOATS = {2: "f16", 4: "f32"}


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
    start: str = "0"
    """What a sum begins with."""
    combine: str = "{row} += {value};"
    """How a value comes to a total."""
    combine_first: str = ""
    """The same for the first of several inputs, if that differs."""
    each: tuple[str, ...] = ()
    """The same for every input by itself; {at_0}, {at_1} and so on are places of their own."""
    finished: tuple[str, ...] = ()
    """A C function ``finished(x, b, g, m, r, c)`` of a complete sum, with what it needs; none: it is the result."""
    seen: tuple[tuple[str, ...], ...] = ()
    """By input a C function ``seen_k(x, b, g, n, y, x)`` of what is read; none: it is taken as it is."""
    taken: tuple[str, ...] = ()
    """By input how an element is read, a C text of {place} and {names}; none: as `inputs`."""
    weight_zero: str = ""
    """What is taken off every weight, a C text of g and m."""
    tables: tuple[str, ...] = ()
    """Lines that stand before all functions."""

    @property
    def functions(self) -> list[tuple[str, ...]]:
        """What stands before all else in a file, part by part."""
        return [text for text in (self.tables, self.finished, *self.seen) if text]

    def given(self, k: int, place: str, names: str) -> str:
        """Read an element of an input, as what the layer takes; `names` is its place: b, g, n, row, column."""
        return self.taken[k].format(place=place, names=names) if self.taken else self.read(self.inputs, place)

    def weight(self, place: str) -> str:
        """Read a weight."""
        value = self.read(self.weights, place)
        return f"({value} - {self.weight_zero})" if self.weight_zero else value

    def read(self, kind: str, place: str) -> str:
        """Read a number, as a total."""
        return f"({self.total})certile_get_{kind}({place})"

    def write(self, kind: str, place: str, value: str) -> str:
        """Write a total as a number."""
        return f"certile_put_{kind}({place}, ({C_TYPES[kind]}){value});"

    def final(self, value: str) -> str:
        """What a complete sum of the result b, g, m, r, c becomes."""
        return f"finished({value}, b, g, m, r, c)" if self.finished else value

    def add(self, row: str, value: str, k: int) -> str:
        """Take a value of input k into a total."""
        if self.each:
            found = {f"at_{n}": self.apart(row, n) for n in range(len(self.each))}
            return self.each[k].format(row=row, value=value, **found)
        return (self.combine_first if k == 0 and self.combine_first else self.combine).format(row=row, value=value)

    @staticmethod
    def apart(row: str, k: int) -> str:
        """The place of what input k gives, beside a total."""
        name, bracket, rest = row.partition("[")
        return f"{name}_{k}{bracket}{rest}"

    def places(self, row: str) -> list[str]:
        """The declarations of such places, like that of a total."""
        given = [k for k in range(len(self.each)) if any(f"{{at_{k}}}" in text for text in self.each)]
        return [f"{self.total} {self.apart(row, k)} = {'{0}' if '[' in row else '0'};" for k in given]


def integers(machine: Machine) -> Numbers:
    """Return the numbers of a machine as integers.

    Raises InputError if C has no integers of these sizes, or partial sums are smaller than results.
    """
    sizes = {name: getattr(machine, name) or 4 for name in _SIZES}
    for name, size in sizes.items():
        if size not in _INTEGERS:
            raise InputError(f"machine {machine.name}: {name} is {size}, C has integers of 1, 2, 4 and 8 bytes")
    if machine.psum_bytes < machine.out_bytes:
        said = f"psum_bytes is {machine.psum_bytes}, less than out_bytes, {machine.out_bytes}"
        raise InputError(f"machine {machine.name}: {said}: partial sums would lose what results need")
    inputs, weights, result, sums, bias = (_INTEGERS[size] for size in sizes.values())
    return Numbers(inputs, weights, result, sums, bias, "uint64_t" if max(sizes.values()) > 4 else "uint32_t")


def floats(machine: Machine) -> Numbers:
    """Return single precision for all elements of 4 bytes, half for those of 2; raises InputError for other sizes."""
    size = machine.in_bytes if machine.in_bytes == machine.out_bytes == 2 else 4
    sizes = {name: getattr(machine, name) or 4 for name in _SIZES}
    accepted: dict[str, tuple[int, ...]] = {**dict.fromkeys(_SIZES, (size,)), "psum_bytes": (4,)}
    accepted |= dict.fromkeys(("w_bytes", "bias_bytes"), (size, *_FLOATS))
    wrong = [name for name, has in sizes.items() if has not in accepted[name]]
    if wrong:
        options = " ".join(f"--set {name}={accepted[name][0]}" for name in wrong)
        takes = "float32 takes 4 bytes" if size == 4 else "float16 takes 2 bytes and its sums 4"
        has = ", ".join(f"{name} {sizes[name]}" for name in wrong)
        raise InputError(f"machine {machine.name}: {takes}, it has {has}: plan with {options}")
    inputs, weights, result, sums, bias = (_FLOATS[has] for has in sizes.values())
    return Numbers(inputs, weights, result, sums, bias, "float")
