"""Fusion and joint as certile asks them: engines, heuristics, and which networks and machines they take.

Problem joint is problem fusion with groups of one layer (pin ``length=1``), in bytes or energy. The docstring of the
package is a map of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from formulations.clock import Clock, TimeUp
from formulations.fusion.groups import NEVER
from formulations.fusion.latency.anneal import Annealer
from formulations.fusion.part import FusionPart
from formulations.fusion.paths import Paths
from formulations.fusion.pins import APART, DECISIONS, ORDER, PLACE
from formulations.fusion.schedule import Runs
from formulations.fusion.space import Arc, Fusion
from formulations.fusion.tables import Path, Tables, greedy, in_order, in_sequence, no_reuse
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Unable
from formulations.tiling.tiling import DECISIONS as NEST_DECISIONS
from hwmodels.joint.price import RunFigures
from hwmodels.schedule import LayersSchedule, NetworkSchedule
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.measured import Profile
from instances.network.network import Network
from instances.network.workload import refuse_long

_NO_PLACE = "this heuristic finds no place for some layer"


def _per_layer(part: FusionPart, goal: Goal) -> Runs:
    """Every layer a group by itself, as a heuristic of joint plans it; raises Unable if some layer has no place.

    Where there is no time for the least time: in strips, as far as these suit all layers.
    """
    tables = part.tables
    if goal.measure == "time" and goal.clock.over:
        with suppress(Unable):
            return part.rules.at_once()
    if goal.clock.until < inf:
        tables.nests.hurry(goal.clock.half())
    path = in_order(tables, goal.clock)
    if not tables.knows(path):
        raise Unable(_NO_PLACE)
    return part.runs(path)


def _cascade(part: FusionPart, goal: Goal) -> Runs:
    """Group after group as long as it fits, nothing stays between them: what vendors' compilers do."""
    tables, chosen, cut = part.tables, list[Arc](), 0
    while cut < len(part.net.layers):
        longest = None
        while (open_ := [arc for arc in tables.arcs(goal.clock) if arc.first == cut]) and longest is None:
            last = max(arc.last for arc in open_)
            some = [arc for arc in open_ if arc.last == last]
            longest = None if tables.price(some, goal.clock) else some[0]
        chosen += [longest] if longest is not None else []
        cut = cut + 1 if longest is None else longest.last + 1
    return _through_dram(part, goal, chosen)


def _strips(part: FusionPart, goal: Goal) -> Runs:
    """The best cuts for strips without recomputation, when nothing stays between groups."""
    return _through_dram(part, goal, part.tables.arcs(goal.clock))


def _through_dram(part: FusionPart, goal: Goal, arcs: Sequence[Arc]) -> Runs:
    """The best path with these groups, when maps go through DRAM between groups, and nothing is computed again."""
    tables = part.tables
    alone = dict.fromkeys(tables.nests.plans)
    tables.search_down([(plans, (0,) * plans.layer.inputs, plans.banks) for plans in alone], goal.clock)
    paths = tables.lean(arcs, part.factors(goal.measure), goal.clock, stays=False)
    if paths.least >= NEVER:
        raise Unable(_NO_PLACE)
    return part.runs(paths.path())


def _heuristic(run: Callable[[FusionPart, Goal], Runs]) -> Callable[[FusionPart, Goal], Runs]:
    def asked(part: FusionPart, goal: Goal) -> Runs:
        try:
            return run(part, goal)
        except TimeUp:
            return _per_layer(part, goal)

    return asked


#: Heuristics for time, and what makes their plans.
_OF_TIME: dict[str, tuple[str, Callable[[FusionPart, Clock], Runs]]] = {
    "double-buffered": ("layer by layer, loads a step ahead, every map through DRAM",
                        lambda part, clock: part.rules.double_buffered(clock)),
    "group-by-group": ("the least time of groups one after the other, without prefetch across them",
                       lambda part, clock: part.rules.group_by_group(clock)),
    "greedy-prefetch": ("the same groups, each load as soon as memory allows, in the order of steps",
                        lambda part, clock: part.rules.greedy_prefetch(clock)),
    "anneal": ("simulated annealing of groups, then of the order of transfers, as SoMa (HPCA 2025)",
               lambda part, clock: Annealer(part.rules, clock=clock).best()),
}  # fmt: skip


def _of_time(name: str) -> Callable[[FusionPart, Goal], Runs]:
    def asked(part: FusionPart, goal: Goal) -> Runs:
        if goal.measure != "time":
            raise Unable(f"{name} is a heuristic for time")
        return _OF_TIME[name][1](part, goal.clock)

    return asked


class FusionFormulation(Formulation[Runs]):
    """Groups of layers, strips, and what stays on chip."""

    name = "fusion"
    summary = "groups of layers that run strip by strip, tile plans of the others, and what stays between them"
    schedule: Any = NetworkSchedule
    figures = tuple[RunFigures, ...]
    whole = True
    measures = {"time": "ticks", "bytes": "bytes", "energy": "fJ", "macs": "MACs"}  # noqa: RUF012
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "dynamic": "dynamic programming over cuts and the rows of all maps on chip: exact",
        "milp": "a flow over cuts with the levels of each arc, with HiGHS: exact, caps included; of time a bound",
        "milp-cbc": "the same with CBC",
        "cp-sat": "the same with CP-SAT; of time all options of small networks, each with all orders of its transfers",
    }
    heuristics = {  # noqa: RUF012
        "per-layer": ("every layer by itself; map after map stays as far as it fits (joint)", _heuristic(_per_layer)),
        "cascade": ("groups as long as they fit, every map between them through DRAM", _heuristic(_cascade)),
        "strips": ("best cuts for strips of whole rows, every map between groups through DRAM", _heuristic(_strips)),
        **{name: (summary, _of_time(name)) for name, (summary, _) in _OF_TIME.items()},
    }
    timed = tuple(_OF_TIME)
    """Heuristics that plan for time alone."""
    quick: tuple[str, ...] = ("per-layer",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None,
        profile: Profile | None = None,
    ) -> Sequence[FusionPart]:  # fmt: skip
        """The network, with times of its layers where they were measured.

        Raises InputError for machines without a shared memory, for layers that no nest plans, and if times do not fit.
        """
        check_machine(machine, self.name)
        for layer in network.layers:
            refuse_long(layer)
            if layer.kind == "correlation":
                raise InputError(f"layer {layer.name}: only problem mesh plans correlations")
        return [FusionPart(network, self.planned(machine), pins, profile)]

    def planned(self, machine: Machine) -> Machine:
        """The machine that plans are made for: what is reserved no plan has; raises InputError if nothing is left."""
        return machine.unreserved


# ---- groups of one layer ---------------------------------------------------------------------------------------------


def _alone(choose: Callable[[Tables, Clock], Path | Fusion]) -> Callable[[FusionPart, Goal], Runs]:
    """A path, or the best one of a problem, as a schedule; raises Unable if there is none."""

    def run(part: FusionPart, goal: Goal) -> Runs:
        tables, clock = part.tables, goal.clock
        if clock.until < inf:
            tables.nests.hurry(clock.half())
        chosen = choose(tables, clock)
        path = chosen if isinstance(chosen, tuple) else _least(chosen)
        tables.search_down(tables.relied(path), clock)
        if not tables.knows(path):
            raise Unable(_NO_PLACE)
        runs = part.runs(path)
        return part.polished(runs, clock) if clock.over else runs

    return run


def _least(fusion: Fusion) -> Path:
    """The best path; map after map where there is none, or too many maps are there at a time."""
    with suppress(Unable):
        paths = Paths(fusion)
        if paths.least < NEVER:
            return paths.path()
    return greedy(fusion)


class JointFormulation(FusionFormulation):
    """Every layer by itself: its tile plan, and what stays on chip between layers."""

    name = "joint"
    schedule = LayersSchedule
    summary = "tile plans of all layers and what stays in a shared memory between them"
    measures = {"bytes": "bytes", "energy": "fJ"}  # noqa: RUF012
    decisions = {**PLACE, **ORDER, **NEST_DECISIONS}  # noqa: RUF012
    engines = {  # noqa: RUF012
        **FusionFormulation.engines,
        "milp": "a flow over cuts with the levels of each arc, with HiGHS: exact, caps on other measures included",
        "cp-sat": "the same with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "no-reuse": ("every layer's best plan alone, every map through DRAM", _alone(no_reuse)),
        "greedy": ("map after map stays as far as it fits", _alone(in_order)),
        "sequence": ("tile plans first, layer by layer; then the best use of what they leave", _alone(in_sequence)),
    }
    quick = ("greedy", "sequence", "no-reuse")

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None,
        profile: Profile | None = None,
    ) -> Sequence[FusionPart]:  # fmt: skip
        """As problem fusion with pin ``length=1``."""
        return super().read(network, machine, Pins((*pins.pins, APART)), layers, profile)

    def planned(self, machine: Machine) -> Machine:
        """The machine as it is: every nest leaves room for what is reserved beside its tiles."""
        return machine


def check_machine(machine: Machine, problem: str) -> None:
    """Raise InputError unless the problem can be asked of a machine."""
    if problem == "fusion" and machine.im2col_rows:
        raise InputError(f"machine {machine.name}: problem fusion keeps no room for im2col_rows beside strips")
    if not machine.bank_count:
        raise InputError(
            f"machine {machine.name}: problem {problem} needs a memory that all operands share (ocm_bytes), "
            "such as scratchpad_768k has"
        )
    if machine.in_bytes != machine.out_bytes:
        raise InputError(
            f"machine {machine.name}: in_bytes {machine.in_bytes} and out_bytes {machine.out_bytes} differ; "
            "a map that stays on chip is read as it was written"
        )
    if machine.edge_tiles == "uniform" or machine.reading == "literal" or machine.tles * machine.tlts > 1:
        raise InputError(
            f"machine {machine.name}: problem {problem} needs one core, edge_tiles 'true' and reading 'consistent'"
        )
