"""Pages of fronts and of other rows of figures: what no other beats in all axes, as points with steps between them.

`rows_page` serves whatever has rows with numbers: a sweep of machines, say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from instances.errors import InputError
from instances.jsonfile import Json
from solver.plan.figures import Axis, Cell, Cloud, Figure, Point, Points
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.show.page import Page, Section, cell_text, sheet_of
from solver.show.style import slugs
from solver.show.tables import Sheet, front_line, front_table


def front_page(front: Front) -> Page:
    """Return the page of a front."""
    lead = (f"{front_line(front)[:1].upper()}{front_line(front)[1:]}.",)
    table = replace(front_table(front), caption=f"Front of {front.network} on {front.machine}")
    sections = (
        Section("What is proven", "PROVEN" if front.proven else "", lead),
        Section("Figures", figures=tuple(front_figures(front))),
        Section("Table", grids=(_filled(table),)),
    )
    axes = ", ".join(f"{axis} ({unit})" for axis, unit in front.units.items())
    return Page(f"Front of {front.network} on {front.machine}", f"Problem {front.problem}; {axes}", sections)


def _filled(sheet: Sheet) -> Sheet:
    """A table with the name of a part in each of its rows, so that it can be sorted."""
    first, *others = sheet.columns
    names = list[str]()
    for cell in first.cells:
        names.append(cell or (names or [""])[-1])
    return replace(sheet, columns=[replace(first, cells=names), *others])


def front_figures(front: Front) -> Iterator[Figure]:
    """Yield a figure for every part and every pair of axes."""
    keys = slugs(part.name or "front" for part in front.parts)
    for part, key in zip(front.parts, keys, strict=True):
        for one, two in combinations(front.axes, 2):
            title = f"{two} against {one}" + (f": {part.name}" if part.name else "")
            known = "no other plan is on it" if part.proven else "not all of it is proven"
            caption = f"Every plan that no other beats in {', '.join(front.axes)}; {known}."
            points = tuple(
                Point(point.values[one], point.values[two], f"plan {number}", _about(point))
                for number, point in enumerate(part.points, 1)
            )
            cloud = Cloud(part.name or front.network, points, "steps" if len(front.axes) == 2 else "points")
            x, y = (Axis(axis if axis == front.units[axis] else f"{axis} ({front.units[axis]})") for axis in (one, two))
            yield Points(f"front-{key}-{one}-{two}", title, caption, x, y, (cloud,))


def _about(point: FrontPoint) -> str:
    return ", ".join(filter(None, (point.label, *(f"{name} {value}" for name, value in point.details.items()))))


# ---- fronts that were written to a file ------------------------------------------------------------------------------


def read_front(data: Mapping[str, Json], where: str) -> Front:
    """Return the front of a file, without its plans; raises InputError if it is none."""
    try:
        units = {str(k): str(v) for k, v in _object(data["units"]).items()}
        parts = tuple(_part(_object(part), units) for part in _list(data["parts"]))
        problem, network, machine = (str(data[name]) for name in ("problem", "network", "machine"))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not a front as certile pareto writes it: {type(error).__name__} {error}") from None
    return Front(problem, network, machine, units, parts)


def _part(data: Mapping[str, Json], units: Mapping[str, str]) -> FrontPart:
    points = []
    for each in _list(data["points"]):
        point = _object(each)
        values = {axis: int(str(_object(point["values"])[axis])) for axis in units}
        body = {name: value for name, value in point.items() if name != "values"}
        points.append(FrontPoint(values, body, _decision(body)))
    return FrontPart(str(data["part"]), tuple(points), bool(data["complete"]), bool(data["proven"]))


def _decision(body: Mapping[str, Json]) -> str:
    """The decisions of a point in short, where it has some."""
    found = body.get("decision")
    return " ".join(f"{k}={v}" for k, v in found.items()) if isinstance(found, dict) else ""


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("an object is expected")
    return value


def _list(value: Json) -> Sequence[Json]:
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return value


# ---- rows of anything ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows with numbers, such as the results of a sweep.

    Attributes
    ----------
    columns : tuple of str
        Heads, with units.
    rows : tuple of tuple
        Cells: texts, numbers, None for nothing.
    axes : tuple of str
        Columns that are drawn in pairs; less is better in each.
    name : str
        The column that names a row; by default the first one.
    group : str
        The column whose values have a colour each; empty: all rows one.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    axes: tuple[str, ...] = ()
    name: str = ""
    group: str = ""


def rows_page(title: str, subtitle: str, found: Rows, lead: Sequence[str] = ()) -> Page:
    """Return a page with a table of rows and, for every pair of axes, its points with the Pareto front marked."""
    table = sheet_of(found.columns, found.rows, title)
    figures = tuple(scatter(found, one, two) for one, two in combinations(found.axes, 2))
    return Page(
        title, subtitle, (Section("Figures", lead=tuple(lead), figures=figures), Section("Table", grids=(table,)))
    )


def scatter(found: Rows, one: str, two: str) -> Points:
    """Return the points of all rows over two columns, and the front of the rows that none beats in both.

    Raises InputError if there is no such column.
    """
    x, y, name = (_column(found, column) for column in (one, two, found.name or found.columns[0]))
    group = _column(found, found.group) if found.group else None
    clouds: dict[str, list[Point]] = {}
    for row in found.rows:
        a, b = row[x], row[y]
        if isinstance(a, int | float) and isinstance(b, int | float):
            said = "" if group is None else cell_text(row[group])
            clouds.setdefault(said, []).append(Point(a, b, cell_text(row[name])))
    best = least([point for points in clouds.values() for point in points])
    made = [Cloud(said or "rows", tuple(points)) for said, points in clouds.items()]
    made.append(Cloud("front", tuple(best), "steps"))
    caption = f"A point is a row; the steps join those that no other beats in both {one} and {two}."
    key = f"{slugs([one])[0]}-{slugs([two])[0]}"
    return Points(f"front-{key}", f"{two} against {one}", caption, Axis(one), Axis(two), tuple(made))


def least(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other is below in one axis and not above in the other, ascending in x."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p.x, p.y)):
        if not found or point.y < found[-1].y:
            found.append(point)
    return found


def _column(found: Rows, name: str) -> int:
    if name not in found.columns:
        raise InputError(f"no column {name!r}; there are {', '.join(found.columns)}")
    return found.columns.index(name)
