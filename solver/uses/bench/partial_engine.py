"""Suite ``engine``: frame rates of a small engine beside the published ones, transfers, sizes and their front."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from formulations.partial_engine.problem import EngineFormulation, EnginePart
from formulations.partial_engine.size import SECONDS, Size
from formulations.partial_engine.space import Demands, branch_at
from hwmodels.partial_engine.price import engine_of, network_cycles, run_pixels, work_of
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.machine.sections import PartialEngine
from instances.network.network import Network
from instances.network.workload import Layer
from solver.calls.solve import solve
from solver.problems.partial_engine import SIZE_ENGINES, fits, front_engine, size_engine
from solver.search.loop import decide_part
from solver.uses.bench.report import Cell, Report, Suite, Table, timed

#: Section VI; ShuffleNet is the one of 0.5 billion MACs (section III).
NETWORKS = (
    "mobilenet_v1", "mobilenet_v2", "fd_mobilenet", "shufflenet_2x", "xception", "mobilenet_v1_050",
    "mobilenet_v1_025",
)  # fmt: skip
#: Frames a second in the text beside Fig. 8: about seventy for most networks, seventeen for Xception.
PUBLISHED = {"xception": 17}
_MOST_PUBLISHED = 70
_RIVALS = ("cp-sat", "milp", "greedy", "paper")
_SMALL, _AIMS = "partial_cnn_16", ("worst", "mean")
#: DSPs between the lines of the front that are printed.
_STEP = 60


def networks() -> list[Network]:
    """The networks of section VI for images of 224 x 224."""
    found = [load_network(name) for name in NETWORKS]
    return [one if one.operators[0].shape[-2:] == (224, 224) else one.with_size(224, 224) for one in found]


@cache
def _machines() -> dict[str, Machine]:
    """Both engines, additions as steps of their own and hidden."""
    return {
        f"{e}x{e}{', adds hidden' if adds == 'hidden' else ''}":
        load_machine(f"partial_cnn_{e}", {"engine.adds": adds})
        for e in (16, 32) for adds in ("steps", "hidden")
    }  # fmt: skip


def _engine() -> PartialEngine:
    """The small one."""
    return engine_of(load_machine(_SMALL))


def frames(network: Network, machine: Machine) -> float:
    """Frames a second."""
    engine = engine_of(machine)
    return engine.clock_hz / network_cycles(network, engine)


def _rate(network: Network) -> list[Cell]:
    said = PUBLISHED.get(network.name, _MOST_PUBLISHED)
    ours = [frames(network, machine) for machine in _machines().values()]
    return [network.name, network.macs / 1e6, said, network.macs * said / _engine().clock_hz, *ours]


def most_frames(network: Network, machine: Machine) -> tuple[float, float]:
    """Frames a second if runs took a cycle a pixel, and if all products of the DSPs were used; all else takes no time.

    Layers whose result is one pixel are on the CPU.
    """
    engine = engine_of(machine)
    macs = sum(x.macs for x in network.conv_layers if x.r * x.c > 1)
    return (
        engine.clock_hz / run_pixels(network, engine),
        engine.clock_hz * engine.dsps_used * engine.dsp_macs / macs,
    )


def _most(network: Network) -> list[Cell]:
    said, by = PUBLISHED.get(network.name, _MOST_PUBLISHED), most_frames(network, load_machine(_SMALL))
    return [network.name, said, _engine().clock_hz // said, run_pixels(network, _engine()), *by, min(by) >= said]


def _example(maps: int, filters: int, said: int, added: int) -> list[Cell]:
    work = work_of(Layer.conv("pw", channels=maps, filters=filters, size=(8, 8)), _engine())
    return [f"{maps} -> {filters}", work.runs, said, work.adds, added]


def transfers(network: Network, machine: Machine) -> list[Cell]:
    """A row: the proven bytes of a network, what is compulsory, and others over the optimum."""
    plan, wall = timed(lambda: solve(network, machine, problem="partial_engine"))
    assert plan.objective is not None
    totals = dict.fromkeys(_RIVALS, 0)
    least, equal = 0, 0
    for row in plan.parts:
        layer = network.layer(row.name)
        part = EnginePart(layer, machine)
        work = part.work
        least += branch_at(work, machine, layer.r, work.inputs, work.outputs, Demands()).least
        said = {name: decide_part(EngineFormulation(), part, ("bytes",), name) for name in _RIVALS}
        totals = {name: totals[name] + one.values.get("bytes", 0) for name, one in said.items()}
        equal += all(
            (said[n].bounds["bytes"], said[n].status) == (row.bounds["bytes"], row.status) for n in ("cp-sat", "milp")
        )
    value, layers = plan.objective.value, len(plan.parts)
    proven = sum(row.status == "OPTIMAL" for row in plan.parts)
    return [
        network.name, machine.psum_bytes, value, value / least, plan.objective.terms["spilled"] * 2, proven, equal,
        layers, totals["greedy"] / value, totals["paper"] / value, wall,
    ]  # fmt: skip


def _ours() -> list[Network]:
    """The networks whose rates are not printed by name."""
    return [network for network in networks() if network.name not in PUBLISHED]


def _sized(aim: str, bank: int) -> list[Cell]:
    settings = {"engine.bank_bytes": bank}
    said = [size_engine(_ours(), _SMALL, aim=aim, engine=e, settings=settings) for e in SIZE_ENGINES]
    size, rates = said[0].size, list(said[0].rates.values())
    agree = {(one.value, one.bound) for one in said} == {(said[0].value, said[0].value)}
    shape = f"{size.e_in} x {size.e_out}"
    return [aim, bank, shape, size.dsps, size.brams, min(rates), sum(rates) / len(rates), agree]


@cache
def _front(aim: str) -> list[Size]:
    """The sizes that no other beats in DSPs and in the worst or the mean rate."""
    return front_engine(_ours(), _SMALL, aim=aim)


def _on_front(aim: str) -> list[list[Cell]]:
    """A line every few DSPs."""
    rows, last = list[list[Cell]](), -_STEP
    for size in (front := _front(aim)):
        if size.dsps >= last + _STEP or size is front[-1]:
            last = size.dsps
            rate = min(size.rates) if aim == "worst" else sum(size.rates) / len(size.rates)
            shape = f"{size.e_in} x {size.e_out}"
            rows.append([aim, shape, size.dsps, size.brams, rate / SECONDS, fits(size, _engine())])
    return rows


def _tables() -> tuple[Table, ...]:
    """Frame rates, runs, transfers and sizes of small engines."""
    found, engine = networks(), _engine()
    most = engine.dsps_used * engine.dsp_macs
    pairs = engine.pair_taps * engine.e_in * engine.e_out
    return (
        Table(
            "Frames a second at 120 MHz, 224x224",
            ["network", "MMAC", "published", "MACs a cycle for that", *_machines()], found, _rate,
            ["Published: section VI, about 70 for most networks, 17 for Xception, 70 for MobileNetV1.",
             f"Assumed: {engine.window_taps} taps of a map (depthwise, pooling) or {engine.pair_taps} of each pair a"
             " cycle,",
             f"the {engine.dsps_used} DSPs of Table II with {engine.dsp_macs} products each; transfers hidden;",
             "results of one pixel (pooling, classifier) on the CPU, as in V.I.",
             f"Why they differ: {engine.dsps_used} DSPs make {most} products a cycle, {pairs} of them in 1x1"
             " convolutions;",
             "the next table has what no reading exceeds. The paper's MobileNetV1 is modified (abstract; 21 classes;"
             " V.I",
             "has layers of 16 to 128 maps), it does not say how. Nothing is tuned."],
        ),
        Table(
            "The most frames a second of 16x16, whatever else takes no time",
            ["network", "published", "cycles for that", "cycles of runs", "by runs", "by DSPs", "by both"], found,
            _most,
            ["By runs: a cycle for each output pixel of a run (V.I counts runs, V gives each of their 16 maps one"
             " bank);",
             "additions, depthwise layers and the taps of larger kernels take none.",
             f"By DSPs: {engine.dsps_used} of them with {engine.dsp_macs} products each, all busy in every cycle.",
             "By both: whether the published rate is possible."],
        ),
        Table(
            "Runs and additions of section V.I on 16x16", ["layer", "runs", "paper", "additions", "paper "],
            ((64, 128, 32, 24), (128, 128, 64, 56), (128, 256, 128, 112)), _example,
            ["Fig. 6 is labelled sixteen steps where the text says 32 runs; the text is followed."],
        ),
        Table(
            f"DRAM bytes on {_SMALL}, layer by layer",
            ["network", "psum bytes", "bytes", "over compulsory", "partial maps", "proven", "cp-sat and milp equal",
             "layers", "greedy", "paper's order", "s"],
            [(network, wide) for network in found for wide in ("1", "4")],
            lambda network, wide: transfers(network, load_machine(_SMALL, {"psum_bytes": wide})),
            ["greedy, paper's order: bytes over the optimum, both in the fewest strips that fit; compulsory: every"
             " input,",
             "kernel and result of every layer once."],
        ),
        Table(
            "Best size on an XC7Z020: 220 DSPs, 140 block RAMs",
            ["aim", "bank (bytes)", "e_in x e_out", "DSPs", "block RAMs", "worst", "mean", "engines agree"],
            [(aim, bank) for aim in _AIMS for bank in (28672, 12288)], _sized,
            [f"Frames a second over {', '.join(one.name for one in _ours())}; adds as steps. Smaller banks leave"
             " blocks for more of them."],
        ),
        Table(
            "Front: DSPs against frames a second",
            ["aim", "e_in x e_out", "DSPs", "block RAMs", "rate", "fits XC7Z020"], _AIMS, _on_front, several=True,
        ),
    )  # fmt: skip


def _figures(report: Report) -> None:
    """Rates by network, and the whole fronts."""
    rates, front = report.sections[0], dict[str, object]()
    for aim in _AIMS:
        front[aim] = [
            {**asdict(s), "rates": [rate / SECONDS for rate in s.rates], "fits": fits(s, _engine())}
            for s in _front(aim)
        ]  # fmt: skip
        report.sections[-1].notes.append(
            f"{aim}: {len(_front(aim))} of {64 * 64} sizes up to 64 x 64 are on the front (all in JSON)."
        )
    columns = list(rates.columns)[4:]
    table = {str(row[0]): {"published": row[2], **dict(zip(columns, row[4:], strict=True))} for row in rates.rows}
    report.figures = {"rows": table, "front": front}


runs = Suite("engine", _tables, _figures)
