"""Suites over layers, one by one: `engines`, `heuristics`, `nests`, `peers`, `proofs`, `speed`, `windows`.

``windows`` plans every layer on `nmp` twice in the paper's space, with `transfer.burst_count` aligned (the papers' ceil
count) and by address. Both plans are priced by address: what DRAM sees. ``speed`` has ratios in one run, because
absolute times depend on the machine and on what else it does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import median

from formulations.clock import Clock
from formulations.pins import Pins, parse_pins
from formulations.tiling.problem import NESTS
from formulations.tiling.search import best_pick
from formulations.tiling.space import Space
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes, lower_bound_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.outcome import Outcome
from hwmodels.schedule import Nest
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.problems.tiling import decide_space
from solver.search.loop import Answer
from solver.show.words import decision_text
from solver.uses.bench.report import Cell, Report, Section, Suite, Table, geomean, timed

_SOLVERS = ("cp-sat", "milp")


def space_of(layer: Layer, machine: Machine, *pins: str) -> Space:
    """The space of a layer for the machine's problem."""
    formulation = NESTS[machine.problem]
    return formulation.build(layer, machine, parse_pins(pins, formulation.decisions))


def distinct_layers(network: str) -> list[Layer]:
    """The conv and matmul layers of a bundled network, equal ones once."""
    return list({layer.signature(): layer for layer in reversed(load_network(network).conv_layers)}.values())[::-1]


def peer_layers() -> tuple[Layer, ...]:
    """Five layers that other mappers were measured on."""
    return tuple(load_network("peer_layers").conv_layers)


def value_by(space: Space, objective: str, engine: str = "exhaustive") -> int | None:
    """What an engine finds; None without a plan."""
    return decide_space(space, (objective,), engine).values.get(objective)


# ---- engines, and heuristics over the optimum ------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A network on a machine, with pins."""

    network: str
    machine: str
    pins: tuple[str, ...] = ()

    def spaces(self) -> list[Space]:
        """The spaces of its distinct conv and matmul layers."""
        machine = load_machine(self.machine)
        return [space_of(layer, machine, *self.pins) for layer in distinct_layers(self.network)]

    def __str__(self) -> str:
        return " ".join([self.network, "on", self.machine, *self.pins])


#: The cases of the suite ``engines``.
CASES = (
    *(Case(n, "nmp") for n in ("squeezenet1_0", "mobilenet_v2", "resnet50", "inception_v3")),
    Case("flownet_s", "zynq7020", ("sizes=divisors",)),
    Case("flownet_s", "zynq7020"),
)
_RULES = ("greedy", "naive", "tso-noburst")


def _agree(results: Sequence[Answer[Nest]], measure: str) -> bool:
    """Whether all engines that prove find the same value (or that there is none), and no bound is above it."""
    values = {r.values.get(measure) for r in results}
    return len(values) == 1 and not any(
        r.bound is not None and r.values and r.bound > r.values[measure] for r in results
    )


def _gap(result: Answer[Nest], measure: str) -> float:
    if not result.values or result.bound is None:
        return 0.0 if result.status == "INFEASIBLE" else 1.0
    return 1 - result.bound / max(1, result.values[measure])


def _by_engines(case: Case) -> list[Cell]:
    """All engines must find the same least time of every layer, none above its bound; replay agrees."""
    equal = agrees = True
    proven, gap = 0, 0.0
    worst = {(e, b): 0.0 for e in _SOLVERS for b in (True, False)}
    spaces = case.spaces()
    for space in spaces:
        oracle = decide_space(space, ("time",))
        if oracle.schedule is not None:
            outcome = replay(space.layer, space.machine, oracle.schedule, execute=False)
            agrees &= outcome.ok and outcome.outcome.measures == oracle.values
        answers = [oracle]
        for engine, bounding in worst:
            result, wall = timed(partial(decide_space, space, ("time",), engine, bounding=bounding))
            worst[engine, bounding] = max(worst[engine, bounding], wall)
            answers.append(result)
        equal &= _agree(answers, "time")
        proven += all(one.status in ("OPTIMAL", "INFEASIBLE") for one in answers)
        gap = max(gap, *(_gap(one, "time") for one in answers))
    return [str(case), len(spaces), equal, proven, gap, agrees, *worst.values()]


engines = Suite("engines", (
    Table(
        "cp-sat, milp and exhaustive: least time, proven or with a gap",
        ["case", "layers", "equal", "proven by all", "worst gap", "replay agrees",
         *(f"{e}{'' if bounding else ' alone'} s/layer (worst)" for e in _SOLVERS for bounding in (True, False))],
        CASES, _by_engines,
        ["equal: one value from all engines, and no bound above it; gap: what the weakest bound leaves open.",
         "alone: without heuristic start and without bounds that remove choices."],
    ),
))  # fmt: skip


def _by_rules(case: Case) -> list[Cell]:
    """What optimality is worth."""
    ratios: dict[str, list[float]] = {rule: [] for rule in _RULES}
    spaces = case.spaces()
    for space in spaces:
        if (best := value_by(space, "time")) is None:
            continue
        for rule in _RULES:
            if rule in NESTS[space.problem].heuristics and (found := value_by(space, "time", rule)):
                ratios[rule].append(found / best)
    means = (cell for rule in _RULES for cell in (geomean(ratios[rule]), max(ratios[rule], default=None)))
    return [str(case), len(spaces), *means]


heuristics = Suite("heuristics", (
    Table(
        "heuristic time over the least time of all candidates, distinct layers",
        ["case", "layers", *(f"{r} {what}" for r in _RULES for what in ("mean", "worst"))],
        (*CASES, *(Case(n, "scratchpad_64k") for n in ("resnet50", "mobilenet_v2"))), _by_rules,
        ["greedy: the tile with the most multiply-accumulates that fits, best order or dataflow.",
         "naive: the fullest memory, first order.",
         "tso-noburst: optimal if bursts were free; among its many ties the quickest one with bursts."],
    ),
))  # fmt: skip


# ---- nests: what free hold depths are worth, where bytes and time disagree, how the search grows ---------------------

#: Burst windows are counted, though not priced.
_COUNTED = {"transfer.burst_bytes": "128"}
_GROWTH = ("layer", "KiB", "bytes", "nests", "looked at", "s")


def _square(side: int, channels: int) -> Layer:
    return Layer.conv(
        f"{side}x{side}, {channels} -> {channels}", channels=channels, filters=channels, size=(side, side),
        kernel=(3, 3), pad=(1, 1, 1, 1),
    )  # fmt: skip


def _bytes_and_time(layer: Layer) -> list[list[Cell]]:
    machine = load_machine("scratchpad_64k", _COUNTED)
    space = space_of(layer, machine)
    found = {
        "fewest bytes": decide_space(space, ("bytes",)), "least time": decide_space(space, ("time",)),
        "textbook, time": decide_space(space.uniform(), ("time",)), "greedy": decide_space(space, ("time",), "greedy"),
        "naive": decide_space(space, ("time",), "naive"),
    }  # fmt: skip
    fastest, rows = found["least time"].values, list[list[Cell]]()
    for name, result in found.items():
        if result.schedule is None or not fastest:
            rows.append([layer.name, name, *[None] * 7, result.status])
            continue
        counts = _counts(price(layer, machine, result.schedule), machine, fastest["time"])
        rows.append([layer.name, name, *counts, decision_text(space.decision(result.schedule))])
    return rows


def _counts(outcome: Outcome, machine: Machine, fastest: int) -> list[Cell]:
    total, time = outcome.total, outcome.time_ticks
    return [
        outcome.bytes, time * machine.tick_ps / 1e6, time / fastest, total.calls, total.segments,
        round(total.bytes / total.segments), total.bursts,
    ]  # fmt: skip


def _every_layer(network: str, objective: str) -> list[Cell]:
    machine, layers = load_machine("scratchpad_64k"), distinct_layers(network)
    seconds: dict[str, float] = {}
    ratios = []
    proven, gap = 0, 0.0
    for layer in layers:
        space = space_of(layer, machine)
        best, textbook = decide_space(space, (objective,)), value_by(space.uniform(), objective)
        seconds[layer.name] = best.wall_s
        proven += best.status == "OPTIMAL"
        if best.values and textbook:
            ratios.append(textbook / best.values[objective])
            gap = max(gap, 1 - (best.bound or 0) / best.values[objective])
    worst = max(seconds, key=lambda name: seconds[name])
    return [
        network, objective, len(layers), proven, gap, median(seconds.values()), seconds[worst], worst, geomean(ratios),
        max(ratios),
    ]  # fmt: skip


def _free_on_nmp(objective: str) -> list[Cell]:
    machine, layers, ratios = load_machine("nmp"), distinct_layers("resnet50"), []
    for layer in layers:
        space = space_of(layer, machine)
        free, own = value_by(space, objective), value_by(space.uniform(), objective)
        if free and own:
            ratios.append(own / free)
    better = sum(r > 1 for r in ratios)
    return ["resnet50", len(layers), objective, geomean(ratios), max(ratios), better, min(ratios) >= 1]


def _grown(layer: Layer, kib: int) -> list[Cell]:
    machine = load_machine("scratchpad_64k", {"ocm_bytes": str(kib * 1024), "psum_bytes": "1"})
    space = space_of(layer, machine)
    found = decide_space(space, ("bytes",))
    looked = int(str(found.stats["looked_at"]))
    return [layer.name, kib, found.values.get("bytes"), space.size["points"], looked, found.wall_s]


nests = Suite("nests", lambda: (
    Table(
        "fewest bytes against least time on scratchpad_64k (PL330 transfers)",
        ["layer", "plan", "bytes", "us", "/fastest", "calls", "runs", "bytes a run", "bursts of 128", "nest"],
        peer_layers(), _bytes_and_time, several=True,
    ),
    Table(
        "every distinct conv and FC layer on scratchpad_64k by exhaustive search, proven or with a gap",
        ["network", "objective", "layers", "proven", "worst gap", "median s", "worst s", "worst layer",
         "textbook/optimum", "worst of it"],
        [(n, objective) for n in ("resnet50", "inception_v3", "mobilenet_v2") for objective in ("bytes", "time")],
        _every_layer,
    ),
    Table(
        "nmp: TSO's dataflows over free hold depths in the same partitions",
        ["network", "layers", "objective", "slicing/free mean", "slicing/free worst", "layers better", "never worse"],
        ("time", "bytes"), _free_on_nmp,
    ),
    Table(
        "growth with the memory: 3x3, 73x73, 80 -> 192, fewest bytes", _GROWTH, (16, 32, 64, 128, 256, 512),
        lambda kib: _grown(next(x for x in peer_layers() if x.name == "c"), kib),
    ),
    Table(
        "growth with the layer: 3x3, 64 KiB, fewest bytes", _GROWTH,
        ((14, 32), (28, 64), (56, 64), (112, 64), (112, 128), (224, 128), (224, 256)),
        lambda side, channels: _grown(_square(side, channels), 64),
    ),
))  # fmt: skip


# ---- peers: DRAM bytes of five layers on which other mappers were measured, beside what no plan can beat -------------


@dataclass(frozen=True)
class _Setting:
    """One table: machine settings, pins, and whether the solvers prove it too."""

    title: str
    settings: Mapping[str, str]
    pins: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()


_SETTINGS = (
    _Setting("8-bit partial sums", {"psum_bytes": "1"}, solvers=_SOLVERS),
    _Setting("8-bit partial sums, double buffered", {"psum_bytes": "1", "buffering": "double", "overlap": "serial"}),
    _Setting("32-bit partial sums", {}),
    _Setting("32-bit partial sums, tiles that fill the 16 x 64 array", {}, ("array=filled",)),
)


def _least_bytes(table: _Setting, layer: Layer, size: str) -> list[Cell]:
    machine = load_machine(f"scratchpad_{size}", dict(table.settings))
    space = space_of(layer, machine, *table.pins)
    best = decide_space(space, ("bytes",))
    least, limit = compulsory_bytes(layer, machine), lower_bound_bytes(layer, machine)
    head: list[Cell] = [layer.name, int(size.removesuffix("k")), least, limit]
    if best.schedule is None or not best.values:
        return [*head, *[None] * (9 + len(table.solvers)), "infeasible"]
    moved = best.values["bytes"]
    walked = replay(layer, machine, best.schedule, execute=False)
    if not walked.ok or walked.outcome.measures != best.values:
        raise RuntimeError(f"{layer.name}: replay does not agree")
    whole = space_of(layer, machine.model_copy(update={"sliding": False}), *table.pins)
    others = [value_by(whole.uniform(), "bytes"), value_by(whole, "bytes", "greedy"), value_by(whole, "bytes", "naive")]
    proofs: list[Cell] = []
    for engine in table.solvers:
        found = decide_space(space, ("bytes",), engine)
        if not _agree((best, found), "bytes"):
            raise RuntimeError(f"{layer.name}: {engine} says {found.status} {found.values}, not {best.values}")
        proofs.append(found.wall_s)
    looked, gap = int(str(best.stats["looked_at"])), 1 - (best.bound or 0) / moved
    return [
        *head, moved, gap, moved / limit, *others, space.size["points"], looked, best.wall_s, *proofs,
        decision_text(space.decision(best.schedule)),
    ]  # fmt: skip


_NOTES = (
    "limit: the larger of compulsory traffic and the I/O lower bound for this memory; no plan moves less.",
    "textbook: best plan with one hold depth and whole tiles (no sliding); greedy and naive choose among those.",
    "looked at: combinations of chains whose price was computed; every optimum is replayed.",
    "gap: what the bound on all nests leaves open below the optimum of all candidates; 0: proven.",
)
peers = Suite("peers", lambda: [
    Table(
        f"DRAM bytes: int8, {setting.title}",
        ["layer", "KiB", "compulsory", "limit", "optimum", "gap", "/limit", "textbook", "greedy", "naive", "nests",
         "looked at", "s", *(f"{engine} s" for engine in setting.solvers), "plan"],
        [(layer, size) for layer in peer_layers() for size in ("24k", "64k", "128k")],
        partial(_least_bytes, setting), () if number else _NOTES,
    )
    for number, setting in enumerate(_SETTINGS)
])  # fmt: skip


# ---- proofs: of how many layers the least time is proven, and how long that takes ------------------------------------

_FIVE = ("lenet5", "squeezenet1_1", "mobilenet_v2", "resnet50", "inception_v3")
#: Machines, and seconds a layer.
_PROVED: tuple[tuple[str, dict[str, str], float], ...] = (
    ("scratchpad_64k", {}, 20.0), ("zynq7020", {}, 20.0), ("nmp", {}, 20.0),
    ("scratchpad_64k", {"buffering": "double"}, 240.0),
)  # fmt: skip


def _proved(name: str, settings: Mapping[str, str], seconds: float) -> list[list[Cell]]:
    """A row for each network, and one for all its distinct layers and those of the others."""
    machine, found = load_machine(name, settings), dict[object, Answer[Nest]]()
    rows, title = list[list[Cell]](), " ".join([name, *(f"{k}={v}" for k, v in settings.items())])
    for network in _FIVE:
        layers = {layer.signature(): layer for layer in load_network(network).layers}
        for key, layer in layers.items():
            if key not in found:
                found[key] = decide_space(space_of(layer, machine), ("time",), clock=Clock.of(seconds))
        rows.append([title, network, *_shares([found[key] for key in layers])])
    return [*rows, [title, "all", *_shares(list(found.values()))]]


def _shares(found: Sequence[Answer[Nest]]) -> list[Cell]:
    gaps, seconds = [_gap(one, "time") for one in found], sorted(one.wall_s for one in found)
    proven = sum(one.status in ("OPTIMAL", "INFEASIBLE") for one in found)
    slowest = seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))]
    above = sum(gap > 0.005 for gap in gaps)
    return [len(found), proven, median(gaps), above, max(gaps), median(seconds), slowest, seconds[-1]]


proofs = Suite("proofs", (
    Table(
        "least time of every distinct layer: how many are proven, gaps, seconds a layer",
        ["machine", "network", "layers", "proven", "median gap", "above 0.5 %", "worst gap", "median s",
         "95 % within s", "worst s"],
        _PROVED, _proved,
        ["gap: what the bound leaves open below the plan; 20 seconds a layer, with two buffers 240 (hours)."],
        several=True,
    ),
))  # fmt: skip


# ---- speed -----------------------------------------------------------------------------------------------------------

_LARGE = Layer.conv("large", channels=512, filters=512, size=(224, 224), kernel=(3, 3), pad=(1, 1, 1, 1))
_ROUNDS = 3
#: The TSO paper's space: one common hold depth.
_PAPER = Pins().plus("holds", "uniform")
_GROUPS = ("resnet50", "224x224 512->512 3x3")


@cache
def _spaces(title: str) -> list[Space]:
    layers, machine = distinct_layers(title) if title == "resnet50" else [_LARGE], load_machine("nmp")
    return [NESTS["slicing"].build(layer, machine, _PAPER) for layer in layers]


def _searched(full: bool) -> tuple[float, int]:
    """Seconds to build and search all distinct layers of ResNet-50 on nmp, and the points looked at."""
    machine, layers = load_machine("nmp"), distinct_layers("resnet50")
    start, points = time.monotonic(), 0
    for layer in layers:
        space = NESTS["slicing"].build(layer, machine, _PAPER, full=full)
        points += int(str(decide_space(space, ("time",), bounding=not full).stats["looked_at"]))
    return time.monotonic() - start, points


def _search(name: str) -> list[Cell]:
    full = name != "reduced"
    seconds, points = min(_searched(full) for _ in range(1 if full else _ROUNDS))
    return [name, points, seconds, seconds]


def _bounded(engine: str, title: str, bounding: bool) -> list[Cell]:
    times = [decide_space(space, ("time",), engine, bounding=bounding).wall_s for space in _spaces(title)]
    return [f"{engine}, {title}", len(times), bounding, max(times), sum(times) / len(times)]


def _over_reduced(report: Report) -> None:
    """The last column as ratios to the first row."""
    search: Section = report.sections[0]
    search.rows = [[*row[:3], float(str(row[3])) / float(str(search.rows[0][3]))] for row in search.rows]


speed = Suite("speed", (
    Table(
        "exhaustive search over ResNet-50 on nmp, distinct layers", ["search", "looked at", "seconds", "ratio"],
        ("reduced", "full (every integer size)"), _search,
        [f"building the tables included; reduced: the best of {_ROUNDS} rounds."],
    ),
    Table(
        "solvers on nmp: seconds a layer", ["engine", "layers", "bounding", "worst", "mean"],
        [(engine, title, bounding) for title in _GROUPS for engine in _SOLVERS for bounding in (True, False)], _bounded,
    ),
), _over_reduced)  # fmt: skip


# ---- windows ---------------------------------------------------------------------------------------------------------

_COUNTS = ("aligned", "address")


def _windows(network: str) -> list[Cell]:
    machines = {count: load_machine("nmp", {"transfer.burst_count": count}) for count in _COUNTS}
    true, us = machines["address"], machines["address"].tick_ps / 1e6
    said = ceil = best = 0
    worst, seconds, layers = 0.0, dict.fromkeys(_COUNTS, 0.0), distinct_layers(network)
    for layer in layers:
        times = {}
        for count, machine in machines.items():
            (nest, value), wall = timed(partial(_planned, layer, machine))
            seconds[count] += wall
            times[count] = price(layer, true, nest).time_ticks
            said += value if count == "aligned" else 0
        ceil, best = ceil + times["aligned"], best + times["address"]
        worst = max(worst, times["aligned"] / times["address"] - 1)
    each = [round(seconds[count] / len(layers), 2) for count in _COUNTS]
    return [network, len(layers), round(said * us), round(ceil * us), round(best * us),
            f"{ceil / best - 1:+.1%}", f"{worst:+.1%}", *each]  # fmt: skip


def _planned(layer: Layer, machine: Machine) -> tuple[Nest, int]:
    """The quickest plan and its ticks."""
    pick, _ = best_pick(space_of(layer, machine, "holds=uniform"), ("time",))
    if pick is None:
        raise RuntimeError(f"{layer.name}: no plan on {machine.name}")
    return pick.nest, pick.measures["time"]


windows = Suite("windows", (
    Table(
        "nmp, holds=uniform: distinct layers, time by address in us, and seconds a layer",
        ["network", "layers", "ceil plan, as it says", "ceil plan", "optimum", "over", "worst layer", "s, ceil",
         "s, address"],
        ("lenet5", "squeezenet1_1", "resnet50", "mobilenet_v2"), _windows,
        ["ceil plan: the best one if every run began a window; 'ceil says' is its time by that count.",
         "over: what the ceil plan takes in truth more than the optimum.",
         "seconds: search for the plan and nothing else, mean of the distinct layers, in this run."],
    ),
))  # fmt: skip
