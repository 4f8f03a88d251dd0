"""Why a nest moves the bytes that it moves: its counts by operand and cause, as differences of closed-form prices.

Let B(X, L) be the bytes of operand X under the nest that has, outside the Hold of X, only the loops L of the nest
(with the ways in which cores share the layer). Every cause is a difference of two neighbours in one chain, so that
the parts sum to the price exactly, whatever it charges:

    needed once    C = each needed element once (`hwmodels.nest.price.limits.tensor_bytes`)
    padding        A - C, where A are the same as the operand lies off the chip: padding and copies that were written
                   there (`Layer.copies`)
    skipped        U - A, where U is the union of all tiles: rows and columns that a stride steps over
    halo           B(X, loops over what X depends on, without the kernel) - U of the same: windows of neighbours overlap
    kernel         the same with the loops over the kernel, less what is above: rows read again for the next taps
    bias           of W: biases that come along with each tile, though some tiles are of the same filters
    edge           of machines that charge whole tiles at the border (`edge_tiles` "uniform"): what is not there
    again          B(X, L + {l}) - B(X, L), where l is the next loop, from outside in, over a dimension that X does not
                   depend on: X is fetched again in each of its passes
    copies         the same where l shares the layer among cores: each core loads a copy of its own
    spilled        of partial sums: l is a loop over a dimension that is summed over
    first read     of partial sums: what `psum_first_read` reads of tiles before anything was added
    printed        all of it, where a paper's printed equations are the price (`reading` "literal")

A loop over a dimension that X depends on is never taken away while one of the same dimension inside it stays, so every
nest of the chain cuts its dimensions as the plan does. In snake order a part may be negative in rare cases: a loop more
changes the direction in which others run.

`terms_of` says what sums to the measures of a nest: its time, bytes and energy by operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from hwmodels.nest.homes import housed, machine_with_homes, operand_of
from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.choices import trees_of
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import operand_bytes, tensor_bytes
from hwmodels.nest.price.skeleton import cores
from hwmodels.outcome import OPERANDS, Counts, Outcome
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from hwmodels.transfer import ticks
from instances.machine.machine import Machine
from instances.network.workload import REDUCTION, RELEVANT, Layer

Cause = Literal[
    "once",
    "padding",
    "skipped",
    "halo",
    "kernel",
    "bias",
    "edge",
    "again",
    "copies",
    "spilled",
    "first_read",
    "printed",
]


@dataclass(frozen=True)
class Share:
    """A part of the bytes that an operand moves."""

    operand: str
    """IN, W, OUT or PSUM."""
    cause: Cause
    bytes: int
    at: int | None = None
    """The item of the nest that causes it, by number; None where no loop does."""
    dim: str = ""
    passes: int = 1
    """`dim`, `passes`: of that loop (or of the way in which cores share the layer): what it cuts, into how many."""


def shares(layer: Layer, machine: Machine, nest: Nest) -> tuple[Share, ...]:
    """Return the bytes of a nest by operand and cause; they sum to its bytes.

    Raises InputError if the nest cannot be priced.
    """
    if machine.reading == "literal":
        printed = price(layer, machine, nest).by_operand
        rows = [Share(op, "printed", counts.bytes) for op, counts in printed.items()]
    else:
        quiet = housed(layer, machine, nest).model_copy(update={"overlap": "transfer_only"})
        chain = _Chain(layer, quiet, nest)
        rows = [*chain.inputs(), *chain.weights(), *chain.results(), *chain.sums()]
    return tuple(row for row in rows if row.bytes)


def held_outside(layer: Layer, machine: Machine, nest: Nest, operand: str, at: int) -> Outcome:
    """Return the price of the nest with an operand held outside the loop that is item `at`.

    What its tile then takes on chip is why it is held inside, where memory is too small for that. Raises InputError if
    that nest cannot be priced.
    """
    moved = next(item for item in nest.items if isinstance(item, Hold) and item.operand == operand)
    rest = [item for item in nest.items if item is not moved]
    before = sum(item is not moved for item in nest.items[:at])
    return price(layer, machine, Nest((*rest[:before], moved, *rest[before:]), nest.homes))


class _Chain:
    """The nests between a layer whose operands move once and the plan, operand by operand."""

    def __init__(self, layer: Layer, machine: Machine, nest: Nest) -> None:
        self.layer, self.machine, self.nest = layer, machine, nest
        self.once, self.lying = tensor_bytes(layer, machine), operand_bytes(layer, machine)
        self.whole_tiles = machine.edge_tiles == "uniform"
        self.true = machine.model_copy(update={"edge_tiles": "true"})

    def inputs(self) -> Iterator[Share]:
        """Bytes of IN."""
        alone = self._outside("IN", lambda dim: dim in RELEVANT["IN"])
        plain = [at for at in alone if self._dim(at) not in ("i", "j")]
        every, without = self._bytes("IN", alone, self.true), self._bytes("IN", plain, self.true)
        union, fewer = self._union(alone), self._union(plain)
        halo = min(max(without - fewer, 0), every - union)
        rows = next((at for at in plain if self._dim(at) in ("r", "c")), None)
        kernel = next((at for at in alone if at not in plain), None)
        yield Share("IN", "once", self.once["IN"])
        yield Share("IN", "padding", self.lying["IN"] - self.once["IN"])
        yield Share("IN", "skipped", union - self.lying["IN"])
        yield self._share("IN", "halo", halo, rows)
        yield self._share("IN", "kernel", every - union - halo, kernel)
        yield from self._edge("IN", "IN", alone, every)
        yield from self._again("IN", "IN", alone)

    def weights(self) -> Iterator[Share]:
        """Bytes of W, with the biases."""
        if "W" not in self.layer.operands:
            return
        alone = self._outside("W", lambda dim: dim in RELEVANT["W"])
        every = self._bytes("W", alone, self.true)
        cut = next((at for at in alone if self._dim(at) in REDUCTION), None)
        yield Share("W", "once", self.once["W"])
        yield Share("W", "padding", self.lying["W"] - self.once["W"])
        yield self._share("W", "bias", every - self.lying["W"], cut)
        yield from self._edge("W", "W", alone, every)
        yield from self._again("W", "W", alone)

    def results(self) -> Iterator[Share]:
        """Bytes of OUT."""
        alone = self._outside("OUT", lambda dim: dim in RELEVANT["OUT"])
        yield Share("OUT", "once", self.once["OUT"])
        yield from self._edge("OUT", "OUT", alone, self.once["OUT"])

    def sums(self) -> Iterator[Share]:
        """Bytes of partial sums."""
        alone = self._outside("OUT", lambda dim: dim in RELEVANT["OUT"])
        yield Share("PSUM", "first_read", self._bytes("PSUM", alone, self.machine))
        yield from self._again("OUT", "PSUM", alone)

    # ---- steps of the chain --------------------------------------------------------------------------------------

    def _edge(self, operand: str, row: str, alone: list[int], every: int) -> Iterator[Share]:
        if self.whole_tiles:
            yield Share(row, "edge", self._bytes(operand, alone, self.machine) - every)

    def _again(self, operand: str, row: str, alone: list[int]) -> Iterator[Share]:
        """One loop after the other that the operand does not depend on, from outside in."""
        kept, before = set(alone), self._bytes(row, alone, self.machine)
        others = [at for at in self._outside(operand, lambda _: True) if at not in kept]
        for at in others:
            kept.add(at)
            now = self._bytes(row, sorted(kept), self.machine)
            spatial = isinstance(self.nest.items[at], Spatial)
            yield self._share(row, "spilled" if row == "PSUM" else "copies" if spatial else "again", now - before, at)
            before = now

    def _share(self, row: str, cause: Cause, moved: int, at: int | None) -> Share:
        if at is None:
            return Share(row, cause, moved)
        return Share(row, cause, moved, at, self._dim(at), self._passes(at))

    # ---- the nest ------------------------------------------------------------------------------------------------

    def _dim(self, at: int) -> str:
        item = self.nest.items[at]
        return "" if isinstance(item, Hold) else item.dim

    def _passes(self, at: int) -> int:
        """Pieces that a loop makes of the current one, of the largest."""
        item, dim = self.nest.items[at], self._dim(at)
        outer = [i.step for i in self.nest.items[:at] if not isinstance(i, Hold) and i.dim == dim]
        size = outer[-1] if outer else self.layer.extent(dim)
        if isinstance(item, Loop) and item.cuts:
            return max(len([c for c in item.cuts if c < size]) + 1, 2) if not outer else -(-size // item.step)
        return 1 if isinstance(item, Hold) else -(-size // item.step)

    def _outside(self, operand: str, wanted: Callable[[str], bool]) -> list[int]:
        """Numbers of the loops outside the Hold of an operand, and of cores' shares, that are wanted."""
        hold = next(at for at, i in enumerate(self.nest.items) if isinstance(i, Hold) and i.operand == operand)
        keep = [at for at in range(hold) if not isinstance(self.nest.items[at], Hold)]
        return [at for at in keep if wanted(self._dim(at))]

    def _bytes(self, row: str, kept: list[int], machine: Machine) -> int:
        """Bytes of a row under the nest with only these loops outside the Hold of its operand."""
        operand = "OUT" if row == "PSUM" else row
        holds: list[Item] = [i for i in self.nest.items if isinstance(i, Hold)]
        holds.sort(key=lambda i: isinstance(i, Hold) and i.operand != operand)
        stripped = Nest((*(self.nest.items[at] for at in kept), *holds), self.nest.homes)
        return price(self.layer, machine, stripped).by_operand[row].bytes

    def _union(self, kept: list[int]) -> int:
        """Bytes of IN that some tile touches: along rows and along columns the union of all intervals."""
        items = [self.nest.items[at] for at in kept]
        shared = tuple(i for i in items if isinstance(i, Spatial))
        loops = Nest(tuple(items)).loops()
        elements = 0
        for resident, lacks in self.layer.loaded:
            window = input_windows(self.layer, resident)
            seen = {d: np.zeros(window[d].size, np.bool_) for d in ("r", "c")}
            for core in cores(self.layer, shared):
                trees = trees_of(core, loops)
                for d, kernel in (("r", "i"), ("c", "j")):
                    out, taps = trees[d], trees[kernel]
                    for i0, i1 in zip(taps.start[-1], taps.stop[-1], strict=True):
                        ends = window[d].rows(out.start[-1], out.stop[-1], i0, i1)
                        for first, end in zip(*ends, strict=True):
                            seen[d][max(int(first), 0) : max(int(end), 0)] = True
            sizes = {"b": self.layer.b, "g": self.layer.g, **{d: int(part.sum()) for d, part in seen.items()}}
            elements += self.layer.n * prod(size for d, size in sizes.items() if d not in lacks)
        return elements * self.machine.in_bytes


def terms_of(
    measure: str, layer: Layer, machine: Machine, outcome: Outcome, homes: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return the terms that sum to a measure; `homes` of the operands where the machine has several.

    Time is the transfer ticks of each operand, plus compute, plus ``layer`` (`layer_ticks` of the machine, if any),
    plus ``overlap``: what running side by side saves (negative or 0). Where the operands' counts do not explain the
    transfers, they stand as one term.
    """
    rows = {o: outcome.by_operand.get(o, Counts()) for o in OPERANDS}
    machine = machine_with_homes(layer, machine, homes or {})
    if measure == "bytes":
        return {o: c.bytes for o, c in rows.items()}
    if measure == "energy":
        terms = {o: machine.byte_fj_of(operand_of(o)) * c.bytes for o, c in rows.items()}
        return {**terms, "MAC": machine.mac_fj * layer.macs}
    terms = {o: ticks(machine.transfer_of(operand_of(o)), c) for o, c in rows.items()}
    if sum(terms.values()) != outcome.transfer_ticks:
        terms = {"transfer": outcome.transfer_ticks}
    terms["compute"] = outcome.compute_ticks
    if machine.layer_ticks:
        terms["layer"] = machine.layer_ticks
    return {**terms, "overlap": outcome.time_ticks - sum(terms.values())}
