"""Text of C files: names, blocks, comments, sums."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

INDENT = "    "
#: As long as lines of arguments may get.
WIDTH = 110


def identifier(text: str) -> str:
    """Return a text as a part of a C name: letters, digits and single underscores, at most 40 characters."""
    return re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", text)).strip("_")[:40] or "layer"


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines one step further in; empty ones stay empty."""
    return [INDENT + line if line else "" for line in lines]


def plain(text: str) -> str:
    """Return a text that may stand in a comment of one line."""
    safe = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return safe.replace("*/", "* /").replace("/*", "/ *")


def comment(text: str) -> list[str]:
    """Return a text as a comment that nothing in it can end."""
    return ["/*", *(f" * {plain(line)}".rstrip() for line in text.rstrip().split("\n")), " */"]


def quoted(text: str) -> str:
    """Return a text as it stands within quotes of C."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\\\?' else "_" for c in text)


def block(head: str, body: Iterable[str]) -> list[str]:
    """Return a block in braces; without a head for names of its own."""
    return [f"{head} {{".strip(), *indented(body), "}"]


def loop(name: str, lo: str, hi: str, body: Iterable[str]) -> list[str]:
    """Return a loop over whole numbers; of a single one the body, with a constant if it names it."""
    body = list(body)
    if lo.isdigit() and hi == str(int(lo) + 1):
        named = any(re.search(rf"\b{name}\b", line) for line in body)
        return [f"const int {name} = {lo};", *body] if named else body
    return block(f"for (int {name} = {lo}; {name} < {hi}; {name}++)", body)


def function(head: str, arguments: Iterable[str], body: Iterable[str], said: str = "") -> list[str]:
    """Return a function below a comment, if anything is said; long lists of parameters are folded."""
    return [
        *([f"/* {said} */"] if said else []),
        *_folded(f"{head}(", [*arguments] or ["void"], ")"),
        "{",
        *indented(body),
        "}",
    ]


def call(name: str, arguments: Iterable[str]) -> list[str]:
    """Return a call as a statement; long lists of arguments are folded."""
    return _folded(f"{name}(", [*arguments], ");")


def _folded(head: str, words: list[str], end: str) -> list[str]:
    lines, line = [], head
    for k, word in enumerate(words):
        text = word + (", " if k < len(words) - 1 else end)
        if len(line) + len(text) > WIDTH and line.strip() and line != head:
            lines.append(line.rstrip())
            line = " " * len(head)
        line += text
    return [*lines, line if words else head + end]


def total(*terms: tuple[str, int]) -> str:
    """Return a sum of products of a text and a number; numbers are added up, what is zero is left out.

    ``total(("r", 2), ("1", -1))`` is ``r * 2 - 1``.
    """
    constant, parts = 0, list[tuple[str, str]]()
    for text, factor in terms:
        if text.lstrip("-").isdigit():
            constant += int(text) * factor
        elif factor:
            parts.append(("-" if factor < 0 else "+", text if abs(factor) == 1 else f"{text} * {abs(factor)}"))
    if constant or not parts:
        parts.append(("-" if constant < 0 else "+", str(abs(constant))))
    parts.sort(key=lambda part: part[0] == "-")  # what is added first
    text = " ".join(f"{sign} {part}" for sign, part in parts)
    return text.removeprefix("+ ") if text.startswith("+ ") else "-" + text.removeprefix("- ")


def quotient(text: str, divisor: int) -> str:
    """Return the least whole number that is not below a quotient."""
    return text if divisor == 1 else f"certile_ceil({text}, {divisor})"


def larger(one: str, two: str) -> str:
    """Return the larger of two numbers."""
    return str(max(int(one), int(two))) if one.isdigit() and two.isdigit() else f"certile_max({one}, {two})"


def smaller(one: str, two: str) -> str:
    """Return the smaller of two numbers."""
    return str(min(int(one), int(two))) if one.isdigit() and two.isdigit() else f"certile_min({one}, {two})"


def longs(values: Iterable[int]) -> str:
    """Return an array of long numbers as an argument."""
    return f"(const long[]){{{', '.join(map(str, values))}}}"


def floats_of(name: str, values: np.ndarray) -> str:
    """Return a table of floats."""
    return f"static const float {name}[] = {{{', '.join(literal(float(v)) for v in values.ravel())}}};"


def whole_numbers(name: str, kind: str, values: Iterable[int]) -> str:
    """Return a table of integers of a C type."""
    return f"static const {kind} {name}[] = {{{', '.join(map(str, values))}}};"


def literal(value: float) -> str:
    """Return a float as C text."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
