"""Problem banks, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from instances.errors import InputError
from solver.banks.check import problems_of
from solver.banks.engines import BANK_ENGINES, BankEngine
from solver.banks.plan import FUSED, BankPlan, StagePlan
from solver.banks.readings import readings
from solver.banks.solve import DECISIONS, figures, front, setting_of, solve
from solver.front import Front
from solver.network_show import microseconds, status_parts
from solver.problem import Derived, Problem, front_of_plans
from solver.question import Question
from solver.report import Column, Sheet, name_column
from solver.words import labels

if TYPE_CHECKING:
    from hwmodels.banks.replay_time import Held

__all__ = ["BanksProblem"]

_PROGRAM = (
    "tiles that are there when the stage begins, steps that load (L) or process (P) so many tiles, tiles of the result "
    "that stay on chip"
)
_LEGEND = "I input there, L being loaded, P processed, O output, R waits for another stage, . free"


class BanksProblem(Problem[BankPlan]):
    """F6: feature maps of a whole network in memory banks."""

    name = "banks"
    summary = "F6: which tiles of feature maps stay in which memory bank, over a whole network"
    plan = BankPlan
    measures = {"time": "ticks", "bytes": "bytes", "energy": "fJ"}
    usual = "time"
    pins = {name: str(decision) for name, decision in DECISIONS.items()}
    axes = {"bytes": "bytes", "time": "ticks"}
    auto = "dynamic"
    quick = ("no-reuse", "double-buffer", "min", "min-all", "dls", "hide", "beam")
    others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}
    floors = True

    @property
    def engines(self) -> Mapping[str, BankEngine]:
        """The ways to decide."""
        return BANK_ENGINES

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """An engine that minimises the first objective."""
        chosen = super().engine(name, objectives)
        if _aim(objectives) not in BANK_ENGINES[chosen].objectives:
            raise InputError(f"engine {chosen} minimises bytes only: use dynamic for objective {_aim(objectives)}")
        return chosen

    def solve(self, question: Question) -> BankPlan:
        """Plan a network."""
        return solve(question)

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time."""
        plans = front(question)
        proven = all(plan.status == "OPTIMAL" for plan in plans)
        return front_of_plans(self, question, plans, proven=proven, details=_details)

    def derive(self, plan: BankPlan) -> Derived:
        """Replay bank by bank and in time."""
        return Derived(tuple(problems_of(plan)), plan.size)

    def status(self, plan: BankPlan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = status_parts(plan)
        if plan.measures is None or plan.pe_delay_ticks is None:
            return parts
        share = plan.pe_delay_ticks / plan.measures.time
        time, waits = microseconds(plan, plan.measures.time), microseconds(plan, plan.pe_delay_ticks)
        parts.append(f"{time} us, {waits} us of them waiting ({share:.1%})")
        if len(readings(plan.network_data, plan.machine_data)) > 1:
            parts.append(
                "first layer over patches" if plan.first_layer == "patches" else "first layer plain, not patches"
            )
        parts.append("replay agrees" if plan.replay.ok else "replay does not agree")
        return parts

    def sheet(self, plan: BankPlan) -> Sheet:
        """The table of stages."""
        rows, total = plan.layers, plan.measures

        def volume(head: str, name: str, means: str, spare: int) -> Column:
            found = [getattr(row.volume, name) for row in rows]
            return Column(head, [f"{number:,}" for number in found], means, f"{sum(found):,}", spare=spare)

        time = Column("time (us)", [microseconds(plan, row.ticks) for row in rows], "from the end of the stage before",
                      microseconds(plan, total.time) if total else "")  # fmt: skip
        moved = volume("bytes", "total", "to and from DRAM", 0)
        return Sheet(
            [
                name_column("stage", labels([row.layer for row in rows], plan.network_data.layers)),
                *((moved, time) if plan.objectives[0] == "bytes" else (time, moved)),
                Column("waits (us)", [microseconds(plan, row.wait_ticks) for row in rows], "of the time, for DRAM",
                       microseconds(plan, plan.pe_delay_ticks or 0), spare=1),
                Column("program", [_code(row) for row in rows], _PROGRAM, words=True),
                volume("load", "load", "bytes of the map that is read tile by tile", 2),
                volume("weights", "weight", "bytes of weights", 2),
                volume("streamed", "streamed", "bytes of other operands", 3),
                volume("write", "write", "bytes of the result", 2),
            ]
        )  # fmt: skip

    def details(self, plan: BankPlan, layer: str | None) -> Iterable[str]:
        """The map of banks by time, as in Fig. 4.9 and 4.10 of its source, of one stage or all."""
        yield from (_LEGEND, "")
        for name, lines in bank_lines(plan).items():
            if layer in (None, name):
                yield from lines

    def question(self, plan: BankPlan) -> Question:
        """What a stored plan was asked."""
        first = plan.options.first_layer
        pins = [f"residuals={'chip' if plan.options.waiting else 'dram'}", *([f"first_layer={first}"] if first else [])]
        return Question(plan.network_data, plan.machine_data, plan.objectives, "banks", pins=tuple(pins))

    def again(self, plan: BankPlan, engine: str, time_limit_s: float | None, jobs: int) -> BankPlan:
        """Solve again; a plan of a front is the one with the fewest bytes of all that take no more time."""
        most = plan.options.time_at_most
        if most is None:
            return super().again(plan, engine, time_limit_s, jobs)
        if engine == "dynamic":
            plans = front(replace(self.question(plan), time_limit_s=time_limit_s))
        else:
            plans = (super().again(plan, engine, time_limit_s, jobs),)
        kept = (one for one in plans if one.measures is not None and one.measures.time <= most)
        return next(kept, _none(plan)).model_copy(update={"options": plan.options})

    def able(self, plan: BankPlan) -> Mapping[str, bool]:
        """Those that minimise the first objective."""
        return {name: one.proves for name, one in BANK_ENGINES.items() if _aim(plan.objectives) in one.objectives}


def _aim(objectives: Sequence[str]) -> str:
    return "time" if objectives[0] == "time" else "bytes"


def _details(plan: BankPlan) -> Mapping[str, str]:
    scale = plan.machine_data.tick_ps / 1e6
    time = plan.measures.time if plan.measures else 0
    return {"time (us)": f"{time * scale:,.1f}", "waits (us)": f"{(plan.pe_delay_ticks or 0) * scale:,.1f}"}


def _none(plan: BankPlan) -> BankPlan:
    """An answer that says nothing."""
    empty = {"objective": None, "bound": None, "gap": None, "measures": None, "pe_delay_ticks": None, "layers": ()}
    return plan.model_copy(update={**empty, "status": "NO_SOLUTION_FOUND"})


def _code(row: StagePlan) -> str:
    """The control code as the source writes it, and what stays."""
    if row.kind == FUSED:
        return f"fused with {row.source}"
    code = " ".join(f"{action.do[0].upper()}{action.tiles}" for action in row.actions)
    stays = f", {len(row.results)} stay" + (" mirrored" if row.mirrored else "") if row.results else ""
    return f"{row.initial} there: {code}{stays}"


def bank_lines(plan: BankPlan) -> dict[str, list[str]]:
    """Return the lines of every stage."""
    found, banks, _ = setting_of(plan.network_data, plan.machine_data, plan.first_layer)
    stages = {stage.name: stage for stage in found.stages}
    seen = figures(
        found, plan.machine_data, [row.to_run(stages[row.layer]) for row in plan.layers if row.kind != FUSED]
    )
    blocks: dict[str, list[str]] = {}
    for row in plan.layers:
        if row.kind == FUSED:
            blocks[row.layer] = [f"{row.layer}: fused with {row.source}, which ends with it", ""]
            continue
        steps = [(action, held) for name, action, held in seen.moved.history if name == row.layer]
        source, target = found.maps[row.source], found.maps[row.target]
        sizes = {row.source: source.tile(banks), row.target: target.tile(banks)}
        way = "last column first" if row.backwards else "first column first"
        pooled = stages[row.layer].pooled
        kind = f"{row.kind} of {pooled.columns} columns, averaged at its end" if pooled else row.kind
        head = (
            f"{row.layer}: {kind}, {row.source} ({source.columns} columns of {source.column_bytes:,} bytes, "
            f"{sizes[row.source]} a bank, {way}) -> {row.target} ({target.columns} columns, {sizes[row.target]} a bank)"
        )
        cells = [[action, *(_cell(held.get(k), row) for k in range(banks.count))] for action, held in steps]
        lines = [head, _line(["", *(f"bank {k}" for k in range(banks.count))])]
        lines += [_line(row_cells) for row_cells in cells]
        waits = microseconds(plan, row.wait_ticks)
        lines.append(f"  {row.volume.total:,} bytes, {microseconds(plan, row.ticks)} us, {waits} us of them waiting")
        blocks[row.layer] = [*lines, ""]
    return blocks


def _cell(held: Held | None, row: StagePlan) -> str:
    """What a bank holds: a letter and the first column."""
    if held is None:
        return "."
    letter, name, first = held
    if letter == "I" and name == row.target:
        letter = "O"
    elif letter == "I" and name != row.source:
        letter = "R"
    return f"{letter}{first}"


def _line(cells: Sequence[str]) -> str:
    return "  " + f"{cells[0]:<10}" + "".join(f"{cell:>8}" for cell in cells[1:])
