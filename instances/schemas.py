"""JSON Schemas of the files that users write: networks, machines, and libraries of instances."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from instances.library_format import Family
from instances.load import NETWORK_FORMAT
from instances.machine import Machine
from instances.network import Network

#: The files that have a schema of their own, beside plans.
FILES: dict[str, type[BaseModel]] = {"network": Network, "machine": Machine, "library": Family}


def file_schema(kind: str) -> str:
    """Return the JSON Schema of a file of `FILES` as text; keys that begin with ``//`` are comments."""
    schema: dict[str, Any] = FILES[kind].model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if kind == "network":
        schema["properties"] = {"format": {"const": NETWORK_FORMAT, "type": "string"}, **schema["properties"]}
        schema["required"] = ["format", *schema["required"]]
    if kind == "library":  # what a family says of source and licence holds for its instances
        instance = schema["$defs"]["Instance"]
        instance["required"] = [name for name in instance["required"] if name not in ("source", "licence")]
    for record in (schema, *schema["$defs"].values()):
        if record.get("additionalProperties") is False:
            record["patternProperties"] = {"^//": {}}
        if "op" in record.get("properties", {}):
            record["required"].append("op")  # it says which operator it is
    return json.dumps(schema, indent=1) + "\n"
