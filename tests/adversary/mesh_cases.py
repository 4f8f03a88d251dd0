"""Cases for the adversary of mesh: a layer of a few elements on a mesh or an array."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from instances.machine.machine import Machine
from instances.network.workload import DIMS, Layer
from tests.adversary import cases
from tests.adversary.cases import widths


@dataclass(frozen=True)
class Case(cases.Case):
    """A layer on a mesh or an array."""

    quick: ClassVar = ("exhaustive",)
    slow: ClassVar = ("greedy", "cp-sat", "milp", "milp-cbc", "hand", "no-sharing")
    rules: ClassVar = ("", "", "", "", "", "", "buffer", "rate", "free")

    kind: str
    layer: tuple[tuple[str, int], ...]
    mesh: tuple[tuple[str, int], ...]
    """`layer`, `mesh`: pairs of names and numbers, what is not named is 1 (a layer) or as in `machine`."""
    bytes: tuple[int, int, int, int]
    """Of an element of IN, W, OUT and of a partial sum."""
    measure: str
    pins: tuple[str, ...] = ()

    @cached_property
    def workload(self) -> Layer:
        """The layer; its map is as large as its windows reach."""
        sizes = {"b": 1, "g": 1, "m": 1, "n": 1, "r": 1, "c": 1, "kh": 1, "kw": 1, **dict(self.layer)}
        high = (sizes["r"] - 1) * sizes.get("stride_h", 1) + sizes["kh"] - sizes.get("pad_top", 0)
        return Layer.model_validate({"name": "x", **sizes, "h": max(1, high), "l": sizes["c"] + sizes["kw"] - 1})

    @cached_property
    def machine(self) -> Machine:
        """2 x 2 units of two PEs, or an array of 2 x 2, if nothing else is said."""
        mesh: dict[str, object] = {
            "kind": self.kind, "rows": 2, "cols": 2, "global_bytes": 64, "copies": 1, "dram_bytes_per_cycle": 2,
            "global_bytes_per_cycle": 4,
        }  # fmt: skip
        if self.kind == "teu":
            mesh |= {"pes": 2, "banks": 4, "input_buffer_bytes": 8, "psum_buffer_bytes": 16}
        elif self.kind == "row_stationary":
            mesh["local_bytes"] = 24
        return Machine.model_validate({
            "name": "tiny", "problem": "mesh", "tick_ps": 5000, "transfer": {}, "mesh": mesh | dict(self.mesh),
            **widths(self.bytes),
        })  # fmt: skip

    @classmethod
    def drawn(cls, rng: random.Random) -> Case:
        """A layer of a few elements on a mesh of 2 x 2 units or one of both arrays."""
        kind = rng.choice(("teu", "teu", "teu", "systolic", "row_stationary"))
        sizes: dict[str, int] = {}
        for d in rng.sample(("m", "n", "r", "c", "b", "g"), rng.choice((1, 2, 2, 3))):
            sizes[d] = rng.randint(2, 4 if len(sizes) < 2 else 2)
        if "r" in sizes and rng.randrange(2):
            sizes |= {"kh": rng.choice((2, 3)), "stride_h": rng.choice((1, 1, 2))}
            sizes["pad_top"] = rng.randint(0, sizes["kh"] - 1)
        if "c" in sizes and rng.randrange(4) == 0:
            sizes["kw"] = 2
        mesh = {"rows": rng.randint(1, 2), "cols": rng.randint(1, 3), "dram_bytes_per_cycle": rng.choice((1, 2, 8))}
        if kind == "teu":
            mesh |= {
                "pes": rng.choice((1, 2, 2, 4)),
                "input_buffer_bytes": rng.randint(3, 14),
                "copies": rng.randint(1, 2),
            }
            mesh["psum_buffer_bytes"] = rng.randint(3, 24)
            if rng.randrange(4) == 0:  # wide tiles, whose vectors meet in banks if they are laid out badly
                sizes = {d: rng.randint(2, 4) for d in rng.sample(("r", "c", "m"), 2)}
                mesh |= {"pes": 4, "input_buffer_bytes": rng.randint(8, 28), "copies": 1, "psum_buffer_bytes": 64}
        else:
            mesh["global_bytes"] = rng.randint(3, 60)
            mesh |= {"local_bytes": rng.randint(3, 24)} if kind == "row_stationary" else {}
        widths = rng.choice((1, 1, 2)), rng.choice((1, 1, 2)), rng.choice((1, 2)), rng.choice((1, 2, 4))
        case = Case(
            kind, tuple(sizes.items()), tuple(mesh.items()), widths, rng.choice(("dram", "glb", "time")),
        )  # fmt: skip
        if rng.randrange(4) == 0:
            d = rng.choice([d for d in sizes if d in DIMS] or ["m"])
            pin = f"T_{d.upper()}{rng.choice(('<=', '>=', '='))}{rng.randint(1, max(1, sizes.get(d, 1)))}"
            more = ["keep=none", "keep!=none", "keep=W", *(["share=IN", "share!=both"] if kind == "teu" else [])]
            case = replace(case, pins=(rng.choice((pin, pin, rng.choice(more))),))
        return case

    def ruled(self, value: int, schedule: Any) -> tuple[Self, int | None] | None:
        """Larger buffers, a higher rate, or no pins."""
        grown = {
            "buffer": ("input_buffer_bytes", "psum_buffer_bytes", "global_bytes", "local_bytes"),
            "rate": ("dram_bytes_per_cycle",), "free": (),
        }[self.rule]  # fmt: skip
        mesh = tuple((name, number + (name in grown)) for name, number in self.mesh)
        return replace(self, mesh=mesh, pins=() if self.rule == "free" else self.pins), None

    def simpler(self) -> Iterator[Self]:
        """With fewer elements, bytes or units."""
        for name in ("layer", "mesh"):
            pairs = getattr(self, name)
            for k, (key, value) in enumerate(pairs):
                low = 0 if key == "pad_top" else 1
                for less in (
                    ([value - 1] if value > low else []) if key != "pes" else ([value // 2] if value > 1 else [])
                ):
                    made = (*pairs[:k], (key, less), *pairs[k + 1 :])
                    yield replace(self, layer=made) if name == "layer" else replace(self, mesh=made)
        if self.bytes != (1, 1, 1, 1):
            yield replace(self, bytes=(1, 1, 1, 1))
