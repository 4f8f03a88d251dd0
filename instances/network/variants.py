"""A network whose layers come in variants: what each one takes, on which stage, and what accuracy it costs.

JSON, format `certile-variants/1`:

    {"format": "certile-variants/1", "name": "tiny", "machine": "jetson_tx2", "unit": "us", "images": 20000,
     "sizes": [{"name": "416", "accuracy": 0.32}],
     "layers": [{"name": "conv1", "options": [
        {"variant": "base", "stage": "inference", "time": 3100},
        {"variant": "tucker", "techniques": ["tucker"], "stage": "inference", "time": 2400, "loss_ppm": 1500}]}]}

A layer reads the one before it unless `reads` says more. Or ``"table": "tiny.csv"`` in place of `layers`, a file beside
it: a line a choice, ``layer,variant,stage,time`` and, if wanted, ``reads`` (names with spaces between), ``elements``,
``techniques`` (with ``+`` between), ``type``, ``loss_ppm``, ``bytes``, ``uses`` (``cores=2 heap=64``), and
``time@416`` for times that differ by input size.

`write_variants` makes files that `load_variants` reads again: JSON with a line a layer, or a CSV table.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from instances.errors import InputError, choices
from instances.frozen import Frozen
from instances.jsonfile import (
    as_object,
    bundled,
    check_format,
    csv_rows,
    csv_text,
    decoded,
    json_by_lines,
    parse_json,
    read_bytes,
    write_atomically,
)
from instances.machine.boards import Amount, Name
from instances.validation import validate

#: The first field of every such file.
VARIANTS_FORMAT = "certile-variants/1"
#: Accuracies are counted in millionths.
PPM = 1_000_000
#: Operators of model files have long names.
LayerName = Annotated[str, Field(min_length=1, max_length=500)]
Time = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
_PS = {"ns": 1000, "us": 1_000_000, "ms": 1_000_000_000}
_NEEDED = ("layer", "variant", "stage", "time")
_KNOWN = (*_NEEDED, "reads", "elements", "techniques", "type", "loss_ppm", "bytes", "uses")


class Option(Frozen):
    """A choice for a layer."""

    variant: Name
    stage: Name
    """Where it runs; one variant may be there for several stages."""
    time: Time | dict[str, Time]
    """In the unit of the file, by input size if it differs otherwise than `Size.scale` says."""
    techniques: tuple[Name, ...] = ()
    """What was done to the layer: none for the base."""
    type: Name = "f32"
    """Element type that it reads and writes."""
    loss_ppm: Amount = 0
    """Accuracy that it costs, in millionths."""
    bytes: Amount = 0
    """Memory."""
    uses: dict[str, Amount] = Field(default_factory=dict)
    """What it takes of the machine's budgets."""

    def ps(self, unit: str, size: Size) -> float:
        """Its time at an input size, in picoseconds."""
        if isinstance(self.time, dict):
            return self.time[size.name] * _PS[unit]
        return self.time * _PS[unit] * size.scale


class VariantLayer(Frozen):
    """A layer, or what comes before and after the network."""

    name: LayerName
    options: Annotated[tuple[Option, ...], Field(min_length=1)]
    reads: tuple[LayerName, ...] | None = None
    """Layers whose maps it reads; by default that before it."""
    elements: Amount = 0
    """Of the map that it makes, where conversions and hand-overs take time by the element."""

    @property
    def base(self) -> Option:
        """The choice with the fewest techniques, the first one of these."""
        return min(self.options, key=lambda option: len(option.techniques))


class Size(Frozen):
    """An input size, or a network of another size."""

    name: Name
    accuracy: Annotated[float, Field(gt=0, le=1)]
    """Of the base, such as mean average precision."""
    scale: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Times and elements over those that options state, where they state no time of their own."""

    @property
    def accuracy_ppm(self) -> int:
        """In millionths."""
        return round(self.accuracy * PPM)


class Variants(Frozen):
    """A network, and what its layers may be."""

    format: Literal["certile-variants/1"] = "certile-variants/1"
    name: Name
    description: str = ""
    machine: str = ""
    """The machine that it was measured on, a bundled name."""
    unit: Literal["ns", "us", "ms"] = "us"
    """Of times."""
    images: PositiveInt = 1
    """How many are processed in all."""
    sizes: Annotated[tuple[Size, ...], Field(min_length=1)] = (Size(name="full", accuracy=1.0),)
    """One of them is chosen."""
    baseline_cuts: tuple[Name, ...] = ()
    """Where the software is cut before anybody optimises it."""
    order: tuple[Name, ...] = ()
    """Techniques in the order in which engine `steps` tries them; others follow."""
    layers: Annotated[tuple[VariantLayer, ...], Field(min_length=1)]
    """In topological order."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where numbers come from."""

    @field_validator("layers")
    @classmethod
    def _named(cls, layers: tuple[VariantLayer, ...]) -> tuple[VariantLayer, ...]:
        known = set[str]()
        for layer in layers:
            if layer.name in known:
                raise ValueError(f"layer {layer.name} stands twice")
            for name in layer.reads or ():
                if name not in known:
                    raise ValueError(f"layer {layer.name} reads {name!r}, which does not come before it")
            if len(set(layer.reads or ())) < len(layer.reads or ()):
                raise ValueError(f"layer {layer.name} reads a layer twice")
            known.add(layer.name)
            places = Counter((option.variant, option.stage) for option in layer.options)
            if twice := [place for place, number in places.items() if number > 1]:
                raise ValueError(f"layer {layer.name}: variant {twice[0][0]} on {twice[0][1]} stands twice")
        return layers

    @model_validator(mode="after")
    def _sized(self) -> Variants:
        names = [size.name for size in self.sizes]
        if len(set(names)) < len(names):
            raise ValueError("sizes: names must differ")
        for layer, option in self.choices:
            if isinstance(option.time, dict) and set(option.time) != set(names):
                said = f"layer {layer.name}: variant {option.variant}: time by size needs {choices(names)}"
                raise ValueError(f"{said}, got {choices(option.time) or 'none'}")
        return self

    @property
    def choices(self) -> Iterator[tuple[VariantLayer, Option]]:
        """All options with their layers."""
        return ((layer, option) for layer in self.layers for option in layer.options)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (i, j): layer j reads the map of layer i."""
        number = {layer.name: i for i, layer in enumerate(self.layers)}
        found = []
        for j, layer in enumerate(self.layers):
            reads = layer.reads if layer.reads is not None else ((self.layers[j - 1].name,) if j else ())
            found += [(number[name], j) for name in reads]
        return tuple(found)

    @property
    def techniques(self) -> tuple[str, ...]:
        """All that some option has, in the order of `order`, others as they come."""
        there = dict.fromkeys(name for _, option in self.choices for name in option.techniques)
        return tuple(dict.fromkeys((*(name for name in self.order if name in there), *there)))


def list_variants() -> list[str]:
    """Return the names of the bundled files."""
    return list(bundled("variant_profiles", ".json"))


def load_variants(name_or_path: str | os.PathLike[str]) -> Variants:
    """Read a bundled profile by name, a ``.json`` file, or a ``.csv`` file of choices of a chain.

    Raises InputError if there is none, or something in it is wrong; says what, and where.
    """
    text = os.fspath(name_or_path)
    found = bundled("variant_profiles", ".json")
    where = f"variants {text}"
    if text not in found and not text.lower().endswith((".json", ".csv")):
        raise InputError(f"{where}: there is none of this name, {choices(sorted(found))} are bundled; or name a file")
    path = Path(str(found.get(text, text)))
    if text.lower().endswith(".csv"):
        fields: dict[str, Any] = {"name": path.stem, "layers": _table(read_bytes(path, what="variants"), where)}
        return validate(Variants, fields, where)
    fields = dict(as_object(parse_json(read_bytes(path, what="variants"), where, comments=True), where))
    check_format(fields, VARIANTS_FORMAT, where)
    if "table" in fields:
        if "layers" in fields:
            raise InputError(f"{where}: give layers or table, not both")
        table = Path(path).parent / str(fields.pop("table"))
        fields["layers"] = _table(read_bytes(table, what="table of variants"), f"{where}: table {table.name}")
    return validate(Variants, fields, where)


def _table(data: bytes, where: str) -> list[dict[str, Any]]:
    """Layers of a CSV table, in the order in which they come."""
    text = decoded(data, where)
    lines = [row for row in csv_rows(text.splitlines(), where) if any(cell.strip() for cell in row)]
    heads = [head.strip() for head in lines[0]] if lines else []
    strange = [head for head in heads if head not in _KNOWN and not head.startswith("time@")]
    timed = "time" in heads or any(head.startswith("time@") for head in heads)
    missing = [name for name in _NEEDED if name not in heads and not (name == "time" and timed)]
    if strange or missing or len(set(heads)) < len(heads):
        said = f"no column {strange[0]!r}" if strange else f"no {missing[0]}" if missing else "a head stands twice"
        raise InputError(f"{where}: line 1: {said}; heads are {','.join(_KNOWN)},time@SIZE")
    layers: dict[str, dict[str, Any]] = {}
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != len(heads):
            raise InputError(f"{where}: line {number}: {len(cells)} cells under {len(heads)} heads")
        row = {head: cell.strip() for head, cell in zip(heads, cells, strict=True) if cell.strip()}
        if absent := [name for name in ("layer", "variant", "stage") if name not in row]:
            raise InputError(f"{where}: line {number}: column {absent[0]} is empty")
        layer = layers.setdefault(row["layer"], {"name": row["layer"], "options": []})
        at = f"{where}: line {number}"
        if "reads" in row:
            layer["reads"] = row["reads"].split()
        if "elements" in row:
            layer["elements"] = _number(row["elements"], f"{at}: elements")
        layer["options"].append(_option(row, at))
    return list(layers.values())


def _option(row: dict[str, str], at: str) -> dict[str, Any]:
    times = {head.removeprefix("time@"): _number(cell, f"{at}: {head}")
             for head, cell in row.items() if head.startswith("time@")}  # fmt: skip
    if not times and "time" not in row:
        raise InputError(f"{at}: column time is empty")
    option: dict[str, Any] = {
        "variant": row["variant"], "stage": row["stage"], "time": times or _number(row["time"], f"{at}: time"),
        "techniques": [name for name in row.get("techniques", "").split("+") if name],
    }  # fmt: skip
    option |= {name: _number(row[name], f"{at}: {name}") for name in ("loss_ppm", "bytes") if name in row}
    option |= {"type": row["type"]} if "type" in row else {}
    uses = dict[str, float]()
    for text in row.get("uses", "").split():
        name, _, amount = text.partition("=")
        uses[name] = _number(amount, f"{at}: uses {name}")
    return {**option, "uses": uses}


def _number(cell: str, where: str) -> float:
    try:
        return int(cell) if cell.isascii() and cell.isdigit() else float(cell)
    except ValueError:
        raise InputError(f"{where}: {cell!r} is not a number") from None


_PER_US = {"ns": 1000.0, "us": 1.0, "ms": 0.001}
_HEADS = ("layer", "reads", "elements", "variant", "techniques", "stage", "type", "time", "loss_ppm", "bytes", "uses")


def variants_to_json(variants: Variants) -> str:
    """Return the text of a .json file; defaults are left out."""
    head = {"format": variants.format, **variants.model_dump(mode="json", exclude_defaults=True, exclude={"layers"})}
    lines = [json.dumps(layer.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
             for layer in variants.layers]  # fmt: skip
    return json_by_lines(head, "layers", lines)


def variants_to_csv(variants: Variants) -> str:
    """Return the text of a .csv file, a line a choice, in microseconds.

    A table has no sizes and no number of images, a layer of it reads the one before it or those that it names.

    Raises InputError if it could not be read as it is; a .json file can.
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
