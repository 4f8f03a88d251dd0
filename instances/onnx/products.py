"""ONNX products of two tensors (Einsum, MatMul and Gemm that are no plain matrix product), attention, and norms.

**Products.** Every letter of ``ab,bc->ac`` is an axis. Letters of both operands and the result count independent
products (*batch*), letters of both operands only are summed over; what is left makes the *rows* (of the first operand)
and the *columns* (of the second). So a product is transposes and one

* `MatMul` with constant weights, where the second operand is constant and there is no batch;
* 1x1 `Conv` with a group for every product, where it is constant and there is;
* `MatMul` of two inputs otherwise;
* `Eltwise` multiplication, where nothing is summed over.

**Attention** (opset 23) is a product of queries and keys, a softmax of every row, and a product with the values. Heads
that share keys are rows of one product, so that no key is repeated.

**Norms** are one operator with its scale and shift where these are constants, which the host computes. A scale or shift
that is computed of the data is multiplied and added behind the norm, by layers of two operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters

import numpy as np

from instances.network.operators import Eltwise, MatMul, Shape
from instances.onnx.graph import Graph, Node, Unsupported
from instances.onnx.steps import Means, Steps, Window

#: Stands for an axis of size 1 that is dropped.
DROPPED = "."
#: A product whose right operand is transposed.
PRODUCT_TURNED = Means("Einsum", (), {"equation": "...ij,...kj->...ik"})


class _Product:
    """A product of two tensors, of which the second may be constant: letters of both and of the result, and sizes."""

    def __init__(self, node: Node, graph: Graph, tensors: Sequence[str], terms: Sequence[str]) -> None:
        self.steps, self.graph, self.tensors = Steps(node, graph), graph, tensors
        self.terms, self.out = terms[:2], terms[2]
        one, two, out = terms
        self.sizes = self._checked()
        #: What counts products, what is summed over, what only the first operand has, what only the second.
        self.batch = "".join(x for x in out if x in one and x in two)
        self.summed = "".join(x for x in one if x in two and x not in out)
        self.rows = "".join(x for x in out if x not in two)
        self.columns = "".join(x for x in out if x not in one)

    def _checked(self) -> dict[str, int]:
        """The sizes of all letters; raises Unsupported for what is no product of two operands."""
        (one, two), out, sizes = self.terms, self.out, dict[str, int]()
        for term, tensor in zip(self.terms, self.tensors, strict=True):
            letters = term.replace(DROPPED, "")
            if len(set(letters)) != len(letters):
                raise Unsupported("a letter twice in one operand")
            for letter, size in zip(term, self.graph.known.shapes.get(tensor) or (), strict=True):
                if letter != DROPPED and sizes.setdefault(letter, size) != size:
                    raise Unsupported(f"axis {letter} has sizes {sizes[letter]} and {size}")
        if any(x not in out and (x in one) != (x in two) for x in sizes):
            raise Unsupported("a sum over one operand alone")
        if len(set(out)) != len(out) or set(out) - set(sizes):
            raise Unsupported("a result with letters that its operands do not have")
        return sizes

    def size(self, letters: str) -> int:
        """Return the elements of some axes."""
        return prod(self.sizes[x] for x in letters)

    def make(self, bias: str, factor: float) -> None:
        """Add the operators; the product is multiplied by a factor, and `bias` is added."""
        constant = self.graph.is_constant(self.tensors[1]) and self.tensors[1] not in self.graph.makers
        if not self.summed:
            made, letters = self._elementwise()
        elif not constant:
            made, letters = self._of_two_inputs()
        elif self.batch:
            made, letters = self._grouped()
        else:
            one = self._arranged(0, [*self.rows] or [""], self.summed)
            means = Means("MatMul", [self._weights(self.summed, self.columns)])
            made = self.steps.add(MatMul, [one], means=means, out_features=self.size(self.columns))
            self.graph.weigh(made, self.tensors[1])
            letters = self.rows + self.columns
        made = self.steps.times(made, factor, "alpha")
        made = self.steps.bias(self._ordered(made, letters), bias)
        self.steps.finish(made)

    def _arranged(self, which: int, *groups: str | list[str]) -> str:
        """Return an operand with one axis for every group of letters."""
        source = self.steps.source(self.tensors[which])
        axes = [x for group in groups for x in ([group] if isinstance(group, str) else group)]
        suffix = "ab"[which]
        kept = self.terms[which].replace(DROPPED, "")
        source = self.steps.move(source, [self.sizes[x] for x in kept] or [1], suffix)
        if kept:
            source = self.steps.permute(source, [kept.index(x) for x in "".join(axes)], suffix)
        return self.steps.move(source, [self.size(x) for x in axes], suffix)

    def _weights(self, *groups: str) -> str:
        """The second operand, which is constant, with one axis for every group of letters."""
        kept = self.terms[1].replace(DROPPED, "")
        order = [kept.index(x) for group in groups for x in group]
        sizes, shape = [self.sizes[x] for x in kept], [self.size(group) for group in groups]
        return self.steps.derive("W", lambda w: w.reshape(sizes).transpose(order).reshape(shape), self.tensors[1])

    def _ordered(self, source: str, letters: str) -> str:
        source = self.steps.move(source, [self.sizes[x] for x in letters] or [1], "split")
        if not letters:
            return source
        return self.steps.permute(source, [letters.index(x) for x in self.out], "order")

    def _of_two_inputs(self) -> tuple[str, str]:
        # The second operand stays as it lies where only its last two axes would change places.
        left = [x for x in self.terms[1] if x in self.columns + self.summed]
        swapped = bool(left) and left[-1] in self.summed
        second = (self.columns, self.summed) if swapped else (self.summed, self.columns)
        one = self._arranged(0, [*self.batch], self.rows, self.summed)
        two = self._arranged(1, [*self.batch], *second)
        means = PRODUCT_TURNED if swapped else Means("MatMul")
        made = self.steps.add(MatMul, [one, two], means=means, transpose_b=swapped)
        return made, self.batch + self.rows + self.columns

    def _grouped(self) -> tuple[str, str]:
        groups = self.size(self.batch)
        one = self._arranged(0, self.batch + self.summed, self.rows)
        channels, rows = self.steps.shape(one)
        one = self.steps.move(one, (1, channels, rows, 1), "map")
        filters = groups * self.size(self.columns)
        weights = self._weights(self.batch + self.columns, self.summed)
        flat = self.steps.derive("W", lambda w: w.reshape(*w.shape, 1, 1), weights)
        made = self.steps.conv(one, flat, self.tensors[1], (Window(), Window()), filters, groups)
        return made, self.batch + self.columns + self.rows

    def _elementwise(self) -> tuple[str, str]:
        inputs = []
        for which, term in enumerate(self.terms):
            mine = self._arranged(which, [x for x in self.out if x in term] or [""])
            inputs.append(
                self.steps.move(mine, [self.sizes[x] if x in term else 1 for x in self.out] or [1], "ab"[which])
            )
        return self.steps.add(Eltwise, inputs, means=Means("Mul"), fn="mul"), self.out


def contract(
    node: Node, graph: Graph, tensors: Sequence[str], terms: Sequence[str], bias: str = "", factor: float = 1.0
) -> None:  # fmt: skip
    """Add the operators of a product of two tensors; `terms` are the letters of both and of the result.

    The product is multiplied by `factor` before `bias` is added.
    """
    (a, b), (one, two, out) = tensors, terms
    if graph.is_constant(a):
        a, b, one, two = b, a, two, one
    _Product(node, graph, (a, b), (one, two, out)).make(bias, factor)


def einsum(node: Node, graph: Graph) -> None:
    """Convert Einsum of two operands."""
    equation = node.text("equation", "").replace(" ", "")
    ranks = [graph.rank(tensor) for tensor in node.proto.input]
    terms, out = letters_of(equation, ranks)
    if len(terms) != 2:
        raise Unsupported(
            f"a product of {len(terms)} operands" if len(terms) > 2 else "a sum or diagonal of one operand"
        )
    contract(node, graph, list(node.proto.input), (*terms, out))


def letters_of(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the terms of an equation and its result's, with letters for ``...``."""
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"equation {equation[:60]!r} has {len(terms)} operands, the node {len(ranks)}")
    free = [x for x in ascii_letters if x not in equation]
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max([0, *(n for n, term in zip(hidden, terms, strict=True) if "..." in term)])
    if any(n < 0 or (n and "..." not in term) for n, term in zip(hidden, terms, strict=True)) or most > len(free):
        raise ValueError(f"equation {equation[:60]!r} does not fit operands of {list(ranks)} dimensions")
    ellipsis = "".join(free[:most])
    found = [term.replace("...", ellipsis[most - n :]) for term, n in zip(terms, hidden, strict=True)]
    if not arrow:
        plain = left.replace(",", "").replace("...", "")
        out = "..." + "".join(sorted(x for x in set(plain) if plain.count(x) == 1))
    return found, out.replace("...", ellipsis)


def matmul_terms(one: Shape, two: Shape) -> tuple[str, str, str]:
    """Return the letters of MatMul: matrices, vectors, and axes before them that are broadcast."""
    if not one or not two:
        raise ValueError("a single number as operand")
    lead = max(len(one), len(two), 2) - 2
    letters = ascii_letters[:lead]
    terms = []
    for shape, matrix in ((one, "YZ"), (two, "ZW")):
        term = matrix if len(shape) > 1 else "Z"
        mine = letters[lead - (len(shape) - len(term)) :]
        terms.append((mine, term, dict(zip(mine, shape, strict=False))))
    (a, first, sizes_a), (b, second, sizes_b) = terms
    a = "".join(DROPPED if sizes_a[x] == 1 and sizes_b.get(x, 1) > 1 else x for x in a)
    b = "".join(DROPPED if sizes_b[x] == 1 and x in sizes_a else x for x in b)
    out = "".join(x for x in letters if x in a or x in b) + first.replace("Z", "") + second.replace("Z", "")
    return a + first, b + second, out


#: Dimensions where heads are an axis of their own: batch, heads, tokens, features.
_APART = 4
_MASK, _PAST, _LENGTHS = 3, 4, 6


def attention(node: Node, graph: Graph) -> None:
    """Convert Attention of three or four dimensions, with a mask, and with keys and values of tokens before."""
    steps, given = Steps(node, graph), node.proto.input
    if len(given) > _LENGTHS and given[_LENGTHS]:
        raise Unsupported("sequences of different lengths")
    if any(o and graph.readers[o] for o in node.proto.output[3:]):
        raise Unsupported("its products are used")
    queries = _heads(steps, node.input(0), node.integer("q_num_heads", 0), "q")
    both = []
    for which, suffix in ((1, "k"), (2, "v")):
        made, past = _heads(steps, node.input(which), node.integer("kv_num_heads", 0), suffix), node.input(which + 3)
        if past:
            made = steps.concat([steps.source(past), made], suffix, axis=2)
        present = node.proto.output[which] if which < len(node.proto.output) else ""
        if present and graph.readers[present]:
            steps.finish(made, tensor=present)
        both.append(made)
    made = _product(steps, queries, *both)
    if graph.rank(node.input(0)) != _APART:
        made = steps.permute(made, (0, 2, 1, 3), "order")
    steps.finish(made, graph.shape(node.output))


def _heads(steps: Steps, tensor: str, number: int, suffix: str) -> str:
    """Return an operand with an axis of its heads: batch, heads, tokens, features."""
    source = steps.source(tensor)
    shape = steps.shape(source)
    if len(shape) == _APART:
        return source
    batch, tokens, features = shape
    if number < 1 or features % number:
        raise Unsupported(f"{number} heads of {features} features")
    return steps.permute(steps.move(source, (batch, tokens, number, features // number), suffix), (0, 2, 1, 3), suffix)


def _product(steps: Steps, queries: str, keys: str, values: str) -> str:
    (batch, heads, tokens, features), shared = steps.shape(queries), steps.shape(keys)[1]
    if heads % shared:
        raise Unsupported(f"{heads} heads of queries and {shared} of keys")
    together = heads // shared * tokens
    queries = steps.move(queries, (batch, shared, together, features), "q")
    scores = steps.add(MatMul, [queries, keys], "scores", PRODUCT_TURNED, transpose_b=True)
    scores = steps.times(scores, steps.node.number("scale", 0) or features**-0.5, "scale")
    if (cap := steps.node.number("softcap", 0)) > 0:
        scores = steps.times(scores, 1 / cap, "softcap")
        scores = steps.times(steps.add(Eltwise, [scores], "softcap", Means("Tanh"), fn="tanh"), cap, "softcap")
    before = steps.shape(keys)[2]
    scores = _masked(steps, scores, (batch, heads, tokens, before))
    scores = steps.add(Eltwise, [scores], "softmax", Means("Softmax", (), {"axis": -1}), fn="softmax")
    scores = steps.move(scores, (batch, shared, together, before), "scores")
    made = steps.add(MatMul, [scores, values], means=Means("MatMul"))
    return steps.move(made, (batch, heads, tokens, steps.shape(values)[3]), "heads")


def _masked(steps: Steps, scores: str, shape: Shape) -> str:
    """Add the mask, and minus infinity for keys that come after a query."""
    mask, causal = steps.node.input(_MASK), bool(steps.node.integer("is_causal", 0))
    known = [mask] if mask and steps.graph.is_constant(mask) else []
    if not mask and not causal:
        return scores
    scores = steps.move(scores, shape, "scores")
    if mask and not known:
        scores = steps.add(Eltwise, [scores, steps.source(mask)], "mask", Means("Add"), fn="add")
    if not known and not causal:
        return scores
    tokens, keys = shape[2:]
    cached = steps.graph.shape(steps.node.input(_PAST))[2] if steps.node.input(_PAST) else 0
    reach = cached if causal else keys

    def addend(*given: np.ndarray) -> np.ndarray:
        made = np.where(np.tri(tokens, keys, reach), np.float32(0), np.float32(-np.inf))
        for one in given:
            made = made + (np.where(one, np.float32(0), np.float32(-np.inf)) if one.dtype == bool else one)
        return made

    constant = steps.derive("mask", addend, *known)
    return steps.add(Eltwise, [scores], "mask" if known else "causal", Means("Add", [constant]), fn="add")


#: Operator -> our function of one tensor.
NORMS = {
    "GroupNormalization": "group_norm", "InstanceNormalization": "instance_norm", "LayerNormalization": "layer_norm",
    "RMSNormalization": "rms_norm",
}  # fmt: skip
#: Whose scale has a number for every channel or group, not for every element of a row.
_BY_CHANNEL = frozenset(("GroupNormalization", "InstanceNormalization"))
_AXES = (0, 2, 3)
#: MeanVarianceNormalization adds 1e-9 to the deviation, so its square to the variance.
_LEAST_VARIANCE = 1e-18


def norm(node: Node, graph: Graph) -> None:
    """Convert a norm with a scale and a shift, constants or not."""
    steps, shape = Steps(node, graph), graph.shape(node.input(0))
    groups = node.integer("num_groups", 0) if node.op == "GroupNormalization" else 1
    if groups < 1 or (node.op in _BY_CHANNEL and shape[1] % groups):
        raise Unsupported(f"{groups} groups of {shape[1]} channels")
    given = [tensor for tensor in node.proto.input[1:3] if tensor]
    source, inside = steps.source(node.input(0)), _scaled(node, graph)
    if all(graph.is_constant(tensor) and _spreads(graph.shape(tensor), inside) for tensor in given):
        parameters = graph.count(given)
        steps.finish(steps.add(Eltwise, [source], fn=NORMS[node.op], parameters=parameters))
        return
    constants = [steps.derive("one", lambda: np.ones(inside, np.float32))]
    if node.op in _BY_CHANNEL:
        constants.append(steps.derive("zero", lambda: np.zeros(inside, np.float32)))
    named = {"num_groups": groups} if node.op == "GroupNormalization" else {"axis": node.integer("axis", -1)}
    attributes = {"epsilon": node.number("epsilon", 1e-5), **(named if node.op != "InstanceNormalization" else {})}
    made = steps.add(Eltwise, [source], "norm", Means(node.op, constants, attributes), fn=NORMS[node.op])
    for tensor, op in ((node.input(1), "Mul"), (node.input(2), "Add")):
        if not tensor:
            continue
        operand = steps.source(tensor, operand=True)
        if node.op in _BY_CHANNEL:  # channels, or groups of channels, in the middle
            made = steps.move(made, (shape[0], *inside, prod(shape[1:]) // inside[0]), op.lower())
            operand = steps.move(operand, (1, *inside, 1), f"{op.lower()}.by")
        parameters = graph.count([tensor]) if graph.is_constant(tensor) else 0
        made = steps.add(Eltwise, [made, operand], op.lower(), Means(op), fn=op.lower(), parameters=parameters)
    steps.finish(made)


def _scaled(node: Node, graph: Graph) -> Shape:
    """The shape of the scale: as given by channel or group, else that of a row.

    Up to opset 20 a GroupNormalization has one for every group, since then for every channel.
    """
    if node.op in _BY_CHANNEL:
        return graph.shape(node.input(1))
    shape = graph.shape(node.input(0))
    return shape[node.integer("axis", -1) % len(shape) :]


def _spreads(small: Shape, shape: Shape) -> bool:
    """Whether a tensor can be broadcast to a shape."""
    try:
        return np.broadcast_shapes(small, shape) == shape
    except ValueError:
        return False


def mean_variance(node: Node, graph: Graph) -> None:
    """Convert MeanVarianceNormalization: a norm of rows without a scale, where the axes are the last ones."""
    steps, rank = Steps(node, graph), graph.rank(node.input(0))
    axes = sorted({axis % rank for axis in node.integers("axes") or _AXES})
    kept = [axis for axis in range(rank) if axis not in axes]
    order = [*kept, *axes]
    source = steps.permute(steps.source(node.input(0)), order, "in")
    row = steps.shape(source)[len(kept) :]
    means = Means(
        "LayerNormalization", [steps.derive("one", lambda: np.ones(row, np.float32))],
        {"axis": len(kept), "epsilon": _LEAST_VARIANCE},
    )  # fmt: skip
    made = steps.add(Eltwise, [source], means=means, fn="layer_norm")
    steps.finish(steps.permute(made, [order.index(axis) for axis in range(rank)], "order"))
