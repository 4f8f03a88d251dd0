"""What no plan can do without: lower bounds on the bytes that cross the DRAM interface, whatever the nest.

Compulsory traffic
    Every input element that some window covers, every weight (and bias) and every output moves at least once.

I/O lower bound for convolution and matrix products
    Sets        E the multiply-accumulates (b, g, m, n, r, c, i, j) whose input lies inside the map, F = |E|; the inputs
                (b, g, n, y, x), weights (g, m, n, i, j) and outputs (b, g, m, r, c) that a part of E uses: I, W, O
    Given       S bytes of on-chip memory; a, w, o bytes of an input, a weight, an output (o the smaller one of partial
                sum and result); rho the most pairs (r, i) that read one input row, times the most pairs (c, j) that
                read one column
    Inequality  |E'|^2 <= rho |I| |W| |O| for every part E' of E. Proof: within one group E' has the coordinates pixel
                (b, r, c), filter m and tap (n, i, j), so by Loomis-Whitney |E'|^2 is at most the product of its
                projections to (pixel, tap), (tap, filter) and (pixel, filter). The last two are W and O, and at most
                rho pairs (pixel, tap) read the same input. Over the groups, sum_g sqrt(x_g y_g z_g) <= sqrt(sum x_g)
                sqrt(sum y_g) sqrt(sum z_g).
    Phases      Count as loads also the first touch of every output (o bytes each), and cut the run in phases of at
                most X bytes of loads, every one but the last of more than X - e, e the largest element. What a phase
                uses was there when it began (S bytes) or is loaded in it: a|I| + w|W| + o|O| <= S + X, so by the
                inequality and the means it does at most ``sqrt(rho ((S + X)/3)^3 / (a w o))`` of the F operations
                (every one is done once). Hence p >= F over that phases, more than (p - 1)(X - e) bytes of loads, of
                which o|OUT| were first touches; results are stored besides. X = 2S is best for large F: about
                ``2 F sqrt(a w o/(rho S))``.
    Sources     phases: Hong and Kung 1981, Irony, Toledo and Tiskin 2004; X = 2S and the constant 2: Smith, Lowery,
                Langou and van de Geijn 2019 (arXiv 1702.02017); convolution: Demmel and Dinh 2018 (arXiv 1802.06905),
                Chen, Huang, Wang, Chen and Wei 2020 (HPCA, arXiv 1911.05662).
    Several cores count as one with all their memories, which can do whatever they do.

Both count what an ideal plan could leave out: rows that a stride skips, and multiplications with padding.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import isqrt

from hwmodels.core import input_windows
from hwmodels.pieces import Window
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["compulsory_bytes", "lower_bound_bytes", "tensor_bytes"]

#: Lengths of a phase that are tried, in eighths of the memory.
_EIGHTHS = range(1, 65)


def _pairs(window: Window, outputs: int) -> Counter[int]:
    """For every input row inside the map how many (output, tap) pairs read it."""
    rows = (
        r * window.stride - window.pad + i * window.dilation for r in range(outputs) for i in range(window.taps)
    )  # fmt: skip
    return Counter(y for y in rows if 0 <= y < window.size)


def tensor_bytes(layer: Layer, machine: Machine) -> dict[str, int]:
    """Bytes of the input that windows cover, of the weights with biases, and of the output: keys IN, W, OUT."""
    windows = input_windows(layer)
    rows, cols = len(_pairs(windows["r"], layer.r)), len(_pairs(windows["c"], layer.c))
    found = {"IN": layer.b * layer.g * layer.n * rows * cols * layer.inputs * machine.in_bytes}
    if "W" in layer.operands:
        found["W"] = layer.g * layer.m * layer.n * layer.kh * layer.kw * machine.w_bytes
        found["W"] += layer.g * layer.m * machine.bias_bytes if layer.bias else 0
    found["OUT"] = layer.b * layer.g * layer.m * layer.r * layer.c * machine.out_bytes
    return found


def compulsory_bytes(layer: Layer, machine: Machine) -> int:
    """Bytes that every plan moves: each needed input, weight and output once."""
    return sum(tensor_bytes(layer, machine).values())


def lower_bound_bytes(layer: Layer, machine: Machine) -> int:
    """The larger of the compulsory traffic and the I/O lower bound above."""
    least = compulsory_bytes(layer, machine)
    if "W" not in layer.operands:
        return least
    windows = input_windows(layer)
    rows, cols = _pairs(windows["r"], layer.r), _pairs(windows["c"], layer.c)
    operations = layer.b * layer.g * layer.m * layer.n * sum(rows.values()) * sum(cols.values())
    shared = max(rows.values()) * max(cols.values())
    cores = machine.tles * machine.tlts
    memory = cores * sum(size - machine.reserved_bytes for size in machine.memories.values())
    output = min(machine.psum_bytes, machine.out_bytes)
    sizes = machine.in_bytes * machine.w_bytes * output
    largest = max(machine.in_bytes, machine.w_bytes, machine.psum_bytes, machine.out_bytes)
    results = layer.b * layer.g * layer.m * layer.r * layer.c
    for eighths in _EIGHTHS:
        phase = memory * eighths // 8
        most = isqrt(int(Fraction(shared * (memory + phase) ** 3, 27 * sizes)))
        phases = -(-operations // max(1, most))
        loads = (phases - 1) * max(0, phase - largest)
        least = max(least, loads + results * (machine.out_bytes - output))
    return least
