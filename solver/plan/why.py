"""What `why` says of a plan, as versioned, validated data.

Sums are exact: the parts of a measure sum to its value. A claim that something *binds* names what was solved again, and
with which result; `binds` is None where that did not decide it.
"""

from __future__ import annotations

import json
from typing import Final, Literal

from hwmodels.outcome import Natural
from instances.frozen import Frozen
from solver.plan.claims import Seconds, Status
from solver.plan.faces import FACES

#: The first field of every file.
FORMAT: Final = "certile-why/1"
#: What a plan is bound by: a closed list, explained in docs/why.md.
Cause = Literal[
    "memory", "pin", "array", "bandwidth", "startup", "runs", "bursts", "compute", "layer", "arithmetic", "traffic",
    "compulsory", "balanced", "engine", "together", "processor", "infeasible", "unsolved",
]  # fmt: skip
#: How sure a solve is: as of plans, or not done at all.
Known = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND", "SKIPPED"]


class Part(Frozen):
    """A part of a measure."""

    what: str
    """An operand (IN, W, OUT, PSUM), ``compute``, a layer, or what the plan calls it."""
    cause: str
    """Why: a cause of docs/why.md, or empty where the plan knows no more."""
    value: int
    """Parts sum to the measure; what runs side by side is a negative part."""
    why: str = ""
    """In words, where there is more to say."""


class Split(Frozen):
    """A measure, in parts."""

    measure: str
    unit: str
    value: Natural
    parts: tuple[Part, ...]


class Room(Frozen):
    """A memory on chip."""

    memory: str
    used: Natural
    capacity: Natural

    @property
    def slack(self) -> int:
        """Bytes that are left."""
        return self.capacity - self.used


class Trial(Frozen):
    """Something that was made easier, and what solving again then said."""

    cause: Cause
    name: str
    """A machine field, a pin, or what else was changed."""
    change: str
    """What was changed: ``ocm_bytes without limit``."""
    status: Known
    value: int | None = None
    bound: int | None = None
    saves: int | None = None
    """Value of the plan (or of the best one known under its own conditions), less `value`."""
    binds: bool | None = None
    """True: something better exists without it (and no plan with it is as good). False: proven that none is. None: not
    decided in time.
    """
    exact: bool = False
    """Whether `saves` is exact; else it is the least that is saved."""
    amount: float = 0
    """How much more there was, in the unit of `per`; 0 where it is no amount."""
    per: str = ""


class Stall(Frozen):
    """A step that waits for a transfer, and what would have hidden that."""

    step: Natural
    """Its number, from 1."""
    layer: str
    what: str
    """What is loaded or stored."""
    ticks: Natural
    """That it waits."""
    bytes: int | None = None
    """More of them on chip hide it, with an order of transfers for them; None: no memory does."""
    gbps: float | None = None
    """At this rate it is there in time, if it begins when it does; None: calls alone take too long."""


class Knee(Frozen):
    """A value of a machine field from which on the optimum is better."""

    field: str
    at: int
    """The value of the field, exactly, if `exact`; else one that is enough."""
    more: int
    """`at`, less the machine's own."""
    value: int
    saves: int
    exact: bool


class Rival(Frozen):
    """Another decision, and the best plan with it."""

    decision: str
    """The demand that was added: ``T_M<=7``, or an engine."""
    status: Known
    value: int | None = None
    more: int | None = None
    """What it costs beyond the plan; 0: another plan that is as good."""
    exact: bool = False
    """Whether it is proven that no plan with this decision is better."""


class Limit(Frozen):
    """A lower bound, and how far the plan is above it."""

    name: str
    value: int
    means: str


class About(Frozen):
    """What is known of a layer, or (`layer` is empty) of the whole plan."""

    layer: str
    cause: Cause
    headline: str
    """The cause in one sentence."""
    objective: str
    unit: str
    value: int | None
    status: Status
    splits: tuple[Split, ...] = ()
    """The first objective, then the other measures."""
    rooms: tuple[Room, ...] = ()
    busy: str = ""
    """How full the MAC array is, in words; empty where there is none."""
    stalls: tuple[Stall, ...] = ()
    """In a network with prefetch the longest waits."""
    trials: tuple[Trial, ...] = ()
    """What was made easier, one thing at a time."""
    knee: Knee | None = None
    """The next size of the memory that saves most without limit."""
    enough: Knee | None = None
    """The least size of it that is as good as no limit."""
    rivals: tuple[Rival, ...] = ()
    limits: tuple[Limit, ...] = ()
    left_out: tuple[str, ...] = ()
    """What was not solved again, as time was up."""
    conflicts: tuple[str, ...] = ()
    solves: Natural = 0
    wall_s: Seconds = 0.0


class Point(Frozen):
    """The best plan at one value of a machine field."""

    x: int
    """Of the field, in finer ticks where the curve says so (`Curve.finer`)."""
    shown: str
    """The same for people: KiB, GB/s, MHz."""
    value: int | None
    """Of the objective, in ticks / `finer`."""
    status: Known
    exact: bool
    """Whether it is proven."""
    slope: int | None = None
    """How the objective changes with x here if the plan stays as it is (prices of tilings alone)."""


class Curve(Frozen):
    """The objective over one machine field: what a picture draws."""

    layer: str
    field: str
    unit: str
    """Of the field."""
    objective: str
    objective_unit: str
    finer: Natural = 1
    """Ticks are divided by this, so that prices between whole ticks can be tried."""
    now: int
    """The machine's own x."""
    points: tuple[Point, ...]
    """Ascending in x."""
    knees: tuple[int, ...]
    """Values of x where the curve changes, exactly: the objective at the point is another one than just below it (of
    memories and counts), or the slope changes (of prices).
    """
    complete: bool
    """Whether these are all knees from the first point to the last."""

    @property
    def origin(self) -> Point | None:
        """The point of the machine as it is."""
        return next((point for point in self.points if point.x == self.now), None)


class Why(Frozen):
    """What is known of a plan."""

    format: Literal["certile-why/1"] = FORMAT
    certile: str
    problem: str
    network: str
    machine: str
    engine: str
    parts: tuple[About, ...]
    """Layer by layer where layers are decided by themselves."""
    curves: tuple[Curve, ...] = ()

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"

    def about(self, layer: str) -> About:
        """Return what is known of a layer; raises KeyError if nothing is."""
        for part in self.parts:
            if part.layer == layer:
                return part
        raise KeyError(layer)

    def __str__(self) -> str:
        """All of it in sentences."""
        return "\n".join(FACES["why_lines"](self))
