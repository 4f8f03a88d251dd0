"""JSON Schemas of the files that users write: networks and machines."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from instances.load import NETWORK_FORMAT
from instances.machine import Machine
from instances.network import Network

#: The files that have a schema of their own, beside plans.
FILES: dict[str, type[BaseModel]] = {"network": Network, "machine": Machine}


def file_schema(kind: str) -> str:
    """Return the JSON Schema of a network or machine file as text; keys that begin with ``//`` are comments."""
    schema: dict[str, Any] = FILES[kind].model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if kind == "network":
        schema["properties"] = {"format": {"const": NETWORK_FORMAT, "type": "string"}, **schema["properties"]}
        schema["required"] = ["format", *schema["required"]]
    for record in (schema, *schema["$defs"].values()):
        if record.get("additionalProperties") is False:
            record["patternProperties"] = {"^//": {}}
        if "op" in record.get("properties", {}):
            record["required"].append("op")  # it says which operator it is
    return json.dumps(schema, indent=1) + "\n"
