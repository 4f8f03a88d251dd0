"""The commands `certile price`, `certile import-mapping` and `certile export-mapping`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from instances.errors import InputError
from instances.foreign.foreign import is_foreign
from instances.network.network import Network
from solver.ask import options
from solver.ask.sizes import Sizes
from solver.calls.check import sound_plan
from solver.cli.exits import EXIT_CODES
from solver.cli.flags import BatchOpt, JsonOpt, SetOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.show import console
from solver.uses.mappings import in_levels, stays
from solver.uses.mappings.files import FORMATS, nests_of, read, written
from solver.uses.mappings.given import Mapped
from solver.uses.mappings.in_levels import Levelled, LevelPrice
from solver.uses.mappings.price import LIMIT_S, LayerPrice, PricedMapping, price, workloads_of
from solver.uses.mappings.text import text_of

_NETWORK = "Bundled name, .json, .onnx or .tflite file; Timeloop problem, ZigZag workload (.yaml): resnet50"
NetworkArg = Annotated[str, typer.Argument(metavar="NETWORK", help=_NETWORK)]
MachineOpt = Annotated[
    str, typer.Option("--machine", "-m", metavar="M", help="Bundled name or .json file: -m scratchpad_64k")
]
MappingOpt = Annotated[
    str,
    typer.Option(
        "--mapping", metavar="TEXT|FILE",
        help="A nest, or a file of certile, Timeloop, ZigZag, DORY, AccelForge: --mapping 'W | r 4 | IN'",
    ),
]  # fmt: skip
LayerOpt = Annotated[
    list[str] | None, typer.Option("--layer", "-l", metavar="NAME", help="The layer (repeatable): -l conv1")
]
LevelOpt = Annotated[
    str | None,
    typer.Option("--level", metavar="NAME", help="Memory of a Timeloop, ZigZag, DORY file: --level shared_glb"),
]


def price_(
    network: NetworkArg,
    machine: MachineOpt,
    mapping: MappingOpt,
    layer: LayerOpt = None,
    level: LevelOpt = None,
    objective: Annotated[
        str, typer.Option("--objective", metavar="O", help="bytes, time, energy, or several: bytes,time")
    ] = "bytes",
    improve: Annotated[
        bool, typer.Option("--improve", help="Also the best tile of its loop order, the best order of its tile")
    ] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Only the price: do not look for the optimum")] = False,
    set_: SetOpt = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="S", help="Seconds for each search for an optimum: 60")
    ] = LIMIT_S,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the plan of the mapping: -o mine.json")
    ] = None,
    as_json: JsonOpt = False,
) -> int:
    """Price your own mapping, or another tool's: replay it, and compare it with the optimum.

    A mapping is a line such as "W | m 24 | c 23 c 12 r 1 | IN | OUT", outermost first: loops over a dimension with the
    size of their pieces, and from IN, W, OUT inwards a tile of inputs, weights, results lies on chip. In files: a line
    for a layer ("NAME: ..."), a Timeloop mapping, a ZigZag temporal ordering or result, a DORY node, or a plan. On
    machines with memories in levels IN@l2 says in which one it lies, and mappings of AccelForge are read. Exit code 3
    if it does not fit: by how much, and what would.
    """
    options.check_writable(out)
    if alone and improve:
        raise InputError("--alone: --improve compares with the optimum")
    found = price(
        _target(network, batch, Sizes.parse(symbol, shape, value)), machine, mapping, layers=layer, level=level,
        objective=objective, settings=set_ or (), compare=not alone, improve=improve, time_limit_s=time_limit,
    )  # fmt: skip
    saved = []
    if out is not None:
        saved = [
            console.write_plan(found.plan, out) if found.plan else f"{out} is not written: the mapping does not fit"
        ]
    if as_json:
        console.emit(json.dumps(_as_json(found), indent=1))
    else:
        console.emit("\n".join(console.printable(line) for line in str(found).split("\n")))
        for line in saved:
            console.emit(line)
    return EXIT_CODES[found.status]


def _target(network: str, batch: int | None, sizes: Sizes) -> Network | str:
    """The network with what is said of its sizes; one of another tool is read by its names."""
    return network if is_foreign(network) and not sizes and batch is None else sizes.load(network, batch)


def _as_json(found: PricedMapping) -> dict[str, Any]:
    """What is known, for programs."""
    return {
        "status": found.status,
        "layers": [one.as_json() if isinstance(one, LevelPrice) else _layer_json(one) for one in found.layers],
        "plan": found.plan.model_dump(mode="json") if found.plan else None,
    }  # fmt: skip


def _layer_json(one: LayerPrice) -> dict[str, Any]:
    best = one.best
    return {
        "layer": one.name, "mapping": text_of(one.mapped.nest), "source": one.mapped.source,
        "notes": list(one.mapped.notes),
        "overflows": {name: {"taken": taken, "bytes": size} for name, (taken, size) in one.overflows.items()},
        "would_fit": [
            {"dim": change.dim, "step": change.step, "new_loop": change.loop is None} for change in one.remedies
        ],
        "measures": one.row.measures.model_dump() if one.row and one.row.measures else None,
        "times": one.times,
        "optimum": None if best is None else {
            "status": best.status, "bound": best.bound,
            "measures": best.measures.model_dump() if best.measures else None,
            "mapping": text_of(best.schedule) if best.schedule else None,
        },
        "improved": [
            {"kept": better.kept, "status": better.status, "bound": better.bound, "measures": better.measures,
             "mapping": text_of(better.nest) if better.nest else None, "note": better.note}
            for better in one.improved
        ],
    }  # fmt: skip


def import_mapping(
    network: NetworkArg,
    mapping: MappingOpt,
    machine: Annotated[
        str | None, typer.Option("--machine", "-m", metavar="M", help="For ZigZag's orderings: -m scratchpad_64k")
    ] = None,
    layer: LayerOpt = None,
    level: LevelOpt = None,
    set_: SetOpt = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the lines: -o mapping.txt")
    ] = None,
) -> int:
    """Read a mapping of Timeloop, ZigZag or DORY and print it as a line of certile, with what was folded or assumed.

    ZigZag's orderings leave it open what a memory holds; the machine decides that, for others none is needed.
    """
    options.check_writable(out)
    mine = options.pick_machine(machine or "scratchpad_64k", set_ or ())
    known = workloads_of(_target(network, batch, Sizes.parse(symbol, shape, value)), layer)
    if mine.levels is not None and level is not None:
        raise InputError(f"--level {level}: machine {mine.name} has levels, all of them are read")
    found = list[Mapped | Levelled](
        read(mapping, known, mine, level) if mine.levels is None else in_levels.read(mapping, known, mine)
    )
    many = len(found) > 1
    texts = [text_of(one.nest) if isinstance(one, Mapped) else stays.text_of(one.nest) for one in found]
    lines = [(f"{one.layer.name}: " if many else "") + text for one, text in zip(found, texts, strict=True)]
    if machine is None and any("the file leaves it open" in note for one in found for note in one.notes):
        raise InputError("--machine: an ordering of ZigZag does not say what the memory holds: name the machine")
    for one in found:
        for note in one.notes:
            console.complain("note", f"{one.layer.name}: {note}" if many else note)
    if out is not None:
        console.write(out, "\n".join(lines) + "\n")
    console.emit("\n".join(lines) if out is None else f"written to {out}")
    return 0


def export_mapping(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file with nests of layers: plan.json")],
    form: Annotated[str, typer.Option("--format", "-f", metavar="F", help=f"{', '.join(FORMATS)}: --format timeloop")],
    layer: LayerOpt = None,
    network: Annotated[
        str | None,
        typer.Option("--names-of", metavar="FILE", help="Write the names of this problem: --names-of problem.yaml"),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write it there: -o mapping.yaml")
    ] = None,
) -> int:
    """Write the nests of a plan as a mapping of Timeloop, ZigZag, DORY or (memories in levels) AccelForge, or as text.

    What a form cannot say is refused with the reason (free pieces, cores, lines), or named as left out (buffers).
    """
    options.check_writable(out)
    if network is not None and not is_foreign(network):
        raise InputError(f"--names-of {network}: a problem of Timeloop or a workload of ZigZag has names of its own")
    known = [] if network is None else workloads_of(network, None)
    mine = sound_plan(plan)
    if mine.problem == "levels":
        text, lost = in_levels.written(mine, form, layer, known)
    else:
        text, lost = written(nests_of(mine, layer), form, known)
    for line in lost:
        console.complain("note", line)
    if out is None:
        console.emit(text.rstrip("\n"))
    else:
        console.write(out, text)
        console.emit(f"written to {out}")
    return 0
