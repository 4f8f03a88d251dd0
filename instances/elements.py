"""Element types of a network's file against the sizes of elements that a machine counts."""

from __future__ import annotations

from instances.machine import Machine
from instances.network import Network

#: Bits of an element, by the beginning of its type's name.
_BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8": 8, "float4": 4, "int64": 64, "uint64": 64,
    "int32": 32, "uint32": 32, "int16": 16, "uint16": 16, "int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "bool": 8,
}  # fmt: skip


def unlike_elements(network: Network, machine: Machine) -> tuple[str, ...]:
    """Return a line if the file's elements have other sizes than those that the machine counts; else none."""
    counted = (
        ("maps", network.map_type, {"in_bytes": machine.in_bytes, "out_bytes": machine.out_bytes}),
        ("weights", network.weight_type, {"w_bytes": machine.w_bytes}),
    )
    said, changes = [], []
    for what, element, fields in counted:
        bits = next((bits for name, bits in _BITS.items() if element.startswith(name)), 0)
        other = {field: size for field, size in fields.items() if bits and size * 8 != bits}
        if other:
            has = " and ".join(f"{field} {size}" for field, size in other.items())
            said.append(f"{what} of {element} ({bits / 8:g} bytes each; the machine has {has})")
            changes += [f"--set {field}={bits // 8}" for field in other if bits >= 8]
    if not said:
        return ()
    hint = f": {' '.join(changes)} counts as the file does" if changes else ""
    return (f"network {network.name}, machine {machine.name}: the file holds {', '.join(said)}{hint}",)
