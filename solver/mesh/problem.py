"""Problem mesh, as the rest of `solver` sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from formulations.mesh.problem import DECISIONS
from solver.claims import Claim, picked
from solver.mesh.check import problems_of_mesh
from solver.mesh.engines import MESH_ENGINES, MeshEngine
from solver.mesh.plan import MeshPlan
from solver.mesh.show import mesh_details, mesh_status, mesh_table
from solver.mesh.solve import solve
from solver.problem import Derived, Problem, Target
from solver.question import Question
from solver.report import Sheet

__all__ = ["Mesh"]


class Mesh(Problem[MeshPlan]):
    """F3: layers on a mesh of tile units, or an array."""

    name = "mesh"
    summary = "F3: tiles, sides, PE vectors and bank layouts of layers on a mesh of tile units, or an array"
    plan = MeshPlan
    measures = {"dram": "bytes", "glb": "bytes", "time": "cycles"}
    usual = "dram"
    pins = {name: str(decision) for name, decision in DECISIONS.items()}
    takes = frozenset({"layers"})
    quick = ("greedy", "hand")
    others = {
        "milp": ("exhaustive",), "milp-cbc": ("exhaustive",), "cp-sat": ("exhaustive",), "": ("milp", "exhaustive"),
    }  # fmt: skip
    explains = True

    @property
    def engines(self) -> Mapping[str, MeshEngine]:
        """The ways to decide."""
        return MESH_ENGINES

    def objectives(self, asked: str | Sequence[str] | None, target: Target) -> tuple[str, ...]:
        """The measures; bytes are those of DRAM, as everywhere."""
        texts = [asked] if isinstance(asked, str) else asked
        names = None if texts is None else [part.strip() for text in texts for part in str(text).split(",")]
        return super().objectives(names and ["dram" if name == "bytes" else name for name in names], target)

    def solve(self, question: Question) -> MeshPlan:
        """Plan every layer that multiplies."""
        return solve(question)

    def derive(self, plan: MeshPlan) -> Derived:
        """Simulate every layer again."""
        return Derived(tuple(problems_of_mesh(plan)), plan.size)

    def claims(self, plan: MeshPlan) -> Iterator[Claim]:
        """Layer by layer."""
        if not plan.layers:
            yield from super().claims(plan)
        for part in plan.layers:
            values = picked(plan.objectives, part.measures.model_dump())
            bounds = tuple(part.bounds.get(aim) for aim in plan.objectives)
            yield Claim(part.layer, part.status, plan.objectives, values, bounds)

    def status(self, plan: MeshPlan) -> list[str]:
        """What is known."""
        return mesh_status(plan)

    def sheet(self, plan: MeshPlan) -> Sheet:
        """The table."""
        return mesh_table(plan)

    def details(self, plan: MeshPlan, layer: str | None) -> Iterable[str]:
        """Loops, units, PEs and banks."""
        return mesh_details(plan, layer)

    def question(self, plan: MeshPlan) -> Question:
        """What a stored plan was asked."""
        return Question(
            plan.network_data, plan.machine_data, plan.objectives, "mesh", pins=plan.options.pins,
            layers=plan.options.layers or None,
        )  # fmt: skip
