"""Engine size: how many maps an engine reads and makes a run, for a set of networks on an FPGA.

Sets
    networks n; sizes (e_in, e_out) in 1..most each
Given
    cycles[n][e_in, e_out]   of an inference (`hwmodels.partial_engine.price`)
    rate[n][e_in, e_out] = floor(1000*clock_hz / cycles)     frames in 1000 s
    dsps, brams[e_in, e_out] the engine's, and the budget of the FPGA
    level[k]                 all distinct figures, in increasing order; figures of a size are its rates for worst, the
                             sum of its rates for mean
    rank[f][e_in, e_out] = k where level[k] is figure f of the size
Variables
    y[a, b] = 1 if e_in = a and e_out = b
Objectives
    worst: max min_n rate[n];  mean: max sum_n rate[n]  (the mean times their number; frames in 1000 s)
    the front of DSPs against either
Constraints
    (ONE)    sum y[a, b] = 1
    (BUDGET) y[a, b] = 0 where dsps or brams are above the budget
    (RATE)   k <= sum rank[f][a, b]*y[a, b] for every figure f; max k, and level[k] is the value
Ranks
    One y is 1 and ranks grow with rates, so level[max k] is the highest value, exactly: solvers with floating point see
    numbers up to the count of levels, not rates of any size.
Candidates
    Sizes that keep the budget and that no other such size is at least as large as in both. Nothing is lost: cycles
    never grow with e_in or e_out, since ceil(N/e) and ceil(C/lanes) never do, and pixels do not depend on them
    (`candidates`; compared with all sizes in the tests). DSPs and BRAMs grow with both, so the front needs all sizes.
Optimal means
    No other size within the budget has a higher worst (mean) rate. Of equal ones the fewest DSPs, then the least e_in.

Source: `partial_cnn_engine` V.I ("a good trade-off should be established between the accelerator chip area and the
required level of processing capability"), section VI (Table II: budget, networks).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hwmodels.partial_engine.price import network_parts
from instances.machine.sections import PartialEngine
from instances.network.network import Network

#: The largest e_in and e_out.
MOST = 64
Rates = Literal["worst", "mean"]
#: Frames in so many seconds are whole numbers.
SECONDS = 1000


@dataclass(frozen=True)
class Size:
    """An engine of a size."""

    e_in: int
    e_out: int
    dsps: int
    brams: int
    cycles: tuple[int, ...]
    rates: tuple[int, ...]
    """Frames in 1000 s by network."""

    def value(self, aim: Rates) -> int:
        """What is maximised: the worst rate, or the sum of all."""
        return min(self.figures(aim))

    def figures(self, aim: Rates) -> tuple[int, ...]:
        """What the value is the least of: the rates, or only the sum of all."""
        return self.rates if aim == "worst" else (sum(self.rates),)


def sizes(engine: PartialEngine, most: int = MOST, *, any_fpga: bool = False) -> list[tuple[int, int]]:
    """Return all sizes up to `most` that keep the budget, or all on FPGAs of any size."""
    pairs = ((a, b) for a in range(1, most + 1) for b in range(1, most + 1))
    return [(a, b) for a, b in pairs if any_fpga or _keeps(engine.sized(a, b))]


def _keeps(engine: PartialEngine) -> bool:
    return engine.dsps_used <= engine.dsps and engine.brams_used <= engine.brams


def candidates(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sizes that no other one is at least as large as in both, the smallest e_in first."""
    best: list[tuple[int, int]] = []
    for a, b in sorted(found, reverse=True):
        if not best or b > best[-1][1]:
            best.append((a, b))
    return best[::-1]


def rated(networks: Sequence[Network], engine: PartialEngine, pairs: Iterable[tuple[int, int]]) -> list[Size]:
    """Return sizes with their cycles and rates.

    Raises InputError if a network has a layer that the engine does not compute.
    """
    parts = [network_parts(network, engine) for network in networks]
    found = []
    for a, b in pairs:
        one = engine.sized(a, b)
        cycles = tuple(sum(number * part.cycles(a, b) for part, number in few.items()) for few in parts)
        rates = tuple(SECONDS * engine.clock_hz // max(1, c) for c in cycles)
        found.append(Size(a, b, one.dsps_used, one.brams_used, cycles, rates))
    return found


def ranked(found: Sequence[Size], aim: Rates) -> tuple[list[int], list[list[int]]]:
    """Return the levels, and by figure the ranks of all sizes."""
    figures = [size.figures(aim) for size in found]
    levels = sorted({figure for few in figures for figure in few})
    rank = {level: k for k, level in enumerate(levels)}
    return levels, [[rank[figure] for figure in column] for column in zip(*figures, strict=True)]


def front(found: Iterable[Size], aim: Rates) -> list[Size]:
    """Return the sizes that no other one beats in DSPs or rate without losing in the other, fewest DSPs first."""
    best: list[Size] = []
    for size in sorted(found, key=lambda s: (s.dsps, -s.value(aim), s.brams, s.e_in)):
        if not best or size.value(aim) > best[-1].value(aim):
            best.append(size)
    return best
