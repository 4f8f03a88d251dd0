"""The operator graph: checks when made, layers, totals, batch."""

from __future__ import annotations

import networkx as nx
import pytest
from pydantic import ValidationError

from instances.applications import Applications, applications
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.sections import Banks
from instances.network.feature_maps import FeatureMap, Height, Pooled, Stage, stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, MatMul, Opaque, Operator, Pool, Reshape
from instances.network.stores import Operand, stores
from instances.network.tasks import Task, Tensor, tasks, tensors


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


def test_what_is_known_of_places_and_kinds() -> None:
    """A slice begins elsewhere in a map of another size; results of one operator of no plan are one operator."""
    cut = Reshape(name="r", inputs=("x",), shape=(1, 2, 2, 4), fn="slice", starts=(0, 0, 1, 0))
    join = Conv(name="c", inputs=("x",), shape=(1, 1, 4, 4), filters=1, kernel=(1, 1))
    with pytest.raises(InputError, match="has no other size"):
        network(Input(name="x", shape=(1, 2, 4, 4)), cut, join).with_size(6, 6)
    with pytest.raises(InputError, match="size 0x6"):
        network().with_size(0, 6)
    two = network(Input(name="x", shape=(2, 2, 4, 4)), cut.model_copy(update={"shape": (2, 2, 2, 4)})).with_batch(1)
    assert (two.operator("r").shape, two.operator("r").starts) == ((1, 2, 2, 4), ())
    kept = {"inputs": ("x",), "shape": (1, 2), "kind": "TopK"}
    several = network(Input(name="x", shape=(1, 2)), Opaque(name="a", macs=5, **kept),
                      Opaque(name="b", macs=0, result_of="a", **kept), Opaque(name="d", macs=7, **kept))  # fmt: skip
    assert (several.unplanned, len(several.warnings)) == ("TopK x2 (12 MACs)", 2)


def test_batch_that_cannot_be_set() -> None:
    with pytest.raises(InputError, match="batch 0: a positive number"):
        network().with_batch(0)
    with pytest.raises(InputError, match=r"different batch sizes \[1, 2\]"):
        network(Input(name="x", shape=(1, 2)), Input(name="y", shape=(2, 2))).with_batch(3)
    odd = network(Input(name="x", shape=(2, 3)), Reshape(name="r", inputs=("x",), shape=(3, 2))).with_batch(4)
    assert odd.operator("r").shape == (6, 2)
    with pytest.raises(InputError, match="leading dimension is not the batch"):
        network(Input(name="x", shape=(2, 3)), Reshape(name="r", inputs=("x",), shape=(3, 2))).with_batch(1)


def test_applications_that_cannot_be() -> None:
    for text, said in (("lenet5@1.5us", "whole microseconds"), ("lenet5@33ms/34ms", "is after the period")):
        with pytest.raises(InputError, match=said):
            applications(text)
    two = applications("lenet5@33ms,lenet5@20ms/9ms")
    assert [(one.name, one.period_us, one.deadline_us) for one in two.applications] == [
        ("lenet5", 33_000, 33_000), ("lenet5#2", 20_000, 9_000),
    ]  # fmt: skip
    one = two.applications[0]
    named = [o.model_copy(update={"name": o.name.replace("#2", ""), "inputs": ()}) for o in two.network.operators[:1]]
    short = one.model_copy(update={"operators": 1})
    inputs = [*named, named[0].model_copy(update={"name": f"{one.name}:other"})]
    with pytest.raises(InputError, match="two have one name"):
        Applications(Network(name="n", operators=tuple(inputs)), (short, short))
    with pytest.raises(InputError, match="are not those of the network"):
        Applications(two.network, two.applications[:1])


def test_a_network_is_frozen_and_comparable() -> None:
    assert network() == network()
    with pytest.raises(ValidationError):
        network().name = "other"


# ---- a network as stages, tasks and tensors, by hand -----------------------------------------------------------------

WRITTEN, READ = 4, 8
BANKS = Banks(count=4, map_bytes=4096, weight_bytes=300, filters=WRITTEN, lanes=READ, bias_bytes=2, pool_channels=16,
              bus="weights_first")  # fmt: skip


def test_stages() -> None:
    """Maps are (channels, rows, columns). A map that is read by lanes is stored in 8s, others in 4s."""
    half = {"kernel": (3, 3), "stride": (1, 2), "pad": (1, 1, 1, 1)}
    patches = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0, 0, 1), "bias": True}
    apart = {"groups": 3, "kernel": (2, 2), "pad": (1, 1, 1, 1), "dilation": (2, 2), "bias": True}
    nine = (1, 9, 3, 3)
    found = stages(network(
        Input(name="x", shape=(1, 3, 6, 5)), Conv(name="p", inputs=("x",), shape=(1, 9, 3, 5), filters=9, **patches),
        Conv(name="d", inputs=("p",), shape=nine, filters=9, groups=9, batch_norm=True, **half),
        Pool(name="m", inputs=("p",), shape=nine, fn="max", **half),
        Conv(name="c", inputs=("p",), shape=nine, filters=9, kernel=(1, 1), stride=(1, 2)),
        Eltwise(name="s", inputs=("d", "m", "c"), shape=nine, fn="add"),
        Eltwise(name="r", inputs=("s",), shape=nine, fn="relu"),
        Conv(name="g", inputs=("r",), shape=(1, 6, 3, 3), filters=6, **apart),
        Conv(name="h", inputs=("r",), shape=(1, 5, 3, 3), filters=5, kernel=(1, 1)),
        Concat(name="j", inputs=("g", "h"), shape=(1, 11, 3, 3)),
        Conv(name="e", inputs=("j",), shape=(1, 7, 2, 3), filters=7, kernel=(2, 1)),
        Pool(name="a", inputs=("e",), shape=(1, 7, 1, 1), fn="global_avg"),
        Reshape(name="f", inputs=("a",), shape=(1, 7)),
        MatMul(name="y", inputs=("f",), shape=(1, 3), out_features=3, bias=True),
    ), BANKS)  # fmt: skip
    dw = {"taps": 3, "stride": 2, "before": 1, "after": 1, "written": 3 * 16, "groups": 2, "tap_cycles": 2 + 3 + 2,
          "first_cycles": 2, "cycles": 2 * 7 * 7}  # fmt: skip
    assert found.stages == (
        # patches of 3*2*3 = 18 bytes, 3 words; 3 groups of filters, 3 rows, 5 columns
        Stage("p", "patches", "x", "p", weight_bytes=12 * 24, written=3 * 12, groups=3, tap_cycles=9, first_cycles=3,
              cycles=3 * 9 * 5),
        # 9 channels are 2 groups of lanes; of 3 rows (columns) 2, 3 and 2 taps lie inside; a batch norm has a bias
        Stage("d", "depthwise", "p", "d", weight_bytes=9 * 16, bias_bytes=16 * 2, **dw),
        Stage("m", "pool", "p", "m", **dw),
        Stage("c", "conv", "p", "c", stride=2, weight_bytes=12 * 16, written=3 * 12, groups=3, tap_cycles=3 * 2,
              first_cycles=2, cycles=3 * 6 * 3),
        # two words a pixel for each operand but one, which comes with another
        Stage("s", "sum", "d", "s", ("m", "c"), written=3 * 16, tap_cycles=3 * 4, first_cycles=4, cycles=12 * 3),
        # 3 channels a group: a word a row; columns have 1, 2 and 1 taps inside
        Stage("g", "conv", "s", "j", taps=2, dilation=2, before=1, after=1, weight_bytes=8 * 2 * 8, bias_bytes=8 * 2,
              written=3 * 8, groups=2, tap_cycles=3, first_cycles=1, cycles=2 * 3 * 4),
        Stage("h", "conv", "s", "j", offset=6, weight_bytes=8 * 16, written=3 * 8, groups=2, tap_cycles=6,
              first_cycles=2, cycles=2 * 6 * 3),
        # 22 bytes of two rows are 3 words; 8 averages in 4s
        Stage("e", "conv", "j", "a", weight_bytes=8 * 24, written=8, groups=2, tap_cycles=6, first_cycles=3,
              cycles=2 * 6 * 3 + 2, pooled=Pooled(3, 2, 2)),
        Stage("y", "conv", "a", "y", weight_bytes=4 * 8, bias_bytes=4 * 2, written=4, tap_cycles=1, first_cycles=1,
              cycles=1),
    )  # fmt: skip
    maps = {"x": (15, 1, 24, 24), "p": (5, 3, 9, 16), **dict.fromkeys("dmcs", (3, 3, 9, 16)), "j": (3, 3, 11, 12),
            "a": (1, 1, 7, 8), "y": (1, 1, 3, 4)}  # fmt: skip
    assert found.maps == {name: FeatureMap(name, *sizes) for name, sizes in maps.items()}
    assert found.users == {"x": ("p",), "p": ("d", "m", "c"), **dict.fromkeys("dmc", ("s",)), "s": ("g", "h"),
                           "j": ("e",), "a": ("y",), "y": ()}  # fmt: skip
    assert (found.heights["d"], found.heights["g"]) == (Height(3, 1, 1, 1, (2, 3, 2)), Height(2, 1, 2, 1, (1, 1, 1)))
    with pytest.raises(InputError, match="'s' joins maps of different shapes"):
        stages(network(Input(name="x", shape=(1, 3, 2, 2)), Input(name="z", shape=(1, 3, 1, 1)),
                       Eltwise(name="s", inputs=("x", "z"), shape=(1, 3, 2, 2), fn="add")), BANKS)  # fmt: skip


def test_stores() -> None:
    """Maps of 2 x 4 x 4: a sum of three, parts of channels and of rows, a slice, a transpose, and a gate by means."""

    def conv(name: str, source: str, shape: tuple[int, ...] = (1, 2, 4, 4), **fields: object) -> Conv:
        given = {"name": name, "inputs": (source,), "shape": shape, "filters": 2, "kernel": (1, 1)}
        return Conv.model_validate(given | fields)

    whole, tied = (1, 2, 4, 4), {"weights_of": "a", "bias": True}
    found = stores(network(
        Input(name="x", shape=whole), Input(name="z", shape=whole, zeros=True), conv("a", "x", bias=True),
        conv("b", "x", **tied), conv("c", "z", **tied),
        Eltwise(name="s", inputs=("a", "b", "c"), shape=whole, fn="add"), conv("d", "s", bias=True),
        conv("e", "s", weights_of="d", bias=True, own_bias=True),
        Concat(name="j", inputs=("d", "e"), shape=(1, 4, 4, 4)), conv("f", "j"),
        conv("g", "f"), conv("h", "f"), Concat(name="k", inputs=("g", "h"), shape=(1, 2, 4, 8), axis=3),
        conv("l", "k", (1, 2, 4, 8)), Reshape(name="r", inputs=("l",), shape=whole, fn="slice", starts=(0, 0, 0, 2)),
        conv("n", "r"), Reshape(name="t", inputs=("n",), shape=whole, fn="transpose"), conv("o", "t"),
        Pool(name="p", inputs=("o",), shape=(1, 2, 1, 1), fn="global_avg"),
        Eltwise(name="y", inputs=("o", "p"), shape=whole, fn="mul"),
    ))  # fmt: skip
    # rows, elements of a row by layer, readers; what is whole has one row
    assert {s.name: (s.rows, dict(s.parts), s.readers) for s in found.stores} == {
        "a": (1, {0: 32}, (3,)), "b": (1, {1: 32}, (3,)), "c": (1, {2: 32}, (3,)), "s": (4, {3: 8}, (4, 5)),
        "j": (4, {4: 8, 5: 8}, (6,)), "f": (4, {6: 8}, (7, 8)), "k": (1, {7: 32, 8: 32}, (9,)),
        "l": (1, {9: 64}, (10,)), "n": (1, {10: 32}, (11,)), "o": (4, {11: 8}, (12, 13)), "p": (1, {12: 2}, (13,)),
        "y": (4, {13: 8}, ()), "x": (4, {}, (0, 1)), "z": (4, {}, (2,)), "a (weights)": (1, {}, ()),
        "d (weights)": (1, {}, ()),
    }  # fmt: skip
    assert [s.name for s in found.stores if s.whole] == [*"abckln", "a (weights)", "d (weights)"]
    assert [s.name for s in found.stores if s.dram] == ["x", "z"]
    assert [(s.name, s.results) for s in found.stores if s.results] == [("y", 32)]
    assert [s.name for s in found.stores if s.zeros] == ["z"]
    assert [s.seen(2, 4) for s in found.stores if s.name in ("a", "s", "z")] == [4, 2, 4]
    assert found.shared == (14, 14, 14, -1, 15, 15, *[-1] * 8)
    machine = load_machine("scratchpad_64k", {"bias_bytes": "4", "out_bytes": "2"})
    assert found.stores[14].row_bytes(machine) == 2 * 2 + 2 * 4
    assert found.stores[15].row_bytes(machine) == 2 * 2  # each layer has biases of its own
    assert found.stores[4].row_bytes(machine) == 16 * 2
    assert (found.operand(13, 9), found.operand(13, 10)) == (Operand("", 2, 4, 4), Operand("rc", 2, 1, 1))


def test_tasks_and_tensors() -> None:
    """Of 4 x 6 elements a product with constants, and one with an input that stands late."""
    net = network(
        Input(name="x", shape=(1, 4, 6)), Eltwise(name="r", inputs=("x",), shape=(1, 4, 6), fn="relu"),
        MatMul(name="k", inputs=("x",), shape=(1, 4, 5), out_features=5), Input(name="w", shape=(1, 6, 5)),
        MatMul(name="m", inputs=("r", "w"), shape=(1, 4, 5)), Concat(name="j", inputs=("k", "m"), shape=(1, 8, 5)),
        Eltwise(name="s", inputs=("j", "j"), shape=(1, 8, 5), fn="add"),
        Eltwise(name="t", inputs=("m",), shape=(1, 4, 5), fn="tanh"),
        Eltwise(name="u", inputs=("s",), shape=(1, 8, 5), fn="softmax"),
    )  # fmt: skip
    found = tensors(net)
    # inputs are there from the begin; what is joined from its first part on; results, j by its part m, to the end
    assert found.maps == (Tensor("x", 0, 24, 0, 4), Tensor("j", 40, 0, 2, 8), Tensor("w", 0, 30, 0, 4),
                          Tensor("s", 40, 0, 6, 8))  # fmt: skip
    assert [(u.layer.name, u.reads, u.weights, u.writes) for u in found.uses] == [
        ("k", (0,), None, 1), ("m", (0,), 2, 1), ("s", (1,), None, 3),
    ]  # fmt: skip
    graph = tasks(net)
    assert graph.tasks == (
        Task("x", "input", 0, 24, 0, 0, ("relu",)), Task("k", "matmul", 120, 20, 6, 0), Task("w", "input", 0, 30, 0, 0),
        Task("m", "matmul", 120, 20, 6, 0, ("tanh",)), Task("j", "concat", 0, 40, 0, 80),
        Task("s", "add", 0, 40, 0, 120), Task("u", "softmax", 0, 40, 0, 80), Task("t", "reshape", 0, 20, 0, 0),
    )  # fmt: skip
    assert graph.edges == ((0, 1), (0, 3), (2, 3), (1, 4), (3, 4), (4, 5), (5, 6), (3, 7))
