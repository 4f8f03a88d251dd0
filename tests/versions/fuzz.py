"""Ask one installed version for the optimum of many small random models of our kind, and compare with enumeration.

``python tests/versions/fuzz.py cp-sat|milp FIRST COUNT [WORKERS]`` (two workers take turns, more race) prints one JSON
object with the seeds whose answer was wrong. A model chooses one candidate in each of three dimensions (as tile sizes
are chosen); its cost is a sum of pair tables and of a product, its capacity a pair table plus a single one, some
candidates are forbidden, and about one in five is infeasible. `docs/versions.md` holds the result for the versions
considered.
"""

from __future__ import annotations

import importlib
import itertools
import json
import random
import sys
from dataclasses import dataclass

PAIRS = ((0, 1), (1, 2), (0, 2))


@dataclass(frozen=True)
class Instance:
    """Sizes, pair costs, values whose product is charged, footprints, capacity, forbidden candidates."""

    sizes: tuple[int, int, int]
    cost: dict[tuple[int, int], list[list[int]]]
    value: list[list[int]]
    need: list[list[int]]
    need_last: list[int]
    capacity: int
    forbidden: list[tuple[int, int]]
    style: int

    def price(self, pick: tuple[int, ...]) -> int | None:
        """The cost of one choice, None where it does not fit or is forbidden."""
        if any(pick[dim] == candidate for dim, candidate in self.forbidden):
            return None
        if self.need[pick[0]][pick[1]] + self.need_last[pick[2]] > self.capacity:
            return None
        product = self.value[0][pick[0]] * self.value[1][pick[1]]
        return product + sum(self.cost[a, b][pick[a]][pick[b]] for a, b in PAIRS)

    def optimum(self) -> int | None:
        """The least cost by enumeration."""
        prices = (self.price(pick) for pick in itertools.product(*(range(size) for size in self.sizes)))
        return min((price for price in prices if price is not None), default=None)


def instance(seed: int) -> Instance:
    """The model of one seed."""
    rng = random.Random(seed)
    sizes = (rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9))
    top = rng.choice([9, 1000, 900_000])
    need = [[rng.randint(1, 400) for _ in range(sizes[1])] for _ in range(sizes[0])]
    need_last = [rng.randint(1, 400) for _ in range(sizes[2])]
    least = min(map(min, need)) + min(need_last)
    return Instance(
        sizes=sizes,
        cost={(a, b): [[rng.randint(0, top) for _ in range(sizes[b])] for _ in range(sizes[a])] for a, b in PAIRS},
        value=[[rng.randint(1, 512) for _ in range(size)] for size in sizes[:2]],
        need=need,
        need_last=need_last,
        capacity=least + rng.randint(-20, 200),
        forbidden=[(dim, rng.randrange(sizes[dim])) for dim in range(3) if rng.random() < 0.4],
        style=rng.randrange(3),
    )


def cp_sat(case: Instance, workers: int) -> int | None:
    """The optimum by CP-SAT in one of three encodings: elements, tables of tuples, or one-hot products."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    index = [model.new_int_var(0, size - 1, f"i{dim}") for dim, size in enumerate(case.sizes)]
    for dim, candidate in case.forbidden:
        model.add(index[dim] != candidate)

    def of_pair(a: int, b: int, table: list[list[int]], name: str):  # type: ignore[no-untyped-def]
        flat = [entry for row in table for entry in row]
        result = model.new_int_var(min(flat), max(flat), name)
        if case.style == 0:
            at = model.new_int_var(0, len(flat) - 1, f"{name}_at")
            model.add(at == index[a] * case.sizes[b] + index[b])
            model.add_element(at, flat, result)
        elif case.style == 1:
            rows = [(i, j, table[i][j]) for i in range(case.sizes[a]) for j in range(case.sizes[b])]
            model.add_allowed_assignments([index[a], index[b], result], rows)
        else:
            for i, j in itertools.product(range(case.sizes[a]), range(case.sizes[b])):
                model.add(result == table[i][j]).only_enforce_if(hot[a][i], hot[b][j])
        return result

    hot = [[model.new_bool_var(f"x{dim}_{i}") for i in range(size)] for dim, size in enumerate(case.sizes)]
    for dim, literals in enumerate(hot):
        model.add_exactly_one(literals)
        model.add(index[dim] == sum(i * literal for i, literal in enumerate(literals)))
    sides = [model.new_int_var(0, 512, f"side{dim}") for dim in range(2)]
    for dim, side in enumerate(sides):
        model.add(side == sum(v * x for v, x in zip(case.value[dim], hot[dim], strict=True)))
    product = model.new_int_var(0, 512 * 512, "product")
    model.add_multiplication_equality(product, sides)
    last = sum(v * x for v, x in zip(case.need_last, hot[2], strict=True))
    model.add(of_pair(0, 1, case.need, "need") + last <= case.capacity)
    model.minimize(product + sum(of_pair(a, b, case.cost[a, b], f"cost{a}{b}") for a, b in PAIRS))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    if workers == 2:  # as in solver/search/driver_cp_sat.py
        solver.parameters.interleave_search = True
        solver.parameters.subsolvers[:] = ["max_lp", "core"]
    solver.parameters.random_seed = case.sizes[0]
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    return round(solver.objective_value) if status == cp_model.OPTIMAL else -1


def milp(case: Instance) -> int | None:
    """The optimum by HiGHS through PuLP, pair products linearised as flows between the one-hot sets."""
    pulp = importlib.import_module("pulp")
    problem = pulp.LpProblem("pairs", pulp.LpMinimize)
    hot = [[pulp.LpVariable(f"x{dim}_{i}", cat="Binary") for i in range(size)] for dim, size in enumerate(case.sizes)]
    pair = {
        (a, b): [[pulp.LpVariable(f"y{a}{b}_{i}_{j}", 0, 1) for j in range(len(hot[b]))] for i in range(len(hot[a]))]
        for a, b in PAIRS
    }
    total = [
        v * y
        for key in PAIRS
        for vs, ys in zip(case.cost[key], pair[key], strict=True)
        for v, y in zip(vs, ys, strict=True)
    ]
    total += [case.value[0][i] * case.value[1][j] * y for i, ys in enumerate(pair[0, 1]) for j, y in enumerate(ys)]
    problem += pulp.lpSum(total)
    for literals in hot:
        problem += pulp.lpSum(literals) == 1
    for (a, b), flows in pair.items():
        for i, row in enumerate(flows):
            problem += pulp.lpSum(row) == hot[a][i]
        for j in range(len(hot[b])):
            problem += pulp.lpSum(row[j] for row in flows) == hot[b][j]
    used = [v * y for vs, ys in zip(case.need, pair[0, 1], strict=True) for v, y in zip(vs, ys, strict=True)]
    used += [v * x for v, x in zip(case.need_last, hot[2], strict=True)]
    problem += pulp.lpSum(used) <= case.capacity
    for dim, candidate in case.forbidden:
        problem += hot[dim][candidate] == 0
    problem.solve(pulp.HiGHS(msg=False, gapRel=0, gapAbs=0.5, threads=1, presolve="off"))
    if problem.sol_status == pulp.LpSolutionOptimal:
        return round(pulp.value(problem.objective))
    return None if problem.sol_status == pulp.LpSolutionInfeasible else -1


def main() -> None:
    """Compare COUNT models from seed FIRST on."""
    engine, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    wrong, infeasible = [], 0
    for seed in range(first, first + count):
        case = instance(seed)
        right = case.optimum()
        infeasible += right is None
        answer = cp_sat(case, workers) if engine == "cp-sat" else milp(case)
        if answer != right:
            wrong.append([seed, right, answer])
    print(json.dumps({"engine": engine, "models": count, "infeasible": infeasible, "wrong": wrong}))


if __name__ == "__main__":
    main()
