"""The least latency over sections (`formulations.mapping.sections`): dynamic programming over bounds that rise.

Let low_k <= c_k <= high_k be tables over the ends of section k, equal where it is known what a section takes.

    1. F over low is a bound of the latency; its path says how all sections end.
    2. The ends on the path where low < high are searched: by trying all assignments and orders if they are few, or by
       CP-SAT. low and high come closer there.
    3. Again, until low = high all along the path: F is then what a schedule takes, and the least.

Most ends are never searched. The bound is true after every round, and F over high is a schedule once every section on
some path has one. Ends that equal processors make of each other, and sections alike, are searched once.

Source: lazy evaluation of edges on shortest paths (Dellin and Srinivasa 2016, LazySP).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from formulations.clock import Clock
from formulations.mapping.latency import begun, best_order, latencies, scheduled, timetable, usual
from formulations.mapping.parts import parts
from formulations.mapping.search import assignments, everything, list_scheduled, seeds
from formulations.mapping.sections import Excerpt, Section, Tables, sections, swaps
from formulations.mapping.space import Assignment, Ints, Limits, Mapping, Schedule
from formulations.problem import Model, Report, Stats, Steps

#: Beyond every sum of makespans: `formulations.mapping.space.build` keeps these below.
_UNKNOWN = 2**61
#: Assignments of an excerpt that are tried at most, and steps in search of their orders.
_FEW, _STEPS = 20_000, 20_000
#: Starts of parts by task and processor.
Starts = dict[tuple[int, int], int]


@dataclass
class Found:
    """What is known of excerpts of one form."""

    least: int
    most: int = _UNKNOWN
    schedule: Schedule | None = None


class Ends:
    """A section by the places of its ends.

    Attributes
    ----------
    at : ndarray, shape (number, ends)
    low, high : ndarray, shape (number,)
        Bounds of the makespan, and what a schedule takes.
    """

    def __init__(self, tables: Tables, section: Section) -> None:
        self.tables, self.section = tables, section
        self.at = tables.ends(section)
        self.shape = [len(tables.mapping.able[i]) for i in section.ends]
        self.excerpts: dict[int, Excerpt] = {}
        if len(section.tasks) == 1:
            self.low = self.high = tables.alone(section, self.at)
            return
        self.swaps = swaps(tables.mapping, section)
        self.chief, self.by = self._orbits()
        few, back = np.unique(self.chief, return_inverse=True)
        self.low = tables.least(section, self.at[few])[back]
        self.high = np.full(len(self.at), _UNKNOWN)

    def number(self, at: Ints) -> Ints:
        """Return the numbers of ends by their places, of shape (number, ends)."""
        number = np.zeros(len(at), dtype=np.int64)
        for n, (i, size) in enumerate(zip(self.section.ends, self.shape, strict=True)):
            turn = np.zeros(len(self.tables.mapping.places), dtype=np.int64)
            turn[list(self.tables.mapping.able[i])] = range(size)
            number = number * size + turn[at[:, n]]
        return number

    def _orbits(self) -> tuple[Ints, Ints]:
        """Return for all ends the first of those that they can be made to, and the swap that does it."""
        table = np.stack([self.number(np.array(swap.places)[self.at]) for swap in self.swaps])
        return table.min(axis=0), table.argmin(axis=0)

    def excerpt(self, n: int) -> Excerpt:
        """Return the instance of some ends, or of those that they can be made to."""
        chief = int(self.chief[n])
        if chief not in self.excerpts:
            self.excerpts[chief] = self.tables.excerpt(self.section, self.at[chief].tolist())
        return self.excerpts[chief]

    def learn(self, n: int, found: Found) -> None:
        """Keep what is known of some ends for all that they can be made to."""
        same = self.chief == self.chief[n]
        self.low[same], self.high[same] = found.least, found.most

    def cut(self, n: int, schedule: Schedule, starts: Starts) -> Schedule:
        """Return this section of a schedule of all tasks, with these ends, as a schedule of their excerpt."""
        swap, tasks = self.swaps[int(self.by[n])], self.section.tasks
        at = tuple(swap.places[schedule.at[i]] for i in tasks)
        begins = {(i - tasks.start, swap.processors[p]): float(t) for (i, p), t in starts.items() if i in tasks}
        return scheduled(self.excerpt(n), at, begins)

    def placed(self, n: int, found: Found | None) -> tuple[dict[int, int], Starts]:
        """Return the places of the tasks for some ends, and when parts begin."""
        first, ends = self.section.tasks.start, dict(zip(self.section.ends, self.at[n].tolist(), strict=True))
        places = self.tables.mapping.places
        if found is None or found.schedule is None:  # one task
            return {first: ends[first]}, {(first, p): 0 for p, _ in places[ends[first]]}
        swap, schedule = self.swaps[int(self.by[n])], found.schedule
        back, home = ({q: p for p, q in enumerate(goes)} for goes in (swap.processors, swap.places))
        starts = begun(self.excerpt(n), schedule)
        at = {first + i: home[a] for i, a in enumerate(schedule.at)}
        return at, {(first + i, back[p]): start for (i, p), start in starts.items()}


class Series:
    """All sections of a network, one after the other."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping, tables = mapping, Tables(mapping)
        self.parts = [Ends(tables, section) for section in sections(mapping)]
        self.found: dict[object, Found] = {}

    def known(self, part: Ends, n: int) -> Found | None:
        """What is known of some ends, None of a section of one task."""
        if len(part.section.tasks) == 1:
            return None
        made = part.excerpt(n)
        if made.form not in self.found:
            self.found[made.form] = _guessed(made, int(part.low[n]))
        part.learn(n, self.found[made.form])
        return self.found[made.form]

    def start(self, schedule: Schedule) -> None:
        """Take over what a schedule of all tasks makes of every section."""
        starts = begun(self.mapping, schedule)
        for part in self.parts:
            n = int(part.number(np.array([[schedule.at[i] for i in part.section.ends]], dtype=np.int64))[0])
            found = self.known(part, n)
            if found is not None and found.least < found.most:
                _take(part.excerpt(n), found, part.cut(n, schedule, starts))
                part.learn(n, found)

    def path(self, *, high: bool = False) -> tuple[int, list[int]]:
        """Return F over the lower or the upper tables, and the ends of every section on its path."""
        able, tasks, back = self.mapping.able, self.parts[0].section.given, list[tuple[tuple[int, ...], Ints]]()
        value = np.zeros([len(able[i]) for i in tasks], dtype=np.int64)
        for part in self.parts:
            section, cost = part.section, (part.high if high else part.low).reshape(part.shape)
            done = tuple(i for i in tasks if i in section.tasks)
            after = tuple(sorted({*(i for i in tasks if i not in done), *section.readers}))
            both = (*done, *after)
            total = np.minimum(_spread(value, tasks, both) + _spread(cost, section.ends, both), _UNKNOWN)
            flat = total.reshape(int(np.prod(total.shape[: len(done)])), *total.shape[len(done) :])
            back.append((both, flat.argmin(axis=0)))
            value, tasks = flat.min(axis=0), after
        return int(value), self._backwards(back)

    def _backwards(self, back: Sequence[tuple[tuple[int, ...], Ints]]) -> list[int]:
        """The path, from the end of the last section on."""
        able, turns, path = self.mapping.able, dict[int, int](), list[int]()
        for part, (both, best) in zip(reversed(self.parts), reversed(back), strict=True):
            done = [i for i in both if i in part.section.tasks]
            chosen = int(best[tuple(turns[i] for i in both if i not in done)])
            for i in reversed(done):
                chosen, turns[i] = divmod(chosen, len(able[i]))
            n = 0
            for i, size in zip(part.section.ends, part.shape, strict=True):
                n = n * size + turns[i]
            path.append(n)
        return path[::-1]

    def waiting(self) -> list[tuple[Ends, int]]:
        """Return the ends on the path of the bound of which it is not known what the section takes."""
        while True:
            path = zip(self.parts, self.path()[1], strict=True)
            unsure = [(part, n) for part, n in path if part.low[n] < part.high[n]]
            for part, n in unsure:
                self.known(part, n)
            found = [(part, n) for part, n in unsure if part.low[n] < part.high[n]]
            if found or not unsure:  # else a section of this form was searched elsewhere: the path may have changed
                return found

    def schedule(self) -> Schedule | None:
        """Return the schedule of the upper tables, None as long as they have none."""
        value, path = self.path(high=True)
        if value >= _UNKNOWN:
            return None
        at, starts, now = dict[int, int](), Starts(), 0
        for part, n in zip(self.parts, path, strict=True):
            places, begins = part.placed(n, self.known(part, n))
            at |= places
            starts |= {key: now + start for key, start in begins.items()}
            now += int(part.high[n])
        whole: Assignment = tuple(at[i] for i in range(len(at)))
        return scheduled(self.mapping, whole, dict(starts))


def _spread(table: Ints, tasks: Sequence[int], onto: Sequence[int]) -> Ints:
    """Return a table over some tasks as one over more of them."""
    order = sorted(range(len(tasks)), key=lambda n: onto.index(tasks[n]))
    full = table.transpose(order)
    return full[tuple(slice(None) if i in tasks else None for i in onto)]


def makespan(made: Mapping, schedule: Schedule) -> int:
    """Return the last end of a schedule, which may be 0."""
    flat = parts(made, schedule.at)
    return max(timetable(flat.mapping, flat.at, schedule.order).ends)


def _guessed(made: Excerpt, least: int) -> Found:
    """What is known of an excerpt without a search."""
    found, best = Found(least), seeds(made)
    if made.split is None:
        best += [list_scheduled(made, "heft"), list_scheduled(made, "peft")]
    for at in dict.fromkeys(best):
        _take(made, found, usual(made, at))
    return found


def _take(made: Excerpt, found: Found, schedule: Schedule) -> None:
    value = makespan(made, schedule)
    if value < found.most:
        found.most, found.schedule = value, schedule


def _model(made: Excerpt, found: Found, seconds: float | None) -> Model[Schedule]:
    from formulations.mapping.cp_sat import cp_model_of  # late: models import their solvers

    built = cp_model_of(made, "latency", Limits(), least=found.least, most=found.most, latest=found.most)
    if found.schedule is not None:
        built.hint(found.schedule)
    return Model(built.model, built.chosen, seconds=seconds, turns=True, solver="cp-sat", own_bound=True)


def _tried(made: Excerpt, found: Found) -> bool:
    """Try all assignments and orders of an excerpt; return whether that has come to an end."""
    if assignments(made) > _FEW:
        return False
    steps = _STEPS
    for every, _, _ in everything(made, Limits()):
        least, _ = latencies(made, every)
        for n in np.argsort(least, kind="stable"):
            if least[n] >= found.most:
                break
            at = tuple(every[n].tolist())
            flat = parts(made, at)
            order, steps = best_order(flat.mapping, flat.at, found.most, steps)
            if order is not None:
                _take(made, found, Schedule(at, order))
            if steps < 0:
                return False
    found.least = found.most
    return True


def settled(series: Series, clock: Clock, stats: Stats) -> Steps[Schedule]:
    """Search ends until the path of the bound is known, or the time is up; return a schedule and the bound."""
    stats |= {"sections": len(series.parts), "sections_tried": 0, "sections_modelled": 0}
    try:
        while waiting := series.waiting():
            moved = yield from _round(series, waiting, clock, stats)
            if clock.over or stats.get("interrupted") or (clock.left is None and not moved):
                break
    except KeyboardInterrupt:
        stats["interrupted"] = True
    return series.schedule(), max(1, series.path()[0])


def _round(
    series: Series, waiting: Sequence[tuple[Ends, int]], clock: Clock, stats: Stats
) -> Generator[Model[Schedule], Report[Schedule], bool]:
    """Search some ends, each in its share of half of the time that is left; return whether more is known."""
    moved, tried, asked = False, 0, 0
    for number, (part, n) in enumerate(waiting):
        found = series.known(part, n)
        if found is None or found.least >= found.most:  # of one form with another one of these
            continue
        if clock.over or stats.get("interrupted"):
            break
        made, before = part.excerpt(n), (found.least, found.most)
        tried += 1
        if not _tried(made, found):
            asked += 1
            report = yield _model(made, found, clock.share(2 * (len(waiting) - number)).left)
            if report.schedule is not None:
                _take(made, found, report.schedule)
            found.least = min(found.most, max(found.least, report.bound or 0))
        part.learn(n, found)
        moved = moved or (found.least, found.most) != before
    for name, count in (("sections_tried", tried), ("sections_modelled", asked)):
        stats[name] = cast(int, stats[name]) + count
    return moved
