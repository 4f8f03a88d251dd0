"""Suites ``banks`` and ``table42``: feature maps in the banks of MIDAP (`heterogeneous_mapping_and_banks` 4)."""

from __future__ import annotations

from functools import cache

from formulations.banks.network import Walk, optimum
from formulations.banks.numbers import numbered
from formulations.banks.policies import Reuse, minimise
from hwmodels.banks.replay.referee import replay_banks
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Banks
from instances.network.feature_maps import stages
from instances.network.network import Network
from instances.network.operators import Conv, Input, Operator
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.problems.banks import waits_of
from solver.uses.bench.report import Cell, Report, Suite, Table, agreed

#: Blocks of Inception v3 in the order of Table 4.2.
BLOCKS = {"A": "Mixed_5d", "B": "Mixed_6a", "C": "Mixed_6e", "D": "Mixed_7a", "E": "Mixed_7c"}
#: Rows of Table 4.2, and what they fix.
_ROWS: dict[str, Reuse] = {"greedy": "greedy", "0": 0, "1": 1, "2": 2, "3": 3, "best": "best"}
_ENGINES = ("no-reuse", "double-buffer", "min", "hide")
_HEADS = ("network", "banks", *_ENGINES, "bytes optimum", "time optimum")
#: Columns of the suite ``banks``.
MOVED = (*_HEADS, "once", "residuals on chip", "s")
WAITS = (*_HEADS, "gap", "s")
_LIMIT_S = 60.0
#: Layers and banks.
_GROWTH = (*((layers, 4) for layers in (10, 50, 100, 200, 500)), *((10, count) for count in (8, 16, 32, 48, 96)))
_NETWORKS = ("inception_v3", "mobilenet_v2", "resnet50", "resnet152", "wide_resnet50_2")


def midap(count: int = 4) -> Banks:
    """MIDAP with 512 KiB for maps in `count` banks, 32 x 9 KiB for weights, N_f 16, N_pe 64 (4.4.1.1, Table 4.1)."""
    return Banks(
        count=count, map_bytes=512 * 1024, weight_bytes=32 * 9 * 1024, filters=16, lanes=64, pool_channels=4096
    )


def block(letter: str) -> Network:
    """An image, a 1x1 convolution, one block of Inception v3, a 1x1 convolution to 64 channels."""
    whole = load_network("inception_v3")
    inside = [o for o in whole.operators if o.name.startswith(BLOCKS[letter] + "/")]
    names = {o.name for o in inside}
    outside = next(i for o in inside for i in o.inputs if i not in names)
    shape = whole.operator(outside).shape
    operators: list[Operator] = [
        Input(name="image", shape=(1, 3, *shape[2:])),
        Conv(name="first", inputs=("image",), shape=shape, filters=shape[1], kernel=(1, 1), bias=True),
    ]
    for o in inside:
        operators.append(o.model_copy(update={"inputs": tuple("first" if i == outside else i for i in o.inputs)}))
    last = inside[-1]
    final = Conv(name="last", inputs=(last.name,), shape=(1, 64, *last.shape[2:]), filters=64, kernel=(1, 1), bias=True)
    return Network(name=letter, operators=(*operators, final))


@cache
def _kib(rule: str, letter: str) -> float | None:
    """KiB that a block moves by a row of Table 4.2, once the replay has counted the same; None if it gets stuck."""
    size = midap()
    walk = Walk(stages(block(letter), size), size)
    try:
        made = optimum(walk) if rule == "optimum" else minimise(walk, reuse=_ROWS[rule])
    except InputError:
        return None
    moved = replay_banks(walk.found, size, numbered(made, size))
    if moved.faults or moved.total != made.volume.total:
        raise RuntimeError(f"{walk.found.network}: the replay says {moved.total} bytes, {moved.faults[:1]}")
    return round(moved.total / 1024, 2)


def _blocks(report: Report) -> None:
    """The columns, without what gets stuck."""
    report.figures = {"blocks": {
        letter: {rule: kib for rule in (*_ROWS, "optimum") if (kib := _kib(rule, letter)) is not None}
        for letter in BLOCKS
    }}  # fmt: skip


table42 = Suite("table42", (
    Table(
        "Table 4.2: DRAM access (KiB), FMEM 4 x 128 KiB", ["tiles that stay", *BLOCKS], (*_ROWS, "optimum"),
        lambda rule: [rule, *(_kib(rule, letter) for letter in BLOCKS)],
        ["MIN in the best order of paths; the optimum decides order, tiles and programs; all replayed."],
    ),
), _blocks)  # fmt: skip


def chain(layers: int, columns: int = 208) -> Network:
    """Convolutions of 16 x 16 channels on 16 rows, 3x3 and 1x1 in turn."""
    operators: list[Operator] = [Input(name="in", shape=(1, 16, 16, columns))]
    for number in range(layers):
        taps = 3 if number % 2 else 1
        shape, pad = operators[0].shape, (taps // 2,) * 4
        name, before = f"c{number}", operators[-1].name
        operators.append(Conv(name=name, inputs=(before,), shape=shape, filters=16, kernel=(taps, taps), pad=pad))
    return Network(name=f"chain{layers}", operators=tuple(operators))


def grown(layers: int, count: int) -> list[Cell]:
    """A row of the section growth: banks of 1 KiB hold four columns each."""
    network, plans = chain(layers), []
    settings = {"banks.count": str(count), "banks.map_bytes": str(count * 1024), "banks.bus": "first_come"}
    machine = load_machine("midap", settings)  # bytes are what grows: ties in time are quick where nobody overtakes
    for engine in ("dynamic", "milp"):
        plans.append(solve(network, machine, problem="banks", engine=engine, objective="bytes"))
    agreed(network.name, (str(plan.measures) for plan in plans))
    return [layers, count, plans[1].part.stats["arcs"], *(plan.wall_s for plan in plans)]


@cache
def both(name: str, count: int) -> tuple[list[Cell], list[Cell]]:
    """The rows of a network in the suite ``banks``: bytes and delays."""

    def plan(engine: str, objective: str = "bytes", residuals: str = "dram") -> Plan:
        return solve(name, "midap", problem="banks", engine=engine, objective=objective,
            settings={"banks.count": count, "banks.residuals": residuals},
            time_limit_s=_LIMIT_S if objective == "time" else None)  # fmt: skip

    plans = [plan(engine) for engine in _ENGINES]
    fewest, fastest, waiting = plan("dynamic"), plan("dynamic", "time"), plan("dynamic", residuals="chip")
    plans += [fewest, fastest]
    moved: list[Cell] = [one.measures["bytes"] if one.measures else None for one in plans]
    scale = fewest.machine_data.tick_ps / 1e6
    waits: list[Cell] = [waits_of(one) * scale if one.measures else None for one in plans]
    left = waiting.measures["bytes"] if waiting.measures else None
    return (
        [name, count, *moved, fewest.part.must["bytes"], left, fewest.wall_s],
        [name, count, *waits, fastest.gap, fastest.wall_s],
    )


_CASES = tuple((name, count) for count in (4, 8) for name in _NETWORKS)
SUITE = Suite("banks", (
    Table(
        "DRAM bytes, 512 KiB for maps", MOVED, _CASES, lambda name, count: both(name, count)[0],
        ["once: every weight, bias, input and result once; every plan is replayed bank by bank; the optimum is proven.",
         "residuals on chip: the fewest bytes of a chip where second operands of sums may wait"
         " (banks.residuals=chip)."],
    ),
    Table(
        "Delay of the processing elements (us)", WAITS, _CASES, lambda name, count: both(name, count)[1],
        [f"time optimum: proven where the gap (of the whole time) is 0, else the best after {_LIMIT_S} s."],
    ),
    Table(
        "Growth: a chain of convolutions, bytes", ["layers", "banks", "arcs", "dynamic s", "milp s"], _GROWTH, grown,
    ),
))  # fmt: skip
