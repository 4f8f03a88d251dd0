"""Placement for CP-SAT: the whole model, and the master of engine search, which knows no addresses.

**Whole** (`build`): for every memory rectangles of times and addresses, and bytes by time. x[b,m] as in
`formulations.placement`; a[b] = align[b] * k[b]; (APART) no two rectangles of a memory overlap, and by time the bytes
that are alive fit below top[m], which follows from it and helps the search.

**Master** (`master`) of engine search: memories of buffers without addresses.

Variables   x[b,m], top[m] as in `formulations.placement`
Constraints (ONE); (LOAD) in every section s the bytes of m that are alive are at most top[m] <= cap[m]
            (CUT)  for sets B of buffers of m: not all of them are in m, or top[m] >= least[B] if they are
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from ortools.sat.python import cp_model

from formulations.placement.instance import Instance
from formulations.placement.packing import Cut, Split
from formulations.problem import Goal, Model
from hwmodels.schedule import Place, Placement
from instances.network.buffers import Buffer, Memory, together


class _Base:
    """A model with its x and top."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.model = instance, cp_model.CpModel()
        self.x = {(b.name, m.name): self.model.new_bool_var("") for b in instance.buffers for m in instance.may(b)}
        self.top = {m.name: self.model.new_int_var(0, instance.capacity[m.name], m.name) for m in instance.memories}

    def one(self, b: Buffer) -> None:
        """Add (ONE)."""
        chosen = [self.x[b.name, m.name] for m in self.instance.may(b)]
        (self.model.add_exactly_one if b.spill is None else self.model.add_at_most_one)(chosen)

    def aim(self, goal: Goal) -> None:
        """Add what a goal asks for."""
        instance, x = self.instance, self.x
        outside = [
            (b.spill or 0) * (1 - sum(x[b.name, m.name] for m in instance.may(b))) for b in instance.buffers if b.spill
        ]
        displaced = [
            x[b.name, m.name] * (b.size * instance.rank(b, m.name)) for b in instance.buffers for m in instance.may(b)
        ]
        measures: Mapping[str, cp_model.LinearExprT] = {
            "bytes": sum(outside), "preference": sum(displaced), "peak": sum(self.top.values()),
        }  # fmt: skip
        for name, most in goal.caps.items():
            self.model.add(measures[name] <= most)
        if goal.below is not None:
            self.model.add(measures[goal.measure] <= goal.below - 1)
        self.model.minimize(measures[goal.measure])


def master(instance: Instance, cuts: Sequence[Cut], goal: Goal) -> Model[Split]:
    """Return the master's model, made anew as cuts come."""
    base = _Base(instance)
    model, x, top = base.model, base.x, base.top
    for b in instance.buffers:
        base.one(b)
        for m in instance.may(b):
            model.add(top[m.name] >= b.size + (b.offset or 0)).only_enforce_if(x[b.name, m.name])
    for alive in instance.whole.alive:
        for m in instance.memories:
            inside = [x[b.name, m.name] * size for b, size in alive if (b.name, m.name) in x]
            model.add(sum(inside) <= top[m.name])
    for cut in cuts:
        all_in = [x[b, cut.memory] for b in sorted(cut.buffers)]
        if cut.least is None:
            model.add_bool_or([literal.negated() for literal in all_in])
        else:
            model.add(top[cut.memory] >= cut.least).only_enforce_if(all_in)
    base.aim(goal)

    def decode(solver: cp_model.CpSolver) -> Split:
        inside = {
            m.name: [b.name for b in instance.buffers if (b.name, m.name) in x and solver.value(x[b.name, m.name])]
            for m in instance.memories
        }
        return Split(inside, {name: solver.value(variable) for name, variable in top.items()})

    return Model(model, decode, solver="cp-sat")


class _Builder(_Base):
    """The whole model."""

    def __init__(self, instance: Instance, goal: Goal) -> None:
        super().__init__(instance)
        self.goal = goal
        self.address = {b.name: self._address(b) for b in instance.buffers}

    def _address(self, buffer: Buffer) -> cp_model.LinearExprT:
        if buffer.offset is not None:
            return buffer.offset
        most = max([0, *(self.instance.capacity[m.name] - buffer.size for m in self.instance.may(buffer))])
        return self.model.new_int_var(0, most // buffer.alignment, "") * buffer.alignment

    def built(self) -> cp_model.CpModel:
        """All constraints, one family after the other."""
        for b in self.instance.buffers:
            self.one(b)
        for b in self.instance.buffers:
            for m in self.instance.may(b):
                top, inside = self.top[m.name], self.x[b.name, m.name]
                self.model.add(self.address[b.name] + b.size <= top).only_enforce_if(inside)
        for memory in self.instance.memories:
            self._apart(memory)
            self._banks(memory)
        self.aim(self.goal)
        self._hint()
        return self.model

    def _apart(self, memory: Memory) -> None:
        times, places, demands = [], [], []
        for b in self.instance.buffers:
            if (b.name, memory.name) not in self.x:
                continue
            literal = self.x[b.name, memory.name]
            for extent in b.extents():
                life, size = extent.upper - extent.lower, extent.high - extent.low
                first = self.address[b.name] + extent.low
                times.append(self.model.new_optional_fixed_size_interval_var(extent.lower, life, literal, ""))
                places.append(self.model.new_optional_fixed_size_interval_var(first, size, literal, ""))
                demands.append(size)
        self.model.add_no_overlap_2d(times, places)
        self.model.add_cumulative(times, demands, self.top[memory.name])

    def _banks(self, memory: Memory) -> None:
        bank = memory.bank_bytes or memory.bytes
        may = [b for b in self.instance.buffers if (b.name, memory.name) in self.x]
        foes = self.instance.rooms.partners
        for b, c in ((b, c) for b, c in combinations(may, 2) if c.name in foes.get(b.name, ())):
            both = [self.x[b.name, memory.name], self.x[c.name, memory.name]]
            for b_low, b_high, c_low, c_high in together(b, c):
                below = self.model.new_bool_var("")
                for first, high, second, low, literal in (
                    (b, b_high, c, c_low, below), (c, c_high, b, b_low, below.negated()),
                ):  # fmt: skip
                    border = self.model.new_int_var(0, -(-self.instance.capacity[memory.name] // bank), "")
                    self.model.add(self.address[first.name] + high <= border * bank).only_enforce_if([*both, literal])
                    self.model.add(border * bank <= self.address[second.name] + low).only_enforce_if([*both, literal])

    def _hint(self) -> None:
        known = self.goal.known
        where = {} if known is None else {place.buffer: place for place in known.places}
        for (b, m), literal in self.x.items():
            if where:
                self.model.add_hint(literal, b in where and where[b].memory == m)

    def decode(self, solver: cp_model.CpSolver) -> Placement:
        """The placement of a solution."""
        return Placement(
            tuple(
                Place(b, m, solver.value(self.address[b]))
                for (b, m), literal in self.x.items()
                if solver.value(literal)
            )
        )


def build(instance: Instance, goal: Goal, work: float | None = None) -> Model[Placement]:
    """Return the model, for so much work (CP-SAT's own measure, which does not depend on the machine's speed)."""
    builder = _Builder(instance, goal)
    limits = {} if work is None else {"max_deterministic_time": work}
    return Model(builder.built(), builder.decode, parameters=limits, solver="cp-sat")
