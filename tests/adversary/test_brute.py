"""The adversaries of all problems but nests: no disagreement, cases that repeat, faults put in that must be found."""

from __future__ import annotations

import functools
import gc
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import formulations.applications.space
import formulations.banks.network
import formulations.banks.stage
import formulations.compulsory
import formulations.fusion.memory
import formulations.fusion.nests
import formulations.hybrid.problem
import formulations.mapping.engines
import formulations.mapping.latency
import formulations.mapping.search
import formulations.mesh.finish
import formulations.mesh.price
import formulations.mesh.problem
import formulations.mesh.space
import formulations.partial_engine.orders
import formulations.partial_engine.space
import hwmodels.partial_engine.price
import instances.network.feature_maps
import instances.network.stores
from formulations.fusion.strips import BEFORE, DONE, MADE, states_of
from hwmodels.nest.replay.referee import replay
from hwmodels.schedule import Hold, Item, Loop, Nest
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, Layer
from tests.adversary import base, fusion, hybrid
from tests.adversary.claims import Claim, contradictions
from tests.adversary.moves import form_of
from tests.adversary.nests import fronts, nests_of
from tests.adversary.pricing import Pricer
from tests.adversary.registry import TESTERS
from tests.effort import THOROUGH, thinned, tries

#: Cases of each, ten times as many in a thorough run.
FEW = {
    "banks": 6, "joint": 2, "fusion": 2, "hybrid": 2, "partial_engine": 10, "mapping": 15, "applications": 15,
    "mesh": 5, "levels": 8, "placement": 2, "selection": 10,
}  # fmt: skip


def hunt(tester: base.Tester, seed: int, number: int, most: int = 1) -> tuple[list[base.Disagreement], int]:
    """What is found until `most` cases are at fault, and how many were tried."""
    found: list[base.Disagreement] = []
    finds = 0
    for k in range(number):
        rng = random.Random(f"{tester.name} {seed} {k}")
        more = tester.run(tester.case(rng), rng)
        found, finds = [*found, *more], finds + bool(more)
        if finds == most:
            return found, k + 1
    return found, number


# ---- no disagreement -------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("problem", FEW)
def test_nobody_disagrees(problem: str) -> None:
    found, _ = hunt(TESTERS[problem], 1, FEW[problem] * tries(1, 10))
    assert [one.what for one in found] == []


@pytest.mark.parametrize("problem", FEW)
def test_cases_repeat_as_json_and_shrink(problem: str) -> None:
    tester = TESTERS[problem]
    assert tester.name == problem
    for k in range(tries(6, 20)):
        case = tester.case(random.Random(k))
        assert tester.case(random.Random(k)) == case
        assert tester.from_json(json.loads(json.dumps(tester.to_json(case)))) == case
        for _ in range(200):  # shrinking ends
            simpler = next(tester.smaller(case), None)
            if simpler is None:
                break
            assert simpler != case
            case = simpler
        else:
            pytest.fail("it goes on shrinking")


# ---- what contradicts what -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "least", "complete", "said"),
    [
        ([Claim("a", "OPTIMAL", 5, 5)], 5, True, []),
        ([Claim("a", "OPTIMAL", 5, 5)], 4, False, ["a says OPTIMAL 5 with bound 5, brute force finds 4"] * 2),
        ([Claim("a", "OPTIMAL", 5, 5)], 6, False, []),
        ([Claim("a", "OPTIMAL", 5, 5)], 6, True, ["the least of all schedules is 6"]),
        ([Claim("a", "OPTIMAL", 5, 5)], None, True, ["the least of all schedules is None"]),
        ([Claim("a", "OPTIMAL", 5, 4)], 5, True, ["not the same"]),
        ([Claim("a", "INFEASIBLE")], 9, False, ["a says INFEASIBLE None with bound None, brute force finds 9"]),
        ([Claim("a", "INFEASIBLE")], None, True, []),
        ([Claim("a", "INFEASIBLE"), Claim("b", "FEASIBLE", 7)], None, False, ["a says INFEASIBLE", ]),
        ([Claim("a", "FEASIBLE", 9, 6)], 5, False, ["a says FEASIBLE 9 with bound 6, brute force finds 5"]),
        ([Claim("a", "NO_SOLUTION_FOUND", None, 6)], 5, False, ["with bound 6, brute force finds 5"]),
        ([Claim("a", "OPTIMAL", 5, 5), Claim("b", "OPTIMAL", 6, 6)], None, False, ["b says OPTIMAL 6", "b says"]),
        ([Claim("a", "CRASHED", faults=("KeyError: 'x'",))], 3, True, ["a: KeyError: 'x'"]),
    ],
)  # fmt: skip
def test_contradictions(claims: list[Claim], least: int | None, complete: bool, said: list[str]) -> None:
    found = list(contradictions(claims, least, complete=complete))
    assert len(found) == len(said), found
    assert all(text in line for text, line in zip(said, found, strict=True)), found


# ---- the walk over nests ---------------------------------------------------------------------------------------------


def some_layer(rng: random.Random) -> Layer:
    high, wide = rng.randint(1, 3), rng.randint(1, 2)
    fields: dict[str, Any] = {"name": "x", "r": rng.randint(1, 4), "c": rng.randint(1, 3), "kh": high, "kw": wide}
    fields |= {"stride_h": rng.choice((1, 1, 2)), "pad_top": rng.randint(0, high - 1)}
    if rng.randrange(3) == 0:
        fields |= {"kind": "pool", "weights": "none", "g": rng.randint(1, 2), "m": 1, "n": 1}
    else:
        fields |= {"m": rng.randint(1, 3), "n": rng.randint(1, 3)}
    fields["h"] = max(1, (fields["r"] - 1) * fields["stride_h"] + high - fields["pad_top"] + rng.randint(0, 1))
    fields["l"] = fields["c"] + wide - 1
    layer = Layer.model_validate(fields)
    kept = {"resident_in": (rng.choice((0, rng.randint(0, layer.h))),), "resident_out": rng.randint(0, layer.r)}
    return layer.model_copy(update=kept)


def some_nest(layer: Layer, rng: random.Random) -> Nest:
    ends, items = {d: {0, layer.extent(d)} for d in DIMS}, list[Item]()
    for _ in range(rng.randint(0, 5)):
        d = rng.choice(DIMS)
        largest = max(b - a for a, b in pairwise(sorted(ends[d])))
        anew = sorted(set(range(1, layer.extent(d))) - ends[d])
        cuts = tuple(sorted(rng.sample(anew, rng.randint(1, len(anew))))) if anew and rng.randrange(2) else ()
        loop = Loop(d, rng.randint(1, largest), cuts)
        for low, high in pairwise(sorted(ends[d])):
            ends[d].update(first for first, _ in loop.pieces(low, high, 0))
        items.append(replace(loop, step=max(b - a for a, b in pairwise(sorted(ends[d])))) if cuts else loop)
    for operand in layer.operands:
        items.insert(rng.randint(0, len(items)), Hold(operand))
    return Nest(tuple(items))


def test_a_priced_nest_is_what_replay_finds() -> None:
    rng = random.Random(5)
    for _ in range(60):
        layer = some_layer(rng)
        machine = Machine(
            name="m", tick_ps=1, in_bytes=1, w_bytes=2, out_bytes=rng.choice((1, 2)), psum_bytes=rng.choice((1, 2, 4)),
            ocm_bytes=10**6, sliding=rng.randrange(2) == 0, buffering=rng.choice(("single", "double")),
            transfer=Transfer(byte_ticks=1),
        )  # fmt: skip
        nest = some_nest(layer, rng)
        seen = replay(layer, machine, nest).outcome
        priced = Pricer(layer, machine).price((), form_of(layer, nest).items)
        assert (priced.room, priced.bytes) == (seen.occupancy_bytes["ocm"], seen.bytes), (layer, nest)


def test_all_nests_by_hand() -> None:
    """Three rows of one pixel: no loop, one behind row 1, 2 or both, or one behind each. Two channels are cut or not.

    Loops of r alone: 1 + 3 + 2; with n beside none 1, beside one 2 each (3), beside two 3 each (2): 13 more. 1x1
    kernel, one filter, two channels: everything once, 6 bytes of IN, 2 of W, 3 of OUT, needs W whole (2), a pixel of
    both (2), and one result. In 3 bytes n is cut: partial sums of 2 bytes; a pixel of a channel (1) and its weight (1)
    make 4.
    """
    layer = Layer.conv("x", channels=2, filters=1, size=(3, 1))
    assert len(list(nests_of(layer))) == 6 + 13
    machine = Machine(name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=2, ocm_bytes=9,
                      transfer=Transfer(byte_ticks=1))  # fmt: skip
    found = fronts(layer, machine)
    # in 4 bytes every weight comes for each of three rows: 6 + 6 + 3
    assert [(one.room, one.bytes) for one in found] == [(4, 15), (5, 11)]


@pytest.mark.parametrize(
    ("layer", "room", "moved", "loops"),
    [
        # results in pieces of 2, 1 and 2 rows: with the padding every tile of IN has 3 rows
        (
            Layer.conv("pad", channels=1, filters=1, size=(5, 1), kernel=(3, 1), pad=(1, 0, 1, 0)),
            7, 17, "W r(2 3) IN r(1 4) OUT",
        ),
        # two of six rows are resident: results in pieces of 3, 1 and 1 rows need 2 of the others each
        (
            Layer.conv("resident", channels=1, filters=2, size=(6, 1), kernel=(2, 1)).model_copy(
                update={"resident_in": (2,)}
            ),
            5, 26, "m(1) W r(3 4) IN r(1 2) OUT",
        ),
    ],
)  # fmt: skip
def test_the_walk_has_pieces_of_free_sizes(layer: Layer, room: int, moved: int, loops: str) -> None:
    """Where tiles are clipped, pieces of different sizes may be better than even steps."""
    machine = Machine(name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=room,
                      transfer=Transfer(byte_ticks=1))  # fmt: skip
    best = next(one for one in fronts(layer, machine) if one.room == room)
    words = [
        f"{one.dim}({' '.join(map(str, one.cuts))})" if isinstance(one, Loop) else one.operand  # type: ignore[union-attr]
        for one in best.nest.items
    ]
    assert (best.bytes, " ".join(words)) == (moved, loops)
    seen = replay(layer, machine, best.nest)
    assert (seen.faults, seen.outcome.bytes) == ((), moved)


# ---- faults put in ---------------------------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def _changed(module: Any, name: str, change: Callable[[Any], Any]) -> Patch:
    """A function whose result is changed."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **kwargs: change(real(*args, **kwargs)))

    return patch


def _no_layouts_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitches may be even multiples of their power of two: lanes meet in banks."""
    monkeypatch.setattr(formulations.mesh.finish, "_odd_multiple", lambda least, power: -(-least >> power) << power)


def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (formulations.mesh.problem, formulations.mesh.space):
        patch = _changed(module, "ways", lambda found: [one for one in found if one[1] == "none"])
        patch(monkeypatch)


def _never(stays: Callable[[Any, Any], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    """Some maps or weights lie in DRAM whatever is best."""
    real = formulations.fusion.nests.Nests._residences

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            formulations.fusion.nests.Nests,
            "_residences",
            lambda self: [r for r in real(self) if stays(self.found, r)],
        )

    return patch


def _gate(found: Any, residence: Any) -> bool:
    """Whether a layer reads a map as an operand that is broadcast."""
    read = [zip(given, layer.patterns, strict=True) for given, layer in zip(found.reads, found.layers, strict=True)]
    return any(store == residence.store and lacks for pairs in read for store, lacks in pairs)


def _weights_of_each_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must move counts weights for every layer that reads them."""
    real = formulations.compulsory.weight_bytes
    monkeypatch.setattr(
        formulations.compulsory, "weight_bytes",
        lambda found, machine: real(replace(found, weights_of=tuple(range(len(found.layers)))), machine),
    )  # fmt: skip


def _padding_must_move(monkeypatch: pytest.MonkeyPatch) -> None:
    def elements(found: Any, reading: Any, mask: Any) -> int:
        return int(mask.sum()) * int(found.layers[reading.layer].input_elements(reading.operand) // mask.size)

    monkeypatch.setattr(formulations.compulsory, "_elements", elements)


def _inner_results_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is read inside, and stays, is not written."""
    real = formulations.fusion.nests.Nests._residences

    def made(self: Any) -> list[Any]:
        return [
            replace(r, write=tuple(0 if level else all_ for level, all_ in enumerate(r.write)))
            if self.found.stores[r.store].results else r
            for r in real(self)
        ]  # fmt: skip

    monkeypatch.setattr(formulations.fusion.nests.Nests, "_residences", made)


def _inner_results_are_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that somebody reads holds no result, for tables, referee and brute force alike."""
    real = instances.network.stores._Reader._store

    def made(*args: Any) -> Any:
        store = real(*args)
        return replace(store, results=0) if store.readers else store

    monkeypatch.setattr(instances.network.stores._Reader, "_store", made)


def _inner_maps_do_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of maps in banks."""
    monkeypatch.setattr(instances.network.feature_maps.Stages, "lasting", lambda self, name: not self.users[name])


def _skips_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that several layers read stay until the last of them has run."""

    def alone(self: Any) -> Any:
        made = np.zeros((len(self.group.layers), len(self.group.streams), states_of(self.group)))
        for k, stream in enumerate(self.group.streams):
            for t in self.group.layers:
                done = len(stream.readers) if t > max(stream.readers, default=t) else 0
                state = BEFORE if t < stream.maker else MADE if t == stream.maker else DONE + done
                made[t - self.group.first, k, state] = stream.pixel
        return made

    monkeypatch.setattr(formulations.fusion.memory.Memory, "_alone", property(alone))


def _places_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    real = formulations.partial_engine.space._Sizes.__init__

    def made(self: Any, *args: Any) -> None:
        real(self, *args)
        self.part_place = max(1, self.part_place - 1)

    monkeypatch.setattr(formulations.partial_engine.space._Sizes, "__init__", made)


def _blocks_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    real = formulations.applications.space._Paths.__init__

    def made(self: Any, several: Any, schedule: Any) -> None:
        real(self, several, schedule)
        self.blocks = [[0] * len(row) for row in self.blocks]

    monkeypatch.setattr(formulations.applications.space._Paths, "__init__", made)


def _last_results_go(monkeypatch: pytest.MonkeyPatch) -> None:
    real = formulations.banks.network.Walk._goals

    def goals(self: Any, *args: Any, **kwargs: Any) -> Any:
        return [goal for goal in real(self, *args, **kwargs) if not goal.mirrored]

    monkeypatch.setattr(formulations.banks.network.Walk, "_goals", goals)


def _rest_too_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of what is left in a stage that counts a step too many."""
    real = formulations.banks.stage.Rest.__call__

    def rest(self: Any, state: Any) -> Any:
        least = real(self, state)
        return None if least is None or self.task.stage.tiles(state) > 1 else least

    monkeypatch.setattr(formulations.banks.stage.Rest, "__call__", rest)


FAULTS: dict[str, tuple[str, Patch]] = {
    "mapping: copies cost nothing": (
        "mapping", _changed(formulations.mapping.search, "handed_table", lambda table: 0 * table)
    ),
    "mapping: a bound of latency one tick too high": (
        "mapping", _changed(formulations.mapping.engines, "latencies", lambda pair: (pair[0] + 1, pair[1]))
    ),
    "mapping: assignments that are never tried": (
        "mapping", _changed(formulations.mapping.engines, "everything", lambda blocks: [
            (at[:-1], periods[:-1], energies[:-1]) if len(at) > 1 else (at, periods, energies)
            for at, periods, energies in blocks
        ])
    ),
    "applications: nobody waits for lower priorities": ("applications", _blocks_forgotten),
    "applications: schedules that are never tried": (
        "applications", _changed(formulations.applications.space, "orders", lambda found: list(found)[:1])
    ),
    "partial_engine: a place for partial maps a byte too small": ("partial_engine", _places_too_small),
    "partial_engine: strips of one height only": (
        "partial_engine", _changed(formulations.partial_engine.space, "_heights", lambda found: list(found)[:1])
    ),
    "partial_engine: no padding above, a halo too many": (
        "partial_engine", _changed(hwmodels.partial_engine.price, "_touched", lambda rows: rows + 1)
    ),
    "mesh: layouts with conflicts": ("mesh", _no_layouts_checked),
    "mesh: nothing stays": ("mesh", _nothing_stays),
    "mesh: the halo is forgotten": (
        "mesh", _changed(formulations.mesh.price, "extent", lambda size: size - (size > 2))
    ),
    "banks: results that are read inside are not written": ("banks", _inner_maps_do_not_last),
    "hybrid: results that are read inside are not written": ("hybrid", _inner_maps_do_not_last),
    "hybrid: a byte too many must move": (
        "hybrid", _changed(formulations.hybrid.problem, "least_of", lambda least: least._replace(bytes=least.bytes + 1))
    ),
    "fusion: results that are read inside are not written": ("fusion", _inner_results_are_no_results),
    "banks: the last results never stay": ("banks", _last_results_go),
    "banks: a wrong bound inside a stage": ("banks", _rest_too_dear),
    "joint: rows on chip take a bank less": (
        "joint", _changed(formulations.fusion.nests, "_levels", lambda few: [(max(0, n - 1), held) for n, held in few])
    ),
    "joint: shared weights are loaded by each layer": ("joint", _never(lambda _, residence: not residence.weights)),
    "joint: gates lie in memory": ("joint", _never(lambda found, residence: not _gate(found, residence))),
    "joint: results that are read inside are not written": ("joint", _inner_results_unwritten),
    "joint: shared weights must move for each layer": ("joint", _weights_of_each_reader),
    "joint: padding must move": ("joint", _padding_must_move),
    "joint: a map stays whole or not at all": (
        "joint", _changed(formulations.fusion.nests, "_levels", lambda few: [few[0], *few[1:][-1:]])
    ),
}  # fmt: skip
#: Draws in which faults come up early, to be quick.
SEEDS = {
    "banks": 4, "joint": 4, "mesh": 2, "fusion: results that are read inside are not written": 54,
}  # fmt: skip
#: Cases in which a fault has to be found: it took 1 to 71 of them when this was written.
MOST = {
    "banks": 150,
    "hybrid": 40,
    "fusion": 4,
    "joint": 80,
    "partial_engine": 150,
    "mapping": 150,
    "applications": 150,
    "mesh": 150,
}


def _forget() -> None:
    """Empty all caches: what a fault left in them would be believed later, and what is in them hides a fault."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__.split(".")[0] in (
            "formulations",
            "hwmodels",
        ):
            one.cache_clear()


@pytest.fixture
def forgetful() -> Iterator[None]:
    _forget()
    yield
    _forget()


#: Faults that take half a minute to be found.
LONG = (
    "joint: a map stays whole or not at all", "joint: shared weights must move for each layer",
    "joint: padding must move", "joint: results that are read inside are not written",
)  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("fault", thinned([x for x in FAULTS if x not in LONG or THOROUGH], 4))
def test_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch, forgetful: None) -> None:
    problem, patch = FAULTS[fault]
    patch(monkeypatch)
    found, tried = hunt(TESTERS[problem], SEEDS.get(fault, SEEDS.get(problem, 3)), MOST[problem])
    assert found, f"{tried} cases and no disagreement"
    assert all(one.problem == problem for one in found)
    assert TESTERS[problem].run(TESTERS[problem].from_json(found[0].instance), random.Random(0))


@pytest.mark.slow(5)
def test_rows_of_a_skip_that_are_held_too_long_are_found(monkeypatch: pytest.MonkeyPatch, forgetful: None) -> None:
    """A pool of three rows, a convolution, their sum and a layer of stride 2, in 12 bytes: the group needs no more."""
    layers = (("slide", (0,), 1), ("conv", (1,), 1), ("sum", (2, 1), 1), ("jump", (3,), 1))
    case = fusion.Case(6, 1, 1, layers, 12, 1, bytewise=True, engines=("dynamic",))
    assert fusion.TESTER.run(case, random.Random(0)) == []
    _forget()
    _skips_are_held(monkeypatch)
    assert {one.what for one in fusion.TESTER.run(case, random.Random(0))} == {
        "dynamic says OPTIMAL 19 with bound 19, brute force finds 17"
    }


@pytest.mark.parametrize("engine", ["dynamic", "per-layer", "milp", "cp-sat", "pure-fusion", "hybrid-paper"])
def test_pieces_need_not_load_what_no_window_reads(engine: str) -> None:
    """A pool of one column, stride 2, over three columns: 2 are read, 2 written. A program for all of it loads 3."""
    case = hybrid.Case(3, 1, (("pool", (0,), 1, 1, 2),), (1, 1, 1), unread=False, writes=False, objective="bytes")
    claim = hybrid.TESTER.claim(case, engine)
    assert (claim.bound, claim.faults) == (4, ())
    assert (claim.status, claim.value) in [("OPTIMAL", 4), ("FEASIBLE", 5)]
    assert hybrid.TESTER.known(case, [claim]).least == 4


@pytest.mark.parametrize("engine", ["dynamic", "pure-fusion", "hybrid-paper"])
def test_policies_keep_no_map_for_a_sum_that_reads_from_dram(engine: str) -> None:
    """One byte in, pooled, and added to itself: MIN would keep it on chip, which is not of this space."""
    layers = (("pool", (0,), 1, 1, 1), ("sum", (0, 0), 1, 1, 1))
    case = hybrid.Case(1, 1, layers, (2, 1, 1), False, False, "bytes", streamed=True)
    assert hybrid.TESTER.run(replace(case, engines=(engine,)), random.Random(0)) == []


@pytest.mark.slow(2)
def test_a_stage_without_a_program_for_some_tiles_on_chip_has_a_time() -> None:
    """Two banks of a column each: a pool of three columns has no program if both hold its map."""
    layers = (("pool", (0,), 1, 3, 1), ("pool", (1,), 2, 1, 1))
    case = hybrid.Case(4, 2, layers, (2, 3, 99), False, False, "time", fused=True, streamed=True)
    case = replace(case, engines=("dynamic",))
    assert hybrid.TESTER.run(case, random.Random(0)) == []
