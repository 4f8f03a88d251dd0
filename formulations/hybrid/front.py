"""F7 hybrid: all chains that no other beats in bytes and ticks, within caps of both.

Sets
    options of groups, with all undominated programs of their pieces; labels of a cut point: bytes and ticks of a chain
    up to it, by whether its last group is in one piece
Optimal means
    Costs add up, so a label that another one beats in both measures is superfluous. Left out are options, and labels,
    that with the least they need before and behind them are above a cap: bounds as in `formulations.hybrid.chain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from formulations.banks.bounds import Point
from formulations.clock import Clock
from formulations.hybrid.chain import Chain, Chosen, backward, forward
from formulations.hybrid.costs import Known, Program
from formulations.hybrid.options import Option
from formulations.hybrid.space import Cut


class Mix(NamedTuple):
    """What pieces cost together, and which of their programs run how often."""

    point: Point
    uses: tuple[tuple[Program, int], ...]


def mixes(programs: Sequence[Program], many: int) -> list[Mix]:
    """What so many pieces that are alike may cost together: `found` numbers how often each program runs."""
    found = {(0,) * len(programs): Point(0, 0)}
    for _ in range(many if len(programs) > 1 else 0):
        more: dict[tuple[int, ...], Point] = {}
        for counts, point in found.items():
            for at, one in enumerate(programs):
                key = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
                more[key] = plus(point, one.point)
        kept, least = {}, None
        for key, point in sorted(more.items(), key=lambda item: item[1]):
            if least is None or point.ticks < least:
                kept[key], least = point, point.ticks
        found = kept
    if len(programs) == 1:
        found = {(many,): Point(many * programs[0].point.bytes, many * programs[0].point.ticks)}
    return [
        Mix(point, tuple((p, n) for p, n in zip(programs, key, strict=True) if n)) for key, point in found.items()
    ]  # fmt: skip


def plus(one: Point, two: Point) -> Point:
    """Both together."""
    return Point(one.bytes + two.bytes, one.ticks + two.ticks)


def choices(cut: Cut, option: Option, limit: Clock) -> tuple[list[Chosen], bool]:
    """An option with all programs of its pieces that no other beats, and whether these are all."""
    known = option.known("front", limit)
    ready = [one for one in known.values() if one is not None]
    if len(ready) < len(option.pieces):
        return [], True
    totals: list[tuple[Point, tuple[tuple[tuple[Program, int], ...], ...]]] = [(Point(0, 0), ())]
    for one, many in zip(ready, option.pieces.values(), strict=True):
        kind = mixes(one.programs, many)
        joined = sorted(
            ((plus(point, mix.point), (*uses, mix.uses)) for point, uses in totals for mix in kind),
            key=lambda pair: pair[0],
        )
        totals = []
        for point, uses in joined:
            if not totals or point.ticks < totals[-1][0].ticks:
                totals.append((point, uses))
    return [Chosen(cut, option, uses) for _, uses in totals], all(map(_proven, ready))


def _proven(known: Known) -> bool:
    return known.proven


class Label(NamedTuple):
    """A chain up to a cut point."""

    point: Point
    before: Label | None
    chosen: Chosen | None

    def chain(self) -> list[Chosen]:
        """Its groups in order."""
        made, label = list[Chosen](), self
        while label.before is not None and label.chosen is not None:
            made.append(label.chosen)
            label = label.before
        return made[::-1]


@dataclass
class Fronts:
    """The search, by the chains of both measures."""

    chains: Mapping[str, Chain]
    caps: Point
    limit: Clock
    proven: bool = True

    def run(self) -> list[list[Chosen]]:
        """The chains that no other beats within the caps, fewest bytes first; `proven` says whether these are all."""
        stages = self.chains["bytes"].stages
        found = self._within()
        #: By cut point the labels whose last group is in pieces, and those whose last group is whole.
        labels: list[tuple[list[Label], list[Label]]] = [([], []) for _ in range(stages + 1)]
        labels[0][0].append(Label(Point(0, 0), None, None))
        for begin in range(stages):
            for cut, chosen in sorted(found.get(begin, {}).items()):
                self.limit.tick()
                mine = labels[begin][0] if cut.whole else [*labels[begin][0], *labels[begin][1]]
                there = labels[cut.end][cut.whole]
                there += [Label(plus(label.point, one.point), label, one) for label in mine for one in chosen]
                there[:] = _lowest(label for label in there if self._fits(label.point, cut))
        return [label.chain() for label in _lowest([*labels[stages][0], *labels[stages][1]])]

    def _fits(self, point: Point, cut: Cut) -> bool:
        behind = [self._behind[name][cut.end][cut.whole] for name in ("bytes", "time")]
        return point.bytes + behind[0] <= self.caps.bytes and point.ticks + behind[1] <= self.caps.ticks

    def _within(self) -> dict[int, dict[Cut, list[Chosen]]]:
        """By first stage the groups with all options that may be part of a chain within the caps."""
        ahead = {name: forward(chain.arcs, chain.stages) for name, chain in self.chains.items()}
        self._behind = {name: backward(chain.arcs, chain.stages) for name, chain in self.chains.items()}
        found: dict[int, dict[Cut, list[Chosen]]] = {}
        for cut in set.intersection(*(set(chain.arcs) for chain in self.chains.values())):
            spare = Point(*(
                cap - ahead[name][cut.begin][not cut.whole] - self._behind[name][cut.end][cut.whole]
                for name, cap in zip(("bytes", "time"), self.caps, strict=True)
            ))  # fmt: skip
            for option in self._options(cut, spare):
                self.limit.tick()
                chosen, proven = choices(cut, option, self.limit)
                self.proven &= proven
                found.setdefault(cut.begin, {}).setdefault(cut, []).extend(chosen)
        return found

    def _options(self, cut: Cut, spare: Point) -> Iterator[Option]:
        """The options of a group that do not cost more than there is to spare, by bounds that take little."""
        pair = self.chains["bytes"].pairs[cut]
        if any(self.chains[name].arcs[cut] > most for name, most in zip(("bytes", "time"), spare, strict=True)):
            return
        rough = self.chains["time"].pairs[cut].every()
        for grid, (option, least) in pair.every().items():
            self.limit.tick()
            if least > spare.bytes or rough[grid][1] > spare.ticks:
                continue
            floor = option.floor("time")
            if floor.bytes <= spare.bytes and floor.ticks <= spare.ticks:
                point, _ = option.bound("bytes", self.limit)
                if point.bytes <= spare.bytes:
                    yield option


def _lowest(labels: Iterable[Label]) -> list[Label]:
    """Those that no other beats, by bytes."""
    kept: list[Label] = []
    for label in sorted(labels, key=lambda one: one.point):
        if not kept or label.point.ticks < kept[-1].point.ticks:
            kept.append(label)
    return kept
