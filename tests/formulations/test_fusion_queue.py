"""The queue of a plan: its order, guards and limits in the file, what may be pinned of them, and when all happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from formulations.clock import ENDLESS
from formulations.fusion.latency.events import Event
from formulations.fusion.part import FusionPart
from hwmodels.schedule import NetworkRun, Queue
from hwmodels.timeline.schedule import Load, Store, Timeline
from instances.errors import InputError
from instances.load import load_machine
from instances.network.network import Network
from instances.zoo.chains import chain
from solver import check, show, why
from solver.calls.solve import pareto, solve
from solver.plan.figures import Boxes
from solver.plan.plan import Plan
from solver.plan.why import Stall
from solver.problems.joint import SharedProblem
from solver.problems.registry import PROBLEMS
from solver.problems.timeline import Timetable
from solver.show import interactive
from solver.show.printed import image
from solver.uses.why.parts import plan_splits
from solver.uses.why.relax import of_more
from solver.uses.why.text import about_lines
from tests.lies import changed, problems

#: Two 3x3 layers of 4 channels on 8 x 8 pixels, in strips of two rows (docs/fusion.md): 8 steps.
STRIPS = "fuse=c0..c1", "strip=2"


@cache
def planned(*pins: str, layers: int = 2, banks: int = 60, problem: str = "fusion") -> Plan:
    memory = {"ocm_bytes": 16 * banks, "ocm_banks": banks}
    return solve(
        chain(*(4,) * layers, size=8), "scratchpad_768k", problem=problem, objective="bytes", pins=pins, settings=memory
    )


def plan_timeline(plan: Plan) -> Timetable:
    problem = PROBLEMS[plan.problem]
    assert isinstance(problem, SharedProblem)
    return problem.timetable(plan)


def timeline(plan: Plan) -> Timeline:
    (part,) = PROBLEMS[plan.problem].parts_of(plan)
    assert isinstance(part, FusionPart)
    return part.laid(plan.part.schedule).timeline


# ---- in the file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["fusion", "joint"])
def test_a_plan_has_the_order_of_its_transfers(problem: str) -> None:
    """Read again it has the same times, and nothing is looked for; of runs alone the same order is found."""
    plan = planned(problem=problem)
    queue = plan.part.schedule.queue
    assert sorted(queue.order) == [*range(len(timeline(plan).transfers))]
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert check(plan).ok
    bare = changed(plan, lambda data: data["parts"][0].update(schedule=data["parts"][0]["schedule"]["runs"]))
    assert bare.part.schedule == NetworkRun(plan.part.schedule.runs)
    assert timeline(bare) == timeline(plan)
    assert check(bare).ok


def test_a_worse_order_takes_longer() -> None:
    """Nothing beside a step: the same transfers by their steps, 17,792 ticks in place of 15,856."""
    plan = planned(*STRIPS)
    alone = planned(*STRIPS, "prefetch=no")
    (part,) = PROBLEMS["fusion"].parts_of(plan)
    worse = replace(plan.part.schedule, queue=alone.part.schedule.queue)
    assert part.price(worse).measures["time"] == alone.part.measures["time"] > plan.part.measures["time"]
    assert part.contains(worse) == ()
    assert problems(plan, ("parts.0.schedule.queue", json.loads(alone.to_json())["parts"][0]["schedule"]["queue"]))


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], None]:
    return lambda data: change(data["parts"][0]["schedule"]["queue"])


@pytest.mark.parametrize(("change", "said"), [
    (lambda q: (q["order"].pop(), q["when"].pop()), "make 9 transfers, order has 8 of them, when 8"),
    (lambda q: q["when"].pop(), "make 9 transfers, order has 9 of them, when 8"),
    (lambda q: q["order"].__setitem__(0, q["order"][1]), "queue: order names transfer 3 twice"),
    (lambda q: q["order"].__setitem__(0, 9), "queue: order names transfer 9 of 9"),
    (lambda q: q["when"].__setitem__(0, 99), "does not hold"),
    (lambda q: q.update(order=q["order"][::-1], when=q["when"][::-1]), "waits for it, transfer"),
    (lambda q: q.update(weights=16), "blocks of 16 bytes make 15 transfers, order has 9 of them"),
])  # fmt: skip
def test_an_order_that_cannot_be(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    lines = problems(planned(*STRIPS), edited(change))
    assert any(said in line for line in lines), lines


def four_layers(*pins: str) -> Plan:
    """1x1 layers of 16, 64, 64 and 16 channels in 16 KiB, in the least time."""
    memory = {"ocm_bytes": 2**14, "ocm_banks": 64}
    return solve(chain(16, 64, 64, 16, size=8), "scratchpad_768k", problem="fusion", pins=pins, settings=memory)


def test_transfers_of_sizes_run_by_run() -> None:
    """The last layer loads weights in other blocks than those before it, which is faster than one size for all."""
    plan = four_layers()
    runs = plan.part.schedule
    assert runs.queue.by_run == ((4096, 4096),) * 3 + ((2048, 2048),)
    assert (runs.queue.weights, runs.queue.maps) == (4096, 4096)
    (part,) = PROBLEMS["fusion"].parts_of(plan)
    assert isinstance(part, FusionPart)
    alike = part.laid(replace(runs, queue=None)).ticks
    assert plan.measures["time"] == part.laid(runs).ticks < alike
    assert check(Plan.from_json(plan.to_json())).ok
    lines = problems(plan, edited(lambda q: q.update(by_run=q["by_run"][:3])))
    assert any("queue: by_run has sizes for 3 runs, there are 4" in line for line in lines), lines
    assert problems(plan, edited(lambda q: q.update(by_run=[])))


def test_sizes_run_by_run_keep_pins() -> None:
    assert four_layers("transfer<=2KiB").part.schedule.queue.weights == 2048
    assert four_layers("queue=due").part.schedule.queue.by_run == ()


def test_an_order_that_finds_no_room() -> None:
    """In 544 bytes only few loads lie beside a step; all as early as may be take more."""
    plan = planned(*STRIPS, banks=34)
    moves = timeline(plan).transfers
    queue = plan.part.schedule.queue
    early = replace(queue, when=tuple(
        one.ready if isinstance(one, Load) else at for one, at in zip(moves, queue.when, strict=True)
    ))  # fmt: skip
    (part,) = PROBLEMS["fusion"].parts_of(plan)
    said = part.contains(replace(plan.part.schedule, queue=early))
    assert any("bytes, there are 544" in line for line in said), said


# ---- pins ------------------------------------------------------------------------------------------------------------


def test_nothing_beside_a_step() -> None:
    plan = planned(*STRIPS, "prefetch=no")
    for one in timeline(plan).transfers:
        assert one.guard == one.due if isinstance(one, Load) else one.limit == one.released + 1
    assert plan.part.measures["time"] > planned(*STRIPS).part.measures["time"]
    assert "each step after its transfers, as pin prefetch=no demands" in show(plan)


def test_so_many_groups_ahead() -> None:
    """Of four layers by themselves the weights of the last may come in the first, or in the third at the earliest."""
    pins = "length=1", "turns=no"
    firsts = []
    for more in ((), ("prefetch<=2",), ("prefetch<=1",), ("prefetch<=0",)):
        plan = planned(*pins, *more, layers=4, banks=200)
        events = plan.timeline
        begun = {one.run: one.step for one in reversed(events) if one.lane == "engine"}
        ahead = [one.run - max(run for run in begun if begun[run] <= one.when) for one in events if one.lane == "load"]
        firsts.append(max(ahead))
        assert check(plan).ok
    assert firsts == [3, 2, 1, 0]


def test_transfers_of_so_many_bytes() -> None:
    """A row of 8 pixels of 4 bytes has 32, a filter 36."""
    small, large = planned(*STRIPS, "transfer<=36"), planned(*STRIPS)
    assert max(one.bytes for one in timeline(small).transfers) == 36
    assert max(one.bytes for one in timeline(large).transfers) > 36
    assert sum(one.bytes for one in timeline(small).transfers) == sum(one.bytes for one in timeline(large).transfers)


def test_loads_in_the_order_of_their_steps() -> None:
    plan = planned(*STRIPS, "queue=due")
    due = [one.due for one in timeline(plan).transfers if isinstance(one, Load)]
    assert due == sorted(due)


@pytest.mark.parametrize(("pin", "said"), [
    ("prefetch=no", "transfers run beside steps, which pin prefetch=no forbids"),
    ("transfer<=36", "transfers of more than 36 bytes, which pin transfer<=36 forbids"),
    ("queue=due", "loads are not in the order of their steps, as pin queue=due demands"),
    ("prefetch<=0", "its guard is"),
])  # fmt: skip
def test_orders_that_break_a_pin(pin: str, said: str) -> None:
    """A queue of a plan without the pin."""
    plan = planned("length=1", "turns=no", layers=4, banks=200)
    (part,) = PROBLEMS["fusion"].parts_of(planned("length=1", "turns=no", pin, layers=4, banks=200))
    schedule = plan.part.schedule
    if pin == "queue=due":  # the loads in the other direction, each in the step that reads it
        moves = timeline(plan).transfers
        loads = [n for n, one in enumerate(moves) if isinstance(one, Load)]
        place = max(n for n in loads if n and moves[n - 1].queue == moves[n].queue and isinstance(moves[n - 1], Load)
                    and moves[n - 1].due < moves[n].due)  # fmt: skip
        order, when = [*schedule.queue.order], [min(at, 1) for at in schedule.queue.when]
        order[place - 1 : place + 1] = order[place - 1 : place + 1][::-1]
        when = [1 if isinstance(one, Load) and one.ready == 1 else at
                for one, at in zip(moves, schedule.queue.when, strict=True)]  # fmt: skip
        schedule = replace(schedule, queue=replace(schedule.queue, order=tuple(order), when=tuple(when)))
    try:
        lines: tuple[str, ...] = part.contains(schedule)
    except InputError as error:
        lines = (str(error),)
    assert any(said in line for line in lines), lines


def test_a_store_beside_a_step_breaks_the_pin() -> None:
    """The first store may end by one step later than the next."""
    plan = planned(*STRIPS, "prefetch=no")
    (part,) = PROBLEMS["fusion"].parts_of(plan)
    queue, moves = plan.part.schedule.queue, timeline(plan).transfers
    at = next(k for k, one in enumerate(moves) if isinstance(one, Store))
    late = tuple(when + (k == at) for k, when in enumerate(queue.when))
    assert part.contains(plan.part.schedule) == ()
    (said,) = part.contains(replace(plan.part.schedule, queue=replace(queue, when=late)))
    assert said == "transfers run beside steps, which pin prefetch=no forbids"


@pytest.mark.parametrize(("pin", "said"), [
    ("prefetch<=x", "prefetch takes no, any or an integer from 0 on, such as prefetch<=1, got"),
    ("prefetch=3", "pin prefetch=3: only prefetch<=N applies"),
    ("transfer>=16", "pin transfer>=16: only transfer<=N applies"), ("transfer<=16KiBs", "takes a positive integer"),
    ("queue=first", "queue takes any or due"),
])  # fmt: skip
def test_pins_that_mean_nothing(pin: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned(pin)


def test_kibibytes() -> None:
    assert planned("transfer<=16KiB").part.measures == planned("transfer<=16384").part.measures


# ---- when all happens ------------------------------------------------------------------------------------------------


def test_events_by_hand() -> None:
    """Steps of 3, 2, 2, 2, 2, 2, 1 and 2 rows of 8 pixels, 9 taps and 8 ticks.

    The steps are busy for 9,216 ticks; what is left until the last of them ends they wait.
    """
    plan = planned(*STRIPS)
    steps = [one for one in plan.timeline if one.lane == "engine"]
    assert [one.what for one in steps] == ["c0", "c1"] * 4
    assert [one.end - one.begin for one in steps] == [rows * 8 * 9 * 8 for rows in (3, 2, 2, 2, 2, 2, 1, 2)]
    assert sum(one.waits for one in steps) == steps[-1].end - 16 * 576
    assert all(bool(one.waits_for) == bool(one.waits) for one in steps)
    moved = [one for one in plan.timeline if one.lane != "engine"]
    assert sum(one.bytes for one in moved) == plan.part.measures["bytes"]
    assert max(one.end for one in plan.timeline) == plan.part.measures["time"]
    assert {one.what for one in moved if one.lane == "load"} == {
        "weights of c0", "weights of c1", "in rows 0-3", "in rows 4-5", "in rows 6-7"}  # fmt: skip
    assert [one.what for one in moved if one.lane == "store"] == [f"c1 rows {k}-{k + 1}" for k in (0, 2, 4, 6)]
    for one in moved:
        (reader,) = [step for step in steps if step.step == one.step]
        assert one.end <= reader.begin if one.lane == "load" else one.begin >= reader.end


def test_what_each_transfer_moves() -> None:
    """In 544 bytes stores stand between loads: a row has 32 bytes, weights 144."""
    plan = planned(*STRIPS, banks=34)
    order = plan.part.schedule.queue.order
    assert order != tuple(sorted(order))
    for one in plan.timeline:
        if one.lane != "engine":
            rows = one.what.rpartition(" ")[2].split("-")
            size = 144 if one.what.startswith("weights") else 32 * (int(rows[1]) - int(rows[0]) + 1)
            assert (one.bytes, one.lane == "store") == (size, one.what.startswith("c1"))


def test_three_layers_by_hand() -> None:
    """docs/fusion.md: 4,608 ticks a step, 1,120 for the input and the result, 1,008 for the weights of a layer."""
    plan = planned("strip=8", layers=3, banks=128)
    alone = planned("strip=8", "prefetch=no", layers=3, banks=128)
    cases = (plan, (2128, 6736, 11344), 2128, 17072), (alone, (2128, 7744, 13360), 6736, 19088)
    for one, begins, ahead, latency in cases:
        steps = [event for event in one.timeline if event.lane == "engine"]
        assert tuple(step.begin for step in steps) == begins
        assert one.part.measures["time"] == latency
        assert [event.begin for event in one.timeline if event.what == "weights of c1"] == [ahead]
    assert next(event for event in plan.timeline if event.what == "c0").bytes == 944


def test_prefetches_are_arrows_by_hand() -> None:
    """docs/fusion.md: beside step 1 (2,128 to 6,736) both weights are loaded, 1,008 ticks each; steps at 6,736, 11,344.

    In one group each load is of the group that runs. With `length=1` the arrows begin in the middle of loads.
    """
    plan = planned("strip=8", "length=1", layers=3, banks=128)
    table = plan_timeline(plan)
    assert [(one.first.what, one.step.what, one.ticks, one.bytes) for one in table.ahead] == [
        ("weights of c1", "c1", 1008, 144), ("weights of c2", "c2", 1008, 144)]  # fmt: skip
    drawn = next(one for one in plan.figures() if one.key == "timeline")
    assert isinstance(drawn, Boxes)
    ns = [(2632, 6736), (3640, 11344)]
    assert [(one.x, one.x_end) for one in drawn.arrows] == [
        (pytest.approx(begin * 0.000125), pytest.approx(end * 0.000125)) for begin, end in ns
    ]
    assert drawn.arrows[0].name == "weights of c1 for step 2, c1"
    assert "144 bytes, 0.126 us of loading hidden, from 0.576 us before it on" in drawn.arrows[0].note
    assert [row[0] for row in drawn.table().rows[-2:]] == [one.name for one in drawn.arrows]
    lines = [line for line in show(plan).splitlines() if "▶" in line]
    assert [line.strip(" ahed")[0] for line in lines] == ["B", "C"]
    # 17,072 ticks are 100 columns: loads begin at 2,128 and 3,136, steps at 6,736 and 11,344
    assert [(line.index("─") - 9, line.index("▶") - 8) for line in lines] == [(12, 39), (18, 66)]
    assert not plan_timeline(planned("strip=8", layers=3, banks=128)).ahead
    assert "▶" not in show(planned("strip=8", "prefetch=no", layers=3, banks=128))


def test_arrows_of_pages_and_of_svg() -> None:
    """A head for each arrow, and a legend that says how many there are of how many."""
    plan = planned("strip=8", "length=1", layers=3, banks=128)
    drawn = next(one for one in plan.figures() if one.key == "timeline")
    assert isinstance(drawn, Boxes)
    bare, page = replace(drawn, arrows=()), interactive.drawn(drawn)
    svg, without = (image(one, "svg").decode() for one in (drawn, bare))
    assert svg.count('id="patch_') - without.count('id="patch_') == 2
    said = "from the first load that is prefetched for a layer to its step"
    assert said in svg
    assert said not in without
    *boxes, arrows = page["data"]  # type: ignore[misc]
    assert arrows["name"] == said
    assert arrows["x"] == [0.329, 0.842, None, 0.455, 1.418, None]
    assert arrows["marker"]["symbol"].count("arrow") == 2
    assert not any(one["showlegend"] for one in boxes)
    assert page["layout"]["showlegend"]  # type: ignore[index, call-overload]
    assert not interactive.drawn(bare)["layout"]["showlegend"]  # type: ignore[index, call-overload]


def test_few_arrows_of_many() -> None:
    """Those that hide the most time."""
    steps = [Event("engine", k, f"c{k}", 1, 100 * k, 100 * k + 100, k + 1) for k in range(40)]
    loads = [Event("load", k, f"w{k}", 1, 100 * k - k - 50, 100 * k - 50, k + 1, k) for k in range(1, 40)]
    table = Timetable(planned(), (*steps, *loads), tuple(f"c{k}" for k in range(40)))
    drawn = next(table.figures())
    assert [one.ticks for one in table.ahead[:2]] == [39, 38]
    assert len(drawn.arrows) == 24
    assert drawn.pointed.endswith("(24 of 39: the most time)")


def test_what_is_shown() -> None:
    plan = planned(*STRIPS)
    said = show(plan)
    lines = dict(line.split(maxsplit=1) for line in said.splitlines() if line.startswith(("engine", "loads", "stores")))
    assert len(lines) == 3
    assert set(lines["engine"]) == {"A", "."}
    table = show(plan, timeline=True)
    assert table.count("weights of c1") >= 1
    assert len([line for line in table.splitlines() if " engine " in line]) == 8
    with pytest.raises(InputError, match="not both"):
        show(plan, "c0..c1", timeline=True)
    layer = solve("lenet5", "scratchpad_64k", problem="tiling", objective="bytes")
    with pytest.raises(InputError, match="no timeline, problem tiling decides no order of transfers"):
        show(layer, timeline=True)


def test_where_the_time_goes() -> None:
    """An array of 16 x 64 lanes has 4 x 4 of them filled; what is not computing is waited for, or stored at the end."""
    plan = planned(*STRIPS)
    (split,) = [one for one in plan_splits(plan, plan.part.measures, {}) if one.measure == "time"]
    parts = {(one.what, one.cause): one.value for one in split.parts}
    steps = [one for one in plan.timeline if one.lane == "engine"]
    assert split.value == sum(parts.values()) == plan.part.measures["time"]
    assert parts["compute", "compute"] + parts["compute", "lanes"] == 16 * 576
    assert parts["compute", "compute"] == 18432 * 8 // (16 * 64)
    assert sum(value for (_, cause), value in parts.items() if cause == "waits") == sum(one.waits for one in steps)
    assert parts["stores", "drain"] == split.value - steps[-1].end
    longest = max(steps, key=lambda one: one.waits)
    assert any(f"(step {longest.step}) for {longest.waits_for}" in one.why for one in split.parts)


def test_the_same_groups_on_another_machine() -> None:
    """Steps of half the time: 17,072 less 3 x 2,304. In 900 bytes strips of 8 rows and all weights find no room."""
    memory = {"ocm_bytes": "2048", "ocm_banks": "128"}
    asked = {"problem": "fusion", "pins": ["strip=8"]}
    plan = solve(chain(4, 4, 4, size=8), "scratchpad_768k", settings=memory, **asked)
    problem, machine = PROBLEMS["fusion"], plan.machine_data
    faster = machine.model_copy(update={"compute": machine.compute.model_copy(update={"cycle_ticks": 4})})
    assert plan.part.measures["time"] == 17072 == problem.elsewhere(plan, machine)
    assert problem.elsewhere(plan, faster) == 17072 - 3 * 2304
    assert problem.elsewhere(plan, machine.model_copy(update={"ocm_bytes": 512, "ocm_banks": 32})) is None
    assert problem.elsewhere(planned(*STRIPS), machine) is None  # bytes do not change
    found = why(plan, time_limit_s=0.01, rivals=False).parts[0]
    (cycles,) = [one for one in found.trials if one.name == "compute.cycle_ticks"]
    assert cycles.value is not None
    assert cycles.value <= 17072 - 3 * 2304


def test_what_would_have_hidden_waits_and_what_a_little_more_is_worth() -> None:
    """docs/fusion.md: 17,072 ticks, of which 656 are for bytes at 8 GB/s that nothing hides; at 9 GB/s these are 584.

    Step 1 waits for all that it needs: its calls alone take too long.
    """
    memory = {"ocm_bytes": "2048", "ocm_banks": "0"}
    plan = solve(chain(4, 4, 4, size=8), "scratchpad_768k", problem="fusion", pins=["strip=8", "length=1"],
                 settings=memory)  # fmt: skip
    (about,) = why(plan, time_limit_s=0.06, rivals=False).parts
    assert about.stalls == (Stall(step=1, layer="c0", what="weights of c0", ticks=2128),)
    (rate,) = [one for one in about.trials if one.per == "GB/s"]
    assert (rate.change, rate.value, rate.saves, rate.amount) == ("9 instead of 8 GB/s", 17_000, 72, 1)
    (room,) = [one for one in about.trials if one.per == "byte"]
    assert (room.change, room.amount) == ("1,024 bytes more on chip", 1024)
    said = "\n".join(about_lines(about, plan.network))
    assert "2,128 ticks before c0 (step 1) for weights of c0: no memory (nothing runs before); no rate" in said
    assert "9 instead of 8 GB/s: 17,000 ticks, 0.42 % less (72.0 ticks a GB/s)" in said


def test_waits_of_a_step_behind_others() -> None:
    """Without prefetch step `c1` waits for its weights, 1,008 ticks: beside step `c0` there is room for them in 2 KiB.

    Their 144 ticks for bytes are less than the wait: no rate hides it.
    """
    plan = planned("strip=8", "length=1", "prefetch=no", banks=128)
    (stall,) = [one for one in PROBLEMS["fusion"].stalls(plan) if one.step == 2]
    assert stall == Stall(step=2, layer="c1", what="weights of c1", ticks=1008, bytes=0)
    (about,) = why(plan, time_limit_s=0.06, rivals=False).parts
    assert "(step 2) for weights of c1: another order of transfers; no rate" in "\n".join(about_lines(about, "chain"))
    assert not [one for one in about.trials if one.per]  # bytes do not change


@pytest.mark.parametrize(("banks", "change", "amount", "per"), [
    (64, "32,768 bytes more on chip", 32, "KiB"), (2, "262,144 bytes more on chip", 256, "KiB"),
    (0, "32,768 bytes more on chip", 32, "KiB"),
])  # fmt: skip
def test_a_little_more_of_a_machine(banks: int, change: str, amount: float, per: str) -> None:
    """A sixteenth of 512 KiB in whole banks; a GB/s more than 8 / 3: 375 ps a byte become 375 / 1.375."""
    machine = load_machine(
        "scratchpad_768k", {"ocm_bytes": "524288", "ocm_banks": str(banks), "transfer.byte_ticks": "3"}
    )
    question = replace(PROBLEMS["fusion"].question(planned()), machine=machine)
    room, rate = of_more(question)
    assert (room.change, room.amount, room.per) == (change, amount, per)
    assert (room.machine.bank_bytes, room.machine.ocm_bytes) == (machine.bank_bytes, 524_288 + amount * 1024)
    assert (rate.change, rate.amount, rate.per, rate.finer) == ("3.667 instead of 2.667 GB/s", 1, "GB/s", 11)
    prices = rate.machine.transfer.byte_ticks, rate.machine.transfer.call_ticks, rate.machine.compute.cycle_ticks
    assert prices == (3 * 11 * 1000 // 1375, 11 * 800, 11 * 8)


def test_figures_over_time() -> None:
    plan = planned(layers=4, banks=40)
    boxes, memory = (one for one in plan.figures() if one.key in ("timeline", "memory-time"))
    assert not boxes.empty
    assert not memory.empty
    lanes = {row[-2] for row in boxes.table().rows}
    assert lanes == {"engine", "loads", "stores"}


def test_queues_are_frozen() -> None:
    """They are part of what is looked up."""
    one, two = Queue(1, None, (0,), (1,)), Queue(1, None, (0,), (2,))
    assert one != two
    assert len({NetworkRun((), one), NetworkRun((), two), NetworkRun(())}) == 3
    assert not isinstance(timeline(planned(*STRIPS)).transfers[0], Store)


# ---- time and bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("axes", "network", "settings", "count"), [
    pytest.param("time,bytes", chain(8, 4, 8, 4, size=10, taps=3), {"ocm_bytes": "1024", "ocm_banks": "64"}, 2,
                 marks=pytest.mark.slow),
    ("bytes,time", chain(16, 4, 16, 4, size=8, taps=1), {"ocm_bytes": "600", "ocm_banks": "0"}, 1),
])  # fmt: skip
def test_plans_between_the_least_time_and_the_fewest_bytes(
    axes: str, network: Network, settings: dict[str, str], count: int
) -> None:
    """From the plan of the least time to one of the fewest bytes, each better than the one before it in one of them."""
    asked = {"problem": "fusion", "settings": settings}
    front = pareto(network, "scratchpad_768k", axes=axes, **asked)
    points = [(point.values["time"], point.values["bytes"]) for point in front.parts[0].points]
    points = points[:: 1 if axes == "time,bytes" else -1]
    assert len(points) == count
    assert [bytes_ for _, bytes_ in points] == sorted({bytes_ for _, bytes_ in points}, reverse=True)
    assert [ticks for ticks, _ in points] == sorted({ticks for ticks, _ in points})
    fastest, fewest = (solve(network, "scratchpad_768k", objective=name, **asked) for name in ("time", "bytes"))
    assert points[0][0] == fastest.part.measures["time"]
    assert points[-1][1] == fewest.part.measures["bytes"]
    assert points[-1][0] <= fewest.part.measures["time"]
    assert all(check(plan).ok for plan in front.plans)
    assert not front.proven


def test_chords_of_a_front() -> None:
    """Of a chain in 2 KiB: every plan between lies below the chord of its neighbours, or is one of them."""
    plan = planned(layers=4, banks=60)
    (part,) = PROBLEMS["fusion"].parts_of(plan)
    assert isinstance(part, FusionPart)
    found = part.front(ENDLESS)
    points = sorted({(part.price(runs).measures["time"], part.price(runs).measures["bytes"]) for runs in found})
    assert min(ticks for ticks, _ in points) == part.price(found[0]).measures["time"]
    assert min(size for _, size in points) == part.price(found[1]).measures["bytes"] == plan.part.measures["bytes"]
    assert all(part.contains(runs) == () for runs in found)


def test_axes_that_have_no_front() -> None:
    with pytest.raises(InputError, match="fronts of problem fusion are of bytes,macs, time,bytes"):
        pareto("lenet5", "scratchpad_64k", problem="fusion", axes="time,macs", settings={"ocm_banks": "16"})
