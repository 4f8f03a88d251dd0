"""The table of machine fields is true: nothing is missing, and who reads a field is what small solves read."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from functools import _lru_cache_wrapper, cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, get_args, get_origin

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

import instances
from instances.errors import InputError
from instances.frozen import Frozen
from instances.jsonfile import Json
from instances.library_format import FILES, file_schema
from instances.load import dump_network, load_machine, load_network, machine_template, network_from_json
from instances.machine.fields import Row, page, rows
from instances.machine.machine import Machine, Transfer
from instances.measured import Profile
from instances.network.buffers import Buffer, Buffers, buffers_to_csv
from instances.network.workload import Layer
from instances.problems import PROBLEMS
from solver import check, size_engine, solve
from solver.cli.main import main
from solver.plan.plan import Plan

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"
LAYER = Layer.conv("x", channels=2, filters=2, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
ROWS = {row.path: row for row in rows()}


# --- the table -------------------------------------------------------------------------------------------------------


def models(model: type[BaseModel] = Machine, section: str = "") -> dict[str, type[BaseModel]]:
    """All that a machine is made of, by section; one that occurs twice stands at top level."""
    found = {section: model}
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel) and (not section or kind is not Transfer):
                listed = "[]" if get_origin(field.annotation) is tuple else ""
                found |= models(kind, f"{section}{name}{listed}.")
    return found


def test_no_field_is_missing() -> None:
    assert set(ROWS) == {f"{section}{name}" for section, model in models().items() for name in model.model_fields}
    assert [row.path for row in ROWS.values() if not row.meaning or not row.unit] == []


def test_the_page_is_what_is_generated() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "python -m instances.machine.fields"


def test_a_row_by_hand() -> None:
    assert ROWS["transfer.call_ticks"] == Row(
        "transfer.call_ticks", "ticks", "`0`", "For each request: start-up of the DMA.",
        ("tiling", "slicing", "joint", "fusion", "banks", "hybrid"),
    )  # fmt: skip
    assert ROWS["processors.accelerators[].speedup"][1:3] == ("factor", "not given")
    assert (ROWS["edge_tiles"].unit, ROWS["in_bytes"].default) == ("`true`, `uniform`", "required")


# --- who reads it ----------------------------------------------------------------------------------------------------


def spy_on(patch: pytest.MonkeyPatch, read: set[str]) -> None:
    """Note every field that is read, but by the models' own validators and serializers."""
    ours = {sys.modules[m.__module__].__file__ for m in (*models().values(), Frozen)} | {__file__}

    def counts(frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_filename in ours:
            if "._" in frame.f_code.co_qualname:
                return False
            frame = frame.f_back
        return True

    for section, model in models().items():
        paths = {name: f"{section}{name}" for name in model.model_fields}

        def spy(self: BaseModel, name: str, paths: dict[str, str] = paths) -> object:
            if name in paths and paths[name] not in read and counts(sys._getframe(1)):
                read.add(paths[name])
            return object.__getattribute__(self, name)

        patch.setattr(model, "__getattribute__", spy, raising=False)


def forget() -> None:
    """Empty every cache of a function: what another test asked before is read again."""
    for thing in gc.get_objects():
        if isinstance(thing, _lru_cache_wrapper):
            thing.cache_clear()


def several_memories(base: str, **others: object) -> Machine:
    """A bundled machine with two memories off the chip, each operand's home settled."""
    fields = load_machine(base).model_dump(mode="json", exclude={"transfer", "byte_fj"})
    memory = {"transfer": {"byte_ticks": 1, "call_ticks": 9}, "byte_fj": 5}
    homes = {"IN": ["near"], "W": ["far"], "OUT": ["near"]}
    both = [{"name": "near", "bytes": 10**7, **memory}, {"name": "far", **memory}]
    return Machine.model_validate_json(json.dumps(fields | {"off_chip": both, "homes": homes} | others))


SHARED = {
    "in_buffer_bytes": None, "w_buffer_bytes": None, "out_buffer_bytes": None, "ocm_bytes": 4096, "im2col_rows": 2,
}  # fmt: skip
OPERATORS: list[dict[str, Json]] = [
    {"op": "input", "name": "in", "shape": [1, 3, 8, 8]},
    {"op": "conv", "name": "c1", "inputs": ["in"], "shape": [1, 4, 6, 6], "filters": 4, "kernel": [3, 3], "bias": True},
    {"op": "conv", "name": "dw", "inputs": ["c1"], "shape": [1, 4, 4, 4], "filters": 4, "groups": 4, "kernel": [3, 3]},
    {"op": "conv", "name": "c2", "inputs": ["dw"], "shape": [1, 8, 4, 4], "filters": 8, "kernel": [1, 1]},
    {"op": "pool", "name": "mean", "inputs": ["c2"], "shape": [1, 8, 1, 1], "fn": "global_avg"},
]
#: Convolutions, and the average of all pixels.
TINY = network_from_json({"format": "certile-network/1", "name": "tiny", "operators": OPERATORS})
BUFFERS = Buffers(
    name="two",
    buffers=(Buffer(name="a", lower=0, upper=2, size=9), Buffer(name="b", lower=1, upper=3, size=9)),
    conflicts=(("a", "b"),),
)
#: Read when a file is loaded, which refuses results in a memory that is not writable; joint need not ask again.
AT_LOAD = {"off_chip[].writable"}


def measured(network: str = "") -> Profile:
    """Microseconds of the tasks, with all other cores idle."""
    row = {"1": 40, "2": 30, "3": 25, "4": 20}
    times = {f"{network}{operator['name']}": row for operator in OPERATORS}
    return Profile.model_validate({"clock": "alone", "times": times})


def halved(name: str) -> Machine:
    """A board whose cores and GPU compute in 16 bits, too."""
    data = load_machine(name).model_dump(mode="json")
    for one in (data["processors"]["cpu"], *data["processors"]["accelerators"]):
        one["half_scale"] = 0.6
    return Machine.model_validate(data)


def board() -> Machine:
    """A board whose cores have clocks of their own when they work alone."""
    fields = load_machine("hikey970").model_dump(mode="json")
    fields["processors"]["cpu"]["alone_mhz"] = [2400, 2400, 2400, 2400]
    return Machine.model_validate_json(json.dumps(fields))


def cases(folder: Path) -> dict[str, list[Callable[[], object]]]:
    """Small requests of every problem, which together use all that a machine may say."""
    joint = partial(solve, TINY.model_copy(update={"operators": TINY.operators[:2]}), problem="joint")
    banks = partial(solve, TINY, "midap")
    several = partial(solve, f"{folder / 'tiny.json'}@9ms", engine="apart")
    dump_network(TINY, folder / "tiny.json")
    return {
        "tiling": [
            partial(solve, LAYER, "scratchpad_64k", jobs=1, settings=["im2col_rows=2", "im2col_channels=tile"]),
            partial(solve, LAYER, "nmp", problem="tiling", jobs=1, settings=["tles=1", "tlts=1"]),
            partial(solve, LAYER, several_memories("scratchpad_64k"), jobs=1),
        ],
        "slicing": [
            partial(solve, LAYER, "nmp", jobs=1),
            partial(solve, LAYER, several_memories("nmp", **SHARED), jobs=1),
            partial(solve, LAYER, "nmp", jobs=1, settings=["compute.model=array"]),
        ],
        "joint": [
            partial(joint, several_memories("scratchpad_768k", ocm_banks=2, im2col_rows=2)),
            partial(joint, "scratchpad_768k", settings=["ocm_banks=2", "compute.model=tile"]),
        ],
        "fusion": [
            partial(joint, several_memories("scratchpad_768k", ocm_banks=2), problem="fusion"),
            partial(joint, "scratchpad_768k", settings=["ocm_banks=2", "compute.model=tile"], problem="fusion"),
        ],
        "banks": [
            partial(banks, objective="time"),
            partial(banks, objective="energy", settings=["banks.bus=first_come", "banks.writes=bus"]),
            partial(banks, engine="min"),
        ],
        "hybrid": [
            partial(banks, problem="hybrid"),
            partial(banks, problem="hybrid", objective="time"),
            partial(banks, problem="hybrid", objective="time", settings=["banks.bus=first_come", "banks.writes=bus"]),
        ],
        "mapping": [
            partial(solve, TINY, "hikey970", pins=["cpu_config=4", "split=on"]),
            partial(solve, TINY, board(), pins=["cpu_config=4"], profile=measured()),
        ],
        "applications": [partial(several, "hikey970"), partial(several, board(), profile=measured("tiny:"))],
        "partial_engine": [
            partial(solve, TINY, "partial_cnn_16"),
            partial(size_engine, [TINY], "partial_cnn_16"),
        ],
        "levels": [
            partial(solve, TINY, "dram_l2_l1", objective="bytes,energy", layers=["c1"], settings=["bias_bytes=4"]),
            partial(solve, TINY, "gemmini_levels", layers=["c1"], settings=["levels.queues=each"], time_limit_s=5),
        ],
        "mesh": [partial(solve, TINY, m, layers=["c1"]) for m in ("vectormesh_128", "tpu_128", "eyeriss_128")],
        "placement": [partial(solve, BUFFERS, "scratchpad_768k"), partial(solve, BUFFERS, "nmp")],
        "selection": [
            partial(solve, "tiny_yolo_tx2", settings=['platform.budgets=[{"name": "cores", "most": 4}]']),
            partial(solve, "darknet19_tx2", "jetson_tx2", pins=["cut=none"]),
            partial(solve, TINY, halved("hikey970"), problem="selection", pins=["cpu_config=4"]),
        ],
    }  # fmt: skip


@pytest.mark.slow(4)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_who_reads_a_field(problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: set[str] = set()
    requests = cases(tmp_path)[problem]
    forget()
    spy_on(monkeypatch, read)
    for case in requests:
        plan = case()
        assert not isinstance(plan, Plan) or check(plan).ok
    said = {row.path for row in rows() if problem in row.problems}
    for_all = {row.path for row in rows() if row.problems == tuple(PROBLEMS)}
    sections = {
        row.path for row in rows() if row.unit.endswith(("section", "sections"))
    }  # asked whether they are there
    assert read - said - sections == set(), "read, and the table does not say so"
    assert said - read - for_all - AT_LOAD == set(), "the table says that these are read"


# --- what cannot be ---------------------------------------------------------------------------------------------------

ONE_CORE = "line and snake are defined for one core"
COUNTING = r"needs edge_tiles 'true' and reading 'consistent'"


@pytest.mark.parametrize(("machine", "fields", "said"), [
    ("scratchpad_64k", {"snake": True, "tlts": 4}, f"{ONE_CORE}, not 1 x 4"),
    ("scratchpad_64k", {"line": True, "sliding": True, "tles": 2}, f"{ONE_CORE}, not 2 x 1"),
    ("scratchpad_64k", {"line": True, "sliding": False}, "line needs sliding"),
    *[("scratchpad_64k", {"sliding": False, one: True, other: value}, COUNTING) for one in ("sliding", "snake")
      for other, value in (("edge_tiles", "uniform"), ("reading", "literal"))],
    ("scratchpad_64k", {"overlap": "double_buffered"}, "'double_buffered' needs buffering 'double' or 'choose'"),
    ("scratchpad_64k", {"reserved_bytes": 65_536}, "reserved_bytes 65536 leaves nothing of memory ocm"),
    ("scratchpad_64k", {"ocm_banks": 65_537}, "ocm_banks 65537 needs a shared memory"),
    ("scratchpad_64k", {"ocm_bytes": None}, "give ocm_bytes, or all of"),
    ("scratchpad_64k", {"w_buffer_bytes": 4}, "give either ocm_bytes or the three buffer sizes"),
    ("scratchpad_64k", {"homes": {"IN": ["far"]}}, "homes need off_chip"),
    ("scratchpad_64k", {"problem": "banks"}, "'banks' needs section banks"),
    ("scratchpad_64k", {"problem": "boat"}, "Input should be 'tiling'"),
    ("scratchpad_64k", {"transfer": None}, "Input should be an object"),
    ("nmp", {"im2col_rows": 2}, "im2col_rows needs a shared memory"),
    ("nmp", {"ocm_banks": 2}, "ocm_banks 2 needs a shared memory"),
    ("nmp", {"out_buffer_bytes": None}, "give ocm_bytes, or all of"),
    ("midap", {"ocm_bytes": 9}, "give either banks or other on-chip memories"),
    ("midap", {"w_buffer_bytes": 9}, "give either banks or other on-chip memories"),
    ("midap", {"compute": {"model": "none"}}, "compute.cycle_ticks is 0: give 1 or more"),
    ("midap", {"problem": "tiling"}, "section banks needs problem 'banks' or 'hybrid'"),
    ("midap", {"layer_ticks": 3}, "broadcast and layer_ticks are for problems"),
    ("midap", {"broadcast": {"input": "tle"}}, "broadcast and layer_ticks are for problems"),
    ("midap", {"banks": {"map_bytes": 3}}, "map_bytes 3 is not a byte for each of 4 banks"),
    ("midap", {"banks": {"writes": "bus"}}, "needs writes 'free'"),
    ("tpu_128", {"ocm_bytes": 9}, "give either mesh or other on-chip memories"),
    ("vectormesh_128", {"mesh": {"pes": 12}}, "pes 12: a power of two is needed"),
    ("vectormesh_128", {"mesh": {"banks": 1}}, "banks 1: at least one for each of"),
    ("tpu_128", {"mesh": {"pes": 2}}, "pes 2: kind systolic has one PE in a unit"),
    ("eyeriss_128", {"mesh": {"pes": 2}}, "pes 2: kind row_stationary has one PE in a unit"),
    ("tpu_128", {"mesh": {"local_bytes": 8}}, "kind systolic has no local_bytes"),
    ("eyeriss_128", {"mesh": {"local_bytes": 0}}, "kind row_stationary needs local_bytes"),
    ("hikey970", {"processors": {"cpu": {"threads": []}}}, "threads: one entry for each number of cores"),
    ("hikey970", {"processors": {"cpu": {"alone_mhz": [9] * 9}}}, "alone_mhz: at most one entry"),
    *[("nmp", {"transfer": {f"{one}_ticks": 3}}, f"{one}_ticks is set, so {one}_bytes must be positive")
      for one in ("burst", "row", "refresh")],
    ("several", {"byte_fj": 3}, "give either byte_fj or off_chip"),
    ("several", {"reading": "literal"}, "off_chip needs reading 'consistent'"),
    ("several", {"transfer": {}}, "give either transfer or off_chip"),
    ("several", {"homes": {"IN": ["near"], "W": ["far"]}}, r"homes.OUT: name one or more of near, far"),
    ("several", {"homes": {"IN": ["near", "near"], "W": ["near"], "OUT": ["near"]}}, "homes.IN: name one or more"),
    ("several", {"homes": {"IN": ["near"], "W": ["near"], "PSUM": ["near"]}}, "there is no operand PSUM"),
    ("several", {"homes": {"IN": ["deep"], "W": ["near"], "OUT": ["near"]}}, "there is no memory deep off the chip"),
])  # fmt: skip
def test_machines_that_cannot_be(machine: str, fields: dict[str, Any], said: str) -> None:
    base = several_memories("scratchpad_64k") if machine == "several" else load_machine(machine)
    whole = base.model_dump(mode="json")
    for name in fields.keys() & {"banks", "mesh", "processors"}:
        inner = {"cpu": {**whole[name]["cpu"], **fields[name]["cpu"]}} if name == "processors" else fields[name]
        fields = {**fields, name: {**whole[name], **inner}}
    with pytest.raises(ValidationError, match=said):
        Machine.model_validate_json(json.dumps(whole | fields))


def test_sizes_of_an_engine() -> None:
    """Banks of 5,000 bytes in blocks of 4,096 take two each; 8 lanes of 9 taps and 2 for 16 x 8 pairs are 328 MACs."""
    engine = load_machine("partial_cnn_16").engine
    assert engine.model_copy(update={"banks": 3, "bank_bytes": 5000, "bram_bytes": 4096}).brams_used == 6
    taps = {"e_in": 16, "e_out": 8, "window_taps": 9, "pair_taps": 2, "dsp_macs": 3}
    assert engine.model_copy(update=taps).dsps_used == 110
    assert (engine.sized(8, 24).banks, engine.sized(24, 8).banks) == (24, 24)


def test_what_a_machine_says_of_its_memories() -> None:
    shared = load_machine("scratchpad_64k")
    assert (shared.bank_bytes, shared.bank_count) == (1, 65_536)
    five = shared.model_copy(update={"ocm_banks": 5})
    assert (five.bank_bytes, five.bank_count) == (13_107, 5)
    ways = {way: shared.model_copy(update={"buffering": way}) for way in ("single", "double", "choose")}
    assert [m.timing for m in ways.values()] == ["serial", "double_buffered", "double_buffered"]
    assert [(m.buffers(None), m.buffers(2)) for m in ways.values()] == [(1, 2), (2, 2), (1, 2)]
    two = several_memories("scratchpad_64k")
    assert (two.one_energy, two.open) == (True, False)
    dear = two.off_chip[0].model_copy(update={"byte_fj": 9})
    assert not two.model_copy(update={"off_chip": (dear, two.off_chip[1])}).one_energy
    for operand in ("IN", "W", "OUT"):
        assert two.model_copy(update={"homes": {**two.homes, operand: ("near", "far")}}).open
    counts = [Transfer(burst_count=way, burst_bytes=size) for way in ("aligned", "address") for size in (0, 64)]
    assert [(t.by_address, t.window_bytes) for t in counts] == [(False, 1)] * 3 + [(True, 64)]


# --- templates -------------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_template_is_a_machine(problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, network = tmp_path / "mine.json", tmp_path / "tiny.json"
    dump_network(TINY, network)
    (tmp_path / "two.csv").write_text(buffers_to_csv(BUFFERS.model_copy(update={"conflicts": ()})))
    targets = {"applications": f"{network}@9ms", "placement": str(tmp_path / "two.csv"), "selection": "tiny_yolo_tx2"}
    target = targets.get(problem, str(network))
    assert main(["new-machine", problem, "-o", str(file)]) == 0
    plan = tmp_path / "plan.json"
    assert main(["solve", target, "--machine", str(file), "--time-limit", "2", "-o", str(plan)]) == 0
    assert "my_machine" in capsys.readouterr().out
    assert json.loads(plan.read_text())["problem"] == problem
    mine, bundled = (
        load_machine(source).model_dump(mode="json", exclude={"name", "description", "sources", "problem"})
        for source in (file, PROBLEMS[problem].template)
    )
    assert mine == bundled


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_template_has_what_its_problem_reads(problem: str) -> None:
    """All fields that the problem reads, but optional ones that the bundled machine does not give; all explained."""
    fields = json.loads(machine_template(problem))
    known = {row.path for row in rows() if problem in row.problems and "." not in row.path}
    base = load_machine(PROBLEMS[problem].template)
    given = {name for name, value in base if value not in (None, (), {})} | {"sources"}
    assert known & given <= set(fields)
    assert fields["//tick_ps"].startswith("Length of a tick")
    assert fields["//tick_ps"].endswith("(ps; required)")


def test_a_template_replaces_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.json"
    file.write_text("{}")
    assert main(["new-machine", "mesh", "-o", str(file)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert file.read_text() == "{}"
    assert main(["new-machine", "mesh", "-o", str(tmp_path / "mine")]) == 2
    assert main(["new-machine", "boat"]) == 2
    assert "expected applications, banks" in capsys.readouterr().err


def test_keys_for_people_are_left_out(tmp_path: Path) -> None:
    """At any depth, also twice; but only keys that begin with //."""
    text = machine_template("tiling")
    plain = load_machine("scratchpad_64k")
    for comment in ('"//": 1, "//": [2]', '"//x": {"a": 1}'):
        (tmp_path / "mine.json").write_text(text.replace('"transfer": {', f'{comment}, "transfer": {{ {comment},'))
        assert load_machine(tmp_path / "mine.json").transfer == plain.transfer
    (tmp_path / "mine.json").write_text(text.replace('"transfer": {', '"/x": 1, "transfer": {'))
    with pytest.raises(InputError, match="unknown field /x"):
        load_machine(tmp_path / "mine.json")
    file = tmp_path / "net.json"
    dump_network(TINY, file)
    file.write_text(file.read_text().replace('"operators"', '"//": "a comment", "operators"'))
    assert load_network(file) == TINY


# ---- The schemas of network and machine files accept what is bundled and refuse what the loaders refuse --------------

FOLDER = Path(instances.__file__).parent
NETWORK: dict[str, Any] = {
    "format": "certile-network/1", "name": "two",
    "operators": [
        {"op": "input", "name": "in", "shape": [1, 3, 8, 8]},
        {"op": "conv", "name": "c1", "inputs": ["in"], "shape": [1, 4, 8, 8], "filters": 4, "kernel": [1, 1]},
    ],
}  # fmt: skip


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(file_schema(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(kind: str, data: object) -> bool:
    return bool(validator(kind).is_valid(data))


@pytest.mark.slow(4)
@pytest.mark.parametrize("kind", FILES)
def test_bundled_files_follow_their_schema(kind: str) -> None:
    files = sorted((FOLDER / {"library": "library"}.get(kind, f"{kind}s")).glob("*.json"))
    assert len(files) > 5
    small = [path for path in files if path.stat().st_size < 50_000]
    assert [path.name for path in small if not valid(kind, json.loads(path.read_text(encoding="utf-8")))] == []


def test_comments_are_allowed_and_other_unknown_keys_are_not() -> None:
    """The template of a machine is full of comments: ``//tick_ps``."""
    machine = json.loads(machine_template("tiling"))
    assert valid("machine", machine)
    assert not valid("machine", machine | {"tick": 1})
    assert valid("network", NETWORK | {"//name": "two layers"})


def test_operators_say_what_they_are() -> None:
    first, conv = NETWORK["operators"]
    assert valid("network", NETWORK)
    for wrong in ({k: v for k, v in conv.items() if k != "op"}, conv | {"op": "convolution"}, conv | {"kernels": 3}):
        assert not valid("network", NETWORK | {"operators": [first, wrong]})
    assert not valid("network", {k: v for k, v in NETWORK.items() if k != "format"})
