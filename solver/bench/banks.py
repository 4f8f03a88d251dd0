"""Suites ``table42`` and ``banks``: feature maps in the banks of MIDAP (`heterogeneous_mapping_and_banks` 4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from formulations.bank_network import BankPlan, optimum
from formulations.bank_policies import Reuse, double_buffer, minimise
from hwmodels.replay_banks import replay_banks
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages, stages
from instances.load import load_network
from instances.machine import Banks
from instances.network import Network
from instances.operators import Conv, Input, Operator
from solver.bench.report import Cell, Report, Section
from solver.progress import Progress

__all__ = ["BLOCKS", "banks", "block", "midap", "table42", "volumes"]

#: Blocks of Inception v3 in the order of Table 4.2.
BLOCKS = {"A": "Mixed_5d", "B": "Mixed_6a", "C": "Mixed_6e", "D": "Mixed_7a", "E": "Mixed_7c"}
#: Rows of Table 4.2, and what they fix.
_ROWS: dict[str, Reuse] = {"greedy": "greedy", "0": 0, "1": 1, "2": 2, "3": 3, "best": "best"}
_NETWORKS = ("inception_v3", "mobilenet_v2", "resnet50", "resnet152", "wide_resnet50_2")


def midap(count: int = 4) -> Banks:
    """MIDAP with 512 KiB for maps in `count` banks, 32 x 9 KiB for weights, N_f 16, N_pe 64 (4.4.1.1, Table 4.1)."""
    return Banks(count=count, map_bytes=512 * 1024, weight_bytes=32 * 9 * 1024, filters=16, lanes=64)


def block(letter: str) -> Network:
    """An image, a 1x1 convolution, one block of Inception v3, a 1x1 convolution to 64 channels."""
    whole = load_network("inception_v3")
    inside = [o for o in whole.operators if o.name.startswith(BLOCKS[letter] + "/")]
    names = {o.name for o in inside}
    outside = next(i for o in inside for i in o.inputs if i not in names)
    shape = whole.operator(outside).shape
    operators: list[Operator] = [
        Input(name="image", shape=(1, 3, *shape[2:])),
        Conv(name="first", inputs=("image",), shape=shape, filters=shape[1], kernel=(1, 1), bias=True),
    ]
    for o in inside:
        operators.append(o.model_copy(update={"inputs": tuple("first" if i == outside else i for i in o.inputs)}))
    last = inside[-1]
    final = Conv(name="last", inputs=(last.name,), shape=(1, 64, *last.shape[2:]), filters=64, kernel=(1, 1), bias=True)
    return Network(name=letter, operators=(*operators, final))


def _replayed(found: Stages, size: Banks, plan: BankPlan) -> BankPlan:
    """The plan, once the replay has counted the same bytes."""
    runs = [
        StageRun(
            s.stage, s.source, bool(s.direction), s.task.goal.keep, s.task.goal.mirrored, s.task.retain,
            tuple((a.name, a.tiles) for a in s.program.actions),
        )
        for s in plan.steps
    ]  # fmt: skip
    moved = replay_banks(found, size, runs)
    if moved.faults or moved.total != plan.volume.total:
        raise RuntimeError(f"{found.network}: the replay says {moved.total} bytes, {moved.faults[:1]}")
    return plan


def _total(plan: Callable[[], BankPlan], found: Stages, size: Banks) -> int | None:
    try:
        return _replayed(found, size, plan()).volume.total
    except InputError:
        return None


def table42(progress: Progress) -> Report:
    """DRAM bytes of five Inception blocks by how much of the shared input stays between paths (Table 4.2)."""
    progress.begin(len(BLOCKS), "table42")
    size, blocks = midap(), dict[str, dict[str, float]]()
    for letter in BLOCKS:
        found = stages(block(letter), size)
        plans = {name: partial(minimise, found, size, reuse=reuse) for name, reuse in _ROWS.items()}
        totals = {name: _total(plan, found, size) for name, plan in plans.items()}
        totals["optimum"] = _total(partial(optimum, found, size), found, size)
        blocks[letter] = {name: round(total / 1024, 2) for name, total in totals.items() if total is not None}
        progress.advance(letter)
    progress.end()
    section = Section("Table 4.2: DRAM access (KiB), FMEM 4 x 128 KiB", ["tiles that stay", *BLOCKS])
    for name in (*_ROWS, "optimum"):
        section.rows.append([name, *(blocks[letter].get(name) for letter in BLOCKS)])
    section.notes.append("MIN in the best order of paths; the optimum decides order, tiles and programs; all replayed.")
    return Report("table42", [section], {"blocks": blocks})


def banks(progress: Progress) -> Report:
    """DRAM bytes of whole networks: double buffer, MIN, the proven optimum, and what waiting residuals save."""
    progress.begin(2 * len(_NETWORKS), "banks")
    columns = [
        "network", "banks", "once", "double buffer", "MIN", "optimum", "/MIN", "/once", "residuals from DRAM", "s",
    ]  # fmt: skip
    section = Section("DRAM bytes, 512 KiB for maps", columns)
    for count in (4, 8):
        for name in _NETWORKS:
            section.rows.append(volumes(name, midap(count)))
            progress.advance(f"{name} {count}")
    progress.end()
    section.notes += [
        "once: every weight, bias, input and result once; the optimum is proven by dynamic programming, every plan is "
        "replayed.",
        "residuals from DRAM: the optimum if second operands of sums are streamed, as the published compiler does.",
    ]
    return Report("banks", [section])


def volumes(name: str, size: Banks) -> list[Cell]:
    """A row of the suite ``banks``: bytes of every plan of a network."""
    found = stages(load_network(name), size)
    once = sum(s.weight_bytes + s.bias_bytes for s in found.stages)
    made = {s.target for s in found.stages}
    once += sum(m.columns * m.column_bytes for n, m in found.maps.items() if n not in made)
    once += sum(s.written * found.maps[s.target].columns for s in found.stages if not found.users[s.target])
    published = [_total(partial(policy, found, size), found, size) for policy in (double_buffer, minimise)]
    start = time.monotonic()
    least = _replayed(found, size, optimum(found, size)).volume.total
    seconds = time.monotonic() - start
    streamed = _replayed(found, size, optimum(found, size, waiting=False)).volume.total
    share = least / published[1] if published[1] else None
    return [name, size.count, once, *published, least, share, least / once, streamed, seconds]
