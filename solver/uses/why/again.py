"""Solving a question again under other conditions, and what follows: what binds, how much helps, what others cost.

**What binds.** Let v be the value of the plan, b its bound, v' and b' those of the relaxed question. There is a better
plan without what was relaxed, but none with it, exactly if the relaxed optimum is below b; so

    v' < b     it binds, and saves at least b - v' (exactly v - v' where v = b and v' = b');
    b' >= v    it does not bind: nothing is saved;
    else       not decided in time.

**The next-best decisions** (`Rival`): the best plan if one decision has to be another one, and what that costs. Of a
nest each tile size is forbidden upwards and downwards (``T_M<=7``, ``T_M>=9`` where the plan has 8), choices are
excluded or asked for one by one. Of other plans every value of every closed choice is asked for, and heuristics are
asked what they would decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from formulations.pins import Decision
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.workload import Layer
from solver.ask.question import Question
from solver.calls.solve import answered
from solver.plan.plan import Plan, digest
from solver.plan.why import Knee, Known, Rival, Trial
from solver.problems.problem import Problem
from solver.uses.why.relax import Relaxed, memory_field

#: Seconds below which it is not worth to begin.
_WORTH_S = 0.05
#: The share of the time that one solve may take.
_SHARE = 5
#: Solves that the search for the nearest larger memory may take.
_KNEE_SOLVES = 24
#: The order in which decisions of nests are tried.
_CHOICES = ("resident", "holds", "pieces", "lines", "output", "partition", "dataflow")
#: More values of one choice than this are not tried.
_MOST = 6
#: Values of choices that demand nothing.
_OPEN = ("free", "any", "either")


@dataclass(frozen=True)
class Found:
    """What solving again said."""

    status: Known
    value: int | None = None
    bound: int | None = None
    plan: Plan | None = None

    @property
    def proven(self) -> bool:
        """Whether the value is the least there is."""
        return self.value is not None and self.bound == self.value


SKIPPED = Found("SKIPPED")


@dataclass
class Again:
    """A question that is asked again and again, with other machines, pins and engines; nothing is solved twice."""

    problem: Problem
    question: Question
    begin: float
    """By `time.monotonic`, as `end`."""
    end: float
    """When time is up."""
    share_s: float
    """Seconds that one solve may take."""
    known: dict[str, Found] = field(default_factory=dict)
    solves: int = 0

    @classmethod
    def of(cls, problem: Problem, question: Question, time_limit_s: float) -> Again:
        """From now on; by the fastest exact engine, for the first objective alone."""
        first = replace(question, objectives=question.objectives[:1], jobs=1)
        first = replace(first, engine=problem.engine("auto", first.objectives))
        now = time.monotonic()
        return cls(problem, first, now, now + time_limit_s, max(0.5, time_limit_s / _SHARE))

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return self.end - time.monotonic() < _WORTH_S

    def solve(
        self, machine: Machine | None = None, pins: Sequence[str] | None = None, *, engine: str | None = None,
        target: Buffers | None = None,
    ) -> Found:  # fmt: skip
        """Solve under other conditions; `SKIPPED` if time is up, INFEASIBLE if the conditions contradict themselves."""
        asked = replace(
            self.question, machine=machine or self.question.machine,
            pins=self.question.pins if pins is None else tuple(pins), engine=engine or self.question.engine,
            target=target or self.question.target,
        )  # fmt: skip
        key = digest([asked.machine.model_dump(mode="json"), list(asked.pins), asked.engine, asked.target_json()])
        if key in self.known:
            return self.known[key]
        if self.over:
            return SKIPPED
        left = min(self.share_s, self.end - time.monotonic())
        self.solves += 1
        try:
            plan = answered(self.problem, replace(asked, time_limit_s=left))
            value = plan.objective.value if plan.objective else None
            self.known[key] = Found(plan.status, value, plan.bound, plan)
        except InputError:
            self.known[key] = Found("INFEASIBLE")
        return self.known[key]

    def best(self, own: Found) -> tuple[Found, list[Trial]]:
        """The best that is known under the plan's own conditions; if it is not proven, with an exact engine's trial."""
        if own.proven:
            return own, []
        found, name = self.solve(), self.question.engine
        saved = saves(own, found)
        trial = Trial(
            cause="engine", name=name, change=f"engine {name}", status=found.status, value=found.value,
            bound=found.bound, saves=saved, binds=None if saved is None else saved > 0, exact=found.proven,
        )  # fmt: skip
        bounds = [bound for bound in (own.bound, found.bound) if bound is not None]
        values = [value for value in (own.value, found.value) if value is not None]
        return Found(found.status, min(values), max(bounds, default=None)), [trial]


# ---- what binds ------------------------------------------------------------------------------------------------------


def trials(
    again: Again, base: Found, relaxations: Iterable[Relaxed],
    elsewhere: Callable[[Machine], int | None] = lambda _: None,
) -> Iterator[Trial]:  # fmt: skip
    """Solve every relaxation and say whether it binds.

    `elsewhere` is what the plan's own decisions are worth on a machine: the least that a search would find.
    """
    for one in relaxations:
        found = again.solve(one.machine, one.pins, target=one.target)
        own = None if found.proven or one.machine is None else elsewhere(one.machine)
        if own is not None and (found.value is None or own < found.value):
            found = Found("FEASIBLE", own, found.bound)
        found = _coarser(found, one.finer)
        yield Trial(
            cause=one.cause, name=one.name, change=one.change, status=found.status, value=found.value,
            bound=found.bound, saves=saves(base, found), binds=_binds(base, found), exact=base.proven and found.proven,
            amount=one.amount, per=one.per,
        )  # fmt: skip


def _coarser(found: Found, finer: int) -> Found:
    """What was found in ticks of the plan, rounded up (the plan's own are whole)."""
    value, bound = (None if x is None else -(-x // finer) for x in (found.value, found.bound))
    return replace(found, value=value, bound=bound)


def _binds(base: Found, found: Found) -> bool | None:
    """Whether what was relaxed binds (the module's docstring)."""
    if base.value is None or found.value is None:
        return None
    if base.bound is not None and found.value < base.bound:
        return True
    return False if found.bound is not None and found.bound >= base.value else None


def saves(base: Found, found: Found) -> int | None:
    """What is saved, at least; where the relaxed search found nothing better: nothing."""
    if base.value is None or found.value is None:
        return None
    return max(0, base.value - found.value)


def next_memory(again: Again, base: Found, memory: str, most: int) -> tuple[Knee, Knee] | None:
    """Return the least size of a memory with which the optimum is better, and the least one that is as good as `most`.

    The optimum falls in steps as the memory grows. A plan for size s that takes o bytes is one for every size from o
    on: so each solve between the largest size that does not help and the smallest that does moves one of them.
    """
    best = again.solve(_with(again.question.machine, memory_field(memory), most))
    if base.value is None or best.value is None or best.value >= base.value:
        return None
    enough = _least(again, base, memory, best, _taken(best, memory, most), best.value)
    return _least(again, base, memory, best, enough.at, base.value - 1), enough


def _least(again: Again, base: Found, memory: str, best: Found, high: int, wanted: int) -> Knee:
    """The least size of which the optimum is at most `wanted`; size `high` has a plan that is."""
    machine, name = again.question.machine, memory_field(memory)
    value, low, exact = best.value or 0, machine.memories[memory], base.proven
    for _ in range(_KNEE_SOLVES):
        if high - low <= 1 or again.over:
            break
        middle = (low + high) // 2
        now = again.solve(_with(machine, name, middle))
        if now.value is None:
            break
        if now.value <= wanted:
            high, value = _taken(now, memory, middle), now.value
        else:
            low, exact = middle, exact and now.bound is not None and now.bound > wanted
    exact = exact and high - low <= 1
    saved = (base.value or 0) - value
    return Knee(field=name, at=high, more=high - machine.memories[memory], value=value, saves=saved, exact=exact)


def _with(machine: Machine, name: str, size: int) -> Machine:
    return machine.model_copy(update={name: size})


def _taken(found: Found, memory: str, most: int) -> int:
    """What the plan takes of a memory."""
    rows = getattr(found.plan, "layers", ())
    taken = [row.occupancy_bytes.get(memory, most) for row in rows if isinstance(row.occupancy_bytes, dict)]
    return min(most, max(taken, default=most))


# ---- the next-best decisions -----------------------------------------------------------------------------------------


def of_nest(
    decisions: Mapping[str, Decision], layer: Layer, decision: Mapping[str, int | str], pins: Sequence[str]
) -> Iterator[str]:
    """Yield pins that a nest does not meet, or may not: other operands held, other ways to cut, the next tile sizes."""
    for name in _CHOICES:
        if name in decisions and not any(pin.startswith(f"{name}=") for pin in pins):
            own = decision.get(name)
            if own is not None:
                yield f"{name}!={own}"
            else:
                yield from (f"{name}={value}" for value in decisions[name].values if value not in _OPEN)
    for name, value in decision.items():
        if name in decisions and name.startswith("T_") and isinstance(value, int):
            yield from ([f"{name}<={value - 1}"] if value > 1 else [])
            yield from ([f"{name}>={value + 1}"] if value < layer.extent(name[2:].lower()) else [])
        elif name in decisions and name.startswith(("buffers_", "home_")):
            yield f"{name}!={value}"


def of_choices(decisions: Mapping[str, Decision], pins: Iterable[str]) -> Iterator[str]:
    """Yield every value of every closed choice that no pin is about."""
    asked = {pin.split("=")[0].rstrip("!<>") for pin in pins}
    for name, decision in decisions.items():
        if name not in asked and 1 < len(decision.values) <= _MOST:
            yield from (f"{name}={value}" for value in decision.values if value not in _OPEN)


def rivals(again: Again, base: Found, demands: Iterable[str], engines: Iterable[str] = ()) -> list[Rival]:
    """Solve with each demand added, then ask heuristics what they decide."""
    asked = [(one, again.solve(pins=(*again.question.pins, one)), False) for one in demands]
    asked += [(f"as engine {name} decides", again.solve(engine=name), True) for name in engines]
    return [_rival(decision, base, found, heuristic) for decision, found, heuristic in asked]


def _rival(decision: str, base: Found, found: Found, heuristic: bool) -> Rival:
    if found.value is None or base.value is None:
        return Rival(decision=decision, status=found.status)
    more, exact = found.value - base.value, heuristic or found.proven
    return Rival(decision=decision, status=found.status, value=found.value, more=more, exact=exact)


def cheapest(found: Sequence[Rival], most: int = 5) -> tuple[Rival, ...]:
    """Return those that cost nothing, the next `most`, the cheapest first, and those that leave no plan."""
    solved = sorted((one for one in found if one.more is not None), key=lambda one: (one.more or 0, one.decision))
    none = [one for one in found if one.more is None and one.status == "INFEASIBLE"]
    free = [one for one in solved if one.more == 0 and one.exact]
    return (*free, *[one for one in solved if one not in free][:most], *none)
