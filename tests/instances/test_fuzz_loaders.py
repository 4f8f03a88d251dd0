"""Whatever the loaders are given, they return a valid object or raise InputError with one line."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from instances.errors import InputError
from instances.load import load_machine, load_network, network_to_json, parse_overrides
from instances.onnx.reader import read_onnx
from tests.effort import tries
from tests.onnx_models import model_of

QUICK = settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["conv", "x", "relu", "dma", "HWC", "none", "\ud800", "1", "\x00", "a\nb"]),
    st.lists(st.integers(-1, 9), max_size=5),
    st.dictionaries(st.sampled_from(["op", "name", "model", "byte_ticks", "?"]), st.integers(-1, 3), max_size=3),
)


def only_input_errors(action: Callable[[], object]) -> None:
    """Run `action`; anything but success or a one-line InputError fails the test."""
    message = "fine"
    try:
        action()
    except InputError as error:
        message = str(error)
    assert message
    assert "\n" not in message


def in_a_file(data: bytes, name: str, load: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        only_input_errors(lambda: load(path))


@cache
def valid(kind: str) -> str:
    if kind == "network":
        return network_to_json(load_network("squeezenet1_1").model_copy(update={"operators": _small()}))
    return json.dumps(load_machine("nmp").model_dump(mode="json", exclude_none=True))


def _small() -> object:
    return load_network("squeezenet1_1").operators[:9]


def places(data: object, path: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    """Return the path of every value inside parsed JSON."""
    items: list[tuple[int | str, object]] = []
    if isinstance(data, dict):
        items = list(data.items())
    if isinstance(data, list):
        items = list(enumerate(data))
    found = [path] if path else []
    for key, value in items:
        found += places(value, (*path, key))
    return found


def mutate(draw: st.DataObject, data: object) -> object:
    """Replace, remove, repeat or rename a few values anywhere in parsed JSON."""
    data = copy.deepcopy(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        path = draw.draw(st.sampled_from(places(data)))
        parent: object = data
        for key in path[:-1]:
            parent = parent[key]
        what = draw.draw(st.sampled_from(["replace", "remove", "rename", "repeat"]))
        last = path[-1]
        if what == "remove":
            del parent[last]
        elif what == "rename" and isinstance(parent, dict):
            parent[draw.draw(st.text(max_size=6))] = parent.pop(last)
        elif what == "repeat" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[last] = draw.draw(JUNK)
        if not places(data):
            break
    return data


@pytest.mark.slow(2)
@given(st.data())
@QUICK
def test_mutated_networks(draw: st.DataObject) -> None:
    text = json.dumps(mutate(draw, json.loads(valid("network"))))
    in_a_file(text.encode(), "net.json", load_network)


@given(st.data())
@QUICK
def test_mutated_machines(draw: st.DataObject) -> None:
    text = json.dumps(mutate(draw, json.loads(valid("machine"))))
    in_a_file(text.encode(), "machine.json", load_machine)


@given(kind=st.sampled_from(["network", "machine"]), start=st.integers(0, 3000), junk=st.binary(max_size=6))
@QUICK
def test_broken_texts(kind: str, start: int, junk: bytes) -> None:
    text = valid(kind).encode()
    start %= len(text)
    load = load_network if kind == "network" else load_machine
    in_a_file(text[:start] + junk + text[start + len(junk) :], "file.json", load)
    in_a_file(text[:start], "file.json", load)


@given(st.binary(max_size=200))
@QUICK
def test_any_bytes(data: bytes) -> None:
    for name, load in (("a.json", load_network), ("a.json", load_machine), ("a.onnx", read_onnx)):
        in_a_file(data, name, load)


@given(st.text(max_size=12), st.text(max_size=12), st.sampled_from(["nmp", "scratchpad_64k"]))
@QUICK
def test_any_names_and_overrides(field: str, value: str, machine: str) -> None:
    only_input_errors(lambda: load_machine(field))
    only_input_errors(lambda: load_network(value))
    only_input_errors(lambda: load_machine(machine, parse_overrides([f"{field}={value}"])))


@given(st.sampled_from(["tles", "ocm_bytes", "byte_ticks", "transfer", "compute.model", "sources", "name"]), JUNK)
@QUICK
def test_override_values(field: str, value: object) -> None:
    text = json.dumps(value)
    only_input_errors(lambda: load_machine("scratchpad_64k", parse_overrides([f"{field}={text}"])))


@cache
def small_model() -> bytes:
    """Return a model with a convolution, a norm, a padding, a reshape by shape arithmetic and a product."""
    make = helper.make_node
    tensors = {"w": [4, 3, 3, 3], "s": [4], "m": [400, 7]}
    constants = [helper.make_tensor(n, TensorProto.FLOAT, d, [0.0] * _size(d)) for n, d in tensors.items() if n != "m"]
    constants.append(TensorProto(name="m", data_type=TensorProto.FLOAT, dims=tensors["m"]))
    for name, values in (("pads", [0, 0, 1, 1, 0, 0, 1, 1]), ("minus", [-1]), ("zero", [0])):
        constants.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
    nodes = [
        make("Pad", ["x", "pads"], ["p"]), make("Conv", ["p", "w"], ["c"], name="c"),
        make("BatchNormalization", ["c", "s", "s", "s", "s"], ["b"]), make("Relu", ["b"], ["r"]),
        make("Shape", ["r"], ["sh"]), make("Gather", ["sh", "zero"], ["n"]),
        make("Concat", ["n", "minus"], ["t"], axis=0), make("Reshape", ["r", "t"], ["f"]),
        make("Gemm", ["f", "m"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, {"x": ["N", 3, 10, 10]}, held=constants).SerializeToString()


def _size(dims: list[int]) -> int:
    size = 1
    for d in dims:
        size *= d
    return size


def test_the_small_model_itself_is_good(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(small_model())
    assert [x.name for x in read_onnx(tmp_path / "a.onnx").conv_layers] == ["c", "y"]


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@QUICK
def test_models_with_changed_bytes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(small_model())
    for place, value in changes:
        data[place % len(data)] = value
    in_a_file(bytes(data), "a.onnx", read_onnx)


@given(st.integers(0, 10_000))
@QUICK
def test_models_that_are_cut_off(end: int) -> None:
    data = small_model()
    in_a_file(data[: end % len(data)], "a.onnx", read_onnx)


ATTRIBUTES = (
    "kernel_shape strides pads dilations group auto_pad axis perm transA transB ceil_mode axes value mode".split()
)


@given(st.data())
@QUICK
def test_models_with_changed_nodes(draw: st.DataObject) -> None:
    model = onnx.ModelProto.FromString(small_model())
    names = ["x", "p", "c", "b", "r", "sh", "n", "t", "f", "y", "w", "s", "m", "pads", "minus", "", "?"]
    operators = (
        "Conv MaxPool AveragePool Add Split Slice Concat Gemm MatMul Resize If Transpose Pad Gather Cast".split()
    )
    for _ in range(draw.draw(st.integers(1, 3))):
        node = model.graph.node[draw.draw(st.integers(0, len(model.graph.node) - 1))]
        what = draw.draw(st.sampled_from(["op", "input", "output", "attribute", "dims", "domain"]))
        if what == "op":
            node.op_type = draw.draw(st.sampled_from(operators))
        elif what == "input":
            node.input[:] = draw.draw(st.lists(st.sampled_from(names), max_size=4))
        elif what == "output":
            node.output[:] = draw.draw(st.lists(st.sampled_from(names), max_size=3))
        elif what == "domain":
            node.domain = draw.draw(st.sampled_from(["ai.onnx", "acme", "ai.onnx.ml"]))
        elif what == "dims":
            tensor = model.graph.initializer[draw.draw(st.integers(0, len(model.graph.initializer) - 1))]
            tensor.dims[:] = draw.draw(st.lists(st.integers(-2, 12), max_size=5))
        else:
            numbers = st.lists(st.integers(-3, 9), min_size=1, max_size=8)
            value = draw.draw(st.integers(-3, 2**40) | numbers | st.sampled_from(["SAME_UPPER", "x"]))
            node.attribute.append(helper.make_attribute(draw.draw(st.sampled_from(ATTRIBUTES)), value))
    in_a_file(model.SerializeToString(), "a.onnx", read_onnx)


def test_tensor_of_every_element_type(tmp_path: Path) -> None:
    """Constants of exotic element types are shapes like any other."""
    for kind in TensorProto.DataType.values():
        model = onnx.ModelProto.FromString(small_model())
        model.graph.initializer[0].data_type = kind
        in_a_file(model.SerializeToString(), "a.onnx", read_onnx)
