"""The clock of a machine with banks: what a DRAM request takes (`heterogeneous_mapping_and_banks` Eq. 4.1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from instances.machine import Transfer


@dataclass(frozen=True)
class Clock:
    """Ticks of DRAM requests, of a cycle, and of what every stage takes beside its columns.

    A request of B bytes has the latency ``D_init + P_d*floor(B / P_sz) + R_d*ceil(B / R_period)`` (Eq. 4.2; call, row
    and refresh of the machine's transfer model), then takes the bus for ``B / BW_m`` (Eq. 4.1).
    """

    dram: Transfer
    cycle: int
    fixed: int = 0
    overtakes: bool = False
    """Whether weights (and streamed columns) overtake loads of maps (`Banks.bus` = "weights_first"). Weights of B bytes
    asked for at t are on the bus from ``s = max(t + latency, end of the weights before)``, whatever maps are under way;
    a load that would have ended after s ends ``B / BW_m`` later. Latencies and transfers are whole cycles then, rounded
    up.
    """
    relaxed: bool = False
    """No machine, but a bound of one that overtakes: loads are delayed by weights, though not by those that were asked
    for last when a column waits for the load. All times are sums and maxima then, and none is later than it is.
    """

    def latency(self, size: int) -> int:
        """Ticks before a request is on the bus, if the bus is free (Eq. 4.2)."""
        dram = self.dram
        rows = dram.row_ticks * (size // dram.row_bytes) if dram.row_bytes else 0
        refreshes = dram.refresh_ticks * -(-size // dram.refresh_bytes) if dram.refresh_bytes else 0
        return self._whole(dram.call_ticks + rows + refreshes)

    def _whole(self, ticks: int) -> int:
        return -(-ticks // self.cycle) * self.cycle if self.overtakes else ticks

    def served(self, now: int, bus: int, size: int) -> int:
        """When a request made now is served, if the bus is free from `bus` on; now if it is empty."""
        if not size:
            return now
        return max(now + self.latency(size), bus) + self.transfer(size)

    def bound(self) -> Clock:
        """The clock whose times are sums and maxima, none later than those of this one."""
        return replace(self, relaxed=self.overtakes)

    def transfer(self, size: int) -> int:
        """Ticks of a request on the bus."""
        return self._whole(self.dram.byte_ticks * size)
