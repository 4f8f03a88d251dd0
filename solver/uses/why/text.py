"""What `why` says, in plain sentences with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from solver.show.tables import percent, ratio

if TYPE_CHECKING:
    from solver.plan.why import About, Curve, Knee, Part, Point, Rival, Split, Trial, Why

#: Parts of a measure that is not the objective, at most.
_FEW = 4
#: What the causes of parts are called.
CAUSES = {
    "once": "needed once", "again": "fetched again", "copies": "copies for several cores", "halo": "halo",
    "skipped": "skipped by the stride", "kernel": "read again for the kernel", "bias": "biases again",
    "padding": "padding and copies",
    "edge": "border tiles charged whole", "spilled": "written and read again", "first_read": "first reads",
    "printed": "as printed", "startup": "start-up of calls", "runs": "runs of addresses", "bursts": "bursts",
    "alignment": "bursts filled in part", "compute": "with all lanes full", "lanes": "lanes without work",
    "layer": "the layer's own", "overlap": "hidden", "parallel": "side by side", "arithmetic": "arithmetic",
    "waits": "waited for", "drain": "behind the last step", "": "",
}  # fmt: skip


def lines_of(why: Why) -> Iterator[str]:
    """Yield all that is known, line by line."""
    for number, part in enumerate(why.parts):
        if number:
            yield ""
        yield from about_lines(part, why.network)
    for number, curve in enumerate(why.curves):
        if number or why.parts:
            yield ""
        yield from curve_lines(curve)


def about_lines(about: About, network: str) -> Iterator[str]:
    """Yield what is known of a layer or a plan."""
    yield f"{about.layer or network}: {about.headline}"
    for number, split in enumerate(about.splits):
        yield from _split_lines(split, None if number == 0 else _FEW)
    yield from _stalls(about)
    yield from _binding(about)
    yield from _rivals(about)
    yield from _distances(about)
    if about.left_out:
        said = ", ".join(about.left_out[:_FEW])
        more = len(about.left_out) - _FEW
        yield f"Not solved again, for lack of time: {said}{f' and {more} more' if more > 0 else ''}."


def _by_size(split: Split) -> list[Part]:
    """The largest first; what runs at the same time as others, and is taken off, last."""
    return sorted(split.parts, key=lambda part: (part.value < 0, -abs(part.value)))


def split_sentences(split: Split) -> Iterator[str]:
    """Yield a sentence for each part of a measure, the largest first: ``200,704 bytes, 45.8 %: IN needed once``."""
    for part in _by_size(split):
        yield f"{part.value:,} {split.unit}, {_share(part.value, split.value)}: {_part(part)}"


def _split_lines(split: Split, most: int | None) -> Iterator[str]:
    parts = _by_size(split)
    shown = parts[:most]
    of = "" if split.unit == split.measure else f" of {split.measure}"
    yield f"Where the {' '.join(f'{split.value:,} {split.unit}'.split())}{of} go:"
    width = max((len(f"{part.value:,}") for part in shown), default=0)
    for part in shown:
        said = _part(part) if most is None else _named(part)
        yield f"  {part.value:>{width},}  {_share(part.value, split.value):>7}  {said}"
    if len(parts) > len(shown):
        rest, more = sum(part.value for part in parts[len(shown) :]), len(parts) - len(shown)
        yield f"  {rest:>{width},}  {_share(rest, split.value):>7}  {more} more part{'s' * (more > 1)}"


def _part(part: Part) -> str:
    return f"{_named(part)}{f': {part.why}' if part.why else ''}"


def _named(part: Part) -> str:
    return " ".join(text for text in (part.what, CAUSES.get(part.cause, part.cause)) if text)


def _share(value: int, whole: int) -> str:
    return f"{100 * value / whole:.1f} %" if whole else "-"


def _stalls(about: About) -> Iterator[str]:
    """The longest waits, and what would have hidden each."""
    if about.stalls:
        yield "The longest waits, and what would have hidden each by itself:"
    for one in about.stalls:
        if one.bytes is None:
            memory = "no memory (nothing runs before)" if one.step == 1 else "no memory (too late to be loaded before)"
        elif one.bytes:
            memory = f"{one.bytes:,} bytes more on chip"
        else:
            memory = "another order of transfers"
        rate = "no rate" if one.gbps is None else f"{ceil(100 * one.gbps) / 100:,.2f} GB/s"
        yield f"  {one.ticks:,} ticks before {one.layer} (step {one.step}) for {one.what}: {memory}; {rate}"


def _binding(about: About) -> Iterator[str]:
    rooms = [f"{one.memory} {one.used:,} of {one.capacity:,} bytes, {one.slack:,} free" for one in about.rooms]
    if not (rooms or about.busy or about.trials):
        return
    yield "What binds:"
    yield from (f"  {line}" for line in rooms)
    if about.busy:
        yield f"  {about.busy}"
    for one in about.trials:
        if one.status != "SKIPPED" and one.binds is not False and one.value is not None:
            yield f"  {_trial(one, about)}"
    if free := [one.change for one in about.trials if one.binds is False]:
        yield f"  proven not to bind (nothing is better without it): {'; '.join(free)}"
    for knee, first in ((about.knee, True), (about.enough, False)):
        if knee is not None and (first or knee != about.knee):
            yield f"  {_knee(knee, about, first=first)}"


def _knee(knee: Knee, about: About, *, first: bool) -> str:
    if first:
        said = "the next size that helps" if knee.exact else "helps"
    else:
        said = "the least size that is as good as no limit" if knee.exact else "is as good as no limit"
    helped = f"{knee.value:,} {about.unit}, {_less(knee.saves, about)}"
    return f"{knee.field}={knee.at:,} ({knee.more:,} more) {'is ' * ('size' in said)}{said}: {helped}"


def _trial(one: Trial, about: About) -> str:
    each = f" ({(one.saves or 0) / one.amount:,.1f} {about.unit} a {one.per})" if one.amount and one.saves else ""
    if one.binds:
        least = "" if one.exact else " at least"
        return f"{one.change}: {one.value or 0:,} {about.unit},{least} {_less(one.saves or 0, about)}{each}: binds"
    less = (
        f"{one.value or 0:,} {about.unit}, {_less(one.saves or 0, about)}{each}"
        if one.saves
        else "nothing better was found"
    )
    return f"{one.change}: {less}; whether it binds is not proven"


def _less(saves: int, about: About) -> str:
    return f"{percent(saves / about.value)} % less" if about.value else f"{saves:,} less"


def _rivals(about: About) -> Iterator[str]:
    """The cheapest first; those that cost nothing, and those that leave no plan, in a line each."""
    free = [one.decision for one in about.rivals if one.more == 0 and one.exact]
    none = [one.decision for one in about.rivals if one.value is None]
    others = [one for one in about.rivals if one.value is not None and one.decision not in free]
    if about.rivals:
        yield "Next-best decisions:"
    if free:
        yield f"  as good: {', '.join(free)}"
    yield from (f"  {_rival(one, about)}" for one in others)
    if none:
        yield f"  no plan: {', '.join(none)}"


def _rival(one: Rival, about: About) -> str:
    if one.value is None or one.more is None:
        return one.decision
    about_ = "" if one.exact else " (not proven)"
    if one.more == 0:
        return f"{one.decision}: costs nothing{about_}"
    word, size = ("more", one.more) if one.more > 0 else ("less", -one.more)
    much = f"{percent(size / about.value)} % {word} ({size:,} {about.unit})" if about.value else f"{size:,} {word}"
    return f"{one.decision}: {one.value:,} {about.unit}, {much}{about_}"


def _distances(about: About) -> Iterator[str]:
    limits = [one for one in about.limits if about.value is not None]
    if limits:
        yield "Distance to lower bounds:"
        width = max(len(one.name) for one in limits)
        for one in limits:
            times = "reached" if one.value == about.value else f"{ratio(about.value, one.value)} times"
            yield f"  {one.name:<{width}}  {one.value:,} {about.unit}, {times}: {one.means}"


# ---- curves ----------------------------------------------------------------------------------------------------------


def curve_lines(curve: Curve) -> Iterator[str]:
    """Yield a table of a curve: the field, the objective, the change to the machine as it is, and per unit."""
    where = f"{curve.layer}: " if curve.layer else ""
    finer = f" (in 1/{curve.finer} ticks)" if curve.finer > 1 else ""
    yield f"{where}{curve.objective} ({curve.objective_unit}) over {curve.field}{finer}:"
    rows = [
        (point.shown, _value(point, curve), _change(point, curve), _rate(point, curve), _marks(point, curve))
        for point in _telling(curve)
    ]
    per = {"GB/s": "tick", "MHz": "tick", "KiB": "KiB"}.get(curve.unit, "one")
    heads = (curve.unit, curve.objective_unit, "change", f"per {per}", "")
    widths = [max(map(len, (head, *(row[k] for row in rows)))) for k, head in enumerate(heads)]
    for cells in (heads, *rows):
        yield f"  {'  '.join(f'{cells[k]:>{widths[k]}}' for k in range(4))}  {cells[4]}".rstrip()
    known = "all changes" if curve.complete else "some changes"
    if curve.knees:
        yield f"  {known} of the curve are marked, {len(curve.knees)} in all"
    if any(point.value is not None and not point.exact for point in _telling(curve)):
        yield "  <=: the best found, not proven to be the least"


def _telling(curve: Curve) -> Iterator[Point]:
    """The points where something changes, those beside them, and the machine's own."""
    points = curve.points
    for k, point in enumerate(points):
        ends = k in (0, len(points) - 1) or point.x == curve.now
        if ends or curve.finer > 1 or point.value != points[k - 1].value or point.value != points[k + 1].value:
            yield point


def _rate(point: Point, curve: Curve) -> str:
    """What the objective changes by for each unit of the field: of the plan there, or from the machine's own point."""
    if point.slope is not None:
        return f"{point.slope:+,}"
    origin = curve.origin
    if origin is None or origin.value is None or point.value is None or point.x == origin.x:
        return "-"
    unit = 1024 if curve.unit == "KiB" else 1
    return f"{unit * (point.value - origin.value) / (point.x - origin.x):+,.1f}"


def _value(point: Point, curve: Curve) -> str:
    if point.value is None:
        return point.status.lower().replace("_", " ")
    whole = f"{point.value:,}" if curve.finer == 1 else f"{point.value / curve.finer:,.2f}"
    return whole if point.exact else f"<= {whole}"


def _change(point: Point, curve: Curve) -> str:
    origin = curve.origin
    if origin is None or origin.value is None or point.value is None or not origin.value:
        return "-"
    return f"{100 * (point.value - origin.value) / origin.value:+.2f} %"


def _marks(point: Point, curve: Curve) -> str:
    said = ["now"] if point.x == curve.now else []
    return ", ".join([*said, "changes here"] if point.x in curve.knees else said)
