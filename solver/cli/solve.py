"""The commands `certile solve`, `show`, `pareto` and `explain`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from instances.applications import Applications, applications, is_several
from instances.errors import InputError, OutputError
from instances.network.network import Network, unlike_elements
from solver.ask import options
from solver.ask.progress import progress_bar
from solver.ask.sizes import Sizes
from solver.calls.solve import answered, ask, kind_of
from solver.calls.solve import pareto as find_front
from solver.calls.solve import show as show_plan
from solver.cli.exits import EXIT_CODES
from solver.cli.flags import BatchOpt, JobsOpt, JsonOpt, LimitOpt, PlanArg, SetOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.plan.plan import Plan
from solver.show import console
from solver.show.tables import front_line, front_table

_MOST_WARNINGS = 3

# --- options ---------------------------------------------------------------------------------------------------------

NetworkArg = Annotated[
    str, typer.Argument(metavar="NETWORK", help="Bundled name, or .json, .onnx or .tflite file: resnet50")
]
TargetArg = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="Bundled name, .json, .onnx or .tflite file: resnet50; several at once: lenet5@9ms,alexnet@33ms",
    ),
]
MachineOpt = Annotated[
    str | None,
    typer.Option(
        "--machine", "-m", metavar="M", help="Bundled name or .json file; a plan brings its own: -m scratchpad_64k"
    ),
]
LayerOpt = Annotated[
    list[str] | None, typer.Option("--layer", "-l", metavar="NAME", help="Only this layer (repeatable): -l conv1")
]
ProblemOpt = Annotated[
    str | None,
    typer.Option("--problem", metavar="P", help="See certile list problems; default by machine: joint"),
]
EngineOpt = Annotated[
    str,
    typer.Option(
        "--engine", "-e", metavar="E", help="See certile list engines; auto is the fastest exact one: -e cp-sat"
    ),
]
ObjectiveOpt = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="O",
        help="time, bytes, energy, or several: bytes,time (mapping: period, latency; several networks: response; "
        "mesh: dram, glb, time; selection: period, error, memory, score)",
    ),
]
PinOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="K=V",
        help="Fix or bound a decision: T_C<=73, T_M%16, residuals=dram, first_layer=plain, cap=50",
    ),
]
MemoryOpt = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="N", help="Memory in all, default 80 % of what is free: 2GiB"),
]
FullOpt = Annotated[bool, typer.Option("--full", help="Search the unreduced space (slow; to check reductions)")]
NoBoundingOpt = Annotated[bool, typer.Option("--no-bounding", help="Unaided engines: remove nothing by bounds first")]
AllKindsOpt = Annotated[bool, typer.Option("--all-kinds", help="Also pool and element-wise layers")]
SizeOpt = Annotated[
    str | None, typer.Option("--size", metavar="HxW", help="Rows and columns of the network's input: --size 512x512")
]
CompareOpt = Annotated[
    str, typer.Option("--compare", metavar="E,..", help="Add ratios of other engines: greedy,tso-noburst")
]
ProfileOpt = Annotated[
    str | None, typer.Option("--profile", metavar="FILE", help="Measured times of tasks or layers: --profile times.csv")
]
OutOpt = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the result: -o plan.json")]


# --- commands --------------------------------------------------------------------------------------------------------


def solve(
    network: TargetArg,
    machine: MachineOpt = None,
    layer: LayerOpt = None,
    problem: ProblemOpt = None,
    engine: EngineOpt = options.AUTO,
    objective: ObjectiveOpt = None,
    pin: PinOpt = None,
    set_: SetOpt = None,
    time_limit: LimitOpt = None,
    memory_limit: MemoryOpt = None,
    jobs: JobsOpt = 0,
    full: FullOpt = False,
    no_bounding: NoBoundingOpt = False,
    all_kinds: AllKindsOpt = False,
    batch: BatchOpt = None,
    size: SizeOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    compare: CompareOpt = "",
    profile: ProfileOpt = None,
    out: OutOpt = None,
    as_json: JsonOpt = False,
) -> int:
    """Plan every conv and matmul layer of a network, or those named; problems of whole networks: all of it.

    Ctrl-C, the time limit: the best plan so far. Exit codes: certile --help.
    """
    options.check_writable(out)
    if is_several(network):
        several = "several applications: certile import writes each with its sizes"
        _refuse(several, size=size, symbol=symbol, shape=shape, value=value)
        target: Network | Applications | str = applications(network, batch=batch)
    else:
        target = _load(network, batch, size, Sizes.parse(symbol, shape, value))
    names = list(dict.fromkeys(name.strip() for name in compare.split(",") if name.strip()))
    chosen, question = ask(
        target, machine, problem=problem, engine=engine, objective=objective, pins=pin, settings=set_, layers=layer,
        profile=profile, time_limit_s=time_limit, memory_limit=memory_limit,
        jobs=jobs, progress=progress_bar(), all_kinds=all_kinds, full=full,
        bounding=not no_bounding,
    )  # fmt: skip
    rivals = {name: replace(question, engine=chosen.engine(name, question.objectives)) for name in names}
    if isinstance(question.target, Network | Applications):
        _warn(question.network.warnings)
        for line in unlike_elements(question.network, question.machine):
            console.complain("note", line)
    saved, lost = [], list[OutputError]()

    def save(plan: Plan) -> None:
        if out is not None:
            try:
                saved.append(console.write_plan(plan, out, shown=as_json))
            except OutputError as error:  # the plan is saved elsewhere; the rest is done all the same
                lost.append(error)

    plan = answered(chosen, question, save)
    others = {name: chosen.solve(rival) for name, rival in rivals.items()}
    if as_json:
        console.emit(_as_json(plan, others))
    else:
        console.emit_tables(*chosen.table(plan, others), *saved)
    for error in lost:
        raise error
    return EXIT_CODES[plan.status]


def _as_json(plan: Plan, others: Mapping[str, Plan]) -> str:
    """The plan; with comparisons beside it, each the plan of another engine, under `others`."""
    if not others:
        return plan.to_json().rstrip()
    fields = {**plan.model_dump(mode="json"), "others": {k: v.model_dump(mode="json") for k, v in others.items()}}
    return json.dumps(fields, indent=1)


def _refuse(what: str, **given: object) -> None:
    """Raise InputError for options that do not apply."""
    wrong = [f"--{name}" for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not for {what}")


def _load(network: str, batch: int | None, size: str | None, sizes: Sizes) -> Network | str:
    """The network; variants, a file of buffers, or a plan, are read by `ask`."""
    if is_several(network):
        raise InputError(f"{network!r}: several applications are planned together, by certile solve only")
    if kind_of(network):
        _refuse(
            "buffers and variants", batch=batch, size=size, symbol=sizes.symbols, shape=sizes.shapes, value=sizes.values
        )
        return network
    loaded = sizes.load(network, batch)
    return loaded if size is None else loaded.with_size(*options.parse_size(size))


def _warn(warnings: Sequence[str]) -> None:
    for line in warnings[:_MOST_WARNINGS]:
        console.complain("warning", line)
    if len(warnings) > _MOST_WARNINGS:
        console.complain("warning", f"and {len(warnings) - _MOST_WARNINGS} more")


def show(
    plan: PlanArg,
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="NAME", help="Instead one layer, or task, in detail")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Instead all layers in detail")] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Instead all steps and transfers of a network, in the order of time")
    ] = False,
) -> int:
    """Print a summary of a plan: what is known, and the table of its layers.

    In detail: loops as pseudo-code with buffers and addresses, memory banks by time, or the work of processors.
    """
    console.emit(show_plan(plan, layer, details=all_, timeline=timeline).rstrip("\n"))
    return 0


def pareto(
    network: NetworkArg,
    machine: MachineOpt = None,
    layer: LayerOpt = None,
    axes: Annotated[
        str | None,
        typer.Option(
            "--axes",
            metavar="A,B",
            help="Two or all of bytes, time, ocm (bytes on chip); bytes,macs or time,memory (fusion); dsps,rate "
            "(partial_engine)",
        ),
    ] = None,
    problem: ProblemOpt = None,
    engine: EngineOpt = options.AUTO,
    pin: PinOpt = None,
    set_: SetOpt = None,
    time_limit: LimitOpt = None,
    memory_limit: MemoryOpt = None,
    all_kinds: AllKindsOpt = False,
    batch: BatchOpt = None,
    size: SizeOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    profile: ProfileOpt = None,
    out: OutOpt = None,
    as_json: JsonOpt = False,
) -> int:
    """Print the exact Pareto front of each layer, with banks of the network: plans that no other beats in all axes."""
    options.check_writable(out)
    front = find_front(
        _load(network, batch, size, Sizes.parse(symbol, shape, value)), machine, problem=problem, axes=axes,
        engine=engine, pins=pin, settings=set_, layers=layer, profile=profile, time_limit_s=time_limit,
        memory_limit=memory_limit, all_kinds=all_kinds,
    )  # fmt: skip
    text = front.to_json()
    if out is not None:
        console.write(out, text)
    if as_json:
        console.emit(text.rstrip())
    else:
        console.emit_tables(front_table(front), "", front_line(front), *([f"written to {out}"] if out else []))
    return 0 if all(part.points for part in front.parts) else EXIT_CODES["INFEASIBLE"]


def explain(
    network: NetworkArg,
    machine: MachineOpt = None,
    layer: LayerOpt = None,
    problem: ProblemOpt = None,
    pin: PinOpt = None,
    set_: SetOpt = None,
    full: FullOpt = False,
    all_kinds: AllKindsOpt = False,
    batch: BatchOpt = None,
    size: SizeOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    as_json: JsonOpt = False,
) -> int:
    """Say how large a layer's search space is or, if nothing fits, which demands conflict (exit code 3)."""
    chosen, question = ask(
        _load(network, batch, size, Sizes.parse(symbol, shape, value)), machine, problem=problem, pins=pin,
        settings=set_, layers=layer, all_kinds=all_kinds, full=full,
    )  # fmt: skip
    parts = list(chosen.explain(question))
    if as_json:
        rows = [
            {"layer": one.part, "feasible": not one.conflicts, "conflicts": list(one.conflicts), "size": dict(one.size)}
            for one in parts
        ]
        console.emit(json.dumps(rows, indent=1))
    else:
        for one in parts:
            said = f"infeasible: {'; '.join(one.conflicts)}" if one.conflicts else "feasible"
            size = "; " + ", ".join(f"{count:,} {what}" for what, count in one.size.items()) if one.size else ""
            console.emit(console.printable(f"{one.part or question.name}: {said}{size}"))
        for name, about in chosen.pins.items():
            console.emit(f"  --pin {name}: {about}")
    return EXIT_CODES["INFEASIBLE"] if any(one.conflicts for one in parts) else 0
