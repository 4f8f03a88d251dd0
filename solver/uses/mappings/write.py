"""Write the nests of a plan in certile's own form, or in that of another tool."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hwmodels.schedule import Nest
from instances.errors import InputError
from instances.foreign.products import Workload
from instances.network.workload import Layer
from instances.problems import either, nested
from solver.ask.options import unknown
from solver.plan.plan import Plan
from solver.problems.layers import is_layers
from solver.uses.mappings import dory, timeloop, zigzag
from solver.uses.mappings.text import text_of

FORMATS = ("text", "timeloop", "zigzag", "zigzag-json", "dory")


def nests_of(plan: Plan, layers: Sequence[str] | None = None) -> list[tuple[Layer, Nest]]:
    """Return layers of a plan with their nests.

    Raises
    ------
    InputError
        If the plan has no nests of single layers, no such layer, or none of it has a nest.
    """
    if not is_layers(plan):
        raise InputError(f"plan of {plan.network}: mappings are written of problems {either(nested('layers'))}, "
                         f"not of {plan.problem}")  # fmt: skip
    rows = plan.layers if layers is None else tuple(plan.layer(name) for name in layers)
    found = [(row.workload, row.schedule) for row in rows if row.schedule is not None]
    if not found:
        raise InputError(f"plan of {plan.network}: no schedule to write")
    return found


def written(
    found: Sequence[tuple[Layer, Nest]], form: str, workloads: Sequence[Workload] = ()
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """Return the text of a file with these nests, and what it does not say, a line each.

    Parameters
    ----------
    form : str
        One of `FORMATS`.
    workloads : sequence of Workload
        The layers with the names of their own files, where they come from one; else the usual names are written.

    Raises
    ------
    InputError
        If the form cannot say a nest: which, and why.
    """
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    known = {one.layer.name: one for one in workloads}
    texts, lost = list[str](), list[str]()
    for layer, nest in found:
        text, notes = _one(known.get(layer.name, Workload(layer)), nest, form)
        texts.append(f"{layer.name}: {text}" if form == "text" and len(found) > 1 else text)
        lost += [f"{layer.name}: {note}" for note in notes]
    if len(texts) == 1:
        return texts[0], tuple(lost)
    if form in ("timeloop", "zigzag-json"):
        raise InputError(f"a mapping of {form} is for one layer, there are {len(texts)}: name one with --layer")
    if form == "dory":
        return json.dumps([json.loads(text) for text in texts], indent=1) + "\n", tuple(lost)
    return "".join(texts), tuple(lost)


def _one(workload: Workload, nest: Nest, form: str) -> tuple[str, tuple[str, ...]]:
    if form == "text":
        return f"{text_of(nest)}\n", ()
    if form == "dory":
        return dory.write(nest, workload.layer)
    if form == "timeloop":
        return timeloop.write(nest, workload)
    return zigzag.write(nest, workload, as_json=form == "zigzag-json")
