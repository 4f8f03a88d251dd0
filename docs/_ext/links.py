"""Checks the pages of the built site without a network: ``python docs/_ext/links.py FOLDER``.

Every ``href`` and ``src`` to a file leads to one, every ``#anchor`` to an element of that name; a link to another host
is looked at for its form only. Nothing that a page needs to be shown (scripts, style sheets, images, fonts) may come
from another host: the site is read from a disk. What is wrong is printed a line each, and the exit code is 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

#: Element -> the attribute that fetches something as soon as the page is shown.
_FETCHES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
#: ``<link rel=..>`` that names a page and fetches nothing.
_NAMES_ONLY = {"canonical", "alternate", "next", "prev", "index", "search", "author", "license"}
_HOST = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?$")


class Link(NamedTuple):
    """A link of a page."""

    line: int
    target: str
    fetched: bool
    """Whether the page needs it to be shown."""


class _Page(HTMLParser):
    """The links of a page, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's links and anchors."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src", "data"):
            if name in values and (name != "data" or tag == "object"):
                relations = set(values.get("rel", "").split())
                fetched = _FETCHES.get(tag) == name and not relations & _NAMES_ONLY
                self.links.append(Link(self.getpos()[0], values[name], fetched))


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the links of all pages and style sheets in a folder, a line each."""
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder}: no page at all"]
    for path, page in pages.items():
        where = path.relative_to(folder.resolve()).as_posix()
        for link in page.links:
            if fault := _fault(link, path, pages):
                found.append(f"{where}:{link.line}: {link.target}: {fault}")
    return found + list(_style_faults(folder))


def _fault(link: Link, path: Path, pages: dict[Path, _Page]) -> str:
    """Return what is wrong with a link, empty if nothing is."""
    parts = urlsplit(link.target)
    if parts.scheme in ("http", "https") or parts.netloc:
        if link.fetched:
            return "fetched from another host"
        return "" if parts.scheme and _HOST.match(parts.netloc.lower()) else "not the address of a page"
    if parts.scheme:
        return "" if parts.scheme in ("mailto", "data") else f"scheme {parts.scheme}"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if parts.path.startswith("/"):
        return "not relative"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    known = pages.get(target)
    return "" if not anchor or known is None or anchor in known.anchors else "no such anchor"


def _style_faults(folder: Path) -> Iterator[str]:
    """Yield what style sheets ask for that is not there, or comes from another host."""
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"""url\(\s*['"]?([^'")]+)['"]?\s*\)|@import\s+['"]([^'"]+)""", text):
            address = target[0] or target[1]
            parts = urlsplit(address)
            if parts.scheme == "data" or address.startswith("#"):
                continue
            if parts.scheme or parts.netloc:
                yield f"{path.relative_to(folder).as_posix()}: {address}: fetched from another host"
            elif not (path.parent / unquote(parts.path)).is_file():
                yield f"{path.relative_to(folder).as_posix()}: {address}: no such file"


def main(folder: str) -> int:
    """Print the faults of a folder; return 1 if there are any."""
    found = faults(Path(folder))
    for line in found:
        print(line)
    pages = len(list(Path(folder).rglob("*.html")))
    print(f"{pages} pages: {len(found)} faulty links" if found else f"{pages} pages: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
