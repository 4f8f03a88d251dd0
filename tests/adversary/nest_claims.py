"""What engines claim of a nest, and what contradicts them: witnesses that replay accepts.

Given the claims on a goal and the witnesses found for it (every claimed nest, every search, the plans of stricter
goals), w* the least vector of a witness, by the order of the measures:

    OPTIMAL      value = bound, and no witness is less
    bound        at most the first measure of w*
    INFEASIBLE   there is no witness
    a plan       replay accepts it, its measures are those claimed, it meets the demands
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formulations.pins import parse_pins
from formulations.tiling.space import bound_without_search
from instances.errors import InputError
from instances.jsonfile import LARGEST_INTEGER
from solver.ask.options import pick_nests
from solver.calls.solve import solve
from tests.adversary.anneal import Goal, Witness, confirmed
from tests.adversary.demands import readable
from tests.adversary.moves import Form, form_of

#: Seconds for one claim; what is not proven by then is checked as what it says.
LIMIT_S = 20.0


@dataclass(frozen=True)
class Claim:
    """One engine's answer."""

    engine: str
    status: str
    """As the plan says; REFUSED if the engine does not take the case, CRASHED if it failed; BOUND without a search."""
    vector: tuple[int, ...] | None = None
    bound: int | None = None
    form: Form | None = None
    said: str = ""
    """What it said when it failed."""
    points: int = 0
    """Nests of its space."""

    def __str__(self) -> str:
        value = "" if self.vector is None else f" {', '.join(map(str, self.vector))}"
        return f"{self.engine} says {self.status}{value} (bound {self.bound})"


def asked(goal: Goal, engine: str, problem: str, *, full: bool = False) -> Claim:
    """Ask an engine; `full`: over the unreduced space."""
    name = f"{engine} over all steps" if full else engine
    try:
        whole = solve(goal.layer, goal.machine, problem=problem, engine=engine, objective=goal.measures,
            pins=goal.pins, full=full, bounding=not full, time_limit_s=LIMIT_S,
        )  # fmt: skip
    except InputError as error:
        return Claim(name, "REFUSED", said=str(error))
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return Claim(name, "CRASHED", said=f"{type(error).__name__}: {' '.join(str(error).split())}")
    vector, plan = None, whole.layers[0]
    if plan.measures is not None:
        measures = plan.measures.model_dump()
        vector = tuple(int(measures[x]) for x in goal.measures)
    form = None if plan.schedule is None else form_of(goal.layer, plan.schedule)
    points = int(whole.parts[0].size.get("points", LARGEST_INTEGER))
    # over all homes, where there is a choice
    return Claim(name, whole.status, vector, whole.bound, form, points=points)


def unsearched(goal: Goal, problem: str) -> list[Claim]:
    """Bounds that need no search: in closed form, and of the space; none of machines with several memories."""
    measure, on = goal.measures[0], goal.machine
    if on.off_chip or measure not in ("bytes", "time", "energy"):
        return []
    formulation = pick_nests(problem)
    space = formulation.build(goal.layer, on, parse_pins(goal.pins, formulation.decisions))
    return [
        Claim(name, "BOUND", bound=bound_without_search(space, measure, hurry=hurry))
        for name, hurry in (("closed form", True), ("floor of the space", False))
    ]


def own_witness(goal: Goal, claim: Claim) -> Witness | str | None:
    """Return a claim's nest as a witness, what is wrong with it, or None without a nest."""
    if claim.form is None:
        return None
    reading = goal if readable(goal.pins) else Goal(goal.layer, goal.machine, goal.measures)
    found = confirmed(reading, claim.form)
    if isinstance(found, str):
        return f"{claim}: {found}"
    if found.vector != claim.vector:
        return f"{claim}: replay says {', '.join(map(str, found.vector))}"
    return found


def contradicted(
    claims: Sequence[Claim], witnesses: Sequence[tuple[str, Witness]]
) -> Iterator[tuple[str, Witness | None]]:
    """Yield one line for everything that cannot be, with the witness.

    Parameters
    ----------
    witnesses : sequence of (str, Witness)
        With who found them.
    """
    who, best = min(witnesses, key=lambda one: one[1].vector, default=("", None))
    for claim in claims:
        if claim.status == "CRASHED":
            yield f"{claim.engine} fails: {claim.said}", None
        if claim.status == "OPTIMAL" and (claim.vector is None or claim.bound != claim.vector[0]):
            yield f"{claim}: value and bound are not the same", None
        if claim.status == "FEASIBLE" and (claim.vector is None or (claim.bound or 0) > claim.vector[0]):
            yield f"{claim}: the bound is above the value", None
        if best is None:
            continue
        found = f"{who} finds {', '.join(map(str, best.vector))}"
        if (claim.status == "OPTIMAL" and claim.vector is not None and best.vector < claim.vector) or (
            claim.status == "INFEASIBLE"
        ):
            yield f"{claim}, {found}", best
        elif claim.bound is not None and claim.bound > best.vector[0]:
            yield f"{claim}, {found}, below the bound", best
