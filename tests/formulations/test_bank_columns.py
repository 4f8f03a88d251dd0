"""Cycles of columns where banks are read in words: by hand, against the replay, against a simulator."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.banks.network import Walk
from formulations.banks.times import Times
from hwmodels.banks.price import Clock, column_cycles
from hwmodels.banks.replay.referee import Element
from instances.load import load_machine, load_network
from instances.machine.machine import Banks, Transfer
from instances.network.feature_maps import FeatureMap, Stages, stages
from instances.network.network import Network
from tests.effort import tries

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
    times = Times(Walk(found, machine.banks), Clock(Transfer(), 1))
    cycles = sum(times.ticks(at, 0)[0][-1] * stage.groups for at, stage in enumerate(found.stages))
    assert cycles == pytest.approx(measured, rel=2.5e-3)


def test_a_map_smaller_than_a_word() -> None:
    source = FeatureMap("x", 1, 1, 1, 1)
    banks = WORDS.model_copy(update={"filters": 1})
    found = convolved(banks, 1, 1, 1, kernel=(1, 1))
    assert found.maps["x"] == source
    assert both(found, banks, backwards=False) == ([1], [1])
