"""What is drawn: figures as frozen data with units and captions, and the table that says the same in numbers.

Five kinds are enough for all problems: `Bars` (stacked, horizontal), `Points` (with lines and steps), `Boxes`
(rectangles over two axes: memories by time, banks, processors), `Graph` (a network), `Drawing` (polygons: tiles on
tensors). Every figure has a `key` that is unique on its page (small letters, digits, hyphens), and `table()`, which
stands behind it for whoever does not see it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Cell = str | int | float | None


@dataclass(frozen=True)
class Axis:
    """One axis."""

    title: str
    """With the unit: ``time (us)``."""
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    """Where something is written, and what; empty: numbers at round places."""
    downwards: bool = False
    """Whether values grow downwards."""
    limits: tuple[float, float] | None = None
    """What is shown; None for all that is drawn."""


@dataclass(frozen=True)
class Table:
    """Rows of cells; a number is shown on the right, with thousands apart."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Figure(ABC):
    """What every figure has."""

    key: str
    title: str
    caption: str
    """What one sees, and how to read it; one or two sentences."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to draw."""

    @abstractmethod
    def table(self) -> Table:
        """The same in numbers."""

    @property
    def alt(self) -> str:
        """A text in place of the figure."""
        return f"{self.title}. {self.caption}"


# ---- bars ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """One part of every bar; None where a bar has none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Bars(Figure):
    """Horizontal bars, from the top down; the series of a bar are stacked. Bars of one name stand together."""

    axis: Axis
    names: tuple[str, ...]
    """One a bar."""
    series: tuple[Series, ...]
    beside: tuple[str, ...] = ()
    """What tells bars of one name apart, such as the engine: one a bar, or none at all."""
    marks: tuple[float | None, ...] = ()
    """A value of the whole bar where it is not the sum of its series, such as time with overlap; or none at all."""
    marked: str = ""
    """What marks are."""

    @property
    def empty(self) -> bool:
        """Whether no bar has a length."""
        return not any(value for one in self.series for value in one.values)

    def table(self) -> Table:
        """A row a bar."""
        beside = ("engine",) if self.beside else ()
        marked = (self.marked,) if self.marks else ()
        rows = (
            (
                name,
                *((self.beside[k],) if self.beside else ()),
                *(one.values[k] for one in self.series),
                *((self.marks[k],) if self.marks else ()),
            )
            for k, name in enumerate(self.names)
        )
        return Table(("name", *beside, *(one.name for one in self.series), *marked), tuple(rows))


# ---- points ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One point with its name; `note` says more."""

    x: float
    y: float
    name: str = ""
    note: str = ""


@dataclass(frozen=True)
class Cloud:
    """Points that belong together."""

    name: str
    points: tuple[Point, ...]
    shape: Literal["points", "line", "steps"] = "points"
    """Points alone; a line without points, such as a roof; or points with steps between them, such as a front."""


@dataclass(frozen=True)
class Points(Figure):
    """Points over two axes."""

    x: Axis
    y: Axis
    clouds: tuple[Cloud, ...]
    labelled: bool = False
    """Whether the names stand beside the points; else they are said where one points at them."""

    @property
    def empty(self) -> bool:
        """Whether there is no point."""
        return not any(cloud.points for cloud in self.clouds if cloud.shape != "line")

    def table(self) -> Table:
        """A row a point; corners of lines, too."""
        rows = tuple(
            (cloud.name, point.name, point.x, point.y, point.note) for cloud in self.clouds for point in cloud.points
        )
        return Table(("of", "name", self.x.title, self.y.title, "note"), rows)


# ---- boxes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A rectangle from `x` to `x_end` and from `y` to `y_end`."""

    x: float
    x_end: float
    y: float
    y_end: float
    name: str
    group: int = 0
    """Its number in `Boxes.groups`."""
    note: str = ""


@dataclass(frozen=True)
class Arrow:
    """From one place to another one."""

    x: float
    y: float
    x_end: float
    y_end: float
    name: str
    note: str = ""


@dataclass(frozen=True)
class Boxes(Figure):
    """Rectangles over two axes."""

    x: Axis
    y: Axis
    groups: tuple[str, ...]
    boxes: tuple[Box, ...]
    tall: int = 0
    """Rows that need room for a text each; 0: a figure of usual height."""
    lines: tuple[float, ...] = ()
    """Where a line stands across, at these values of x."""
    limit: float | None = None
    """A value of y that nothing may exceed: the end of a memory."""
    keyed: bool = True
    """Whether groups mean something; else they only give neighbours different colours."""
    arrows: tuple[Arrow, ...] = ()
    pointed: str = ""
    """What arrows are, for the legend."""

    @property
    def empty(self) -> bool:
        """Whether there is no rectangle."""
        return not self.boxes

    def table(self) -> Table:
        """A row a rectangle, then a row an arrow."""
        x, y = self.x.title, self.y.title

        def kind(box: Box) -> tuple[str, ...]:
            return (self.groups[box.group],) if self.keyed else ()

        rows = tuple(
            (b.name, *kind(b), _tick(self.x, b.x), _tick(self.x, b.x_end), *_along(self.y, b), b.note)
            for b in self.boxes
        )
        lanes = bool(self.y.ticks)
        ends = ((self.pointed,) if lanes else (a.y, a.y_end) for a in self.arrows)
        rows += tuple(
            (a.name, *("",) * self.keyed, a.x, a.x_end, *end, a.note) for a, end in zip(self.arrows, ends, strict=True)
        )
        kinds = ("kind",) if self.keyed else ()
        return Table(("name", *kinds, f"{x}, from", "to", *((y,) if lanes else (f"{y}, from", "to")), "note"), rows)


def _tick(axis: Axis, value: float) -> Cell:
    """The value; what is written there where it has a text."""
    return dict(axis.ticks).get(value, value) if axis.ticks else value


def _along(axis: Axis, box: Box) -> tuple[Cell, ...]:
    """The lane of a box where lanes have names; else from where to where."""
    if axis.ticks:
        inside = [text for at, text in axis.ticks if box.y <= at <= box.y_end]
        return (", ".join(inside),)
    return box.y, box.y_end


# ---- graphs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """An operator; `x`, `y` are places of the drawing."""

    name: str
    x: float
    y: float
    group: int | None = None
    """Its number in `Graph.groups`; None: of no group."""
    note: str = ""


@dataclass(frozen=True)
class Graph(Figure):
    """A network from the top down; nodes of a group stand in one frame."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]
    """By the numbers of nodes."""
    groups: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether there is no node."""
        return not self.nodes

    def table(self) -> Table:
        """A row a node."""
        before: dict[int, list[str]] = {}
        for a, b in self.edges:
            before.setdefault(b, []).append(self.nodes[a].name)
        rows = tuple(
            (
                node.name, "" if node.group is None else self.groups[node.group], ", ".join(before.get(k, ())),
                node.note,
            )
            for k, node in enumerate(self.nodes)
        )  # fmt: skip
        return Table(("operator", "group", "reads", "note"), rows)


# ---- drawings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Polygon:
    """A closed line, filled or not."""

    corners: tuple[tuple[float, float], ...]
    group: int = 0
    """Its number in `Drawing.groups`."""
    filled: bool = False


@dataclass(frozen=True)
class Label:
    """A text at a place, centred."""

    x: float
    y: float
    text: str
    bold: bool = False


@dataclass(frozen=True)
class Drawing(Figure):
    """Polygons without axes; both directions to one scale."""

    groups: tuple[str, ...]
    polygons: tuple[Polygon, ...]
    labels: tuple[Label, ...]
    numbers: Table
    """What the drawing says."""

    @property
    def empty(self) -> bool:
        """Whether there is no polygon."""
        return not self.polygons

    def table(self) -> Table:
        """What the drawing says in numbers."""
        return self.numbers


# ---- what a problem gives --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A layer or another part in detail: figures, and lines as `certile show --layer` prints them."""

    name: str
    line: str
    """What is said of it before it is opened."""
    text: str
    figures: tuple[Figure, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pictures:
    """All that is drawn of a plan, and its parts in detail."""

    figures: tuple[Figure, ...] = ()
    blocks: tuple[Block, ...] = ()

    @property
    def all(self) -> tuple[Figure, ...]:
        """All figures that have something to draw."""
        every: Sequence[Figure] = (*self.figures, *(figure for block in self.blocks for figure in block.figures))
        return tuple(figure for figure in every if not figure.empty)


@dataclass(frozen=True)
class Fact:
    """A name, and what is so."""

    name: str
    value: str
    note: str = field(default="")
