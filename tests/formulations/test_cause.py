"""What is said of a gap: the nests whose bound is below the plan, and what of them is only bounded."""

from __future__ import annotations

import pytest

from formulations.pins import Pins
from formulations.tiling.problem import NESTS
from instances.load import load_machine, load_network
from solver.problems.tiling import decide_space
from solver.search.loop import Answer


def decided(network: str, name: str, machine: str, **changes: str) -> Answer:
    layer = next(one for one in load_network(network).layers if one.name == name)
    on = load_machine(machine, changes)
    return decide_space(NESTS[on.problem].build(layer, on, Pins()), ("time",))


def test_a_gap_names_nests_and_what_is_not_known_of_them() -> None:
    # 1,000 maps on 32 cores: 8 have 32 of them, 24 have 31. 6 pieces of 32 have 6 maps at most; more is not known.
    said = decided("squeezenet1_1", "pool10", "nmp")
    assert (said.status, said.values["time"], said.bound) == ("FEASIBLE", 956_960, 956_480)
    assert said.stats["gap"] == "OUT | g in 6 | IN; g: of the pieces only the largest is known"


def test_where_transfers_overlap_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without work piece by piece the layer is not proven.
    monkeypatch.setattr("formulations.tiling.splitting.WORK", 0)
    said = decided("lenet5", "s2", "scratchpad_64k", buffering="double")
    assert said.status == "FEASIBLE"
    assert str(said.stats["gap"]).endswith("transfers that overlap are bounded, not laid out")


def test_bursts_by_address_are_said_to_be_counted_aligned() -> None:
    bursts = {"transfer.burst_ticks": "8", "transfer.burst_bytes": "64", "transfer.burst_count": "address"}
    said = decided("lenet5", "f6", "scratchpad_64k", ocm_bytes="2048", **bursts)
    assert (said.status, said.values["time"], said.bound) == ("FEASIBLE", 18_620, 18_588)
    assert str(said.stats["gap"]).endswith("; bursts are counted as if every run began one")


def test_rows_on_chip_leave_open_which_windows_hold_nothing() -> None:
    layer = next(one for one in load_network("mobilenet_v2").layers if one.name == "block12/expand")
    layer = layer.model_validate({**layer.model_dump(), "resident_in": (4,), "resident_out": 4})
    said = decide_space(NESTS["tiling"].build(layer, load_machine("scratchpad_64k"), Pins()), ("time",))
    assert said.status == "FEASIBLE"
    assert "r: windows that may hold nothing do not count" in str(said.stats["gap"])


@pytest.mark.parametrize(
    ("network", "name", "least"), [("squeezenet1_1", "conv1", 6_294_192), ("lenet5", "c1", 47_408)]
)
def test_what_is_proven_has_no_gap(network: str, name: str, least: int) -> None:
    # conv1 (3x3, stride 2, rows on four cores): parts of the kernel fetch the rows between their windows as well.
    said = decided(network, name, "nmp")
    assert (said.status, said.values["time"]) == ("OPTIMAL", least)
    assert "gap" not in said.stats
