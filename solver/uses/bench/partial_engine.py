"""Suite ``engine``: frame rates of a small engine beside the published ones, transfers, sizes and their front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from formulations.partial_engine.problem import EngineFormulation, EnginePart
from formulations.partial_engine.size import SECONDS
from formulations.partial_engine.space import Demands, branch_at
from hwmodels.partial_engine.price import engine_of, network_cycles, run_pixels, work_of
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.workload import Layer
from solver.ask.progress import Progress
from solver.calls.solve import solve
from solver.problems.engine_size import SIZE_ENGINES, fits, front_engine, size_engine
from solver.search.loop import settled
from solver.uses.bench.report import Cell, Report, Section, Table, timed

#: Section VI; ShuffleNet is the one of 0.5 billion MACs (section III).
NETWORKS = (
    "mobilenet_v1", "mobilenet_v2", "fd_mobilenet", "shufflenet_2x", "xception", "mobilenet_v1_050",
    "mobilenet_v1_025",
)  # fmt: skip
#: Frames a second in the text beside Fig. 8: about seventy for most networks, seventeen for Xception.
PUBLISHED = {"xception": 17}
_MOST_PUBLISHED = 70
_EXAMPLES = ((64, 128, 32, 24), (128, 128, 64, 56), (128, 256, 128, 112))
_RIVALS = ("cp-sat", "milp", "greedy", "paper")
_SMALL_BANK, _AIMS = 12288, ("worst", "mean")
#: DSPs between the lines of the front that are printed.
_STEP = 60


def networks() -> list[Network]:
    """The networks of section VI for images of 224 x 224."""
    found = [load_network(name) for name in NETWORKS]
    return [one if one.operators[0].shape[-2:] == (224, 224) else one.with_size(224, 224) for one in found]


def _machines() -> list[tuple[str, Machine]]:
    """Both engines, additions as steps of their own and hidden."""
    return [
        (f"{e}x{e}{', adds hidden' if adds == 'hidden' else ''}",
         load_machine(f"partial_cnn_{e}", {"engine.adds": adds}))
        for e in (16, 32) for adds in ("steps", "hidden")
    ]  # fmt: skip


def frames(network: Network, machine: Machine) -> float:
    """Frames a second."""
    engine = engine_of(machine)
    return engine.clock_hz / network_cycles(network, engine)


def _rates(report: Report, found: Sequence[Network]) -> Section:
    machines = _machines()
    engine = engine_of(machines[0][1])

    def row(network: Network) -> list[Cell]:
        said = PUBLISHED.get(network.name, _MOST_PUBLISHED)
        ours = [frames(network, machine) for _, machine in machines]
        return [network.name, network.macs / 1e6, said, network.macs * said / engine.clock_hz, *ours]

    heads = ["network", "MMAC", "published", "MACs a cycle for that", *(name for name, _ in machines)]
    section = Table("Frames a second at 120 MHz, 224x224", heads, found, row, label=_name).fill(report)
    most = engine.dsps_used * engine.dsp_macs
    pairs = engine.pair_taps * engine.e_in * engine.e_out
    section.notes += [
        "Published: section VI, about 70 for most networks, 17 for Xception, 70 for MobileNetV1.",
        f"Assumed: {engine.window_taps} taps of a map (depthwise, pooling) or {engine.pair_taps} of each pair a cycle,",
        f"the {engine.dsps_used} DSPs of Table II with {engine.dsp_macs} products each; transfers hidden;",
        "results of one pixel (pooling, classifier) on the CPU, as in V.I.",
        f"Why they differ: {engine.dsps_used} DSPs make {most} products a cycle, {pairs} of them in 1x1 convolutions;",
        "the next table has what no reading exceeds. The paper's MobileNetV1 is modified (abstract; 21 classes; V.I",
        "has layers of 16 to 128 maps), it does not say how. Nothing is tuned.",
    ]
    return section


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


def _name(network: Network) -> str:
    return network.name


def _most(report: Report, found: Sequence[Network]) -> None:
    machine = load_machine("partial_cnn_16")
    engine = engine_of(machine)

    def row(network: Network) -> list[Cell]:
        said, by = PUBLISHED.get(network.name, _MOST_PUBLISHED), most_frames(network, machine)
        return [network.name, said, engine.clock_hz // said, run_pixels(network, engine), *by, min(by) >= said]

    heads = ["network", "published", "cycles for that", "cycles of runs", "by runs", "by DSPs", "by both"]
    title = "The most frames a second of 16x16, whatever else takes no time"
    Table(title, heads, found, row, label=_name).fill(report).notes += [
        "By runs: a cycle for each output pixel of a run (V.I counts runs, V gives each of their 16 maps one bank);",
        "additions, depthwise layers and the taps of larger kernels take none.",
        f"By DSPs: {engine.dsps_used} of them with {engine.dsp_macs} products each, all busy in every cycle.",
        "By both: whether the published rate is possible.",
    ]


def _examples(report: Report) -> None:
    section = report.section(
        "Runs and additions of section V.I on 16x16", ["layer", "runs", "paper", "additions", "paper "]
    )
    engine = engine_of(load_machine("partial_cnn_16"))
    for maps, filters, said, added in _EXAMPLES:
        work = work_of(Layer.conv("pw", channels=maps, filters=filters, size=(8, 8)), engine)
        section.rows.append([f"{maps} -> {filters}", work.runs, said, work.adds, added])
    section.notes.append("Fig. 6 is labelled sixteen steps where the text says 32 runs; the text is followed.")


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
        said = {name: settled(EngineFormulation(), part, ("bytes",), name) for name in _RIVALS}
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


def _sizes(report: Report, found: Sequence[Network]) -> None:
    def row(aim: str, bank: int) -> list[Cell]:
        settings = {"engine.bank_bytes": bank}
        said = [size_engine(found, "partial_cnn_16", aim=aim, engine=e, settings=settings) for e in SIZE_ENGINES]
        size, rates = said[0].size, list(said[0].rates.values())
        agree = {(one.value, one.bound) for one in said} == {(said[0].value, said[0].value)}
        shape = f"{size.e_in} x {size.e_out}"
        return [aim, bank, shape, size.dsps, size.brams, min(rates), sum(rates) / len(rates), agree]

    heads = ["aim", "bank (bytes)", "e_in x e_out", "DSPs", "block RAMs", "worst", "mean", "engines agree"]
    cases = [(aim, bank) for aim in _AIMS for bank in (28672, _SMALL_BANK)]
    section = Table("Best size on an XC7Z020: 220 DSPs, 140 block RAMs", heads, cases, row).fill(report)
    names = ", ".join(map(_name, found))
    section.notes.append(f"Frames a second over {names}; adds as steps. Smaller banks leave blocks for more of them.")


def _front(report: Report, found: Sequence[Network]) -> dict[str, object]:
    """The front of DSPs against the worst and the mean rate; a line every few DSPs is printed."""
    engine = engine_of(load_machine("partial_cnn_16"))
    heads = ["aim", "e_in x e_out", "DSPs", "block RAMs", "rate", "fits XC7Z020"]
    section, data = report.section("Front: DSPs against frames a second", heads), dict[str, object]()
    for aim in _AIMS:
        sizes = front_engine(found, "partial_cnn_16", aim=aim)
        data[aim] = [
            {**asdict(s), "rates": [rate / SECONDS for rate in s.rates], "fits": fits(s, engine)} for s in sizes
        ]
        last = -_STEP
        for size in sizes:
            if size.dsps >= last + _STEP or size is sizes[-1]:
                last = size.dsps
                rate = min(size.rates) if aim == "worst" else sum(size.rates) / len(size.rates)
                row: list[Cell] = [aim, f"{size.e_in} x {size.e_out}", size.dsps, size.brams, rate / 1000]
                section.rows.append([*row, fits(size, engine)])
        section.notes.append(f"{aim}: {len(sizes)} of {64 * 64} sizes up to 64 x 64 are on the front (all in JSON).")
    return data


def runs(progress: Progress) -> Report:
    """Frame rates, runs, transfers and sizes of small engines."""
    found = networks()
    report = Report("engine", progress=progress)
    rates = _rates(report, found)
    _most(report, found)
    _examples(report)
    Table(
        "DRAM bytes on partial_cnn_16, layer by layer",
        ["network", "psum bytes", "bytes", "over compulsory", "partial maps", "proven", "cp-sat and milp equal",
         "layers", "greedy", "paper's order", "s"],
        [(network, wide) for network in found for wide in ("1", "4")],
        lambda network, wide: transfers(network, load_machine("partial_cnn_16", {"psum_bytes": wide})),
        ["greedy, paper's order: bytes over the optimum, both in the fewest strips that fit; compulsory: every input,",
         "kernel and result of every layer once."],
        label=lambda case: f"{case[0].name}, {case[1]} bytes a partial sum",
    ).fill(report)  # fmt: skip
    ours = [network for network in found if network.name not in PUBLISHED]
    _sizes(report, ours)
    columns = list(rates.columns)[4:]
    table = {str(row[0]): {"published": row[2], **dict(zip(columns, row[4:], strict=True))} for row in rates.rows}
    report.figures = {"rows": table, "front": _front(report, ours)}
    return report
