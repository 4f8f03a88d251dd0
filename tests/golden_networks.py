"""Golden networks: real networks on real machines, and the values that are proven of them.

They hold what golden plans (tests/golden_plans.py) cannot: decisions of small requests may stay while a bound of a
large one is lost. `python -m tests.golden_networks` names what differs from tests/golden_networks.json, figures
included that no objective asks for, such as the time of a plan with the fewest bytes; with `--write` it records all
anew. Some take half a minute.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

from solver import solve
from solver.problems.registry import problem_of
from tests.golden_plans import Json, differences

FILE = Path(__file__).with_suffix(".json")


class Asked(NamedTuple):
    """A request; `quick`: it takes a few seconds at most."""

    problem: str
    network: str
    machine: str | None
    objective: str
    quick: bool = True

    @property
    def name(self) -> str:
        """What it is recorded under."""
        return " ".join(filter(None, self[:4]))

    def record(self) -> dict[str, Json]:
        """Solve, and return what is recorded."""
        plan = solve(self.network, self.machine, problem=self.problem, objective=self.objective)
        value = None if plan.objective is None else plan.objective.value
        figures = dict(problem_of(plan).figures(plan))
        return {"status": plan.status, "value": value, "bound": plan.bound, "figures": figures}


NETWORKS = (
    Asked("tiling", "lenet5", "scratchpad_64k", "bytes"),
    Asked("tiling", "lenet5", "scratchpad_24k", "time"),
    Asked("tiling", "lenet5", "u256_flash", "time", quick=False),
    Asked("tiling", "alexnet", "scratchpad_64k", "bytes", quick=False),
    Asked("tiling", "squeezenet1_1", "scratchpad_64k", "bytes", quick=False),
    Asked("tiling", "mobilenet_v2", "scratchpad_64k", "bytes", quick=False),
    Asked("tiling", "resnet50", "scratchpad_64k", "bytes", quick=False),
    Asked("joint", "squeezenet1_1", "scratchpad_768k", "bytes", quick=False),
    Asked("joint", "mobilenet_v2", "scratchpad_768k", "bytes", quick=False),
    Asked("joint", "resnet50", "scratchpad_768k", "bytes", quick=False),
    Asked("fusion", "squeezenet1_1", "scratchpad_768k", "bytes", quick=False),
    Asked("fusion", "mobilenet_v2", "scratchpad_768k", "bytes", quick=False),
    Asked("banks", "lenet5", "midap", "time"),
    Asked("banks", "resnet50", "midap", "bytes"),
    Asked("banks", "mobilenet_v2", "midap", "time"),
    Asked("hybrid", "squeezenet1_1", "midap", "bytes"),
    Asked("mapping", "squeezenet1_1", "galaxy_s9", "period"),
    Asked("mapping", "mobilenet_v1", "galaxy_s9", "latency"),
    Asked("mesh", "lenet5", "eyeriss_128", "dram"),
    Asked("partial_engine", "mobilenet_v1", "partial_cnn_16", "bytes"),
    Asked("partial_engine", "resnet50", "partial_cnn_32", "bytes"),
    Asked("selection", "tiny_yolo_tx2", None, "period"),
)


def golden() -> dict[str, dict[str, Json]]:
    """The records by name."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def main(arguments: list[str]) -> int:
    """Record, or say what differs."""
    made = {one.name: one.record() for one in NETWORKS}
    if arguments == ["--write"]:
        rows = (f"{json.dumps(name)}: {json.dumps(record)}" for name, record in made.items())
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
        return 0
    lines = list(differences(golden(), made))
    print("\n".join(lines) or f"{len(made)} networks are as recorded")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
