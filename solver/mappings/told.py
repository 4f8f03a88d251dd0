"""What is known of a priced mapping, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwmodels.schedule import Nest
from solver.mappings.compare import reasons
from solver.mappings.text import text_of
from solver.tables import Column, Sheet, ratio, render
from solver.tiling.rows import LayerRow

if TYPE_CHECKING:
    from solver.mappings.price import LayerPrice, PricedMapping


def told(priced: PricedMapping) -> Iterator[str]:
    """Lines about every layer."""
    for k, one in enumerate(priced.layers):
        yield from ([""] if k else [])
        yield f"{one.name} on {one.machine.name}: {text_of(one.mapped.nest)}"
        if one.mapped.source not in ("text", "a nest"):
            yield f"read as {one.mapped.source}"
        yield from (f"note: {note}" for note in one.mapped.notes)
        yield from _unfit(one) if one.overflows else _figures(one)
        if one.improved:
            yield from ("", render(_improvements(one)).rstrip("\n"))


def _unfit(one: LayerPrice) -> Iterator[str]:
    for memory, (taken, size) in one.overflows.items():
        yield f"does not fit: memory {memory}: {taken:,} bytes are taken, there are {size:,}: {taken - size:,} too many"
    mine = [str(change) for change in one.remedies if change.loop is not None]
    new = [f"{change.dim} {change.step}" for change in one.remedies if change.loop is None]
    if mine:
        yield f"would fit with one of its loops in pieces of at most: {', '.join(mine)}"
    if new:
        yield f"would fit with one more loop outside all others, in pieces of at most: {', '.join(new)}"
    if not one.remedies:
        yield "no single loop with smaller pieces makes it fit"
    if one.best is not None and one.best.schedule is not None and one.best.objective is not None:
        value = one.best.objective
        nest = text_of(one.best.schedule)
        said = "the optimum" if _least(one.best) else "the best known"
        yield f"{said} has {value.value:,} {value.unit}: {nest}"


def _figures(one: LayerPrice) -> Iterator[str]:
    row, best = one.row, one.best
    if row is None or row.measures is None or row.counts is None or row.objective is None:
        return
    yield from ("", render(_sheet(row, best)).rstrip("\n"), "")
    taken = ", ".join(f"{name} {size:,} of {one.machine.memories[name]:,}"
                      for name, size in (row.occupancy_bytes or {}).items())  # fmt: skip
    yield f"on chip, bytes: {taken}; replay agrees" + (
        ", computed on integers too" if row.replay and row.replay.executed else ""
    )
    if best is not None:
        yield from _compared(one, row, best)


def _compared(one: LayerPrice, row: LayerRow, best: LayerRow) -> Iterator[str]:
    """The mapping against the optimum, and why it is worse."""
    if row.objective is None or best.objective is None or one.times is None:
        yield "there is no optimum to compare with: none was found in time"
        return
    first = one.objectives[0]
    proven = _least(best)
    known = "the minimum, proven" if proven else f"the best known; no mapping is below {best.bound:,}"
    verb = {"bytes": "moves", "time": "takes", "energy": "needs"}[first]
    what = {"bytes": "bytes", "time": "ticks", "energy": "fJ"}[first]
    value, least = row.objective.value, best.objective.value
    if value <= least:
        yield f"Your mapping {verb} {value:,} {what}: {known}."
        return
    yield f"Your mapping {verb} {one.times:.2f} times {known}: {value:,} {what} against {least:,}."
    yield f"The {'optimum' if proven else 'best known'}: {text_of(best.schedule) if best.schedule else ''}"
    nest = one.mapped.nest
    yield from (
        f"  {line}" for line in reasons(one.mapped.layer, one.machine, nest, _bytes(row), _bytes(best), known="it")
    )


def _least(best: LayerRow) -> bool:
    """Whether nothing has less of the first objective; of several, the others may be open."""
    return best.status == "OPTIMAL" or (best.objective is not None and best.objective.value == best.bound)


def _bytes(row: LayerRow) -> dict[str, int]:
    return {} if row.figures is None else {name: one.bytes for name, one in row.figures.counts.items()}


def _sheet(row: LayerRow, best: LayerRow | None) -> Sheet:
    """The mapping beside the optimum: bytes by operand, then all measures."""
    rows = [(f"{name} bytes", value, _bytes(best).get(name) if best else None) for name, value in _bytes(row).items()
            if value or (best and _bytes(best).get(name))]  # fmt: skip
    units = {"bytes": "all bytes", "time": "time, ticks", "energy": "energy, fJ"}
    mine = row.measures.model_dump() if row.measures else {}
    its = best.measures.model_dump() if best and best.measures else {}
    rows += [(said, mine[name], its.get(name)) for name, said in units.items()]
    columns = [
        Column("", [name for name, _, _ in rows], words=True),
        Column("yours", [f"{value:,}" for _, value, _ in rows]),
    ]
    if best is not None:
        known = "optimum" if _least(best) else "best known"
        columns += [
            Column(known, ["-" if other is None else f"{other:,}" for _, _, other in rows]),
            Column("x", [ratio(value, other) for _, value, other in rows]),
        ]  # fmt: skip
    return Sheet(columns)


def _improvements(one: LayerPrice) -> Sheet:
    """What keeping a part of a mapping costs."""
    first = one.objectives[0]
    own = one.row.objective.value if one.row and one.row.objective else None
    rows: list[tuple[str, int | None, Nest | None, str]]
    rows = [("all: your mapping", own, one.mapped.nest, "does not fit" if own is None else "")]
    for better in one.improved:
        value = better.measures[first] if better.measures else None
        rows.append((better.kept, value, better.nest, better.note or better.status))
    least = rows[-1][1]
    return Sheet([
        Column("kept", [row[0] for row in rows], "what stays as given, the rest is the best there is", words=True),
        Column(first, ["-" if row[1] is None else f"{row[1]:,}" for row in rows]),
        Column("x", [ratio(row[1], least) for row in rows], "over the last row"),
        Column("status", [row[3] for row in rows], words=True),
        Column("mapping", ["-" if row[2] is None else text_of(row[2]) for row in rows], words=True),
    ])  # fmt: skip
