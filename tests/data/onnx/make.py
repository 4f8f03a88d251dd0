# ruff: noqa: E501, SIM113
"""Writes the ONNX files beside it: small networks with random weights, exported by torch, some quantised by onnxruntime.

Needs torch, onnxscript and onnxruntime: ``python tests/data/onnx/make.py``. `macs.json` says what each file multiplies,
counted without certile: hooks on torch modules apply the formulas below, and products of activations count themselves
(`Count.product`). Weights of more than a thousand elements are dropped from the files: nobody reads them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor, nn

HERE = Path(__file__).parent
#: Names of files above so many bytes are numbers.
LONG = 24_000


# --- counting ----------------------------------------------------------------------------------------------------


class Count:
    """Multiply-accumulates of one run."""

    total = 0

    @classmethod
    def product(cls, rows: Tensor, out: Tensor) -> Tensor:
        """Count a product of activations, whose sums run over the last axis of `rows`."""
        if not torch.compiler.is_exporting():
            cls.total += out.numel() * rows.shape[-1]
        return out


def hook(module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor | tuple[Tensor, ...]) -> None:
    x = inputs[0]
    if isinstance(module, nn.ConvTranspose1d | nn.ConvTranspose2d):  # every input element meets its filters' taps
        Count.total += x.numel() * module.out_channels // module.groups * prod(module.kernel_size)
    elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        Count.total += out.numel() * module.in_channels // module.groups * prod(module.kernel_size)
    elif isinstance(module, nn.Linear):
        Count.total += out.numel() * module.in_features
    elif isinstance(module, nn.RNNBase):  # every weight matrix once for each step and image
        weights = sum(p.numel() for name, p in module.named_parameters() if name.startswith("weight"))
        Count.total += x.shape[0] * x.shape[1] * weights


def macs(model: nn.Module, inputs: tuple[Tensor, ...]) -> int:
    Count.total = 0
    handles = [module.register_forward_hook(hook) for module in model.modules()]
    with torch.no_grad():
        model(*inputs)
    for handle in handles:
        handle.remove()
    return Count.total


# --- networks ----------------------------------------------------------------------------------------------------


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, call, **parts: nn.Module) -> None:
        super().__init__()
        self.call = call
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, *x: Tensor) -> Tensor:
        return self.call(self, *x)


def conv(i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: nn.Module | None = None) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act or nn.ReLU())


def residual(body: nn.Module, skip: nn.Module | None = None) -> Fn:
    return Fn(lambda m, x: m.body(x) + (m.skip(x) if skip else x), body=body, **({"skip": skip} if skip else {}))


def head(channels: int, classes: int = 10) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def squeeze(channels: int, gate: nn.Module) -> Fn:
    body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 2, 1), nn.ReLU(), nn.Conv2d(2, channels, 1), gate)
    return Fn(lambda m, x: x * m.body(x), body=body)


def inverted(i: int, o: int, t: int, s: int, act: type[nn.Module], se: nn.Module | None = None) -> nn.Module:
    h = i * t
    parts = [conv(i, h, 1, act=act()), conv(h, h, 3, s, h, act=act()), *([squeeze(h, se)] if se else [])]
    body = nn.Sequential(*parts, nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o))
    return residual(body) if s == 1 and i == o else body


def shuffle(channels: int) -> Fn:
    def call(m: nn.Module, x: Tensor) -> Tensor:
        one, two = x.chunk(2, dim=1)
        x = torch.cat([one, m.body(two)], 1)
        b, c, h, w = x.shape
        return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)

    half = channels // 2
    return Fn(call, body=nn.Sequential(conv(half, half, 1), conv(half, half, 3, 1, half), conv(half, half, 1)))


def dense(channels: int) -> Fn:
    return Fn(lambda m, x: torch.cat([x, m.body(x)], 1), body=conv(channels, 4))


class Attention(nn.Module):
    """Self-attention, or attention to another sequence; by matmul or by einsum."""

    def __init__(self, size: int, heads: int, einsum: bool = False) -> None:
        super().__init__()
        self.heads, self.einsum = heads, einsum
        self.q, self.k, self.v, self.out = (nn.Linear(size, size) for _ in range(4))

    def forward(self, x: Tensor, to: Tensor | None = None) -> Tensor:
        to = x if to is None else to
        q, k, v = (f(t).view(*t.shape[:2], self.heads, -1) for f, t in ((self.q, x), (self.k, to), (self.v, to)))
        if self.einsum:
            a = Count.product(q, torch.einsum("bihd,bjhd->bhij", q, k)).softmax(-1)
            y = Count.product(a, torch.einsum("bhij,bjhd->bihd", a, v))
        else:
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            a = Count.product(q, q @ k.transpose(-2, -1)).softmax(-1)
            y = Count.product(a, a @ v).transpose(1, 2)
        return self.out(y.reshape(x.shape))


def block(size: int, einsum: bool = False) -> nn.Sequential:
    norm, mlp = nn.LayerNorm(size), nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
    attend = nn.Sequential(norm, Attention(size, 2, einsum))
    return nn.Sequential(residual(attend), residual(nn.Sequential(nn.LayerNorm(size), mlp)))


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.blocks, self.head = nn.Conv2d(3, 8, 4, 4), nn.Sequential(block(8), block(8)), nn.Linear(8, 10)
        self.token, self.place = nn.Parameter(torch.zeros(1, 1, 8)), nn.Parameter(torch.zeros(1, 17, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.blocks(x)[:, 0])


class Window(nn.Module):
    """A block of Swin: windows, shifted or not, with shapes computed from the input as torchvision does."""

    def __init__(self, size: int, shift: int) -> None:
        super().__init__()
        self.shift, self.norm, self.qkv, self.proj = (
            shift,
            nn.LayerNorm(size),
            nn.Linear(size, 3 * size),
            nn.Linear(size, size),
        )
        self.table = nn.Parameter(torch.zeros(49, 2))
        self.register_buffer("index", torch.arange(256) % 49)

    def mask(self, x: Tensor, rows: int, columns: int) -> Tensor:
        m, number = x.new_zeros((rows, columns)), 0
        for h in ((0, -4), (-4, -2), (-2, None)):
            m[h[0] : h[1]] = number
            number += 1
        m = m.view(rows // 4, 4, columns // 4, 4).permute(0, 2, 1, 3).reshape(-1, 16)
        m = m.unsqueeze(1) - m.unsqueeze(2)
        return m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.norm(inputs)
        b, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        _, rows, columns, _ = x.shape
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        number = (rows // 4) * (columns // 4)
        x = x.view(b, rows // 4, 4, columns // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b * number, 16, c)
        q, k, v = self.qkv(x).reshape(x.size(0), x.size(1), 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        a = Count.product(q, q @ k.transpose(-2, -1)) + self.table[self.index].view(16, 16, 2).permute(2, 0, 1)
        if self.shift:
            mask = self.mask(x, rows, columns)
            a = a.view(x.size(0) // number, number, 2, 16, 16) + mask.unsqueeze(1).unsqueeze(0)
            a = a.view(-1, 2, 16, 16)
        a = a.softmax(-1)
        x = self.proj(Count.product(a, a @ v).transpose(1, 2).reshape(x.size(0), x.size(1), c))
        x = x.view(b, rows // 4, columns // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, rows, columns, c)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        return inputs + x[:, :h, :w, :]


class UNet(nn.Module):
    def __init__(self, up: nn.Module) -> None:
        super().__init__()
        self.one, self.two, self.up, self.last = conv(3, 4), nn.Sequential(nn.MaxPool2d(2), conv(4, 8)), up, conv(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        return self.last(torch.cat([one, self.up(self.two(one))], 1))


def video(i: int, o: int, k: tuple[int, int, int], s: tuple[int, int, int] = (1, 1, 1), g: int = 1) -> nn.Sequential:
    pad = tuple(n // 2 for n in k)
    return nn.Sequential(nn.Conv3d(i, o, k, s, pad, groups=g, bias=False), nn.BatchNorm3d(o), nn.ReLU())


class DETR(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.proj = nn.Sequential(conv(3, 8, 3, 2), conv(8, 8, 3, 2)), nn.Conv2d(8, 8, 1)
        self.encoder, self.own, self.cross = block(8), Attention(8, 2), Attention(8, 2)
        self.place, self.query = nn.Parameter(torch.rand(1, 16, 8)), nn.Parameter(torch.rand(1, 5, 8))
        self.norm, self.classes, self.boxes = nn.LayerNorm(8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encoder(self.proj(self.stem(x)).flatten(2).transpose(1, 2) + self.place)
        q = self.query.expand(x.shape[0], -1, -1)
        q = self.norm(q + self.own(q))
        q = q + self.cross(q, memory)
        return self.classes(q), self.boxes(q).sigmoid()


class Recurrent(nn.Module):
    def __init__(self, cell: type[nn.RNNBase], both: bool, cut: int = 7) -> None:
        super().__init__()
        self.cell, self.fc = cell(6, 8, num_layers=2, bidirectional=both), nn.Linear(16 if both else 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.cell(x)[0])


def causal(i: int, o: int, dilation: int) -> nn.Sequential:
    return nn.Sequential(nn.ConstantPad1d((2 * dilation, 0), 0.0), nn.Conv1d(i, o, 3, dilation=dilation), nn.ReLU())


class Grid(nn.Module):
    """Warps a map by a flow that it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.flow, self.last = conv(3, 4), nn.Conv2d(4, 2, 3, 1, 1), nn.Conv2d(4, 3, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        return self.last(F.grid_sample(x, self.flow(x).permute(0, 2, 3, 1), align_corners=False))


def convnext(size: int) -> Fn:
    def call(m: nn.Module, x: Tensor) -> Tensor:
        return x + m.mlp(m.norm(m.depth(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)

    mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
    return Fn(call, depth=nn.Conv2d(size, size, 7, 1, 3, groups=size), norm=nn.LayerNorm(size), mlp=mlp)


def resnet() -> nn.Sequential:
    first = residual(nn.Sequential(conv(8, 8), conv(8, 8)))
    second = residual(nn.Sequential(conv(8, 12, 3, 2), conv(12, 12)), conv(8, 12, 1, 2))
    return nn.Sequential(conv(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1), first, second, *head(12))


def models() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """Name -> network and the shape of its input."""
    image = (1, 3, 16, 16)
    up = nn.Upsample
    return {
        "resnet": (resnet(), (1, 3, 32, 32)),
        "mobilenet_v2": (nn.Sequential(conv(3, 4, 3, 2), inverted(4, 4, 3, 1, nn.ReLU6), inverted(4, 6, 3, 2, nn.ReLU6), *head(6)), image),
        "mobilenet_v3": (nn.Sequential(conv(3, 4, 3, 2, act=nn.Hardswish()), inverted(4, 4, 2, 1, nn.Hardswish, nn.Hardsigmoid()), *head(4)), image),
        "efficientnet": (nn.Sequential(conv(3, 4, 3, 2, act=nn.SiLU()), inverted(4, 4, 2, 1, nn.SiLU, nn.Sigmoid()), *head(4)), image),
        "shufflenet": (nn.Sequential(conv(3, 8, 3, 2), shuffle(8), shuffle(8), *head(8)), image),
        "densenet": (nn.Sequential(conv(3, 4), dense(4), dense(8), nn.AvgPool2d(2), *head(12)), image),
        "unet": (UNet(nn.ConvTranspose2d(8, 4, 2, 2)), image),
        "unet_overlap": (UNet(nn.ConvTranspose2d(8, 4, 4, 2, 1)), image),
        "unet_odd": (UNet(nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1, groups=2)), image),
        "unet_nearest": (UNet(nn.Sequential(up(scale_factor=2), nn.Conv2d(8, 4, 1))), image),
        "unet_bilinear": (UNet(nn.Sequential(up(scale_factor=2, mode="bilinear"), nn.Conv2d(8, 4, 1))), image),
        "decoder": (nn.Sequential(nn.ConvTranspose2d(3, 4, 5, 3, 1), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3), nn.Conv2d(2, 2, 1)), (1, 3, 5, 6)),
        "vit": (ViT(), image),
        "swin": (nn.Sequential(nn.Conv2d(3, 8, 2, 2), Fn(lambda m, x: x.permute(0, 2, 3, 1)), Window(8, 0), Window(8, 2)), (1, 3, 20, 20)),
        "convnext": (nn.Sequential(nn.Conv2d(3, 8, 4, 4), convnext(8), convnext(8), *head(8)), image),
        "r3d": (nn.Sequential(video(3, 4, (3, 7, 7), (1, 2, 2)), residual(nn.Sequential(video(4, 4, (3, 3, 3)), video(4, 4, (3, 3, 3)))), video(4, 6, (3, 3, 3), (2, 2, 2)), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(6, 5)), (1, 3, 6, 16, 16)),
        "r2plus1d": (nn.Sequential(video(3, 4, (1, 3, 3), (1, 2, 2)), video(4, 4, (3, 1, 1)), video(4, 4, (3, 3, 3), (1, 1, 1), 4), nn.MaxPool3d(2), video(4, 6, (1, 1, 1), (2, 2, 2)), nn.Conv3d(6, 4, (2, 2, 2), (2, 2, 2))), (1, 3, 8, 16, 16)),
        "tcn": (nn.Sequential(causal(3, 4, 1), causal(4, 4, 2), causal(4, 4, 4), nn.ConvTranspose1d(4, 2, 4, 2, 1)), (1, 3, 24)),
        "lstm": (Recurrent(nn.LSTM, True), (5, 2, 6)),
        "gru": (Recurrent(nn.GRU, False), (5, 2, 6)),
        "rnn": (Recurrent(nn.RNN, True), (4, 1, 6)),
        "einsum": (nn.Sequential(block(8, True), nn.Linear(8, 4)), (2, 6, 8)),
        "detr": (DETR(), image),
        "grid": (Grid(), image),
        "espcn": (nn.Sequential(nn.Conv2d(1, 8, 5, 1, 2), nn.Tanh(), nn.Conv2d(8, 9, 3, 1, 1), nn.PixelShuffle(3)), (1, 1, 12, 12)),
    }  # fmt: skip


# --- files -------------------------------------------------------------------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def export(model: nn.Module, x: Tensor, path: Path, dynamo: bool, opset: int | None) -> None:
    with quiet():
        torch.onnx.export(
            model, (x,), path, dynamo=dynamo, opset_version=opset, external_data=False, verbose=False,
        )  # fmt: skip


def slim(path: Path) -> None:
    """Keep shapes and structure: weights that nobody reads say only how large they are, and texts go."""
    model = onnx.load(path)
    graph = model.graph
    for tensor in graph.initializer:
        if prod(tensor.dims) > 64 and tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    for node in graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for info in [*graph.input, *graph.output, *graph.value_info]:
        del info.metadata_props[:]
    del graph.metadata_props[:], model.metadata_props[:]
    graph.ClearField("doc_string")
    if path.stat().st_size > LONG:
        shorten(graph)
    onnx.save(model, path)


def shorten(graph: onnx.GraphProto) -> None:
    """Number tensors and nodes."""
    short: dict[str, str] = {"": ""}
    for node in graph.node:
        node.name = ""
        for names in (node.input, node.output):
            names[:] = [short.setdefault(name, f"{len(short):x}") for name in names]
    for named in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        named.name = short.setdefault(named.name, f"{len(short):x}")


class Reader(CalibrationDataReader):
    """Random maps to calibrate with."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.left = iter([{name: np.random.default_rng(k).random(shape, np.float32)} for k in range(2)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def quantise(model: nn.Module, shape: tuple[int, ...], path: Path, form: QuantFormat) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        export(model, torch.rand(shape), plain, False, 17)
        quant_pre_process(plain, plain, skip_symbolic_shape=True)
        name = onnx.load(plain).graph.input[0].name
        kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        quantize_static(plain, path, Reader(name, shape), quant_format=form, **kinds)


def main() -> None:
    counts: dict[str, int] = {}
    torch.manual_seed(0)
    for name, (model, shape) in models().items():
        x = torch.rand(shape)
        model.eval()
        wanted = macs(model, (x,))
        for suffix, dynamo, opset in (("ts", False, 13 if name in ("swin", "vit") else 17), ("dynamo", True, None)):
            path = HERE / f"{name}_{suffix}.onnx"
            try:
                export(model, x, path, dynamo, max(opset or 0, 16) if name == "grid" and not dynamo else opset)
            except Exception as error:  # noqa: BLE001 - an exporter that cannot is no reason to stop
                print(f"{path.name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
                continue
            slim(path)
            counts[path.name] = wanted
    for name in ("resnet", "mobilenet_v3", "densenet", "shufflenet", "vit"):
        model, shape = models()[name]
        model.eval()
        for suffix, form in (("qdq", QuantFormat.QDQ), ("qoperator", QuantFormat.QOperator)):
            path = HERE / f"{name}_{suffix}.onnx"
            quantise(model, shape, path, form)
            slim(path)
            counts[path.name] = macs(model, (torch.rand(shape),))
    (HERE / "macs.json").write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
