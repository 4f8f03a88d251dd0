"""Nests as a line of text: what is written is read again, and what people write is read or refused with one line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.network.workload import Layer
from solver.uses.mappings.text import nest_of, parsed, text_of, unnamed
from tests.emitted import random_case
from tests.golden_plans import FOLDER

# 16 channels of 28x28, 32 filters of 3x3, padding 1
CONV = Layer.conv("conv", channels=16, filters=32, size=(28, 28), kernel=(3, 3), pad=(1, 1, 1, 1))
POOL = Layer(name="pool", kind="pool", g=4, m=1, n=1, r=4, c=4, kh=2, kw=2, h=5, l=5, weights="none")
NESTS = {
    "W | m 24 c 23 c 12 r 1 | IN | OUT": (
        Hold("W"), Loop("m", 24), Loop("c", 23), Loop("c", 12), Loop("r", 1), Hold("IN"), Hold("OUT"),
    ),
    "r 4/tle m 16/tlt | W | c 7 | OUT:2 | n 4 | IN:1:lines": (
        Spatial("r", 4, "tle"), Spatial("m", 16, "tlt"), Hold("W"), Loop("c", 7), Hold("OUT", 2), Loop("n", 4),
        Hold("IN", 1, line=True),
    ),
    "r 10@4,14,18 | IN | c 28 | W | OUT": (
        Loop("r", 10, (4, 14, 18)), Hold("IN"), Loop("c", 28), Hold("W"), Hold("OUT"),
    ),
    "IN | W | OUT": (Hold("IN"), Hold("W"), Hold("OUT")),
}  # fmt: skip


@pytest.mark.parametrize("text", NESTS)
def test_the_line_and_the_nest(text: str) -> None:
    nest = Nest(NESTS[text])
    assert text_of(nest) == text
    assert nest_of(text, CONV) == nest


def test_homes() -> None:
    homes = (("IN", "dram"), ("W", "flash"), ("OUT", "dram"))
    nest = Nest((Hold("W", 2), Loop("r", 4), Hold("IN"), Hold("OUT")), homes)
    assert text_of(nest) == "W:2@flash | r 4 | IN@dram | OUT@dram"
    assert nest_of(text_of(nest), CONV) == nest


def test_what_people_write() -> None:
    expected = nest_of("W | m 24 | c 23 c 12 r 1 | IN | OUT", CONV)
    for text in ("w|m24|c23 c12 r1|in", "W m=24 C 23 c=12 r1 IN", "W\nm 24\nc 23 c 12 r 1\n"):
        assert nest_of(text, CONV) == expected
    assert unnamed("w|m24|c23 c12 r1|in", CONV) == ("OUT",)
    assert nest_of("r 4", POOL).items == (Loop("r", 4), Hold("IN"), Hold("OUT"))


def test_the_largest_piece_is_worked_out() -> None:
    """Rows 0-4, 4-14, 14-18, 18-28: 10; inside them at 9 and 23: 4, 5, 5, 4, 5, 5."""
    assert nest_of("r@4,14,18 | IN | r@9,23", CONV) == nest_of("r 10@4,14,18 | IN | r 5@9,23 | W | OUT", CONV)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("W | x 4", "'x': unknown dimension 'x', expected one of b, g, m"),
        ("W | r | IN", "a loop over r needs the size of its pieces: r 4"),
        ("W | foo | IN", "'foo': expected a loop (m 24) or a hold (IN, W, OUT); for example W | m 24"),
        ("W | r 0", "'r 0': a size is 1 or more"),
        ("W | r 12345678901", "'r 12345678901': a size has at most 9 digits"),
        ("W | r12345678901", "a size has at most 9 digits"),
        ("W | r 4 | W", "holds ['W', 'W', 'IN', 'OUT'], layer conv needs each"),
        ("r 4 r 8", "step 8 of r must be 1..4"),
        ("r 99", "step 99 of r must be 1..28"),
        ("r 4@9", "cuts of r: the largest piece has 19, step says 4"),
        ("r 4/bank", "unknown level 'bank', expected one of tle, tlt"),
        ("OUT:lines", "only IN is held in lines"),
        ("IN:2:1", "one number of buffers"),
        ("W@flash", "not of IN, OUT: name all"),
        ("r 4@", "'r 4@': a loop is r 4, r 4@2,6 or r 4/tle"),
        ("IN3", "'IN3'"),
        ("-r 4", "'-r'"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        nest_of(text, CONV)
    assert "\n" not in str(caught.value)
    assert said in str(caught.value)


def test_operands_that_a_layer_has_not() -> None:
    with pytest.raises(InputError, match="layer pool has no W; it holds IN, OUT"):
        nest_of("W | r 1", POOL)
    with pytest.raises(InputError, match="name the largest piece before the places: r 4@2"):
        parsed("r@2")


@pytest.mark.slow(2)
def test_random_nests_come_back() -> None:
    rng, cuts, spatial, lines = random.Random(4), 0, 0, 0
    for _ in range(400):
        case = random_case(rng, "random")
        cuts, lines = cuts + (not case.nest.even), lines + case.nest.line
        spatial += any(isinstance(item, Spatial) for item in case.nest.items)
        assert parsed(text_of(case.nest)) == case.nest
        assert nest_of(text_of(case.nest), case.layer) == case.nest
    assert min(cuts, spatial, lines) > 20, "all kinds of items were drawn"


def test_golden_plans_come_back() -> None:
    nests = [nest for path in sorted(FOLDER.glob("*.json")) for nest in _nests(json.loads(path.read_text()))]
    assert len(nests) > 50
    assert sum(bool(nest.homes) for nest in nests) > 3
    for nest in nests:
        assert parsed(text_of(nest)) == nest


def _nests(data: Any) -> Iterator[Nest]:
    """All nests in a JSON file, with homes where they have some."""
    if isinstance(data, dict):
        if "nest" in data and isinstance(data["nest"], list):
            yield Nest.from_json(data["nest"]).at(data.get("homes") or {})
        for value in data.values():
            yield from _nests(value)
    elif isinstance(data, list):
        for value in data:
            yield from _nests(value)
