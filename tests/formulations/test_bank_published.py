"""The policy MIN as published, against what the public MIDAP simulator moves: random networks, forks inside forks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings

from formulations.banks.network import Walk, optimum
from formulations.banks.published import arranged, published
from formulations.banks.published_stage import Given, planned
from formulations.banks.tasks import Action
from hwmodels.banks.price import Pass
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Banks
from instances.network.feature_maps import Stages, stages
from instances.network.network import Network
from instances.network.operators import Concat, Conv, Eltwise, Input, Operator
from tests.effort import tries
from tests.formulations.test_bank_time import networks, tiny_banks
from tests.formulations.test_banks import agrees
from tests.midapsim.networks import Case, forked, plain

#: By kind and seed the bytes of loads, weights, streamed operands, biases and writes under MIN, as the simulator of
#: 2020-09-02 reads and writes them when every cycle is simulated. Where a concatenation is streamed, its compiler
#: forgets to write the parts; for these figures it was made to.
MEASURED: dict[str, dict[str, list[int]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "midap_min.json").read_text(encoding="utf-8")
)
SHAPE = (1, 16, 1, 4)


def banks_of(case: Case) -> Banks:
    found = load_machine("midap", case.settings).banks
    assert found is not None
    return found


@pytest.mark.few(20)
@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, rows in MEASURED.items() for seed in rows])
def test_min_moves_what_the_published_compiler_moves(kind: str, seed: str) -> None:
    case = {"plain": plain, "forked": forked}[kind](int(seed))
    banks = banks_of(case)
    found = stages(Network.model_validate(case.network), banks)
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [*plan.volume] == MEASURED[kind][seed]


def test_all_kinds_were_measured() -> None:
    assert {kind: len(rows) > 25 for kind, rows in MEASURED.items()} == {"plain": True, "forked": True}


# ---- by hand -------------------------------------------------------------------------------------------------------


def conv(name: str, of: str) -> Conv:
    return Conv(name=name, inputs=(of,), shape=SHAPE, filters=16, kernel=(1, 1))


def small(*operators: Operator, count: int = 5, bank: int = 64) -> tuple[Stages, Banks]:
    """A network of maps of 4 columns of 16 bytes."""
    banks = Banks(count=count, map_bytes=count * bank, weight_bytes=4096, filters=16, lanes=16, patch_channels=0)
    return stages(Network(name="n", operators=(Input(name="x", shape=SHAPE), *operators)), banks), banks


def test_a_fork_inside_a_path_ends_where_all_paths_meet() -> None:
    """Of three paths from a, the one by c forks again; all four ends meet in f, so the fork is one item of that path.

    Its path is c and the fork, as long as d, e; g is one stage long and first. Of the two longer ones the later one in
    the network is the first one.
    """
    parts = ("c1", "c2", "e", "g")
    found, banks = small(
        conv("a", "x"), conv("c", "a"), conv("c1", "c"), conv("c2", "c"), conv("d", "a"), conv("e", "d"),
        conv("g", "a"), Concat(name="f", inputs=parts, shape=(1, 64, 1, 4), axis=1), conv("h", "f"),
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [step.stage.name for step in plan.steps] == ["a", "g", "d", "e", "c", "c2", "c1", "h"]
    # a is one tile and stays for the paths to come, c for c1; the last reader lets go.
    assert [step.task.retain for step in plan.steps] == [0, 1, 1, 0, 0, 1, 0, 0]


def test_a_concatenation_lies_from_its_first_column_on() -> None:
    """Banks of two columns: a is stored from its end and read backwards, and so are its readers; f is not."""
    found, banks = small(
        conv("a", "x"), conv("b", "a"), conv("c", "a"),
        Concat(name="f", inputs=("b", "c"), shape=(1, 32, 1, 4), axis=1), conv("h", "f"), count=2, bank=32,
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [(step.stage.name, step.direction) for step in plan.steps] == [("a", 0), ("c", 1), ("b", 1), ("h", 0)]


def test_of_two_paths_of_a_sum_the_first_one_is_streamed() -> None:
    found, banks = small(
        conv("a", "x"), conv("b", "a"), conv("c", "a"), conv("d", "c"),
        Eltwise(name="s", inputs=("d", "b"), shape=SHAPE, fn="add"), conv("e", "s"),
    )  # fmt: skip
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert [step.stage.name for step in plan.steps] == ["a", "b", "c", "d", "s", "e"]
    assert (plan.steps[4].source, plan.steps[4].volume.streamed, plan.steps[1].task.goal.keep) == ("d", 64, 0)


def test_networks_without_a_published_plan_get_one_all_the_same() -> None:
    """Two results: the compiler has no plan for a path that ends before the others meet."""
    found, banks = small(conv("a", "x"), conv("b", "a"), conv("c", "a"))
    assert arranged(Walk(found, banks)) is None
    plan = published(Walk(found, banks))
    agrees(found, banks, plan)
    assert len(plan.steps) == 3


def test_a_stage_leaves_banks_for_its_result() -> None:
    """Six columns in six tiles, two on chip, four banks; a spilled column costs twice 1, a step 0 or 10.

    With one bank left to the map three tiles of the result stay, the last ones. Two tiles are loaded: all four banks
    hold some, so three tiles are processed, whose results are spilled, and their banks wait for those that stay, but
    one: two more tiles are loaded as results find room, and the last three are processed one by one. 4 steps and 6
    bytes. With two banks left: four tiles, then two: 2 steps and 8 bytes. With three left: 2 steps and 10 bytes.
    """
    given = Given(
        Pass(columns=6, tile=1, results=6), columns=6, tile=1, banks=4, free=2, aside=0, on_chip=2, tiles=6, stay=None,
        fixed=False,
    )  # fmt: skip
    lean = planned(given, tries=True, step=0, column=1)
    assert (lean.keep, lean.mirrored, lean.steps) == (3, True, 4)
    assert lean.actions[:2] == (Action("load", 2), Action("process", 3))
    heavy = planned(given, tries=True, step=10, column=1)
    assert (heavy.keep, heavy.steps) == (2, 2)
    assert sum(action.tiles for action in heavy.actions if action.name == "load") == 4


@settings(max_examples=tries(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), tiny_banks((2, 6), (16, 24, 40), (1, 16, 1000), ("free",)))
def test_plans_of_any_network_and_banks_hold(network: Network, banks: Banks) -> None:
    """The replay counts the same bytes, whether or not the compiler has a plan; with tiles that no window reads too."""
    found = stages(network, banks)
    if any(one.column_bytes > banks.bank_bytes for one in found.maps.values()):
        reject()
    try:
        plan = published(Walk(found, banks))
    except InputError:
        reject()  # stuck in too few banks
    agrees(found, banks, plan)
    assert plan.volume.total >= optimum(Walk(found, banks)).volume.total
