"""Families of whole networks in memory: problems banks, hybrid, joint and fusion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instances.zoo.chains import CHAINS, chain, skip
from tests.library.case import Case, Cases, inline, named

_BUNDLED = "networks that certile brings, from their public definitions (docs/files.md)"
_MIDAP = "networks that certile brings; machine and tables of heterogeneous_mapping_and_banks 4"
_KIB = 1024
_BANK = 4 * _KIB


# ---- banks -----------------------------------------------------------------------------------------------------------


def _banks() -> Iterator[Case]:
    for name in ("lenet5", "squeezenet1_1", "mobilenet_v1", "mobilenet_v2", "resnet50", "squeezenet1_0"):
        for objectives in ("bytes", "time"):
            yield Case(f"{name}-{objectives}", "banks", named(name), "midap", objectives)
    yield Case("inception_v3-bytes", "banks", named("inception_v3"), "midap", "bytes")
    yield Case("wide_resnet50_2-bytes", "banks", named("wide_resnet50_2"), "midap", "bytes")
    alone = (("dynamic", 20),)
    yield Case("inception_v3-time", "banks", named("inception_v3"), "midap", "time", engines=alone, tags=("large",))
    yield Case("resnet50-8-banks", "banks", named("resnet50"), "midap", "bytes", set={"banks.count": 8})
    yield Case("resnet50-waiting", "banks", named("resnet50"), "midap", "bytes", set={"banks.residuals": "chip"})
    small = {"banks.map_bytes": 8192}
    yield Case("lenet5-8k-bytes", "banks", named("lenet5"), "midap", "bytes", set=dict(small), tags=("tiny",))
    yield Case("lenet5-8k-bytes-time", "banks", named("lenet5"), "midap", "bytes,time", set=dict(small), tags=("tiny",))
    yield Case("lenet5-plain", "banks", named("lenet5"), "midap", "bytes", pins=("first_layer=plain",), tags=("pins",))
    yield Case(
        "infeasible", "banks", named("lenet5"), "midap", "bytes", set={"banks.count": 2, "banks.map_bytes": 4096},
        tags=("infeasible",),
    )  # fmt: skip


def _blocks() -> Iterator[Case]:
    """Table 4.2: five blocks of Inception v3."""
    from solver.uses.bench.banks import block  # late: suites import every solver

    for letter in "ABCDE":
        yield Case(f"block-{letter}", "banks", inline(block(letter)), "midap", "bytes", tags=("table-4.2",))


# ---- hybrid ----------------------------------------------------------------------------------------------------------


def _hybrid() -> Iterator[Case]:
    few = {"banks.count": 3, "banks.map_bytes": 12288, "banks.patch_channels": 0}
    pair = inline(chain(16, 16, size=32, channels=16))
    for objectives in ("bytes", "time"):
        yield Case(f"lenet5-{objectives}", "hybrid", named("lenet5"), "midap", objectives)
        yield Case(f"squeezenet1_1-{objectives}", "hybrid", named("squeezenet1_1"), "midap", objectives)
        yield Case(f"chain-{objectives}", "hybrid", pair, "midap", objectives, set=dict(few), pins=("pieces<=4",),
                   tags=("pins", "tiny"))  # fmt: skip
    yield Case("chain-pinned", "hybrid", pair, "midap", "bytes", set=dict(few), pins=("pieces=2", "rows=no"),
               tags=("pins", "tiny"))  # fmt: skip
    yield Case("mobilenet_v2-bytes", "hybrid", named("mobilenet_v2"), "midap", "bytes")
    yield Case("resnet50-bytes", "hybrid", named("resnet50"), "midap", "bytes")
    yield Case("resnet50-512-bytes", "hybrid", named("resnet50", size=(512, 512)), "midap", "bytes", tags=("large",))
    yield Case("lenet5-length-2", "hybrid", named("lenet5"), "midap", "bytes", pins=("length<=2",), tags=("pins",))
    yield Case("infeasible", "hybrid", named("lenet5"), "midap", "bytes",
               set={"banks.count": 2, "banks.map_bytes": 64}, tags=("infeasible",))  # fmt: skip


# ---- joint -----------------------------------------------------------------------------------------------------------


def _shared(kib: int, bank: int = 16 * _KIB) -> dict[str, str | int]:
    """So much memory in banks; none: bytes."""
    return {"ocm_bytes": kib * _KIB, "ocm_banks": kib * _KIB // bank if bank else 0}


def _joint() -> Iterator[Case]:
    def case(name: str, target: dict[str, Any], fields: dict[str, str | int], objectives: str = "bytes",
             pins: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> Case:  # fmt: skip
        return Case(name, "joint", target, "scratchpad_768k", objectives, set=fields, pins=pins, tags=tags)

    for name, kib in (("squeezenet1_1", 768), ("squeezenet1_1", 128), ("mobilenet_v2", 768), ("resnet50", 768),
                      ("lenet5", 64), ("mobilenet_v1_025", 128)):  # fmt: skip
        yield case(f"{name}-{kib}k", named(name), _shared(kib))
    for name, kib in (("squeezenet1_1", 512), ("mobilenet_v1_025", 64)):
        yield case(f"{name}-{kib}k-bytes-not-banks", named(name), _shared(kib, 0))
    tiny: dict[str, str | int] = {"ocm_bytes": 128, "ocm_banks": 4, "psum_bytes": 1}
    flat, summed = inline(chain(4, 2, size=4, taps=1)), inline(skip(4, 4))
    yield case("flat", flat, dict(tiny), tags=("tiny",))
    yield case("flat-energy", flat, dict(tiny), "energy,bytes", tags=("tiny",))
    yield case("skip", summed, dict(tiny), tags=("tiny",))
    yield case("flat-pinned", flat, dict(tiny), pins=("holds=uniform", "T_M<=1"), tags=("tiny", "pins"))
    pads = inline(chain(1, 1, size=5, channels=1))
    yield case("two-pads", pads, {"ocm_bytes": 19, "ocm_banks": 1}, tags=("tiny", "uneven", "once-wrong"))
    yield case(
        "skip-8x8-odd-banks", inline(skip(7, 9)), {"ocm_bytes": 330, "ocm_banks": 11, "psum_bytes": 1}, tags=("prime",)
    )
    yield case("infeasible", flat, {"ocm_bytes": 2, "ocm_banks": 2}, tags=("infeasible",))


# ---- fusion ----------------------------------------------------------------------------------------------------------


def _fusion() -> Iterator[Case]:
    for name, kib in (
        ("resnet50", 128), ("resnet50", 512), ("resnet50", 768), ("mobilenet_v2", 128), ("mobilenet_v2", 768),
        ("squeezenet1_1", 64), ("squeezenet1_1", 128), ("squeezenet1_1", 512), ("mobilenet_v1", 128),
        ("mobilenet_v1_025", 32), ("lenet5", 16), ("lenet5", 64),
    ):  # fmt: skip
        yield Case(f"{name}-{kib}k", "fusion", named(name), "scratchpad_768k", "bytes", set=_shared(kib, _BANK))
    yield Case("mobilenet_v2-128k-bytes-not-banks", "fusion", named("mobilenet_v2"), "scratchpad_768k", "bytes",
               set=_shared(128, 0))  # fmt: skip
    yield Case(
        "squeezenet1_0-128k", "fusion", named("squeezenet1_0"), "scratchpad_768k", "bytes", set=_shared(128, _BANK)
    )


def _fusion_chains() -> Iterator[Case]:
    def case(name: str, target: dict[str, Any], fields: dict[str, str | int], objectives: str = "bytes",
             pins: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> Case:  # fmt: skip
        return Case(name, "fusion", target, "scratchpad_768k", objectives, set=fields, pins=pins, tags=tags)

    for name, kib in (("convs_3", 512), ("inverted", 64), ("inverted", 512), ("bottleneck", 128),
                      ("bottleneck_sum", 128), ("convs_2", 512), ("products", 64)):  # fmt: skip
        yield case(f"{name}-{kib}k", inline(CHAINS[name]()), {**_shared(kib, _BANK), "psum_bytes": 1})
    tiny: dict[str, str | int] = {"ocm_bytes": 128, "ocm_banks": 4, "psum_bytes": 1}
    flat, summed, halo = inline(chain(4, 2, size=4, taps=1)), inline(skip(4, 4)), inline(chain(4, 4, size=8))
    yield case("flat", flat, dict(tiny), tags=("tiny",))
    yield case("skip", summed, dict(tiny), tags=("tiny",))
    yield case("skip-energy", summed, dict(tiny), "energy,bytes", tags=("tiny",))
    kept: dict[str, str | int] = {"ocm_bytes": 448, "ocm_banks": 28, "psum_bytes": 1}
    yield case("halo-kept", halo, dict(kept), pins=("fuse=c0..c1", "strip=2"), tags=("tiny", "pins"))
    again = ("fuse=c0..c1", "strip=2", "recompute=any")
    yield case("halo-again", halo, dict(kept), pins=again, tags=("tiny", "pins", "recompute"))
    yield case("halo-bytes-not-banks", halo, {"ocm_bytes": 500, "ocm_banks": 0, "psum_bytes": 1}, tags=("tiny",))
    primes = inline(chain(5, 7, 3, size=13, channels=3))
    yield case("primes", primes, {"ocm_bytes": 600, "ocm_banks": 12, "psum_bytes": 1}, tags=("prime",))
    yield case("primes-cut", primes, {"ocm_bytes": 600, "ocm_banks": 12, "psum_bytes": 1}, pins=("cut=c1",),
               tags=("prime", "pins"))  # fmt: skip
    yield case("infeasible", summed, {"ocm_bytes": 2, "ocm_banks": 2}, tags=("infeasible",))


NETWORKS = (
    Cases("banks-midap", "feature maps of networks in the banks of MIDAP: bytes, time", _MIDAP, _banks),
    Cases("banks-inception", "five blocks of Inception v3 (Table 4.2)", _MIDAP, _blocks),
    Cases("hybrid-midap", "fusion in the banks of MIDAP", _MIDAP, _hybrid),
    Cases("joint-scratchpad", "tile plans and what stays on chip, decided together", _BUNDLED, _joint),
    Cases("fusion-networks", "networks fused strip by strip, 16 to 768 KiB", _BUNDLED, _fusion),
    Cases("fusion-chains", "short chains: those that mappers that fuse layers were measured on, and corners",
          "chains by certile; sizes of ResNet, MobileNetV2, VGG", _fusion_chains),
)  # fmt: skip
