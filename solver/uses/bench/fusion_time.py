"""Suite ``fusion-time``: the least time of networks with prefetch, beside plans that are made for something else.

Other memories, rates and networks are run if they are asked for: ``certile bench fusion-time --only resnet50``.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.fusion import FUSION
from solver.uses.bench.fusion import network_of
from solver.uses.bench.report import Cell, Suite, Table, timed

#: KiB of a bank, GB/s and ticks of a second of the machine as it is.
_BANK_KIB, _GBPS, _TICKS = 8, 8, 8 * 10**9
_MACHINE = "scratchpad_768k"
#: Heuristics of time.
_HEURISTICS = FUSION.timed
#: Network, KiB and GB/s.
_ROWS = (
    *product(["squeezenet1_1"], [256, 512], [_GBPS]),
    *product(["mobilenet_v2", "resnet50"], [256, 512, 768], [_GBPS]),
)
_MORE = (
    *product(["squeezenet1_1", "mobilenet_v2", "resnet50"], [256, 384, 512, 768, 1024], [2, 4, 16, 32]),
    *product(["squeezenet1_1", "mobilenet_v2", "resnet50"], [384, 1024], [_GBPS]),
    *product(["inception_v3", "vgg16", "mobilenet_v1", "lenet5", "squeezenet1_0", "tiny_yolo"], [256, 512], [_GBPS]),
    *product(["resnet152", "xception", "shufflenet_1x", "alexnet", "densenet121"], [512], [_GBPS]),
)


def settings_of(kib: int, gbps: int) -> dict[str, str]:
    """The machine's memory and rate: above 8 GB/s a tick is shorter, and all else takes more of them."""
    quick = max(1, gbps // _GBPS)
    times = {"transfer.byte_ticks": max(1, _GBPS // gbps), "compute.cycle_ticks": 8 * quick,
             "transfer.call_ticks": 800 * quick, "transfer.segment_ticks": 64 * quick}  # fmt: skip
    memory = {"ocm_bytes": kib * 1024, "ocm_banks": kib // _BANK_KIB}
    return {name: str(value) for name, value in {**memory, **times}.items()}


def time_row(name: str, kib: int, gbps: int) -> list[Cell]:
    """Milliseconds of plans, and what is proven of the fastest.

    Raises RuntimeError if a plan for something else is faster, or below what is proven: a defect of certile.
    """
    asked = partial(solve, network_of(name), _MACHINE, settings=settings_of(kib, gbps))
    per_ms = _TICKS // 1000 * max(1, gbps // _GBPS)
    plan, seconds = timed(partial(asked, problem="fusion", objective="time"))
    others = [
        asked(problem="joint"),
        asked(problem="fusion", objective="bytes", engine="strips"),
        asked(problem="fusion", objective="bytes"),
        *(asked(problem="fusion", objective="time", engine=engine) for engine in _HEURISTICS),
    ]
    least, bound = _time(plan), plan.bound
    beside = [_time(one) for one in others]
    if least is None or bound is None or any(one is not None and one < least for one in beside):
        raise RuntimeError(f"{name}, {kib} KiB, {gbps} GB/s: {least} ticks, others {beside}, at least {bound}")
    shown = [None if one is None else one / per_ms for one in (*beside, least, bound)]
    moved = (plan.measures or {})["bytes"] / 1e6
    return [name, kib, gbps, *shown, 100 * (1 - bound / least), plan.status, moved, seconds]


def _time(plan: Plan) -> int | None:
    """Ticks of a plan with prefetch."""
    return None if plan.measures is None else plan.measures["time"]


SUITE = Suite("fusion-time", (
    Table(
        "Milliseconds with prefetch: int8, banks of 8 KiB",
        ["network", "KiB", "GB/s", "joint", "strips", "fewest_bytes",
         *(name.replace("-", "_") for name in _HEURISTICS), "least_time", "bound", "gap_percent", "status", "MB",
         "seconds"],
        _ROWS, time_row,
        ["joint: every layer by itself, what stays on chip proven in bytes. strips: the best cuts in bytes, maps",
         "between groups through DRAM. fewest_bytes: the optimum of problem fusion in bytes. All with prefetch.",
         "double_buffered, group_by_group, greedy_prefetch, anneal: heuristics for time (docs/fusion.md, Engines).",
         "least_time: problem fusion, objective time, with its bound; gap: of the plan; MB: that it moves; seconds: of",
         "it alone. That no other plan is faster is checked."],
        more=_MORE,
    ),
))  # fmt: skip
