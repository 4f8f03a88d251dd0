"""Replay against a walker that touches every element of every tile in plain Python, on random nests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hwmodels.nest.replay import counts as replay_counts
from hwmodels.nest.replay import walk as replay_walk
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Counts
from hwmodels.schedule import Hold, Item, Loop, Nest, Spatial
from hwmodels.transfer import PRICES
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import DIMS, RELEVANT, Layer
from tests.effort import tries
from tests.small import machine

Ranges = dict[str, tuple[int, int]]
Elements = frozenset[tuple[tuple[str, int], ...]]


def steps_of(
    items: tuple[Item, ...], passed: tuple[Ranges, ...], snake: bool = False, turned: bool = False
) -> Iterator[tuple[Ranges, ...]]:
    """For every step the ranges before all items, and after each of them.

    In snake order every second piece of a loop has the loops inside it run the other way round.
    """
    if not items:
        yield passed
    elif isinstance(items[0], Hold):
        yield from steps_of(items[1:], (*passed, passed[-1]), snake, turned)
    else:
        lo, hi = passed[-1][items[0].dim]
        pieces = []
        while lo < hi:
            pieces.append((lo, min(lo + items[0].step, hi), snake and len(pieces) % 2 == 1))
            lo += items[0].step
        for first, end, odd in pieces[::-1] if turned else pieces:
            piece = {**passed[-1], items[0].dim: (first, end)}
            yield from steps_of(items[1:], (*passed, piece), snake, turned != odd)


def fetching(items: tuple[Item, ...], steps: list[tuple[Ranges, ...]], operand: str) -> int:
    """How many items outside the Hold fetch the operand: down to the last that cuts a dimension it depends on."""
    hold = next(k for k, item in enumerate(items) if isinstance(item, Hold) and item.operand == operand)
    last = 0
    for k, item in enumerate(items[:hold]):
        if isinstance(item, Loop) and item.dim in RELEVANT[operand]:
            before, after = ({passed[at][item.dim] for passed in steps} for at in (k, k + 1))
            last = k + 1 if len(after) > len(before) else last
    return last


def address(index: dict[str, int], order: str, size: dict[str, int]) -> int:
    where = 0
    for letter in order:
        where = where * size[letter] + index[letter]
    return where


def elements(axes: dict[str, range]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = [{}]
    for letter, values in axes.items():
        found = [{**index, letter: v} for index in found for v in values]
    return found


def count_runs(addresses: list[int], element: int, transfer: Transfer) -> Counts:
    """Runs, windows and bytes of a set of elements, byte by byte."""
    taken = sorted({a * element + i for a in addresses for i in range(element)})
    runs: list[list[int]] = []
    for byte in taken:
        if runs and runs[-1][-1] == byte - 1:
            runs[-1].append(byte)
        else:
            runs.append([byte])
    bursts = 0
    for run in runs if transfer.burst_bytes else []:
        first = run[0] if transfer.burst_count == "aligned" else 0
        bursts += len({(byte - first) // transfer.burst_bytes for byte in run})
    return Counts(segments=len(runs), bursts=bursts, bytes=len(taken))


class Naive:
    """What one nest does, by looking at every element of every tile at every step."""

    def __init__(self, layer: Layer, on: Machine, nest: Nest) -> None:
        self.layer, self.on, self.nest = layer, on, nest
        self.rows = {k: Counts() for k in ("IN", "W", "OUT", "PSUM")}
        self.price = 0
        self.steps = 0
        self.occupancy = dict.fromkeys(on.memories, 0)
        self.transfers: dict[int, int] = {}
        self.computes: dict[int, int] = {}
        self.pipeline = 0
        spatial = [i for i in nest.items if isinstance(i, Spatial)]
        rest = tuple(i for i in nest.items if not isinstance(i, Spatial))
        cores: list[tuple[tuple[int, ...], Ranges]] = [((), {d: (0, layer.extent(d)) for d in DIMS})]
        for item in spatial:
            grown = []
            for name, ranges in cores:
                for i, passed in enumerate(steps_of((Loop(item.dim, item.step),), (ranges,))):
                    grown.append((name + ((i,) if item.over == "tle" else ()), passed[-1]))
            cores = grown
        names = sorted({name for name, _ in cores})
        for name, ranges in cores:
            self.core(names.index(name), ranges, rest)

    # -- boxes

    def axes(self, operand: str, ranges: Ranges) -> tuple[dict[str, range], dict[str, int]]:
        """Indices of the held box along every axis and the tensor's sizes."""
        layer = self.layer
        dims = [d for d in DIMS if d in RELEVANT[operand]]
        axes = {d: range(*ranges[d]) for d in dims}
        size = {d: layer.extent(d) for d in dims}
        if operand == "IN":
            ys = [r * layer.stride_h + i * layer.dilation_h - layer.pad_top for r in axes["r"] for i in axes["i"]]
            xs = [c * layer.stride_w + j * layer.dilation_w - layer.pad_left for c in axes["c"] for j in axes["j"]]
            size["r"], size["c"] = layer.h, layer.l
            axes["r"], axes["c"] = range(min(ys), max(ys) + 1), range(min(xs), max(xs) + 1)
            del axes["i"], axes["j"]
        if self.on.edge_tiles == "uniform":
            axes = {d: range(min(len(a), size[d])) for d, a in axes.items()}
        return {d: range(max(a.start, 0), min(a.stop, size[d])) for d, a in axes.items()}, size

    def nominal(self, operand: str) -> Ranges:
        """Ranges of the first, full tile: the innermost step outside the Hold."""
        ranges = {d: (0, self.layer.extent(d)) for d in DIMS}
        for item in self.nest.items:
            if isinstance(item, Hold) and item.operand == operand:
                return ranges
            if not isinstance(item, Hold):
                ranges[item.dim] = (0, item.step)
        raise AssertionError

    def call(
        self, row: str, ranges: Ranges, behind: tuple[str, int] | None = None, there: Elements = frozenset()
    ) -> Counts:
        """One transfer of the box of `row`; of IN only the rows or columns from `behind` on, or what is not `there`."""
        on = self.on
        operand = "OUT" if row == "PSUM" else row
        if on.edge_tiles == "uniform":
            ranges = self.nominal(operand)
        order = {
            "IN": "bgnrc" if on.in_layout == "CHW" else "brcgn",
            "W": "gmnij" if on.w_layout == "OIHW" else "gmijn",
            "OUT": "bgmrc" if on.out_layout == "CHW" else "brcgm",
        }[operand]
        element = {"IN": on.in_bytes, "W": on.w_bytes, "OUT": on.out_bytes, "PSUM": on.psum_bytes}[row]
        axes, size = self.axes(operand, ranges)
        if behind is not None:
            axes[behind[0]] = range(max(axes[behind[0]].start, behind[1]), axes[behind[0]].stop)
        box = [x for x in elements(axes) if tuple(sorted(x.items())) not in there]
        if not box:
            return Counts()
        total = count_runs([address(x, order, size) for x in box], element, on.transfer)
        if row == "W" and self.layer.bias and on.bias_bytes:
            biases = elements({d: axes[d] for d in "gm"})
            total += count_runs([address(x, "gm", size) for x in biases], on.bias_bytes, on.transfer)
        pages = total.bytes // on.transfer.row_bytes if on.transfer.row_bytes else 0
        refreshes = -(-total.bytes // on.transfer.refresh_bytes) if on.transfer.refresh_bytes else 0
        return total + Counts(calls=1, rows=pages, refreshes=refreshes)

    def move(
        self,
        row: str,
        ranges: Ranges,
        tle: int,
        behind: tuple[str, int] | None = None,
        there: Elements = frozenset(),
    ) -> int:
        counts, t = self.call(row, ranges, behind, there), self.on.transfer
        ticks = (
            t.call_ticks * counts.calls + t.segment_ticks * counts.segments + t.burst_ticks * counts.bursts
            + t.row_ticks * counts.rows + t.refresh_ticks * counts.refreshes + t.byte_ticks * counts.bytes
        )  # fmt: skip
        for _ in range(self.layer.inputs if row == "IN" else 1):
            self.rows[row] += counts
            self.transfers[tle] = self.transfers.get(tle, 0) + ticks
        return ticks * (self.layer.inputs if row == "IN" else 1)

    # -- walking

    def elements(self, ranges: Ranges) -> Elements:
        """The input elements of a tile."""
        return frozenset(tuple(sorted(x.items())) for x in elements(self.axes("IN", ranges)[0]))

    def compute(self, ranges: Ranges) -> int:
        unit, layer = self.on.compute, self.layer
        size = {d: hi - lo for d, (lo, hi) in ranges.items()}
        if unit.model == "tile":
            size = self.nest.tile(layer)
            work = size["b"] * size["g"] * size["n"] * size["m"]
            work *= -(-size["r"] * size["c"] * size["i"] * size["j"] // unit.macs_per_cycle)
        elif unit.model == "array":
            work = size["b"] * size["r"] * size["c"] * size["i"] * size["j"]
            if layer.m == layer.n == 1:
                work *= len({g // unit.cols for g in range(size["g"])})
            else:
                work *= len({(g, m // unit.rows, n // unit.cols) for g in range(size["g"]) for m in range(size["m"])
                             for n in range(size["n"])})  # fmt: skip
        else:
            return 0
        return work * layer.inputs * unit.cycle_ticks

    def core(self, tle: int, share: Ranges, items: tuple[Item, ...]) -> None:
        layer = self.layer
        snake = self.on.snake and not self.nest.line
        steps = list(steps_of(items, (share,), snake))
        self.steps += len(steps)
        holds = {item.operand: k for k, item in enumerate(items) if isinstance(item, Hold)}
        last_loop = {op: fetching(items, steps, op) for op in holds}
        buffers = {item.operand: self.on.buffers(item.buffers) for item in items if isinstance(item, Hold)}
        load = {n: [0] * (len(steps) + 1) for n in (1, 2)}
        store = {n: [0] * (len(steps) + 1) for n in (1, 2)}
        work = [0] * len(steps)
        on_chip: dict[str, tuple[Ranges, Ranges]] = {}
        window = Window(self, items, steps, last_loop["IN"])
        summed: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        in_dram: set[object] = set()
        largest: dict[str, int] = {}
        sums = {tuple(passed[-1][d] for d in "nij") for passed in steps}
        every = set(itertools.product(*(range(*share[d]) for d in "nij")))

        def leave(step: int) -> None:
            _, ranges = on_chip.pop("OUT")
            box = elements({d: range(*ranges[d]) for d in ("b", "g", "m", "r", "c")})
            done = all(summed[tuple(x.values())] == every for x in box)
            store[buffers["OUT"]][step] += self.move("OUT" if done else "PSUM", ranges, tle)
            in_dram.add(tuple(ranges[d] for d in "bgmrc"))

        for k, passed in enumerate(steps):
            for operand in layer.operands:
                visit, ranges = passed[last_loop[operand]], passed[holds[operand]]
                if snake:
                    visit = {d: ranges[d] for d in RELEVANT[operand]}
                if operand in on_chip and on_chip[operand][0] == visit:
                    continue
                if operand == "OUT":
                    if "OUT" in on_chip:
                        leave(k - 1)
                    if tuple(ranges[d] for d in "bgmrc") in in_dram or self.on.psum_first_read:
                        load[buffers["OUT"]][k] += self.move("PSUM", ranges, tle)
                else:
                    behind, there = None, Elements()
                    if operand == "IN":
                        behind, there = window.fetch(k, on_chip.get("IN"))
                    load[buffers[operand]][k] += self.move(operand, ranges, tle, behind, there)
                on_chip[operand] = visit, ranges
                row = "PSUM" if operand == "OUT" and len(sums) > 1 else operand
                size = self.call(row, ranges).bytes * (layer.inputs if operand == "IN" else 1)
                if operand == "IN" and window.lines:
                    size = window.lines.places * layer.inputs * self.on.in_bytes
                if row == "PSUM":  # the finished results take their place in the end
                    size = size // self.on.psum_bytes * max(self.on.psum_bytes, self.on.out_bytes)
                largest[operand] = max(largest.get(operand, 0), size * buffers[operand])
            ranges = passed[-1]
            for x in elements({d: range(*ranges[d]) for d in ("b", "g", "m", "r", "c")}):
                for tap in itertools.product(*(range(*ranges[d]) for d in "nij")):
                    assert tap not in summed.setdefault(tuple(x.values()), set())
                    summed[tuple(x.values())].add(tap)
            work[k] = self.compute(ranges)
        leave(len(steps) - 1)
        self.computes[tle] = max(self.computes.get(tle, 0), sum(work))
        last = len(steps) - 1
        self.pipeline += load[2][0] + store[2][last] + sum(load[1]) + sum(store[1])
        self.pipeline += sum(max(work[k], load[2][k + 1], store[2][k - 1] if k else 0) for k in range(len(steps)))
        self.hold(largest, {passed[-1]["n"] for passed in steps})

    def hold(self, largest: dict[str, int], n_pieces: set[tuple[int, int]]) -> None:
        on, layer = self.on, self.layer
        used = dict.fromkeys(on.memories, on.reserved_bytes)
        for operand, size in largest.items():
            used[on.memory_of(operand)] += size
        if on.im2col_rows:
            channels = layer.n
            if on.im2col_channels == "tile":
                tile = self.nest.tile(layer)["n"]
                channels = tile if on.edge_tiles == "uniform" else max(b - a for a, b in n_pieces)
            used["ocm"] += on.im2col_rows * layer.kh * layer.kw * channels * on.in_bytes
        for memory, size in used.items():
            self.occupancy[memory] = max(self.occupancy[memory], size)

    @property
    def time(self) -> int:
        if self.on.timing == "double_buffered":
            return self.pipeline
        computes = dict.fromkeys(self.computes, 0) if self.on.timing == "transfer_only" else self.computes
        if self.on.dram == "shared":
            return sum(self.transfers.values()) + max(computes.values())
        return max(self.transfers[t] + computes[t] for t in self.transfers)


class Window:
    """What is fetched of IN, tile after tile."""

    def __init__(self, naive: Naive, items: tuple[Item, ...], steps: list[tuple[Ranges, ...]], last_loop: int) -> None:
        self.naive, self.items, self.steps, self.last_loop = naive, items, steps, last_loop
        self.hold = next(k for k, item in enumerate(items) if isinstance(item, Hold) and item.operand == "IN")
        lines = Lines(naive, items, steps, self.hold) if naive.nest.line else None
        self.lines = lines if lines and lines.outer is not None else None
        self.before: Ranges = {}
        self.covered = 0

    def fetch(self, step: int, there: tuple[Ranges, Ranges] | None) -> tuple[tuple[str, int] | None, Elements]:
        """The axis and place from which on rows or columns are fetched, and elements that are not."""
        on, passed = self.naive.on, self.steps[step]
        ranges = passed[self.hold]
        if self.lines:
            return None, self.lines.enter(step)
        if not on.sliding or not self.last_loop:
            return None, Elements()
        if on.snake and not self.naive.nest.line:
            moved = [d for d in DIMS if d in RELEVANT["IN"] and there and ranges[d] != there[1][d]]
            alone = there and len(moved) == 1 and moved[0] in "rcij"
            return None, self.naive.elements(there[1]) if there and alone else Elements()
        axis = {"r": "r", "i": "r", "c": "c", "j": "c"}.get(self.items[self.last_loop - 1].dim)
        if axis is None:
            return None, Elements()
        outer, box = passed[self.last_loop - 1], self.naive.axes("IN", ranges)[0][axis]
        behind = (axis, self.covered) if there and outer == self.before else None
        self.covered = max(self.covered, box.stop) if behind else box.stop
        self.before = outer
        return behind, Elements()


class Lines:
    """IN in lines, element by element: in a sweep over rows and columns each is fetched once."""

    def __init__(self, naive: Naive, items: tuple[Item, ...], steps: list[tuple[Ranges, ...]], hold: int) -> None:
        self.naive, self.steps, self.hold = naive, steps, hold
        cutting = [k for k in range(self.hold) if any(passed[k] != passed[k + 1] for passed in steps)]
        while cutting and items[cutting[-1]].dim not in RELEVANT["IN"]:
            cutting.pop()
        pair = [items[k].dim for k in cutting[-2:]]
        self.outer = cutting[-2] if sorted(pair) == ["c", "r"] else None
        self.fetched, self.sweep = set[tuple[tuple[str, int], ...]](), Ranges()
        if self.outer is not None:
            self.places = self.capacity(pair[0], pair[1])
            assert self.live(self.outer) <= self.places

    def capacity(self, down: str, across: str) -> int:
        """Rows that two passes share over the widest pass, the other rows of a window over its columns."""
        passes: list[tuple[Ranges, Ranges, range, list[range]]] = []
        outer = 1
        for passed in self.steps:
            axes = self.naive.axes("IN", passed[self.hold])[0]
            outer = max(outer, len(axes["b"]) * len(axes["g"]) * len(axes["n"]))
            if not passes or passes[-1][1] != passed[self.outer + 1]:
                passes.append((passed[self.outer], passed[self.outer + 1], axes[down], []))
            passes[-1][3].append(axes[across])
        pairs = [(a, b) for a, b in itertools.pairwise(passes) if a[0] == b[0]]
        again = max((len(set(a[2]) & set(b[2])) for a, b in pairs), default=0)
        rows = max(len(p[2]) for p in passes)
        columns = max(len(x) for p in passes for x in p[3])
        width = max(max(ends) + 1 - min(ends) if (ends := {x for part in p[3] for x in part}) else 0 for p in passes)
        return outer * (again * width + (rows - again) * columns)

    def live(self, outer: int) -> int:
        """The most elements that lie on chip and are read in this step or later in the sweep."""
        most = 0
        for _, sweep in itertools.groupby(self.steps, key=lambda passed: passed[outer]):
            tiles = [self.naive.elements(passed[self.hold]) for passed in sweep]
            first: dict[object, int] = {}
            last: dict[object, int] = {}
            for k, tile in enumerate(tiles):
                for x in tile:
                    first.setdefault(x, k)
                    last[x] = k
            for k in range(len(tiles)):
                most = max(most, sum(first[x] <= k <= last[x] for x in first))
        return most

    def enter(self, step: int) -> Elements:
        """What the sweep has fetched before this step."""
        assert self.outer is not None
        passed = self.steps[step]
        if self.sweep != passed[self.outer]:
            self.fetched.clear()
        there = frozenset(self.fetched)
        self.sweep = passed[self.outer]
        self.fetched |= self.naive.elements(passed[self.hold])
        return there


small = st.integers(1, 3)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    kind = draw(st.sampled_from(["conv", "conv", "matmul", "pool", "eltwise"]))
    fields: dict[str, object] = {"name": "random", "kind": kind, "b": draw(st.integers(1, 2)), "g": draw(small)}
    fields |= {"m": draw(st.integers(1, 5)), "n": draw(st.integers(1, 5)), "bias": draw(st.booleans())}
    if kind in ("pool", "eltwise"):
        fields |= {"m": 1, "n": 1, "weights": "none", "bias": False}
    if kind == "eltwise":
        fields["inputs"] = draw(small)
    windows = kind in ("conv", "pool")
    for out, kernel, stride, dilation, pad, size in (
        ("r", "kh", "stride_h", "dilation_h", "pad_top", "h"), ("c", "kw", "stride_w", "dilation_w", "pad_left", "l"),
    ):  # fmt: skip
        number, taps = draw(st.integers(1, 6)), draw(small) if windows else 1
        step, spread = (draw(small), draw(st.integers(1, 2))) if windows else (1, 1)
        reach = (taps - 1) * spread
        before, after = draw(st.integers(0, reach)), draw(st.integers(-step, reach))
        fields |= {out: number, kernel: taps, stride: step, dilation: spread, pad: before}
        fields[size] = (number - 1) * step + reach + 1 - before - after
    try:
        return Layer.model_validate(fields)
    except ValidationError:
        assume(False)
        raise


@st.composite
def nests(draw: st.DrawFn, layer: Layer, spatial: bool, choose: bool = False, line: bool = False) -> Nest:
    size = {d: layer.extent(d) for d in DIMS}

    def cut(dims: tuple[str, ...]) -> tuple[str, int]:
        dim = draw(st.sampled_from(dims))
        size[dim] = draw(st.integers(1, size[dim]))
        return dim, size[dim]

    items: list[Item] = []
    if spatial:
        for over in ("tle", "tlt"):
            items += [Spatial(*cut(("b", "g", "m", "r", "c")), over) for _ in range(draw(st.integers(0, 2)))]
    loops: list[Item] = [Loop(*cut(DIMS)) for _ in range(draw(st.integers(0, 6)))]
    line = line and draw(st.booleans())
    if line and draw(st.booleans()):
        loops += [Loop(*cut((dim,))) for dim in draw(st.permutations(["r", "c"]))]
    at = {op: draw(st.integers(0, len(loops))) for op in layer.operands}
    if line:
        at["IN"] = draw(st.integers(max(0, len(loops) - 1), len(loops)))
    for position in range(len(loops) + 1):
        here = [op for op in draw(st.permutations(layer.operands)) if at[op] == position]
        items += [Hold(op, draw(st.sampled_from([None, 1, 2])) if choose else None, line and op == "IN") for op in here]
        items += loops[position : position + 1]
    return Nest(tuple(items))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    price = st.integers(0, 9)
    transfer = {name: draw(price) for name in Transfer.model_fields if name.endswith("_ticks")}
    transfer |= {one.size: draw(st.sampled_from([2, 3, 4, 8, 16])) for one in PRICES.values() if one.size}
    # without the bias of sampling: address-exact bursts have the most to go wrong
    edges, how = draw(st.sampled_from([("true", "address"), ("true", "aligned"), ("uniform", "aligned")]))
    fields: dict[str, object] = {
        f"{k}_bytes": draw(st.sampled_from([1, 2, 3, 4])) for k in ("in", "w", "out", "psum", "bias")
    }
    fields |= {
        "in_layout": draw(st.sampled_from(["CHW", "HWC"])), "out_layout": draw(st.sampled_from(["CHW", "HWC"])),
        "w_layout": draw(st.sampled_from(["OIHW", "OHWI"])), "edge_tiles": edges,
        "sliding": edges == "true" and draw(st.booleans()),
        "psum_first_read": draw(st.booleans()), "reserved_bytes": draw(st.integers(0, 9)),
        "buffering": draw(st.sampled_from(["single", "double", "choose"])),
        "dram": draw(st.sampled_from(["shared", "per_tle"])),
        "compute": {
            "model": draw(st.sampled_from(["none", "tile", "array"])), "cycle_ticks": draw(price),
            "macs_per_cycle": draw(small), "rows": draw(small), "cols": draw(small),
        },
        "transfer": {**transfer, "burst_count": how},
    }  # fmt: skip
    if draw(st.booleans()):
        fields |= {"in_buffer_bytes": 999, "w_buffer_bytes": 999, "out_buffer_bytes": 999}
    else:
        fields |= {"im2col_rows": draw(st.integers(0, 2)), "im2col_channels": draw(st.sampled_from(["layer", "tile"]))}
    if edges == "true" and draw(st.booleans()):
        fields |= {"snake": draw(st.booleans()), "line": fields["sliding"] and draw(st.booleans())}
    elif draw(st.booleans()):
        fields |= {"tles": 64, "tlts": 64, "overlap": draw(st.sampled_from(["serial", "transfer_only"]))}
    return machine(**fields)


@settings(max_examples=tries(80, 250), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_replay_equals_the_element_by_element_walker(data: st.DataObject) -> None:
    layer, on = data.draw(layers()), data.draw(machines())
    nest = data.draw(nests(layer, on.tles > 1, on.buffering == "choose", on.line))
    assume(np.prod([-(-layer.extent(d) // nest.tile(layer)[d]) for d in DIMS]) <= 300)
    naive, result = Naive(layer, on, nest), replay(layer, on, nest, execute=True)
    assert result.outcome.by_operand == naive.rows
    assert result.steps == naive.steps
    assert result.outcome.occupancy_bytes == naive.occupancy
    assert result.outcome.transfer_ticks == sum(naive.transfers.values())
    assert result.outcome.compute_ticks == max(naive.computes.values())
    assert result.outcome.time_ticks == naive.time
    assert result.outcome.bytes == sum(c.bytes for c in naive.rows.values())
    over = [
        f"memory {m}: {naive.occupancy[m]:,} bytes of {room:,}"
        for m, room in on.memories.items()
        if naive.occupancy[m] > room
    ]
    assert list(result.faults) == over
    assert result.executed


@pytest.mark.parametrize("block", [1, 7, 18, 31])
def test_a_tile_that_stays_over_several_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv("x", channels=4, filters=4, size=(6, 6), kernel=(3, 3), pad=(1, 1, 1, 1))
    on = machine(buffering="double", compute=Compute(model="array", rows=4, cols=4, cycle_ticks=1))
    nest = Nest(
        (Loop("n", 2), Loop("m", 3), Hold("W"), Loop("r", 4), Hold("OUT"), Loop("n", 1), Loop("c", 1), Hold("IN"))
    )
    naive = Naive(layer, on, nest)
    monkeypatch.setattr(replay_walk, "BLOCK_STEPS", block)
    result = replay(layer, on, nest)
    assert result.faults == ()
    assert result.outcome.by_operand == naive.rows
    assert result.outcome.time_ticks == naive.time


@pytest.mark.parametrize("block", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    ("channels", "filters", "rows", "cycle", "ticks"),
    [(1, 4, 3, 0, 18), (1, 4, 4, 0, 22), (1, 4, 4, 2, 23), (1, 4, 4, 6, 33), (6, 1, 3, 0, 26), (2, 3, 5, 0, 25)],
)
def test_a_result_is_stored_before_the_step_after_the_next_by_hand(
    channels: int, filters: int, rows: int, cycle: int, ticks: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1x1 on rows of one pixel, one row a step, two by two, weights held: n bytes in, m out, c ticks a step.

    Step 0 waits for n m + n, computes beside the load of step 1: max(c, n); the steps between beside a load and the
    store before: max(c, n, m); the last one beside a store: max(c, m); then m. However many steps are walked at once.
    (1, 4), 3 rows: 5 + 1 + 4 + 4 + 4 = 18; 4 rows: 22, with c = 2: 5 + 2 + 4 + 4 + 4 + 4 = 23, with c = 6: 5 + 4*6 + 4.
    (6, 1), 3 rows: 12 + 6 + 6 + 1 + 1 = 26. (2, 3), 5 rows: 8 + 2 + 3 + 3 + 3 + 3 + 3 = 25.
    """
    layer = Layer.conv("x", channels=channels, filters=filters, size=(rows, 1))
    compute = Compute(model="array", rows=filters, cols=channels, cycle_ticks=cycle) if cycle else Compute(model="none")
    on = machine(buffering="double", compute=compute)
    monkeypatch.setattr(replay_walk, "BLOCK_STEPS", block)
    result = replay(layer, on, Nest((Hold("W"), Loop("r", 2), Loop("r", 1), Hold("IN"), Hold("OUT"))))
    assert (result.faults, result.steps, result.outcome.time_ticks) == ((), rows, ticks)


def test_a_loop_inside_is_run_to_and_fro_by_hand() -> None:
    """1x1, two pieces of two rows, in each two of two filters: weights 0 1, then 1 (there) 0: 3 loads of 6."""
    layer = Layer.conv("x", channels=3, filters=4, size=(4, 1))
    nest = Nest((Loop("r", 2), Hold("IN"), Loop("m", 2), Hold("W"), Hold("OUT")))
    assert replay(layer, machine(snake=True), nest).outcome.by_operand["W"].bytes == 3 * 2 * 3


def test_what_has_one_buffer_moves_between_the_steps_by_hand() -> None:
    """1x1 of 2 bytes in and 3 out, a row a step, three rows, no compute; results in one buffer, inputs in two.

    Weights 6 and the first load 2; steps 0 and 1 load the next row, 2 each; three stores add up, 3 each: 21.
    """
    layer = Layer.conv("x", channels=2, filters=3, size=(3, 1))
    on = machine(buffering="choose", compute=Compute(model="none"))
    nest = Nest((Hold("W", 1), Loop("r", 1), Hold("IN", 2), Hold("OUT", 1)))
    assert replay(layer, on, nest).outcome.time_ticks == Naive(layer, on, nest).time == 6 + 2 + 2 * 2 + 3 * 3


@settings(max_examples=tries(10, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 40))
def test_blocks_do_not_matter(data: st.DataObject, block: int) -> None:
    layer, on = data.draw(layers()), data.draw(machines())
    nest = data.draw(nests(layer, on.tles > 1, on.buffering == "choose", on.line))
    whole = replay(layer, on, nest, execute=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_walk, "BLOCK_STEPS", block)
        patch.setattr(replay_counts, "_TABLE", 0)  # kinds of tiles are sorted
        assert replay(layer, on, nest, execute=False) == whole


@pytest.mark.parametrize(
    ("finals", "said"),
    [((1, 1), ()), ((1, 0), ("1 of 2 tiles never finished",)), ((2, 1), ("1 of 2 tiles finished more than once",))],
)
def test_every_output_is_finished_once(finals: tuple[int, int], said: tuple[str, ...]) -> None:
    """Two pieces of work, both seen, in two tiles of the output."""
    found = replay_walk._faults({}, np.ones(2, np.bool_), 2, np.array(finals, np.int64))
    assert found == tuple(f"output: {fault}" for fault in said)
    assert replay_walk._faults({}, np.array([True, False]), 2, np.ones(2, np.int64))
    assert replay_walk._faults({}, np.ones(2, np.bool_), 3, np.ones(2, np.int64))
