"""`why`: explain a plan of any problem, and what more or less of a machine would be worth."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

from instances.errors import InputError, choices
from solver.check import sound_plan
from solver.options import as_texts, check_time_limit
from solver.plan import Plan
from solver.problem import Problem
from solver.problems import problem_of
from solver.tiling.problem import LayersProblem
from solver.tiling.rows import LayerRow, is_layers, layer_rows
from solver.version import version
from solver.why.again import Again
from solver.why.layers import about_layer, parts_alone, question_of
from solver.why.marginal import curve
from solver.why.model import About, Curve, Why
from solver.why.sums import whole
from solver.why.whole import about_plan

#: Seconds for solving again, if nothing is said.
TIME_LIMIT_S = 60.0
#: Seconds below which a layer is not begun.
_LEAST_S = 1.0


def why(
    plan: Plan | str | os.PathLike[str],
    layer: str | None = None,
    *,
    marginal: str | Iterable[str] = (),
    time_limit_s: float | None = None,
    rivals: bool = True,
) -> Why:
    """Say where the time or the bytes of a plan go, what binds, and what other decisions cost.

    Parameters
    ----------
    layer : str, optional
        Only this layer, where layers are decided by themselves.
    marginal : names, optional
        Instead the objective over these machine fields (``ocm_bytes``, ``bandwidth``): solved again on a grid.
    time_limit_s : float, optional
        For solving again, 60 by default. What was not solved again is named.
    rivals : bool
        Whether to solve for the next-best decisions, too.

    Raises
    ------
    InputError
        If the plan has no such layer, the machine no such field, or the plan file cannot be read or says what
        does not follow from its decisions.
    """
    found = plan if isinstance(plan, Plan) else sound_plan(plan)
    limit = check_time_limit(time_limit_s) or TIME_LIMIT_S
    problem, names = problem_of(found), as_texts("marginal", marginal)
    _check_layer(found, layer)
    parts: tuple[About, ...] = ()
    curves: tuple[Curve, ...] = ()
    if names:
        curves = tuple(_curves(problem, found, layer, names, limit))
    elif is_layers(found) and isinstance(problem, LayersProblem):
        parts = tuple(_layers(problem, found, layer, limit, rivals))
    else:
        parts = (about_plan(problem, found, layer, limit, rivals),)
    return Why(
        certile=version(), problem=found.problem, network=found.network, machine=found.machine, engine=found.engine,
        parts=parts, curves=curves,
    )  # fmt: skip


def _check_layer(plan: Plan, layer: str | None) -> None:
    if layer is None:
        return
    names = [part.name for part in plan.parts]
    if "layers" not in problem_of(plan).takes:
        raise InputError(f"--layer {layer}: a plan of problem {plan.problem} is explained as a whole")
    if layer not in names:
        raise InputError(f"plan of {plan.network} has no layer {layer!r}; it has {choices(names)}")


def _layers(problem: LayersProblem, plan: Plan, layer: str | None, limit: float, rivals: bool) -> Iterator[About]:
    """The layer that is asked for; else all together, then each, the dearest ones solved again first."""
    rows = [row for row in layer_rows(plan) if layer in (None, row.layer)]
    end, made = time.monotonic() + limit, dict[str, About]()
    own = [row for row in rows if row.same_as is None or row.same_as not in {one.layer for one in rows}]
    for number, row in enumerate(sorted(own, key=_value, reverse=True)):
        left = end - time.monotonic()
        share = left / min(len(own) - number, 3)
        made[row.layer] = about_layer(problem, plan, row, share, rivals) if left > _LEAST_S else parts_alone(plan, row)
    every = [made[row.layer] if row.layer in made else _copy(row, made) for row in rows]
    if len(every) > 1:
        yield whole(plan, every)
    yield from every


def _copy(row: LayerRow, made: dict[str, About]) -> About:
    """What is known of a layer that equals another one."""
    return made[str(row.same_as)].model_copy(update={"layer": row.layer, "solves": 0, "wall_s": 0.0})


def _value(row: LayerRow) -> int:
    return row.objective.value if row.objective else 0


def _curves(problem: Problem, plan: Plan, layer: str | None, names: Sequence[str], limit: float) -> Iterator[Curve]:
    """The objective of the plan, or of a layer, over each field."""
    end = time.monotonic() + limit
    for number, name in enumerate(names):
        left = max(0.0, end - time.monotonic()) / (len(names) - number)
        if is_layers(plan):
            row = _row(plan, layer)
            question = question_of(problem, plan, row)
            yield curve(Again.of(problem, question, left), row.layer, name)
        else:
            question = problem.question(plan)
            yield curve(Again.of(problem, question, left), layer or "", name)


def _row(plan: Plan, layer: str | None) -> LayerRow:
    """The layer that is asked for, or the dearest one."""
    if layer is not None:
        found: LayerRow = plan.layer(layer)
        return found
    return max(layer_rows(plan), key=_value)
