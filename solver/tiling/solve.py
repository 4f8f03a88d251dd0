"""Plan one layer or every layer of a network, and where there are several memories off the chip choose homes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from formulations.clock import Clock
from formulations.homes.places import Places
from formulations.homes.read import check_home_pins, places_of
from formulations.pins import Pins
from formulations.problem import Part
from formulations.tiling.nests import Nests
from formulations.tiling.part import Assignment, NestPart
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.applications import Applications
from instances.buffers import Buffers
from instances.errors import InputError
from instances.machine import NESTED
from instances.variants import Variants
from instances.workload import Layer
from solver.formulated import FormulationProblem, Job
from solver.homes.plan import HomesPlan
from solver.homes.solve import Choice, assigned, assignments, choose, fitting
from solver.options import pick_layers, pick_nests, pick_pins
from solver.plan import FORMAT, digest, network_digest
from solver.question import Question
from solver.search import Answer
from solver.tiling.plan import LayersOptions, LayersPlan
from solver.tiling.rows import rows, totals
from solver.tiling.search import job_of
from solver.verdict import Verdict
from solver.version import version


@dataclass(frozen=True)
class Request:
    """What is asked about layers, checked; `places` where the machine has several memories off the chip."""

    asked: Question
    name: str
    layers: tuple[Layer, ...]
    formulation: Nests
    pins: Pins
    places: Places | None = None

    def part(self, layer: Layer, homes: Assignment = (), *, spare: bool = False) -> NestPart:
        """A layer with homes of its operands."""
        build = self.formulation.build
        return NestPart(
            layer, self.asked.machine, build, self.pins, full=self.asked.full, homes=homes, spare=spare,
            bounding=self.asked.bounding,
        )  # fmt: skip


def prepare(question: Question) -> Request:
    """Check everything that is asked, before any time is spent; raises InputError."""
    machine, target = question.machine, question.target
    if isinstance(target, Applications):
        raise InputError("several applications are planned together, by problem applications only")
    if isinstance(target, Buffers | Variants):
        raise InputError(f"target {target.name}: problem {question.problem} plans networks, this is something else")
    if machine.problem not in NESTED:
        raise InputError(f"machine {machine.name}: it is meant for problem {machine.problem}, not {question.problem}")
    formulation = pick_nests(question.problem)
    demands = pick_pins(question.pins, formulation)
    check_home_pins(machine, demands)
    picked = pick_layers(target, question.layers, all_kinds=question.all_kinds)
    places = places_of(target, picked, machine, demands) if machine.off_chip else None
    return Request(question, target.name, picked, formulation, demands, places)


class NestsProblem(FormulationProblem[LayersPlan]):
    """Layers, each by itself; where their operands lie off the chip is decided for all together."""

    def ready(self, question: Question) -> None:
        """Make the space of every layer, those that are alike once."""
        request = prepare(question)
        for layer in {layer.signature(): layer for layer in request.layers}.values():
            request.formulation.build(layer, question.machine, request.pins, full=question.full)

    def job(self, part: Part[Nest], question: Question) -> Job:
        """A layer, by the engine that is asked for."""
        assert isinstance(part, NestPart)
        return job_of(self.formulation, part, question.objectives, question.engine)

    def lost(self, job: Job) -> Answer[Nest]:
        """Nothing: quick plans were made as long as there was time."""
        return job.unanswered()

    def solve(self, question: Question) -> LayersPlan:
        """Plan a layer, or the layers of a network: every conv and matmul layer, those named, or all kinds.

        Every schedule handed out has been priced by the closed forms and replayed; all must agree. The time limit is
        shared out evenly; what one layer leaves over goes to the others.

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
        return self.planned(prepare(question), start)

    def planned(self, request: Request, start: float) -> LayersPlan:
        """Plan what is asked, from time `start` on; raises PlanMismatch as `solve` does."""
        asked, housed = request.asked, None
        with asked.watch() as watch:
            if request.places is None:
                parts = [request.part(layer) for layer in request.layers]
                answers = self.answers(parts, asked, watch)
            else:
                clock, known = Clock.of(asked.time_limit_s), fitting(request.places, asked.machine)
                options = _options(request, request.places, assigned(request.places, known))
                answers = self.answers(list(options.values()), asked, watch)
                self.verified(list(options.values()), [answers[part.key] for part in options.values()], asked)
                said = {name: answers[part.key] for name, part in options.items()}
                choice = choose(request.places, said, asked.objectives, asked.engine, clock, known)
                housed = choice, HomesPlan.of(request.places, choice.chosen)
                parts = [request.part(layer, choice.layers.get(layer.name, ())) for layer in request.layers]
        nothing: Answer[Nest] = Answer(None, {}, dict.fromkeys(asked.objectives), "NO_SOLUTION_FOUND")
        verdicts = self.verified(parts, [answers.get(part.key, nothing) for part in parts], asked)
        versions = next((said.versions for said in answers.values() if said.versions), "")
        return _plan(request, verdicts, versions, start, housed)


def _options(request: Request, places: Places, needed: dict[str, Assignment]) -> dict[tuple[str, Assignment], NestPart]:
    """Every layer with all homes that its operands may have: first those that are needed, then where most is open."""
    layers = {layer.name: layer for layer in request.layers}
    open_ = [item.bytes if len(item.homes) > 1 else 0 for item in places.items]
    large = sorted(places.tables, key=lambda table: -sum(open_[x] for x in table.operands.values()))
    options = {(name, homes): request.part(layers[name], homes) for name, homes in needed.items()}
    for table in large:
        for homes in assignments(places, table):
            if (table.layer, homes) not in options:
                options[table.layer, homes] = request.part(layers[table.layer], homes, spare=True)
    return options


def _plan(
    request: Request, verdicts: Sequence[Verdict], engine_version: str, start: float,
    housed: tuple[Choice, HomesPlan] | None,
) -> LayersPlan:  # fmt: skip
    asked, machine, layers = request.asked, request.asked.machine, rows(verdicts)
    known = (housed[0].status, housed[0].bound) if housed else None
    return LayersPlan.model_validate({
        "format": FORMAT, "certile": version(), "problem": request.formulation.name, "network": request.name,
        "machine": machine.name, "engine": asked.engine, "engine_version": engine_version,
        "objectives": asked.objectives, "unit": MEASURES[asked.objectives[0]],
        "pins": tuple(request.pins.to_json()),
        "options": LayersOptions(
            full=asked.full, bounding=asked.bounding, time_limit_s=asked.time_limit_s, settings=asked.settings
        ),
        **totals(layers, machine, known), "wall_s": time.monotonic() - start, "layers": layers,
        "network_digest": network_digest(request.layers), "machine_digest": digest(machine.model_dump(mode="json")),
        "machine_data": machine, "homes": housed[1] if housed else None,
    })  # fmt: skip
