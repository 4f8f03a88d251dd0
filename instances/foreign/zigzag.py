"""Workload files of ZigZag: a list of layers, each an equation with sizes.

``O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]`` with ``ix=2*ox+1*fx`` (source: ``docs/source/workload.rst`` and
``zigzag/parser/workload_validator.py`` of KULeuven-MICAS/zigzag at 3d12a96). Layers that add or pool are left out and
named. Padding is that of `padding` with `pr_loop_dims` beside it, else none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from instances.errors import InputError
from instances.foreign.products import Axis, Product, Workload, size_of
from instances.jsonfile import Json

_EQUATION = re.compile(r"\s*(O)((?:\[\w+\])+)\s*\+?\s*=\s*(\w)((?:\[\w+\])+)\s*([*+])\s*(\w)((?:\[\w*\])+)\s*")
_RELATION = re.compile(r"\s*(\w+)\s*=\s*(?:(\d+)\s*\*\s*)?(\w+)\s*\+\s*(?:(\d+)\s*\*\s*)?(\w+)\s*")


def is_workload(data: Json) -> bool:
    """Whether data are those of a workload file."""
    return isinstance(data, list) and bool(data) and all(isinstance(one, dict) and "equation" in one for one in data)


def workloads_of(data: Json, where: str) -> tuple[list[Workload], list[str]]:
    """Return the layers of a workload file, and why others are left out.

    Raises
    ------
    InputError
        If the file is none, or no layer of it multiplies.
    """
    if not is_workload(data) or not isinstance(data, list):
        raise InputError(f"{where}: expected a list of layers with equation, loop_dims and loop_sizes")
    found, left = list[Workload](), list[str]()
    for number, fields in enumerate(data):
        if not isinstance(fields, dict):
            continue
        name = str(fields.get("name") or f"layer{fields.get('id', number)}")
        equation = str(fields.get("equation"))
        match = _EQUATION.fullmatch(equation)
        if match is None:
            raise InputError(f"{where}: layer {name}: equation {equation!r} is not O[..]+=A[..]*B[..]")
        kind = str(fields.get("operator_type", ""))
        if match[5] == "+" or "pool" in kind.lower():
            left.append(f"{name} ({kind or 'sum'}): only products of two operands are read")
            continue
        found.append(_product(match, fields, name, kind, f"{where}: layer {name}").workload())
    if not found:
        raise InputError(f"{where}: no layer multiplies: {'; '.join(left)}")
    return found, left


def _product(match: re.Match[str], fields: Mapping[str, Json], name: str, kind: str, where: str) -> Product:
    dims, numbers = fields.get("loop_dims"), fields.get("loop_sizes")
    if not isinstance(dims, list) or not isinstance(numbers, list) or len(dims) != len(numbers):
        raise InputError(f"{where}: loop_dims and loop_sizes are lists of one length")
    sizes = {str(dim).upper(): size_of(size, f"{where}: {dim}") for dim, size in zip(dims, numbers, strict=True)}
    windows = dict(_windows(fields, where))

    def axes(text: str) -> tuple[Axis, ...]:
        names = [part.upper() for part in re.findall(r"\[(\w+)\]", text)]
        for one in names:
            if one not in windows and one not in sizes:
                raise InputError(f"{where}: {one.lower()} of the equation has no size in loop_dims")
        return tuple(windows.get(one, ((one, 1),)) for one in names)

    pads = dict(_pads(fields, windows, where))
    return Product(name, sizes, (match[1], axes(match[2])), {match[3]: axes(match[4]), match[6]: axes(match[7])},
                   pads, kind)  # fmt: skip


def _windows(fields: Mapping[str, Json], where: str) -> Iterator[tuple[str, Axis]]:
    relations = fields.get("dimension_relations") or []
    for text in relations if isinstance(relations, list) else []:
        match = _RELATION.fullmatch(str(text))
        if match is None:
            raise InputError(f"{where}: dimension relation {text!r} is not ix=2*ox+1*fx")
        yield match[1].upper(), ((match[3].upper(), int(match[2] or 1)), (match[5].upper(), int(match[4] or 1)))


def _pads(
    fields: Mapping[str, Json], windows: Mapping[str, Axis], where: str
) -> Iterator[tuple[str, tuple[int, int]]]:  # fmt: skip
    """Padding by the output's dimension of a window, which stands first in its relation."""
    pads, dims = fields.get("padding"), fields.get("pr_loop_dims")
    if not isinstance(pads, list) or not isinstance(dims, list):
        return
    for dim, pair in zip(dims, pads, strict=False):
        axis = windows.get(str(dim).upper())
        if axis is None or not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"{where}: padding {pair!r} of {dim} is no pair beside a dimension of dimension_relations")
        before, after = (size_of(int(str(one)) + 1, where) - 1 for one in pair)
        yield axis[0][0], (before, after)
