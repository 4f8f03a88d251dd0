"""The commands `certile emit-c` and `certile compile`."""

from __future__ import annotations

from typing import Annotated

import typer

from instances.errors import InputError
from instances.problems import either, nested
from solver.ask.progress import progress_bar
from solver.ask.sizes import Sizes
from solver.calls.check import sound_plan
from solver.cli.flags import BatchOpt, LimitOpt, PlanArg, SetOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.problems.joint import is_shared
from solver.show import console
from solver.uses.emit.emit import TRANSFERS, compile_model, emit_c, transfers_of
from solver.uses.emit.states import parse_states

RequantiseOpt = Annotated[
    str | None,
    typer.Option("--requantise", metavar="RULE", help="Of quantised sums: float, double, single, even; else M's"),
]
StateOpt = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="IN=OUT", help="An input that is a result of the call before: h0=hn"),
]
TransfersOpt = Annotated[
    str | None,
    typer.Option("--transfers", metavar="|".join(TRANSFERS), help="Of whole networks: ahead of steps, or with them"),
]
OutOpt = Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder for the files: -o out/")]


def emit(
    plan: PlanArg,
    out: OutOpt,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="FILE", help="The .onnx or .tflite file that was planned"),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            metavar="BYTES",
            help=f"Memory on chip, if more than planned ({', '.join(nested('network'))}): 851968",
        ),
    ] = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    requantise: RequantiseOpt = None,
    state: StateOpt = None,
    transfers: TransfersOpt = None,
) -> int:
    """Write C11 that carries a plan out: loops, transfers and tiles as planned, memories as static arrays.

    `make run` in the folder builds it with gcc and runs it. Without a model it computes on integers and is compared
    with naive loop nests; with one it computes what the model does (float32, float16, or quantised to 8 or 16 bits) and
    is compared with onnxruntime. What moves is compared with the plan: by operand, or on memories in levels by the one
    that it comes from or goes to. docs/emit.md says how the files are used.
    """
    sizes = Sizes.parse(symbol, shape, value)
    if model is None and (sizes or batch is not None):
        raise InputError("--batch, --symbol, --shape, --value: of a model, and none is named (--model)")
    sound = sound_plan(plan)
    names = emit_c(
        sound, out, model, memory_bytes=memory, batch=batch, symbols=sizes.symbols, shapes=sizes.shapes,
        values=sizes.values, requantise=requantise, states=parse_states(state), transfers=transfers,
    )  # fmt: skip
    if is_shared(sound):
        console.emit(transfers_of(names))
    console.emit(f"{len(names)} files written to {out}; build and check them: make -C {out} run")
    return 0


def compile_(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An .onnx or .tflite file: model.onnx")],
    machine: Annotated[
        str, typer.Option("--machine", "-m", metavar="M", help="Bundled name or .json file: -m scratchpad_768k")
    ],
    out: OutOpt,
    problem: Annotated[
        str | None,
        typer.Option("--problem", metavar="P", help=f"{either(nested(), 'or')}; default: fusion, where it can be"),
    ] = None,
    objective: Annotated[
        str | None, typer.Option("--objective", metavar="O", help="time, bytes, energy: as of certile solve")
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option("--pin", metavar="K=V", help="Fix or bound a decision: T_C<=73")
    ] = None,
    set_: SetOpt = None,
    time_limit: LimitOpt = None,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", metavar="N", help="Memory of searches, as of certile solve: 2GiB")
    ] = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
    requantise: RequantiseOpt = None,
    state: StateOpt = None,
    transfers: TransfersOpt = None,
) -> int:
    """Plan an ONNX or TFLite model as a whole and write C11 that runs it: import, plan, addresses, code, report.

    In a memory that all operands share the plan is of problem fusion, for the least time; where that cannot be asked or
    written, of problem joint (the fewest bytes), else layer by layer. `--problem` and `--objective` are obeyed or
    refused. `make run` in the folder builds the program, runs it on an input, and compares results with onnxruntime, or
    those of a .tflite file with TFLite (if they are installed), and what moves with the plan. The machine's elements
    are the model's: in_bytes, w_bytes, out_bytes and psum_bytes are 4 for float32 (2, 2, 2 and 4 store it as float16),
    1, 1, 1 and 4 for a model quantised to 8 bits.
    """
    sizes = Sizes.parse(symbol, shape, value)
    made = compile_model(
        model, machine, out, problem=problem, objective=objective,
        pins=pin, settings=set_, time_limit_s=time_limit, memory_limit=memory_limit, batch=batch,
        symbols=sizes.symbols, shapes=sizes.shapes,
        values=sizes.values, requantise=requantise, states=parse_states(state), transfers=transfers,
        progress=progress_bar(),
    )  # fmt: skip
    for line in made.lines():
        console.emit(line)
    if is_shared(made.plan):
        console.emit(transfers_of(made.files))
    console.emit(f"{len(made.files)} files written to {out}; build and check them: make -C {out} run")
    return 0
