"""Figures as plotly draws them: plain data for ``Plotly.newPlot``, so that nothing of plotly has to be imported.

Colours that depend on light and dark are written ``@ink``, ``@soft`` and ``@paper``; page.js puts the page's in their
place. All texts are escaped: plotly reads some tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from html import escape
from typing import TypeAlias

from solver.plan.figures import Axis, Bars, Boxes, Cloud, Drawing, Figure, Graph, Points
from solver.show.style import colour, mark, pattern, short, spoken

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
Dict: TypeAlias = dict[str, Json]

INK, SOFT, PAPER = "@ink", "@soft", "@paper"
#: Pixels: of a bar, of what is around bars, of other figures.
_BAR, _AROUND, _USUAL = 20, 100, 420
_RANK, _LANE_NAMES = 30, 2
#: A logarithmic axis over less than this ratio also names 2 and 5 between powers of ten.
_FEW = 50


@singledispatch
def drawn(figure: Figure) -> Dict:
    """Return ``{"data": [...], "layout": {...}}``; raises TypeError for a kind that is not known."""
    raise TypeError(f"{type(figure).__name__}: nothing draws it")


def _text(text: str) -> str:
    return escape(text, quote=False)


def _axis(axis: Axis, **more: Json) -> Dict:
    made: Dict = {
        "title": {"text": _text(axis.title), "standoff": 8}, "gridcolor": SOFT, "linecolor": SOFT, "zeroline": False,
        "automargin": True, "separatethousands": True, "fixedrange": False,
    }  # fmt: skip
    if axis.log:
        made |= {"type": "log", "dtick": 1, "exponentformat": "none"}
    elif not axis.ticks:
        made["tickformat"] = ","
    if axis.ticks:
        made |= {
            "tickvals": [at for at, _ in axis.ticks],
            "ticktext": [_text(short(text)) for _, text in axis.ticks],
        }
    if axis.downwards:
        made["autorange"] = "reversed"
    if axis.limits is not None:
        low, high = axis.limits
        made["range"] = [high, low] if axis.downwards else [low, high]
        made.pop("autorange", None)
    return made | more


def _layout(height: int, **more: Json) -> Dict:
    return {
        "height": height, "margin": {"l": 8, "r": 12, "t": 8, "b": 8}, "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "xanchor": "left", "yanchor": "bottom"}, **more,
    }  # fmt: skip


def _marker(number: int) -> Dict:
    shape = pattern(number)[0]
    made: Dict = {"color": colour(number), "line": {"width": 1, "color": PAPER}}
    if shape:
        made["pattern"] = {"shape": shape, "size": 6, "fgcolor": PAPER, "solidity": 0.35}
    return made


# ---- bars ------------------------------------------------------------------------------------------------------------


@drawn.register
def _bars(figure: Bars) -> Dict:
    at = places(figure)
    said = [
        f"{_text(name)}{f' ({_text(figure.beside[k])})' if figure.beside else ''}"
        for k, name in enumerate(figure.names)
    ]
    shown = list(map(short, names_of(figure)))
    data: list[Json] = [
        {
            "type": "bar", "orientation": "h", "name": _text(one.name), "y": at, "x": list(one.values),
            "marker": _marker(number), "hoverinfo": "text", "width": 0.8,
            "hovertext": [
                f"{said[k]}<br>{_text(one.name)}: {'-' if value is None else spoken(value)}"
                for k, value in enumerate(one.values)
            ],
        }
        for number, one in enumerate(figure.series)
    ]  # fmt: skip
    if any(value is not None for value in figure.marks):
        data.append({
            "type": "scatter", "mode": "markers", "name": _text(figure.marked), "y": at, "x": list(figure.marks),
            "marker": {"symbol": "line-ns-open", "size": 14, "color": INK, "line": {"width": 2, "color": INK}},
            "hoverinfo": "text",
            "hovertext": [f"{said[k]}<br>{_text(figure.marked)}: {spoken(v or 0)}" for k, v in enumerate(figure.marks)],
        })  # fmt: skip
    end = (at[-1] if at else 0) + 0.7
    names = Axis("", ticks=tuple(zip(at, shown, strict=True)), limits=(-0.7, end), downwards=True)
    height = round(_BAR * (end + 0.7)) + _AROUND
    values = _axis(figure.axis, rangemode="tozero")
    layout = _layout(height, barmode="relative", bargap=0.2, showlegend=True, xaxis=values,
                     yaxis=_axis(names, showgrid=False, tickfont={"size": 11}))  # fmt: skip
    return {"data": data, "layout": layout}


def places(figure: Bars) -> list[float]:
    """Return where bars stand: those of one name together, and a little room between names."""
    found, at = list[float](), 0.0
    for k, name in enumerate(figure.names):
        if k:
            at += 1.0 if not figure.beside or figure.names[k - 1] == name else 1.5
        found.append(at)
    return found


def names_of(figure: Bars) -> list[str]:
    """Return what stands beside bars: of those of one name the first has it, the others what tells them apart."""
    names = enumerate(figure.names)
    return [figure.beside[k] if figure.beside and k and figure.names[k - 1] == name else name for k, name in names]


# ---- points ----------------------------------------------------------------------------------------------------------


@drawn.register
def _points(figure: Points) -> Dict:
    data: list[Json] = [_cloud(figure, cloud, number) for number, cloud in enumerate(figure.clouds)]
    every = [point for cloud in figure.clouds for point in cloud.points]
    axes = [
        _axis(axis, **({"dtick": "D2"} if axis.log and max(values) < _FEW * min(values) else {}))
        for axis, values in ((figure.x, [p.x for p in every]), (figure.y, [p.y for p in every]))
    ]
    layout = _layout(_USUAL + 60, xaxis=axes[0], yaxis=axes[1], showlegend=len(figure.clouds) > 1)
    return {"data": data, "layout": layout}


def _cloud(figure: Points, cloud: Cloud, number: int) -> Dict:
    lines = [other for other in figure.clouds if other.shape == "line"]
    made: Dict = {
        "type": "scatter", "name": _text(cloud.name), "hoverinfo": "text", "x": [p.x for p in cloud.points],
        "y": [p.y for p in cloud.points],
        "hovertext": [
            "<br>".join(
                filter(None, (
                    _text(p.name), f"{_text(figure.x.title)}: {spoken(p.x)}", f"{_text(figure.y.title)}: {spoken(p.y)}",
                    _text(p.note),
                ))
            )
            for p in cloud.points
        ],
    }  # fmt: skip
    if cloud.shape == "line":
        dash = ("solid", "dash", "dot")[lines.index(cloud) % 3]
        return made | {"mode": "lines", "line": {"color": INK, "width": 2, "dash": dash}}
    symbol: Dict = {"color": colour(number), "size": 9, "symbol": mark(number)[0], "line": {"width": 1, "color": PAPER}}
    mode = "markers" if cloud.shape == "points" else "lines+markers"
    if figure.labelled:
        mode += "+text"
        made |= {
            "text": [_text(short(p.name)) for p in cloud.points],
            "textposition": "top center",
            "cliponaxis": False,
        }
    steps: Dict = {"line": {"color": colour(number), "width": 1.5, "shape": "hv"}} if cloud.shape == "steps" else {}
    return made | {"mode": mode, "marker": symbol} | steps


# ---- boxes -----------------------------------------------------------------------------------------------------------


@drawn.register
def _boxes(figure: Boxes) -> Dict:
    data = list[Json]()
    for number, group in enumerate(figure.groups):
        mine = [box for box in figure.boxes if box.group == number]
        if not mine:
            continue
        data.append({
            "type": "bar", "orientation": "h", "name": _text(group), "base": [b.x for b in mine],
            "x": [b.x_end - b.x for b in mine], "y": [(b.y + b.y_end) / 2 for b in mine],
            "width": [b.y_end - b.y for b in mine], "marker": _marker(number), "hoverinfo": "text",
            "hovertext": [
                "<br>".join(filter(None, (_text(b.name), _text(group) * figure.keyed, _text(b.note)))) for b in mine
            ],
            "text": [_text(b.name) for b in mine], "textposition": "inside", "insidetextanchor": "middle",
            "textangle": 0, "constraintext": "inside", **({"showlegend": figure.keyed} if figure.arrows else {}),
        })  # fmt: skip
    if figure.arrows:
        data.append(_arrows(figure))
    shapes: list[Json] = [
        {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": INK, "width": 1, "dash": "dot"}}
        for x in figure.lines
    ]  # fmt: skip
    y = figure.y
    if figure.limit is not None and y.limits is None:
        y = replace(y, limits=(0, 1.02 * max(figure.limit, *(box.y_end for box in figure.boxes))))
    if figure.limit is not None:
        line: Dict = {"color": INK, "width": 2}
        shapes.append(
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": figure.limit, "y1": figure.limit, "line": line}
        )
    height = figure.tall * 34 + _AROUND if figure.tall else _USUAL
    layout = _layout(height, barmode="overlay", shapes=shapes, xaxis=_axis(figure.x), yaxis=_axis(y),
                     showlegend=bool(figure.arrows) or (figure.keyed and len(data) > 1),
                     uniformtext={"mode": "hide", "minsize": 9})  # fmt: skip
    return {"data": data, "layout": layout}


def _arrows(figure: Boxes) -> Dict:
    """All arrows as one line with gaps, a head at the end of each."""
    made: dict[str, list[Json]] = {"x": [], "y": [], "hovertext": []}
    for one in figure.arrows:
        said = "<br>".join(filter(None, (_text(one.name), _text(one.note))))
        made["x"] += [round(one.x, 3), round(one.x_end, 3), None]
        made["y"] += [one.y, one.y_end, None]
        made["hovertext"] += [said, said, ""]
    marker: Dict = {"symbol": ["circle", "arrow", "circle"] * len(figure.arrows), "angleref": "previous", "color": INK,
                    "size": [5, 10, 0] * len(figure.arrows)}  # fmt: skip
    return {
        "type": "scatter", "mode": "lines+markers", "name": _text(figure.pointed), **made, "hoverinfo": "text",
        "line": {"color": INK, "width": 1.5}, "marker": marker, "showlegend": True,
    }  # fmt: skip


# ---- graphs ----------------------------------------------------------------------------------------------------------


@drawn.register
def _graph(figure: Graph) -> Dict:
    x, y = list[Json](), list[Json]()
    for a, b in figure.edges:
        x += [figure.nodes[a].x, figure.nodes[b].x, None]
        y += [figure.nodes[a].y, figure.nodes[b].y, None]
    data: list[Json] = [
        {"type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip", "showlegend": False,
         "line": {"color": SOFT, "width": 1.5}}
    ]  # fmt: skip
    named = len({node.x for node in figure.nodes}) <= _LANE_NAMES
    for number, group in [(None, "")] + [(k, text) for k, text in enumerate(figure.groups)]:
        mine = [node for node in figure.nodes if node.group == number]
        if mine:
            fill = SOFT if number is None else colour(number)
            data.append({
                "type": "scatter", "mode": "markers+text" if named else "markers", "name": _text(group),
                "x": [n.x for n in mine], "y": [n.y for n in mine], "showlegend": number is not None,
                "text": [_text(short(n.name)) for n in mine], "textposition": "middle right", "cliponaxis": False,
                "marker": {"size": 13, "color": fill, "symbol": "circle" if number is None else mark(number // 7)[0],
                           "line": {"width": 1, "color": PAPER}},
                "hoverinfo": "text",
                "hovertext": ["<br>".join(filter(None, (_text(n.name), _text(group), _text(n.note)))) for n in mine],
            })  # fmt: skip
    right = max((node.x for node in figure.nodes), default=0.0)
    ranks = len({node.y for node in figure.nodes})
    hidden: Dict = {"visible": False, "fixedrange": False}
    layout = _layout(
        _RANK * ranks + _AROUND, shapes=[dict(one) for one in _frames(figure)], showlegend=len(figure.groups) > 1,
        xaxis={**hidden, "range": [-0.7, right + (1.6 if named else 0.7)]}, yaxis={**hidden, "autorange": "reversed"},
    )  # fmt: skip
    return {"data": data, "layout": layout}


def _frames(figure: Graph) -> list[Dict]:
    """A frame around every group of two or more nodes."""
    made = []
    for number in range(len(figure.groups)):
        mine = [node for node in figure.nodes if node.group == number]
        if len(mine) > 1:
            x, y = [node.x for node in mine], [node.y for node in mine]
            one: Dict = {
                "type": "rect", "layer": "below", "x0": min(x) - 0.35, "x1": max(x) + 0.35, "y0": min(y) - 0.4,
                "y1": max(y) + 0.4, "fillcolor": colour(number), "opacity": 0.25,
                "line": {"width": 1.5, "color": colour(number)},
            }  # fmt: skip
            made.append(one)
    return made


# ---- drawings --------------------------------------------------------------------------------------------------------


@drawn.register
def _drawing(figure: Drawing) -> Dict:
    data = list[Json]()
    for one in figure.polygons:
        x: list[Json] = [corner[0] for corner in (*one.corners, one.corners[0])]
        y: list[Json] = [corner[1] for corner in (*one.corners, one.corners[0])]
        line: Dict = {"width": 1.5 if one.filled else 1, "color": INK if one.filled else SOFT}
        fill: Dict = {"fill": "toself", "fillcolor": colour(one.group)} if one.filled else {}
        data.append({"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip", **fill})
    notes: list[Json] = [
        {"x": one.x, "y": one.y, "showarrow": False,
         "text": f"<b>{_text(one.text)}</b>" if one.bold else _text(one.text), "font": {"size": 12 if one.bold else 11}}
        for one in figure.labels
    ]  # fmt: skip
    hidden: Dict = {"visible": False, "fixedrange": True}
    layout = _layout(250, annotations=notes, showlegend=False, xaxis=dict(hidden),
                     yaxis={**hidden, "scaleanchor": "x", "scaleratio": 1})  # fmt: skip
    return {"data": data, "layout": layout}
