"""Streaming models: state that the program keeps from call to call, compared with onnxruntime on the whole sequence."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from instances.errors import InputError
from solver.calls.solve import solve
from solver.cli.main import main
from solver.uses.emit.emit import compile_model, emit_c
from solver.uses.emit.states import parse_states
from tests.emitted import BUILDS, FLOATS, build_and_run, needs_gcc, without_leaks
from tests.onnx_models import model_of

pytestmark = needs_gcc

FLOAT = onnx.TensorProto.FLOAT
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CALLS, HIDDEN, FEATURES = 7, 5, 6


class Writer:
    """Writes a model."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[str] = []

    def weights(self, *shape: int) -> str:
        return self.constant((self.rng.normal(size=shape) * 0.4).astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(value, f"k{len(self.constants)}"))
        return f"k{len(self.constants) - 1}"

    def input(self, name: str, *shape: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, FLOAT, shape))
        return name

    def output(self, name: str) -> None:
        self.outputs.append(name)

    def node(self, op: str, inputs: list[str], outputs: list[str], **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"n{len(self.nodes)}", **attributes))
        return outputs[0]

    def save(self, path: Path) -> None:
        model = model_of(self.nodes, self.inputs, self.outputs, self.constants)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def cells(
    path: Path, op: str, *, steps: int = 1, batch: int = 1, layers: int = 1, direction: str = "forward", **more: object
) -> dict[str, str]:
    """Recurrent layers one on the other, then a product; every state is an input and a result. Returns the pairs."""
    writer, ways, states = Writer(), 2 if direction == "bidirectional" else 1, dict[str, str]()
    source, features = writer.input("x", steps, batch, FEATURES), FEATURES
    for k in range(layers):
        shape, gates = (ways, batch, HIDDEN), GATES[op] * HIDDEN
        given = [source, writer.weights(ways, gates, features), writer.weights(ways, gates, HIDDEN)]
        given += [writer.weights(ways, 2 * gates), ""]
        names = ("h", "c") if op == "LSTM" else ("h",)
        given += [writer.input(f"{name}{k}", *shape) for name in names]
        states |= {f"{name}{k}": f"{name}n{k}" for name in names}
        made = [f"y{k}", *(f"{name}n{k}" for name in names)]
        writer.node(op, given, made, hidden_size=HIDDEN, direction=direction, **more)
        turned = writer.node("Transpose", [f"y{k}"], [f"t{k}"], perm=[0, 2, 1, 3])
        features = ways * HIDDEN
        flat = writer.constant(np.array([steps, batch, features]))
        source = writer.node("Reshape", [turned, flat], [f"z{k}"])
    writer.node("MatMul", [source, writer.weights(features, 4)], ["y"])
    for name in ("y", *states.values()):
        writer.output(name)
    writer.save(path)
    return states


def causal(path: Path, *, kernel: int = 3, dilation: int = 1, layers: int = 2, frames: int = 1) -> dict[str, str]:
    """Convolutions along time that see what came before, each with its own cache of the last frames."""
    writer, states, channels = Writer(), dict[str, str](), 4
    source, held = writer.input("x", 1, channels, frames), (kernel - 1) * dilation
    for k in range(layers):
        cache = writer.input(f"cache{k}", 1, channels, held)
        seen = writer.node("Concat", [cache, source], [f"seen{k}"], axis=2)
        last = [writer.constant(np.array([n])) for n in (-held, 2**31, 2)]
        writer.node("Slice", [seen, *last], [f"kept{k}"])
        states[cache] = f"kept{k}"
        made = writer.node("Conv", [seen, writer.weights(channels, channels, kernel), writer.weights(channels)],
                           [f"made{k}"], dilations=[dilation])  # fmt: skip
        source = writer.node("Relu", [made], [f"act{k}"])
    for name in (source, *states.values()):
        writer.output(name)
    writer.save(path)
    return states


def sequence(path: Path, states: dict[str, str]) -> tuple[bytes, bytes]:
    """Inputs of several calls, the first with a state that is not zero, and what onnxruntime makes of them."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng, given, made = np.random.default_rng(11), b"", b""
    state = dict[str, np.ndarray]()
    names = [one.name for one in session.get_outputs()]
    for call in range(CALLS):
        feeds = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in session.get_inputs()
                 if not (call and one.name in states)}  # fmt: skip
        given += b"".join(value.tobytes() for value in feeds.values())
        results = session.run(None, {**feeds, **state})
        made += b"".join(value.tobytes() for value in results)
        state = {name: results[names.index(result)] for name, result in states.items()}
    return given, made


def run(folder: Path, *expected: str) -> str:
    """Run a program that was built on in.bin; what it makes is in out.bin."""
    arguments = [str(folder / name) for name in ("in.bin", "out.bin", *expected)]
    done = subprocess.run(
        ["./certile", *arguments], cwd=folder / "c", env=without_leaks(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def streamed(folder: Path, states: dict[str, str], problem: str | None = None, flags: str = BUILDS[2]) -> None:
    """Compile a model with its states, run it on a sequence, and compare every result of every call."""
    path = folder / "m.onnx"
    given, made = sequence(path, states)
    compile_model(path, "scratchpad_768k", folder / "c", settings=FLOATS, problem=problem, time_limit_s=20,
                  states=states)  # fmt: skip
    (folder / "in.bin").write_bytes(given)
    (folder / "want.bin").write_bytes(made)
    assert "called several times: transfers as planned" in build_and_run(folder / "c", flags)
    printed = run(folder, "want.bin")
    found = re.search(r"by ([0-9.e+-]+) of the largest one", printed)
    assert found, printed
    assert float(found[1]) < 1e-5
    one, two = (np.frombuffer(x, np.float32) for x in ((folder / "out.bin").read_bytes(), made))
    assert one.size == two.size
    assert np.abs(one - two).max() < 1e-5 * np.abs(two).max()


CELLS: dict[str, dict[str, object]] = {
    "LSTM": {"op": "LSTM"}, "LSTM of two layers": {"op": "LSTM", "layers": 2},
    "LSTM of several steps a call": {"op": "LSTM", "steps": 3, "batch": 2},
    "LSTM both ways": {"op": "LSTM", "direction": "bidirectional", "steps": 2},
    "LSTM clipped": {"op": "LSTM", "clip": 0.3}, "LSTM coupled": {"op": "LSTM", "input_forget": 1},
    "GRU": {"op": "GRU", "layers": 2}, "GRU reset behind": {"op": "GRU", "linear_before_reset": 1, "layers": 2},
    "GRU both ways": {"op": "GRU", "direction": "bidirectional", "linear_before_reset": 1},
    "GRU backwards": {"op": "GRU", "direction": "reverse", "steps": 2},
    "RNN": {"op": "RNN", "layers": 3}, "RNN both ways": {"op": "RNN", "direction": "bidirectional", "batch": 2},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["tiling", "joint", "fusion"])
@pytest.mark.parametrize("name", CELLS)
def test_every_cell(tmp_path: Path, name: str, problem: str) -> None:
    """As onnxruntime, which is given the state by hand."""
    streamed(tmp_path, cells(tmp_path / "m.onnx", **CELLS[name]), problem)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["tiling", "joint", "fusion"])
@pytest.mark.parametrize(
    ("kernel", "dilation", "layers", "frames"), [(2, 1, 1, 1), (3, 2, 3, 1), (5, 1, 1, 2), (2, 4, 2, 3)]
)
def test_every_causal_convolution(
    tmp_path: Path, kernel: int, dilation: int, layers: int, frames: int, problem: str
) -> None:  # fmt: skip
    """A cache is read by a join and written by a slice of it: the copy must not run before the slice."""
    streamed(tmp_path, causal(tmp_path / "m.onnx", kernel=kernel, dilation=dilation, layers=layers, frames=frames),
             problem)  # fmt: skip


@pytest.mark.slow(2)
def test_the_caller_passes_state_on(tmp_path: Path) -> None:
    """Without --state every call is given all inputs: results of a call, fed by hand into the next, are the same."""
    path = tmp_path / "m.onnx"
    states = cells(path, "LSTM", layers=2)
    given, made = sequence(path, states)
    compile_model(path, "scratchpad_768k", tmp_path / "c", settings=FLOATS, time_limit_s=20)
    build_and_run(tmp_path / "c", "-O0")
    sizes = [FEATURES, *[HIDDEN] * 4]  # x, h0, c0, h1, c1; results have y of 4 numbers in place of x
    first, rest = np.frombuffer(given[: 4 * sum(sizes)], np.float32), np.frombuffer(given[4 * sum(sizes) :], np.float32)
    state, found = first[FEATURES:], b""
    for x in [first[:FEATURES], *rest.reshape(CALLS - 1, FEATURES)]:
        (tmp_path / "in.bin").write_bytes(x.tobytes() + state.tobytes())
        run(tmp_path)
        found += (tmp_path / "out.bin").read_bytes()
        state = np.fromfile(tmp_path / "out.bin", np.float32)[4:]
    one, two = np.frombuffer(found, np.float32), np.frombuffer(made, np.float32)
    assert np.abs(one - two).max() < 1e-5 * np.abs(two).max()


@pytest.mark.slow(2)
def test_a_reset_is_a_state_of_zeros(tmp_path: Path) -> None:
    """A driver of one's own: three calls, a reset, a call: the last result is that of zeros."""
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "m.onnx"
    states = cells(path, "GRU")
    compile_model(path, "scratchpad_768k", tmp_path / "c", settings=FLOATS, time_limit_s=20, states=states)
    x = np.random.default_rng(4).normal(size=(1, 1, FEATURES)).astype(np.float32)
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    driver = (tmp_path / "c" / "main.c").read_text()
    calls = "{ take(input, input_0, 24); rewind(input); certile_network(); }"
    begin, end = driver.index("    int calls = 0;"), driver.index("    if (expected)")
    own = f"""    for (int k = 0; k < 3; k++) {calls}
    certile_reset();
    {calls}
    fwrite(output_0, 1, 16, output);
    fclose(output);
    (void)expected, (void)more, (void)RESULTS;
    exit(0);
"""
    (tmp_path / "c" / "main.c").write_text(driver[:begin] + own + driver[end:])
    files = str(tmp_path / "x.bin"), str(tmp_path / "out.bin")
    build_and_run(tmp_path / "c", "-O0", *files, guarded=False)  # the driver fills maps itself
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    want = session.run(["y"], {"x": x, "h0": np.zeros((1, 1, HIDDEN), np.float32)})[0]
    assert np.abs(np.fromfile(tmp_path / "out.bin", np.float32) - want.ravel()).max() < 1e-6


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("h9=hn0", "state h9=hn0: h9 is no input of the model; it has x, h0"),
        ("h0=hn9", "state h0=hn9: hn9 is no result of the model; it has y, hn0"),
        ("h0=y", r"state h0=y: h0 is of \[1, 1, 5\], y of \[1, 1, 4\]"),
        ("h0", "state 'h0': write INPUT=RESULT, for example h0=hn"), ("=hn0", "write INPUT=RESULT"),
        ("h0=", "write INPUT=RESULT"),
    ],
)  # fmt: skip
def test_what_is_no_state(tmp_path: Path, text: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is said in one line before any search, and nothing is written."""
    cells(tmp_path / "m.onnx", "GRU")
    settings = [part for name, size in FLOATS.items() for part in ("--set", f"{name}={size}")]
    asked = ["compile", str(tmp_path / "m.onnx"), "-m", "scratchpad_768k", *settings, "-o", str(tmp_path / "c")]
    assert main([*asked, "--state", text]) == 2
    said = capsys.readouterr().err
    assert re.search(reason, said), said
    assert said.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_states_are_of_a_model(tmp_path: Path) -> None:
    plan = solve("lenet5", "scratchpad_64k", layers="c3")
    with pytest.raises(InputError, match="state h0: of a model, and none is named"):
        emit_c(plan, tmp_path / "c", states={"h0": "hn"})
    with pytest.raises(InputError, match="h0 is set twice"):
        parse_states(["h0=a", "h0=b"])
