"""`python -m tests.referees.dram PLAN... --simulator FOLDER [--config NAME] [--bus BITS] [--no-calls]`.

Plans on a cycle model of DRAM, with the start-up of each transfer that the machine says, or without. A line for each
plan file: its time as planned and as simulated, and the same of its transfers one behind the other; and for all plans
of a network, and of a network in one memory, whether the order is kept.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from instances.errors import InputError
from solver.plan.plan import Plan, load_plan
from tests.referees.dram.ranks import kendall, spearman, swapped
from tests.referees.dram.simulator import CONFIG, Simulator
from tests.referees.dram.trace import trace_of

_PS_IN_MS = 1_000_000_000


@dataclass(frozen=True)
class Row:
    """A plan, in milliseconds."""

    name: str
    network: str
    memory: str
    planned: float
    simulated: float


def main(arguments: list[str]) -> int:
    """Simulate the plans named."""
    options = {"--simulator": "", "--config": CONFIG, "--bus": "0"}
    calls = "--no-calls" not in arguments
    arguments = [one for one in arguments if one != "--no-calls"]
    for name in options:
        if name in arguments:
            at = arguments.index(name)
            options[name] = arguments[at + 1]
            del arguments[at : at + 2]
    if not (options["--simulator"] and arguments):
        print((__doc__ or "").splitlines()[0], file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as made:
            folder, config, bus = options.values()
            simulator = Simulator(Path(folder), Path(made), config, int(bus))
            print("| plan | MB | planned ms | simulated ms | ratio | its transfers, ms | simulated ms | ratio |")
            print("|---|---|---|---|---|---|---|---|")
            rows = [_row(simulator, name, calls=calls) for name in arguments]
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    groups = defaultdict[str, list[Row]](list)
    for row in rows:
        for key in (f"{row.network}, {row.memory}", row.network, "all"):
            groups[key].append(row)
    for name, some in groups.items():
        if len(some) > 1:
            print("\n".join(_order(name, some)))
    return 0


def _row(simulator: Simulator, name: str, *, calls: bool) -> Row:
    plan = load_plan(name)
    trace = trace_of(plan)
    tick = plan.machine_data.tick_ps
    if (seen := simulator.run(trace, "planned").latency_ps) != trace.latency * tick:
        raise InputError(f"{name}: the driver's events end at {seen} ps, the plan's at {trace.latency * tick}")
    whole, alone = (simulator.run(trace, mode, calls=calls) for mode in ("whole", "alone"))
    moving = sum(one.ticks for one in trace.timeline.transfers) * tick / _PS_IN_MS
    planned, simulated = trace.latency * tick / _PS_IN_MS, whole.latency_ps / _PS_IN_MS
    taken, size = alone.moving_ps / _PS_IN_MS, sum(one.bytes for one in trace.transfers) / 1e6
    cells = [Path(name).stem, f"{size:.3f}", f"{planned:.4f}", f"{simulated:.4f}", f"{simulated / planned:.3f}"]
    cells += [f"{moving:.3f}", f"{taken:.3f}", f"{taken / moving:.3f}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    return Row(Path(name).stem, plan.network, _memory(plan), planned, simulated)


def _memory(plan: Plan) -> str:
    return f"{plan.machine_data.memories['ocm'] // 1024} KiB"


def _order(name: str, rows: Sequence[Row]) -> list[str]:
    planned, simulated = [one.planned for one in rows], [one.simulated for one in rows]
    orders = f"Spearman {spearman(planned, simulated):.4f}, Kendall {kendall(planned, simulated):.4f}"
    pairs = swapped(planned, simulated)
    said = [f"{name}: {len(rows)} plans, {orders}, {len(pairs)} pairs swapped"]
    for a, b in pairs:
        apart = [f"{value[a]:.4f} and {value[b]:.4f}" for value in (planned, simulated)]
        most = max(abs(value[a] / value[b] - 1) for value in (planned, simulated))
        said.append(f"  {rows[a].name}, {rows[b].name}: planned {apart[0]}, simulated {apart[1]} ({100 * most:.2f} %)")
    return said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
