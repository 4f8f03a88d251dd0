"""Random layers, machines and nests for the C that is written of them, and how programs are built and run."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from pydantic import ValidationError

from formulations.fusion.arcs import MODES, ONCE
from formulations.fusion.groups import Group
from formulations.fusion.memory import Option, channels_of, passing_of, turns_of, weights_of
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import streams_of
from formulations.pins import Pins
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Blocks, FusedRun, Hold, Item, Loop, Nest, NetworkRun, Spatial
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape
from instances.network.workload import DIMS, Layer
from solver.uses.emit.network import NetworkPlanned
from solver.uses.emit.program import Planned
from tests.effort import THOROUGH
from tests.onnx_models import model_of

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")
#: Elements of single precision, and of one byte.
FLOATS = dict.fromkeys(("in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 4)
BYTES = {"in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4}

#: With sanitizers; what is optimised takes twice as long to compile.
_SANITIZED = f"-O{int(THOROUGH)} -fsanitize=address,undefined -fno-sanitize-recover=all"
#: Flags of the four builds of every program: as fast as may be, and with sanitizers, with a DMA that copies at once or
#: as late as it may.
BUILDS = ("-O2", f"-O{2 * THOROUGH} -DCERTILE_DMA_LATE", _SANITIZED, f"{_SANITIZED} -DCERTILE_DMA_LATE")


def random_case(rng: random.Random, name: str) -> Planned:
    """A layer, a machine whose memory has not one byte more than its nest takes, and the nest."""
    while True:
        try:
            layer, machine = random_layer(rng, name), random_machine(rng)
            nest = random_nest(rng, layer, machine)
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


def random_layer(rng: random.Random, name: str) -> Layer:
    """A layer of any kind; raises InputError or ValidationError where there is none of its sizes."""
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


def random_machine(rng: random.Random) -> Machine:
    """One memory or several, any layouts, elements, buffering and ways to move tiles."""
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


def random_nest(rng: random.Random, layer: Layer, machine: Machine) -> Nest:
    """Loops, cores and holds in any order."""
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


def without_leaks() -> dict[str, str]:
    """The environment of programs whose memory is shut: a search for leaks would read it."""
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def build_and_run(folder: Path, flags: str, *arguments: str, guarded: bool = True) -> str:
    """Build a program with some flags and run it; returns what it prints, raises AssertionError if it fails.

    A network runs with memory off the chip shut for all but transfers, and has to say so.
    """
    guard = guarded and (folder / "network.c").exists()
    target = "guard" if guard else "certile"
    given: dict[str, Any] = {
        "cwd": folder,
        "env": without_leaks(),
        "capture_output": True,
        "text": True,
        "check": False,
    }
    said = run = subprocess.run(["make", "-s", "-B", target, f"CFLAGS={flags}"], **given)
    assert said.returncode == 0, (said.stdout + said.stderr)[-3000:]
    if guard:
        shutil.copy2(folder / "certile.guard", folder / "certile")
    if arguments or not guard:
        run = subprocess.run(["./certile", *arguments], **given)
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    assert not guard or "were touched by certile_dma alone" in run.stdout, run.stdout
    return run.stdout


def built_both_ways(files: Mapping[str, str | bytes], folder: Path, flags: str = "-O0") -> dict[str, str]:
    """Build a program whose transfers run ahead and run it: copies as early and as late as may be; what each prints."""
    said = dict[str, str]()
    for name, more in {"early": "", "late": " -DCERTILE_DMA_LATE"}.items():
        write(files, folder / name)
        said[name] = build_and_run(folder / name, flags + more, guarded=False)
    return said


def random_network(rng: random.Random, *, broadcast: bool = False, sampled: bool = False) -> Network:
    """Convolutions of any kind, pools, sums, concatenations, and now and then a product of matrices at the end.

    `broadcast`: with operands that are broadcast, and no product. `sampled`: with pixels of the input that none reads.
    """
    images, channels, rows, columns = (
        rng.choice((1, 1, 2)),
        rng.choice((2, 3, 4)),
        rng.randint(5, 10),
        rng.randint(4, 9),
    )
    made: list[Operator] = [Input(name="in", shape=(images, channels, rows, columns))]

    def add(kind: type[Operator], inputs: Sequence[Operator], **fields: object) -> Operator:
        given = {"name": f"n{len(made)}", "inputs": tuple(one.name for one in inputs), **fields}
        shape = kind.model_validate({**given, "shape": (1,)}).infer([one.shape for one in inputs])
        made.append(kind.model_validate({**given, "shape": shape}))
        return made[-1]

    if sampled:
        stride = rng.choice(((2, 2), (2, 2), (3, 2), (1, 2), (2, 1)))
        for groups in rng.sample((1, 1, channels), rng.choice((1, 2))):
            add(Conv, [made[0]], filters=channels, kernel=(1, 1), stride=stride, groups=groups)
    while len(made) < rng.randint(4, 9):
        recent = made[max(int(sampled), len(made) - 3) :]
        source = rng.choice(recent)
        try:
            if broadcast and rng.random() < 0.5:
                _scaled(rng, source, made, add)
            else:
                _grow(rng, source, recent, add)
        except ValueError:  # a window that does not fit
            continue
    last = made[-1]
    if not broadcast and rng.random() < 0.4:
        flat = (images, last.shape[1] * last.shape[2] * last.shape[3])
        made.append(Reshape(name="flat", inputs=(last.name,), shape=flat))
        add(MatMul, [made[-1]], out_features=rng.randint(1, 5), bias=True)
    return Network(name="random", operators=tuple(made))


def _grow(rng: random.Random, source: Operator, recent: Sequence[Operator], add: Callable[..., Operator]) -> None:
    kind, channels = rng.choice(["conv"] * 4 + ["turns", "pool", "sum", "concat", "relu"]), source.shape[1]
    if kind == "turns":
        _narrow(rng, source, add)
    elif kind == "conv":
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
        alike = [x for x in recent if x.shape[size:] == source.shape[size:] and x.name != source.name]
        if alike:
            other = rng.choice(alike)
            add(Eltwise if kind == "sum" else Concat, [source, other], **({"fn": "add"} if kind == "sum" else {}))


def _scaled(rng: random.Random, source: Operator, made: list[Operator], add: Callable[..., Operator]) -> None:
    """A map times a constant, its own mask, or means of its own: one element along some dimensions."""
    kind = rng.choice(["constant"] * 3 + ["mask", "mask", "mean"])
    if kind == "constant":
        shape = tuple(size if rng.random() < 0.5 else 1 for size in source.shape)
        other: Operator = Input(name=f"n{len(made)}", shape=shape, constant=True)
        made.append(other)
    elif kind == "mask":
        other = add(Conv, [source], filters=1, kernel=(1, 1))
    else:
        rows, columns = source.shape[2:]
        other = add(Pool, [source], fn="avg", kernel=rng.choice(((1, columns), (rows, 1), (rows, columns))))
    add(Eltwise, rng.sample([source, other], 2), fn="mul")


def _narrow(rng: random.Random, source: Operator, add: Callable[..., Operator]) -> None:
    """Many channels, maybe each by itself for a while, then few: layers that may take turns."""
    channels, plain = rng.randint(6, 14), (0, 0, 0, 0)
    fields: dict[str, object] = {"stride": (1, 1), "pad": plain, "bias": rng.random() < 0.5}
    last = add(Conv, [source], filters=channels, kernel=(1, 1), groups=1, **fields)
    if rng.random() < 0.5:
        stride = rng.choice(((1, 1), (2, 2)))
        last = add(Conv, [last], filters=channels, kernel=(3, 3), groups=channels, stride=stride, pad=(1, 1, 1, 1))
    if rng.random() < 0.3:
        last = add(Pool, [last], fn="max", kernel=(2, 2), stride=(1, 1))
    kernel = rng.choice(((1, 1), (3, 3), (2, 1)))
    add(Conv, [last], filters=rng.randint(1, 4), kernel=kernel, groups=1, **fields)


def random_group(
    rng: random.Random, *, broadcast: bool = False, passing: bool = False, ahead: bool = False, sampled: bool = False
) -> NetworkPlanned:  # fmt: skip
    """A network that runs as one group, in a memory that has not one byte more than its plan counts.

    Halos kept or made again along both axes, warm-up, any weights that stay, layers that take turns, maps loaded twice.
    `passing`: some take turns and add nothing up. `sampled`: pixels of the input are left out. `ahead`: as C with
    transfers ahead has them: strips of whole rows that keep their halo, whole filters that stay, no turns that add up.
    """
    while True:
        network = random_network(rng, broadcast=broadcast, sampled=sampled)
        if not network.layers or (broadcast and not any(layer.broadcast for layer in network.layers)):
            continue
        machine = random_scratchpad(rng, network)
        machine = machine.model_copy(update={"ocm_bytes": 2**20, "ocm_banks": 1, "buffering": "single"})
        part = FusionPart(network, machine, Pins(()))
        layers, last = part.net.layers, len(part.net.layers) - 1
        twice = frozenset(s for s in sorted(Group(part.net, 0, last).shared) if rng.random() < 0.5)
        left_out = Group(part.net, 0, last).sampleable if sampled else frozenset[int]()
        if sampled and not left_out:
            continue
        group = Group(part.net, 0, last, twice, left_out)
        steps = rng.randint(1, layers[-1].r), rng.randint(1, layers[-1].c)
        option = Option(*steps, rng.choice(MODES), rng.choice(MODES), twice, left_out)
        if ahead:
            option = Option(steps[0], layers[-1].c, rng.choice(ONCE), "lead", twice, left_out)
        try:
            run = _run(rng, part, group, option, passing=passing, ahead=ahead)
            walked = part.walked(NetworkRun((run,)))
        except InputError:  # it is not legal, or strips of this size do not suit it
            continue
        assert not walked.faults
        if passing and all(layers[one.last].g == 1 for one in run.blocks):
            continue
        peak = walked.runs[0].peak_bytes  # type: ignore[union-attr]
        return NetworkPlanned(network, machine.model_copy(update={"ocm_bytes": peak}), NetworkRun((run,)))


def _run(
    rng: random.Random, part: FusionPart, group: Group, option: Option, *, passing: bool, ahead: bool
) -> FusedRun:  # fmt: skip
    """The run of all layers, with weights that stay and layers that take turns as it happens."""
    if group.first == group.last or (ahead and sum(stream.result for stream in group.streams) > 1):
        raise InputError("one layer is no group, and rows of one result are no whole ones of others")
    part.prices.laid_out(group.first, group.last, option)
    rows, columns, streams = streams_of(group, option)
    weights = weights_of(group, part.prices.groups.weight_bytes)
    stay = tuple(rng.choice((0, size, rng.randint(0, size))) for size in weights.bytes)
    if ahead:
        stay = tuple(size - size % max(1, each) for size, each in zip(stay, weights.filters, strict=True))
    blocks: list[Blocks] = []
    turns = (*(turns_of(group) if not ahead else ()), *(passing_of(group) if passing else ()))
    for first, last in rng.sample(turns, len(turns)):
        count = channels_of(part.net.layers[first])
        if rng.random() < 0.8 and all(last < one.first or one.last < first for one in blocks):
            channels = rng.choice([size for size in range(1, count) if count % size == 0])
            blocks.append(Blocks(first, last, channels))
    unwritten = tuple(0 if s.result else part.net.stores[s.store].rows for s in group.streams[: len(group.layers)])
    blocks.sort(key=lambda one: one.first)
    return FusedRun(
        group.first, group.last, rows, columns, streams, stay, {}, unwritten, (0,), tuple(blocks),
        sampled=tuple(sorted(group.sampled)),
    )  # fmt: skip


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


def light_model(name: str, path: Path) -> None:
    """Write a model of the ONNX wheel with random weights in place of its constants, and without a last softmax."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model, rng = onnx.load(folder / f"light_{name}.onnx"), np.random.default_rng(1)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    readers = {tensor: (node.op_type, k) for node in model.graph.node for k, tensor in enumerate(node.input)}
    nodes, weights = [], []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
            continue
        value = _weights(rng, tuple(int(n) for n in shapes[node.input[0]]), *readers[node.output[0]])
        weights.append(numpy_helper.from_array(value.astype(np.float32), node.output[0]))
    results = list(model.graph.output)
    if nodes[-1].op_type == "Softmax":  # which saturates, and then says little
        results = [helper.make_tensor_value_info(nodes.pop().input[0], onnx.TensorProto.FLOAT, None)]
    used = {tensor for node in nodes for tensor in node.input}
    weights += [t for t in model.graph.initializer if t.name in used]
    named = {t.name for t in weights}
    inputs = [i for i in model.graph.input if i.name in used - named]
    graph = helper.make_graph(nodes, name, inputs, results, initializer=weights)
    onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=8), path)


def _weights(rng: np.random.Generator, shape: tuple[int, ...], reader: str, position: int) -> np.ndarray:
    """Weights that keep the size of what goes through, positive scales and variances."""
    if reader in ("BatchNormalization", "Unsqueeze") and (position in (1, 4) or reader == "Unsqueeze"):
        return rng.uniform(0.5, 1.5, shape)
    if len(shape) > 1 and position == 1:
        return rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape)
    return rng.normal(0, 0.1, shape)


def small_model(path: Path) -> None:
    """Write a model with what networks have between their layers: norms, activations, shuffles, gates, joins."""
    rng, nodes, weights = np.random.default_rng(2), list[onnx.NodeProto](), list[onnx.TensorProto]()

    def constant(name: str, *shape: int, positive: bool = False) -> str:
        value = rng.uniform(0.5, 1.5, shape) if positive else rng.normal(0, 0.5, shape)
        weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def numbers(name: str, *values: int) -> str:
        weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(op: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=f"n_{output}", **attributes))
        return output

    conv = node("Conv", ["x", constant("w1", 6, 3, 3, 3), constant("b1", 6)], "c1", pads=[1, 1, 1, 1], strides=[2, 1])
    norm = [constant("s1", 6, positive=True), constant("t1", 6), constant("m1", 6), constant("v1", 6, positive=True)]
    conv = node("LeakyRelu", [node("BatchNormalization", [conv, *norm], "n1")], "a1", alpha=0.1)
    deep = node("Conv", [conv, constant("w2", 6, 1, 3, 3)], "d1", group=6, pads=[2, 2, 2, 2], dilations=[2, 2])
    deep = node("Add", [deep, conv], "sum")
    again = [constant("s2", 6, positive=True), constant("t2", 6), constant("m2", 6), constant("v2", 6, positive=True)]
    both = node("Relu", [node("BatchNormalization", [deep, *again], "n2")], "a2")  # before two readers
    left = node("Conv", [both, constant("w3", 4, 6, 1, 1), constant("b3", 4)], "l")
    right = node("AveragePool", [both], "r", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    joined = node("Concat", [left, right, deep], "j", axis=1)  # 16 channels
    shape = numbers("cut", 1, 4, 4, 4, 8), numbers("whole", 1, 16, 4, 8)
    turned = node("Transpose", [node("Reshape", [joined, shape[0]], "r1")], "t", perm=[0, 2, 1, 3, 4])
    mixed = node("Reshape", [turned, shape[1]], "r2")
    gate = node("Conv", [node("GlobalAveragePool", [mixed], "g"), constant("w4", 16, 16, 1, 1)], "gc")
    gated = node("Mul", [mixed, node("HardSigmoid", [gate], "gs")], "gm")
    part = node("Slice", [gated, numbers("from", 2), numbers("to", 10), numbers("axes", 1)], "part")
    pooled = node("MaxPool", [part], "p", kernel_shape=[2, 2], strides=[2, 2])
    flat = node("Flatten", [pooled], "f")
    last = node("Gemm", [flat, constant("w5", 5, 64), constant("b5", 5)], "fc", transB=1)
    node("Softmax", [last], "y", axis=1)
    onnx.save(model_of(nodes, {"x": (1, 3, 8, 8)}, ["y", "gm"], weights, opset=13), path)


def residual_model(path: Path) -> None:
    """Write a model of two convolutions and what goes past them, which a group of layers adds."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array(rng.normal(0, 0.3, (8, 8, 3, 3)).astype(np.float32), name) for name in "uvw"]
    node = lambda op, *tensors, **fields: helper.make_node(op, tensors[:-1], tensors[-1:], **fields)  # noqa: E731
    nodes = [
        node("Conv", "x", "u", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "b"),
        node("Conv", "b", "v", "c", pads=[1, 1, 1, 1]), node("Conv", "c", "w", "d", pads=[1, 1, 1, 1]),
        node("Add", "d", "b", "e"), node("Relu", "e", "y"),
    ]  # fmt: skip
    onnx.save(model_of(nodes, {"x": (1, 8, 16, 16)}, held=weights), path)
