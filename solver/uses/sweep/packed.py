"""Texts deflated with a dictionary: an earlier text of their kind, which most of them are like to a few figures.

A plan of a layer is 4.4 kB of JSON, 1.7 kB deflated alone, and 0.3 kB with the plan of another layer as dictionary.
"""

from __future__ import annotations

import sqlite3
import zlib

from instances.jsonfile import LARGEST_FILE

#: Deflate looks no further back.
_LONGEST = 32768


class Packer:
    """Packs texts into a file, and keeps their dictionaries there; whoever calls has begun a transaction."""

    def __init__(self, data: sqlite3.Connection) -> None:
        self._data = data
        self._known: dict[int, bytes] = {}

    def pack(self, kind: str, text: str) -> tuple[int, bytes]:
        """Return the number of the dictionary and the packed text; the first text of a kind is its dictionary."""
        data, number = text.encode(), zlib.crc32(kind.encode()) + 1
        if number not in self._known:
            found = self._data.execute("SELECT data FROM dictionaries WHERE id = ?", (number,)).fetchone()
            if found is None:
                found = (data[-_LONGEST:],)
                self._data.execute("INSERT INTO dictionaries VALUES (?, ?)", (number, *found))
            self._known[number] = found[0]
        packer = zlib.compressobj(9, zdict=self._known[number])
        return number, packer.compress(data) + packer.flush()

    def forget(self) -> None:
        """A transaction was rolled back: dictionaries may not be there."""
        self._known.clear()


def unpack(dictionary: bytes | None, data: bytes) -> str:
    """Return a text; raises ValueError if its data is damaged, or the text would be too large."""
    try:
        packer = zlib.decompressobj(zdict=dictionary or b"")
        text = packer.decompress(data, LARGEST_FILE)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not packer.eof:
        said = f"more than {LARGEST_FILE:,} bytes" if len(text) >= LARGEST_FILE else "its end is missing"
        raise ValueError(said)
    return text.decode()
