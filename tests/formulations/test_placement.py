"""Placement: optima by hand, every engine against brute force, each rule of the search left out and missed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from ortools.sat.python import cp_model

from formulations.clock import Clock
from formulations.pins import Pins, parse_pins
from formulations.placement import explore, problem, search
from formulations.placement import packing as columns
from formulations.placement.cp_sat import master
from formulations.placement.instance import GREEDY
from formulations.placement.packing import Block, Cut, Packing
from formulations.placement.problem import MemoryUse, PlacementFormulation, PlacementPart
from formulations.placement.search import fit, least_peak
from formulations.problem import Goal
from hwmodels.schedule import Place, Placement
from instances.errors import InputError
from instances.load import load_machine
from instances.network.buffers import Buffer, Buffers, Gap, Memory
from solver.search.loop import Answer, decide_part
from solver.uses.bench.placement import hard
from tests.adversary.placement import Case, Row, least_of
from tests.effort import tries

PROBLEM = PlacementFormulation()
ENGINES = ("search", "cp-sat", "milp", "milp-cbc")


def solved(given: Buffers, engine: str, *objectives: str, pins: Sequence[str] = ()) -> Answer:
    part = PlacementPart(given, parse_pins(pins, PROBLEM.decisions))
    said = decide_part(PROBLEM, part, objectives, engine, Clock.of(60))
    if said.schedule is not None:
        walked = part.replay(said.schedule)
        assert (walked.faults, part.contains(said.schedule)) == ((), ())
        priced = part.price(said.schedule)
        assert walked.measures == priced.measures
        assert all(sum(few.values()) == priced.measures[name] for name, few in priced.terms.items())
        (piece,) = part.pieces(Goal("bytes"))
        assert all(piece.floor(Goal(name)) <= value for name, value in priced.measures.items())
    return said


def few(*buffers: Buffer, sizes: Sequence[int] = (10,), conflicts: Sequence[tuple[str, str]] = ()) -> Buffers:
    memories = tuple(Memory(name=f"m{k}", bytes=size) for k, size in enumerate(sizes))
    return Buffers(name="few", buffers=buffers, memories=memories, conflicts=tuple(conflicts))


# ---- by hand ---------------------------------------------------------------------------------------------------------

#: Of the docstring: a and b take 10 bytes at time 0; at time 1 b has lost its last 4, where c lies.
SHRINKS = (
    Block("a", 0, (4, 4)).buffer(), Block("b", 0, (6, 2)).buffer(), Block("c", 1, (4,)).buffer(),
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_buffer_that_loses_bytes_leaves_room(engine: str) -> None:
    said = solved(few(*SHRINKS, sizes=(20,)), engine, "peak")
    assert (said.status, said.values["peak"]) == ("OPTIMAL", 10)


def test_how_full_memories_are() -> None:
    """a from 0 to 3 and b from 4 to 9 at time 0; c from 8 to 11 at time 1, beside 4 of a and 2 of b; 15 may be used."""
    part = PlacementPart(few(*SHRINKS, sizes=(20, 5)), parse_pins(["cap<=15"], PROBLEM.decisions))
    made = Placement((Place("a", "m0", 0), Place("b", "m0", 4), Place("c", "m0", 8)))
    assert part.figures_of(made, part.replay(made)) == (MemoryUse("m0", 15, 12, 10), MemoryUse("m1", 5, 0, 0))


def test_bytes_of_a_block_by_time() -> None:
    """Times of one size one after the other are one gap, those on both sides of a full time are two."""
    gaps = [Gap(lower=1, upper=2), Gap(lower=3, upper=4)]
    assert list(Block("a", 0, (10, 0, 10, 0)).buffer().gaps) == gaps
    gaps = [Gap(lower=3, upper=5, window=(0, 2)), Gap(lower=5, upper=6)]
    assert list(Block("b", 2, (4, 2, 2, 0, 4)).buffer().gaps) == gaps


def test_the_least_that_leaves_is_counted_by_bytes_in_parts() -> None:
    """101 bytes in 51: half of the 100 bytes, at 12 for all, are 6; the byte at 10 is dearer. All 100 have to leave."""
    pair = [Buffer(name=f"b{n}", lower=0, upper=1, size=n, spill=price) for n, price in ((1, 10), (100, 12))]
    assert PlacementPart(few(*pair, sizes=(51,)), Pins()).instance.least_spill == 6
    assert solved(few(*pair, sizes=(51,)), "search", "bytes").values["bytes"] == 12


@pytest.mark.parametrize("engine", ENGINES)
def test_what_does_not_fit_leaves_by_bytes_moved(engine: str) -> None:
    """6 + 5 bytes at one time in 10: all heuristics keep the larger one for 13, a byte more than to have it leave."""
    one = Buffer(name="a", lower=0, upper=2, size=6, spill=12)
    two = Buffer(name="b", lower=1, upper=3, size=5, spill=13)
    said = solved(few(one, two), engine, "bytes", "peak")
    assert (said.status, said.values["bytes"], said.values["peak"]) == ("OPTIMAL", 12, 5)
    assert solved(few(one, two), engine, "bytes", pins=["spill=no"]).status == "INFEASIBLE"


@pytest.mark.parametrize("engine", ENGINES)
def test_memories_are_preferred(engine: str) -> None:
    """Both would rather lie in m0 with 8 bytes; the 5 bytes of b are displaced, not the 6 of a."""
    rather = [
        Buffer(name=name, lower=0, upper=1, size=size, memories=("m0", "m1")) for name, size in (("a", 6), ("b", 5))
    ]
    said = solved(few(*rather, sizes=(8, 8)), engine, "preference")
    assert (said.status, said.values["preference"]) == ("OPTIMAL", 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_conflicts_take_a_bank_each(engine: str) -> None:
    """Two of 3 bytes fit in 6; sharing no bank of 4 bytes they take 7, as the second begins at 4."""
    pair = [Buffer(name=name, lower=0, upper=1, size=3) for name in "ab"]
    given = Buffers(
        name="pair", buffers=tuple(pair), memories=(Memory(name="m", bytes=12, bank_bytes=4),), conflicts=(("a", "b"),)
    )
    assert solved(given, engine, "peak").values["peak"] == 7
    assert solved(given.model_copy(update={"conflicts": ()}), engine, "peak").values["peak"] == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_conflict_is_of_what_is_still_taken(engine: str) -> None:
    """When b comes, a has but its last 2 bytes of 6, in the second bank of 4: b lies in the first one, peak 6."""
    gaps = (Gap(lower=1, upper=2, window=(4, 6)),)
    pair = (Buffer(name="a", lower=0, upper=2, size=6, gaps=gaps), Buffer(name="b", lower=1, upper=2, size=2))
    memory = Memory(name="m", bytes=16, bank_bytes=4)
    given = Buffers(name="pair", buffers=pair, memories=(memory,), conflicts=(("a", "b"),))
    assert solved(given, engine, "peak").values["peak"] == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_buffers_one_after_the_other_share_a_place(engine: str) -> None:
    """Three of 4 bytes, from time 1, 2 and 3 on, one step each."""
    turns = (Buffer(name=name, lower=k, upper=k + 1, size=4) for k, name in enumerate("abc", 1))
    assert solved(few(*turns, sizes=(12,)), engine, "peak").values["peak"] == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_alignment_and_fixed_addresses(engine: str) -> None:
    """a of 3 bytes is at 2, so b of 2 bytes below it, and c (a multiple of 4) not at 4 but at 8."""
    given = few(
        Buffer(name="a", lower=0, upper=1, size=3, offset=2), Buffer(name="b", lower=0, upper=1, size=2),
        Buffer(name="c", lower=0, upper=1, size=1, alignment=4), sizes=(12,),
    )  # fmt: skip
    said = solved(given, engine, "peak")
    assert (said.status, said.values["peak"]) == ("OPTIMAL", 7)  # c at 0, b at 5
    both = replace_buffer(given, "c", size=3)
    assert solved(both, engine, "peak").values["peak"] == 11  # c at 8
    like = (Buffer(name=name, lower=0, upper=1, size=6, alignment=4) for name in "ab")
    assert solved(few(*like, sizes=(20,)), engine, "peak").values["peak"] == 14  # at 0 and 8: 6 is no multiple of 4


def replace_buffer(given: Buffers, name: str, **change: int) -> Buffers:
    buffers = tuple(b.model_copy(update=change) if b.name == name else b for b in given.buffers)
    return given.model_copy(update={"buffers": buffers})


def test_a_cap_is_a_cap() -> None:
    assert solved(few(Buffer(name="a", lower=0, upper=1, size=10)), "cp-sat", "peak").values["peak"] == 10
    assert solved(few(*SHRINKS, sizes=(20,)), "search", "bytes", pins=["cap<=10"]).status == "OPTIMAL"
    said = PlacementPart(few(*SHRINKS, sizes=(20,)), parse_pins(["cap<=9"], PROBLEM.decisions))
    assert said.explain() == ("10 bytes are alive at time 0, there are 9: b 6, a 4",)
    assert decide_part(PROBLEM, said, ["bytes"], "search").status == "INFEASIBLE"


#: At most 6 bytes at one time, and they fit in 6; with a at address 2 they do not, nor in 7.
TIGHT = (
    Buffer(name="a", lower=0, upper=2, size=2), Buffer(name="b", lower=0, upper=1, size=2),
    Buffer(name="c", lower=0, upper=1, size=2), Buffer(name="d", lower=1, upper=3, size=4),
    Buffer(name="e", lower=2, upper=4, size=2), Buffer(name="f", lower=3, upper=4, size=2),
    Buffer(name="g", lower=3, upper=4, size=2),
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_more_than_the_load_may_be_needed(engine: str) -> None:
    """a and e are the bottom or the top of 6 beside d (4 bytes in one piece); in the middle of 6 neither has room."""
    middle = [b.model_copy(update={"offset": 2}) if b.name in "a" else b for b in TIGHT]
    given = few(*middle, sizes=(12,))
    assert Packing(given.buffers, {}, 0).least == 6
    said = solved(given, engine, "peak")
    assert (said.status, said.values["peak"]) == ("OPTIMAL", 8)  # d from 4 to 8


@pytest.mark.parametrize("sizes", [(12,), (7,), (8, 2), (6, 4), (7, 1)])
def test_models_go_on_where_the_search_gives_up(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    """TIGHT with a in the middle takes 8 bytes, or 6 where d has a memory of 4."""
    for name in ("_NODES", "_SHARED_NODES"):
        monkeypatch.setattr(problem, name, 1)
    middle = few(*(b.model_copy(update={"offset": 2}) if b.name == "a" else b for b in TIGHT), sizes=sizes)
    for objective in ("peak", "bytes"):
        said, known = solved(middle, "search", objective), solved(middle, "cp-sat", objective)
        assert (said.status, said.values.get(objective)) == (known.status, known.values.get(objective))
        assert (said.status == "INFEASIBLE") == (sizes[0] == 7)


def test_infeasible_says_why() -> None:
    wide = few(Buffer(name="a", lower=0, upper=1, size=11, memories=("m0",)), sizes=(10, 20))
    assert PlacementPart(wide, Pins()).explain() == ("buffer a needs 11 bytes, there are 10 in m0",)
    middle = few(*(b.model_copy(update={"offset": 2}) if b.name == "a" else b for b in TIGHT), sizes=(7,))
    said = decide_part(PROBLEM, PlacementPart(middle, Pins()), ["bytes"], "search")
    assert said.status == "INFEASIBLE"
    assert PlacementPart(middle, Pins()).explain() == (
        "no addresses for 7 buffers in 7 bytes, though at most 6 are alive at one time",
    )


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([("a", "m0", 6)], ""), ([("a", "m0", 7)], "reaches beyond 10 bytes of m0"), ([("c", "m0", 2)], ""),
        ([("c", "m0", 1)], "it has to at 2"), ([("x", "m0", 0)], "no such buffer"), ([("a", "m9", 0)], "no such"),
        ([("a", "m0", 0), ("a", "m0", 4)], "placed twice"), ([("b", "m0", 4)], "m0 is none of its memories"),
    ],
)  # fmt: skip
def test_wrong_placements_are_refused(places: list[tuple[str, str, int]], said: str) -> None:
    a, b = Buffer(name="a", lower=0, upper=1, size=4), Buffer(name="b", lower=0, upper=1, size=4, memories=("m1",))
    part = PlacementPart(few(a, b, Buffer(name="c", lower=0, upper=1, size=1, offset=2), sizes=(10, 10)), Pins())
    made = Placement(tuple(Place(*row) for row in places))
    try:
        part.price(made)
        found = " ".join(part.contains(made))
    except InputError as error:
        found = str(error)
    assert (said in found, bool(found)) == (True, bool(said))


def test_machines_without_addresses_and_wrong_pins_are_refused() -> None:
    bare = few(*SHRINKS).model_copy(update={"memories": ()})
    with pytest.raises(InputError, match="problem placement needs a memory with addresses"):
        PROBLEM.read(bare, load_machine("midap"), Pins(), None)
    with pytest.raises(InputError, match=r"pin cap=3: write cap<=N, spill=yes or spill=no"):
        PROBLEM.read(few(*SHRINKS), load_machine("midap"), parse_pins(["cap=3"], PROBLEM.decisions), None)
    strange = bare.model_copy(update={"buffers": (Buffer(name="a", lower=0, upper=1, size=1, memories=("w",)),)})
    with pytest.raises(InputError, match="on machine scratchpad_24k: buffer a: memory w: there is ocm"):
        PROBLEM.read(strange, load_machine("scratchpad_24k"), Pins(), None)


def test_what_a_machine_reserves_is_taken() -> None:
    machine = load_machine("scratchpad_24k", {"ocm_bytes": "30", "reserved_bytes": "20"})
    (part,) = PROBLEM.read(few(*SHRINKS).model_copy(update={"memories": ()}), machine, Pins(), None)
    said = decide_part(PROBLEM, part, ["peak"], "search")
    assert (said.status, said.values["peak"]) == ("OPTIMAL", 30)


@pytest.mark.parametrize("name", GREEDY)
def test_heuristics_are_legal_and_prove_nothing_but_floors(name: str) -> None:
    said = solved(few(*SHRINKS, sizes=(20,)), name, "peak")
    assert said.values["peak"] >= 10
    assert said.bound == 10  # the load


# ---- the search, against all addresses -------------------------------------------------------------------------------


def drawn(rng: random.Random) -> tuple[Packing, int]:
    """Up to six buffers in up to nine bytes: bytes by time, alignments, fixed addresses, banks."""
    case = Case.drawn(rng)
    flat = tuple(
        row._replace(gap=row.gap and (*row.gap[:2], 0, row.gap[3]), memories=(), spill=-1) for row in case.rows
    )
    given = replace(case, rows=flat).given
    pairs = [(int(a[1:]), int(b[1:])) for a, b in given.conflicts]
    partners = {k: [j for i, j in (*pairs, *((b, a) for a, b in pairs)) if i == k] for k in range(len(flat))}
    return Packing(given.buffers, partners, rng.choice((1, 2, 3, 4))), rng.randint(3, 9)


def fits(packing: Packing, capacity: int) -> bool:
    """By trying all addresses."""
    rooms = [
        [a for a in range(capacity - b.size + 1) if a % b.alignment == 0 and b.offset in (None, a)]
        for b in packing.buffers
    ]
    return any(legal(packing, addresses) for addresses in product(*rooms))


def legal(packing: Packing, addresses: Sequence[int]) -> bool:
    for i, one in enumerate(packing.buffers):
        for j in range(i):
            two, bank = packing.buffers[j], packing.bank_bytes if j in packing.partners[i] else 1
            for e, f in product(one.extents(), two.extents()):
                if e.lower < f.upper and f.lower < e.upper:
                    mine = range((addresses[i] + e.low) // bank, (addresses[i] + e.high - 1) // bank + 1)
                    its = range((addresses[j] + f.low) // bank, (addresses[j] + f.high - 1) // bank + 1)
                    if mine.start < its.stop and its.start < mine.stop:
                        return False
    return True


def disagreements(number: int) -> int:
    """How often the search is wrong."""
    wrong = 0
    for k in range(number):
        packing, capacity = drawn(random.Random(f"fit {k}"))
        said = fit(packing, capacity, threads=1)
        wrong += (said.status == "fits") != fits(packing, capacity)
        wrong += said.status == "fits" and not legal(packing, said.addresses)
    return wrong


def test_the_search_finds_addresses_if_there_are_some() -> None:
    assert disagreements(tries(250, 2_500)) == 0


def test_a_single_partner_takes_its_bank_to_the_end() -> None:
    """b has to lie at 8, in the first bank of 16: a, of 4 bytes, comes after it in the second one."""
    a, b = Buffer(name="a", lower=0, upper=1, size=4), Buffer(name="b", lower=0, upper=1, size=8, offset=8)
    assert fit(Packing([a, b], {0: [1], 1: [0]}, 16), 20).addresses == (16, 8)


def test_compiled_or_not_the_search_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same nodes, and so the same addresses."""
    cases = [drawn(random.Random(f"plain {k}")) for k in range(15)]
    compiled = [fit(packing, capacity, threads=1) for packing, capacity in cases]
    for name in ("lowest", "put", "take", "grown", "judge", "sides", "choices", "explore"):
        function = getattr(explore, name)
        monkeypatch.setattr(explore, name, getattr(function, "py_func", function))
    monkeypatch.setattr(search, "compiled", lambda: False)
    assert [fit(packing, capacity, threads=1) for packing, capacity in cases] == compiled


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_do_not_change_the_answer(threads: int) -> None:
    packing = Packing(perfect(5, 40, 60, 64), {}, 0)
    assert fit(packing, 64, threads=threads).addresses == fit(packing, 64, threads=3).addresses


def perfect(seed: int, number: int, times: int, size: int) -> tuple[Buffer, ...]:
    """Buffers that fill all bytes at all times."""
    return hard(number, seed, times=times, size=size, unit=1).buffers


def test_no_byte_to_spare() -> None:
    """60 buffers that fill 97 bytes at all times: found in 97, and 96 are too few by the load alone."""
    packing = Packing(perfect(1, 60, 50, 97), {}, 0)
    assert packing.least == 97
    said = least_peak(packing, 200)
    assert (said.least, said.undecided) == (97, False)
    addresses = [(said.addresses or {})[b.name] for b in packing.buffers]
    assert max(a + b.size for a, b in zip(addresses, packing.buffers, strict=True)) == 97
    assert legal(replace(packing, partners=dict.fromkeys(range(60), ())), addresses)


def test_sections_hold_everything_that_overlaps() -> None:
    """Of 0-2, 1-3, 4-6: a and b meet in 1-2, c alone in 4-6; 0-1 and 2-3 are parts of that."""
    three = [Buffer(name=n, lower=a, upper=b, size=1) for n, a, b in (("a", 0, 2), ("b", 1, 3), ("c", 4, 6))]
    packing = Packing(three, {}, 0)
    assert packing.sections == [(1, 2), (4, 6)]
    assert packing.load.tolist() == [2, 1]
    assert [[b.name for b in part.buffers] for part in packing.parts()] == [["a", "b"], ["c"]]


def test_a_search_that_is_stopped_says_so() -> None:
    packing = Packing(perfect(2, 120, 90, 997), {}, 0)
    assert fit(packing, 997, Clock(0.0)).status == "stopped"
    assert fit(packing, 997, nodes=3).status == "stopped"
    assert fit(packing, 996).status == "does not fit"


# ---- rules of the search that are wrong are found --------------------------------------------------------------------


def test_windows_that_interlock_are_left_to_models() -> None:
    """a takes its first byte at time 0 and its second at time 1; b the reverse: each in the other's gap.

    In 2 bytes both begin at 0. The search counts the bytes below, too, so it needs 3, and proves nothing.
    """
    one = Buffer(name="a", lower=0, upper=2, size=2, gaps=(
        Gap(lower=0, upper=1, window=(0, 1)), Gap(lower=1, upper=2, window=(1, 2))))  # fmt: skip
    two = Buffer(name="b", lower=0, upper=2, size=2, gaps=(
        Gap(lower=0, upper=1, window=(1, 2)), Gap(lower=1, upper=2, window=(0, 1))))  # fmt: skip
    given = few(one, two)
    for engine in ("cp-sat", "milp"):
        assert solved(given, engine, "peak").values["peak"] == 2
    said = solved(given, "search", "peak")
    assert said.status in ("FEASIBLE", "OPTIMAL")
    assert said.bounds["peak"] == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_windows_may_lie_between_even_addresses(engine: str) -> None:
    """All tops are even; b takes no byte 0 at time 0, so c lies in 2 bytes below it, and b begins at 1: 5 bytes."""
    b = Buffer(name="b", lower=0, upper=2, size=4, gaps=(Gap(lower=0, upper=1, window=(1, 4)),))
    said = solved(few(b, Buffer(name="c", lower=0, upper=1, size=2)), engine, "peak")
    assert (said.status, said.values["peak"]) == ("OPTIMAL", 5)


def broken(monkeypatch: pytest.MonkeyPatch, name: str, change: object) -> int:
    for each in ("lowest", "put", "take", "grown", "judge", "sides", "choices", "explore"):
        function = getattr(explore, each)
        monkeypatch.setattr(explore, each, getattr(function, "py_func", function))
    monkeypatch.setattr(explore, name, change)
    return disagreements(400)


@pytest.mark.slow(5)
def test_faults_in_the_search_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies too high is judged without banks; nobody is next at the last address; alignment is forgotten."""
    lowest = getattr(explore.lowest, "py_func", explore.lowest)

    def lazy(b: int, boxes: columns.Ints, *rest: object) -> int:
        plain = boxes.copy()
        plain[:, columns.ALIGN] = 1
        return int(lowest(b, plain, *rest))

    assert broken(monkeypatch, "lowest", lazy) > 0
    choices = getattr(explore.choices, "py_func", explore.choices)
    assert broken(monkeypatch, "choices", lambda members, low, last, *rest: choices(members, low, last + 1, *rest)) > 0
    judge = getattr(explore.judge, "py_func", explore.judge)
    monkeypatch.setattr(explore, "lowest", lowest)
    monkeypatch.setattr(explore, "choices", choices)
    assert broken(monkeypatch, "judge", lambda *given: min(1, judge(*given))) > 0


# ---- engines against brute force -------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_have_the_least_of_all(engine: str) -> None:
    for k in range(25):
        case = Case.drawn(random.Random(f"engines {k}"))
        least, _ = least_of(case) or (None, None)
        said = solved(case.given, engine, case.aim)
        windows = any(row.gap and row.gap[2] > 0 for row in case.rows)
        if engine == "search" and windows:
            continue
        status = "INFEASIBLE" if least is None else "OPTIMAL"
        # PuLP hands back no proof of CBC that there is nothing
        assert said.status == status or (engine, status) == ("milp-cbc", "INFEASIBLE"), (k, case)
        assert said.values.get(case.aim) == least, (k, case)


def test_cuts_of_the_master_lead_to_the_optimum() -> None:
    """TIGHT with a in the middle fits in no 7 bytes by itself; one of the others leaves for the second memory."""
    middle = [b.model_copy(update={"offset": 2}) if b.name == "a" else b for b in TIGHT]
    given = few(*(b.model_copy(update={"spill": 2 * b.size}) for b in middle), sizes=(7,))
    said = solved(given, "search", "bytes")
    assert (said.status, said.values["bytes"]) == ("OPTIMAL", 4)  # a leaves
    assert said.stats["rounds"] > 1


@pytest.mark.parametrize("least", [4, 5, 7])
def test_the_master_takes_what_a_cut_says_and_no_more(least: int) -> None:
    """Two buffers of 4 bytes, one after the other: a peak of 4, or of what a cut says that both take."""
    given = few(*(Buffer(name=name, lower=at, upper=at + 1, size=4) for at, name in enumerate("ab")))
    instance = PlacementPart(given, Pins(())).instance
    model = master(instance, [Cut("m0", frozenset("ab"), least)], Goal("peak")).model
    solver = cp_model.CpSolver()
    assert (solver.status_name(solver.solve(model)), solver.objective_value) == ("OPTIMAL", least)


def test_rows_of_a_case_are_buffers() -> None:
    row = Row(0, 4, 4, 2, (1, 2, 0, 2), -1, (1, 0), 8)
    case = Case((row,), ((6, 0), (8, 2)), (), "bytes")
    (buffer,) = case.given.buffers
    assert (buffer.memories, buffer.gaps[0].window, buffer.spill) == (("m1", "m0"), (0, 2), 8)
    assert np.all(Packing(case.given.buffers, {0: ()}, 0).load == [4, 2, 4])
