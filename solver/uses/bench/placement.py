"""Addresses: greedy orders, CP-SAT and the search of our own on instances without a byte to spare, and on plans.

Hard instances are made by cutting a rectangle of times and addresses again and again: they fit in the load, and in no
byte less. `CERTILE_MINIMALLOC` may name a folder with the challenging instances of MiniMalloc (11 files,
benchmarks/challenging of google/minimalloc), which are tried in 1 MiB, too.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from formulations.placement.instance import GREEDY
from instances.network.buffers import Buffer, Buffers, Memory, load_buffers
from solver.calls.solve import solve
from solver.problems.placement import memories_of
from solver.uses.bench.report import Cell, Suite, Table, agreed, over, value_of
from solver.uses.emit.onchip import buffers_of

#: Where the challenging instances are, if they are there, and their capacity.
FOLDER = "CERTILE_MINIMALLOC"
_CAPACITY = 1_048_576
_LIMIT_S = 60.0
_ENGINES = ("search", "cp-sat")


def hard(number: int, seed: int = 1, *, times: int = 200, size: int = 64, unit: int = 1024) -> Buffers:
    """So many buffers that fill some units of memory, by default 64 KiB, at all times: a rectangle cut ever again."""
    rng, boxes = random.Random(f"hard {number} {seed}"), [(0, times, 0, size)]
    while len(boxes) < number:
        k = rng.randrange(len(boxes))
        begin, end, low, high = boxes[k]
        if rng.randrange(2) and end - begin > 1:
            cut = rng.randrange(begin + 1, end)
            boxes[k : k + 1] = [(begin, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = rng.randrange(low + 1, high)
            boxes[k : k + 1] = [(begin, end, low, cut), (begin, end, cut, high)]
    rng.shuffle(boxes)
    buffers = (
        Buffer(name=f"b{k}", lower=begin, upper=end, size=unit * (high - low))
        for k, (begin, end, low, high) in enumerate(boxes)
    )
    return Buffers(name=f"cut in {number}", buffers=tuple(buffers))


def _row(given: Buffers) -> list[Cell]:
    """An instance in as much memory as the worst heuristic takes."""
    wide = given.model_copy(update={"memories": (Memory(name="ocm", bytes=2 * sum(b.size for b in given.buffers)),)})
    plans = [solve(wide, "scratchpad_768k", objective="peak", engine=name) for name in GREEDY]
    load = plans[0].bound or 1
    cells: list[Cell] = [given.name, len(given.buffers), load]
    cells += [over(value_of(plan), load) for plan in plans]
    best = [solve(wide, "scratchpad_768k", objective="peak", engine=name, time_limit_s=_LIMIT_S) for name in _ENGINES]
    agreed(given.name, (value_of(plan) for plan in best if plan.status == "OPTIMAL"))
    return [*cells, *(cell for plan in best for cell in (value_of(plan), plan.bound, plan.wall_s))]


def _challenge(path: Path) -> list[Cell]:
    """Whether an instance fits."""
    given = load_buffers(path).model_copy(update={"memories": (Memory(name="ocm", bytes=_CAPACITY),)})
    plans = [solve(given, "scratchpad_768k", engine=name, time_limit_s=_LIMIT_S) for name in _ENGINES]
    load = next((memory.load for memory in memories_of(plans[0])), None)
    return [given.name, len(given.buffers), load, *(cell for plan in plans for cell in (plan.status, plan.wall_s))]


_HEADS = (
    "instance", "buffers", "load", *(f"{name} / load" for name in GREEDY),
    *(head for name in _ENGINES for head in (f"{name} peak", f"{name} bound", f"{name} s")),
)  # fmt: skip


def _files() -> list[Path]:
    """The challenging instances, if their folder is named."""
    return sorted(Path(os.environ[FOLDER]).glob("*.csv")) if os.environ.get(FOLDER) else []


SUITE = Suite("placement", lambda: (
    Table(
        "No byte to spare: least peak", _HEADS, [hard(number) for number in (40, 80, 120, 160, 200)], _row,
        [f"Limit of {_LIMIT_S:.0f} s for each engine. Heuristics over the load, the most bytes at one time.",
         f"{FOLDER}=FOLDER adds the challenging instances of MiniMalloc."],
    ),
    Table(
        "Buffers of plans, 768 KiB: least peak", _HEADS,
        [buffers_of(solve(one, "scratchpad_768k", problem="joint")) for one in ("squeezenet1_1", "mobilenet_v2")], _row,
    ),
    Table(
        "MiniMalloc's challenging instances in 1 MiB",
        ["instance", "buffers", "load", *(head for name in _ENGINES for head in (name, f"{name} s"))],
        _files(), _challenge, label=lambda path: path.stem,
    ),
))  # fmt: skip
