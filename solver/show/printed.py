"""Figures as matplotlib draws them, for papers: a function a kind, on axes that are given or made.

The same figure always gives the same bytes: no dates, fixed ids (``svg.hashsalt``).
"""

from __future__ import annotations

import io
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Literal

from instances.errors import InputError
from solver.plan.figures import Axis, Bars, Boxes, Cloud, Drawing, Figure, Graph, Points
from solver.show.interactive import names_of, places
from solver.show.style import colour, mark, pattern, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK, _SOFT = "#1a1a1a", "#b5b5b5"
#: Letters below an axis that fit beside each other.
_SIDEWAYS = 60
#: Inches.
_WIDTH, _HEIGHT, _BAR = 7.0, 3.4, 0.17
_SETTINGS: Any = {
    "svg.hashsalt": "certile", "svg.fonttype": "none", "font.size": 8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.axisbelow": True, "hatch.linewidth": 0.5,
}  # fmt: skip


def _matplotlib() -> None:
    try:
        import matplotlib
    except ImportError:
        raise InputError('SVG and PNG need matplotlib: pip install "certile[report]"') from None
    matplotlib.use("Agg", force=False)


def plot(figure: Figure, ax: Axes | None = None) -> Axes:
    """Draw a figure on axes, or on new ones of a fitting size; raises InputError if matplotlib is not installed."""
    _matplotlib()
    import matplotlib.pyplot as plt

    if ax is None:
        with plt.rc_context(_SETTINGS):
            _, ax = plt.subplots(figsize=_size(figure), layout="constrained")
    draw_on(figure, ax)
    return ax


def image(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Return a figure as a file's bytes, with its title; raises InputError if matplotlib is not installed."""
    _matplotlib()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_SETTINGS):
        canvas = Canvas(figsize=_size(figure), layout="constrained")
        FigureCanvasAgg(canvas)
        ax = canvas.add_subplot()
        draw_on(figure, ax)
        canvas.suptitle(_plain(figure.title), fontsize=9, x=0.01, ha="left")
        out = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        canvas.savefig(out, format=kind, dpi=200, metadata=metadata)
    return out.getvalue()


def _size(figure: Figure) -> tuple[float, float]:
    if isinstance(figure, Bars):
        return _WIDTH, 1.1 + _BAR * (places(figure)[-1] + 1 if figure.names else 1)
    if isinstance(figure, Graph):
        return _WIDTH, 0.8 + 0.24 * len({node.y for node in figure.nodes})
    if isinstance(figure, Boxes) and figure.tall:
        return _WIDTH, 1.0 + 0.34 * figure.tall
    return _WIDTH, 2.2 if isinstance(figure, Drawing) else _HEIGHT


def _plain(text: str) -> str:
    """A text without what matplotlib reads as mathematics."""
    return text.replace("$", r"\$")


@singledispatch
def draw_on(figure: Figure, ax: Axes) -> None:
    """Draw on axes; raises TypeError for a kind that is not known."""
    raise TypeError(f"{type(figure).__name__}: nothing draws it")


def _axes(ax: Axes, x: Axis, y: Axis) -> None:
    for axis, of, limits in ((x, ax.xaxis, ax.set_xlim), (y, ax.yaxis, ax.set_ylim)):
        of.set_label_text(_plain(axis.title))
        if axis.ticks:
            of.set_ticks([at for at, _ in axis.ticks], labels=[_plain(short(text)) for _, text in axis.ticks])
        elif not axis.log:
            of.set_major_formatter("{x:,g}")
        if axis.limits is not None:
            limits(*axis.limits)
        if axis.downwards:
            (ax.invert_xaxis if of is ax.xaxis else ax.invert_yaxis)()
    if sum(len(short(text)) for _, text in x.ticks) > _SIDEWAYS:
        ax.tick_params("x", rotation=60)


def _legend(ax: Axes, number: int) -> None:
    """A legend above the axes if there are two or more things to tell apart."""
    if number > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(number, 5), frameon=False, fontsize=7)


@draw_on.register(Bars)
def _bars(figure: Bars, ax: Axes) -> None:
    at = places(figure)
    above, below = [0.0] * len(at), [0.0] * len(at)
    for number, one in enumerate(figure.series):
        values = [value or 0.0 for value in one.values]
        left = [above[k] if value >= 0 else below[k] for k, value in enumerate(values)]
        ax.barh(at, values, left=left, height=0.8, color=colour(number), hatch=pattern(number)[1] or None,
                edgecolor="white", linewidth=0.3, label=_plain(one.name))  # fmt: skip
        for k, value in enumerate(values):
            (above if value >= 0 else below)[k] += value
    marks = [(k, value) for k, value in enumerate(figure.marks) if value is not None]
    if marks:
        ax.plot([v for _, v in marks], [at[k] for k, _ in marks], "|", color=_INK, ms=8, label=_plain(figure.marked))
    end = at[-1] if at else 0
    ticks = Axis("", ticks=tuple(zip(at, names_of(figure), strict=True)), downwards=True, limits=(-0.7, end + 0.7))
    _axes(ax, figure.axis, ticks)
    ax.grid(axis="x", color=_SOFT, linewidth=0.4)
    _legend(ax, len(figure.series) + bool(marks))


@draw_on.register(Points)
def _points(figure: Points, ax: Axes) -> None:
    ax.set_xscale("log" if figure.x.log else "linear")
    ax.set_yscale("log" if figure.y.log else "linear")
    lines = [cloud for cloud in figure.clouds if cloud.shape == "line"]
    for number, cloud in enumerate(figure.clouds):
        x, y = [p.x for p in cloud.points], [p.y for p in cloud.points]
        if cloud.shape == "line":
            style = ("-", "--", ":")[lines.index(cloud) % 3]
            ax.plot(x, y, style, color=_INK, linewidth=1.2, label=_plain(cloud.name))
            continue
        _one_cloud(ax, cloud, number)
        if figure.labelled:
            for p in cloud.points:
                ax.annotate(
                    _plain(short(p.name)), (p.x, p.y), (0, 4), textcoords="offset points", ha="center", fontsize=6
                )
    _axes(ax, figure.x, figure.y)
    ax.grid(color=_SOFT, linewidth=0.4)
    _legend(ax, len(figure.clouds))


def _one_cloud(ax: Axes, cloud: Cloud, number: int) -> None:
    ax.plot(
        [p.x for p in cloud.points], [p.y for p in cloud.points], mark(number)[1], color=colour(number), ms=5,
        mec="white", mew=0.4, label=_plain(cloud.name), linestyle="-" if cloud.shape == "steps" else "none",
        drawstyle="steps-post" if cloud.shape == "steps" else "default", linewidth=0.8,
    )  # fmt: skip


@draw_on.register(Boxes)
def _boxes(figure: Boxes, ax: Axes) -> None:
    drawn = 0
    for number, group in enumerate(figure.groups):
        mine = [box for box in figure.boxes if box.group == number]
        if not mine:
            continue
        drawn += 1
        ax.barh([(b.y + b.y_end) / 2 for b in mine], [b.x_end - b.x for b in mine], left=[b.x for b in mine],
                height=[b.y_end - b.y for b in mine], color=colour(number), hatch=pattern(number)[1] or None,
                edgecolor="white", linewidth=0.4, label=_plain(group))  # fmt: skip
    for x in figure.lines:
        ax.axvline(x, color=_INK, linewidth=0.5, linestyle=":")
    if figure.limit is not None:
        ax.axhline(figure.limit, color=_INK, linewidth=1.2)
    for one in figure.arrows:
        ax.annotate("", (one.x_end, one.y_end), (one.x, one.y), annotation_clip=False,
                    arrowprops={"arrowstyle": "-|>", "color": _INK, "lw": 0.8, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    _axes(ax, figure.x, figure.y)
    if figure.arrows and not figure.keyed:
        line = ax.plot([], [], color=_INK, linewidth=0.8, marker=">", ms=4)
        ax.legend(line, [_plain(figure.pointed)], loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False, fontsize=7)
    else:
        _legend(ax, drawn if figure.keyed else 0)


@draw_on.register(Graph)
def _graph(figure: Graph, ax: Axes) -> None:
    from matplotlib.patches import Rectangle

    for a, b in figure.edges:
        one, two = figure.nodes[a], figure.nodes[b]
        ax.plot([one.x, two.x], [one.y, two.y], color=_SOFT, linewidth=0.8, zorder=1)
    for number in range(len(figure.groups)):
        mine = [node for node in figure.nodes if node.group == number]
        if len(mine) > 1:
            x, y = [node.x for node in mine], [node.y for node in mine]
            size = max(x) - min(x) + 0.7, max(y) - min(y) + 0.8
            ax.add_patch(Rectangle((min(x) - 0.35, min(y) - 0.4), *size, color=colour(number), alpha=0.25, zorder=0))
    for node in figure.nodes:
        fill = _SOFT if node.group is None else colour(node.group)
        ax.plot([node.x], [node.y], "o", color=fill, ms=6, mec="white", mew=0.5, zorder=2)
        ax.annotate(
            _plain(short(node.name)), (node.x, node.y), (6, 0), textcoords="offset points", va="center", fontsize=6
        )
    right = max((node.x for node in figure.nodes), default=0.0)
    ax.set_xlim(-0.7, right + 1.2)
    ax.invert_yaxis()
    ax.set_axis_off()


@draw_on.register(Drawing)
def _drawing(figure: Drawing, ax: Axes) -> None:
    for one in figure.polygons:
        x, y = [c[0] for c in (*one.corners, one.corners[0])], [c[1] for c in (*one.corners, one.corners[0])]
        if one.filled:
            ax.fill(x, y, color=colour(one.group), ec=_INK, linewidth=0.8)
        else:
            ax.plot(x, y, color=_SOFT, linewidth=0.8)
    for label in figure.labels:
        weight = "bold" if label.bold else "normal"
        ax.text(label.x, label.y, _plain(label.text), ha="center", va="center", fontsize=7, fontweight=weight)
    ax.set_aspect("equal")
    ax.set_axis_off()
