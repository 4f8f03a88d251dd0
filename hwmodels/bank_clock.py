"""The clock of a machine with banks: what a DRAM request takes (`heterogeneous_mapping_and_banks` Eq. 4.1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from instances.machine import Transfer

__all__ = ["Clock"]


@dataclass(frozen=True)
class Clock:
    """Ticks of DRAM requests, of a cycle, and of what every stage takes beside its columns.

    A request of B bytes has the latency ``D_init + P_d*floor(B / P_sz) + R_d*ceil(B / R_period)`` (Eq. 4.2; call, row
    and refresh of the machine's transfer model), then takes the bus for ``B / BW_m`` (Eq. 4.1).
    """

    dram: Transfer
    cycle: int
    fixed: int = 0

    def latency(self, size: int) -> int:
        """Ticks before a request is on the bus, if the bus is free (Eq. 4.2)."""
        dram = self.dram
        rows = dram.row_ticks * (size // dram.row_bytes) if dram.row_bytes else 0
        refreshes = dram.refresh_ticks * -(-size // dram.refresh_bytes) if dram.refresh_bytes else 0
        return dram.call_ticks + rows + refreshes

    def served(self, now: int, bus: int, size: int) -> int:
        """When a request made now is served, if the bus is free from `bus` on; now if it is empty."""
        if not size:
            return now
        return max(now + self.latency(size), bus) + self.dram.byte_ticks * size
