"""Inputs that are broadcast, moved by a nest: the closed form, the walk and the execution against a count of its own.

The judge of this file counts from the definition (docs/nest.md): an input is fetched in every iteration of the loops
outside the Hold of IN down to the innermost that cuts one of its own dimensions. It walks these iterations one by one
and adds up the elements of each tile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import pytest

from hwmodels.nest.price.causes import shares
from hwmodels.nest.price.closed_form import price
from hwmodels.nest.price.limits import compulsory_bytes, tensor_bytes
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.errors import InputError
from instances.machine.machine import Compute, Machine, Transfer
from instances.network.workload import Layer
from tests.effort import tries

Box = dict[str, tuple[int, int]]


def layer_of(*broadcast: str, b: int = 1, g: int = 1, r: int = 1, c: int = 1, **more: object) -> Layer:
    fields = {"b": b, "g": g, "m": 1, "n": 1, "r": r, "c": c, "h": r, "l": c, "inputs": len(broadcast), **more}
    return Layer.model_validate(
        {
            "name": "mix",
            "kind": "eltwise",
            "weights": "none",
            "broadcast": broadcast if any(broadcast) else (),
            **fields,
        }
    )


def machine_of(**more: object) -> Machine:
    fields = {
        "name": "m", "tick_ps": 1, "in_bytes": 1, "w_bytes": 1, "out_bytes": 1, "psum_bytes": 1, "ocm_bytes": 10**6,
        "transfer": Transfer(byte_ticks=1), **more,
    }  # fmt: skip
    return Machine.model_validate(fields)


# ---- the judge -------------------------------------------------------------------------------------------------------


def walked(loops: Sequence[tuple[str, int]], box: Box) -> Iterator[Box]:
    if not loops:
        yield box
        return
    (dim, step), *rest = loops
    lo, hi = box[dim]
    for at in range(lo, hi, step):
        yield from walked(rest, {**box, dim: (at, min(at + step, hi))})


def counted(layer: Layer, nest: Nest) -> tuple[int, int]:
    """Calls and elements of all inputs that are moved."""
    whole = {d: (0, layer.extent(d)) for d in "bgrc"}
    outside: list[tuple[str, int]] = []
    for item in nest.items:
        if isinstance(item, Loop):
            outside.append((item.dim, item.step))
        elif isinstance(item, Hold) and item.operand == "IN":
            break
    calls = elements = 0
    for lacks in layer.broadcast or ("",) * layer.inputs:
        own = [d for d in "bgrc" if d not in lacks]
        cuts = [
            len([*walked(outside[: k + 1], whole)]) > len([*walked(outside[:k], whole)]) for k in range(len(outside))
        ]
        last = max((k + 1 for k, (d, _) in enumerate(outside) if d in own and cuts[k]), default=0)
        for box in walked(outside[:last], whole):
            # what lies at the Hold: loops inside that cut own dimensions there are none that cut something
            calls += 1
            elements += prod(box[d][1] - box[d][0] for d in own)
    return calls, elements


# ---- by hand ---------------------------------------------------------------------------------------------------------

GATE = layer_of("", "rc", g=4, r=6, c=5)
_HOLDS = (Hold("IN"), Hold("OUT"))
CASES: list[tuple[str, Layer, list[Item], int]] = [
    # a gate of 4 numbers comes once where the channels are outside: 120 + 4
    ("gate, channels outside", GATE, [Loop("g", 1), Loop("r", 2), *_HOLDS], 124),
    # again for each of 3 strips where they are inside: 120 + 3 * 4
    ("gate, channels inside", GATE, [Loop("r", 2), Loop("g", 1), *_HOLDS], 132),
    # and once where no loop cuts channels, whatever cuts rows
    ("gate, whole", GATE, [Loop("r", 2), *_HOLDS], 124),
    # a mask of 30 over 4 channels: again for each of 2 pieces of channels outside its rows
    ("mask", layer_of("", "g", g=4, r=6, c=5), [Loop("g", 2), Loop("r", 3), *_HOLDS], 120 + 2 * 30),
    ("mask, turned", layer_of("", "g", g=4, r=6, c=5), [Loop("r", 3), Loop("g", 2), *_HOLDS], 150),
    # rows by columns, no input of the result's shape: 6 + 5, and the columns again for each row
    ("outer", layer_of("c", "r", r=6, c=5), [Loop("r", 1), Hold("IN"), Loop("c", 1), Hold("OUT")], 11),
    ("outer, cut both", layer_of("c", "r", r=6, c=5), [Loop("r", 1), Loop("c", 1), *_HOLDS], 36),
    # a row of positions for 3 sequences of 4 tokens and 2 features
    ("positions", layer_of("", "b", b=3, g=2, r=4), [Loop("b", 1), *_HOLDS], 24 + 8),
    ("positions again", layer_of("", "b", b=3, g=2, r=4), [Loop("b", 1), Loop("r", 2), *_HOLDS], 48),
    # mean and variance of every token: (x - mean) * scale, three operands
    ("norm", layer_of("", "g", "r", g=8, r=3), [Loop("r", 1), Loop("g", 4), *_HOLDS], 24 + 3 + 24),
    ("norm, turned", layer_of("", "g", "r", g=8, r=3), [Loop("g", 4), Loop("r", 1), *_HOLDS], 24 + 6 + 8),
    # where(condition of a token, map, one number)
    ("where", layer_of("g", "", "bgrc", b=2, g=2, r=2, c=2), [Loop("b", 1), *_HOLDS], 8 + 16 + 1),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "items", "moved"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_inputs_by_hand(layer: Layer, items: list[Item], moved: int) -> None:
    nest, machine = Nest(tuple(items)), machine_of()
    outcome = price(layer, machine, nest)
    assert outcome.by_operand["IN"].bytes == moved == counted(layer, nest)[1]
    walk = replay(layer, machine, nest, execute=True)
    assert (walk.faults, walk.executed, walk.outcome) == ((), True, outcome)
    assert sum(part.bytes for part in shares(layer, machine, nest)) == outcome.bytes


def test_what_must_move_is_what_the_inputs_have() -> None:
    # 3 batches of 4 channels of 6x5: a gate by channel, a mask, a number; 360 each for map and result
    layer = layer_of("", "brc", "bg", "bgrc", b=3, g=4, r=6, c=5)
    assert tensor_bytes(layer, machine_of()) == {"IN": 360 + 4 + 30 + 1, "OUT": 360}
    assert compulsory_bytes(layer, machine_of(in_bytes=2)) == 2 * 395 + 360
    on_chip = layer.model_copy(update={"resident_in": (2, 0, 1, 1), "resident_out": 1})
    # 4 of 6 rows of the map, the gate, 5 of 6 rows of the mask (it is broadcast along b and g), no number; 5 rows
    assert tensor_bytes(on_chip, machine_of()) == {"IN": 240 + 4 + 25 + 0, "OUT": 300}


def test_tiles_take_what_they_have() -> None:
    # tiles of 2 rows of one channel: 10 of the map, 1 of the gate, 10 of the result; double buffers take twice that
    nest = Nest((Loop("g", 1), Loop("r", 2), *_HOLDS))
    assert price(GATE, machine_of(), nest).occupancy_bytes == {"ocm": 21}
    assert price(GATE, machine_of(buffering="double"), nest).occupancy_bytes == {"ocm": 42}


def test_runs_are_those_of_the_tensor_that_is_stored() -> None:
    # a gate of 4 in tiles of 2: one run each, though a map has 12; rows of 2 bytes begin a burst of 4
    machine = machine_of(transfer=Transfer(byte_ticks=1, segment_ticks=1, burst_ticks=1, burst_bytes=4))
    gate = layer_of("", "rc", g=4, r=6, c=5)
    nest = Nest((Loop("g", 2), Loop("r", 2), *_HOLDS))
    counts = price(gate, machine, nest).by_operand["IN"]
    # map: 2 * 3 tiles of 2 channels, 2 runs of 10 bytes, 3 bursts each; gate: 2 tiles of 2 bytes
    assert (counts.calls, counts.segments, counts.bursts) == (6 + 2, 12 + 2, 36 + 2)
    # a row of 5 columns in tiles of 3 and 2, each for 2 tiles of channels: 4 runs. Of the map 4 tiles of 2 channels and
    # 6 rows; with the channels innermost 6 * 3 and 6 * 2 pixels, twice
    columns, nest = layer_of("", "gr", g=4, r=6, c=5), Nest((Loop("g", 2), Loop("c", 3), *_HOLDS))
    for layout, runs in (("CHW", 4 * 12), ("HWC", 2 * 30)):
        counts = price(columns, machine.model_copy(update={"in_layout": layout}), nest).by_operand["IN"]
        assert counts.segments == runs + 4


def test_lines_are_refused() -> None:
    with pytest.raises(InputError, match="inputs of mix are broadcast; they are not held in lines"):
        price(
            GATE,
            machine_of(line=True, sliding=True),
            Nest((Loop("r", 2), Loop("c", 2), Hold("IN", line=True), Hold("OUT"))),
        )


# ---- drawn -----------------------------------------------------------------------------------------------------------


def drawn(rng: random.Random) -> tuple[Layer, Nest]:
    extents = {d: rng.randint(1, 4) for d in "bgrc"}
    real = [d for d in "bgrc" if extents[d] > 1]
    lacks = [{d for d in real if rng.random() < 0.5} for _ in range(rng.randint(1, 3))]
    for d in real:  # some input has the dimension
        if all(d in one for one in lacks):
            rng.choice(lacks).discard(d)
    names = ["".join(d for d in "bgrc" if d in one) for one in lacks]
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        rows = tuple(rng.randint(0, 1 if "r" in one else extents["r"]) for one in names)
        more = {"resident_in": rows, "resident_out": rng.randint(0, extents["r"])}
    layer, size = layer_of(*names, **extents, **more), dict(extents)
    items: list[Item] = []
    for _ in range(rng.randint(0, 6)):
        d = rng.choice("bgrc")
        if size[d] > 1:
            size[d] = rng.randint(1, size[d])
            items.append(Loop(d, size[d]))
    for hold in rng.sample((Hold("IN"), Hold("OUT")), 2):
        items.insert(rng.randint(0, len(items)), hold)
    return layer, Nest(tuple(items))


def settings(rng: random.Random) -> dict[str, object]:
    burst, overlap = rng.choice([0, 4]), rng.choice(["serial", "double_buffered", "transfer_only"])
    return {
        "sliding": rng.random() < 0.5, "snake": rng.random() < 0.4, "overlap": overlap,
        "buffering": "double" if overlap == "double_buffered" else rng.choice(["single", "double"]),
        "in_layout": rng.choice(["CHW", "HWC"]), "out_layout": rng.choice(["CHW", "HWC"]),
        "in_bytes": rng.choice([1, 2]),
        "compute": Compute(model="tile", macs_per_cycle=3, cycle_ticks=2),
        "transfer": Transfer(
            call_ticks=7, segment_ticks=3, byte_ticks=1, burst_bytes=burst, burst_ticks=5 if burst else 0,
            burst_count=rng.choice(["aligned", "address"]) if burst else "aligned",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_price_is_what_the_walk_and_the_execution_see(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(tries(6, 25)):
        layer, nest = drawn(rng)
        machine = machine_of(**settings(rng))
        outcome = price(layer, machine, nest)
        walk = replay(layer, machine, nest, execute=True)
        assert (walk.faults, walk.executed, walk.outcome) == ((), True, outcome), (layer, nest, machine)
        if not (machine.snake or layer.resident_in):
            calls, elements = counted(layer, nest)
            seen = outcome.by_operand["IN"]
            assert (seen.calls, seen.bytes) == (calls, elements * machine.in_bytes), (layer, nest)
        assert outcome.bytes >= compulsory_bytes(layer, machine)
        assert sum(part.bytes for part in shares(layer, machine, nest)) == outcome.bytes
