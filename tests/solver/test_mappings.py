"""Given mappings as plans: priced, checked, compared, improved; what does not fit, and what commands say."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from certile import check, load_plan, price, show, solve
from hwmodels.nest.price.closed_form import price as closed_form
from hwmodels.schedule import Hold, Loop, Nest, Spatial
from instances.errors import InputError
from instances.load import load_machine
from instances.machine.machine import Machine, Transfer
from instances.network.workload import DIMS, Layer
from solver.cli.main import main
from solver.plan.plan import Plan
from solver.uses.emit.emit import emit_c
from solver.uses.mappings.compare import again
from solver.uses.mappings.files import written
from solver.uses.mappings.given import Mapped, overflows, plan_of, problem_for, remedies
from solver.uses.mappings.price import best_tile
from solver.uses.mappings.text import nest_of, parsed, text_of, unnamed
from tests.emitted import random_case, random_nest
from tests.golden_plans import FOLDER
from tests.lies import problems

FILES = Path(__file__).parents[1] / "data" / "mappings"
# 4x4 map, 2 channels, 2 filters, 1x1 kernel, a byte an element: docs/nest.md counts this nest by hand.
TINY = Layer.conv("tiny", channels=2, filters=2, size=(4, 4))
ON = Machine(
    name="m", tick_ps=1, in_bytes=1, w_bytes=1, out_bytes=1, psum_bytes=1, ocm_bytes=64, transfer=Transfer(byte_ticks=1)
)
HAND = "r 2 n 1 m 1 | IN | W | OUT"


def test_by_hand() -> None:
    """IN 4 x 8, W 8 x 1, OUT 32, partial sums 64: 136 bytes. Everything at once is 32 + 4 + 32 = 68, and fits: 68."""
    found = price(TINY, ON, HAND, improve=True)
    assert found.plan.objective.terms == {"IN": 32, "W": 8, "OUT": 32, "PSUM": 64}
    (layer,) = found.layers
    assert (layer.best.status, layer.times) == ("OPTIMAL", 136 / 68)
    said = str(found)
    assert "Your mapping moves 2.00 times the minimum, proven: 136 bytes against 68." in said
    assert "partial sums 64 bytes more than it: sums are written and read back 1 time, by loop n outside" in said
    assert "weights 4 bytes more than it: all of them up to 2 times, by loop r outside the hold of W" in said
    # r 4 n 2 m 2 is no loop at all
    assert (layer.improved[0].kept, layer.improved[0].measures) == ("loop order", layer.best.measures.model_dump())


def test_a_given_plan_is_a_plan(tmp_path: Path) -> None:
    found = price(TINY, ON, HAND, compare=False)
    assert (found.plan.engine, found.plan.status, found.plan.bound) == ("given", "FEASIBLE", None)
    path = tmp_path / "mine.json"
    found.plan.save(path)
    report = check(path)
    assert report.ok
    assert report.executed == 1
    assert load_plan(path) == found.plan
    assert "r n m | IN | W | OUT" in show(path)
    assert "load W" in show(path, "tiny")
    assert "main.c" in emit_c(found.plan, tmp_path / "c")
    proven = check(path, prove=True)
    assert proven.ok
    assert proven.better.objective.value == 68


def test_a_given_plan_that_lies_is_refused() -> None:
    plan = price(TINY, ON, HAND, compare=False).plan
    proven = {"status": "OPTIMAL", "bound": 136, "gap": 0.0}
    row = {"parts.0.status": "OPTIMAL", "parts.0.bounds": {"bytes": 136}, "parts.0.gap": 0.0}
    for lies, said in (
        ({**proven, **row}, "engine given proves nothing"),
        ({"options.pins": ["T_M=2"]}, "the schedule is no plan of problem tiling with T_M=2"),
    ):
        found = problems(plan, *lies.items())
        assert any(said in line for line in found), found
    three = price(TINY, ON, "r 3 r 2 r 1 | IN | W | OUT", compare=False).plan
    assert check(three).ok
    report = check(three.model_copy(update={"engine": "exhaustive"}))
    assert report.problems == ("layer tiny: the schedule is no plan of problem tiling",), "nothing an engine finds"


def test_nobody_solves_by_engine_given() -> None:
    with pytest.raises(InputError, match="unknown engine"):
        solve(TINY, ON, engine="given")


def test_what_does_not_fit() -> None:
    """All of IN (32), W (4) and OUT (32) are 68 bytes of 40: 28 too many.

    One more loop outside: r 2 halves IN and OUT, 16 + 4 + 16 = 36 (r 3: 52); c likewise. n 1 leaves 16 + 2 + 32, and m
    1 leaves 32 + 2 + 16: 50, too many.
    """
    small = ON.model_copy(update={"ocm_bytes": 40})
    found = price(TINY, small, "IN | W | OUT")
    assert (found.status, found.plan) == ("INFEASIBLE", None)
    (layer,) = found.layers
    assert layer.overflows == {"ocm": (68, 40)}
    assert {(one.dim, one.step, one.loop) for one in layer.remedies} == {("r", 2, None), ("c", 2, None)}
    assert "memory ocm: 68 bytes are taken, there are 40: 28 too many" in str(found)
    assert "the optimum has " in str(found)
    # r 3: IN 24 + W 4 + OUT 24 = 52; r 2 is the largest that fits
    (other,) = price(TINY, small, "r 3 | IN | W | OUT", compare=False).layers
    assert ("r", 2, 0) in {(one.dim, one.step, one.loop) for one in other.remedies}


@pytest.mark.slow(5)
def test_what_is_not_proven_is_no_optimum() -> None:
    """In time a gap of a few per cent stays open for this layer: its best plan is not called the optimum."""
    nest = "m 16 | W | r 2 | IN | OUT"
    found = price("resnet50", "scratchpad_64k", nest, layers="layer2.0.conv2", objective="time")
    best = found.layers[0].best
    assert best.status == "FEASIBLE"
    assert "The best known: " in str(found)
    assert "optimum" not in str(found)


@pytest.mark.slow(2)
def test_remedies_are_the_largest_that_fit() -> None:
    rng, looked = random.Random(5), 0
    while looked < 15:
        case = random_case(rng, "random")
        if case.machine.tles > 1 or case.machine.ocm_bytes is None or not case.nest.even:
            continue
        on = case.machine.model_copy(update={"ocm_bytes": max(1, int(case.machine.ocm_bytes * 0.8))})
        mapped = Mapped(case.layer, case.nest)
        if not overflows(mapped, on):
            continue
        for change in remedies(mapped, on):
            for step, fits in ((change.step, True), (change.step + 1, False)):
                most = case.layer.extent(change.dim)
                if change.loop is not None:
                    item = case.nest.items[change.loop]
                    most = item.step if isinstance(item, Loop) else most
                if step < most:
                    nest = _changed(case.nest, change.dim, step, change.loop)
                    assert (not overflows(Mapped(case.layer, nest), on)) == fits
        looked += 1


def _changed(nest: Nest, dim: str, step: int, loop: int | None) -> Nest:
    begin = 0 if loop is None else loop
    inner = [
        item if isinstance(item, Hold) or item.dim != dim else Loop(dim, min(step, item.step))
        for item in nest.items[begin:]
    ]
    return Nest((*nest.items[:begin], *([Loop(dim, step)] if loop is None else []), *inner), nest.homes)


# ---- why -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "operand", "dims", "times"),
    [
        # m comes back to IN twice where a loop of IN is inside it
        ("m 1 r 1 | IN", "IN", ("m",), 2),
        ("r 1 m 1 | IN", "IN", (), 1),
        ("m 1 | IN | r 1", "IN", (), 1),
        # r (4) and c (2) outside m: 8 times all weights
        ("r 1 c 2 m 1 | W", "W", ("r", "c"), 8),
        ("r 1 m 1 c 2 | W", "W", ("r",), 4),
        ("n 1 m 1 | OUT", "OUT", ("n",), 2),
        ("m 1 n 1 | OUT", "OUT", (), 1),
    ],
)
def test_which_loops_come_back(text: str, operand: str, dims: tuple[str, ...], times: int) -> None:
    found = again(TINY, nest_of(text, TINY), operand)
    assert (found.dims, found.times) == (dims, times)


def test_times_count_the_bytes_of_random_nests() -> None:
    """Without windows, turns and sums bytes are exactly all of an operand times how often loops come back to it."""
    rng = random.Random(11)
    for _ in range(150):
        sizes = {name: rng.randint(1, 6) for name in ("b", "g", "m", "n", "r", "c")}
        layer = Layer(name="x", h=sizes["r"], l=sizes["c"], **sizes)
        nest = random_nest(rng, layer, ON)
        rows = closed_form(layer, ON, nest).by_operand
        whole = {"W": layer.g * layer.m * layer.n, "IN": layer.b * layer.g * layer.n * layer.r * layer.c}
        for operand, size in whole.items():
            assert rows[operand].bytes == size * again(layer, nest, operand).times
        results = layer.b * layer.g * layer.m * layer.r * layer.c
        assert rows["PSUM"].bytes == 2 * (again(layer, nest, "OUT").times - 1) * results


# ---- improvements ----------------------------------------------------------------------------------------------------


def test_the_best_tile_of_an_order_is_the_best() -> None:
    """Brute force over all steps of the loops of random nests, priced one by one."""
    rng, looked = random.Random(21), 0
    while looked < 12:
        case = random_case(rng, "random")
        loops = case.nest.loops()
        if case.nest.line or not case.nest.even or case.machine.tles > 1 or case.machine.snake:
            continue
        if any(len(one) > 2 for one in loops.values()) or not any(loops.values()):
            continue
        lists = [_chains(len(loops[d]), case.layer.extent(d)) for d in DIMS]
        if len(list(product(*lists))) > 600:
            continue
        best = None
        for chains in product(*lists):
            found = closed_form(case.layer, case.machine, _with(case.nest, dict(zip(DIMS, chains, strict=True))))
            if all(found.occupancy_bytes.get(name, 0) <= size for name, size in case.machine.memories.items()):
                best = found.bytes if best is None else min(best, found.bytes)
        said = best_tile(Mapped(case.layer, case.nest), case.machine, ("bytes",), None)
        assert (said.measures["bytes"] if said.measures else None) == best
        looked += 1


def _chains(number: int, extent: int) -> list[tuple[int, ...]]:
    sizes = range(1, extent + 1)
    return [steps for steps in product(sizes, repeat=number) if list(steps) == sorted(steps, reverse=True)]


def _with(nest: Nest, steps: dict[str, tuple[int, ...]]) -> Nest:
    left = {d: list(one) for d, one in steps.items()}
    return Nest(tuple(Loop(i.dim, left[i.dim].pop(0)) if isinstance(i, Loop) else i for i in nest.items), nest.homes)


@pytest.mark.slow(2)
def test_improvements_of_a_real_layer() -> None:
    found = price("peer_layers", "scratchpad_64k", "m 16 W | r 1 | IN | c 71 | OUT", layers="c", improve=True)
    (layer,) = found.layers
    values = [one.measures["bytes"] if one.measures else 0 for one in layer.improved]
    assert values == [2_385_072, 2_385_072, 2_385_072]
    assert [one.kept for one in layer.improved] == ["loop order", "tile", "nothing"]
    tile = layer.improved[1].nest
    assert tile.tile(layer.mapped.layer)["m"] == 16


def test_loops_that_are_not_searched() -> None:
    layer = Layer.conv("deep", channels=2, filters=2, size=(12, 4))
    found = best_tile(Mapped(layer, nest_of("r 8 | W | r 4 | IN | r 2 | OUT", layer)), ON, ("bytes",), None)
    assert (found.status, found.nest) == ("NO_SOLUTION_FOUND", None)
    assert "r has 3 loops: orders of at most 2 a dimension" in found.note


# ---- machines --------------------------------------------------------------------------------------------------------


def test_several_cores() -> None:
    layer = Layer.conv("conv", channels=8, filters=16, size=(16, 16))
    machine = load_machine("nmp")
    assert problem_for(machine) == "slicing"
    found = price(layer, machine, "m 8/tle m 4/tlt | W | r 4 | IN | OUT", compare=False)
    assert (found.plan.problem, check(found.plan).ok) == ("slicing", True)
    with pytest.raises(InputError, match="uses 16 clusters of up to 1 cores, machine nmp has 4"):
        price(layer, machine, "m 1/tle | W | r 4", compare=False)
    with pytest.raises(InputError, match="uses 2 clusters"):
        price(TINY, ON, "m 1/tle | W | r 4", compare=False)


def test_several_memories_off_the_chip() -> None:
    found = price("lenet5", "u256_flash", "W | r 2 | IN | OUT", layers="c3", compare=False)
    assert check(found.plan).ok
    assert "homes were not said: " in str(found)
    nest = found.layers[0].mapped.nest
    stated = price("lenet5", "u256_flash", text_of(nest), layers="c3", compare=False)
    assert stated.plan.objective == found.plan.objective
    with pytest.raises(InputError, match="several memories off the chip"):
        price("lenet5", "u256_flash", {"c1": "W | r 2", "c3": "W | r 2"}, compare=False)


def test_random_mappings_are_plans() -> None:
    """Any nest of docs/nest.md is priced, replayed and checked, whether or not a problem would look at it."""
    rng, looked = random.Random(2), 0
    while looked < 30:
        case = random_case(rng, "random")
        on = case.machine
        if any(size <= on.reserved_bytes for size in on.memories.values()):
            continue
        mapped = Mapped(case.layer, nest_of(text_of(case.nest), case.layer))
        plan = plan_of([mapped], on, ("bytes",), "random")
        assert check(plan).ok
        assert plan.layers[0].schedule is not None
        assert plan.layers[0].schedule == case.nest
        looked += 1


# ---- files and commands ----------------------------------------------------------------------------------------------


def test_a_file_with_several_layers(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# two layers\nc1: W | r 4 | IN | OUT   # rows\nc3: W | IN | r 2 | OUT\n")
    found = price("lenet5", "scratchpad_64k", path, compare=False)
    assert [one.name for one in found.layers] == ["c1", "c3"]
    assert found.plan is not None
    assert check(found.plan).ok
    for text, said in (
        ("c1: W | r 4\nc9: W\n", "is for no layer of c1"),
        ("c1: W | r 4\nc1: W\n", "two lines for layer c1"),
        ("W | r 4\n", "a nest is for one layer: name it with --layer; there are"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            price("lenet5", "scratchpad_64k", path, compare=False)


def test_plans_are_mappings_too(tmp_path: Path) -> None:
    plan = solve("lenet5", "scratchpad_64k", objective="bytes", layers="c3", jobs=1)
    plan.save(tmp_path / "plan.json")
    found = price("lenet5", "scratchpad_24k", tmp_path / "plan.json", layers="c3", compare=False)
    assert found.layers[0].mapped.source.startswith("plan, ")


def test_all_golden_formats_of_a_plan(tmp_path: Path) -> None:
    """An optimal plan in every form that can say it, read again: the same bytes."""
    plan = solve("peer_layers", "scratchpad_64k", objective="bytes", layers="a", pins=["pieces=even"], jobs=1)
    layer, nest = plan.layers[0].workload, plan.layers[0].schedule
    assert nest is not None
    for form, suffix in (("text", "txt"), ("timeloop", "yaml")):
        text, _ = written([(layer, nest)], form)
        path = tmp_path / f"{form}.{suffix}"
        path.write_text(text)
        found = price("peer_layers", "scratchpad_64k", path, layers="a", compare=False)
        assert found.plan.objective == plan.objective
    with pytest.raises(InputError, match="do not divide it"):
        written([(layer, nest)], "zigzag")


def test_price_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "mine.json")
    command = ["price", "lenet5", "-m", "scratchpad_64k", "-l", "c3", "--mapping"]
    assert main([*command, "W | m 4 r 1 | IN | OUT", "-o", out]) == 0
    said = capsys.readouterr().out
    assert "c3 on scratchpad_64k: W | m 4 r 1 | IN | OUT" in said
    assert "Your mapping moves" in said
    assert main(["check", out]) == 0
    assert main(["export-mapping", out, "--format", "timeloop"]) == 0
    assert "mapping:" in capsys.readouterr().out
    assert main([*command, "IN | W | OUT", "--set", "ocm_bytes=512", "--alone"]) == 3
    assert "too many" in capsys.readouterr().out
    assert main([*command, "Q 3", "--alone"]) == 2
    assert "certile: error: mapping: 'Q': unknown dimension" in capsys.readouterr().err
    assert main([*command, "W | r 2", "--json", "--alone"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["layers"][0]["mapping"] == "W | r 2 | IN | OUT"
    assert Plan.from_json(json.dumps(data["plan"])).engine == "given"


def test_import_and_export_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    problem, mapping = FILES / "timeloop" / "default_problem.yaml", FILES / "timeloop" / "eyeriss_like.map.yaml"
    assert main(["import-mapping", str(problem), "--mapping", str(mapping)]) == 0
    said = capsys.readouterr()
    assert said.out == "r 14 c 56 m 8 | IN | OUT | r 1 c 14 | W\n"
    assert "note: W passes shared_glb by" in said.err
    plan, out = str(tmp_path / "p.json"), str(tmp_path / "out.yaml")
    run = ["price", str(problem), "-m", "scratchpad_64k", "--mapping", str(mapping), "--alone", "-o", plan]
    assert main(run) == 0
    assert main(["export-mapping", plan, "-f", "timeloop", "--names-of", str(problem), "-o", out]) == 0
    capsys.readouterr()
    assert main(["import-mapping", str(problem), "--mapping", out]) == 0
    assert capsys.readouterr().out == "r 14 c 56 m 8 | IN | OUT | r 1 c 14 | W\n"
    ordering = ["import-mapping", str(FILES / "zigzag" / "gemm_layer.yaml"), "--mapping",
                str(FILES / "zigzag" / "gemm_l1.yaml")]  # fmt: skip
    assert main(ordering) == 2
    assert "name the machine" in capsys.readouterr().err
    assert main([*ordering, "-m", "scratchpad_64k"]) == 0
    assert capsys.readouterr().out == "W | r 8 | OUT | n 8 | IN\n"


@pytest.mark.parametrize("command", ["price", "import-mapping", "export-mapping"])
def test_help_fits_a_screen(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40


# ---- Nests as a line of text: what is written is read again, and what people write is read or refused wit

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
