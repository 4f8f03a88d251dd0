"""Deep networks: ResNets, DenseNets, Inception v3, and the encoder of BERT-base.

ResNets: He et al. 2015; wide ResNet-50-2: Zagoruyko & Komodakis 2016. DenseNets: Huang et al. 2017; every layer sees
all earlier maps of its block. Inception v3: Szegedy et al. 2015, without the auxiliary head, with torchvision's names.
BERT: Devlin et al. 2018.
"""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = [
    "bert_base_encoder", "densenet121", "densenet40", "densenet40_k12", "inception_v3", "resnet152", "resnet50",
    "resnet50_v1", "wide_resnet50_2",
]  # fmt: skip


#: Depth -> blocks of every stage; the first two have basic blocks, the others bottlenecks.
REPEATS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def _resnet(
    net: Builder, repeats: tuple[int, ...], *, width: int = 64, stride_in_3x3: bool = True, basic: bool = False
) -> Network:
    """Build a ResNet; `width` is the inner width of the first stage, `basic` has two 3x3 in every block."""
    x = net.conv(net.input(1, 3, 224, 224), "conv1", 64, 7, stride=2)
    x = net.pool(x, "maxpool", "max", 3, 2, pad=1)
    channels = 64
    for stage, count in enumerate(repeats):
        inner, outer = width << stage, (64 if basic else 256) << stage
        for i in range(count):
            name, stride, shortcut = f"layer{stage + 1}.{i}", 2 if i == 0 and stage else 1, x
            if basic:
                y = net.conv(x, f"{name}.conv1", inner, 3, stride=stride)
                y = net.conv(y, f"{name}.conv2", outer, 3, act="")
            else:
                first, second = (1, stride) if stride_in_3x3 else (stride, 1)
                y = net.conv(x, f"{name}.conv1", inner, 1, stride=first)
                y = net.conv(y, f"{name}.conv2", inner, 3, stride=second)
                y = net.conv(y, f"{name}.conv3", outer, 1, act="")
            if stride > 1 or channels != outer:
                shortcut = net.conv(x, f"{name}.downsample", outer, 1, stride=stride, act="")
            x = net.eltwise("add", (y, shortcut), f"{name}.add", act="relu")
            channels = outer
    return net.classified(x)


def resnet(depth: int) -> Network:
    """Return the ResNet of torchvision with 18, 34, 50, 101 or 152 layers; raises KeyError for another depth."""
    net = Builder(f"resnet{depth}", f"ResNet-{depth}, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, REPEATS[depth], basic=depth < 50)


def resnet50() -> Network:
    """Return ResNet-50 v1.5 (stride in the 3x3, torchvision): 4.09 GMAC, 25.557 M parameters."""
    net = Builder("resnet50", "ResNet-50 v1.5, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, (3, 4, 6, 3))


def resnet50_v1() -> Network:
    """Return ResNet-50 as first published (stride in the first 1x1): 3.86 GMAC, 25.557 M parameters."""
    net = Builder("resnet50_v1", "ResNet-50 v1, 3x224x224 (He et al. 2015: stride in the first 1x1)")
    return _resnet(net, (3, 4, 6, 3), stride_in_3x3=False)


def resnet152() -> Network:
    """Return ResNet-152 v1.5 (torchvision): 11.5 GMAC, 60.19 M parameters."""
    net = Builder("resnet152", "ResNet-152 v1.5, 3x224x224 (torchvision: stride in the 3x3)")
    return _resnet(net, (3, 8, 36, 3))


def wide_resnet50_2() -> Network:
    """Return wide ResNet-50-2 (torchvision): 11.4 GMAC, 68.88 M parameters."""
    net = Builder("wide_resnet50_2", "Wide ResNet-50-2, 3x224x224 (torchvision)")
    return _resnet(net, (3, 4, 6, 3), width=128)


def _blocks(net: Builder, x: str, repeats: tuple[int, ...], growth: int, *, bottleneck: bool, compress: int) -> str:
    """Add dense blocks with transitions between them; pre-activation batch norms stay separate.

    A batch norm directly behind a bottleneck's 1x1 convolution is folded into it, as a deployed network has it.
    """
    for b, count in enumerate(repeats, 1):
        for i in range(1, count + 1):
            name = f"block{b}.{i}"
            y = net.norm(x, f"{name}.norm1")
            if bottleneck:
                y = net.conv(y, f"{name}.conv1", 4 * growth, 1)
            y = net.conv(y, f"{name}.conv2" if bottleneck else f"{name}.conv", growth, 3, batch_norm=False, act="")
            x = net.concat((x, y), f"{name}.concat")
        if b < len(repeats):
            name = f"transition{b}"
            channels = net.shape(x)[1] // compress
            x = net.conv(net.norm(x, f"{name}.norm"), f"{name}.conv", channels, 1, batch_norm=False, act="")
            x = net.pool(x, f"{name}.pool", "avg", 2)
    return net.norm(x, "norm_last")


def densenet121() -> Network:
    """Return DenseNet-121 (torchvision): 2.83 GMAC, 7.98 M parameters."""
    net = Builder("densenet121", "DenseNet-121, 3x224x224 (k=32, bottleneck, compression 0.5; torchvision)")
    x = net.conv(net.input(1, 3, 224, 224), "conv0", 64, 7, stride=2)
    x = net.pool(x, "pool0", "max", 3, 2, pad=1)
    return net.classified(_blocks(net, x, (6, 12, 24, 16), 32, bottleneck=True, compress=2))


def densenet40() -> Network:
    """Return the DenseNet-40 with growth 32 of `heterogeneous_mapping_and_banks` section 3.3.4.3.

    The text gives depth 40, k=32 and 64 layers (Table 3.13). Depth 40 with bottlenecks (6 layers of two convolutions
    in each of 3 blocks) has 1 input, 39 convolutions, 18 concatenations, 3 poolings, flatten, FC and softmax: 64.
    The plain DenseNet-40 would have 82.
    """
    net = Builder("densenet40", "DenseNet-BC-40, 3x32x32 (k=32; the 64 layers of heterogeneous_mapping_and_banks.md)")
    x = net.conv(net.input(1, 3, 32, 32), "conv0", 64, 3, batch_norm=False, act="")
    return net.classified(_blocks(net, x, (6, 6, 6), 32, bottleneck=True, compress=2), 10)


def densenet40_k12() -> Network:
    """Return the DenseNet-40 of Huang et al. 2017, Table 2 (k=12, no bottleneck, CIFAR-10): 1.0 M parameters."""
    net = Builder("densenet40_k12", "DenseNet-40, 3x32x32 (k=12, Huang et al. 2017, Table 2)")
    x = net.conv(net.input(1, 3, 32, 32), "conv0", 16, 3, batch_norm=False, act="")
    return net.classified(_blocks(net, x, (12, 12, 12), 12, bottleneck=False, compress=1), 10)


def _pooled(net: Builder, x: str, name: str, filters: int) -> str:
    pooled = net.pool(x, f"{name}/branch_pool", "avg", 3, 1, pad=1)
    return net.conv(pooled, f"{name}/branch_pool_conv", filters)


def _block_a(net: Builder, x: str, name: str, pool_filters: int) -> str:
    one = net.conv(x, f"{name}/branch1x1", 64)
    five = net.conv(net.conv(x, f"{name}/branch5x5_1", 48), f"{name}/branch5x5_2", 64, 5)
    three = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 64), f"{name}/branch3x3dbl_2", 96, 3)
    three = net.conv(three, f"{name}/branch3x3dbl_3", 96, 3)
    return net.concat((one, five, three, _pooled(net, x, name, pool_filters)), f"{name}/concat")


def _block_b(net: Builder, x: str, name: str) -> str:
    three = net.conv(x, f"{name}/branch3x3", 384, 3, stride=2, pad=0)
    double = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 64), f"{name}/branch3x3dbl_2", 96, 3)
    double = net.conv(double, f"{name}/branch3x3dbl_3", 96, 3, stride=2, pad=0)
    return net.concat((three, double, net.pool(x, f"{name}/branch_pool", "max", 3, 2)), f"{name}/concat")


def _block_c(net: Builder, x: str, name: str, inner: int) -> str:
    one = net.conv(x, f"{name}/branch1x1", 192)
    seven = net.conv(x, f"{name}/branch7x7_1", inner)
    seven = net.conv(seven, f"{name}/branch7x7_2", inner, (1, 7))
    seven = net.conv(seven, f"{name}/branch7x7_3", 192, (7, 1))
    double = net.conv(x, f"{name}/branch7x7dbl_1", inner)
    for i, kernel in enumerate(((7, 1), (1, 7), (7, 1)), 2):
        double = net.conv(double, f"{name}/branch7x7dbl_{i}", inner, kernel)
    double = net.conv(double, f"{name}/branch7x7dbl_5", 192, (1, 7))
    return net.concat((one, seven, double, _pooled(net, x, name, 192)), f"{name}/concat")


def _block_d(net: Builder, x: str, name: str) -> str:
    three = net.conv(net.conv(x, f"{name}/branch3x3_1", 192), f"{name}/branch3x3_2", 320, 3, stride=2, pad=0)
    seven = net.conv(x, f"{name}/branch7x7x3_1", 192)
    seven = net.conv(seven, f"{name}/branch7x7x3_2", 192, (1, 7))
    seven = net.conv(seven, f"{name}/branch7x7x3_3", 192, (7, 1))
    seven = net.conv(seven, f"{name}/branch7x7x3_4", 192, 3, stride=2, pad=0)
    return net.concat((three, seven, net.pool(x, f"{name}/branch_pool", "max", 3, 2)), f"{name}/concat")


def _block_e(net: Builder, x: str, name: str) -> str:
    one = net.conv(x, f"{name}/branch1x1", 320)
    three = net.conv(x, f"{name}/branch3x3_1", 384)
    three = net.concat(
        [net.conv(three, f"{name}/branch3x3_2{i}", 384, kernel) for i, kernel in (("a", (1, 3)), ("b", (3, 1)))],
        f"{name}/branch3x3_concat",
    )
    double = net.conv(net.conv(x, f"{name}/branch3x3dbl_1", 448), f"{name}/branch3x3dbl_2", 384, 3)
    double = net.concat(
        [net.conv(double, f"{name}/branch3x3dbl_3{i}", 384, kernel) for i, kernel in (("a", (1, 3)), ("b", (3, 1)))],
        f"{name}/branch3x3dbl_concat",
    )
    return net.concat((one, three, double, _pooled(net, x, name, 192)), f"{name}/concat")


def inception_v3() -> Network:
    """Return Inception v3 without the auxiliary head (torchvision): 5.71 GMAC, 23.8 M parameters.

    Its fifth convolution, Conv2d_4a_3x3, is the 73x73x80 -> 192 3x3 example of `tso_burst_slicing` section VI.
    """
    net = Builder("inception_v3", "Inception v3 without the auxiliary head, 3x299x299 (torchvision)")
    x = net.conv(net.input(1, 3, 299, 299), "Conv2d_1a_3x3", 32, 3, stride=2, pad=0)
    x = net.conv(x, "Conv2d_2a_3x3", 32, 3, pad=0)
    x = net.conv(x, "Conv2d_2b_3x3", 64, 3)
    x = net.pool(x, "maxpool1", "max", 3, 2)
    x = net.conv(x, "Conv2d_3b_1x1", 80)
    x = net.conv(x, "Conv2d_4a_3x3", 192, 3, pad=0)
    x = net.pool(x, "maxpool2", "max", 3, 2)
    for name, filters in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _block_a(net, x, name, filters)
    x = _block_b(net, x, "Mixed_6a")
    for name, inner in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _block_c(net, x, name, inner)
    x = _block_d(net, x, "Mixed_7a")
    for name in ("Mixed_7b", "Mixed_7c"):
        x = _block_e(net, x, name)
    return net.classified(x)


def bert_base_encoder(tokens: int = 128) -> Network:
    """Return the 12 encoder layers (hidden 768, 12 heads, feed-forward 3072): 85.05 M parameters.

    Embeddings and the pooler are left out; the attention mask is not added (it is no trained weight and moves
    nothing of size). 11.2 GMAC for 128 tokens, of which 0.3 G are products of two activations.
    """
    net = Builder("bert_base_encoder", f"BERT-base encoder, 12 layers, {tokens} tokens (Devlin et al. 2018)")
    hidden, heads, inner = 768, 12, 3072
    size = hidden // heads
    x = net.input(1, tokens, hidden)
    for i in range(12):
        name = f"layer{i}"
        split = {}
        for part in ("query", "key", "value"):
            y = net.fc(x, f"{name}.{part}", hidden)
            y = net.reshape(y, f"{name}.{part}.heads", (1, tokens, heads, size))
            split[part] = net.reshape(y, f"{name}.{part}.split", (1, heads, tokens, size), "transpose")
        y = net.matmul(split["query"], split["key"], f"{name}.scores", transpose_b=True)
        y = net.unary(y, "softmax")
        y = net.matmul(y, split["value"], f"{name}.context")
        y = net.reshape(y, f"{name}.context.merge", (1, tokens, heads, size), "transpose")
        y = net.reshape(y, f"{name}.context.join", (1, tokens, hidden))
        y = net.fc(y, f"{name}.attention_output", hidden)
        y = net.eltwise("add", (x, y), f"{name}.attention_add")
        x = net.unary(y, "layer_norm", f"{name}.attention_norm", parameters=2 * hidden)
        y = net.fc(x, f"{name}.intermediate", inner, act="gelu")
        y = net.fc(y, f"{name}.output", hidden)
        y = net.eltwise("add", (x, y), f"{name}.output_add")
        x = net.unary(y, "layer_norm", f"{name}.output_norm", parameters=2 * hidden)
    return net.build()
