"""Tasks at places, with flows over the edges: the rows that all models of mapping have, in any solver's expressions.

Sets, parameters as in `formulations.mapping.space`
Variables    x[i,p] in {0, 1}: task i is at p;  y[e,p,q] >= 0: edge e = (i, j) goes from p to q;  T in N: the period
Objective    min T, or min sum_p watts[p]*load[p]
Constraints  (RUN)    sum_p x[i,p] = 1, over the processors that can run i (Eq. 3.1; HOST: first and last tasks)
             (FLOW)   sum_q y[e,p,q] = x[i,p];  sum_p y[e,p,q] = x[j,q]: y is 1 exactly where both ends are
             (LOAD)   load[p] = sum_i time[i][p]*x[i,p] + sum_e sum_q copy[e][p][q]*y[e,p,q] <= T  (Eq. 3.7, 3.8)
             (CAP)    100 * sum_p cores[p]*load[p] <= cap * C * T
If tasks may be divided (`formulations.mapping.space`) x is over places a, and y[e,a,q] says that the parts at a hand
their shares to a part at processor q: then sum_a y[e,a,q] = sum over places b of j that use q of x[j,b];  y[e,a,q] <=
x[i,a]; x[i,a] <= sum_q y[e,a,q] <= 2*x[i,a].
Flows instead of y >= x + x - 1: the relaxation then sees every copy. Energies are divided by their unit.

Of one inference alone there are blocks in time, too: start[i,p] and end[i,p] of the part of task i on p, d[i,p] ticks
later, done[i], and L, the latency
Constraints  (AFTER)  start[i,p] >= done[k] for k before i;  done[i] >= end[i,p];  L >= done[i]              (Eq. 3.5)
             (CHAIN)  done[i] >= done[k] + sum_a d[i,a,p(a)], p(a) the processor with more to do at a: implied,
                      for tasks that may be divided
             (BUSY)   L >= load[p]: implied, it tightens the relaxation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from formulations.mapping.latency import begun, scheduled
from formulations.mapping.space import Limits, Schedule
from formulations.mapping.space import Mapping as Instance

#: Variables and their ticks.
Terms = list[tuple[Any, int]]
#: A task and a processor.
Key = tuple[int, int]


class Flows:
    """Variables and rows; `rows` are still to be added to a model.

    Parameters
    ----------
    flag, flow : callable
        Make a variable of a name that is 0 or 1, and one from 0 to 1.
    weighted : callable
        Sums variables times ticks.

    Attributes
    ----------
    x : dict
        By task and place whether it is there.
    busy : dict
        By task, place and processor what it keeps it busy with if it is there, copies included.
    starts : dict
        By task and processor, where an order is looked for.
    """

    def __init__(
        self, mapping: Instance, flag: Callable[[str], Any], flow: Callable[[str], Any],
        weighted: Callable[[Terms], Any],
    ) -> None:  # fmt: skip
        self.mapping, self.weighted, self.rows, self.starts = mapping, weighted, list[Any](), dict[Key, Any]()
        self.x = {(i, a): flag(f"x_{i}_{a}") for i, able in enumerate(mapping.able) for a in able}
        self.busy: dict[tuple[int, int, int], Terms] = {
            (i, a, p): [(one, ticks)] for (i, a), one in self.x.items() for p, ticks in mapping.work(i, a)
        }
        for i, able in enumerate(mapping.able):
            self.rows.append(self.sum(self.x[i, a] for a in able) == 1)
        for e, (i, j) in enumerate(mapping.graph.edges):
            self._edge(e, i, j, flow)

    def sum(self, variables: Iterable[Any]) -> Any:
        """Return their sum."""
        return self.weighted([(one, 1) for one in variables])

    def _edge(self, e: int, i: int, j: int, flow: Callable[[str], Any]) -> None:
        """Add (FLOW)."""
        x, mapping, there = self.x, self.mapping, dict[int, list[Any]]()
        for b in mapping.able[j]:
            for q, _ in mapping.places[b]:
                there.setdefault(q, []).append(x[j, b])
        y = {(a, q): flow(f"y_{e}_{a}_{q}") for a in mapping.able[i] for q in there}
        divided = any(len(mapping.places[b]) > 1 for b in mapping.able[j])
        for a in mapping.able[i]:
            readers = self.sum(y[a, q] for q in there)
            if divided:
                self.rows += [readers >= x[i, a], readers <= 2 * x[i, a], *(y[a, q] <= x[i, a] for q in there)]
            else:
                self.rows.append(readers == x[i, a])
        self.rows += [self.sum(y[a, q] for a in mapping.able[i]) == self.sum(few) for q, few in there.items()]
        for (a, q), one in y.items():
            for p, ticks in mapping.handed(e, a, q):
                self.busy[i, a, p].append((one, ticks))

    def took(self, i: int, pairs: Iterable[tuple[int, int]]) -> Any:
        """What a task takes at some places on processors."""
        return self.weighted([one for a, p in pairs for one in self.busy[i, a, p]])

    def priced(self, period: Any, limits: Limits, *, whole: bool) -> tuple[Any, list[Any]]:
        """Add (LOAD), (CAP), which may take whole numbers, and the limit of energy; return energy and loads."""
        mapping, parts = self.mapping, [Terms() for _ in self.mapping.processors]
        for (_, _, p), few in self.busy.items():
            parts[p] += few
        loads = [self.weighted(few) for few in parts]
        self.rows += [load <= number * period for load, number in zip(loads, mapping.number, strict=True)]
        percent, most = (100, limits.cap * mapping.total) if whole else (1, limits.cap * mapping.total / 100)
        used = sum(percent * g.cores * load for g, load in zip(mapping.processors, loads, strict=True))
        self.rows.append(used <= most * period)
        unit = mapping.energy_unit
        energy = sum(w // unit * load for w, load in zip(mapping.watts, loads, strict=True))
        if limits.energy is not None:
            self.rows.append(energy <= limits.energy // unit)
        return energy, loads

    def chain(self, ends: Mapping[Key, Any], done: Sequence[Any], latency: Any, loads: Iterable[Any]) -> None:
        """Add (AFTER), (CHAIN) and (BUSY)."""
        mapping, before = self.mapping, self.mapping.graph.before
        for key, start in self.starts.items():
            self.rows += [done[key[0]] >= ends[key], *(start >= done[k] for k in before[key[0]])]
        for i, able in enumerate(mapping.able):
            self.rows.append(latency >= done[i])
            if (i, -1) not in self.starts:
                most = ((a, max(mapping.work(i, a), key=lambda pair: pair[1])[0]) for a in able)  # without copies
                chain = self.took(i, most)
                self.rows += [done[i] >= chain, *(done[i] >= done[k] + chain for k in before[i])]
        self.rows += [latency >= load for load in loads]

    def chosen(self, value: Callable[[Any], float | None]) -> Schedule:
        """The schedule of a solution."""
        places = (
            (i, max(able, key=lambda a: (value(self.x[i, a]) or 0, a))) for i, able in enumerate(self.mapping.able)
        )
        at = tuple(a for _, a in places)
        begins = {key: value(one) or 0 for key, one in self.starts.items()}
        return scheduled(self.mapping, at, begins) if begins else Schedule(at)

    def hints(self, schedule: Schedule) -> Iterator[tuple[Any, int]]:
        """Yield variables with their values in a schedule; of the blocks of a task that share a start one is known."""
        yield from ((x, int(schedule.at[i] == p)) for (i, p), x in self.x.items())
        for key, start in begun(self.mapping, schedule).items() if self.starts else ():
            yield self.starts[key], start
