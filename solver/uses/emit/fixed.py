"""Functions of integers as TFLite's reference kernels compute them, in whole numbers: the tables that C reads.

A number of k whole bits is an integer of 32 bits that counts 2^(k - 31)ths; 1 is the largest one where k is 0. A
product of two rounds a half away from zero. Sources: fixedpoint.h of gemmlowp; softmax.h, integer_ops/logistic.h,
integer_ops/tanh.h, common.h (LUTPopulate) and quantization_util.cc of TFLite, whose Micro has the same.

An example: of integers of scale 0.1 the second one is 7 below the largest: exp(-0.7) = 0.4966 is 1066439 * 2^-31 * 1000
to three digits, and takes that part of the sum of all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, floor

import numpy as np

from solver.uses.emit.requantise import multiplier_of

_MOST = 2**31 - 1
#: Whole bits of what softmax takes the exponential of: differences down to -32.
_DIFFERENCE = 5
#: By power of two, from -2 on: exp(-2^k).
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
#: Places of a table that is interpolated, one for every 128 integers of 16 bits.
_PLACES = 512


def _product(a: int, b: int) -> int:
    """SaturatingRoundingDoublingHighMul of factors that are not both the smallest: divides towards zero."""
    product = a * b
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    return nudged // 2**31 if nudged >= 0 else -(-nudged // 2**31)


def _shifted(x: int, bits: int) -> int:
    """RoundingDivideByPOT: a half away from zero."""
    return (x + (1 << bits - 1) - (x < 0)) >> bits


def _exponential(a: int) -> int:
    """Exp of a number of 5 whole bits up to 0, without whole bits."""
    if a == 0:
        return _MOST
    quarter = 2**24
    rest = (a & quarter - 1) - quarter  # from -1/4 to 0
    x = (rest << _DIFFERENCE) + 2**28  # around -1/8: a series of four terms
    square = _product(x, x)
    fourth = _shifted(_product(square, square), 2)
    more = _shifted(_product(fourth + _product(square, x), 715827883) + square, 1)
    made = 1895147668 + _product(1895147668, x + more)
    for k, power in enumerate(_POWERS):
        if (rest - a) >> 24 + k & 1:
            made = _product(made, power)
    return made


@cache
def exponentials(scale: float) -> tuple[int, ...]:
    """Exp of 0 to 255 integers of a scale below 0, without whole bits; 0 for what is too far below."""
    number, shift = multiplier_of(min(scale * 2 ** (31 - _DIFFERENCE), _MOST))
    least = -floor((2**_DIFFERENCE - 1) * 2 ** (31 - _DIFFERENCE) / 2**shift)
    return tuple(_exponential(_product(-k << shift, number)) if -k >= least else 0 for k in range(256))


def listed(function: Callable[[np.ndarray], np.ndarray], scale: float, zero: int, made: float, at: int,
           low: int) -> list[int]:  # fmt: skip
    """Return a function of all integers of 8 bits from the smallest one on, in single precision, a half away from 0."""
    one = np.float32
    with np.errstate(over="ignore"):
        real = function(one(scale) * (np.arange(low, low + 256) - zero).astype(one)).astype(one) * (one(1) / one(made))
    rounded = np.trunc(real + np.copysign(one(0.5), real))
    return [int(x) for x in np.clip(np.nan_to_num(rounded) + at, low, low + 255)]


def hard_swish(scale: float, zero: int, made: float, at: int, low: int) -> list[int] | None:
    """Return x * min(max(x + 3, 0), 6) / 6 of all integers of 8 bits, by numbers of 16 bits (hard_swish.h of TFLite).

    None for scales that it does not take.
    """
    (number, shift), (part, more) = (
        multiplier_of(float(np.float32(scale) / np.float32(128) / np.float32(unit))) for unit in (made, 3 / 2**15)
    )
    if shift > 0:
        return None
    found = list[int]()
    for x in range((low - zero) * 128, (low + 256 - zero) * 128, 128):
        share = _limited(x << more - 1) if more > 0 else x
        share = _short(share, min(part + 2**15 >> 16, 2**15 - 1))
        share = _limited(share << 1) if more > 0 else _shifted(share, -more) if more else share
        whole = _short(x, min(number + 2**15 >> 16, 2**15 - 1))
        product = (share + 2**15 >> 1) * whole
        result = product // 2**15 if product >= 0 else -(-product // 2**15)
        found.append(min(max((_shifted(result, -shift) if shift else result) + at, low), low + 255))
    return found


def _limited(x: int) -> int:
    return min(max(x, -(2**15)), 2**15 - 1)


def _short(a: int, b: int) -> int:
    """`_product` of numbers of 16 bits."""
    nudged = a * b + (2**14 if a * b >= 0 else 1 - 2**14)
    return nudged // 2**15 if nudged >= 0 else -(-nudged // 2**15)


def interpolated(function: Callable[[np.ndarray], np.ndarray], scale: float, zero: int, made: float, at: int,
                 kind: type[np.floating] = np.float32) -> list[int]:  # fmt: skip
    """Return a function of integers of 16 bits with a scale, by that of results: 513 places, 128 integers apart.

    Each is moved by half of what the middle of its line is off. Numbers are of a precision.
    """

    def rounded(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.trunc(x + np.copysign(kind(0.5), x)), kind)

    first, last = kind(scale) * kind(-32768 - zero), kind(scale) * kind(32767 - zero)
    low, high = kind(made) * kind(-32768 - at), kind(made) * kind(32767 - at)
    step, factor = (last - first) / kind(_PLACES), kind(65536) / (high - low)
    places = np.arange(_PLACES).astype(kind)
    with np.errstate(over="ignore"):
        here, middle, there = (
            function(x).astype(kind) for x in (
                first + places * step, first + places * step + step / kind(2), first + (places + kind(1)) * step
            )
        )  # fmt: skip
        end = function(np.array([last], kind)).astype(kind) * factor
    line = rounded((there * factor + rounded(here * factor)) / kind(2))
    off = rounded((line - rounded(middle * factor)) / kind(2))
    found = [*(rounded(here * factor) - off), *rounded(end)]
    return [int(min(max(x, -32768), 32767)) for x in found]


@cache
def softmax_tables() -> tuple[list[int], list[int]]:
    """Exp from -10 to 0, and 1 / (1 + x) from 0 to 1, of integers of 16 bits; by numbers of double precision."""
    step, half = 2 / 65535, np.float64
    return (
        interpolated(np.exp, 10 / 65535, 32767, step, 0, half),
        interpolated(lambda x: 1 / (1 + x), 1 / 65535, -32768, step, 0, half),
    )


@cache
def sigmoids() -> tuple[int, ...]:
    """1 / (1 + exp(-k / 24)) for k from 0 to 255, in 65536ths.

    Each is moved by half of what the middle of the line to the next one is off; the last one is 1.
    """

    def exact(k: float) -> float:
        return 65536 / (1 + exp(-k / 24))

    return *(floor(exact(k) - ((exact(k) + exact(k + 1)) / 2 - exact(k + 0.5)) / 2 + 0.5) for k in range(255)), 65535
