"""What may be asked of `solve`: every option checked once, with a message that says what would be accepted."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from instances.errors import InputError, choices
from instances.jsonfile import destination, shown
from instances.load import load_machine, load_network, parse_overrides
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer
from solver.ask.names import AUTO as AUTO
from solver.ask.names import unknown as unknown

if TYPE_CHECKING:
    from formulations.tiling.problem import Nests

#: More processes than this are a typing error.
MOST_JOBS = 1024


def as_texts(what: str, value: str | Iterable[str] | Mapping[str, str | int] | None) -> tuple[str, ...]:
    """Return an option as texts: one text, several, or a mapping NAME -> VALUE; raises InputError for others."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        return tuple(f"{name}={item}" for name, item in value.items())
    texts = tuple(value)
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{what}: expected texts, got {shown(text)}")
    return texts


def parse_objectives(text: str | Sequence[str], measures: Mapping[str, str], problem: str) -> tuple[str, ...]:
    """Read measures, ``bytes,time`` for lexicographic objectives; raises InputError if one is unknown or repeated."""
    names = tuple(part.strip() for item in as_texts("objective", text) for part in item.split(","))
    known = choices(measures)
    if not any(names):
        raise InputError(f"objective is empty: problem {problem} minimises {known}, or several with commas")
    for name in names:
        if name not in measures:
            raise unknown("objective", name, measures)
    if len(set(names)) < len(names):
        raise InputError(f"objective {','.join(names)}: each of {known} may stand once")
    return names


def check_time_limit(seconds: float | None) -> float | None:
    """Return the limit; raises InputError unless it is None or a positive finite number of seconds."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
        raise InputError(f"time limit {shown(seconds)}: a positive number of seconds is needed, such as 10")
    return float(seconds)


def check_memory(limit: int | str | None) -> int | None:
    """Return a limit in bytes: None, a number, or a text such as ``2GiB``; raises InputError for others."""
    if limit is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*(|B|KiB|MiB|GiB)\s*", str(limit))
    if isinstance(limit, bool) or match is None or int(match[1]) < 1:
        raise InputError(f"memory limit {shown(limit)}: a positive number of bytes is needed, such as 2GiB")
    return int(match[1]) << {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[match[2]]


def check_jobs(jobs: int) -> int:
    """Return the number of processes, 0 as many as help; raises InputError for others."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 0 <= jobs <= MOST_JOBS:
        raise InputError(f"jobs {shown(jobs)}: 0 (all processors) to {MOST_JOBS} is needed")
    return jobs


def processors() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def parse_size(text: str) -> tuple[int, int]:
    """Read ``HxW``, or ``H`` for a square; raises InputError for others."""
    parts = text.strip().lower().split("x")
    if len(parts) > 2 or not all(p.isascii() and p.isdigit() and 1 <= int(p[:6]) < 10**5 for p in parts):
        raise InputError(f"size {text!r}: write rows and columns, for example 512x512")
    return int(parts[0]), int(parts[-1])


def pick_target(target: Layer | Network | str | os.PathLike[str]) -> Layer | Network:
    """Return a layer or network, loading it by name or path if need be; raises InputError if there is none."""
    if isinstance(target, Layer | Network):
        return target
    if isinstance(target, str | os.PathLike):
        return load_network(target)
    raise InputError(f"target: expected a Layer, a Network, or a name or path, got {type(target).__name__}")


def pick_network(target: Network | str | os.PathLike[str], problem: str) -> Network:
    """Return the network for a problem of whole networks, by name or path; raises InputError for a single layer."""
    network = pick_target(target)
    if isinstance(network, Layer):
        raise InputError(f"target {network.name}: problem {problem} plans whole networks, this is one layer")
    return network


def pick_machine(machine: Machine | str | os.PathLike[str] | None, settings: Sequence[str]) -> Machine:
    """Return a machine with its overrides; raises InputError if there is none, or an object is to be overridden."""
    if machine is None:
        raise InputError("machine: a bundled name or a .json file is needed (--machine): see certile list machines")
    if isinstance(machine, Machine):
        if settings:
            raise InputError("settings apply to a machine given by name or path; make another Machine instead")
        return machine
    if isinstance(machine, str | os.PathLike):
        return load_machine(machine, parse_overrides(settings))
    raise InputError(f"machine: expected a Machine, or a name or path, got {type(machine).__name__}")


def pick_nests(name: str) -> Nests:
    """Return a formulation; raises InputError with the known ones."""
    from formulations.tiling.problem import NESTS  # models import solver packages: slow, so late

    if name not in NESTS:
        raise unknown("problem", name, NESTS)
    return NESTS[name]


def pick_layers(
    target: Layer | Network, names: str | Iterable[str] | None, *, all_kinds: bool = False
) -> tuple[Layer, ...]:
    """Return the layers to plan: those named, or every conv and matmul layer, or with `all_kinds` every layer.

    Raises InputError if a layer does not exist or none is left.
    """
    layers = _named_layers(target, names, all_kinds)
    for layer in layers:
        if layer.kind == "correlation":
            raise InputError(f"layer {layer.name}: only problem mesh plans correlations")
    return layers


def _named_layers(target: Layer | Network, names: str | Iterable[str] | None, all_kinds: bool) -> tuple[Layer, ...]:
    wanted = None if names is None else tuple(dict.fromkeys(as_texts("layers", names)))
    if isinstance(target, Layer):
        if wanted not in (None, (target.name,)):
            raise InputError(f"layers {', '.join(wanted or ())}: the target is the one layer {target.name}")
        return (target,)
    if wanted is not None:
        layers = tuple(target.layer(name) for name in wanted)
    else:
        layers = target.layers if all_kinds else target.conv_layers
    if not layers:
        others = "; pools and element-wise layers: --all-kinds" if target.layers and wanted is None else ""
        what = "layers were named" if wanted is not None else "layers" if all_kinds else "conv or matmul layers"
        raise InputError(f"network {target.name}: no {what} to plan{others}")
    return layers


def check_writable(path: str | os.PathLike[str] | None) -> None:
    """Raise InputError if a file cannot be written there, before any time is spent on its contents."""
    if path is None:
        return
    target, replaced = destination(path)
    try:
        if replaced:
            # Named like the temporary file that the result is first written to.
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"):
                pass
        elif not os.access(target, os.W_OK):
            raise PermissionError(0, "no permission")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"output {os.fspath(path)}: cannot be written: {reason}") from None
