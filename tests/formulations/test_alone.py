"""What no nest of a layer by itself is below: nests of all kinds against the matrices that bound them.

Without the ticks that an engine idles: matrices of nests are fluid, a part of a tile may be ahead in them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from formulations.fusion.latency import alone
from formulations.fusion.latency.alone import Alone, Axis, Kind, kinds, passed, spans
from formulations.fusion.latency.bounds import Floors, _again, _axes, _parts
from formulations.fusion.latency.channels import Price
from formulations.fusion.latency.options import Options, flows_of
from formulations.fusion.part import FusionPart
from formulations.fusion.strips import Ints
from formulations.pins import Pins
from hwmodels.schedule import Hold, Loop, Nest
from instances.errors import InputError
from instances.load import load_machine
from instances.zoo.builder import Builder
from tests.effort import tries

#: Of every transfer.
EACH = Price(1, 10, 2)
#: A layer in ticks and bytes: 16 filters of 64 bytes, 256 bytes of input, 64 of results.
LAYER = Alone(
    compute=64, filters=16, rounds=1, weights=1024, inputs=256, stored=64, results=64, sums=256, again=1024, box=256,
    passed=268, run=8, slices=4, channels=64, taps=64, parts=None, of_inputs=EACH, of_weights=EACH, of_results=EACH,
    room=400,
)  # fmt: skip


def part_of(channels: int, filters: int, size: int, taps: int = 1, stride: int = 1, **machine: object) -> FusionPart:
    """A convolution between two others, on a machine with bytes of ticks and much memory."""
    net = Builder("alone", "")
    x = net.conv(net.input(1, 2, size, size, name="in"), "a", channels, batch_norm=False, act="")
    x = net.conv(x, "b", filters, taps, stride=stride, pad=taps // 2, batch_norm=False, act="")
    net.conv(x, "c", 3, batch_norm=False, act="")
    memory = {"ocm_bytes": 100_000, "ocm_banks": 0, "compute.cycle_ticks": 1}
    free = {"transfer.call_ticks": 0, "transfer.segment_ticks": 0}
    settings = {name.replace("__", "."): str(value) for name, value in (memory | free | machine).items()}
    return FusionPart(net.build(), load_machine("scratchpad_768k", settings), Pins(()))


def covered(part: FusionPart, items: Iterable[Loop | Hold], near: frozenset[int], spare: int) -> bool | None:
    """Whether layer b with a nest, in so many bytes more than its tiles, is below no bound; None if it is no nest."""
    floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
    run = replace(floors.bare(1, near), nest=Nest(tuple(items)))
    try:
        outcome = part.layers.outcome(part.layers.layer(1, run), run.nest)
    except InputError:  # an inner loop with a larger step than an outer one
        return None
    if not part.layers.holds(1, run):
        return None
    room = outcome.occupancy_bytes["ocm"] + spare
    made = part.timelines.alone(1, run, part.timelines.room - room)
    options = Options(part.groups, 10**9)
    matrix: Ints = options._product(flows_of(made, options.channels))[0]
    matrix[:, 1] = matrix[:, 1:].max(axis=1)  # A2 is A1 or later
    matrix[2] = matrix[1:].max(axis=0)
    ways, moving = floors._by_itself(1, (near, room)), sum(one.ticks for one in made.moves)
    return any(bool((matrix >= way.matrix).all()) for way in ways) and moving >= min(way.moving[0] for way in ways)


@pytest.fixture(autouse=True)
def fluid(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ticks that the engine idles."""
    fitting = alone._fitting

    def made(kind: Kind, layer: Alone, tile: int, _: tuple[int, int]) -> Iterator[Kind]:
        yield from fitting(kind, layer, tile, (0, 0))

    monkeypatch.setattr(alone, "_fitting", made)


@pytest.mark.parametrize("seed", range(4))
def test_no_nest_is_below_all_kinds(seed: int) -> None:
    """Loops over filters, inputs, rows and the kernel in any order, tiles held anywhere between them."""
    rng, compared = random.Random(seed), 0
    while compared < tries(60, 600):
        taps, size = rng.choice([1, 1, 3]), rng.choice([2, 4, 6])
        part = part_of(
            rng.choice([4, 8, 16]), rng.choice([4, 8, 16]), size, taps, rng.choice([1, 2]) if size > 2 else 1,
            psum_bytes=rng.choice([1, 4]), compute__rows=rng.choice([1, 4, 16]), compute__cols=rng.choice([1, 64]),
            transfer__call_ticks=rng.choice([0, 5]), transfer__segment_ticks=rng.choice([0, 2, 9]),
            in_layout=rng.choice(["HWC", "CHW"]), out_layout=rng.choice(["HWC", "CHW"]),
            sliding=rng.choice(["true", "false"]),
        )  # fmt: skip
        near = rng.choice([frozenset[int](), frozenset[int](), frozenset({0}), frozenset({1})])
        layer = part.net.layers[1]
        for _ in range(30):
            dims = rng.sample("mmnnrri" if taps > 1 else "mmnnrr", rng.randint(1, 5))
            items: list[Loop | Hold] = [
                Loop(d, max(1, layer.extent(d) // rng.choice([2, 4, 16]))) for d in dims if layer.extent(d) > 1
            ]
            for operand in ("IN", "W", "OUT"):
                items.insert(rng.randint(0, len(items)), Hold(operand))
            said = covered(part, items, near, rng.choice([0, rng.randint(0, 300)]))
            assert said is not False, (seed, items)
            compared += said is not None


@pytest.mark.parametrize("near", [frozenset[int](), frozenset({1})])
def test_sums_off_the_chip_between_parts_and_on_it_in_them(near: frozenset[int]) -> None:
    """Half of the channels after the other, filters in four pieces, inside of these channel by channel.

    A tile of the weights has 12 of 3,072 bytes, not an eighth of them: 48 bytes of sums stay for all of a half.
    """
    layout = {"in_layout": "CHW", "out_layout": "CHW", "compute__rows": 12, "compute__cols": 1}
    part = part_of(64, 48, 2, psum_bytes=1, compute__cycle_ticks=4, **layout)
    items = Loop("n", 32), Hold("IN"), Loop("m", 12), Hold("OUT"), Loop("n", 1), Hold("W")
    assert [covered(part, items, near, spare) for spare in (0, 60, 200, 1000, 3000)] == [True] * 5


def test_kinds_by_hand() -> None:
    """400 bytes: weights find no room; twice they take 1,024 ticks more, with half of 256 bytes beside every step.

    Loads of both operands once: 1,024 + 256 + 2 * 12 ticks. The result once: 64 + 12, in two pieces 64 + 2 * (10 + 8).
    """
    found = set(kinds(LAYER))
    assert Kind(64, 1304 + 1024, 76, 128) in found
    # all sums are one tile, 256 bytes; the input in two or three slices, 86 bytes: two runs of 4 ticks for one of 2
    assert Kind(64, 1304 + 8 - 2, 76, 256 + 86) in found
    # filters in four to six pieces, which take four rounds: the input four times, 171 bytes of weights
    assert Kind(256, 1304 + 3 * 12 + 3 * 268, 64 + 4 * 18, 171) in found
    # the same with the input as one tile does not fit; in 11 to 16 pieces it does, with 64 bytes of weights
    assert Kind(11 * 64, 1304 + 10 * 12, 64 + 11 * 18, 256 + 64, 256) in found
    # and with all results as one tile, which are stored once
    assert Kind(11 * 64, 1304 + 10 * 12, 76, 256 + 64 + 64, 256) in found
    # sums that are stored and loaded again, between two or three parts of 64 products: 342 bytes of weights
    assert Kind(64, 1304 + 256, 76 + 256, 342) in found
    # and of two or three pieces of the filters: 114 of weights, the input twice, or 86 bytes of it
    assert Kind(128, 1304 + 256 + 256, 76 + 256, 114) in found
    assert Kind(128, 1304 + 256, 76 + 256, 114 + 86) in found
    # or, instead of weights, 86 bytes of sums that stay where parts are cut again
    assert Kind(128, 1304 + 256, 76 + 256, 86 + 86) in found
    assert not [kind for kind in found if kind.own > 400]
    (plain,) = kinds(replace(LAYER, weights=0))
    assert plain == Kind(64, 256 + 12, 76)


def test_bytes_alone_by_hand() -> None:
    """Of 1,024 bytes of weights 624 find no room in 400: they take two calls at least. In 1,024 all may be ahead."""
    (plain,) = kinds(replace(LAYER, weights=0).bare(400))
    assert plain == Kind(64, 256, 64)
    for memory, late in ((400, 2 * 12), (1024, 0)):
        found = set(kinds(LAYER.bare(memory)))
        assert Kind(64, 1024 + 256 + late + 1024, 64, 128) in found
        assert Kind(64, 1024 + 256 + late, 64, 256 + 86) in found  # slices have no runs
        assert min(kind.loads for kind in found) == 1024 + 256 + late
    assert len([*kinds(LAYER)]) == len([*kinds(LAYER.bare(400))])


def test_calls_count_for_transfers_alone() -> None:
    """16 bytes of weights and 16 of the input may be ahead, in calls of 50 ticks: a layer ends behind 32 ticks."""
    ways = []
    for call in (0, 50):
        part = part_of(4, 4, 2, transfer__call_ticks=call)
        floors = Floors(part.groups, part.tables.nests.arcs("proven"), lambda _: True)
        ways.append(floors._by_itself(1, (frozenset(), floors.room)))
    free, called = ([(int(way.matrix[0, 1]), int(way.matrix[2, 2])) for way in some] for some in ways)
    assert min(free) == min(called) == (32, 48)
    assert [min(way.moving for way in some) for some in ways] == [(48,), (48 + 3 * 50,)]


def test_the_engine_idles_without_room_for_two_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile of 300 of 400 bytes: of 1,024 bytes all but 400 are loaded while the engine waits. Of 200 bytes: none."""
    monkeypatch.undo()
    (large,), (small,) = (alone._fitting(Kind(64, 0, 0), LAYER, tile, (1024, 1)) for tile in (300, 200))
    assert (large.compute, large.own) == (64 + 624, 300)
    assert (small.compute, small.own) == (64, 200)
    assert not [*alone._fitting(Kind(64, 0, 0, 200), LAYER, 201, (1024, 1))]


def test_ranges_hold_every_number_once() -> None:
    """1, 2 to 3, 4 to 6, 7 to 10, and so on."""
    for first, most in ((1, 1), (1, 100), (2, 2), (2, 777)):
        assert [n for low, high in spans(first, most) for n in range(low, high + 1)] == [*range(first, most + 1)]


def test_what_is_read_again_by_hand() -> None:
    """3x3 on 4 rows with padding: rows need 2, 3, 3, 2 taps. Taps 0, or 1 and 2, read 3 and 4 rows of 4.

    With stride 2 on 4 rows, pad 1: row 0 needs taps 1 and 2, row 1 all; tap 0 reads row 1, tap 1 rows 0 and 2, tap 2
    rows 1 and 3: tap 0 and the others read 1 + 4 of 4 rows. 1x1 has no second tap.
    """
    same, strided, single = (part_of(4, 4, 4, *how).net.layers[1] for how in ((3, 1), (3, 2), (1, 1)))
    assert _again(same) == pytest.approx(2 / 3)
    assert _parts(same, 64) == (64 * 3 // 4, 64 * 3 // 4)
    assert _parts(strided, 64) == (64 // 4, 64 // 4)
    assert _parts(single, 64) is None


def test_what_strides_skip_by_hand() -> None:
    """1x1 with stride 2 on 8 x 8 pixels of 4 bytes: 4 of 7 rows and columns are read, 64 bytes; a call takes 12 ticks.

    As one tile 7 * 7 * 4 + 12 = 208; row by row 4 * 7 * 4 + 4 * 12 = 160; pixel by pixel 64 + 16 * 12. Without a price
    for calls pixel by pixel is the best. 3x3 reads all 8 rows.
    """
    single, window = (part_of(4, 4, 8, *how).net.layers[1] for how in ((1, 2), (3, 2)))
    rows, columns = _axes(single)
    assert rows == columns == Axis(4, 4, 1, 7)
    assert passed(64, rows, columns, Price(1, 10, 2)) == 160
    assert passed(64, rows, columns, Price(1, 0, 0)) == 64
    assert passed(64, rows, columns, Price(1, 40, 0)) == 196 + 40
    assert passed(0, rows, columns, EACH) == 0
    assert _axes(window) == (Axis(8, 1, 0, 8),) * 2


def test_an_input_as_one_tile_has_what_strides_skip() -> None:
    """Of 256 bytes read 400 lie there, in 800 bytes beside 128 of weights: 8 pieces, in which the engine computes."""
    found = set(kinds(replace(LAYER, room=800, box=400, passed=300)))
    held = [kind for kind in found if kind.first]
    assert held
    assert all(kind.own >= 400 or kind.own >= LAYER.weights for kind in held)
    assert min(kind.loads for kind in held if kind.first == 400) == 1024 + 12 + 400 + 12


def test_an_input_as_one_tile_is_in_no_slices() -> None:
    """Channels are cut, and a filter's weights come in tiles that cost bytes alone: 1,024 and 268 ticks, then 76.

    256 bytes of the input and 256 of sums find room in 600, so of no pixel there is a run for a slice.
    """
    layer = replace(LAYER, filters=1, room=600, of_weights=Price(1, 0, 0))
    assert min(kind.loads + kind.stores for kind in kinds(layer)) == 1024 + 268 + 76
