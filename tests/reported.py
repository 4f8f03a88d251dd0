"""What tests of reports share: a small plan of every problem, and a reader of pages that knows what HTML allows."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

from solver.plan.plan import Plan
from tests.golden_plans import FIRST


@cache
def plan_of(problem: str) -> Plan:
    """A small plan of a problem."""
    plan = FIRST[problem].solve()
    assert isinstance(plan, Plan)
    return plan


VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "wbr"})
HEADS = ("h1", "h2", "h3", "h4", "h5", "h6")


class Reader(HTMLParser):
    """Reads a page; `faults` are what is wrong with it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.heads: list[int] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if len(found) != len(attrs):
            self.faults.append(f"{tag}: an attribute twice")
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag in HEADS:
            self.heads.append(int(tag[1]))
        if tag in ("p", "h1", "h2", "h3", "h4") and "p" in self.open:
            self.faults.append(f"{tag} in p")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that is written on the page."""
        return "".join(self.words)


def read_page(html: str) -> Reader:
    """Read a page to its end."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def faults_of(html: str) -> list[str]:
    """What is wrong with a page: nesting, ids, order of headings, anything that is loaded from elsewhere."""
    reader = read_page(html)
    faults = [*reader.faults, *(f"<{tag}> is not closed" for tag in reader.open)]
    faults += [f"id {name} twice" for name in {name for name in reader.ids if reader.ids.count(name) > 1}]
    faults += [f"id {name!r} has a blank" for name in reader.ids if not name or " " in name]
    if reader.heads[:1] != [1] or reader.heads.count(1) != 1:
        faults.append("there must be one h1, the first heading")
    faults += [f"h{b} below h{a}" for a, b in zip(reader.heads, reader.heads[1:], strict=False) if b > a + 1]
    for tag, found in reader.tags:
        for name in ("src", "href", "action", "poster", "data"):
            value = found.get(name) or ""
            if value and not value.startswith(("#", "data:")):
                faults.append(f"{tag} {name}={value}")
        if tag == "th" and found.get("scope") not in ("row", "col"):
            faults.append("th without scope")
        if found.get("role") in ("img", "region") and not found.get("aria-label"):
            faults.append(f"{tag} of role {found['role']} without a label")
        if (found.get("href") or "").startswith("#") and str(found["href"])[1:] not in reader.ids:
            faults.append(f"{found['href']}: nothing is there")
        if found.get("aria-labelledby") and found["aria-labelledby"] not in reader.ids:
            faults.append(f"aria-labelledby {found['aria-labelledby']}: nothing is there")
        faults += [f"{tag} has a handler {name}" for name in found if name.startswith("on")]
    return faults
