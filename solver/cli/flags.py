"""Flags of several commands.

Of the sizes and constants of a model an example: ``--batch 4 --symbol H=48 --value sr=16000``.
"""

from __future__ import annotations

from typing import Annotated

import typer

BatchOpt = Annotated[int | None, typer.Option("--batch", metavar="N", help="Batch size of the network: --batch 4")]
SymbolOpt = Annotated[
    list[str] | None, typer.Option("--symbol", metavar="NAME=N", help="Size of a symbolic ONNX dimension: sequence=128")
]
ShapeOpt = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=N,..", help="Shape of an ONNX input with open sizes: x=1,3,48,320"),
]
ValueOpt = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="NAME=V", help="Value of an ONNX input that is constant: sr=16000"),
]
SetOpt = Annotated[
    list[str] | None, typer.Option("--set", metavar="F=V", help="Override a machine field: ocm_bytes=98304")
]
PlanArg = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file: plan.json")]
JobsOpt = Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Processes, 0 = all processors: -j 4")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else")]
LimitOpt = Annotated[
    float | None, typer.Option("--time-limit", metavar="S", help="Seconds in all; best so far is kept: 60")
]
