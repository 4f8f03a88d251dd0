"""How many instances there are, by problem: the table of docs/library.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from instances.library_format import CLASSES, Instance, library

_HEADS = ("problem", "instances", *CLASSES, "exact", "twice", "infeasible", "several objectives", "pins")


def table() -> str:
    """Return the table in Markdown, a row a problem and one for all."""
    found = list(library())
    problems = dict.fromkeys(one.problem for one in found)
    rows = [[name, *_row([one for one in found if one.problem == name])] for name in sorted(problems)]
    rows.append(["all", *_row(found)])
    lines = ["| " + " | ".join(_HEADS) + " |", "|---" * len(_HEADS) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def _row(mine: list[Instance]) -> Iterator[int]:
    """Figures of some instances."""
    classes = Counter(one.difficulty for one in mine)
    yield len(mine)
    yield from (classes[name] for name in CLASSES)
    yield sum(one.known.status != "FEASIBLE" for one in mine)
    yield sum(len(one.certificate.proven_by) > 1 for one in mine)
    yield sum(one.known.status == "INFEASIBLE" for one in mine)
    yield sum(len(one.objectives) > 1 for one in mine)
    yield sum(bool(one.pins) for one in mine)
