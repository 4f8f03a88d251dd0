"""Mapping latency in sections: where every task waits for one, or one for it, times before and after it add up.

Sets
    gates g        tasks that are comparable with all others: each one comes before g or after it, over some edges
    sections V_k   cut before gates: the tasks from one gate on and before the next, in topological order
    given J_k      the tasks of V_k and of later sections that read a result of a section before V_k
    readers R_k    the tasks of later sections that read a result of V_k
Given, derived
    d[i], latency as in `formulations.mapping.latency`; d[i] depends on at[i] and on at[j] of the readers j of i only
    c_k(at J_k in V_k, at R_k) = min over the other at[i] of V_k, and over its orders, of the time from the first begin
                     to the last end of its blocks
    F_0 = 0;  F_(k+1)(at J_(k+1)) = min over the at[j] of J_k that are not in J_(k+1) of F_k(at J_k) + c_k
Claim
    The least latency is max(1, F_n), n sections.
Proof
    Let g be the gate that V_k begins with. Every task of an earlier section comes before g, so it has ended when a
    part of g begins; every other task of V_k and of later ones comes after g, and begins when all parts of g have
    ended. So from the first begin of V_k to the first begin of V_(k+1) there are blocks of V_k and no others, and this
    takes no less than their least makespan, with the lengths that the places say. Sections one after the other with
    these makespans are a schedule: a processor is free when the section before has ended. The lengths of V_k depend on
    the places of V_k and R_k only; what both sides of a cut have in common is at J_k, over which F_k is tabled. Every
    edge counts in the section that it begins in, once.
Without gates there is one section. Cuts with too many places for J_k are left out: any of them may be.
    A section of one task is a table: c = max_p (work + copies). Others are searched where they matter.
Equal processors
    A permutation of processors that leaves times, places and copies of V_k and R_k alike leaves c_k alike: of the ends
    that it makes of each other one is searched.

Example: a fork of `a -> b, c -> d` has the gates a and d and the sections {a, b, c} and {d}. J_1 = {d}: for every place
of d the fork is decided by itself, with the copies to d.

**Search** (`settled`): dynamic programming over bounds that rise.

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

from collections.abc import Generator, Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product
from math import prod
from typing import ClassVar, cast

import numpy as np

from formulations.clock import Clock
from formulations.mapping.latency import begun, best_order, latencies, scheduled, timetable, usual
from formulations.mapping.search import assignments, everything, handed_table, list_scheduled, seeds, work_table
from formulations.mapping.space import Assignment, Ints, Limits, Mapping, Schedule, Split, parts
from formulations.problem import Model, Report, Stats, Steps
from instances.network.tasks import TaskGraph

#: Places of the tasks that a cut is tabled over, and of all ends of a section, at most.
_STATES, _ENDS = 2_000, 100_000
#: Numbers of a table that bounds are computed with at a time.
_NUMBERS = 2_000_000
#: Longer than anything.
_FAR = 2**60


@dataclass(frozen=True)
class Section:
    """Tasks between two cuts."""

    tasks: range
    given: tuple[int, ...]
    """Those of them whose places are known from the cut before."""
    readers: tuple[int, ...]
    """Tasks of later sections that read a result of these."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The tasks on whose places its makespan depends."""
        return (*self.given, *self.readers)


@dataclass(frozen=True)
class Excerpt(Mapping):
    """A section whose ends are placed: an instance of its own, whose latency may be nothing."""

    shortest: ClassVar[int] = 0
    kept: tuple[tuple[int, ...], ...] = ()
    """The places of every task; nothing: those that have a time."""
    onward: Table[tuple[int, int, int], int] = field(default_factory=dict)
    """Ticks by task, processor and shares of the copies to later sections, if tasks may be divided; else they are part
    of the times.
    """

    @cached_property
    def able(self) -> tuple[tuple[int, ...], ...]:
        """The places that every task may be at."""
        return self.kept or super().able

    def undivided(self, graph: TaskGraph, times: tuple[tuple[int | None, ...], ...], copies: Ints) -> Excerpt:
        """Return the same with parts as its tasks."""
        return replace(self, graph=graph, times=times, copies=copies, split=None, kept=(), onward={})

    def part(self, i: int, p: int, shares: int) -> int:
        """Ticks of some shares of a task on a processor, with the copies to later sections."""
        return super().part(i, p, shares) + self.onward.get((i, p, shares), 0)

    @cached_property
    def form(self) -> object:
        """Excerpts of one form have the same schedules."""
        split = self.split
        fine = None if split is None else (split.shares, split.tasks, split.sync, split.copies.tobytes())
        return self.graph.edges, self.times, self.copies.tobytes(), self.kept, tuple(self.onward.items()), fine


def gates(graph: TaskGraph) -> list[int]:
    """Return the tasks that are comparable with all others."""
    number = len(graph.tasks)
    later, sooner = [0] * number, [0] * number
    for i in reversed(range(number)):
        for j in graph.after[i]:
            later[i] |= later[j] | 1 << j
    for i in range(number):
        for k in graph.before[i]:
            sooner[i] |= sooner[k] | 1 << k
    return [i for i in range(number) if (later[i] | sooner[i]).bit_count() == number - 1]


def sections(mapping: Mapping) -> list[Section]:
    """Return the sections of a network, in their order; one alone if nothing can be cut."""
    graph, number = mapping.graph, len(mapping.times)

    def crossing(low: int, cut: int) -> tuple[int, ...]:
        """The tasks from a cut on that read a result of those before it, from `low` on."""
        return tuple(sorted({j for i, j in graph.edges if low <= i < cut <= j}))

    def many(tasks: Iterable[int]) -> int:
        return prod(len(mapping.able[i]) for i in tasks)

    cuts = [g for g in gates(graph) if g and many(crossing(0, g)) <= _STATES]
    found, begin = list[Section](), 0
    for cut in (*cuts, number):
        readers = crossing(begin, cut)
        given = tuple(i for i in crossing(0, begin) if i < cut)
        given = given or ((0,) if cut == 1 else ())  # one task alone needs no search: its place is an end
        if cut == number or many({*crossing(0, begin), *given, *readers}) <= _ENDS:
            found.append(Section(range(begin, cut), given, readers))
            begin = cut
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


class Tables:
    """Ticks of tasks by places, for all sections.

    Attributes
    ----------
    work : list of ndarray, shape (places, processors), by task
    handed : list of ndarray, shape (places, places, processors), by edge
    """

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.work = [work_table(mapping, i) for i in range(len(mapping.times))]
        self.handed = [handed_table(mapping, e) for e in range(len(mapping.graph.edges))]
        self.out: list[list[tuple[int, int]]] = [[] for _ in mapping.times]
        for e, (i, j) in enumerate(mapping.graph.edges):
            self.out[i].append((e, j))

    def ends(self, section: Section) -> Ints:
        """All places of the ends of a section, of shape (number, ends), those of the last one fastest."""
        able = [np.array(self.mapping.able[i], dtype=np.int64) for i in section.ends]
        number = prod(map(len, able))
        grid = np.indices([len(few) for few in able]).reshape(len(able), number)
        return np.stack([few[n] for few, n in zip(able, grid, strict=True)], axis=1) if able else grid.T

    def alone(self, section: Section, at: Ints) -> Ints:
        """What a section of one task takes, by places of its ends."""
        (i,), column = section.tasks, {j: n for n, j in enumerate(section.ends)}
        here = at[:, column[i]]
        took = self.work[i][here]
        for e, j in self.out[i]:
            took = took + self.handed[e][here, at[:, column[j]]]
        return np.asarray(took.max(axis=1))

    def least(self, section: Section, at: Ints) -> Ints:
        """Lower bounds of the makespan of a section by places of its ends."""
        places, processors = len(self.mapping.places), len(self.mapping.processors)
        block = max(1, _NUMBERS // (places * places * processors))
        return np.concatenate([self._least(section, at[n : n + block]) for n in range(0, len(at), block)])

    def _least(self, section: Section, at: Ints) -> Ints:
        """Chains of tasks, each place with the copies that it makes needful, and all work over all processors."""
        able, column = self.mapping.able, {j: n for n, j in enumerate(section.ends)}
        places, processors = self.work[0].shape
        begins = {i: np.zeros((len(at), places), dtype=np.int64) for i in section.tasks}
        path, work = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
        for i in section.tasks:
            out = np.full((len(at), places), _FAR, dtype=np.int64)  # where it cannot be
            if i in column:
                out[np.arange(len(at)), at[:, column[i]]] = 0
            else:
                out[:, able[i]] = 0
            took = np.tile(self.work[i], (len(at), 1, 1))
            fewest = {e: self.handed[e][:, able[j]].min(axis=1) for e, j in self.out[i] if j not in column}
            for e, j in self.out[i]:
                took += self.handed[e][:, at[:, column[j]]].transpose(1, 0, 2) if j in column else fewest[e]
            path = np.maximum(path, (begins[i] + took.max(axis=2) + out).min(axis=1))
            work += (took.sum(axis=2) + out).min(axis=1)
            for e, j in self.out[i]:
                if j not in begins:
                    continue
                if j in column:
                    done = (begins[i] + took.max(axis=2) + out).min(axis=1)[:, None]
                else:
                    both = (took - fewest[e])[:, :, None] + self.handed[e]
                    done = ((begins[i] + out)[:, :, None] + both.max(axis=3)).min(axis=1)
                begins[j] = np.maximum(begins[j], done)
        return np.asarray(np.maximum(path, -(-work // processors)))

    def excerpt(self, section: Section, at: Sequence[int]) -> Excerpt:
        """Return the instance of a section whose ends are at these places."""
        mapping, first = self.mapping, section.tasks.start
        placed = dict(zip(section.ends, at, strict=True))
        inner = [e for e, (i, j) in enumerate(mapping.graph.edges) if i in section.tasks and j in section.tasks]
        edges = tuple((i - first, j - first) for i, j in (mapping.graph.edges[e] for e in inner))
        times, split, onward = [], mapping.split, dict[tuple[int, int, int], int]()
        for i in section.tasks:
            beyond = [(e, mapping.places[placed[j]]) for e, j in self.out[i] if j not in section.tasks]
            row = list(mapping.times[i])
            for p, time in enumerate(row):
                for k in range(1, mapping.shares + 1) if time is not None else ():
                    ticks = sum(int(mapping.sent(e, k)[p, q]) for e, place in beyond for q, _ in place if q != p)
                    if split is None:
                        row[p] = (time or 0) + ticks
                    elif ticks:
                        onward[i - first, p, k] = ticks
            times.append(tuple(row))
        if split is not None:
            fine = frozenset(i - first for i in split.tasks if i in section.tasks)
            split = Split(split.shares, fine, split.sync, split.copies[inner])
        return Excerpt(
            TaskGraph(mapping.graph.network, mapping.graph.tasks[first : section.tasks.stop], edges),
            mapping.processors, tuple(times), mapping.copies[inner], mapping.watts,
            tuple(range(len(mapping.processors))), mapping.total, mapping.number, mapping.element_bytes, split,
            kept=tuple((placed[i],) if i in placed else mapping.able[i] for i in section.tasks), onward=onward,
        )  # fmt: skip


# ---- equal processors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Swap:
    """A permutation of the processors: where each of them, and each place, goes."""

    processors: tuple[int, ...]
    places: tuple[int, ...]


def swap_of(mapping: Mapping, processors: Sequence[int]) -> Swap:
    """Return a permutation with what it makes of places."""
    number = {place: a for a, place in enumerate(mapping.places)}
    moved = (tuple(sorted((processors[p], k) for p, k in place)) for place in mapping.places)
    return Swap(tuple(processors), tuple(number[place] for place in moved))


def swaps(mapping: Mapping, section: Section) -> list[Swap]:
    """Return the permutations that leave a section and its readers alike, that of nothing first."""
    number, classes = len(mapping.processors), list[list[int]]()
    for p in range(number):
        mine = next((few for few in classes if _alike(mapping, section, few[0], p)), None)
        if mine is None:
            classes.append([p])
        else:
            mine.append(p)
    found = []
    for orders in product(*(permutations(few) for few in classes)):
        goes = list(range(number))
        for few, order in zip(classes, orders, strict=True):
            for p, q in zip(few, order, strict=True):
                goes[p] = q
        found.append(swap_of(mapping, goes))
    return found


def _alike(mapping: Mapping, section: Section, p: int, q: int) -> bool:
    """Whether two processors can change places."""
    goes = list(range(len(mapping.processors)))
    goes[p], goes[q] = q, p
    places = swap_of(mapping, goes).places
    return (
        all(mapping.times[i][p] == mapping.times[i][q] for i in section.tasks)
        and all({places[a] for a in mapping.able[i]} == set(mapping.able[i]) for i in (*section.tasks, *section.ends))
        and all(np.array_equal(table, table[..., goes, :][..., goes]) for table in _copies(mapping, section))
    )


def _copies(mapping: Mapping, section: Section) -> Iterator[Ints]:
    for e, (i, _) in enumerate(mapping.graph.edges):
        if i in section.tasks:
            yield mapping.copies[e]
            if mapping.split is not None:
                yield mapping.split.copies[e]


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

    `at` has the shape (number, ends); `low`, `high` (number,): bounds of the makespan, and what a schedule takes.
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
        #: For all ends the first of those that they can be made to, and the swap that does it.
        table = np.stack([self.number(np.array(swap.places)[self.at]) for swap in self.swaps])
        self.chief, self.by = table.min(axis=0), table.argmin(axis=0)
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


def _guessed(made: Excerpt, least: int) -> Found:
    """What is known of an excerpt without a search."""
    found, best = Found(least), seeds(made)
    if made.split is None:
        best += [list_scheduled(made, "heft"), list_scheduled(made, "peft")]
    for at in dict.fromkeys(best):
        _take(made, found, usual(made, at))
    return found


def _take(made: Excerpt, found: Found, schedule: Schedule) -> None:
    flat = parts(made, schedule.at)
    value = max(timetable(flat.mapping, flat.at, schedule.order).ends)  # which may be 0
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
