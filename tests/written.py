"""Models written as lines of text, one line a result, and their programs: as few layers and as little of gcc as may be.

A line is nodes in the text form of ONNX; `x` is the first map, the last name is a result. Constants are named by what
they are: `w2_3` random numbers of shape (2, 3), `p4` positive ones, `n3_5` integers 3 and 5 (`m2` is -2), `f1_5` 1.5.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

from hwmodels.schedule import Hold, Nest
from instances.load import load_machine
from instances.onnx.model import read_model
from solver.uses.emit.meaning import Meaning
from solver.uses.emit.network import NetworkPlanned, alone
from tests.emitted import write


def _constant(name: str, rng: np.random.Generator) -> np.ndarray | None:
    if not (found := re.fullmatch(r"([wpnhf])((?:m?\d+_?)*)[a-z]?", name)):
        return None
    numbers = [int(one.replace("m", "-")) for one in found[2].split("_") if one]
    if found[1] == "n":
        return np.array(numbers, np.int64)
    if found[1] == "h":
        return np.arange(-numbers[0], numbers[0], dtype=np.float32) / 2
    if found[1] == "f":
        return np.array(float(found[2].replace("_", ".").replace("m", "-")), np.float32)
    drawn = rng.normal(size=numbers) if found[1] == "w" else rng.uniform(0.3, 2, numbers)
    return drawn.astype(np.float32)


def text_model(path: Path, inputs: str, lines: Sequence[str], opset: int = 21) -> None:
    """Write a model of these inputs, such as ``float[1,2,3,3] x``, with a result for every line."""
    results = [re.findall(r"(\w+) = ", line)[-1] for line in lines]
    body = "\n".join(lines)
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> it ({inputs}) => ('
    model = parser.parse_model(text + ", ".join(f"float {one}" for one in results) + f") {{ {body} }}")
    for one in model.graph.output:
        one.type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(6)
    for name in dict.fromkeys(name for node in model.graph.node for name in node.input):
        if (value := _constant(name, rng)) is not None:
            model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), path)


def planned(path: Path, settings: Mapping[str, object], rule: str | None = None) -> NetworkPlanned:
    """A model with every layer in one tile."""
    machine = load_machine("scratchpad_768k", {name: str(value) for name, value in settings.items()})
    model = read_model(path)
    nests = [Nest(tuple(Hold(operand) for operand in layer.operands)) for layer in model.network.layers]
    return NetworkPlanned(model.network, machine, alone(model.network, nests), Meaning(model, machine, rule=rule), True)


def built(files: Mapping[str, str | bytes], folder: Path, *arguments: str) -> str:
    """Write a program, build it by one call of gcc, and run it; returns what it prints."""
    write(files, folder)
    flags, sources = "-std=c11 -O0 -DCERTILE_CHECK -DCERTILE_DMA_LATE".split(), [f for f in files if f.endswith(".c")]
    subprocess.run(["gcc", *flags, *sources, "-o", "it", "-lm"], cwd=folder, check=True)
    ran = subprocess.run(["./it", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "transfers as planned" in ran.stdout
    return ran.stdout
