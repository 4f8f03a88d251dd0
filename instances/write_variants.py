"""Writes variants as files that `instances.variants` reads again: JSON with a line a layer, or a CSV table."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from instances.csvfile import csv_text
from instances.errors import InputError
from instances.jsonfile import write_atomically
from instances.variants import Option, VariantLayer, Variants

_PER_US = {"ns": 1000.0, "us": 1.0, "ms": 0.001}
_HEADS = ("layer", "reads", "elements", "variant", "techniques", "stage", "type", "time", "loss_ppm", "bytes", "uses")


def variants_to_json(variants: Variants) -> str:
    """Return the text of a .json file; defaults are left out."""
    head = {"format": variants.format, **variants.model_dump(mode="json", exclude_defaults=True, exclude={"layers"})}
    lines = [json.dumps(layer.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
             for layer in variants.layers]  # fmt: skip
    fields = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    return "{" + ",\n ".join([*fields, '"layers": [\n  ' + ",\n  ".join(lines)]) + "\n ]}\n"


def variants_to_csv(variants: Variants) -> str:
    """Return the text of a .csv file, a line a choice, in microseconds.

    A table has no sizes and no number of images, a layer of it reads the one before it or those that it names.

    Raises
    ------
    InputError
        If it could not be read as it is; a .json file can.
    """
    said = f"variants {variants.name}: a table cannot say"
    if variants.sizes != Variants.model_fields["sizes"].default:
        raise InputError(f"{said} input sizes: write a .json file")
    for layer in variants.layers:
        if any(name != name.strip() for name in (layer.name, *(o.variant for o in layer.options))):
            raise InputError(
                f"{said} names that begin or end with spaces, as in layer {layer.name!r}: write a .json file"
            )
    rows: list[Sequence[object]] = [_HEADS]
    for number, layer in enumerate(variants.layers):
        before = (variants.layers[number - 1].name,) if number else ()
        reads = "" if layer.reads in (None, before) else _names(layer, said)
        rows += [_row(variants, layer, reads, option) for option in layer.options]
    return csv_text(rows)


def _names(layer: VariantLayer, said: str) -> str:
    """The layers that one reads."""
    if not layer.reads:
        raise InputError(f"{said} that layer {layer.name} reads nothing: write a .json file")
    if any(len(name.split()) != 1 for name in layer.reads):
        raise InputError(f"{said} names with spaces that layer {layer.name} reads: write a .json file")
    return " ".join(layer.reads)


def _row(variants: Variants, layer: VariantLayer, reads: str, option: Option) -> Sequence[object]:
    time = next(iter(option.time.values())) if isinstance(option.time, dict) else option.time
    uses = " ".join(f"{name}={amount}" for name, amount in option.uses.items())
    techniques = "+".join(option.techniques)
    return (
        layer.name, reads, layer.elements, option.variant, techniques, option.stage, option.type,
        repr(time / _PER_US[variants.unit]), option.loss_ppm, option.bytes, uses,
    )  # fmt: skip


def write_variants(variants: Variants, path: str | os.PathLike[str]) -> None:
    """Write a .json or .csv file, atomically; raises InputError if it cannot be written."""
    write_atomically(path, variants_text(variants, path))


def variants_text(variants: Variants, path: str | os.PathLike[str]) -> str:
    """Return the text of a file by the ending of its name; raises InputError for others."""
    name = os.fspath(path).lower()
    if name.endswith(".json"):
        return variants_to_json(variants)
    if name.endswith(".csv"):
        return variants_to_csv(variants)
    raise InputError(f"output {os.fspath(path)}: variants are written to a .json or a .csv file")
