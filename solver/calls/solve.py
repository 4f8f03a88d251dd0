"""`solve`, `pareto`, `explain` and `show`: every problem by the same calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from instances.applications import Applications, applications, is_several
from instances.errors import InputError, choices
from instances.jsonfile import parse_json, read_bytes
from instances.late import late
from instances.library_format import instance, is_instance
from instances.machine.machine import Machine
from instances.measured import Profile, load_profile
from instances.network.buffers import BUFFERS_FORMAT, Buffers, load_buffers
from instances.network.variants import VARIANTS_FORMAT, Variants, list_variants, load_variants
from instances.network.workload import Layer
from instances.problems import PROBLEMS as LINES
from instances.problems import nested
from solver.ask.options import AUTO, as_texts, check_jobs, check_memory, check_time_limit, pick_machine, pick_target
from solver.ask.progress import Progress, Silent
from solver.ask.question import Question
from solver.ask.sizes import Sizes
from solver.calls.cache import keep, kept, path_of
from solver.plan.faces import FACES
from solver.plan.front import Front
from solver.plan.plan import Plan
from solver.problems.problem import Explained, Problem, Target
from solver.problems.registry import PROBLEMS, pick_problem, problem_of
from solver.show.tables import render

_sound_plan = late("solver.calls.check:sound_plan")
#: What formats of plan files begin with.
_PLANS = "certile-plan/"

#: Anything that says the same: one text, several, or a mapping.
Texts = str | Iterable[str] | Mapping[str, str | int] | None
#: Targets that are more than a network or a layer of one.
_MORE: Mapping[type, str] = {
    Applications: "several applications", Buffers: "buffers", Variants: "variants of layers",
}  # fmt: skip
_OPTIONS = {
    "layers": "layers (--layer)", "profile": "measured times (--profile)", "full": "full (--full)",
    "bounding": "no bounding (--no-bounding)", "all_kinds": "all kinds (--all-kinds)",
}  # fmt: skip


def solve(
    target: Target | Plan | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str] | None = None,
    *,
    problem: str | None = None,
    objective: str | Sequence[str] | None = None,
    engine: str = AUTO,
    pins: Texts = (),
    settings: Texts = (),
    layers: str | Iterable[str] | None = None,
    profile: Profile | str | os.PathLike[str] | None = None,
    time_limit_s: float | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
    memory_limit: int | str | None = None,
    all_kinds: bool = False,
    full: bool = False,
    bounding: bool = True,
    symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Plan:
    """Plan a layer, a network, or several applications on a machine.

    Every plan handed out has been priced by closed forms and replayed; all must agree.

    Parameters
    ----------
    target : Layer, Network, Applications, Buffers, Variants, Plan, str or path
        What to plan: an object, a bundled network's name, a JSON or ONNX file, or
        ``squeezenet1_1@33ms,mobilenet_v1@40ms/35ms`` (name, period, deadline; the highest priority first). Of problem
        placement: buffers, a file of them (.csv, .json), a plan or a plan file. Of problem selection: variants, a
        bundled profile of them, or a file (.csv, .json). ``library:NAME`` is an instance of the library with its
        machine, objectives and pins.
    machine : Machine, str or path, optional
        An object, a bundled name or a JSON file; a plan brings its own, variants name theirs.
    problem : str, optional
        See ``certile list problems``; by default what the machine is meant for.
    objective : str or sequence of str, optional
        One of the problem's measures, or several, most important first: ``"bytes,time"``.
    engine : str
        ``auto`` is the fastest exact one; ``certile list engines --problem P`` has the others.
    pins : texts or mapping
        Demands on decisions: ``["T_C<=73", "dataflow=OS"]`` or ``{"T_C": 73}``; ``certile list pins --problem P``.
    settings : texts or mapping
        Machine fields to override: ``["ocm_bytes=98304"]`` or ``{"ocm_bytes": 98304}``.
    layers : names, optional
        Only these; by default all that the problem plans.
    profile : Profile or path, optional
        Measured times of tasks (mapping, applications) or of layers (fusion, joint).
    time_limit_s : float, optional
        For the whole call. Then the best plan so far is returned with its bound.
    jobs : int
        Processes to spread independent layers over; 0: as many as there are processors, where it takes long. Problems
        that decide the whole network at once (banks, joint, mapping, applications) take one, but for objective `time`
        of fusion and joint, whose options several find.
    progress : Progress, optional
        Report about every layer that is done, if layers are decided by themselves.
    memory_limit : int or str, optional
        Resident memory of this process, in bytes or as ``"2GiB"``; by default 80 % of what is free. The search then
        ends as at the time limit.
    all_kinds, full, bounding : bool
        Problems tiling and slicing: pool and element-wise layers, too; the unreduced space; whether engines may remove
        choices by bounds before they search.
    symbols, shapes : mapping, optional
        Open sizes of an ONNX file: ``{"sequence": 128}``, ``{"x": (1, 3, 48, 320)}``.
    values : mapping, optional
        Inputs of an ONNX file that are constants, with the value of all their elements: ``{"sr": 16000}``.

    Returns
    -------
    Plan
        OPTIMAL, FEASIBLE, NO_SOLUTION_FOUND or INFEASIBLE. Ctrl-C returns what was found until then.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, price and replay disagree: a defect of certile.
    """
    return answered(*ask(**locals()))  # all that is said, by its name


def answered(problem: Problem, question: Question, before_keeping: Callable[[Plan], None] = lambda plan: None) -> Plan:
    """Return the plan of a question: one that was proven before, or a new one.

    `before_keeping` saves it before it is kept for the next time: a folder of kept plans may be slow, or full.
    """
    path = path_of(question)
    before = kept(path, problem, question)
    plan: Plan = problem.solve(question) if before is None else before
    before_keeping(plan)
    if before is None:
        keep(path, plan)
    return plan


def pareto(
    target: Target | Plan | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str] | None = None,
    *,
    problem: str | None = None,
    axes: str | Sequence[str] | None = None,
    engine: str = AUTO,
    pins: Texts = (),
    settings: Texts = (),
    layers: str | Iterable[str] | None = None,
    profile: Profile | str | os.PathLike[str] | None = None,
    time_limit_s: float | None = None,
    memory_limit: int | str | None = None,
    all_kinds: bool = False,
    symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Front:
    """Return the exact Pareto front: all plans that no other beats in all axes.

    Parameters as in `solve`; `axes` from ``certile list axes --problem P``, such as ``"bytes,time"``.

    Raises
    ------
    InputError
        For bad input, and if the problem has no front of these axes.
    """
    said = locals()  # by its name
    chosen, question = ask(**{name: value for name, value in said.items() if name != "axes"})
    names = tuple(part.strip() for text in as_texts("axes", axes) for part in text.split(","))
    if not chosen.axes:
        raise InputError(f"problem {chosen.name} has no front")
    for name in names:
        if name not in chosen.axes or names.count(name) > 1:
            raise InputError(f"axes {','.join(names)}: problem {chosen.name} has fronts of {choices(chosen.axes)}")
    if engine != AUTO and not chosen.front_engines:
        raise InputError(f"--engine: the front of problem {chosen.name} has one way to be found")
    return chosen.front(question, names)


def explain(
    target: Target | Plan | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str] | None = None,
    *,
    problem: str | None = None,
    pins: Texts = (),
    settings: Texts = (),
    layers: str | Iterable[str] | None = None,
    profile: Profile | str | os.PathLike[str] | None = None,
    full: bool = False,
    all_kinds: bool = False,
    symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> tuple[Explained, ...]:
    """Return for every part which demands conflict (none: it fits), and how large its search space is.

    Parameters and errors as in `solve`.
    """
    chosen, question = ask(**locals())  # all that is said, by its name
    return tuple(chosen.explain(question))


def show(
    plan: Plan | str | os.PathLike[str], layer: str | None = None, *, details: bool = False, timeline: bool = False
) -> str:
    """Return a summary of a plan, or a plan file, for people: what is known, and the table of its layers.

    Parameters
    ----------
    layer : str, optional
        Instead this layer, or task: its nest with buffers, banks over time, program, or neighbours.
    details : bool
        Instead all layers, or tasks, like this.
    timeline : bool
        Instead a table of all steps and transfers of a network in a shared memory, in the order of time.

    Raises
    ------
    InputError
        If it is no plan, a file says what does not follow from its decisions, or there is no such layer.
    """
    found = plan if isinstance(plan, Plan) else _sound_plan(plan)
    if timeline and (details or layer is not None):
        raise InputError("show: timeline, or layers in detail, not both")
    if timeline:
        return render(problem_of(found).timeline(found).sheet())
    return problem_of(found).show(found, layer, details=details)


def ask(
    target: Target | Plan | str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str] | None,
    *,
    problem: str | None = None,
    objective: str | Sequence[str] | None = None,
    engine: str = AUTO,
    pins: Texts = (),
    settings: Texts = (),
    layers: str | Iterable[str] | None = None,
    profile: Profile | str | os.PathLike[str] | None = None,
    time_limit_s: float | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
    memory_limit: int | str | None = None,
    all_kinds: bool = False,
    full: bool = False,
    bounding: bool = True,
    symbols: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> tuple[Problem, Question]:
    """Load and check everything that is asked, before any time is spent; raises InputError."""
    if isinstance(target, str) and is_instance(target):
        said = {"machine": machine, "problem": problem, "objective": objective, "pins": pins, "layers": layers}
        return ask(
            **_of_library(target, said), engine=engine, settings=settings, profile=profile, time_limit_s=time_limit_s,
            jobs=jobs, progress=progress, memory_limit=memory_limit, all_kinds=all_kinds, full=full, bounding=bounding,
        )  # fmt: skip
    set_fields = as_texts("settings", settings)
    loaded, own = _target(target, Sizes.of(symbols, shapes, values))
    real = pick_machine(own if machine is None else machine, set_fields)
    chosen = _problem(problem, real, loaded)
    real = real.in_network if chosen.name in nested("network") else real
    try:
        objectives = chosen.objectives(objective, loaded)
        engine_name = chosen.engine(engine, objectives)
    except InputError as error:
        raise InputError(f"{error}{_elsewhere(chosen, as_texts('objective', objective), engine)}") from None
    given = {"layers": layers, "profile": profile, "full": full, "bounding": not bounding, "all_kinds": all_kinds}
    wrong = [_OPTIONS[name] for name, value in given.items() if value not in (None, False) and name not in chosen.takes]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: not for problem {chosen.name}")
    return chosen, Question(
        loaded, real, objectives, chosen.name, engine_name,
        pins=as_texts("pins", pins), settings=set_fields,
        layers=None if layers is None else tuple(dict.fromkeys(as_texts("layers", layers))),
        profile=profile if isinstance(profile, Profile | None) else load_profile(profile),
        time_limit_s=check_time_limit(time_limit_s), memory_bytes=check_memory(memory_limit),
        jobs=check_jobs(jobs), progress=progress or Silent(),
        all_kinds=all_kinds, full=full, bounding=bounding,
    )  # fmt: skip


def _elsewhere(problem: Problem, objectives: Sequence[str], engine: str) -> str:
    """Which problems know a name that this one does not."""
    names = [name.strip() for text in objectives for name in text.split(",")]
    strange = [name for name in (*names, engine) if name not in {*problem.measures, *problem.engines, AUTO}]
    for name in strange:
        knowing = [one.name for one in PROBLEMS.values() if name in {*one.measures, *one.engines}]
        if knowing:
            return f"; problem {' and '.join(knowing)} has {name}, this is problem {problem.name}"
    return ""


def _target(target: Target | Plan | str | os.PathLike[str], sizes: Sizes) -> tuple[Target, Machine | str | None]:
    """What is planned, and the machine that it brings."""
    if sizes:
        if not isinstance(target, str | os.PathLike):
            raise InputError("symbols, shapes, values: of an ONNX file named by its path, and this is an object")
        return sizes.load(target), None
    if isinstance(target, Plan):
        return FACES["buffers_of"](target), target.machine_data  # FACES: filled in solver/__init__.py
    if isinstance(target, Applications | Buffers):
        return target, None
    if isinstance(target, Variants):
        return target, target.machine or None
    if isinstance(target, str) and is_several(target):
        return applications(target), None
    if isinstance(target, str | os.PathLike):
        kind = kind_of(target)
        if kind == "plan":
            return _target(_sound_plan(target), sizes)
        if kind == "variants":
            return _target(load_variants(target), sizes)
        if kind == "buffers":
            return load_buffers(target), None
    return pick_target(target), None


def kind_of(path: str | os.PathLike[str]) -> Literal["", "instance", "variants", "buffers", "plan"]:
    """Return what a name or a file is of, by its ending and its first field; "" for a network, or for nothing."""
    text = os.fspath(path)
    if is_instance(path):
        return "instance"
    if text in list_variants():
        return "variants"
    table = text.lower().endswith(".csv")
    try:
        data = read_bytes(text) if table or (text.lower().endswith(".json") and os.path.isfile(text)) else b""
        fields = None if table or not data else parse_json(data, f"file {text}", comments=True)
    except InputError:  # whoever reads it says what is wrong
        return "buffers" if table else ""
    if table:
        heads = data.partition(b"\n")[0].decode("utf-8", "replace").split(",")
        return "variants" if {"layer", "variant"} <= {head.strip() for head in heads} else "buffers"
    named = str(fields.get("format")) if isinstance(fields, dict) else ""
    if named.startswith(_PLANS):
        return "plan"
    return "variants" if named == VARIANTS_FORMAT else "buffers" if named == BUFFERS_FORMAT else ""


def _of_library(target: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked with what an instance of the library says: target, machine, pins, by default its objectives."""
    one = instance(target)
    if asked["machine"] is not None:
        raise InputError(f"target {target}: it brings its machine, {one.machine.load().name}")
    return {
        **asked, "target": one.target.load(), "machine": one.machine.load(),
        "problem": asked["problem"] or one.problem, "objective": asked["objective"] or list(one.objectives),
        "pins": (*one.pins, *as_texts("pins", asked["pins"])), "layers": asked["layers"] or one.target.layers or None,
    }  # fmt: skip


def _problem(name: str | None, machine: Machine, target: Target) -> Problem:
    """The problem that is asked for, or that the machine is meant for; raises InputError for another kind of target."""
    what = _MORE.get(type(target), "")
    planning = [one for one, line in LINES.items() if line.target == type(target).__name__]
    if what and (name is None or (name in LINES and LINES[name].several in planning)):
        name = planning[0]
    chosen = pick_problem(machine.problem if name is None else name)
    if what and chosen.name not in planning:
        raise InputError(f"problem {name} plans networks, these are {what}; problem {choices(planning)} plans them")
    if isinstance(target, Layer) and not chosen.single:
        raise InputError(f"target {target.name}: problem {chosen.name} plans whole networks, this is one layer")
    return chosen
