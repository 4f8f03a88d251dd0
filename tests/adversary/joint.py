"""Brute force for joint: every number of rows of every map at every layer, all nests of every layer.

For a map that may stay, k_t rows are on chip while layer t runs, from its first writer to its last reader; they never
rise again. u first rows of a result are never written, if no reader and no result of the network needs them: u <= k_t
for all of these. Banks or bytes that maps leave hold the tiles: the fewest bytes of layer t in so much room are those
of all its nests (`tests.adversary.nests`). The best schedule is given banks and run by
`hwmodels.fusion.replay.referee`, which must count the same bytes, so that (EQUAL) holds both ways.

Weights that several layers read are on chip or not during every step from their first reader to their last; they come
whole, for a reader. What a plan says must move is no more than the least that moves.

Maps have at most `ROWS` rows: all sets of places to cut four rows and three of a kernel, in all orders, take a second.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

from formulations.clock import Clock
from formulations.pins import Pins
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.nest.replay.referee import Replay
from hwmodels.schedule import LayerRun
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Operator, Pool, Reshape
from instances.network.stores import stores
from solver.calls.solve import solve
from solver.problems.joint import JOINT
from solver.search.loop import decide_part
from tests.adversary.cases import LIMIT_S, BruteForce, Known, OfNetwork, times, widths
from tests.adversary.claims import Claim
from tests.adversary.elements import Elements, miscounted
from tests.adversary.nests import Best, fronts
from tests.adversary.networks import fewer, network_of, with_result
from tests.adversary.places import places

#: Two memories off the chip: maps in one, weights in the other.
_TWO: Mapping[str, object] = {
    "off_chip": [
        {"name": "sram", "transfer": Transfer(byte_ticks=1), "byte_fj": 3},
        {"name": "flash", "transfer": Transfer(call_ticks=5, byte_ticks=4), "byte_fj": 3, "writable": False},
    ],
    "homes": {"IN": ["sram"], "W": ["flash"], "OUT": ["sram"]},
}  # fmt: skip
#: Rows of a map at most.
ROWS = 4


@dataclass(frozen=True)
class Case(OfNetwork):
    """A small network and a memory in banks, or without any."""

    quick: ClassVar = ("dynamic",)
    slow: ClassVar = ("plan", "milp", "cp-sat", "greedy", "sequence", "no-reuse")
    rules: ClassVar = ("", "", "", "", "plenty", "plenty", "banks", "scale", "memory", "bytes")
    proves: ClassVar = False  # nests that no search finds may move less
    least: ClassVar = {
        "rows": 1, "columns": 1, "channels": 1, "sliding": 0, "double": 0, "split": 0, "bytewise": 0, "inner": 0,
    }  # fmt: skip

    rows: int
    columns: int
    channels: int
    """`rows`, `columns`, `channels`: of the input."""
    layers: tuple[tuple[str, tuple[int, ...], int], ...]
    """By layer (kind, operands, filters): 0 is the input, n the result of layer n; kinds are "conv", "tall" (a 2x1
    kernel without padding), "padded" (a 3x1 kernel, a row of padding on both sides), "pool" (2x1), "copy" (a 1x1 pool),
    "sum" of two maps, "again" (the weights of the first layer that has as many), "pad" (a column of zeros, no layer),
    "squeeze" (the mean of every channel) and "gate" (a map times one that is broadcast).
    """
    banks: int
    memory: int
    bytes: tuple[int, int, int, int]
    sliding: bool
    double: bool
    split: bool = False
    bytewise: bool = False
    """Whether maps take bytes, not banks."""
    inner: int = 0
    """The layer whose result is one of the network's although others read it, too; 0: none."""

    @property
    def network(self) -> Network | None:
        """The operators; None if a layer does not fit its operands."""
        made = network_of((1, self.channels, self.rows, self.columns), self.layers, _operator)
        return with_result(made and _shared(made, [kind for kind, _, _ in self.layers]), self.inner)

    @property
    def machine(self) -> Machine:
        """One core with a shared memory."""
        return Machine.model_validate({
            "name": "m", "tick_ps": 1, "ocm_bytes": self.memory, "ocm_banks": 0 if self.bytewise else self.banks,
            "sliding": self.sliding,
            "buffering": "double" if self.double else "single", "mac_fj": 1,
            **(_TWO if self.split else {"transfer": Transfer(byte_ticks=1), "byte_fj": 3}),
            **widths(self.bytes),
        })  # fmt: skip

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """Two to four layers on maps of up to four rows, memories in which a little fits."""
        rows, columns, channels = rng.randint(2, ROWS), rng.choice((1, 1, 1, 2)), rng.choice((1, 2))
        case = Case(rows, columns, channels, (), 1, 1, (1, 1, 1, 1), rng.randrange(2) == 0, rng.randrange(3) == 0)
        wanted, tries = rng.choice((2, 2, 3, 3, 4)), 0
        padded = columns == channels == 1 and rng.randrange(2) == 0
        while len(case.layers) < wanted and tries < 40:
            tries, number = tries + 1, len(case.layers)
            kind = rng.choice(KINDS if not padded else ("padded", *KINDS))
            operands = tuple(rng.randint(max(0, number - 2), number) for _ in range(1 + (kind in ("sum", "gate"))))
            filters = rng.choice((1, 2)) if kind in ("conv", "tall", "again") and not padded else 1
            more = replace(case, layers=(*case.layers, (kind, operands, filters)))
            if more.network is not None and (kind != "sum" or len(set(operands)) == 2):
                case = more
        size = rng.choice((1, 1, 2))
        sizes = (size, rng.choice((1, 2)), size, size * rng.choice((1, 2)))
        banks = rng.randint(1, 6)
        return replace(
            case, bytes=sizes, banks=banks, memory=banks * rng.randint(1, 6) * size + rng.randint(0, banks - 1),
            split=rng.randrange(4) == 0, bytewise=rng.randrange(3) == 0,
            inner=rng.randint(1, len(case.layers)) if rng.randrange(4) == 0 else 0,
        )  # fmt: skip

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Larger elements, more memory, or the same memory without banks."""
        if self.rule == "plenty":
            return self._in_plenty()
        if self.rule == "bytes":
            return None if self.bytewise else (replace(self, bytewise=True), None)
        if self.rule == "memory":
            return replace(self, memory=self.memory + (1 if self.bytewise else self.banks)), None
        if self.rule == "banks":  # one more of the same size
            return replace(self, banks=self.banks + 1, memory=self.memory + self.memory // self.banks), None
        whole = self.bytewise or self.memory % self.banks == 0
        return (replace(self, bytes=times(self.bytes, 3), memory=3 * self.memory), 3 * value) if whole else None

    def _in_plenty(self) -> tuple[Self, int | None]:
        """A memory in which everything stays, and what moves then, counted element by element."""
        found = Elements(self.made, self.machine)
        most = sum(found.alone(layer) for layer in found.layers) * max(self.bytes)
        banks = 2 * len(found.layers) + 4
        return replace(self, banks=banks, memory=banks * most), found.once

    def simpler(self) -> Iterator[Self]:
        """Without a layer, with fewer filters, banks or bytes."""
        yield from (replace(self, layers=layers) for layers in fewer(self.layers))
        for k, (kind, operands, filters) in enumerate(self.layers):
            if filters > 1:
                yield replace(self, layers=(*self.layers[:k], (kind, operands, 1), *self.layers[k + 1 :]))
        if self.banks > 1:
            yield replace(self, banks=self.banks - 1, memory=(self.banks - 1) * (self.memory // self.banks))
        if self.memory > self.banks:
            yield replace(self, memory=self.memory - 1)
        if self.bytes != (1, 1, 1, 1):
            yield replace(self, bytes=(1, 1, 1, 1))


#: What layers are drawn from.
KINDS = ("conv", "conv", "tall", "pool", "copy", "sum", "sum", "again", "again", "pad", "squeeze", "gate", "gate")


def _shared(network: Network, kinds: Sequence[str]) -> Network | None:
    """The network with weights that are shared; None if no layer has as many."""
    made: dict[str, Operator] = {o.name: o for o in network.operators}
    sizes: dict[str, int] = {}
    for number, kind in enumerate(kinds, 1):
        operator = made[f"n{number}"]
        if not isinstance(operator, Conv):
            continue
        weights = operator.count_parameters([made[x].shape for x in operator.inputs])
        first = next((name for name, size in sizes.items() if size == weights), "")
        if kind == "again" and not first:
            return None
        if kind == "again":
            made[operator.name] = operator.model_copy(update={"weights_of": first})
        sizes[operator.name] = weights
    return Network(name="n", operators=tuple(made.values())) if network.layers else None


def _operator(name: str, kind: str, before: Sequence[Operator], filters: int) -> Operator | None:
    source, shape = before[0].name, before[0].shape
    if kind == "sum":
        alike = len(before) == 2 and before[1].shape == shape
        inputs = tuple(one.name for one in before)
        return Eltwise(name=name, inputs=inputs, shape=shape, fn="add") if alike else None
    if kind == "gate":
        inputs = tuple(one.name for one in before)
        fits = len(before) == 2 and before[1].shape != shape
        fits = fits and all(one in (1, size) for one, size in zip(before[1].shape, shape, strict=True))
        return Eltwise(name=name, inputs=inputs, shape=shape, fn="mul") if fits else None
    if kind == "pad":
        return Reshape(name=name, inputs=(source,), shape=(*shape[:3], shape[3] + 1), fn="pad")
    if kind == "squeeze":
        return Pool(name=name, inputs=(source,), shape=(*shape[:2], 1, 1), fn="global_avg")
    rows = shape[2] - (kind in ("tall", "pool"))
    if rows < 1:
        return None
    kernel = ({"tall": 2, "pool": 2, "padded": 3}.get(kind, 1), 1)
    if kind in ("pool", "copy"):
        return Pool(name=name, inputs=(source,), shape=(1, shape[1], rows, shape[3]), fn="max", kernel=kernel)
    pad = (1, 0, 1, 0) if kind == "padded" else (0, 0, 0, 0)
    whole = (1, filters, rows, shape[3])
    return Conv(name=name, inputs=(source,), shape=whole, filters=filters, kernel=kernel, pad=pad)


# ---- brute force -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A schedule of the network."""

    bytes: int
    runs: tuple[LayerRun, ...]


#: By store its rows at every layer from the first that writes it on.
Rows = Mapping[int, Mapping[int, int]]


class _Plans:
    """All schedules of a network on a machine."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self.network, self.found, self.machine = network, stores(network), machine
        memory = machine.memories["ocm"]
        self.count, self.bank = (machine.ocm_banks, memory // machine.ocm_banks) if machine.ocm_banks else (memory, 1)
        self.known: dict[tuple[int, tuple[tuple[int, int], ...], int, int], Best | None] = {}

    def stays(self) -> Iterator[Rows]:
        """Every way in which maps may stay."""
        options: list[list[tuple[int, dict[int, int]]]] = []
        for s, store in enumerate(self.found.stores):
            if store.dram or not store.parts or not store.readers:
                continue
            first = min(t for t, _ in store.parts)
            times = range(first, max(store.readers) + 1)
            levels = (0, store.rows) if store.whole else range(store.rows + 1)
            falling = [row for row in product(levels, repeat=len(times)) if list(row) == sorted(row, reverse=True)]
            options.append([(s, dict(zip(times, row, strict=True))) for row in falling])
        for s in sorted(set(self.found.shared) - {-1}):
            readers = [t for t, store in enumerate(self.found.shared) if store == s]
            times = range(readers[0], readers[-1] + 1)
            rows = [dict(zip(times, row, strict=True)) for row in product((0, 1), repeat=len(times))]
            options.append([(s, row) for row in rows if all(t in readers for t in self.loads(row))])
        for chosen in product(*options):
            yield dict(chosen)

    @staticmethod
    def loads(rows: Mapping[int, int]) -> list[int]:
        """The steps at which weights come on chip."""
        return [t for t, there in rows.items() if there and not rows.get(t - 1, 0)]

    def banks(self, s: int, rows: int) -> int:
        """Banks of some rows of a store; bytes if there are none."""
        store = self.found.stores[s]
        each = store.weights * self.machine.w_bytes or store.row_elements * self.machine.out_bytes
        return -(-rows * each // self.bank)

    def layer(self, t: int, on_chip: Mapping[int, int], most: int, free: int) -> tuple[int, Best] | None:
        """Rows that are never written, and the nest: the fewest bytes of a layer; None if no nest fits."""
        reads = tuple(sorted((s, on_chip.get(s, 0)) for s in {*self.found.reads[t], self.found.shared[t]}))
        least: tuple[int, Best] | None = None
        for unwritten in range(most + 1):
            key = t, reads, unwritten, free
            if key not in self.known:
                layer = self.found.layer(t, dict(reads), unwritten)
                room = free * self.bank
                fits = [one for one in fronts(layer, self.machine) if one.room <= room]
                self.known[key] = fits[-1] if fits else None
            one = self.known[key]
            if one is not None and (least is None or one.bytes < least[1].bytes):
                least = unwritten, one
        return least

    def price(self, stays: Rows) -> tuple[int, list[tuple[int, Best]]] | None:
        """The fewest bytes if maps stay like this."""
        total, nests = 0, []
        for t in range(len(self.found.layers)):
            on_chip = {s: rows[t] for s, rows in stays.items() if t in rows}
            over = self.places(t, stays)
            free = self.count - sum(self.banks(s, k) for s, k in on_chip.items() if s not in over)
            made = self.found.writes[t]
            kept = stays.get(made, {0: 0})
            store = self.found.stores[made]
            most = 0 if store.results or store.dram or made not in stays else min(kept.values())
            if store.whole and most:
                most = store.rows
            one = None if free < 0 else self.layer(t, on_chip, most, free)
            if one is None:
                return None
            total += one[1].bytes
            for s, rows in stays.items():
                if self.found.stores[s].weights and t in self.loads(rows):
                    total += self.found.stores[s].weights * self.machine.w_bytes
            nests.append(one)
        return total, nests

    def places(self, t: int, stays: Rows) -> dict[int, int]:
        """The result of a layer, if it takes the place of a map: both are on chip as a whole."""
        made = self.found.writes[t]
        whole = [s for s, rows in stays.items() if rows.get(t) == self.found.stores[s].rows]
        if made not in whole or t != min(stays[made]):
            return {}
        free = [s for s in places(self.network, self.found, t) if s in whole and t == max(stays[s])]
        return {made: free[0]} if free else {}

    def best(self) -> Found | None:
        """The schedule with the fewest bytes."""
        least: tuple[int, Rows, list[tuple[int, Best]]] | None = None
        for stays in self.stays():
            one = self.price(stays)
            if one is not None and (least is None or one[0] < least[0]):
                least = one[0], stays, one[1]
        return None if least is None else Found(least[0], self._runs(least[1], least[2]))

    def _runs(self, stays: Rows, nests: Sequence[tuple[int, Best]]) -> tuple[LayerRun, ...]:
        """The schedule with numbers for banks, if any: maps take the lowest free ones and give back their last ones."""
        held: dict[int, tuple[int, ...]] = {}
        runs = []
        for t, (unwritten, one) in enumerate(nests):
            on_chip = {s: rows[t] for s, rows in stays.items() if t in rows}
            held = {s: banks[: self.banks(s, on_chip[s])] for s, banks in held.items() if on_chip.get(s)}
            over = self.places(t, stays)
            for s, rows in on_chip.items():
                if rows and s not in held and s not in over:
                    held[s] = tuple(self._free(held)[: self.banks(s, rows)])
            held |= {s: held[place] for s, place in over.items()}
            residents = {s: (rows, held[s]) for s, rows in on_chip.items() if rows}
            runs.append(LayerRun(one.nest, residents, unwritten, tuple(self._free(held)), over))
        return tuple(runs)

    def _free(self, held: Mapping[int, tuple[int, ...]]) -> list[int]:
        taken = {bank for banks in held.values() for bank in banks}
        return [bank for bank in range(self.machine.ocm_banks) if bank not in taken]


def best(network: Network, machine: Machine) -> Found | None:
    """The schedule with the fewest bytes of all there are, None if nothing fits."""
    return _Plans(network, machine).best()


class _Joint(BruteForce[Case]):
    name = "joint"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """A value that no schedule has is known by brute force."""
        if engine != "plan":
            (part,) = JOINT.read(case.made, case.machine, Pins(()), None)
            clock = Clock.of(None if engine == "dynamic" else LIMIT_S)
            said = decide_part(JOINT, part, ("bytes",), engine, clock)
            return Claim(engine, said.status, said.values.get("bytes"), said.bounds["bytes"])
        plan = solve(case.made, case.machine, problem="joint")
        value = None if plan.objective is None else plan.objective.value
        faults = [] if plan.measures is None or plan.measures["bytes"] == value else ["its value is not its bytes"]
        if value is not None and plan.part.must["bytes"] > value:
            faults.append(f"{plan.part.must['bytes']} bytes must move, it moves {value}")
        return Claim(engine, plan.status, value, plan.bound, tuple(faults))

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All schedules; the best one is run by the referee, and what must move is counted by elements."""
        network = case.made
        found, wrong = best(network, case.machine), miscounted(network, case.machine)
        if found is None:
            return Known(None, faults=wrong)
        seen = replay_fusion(stores(network), case.machine, found.runs)
        moved = sum(one.outcome.bytes for one in seen.runs if isinstance(one, Replay))
        known = Known.replayed(found.bytes, moved, seen.faults)
        return known._replace(faults=(*wrong, *known.faults))


TESTER = _Joint()
