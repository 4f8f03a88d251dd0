"""Random and real layers and machines for the adversary of nests."""

from __future__ import annotations

import random
from functools import cache

from instances.load import load_machine, load_network
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.network import Network
from instances.network.workload import Layer

#: How often a machine has two memories off the chip.
_SEVERAL = 0.2
_NETWORKS = ("lenet5", "squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3")


def random_layer(rng: random.Random, *, tiny: bool) -> Layer:
    """A layer of any kind: strides, dilations, any padding, batch, groups, biases, resident rows."""
    kind = rng.choice(("conv", "conv", "conv", "depthwise", "grouped", "matmul", "pool", "eltwise"))
    few = 3 if tiny else 6
    if kind == "matmul":
        return Layer.matmul(
            "x", rows=rng.randint(1, few + 3), inner=rng.randint(1, few), cols=rng.randint(1, few),
            batch=rng.randint(1, 2), activation=rng.random() < 0.3, bias=rng.random() < 0.3,
        )  # fmt: skip
    while True:
        try:
            return _resident(_window(rng, kind, few, tiny=tiny), rng)
        except ValueError:  # a kernel that is too large for the map, a window of padding only
            continue


def _window(rng: random.Random, kind: str, few: int, *, tiny: bool) -> Layer:
    size = rng.randint(1, 5 if tiny else 10), rng.randint(1, 5 if tiny else 10)
    if kind == "eltwise":
        return _element_wise(rng, size, few)
    widest = 7 if rng.random() < 0.15 else 3
    kernel = rng.randint(1, widest), rng.randint(1, widest)
    dilation = (2, 2) if rng.random() < 0.15 else (1, 1)
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    even = kernel[0] // 2, kernel[1] // 2
    pad = (*even, *even) if rng.random() < 0.5 else tuple(rng.randint(0, reach[k % 2]) for k in range(4))
    groups, channels, filters = 1, rng.randint(1, few), rng.randint(1, few)
    if kind in ("depthwise", "pool"):
        groups = channels = filters = rng.randint(1, few)
    elif kind == "grouped":
        groups, channels, filters = 2, 2 * rng.randint(1, 2), 2 * rng.randint(1, 2)
    layer = Layer.conv(
        "x", channels=channels, filters=filters, size=size, kernel=kernel, groups=groups, dilation=dilation,
        pad=(pad[0], pad[1], pad[2], pad[3]), stride=rng.choice(((1, 1), (1, 1), (2, 2), (1, 2), (3, 1))),
        batch=2 if rng.random() < 0.15 else 1, bias=rng.random() < 0.3 and kind != "pool",
    )  # fmt: skip
    return layer.model_copy(update={"kind": "pool", "weights": "none"}) if kind == "pool" else layer


def _element_wise(rng: random.Random, size: tuple[int, int], few: int) -> Layer:
    """One to three inputs; of half the layers each has some dimensions and none may have all of them."""
    sizes = {"b": rng.choice((1, 1, 2)), "g": rng.randint(1, few), "r": size[0], "c": size[1]}
    lacks = [{d for d, n in sizes.items() if n > 1 and rng.random() < 0.4} for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        lacks = [set() for _ in lacks]
    for d in sizes:
        if all(d in one for one in lacks):
            rng.choice(lacks).discard(d)
    broadcast = tuple("".join(d for d in sizes if d in one) for one in lacks)
    fields = {"name": "x", "kind": "eltwise", "m": 1, "n": 1, "h": size[0], "l": size[1], "weights": "none"}
    more = {"inputs": len(lacks), "broadcast": broadcast if any(broadcast) else ()}
    return Layer.model_validate({**fields, **sizes, **more})


def _resident(layer: Layer, rng: random.Random) -> Layer:
    if rng.random() > 0.2:
        return layer
    rows = tuple(rng.randint(0, 1 if "r" in lacks else layer.h) for lacks in layer.patterns)
    data = layer.model_dump() | {"resident_in": rows, "resident_out": rng.choice((0, rng.randint(0, layer.r)))}
    return Layer.model_validate(data)


def random_machine(rng: random.Random, layer: Layer, *, cores: bool) -> Machine:
    """A machine with any mix of the fields that nests know, and too little memory for the layer or not."""
    plain = rng.random() < 0.5
    timeline = not cores and rng.random() < 0.15
    fields: dict[str, object] = {
        "name": "m", "tick_ps": 1, "byte_fj": 7, "mac_fj": 3,
        "in_bytes": rng.choice((1, 1, 2)), "w_bytes": rng.choice((1, 1, 2)), "out_bytes": rng.choice((1, 1, 2)),
        "psum_bytes": rng.choice((1, 2, 4)), "bias_bytes": rng.choice((0, 4)),
        "in_layout": rng.choice(("CHW", "HWC")), "out_layout": rng.choice(("CHW", "HWC")),
        "w_layout": rng.choice(("OIHW", "OHWI")),
        "edge_tiles": "uniform" if rng.random() < 0.1 else "true", "psum_first_read": rng.random() < 0.2,
        "reserved_bytes": rng.choice((0, 0, 5)), "overlap": rng.choice(("auto", "serial", "transfer_only")),
        "compute": Compute() if plain else _compute(rng),
    }  # fmt: skip
    fields["transfer"] = _transfer(rng, plain=plain, uniform=fields["edge_tiles"] == "uniform")
    fields["sliding"] = fields["edge_tiles"] == "true" and rng.random() < 0.5
    parts = _bytes(layer, fields)
    if cores:
        fields |= {"tles": rng.choice((1, 2, 2, 4)), "tlts": rng.randint(1, 3), "problem": "slicing"}
        fields["tlts"] = 2 if fields["tles"] == 1 else fields["tlts"]
        fields["dram"] = rng.choice(("shared", "per_tle"))
        levels = ("none", "none", "tle", "chip")
        fields |= {"broadcast": {"input": rng.choice(levels), "weights": rng.choice(levels)}}
        fields["layer_ticks"] = rng.choice((0, 0, 9))
        names = ("in", "w", "out")
        fields |= {f"{x}_buffer_bytes": 6 + _some(rng, part) for x, part in zip(names, parts, strict=True)}
        fields |= {"buffering": "single", "overlap": rng.choice(("serial", "transfer_only"))}
    else:
        fields["buffering"] = (
            rng.choice(("double", "choose")) if timeline else rng.choice(("single",) * 4 + ("choose",))
        )
        if not timeline and fields["buffering"] == "choose" and fields["overlap"] == "auto":
            fields["overlap"] = "serial"
        if rng.random() < 0.15:
            fields |= {"im2col_rows": rng.randint(1, 3), "im2col_channels": rng.choice(("layer", "tile"))}
        fields["ocm_bytes"] = 6 + _some(rng, sum(parts))
        if rng.random() < 0.2 and fields["edge_tiles"] == "true":
            fields |= {"snake": rng.random() < 0.5, "line": bool(fields["sliding"]) and rng.random() < 0.7}
    return Machine.model_validate(fields)


def sometimes_several(machine: Machine) -> Machine:
    """The machine, now and then with two memories off the chip; drawn from its own fields."""
    fields = machine.model_dump()
    own = random.Random(repr(fields))
    if own.random() >= _SEVERAL:
        return machine
    del fields["transfer"]
    return Machine.model_validate(fields | _off_chip(own, uniform=machine.edge_tiles == "uniform"))


def _off_chip(rng: random.Random, *, uniform: bool) -> dict[str, object]:
    """Two memories off the chip, with or without a choice for each operand; the second one may be read-only."""
    names, ways = ("near", "far"), [("near",), ("far",), ("near", "far"), ("far", "near")]
    writable = rng.random() < 0.7
    memories = [
        {
            "name": name,
            "transfer": _transfer(rng, plain=rng.random() < 0.3, uniform=uniform),
            "byte_fj": rng.choice((1, 5, 7)),
        }
        for name in names
    ]
    memories[1]["writable"] = writable
    homes = {"IN": rng.choice(ways), "W": rng.choice(ways), "OUT": rng.choice(ways) if writable else ways[0]}
    return {"off_chip": memories, "homes": homes, "byte_fj": 0}


def _bytes(layer: Layer, fields: dict[str, object]) -> tuple[int, int, int]:
    size = {x: int(str(fields[f"{x}_bytes"])) for x in ("in", "w", "out")}
    maps = layer.b * layer.g
    return (
        size["in"] * layer.inputs * maps * layer.n * layer.h * layer.l,
        size["w"] * layer.g * layer.m * layer.n * layer.kh * layer.kw if "W" in layer.operands else 0,
        size["out"] * maps * layer.m * layer.r * layer.c,
    )


def _some(rng: random.Random, size: int) -> int:
    """A number up to `size`, small ones as often as large ones."""
    return int(max(size, 2) ** rng.uniform(0.3, 1.0))


def _transfer(rng: random.Random, *, plain: bool, uniform: bool) -> Transfer:
    if plain:
        return Transfer(byte_ticks=1)
    burst = rng.random() < 0.3
    return Transfer(
        call_ticks=rng.randint(0, 9), segment_ticks=rng.randint(0, 5), byte_ticks=rng.randint(0, 3),
        burst_ticks=3 if burst else 0, burst_bytes=rng.choice((4, 8, 16)) if burst else 0,
        burst_count="address" if burst and not uniform and rng.random() < 0.6 else "aligned",
    )  # fmt: skip


def _compute(rng: random.Random) -> Compute:
    return rng.choice((
        Compute(), Compute(model="tile", cycle_ticks=4, macs_per_cycle=3),
        Compute(model="array", cycle_ticks=2, rows=2, cols=4), Compute(model="array", cycle_ticks=1, rows=3, cols=2),
    ))  # fmt: skip


def objectives(rng: random.Random) -> tuple[str, ...]:
    """What to minimise: one measure, or two lexicographically."""
    first = rng.choice(("bytes", "bytes", "time", "energy"))
    if rng.random() < 0.75:
        return (first,)
    return first, rng.choice([x for x in ("bytes", "time", "energy") if x != first])


def random_pins(rng: random.Random, layer: Layer, machine: Machine) -> tuple[str, ...]:
    """No demand, or a few."""
    if rng.random() < 0.65:
        return ()
    cores = machine.tles * machine.tlts > 1
    found = []
    for _ in range(rng.randint(1, 2)):
        d = rng.choice([d for d in "bgmnrcij" if layer.extent(d) > 1] or ["c"])
        number = rng.randint(1, layer.extent(d))
        pins = [f"T_{d.upper()}{op}{number}" for op in ("=", "<=", ">=", "!=")]
        pins += [f"resident={x}" for x in layer.operands] + ["output=row_major", "holds=uniform"]
        pins += [f"partition={x}" for x in ("KS", "OFM")] if cores else ["sizes=divisors", "array=filled", "order=WS"]
        pins += [f"buffers_{x}=1" for x in layer.operands] if machine.buffering == "choose" else []
        found.append(rng.choice(pins))
    return tuple(dict.fromkeys(found))


@cache
def _network(name: str) -> Network:
    return load_network(name)


def real_layer(rng: random.Random) -> Layer:
    """A convolution or matrix product of a bundled network."""
    network = _network(rng.choice(_NETWORKS))
    return rng.choice(network.conv_layers)


def real_machine(rng: random.Random, *, cores: bool) -> Machine:
    """A bundled machine with memory of any size."""
    size = int(2 ** rng.uniform(13, 18))
    if cores:
        machine = load_machine("nmp")
        return machine.model_copy(update={f"{x}_buffer_bytes": size for x in ("in", "w", "out")})
    machine = load_machine("scratchpad_64k")
    return machine.model_copy(update={"ocm_bytes": size, "psum_bytes": rng.choice((1, 4))})
