"""Mesh: engines against every choice of the variables, none left out, priced here a second time.

All tiles of a layer on a mesh are one grid, an axis for every index; bytes and cycles are products of tables worked out
by loops over tiles; all sides, PE vectors and ways to keep are gone through. Layouts are `layout_of`'s, which
tests/formulations/test_mesh.py compares with every bit assignment. For arrays all options of all groups are multiplied
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from formulations.mesh.finish import layout_of
from formulations.mesh.price import DECISIONS, KEEPS, Linear, caps_of, linear_of, price, setup_of, terms_of
from formulations.mesh.problem import keeps
from formulations.pins import parse_pins
from hwmodels.schedule import SHARES, Choice
from instances.machine.machine import Machine
from instances.machine.mesh import Mesh
from instances.network.ndrange import Axis, ndrange
from instances.network.workload import DIMS, Layer
from tests.effort import thinned, tries
from tests.mesh_answers import answer

Ints = NDArray[np.int64]
EXACT = ("exhaustive", "cp-sat", "milp", "milp-cbc")


def mesh_machine(kind: str = "teu", **changes: object) -> Machine:
    """2 x 2 units with 4 PEs each, or an array of 2 x 3; one byte for everything but partial sums."""
    mesh = {"kind": kind, "rows": 2, "cols": 2, "global_bytes": 64, "copies": 1, "dram_bytes_per_cycle": 2,
            "global_bytes_per_cycle": 4}  # fmt: skip
    mesh |= {
        "teu": {"pes": 4, "banks": 4, "input_buffer_bytes": 32, "psum_buffer_bytes": 16},
        "systolic": {"cols": 3}, "row_stationary": {"cols": 3, "local_bytes": 40},
    }[kind]  # fmt: skip
    return Machine.model_validate({
        "name": "tiny", "problem": "mesh", "tick_ps": 5000, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1,
        "psum_bytes": 4, "transfer": {}, "mesh": {**mesh, **changes},
    })  # fmt: skip


# ---- the reference for meshes ----------------------------------------------------------------------------------------


class Grid:
    """All tiles of a layer; tables have an axis for every index, of length 1 where they do not depend on it."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self.layer, self.machine, self.workload = layer, machine, ndrange(layer)
        assert machine.mesh is not None
        self.mesh: Mesh = machine.mesh
        self.sizes = [self.workload.sizes[d] for d in DIMS]

    def table(self, dims: str, entry: Callable[..., int]) -> Ints:
        """``entry(tile along each of dims)``."""
        lengths = [self.workload.sizes[d] for d in dims]
        found = [entry(*tiles) for tiles in product(*(range(1, n + 1) for n in lengths))]
        return np.array(found, dtype=np.int64).reshape([self.workload.sizes[d] if d in dims else 1 for d in DIMS])

    def spans(self, d: str, tile: int) -> list[tuple[int, int]]:
        """First and last element of every tile."""
        size = self.workload.sizes[d]
        return [(k, min(k + tile, size) - 1) for k in range(0, size, tile)]

    def inside(self, axis: Axis) -> Ints:
        """What lies inside the tensor under all tiles."""
        steps = axis.steps

        def entry(*tiles: int) -> int:
            total = 0
            for spans in product(*(self.spans(d, t) for d, t in zip(steps, tiles, strict=True))):
                low, high = (axis.offset + sum(s * span[e] for s, span in zip(steps.values(), spans, strict=True))
                             for e in (0, 1))  # fmt: skip
                total += max(0, min(high, axis.size - 1) - max(low, 0) + 1)
            return total

        return self.table("".join(steps), entry)

    def extent(self, axis: Axis) -> Ints:
        """Elements under one tile, padding included."""
        return self.table("".join(axis.steps), lambda *t: 1 + sum(
            s * (n - 1) for s, n in zip(axis.steps.values(), t, strict=True)))  # fmt: skip

    def bytes(self, side: dict[str, int], keep: str, share: tuple[str, ...]) -> Ints:
        """DRAM bytes of every tile."""
        total = np.int64(self.machine.out_bytes * self.workload.results)
        for x, width in zip(self.workload.inputs, (self.machine.in_bytes, self.machine.w_bytes), strict=True):
            tables = [self.inside(axis) for axis in x.axes]
            for d in DIMS:
                if not x.depends(d):
                    tables.append(self.table(d, lambda t, d=d, x=x: self.often(d, t, side[d], x.name == keep,
                                                                               x.name in share)))  # fmt: skip
            total = total + width * reduce(np.multiply, tables)
        return np.asarray(total)

    def often(self, d: str, tile: int, side: int, kept: bool, shared: bool) -> int:
        """Fetches along an index that the operand does not depend on."""
        trips = len(self.spans(d, tile))
        if kept:
            return 1 if shared else min(side, trips)
        return -(-trips // side) if shared else trips

    def cycles(self, side: dict[str, int], vector: dict[str, int]) -> Ints:
        """Of the PEs: the first unit of a step is the slowest."""

        def entry(d: str, tile: int) -> int:
            if d in self.workload.temporal:
                return self.workload.sizes[d]
            spans = self.spans(d, tile)[:: side[d]]
            return sum(-(-(last - first + 1) // vector[d]) for first, last in spans)

        return reduce(np.multiply, [self.table(d, lambda t, d=d: entry(d, t)) for d in DIMS])

    def fits(self) -> NDArray[np.bool_]:
        """Which tiles fit all buffers."""
        found = np.ones(self.sizes, dtype=bool)
        for x, width in zip(self.workload.inputs, (self.machine.in_bytes, self.machine.w_bytes), strict=True):
            words = reduce(np.multiply, [self.extent(axis) for axis in x.axes])
            found &= words * width * self.mesh.copies <= self.mesh.input_buffer_bytes
        sums = reduce(np.multiply, [self.table(d, lambda t: t) for d in self.workload.parallel])
        return found & (sums * self.machine.psum_bytes <= self.mesh.psum_buffer_bytes)

    def whole(self) -> NDArray[np.bool_]:
        """Which tiles have all that is summed over."""
        tables = [self.table(d, lambda t, d=d: int(t == self.workload.sizes[d])) for d in self.workload.temporal]
        return np.broadcast_to(reduce(np.multiply, tables) == 1, self.sizes)


def shapes(workload_dims: tuple[str, ...], pes: int) -> Iterator[dict[str, int]]:
    """All PE vectors over all parallel indices."""
    powers = range(pes.bit_length())
    for found in product(powers, repeat=len(workload_dims)):
        if sum(found) == pes.bit_length() - 1:
            yield dict.fromkeys(DIMS, 1) | {d: 1 << k for d, k in zip(workload_dims, found, strict=True)}


def least_of_mesh(layer: Layer, machine: Machine, measure: str, pins: tuple[str, ...] = ()) -> int | None:
    """The least objective of all choices with a layout, None without any."""
    grid, asked = Grid(layer, machine), parse_pins(pins, DECISIONS)
    along, fitting, whole = grid.workload.parallel, grid.fits(), grid.whole()
    best = 2**62
    shares = SHARES if pins else ("both",)
    for share, keep, rows, cols in product(shares, KEEPS, along, along):
        side = {d: (grid.mesh.rows if d == rows else 1) * (grid.mesh.cols if d == cols else 1) for d in DIMS}
        moved = grid.bytes(side, keep, SHARES[share])
        allowed = fitting & whole if keep != "none" else fitting
        for vector in shapes(along, grid.mesh.pes):
            values = np.broadcast_to(moved, grid.sizes)
            if measure == "time":
                rates = grid.mesh.dram_bytes_per_cycle, grid.mesh.global_bytes_per_cycle
                values = np.maximum(values // -rates[0] * -1, values // -rates[1] * -1)
                values = np.maximum(values, grid.cycles(side, vector))
            at = np.flatnonzero((allowed & (values < best)).reshape(-1))
            for k in at[np.argsort(values.reshape(-1)[at], kind="stable")]:
                tile = tuple(int(t) + 1 for t in np.unravel_index(k, grid.sizes))
                choice = Choice(tile, rows, cols, tuple(vector[d] for d in DIMS), share, keep)
                if keeps(choice, asked) and layout_of(layer, machine, choice) is not None:
                    best = int(values.reshape(-1)[k])
                    assert price(layer, machine, choice)[0][measure] == best
                    break
    return None if best == 2**62 else best


# ---- the reference for arrays ----------------------------------------------------------------------------------------


def least_of_array(layer: Layer, machine: Machine, measure: str) -> int | None:
    """The least objective of all choices: every option of every group, multiplied out."""
    best: int | None = None
    for keep in KEEPS:
        setup = setup_of(layer, machine, "both", keep)
        sizes, kind, temporal = setup.ndrange.sizes, setup.mesh.kind, setup.ndrange.temporal
        tables, keys = dict[str, Ints](), np.zeros(1, dtype=np.int64)
        for group in setup.ndrange.groups:
            axes: dict[str, range] = {}
            for d in group:
                whole = d in temporal and (keep != "none" or (kind == "row_stationary" and d in "ij"))
                axes[f"T_{d.upper()}"] = range(sizes[d] if whole else 1, sizes[d] + 1)
                axes[f"S_{d.upper()}"] = range(2 if kind == "systolic" and d in temporal else 1)
            for d, held in (("m", "filters"), ("n", "channels")):
                if d in group:
                    axes[held] = range(1, (sizes[d] if kind == "row_stationary" else 1) + 1)
            options = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
            options = [o for o in options if o.get("filters", 1) <= o.get("T_M", 1)]
            options = [o for o in options if o.get("channels", 1) <= o.get("T_N", 1)]
            columns = {name: np.array([o[name] for o in options], dtype=np.int64) for name in axes}
            of_group = terms_of(setup, group, columns)
            tables = {n: np.multiply.outer(tables.get(n, np.ones(1, dtype=np.int64)), t).reshape(-1)
                      for n, t in of_group.items()}  # fmt: skip
            sides = sum((columns[f"S_{d.upper()}"] for d in group), 0 * columns[f"T_{group[0].upper()}"])
            keys = np.add.outer(keys, sides).reshape(-1)

        def total(what: Linear, tables: dict[str, Ints] = tables) -> Ints:
            return np.asarray(what.constant + sum(factor * tables[name] for name, factor in what.factors.items()))

        kept = keys == (1 if kind == "systolic" else 0)
        for cap in caps_of(setup):
            kept &= total(cap.what) <= cap.limit
        found = {name: total(what)[kept] for name, what in linear_of(setup).items()}
        rates = {"dram": setup.mesh.dram_bytes_per_cycle, "glb": setup.mesh.global_bytes_per_cycle, "cycles": 1}
        values = found.get(measure, reduce(np.maximum, [-(-found[name] // rate) for name, rate in rates.items()]))
        if len(values) and (best is None or int(values.min()) < best):
            best = int(values.min())
    return best


# ---- comparisons -----------------------------------------------------------------------------------------------------


def conv(**sizes: int) -> Layer:
    fields = {"m": 3, "n": 2, "r": 4, "c": 3, "kh": 2, "kw": 1, **sizes}
    fields.setdefault("h", (fields["r"] - 1) * fields.get("stride_h", 1) + 1)
    fields.setdefault("l", (fields["c"] - 1) * fields.get("stride_w", 1) + 1)
    return Layer.model_validate({"name": "conv", **fields})


MESHES = [
    (conv(m=6, n=4, r=6, c=5, kh=3, kw=1, pad_top=1), {"input_buffer_bytes": 24, "psum_buffer_bytes": 48}),
    (conv(m=4, n=3, r=5, c=4, kh=2, kw=2, stride_h=2, stride_w=2), {"input_buffer_bytes": 18, "copies": 2}),
    (conv(m=1, g=5, n=1, r=6, c=4, kh=3, kw=1), {"rows": 1, "cols": 3, "psum_buffer_bytes": 32}),
    (conv(m=2, n=2, r=3, c=4, kh=1, stride_h=4, stride_w=4), {"input_buffer_bytes": 12, "psum_buffer_bytes": 24}),
    (Layer.matmul("mm", rows=9, inner=8, cols=7), {"rows": 2, "cols": 3, "input_buffer_bytes": 12}),
]  # fmt: skip


@pytest.mark.slow(1)
@pytest.mark.parametrize(("at", "measure"), thinned(product(range(len(MESHES)), ["dram", "glb", "time"]), 4))
def test_engines_find_the_least_of_every_tile(at: int, measure: str) -> None:
    layer, changes = MESHES[at]
    machine = mesh_machine(**changes)
    expected = least_of_mesh(layer, machine, measure)
    assert expected is not None
    for engine in EXACT:
        said = answer(engine, layer, machine, measure)
        assert (said.status, said.value, said.bound) == ("OPTIMAL", expected, expected), engine


ARRAYS = [
    conv(m=7, n=5, r=7, c=6, kh=3, kw=2, pad_top=1), conv(m=8, n=6, r=5, c=5, kh=1, kw=1, stride_h=2, stride_w=2),
    conv(m=1, g=6, n=1, r=6, c=6, kh=2, kw=2),
]  # fmt: skip


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("kind", "measure", "at"),
    thinned(product(["systolic", "row_stationary"], ["dram", "glb", "time"], range(len(ARRAYS))), 5),
)
def test_engines_find_the_least_of_every_option_of_arrays(kind: str, measure: str, at: int) -> None:
    layer, machine = ARRAYS[at], mesh_machine(kind, global_bytes=120)
    expected = least_of_array(layer, machine, measure)
    assert expected is not None
    for engine in EXACT:
        said = answer(engine, layer, machine, measure)
        assert (said.status, said.value, said.bound) == ("OPTIMAL", expected, expected), engine


@pytest.mark.slow(1)
@settings(max_examples=tries(2, 8), deadline=None, derandomize=True)
@given(st.data())
def test_random_layers_against_every_tile(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    kernel, stride = draw(1, 3), draw(1, 2)
    layer = conv(b=draw(1, 2), m=draw(1, 5), n=draw(1, 3), r=draw(1, 6), c=draw(1, 4), kh=kernel, stride_h=stride,
                 pad_top=draw(0, kernel - 1))  # fmt: skip
    kind = data.draw(st.sampled_from(["teu", "teu", "systolic", "row_stationary"]))
    measure = data.draw(st.sampled_from(["dram", "glb", "time"]))
    if kind == "teu":
        machine = mesh_machine(pes=data.draw(st.sampled_from([2, 4])), input_buffer_bytes=draw(3, 30), cols=draw(1, 3),
                               psum_buffer_bytes=4 * draw(1, 9), copies=draw(1, 2))  # fmt: skip
        expected = least_of_mesh(layer, machine, measure)
    else:
        machine = mesh_machine(kind, global_bytes=draw(20, 150))
        expected = least_of_array(layer, machine, measure)
    for engine in EXACT:
        said = answer(engine, layer, machine, measure)
        assert said.value == expected, engine
        assert said.status == ("INFEASIBLE" if expected is None else "OPTIMAL"), engine


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "pins", [(), ("P_G=4",), ("P_B=2", "P_G=2"), ("rows=g", "cols=b"), ("rows!=b", "P_B!=2"), ("share=IN", "P_G>=2")]
)
@pytest.mark.parametrize("measure", ["dram", pytest.param("time", marks=pytest.mark.slow(5))])
def test_one_index_of_size_one_stands_for_all(pins: tuple[str, ...], measure: str) -> None:
    """b and g have size 1 here; which of them PEs and units idle along only matters to pins."""
    layer = conv(m=3, n=2, r=4, c=3, kh=2, stride_h=2, stride_w=2)
    machine = mesh_machine(input_buffer_bytes=9, psum_buffer_bytes=24)
    expected = least_of_mesh(layer, machine, measure, pins)
    assert expected is not None
    for engine in EXACT:
        said = answer(engine, layer, machine, measure, pins)
        assert (said.status, said.value, said.bound) == ("OPTIMAL", expected, expected), engine
