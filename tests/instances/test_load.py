"""Loading and writing networks and machines; overrides; every kind of bad file gives one clear line."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import pytest

from instances.errors import InputError, OutputError
from instances.load import (
    dump_network,
    list_machines,
    list_networks,
    load_machine,
    load_network,
    network_from_json,
    network_to_json,
    parse_overrides,
)

BAD = Path(__file__).parents[1] / "data" / "bad"

#: Bad file -> what its message says. One fault a file.
BAD_NETWORKS = {
    "cut_off": "not valid JSON at line 9, column 11",
    "cycle": "the graph has a cycle: 'c' -> 'r' -> 'c'",
    "empty_file": "is empty",
    "empty_name": "operators[1].name: String should have at least 1 character",
    "filters_boolean": "operators[1].filters: Input should be a valid integer (got True)",
    "filters_real": "operators[1].filters: Input should be a valid integer (got 4.5)",
    "filters_text": "operators[1].filters: Input should be a valid integer (got '4')",
    "groups_do_not_divide": "operator 'c': groups 3 must divide channels 2 and filters 4",
    "half_a_surrogate_pair": "not valid Unicode",
    "huge_integer": "integer 10000000000000000000... is beyond 2**53",
    "huge_real": "number 1e999 is too large",
    "infinity": "-Infinity is not a number that JSON allows",
    "kernel_of_three": "operators[1].kernel: Tuple should have at most 2 items",
    "kernel_too_large": "operator 'c': the kernel reaches over 9 elements, the padded map has 6",
    "kernel_zero": "operators[1].kernel[0]: Input should be greater than or equal to 1 (got 0)",
    "large_integer": "operators[1].filters: Input should be less than or equal to 2147483647 (got 2147483648)",
    "missing_input": "operator 'r': input 'cc' does not exist (did you mean 'c'?)",
    "missing_kernel": "field operators[1].kernel is missing",
    "name_with_line_break": "operators[1].name: a name holds printable characters only",
    "nan": "NaN is not a number that JSON allows",
    "no_format": "field format is missing, this version reads 'certile-network/1'",
    "no_operators": "operators: Tuple should have at least 1 item",
    "not_json": "not valid JSON at line 1, column 1",
    "not_utf8": "not UTF-8 text (byte 12)",
    "operator_not_an_object": "operators[3]: Input should be an object (got 'relu')",
    "operator_without_op": "operators[1]: field 'op' is missing",
    "operators_missing": "field operators is missing",
    "other_format": "field format is 'certile-network/99'",
    "padding_beyond_kernel": "operator 'c': padding 3 exceeds the kernel's reach 2",
    "repeated_key": "key 'filters' appears twice",
    "repeated_name": "operator name 'x' is used 2 times",
    "shape_empty": "operators[0].shape: Tuple should have at least 1 item",
    "shape_null": "operators[1].shape: Input should be a valid array (got None)",
    "shape_zero": "operators[0].shape[1]: Input should be greater than or equal to 1 (got 0)",
    "stride_negative": "operators[1].stride[0]: Input should be greater than or equal to 1 (got -1)",
    "sum_of_different_shapes": "operator 'r': shapes (1, 4, 4, 4) and (1, 2, 4, 4) do not fit together",
    "top_level_array": "a JSON object is needed, found an array",
    "top_level_text": "a JSON object is needed, found a text",
    "two_inputs_of_a_conv": "operator 'c': has 2 inputs, needs 1",
    "unknown_field": "unknown field layers: known fields: description, in_dram, map_type, name, operators, weight_type",
    "unknown_function": "operators[2].fn: known functions: abs, add",
    "unknown_op": "operators[1]: unknown op 'convolution', known: 'input', 'conv'",
    "unknown_operator_field": "unknown field operators[1].kernal: did you mean kernel? known fields: batch_norm",
    "utf16": "not UTF-8 text (byte 0)",
    "wrong_order": "operator 'r' comes before its input 'c'",
    "wrong_shape": "operator 'c': declared shape (1, 4, 4, 5), its inputs give (1, 4, 4, 4)",
}
BAD_MACHINES = {
    "all_reserved": "reserved_bytes 4096 leaves nothing of memory ocm (4096 bytes)",
    "array_of_no_rows": "compute.rows: Input should be greater than 0 (got 0)",
    "boolean_for_number": "tles: Input should be a valid integer (got True)",
    "bursts_without_size": "transfer: burst_ticks is set, so burst_bytes must be positive",
    "bytes_negative": "psum_bytes: Input should be greater than 0 (got -4)",
    "bytes_real": "in_bytes: Input should be a valid integer (got 0.5)",
    "bytes_text": "in_bytes: Input should be a valid integer (got '1')",
    "cut_off": "not valid JSON at line 1, column 251",
    "empty_name": "name: String should have at least 1 character",
    "empty_object": "field name is missing; field tick_ps is missing",
    "im2col_without_shared_memory": "im2col_rows needs a shared memory",
    "integer_beyond_2_53": "integer 9007199254740993 is beyond 2**53",
    "memory_and_buffers": "give either ocm_bytes or the three buffer sizes",
    "nan": "NaN is not a number that JSON allows",
    "no_memory": "give ocm_bytes, or all of",
    "number_for_boolean": "psum_first_read: Input should be a valid boolean (got 1)",
    "overlap_without_double_buffer": "overlap 'double_buffered' needs buffering 'double'",
    "repeated_key": "key 'in_bytes' appears twice",
    "source_not_text": "sources.tick_ps: Input should be a valid string (got 5)",
    "tick_zero": "tick_ps: Input should be greater than 0 (got 0)",
    "ticks_negative": "transfer.byte_ticks: Input should be greater than or equal to 0 (got -3)",
    "top_level_null": "a JSON object is needed, found null",
    "transfer_a_number": "transfer: Input should be an object (got 7)",
    "transfer_missing": "field transfer is missing",
    "two_of_three_buffers": "give ocm_bytes, or all of",
    "unknown_field": "unknown field ocm_kb: did you mean ocm_bytes? known fields: banks",
    "unknown_layout": "in_layout: Input should be 'CHW' or 'HWC' (got 'NCHW')",
    "unknown_nested_field": "unknown field transfer.byte_tick: did you mean byte_ticks?",
    "unknown_transfer_model": "transfer.model: Input should be 'volume', 'burst'",
}
#: Machine, ``--set`` text, message.
BAD_OVERRIDES = [
    ("nmp", "ocm_bytes=98304", "give either ocm_bytes or the three buffer sizes"),
    ("nmp", "in_buffer_bytes=none", "give ocm_bytes, or all of"),
    ("nmp", "ocm_byte=5", "unknown machine field 'ocm_byte': did you mean ocm_bytes"),
    ("nmp", "transfer.ticks=5", "unknown machine field 'transfer.ticks': did you mean"),
    ("nmp", "sources=5", "unknown machine field 'sources'"),
    ("nmp", "model=dma", "machine field model is ambiguous: write transfer.model or compute.model"),
    ("nmp", "tles=0", "tles: Input should be greater than 0 (got 0)"),
    ("nmp", "tles=many", "tles: Input should be a valid integer (got 'many')"),
    ("nmp", "tles=1.5", "tles: Input should be a valid integer (got 1.5)"),
    ("nmp", "tles=true", "tles: Input should be a valid integer (got True)"),
    ("nmp", "tles=NaN", "NaN is not a number"),
    ("nmp", "tles=99999999999999999999", "is beyond 2**53"),
    ("nmp", "tles=none", "tles is not optional and cannot be cleared"),
    ("nmp", "transfer=3", "transfer: Input should be an object (got 3)"),
    ("nmp", 'transfer={"cas": 3}', "unknown field transfer.cas: known fields"),
    ("nmp", "burst_bytes=0", "burst_ticks is set, so burst_bytes must be positive"),
    ("nmp", "buffering=triple", "buffering: Input should be 'single', 'double' or 'choose' (got 'triple')"),
    ("scratchpad_64k", "reserved_bytes=65536", "leaves nothing of memory ocm"),
    ("scratchpad_64k", "ocm_bytes=-1", "ocm_bytes: Input should be greater than 0 (got -1)"),
    ("scratchpad_64k", "overlap=double_buffered", "needs buffering 'double'"),
]


def test_every_bad_file_is_in_the_tables() -> None:
    for folder, table in (("networks", BAD_NETWORKS), ("machines", BAD_MACHINES)):
        assert {p.stem for p in (BAD / folder).iterdir()} == set(table)


@pytest.mark.parametrize("name", BAD_NETWORKS)
def test_bad_networks(name: str) -> None:
    _fails_with(BAD_NETWORKS[name], lambda: load_network(BAD / "networks" / f"{name}.json"))


@pytest.mark.parametrize("name", BAD_MACHINES)
def test_bad_machines(name: str) -> None:
    _fails_with(BAD_MACHINES[name], lambda: load_machine(BAD / "machines" / f"{name}.json"))


@pytest.mark.parametrize(("machine", "text", "fragment"), BAD_OVERRIDES)
def test_bad_overrides(machine: str, text: str, fragment: str) -> None:
    _fails_with(fragment, lambda: load_machine(machine, parse_overrides([text])))


@pytest.mark.parametrize(
    ("texts", "fragment"),
    [
        (["ocm_bytes"], "override 'ocm_bytes': write FIELD=VALUE"),
        (["=5"], "write FIELD=VALUE"),
        (["ocm_bytes="], "write FIELD=VALUE"),
        (["tles=2", "tles=3"], "field tles is set twice"),
        (["byte_ticks=2", "transfer.byte_ticks=3"], "field transfer.byte_ticks is set twice"),
    ],
)
def test_bad_override_texts(texts: list[str], fragment: str) -> None:
    _fails_with(fragment, lambda: parse_overrides(texts))


def _fails_with(fragment: str, action: object) -> None:
    assert callable(action)
    with pytest.raises(InputError) as caught:
        action()
    message = str(caught.value)
    assert fragment in message
    assert "\n" not in message
    assert len(message) < 1350


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    _fails_with("no such file", lambda: load_network(tmp_path / "none.json"))
    _fails_with("is a directory", lambda: load_network(tmp_path))
    _fails_with("no such file", lambda: load_machine(str(tmp_path / "none.json")))
    _fails_with("cannot be read", lambda: load_network("a\0b.json"))
    os.mkfifo(tmp_path / "pipe.json")
    _fails_with("not a regular file", lambda: load_network(tmp_path / "pipe.json"))


def test_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")

    def refuse(*_: object) -> bytes:  # the administrator, who may run this test, reads everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    _fails_with("no permission", lambda: load_network(path))


def test_files_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)  # sparse: takes no room
    _fails_with("67108865 bytes, at most 67108864 are read", lambda: load_network(path))


def test_deep_nesting(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    _fails_with("nested too deeply", lambda: load_network(path))


def test_unknown_names() -> None:
    _fails_with("unknown network 'resnet51': did you mean resnet50", lambda: load_network("resnet51"))
    _fails_with("one of alexnet", lambda: load_network("zzz"))
    _fails_with("unknown machine 'nnp': did you mean nmp?", lambda: load_machine("nnp"))
    _fails_with("an empty name", lambda: load_machine(" "))


def test_symbols_are_for_onnx_only() -> None:
    _fails_with("only ONNX files have symbolic dimensions", lambda: load_network("lenet5", symbols={"seq": 3}))


def test_bundled_networks_and_machines_load_and_are_described() -> None:
    assert {"resnet50", "inception_v3", "flownet_s", "peer_layers"} <= set(list_networks())
    names = set(list_machines())
    assert names == {
        "nmp", "zynq7020", "scratchpad_24k", "scratchpad_64k", "scratchpad_128k", "scratchpad_512k",
        "scratchpad_768k", "galaxy_s9", "hikey970",
        "midap", "midap_1600", "midap_2400", "partial_cnn_16", "partial_cnn_32",
        "vectormesh_128", "vectormesh_512", "tpu_128", "tpu_512", "eyeriss_128", "eyeriss_512",
        "u256_flash", "axi64_256k", "jetson_tx2", "srp",
        "ethos_u55_256", "ethos_u65_512", "ethos_u85_512", "nvdla_small", "rk3588_npu", "gemmini", "vta_pynq",
        "gap8", "gap9", "stm32n6", "tpu_v1", "stm32h743", "esp32_s3",
        "dram_l2_l1", "gap9_levels", "gemmini_levels", "gap8_levels", "ethos_u65_levels", "nvdla_levels", "eyeriss_v1",
        "max78002",
    }  # fmt: skip
    for name, description in list_machines().items():
        assert load_machine(name).name == name
        assert description


@pytest.mark.parametrize(
    "name",
    [
        "nmp", "zynq7020", "scratchpad_24k", "scratchpad_64k", "scratchpad_128k", "scratchpad_512k", "scratchpad_768k",
        "partial_cnn_16", "partial_cnn_32",
    ],
)  # fmt: skip
def test_every_number_of_a_machine_has_a_source(name: str) -> None:
    """A citation of a paper's place, or "assumed"; or a unit of our own choice for the tick."""
    data = json.loads((resources.files("instances") / "machines" / f"{name}.json").read_text(encoding="utf-8"))
    numbers = {k for k, v in data.items() if isinstance(v, int) and not isinstance(v, bool)}
    for outer in ("transfer", "compute", "engine"):
        numbers |= {f"{outer}.{k}" for k, v in data.get(outer, {}).items() if isinstance(v, int)}
    numbers |= {f"broadcast.{k}" for k in data.get("broadcast", {})}
    assert numbers == set(data["sources"]) - {"engine.adds"}
    for field, source in data["sources"].items():
        cited = ".md, " in source and any(word in source for word in ("section", "Fig.", "Eq.", "Listing"))
        assert cited or source.startswith("assumed") or field == "tick_ps", field


def test_nmp_reproduces_figure_1_and_the_peak() -> None:
    """TSO Fig. 1: 32768 bytes in 1024/512/256 bursts take 84/58/46 us; Fig. 7: 204.8 GMAC/s."""
    machine = load_machine("nmp")
    price = machine.transfer
    times = [(price.burst_ticks * n + price.byte_ticks * 32768) * machine.tick_ps / 1e6 for n in (1024, 512, 256)]
    assert [round(t) for t in times] == [84, 58, 46]
    cycles_per_us = 1e6 / (machine.compute.cycle_ticks * machine.tick_ps)
    gmacs = machine.tles * machine.tlts * machine.compute.macs_per_cycle * cycles_per_us / 1e3
    assert gmacs == pytest.approx(204.8)


def test_scratchpads_differ_in_size_only() -> None:
    base = load_machine("scratchpad_64k")
    for kib in (24, 64, 128, 512):
        other = load_machine(f"scratchpad_{kib}k")
        same = {"name", "description", "ocm_bytes", "sources"}
        assert other.ocm_bytes == kib * 1024
        assert other.model_dump(exclude=same) == base.model_dump(exclude=same)


def test_overrides() -> None:
    overrides = parse_overrides(["psum_bytes=1", " byte_ticks = 4 ", "transfer.call_ticks=7", "buffering=double"])
    machine = load_machine("scratchpad_64k", overrides)
    assert (machine.psum_bytes, machine.transfer.byte_ticks, machine.transfer.call_ticks) == (1, 4, 7)
    assert machine.timing == "double_buffered"
    assert machine.sources["transfer.byte_ticks"] == "set by the user"
    assert machine.sources["ocm_bytes"].startswith("assumed")
    # ``none`` is a value where it is one, and clears optional fields.
    assert load_machine("nmp", {"compute.model": "none"}).compute.model == "none"
    cleared = {"in_buffer_bytes": "none", "w_buffer_bytes": "null", "out_buffer_bytes": "None", "ocm_bytes": "4096"}
    assert load_machine("nmp", cleared).memories == {"ocm": 4096}
    assert load_machine("nmp", {"psum_first_read": "true"}).psum_first_read
    assert load_machine("nmp", {"transfer": '{"byte_ticks": 3}'}).transfer.model == "custom"
    assert load_machine("nmp", {"name": "7"}).name == "7"


def test_a_machine_file_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    text = (resources.files("instances") / "machines" / "nmp.json").read_text(encoding="utf-8")
    path.write_text("\ufeff" + text, encoding="utf-8")  # with a byte order mark, as some editors write
    assert load_machine(path) == load_machine("nmp")


def test_write_and_read_back(tmp_path: Path) -> None:
    network = load_network("mobilenet_v2")
    path = tmp_path / "net.json"
    dump_network(network, path)
    assert load_network(path) == network
    assert network_from_json(json.loads(network_to_json(network))) == network
    assert [p.name for p in tmp_path.iterdir()] == ["net.json"]  # no temporary file stays
    assert len(path.read_text().splitlines()) == len(network.operators) + 5  # one operator a line


def test_write_where_it_cannot_be(tmp_path: Path) -> None:
    network = load_network("lenet5")
    _fails_with("cannot be written", lambda: dump_network(network, tmp_path / "none" / "net.json"))
    _fails_with("cannot be written", lambda: dump_network(network, tmp_path))


def test_writing_replaces_the_old_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.json"
    dump_network(load_network("lenet5"), path)
    before = path.read_text()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match="No space left on device"):  # the place is right, the disk is not
        dump_network(load_network("srcnn"), path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["net.json"]


def test_batch() -> None:
    assert load_network("lenet5", batch=5).operators[0].shape == (5, 1, 32, 32)
    _fails_with("batch -1: a positive number", lambda: load_network("lenet5", batch=-1))
