"""Problem files of Timeloop (version 0.3 and 0.4): a shape with projections, and an instance with sizes.

Source: Timeloop, ``problem-shapes/cnn_layer.yaml`` and ``src/workload/shape-models`` of NVlabs/timeloop at 4cf6d4c.
`Hpad`, `Wpad`, `H` and `W` of an instance are read by no projection, and so are ignored there and here: the input is
as large as the windows are, without padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from instances.errors import InputError
from instances.foreign.products import Axis, Product, Workload, size_of
from instances.jsonfile import Json

_CNN = "cnn-layer"
#: What Timeloop has built in under this name.
_CNN_SHAPE: dict[str, Json] = {
    "name": "CNN-Layer", "dimensions": list("RSPQCKN"),
    "coefficients": [{"name": f"{side}{what}", "default": 1} for side in "WH" for what in ("stride", "dilation")],
    "data_spaces": [
        {"name": "Weights", "projection": [[["C"]], [["K"]], [["R"]], [["S"]]]},
        {
            "name": "Inputs",
            "projection": [
                [["N"]], [["C"]], [["R", "Wdilation"], ["P", "Wstride"]], [["S", "Hdilation"], ["Q", "Hstride"]],
            ],
        },
        {"name": "Outputs", "projection": [[["N"]], [["K"]], [["Q"]], [["P"]]], "read_write": True},
    ],
}  # fmt: skip


def is_problem(data: Json) -> bool:
    """Whether data are those of a problem file."""
    return isinstance(data, dict) and isinstance(data.get("problem"), dict)


def problem_of(data: Json, name: str, where: str) -> Workload:
    """Return the layer of a problem file.

    Raises
    ------
    InputError
        If it is none, or what it computes is no layer.
    """
    problem = data.get("problem") if isinstance(data, dict) else None
    if not isinstance(problem, dict):
        raise InputError(f"{where}: no key problem with shape and instance")
    shape, instance = problem.get("shape", _CNN), problem.get("instance")
    if not isinstance(instance, dict):  # older files have the sizes beside the shape
        instance = {key: value for key, value in problem.items() if key not in ("shape", "version")}
    if isinstance(shape, str):
        if shape.lower() != _CNN:
            raise InputError(f"{where}: shape {shape!r} is a name, only CNN-Layer is known; write the shape itself")
        shape = _CNN_SHAPE
    if not isinstance(shape, dict):
        raise InputError(f"{where}: shape is no mapping")
    values = _coefficients(shape, instance)
    spaces = dict(_spaces(shape, values, where))
    dims = shape.get("dimensions")
    if not isinstance(dims, list) or not all(isinstance(dim, str) for dim in dims):
        raise InputError(f"{where}: shape.dimensions is no list of names")
    sizes = {str(dim): size_of(instance.get(str(dim)), f"{where}: instance.{dim}") for dim in dims}
    outputs = [name for name, (_, written) in spaces.items() if written]
    if len(outputs) != 1:
        raise InputError(f"{where}: {len(outputs)} data spaces are read_write, one is needed: the output")
    inputs = {space: axes for space, (axes, written) in spaces.items() if not written}
    ignored = [key for key in ("Hpad", "Wpad") if instance.get(key)]
    notes = (
        (f"{', '.join(ignored)} of the instance: no projection reads them, no padding is assumed",) if ignored else ()
    )
    return Product(name, sizes, (outputs[0], spaces[outputs[0]][0]), inputs, notes=notes).workload()


def _list(fields: Mapping[str, Json], *names: str) -> list[Json]:
    for name in names:
        if isinstance(found := fields.get(name), list):
            return found
    return []


def _coefficients(shape: Mapping[str, Json], instance: Mapping[str, Json]) -> dict[str, int]:
    """The strides and dilations: of the instance, or their default."""
    found = {}
    for one in _list(shape, "coefficients"):
        if isinstance(one, dict) and isinstance(name := one.get("name"), str):
            value = instance.get(name, one.get("default", 1))
            found[name] = size_of(value, f"coefficient {name}")
    return found


def _spaces(
    shape: Mapping[str, Json], values: Mapping[str, int], where: str
) -> Iterator[tuple[str, tuple[tuple[Axis, ...], bool]]]:
    """Every data space: its axes, and whether it is written."""
    for space in _list(shape, "data_spaces", "data-spaces", "dataspaces"):
        if not isinstance(space, dict) or not isinstance(name := space.get("name"), str):
            raise InputError(f"{where}: a data space has no name")
        axes = tuple(_axis(axis, values, f"{where}: data space {name}") for axis in _list(space, "projection"))
        yield name, (axes, bool(space.get("read_write", space.get("read-write", False))))


def _axis(axis: Json, values: Mapping[str, int], where: str) -> Axis:
    """A sum of terms ``[dim]`` or ``[dim, coefficient]``."""
    terms = []
    for term in axis if isinstance(axis, list) else [axis]:
        names = term if isinstance(term, list) else [term]
        if not 1 <= len(names) <= 2 or not isinstance(names[0], str):
            raise InputError(f"{where}: projection term {term!r} is no [dimension] or [dimension, coefficient]")
        factor = names[1] if len(names) > 1 else 1
        if isinstance(factor, str):
            if factor not in values:
                raise InputError(f"{where}: coefficient {factor} is not declared")
            factor = values[factor]
        terms.append((names[0], size_of(factor, where)))
    return tuple(terms)
