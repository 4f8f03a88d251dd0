"""Groups of bank stages in pieces: what a piece is, bounds, and optima against all chains of all pieces."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement, product
from random import Random

import pytest

from certile import check, pareto, solve
from formulations.banks.front import decide
from formulations.banks.network import Point, Walk
from formulations.banks.numbers import numbered
from formulations.banks.readings import clock_of, readings
from formulations.clock import Clock
from formulations.hybrid.bounds import Costs, Program, Stagewise, floor
from formulations.hybrid.problem import HybridFormulation, HybridPart
from formulations.hybrid.search import Chain, mixes
from formulations.hybrid.space import DECISIONS, Cut, Pair, Space, branches, sizes
from formulations.pins import parse_pins
from formulations.problem import Goal
from hwmodels.hybrid.replay import Numbers, replay_hybrid
from hwmodels.hybrid.schedule import GroupRun, HybridRun, PieceRun
from instances.errors import InputError
from instances.load import load_machine, load_network
from instances.machine.machine import Machine
from instances.network.feature_maps import Stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator, Pool
from instances.network.pieces import Box, Group, Key, Piece, Span
from solver.problems.hybrid import rows_of
from solver.search.loop import decide_part
from tests.formulations.test_bank_time import front_of

HYBRID = HybridFormulation()


def part(network: Network, machine: Machine, *pins: str) -> HybridPart:
    (found,) = HYBRID.read(network, machine, parse_pins(pins, DECISIONS), None)
    return found


def conv(name: str, source: Operator, filters: int, taps: int, stride: int = 1) -> Conv:
    _, _, rows, columns = source.shape
    shape = (1, filters, -(-rows // stride), -(-columns // stride))
    before = taps // 2
    after = [
        max(0, (n - 1) * stride + taps - size - before) for n, size in zip(shape[2:], (rows, columns), strict=True)
    ]
    return Conv(name=name, inputs=(source.name,), shape=shape, filters=filters, kernel=(taps, taps),
                stride=(stride, stride), pad=(before, before, *after), bias=True)  # fmt: skip


def pair() -> Network:
    """Two convolutions of 3x3 over 8 columns and 4 rows of 16 channels."""
    first = Input(name="in", shape=(1, 16, 4, 8))
    one = conv("one", first, 16, 3)
    return Network(name="pair", operators=(first, one, conv("two", one, 16, 3)))


def drawn(seed: int, stages: int) -> Network:
    """A small random network: convolutions, depthwise ones, pools, sums, concatenations."""
    random = Random(seed)
    operators: list[Operator] = [Input(name="in", shape=(1, 16, random.choice((3, 4, 5)), random.choice((4, 6, 8, 9))))]
    count = 0
    while count < stages:
        at, name = operators[-1], f"o{count}"
        kind = random.choice(("conv", "conv", "conv", "depthwise", "pool", "branch", "concat"))
        if kind == "branch" and count + 2 <= stages:
            first = conv(f"{name}a", at, at.shape[1], random.choice((1, 3)))
            total = Eltwise(name=f"{name}s", inputs=(first.name, at.name), shape=at.shape, fn="add")
            operators += [first, total]
            count += 2
        elif kind == "concat" and count + 2 <= stages:
            two = [conv(f"{name}{side}", at, 16, taps) for side, taps in (("a", 1), ("b", 3))]
            shape = (1, 32, *at.shape[2:])
            operators += [*two, Concat(name=f"{name}c", inputs=(two[0].name, two[1].name), shape=shape, axis=1)]
            count += 2
        elif kind == "depthwise":
            made = conv(name, at, at.shape[1], 3, random.choice((1, 2)))
            operators.append(made.model_copy(update={"groups": at.shape[1]}))
            count += 1
        elif kind == "pool":
            made = conv(name, at, at.shape[1], 3, 2)
            operators.append(Pool(name=name, inputs=(at.name,), shape=made.shape, kernel=(3, 3), stride=(2, 2),
                                  pad=made.pad, fn="max"))  # fmt: skip
            count += 1
        else:
            operators.append(conv(name, at, random.choice((16, 32)), random.choice((1, 3)), random.choice((1, 1, 2))))
            count += 1
    return Network(name=f"drawn{seed}", operators=tuple(operators))


def machine(seed: int = 0, **settings: int | str) -> Machine:
    """Few and small banks, on a bus that serves first come, first served."""
    random = Random(seed)
    size = random.choice((512, 768, 1024))
    banks = {"count": 3, "map_bytes": 3 * size, "weight_bytes": random.choice((1024, 4096)), "bus": "first_come",
             "patch_channels": 0, "residuals": random.choice(("dram", "chip")), **settings}  # fmt: skip
    return load_machine("midap", {f"banks.{name}": str(value) for name, value in banks.items()})


# ---- pieces ----------------------------------------------------------------------------------------------------------


def stages_of(network: Network, on: Machine) -> Stages:
    return next(iter(readings(network, on).values()))


def test_two_pieces_compute_two_columns_twice() -> None:
    """Columns 0 to 3 of the result need 0 to 4 between and 0 to 5 of the input; 4 to 7 need 3 to 7 and 2 to 7."""
    group = Group(stages_of(pair(), machine()), 0, 2)
    first, second = group.piece(0, 0, 4, 4), group.piece(4, 0, 4, 4)
    assert dict(first.views)[Key("one")] == Box(Span(0, 5), Span(0, 4))
    assert dict(second.views)[Key("one")] == Box(Span(3, 8), Span(0, 4))
    assert dict(second.views)[Key("in")] == Box(Span(2, 8), Span(0, 4))
    assert first != second  # the padding is on the other side
    assert group.pieces(4, 4) == {first: 1, second: 1}
    assert sum((group.pieces(2, 4) or {}).values()) == 4
    assert len(group.pieces(2, 4) or {}) == 3


def test_one_piece_is_the_network_itself() -> None:
    for name in ("resnet50", "mobilenet_v2", "inception_v3"):
        found = stages_of(load_network(name), load_machine("midap"))
        ((piece, count),) = (Group(found, 0, len(found.stages)).pieces(10**6, 10**6) or {}).items()
        assert count == 1
        for one, two in zip(found.stages, piece.found.stages, strict=True):
            assert (two.before, two.after, two.written, two.cycles, two.reads, two.tap_cycles) == (
                one.before, one.after, one.written, one.cycles, one.reads, one.tap_cycles,
            )  # fmt: skip


def test_a_map_that_others_need_whole_is_left_once() -> None:
    """What the first convolution makes is read outside of the group too; inside with a halo: it overlaps."""
    first = Input(name="in", shape=(1, 16, 4, 8))
    one = conv("one", first, 16, 3)
    two = conv("two", one, 16, 3)
    total = Eltwise(name="sum", inputs=("two", "one"), shape=one.shape, fn="add")
    found = stages_of(Network(name="skip", operators=(first, one, two, total)), machine())
    assert Group(found, 0, 2).pieces(4, 4) is None
    assert Group(found, 1, 3).pieces(4, 4) is not None  # the sum's operand comes from outside, in its own box


def test_the_blocks_of_resnet50_are_the_published_ones() -> None:
    found = stages_of(load_network("resnet50"), load_machine("midap"))
    blocks = [(a, b) for a, b in branches(found) if b - a > 2]
    assert len(blocks) == 16
    assert [b - a for a, b in blocks] == [5, 4, 4, 5, 4, 4, 4, 5, 4, 4, 4, 4, 4, 5, 4, 4]


# ---- replay ----------------------------------------------------------------------------------------------------------


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(6))
def test_all_pieces_compute_what_layer_by_layer_does(seed: int) -> None:
    found = stages_of(drawn(seed, 4), machine(seed))
    for begin, end in product(range(4), range(1, 5)):
        group = Group(found, begin, min(end, len(found.stages)))
        if begin >= group.end:
            continue
        for columns, rows in product(sizes(group.last.columns), sizes(group.last.rows)):
            if group.pieces(columns, rows) is None:
                continue
            numbers = Numbers(found)
            numbers.dram, numbers.left = dict(numbers.right), dict(numbers.parts)
            before = {name: numbers.dram.pop(name) for name in group.leaving}
            for name in before:
                elsewhere = [s for s in found.stages if s.target == name and s not in group.stages]
                numbers.left[name] = len(elsewhere)
                if elsewhere:  # parts of a concatenation that other groups make
                    return
            assert numbers.run(group, columns, rows) == []


def test_replay_finds_pieces_that_miss_a_halo(monkeypatch: pytest.MonkeyPatch) -> None:
    found = stages_of(pair(), machine())
    group = Group(found, 0, 2)
    window = Span.window
    monkeypatch.setattr(Span, "window", lambda span, taps, *more: window(span, max(1, taps - 1), *more))
    assert any("differ" in fault for fault in Numbers(found).run(group, 4, 4))


def test_replay_finds_pieces_that_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two pieces the first one twice: its 4 columns of 4 rows are left twice, the others never."""
    found = stages_of(pair(), machine())
    assert Numbers(found).run(Group(found, 1, 2), 4, 4)[0] == "one is read before it is made"
    group, piece = Group(found, 0, 2), Group.piece
    monkeypatch.setattr(Group, "pieces", lambda *_: {piece(group, 0, 0, 4, 4): 1, piece(group, 4, 0, 4, 4): 1})
    monkeypatch.setattr(Group, "piece", lambda self, _, *more: piece(self, 0, *more))
    assert Numbers(found).run(group, 4, 4) == [
        "pieces that count as alike differ", "two: 32 numbers are not left once",
        "two: its numbers differ from those of layer by layer",
    ]  # fmt: skip


def test_replay_finds_too_few_pieces() -> None:
    found, on = stages_of(pair(), machine()), machine()
    assert replay_hybrid(found, on, ()).faults == ["0 stages are planned, there are 2"]
    assert replay_hybrid(found, on, (GroupRun(2, 0, 4, ()),)).faults == ["group one: it cannot run in pieces of 0 x 4"]
    idle = replay_hybrid(found, on, (GroupRun(2, 8, 4, ((PieceRun(1, ()),),)),))
    assert (idle.faults[0], [one.ticks for one in idle.pieces]) == ("stages that never run: s0, s1", [0])
    for counts in ((1, 1), (2, 1, 1), (1, 2, 1, 1)):  # of 4 the first, the last, and two alike between them
        run = GroupRun(2, 2, 4, tuple((PieceRun(count, ()),) for count in counts))
        said = f"group one: {list(counts)} pieces are planned, there are [1, 2, 1]"
        assert replay_hybrid(found, on, (run,)).faults == [said]


# ---- all chains ------------------------------------------------------------------------------------------------------


class Brute:
    """All chains of all groups, every piece by itself."""

    def __init__(self, network: Network, on: Machine) -> None:
        self.found, self.on = stages_of(network, on), on
        self.waiting = on.banks is not None and on.banks.residuals == "chip"

    @cache  # noqa: B019 - it lives as long as the test
    def piece(self, piece: Piece) -> tuple[Point, ...]:
        assert self.on.banks is not None
        try:
            walk = Walk(piece.found, self.on.banks, waiting=self.waiting)
            said = decide(walk, clock_of(self.on), "front")
        except InputError:
            return ()
        assert said.proven
        assert all(numbered(plan, self.on.banks) for plan, _ in said.plans)
        return tuple(Point(plan.volume.total, ticks) for plan, ticks in said.plans)

    def options(self, begin: int, end: int) -> list[tuple[bool, list[Point]]]:
        """Of every size whether it is the whole, and the front of all its pieces."""
        group, made = Group(self.found, begin, end), []
        for columns, rows in product(sizes(group.last.columns), sizes(group.last.rows)):
            if group.pieces(columns, rows) is None:
                continue
            points = [Point(0, 0)]
            for left, top in product(range(0, group.last.columns, columns), range(0, group.last.rows, rows)):
                more = self.piece(group.piece(left, top, columns, rows))
                points = front_of([Point(p.bytes + q.bytes, p.ticks + q.ticks) for p in points for q in more])
            made.append(((columns, rows) == (group.last.columns, group.last.rows), points))
        return made

    def front(self) -> list[Point]:
        last = len(self.found.stages)
        chains: dict[tuple[int, bool], list[Point]] = {(0, False): [Point(0, 0)]}
        for begin in range(last):
            for end in range(begin + 1, last + 1):
                for whole, points in self.options(begin, end):
                    for before in (False,) if whole else (False, True):
                        known = chains.get((begin, before), [])
                        made = [Point(p.bytes + q.bytes, p.ticks + q.ticks) for p in known for q in points]
                        chains[end, whole] = front_of([*chains.get((end, whole), []), *made])
        return front_of([*chains.get((last, False), []), *chains.get((last, True), [])])


def test_models_prove_the_same() -> None:
    for seed in (3, 6):
        for measure in ("bytes", "time"):
            values = {
                decide_part(HYBRID, part(drawn(seed, 3), machine(seed), "pieces<=6"), (measure,), engine).values[
                    measure
                ]
                for engine in ("dynamic", "milp", "cp-sat")
            }
            assert len(values) == 1


def checked(seed: int, stages: int, **settings: int) -> None:
    network, on = drawn(seed, stages), machine(seed, **settings)
    expected, here = Brute(network, on).front(), part(network, on)
    for measure in ("bytes", "time"):
        said = decide_part(HYBRID, here, (measure,), "dynamic")
        if not expected:
            assert said.status == "INFEASIBLE"
            continue
        least = min(point[measure == "time"] for point in expected)
        assert (said.status, said.values[measure]) == ("OPTIMAL", least)
        assert here.replay(said.schedule).measures == here.price(said.schedule).measures == said.values
    if expected:
        (reading,) = here.readings.values()
        chains, proven = reading.front(Point(2**60, 2**60), Clock())
        assert proven
        points = [here.price(reading.program(chain)).measures for chain in chains]
        assert [(one["bytes"], one["time"]) for one in points] == [tuple(point) for point in expected]
        for least, most in expected:
            for goal in (Goal("time", {"bytes": least}), Goal("bytes", {"time": most})):
                run, bound = reading.exact(goal, "dynamic")
                assert here.price(run).measures == {"bytes": least, "time": most}
                assert bound == (most if goal.measure == "time" else least)
        assert reading.exact(Goal("time", {"bytes": expected[0].bytes - 1}), "dynamic") == (None, None)
        assert reading.exact(Goal("time", below=expected[-1].ticks), "dynamic") == (None, None)


@pytest.mark.parametrize(("seed", "settings"), [(1, {}), (6, {}), (13, {"count": 5})])
def test_optima_and_front_are_those_of_all_chains(seed: int, settings: dict[str, int]) -> None:
    """The last one has a front of four plans, the first of these with two pieces of two programs each."""
    checked(seed, 2 if settings else 3, **settings)


def test_pieces_that_are_alike_may_run_unlike_programs() -> None:
    programs = [Program(Point(*point), ()) for point in ((0, 9), (2, 4), (3, 3), (9, 0))]
    for many in (1, 2, 3):
        every = {Point(*map(sum, zip(*(one.point for one in few), strict=True)))
                 for few in combinations_with_replacement(programs, many)}  # fmt: skip
        found = mixes(programs, many)
        assert [mix.point for mix in found] == front_of(list(every))
        for mix in found:
            assert sum(number for _, number in mix.uses) == many
            assert mix.point == tuple(sum(one.point[k] * number for one, number in mix.uses) for k in (0, 1))
    assert mixes(programs[1:2], 3)[0].point == Point(6, 12)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_below_all_programs(seed: int) -> None:
    """Of pieces, of stages by themselves, of groups before they are cut, and of what every plan has to do."""
    network, on = drawn(seed, 4), machine(seed)
    brute, costs = Brute(network, on), Costs(on)
    assert on.banks is not None
    alone, free = (
        Stagewise(on.banks, clock_of(on), waiting=costs.waiting),
        Space(brute.found, parse_pins([], DECISIONS)),
    )
    all_ticks = alone.ticks(brute.found, searched=True) or [0] * 4
    for begin, end in ((0, 4), (0, 2), (1, 3), (2, 4)):
        group = Group(brute.found, begin, end)
        pairs = {
            (measure, whole): Pair(costs, group, Cut(begin, end, whole), measure, free, all_ticks)
            for measure in ("bytes", "time") for whole in (True, False)
        }  # fmt: skip
        for columns, rows in product(sizes(group.last.columns)[:2], sizes(group.last.rows)[:2]):
            total = Point(0, 0)
            for piece, many in (group.pieces(columns, rows) or {}).items():
                points, floor = brute.piece(piece), costs.floor(piece, timed=True)
                if not points:
                    break
                assert floor.bytes <= points[0].bytes
                assert floor.ticks <= points[-1].ticks
                ticks = alone.ticks(piece.found, searched=True)
                assert sum(ticks) <= points[-1].ticks
                total = Point(total.bytes + many * points[0].bytes, total.ticks + many * points[-1].ticks)
            else:
                for k, measure in enumerate(("bytes", "time") if total.bytes else ()):
                    pair = pairs[measure, (columns, rows) == (group.last.columns, group.last.rows)]
                    assert max(pair.least, pair.every()[columns, rows][1]) <= total[k]


def test_what_every_plan_has_to_do_by_hand() -> None:
    """A tap with a stride of 2 over 8 columns and 4 rows of 16 bytes reads 4 x 2 of them, and makes as many.

    Then weights of 16 x 16 and 16 biases. It computes 8 pixels of a cycle or more each, for one group of 16 filters.
    """
    first, on = Input(name="in", shape=(1, 16, 4, 8)), machine(lanes=16, filters=16)
    (reading,) = part(Network(name="n", operators=(first, conv("a", first, 16, 1, 2))), on).readings.values()
    clock = clock_of(on)
    assert reading.least == Point(128 + 256 + 16 + 128, 8 * clock.cycle + clock.fixed)
    for one, two in ((1, 2), (2, 1)):  # the stage that needs all of the map, first or last: 512 in, 512 + 128 out
        made = (first, conv("a", first, 16, 1, one), conv("b", first, 16, 1, two))
        (reading,) = part(Network(name="n", operators=made), on).readings.values()
        assert reading.least.bytes == 512 + 2 * (256 + 16) + 512 + 128


def _maps(kind: str) -> Stages:
    """Maps of 8 columns of 16 bytes, weights of 256 bytes and 16 biases a convolution."""
    x = Input(name="x", shape=(1, 16, 1, 8))
    a = conv("a", x, 16, 1)
    b, beside = conv("b", a, 16, 1), conv("b", x, 16, 1)
    total = {of: Eltwise(name="s", inputs=of, shape=x.shape, fn="add") for of in (("a", "x"), ("b", "a"))}
    join = Concat(name="j", inputs=("a", "b"), shape=(1, 32, 1, 8), axis=1)
    more = {
        "chain": (b,), "of the input": (total["a", "x"],), "joined": (beside, join, conv("d", join, 16, 1)),
        "sum": (b, total["b", "a"], conv("d", total["b", "a"], 16, 1)),
        "sums": (b, total["b", "a"], Eltwise(name="d", inputs=("s", "b"), shape=x.shape, fn="add")),
    }  # fmt: skip
    return stages_of(Network(name="n", operators=(x, a, *more[kind])), machine(lanes=16))


#: Of kinds, `Banks.unread` and bytes of weights on chip the fewest bytes where maps may wait for sums, and where not.
FLOORS = {
    # 4 tiles on 3 banks: weights that do not fit come twice; 4 of 8 columns of a are written and loaded
    ("chain", "loaded", 128): (2 * (2 * 256 + 16) + 256 + 2 * 64, 0),
    ("chain", "loaded", 256): (2 * (256 + 16) + 256 + 2 * 64, 0),
    ("chain", "left", 128): (2 * (256 + 16) + 256 + 64, 0),  # .. what is read may lie where no window looks
    # 8 tiles of both parts: 3 times 512 bytes of weights; 6 of 8 columns of 32 bytes
    ("joined", "loaded", 256): (2 * (256 + 16) + 3 * 512 + 16 + 256 + 2 * 6 * 32, 0),
    # one operand is streamed: x for nothing; b written and loaded (2 x 4 columns) for less than a, which b read
    ("of the input", "loaded", 256): (256 + 16 + 256 + 2 * 64, 0),
    ("sum", "left", 256): (3 * (256 + 16) + 256 + (2 + 2 + 1) * 64, 2 * 64),
    ("sum", "loaded", 256): (3 * (256 + 16) + 256 + 6 * 64, 2 * 64),
    ("sums", "loaded", 256): (2 * (256 + 16) + 256 + 6 * 64, 64 + 128 + 2 * 64),  # a or b, loaded whole; s
}


@pytest.mark.parametrize(("kind", "unread", "held"), FLOORS)
def test_bytes_that_no_program_of_stages_is_below_by_hand(kind: str, unread: str, held: int) -> None:
    on = machine(lanes=16, map_bytes=3 * 32, weight_bytes=held, unread=unread)
    assert on.banks is not None
    found, (least, streamed) = _maps(kind), FLOORS[kind, unread, held]
    for waiting in (True, False):
        point = floor(found, on.banks, clock_of(on), waiting=waiting)
        assert point is not None
        assert point.bytes == least + (0 if waiting else streamed)
    if kind == "sums":  # b leaves anyway: 8 columns once, not its 4; streamed it is no more than loaded
        point = floor(replace(found, leaving=frozenset({"b"})), on.banks, clock_of(on), waiting=False)
        assert point is not None
        assert point.bytes == least + 64 + 2 * 128


# ---- what is asked ---------------------------------------------------------------------------------------------------


def test_where_fusion_does_not_pay_the_answer_is_per_layer() -> None:
    """All maps of LeNet-5 fit on chip, so pieces could only load weights again: one group, proven."""
    plan = solve("lenet5", "midap", problem="hybrid")
    assert plan.status == "OPTIMAL"
    assert [row.pieces for row in rows_of(plan)] == [1]
    assert check(plan).ok


def test_a_front_is_proven_and_its_plans_check() -> None:
    front = pareto(pair(), machine(3), problem="hybrid")
    assert front.proven
    values = [(plan.measures["bytes"], plan.measures["time"]) for plan in front.plans]
    assert values == sorted(values)
    assert all(check(plan).ok for plan in front.plans)


def test_pins_say_which_groups_there_are() -> None:
    on = machine(3)
    free = decide_part(HYBRID, part(pair(), on), ("bytes",), "dynamic").values["bytes"]
    for pins in (["pieces=1"], ["rows=no"], ["length<=1"], ["blocks=one"], ["blocks=branches"], ["pieces<=2"]):
        here = part(pair(), on, *pins)
        said = decide_part(HYBRID, here, ("bytes",), "dynamic")
        assert said.status == "OPTIMAL"
        assert said.values["bytes"] >= free
        assert not here.contains(said.schedule)


def row(*names: str) -> Stages:
    """Convolutions of 3x3 one after the other."""
    operators: list[Operator] = [Input(name="in", shape=(1, 16, 4, 8))]
    for name in names:
        operators.append(conv(name, operators[-1], 16, 3))
    return stages_of(Network(name="row", operators=tuple(operators)), machine())


@pytest.mark.parametrize(
    ("pin", "blocks"),
    [
        ("s/a/c", [(0, 1), (1, 3), (3, 4)]), ("a", [(0, 2), (2, 4)]), ("s/a/a/d", [(0, 1), (1, 2), (2, 4)]),
        ("c/a", "pin blocks=c/a: the stages are not in the network's order"),
        ("a/three", "pin blocks=a/three: no stage is called three; branches, or the last stages of blocks"),
    ],
)  # fmt: skip
def test_blocks_end_with_stages(pin: str, blocks: list[tuple[int, int]] | str) -> None:
    """Of stages s/a, a, c and d: names may have slashes, the longest counts."""
    found = row("s/a", "a", "c", "d")
    if isinstance(blocks, str):
        with pytest.raises(InputError) as said:
            Space(found, parse_pins([f"blocks={pin}"], DECISIONS))
        assert str(said.value) == blocks
    else:
        assert Space(found, parse_pins([f"blocks={pin}"], DECISIONS)).blocks == blocks
    with pytest.raises(InputError, match="blocks are said once, by ="):
        Space(found, parse_pins(["blocks=a", "blocks=c"], DECISIONS))


EVERY = {(begin, end) for end in range(4) for begin in range(end)}
SINGLE = {(0, 1), (1, 2), (2, 3)}


@pytest.mark.parametrize(
    ("pins", "whole", "pieces"),
    [
        ([], EVERY, EVERY), (["pieces=1"], EVERY, set()), (["pieces>=2"], set(), EVERY), (["pieces=4"], set(), EVERY),
        (["pieces<=2"], EVERY, EVERY), (["length<=1"], EVERY, SINGLE), (["length=2"], EVERY, {(0, 2), (1, 3)}),
        (["blocks=b"], {(0, 2), (2, 3), (0, 3)}, {(0, 2), (2, 3)}),
        (["blocks=b", "length<=1"], {(0, 2), (2, 3), (0, 3)}, {(2, 3)}),
    ],
)  # fmt: skip
def test_groups_that_pins_leave(pins: list[str], whole: set[tuple[int, int]], pieces: set[tuple[int, int]]) -> None:
    groups = Space(row("a", "b", "c"), parse_pins(pins, DECISIONS)).groups()
    assert {cut[:2] for cut in groups if cut.whole} == whole
    assert {cut[:2] for cut in groups if not cut.whole} == pieces


def test_long_groups_run_whole_unless_pins_say_otherwise() -> None:
    found = row(*(f"s{k}" for k in range(9)))
    for pins, most in (([], 8), (["length<=9"], 9), (["blocks=s8"], 9)):
        groups = Space(found, parse_pins(pins, DECISIONS)).groups()
        assert max(cut.end - cut.begin for cut in groups if not cut.whole) == most


def group(length: int, columns: int, rows: int, *counts: int) -> GroupRun:
    return GroupRun(length, columns, rows, tuple((PieceRun(count, ()),) for count in counts))


@pytest.mark.parametrize(
    ("pins", "groups", "said"),
    [
        ([], [group(2, 8, 4, 1)], ""),
        ([], [group(1, 8, 4, 1), group(1, 4, 4, 1, 1)], ""),
        ([], [group(1, 8, 4, 1), group(1, 8, 4, 1)],
         "group two runs whole behind one that does: they are one group"),
        ([], [group(2, 5, 4, 1, 1)], "group one runs in 2 pieces of 5 x 4: pins say no"),
        ([], [group(2, 8, 3, 1, 1)], "group one runs in 2 pieces of 8 x 3: pins say no"),
        (["rows=no"], [group(2, 8, 2, 1, 1)], "group one runs in 2 pieces of 8 x 2: pins say no"),
        (["pieces<=2"], [group(2, 4, 2, 1, 1, 1, 1)], "group one runs in 4 pieces of 4 x 2: pins say no"),
        (["length<=1"], [group(2, 4, 4, 1, 1)], "group one runs in 2 pieces of 4 x 4: pins say no"),
        ([], [group(3, 8, 4, 1)], "groups: stages 0 to 3: there are 2"),
        ([], [group(0, 8, 4, 1)], "groups: stages 0 to 0: there are 2"),
        ([], [group(2, 8, 0, 1)], "groups: stages 0 to 2: there are 2"),
        ([], [group(2, 2, 4, 1, 1, 2)], "groups: one: its pieces are not those of Grid(columns=2, rows=4)"),
        ([], [group(1, 8, 4, 1)], "groups: they have 1 stages, the network has 2"),
    ],
)  # fmt: skip
def test_plans_that_are_none(pins: list[str], groups: list[GroupRun], said: str) -> None:
    here = part(pair(), machine(3), *pins)
    (first,) = here.readings
    try:
        found = "; ".join(here.contains(HybridRun(first, tuple(groups))))
    except InputError as error:
        found = str(error)
    assert found == said


def test_no_chain_fits() -> None:
    """A column has 4 rows of 16 bytes; a bank of 63 bytes has three of the rows, in pieces."""
    small = machine(3, map_bytes=3 * 63)
    assert part(pair(), machine(3)).explain() == part(pair(), small).explain() == ()
    assert part(pair(), small, "rows=no").explain() == ("network pair: no chain of groups fits in 3 banks",)


def test_heuristics_are_no_better_than_the_optimum() -> None:
    here = part(drawn(1, 5), machine(3))
    values = {
        name: here.price(run(here, Goal("bytes"))).measures["bytes"] for name, (_, run) in HYBRID.heuristics.items()
    }
    (reading,) = here.readings.values()
    chosen = reading.chain("bytes").run(Clock(), 2**60)
    assert isinstance(reading.chain("bytes"), Chain)
    assert chosen is not None
    best = here.price(reading.program(chosen)).measures["bytes"]
    assert best <= values["hybrid-paper"] <= values["per-layer"]
