"""Plan one layer or every layer of a network. Orchestration only; engines decide, `solver.verify` judges."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formulations.clock import Clock
from formulations.homes.places import Places
from formulations.homes.read import check_home_pins, places_of
from formulations.pins import Pins
from formulations.registry import Nests
from hwmodels.outcome import MEASURES
from instances.applications import Applications
from instances.errors import InputError
from instances.workload import Layer
from solver.homes.plan import HomesPlan
from solver.homes.solve import Assignment, Choice, assigned, assignments, choose, fitting
from solver.jobs import share_of
from solver.options import pick_engine, pick_layers, pick_nests, pick_pins, processors
from solver.plan import FORMAT, Measures, Objective, Status, digest, network_digest, version, worst
from solver.question import Question
from solver.tiling.job import Answer, Job, unanswered
from solver.tiling.plan import LayerPlan, LayersOptions, LayersPlan, PlanReplay
from solver.verify import LITERAL_NOTE, gap_of
from solver.workers import run

if TYPE_CHECKING:
    from solver.engines.base import Engine

__all__ = ["Request", "Totals", "planned", "prepare", "solve", "totals"]

#: Unproven layers are tried again with the time left over, but only if that is this many times what they had.
_AGAIN = 2.0


@dataclass(frozen=True)
class Request:
    """What is asked about layers, checked; `places` where the machine has several memories off the chip."""

    asked: Question
    name: str
    layers: tuple[Layer, ...]
    formulation: Nests
    engine: Engine
    pins: Pins
    places: Places | None = None


def solve(question: Question) -> LayersPlan:
    """Plan a layer, or the layers of a network: every conv and matmul layer, those named, or all kinds.

    Every schedule handed out has been priced by the closed forms and replayed; all must agree. The time limit is shared
    out evenly; what one layer leaves over goes to the others.

    Returns
    -------
    LayersPlan
        Its status is the worst of its layers: INFEASIBLE, NO_SOLUTION_FOUND, FEASIBLE, OPTIMAL. Ctrl-C returns
        what was found until then.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, price and replay disagree: a defect of certile.
    """
    start = time.monotonic()
    return planned(prepare(question), start)


def planned(request: Request, start: float) -> LayersPlan:
    """Plan what is asked, from time `start` on; raises PlanMismatch as `solve` does."""
    if request.places is not None:
        return _housed(request, request.places, start)
    distinct = _distinct(request)
    answers = _search(request, {key: _job(request, layer) for key, layer in distinct.items()})
    plans = []
    for layer in request.layers:
        first, found = distinct[layer.signature()], answers[layer.signature()].plan
        plans.append(found if layer.name == first.name else _copied(layer, first.name, found))
    versions = next((a.versions for a in answers.values() if a.versions), "")
    return _plan(request, tuple(plans), versions, start)


def _copied(layer: Layer, first: str, found: LayerPlan) -> LayerPlan:
    """The plan of a layer that differs from the first one in name only."""
    return found.model_copy(update={"layer": layer.name, "workload": layer, "wall_s": 0.0, "same_as": first})


def _housed(request: Request, places: Places, start: float) -> LayersPlan:
    """Plan every layer for all homes of its operands, then choose one home for every map and all weights."""
    asked, machine = request.asked, request.asked.machine
    clock, known = Clock.of(asked.time_limit_s), fitting(places, machine)
    layers, distinct = {layer.name: layer for layer in request.layers}, _distinct(request)
    needed = list(assigned(places, known).items())
    open_ = [item.bytes if len(item.homes) > 1 else 0 for item in places.items]
    large = sorted(places.tables, key=lambda table: -sum(open_[x] for x in table.operands.values()))
    more = [(table.layer, homes) for table in large for homes in assignments(places, table)]
    jobs: dict[tuple[object, ...], Job] = {}
    for number, (name, homes) in enumerate([*needed, *more]):
        signature = layers[name].signature()
        job = _job(request, distinct[signature], homes, spare=number >= len(needed))
        jobs.setdefault((signature, homes), job)
    answers = _search(request, jobs)
    options = {
        (table.layer, homes): answers[layers[table.layer].signature(), homes].plan
        for table in places.tables
        for homes in assignments(places, table)
    }
    choice = choose(places, options, machine, asked.objectives, request.engine.name, clock, known)
    plans, firsts = [], dict[object, str]()
    for layer in request.layers:
        homes = choice.layers.get(layer.name, ())
        found = options.get((layer.name, homes), unanswered(layer))
        first = firsts.setdefault((layer.signature(), homes), layer.name)
        named = found.model_copy(update={"layer": layer.name, "workload": layer})
        plans.append(named if first == layer.name else _copied(layer, first, found))
    versions = next((a.versions for a in answers.values() if a.versions), "")
    return _plan(request, tuple(plans), versions, start, (choice, HomesPlan.of(places, choice.chosen)))


def prepare(question: Question) -> Request:
    """Check everything that is asked, before any time is spent; raises InputError."""
    machine, target = question.machine, question.target
    if isinstance(target, Applications):
        raise InputError("several applications are planned together, by problem applications only")
    if machine.problem not in ("tiling", "slicing"):
        raise InputError(f"machine {machine.name}: it is meant for problem {machine.problem}, not {question.problem}")
    formulation = pick_nests(question.problem)
    demands = pick_pins(question.pins, formulation)
    check_home_pins(machine, demands)
    picked = pick_layers(target, question.layers, all_kinds=question.all_kinds)
    places = places_of(target, picked, machine, demands) if machine.off_chip else None
    return Request(
        question, target.name, picked, formulation, pick_engine(question.engine, formulation.name), demands, places
    )


def _distinct(request: Request) -> dict[tuple[object, ...], Layer]:
    """Return the first layer of every signature: layers that differ in name only are solved once."""
    found: dict[tuple[object, ...], Layer] = {}
    for layer in request.layers:
        found.setdefault(layer.signature(), layer)
    return found


def _job(request: Request, layer: Layer, homes: Assignment = (), *, spare: bool = False) -> Job:
    return Job(
        layer, request.asked.machine, request.formulation.build, request.pins, request.asked.full, request.engine,
        request.asked.objectives, request.asked.bounding, homes, spare,
    )  # fmt: skip


def _search(request: Request, wanted: Mapping[tuple[object, ...], Job]) -> dict[tuple[object, ...], Answer]:
    """Return an answer for every job, found or not."""
    jobs, progress = dict(enumerate(wanted.values())), request.asked.progress
    best: dict[int, Answer] = {}

    def on_done(index: int, answer: Answer) -> None:
        if index not in best:
            progress.advance(f"{answer.plan.layer}: {answer.plan.status}")
        best[index] = _better(best.get(index), answer, request.asked.objectives)

    progress.begin(len(jobs), request.name)
    try:
        with request.asked.watch() as watch:
            waiting = dict(jobs)
            while waiting:
                outcome = run(waiting, request.asked.jobs, watch, on_done)
                proven = {i for i, answer in best.items() if answer.plan.status in ("OPTIMAL", "INFEASIBLE")}
                waiting = {i: job for i, job in jobs.items() if i not in proven}
                share = share_of(watch.clock, len(waiting), min(request.asked.jobs or processors(), len(waiting)))
                had = max((outcome.shares_s.get(i, 0.0) for i in waiting), default=0.0)
                if outcome.stopped or not request.engine.proves or share is None or share <= _AGAIN * had:
                    break
    finally:
        progress.end()
    return {key: best.get(i, Answer(unanswered(job.layer), "", False)) for i, (key, job) in enumerate(wanted.items())}


def _better(one: Answer | None, two: Answer, objectives: Sequence[str]) -> Answer:
    """Return the better of two answers for one layer, with the better bound of both and the time of both."""
    if one is None or two.plan.status in ("OPTIMAL", "INFEASIBLE"):
        return two

    def rank(answer: Answer) -> tuple[int, ...]:
        found = answer.plan.measures
        vector = found.model_dump() if found else {}
        return (found is None, *(vector[m] for m in (*objectives, *vector) if m in vector))

    winner = min(one, two, key=rank)
    bounds = [a.plan.bound for a in (one, two) if a.plan.bound is not None]
    value = winner.plan.objective.value if winner.plan.objective else None
    bound = max(bounds, default=None)
    joined = {"bound": bound, "gap": gap_of(value, bound), "wall_s": one.plan.wall_s + two.plan.wall_s}
    return Answer(winner.plan.model_copy(update=joined), winner.versions or one.versions, two.interrupted)


@dataclass(frozen=True)
class Totals:
    """What a plan says about all its layers together."""

    status: Status
    objective: Objective | None
    bound: int | None
    gap: float | None
    measures: Measures | None
    replay: PlanReplay

    def over(self, status: Status, bound: int | None) -> Totals:
        """The same with what is known of all homes: status and bound, where every layer has a plan."""
        if self.objective is None:
            return replace(self, bound=None, gap=None)
        return replace(self, status=status, bound=bound, gap=gap_of(self.objective.value, bound))


def totals(layers: Sequence[LayerPlan], *, literal: bool) -> Totals:
    """Sum over the layers; None where a layer has nothing to add."""
    objectives = [p.objective for p in layers if p.objective is not None]
    measures = [p.measures for p in layers if p.measures is not None]
    bounds = [p.bound for p in layers if p.bound is not None]
    whole = len(objectives) == len(measures) == len(layers)
    bound = sum(bounds) if len(bounds) == len(layers) else None
    objective = None
    if whole:
        terms: dict[str, int] = {}
        for part in objectives:
            for name, value in part.terms.items():
                terms[name] = terms.get(name, 0) + value
        objective = Objective(value=sum(o.value for o in objectives), unit=objectives[0].unit, terms=terms)
    summed = Measures(
        time=sum(m.time for m in measures), bytes=sum(m.bytes for m in measures), energy=sum(m.energy for m in measures)
    )
    replays = [p.replay for p in layers if p.replay is not None]
    replay = PlanReplay(
        ok=all(r.ok for r in replays) if replays else None, layers=len(replays),
        executed=sum(r.executed for r in replays), note=LITERAL_NOTE if literal else "",
    )  # fmt: skip
    gap = gap_of(objective.value if objective else None, bound)
    return Totals(worst(p.status for p in layers), objective, bound, gap, summed if whole else None, replay)


def _plan(
    request: Request,
    layers: tuple[LayerPlan, ...],
    engine_version: str,
    start: float,
    housed: tuple[Choice, HomesPlan] | None = None,
) -> LayersPlan:
    asked, machine = request.asked, request.asked.machine
    total = totals(layers, literal=machine.reading == "literal")
    if housed is not None:
        total = total.over(housed[0].status, housed[0].bound)
    return LayersPlan.model_validate({
        "format": FORMAT, "certile": version(), "problem": request.formulation.name, "network": request.name,
        "machine": machine.name, "engine": request.engine.name, "engine_version": engine_version,
        "objectives": asked.objectives, "unit": MEASURES[asked.objectives[0]],
        "pins": tuple(request.pins.to_json()),
        "options": LayersOptions(
            full=asked.full, bounding=asked.bounding, time_limit_s=asked.time_limit_s, settings=asked.settings
        ),
        **vars(total), "wall_s": time.monotonic() - start, "layers": layers,
        "network_digest": network_digest(request.layers), "machine_digest": digest(machine.model_dump(mode="json")),
        "machine_data": machine, "homes": housed[1] if housed else None,
    })  # fmt: skip
