"""What ``certile machines --check`` finds: each fault by its line, and thousandfold numbers of bundled files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.jsonfile import list_machines
from instances.load import load_machine
from instances.machine.audit import faults
from instances.machine.machine import Machine
from instances.machine.said import said
from solver.cli.main import main

#: A file without a fault: 16 x 16 MACs at 500 MHz, 8 bytes a cycle.
GOOD: dict[str, Any] = {
    "name": "mine", "description": "A mesh of 16 x 16 MACs at 500 MHz", "tick_ps": 250, "in_bytes": 1, "w_bytes": 1,
    "out_bytes": 1, "psum_bytes": 4, "ocm_bytes": 262144, "ocm_banks": 4, "reserved_bytes": 2048,
    "transfer": {"call_ticks": 256, "byte_ticks": 1, "burst_ticks": 0, "burst_bytes": 64},
    "compute": {"model": "array", "rows": 16, "cols": 16, "cycle_ticks": 8},
    "byte_fj": 160000, "mac_fj": 200,
    "sources": {
        "tick_ps": "a unit of our choice: one byte at 4 GB/s, an eighth of a cycle of 500 MHz",
        "in_bytes": "data sheet, section 2: int8", "w_bytes": "data sheet, section 2: int8",
        "out_bytes": "data sheet, section 2: int8", "psum_bytes": "data sheet, section 2: sums of 32 bits",
        "ocm_bytes": "data sheet, section 3: four banks of 64 KiB", "ocm_banks": "data sheet, section 3: four banks",
        "reserved_bytes": "driver.c: 260,096 bytes are for tiles",
        "transfer.call_ticks": "data sheet, section 4: a latency of 32 cycles",
        "transfer.byte_ticks": "data sheet, section 4: 8 bytes a cycle",
        "transfer.burst_bytes": "AXI: bursts of 64 bytes",
        "compute": "data sheet, section 1: 16 x 16 MACs at 500 MHz, 256 GOPS",
        "byte_fj": "assumed: 20 pJ a bit", "mac_fj": "assumed: 0.2 pJ a MAC",
    },
}  # fmt: skip
NOTHING = "says nothing; name a document, or write 'assumed: why'"
NO_RATE = "names no bandwidth (write: 8 GB/s, or 8 bytes a cycle)"
NO_CLOCK = "names no clock (write: 500 MHz)"
SLOW = "are 0.0005 GB/s, below 1 MB/s"
LEVELS: dict[str, Any] = {
    "name": "mine", "problem": "levels", "tick_ps": 250, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 4,
    "levels": {"memories": [
        {"name": "dram", "byte_ticks": 1}, {"name": "l2", "bytes": 65536}, {"name": "l1", "bytes": 1024},
    ]},
    "sources": dict.fromkeys(("tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"), "assumed: as others") | {
        "levels": "data sheet: DRAM of 4 GB/s, 64 KiB, 1 KiB"
    },
}  # fmt: skip


def changed(base: dict[str, Any], path: str, value: object) -> Machine:
    """A file with one field changed; a source is found by ``sources/NAME``; None leaves it out."""
    data = json.loads(json.dumps(base))
    *outer, last = path.split("/") if "/" in path else path.split(".")
    here = data
    for name in outer:
        here = here[int(name)] if isinstance(here, list) else here[name]
    if value is None:
        del here[last]
    else:
        here[last] = value
    return Machine.model_validate(data)


def test_a_file_without_fault() -> None:
    assert not faults(Machine.model_validate(GOOD))
    assert not faults(Machine.model_validate(LEVELS))


@pytest.mark.parametrize("name", list_machines())
def test_bundled_files_have_none(name: str) -> None:
    assert not faults(load_machine(name))


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("sources/mac_fj", None, "mac_fj: no source"),
        ("sources/speed", "a guess of ours", "sources.speed: the file has no such field"),
        ("sources/mac_fj", "assumed:", f"sources.mac_fj: 'assumed:' {NOTHING}"),
        ("sources/mac_fj", "???", f"sources.mac_fj: '???' {NOTHING}"),
        # 4 ticks of 250 ps are 1 ns
        ("compute.cycle_ticks", 4, "compute.cycle_ticks: 1,000 MHz by the file; its source says 500 MHz"),
        ("compute.cycle_ticks", 4, "description: says 500 MHz, the file has a clock of 1,000 MHz"),
        ("compute.cycle_ticks", 4, "sources.compute: says 128 GMAC/s, the file makes 256 (256 MACs a cycle)"),
        ("compute.cycle_ticks", 8000, "compute.cycle_ticks: a clock of 0.5 MHz; 1 MHz to 10 GHz are plausible"),
        ("sources/compute", "x", f"compute.cycle_ticks: 500 MHz by the file; its source {NO_CLOCK}"),
        ("compute.rows", 8, "compute.rows: 8; its source says 16 or 256 or 500"),
        ("compute.rows", 8, "description: says 256 or 16 MACs, the file has 128 a cycle"),
        # a byte every 250 ps is 4 GB/s, and 8 bytes a cycle of 2 ns
        ("transfer.byte_ticks", 2, "transfer.byte_ticks: 2 GB/s by the file; its source says 4 GB/s"),
        ("sources/transfer.byte_ticks", "x", f"transfer.byte_ticks: 4 GB/s by the file; its source {NO_RATE}"),
        ("transfer.byte_ticks", 8000, f"transfer.byte_ticks: 8,000 ticks of 250 ps a byte {SLOW}"),
        ("transfer.call_ticks", 512, "transfer.call_ticks: 128 ns by the file; its source says 64 ns"),
        ("transfer.call_ticks", 4 * 10**9 + 4, "transfer.call_ticks: 1 s; a second and more is no price of one"),
        ("transfer.burst_bytes", 96, "transfer.burst_bytes: 96; bursts are powers of two"),
        ("tick_ps", 300, "tick_ps: 500 MHz takes 6.67 ticks of 300 ps, no whole number of them"),
        ("tick_ps", 400, "tick_ps: a byte at 4 GB/s takes 0.625 ticks of 400 ps, no whole number of them"),
        ("ocm_bytes", 131072, "ocm_bytes: 131,072 bytes by the file; its source says 65,536 bytes"),
        ("ocm_bytes", 262143, "ocm_banks: 4 equal banks leave 3 of 262,143 bytes"),
        ("ocm_banks", 8, "ocm_banks: 8; its source says 4"),
        ("reserved_bytes", 4096, "reserved_bytes: 4,096 bytes by the file; its source says 260,096 bytes"),
        ("psum_bytes", 2, "psum_bytes: 16 bits; its source says 32 bits"),
        ("in_bytes", 32, "in_bytes: an element of 32 bytes; 1 to 16 are plausible: are these bits?"),
        ("byte_fj", 20000, "byte_fj: 20 pJ; its source says 160 pJ"),
        ("mac_fj", 2 * 10**8, "mac_fj: 200,000 pJ; 0.001 to 1,000 pJ are plausible"),
    ],
)  # fmt: skip
def test_each_fault_has_its_line(path: str, value: object, line: str) -> None:
    assert line in faults(changed(GOOD, path, value))


def test_memories_in_levels_fall_from_far_to_near() -> None:
    machine = changed(LEVELS, "levels/memories/2/bytes", 131072)
    assert "levels.memories.l1.bytes: 131,072 bytes, larger than l2, which is farther out" in faults(machine)


@pytest.mark.parametrize("operands", [["IN", "W"], ["IN", "W", "OUT"]])
def test_accumulators_may_be_larger_than_one_memory_before(operands: list[str]) -> None:
    """Whether it holds sums or is passed by them: L2 is larger than both."""
    memories = [*LEVELS["levels"]["memories"], {"name": "acc", "bytes": 4096, "operands": ["OUT"]}]
    memories[2] = memories[2] | {"operands": operands}
    sources = LEVELS["sources"] | {"levels.memories.acc.bytes": "assumed: 4 KiB"}
    assert not faults(Machine.model_validate(LEVELS | {"levels": {"memories": memories}, "sources": sources}))


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("1,428.6 ps", "clocks", {1e12 / 1428.6}),
        ("266 of 266.7 ps a byte", "clocks", set()),
        ("266 of 266.7 ps a byte", "rates", {1e12 / 266.7}),
        ("14 GiB/s; 0.5 GB/s", "rates", {14 * 2**30, 5e8}),
        ("25 bytes a ns", "rates", {25e9}),
        ("48 SHRAM banks of 1,024 bytes", "sizes", {1024}),
        ("32 x 512 x 8 bytes", "sizes", {131072}),
        ("256 x 32 bits", "sizes", {1024}),
        ("LOG_INP_BUFF_SIZE 15", "sizes", {32768}),
        ("arena_cache_size 393216", "sizes", {393216}),
        ("8 bytes a cycle", "sizes", set()),
        ("320 of 512 KiB", "sizes", {327680, 524288}),
        ("4 KB", "sizes", {4000, 4096}),
        ("int8, 32-bit sums", "widths", {8, 32}),
        ("92 TOPS, 204.8 GMAC/s", "peaks", {46e12, 204.8e9}),
        ("550 cycles of the call and 370 of set-up", "cycles", {550, 370}),
        ("20 pJ a bit, 0.2 pJ per MAC", "energies", {160000, 200}),
        ("section 36, Table 4: two of AXISRAM3 to 6", "times", {2, 4, 6}),
        ("Chen et al., JSSC 52(1), 2017: a mesh of 2048 MACs", "macs", {2048}),
        ("a paper of 2017, revision 3: 12 x 14", "times", {12, 14}),
        ("--set psum_bytes=4 for 32 bits", "widths", set()),
    ],
)
def test_what_is_read_of_a_text(text: str, field: str, values: set[float]) -> None:
    assert sorted({*getattr(said(text), field)}) == pytest.approx(sorted(values))


@pytest.mark.parametrize("name", [name for name in list_machines() if load_machine(name).family])
def test_a_unit_that_is_a_thousandfold_is_told(name: str) -> None:
    """Sizes, bandwidths, clocks and widths of every chip, one after the other."""
    data = json.loads(load_machine(name).model_dump_json())
    places = [
        ("tick_ps",),
        *((key,) for key in data if key.endswith("_bytes") and data[key] and key != "reserved_bytes"),
    ]
    places += [("transfer", "byte_ticks")] if data.get("transfer", {}).get("byte_ticks") else []
    places += [("compute", "cycle_ticks")] if data["compute"]["cycle_ticks"] else []
    places += [("off_chip", k, "bytes") for k, one in enumerate(data.get("off_chip", ())) if one["bytes"]]
    places += [("off_chip", k, "transfer", "byte_ticks") for k in range(len(data.get("off_chip", ())))]
    for *outer, last in places:
        bad = json.loads(json.dumps(data))
        here = bad
        for key in outer:
            here = here[key]
        here[last] *= 1000
        assert faults(Machine.model_validate(bad)), (*outer, last)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["machines", "--check"]) == 0
    assert "every number has a source" in capsys.readouterr().out
    file, copy = tmp_path / "mine.json", tmp_path / "copy.json"
    file.write_text(json.dumps(GOOD | {"sources": {}}))
    copy.write_text(json.dumps(json.loads(load_machine("scratchpad_64k").model_dump_json()) | {"ocm_bytes": 65535}))
    assert main(["machines", "--check", str(file), "nosuch", str(copy)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert f"{file}: ocm_bytes: no source" in lines
    assert any(line.startswith("nosuch: unknown machine") for line in lines)
    assert (
        f"{copy}: name: scratchpad_64k is a bundled machine with other numbers; give this one a name of its own"
        in lines
    )
    assert main(["machines", "--check", "--json", str(copy)]) == 2
    assert list(json.loads(capsys.readouterr().out)) == [str(copy)]
