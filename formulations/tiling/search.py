"""Exhaustive search: every combination of candidates, vectorised, one objective after the other.

For one unconstrained layer this is exact and faster than any solver; CP-SAT and MILP confirm it by another route.
Stage k minimises the k-th objective among the plans that keep the values of the earlier ones. A first pass over few
candidates gives a good plan; the second looks at everything that separable lower bounds do not exclude: chains by the
least factors of all other axes (`formulations.tiling.member`), rows and columns by ``sum_k a[k,s] * min_q b[k,q]``. The
first stage ends early where the plan moves no more than any plan must (`hwmodels.nest.price.limits`), or reaches a
bound that the caller has proven (`Search.known`).

Double-buffered time is a sum of maxima over steps and no table. As the first objective all members are looked at for
up to a half of the time, by bounds that take little. Then the best nests so far, of several members, are cut anew loop
by loop (`formulations.tiling.recut`), and nests of the classes with the least bounds by branch and bound
(`formulations.tiling.splitting`). Members whose nests are not below the best by these are settled; of others timelines
are laid out in the order of their lower bounds, until none is below the best, or `MOST_TIMELINES` are. Bounds rise by
what is known of how tiles follow each other (`hwmodels.nest.price.pipeline`), as far as the least that is left open
asks for. As a tie-break it is the best of the `TIMELINES` most promising ones, the same for every engine.

Nests beyond the candidates. Where a member's candidates are not proven to hold an optimum (`Member.exact`), bounds on
all its nests are searched first, by the same tables (`hwmodels.nest.price.relaxed`): a member none of whose bounds is
below the best plan is settled. Of the others classes are told apart by vectors (`formulations.tiling.classes.finer`)
with what is settled kept, be it time, bytes or energy: the fewest bytes of all nests of the least time are proven by
the vectors that prove the least time. A vector below the plan that no nest is found for is left open. An objective is
proven if nothing below the plan is open. Ties beyond the objectives asked for are broken with `TIES` work, after a
proof that took more than that among the nests of the best plan's member only, which takes less time than the proof; the
plan says so where that leaves some out.

Time limit. The first pass goes on until it has a plan, so that there is one whatever the limit. What is left open keeps
a bound: of a block its least separable bound, of a member that was not priced one that prices no combination
(see `formulations.tiling.space`). A search stopped from outside keeps its best plan and its proofs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock
from formulations.problem import Model, Report, Stats
from formulations.tiling.branch import Block, Branch, Choice, blocks, lower_bounds, smallest, within
from formulations.tiling.cause import cause
from formulations.tiling.member import Member
from formulations.tiling.recut import Cutting, climbed, in_any_order, may_recut, starts
from formulations.tiling.space import Pick, Space, aims, closed_form_bound, least_of, stages, vector
from formulations.tiling.splitting import FIRST, Least, Splitting, may_split
from formulations.tiling.turns import turned
from hwmodels.nest.price.hidden import MOST
from hwmodels.nest.price.limits import compulsory_bytes

#: Timelines that are laid out to break a tie, of a member in the first pass, and in all for a proof (some seconds).
TIMELINES, FIRST_TIMELINES, MOST_TIMELINES = 300, 30, 5_000
#: Members whose best nests of the first pass are cut anew.
LEADS = 8
#: Choices of bounds that are looked at one by one; as many as these of a member that has timelines are left.
FEW, MOST_CLASSES = 40, 500_000
#: Nests that are looked for to attain the bounds of a member, and those whose time is a timeline.
MADE, MADE_TIMELINES = 100, 30
#: Work that goes into breaking ties, if the proof took less: values of measures of combinations, and choices priced.
TIES = 4_000_000
#: Combinations that can be looked at in the time that pricing one choice takes.
_PRICED = 20
Values = Mapping[str, int]
#: A search that may have models solved.
Asking = Generator[Model[Any], Report[Any], None]


@dataclass
class Search:
    """One lexicographic search of a space."""

    space: Space
    objectives: tuple[str, ...]
    bounding: bool = True
    deadline: float | None = None
    best: Pick | None = None
    """The best plan so far."""
    kept: dict[str, int] = field(default_factory=dict)
    """The values of the objectives that are settled."""
    whole: bool = True
    """Whether the last measure is proven: nothing below the best plan is left open."""
    bound: int | None = None
    """No nest that was not looked at is below it; None where nothing is left, or nothing is known."""
    stopped: bool = False
    """Whether candidates were left out as time was up."""
    proven: tuple[str, ...] = ()
    """The measures asked for that are proven, in their order."""
    proving: tuple[str, ...] | None = None
    """The measures to prove, if not all that are asked for."""
    known: Mapping[str, int] = field(default_factory=dict)
    """What is known that no nest is below: a plan that reaches it is looked for no further."""
    polishing: bool = True
    """Whether the measures that are not asked for break ties."""
    bounds: dict[str, int] = field(default_factory=dict)
    """Of the measures asked for that are not, what no nest is below."""
    settled: list[str] = field(default_factory=list)
    """The measures that were searched to the end, or to where they are left open."""
    ties: bool = True
    """Whether all candidates were looked at to break ties."""
    looked: int = 0
    """Combinations of candidates whose value was computed."""
    end: float | None = None
    """When nothing may take time any more: what is left out then has a bound in closed form, as if `broken` off."""
    broken: bool = False
    _work: int = 0
    _long: bool = False
    cause: str = ""
    """Why the bound of the first objective that is not proven is below the plan."""
    _open: int | None = None
    _allowance: int | None = None
    _patient: bool = False
    _later: bool = False
    _raising: bool = True
    _laid: int = 0
    _left: int | None = None
    _crowded: int | None = None
    _at: Choice | Least | None = None
    _lead: Pick | None = None
    _cut: Pick | None = None
    _leasts: dict[int, Least | None] = field(default_factory=dict)
    _split_below: int = 0
    _split_of: Least | None = None
    _leads: list[tuple[Member, Pick]] = field(default_factory=list)

    def run(self) -> Pick | None:
        """Settle all objectives, then break ties by the other measures.

        For callers without a loop of goals: a solve goes by `minimise` (`_Whole.steps` of part.py).
        """
        for measure in stages(self.objectives, self.space.machine):
            if not self.polishing and measure not in (*self.aims, *self.objectives):
                break
            for _ in self.minimise(measure):
                raise AssertionError("this search has no models")
            if self.best is None or self.stopped:
                break
        self.turn()
        return self.best

    def minimise(self, measure: str) -> Asking:
        """Settle one measure, those before it kept; what is not asked for only breaks ties."""
        tie = measure not in self.aims
        if tie and measure not in self.objectives:
            self._long |= self._allowance is None and self._work > TIES
            self._allowance = self._work + TIES
        yield from self.settle(measure)
        if not tie:
            self._record(measure)
        self.settled.append(measure)
        self.ties &= not (tie and self.stopped)
        if self.best is not None and not self.stopped:
            self.kept[measure], self._later = self.best.measures[measure], True

    @property
    def figures(self) -> Stats:
        """Of the search, for the plan."""
        return {"looked_at": self.looked}

    @property
    def stats(self) -> Stats:
        """These, and what was left out."""
        open_ = self.stopped and self.ties and self.proven != self.aims
        left: Stats = {"left_open": True} if open_ or self.broken else {}
        left |= {"gap": self.cause} if self.cause else {}
        return {**self.figures, **left, **({} if self.ties else {"ties": "broken among some of the candidates"})}

    def turn(self) -> None:
        """Look for better orders of the loops where the machine runs them to and fro and the plan is not proven."""
        if self.best is None or not self.space.machine.snake or self.proven == self.aims:
            return
        self.kept = {m: v for m, v in self.kept.items() if m not in stages(self.objectives, self.space.machine)}
        self._take(turned(self.space, self.objectives, self.aims[0], self.best, self._late))

    @property
    def aims(self) -> tuple[str, ...]:
        """The measures asked for, which are to be proven."""
        if self.proving is not None:
            return self.proving
        return aims(self.objectives, self.space.machine)

    def _record(self, measure: str) -> None:
        """Note what is proven, of a measure only if the ones before are."""
        if self.whole and len(self.proven) == self.aims.index(measure):
            self.proven += (measure,)
        if self.bound is not None:
            self.bounds[measure] = self.bound
            self.cause = self.cause or (cause(self._at) if self._at else "")

    def settle(self, measure: str) -> Asking:
        """Minimise one measure with the earlier ones kept."""
        before = self.best
        try:
            if self.kept and any(m.timeline for m in self.space.members):
                self.best = None  # what is looked at shall not depend on how the first plan was found
            yield from self._settle(measure)
        finally:
            if before is not None:
                self._take(before)
        if self.best is None and not self.stopped and self._roomy:
            self._open = None  # nothing fits, whatever bounds say
        beaten = self.best is None or self._open is None or self._open < self.best.measures[measure]
        self.bound = self._open if beaten else None
        self.whole = self.bound is None

    @property
    def _roomy(self) -> bool:
        """Whether candidates have the nests that take the least room, and nothing else is asked of them."""
        plain = (member for member in self.space.members if not member.skeleton.line)
        return set(self.kept) <= {"ocm"} and all(member.exact(("ocm",)) for member in plain)

    def _settle(self, measure: str) -> Asking:
        """Look at all members."""
        members, self._cut, self._crowded = list(self.space.members), None, None
        if self.bounding:
            self.first(measure)
            self._list(measure)
            self._recut(measure)
            self._split(measure)
            members.sort(key=self._promise)
        self.stopped, self._open, self._laid, self._left = False, None, 0, None  # the first pass leaves much out
        for number, member in enumerate(members):
            if self._reached(measure):
                break
            self._split_of = None
            if self._late() or (number and self._long):
                self._stop(measure, min(self._least_of(one, measure) for one in members[number:]))
                break
            self._split_of = self._leasts.get(id(member))
            yield from self.ask(member, measure)
        self._split_of = None
        self._recut_best()

    def ask(self, member: Member, measure: str) -> Asking:
        """Look at a member; a subclass has models solved for it."""
        self._look(member, measure)
        yield from ()

    def first(self, measure: str) -> Pick | None:
        """Find a good plan among few candidates: those that settled the objectives before, at first very few."""
        if self._later and (measure != "time" or "time" in self.kept or self._long):
            return self.best  # they are the same, or take long
        measures = (*self.kept, measure)
        self._patient = not self._later
        for member in sorted(self.space.members, key=self._promise):
            if self._late():
                break
            few, self._lead = {"listed": tuple(self.kept)} if self._later else {"coarse": True}, None
            self._search(member.branch(measures, self._limits(measure), **few), measure, first=True)
            if self._lead is not None and may_recut(member):
                self._leads.append((member, self._lead))
        self._patient = False
        return self.best

    def _list(self, measure: str) -> None:
        """Look at candidates and at nests that attain bounds, where cutting anew and bounding may take all the time."""
        if measure != "time" or not self._leads:
            return
        whole, self._laid, self._raising = self.deadline, 0, False
        self.deadline = None if whole is None else Clock(whole).share(2).until
        for member in sorted(filter(may_recut, self.space.members), key=self._promise):
            self._lead = None
            if not self._late():
                self._look(member, measure)
            if self._lead is not None:
                self._leads.append((member, self._lead))
        self.deadline, self._raising = whole, True

    def _recut(self, measure: str) -> None:
        """Cut the loops of the best nests of some members anew where their time is a timeline."""
        if measure != "time" or self._late():
            return
        begun, late = set[tuple[Any, ...]](), self._by(4)
        for member, lead in sorted(self._leads, key=lambda pair: pair[1].measures["time"])[:LEADS]:
            for start in starts(Cutting.of(member, lead.branch, lead.s, lead.q)):
                self._climb(start, begun, late)
        self._leads.clear()
        self._cut = self.best

    def _recut_best(self) -> None:
        """Do so with the best nest if it was found since, in any order."""
        best = self.best
        if self._cut is None or best is None or best is self._cut or self._late():
            return
        for member in (one for one in self.space.members if one.label == best.branch.label and may_recut(one)):
            for one in in_any_order(Cutting.of(member, best.branch, best.s, best.q)):
                climbed(one, self._time_of, self._late)

    def _time_of(self, cutting: Cutting) -> float:
        """The time of a nest that is kept in mind; infinite where it is none to be kept."""
        branch = cutting.planned()
        if branch is None:
            return inf
        pick = self._pick(branch, 0, 0)
        self._take(pick)
        return pick.measures["time"] if self._keeps(pick) else inf

    def _promise(self, member: Member) -> bool:
        return self.best is None or member.label != self.best.branch.label

    def _reached(self, measure: str) -> bool:
        """Whether nothing can be better than the best plan, by what is known without looking at any."""
        if self.best is None or not self.bounding:
            return False
        least = max(self.known.get(measure, 0), self._closed(measure))
        if measure == "bytes":
            least = max(least, compulsory_bytes(self.space.layer, self.space.machine))
        return self.best.measures[measure] <= least

    def _closed(self, measure: str) -> int:
        return closed_form_bound(self.space.layer, self.space.machine, measure)

    def _late(self) -> bool:
        """Whether time is up; in the first pass not before there is a plan."""
        if self._patient and self.best is None:
            return False
        spent = self._allowance is not None and self._work > self._allowance
        return spent or (self.deadline is not None and time.monotonic() > self.deadline)

    def _leave(self, bound: int, at: Choice | Least | None = None) -> None:
        """Some nests are not looked at; none is below `bound`, which is that of a choice, or what splitting says."""
        if self._split_of is not None and bound < self._split_of.bound:
            bound, at = self._split_of.bound, self._split_of
        if self._open is None or bound < self._open:
            self._open, self._at = bound, at

    def _stop(self, measure: str, bound: int, at: Choice | None = None) -> None:
        """Candidates are left out, none below `bound`, as time is up; it is no loss if they cannot be better."""
        if self.best is None or bound < self.best.measures[measure]:
            self.stopped = True
            self._leave(bound, at)

    def _least_of(self, member: Member, measure: str) -> int:
        """A bound on what is left out; to break ties none is needed."""
        if measure not in self.aims:
            return 0
        known = 0
        if measure == "time" and id(member) in self._leasts:
            split = self._leasts[id(member)]
            known = self._split_below if split is None else split.bound
        if self.hurried:
            return max(known, self._closed(measure))
        return max(known, least_of(member, measure))

    @property
    def hurried(self) -> bool:
        """Whether nothing may take time any more."""
        return self.broken or (self.end is not None and time.monotonic() > self.end)

    def _limits(self, measure: str) -> dict[str, int]:
        """What a plan must keep, and below what it must be to matter."""
        limits = dict(self.kept)
        if self.bounding and self.best is not None:
            limits[measure] = self.best.measures[measure] - 1
        return limits

    def _look(self, member: Member, measure: str) -> None:
        if measure not in self.aims:
            self._candidates(member, measure)
        elif measure == "time" or member.timeline or not self._beyond(member, measure):
            if self.open(member, measure):
                self._candidates(member, measure)
        elif rough := self._rough(member, measure, self._limits(measure)):  # candidates nearly always attain these
            self._candidates(member, measure)
            self._refine(member, measure, rough)

    def _candidates(self, member: Member, measure: str) -> None:
        for number, branch in enumerate(member.branches((*self.kept, measure), self._limits(measure))):
            if (number and self._late()) or self._laid >= MOST_TIMELINES:
                self._stop(measure, max(self._least_of(member, measure), self._left or 0))
                return
            self._search(branch, measure)

    def _beyond(self, member: Member, measure: str) -> bool:
        """Whether its candidates may miss the best nest of a member; bounds of other members are below all in lines."""
        return not (member.skeleton.line or member.exact((*self.kept, measure)))

    def _refine(self, member: Member, measure: str, rough: Iterable[Block]) -> None:
        """Bound the ways to cut of rough bounds, and look for nests that attain what is below the best plan."""
        for branch, values in rough:
            for part in self._each(branch, values, measure):
                for one in member.finer(part, (*self.kept, measure), self._limits(measure)):
                    for block, some in self._below(one, measure):
                        self._attain(member, block, some, measure)

    def open(self, member: Member, measure: str) -> bool:
        """Whether a nest of the member may be below the best plan; where its candidates may miss some, note how far."""
        if not self._beyond(member, measure):
            return True
        known = measure == "time" and self.best is not None and id(member) in self._leasts
        if known and ((split := self._split_of) is None or split.bound >= self._limits(measure).get(measure, -1) + 1):
            return False
        (before, at), self._open = (self._open, self._at), None
        limits = self._limits(measure)
        left = self._left if self._crowded == limits.get(measure, 0) else None
        if left is not None:  # classes were too many: of what is not below the least that is left the bound is told
            limits[measure] = min(limits.get(measure, left), left - 1)
        rough = self._rough(member, measure, limits)
        if measure != "time" and member.timeline:
            for block in rough or ():
                self._leave(*smallest(*block))
        else:
            self._refine(member, measure, rough or ())
        if before is not None and (self._open is None or before <= self._open):
            self._open, self._at = before, at
        self._left = self._open
        return left is not None or rough is None or bool(rough)

    def _rough(self, member: Member, measure: str, limits: dict[str, int]) -> list[Block] | None:
        """The bounds of a member that are within limits; None where they are too many, and the least is noted."""
        found, count = list[Block](), 0
        for one in member.bounds((*self.kept, measure), limits):
            found += self._below(one, measure)
            count = sum(values.size for _, values in found)
            if member.timeline and count > MOST_CLASSES:
                break
        else:
            return found
        self._crowded = self._limits(measure).get(measure)
        lower: tuple[int, Choice] | None = min((smallest(*block) for block in found), key=lambda one: one[0])
        while lower:
            least, at = lower
            self._left, below = least, limits | {measure: least - 1}
            blocks = (x for one in member.bounds((*self.kept, measure), below) for x in self._below(one, measure))
            lower = next((one for one in (smallest(*block) for block in blocks) if one[0] < least), None)
        self._leave(least, at)
        return None

    def _split(self, measure: str) -> None:
        """Bound the members whose time is a timeline; look for nests of the least bounds, and begin again with one."""
        members = [one for one in self.space.members if one.timeline and may_split(one.layer, one.machine)]
        before, every, begun, self._leasts = None, Splitting(members), set[tuple[Any, ...]](), {}
        raised = self._closed("time")
        while measure == "time" and "time" in self.aims and members and self.best is not None and not self._late():
            now = self.best.measures["time"]
            if now > MOST or (before is not None and now >= before):
                break
            if before is None and self.deadline and any(every.least_times(now, self._by(4), FIRST)):
                raised = every.raised(raised, now, self._by)
            leasts = [x and replace(x, bound=max(raised, x.bound)) for x in every.least_times(now, self._by(2))]
            for number, steps, slide in every.ways():
                self._time_of(Cutting(members[number], steps, slide))
            before, self._leasts = now, {id(one): least for one, least in zip(members, leasts, strict=True)}
            self._split_below, late = now, self._by(2)
            for number, steps, slide in every.starts(now):
                for one in in_any_order(Cutting(members[number], steps, slide)):
                    self._climb(one, begun, late)

    def _by(self, parts: float) -> Callable[[], bool]:
        """Says when one of so many equal parts of the time that is left is over."""
        mine = Clock(inf if self.deadline is None else self.deadline).share(parts)
        return lambda: mine.over or self._late()

    def _climb(self, start: Cutting, begun: set[tuple[Any, ...]], late: Callable[[], bool]) -> None:
        """Cut the loops of a nest anew, if they may be, that was not begun with before."""
        if may_recut(start.member) and start.key not in begun:
            begun.add(start.key)
            climbed(start, self._time_of, late)

    def _below(self, branch: Branch, measure: str) -> Iterator[Block]:
        """Yield the choices of a branch of bounds of which some may be below the best plan, and their values."""
        self._work += _PRICED * sum(branch.choices.shape)
        for block in blocks(branch, measure, bounding=self.bounding):
            values = self._values(block, measure)
            below = values < (inf if self.best is None else self.best.measures[measure])
            if below.any():
                s, q = np.flatnonzero(below.any(axis=1)), np.flatnonzero(below.any(axis=0))
                yield block.take(s, q), values[np.ix_(s, q)]

    def _each(self, branch: Branch, values: NDArray[np.float64], measure: str) -> Iterator[Branch]:
        """Yield the choices of a branch of bounds one by one, the least first, if they are few; else all at once."""
        s, q = np.nonzero(values < (np.inf if self.best is None else self.best.measures[measure]))
        if len(s) > FEW:
            yield branch
            return
        for i in np.argsort(values[s, q], kind="stable"):
            yield branch.take(s[i : i + 1], q[i : i + 1])

    def _attain(self, member: Member, branch: Branch, values: NDArray[np.float64], measure: str) -> None:
        """Look for nests that attain bounds, the least first; note the least that none attains."""
        most = MADE_TIMELINES if member.timeline else MADE
        s, q = np.nonzero(np.isfinite(values))
        for number, i in enumerate(np.argsort(values[s, q], kind="stable")[: most + 1]):
            value = int(values[s[i], q[i]])
            if self.best is not None and value >= self.best.measures[measure]:
                return
            self.meet(member, (branch, int(s[i]), int(q[i])), value, measure, looking=number < most)

    def meet(self, member: Member, at: Choice, value: int, measure: str, *, looking: bool = True) -> None:
        """Look for a nest that attains the value of a choice of bounds; if none is found, note that it is open."""
        some = member.made(*at) if looking and not self._late() else ()
        picks = [self._pick(one, 0, 0) for one in some]
        for pick in picks:
            self._lay(pick)
        if not any(pick.measures[measure] <= value and self._keeps(pick) for pick in picks):
            self._leave(value, at)

    def _search(self, branch: Branch, measure: str, *, first: bool = False) -> None:
        self._work += _PRICED * sum(branch.choices.shape) * (len(self.kept) + 1)
        for block in blocks(branch, measure, bounding=self.bounding):
            if self._late():
                self._stop(measure, int(lower_bounds(block.tables(measure), "s").min()))
                if self.bounding:  # the blocks behind it have no lower bound
                    return
                continue
            if block is not branch and self.bounding:
                block = within(block, self._limits(measure))
                if block.empty:
                    continue
            self.looked += block.choices.shape[0] * block.choices.shape[1]
            self._work += block.choices.shape[0] * block.choices.shape[1] * (len(self.kept) + 1)
            values = self._values(block, measure)
            if not branch.exact and "time" in (*self.kept, measure):
                most = FIRST_TIMELINES if first else MOST_TIMELINES - self._laid
                self._by_timeline(block, measure, values, max(0, most))
            else:
                self._least(block, measure, values)

    def _values(self, branch: Branch, measure: str) -> NDArray[np.float64]:
        """The measure of every choice (S, Q), infinite where it does not fit or exceeds what is settled."""
        values: NDArray[np.float64] = np.max([t.matrix() for t in branch.tables(measure)], axis=0).astype(np.float64)
        values[~branch.feasible()] = np.inf
        for earlier, value in self.kept.items():
            if earlier == "time" and not branch.exact:
                continue
            for table in branch.tables(earlier):
                values[table.matrix() > value] = np.inf
        if measure == "time" and self.best is not None and branch.pipelines and self._raising:
            self._raise(branch, values, self.best.measures["time"])
        return values

    def _raise(self, branch: Branch, values: NDArray[np.float64], best: int) -> None:
        """Raise bounds on time below the best plan by how tiles follow each other, as far as that raises the bound."""
        ideal = branch.choices.ideal is not None  # candidates keep their order
        below = best if not ideal or self._left is None else min(best, self._left)
        for pipeline in branch.pipelines:
            s, q = np.nonzero(values < below)
            raised = pipeline.raised(s, q, values[s, q].astype(np.int64), below, searching=ideal)
            values[s, q] = np.where(raised < best, raised, np.inf)

    def _least(self, branch: Branch, measure: str, values: NDArray[np.float64]) -> None:
        at = int(values.argmin())
        least = values.flat[at]
        if np.isfinite(least) and (self.best is None or least < self.best.measures[measure]):
            s, q = divmod(at, values.shape[1])
            self._take(self._pick(branch, s, q))

    def _pick(self, branch: Branch, s: int, q: int) -> Pick:
        outcome = branch.outcome(s, q)
        on_chip = {"ocm": max(outcome.occupancy_bytes.values())} if "ocm" in (*self.kept, *self.objectives) else {}
        return Pick(branch, s, q, {**outcome.measures, **on_chip})

    def _by_timeline(self, branch: Branch, measure: str, values: NDArray[np.float64], most: int) -> None:
        """Lay out timelines in the order of the values, which are lower bounds, until none is below the best."""
        tie = measure not in self.aims
        most = min(most, TIMELINES) if tie else most
        s, q = np.nonzero(np.isfinite(values))
        order = np.argsort(values[s, q], kind="stable")
        for number, i in enumerate(order):
            best = self.best.measures[measure] if self.best is not None else np.inf
            if values[s[i], q[i]] >= best or (tie and number >= most):
                return
            if self._late() or (number >= most and self.best is not None):
                self._stop(measure, max(int(values[s[i], q[i]]), self._left or 0), (branch, int(s[i]), int(q[i])))
                return
            self._laid += 1
            self._lay(self._pick(branch, int(s[i]), int(q[i])))

    def _keeps(self, pick: Pick) -> bool:
        """Whether a plan is within what is settled."""
        return all(pick.measures[m] <= v for m, v in self.kept.items())

    def _lay(self, pick: Pick) -> None:
        """Keep a plan in mind, as the best of all and as that of its member."""
        self._take(pick)
        if self._lead is None or pick.measures["time"] < self._lead.measures["time"]:
            self._lead = pick

    def _take(self, pick: Pick) -> None:
        if not self._keeps(pick):
            return
        if self.best is None or vector(pick.measures, self.objectives) < vector(self.best.measures, self.objectives):
            self.best = pick


def best_pick(
    space: Space, objectives: tuple[str, ...], *, bounding: bool = True, deadline: float | None = None
) -> tuple[Pick | None, bool]:
    """Return the lexicographically best plan, and whether the whole space was looked at.

    Ties beyond the full objective vector go to the plan found first, in the fixed order of members and candidates.
    """
    search = Search(space, objectives, bounding, deadline)
    return search.run(), search.whole
