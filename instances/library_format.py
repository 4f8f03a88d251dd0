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
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import Field, PositiveInt, model_validator

from instances.applications import Applications, applications
from instances.buffers import Buffers
from instances.digests import digest
from instances.errors import InputError
from instances.frozen import Frozen, Sparse
from instances.jsonfile import as_object, parse_json
from instances.load import load_machine, load_network, network_from_json, network_to_json
from instances.machine import Machine
from instances.network import Network
from instances.validation import validate
from instances.variants import Variants, load_variants
from instances.workload import Layer

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


class Target(Sparse):
    """What is planned: one of `layer`, `network`, `applications`, `buffers` and `variants`."""

    LEFT_OUT: ClassVar = frozenset(
        ("layer", "network", "applications", "buffers", "variants", "size", "layers", "part_of")
    )

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
        kinds = ("layer", "network", "applications", "buffers", "variants")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"target: one of {', '.join(kinds)} is needed, got {', '.join(given) or 'none'}")
        return self

    def load(self) -> Layer | Network | Applications | Buffers | Variants:
        """Return the target; raises InputError if there is none of its name, or it is not as the digest says."""
        found = self.found()
        made = digest(target_json(found))
        if made != self.digest:
            raise InputError(f"target {_named(found)}: its digest is {made}, the instance says {self.digest}")
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
        text = ",\n ".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in head.items())
        rows = []
        for one in self.instances:
            row = one.model_dump(mode="json", exclude_defaults=True)
            row = {k: v for k, v in row.items() if k not in ("source", "licence") or v != head[k]}
            rows.append("  " + json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        return "{" + text + ',\n "instances": [\n' + ",\n".join(rows) + "\n ]}\n"


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


def _named(target: Layer | Network | Applications | Buffers | Variants) -> str:
    return target.network.name if isinstance(target, Applications) else target.name
