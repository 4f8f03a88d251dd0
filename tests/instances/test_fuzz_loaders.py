"""Whatever the loaders are given, they return a valid object or raise InputError with one line."""

from __future__ import annotations

import json
import random
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
from tests.mutations import mutated
from tests.onnx_models import model_of

QUICK = settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])

JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8),
    st.sampled_from(["conv", "dma", "HWC", "none", "\ud800", "1", "\x00", "a\nb"]), st.lists(st.integers(-1, 9)),
    st.dictionaries(st.sampled_from(["name", "model", "byte_ticks", "?"]), st.integers(-1, 3), max_size=3),
)  # fmt: skip


def only_input_errors(action: Callable[[], object]) -> None:
    """Run `action`; anything but success or a one-line InputError fails the test."""
    message = "fine"
    try:
        action()
    except InputError as error:
        message = str(error)
    assert message
    assert "\n" not in message


@cache
def small_model() -> bytes:
    """A model with a convolution, a norm, a padding, a reshape by shape arithmetic and a product."""
    make, kind = helper.make_node, TensorProto.FLOAT
    held = [helper.make_tensor("w", kind, [4, 3, 3, 3], [0.0] * 108), helper.make_tensor("s", kind, [4], [0.0] * 4)]
    held.append(TensorProto(name="m", data_type=kind, dims=[400, 7]))
    for name, values in (("pads", [0, 0, 1, 1, 0, 0, 1, 1]), ("minus", [-1]), ("zero", [0])):
        held.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
    nodes = [
        make("Pad", ["x", "pads"], ["p"]), make("Conv", ["p", "w"], ["c"], name="c"),
        make("BatchNormalization", ["c", "s", "s", "s", "s"], ["b"]), make("Relu", ["b"], ["r"]),
        make("Shape", ["r"], ["sh"]), make("Gather", ["sh", "zero"], ["n"]),
        make("Concat", ["n", "minus"], ["t"], axis=0), make("Reshape", ["r", "t"], ["f"]),
        make("Gemm", ["f", "m"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, {"x": ["N", 3, 10, 10]}, held=held).SerializeToString()


def test_the_small_model_itself_is_good(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(small_model())
    assert [x.name for x in read_onnx(tmp_path / "a.onnx").conv_layers] == ["c", "y"]


def small_network() -> bytes:
    found = load_network("squeezenet1_1")
    return network_to_json(found.model_copy(update={"operators": found.operators[:9]})).encode()


def small_machine() -> bytes:
    return json.dumps(load_machine("nmp").model_dump(mode="json", exclude_none=True)).encode()


@pytest.mark.parametrize(
    ("name", "sound", "load"),
    [
        ("net.json", small_network, load_network),
        ("machine.json", small_machine, load_machine),
        ("model.onnx", small_model, read_onnx),
    ],
)
def test_changed_files(name: str, sound: Callable[[], bytes], load: Callable[[Path], object], tmp_path: Path) -> None:
    """Values, keys, nodes and attributes that are others or gone, bytes that are changed or cut off, and any bytes."""
    rng, data, path = random.Random(name), sound(), tmp_path / name
    for k in range(tries(120, 600)):
        path.write_bytes(rng.randbytes(k) if k % 10 == 0 else mutated(name, data, rng))
        only_input_errors(lambda: load(path))


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


def test_tensor_of_every_element_type(tmp_path: Path) -> None:
    """Constants of exotic element types are shapes like any other."""
    for kind in TensorProto.DataType.values():
        model = onnx.ModelProto.FromString(small_model())
        model.graph.initializer[0].data_type = kind
        (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
        only_input_errors(lambda: read_onnx(tmp_path / "a.onnx"))
