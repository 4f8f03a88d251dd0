"""C whose transfers run ahead, of layers by themselves: nests that cut rows, filters and input channels.

Every program compares results with naive loop nests, each transfer with the segments and bytes of the plan, and what
layers move with their nests. `Whole` refuses a step with more bytes than the plan counts.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from formulations.fusion.nest_steps import NestSteps
from formulations.fusion.part import FusionPart
from formulations.fusion.schedule import Runs
from formulations.fusion.work import work_of
from formulations.pins import Pins
from hwmodels.fusion.replay.referee import FusedReplay
from hwmodels.schedule import Hold, Item, LayerRun, Loop, Nest, NetworkRun
from instances.errors import InputError
from instances.machine.machine import Machine, Transfer
from instances.network.network import Network
from instances.network.operators import Conv, Input, Pool
from solver.uses.emit.ahead.program import AheadPlanned
from solver.uses.emit.ahead.whole import Whole
from tests.effort import tries
from tests.emitted import built_both_ways, needs_gcc

HOLD = {operand: Hold(operand) for operand in ("IN", "W", "OUT")}
#: All operands whole, and loops inside that move nothing.
ALL = tuple(HOLD.values())
#: Sums of all filters stay, input channels come one block after the other, of each the weights of some filters.
SUMS = Hold("OUT"), Loop("n", 2), Hold("IN"), Loop("m", 3), Hold("W")
#: Sums of some filters stay; the input comes again for each.
AGAIN = Loop("m", 3), Hold("OUT"), Loop("n", 2), Hold("IN"), Hold("W")


@dataclass(frozen=True)
class Alone:
    """Layers by themselves, or groups, and a queue of their transfers."""

    network: Network
    machine: Machine
    runs: Runs
    part: FusionPart

    @classmethod
    def of(cls, network: Network, machine: Machine, runs: Any, more: float = 1.0) -> Alone:
        """In a memory that has so many times what steps and groups need; raises InputError for nests that are none."""
        part = FusionPart(network, machine, Pins(()))
        walked = part.walked(runs)
        assert walked.faults == ()
        need = max(step.bytes for each in part.laid(runs).parts for step in each.steps)
        need = max(need, *(one.peak_bytes for one in walked.runs if isinstance(one, FusedReplay)), 0)
        machine = machine.model_copy(update={"ocm_bytes": round(need * more)})
        part = FusionPart(network, machine, Pins(()))
        return cls(network, machine, replace(runs, queue=part.laid(runs).queue), part)

    @property
    def planned(self) -> AheadPlanned:
        """What is written; raises InputError where it is not."""
        return AheadPlanned(
            self.network, self.machine, self.runs.runs, None, carried=self.part.carried(self.runs)
        )  # fmt: skip

    @property
    def whole(self) -> Whole:
        """What lies on chip."""
        return self.planned.whole

    @property
    def files(self) -> Mapping[str, str | bytes]:
        """The program."""
        return self.planned.files()


def machine(**fields: Any) -> Machine:
    """Without banks; each term of a transfer has a price, so that segments are compared."""
    price = Transfer(byte_ticks=1, segment_ticks=1, call_ticks=2)
    usual = {
        "in_bytes": 1, "out_bytes": 1, "w_bytes": 1, "psum_bytes": 4, "bias_bytes": 4, "in_layout": "HWC",
        "out_layout": "HWC", "w_layout": "OHWI", "ocm_banks": 0, "ocm_bytes": 10**6, "buffering": "single",
    }  # fmt: skip
    return Machine.model_validate(
        {"name": "toy", "tick_ps": 1, "problem": "joint", "transfer": price, **usual, **fields}
    )


def two_layers(kernel: int = 3) -> Network:
    """Of 6 channels on 4 x 5 pixels, each with 6 filters."""
    shape, pad = (1, 6, 4, 5), (kernel // 2,) * 4
    layers = [
        Conv(name=name, inputs=(source,), shape=shape, filters=6, kernel=(kernel, kernel), pad=pad, bias=True)
        for name, source in (("a", "in"), ("b", "a"))
    ]
    return Network(name="two", operators=(Input(name="in", shape=shape), *layers))


def runs_of(*nests: tuple[Item, ...]) -> NetworkRun[LayerRun]:
    return NetworkRun(tuple(LayerRun(Nest(items), {}, 0, ()) for items in nests))


@pytest.mark.parametrize(("nest", "turns"), [(SUMS, 1), (AGAIN, 2)])
def test_sums_on_chip_by_hand(nest: tuple[Item, ...], turns: int) -> None:
    """Three blocks of 2 input channels and two of 3 filters: 6 steps of a layer.

    `SUMS` goes through the filters for each block of channels: the first two steps open, the last two close. `AGAIN`
    has all blocks of channels for the first filters, then for the others: steps 1 and 4 open, 3 and 6 close, and of
    each block of the input there are two turns. Sums of 20 pixels have 4 bytes, all 6 filters' 480; 240 in `AGAIN`.
    """
    one = Alone.of(two_layers(), machine(), runs_of(nest, ALL))
    source = one.part.carried(one.runs)
    assert source is not None
    assert isinstance(source.sources[0], NestSteps)
    steps = [(w.first, w.last, w.low, w.high, w.opens, w.closes) for w in work_of(source.sources[0])]
    if nest == SUMS:
        assert steps == [(f, f + 3, n, n + 2, n == 0, n == 4) for n in (0, 2, 4) for f in (0, 3)]
    else:
        assert steps == [(f, f + 3, n, n + 2, n == 0, n == 4) for f in (0, 3) for n in (0, 2, 4)]
    whole = one.whole
    (given,) = (tensor for _, tensor in whole.given[0, 0])
    assert (given.turns, given.cuts) == (turns, (0, 2, 4, 6))
    sums = whole.sums[0]
    assert whole.made[0].owner is sums
    assert int(sums.sizes[sums.last >= 0].sum()) == 480
    both = [(int(sums.first[0, k]), int(sums.last[0, k])) for k in range(len(sums.cuts) - 1)]
    assert both == ([(1, 6)] if nest == SUMS else [(1, 3), (4, 6)])


@needs_gcc
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("weights", ["OIHW", "OHWI"])
def test_sums_become_results_in_their_place(layout: str, weights: str, tmp_path: Path) -> None:
    """Results of a byte where sums of 4 lay; `b` keeps those of `AGAIN`; rows in two pieces, so that windows slide."""
    fields = {"in_layout": layout, "out_layout": layout, "w_layout": weights}
    again = (Loop("r", 2), *AGAIN) if layout == "CHW" else AGAIN
    one = Alone.of(two_layers(), machine(**fields), runs_of(SUMS, again))
    for said in built_both_ways(one.files, tmp_path).values():
        assert "results and transfers as planned" in said


@needs_gcc
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("fn", ["max", "avg"])
def test_windows_are_cut_where_there_are_no_weights(fn: str, layout: str, tmp_path: Path) -> None:
    """A pool of four rows, two at a time; the second two of the first result's are above the first two of the second.

    Rows 0, 1 of the window of row 0 lie in the padding and in row 0 of the map, its others in rows 1 and 2.
    """
    network = Network(name="pooled", operators=(
        Input(name="in", shape=(2, 3, 6, 5)),
        Pool(name="a", inputs=("in",), shape=(2, 3, 2, 4), fn=fn, kernel=(4, 2), stride=(2, 1), pad=(1, 0, 0, 0)),
    ))  # fmt: skip
    nest = Loop("r", 1), HOLD["OUT"], Loop("i", 2), HOLD["IN"]
    one = Alone.of(network, machine(in_layout=layout, out_layout=layout), runs_of(nest))
    source = one.part.carried(one.runs)
    assert source is not None
    steps = [(w.begin, w.top, w.bottom, w.opens, w.closes) for w in work_of(source.sources[0])]
    assert steps == [(r, i, i + 2, i == 0, i == 2) for r in (0, 1) for i in (0, 2)]
    for said in built_both_ways(one.files, tmp_path).values():
        assert "results and transfers as planned" in said


def test_what_leaves_the_chip_or_cuts_otherwise_is_not_written() -> None:
    """Sums that are stored and loaded again; columns; parts of a window."""
    for nest, said in (
        ((Loop("n", 2), Loop("m", 3), *ALL), "a: partial sums leave the chip"),
        ((Loop("c", 2), *ALL), "a: its nest cuts c: more than rows, filters and input channels"),
        ((Loop("j", 1), *ALL), "a: its nest cuts j: more than rows, filters and input channels"),
    ):
        with pytest.raises(InputError, match=f"^{said}$"):
            _ = Alone.of(two_layers(), machine(), runs_of(nest, ALL)).files


def random_case(seed: int) -> Alone:
    """Up to three layers with any loops over rows, filters and channels, and maps that stay.

    Raises ValueError for windows that do not fit, and for nests that are none.
    """
    rng = random.Random(seed)
    network, size, layout = random_layers(rng), rng.choice((1, 2)), rng.choice(("CHW", "HWC"))
    toy = machine(
        in_bytes=size, out_bytes=size, w_bytes=rng.choice((1, 2)), psum_bytes=size * rng.choice((1, 2, 4)),
        bias_bytes=rng.choice((0, 4)), in_layout=layout, out_layout=layout, w_layout=rng.choice(("OIHW", "OHWI")),
        sliding=rng.random() < 0.7,
    )  # fmt: skip
    net = FusionPart(network, toy, Pins(())).net
    stay = [t + 1 < len(net.layers) and rng.random() < 0.4 for t in range(len(net.layers))]
    made = list[LayerRun]()
    for t, layer in enumerate(net.layers):
        there = [u for u in (t - 1, t) if u >= 0 and stay[u]]
        residents = {net.writes[u]: (net.stores[net.writes[u]].rows, ()) for u in there}
        unwritten = net.stores[net.writes[t]].rows if stay[t] and rng.random() < 0.7 else 0
        made.append(LayerRun(random_nest(rng, {d: layer.extent(d) for d in "rmgn"}), residents, unwritten, ()))
    return Alone.of(network, toy, NetworkRun(tuple(made)), rng.choice((1, 1.2, 1.6, 3)))


def random_layers(rng: random.Random) -> Network:
    """Convolutions, some of them of channels by themselves; raises ValueError for windows that do not fit."""
    shape = rng.choice((1, 1, 2)), rng.randint(2, 6), rng.randint(3, 8), rng.randint(3, 6)
    made: list[Input | Conv] = [Input(name="in", shape=shape)]
    for k in range(rng.randint(1, 3)):
        before, kernel = made[-1], rng.choice(((1, 1), (3, 3), (3, 3), (2, 1)))
        groups = before.shape[1] if rng.random() < 0.2 else 1
        fields = {
            "name": f"n{k}", "inputs": (before.name,), "kernel": kernel, "groups": groups, "bias": rng.random() < 0.6,
            "pad": (1, 1, 1, 1) if kernel == (3, 3) else (0, 0, 0, 0), "stride": rng.choice(((1, 1), (1, 1), (2, 2))),
            "filters": groups if groups > 1 else rng.randint(1, 6),
        }  # fmt: skip
        shape = Conv.model_validate({**fields, "shape": (1,)}).infer([before.shape])
        made.append(Conv.model_validate({**fields, "shape": shape}))
    return Network(name="random", operators=tuple(made))


def random_nest(rng: random.Random, size: dict[str, int]) -> Nest:
    """Loops and holds in any order."""
    items = list[Item]()
    for d in [*rng.sample("rmgn", 4), *rng.sample("rmgn", 2)]:
        if size[d] > 1 and rng.random() < 0.6:
            size[d] = rng.randint(1, size[d] - 1)
            items.append(Loop(d, size[d]))
    if rng.random() < 0.3:
        items.insert(0, HOLD["OUT"])
    for operand in ("OUT", "IN", "W"):
        if HOLD[operand] not in items:
            items.insert(rng.randint(0, len(items)), HOLD[operand])
    return Nest(tuple(items))


@needs_gcc
@pytest.mark.parametrize("seed", [17, 23, 46])
def test_nests_with_sums_and_turns(seed: int, tmp_path: Path) -> None:
    """Two layers of two images; three turns; sums beside a result that stays."""
    for said in built_both_ways(random_case(seed).files, tmp_path).values():
        assert "results and transfers as planned" in said


@needs_gcc
@pytest.mark.slow
def test_random_nests(tmp_path: Path) -> None:
    """Most are written; the others keep partial sums in memory, hold nothing, or have windows that do not fit."""
    written = 0
    for seed in range(60, 60 + tries(40, 1000)):
        try:
            one = random_case(seed)
        except ValueError:
            continue
        try:
            files = one.files
        except InputError as error:
            assert "partial sums leave the chip" in str(error)  # noqa: PT017
            continue
        for said in built_both_ways(files, tmp_path / str(seed)).values():
            assert "results and transfers as planned" in said, seed
        written += 1
    assert written > 20
