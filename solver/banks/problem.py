"""Problem banks, as the rest of `solver` sees it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from formulations.banks.part import BankPart, BankProgram, BankReplayed
from formulations.banks.problem import BankFormulation
from formulations.banks.readings import may_wait
from formulations.clock import Clock
from formulations.pins import parse_pins
from hwmodels.outcome import MEASURES
from hwmodels.schedule import StageRun
from instances.errors import InputError
from instances.feature_maps import Stages
from instances.machine import Banks
from solver.banks.figures import figures
from solver.banks.plan import (
    FRONT,
    FUSED,
    BankAction,
    BankOptions,
    BankPlan,
    BankReplay,
    BankTile,
    StagePlan,
    Volume,
)
from solver.front import Front
from solver.network_check import undecided_of
from solver.network_show import microseconds, status_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Measures, Objective
from solver.problem import front_of_plans
from solver.question import Question
from solver.search import Answer
from solver.tables import Column, Sheet, name_column
from solver.verdict import Verdict
from solver.whole import WholeProblem
from solver.words import labels

if TYPE_CHECKING:
    from hwmodels.banks.replay_time import Held, Moved, Spent

_PROGRAM = (
    "tiles that are there when the stage begins, steps that load (L) or process (P) so many tiles, tiles of the result "
    "that stay on chip"
)
_LEGEND = "I input there, L being loaded, P processed, O output, R waits for another stage, . free"


class BanksProblem(WholeProblem[BankPlan]):
    """F6: feature maps of a whole network in memory banks."""

    plan = BankPlan
    front_engines = False
    unasked = WholeProblem.unasked | {"time_at_most"}

    def __init__(self) -> None:
        super().__init__(BankFormulation())
        self.axes = {"bytes": "bytes", "time": "ticks"}
        self.quick = ("no-reuse", "double-buffer", "min", "min-all", "dls", "hide", "beam")
        self.others = {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}

    def engine(self, name: str, objectives: tuple[str, ...]) -> str:
        """An engine that minimises the first objective."""
        chosen = super().engine(name, objectives)
        if not self._able(chosen, objectives):
            raise InputError(f"engine {chosen} minimises bytes only: use dynamic for objective {objectives[0]}")
        return chosen

    def able(self, plan: BankPlan) -> Mapping[str, bool]:
        """Those that minimise the first objective."""
        return {name: proves for name, proves in super().able(plan).items() if self._able(name, plan.objectives)}

    @staticmethod
    def _able(engine: str, objectives: Sequence[str]) -> bool:
        return objectives[0] != "time" or engine not in ("cp-sat", "milp")

    # ---- plans -------------------------------------------------------------------------------------------------------

    def options(self, question: Question) -> BankOptions:
        """Return what else was asked."""
        pins = {pin.name: pin.value for pin in parse_pins(question.pins, self.formulation.decisions).pins}
        waiting = may_wait(question.machine, pins["residuals"] == "chip" if "residuals" in pins else None)
        return BankOptions.model_validate({
            "waiting": waiting, "first_layer": pins.get("first_layer"), "time_limit_s": question.time_limit_s,
            "settings": question.settings,
        })  # fmt: skip

    def question(self, plan: BankPlan) -> Question:
        """What a stored plan was asked."""
        first = plan.options.first_layer
        pins = [f"residuals={'chip' if plan.options.waiting else 'dram'}", *([f"first_layer={first}"] if first else [])]
        return Question(plan.network_data, plan.machine_data, plan.objectives, "banks", pins=tuple(pins))

    def body(self, verdict: Verdict, question: Question) -> dict[str, Any]:
        """Return figures and stages."""
        part, seen, program = verdict.part, verdict.walked, verdict.said.schedule
        assert isinstance(part, BankPart)
        if program is None or not isinstance(seen, BankReplayed):
            return {
                "objective": None, "measures": None, "pe_delay_ticks": None, "compulsory_bytes": part.least.bytes,
                "layers": (), "replay": BankReplay(ok=None, faults=()),
            }  # fmt: skip
        waits = {
            kind: sum(getattr(one, f"waits_for_{kind}") for one in seen.spent.values())
            for kind in ("maps", "weights", "writes")
        }
        return {
            "objective": _objective(question.objectives[0], part, seen, waits),
            "measures": Measures(**{name: seen.measures[name] for name in MEASURES}),
            "pe_delay_ticks": sum(waits.values()), "compulsory_bytes": part.least.bytes,
            "layers": stage_rows(part.banks, program.runs, seen.moved, seen.spent),
            "replay": BankReplay(ok=True, faults=()),
        }  # fmt: skip

    def decided(self, plan: BankPlan, part: Any) -> BankProgram | None:
        """Return the program that a plan states."""
        if not plan.layers:
            return None
        if plan.first_layer not in part.readings:
            raise InputError(
                f"layers: the first layer is {plan.first_layer}, it may be {' or '.join(part.readings)}"
            )  # fmt: skip
        found = part.readings[plan.first_layer].found
        if strange := _strange(plan, found):
            raise InputError(strange)
        stages = {stage.name: stage for stage in found.stages}
        rows = [row for row in plan.layers if row.layer in stages]
        if unnumbered := [row.layer for row in rows if not row.tiles]:
            names = ", ".join(unnumbered)
            raise InputError(f"layers: {names}: no tiles, the plan must say where the stage finds its map")
        return BankProgram(plan.first_layer, tuple(row.to_run(stages[row.layer]) for row in rows))

    def faults(self, plan: BankPlan) -> Iterator[str]:
        """Yield what does not follow from the decisions of a plan, and what a front promises."""
        yield from super().faults(plan)
        if not plan.layers:
            yield from undecided_of(plan, plan.replay.ok)
            if (plan.bound is not None and plan.status == "INFEASIBLE") or plan.pe_delay_ticks is not None:
                yield "a plan without layers has no bound and no delay"
        most, time_ticks = plan.options.time_at_most, plan.measures.time if plan.measures else 0
        if most is not None and time_ticks > most:
            yield f"options.time_at_most: {time_ticks} ticks are more than {most}"
        if most is not None and plan.objectives != FRONT:
            said = f"a plan of a front (options.time_at_most) has {','.join(FRONT)}"
            yield f"objectives: {','.join(plan.objectives)}; {said}"

    # ---- the front ---------------------------------------------------------------------------------------------------

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of bytes and time."""
        plans = self._front(question)
        proven = all(plan.status == "OPTIMAL" for plan in plans)
        return front_of_plans(self, question, plans, proven=proven, details=_details)

    def _front(self, question: Question) -> tuple[BankPlan, ...]:
        """The plans on the front, by bytes: each moves the fewest of all that take no more time.

        If the whole front is proven they are OPTIMAL; raises InputError if there is no plan.
        """
        start, question = time.monotonic(), replace(question, objectives=FRONT, engine="dynamic")
        (part,) = self.parts(question)
        assert isinstance(part, BankPart)
        programs, whole = part.front(Clock.of(question.time_limit_s))
        plans = []
        for program in programs:
            values = part.price(program).measures
            bounds = (
                {name: values[name] for name in FRONT} if whole.proven else {"bytes": whole.bytes_bound, "time": None}
            )
            said = Answer(
                program, values, bounds, "OPTIMAL" if whole.proven else "FEASIBLE",
                stats={"labels": whole.labels, "states": whole.states},
            )  # fmt: skip
            plan = self.made(question, part, said, start)
            options = plan.options.model_copy(update={"time_at_most": values["time"]})
            plans.append(plan.model_copy(update={"options": options}))
        return tuple(plans)

    def again(self, plan: BankPlan, engine: str, time_limit_s: float | None, jobs: int) -> BankPlan:
        """Solve again; a plan of a front is the one with the fewest bytes of all that take no more time."""
        most = plan.options.time_at_most
        if most is None:
            return super().again(plan, engine, time_limit_s, jobs)
        if engine == "dynamic":
            plans = self._front(replace(self.question(plan), time_limit_s=time_limit_s))
        else:
            plans = (super().again(plan, engine, time_limit_s, jobs),)
        kept = (one for one in plans if one.measures is not None and one.measures.time <= most)
        return next(kept, _none(plan)).model_copy(update={"options": plan.options})

    # ---- for people --------------------------------------------------------------------------------------------------

    def status(self, plan: BankPlan) -> list[str]:
        """What is known: status, value, bound, gap, what is left to win, and replay."""
        parts = status_parts(plan)
        if plan.measures is None or plan.pe_delay_ticks is None:
            return parts
        share = plan.pe_delay_ticks / plan.measures.time
        time, waits = microseconds(plan, plan.measures.time), microseconds(plan, plan.pe_delay_ticks)
        parts.append(f"{time} us, {waits} us of them waiting ({share:.1%})")
        (part,) = self.parts(replace(self.question(plan), pins=()))
        if isinstance(part, BankPart) and len(part.readings) > 1:
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

    def pictures(self, plan: BankPlan, others: Mapping[str, BankPlan]) -> Pictures:
        """Banks step by step, times and bytes by stage, roofline."""
        (part,) = self.parts(self.question(plan))
        assert isinstance(part, BankPart)
        program = self.decided(plan, part)
        drawn = [] if program is None else figures(plan, others, part, program)
        return Pictures((*drawn, *terms(plan, others)), self.blocks(plan))

    def details(self, plan: BankPlan, layer: str | None) -> Iterable[str]:
        """The map of banks by time, as in Fig. 4.9 and 4.10 of its source, of one stage or all."""
        yield from (_LEGEND, "")
        (part,) = self.parts(self.question(plan))
        assert isinstance(part, BankPart)
        for name, lines in _bank_lines(plan, part, self.decided(plan, part)).items():
            if layer in (None, name):
                yield from lines


# ---- what stands in a plan -------------------------------------------------------------------------------------------


def _objective(measure: str, part: BankPart, seen: BankReplayed, waits: Mapping[str, int]) -> Objective:
    """The objective with the terms that sum to it."""
    if measure == "time":
        kinds = waits if part.banks.writes == "bus" else {name: waits[name] for name in ("maps", "weights")}
        terms = {f"wait_{name}": ticks for name, ticks in kinds.items()}
        terms = {"compute": seen.measures["time"] - sum(terms.values()), **terms}
    else:
        base, unit = part.scale(measure)
        terms = {kind: unit * seen.measures[kind] for kind in Volume.model_fields if kind != "total"}
        terms |= {"MAC": base} if measure == "energy" else {}
    return Objective.model_validate({"value": sum(terms.values()), "unit": MEASURES[measure], "terms": terms})


def stage_rows(
    banks: Banks, runs: Sequence[StageRun], moved: Moved, spent_on: Mapping[str, Spent]
) -> tuple[StagePlan, ...]:
    """Return every stage with its program and its figures."""
    plans: list[StagePlan] = []
    for run in runs:
        stage, spent, parts = run.stage, spent_on[run.stage.name], moved.stages[run.stage.name]
        others = [name for name in (stage.source, *stage.streamed) if name != run.source]
        plans.append(
            StagePlan(
                layer=stage.name, kind=stage.kind, source=run.source, target=stage.target, streamed=tuple(others),
                backwards=run.backwards, initial=sum(not tile.loaded for tile in run.tiles),
                tiles=tuple(BankTile(bank=t.bank, first=t.first, end=t.end, loaded=t.loaded) for t in run.tiles),
                actions=tuple(BankAction.model_validate({"do": do, "tiles": tiles}) for do, tiles in run.actions),
                results=tuple(BankTile(bank=t.bank, first=t.first, end=t.end) for t in run.results),
                mirrored=run.last, keep=run.keep, retain=run.retain,
                weights="none" if not stage.weight_bytes else "each_step" if stage.anew(banks) else "once",
                volume=Volume(
                    load=parts[0], weight=parts[1], streamed=parts[2], bias=parts[3], write=parts[4], total=sum(parts)
                ),
                ticks=spent.ticks, wait_maps_ticks=spent.waits_for_maps, wait_weights_ticks=spent.waits_for_weights,
                wait_writes_ticks=spent.waits_for_writes,
            )
        )  # fmt: skip
        if stage.pooled is not None:
            plans.append(plans[-1].average())
    return tuple(plans)


def _strange(plan: BankPlan, found: Stages) -> str:
    """Layers that are no stages, or pools that are not fused as the network says; nothing if there are none."""
    known = {stage.name for stage in found.stages}
    averages = {stage.target: stage.name for stage in found.stages if stage.pooled}
    unknown = [p.layer for p in plan.layers if p.layer not in known | averages.keys()]
    if unknown:
        return f"layers: {', '.join(unknown)}: no such stage"
    names = [layer.layer for layer in plan.layers]
    behind = {name: before for before, name in pairwise(names)}
    apart = [name for name, before in averages.items() if names.count(name) != 1 or behind.get(name) != before]
    return f"layers: {', '.join(apart)}: fused with the layer before, which is another one" if apart else ""


# ---- for people ------------------------------------------------------------------------------------------------------


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


def _bank_lines(plan: BankPlan, part: BankPart, program: BankProgram | None) -> dict[str, list[str]]:
    """The lines of every stage."""
    if program is None:
        return {}
    found, banks, moved = part.readings[program.first_layer].found, part.banks, part.replay(program).moved
    stages = {stage.name: stage for stage in found.stages}
    blocks: dict[str, list[str]] = {}
    for row in plan.layers:
        if row.kind == FUSED:
            blocks[row.layer] = [f"{row.layer}: fused with {row.source}, which ends with it", ""]
            continue
        steps = [(action, held) for name, action, held in moved.history if name == row.layer]
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
