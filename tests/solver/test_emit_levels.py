"""C of layers on memories in levels: built as C99 with warnings as errors, run, compared with the plan's channels."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hwmodels.levels.price import price
from hwmodels.levels.replay.walk import walk
from hwmodels.levels.schedule import Cut, LevelNest, Stay
from instances.errors import InputError
from instances.machine.machine import Machine
from instances.network.network import Network
from instances.network.operators import Conv, Eltwise, Input, MatMul, Pool
from instances.network.workload import DIMS, Layer
from solver.calls.solve import solve
from solver.plan.plan import Plan
from solver.uses.emit.emit import emit_c, files_of
from solver.uses.emit.levels.nest import LevelsPlanned
from solver.uses.emit.levels.program import level_layers
from tests.effort import tries
from tests.emitted import needs_gcc, random_layer, write

pytestmark = needs_gcc

#: Operands of memories on the chip, and those that may pass; from far to near.
ONE = {"l1": ("IN W OUT", "")}
TWO = {"l2": ("IN W OUT", ""), "l1": ("IN W OUT", "")}
PASSED = {"l3": ("IN W OUT", "IN W"), "l2": ("IN OUT", "IN OUT"), "l1": ("IN W OUT", "")}
SUMS = {"l2": ("IN W OUT", "W OUT"), "maps": ("IN", ""), "filters": ("W", ""), "acc": ("OUT", "")}
MEMORIES = ONE, TWO, PASSED, SUMS

#: Convolutions (padded, with biases; in groups, dilated; depthwise, with strides), a product, a pool, a sum of three.
NETWORK = Network(name="all", operators=(
    Input(name="x", shape=(1, 4, 6, 5)), Input(name="t", shape=(6, 8)),
    Conv(name="a", inputs=("x",), shape=(1, 6, 6, 5), filters=6, kernel=(3, 3), pad=(1, 1, 1, 1), bias=True),
    Conv(name="b", inputs=("a",), shape=(1, 4, 2, 3), filters=4, kernel=(3, 2), dilation=(2, 2), groups=2),
    Conv(name="c", inputs=("a",), shape=(1, 6, 3, 2), filters=6, kernel=(3, 3), stride=(2, 2), pad=(1, 0, 0, 0),
         groups=6),
    MatMul(name="d", inputs=("t",), shape=(6, 6), out_features=6, bias=True),
    Pool(name="e", inputs=("x",), shape=(1, 4, 3, 2), fn="max", kernel=(2, 2), stride=(2, 2)),
    Eltwise(name="f", inputs=("x", "x", "x"), shape=(1, 4, 6, 5), fn="add"),
))  # fmt: skip
#: By what is tried: what is asked of which layers, the memories on the chip, their bytes, what machines say beside.
MACHINES: dict[str, tuple[str, str, Mapping[str, tuple[str, str]], tuple[int, ...], dict[str, object]]] = {
    "two levels, sliding": ("bytes descend", "abdf", TWO, (190, 48), {"sliding": True, "psum_bytes": 4}),
    "accumulators": (
        "bytes,bytes@l1 search", "abcdef", {"l1": ("IN W", ""), "acc": ("OUT", "")}, (60, 24),
        {"psum_bytes": 4, "bias_bytes": 4, "in_layout": "HWC", "w_layout": "OHWI"},
    ),
    "passed, wide": (
        "energy descend", "df", {"l2": ("IN W OUT", "IN W"), "l1": ("IN W OUT", "")}, (300, 40),
        {"sliding": True, "in_bytes": 2, "out_bytes": 2, "psum_bytes": 4, "out_layout": "HWC"},
    ),
}  # fmt: skip


def machine_of(memories: Mapping[str, tuple[str, str]], sizes: Mapping[str, int], **fields: object) -> Machine:
    listed: list[dict[str, object]] = [{"name": "dram", "byte_fj": 10}]
    for name, (operands, passed) in memories.items():
        said = {"operands": operands.split(), "passed": passed.split()}
        listed.append({"name": name, "bytes": sizes[name], "byte_fj": 9, **said})
    ones = dict.fromkeys(("tick_ps", "in_bytes", "w_bytes", "out_bytes", "psum_bytes"), 1)
    given = {"name": "m", "problem": "levels", **ones, "compute": {"model": "array"}, "levels": {"memories": listed}}
    return Machine.model_validate({**given, **fields})


def ran(files: Mapping[str, str], folder: Path, flags: str = "-O0") -> subprocess.CompletedProcess[str]:
    """Write a program, build it by one call of gcc, and run it."""
    write(files, folder)
    sources = [name for name in files if name.endswith(".c")]
    warned = "gcc -std=c99 -pedantic -Wall -Wextra -Werror".split()
    subprocess.run([*warned, *flags.split(), *sources, "-o", "it"], cwd=folder, check=True)
    return subprocess.run(["./it"], cwd=folder, capture_output=True, text=True, check=False)


def planned(kind: str) -> Plan:
    asked, layers, memories, sizes, fields = MACHINES[kind]
    machine = machine_of(memories, dict(zip(memories, sizes, strict=True)), **fields)
    objective, engine = asked.split()
    return solve(NETWORK, machine, problem="levels", objective=objective, engine=engine, layers=list(layers))


@pytest.mark.parametrize("kind", MACHINES)
def test_plans_compute_and_move_what_is_planned(kind: str, tmp_path: Path) -> None:
    """All kinds of layers, whose tiles are cut; the bytes of every channel are those of the plan's measures."""
    plan = planned(kind)
    number, measures = len(plan.parts), plan.measures or {}
    assert all(any(isinstance(item, Cut) for item in row.schedule.items) for row in plan.parts)
    assert kind != "passed, wide" or Stay("W", "l2") not in plan.parts[0].schedule.items
    done = ran({name: str(text) for name, text in files_of(plan).items()}, tmp_path / "c")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert f"{number} of {number} layers: results and transfers as planned" in done.stdout
    seen = {name: int(size) for name, size in re.findall(r"channel \d+, (\w+): (\d+) bytes", done.stdout)}
    assert seen == {name.partition("@")[2]: size for name, size in measures.items() if "@" in name}
    assert seen["dram"] == measures["bytes"]


# ---- nests that nobody plans -----------------------------------------------------------------------------------------


def random_case(rng: random.Random, name: str, memories: Mapping[str, tuple[str, str]]) -> LevelsPlanned:
    """A layer, loops and Stays in any order, and memories that have not one byte more than they take."""
    names = dict.fromkeys(memories)
    while True:
        psum = rng.choice([1, 2, 4, 8])
        fields: dict[str, Any] = {
            "in_bytes": rng.choice([1, 2, 4]), "w_bytes": rng.choice([1, 2, 4]), "psum_bytes": psum,
            "out_bytes": rng.choice([k for k in (1, 2, 4, 8) if k <= psum]), "bias_bytes": rng.choice([0, 1, 2, 4]),
            "in_layout": rng.choice(["CHW", "HWC"]), "out_layout": rng.choice(["CHW", "HWC"]),
            "w_layout": rng.choice(["OIHW", "OHWI"]), "sliding": rng.random() < 0.7,
        }  # fmt: skip
        try:
            layer = random_layer(rng, name)
            wide = machine_of(memories, dict.fromkeys(names, 10**6), **fields)
            nest = random_nest(rng, layer, memories)
            taken = price(layer, wide, nest).occupancy_bytes
        except (InputError, ValidationError):
            continue
        assert not walk(layer, wide, nest).faults
        return LevelsPlanned(layer, machine_of(memories, {one: max(1, taken[one]) for one in names}, **fields), nest)


def random_nest(rng: random.Random, layer: Layer, memories: Mapping[str, tuple[str, str]]) -> LevelNest:
    size = {d: layer.extent(d) for d in DIMS}
    items: list[Cut | Stay] = []
    for _ in range(rng.randint(0, 8)):
        d = rng.choice([d for d in DIMS if size[d] > 1] or ["r"])
        size[d] = rng.randint(1, size[d])
        items.append(Cut(d, size[d]))  # type: ignore[arg-type]
    for operand in layer.operands:
        held = [one for one, (may, passed) in memories.items()
                if operand in may.split() and (operand not in passed.split() or rng.random() < 0.6)]  # fmt: skip
        taps = [k for k, item in enumerate(items) if isinstance(item, Cut) and item.dim in "ij"]
        most = taps[0] if operand == "IN" and taps else len(items)
        for one, place in [*zip(held, sorted(rng.randint(0, most) for _ in held), strict=True)][::-1]:
            items.insert(place, Stay(operand, one))  # type: ignore[arg-type]
    return LevelNest(tuple(items))


@pytest.mark.parametrize("memories", MEMORIES, ids=[" ".join(one) for one in MEMORIES])
def test_random_nests_compute_and_move_what_is_priced(memories: Mapping[str, tuple[str, str]], tmp_path: Path) -> None:
    """Sums that go out and come back at every level, rings in rings, elements of any size, every byte of a memory."""
    number, rng = tries(8, 200), random.Random(len(memories))
    cases = [random_case(rng, f"case{k}", memories) for k in range(number)]
    done = ran(level_layers(cases), tmp_path / "c", "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all")
    assert f"{number} of {number} layers: results and transfers as planned" in done.stdout, done.stdout + done.stderr


# ---- what is wrong, and what is refused ------------------------------------------------------------------------------


def small() -> LevelsPlanned:
    """Rows one by one, which slide, and channels in halves, so that sums of 4 bytes go out and come back."""
    layer = Layer.conv("small", channels=4, filters=2, size=(8, 6), kernel=(3, 3), pad=(1, 1, 1, 1))
    machine = machine_of(ONE, {"l1": 400}, sliding=True, psum_bytes=4)
    stays = [Stay(operand, "l1") for operand in ("IN", "W", "OUT")]  # type: ignore[arg-type]
    # Rows of the map once for either half of the channels, 192 bytes in 2 * 7 calls (the last row reads padding alone);
    # 72 of weights; results 96, sums of 4 bytes out and back: 96 * 2 * 4.
    return LevelsPlanned(layer, machine, LevelNest((Cut("n", 2), Cut("r", 1), *stays)))


PLANTED = {
    "": ("", "", "1 of 1 layers"),
    "a loop step": ("r0 += 1", "r0 += 2", "results differ from the naive loop nest: FAILED"),
    "no sliding": (
        "if (r0 > 0)",
        "if (0)",
        "channel 0, dram, moved 1464 bytes in 42 calls; planned 1128 in 40: FAILED",
    ),
    "sums that do not come back": ("if (!(n0 == 0))", "if (0)", "results differ from the naive loop nest: FAILED"),
    "an offset": ("out_l1 = {memory_l1 + ", "out_l1 = {memory_l1 + 1 + ", "results differ"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_the_program_tells_planted_errors(what: str, tmp_path: Path) -> None:
    files, (right, wrong, said) = level_layers([small()]), PLANTED[what]
    name = next(one for one in files if one.startswith("layer_"))
    assert right in files[name]
    done = ran(files | {name: files[name].replace(right, wrong)}, tmp_path / "c")
    assert said in done.stdout
    assert done.returncode == (1 if what else 0)


def test_memories_of_like_names_have_names_of_their_own(tmp_path: Path) -> None:
    alike = {"l-1": ("IN W OUT", ""), "l_1": ("IN W OUT", "")}
    assert ran(level_layers([random_case(random.Random(4), "dma", alike)]), tmp_path / "c").returncode == 0


def test_what_is_refused_is_said_in_one_line(tmp_path: Path) -> None:
    """All reasons together, and nothing is written."""
    machine = machine_of(ONE, {"l1": 4000}, in_bytes=3)
    plan = solve(NETWORK, machine, problem="levels", objective="bytes", layers=["a", "d"])
    with pytest.raises(InputError) as refused:
        emit_c(plan, tmp_path / "c", memory_bytes=5000, transfers="ahead")
    assert str(refused.value) == (
        "memory_bytes: for plans of problems joint and fusion, not of levels; "
        "transfers ahead: of plans of problems joint and fusion, not of levels; "
        "machine m: in_bytes is 3, C has integers of 1, 2, 4 and 8 bytes"
    )
    assert not (tmp_path / "c").exists()
    tight = LevelsPlanned(small().layer, machine_of(ONE, {"l1": 90}, psum_bytes=1, out_bytes=2), small().nest)
    with pytest.raises(InputError, match=r"layer small: l1 has 90 bytes, .* are taken; .* less than out_bytes, 2"):
        level_layers([tight])
