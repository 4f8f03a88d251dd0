"""All ways to run a group of layers strip by strip, made naively and walked by the referee.

An example: of two 3x3 convolutions on 8 rows, strips of 1 to 8 rows of the second one's map; in each what the next
strip needs is kept (with steps of warm-up, or without) or computed again; what comes from outside and is read by
several layers is kept, or loaded for each of them; what is read in single pixels with others between is loaded whole,
or sampled, those pixels alone; whole rows, or halves, quarters ... of them; and all sets of layers that take turns for
single channels.
Lines of maps are worked out from the last map back, one at a time.

What a way moves is what `hwmodels.fusion.replay.strips.Walk` does moment by moment; what it holds is what lies in a
memory in which `hwmodels.fusion.replay.execute` runs it row by row: no count of the referee or of prices is asked. A
way in which `hwmodels.fusion.replay.count` sees a fault is left out, and so is a group that `replay_fusion` refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, pairwise, product

import numpy as np
import numpy.typing as npt

from hwmodels.fusion.replay.count import Count, weight_bytes
from hwmodels.fusion.replay.execute import execute
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.fusion.replay.strips import Walk
from hwmodels.schedule import Blocks, FusedRun, Hold, LayerRun, Nest, Pace, Steps, Stream
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, MatMul, Operator, Pool
from instances.network.stores import Stores
from instances.network.workload import Layer

Ints = npt.NDArray[np.int64]
NEVER = 2**60
MODES = ("retain", "lead", "recompute")
#: Groups compute at most so many times the MACs of their layers once.
MOST_AGAIN = 2
_NONE = Pace(1, 0, 0, 0)
#: Numbers of lines that are tried where all of a map is made.
_MORE = 24


def used_after(found: Stores, store: int, last: int) -> bool:
    """Say whether somebody needs a store when layer `last` has run."""
    mine = found.stores[store]
    return mine.dram or mine.results > 0 or not mine.readers or mine.readers[-1] > last


@dataclass(frozen=True)
class Way:
    """A way to run a group, nothing else on chip.

    Attributes
    ----------
    run : FusedRun
        Without weights that stay.
    moments : ndarray (makes, streams + 1)
        Bytes of every stream when a layer has made a piece, and of partial sums, as they lay in a memory.
    loads : tuple of (stream, first row, row behind the last one, bytes of a row)
    visits : tuple of int
        Of every layer those in which it makes something.
    """

    run: FusedRun
    moments: Ints
    loads: tuple[tuple[int, int, int, int], ...]
    visits: tuple[int, ...]
    macs: int

    def peak(self, whole: frozenset[int]) -> int:
        """The most bytes of strips, when these stores lie on chip anyway."""
        counted = [k for k, stream in enumerate(self.run.streams) if stream.store not in whole]
        counted.append(len(self.run.streams))
        return int(self.moments[:, counted].sum(axis=1).max())

    def loaded(self, store: int, rows: int) -> int:
        """Bytes that are loaded of a store, when so many first rows that readers see are on chip."""
        mine = (load for load in self.loads if self.run.streams[load[0]].store == store)
        return sum(each * max(0, end - max(begin, rows)) for _, begin, end, each in mine)


class Weights:
    """The best use of some bytes for weights: every set of layers that stay whole, the others by visits."""

    def __init__(self, layers: Sequence[Layer], machine: Machine, tensors: Sequence[object] = ()) -> None:
        """Of layers; `tensors`: what they multiply by, each thing counts once and is needed whenever one runs."""
        things = list(tensors or range(len(layers)))
        self.first = [things.index(one) for one in things]
        sizes = [weight_bytes(layer, machine) for layer in layers]
        self.filters = [size // (layer.g * layer.m) for size, layer in zip(sizes, layers, strict=True)]
        self.sizes = [size if self.first[k] == k else 0 for k, size in enumerate(sizes)]

    def best(self, visits: Sequence[int], room: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the fewest bytes that are loaded, and what stays of every layer; None if a filter finds no room."""
        least: tuple[int, tuple[int, ...]] | None = None
        visits = [sum(n for n, first in zip(visits, self.first, strict=True) if first == k) for k in range(len(visits))]
        weighty = [k for k, size in enumerate(self.sizes) if size]
        for whole in chain.from_iterable(combinations(weighty, n) for n in range(len(weighty) + 1)):
            stay = [size if k in whole else 0 for k, size in enumerate(self.sizes)]
            rest = [k for k in weighty if k not in whole]
            left = room - sum(stay) - max((self.filters[k] for k in rest), default=0)
            if left < 0:
                continue
            for k in sorted(rest, key=lambda k: -visits[k]):
                stay[k] = min(left, self.sizes[k])
                left -= stay[k]
            moved = self.moved(visits, stay)
            if least is None or moved < least[0]:
                least = moved, tuple(stay)
        return least

    def moved(self, visits: Sequence[int], stay: Sequence[int]) -> int:
        """Bytes that are loaded if so many bytes stay."""
        return sum(kept + n * (size - kept) for size, kept, n in zip(self.sizes, stay, visits, strict=True))

    def room(self, stay: Sequence[int]) -> int:
        """Bytes on chip: what stays, and the largest filter of layers that do not stay whole."""
        parts = zip(self.sizes, self.filters, stay, strict=True)
        return sum(stay) + max((one for size, one, kept in parts if kept < size), default=0)


class Ways:
    """All ways to run layers `first` to `last`; `heights` says which strips are allowed, `modes` which halos."""

    def __init__(
        self, network: Network, found: Stores, machine: Machine, first: int, last: int,
        allowed: Callable[[int], bool] = lambda _: True, modes: Sequence[str] = MODES, blocks: bool = True,
    ) -> None:  # fmt: skip
        self.network, self.found, self.machine = network, found, machine
        self.first, self.last, self.allowed, self.modes = first, last, allowed, modes
        self.layers, self.blocks = range(first, last + 1), blocks

    @cached_property
    def weights(self) -> Weights:
        """Of the layers."""
        layers = [self.found.layers[t] for t in self.layers]
        return Weights(layers, self.machine, [self._tensor(t) for t in self.layers])

    def _tensor(self, t: int) -> object:
        """The operator that has a layer's weights, with its biases."""
        operator = self.network.operator(self.found.layers[t].name)
        of = getattr(operator, "weights_of", "") or operator.name
        return (of, operator.name if getattr(operator, "own_bias", False) else "") if len(operator.inputs) == 1 else t

    def every(self) -> Iterator[Way]:
        """Yield all that the referee accepts."""
        if self._waits():
            return
        accepted: dict[tuple[Blocks, ...], bool] = {}
        for alone in self._runs():
            for blocks in self._turns():
                run = replace(alone, blocks=blocks)
                if blocks not in accepted:
                    accepted[blocks] = self._accepted(run)
                if accepted[blocks] and (way := self._walked(run)) is not None:
                    yield way
            if not accepted[()]:
                return

    # ---- what may run together ---------------------------------------------------------------------------------------

    def _waits(self) -> bool:
        """Whether a layer needs something complete that is computed in the group: an operand that is no map."""
        number = {layer.name: t for t, layer in enumerate(self.found.layers)}
        inputs = {o.name: o.inputs for o in self.network.operators}

        def makers(name: str) -> set[int]:
            return ({number[name]} if name in number else set()).union(*(makers(one) for one in inputs[name]))

        def hard(name: str) -> set[int]:
            """The layers behind all that must be complete before an operator begins."""
            operator = self.network.operator(name)
            whole = operator.inputs[1:] if isinstance(operator, MatMul) else ()
            through = [n for n in operator.inputs if n not in whole and n not in number]
            return set().union(*(makers(n) for n in whole), *(hard(n) for n in through))

        return any(u in hard(self.found.layers[t].name) for t in self.layers for u in self.layers)

    def _accepted(self, run: FusedRun) -> bool:
        """Whether the referee takes such a run, all other layers whole and a memory in which everything fits."""
        wide = self.machine.model_copy(update={"ocm_bytes": 2**24})

        def alone(t: int) -> LayerRun:
            return LayerRun(Nest(tuple(Hold(x) for x in self.found.layers[t].operands)), {}, 0, run.banks)

        runs: list[LayerRun | FusedRun] = [
            *map(alone, range(self.first)),
            run,
            *map(alone, range(self.last + 1, len(self.found.layers))),
        ]
        return not replay_fusion(self.found, wide, runs).faults

    def _turns(self) -> Iterator[tuple[Blocks, ...]]:
        """All sets of layers that may take turns, for one channel each, whether or not the referee takes them."""
        if not self.blocks:
            yield ()
            return
        pairs = [
            Blocks(p, q, 1) for p in self.layers for q in self.layers if p < q and self._pays(p, q)
        ]  # fmt: skip
        for number in range(len(pairs) + 1):
            for some in combinations(pairs, number):
                if all(one.last < other.first for one, other in pairwise(some)):
                    yield some

    def _pays(self, p: int, q: int) -> bool:
        """The rule of the space: the channels of the first map have more bytes than sums of the last one add.

        Where nothing is added up layers by themselves move no more, but for what they would sample.
        """
        adds, machine = self.found.layers[q], self.machine
        if adds.n == 1:
            return False
        pixels = 1
        for t in range(p + 1, q + 1):
            pixels *= _window(self.found.layers[t], "rows")[1] * _window(self.found.layers[t], "columns")[1]
        more = max(0, machine.psum_bytes - machine.out_bytes) * adds.m
        return adds.n * machine.out_bytes * pixels > more

    # ---- runs --------------------------------------------------------------------------------------------------------

    def _runs(self) -> Iterator[FusedRun]:
        """Every height, halo, part of the columns, and set of maps that are loaded for each reader."""
        layer = self.found.layers[self.last]
        for twice, sampled in product(_subsets(self._shared()), _subsets(self._thin())):
            streams, seen = self._streams(twice), self._seen(sampled)
            parts = {-(-layer.c // 2**k) for k in range(1, 20)} - {layer.c}
            wide = [(layer.c, "lead"), *product(sorted(parts), self.modes)]
            tall = product(filter(self.allowed, range(1, layer.r + 1)), self.modes)
            over = [self._axis(streams, seen, "columns", *one) for one in wide]
            for across, down in product(over, [self._axis(streams, seen, "rows", *one) for one in tall]):
                if across is None or down is None:
                    continue
                placed = tuple(
                    replace(s, rows=high, columns=wide)
                    for s, high, wide in zip(streams, down[1], across[1], strict=True)
                )
                unwritten = tuple(
                    0 if used_after(self.found, s, self.last) else self.found.stores[s].rows
                    for s in (self.found.writes[t] for t in self.layers)
                )
                yield FusedRun(
                    self.first, self.last, down[0], across[0], placed, (0,) * len(self.layers), {}, unwritten,
                    tuple(range(self.machine.ocm_banks)), sampled=tuple(sorted(sampled)),
                )  # fmt: skip

    def _outside(self) -> list[int]:
        made = {self.found.writes[t] for t in self.layers}
        return list(dict.fromkeys(s for t in self.layers for s in self.found.reads[t] if s not in made))

    def _shared(self) -> list[int]:
        return [s for s in self._outside() if sum(s in self.found.reads[t] for t in self.layers) > 1]

    def _thin(self) -> list[int]:
        """What is read in single pixels, the same ones by all its readers, with others between."""
        found = []
        for s in self._outside():
            readers = [self.found.layers[t] for t in self.layers if s in self.found.reads[t]]
            operators = [self.network.operator(one.name) for one in readers]
            windows = {(one.h, one.l, one.stride_h, one.stride_w) for one in readers}
            if len(windows) == 1 and max(*windows.copy().pop()[2:]) > 1 and all(map(_single, operators)):
                found.append(s)
        return found

    def _seen(self, sampled: Sequence[int]) -> list[Layer]:
        """The layers, on what is loaded of their maps."""
        thin = {t for t in self.layers if set(sampled).intersection(self.found.reads[t])}
        return [
            one.model_copy(update={"h": one.r, "l": one.c, "stride_h": 1, "stride_w": 1}) if t in thin else one
            for t, one in enumerate(self.found.layers)
        ]

    def _streams(self, twice: Sequence[int]) -> list[Stream]:
        made = []
        for t in self.layers:
            store = self.found.writes[t]
            readers = tuple(u for u in range(t + 1, self.last + 1) if store in self.found.reads[u])
            made.append(Stream(store, t, readers, False, _NONE, _NONE))
        for store in self._outside():
            readers = tuple(u for u in self.layers if store in self.found.reads[u])
            some = [(u,) for u in readers] if store in twice else [readers]
            made += [Stream(store, mine[0], mine, True, _NONE, _NONE) for mine in some]
        return made

    def _axis(
        self, streams: Sequence[Stream], seen: Sequence[Layer], axis: str, size: int, mode: str
    ) -> tuple[Steps, list[Pace]] | None:
        """Steps and lines along an axis; None if strips of this size do not suit all maps.

        What is all of the last map may be more than that.
        """
        whole = self._outputs(self.last, axis)
        some = (self._advance(seen, axis, more) for more in range(size, size + (_MORE if size >= whole else 1)))
        steps = next((one for one in some if one is not None), None)
        if steps is None:
            return None
        lines: dict[int, Pace] = {}
        for k in sorted(range(len(streams)), key=lambda k: (streams[k].outside, -streams[k].maker)):
            lines[k] = self._line(streams[k], seen, axis, lines, steps[streams[k].store])
        paces = [lines[k] for k in range(len(streams))]
        ends = [p for s, p in zip(streams, paces, strict=True) if self._result(s)]
        if mode == "recompute":
            again = [replace(pace, ahead=pace.ahead + pace.step) for pace in paces]
            return Steps("recompute", 0, max(-(-pace.end // pace.step) for pace in ends) - 1), again
        moving = [pace for pace in paces if pace.step]
        first = 1 - max(0, *(-(-pace.ahead // pace.step) for pace in moving)) if mode == "retain" else 1
        return Steps("retain", first, max(-(-(pace.end - pace.ahead) // pace.step) for pace in ends)), paces

    def _result(self, stream: Stream) -> bool:
        return not stream.outside and (not stream.readers or used_after(self.found, stream.store, self.last))

    def _advance(self, seen: Sequence[Layer], axis: str, size: int) -> dict[int, int] | None:
        """What every store advances by in a step: what a layer makes, times its stride, is what it reads.

        One row for all rows of a layer is loaded and never advances; if it is made here, a step makes all of these.
        """
        made = {self.found.writes[t] for t in self.layers}
        known = {self.found.writes[self.last]: size}
        for _ in self.layers:
            for t in reversed(self.layers):
                out, stride = self.found.writes[t], _window(seen[t], axis)[1]
                for source in self.found.reads[t]:
                    if self._spread(t, source, axis):
                        if source not in made:
                            known[source] = 0 if known.setdefault(source, 0) == 0 else -1
                            continue
                        number = self._outputs(t, axis)
                        if out in known and known.setdefault(source, known[out] // number) * number != known[out]:
                            return None
                        if source in known and out not in known:
                            known[out] = known[source] * number
                        continue
                    if out in known and known.setdefault(source, known[out] * stride) != known[out] * stride:
                        return None
                    if source in known and out not in known:
                        if known[source] % stride:
                            return None
                        known[out] = known[source] // stride
        every = {self.found.writes[t] for t in self.layers} | set(self._outside())
        return (
            known
            if every <= set(known) and all(n > 0 or (n == 0 and s not in made) for s, n in known.items())
            else None
        )

    def _spread(self, t: int, store: int, axis: str) -> bool:
        """Whether a layer reads one row (column) of a store for all of its own."""
        return axis[0] in self.found.layers[t].patterns[self.found.reads[t].index(store)]

    def _outputs(self, t: int, axis: str) -> int:
        return self.found.layers[t].r if axis == "rows" else self.found.layers[t].c

    def _line(
        self, stream: Stream, seen: Sequence[Layer], axis: str, lines: Mapping[int, Pace], step: int
    ) -> Pace:  # fmt: skip
        ahead, behind, end = [], [], []
        for u in stream.readers:
            reach, stride, pad, inputs, _ = _window(seen[u], axis)
            out = lines[u - self.first]
            if self._spread(u, stream.store, axis):
                number = self._outputs(u, axis)
                ahead.append(1 if stream.outside else -(-out.ahead // number))
                behind.append(0 if stream.outside else out.behind // number)
                end.append(1)
                continue
            ahead.append((out.ahead - 1) * stride - pad + reach)
            behind.append(out.behind * stride - pad)
            end.append(min(inputs, (out.end - 1) * stride - pad + reach))
        if self._result(stream):
            ahead.append(0)
            behind.append(0)
            end.append(_window(seen[stream.maker], axis)[4])
        return Pace(step, max(ahead), min(behind), max(end))

    # ---- walks -------------------------------------------------------------------------------------------------------

    def _walked(self, run: FusedRun) -> Way | None:
        """What a run does; None if the referee sees a fault."""
        walk, number = Walk(self.found, run), len(self.layers)
        counted = Count(self.machine, walk)
        seen = counted.run_all()
        if seen.faults or seen.macs > MOST_AGAIN * sum(self.found.layers[t].macs for t in self.layers):
            return None
        ran = execute(self.found, self.machine, walk, None, watched=True, computed=False)
        if ran.faults:  # the referee saw none
            raise AssertionError(f"{run}: {ran.faults}")
        loads, visits = [], [0] * number
        for moment in chain.from_iterable(walk.each_visit()):
            k, (top, bottom), (left, right) = moment.stream, moment.rows, moment.columns
            something = top < bottom and left < right
            if moment.kind == "load" and something:
                loads.append((k, top, bottom, (right - left) * counted.sizes[k]))
            if moment.kind == "make" and moment.block <= 0:
                visits[k] += something
        makes = ran.held
        return Way(run, np.unique(np.array(makes, np.int64), axis=0), tuple(loads), tuple(visits), seen.macs)


def _subsets(stores: Sequence[int]) -> list[tuple[int, ...]]:
    return [*chain.from_iterable(combinations(stores, n) for n in range(len(stores) + 1))]


def _single(operator: Operator) -> bool:
    """Whether an operator has windows of a pixel, without padding."""
    return isinstance(operator, Conv | Pool) and operator.kernel == (1, 1) and not any(operator.pad)


def _window(layer: Layer, axis: str) -> tuple[int, int, int, int, int]:
    """Reach, stride, padding, inputs, outputs; a layer with one output moves by the whole map."""
    if axis == "rows":
        reach, stride, pad = (layer.kh - 1) * layer.dilation_h + 1, layer.stride_h, layer.pad_top
        inputs, outputs = layer.h, layer.r
    else:
        reach, stride, pad = (layer.kw - 1) * layer.dilation_w + 1, layer.stride_w, layer.pad_left
        inputs, outputs = layer.l, layer.c
    return reach, max(stride, inputs) if outputs == 1 else stride, pad, inputs, outputs
