"""`size_engine`, `front_engine`: how large a small engine should be for a set of networks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from formulations.partial_engine.size import MOST, SECONDS, Rates, Size, candidates, front, rated, sizes
from hwmodels.partial_engine.price import engine_of
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import PartialEngine
from instances.network.network import Network
from solver.ask.options import AUTO, as_texts, pick_machine, pick_network, unknown

#: Ranks up to which HiGHS tells one from the next: a millionth of it, a variable's tolerance, is below a quarter.
_LARGEST = 200_000


def fits(size: Size, engine: PartialEngine) -> bool:
    """Whether a size keeps the budget of the machine's FPGA."""
    return size.dsps <= engine.dsps and size.brams <= engine.brams


@dataclass(frozen=True)
class EngineSize:
    """A size for a set of networks."""

    networks: tuple[str, ...]
    aim: Rates
    size: Size
    value: int
    bound: int
    """`value`, `bound`: the worst rate, or the sum of all rates, in frames in 1000 s; proven if they are equal."""

    @property
    def rates(self) -> dict[str, float]:
        """Frames a second by network."""
        return {name: rate / SECONDS for name, rate in zip(self.networks, self.size.rates, strict=True)}


def _exhaustive(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    return max(size.value(aim) for size in found)


def _auto(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    kept = set(candidates((size.e_in, size.e_out) for size in found))
    return max(size.value(aim) for size in found if (size.e_in, size.e_out) in kept)


def _cp_sat(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    from formulations.partial_engine.cp_sat import size_cp_model  # late: solvers are slow to import
    from solver.search.driver_cp_sat import solve

    model, levels = size_cp_model(found, aim, engine.dsps, engine.brams)
    bound = solve(model, maximised=True).bound
    return levels[-1 if bound is None else bound]


def _milp(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    from formulations.partial_engine.milp import size_model
    from solver.search.driver_milp import solve

    problem, levels = size_model(found, aim, engine.dsps, engine.brams)
    if len(levels) > _LARGEST:
        raise InputError(f"engine milp: {len(levels):,} different rates, it tells {_LARGEST:,} apart; auto takes all")
    bound = solve("highs", problem).bound
    return levels[-1 if bound is None else min(len(levels) - 1, -bound)]


#: Each returns a rate that no size within the budget exceeds.
SIZE_ENGINES: dict[str, Callable[[Sequence[Size], Rates, PartialEngine], int]] = {
    AUTO: _auto, "exhaustive": _exhaustive, "cp-sat": _cp_sat, "milp": _milp,
}  # fmt: skip


def _asked(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str],
    aim: str, settings: str | Iterable[str] | Mapping[str, str | int] | None, most: int,
) -> tuple[list[Network], PartialEngine, Rates]:  # fmt: skip
    if isinstance(networks, Network | str | os.PathLike):
        networks = [networks]
    found = [pick_network(one, "partial_engine") for one in networks]
    if not found:
        raise InputError("networks: at least one is needed")
    if aim not in ("worst", "mean"):
        raise unknown("aim", aim, ("worst", "mean"))
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 1024:
        raise InputError(f"most {most!r}: the largest e_in and e_out, a whole number from 1 to 1024")
    engine = engine_of(pick_machine(machine, as_texts("settings", settings)))
    return found, engine, "worst" if aim == "worst" else "mean"


def size_engine(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str], *,
    aim: str = "worst", engine: str = AUTO, most: int = MOST,
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
) -> EngineSize:  # fmt: skip
    """Return the engine size with the highest worst or mean frame rate within the budget of the machine's FPGA.

    Parameters
    ----------
    machine : Machine, str or path
        Its engine gives taps, clock, banks and budget; its size does not matter.
    aim : {"worst", "mean"}
    engine : str
        ``auto`` (largest sizes only), ``exhaustive`` (all sizes), ``cp-sat``, ``milp``.
    most : int
        The largest e_in and e_out.

    Raises
    ------
    InputError
        For bad input, and if no size keeps the budget.
    """
    loaded, asked, chosen = _asked(networks, machine, aim, settings, most)
    if engine not in SIZE_ENGINES:
        raise unknown("engine for engine sizes", engine, SIZE_ENGINES)
    found = rated(loaded, asked, sizes(asked, most))
    if not found:
        raise InputError(f"engine: no size keeps {asked.dsps} DSPs and {asked.brams} block RAMs")
    bound = SIZE_ENGINES[engine](found, chosen, asked)
    best = min(found, key=lambda size: (-size.value(chosen), size.dsps, size.e_in))
    return EngineSize(tuple(n.name for n in loaded), chosen, best, best.value(chosen), bound)


def front_engine(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str], *,
    aim: str = "worst", most: int = MOST, settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
) -> list[Size]:  # fmt: skip
    """Return the exact front of DSPs against the worst or mean frame rate, on FPGAs of any size.

    Raises
    ------
    InputError
        For bad input.
    """
    loaded, asked, chosen = _asked(networks, machine, aim, settings, most)
    return front(rated(loaded, asked, sizes(asked, most, any_fpga=True)), chosen)
