"""The command `certile variants`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from instances.errors import InputError
from instances.network.variants import variants_text
from instances.problems import either, nested
from solver.ask import options
from solver.ask.sizes import Sizes
from solver.cli.flags import BatchOpt, SetOpt, ShapeOpt, SymbolOpt, ValueOpt
from solver.show import console

_MOST_PPM = 1_000_000


def variants(
    network: Annotated[
        str, typer.Argument(metavar="NETWORK", help="Bundled name, or .json, .onnx or .tflite file: squeezenet1_1")
    ],
    machine: Annotated[
        str,
        typer.Option(
            "--machine",
            "-m",
            metavar="M",
            help=f"A board, or a machine of problem {either(nested('layers'), 'or')}: -m galaxy_s9",
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The profile, .json or .csv: -o profile.json")
    ],
    ranks: Annotated[
        str,
        typer.Option("--ranks", metavar="R,..", help="Tucker ranks, shares of the channels; none: no decompositions"),
    ] = "0.5",
    sensitivity: Annotated[
        int,
        typer.Option(
            "--sensitivity",
            metavar="PPM",
            help="Assumed: accuracy that a layer loses without all of its weights, in millionths; 0: unknown",
        ),
    ] = 0,
    cpu_config: Annotated[
        str | None,
        typer.Option("--cpu-config", metavar="N,..", help="Groups of the cores of a board; default: all in one: 2,2"),
    ] = None,
    platform_to: Annotated[
        str | None,
        typer.Option("--platform-to", metavar="FILE", help="Write the machine whose stages the profile is for, .json"),
    ] = None,
    set_: SetOpt = None,
    batch: BatchOpt = None,
    symbol: SymbolOpt = None,
    shape: ShapeOpt = None,
    value: ValueOpt = None,
) -> int:
    """Estimate what variants of layers take, and write a profile for problem selection.

    Variants are the base, Tucker decompositions, and 16 bits where a board says half_scale (on tiling machines: half of
    the bytes of elements, where they are even). On a board times are of the processors of one configuration, else of
    best plans. Nothing is measured, and losses of accuracy are assumed; put in what you have measured.
    `certile solve profile.json -m machine.json` takes the profile with the file of --platform-to.
    """
    for path in (out, *([] if platform_to is None else [platform_to])):
        options.check_writable(path)
    if not out.lower().endswith((".json", ".csv")):
        raise InputError(f"output {out}: variants are written to a .json or a .csv file")
    if platform_to is not None and not platform_to.lower().endswith(".json"):
        raise InputError(f"output {platform_to}: a machine file ends in .json, or certile solve would not find it")
    if not 0 <= sensitivity <= _MOST_PPM:
        raise InputError(f"--sensitivity {sensitivity}: millionths of accuracy, 0 to {_MOST_PPM}")
    from solver.uses.variants import estimate  # late: models import solver packages

    made = estimate(
        Sizes.parse(symbol, shape, value).load(network, batch), options.pick_machine(machine, set_ or ()),
        _ranks(ranks), sensitivity, None if cpu_config is None else _configuration(cpu_config),
    )  # fmt: skip
    console.write(out, variants_text(made.variants, out))
    number = sum(len(layer.options) for layer in made.variants.layers)
    lines = [f"{len(made.variants.layers)} layers with {number} options written to {out}: estimated, not measured"]
    if platform_to is not None:
        fields = made.machine.model_dump(mode="json", exclude_none=True)
        console.write(platform_to, json.dumps(fields, indent=1, ensure_ascii=False) + "\n")
        lines.append(f"their stages written to {platform_to}; next: certile solve {out} -m {platform_to}")
    for line in lines:
        console.emit(line)
    return 0


def _ranks(text: str) -> tuple[float, ...]:
    """Such as ``0.25,0.5``, or ``none``."""
    if text.strip() == "none":
        return ()
    try:
        return tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"--ranks {text}: write shares of the channels, such as 0.25,0.5, or none") from None


def _configuration(text: str) -> tuple[int, ...]:
    """Such as ``2,2``."""
    parts = [part.strip() for part in text.strip().strip("()").split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise InputError(f"--cpu-config {text}: write the cores of each group, such as 2,2")
    return tuple(map(int, parts))
