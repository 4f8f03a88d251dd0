"""The page of a plan: what is proven, its table, its figures, its parts in detail, and what was asked.

A layer says where its first measure goes, by operand and cause, as `certile why` does with nothing solved again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from instances.errors import InputError
from solver.ask.options import AUTO
from solver.plan.figures import Block, Fact
from solver.plan.plan import Plan
from solver.problems.layers import is_layers
from solver.problems.problem import Problem
from solver.problems.registry import problem_of
from solver.show.page import Page, Section
from solver.show.tables import percent
from solver.uses.why.layers import parts_alone
from solver.uses.why.text import split_sentences

#: Seconds for the engines that a plan is compared with.
COMPARED_S = 60.0


def rivals(plan: Plan, engines: Sequence[str], time_limit_s: float | None = COMPARED_S) -> dict[str, Plan]:
    """Return plans of what a plan was asked, by other engines; raises InputError for engines that cannot be asked."""
    problem = problem_of(plan)
    found = {}
    for name in dict.fromkeys(engines):
        if name == AUTO:
            raise InputError("--compare: name the engines to compare with; certile list engines --problem P has them")
        engine = problem.engine(name, plan.objectives)
        if engine != plan.engine:
            found[engine] = problem.resolve(plan, engine, time_limit_s, 1)
    return found


def plan_page(plan: Plan, others: Mapping[str, Plan] | None = None) -> Page:
    """Return the page of a plan.

    Parameters
    ----------
    others : mapping of engine to plan, optional
        Plans of the same question, drawn beside it.
    """
    problem, beside = problem_of(plan), dict(others or {})
    pictures = problem.pictures(plan, beside)
    sections = [_proof(problem, plan, beside)]
    if problem.names(plan):
        sheet = problem.sheet(plan)
        what = "Tasks" if sheet.columns[0].head == "task" else "Table"
        sections.append(Section(what, grids=(replace(sheet, caption=f"{plan.network} on {plan.machine}"),)))
    figures = tuple(figure for figure in pictures.figures if not figure.empty)
    if figures:
        sections.append(Section("Figures", figures=figures))
    if pictures.blocks:
        sections.append(Section("In detail", blocks=tuple(_told(plan, block) for block in pictures.blocks)))
    sections.append(_asked(plan))
    title = f"{plan.network} on {plan.machine}"
    return Page(title, f"Problem {plan.problem}: {problem.summary}", tuple(sections))


def _told(plan: Plan, block: Block) -> Block:
    """A block with where a layer's first measure goes, by operand and cause."""
    splits = parts_alone(plan, plan.layer(block.name)).splits if is_layers(plan) else ()
    return replace(block, sentences=(*block.sentences, *split_sentences(splits[0]))) if splits else block


def _proof(problem: Problem, plan: Plan, others: Mapping[str, Plan]) -> Section:
    """Status, value, bound and gap first; then how they were come by, and how they can be checked."""
    facts = []
    if plan.objective is not None:
        value, unit = plan.objective.value, plan.objective.unit
        facts.append(Fact(plan.objectives[0], f"{value:,} {unit}", common_unit(plan, value)))
    if plan.bound is not None:
        facts.append(Fact("bound", f"{plan.bound:,} {plan.unit}", "no plan of the stated space has less"))
    if plan.gap is not None:
        facts.append(Fact("gap", f"{percent(plan.gap)} %", "above the least possible, at most"))
    if len(plan.objectives) > 1:
        proven = str(plan.stats.get("proven", "")) or ("all" if plan.status == "OPTIMAL" else "none")
        facts.append(Fact("objectives", ", ".join(plan.objectives), f"most important first; proven: {proven}"))
    version = f" ({plan.engine_version})" if plan.engine_version else ""
    facts += [Fact("engine", f"{plan.engine}{version}"), Fact("search", f"{plan.wall_s:,.2f} s")]
    facts.append(_replay(problem, plan))
    for name, other in others.items():
        facts.append(Fact(f"beside: {name}", _beside(plan, other)))
    facts += [Fact("conflict", line) for line in plan.conflicts]
    facts += [
        Fact("network", plan.network, plan.network_digest),
        Fact("machine", plan.machine, plan.machine_digest),
    ]
    lead = tuple(f"{line[:1].upper()}{line[1:]}." for line in problem.known(plan)[1:] if not _said(plan, line))
    return Section("What is proven", plan.status, lead, tuple(facts))


def _said(plan: Plan, line: str) -> bool:
    """Whether a line says what stands among the facts: the objective, that replay agrees, conflicts."""
    value = "" if plan.objective is None else f"{plan.objectives[0]} {plan.objective.value:,}"
    return (bool(value) and line.startswith(value)) or line in ("replay agrees", "simulation agrees", *plan.conflicts)


def common_unit(plan: Plan, value: int) -> str:
    """Return a value in microseconds, or microjoules; empty where the unit is common."""
    unit = plan.objective.unit if plan.objective else plan.unit
    if unit == "ticks":
        return f"{value * plan.machine_data.tick_ps / 1e6:,.1f} us"
    return f"{value / 1e9:,.1f} uJ" if unit == "fJ" else ""


def _replay(problem: Problem, plan: Plan) -> Fact:
    """What the independent walk found."""
    verdicts = list(problem.replays(plan))
    failed = [f"{where}{'; '.join(faults) or 'not ok'}" for where, ok, faults in verdicts if ok is False]
    if failed:
        return Fact("replay", "does not agree", "; ".join(failed[:3]))
    if any(ok for _, ok, _ in verdicts):
        return Fact("replay", "agrees", "an independent walk over the schedule counts the same")
    return Fact("replay", "nothing to replay")


def _beside(plan: Plan, other: Plan) -> str:
    if other.objective is None or plan.objective is None:
        return f"{other.status}, no plan"
    value = plan.objective.value
    times = f", {other.objective.value / value:.3f} times this plan" if value else ""
    return f"{other.status}, {other.objective.value:,} {other.objective.unit}{times}"


def _asked(plan: Plan) -> Section:
    """Options, pins and the machine: all that another run needs."""
    options = plan.options.model_dump(mode="json", exclude={"profile"})
    pins = options.pop("pins")
    facts = [Fact("objectives", ", ".join(plan.objectives)), Fact("pins", ", ".join(pins) or "none")]
    facts += [
        Fact(name.replace("_", " "), _option(value))
        for name, value in options.items()
        if value not in (None, "", [], ())
    ]
    profile = plan.options.profile
    facts += [Fact("profile", f"{len(profile.times)} measured times")] if profile else []
    facts.append(Fact("to verify", "certile check plan.json", "prices and replays the plan file again, by itself"))
    machine = plan.machine_data.model_dump(mode="json")
    sources = machine.pop("sources", {})
    fields = tuple(Fact(name, value, str(sources.get(name, ""))) for name, value in _flat(machine))
    stats = tuple(Fact(name, _option(value)) for name, value in plan.stats.items())
    folded = [("All fields of the machine, with sources", fields), ("Statistics of the engine", stats)]
    return Section("What was asked", facts=tuple(facts), folded=tuple(one for one in folded if one[1]))


def _option(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _flat(fields: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Fields by dotted name; None is left out."""
    made: list[tuple[str, str]] = []
    for name, value in fields.items():
        if isinstance(value, Mapping):
            made += _flat(value, f"{before}{name}.")
        elif value is not None:
            made.append((f"{before}{name}", _option(value)))
    return made
