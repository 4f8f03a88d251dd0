"""The policy MIN as published, against what the public MIDAP simulator moves: random networks, forks inside forks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from formulations.banks.network import Walk, optimum
from formulations.banks.published import arranged, published
from formulations.banks.published_stage import Given, planned
from formulations.banks.tasks import Action
from formulations.banks.times import Times
from hwmodels.banks.replay.referee import Element
from hwmodels.banks.steps import DramClock, Pass, column_cycles
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Banks, Transfer
from instances.network.feature_maps import FeatureMap, Stages, stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator
from tests.effort import tries
from tests.formulations.test_bank_time import networks, tiny_banks
from tests.formulations.test_banks import agrees
from tests.midapsim.networks import Case, forked, plain

#: By kind and seed the bytes of loads, weights, streamed operands, biases and writes under MIN, as the simulator of
#: 2020-09-02 reads and writes them when every cycle is simulated. Where a concatenation is streamed, its compiler
#: forgets to write the parts; for these figures it was made to.
MEASURED: dict[str, dict[str, list[int]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "midap_min.json").read_text(encoding="utf-8")
)
SHAPE = (1, 16, 1, 4)


def banks_of(case: Case) -> Banks:
    found = load_machine("midap", case.settings).banks
    assert found is not None
    return found


@pytest.mark.few(20)
@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, rows in MEASURED.items() for seed in rows])
def test_min_moves_what_the_published_compiler_moves(kind: str, seed: str) -> None:
    case = {"plain": plain, "forked": forked}[kind](int(seed))
    banks = banks_of(case)
    found = stages(Network.model_validate(case.network), banks)
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [*plan.volume] == MEASURED[kind][seed]


def test_all_kinds_were_measured() -> None:
    assert {kind: len(rows) > 25 for kind, rows in MEASURED.items()} == {"plain": True, "forked": True}


# ---- by hand -------------------------------------------------------------------------------------------------------


def conv(name: str, of: str) -> Conv:
    return Conv(name=name, inputs=(of,), shape=SHAPE, filters=16, kernel=(1, 1))


def small(*operators: Operator, count: int = 5, bank: int = 64) -> tuple[Stages, Banks]:
    """A network of maps of 4 columns of 16 bytes."""
    banks = Banks(count=count, map_bytes=count * bank, weight_bytes=4096, filters=16, lanes=16, patch_channels=0)
    return stages(Network(name="n", operators=(Input(name="x", shape=SHAPE), *operators)), banks), banks


def test_a_fork_inside_a_path_ends_where_all_paths_meet() -> None:
    """Of three paths from a, the one by c forks again; all four ends meet in f, so the fork is one item of that path.

    Its path is c and the fork, as long as d, e; g is one stage long and first. Of the two longer ones the later one in
    the network is the first one.
    """
    parts = ("c1", "c2", "e", "g")
    found, banks = small(
        conv("a", "x"), conv("c", "a"), conv("c1", "c"), conv("c2", "c"), conv("d", "a"), conv("e", "d"),
        conv("g", "a"), Concat(name="f", inputs=parts, shape=(1, 64, 1, 4), axis=1), conv("h", "f"),
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [step.stage.name for step in plan.steps] == ["a", "g", "d", "e", "c", "c2", "c1", "h"]
    # a is one tile and stays for the paths to come, c for c1; the last reader lets go.
    assert [step.task.retain for step in plan.steps] == [0, 1, 1, 0, 0, 1, 0, 0]


def test_a_concatenation_lies_from_its_first_column_on() -> None:
    """Banks of two columns: a is stored from its end and read backwards, and so are its readers; f is not."""
    found, banks = small(
        conv("a", "x"), conv("b", "a"), conv("c", "a"),
        Concat(name="f", inputs=("b", "c"), shape=(1, 32, 1, 4), axis=1), conv("h", "f"), count=2, bank=32,
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [(step.stage.name, step.direction) for step in plan.steps] == [("a", 0), ("c", 1), ("b", 1), ("h", 0)]


def test_of_two_paths_of_a_sum_the_first_one_is_streamed() -> None:
    found, banks = small(
        conv("a", "x"), conv("b", "a"), conv("c", "a"), conv("d", "c"),
        Eltwise(name="s", inputs=("d", "b"), shape=SHAPE, fn="add"), conv("e", "s"),
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [step.stage.name for step in plan.steps] == ["a", "b", "c", "d", "s", "e"]
    assert (plan.steps[4].source, plan.steps[4].volume.streamed, plan.steps[1].task.goal.keep) == ("d", 64, 0)


def test_networks_without_a_published_plan_get_one_all_the_same() -> None:
    """Two results: the compiler has no plan for a path that ends before the others meet."""
    found, banks = small(conv("a", "x"), conv("b", "a"), conv("c", "a"))
    assert arranged(Walk(found, banks)) is None
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert len(plan.steps) == 3


def test_a_stage_leaves_banks_for_its_result() -> None:
    """Six columns in six tiles, two on chip, four banks; a spilled column costs twice 1, a step 0 or 10.

    With one bank left to the map three tiles of the result stay, the last ones. Two tiles are loaded: all four banks
    hold some, so three tiles are processed, whose results are spilled, and their banks wait for those that stay, but
    one: two more tiles are loaded as results find room, and the last three are processed one by one. 4 steps and 6
    bytes. With two banks left: four tiles, then two: 2 steps and 8 bytes. With three left: 2 steps and 10 bytes.
    """
    given = Given(
        Pass(columns=6, tile=1, results=6), columns=6, tile=1, banks=4, free=2, aside=0, on_chip=2, tiles=6, stay=None,
        fixed=False,
    )  # fmt: skip
    lean = planned(given, tries=True, step=0, column=1)
    assert (lean.keep, lean.mirrored, lean.steps) == (3, True, 4)
    assert lean.actions[:2] == (Action("load", 2), Action("process", 3))
    heavy = planned(given, tries=True, step=10, column=1)
    assert (heavy.keep, heavy.steps) == (2, 2)
    assert sum(action.tiles for action in heavy.actions if action.name == "load") == 4


@settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), tiny_banks((2, 6), (16, 24, 40), (1, 16, 1000), ("free",)))
def test_plans_of_any_network_and_banks_hold(network: Network, banks: Banks) -> None:
    """The replay counts the same bytes, whether or not the compiler has a plan; with tiles that no window reads too."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    try:
        plan = published(Walk(found, banks))
    except InputError:
        reject()  # stuck in too few banks
    agrees(found, banks, plan)
    assert plan.volume.total >= optimum(Walk(found, banks)).volume.total


# ---- Cycles of columns where banks are read in words: by hand, against the replay, against a simulator ---------------

WORDS = Banks(count=4, map_bytes=4 * 256, weight_bytes=4096, filters=2, lanes=4, patch_channels=0, alignment="words")


def convolved(banks: Banks, rows: int, columns: int, channels: int, **conv: object) -> Stages:
    """A network of one convolution."""
    shape = (1, channels, rows, columns)
    kernel, stride, pad = conv["kernel"], conv.get("stride", (1, 1)), conv.get("pad", (0, 0, 0, 0))
    assert isinstance(kernel, tuple)
    assert isinstance(stride, tuple)
    assert isinstance(pad, tuple)
    dilation = 2 if "dilation" in conv else 1  # of the rows
    high = (rows + pad[0] + pad[2] - (kernel[0] - 1) * dilation - 1) // stride[0] + 1
    wide = (columns + pad[1] + pad[3] - kernel[1]) // stride[1] + 1
    operators = [
        {"op": "input", "name": "x", "shape": shape},
        {"op": "conv", "name": "y", "inputs": ["x"], "shape": (1, 2, high, wide), "filters": 2, **conv},
    ]
    return stages(Network.model_validate({"name": "n", "operators": operators}), banks)


def both(found: Stages, banks: Banks, *, backwards: bool) -> tuple[list[int], list[int]]:
    """Cycles of every column in the order of the pass: closed form, and the replay's element.

    What the first pixels read, and when, is the same.
    """
    (stage,) = found.stages
    source, results = found.maps["x"], found.maps["y"].columns
    closed = column_cycles(stage, banks, source, results, backwards=backwards)
    step = -1 if backwards else 1
    element = Element(stage, banks, list(range(source.columns))[::step], source.tile(banks))
    touched, cycles = [], []
    for x in range(results)[::step]:
        touched.append(tuple(element.touched(x)))
        cycles.append(element.cycles(x))
    assert list(closed.touched) == touched
    return list(closed.cycles), cycles


def test_bubbles_by_hand() -> None:
    """Words of 4 bytes; a map of 3 rows and 2 columns of 2 channels, which lie in 2 bytes: a column has 6 bytes.

    Kernel 2x2, no padding: one column and two rows of results. Weights: 2 rows of 2 bytes, one word. The first column
    begins at byte 0: the window of row 0 is aligned, 1 cycle; that of row 1 begins at byte 2 of its word, the weights
    at byte 0: 2 cycles. The second column begins at byte 6, 2 bytes into word 1: row 0 takes 2 cycles; row 1 begins at
    byte 8: 1 cycle. In all 6, where as many channels without regard to words take 4.
    """
    found = convolved(WORDS, 3, 2, 2, kernel=(2, 2))
    assert both(found, WORDS, backwards=False) == ([6], [6])
    assert both(found, WORDS, backwards=True) == ([6], [6])
    free = WORDS.model_copy(update={"alignment": "free"})
    assert both(convolved(free, 3, 2, 2, kernel=(2, 2)), free, backwards=False) == ([4], [4])


def test_a_word_just_read_is_not_read_again_by_hand() -> None:
    """1x1 over one column of 4 pixels of 2 bytes: two pixels a word, the second of each begins inside it.

    The word has just been read for the first one, so each pixel takes a cycle: 4. With stride 3, pixels 0 and 3: the
    second begins at byte 6, in word 1, which has not been read: 1 + 2 cycles.
    """
    assert both(convolved(WORDS, 4, 1, 2, kernel=(1, 1)), WORDS, backwards=False) == ([4], [4])
    strided = convolved(WORDS, 4, 1, 2, kernel=(1, 1), stride=(3, 1))
    assert both(strided, WORDS, backwards=False) == ([3], [3])


def test_tiles_begin_at_the_first_byte_of_their_bank_by_hand() -> None:
    """Columns of 1 pixel of 2 bytes, kernel 1x2, words of 4 bytes, banks of 6 bytes: tiles of 3 columns.

    Columns begin at bytes 0, 2, 4 of a tile, so at 0, 2, 0 of their words; a kernel column takes 1 cycle, 2 if it
    begins at 2 of a word that was not read last. Result 0 reads columns 0 and 1: 1 + 1 (word 0 has just been read).
    Result 1 reads 1 and 2: word 0 was read last, 1 + 1. Result 2 reads 2 and 3: 1 + 1, byte 0 of the next bank. Result
    3 reads 3 and 4: 1 + 1. In banks of 4 bytes, tiles of 2: the same.
    """
    for size in (6, 4):
        banks = WORDS.model_copy(update={"map_bytes": 4 * size})
        assert both(convolved(banks, 1, 5, 2, kernel=(1, 2)), banks, backwards=False) == ([2] * 4, [2] * 4)
    strided = convolved(WORDS, 1, 5, 2, kernel=(1, 1), stride=(1, 3))  # columns 0 and 3, the second at byte 6: a bubble
    assert both(strided, WORDS, backwards=False) == ([1, 2], [1, 2])


@settings(max_examples=tries(50, 200), deadline=None)
@given(st.data())
def test_the_closed_form_counts_what_the_element_reads(data: st.DataObject) -> None:
    lanes, filters = data.draw(st.sampled_from([4, 8, 16])), data.draw(st.sampled_from([1, 2, 4]))
    rows, columns, channels = (data.draw(st.integers(1, most)) for most in (7, 9, 9))
    kernel = data.draw(st.integers(1, min(3, rows))), data.draw(st.integers(1, min(4, columns)))
    pad = tuple(data.draw(st.integers(0, size - 1)) for size in (*kernel, *kernel))
    stride = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    stored = -(-channels // filters) * filters
    bank = rows * stored * data.draw(st.integers(1, 5)) + data.draw(st.integers(0, 3))
    banks = WORDS.model_copy(update={"lanes": lanes, "filters": filters, "map_bytes": 4 * bank})
    found = convolved(banks, rows, columns, channels, kernel=kernel, stride=stride, pad=pad)
    for backwards in (False, True):
        closed, counted = both(found, banks, backwards=backwards)
        assert closed == counted
        assert sum(closed) * found.stages[0].groups >= found.stages[0].cycles


def test_dilated_and_grouped_convolutions_read_as_before() -> None:
    """Their rows do not lie side by side."""
    free = WORDS.model_copy(update={"alignment": "free"})
    for conv in ({"kernel": (2, 2), "dilation": (2, 1)}, {"kernel": (1, 1), "groups": 2}):
        one, two = (convolved(banks, 3, 3, 4, **conv).stages[0] for banks in (WORDS, free))
        assert one == two
        assert one.reads is None


def test_machines_without_alignment_do_not_name_it() -> None:
    banks = load_machine("midap", {"banks.alignment": "free"}).banks
    assert "alignment" not in banks.model_dump()
    assert load_machine("midap").model_dump()["banks"]["alignment"] == "words"


@pytest.mark.parametrize(
    ("name", "measured"), [("mobilenet_v2", 839_939), ("resnet50", 4_007_355), ("inception_v3", 6_611_541)]
)
def test_compute_cycles_are_those_of_the_simulator(name: str, measured: int) -> None:
    """Within 0.25 %: the simulator folds the global pool, and lays tiles that begin again at their bank's first byte.

    Measured with the public simulator of 2020-09-02: the cycles of the plan of the policy MIN without its delays.
    Without alignment Inception v3 would take 6.1 million.
    """
    machine = load_machine("midap")
    assert machine.banks is not None
    found = stages(load_network(name), machine.banks)
    times = Times(Walk(found, machine.banks), DramClock(Transfer(), 1))
    cycles = sum(times.ticks(at, 0)[0][-1] * stage.groups for at, stage in enumerate(found.stages))
    assert cycles == pytest.approx(measured, rel=2.5e-3)


def test_a_map_smaller_than_a_word() -> None:
    source = FeatureMap("x", 1, 1, 1, 1)
    banks = WORDS.model_copy(update={"filters": 1})
    found = convolved(banks, 1, 1, 1, kernel=(1, 1))
    assert found.maps["x"] == source
    assert both(found, banks, backwards=False) == ([1], [1])
