"""Mesh as a formulation: what may be asked, by which engines, and heuristics to compare with.

A layer is decided way by way to share and to keep operands. An example: a layer on a mesh of tile units has three ways
to keep an operand (none, IN, W), each a piece. An option of either half of its indices (`formulations.mesh.search`) is
picked by looking at all pairs, by CP-SAT or by a MILP. The pair may have no bank layout: then it is forbidden, and the
piece is searched again. Nothing is lost, as a layout of a larger tile is one of a smaller tile: an option that was
left out as dominated has no layout where its smaller rival has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from formulations.clock import Clock, TimeUp
from formulations.mesh.finish import complete, doubled, fewer_steps, fits, hand, shapes
from formulations.mesh.price import DECISIONS, MEASURES, check_pins, price, roof, setup_of
from formulations.mesh.search import Halves, best_pair, greedy, halves, leading
from formulations.mesh.space import Member, members, ways
from formulations.pins import Pins
from formulations.problem import Formulation, Goal, Model, Part, Piece, Priced, Replayed, Unable
from hwmodels.mesh.replay import replay_array, replay_lanes, replay_mesh
from hwmodels.schedule import Choice, Layout, MeshLayout
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.ndrange import ndrange
from instances.network.network import Network
from instances.network.workload import DIMS, Layer

#: Greedy plans that are tried for a layout.
_TRIED = 40
_NEEDS = frozenset({"dram", "glb", "cycles"})
#: Rows leave options out by propagation; probing and relaxations cost more here than they spare.
_CP_SAT = {"cp_model_probing_level": 0, "symmetry_level": 0, "linearization_level": 0}


class MeshPart(Part[MeshLayout]):
    """A layer; raises InputError if the machine cannot run it."""

    def __init__(self, layer: Layer, machine: Machine, pins: Pins | None = None) -> None:
        setup_of(layer, machine)
        assert machine.mesh is not None  # as `setup_of` has seen
        self.name, self.layer, self.pins = layer.name, layer, pins or Pins()
        self.machine, self.mesh = machine, machine.mesh

    @property
    def key(self) -> Hashable:
        """Layers of one signature are alike."""
        return self.layer.signature()

    def pinned(self, pins: Pins) -> MeshPart:
        """The same layer with other pins."""
        return MeshPart(self.layer, self.machine, pins)

    # ---- the space ---------------------------------------------------------------------------------------------------

    def pieces(self, goal: Goal) -> Iterator[Way]:
        """A piece for every way to share and to keep operands; none if no PE vector keeps the pins."""
        if self.mesh.kind != "teu" or any(shapes(self.layer, self.machine, self.pins)):
            for share, keep in ways(self.pins):
                yield Way(self.pinned(self.pins.plus("share", share).plus("keep", keep)))

    def members(self, goal: Goal, *, thin: bool = False) -> Iterator[Member]:
        """The options that may meet a goal; TimeUp by its clock."""
        asked = {goal.measure, *goal.caps}
        needs = _NEEDS if "time" in asked else frozenset(asked)
        return members(
            self.layer, self.machine, self.pins, needs=needs, lanes=self.lanes(goal), limits=self.caps(goal), thin=thin,
            clock=goal.clock,
        )  # fmt: skip

    def lanes(self, goal: Goal) -> bool:
        """Whether the PE vector is part of the search."""
        return self.mesh.kind == "teu" and "time" in {goal.measure, *goal.caps}

    def caps(self, goal: Goal) -> dict[str, int]:
        """The most of dram, glb and cycles by a goal's caps, and to be below what is known."""
        found: dict[str, int] = {}
        for measure, most in [*goal.caps.items(), *([] if goal.below is None else [(goal.measure, goal.below - 1)])]:
            for name, rate in roof(self.mesh, measure).items():
                found[name] = min(most * rate, found.get(name, most * rate))
        return found

    def least(self, measure: str) -> int:
        """A lower bound for all plans: each PE does one product a cycle; each result is written once."""
        written = ndrange(self.layer).results * self.machine.out_bytes
        cycles = -(-self.layer.macs // self.mesh.all_pes)
        return max(cycles, -(-written // self.mesh.dram_bytes_per_cycle)) if measure == "time" else written

    def complete(self, choice: Choice, goal: Goal) -> MeshLayout | None:
        """The choice with PE vector and layout, None if there is none."""
        return complete(self.layer, self.machine, choice, self.pins, chosen=self.lanes(goal))

    def keeps(self, schedule: MeshLayout, goal: Goal) -> bool:
        """Whether a schedule keeps buffers and the goal's caps."""
        cost = price(self.layer, self.machine, schedule.choice)[0]
        return fits(self.layer, self.machine, schedule.choice) and all(cost[m] <= c for m, c in goal.caps.items())

    # ---- without a search --------------------------------------------------------------------------------------------

    def greedy(self, goal: Goal) -> MeshLayout | None:
        """The best greedy plan that has a layout, of those found in time, or one made by doubling the smallest tile."""
        found: list[tuple[int, Choice]] = []
        try:
            for member in self.members(goal, thin=True):
                for one in greedy(member, goal.measure, self.caps(goal)):
                    found.append(one)
        except TimeUp:
            pass
        for _, choice in sorted(found, key=lambda one: one[0])[:_TRIED]:
            made = self.complete(choice, goal)
            if made is not None and self.keeps(made, goal):
                return made
            if goal.clock.over:
                break
        return self.doubled(goal)

    def doubled(self, goal: Goal) -> MeshLayout | None:
        """A plan made by doubling the smallest tile, in no time."""
        for choice in reversed(doubled(self.layer, self.machine, self.pins)):
            made = complete(self.layer, self.machine, choice, self.pins, chosen=False)
            if made is not None and self.keeps(made, goal):
                return made
        return None

    # ---- a schedule --------------------------------------------------------------------------------------------------

    def price(self, schedule: MeshLayout) -> Priced:
        """Bytes, cycles of the PEs, and the time under the roofline."""
        return Priced(price(self.layer, self.machine, schedule.choice)[0])

    def replay(self, schedule: MeshLayout) -> Replayed:
        """Run the simulation, and all vectors of a tile through its banks."""
        choice, layout, faults = schedule.choice, schedule.layout, list[str]()
        if self.mesh.kind != "teu":
            seen = replay_array(self.layer, self.machine, choice)
        else:
            seen = replay_mesh(self.layer, self.machine, choice)
            faults = ["a mesh needs a layout of its banks"] if layout is None else self._served(choice, layout)
        rates = self.mesh.dram_bytes_per_cycle, self.mesh.global_bytes_per_cycle
        time = max(seen.cycles, -(-seen.dram // rates[0]), -(-seen.glb // rates[1]))
        measures = {"dram": seen.dram, "glb": seen.glb, "time": time, "cycles": seen.cycles}
        counts = {"fetches": seen.fetches, "fifo_words": seen.fifo_words, "steps": seen.steps}
        return Replayed(measures, (*seen.faults, *faults), tally=counts)

    def _served(self, choice: Choice, layout: Layout) -> list[str]:
        tile = dict(zip(DIMS, choice.tile, strict=True))
        placed = {one.operand: ([(a.axis, a.extent, a.pitch) for a in one.axes], one.words) for one in layout.operands}
        return replay_lanes(self.layer, tile, layout.bits, placed, self.mesh.banks)

    def contains(self, schedule: MeshLayout) -> tuple[str, ...]:
        """Buffers that overflow, a layout that is not one of the choice, and pins."""
        choice, layout = schedule.choice, schedule.layout
        over = price(self.layer, self.machine, choice)[1]
        found = [f"{name}: {by} bytes too many" for name, by in over.items() if by > 0]
        if (self.mesh.kind == "teu") != (layout is not None):
            found.append("banks: only tile units have them, and all have")
        if layout is not None:
            found += self._misplaced(choice, layout)
        if not keeps(choice, self.pins):
            found.append(f"pins {', '.join(map(str, self.pins.pins))} are not kept")
        return tuple(found)

    def _misplaced(self, choice: Choice, layout: Layout) -> Iterator[str]:
        """What a layout takes and says; that it has no conflicts is the simulation's."""
        for one, size in zip(layout.operands, (self.machine.in_bytes, self.machine.w_bytes), strict=True):
            taken, most = one.words * size * self.mesh.copies, self.mesh.input_buffer_bytes
            if taken > most:
                yield f"banks: {one.operand} takes {taken} bytes with padding, there are {most}"
        if [one.operand for one in layout.operands] != ["IN", "W"]:
            yield "banks: the operands are IN and W"
        lanes = zip(DIMS, choice.vector, strict=True)
        if sorted(layout.bits) != sorted((d, q) for d, number in lanes for q in range(number.bit_length() - 1)):
            bits = ", ".join(f"{d}{q}" for d, q in layout.bits)
            yield f"banks: bits {bits} are not those of the PE vector"

    def polished(self, schedule: MeshLayout, clock: Clock) -> MeshLayout:
        """The same in the fewest steps."""
        return fewer_steps(self.layer, self.machine, schedule, self.pins, clock)

    def label(self, schedule: MeshLayout) -> str:
        """Sizes of the tile, sides, and the operand that stays."""
        choice = schedule.choice
        sizes = " ".join(f"{d}={size}" for d, size in zip(DIMS, choice.tile, strict=True) if self.layer.extent(d) > 1)
        return f"{sizes}; {choice.rows or '-'} x {choice.cols or '-'}; keep {choice.keep}"

    @property
    def must(self) -> dict[str, int]:
        """Every element of the operands and the results once (operands whole, though strides may skip some)."""
        workload = ndrange(self.layer)
        sizes = zip(workload.inputs, (self.machine.in_bytes, self.machine.w_bytes), strict=True)
        moved = sum(size * prod(axis.size for axis in operand.axes) for operand, size in sizes)
        return {"dram": moved + workload.results * self.machine.out_bytes}

    # ---- why there is none -------------------------------------------------------------------------------------------

    def explain(self) -> tuple[str, ...]:
        """The buffer that the smallest tile overflows, or the pins that leave none."""
        found = tuple(self._overflows())
        if found or self._any():
            return found
        pins = self.pins.pins
        if not pins:
            return ("no tile keeps all demands with a bank layout",)
        spared = [pin for pin in pins if self.pinned(self.pins.without(pin))._any()]
        together = f"pins {', '.join(map(str, pins))} together leave no tile, PE vector, sides and layout"
        return tuple(f"without pin {pin} there is a plan" for pin in spared) or (together,)

    def _overflows(self) -> Iterator[str]:
        member = next(
            members(self.layer, self.machine, Pins(), needs=_NEEDS, lanes=False, full=True, thin=True)
        )  # keeping operands asks for more, never less
        for cap in member.caps:
            least = cap.what.constant + sum(
                factor * prod(int(group.terms[:, member.names.index(name)].min()) for group in member.groups)
                for name, factor in cap.what.factors.items()
            )
            if least > cap.limit:
                what = " + ".join(cap.what.factors)
                yield f"{cap.tag}: the smallest {what} takes {least} bytes, there are {cap.limit}"

    def _any(self) -> bool:
        """Whether there is any plan."""
        goal = Goal("dram")
        tried = (piece.exact(goal, "")[0] for piece in self.pieces(goal))
        return self.greedy(goal) is not None or any(one is not None for one in tried)


def keeps(choice: Choice, pins: Pins) -> bool:
    """Whether a choice keeps the pins."""
    sizes = {f"T_{d.upper()}": t for d, t in zip(DIMS, choice.tile, strict=True)}
    sizes |= {f"P_{d.upper()}": p for d, p in zip(DIMS, choice.vector, strict=True)}
    sizes |= {"filters": choice.filters, "channels": choice.channels}
    words = {"rows": choice.rows, "cols": choice.cols, "share": choice.share, "keep": choice.keep}
    return all(len(pins.sizes(name, np.array([value], dtype=np.int64))) for name, value in sizes.items()) and all(
        pins.allows(name, value) for name, value in words.items()
    )


class Way(Piece[MeshLayout]):
    """One way to share and to keep operands: pairs of options of two halves."""

    def __init__(self, part: MeshPart) -> None:
        self.part = part
        self._made: tuple[Goal, Halves | None] | None = None

    def floor(self, goal: Goal) -> int:
        """What holds for all ways."""
        return self.part.least(goal.measure)

    def halves(self, goal: Goal) -> Halves | None:
        """The options that may meet a goal, with the pairs that are forbidden; None if there are none."""
        if self._made is None or self._made[0] is not goal:
            (member,) = self.part.members(goal)
            able = all(len(group) for group in member.groups)
            found = halves(member, self.part.caps(goal)) if able else None
            self._made = goal, found if found is not None and found.pairs else None
        goal.clock.tick()
        return self._made[1]

    def exact(self, goal: Goal, engine: str) -> tuple[MeshLayout | None, int | None]:
        """Look at all pairs."""
        while (found := self.halves(goal)) is not None:
            pair, value, done = best_pair(found, goal.measure)
            if pair is None:
                return None, None if done else self.floor(goal)
            made = self._decoded(found, pair, goal)
            if made is not None:
                return made, value if done else self.floor(goal)
        return None, None

    def cp_sat(self, goal: Goal) -> Model[MeshLayout] | None:
        """Products of options."""
        from formulations.mesh.cp_sat import cp_model_of  # late: solvers are slow to import

        found = self.halves(goal)
        if found is None:
            return None
        few, whole = leading(found)
        made = cp_model_of(few, goal.measure)

        def decode(solver: Any) -> MeshLayout | None:
            return self._decoded(found, whole(made.chosen(solver)), goal)

        return Model(made.model, decode, parameters=_CP_SAT)

    def milp(self, goal: Goal) -> Model[MeshLayout] | None:
        """Flows over pairs of options."""
        from formulations.mesh.milp import model_of

        found = self.halves(goal)
        if found is None:
            return None
        few, whole = leading(found)
        made = model_of(few, goal.measure)
        if made is None:
            return None
        return Model(
            made.problem, lambda _: self._decoded(found, whole(made.chosen()), goal), base=made.least, unit=made.unit
        )

    def _decoded(self, found: Halves, pair: tuple[int, int], goal: Goal) -> MeshLayout | None:
        """The schedule of a pair, which is forbidden if it has no layout."""
        made = self.part.complete(found.choice(pair), goal)
        if made is None:
            found.forbidden.add(pair)
        return made


def _hand(part: MeshPart, goal: Goal) -> MeshLayout | None:
    """The paper's tile, by hand; pins and caps are not for it."""
    if goal.caps:
        return None
    if part.mesh.kind != "teu" or part.pins.pins:
        raise Unable("a mesh without pins is needed")
    choice = hand(part.layer, part.machine)
    made = part.complete(choice, goal) or part.complete(choice, Goal("dram"))
    return made if made is not None and part.keeps(made, goal) else None


def _unshared(part: MeshPart, goal: Goal) -> MeshLayout | None:
    """The best plan where every unit fetches for itself."""
    if not part.pins.allows("share", "none"):
        raise Unable("pins demand sharing")
    best: MeshLayout | None = None
    for piece in part.pinned(part.pins.plus("share", "none")).pieces(goal):
        below = None if best is None else part.price(best).measures[goal.measure]
        try:
            best = piece.exact(replace(goal, below=below), "")[0] or best
        except TimeUp:
            break
    return best


class MeshFormulation(Formulation[MeshLayout]):
    """Layers on a mesh of tile units, or an array."""

    name = "mesh"
    summary = "tiles, sides, PE vectors and bank layouts of layers on a mesh of tile units, or an array"
    schedule = MeshLayout
    measures = MEASURES
    decisions = DECISIONS
    engines = {  # noqa: RUF012
        "auto": "the fastest exact engine: exhaustive",
        "exhaustive": "all pairs of options that may beat the best plan",
        "milp": "flows over pairs of options with HiGHS",
        "milp-cbc": "flows over pairs of options with CBC",
        "cp-sat": "products of options with CP-SAT",
    }
    heuristics = {  # noqa: RUF012
        "greedy": ("index by index what is best, from the smallest tile", MeshPart.greedy),
        "hand": ("a tile as the source chooses it by hand", _hand),
        "no-sharing": ("the optimum without FIFOs", _unshared),
    }
    starts = ("greedy",)
    quick = ("greedy", "hand")
    floors = False

    def read(self, network: Network, machine: Machine, pins: Pins, layers: Sequence[str] | None) -> Sequence[MeshPart]:
        """Return the layers that multiply, matching of maps too, or those named."""
        check_pins(pins, machine)
        found = [network.layer(name) for name in layers or ()]
        found = found or [layer for layer in network.layers if layer.weights != "none"]
        if not found:
            raise InputError(f"network {network.name}: no layers that multiply")
        return [MeshPart(layer, machine, pins) for layer in found]
