"""Golden plans: small requests of every problem, and what was decided when they were recorded.

Whoever moves code holds it to these: the same schedule, values, bounds and status. A schedule is recorded as the
referee reads it, values and bounds as a plan claims them: no class or file format of plans is in a record. The engines
of most requests decide by themselves and always alike. Of an engine that hands a model to a solver no schedule is kept,
for of equal optima another version of the solver may find another one.

`python -m tests.golden_plans [PROBLEM ...]` names what differs from tests/golden; with `--write` it records them anew.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic import BaseModel

from formulations.mapping.problem import MappingPart
from formulations.tiling.problem import NESTS
from hwmodels.schedule import Nest
from instances.applications import Application, Applications
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.buffers import Buffer, Buffers, Memory
from instances.network.feature_maps import Stage
from instances.network.network import Network
from instances.problems import PROBLEMS
from instances.zoo.chains import chain, skip
from solver import Plan, front_engine, pareto, show, size_engine, solve
from solver.calls.solve import ask as question
from solver.plan.front import Front
from solver.problems.mapping import BoardProblem
from solver.problems.registry import problem_of
from solver.problems.tiling import fronts, prepare

Json = Any  # what is recorded of an answer

FOLDER = Path(__file__).with_name("golden")
#: Engines that ask a solver: their values and bounds are recorded, their schedules are not.
SOLVERS = frozenset({"cp-sat", "milp", "milp-cbc"})


# ---- requests --------------------------------------------------------------------------------------------------------


def side_by_side(*times_us: int) -> Applications:
    """Pairs of convolutions, one for each period; the first is the most urgent."""
    pair, operators, asked = chain(64, 64, size=14, channels=32), [], []
    for n, time_us in enumerate(times_us):
        for one in pair.operators:
            inputs = {"inputs": tuple(f"p{n}:{name}" for name in one.inputs)} if one.inputs else {}
            operators.append(one.model_copy(update={"name": f"p{n}:{one.name}", **inputs}))
        asked.append(Application(name=f"p{n}", operators=len(pair.operators), period_us=time_us, deadline_us=time_us))
    return Applications(Network(name="pairs", operators=tuple(operators)), tuple(asked))


def lives(*rows: tuple[int, int, int, int | None]) -> Buffers:
    """Buffers b0, b1, ...: begin, end, bytes, and what moves if they are off the chip."""
    buffers = (
        Buffer(name=f"b{n}", lower=a, upper=b, size=size, spill=cost) for n, (a, b, size, cost) in enumerate(rows)
    )
    memories = (Memory(name="fast", bytes=12), Memory(name="slow", bytes=8))
    return Buffers(name="lives", buffers=tuple(buffers), memories=memories)


FEW = lives((0, 3, 4, None), (1, 4, 6, 9), (2, 5, 5, 20), (2, 3, 7, None), (3, 6, 4, 8), (4, 6, 8, None))
SMALL, WIDE, FLAT, SKIP, GRID = chain(4, 2), chain(8), chain(4, 2, taps=1), skip(4, 4), chain(6, 4, taps=1)
PAIR = chain(3, size=4)
PAIRS = side_by_side(20_000, 30_000)


def nearly_full() -> Machine:
    """Maps and all weights take 152 bytes; the memory beside the chip has two fewer."""
    fields = load_machine("u256_flash", {"ocm_bytes": "150", "reserved_bytes": "0"}).model_dump()
    fields["off_chip"][0]["bytes"] = 150
    return Machine.model_validate(fields)


Fields = tuple[str, dict[str, str | int]]  # a bundled machine, and what is set of it
SCRATCHPAD: Fields = "scratchpad_24k", {"ocm_bytes": 100}
FLASH: Fields = "u256_flash", {"ocm_bytes": 150, "reserved_bytes": 0}
MIDAP: Fields = "midap", {"banks.count": 3, "banks.map_bytes": 6144, "banks.residuals": "chip"}
FUSED: Fields = "midap", {"banks.count": 3, "banks.map_bytes": 12288, "banks.patch_channels": 0}
SHARED: Fields = "scratchpad_768k", {"ocm_bytes": 128, "ocm_banks": 4, "psum_bytes": 1}
MESH: Fields = "vectormesh_128", {
    "mesh.pes": 4, "mesh.banks": 4, "mesh.input_buffer_bytes": 64, "mesh.psum_buffer_bytes": 16,
    "mesh.global_bytes": 64, "mesh.copies": 1, "mesh.dram_bytes_per_cycle": 2, "mesh.global_bytes_per_cycle": 4,
}  # fmt: skip
ENGINE: Fields = "partial_cnn_16", {
    "engine.e_in": 2, "engine.e_out": 2, "engine.banks": 2, "engine.bank_bytes": 48,
}  # fmt: skip
LEVELS: Fields = "dram_l2_l1", {"levels.l2.bytes": 60, "levels.l1.bytes": 30}
ACCUMULATORS: Fields = "gemmini_levels", {"levels.spad.bytes": 100, "levels.acc.bytes": 64}


@dataclass(frozen=True)
class Case:
    """A request by the name that it is recorded under."""

    problem: str
    name: str
    ask: Callable[..., object]
    target: object
    machine: str | Machine
    options: dict[str, Any]

    def solve(self) -> Any:
        """Ask."""
        return self.ask(self.target, self.machine, **self.options)

    def record(self, answer: object) -> Json:
        """Return what is recorded of an answer."""
        return recorded(answer, schedules=self.options.get("engine") not in SOLVERS)


def case(
    problem: str, name: str, ask: Callable[..., object], target: object, machine: Fields | Machine | str, *,
    but: dict[str, str | int] | None = None, **options: Any,
) -> Case:  # fmt: skip
    """A case; `but` are fields of the machine that differ."""
    if problem in PROBLEMS and ask in (solve, whole_front, mapping_front):
        options["problem"] = problem
    bundled, fields = machine if isinstance(machine, tuple) else (machine, {})
    return Case(problem, name, ask, target, bundled, {**options, "settings": {**fields, **(but or {})}})


def front(target: Network, machine: str, *, axes: tuple[str, ...], **options: Any) -> object:
    """The fronts of all layers."""
    asked = question(target, machine, **options)[1]
    return fronts(prepare(NESTS[asked.problem], asked), axes)


def whole_front(target: Network, machine: str, **options: Any) -> object:
    """The plans on the front of a network."""
    return pareto(target, machine, **options).plans


def mapping_front(target: Network, machine: str, **options: Any) -> object:
    """The same, and whether they are all."""
    return pareto(target, machine, **options)


CASES = (
    *(case("tiling", f"bytes, {engine}", solve, SMALL, SCRATCHPAD, objective="bytes", engine=engine)
      for engine in ("exhaustive", "greedy", "naive", "cp-sat", "milp")),
    case("tiling", "energy", solve, SMALL, SCRATCHPAD, objective="energy"),
    case("tiling", "time, uniform holds", solve, SMALL, SCRATCHPAD, objective="time", pins=["holds=uniform"]),
    case("tiling", "time, bytes, double buffered", solve, SMALL, ("zynq7020", {"ocm_bytes": 500}),
         objective="time,bytes", pins=["holds=uniform"]),
    case("tiling", "pinned sizes", solve, SMALL, SCRATCHPAD, objective="bytes", pins=["T_R=1", "T_M<=3"]),
    case("tiling", "all of the space", solve, chain(2, size=3), SCRATCHPAD, objective="bytes", full=True),
    case("tiling", "conflict", solve, SMALL, SCRATCHPAD, objective="bytes", but={"ocm_bytes": 2}),
    case("tiling", "front", front, chain(4), SCRATCHPAD, axes=("bytes", "ocm"), pins=["holds=uniform"]),
    *(case("slicing", f"time, {engine}", solve, WIDE, "nmp", engine=engine)
      for engine in ("exhaustive", "greedy", "naive", "tso-noburst", "cp-sat")),
    case("slicing", "bytes", solve, WIDE, "nmp", objective="bytes"),
    case("slicing", "pinned sizes", solve, WIDE, "nmp", pins=["T_M<=2", "T_C<=3"]),
    case("slicing", "a layer of Inception", solve, "inception_v3", "nmp", layers=["Conv2d_4a_3x3"],
         pins=["holds=uniform"]),
    case("slicing", "conflict", solve, WIDE, "nmp", but={"in_buffer_bytes": 1}),
    case("homes", "time", solve, FLAT, FLASH),
    case("homes", "bytes, energy", solve, FLAT, FLASH, objective="bytes,energy"),
    case("homes", "memory nearly full", solve, FLAT, nearly_full()),
    case("homes", "pinned", solve, FLAT, FLASH, pins=["home_W=flash"]),
    case("homes", "greedy", solve, FLAT, FLASH, engine="greedy"),
    case("homes", "milp", solve, FLAT, FLASH, engine="milp"),
    case("homes", "conflict", solve, FLAT, FLASH, but={"ocm_bytes": 2}),
    *(case("banks", f"{objective}, {engine}", solve, skip(64, 8), MIDAP, objective=objective, engine=engine)
      for objective, engine in (
          ("bytes", "dynamic"), ("time", "dynamic"), ("energy", "dynamic"), ("bytes", "cp-sat"), ("bytes", "milp"),
          ("time", "min-all"), ("time", "hide"))),
    *(case("banks", f"small banks, {engine}", solve, "lenet5", "midap", engine=engine,
           but={"banks.map_bytes": 8192})
      for engine in ("min", "min-all", "dls", "hide", "double-buffer", "no-reuse", "beam")),
    case("banks", "nothing waits", solve, skip(64, 8), MIDAP, pins=["residuals=dram"]),
    case("banks", "first layer plain", solve, "lenet5", "midap", pins=["first_layer=plain"]),
    case("banks", "front", whole_front, skip(64, 8), MIDAP),
    case("banks", "conflict", solve, "lenet5", "midap", but={"banks.count": 2, "banks.map_bytes": 4096}),
    *(case("hybrid", f"{objective}, {engine}", solve, chain(16, 16, size=32, channels=16), FUSED, objective=objective,
           engine=engine, pins=["pieces<=4"])
      for objective, engine in (
          ("bytes", "dynamic"), ("time", "dynamic"), ("bytes", "milp"), ("bytes", "cp-sat"), ("bytes", "per-layer"),
          ("time", "hybrid-paper"))),
    case("hybrid", "pure fusion", solve, chain(16, 16, size=32, channels=16), FUSED, engine="pure-fusion"),
    case("hybrid", "pinned", solve, chain(16, 16, size=32, channels=16), FUSED, pins=["pieces=2", "rows=no"]),
    case("hybrid", "conflict", solve, "lenet5", "midap", but={"banks.count": 2, "banks.map_bytes": 64}),
    *(case("joint", f"bytes, {engine}", solve, FLAT, SHARED, engine=engine)
      for engine in ("dynamic", "greedy", "sequence", "no-reuse", "cp-sat", "milp")),
    case("joint", "energy", solve, FLAT, SHARED, objective="energy"),
    *(case("joint", f"a sum, {engine}", solve, SKIP, SHARED, engine=engine)
      for engine in ("dynamic", "greedy", "sequence")),
    *(case("joint", f"without banks, {engine}", solve, FLAT, SHARED, but={"ocm_banks": 0}, engine=engine)
      for engine in ("dynamic", "greedy", "milp")),
    case("joint", "pinned", solve, FLAT, SHARED, pins=["holds=uniform", "T_M<=1"]),
    case("joint", "conflict", solve, FLAT, SHARED, but={"ocm_bytes": 2, "ocm_banks": 2}),
    *(case("fusion", f"bytes, {engine}", solve, SKIP, SHARED, engine=engine, objective="bytes")
      for engine in ("dynamic", "per-layer", "cascade", "strips")),
    case("fusion", "energy", solve, FLAT, SHARED, objective="energy"),
    case("fusion", "time, dynamic", solve, SKIP, SHARED),
    case("fusion", "halo computed again", solve, chain(4, 4, size=8), SHARED, but={"ocm_bytes": 448, "ocm_banks": 28},
         pins=["fuse=c0..c1", "strip=2", "recompute=any"], objective="bytes"),
    case("fusion", "without banks", solve, chain(4, 4, size=8), SHARED, but={"ocm_bytes": 500, "ocm_banks": 0},
         objective="bytes"),
    case("fusion", "conflict", solve, SKIP, SHARED, but={"ocm_bytes": 2, "ocm_banks": 2}),
    *(case("mapping", f"{objective}, {engine}", solve, "lenet5", "galaxy_s9", objective=objective,
           engine=engine, pins=["cpu_config=2,2"])
      for objective, engine in (
          ("period", "exhaustive"), ("energy,period", "exhaustive"), ("latency", "exhaustive"), ("period", "descent"),
          ("latency", "descent"), ("period", "single"),
          ("period", "ga"), ("period", "cp-sat"), ("latency", "cp-sat"), ("energy", "milp"), ("latency", "milp"))),
    *(case("mapping", f"branches, {engine}", solve, "squeezenet1_1", "galaxy_s9", objective="latency",
           engine=engine, pins=["cpu_config=2,2"])
      for engine in ("heft", "peft", "cpop", "descent")),
    case("mapping", "pinned task", solve, "lenet5", "galaxy_s9", engine="exhaustive",
         pins=["cpu_config=2,2", "c1=gpu", "period<=2000"], objective="energy"),
    case("mapping", "divided tasks", solve, "lenet5", "galaxy_s9", engine="descent",
         pins=["cpu_config=2,2", "split=on"]),
    case("mapping", "front", mapping_front, "lenet5", "galaxy_s9", engine="exhaustive", pins=["cpu_config=2,2"]),
    case("mapping", "period too short", solve, "lenet5", "galaxy_s9", engine="exhaustive",
         pins=["cpu_config=2,2", "period<=10"]),
    case("mapping", "latency too short", solve, "lenet5", "galaxy_s9", engine="exhaustive",
         objective="energy", pins=["cpu_config=2,2", "latency<=10"]),
    *(case("applications", f"{objective}, {engine}", solve, PAIRS, "hikey970", objective=objective,
           engine=engine, pins=["cpu_config=2,2"])
      for objective, engine in (
          ("response", "exhaustive"), ("energy,response", "exhaustive"), ("response:p0", "exhaustive"),
          ("response", "apart"), ("energy", "apart"), ("response", "cp-sat"))),
    case("applications", "two networks", solve, "lenet5@5ms,lenet5@8ms", "hikey970", engine="apart",
         pins=["cpu_config=4"]),
    case("applications", "pinned task", solve, PAIRS, "hikey970", engine="exhaustive",
         pins=["cpu_config=2,2", "p0:c0=gpu"]),
    case("applications", "as printed", solve, PAIRS, "hikey970", engine="exhaustive",
         pins=["cpu_config=2,2", "analysis=printed"]),
    case("applications", "deadline too short", solve, side_by_side(200, 300), "hikey970",
         engine="exhaustive", pins=["cpu_config=2,2"]),
    *(case("mesh", f"{objective}, {engine}", solve, SMALL, MESH, objective=objective, engine=engine)
      for objective, engine in (
          ("dram", "exhaustive"), ("glb", "exhaustive"), ("dram", "greedy"), ("glb", "greedy"), ("dram", "hand"),
          ("dram", "no-sharing"), ("dram", "cp-sat"), ("dram", "milp"))),
    case("mesh", "time, glb", solve, chain(4), MESH, objective="time,glb"),
    case("mesh", "pinned", solve, SMALL, MESH, pins=["T_M<=2", "share=none"]),
    case("mesh", "row stationary", solve, "lenet5", "eyeriss_128", layers=["c1"]),
    case("mesh", "systolic", solve, "lenet5", "tpu_128", layers=["c1"]),
    case("mesh", "conflict", solve, SMALL, MESH, but={"mesh.psum_buffer_bytes": 3}),
    *(case("levels", f"bytes, bytes@l2, {engine}", solve, PAIR, LEVELS, objective="bytes,bytes@l2,time", engine=engine)
      for engine in ("search", "descend", "halving", "cp-sat")),
    case("levels", "time", solve, PAIR, LEVELS, objective="time,bytes"),
    case("levels", "pinned", solve, PAIR, LEVELS, objective="bytes@l2,time,bytes", pins=["resident=OUT@l2"]),
    case("levels", "transfers overlap", solve, PAIR, ACCUMULATORS, objective="time,bytes"),
    case("levels", "conflict", solve, PAIR, LEVELS, but={"levels.l1.bytes": 2}),
    *(case("partial_engine", f"bytes, {engine}", solve, GRID, ENGINE, engine=engine)
      for engine in ("exhaustive", "auto", "greedy", "paper", "cp-sat", "milp")),
    case("partial_engine", "pinned places", solve, GRID, ENGINE, pins=["in_places=1", "strips=4"]),
    case("partial_engine", "no spills", solve, GRID, ENGINE, pins=["spill=no"]),
    case("partial_engine", "in the banks", solve, GRID, ENGINE, pins=["inputs=banks", "results=banks"],
         but={"engine.bank_bytes": 128}),
    case("partial_engine", "conflict", solve, GRID, ENGINE, but={"engine.bank_bytes": 8}),
    *(case("placement", f"{objective}, {engine}", solve, FEW, "scratchpad_24k", objective=objective, engine=engine)
      for objective, engine in (
          ("bytes", "search"), ("bytes,peak", "search"), ("peak", "search"), ("bytes", "greedy"), ("bytes", "size"),
          ("peak", "best-fit"), ("bytes", "cp-sat"), ("peak", "milp"))),
    case("placement", "all may leave", solve, FEW, "scratchpad_24k", objective="bytes,peak",
         pins=["spill=yes", "cap<=8"]),
    case("placement", "conflict", solve, FEW, "scratchpad_24k", pins=["spill=no"]),
    *(case("selection", f"{objective}, {engine}", solve, "tiny_yolo_tx2", None, objective=objective, engine=engine)
      for objective, engine in (
          ("period", "search"), ("energy,period", "search"), ("score", "dynamic"), ("time", "cp-sat"),
          ("period", "milp"), ("period", "steps"), ("period", "all"), ("energy", "none"))),
    case("selection", "limits", solve, "tiny_yolo_tx2", None, objective="energy,error",
         pins=["seconds<=500", "accuracy>=0.313", "conv8!=f16", "frequency!=default"]),
    case("selection", "conflict", solve, "tiny_yolo_tx2", None, pins=["seconds<=300", "accuracy>=0.3"]),
    case("partial_engine", "size", size_engine, ["lenet5", "alexnet"], "partial_cnn_16", most=16),
    case("partial_engine", "size, mean rate", size_engine, ["lenet5", "alexnet"], "partial_cnn_16", most=16,
         aim="mean"),
    case("partial_engine", "sizes", front_engine, ["lenet5"], "partial_cnn_16", most=8),
)  # fmt: skip

#: Requests whose plans are also recorded as people see them, by problem.
SHOWN: dict[str, tuple[str, ...]] = {
    "tiling": ("time, bytes, double buffered",), "slicing": ("time, exhaustive",), "homes": ("time",),
    "banks": ("bytes, dynamic",), "hybrid": ("bytes, dynamic", "bytes, per-layer"),
    "joint": ("a sum, dynamic",), "fusion": ("bytes, dynamic", "halo computed again"),
    "mapping": ("latency, exhaustive", "divided tasks"), "applications": ("response, exhaustive", "two networks"),
    "mesh": ("dram, exhaustive", "row stationary", "systolic"),
    "levels": ("bytes, bytes@l2, search", "transfers overlap"),
    "partial_engine": ("bytes, exhaustive",), "placement": ("bytes, search",), "selection": ("period, search",),
}  # fmt: skip

#: Of every problem a request that is decided at once.
FIRST: dict[str, Case] = {one.problem: one for one in reversed(CASES)}


# ---- what is recorded, and how it is compared ------------------------------------------------------------------------


def recorded(answer: Any, *, schedules: bool = True) -> Json:
    """What is kept of a plan, of plans or of anything else that is found."""
    if isinstance(answer, Plan):
        return _decided(answer, schedules=schedules)
    if isinstance(answer, Front):
        return {"proven": answer.proven, "plans": recorded(answer.plans, schedules=schedules)}
    return [recorded(one) for one in answer] if isinstance(answer, list | tuple) else plain(answer)


def _decided(plan: Plan, *, schedules: bool) -> Json:
    """What a plan claims, part by part, and what it decides; `schedules`: and all figures, which follow from these."""
    problem = problem_of(plan)
    record = {
        "status": plan.status,
        "parts": {
            claim.part or "network": {
                "status": claim.status,
                "values": dict(zip(claim.objectives, claim.values, strict=False)),
                "bounds": dict(zip(claim.objectives, claim.bounds, strict=False)),
            }
            for claim in problem.claims(plan)
        },
        "conflicts": list(plan.conflicts),
    }
    if not schedules:
        return record
    made = {part: plain(schedule) for part, schedule in schedules_of(plan).items() if schedule is not None}
    return {**record, "figures": plain(problem.figures(plan)), "schedules": made}


def schedules_of(plan: Plan) -> dict[str, Any]:
    """The schedules of a plan as the referees read them, by part."""
    problem: Any = problem_of(plan)
    if isinstance(problem, BoardProblem) and plan.decided:
        return {"network": in_numbers(problem, plan)}
    whole = problem.formulation.whole
    return {"network" if whole else row.name: row.schedule for row in plan.parts}


def in_numbers(problem: BoardProblem, plan: Any) -> Json:
    """A schedule on a board, tasks and processors by number."""
    said, (part,) = plan.schedule, problem.parts(problem.question(plan))
    if isinstance(part, MappingPart):
        made = part.worked(said)
        return {"at": made.at, "order": (), "configuration": said.cpu_config, "pipeline": made.pipeline}
    return {**plain(part.numbered(said)), "configuration": said.cpu_config, "draws": said.draws}


def plain(value: Any) -> Json:
    """Numbers, texts, lists and objects, whatever the classes."""
    if isinstance(value, Nest):
        return {"nest": value.to_json(), **({"homes": dict(value.homes)} if value.homes else {})}
    if isinstance(value, Stage):  # of the network, not decided
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        told = (one.name for one in fields(value) if one.compare and (one.name != "near" or value.near))  # as in files
        return {name: plain(getattr(value, name)) for name in told}
    if isinstance(value, BaseModel):
        return plain(dict(value))
    if isinstance(value, Mapping):
        texts = all(isinstance(key, str) for key in value)
        return {k: plain(v) for k, v in value.items()} if texts else [[plain(k), plain(v)] for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    assert value is None or isinstance(value, int | float | str), f"{type(value).__name__} is not plain"
    return value


def shown(plan: Plan) -> str:
    """What people see of a plan: in short, in detail, and the data of its figures; without seconds."""
    rows = tuple(row.model_copy(update={"wall_s": 0.0}) for row in plan.parts)
    still = plan.model_copy(update={"wall_s": 0.0, "parts": rows})
    with patch.dict(os.environ, {"COLUMNS": "200"}):
        texts = [show(still), show(still, details=True)]
    drawn = (
        json.loads(json.dumps(plain(one)), parse_float=lambda text: round(float(text), 9)) for one in plan.figures()
    )
    return "\n".join([*texts, *map(json.dumps, drawn), ""])


def shown_file(one: Case) -> Path | None:
    """Where what is shown of the plan of a request is recorded, if it is."""
    name = re.sub(r"\W+", "-", f"{one.problem} {one.name}")
    return FOLDER / "shown" / f"{name}.txt" if one.name in SHOWN[one.problem] else None


def differences(golden: Json, found: Json, where: str = "") -> Iterator[str]:
    """Every place where two records differ."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for key in sorted({*golden, *found}):
            at = f"{where}.{key}" if where else key
            if key in golden and key in found:
                yield from differences(golden[key], found[key], at)
            else:
                yield f"{at}: {'is gone' if key in golden else 'is new'}"
    elif isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        for n, (one, other) in enumerate(zip(golden, found, strict=True)):
            yield from differences(one, other, f"{where}[{n}]")
    elif golden != found:
        yield f"{where}: {golden!r} was recorded, {found!r} is found"


def golden(problem: str) -> dict[str, Json]:
    """The records of a problem by name."""
    found = json.loads((FOLDER / f"{problem}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def write(problems: Sequence[str]) -> None:
    """Record all plans of some problems: a file for every problem, a line for every case."""
    (FOLDER / "shown").mkdir(parents=True, exist_ok=True)
    for problem in problems:
        rows = []
        for one in (one for one in CASES if one.problem == problem):
            answer = one.solve()
            rows.append(f"{json.dumps(one.name)}: {json.dumps(one.record(answer), separators=(',', ':'))}")
            if (path := shown_file(one)) is not None:
                path.write_text(shown(answer), encoding="utf-8")
        (FOLDER / f"{problem}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def _changes(one: Case) -> Iterator[str]:
    """What a request is answered otherwise than was recorded."""
    answer, path = one.solve(), shown_file(one)
    yield from differences(golden(one.problem).get(one.name), one.record(answer))
    if path is not None and path.read_text(encoding="utf-8") != shown(answer):
        yield f"shown otherwise than in {path.name}"


def main(arguments: Sequence[str]) -> int:
    """Record, or say what differs: of all problems, or of those that are named."""
    asked = [name for name in arguments if name != "--write"]
    problems = [name for name in dict.fromkeys(one.problem for one in CASES) if name in asked or not asked]
    if "--write" in arguments:
        write(problems)
        return 0
    cases = [one for one in CASES if one.problem in problems]
    lines = [f"{one.problem}, {one.name}: {line}" for one in cases for line in _changes(one)]
    print("\n".join(lines) or f"{len(cases)} plans are as recorded")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
