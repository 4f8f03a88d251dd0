"""Brute force for levels: every nest of equal steps of a tiny layer (`tests.adversary.levels_nests`).

Values of several objectives are one number, the first one in front: so they are compared as vectors are.
"""

from __future__ import annotations

from collections.abc import Sequence

from formulations.clock import Clock
from formulations.levels.problem import DECISIONS, LevelPart, LevelsFormulation
from formulations.pins import Pins, parse_pins
from formulations.tiling.part import NestPart
from formulations.tiling.problem import TILING
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import LevelNest
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.search.loop import decide_part
from tests.adversary.cases import LIMIT_S, BruteForce, Known
from tests.adversary.claims import Claim
from tests.adversary.levels_cases import Case, Memory
from tests.adversary.levels_nests import Counter

__all__ = ["TESTER", "Case", "counter"]

#: Above all values of tiny layers.
_ABOVE = 1 << 32


class _Untied(LevelsFormulation):
    """Without measures that break ties, which take time."""

    ties = ()  # type: ignore[assignment]


def counter(case: Case) -> Counter:
    """Return who counts the nests of a case."""
    assert case.workload is not None
    pins = [pin.partition("=")[2].partition("@") for pin in case.pins]
    return Counter(case.workload, case.machine, [(x, name) for x, _, name in pins if x in case.workload.operands])


def _one(values: Sequence[int]) -> int:
    total = 0
    for value in values:
        total = total * _ABOVE + value
    return total


class _Levels(BruteForce[Case]):
    name = "levels"
    kind = Case

    def claim(self, case: Case, engine: str) -> Claim:
        """Its schedule is walked, and counted by this adversary."""
        assert case.workload is not None
        part = LevelPart(case.workload, case.machine, parse_pins(case.pins, DECISIONS))
        said = decide_part(_Untied(), part, case.objectives, engine, Clock.of(LIMIT_S))
        values, faults = None, list[str]()
        if said.schedule is not None:
            values, faults = self._judged(case, said.schedule)
        bounds, exact = list[int](), True
        for k, name in enumerate(case.objectives):
            bound = said.bounds[name] if exact else 0
            exact = exact and bound is not None and values is not None and bound == values[k]
            bounds.append(bound or 0)
        known = said.bounds[case.objectives[0]] is not None
        return Claim(
            engine, said.status, None if values is None else _one(values), _one(bounds) if known else None,
            tuple(faults), said.schedule,
        )  # fmt: skip

    def _judged(self, case: Case, nest: LevelNest) -> tuple[tuple[int, ...], list[str]]:
        """The values by counting, and what is wrong: walking and executing it tell something else."""
        assert case.workload is not None
        values, faults = counter(case).counted(nest, case.objectives)
        seen = walk(case.workload, case.machine, nest)
        walked = {"time": seen.time, "energy": seen.energy, "bytes": seen.bytes["dram"]}
        walked |= {f"bytes@{name}": moved for name, moved in seen.bytes.items()}
        told = tuple(walked[name] for name in case.objectives)
        faults += [f"walked: {fault}" for fault in seen.faults]
        return values, faults + ([f"counted {values}, walked {told}"] if told != values else [])

    def known(self, case: Case, claims: Sequence[Claim]) -> Known:
        """All nests; and by rule tiling what problem tiling says of one level.

        No claim may be below the best nest of any loops. Where padding clips windows, several loops over rows (columns)
        may make pieces of free sizes, which the problem leaves out: bounds are held against the other nests then.
        """
        assert case.workload is not None
        made, faults = counter(case), list[str]()
        best = found = made.best(case.objectives)
        if best is not None:
            told, wrong = self._judged(case, best[1])
            faults += [f"brute force: {fault}" for fault in wrong]
            faults += [f"brute force: finds {best[0]}, counts {told}"] if told != best[0] else []
            found = best if made.plain(made.word(best[1])) else made.best(case.objectives, plain=True)
        for one in claims:
            if one.value is not None and (best is None or one.value < _one(best[0])):
                faults.append(f"{one}, the least of all nests is {best and best[0]}")
        if case.rule == "tiling" and len(case.memories) == 1 and not case.pins and case.objectives == ("bytes",):
            faults += self._tiled(case, case.workload, None if found is None else found[0][0])
        return Known(None if found is None else _one(found[0]), complete=best == found, faults=faults)

    @staticmethod
    def _tiled(case: Case, layer: Layer, least: int | None) -> list[str]:
        """What problem tiling, which may do more, contradicts; it can do no more where each result reads one pixel."""
        memory, machine = Memory(*case.memories[0]), case.machine
        fields = {name: getattr(machine, name) for name in (
            "name", "tick_ps", "sliding", "in_bytes", "w_bytes", "out_bytes", "psum_bytes", "bias_bytes")}  # fmt: skip
        room = {"ocm_bytes": memory.bytes, "reserved_bytes": memory.reserved, "transfer": {"byte_ticks": 1}}
        part = NestPart(layer, Machine.model_validate({**fields, **room}), TILING.build, Pins())
        said = decide_part(TILING, part, ("bytes",), "exhaustive", Clock.of(LIMIT_S))
        value = said.values.get("bytes") if said.status == "OPTIMAL" else None
        if value is None:
            return [] if said.status != "INFEASIBLE" or least is None else [f"tiling says {said.status}, not {least}"]
        alike = layer.kh == layer.kw == 1
        if least is None:
            return [f"tiling finds {value}, levels nothing"] if alike else []
        if value > least or (alike and value < least):
            return [f"tiling says {value}, in one level the least is {least}"]
        return []


TESTER = _Levels()
