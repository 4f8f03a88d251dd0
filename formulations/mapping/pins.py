"""Pins of problem mapping: configurations of the cores, limits, and processors of tasks."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulations.mapping.space import Limits, Mapping
from instances.errors import InputError
from instances.machine.processors import Processors
from instances.measured import Row
from instances.network.tasks import TaskGraph

#: Pins that are numbers: their relations, the least value, the most; and words for numbers of shares.
_NUMBERS: Table[str, tuple[tuple[str, ...], int, int]] = {
    "cap": (("=", "<="), 1, 100), "period": (("<=",), 1, 2**53), "energy": (("<=",), 1, 2**62),
    "latency": (("<=",), 1, 2**53), "split": (("=",), 2, 8),
}  # fmt: skip
_WORDS = {("split", "on"): 4, ("split", "off"): 1}


@dataclass(frozen=True)
class Demands:
    """What is demanded: configurations to try, limits, the processors of some tasks by number, and shares of tasks."""

    configurations: tuple[tuple[int, ...], ...]
    limits: Limits
    fixed: Table[int, str]
    shares: int = 1
    """Into how many a task may be divided; 1: tasks are whole."""

    def restrict(self, mapping: Mapping) -> Mapping:
        """Leave the demanded processors only."""
        rows = list(mapping.times)
        for i, name in self.fixed.items():
            rows[i] = tuple(
                t if group.name == name else None for t, group in zip(rows[i], mapping.processors, strict=True)
            )
        return replace(mapping, times=tuple(rows)) if self.fixed else mapping


def demands(texts: Sequence[str], graph: TaskGraph, board: Processors, rows: Sequence[Row]) -> Demands:
    """Read pins.

    Raises
    ------
    InputError
        If a pin is unknown, contradicts another one, or asks for what the board does not have.
    """
    numbers = {task.name: i for i, task in enumerate(graph.tasks)}
    most, fixed, wanted = dict[str, int](), dict[int, str](), ""
    for text in texts:
        name, relation, value = _parts(text)
        relations, *ends = _NUMBERS.get(name, ((), 0, 0))
        if name in most and name not in numbers:
            raise InputError(f"pin {text!r}: {name} is pinned already")
        if name in numbers and relation == "=":
            if fixed.setdefault(numbers[name], value) != value:
                raise InputError(f"pin {text!r}: task {name} is pinned to {fixed[numbers[name]]} already")
        elif name == "cpu_config" and relation == "=":
            if wanted not in ("", value):
                raise InputError(f"pin {text!r}: cpu_config is pinned to {wanted} already")
            wanted = value
        elif relation in relations:
            most[name] = _WORDS.get((name, value)) or _number(text, value, *ends)
        else:
            raise InputError(
                f"pin {text!r}: problem mapping knows cpu_config=1,1,1,1, cap=50, period<=20000, energy<=N, "
                f"latency<=N, split=on and TASK=PROCESSOR, with tasks such as {', '.join([*numbers][:3])}"
            )
    found = [one for one in _configurations(wanted, board) if _timed(one, rows)]
    if not found:
        raise InputError("profile: it has no times for the groups of cores of any configuration that is asked for")
    names = {group.name for one in found for group in board.groups(one)}
    for i, name in fixed.items():
        if name not in names:
            known = ", ".join(sorted(names))
            raise InputError(f"pin {graph.tasks[i].name}={name}: there is no processor {name}, there are {known}")
    kept = [one for one in found if set(fixed.values()) <= {group.name for group in board.groups(one)}]
    if not kept:
        raise InputError(f"pins {', '.join(texts)}: no configuration of the cores has all of these processors")
    shares = most.pop("split", 1)
    return Demands(tuple(kept), Limits(**most), fixed, shares)


def _parts(text: str) -> tuple[str, str, str]:
    for relation in ("<=", "="):
        name, found, value = (part.strip() for part in text.partition(relation))
        if found and name and value:
            return name, relation, value
    raise InputError(f"pin {text!r}: write NAME=VALUE, for example cpu_config=1,1,1,1 or cap=50")


def _number(text: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit()) or not least <= int(value) <= most:
        raise InputError(f"pin {text!r}: a whole number from {least} to {most} is needed")
    return int(value)


def _configurations(wanted: str, board: Processors) -> tuple[tuple[int, ...], ...]:
    known = {",".join(map(str, one)): one for one in board.configurations}
    if not wanted:
        return board.configurations
    text = ",".join(part.strip() for part in wanted.strip("() ").split(","))
    if text not in known:
        raise InputError(f"pin cpu_config={wanted}: known are {' '.join(known)}")
    return (known[text],)


def _timed(configuration: tuple[int, ...], rows: Sequence[Row]) -> bool:
    """Whether the profile says how long tasks take on the groups of a configuration."""
    alone = max(configuration) < 2
    return all(("1*" if alone else str(cores)) in row for cores in configuration for row in rows)
