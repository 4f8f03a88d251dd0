"""Colours and words that both renderers share.

The eight colours of Okabe and Ito (Color Universal Design, 2008) are told apart by all common kinds of colour vision;
where there are more groups than colours, a pattern tells the second round from the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Blue, orange, green, sky blue, vermillion, purple, yellow: neighbours differ most.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#F0E442")
#: Patterns of the rounds through the colours: names of plotly, and of matplotlib.
PATTERNS = (("", ""), ("/", "///"), ("x", "xxx"), (".", "..."))
#: Marks of clouds: names of plotly, and of matplotlib.
MARKS = (("circle", "o"), ("square", "s"), ("diamond", "D"), ("triangle-up", "^"), ("cross", "P"), ("x", "X"))
_LONG = 26


def colour(number: int) -> str:
    """Return the colour of a group."""
    return COLOURS[number % len(COLOURS)]


def pattern(number: int) -> tuple[str, str]:
    """Return the pattern of a group, for plotly and for matplotlib."""
    return PATTERNS[number // len(COLOURS) % len(PATTERNS)]


def mark(number: int) -> tuple[str, str]:
    """Return the mark of a cloud, for plotly and for matplotlib."""
    return MARKS[number % len(MARKS)]


def short(name: str, most: int = _LONG) -> str:
    """Return a name that fits beside a bar: the middle of a long one is left out."""
    if len(name) <= most:
        return name
    half = (most - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def slugs(names: Iterable[str]) -> list[str]:
    """Return an id for every name, all different: of small letters, digits and hyphens."""
    taken: set[str] = set()
    made = []
    for name in names:
        base, number = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x", 2
        found = base
        while found in taken:
            found, number = f"{base}-{number}", number + 1
        taken.add(found)
        made.append(found)
    return made


def spoken(value: float) -> str:
    """Return a number for people: thousands apart, four digits of fractions."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"
