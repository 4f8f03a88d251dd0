"""Cases of nests: a layer on a machine, what to minimise, demands; and simpler ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.machine.machine import Broadcast, Compute, Machine, Transfer
from instances.network.workload import Layer
from tests.adversary.cases import without
from tests.adversary.layers import (
    objectives,
    random_layer,
    random_machine,
    random_pins,
    real_layer,
    real_machine,
    sometimes_several,
)

M = TypeVar("M", bound=BaseModel)
#: Of a hundred cases: real layers, and the largest of the random ones.
_REAL, _LARGER = 6, 40


@dataclass(frozen=True)
class NestCase:
    """One question, and a nest that is known to answer it (None: none is)."""

    layer: Layer
    machine: Machine
    measures: tuple[str, ...]
    pins: tuple[str, ...] = ()
    size: str = "tiny"
    """How long a search is worth it."""
    witness: Nest | None = None


def random_case(rng: random.Random, *, cores: bool) -> NestCase:
    """Return a random case; `cores`: of a machine with several."""
    draw = rng.randrange(100)
    if draw < _REAL:
        return NestCase(real_layer(rng), real_machine(rng, cores=cores), (rng.choice(("bytes", "time")),), (), "real")
    small = draw < _REAL + _LARGER
    layer = random_layer(rng, tiny=not small)
    machine = sometimes_several(random_machine(rng, layer, cores=cores))
    if machine.timing == "double_buffered" and small:  # spaces of timelines are slow to build
        layer = random_layer(rng, tiny=True)
    size = "small" if small else "tiny"
    return NestCase(layer, machine, objectives(rng), random_pins(rng, layer, machine), size)


def case_of(case: NestCase) -> dict[str, object]:
    """Return a case as JSON data."""
    data: dict[str, object] = {
        "layer": case.layer.model_dump(mode="json"), "machine": case.machine.model_dump(mode="json"),
        "objectives": list(case.measures), "pins": list(case.pins), "size": case.size,
    }  # fmt: skip
    return data if case.witness is None else {**data, "witness": case.witness.to_json()}


def case_from(data: Mapping[str, object]) -> NestCase:
    """Return the case that `case_of` wrote.

    Raises
    ------
    InputError
        If something is missing or wrong.
    """
    missing = [name for name in ("layer", "machine", "objectives", "pins", "size") if name not in data]
    if missing:
        raise InputError(f"case: {', '.join(missing)} missing; layer, machine, objectives, pins, size are needed")
    witness = data.get("witness")
    try:
        return NestCase(
            Layer.model_validate(data["layer"]), Machine.model_validate(data["machine"]), _texts(data["objectives"]),
            _texts(data["pins"]), str(data["size"]), None if witness is None else Nest.from_json(witness, "witness"),
        )  # fmt: skip
    except ValueError as error:
        raise InputError(f"case: {' '.join(str(error).split())}") from error


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"case: a list of texts is needed, not {value!r}")
    return tuple(str(one) for one in value)


# ---- simpler cases -----------------------------------------------------------------------------------------------

#: Machine fields with their simplest value, those first whose loss says most.
_PLAIN: tuple[tuple[str, object], ...] = (
    ("tles", 1), ("tlts", 1), ("broadcast", Broadcast().model_dump()), ("layer_ticks", 0),
    ("buffering", "single"), ("im2col_rows", 0), ("sliding", False), ("reserved_bytes", 0),
    ("edge_tiles", "true"), ("psum_first_read", False), ("bias_bytes", 0), ("in_bytes", 1), ("w_bytes", 1),
    ("out_bytes", 1), ("psum_bytes", 1), ("in_layout", "CHW"), ("w_layout", "OIHW"), ("out_layout", "CHW"),
    ("overlap", "serial"), ("compute", Compute().model_dump()), ("dram", "shared"), ("byte_fj", 1), ("mac_fj", 0),
    ("sources", {}), ("description", ""),
)  # fmt: skip


def simpler(case: NestCase) -> Iterator[NestCase]:
    """Yield simpler cases: without a demand or a measure, smaller layers, plainer machines, less memory."""
    yield from (replace(case, pins=pins) for pins in without(case.pins))
    if len(case.measures) > 1:
        yield replace(case, measures=case.measures[:1])
        yield replace(case, measures=case.measures[1:])
    yield from (replace(case, layer=layer) for layer in _layers(case.layer))
    yield from (replace(case, machine=machine) for machine in _machines(case.machine))


def _layers(layer: Layer) -> Iterator[Layer]:
    data = layer.model_dump() | {"resident_in": layer.resident_in, "resident_out": layer.resident_out}
    changes: list[dict[str, object]] = [
        {"bias": False}, {"resident_in": (), "resident_out": 0}, {"resident_in": ()}, {"resident_out": 0},
        {"dilation_h": 1, "dilation_w": 1},
    ]  # fmt: skip
    for name in ("b", "g", "m", "n", "inputs", "kh", "kw", "stride_h", "stride_w"):
        changes += [{name: value} for value in _less(data[name], 1)]
    changes += [{name: value} for name in ("pad_top", "pad_left") for value in _less(data[name], 0)]
    for out, size, stride in (("r", "h", "stride_h"), ("c", "l", "stride_w")):
        for value in _less(data[out], 1):
            changes.append({out: value, size: max(1, data[size] - data[stride] * (data[out] - value))})
            changes.append({out: value})
        changes.append({size: max(1, data[size] - 1)})
    yield from _valid(Layer, data, changes)


def _valid(model: type[M], data: Mapping[str, object], changes: Iterable[Mapping[str, object]]) -> Iterator[M]:
    """What changes make of some data, where they make less of it and there is such a thing."""
    for change in changes:
        if any(data[name] != value and not _rises(data[name], value) for name, value in change.items()):
            with suppress(ValueError):
                yield model.model_validate({**data, **change})


def _less(value: int, least: int) -> list[int]:
    return sorted({max(least, value // 2), max(least, value - 1)} - {value})


def _machines(machine: Machine) -> Iterator[Machine]:
    data = {"broadcast": Broadcast().model_dump(), "layer_ticks": 0, **machine.model_dump()}
    changes: list[dict[str, object]] = [{name: value} for name, value in _PLAIN]
    if machine.off_chip:
        yield from _one_memory(machine)
    prices = data.get("transfer", Transfer().model_dump())
    for name in () if machine.off_chip else [name for name in prices if name.endswith("_ticks")]:
        changes += [{"transfer": {**prices, name: ticks}} for ticks in _less(prices[name], 0)]
    if not prices["burst_ticks"] and not machine.off_chip:
        changes.append({"transfer": {**prices, "burst_bytes": 0}})
    if data["tles"] * data["tlts"] > 1:
        changes = [c for c in changes if "tles" not in c and "tlts" not in c]
        changes += [{"tles": 2, "tlts": 1}, {"tlts": 1}]
    names = [x for x in ("ocm_bytes", "in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes") if data[x]]
    changes += [{name: data[name] - step} for name in names for step in (data[name] // 4, 16, 4, 1) if step]
    yield from _valid(Machine, data, changes)


def _one_memory(machine: Machine) -> Iterator[Machine]:
    """Fewer homes, and machines with one of the memories alone."""
    for operand, names in machine.homes.items():
        for name in names if len(names) > 1 else ():
            yield machine.model_copy(update={"homes": {**machine.homes, operand: (name,)}})
    for memory in machine.off_chip:
        plain = {"off_chip": (), "homes": {}, "transfer": memory.transfer, "byte_fj": memory.byte_fj}
        yield machine.model_copy(update=plain)


def _rises(old: object, new: object) -> bool:
    return isinstance(old, int) and isinstance(new, int) and new > old
