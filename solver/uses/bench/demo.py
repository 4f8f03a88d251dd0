"""Suite ``demo``: the main job on real input, from an ONNX file to checked plans on disk."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from instances.errors import InputError
from instances.network.network import Network
from instances.onnx.reader import read_onnx
from solver.ask.options import AUTO
from solver.ask.progress import Progress
from solver.calls.check import check
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.show.tables import few, ratio
from solver.show.words import decision_text
from solver.uses.bench.report import Report, Section, value_of

#: Machine -> the heuristics shown beside the optimum.
RUNS: dict[str, tuple[str, ...]] = {"nmp": ("greedy", "tso-noburst"), "scratchpad_64k": ("greedy", "naive")}
_FOLDER = Path("out")


def wheel_model(name: str) -> Path:
    """Return the path of a model file that the onnx package carries.

    Raises InputError if the installed onnx package has no such file.
    """
    spec = find_spec("onnx")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    path = folder / "backend" / "test" / "data" / "light" / f"{name}.onnx"
    if not path.is_file():
        raise InputError(f"the onnx package carries no {name}.onnx (looked for {path.name} in its test data)")
    return path


def demo(progress: Progress) -> Report:
    """Plan ResNet-50 on two machines, compare, write the plans and check what was written."""
    network = read_onnx(wheel_model("light_resnet50"))
    return Report("demo", [_run(network, machine, rivals, progress) for machine, rivals in RUNS.items()])


def _run(network: Network, machine: str, rivals: tuple[str, ...], progress: Progress) -> Section:
    plan, *others = (
        solve(network, machine, problem=None, engine=name, jobs=0, progress=progress) for name in (AUTO, *rivals)
    )
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / f"resnet50-{machine}.plan.json"
    plan.save(path)
    verdict = check(path)
    columns = ["layer", "decision", "time (us)", "bound (us)", "gap", *(f"{name}/plan" for name in rivals)]
    section = Section(f"ResNet-50 (ONNX) on {machine}, {plan.problem}, objective time", columns)
    tick_us = plan.machine_data.tick_ps / 1e6
    for i, layer in enumerate(plan.layers):
        value = _value(plan, i)
        section.rows.append([
            layer.layer, decision_text(layer.decision or {}),
            _us(value, tick_us), _us(layer.bound, tick_us), _percent(layer.gap),
            *(ratio(_value(other, i), value) for other in others),
        ])  # fmt: skip
    total = value_of(plan)
    rivals_total = [ratio(value_of(other), total) for other in others]
    section.rows.append(
        ["total", plan.status, _us(total, tick_us), _us(plan.bound, tick_us), _percent(plan.gap), *rivals_total]
    )
    proven = sum(layer.status == "OPTIMAL" for layer in plan.layers)
    unproven = [layer.layer for layer in plan.layers if layer.status != "OPTIMAL"]
    left = f" (not {few(unproven)})" if unproven else ""
    checked = "checked, price and replay agree" if verdict.ok else f"CHECK FAILED: {verdict.problems[0]}"
    section.notes.append(
        f"{len(plan.layers)} layers, {plan.status}: {proven} proven{left}, gap of the whole {_percent(plan.gap)}; "
        f"planned and replayed in {plan.wall_s:.1f} s; {path.as_posix()}: {checked}"
    )
    return section


def _value(plan: Plan, i: int) -> int | None:
    objective = plan.layers[i].objective
    return objective.value if objective else None


def _us(ticks: int | None, tick_us: float) -> str:
    return "-" if ticks is None else f"{ticks * tick_us:,.1f}"


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.3g}%"
