"""Plans: what certile hands out, as versioned, validated, frozen data.

A plan holds decisions and everything needed to re-verify them without other files: the layers, the machine with
all overrides, the pins, and digests of both. Everything but wall times (fields ending in ``_s``) is reproducible
byte for byte. `solver.calls.check` derives every figure again from the decisions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from hwmodels.outcome import Natural as Natural
from instances import frozen
from instances.errors import InputError, choices
from instances.frozen import digest as digest
from instances.jsonfile import Json, as_object, parse_json, read_bytes, shown, write_atomically
from instances.machine.machine import Machine
from instances.measured import Profile
from instances.problems import PROBLEMS
from instances.validation import adapter_of, validate, validate_as
from solver.plan.claims import Seconds, gap_of, unequal
from solver.plan.claims import Status as Status
from solver.plan.faces import FACES

if TYPE_CHECKING:
    from formulations.fusion.latency.events import Event
    from solver.plan.figures import Figure
    from solver.plan.why import Why

#: The first field of every plan file; a reader refuses other versions.
FORMAT: Final = "certile-plan/3"
Gap = Annotated[float, Field(ge=0, le=1)]
Stat = int | float | str | bool | None


class Frozen(frozen.Frozen):
    """Plan data: nothing of it can be changed, and nothing unknown is read."""

    model_config = ConfigDict(allow_inf_nan=True)


class Objective(Frozen):
    """The value of the first objective and the parts that sum to it (a saving is negative)."""

    value: Natural
    unit: str
    terms: dict[str, int]


class Measures(Frozen):
    """All three measures: ticks, bytes, femtojoules."""

    time: Natural
    bytes: Natural
    energy: Natural


class Asked(Frozen):
    """What else was asked for, so that the call can be repeated."""

    time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    settings: tuple[str, ...]
    layers: tuple[str, ...] = ()
    """Only these; none: all that the problem plans."""
    pins: tuple[str, ...] = ()
    full: bool = False
    bounding: bool = True
    all_kinds: bool = False
    """`full`, `bounding`, `all_kinds`: the unreduced space; whether choices are removed by bounds first; pool and
    element-wise layers, too.
    """
    profile: Profile | None = None
    """Measured times of tasks or layers; without them those of boards are estimated, those of layers computed."""
    most: dict[str, Natural] = {}  # noqa: RUF012 - pydantic copies it
    """Of a plan on a front the most of other measures: it is the best of those that keep to them."""


class PartReplay(Frozen):
    """What the referee found."""

    ok: bool
    """Whether nothing is wrong, and (where `compared`) all figures are those of the price."""
    faults: tuple[str, ...]
    measures: dict[str, int]
    compared: bool = True
    """False where the price is a paper's printed equations, which no machine executes."""
    counts: dict[str, int] = {}  # noqa: RUF012 - pydantic copies it
    """What it counted beside measures and figures."""
    executed: Natural = 0
    """How many layers, or groups, were also computed on integers and found right."""


class PartPlan(Frozen):
    """What is said of a part that is decided by itself: a layer, or all that is planned."""

    name: str
    status: Status
    measures: dict[str, Natural]
    terms: dict[str, dict[str, int]]
    """`measures`, `terms`: all measures, and what sums to each; empty without a schedule."""
    bounds: dict[str, Natural | None]
    """By objective what no schedule is below, given what the objectives before it ended with."""
    gap: Gap | None
    """Of the first objective."""
    must: dict[str, Natural]
    """By measure what must move, by counting alone; what that is, says the page of the problem."""
    schedule: Any
    """The decisions, as the referee reads them; None if there are none."""
    figures: Any
    """What follows from them beside the measures, by problem."""
    replay: PartReplay | None
    conflicts: tuple[str, ...]
    """Demands that cannot be met together, if it is proven that there is no schedule."""
    stats: dict[str, Stat]
    """Of the engine."""
    size: dict[str, Natural] = {}  # noqa: RUF012 - pydantic copies it
    """Of the search space, where it is known; 2^53 stands for that many or more."""
    wall_s: Seconds
    """Seconds it took to decide; 0 where the answer was that of an equal part."""
    same_as: str | None = None
    """The part before it that it equals, whose schedule it has."""


@dataclass(frozen=True)
class PlanTypes:
    """The types of what a problem puts in its plans: what is planned, schedules, figures, and what parts share."""

    target: Any
    schedule: Any
    figures: Any
    shared: Any = None

    def read(self, plan: Plan, where: str) -> Plan:
        """Return a plan whose fields of JSON are of these types; raises InputError with every fault."""
        target = validate_as(self.target, plan.network_data, where, "network_data")
        parts = [
            part.model_copy(
                update={
                    name: validate_as(kind, value, where, f"parts[{number}].{name}")
                    for name, kind in (("schedule", self.schedule), ("figures", self.figures))
                    if (value := getattr(part, name)) is not None
                }
            )
            for number, part in enumerate(plan.parts)
        ]
        shared = None if plan.shared is None else validate_as(self.shared, plan.shared, where, "shared")
        return plan.model_copy(update={"network_data": target, "parts": tuple(parts), "shared": shared})

    def written(self, plan: Plan, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a plan with schedules and figures written by their types."""
        for part, row in zip(plan.parts, fields.get("parts", ()), strict=False):
            for name, kind in (("schedule", self.schedule), ("figures", self.figures)):
                if row.get(name) is not None:
                    row[name] = adapter_of(kind).dump_python(getattr(part, name), mode="json")
        return fields

    def schema(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON schema of plans with what is of these types said in full."""
        whole = json.loads(json.dumps(plan))
        row = whole["$defs"]["PartPlan"]
        places = ((whole, "network_data", self.target), (whole, "shared", self.shared),
                  (row, "schedule", self.schedule), (row, "figures", self.figures))  # fmt: skip
        for owner, name, kind in places:
            said = {"type": "null"} if kind is None else adapter_of(kind, documented=True).json_schema()
            whole["$defs"].update(said.pop("$defs", {}))
            field = owner["properties"][name]
            owner["properties"][name] = {
                **{key: field[key] for key in ("title", "description") if key in field},
                **said,
            }
        return dict(whole)


class Plan(Frozen):
    """What every plan begins with, whatever the problem; written as JSON (`certile schema` prints what holds).

    It has a row for every part that is decided by itself; what stands in schedules and figures, the problem says.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"$schema": "https://json-schema.org/draft/2020-12/schema"}
    )

    format: Literal["certile-plan/3"]
    certile: str
    """Version of certile that made the plan."""
    problem: str
    network: str
    machine: str
    """`network`, `machine`: names; the data itself is in the plan, too."""
    engine: str
    engine_version: str
    objectives: Annotated[tuple[str, ...], Field(min_length=1)]
    """As asked for, most important first."""
    unit: str
    """Of the first objective, and of `bound`."""
    status: Status
    objective: Objective | None
    bound: Natural | None
    gap: Gap | None
    """`objective`, `bound`, `gap`: the value of the first objective, what no plan is below, and ``(value - bound) /
    value``; None where unknown.
    """
    wall_s: Seconds
    conflicts: tuple[str, ...] = ()
    """Why there is no plan."""
    stats: dict[str, Stat] = {}  # noqa: RUF012 - pydantic copies it
    """Of the engine."""
    network_digest: str
    machine_digest: str
    """`network_digest`, `machine_digest`: SHA-256 of the network (of planned layers in order, where layers are
    planned), and of `machine_data`.
    """
    network_data: Any
    """What is planned: a network, or variants, buffers, applications, layers."""
    machine_data: Machine
    shared: Any = None
    """What is decided for all parts together, where layers are planned one by one and share something: homes."""
    options: Asked
    measures: dict[str, Natural] | None
    """Sums over the parts; None unless every part has a schedule."""
    parts: tuple[PartPlan, ...]

    @model_serializer(mode="wrap")
    def _typed(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Write schedules and figures as their types do."""
        return self.types.written(self, write(self)) if self.problem in PROBLEMS else write(self)

    @property
    def types(self) -> PlanTypes:
        """Of what the problem puts in its plans."""
        types: PlanTypes = FACES["problem_of"](self).types  # FACES is filled in solver/__init__.py
        return types

    @property
    def size(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    @property
    def decided(self) -> bool:
        """Whether every part has a schedule."""
        return bool(self.parts) and all(part.schedule is not None for part in self.parts)

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers, groups or stages of the plan, as the problem shows them: with names, schedules and figures."""
        rows: tuple[Any, ...] = FACES["problem_of"](self).layer_rows(self)
        return rows

    @property
    def bounds(self) -> dict[str, int | None]:
        """By objective the sum of the bounds of all parts, None if one is not known."""
        known = {name: [part.bounds.get(name) for part in self.parts] for name in self.objectives}
        return {name: None if None in of else sum(one for one in of if one is not None) for name, of in known.items()}

    @property
    def part(self) -> PartPlan:
        """Return the only part, of problems that decide all at once; raises InputError if there are several."""
        if len(self.parts) != 1:
            raise InputError(f"plan of {self.network} has {len(self.parts)} parts: name one")
        return self.parts[0]

    @property
    def schedule(self) -> Any:
        """The schedule of the only part; raises InputError if there are several."""
        return self.part.schedule

    def layer(self, name: str) -> Any:
        """Return the row of `layers` of a name; raises InputError if there is none."""
        rows = {row.name: row for row in self.layers}
        if name not in rows:
            raise InputError(f"plan of {self.network} has no layer {name!r}; it has {', '.join(rows)}")
        return rows[name]

    def to_json(self) -> str:
        """Return the plan file's text; `_typed` above writes schedules."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"

    def file_text(self, path: str | os.PathLike[str]) -> str:
        """Return what `save` writes to a path: JSON, unless the problem has another form for such a name."""
        return FACES["problem_of"](self).file_text(self, os.fspath(path)) or self.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan atomically; raises InputError if it cannot be written, OutputError if the disk is full."""
        write_atomically(path, self.file_text(path))

    @classmethod
    def from_json(cls, data: bytes | str, where: str = "plan") -> Plan:
        """Read what `to_json` wrote; raises InputError that names every fault of the schema."""
        fields = as_object(parse_json(data, where), where)
        _check_format(fields.get("format"), where)
        name = str(fields.get("problem"))
        if name not in PROBLEMS:
            raise InputError(f"{where}: field problem is {shown(fields.get('problem'))}, expected {choices(PROBLEMS)}")
        plan = validate(cls, dict(fields), where)
        return plan.types.read(plan, where)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan file; raises InputError if it is missing or not a plan."""
        return cls.from_json(read_bytes(path, what="plan"), f"plan {os.fspath(path)}")

    def why(
        self, layer: str | None = None, *, marginal: str | Iterable[str] = (), time_limit_s: float | None = None,
        rivals: bool = True,
    ) -> Why:  # fmt: skip
        """Say where time or bytes go, what binds, and what other decisions cost; parameters as of `solver.uses.why`."""
        found: Why = FACES["why"](self, layer, marginal=marginal, time_limit_s=time_limit_s, rivals=rivals)
        return found

    @property
    def timeline(self) -> tuple[Event, ...]:
        """The steps and transfers of a network in a shared memory, with when they begin and end, in ticks.

        Raises InputError for other plans, and for one without a schedule.
        """
        found: tuple[Event, ...] = FACES["problem_of"](self).timeline(self).events
        return found

    def to_frame(self) -> Any:
        """Return the layers (or groups, tasks, buffers) as a pandas DataFrame, a row each; measures are columns.

        Raises InputError if pandas is not installed: ``pip install certile[pandas]``.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame needs pandas: pip install certile[pandas]") from None
        return pandas.json_normalize(FACES["problem_of"](self).frame_rows(self), sep=".")

    def report(
        self, path: str | os.PathLike[str], *, compare: str | Sequence[str] = (), time_limit_s: float = 60.0
    ) -> None:
        """Write the plan as one HTML page that needs no network.

        `compare` are engines whose plans are drawn beside this one (``"greedy,naive"``), `time_limit_s` is for each.
        Raises InputError if plotly is not installed, an engine cannot be asked, or the file cannot be written.
        """
        FACES["report"](self, path, compare=compare, time_limit_s=time_limit_s)

    def figures(self) -> tuple[Figure, ...]:
        """Return what a report draws of the plan; `certile.plot` and `certile.to_plotly` draw one of them."""
        found: tuple[Figure, ...] = FACES["plan_figures"](self)
        return found

    def _repr_html_(self) -> str:
        """Return status and table, for notebooks."""
        return str(FACES["plan_html"](self))


def _check_format(named: Json, where: str) -> None:
    """Refuse other formats; raises InputError."""
    if named != FORMAT:
        said = "is missing" if named is None else f"is {shown(named)}"
        raise InputError(f"{where}: field format {said}, this version reads {FORMAT!r}: solve again")


def proof(objectives: Sequence[str], proven: Iterable[str]) -> dict[str, Stat]:
    """Return what a plan's stats say of several objectives: which are proven. Of one the status says it."""
    return {"proven": ",".join(proven)} if len(objectives) > 1 else {}


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status of a network: one infeasible layer decides, then one without a schedule, then one unproven."""
    found = set(statuses)
    order: tuple[Status, ...] = ("INFEASIBLE", "NO_SOLUTION_FOUND", "FEASIBLE")
    return next((s for s in order if s in found), "OPTIMAL")


def contradictions(plan: Plan) -> Iterator[str]:
    """Status, objective, bound and gap against each other."""
    value, solved = plan.objective.value if plan.objective else None, plan.status in ("OPTIMAL", "FEASIBLE")
    yield from unequal("gap", plan.gap, gap_of(value, plan.bound))
    if (value is not None) != plan.decided:
        yield "objective: a plan has one if and only if it has layers"
    if solved != plan.decided:
        yield f"status {plan.status}: a plan is OPTIMAL or FEASIBLE if and only if it has layers"
    if plan.decided and plan.conflicts:
        yield f"conflicts: a plan that has layers has none, it names {len(plan.conflicts)}"
    if plan.status == "OPTIMAL" and plan.bound != value:
        yield f"status OPTIMAL with bound {plan.bound} and value {value}"
    if plan.bound is not None and value is not None and plan.bound > value:
        yield f"bound {plan.bound} is above the value {value}"


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan of any problem; raises InputError if the file is missing or is no plan."""
    return Plan.load(path)
