"""Exports networks of real size with random weights: python networks.py FOLDER [NAME ...] [--size N] [--dynamo].

Needs torch, onnx and onnxscript (not among certile's own). `tests/test_compiled_networks.py` compiles what it writes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn


class Fire(nn.Module):
    """SqueezeNet's module: a 1x1 convolution that both others read."""

    def __init__(self, given: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(given, squeeze, 1), nn.ReLU())
        self.one = nn.Sequential(nn.Conv2d(squeeze, expand, 1), nn.ReLU())
        self.three = nn.Sequential(nn.Conv2d(squeeze, expand, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze(x)
        return torch.cat([self.one(x), self.three(x)], 1)


def squeezenet() -> nn.Module:
    """SqueezeNet 1.1."""
    fires = [(64, 16, 64), (128, 16, 64), None, (128, 32, 128), (256, 32, 128), None]
    fires += [(256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256)]
    body = [nn.MaxPool2d(3, 2, ceil_mode=True) if sizes is None else Fire(*sizes) for sizes in fires]
    first = [nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
    last = [nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*first, *body, *last)


def conv(given: int, made: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU6) -> list:
    """A convolution, its batch norm, and a function."""
    layer = nn.Conv2d(given, made, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(made), *([] if act is None else [act()])]


class Sum(nn.Module):
    """A branch and what goes past it, with a function behind."""

    def __init__(self, body: list, past: list, last: nn.Module) -> None:
        super().__init__()
        self.body, self.past, self.last = nn.Sequential(*body), nn.Sequential(*past), last

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x) + self.past(x))


def mobilenet() -> nn.Module:
    """MobileNetV2."""
    layers, given = conv(3, 32, 3, 2), 32
    blocks = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for factor, made, number, stride in blocks:
        for k in range(number):
            wide, step = given * factor, stride if k == 0 else 1
            widen = conv(given, wide) if factor > 1 else []
            body = [*widen, *conv(wide, wide, 3, step, wide), *conv(wide, made, act=None)]
            layers += [Sum(body, [], nn.Identity())] if step == 1 and given == made else body
            given = made
    return nn.Sequential(*layers, *conv(given, 1280), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def resnet() -> nn.Module:
    """ResNet-50, its strides in the 3x3 convolutions."""
    layers, given = [*conv(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, number, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(number):
            step, made = stride if k == 0 else 1, 4 * width
            first = [*conv(given, width, act=nn.ReLU), *conv(width, width, 3, step, act=nn.ReLU)]
            past = conv(given, made, 1, step, act=None) if k == 0 else []
            layers.append(Sum([*first, *conv(width, made, act=None)], past, nn.ReLU()))
            given = made
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 1000))


NETWORKS = {"squeezenet": squeezenet, "mobilenet": mobilenet, "resnet": resnet}


def made(name: str) -> nn.Module:
    """A network with random weights, and random statistics of its batch norms."""
    torch.manual_seed(0)
    model = NETWORKS[name]().eval()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):  # as large a result as what is read
            nn.init.kaiming_normal_(part.weight, mode="fan_in", nonlinearity="relu")
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1.0)
            nn.init.normal_(part.bias, 0.0, 0.1)
            part.running_mean.normal_(0.0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return model


def main() -> None:
    """Write the files."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("folder", type=Path)
    reader.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}; default: all")
    reader.add_argument("--size", type=int, default=224)
    reader.add_argument("--dynamo", action="store_true")
    asked = reader.parse_args()
    for name in asked.names or NETWORKS:
        x = torch.rand(1, 3, asked.size, asked.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                made(name), (x,), asked.folder / f"{name}.onnx", dynamo=asked.dynamo, external_data=False,
                verbose=False, opset_version=None if asked.dynamo else 17,
            )  # fmt: skip


if __name__ == "__main__":
    main()
