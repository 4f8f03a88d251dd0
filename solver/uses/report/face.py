"""Reports, figures and notebook tables of plans and fronts in Python: what `solver.plan.faces` has for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from instances.errors import InputError
from instances.jsonfile import write_atomically
from solver.plan.figures import Figure
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.registry import problem_of
from solver.show.interactive import drawn
from solver.show.page import grid_html, status_html, text, to_html
from solver.show.printed import plot
from solver.show.tables import front_line, front_table
from solver.uses.report.front_page import front_page
from solver.uses.report.kinds import page_of
from solver.uses.report.plan_page import COMPARED_S, plan_page, rivals

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot", "report", "to_plotly"]

_STYLE = (
    "<style>.certile{font:14px/1.5 system-ui,sans-serif}.certile p{margin:.3rem 0}"
    ".certile .scroll{overflow-x:auto;max-height:26rem;overflow-y:auto}"
    ".certile table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".certile caption{text-align:left;opacity:.75}"
    ".certile th,.certile td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8884;font-weight:400}"
    ".certile thead th,.certile tfoot *{font-weight:600}.certile .n{text-align:right;white-space:nowrap}"
    ".certile .status span{border:2px solid;border-radius:4px;padding:.1rem .4rem;margin-right:.5rem;font-weight:600}"
    "</style>"
)


def report(
    what: Plan | Front | str | os.PathLike[str], path: str | os.PathLike[str], *,
    compare: str | Sequence[str] = (), time_limit_s: float = COMPARED_S,
) -> None:  # fmt: skip
    """Write a plan, a front, or a file of one (or of a benchmark, or a sweep) as one HTML page that needs no network.

    Parameters
    ----------
    compare : str or sequence of str
        Engines whose plans are drawn beside: ``"greedy,naive"``; plans only.
    time_limit_s : float
        Seconds for each of them.

    Raises
    ------
    InputError
        If plotly is not installed, an engine cannot be asked, or a file cannot be read or written.
    """
    texts = [compare] if isinstance(compare, str) else compare
    engines = [name.strip() for given in texts for name in given.split(",") if name.strip()]
    if isinstance(what, Plan):
        page = plan_page(what, rivals(what, engines, time_limit_s))
    elif isinstance(what, Front):
        if engines:
            raise InputError("compare: for plans only")
        page = front_page(what)
    else:
        page = page_of(what, engines, time_limit_s)
    write_atomically(path, to_html(page))


def to_plotly(figure: Figure) -> go.Figure:
    """Return a figure as one of plotly; raises InputError if that is not installed."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise InputError('figures of plotly need plotly: pip install "certile[report]"') from None
    return go.Figure(_coloured(drawn(figure)))


def _coloured(value: Any) -> Any:
    """Plain data with the colours of a light page."""
    light = {"@ink": "#1b1e21", "@soft": "#cfd3d8", "@paper": "#ffffff"}
    if isinstance(value, dict):
        return {key: _coloured(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_coloured(one) for one in value]
    return light.get(value, value) if isinstance(value, str) else value


def plan_figures(plan: Plan) -> tuple[Figure, ...]:
    """Return all figures of a plan that have something to draw."""
    return problem_of(plan).pictures(plan, {}).all


def plan_html(plan: Plan) -> str:
    """Return what a notebook shows of a plan: status, what is known, and the table."""
    problem = problem_of(plan)
    known = "".join(f"<p>{text(line)}</p>" for line in problem.known(plan))
    grid = replace(problem.sheet(plan), caption=f"{plan.network} on {plan.machine}") if problem.names(plan) else None
    return _framed(status_html(plan.status) + known + (grid_html(grid, sorts=False) if grid else ""))


def front_html(front: Front) -> str:
    """Return what a notebook shows of a front: how sure it is, and its points."""
    grid = replace(front_table(front), caption=f"Front of {front.network} on {front.machine}")
    return _framed(f"<p>{text(front_line(front))}</p>{grid_html(grid, sorts=False)}")


def _framed(inside: str) -> str:
    return f'<div class="certile">{_STYLE}{inside}</div>'
