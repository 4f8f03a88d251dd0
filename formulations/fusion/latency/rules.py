"""Plans by rules, as compilers make them: what people compare the search for the least time with.

    double-buffered   layer by layer, no map stays; a load lies beside the step before its own, a store beside the one
                      after it. Tiles and strips of a layer are those of the least time in all memory or in half of it
    group-by-group    the groups whose times add up to the least (`Paths` whose clocks wait for each other behind every
                      group), each with the best order of its own transfers: none begins before its group
    greedy-prefetch   the same groups; every load comes in the order of the steps that read them, as soon as the memory
                      has room for it, across groups, too

An example: three layers in a memory that holds the weights of two beside the largest step. By the first two rules each
layer waits for its weights; by the third those of the next one are loaded while a layer runs.

They prove nothing. The timeline that prices them is that of all plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from formulations.clock import ENDLESS, Clock
from formulations.fusion.arcs import Groups
from formulations.fusion.latency.options import Alone, Options, Passed, There, Way
from formulations.fusion.latency.paths import Paths
from formulations.fusion.latency.search import LABELS, LONGEST
from formulations.fusion.latency.timelines import Laid, Timelines
from formulations.fusion.orders import OrderDemands
from formulations.fusion.schedule import Runs
from formulations.fusion.steps import Part
from formulations.prefetch.guards import Draft, Order, When
from formulations.problem import Unable
from hwmodels.schedule import LayerRun, Nest

_NO_PLACE = "no layer-by-layer plan, or no groups, of whole rows and whole maps fit"


class Doubled(OrderDemands):
    """Two buffers."""

    @property
    def fixed(self) -> bool:
        """Nothing is put off."""
        return True

    def order(self, draft: Draft) -> tuple[Order, When]:
        """A step ahead, a step behind."""
        return draft.doubled() if self.ahead else super().order(draft)


class Greedy(Doubled):
    """As soon as there is room."""

    def order(self, draft: Draft) -> tuple[Order, When]:
        """As early as memory allows."""
        return draft.greedy() if self.ahead else super().order(draft)


@dataclass(frozen=True)
class Rules:
    """What plans by rules are made of: groups, nests of layers by themselves (`alone`), and timelines."""

    groups: Groups
    alone: Alone
    timelines: Timelines

    @cached_property
    def options(self) -> Options:
        """Ways to run groups."""
        return Options(self.groups, self.groups.demands.order.largest, self.alone, in_order=True)

    def double_buffered(self, clock: Clock = ENDLESS) -> Runs:
        """Layer by layer; raises Unable if a layer has no place, TimeUp."""
        return self.queued(self.layer_by_layer(clock), self._with(Doubled, groups=0))

    def at_once(self) -> Runs:
        """Layer by layer with two buffers, each in strips or in blocks of channels: without a search, in no time.

        Raises Unable if a layer has no place so.
        """

        def in_blocks(t: int, run: LayerRun, room: int, most: int | None) -> tuple[Nest, Part] | None:
            return self.alone(t, run, room, most) if most else None

        options = Options(self.groups, self.groups.demands.order.largest, in_blocks, in_order=True)
        place, path = (There(), options.room), list[Passed]()
        for t in range(len(self.groups.net.layers)):
            ways = options.ways(t, t, [place])[place]
            if not ways:
                raise Unable(_NO_PLACE)
            path.append(Passed(min(ways, key=self._ticks), There(), There()))
        return self.queued(path, self._with(Doubled, groups=0))

    def group_by_group(self, clock: Clock = ENDLESS) -> Runs:
        """No prefetch across groups; raises Unable, TimeUp."""
        return self.queued(self._path(clock), self._with(OrderDemands, groups=0))

    def greedy_prefetch(self, clock: Clock = ENDLESS) -> Runs:
        """The groups of `group_by_group`, loads as soon as they fit; raises Unable, TimeUp."""
        return self.queued(self._path(clock), self._with(Greedy))

    def queued(self, path: Sequence[Passed], timelines: Timelines) -> Runs:
        """A path with the order of its transfers."""
        runs = self.options.runs(path)
        return replace(runs, queue=self._laid(path, timelines, runs).queue)

    def layer_by_layer(self, clock: Clock = ENDLESS) -> list[Passed]:
        """Every layer by itself with the fastest of its ways in all memory and in half of it, with two buffers."""
        timelines, known, path = self._with(Doubled, groups=0), dict[object, int](), list[Passed]()
        for t, layer in enumerate(self.groups.net.layers):
            clock.tick()
            each = [Passed(way, There(), There()) for way in self._by_itself(t)]
            if not each:
                raise Unable(_NO_PLACE)
            alike = layer.signature(), tuple((way.option, way.kept, way.nest, way.place) for way, *_ in each)
            if alike not in known:
                laid = [self._laid([one], timelines).ticks for one in each]
                known[alike] = laid.index(min(laid))
            path.append(each[known[alike]])
        return path

    def _by_itself(self, t: int) -> Iterator[Way]:
        """Yield the ways of a layer that take the least time by their matrices: in strips, and by a nest."""
        for room in (self.options.room, self.options.room // 2):
            place = There(), room
            ways = self.options.ways(t, t, [place])[place]
            for mine in ([way for way in ways if way.nest is None], [way for way in ways if way.nest is not None]):
                yield from [min(mine, key=self._ticks)] if mine else ()

    def _ticks(self, way: Way) -> int:
        """What a way takes at least, by its matrix."""
        return int(way.matrix[self.options.ends].max())

    def _path(self, clock: Clock) -> list[Passed]:
        """The groups whose times by themselves add up to the least."""
        paths = Paths(self.options, clock, LONGEST, LABELS, apart=True)
        for _, end in paths.ends()[:1]:
            return paths.path(end)
        raise Unable(_NO_PLACE)

    def _with(self, kind: type[OrderDemands], groups: int | None = None) -> Timelines:
        """Timelines with orders of some kind, and what is asked of orders anyway."""
        asked = self.timelines.demands
        few = [number for number in (asked.groups, groups) if number is not None]
        demands = kind(asked.ahead, min(few, default=None), asked.transfer, asked.due)
        return Timelines(self.timelines.prices, self.timelines.layers, demands)

    def _laid(self, path: Sequence[Passed], timelines: Timelines, runs: Runs | None = None) -> Laid:
        runs = runs or self.options.runs(path)
        return timelines.laid(runs, [(way.first, way.last, run) for (way, *_), run in zip(path, runs, strict=True)])
