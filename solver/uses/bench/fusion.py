"""Suites ``fusion``, ``fusion-banks``, ``fusion-depth``, ``fusion-chains``: layers strip by strip, beside others.

Some rows of ``fusion`` are printed only if they are asked for: ``certile bench fusion --only 512x512``.
"""

from __future__ import annotations

from functools import partial

from instances.load import load_network
from instances.network.network import Network
from instances.network.operators import Reshape
from instances.zoo.chains import CHAINS
from instances.zoo.deep import REPEATS, resnet
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.bench.report import Cell, Report, Suite, Table, timed, value_of

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


def network_of(name: str) -> Network:
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
    return solve(target, "scratchpad_768k", problem="fusion", objective="bytes", engine=engine, settings=shared)


def _known(plan: Plan) -> list[Cell]:
    """What a fused plan moves, what is proven of it, and what is compulsory."""
    return [value_of(plan), plan.bound, plan.status, plan.part.must["bytes"]]


def _macs(plan: Plan) -> float | None:
    """MACs over those of every layer once."""
    return plan.measures["macs"] / sum(layer.macs for layer in plan.network_data.layers) if plan.measures else None


def network_row(name: str, kib: int) -> list[Cell]:
    """Bytes of heuristics and of the optimum, what is proven of it, and the seconds of it alone."""
    target = network_of(name)
    heuristics = [value_of(_solved(target, kib, engine)) for engine in _HEURISTICS.values()]
    plan, seconds = timed(lambda: _solved(target, kib))
    groups = len(plan.schedule or ())
    return [name, kib, *heuristics, *_known(plan), _macs(plan), groups, seconds, plan.part.stats["nest_s"]]


def depth_row(depth: int) -> list[Cell]:
    """Layers, seconds and bytes of a ResNet."""
    plan, seconds = timed(lambda: _solved(resnet(depth), _DEPTH_KIB))
    layers, stats = len(plan.network_data.layers), plan.part.stats
    return [f"resnet{depth}", layers, *_known(plan), seconds, stats["nest_s"], stats["searches"], seconds / layers]


def chain_row(name: str, kib: int, accelforge: int, accelforge_s: int) -> list[Cell]:
    """What a chain moves beside what AccelForge printed."""
    plan, seconds = timed(lambda: _solved(CHAINS[name](), kib, psum_bytes=1))
    return [name, kib, accelforge, accelforge_s, *_known(plan), _macs(plan), seconds]


# ---- what banks cost: the optimum of a problem in bytes, beside those of the same memory in banks --------------------

#: KiB of a bank; 0: none.
SIZES_KIB = (0, 4, 16)
HEADS = (
    "network", "KiB", "bytes", "gap", "s",
    *(head.format(kib) for kib in SIZES_KIB[1:] for head in ("in banks of {} KiB", "gap {}", "s {}")),
    *(f"cost of {kib} KiB %" for kib in SIZES_KIB[1:]),
)  # fmt: skip
NOTE = (
    "cost: what more moves in banks than in bytes, of the latter. No plan in banks is better than the optimum in bytes:"
    " this is checked."
)


def bank_row(problem: str, network: str, kib: int) -> list[Cell]:
    """Return bytes, gap and seconds for every size of banks, and what banks cost.

    Raises RuntimeError if a plan in banks is below the proven bound in bytes: a defect of certile.
    """
    row, plans = list[Cell](), list[Plan]()
    for bank in SIZES_KIB:
        settings = {"ocm_bytes": kib * 1024, "ocm_banks": kib // bank if bank else 0}
        plan, seconds = timed(partial(solve, network, "scratchpad_768k", problem=problem, settings=settings))
        row += [value_of(plan), plan.gap, seconds]
        plans.append(plan)
    least, bound = value_of(plans[0]), plans[0].bound
    costs: list[Cell] = []
    for plan in plans[1:]:
        value = value_of(plan)
        if value is not None and bound is not None and value < bound:
            raise RuntimeError(f"{network}, {kib} KiB: {value} bytes in banks, at least {bound} without")
        costs.append(None if value is None or not least else 100 * (value / least - 1))
    return [network, kib, *row, *costs]


# ---- suites ----------------------------------------------------------------------------------------------------------


def _rows(report: Report) -> None:
    """The rows under a name of their own, too."""
    (section,) = report.sections
    report.figures = {"rows": section.to_json()["rows"]}


#: Whole networks on a shared scratchpad.
SUITE = Suite("fusion", (
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
