"""The library: instances of all problems with the best that is known of each, for whoever solves such problems.

Format `certile-library/1`, a JSON file a family (docs/library.md says every field):

    {"format": "certile-library/1", "family": "tiling-corners", "title": "...", "source": "...", "licence": "...",
     "instances": [{"name": "tiling-corners/pad-5x5", "problem": "tiling", "target": {"layer": {...}, "digest": "..."},
                    "machine": {"name": "scratchpad_24k", "set": {"ocm_bytes": 19}, "digest": "..."},
                    "objectives": ["bytes"], "known": {"status": "OPTIMAL", "values": {"bytes": 79}, ...}, ...}]}

An instance says what is asked (target, machine, objectives, pins), what is known (a value, a bound that no schedule is
below), and why: the decisions that reach the value, which anybody can price and replay without a solver, and what the
engines said that proved the bound. Digests are of target and machine with all their fields, so that nobody measures
himself on something else.

The library that certile brings and library files of others are read here, the former by name. `file_schema` has the
JSON Schemas of all files that users write: networks, machines, and libraries of instances.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import BaseModel, Field, PositiveInt, model_validator

from instances.applications import Applications, applications
from instances.errors import InputError, did_you_mean
from instances.frozen import Frozen, Sparse, digest
from instances.jsonfile import Json, as_object, bundled, json_by_lines, parse_json, read_bytes, shown
from instances.load import NETWORK_FORMAT, load_machine, load_network, network_from_json, network_to_json
from instances.machine.machine import Machine
from instances.network.buffers import Buffers
from instances.network.network import Network
from instances.network.variants import Variants, load_variants
from instances.network.workload import Layer
from instances.validation import validate

#: The first field of every library file.
LIBRARY_FORMAT: Final = "certile-library/1"
#: What a target begins with that is an instance of the library: ``library:tiling-corners/pad-5x5``.
PREFIX = "library:"
Class = Literal["easy", "medium", "hard", "open"]
CLASSES: tuple[Class, ...] = get_args(Class)
#: Processor seconds below which an instance is easy, and medium.
EASY_S, MEDIUM_S = 1.0, 10.0
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+(-[a-z0-9_]+)*/[A-Za-z0-9_.+-]+$", max_length=120)]
Whole = Annotated[int, Field(ge=0)]


_TARGETS = ("layer", "network", "applications", "buffers", "variants")


class Target(Sparse):
    """What is planned: one of `layer`, `network`, `applications`, `buffers` and `variants`."""

    LEFT_OUT: ClassVar = frozenset((*_TARGETS, "size", "layers", "part_of"))

    digest: Digest
    """Of the target with all its fields: SHA-256 of its JSON with sorted keys and no blanks."""
    layer: Layer | None = None
    """One layer, by all its extents."""
    network: str | dict[str, Any] | None = None
    """A network that certile brings, by name; or all of it, as a network file has it."""
    applications: str | None = None
    """Networks with periods and deadlines, such as ``squeezenet1_1@33ms,mobilenet_v1@40ms/35ms``."""
    buffers: Buffers | None = None
    """Buffers to place."""
    variants: str | dict[str, Any] | None = None
    """A profile of variants that certile brings, by name; or all of it."""
    size: tuple[PositiveInt, PositiveInt] | None = None
    """Rows and columns of the network's input, if not its own."""
    layers: tuple[str, ...] = ()
    """Only these layers of the network."""
    part_of: str = ""
    """For people: where a layer is from."""

    @model_validator(mode="after")
    def _one(self) -> Target:
        given = [kind for kind in _TARGETS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"target: one of {', '.join(_TARGETS)} is needed, got {', '.join(given) or 'none'}")
        return self

    def load(self) -> Layer | Network | Applications | Buffers | Variants:
        """Return the target; raises InputError if there is none of its name, or it is not as the digest says."""
        found = self.found()
        made = digest(target_json(found))
        if made != self.digest:
            raise InputError(f"target {found.name}: its digest is {made}, the instance says {self.digest}")
        return found

    def found(self) -> Layer | Network | Applications | Buffers | Variants:
        """Return the target, whatever its digest is."""
        if self.applications is not None:
            return applications(self.applications)
        if self.variants is not None:
            given = self.variants
            return load_variants(given) if isinstance(given, str) else validate(Variants, dict(given), "variants")
        if self.network is not None:
            net = load_network(self.network) if isinstance(self.network, str) else network_from_json(self.network)
            return net if self.size is None else net.with_size(*self.size)
        found = self.layer or self.buffers
        assert found is not None
        return found


class MachineOf(Sparse):
    """A machine that certile brings by `name`, with some fields `set`; or all of it."""

    LEFT_OUT: ClassVar = frozenset(("name", "set", "data"))

    digest: Digest
    """Of the machine with all its fields and `set`."""
    name: str = ""
    set: dict[str, str | int] = Field(default_factory=dict)
    data: Machine | None = None
    """`name`, `set`, `data`: by name with fields that differ, as ``certile solve --set`` has them; or as a whole."""

    def load(self) -> Machine:
        """Return the machine; raises InputError if there is none, or it is not as the digest says."""
        found = self.found()
        made = digest(found.model_dump(mode="json"))
        if made != self.digest:
            raise InputError(f"machine {found.name}: its digest is {made}, the instance says {self.digest}")
        return found

    def found(self) -> Machine:
        """Return the machine, whatever its digest is."""
        return self.data or load_machine(self.name, {field: str(value) for field, value in self.set.items()})

    @property
    def settings(self) -> tuple[str, ...]:
        """As ``--set`` has them."""
        return tuple(f"{field}={value}" for field, value in self.set.items())


class Known(Frozen):
    """The best that is known."""

    status: Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE"]
    """OPTIMAL: no schedule is better, all objectives in their order. INFEASIBLE: there is none."""
    values: dict[str, Whole]
    """Of every objective, in the order of `objectives`; none if there is no schedule."""
    bound: Whole | None
    """No schedule has less of the first objective."""
    gap: Annotated[float, Field(ge=0, le=1)] | None
    """``(value - bound) / value`` of the first objective."""


class Proof(Sparse):
    """What an engine said, and the processor seconds that it took."""

    LEFT_OUT: ClassVar = frozenset(("value", "bound", "aided"))

    engine: str
    version: str
    """Of the solver that it asked, else of certile."""
    status: Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"]
    seconds: Annotated[float, Field(ge=0)]
    value: Whole | None = None
    bound: Whole | None = None
    """`value`, `bound`: of the first objective."""
    aided: bool = False
    """Whether choices were first removed by the bounds of another engine: then the two share these."""

    @property
    def by(self) -> str:
        """Who said it."""
        return f"{self.engine} (aided)" if self.aided else self.engine


class Certificate(Sparse):
    """Why it is so."""

    LEFT_OUT: ClassVar = frozenset(("plan", "conflicts", "proven_by"))

    proofs: Annotated[tuple[Proof, ...], Field(min_length=1)]
    """All engines that were asked."""
    proven_by: tuple[str, ...] = ()
    """Those that proved the value, or that there is no schedule, each by itself."""
    plan: dict[str, Any] = Field(default_factory=dict)
    """The decisions that reach the values: those fields of a plan file from which all others follow."""
    conflicts: tuple[str, ...] = ()
    """If there is no schedule: demands that cannot be met together, none of which can be left out."""

    @property
    def difficulty(self) -> Class:
        """By the fastest engine that proves it."""
        took = [one.seconds for one in self.proofs if one.by in self.proven_by]
        if not took:
            return "open"
        return "easy" if min(took) < EASY_S else "medium" if min(took) < MEDIUM_S else "hard"


class Instance(Sparse):
    """A question, and what is known of its answer."""

    LEFT_OUT: ClassVar = frozenset(("pins", "tags", "note"))

    name: Name
    """Family and name: ``tiling-corners/pad-5x5``."""
    problem: str
    target: Target
    machine: MachineOf
    objectives: Annotated[tuple[str, ...], Field(min_length=1)]
    """Measures to minimise, the most important first."""
    pins: tuple[str, ...] = ()
    """Demands on decisions, as ``certile solve --pin`` has them."""
    known: Known
    certificate: Certificate
    difficulty: Class
    """By processor seconds of the fastest engine that proves it: easy below 1, medium below 10, hard above; open: none
    did in the time that it had.
    """
    source: str
    licence: str
    """`source`, `licence`: of the data."""
    tags: tuple[str, ...] = ()
    note: str = ""
    digest: Digest
    """Of all other fields: a file that was damaged is found."""

    def sealed(self) -> Instance:
        """Return the same with its digest."""
        return self.model_copy(update={"digest": self.seal})

    @property
    def seal(self) -> str:
        """The digest of all other fields."""
        return digest(self.model_dump(mode="json", exclude={"digest"}))

    @property
    def family(self) -> str:
        """The file's name."""
        return self.name.partition("/")[0]

    @property
    def value(self) -> int | None:
        """Of the first objective."""
        return self.known.values.get(self.objectives[0])

    def whole(self) -> Instance:
        """Return the same with target and machine as a whole, so that no other file is needed."""
        target, machine = self.target, self.machine.load()
        inline: dict[str, object] = {}
        found = target.load()
        if isinstance(found, Network):
            inline = {"network": network_json(found), "size": None}
        elif isinstance(found, Variants):
            inline = {"variants": found.model_dump(mode="json")}
        said = MachineOf(digest=self.machine.digest, data=machine)
        return self.model_copy(update={"target": target.model_copy(update=inline), "machine": said}).sealed()


class Family(Frozen):
    """A file of instances; what it says of source and licence holds for those that say nothing."""

    format: Literal["certile-library/1"]
    family: Annotated[str, Field(pattern=r"^[a-z0-9_]+(-[a-z0-9_]+)*$")]
    title: str
    """One line."""
    source: str
    licence: str
    """`source`, `licence`: of the data."""
    instances: Annotated[tuple[Instance, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _named(self) -> Family:
        seen = set[str]()
        for one in self.instances:
            if one.family != self.family:
                raise ValueError(f"instance {one.name}: this is family {self.family}")
            if one.name in seen:
                raise ValueError(f"instance {one.name}: the name stands twice")
            seen.add(one.name)
        return self

    def to_json(self) -> str:
        """Return the file's text: an instance a line."""
        head = {name: getattr(self, name) for name in ("format", "family", "title", "source", "licence")}
        rows = []
        for one in self.instances:
            row = one.model_dump(mode="json", exclude_defaults=True)
            row = {k: v for k, v in row.items() if k not in ("source", "licence") or v != head[k]}
            rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        return json_by_lines(head, "instances", rows)


# ---- targets ---------------------------------------------------------------------------------------------------------


def target_json(target: Layer | Network | Applications | Buffers | Variants | tuple[Layer, ...]) -> object:
    """Return a target as plain JSON data: what its digest is of."""
    if isinstance(target, Applications):
        parts = [asked.model_dump(mode="json") for asked in target.applications]
        return [target.network.model_dump(mode="json"), parts]
    if isinstance(target, tuple):
        return [layer.model_dump(mode="json") for layer in target]
    return target.model_dump(mode="json")


def network_json(network: Network) -> dict[str, Any]:
    """Return a network as a network file has it."""
    return dict(as_object(parse_json(network_to_json(network), "network"), "network"))


def families() -> tuple[str, ...]:
    """Return the names of the families that certile brings."""
    return tuple(bundled("library", ".json"))


@cache
def family(name: str) -> Family:
    """Return a family that certile brings; raises InputError if there is none."""
    found = bundled("library", ".json")
    if name not in found:
        raise InputError(f"library: no family {shown(name)}: {did_you_mean(name, found)}see certile list library")
    return family_from_json(parse_json(found[name].read_bytes(), f"library {name}", comments=True), f"library {name}")


def load_family(path: str | os.PathLike[str]) -> Family:
    """Read a library file; raises InputError that names every fault."""
    where = f"library {os.fspath(path)}"
    return family_from_json(parse_json(read_bytes(path, what="library"), where, comments=True), where)


def family_from_json(data: Json, where: str = "library") -> Family:
    """Build a family from parsed JSON; raises InputError that names every fault."""
    fields = dict(as_object(data, where))
    if fields.get("format") != LIBRARY_FORMAT:
        raise InputError(f"{where}: field format is {shown(fields.get('format'))}, expected {LIBRARY_FORMAT!r}")
    common: dict[str, Json] = {name: fields[name] for name in ("source", "licence") if name in fields}
    rows = fields.get("instances")
    if isinstance(rows, list):
        fields["instances"] = [{**common, **row} if isinstance(row, dict) else row for row in rows]
    return validate(Family, fields, where)


def library() -> Iterator[Instance]:
    """Yield all instances that certile brings, family by family."""
    for name in families():
        yield from family(name).instances


def instance(name: str) -> Instance:
    """Return an instance by its name, with or without ``library:``; raises InputError if there is none."""
    asked = name.removeprefix(PREFIX)
    stem = asked.partition("/")[0]
    if stem in families():
        for one in family(stem).instances:
            if one.name == asked:
                return one
        near = did_you_mean(asked, [one.name for one in family(stem).instances])
        raise InputError(f"library: no instance {shown(asked)}: {near}family {stem} has {len(family(stem).instances)}")
    near = did_you_mean(stem, families())
    raise InputError(f"library: no instance {shown(asked)}: {near}names are FAMILY/NAME, see certile list library")


def chosen(
    names: Sequence[str] = (), *, problem: str | None = None, difficulty: str | None = None,
    among: Sequence[Instance] | None = None,
) -> list[Instance]:  # fmt: skip
    """Return instances: those named (an instance or a family), of a problem and class; all if nothing is said.

    They are `among` these, else those that certile brings. Raises InputError if there is none of a name, or none left.
    """
    if difficulty not in (None, *CLASSES):
        raise InputError(f"class {shown(difficulty)}: expected {', '.join(CLASSES)}")
    if among is not None:
        for name in names:
            if not any(name in (one.name, one.family) for one in among):
                raise InputError(f"library: no instance {shown(name)} in this file")
        found = [one for one in among if not names or {one.name, one.family} & set(names)]
    else:
        each = (family(name).instances if name in families() else (instance(name),) for name in names)
        found = [one for several in each for one in several] if names else list(library())
    kept = [one for one in found if problem in (None, one.problem) and difficulty in (None, one.difficulty)]
    if not kept:
        asked = [f"of {what} {one}" for what, one in (("problem", problem), ("class", difficulty)) if one is not None]
        raise InputError(f"library: no instance {' and '.join(asked)}; see certile list library")
    return list({one.name: one for one in kept}.values())


def is_instance(target: object) -> bool:
    """Whether a target names an instance: ``library:tiling-corners/pad-5x5``."""
    return isinstance(target, str) and target.startswith(PREFIX)


def list_library() -> dict[str, str]:
    """Return the families: name -> problem, how many instances of which class, and title."""
    found = {}
    for name in families():
        one = family(name)
        classes = Counter(each.difficulty for each in one.instances)
        counts = ", ".join(f"{classes[each]} {each}" for each in CLASSES if classes[each])
        problems = " and ".join(dict.fromkeys(each.problem for each in one.instances))
        found[name] = f"{problems}, {len(one.instances)} instances ({counts}): {one.title}"
    return found


def list_instances(problem: str) -> dict[str, str]:
    """Return the instances of a problem: name -> class, and what is known."""
    found = {}
    for one in library():
        if one.problem == problem:
            values = "".join(f", {name} {value:,}" for name, value in one.known.values.items())
            found[one.name] = f"{one.difficulty}, {one.known.status}{values}"
    return found


#: The files that have a schema of their own, beside plans.
FILES: dict[str, type[BaseModel]] = {"network": Network, "machine": Machine, "library": Family}


def file_schema(kind: str) -> str:
    """Return the JSON Schema of a file of `FILES` as text; keys that begin with ``//`` are comments."""
    schema: dict[str, Any] = FILES[kind].model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if kind == "network":
        schema["properties"] = {"format": {"const": NETWORK_FORMAT, "type": "string"}, **schema["properties"]}
        schema["required"] = ["format", *schema["required"]]
    if kind == "library":  # what a family says of source and licence holds for its instances
        instance = schema["$defs"]["Instance"]
        instance["required"] = [name for name in instance["required"] if name not in ("source", "licence")]
    for record in (schema, *schema["$defs"].values()):
        if record.get("additionalProperties") is False:
            record["patternProperties"] = {"^//": {}}
        if "op" in record.get("properties", {}):
            record["required"].append("op")  # it says which operator it is
    return json.dumps(schema, indent=1) + "\n"
