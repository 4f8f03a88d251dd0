"""Characters that a terminal or an editor obeys instead of showing: no file that certile reads may hold them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from instances.errors import InputError

#: Unicode's control and format characters, among them marks of direction, and what ends a line or a paragraph.
_OBEYED = frozenset({"Cc", "Cf", "Zl", "Zp"})
#: Keys below which lines may be broken: texts for people.
_FREE = frozenset({"description", "sources", "source", "note", "licence"})


def obeyed(text: str, allowed: str = "") -> str:
    """Return the first character of a text that is obeyed and not allowed; empty if there is none."""
    if text.isprintable():
        return ""
    return next((c for c in text if c not in allowed and unicodedata.category(c) in _OBEYED), "")


def escaped(text: str) -> str:
    r"""Return a text with all that cannot be shown written as ``\x1b`` or ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def check_texts(data: object, where: str) -> None:
    """Raise InputError if a text or a key of JSON data holds a character that is obeyed."""
    for path, text, free in _texts(data, "", False):
        if found := obeyed(text, "\n\t" if free else ""):
            shown = escaped(text if len(text) <= 60 else f"{text[:57]}...")
            raise InputError(
                f"{where}: {path}a name holds printable characters only, not {escaped(found)} (got {shown})"
            )


def _texts(data: object, path: str, free: bool) -> Iterator[tuple[str, str, bool]]:
    """Every text with where it stands, depth first."""
    waiting: list[tuple[object, str, bool]] = [(data, path, free)]
    while waiting:
        value, at, loose = waiting.pop()
        if isinstance(value, str):
            yield f"{at}: " if at else "", value, loose
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield f"{at}: key: " if at else "key: ", str(key), False
                waiting.append((item, f"{at}.{key}" if at else str(key), loose or key in _FREE))
        elif isinstance(value, Sequence):
            waiting += [(item, f"{at}[{n}]", loose) for n, item in enumerate(value)]


def many(number: int, noun: str) -> str:
    """Return a number of things: ``1 call``, ``2,000 calls``."""
    return f"{number:,} {noun}" + "s" * (number != 1)
