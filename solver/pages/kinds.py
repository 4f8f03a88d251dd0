"""What a file is, and its page: a plan, a front, a benchmark, or whatever else has been added to `READERS`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from instances.errors import InputError
from instances.jsonfile import as_object, parse_json, read_bytes
from solver.front import Front
from solver.pages.bench_page import bench_page
from solver.pages.front_page import front_page, read_front
from solver.pages.page import Page
from solver.pages.plan_page import plan_page, rivals
from solver.plan import Plan

#: Readers of other files: the page of a file, or None if it is of another kind. A sweep adds one.
READERS: list[Callable[[str], Page | None]] = []


def page_of(path: str | os.PathLike[str], compare: Sequence[str] = (), time_limit_s: float | None = None) -> Page:
    """Return the page of a file.

    Parameters
    ----------
    compare : sequence of str
        Engines that a plan is compared with.
    time_limit_s : float, optional
        Seconds for each of them.

    Raises
    ------
    InputError
        If the file is missing or of no kind that has a page, or an engine cannot be asked.
    """
    name = os.fspath(path)
    for reader in READERS:
        page = reader(name)
        if page is not None:
            if compare:
                raise InputError("--compare: for plans only")
            return page
    raw = read_bytes(name, what="file")
    if not raw.lstrip()[:1] == b"{":
        raise InputError(f"file {name}: expected a plan, a front (pareto -o) or a benchmark (bench -o)")
    data = as_object(parse_json(raw, f"file {name}"), f"file {name}")
    named = str(data.get("format", ""))
    front, bench = named == Front.FORMAT, "suite" in data and "sections" in data
    if (front or bench) and compare:
        raise InputError("--compare: for plans only")
    if front:
        return front_page(read_front(data, f"front {name}"))
    if bench:
        return bench_page(data, f"benchmark {name}")
    plan = Plan.from_json(raw, f"plan {name}")
    return plan_page(plan, rivals(plan, compare, time_limit_s))
