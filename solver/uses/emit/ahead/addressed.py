"""Plans that leave room for addresses: the same groups and nests, their transfers ordered with bytes to spare.

The bytes of a step may fill the memory, and what is there leave no gap for a row: rows and filters lie where they lie
while others come and go. Mostly they are prefetches that fill it. So where no addresses are found, transfers are
ordered anew as if the memory had fewer bytes while that layer or group runs beyond whose step no placement gets, twice
as many left free each time that it is the same one, until there are addresses. Steps keep all bytes that they need; the
time is that of the new order.

An example: in many layers of ResNet-50 two blocks of weights fill the memory, one that computes and the next one; in
one of these they find no addresses. With bytes to spare there each of its blocks is loaded when the one before has
gone. All other layers keep theirs.
"""

from __future__ import annotations

from typing import cast

from formulations.clock import Clock
from formulations.fusion.latency.timelines import Carried
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import Runs
from instances.errors import InputError
from instances.network.network import Network
from solver.plan.plan import Plan
from solver.problems.joint import SharedProblem
from solver.problems.registry import problem_of
from solver.uses.emit.ahead.placing import NoAddresses
from solver.uses.emit.ahead.program import AheadPlanned
from solver.uses.emit.ahead.whole import Whole
from solver.uses.emit.meaning import Meaning

#: Parts of the memory that are left free beside what a step has, at first and at the most.
FIRST, MOST = 512, 2


def carried(plan: Plan) -> Carried:
    """Return the steps and transfers of a plan of a network; raises InputError if there are too many for a queue."""
    problem = problem_of(plan)
    assert isinstance(problem, SharedProblem)
    if (found := problem.carried(plan)) is None:
        raise InputError("too many transfers: none is prefetched")
    return found


def addressed(plan: Plan, network: Network, meaning: Meaning | None, clock: Clock) -> Plan:
    """Return a plan of a network of whose transfers ahead C can be written: itself, or ordered with bytes to spare.

    The plan itself, too, where that is not a matter of addresses, where none are found, and when it is time.
    """
    problem = problem_of(plan)
    assert isinstance(problem, SharedProblem)
    (part,), machine = cast(tuple[FusionPart], problem.parts_of(plan)), plan.machine_data
    runs, spares, size = plan.schedule, dict[int, int](), machine.memories["ocm"]

    def whole(runs: Runs) -> Whole:
        return AheadPlanned(network, machine, runs.runs, meaning, carried=part.carried(runs)).whole

    while True:
        try:
            whole(runs)
        except NoAddresses as error:
            run = part.run_of(runs, error.step)
            spares[run] = 2 * spares[run] if run in spares else max(1, size // FIRST)
            if spares[run] > size // MOST or clock.over:
                return plan
            runs = part.spared(plan.schedule, spares)
        except InputError:
            return plan
        else:
            return problem.reordered(plan, part, runs) if spares else plan


def said_of(before: Plan, plan: Plan) -> str:
    """Return what a plan gave for addresses, in one line; nothing if it gave nothing."""
    if plan is before:
        return ""
    took, takes = ((one.measures or {})["time"] for one in (before, plan))
    more = f"{100 * (takes / took - 1):.2f} % more time"
    return f"transfers are ordered anew, so that what lies on chip finds addresses: {more}"
