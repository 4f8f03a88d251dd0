"""Several networks that run side by side, each again and again: periods, deadlines and priorities.

They are one network of several parts, whose operators carry the application's name: ``squeezenet1_1:conv1``.

Text
    ``squeezenet1_1@33ms,mobilenet_v1@40ms/35ms``: networks by name or path, each with its period and, if it is less,
    its deadline (us, ms, s), the highest priority first.
Format `certile-application-set/1`
    ``{"format": ..., "applications": [{"network": NAME, "period_us": 33000, "deadline_us": 33000}, ...]}``; networks by
    name, or by path as seen from the file.

Source: `heterogeneous_mapping_and_banks` 3.3.5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from instances.errors import InputError
from instances.frozen import Frozen
from instances.jsonfile import MODELS, Json, as_object, parse_json, read_bytes
from instances.load import load_network
from instances.network.network import Network
from instances.validation import validate

APPLICATIONS_FORMAT = "certile-application-set/1"
_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(us|ms|s)")
#: What names of applications, objectives and pins are told apart by.
_MARKS = frozenset(":,=#@")


Microseconds = Annotated[int, Field(ge=1, le=1_000_000_000)]


class _Entry(Frozen):
    network: str = Field(min_length=1)
    period_us: Microseconds
    deadline_us: Microseconds | None = None


class _File(Frozen):
    format: Literal["certile-application-set/1"]
    applications: tuple[_Entry, ...] = Field(min_length=1, max_length=16)


class Application(Frozen):
    """One of them; the first one has the highest priority."""

    name: str
    """The network's, with ``#2`` and so on if it runs more than once."""
    operators: PositiveInt
    """Of its part of the network."""
    period_us: Microseconds
    deadline_us: Microseconds

    @model_validator(mode="after")
    def _in_time(self) -> Application:
        if self.deadline_us > self.period_us:
            raise ValueError(
                f"application {self.name}: deadline {self.deadline_us} us is after the period of {self.period_us} us; "
                "an inference ends before the next one is released"
            )
        return self


@dataclass(frozen=True)
class Applications:
    """All parts as one network, and what is asked of each; raises InputError where these are not of each other."""

    network: Network
    applications: tuple[Application, ...]

    def __post_init__(self) -> None:
        names = [one.name for one in self.applications for _ in range(one.operators)]
        if not names or names != [operator.name.partition(":")[0] for operator in self.network.operators]:
            raise InputError("applications: their operators are not those of the network")
        if len({one.name for one in self.applications}) < len(self.applications):
            raise InputError("applications: two have one name")

    @property
    def name(self) -> str:
        """Of all together."""
        return self.network.name


def is_several(text: str) -> bool:
    """Whether a target names applications: it is such a file, or no file and has a period."""
    try:
        if Path(text).is_file():
            return text.endswith(".json") and f'"{APPLICATIONS_FORMAT}"'.encode() in Path(text).read_bytes()
    except OSError:  # a name that is too long, a file that may not be read: the loader says so
        return False
    return re.search(r"@\s*[\d.]+\s*\w*", text) is not None


def applications(target: str | os.PathLike[str], *, batch: int | None = None) -> Applications:
    """Load applications from a text or a file.

    Raises
    ------
    InputError
        If a period is missing or none, a deadline is after it, or a network is unknown.
    """
    text = os.fspath(target)
    if os.path.isfile(text) or "@" not in text:
        data = dict(as_object(parse_json(read_bytes(text), text), text))
        entries, folder = validate(_File, data, text).applications, Path(text).parent
        return _joined(entries, lambda name: load_network(_beside(name, folder), batch=batch), text)
    parts = [_entry(part.strip(), text) for part in text.split(",")]
    return _joined(parts, lambda name: load_network(name, batch=batch), text)


def _beside(name: str, folder: Path) -> str:
    """A path as seen from the file; a name stays one."""
    return str(folder / name) if Path(name).suffix in (".json", *MODELS) else name


def _entry(part: str, text: str) -> _Entry:
    network, found, times = part.rpartition("@")
    period, _, deadline = times.partition("/")
    if not found or not network:
        raise InputError(
            f"applications {text!r}: {part!r} has no period; write NETWORK@PERIOD or NETWORK@PERIOD/DEADLINE, "
            "such as squeezenet1_1@33ms"
        )
    return _Entry(
        network=network, period_us=_us(period, part), deadline_us=_us(deadline, part) if deadline else None
    )  # fmt: skip


def _us(text: str, part: str) -> int:
    found = _TIME.fullmatch(text.strip())
    number = Fraction(found[1]) * _US[found[2]] if found else Fraction(0)
    if not 1 <= number <= 10**9 or number.denominator > 1:
        raise InputError(
            f"application {part!r}: {text!r} is no time; write whole microseconds up to 1000s, as 33ms, 500us or 1.5s"
        )
    return int(number)


def _joined(entries: Sequence[_Entry], load: Callable[[str], Network], text: str) -> Applications:
    """One network of all parts."""
    found, operators, names = [], [], dict[str, int]()
    for entry in entries:
        network = load(entry.network)
        if _MARKS & set(network.name):
            raise InputError(
                f"applications {text!r}: network {network.name!r}: its name has one of {' '.join(sorted(_MARKS))}"
            )
        names[network.name] = number = names.get(network.name, 0) + 1
        name = network.name if number == 1 else f"{network.name}#{number}"
        operators += [
            operator.model_copy(
                update={"name": f"{name}:{operator.name}", "inputs": tuple(f"{name}:{one}" for one in operator.inputs)}
            )
            for operator in network.operators
        ]
        data: dict[str, Json] = {
            "name": name, "operators": len(network.operators), "period_us": entry.period_us,
            "deadline_us": entry.deadline_us or entry.period_us,
        }  # fmt: skip
        found.append(validate(Application, data, f"applications {text!r}"))
    whole = Network(name="+".join(one.name for one in found)[:200], operators=tuple(operators))
    return Applications(whole, tuple(found))
