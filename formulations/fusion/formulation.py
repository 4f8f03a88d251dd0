"""Problem fusion for people and engines: its engines, its heuristics, and which networks and machines it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from formulations.clock import TimeUp
from formulations.fusion.options import NEVER
from formulations.fusion.part import FusionPart, Runs
from formulations.fusion.pins import DECISIONS
from formulations.fusion.problem import Arc, Fusion
from formulations.joint.heuristics import in_order
from formulations.joint.part import check_machine
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Unable
from hwmodels.joint.figures import RunFigures
from instances.errors import InputError
from instances.machine import Machine
from instances.network import Network
from instances.workload import refuse_long


def _per_layer(part: FusionPart, goal: Goal) -> Runs:
    """Every layer a group by itself, as a heuristic of joint plans it; raises Unable if some layer has no place."""
    nests = part.joint.tables
    if goal.clock.until < inf:
        nests.hurry(goal.clock.half())
    choice = in_order(nests, goal.clock)
    if choice.bytes >= NEVER:
        raise Unable("this heuristic finds no place for some layer")
    return part.joint.runs(choice)


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
    tables, factors = part.tables, part.factors(goal.measure)
    alone = dict.fromkeys(tables.nests.plans)
    tables.search([(plans, (0,) * plans.layer.inputs, plans.banks) for plans in alone], goal.clock)

    def lean(arcs: Sequence[Arc]) -> Fusion:
        kept = [arc for arc in arcs if not arc.options.recomputes]
        return tables.instance(factors, "known", kept).without_levels()

    paths, _ = tables.settled(arcs, lean, lean, goal.clock)
    if paths.least >= NEVER:
        raise Unable("this heuristic finds no place for some layer")
    return part.runs(paths.path())


def _heuristic(run: Callable[[FusionPart, Goal], Runs]) -> Callable[[FusionPart, Goal], Runs]:
    def asked(part: FusionPart, goal: Goal) -> Runs:
        try:
            return run(part, goal)
        except TimeUp:
            return _per_layer(part, goal)

    return asked


class FusionFormulation(Formulation[Runs]):
    """Groups of layers, strips, and what stays on chip."""

    name = "fusion"
    summary = "F11: groups of layers that run strip by strip, tile plans of the others, and what stays between them"
    schedule = Runs
    figures = tuple[RunFigures, ...]
    whole = True
    measures = {"bytes": "bytes", "energy": "fJ", "macs": "MACs"}  # noqa: RUF012
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "dynamic": "dynamic programming over cuts and the rows of all maps on chip: exact",
        "milp": "a flow over cuts with the levels of each arc, with HiGHS: exact, caps on other measures included",
        "milp-cbc": "the same with CBC",
        "cp-sat": "the same with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "per-layer": ("every layer by itself; map after map stays as far as it fits (joint)", _heuristic(_per_layer)),
        "cascade": ("groups as long as they fit, every map between them through DRAM", _heuristic(_cascade)),
        "strips": ("best cuts for strips of whole rows, every map between groups through DRAM", _heuristic(_strips)),
    }
    quick = ("per-layer",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[FusionPart]:  # fmt: skip
        """The network; raises InputError for machines without a shared memory, and for layers that no nest plans."""
        check_machine(machine, "fusion")
        for layer in network.layers:
            refuse_long(layer)
            if layer.kind == "correlation":
                raise InputError(f"layer {layer.name}: only problem mesh plans correlations")
        return [FusionPart(network, machine, pins)]
