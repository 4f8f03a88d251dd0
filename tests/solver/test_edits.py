"""`check` against edits that change the meaning of plans of every kind (tests/edits.py)."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

from instances.load import load_machine
from solver import pareto, solve
from solver.plan.plan import Plan
from tests.edits import Subject, run
from tests.formulations.test_joint import FOUR as SHARED
from tests.formulations.test_mesh import mesh_machine
from tests.formulations.test_partial_engine import machine as small_engine
from tests.golden_plans import chain, skip

Pins = tuple[str, ...]


def tiles(*names: str, most: int = 6) -> Callable[[random.Random], Pins]:
    """Random bounds of tile sizes."""
    return lambda rng: tuple(f"{n}<={rng.randint(1, most)}" for n in rng.sample(names, rng.randint(1, 2)))


def some(*pins: str, most: int = 1) -> Callable[[random.Random], Pins]:
    """Some of these."""
    return lambda rng: tuple(rng.sample(pins, rng.randint(min(1, most), most)))


SIZES = tiles("T_M", "T_N", "T_R", "T_C")


def tiling(objective: str, machine: str, memory: int) -> Subject:
    def plan(engine: str, pins: Pins) -> Plan:
        settings = [f"ocm_bytes={memory}"]
        proven = ("holds=uniform",) if "time" in objective else ()  # of all nests time is seldom proven
        return solve(
            chain(4, 2, size=4), machine, engine=engine, objective=objective, settings=settings, pins=(*pins, *proven)
        )

    return Subject(f"tiling {objective}", plan, ("exhaustive", "cp-sat", "milp"), ("greedy", "naive"), SIZES)


def slicing() -> Subject:
    def plan(engine: str, pins: Pins) -> Plan:
        return solve(chain(8, size=4), "nmp", engine=engine, pins=pins)

    return Subject("slicing", plan, ("exhaustive", "cp-sat"), ("greedy", "naive", "tso-noburst"), SIZES)


def joint() -> Subject:
    def plan(engine: str, pins: Pins) -> Plan:
        return solve(chain(4, 2, size=4, taps=1), SHARED, engine=engine, pins=pins, problem="joint")

    guesses = ("no-reuse", "greedy", "sequence")
    return Subject("joint", plan, ("dynamic", "milp", "cp-sat"), guesses, tiles("T_M", "T_N", most=3))


def banks(objective: str) -> Subject:
    machine = load_machine("midap", {"banks.count": "3", "banks.map_bytes": "6144", "banks.residuals": "chip"})

    def plan(engine: str, pins: Pins) -> Plan:
        return solve(skip(64, 8), machine, engine=engine, objective=objective, pins=pins, problem="banks")

    proves = ("dynamic",) if objective == "time" else ("dynamic", "cp-sat", "milp")
    guesses = ("no-reuse", "double-buffer", "min", "dls", "hide")
    return Subject(f"banks {objective}", plan, proves, guesses, some("residuals=dram"))


def front() -> Subject:
    """A plan on the front of bytes and time that is best in neither."""
    machine = load_machine("midap", {"banks.count": "3", "banks.map_bytes": "6144", "banks.residuals": "chip"})

    def plan(engine: str, pins: Pins) -> Plan:
        if engine != "dynamic":
            return solve(skip(64, 8), machine, engine=engine, objective="bytes,time", problem="banks")
        return pareto(skip(64, 8), machine, problem="banks").plans[-1]

    return Subject("banks front", plan, ("dynamic",), ("no-reuse", "double-buffer", "min", "dls", "hide"), some(most=0))


def mapping(objective: str) -> Subject:
    places = [f"{task}={place}" for task in ("c1", "c3", "c5", "f6", "output") for place in ("cpu0", "cpu1", "gpu")]

    def plan(engine: str, pins: Pins) -> Plan:
        return solve(
            "lenet5", "galaxy_s9", engine=engine, objective=objective, pins=["cpu_config=2,2", *pins], problem="mapping"
        )

    guesses = ("single", "heft", "peft", "cpop")
    return Subject(f"mapping {objective}", plan, ("auto", "cp-sat", "exhaustive"), guesses, some(*places, most=2))


def applications(objective: str) -> Subject:
    places = [f"lenet5:{task}={place}" for task in ("c1", "c3", "c5", "f6") for place in ("cpu0", "cpu1")]

    def plan(engine: str, pins: Pins) -> Plan:
        return solve(
            "lenet5@5ms,lenet5@8ms",
            "hikey970",
            engine=engine,
            objective=objective,
            pins=["cpu_config=4", *pins],
            problem="applications",
        )

    return Subject(f"applications {objective}", plan, ("auto", "cp-sat"), ("apart",), some(*places, most=2))


def mesh(objective: str, *filters: int) -> Subject:
    def plan(engine: str, pins: Pins) -> Plan:
        return solve(
            chain(*filters, size=6), mesh_machine(), engine=engine, objective=objective, pins=pins, problem="mesh"
        )

    proves = ("exhaustive", "milp", "cp-sat")
    return Subject(f"mesh {objective}", plan, proves, ("greedy", "no-sharing"), SIZES)


def engine() -> Subject:
    def plan(engine: str, pins: Pins) -> Plan:
        return solve(
            chain(6, 4, size=4, taps=1), small_engine(bank=48), engine=engine, pins=pins, problem="partial_engine"
        )

    pins = some("strips=4", "strips=2", "strips=1", "in_places=1", "in_places=2", "part_places=1", "spill=no", most=2)
    return Subject("engine", plan, ("auto", "cp-sat", "milp"), ("greedy", "paper"), pins)


@cache
def subjects(*, all_of_them: bool) -> list[Subject]:
    """Tiny requests of every kind, in the order of their turns: those that are checked quickly have more."""
    quick = [banks("bytes"), banks("time"), front(), mapping("period"), mapping("energy,period"), mapping("latency"),
             applications("response"), engine()]  # fmt: skip
    slower = [mesh("dram", 4, 8), joint(), slicing(), tiling("bytes", "scratchpad_24k", 100)]
    more = [applications("energy,response"), tiling("time,bytes", "zynq7020", 500), mesh("time,glb", 4),
            tiling("energy", "scratchpad_24k", 100)]  # fmt: skip
    return [*quick, *quick, *quick, *slower, *(more if all_of_them else ())]


@pytest.mark.slow(20)
def test_no_edit_slips() -> None:
    tally = run(subjects(all_of_them=False), 200, seed=1)
    assert not tally.slipped, str(tally)
    assert tally.edits >= 200
    assert len({name for name, _ in (*tally.refused, *tally.proven)}) == 12
