"""The adversary of tiling and slicing: engines, searches, rules.

engines     exhaustive, and now and then cp-sat, milp and the unreduced space
searches    annealing from every claimed nest, from the witness of the case and from random nests; every nest of
            few loops where the layer is tiny, the best of all nests where it is tinier (`tests.adversary.lattice`)
fronts      a point of the front of bytes and memory is an optimum in less memory (`tests.adversary.nest_fronts`)
rules       a goal and a looser one (more memory, cheaper transfers, buffers left open, a demand dropped, lines, in
            bytes snake order): a plan of the first is one of the second, at a price that is not above; a demand for
            the tile of the optimum, and all prices k times as high: a plan of either is one of the other
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hwmodels.nest.homes import assignments, repriced
from hwmodels.schedule import Nest, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS
from tests.adversary.anneal import Goal, Witness, confirmed, searched
from tests.adversary.base import Disagreement
from tests.adversary.demands import readable, tile
from tests.adversary.lattice import able, least
from tests.adversary.moves import Form, form_of, spreads
from tests.adversary.nest_case import NestCase, case_from, case_of, random_case, simpler
from tests.adversary.nest_claims import Claim, asked, contradicted, own_witness, unsearched
from tests.adversary.nest_fronts import front_faults
from tests.adversary.pricing import Pricer
from tests.adversary.tiny import enumerated

#: Prices of a walk, by the size of the case.
TRIES = {"tiny": 800, "small": 1200, "real": 3000}
#: Nests of the complete enumeration.
MOST_NESTS = 6000
#: Places to cut of the layers whose nests are all looked at.
LATTICE = 7
#: Unreduced spaces that are searched.
MOST_POINTS = 100_000
#: Of a hundred cases: those that a slow engine is asked, and those that are enumerated.
_SLOW = {"cp-sat": 25, "milp": 12}
_FULL, _ENUMERATED, _RULE, _FRONT = 20, 25, 60, 6
_TIMES = 3
#: Who finds which nest.
Witnesses = list[tuple[str, Witness]]
Found = Iterator[tuple[str, Witness]]


@dataclass(frozen=True)
class _Line:
    what: str
    goal: Goal
    witness: Witness | None = None


@dataclass
class NestTester:
    """The adversary of one problem of nests."""

    name: str
    cores: bool
    """Whether its machines have several cores."""

    def case(self, rng: random.Random) -> NestCase:
        """Return a random case."""
        return random_case(rng, cores=self.cores)

    def run(self, case: NestCase, rng: random.Random) -> list[Disagreement]:
        """Return what cannot be."""
        return [Disagreement(self.name, line.what, case_of(_with(case, line))) for line in self._lines(case, rng)]

    def smaller(self, case: NestCase) -> Iterator[NestCase]:
        """Yield simpler cases."""
        return simpler(case)

    def to_json(self, case: NestCase) -> dict[str, object]:
        """Return the case as JSON data."""
        return case_of(case)

    def from_json(self, data: Mapping[str, object]) -> NestCase:
        """Return what `to_json` gave."""
        return case_from(data)

    # ---- one case ------------------------------------------------------------------------------------------------

    def _lines(self, case: NestCase, rng: random.Random) -> Iterator[_Line]:
        goal = Goal(case.layer, case.machine, case.measures, case.pins)
        # the first draws: the written case, which has a witness to try, must draw the same
        if rng.randrange(100) < _FRONT and case.size == "tiny" and not self.cores and readable(goal.pins):
            yield from (_Line(what, goal) for what in self._front(goal, rng))
        claims = self._claims(case, goal, rng)
        if all(claim.status == "REFUSED" for claim in claims):
            return
        witnesses: Witnesses = []
        for claim in claims:
            own = own_witness(goal, claim)
            if isinstance(own, str):
                yield _Line(own, goal)
            elif own is not None:
                witnesses.append((claim.engine, own))
        if readable(goal.pins):
            try:
                witnesses += self._searches(case, goal, [w.form for _, w in witnesses], rng)
            except ArithmeticError as error:
                yield _Line(str(error), goal)
        if rng.randrange(100) < _RULE and case.size != "real":
            other = self._rule(goal, [w for _, w in witnesses], rng)
            if other is not None:
                yield from self._both(goal, claims, witnesses, *other)
                return
        yield from (_Line(what, goal, witness) for what, witness in contradicted(claims, witnesses))

    def _front(self, goal: Goal, rng: random.Random) -> list[str]:
        try:
            return list(front_faults(goal, self.name, rng, tries=TRIES["tiny"]))
        except InputError:  # a case that this problem refuses: `asked` says so
            return []
        except ArithmeticError as error:
            return [str(error)]

    def _claims(self, case: NestCase, goal: Goal, rng: random.Random) -> list[Claim]:
        claims = [asked(goal, "exhaustive", self.name)]
        if case.size == "real":
            return claims
        if claims[0].status not in ("REFUSED", "CRASHED"):
            claims += unsearched(goal, self.name)
        claims += [asked(goal, name, self.name) for name, often in _SLOW.items() if rng.randrange(100) < often]
        if rng.randrange(100) < _FULL and 0 < claims[0].points <= MOST_POINTS:
            claims.append(asked(goal, "exhaustive", self.name, full=True))
        return claims

    def _searches(self, case: NestCase, goal: Goal, forms: list[Form], rng: random.Random) -> Found:
        homes = rng.choice(assignments(goal.layer, goal.machine))
        open_, goal = goal, goal.at(homes)
        for who, found in self._searches_at(case, goal, forms, rng):
            here = confirmed(open_, replace(found.form, homes=tuple(homes.items())))
            if isinstance(here, str):
                raise ArithmeticError(f"{who}: {here}")
            yield who, here

    def _searches_at(self, case: NestCase, goal: Goal, forms: list[Form], rng: random.Random) -> Found:
        """Searches where every operand has one home."""
        pricer = Pricer(goal.layer, goal.machine)
        if case.witness is not None:
            forms = [_fitted(goal, case.witness), *forms]
            known = confirmed(goal, forms[0])
            if isinstance(known, Witness):
                yield "the known nest", known
        forms = list(dict.fromkeys(replace(form, homes=()) for form in forms))
        found = searched(goal, forms[:2], 1 if forms else 2, rng, tries=TRIES[case.size], pricer=pricer)
        if found is not None:
            yield "annealing", found
        if not goal.pins and able(goal.layer, goal.machine, LATTICE) and (every := least(goal)) is not None:
            yield "the best of all", every
        if case.size == "tiny" and not goal.timeline and not goal.able and rng.randrange(100) < _ENUMERATED:
            best, _ = enumerated(goal, 3, MOST_NESTS, pricer=pricer)
            if best is not None:
                yield "enumeration", best

    # ---- rules -------------------------------------------------------------------------------------------------------

    def _rule(self, goal: Goal, witnesses: list[Witness], rng: random.Random) -> tuple[str, Goal, bool] | None:
        """A goal beside this one: what it is, and whether the plans of this one are the stricter."""
        rules = [*_looser(goal, rng)]
        if witnesses and readable(goal.pins):
            best = min(witnesses, key=lambda one: one.vector)
            size = tile(goal.layer, goal.machine, best.form)
            d = rng.choice([d for d in DIMS if goal.layer.extent(d) > 1] or ["c"])
            pin = f"T_{d.upper()}={size[d]}"
            rules.append((f"with --pin {pin}", replace(goal, pins=(*goal.pins, pin)), False))
        return rng.choice(rules) if rules else None

    def _both(
        self, goal: Goal, claims: list[Claim], witnesses: Witnesses, what: str, other: Goal, looser: bool
    ) -> Iterator[_Line]:
        """The claims on two goals, with the witnesses that either has for the other."""
        second = asked(other, "exhaustive", self.name)
        own = own_witness(other, second)
        theirs: Witnesses = []
        if isinstance(own, str):
            yield _Line(own, other)
        elif own is not None:
            theirs.append((second.engine, own))
        here = [*witnesses, *_carried(goal, theirs, f"the plan {what}")]
        there = [*theirs, *_carried(other, witnesses, f"the plan of the case whose other is {what}")]
        yield from (_Line(line, goal, witness) for line, witness in contradicted(claims, here))
        yield from (_Line(f"{what}: {line}", other, w) for line, w in contradicted([second], there))
        if not looser:
            return
        for who, one in witnesses:
            moved = confirmed(other, one.form, execute=False)
            if isinstance(moved, str) or any(a > b for a, b in zip(moved.vector, one.vector, strict=True)):
                said = moved if isinstance(moved, str) else f"{moved.vector}, not at most {one.vector}"
                yield _Line(f"the plan of {who}, {what}: {said}", other, one)


def _carried(goal: Goal, witnesses: Witnesses, who: str) -> Found:
    if not readable(goal.pins):
        return
    for _, one in witnesses:
        found = confirmed(goal, one.form, execute=False)
        if isinstance(found, Witness):
            yield who, found


def _looser(goal: Goal, rng: random.Random) -> Iterator[tuple[str, Goal, bool]]:
    machine = goal.machine
    single = machine.tles * machine.tlts == 1

    def on(what: str, **fields: object) -> tuple[str, Goal, bool]:
        return f"with {what}", replace(goal, machine=machine.model_copy(update=fields)), True

    names = [x for x in ("ocm_bytes", "in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes") if getattr(machine, x)]
    name = rng.choice(names)
    more = getattr(machine, name) + rng.choice((1, 2, 8, 64))
    yield on(f"{name}={more}", **{name: more})
    priced = [name for name in Transfer.model_fields if name.endswith("_ticks")]
    if dear := [x for x in priced if all(getattr(one, x) for one in machine.transfers)]:
        price = rng.choice(dear)
        ticks = min(getattr(one, price) for one in machine.transfers) - 1
        yield f"with {price}={ticks}", replace(goal, machine=repriced(machine, **{price: ticks})), True
    for place, homes in machine.homes.items():
        freer = tuple(dict.fromkeys((*homes, *(m.name for m in machine.off_chip if m.writable or place != "OUT"))))
        if freer != homes:
            yield on(f"homes.{place}={' or '.join(freer)}", homes={**machine.homes, place: freer})
    if machine.buffering == "single" and single:
        yield on("buffering=choose", buffering="choose", overlap=machine.timing)
    if machine.sliding and single and not machine.line:
        yield on("line", line=True)
    if goal.measures == ("bytes",) and machine.edge_tiles == "true" and single:
        yield on("snake", snake=True)
    for operand, level in machine.broadcast.model_dump().items():
        if level != "chip" and not single:
            wider = machine.broadcast.model_copy(update={operand: "chip"})
            yield on(f"broadcast.{operand}=chip", broadcast=wider)
    for k, pin in enumerate(goal.pins):
        yield f"without --pin {pin}", replace(goal, pins=(*goal.pins[:k], *goal.pins[k + 1 :])), True
    yield f"with prices times {_TIMES}", replace(goal, machine=_scaled(machine)), False


def _scaled(machine: Machine) -> Machine:
    def dearer(price: Transfer) -> Transfer:
        ticks = {name: ticks * _TIMES for name, ticks in price.model_dump().items() if name.endswith("_ticks")}
        return price.model_copy(update=ticks)

    memories = tuple(
        one.model_copy(update={"transfer": dearer(one.transfer), "byte_fj": one.byte_fj * _TIMES})
        for one in machine.off_chip
    )
    compute = machine.compute.model_copy(update={"cycle_ticks": machine.compute.cycle_ticks * _TIMES})
    return machine.model_copy(update={
        "transfer": dearer(machine.transfer), "compute": compute, "off_chip": memories,
        "byte_fj": machine.byte_fj * _TIMES, "mac_fj": machine.mac_fj * _TIMES,
        "layer_ticks": machine.layer_ticks * _TIMES,
    })  # fmt: skip


def _fitted(goal: Goal, nest: Nest) -> Form:
    """The form of a nest of a larger case: shared among the units as this one may be."""
    spread = tuple((one.dim, one.step, one.over) for one in nest.items if isinstance(one, Spatial))
    ways = spreads(goal.layer, goal.machine)
    cuts = [Spatial(*cut) for cut in (spread if spread in ways else ways[0])]
    return form_of(goal.layer, Nest((*cuts, *(one for one in nest.items if not isinstance(one, Spatial)))))


def _with(case: NestCase, line: _Line) -> NestCase:
    """The case in which a line is seen again at once."""
    nest = None if line.witness is None else line.witness.nest
    goal = line.goal
    return replace(case, machine=goal.machine, measures=goal.measures, pins=goal.pins, witness=nest)
