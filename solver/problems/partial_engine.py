"""Problem partial_engine, as the rest of `solver` sees it: how its plans are shown, and fronts of engine sizes.

Drawn are bytes by layer and kind, runs and additions, and room in the banks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from formulations.partial_engine.orders import from_text
from formulations.partial_engine.problem import EngineFormulation
from formulations.partial_engine.size import MOST, SECONDS, Rates, Size, candidates, front, rated, sizes
from hwmodels.partial_engine.price import engine_of
from hwmodels.partial_engine.schedule import EngineSchedule
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.machine.sections import PartialEngine
from instances.network.network import Network
from solver.ask.options import AUTO, as_texts, pick_machine, pick_network, unknown
from solver.ask.question import Question
from solver.plan.figures import Axis, Bars, Figure, Series
from solver.plan.front import Front, FrontPart, FrontPoint
from solver.plan.plan import PartPlan, Plan
from solver.problems.problem import Problem
from solver.show.common import by_row, stacked
from solver.show.tables import ABSENT, GAP, Column, Sheet, conflicts_of, few, name_column, percent
from solver.show.words import agreement, labels

#: Ranks up to which HiGHS tells one from the next: a millionth of it, a variable's tolerance, is below a quarter.
_LARGEST = 200_000


def fits(size: Size, engine: PartialEngine) -> bool:
    """Whether a size keeps the budget of the machine's FPGA."""
    return size.dsps <= engine.dsps and size.brams <= engine.brams


@dataclass(frozen=True)
class EngineSize:
    """A size for a set of networks."""

    networks: tuple[str, ...]
    aim: Rates
    size: Size
    value: int
    bound: int
    """`value`, `bound`: the worst rate, or the sum of all rates, in frames in 1000 s; proven if they are equal."""

    @property
    def rates(self) -> dict[str, float]:
        """Frames a second by network."""
        return {name: rate / SECONDS for name, rate in zip(self.networks, self.size.rates, strict=True)}


def _exhaustive(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    return max(size.value(aim) for size in found)


def _auto(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    kept = set(candidates((size.e_in, size.e_out) for size in found))
    return max(size.value(aim) for size in found if (size.e_in, size.e_out) in kept)


def _cp_sat(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    from formulations.partial_engine.cp_sat import size_cp_model  # late: solvers are slow to import
    from solver.search.driver_cp_sat import solve

    model, levels = size_cp_model(found, aim, engine.dsps, engine.brams)
    bound = solve(model, maximised=True).bound
    return levels[-1 if bound is None else bound]


def _milp(found: Sequence[Size], aim: Rates, engine: PartialEngine) -> int:
    from formulations.partial_engine.milp import size_model
    from solver.search.driver_milp import solve

    problem, levels = size_model(found, aim, engine.dsps, engine.brams)
    if len(levels) > _LARGEST:
        raise InputError(f"engine milp: {len(levels):,} different rates, it tells {_LARGEST:,} apart; auto takes all")
    bound = solve("highs", problem).bound
    return levels[-1 if bound is None else min(len(levels) - 1, -bound)]


#: Each returns a rate that no size within the budget exceeds.
SIZE_ENGINES: dict[str, Callable[[Sequence[Size], Rates, PartialEngine], int]] = {
    AUTO: _auto, "exhaustive": _exhaustive, "cp-sat": _cp_sat, "milp": _milp,
}  # fmt: skip


def _asked(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str],
    aim: str, settings: str | Iterable[str] | Mapping[str, str | int] | None, most: int,
) -> tuple[list[Network], PartialEngine, Rates]:  # fmt: skip
    if isinstance(networks, Network | str | os.PathLike):
        networks = [networks]
    found = [pick_network(one, "partial_engine") for one in networks]
    if not found:
        raise InputError("networks: at least one is needed")
    if aim not in ("worst", "mean"):
        raise unknown("aim", aim, ("worst", "mean"))
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 1024:
        raise InputError(f"most {most!r}: the largest e_in and e_out, a whole number from 1 to 1024")
    engine = engine_of(pick_machine(machine, as_texts("settings", settings)))
    return found, engine, "worst" if aim == "worst" else "mean"


def size_engine(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str], *,
    aim: str = "worst", engine: str = AUTO, most: int = MOST,
    settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
) -> EngineSize:  # fmt: skip
    """Return the engine size with the highest worst or mean frame rate within the budget of the machine's FPGA.

    Parameters
    ----------
    machine : Machine, str or path
        Its engine gives taps, clock, banks and budget; its size does not matter.
    aim : {"worst", "mean"}
    engine : str
        ``auto`` (largest sizes only), ``exhaustive`` (all sizes), ``cp-sat``, ``milp``.
    most : int
        The largest e_in and e_out.

    Raises
    ------
    InputError
        For bad input, and if no size keeps the budget.
    """
    loaded, asked, chosen = _asked(networks, machine, aim, settings, most)
    if engine not in SIZE_ENGINES:
        raise unknown("engine for engine sizes", engine, SIZE_ENGINES)
    found = rated(loaded, asked, sizes(asked, most))
    if not found:
        raise InputError(f"engine: no size keeps {asked.dsps} DSPs and {asked.brams} block RAMs")
    bound = SIZE_ENGINES[engine](found, chosen, asked)
    best = min(found, key=lambda size: (-size.value(chosen), size.dsps, size.e_in))
    return EngineSize(tuple(n.name for n in loaded), chosen, best, best.value(chosen), bound)


def front_engine(
    networks: Iterable[Network | str | os.PathLike[str]], machine: Machine | str | os.PathLike[str], *,
    aim: str = "worst", most: int = MOST, settings: str | Iterable[str] | Mapping[str, str | int] | None = None,
) -> list[Size]:  # fmt: skip
    """Return the exact front of DSPs against the worst or mean frame rate, on FPGAs of any size.

    Raises
    ------
    InputError
        For bad input.
    """
    loaded, asked, chosen = _asked(networks, machine, aim, settings, most)
    return front(rated(loaded, asked, sizes(asked, most, any_fpga=True)), chosen)


_KINDS = {
    "inputs": "inputs", "weights": "weights", "spilled": "sums spilled",
    "reloaded": "sums reloaded", "results": "results",
}  # fmt: skip


def counted(row: PartPlan) -> dict[str, int]:
    """Return what a layer takes: measures, bytes by kind, the fullest bank; nothing without a schedule."""
    if row.schedule is None:
        return {}
    return {**row.measures, **row.terms["bytes"], "peak_bytes": row.figures.peak_bytes}


#: Steps of a program that are shown.
_MOST = 200


class PartialEngineProblem(Problem):
    """Runs of layers on a small engine."""

    front_engines = False

    def __init__(self) -> None:
        super().__init__(EngineFormulation())
        self.others = {"cp-sat": ("auto",), "": ("cp-sat", "auto")}
        self.axes = {"dsps": "DSPs", "rate": "frames in 1000 s"}

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The front of DSPs against the frame rate of a network, all sizes up to 64 x 64."""
        if question.pins:
            raise InputError(f"pin {question.pins[0]!r}: the front of engine sizes takes no pins")
        engine, network = engine_of(question.machine), question.network
        points = []
        for size in front_engine([network], question.machine):
            able = fits(size, engine)
            body = {"size": {**asdict(size), "rates": [rate / SECONDS for rate in size.rates]}, "fits": able}
            label = f"{size.e_in} x {size.e_out}, {size.brams} block RAMs{'' if able else ', does not fit'}"
            points.append(FrontPoint({"dsps": size.dsps, "rate": size.rates[0]}, body, label))
        part = FrontPart("", tuple(points), complete=True, proven=True)
        return Front(self.name, network.name, question.machine.name, self.axes, (part,))

    def rooms(self, plan: Plan) -> Iterator[tuple[str, int, int]]:
        """Return the fullest bank of all layers."""
        engine, peaks = plan.machine_data.engine, [row.figures.peak_bytes for row in plan.parts if row.schedule]
        if engine is not None and len(peaks) == len(plan.parts):
            yield "bank", max(peaks), engine.bank_bytes

    def status(self, plan: Plan) -> list[str]:
        """Return what is known, a part each: status, value, bound, gap, runs, additions, time of them, replay."""
        parts = [f"{plan.network} on {plan.machine} (partial_engine, {plan.engine}): {plan.status}"]
        bound = "no bound" if plan.bound is None else f"bound {plan.bound:,}"
        if plan.objective is None or plan.measures is None:
            missing = [row.name for row in plan.parts if row.schedule is None]
            said = f"{len(missing)} of {len(plan.parts)} layers without a schedule: {few(missing)}"
            return [*parts, said, *plan.conflicts[:1]]
        gap = "no gap" if plan.gap is None else f"gap {percent(plan.gap)} %"
        hertz = plan.machine_data.engine.clock_hz if plan.machine_data.engine else 1
        parts += [
            f"bytes {plan.objective.value:,}, {bound}, {gap}",
            f"{plan.measures['runs']:,} runs and {plan.measures['adds']:,} additions, "
            f"{plan.measures['cycles']:,} cycles or {1e3 * plan.measures['cycles'] / hertz:,.2f} ms of the engine",
            agreement(plan),
        ]
        return parts

    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of layers."""
        rows, named = plan.parts, labels([row.name for row in plan.parts], plan.network_data.layers)
        found = [counted(row) for row in rows]

        def count(head: str, names: str, means: str, spare: int) -> Column:
            sums = [sum(counts[name] for name in names.split()) if counts else None for counts in found]
            known = [one for one in sums if one is not None]
            cells = [ABSENT if one is None else f"{one:,}" for one in sums]
            return Column(head, cells, means, f"{sum(known):,}" if len(known) == len(sums) else ABSENT, spare=spare)

        def decided(head: str, text: Callable[[EngineSchedule], str], means: str, spare: int) -> Column:
            cells = [ABSENT if row.schedule is None else text(row.schedule) for row in rows]
            return Column(head, cells, means, spare=spare)

        return Sheet(
            [
                name_column("layer", named),
                count("bytes", "bytes", "to and from DRAM", 0),
                Column("gap (%)", [row.status if row.schedule is None else percent(row.gap) for row in rows], GAP,
                       percent(plan.gap)),
                decided("strips", lambda made: f"{made.strips}", "of rows, one after the other", 0),
                decided("groups", _groups, "of input x of output maps, in so many grids", 0),
                decided("places", _places, "for input + partial maps in a bank, + 1 for a fresh one", 0),
                count("cycles", "cycles", "of the engine", 1),
                count("runs", "runs", "of the engine", 2),
                count("adds", "adds", "of partial maps", 2),
                count("inputs", "inputs", "their bytes", 3),
                count("weights", "weights", "their bytes", 3),
                count("partial maps", "spilled reloaded", "their bytes, out and in", 3),
                count("results", "results", "their bytes", 3),
            ],
            conflicts_of(rows),
        )  # fmt: skip

    def drawings(self, plan: Plan, plans: Mapping[str, Plan]) -> list[Figure]:
        """Bytes and runs by layer, room in the banks."""
        rows = {engine: [row for row in one.parts if row.schedule] for engine, one in plans.items()}
        moved = by_row(rows, lambda row: {words: counted(row)[name] for name, words in _KINDS.items()})
        steps = by_row(
            rows, lambda row: {"runs": row.measures["runs"], "additions of groups of maps": row.measures["adds"]}
        )
        caption = "Runs of the engine, and additions of partial maps."
        made: list[Figure] = [
            stacked("bytes-by-layer", "Bytes by layer", "To and from DRAM, by what moves.", "bytes", moved),
            stacked("steps-by-layer", "Runs by layer", caption, "steps", steps),
        ]
        engine = plan.machine_data.engine
        if engine is not None:
            mine = rows[plan.engine]
            made.append(
                Bars(
                    "banks", "Room in the banks", "The fullest bank of every layer; the mark is the size of a bank.",
                    Axis("bytes"), tuple(row.name for row in mine),
                    (Series("fullest bank", tuple(row.figures.peak_bytes for row in mine)),),
                    marks=tuple(engine.bank_bytes for _ in mine), marked="size of a bank",
                )
            )  # fmt: skip
        return made

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Return the banks and the program of one layer or all, line by line."""
        for row in plan.parts:
            if layer in (None, row.name):
                yield from (*_layer(row), "")


# ---- for people ------------------------------------------------------------------------------------------------------


def _groups(made: EngineSchedule) -> str:
    return f"{made.inputs} x {made.outputs}" + (f" ({made.grids})" if made.grids > 1 else "")


def _places(made: EngineSchedule) -> str:
    return f"{made.in_places} + {made.part_places}" + (" + 1" if made.fresh_places else "")


def _line(row: PartPlan) -> str:
    if row.schedule is None:
        return f"{row.status}: {'; '.join(row.conflicts)}"
    plan, counts = row.schedule, counted(row)
    fresh = f" + 1 fresh x {plan.part_place_bytes:,}" if plan.fresh_places else ""
    return (
        f"{plan.strips} strips of {plan.rows} rows, {plan.inputs} x {plan.outputs} groups; a bank: {plan.in_places} "
        f"inputs x {plan.in_place_bytes:,} + {plan.part_places} partial x {plan.part_place_bytes:,}{fresh} = "
        f"{counts['peak_bytes']:,} bytes; {counts['runs']:,} runs, {counts['adds']:,} adds"
    )


def _layer(row: PartPlan) -> Iterable[str]:
    yield f"{row.name}: {_line(row)}"
    if row.schedule is None:
        return
    counts, plan = counted(row), row.schedule
    yield (
        f"moves {counts['bytes']:,} bytes: inputs {counts['inputs']:,}, weights {counts['weights']:,}, partial maps "
        f"{counts['spilled']:,} out and {counts['reloaded']:,} in, results {counts['results']:,}; "
        f"{counts['cycles']:,} cycles"
    )
    if plan.grids > 1:
        yield f"the program runs for each of {plan.grids} grids, one after the other"
    yield "addresses in every bank: " + ", ".join(_addresses(plan))
    yield "program of a strip:"
    steps = from_text(plan.program)
    for verb, i, o, place in steps[:_MOST]:
        where = "the fresh place" if place < 0 else f"{'input' if verb == 'load' else 'partial'} place {place}"
        yield "  " + {
            "load": f"load input group {i} to {where}", "back": f"load partial maps {o} again to {where}",
            "run": f"run {i} x {o}, result to {where}", "add": f"add the fresh maps to output group {o} in {where}",
            "spill": f"store partial maps {o} of {where}", "store": f"store result {o} of {where}",
        }[verb]  # fmt: skip
    if len(steps) > _MOST:
        yield f"  and {len(steps) - _MOST:,} more steps"


def _addresses(plan: EngineSchedule) -> Iterable[str]:
    at = 0
    ins = plan.in_places * (plan.grids if plan.inputs_at == "banks" else 1)
    parts = plan.part_places * (plan.grids if plan.results_at == "banks" else 1)
    for kind, number, size in (
        ("input", ins, plan.in_place_bytes), ("partial", parts, plan.part_place_bytes),
        ("fresh", plan.fresh_places, plan.part_place_bytes),
    ):  # fmt: skip
        if number:
            names = f"{kind} places 0 to {number - 1}" if number > 1 else f"{kind} place"
            yield f"{names} from {at:,}, {size:,} each"
        at += number * size


PROBLEM = PartialEngineProblem
