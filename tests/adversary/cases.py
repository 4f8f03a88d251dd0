"""The adversary of a problem by brute force: what all of them do alike, and what is of the problem as methods.

A case is a frozen dataclass of numbers, texts and tuples of these: all that is drawn, so that a find repeats. It asks
its engines, is compared with all schedules, and tries one metamorphic rule.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast

from formulations.clock import Clock
from formulations.problem import Formulation, Part
from instances.network.network import Network
from solver.search.loop import decide_part
from tests.adversary.base import Disagreement
from tests.adversary.claims import Claim, asked, contradictions


@dataclass(frozen=True, kw_only=True)
class Case(ABC):
    """A tiny instance: the engines that are asked, and the rule that is tried; all else is of the problem."""

    quick: ClassVar[tuple[str, ...]]
    slow: ClassVar[tuple[str, ...]]
    """`quick`, `slow`: the engines: those that are always asked, and of the first one the rule; those that are asked
    now and then.
    """
    rules: ClassVar[tuple[str, ...]]
    """The names of rules; empty: none."""
    proves: ClassVar[bool] = True
    """Whether the first engine proves whatever it is asked."""
    least: ClassVar[Mapping[str, int]] = {}
    """Fields that simpler cases have less of, one at a time, and the least of each; 0 of what is true or false."""

    engines: tuple[str, ...] = ()
    rule: str = ""

    @classmethod
    @abstractmethod
    def drawn(cls, rng: random.Random) -> Case:
        """Return a random case, without engines and rule."""

    @abstractmethod
    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Return another case by the rule, and its value; None: not above `value`, the proven one of this case.

        Or nothing, if the rule does not hold for it. `schedule` is that of the claim.
        """

    @abstractmethod
    def simpler(self) -> Iterator[Self]:
        """Yield simpler cases, beside those with fewer engines or pins, or less of what is in `least`."""

    @property
    def possible(self) -> bool:
        """Whether it can be asked."""
        return True

    def takes(self, engine: str) -> bool:
        """Whether an engine can be asked."""
        return True

    def smaller(self) -> Iterator[Self]:
        """Yield all simpler cases that can be asked."""
        changes: list[dict[str, Any]] = [{"engines": (name,)} for name in self.engines if len(self.engines) > 1]
        changes += [{"rule": ""}] if self.rule else []
        changes += [{"pins": pins} for pins in without(getattr(self, "pins", ()))]
        for name, least in self.least.items():
            value = getattr(self, name)
            changes += [{name: type(value)(value - 1)}] if value > least else []
        cases = (*(replace(self, **change) for change in changes), *self.simpler())
        return (case for case in cases if case.possible)


class OfNetwork(Case):
    """A case that asks something of a small network."""

    @property
    @abstractmethod
    def network(self) -> Network | None:
        """The operators; None if a layer does not fit its operands."""

    @property
    def possible(self) -> bool:
        """Whether every layer fits its operands."""
        return self.network is not None

    @property
    def made(self) -> Network:
        """The network of a case that can be asked."""
        network = self.network
        assert network is not None
        return network


#: Cases of a hundred on which a solver that takes long is asked too.
_SLOW_PERCENT = 8
_PIN = re.compile(r"([A-Za-z_]+)(<=|>=|!=|=|%)(.+)")
C = TypeVar("C", bound=Case)
S = TypeVar("S")
T = TypeVar("T")
#: Seconds for one engine that is asked for a schedule.
LIMIT_S = 5.0


class Known(NamedTuple):
    """What brute force knows: the least value, None without a schedule; whether it saw all; what it found wrong."""

    least: int | None
    complete: bool = True
    faults: Sequence[str] = ()

    @classmethod
    def replayed(cls, least: int, moved: int, faults: Sequence[str]) -> Known:
        """The best of all schedules, and what the referee says of it."""
        said = f"brute force: its schedule moves {moved} by replay, not {least}: {faults[:1]}"
        return cls(least, faults=(said,) if faults or moved != least else ())


class BruteForce(ABC, Generic[C]):
    """The adversary of one problem, `kind` the type of its cases."""

    name: str
    kind: type[C]

    # ---- of the problem ----------------------------------------------------------------------------------------------

    @abstractmethod
    def claim(self, case: C, engine: str) -> Claim:
        """Return what an engine says; its schedule is priced by the referee."""

    @abstractmethod
    def known(self, case: C, claims: Sequence[Claim]) -> Known:
        """Look at all schedules, or at some that may be better than what is claimed."""

    # ---- alike -------------------------------------------------------------------------------------------------------

    def case(self, rng: random.Random) -> C:
        """Return a random tiny case."""
        engines = (*self.kind.quick, *(name for name in self.kind.slow if rng.randrange(100) < _SLOW_PERCENT))
        return replace(cast(C, self.kind.drawn(rng)), engines=engines, rule=rng.choice(self.kind.rules))

    def run(self, case: C, rng: random.Random) -> list[Disagreement]:
        """Return what cannot be; nothing is left to chance."""
        if not case.possible:
            return []
        claims = [asked(name, partial(self.claim, case, name)) for name in case.engines if case.takes(name)]
        known = self.known(case, claims)
        said = [*known.faults, *contradictions(claims, known.least, complete=known.complete)]
        for before in claims[:1] if case.rule else ():
            said += self._ruled(case, before)
        return [Disagreement(self.name, line, self.to_json(case)) for line in said]

    def _ruled(self, case: C, before: Claim) -> Iterator[str]:
        """What contradicts the rule."""
        if before.engine != case.quick[0] or before.status != "OPTIMAL" or before.value is None:
            return
        made = case.ruled(before.value, before.schedule)
        if made is None:
            return
        after, value = asked(before.engine, partial(self.claim, made[0], before.engine)), made[1]
        if value is not None:
            wrong = (after.status, after.value) != ("OPTIMAL", value)
        else:
            open_ = case.proves and after.status != "OPTIMAL"
            wrong = open_ or after.value is None or after.value > before.value
        if wrong:
            expected = "no worse" if value is None else str(value)
            yield f"{before}; by rule {case.rule}: {after}, expected {expected}"

    def smaller(self, case: C) -> Iterator[C]:
        """Yield simpler cases."""
        return case.smaller()

    def to_json(self, case: C) -> dict[str, object]:
        """Return the fields; JSON makes lists of their tuples."""
        return {field.name: getattr(case, field.name) for field in fields(case)}

    def from_json(self, data: Mapping[str, object]) -> C:
        """Return what `to_json` gave."""
        return self.kind(**{name: frozen(value) for name, value in data.items()})


def claimed(
    formulation: Formulation[S], part: Part[S], measure: str, engine: str,
    judged: Callable[[S], tuple[int | None, Sequence[str]]],
) -> Claim:  # fmt: skip
    """Ask an engine to decide a part; `judged`: the value of a schedule by the referee, and what is wrong with it."""
    said = decide_part(formulation, part, (measure,), engine, Clock.of(LIMIT_S))
    if said.schedule is None:
        return Claim(engine, said.status, None, said.bounds[measure])
    value, faults = judged(said.schedule)
    return Claim(engine, said.status, value, said.bounds[measure], tuple(faults), said.schedule)


def frozen(value: object) -> Any:
    """Return a value with tuples in place of the lists of JSON."""
    return tuple(frozen(one) for one in value) if isinstance(value, list | tuple) else value


# ---- what cases are made of ------------------------------------------------------------------------------------------


def widths(sizes: tuple[int, int, int, int]) -> dict[str, int]:
    """Return machine fields: bytes of an element of inputs, weights, results and partial sums."""
    return dict(zip(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), sizes, strict=True))


def times(value: T, factor: int) -> T:
    """Return a number, or all numbers of tuples of them, so many times; None stays."""
    made: Any = value
    if isinstance(value, tuple):
        made = tuple(times(one, factor) for one in value)
    elif value is not None:
        made = made * factor
    return cast(T, made)


def kept(pins: Iterable[str], name: str, value: Any) -> bool:
    """Say whether a value of a decision meets all pins on it."""
    return all(meets(op, value, right) for left, op, right in map(parts_of, pins) if left == name)


def parts_of(pin: str) -> tuple[str, str, str]:
    """Return decision, sign and value of a pin; empty texts if it has another form."""
    match = _PIN.fullmatch(pin)
    return (match[1], match[2], match[3]) if match else ("", "", "")


def meets(op: str, value: Any, right: str) -> bool:
    """Say whether a value has this relation to that of a pin."""
    if isinstance(value, str):
        return (value == right) == (op == "=")
    other = int(right)
    return bool({
        "=": value == other, "!=": value != other, "<=": value <= other, ">=": value >= other, "%": value % other == 0,
    }[op])  # fmt: skip


def without(values: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Yield the values without one of them."""
    return (values[:k] + values[k + 1 :] for k in range(len(values)))


def less_time(table: tuple[tuple[int | None, ...], ...]) -> Iterator[tuple[tuple[int | None, ...], ...]]:
    """Yield the times of tasks on processors, one of them halved or zero."""
    for i, row in enumerate(table):
        for p, time in enumerate(row):
            for less in sorted({0, time // 2} - {time}) if time else ():
                yield (*table[:i], (*row[:p], less, *row[p + 1 :]), *table[i + 1 :])
