"""The fronts of bytes and on-chip memory, taken as claims: each point is an optimum in less memory.

Given the points (b_1, o_1), .., (b_n, o_n), bytes ascending, hence memory descending, of a machine with o_0 - 1 bytes:

    in o_(k-1) - 1 bytes no nest moves fewer than b_k; in o_n - 1 bytes none fits
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from formulations.tiling.problem import NESTS
from hwmodels.nest.homes import assignments
from instances.errors import InputError
from solver.calls.solve import ask
from solver.problems.tiling import fronts, prepare
from tests.adversary.anneal import Goal, Witness, searched
from tests.adversary.moves import form_of
from tests.adversary.nest_claims import LIMIT_S, Claim, contradicted, own_witness


def front_faults(goal: Goal, problem: str, rng: random.Random, *, tries: int) -> Iterator[str]:
    """Yield what is wrong with one random point of the front, or with its end."""
    request = prepare(NESTS[problem], ask(goal.layer, goal.machine, problem=problem, pins=goal.pins)[1])
    try:
        found = fronts(request, ("bytes", "ocm"), time_limit_s=LIMIT_S)[goal.layer.name]
    except InputError:  # no shared memory
        return
    if not found.complete:
        return
    k = rng.randint(0, len(found.points))
    room = goal.machine.ocm_bytes if k == 0 else found.points[k - 1].ocm - 1
    if room is None or room <= goal.machine.reserved_bytes:
        return
    less = replace(goal, machine=goal.machine.model_copy(update={"ocm_bytes": room}), measures=("bytes",))
    claim = Claim("the front", "INFEASIBLE")
    witnesses: list[tuple[str, Witness]] = []
    if k < len(found.points):
        point = found.points[k]
        claim = Claim("the front", "OPTIMAL", point.values[:1], point.values[0], form_of(goal.layer, point.nest))
        own = own_witness(less, claim)
        if isinstance(own, str):
            yield f"in {room} bytes of memory: {own}"
            return
        witnesses = [] if own is None else [("the front", own)]
    given = [one.form for _, one in witnesses]
    near = less.at(rng.choice(assignments(less.layer, less.machine)))
    best = searched(near, [replace(form, homes=()) for form in given], 1, rng, tries=tries)
    witnesses += [] if best is None else [("annealing", best)]
    yield from (f"in {room} bytes of memory: {what}" for what, _ in contradicted([claim], witnesses))
