"""Groups executed on integers in exactly the bytes that are counted: rows go back reader by reader."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest

from hwmodels.fusion.replay import strips as replay_strips
from hwmodels.fusion.replay.count import Count
from hwmodels.fusion.replay.execute import NONSENSE, Executed, Full, Memory, Strip, execute
from hwmodels.fusion.replay.referee import replay_fusion
from hwmodels.fusion.replay.strips import Reads, Walk
from hwmodels.schedule import FusedRun
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, Pool
from instances.network.stores import Stores, stores
from tests.adversary.fusion import TESTER
from tests.adversary.fusion_groups import Ways
from tests.hwmodels.test_fusion_replay import MACHINE, fused, pair, read, residual

BYTES = MACHINE.model_copy(update={"psum_bytes": 1})


def passing() -> Stores:
    """A pool of 3 rows, a convolution of 3 rows, a sum of both, and every second row of it."""
    shape = (1, 1, 7, 1)
    taps = {"kernel": (3, 1), "stride": (1, 1)}
    return read(
        Input(name="in", shape=(1, 1, 6, 1)),
        Pool(name="p", inputs=("in",), shape=shape, fn="max", pad=(2, 0, 1, 0), **taps),
        Conv(name="c", inputs=("p",), shape=shape, filters=1, pad=(1, 0, 1, 0), **taps),
        Eltwise(name="s", inputs=("c", "p"), shape=shape, fn="add"),
        Conv(name="half", inputs=("s",), shape=(1, 1, 4, 1), filters=1, kernel=(1, 1), stride=(2, 1)),
    )


def run_in(found: Stores, run: FusedRun, size: int, machine: Machine = BYTES) -> Executed:
    return execute(found, machine, Walk(found, run), size)


def counted(found: Stores, run: FusedRun, machine: Machine = BYTES) -> int:
    return Count(machine, Walk(found, run)).run_all().peak_bytes


def test_a_map_goes_back_row_by_row_when_one_of_its_readers_has_run() -> None:
    # fronts after step t:  half t,  s and c 2t-1,  p and in 2t.  In step 2, before half has row 1:
    # p runs: in 0..3, p 0..3 = 8;  c runs: in 2..3, p 0..3, c 1..2 = 8;  then c has yet to see p 2.., the sum p 1..
    # s runs: in 2..3, p 1..3, c 1..2, s 1..2 = 9 (10 if p stays as it was until s has run);   weights 3 + 1
    run = fused(passing(), strip=(1, 1), warm=False)
    assert counted(passing(), run) == 13
    done = run_in(passing(), run, 13)
    assert (done.faults, done.most_bytes) == ((), 13)


def test_one_byte_less_is_too_few() -> None:
    run = fused(passing(), strip=(1, 1), warm=False)
    (said,) = run_in(passing(), run, 12).faults
    assert said == "layer s: no room for a piece of s: 11 of 12 bytes are taken, 2 more are needed"


def test_too_small_a_count_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a row of every map less than there is: the execution finds no room for it."""
    pixels = vars(replay_strips.Area)["pixels"].fget
    monkeypatch.setattr(replay_strips.Area, "pixels", property(lambda area: max(0, pixels(area) - 1)))
    (said,) = replay_fusion(passing(), BYTES, (fused(passing(), strip=(1, 1)),)).faults
    assert "no room for a piece" in said


def test_a_row_that_was_given_back_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a row back too early, that of the last reader: it is not read from elsewhere."""
    window = Reads._window
    monkeypatch.setattr(Reads, "_window", lambda self, k, u, v: None if u == 2 else window(self, k, u, v))
    found = residual()
    said = run_in(found, fused(found), 10_000).faults
    assert said == ("layer sum: rows 0 to 1 of in are not all in the memory",)


def test_weights_that_pass_through_take_the_bytes_of_a_filter() -> None:
    # two convolutions: 162 bytes of weights; of b (4 filters of 27 bytes) 8 bytes stay
    run = replace(fused(pair()), weights=(54, 8))
    assert run_in(pair(), run, 10_000, MACHINE).most_bytes == counted(pair(), run, MACHINE) == 96 + 54 + 8 + 27
    (said,) = run_in(pair(), run, 54 + 8 + 26, MACHINE).faults
    assert said == "62 of 88 bytes are taken, 27 more are needed"


def test_a_memory_has_its_bytes_and_no_more() -> None:
    memory = Memory(5)
    strip = Strip(memory, (1, 2, 1), 2)
    at = slice(None), slice(0, 1), slice(0, 1)
    strip.put(at, 7)
    assert (memory.taken, strip.bytes, strip.get(at).tolist()) == (2, 2, [[[7]]])
    strip.put(at, 8)  # type: ignore[arg-type]  # where it lies already
    assert (memory.taken, memory.most) == (2, 2)
    memory.take(3)
    with pytest.raises(Full, match="5 of 5 bytes are taken, 2 more are needed"):
        strip.put((slice(None), slice(1, 2), slice(0, 1)), 9)
    strip.drop(slice(None), strip.places[0, :, :, 0] >= 0)
    assert (memory.taken, memory.most) == (3, 5)
    assert not strip.holds(at)
    assert strip.get(at).tolist() == [[[NONSENSE]]]


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(8))
def test_random_groups_take_what_is_counted(seed: int) -> None:
    """Halos kept or made again along both axes, skips, joins, turns, weights that stay in part: byte by byte."""
    rng = random.Random(f"fusion memory {seed}")
    found, machine, runs = groups(rng)
    for run in rng.sample(runs, min(len(runs), 3)):
        walk, most = Walk(found, run), counted(found, run, machine)
        done = execute(found, machine, walk, most)
        assert (done.faults, done.most_bytes) == ((), most)
        assert execute(found, machine, walk, most - 1).faults != ()


def groups(rng: random.Random) -> tuple[Stores, Machine, list[FusedRun]]:
    """Some runs of all layers of a random network in one group."""
    while True:
        case = TESTER.case(rng)
        network = case.network
        assert isinstance(network, Network)
        found, last = stores(network), len(network.layers) - 1
        if last < 1 or last > 3:
            continue
        ways = Ways(network, found, case.machine, 0, last)
        stay = tuple(rng.choice((0, size, rng.randint(0, size))) for size in ways.weights.sizes)
        if runs := [replace(way.run, weights=stay) for way in islice(ways.every(), 24)]:
            return found, case.machine, runs
