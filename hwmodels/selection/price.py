"""Tucker decomposition of a convolution: two or three smaller ones, run one after the other.

A convolution of C_i channels into C_o with a kernel of k_h x k_w becomes
    1 x 1      C_i  -> C_i'   on the map that it reads
    k_h x k_w  C_i' -> C_o'   with its stride, padding and dilation
    1 x 1      C_o' -> C_o    on the map that it makes
that is C_i C_i' (per pixel read) + k_h k_w C_i' C_o' + C_o' C_o multiplications (per pixel made) in place of
k_h k_w C_i C_o. Where C_i or C_o is small there are two matrices: the first, or the last, is merged with the middle.

Example (Table 3.6): Conv4 of Tiny YOLO, 64 -> 128 channels, 3 x 3, ranks 32 and 64. Per pixel 73,728 multiplications
become 64 * 32 + 9 * 32 * 64 + 64 * 128 = 28,672. Conv2, 16 -> 32, has two matrices: 16 -> 20 (3 x 3) and 20 -> 32.

Source: `heterogeneous_mapping_and_banks` 3.1.3.2 (Fig. 3.3, Table 3.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from instances.network.workload import Layer

#: Up to so many channels are few: Table 3.6 merges the first matrix of Conv2 (16 channels), and none of Conv3 (32).
FEW = 16


@dataclass(frozen=True)
class Tucker:
    """Ranks of a decomposition; None: that matrix is merged with the middle one."""

    inner: int | None
    """C_i', channels after the first matrix."""
    outer: int | None
    """C_o', channels before the last matrix."""

    def name(self, layer: Layer) -> str:
        """Such as ``tucker_32_64``; of a merged matrix the channels of the layer, as in Table 3.6."""
        return f"tucker_{self.inner or layer.n}_{self.outer or layer.m}"


def pieces(layer: Layer, ranks: Tucker) -> tuple[Layer, ...]:
    """Return the convolutions that stand for one; only the last of them has its biases."""
    inner, outer = ranks.inner or layer.n, ranks.outer or layer.m
    middle = layer.model_copy(update={"name": f"{layer.name}.middle", "n": inner, "m": outer})
    found = [middle]
    if ranks.inner is not None:
        found.insert(0, _pointwise(f"{layer.name}.first", layer.b, layer.n, inner, (layer.h, layer.l)))
    if ranks.outer is not None:
        found.append(_pointwise(f"{layer.name}.last", layer.b, outer, layer.m, (layer.r, layer.c)))
    bias = [False] * (len(found) - 1) + [layer.bias]
    return tuple(piece.model_copy(update={"bias": has}) for piece, has in zip(found, bias, strict=True))


def _pointwise(name: str, batch: int, channels: int, filters: int, size: tuple[int, int]) -> Layer:
    return Layer.conv(name, channels=channels, filters=filters, size=size, batch=batch)


def decompositions(layer: Layer, shares: Sequence[float]) -> Iterator[Tucker]:
    """Yield the ranks that are tried: each matrix at every share of its channels, those that save weights.

    There are none for other layers than convolutions in one group, for kernels of 1 x 1, and where the channels of
    both sides are few.
    """
    if layer.kind != "conv" or layer.g > 1 or layer.kh * layer.kw == 1 or layer.weights != "constant":
        return
    inner = [None] if layer.n <= FEW else [rank(layer.n, share) for share in shares]
    outer = [None] if layer.m <= FEW else [rank(layer.m, share) for share in shares]
    for one in dict.fromkeys(Tucker(*both) for both in product(inner, outer)):
        if one != Tucker(None, None) and weights(pieces(layer, one)) < layer.parameters:
            yield one


def rank(channels: int, share: float) -> int:
    """Return a share of some channels, to the nearest, at least one."""
    return max(1, round(channels * share))


def weights(made: Sequence[Layer]) -> int:
    """Return the weights and biases of some convolutions, in elements."""
    return sum(piece.parameters for piece in made)
