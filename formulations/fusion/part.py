"""Fusion as a formulation: a network on a machine with a shared memory, and all cuts with all levels of its maps.

An example: MobileNetV2 on 512 KiB. `Cuts` builds the arcs of all groups, adds arcs of one layer with lower bounds in
place of searches of nests, and finds the least path. Where the path relies on a bound that no known nest reaches, that
layer is searched there, and the path is found again (`formulations.fusion.nests` says why this is exact). Where no
nest reaches a bound, a gap is left; then the same is done with what searches have found, which proves nothing.

A schedule is a `FusedRun` for every group of layers, a `LayerRun` for every layer that is a group by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np

from formulations.clock import Clock, TimeUp
from formulations.compulsory import compulsory_bytes, input_bytes, needed_pixels, result_bytes, weight_bytes
from formulations.fusion.arcs import Groups
from formulations.fusion.group_time import cycles_of
from formulations.fusion.groups import NEVER, Net
from formulations.fusion.latency.anneal import Annealer
from formulations.fusion.latency.options import HALF
from formulations.fusion.latency.rules import Rules
from formulations.fusion.latency.search import Fastest
from formulations.fusion.latency.timelines import Carried, Laid, Measures, Timelines
from formulations.fusion.linear import Limit, Linear
from formulations.fusion.near import MOST, Near
from formulations.fusion.nests import Bound, Nests
from formulations.fusion.paths import Paths
from formulations.fusion.pins import APART, Demands, without_turns
from formulations.fusion.refuted import Seen, near_faults, too_many, too_short
from formulations.fusion.schedule import FastestNests, GroupPrices, Layers, Runs, left_of, on_chip, option_of, runs_of
from formulations.fusion.space import Arc, Fusion, Taken, by_cut
from formulations.fusion.steps import Part as StepsOf
from formulations.fusion.tables import Factors, Tables, heavier, in_order
from formulations.pins import Pins
from formulations.problem import Goal, Model, Part, Piece, Priced, Replayed, Unable
from formulations.rows import Build
from formulations.tiling.tiling import DECISIONS as NEST_DECISIONS
from hwmodels.fusion.replay.referee import FusedReplay, FusionReplay, replay_fusion
from hwmodels.joint.price import RunFigures, layer_figures
from hwmodels.nest.homes import operand_of
from hwmodels.outcome import OPERANDS, Outcome
from hwmodels.schedule import FusedRun, LayerRun, Nest, NetworkRun
from hwmodels.timeline.replay import replay
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.measured import Profile, measured
from instances.network.network import Network

#: Faults of runs that are said before those of a queue.
_SAID = 3
#: Of networks of so few layers plans by rules and by annealing are tried, too.
FEW_LAYERS = 8
#: Figures of a group beside its bytes, in its price and in its replay.
_GROUP = ("macs", "peak_bytes", "visits", "ticks")


class FusionPart(Part[Runs]):
    """A network, with the times of its layers where they were measured.

    Raises InputError if it has no layers, or the times do not fit.
    """

    def __init__(self, network: Network, machine: Machine, pins: Pins, profile: Profile | None = None) -> None:
        self._apart = partial(FusionPart, network, machine, Pins((*pins.pins, APART)), profile)
        """The same with every layer by itself."""
        self.net = Net.read(network, machine, profile)
        machine = machine if profile is None else measured(machine)
        if machine.near is not None:
            pins = without_turns(pins)
        self.name, self.machine, self.pins = network.name, machine, pins
        of_nests = Pins(tuple(pin for pin in pins.pins if pin.name in NEST_DECISIONS))
        self.layers, nests = Layers(self.net, machine, of_nests), Nests(self.net, machine, of_nests)
        self.demands = Demands(pins, self.net)
        copied = {layer.name for layer in network.layers if any(layer.copies)}
        near = None if machine.near is None else Near(self.net.layers, machine, copied=copied)
        self.groups = Groups(self.net, machine, nests.residences, self.demands, near)
        self.tables = Tables(self.groups, nests)
        self.prices = GroupPrices(self.groups)
        self.timelines = Timelines(self.prices, self.layers, self.demands.order)
        self._walked: tuple[Runs, FusionReplay] | None = None

    @property
    def stats(self) -> Mapping[str, int | float]:
        """Searches of single layers with their seconds, and groups that were priced."""
        nests = self.tables.nests
        return {"searches": nests.searches, "nest_s": round(nests.seconds, 3), "groups": self.tables.priced}

    def pieces(self, goal: Goal) -> Iterator[Piece[Runs]]:
        """All cuts, unless layers run by themselves and one is known to fit nowhere."""
        if "time" in (goal.measure, *goal.caps):
            yield self._fastest
        elif self.groups.pairs or self.tables.nests.possible:
            yield Cuts(self)

    @cached_property
    def _fastest(self) -> Fastest:
        """Plans by their time."""
        nests = self.tables.nests.arcs("proven")
        return Fastest(
            self.groups, self._nest_in, nests, self.laid, self._about, self.compulsory_ticks, self._others,
            Cuts(self).floor, self._measures, self.timelines.part, self._resized,
        )  # fmt: skip

    @cached_property
    def rules(self) -> Rules:
        """Plans of the least time by rules."""
        return Rules(self.groups, self._nest_in, self.timelines)

    def front(self, clock: Clock) -> list[Runs]:
        """Plans of the least time, of the fewest bytes, and between; those that were found when time was up."""
        ends = list[Runs]()
        for measure in ("time", "bytes"):
            piece = self._fastest if measure == "time" else Cuts(self)
            with suppress(TimeUp, Unable):
                piece.exact(Goal(measure, clock=clock.half()), "dynamic")
            if (runs := piece.so_far()) is not None:
                ends.append(self._faster(runs, clock) if measure == "bytes" else runs)
        found = ends.copy()
        with suppress(TimeUp):
            found += self._fastest.between(clock, ends) if len(ends) > 1 else ()
        return [self._through(replace(runs, queue=self.laid(runs).queue)) for runs in found]

    @property
    def least_ticks(self) -> int:
        """What no plan is below of those that objective time looks at, as far as it is known."""
        return self._fastest.least

    def _measures(self, runs: Runs) -> Mapping[str, int]:
        return self.price(runs).measures

    def _others(self, clock: Clock) -> list[Runs] | None:
        """Plans that are found otherwise: of the fewest bytes, with columns and turns; layer by layer; by rules.

        None if it is proven that there is no plan.
        """
        cuts, alone = Cuts(self), Cuts(self._apart())
        with suppress(TimeUp, Unable):
            if cuts.exact(Goal("bytes", clock=clock.half()), "dynamic") == (None, None):
                return None
            alone.exact(Goal("bytes", clock=clock.half()), "dynamic")
        found = cuts.so_far(), alone.so_far(), self.greedy(clock)
        others = [self._faster(runs, clock) for runs in found if runs is not None]
        if len(self.net.layers) <= FEW_LAYERS:
            annealed = Annealer(self.rules, clock=clock.half()).best
            for rule in (self.rules.double_buffered, self.rules.greedy_prefetch, annealed):
                with suppress(TimeUp, Unable):
                    others.append(rule())
        return others

    def _nest_in(self, step: int, run: LayerRun, room: int, most: int | None) -> tuple[Nest, StepsOf] | None:
        """A nest of a layer with these maps on chip in so many bytes, and its steps.

        The fastest one, of all of them or of half of them (`HALF`), or one with blocks of `most` bytes of weights.
        """
        layers, some = self.layers, room // 2 if most == HALF else room
        nest = layers.in_blocks(step, run, room, most) if most else layers.fastest(step, run, some)
        beside = self.timelines.room - room
        return None if nest is None else (nest, self.timelines.alone(step, replace(run, nest=nest), beside))

    def factors(self, measure: str) -> Factors:
        """What a byte and a MAC add to a measure; heuristics take bytes for time."""
        energy = self.machine.byte_fj_of("IN"), self.machine.mac_fj
        return {"bytes": (1, 0), "macs": (0, 1), "energy": energy, "time": (1, 0)}[measure]

    @cached_property
    def compulsory_bytes(self) -> int:
        """What every schedule moves."""
        return compulsory_bytes(self.net, self.machine)

    @cached_property
    def compulsory_ticks(self) -> int:
        """What every schedule takes: it moves these bytes, and computes what is read."""
        net, unit, near, ticks = self.net, self.machine.compute, self.groups.near, 0
        for t, (layer, pixels) in enumerate(zip(net.layers, needed_pixels(net), strict=True)):
            computed = int(cycles_of(layer, self.machine, np.array(pixels))) * unit.cycle_ticks
            ticks += near.least(t, computed) if near and pixels == layer.r * layer.c else computed
        return max(self._compulsory_moving, ticks)

    @property
    def _compulsory_moving(self) -> int:
        """Ticks of a queue for the bytes that every schedule moves, the most of all queues."""
        net, machine, moving = self.net, self.machine, defaultdict[int, int](int)
        each = {"W": weight_bytes(net, machine), "IN": input_bytes(net, machine), "OUT": result_bytes(net, machine)}
        for operand, size in each.items():
            moving[machine.channel_of(operand)] += size * machine.transfer_of(operand).byte_ticks
        return max(moving.values())

    @property
    def must(self) -> Mapping[str, int]:
        """Every weight, and every input and result of the network once; ticks of these, or of computing."""
        return {"bytes": self.compulsory_bytes, "time": self.compulsory_ticks}

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
        figures, before = {}, None
        for first, last, run in self.numbered(runs):
            if isinstance(run, FusedRun):
                price = self.prices.price(run)
                mine = {**price.bytes, **{name: getattr(price, name) for name in _GROUP}}
            else:
                mine = self._alone(first, self.layers.ran(first, run, before))
            figures[self.prices.name(first, last)], before = mine, run
        through = self.groups.near.bytes(runs.near) if self.groups.near else 0
        measures, terms, counts = self._summed(figures, through)
        return Priced(Measures(measures, lambda: self.laid(runs).ticks), terms, counts)

    def _alone(self, step: int, outcome: Outcome) -> dict[str, int]:
        """The figures of a layer that is a group by itself, all of them."""
        moved = {operand: count.bytes for operand, count in outcome.by_operand.items()}
        macs, ticks = self.net.layers[step].macs, outcome.time_ticks
        return {**moved, "macs": macs, "ticks": ticks, **dict(_flat(asdict(outcome)))}

    def _summed(
        self, figures: Mapping[str, Mapping[str, int]], through: int
    ) -> tuple[dict[str, int], dict[str, dict[str, int]], dict[str, int]]:
        """All measures with their terms, every figure by group; `through`: bytes behind the shared memory."""
        terms = self._terms({op: sum(mine.get(op, 0) for mine in figures.values()) for op in OPERANDS},
                            sum(mine["macs"] for mine in figures.values()))  # fmt: skip
        if (near := self.groups.near) is not None:
            terms["energy"][near.price.name] = through * near.price.byte_fj
        measures = {name: sum(each.values()) for name, each in terms.items()}
        counts = {f"{name}: {what}": number for name, mine in figures.items() for what, number in mine.items()}
        return measures, terms, counts

    def _terms(self, moved: Mapping[str, int], macs: int) -> dict[str, dict[str, int]]:
        energy = {op: self.machine.byte_fj_of(operand_of(op)) * number for op, number in moved.items()}
        energy["MAC"] = self.machine.mac_fj * macs
        return {"bytes": dict(moved), "macs": {"MAC": macs}, "energy": energy}

    def laid(self, runs: Runs) -> Laid:
        """The timeline of the runs with its times."""
        return self.timelines.laid(runs, self.numbered(runs))

    def _about(self, runs: Runs) -> Laid:
        """A timeline of the runs that takes little time to find."""
        return self.timelines.about(runs, self.numbered(runs))

    def carried(self, runs: Runs) -> Carried | None:
        """The timeline with what makes its steps; None where nothing is prefetched."""
        return self.timelines.carried(runs, self.numbered(runs))

    def spared(self, runs: Runs, spares: Mapping[int, int]) -> Runs:
        """The same with its transfers in another order, which leaves bytes free beside what steps of some runs have."""
        return replace(runs, queue=self.timelines.spared(runs, self.numbered(runs), spares))

    def run_of(self, runs: Runs, step: int) -> int:
        """The number of the run that a step, from 1, is part of."""
        return self.laid(runs).run_of(step)

    def least_time(self, runs: Runs) -> int:
        """What no order of the transfers of that timeline is below, in ticks."""
        return self.timelines.bound(runs, self.numbered(runs))

    def walked(self, runs: Runs) -> FusionReplay:
        """What the referee sees; raises InputError for runs that are malformed."""
        if self._walked is None or self._walked[0] != runs:
            self._walked = runs, replay_fusion(self.net, self.machine, runs.runs)
        return self._walked[1]

    def replay(self, runs: Runs) -> Replayed:
        """Group by group, strip by strip, bank by bank."""
        walked = self.walked(runs)
        figures, said_of = {}, list[RunFigures]()
        for (first, last, _), said in zip(self.numbered(runs), walked.runs, strict=False):  # may be broken off
            if isinstance(said, FusedReplay):
                mine = {**said.operand_bytes, **{name: getattr(said, name) for name in _GROUP}}
                said_of.append(self._group_figures(first, last, said))
            else:
                mine = self._alone(first, said.outcome)
                said_of.append(layer_figures(self.net.layers[first], said.outcome))
            figures[self.prices.name(first, last)] = mine
        through = self.groups.near.referee.bytes(runs.near) if self.groups.near else 0
        measures, _, counts = self._summed(figures, through)
        executed = sum(said.executed for said in walked.runs)
        try:
            seen = replay(self.laid(runs).timeline)
        except InputError as error:  # the queue is of other transfers: what is wrong with the runs says more
            raise InputError("; ".join([*walked.faults[:_SAID], str(error)])) from None
        short = self._refuted(runs, walked)
        faults = (*walked.faults, *seen.faults, *too_many(seen.peak_bytes, self.timelines.room), *short)
        return Replayed({**measures, "time": seen.latency}, faults, counts, figures=tuple(said_of), executed=executed)

    def _refuted(self, runs: Runs, walked: FusionReplay) -> Iterator[str]:
        """Yield what the referees say against the steps of the timeline."""
        each = zip(self.numbered(runs), walked.runs, self.laid(runs).parts, strict=False)
        seen = [
            Seen(
                self.prices.name(first, last), said,
                said.macs if isinstance(said, FusedReplay) else self.net.layers[first].macs,
                [step.ticks for step in part.steps],
            )
            for (first, last, _), said, part in each
        ]  # fmt: skip
        yield from too_short(seen)
        if (near := self.groups.near) is not None:
            boxes = self.timelines.near_steps(runs, self.numbered(runs))
            yield from near_faults(seen, near.referee, near.said(runs.near, boxes), boxes)

    def figures_of(self, runs: Runs, walked: Replayed) -> tuple[RunFigures, ...]:
        """What the referee saw, and where the tiles of layers by themselves lie."""
        made = []
        for (first, _, run), seen in zip(self.numbered(runs), walked.figures, strict=False):
            if isinstance(run, LayerRun):
                made.append(self.layers.figured(first, run, seen))
            else:
                made.append(replace(seen, on_chip=on_chip(self.net, self.machine, run)))
        return tuple(made)

    def _group_figures(self, first: int, last: int, said: FusedReplay) -> RunFigures:
        energy = sum(self._terms(said.operand_bytes, said.macs)["energy"].values())
        return RunFigures(
            tuple(layer.name for layer in self.net.layers[first : last + 1]), dict(said.operand_bytes), said.macs,
            energy, said.peak_bytes, said.ticks, said.visits,
        )  # fmt: skip

    def contains(self, runs: Runs) -> tuple[str, ...]:
        """Every group runs in strips, every nest is a plan of problem tiling, with the pins."""
        said: list[str] = []
        for first, last, run in self.numbered(runs):
            name = self.prices.name(first, last)
            option = option_of(run) if isinstance(run, FusedRun) else None
            said += [f"{name}: {fault}" for fault in self.demands.broken(first, last, option)]
            if run.in_place and not self.pins.allows("in_place", "any"):
                said.append(f"{name}: a result takes the place of a map, which pin in_place=no forbids")
            if isinstance(run, FusedRun):
                _, left = left_of(self.net, self.machine, run)
                room = len(run.banks) * self.machine.bank_bytes if self.machine.ocm_banks else left
                peak = self.prices.price(run).peak_bytes
                if run.blocks and not self.pins.allows("turns", "any"):
                    said.append(f"{name}: layers take turns, which pin turns=no forbids")
                if peak > room:
                    said.append(f"{name}: {peak:,} bytes on chip, there is room for {room:,}")
            elif not self.layers.holds(first, run):
                demands = f" with {', '.join(self.layers.pins.to_json())}" if self.layers.pins.pins else ""
                said.append(f"{name}: the schedule is no plan of problem tiling{demands}")
        if runs.queue is not None:
            said += self.timelines.faults(runs.queue, self.laid(runs).timeline)
        if self.demands.macs is not None and self.price(runs).measures["macs"] > self.demands.macs:
            said.append(f"MACs are above {self.demands.macs:,}")
        return tuple(said)

    def explain(self) -> tuple[str, ...]:
        """The demands that cannot be met together."""
        if said := self.demands.explain():
            return said
        return self.layers.explain()

    def polished(self, runs: Runs, clock: Clock) -> Runs:
        """Layers by themselves with the fastest of equal nests, and the order of all transfers.

        A plan of the least time keeps its nests, one that says its order that, too.
        """
        if runs.queue is None:
            if runs is not self._fastest.best:
                runs = self._faster(runs, clock)
            runs = replace(runs, queue=self.laid(runs).queue)
        return self._through(runs)

    def completed(self, runs: Runs) -> Runs:
        """With the nests of nearer memories by which steps were priced, and their order of transfers."""
        return self._through(runs, most=0)

    def _through(self, runs: Runs, most: int = MOST) -> Runs:
        """With the nests that bring tiles through nearer memories, where there are any."""
        if (near := self.groups.near) is None or runs.near:
            return runs
        runs = replace(runs, queue=self.laid(runs).queue)
        return replace(runs, near=near.said((), self.timelines.near_steps(runs, self.numbered(runs)), most))

    def _resized(self, runs: Runs, clock: Clock) -> Runs:
        """With the order of its transfers, and their sizes run by run."""
        return replace(runs, queue=self.timelines.resized(runs, self.numbered(runs), clock).queue)

    def _faster(self, runs: Runs, clock: Clock) -> Runs:
        """Layers by themselves with the fastest of equal nests."""
        known: FastestNests = {}
        return NetworkRun(
            tuple(
                self.layers.faster(first, run, known, clock) if isinstance(run, LayerRun) else run
                for first, _, run in self.numbered(runs)
            )
        )

    def greedy(self, clock: Clock) -> Runs | None:
        """Every layer by itself; map after map stays as far as it fits. None if there is no such plan."""
        path = in_order(self.tables, clock)
        runs = self.runs(path) if self.tables.knows(path) else None
        return None if runs is None or self.contains(runs) else runs

    def runs(self, path: Sequence[Taken]) -> Runs:
        """Return a path as a schedule with the best nests that are known."""
        return runs_of(path, self.tables, self.layers, self.prices)


def _flat(value: Any, where: str = "") -> Iterator[tuple[str, int]]:
    """All numbers in a tree, by the way to each."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _flat(one, f"{where} {name}".strip())
    else:
        yield where, value


class Cuts(Piece[Runs]):
    """All cuts, options and levels, with tables of one kind: "proven" bounds, or what searches have "found"."""

    def __init__(self, part: FusionPart, bound: Bound = "proven", best: Runs | None = None) -> None:
        self.part, self.bound, self.best = part, bound, best
        self.least: dict[str, int] = {}
        self._begun, self._cost = False, 0
        self._open: Factors | None = None

    def floor(self, goal: Goal) -> int:
        """What is compulsory for every schedule, or what was proven before."""
        (each, per_mac), tables, moved, macs = self.part.factors(goal.measure), self.part.tables, 0, 0
        if not tables.groups.pairs:  # strips may leave out what nobody reads, layers by themselves compute all
            moved, macs = tables.nests.floor(), sum(tables.macs)
        return max(self.least.get(goal.measure, 0), each * max(self.part.compulsory_bytes, moved) + per_mac * macs)

    def so_far(self) -> Runs | None:
        """The best schedule that searches have come by; of one that was cut short, with what is known by now."""
        if self._open is None:
            return self.best
        tables = self.part.tables
        with suppress(Unable):
            known = Paths(tables.known(self._open, tables.some(Clock(0.0))))
            return self.part.runs(known.path()) if known.least < NEVER else self.best
        return self.best

    def split(self, goal: Goal) -> Sequence[Piece[Runs]]:
        """The same with what searches have found: the best there is where no nest reaches a bound."""
        return [Cuts(self.part, "found", self.best)] if self.bound == "proven" else ()

    def exact(self, goal: Goal, engine: str) -> tuple[Runs | None, int | None]:
        """Dynamic programming over the cuts, again and again with tables that become exact where it matters."""
        part, tables, clock = self.part, self.part.tables, goal.clock
        factors, base, open_limits = self._factors(goal)
        self._open = factors
        tables.nests.hurry(clock.half())
        while True:  # with a time limit, from short groups to long ones
            clock.tick()
            arcs = tables.some(clock.share(3))
            try:
                paths, path = self._least(arcs, factors, base, goal)
            except Unable:  # too many maps at a time
                self._open, self.best = None, part.greedy(clock)
                raise
            if tables.complete:
                break
        if paths.least >= NEVER:
            self._open = None
            return None, None
        if any(replace(paths.fusion, factors=each).cost(path) > most for _, (each, most) in open_limits if path):
            self._lean(factors, clock)
            self._open = None
            names = " and ".join(name for name, _ in open_limits)
            raise Unable(f"dynamic programming does not cap {names}; engines milp and cp-sat do")
        self._open = None
        self.best = part.runs(path) if path else self.best
        return self.best, self.floor(goal)

    def _least(
        self, arcs: Sequence[Arc], factors: Factors, base: int, goal: Goal
    ) -> tuple[Paths, tuple[Taken, ...]]:  # fmt: skip
        """The least paths over some groups, and one with nests that are known; raises TimeUp."""
        tables, clock = self.part.tables, goal.clock
        ask = partial(tables.instance, factors, self.bound)
        for number in count():
            paths, arcs = tables.least_paths(arcs, ask, partial(tables.instance, factors, "known"), clock)
            if paths.least >= NEVER:
                return paths, ()
            if self.bound == "proven" and tables.complete:
                self.least[goal.measure] = max(self.least.get(goal.measure, 0), paths.least - base)
            path = paths.path()
            places = tables.relied(path)
            if not places:
                break
            if not tables.search_down(places, clock):
                raise TimeUp
            if number % 8 == 0:  # what a better path cannot have is dropped: bounds only rise
                known = Paths(tables.known(factors, arcs))
                if known.least < NEVER:
                    arcs = [arc for arc in paths.through(known.least) if arc.options]
        if not tables.knows(path):  # a bound that no nest reaches: the best known path
            known = Paths(tables.known(factors, arcs))
            path = known.path() if known.least < NEVER else ()
        return paths, path

    def _factors(self, goal: Goal) -> tuple[Factors, int, list[tuple[str, Limit]]]:
        """Costs of bytes and MACs for a goal, what caps that are optima add to it, and the other limits by name."""
        factors, base, others = self.part.factors(goal.measure), 0, []
        for measure, (more, cap) in self._limits(goal):
            made = heavier(factors, more, cap, self.part.tables.macs) if goal.least.get(measure) == cap else None
            if made is None:
                others.append((measure, (more, cap)))
            else:
                factors, base = made[0], base + made[1]
        return factors, base, others

    def _limits(self, goal: Goal) -> list[tuple[str, Limit]]:
        """The caps of a goal, and of the pin on MACs."""
        caps = list(goal.caps.items())
        if self.part.demands.macs is not None:
            caps.append(("macs", self.part.demands.macs))
        return [(measure, (self.part.factors(measure), most)) for measure, most in caps]

    # ---- models ------------------------------------------------------------------------------------------------------

    def cp_sat(self, goal: Goal) -> Model[Runs] | None:
        """The tables as they are, on Booleans; raises TimeUp."""
        from formulations.rows_cp_sat import cp_sat  # late: solvers are slow to import

        return self._model(goal, partial(cp_sat, relaxed=True))

    def milp(self, goal: Goal) -> Model[Runs] | None:
        """The same, linear; raises TimeUp."""
        from formulations.rows_milp import milp

        return self._model(goal, milp)

    def _model(self, goal: Goal, build: Build[tuple[Taken, ...]]) -> Model[Runs] | None:
        """The model of what is left of an instance; None if no path keeps the limits."""
        part = self.part
        if not self._begun:
            self._begun = True
            with suppress(Unable, TimeUp):  # the quickest way to the searches that matter
                self.exact(replace(goal, clock=goal.clock.half()), "dynamic")
            self.best, self._open = self.so_far(), None
        goal.clock.tick()
        limits = [limit for _, limit in self._limits(goal)]
        fusion = self._narrowed(goal, limits)
        if fusion.cuts not in fusion.arcs:
            return None
        linear = Linear(fusion, limits)
        made = build(linear, linear.path)

        def decode(solution: Any) -> Runs | None:
            path = made.decode(solution)
            assert path is not None
            self._cost = fusion.cost(path)
            places = part.tables.relied(path)
            clock = Clock(0.0) if goal.stats.get("interrupted") else goal.clock
            if places and part.tables.search_down(places, clock):
                return None
            return part.runs(path) if part.tables.knows(path) else self.best

        return Model(
            made.model, decode, made.base, made.unit, made.parameters, made.turns, priced=made.priced,
            cost=lambda: self._cost, proves=self.bound == "proven",
        )  # fmt: skip

    def _narrowed(self, goal: Goal, limits: Sequence[Limit]) -> Fusion:
        """The instance without arcs that no path within a limit has, or none that is as good as the best known one."""
        tables, factors, most = self.part.tables, self.part.factors(goal.measure), list(limits)
        if goal.below is not None:
            most.append((factors, goal.below))
        if self.best is not None:
            measures = self.part.price(self.best).measures
            if all(measures[name] <= value for name, (_, value) in self._limits(goal)):
                most.append((factors, measures[goal.measure]))
        arcs: Sequence[Arc] = tables.arcs(goal.clock)
        while True:
            fusion = tables.instance(factors, self.bound, arcs)
            with suppress(Unable):
                for each, value in most:
                    fusion = replace(fusion, arcs=by_cut(Paths(replace(fusion, factors=each)).through(value)))
            arcs = [arc for some in fusion.arcs.values() for arc in some if arc.options]
            if not tables.price(arcs, goal.clock):
                return replace(fusion, factors=factors)
            arcs = tables.refined(arcs)

    def _lean(self, factors: Factors, clock: Clock) -> None:
        """Keep the best path that computes nothing again, with the nests that are known."""
        tables = self.part.tables
        paths = tables.lean(tables.arcs(clock), factors, clock)
        if paths.least < NEVER:
            self.best = self.part.runs(paths.path())
