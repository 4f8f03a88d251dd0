"""Cases for the adversary of banks: a few stages on maps of one row, a few banks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from formulations.banks.readings import readings
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.feature_maps import Stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Operator, Pool
from tests.adversary.cases import OfNetwork
from tests.adversary.elements import Elements
from tests.adversary.networks import fewer, network_of, with_result


@dataclass(frozen=True)
class Case(OfNetwork):
    """A small network and banks."""

    quick: ClassVar = ("dynamic",)
    slow: ClassVar[tuple[str, ...]] = ("milp", "cp-sat", "min", "min-all", "hide", "double-buffer", "no-reuse")
    rules: ClassVar = ("", "", "", "bank", "weights", "scale")
    least: ClassVar = {
        "columns": 1, "channels": 1, "unread": 0, "writes": 0, "overtakes": 0, "fused": 0, "patches": 0, "streamed": 0,
        "bias": 1, "inner": 0,
    }  # fmt: skip

    columns: int
    channels: int
    """`columns`, `channels`: of the input, which has one row."""
    layers: tuple[tuple[str, tuple[int, ...], int, int, int], ...]
    """(kind, operands, filters, taps, stride); 0 is the input, n the result of layer n; kinds are "conv", "deep"
    (depthwise), "pool", "mean" (of the whole map), "sum" and "join".
    """
    banks: tuple[int, int, int]
    """How many, bytes of one, bytes for weights."""
    unread: bool
    writes: bool
    objective: str
    price: int = 1
    overtakes: bool = False
    """Whether weights overtake loads, where writes take no time."""
    fused: bool = False
    """Whether means are fused with the stages before them."""
    patches: bool = False
    """Whether a first convolution may be a product over patches."""
    streamed: bool = False
    """Whether second operands of sums always come from DRAM."""
    bias: int = 1
    """Bytes of a bias."""
    inner: int = 0
    """The layer whose result is one of the network's although others read it, too; 0: none."""

    @property
    def network(self) -> Network | None:
        """The operators; None if a layer does not fit its operands."""
        return with_result(network_of((1, self.channels, 1, self.columns), self.layers, _operator), self.inner)

    @property
    def least_bytes(self) -> int:
        """What moves at least, counted element by element; patches may come with biases of the first layer."""
        return self.counted.least

    @property
    def counted(self) -> Elements:
        """The elements, without biases that may come with patches."""
        network = self.made
        without = [
            one.model_copy(update={"bias": False})
            if isinstance(one, Conv) and self.patches and one.inputs == ("in",)
            else one
            for one in network.operators
        ]
        machine = self.machine.model_copy(update={"bias_bytes": self.bias})
        return Elements(Network(name=network.name, operators=tuple(without)), machine)

    @property
    def possible(self) -> bool:
        """Whether every layer fits its operands, and some reading of the network has stages."""
        return bool(self.stages)

    @property
    def stages(self) -> list[Stages]:
        """The stages, of every reading of the first layer."""
        if self.network is None:
            return []
        try:
            return list(readings(self.network, self.machine).values())
        except InputError:  # parts of a concatenation that others read as well, and the like
            return []

    def takes(self, engine: str) -> bool:
        """Whether an engine minimises the objective: the solvers know bytes only."""
        return self.objective != "time" or engine not in ("milp", "cp-sat")

    @property
    def machine(self) -> Machine:
        """Banks, one element and a bus with all terms of its price."""
        count, size, weights = self.banks
        banks = {
            "count": count, "map_bytes": count * size, "weight_bytes": weights, "filters": 1, "lanes": 1,
            "stage_cycles": 1, "patch_channels": 2 * self.patches, "writes": "bus" if self.writes else "free",
            "unread": "left" if self.unread else "loaded", "bus": "weights_first" if self.overtakes else "first_come",
            "pool_channels": 9 * self.fused, "first_layer": "either", "residuals": "dram" if self.streamed else "chip",
            "bias_bytes": self.bias,
        }  # fmt: skip
        k = self.price
        transfer = {"model": "lpddr4", "call_ticks": 3 * k, "row_ticks": 2 * k, "row_bytes": 4,
                    "refresh_ticks": k, "refresh_bytes": 8, "byte_ticks": k}  # fmt: skip
        compute = {"model": "array", "rows": 1, "cols": 1, "cycle_ticks": 2 * k}
        return Machine.model_validate({
            "name": "m", "problem": "banks", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1,
            "in_layout": "HWC", "w_layout": "OHWI", "out_layout": "HWC", "banks": banks, "transfer": transfer,
            "compute": compute, "byte_fj": k, "mac_fj": 0,
        })  # fmt: skip

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """One to three stages on maps of two to five columns, two or three banks of a column or two."""
        objective = rng.choice(("bytes", "bytes", "time"))
        columns = rng.randint(2, 5 if objective == "bytes" else 4)
        banks = rng.choice((2, 2, 3, 3, 4)), rng.choice((2, 2, 3, 4, 6)), rng.choice((1, 4, 99))
        case = cls(
            columns, rng.randint(1, 2), (), banks,
            rng.randrange(3) == 0, rng.randrange(2) == 0, objective,
        )  # fmt: skip
        if not case.writes:
            case = replace(case, overtakes=rng.randrange(2) == 0)
        case = replace(
            case, fused=rng.randrange(2) == 0, patches=rng.randrange(2) == 0, streamed=rng.randrange(2) == 0,
            bias=rng.choice((1, 1, 9, 30)) if case.overtakes else 1,
        )  # fmt: skip
        wanted = rng.choice((1, 2, 2, 3) if objective == "bytes" else (1, 1, 2))
        for _ in range(20):
            if len(case.layers) >= wanted:
                break
            number = len(case.layers)
            kind = rng.choice(("conv", "conv", "conv", "deep", "pool", "mean", "sum", "join"))
            alone = number == 0 or kind in ("conv", "deep", "pool", "mean")
            operands = (number,) if alone else tuple(rng.sample(range(number + 1), 2))
            if rng.randrange(4) == 0 and len(operands) == 1:
                operands = (rng.randint(0, number),)
            one = kind, operands, rng.randint(1, 2), rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 1, 2))
            more = replace(case, layers=(*case.layers, one))
            if more.network is not None:
                case = more
        return replace(case, inner=rng.randint(1, max(1, len(case.layers) - 1)) if rng.randrange(3) == 0 else 0)

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Other prices, or more banks or bytes."""
        count, size, weights = self.banks
        if self.rule == "scale":
            return replace(self, price=3), value * (3 if self.objective == "time" else 1)
        if self.rule == "weights" and self.objective == "time":
            return None  # weights that fit come all at once ahead of the stage: not always sooner
        more = (count + 1, size, weights) if self.rule == "bank" else (count, size, weights + 1)
        return replace(self, banks=more), None

    def simpler(self) -> Iterator[Self]:
        """Without a layer, with smaller layers or banks."""
        yield from (replace(self, layers=layers) for layers in fewer(self.layers))
        for k, (kind, operands, *sizes) in enumerate(self.layers):
            for n, size in enumerate(sizes):
                if size > 1:
                    less = (kind, operands, *sizes[:n], size - 1, *sizes[n + 1 :])
                    yield replace(self, layers=(*self.layers[:k], less, *self.layers[k + 1 :]))  # type: ignore[arg-type]
        for n, size in enumerate(self.banks):
            if size > 1:
                yield replace(self, banks=(*self.banks[:n], size - 1, *self.banks[n + 1 :]))  # type: ignore[arg-type]


def _operator(
    name: str, kind: str, before: Sequence[Operator], filters: int, taps: int, stride: int
) -> Operator | None:
    shape, inputs = before[0].shape, tuple(one.name for one in before)
    if kind == "sum":
        alike = len(before) == 2 and before[1].shape == shape
        return Eltwise(name=name, inputs=inputs, shape=shape, fn="add") if alike else None
    if kind == "join":
        alike = len(before) == 2 and before[1].shape[2:] == shape[2:]
        whole = (1, sum(one.shape[1] for one in before), *shape[2:])
        return Concat(name=name, inputs=inputs, shape=whole, axis=1) if alike else None
    if kind == "mean":
        return Pool(name=name, inputs=inputs, shape=(1, shape[1], 1, 1), fn="global_avg")
    pad = (taps - 1) // 2, taps - 1 - (taps - 1) // 2
    width = (shape[3] - 1) // stride + 1
    sizes = {"kernel": (1, taps), "stride": (1, stride), "pad": (0, pad[0], 0, pad[1])}
    if kind == "pool":
        return Pool.model_validate(
            {"name": name, "inputs": inputs, "shape": (1, shape[1], 1, width), "fn": "max", **sizes}
        )
    groups = shape[1] if kind == "deep" and shape[1] > 1 else 1
    filters = groups if groups > 1 else filters
    return Conv.model_validate({
        "name": name, "inputs": inputs, "shape": (1, filters, 1, width), "filters": filters, "groups": groups,
        "bias": True, **sizes,
    })  # fmt: skip
