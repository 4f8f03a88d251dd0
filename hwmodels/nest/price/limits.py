"""Lower bounds on the DRAM bytes that any plan of one layer moves, whatever its nest.

**Compulsory.** Every input element that some output needs is loaded, every weight and bias is loaded, every output is
stored, each at least once; of an input that is broadcast these are the elements that it has. Rows that a stride skips
and padding are left out, and so is padding that an operator before the layer has written, and what an operand holds
twice (`Layer.copies`). The phases below then leave out every MAC that may read such an element.

**Phases.** A plan runs every multiply-accumulate (MAC) once; those whose input lies in the padding are left out. Z is
the number of the others, S the fast memory of all cores in bytes. For a set F of MACs let I, W, O be the numbers of
input, weight and output elements that F touches.

1. ``|F|^2 <= R*I*W*O``, where R is the most (output position, kernel position) pairs that use one input position.
   Proof. In one group g a MAC is (m, n, p, k) with output position p = (b, r, c) and kernel position k = (i, j). O sees
   (m, p), W sees (m, n, k), and the number I' of distinct (n, p, k) is at most R*I. Every coordinate occurs in two of
   the three, so ``|F_g|^2 <= I'*W*O`` (Loomis-Whitney in Shearer's form, a Hölder-Brascamp-Lieb inequality). Over the
   groups ``sum sqrt(R I_g W_g O_g) <= sqrt(R W) * sum sqrt(I_g O_g) <= sqrt(R W I O)`` by Cauchy-Schwarz.
2. ``|F| <= most_t * t`` for t in I, W, O: the most MACs that share one element of that operand.
3. Charge the first load of an input element u_I, of a weight u_W, every later load its bytes, the first MAC of an
   output u_O (instead of the store of its result), and writing or reading a partial sum psum. If u_I <= in, u_W <= w
   and u_O <= psum bytes, and all charges sum to C, then with N the elements moved at least once

       bytes moved >= C + (in - u_I)*N_I + (w - u_W)*N_W + (out - u_O)*N_O.

   The last coefficient may be negative: every output is begun once and stored once, so N_O is exact.
4. Cut the plan where C passes S+X, S+2X, ... What a phase touches was on chip when it began or is charged in it. On
   chip an input takes `in` bytes, a weight `w`, an output with MACs both behind and before it `psum`: at least their
   charges (a nest that does not cut the reduction has no such outputs). So ``u_I*I + u_W*W + u_O*O <= S + X``, plus
   e - g where a charge straddles a cut (charges are at most e; they, S and X are multiples of g). The first phase may
   be charged S+X because nothing is on chip yet. Let f be the most MACs under 1, 2 and this budget, k = ceil(Z/f) - 1.
   After k phases at least Z - k*f MACs are left, so C >= S + k*X + g and C >= S + k*X + (the least budget for those
   MACs) - S - (e - g). For k = 0, C >= the least budget for Z. Every X and all charges give a bound; the best that a
   search finds counts.

Least budget: minimise a sum of three numbers whose product and whose parts are bounded below. Free parts are equal; a
lower bound above that level is attained, and the others remain. All of this is in integers, rounded to the safe side.

With u = 1 byte everywhere and X = 2S this is ``2*Z/sqrt(R*S) - S``; with u = 0 it is the compulsory traffic; a smaller
u_O says that outputs of short reductions need not stay on chip, a larger one that partial sums are wide.

None of this asks where off the chip an operand lies: all bytes that cross the chip's border count alike, so the bounds
hold for machines with several memories there (`Machine.off_chip`), whatever the homes. `least_energy` needs the homes.

Assumed: classical arithmetic, nothing computed twice, no output summed on two cores, nothing on chip at the start, and
`reading` "consistent". The first read of `psum_first_read` comes on top. Layers without weights or with resident rows
(which are not moved at all): compulsory traffic.

Sources: Hong & Kung 1981 (phases); Irony, Toledo & Tiskin 2004 (Loomis-Whitney for matrix products); Smith, Lowery,
Langou & van de Geijn 2019 (``2*Z/sqrt(S) - 2*S``); Demmel & Dinh 2018 and Chen et al. 2020 (convolution, R). The
charges of item 3 and the caps of item 2 are additions proven here.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, isqrt, prod, sqrt
from typing import NamedTuple

import numpy as np

from hwmodels.nest.price.boxes import input_windows
from hwmodels.nest.price.pieces import Window
from instances.machine.machine import Compute, Machine
from instances.network.workload import Layer

#: Charges are multiples of 1/_UNIT byte.
_UNIT = 1024
#: The search multiplies one number by powers of these ratios, up to _REACH of them up and down.
_RATIOS = (2 ** (1 / 2), 2 ** (1 / 8), 2 ** (1 / 32))
_REACH = 8


@dataclass(frozen=True)
class _Axis:
    """The pairs (output, tap) along one axis whose input lies inside the map, counted exactly."""

    inputs: int
    pairs: int
    """`inputs`, `pairs`: input positions that some pair uses; pairs."""
    per_input: int
    per_tap: int
    per_output: int
    """`per_input`, `per_tap`, `per_output`: the most pairs that share an input position, a tap, an output."""

    @classmethod
    def of(cls, window: Window, outputs: int) -> _Axis:
        starts = np.arange(outputs, dtype=np.int64)[:, None] * window.stride - window.pad
        place = starts + np.arange(window.taps, dtype=np.int64) * window.dilation
        inside = (place >= window.first) & (place < window.size)
        uses = np.bincount(place[inside], minlength=1)
        return cls(
            inputs=int(np.count_nonzero(uses)),
            pairs=int(inside.sum()),
            per_input=int(uses.max()),
            per_tap=int(inside.sum(axis=0).max()),
            per_output=int(inside.sum(axis=1).max()),
        )


@dataclass(frozen=True)
class _Work:
    """The MACs of a layer; triples are in the order IN, W, OUT."""

    macs: int
    repeats: int
    """`macs`, `repeats`: Z (without what reads copies) and R of the module docstring."""
    elements: tuple[int, int, int]
    """(int, int, int). Elements that are moved at least once."""
    most: tuple[int, int, int]
    """(int, int, int). The most MACs that share one element."""

    @classmethod
    def of(cls, layer: Layer) -> _Work:
        window = input_windows(layer)
        y, x = _Axis.of(window["r"], layer.r), _Axis.of(window["c"], layer.c)
        images, repeats = layer.b * layer.g, y.per_input * x.per_input
        most = layer.m * repeats, layer.b * y.per_tap * x.per_tap, layer.n * y.per_output * x.per_output
        inputs, copies = 0, layer.copies or (0,) * (layer.inputs + 1)
        for resident, lacks, some in zip(layer.residents, layer.patterns, copies, strict=False):
            if resident and "r" in lacks:
                continue
            rows = _Axis.of(input_windows(layer, resident)["r"], layer.r).inputs
            sizes = {"b": layer.b, "g": layer.g, "r": rows, "c": x.inputs}
            inputs += max(0, layer.n * prod(size for d, size in sizes.items() if d not in lacks) - some)
        twice = copies[-1] if layer.weights == "activation" else 0
        weights = max(0, layer.weight_elements - twice) if "W" in layer.operands else 0
        return cls(
            macs=max(0, images * layer.m * layer.n * y.pairs * x.pairs - copies[0] * most[0] - twice * most[1]),
            repeats=repeats,
            elements=(inputs, weights, images * layer.m * (layer.r - layer.resident_out) * layer.c),
            most=most,
        )


def tensor_elements(layer: Layer) -> tuple[int, int, int]:
    """Elements of IN, W and OUT that are moved at least once."""
    return _Work.of(layer).elements


def tensor_bytes(layer: Layer, machine: Machine) -> dict[str, int]:
    """Compulsory bytes by row: IN, W (with the biases; only where there are weights) and OUT."""
    inputs, weights, outputs = _Work.of(layer).elements
    rows = {
        "IN": inputs * machine.in_bytes,
        "W": weights * machine.w_bytes + _bias_bytes(layer, machine),
        "OUT": outputs * machine.out_bytes,
    }
    return {operand: rows[operand] for operand in layer.operands}


def operand_bytes(layer: Layer, machine: Machine) -> dict[str, int]:
    """The same as the operands lie off the chip: with padding and copies in them."""
    return tensor_bytes(layer.model_copy(update={"copies": ()}), machine)


def compulsory_bytes(layer: Layer, machine: Machine) -> int:
    """Bytes that every plan moves even with unlimited fast memory: each needed element once."""
    return sum(tensor_bytes(layer, machine).values())


def least_energy(layer: Layer, machine: Machine) -> int:
    """A lower bound on femtojoules: every needed element once, from or to its home, and the MACs.

    Beyond that, whatever more `lower_bound_bytes` says moves takes at least the least energy of a byte.
    """
    own = tensor_bytes(layer, machine)
    more = lower_bound_bytes(layer, machine) - sum(own.values())
    least = min(machine.byte_fj_of(operand) for operand in own)
    return sum(machine.byte_fj_of(op) * n for op, n in own.items()) + least * more + machine.mac_fj * layer.macs


def least_time(layer: Layer, machine: Machine) -> int:
    """Ticks that no plan undercuts: the bytes of `lower_bound_bytes` at the best price, and computing without losses.

    Clusters with buses of their own move the bytes side by side, cores compute side by side; where transfers overlap,
    reads run beside writes and computing beside both. Printed equations (`reading` "literal") are not bounded: 0.
    """
    if machine.reading == "literal":
        return 0
    moving = lower_bound_bytes(layer, machine) * min(transfer.byte_ticks for transfer in machine.transfers)
    if machine.dram == "per_tle":
        moving //= machine.tles
    computing = _least_cycles(layer, machine.compute) * machine.compute.cycle_ticks // (machine.tles * machine.tlts)
    if machine.timing == "transfer_only":
        return moving + machine.layer_ticks
    if machine.timing == "double_buffered":
        return max(moving // 2, computing) + machine.layer_ticks
    return moving + computing + machine.layer_ticks


def _least_cycles(layer: Layer, unit: Compute) -> int:
    """Cycles of all MACs on one core, lanes full as far as channels fill them."""
    places = layer.b * layer.r * layer.c * layer.kh * layer.kw * layer.inputs
    if unit.model == "none":
        return layer.cycles
    if unit.model == "tile":
        return places * layer.g * layer.m * layer.n // unit.macs_per_cycle
    if layer.m == layer.n == 1:
        return places * -(-layer.g // unit.cols)
    return places * layer.g * -(-layer.m // unit.rows) * -(-layer.n // unit.cols)


def fast_bytes(machine: Machine) -> int:
    """S: all on-chip memories of all cores, without what is reserved."""
    return machine.tles * machine.tlts * sum(size - machine.reserved_bytes for size in machine.memories.values())


def lower_bound_bytes(layer: Layer, machine: Machine) -> int:
    """Bytes that every plan moves with the machine's fast memory: the best phase bound, at least `compulsory_bytes`."""
    compulsory = compulsory_bytes(layer, machine)
    work = _Work.of(layer)
    if "W" not in layer.operands or not work.macs or any(layer.residents) or layer.resident_out:
        return compulsory
    return max(compulsory, _best(work, _Bytes.of(machine)) + _bias_bytes(layer, machine))


def _bias_bytes(layer: Layer, machine: Machine) -> int:
    return layer.g * layer.m * machine.bias_bytes if layer.bias and "W" in layer.operands else 0


# ---- phases; budgets and charges in 1/_UNIT bytes --------------------------------------------------------------------


class _Bytes(NamedTuple):
    """What of a machine counts: S, and the bytes of elements."""

    fast: int
    inputs: int
    weights: int
    psum: int
    out: int

    @classmethod
    def of(cls, machine: Machine) -> _Bytes:
        return cls(
            fast_bytes(machine), machine.in_bytes, machine.w_bytes, machine.psum_bytes, machine.out_bytes
        )  # fmt: skip


def _least_budget(work: _Work, charges: tuple[int, ...], macs: int) -> int:
    """The least budget that lets inequalities 1 and 2 have so many MACs ("Least budget" of the module docstring)."""
    lows = [charge * -(-macs // most) for charge, most in zip(charges, work.most, strict=True)]
    product = -(-charges[0] * charges[1] * charges[2] * macs * macs // work.repeats)
    attained, free, spent = 1, 3, 0
    for low in sorted(lows, reverse=True):
        if low**free * attained <= product:
            break
        attained, free, spent = attained * low, free - 1, spent + low
    # the least sum x of `free` equal parts with (x/free)**free * attained >= product
    return spent + (_root(-(-(free**free) * product // attained), free) if free else 0)


def _root(number: int, degree: int) -> int:
    """The least x >= 0 with ``x**degree >= number``."""
    if degree == 1:
        return number
    root = isqrt(number) if degree == 2 else round(number ** (1 / degree))
    while root**degree >= number and root > 0:
        root -= 1
    while root**degree < number:
        root += 1
    return root


def _most_macs(work: _Work, charges: tuple[int, ...], budget: int) -> int:
    """No more MACs than these (at most all) fit the budget: a search outwards from about as many."""

    def exceeds(macs: int) -> bool:
        return _least_budget(work, charges, macs) > budget

    low = high = min(max(int(_about(work, charges, budget)), 0), work.macs)
    step = 1 + low // 2**16
    while low > 0 and exceeds(low):
        low, high, step = max(low - step, 0), low, 4 * step
    if low == high:
        high += step
        while high <= work.macs and not exceeds(high):
            low, high, step = high, high + 4 * step, 4 * step
    return low + bisect_left(range(low + 1, min(high, work.macs + 1)), True, key=exceeds)


def _about(work: _Work, charges: tuple[int, ...], budget: int) -> float:
    """About as many MACs as fit: `_least_budget` in real numbers, solved for the MACs m.

    With p*m^2 the product and q*m the lower bounds, q1 >= q2 >= q3, the budget is 3*(p*m^2)^(1/3) while none is
    attained (q1^3 * m <= p), then q1*m + 2*(p*m/q1)^(1/2), then (q1 + q2)*m + p/(q1*q2), at last (q1 + q2 + q3)*m.
    """
    p = charges[0] * charges[1] * charges[2] / work.repeats
    q1, q2, q3 = sorted((charge / most for charge, most in zip(charges, work.most, strict=True)), reverse=True)
    macs = sqrt((budget / 3) ** 3 / p)
    if macs * q1**3 <= p:
        return macs
    half = sqrt(p / q1)
    macs = ((sqrt(half**2 + q1 * budget) - half) / q1) ** 2
    if macs * q1 * q2**2 <= p:
        return macs
    macs = (budget - p / (q1 * q2)) / (q1 + q2)
    return macs if macs * q1 * q2 * q3 <= p else budget / (q1 + q2 + q3)


def _phases(work: _Work, sizes: _Bytes, charges: tuple[int, ...], budget: int) -> int:
    """The bound in bytes for these charges and phases with (at most) this budget, S + X + e - g."""
    fast = _UNIT * sizes.fast
    loads = [_UNIT * size for size in (sizes.inputs, sizes.weights, sizes.psum)]
    grain = gcd(fast, *loads, *charges)
    slack = max(loads) - grain
    length = (budget - fast - slack) // grain * grain
    most = _most_macs(work, charges, budget)
    if not most or length <= 0:
        return 0
    phases, before = divmod(work.macs - 1, most)
    charged = _least_budget(work, charges, before + 1)
    if phases:
        charged = fast + phases * length + max(grain, charged - fast - slack)
    once = (sizes.inputs, sizes.weights, sizes.out)
    rest = sum((_UNIT * size - u) * n for size, u, n in zip(once, charges, work.elements, strict=True))
    return -(-(charged + rest) // _UNIT)


@lru_cache(maxsize=4096)
def _best(work: _Work, sizes: _Bytes) -> int:
    """Search from two starts: a begun output is charged the bytes of a stored one, or of a partial sum."""
    most = [_UNIT * size for size in (sizes.inputs, sizes.weights, sizes.psum)]
    own = [*most[:2], min(most[2], _UNIT * sizes.out)]
    starts = (most,) if own == most else (own, most)
    return max(_climb(work, sizes, start, most) for start in starts)


def _climb(work: _Work, sizes: _Bytes, charges: list[int], most: list[int]) -> int:
    """Change one charge or the budget at a time until none improves, in ever finer steps."""
    point = [*charges, 3 * _UNIT * sizes.fast]
    best = _phases(work, sizes, tuple(charges), point[3])
    for ratio in _RATIOS:
        improved = True
        while improved:
            improved = False
            for axis in (3, 2, 1, 0):
                steps = {max(1, int(point[axis] * ratio**j)) for j in range(-_REACH, _REACH + 1)}
                for step in sorted(steps if axis == 3 else {min(step, most[axis]) for step in steps}):
                    trial = [*point[:axis], step, *point[axis + 1 :]]
                    if (value := _phases(work, sizes, tuple(trial[:3]), trial[3])) > best:
                        best, point, improved = value, trial, True
    return best
