"""Status, value and bound of real networks are those that were recorded (tests/golden_networks.py)."""

from __future__ import annotations

import pytest

from tests.golden_networks import NETWORKS, Asked, golden


def held(one: Asked) -> None:
    """Figures that no objective asks for depend on how long ties are looked at: the script compares them."""
    found, kept = one.record(), golden()[one.name]
    assert {name: found[name] for name in ("status", "value", "bound")} == {
        name: kept[name] for name in ("status", "value", "bound")
    }


@pytest.mark.parametrize("one", [one for one in NETWORKS if one.quick], ids=lambda one: one.name)
def test_networks_are_as_recorded(one: Asked) -> None:
    held(one)


#: These take from a quarter of a minute to one and a half.
LONG = ("fusion mobilenet_v2", "joint resnet50", "joint mobilenet_v2")


@pytest.mark.parametrize("one", [
    pytest.param(one, id=one.name, marks=pytest.mark.slow(60, every=not one.name.startswith(LONG)))
    for one in NETWORKS if not one.quick
])  # fmt: skip
def test_large_networks_are_as_recorded(one: Asked) -> None:
    held(one)


def test_every_network_is_proven_and_has_one_record() -> None:
    kept = golden()
    assert list(kept) == [one.name for one in NETWORKS]
    for record in kept.values():
        assert record["status"] == "OPTIMAL"
        assert record["value"] == record["bound"]
