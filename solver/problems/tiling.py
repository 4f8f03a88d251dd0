"""Problems tiling and slicing, as the rest of `solver` sees them: layers, each by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from formulations.clock import ENDLESS, Clock
from formulations.homes.space import Places, check_home_pins, places_of
from formulations.pins import Pins, parse_pins
from formulations.problem import Part
from formulations.tiling.front import AXES, NestFront, front_of_space, unbeaten
from formulations.tiling.part import Assignment, NestPart
from formulations.tiling.problem import NESTS, TILING, Nests, largest_tile
from formulations.tiling.search import Search
from formulations.tiling.space import Space, complete, stages
from hwmodels.nest.buffers import buffer_lines
from hwmodels.nest.homes import assignments
from hwmodels.nest.price.limits import lower_bound_bytes
from hwmodels.outcome import MEASURES
from hwmodels.schedule import Nest
from instances.applications import Applications
from instances.errors import InputError, PlanMismatch
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.variants import Variants
from instances.network.workload import Layer
from instances.problems import nested
from solver.ask.options import pick_layers
from solver.ask.question import Question
from solver.plan.claims import Claim, bounds_of, gap_of, picked
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.plan.plan import Asked, Objective, PartPlan, Plan, Status, proof
from solver.problems.homes import HomesPlan, assigned, choose, fitting, homes_of, problems_of_homes
from solver.problems.layers import GIVEN, LayerRow, layer_rows
from solver.problems.problem import Explained, Problem
from solver.search.deciding import Job, accepted
from solver.search.loop import Answer, decide_part, fallback
from solver.search.verdict import Verdict, price_and_replay, sum_of
from solver.show.tables import GAP, Column, Sheet, conflicts_of, few, name_column, percent, ratio
from solver.show.words import decision_columns, decision_text, label, measure_columns, workload_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.plan.figures import Pictures


class LayersProblem(Problem):
    """Layers, each by itself; where their operands lie off the chip is decided for all together.

    Without memories in `off_chip` a solve is that of `Problem`, with `parts`, `job` and `lost` of here (`parts` is
    given layers that are picked already). With them `solve_request` has every layer decided in all homes (`_options`),
    `choose` of homes.py takes some, and `housed` says status and bound over all. A check is that of `Problem` with
    `parts_of` (each nest in its homes) and `problems_of_homes` beside it; `_first_pass` doubts layers, no engine does.
    """

    formulation: Nests
    shared_type = HomesPlan

    def __init__(self, formulation: Nests = TILING) -> None:
        super().__init__(formulation)
        self.usual, self.single, self.front_engines = "time", True, False
        self.takes = frozenset({"layers", "all_kinds", "full", "bounding"})
        self.axes = AXES
        self.others = {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")}

    def ready(self, question: Question) -> None:
        """Make the space of every layer, those that are alike once."""
        for part in {part.key: part for part in self.parts(question)}.values():
            part.build(part.layer, part.machine, part.pins, full=part.full)

    def parts(self, question: Question) -> list[NestPart]:
        """The layers; where they lie off the chip is open."""
        request = prepare(self.formulation, question)
        return [request.part(layer) for layer in request.layers]

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """The engines, and that mappings may be given, which proves nothing."""
        return {**super().able(plan), GIVEN: False}

    def target_of(self, question: Question) -> tuple[Layer, ...]:
        """The layers that are planned."""
        return question.target if isinstance(question.target, tuple) else prepare(self.formulation, question).layers

    def question(self, plan: Plan) -> Question:
        """What a stored plan was asked: its layers, or the only one."""
        question, layers = super().question(plan), plan.network_data
        return replace(question, target=layers[0]) if len(layers) == 1 else question

    def options_of(self, question: Question) -> Asked:
        """The pins in one form."""
        pins = tuple(parse_pins(question.pins, self.formulation.decisions).to_json())
        return super().options_of(question).model_copy(update={"pins": pins, "layers": (), "all_kinds": False})

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def job(self, part: Part[Nest], question: Question) -> Job:
        """A layer, by the engine that is asked for."""
        assert isinstance(part, NestPart)
        return job_of(self.formulation, part, question.objectives, question.engine)

    def lost(self, job: Job) -> Answer[Nest]:
        """Nothing: quick plans were made as long as there was time."""
        return job.unanswered()

    def solve(self, question: Question) -> Plan:
        """Plan a layer, or the layers of a network: every conv and matmul layer, those named, or all kinds.

        The time limit is shared out evenly; what one layer leaves over goes to the others.
        """
        return self.solve_request(prepare(self.formulation, question))

    def solve_request(self, request: Request) -> Plan:
        """Plan what is asked; where there are several memories off the chip, for all homes, of which some are chosen.

        Raises PlanMismatch if engine, price and replay disagree.
        """
        asked, places, start = request.question, request.places, time.monotonic()
        if places is None:
            return super().solve(asked)
        with asked.watch() as watch:
            clock, known = Clock.of(asked.time_limit_s), fitting(places, asked.machine)
            open_ = _options(request, places, assigned(places, known))
            answers = self.answers(list(open_.values()), asked, watch)
            accepted([(part, answers[part.key]) for part in open_.values()], asked.where)
            said = {name: answers[part.key] for name, part in open_.items()}
            choice = choose(places, said, asked.objectives, asked.engine, clock, known)
        parts = [request.part(layer, choice.layers.get(layer.name, ())) for layer in request.layers]
        nothing: Answer[Nest] = Answer(None, {}, dict.fromkeys(asked.objectives), "NO_SOLUTION_FOUND")
        verdicts = accepted([(part, answers.get(part.key, nothing)) for part in parts], asked.where)
        return self.housed(
            asked, verdicts, start, status=choice.status, bound=choice.bound,
            shared=HomesPlan.of(places, choice.chosen),
            engine_version=next((one.versions for one in answers.values() if one.versions), ""),
        )  # fmt: skip

    def housed(
        self, question: Question, verdicts: Sequence[Verdict], start: float, *, status: Status = "FEASIBLE",
        bound: int | None = None, **more: Any,
    ) -> Plan:  # fmt: skip
        """Return a plan; where it says homes, status and bound are those over all homes, if all layers have one."""
        plan = self.planned(question, verdicts, start, **more)
        return plan if plan.shared is None else plan.model_copy(update=_over_homes(plan.objective, status, bound))

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of every layer; axes: two or three."""
        wanted = axes or ("bytes", "time")
        request = prepare(self.formulation, question)
        by_name = {layer.name: layer for layer in request.layers}
        parts = []
        for name, found in fronts(request, wanted, time_limit_s=question.time_limit_s).items():
            points, housed = [], dict[object, NestPart]()
            for point in found.points:
                part = housed.setdefault(point.nest.homes, request.part(by_name[name], point.nest.homes))
                decision = part.space.decision(point.nest)
                body = {"measures": point.measures, "nest": point.nest.to_json(), "decision": decision}
                details = {
                    "x limit": ratio(
                        point.measures["bytes"], lower_bound_bytes(by_name[name], request.question.machine)
                    ),
                    "time (us)": f"{point.measures['time'] * request.question.machine.tick_ps / 1e6:,.1f}",
                    "on chip": f"{point.ocm:,}",
                }
                values = dict(zip(found.axes, point.values, strict=True))
                points.append(FrontPoint(values, body, decision_text(decision), details=details))
            parts.append(FrontPart(name, tuple(points), found.complete, found.proven))
        units = {axis: self.axes[axis] for axis in wanted}
        return Front(self.name, request.question.title, request.question.machine.name, units, tuple(parts))

    def explain(self, question: Question) -> Iterator[Explained]:
        """Layer by layer, exactly."""
        request = prepare(self.formulation, question)
        for layer in request.layers:
            part = request.part(layer, some_homes(layer, question.machine))
            yield Explained(layer.name, part.explain(), part.space.size)

    # ---- checking ----------------------------------------------------------------------------------------------------

    def parts_of(self, plan: Plan) -> list[NestPart]:
        """The layers, with the homes of their schedules; with some where they have none."""
        machine, pins = plan.machine_data, parse_pins(plan.options.pins, self.formulation.decisions)
        return [
            NestPart(
                layer, machine, self.formulation.build, pins, given=plan.engine == GIVEN,
                homes=some_homes(layer, machine) if row.schedule is None else row.schedule.homes,
            )
            for row, layer in zip(plan.parts, plan.network_data, strict=True)
        ]  # fmt: skip

    def heuristics_that_fit(self, part: Part[Nest], plan: Plan, *, proves: bool) -> Iterator[str]:
        """None: a layer that there was no time for has no plan."""
        return iter(())

    def head(self, plan: Plan) -> Iterator[str]:
        """Also names that stand twice."""
        yield from super().head(plan)
        names = [layer.name for layer in plan.network_data]
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"layers: {name} stands {names.count(name)} times"
        if len(names) != len(plan.parts):
            yield f"parts: the plan has {len(plan.parts)}, there are {len(names)} layers"

    def faults(self, plan: Plan, verdicts: list[Verdict]) -> Iterator[str]:
        """Also what is said of homes."""
        if len(plan.network_data) != len(plan.parts):
            yield from self.head(plan)
            return
        yield from super().faults(plan, verdicts)
        try:
            yield from problems_of_homes(plan, parse_pins(plan.options.pins, self.formulation.decisions))
        except InputError as error:
            yield str(error)

    def totals_of(self, plan: Plan, rows: Sequence[PartPlan]) -> dict[str, Any]:
        """Where a plan says homes, status and bound are those over all of them, which no layer says."""
        found = super().totals_of(plan, rows)
        return found if plan.shared is None else found | _over_homes(found["objective"], plan.status, plan.bound)

    def claims(self, plan: Plan) -> Iterator[Claim]:
        """Layer by layer; layers that share memories off the chip are one part: homes are decided for all together."""
        if plan.shared is None:
            yield from super().claims(plan)
            return
        values = picked(plan.objectives, self.figures(plan))
        yield Claim("", plan.status, plan.objectives, values,
                    bounds_of(plan.status, plan.bound, values, len(plan.objectives)))  # fmt: skip

    def doubted(self, plan: Plan) -> Iterator[Claim]:
        """Also what is claimed of every layer with the homes that it has."""
        yield from self.claims(plan)
        if plan.shared is not None:
            yield from super().claims(plan)

    def doubters(
        self, plan: Plan, again: Callable[[str], dict[str, Claim]], seconds: float
    ) -> Iterator[tuple[str, dict[str, Claim]]]:
        """Layer by layer without an engine; of homes by an engine."""
        yield "first pass", {claim.part: claim for claim in self._first_pass(plan, time.monotonic() + seconds)}
        if plan.shared is not None and plan.engine != "greedy":
            yield "greedy", {part: one for part, one in again("greedy").items() if not part}

    def _first_pass(self, plan: Plan, deadline: float) -> Iterator[Claim]:
        """Of every layer the best of few candidates, and the largest tile: priced, and replayed if it matters."""
        for part, claim in zip(self.parts_of(plan), super().claims(plan), strict=True):
            if claim.nothing or claim.status == "INFEASIBLE" or time.monotonic() > deadline:
                continue
            search = Search(part.space, plan.objectives, deadline=deadline)
            for pick in (
                search.first(stages(plan.objectives, part.space.machine)[0]),
                largest_tile(part.space, complete(plan.objectives)),
            ):
                if pick is None:
                    continue
                values = tuple(pick.measures[name] for name in plan.objectives)
                other = Claim(part.name, "FEASIBLE", plan.objectives, values, (None,) * len(values))
                if claim.refuted_by(other) and not price_and_replay(part, pick.nest.at(dict(part.homes))).faults:
                    yield other
                    break

    # ---- showing -----------------------------------------------------------------------------------------------------

    def layer_rows(self, plan: Plan) -> tuple[LayerRow, ...]:
        """The layers."""
        return layer_rows(plan)

    def status(self, plan: Plan) -> list[str]:
        """What is known, a part each: status, value, bound, gap and replay."""
        parts = [f"{plan.network} on {plan.machine} ({plan.problem}, {plan.engine}): {plan.status}"]
        if plan.objective is not None:
            said = f"{plan.objectives[0]} {plan.objective.value:,} {plan.objective.unit}"
            bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}, gap {percent(plan.gap)} %"
            parts.append(f"{said}, {bound}")
        rows, asked = plan.parts, ",".join(plan.objectives)
        missing = [row.name for row in rows if row.schedule is None]
        half = [row.name for row in rows if row.schedule and row.stats.get("proven", asked) not in (asked, "")]
        if half:
            parts.append(f"only some of {asked} proven in {len(half)} of {len(rows)} layers: {few(half)}")
        open_ = [row.name for row in rows if row.schedule and row.status != "OPTIMAL" and row.name not in half]
        if 0 < len(open_) < len(rows):
            parts.append(f"not proven in {len(open_)} of {len(rows)} layers: {few(open_)}")
        if missing:
            parts.append(f"{len(missing)} of {len(rows)} layers without a schedule: {few(missing)}")
        if len(missing) < len(rows):
            literal = plan.machine_data.reading == "literal"
            verdict = "replayed, not compared (literal reading)" if literal else "replay agrees"
            failed = [row.name for row in rows if row.replay is not None and not row.replay.ok]
            reading = " by the paper's literal equations" if literal else ""
            refused = f"replay is not ok: {few(failed)} cannot run as priced{reading}, certile check refuses this plan"
            parts.append(refused if failed else verdict)
        return parts

    def sheet(self, plan: Plan) -> Sheet:
        """Layers and their sum."""
        return nest_table(plan, {})

    def table(self, plan: Plan, others: Mapping[str, Plan]) -> list[RenderableType]:
        """The same, with a column for every other engine."""
        return [nest_table(plan, others), "", "; ".join(self.known(plan))]

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """The buffers and the loops of one layer or all, line by line."""
        for row in layer_rows(plan):
            if layer in (None, row.layer):
                yield from _layer(plan, row)

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Roofline, times, memories, and every layer with its tile and its nest as code."""
        from solver.problems.layers_figures import pictures  # late: only reports are drawn

        texts = {row.layer: "\n".join(_layer(plan, row)).strip() for row in layer_rows(plan) if not row.same_as}
        return pictures(plan, others, texts)

    def resolve(self, plan: Plan, engine: str, time_limit_s: float | None, jobs: int) -> Plan:
        """Plan the layers again."""
        rooms = {one.name: one.bytes for one in plan.machine_data.off_chip if one.bytes is not None}
        asked = replace(
            self.question(plan), target=plan.network_data, title=plan.network, engine=engine, time_limit_s=time_limit_s,
            jobs=jobs,
        )  # fmt: skip
        return self.solve_request(prepare(self.formulation, asked, plan.shared.places(rooms) if plan.shared else None))


def _options(request: Request, places: Places, needed: dict[str, Assignment]) -> dict[tuple[str, Assignment], NestPart]:
    """Every layer with all homes that its operands may have: first those that are needed, then where most is open."""
    layers = {layer.name: layer for layer in request.layers}
    open_ = [item.bytes if len(item.homes) > 1 else 0 for item in places.items]
    large = sorted(places.tables, key=lambda table: -sum(open_[x] for x in table.operands.values()))
    found = {(name, homes): request.part(layers[name], homes) for name, homes in needed.items()}
    for table in large:
        for homes in homes_of(places, table):
            if (table.layer, homes) not in found:
                found[table.layer, homes] = request.part(layers[table.layer], homes, optional=True)
    return found


def _over_homes(objective: Objective | None, status: Status, bound: int | None) -> dict[str, Any]:
    """What a plan says of all layers where it says homes; no layer says it."""
    if objective is None:
        return {"bound": None, "gap": None}
    return {"status": status, "bound": bound, "gap": gap_of(objective.value, bound)}


# ---- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What is asked about layers, checked; `places` where the machine has several memories off the chip."""

    question: Question
    """About the layers themselves."""
    layers: tuple[Layer, ...]
    formulation: Nests
    pins: Pins
    places: Places | None = None

    def part(self, layer: Layer, homes: Assignment = (), *, optional: bool = False) -> NestPart:
        """A layer with homes of its operands."""
        return NestPart(
            layer, self.question.machine, self.formulation.build, self.pins, full=self.question.full, homes=homes,
            optional=optional, bounding=self.question.bounding,
        )  # fmt: skip


def prepare(formulation: Nests, question: Question, places: Places | None = None) -> Request:
    """Check everything that is asked, before any time is spent; raises InputError.

    Layers of a plan are given with their `places`, if they have any.
    """
    machine, target = question.machine, question.target
    if isinstance(target, Applications):
        raise InputError("several applications are planned together, by problem applications only")
    if isinstance(target, Buffers | Variants):
        raise InputError(f"target {target.name}: problem {question.problem} plans networks, this is something else")
    if machine.problem not in nested():
        raise InputError(f"machine {machine.name}: it is meant for problem {machine.problem}, not {question.problem}")
    demands = parse_pins(question.pins, formulation.decisions)
    check_home_pins(machine, demands)
    if isinstance(target, tuple):
        return Request(question, target, formulation, demands, places)
    picked = pick_layers(target, question.layers, all_kinds=question.all_kinds)
    if machine.off_chip:
        places = places_of(target, picked, machine, demands)
    return Request(replace(question, target=picked, title=target.name), picked, formulation, demands, places)


#: Seconds that a quick plan may take.
_QUICK_S = 5.0


def job_of(formulation: Nests, part: NestPart, objectives: tuple[str, ...], engine: str) -> Job:
    """Return the work of deciding a layer."""
    return Job(part, objectives, partial(decide_layer, formulation, engine), partial(fallback, formulation), _QUICK_S)


def decide_layer(
    formulation: Nests, engine: str, part: NestPart, objectives: tuple[str, ...], clock: Clock
) -> Answer[Nest]:  # fmt: skip
    """Decide a layer, and say which of several objectives are proven; it is one piece, whatever was asked."""
    said = decide_part(formulation, part, objectives, engine, clock)
    proven = takewhile(lambda name: said.bounds[name] == said.values.get(name), objectives)
    claims = proof(objectives, proven) if said.values and engine in formulation.engines else {}
    stats = {**said.stats, **claims}
    return replace(said, stats={name: value for name, value in stats.items() if name != "pieces"})


def decide_space(
    space: Space, objectives: Sequence[str], engine: str = "exhaustive", clock: Clock = ENDLESS, *,
    bounding: bool = True,
) -> Answer[Nest]:  # fmt: skip
    """Decide a space by an engine of its problem; the values are time, bytes and energy."""
    start, part = time.monotonic(), NestPart.of(space, bounding=bounding)
    said = decide_layer(NESTS[space.problem], engine, part, tuple(objectives), clock)
    values = {name: said.values[name] for name in MEASURES if said.values}
    return replace(said, values=values, wall_s=time.monotonic() - start)


def some_homes(layer: Layer, machine: Machine) -> Assignment:
    """Homes that the operands of a layer may have: memory on chip does not depend on them."""
    return tuple(assignments(layer, machine)[0].items())


def fronts(request: Request, axes: Sequence[str], *, time_limit_s: float | None = None) -> dict[str, NestFront]:
    """Return the front of every layer of a request, each point replayed; equal layers are searched once.

    Raises InputError as `front_of_space`, and PlanMismatch if price and replay of a point do not agree.
    """
    found: dict[str, NestFront] = {}
    known: dict[object, NestFront] = {}
    end = None if time_limit_s is None else time.monotonic() + time_limit_s
    for layer in request.layers:
        if layer.signature() not in known:
            known[layer.signature()] = _housed(request, layer, axes, end)
            for point in known[layer.signature()].points:
                if faults := price_and_replay(request.part(layer, point.nest.homes), point.nest).faults:
                    raise PlanMismatch(f"layer {layer.name}: {'; '.join(faults)}")
        found[layer.name] = known[layer.signature()]
    return found


def _housed(request: Request, layer: Layer, axes: Sequence[str], end: float | None) -> NestFront:
    """The front of a layer by itself over all homes that its operands may have."""
    machine = request.question.machine
    places = places_of(layer, (layer,), machine, request.pins) if machine.off_chip else None
    ways = [one for t in places.tables for one in places.assignments(t.operands)] if places else [{}]
    found = []
    for number, homes in enumerate(ways):
        left = None if end is None else max(0.0, end - time.monotonic()) / (len(ways) - number)
        space = request.part(layer, tuple(homes.items())).space
        found.append((homes, front_of_space(space, axes, time_limit_s=left)))
    points = [replace(point, nest=point.nest.at(homes)) for homes, one in found for point in one.points]
    kept = tuple(sorted(unbeaten(points), key=lambda p: p.values))
    return NestFront(tuple(axes), kept, all(f.complete for _, f in found), all(f.proven for _, f in found))


# ---- showing ---------------------------------------------------------------------------------------------------------


def nest_table(plan: Plan, others: Mapping[str, Plan]) -> Sheet:
    """Return the table of a plan: a row a layer, their sum, and the objectives of other engines over ours."""
    rows, first = layer_rows(plan), plan.objectives[0]
    copied, moved = sum(row.same_as is not None for row in rows), (plan.measures or {}).get("bytes")
    limits = [row.lower_bound_bytes for row in rows]
    distinct = f", {len(rows) - copied} distinct" * (copied > 0)
    ratios = [
        Column(
            name,
            [ratio(_value(a), _value(b)) for a, b in zip(layer_rows(other), rows, strict=True)],
            f"its {first} over that of {plan.engine}", ratio(_value(other), _value(plan)),
        )
        for name, other in others.items()
    ]  # fmt: skip
    objective, *measures = measure_columns(plan, [row.part.measures for row in rows], plan.measures)
    return Sheet(
        [
            name_column("layer", [label(row.layer, row.workload) for row in rows], distinct),
            objective,
            Column("gap (%)", [row.status if row.schedule is None else percent(row.gap) for row in rows],
                   GAP, percent(plan.gap)),
            *ratios,
            *measures,
            Column("x limit", [ratio(row.part.measures.get("bytes"), row.lower_bound_bytes) for row in rows],
                   "bytes over the least that any plan moves", ratio(moved, sum_of(limits)), spare=2),
            *decision_columns([row.decision for row in rows]),
            Column("wall (s)", ["same" if row.same_as else f"{row.wall_s:.2f}" for row in rows],
                   "search, same: as an equal layer above", f"{plan.wall_s:.2f}", spare=4),
        ],
        [*conflicts_of(plan.parts), *_buffering_of(plan)],
    )  # fmt: skip


def _buffering_of(plan: Plan) -> list[str]:
    """Return why a demand for buffers cannot be met, if there is one: the machine decides their number."""
    machine = plan.machine_data
    asked = any(line.startswith("pin buffers_") for row in plan.parts for line in row.conflicts)
    said = f"machine {machine.name} has buffering={machine.buffering}; to choose: --set buffering=choose"
    return [said] if asked and machine.buffering != "choose" else []


def _value(row: Plan | LayerRow) -> int | None:
    return row.objective.value if row.objective else None


def _layer(plan: Plan, row: LayerRow) -> Iterable[str]:
    yield f"{row.layer}: {workload_text(row.workload)}, on {plan.machine}"
    if row.schedule is None or row.objective is None or row.measures is None:
        why = f": {'; '.join(row.conflicts)}" if row.conflicts else ""
        yield from (f"{row.status}, there is no schedule{why}", "")
        return
    known = "no bound" if row.bound is None else f"bound {row.bound:,}"
    yield f"{plan.objectives[0]} {row.objective.value:,} {row.objective.unit} ({row.status}, {known})"
    limit = row.lower_bound_bytes
    if limit is not None:
        yield f"{row.measures.bytes:,} bytes move; no plan moves fewer than {limit:,}"
    from solver.show.pseudo_code import pseudo_code  # late: no solve needs it

    machine, nest = plan.machine_data, row.schedule
    if nest.homes:
        yield f"off the chip: {', '.join(f'{operand} in {name}' for operand, name in nest.homes)}"
    placed = row.figures.buffers if row.figures else ()
    for memory, size in machine.memories.items():
        mine = [b for b in placed if b.memory == memory]
        left = size - sum(b.copies * b.bytes for b in mine)
        yield from ("", f"memory {memory}, {size:,} bytes of a core, {left:,} free:")
        yield from buffer_lines(mine)
    yield from ("", *pseudo_code(row.workload, machine, nest).splitlines(), "")
    if machine.timing == "double_buffered":
        yield (
            "time = loads of the first step + sum over the steps of max(compute, loads of the next, stores of the one "
            "before) + stores of the last;"
        )
        yield from ("operands with one buffer are loaded and stored between the steps", "")


PROBLEM = LayersProblem
