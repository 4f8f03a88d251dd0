"""Ask again what a stored plan was asked: one adapter for every kind of plan, and which engine of it proves what.

A plan carries its request: network or layers, machine with all settings, pins, objectives and limits. `Kind.again`
solves just that with any engine; nothing is read from elsewhere, and nothing of the plan's decisions is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from instances.applications import Application, Applications
from instances.tasks import tasks
from solver.applications.ask import Setting as Several
from solver.applications.ask import goals_of, rule_of
from solver.applications.ask import lexicographic as lexicographic_several
from solver.applications.engines import APPLICATION_ENGINES
from solver.applications.plan import ApplicationsPlan
from solver.applications.solve import pick_application_engine
from solver.applications.solve import plan_of as plan_of_several
from solver.banks.engines import BANK_ENGINES
from solver.banks.plan import BankPlan
from solver.banks.solve import front_network, solve_network
from solver.files import AnyPlan
from solver.joint.engines import JOINT_ENGINES
from solver.joint.plan import JointPlan
from solver.joint.solve import solve_joint
from solver.mapping.ask import Setting, board_of, lexicographic
from solver.mapping.engines import MAPPING_ENGINES
from solver.mapping.pins import demands
from solver.mapping.plan import MappingPlan
from solver.mapping.solve import pick_mapping_engine, plan_of
from solver.mesh.engines import MESH_ENGINES
from solver.mesh.plan import MeshPlan
from solver.mesh.solve import solve_mesh
from solver.options import Request, check_jobs, pick_engine, pick_pins, pick_problem
from solver.partial_engine.engines import RUNS_ENGINES
from solver.partial_engine.plan import EnginePlan
from solver.partial_engine.solve import solve_engine
from solver.plan import Plan
from solver.progress import Silent
from solver.solve import planned

__all__ = ["Kind", "kind_of"]

P = TypeVar("P", bound=AnyPlan)
#: Plan, engine, seconds and processes (where layers are planned one by one) -> the engine's answer to the request.
Again = Callable[[P, str, float | None, int], P]


@dataclass(frozen=True)
class Kind(Generic[P]):
    """What differs from problem to problem.

    Attributes
    ----------
    again : callable
        Raises InputError if the request is bad.
    able : callable
        The engines for a request, and whether each proves.
    quick : tuple of str
        Engines that take no search, or little; none where `solver.prove` has a quicker way.
    others : dict of str to tuple of str
        By engine of a plan the ones to ask for a proof, the best first; "" for all engines that are not named. The last
        of those is the quickest.
    floors : bool
        Whether engines that prove nothing state bounds that need no search.
    explains : bool
        Whether a check derives itself, exactly, that nothing fits.
    """

    again: Again[P]
    able: Callable[[P], Mapping[str, bool]]
    quick: tuple[str, ...]
    others: Mapping[str, tuple[str, ...]]
    floors: bool = False
    explains: bool = False

    def chain(self, plan: P) -> tuple[str, ...]:
        """The engines to ask for a proof: another one than the plan's first, where there is one."""
        able = self.able(plan)
        return tuple(name for name in self.others.get(plan.engine, self.others[""]) if able.get(name))


# ---- layers on cores -------------------------------------------------------------------------------------------------


def _tiling(plan: Plan, engine: str, limit: float | None, jobs: int) -> Plan:
    start, formulation = time.monotonic(), pick_problem(plan.problem)
    rooms = {one.name: one.bytes for one in plan.machine_data.off_chip if one.bytes is not None}
    request = Request(
        name=plan.network, layers=tuple(row.workload for row in plan.layers), machine=plan.machine_data,
        formulation=formulation, engine=pick_engine(engine, formulation.name), objectives=plan.objectives,
        pins=pick_pins(list(plan.pins), formulation), settings=plan.options.settings, time_limit_s=limit,
        jobs=check_jobs(jobs), full=False, bounding=True, places=plan.homes.places(rooms) if plan.homes else None,
    )  # fmt: skip
    return planned(request, Silent(), start)


def _able_tiling(plan: Plan) -> Mapping[str, bool]:
    from solver.engines import ENGINES  # late: importing the engines imports every solver

    return {name: one.proves for name, one in ENGINES.items() if plan.problem in one.problems}


# ---- whole networks --------------------------------------------------------------------------------------------------


def _banks(plan: BankPlan, engine: str, limit: float | None, jobs: int) -> BankPlan:
    network, machine, options = plan.network_data, plan.machine_data, plan.options
    most = options.time_at_most
    if most is None or engine != "dynamic":
        found = solve_network(
            network, machine, engine=engine, objective=plan.objectives, waiting=options.waiting,
            first_layer=options.first_layer, time_limit_s=limit,
        )  # fmt: skip
        if most is not None and found.measures is not None and found.measures.time > most:
            found = _none(found)
    else:
        front = front_network(
            network, machine, waiting=options.waiting, first_layer=options.first_layer, time_limit_s=limit
        )
        found = next((one for one in front if one.measures is not None and one.measures.time <= most), _none(plan))
    return found.model_copy(update={"options": options})


def _none(plan: BankPlan) -> BankPlan:
    """An answer that says nothing."""
    empty = {"objective": None, "bound": None, "gap": None, "measures": None, "pe_delay_ticks": None, "layers": ()}
    return plan.model_copy(update={**empty, "status": "NO_SOLUTION_FOUND"})


def _able_banks(plan: BankPlan) -> Mapping[str, bool]:
    aim = "time" if plan.objectives[0] == "time" else "bytes"
    return {name: one.proves for name, one in BANK_ENGINES.items() if aim in one.objectives}


def _joint(plan: JointPlan, engine: str, limit: float | None, jobs: int) -> JointPlan:
    found = solve_joint(
        plan.network_data, plan.machine_data, engine=engine, objective=plan.objectives, pins=plan.pins,
        time_limit_s=limit,
    )  # fmt: skip
    return found.model_copy(update={"options": plan.options})


def _mapping(plan: MappingPlan, engine: str, limit: float | None, jobs: int) -> MappingPlan:
    start, chosen = time.monotonic(), pick_mapping_engine(engine)
    graph, board, rows = tasks(plan.network_data), board_of(plan.machine_data), tuple(plan.profile.values())
    options = plan.options.model_copy(update={"time_limit_s": limit})
    wanted = demands(options.pins, graph, board, rows)
    asked = Setting(plan.network_data, plan.machine_data, graph, rows, wanted, options, plan.objectives)
    found = plan_of(asked, chosen, lexicographic(asked, chosen, start), start)
    return found.model_copy(update={"options": plan.options})


def _able_mapping(plan: MappingPlan) -> Mapping[str, bool]:
    alone = "latency" in plan.objectives or any(pin.startswith("latency") for pin in plan.options.pins)
    return {name: one.proves for name, one in MAPPING_ENGINES.items() if not alone or one.alone is not None}


def _applications(plan: ApplicationsPlan, engine: str, limit: float | None, jobs: int) -> ApplicationsPlan:
    start, chosen = time.monotonic(), pick_application_engine(engine)
    asked = [Application(**row.model_dump(exclude={"alone", "response", "seen"})) for row in plan.applications]
    target = Applications(plan.network_data, tuple(asked))
    graph, board, rows = tasks(plan.network_data), board_of(plan.machine_data), tuple(plan.profile.values())
    objectives, goals = goals_of(plan.objectives, [one.name for one in asked])
    options = plan.options.model_copy(update={"time_limit_s": limit})
    wanted = demands(rule_of(options.pins)[1], graph, board, rows)
    setting = Several(target, plan.machine_data, graph, rows, wanted, options, objectives, goals)
    found = plan_of_several(setting, chosen, lexicographic_several(setting, chosen, start), start)
    return found.model_copy(update={"options": plan.options})


# ---- layers on a mesh, or a small engine -----------------------------------------------------------------------------


def _mesh(plan: MeshPlan, engine: str, limit: float | None, jobs: int) -> MeshPlan:
    found = solve_mesh(
        plan.network_data, plan.machine_data, engine=engine, objective=plan.objectives, pins=plan.options.pins,
        layers=plan.options.layers, time_limit_s=limit,
    )  # fmt: skip
    return found.model_copy(update={"options": plan.options})


def _runs(plan: EnginePlan, engine: str, limit: float | None, jobs: int) -> EnginePlan:
    found = solve_engine(
        plan.network_data, plan.machine_data, engine=engine, pins=plan.options.pins,
        layers=plan.options.layers or None, time_limit_s=limit,
    )  # fmt: skip
    return found.model_copy(update={"options": plan.options})


_KINDS: dict[type, object] = {
    Plan: Kind(_tiling, _able_tiling, (), {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")},
               explains=True),
    BankPlan: Kind(
        _banks, _able_banks, ("no-reuse", "double-buffer", "min", "min-all", "dls", "hide", "beam"),
        {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)},
        floors=True,
    ),
    JointPlan: Kind(
        _joint, lambda _: {name: one.proves for name, one in JOINT_ENGINES.items()},
        ("greedy", "sequence", "no-reuse"), {"dynamic": ("cp-sat", "dynamic"), "": ("dynamic",)}, floors=True,
    ),
    MappingPlan: Kind(
        _mapping, _able_mapping, ("heft", "peft", "cpop", "single", "descent"),
        {"cp-sat": ("milp", "auto"), "exhaustive": ("auto", "exhaustive"), "": ("cp-sat", "auto")},
    ),
    ApplicationsPlan: Kind(
        _applications, lambda _: {name: one.proves for name, one in APPLICATION_ENGINES.items()}, ("apart",),
        {"exhaustive": ("cp-sat", "exhaustive"), "": ("exhaustive", "cp-sat")},
    ),
    MeshPlan: Kind(
        _mesh, lambda _: {name: one.proves for name, one in MESH_ENGINES.items()}, ("greedy", "hand"),
        {"milp": ("exhaustive",), "milp-cbc": ("exhaustive",), "cp-sat": ("exhaustive",), "": ("milp", "exhaustive")},
        explains=True,
    ),
    EnginePlan: Kind(
        _runs, lambda _: {name: one.proves for name, one in RUNS_ENGINES.items()}, ("greedy", "paper"),
        {"cp-sat": ("auto",), "": ("cp-sat", "auto")}, explains=True,
    ),
}  # fmt: skip


def kind_of(plan: P) -> Kind[P]:
    """Return the adapter for plans of this kind."""
    return cast(Kind[P], _KINDS[type(plan)])
