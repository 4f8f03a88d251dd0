"""Mappings of AccelForge (LoopTree): nodes from the outside to the inside, for one einsum.

::

    mapping:
      nodes:
      - !Storage {tensors: [Inputs, Weights, Outputs], component: dram}
      - !Temporal {rank_variable: k, tile_shape: 64}
      - !Storage {tensors: [Weights], component: l2}
      - !Compute {einsum: conv, component: MAC}

A Storage stands where a Stay does, and a Temporal says the step of a loop, so a nest over memories in levels is read
and written node by node. Source: ``accelforge/frontend/mapping/mapping.py`` and ``examples/mappings`` of
Accelergy-Project/accelforge at 1c1929c. Its mapper has a residual only in the outermost loop of a rank variable, and of
none in an index expression (``docs/source/guide/timeloop_compare.rst``): others are not written. An einsum names its
rank variables and tensors as it likes: those of the layer's file count, else Timeloop's, in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwmodels.levels.schedule import LevelNest, Stay
from hwmodels.schedule import Loop
from instances.errors import InputError, choices
from instances.foreign.products import Workload
from instances.jsonfile import Json, shown
from instances.machine.machine import Machine
from instances.network.workload import DIMS as DIMS_OF_LAYERS
from solver.uses.mappings.stays import Placed, memories_of, named, nest_from
from solver.uses.mappings.timeloop import DIMS, OPERANDS, OURS

#: The nodes that YAML names by tags; those that are read, and others to be refused by name.
_READ = ("Storage", "Temporal", "Compute", "Nested")
NODES = (*_READ, "Spatial", "Toll", "Sequential", "Pipeline", "Split", "Reservation", "Fill", "Mapping")


def is_mapping(data: Json) -> bool:
    """Whether data are those of a mapping."""
    return any("!" in node for node in _nodes(data))


def _nodes(data: Json) -> list[Mapping[str, Json]]:
    found = data.get("mapping", data) if isinstance(data, dict) else data
    found = found.get("nodes") if isinstance(found, dict) else found
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def read(data: Json, workload: Workload, machine: Machine, where: str) -> tuple[LevelNest, tuple[str, ...]]:
    """Return the nest of a mapping, and what was folded or assumed; raises InputError if it is none of the layer."""
    dims = {name.lower(): one for name, one in (workload.dims or DIMS).items()}
    tensors = {name.lower(): one for name, one in {**OPERANDS, **workload.operands}.items()}
    loops, held = list[Loop](), list[tuple[int, str, str]]()
    for number, node in enumerate(_flat(_nodes(data), where)):
        kind, here = str(node.get("!")), f"{where}: node {number + 1} ({node.get('!')})"
        if kind == "Temporal":
            dim, step = str(node.get("rank_variable")), node.get("tile_shape")
            if dim.lower() not in dims:
                raise InputError(f"{here}: unknown rank variable {dim!r}, expected one of {choices(dims)}")
            if isinstance(step, bool) or not isinstance(step, int) or step < 1:
                raise InputError(f"{here}: tile_shape {shown(step)} is no positive integer")
            if node.get("initial_tile_shape") not in (None, step):
                raise InputError(f"{here}: initial_tile_shape: pieces have one size here, the last may be smaller")
            loops.append(Loop(dims[dim.lower()], step))
        elif kind == "Storage":
            names, component = node.get("tensors"), node.get("component")
            if not isinstance(component, str):
                raise InputError(f"{here}: component {shown(component)} is no name of a memory")
            for name in names if isinstance(names, list) else [None]:
                if str(name).lower() not in tensors:
                    raise InputError(f"{here}: unknown tensor {shown(name)}, expected one of {choices(tensors)}")
                held.append((len(loops), tensors[str(name).lower()], component))
        elif kind != "Compute":
            raise InputError(f"{here}: expected {', '.join(_READ)}: one einsum on memories without units side by side")
    known, notes = named(list(dict.fromkeys(name for *_, name in held)), machine, where)
    first = memories_of(machine).memories[0].name
    if any(depth and known.get(name) == first for depth, _, name in held):
        raise InputError(f"{where}: a Storage in {first} stands inside a loop; it is off the chip, outside all loops")
    stays: list[Placed] = [
        (depth, Stay(operand, known[name])) for depth, operand, name in held  # type: ignore[arg-type]
        if known.get(name, first) != first
    ]  # fmt: skip
    nest, folded = nest_from(loops, stays, workload.layer, machine, where)
    return nest, (*notes, *folded)


def _flat(nodes: list[Mapping[str, Json]], where: str) -> Iterator[Mapping[str, Json]]:
    """The nodes, with those inside a Nested in its place."""
    for node in nodes:
        if "!" not in node:
            raise InputError(f"{where}: a node without a kind; expected {', '.join(f'!{one}' for one in _READ)}")
        if node["!"] == "Nested":
            yield from _flat(_nodes(dict(node)), where)
        else:
            yield node


def write(nest: LevelNest, workload: Workload, machine: Machine) -> tuple[str, tuple[str, ...]]:
    """Return the text of a mapping, and what it needs; raises InputError for pieces that it has no word for."""
    layer = workload.layer
    dims = {one: name.lower() for name, one in workload.dims.items()} if workload.dims else {}
    dims = dims or {one: name.lower() for one, name in OURS.items()}
    names = {one: name for name, one in (workload.operands or OPERANDS).items()}
    size = {d: layer.extent(d) for d in DIMS_OF_LAYERS}
    windows = {d for d, taps in (("r", layer.kh), ("c", layer.kw)) if taps > 1} | set("ij")
    first = memories_of(machine).memories[0].name
    every = ", ".join(names[one] for one in layer.operands)
    lines = [f"# {layer.name}: from the outside to the inside", "mapping:", "  nodes:"]
    lines.append(f"  - !Storage {{tensors: [{every}], component: {first}}}")
    for item in nest.items:
        if isinstance(item, Stay):
            lines.append(f"  - !Storage {{tensors: [{names[item.operand]}], component: {item.memory}}}")
            continue
        if item.step == size[item.dim]:
            continue
        if size[item.dim] % item.step and (item.dim in windows or size[item.dim] < layer.extent(item.dim)):
            raise InputError(f"an AccelForge mapping: {item.dim} {item.step} leaves a rest of {size[item.dim]}: only "
                             "the outermost loop over a rank variable has one, and none over windows")  # fmt: skip
        size[item.dim] = item.step
        lines.append(f"  - !Temporal {{rank_variable: {dims[item.dim]}, tile_shape: {item.step}}}")
    cut = [d for d in dims if size[d] < layer.extent(d)]
    lines.append(f"  - !Compute {{einsum: {layer.name}, component: MAC}}")
    said = f"rank variables {', '.join(f'{dims[d]} ({d})' for d in cut)}; " if cut else ""
    return "\n".join(lines) + "\n", (f"the einsum needs these names: {said}tensors {every}",)
