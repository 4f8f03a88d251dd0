"""Layers with one known bottleneck each: what `why` has to name (tests/solver/test_why.py).

By hand unless said otherwise: the cause, what was relaxed to show it, and the value without it.
"""

from __future__ import annotations

from dataclasses import dataclass

from instances.machine.machine import Machine, Transfer
from instances.network.workload import Layer
from solver.plan.why import Cause
from tests.small import TINY, machine


@dataclass(frozen=True)
class Case:
    """A layer, a machine, and what is true of its plan."""

    name: str
    cause: Cause
    layer: Layer
    machine: Machine
    objective: str = "bytes"
    pins: tuple[str, ...] = ()
    engine: str = "auto"
    relaxed: str = ""
    """The name of what binds; empty: not said."""
    without: int | None = None
    """The value without it, where it is known by hand."""
    value: int | None = None
    """The plan's own, where it is known by hand."""
    said: str = ""
    """A part of the headline."""
    limit_s: float = 120
    """For solving again: less where nothing is proven anyway."""


def array(rows: int, cols: int, ticks: int = 1, **fields: object) -> Machine:
    """A machine with a MAC array."""
    compute = {"model": "array", "rows": rows, "cols": cols, "cycle_ticks": ticks}
    return machine(**{"compute": compute, "ocm_bytes": 1 << 20, **fields})


FLAT = Layer.conv("flat", channels=2, filters=2, size=(4, 4))  # 32 + 4 + 32 bytes, 64 MACs
EIGHT = Layer.matmul("eight", rows=8, inner=8, cols=8)  # 64 + 64 + 64 bytes, 512 MACs
SQUARE = Layer.matmul("square", rows=16, inner=16, cols=16)  # 256 each, 4,096 MACs
DEEP = Layer.conv("deep", channels=32, filters=32, size=(8, 8))  # 2,048 + 1,024 + 2,048 bytes, 65,536 MACs
SEVENTEEN = Layer.conv("seventeen", channels=17, filters=16, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1))
DEPTH = Layer.conv("depth", channels=16, filters=16, size=(8, 8), kernel=(3, 3), pad=(1, 1, 1, 1), groups=16)
THREE = Layer.conv("three", channels=3, filters=16, size=(4, 4), kernel=(3, 3), pad=(1, 1, 1, 1))
POOL = Layer(
    name="pool", kind="pool", m=1, n=1, g=4, r=4, c=4, kh=2, kw=2, stride_h=2, stride_w=2, h=8, l=8, weights="none"
)
ONE_BY_ONE = ("holds=uniform", "T_R=1", "T_M=1", "T_N=1")
#: 32 rows of 32 pixels: in 350 bytes are 10 rows of a window, so 8 rows of results at a time.
HALO = Layer.conv("halo", channels=1, filters=1, size=(32, 32), kernel=(3, 3), pad=(1, 1, 1, 1))


def paid(**prices: int) -> Transfer:
    """Prices of a transfer."""
    return Transfer(**{"byte_ticks": 1, **prices})


#: A pixel is 4 bytes in, 4 bytes out, and a cycle of 4 x 4 lanes: if a cycle takes as long as 4 bytes, all are alike.
STREAM = Layer.conv("stream", channels=4, filters=4, size=(128, 1))

CASES = (
    # each element once, memory for all of it
    Case("all fits", "compulsory", FLAT, machine(), value=68, said="compulsory traffic"),
    Case("all of a padded layer fits", "compulsory", TINY, machine(), value=32 + 54 + 48),
    Case("a pool reads all once", "compulsory", POOL, machine(ocm_bytes=16), value=256 + 64),
    Case("a product in just enough", "compulsory", EIGHT, machine(psum_bytes=1, ocm_bytes=81), value=192),
    # one memory too small: without limit every tensor once
    Case("a product in 16 bytes", "memory", EIGHT, machine(psum_bytes=1, ocm_bytes=16), relaxed="ocm_bytes",
         without=192, said="ocm_bytes too small"),
    Case("a larger product in 64 bytes", "memory", SQUARE, machine(ocm_bytes=64), relaxed="ocm_bytes", without=768),
    # 8 columns of IN and 8 rows of sums pass W by: only all of W spares the others
    Case("a buffer of one weight", "memory", EIGHT,
         machine(in_buffer_bytes=8, w_buffer_bytes=1, out_buffer_bytes=8, psum_bytes=1), without=192),
    Case("time in little memory", "memory", SQUARE, machine(ocm_bytes=64), objective="time", relaxed="ocm_bytes",
         without=768),
    Case("a kernel's window in little memory", "memory", THREE, machine(ocm_bytes=40), relaxed="ocm_bytes",
         without=48 + 432 + 256),
    # a pin that costs, in plenty of memory
    Case("rows one by one", "pin", FLAT, machine(transfer=paid(call_ticks=100)), objective="time", pins=("T_R=1",),
         relaxed="T_R=1", without=68 + 300),
    # 16 of 32 channels at a time: 128 cycles instead of 64
    Case("half of the lanes", "pin", DEEP, array(32, 32, 1000), objective="time", pins=("T_N<=16",), relaxed="T_N<=16",
         without=5120 + 1000 * 64),
    Case("one by one, all inside", "pin", EIGHT, machine(), pins=("holds=uniform", "T_R=1", "T_M=1"), without=192),
    # the array has lanes, the layer has none for them
    Case("17 of 32 columns", "array", SEVENTEEN, array(16, 32, 100), objective="time", said="17 of 32 columns"),
    Case("one channel a group", "array", DEPTH, array(32, 16, 100), objective="time",
         relaxed="compute.rows x compute.cols"),
    Case("an image's 3 channels", "array", THREE, array(16, 64, 100), objective="time", said="3 of 64 columns"),
    # prices
    Case("dear bytes", "bandwidth", DEEP, array(32, 32, transfer=paid(byte_ticks=10)), objective="time",
         relaxed="transfer.byte_ticks", value=51200 + 64, without=64),
    Case("dear bytes, no computing", "bandwidth", FLAT, machine(transfer=paid(byte_ticks=7)), objective="time",
         value=68 * 7, without=0),
    Case("dear bytes beside computing", "bandwidth", STREAM,
         array(4, 4, buffering="double", ocm_bytes=64, psum_bytes=1, transfer=paid(byte_ticks=9)),
         objective="time", limit_s=20),
    Case("dear calls", "startup", FLAT, machine(transfer=paid(call_ticks=10_000)), objective="time",
         value=30_000 + 68, without=68, said="start-up of 3 calls"),
    Case("dear calls of a pool", "startup", POOL, machine(transfer=paid(call_ticks=10_000)), objective="time",
         value=20_000 + 320, without=320, said="start-up of 2 calls"),
    Case("dear runs", "runs", FLAT, machine(transfer=paid(segment_ticks=10_000)), objective="time",
         value=30_000 + 68, without=68, said="3 runs"),
    Case("dear runs of a product", "runs", EIGHT, machine(transfer=paid(segment_ticks=5_000)), objective="time",
         value=15_000 + 192, without=192),
    # 68 bytes in windows of 16: 2 + 1 + 2
    Case("dear bursts", "bursts", FLAT, machine(transfer=paid(burst_ticks=1000, burst_bytes=16)), objective="time",
         value=5_000 + 68, without=68, said="5 bursts"),
    Case("dear bursts of a product", "bursts", EIGHT, machine(transfer=paid(burst_ticks=1000, burst_bytes=64)),
         objective="time", value=3_000 + 192, without=192),
    # 8 * 8 places, 32 x 32 channels in 32 x 32 lanes: 64 cycles
    Case("slow lanes, all busy", "compute", DEEP, array(32, 32, 10_000), objective="time", without=5120,
         value=640_000 + 5120, relaxed="compute.cycle_ticks"),
    Case("a small array, all busy", "compute", DEEP, array(8, 8, 100), objective="time", without=5120,
         value=100 * 16 * 64 + 5120),
    Case("MACs of tiles", "compute", EIGHT, machine(
        compute={"model": "tile", "macs_per_cycle": 8, "cycle_ticks": 1000}), objective="time", without=192,
         value=64_000 + 192),
    Case("a slow start of layers", "layer", FLAT, machine(layer_ticks=10_000), objective="time", value=10_068,
         without=68, relaxed="layer_ticks"),
    Case("a slow start of pools", "layer", POOL, machine(layer_ticks=1_000), objective="time", value=1_320,
         without=320),
    # energy
    Case("dear MACs", "arithmetic", FLAT, machine(mac_fj=1000, byte_fj=1), objective="energy", value=64_068,
         without=68),
    Case("dear MACs of a product", "arithmetic", EIGHT, machine(mac_fj=100, byte_fj=10), objective="energy",
         value=51_200 + 1_920, without=1_920),
    Case("dear bytes", "traffic", FLAT, machine(mac_fj=1, byte_fj=1000), objective="energy", value=68_064, without=64),
    Case("dear bytes of a product", "traffic", EIGHT, machine(mac_fj=1, byte_fj=100), objective="energy",
         value=19_200 + 512, without=512),
    # a little more than each element once: docs/why.md says where the line is
    Case("a halo", "traffic", HALO, machine(ocm_bytes=350), said="mostly compulsory"),
    # overlap
    Case("loads as long as computing", "balanced", STREAM,
         array(4, 4, 4, buffering="double", ocm_bytes=64, psum_bytes=1, transfer=paid(byte_ticks=1)),
         objective="time", limit_s=20),
    Case("loads as long as computing, twice", "balanced", STREAM,
         array(4, 4, 8, buffering="double", ocm_bytes=64, psum_bytes=1, transfer=paid(byte_ticks=2)),
         objective="time", limit_s=20),
    # plans of heuristics
    Case("a naive plan", "engine", SQUARE, machine(ocm_bytes=200), engine="naive"),
    Case("a naive plan of a window", "engine", THREE, machine(ocm_bytes=256), engine="naive"),
    # 8 bytes of tiles by pins, and no more memory for other tiles either
    Case("pins and memory", "together", EIGHT, machine(psum_bytes=1, ocm_bytes=3), pins=ONE_BY_ONE, without=192),
    Case("pins and memory of a conv", "together", FLAT, machine(psum_bytes=1, ocm_bytes=3),
         pins=(*ONE_BY_ONE, "T_C=1"), without=68),
    # no plan
    Case("no room for a tile", "infeasible", FLAT, machine(ocm_bytes=2), said="memory ocm"),
    Case("no room for a pinned tile", "infeasible", EIGHT, machine(ocm_bytes=20), pins=("T_R=8", "holds=uniform"),
         said="T_R=8"),
)  # fmt: skip
