"""What all files are read into: models that do not change and refuse fields that they do not know; and digests of data.

A digest says what a stored plan, or an instance of the library, was made for.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from functools import cache
from itertools import pairwise
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import CoreSchema


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what the texts beneath the fields of a model say, and the descriptions of their types.

    Read from the source when asked: pydantic's ``use_attribute_docstrings`` would read it at every start.
    """
    (tree,) = ast.parse(inspect.getsource(model)).body
    said = {name: field.description or "" for name, field in model.model_fields.items()}
    for field, text in pairwise(tree.body if isinstance(tree, ast.ClassDef) else ()):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            said[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return said


class Frozen(BaseModel):
    """A record of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        """Return the JSON schema with the meaning of every field."""
        schema = handler.resolve_ref_schema(handler(core))
        for name, field in schema.get("properties", {}).items():
            if said := meanings(cls)[name]:
                field["description"] = said
        return schema


class Sparse(Frozen):
    """A record whose newer fields are written only where they say something: digests of older files stay."""

    LEFT_OUT: ClassVar[frozenset[str]]

    @property
    def silent(self) -> frozenset[str]:
        """Those of `LEFT_OUT` that are at their defaults."""
        fields = type(self).model_fields
        return frozenset(
            name for name in self.LEFT_OUT if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        )

    @model_serializer(mode="wrap")
    def _without_silent(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        silent = self.silent
        return {name: value for name, value in write(self).items() if name not in silent}


def digest(data: object) -> str:
    """Return ``sha256:...`` of the canonical JSON (sorted keys, no blanks) of JSON-like data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
