"""The operator graph: checks when made, layers, totals, batch."""

from __future__ import annotations

import networkx as nx
import pytest
from pydantic import ValidationError

from instances.errors import InputError
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Opaque, Operator, Pool, Reshape


def operators() -> list[Operator]:
    """One residual block on a 4x4 map of 2 channels, a classifier, and something unknown."""
    return [
        Input(name="x", shape=(1, 2, 4, 4)),
        Conv(name="c", inputs=("x",), shape=(1, 2, 4, 4), filters=2, kernel=(3, 3), pad=(1, 1, 1, 1), batch_norm=True),
        Eltwise(name="relu", inputs=("c",), shape=(1, 2, 4, 4), fn="relu"),
        Eltwise(name="add", inputs=("relu", "x"), shape=(1, 2, 4, 4), fn="add"),
        Pool(name="pool", inputs=("add",), shape=(1, 2, 1, 1), fn="global_avg"),
        Reshape(name="flat", inputs=("pool",), shape=(1, 2)),
        MatMul(name="fc", inputs=("flat",), shape=(1, 3), out_features=3, bias=True),
        Opaque(name="nms", inputs=("fc",), shape=(1, 3), kind="NonMaxSuppression", parameters=5),
    ]


def network(*made: Operator) -> Network:
    return Network(name="tiny", operators=made or tuple(operators()))


def test_layers_and_totals() -> None:
    net = network()
    assert [x.name for x in net.layers] == ["c", "add", "pool", "fc"]
    assert [x.name for x in net.conv_layers] == ["c", "fc"]
    # conv 2*2*9 taps * 16 pixels = 576, fc 2*3 = 6
    assert net.macs == 576 + 6
    # conv 36 + batch norm 4, fc 6 + 3, opaque 5
    assert net.parameters == 40 + 9 + 5
    assert net.layer("add").inputs == 2


def test_graph() -> None:
    graph = network().graph
    assert nx.is_directed_acyclic_graph(graph)
    assert set(graph.predecessors("add")) == {"relu", "x"}
    assert graph.nodes["c"]["shape"] == (1, 2, 4, 4)
    assert graph.nodes["c"]["operator"].filters == 2


def test_unknown_operators_are_reported() -> None:
    net = network()
    assert [o.name for o in net.opaque] == ["nms"]
    assert net.warnings == ("operator 'nms' (NonMaxSuppression) is kept as opaque: it will not be planned",)


def test_asking_for_a_layer_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"has no layer 'poool'; did you mean pool\?"):
        network().layer("poool")
    with pytest.raises(InputError, match="has no layer 'zzz'; it has c, add, pool, fc"):
        network().layer("zzz")
    with pytest.raises(InputError, match=r"'relu' \(eltwise\) is not a layer"):
        network().layer("relu")
    with pytest.raises(InputError, match="no operator 'reluu'; did you mean relu"):
        network().operator("reluu")
    assert network().operator("relu").op == "eltwise"


def test_names_are_unique_and_inputs_exist() -> None:
    made = operators()
    with pytest.raises(ValidationError, match="'c' is used 2 times"):
        network(*made, made[1])
    with pytest.raises(ValidationError, match=r"input 'flatt' does not exist \(did you mean 'flat'\?\)"):
        network(*made[:-2], made[-2].model_copy(update={"inputs": ("flatt",)}))


def test_order_and_cycles() -> None:
    made = operators()
    with pytest.raises(ValidationError, match="'c' comes before its input 'x'"):
        network(made[1], made[0], *made[2:])
    looped = [o.model_copy(update={"inputs": ("add",)}) if o.name == "c" else o for o in made]
    with pytest.raises(ValidationError, match="cycle: 'c' -> 'relu' -> 'add' -> 'c'"):
        network(*looped)
    alone = Eltwise(name="e", inputs=("e",), shape=(1,), fn="relu")
    with pytest.raises(ValidationError, match="cycle: 'e' -> 'e'"):
        network(alone)


def test_declared_shapes_are_inferred_shapes() -> None:
    made = operators()
    made[1] = made[1].model_copy(update={"shape": (1, 2, 4, 5)})
    with pytest.raises(ValidationError, match=r"'c': declared shape \(1, 2, 4, 5\), its inputs give \(1, 2, 4, 4\)"):
        network(*made)


def test_all_faults_of_a_level_are_collected_up_to_five() -> None:
    wrong = [Eltwise(name=f"e{i}", inputs=("x",), shape=(2,), fn="relu") for i in range(7)]
    with pytest.raises(ValidationError) as caught:
        network(Input(name="x", shape=(1,)), *wrong)
    assert "'e0'" in str(caught.value)
    assert "'e4'" in str(caught.value)
    assert "and 2 more" in str(caught.value)


def test_at_least_one_operator() -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        Network(name="none", operators=())


def test_batch() -> None:
    four = network().with_batch(4)
    assert four.operator("flat").shape == (4, 2)
    assert four.layer("c").b == 4
    assert four.layer("fc").r == 4
    assert four.macs == 4 * network().macs
    assert four.parameters == network().parameters
    assert four.with_batch(1) == network()
    assert network().with_batch(1) is not four


def test_batch_that_cannot_be_set() -> None:
    with pytest.raises(InputError, match="batch 0: a positive number"):
        network().with_batch(0)
    with pytest.raises(InputError, match=r"different batch sizes \[1, 2\]"):
        network(Input(name="x", shape=(1, 2)), Input(name="y", shape=(2, 2))).with_batch(3)
    odd = network(Input(name="x", shape=(2, 3)), Reshape(name="r", inputs=("x",), shape=(3, 2))).with_batch(4)
    assert odd.operator("r").shape == (6, 2)
    with pytest.raises(InputError, match="leading dimension is not the batch"):
        network(Input(name="x", shape=(2, 3)), Reshape(name="r", inputs=("x",), shape=(3, 2))).with_batch(1)


def test_a_network_is_frozen_and_comparable() -> None:
    assert network() == network()
    with pytest.raises(ValidationError):
        network().name = "other"
