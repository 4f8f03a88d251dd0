"""Why a layer has no plan on a mesh: the buffer that the smallest tile overflows, or the pins that leave none."""

from __future__ import annotations

from math import prod

from formulations.mesh.space import members
from formulations.pins import Pins
from instances.machine import Machine
from instances.workload import Layer

__all__ = ["conflicts"]

_NEEDS = frozenset({"dram", "glb", "cycles"})


def conflicts(layer: Layer, machine: Machine, pins: Pins) -> tuple[str, ...]:
    """Return one line for every demand that cannot be kept; with pins, which one to drop; none if there is a plan."""
    found: list[str] = []
    for member in members(layer, machine, Pins(), needs=_NEEDS, lanes=False, full=True, thin=True, fitting=False):
        for cap in member.caps:
            least = cap.what.constant + sum(
                factor * prod(int(group.terms[:, member.names.index(name)].min()) for group in member.groups)
                for name, factor in cap.what.factors.items()
            )
            if least > cap.limit:
                what = " + ".join(cap.what.factors)
                found.append(f"{layer.name}: {cap.tag}: the smallest {what} takes {least} bytes, there are {cap.limit}")
        break  # keeping operands asks for more, never less
    if found or _any(layer, machine, pins):
        return tuple(found)
    if not pins.pins:
        return (f"{layer.name}: no tile keeps all demands with a bank layout",)
    for pin in pins.pins:
        if _any(layer, machine, pins.without(pin)):
            found.append(f"{layer.name}: without pin {pin} there is a plan")
    said = ", ".join(map(str, pins.pins))
    return tuple(found) or (f"{layer.name}: pins {said} together leave no tile, PE vector, sides and layout",)


def _any(layer: Layer, machine: Machine, pins: Pins) -> bool:
    from solver.mesh.base import Asked, heuristic
    from solver.mesh.engines import MESH_ENGINES

    asked = Asked(layer, machine, "dram", pins)
    return heuristic(asked) is not None or MESH_ENGINES["exhaustive"].run(asked).choice is not None
