"""Random layers, machines and nests for the C that is written of them, and how programs are built and run."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from hwmodels.nest.replay import replay
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from instances.errors import InputError
from instances.machine import Machine, Transfer
from instances.network import Network
from instances.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.workload import DIMS, Layer
from solver.emit.program import Planned

#: Flags of the four builds of every program: as fast as may be, and with sanitizers, with a DMA that copies at once or
#: as late as it may.
BUILDS = (
    "-O2", "-O2 -DCERTILE_DMA_LATE", "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
    "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -DCERTILE_DMA_LATE",
)  # fmt: skip


def random_case(rng: random.Random, name: str) -> Planned:
    """A layer, a machine whose memory has not one byte more than its nest takes, and the nest."""
    while True:
        try:
            layer, machine = _layer(rng, name), _machine(rng)
            nest = _nest(rng, layer, machine)
            steps = 1
            for d in DIMS:
                steps *= -(-layer.extent(d) // nest.tile(layer)[d])
            if steps > 400 or (machine.psum_first_read and machine.psum_bytes > machine.out_bytes):
                continue
            walked = replay(layer, machine, nest, execute=False)
        except (InputError, ValidationError):
            continue
        taken = walked.outcome.occupancy_bytes
        if machine.ocm_bytes is not None:
            return Planned(layer, machine.model_copy(update={"ocm_bytes": taken["ocm"]}), nest)
        sizes = {f"{memory}_buffer_bytes": max(1, size) for memory, size in taken.items()}
        return Planned(layer, machine.model_copy(update=sizes), nest)


def _layer(rng: random.Random, name: str) -> Layer:
    kind = rng.choice(["conv", "conv", "conv", "matmul", "pool", "eltwise"])
    few = lambda: rng.randint(1, 3)  # noqa: E731
    fields: dict[str, object] = {"name": name, "kind": kind, "b": rng.randint(1, 2), "g": few()}
    fields |= {"m": rng.randint(1, 5), "n": rng.randint(1, 5), "bias": rng.random() < 0.5}
    if kind in ("pool", "eltwise"):
        fields |= {"m": 1, "n": 1, "weights": "none", "bias": False}
    if kind == "eltwise":
        fields["inputs"] = few()
    if kind == "matmul":
        fields["b"] = 1
    windows = kind in ("conv", "pool")
    for out, kernel, stride, dilation, pad, size in (
        ("r", "kh", "stride_h", "dilation_h", "pad_top", "h"), ("c", "kw", "stride_w", "dilation_w", "pad_left", "l"),
    ):  # fmt: skip
        number, taps = rng.randint(1, 6), few() if windows else 1
        number = 1 if kind == "matmul" and out == "c" else number
        step, spread = (few(), rng.randint(1, 2)) if windows else (1, 1)
        reach = (taps - 1) * spread
        before, after = rng.randint(0, reach), rng.randint(-step, reach) if windows else 0
        fields |= {out: number, kernel: taps, stride: step, dilation: spread, pad: before}
        fields[size] = (number - 1) * step + reach + 1 - before - after
    return Layer.model_validate(fields)


def _machine(rng: random.Random) -> Machine:
    coin = lambda p=0.5: rng.random() < p  # noqa: E731
    psum = rng.choice([1, 2, 4, 8])
    sliding = coin(0.6)
    fields: dict[str, object] = {
        "name": "random", "tick_ps": 1, "in_bytes": rng.choice([1, 2, 4]), "w_bytes": rng.choice([1, 2, 4]),
        "psum_bytes": psum, "out_bytes": rng.choice([k for k in (1, 2, 4, 8) if k <= psum]),
        "bias_bytes": rng.choice([0, 1, 2, 4]), "in_layout": rng.choice(["CHW", "HWC"]),
        "out_layout": rng.choice(["CHW", "HWC"]), "w_layout": rng.choice(["OIHW", "OHWI"]), "sliding": sliding,
        "psum_first_read": coin(0.2), "reserved_bytes": rng.randint(0, 9),
        "buffering": rng.choice(["single", "double", "choose"]), "transfer": Transfer(byte_ticks=1),
    }  # fmt: skip
    if coin(0.3):
        fields |= dict.fromkeys(("in_buffer_bytes", "w_buffer_bytes", "out_buffer_bytes"), 10**6)
    else:
        fields |= {"ocm_bytes": 10**6}
    if coin():
        fields |= {"snake": coin(), "line": sliding and coin()}
    elif coin():
        fields |= {"tles": 64, "tlts": 64, "overlap": rng.choice(["serial", "transfer_only"])}
    return Machine.model_validate(fields)


def _nest(rng: random.Random, layer: Layer, machine: Machine) -> Nest:
    size = {d: layer.extent(d) for d in DIMS}

    def cut(dims: str) -> tuple[str, int]:
        dim = rng.choice(dims)
        size[dim] = rng.randint(1, size[dim])
        return dim, size[dim]

    items: list[Item] = []
    if machine.tles > 1:
        for over in ("tle", "tlt"):
            items += [Spatial(*cut("bgmrc"), over) for _ in range(rng.randint(0, 2))]
    loops: list[Item] = [Loop(*cut("".join(DIMS))) for _ in range(rng.randint(0, 6))]
    line = machine.line and rng.random() < 0.7
    if line and rng.random() < 0.7:
        loops += [Loop(*cut(d)) for d in rng.sample("rc", 2)]
    if machine.tles == 1 and rng.random() < 0.3:
        _cut_freely(rng, loops, layer)
    places = {op: rng.randint(0, len(loops)) for op in layer.operands}
    if line:
        places["IN"] = rng.randint(max(0, len(loops) - 1), len(loops))
    for position in range(len(loops) + 1):
        here = [op for op in rng.sample(layer.operands, len(layer.operands)) if places[op] == position]
        items += [Hold(op, rng.choice([None, 1, 2]) if machine.buffering == "choose" else None, line and op == "IN")
                  for op in here]  # fmt: skip
        items += loops[position : position + 1]
    return Nest(tuple(items))


def _cut_freely(rng: random.Random, loops: list[Item], layer: Layer) -> None:
    """Cut the first loop over some dimension at free places; those inside it single elements."""
    dims = [d for d in DIMS if layer.extent(d) > 1 and any(isinstance(x, Loop) and x.dim == d for x in loops)]
    if not dims:
        return
    dim, cut = rng.choice(dims), False
    for k, loop in enumerate(loops):
        if isinstance(loop, Loop) and loop.dim == dim:
            extent = layer.extent(dim)
            places = sorted(rng.sample(range(1, extent), rng.randint(1, extent - 1)))
            longest = max(b - a for a, b in pairwise([0, *places, extent]))
            loops[k] = Loop(dim, 1) if cut else Loop(dim, longest, tuple(places))
            cut = True


def write(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write files into a new folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        path = folder / name
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)


def build_and_run(folder: Path, flags: str, *arguments: str) -> str:
    """Build a program with some flags and run it; returns what it prints, raises AssertionError if it fails."""
    made = subprocess.run(
        ["make", "-s", "-B", f"CFLAGS={flags}"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-3000:]
    run = subprocess.run(["./certile", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    return run.stdout


def random_network(rng: random.Random) -> Network:
    """Convolutions of any kind, pools, sums, concatenations, and now and then a product of matrices at the end."""
    channels, rows, columns = rng.choice((2, 3, 4)), rng.randint(5, 10), rng.randint(4, 9)
    made: list[Operator] = [Input(name="in", shape=(1, channels, rows, columns))]

    def add(kind: type[Operator], inputs: Sequence[Operator], **fields: object) -> None:
        given = {"name": f"n{len(made)}", "inputs": tuple(one.name for one in inputs), **fields}
        shape = kind.model_validate({**given, "shape": (1,)}).infer([one.shape for one in inputs])
        made.append(kind.model_validate({**given, "shape": shape}))

    while len(made) < rng.randint(4, 9):
        recent = made[max(0, len(made) - 3) :]
        source = rng.choice(recent)
        try:
            _grow(rng, source, recent, add)
        except ValueError:  # a window that does not fit
            continue
    last = made[-1]
    if rng.random() < 0.4:
        flat = (1, last.shape[1] * last.shape[2] * last.shape[3])
        made.append(Reshape(name="flat", inputs=(last.name,), shape=flat))
        add(MatMul, [made[-1]], out_features=rng.randint(1, 5), bias=True)
    return Network(name="random", operators=tuple(made))


def _grow(rng: random.Random, source: Operator, recent: Sequence[Operator], add: Callable[..., None]) -> None:
    kind, channels = rng.choice(["conv"] * 4 + ["pool", "sum", "concat", "relu"]), source.shape[1]
    if kind == "conv":
        groups = channels if rng.random() < 0.3 else 1
        kernel = rng.choice(((1, 1), (3, 3), (3, 3), (2, 1)))
        pad = rng.choice(((0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 0))) if kernel == (3, 3) else (0, 0, 0, 0)
        filters = channels if groups > 1 else rng.randint(1, 5)
        add(Conv, [source], filters=filters, kernel=kernel, stride=rng.choice(((1, 1), (1, 1), (2, 2))), pad=pad,
            groups=groups, bias=rng.random() < 0.5)  # fmt: skip
    elif kind == "pool":
        add(Pool, [source], fn="max", kernel=(2, 2), stride=rng.choice(((1, 1), (2, 2))))
    elif kind == "relu":
        add(Eltwise, [source], fn="relu")
    else:
        size = 1 if kind == "sum" else 2
        if kind == "concat":  # nothing is joined with itself, not even under another name
            recent = [x for x in (*recent, source) if not (isinstance(x, Eltwise) and len(x.inputs) == 1)]
            if source not in recent:
                return
        alike = [x for x in recent if x.shape[size:] == source.shape[size:] and x.name != source.name]
        if alike:
            other = rng.choice(alike)
            add(Eltwise if kind == "sum" else Concat, [source, other], **({"fn": "add"} if kind == "sum" else {}))


def random_scratchpad(rng: random.Random, network: Network) -> Machine:
    """One core with a shared memory in which some of the network's maps have room."""
    largest = max(sum(x.b * x.g * s for s in (x.n * x.h * x.l, x.m * x.r * x.c)) for x in network.layers)
    layout = rng.choice(("CHW", "HWC"))
    size, banks = rng.choice((1, 2)), rng.choice((8, 16, 24))
    memory = max(banks, round(largest * size * rng.uniform(0.4, 2))) // banks * banks + 8 * banks
    return Machine.model_validate({
        "name": "random", "tick_ps": 1, "in_bytes": size, "out_bytes": size, "w_bytes": rng.choice((1, 2)),
        "psum_bytes": size * rng.choice((1, 2)), "bias_bytes": rng.choice((0, 4)), "in_layout": layout,
        "out_layout": layout, "w_layout": rng.choice(("OIHW", "OHWI")), "sliding": rng.random() < 0.7,
        "ocm_banks": banks, "ocm_bytes": memory,
        "buffering": rng.choice(("single", "single", "double")), "problem": "joint", "transfer": Transfer(byte_ticks=1),
    })  # fmt: skip
