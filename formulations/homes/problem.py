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

Encodings: `formulations.homes.cp_sat`, `formulations.homes.milp`. Source: none; docs/off_chip.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from formulations.homes.space import TASTE, Chosen, Places
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed
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
        """A Boolean for every home of an item and every assignment of a layer."""
        from formulations.homes.cp_sat import cp_sat  # late: solvers are slow to import

        return cp_sat(self.places, goal)

    def milp(self, goal: Goal) -> Model[Chosen]:
        """The same, with the assignments of a layer as a convex hull."""
        from formulations.homes.milp import milp

        made = milp(self.places, goal, self.out)

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
