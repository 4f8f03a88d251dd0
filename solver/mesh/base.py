"""What every engine for the problem ``mesh`` takes and returns, and the walk over the ways to keep operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from formulations.clock import Clock, TimeUp
from formulations.mesh.finish import complete, doubled, fits, served
from formulations.mesh.layout import Layout
from formulations.mesh.price import price
from formulations.mesh.problem import Choice
from formulations.mesh.search import Halves, greedy, halves, leading, roof
from formulations.mesh.space import Member, members, ways
from formulations.pins import Pins
from instances.machine import Machine
from instances.ndrange import ndrange
from instances.workload import Layer
from solver.plan import Stat, Status

__all__ = ["Answer", "Asked", "Decided", "doubling", "heuristic", "led", "searched"]


@dataclass(frozen=True)
class Asked:
    """One layer, what is minimised, the most of other measures, and the pins.

    Attributes
    ----------
    limits : dict
        Of dram, glb and time.
    known : tuple of Choice
        Plans that keep everything, for a start.
    clock : Clock
        When to stop; `started` sets it.
    """

    layer: Layer
    machine: Machine
    measure: str
    pins: Pins = field(default_factory=Pins)
    limits: Mapping[str, int] = field(default_factory=dict)
    time_limit_s: float | None = None
    known: tuple[Choice, ...] = ()
    clock: Clock = field(default_factory=Clock)

    def started(self) -> Asked:
        """The same with the time limit running from now; unchanged if it runs already, or if there is none."""
        if self.time_limit_s is None or self.clock.until < inf:
            return self
        return replace(self, clock=replace(self.clock, until=self.clock.now() + self.time_limit_s))

    @property
    def teu(self) -> bool:
        """Whether the machine is a mesh of tile units."""
        return self.machine.mesh is not None and self.machine.mesh.kind == "teu"

    @property
    def needs(self) -> frozenset[str]:
        """What the objective and the limits are made of."""
        asked = {self.measure, *self.limits}
        return frozenset({"dram", "glb", "cycles"} if "time" in asked else asked)

    @property
    def lanes(self) -> bool:
        """Whether the PE vector is part of the search."""
        return self.teu and "cycles" in self.needs

    def value(self, choice: Choice) -> int:
        """The objective of a choice."""
        return price(self.layer, self.machine, choice)[0].of(self.measure)

    def keeps(self, choice: Choice) -> bool:
        """Whether a choice keeps buffers and limits."""
        cost = price(self.layer, self.machine, choice)[0]
        return fits(self.layer, self.machine, choice) and all(cost.of(m) <= most for m, most in self.limits.items())

    def complete(self, choice: Choice) -> tuple[Choice, Layout | None] | None:
        """The choice with PE vector and layout, None if there is none."""
        return complete(self.layer, self.machine, choice, self.pins, chosen=self.lanes)

    def members(self, below: int | None = None, *, thin: bool = False) -> Iterator[Member]:
        """The space of plans better than `below`."""
        return members(
            self.layer, self.machine, self.pins, needs=self.needs, lanes=self.lanes, limits=self.caps(below), thin=thin,
            clock=self.clock,
        )  # fmt: skip

    def caps(self, below: int | None) -> dict[str, int]:
        """The most of dram, glb and cycles by the limits, and to be better than a known plan."""
        found: dict[str, int] = {}
        mesh = self.machine.mesh
        asked = list(self.limits.items()) + ([] if below is None else [(self.measure, below - 1)])
        for measure, most in asked:
            if mesh is None:
                break
            for name, top in roof(mesh, measure, most).items():
                found[name] = min(top, found.get(name, top))
        return found

    @property
    def least(self) -> int:
        """A lower bound for all plans: each PE does one product a cycle; each result is written once."""
        mesh, layer = self.machine.mesh, self.layer
        if mesh is None:
            return 0
        cycles, written = -(-layer.macs // mesh.all_pes), ndrange(layer).results * self.machine.out_bytes
        return max(cycles, -(-written // mesh.dram_bytes_per_cycle)) if self.measure == "time" else written


@dataclass(frozen=True)
class Decided:
    """An engine's answer; `bounds` by objective where there are several (`solver.mesh.solve`), `bound` of the last."""

    choice: Choice | None
    layout: Layout | None
    value: int | None
    bound: int | None
    status: Status
    versions: str = ""
    stats: dict[str, Stat] = field(default_factory=dict)
    bounds: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What an engine says of two halves: a pair, a bound that holds for all pairs, whether there is no pair at all."""

    pair: tuple[int, int] | None
    bound: int | None
    empty: bool = False
    stats: dict[str, Stat] = field(default_factory=dict)


#: Halves and measure -> answer; until the clock of the halves' setup is over, by TimeUp or with what is known then.
Solve = Callable[[Halves, str], Answer]


def led(solve: Solve) -> Solve:
    """The same answers from fewer options (`formulations.mesh.search.leading`), until a pair of theirs is forbidden."""

    def answer(found: Halves, measure: str) -> Answer:
        if found.forbidden:
            return solve(found, measure)
        left, right = leading(found)
        said = solve(replace(found, left=found.left.take(left), right=found.right.take(right)), measure)
        pair = None if said.pair is None else (int(left[said.pair[0]]), int(right[said.pair[1]]))
        return replace(said, pair=pair)

    return answer


Plan = tuple[Choice, Layout | None]


def heuristic(asked: Asked, *, most: int = 40) -> Plan | None:
    """Return the best greedy plan that has a layout, or one made by doubling; None without any.

    When the time is up, the best of those found by then.
    """
    found: list[tuple[int, Choice]] = []
    try:
        for member in asked.members(thin=True):
            for one in greedy(member, asked.measure, asked.caps(None)):
                found.append(one)
    except TimeUp:
        pass
    for _, choice in sorted(found, key=lambda one: one[0])[:most]:
        made = asked.complete(choice)
        if made is not None and asked.keeps(made[0]):
            return made
        if asked.clock.over:
            break
    return doubling(asked)


def doubling(asked: Asked) -> Plan | None:
    """Return a plan made by doubling the smallest tile, in no time."""
    for choice in reversed(doubled(asked.layer, asked.machine, asked.pins)):
        made = complete(asked.layer, asked.machine, choice, asked.pins, chosen=False)
        if made is not None and asked.keeps(made[0]):
            return made
    return None


def searched(asked: Asked, solve: Solve, versions: str = "") -> Decided:
    """Search every member for a plan below the incumbent, which is greedy at first.

    A member is one way to share and to keep operands; `solve` answers it with a pair of options and a bound.

    * No pair is below the incumbent: the member is done.
    * The pair has no layout: it is forbidden, and the member is searched again. Nothing is lost, as a layout of a
      larger tile is one of a smaller tile: an option that was left out as dominated has no layout where its smaller
      rival has none.
    * The pair has a layout: it is the new incumbent, proven for this member if its value is the bound.

    When the time is up, members that are not searched to the end are open. The plan's bound is then the least bound of
    all members; where one has none, `Asked.least`. Ctrl-C in a solver is as if the time were up.
    """
    asked = asked.started()
    if not served(asked.layer, asked.machine, asked.pins):
        return Decided(None, None, None, None, "INFEASIBLE", versions, {"note": "no PE vector keeps the pins"})
    best = _first(asked)
    bounds: list[int | None] = []
    stats: dict[str, Stat] = {"left": 0, "right": 0, "forbidden": 0}
    for share, keep in ways(asked.pins):
        value = None if best is None else asked.value(best[0])
        if value is not None and value <= asked.least:
            break
        one = replace(asked, pins=asked.pins.plus("share", share).plus("keep", keep))
        try:
            for member in one.members(value):  # made with what is known by then
                best, bound = _member(asked, member, solve, best, stats)
                if bound is not None or stats.get("open"):
                    bounds.append(bound)
                if stats.get("interrupted"):
                    raise TimeUp
        except TimeUp:
            stats["open"] = True
            bounds.append(None)
        if stats.get("interrupted"):
            break
    if best is None:
        proven = not stats.pop("open", None)
        return Decided(None, None, None, None, "INFEASIBLE" if proven else "NO_SOLUTION_FOUND", versions, stats)
    value = asked.value(best[0])
    stats.pop("open", None)
    known = [bound for bound in bounds if bound is not None]
    lowest = asked.least if len(known) < len(bounds) else min([value, *known])
    lowest = min(lowest, value)
    status: Status = "OPTIMAL" if lowest == value else "FEASIBLE"
    return Decided(*best, value, lowest, status, versions, stats)


def _first(asked: Asked) -> Plan | None:
    made = [plan for one in asked.known if (plan := asked.complete(one)) is not None and asked.keeps(plan[0])]
    first = heuristic(replace(asked, clock=asked.clock.half()))
    return min([*made, *([first] if first else [])], key=lambda plan: asked.value(plan[0]), default=None)


def _member(
    asked: Asked, member: Member, solve: Solve, best: Plan | None, stats: dict[str, Stat]
) -> tuple[Plan | None, int | None]:  # fmt: skip
    """Search one member; the bound is None if all of it is known not to beat `best`, or if nothing is known."""
    if not all(len(group) for group in member.groups):
        return best, None
    found = halves(member, asked.caps(None if best is None else asked.value(best[0])))
    stats["left"] = max(int(stats["left"] or 0), len(found.left))
    stats["right"] = max(int(stats["right"] or 0), len(found.right))
    while len(found.left) and len(found.right):
        asked.clock.tick()
        said = solve(found, asked.measure)
        stats |= said.stats
        if said.empty:
            return best, None
        if said.pair is None:
            stats["open"] = True
            return best, said.bound
        made = asked.complete(found.choice(said.pair))
        if made is None and stats.get("interrupted"):
            stats["open"] = True
            return best, said.bound
        if made is None:
            found.forbidden.add(said.pair)
            stats["forbidden"] = int(stats["forbidden"] or 0) + 1
            continue
        if asked.value(made[0]) == said.bound:
            return made, said.bound
        stats["open"] = True
        return made, said.bound
    return best, None


def restricted(asked: Asked, pins: Pins, note: str, run: Callable[[Asked], Decided]) -> Decided:
    """Solve with more pins; a proof there is none for the whole problem."""
    said = run(replace(asked, pins=pins))
    stats: dict[str, Stat] = {**said.stats, f"{note}_bound": said.bound, f"{note}_proven": said.status == "OPTIMAL"}
    status: Status = "NO_SOLUTION_FOUND" if said.choice is None else "FEASIBLE"
    return replace(said, bound=None, status=status, stats=stats)
