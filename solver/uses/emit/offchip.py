"""Where tensors lie off the chip: constants one behind the other, maps over each other where their lifetimes allow.

Every memory off the chip has one array of constants and one of maps. A map is there from the first step that touches it
to the last one; a group of layers is one step. Inputs of a model are there from the start, results to the end. So a
network's maps take little more than the most that is there at one time, which is what a target has to have.

An example: conv1 (100 bytes) is read by conv2 (60) alone, and that by conv3 (80). conv1 and conv3 may share addresses:
the array has 160 bytes, not 240.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from formulations.clock import Clock
from formulations.placement.instance import GREEDY, Rooms
from formulations.placement.instance import placed as by_heuristic
from formulations.placement.packing import Block, Packing
from formulations.placement.search import fit
from instances.network.buffers import Memory
from solver.uses.emit.text import identifier

#: In place of a memory: biases of machines that do not transfer them.
BIASES = "biases"
#: Every tensor begins at a multiple of so many bytes.
ALIGNED = 16
#: Seconds that the exact search for addresses may take in the least room; more room is tried by heuristics.
_SEARCHED, _BY_HEURISTIC = 3.0, 0.05
#: As parts of the least room that may be needed, what is tried.
_MORE = (0, 1, 2, 4, 8, 16, 32, 64)


def placed(blocks: Sequence[Block], capacity: int, seconds: float = 30) -> dict[str, int] | None:
    """Return an address for every buffer: by heuristics, else by the exact search; None if that finds none in time."""
    buffers = [block.buffer() for block in blocks]
    rooms = Rooms([Memory(name="ocm", bytes=capacity)], {"ocm": capacity}, {})
    for name in GREEDY:
        if (made := by_heuristic(buffers, rooms, name)) is not None:
            return {place.buffer: place.address for place in made.places}
    told = fit(Packing(buffers, {}, 0), capacity, Clock.of(seconds))
    if told.status != "fits":
        return None
    return {buffer.name: address for buffer, address in zip(buffers, told.addresses, strict=True)}


@dataclass
class Tensor:
    """A tensor off the chip."""

    name: str
    bytes: int
    array: str
    """The array that it is part of."""
    constant: bool
    first: int = -1
    last: int = -1
    """`first`, `last`: the steps between which it is there; -1 if none touches it."""

    def touched(self, step: int) -> None:
        """It is there in a step, too."""
        self.first = step if self.first < 0 else min(self.first, step)
        self.last = max(self.last, step)


@dataclass
class OffChip:
    """The tensors of a network off the chip, and where they lie."""

    steps: int
    """How many steps there are."""
    spans: Sequence[tuple[int, int]] = ()
    """First and last steps that are one: groups of layers."""
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def add(self, name: str, size: int, home: str, *, constant: bool = False) -> Tensor:
        """A tensor."""
        array = f"certile_{'weights' if constant else 'maps'}_{identifier(home)}"
        self.tensors[name] = Tensor(name, size, array, constant)
        return self.tensors[name]

    def touch(self, names: Iterable[str], step: int) -> None:
        """A step reads or writes tensors."""
        first, last = next((span for span in self.spans if span[0] <= step <= span[1]), (step, step))
        for name in names:
            self.tensors[name].touched(first)
            self.tensors[name].touched(last)

    def named_in(self, lines: Iterable[str]) -> set[str]:
        """The tensors that a text of C names."""
        return {word for line in lines for word in re.findall(r"[A-Za-z_]\w*", line) if word in self.tensors}

    # ---- places ----------------------------------------------------------------------------------------------------

    @cached_property
    def _parts(self) -> Mapping[str, list[Tensor]]:
        """The arrays with their tensors: of constants, then of maps."""
        found: dict[str, list[Tensor]] = {}
        for one in sorted(self.tensors.values(), key=lambda tensor: not tensor.constant):
            found.setdefault(one.array, []).append(one)
        return found

    @cached_property
    def regions(self) -> Mapping[str, int]:
        """The arrays by name, with their bytes: of constants, then of maps."""
        return {array: max(self.places[t.name] + t.bytes for t in parts) for array, parts in self._parts.items()}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where every tensor begins in its array."""
        found: dict[str, int] = {}
        for parts in self._parts.values():
            found |= _in_row(parts) if parts[0].constant else self._overlaid(parts)
        return found

    def _overlaid(self, tensors: Sequence[Tensor]) -> Mapping[str, int]:
        there = [one for one in tensors if one.first >= 0]
        blocks = [Block(one.name, one.first, (_up(one.bytes),) * (one.last - one.first + 1)) for one in there]
        sums = (sum(b.sizes[0] for b in blocks if b.begin <= step < b.end) for step in range(self.steps))
        least, found = max(sums, default=0), dict.fromkeys((one.name for one in tensors), 0)
        for part in _MORE if blocks else ():
            room = _up(least + least * part // 64)
            if (places := placed(blocks, room, _BY_HEURISTIC if part else _SEARCHED)) is not None:
                return found | places
        return found | _in_row(there)

    @property
    def guarded(self) -> Mapping[str, int]:
        """The arrays that transfers alone may touch: not biases that are there before a layer begins."""
        return {array: size for array, size in self.regions.items() if array != f"certile_weights_{BIASES}"}

    # ---- C ---------------------------------------------------------------------------------------------------------

    def macros(self, called: Mapping[str, str]) -> list[str]:
        """Every tensor as a name of its place, with what the model calls some of them."""
        lines = []
        for one in self.tensors.values():
            place = f"({'(unsigned char *)' if one.constant else ''}{one.array} + {self.places[one.name]})"
            said = f"{one.bytes} bytes" + (f": {called[one.name]}" if one.name in called else "")
            lines.append(f"#define {one.name} {place} /* {said} */")
        return lines

    def declarations(self) -> list[str]:
        """The arrays, and the macros that say in which section each lies."""
        lines = [
            "/* Where arrays lie off the chip: a target may name other sections, or pass -DCERTILE_IN_...=. */",
            "#ifdef CERTILE_DMA_GUARD",
            '#define CERTILE_IN(where) __attribute__((aligned(4096)))',
            "#define CERTILE_ROOM(bytes) (((bytes) + 4095) / 4096 * 4096)",
            "#else",
            "#define CERTILE_IN(where) __attribute__((section(where), aligned(16)))",
            "#define CERTILE_ROOM(bytes) (bytes)",
            "#endif",
        ]  # fmt: skip
        for array, size in self.regions.items():
            macro, constant = macro_of(array), array.startswith("certile_weights_")
            section = f".bss.{array}"
            lines += [f"#ifndef {macro}", f'#define {macro} CERTILE_IN("{section}")', "#endif"]
            if constant:
                lines += ["#ifdef CERTILE_BARE", f"extern const unsigned char {array}[{size}];", "#else"]
            lines.append(f"extern unsigned char {array}[CERTILE_ROOM({size})];")
            lines += ["#endif"] if constant else []
        return lines

    def definitions(self, *, held: bool) -> list[str]:
        """The arrays themselves; where constants are `held` in weights.S a target takes those."""
        lines = []
        for array, size in self.regions.items():
            text = [f"unsigned char {array}[CERTILE_ROOM({size})] {macro_of(array)};"]
            if array.startswith("certile_weights_"):
                empty = [] if held else [f"const unsigned char {array}[{size}];"]
                text = ["#ifndef CERTILE_BARE", *text, *(["#else", *empty] if empty else []), "#endif"]
            lines += text
        return lines

    def image(self, values: Mapping[str, bytes]) -> bytes:
        """All constants as they lie, array by array."""
        made = bytearray()
        for array, size in self.constants().items():
            begin = len(made)
            made += bytes(size)
            for one in self._parts[array]:
                place = begin + self.places[one.name]
                made[place : place + one.bytes] = values[one.name]
        return bytes(made)

    def constants(self) -> Mapping[str, int]:
        """The arrays of constants with their bytes, as they follow each other in the image."""
        return {array: size for array, size in self.regions.items() if array.startswith("certile_weights_")}

    def assembly(self) -> str:
        """The file that takes the image of constants into a program, each array in a section of its own."""
        lines = ["/* The constants of weights.bin as arrays, for a target without files. */", "#ifdef CERTILE_BARE"]
        begin = 0
        for array, size in self.constants().items():
            macro = f"{macro_of(array)}_SECTION"
            lines += [
                f"#ifndef {macro}", f"#define {macro} .rodata.{array}", "#endif", f'    .section {macro}, "a"',
                f"    .balign {ALIGNED}", f"    .global {array}", f"{array}:",
                f'    .incbin "weights.bin", {begin}, {size}',
            ]  # fmt: skip
            begin += size
        return "\n".join([*lines, "#endif", "#ifdef __ELF__", '    .section .note.GNU-stack, ""', "#endif", ""])


def macro_of(array: str) -> str:
    """Return the name of the macro that says where an array lies."""
    return f"CERTILE_IN_{array.removeprefix('certile_').upper()}"


def _up(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _in_row(tensors: Sequence[Tensor]) -> dict[str, int]:
    """Where tensors begin that lie one behind the other."""
    ends = accumulate((_up(one.bytes) for one in tensors), initial=0)
    return {one.name: end for one, end in zip(tensors, ends, strict=False)}
