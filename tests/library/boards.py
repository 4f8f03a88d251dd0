"""Families on boards, meshes and small engines, of addresses and of variants.

Problems mapping, applications, mesh, partial_engine, placement and selection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from instances.errors import InputError
from instances.library_format import families, family
from instances.network.buffers import Buffer, Buffers, Gap, Memory, load_buffers
from tests.library.case import Case, Cases, named

_BUNDLED = "networks that certile brings, from their public definitions (docs/files.md)"
_BOARDS = "networks that certile brings; boards of heterogeneous_mapping_and_banks 3, times estimated (docs/mapping.md)"
_MINIMALLOC = "google/minimalloc, benchmarks (ASPLOS 2024), Copyright 2023 Google LLC"
_PROFILES = "heterogeneous_mapping_and_banks 3.1 and 3.2, and what docs/selection.md assumes"
_CAPACITY = 1_048_576


# ---- boards ----------------------------------------------------------------------------------------------------------


def _mapping() -> Iterator[Case]:
    def case(name: str, network: str, board: str, objectives: str, *pins: str, tags: tuple[str, ...] = ()) -> Case:
        return Case(name, "mapping", named(network), board, objectives, pins=pins, tags=tags)

    for network in ("lenet5", "squeezenet1_1", "mobilenet_v1", "mobilenet_v2"):
        for cores in ("4", "2,2", "1,1,1,1"):
            short = cores.replace(",", "")
            yield case(f"{network}-{short}-period", network, "galaxy_s9", "period", f"cpu_config={cores}")
    for network in ("squeezenet1_1", "mobilenet_v1", "inception_v3", "densenet40"):
        yield case(f"{network}-22-latency", network, "galaxy_s9", "latency", "cpu_config=2,2")
    for network in ("squeezenet1_1", "mobilenet_v1"):
        yield case(f"{network}-npu-period", network, "hikey970", "period", "cpu_config=2,1,1")
        yield case(f"{network}-npu-energy", network, "hikey970", "energy,period", "cpu_config=2,2")
    yield case("squeezenet1_1-free-period", "squeezenet1_1", "galaxy_s9", "period")
    yield case("inception_v3-1111-period", "inception_v3", "galaxy_s9", "period", "cpu_config=1,1,1,1")
    yield case("densenet121-31-period", "densenet121", "galaxy_s9", "period", "cpu_config=3,1")
    yield case("shufflenet_1x-22-cap50", "shufflenet_1x", "galaxy_s9", "period", "cpu_config=2,2", "cap=50",
               tags=("pins",))  # fmt: skip
    yield case("lenet5-pinned", "lenet5", "galaxy_s9", "energy", "cpu_config=2,2", "c1=gpu", "period<=2000",
               tags=("pins",))  # fmt: skip
    yield case("squeezenet1_1-split-period", "squeezenet1_1", "galaxy_s9", "period", "cpu_config=2,2", "split=on",
               tags=("split",))  # fmt: skip
    yield case("squeezenet1_1-split-latency", "squeezenet1_1", "galaxy_s9", "latency", "cpu_config=2,2", "split=on",
               tags=("split",))  # fmt: skip
    yield case("inception_v3-split-latency", "inception_v3", "galaxy_s9", "latency", "cpu_config=2,2", "split=on",
               tags=("split", "large"))  # fmt: skip
    yield case("infeasible-period", "lenet5", "galaxy_s9", "energy", "cpu_config=2,2", "period<=10",
               tags=("infeasible", "pins"))  # fmt: skip
    yield case("infeasible-latency", "lenet5", "galaxy_s9", "energy", "cpu_config=2,2", "latency<=10",
               tags=("infeasible", "pins"))  # fmt: skip


def _applications() -> Iterator[Case]:
    def case(name: str, asked: str, board: str, objectives: str, *pins: str, tags: tuple[str, ...] = ()) -> Case:
        return Case(name, "applications", {"applications": asked}, board, objectives, pins=pins, tags=tags)

    two, three = "lenet5@5ms,lenet5@8ms/6ms", "squeezenet1_1@33ms,mobilenet_v1@40ms,mobilenet_v2@50ms"
    for cores in ("4", "2,2", "1,1,1,1"):
        yield case(f"two-lenets-{cores.replace(',', '')}", two, "hikey970", "response", f"cpu_config={cores}")
    yield case("two-lenets-energy", two, "hikey970", "energy,response", "cpu_config=2,2")
    yield case("two-lenets-printed", two, "hikey970", "response", "cpu_config=2,2", "analysis=printed")
    yield case("two-lenets-second", two, "hikey970", "response:lenet5#2", "cpu_config=2,2")
    yield case("two-lenets-s9", two, "galaxy_s9", "response", "cpu_config=2,2")
    for objectives in ("response", "energy"):
        yield case(f"three-{objectives}", three, "hikey970", objectives, "cpu_config=1,1,1,1", tags=("large",))
    yield case("squeeze-and-lenet", "lenet5@5ms,squeezenet1_1@60ms", "galaxy_s9", "response", "cpu_config=2,2")
    yield case("two-squeezes", "squeezenet1_1@60ms,squeezenet1_1@90ms", "hikey970", "response", "cpu_config=2,2")
    yield case("infeasible", "lenet5@100us,lenet5@100us", "hikey970", "response", "cpu_config=2,2",
               tags=("infeasible",))  # fmt: skip


# ---- meshes and engines ----------------------------------------------------------------------------------------------


def _mesh() -> Iterator[Case]:
    for layer in ("al_conv2", "al_conv3", "ty_conv8", "in_1x7"):
        for machine in ("vectormesh_128", "vectormesh_512"):
            yield Case(f"{layer}-{machine}", "mesh", named("vectormesh_classic", layer), machine, "dram")
    for machine in ("eyeriss_128", "tpu_128", "eyeriss_512", "tpu_512"):
        yield Case(f"al_conv3-{machine}", "mesh", named("vectormesh_classic", "al_conv3"), machine, "dram")
    yield Case("lenet5-vectormesh_128", "mesh", named("lenet5"), "vectormesh_128", "dram")
    yield Case("lenet5-eyeriss_128-glb-dram", "mesh", named("lenet5"), "eyeriss_128", "glb,dram")
    yield Case("lenet5-tpu_128-time", "mesh", named("lenet5"), "tpu_128", "time")
    one = named("lenet5", "c3")
    tiny: dict[str, str | int] = {
        "mesh.pes": 4, "mesh.banks": 4, "mesh.input_buffer_bytes": 64, "mesh.psum_buffer_bytes": 16,
        "mesh.global_bytes": 64, "mesh.copies": 1,
    }  # fmt: skip
    yield Case("c3-tiny-dram", "mesh", one, "vectormesh_128", "dram", set=dict(tiny), tags=("tiny",))
    yield Case("c3-tiny-time-glb", "mesh", one, "vectormesh_128", "time,glb", set=dict(tiny), tags=("tiny",))
    yield Case("c3-no-sharing", "mesh", one, "vectormesh_128", "dram", pins=("share=none",), tags=("pins",))
    yield Case("c3-pinned", "mesh", one, "vectormesh_128", "dram", pins=("T_M<=2", "share=none"), tags=("pins",))
    none = {**tiny, "mesh.psum_buffer_bytes": 3}
    yield Case("infeasible", "mesh", one, "vectormesh_128", "dram", set=none, tags=("infeasible",))


def _engine() -> Iterator[Case]:
    rows = {
        "mobilenet_v1-conv3": named("mobilenet_v1", "conv3/pw"),
        "mobilenet_v1-conv4": named("mobilenet_v1", "conv4/pw"),
        "mobilenet_v1-conv1": named("mobilenet_v1", "conv1"), "lenet5": named("lenet5"),
        "alexnet": named("alexnet", "conv2", "conv3", "conv4", "conv5"),
        "mobilenet_v1-three": named("mobilenet_v1", "conv2/pw", "conv3/dw", "conv6/pw"),
        "shufflenet_2x-stage3": named("shufflenet_2x", "stage3.0/expand"),
        "fd_mobilenet-conv10": named("fd_mobilenet", "conv10/pw"),
    }  # fmt: skip
    for name, target in rows.items():
        yield Case(f"{name}-16", "partial_engine", target, "partial_cnn_16", "bytes")
    rows["xception-block5"] = named("xception", "block5/sep1/pw")
    for name in ("mobilenet_v1-conv4", "xception-block5"):
        target = rows[name]
        yield Case(f"{name}-32", "partial_engine", target, "partial_cnn_32", "bytes")
    conv4 = rows["mobilenet_v1-conv4"]
    for name, pins in (
        ("one-strip", ("strips=1",)),
        ("no-spills", ("spill=no",)),
        ("few-places", ("in_places=1", "strips=4")),
    ):
        yield Case(f"conv4-{name}", "partial_engine", conv4, "partial_cnn_16", "bytes", pins=pins, tags=("pins",))
    small: dict[str, str | int] = {"engine.bank_bytes": 12288}
    yield Case("conv4-small-banks", "partial_engine", conv4, "partial_cnn_16", "bytes", set=small, tags=("tiny",))
    first, none = rows["mobilenet_v1-conv1"], ("infeasible", "pins")
    yield Case("infeasible", "partial_engine", first, "partial_cnn_16", "bytes", pins=("strips=1",), tags=none)


# ---- addresses -------------------------------------------------------------------------------------------------------


def _challenging() -> Iterator[Case]:
    """The files of CERTILE_MINIMALLOC; without, what the library has of them."""
    folder = os.environ.get("CERTILE_MINIMALLOC")
    found: dict[str, Buffers] = {}
    if folder:
        for path in sorted(Path(folder).glob("?.1048576.csv")):
            memories = (Memory(name="ocm", bytes=_CAPACITY),)
            found[path.name[0]] = load_buffers(path).model_copy(
                update={"name": f"minimalloc_{path.name[0]}", "memories": memories}
            )
    elif "placement-minimalloc" in families():
        found = {
            one.name[-1]: one.target.buffers for one in family("placement-minimalloc").instances if one.target.buffers
        }
    if not found:
        raise InputError("family placement-minimalloc: CERTILE_MINIMALLOC names no folder of benchmarks/challenging")
    for letter, buffers in found.items():
        yield Case(letter, "placement", {"buffers": buffers}, "scratchpad_768k", "bytes",
                   engines=(("search", 30), ("cp-sat", 3)))  # fmt: skip


def _buffers(name: str, rows: tuple[tuple[int, ...], ...], room: int, **more: Any) -> dict[str, Any]:
    """Buffers (begin, end, bytes) in one memory."""
    made = tuple(Buffer(name=f"b{n}", lower=a, upper=b, size=size) for n, (a, b, size) in enumerate(rows))
    fields = {"memories": (Memory(name="sram", bytes=room),), **more}
    return {"buffers": Buffers(name=name, buffers=made, **fields)}


def _placement() -> Iterator[Case]:
    from solver.uses.bench.placement import hard  # late: suites import every solver

    for number in (20, 40, 80, 120):
        target = hard(number).model_copy(update={"memories": (Memory(name="ocm", bytes=65536),)})
        yield Case(f"cut-in-{number}", "placement", {"buffers": target}, "scratchpad_768k", "peak", tags=("no-spare",))
    readme = _buffers("readme", ((0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4)), 12)
    yield Case("minimalloc-readme", "placement", readme, "scratchpad_768k", "peak", note="The example of MiniMalloc.")
    load = ((0, 2, 3), (1, 4, 2), (3, 6, 3), (5, 7, 2), (0, 7, 1), (2, 5, 1), (4, 7, 1))
    yield Case("above-load", "placement", _buffers("above", load, 20), "scratchpad_768k", "peak", tags=("tiny",))
    ties = tuple((n % 5, n % 5 + 3, 4) for n in range(20))
    yield Case("ties", "placement", _buffers("ties", ties, 200), "scratchpad_768k", "peak", tags=("ties",))
    few = (
        Buffer(name="b0", lower=0, upper=3, size=4), Buffer(name="b1", lower=1, upper=4, size=6, spill=9),
        Buffer(name="b2", lower=2, upper=5, size=5, spill=20), Buffer(name="b3", lower=2, upper=3, size=7),
        Buffer(name="b4", lower=3, upper=6, size=4, spill=8), Buffer(name="b5", lower=4, upper=6, size=8),
    )  # fmt: skip
    two = (Memory(name="fast", bytes=12), Memory(name="slow", bytes=8))
    spilled, leave = {"buffers": Buffers(name="few", buffers=few, memories=two)}, ("spill=yes", "cap<=8")
    yield Case("two-memories", "placement", spilled, "scratchpad_24k", "bytes,peak", tags=("tiny",))
    yield Case("all-may-leave", "placement", spilled, "scratchpad_24k", "bytes,peak", pins=leave, tags=("pins", "tiny"))
    none = ("infeasible", "pins")
    yield Case("infeasible-no-spills", "placement", spilled, "scratchpad_24k", "bytes", pins=("spill=no",), tags=none)
    aligned = tuple(
        Buffer(name=f"a{n}", lower=n, upper=n + 4, size=24 + 8 * (n % 3), alignment=16 if n % 2 else 32)
        for n in range(14)
    )
    pairs = tuple((f"a{n}", f"a{n + 1}") for n in range(0, 13, 3))
    banked = (Memory(name="banked", bytes=512, bank_bytes=64),)
    mixed = {"buffers": Buffers(name="aligned", buffers=aligned, memories=banked, conflicts=pairs)}
    yield Case("aligned-in-banks", "placement", mixed, "scratchpad_768k", "peak", tags=("banks",))
    holed = (
        Buffer(name="w", lower=0, upper=10, size=64, gaps=(Gap(lower=2, upper=8),)),
        Buffer(name="x", lower=2, upper=8, size=48), Buffer(name="y", lower=3, upper=7, size=16),
        Buffer(name="z", lower=0, upper=10, size=8, offset=64),
    )  # fmt: skip
    gaps = {"buffers": Buffers(name="gaps", buffers=holed, memories=(Memory(name="sram", bytes=80),))}
    yield Case("gaps", "placement", gaps, "scratchpad_768k", "peak", tags=("gaps", "tiny"))
    over = _buffers("over", ((0, 4, 10), (1, 5, 10), (2, 6, 10)), 29)
    yield Case("infeasible-load", "placement", over, "scratchpad_768k", "peak", tags=("infeasible",))
    tight = _buffers("tight", load, 9)
    yield Case("tight", "placement", tight, "scratchpad_768k", "bytes", tags=("tiny",))


# ---- variants --------------------------------------------------------------------------------------------------------


def _selection() -> Iterator[Case]:
    def case(name: str, profile: str, objectives: str, *pins: str, tags: tuple[str, ...] = ()) -> Case:
        machine = "srp" if profile == "darknet_srp" else "jetson_tx2"
        return Case(name, "selection", {"variants": profile}, machine, objectives, pins=pins, tags=tags)

    tiny = "tiny_yolo_tx2"
    for objectives in ("period", "time", "energy", "score", "error,period", "memory,time"):
        yield case(f"tiny-{objectives.replace(',', '-')}", tiny, objectives)
    yield case("tiny-default-clocks", tiny, "period", "frequency=default", tags=("pins",))
    yield case("tiny-accurate", tiny, "energy", "accuracy>=0.313", "seconds<=600", tags=("pins",))
    yield case("tiny-excluded", tiny, "energy,error", "seconds<=500", "conv8!=f16", "frequency!=default",
               tags=("pins",))  # fmt: skip
    yield case("tiny-infeasible", tiny, "period", "seconds<=300", "accuracy>=0.3", tags=("infeasible", "pins"))
    for profile in ("yolov2_tx2", "darknet19_tx2", "densenet201_tx2", "darknet_srp", "lpirc_models"):
        yield case(f"{profile.removesuffix('_tx2')}-period", profile, "period")
    yield case("lpirc-score", "lpirc_models", "score")
    for network in ("lenet5", "squeezenet1_1", "mobilenet_v1"):
        yield Case(f"{network}-board-period", "selection", named(network), "galaxy_s9", "period",
                   pins=("cpu_config=4",))  # fmt: skip
    yield Case("squeezenet1_1-board-energy", "selection", named("squeezenet1_1"), "galaxy_s9", "energy",
               pins=("cpu_config=2,2",))  # fmt: skip


BOARDS = (
    Cases("mapping-boards", "tasks of networks on cores, GPU and NPU: period, latency, energy", _BOARDS, _mapping),
    Cases("applications-boards", "several networks with periods on one board", _BOARDS, _applications),
    Cases("mesh-arrays", "layers on meshes of tile units and on arrays", "VectorMesh paper's layers, LeNet-5", _mesh),
    Cases("engine-partial", "runs of layers on an engine of 16 and 32 maps", _BUNDLED, _engine),
    Cases("placement-minimalloc", "the challenging instances of MiniMalloc, in 1 MiB", _MINIMALLOC, _challenging),
    Cases("placement-corners", "addresses: no byte to spare, banks, gaps", "by hand, or cut at random", _placement),
    Cases("selection-profiles", "variants of layers: profiles, networks on a board", _PROFILES, _selection),
)  # fmt: skip
