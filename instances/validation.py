"""Records out of parsed JSON; whatever is wrong with one is said in one line, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from instances.errors import InputError, did_you_mean
from instances.jsonfile import Json, as_object, shown

Model = TypeVar("Model", bound=BaseModel)
MOST_FAULTS = 6


def validate(model: type[Model], data: Json, where: str) -> Model:
    """Validate parsed JSON strictly (no text or boolean passes as a number).

    Raises InputError, one line with every fault: field path, rule, value.
    """
    as_object(data, where)
    try:
        return model.model_validate_json(_as_text(data, where), strict=True)
    except ValidationError as error:
        raise InputError(f"{where}: {explain_faults(error, model)}") from None


def validate_as(kind: Any, data: Json, where: str, path: str = "") -> Any:
    """Read parsed JSON as any type, strictly: a model, a dataclass, a tuple of these; raises InputError as `validate`.

    Fields of dataclasses that are not known are faults, too. `path` is where the data stands in its file.
    """
    try:
        return adapter_of(kind).validate_json(_as_text(data, where), strict=True)
    except ValidationError as error:
        models = list(_models(kind))
        raise InputError(f"{where}: {explain_faults(error, models[0] if len(models) == 1 else None, path)}") from None


@cache
def adapter_of(kind: Any, *, documented: bool = False) -> TypeAdapter[Any]:
    """Return what reads and writes a type, or null; `documented`: with the texts beneath fields of dataclasses."""
    either = type(None) if kind is None else kind | None
    return TypeAdapter(either, config=ConfigDict(extra="forbid", use_attribute_docstrings=documented))


def _as_text(data: Json, where: str) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: a text holds half of a surrogate pair, which is not valid Unicode") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None


def explain_faults(error: ValidationError, model: type[BaseModel] | None, path: str = "") -> str:
    """Turn pydantic's faults into one line: ``field.path: rule (got value); ...``; paths begin with `path`."""
    faults = [_fault(e, model, path) for e in error.errors(include_url=False)]
    more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
    return "; ".join(faults[:MOST_FAULTS] + more)


def _fault(error: ErrorDetails, model: type[BaseModel] | None, begin: str) -> str:
    location = error["loc"]
    owner, path = _locate(model, location[:-1], begin)
    last = location[-1] if location else ""
    path = _join(path, last)
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        if owner is None:
            return f"unknown field {path}"
        known = sorted(owner.model_fields)
        return f"unknown field {path}: {did_you_mean(str(last), known, 1)}known fields: {', '.join(known)}"
    if error["type"] == "unexpected_keyword_argument":
        return f"unknown field {path}"
    if error["type"] == "missing":
        return f"field {path} is missing"
    if error["type"] == "union_tag_not_found":
        return f"{path}: field 'op' is missing"
    if error["type"] == "union_tag_invalid":
        context = error.get("ctx", {})
        return f"{path}: unknown op {shown(context.get('tag', ''))}, known: {context.get('expected_tags', '')}"
    value = error.get("input")
    if error["type"] == "value_error" and not isinstance(value, str | int | float | bool):
        return f"{path}: {message}" if path else message
    return f"{path}: {message} (got {shown(value)})"


def _join(path: str, part: int | str) -> str:
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path and part else path or part


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _locate(
    model: type[BaseModel] | None, location: tuple[int | str, ...], path: str
) -> tuple[type[BaseModel] | None, str]:  # fmt: skip
    """Walk a pydantic location; return the model it ends in and the path, from `path` on, without union tags."""
    owner = model
    candidates: list[type[BaseModel]] = []
    for part in location:
        tagged = [m for m in candidates if "op" in m.model_fields and m.model_fields["op"].default == part]
        if tagged:
            owner, candidates = tagged[0], []
            continue
        if owner is not None and part in owner.model_fields:
            candidates = list(_models(owner.model_fields[str(part)].annotation))
            owner = candidates[0] if len(candidates) == 1 else None
        path = _join(path, part)
    return owner, path
