"""F11 fusion as a formulation: a network on a machine with banks, and all cuts with all levels of its maps.

An example: MobileNetV2 on 512 KiB. `Cuts` builds the arcs of all groups, adds arcs of one layer with lower bounds in
place of searches of nests, and finds the least path. Where the path relies on a bound that no known nest reaches, that
layer is searched there, and the path is found again (`formulations.joint.tables` says why this is exact). Where no
nest reaches a bound, a gap is left; then the same is done with what searches have found, which proves nothing.

A schedule is a `FusedRun` for every group of layers, a `LayerRun` for every layer that is a group by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import count
from math import inf
from typing import Any

import numpy as np

from formulations.clock import ENDLESS, Clock
from formulations.fusion.arcs import Groups, singles
from formulations.fusion.groups import Group, Net, compulsory_bytes
from formulations.fusion.linear import Limit
from formulations.fusion.options import NEVER
from formulations.fusion.pins import Demands
from formulations.fusion.problem import Arc, Fusion, Paths, Taken
from formulations.fusion.schedule import Figures, fused, option_of
from formulations.joint.part import JointPart
from formulations.joint.plans import Bound, Plans, SearchNests
from formulations.pins import Pins
from formulations.problem import Goal, Model, Part, Piece, Priced, Replayed, Unable
from formulations.tiling.problem import DECISIONS as NEST_DECISIONS
from hwmodels.fusion.replay import FusedReplay, FusionReplay, replay_fusion
from hwmodels.outcome import OPERANDS
from hwmodels.schedule import FusedRun, LayerRun
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network

Runs = tuple[FusedRun | LayerRun, ...]
#: Cost of a byte and of a MAC.
Factors = tuple[int, int]
#: Where a path relies on a bound: plans, rows of every input on chip, banks for tiles.
_Place = tuple[Plans, tuple[int, ...], int]


class FusionPart(Part[Runs]):
    """A network; raises InputError if it has no layers."""

    def __init__(self, network: Network, machine: Machine, pins: Pins, search_nests: SearchNests) -> None:
        self.name, self.machine, self.pins = network.name, machine, pins
        self.net = Net.read(network, machine.out_bytes)
        of_nests = Pins(tuple(pin for pin in pins.pins if pin.name in NEST_DECISIONS))
        self.joint = JointPart(network, machine, of_nests, search_nests)
        self.tables = self.joint.tables
        self.demands = Demands(pins, self.net)
        self.groups = Groups(self.net, machine, self.tables.residences, self.demands)
        self.figures = Figures(self.groups)
        self._arcs: tuple[Arc, ...] | None = None
        self._walked: tuple[Runs, FusionReplay] | None = None

    @property
    def stats(self) -> Mapping[str, int]:
        """Searches of single layers, and arcs of groups."""
        return {"searches": self.tables.searches, "arcs": len(self._arcs or ())}

    def pieces(self, goal: Goal) -> Iterator[Piece[Runs]]:
        """All cuts."""
        yield Cuts(self)

    def factors(self, measure: str) -> Factors:
        """What a byte and a MAC add to a measure."""
        energy = self.machine.byte_fj_of("IN"), self.machine.mac_fj
        return {"bytes": (1, 0), "macs": (0, 1), "energy": energy}[measure]

    @cached_property
    def macs(self) -> tuple[int, ...]:
        """Of every layer, computed once."""
        return tuple(layer.macs for layer in self.net.layers)

    @cached_property
    def compulsory_bytes(self) -> int:
        """What every schedule moves."""
        return compulsory_bytes(self.net, self.machine)

    # ---- instances ---------------------------------------------------------------------------------------------------

    def arcs(self, clock: Clock) -> tuple[Arc, ...]:
        """The arcs of all groups of several layers; raises TimeUp."""
        if self._arcs is None:
            self._arcs = tuple(self.groups.arcs(clock))
        return self._arcs

    def instance(self, factors: Factors, bound: Bound, groups: Sequence[Arc]) -> Fusion:
        """The problem with these groups, and nests of one layer by their bounds or as they are known."""
        joint = self.tables.joint(bound=bound)
        arcs: dict[int, list[Arc]] = {}
        alone = [arc for arc in singles(joint, self.macs) if self.demands.allows(arc.first, arc.last)]
        for arc in (*groups, *alone):
            arcs.setdefault(arc.last + 1, []).append(arc)
        return Fusion(
            self.machine.ocm_banks, len(self.net.layers), self.tables.residences, joint.constant, arcs, factors
        )

    def relied(self, path: Sequence[Taken]) -> list[_Place]:
        """Where a path relies on bounds that no known nest reaches."""
        places = [(self.tables.plans[s.arc.first], *self.place(s)) for s in path if s.arc.options is None]
        return [place for place in dict.fromkeys(places) if not place[0].known(*place[1:])]

    def knows(self, path: Sequence[Taken]) -> bool:
        """Whether there are nests for all groups of one layer on a path."""
        alone = {arc.first: arc for arc in singles(self.tables.joint(bound="known"), self.macs)}
        return all(alone[s.arc.first].bytes(s.levels, s.free) < NEVER for s in path if s.arc.options is None)

    def place(self, step: Taken) -> tuple[tuple[int, ...], int]:
        """Rows of every input of a single layer on chip, and banks for its tiles."""
        t = step.arc.first
        inputs = self.tables.inputs[t]
        return tuple(self.tables.rows_of(t, k)[step.levels[k]] if k >= 0 else 0 for k in inputs), step.free

    def search(self, places: Sequence[_Place], clock: Clock) -> bool:
        """Search nests there, and with more banks down from where a nest is known; False if the time ran out."""
        for plans, rows, banks in places:
            low, high = banks, plans.banks
            if not self.tables.search([(plans, rows, low)], clock):
                return False
            while high - low > 1 and not plans.known(rows, low + 1):
                middle = (low + high) // 2
                if not self.tables.search([(plans, rows, middle)], clock):
                    return False
                grid = [np.array(k) for k in rows]
                same = plans.e(grid, np.array(middle), "known") <= plans.e(grid, np.array(plans.banks), "proven")
                low, high = (low, middle) if same else (middle, high)
        return True

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def numbered(self, runs: Runs) -> Iterator[tuple[int, int, FusedRun | LayerRun]]:
        """Yield first and last layer of every run with it; raises InputError unless they follow each other."""
        following = 0
        for run in runs:
            first, last = (run.first, run.last) if isinstance(run, FusedRun) else (following, following)
            if first != following or not first <= last < len(self.net.layers):
                raise InputError(f"a group of layers {first} to {last} does not follow layer {following - 1}")
            yield first, last, run
            following = last + 1
        if following != len(self.net.layers):
            raise InputError(f"the plan has {following} layers, the network {len(self.net.layers)}")

    def price(self, runs: Runs) -> Priced:
        """Sums over all groups; counts are all figures of every group."""
        figures = {}
        for first, last, run in self.numbered(runs):
            if isinstance(run, FusedRun):
                price = self.figures.price(run)
                mine = {**price.bytes, "macs": price.macs, "peak": price.peak, "visits": price.visits}
            else:
                outcome = self.joint.outcome(self.joint.layer(first, run), run.nest)
                mine = {operand: count.bytes for operand, count in outcome.by_operand.items()}
                mine |= {"macs": self.macs[first], "peak": outcome.occupancy_bytes["ocm"], "visits": 1}
            figures[self.figures.name(first, last)] = mine
        counts = {f"{name}: {what}": number for name, mine in figures.items() for what, number in mine.items()}
        moved = {op: sum(mine.get(op, 0) for mine in figures.values()) for op in OPERANDS}
        macs = sum(mine["macs"] for mine in figures.values())
        return Priced(self.measures(moved, macs), self._terms(moved, macs), counts)

    def measures(self, moved: Mapping[str, int], macs: int) -> dict[str, int]:
        """All measures."""
        each, per_mac = self.factors("energy")
        total = sum(moved.values())
        return {"bytes": total, "macs": macs, "energy": each * total + per_mac * macs}

    def _terms(self, moved: Mapping[str, int], macs: int) -> dict[str, dict[str, int]]:
        each, per_mac = self.factors("energy")
        energy = {op: each * number for op, number in moved.items()} | {"MAC": per_mac * macs}
        return {"bytes": dict(moved), "macs": {"MAC": macs}, "energy": energy}

    def walked(self, runs: Runs) -> FusionReplay:
        """What the referee sees; raises InputError for runs that are malformed."""
        if self._walked is None or self._walked[0] != runs:
            self._walked = runs, replay_fusion(self.net, self.machine, runs)
        return self._walked[1]

    def replay(self, runs: Runs) -> Replayed:
        """Group by group, strip by strip, bank by bank."""
        walked = self.walked(runs)
        moved, macs, counts = dict.fromkeys(OPERANDS, 0), 0, dict[str, int]()
        for (first, last, _), said in zip(self.numbered(runs), walked.runs, strict=False):  # may be broken off
            if isinstance(said, FusedReplay):
                mine = {**said.operand_bytes, "macs": said.macs, "peak": said.peak_bytes, "visits": said.visits}
            else:
                mine = {operand: count.bytes for operand, count in said.outcome.by_operand.items()}
                mine |= {"macs": self.macs[first], "peak": said.outcome.occupancy_bytes["ocm"], "visits": 1}
            counts |= {f"{self.figures.name(first, last)}: {what}": number for what, number in mine.items()}
            moved = {op: number + mine.get(op, 0) for op, number in moved.items()}
            macs += mine["macs"]
        return Replayed(self.measures(moved, macs), walked.faults, counts)

    def contains(self, runs: Runs) -> tuple[str, ...]:
        """Every group runs in strips, every nest is a plan of problem tiling, with the pins."""
        said: list[str] = []
        for first, last, run in self.numbered(runs):
            name = self.figures.name(first, last)
            option = option_of(run) if isinstance(run, FusedRun) else None
            said += [f"{name}: {fault}" for fault in self.demands.broken(first, last, option)]
            if isinstance(run, FusedRun):
                room, peak = len(run.banks) * self.machine.bank_bytes, self.figures.price(run).peak
                if peak > room:
                    said.append(f"{name}: {peak:,} bytes on chip, the banks hold {room:,}")
            elif not self.joint.holds(first, run):
                said.append(f"{name}: the schedule is no plan of problem tiling with the pins")
        if self.demands.macs is not None and self.price(runs).measures["macs"] > self.demands.macs:
            said.append(f"MACs are above {self.demands.macs:,}")
        return tuple(said)

    def explain(self) -> tuple[str, ...]:
        """The demands that cannot be met together."""
        if said := self.demands.explain():
            return said
        return self.joint.explain()

    # ---- banks -------------------------------------------------------------------------------------------------------

    def runs(self, path: Sequence[Taken]) -> Runs:
        """Return a path as a schedule with the best nests that are known; a map takes the lowest free banks."""
        residences = self.tables.residences
        final = {k: v for s in path for k, v in s.levels.items() if residences[k].uses[-1] <= s.arc.last}
        held: dict[int, tuple[int, ...]] = {}
        made: list[FusedRun | LayerRun] = []
        for step in path:
            sizes = {k: residences[k].banks[level] for k, level in step.levels.items()}
            held = {k: banks[: sizes[k]] for k, banks in held.items() if k in sizes}
            free = self.joint.free(held.values())
            for k in sizes:
                if k not in held:
                    held[k], free = free[: sizes[k]], free[sizes[k] :]
            residents = {
                residences[k].store: (residences[k].rows[level], held[k]) for k, level in step.levels.items() if level
            }
            layers = range(step.arc.first, step.arc.last + 1)
            unwritten = tuple(self._unwritten(t, step, final) for t in layers)
            if step.arc.options is None:
                nest = self.tables.plans[layers[0]].nest(*self.place(step))
                made.append(self.joint.trimmed(layers[0], LayerRun(nest, residents, unwritten[0], free)))
            else:
                made.append(fused(self.groups, self.figures, step, free, unwritten, residents))
        return tuple(made)

    def _unwritten(self, t: int, step: Taken, final: Mapping[int, int]) -> int:
        """Rows of a result that never go to DRAM: those on chip until the last use, all of a map inside a group."""
        store = self.net.stores[self.net.writes[t]]
        k = self.tables.number.get(self.net.writes[t])
        group = Group(self.net, step.arc.first, step.arc.last)
        if store.results or store.dram:
            return 0
        if k is not None and k in step.levels:
            return self.tables.residences[k].rows[final[k]]
        return 0 if group.used_after(self.net.writes[t]) else store.rows


class Cuts(Piece[Runs]):
    """All cuts, options and levels, with tables of one kind: "proven" bounds, or what searches have "found"."""

    def __init__(self, part: FusionPart, bound: Bound = "proven", best: Runs | None = None) -> None:
        self.part, self.bound, self.best = part, bound, best
        self.least: dict[str, int] = {}
        self._begun, self._cost = False, 0

    def floor(self, goal: Goal) -> int:
        """What is compulsory for every schedule, or what was proven before."""
        each, _ = self.part.factors(goal.measure)
        return max(self.least.get(goal.measure, 0), each * self.part.compulsory_bytes)

    def so_far(self) -> Runs | None:
        """The best schedule that searches have come by."""
        return self.best

    def split(self, goal: Goal) -> Sequence[Piece[Runs]]:
        """The same with what searches have found: the best there is where no nest reaches a bound."""
        return [Cuts(self.part, "found", self.best)] if self.bound == "proven" else ()

    def exact(self, goal: Goal, engine: str) -> tuple[Runs | None, int | None]:
        """Dynamic programming over the cuts, again and again with tables that become exact where it matters."""
        part, clock = self.part, goal.clock
        if clock.until < inf:
            part.tables.hurry(clock.half())
        factors, base, open_limits = self._factors(goal)
        arcs: Sequence[Arc] = part.arcs(clock)
        for number in count():
            paths = Paths(part.instance(factors, self.bound, arcs))
            if paths.least >= NEVER:
                return None, None
            if self.bound == "proven":
                self.least[goal.measure] = max(self.least.get(goal.measure, 0), paths.least - base)
            path = paths.path()
            places = part.relied(path)
            if not places or not part.search(places, clock):
                break
            if number % 8 == 1:  # what a better path cannot have is dropped: bounds only rise
                known = Paths(part.instance(factors, "known", arcs))
                if known.least < NEVER:
                    arcs = [arc for some in paths.kept(known.least).values() for arc in some if arc.options]
        if places:  # out of time: the best with the nests that are known
            known = Paths(part.instance(factors, "known", arcs))
            path = known.path() if known.least < NEVER else ()
        if any(replace(paths.fusion, factors=each).cost(path) > most for _, (each, most) in open_limits if path):
            self._lean(factors)
            names = " and ".join(name for name, _ in open_limits)
            raise Unable(f"dynamic programming does not cap {names}; engines milp and cp-sat do")
        self.best = part.runs(path) if path else self.best
        return self.best, self.floor(goal)

    def _factors(self, goal: Goal) -> tuple[Factors, int, list[tuple[str, Limit]]]:
        """Costs of bytes and MACs for a goal, what caps that are optima add to it, and the other limits by name."""
        each, per_mac = self.part.factors(goal.measure)
        base, others = 0, []
        for measure, (more, cap) in self._limits(goal):
            if goal.least.get(measure) != cap:
                others.append((measure, (more, cap)))
                continue
            scale = 1 + each * 2**32 + per_mac * 2 * sum(self.part.macs)
            each, per_mac, base = each + scale * more[0], per_mac + scale * more[1], base + scale * cap
        return (each, per_mac), base, others

    def _limits(self, goal: Goal) -> list[tuple[str, Limit]]:
        """The caps of a goal, and of the pin on MACs."""
        caps = list(goal.caps.items())
        if self.part.demands.macs is not None:
            caps.append(("macs", self.part.demands.macs))
        return [(measure, (self.part.factors(measure), most)) for measure, most in caps]

    # ---- models ------------------------------------------------------------------------------------------------------

    def cp_sat(self, goal: Goal) -> Model[Runs] | None:
        """The tables as they are, on Booleans; raises TimeUp."""
        from formulations.fusion.cp_sat import cp_sat  # late: solvers are slow to import

        return self._model(goal, cp_sat)

    def milp(self, goal: Goal) -> Model[Runs] | None:
        """The same, linear; raises TimeUp."""
        from formulations.fusion.milp import milp

        return self._model(goal, milp)

    def _model(
        self, goal: Goal, build: Callable[[Fusion, Sequence[Limit]], Model[tuple[Taken, ...]]]
    ) -> Model[Runs] | None:
        """The model of what is left of an instance; None if no path keeps the limits."""
        part = self.part
        if not self._begun:
            self._begun = True
            with suppress(Unable):  # the quickest way to the searches that matter
                self.exact(replace(goal, clock=goal.clock.half()), "dynamic")
        goal.clock.tick()
        limits = [limit for _, limit in self._limits(goal)]
        fusion = part.instance(part.factors(goal.measure), self.bound, part.arcs(goal.clock))
        fusion = self._narrowed(fusion, goal, limits)
        if fusion.cuts not in fusion.arcs:
            return None
        made = build(fusion, limits)

        def decode(solution: Any) -> Runs | None:
            path = made.decode(solution)
            assert path is not None
            self._cost = fusion.cost(path)
            places = part.relied(path)
            clock = Clock(0.0) if goal.stats.get("interrupted") else goal.clock
            if places and part.search(places, clock):
                return None
            return part.runs(path) if part.knows(path) else self.best

        return Model(
            made.model, decode, made.base, made.unit, made.parameters, made.turns, priced=made.priced,
            cost=lambda: self._cost, proves=self.bound == "proven",
        )  # fmt: skip

    def _narrowed(self, fusion: Fusion, goal: Goal, limits: Sequence[Limit]) -> Fusion:
        """The instance without arcs that no path within a limit has, or none that is as good as the best known one."""
        worth = [] if goal.below is None else [goal.below]
        if self.best is not None:
            measures = self.part.price(self.best).measures
            if all(measures[name] <= most for name, (_, most) in self._limits(goal)):
                worth.append(measures[goal.measure])
        with suppress(Unable):
            for factors, most in (*limits, *((fusion.factors, value) for value in worth)):
                kept = Paths(replace(fusion, factors=factors)).kept(most)
                fusion = replace(fusion, arcs=kept)
        return fusion

    def _lean(self, factors: Factors) -> None:
        """Keep the best path that computes nothing again, with the nests that are known."""
        lean = [arc for arc in self.part.arcs(ENDLESS) if not arc.options.recomputes]
        paths = Paths(self.part.instance(factors, "known", lean))
        if paths.least < NEVER:
            self.best = self.part.runs(paths.path())
