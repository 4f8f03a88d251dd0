"""The adversary and inputs that are broadcast: its own price of nests, what it draws, and the fault that it sees."""

from __future__ import annotations

import random

import pytest

from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.machine.machine import Machine
from instances.network.workload import Layer
from tests.adversary.layers import random_layer
from tests.adversary.pricing import Pricer
from tests.hwmodels.test_broadcast_inputs import drawn, layer_of, machine_of, settings


def own(layer: Layer, machine: Machine, nest: Nest) -> tuple[int, int, int, int]:
    spread = tuple((i.dim, i.step, i.over) for i in nest.items if isinstance(i, Spatial))
    items = [
        (i.dim, i.how) if isinstance(i, Loop) else (i.operand, None) for i in nest.items if not isinstance(i, Spatial)
    ]
    found = Pricer(layer, machine).price(spread, items)
    return found.time, found.bytes, found.energy, found.room


@pytest.mark.parametrize("seed", range(3))
def test_its_price_is_the_price(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        layer, nest = drawn(rng)
        machine = machine_of(**{**settings(rng), "snake": False, "overlap": "serial"})
        said = price(layer, machine, nest)
        assert own(layer, machine, nest) == (
            said.time_ticks, said.bytes, said.energy_fj, sum(said.occupancy_bytes.values())
        ), (layer, nest)  # fmt: skip


def test_every_core_loads_what_it_needs() -> None:
    # a gate of 4 numbers over two cores that share the rows: each loads it, 2 * 4
    sizes = {"in_buffer_bytes": 99, "w_buffer_bytes": 9, "out_buffer_bytes": 99}
    machine = machine_of(tles=2, problem="slicing", ocm_bytes=None, **sizes)
    nest = Nest((Spatial("r", 3, "tle"), Loop("g", 1), Hold("IN"), Hold("OUT")))
    gate = layer_of("", "rc", g=4, r=6, c=5)
    assert price(gate, machine, nest).by_operand["IN"].bytes == 120 + 2 * 4
    assert own(gate, machine, nest)[1] == 120 + 2 * 4 + 120


def test_a_loss_of_operands_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, nest = layer_of("", "rc", g=4, r=6, c=5), Nest((Loop("g", 2), Hold("IN"), Hold("OUT")))
    before = own(layer, machine_of(), nest)[1]
    assert before == price(layer, machine_of(), nest).bytes
    full = property(
        lambda self: tuple(
            (rows, lacks) for rows, lacks in zip(self.residents, self.patterns, strict=True) if not lacks
        )
    )
    monkeypatch.setattr(Layer, "loaded", full)
    assert price(layer, machine_of(), nest).bytes == before - 4 == own(layer, machine_of(), nest)[1] - 4


def test_all_patterns_are_drawn() -> None:
    rng = random.Random(5)
    seen = {layer.broadcast for layer in (random_layer(rng, tiny=True) for _ in range(600)) if layer.broadcast}
    assert {lacks for one in seen for lacks in one} >= {"", "b", "g", "r", "c", "gr", "rc", "gc"}
    assert any("" not in one for one in seen)
    assert {len(one) for one in seen} == {2, 3}
