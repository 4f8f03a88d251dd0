"""Brute force for mesh: every tile, side, way to keep, PE vector and layout of a tiny layer, or a walk among them.

The referee (`hwmodels.mesh.replay`, `replay_lanes`) counts bytes and cycles and says whether a layout
serves every vector in one cycle. What fits is the rule of the problem: copies of a tile's box (padding included) of
either operand and its partial sums, in the buffers of a unit, or together in the global buffer of an array; what a PE
of a row-stationary array holds, in its scratchpad. Of layouts all orders of bits and all pitches are tried.

Choices with the least value come first; the first one with a layout is the optimum. If there are more than `MOST`
choices, some are walked among: from random ones and from the claimed one to the best neighbour, so that only (ABOVE) is
checked. If more layouts would have to be tried than `_TRIES`, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import permutations, product
from math import prod

from formulations.mesh.price import DECISIONS
from formulations.mesh.problem import MeshFormulation, MeshPart
from formulations.pins import parse_pins
from hwmodels.mesh.replay import boxes, replay_array, replay_lanes, replay_mesh
from hwmodels.schedule import SHARES, Choice, MeshLayout
from instances.network.workload import DIMS
from tests.adversary.cases import BruteForce, Known, claimed, kept
from tests.adversary.claims import Claim
from tests.adversary.mesh_cases import Case

__all__ = ["MOST", "TESTER", "Case", "Choices", "best"]

#: Choices that are all looked at; steps of a walk; layouts that are tried for a choice, and in all.
MOST, _STEPS, _TRIES, _LAYOUTS = 500, 60, 400, 40
_SUMMED = ("n", "i", "j")


# ---- brute force -----------------------------------------------------------------------------------------------------


class Choices:
    """All choices of a case, by the referee."""

    def __init__(self, case: Case) -> None:
        self.layer, self.machine, self.pins, self.measure = case.workload, case.machine, case.pins, case.measure
        assert self.machine.mesh is not None
        self.mesh = self.machine.mesh
        self.size = {d: self.layer.extent(d) for d in DIMS}
        self.options = self._options()
        self.values: dict[tuple[object, ...], int | None] = {}

    def _options(self) -> list[list[object]]:
        """For every decision what there is to choose from: tiles in the order of DIMS, then the rest of `given`."""
        tiles: list[list[object]] = [list(range(1, self.size[d] + 1)) for d in DIMS]
        parallel = [d for d in DIMS if d not in _SUMMED]
        # Indices of one element are alike: the first stands for all of them.
        idle = [d for d in parallel if self.size[d] == 1][:1]
        sides: list[object] = [*idle, *(d for d in parallel if self.size[d] > 1)]
        rows, cols, vectors = sides, sides, list[object]([()])
        filters, channels = list[object]([1]), list[object]([1])
        if self.mesh.kind == "teu":
            bits = self.mesh.pes.bit_length() - 1
            vectors = [v for v in product(range(bits + 1), repeat=len(sides)) if sum(v) == bits]
            vectors = [tuple((d, 1 << k) for d, k in zip(sides, v, strict=True)) for v in vectors]  # type: ignore[call-overload]
        else:
            cols = [""]
            rows = list(_SUMMED) if self.mesh.kind == "systolic" else [""]
        if self.mesh.kind == "row_stationary":
            filters, channels = list(range(1, self.size["m"] + 1)), list(range(1, self.size["n"] + 1))
            tiles = [[self.size[d]] if d in "ij" else t for d, t in zip(DIMS, tiles, strict=True)]
        share: list[object] = [name for name in SHARES if kept(self.pins, "share", name)]
        keep: list[object] = [name for name in ("none", "IN", "W") if kept(self.pins, "keep", name)]
        tiles = [[t for t in few if kept(self.pins, f"T_{d.upper()}", t)] for d, few in zip(DIMS, tiles, strict=True)]
        share = share if self.mesh.kind == "teu" and self.pins else ["both"]  # who shares never fetches more often
        return [*tiles, rows, cols, vectors, share, keep, filters, channels]

    @property
    def number(self) -> int:
        """How many there are."""
        return prod(map(len, self.options))

    def given(self, choice: tuple[object, ...]) -> Choice:
        """A choice as the referee wants it."""
        rows, cols, vector, *others = choice[8:]
        return Choice(choice[:8], rows, cols, _full(vector), *others)  # type: ignore[arg-type]

    def value(self, choice: tuple[object, ...]) -> int | None:
        """The objective by replay, None if the choice does not fit."""
        if choice not in self.values:
            given = self.given(choice)
            self.values[choice] = None if self.unfit(given) else self.replayed(given)[0]
        return self.values[choice]

    def replayed(self, given: Choice) -> tuple[int, list[str]]:
        """The objective, and what the referee has against it."""
        seen = (replay_mesh if self.mesh.kind == "teu" else replay_array)(self.layer, self.machine, given)
        dram, glb = self.mesh.dram_bytes_per_cycle, self.mesh.global_bytes_per_cycle
        time = max(seen.cycles, -(-seen.dram // dram), -(-seen.glb // glb))
        return {"dram": seen.dram, "glb": seen.glb, "time": time}[self.measure], seen.faults

    def unfit(self, given: Choice) -> str:
        """Why a choice does not fit; nothing if it does."""
        machine, mesh, tile = self.machine, self.mesh, _tile(given)
        if given.keep != "none" and any(tile[d] < self.size[d] for d in _SUMMED):
            return "keep: the tile of what is summed is not whole"
        box = {x: prod(end - first for first, end in one[0])
               for x, one in boxes(self.layer, {d: (0, tile[d]) for d in DIMS}).items()}  # fmt: skip
        given_bytes, weights = mesh.copies * machine.in_bytes * box["IN"], mesh.copies * machine.w_bytes * box["W"]
        sums = machine.psum_bytes * prod(tile[d] for d in DIMS if d not in _SUMMED)
        if mesh.kind == "teu":
            fits = max(given_bytes, weights) <= mesh.input_buffer_bytes and sums <= mesh.psum_buffer_bytes
            return "" if fits else "buffers of a unit"
        if given_bytes + weights + sums > mesh.global_bytes:
            return "global buffer"
        if mesh.kind == "systolic":
            return ""
        m, n, taps = given.filters, given.channels, self.layer.kw
        local = machine.w_bytes * m * n * taps + machine.in_bytes * n * taps + machine.psum_bytes * m
        if m > tile["m"] or n > tile["n"]:
            return "a PE holds more than there is in a tile"
        return "" if local <= mesh.local_bytes else "scratchpad of a PE"

    def laid(self, given: Choice) -> bool | None:
        """Whether there is a layout; None if there are too many to try."""
        if self.mesh.kind != "teu":
            return True
        bits = [(d, q) for d, lanes in zip(DIMS, given.vector, strict=True) for q in range(lanes.bit_length() - 1)]
        tried = 0
        for order in permutations(bits):
            found = True
            for operand, size in (("IN", self.machine.in_bytes), ("W", self.machine.w_bytes)):
                most = self.mesh.input_buffer_bytes // self.mesh.copies // size
                served = False
                for axes in self._pitches(operand, given, most):
                    tried += 1
                    if tried > _TRIES:
                        return None
                    words = 1 + sum(pitch * (extent - 1) for _, extent, pitch in axes)
                    if not replay_lanes(self.layer, _tile(given), order, {operand: (axes, words)}, self.mesh.banks):
                        served = True
                        break
                found = found and served
            if found:
                return True
        return False

    def _pitches(self, operand: str, given: Choice, most: int) -> Iterator[list[tuple[int, int, int]]]:
        """All pitches of the axes of a tile that leave it within so many words."""
        box = boxes(self.layer, {d: (0, size) for d, size in _tile(given).items()})[operand][0]
        thick = [(at, end - first) for at, (first, end) in enumerate(box) if end - first > 1]

        def onward(done: list[tuple[int, int, int]], words: int) -> Iterator[list[tuple[int, int, int]]]:
            if len(done) == len(thick):
                yield done
                return
            at, extent = thick[len(done)]
            for pitch in range(1, (most - words) // (extent - 1) + 1):
                yield from onward([*done, (at, extent, pitch)], words + pitch * (extent - 1))

        return onward([], 1)


def best(case: Case, claimed: Iterable[Choice] = (), seed: int = 0) -> tuple[int | None, bool]:
    """The least objective, and whether all choices and layouts were looked at."""
    made = Choices(case)
    complete = made.number <= MOST
    looked = set(product(*made.options)) if complete else set(_walk(made, claimed, random.Random(seed)))
    values = sorted((value, choice) for choice in looked if (value := made.value(choice)) is not None)
    known: dict[tuple[object, ...], bool | None] = {}
    for value, choice in values:
        given = made.given(choice)
        key = choice[:8], choice[10]  # sides and what is kept have no layout of their own
        if key not in known:
            if len(known) >= _LAYOUTS:
                return None, False
            known[key] = made.laid(given)
        if known[key]:
            return value, complete
        complete = complete and known[key] is False
    return None, complete


def _walk(made: Choices, claimed: Iterable[Choice], rng: random.Random) -> Iterator[tuple[object, ...]]:
    """Random choices, and from some of them and the claimed ones on always the best neighbour."""
    starts = [tuple(rng.choice(few) for few in made.options) for _ in range(4)]
    small = tuple(few[0] for few in made.options)
    starts += [small, *(one for choice in claimed if (one := _placed(made, choice)) is not None)]
    steps = _STEPS
    for at in starts:
        yield at
        for _ in range(8):
            near = [(*at[:k], other, *at[k + 1 :]) for k, few in enumerate(made.options) for other in few]
            near = [one for one in rng.sample(near, min(len(near), 12)) if one != at]
            yield from near
            steps -= 1
            now = made.value(at)
            better = [
                (v, n) for n, one in enumerate(near) if (v := made.value(one)) is not None and (now is None or v < now)
            ]
            if not better or steps < 0:
                break
            at = near[min(better)[1]]


def _placed(made: Choices, choice: Choice) -> tuple[object, ...] | None:
    """A claimed choice among the options, None if it has idle indices of another name."""
    vector = next((v for v in made.options[10] if _full(v) == choice.vector), None)
    found = (*choice.tile, choice.rows, choice.cols, vector, choice.share, choice.keep, choice.filters, choice.channels)
    return found if all(one in few for one, few in zip(found, made.options, strict=True)) else None


def _tile(choice: Choice) -> dict[str, int]:
    return dict(zip(DIMS, choice.tile, strict=True))


def _full(vector: object) -> tuple[int, ...]:
    lanes: dict[str, int] = dict(vector)  # type: ignore[call-overload]
    return tuple(lanes.get(d, 1) for d in DIMS)


# ---- what engines claim ----------------------------------------------------------------------------------------------


def _laid_out(made: Choices, tile: Mapping[str, int], layout: object) -> Iterator[str]:
    if layout is None:
        yield "a mesh needs a layout"
        return
    data = asdict(layout)  # type: ignore[call-overload]
    placed = {
        one["operand"]: ([(a["axis"], a["extent"], a["pitch"]) for a in one["axes"]], one["words"])
        for one in data["operands"]
    }
    yield from replay_lanes(made.layer, tile, data["bits"], placed, made.mesh.banks)
    for (operand, (_, words)), size in zip(placed.items(), (made.machine.in_bytes, made.machine.w_bytes), strict=True):
        if words * size * made.mesh.copies > made.mesh.input_buffer_bytes:
            yield f"{operand}: {words} words do not fit"


class _Mesh(BruteForce[Case]):
    name = "mesh"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """Its choice and its layout are run by the referee."""
        part = MeshPart(case.workload, case.machine, parse_pins(case.pins, DECISIONS))

        def judged(schedule: MeshLayout) -> tuple[int, list[str]]:
            made, choice = Choices(case), schedule.choice
            value, faults = made.replayed(choice)
            unfit = made.unfit(choice)
            faults = [*faults, *([f"does not fit: {unfit}"] if unfit else [])]
            return value, [*faults, *(_laid_out(made, _tile(choice), schedule.layout) if case.kind == "teu" else ())]

        return claimed(MeshFormulation(), part, case.measure, engine, judged)

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All choices, or a walk that begins at the claimed ones."""
        return Known(*best(case, [one.schedule.choice for one in claims if isinstance(one.schedule, MeshLayout)]))


TESTER = _Mesh()
