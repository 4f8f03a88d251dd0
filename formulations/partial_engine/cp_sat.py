"""CP-SAT models of partial_engine: the bounds for all orders, the order itself, and the engine's size.

The bounds are those of `formulations.partial_engine.bounds`, the size that of `formulations.partial_engine.size`. The
order itself, what lies in the places from one entry to the next:

Sets         input groups i, output groups o of one game; stages t = 1..T
Variables    X[i,t], Y[o,t] in {0, 1}: group in a place;  E[i,t], F[o,t] in {0, 1}: it enters;
             R[i,o,t] in {0, 1}: the run is done in stage t
Objective    min sum load[i]*E[i,t] + sum_o swap[o]*(sum_t F[o,t] - 1), below the bytes that are known
Constraints  (PLACES) sum_i X[i,t] <= x, sum_o Y[o,t] <= y
             (ENTER)  E[i,t] >= X[i,t] - X[i,t-1], F[o,t] >= Y[o,t] - Y[o,t-1]
             (RUN)    R[i,o,t] <= X[i,t], R[i,o,t] <= Y[o,t], sum_t R[i,o,t] = 1
             (STAY)   sum_t F[o,t] <= 1 if partial maps may not be stored
T            An order that moves fewer bytes than known has at most so many entries beyond one each that the least load
             or swap for each of them stays below the bytes known beyond every load once. The first x and y entries can
             be one stage, every other one takes a stage at most.
It closes what gap the bounds leave on small grids; with more than MOST_STAGES stages it is not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.partial_engine.bounds import Bounded, bounded
from formulations.partial_engine.orders import Order
from formulations.partial_engine.size import Rates, Size, ranked
from formulations.partial_engine.space import Branch, Game

#: Stages up to which the model is solved.
MOST_STAGES = 12


def stages(game: Game, known: int) -> int:
    """Return T: stages within which every order fits that moves fewer bytes of inputs and partial maps than known."""
    beyond = max(0, known - 1 - game.base) // max(1, min(*game.loads, *game.swaps))
    return game.inputs + game.outputs + beyond - game.x - game.y + 1


def runs_cp_model(branches: Sequence[Branch], known: int, *, stay: bool = False) -> tuple[cp_model.CpModel, Bounded]:
    """Return the model of the bounds of some choices; some order moves `known` bytes."""
    model = cp_model.CpModel()
    found = bounded(branches, known, lambda name, most: model.new_int_var(0, most, name), stay=stay)
    for row in found.rows:
        model.add(row)
    model.minimize(cp_model.LinearExpr.weighted_sum([v for v, _ in found.terms], [c for _, c in found.terms]))
    return model, found


def size_cp_model(sizes: Sequence[Size], aim: Rates, dsps: int, brams: int) -> tuple[cp_model.CpModel, list[int]]:
    """Return the model, which maximises a rank, and the levels."""
    model = cp_model.CpModel()
    y = [model.new_int_var(0, size.dsps <= dsps and size.brams <= brams, "") for size in sizes]
    levels, ranks = ranked(sizes, aim)
    k = model.new_int_var(0, len(levels) - 1, "k")
    model.add_exactly_one(y)
    for row in ranks:
        model.add(k <= cp_model.LinearExpr.weighted_sum(y, row))
    model.maximize(k)
    return model, levels


@dataclass
class StagesCpModel:
    """The model with its variables."""

    model: cp_model.CpModel
    runs: dict[tuple[int, int], list[cp_model.IntVar]]

    def chosen(self, solver: cp_model.CpSolver) -> Order:
        """The order of a solution."""
        at = {run: next(t for t, x in enumerate(done) if solver.boolean_value(x)) for run, done in self.runs.items()}
        return sorted(at, key=lambda run: (at[run], run[1], run[0]))


def stages_cp_model(game: Game, known: int, *, stay: bool = False) -> StagesCpModel:
    """Return the model of the orders that move fewer bytes than `known`."""
    model, times = cp_model.CpModel(), range(stages(game, known))
    sides = []
    for name, number, places in (("x", game.inputs, game.x), ("y", game.outputs, game.y)):
        here = [[model.new_bool_var(f"{name}_{n}_{t}") for t in times] for n in range(number)]
        enters = [[model.new_bool_var(f"{name}e_{n}_{t}") for t in times] for n in range(number)]
        for t in times:
            model.add(sum(row[t] for row in here) <= places)
            for row, entry in zip(here, enters, strict=True):
                model.add(entry[t] >= (row[t] - row[t - 1] if t else row[t]))
        sides.append((here, enters))
    (ins, loads), (outs, swaps) = sides
    runs = {}
    for i, one in enumerate(ins):
        for o, other in enumerate(outs):
            done = [model.new_bool_var(f"r_{i}_{o}_{t}") for t in times]
            model.add_exactly_one(done)
            for t in times:
                model.add_implication(done[t], one[t])
                model.add_implication(done[t], other[t])
            runs[i, o] = done
    if stay:
        for entry in swaps:
            model.add(sum(entry) <= 1)
    bytes_ = sum(c * sum(e) for c, e in zip(game.loads, loads, strict=True))
    bytes_ += sum(c * sum(e) for c, e in zip(game.swaps, swaps, strict=True)) - sum(game.swaps)
    model.add(bytes_ <= known - 1)
    model.minimize(bytes_)
    return StagesCpModel(model, runs)
