"""Plans by rules and by annealing: by hand, and on random networks, where they are possible and never the best."""

from __future__ import annotations

import random

import pytest

from formulations.clock import Clock, TimeUp
from formulations.fusion.latency import anneal
from formulations.fusion.latency.anneal import Annealer, ticks_of
from formulations.fusion.latency.paths import Paths
from formulations.fusion.part import FusionPart
from formulations.fusion.pins import DECISIONS
from formulations.fusion.problem import FusionFormulation
from formulations.fusion.schedule import Runs
from formulations.pins import Pins, parse_pins
from formulations.prefetch.guards import Draft
from formulations.problem import Goal, Unable
from hwmodels.timeline.replay import replay
from hwmodels.timeline.schedule import Load, Step, Store, Timeline
from instances.errors import InputError
from instances.load import load_machine
from instances.zoo.chains import chain, skip
from solver.calls.check import check
from solver.calls.solve import solve
from tests.adversary.network_time_nets import drawn, pinned
from tests.effort import tries

RULES = FusionFormulation.timed
TWO_KIB = {"ocm_bytes": "2048", "ocm_banks": "0"}


def part_of(*pins: str) -> FusionPart:
    """Three 3x3 layers of 4 channels on 8 x 8 pixels in 2 KiB (docs/fusion.md)."""
    return FusionPart(chain(4, 4, 4, size=8), load_machine("scratchpad_768k", TWO_KIB), parse_pins(pins, DECISIONS))


@pytest.mark.parametrize(("pins", "ticks"), [
    (("strip>=8", "length=1"), (23_568, 19_088, 17_072)),
    (("strip>=8",), (23_568, 17_072, 17_072)),
    (("strip>=8", "length=1", "prefetch=no"), (23_568, 19_088, 19_088)),
])  # fmt: skip
def test_rules_by_hand(pins: tuple[str, ...], ticks: tuple[int, ...]) -> None:
    """A layer takes 4,608 ticks, its input or result 1,120, its weights 1,008; each layer in one step.

    Layer by layer, every map through DRAM: 3 * (1,120 + 1,008 + 4,608 + 1,120) = 23,568. Maps that stay spare two maps
    and two loads of them: 1,120 + 3 * (1,008 + 4,608) + 1,120 = 19,088. With two of the weights loaded beside a step,
    as in one group: 17,072.
    """
    part = part_of(*pins)
    plans = [part.rules.double_buffered(), part.rules.group_by_group(), part.rules.greedy_prefetch()]
    assert tuple(part.laid(runs).ticks for runs in plans) == ticks
    assert part.laid(Annealer(part.rules).best()).ticks == ticks[-1]


def test_a_plan_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time layers run one by one in strips, and no nest is searched: the second of 23,568 ticks above."""
    part = part_of("strip>=8")
    monkeypatch.setattr(part.layers, "fastest", None)
    runs = FusionFormulation.heuristics["per-layer"][1](part, Goal("time", clock=Clock(0.0, lambda: 0.0)))
    assert part.laid(runs).ticks == 23_568
    assert part.replay(runs).faults == ()
    plan = solve("squeezenet1_1", "scratchpad_768k", problem="fusion", time_limit_s=0.01)
    assert plan.measures["time"] < 25_000_000  # 3.1 ms; tiles of as few bytes as are found at once take seconds


def test_clocks_of_groups_by_themselves_wait_for_each_other() -> None:
    """The same by labels, which let the last store (1,120) run beside its step; the greedy begins all loads at once."""
    part = part_of("strip>=8", "length=1")
    for apart, ticks in ((True, 19_088 - 1_120), (False, 17_072 - 1_120)):
        assert min(Paths(part.rules.options, apart=apart).ends())[0] == ticks
    loads = [one for one in part.laid(part.rules.greedy_prefetch()).timeline.transfers if isinstance(one, Load)]
    assert [(one.due, one.guard) for one in loads] == [(1, 1), (1, 1), (2, 1), (3, 1)]


#: Steps of 10 ticks in 10 bytes: loads of 2 bytes for the second and the third step, a store of 2 bytes by the first.
DRAFT = Timeline(
    tuple(Step(10, size) for size in (4, 6, 6)),
    (Load(3, 2, 2, 2), Load(3, 2, 3, 3), Store(3, 2, 1, 2)),
)  # fmt: skip


def test_two_buffers_by_hand() -> None:
    """A load lies beside the step before its own, stands ahead of what that step stores, and that ends a step later."""
    assert Draft(DRAFT, 10).doubled() == ([0, 2, 1], [1, 2, 3])
    assert Draft(DRAFT, 6).doubled() == ([0, 2, 1], [1, 3, 2])  # nothing finds room beside the second step
    plan = Draft(DRAFT, 10).doubled()
    assert [ticks_of(Draft(DRAFT, room), plan) for room in (10, 9)] == [30, None]  # beside it lie 2 + 2 bytes


def test_as_soon_as_there_is_room_by_hand() -> None:
    """Both loads lie beside the first step in 10 bytes, and the store may end when it will."""
    assert Draft(DRAFT, 10).greedy() == ([0, 1, 2], [1, 1, 4])
    assert Draft(DRAFT, 8).greedy() == ([0, 1, 2], [1, 1, 2])  # the second load has the room beside the second step


def planned(part: FusionPart, name: str) -> Runs | None:
    try:
        return FusionFormulation.heuristics[name][1](part, Goal("time"))  # type: ignore[return-value]
    except Unable:
        return None


@pytest.mark.slow(8)
@pytest.mark.parametrize("seed", range(1, 1 + tries(6, 200)))
def test_plans_by_rules_are_possible_and_the_same_again(seed: int) -> None:
    """Random networks of up to four layers in tiny memories, half of them with pins; the search is as good as each."""
    rng = random.Random(seed)
    case = drawn(rng) if seed % 2 else pinned(drawn(rng, 4, 6, 4, 1), rng)
    pins, found = parse_pins(case.pins, DECISIONS), dict[str, int]()
    for name in RULES:
        part, again = (FusionPart(case.network, case.machine, pins) for _ in range(2))
        runs = planned(part, name)
        assert runs == planned(again, name)
        if runs is None:
            continue
        seen, found[name] = part.replay(runs), part.laid(runs).ticks
        assert not seen.faults
        assert not part.contains(runs)
        assert runs.queue is not None
        assert part.polished(runs, Clock()) is runs
        assert seen.measures["time"] == found[name] >= part.compulsory_ticks
    best = solve(case.network, case.machine, problem="fusion", objective="time", pins=case.pins)
    assert best.measures is None or all(best.measures["time"] <= ticks for ticks in found.values())
    assert not found or best.measures is not None


@pytest.mark.slow(8)
def test_annealing_finds_groups_and_takes_as_long_as_it_says() -> None:
    """Layers by themselves take 23,568 ticks; to join them, or to keep maps, is found by moves of the first stage."""
    part = part_of("strip>=8")
    alone = Annealer(part.rules, moves=(0, 0)).best()
    assert len(alone) == 3
    assert part.laid(alone).ticks > 17_072
    ticks = {part.laid(Annealer(part.rules, seed, (20, 20)).best()).ticks for seed in range(2)}
    assert max(ticks) < part.laid(alone).ticks
    assert Annealer(part.rules, 3).best() == Annealer(part_of("strip>=8").rules, 3).best()


def test_moves_of_the_second_stage_change_one_transfer() -> None:
    """Orders stay orders, and what is taken is a timeline that fits."""
    part = FusionPart(skip(4, 8), load_machine("scratchpad_768k", TWO_KIB), Pins(()))
    timeline = part.laid(part.rules.group_by_group()).timeline
    draft = Draft(timeline, max(step.bytes for step in timeline.steps) + 64)
    moves, plan, taken = anneal._Moves(draft, random.Random(1)), draft.doubled(), 0
    for _ in range(300):
        other = moves.changed(plan)
        assert other is not None
        assert sorted(other[0]) == draft.order
        assert sum(a != b for a, b in zip(plan[1], other[1], strict=True)) <= 1
        if (ticks := ticks_of(draft, other)) is not None:
            assert ticks == _seen(draft, *other)
            plan, taken = other, taken + 1
    assert taken


def _seen(draft: Draft, order: list[int], when: list[int]) -> int:
    """What the referee of timelines sees."""
    seen = replay(draft.made(order, when))
    assert not seen.faults
    assert seen.peak_bytes <= draft.room
    return seen.latency


def test_a_better_plan_is_always_taken_and_a_worse_one_by_its_temperature() -> None:
    """What costs twice as much is taken in move 0 of 10 with probability exp(-1 / 0.1), never here; the same always."""
    annealer = Annealer(part_of("strip>=8").rules)
    costs = {0: 100, 1: 200, 2: 100, 3: 90}
    seen = list[int]()

    def change(at: int) -> int:
        seen.append(at)
        return (at + 1) % 4 if at != 0 else len(seen) % 2 + 1  # to 200 and to 100 in turns

    assert annealer._cooled((0, 100), change, costs.__getitem__, 10) == (3, 90)
    assert 1 not in seen


def test_without_time_there_is_no_plan() -> None:
    over = Clock(0.0, lambda: 0.0)
    for name in RULES:
        with pytest.raises(TimeUp):
            FusionFormulation.heuristics[name][1](part_of(), Goal("time", clock=over))


@pytest.mark.slow(8)
@pytest.mark.parametrize("engine", RULES)
def test_heuristics_of_time_in_the_command_line(engine: str) -> None:
    plan = solve(chain(4, 4, 4, size=8), "scratchpad_768k", problem="fusion", engine=engine, settings=TWO_KIB)
    assert (plan.status, plan.engine) == ("FEASIBLE", engine)
    assert check(plan).ok
    with pytest.raises(InputError, match=f"engine {engine}: it plans for time alone, not for bytes"):
        solve(chain(4, 4), "scratchpad_768k", problem="fusion", objective="bytes", engine=engine, settings=TWO_KIB)
