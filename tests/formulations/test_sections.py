"""Latency in sections: gates, makespans and cuts by hand, everything against all assignments and orders, faults."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from formulations.clock import ENDLESS, Clock
from formulations.mapping import series as cutting
from formulations.mapping import series as searching
from formulations.mapping.latency import latency_of, usual
from formulations.mapping.problem import MappingPart
from formulations.mapping.series import Section, Series, Tables, gates, sections, settled, swaps
from formulations.mapping.space import Limits, Mapping, Schedule, Split
from formulations.problem import Report, Stats
from solver import check, solve
from solver.search import driver_cp_sat
from tests.effort import tries
from tests.mapping_answers import answer, instance

Times = Sequence[Sequence[int | None]]


def driven(series: Series, clock: Clock = ENDLESS, seconds: float | None = None) -> tuple[Schedule | None, int, Stats]:
    """Have the models of a search solved, with nothing after it."""
    stats: Stats = {}
    steps = settled(series, clock, stats)
    try:
        made = next(steps)
        while True:
            said = driver_cp_sat.solve(made.model, seconds, turns=True)
            assert made.own_bound
            assert made.decode is not None
            made = steps.send(Report(made.decode(said.solver) if said.solved else None, said.bound))
    except StopIteration as end:
        schedule, bound = end.value
        return schedule, bound, stats


# ---- by hand ---------------------------------------------------------------------------------------------------------

#: Two forks one after the other: 0 -> 1, 2 -> 3 -> 4, 5 -> 6, and an edge 3 -> 6 past the second one.
FORKS = instance(
    [[2, 2], [5, 5], [5, 5], [2, 2], [5, 5], [5, 5], [2, 2]],
    [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (3, 6), (4, 6), (5, 6)], 1,
)  # fmt: skip


def test_gates_and_sections_by_hand() -> None:
    assert gates(FORKS.graph) == [0, 3, 6]
    assert sections(FORKS) == [
        Section(range(3), (), (3,)),
        Section(range(3, 6), (3,), (6,)),
        Section(range(6, 7), (6,), ()),
    ]
    side_by_side = instance([[1, 1], [1, 1]], [])
    assert gates(side_by_side.graph) == []
    assert sections(side_by_side) == [Section(range(2), (), ())]


def test_an_edge_past_a_gate_is_known_on_both_sides() -> None:
    """0 -> 1 -> 2 and 0 -> 2: what 0 takes depends on the place of 2, which the section of 1 hands on."""
    chain = instance([[1, 1]] * 3, [(0, 1), (1, 2), (0, 2)], 3)
    first, middle, last = sections(chain)
    assert (first.given, first.readers) == ((0,), (1, 2))
    assert (middle.given, middle.readers) == ((1,), (2,))
    assert (last.given, last.readers) == ((2,), ())


def test_two_forks_by_hand() -> None:
    """On one core 26. A fork side by side takes 2 + 1, 5, and 1 to copy back: with its gate 3 + 5 + 1 = 9 in place of
    12, for the first one and for the second one; then the last task: 9 + 9 + 2 = 20.
    """
    series = Series(FORKS)
    schedule, bound, _ = driven(series)
    assert schedule is not None
    assert (bound, latency_of(FORKS, schedule)) == (20, 20)
    for engine in ("sections", "auto", "cp-sat", "milp", "exhaustive"):
        said = answer(engine, FORKS, "latency")
        assert (said.status, said.bound) == ("OPTIMAL", 20), engine


def test_a_section_by_the_places_of_its_ends() -> None:
    """The second fork: both gates on one core 9. From core 0 to core 1: the copy to 6 takes 1 more of task 3 beside
    that to a branch, and a branch on core 0 copies back: 2 + 2, 5 + 1 make 10. Equal cores make four ends two.
    """
    series = Series(FORKS)
    driven(series)
    part = series.parts[1]
    assert part.at.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    for n in range(4):
        found = series.known(part, n)
        if found.least < found.most:
            assert searching._tried(part.excerpt(n), found)
        part.learn(n, found)
    assert part.low.tolist() == part.high.tolist() == [9, 10, 10, 9]
    assert [int(n) for n in part.chief] == [0, 1, 1, 0]
    assert [swap.processors for swap in swaps(FORKS, part.section)] == [(0, 1), (1, 0)]


def test_what_tells_processors_apart() -> None:
    """A time, a place that a task cannot be at, or a copy."""
    (one, *_) = sections(FORKS)
    other = replace(FORKS, times=((2, 3), *FORKS.times[1:]))
    assert len(swaps(other, one)) == 1
    copies = FORKS.copies.copy()
    copies[0, 0, 1] = 2
    assert len(swaps(replace(FORKS, copies=copies), one)) == 1
    assert len(swaps(replace(FORKS, host=(0,)), one)) == 1
    assert len(swaps(instance([[1] * 4] * 2, []), Section(range(2), (), ()))) == 24


def test_sections_that_take_no_time() -> None:
    """No latency is below 1, but a section may take 0 ticks; whether it does is known."""
    made = instance([[0, 0], [0, 1], [1, 0], [0, 0]], [(0, 1), (0, 2), (1, 3), (2, 3)], 0)
    series = Series(made)
    schedule, bound, _ = driven(series)
    assert schedule is not None
    assert (bound, series.path()[0], latency_of(made, schedule)) == (1, 0, 1)


def test_chains_ask_no_solver() -> None:
    made = solve("mobilenet_v2", "galaxy_s9", objective="latency", pins=["cpu_config=2,2"], problem="mapping")
    assert (made.status, made.bound) == ("OPTIMAL", 42_797)
    assert (made.part.stats["sections"], made.part.stats["sections_modelled"]) == (67, 0)
    assert check(made).problems == ()


@pytest.mark.slow(2)
def test_a_wide_network_is_proven() -> None:
    """One section of ShuffleNet asks CP-SAT; the plan checks."""
    made = solve("shufflenet_1x", "galaxy_s9", objective="latency", pins=["cpu_config=2,2"], problem="mapping")
    assert (made.status, made.bound) == ("OPTIMAL", 35_381)
    assert check(made).problems == ()


@pytest.mark.slow(10)
@pytest.mark.parametrize(
    ("cores", "latency"), [("4", 131_473), ("2,2", 142_445), ("1,1,1,1", 157_506)], ids=["4", "2,2", "1,1,1,1"]
)
def test_inception_is_proven(cores: str, latency: int) -> None:
    """The model of all tasks, in CP-SAT, proves the figure of (2,2) too, in minutes."""
    made = solve("inception_v3", "galaxy_s9", objective="latency", pins=[f"cpu_config={cores}"], problem="mapping")
    assert (made.status, made.bound) == ("OPTIMAL", latency)
    assert check(made).problems == ()


# ---- against everything ----------------------------------------------------------------------------------------------


def drawn(rng: random.Random, *, divided: bool) -> Mapping:
    """A few tasks, some of them gates; equal cores or not, tasks that cannot run somewhere, ticks of nothing."""
    cores, gpus = (2, rng.randint(0, 1)) if divided else (rng.randint(1, 4), rng.choice((0, 0, 1)))
    tasks, number = rng.randint(2, 4 if divided else 6), cores + gpus
    dense, most, alike = rng.choice((0.15, 0.3, 0.6)), rng.choice((1, 3, 12, 30)), rng.randrange(2) == 0
    edges = {(i, j) for j in range(tasks) for i in range(j) if rng.random() < dense}
    for g in range(tasks):
        if rng.randrange(5) < 2:
            edges |= {(i, g) for i in range(g) if not any((i, k) in edges for k in range(i + 1, g + 1))}
            edges |= {(g, j) for j in range(g + 1, tasks) if not any((k, j) in edges for k in range(g, j))}
    times: list[list[int | None]] = []
    for _ in range(tasks):
        one = rng.randint(0, most)
        row: list[int | None] = [one if alike else rng.randint(0, most) for _ in range(cores)]
        row += [rng.randint(0, most) if rng.randrange(4) else None for _ in range(gpus)]
        if not alike and rng.randrange(5) == 0:
            row[1:2] = [None] * len(row[1:2])
        times.append(row)
    scale, kinds = rng.choice((0, 2, 5, 10)), alike or rng.randrange(2)

    def copy() -> np.ndarray:
        table = np.array([[[rng.randint(0, scale) for _ in range(number)] for _ in range(number)] for _ in edges])
        table = table.reshape(len(edges), number, number).astype(np.int64)
        if kinds:  # by whether cores or accelerators are at the ends
            kind = [0] * cores + [number - 1] * gpus
            table = table[:, kind][:, :, kind]
        table[:, range(number), range(number)] = 0
        return table

    split = None
    if divided:
        shares = rng.randint(2, 3)
        some = np.stack([copy() for _ in range(shares - 1)], axis=1)
        split = Split(shares, frozenset(i for i in range(tasks) if rng.randrange(2)), rng.randint(0, 2), some)
    host = tuple(range(cores if rng.randrange(4) else rng.randint(1, cores)))
    return instance(times, sorted(edges), copy(), len(times[0]) - gpus, split=split, host=host or ())


@pytest.mark.parametrize("divided", [False, True], ids=["whole", "divided"])
@pytest.mark.parametrize("seed", range(5))
def test_sections_hold_the_best_of_all_schedules(monkeypatch: pytest.MonkeyPatch, seed: int, divided: bool) -> None:
    """With nothing after them: bound, schedule and both tables agree with all orders of all assignments."""
    for number in range(tries(10, 40)):
        rng = random.Random(f"sections {seed} {number} {divided}")
        made = drawn(rng, divided=divided)
        monkeypatch.setattr(searching, "_FEW", rng.choice((0, 20_000)))
        states, ends = rng.choice(((2_000, 100_000), (3, 20), (9, 30)))
        monkeypatch.setattr(cutting, "_STATES", states)
        monkeypatch.setattr(cutting, "_ENDS", ends)
        best, series = answer("exhaustive", made, "latency"), Series(made)
        for _ in range(rng.choice((0, 0, 2))):
            known = usual(made, tuple(map(rng.choice, made.able)))
            series.start(known)
            assert series.path()[0] <= series.path(high=True)[0] <= latency_of(made, known), number
        schedule, bound, _ = driven(series)
        assert schedule is not None
        assert bound == best.bound == latency_of(made, schedule), number
        assert bound == max(1, series.path(high=True)[0]), number
        part = MappingPart("n", {(): made}, alone=True)
        said = part.named(schedule, ())
        assert (part.contains(said), part.replay(said).faults) == ((), ()), number


@pytest.mark.parametrize("seed", range(tries(10, 40)))
def test_limits_are_those_of_the_whole_schedule(seed: int) -> None:
    """Of latency, period and energy, near what the fastest schedule has."""
    rng = random.Random(f"limits {seed}")
    made = drawn(rng, divided=seed % 4 == 0)
    best = answer("exhaustive", made, "latency")
    price = made.price(best.schedule.at)
    limits = rng.choice((
        Limits(latency=max(1, best.bound - rng.randint(0, 1))), Limits(period=max(1, price.period - rng.randint(0, 3))),
        Limits(energy=price.energy - rng.randint(0, 3)),
    ))  # fmt: skip
    wanted = answer("exhaustive", made, "latency", limits)
    for engine in ("sections", "auto"):
        said = answer(engine, made, "latency", limits)
        assert (said.status, said.bound) == (wanted.status, wanted.bound), engine


@pytest.mark.parametrize("aim", ["period", "energy"])
def test_other_objectives_are_decided_as_by_cp_sat(aim: str) -> None:
    said, other = answer("sections", FORKS, aim), answer("cp-sat", FORKS, aim)
    assert (said.status, said.bound) == (other.status, other.bound)


def test_bounds_of_ends_are_bounds() -> None:
    """Of all ends of all sections, against a search of each."""
    for number in range(tries(15, 60)):
        made = drawn(random.Random(f"bounds {number}"), divided=number % 3 == 0)
        series, tables = Series(made), Tables(made)
        for part in series.parts:
            if len(part.section.tasks) == 1:
                continue
            least = tables.least(part.section, part.at)
            for n in range(0, len(part.at), 1 + len(part.at) // 8):
                found = series.known(part, n)
                if found.least < found.most:
                    assert searching._tried(part.excerpt(n), found)
                assert least[n] <= found.least == found.most, number


# ---- when the time is up ---------------------------------------------------------------------------------------------


class Late(Clock):
    """A clock that is over from the beginning."""

    @property
    def over(self) -> bool:
        return True


@pytest.mark.parametrize("seed", [13, 45, 55])
def test_without_time_there_is_a_schedule_and_a_bound(seed: int) -> None:
    """Networks whose best schedule is not found without a search."""
    made = drawn(random.Random(f"late {seed}"), divided=False)
    schedule, bound, stats = driven(Series(made), Late())
    assert schedule is not None
    assert stats["sections_tried"] == 0
    assert bound <= answer("exhaustive", made, "latency").bound < latency_of(made, schedule)


def test_ctrl_c_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first model is interrupted: no other one is asked."""
    monkeypatch.setattr(searching, "_FEW", 0)
    stats: Stats = {}
    steps = settled(Series(FORKS), ENDLESS, stats)
    next(steps)
    stats["interrupted"] = True
    with pytest.raises(StopIteration) as end:
        steps.send(Report(None, 0))
    schedule, bound = end.value.value
    assert bound <= 20 <= latency_of(FORKS, schedule)


def test_ctrl_c_between_models_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(searching, "_tried", stopped)
    schedule, bound, stats = driven(Series(FORKS))
    assert schedule is not None
    assert bound <= 20 <= latency_of(FORKS, schedule)
    assert stats["interrupted"]


def test_a_model_says_nothing_of_the_whole() -> None:
    """What is proven of all sections is no bound of one: without time left the search has both, apart."""
    said = answer("sections", FORKS, "latency", seconds=0.001)
    assert said.bound <= 20


# ---- faults ----------------------------------------------------------------------------------------------------------


def _wrong(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether some drawn case shows it."""
    for number in range(150):
        made = drawn(random.Random(f"faults {number}"), divided=number % 4 == 0)
        best = answer("exhaustive", made, "latency")
        try:
            schedule, bound, _ = driven(Series(made))
        except Exception:  # noqa: BLE001 - a fault may break anything
            return True
        if schedule is None or bound != best.bound or latency_of(made, schedule) != bound:
            return True
    return False


def test_a_gate_that_is_none_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "gates", lambda graph: list(range(len(graph.tasks))))
    assert _wrong(monkeypatch)


def test_cores_that_are_not_equal_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_alike", lambda mapping, *_: bool(mapping.times))
    assert _wrong(monkeypatch)


def test_copies_past_a_section_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Tables.excerpt

    def lost(self: Tables, section: Section, at: Sequence[int]) -> cutting.Excerpt:
        made = honest(self, section, at)
        times = tuple(self.mapping.times[i] for i in section.tasks)
        return replace(made, times=times, onward={})

    monkeypatch.setattr(Tables, "excerpt", lost)
    assert _wrong(monkeypatch)


def test_bounds_that_are_too_high_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Tables.least
    monkeypatch.setattr(Tables, "least", lambda self, section, at: honest(self, section, at) + 1)
    assert _wrong(monkeypatch)
