"""The encoder of BERT-base (Devlin et al. 2018)."""

from __future__ import annotations

from instances.network.network import Network
from instances.zoo.builder import Builder

__all__ = ["bert_base_encoder"]


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
