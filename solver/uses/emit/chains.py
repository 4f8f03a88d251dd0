"""The functions that a reader applies to what it reads, as C statements that change x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from instances.network.operators import Concat, Operator
from instances.onnx.model import OnnxModel
from solver.uses.emit.passing import Chain
from solver.uses.emit.pointwise import stage
from solver.uses.emit.text import identifier


def statements(
    model: OnnxModel, chain: Chain, place: Mapping[str, Sequence[str]], prefix: str, begin: int = 0
) -> tuple[list[str], list[str]]:
    """Return tables and statements; channels are those of a whole in which the chain begins at `begin`.

    Parameters
    ----------
    place : mapping
        By operator the C texts of an element's place along every axis of its tensor.
    prefix : str
        A C name that tables begin with.
    """
    tables, lines = list[str](), list[str]()
    if chain.joined is not None:
        tables, lines = _of_parts(model, chain, chain.joined, place, prefix, begin)
    for number, one in enumerate(chain.operators):
        at = list(place[one.name])
        at[1:2] = [f"({at[1]} - {begin})"] if begin else at[1:2]
        made = stage(model, one, f"{prefix}{number}", at)
        assert made is not None
        tables += made.lines()
        lines += [f"/* {identifier(one.name)} */", *made.statements]
    return tables, lines


def _of_parts(
    model: OnnxModel, chain: Chain, joined: Concat, place: Mapping[str, Sequence[str]], prefix: str, begin: int
) -> tuple[list[str], list[str]]:
    """What becomes of an element depends on the part that its channel is of."""
    tables, lines, channel = list[str](), list[str](), place[joined.name][1]
    for k, (name, part) in enumerate(zip(joined.inputs, chain.parts, strict=True)):
        more, body = statements(model, part, place, f"{prefix}{k}_", begin)
        begin += model.network.operator(name).shape[1]
        tables += more
        last = k == len(chain.parts) - 1
        head = "} else {" if last and k else f"{'} else ' if k else ''}if ({channel} < {begin}) {{"
        lines += [head, *(f"    {line}" for line in body)]
    return tables, [*lines, "}"]


def operators_of(chain: Chain) -> list[Operator]:
    """Return every operator of a chain."""
    found = [*chain.operators, *([chain.joined] if chain.joined else [])]
    for part in chain.parts:
        found += operators_of(part)
    return found
