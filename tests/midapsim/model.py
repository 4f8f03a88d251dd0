"""A network of certile as a model of the public MIDAP simulator; runs in a Python that finds the simulator."""

from __future__ import annotations

from typing import Any

__all__ = ["NotExecutableError", "built"]

Operator = dict[str, Any]


class NotExecutableError(Exception):
    """The simulator cannot do this."""


def _resolved(operators: list[Operator]) -> tuple[list[tuple[Operator, list[str]]], dict[str, str]]:
    """Operators with their inputs, without activations and reshapes, concatenations flat; activations by operator."""
    alias: dict[str, str] = {}
    activation: dict[str, str] = {}
    found: list[tuple[Operator, list[str]]] = []
    for one in operators:
        inputs = [alias.get(name, name) for name in one.get("inputs", [])]
        if one["op"] == "reshape" or (one["op"] == "eltwise" and len(inputs) == 1):
            alias[one["name"]] = inputs[0]
            if one.get("fn") in ("relu", "relu6"):
                activation[inputs[0]] = "Relu6" if one["fn"] == "relu6" else "Relu"
        else:
            found.append((one, inputs))
    joins = {one["name"]: inputs for one, inputs in found if one["op"] == "concat"}
    readers: dict[str, list[str]] = {}
    for one, inputs in found:
        for name in inputs:
            readers.setdefault(name, []).append(one["name"])
    inner = {name for name in joins if len(readers.get(name, [])) == 1 and readers[name][0] in joins}

    def flat(names: list[str]) -> list[str]:
        return [part for name in names for part in (flat(joins[name]) if name in inner else [name])]

    return [
        (one, flat(ins) if one["op"] == "concat" else ins) for one, ins in found if one["name"] not in inner
    ], activation


def built(network: dict[str, Any]) -> Any:
    """Return the simulator's model builder with the network in it; weights are random, but the same every time."""
    import torch
    from models import ModelBuilder

    torch.manual_seed(0)
    operators, activation = _resolved(network["operators"])
    builder = ModelBuilder(network["name"])
    shapes: dict[str, list[int]] = {}
    with torch.no_grad():
        for one, inputs in operators:
            shapes[one["name"]] = one["shape"]
            _add(builder, one, inputs, shapes, activation.get(one["name"], "Linear"))
    return builder


def _add(builder: Any, one: Operator, inputs: list[str], shapes: dict[str, list[int]], activation: str) -> None:
    """One operator."""
    name, op = one["name"], one["op"]
    top, left, bottom, right = one.get("pad", [0] * 4)
    stride, biased = one.get("stride", [1, 1])[0], bool(one.get("batch_norm") or one.get("bias"))
    pad = (top, bottom, left, right)
    if op == "input":
        builder.set_input_tensor(name=name, tensor_shape=tuple(one["shape"]))
    elif op == "conv":
        builder.Conv(
            inputs[0], shapes[inputs[0]][1], one["filters"], tuple(one["kernel"]), stride, pad,
            one.get("dilation", [1, 1])[0], one.get("groups", 1), bias=biased, activation=activation, name=name,
        )  # fmt: skip
    elif op == "matmul":
        builder.FC(inputs[0], shapes[inputs[0]][1], one["out_features"], bias=biased, name=name)
    elif op == "eltwise":
        builder.Sum(inputs[0], inputs[1], activation=activation, name=name)
    elif op == "concat":
        builder.Concat(inputs, axis=1, name=name)
    elif op == "pool" and one["fn"].startswith("global"):
        builder.GlobalPool(inputs[0], name=name)
    elif op == "pool":
        pool = builder.MaxPool if one["fn"] == "max" else builder.AvgPool
        pool(inputs[0], tuple(one["kernel"]), stride, pad, name=name)
    else:
        raise NotExecutableError(f"operator {name}: {op}")
