"""Solvers in place of the exhaustive search of candidates: CP-SAT and MILP.

Objectives, limits, bounds of what is left open and proofs beyond the candidates are those of the exhaustive search.
Here members of the space are priced, cut in parts (`Branch.parts`) and solved one after the other, each asked only for
plans below the best so far; a part without one is done. Nests beyond the candidates (`Search.open`) are asked for in
the same way, by the same models over tables of bounds: an option is a class of ways to cut, or a vector
(`formulations.tiling.vectors`). Of the classes that are below the best plan each has a model over its vectors; a vector
that is below it is made a nest, which is the new best plan or leaves the vector's value open, and is cut off. With
bounding, the search starts from the best plan of a first pass over few candidates, and only what separable bounds leave
over is put in the models. With double-buffered time the model minimises a lower bound of the time; plans it finds are
priced on their exact timeline and cut off until no bound is below the best exact price; ties are then broken as by the
exhaustive search.

Proof and tolerance of MILP: the solvers work on floats with feasibility tolerance 1e-6. A decoded plan is priced in
integers; it counts as proven only if its price is what the solver reports, and no capacity or earlier objective is
exceeded in integers: else it is left out, and the solver is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from formulations.problem import Model, Report, Stats
from formulations.tiling.branch import Branch, lower_bounds, undominated
from formulations.tiling.member import Member
from formulations.tiling.search import FEW, MADE, Asking, Search
from formulations.tiling.space import Pick, stages

#: Exact timelines laid out per branch before a double-buffered plan is reported with a gap.
_MAX_CUTS = 200
Choice = tuple[int, int]


@dataclass(frozen=True)
class Answer:
    """What a solver says of a branch: the best choice found, a proven bound, and whether nothing better exists."""

    choice: Choice | None
    bound: int
    done: bool


@dataclass
class Staged(Search):
    """A search that asks a solver for the best candidates of a member."""

    engine: str = "cp-sat"
    said: Stats = field(default_factory=dict)
    """What solvers say of themselves (`formulations.problem.Goal.stats`)."""
    models: int = 0
    choices: int = 0
    heuristic: bool = False
    """Whether a first pass found a plan to start from."""

    @property
    def timeline(self) -> bool:
        """Whether time is one."""
        return any(member.timeline for member in self.space.members)

    @property
    def figures(self) -> Stats:
        """Of the search, for the plan."""
        return {"models": self.models, "choices": self.choices, "heuristic_start": self.heuristic}

    def settle(self, measure: str) -> Asking:
        """Minimise one measure, proven only by solvers that were done; ties are broken whatever work it takes."""
        self._allowance, self._long = None, False
        yield from super().settle(measure)

    def first(self, measure: str) -> Pick | None:
        """Find a good plan among few candidates."""
        pick = super().first(measure)
        self.heuristic |= not self.kept and pick is not None
        return pick

    def _reached(self, measure: str) -> bool:
        """Not before every member was asked: the solvers confirm what no plan can be below."""
        return False

    def ask(self, member: Member, measure: str) -> Asking:
        """Solve what is left of a member in parts, and see whether nests beyond its candidates may be better."""
        if self.kept and self.timeline and "time" in stages(self.objectives, self.space.machine):
            self._look(member, measure)
            return
        branch = member.branch((*self.kept, measure), self._limits(measure))
        for cut in () if branch.empty else branch.parts():
            part = undominated(cut, [*self.kept, measure]) if cut.exact else cut
            self.choices += sum(part.choices.shape)
            bound = yield from self._solved(part, measure)
            if bound is not None:
                self._stop(measure, max(bound, int(lower_bounds(cut.tables(measure), "s").min())))
        if measure in self.aims and not member.exact((*self.kept, measure)):
            if self._late():
                self._stop(measure, self._least_of(member, measure))
            elif member.timeline:
                self.open(member, measure)
            else:
                yield from self._opened(member, measure)

    def _opened(self, member: Member, measure: str) -> Asking:
        """Have the solver look for nests below the best plan beyond a member's candidates, as `Search.open` does."""
        measures = (*self.kept, measure)
        for rough in member.bounds(measures, self._limits(measure)):
            out: list[Choice] = []
            while (found := (yield from self._next(rough, measure, out))) is not None:
                few = len(out) < FEW
                one = rough.take(*(np.array([at]) for at in found)) if few else rough
                for finer in member.finer(one, measures, self._limits(measure)):
                    yield from self._attained(member, finer, measure)
                if not few:
                    break
                out.append(found)

    def _attained(self, member: Member, branch: Branch, measure: str) -> Asking:
        """Have the solver look for vectors below the best plan, the least first, and see whether nests have them."""
        out: list[Choice] = []
        while (found := (yield from self._next(branch, measure, out))) is not None:
            value = max(table.at(*found) for table in branch.tables(measure))
            self.meet(member, (branch, *found), value, measure, looking=len(out) < MADE)
            if len(out) >= MADE:
                return
            out.append(found)

    def _next(
        self, branch: Branch, measure: str, out: list[Choice]
    ) -> Generator[Model[Any], Report[Any], Choice | None]:
        """The least choice of a branch of bounds that is below the best plan and not `out`; None if there is none."""
        if branch.empty or (self.best is not None and not self.best.measures[measure]):
            return None
        # what others are nowhere above is not needed to see whether there is one, and models are smaller without
        asked = [] if out else [undominated(branch, [*self.kept, measure])]
        for one in [*asked, branch]:
            best = inf if self.best is None else self.best.measures[measure]
            if self._late():
                self._stop(measure, int(lower_bounds(branch.tables(measure), "s").min()))
                return None
            self.models += 1
            answer = yield from self._asked(one, measure, None if best == inf else int(best) - 1, out)
            found = answer.choice
            if found is None or max(table.at(*found) for table in one.tables(measure)) >= best:
                if not answer.done and answer.bound < best:
                    self._stop(measure, max(answer.bound, int(lower_bounds(branch.tables(measure), "s").min())))
                return None
        return found

    def _solved(self, branch: Branch, measure: str) -> Generator[Model[Any], Report[Any], int | None]:
        """Solve one part; return a bound on what is left open in it, None if nothing is."""
        cuts: list[Choice] = []
        exact = branch.exact or "time" not in (measure, *self.kept)
        while True:
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return 0
            most = None if self.best is None else self.best.measures[measure] - 1
            if most is not None and most < 0:
                return None
            self.models += 1
            answer = yield from self._asked(branch, measure, most, cuts)
            if self.said.get("interrupted"):  # as if the time were up
                self.deadline = time.monotonic()
            if answer.choice is not None:
                self._take(Pick(branch, *answer.choice, branch.measures(*answer.choice)))
            if answer.done and (exact or answer.choice is None):
                return None
            if exact or answer.choice is None or len(cuts) >= _MAX_CUTS:
                beyond = self.best is not None and answer.bound >= self.best.measures[measure]
                return 0 if beyond else answer.bound  # a solver that was not done does not close a part
            cuts.append(answer.choice)

    def _asked(
        self, branch: Branch, measure: str, most: int | None, cuts: list[Choice]
    ) -> Generator[Model[Any], Report[Any], Answer]:
        """Ask for the least of one measure up to `most` outside of `cuts`."""
        out = list(cuts)
        while True:
            told = yield self._model(branch, measure, most, out)
            if told.bound is None:
                return Answer(None, 0, done=True)
            if told.schedule is not None:
                value = max(table.at(*told.schedule) for table in branch.tables(measure))
                return Answer(told.schedule, told.bound, done=told.bound == value)
            if told.again:
                continue
            ended = self._late() or self.said.get("interrupted")
            if self.engine == "cp-sat" or most is None or ended:
                return Answer(None, told.bound, done=False)
            most = (
                None  # that nothing is below is not said, or not believed: without it there is a solution to be priced
            )

    def _model(self, branch: Branch, measure: str, most: int | None, out: list[Choice]) -> Model[Any]:
        """The model; a choice of a MILP solver that is over a limit in integers is put `out`."""
        if self.engine == "cp-sat":
            from formulations.tiling.cp_sat import build_cp_sat  # late: solvers are slow to import

            asked = build_cp_sat(branch, measure, at_most=most, levels=self.kept, cuts=out)
            return Model(asked.model, asked.decode, own_bound=True)
        from formulations.tiling.milp import build_milp

        built = build_milp(branch, measure, at_most=most, levels=self.kept, cuts=out)
        found: list[Choice] = []

        def kept(_: object) -> Choice | None:
            s, q = built.decode()
            fits = all(table.at(s, q) <= limit for _, table, limit in branch.capacity)
            if fits and all(t.at(s, q) <= v for m, v in self.kept.items() for t in branch.tables(m)):
                found.append((s, q))
                return s, q
            out.append((s, q))
            return None

        def cost() -> int:
            return max(table.at(*found[-1]) for table in branch.tables(measure))

        return Model(built.problem, kept, unit=built.unit, priced=True, cost=cost, own_bound=True)
