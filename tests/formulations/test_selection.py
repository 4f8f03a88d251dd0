"""Selection: optima worked out by hand, engines against each other, limits, windows, and why there is none."""

from __future__ import annotations

import random

import pytest

from formulations.clock import Clock
from formulations.problem import Goal
from formulations.selection import search as labels
from formulations.selection.frame import MEASURES, Frame, Setting, form
from formulations.selection.part import SelectionPart
from formulations.selection.problem import SelectionFormulation, default_order
from formulations.selection.search import trellis
from hwmodels.selection.replay import replay
from hwmodels.selection.schedule import Choice, Selection
from instances.errors import InputError
from instances.machine.boards import Budget, Conversion, ElementType, Frequency, Handover, Platform, Stage
from instances.network.variants import Option, Size, VariantLayer, Variants
from solver.search.loop import Answer, decide_part
from solver.uses.bench.selection import large
from tests.adversary.selection import TESTER, Case
from tests.effort import tries

ENGINES = ("search", "dynamic", "cp-sat", "milp", "milp-cbc", "exhaustive")


def option(name: str, time: int, kind: str = "f32", loss: int = 0, stage: str = "gpu", **more: object) -> Option:
    return Option(variant=name, stage=stage, time=time, type=kind, loss_ppm=loss, **more)


def chain(*layers: tuple[Option, ...], **more: object) -> Variants:
    rows = tuple(VariantLayer(name=f"l{k}", options=options, elements=10) for k, options in enumerate(layers))
    return Variants(name="chain", unit="ns", layers=rows, **{"sizes": (Size(name="s", accuracy=0.5),), **more})


def platform(**more: object) -> Platform:
    """Two stages and two types; a conversion takes 3 ns."""
    fields: dict[str, object] = {
        "stages": (Stage(name="cpu"), Stage(name="gpu")),
        "types": (ElementType(name="f32", bytes=4), ElementType(name="f16", bytes=2)),
        "conversions": (
            Conversion(source="f32", target="f16", call_ns=3), Conversion(source="f16", target="f32", call_ns=3),
        ),
    }  # fmt: skip
    return Platform(**{**fields, **more})


def asked(variants: Variants, board: Platform, *pins: str) -> SelectionPart:
    return SelectionPart([Setting(variants, board, 1000)], pins)


def solved(part: SelectionPart, *objectives: str, engine: str = "search") -> Answer[Selection]:
    said = decide_part(SelectionFormulation(), part, objectives, engine, Clock.of(60))
    if said.schedule is not None:
        walked = part.replay(said.schedule)
        assert walked.faults == ()
        measures, figures = dict(walked.measures), part.figures_of(said.schedule, walked)
        priced = part.price(said.schedule)
        assert measures == dict(priced.measures) == {name: sum(few.values()) for name, few in priced.terms.items()}
        assert sum(one.time + one.between for one in figures.layers) == measures["time"]
        assert max(one.load for one in figures.threads) == measures["period"]
        assert part.contains(said.schedule) == ()
    return said


#: Three layers: 16 bits save 2, 6 and 2 ns. Ends are in 32 bits.
REGION = chain(
    (option("ends", 0),), (option("f32", 10), option("f16", 8, "f16")), (option("f32", 20), option("f16", 14, "f16")),
    (option("f32", 10), option("f16", 8, "f16")), (option("ends", 0),),
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_region_in_16_bits_pays_at_its_borders(engine: str) -> None:
    """All three layers: 8 + 14 + 8 + 2 conversions of 3 = 36; the middle one alone: 10 + 14 + 10 + 6 = 40 = none."""
    said = solved(asked(REGION, platform()), "time", engine=engine)
    assert (said.status, said.values["time"]) == ("OPTIMAL", 36)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_conversions_16_bits_meet_no_others(engine: str) -> None:
    """Only from 32 to 16 bits there is a way, and ends are in 32: 10 + 20 + 10, although 16 bits save 2, 6 and 2."""
    board = platform(conversions=(Conversion(source="f32", target="f16", call_ns=3),))
    said = solved(asked(REGION, board), "time", engine=engine)
    assert (said.status, said.values["time"]) == ("OPTIMAL", 40)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_budget_is_a_knapsack(engine: str) -> None:
    """Savings 6, 5, 5 for losses of 4, 3, 3 and a budget of 6: the two of 5 save more than the one of 6."""
    layers = [(option("base", 10), option("fast", 10 - s, loss=100 * w)) for s, w in ((6, 4), (5, 3), (5, 3))]
    said = solved(asked(chain(*layers), platform(), "error<=500600"), "period", engine=engine)
    assert (said.status, said.values["period"]) == ("OPTIMAL", 20)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_score_is_a_ratio(engine: str) -> None:
    """Energy over accuracy at 2 mW: 2*10/0.5 = 40; 2*6/0.4 = 30; 2*5/0.25 = 40: neither end of the front is best.

    2 mW * 6 ns = 12,000 fJ over 400,000 ppm is 0 in whole nJ, so powers are in kW here: 12 * 10^9 fJ.
    """
    layer = (option("base", 10), option("some", 6, loss=100_000), option("much", 5, loss=250_000))
    board = platform(frequencies=(Frequency(name="f", power_mw=2_000_000),))
    part = asked(chain(layer), board)
    said = solved(part, "score", engine=engine)
    assert said.schedule.choices[0].variant == "some"
    assert (said.status, said.values["score"]) == ("OPTIMAL", 2_000_000 * 6 * 1000 // 400_000)
    for most, time in ((40_000, 5), (39_999, 6), (30_000, 6), (29_999, None)):
        assert solved(asked(chain(layer), board, f"score<={most}"), "time", engine=engine).values.get("time") == time


@pytest.mark.parametrize("engine", ENGINES)
def test_one_tick_less_than_what_is_known(engine: str) -> None:
    said = solved(asked(chain((option("base", 6), option("fast", 5))), platform()), "time", engine=engine)
    assert (said.status, said.values["time"]) == ("OPTIMAL", 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_one_size_ends_with_lies_between_two_steps_of_another(engine: str) -> None:
    """Losses of 0, 100 and 300 ppm. Within 6 ns the large size (error 500,000) loses 300, the small one (500,150) 100:
    the second one is below 500,300, in steps of 100 from 500,150 on.
    """
    sizes = (Size(name="large", accuracy=0.5), Size(name="small", accuracy=0.49985, scale=0.75))
    layer = (option("base", 10), option("some", 8, loss=100), option("much", 5, loss=300))
    said = solved(asked(chain(layer, sizes=sizes), platform(), "time<=6"), "error", engine=engine)
    assert (said.status, said.values["error"], said.schedule.size) == ("OPTIMAL", 500_250, "small")


@pytest.mark.parametrize(
    ("pins", "limits"),
    [
        (("accuracy>=0.5",), {"error": 500_000}), (("accuracy>=0.3141591",), {"error": 685_840}),
        (("seconds<=0.000001",), {"period": 333}), (("seconds<=0.000003",), {"period": 1000}),
        (("time<=5", "time<=4"), {"time": 4}), (("time<=4", "time<=5"), {"time": 4}),
        (("score<=7", "memory<=0"), {"score": 7, "memory": 0}),
    ],
)  # fmt: skip
def test_limits_of_pins(pins: tuple[str, ...], limits: dict[str, int]) -> None:
    """Shares of 10**6 kept or exceeded; seconds of three images in ticks of a nanosecond, kept."""
    assert asked(chain((option("net", 10),), images=3), platform(), *pins).demands.limits == limits


@pytest.mark.parametrize(("pin", "objectives", "values"), [
    ("error<=900000", ("error", "time"), (500_000, 10)),  # no loss
    ("time<=15", ("time", "error"), (5, 501_000)),
])  # fmt: skip
def test_a_value_that_is_found_limits_more_than_a_pin(
    pin: str, objectives: tuple[str, str], values: tuple[int, int]
) -> None:
    """Of 10 ns without loss and 5 with 1000 ppm the first objective decides: the pin allows both."""
    part = asked(chain((option("base", 10), option("fast", 5, loss=1000))), platform(), pin)
    said = solved(part, *objectives)
    assert (said.status, *(said.values[name] for name in objectives)) == ("OPTIMAL", *values)


@pytest.mark.parametrize("engine", ENGINES)
def test_cuts_are_worth_a_hand_over_or_not(engine: str) -> None:
    """8 on the CPU, 10 on the GPU: cut 8 + 1 and 10 + 2, period 12; not cut 18. With 8 to receive not: 18 either way.

    Then the smaller time decides: not cut there are no hand-overs.
    """
    variants = chain((option("read", 8, stage="cpu"),), (option("net", 10),))
    for receive, period, cuts in ((2, 12, ("gpu",)), (8, 18, ())):
        hand = Handover(source="cpu", target="gpu", send_ns=1, receive_ns=receive)
        said = solved(asked(variants, platform(handovers=(hand,))), "period", engine=engine)
        assert (said.values["period"], said.schedule.cuts) == (period, cuts)


def test_a_map_is_converted_once_for_all_readers() -> None:
    """One map in 16 bits, two readers in 32: 5 + 3 + 1 + 1, not 5 + 3 + 3 + 1 + 1."""
    rows = (
        VariantLayer(name="a", options=(option("h", 5, "f16"),)),
        VariantLayer(name="b", options=(option("f", 1),), reads=("a",)),
        VariantLayer(name="c", options=(option("f", 1),), reads=("a",)),
    )
    variants = Variants(name="fork", unit="ns", layers=rows)
    for engine in ENGINES:
        assert solved(asked(variants, platform()), "time", engine=engine).values["time"] == 10


@pytest.mark.parametrize(("stage", "time"), [("gpu", 5 + 3 + 1), ("cpu", 5 + 9 + 1)])
def test_a_stage_may_convert_at_a_price_of_its_own(stage: str, time: int) -> None:
    general = Conversion(source="f16", target="f32", call_ns=9)
    board = platform(conversions=(general, general.model_copy(update={"stage": "gpu", "call_ns": 3})))
    variants = chain((option("h", 5, "f16", stage=stage),), (option("f", 1, stage=stage),))
    assert solved(asked(variants, board), "time").values["time"] == time


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_reader_has_the_conversion_of_the_first(engine: str) -> None:
    """One map in 16 bits; b reads it in 32, so that c reads it in 32 for 1, and in 16 bits for 3: 5 + 3 + 1 + 1.

    If c had to convert it again, 16 bits were better: 5 + 3 + 1 + 3.
    """
    rows = (
        VariantLayer(name="a", options=(option("h", 5, "f16"),), elements=10),
        VariantLayer(name="b", options=(option("f", 1),), reads=("a",)),
        VariantLayer(name="c", options=(option("f", 1), option("h", 3, "f16")), reads=("a",)),
    )
    part = asked(Variants(name="fork", unit="ns", layers=rows), platform())
    said = solved(part, "time", engine=engine)
    assert (said.status, said.values["time"]) == ("OPTIMAL", 10)
    taken = [step.takes.sum(axis=1).tolist() for step in trellis(part.settings[0].frames[0])]
    assert taken == [[5], [4], [1, 3]]


def test_clocks_under_a_time_limit() -> None:
    """At half the clock 20 ns at 3 mW, else 10 ns at 8 mW: 60 under a limit of 20, 80 under one of 19."""
    clocks = (Frequency(name="fast", power_mw=8), Frequency(name="slow", scale={"gpu": 2}, power_mw=3))
    part = (chain((option("net", 10),)), platform(frequencies=clocks))
    assert solved(asked(*part, "period<=20"), "energy").values["energy"] == 60_000
    assert solved(asked(*part, "period<=19"), "energy").values["energy"] == 80_000
    front = [solved(asked(*part, f"period<={p}"), "energy").values["period"] for p in (20, 10)]
    assert front == [20, 10]


def test_input_sizes_have_accuracies_of_their_own() -> None:
    sizes = (Size(name="large", accuracy=0.5), Size(name="small", accuracy=0.3, scale=0.5))
    own = option("net", 0).model_copy(update={"time": {"large": 10.0, "small": 7.0}})
    variants = chain((option("net", 10),), (own,), sizes=sizes)
    assert solved(asked(variants, platform()), "time").values["time"] == 5 + 7
    assert solved(asked(variants, platform(), "accuracy>=0.4"), "time").values["time"] == 20


def test_budgets_and_memory_bind() -> None:
    layer = (option("one", 9, uses={"cores": 1}), option("four", 3, uses={"cores": 4}, bytes=50))
    board = platform(budgets=(Budget(name="cores", most=5),))
    variants = chain(layer, layer)
    assert solved(asked(variants, board), "time").values["time"] == 12
    assert solved(asked(variants, board.model_copy(update={"memory_bytes": 49})), "time").values["time"] == 18


# ---- pins and conflicts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pin", "time"),
    [
        ("l1=f32", 38), ("l2!=f16", 40), ("technique!=half", 40), ("technique=half", 36), ("l2=half", 36),
        ("l1=gpu", 36), ("cut=none", 36), ("cut=all", 36), ("cut!=gpu", 36), ("size=s", 36), ("frequency!=other", 36),
        ("time<=36", 36),
    ],
)  # fmt: skip
def test_pins(pin: str, time: int) -> None:
    """Without l1 in 16 bits 10 + 14 + 8 + 6 = 38, without l2 nothing pays: 40."""
    rows = []
    for layer in REGION.layers:
        options = tuple(o.model_copy(update={"techniques": ("half",) * (o.type == "f16")}) for o in layer.options)
        rows.append(layer.model_copy(update={"options": options}))
    board = platform(frequencies=(Frequency(name="nominal"), Frequency(name="other", scale={"gpu": 2})))
    variants = REGION.model_copy(update={"layers": tuple(rows)})
    assert solved(asked(variants, board, pin), "time").values["time"] == time


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("l11=f32", "there is no layer 'l11'; did you mean l1"), ("l1=f64", "layer l1 has f16, f32 or gpu"),
        ("size=9", "size takes s"), ("frequency=9", "frequency takes nominal"), ("cut=cpu", "begins no thread"),
        ("time>=4", "write time<=N"), ("accuracy=1", "write accuracy>="), ("seconds<=x", "write seconds<="),
        ("technique=x", "no technique 'x'"), ("what", "write NAME=VALUE"), ("l1<=4", "is not a measure"),
        ("cpu_config=4", "nothing here"),
    ],
)  # fmt: skip
def test_bad_pins_say_what_is_accepted(pin: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(REGION, platform(), pin)


@pytest.mark.parametrize("engine", ENGINES)
def test_demands_that_cannot_be_met_together_are_named(engine: str) -> None:
    """At most 39 ns needs all three layers in 16 bits; the pin of l1 has nothing to do with memory."""
    part = asked(REGION, platform(memory_bytes=10**6), "time<=39", "l2=f32", "memory<=5")
    said = decide_part(SelectionFormulation(), part, ("time",), engine, Clock.of(30))
    assert (said.status, said.schedule) == ("INFEASIBLE", None)
    assert part.explain() == ("pin time<=39 (time is at least 30 without any other demand)", "pin l2=f32")


def test_types_that_never_meet() -> None:
    part = asked(chain((option("h", 1, "f16"),), (option("f", 1),)), platform(conversions=()))
    assert solved(part, "time").status == "INFEASIBLE"
    assert part.explain() == ("no choice has types that meet",)
    assert [step.name for step in default_order(part, Goal("period"))] == []


def test_a_platform_limit_is_named() -> None:
    part = asked(chain((option("a", 1, bytes=9),)), platform(memory_bytes=8))
    assert solved(part, "time").status == "INFEASIBLE"
    assert part.explain() == ("limit of the platform: memory_bytes 8",)


def test_some_accuracy_has_to_be_left() -> None:
    for loss, status in ((499_999, "OPTIMAL"), (500_000, "INFEASIBLE")):
        assert solved(asked(chain((option("a", 1, loss=loss),)), platform()), "time").status == status


@pytest.mark.parametrize(
    ("variants", "pins", "said"),
    [
        ("ends f32 f32 f32 ends", ("time<=40",), ""), ("ends f32 f32 f32 ends", ("time<=39",), "time 40 is above 39"),
        ("ends f16 f32 f32 ends", ("l1=f32",), "layer l1: no variant f16 on gpu"), ("ends", (), "5 layers are to be"),
        ("ends f32 f32 f32 ends", ("frequency!=nominal",), "is not among what is asked for"),
        ("ends f16 f16 f32 ends", (), "a type that its map cannot be converted to"),
    ],
)  # fmt: skip
def test_choices_that_are_not_asked_for(variants: str, pins: tuple[str, ...], said: str) -> None:
    """Only to 16 bits there is a way. An excess, or what there is not."""
    way = Conversion(source="f32", target="f16", call_ns=3)
    both = (Frequency(name="nominal"), Frequency(name="other", scale={"gpu": 2}))
    part = asked(REGION, platform(conversions=(way,), frequencies=both), *pins)
    choices = tuple(Choice(f"l{k}", name, "gpu") for k, name in enumerate(variants.split()))
    found = " ".join(part.contains(Selection("s", "nominal", (), choices)))
    assert (said in found, bool(found)) == (True, bool(said))


# ---- the referee -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"size": "t"}, "size 't' is not known"), ({"frequency": "t"}, "frequency 't' is not known"),
        ({"cuts": ("cpu",)}, "cut 'cpu' is not known"), ({"choices": ()}, "every layer is chosen once"),
        ({"choices": tuple(Choice(f"l{k}", "f64", "gpu") for k in range(5))}, "no variant f64 on gpu"),
    ],
)  # fmt: skip
def test_the_referee_refuses(change: dict[str, object], fault: str) -> None:
    said = solved(asked(REGION, platform()), "time").schedule
    made = Selection(**{**said.__dict__, **change})
    walked = replay(REGION, platform(), 1000, made)
    assert fault in " ".join(walked.faults)
    assert walked.measures == {}


@pytest.mark.parametrize(("pipeline", "allowed"), [("never", ""), ("always", "gpu"), ("choose", " gpu")])
def test_cuts_are_those_of_the_platform(pipeline: str, allowed: str) -> None:
    board = platform(pipeline=pipeline)
    for cut in ("", "gpu"):
        made = Selection("s", "nominal", (cut,) if cut else (), tuple(Choice(f"l{k}", "f32", "gpu") for k in (0, 1)))
        faults = replay(chain((option("f32", 1),), (option("f32", 1),)), board, 1000, made).faults
        refused = [f"cuts {cut or 'nowhere'}: the platform does not allow them"]
        assert faults == ([] if cut in allowed.split(" ") else refused)


def test_the_referee_sees_what_the_space_leaves_out() -> None:
    """Types that no conversion joins, too much memory, a budget, and no accuracy that is left."""
    variants = chain(
        (option("h", 1, "f16", 300_000, bytes=9, uses={"n": 1}),), (option("f", 1, loss=200_000, uses={"n": 1}),)
    )
    board = platform(conversions=(), memory_bytes=8, budgets=(Budget(name="n", most=1),))
    made = Selection("s", "nominal", (), (Choice("l0", "h", "gpu"), Choice("l1", "f", "gpu")))
    faults = " ".join(replay(variants, board, 1000, made).faults)
    for said in ("it reads f32", "no accuracy is left: 0", "memory: 9", "budget n: 2 of 1"):
        assert said in faults


# ---- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(tries(10, 150)))
def test_all_engines_prove_the_same(seed: int) -> None:
    """All values of all objectives, in lexicographic order."""
    rng = random.Random(f"engines {seed}")
    case = Case.drawn(rng)
    case = case if case.possible else case.ruled(0, None) or case
    objectives = tuple(rng.sample(list(MEASURES), 2))
    engines = ENGINES if seed % 4 == 0 else ("search", "dynamic", "cp-sat", "exhaustive")
    answers = {engine: solved(case.part, *objectives, engine=engine) for engine in engines}
    found = {(said.status, *(said.values.get(name) for name in objectives)) for said in answers.values()}
    assert len(found) == 1, answers


def test_windows_of_cp_sat_prove_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one label a node nothing is proven by labels: CP-SAT decides window after window."""
    monkeypatch.setattr(labels, "WIDTHS", (1, 1))
    for k in range(tries(12, 60)):
        case = TESTER.case(random.Random(f"windows {k}"))
        if case.possible:
            said = [solved(case.part, case.aim, engine=engine) for engine in ("search", "exhaustive")]
            assert (said[0].status, said[0].values) == (said[1].status, said[1].values), k


def test_bounds_hold_when_time_is_up() -> None:
    """No time: a schedule by the paper's order, and a bound below the optimum."""
    setting = large(30, 6, 3, 4)
    best = solved(SelectionPart([setting], ["accuracy>=0.47"]), "period")
    part = SelectionPart([setting], ["accuracy>=0.47"])
    hasty = decide_part(SelectionFormulation(), part, ("period",), "search", Clock.of(0.001))
    assert hasty.bound <= best.values["period"] <= hasty.values.get("period", best.values["period"])


def test_the_bound_of_labels_is_a_bound() -> None:
    """The Lagrangian bound is not above the optimum of a frame, and not far below it."""
    frame: Frame = large(20, 6, 3, 1).frames[0]
    goal = Goal("period")
    asked_ = form(frame, goal, {"error": 530_000})
    exact = labels.search(frame, asked_, goal.clock)
    assert exact.proven
    assert exact.chosen is not None
    value = asked_.value(frame.total(exact.chosen) or [])
    quick = labels.search(frame, asked_, goal.clock, widths=())
    assert 0.98 * value <= quick.bound <= value


def test_a_trellis_waits_for_the_last_reader() -> None:
    """Two types: a chain has two nodes after a layer; a map that two layers read keeps its node until the second."""
    both = (option("f", 1), option("h", 1, "f16"))
    rows = tuple(
        VariantLayer(name=name, options=both, reads=reads)
        for name, reads in (("a", ()), ("b", ("a",)), ("c", ("a",)), ("d", ("b", "c")))
    )
    frame = Setting(Variants(name="diamond", unit="ns", layers=rows), platform(), 1000).frames[0]
    # after b: types of a and b, and whether a is there in the other type: it is if they differ
    assert [step.nodes for step in trellis(frame)] == [2, 4, 4, 1]
