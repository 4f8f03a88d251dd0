"""Variants of layers: the paper's order beside optima, clocks under a time limit, large networks by engines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from formulations.clock import Clock
from formulations.selection.frame import Setting
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation, Step, part_of
from hwmodels.selection.schedule import Selection
from instances.load import load_machine
from instances.machine.boards import Budget, Conversion, ElementType, Frequency, Handover, Platform, Stage
from instances.machine.machine import Machine
from instances.network.variants import PPM, Option, Size, VariantLayer, Variants, load_variants
from solver.plan.claims import gap_of
from solver.problems.selection import with_optima
from solver.search.loop import Answer, decide_part
from solver.uses.bench.report import Cell, Report, Suite, Table, agreed, timed

_PROFILE = "tiny_yolo_tx2"
_SECONDS = "seconds<=600"
#: Seconds of the paper, step by step (Table 3.4), and the pairs of its Table 3.8: seconds and Wh for 2,000 images.
_PRINTED = {
    "baseline": 1150, "pipelining": 660, "tucker": 540, "selected tucker": 530, "threads": 502, "f16": 502,
    "selected f16": 460,
}  # fmt: skip
_PAIRS = {
    "1114/1122": (58, 0.180682), "1728/1122": (52, 0.184183), "1728/944": (59, 0.184728), "1114/1301": (55, 0.192547),
    "1728/1301": (49, 0.195594), "2035/1122": (52, 0.196636), "2035/944": (58, 0.196706), "2035/1301": (48, 0.205224),
}  # fmt: skip
_WH_FJ = 3600 * 10**15
#: Layers, variants, budgets and frequencies of large instances; seconds for each engine.
_LARGE = ((50, 12, 3, 20), (100, 12, 3, 20), (200, 12, 3, 20))
_ENGINES = ("search", "cp-sat", "milp")
_LIMIT_S = 60.0


def _tables() -> tuple[Table, ...]:
    variants = load_variants(_PROFILE)
    machine = load_machine(variants.machine)
    each = variants.images * machine.tick_ps / 1e12
    return (
        Table(
            f"{_PROFILE}: seconds for {variants.images:,} images, the paper's order and the optimum of what was"
            " allowed",
            ["step", "printed s", "modelled s", "kept", "optimum s", "bound s", "proven"],
            list(with_optima(part_of(variants, machine, ["frequency=default"]), "period", _LIMIT_S)),
            lambda step, best: _step(step, best, each),
            ["printed: Table 3.4; times of single layers are assumed so that the totals are the printed ones"],
            label=lambda row: row.step.name,
        ),
        Table(
            "Least energy at each pair of clocks, 2,000 images within 60 s",
            ["CPU/GPU MHz", "printed s", "modelled s", "printed Wh", "modelled Wh", "proven"], tuple(_PAIRS),
            partial(_pair, variants, machine),
        ),
        Table(
            "Large networks: least period",
            ["layers", "variants", "budgets", "pairs", *(h for e in _ENGINES for h in (e, f"{e} gap", f"{e} s"))],
            _LARGE, _row, [f"Random, accuracy at least 0.46 of 0.5; at most {_LIMIT_S:.0f} s for each engine."],
        ),
    )  # fmt: skip


def _chosen(report: Report) -> None:
    """Where the least energy of all pairs of clocks in the table is."""
    variants = load_variants(_PROFILE)
    machine = load_machine(variants.machine)
    platform = part_of(variants, machine, []).settings[0].platform
    others = (f"frequency!={one.name}" for one in platform.frequencies if one.name not in _PAIRS)
    best = _settled(part_of(variants, machine, [_SECONDS, *others]), "energy")
    chosen = best.schedule.frequency if best.schedule is not None else "none"
    steps, pairs, _ = report.sections
    pairs.notes.append(f"The least energy of all pairs is at {chosen} ({best.status}); the paper chose 1114/1122.")
    report.figures = {"steps": len(steps.rows), "least_energy_at": chosen}


SUITE = Suite("selection", _tables, _chosen)


def _settled(part: SelectionPart, measure: str, engine: str = "search") -> Answer[Selection]:
    return decide_part(SelectionFormulation(), part, (measure,), engine, Clock.of(_LIMIT_S))


def _step(step: Step, best: Answer[Selection] | None, seconds: float) -> list[Cell]:
    """A step; `seconds` of all images for a tick of one."""
    cells: list[Cell] = [step.name, _PRINTED.get(step.name), step.measures["period"] * seconds, step.kept]
    if best is None:
        return [*cells, None, None, None]
    bound = None if best.bound is None else best.bound * seconds
    return [*cells, best.values["period"] * seconds, bound, best.status == "OPTIMAL"]


def _pair(variants: Variants, machine: Machine, name: str) -> list[Cell]:
    """A pair of clocks."""
    part = part_of(variants, machine, [f"frequency={name}", _SECONDS])
    best, (seconds, wh) = _settled(part, "energy"), _PAIRS[name]
    tick_ps = part.settings[0].tick_ps
    if best.schedule is None:
        return [name, seconds, None, wh, None, best.status == "INFEASIBLE"]
    measures = part.price(best.schedule).measures
    took = 2000 * measures["period"] * tick_ps / 1e12
    return [name, seconds, took, wh, 2000 * best.values["energy"] / _WH_FJ, best.status == "OPTIMAL"]


def _row(layers: int, kinds: int, budgets: int, pairs: int) -> list[Cell]:
    parts = [SelectionPart([large(layers, kinds, budgets, pairs)], ["accuracy>=0.46"]) for _ in _ENGINES]
    found = [timed(partial(_settled, part, "period", name)) for part, name in zip(parts, _ENGINES, strict=True)]
    agreed(f"{layers} layers", (best.values.get("period") for best, _ in found if best.status == "OPTIMAL"))
    cells: list[Cell] = [layers, kinds, budgets, pairs]
    for best, wall in found:
        value = best.values.get("period")
        cells += [value, gap_of(value, best.bound), wall]
    return cells


def large(layers: int, kinds: int, budgets: int, pairs: int) -> Setting:
    """Return a random network on three stages: faster variants lose more accuracy and take more of the budgets.

    The first budget is accuracy (a pin), others are the platform's; `pairs` frequencies of CPU and GPU.
    """
    rng = random.Random(f"{layers} {kinds} {budgets} {pairs} 0")
    names = [f"budget{b}" for b in range(1, budgets)]
    middle = [_layer(rng, f"l{j}", kinds, names) for j in range(layers)]
    front = VariantLayer(name="front", options=tuple(_threads("front", 60_000, names)))
    back = VariantLayer(name="back", options=tuple(_threads("back", 200_000, names)))
    rows = (front, *middle, back)
    variants = Variants(name="large", layers=rows, sizes=(Size(name="full", accuracy=0.5),))
    limits = tuple(Budget(name=name, most=_quarter(rows, name)) for name in names)
    stages = (
        Stage(name="front", power_mw=500),
        Stage(name="inference", power_mw=3000),
        Stage(name="back", power_mw=700),
    )
    conversions = tuple(
        Conversion(source=a, target=b, call_ns=20_000, element_ps=300) for a, b in (("f32", "f16"), ("f16", "f32"))
    )
    platform = Platform(
        stages=stages, types=(ElementType(name="f32", bytes=4), ElementType(name="f16", bytes=2)),
        conversions=conversions, budgets=limits, frequencies=tuple(_clocks(rng, pairs)),
        handovers=(
            Handover(source="front", target="inference", send_ns=50_000),
            Handover(source="inference", target="back", send_ns=50_000, receive_ns=90_000),
        ),
    )  # fmt: skip
    return Setting(variants, platform, PPM)


def _layer(rng: random.Random, name: str, kinds: int, budgets: list[str]) -> VariantLayer:
    base, options = rng.randint(50, 5000), []
    for k in range(kinds):
        saved = rng.uniform(0.0, 0.7) if k else 0.0
        uses = {budget: round(saved * rng.uniform(20, 200)) + rng.randint(0, 20) for budget in budgets}
        options.append(
            Option(
                variant=f"v{k}", stage="inference", time=round(base * (1 - saved) * rng.uniform(0.9, 1.1)),
                type=("f32", "f16")[k % 2], techniques=(f"t{k}",) if k else (), uses=uses,
                loss_ppm=round(saved * rng.uniform(200, 1500)), bytes=rng.randint(1000, 90_000),
            )
        )  # fmt: skip
    return VariantLayer(name=name, options=tuple(options), elements=rng.randint(1000, 100_000))


def _threads(stage: str, time: int, budgets: list[str]) -> Iterator[Option]:
    for k in (1, 2, 4):
        uses = {budgets[0]: k} if budgets else {}
        yield Option(variant=f"{k} threads", stage=stage, time=time / k, uses=uses, techniques=("threads",) * (k > 1))


def _quarter(rows: tuple[VariantLayer, ...], name: str) -> int:
    """A quarter of the way from the least to the most that layers may use."""
    least = sum(min(option.uses.get(name, 0) for option in row.options) for row in rows)
    most = sum(max(option.uses.get(name, 0) for option in row.options) for row in rows)
    return (3 * least + most) // 4


def _clocks(rng: random.Random, pairs: int) -> Iterator[Frequency]:
    for k in range(pairs):
        gpu, cpu = 1 + 0.12 * (k // 5) + rng.uniform(0, 0.02), 1 + 0.15 * (k % 5)
        yield Frequency(
            name=f"pair{k}", scale={"inference": gpu * (1 + 0.02 * (k % 5)), "front": cpu, "back": cpu},
            power_mw=round(9000 / gpu + 2000 / cpu),
        )  # fmt: skip
