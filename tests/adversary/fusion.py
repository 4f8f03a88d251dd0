"""The adversary of fusion: random networks of one to five small layers, and all schedules of them.

`tests.adversary.fusion_paths` goes through all schedules; the best one is run by `hwmodels.fusion.replay.referee`,
which must count the same, so that (EQUAL) holds both ways. What a group of a schedule holds is what lies in a memory in
which it is executed; every group that an engine finds is executed on integers in the bytes that are counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from formulations.fusion.part import FusionPart
from formulations.pins import parse_pins
from hwmodels.fusion.replay.referee import FusedReplay, replay_fusion
from hwmodels.nest.price.limits import tensor_bytes
from hwmodels.nest.replay.referee import Replay
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.stores import stores
from solver.problems.fusion import FUSION
from solver.search.loop import decide_part
from tests.adversary.cases import BruteForce, Known, OfNetwork, kept, parts_of, times, widths
from tests.adversary.claims import Claim
from tests.adversary.elements import Elements, miscounted
from tests.adversary.fusion_groups import MODES
from tests.adversary.fusion_paths import Paths, Rules
from tests.adversary.networks import fewer, network_of, with_result

#: Convolutions and pools: kernel, stride, padding, dilation.
_WINDOWS = {
    "conv": (3, 1, 1, 1), "point": (1, 1, 0, 1), "stride": (3, 2, 1, 1), "valid": (3, 1, 0, 1), "wide": (5, 1, 2, 1),
    "dilated": (3, 1, 2, 2), "jump": (1, 2, 0, 1), "even": (2, 2, 0, 1),
    "deep": (3, 1, 1, 1), "deep2": (3, 2, 1, 1), "pool": (2, 2, 0, 1), "slide": (3, 1, 1, 1), "short": (2, 1, 0, 1),
}  # fmt: skip
#: Rows of a map at most.
_ROWS = 10
#: Which axes of a map a constant has: a gate, a mask, a number for every row, every column, column of every channel ...
_FORMS = ((1, 1, 0, 0), (1, 0, 1, 1), (1, 0, 1, 0), (1, 0, 0, 1), (1, 1, 0, 1), (1, 1, 1, 0), (1, 0, 0, 0))
_CONVS = ("conv", "point", "stride", "valid", "wide", "dilated", "jump", "even")
_KINDS = (
    "conv", "conv", "conv", "point", "point", "stride", "valid", "wide", "dilated", "jump", "even", "deep", "deep",
    "deep2", "pool", "slide", "short", "global", "across", "down", "sum", "sum", "sum", "join", "join", "product",
    "relu", "tied", "tied", "tied", "tied", "again", "again", "still", "still", "scale", "scale", "scale", "scale",
    "pad", "fold",
)  # fmt: skip


@dataclass(frozen=True)
class Case(OfNetwork):
    """A small network and a memory in banks, or without any."""

    quick: ClassVar = ("dynamic", "cp-sat", "milp")
    slow: ClassVar = ("per-layer", "cascade", "strips")
    rules: ClassVar = ("", "", "", "", "", "banks", "scale", "bytes")
    proves: ClassVar = False  # nests that no search finds may move less
    least: ClassVar = {
        "rows": 1, "columns": 1, "channels": 1, "banks": 1, "bank": 1, "energy": 0, "every": 0, "bytewise": 0,
        "inner": 0,
    }  # fmt: skip

    rows: int
    columns: int
    channels: int
    """`rows`, `columns`, `channels`: of the input."""
    layers: tuple[tuple[str, tuple[int, ...], int], ...]
    """By operator (kind, operands, filters): 0 is the input, n the result of operator n."""
    banks: int
    bank: int
    """`banks`, `bank`: how many there are, and the bytes of each."""
    bytes: tuple[int, int, int, int] = (1, 1, 1, 1)
    pins: tuple[str, ...] = ()
    energy: bool = False
    every: bool = False
    """Whether all numbers of rows are tried, not only the most in so many banks."""
    bytewise: bool = False
    """Whether maps take bytes, not banks."""
    inner: int = 0
    """The layer whose result is one of the network's although others read it, too; 0: none."""

    @property
    def network(self) -> Network | None:
        """The operators; None if a layer does not fit its operands."""
        return with_result(network_of((1, self.channels, self.rows, self.columns), self.layers, _operator), self.inner)

    @property
    def possible(self) -> bool:
        """Whether every layer fits its operands, and pins are of layers."""
        network = self.network
        if network is None or not network.layers:
            return False
        names = {layer.name for layer in network.layers}
        return all(
            names >= set(right.split("..")) for left, _, right in map(parts_of, self.pins) if left in ("cut", "fuse")
        )

    @property
    def machine(self) -> Machine:
        """One core with a shared memory."""
        return Machine.model_validate({
            "name": "m", "tick_ps": 1, "ocm_bytes": self.banks * self.bank, "sliding": True,
            "ocm_banks": 0 if self.bytewise else self.banks,
            "buffering": "single", "mac_fj": 1, "byte_fj": 3, "transfer": Transfer(byte_ticks=1), **widths(self.bytes),
        })  # fmt: skip

    @property
    def measure(self) -> str:
        """What is least."""
        return "energy" if self.energy else "bytes"

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """One to five layers on maps of four to ten rows, memories in which a little fits."""
        rows, columns = rng.randint(4, _ROWS), rng.choice((1, 2, 3, 4, 4, 6))
        case = Case(rows, columns, rng.choice((1, 2, 3, 4)), (), 1, 1)
        wanted, tries = rng.choice((1, 2, 2, 3, 3, 3, 4, 4, 5)), 0
        while len(case.layers) < wanted and tries < 40:
            tries, number = tries + 1, len(case.layers)
            kind = rng.choice(_KINDS)
            count = 1 + (kind in ("sum", "join", "scale", "product", "again"))
            operands = tuple(number if rng.randrange(3) else rng.randint(0, number) for _ in range(count))
            more = replace(case, layers=(*case.layers, (kind, operands, rng.choice((1, 2, 3, 4, 8)))))
            if len(set(operands)) == count and more.network is not None:
                case = more
        if not case.possible:
            case = replace(case, layers=(("conv", (0,), 2),))
        size, banks = rng.choice((1, 1, 1, 2)), rng.choice((4, 6, 8, 12, 16, 24))
        case = replace(
            case, bytes=(size, rng.choice((1, 2)), size, size * rng.choice((1, 1, 2, 4))), banks=banks,
            pins=case._pinned(rng),
            energy=rng.randrange(5) == 0, every=rng.randrange(4) == 0,
        )  # fmt: skip
        bank = max(1, int(case._need() * rng.uniform(0.2, 1.1)) // banks)
        inner = rng.randint(1, max(1, len(case.layers) - 1)) if rng.randrange(4) == 0 else 0
        case = replace(case, bank=bank, bytewise=rng.randrange(3) == 0, inner=inner)
        return case._skipping(rng) if rng.randrange(4) == 0 else case

    def _skipping(self, rng: random.Random) -> Case:
        """The same where some convolutions leave out pixels, if all others fit what these make."""
        case = self
        for k, (kind, operands, filters) in enumerate(self.layers):
            if kind in _CONVS and (0 in operands or rng.randrange(2)):
                layers = (*case.layers[:k], ("jump", operands, filters), *case.layers[k + 1 :])
                more = replace(case, layers=layers)
                case = more if more.network is not None and more.possible else case
        return case

    def _need(self) -> int:
        """Bytes of the layer with the largest operands."""
        return max(sum(tensor_bytes(layer, self.machine).values()) for layer in self.made.layers)

    def _pinned(self, rng: random.Random) -> tuple[str, ...]:
        """No pin mostly, else one or two."""
        names = [layer.name for layer in self.made.layers]
        made = []
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            kind, sign = (
                rng.choice(("cut", "fuse", "length", "strip", "recompute", "turns")),
                rng.choice(("=", "=", "!=")),
            )
            if kind == "cut":
                made.append(f"cut{sign}{rng.choice(names)}")
            elif kind == "fuse" and len(names) > 1:
                first, last = sorted(rng.sample(range(len(names)), 2))
                made.append(f"fuse{sign}{names[first]}..{names[last]}")
            elif kind in ("length", "strip"):
                made.append(f"{kind}{rng.choice(('<=', '>=', '='))}{rng.randint(1, 4)}")
            elif kind == "recompute":
                made.append(f"recompute={rng.choice(('any', 'any', 'no'))}")
            elif kind == "turns":
                made.append(f"turns={rng.choice(('any', 'no', 'no'))}")
        return tuple(dict.fromkeys(made))

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Larger elements, more memory, or the same memory without banks."""
        if self.rule == "bytes":
            return None if self.bytewise else (replace(self, bytewise=True), None)
        if self.rule == "banks":
            return replace(self, banks=self.banks + 1), None
        whole = not self.energy and not self.pins
        return (replace(self, bytes=times(self.bytes, 3), bank=3 * self.bank), 3 * value) if whole else None

    def simpler(self) -> Iterator[Self]:
        """Without a layer, with fewer filters, or smaller elements."""
        yield from (replace(self, layers=layers) for layers in fewer(self.layers))
        for k, (kind, operands, filters) in enumerate(self.layers):
            for less in sorted({1, filters - 1} - {0, filters}):
                yield replace(self, layers=(*self.layers[:k], (kind, operands, less), *self.layers[k + 1 :]))
            if kind in _CONVS[2:]:
                yield replace(self, layers=(*self.layers[:k], ("conv", operands, filters), *self.layers[k + 1 :]))
        if self.bytes != (1, 1, 1, 1):
            yield replace(self, bytes=(1, 1, 1, 1))

    @property
    def demanded(self) -> Rules:
        """What pins allow, read anew."""
        number = {layer.name: t for t, layer in enumerate(self.made.layers)}
        pins = [parts_of(pin) for pin in self.pins]

        def group(first: int, last: int) -> bool:
            for name, op, right in pins:
                if name == "cut":
                    t = number[right]
                    if (first <= t < last) if op == "=" else t == last:
                        return False
                if name == "fuse":
                    begin, end = (number[one] for one in right.split(".."))
                    inside = first <= begin and end <= last
                    touched = first <= end and begin <= last
                    if (touched and not inside) if op == "=" else inside:
                        return False
            return kept(self.pins, "length", last - first + 1)

        modes = MODES if ("recompute", "=", "any") in pins else MODES[:2]
        turns, places = (((name, "=", "no") not in pins) for name in ("turns", "in_place"))
        return Rules(group, lambda height: kept(self.pins, "strip", height), modes, turns, places)


def _operator(name: str, kind: str, before: Sequence[Operator], filters: int) -> Operator | None:
    source, shape = before[0].name, before[0].shape
    inputs = tuple(one.name for one in before)
    if kind in ("sum", "relu"):
        alike = all(one.shape == shape for one in before[1:])
        return Eltwise(name=name, inputs=inputs, shape=shape, fn="add" if kind == "sum" else "relu") if alike else None
    if kind == "scale":  # one of both is broadcast along some dimensions, or each along others
        whole = tuple(max(sizes) for sizes in zip(*(one.shape for one in before), strict=True))
        fits = all(n in (1, size) for one in before for n, size in zip(one.shape, whole, strict=True))
        alike = not fits or all(one.shape == whole for one in before)
        return None if alike else Eltwise(name=name, inputs=inputs, shape=whole, fn="mul")
    if kind == "still":  # a constant that may be broadcast to a map
        form = _FORMS[filters % len(_FORMS)]
        return Input(
            name=name, constant=True, shape=tuple(n if kept else 1 for n, kept in zip(shape, form, strict=True))
        )
    if kind == "join":
        alike = before[1].shape[2:] == shape[2:] and before[1].op != "input" != before[0].op
        whole = (1, shape[1] + before[1].shape[1], *shape[2:])
        return Concat(name=name, inputs=inputs, shape=whole) if alike else None
    if kind == "product":
        alike = before[1].shape[:2] == shape[:2] and before[1].shape[2] == shape[3]
        whole = (*shape[:3], before[1].shape[3])
        return MatMul(name=name, inputs=inputs, shape=whole) if alike else None
    if kind == "pad":  # a column of zeros, which counts nothing
        return Reshape(name=name, inputs=inputs, shape=(*shape[:3], shape[3] + 1), fn="pad")
    if kind == "fold":  # a map as rows of single columns
        whole = (*shape[:2], shape[2] * shape[3], 1)
        fits = shape[3] > 1 and whole[2] <= _ROWS
        return Reshape(name=name, inputs=inputs, shape=whole, fn="reshape") if fits else None
    if kind == "global":
        return Pool(name=name, inputs=inputs, shape=(*shape[:2], 1, 1), fn="global_avg")
    if kind in ("across", "down"):  # the mean of every row, or of every column
        kernel = (1, shape[3]) if kind == "across" else (shape[2], 1)
        means = (shape[2], 1) if kind == "across" else (1, shape[3])
        return Pool(name=name, inputs=inputs, shape=(*shape[:2], *means), fn="avg", kernel=kernel)
    if kind in ("tied", "again"):  # the same weights once more, if they fit: of the layer before, or of another
        return _tied(name, before[0], before[-1])
    taps, stride, pad, dilation = _WINDOWS[kind]
    kernel, pads, strides = (taps, taps), (pad,) * 4, (stride, stride)
    if shape[3] == 1 and taps > 1:  # columns that no window fits
        kernel, pads, strides = (taps, 1), (pad, 0, pad, 0), (stride, 1)
    reach = ((taps - 1) * dilation + 1, (kernel[1] - 1) * dilation + 1)
    size = tuple(
        (n + 2 * (pad if k == 0 or kernel[1] > 1 else 0) - reach[k]) // strides[k] + 1 for k, n in enumerate(shape[2:])
    )
    if min(size) < 1 or any(n + 2 * pad < r for n, r in zip(shape[2:3], reach, strict=False)):
        return None
    if kind in _CONVS or kind.startswith("deep"):
        groups = shape[1] if kind.startswith("deep") else 1
        filters = shape[1] if groups > 1 else filters
        return Conv(
            name=name, inputs=inputs, shape=(1, filters, *size), filters=filters, kernel=kernel, pad=pads,
            stride=strides, dilation=(dilation, dilation), groups=groups,
        )  # fmt: skip
    return Pool(
        name=name, inputs=(source,), shape=(*shape[:2], *size), fn="max", kernel=kernel, pad=pads, stride=strides
    )  # fmt: skip


def _tied(name: str, source: Operator, like: Operator) -> Operator | None:
    """A convolution of `source` with the weights and windows of another."""
    if not isinstance(like, Conv):
        return None
    of = like.weights_of or like.name
    made = like.model_copy(update={"name": name, "inputs": (source.name,), "weights_of": of})
    with suppress(ValueError):  # its window does not fit
        return made.model_copy(update={"shape": made.infer([source.shape])})
    return None


class _Fusion(BruteForce[Case]):
    name = "fusion"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """A schedule is counted by the referee; its part has the nests that were searched."""
        network = case.made
        (part,) = FUSION.read(network, case.machine, parse_pins(case.pins, FUSION.decisions), None)
        said = decide_part(FUSION, part, (case.measure,), engine)
        faults: list[str] = []
        if said.schedule is not None:
            seen = replay_fusion(part.net, part.machine, said.schedule.runs)
            faults = [*seen.faults, *part.contains(said.schedule)]
            groups = [one for one in seen.runs if isinstance(one, FusedReplay)]
            faults += [f"{len(groups)} groups are not all executed"] if not all(x.executed for x in groups) else []
            moved, counted = sum(map(_moved, seen.runs)), Elements(network, case.machine)
            if counted.plain and moved < counted.least:
                faults.append(f"it moves {moved}, what is read and made are {counted.least}")
        return Claim(
            engine, said.status, said.values.get(case.measure), said.bounds[case.measure], tuple(faults), part
        )  # fmt: skip

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All schedules; the best one is run by the referee."""
        network = case.made
        part = claims[0].schedule
        if not isinstance(part, FusionPart):
            part = FusionPart(network, case.machine, parse_pins(case.pins, FUSION.decisions))
        found, machine = stores(network), case.machine
        factors = (3, 1) if case.energy else (1, 0)
        paths = Paths(network, found, machine, part.tables.nests, case.demanded, factors, every=case.every)
        best, wrong = paths.best(), miscounted(network, machine)
        if best is None:
            return Known(None, faults=wrong)
        value, bound, path = best
        runs = paths.runs(path)
        seen = replay_fusion(found, machine, runs)
        moved, macs = sum(map(_moved, seen.runs)), 0
        for t, one in zip((step.first for step in path), seen.runs, strict=False):
            macs += one.macs if isinstance(one, FusedReplay) else found.layers[t].macs
        known = Known.replayed(value, factors[0] * moved + factors[1] * macs, seen.faults)
        return known._replace(complete=value == bound, faults=(*wrong, *known.faults))


def _moved(run: FusedReplay | Replay) -> int:
    """Bytes of a run."""
    return sum(run.operand_bytes.values()) if isinstance(run, FusedReplay) else run.outcome.bytes


TESTER = _Fusion()
