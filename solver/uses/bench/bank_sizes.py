"""What banks cost: the optimum of a problem in bytes, beside those of the same memory in banks."""

from __future__ import annotations

from functools import partial

from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.report import Cell, timed, value_of

#: KiB of a bank; 0: none.
SIZES_KIB = (0, 4, 16)
HEADS = (
    "network", "KiB", "bytes", "gap", "s",
    *(head.format(kib) for kib in SIZES_KIB[1:] for head in ("in banks of {} KiB", "gap {}", "s {}")),
    *(f"cost of {kib} KiB %" for kib in SIZES_KIB[1:]),
)  # fmt: skip
NOTE = (
    "cost: what more moves in banks than in bytes, of the latter. No plan in banks is better than the optimum in bytes:"
    " this is checked."
)


def bank_row(problem: str, network: str, kib: int) -> list[Cell]:
    """Return bytes, gap and seconds for every size of banks, and what banks cost.

    Raises
    ------
    RuntimeError
        If a plan in banks is below the proven bound in bytes: a defect of certile.
    """
    row, plans = list[Cell](), list[Plan]()
    for bank in SIZES_KIB:
        settings = {"ocm_bytes": kib * 1024, "ocm_banks": kib // bank if bank else 0}
        plan, seconds = timed(partial(solve, network, "scratchpad_768k", problem=problem, settings=settings))
        row += [value_of(plan), plan.gap, seconds]
        plans.append(plan)
    least, bound = value_of(plans[0]), plans[0].bound
    costs: list[Cell] = []
    for plan in plans[1:]:
        value = value_of(plan)
        if value is not None and bound is not None and value < bound:
            raise RuntimeError(f"{network}, {kib} KiB: {value} bytes in banks, at least {bound} without")
        costs.append(None if value is None or not least else 100 * (value / least - 1))
    return [network, kib, *row, *costs]
