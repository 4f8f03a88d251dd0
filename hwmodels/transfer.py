"""The price of moving tiles between DRAM and on-chip memory, and its four published instances.

``ticks = call*calls + segment*segments + burst*bursts + row*rows + refresh*refreshes + byte*bytes`` (docs/transfer.md)

============  =====================================================  =================================
model         source                                                 non-zero coefficients
============  =====================================================  =================================
volume        `tso_burst_slicing` Alg. 4, lines 12-13, TSO-noburst   byte
burst         `tso_burst_slicing` Alg. 4, lines 5-9, TSO-burst       burst (CAS latency), byte
dma           `optimal_tiling_dma` Eq. 1 (PL330)                     call (C), segment (p), byte (t)
lpddr4        `heterogeneous_mapping_and_banks` Eq. 4.1, 4.2         call, row, refresh, byte
============  =====================================================  =================================
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from hwmodels.outcome import Counts
from instances.machine.machine import Transfer


class Price(NamedTuple):
    """What a count costs."""

    field: str
    """Of `Transfer`: the ticks of one."""
    paid: str
    """What pays it."""
    cause: Literal["startup", "runs", "bursts", "bandwidth"]
    """What the ticks are lost to (`solver.uses.why`)."""
    size: str = ""
    """The field of `Transfer` with the bytes of one; "" if it has no size."""
    whole: bool = False
    """Whether it is counted of a whole request by its size alone, which tile plans refuse."""


#: By the name of the count. Whoever adds a price says all of it here.
PRICES: dict[str, Price] = {
    "calls": Price("call_ticks", "DMA calls", "startup"),
    "segments": Price("segment_ticks", "contiguous runs", "runs"),
    "bursts": Price("burst_ticks", "burst windows", "bursts", "burst_bytes"),
    "rows": Price("row_ticks", "DRAM rows", "bandwidth", "row_bytes", whole=True),
    "refreshes": Price("refresh_ticks", "refresh periods", "bandwidth", "refresh_bytes", whole=True),
    "bytes": Price("byte_ticks", "bytes", "bandwidth"),
}
#: Count name -> the field of `Transfer` that prices it.
COUNTS: dict[str, str] = {name: price.field for name, price in PRICES.items()}
#: The prices of windows, which neighbouring bytes share: how long tiles are, and where they begin, may decide.
WINDOWS: tuple[Price, ...] = tuple(price for price in PRICES.values() if price.size and not price.whole)


def ticks(transfer: Transfer, counts: Counts) -> int:
    """Return the price of `counts` in ticks."""
    return sum(int(getattr(transfer, price)) * int(getattr(counts, name)) for name, price in COUNTS.items())


def bursts_of_segment(address: int, length: int, burst_bytes: int) -> int:
    """Return the burst windows that `length` bytes from `address` touch."""
    if length <= 0:
        return 0
    return (address + length - 1) // burst_bytes - address // burst_bytes + 1


def request(transfer: Transfer, size_bytes: int, segments: int = 1, bursts: int = 0) -> Counts:
    """Return the counts of one transfer call of `size_bytes`.

    Rows and refreshes follow Eq. 4.2 of `heterogeneous_mapping_and_banks`: ``floor(B/P_sz)`` and ``ceil(B/R_period)``.
    """
    return Counts(
        calls=1,
        segments=segments,
        bursts=bursts,
        rows=size_bytes // transfer.row_bytes if transfer.row_bytes else 0,
        refreshes=-(-size_bytes // transfer.refresh_bytes) if transfer.refresh_bytes else 0,
        bytes=size_bytes,
    )


def lpddr4(tick_ps: int = 5) -> Transfer:
    """LPDDR4-3200 of MIDAP (`heterogeneous_mapping_and_banks` Eq. 4.1, 4.2).

    D_init 41.25 ns, P_d 14.625 ns a row of 8192 bytes, R_d 235 ns a refresh period of 89,856 bytes, 25 bytes/ns. Raises
    ValueError if a constant is no whole number of ticks.
    """
    prices_fs = {"call": 41_250_000, "row": 14_625_000, "refresh": 235_000_000, "byte": 40_000}
    if any(fs % (tick_ps * 1000) for fs in prices_fs.values()):
        raise ValueError(f"tick_ps {tick_ps} does not divide the LPDDR4 constants; 5 does")
    call, row, refresh, byte = (fs // (tick_ps * 1000) for fs in prices_fs.values())
    return Transfer(
        model="lpddr4", call_ticks=call, row_ticks=row, row_bytes=8192,
        refresh_ticks=refresh, refresh_bytes=89_856, byte_ticks=byte,
    )  # fmt: skip
