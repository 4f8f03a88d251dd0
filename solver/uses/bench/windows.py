"""Suite ``windows``: what counting burst windows by address is worth, and what it takes.

Every distinct layer of four networks is planned on `nmp` twice in the paper's space, with `transfer.burst_count`
aligned (the papers' ceil count) and by address. Both plans are priced by address: what DRAM sees.
"""

from __future__ import annotations

from functools import partial

from formulations.tiling.search import best_pick
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Nest
from instances.load import load_machine
from instances.machine.machine import Machine
from instances.network.workload import Layer
from solver.uses.bench.engines import distinct_layers, space_of
from solver.uses.bench.report import Suite, Table, timed

_NETWORKS = ("lenet5", "squeezenet1_1", "resnet50", "mobilenet_v2")
_COUNTS = ("aligned", "address")


def _row(network: str) -> list[str | int | float | None]:
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
        _NETWORKS, _row,
        ["ceil plan: the best one if every run began a window; 'ceil says' is its time by that count.",
         "over: what the ceil plan takes in truth more than the optimum.",
         "seconds: search for the plan and nothing else, mean of the distinct layers, in this run."],
    ),
))  # fmt: skip
