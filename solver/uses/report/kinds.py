"""What a file is, and its page: a plan, a front, a benchmark, or the results of a sweep."""

from __future__ import annotations

import os
from collections.abc import Sequence

from instances.errors import InputError
from instances.jsonfile import as_object, parse_json, read_bytes
from solver.calls.check import sound_plan
from solver.plan.front import Front
from solver.show.page import Page
from solver.uses.report.bench_page import bench_page
from solver.uses.report.front_page import front_page, read_front
from solver.uses.report.plan_page import plan_page, rivals
from solver.uses.report.sweep_page import MAGIC, sweep_page


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
    raw = read_bytes(name, what="file")
    if raw.startswith(MAGIC):
        _plans_only(compare)
        return sweep_page(name)
    if not raw.lstrip()[:1] == b"{":
        raise InputError(f"file {name}: expected a plan, a front (pareto -o), a benchmark (bench -o) or a sweep")
    data = as_object(parse_json(raw, f"file {name}"), f"file {name}")
    named = str(data.get("format", ""))
    front, bench = named == Front.FORMAT, "suite" in data and "sections" in data
    if front or bench:
        _plans_only(compare)
    if front:
        return front_page(read_front(data, f"front {name}"))
    if bench:
        return bench_page(data, f"benchmark {name}")
    plan = sound_plan(name)
    return plan_page(plan, rivals(plan, compare, time_limit_s))


def _plans_only(compare: Sequence[str]) -> None:
    if compare:
        raise InputError("--compare: for plans only")
