"""A pipeline for an assignment of mapping: when tasks run in a period, and how many results wait between them.

Given
    the assignment at[i], durations d[i] = time[i][at[i]] + the copies of its result, edges e = (i, j), the period T
Derived
    start[i]    tasks of a processor one after the other in topological order, from the beginning of the period on
    stage[i]    the fewest periods so that every operand is there: for e = (i, j)
                start[j] + T*stage[j] >= start[i] + T*stage[i] + d[i]                       (Eq. 3.5)
    latency     of one inference: max_i start[i] + T*stage[i] + d[i]
    buffers[e]  results of i that are written or not yet read to the end: ceil((end of j - start of i) / T)
In period n the processor of i works on inference n - stage[i]. Tasks of a processor fill at most its load, which is at
most T, so no two of them overlap (Eq. 3.6).

Source: `heterogeneous_mapping_and_banks` 3.3.4.1 (Fig. 3.18), 3.3.6 (buffers between processors); retiming.
"""

from __future__ import annotations

from dataclasses import dataclass

from formulations.mapping.space import Assignment, Mapping


@dataclass(frozen=True)
class Pipeline:
    """Starts in the period and stages by task, results that wait by edge, and ticks from first start to last end."""

    starts: tuple[int, ...]
    stages: tuple[int, ...]
    durations: tuple[int, ...]
    buffers: tuple[int, ...]
    latency: int


def pipelined(mapping: Mapping, at: Assignment, period: int) -> Pipeline:
    """Return the pipeline of an assignment."""
    edges, free, durations = mapping.graph.edges, [0] * len(mapping.processors), busy(mapping, at)
    starts = []
    for i, p in enumerate(at):
        starts.append(free[p] % period)  # no time is left for what takes none: it begins with the next period
        free[p] += durations[i]
    stages = [0] * len(at)
    for i, j in sorted(edges, key=lambda e: e[1]):
        there = starts[i] + period * stages[i] + durations[i]
        stages[j] = max(stages[j], -(-(there - starts[j]) // period))
    begun = [start + period * stage for start, stage in zip(starts, stages, strict=True)]
    ends = [begin + duration for begin, duration in zip(begun, durations, strict=True)]
    buffers = tuple(max(1, -(-(ends[j] - begun[i]) // period)) for i, j in edges)
    return Pipeline(tuple(starts), tuple(stages), durations, buffers, max(ends))


def busy(mapping: Mapping, at: Assignment) -> tuple[int, ...]:
    """Return what every task takes, with the copies of its result."""
    durations = [mapping.times[i][p] or 0 for i, p in enumerate(at)]
    for e, (i, j) in enumerate(mapping.graph.edges):
        durations[i] += int(mapping.copies[e, at[i], at[j]])
    return tuple(durations)
