"""Suites ``fusion``, ``fusion-banks``, ``fusion-depth``, ``fusion-chains``: layers strip by strip, beside others.

Some rows of ``fusion`` are printed only if they are asked for: ``certile bench fusion --only 512x512``.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Reshape
from instances.zoo.chains import CHAINS
from instances.zoo.resnet import REPEATS, resnet
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.bank_sizes import HEADS, NOTE, bank_row
from solver.uses.bench.report import Cell, Report, Suite, Table, timed

_BANK = 4 * 1024
#: Network and KiB.
_NETWORKS = (
    *(("resnet50", kib) for kib in (128, 512, 768)),
    *(("mobilenet_v2", kib) for kib in (128, 512, 768)),
    *(("vgg16_convs", kib) for kib in (128, 512, 768)),
)
#: The same, with larger inputs: only if asked for.
_LARGE = tuple((f"{name}@512x512", kib) for name in ("resnet50", "mobilenet_v2") for kib in (128, 512, 768))
#: Network and KiB of the rows that say what banks cost.
_SIZES = (
    ("squeezenet1_1", 128), ("mobilenet_v2", 64), ("mobilenet_v2", 128), ("resnet50", 128), ("resnet50", 512),
    ("resnet50", 768),
)  # fmt: skip
#: KiB of the rows by depth: nests of single layers need few searches there.
_DEPTH_KIB = 768
#: Engines beside the optimum. `per-layer` is a schedule of problem joint: map after map stays as far as it fits.
_HEURISTICS = {"joint": "per-layer", "cascade": "cascade", "strips": "strips"}
_HEADS = (
    "network", "KiB", *_HEURISTICS, "fused", "bound", "status", "compulsory", "macs_ratio", "groups", "seconds",
    "nest_seconds",
)  # fmt: skip


#: A chain, KiB of memory, and bytes and CPU seconds of AccelForge, its released mapper of fused layers:
#: int8, 1-byte partial sums, 2 cores; measured in November 2026.
_CHAINS = (
    ("convs_3", 512, 471_296, 56),
    ("inverted", 64, 1_056_624, 28),
    ("inverted", 512, 153_456, 27),
    ("bottleneck", 128, 2_020_352, 33),
    ("bottleneck_sum", 128, 2_766_848, 44),
    ("convs_2", 512, 12_690_944, 35),
    ("products", 64, 196_608, 10),
)


def _network(name: str) -> Network:
    """The network of a row: ``vgg16_convs``, ``resnet50@512x512``."""
    if name == "vgg16_convs":
        return convolutions("vgg16")
    known, *size = name.split("@")
    return load_network(known).with_size(*map(int, size[0].split("x"))) if size else load_network(known)


def convolutions(name: str) -> Network:
    """Return a network up to where its maps are flattened for fully connected layers."""
    whole = load_network(name)
    end = next(i for i, operator in enumerate(whole.operators) if isinstance(operator, Reshape))
    return Network(name=f"{name}_convs", description=whole.description, operators=whole.operators[:end])


def _solved(target: Network | str, kib: int, engine: str = "auto", **settings: int) -> Plan:
    shared = {"ocm_bytes": kib * 1024, "ocm_banks": kib * 1024 // _BANK, **settings}
    return solve(target, "scratchpad_768k", problem="fusion", engine=engine, settings=shared)


def _bytes(plan: Plan) -> int | None:
    return plan.measures["bytes"] if plan.measures else None


def _macs(plan: Plan) -> float | None:
    """MACs over those of every layer once."""
    return plan.measures["macs"] / sum(layer.macs for layer in plan.network_data.layers) if plan.measures else None


def _nest_seconds(plan: Plan) -> float:
    return cast(float, plan.part.stats["nest_s"])


def network_row(name: str, kib: int) -> list[Cell]:
    """Bytes of heuristics and of the optimum, what is proven of it, and the seconds of it alone."""
    target = _network(name)
    heuristics = [_bytes(_solved(target, kib, engine)) for engine in _HEURISTICS.values()]
    plan, seconds = timed(lambda: _solved(target, kib))
    said: list[Cell] = [
        _bytes(plan),
        plan.bound,
        plan.status,
        plan.part.must["bytes"],
        _macs(plan),
        len(plan.schedule or ()),
    ]
    return [name, kib, *heuristics, *said, seconds, _nest_seconds(plan)]


def depth_row(depth: int) -> list[Cell]:
    """Layers, seconds and bytes of a ResNet."""
    plan, seconds = timed(lambda: _solved(resnet(depth), _DEPTH_KIB))
    layers, searches = len(plan.network_data.layers), plan.part.stats["searches"]
    said: list[Cell] = [_bytes(plan), plan.bound, plan.status, plan.part.must["bytes"]]
    return [f"resnet{depth}", layers, *said, seconds, _nest_seconds(plan), searches, seconds / layers]


def chain_row(name: str, kib: int, accelforge: int, accelforge_s: int) -> list[Cell]:
    """What a chain moves beside what AccelForge printed."""
    plan, seconds = timed(lambda: _solved(CHAINS[name](), kib, psum_bytes=1))
    ours: list[Cell] = [_bytes(plan), plan.bound, plan.status, plan.part.must["bytes"], _macs(plan), seconds]
    return [name, kib, accelforge, accelforge_s, *ours]


def _rows(report: Report) -> None:
    """The rows under a name of their own, too."""
    (section,) = report.sections
    report.figures = {"rows": section.to_json()["rows"]}


#: Whole networks on a shared scratchpad.
fusion = Suite("fusion", (
    Table(
        "DRAM bytes: int8, banks of 4 KiB, 4-byte partial sums", _HEADS, _NETWORKS, network_row,
        ["joint: every layer by itself, map after map stays as far as it fits (heuristic per-layer; its proven optimum:"
         " certile bench joint).",
         "cascade: groups as long as they fit. strips: the best cuts; maps between groups through DRAM in both.",
         "fused: the optimum of problem fusion, with bound and status; seconds: of it alone, replay included;"
         " nest_seconds: of these, searches of single layers' nests.",
         "compulsory: weights, input and result once. macs_ratio: MACs over those of every layer once."],
        more=_LARGE,
    ),
), _rows)  # fmt: skip
fusion_banks = Suite("fusion-banks", (
    Table(
        "What banks cost: DRAM bytes without, and in banks of 4 and 16 KiB; int8, 4-byte partial sums", HEADS, _SIZES,
        partial(bank_row, "fusion"), [NOTE],
    ),
), _rows)  # fmt: skip
#: How seconds grow with the depth of a network: ResNets of 18 to 152 layers.
fusion_depth = Suite("fusion-depth", (
    Table(
        f"Growth with depth: DRAM bytes, {_DEPTH_KIB} KiB in banks of 4 KiB, int8, 4-byte partial sums",
        ["network", "layers", "fused", "bound", "status", "compulsory", "seconds", "nest_seconds", "searches",
         "seconds a layer"],
        REPEATS, depth_row, label=lambda depth: f"resnet{depth}",
    ),
), _rows)  # fmt: skip
#: Short chains beside the figures of a mapper that fuses layers.
fusion_chains = Suite("fusion-chains", (
    Table(
        "DRAM bytes: int8, banks of 4 KiB, 1-byte partial sums",
        ["chain", "KiB", "accelforge", "accelforge_s", "fused", "bound", "status", "compulsory", "macs_ratio",
         "seconds"],
        _CHAINS, chain_row,
        [*(f"{name}: {build().description}" for name, build in CHAINS.items()),
         "accelforge: its fused mapper as released, with CPU seconds; its sum reads a map of 56x56."],
    ),
), _rows)  # fmt: skip


SUITE = fusion
