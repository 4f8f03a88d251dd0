"""Problem mapping, as the rest of `solver` sees it, and its plans for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from formulations.mapping.formulation import MappingFormulation
from formulations.mapping.part import MappingPart
from instances.errors import InputError
from solver.front import Front
from solver.mapping.board import BoardProblem, TaskRow, whole_us
from solver.mapping.drawn import LETTERS, WIDTH, drawn
from solver.mapping.figures import alone, figures
from solver.mapping.front import front
from solver.network_show import known_parts
from solver.pages.common import terms
from solver.pages.data import Pictures
from solver.plan import Plan
from solver.problem import front_of_plans
from solver.question import Question
from solver.tables import Column, Sheet
from solver.words import labels


class MappingProblem(BoardProblem):
    """F5: tasks of a network on the processors of a board."""

    def __init__(self) -> None:
        super().__init__(MappingFormulation())
        self.axes = {name: self.measures[name] for name in ("period", "energy")}
        self.others = {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")}

    def parts(self, question: Question) -> Sequence[MappingPart]:
        """A network on a board; raises InputError for bad pins and profiles."""
        request, aims = self.request(question, question.pins), question.objectives
        limits = request.demands.limits
        once = "latency" in aims or limits.latency is not None
        cap = any(text.startswith("cap") for text in question.pins)
        if once and cap and "period" not in aims and limits.period is None:
            raise InputError(
                "pin cap: how busy cores are is counted over periods, and one inference alone has none: "
                "add period to the objectives or pin period<=N"
            )
        return [MappingPart.of(request, aims)]

    def front(self, question: Question, axes: tuple[str, ...]) -> Front:
        """The exact front of period and energy."""
        plans, proven = front(self, question)
        if not plans:
            why = "no plan keeps the pins" if proven else "no plan in this time, give a larger --time-limit"
            raise InputError(f"network {question.network.name}: {why}")
        return front_of_plans(self, question, plans, proven=proven, details=_details)

    def able(self, plan: Plan) -> Mapping[str, bool]:
        """Those that know of latency, where it counts."""
        once = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
        return {name: proves for name, proves in super().able(plan).items() if not once or "clustering" not in name}

    # ---- showing -----------------------------------------------------------------------------------------------------

    def figures(self, plan: Plan) -> dict[str, int]:
        """The measures, and in a pipeline the latency, too."""
        return {} if plan.measures is None else {**plan.measures, "latency": plan.part.figures.latency}

    def layer_rows(self, plan: Plan) -> tuple[TaskRow, ...]:
        """The tasks, or parts of tasks; none without a schedule."""
        if not plan.decided:
            return ()
        made, of = plan.schedule.tasks, Counter[str]()
        for row in made:
            of[row.task] += row.share
        return tuple(
            TaskRow(row.task, row.processor, row.start, one.time, one.copies, row.stage, row.share, of[row.task])
            for row, one in zip(made, plan.part.figures.tasks, strict=True)
        )

    def status(self, plan: Plan) -> list[str]:
        """Return what is known, a part each: status, value, bound, gap, energy, latency, and simulation."""
        parts, known = known_parts(plan), self.figures(plan)
        if not known:
            return parts
        cores = ",".join(map(str, plan.schedule.cpu_config))
        every, mj = f"every {whole_us(plan, known['period'])} us", f"{known['energy'] / 1e12:,.1f} mJ"
        took = whole_us(plan, known["latency"])
        if alone(plan):
            said = f"one inference alone in {took} us, {mj}; in a pipeline one {every}"
        else:
            said = f"an inference {every}, {mj} each, {took} us from release to end"
        agrees = plan.part.replay is not None and plan.part.replay.ok
        return [
            *parts, f"cores ({cores}): {said}", "simulation agrees" if agrees else "simulation does not agree"
        ]  # fmt: skip

    def sheet(self, plan: Plan) -> Sheet:
        """Return the table of tasks."""
        rows, once = self.layer_rows(plan), alone(plan)
        late = [Column("inference", [_late(row) for row in rows], "in period n the task works on this one", words=True)]
        return Sheet(
            [
                Column("task", labels([row.name for row in rows], plan.network_data.layers), words=True),
                Column("processor", [row.processor for row in rows], words=True),
                Column("start (us)", [whole_us(plan, row.start) for row in rows],
                       f"from the begin of {'the inference' if once else 'a period'} on"),
                Column("runs (us)", [whole_us(plan, row.time) for row in rows]),
                Column("copies (us)", [whole_us(plan, row.copies) for row in rows], "then, to other processors"),
                *([] if once else late),
            ]
        )  # fmt: skip

    def pictures(self, plan: Plan, others: Mapping[str, Plan]) -> Pictures:
        """Processors over time, and their load."""
        return Pictures((*figures(plan, others), *terms(plan, others)), self.blocks(plan))

    def details(self, plan: Plan, layer: str | None) -> Iterator[str]:
        """Return a task with what it reads and hands on; or one period of every processor, and all tasks."""
        rows = self.layer_rows(plan)
        if layer is None:
            yield from _processors(plan, rows)
        request = self.request(self.question(plan), plan.options.pins)
        times = {task.name: row for task, row in zip(request.graph.tasks, request.rows, strict=True)}
        for name in self.names(plan):
            if layer in (None, name):
                yield from _task(plan, rows, name, times[name])


# ---- for people ------------------------------------------------------------------------------------------------------


def _details(plan: Plan) -> Mapping[str, str]:
    gap = "no bound" if plan.gap is None else f"{100 * plan.gap:.3g} %"
    energy = f"{plan.part.measures['energy'] / 1e12:,.2f}"
    return {"energy (mJ)": energy, "energy gap": gap, "cores": ",".join(map(str, plan.schedule.cpu_config))}


def _late(row: TaskRow) -> str:
    return f"n - {row.stage}" if row.stage else "n"


def _processors(plan: Plan, tasks: Sequence[TaskRow]) -> list[str]:
    """One period of every processor, or one inference."""
    once, known = alone(plan), plan.part.figures
    span = max(1, known.latency) if once else plan.part.measures["period"]
    lines = [f"{'one inference' if once else 'one period'}; a letter is a task, = its copies to other processors, "
             ". idle", ""]  # fmt: skip
    width = max((len(one.name) for one in known.processors), default=0)
    for one in known.processors:
        rows = sorted((row for row in tasks if row.processor == one.name), key=lambda row: row.start)
        lines.append(f"{one.name:<{width}} |{drawn(rows, span)}| {100 * sum(one.loads) / span:.1f} %")
        named = [row.name if once else f"{row.name} ({_late(row)})" for row in rows]
        lines += [f"{'':<{width}}  {text}" for text in _legend(named)]
    return [*lines, ""]


def _legend(names: Sequence[str]) -> list[str]:
    lines, at = [""], 0
    for n, name in enumerate(names):
        part = f"{LETTERS[n % len(LETTERS)]} {name}"
        if len(lines[at]) + len(part) > WIDTH:
            lines.append("")
            at += 1
        lines[at] += ("; " if lines[at] else "") + part
    return [line for line in lines if line]


def _task(plan: Plan, tasks: Sequence[TaskRow], name: str, times: Mapping[str, float | None]) -> list[str]:
    rows = [row for row in tasks if row.task == name]
    where, lines = {one.part: one.processor for one in tasks}, list[str]()
    for row in rows:
        when = "" if alone(plan) else f"; in period n it works on inference {_late(row)}"
        lines.append(
            f"{row.name} on {row.processor}: from {whole_us(plan, row.start)} us of "
            f"{'a period' if when else 'an inference'} on, {whole_us(plan, row.time)} us, "
            f"then {whole_us(plan, row.copies)} us of copies{when}"
        )
    lines.append("profile (us): " + ", ".join(f"{k} {'-' if t is None else f'{t:,.0f}'}" for k, t in times.items()))
    mine = {row.part for row in rows}
    for one, size in zip(plan.schedule.waiting, plan.part.figures.waiting_bytes, strict=True):
        if one.target in mine:
            lines.append(f"reads {one.source} of {where[one.source]}")
        if one.source in mine:
            lines.append(f"hands to {one.target} on {where[one.target]}, {one.buffers} buffers, {size:,} bytes")
    return lines


PROBLEM = MappingProblem
