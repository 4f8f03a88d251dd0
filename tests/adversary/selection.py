"""Brute force for selection: every size, frequency, cut and option of every layer, judged by the referee alone.

A case is a few layers with a few options each on one to three stages, with one or two element types, conversions (some
are missing), hand-overs, frequencies, sizes, a memory and a budget. All choices are walked through the pipeline.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

from formulations.selection.frame import MEASURES, Setting
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation
from hwmodels.selection.replay import replay
from hwmodels.selection.schedule import Choice, Selection
from instances.machine.boards import Budget, Conversion, ElementType, Frequency, Handover, Platform, Stage
from instances.network.variants import Option, Size, VariantLayer, Variants
from tests.adversary import cases
from tests.adversary.cases import BruteForce, Known, claimed, without
from tests.adversary.claims import Claim

_TICK_PS = 1000
#: Element types and their bytes.
_TYPES = (("f32", 4), ("f16", 2))


class One(NamedTuple):
    """An option: nanoseconds, thousandths of accuracy, bytes, units of the budget."""

    stage: int
    type: int
    time: int
    loss: int
    bytes: int
    uses: int


class Row(NamedTuple):
    """A layer."""

    reads: tuple[int, ...]
    elements: int
    options: tuple[One, ...]


@dataclass(frozen=True)
class Case(cases.Case):
    """Layers and a platform; times are scaled by tenths.

    Attributes
    ----------
    conversions : tuple
        Source and target type, ns a call, ps an element.
    hands : tuple
        Source and target stage; ns to send, to receive; ps a byte; bytes of the buffer; ns in one thread.
    clocks : tuple
        Scale (tenths) of all stages, of the first one; power of the board, of every stage.
    sizes : tuple
        Thousandths of accuracy, scale (tenths).
    memory, budget, cap : int
        The most bytes, units, and of the measure `capped`; -1: no limit.
    """

    quick: ClassVar = ("search", "dynamic")
    slow: ClassVar = ("cp-sat", "milp", "milp-cbc", "exhaustive", "steps")
    rules: ClassVar = ("", "slower", "room", "option", "frequency")
    proves: ClassVar = False
    least: ClassVar = {"memory": -1, "budget": -1, "cap": -1}

    rows: tuple[Row, ...]
    stages: int
    conversions: tuple[tuple[int, int, int, int], ...]
    hands: tuple[tuple[int, ...], ...]
    clocks: tuple[tuple[int, int, int, int], ...]
    sizes: tuple[tuple[int, int], ...]
    memory: int
    budget: int
    pipeline: str
    aim: str
    capped: str
    cap: int

    def __post_init__(self) -> None:
        rows = (Row(row[0], row[1], tuple(One(*one) for one in row[2])) for row in self.rows)
        object.__setattr__(self, "rows", tuple(rows))

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """One to four layers."""
        stages, types = rng.randint(1, 3), rng.randint(1, 2)
        rows = []
        for j in range(rng.randint(1, 4)):
            reads = (
                tuple(sorted(rng.sample(range(j), rng.randint(0, min(2, j)))))
                if rng.randrange(2)
                else (j - 1,) * (j > 0)
            )
            options = tuple(
                One(rng.randrange(stages), rng.randrange(types), rng.randint(0, 20), rng.randrange(4) * 20,
                    rng.randint(0, 9), rng.randrange(3))
                for _ in range(rng.randint(1, 3))
            )  # fmt: skip
            rows.append(Row(reads, rng.randrange(20), options))
        pairs = [(a, b) for a in range(types) for b in range(types) if a != b]
        conversions = tuple((a, b, rng.randrange(8), rng.choice((0, 100, 900))) for a, b in pairs if rng.randrange(6))
        hands = tuple(
            (a, b, rng.randrange(6), rng.randrange(6), rng.choice((0, 60)), rng.randrange(5), rng.randrange(4))
            for a in range(stages) for b in range(stages) if a != b and rng.randrange(3)
        )  # fmt: skip
        clocks = tuple(
            (rng.choice((5, 10, 13)), rng.choice((10, 10, 7, 20)), rng.randrange(9), rng.randrange(9))
            for _ in range(rng.randint(1, 2))
        )
        sizes = tuple((rng.choice((500, 300)), rng.choice((10, 5))) for _ in range(rng.randint(1, 2)))
        memory, budget = rng.choice((-1, -1, rng.randint(3, 25))), rng.choice((-1, -1, rng.randint(0, 5)))
        aim, capped = (rng.choice(list(MEASURES)) for _ in range(2))
        pipeline = rng.choice(("choose", "choose", "always", "never"))
        cap = rng.choice((-1, rng.randint(0, 60)))
        return Case(tuple(rows), stages, conversions, hands, clocks, sizes, memory, budget, pipeline, aim, capped, cap)

    @property
    def variants(self) -> Variants:
        """The layers as certile is asked."""
        layers = [
            VariantLayer(
                name=f"l{j}", reads=tuple(f"l{i}" for i in row.reads), elements=row.elements,
                options=tuple(
                    Option(variant=f"v{o}", stage=f"s{one.stage}", time=one.time, type=_TYPES[one.type][0],
                           loss_ppm=1000 * one.loss, bytes=one.bytes, techniques=(f"t{o}",) if o else (),
                           uses={"units": one.uses} if self.budget >= 0 else {})
                    for o, one in enumerate(row.options)
                ),
            )
            for j, row in enumerate(self.rows)
        ]  # fmt: skip
        sizes = tuple(Size(name=f"z{k}", accuracy=a / 1000, scale=s / 10) for k, (a, s) in enumerate(self.sizes))
        return Variants(name="case", unit="ns", sizes=sizes, layers=tuple(layers))

    @property
    def platform(self) -> Platform:
        """Stages, conversions, hand-overs, clocks."""
        return Platform(
            stages=tuple(Stage(name=f"s{k}") for k in range(self.stages)),
            types=tuple(ElementType(name=name, bytes=size) for name, size in _TYPES),
            conversions=tuple(
                Conversion(source=_TYPES[a][0], target=_TYPES[b][0], call_ns=call, element_ps=element)
                for a, b, call, element in self.conversions
            ),
            handovers=tuple(
                Handover(source=f"s{a}", target=f"s{b}", send_ns=send, receive_ns=receive, byte_ps=byte,
                         buffer_bytes=buffer, serial_ns=serial)
                for a, b, send, receive, byte, buffer, serial in self.hands
            ),
            frequencies=tuple(
                Frequency(name=f"f{k}", power_mw=board, stage_mw={f"s{s}": mw for s in range(self.stages)},
                          scale={f"s{s}": (first if s == 0 else 10) * whole / 100 for s in range(self.stages)})
                for k, (whole, first, board, mw) in enumerate(self.clocks)
            ),
            memory_bytes=self.memory if self.memory > 0 else None,
            budgets=(Budget(name="units", most=self.budget),) if self.budget >= 0 else (),
            pipeline=self.pipeline,
        )  # fmt: skip

    @property
    def limits(self) -> dict[str, int]:
        """Measures and their limits: those of a percent are given in thousands."""
        scale = {"energy": 100_000, "error": 20_000, "score": 100}
        return {} if self.cap < 0 else {self.capped: self.cap * scale.get(self.capped, 1)}

    @property
    def part(self) -> SelectionPart:
        """The same for a search."""
        pins = [f"{name}<={most}" for name, most in self.limits.items()]
        return SelectionPart([Setting(self.variants, self.platform, _TICK_PS)], pins)

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """A slower option more, which nobody takes; more room; another option; another frequency."""
        if self.rule == "slower" and self.aim != "time" and not self.limits:
            slow = tuple(row._replace(options=(*row.options, row.options[0]._replace(
                time=row.options[0].time + 5, loss=row.options[0].loss + 5, bytes=row.options[0].bytes + 5
            ))) for row in self.rows)  # fmt: skip
            return replace(self, rows=slow), value
        if self.rule == "room":
            return replace(self, memory=-1, budget=-1), None
        if self.rule == "option":
            first, *others = self.rows
            extra = first.options[-1]._replace(time=0)
            return replace(self, rows=(first._replace(options=(*first.options, extra)), *others)), None
        if self.rule == "frequency":
            return replace(self, clocks=(*self.clocks, (7, 10, 3, 3))), None
        return None

    def simpler(self) -> Iterator[Self]:
        """Fewer options, conversions, hand-overs, frequencies and sizes; no last layer."""
        for k, row in enumerate(self.rows):
            for options in without(row.options) if len(row.options) > 1 else ():
                yield replace(self, rows=(*self.rows[:k], row._replace(options=options), *self.rows[k + 1 :]))
        for name in ("conversions", "hands", "clocks", "sizes"):
            table = getattr(self, name)
            for less in without(table) if len(table) > (name in ("clocks", "sizes")) else ():
                change: dict[str, Any] = {name: less}
                yield replace(self, **change)
        if len(self.rows) > 1:
            yield replace(self, rows=self.rows[:-1])

    @property
    def possible(self) -> bool:
        """Whether a memory has bytes."""
        return self.memory != 0


class SelectionTester(BruteForce[Case]):
    """The adversary of problem selection."""

    name = "selection"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """What an engine says."""
        part = case.part

        def judged(schedule: Selection) -> tuple[int | None, tuple[str, ...]]:
            walked = part.replay(schedule)
            return walked.measures.get(case.aim), (*walked.faults, *part.contains(schedule))

        return claimed(SelectionFormulation(), part, case.aim, engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """Walk through all choices."""
        return Known(least_of(case))


def least_of(case: Case) -> int | None:
    """Return the least measure of all choices that the referee finds no fault with, and that keep the limit."""
    variants, platform, best = case.variants, case.platform, None
    frames = product((s.name for s in variants.sizes), (f.name for f in platform.frequencies), platform.cuts)
    options = [[(layer.name, o.variant, o.stage) for o in layer.options] for layer in variants.layers]
    for size, frequency, cuts in frames:
        for chosen in product(*options):
            made = Selection(size, frequency, cuts, tuple(Choice(*one) for one in chosen))
            measures = replay(variants, platform, _TICK_PS, made).measures
            if measures and all(measures[name] <= most for name, most in case.limits.items()):
                best = measures[case.aim] if best is None else min(best, measures[case.aim])
    return best


TESTER = SelectionTester()
