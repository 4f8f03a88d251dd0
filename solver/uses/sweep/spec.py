"""What a sweep asks: a YAML (or JSON) file of grids, validated; every fault is named with its path.

A grid is a product of lists: networks x machines x values of machine fields x problems x objectives x engines x pins.
With `include` only the points that match one of some rules are kept, with `exclude` those that match one are left out:
a rule holds where all its names do, a name where one of its values does. Such a value is a text that is compared as it
is, or begins with ``<=``, ``>=``, ``<``, ``>`` or ``!=`` and a number or a size: ``>=64KiB``. So do filters of rows.
Several grids (`grids`) take what they do not say from the top of the file, and `set` field by field.

Values of fields are written as they are (``4``, ``16KiB``, ``true``) or as a range: ``{from: 16KiB, to: 1MiB, times:
2}`` is 16, 32, .., 1024 KiB, ``{from: 1, to: 9, step: 2}`` is 1, 3, 5, 7, 9.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PositiveInt

from instances.errors import InputError, choices, did_you_mean
from instances.foreign.yamlfile import LARGEST_YAML, check_plain, parse_yaml
from instances.frozen import Frozen
from instances.jsonfile import BUNDLED_NAME, MODELS, decoded, read_bytes, shown
from instances.validation import validate

#: Values of a range.
_MOST_VALUES = 100_000
_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


# --- values ----------------------------------------------------------------------------------------------------------


def as_number(value: object) -> int | None:
    """Return a whole number or a size (``16KiB``) as a number; None for anything else.

    Raises ValueError for a size in units of 1000, which nobody means of memories.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"\s*(-?[0-9]{1,15})\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if match is None:
        return None
    if match[2].lower() in ("k", "m", "g", "kb", "mb", "gb", "kib", "mib", "gib") and match[2] not in _UNITS:
        raise ValueError("a size is written in KiB, MiB or GiB, such as 16KiB")
    return int(match[1]) * _UNITS[match[2]] if match[2] in _UNITS else None


def as_text(value: object) -> str:
    """Return one value of a field, a pin or a rule as the text that the command line takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    number = as_number(value)
    if number is not None:
        return str(number)
    if value is None:
        return "none"
    if isinstance(value, str | float) and str(value).strip():
        return str(value).strip()
    raise ValueError("a number, a size such as 16KiB, a word, true or false is needed")


def _range(given: Mapping[str, object]) -> Iterator[str]:
    """The values of a range, ends included."""
    wrong = sorted(set(given) - {"from", "to", "step", "times"})
    if wrong:
        raise ValueError(f"unknown key {shown(wrong[0])} of a range: it has from, to, and step or times")
    numbers = {name: as_number(value) for name, value in given.items()}
    first, last, step, times = (numbers.get(name) for name in ("from", "to", "step", "times"))
    if first is None or last is None or ("step" in given) == ("times" in given):
        raise ValueError("a range has from, to, and step or times, whole numbers: {from: 16KiB, to: 1MiB, times: 2}")
    if first > last or (step is None and (times is None or times < 2 or first < 1)) or (step is not None and step < 1):
        raise ValueError("a range goes upwards: from <= to, step at least 1, times at least 2 (and from at least 1)")
    for _ in range(_MOST_VALUES):
        yield str(first)
        first = first + step if step is not None else first * (times or 2)
        if first > last:
            return
    raise ValueError(f"a range of more than {_MOST_VALUES:,} values")


def _listed(value: object) -> list[object]:
    if value is None:
        raise ValueError("is empty: a value or a list of values is needed")
    found = list(value) if isinstance(value, list | tuple) else [value]
    if not found:
        raise ValueError("is an empty list: at least one value is needed")
    return found


def _values(value: object) -> tuple[str, ...]:
    """Values of a machine field."""
    found: list[str] = []
    for one in _listed(value):
        found += _range(one) if isinstance(one, dict) else [as_text(one)]
    return tuple(dict.fromkeys(found))


def _texts(value: object) -> tuple[str, ...]:
    """Names, or values of a rule."""
    return tuple(dict.fromkeys(as_text(one) for one in _listed(value)))


def _alternatives(value: object) -> tuple[tuple[str, ...], ...]:
    """Pins: every alternative is one text, a list of texts, a mapping, or ``none``."""
    found: list[list[str]] = []
    for one in _listed(value):
        if isinstance(one, dict):
            pins = [f"{as_text(name)}={as_text(item)}" for name, item in one.items()]
        elif isinstance(one, list | tuple):
            pins = [as_text(item) for item in one]
        else:
            pins = [] if one in (None, "none") else [as_text(one)]
        if pins not in found:
            found.append(pins)
    return tuple(map(tuple, found))


def _networks(value: object) -> tuple[object, ...]:
    return tuple({"network": one} if isinstance(one, str) else one for one in _listed(value))


def _rules(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _grids(value: object) -> object:
    return None if value is None else tuple(_listed(value))


def _seconds(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError("a positive number of seconds is needed, such as 10")
    return float(value)


Values = Annotated[tuple[str, ...], BeforeValidator(_values)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Pins = Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_alternatives)]
Rule = dict[str, Texts]
Rules = Annotated[tuple[Rule, ...], BeforeValidator(_rules)]


# --- the file --------------------------------------------------------------------------------------------------------


class NetworkEntry(Frozen):
    """A network, and how it is read."""

    network: Annotated[str, Field(min_length=1)]
    """Bundled name, or .json, .onnx or .tflite file."""
    batch: PositiveInt | None = None
    """Batch size; left out: that of the file."""
    size: str | None = None
    """Rows and columns of its input, ``512x512``; left out: those of the file."""
    symbols: Texts | None = None
    """Sizes of symbolic dimensions of an .onnx file: ``[H=48]``."""
    shapes: Texts | None = None
    """Shapes of inputs of an .onnx file with open sizes: ``["x=1,3,48,320"]``."""
    values: Texts | None = None
    """Inputs of an .onnx file that are constants: ``["sr=16000"]``."""
    layers: Texts | None = None
    """Only these; left out: those of the grid."""

    @property
    def label(self) -> str:
        """What the network is called in tables."""
        more = [f"batch={self.batch}"] * (self.batch is not None) + [f"size={self.size}"] * (self.size is not None)
        more += [*(self.symbols or ()), *(self.shapes or ()), *(self.values or ())]
        name, ending = os.path.splitext(os.path.basename(self.network))
        return " ".join([name if ending in (".json", *MODELS) else name + ending, *more])


class Grid(Frozen):
    """A product of lists; of `grids` what is left out is that of the whole file, and null stands for the default."""

    networks: Annotated[tuple[NetworkEntry, ...], BeforeValidator(_networks)] | None = None
    """Names or files, or ``{network: resnet50, batch: 4, size: 512x512, layers: [conv1]}``."""
    layers: Texts | None = None
    """Names of layers, or all."""
    machines: Texts | None = None
    """Bundled names, or .json files."""
    set: dict[str, Values] = Field(default_factory=dict)
    """Machine field -> its values; every combination is asked."""
    problems: Texts | None = None
    """Left out: what the machine is meant for."""
    objectives: Texts | None = None
    """Measures, or several in order: ``"bytes,time"``. Left out: the usual one of the problem."""
    engines: Texts | None = None
    """Left out: auto, the fastest exact one."""
    pins: Pins | None = None
    """Alternatives, each of one or several demands: ``[none, T_M<=8, [T_M<=8, order=OS]]``."""
    time_limit_s: Annotated[float | None, BeforeValidator(_seconds)] = None
    """Seconds for one task; left out: no limit. What a limit ends depends on the computer, and is marked."""
    all_kinds: bool | None = None
    """Whether pool and element-wise layers are asked, too."""
    include: Rules = ()
    """Rules, each a mapping name -> value or values; if there are some only points that match one are kept. Names are
    network, layer, machine, problem, objective, engine, pins, and fields in `set`, whose values may be compared:
    ``{ocm_bytes: ">=64KiB"}``.
    """
    exclude: Rules = ()
    """The same for points that are left out."""

    def over(self, base: Grid) -> Grid:
        """Return this grid with everything that it does not say itself as `base` says it."""
        mine = self.model_fields_set
        kept = {name: getattr(self if name in mine else base, name) for name in Grid.model_fields}
        return Grid.model_construct(**{**kept, "set": {**base.set, **self.set}})

    def keeps(self, values: Mapping[str, str]) -> bool:
        """Whether its rules keep a point with these values, by name."""
        if self.include and not any(_holds(rule, values) for rule in self.include):
            return False
        return not any(_holds(rule, values) for rule in self.exclude)

    def rule_faults(self, path: str) -> Iterator[str]:
        """Names and comparisons in rules that mean nothing."""
        known = [*NAMES, *self.set]
        for kind, rules in (("include", self.include), ("exclude", self.exclude)):
            for k, rule in enumerate(rules):
                for name, values in rule.items():
                    where = f"{path}{kind}[{k}].{name}"
                    if name not in known:
                        yield f"{where}: unknown name, {did_you_mean(name, known)}expected {choices(known)}"
                    yield from (f"{where}: {text}: {fault}" for text in values if (fault := comparison_fault(text)))


class Spec(Grid):
    """A sweep: one grid, or several with what they share."""

    name: str = ""
    """For people."""
    grids: Annotated[tuple[Grid, ...] | None, BeforeValidator(_grids)] = None
    """Several grids, one after the other; points that were there before are not asked twice."""

    def all(self) -> list[tuple[str, Grid]]:
        """Return every grid, complete, with its path in the file.

        Raises InputError if one has no network or no machine.
        """
        given = [("", Grid().over(self))] if self.grids is None else [
            (f"grids[{k}].", grid.over(self)) for k, grid in enumerate(self.grids)
        ]  # fmt: skip
        faults = [f"field {path}{name} is missing" for path, grid in given for name in ("networks", "machines")
                  if getattr(grid, name) is None]  # fmt: skip
        if faults:
            raise InputError(f"sweep: {'; '.join(faults)}")
        return given


def read_spec(source: Spec | Mapping[str, Any] | str | os.PathLike[str]) -> Spec:
    """Read a sweep from a file, the name of a bundled example, or data.

    Raises
    ------
    InputError
        One line with every fault, each with its path.
    """
    if isinstance(source, Spec):
        return source
    if isinstance(source, Mapping):
        check_plain(data := dict(source), "sweep")
        return validate(Spec, data, "sweep")
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"sweep: a path, a name or a mapping is needed, got {type(source).__name__}")
    text = os.fspath(source)
    if text in examples():
        return parse_spec(examples()[text], f"sweep {text}")
    if BUNDLED_NAME.fullmatch(text) and not os.path.exists(text):
        raise InputError(f"sweep {text}: no such file; bundled examples are {', '.join(examples())}")
    found = read_bytes(text, what="sweep", largest=LARGEST_YAML)
    if found.startswith(b"SQLite format 3"):
        raise InputError(f"sweep {text}: is a file of results: certile sweep show {text}; a YAML file is needed")
    return parse_spec(decoded(found, f"sweep {text}"), f"sweep {text}")


def examples() -> dict[str, str]:
    """Return the texts of the bundled examples by name."""
    folder = resources.files("solver.uses.sweep") / "examples"
    files = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): file.read_text(encoding="utf-8") for name, file in files}


def parse_spec(text: str, where: str) -> Spec:
    """Read the text of a sweep; raises InputError as `read_spec`."""
    return validate(Spec, parse_yaml(text, where), where)


# --- rules and filters ------------------------------------------------------------------------------------------------


#: Names of a point beside the fields in `set` (`solver.uses.sweep.tasks.Point.values` has them).
NAMES = ("network", "layer", "machine", "problem", "objective", "engine", "pins")
_COMPARED = re.compile(r"(<=|>=|!=|<|>|=)?\s*(.*)", re.DOTALL)


def matches(value: str, wanted: str) -> bool:
    """Whether a value is what a rule wants."""
    match = _COMPARED.fullmatch(wanted)
    sign, text = (match[1] or "=", match[2]) if match else ("=", wanted)
    left, right = _number(value), _number(text)
    if sign in ("=", "!="):
        same = value == text or (left is not None and left == right)
        return same == (sign == "=")
    if left is None or right is None:
        return False
    return {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}[sign]


def _number(text: str) -> int | None:
    try:
        return as_number(text)
    except ValueError:
        return None


def comparison_fault(text: str) -> str:
    """Return what is wrong with a value of a rule, empty if nothing is."""
    match = _COMPARED.fullmatch(text)
    if match is None or match[1] in (None, "=", "!="):
        return ""
    try:
        number = as_number(match[2])
    except ValueError as error:
        return str(error)
    return "" if number is not None else f"{match[1]} is followed by a number or a size, such as {match[1]}64KiB"


def _holds(rule: Mapping[str, Iterable[str]], values: Mapping[str, str]) -> bool:
    return all(any(matches(values.get(name, ""), wanted) for wanted in rule[name]) for name in rule)


def parse_filters(texts: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """Read filters ``NAME=VALUE``, ``NAME>=64KiB``; raises InputError for others."""
    names, found = list(known), []
    for text in texts:
        match = re.fullmatch(r"\s*([\w.]+)\s*((?:<=|>=|!=|<|>|=).+)", text, re.DOTALL)
        if match is None or (fault := comparison_fault(match[2])):
            said = "" if match is None else f": {fault}"
            raise InputError(f"filter {text!r}{said or ': write NAME=VALUE, such as layer=conv1, ocm_bytes>=64KiB'}")
        if match[1] not in names:
            hint = did_you_mean(match[1], names)
            raise InputError(f"filter {text!r}: unknown name {match[1]!r}: {hint}expected {choices(names)}")
        found.append((match[1], match[2].strip()))
    return found
