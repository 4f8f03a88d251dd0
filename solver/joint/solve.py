"""Tile plans of all layers and what stays on chip between them, decided together and verified."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from formulations.joint.problem import Choice
from formulations.pins import Pins
from formulations.tiling import problem as tiling
from hwmodels.joint.replay import JointReplay as Walked
from hwmodels.joint.replay import replay_joint
from hwmodels.nest.limits import tensor_bytes
from hwmodels.nest.price import price
from hwmodels.outcome import MEASURES, Outcome
from hwmodels.schedule import LayerRun, Nest
from instances.errors import InputError
from instances.machine import Machine
from instances.stores import Stores, stores
from instances.workload import Layer, refuse_long
from solver.joint.base import Decided
from solver.joint.engines import JOINT_ENGINES, JointEngine, in_haste
from solver.joint.homes import check_homes, narrowed
from solver.joint.plan import JointLayer, JointPlan, JointReplay, Resident
from solver.joint.tables import Tables
from solver.network_plan import head
from solver.options import pick_nests, pick_pins
from solver.plan import Measures, Objective, Options, Schedule, proof
from solver.question import Question
from solver.tiling.buffers import buffers
from solver.verify import PlanMismatch, counts_of, gap_of, measures_of
from solver.watch import Watch

__all__ = ["check_machine", "compulsory", "conflicts", "derived", "solve"]


def solve(question: Question) -> JointPlan:
    """Plan a network on a machine with a shared memory: a nest for every layer, and the rows of maps that stay on chip.

    Every layer of the network is planned (pooling and sums too), in its order. The plan has been replayed layer by
    layer and bank by bank; its bytes must agree with the formulation's.

    Raises
    ------
    InputError
        For bad input.
    PlanMismatch
        If engine, formulation and replay disagree: a defect of certile.
    """
    start, chosen, network, objectives = (
        time.monotonic(), JOINT_ENGINES[question.engine], question.network, question.objectives,
    )  # fmt: skip
    demands = pick_pins(question.pins, pick_nests("tiling"))
    question = replace(question, machine=narrowed(question.machine, demands))
    check_machine(question.machine)
    check_homes(network, question.machine, objectives)
    for layer in network.layers:
        refuse_long(layer, "joint")
        if layer.kind == "correlation":
            raise InputError(f"layer {layer.name}: only problem mesh plans correlations")
    tables = Tables(stores(network), question.machine, demands)
    with question.watch() as watch:
        said = watch.run(lambda: chosen.run(tables, watch.clock.left), lambda: in_haste(tables))
        return _plan(question, chosen, demands, tables.found, _lexicographic(said, objectives), start, watch)


def _lexicographic(said: Decided, objectives: tuple[str, ...]) -> Decided:
    """OPTIMAL if every objective asked for is proven: of plans with the fewest bytes the least time is not."""
    proven = tuple(m for m in objectives if m != "time") if said.status == "OPTIMAL" else ()
    status = "FEASIBLE" if proven and len(proven) < len(objectives) else said.status
    return replace(said, status=status, stats={**said.stats, **proof(objectives, proven)})


def check_machine(machine: Machine) -> None:
    """Raise InputError unless the problem can be asked of a machine."""
    if not machine.ocm_banks:
        raise InputError(
            f"machine {machine.name}: problem joint needs a shared memory (ocm_bytes) in banks (ocm_banks), such as "
            "scratchpad_768k has"
        )
    if machine.in_bytes != machine.out_bytes:
        raise InputError(
            f"machine {machine.name}: in_bytes {machine.in_bytes} and out_bytes {machine.out_bytes} differ; "
            "a map that stays on chip is read as it was written"
        )
    if machine.edge_tiles == "uniform" or machine.reading == "literal" or machine.tles * machine.tlts > 1:
        raise InputError(
            f"machine {machine.name}: problem joint needs one core, edge_tiles 'true' and reading 'consistent'"
        )


# ---- banks -----------------------------------------------------------------------------------------------------------


def runs_of(said: Decided, until: float | None) -> tuple[LayerRun, ...]:
    """Give banks numbers: a map takes the lowest free ones when it is first written and gives back its last ones."""
    tables, choice = said.tables, said.choice
    assert choice is not None
    joint = tables.joint(bound="known")
    held: dict[int, tuple[int, ...]] = {}
    runs = []
    for t in range(len(joint.steps)):
        live = joint.live[t]
        levels = {k: joint.level(choice, k, t) for k in live}
        held = {k: banks[: joint.residences[k].banks[levels[k]]] for k, banks in held.items() if k in live}
        free = sorted(set(range(joint.banks)) - {bank for banks in held.values() for bank in banks})
        for k in live:
            if k not in held:
                number = joint.residences[k].banks[levels[k]]
                held[k], free = tuple(free[:number]), free[number:]
        resident_maps = [(joint.residences[k], level, held[k]) for k, level in levels.items() if level]
        residents = {r.store: (r.rows[level], banks) for r, level, banks in resident_maps}
        rows, room = tables.place(joint, choice, t)
        nest = tables.plans[t].nest(rows, room)
        runs.append(LayerRun(nest, residents, _unwritten(tables, choice, t), tuple(free)))
    return tuple(_settled(tables, runs, until))


def _unwritten(tables: Tables, choice: Choice, step: int) -> int:
    """Rows of the result that never go to DRAM: those on chip until the last use."""
    store = tables.found.writes[step]
    k = tables.number.get(store)
    return 0 if k is None or tables.found.stores[store].results else tables.residences[k].rows[choice.levels[k][-1]]


def _settled(tables: Tables, runs: Iterable[LayerRun], until: float | None) -> Iterable[LayerRun]:
    """Of the nests with the fewest bytes in the banks that are free the fastest, and only the banks that it takes."""
    known: dict[object, tuple[Nest, int]] = {}
    for t, run in enumerate(runs):
        layer, room = tables.found.layer(t, run.rows, run.unwritten), len(run.banks)
        key = layer.signature(), room
        if key not in known:
            nest = _fastest(tables, layer, run.nest, room, until)
            known[key] = nest, price(layer, tables.machine, nest).occupancy_bytes["ocm"]
        nest, taken = known[key]
        yield LayerRun(nest, run.residents, run.unwritten, run.banks[: -(-taken // tables.machine.bank_bytes)])


def _fastest(tables: Tables, layer: Layer, nest: Nest, room: int, until: float | None) -> Nest:
    """The fastest nest in so many banks that moves no more bytes than `nest`; that one if the time runs out."""
    if until is not None and time.monotonic() > until:
        return nest
    from solver.engines.exhaustive import Search  # late: the engines' package imports every solver

    moved = price(layer, tables.machine, nest).bytes
    kept = {"ocm": room * tables.machine.bank_bytes, "bytes": moved}
    search = Search(tiling.build(layer, tables.machine, tables.pins), ("bytes",), deadline=until, kept=kept, proving=())
    pick = search.run()
    return pick.nest if pick is not None else nest


# ---- figures ---------------------------------------------------------------------------------------------------------


def compulsory(found: Stores, machine: Machine) -> int:
    """Bytes of every weight, and of every input and result of the network once."""
    total = sum(tensor_bytes(layer, machine).get("W", 0) for layer in found.layers)
    for store in found.stores:
        if not store.parts:
            reading = [found.layers[t].model_copy(update={"inputs": 1}) for t in store.readers]
            total += max((tensor_bytes(layer, machine)["IN"] for layer in reading), default=0)
        total += min(store.results, store.rows * store.row_elements) * machine.out_bytes
    return total


def _objective(measure: str, machine: Machine, walked: Walked, macs: int) -> Objective:
    """Return the objective with the terms that sum to it."""
    factor = machine.byte_fj_of("IN") if measure == "energy" else 1
    terms: dict[str, int] = {}
    for one in walked.layers:
        for operand, counts in one.outcome.by_operand.items():
            terms[operand] = terms.get(operand, 0) + factor * counts.bytes
    if measure == "energy":
        terms["MAC"] = machine.mac_fj * macs
    return Objective.model_validate({"value": sum(terms.values()), "unit": MEASURES[measure], "terms": terms})


def derived(
    found: Stores, machine: Machine, runs: Sequence[LayerRun], walked: Walked, objective: str
) -> dict[str, object]:
    """Return the fields of a plan that follow from its schedule and the replay of it."""
    outcomes = [one.outcome for one in walked.layers]
    macs = sum(layer.macs for layer in found.layers)
    return {
        "measures": Measures(
            time=sum(o.time_ticks for o in outcomes), bytes=sum(o.bytes for o in outcomes),
            energy=sum(o.energy_fj for o in outcomes),
        ),
        "objective": _objective(objective, machine, walked, macs),
        "replay": JointReplay(ok=True, executed=sum(one.executed for one in walked.layers), faults=()),
        "layers": _layers(found, machine, runs, walked),
    }  # fmt: skip


def _layers(found: Stores, machine: Machine, runs: Sequence[LayerRun], walked: Walked) -> tuple[JointLayer, ...]:
    """Return every layer with its figures."""
    rows = []
    for t, (run, one) in enumerate(zip(runs, walked.layers, strict=True)):
        held = [(found.stores[s].name, *given) for s, given in run.residents.items()]
        layer = found.layer(t, run.rows, run.unwritten)
        decision = tiling.read(layer, machine, run.nest)
        rows.append(
            JointLayer(
                layer=layer.name, reads=tuple(found.stores[s].name for s in found.reads[t]),
                writes=found.stores[found.writes[t]].name,
                on_chip=tuple(Resident(map=name, rows=number, banks=banks) for name, number, banks in sorted(held)),
                unwritten=run.unwritten, banks=run.banks, schedule=Schedule.of(run.nest, decision),
                measures=measures_of(one.outcome), counts=counts_of(one.outcome),
                occupancy_bytes=one.outcome.occupancy_bytes["ocm"], buffers=buffers(layer, machine, run.nest),
            )
        )  # fmt: skip
    return tuple(rows)


def _plan(
    question: Question, engine: JointEngine, pins: Pins, found: Stores, said: Decided, start: float, watch: Watch
) -> JointPlan:
    network, machine, objectives = question.network, question.machine, question.objectives
    macs = sum(layer.macs for layer in found.layers)
    energy = objectives[0] == "energy"

    def bound_of(moved: int | None) -> int | None:
        return machine.byte_fj_of("IN") * moved + machine.mac_fj * macs if energy and moved is not None else moved

    fields = head(
        question, "joint", engine.name, status=said.status, start=start, engine_version=said.versions,
        bound=bound_of(said.bound), stats=said.stats,
    )  # fmt: skip
    fields |= {
        "pins": pins.to_json(), "options": Options(time_limit_s=question.time_limit_s, settings=question.settings),
        "measures": None, "compulsory_bytes": compulsory(found, machine), "layers": (),
        "replay": JointReplay(ok=None, executed=0, faults=()),
    }  # fmt: skip
    if said.choice is None:
        said_why = conflicts(found, machine, pins) if said.status == "INFEASIBLE" else said.why
        return JointPlan.model_validate({**fields, "conflicts": said_why, "wall_s": time.monotonic() - start})
    runs = watch.run(lambda: runs_of(said, watch.clock.until), lambda: runs_of(said, 0.0))
    walked = replay_joint(found, machine, runs)
    _refuse(network.name, engine, said, found, machine, runs, walked)
    fields |= derived(found, machine, runs, walked, objectives[0])
    plan = JointPlan.model_validate({**fields, "wall_s": time.monotonic() - start})
    value = plan.objective.value if plan.objective else None
    return plan.model_copy(update={"gap": gap_of(value, plan.bound)})


def _refuse(
    network: str, engine: JointEngine, said: Decided, found: Stores, machine: Machine, runs: Sequence[LayerRun],
    walked: Walked,
) -> None:  # fmt: skip
    """Raise PlanMismatch unless formulation, prices and replay say the same."""
    faults = list(walked.faults)
    assert said.choice is not None
    prices: dict[object, Outcome] = {}
    for t, (run, one) in enumerate(zip(runs, walked.layers, strict=False)):
        layer = found.layer(t, run.rows, run.unwritten)
        key = layer.signature(), run.nest
        if key not in prices:
            prices[key] = price(layer, machine, run.nest)
        if prices[key] != one.outcome:
            faults.append(f"layer {layer.name}: priced {prices[key].measures}, replayed {one.outcome.measures}")
    moved = sum(one.outcome.bytes for one in walked.layers)
    if moved > said.choice.bytes or (said.status == "OPTIMAL" and moved != said.choice.bytes):
        faults.append(f"bytes: the formulation says {said.choice.bytes}, the replay {moved}")
    if faults:
        raise PlanMismatch(f"network {network}, engine {engine.name}: {'; '.join(faults[:5])}")


def conflicts(found: Stores, machine: Machine, pins: Pins) -> tuple[str, ...]:
    """The demands that a layer cannot meet even with all banks to itself."""
    machine = machine.model_copy(update={"ocm_bytes": machine.ocm_banks * machine.bank_bytes})
    for layer in found.layers:
        said = tiling.build(layer, machine, pins).explain()
        if said:
            return tuple(f"layer {layer.name}: {line}" for line in said)
    return ("no layer by itself conflicts with the machine, all of them together do",)
