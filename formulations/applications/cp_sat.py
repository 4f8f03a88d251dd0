"""CP-SAT model of mapping of several applications (`formulations.applications.space`), by either rule.

Variables
    x[i,p] and flows as in `formulations.mapping.cp_sat`; o[i,j] = 1 if i runs before j, for loose pairs
    s[i]            the latest begin along the paths to i
    B[a,p], W[a,p]  as there; R[a] responses
    safe:           n[a,h] releases of h that reach into R[a]; V[a,p] >= sum over h of n[a,h] * W[h,p], if a runs at p
    printed:        z[i] >= s[i] + B + sum floor * W at i's processor: the latest begins by the deadline R[a], in
                    precedence and order as s
All constraints are lower bounds of s, B, V, R, so a solution's true responses are at most its R: `responses` prices it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from formulations.applications.space import Goal, Several
from formulations.mapping.cp_sat import flows
from formulations.mapping.flows import Terms
from formulations.mapping.space import Schedule

Var = cp_model.IntVar
Linear = cp_model.LinearExpr


@dataclass
class ApplicationsCpModel:
    """The model with its variables."""

    several: Several
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)

    def __post_init__(self) -> None:
        self.flows = flows(self.model, self.several.mapping)
        self.x, self.busy = self.flows.x, self.flows.busy
        for row in self.flows.rows:
            self.model.add(row)
        parts: dict[int, Terms] = {}
        for (i, _, _), few in self.busy.items():
            parts.setdefault(i, []).extend(few)
        #: What every task takes with the copies of its result.
        self.durations = {i: self.flows.weighted(few) for i, few in parts.items()}
        self.first = {pair: self.model.new_bool_var(f"o_{pair[0]}_{pair[1]}") for pair in self.several.loose}
        self.begins: dict[int, Var] = {}
        self.responses: list[Var] = []

    def chosen(self, solver: cp_model.CpSolver) -> Schedule:
        """The schedule of a solution."""
        at = self.flows.chosen(solver.value).at
        begun = {i: (solver.value(s), solver.value(self.durations[i]) > 0, i) for i, s in self.begins.items()}
        return Schedule(at, tuple(sorted(begun, key=lambda i: begun[i])))  # what takes no time before what does

    def hint(self, schedule: Schedule) -> None:
        """Start from a schedule."""
        place = {i: n for n, i in enumerate(schedule.order)}
        order = ((o, place[i] < place[j]) for (i, j), o in self.first.items())
        for variable, value in (*self.flows.hints(schedule), *order):
            self.model.add_hint(variable, value)


def applications_cp_model(several: Several, goal: Goal, caps: Sequence[tuple[Goal, int]] = ()) -> ApplicationsCpModel:
    """Return the model.

    `caps`: pairs of an objective and the most that it may come to.
    """
    built = ApplicationsCpModel(several)
    model = built.model
    loads, blocks = _loads(built), _blocks(built)
    for a, stream in enumerate(several.streams):
        built.responses.append(model.new_int_var(0, stream.deadline, f"R_{a}"))
        if several.rule == "safe":
            _safe(built, a, loads, blocks[a])
        else:
            _printed(built, a, loads, blocks[a])
    for one, cap in caps:
        model.add(_value(built, one, loads) <= cap // several.unit(one))
    model.minimize(_value(built, goal, loads))
    return built


def _value(built: ApplicationsCpModel, goal: Goal, loads: list[list[Linear]]) -> Linear:
    if goal.streams:
        return cp_model.LinearExpr.sum([built.responses[a] for a in goal.streams])
    watts, unit = built.several.mapping.watts, built.several.unit(goal)
    return cp_model.LinearExpr.sum([w // unit * load for row in loads for w, load in zip(watts, row, strict=True)])


def _loads(built: ApplicationsCpModel) -> list[list[Linear]]:
    """W[a,p]."""
    found = []
    for stream in built.several.streams:
        parts: list[Terms] = [[] for _ in built.several.mapping.processors]
        for (i, _, p), few in built.busy.items():
            parts[p] += few if i in stream.tasks else []
        found.append([built.flows.weighted(few) for few in parts])
    return found


def _blocks(built: ApplicationsCpModel) -> list[list[Var] | None]:
    """B[a,p]; None for the lowest application, which nothing blocks."""
    several, model, number = built.several, built.model, len(built.several.mapping.processors)
    longest = max(stream.deadline for stream in several.streams)
    found: list[list[Var] | None] = [None] * len(several.streams)
    for a in range(len(several.streams) - 2, -1, -1):
        blocks = [model.new_int_var(0, longest, f"B_{a}_{p}") for p in range(number)]
        below = found[a + 1]
        for p, block in enumerate(blocks):
            if below is not None:
                model.add(block >= below[p])
            for i in several.streams[a + 1].tasks:
                if (i, p) in built.x:  # what i keeps p busy with, which is 0 elsewhere: a row of the relaxation
                    model.add(block >= built.flows.weighted(built.busy[i, p, p]))
        found[a] = blocks
    return found


def _paths(built: ApplicationsCpModel, a: int, name: str, entry: list[Var] | None) -> dict[int, Var]:
    """Begins of the tasks of an application by precedence and order, coming to a processor p takes `entry[p]` more."""
    several, model, mapping = built.several, built.model, built.several.mapping
    stream = several.streams[a]
    begins = {i: model.new_int_var(0, stream.deadline, f"{name}_{i}") for i in stream.tasks}
    for i in stream.tasks:  # known paths, for the relaxation
        heads, tails = several.heads[i].items(), several.tails[i].items()
        model.add(begins[i] >= cp_model.LinearExpr.sum([head * built.x[i, p] for p, head in heads]))
        rest = cp_model.LinearExpr.sum([tail * built.x[i, p] for p, tail in tails])
        model.add(built.responses[a] >= begins[i] + rest)
        if entry is not None and not mapping.graph.before[i]:
            for p in mapping.able[i]:
                model.add(begins[i] >= entry[p]).only_enforce_if(built.x[i, p])
    for i, j in mapping.graph.edges:
        if i not in stream.tasks:
            continue
        model.add(begins[j] >= begins[i] + built.durations[i])
        if entry is None:
            continue
        for q in mapping.able[j]:
            comes = [built.x[j, q], *([built.x[i, q].negated()] if (i, q) in built.x else [])]
            model.add(begins[j] >= begins[i] + built.durations[i] + entry[q]).only_enforce_if(comes)
    for (i, j), o in built.first.items():
        if i in stream.tasks:
            _ordered(built, begins, i, j, o)
    return begins


def _ordered(built: ApplicationsCpModel, begins: dict[int, Var], i: int, j: int, first: Var) -> None:
    """Two tasks of a loose pair, if a processor runs both."""
    model = built.model
    for p in set(built.several.mapping.able[i]) & set(built.several.mapping.able[j]):
        both = [built.x[i, p], built.x[j, p]]
        model.add(begins[j] >= begins[i] + built.durations[i]).only_enforce_if([*both, first])
        model.add(begins[i] >= begins[j] + built.durations[j]).only_enforce_if([*both, first.negated()])


def _safe(
    built: ApplicationsCpModel, a: int, loads: list[list[Linear]], blocks: list[Var] | None
) -> None:  # fmt: skip
    several, model, mapping = built.several, built.model, built.several.mapping
    stream, response = several.streams[a], built.responses[a]
    begins = _paths(built, a, f"s_{a}", blocks)
    built.begins |= begins
    alone = model.new_int_var(0, stream.deadline, f"L_{a}")
    for i in stream.tasks:
        model.add(alone >= begins[i] + built.durations[i])
    waits: list[Linear] = []
    used = _used(built, a)
    for h in range(a):
        reach = cp_model.LinearExpr.sum([response, built.responses[h]])
        # The most releases of h that can reach into a window of a.
        releases = -(-(stream.deadline + several.streams[h].deadline) // several.streams[h].period)
        more = [model.new_bool_var(f"n_{a}_{h}_{k}") for k in range(2, releases + 1)]
        for k, one in enumerate(more, 2):  # at least k releases
            model.add(reach <= (k - 1) * several.streams[h].period).only_enforce_if(one.negated())
        for p in range(len(mapping.processors)):
            wait = model.new_int_var(0, stream.deadline, f"V_{a}_{h}_{p}")
            model.add(wait >= loads[h][p]).only_enforce_if(used[p])
            model.add(wait >= loads[h][p] - _most(built, h, p) * used[p].negated())
            for k, one in enumerate(more, 2):
                model.add(wait >= k * loads[h][p]).only_enforce_if([used[p], one])
            waits.append(wait)
    model.add(response >= alone + cp_model.LinearExpr.sum(waits))


def _most(built: ApplicationsCpModel, h: int, p: int) -> int:
    """The most that W[h,p] may be."""
    parts = (few for (i, _, q), few in built.busy.items() if q == p and i in built.several.streams[h].tasks)
    return min(sum(ticks for few in parts for _, ticks in few), built.several.streams[h].deadline)


def _used(built: ApplicationsCpModel, a: int) -> list[Var]:
    """Whether an application runs on a processor."""
    model, mapping = built.model, built.several.mapping
    used = [model.new_bool_var(f"u_{a}_{p}") for p in range(len(mapping.processors))]
    for i in built.several.streams[a].tasks:
        for p in mapping.able[i]:
            model.add_implication(built.x[i, p], used[p])
    return used


def _printed(
    built: ApplicationsCpModel, a: int, loads: list[list[Linear]], blocks: list[Var] | None
) -> None:  # fmt: skip
    several, model, mapping = built.several, built.model, built.several.mapping
    stream, response = several.streams[a], built.responses[a]
    soon, late = _paths(built, a, f"s_{a}", None), _paths(built, a, f"z_{a}", None)
    built.begins |= soon
    for p in range(len(mapping.processors)):
        parts = [stream.period // several.streams[h].period * loads[h][p] for h in range(a)]
        interference = cp_model.LinearExpr.sum([*parts, *([] if blocks is None else [blocks[p]])])
        for i in stream.tasks:
            if (i, p) in built.x:
                model.add(late[i] >= soon[i] + interference).only_enforce_if(built.x[i, p])
    for i in stream.tasks:
        model.add(response >= late[i] + built.durations[i])
