"""Random networks for the public simulator: small enough to follow every cycle, with paths that branch and meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

__all__ = ["Case", "forked", "plain"]

Operators = list[dict[str, Any]]
Kernel = int | tuple[int, int]
KERNELS: list[Kernel] = [1, 3, 3, 5, (1, 3), (3, 1)]
WIDE: list[Kernel] = [3, (1, 3)]
ANY: list[Kernel] = [1, 3, (1, 3)]


@dataclass(frozen=True)
class Case:
    """A network and the banks to plan it for.

    Attributes
    ----------
    banks : int
        Of feature maps.
    bank_kib, weight_kib : float
        Of one bank, and of each of the 32 banks of weights.
    """

    network: dict[str, Any]
    banks: int
    bank_kib: float
    weight_kib: int

    @property
    def settings(self) -> dict[str, str]:
        """The machine, as ``--set`` says it."""
        return {
            "banks.count": str(self.banks),
            "banks.map_bytes": str(int(self.bank_kib * 1024) * self.banks),
            "banks.weight_bytes": str(self.weight_kib * 1024 * 32),
        }


@dataclass
class _Builder:
    """Operators one after the other; results are named by what made them."""

    random: Random
    operators: Operators = field(default_factory=list)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    number: int = 0

    def input(self, size: int) -> str:
        """Three channels of size x size pixels."""
        self.shapes["input"] = [1, 3, size, size]
        self.operators.append({"op": "input", "name": "input", "shape": self.shapes["input"]})
        return "input"

    def add(self, letter: str, op: str, inputs: list[str], shape: list[int], **more: object) -> str:
        """One operator."""
        name = f"{letter}{self.number}"
        self.operators.append({"op": op, "name": name, "inputs": inputs, "shape": shape, **more})
        self.shapes[name] = shape
        return name

    def conv(self, of: str, filters: int, kernel: Kernel = 1, stride: int = 1, *, lanes: bool = False) -> str:
        """A convolution with ReLU; one channel by another if `lanes`."""
        self.number += 1
        _, channels, rows, columns = self.shapes[of]
        high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
        pad = [high // 2, wide // 2]
        filters = channels if lanes else filters
        shape = [1, filters, (rows + 2 * pad[0] - high) // stride + 1, (columns + 2 * pad[1] - wide) // stride + 1]
        grouped = {"groups": channels} if lanes else {}
        name = self.add(
            "c", "conv", [of], shape, filters=filters, kernel=[high, wide], stride=[stride, stride], pad=pad + pad,
            batch_norm=True, **grouped,
        )  # fmt: skip
        self.operators.append({"op": "eltwise", "name": f"{name}.relu", "inputs": [name], "shape": shape, "fn": "relu"})
        self.shapes[f"{name}.relu"] = shape
        return f"{name}.relu"

    def sum(self, one: str, other: str) -> str:
        """Two maps, added up."""
        self.number += 1
        return self.add("a", "eltwise", [one, other], self.shapes[other], fn="add")

    def concat(self, parts: list[str]) -> str:
        """Maps side by side."""
        self.number += 1
        first = self.shapes[parts[0]]
        return self.add("k", "concat", parts, [1, sum(self.shapes[part][1] for part in parts), *first[2:]])

    def pool(self, of: str) -> str:
        """A maximum over 3 x 3 pixels, every other one."""
        self.number += 1
        _, channels, rows, columns = self.shapes[of]
        shape = [1, channels, (rows - 1) // 2 + 1, (columns - 1) // 2 + 1]
        return self.add("p", "pool", [of], shape, fn="max", kernel=[3, 3], stride=[2, 2], pad=[1, 1, 1, 1])

    # ---- blocks ------------------------------------------------------------------------------------------------

    def chain(self, of: str) -> str:
        """Some convolutions."""
        for _ in range(self.random.randint(1, 3)):
            filters, kernel = self.filters(), self.random.choice(KERNELS)
            of = self.conv(of, filters, kernel, self.random.choice([1, 1, 2]) if self.shapes[of][2] > 8 else 1)
        return of

    def residual(self, of: str) -> str:
        """Two convolutions beside nothing."""
        made = self.conv(of, self.filters(), self.random.choice([1, 3]))
        return self.sum(of, self.conv(made, self.shapes[of][1], self.random.choice([1, 3])))

    def inverted(self, of: str) -> str:
        """An inverted residual."""
        channels = self.shapes[of][1]
        made = self.conv(self.conv(of, channels * 2), 0, 3, lanes=True)
        return self.sum(of, self.conv(made, channels))

    def branches(self, of: str) -> str:
        """Two or three paths side by side."""
        parts = []
        for path in range(self.random.randint(2, 3)):
            made = self.conv(of, self.random.choice([16, 32, 64]), 1)
            for _ in range(self.random.randint(0, 1) + (path > 0)):
                made = self.conv(made, self.random.choice([16, 32, 64]), self.random.choice(WIDE))
            parts.append(made)
        return self.concat(parts)

    def narrow(self, of: str) -> str:
        """A pool, if that leaves more than a few pixels."""
        return self.pool(of) if self.shapes[of][2] > 6 else of

    def filters(self) -> int:
        """Some filters."""
        return self.random.choice([16, 32, 48, 64, 96])

    # ---- forks inside forks --------------------------------------------------------------------------------------

    def fork(self, of: str, deep: int) -> str:
        """Paths that fork again, each inside itself or up to where all meet."""
        if self.random.random() < 0.3:
            path = self.path(of, deep - 1)
            return self.sum(self.conv(of, self.shapes[path][1]), path)
        parts: list[str] = []
        for _ in range(self.random.randint(2, 4)):
            made = self.path(of, deep - 1)
            if self.random.random() < 0.3:
                parts += [self.conv(made, 16, (1, 3)), self.conv(made, 32, (3, 1))]
            else:
                parts.append(made)
        return self.concat(parts)

    def path(self, of: str, deep: int) -> str:
        """One path of a fork; what it ends with nothing else reads."""
        made = self.conv(of, self.random.choice([16, 32, 64]), self.random.choice([1, 1, 3]))
        for _ in range(self.random.randint(0, 2)):
            if deep and self.random.random() < 0.5:
                blocks: list[Callable[[str], str]] = [self.residual, lambda of: self.fork(of, deep)]
                made = self.conv(self.random.choice(blocks)(made), self.filters())
            else:
                made = self.conv(made, self.random.choice([16, 32, 64]), self.random.choice(ANY))
        return made

    def case(self, name: str) -> Case:
        """The network so far, and banks that hold three columns at least."""
        shapes = (shape for made, shape in self.shapes.items() if made != "input")
        column = max(192, *(rows * -(-channels // 64) * 64 for _, channels, rows, _ in shapes))
        banks = self.random.choice([3, 4, 4, 5, 6, 8])
        kib = -(-column * self.random.choice([3, 4, 5, 7]) // 256) / 4
        network = {
            "name": name, "description": "random", "operators": self.operators,
        }  # fmt: skip
        return Case(network, banks, kib, self.random.choice([1, 2, 4, 9]))


def plain(seed: int) -> Case:
    """Return a chain of residuals, inverted residuals, paths side by side and pools."""
    random = Random(seed)
    builder = _Builder(random)
    made = builder.input(random.choice([16, 20, 24, 28, 32, 33]))
    made = builder.conv(made, builder.filters(), random.choice([1, 3, 5]), random.choice([1, 2]))
    blocks: list[Callable[[str], str]] = [
        builder.chain, builder.residual, builder.branches, builder.narrow, builder.inverted,
    ]  # fmt: skip
    for _ in range(random.randint(2, 4)):
        made = random.choice(blocks)(made)
    builder.conv(made, 64, 1)
    return builder.case(f"plain{seed}")


def forked(seed: int) -> Case:
    """Return a network with forks inside forks."""
    random = Random(seed)
    builder = _Builder(random)
    made = builder.input(random.choice([8, 12, 16, 20]))
    made = builder.conv(made, builder.filters(), 3)
    for _ in range(random.randint(1, 2)):
        made = builder.conv(builder.fork(made, 2), builder.filters(), random.choice([1, 3]))
    return builder.case(f"forked{seed}")
