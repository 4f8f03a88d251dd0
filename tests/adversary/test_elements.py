"""The adversary counts elements over the operators: by hand, and faults of layers and stores that it has to see."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import formulations.compulsory
import instances.network.operators
import instances.network.stores
from hwmodels.nest.price.closed_form import price
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Operator, Pool, Reshape, element_wise
from instances.network.workload import Layer
from tests.adversary.elements import Elements, miscounted
from tests.adversary.fusion import Case as GroupCase
from tests.adversary.joint import Case
from tests.adversary.layers import random_layer
from tests.adversary.pricing import Pricer
from tests.effort import tries
from tests.hwmodels.test_broadcast_inputs import drawn, layer_of, machine_of, settings

ON = Machine.model_validate({
    "name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1, "bias_bytes": 4,
    "ocm_bytes": 99, "transfer": {"byte_ticks": 1},
})  # fmt: skip
X = Input(name="x", shape=(1, 2, 4, 3))


def conv(name: str, source: str, rows: int = 4, columns: int = 3, **fields: Any) -> Conv:
    made = {"filters": 2, "kernel": (1, 1), **fields}
    return Conv.model_validate({"name": name, "inputs": (source,), "shape": (1, 2, rows, columns), **made})


def same(name: str, source: str) -> Reshape:
    return Reshape(name=name, inputs=(source,), shape=(1, 2, 4, 3), fn="identity")


GATE = Pool(name="p", inputs=("a",), shape=(1, 2, 1, 1), fn="global_avg")
#: By name the operators, bytes where everything stays, and the least.
HAND: dict[str, tuple[tuple[Operator, ...], int, int]] = {
    "a layer: 24 in, 4 weights, 24 out": ((X, conv("a", "x")), 52, 52),
    "biases of 4 bytes": ((X, conv("a", "x", bias=True)), 60, 60),
    "windows of stride 2 leave out every other column and row: 2 channels x 2 x 2, 4 weights, 8 out": (
        (X, conv("a", "x", 2, 2, stride=(2, 2))), 20, 20
    ),
    "padding of windows is no element: 3 x 3 x 4 weights": (
        (X, conv("a", "x", kernel=(3, 3), pad=(1, 1, 1, 1))), 24 + 36 + 24, 24 + 36 + 24
    ),
    "a column of zeros before is none": (
        (X, Reshape(name="z", inputs=("x",), shape=(1, 2, 4, 4), fn="pad"), conv("a", "z", 4, 4)), 24 + 4 + 32, 60
    ),
    "two readers of the input": ((X, conv("a", "x"), conv("b", "x")), 48 + 8 + 48, 24 + 8 + 48),
    "shared weights are one tensor": ((X, conv("a", "x"), conv("b", "a", weights_of="a")), 24 + 4 + 24, 52),
    "a result that is read inside": ((X, conv("a", "x"), same("r", "a"), conv("b", "a")), 24 + 8 + 48, 80),
    "a gate: everything stays": (
        (X, conv("a", "x"), GATE, Eltwise(name="s", inputs=("a", "p"), shape=(1, 2, 4, 3), fn="mul")), 52, 52
    ),
    "a gate from outside has 2 elements": (
        (X, Input(name="g", shape=(1, 2, 1, 1)), Eltwise(name="s", inputs=("x", "g"), shape=(1, 2, 4, 3), fn="mul")),
        24 + 2 + 24, 50,
    ),
    "rows by columns: 4 + 3 of each of two channels": (
        (Input(name="x", shape=(1, 2, 4, 1)), Input(name="y", shape=(1, 2, 1, 3)),
         Eltwise(name="s", inputs=("x", "y"), shape=(1, 2, 4, 3), fn="add")), 8 + 6 + 24, 38,
    ),
    "what is joined is written once": (
        (X, conv("a", "x"), conv("b", "a"), Concat(name="j", inputs=("a", "b"), shape=(1, 4, 4, 3))), 24 + 8 + 48, 80
    ),
    "a product with weights: 6 in, 6 weights, 4 out": (
        (Input(name="x", shape=(2, 3)), MatMul(name="a", inputs=("x",), shape=(2, 2), out_features=2)), 16, 16
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HAND)
def test_elements_by_hand(name: str) -> None:
    operators, once, least = HAND[name]
    network = Network(name="n", operators=operators)
    found = Elements(network, ON)
    assert (found.once, found.least) == (once, least)
    assert miscounted(network, ON) == []


def cases(number: int) -> Iterator[Case]:
    rng = random.Random(3)
    for _ in range(number):
        yield Case.drawn(rng)


def finds(number: int = 150) -> list[str]:
    return [line for case in cases(number) if case.network for line in miscounted(case.network, case.machine)]


def test_nothing_is_miscounted() -> None:
    assert finds() == []


def test_nothing_is_miscounted_of_the_layers_of_groups() -> None:
    """Strides, groups, products of maps, constants, padding before reshapes, results that are read inside."""
    rng = random.Random(4)
    drawn = [(case.network, case.machine) for case in (GroupCase.drawn(rng) for _ in range(200))]
    assert [line for network, machine in drawn if network for line in miscounted(network, machine)] == []


def test_elements_of_a_product_of_maps() -> None:
    """3 x 2 numbers of a byte, 2 x 4 of two, as weights are; 3 x 4 out. A map times itself is one tensor."""
    x, y = Input(name="x", shape=(1, 1, 3, 2)), Input(name="y", shape=(1, 1, 2, 4))
    machine = ON.model_copy(update={"w_bytes": 2})
    network = Network(name="n", operators=(x, y, MatMul(name="p", inputs=("x", "y"), shape=(1, 1, 3, 4))))
    found = Elements(network, machine)
    assert (found.alone(found.layers[0]), found.least) == (6 + 16 + 12,) * 2
    assert miscounted(network, machine) == []
    x = Input(name="x", shape=(1, 1, 2, 2))
    network = Network(name="n", operators=(x, MatMul(name="p", inputs=("x", "x"), shape=(1, 1, 2, 2))))
    found = Elements(network, machine)
    assert (found.alone(found.layers[0]), found.least) == (4 + 8 + 4, 8 + 4)
    assert miscounted(network, machine) == []


def _phantoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operand is read as if it had all elements of the result."""
    real = element_wise
    monkeypatch.setattr(
        instances.network.operators,
        "element_wise",
        lambda shapes: (real(shapes)[0], tuple("" for _ in real(shapes)[1])),
    )


def _own_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer has weights of its own."""
    monkeypatch.setattr(instances.network.stores, "_same", lambda network, number, *, biases: tuple(range(len(number))))


def _stored(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        real = instances.network.stores._Reader._store
        monkeypatch.setattr(instances.network.stores._Reader, "_store", lambda *args: change(real(*args)))

    return patch


def _padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros that a map was padded with are read."""

    def elements(found: Any, reading: Any, mask: Any) -> int:
        return int(mask.sum()) * int(found.layers[reading.layer].input_elements(reading.operand) // mask.size)

    monkeypatch.setattr(formulations.compulsory, "_elements", elements)


def _skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of an input is read, whatever its windows reach."""
    monkeypatch.setattr(
        formulations.compulsory, "read", lambda layer, outputs, operand: np.ones((layer.h, layer.l), np.bool_)
    )


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "an operand that is none": _phantoms,
    "weights for every layer": _own_weights,
    "padding": _padding,
    "results that are read inside are not written": _stored(
        lambda store: replace(store, results=0) if store.readers else store
    ),
    "what is read inside counts as a result": _stored(
        lambda store: replace(store, results=store.rows * store.row_elements)
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    assert finds() != []


def test_rows_that_are_skipped_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not drawn: strides; 16 of 24 elements are never read."""
    _skipped(monkeypatch)
    assert miscounted(Network(name="n", operators=(X, conv("a", "x", 2, 2, stride=(2, 2)))), ON) == [
        "36 bytes are said to move at least, what is read and made are 20"
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(tries(2, 6)))
def test_in_plenty_of_memory_the_optimum_is_what_is_counted(seed: int) -> None:
    """The rule of the adversary, on cases of all kinds."""
    from tests.adversary.joint import TESTER

    rng = random.Random(seed)
    for _ in range(4):
        case = replace(Case.drawn(rng), rule="plenty")
        made = case.ruled(0, None)
        assert made is not None
        said = TESTER.claim(made[0], "dynamic")
        assert (said.status, said.value) == ("OPTIMAL", made[1])


# ---- The adversary and inputs that are broadcast: its own price of nests, what it draws, and the fault th


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
