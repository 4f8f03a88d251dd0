"""Suite ``library``: an engine, or results of somebody else, on the instances of the library.

For each instance value, status and seconds beside the best that is known; for each problem and engine how many are
proven, how many reach the best known value, and shifted geometric means: with n instances, seconds t and shift s

    (prod of (t_k + s)) ^ (1 / n) - s.

An instance that is not proven counts with the time limit, one without a schedule with a gap of 100 %; none is left
out. Every schedule of certile is judged from its decisions. One that is better than what is known is an improvement,
or, where the library says that nothing is better, a contradiction: one of two proofs is wrong.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from instances.errors import InputError
from instances.jsonfile import csv_rows, decoded, read_bytes, shown
from instances.library_format import Instance, chosen
from solver.ask.options import AUTO
from solver.ask.progress import Progress
from solver.uses.bench.report import Cell, Report
from solver.uses.library.check import decisions, judge, question_of, refuted, with_engine

#: Seconds for an instance if nothing is said.
LIMIT_S = 20.0
#: Shifts of the geometric means: seconds, and parts of a hundred.
SHIFT_S, SHIFT_PERCENT = 1.0, 1.0
_HEADS = ("instance", "class", "engine", "status", "value", "best known", "bound", "gap %", "s", "verdict")
_SUMS = ("problem", "engine", "instances", "proven", "best reached", "shifted geomean s", "shifted geomean gap %")
_STATUSES = ("OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND")


@dataclass(frozen=True)
class Run:
    """What somebody says of an instance."""

    instance: Instance
    engine: str
    status: str
    seconds: float
    values: Mapping[str, int] = field(default_factory=dict)
    """Of the objectives; of a stranger's results the first one alone."""
    verified: bool = False
    """Whether a referee has seen the schedule."""

    @property
    def value(self) -> int | None:
        """Of the first objective."""
        return next(iter(self.values.values()), None)

    @property
    def verdict(self) -> str:
        """What it means for what is known."""
        known, mine = self.instance.known, tuple(self.values.values())
        best = tuple(known.values.values())[: len(mine)]
        if self.status == "INFEASIBLE":
            return "proven" if known.status == "INFEASIBLE" else "CONTRADICTION"
        if not mine:
            return "nothing"
        if refuted(self.instance, mine):
            return "CONTRADICTION"
        if mine < best:
            return "BETTER"
        if self.status == "OPTIMAL":
            return "proven" if mine == best else "CONTRADICTION"
        return "best reached" if mine == best else "worse"

    @property
    def proven(self) -> bool:
        """Whether it is solved: proven, and nothing speaks against it."""
        return self.status in ("OPTIMAL", "INFEASIBLE") and self.verdict in ("proven", "BETTER")

    @property
    def reached(self) -> bool:
        """Whether nothing better is known."""
        return self.verdict in ("proven", "BETTER", "best reached")

    @property
    def gap(self) -> float:
        """Percent of the value above the best known; 100 without a schedule."""
        best = self.instance.value
        if self.status == "INFEASIBLE" == self.instance.known.status:
            return 0.0
        if self.value is None or best is None:
            return 100.0
        return 0.0 if self.value <= best else 100 * (self.value - best) / self.value


def library(
    progress: Progress, *, only: str = "", engine: str | None = None, problem: str | None = None,
    difficulty: str | None = None, time_limit_s: float | None = None, results: str | None = None,
) -> Report:  # fmt: skip
    """Run an engine on instances, or read results; without either, the fastest engine of every problem.

    Parameters
    ----------
    only : str
        Instances whose names contain this text.
    engine : str, optional
        One that the problems have; those that do not have it are left out, and named. With `results` and without an
        engine what the library has recorded stands beside.
    results : str, optional
        A CSV file: ``instance,value,seconds,status``.

    Raises
    ------
    InputError
        If there is no such instance, no problem has the engine, or the file is wrong.
    """
    report, limit = Report("library", progress=progress), LIMIT_S if time_limit_s is None else time_limit_s
    asked = [one for one in chosen(problem=problem, difficulty=difficulty) if only in one.name]
    if not asked:
        raise InputError(f"--only {only}: no such instance has this in its name")
    runs, notes = list[Run](), list[str]()
    if results is not None:
        runs += _read(results, asked, limit, notes)
    if engine is None and results is not None:
        runs += [_recorded(one) for one in asked]
    else:
        skipped = dict[str, int]()
        for one in report.each(asked, lambda one: one.name):
            run = _run(one, engine or AUTO, limit)
            if run is None:
                skipped[one.problem] = skipped.get(one.problem, 0) + 1
            else:
                runs.append(run)
        notes += [f"engine {engine}: {number} instances of problem {name} left out" for name, number in skipped.items()]
    if not runs:
        raise InputError(f"engine {engine}: none of these instances can be asked of it")
    _tables(report, runs, limit, notes)
    return report


def _tables(report: Report, runs: Sequence[Run], limit: float, notes: Sequence[str]) -> None:
    """Sections and figures."""
    better = [run for run in runs if run.verdict == "BETTER"]
    wrong = [run for run in runs if run.verdict == "CONTRADICTION"]
    rows = report.section("Instances", _HEADS)
    rows.rows += [_row(run) for run in sorted(runs, key=lambda run: (run.instance.name, run.engine))]
    sums = report.section("By problem and engine", _SUMS)
    sums.rows += list(_sums(runs, limit))
    sums.notes += [
        f"shifted geometric means: shift {SHIFT_S:g} s and {SHIFT_PERCENT:g} %; what is not proven counts {limit:g} s, "
        "what has no schedule 100 %.",
        "gap: of the value above the best known. seconds: as they pass.", *notes,
    ]  # fmt: skip
    if better:
        sums.notes += ["BETTER THAN KNOWN, please report it (docs/library.md):", *map(_line, better)]
    if wrong:
        sums.notes += ["CONTRADICTION: one of two proofs is wrong, please report it:", *map(_line, wrong)]
    report.figures = {
        "time_limit_s": limit, "improvements": list(map(_line, better)), "contradictions": list(map(_line, wrong)),
        "runs": rows.to_json()["rows"], "summary": sums.to_json()["rows"],
    }  # fmt: skip


def _line(run: Run) -> str:
    known = run.instance.known
    said = ", ".join(f"{name} {value:,}" for name, value in run.values.items()) or run.status
    best = ", ".join(f"{name} {value:,}" for name, value in known.values.items()) or "none"
    seen = "replayed" if run.verified else "not seen by a referee"
    return f"{run.instance.name}: {run.engine} {run.status} {said} ({seen}); known {known.status} {best}"


def _row(run: Run) -> list[Cell]:
    one = run.instance
    return [
        one.name, one.difficulty, run.engine, run.status, run.value, one.value, one.known.bound,
        None if run.value is None else run.gap, run.seconds, run.verdict,
    ]  # fmt: skip


def _sums(runs: Sequence[Run], limit: float) -> Iterable[list[Cell]]:
    """A row for every problem and engine, and one for all problems of an engine if there are several."""
    keys = dict.fromkeys((run.instance.problem, run.engine) for run in runs)
    engines = dict.fromkeys(engine for _, engine in keys)
    groups = {key: [run for run in runs if (run.instance.problem, run.engine) == key] for key in keys}
    if len({problem for problem, _ in keys}) > 1:
        groups |= {("all", engine): [run for run in runs if run.engine == engine] for engine in engines}
    for (problem, engine), mine in groups.items():
        took = [min(run.seconds, limit) if run.proven else limit for run in mine]
        yield [
            problem, engine, len(mine), sum(run.proven for run in mine), sum(run.reached for run in mine),
            shifted_geomean(took, SHIFT_S), shifted_geomean([run.gap for run in mine], SHIFT_PERCENT),
        ]  # fmt: skip


def shifted_geomean(values: Sequence[float], shift: float) -> float:
    """Return ``(prod of (v + shift)) ** (1 / n) - shift``, 0 of nothing."""
    if not values:
        return 0.0
    return max(0.0, math.exp(sum(math.log(value + shift) for value in values) / len(values)) - shift)


# ---- where runs come from --------------------------------------------------------------------------------------------


def _run(one: Instance, engine: str, limit: float) -> Run | None:
    """Solve an instance; None if the engine cannot be asked. Nothing is taken out of a cache."""
    problem, question = question_of(one)
    try:
        asked = with_engine(question, engine, limit)
        begin = time.monotonic()
        plan = problem.solve(asked)
        took = time.monotonic() - begin
    except InputError:
        return None
    if plan.objective is None:
        return Run(one, engine, plan.status, took)
    found = judge(problem, question, decisions(plan))
    if found.faults:  # certile refuses such a plan itself; here it is nothing
        return Run(one, engine, "NO_SOLUTION_FOUND", took)
    return Run(one, engine, plan.status, took, found.values, verified=True)


def _recorded(one: Instance) -> Run:
    """The fastest proof of the library, else what it knows in the time of all engines together."""
    proofs = one.certificate.proofs
    by = [proof for proof in proofs if proof.by in one.certificate.proven_by]
    took = min((proof.seconds for proof in by), default=sum(proof.seconds for proof in proofs))
    return Run(one, "certile (recorded)", one.known.status, took, one.known.values, verified=True)


def _read(path: str, asked: Sequence[Instance], limit: float, notes: list[str]) -> list[Run]:
    """A stranger's results; those that are missing found nothing."""
    where, known, name = f"results {path}", {one.name: one for one in asked}, Path(path).stem
    rows = [row for row in csv_rows(decoded(read_bytes(path, what="results"), where).splitlines(), where) if row]
    heads = {"instance", "value", "seconds", "status"}
    if len(rows) < 2 or not heads <= set(rows[0]):
        raise InputError(f"{where}: columns {', '.join(sorted(heads))} are needed")
    lines = [dict(zip_longest(rows[0], row[: len(rows[0])], fillvalue="")) for row in rows[1:]]
    found, others = dict[str, Run](), 0
    for number, line in enumerate(lines, 2):
        one = known.get(line["instance"])
        if one is None:
            others += 1
            continue
        if one.name in found:
            raise InputError(f"{where}, line {number}: {one.name} stands twice")
        found[one.name] = _result(line, one, name, f"{where}, line {number}")
    if others:
        notes.append(f"{name}: {others} lines of instances that were not asked for")
    missing = [one for one in asked if one.name not in found]
    if missing:
        notes.append(f"{name}: {len(missing)} instances have no line, they count as not solved")
    return [*found.values(), *(Run(one, name, "NO_SOLUTION_FOUND", limit) for one in missing)]


def _result(line: Mapping[str, str], one: Instance, name: str, where: str) -> Run:
    status = (line["status"] or "").strip()
    if status not in _STATUSES:
        raise InputError(f"{where}: status {shown(status)}: expected {', '.join(_STATUSES)}")
    value = (line["value"] or "").strip()
    if value and not (value.isascii() and value.isdigit() and len(value) < 18):
        raise InputError(f"{where}: value {shown(value)}: a whole number is expected, or nothing")
    if bool(value) != (status in ("OPTIMAL", "FEASIBLE")):
        raise InputError(f"{where}: status {status} {'needs a' if not value else 'has no'} value")
    try:
        took = float(line["seconds"])
    except (TypeError, ValueError):
        took = math.nan
    if not 0 <= took < math.inf:
        raise InputError(f"{where}: seconds {shown(line['seconds'])}: a number is expected")
    return Run(one, name, status, took, {one.objectives[0]: int(value)} if value else {})
