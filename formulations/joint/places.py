"""Which banks a map takes, from layer to layer or group to group; in bytes, without banks, nothing has a number."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.schedule import FusedRun, LayerRun
from instances.machine.machine import Machine
from instances.network.stores import Stores

#: Numbers of banks; none on a machine without banks.
Banks = tuple[int, ...]


class Places:
    """Hands out banks: a map takes the lowest free ones when it is first there, and gives back its last ones."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._held: dict[int, Banks] = {}

    def given(self, sizes: Mapping[int, int]) -> tuple[Mapping[int, Banks], Banks]:
        """The banks of maps that take so many from now on, and those that are left; all maps are named."""
        if not self.machine.ocm_banks:
            return dict.fromkeys(sizes, ()), ()
        self._held = {k: banks[: sizes[k]] for k, banks in self._held.items() if k in sizes}
        free = [b for b in range(self.machine.ocm_banks) if not any(b in banks for banks in self._held.values())]
        for k, number in sizes.items():
            if k not in self._held:
                self._held[k], free = tuple(free[:number]), free[number:]
        return dict(self._held), tuple(free)


def left_of(found: Stores, machine: Machine, run: LayerRun | FusedRun) -> tuple[Banks, int]:
    """Return the banks that no map on chip has during a run, and the bytes that maps leave."""
    if not machine.ocm_banks:
        taken = sum(rows * found.stores[s].row_bytes(machine) for s, (rows, _) in run.residents.items())
        return (), machine.bank_count - taken
    taken_banks = {bank for _, banks in run.residents.values() for bank in banks}
    free = tuple(bank for bank in range(machine.ocm_banks) if bank not in taken_banks)
    return free, len(free) * machine.bank_bytes
