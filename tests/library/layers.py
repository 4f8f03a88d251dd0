"""Families of single layers: problems tiling and slicing."""

from __future__ import annotations

from collections.abc import Iterator

from instances.network.workload import Layer
from tests.library.case import Case, Cases, alone, layer_of

_BUNDLED = "networks that certile brings, from their public definitions (docs/files.md)"
_KIB = 1024


def _peers() -> Iterator[Case]:
    for kib in (24, 64, 128):
        for name in "abcde":
            yield Case(f"{name}-{kib}k-bytes", "tiling", layer_of("peer_layers", name), f"scratchpad_{kib}k", "bytes")
    for name in "abcde":
        yield Case(f"{name}-64k-time", "tiling", layer_of("peer_layers", name), "scratchpad_64k", "time")


def _resnet50() -> Iterator[Case]:
    layers = {
        "conv1": "conv1", "l1-3x3": "layer1.0.conv2", "l2-3x3s2": "layer2.0.conv2", "l3-1x1": "layer3.0.conv1",
        "l4-3x3": "layer4.0.conv2", "fc": "fc",
    }  # fmt: skip
    for name, layer in layers.items():
        yield Case(f"{name}-24k-bytes", "tiling", layer_of("resnet50", layer), "scratchpad_24k", "bytes")
        yield Case(f"{name}-64k-time-bytes", "tiling", layer_of("resnet50", layer), "scratchpad_64k", "time,bytes")


def _inception() -> Iterator[Case]:
    known = "Uneven pieces of rows: with equal steps alone 751,584 bytes were called optimal; FINDINGS of version 0.1."
    yield Case(
        "5b-3x3dbl-24k-bytes", "tiling", layer_of("inception_v3", "Mixed_5b/branch3x3dbl_3"), "scratchpad_24k", "bytes",
        tags=("uneven", "once-wrong"), note=known,
    )  # fmt: skip
    rows = {
        "4a-3x3": "Conv2d_4a_3x3", "2b-3x3": "Conv2d_2b_3x3", "5b-5x5": "Mixed_5b/branch5x5_2",
        "6b-1x7": "Mixed_6b/branch7x7_2", "6b-7x1": "Mixed_6b/branch7x7_3", "7b-1x3": "Mixed_7b/branch3x3_2a",
    }  # fmt: skip
    for name, layer in rows.items():
        yield Case(f"{name}-24k-bytes", "tiling", layer_of("inception_v3", layer), "scratchpad_24k", "bytes")
    yield Case("4a-3x3-64k-energy", "tiling", layer_of("inception_v3", "Conv2d_4a_3x3"), "scratchpad_64k", "energy")


def _conv(name: str, **sizes: int) -> Layer:
    """A layer of any sizes; input rows and columns as the last window needs, without padding below."""
    fields = {"m": 1, "n": 1, "r": 1, "c": 1, **sizes}
    for out, kernel, stride, dilation, pad, size in (
        ("r", "kh", "stride_h", "dilation_h", "pad_top", "h"), ("c", "kw", "stride_w", "dilation_w", "pad_left", "l"),
    ):  # fmt: skip
        reach = (fields.get(kernel, 1) - 1) * fields.get(dilation, 1) + 1
        need = (fields[out] - 1) * fields.get(stride, 1) + reach - 2 * fields.get(pad, 0)
        fields.setdefault(size, max(1, need))
    return Layer.model_validate({"name": name, **fields})


def _three(name: str, size: int, m: int, n: int, **more: int) -> Layer:
    """A 3x3 convolution with padding 1."""
    return _conv(name, m=m, n=n, r=size, c=size, kh=3, kw=3, pad_top=1, pad_left=1, **more)


def _corners() -> Iterator[Case]:
    """Small layers where the shape of an optimum is surprising; most of them have been answered wrongly by somebody."""
    wrong = ("once-wrong",)

    def corner(
        name: str, layer: Layer, ocm: int, objectives: str = "bytes", *, pins: tuple[str, ...] = (),
        tags: tuple[str, ...] = (), note: str = "", machine: str = "scratchpad_24k", **more: str | int,
    ) -> Case:  # fmt: skip
        fields: dict[str, str | int] = {"ocm_bytes": ocm, **more}
        return Case(name, "tiling", alone(layer), machine, objectives, set=fields, pins=pins, tags=tags, note=note)

    five = _three("pad5x5", 5, 1, 1)
    yield corner("pad-5x5", five, 19, tags=("uneven", *wrong), note="Equal pieces of columns move 99 bytes.")
    yield corner("pad-5x5-time", five, 19, "time,bytes", tags=("uneven",))
    column = _conv("pad5x1", r=5, kh=3, pad_top=1)
    yield corner(
        "pad-5x1", column, 7, tags=("uneven", *wrong), note="Equal pieces of rows move 21 bytes.", sliding="false"
    )
    rows = _conv("resident", m=32, n=4, r=14, c=14, kh=3, kw=3, h=16, l=16).model_copy(update={"resident_in": (4,)})
    yield corner("resident-rows", rows, 96, tags=("uneven", "resident", *wrong))
    tall = _conv("k5x4", m=1, n=1, r=7, c=7, kh=5, kw=4, stride_h=2, stride_w=3, pad_top=2, pad_left=3)
    yield corner("kernel-5x4-stride-2x3", tall, 128, tags=("uneven",), buffering="double")
    yield corner(
        "kernel-7x7-pad", _conv("k7", m=4, n=3, r=9, c=9, kh=7, kw=7, pad_top=4, pad_left=6), 363, tags=("uneven",)
    )
    small = Layer(name="mm", kind="matmul", m=3, n=2, r=6, c=1, h=6, l=1)
    yield corner("matmul-psum-below-out", small, 23, "time", tags=("psum",), out_bytes=2, psum_bytes=1)
    for size, ocm in ((13, 600), (31, 2_000), (71, 6_000)):
        prime = _three(f"prime{size}", size, 17, 11)
        yield corner(f"prime-{size}", prime, ocm, tags=("prime",), note="Sizes that nothing divides.")
    yield corner("prime-71-time", _three("prime71", 71, 17, 11), 6_000, "time,bytes", tags=("prime",))
    dilated = _conv("dilated", m=8, n=8, r=12, c=12, kh=3, kw=3, dilation_h=2, dilation_w=3, pad_top=2, pad_left=3)
    yield corner("dilated-2x3", dilated, 900)
    yield corner("stride-above-kernel", _conv("gaps", m=8, n=8, r=9, c=9, kh=2, kw=2, stride_h=3, stride_w=4), 500)
    depthwise = _three("dw", 20, 1, 1, g=24)
    yield corner("depthwise", depthwise, 700)
    yield corner("grouped", _three("grouped", 14, 6, 5, g=4), 1_500)
    yield corner("batch-3", _three("batch", 10, 8, 8, b=3), 1_200)
    yield corner("one-row", _conv("row", m=32, n=16, r=1, c=57, kw=7, pad_left=3), 800)
    yield corner(
        "ample", _three("ample", 12, 16, 16), 24_576, tags=("ample",), note="All of it fits: compulsory bytes."
    )
    yield corner("least-memory", _three("least", 12, 16, 16), 24, tags=("tiny",))
    yield corner("ties", _conv("ties", m=12, n=12, r=12, c=12), 64, "bytes", tags=("ties",), note="Many optima.")
    yield corner("double-buffers", _three("double", 16, 24, 12), 2_000, "time,bytes", buffering="double")
    yield corner("choose-buffers", _three("choose", 14, 16, 12), 2_000, "time", buffering="choose")
    pool = Layer(name="pool", kind="pool", g=32, m=1, n=1, r=14, c=14, kh=3, kw=3, stride_h=2, stride_w=2,
                 pad_top=1, pad_left=1, h=28, l=28, weights="none")  # fmt: skip
    yield corner("pool", pool, 400)
    total = Layer(name="sum", kind="eltwise", g=24, m=1, n=1, r=10, c=10, h=10, l=10, inputs=2, weights="none")
    yield corner("sum-of-two", total, 100)
    pinned = _three("pinned", 14, 24, 16)
    yield corner("pinned-tile", pinned, 2_000, pins=("T_R=5", "T_C<=9", "T_M%4"), tags=("pins",))
    yield corner("pinned-order", pinned, 2_000, pins=("order=OS", "holds=uniform"), tags=("pins",))
    yield corner("infeasible-memory", pinned, 3, tags=("infeasible",))
    yield corner("infeasible-pins", pinned, 200, pins=("T_M=24", "T_N=16"), tags=("infeasible", "pins"))


def _machines() -> Iterator[Case]:
    """The same few layers with DMA segments and two buffers, and with all that a core may be able to."""
    able: dict[str, str | int] = {"line": "true", "snake": "true"}
    for network, name, short in (
        ("vgg16", "conv3_2", "vgg"), ("mobilenet_v1", "conv5/dw", "dw"), ("alexnet", "conv2", "alex"),
        ("bert_base_encoder", "", "bert"), ("yolov2", "conv7", "yolo"),
    ):  # fmt: skip
        target = _layer_like(network, name)
        yield Case(f"{short}-zynq7020-time", "tiling", target, "zynq7020", "time")
        yield Case(f"{short}-64k-line-snake", "tiling", target, "scratchpad_64k", "bytes", set=dict(able))


def _layer_like(network: str, name: str) -> dict[str, object]:
    """A layer by name; else the one with the most MACs."""
    from instances.load import load_network

    layers = {one.name: one for one in load_network(network).conv_layers}
    found = layers.get(name) or max(layers.values(), key=lambda one: one.macs)
    return {"layer": found, "part_of": network}


def _slicing() -> Iterator[Case]:
    """Layers of the networks of the TSO paper on its machine."""
    rows = (
        ("inception_v3", "Conv2d_4a_3x3", "inception-4a"), ("inception_v3", "Mixed_6b/branch7x7_2", "inception-6b"),
        ("resnet50", "conv1", "resnet-conv1"), ("resnet50", "layer2.0.conv2", "resnet-l2"),
        ("resnet50", "layer3.0.conv1", "resnet-l3-1x1"), ("alexnet", "conv2", "alexnet-conv2"),
        ("mobilenet_v1", "", "mobilenet-top"), ("lenet5", "c3", "lenet-c3"),
    )  # fmt: skip
    for network, layer, short in rows:
        for objectives in ("time", "bytes"):
            yield Case(f"{short}-{objectives}", "slicing", _layer_like(network, layer), "nmp", objectives)
    fifth = layer_of("inception_v3", "Conv2d_4a_3x3")
    for partition in ("KS", "OFM", "KS&OFM"):
        yield Case(
            f"inception-4a-{partition.replace('&', '_')}", "slicing", fifth, "nmp", "time",
            pins=(f"partition={partition}",), tags=("pins",),
        )  # fmt: skip
    for dataflow in ("IS", "OS", "WS"):
        yield Case(
            f"inception-4a-{dataflow}", "slicing", fifth, "nmp", "time", pins=(f"dataflow={dataflow}",), tags=("pins",)
        )  # fmt: skip
    for size in (7, 13, 29):
        yield Case(f"prime-{size}", "slicing", alone(_three(f"prime{size}", size, 37, 23)), "nmp", "time,bytes")
    wide = alone(_three("wide", 14, 64, 48))
    for kib in (1, 2, 4):
        fields = {f"{name}_buffer_bytes": kib * _KIB for name in ("in", "w", "out")}
        yield Case(f"buffers-{kib}k", "slicing", wide, "nmp", "time", set=dict(fields), tags=("tiny",))
    yield Case("infeasible-buffer", "slicing", wide, "nmp", "time", set={"in_buffer_bytes": 1}, tags=("infeasible",))
    yield Case("energy", "slicing", wide, "nmp", "energy,time")


def _levels() -> Iterator[Case]:
    known = "Two mappers move 4,837,872 and 6,221,952 bytes of L2 for it, as far as is known (docs/levels.md)."
    for name in "abcde":
        yield Case(
            f"{name}-dram-l2", "levels", layer_of("peer_layers", name), "dram_l2_l1", "bytes,bytes@l2",
            note=known if name == "c" else "",
        )  # fmt: skip
    for name in ("c1", "c3", "c5"):
        layer = layer_of("lenet5", name)
        yield Case(f"lenet-{name}-time", "levels", layer, "dram_l2_l1", "time")
        yield Case(f"lenet-{name}-gap9-energy", "levels", layer, "gap9_levels", "energy")
        yield Case(f"lenet-{name}-gemmini", "levels", layer, "gemmini_levels", "time", tags=("overlap",))
    yield Case("b-gap9", "levels", layer_of("peer_layers", "b"), "gap9_levels", "time", tags=("overlap",))
    small = {"levels.l2.bytes": 200, "levels.l1.bytes": 60}
    tiny = alone(_three("tiny", 4, 3, 2))
    yield Case("tiny-both", "levels", tiny, "dram_l2_l1", "bytes@l2,bytes", set=dict(small), tags=("tiny",))
    yield Case(
        "tiny-pinned", "levels", tiny, "dram_l2_l1", "bytes", set=dict(small), pins=("resident=W@l2",), tags=("pins",)
    )
    tight = {"levels.l2.bytes": 60, "levels.l1.bytes": 8}
    yield Case("infeasible-l1", "levels", tiny, "dram_l2_l1", "bytes", set=dict(tight), tags=("infeasible",))


LAYERS = (
    Cases(
        "tiling-peers", "layers that public tilers were compared on: ResNet, Inception, VGG, MobileNet", _BUNDLED,
        _peers,
    ),
    Cases("tiling-resnet50", "layers of ResNet-50: bytes in 24 KiB, time in 64 KiB", _BUNDLED, _resnet50),
    Cases("tiling-inception", "layers of Inception v3 with flat and long kernels", _BUNDLED, _inception),
    Cases("tiling-corners", "small layers where the best tile is no obvious one", "made by hand", _corners),
    Cases("tiling-machines", "layers on machines with DMA segments, bursts, two buffers", _BUNDLED, _machines),
    Cases("levels-memories", "layers on DRAM, L2 and L1, and on accumulators of their own", _BUNDLED, _levels),
    Cases("slicing-nmp", "layers on the cores of the TSO paper's machine", _BUNDLED, _slicing),
)  # fmt: skip
