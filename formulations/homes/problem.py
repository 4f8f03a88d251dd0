"""Homes: in which memory off the chip every feature map and every layer's weights of a network lie.

A machine with SRAM and flash off the chip, say: maps fit the SRAM, and so do the weights of some layers. Which?

Sets
    x in X  items: the maps of a network (what is concatenated is one) and the weights (with biases) of every layer
    h in H  memories off the chip; H[x] those where x may lie, by the machine and the pins
    t in T  layers that are planned; items[t] those that its operands are: IN, W (if it has one), OUT
    A[t]    assignments: a home in H[x] for every x of items[t]
    s in S  times: the operators at which some item is made
Given
    bytes[x]; first[x], last[x] between which x is there (weights: always); room[h] bytes, or no end of them
    value[t, a, k]: measure k (in the order asked for) of the best plan of layer t with homes a         (integers)
Variables
    home[x] in H[x]
Objective
    min lexicographically, for k = 1, 2, ..: sum_t value[t, (home[x] for x in items[t]), k]; then the sum over x of the
    place of home[x] among H[x], so that what nobody asks for lies where the machine prefers it
Constraints
    (ONE)   every item has one home: the result of a layer lies where all its readers find it
    (TIE)   home[x] = home[y] for inputs x, y of one sum, which is priced with one home for IN
    (ROOM)  sum over x with home[x] = h and first[x] <= s <= last[x] of bytes[x] <= room[h] for all h, s
Why the sum of best plans is the best plan
    Once the homes are settled layers share nothing: of plans with these homes the best is the sum of each layer's best,
    in the first measure, then among these in the second, and so on. All homes are looked at.
Assumes
    One layer runs after the other in the network's order; weights are put in place before the first inference; a map
    lies in one memory whole. Fragmentation of a memory is not looked at.
Optimal means
    No plan of any layers' nests with any homes is better, if value is proven for every t, a; with bounds of the first
    measure in place of values the same model gives a bound of all plans.

As rows (`rows_of`): x[i, h] says that item i lies in h, y[t, a] that layer t has homes a; with
    (TABLE) sum over a with home h for operand i of y[t, a] = x[i, h] for all i in items[t], h in H[i]
    (KEPT)  sum (value[t, a, j] - least[t, j]) y[t, a] <= kept[j] - sum_t least[t, j] for measures j < k
For one layer alone (TABLE) is the convex hull of its assignments; only (ROOM) and shared items couple. Source: none;
docs/off_chip.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from formulations.homes.space import TASTE, Chosen, Places
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed
from formulations.rows import Read, Rows, Terms
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network

#: Homes that are left out one by one before a MILP solver is given up.
_MOST_OUT = 50


@dataclass(frozen=True)
class Housing(Part[Chosen]):
    """An instance, and homes to start from."""

    places: Places
    known: Chosen | None = None
    name = "homes"

    def pieces(self, goal: Goal) -> Iterator[Piece[Chosen]]:
        """All homes."""
        yield _All(self.places)

    def price(self, chosen: Chosen) -> Priced:
        """The measures of all layers together; raises InputError if some layer has no plan for these homes."""
        places, sums = self.places, dict.fromkeys(self.places.measures, 0)
        for table in places.tables:
            row = table.values.get(tuple(chosen[x] for x in table.operands.values()))
            if row is None:
                raise InputError(f"layer {table.layer} has no plan for its homes")
            for measure, value in zip(places.measures, row, strict=True):
                sums[measure] += value
        taste = sum(item.homes.index(name) for item, name in zip(places.items, chosen, strict=True))
        return Priced({**sums, TASTE: taste})

    def replay(self, chosen: Chosen) -> Replayed:
        """Nothing is executed: the plans of layers are replayed where they are made."""
        return Replayed(self.price(chosen).measures, self.contains(chosen))

    def contains(self, chosen: Chosen) -> tuple[str, ...]:
        """The constraints that some homes break."""
        return tuple(self.places.faults(chosen))

    def explain(self) -> tuple[str, ...]:
        """Nothing: which memory is too small takes a search (`solver.problems.homes.fitting`)."""
        return ()


class _All(Piece[Chosen]):
    """All homes but those that a MILP solver found within the tolerance of floats, and not of integers."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.out: list[Chosen] = []

    def floor(self, goal: Goal) -> int:
        """Every layer where it costs least."""
        if goal.measure == TASTE:
            return 0
        return sum(min(costs.values()) for costs in self.places.costs(goal.measure))

    def cp_sat(self, goal: Goal) -> Model[Chosen]:
        """The rows."""
        from formulations.rows_cp_sat import cp_sat  # late: solvers are slow to import

        return cp_sat(*rows_of(self.places, goal))

    def milp(self, goal: Goal) -> Model[Chosen]:
        """The rows, asked again where an answer breaks one of them in integers."""
        from formulations.rows_milp import milp

        made = milp(*rows_of(self.places, goal, self.out))

        def kept(problem: object) -> Chosen | None:
            chosen = made.decode(problem)
            assert chosen is not None
            fits = next(self.places.faults(chosen), None) is None
            priced = Housing(self.places).price(chosen).measures if fits else {}
            if fits and all(priced[name] <= most for name, most in goal.caps.items()):
                return chosen
            if len(self.out) == _MOST_OUT:
                raise InputError("homes: the solver's answers break constraints")
            self.out.append(chosen)
            return None

        return replace(made, decode=kept)


def rows_of(places: Places, goal: Goal | None, out: Sequence[Chosen] = ()) -> tuple[Rows, Read[Chosen]]:
    """Return the rows and what reads homes from a solution; without a goal the bytes beyond (ROOM) are minimised.

    Homes in `out` are left out.
    """
    rows = Rows()
    homes = [{name: rows.new() for name in item.homes} for item in places.items]
    for xs in homes:
        rows.add(dict.fromkeys(xs.values(), 1), 1, 1)
    for one, two in places.ties:
        for name in {*homes[one], *homes[two]}:
            mine = {of[name]: sign for of, sign in ((homes[one], 1), (homes[two], -1)) if name in of}
            rows.add(mine, 0, 0)
    beyond: Terms = {}
    for name, room in places.rooms.items():
        slack = {} if goal else {rows.new(sum(item.bytes for item in places.items)): -1}
        beyond |= dict.fromkeys(slack, 1)
        for time in places.times:
            there = {homes[x][name]: places.items[x].bytes for x in places.there(time) if name in homes[x]}
            rows.add({**there, **slack}, None, room)
    for chosen in out:
        rows.add({xs[name]: 1 for xs, name in zip(homes, chosen, strict=True)}, None, len(chosen) - 1)
    if goal is None:
        rows.minimise(beyond)
    else:
        _costs(rows, places, homes, goal)

    def read(value: Callable[[int], bool]) -> Chosen:
        return tuple(next(name for name, x in xs.items() if value(x)) for xs in homes)

    return rows, read


def _costs(rows: Rows, places: Places, homes: Sequence[Mapping[str, int]], goal: Goal) -> None:
    """(TABLE), (KEPT), and what is minimised, each beyond the least of every layer."""
    chosen = []
    for table in places.tables:
        ys = {names: rows.new() for names in table.values}
        for place, item in enumerate(table.operands.values()):
            for name, x in homes[item].items():
                rows.add({**{y: 1 for names, y in ys.items() if names[place] == name}, x: -1}, 0, 0)
        chosen.append(ys)

    def beyond(measure: str) -> tuple[Terms, int]:
        costs = places.costs(measure)
        least = [min(of.values()) for of in costs]
        every = zip(chosen, costs, least, strict=True)
        return {y: of[names] - low for ys, of, low in every for names, y in ys.items()}, sum(least)

    for measure, most in goal.caps.items():
        terms, constant = beyond(measure)
        rows.limit(terms, most - constant)
    if goal.measure == TASTE:
        rows.minimise({x: k for xs in homes for k, x in enumerate(xs.values())})
    else:
        rows.minimise(*beyond(goal.measure))


class Homes(Formulation[Chosen]):
    """The homes of a network's items, once the plans of its layers are known for all homes."""

    name = "homes"
    summary = "the memory off the chip of every map and of all weights"
    schedule = tuple[str, ...]
    measures = {TASTE: "places"}  # noqa: RUF012
    engines = {"cp-sat": "CP-SAT", "milp": "HiGHS", "milp-cbc": "CBC"}  # noqa: RUF012
    heuristics = {"known": ("homes that are known to fit", lambda housing, _: housing.known)}  # noqa: RUF012
    starts = quick = ("known",)

    def read(
        self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None
    ) -> Sequence[Housing]:  # fmt: skip
        """The items of a network; the tables are still without values."""
        from formulations.homes.space import places_of

        picked = [layer for layer in network.layers if layers is None or layer.name in layers]
        return [Housing(places_of(network, picked, machine, pins))]
