"""What the text of a source says in numbers with units: clocks, rates, sizes, widths, peaks.

A number has its unit behind it (``500 MHz``, ``8 bytes a cycle``, ``48 banks of 1,024 bytes``). What is said once may
stand for several (``four tiles of 64 KiB``) or for a part (``half of 256 KiB``): `Said.times` and `Said.parts` have the
numbers that the text has for that. A KB is 1,000 or 1,024 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
    "sixteen": 16,
}  # fmt: skip
_SHARES = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "sixteenth": 16}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_N = r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)"
_LIST = r"(?<![\w.])((?:\d[\d,]*(?:\.\d+)?\s*x\s*)*\d[\d,]*(?:\.\d+)?)"
_CLOCK = re.compile(rf"{_N}\s*([kMG]?)Hz\b")
_PERIOD = re.compile(rf"{_N}\s*(ps|ns|us)\b(?!\s*(?:\([^)]*\)\s*)?(?:a|per)\s+byte)")
_RATE = re.compile(rf"{_N}\s*([KkMGT]?)(i?)B/s\b")
_BYTE_TIME = re.compile(rf"{_N}\s*(ps|ns)\s*(?:\([^)]*\)\s*)?(?:a|per)\s+byte\b")
_A_TIME = re.compile(rf"{_N}\s*bytes?\s*(?:/|a |per )\s*(ns|us)\b")
_WORD = re.compile(rf"{_N}\s*bytes?(?:\s+(?:a|per)\s+|/)cycle\b")
_SIZE = re.compile(
    rf"{_LIST}(?:\s+(?:of|to)\s+{_N})?[\s-]*(?:(bytes?|B)|([KkMG])(i?)B)\b(?!\s*(?:/|a |per |of a run))(?!/s)"
)
_BITS_OF = re.compile(rf"{_LIST}\s*(?:([KMG])bits?|bits?)\b")
_WIDTH = re.compile(r"\b(?:u?int|float|fp|Q|bfloat)(\d+)\b|(?<![\w.])(\d+)[\s-]*bits?\b")
_LOG = re.compile(r"\bLOG_\w+(SIZE|WIDTH|BLOCK) (\d+)\b")
#: An integer from here on is a size where a text names none with a unit.
_LARGE = 4096
_PEAK = re.compile(rf"{_N}\s*([GTMgtm])(?:ega|era|iga)?(OPS|ops|Ops|MACS|MAC/s|MACs/s|Ops/s|OPS/s)\b")
_MACS = re.compile(rf"{_LIST}\s*MACs?\b(?!/s)")
_CYCLES = re.compile(rf"{_N}\s*(?:cycles|clocks|of set-up)\b")
_ENERGY = re.compile(rf"{_N}\s*([fpn])J\b(?:\s+(?:a|per)\s+(bit)\b)?")
_WHOLE = re.compile(r"(?<![\w.])(\d[\d,]*)(?![\d.])")
_RANGE = re.compile(r"(\d+) to (\d+)\b")
#: What is no number of the machine: settings that could be, where in a document, and years.
_APART = re.compile(
    r"--set\s+\S+[^;]*|\b(?:[Ss]ections?|[Cc]hapter|[Pp]art|Table|Fig\.?|Eq\.?|Listing|[Vv]ersion|[Rr]ev(?:ision)?\.?)"
    r"\s+[\w.-]+|[,(]?\s*\b(?:19|20)\d\d\b(?=[,):]|$)"
)
_SECONDS = {"ps": 1, "ns": 1000, "us": 10**6}


@dataclass(frozen=True)
class Said:
    """The numbers of a text."""

    clocks: tuple[float, ...] = ()
    """Hz; also of periods that are named."""
    rates: tuple[float, ...] = ()
    """Bytes/s."""
    words: tuple[float, ...] = ()
    """Bytes a cycle."""
    sizes: tuple[float, ...] = ()
    """Bytes that are named with their unit, or else are large."""
    whole: tuple[int, ...] = ()
    """All integers, and two to the powers that are named as logarithms."""
    widths: tuple[int, ...] = ()
    """Bits of an element."""
    peaks: tuple[float, ...] = ()
    """MACs/s; an operation is half of one."""
    macs: tuple[int, ...] = ()
    """MACs a cycle."""
    cycles: tuple[float, ...] = ()
    """How many cycles something takes."""
    energies: tuple[float, ...] = ()
    """Femtojoules of a byte or of a MAC; what is said of a bit is said of eight."""
    times: tuple[int, ...] = ()
    """Numbers that may stand for how many."""
    parts: tuple[int, ...] = ()
    """Numbers of parts: half is 2."""

    def several(self, values: Iterable[float]) -> Iterator[float]:
        """What is said, so often or in such parts as the text says."""
        for value in values:
            yield value
            yield from (value * k for k in self.times)
            yield from (value / k for k in self.parts)
            yield from (value * k * n for k, n in combinations(self.times, 2))
            yield from (value * k / n for k in self.times for n in self.parts if k < n)


def said(text: str) -> Said:
    """Read the numbers of a text."""
    text = _APART.sub("", text)
    periods = [1e12 / (_number(n) * _SECONDS[unit]) for n, unit in _PERIOD.findall(text) if _number(n)]
    rates = [
        *(rate for n, unit, binary in _RATE.findall(text) for rate in _scaled(_number(n), unit, binary)[:1]),
        *(1e12 / (_number(n) * _SECONDS[unit]) for n, unit in _BYTE_TIME.findall(text) if _number(n)),
        *(_number(n) * 1e12 / _SECONDS[unit] for n, unit in _A_TIME.findall(text)),
    ]
    logs = [(what, 2 ** int(n)) for what, n in _LOG.findall(text) if int(n) < 64]
    whole = [int(n.replace(",", "")) for n in _WHOLE.findall(text) if n.strip(",")]
    words = re.findall(r"[a-z]+", text.lower())
    number_words = [_WORDS[word] for word in words if word in _WORDS]
    spans = [int(b) - int(a) + 1 for a, b in _RANGE.findall(text) if int(b) > int(a)]
    shares = [_SHARES[word.removesuffix("s")] for word in words if word.removesuffix("s") in _SHARES]
    return Said(
        clocks=(*(_number(n) * 1000 ** _POWERS[unit.lower()] for n, unit in _CLOCK.findall(text)), *periods),
        rates=tuple(rates),
        words=tuple(_number(n) for n in _WORD.findall(text)),
        sizes=tuple(_sizes(text)) or (
            *(n for what, n in logs if what == "SIZE"), *(n for n in whole if n >= _LARGE)
        ),
        whole=(*whole, *(n for _, n in logs)),
        widths=(*(int(a or b) for a, b in _WIDTH.findall(text)), *(n for what, n in logs if what == "WIDTH")),
        peaks=tuple(
            _number(n) * 1000 ** _POWERS[unit.lower()] / (1 if kind.startswith("MAC") else 2)
            for n, unit, kind in _PEAK.findall(text)
        ),
        macs=tuple(int(one) for n in _MACS.findall(text) for one in {_product(n), _number(n.split("x")[-1])}),
        cycles=tuple(_number(n) for n in _CYCLES.findall(text)),
        energies=tuple(
            _number(n) * 1000 ** ("fpn".index(unit)) * (8 if bit else 1) for n, unit, bit in _ENERGY.findall(text)
        ),
        times=tuple({k for k in (*whole, *number_words, *spans) if 1 < k <= 2**16}),
        parts=tuple({*shares, *number_words}),
    )  # fmt: skip


def _number(text: str) -> float:
    return float(text.strip().rstrip(",").replace(",", ""))


def _product(text: str) -> float:
    """Of ``32 x 512 x 8`` all factors together."""
    return prod(_number(one) for one in text.split("x"))


def _scaled(value: float, unit: str, binary: str) -> tuple[float, ...]:
    """Bytes of so many KB, which are of both kinds, or KiB."""
    power = _POWERS[unit.lower()]
    if binary:
        return (value * 1024**power,)
    return (value * 1000**power, value * 1024**power) if power else (value,)


def _sizes(text: str) -> Iterator[float]:
    for many, last, _, unit, binary in _SIZE.findall(text):
        for number in (_product(many), *((_number(last),) if last else ())):
            yield from _scaled(number, unit, binary)
    for many, unit in _BITS_OF.findall(text):
        if unit or "x" in many:
            yield from (size / 8 for size in (_product(many) * 1024 ** _POWERS[unit.lower()],))


def close(one: float, other: float, most: Fraction | float = 0.01) -> bool:
    """Whether two numbers differ by no more than such a share."""
    return abs(one - other) <= float(most) * abs(other)
