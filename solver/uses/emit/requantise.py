"""How a complete sum becomes the integer of a result without floats: a multiplier of 32 bits and a shift.

A real factor is ``multiplier * 2^(shift - 31)``, the multiplier a whole number from 2^30 to 2^31 - 1. An example:
0.0075 is 0.96 * 2^-7: multiplier 0.96 * 2^31, rounded 2061584302, shift -7. The rules (certile_requantise.h):

float   a float for each result, half to even: as onnxruntime
double  gemmlowp and TFLite: the high half of the doubled product (half up), then a shift (half away from zero)
single  TFLite with TFLITE_SINGLE_ROUNDING, CMSIS-NN with CMSIS_NN_USE_SINGLE_ROUNDING: one shift, half up
even    one shift, half to even
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

from instances.errors import InputError

RULES = ("float", "double", "single", "even")
#: Of sums of maps, by bytes of an element: each is shifted to the left by so many bits before it is scaled. 20 are
#: TFLite's rule for 8 bits; its 15 for 16 bits are for signed maps without zero point. One less has room for four maps
#: of any kind, 20 for sixteen of 8 bits; of more each is shifted by less.
LEFT = {1: 20, 2: 14}
#: More than this shifts all bits of a sum away.
_MOST = 31


def check_rule(rule: str) -> str:
    """Return a rule; raises InputError for others."""
    if rule not in RULES:
        raise InputError(f"requantise {rule}: one of {', '.join(RULES)} is expected")
    return rule


def multiplier_of(real: float, divisor: int = 1) -> tuple[int, int]:
    """Return multiplier and shift of a positive factor; (0, 0) for one that makes nothing of any sum.

    With a divisor its multiplier is divided, rounded down: so TFLite has a mean (QuantizedMeanOrSum in reduce.h).
    Raises InputError if the factor is 2^31 or more.
    """
    part, shift = frexp(real)
    number = round(part * 2**31)
    if number == 2**31:
        number, shift = number // 2, shift + 1
    if shift > _MOST - 1:
        raise InputError(f"a factor of {real:.3g}: multipliers are below 2^30: no C is written, use requantise float")
    more = min(divisor.bit_length() - 1, _MOST + shift)
    return (0, 0) if shift < -_MOST else ((number << more) // divisor, shift - more)


def scaled(
    rule: str, sums: str, value: str, factors: Sequence[float], channel: str, divisor: int = 1
) -> tuple[list[str], str]:  # fmt: skip
    """Return tables, and the C text of a sum times a factor, one for all or by channel, through a divisor."""
    pairs = [multiplier_of(float(one), divisor) for one in factors]
    wide = "64" if sums == "i64" else ""
    if len(set(pairs)) == 1:
        return [], f"certile_requantise{wide}_{rule}({value}, {pairs[0][0]}, {pairs[0][1]})"
    numbers, shifts = (", ".join(str(pair[k]) for pair in pairs) for k in (0, 1))
    tables = [f"static const int32_t stage_multiplier[] = {{{numbers}}};"]
    tables.append(f"static const int8_t stage_shift[] = {{{shifts}}};")
    return tables, f"certile_requantise{wide}_{rule}({value}, stage_multiplier[{channel}], stage_shift[{channel}])"


def shares(
    scales: Sequence[float], element: int, reaches: Sequence[int] = ()
) -> tuple[list[tuple[int, int]], int]:  # fmt: skip
    """Of a sum of maps: multiplier and shift of each, and by how many bits it is shifted to the left before.

    `reaches` are the largest magnitudes of maps that are added: their sum stays in 32 bits, a step for each rounding.
    """
    factors, left = [one / (2 * max(scales)) for one in scales], LEFT[element]
    most = sum(one * reach for one, reach in zip(factors, reaches, strict=False))
    while most * 2**left + 2 * len(reaches) >= 2**31:
        left -= 1
    return [multiplier_of(one) for one in factors], left
